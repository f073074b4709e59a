//! Increments of rows that are here: formulas that only add share their row (ADR 0006).
//!
//! ```text
//! formula  row here, not lent ──> Increment lock: pending beside those of others, if all have room
//!          otherwise          ──> Exclusive: the row has to come, or its copies have to go, first
//! commit   at once            ──> folded onto the newest version, in the step that draws its time
//!          shards to confirm  ──> sealed: Exclusive before the timestamp is drawn
//! ```
//!
//! Versions of a row appear in the order of their timestamps, because nothing comes between drawing
//! one and installing it, except for the confirmations of read locks, which the seal is for. A row
//! with pending increments stays: to take the row, to lend it, or to read the columns that they add
//! to needs a lock that they exclude.

use crate::job::{Job, Origin, Stop};
use crate::txns::Phase;
use crate::{Cx, Leap};
use alloc::boxed::Box;
use base::{Key, Ts, TxnId};
use local::Written;
use store::{Formula, Write};
use txn::escrow::Escrow;
use txn::increment::{Folding, claim_of, claim_to_change};
use txn::lock::{Claim, Item};
use txn::{LockMode, OpError, OpId, OpResult, Submitted};

impl Leap {
    /// The lock that a change by one of the formulas needs now. See [`Written::has_savepoints`].
    pub(crate) fn formula_claim(
        &self,
        cx: &Cx<'_>,
        txn: TxnId,
        key: &Key,
        formulas: &[Formula],
    ) -> Claim {
        let held = self.pendings.formulas.of(txn, key);
        let held = held.map(|formula| Write::Formula(formula.clone()));
        let written = self.coord.txns.get(&txn).map(|state| &state.written);
        let own = held.as_ref().or_else(|| written?.get(key));
        if own.is_some() && written.is_some_and(Written::has_savepoints) {
            return LockMode::Exclusive.into();
        }
        let newest = cx.store.get(key, Ts::MAX);
        let newest = newest.map(|newest| newest.value);
        let escrow = self.escrow(txn, key);
        claim_to_change(formulas, own, escrow, newest, Folding::AsTheyCome)
    }

    /// The sum of what other transactions have pending on the row. `None`: nothing is pending.
    fn escrow(&self, txn: TxnId, key: &Key) -> Option<Escrow> {
        Escrow::of(Folding::AsTheyCome, false, |add| {
            self.locks.each_incrementer(txn, key, &mut |other| {
                let written = self.coord.txns.get(&other).map(|state| &state.written);
                let own = written.and_then(|written| written.get(key)?.formula());
                add(own.or_else(|| self.pendings.formulas.of(other, key)));
            });
        })
    }

    /// The lock of a formula: `claim`, or an exclusive lock if the row is away or lent.
    pub(crate) fn placed_claim(&self, key: &Key, claim: Claim) -> Claim {
        let adds = matches!(claim.mode(), LockMode::Increment | LockMode::Fold);
        if adds && (!self.is_mine(key) || self.sharing.is_lent(key)) {
            LockMode::Exclusive.into()
        } else {
            claim
        }
    }

    /// Whether the transaction has no more than an increment lock on a row that it writes.
    fn is_unsealed(&self, txn: TxnId, key: &Key, write: &Write) -> bool {
        matches!(write, Write::Formula(_))
            && claim_of(write, Folding::AsTheyCome).mode() != LockMode::Exclusive
            && !self.locks.holds(txn, &Item::of(key), LockMode::Exclusive)
    }

    /// Turns the increment locks of `txn` into exclusive ones, because its commit has to wait for
    /// confirmations; then the commit goes on. `None`: there is nothing to seal.
    pub(crate) fn seal(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        result: &OpResult,
    ) -> Option<Submitted> {
        if !self.is_to_freeze(txn) {
            let mut formulas = self.coord.txns[&txn].written.writes().formulas();
            if !formulas.any(|(key, write)| self.is_unsealed(txn, key, write)) {
                return None;
            }
        }
        let state = self.coord.txns.of(txn);
        let result = result.clone();
        state.phase = Phase::Sealing { id, result };
        let mut job = Box::new(Job::new(txn, state.options, u64::MAX, Origin::Seal));
        job.id = self.jobs.next_number();
        match self.run(cx, &mut job) {
            Ok(_) => {
                let state = self.coord.txns.of(txn);
                state.phase = Phase::Running;
                None
            }
            Err(Stop::Fail(error)) => Some(self.fail(cx, txn, error.into_reason())),
            Err(stop) => {
                let state = self.coord.txns.of(txn);
                state.local.push((id, job.id));
                self.park(cx, job, &stop);
                Some(Submitted::Pending)
            }
        }
    }

    /// Runs a job that seals, row after row in key order, a slice a turn.
    pub(crate) fn run_seal(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        let txn = job.txn;
        let (most, from) = (self.settings.slice_units, job.sealing.take());
        let writes = self.coord.txns[&txn].written.writes();
        let only = writes.iter().next().filter(|_| writes.len() == 1);
        if let Some(key) = only.map(|(key, _)| key.clone()) {
            // Alone in its transaction, an operation may have run without a lock.
            self.lock(cx.now, job, &Item::of(&key), LockMode::Exclusive)?;
        }
        let unsealed = |key: &Key, write: &Write| self.is_unsealed(txn, key, write).then_some(());
        let written = &self.coord.txns[&txn].written;
        let (found, rest) = written.formulas_to_seal(cx.counters, from, most, unsealed);
        for (key, ()) in found {
            if let Err(stop) = self.lock(cx.now, job, &Item::of(&key), LockMode::Exclusive) {
                job.sealing = Some(Box::new(key));
                return Err(stop);
            }
        }
        job.sealing = rest;
        if job.sealing.is_some() {
            return Err(Stop::Budget);
        }
        self.freeze(cx, txn)?;
        Ok(OpResult::Done)
    }

    /// A seal that had to wait has its locks, or has failed.
    pub(crate) fn end_seal(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        result: Result<OpResult, OpError>,
    ) {
        if let Err(error) = result {
            // The end of the transaction answers the commit.
            self.abort_txn(cx, txn, error.into_reason());
            return;
        }
        let state = self.coord.txns.of(txn);
        let phase = core::mem::replace(&mut state.phase, Phase::Running);
        let Phase::Sealing { id, result } = phase else {
            unreachable!("a job that seals belongs to a commit that waits for it")
        };
        state.local.retain(|(op, _)| *op != id);
        let submitted = self.commit_asked(cx, txn, id, result);
        cx.out.settle(txn, id, submitted);
    }
}
