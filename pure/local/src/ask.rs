//! Asking for locks in the name of a job.

use crate::load::Group;
use crate::stop::Stop;
use crate::write_set::WriteSet;
use base::{SqlError, SqlState, Time, TxnId};
use txn::lock::{Acquired, Claim, Item, LockRequest, Taken};
use txn::{AbortReason, LockMode, LockTable, Priority, TxnOptions};

/// The job that asks for locks, and how it asks.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Number of the job that waits.
    pub job: u64,
    /// Priority of the job's transaction.
    pub priority: Priority,
    /// See [`LockRequest::alone`].
    pub alone: bool,
    /// See [`LockRequest::ordered`].
    pub ordered: bool,
    /// Longest wait in microseconds; 0: no limit.
    pub timeout_us: u64,
    /// Time of this step.
    pub now: Time,
    /// Whether all requested locks are known to be free and the transaction ends in this step: then
    /// no lock is entered.
    pub direct: bool,
}

impl Asker {
    /// For a job of `txn`, which has other operations.
    #[inline]
    pub fn new(job: u64, txn: TxnId, options: &TxnOptions, now: Time) -> Asker {
        Asker {
            job,
            priority: options.priority(txn),
            alone: false,
            ordered: false,
            timeout_us: options.lock_timeout_us,
            now,
            direct: false,
        }
    }

    /// Asks for a lock.
    ///
    /// # Errors
    /// [`Stop::Lock`]: the job waits; [`Stop::Fail`]: its transaction dies.
    #[inline]
    pub fn ask<W>(
        &self,
        locks: &mut LockTable,
        item: Item<'_>,
        claim: impl Into<Claim>,
    ) -> Result<(), Stop<W>> {
        self.ask_noting(locks, item, claim, &mut false)
    }

    /// As [`Asker::ask`]; sets `first` if the transaction held no part of the row before.
    ///
    /// # Errors
    /// As [`Asker::ask`].
    #[inline]
    pub fn ask_noting<W>(
        &self,
        locks: &mut LockTable,
        item: Item<'_>,
        claim: impl Into<Claim>,
        first: &mut bool,
    ) -> Result<(), Stop<W>> {
        if self.direct {
            return Ok(());
        }
        let request = LockRequest::<Claim> {
            alone: self.alone,
            ordered: self.ordered,
            deadline: (self.timeout_us > 0).then(|| self.now.after(self.timeout_us)),
            ..LockRequest::new(self.priority, item, claim.into(), self.now, self.job)
        };
        match locks.acquire_noting(request, first) {
            Acquired::Granted => Ok(()),
            Acquired::Waiting => Err(Stop::Lock),
            Acquired::Died(conflict) => Err(Stop::from(AbortReason::Die {
                key: conflict.key,
                holder: conflict.holder,
            })),
        }
    }
}

/// Locks a row that no other transaction is in the way of. `false`: one is, and nothing is asked.
///
/// # Errors
/// As [`Asker::ask`]; [`not_available`] unless the row `skips`.
pub fn try_lock<W>(
    asker: &Asker,
    locks: &mut LockTable,
    item: Item<'_>,
    mode: LockMode,
    skips: bool,
) -> Result<bool, Stop<W>> {
    let txn = asker.priority.txn;
    if !locks.holds(txn, &item, mode) && locks.in_the_way(txn, &item, mode).is_some() {
        return match skips {
            true => Ok(false),
            false => Err(Stop::from(not_available())),
        };
    }
    asker.ask(locks, item, mode)?;
    Ok(true)
}

/// 55P03 of a row that another transaction has locked. The executor names its table.
#[must_use]
pub fn not_available() -> SqlError {
    SqlError::new(SqlState::LOCK_NOT_AVAILABLE, "could not obtain lock on row")
}

/// Locks new rows together. Returns `false`, and locks nothing, if another transaction holds, wants
/// or surrounds one of the rows, or if the transaction, with `writes`, has written one.
pub fn take_group(
    locks: &mut LockTable,
    txn: Priority,
    group: &Group<'_>,
    writes: Option<&WriteSet>,
) -> bool {
    match locks.take_rows(txn, group.index, group.slot, &group.keys()) {
        Taken::New => true,
        Taken::Covered => {
            let (low, high) = group.ends();
            writes.is_none_or(|writes| !writes.has_between(&low, &high))
        }
        Taken::No => false,
    }
}
