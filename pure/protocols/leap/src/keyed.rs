//! Operations on single rows, where the transaction runs: lock, own, then work.

use crate::job::{Job, Origin, Stop, Wait};
use crate::request::Standing;
use crate::share::Writer;
use crate::{Cx, Leap, printed};
use base::{Key, SqlError, Ts};
use local::Access;
use txn::bulk::Wanted;
use txn::increment::{claim_to_modify, claim_to_read, guarded};
use txn::lock::{Claim, Item};
use txn::{AbortReason, LockMode, Op, OpResult, Program, Read, Snapshot};

/// A reader of the snapshot waits for commits up to the result.
pub(crate) fn waits_until(snapshot: Snapshot) -> Ts {
    if snapshot.is_guarded() {
        Ts::MAX
    } else {
        snapshot.at
    }
}

impl Leap {
    pub(crate) fn run_keyed(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        op: &mut Op,
    ) -> Result<OpResult, Stop> {
        if let Some(index) = op.index() {
            cx.check_schema(index, job.planned)?;
        }
        match op {
            Op::Get { key, read, program } => {
                // A row does not move for a reader on another shard, which it cannot come to.
                let visits = matches!(job.origin, Origin::Read { .. });
                if visits && self.standing(key) == Standing::Elsewhere {
                    return Err(Stop::Wait(Wait::Elsewhere));
                }
                match *read {
                    Read::Snapshot(snapshot) => self.get_snapshot(cx, job, key, snapshot, program),
                    Read::Lock(mode) => {
                        let live = program.live(cx.decode).map_err(SqlError::from)?;
                        self.take(cx, job, key, claim_to_read(mode, &*live))?;
                        self.get(cx, job, key, Ts::MAX, program)
                    }
                    Read::LockRows { snapshot, mode } => {
                        Self::admit_snapshot(cx, Wanted::Row(key), snapshot.at)?;
                        self.take(cx, job, key, mode)?;
                        self.get_twice(cx, job, key, snapshot, program)
                    }
                    Read::TryLock { mode, skips } => {
                        self.get_free(cx, job, key, (mode, skips), program)
                    }
                }
            }
            Op::Modify { key, program } => {
                let live = program.live(cx.decode).map_err(SqlError::from)?;
                let claim = match guarded(&*live) {
                    [] => claim_to_modify(&*live),
                    formulas => self.formula_claim(cx, job.txn, key, formulas),
                };
                self.take(cx, job, key, claim)?;
                Ok(self.access(job).modify(cx, key, &*live)?)
            }
            Op::Insert { key, row } => {
                if printed!(self, LeapAbsentNotOwned) && self.standing(key) == Standing::Elsewhere {
                    self.lock(cx.now, job, &Item::of(key), LockMode::Exclusive)?;
                } else {
                    self.take(cx, job, key, LockMode::Exclusive)?;
                }
                let row = || core::mem::take(row).into_vec();
                Ok(self.access(job).insert(cx, key, row, false)?)
            }
            Op::InsertMany(rows) => self.insert_many(cx, job, rows),
            Op::Formula { key, formula } => {
                let claim = self.formula_claim(cx, job.txn, key, core::slice::from_ref(formula));
                self.take(cx, job, key, claim)?;
                Ok(self.access(job).formula(cx, key, formula)?)
            }
            Op::Write { key, write } => {
                self.take(cx, job, key, LockMode::Exclusive)?;
                let mut access = self.access(job);
                access.write(cx, key.clone(), write.clone(), false)?;
                Ok(OpResult::Done)
            }
            Op::Scan(_) | Op::Clock(_) | Op::Savepoint(_) => {
                unreachable!("they go another way")
            }
        }
    }

    /// The rows of this shard as the job's transaction sees them.
    #[inline]
    pub(crate) fn access<'a>(&'a mut self, job: &'a mut Job) -> Access<'a> {
        let state = self.coord.txns.get_mut(&job.txn);
        Access {
            txn: job.txn,
            planned: job.planned,
            written: state.map(|state| &mut state.written),
            installed: &self.installed,
            bytes_max: self.settings.txn_bytes_max,
            wait: &mut job.wait,
        }
    }

    /// Locks a row here and makes sure that it is here.
    pub(crate) fn take(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        key: &Key,
        claim: impl Into<Claim>,
    ) -> Result<(), Stop> {
        let claim = self.placed_claim(key, claim.into());
        let mode = claim.mode();
        if matches!(job.origin, Origin::Local { .. }) {
            self.errands.note_use(key);
        }
        cx.check_memory(1)?;
        if self.is_home(key) || !printed!(self, LeapOwnerWithoutLock) {
            self.lock(cx.now, job, &Item::of(key), claim)?;
        }
        // An operation of another shard's transaction does not ask for its row.
        if matches!(job.origin, Origin::Errand { .. }) && !self.is_mine(key) {
            return Err(Stop::Wait(Wait::Elsewhere));
        }
        if mode == LockMode::Shared && self.uses_copy(job.txn, key) {
            return Ok(());
        }
        // One that inserts many rows has others locked as well, which it has requested ahead.
        let alone = job.alone && job.asked_ahead == 0;
        self.own(cx, key, job, mode, alone)?;
        if mode != LockMode::Shared {
            self.sharing.note_write(key);
            if self.sharing.is_lent(key) {
                let writer = Writer::Job(job.id);
                match self.recalled(cx, key, job.priority(), writer) {
                    Ok(true) => {}
                    Ok(false) => return Err(Stop::Wait(Wait::Recall)),
                    Err(reason) => return Err(Stop::aborted(reason)),
                }
            }
        }
        Ok(())
    }

    /// Merges the snapshot into the clock and refuses what is not kept any more.
    pub(crate) fn admit_snapshot(cx: &mut Cx<'_>, wanted: Wanted<'_>, ts: Ts) -> Result<(), Stop> {
        cx.admit_snapshot(wanted, ts)?;
        // Later commits on this shard, and on those that get rows from it, lie above the snapshot.
        cx.clock.merge(ts);
        Ok(())
    }

    fn get_snapshot(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let ts = snapshot.at;
        match self.standing(key) {
            Standing::Mine => {}
            Standing::Elsewhere => return Err(Stop::Wait(Wait::Elsewhere)),
            Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
        }
        Self::admit_snapshot(cx, Wanted::Row(key), ts)?;
        if !job.commits_seen {
            let (wanted, reads) = (Wanted::Row(key), &mut |other: &Key| other == key);
            let until = waits_until(snapshot);
            if self.commits_below(until, wanted) || self.awaits_outcomes(cx, job, until, reads)? {
                return Err(Stop::Wait(Wait::Commit));
            }
            job.commits_seen = true;
        }
        self.look_at(cx, key, snapshot)?;
        self.get(cx, job, key, ts, program)
    }

    /// Refuses a row of which a snapshot may miss a version: the history that it needs has not come
    /// with the row (rule R13), or the snapshot is guarded and there is a newer version.
    pub(crate) fn look_at(&self, cx: &Cx<'_>, key: &Key, snapshot: Snapshot) -> Result<(), Stop> {
        if self.lacks_history(key, snapshot.at) {
            return Err(Stop::aborted(AbortReason::SnapshotTooOld(key.clone())));
        }
        if snapshot.is_guarded() && cx.store.newest_ts(key) > snapshot.at {
            let reason = AbortReason::SnapshotMisses(Some(key.clone()));
            return Err(Stop::aborted(reason));
        }
        Ok(())
    }

    /// Whether a transaction may commit, or install what it has committed, on a row that is
    /// `wanted` as of `ts`: it awaits confirmations, or is installed in slices.
    pub(crate) fn commits_below(&self, ts: Ts, wanted: Wanted<'_>) -> bool {
        self.bulks.awaits(ts, wanted) || self.coord.commits_below(ts, wanted)
    }

    pub(crate) fn get(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        at: Ts,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let program = program.live(cx.decode).map_err(SqlError::from)?;
        Ok(self.access(job).get(cx, key, at, &*program)?)
    }

    /// A row that passes in the snapshot, in its newest version.
    fn get_twice(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        self.look_at(cx, key, snapshot)?;
        let before = self.get(cx, job, key, snapshot.at, program)?;
        let passes = matches!(&before, OpResult::Rows { batch, .. } if batch.rows > 0);
        if passes {
            self.get(cx, job, key, Ts::MAX, program)
        } else {
            Ok(before)
        }
    }
}
