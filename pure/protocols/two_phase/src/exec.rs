//! Operations on single rows.

use crate::job::{Job, Stop, Wait};
use crate::message::Finish;
use crate::order::Order;
use crate::part::{Part, Promise};
use crate::snapshot::{Kept, arrive, raise};
use crate::{Control, Cx, Machine, Settings};
use alloc::collections::BTreeMap;
use base::{Key, Planted, RowBatch, SqlError, Ts, TxnId, is_planted};
use core::slice;
use local::ask::try_lock;
use local::{Access, Asker};
use store::Write;
use txn::Installed;
use txn::bulk::Wanted;
use txn::escrow::Escrow;
use txn::increment::{claim_to_modify, claim_to_read, guarded};
use txn::lock::{Claim, Item};
use txn::{
    AbortReason, Bulks, LockMode, LockTable, Op, OpError, OpResult, Program, Read, Snapshot,
};

/// What an operation works with besides the context.
pub(crate) struct Hands<'a, C> {
    pub(crate) control: &'a mut C,
    pub(crate) locks: &'a mut LockTable,
    /// Part of the transaction on this shard; `None`: the operation needs none.
    pub(crate) part: Option<&'a mut Part>,
    /// Increments that other transactions have pending on the row of a formula.
    pub(crate) escrow: Option<Escrow>,
    pub(crate) promises: &'a BTreeMap<TxnId, Promise>,
    pub(crate) order: &'a Order,
    pub(crate) kept: &'a Kept,
    pub(crate) bulks: &'a Bulks,
    /// False only where a test plants the fault.
    pub(crate) seals: bool,
    pub(crate) installed: &'a Installed,
    pub(crate) settings: Settings,
}

impl<C: Control> Machine<C> {
    /// Runs a job's writes and operation as far as they go.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        let escrow = match &job.op {
            Some(Op::Formula { key, formula }) if C::FOLDING.shares(formula) => {
                self.escrow(job.txn, key, Some(formula))
            }
            Some(Op::Modify { key, program }) => {
                let program = program.live(cx.decode).map_err(SqlError::from)?;
                match guarded(&*program).is_empty() {
                    true => None,
                    false => self.escrow(job.txn, key, None),
                }
            }
            _ => None,
        };
        let seals = self.seals();
        let savepoint = match &job.op {
            Some(Op::Savepoint(savepoint)) => Some(*savepoint),
            _ => None,
        };
        let mut hands = Hands {
            control: &mut self.control,
            locks: &mut self.locks,
            part: self.parts.get_mut(&job.txn).map(|part| &mut **part),
            escrow,
            seals,
            promises: &self.promises,
            order: &self.order,
            kept: &self.kept,
            bulks: &self.bulks,
            installed: &self.installed,
            settings: self.settings,
        };
        let found = hands.run(cx, job)?;
        if let Some(savepoint) = savepoint
            && let Some(part) = self.parts.get_mut(&job.txn)
            && !part
                .written
                .save(&mut self.bulks, savepoint, self.settings.slice_units)
        {
            job.op = Some(Op::Savepoint(savepoint));
            return Err(Stop::Budget);
        }
        if job.freezes()
            && found.allows_finish()
            && let Err(stop) = self.freeze(cx, job)
        {
            job.found = Some(found);
            return Err(stop);
        }
        Ok(found)
    }
}

impl<C: Control> Hands<'_, C> {
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, job: &mut Job) -> Result<OpResult, Stop> {
        let asker = job.asker(cx.now);
        if job.options.serial && !job.stateless {
            asker.ask(self.locks, Item::Shard, LockMode::Exclusive)?;
        }
        let mut spent = 0;
        while let Some((key, _)) = job.writes.as_slice().first() {
            if spent >= self.settings.slice_units {
                return Err(Stop::Budget);
            }
            spent += 1;
            cx.check_write(key.index, job.planned)?;
            if !C::JUDGES && matches!(job.finish, Finish::Prepare(_)) {
                self.expect_free(job.txn, key, LockMode::Exclusive.into())?;
            }
            asker.ask(self.locks, Item::of(key), LockMode::Exclusive)?;
            let (key, write) = job.writes.next().expect("just looked at");
            self.check_view(&key, &write)?;
            self.access(job).write(cx, key, write, false)?;
        }
        let found = match job.found.take() {
            Some(found) => found,
            None => self.run_taken(cx, job, &asker)?,
        };
        if job.commits()
            && found.allows_finish()
            && self.seals
            && let Err(stop) = self.seal(cx, job, &asker)
        {
            job.found = Some(found);
            return Err(stop);
        }
        Ok(found)
    }

    /// Fails unless the lock is held or free: while the transaction waited for it, others might
    /// wait for what it has promised elsewhere (rule C9).
    pub(crate) fn expect_free(&self, txn: TxnId, key: &Key, claim: Claim) -> Result<(), Stop> {
        let item = Item::of(key);
        if self.locks.holds(txn, &item, claim) {
            return Ok(());
        }
        match self.locks.in_the_way(txn, &item, claim) {
            None => Ok(()),
            Some(holder) => {
                let key = key.clone();
                let reason = AbortReason::Die { key, holder };
                Err(Stop::Fail(OpError::Aborted(reason)))
            }
        }
    }

    /// Fails if a write cannot follow what its transaction has written of the row. Where reads take
    /// no locks, a statement that walks over an index while others move its entries may meet a row
    /// twice; its transaction could not commit, but it would change the row twice before it hears
    /// that.
    fn check_view(&self, key: &Key, write: &Write) -> Result<(), Stop> {
        if !C::JUDGES {
            return Ok(());
        }
        let own = self.part.as_deref().and_then(|part| part.written.get(key));
        if !own.is_some_and(|own| own.contradicts(write)) {
            return Ok(());
        }
        let reason = AbortReason::Overtaken(Some(key.clone()));
        Err(Stop::Fail(OpError::Aborted(reason)))
    }

    /// Takes the operation out, so that the job can be changed meanwhile. Puts it back if it waits.
    fn run_taken(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
    ) -> Result<OpResult, Stop> {
        let Some(mut op) = job.op.take() else {
            return Ok(OpResult::Done);
        };
        let result = self.run_op(cx, job, asker, &mut op);
        if matches!(
            result,
            Err(Stop::Lock | Stop::Wait(Wait::Promise) | Stop::Budget)
        ) {
            job.op = Some(op);
        }
        result
    }

    fn run_op(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &mut Op,
    ) -> Result<OpResult, Stop> {
        if let Some(index) = op.index() {
            cx.check_schema(index, job.planned)?;
        }
        match op {
            Op::Clock(snapshot) => Ok(OpResult::Clock(arrive(cx, job, *snapshot))),
            Op::Savepoint(_) => Ok(OpResult::Done),
            Op::Get { key, read, program } => self.get(cx, job, asker, key, *read, program),
            Op::Modify { key, program } => {
                let program = program.live(cx.decode).map_err(SqlError::from)?;
                let claim = match guarded(&*program) {
                    [] => claim_to_modify(&*program),
                    formulas => self.formula_claim(cx, key, formulas),
                };
                asker.ask(self.locks, Item::of(key), claim)?;
                if claim.mode() != LockMode::Increment || guarded(&*program).is_empty() {
                    self.await_folds(cx, job, Wanted::Row(key))?;
                }
                Ok(self.access(job).modify(cx, key, &*program)?)
            }
            Op::Insert { key, row } => {
                self.insert_one(cx, job, asker, key, || core::mem::take(row).into_vec())
            }
            Op::InsertMany(rows) => self.insert_many(cx, job, asker, rows),
            Op::Formula { key, formula } => {
                let claim = self.formula_claim(cx, key, slice::from_ref(formula));
                asker.ask(self.locks, Item::of(key), claim)?;
                if self.access(job).outgrows(key, formula) {
                    self.await_folds(cx, job, Wanted::Row(key))?;
                }
                Ok(self.access(job).formula(cx, key, formula)?)
            }
            Op::Write { key, write } => {
                asker.ask(self.locks, Item::of(key), LockMode::Exclusive)?;
                self.check_view(key, write)?;
                self.access(job)
                    .write(cx, key.clone(), write.clone(), false)?;
                Ok(OpResult::Done)
            }
            Op::Scan(scan) => self.scan(cx, job, asker, scan),
        }
    }

    /// The timestamp at which a row is read: the snapshot's, unless that misses a version and may
    /// be moved to it.
    fn snapshot_of_row(
        &self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
    ) -> Result<Ts, Stop> {
        let bound = self.settle(cx, job, snapshot, Wanted::Row(key))?;
        if bound <= snapshot.at || is_planted(Planted::SnapshotNotRaised) {
            return Ok(snapshot.at);
        }
        let newer = cx.store.newer(key, snapshot.at, bound);
        match newer {
            None => Ok(snapshot.at),
            // A promise to write the row from now on lies above its newest version.
            Some(newer) if snapshot.sole => Ok(newer),
            Some(_) => {
                let missed = |at: Ts, bound: Ts| cx.store.newer(key, at, bound).is_some();
                match self.misses(job, snapshot.at, bound, &missed) {
                    true => Err(raise(cx, bound)),
                    false => Ok(snapshot.at),
                }
            }
        }
    }

    fn get(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &Key,
        read: Read,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let program = program.live(cx.decode).map_err(SqlError::from)?;
        let at = match read {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => {
                self.snapshot_of_row(cx, job, key, snapshot)?
            }
            Read::Lock(_) if self.reads_stamped(job, key) => {
                cx.check_memory(1)?;
                let stamp = job.stamp.expect("just seen");
                let columns = program.reads();
                let wanted = Wanted::Row(key);
                let at = self.stamped_at(cx, job, stamp, wanted, columns, None)?;
                self.control.note_row(job.txn, key, columns, at);
                at
            }
            Read::Lock(mode) => {
                cx.check_memory(1)?;
                asker.ask(self.locks, Item::of(key), claim_to_read(mode, &*program))?;
                self.await_folds(cx, job, Wanted::Row(key))?;
                if is_planted(Planted::SharedLockDropped)
                    && !self
                        .locks
                        .holds(job.txn, &Item::of(key), LockMode::Exclusive)
                {
                    self.locks.release_item(job.txn, &Item::of(key));
                }
                Ts::MAX
            }
            Read::TryLock { .. } => {
                cx.check_memory(1)?;
                Ts::MAX
            }
        };
        let mut batch = RowBatch::new(program.width());
        let (passed, mut version) = self
            .access(job)
            .point(cx.store, key, at, &*program, &mut batch)?;
        let locked = passed && self.lock_found(cx, job, asker, key, read)?;
        if let (false, Read::TryLock { .. }) = (locked, read) {
            return Ok(OpResult::Rows {
                batch: RowBatch::new(program.width()),
                resume: None,
            });
        }
        if locked {
            batch = RowBatch::new(program.width());
            let mut access = self.access(job);
            (_, version) = access.point(cx.store, key, Ts::MAX, &*program, &mut batch)?;
        }
        self.access(job).note_read(cx, key, version);
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }

    /// Locks a row that passes, if it is read again under a lock. Returns whether it is.
    fn lock_found(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        key: &Key,
        read: Read,
    ) -> Result<bool, Stop> {
        match read {
            Read::LockRows { mode, .. } => {
                asker.ask(self.locks, Item::of(key), mode)?;
                Ok(true)
            }
            Read::TryLock { mode, skips } => {
                let free = try_lock(asker, self.locks, Item::of(key), mode, skips)?;
                if free {
                    self.await_folds(cx, job, Wanted::Row(key))?;
                }
                Ok(free)
            }
            Read::Snapshot(_) | Read::Lock(_) => Ok(false),
        }
    }

    /// Whether the job reads the row without a lock. A row that its transaction has written is
    /// locked.
    fn reads_stamped(&self, job: &Job, key: &Key) -> bool {
        let written = self.part.as_deref().map(|part| &part.written);
        job.stamp.is_some() && written.is_none_or(|written| written.get(key).is_none())
    }

    /// The rows of the shard in the hands of the job's transaction.
    #[inline]
    pub(crate) fn access<'a>(&'a mut self, job: &'a mut Job) -> Access<'a> {
        Access {
            txn: job.txn,
            planned: job.planned,
            written: self.part.as_deref_mut().map(|part| &mut part.written),
            installed: self.installed,
            bytes_max: self.settings.txn_bytes_max,
            wait: &mut job.wait,
        }
    }
}
