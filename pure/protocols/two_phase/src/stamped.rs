//! Serializable reads without locks: made as of one timestamp, noted, and judged at the end.
//!
//! ```text
//! first read     draws the stamp of the transaction: the snapshot that it reads as long as it can
//! every read     waits for promises below its timestamp, and is noted where the row is
//! only read,     commits at the stamp if all reads were made there and on one shard; else the
//!                shards vote
//! vote, commit   what was read is what would be read now; from then on others write it above the
//!                top of the vote
//! ```
//!
//! A read moves above the stamp if a version that may have been answered before the transaction
//! began lies there, and if the transaction writes: it can commit only if it has read the newest
//! versions, so older ones are of no use to it (rule A1).

use crate::control::Guard;
use crate::coord::Coord;
use crate::entrust::present;
use crate::exec::Hands;
use crate::job::{Job, Stop, Wait};
use crate::judge::{Rows, columns_written, touches};
use crate::message::Stamp;
use crate::snapshot::{Arrival, arrive, scan_misses};
use crate::{Control, Cx, Machine};
use base::{Key, Planted, Position, ShardId, Ts, TxnId, is_planted};
use local::Written;
use store::Write;
use txn::bulk::Wanted;
use txn::{AbortReason, Bulks, Columns, LockMode, Op, OpError, Read, ScanOp, Snapshot};

/// How far ahead of the clock the bound of commits is that promises make together. All nodes keep
/// the bounds of their clocks further ahead, unless these are far apart.
const EARLY: u64 = (250_000 * 8) << 10;

impl<C: Control> Machine<C> {
    /// How `op` of `txn` reads at `to`, if it reads without locks.
    pub(crate) fn stamp(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        op: &Op,
        to: ShardId,
    ) -> Option<Stamp> {
        if !C::JUDGES {
            return None;
        }
        let coord = self.coords.of(txn);
        let options = coord.options;
        if options.serial || options.urgent || options.locks_reads {
            return None;
        }
        match (op, op.read()) {
            (Op::Get { .. } | Op::Scan(_), Some(Read::Lock(LockMode::Shared))) => {}
            // The rows are locked, and what lies between them is not.
            (Op::Scan(_), Some(Read::Lock(_))) => coord.locks = true,
            _ => return None,
        }
        if coord.stamp == Ts::ZERO {
            coord.stamp = cx.clock.tick(cx.now);
            coord.stamped_since = coord.stamp;
            coord.stamped = op.index().expect("it reads rows");
        }
        let mut snapshot = Snapshot::recent(coord.stamp, coord.stamped_since);
        coord.inform(to, &mut snapshot);
        Some(Stamp {
            snapshot,
            newest: coord.locks || coord.read_at > coord.stamp,
        })
    }

    /// As [`Machine::stamp`], for what is sent to another shard. Notes whether it may lock there.
    pub(crate) fn stamp_or_lock(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        op: Option<&Op>,
        to: ShardId,
    ) -> Option<Stamp> {
        let stamp = op.and_then(|op| self.stamp(cx, txn, op, to));
        self.coords.of(txn).locks |= stamp.is_none();
        stamp
    }

    /// The timestamp at which a transaction that has only read commits without another question:
    /// all that it has read is what was there at that moment.
    pub(crate) fn reads_one_moment(&self, txn: TxnId) -> Option<Ts> {
        let coord = &self.coords[&txn];
        let reads = coord.stamp > Ts::ZERO && coord.read_at <= coord.stamp && !coord.locks;
        let others = coord.members.iter().filter(|m| m.shard != txn.shard);
        let shards = others.count() + usize::from(self.parts.contains_key(&txn));
        let is_one = shards <= 1 || is_planted(Planted::FormulaReadersUnasked);
        (reads && is_one && !self.has_any_writes(txn)).then_some(coord.stamp)
    }

    /// Whether `txn` has written anything, anywhere.
    pub(crate) fn has_any_writes(&self, txn: TxnId) -> bool {
        let coord = &self.coords[&txn];
        self.has_written(txn) || coord.members.iter().any(|m| m.wrote || !m.queue.is_empty())
    }

    /// Whether what `txn` has read here is what it would read now.
    ///
    /// # Errors
    /// [`AbortReason::Overtaken`].
    pub(crate) fn judge(&self, cx: &Cx<'_>, txn: TxnId) -> Result<(), AbortReason> {
        if !self.control.has_read(txn) {
            return Ok(());
        }
        let rows = Rows {
            txn,
            store: cx.store,
            horizons: cx.horizons,
            order: &self.order,
            promises: &self.promises,
            bulks: &self.bulks,
        };
        match self.control.judge(txn, &rows) {
            Some(key) => Err(AbortReason::Overtaken(Some(key))),
            None => Ok(()),
        }
    }

    /// Whether `txn` may have to wait before it promises or commits here: for guards, or for
    /// promises of formulas.
    pub(crate) fn may_await_guards(&self, txn: TxnId) -> bool {
        let may = !self.order.is_empty() && self.parts.contains_key(&txn);
        C::JUDGES && (may || self.meets_guards(txn))
    }

    /// Whether others guard what `txn` has written here.
    fn meets_guards(&self, txn: TxnId) -> bool {
        let Some(part) = self.parts.get(&txn) else {
            return false;
        };
        let mut meets = false;
        let (control, bulks) = (&self.control, &self.bulks);
        each_guard_over(control, bulks, txn, &part.written, &mut |_, _| meets = true);
        meets
    }

    /// Below what the promises of a commit that begins now may make it together.
    pub(crate) fn early_limit(&self, cx: &mut Cx<'_>) -> Ts {
        // The bounds of all participants' clocks must reach up to it.
        self.clock_limit(cx)
            .min(Ts(present(cx).0.saturating_add(EARLY)))
    }

    /// From here on others wait with changes of what `txn` has read here, until it has ended.
    /// Returns the largest timestamp at which it may commit, as it votes at `at`: the next life of
    /// this node, which will know of no guard and no lock of a reader, draws its timestamps above
    /// (rule C5).
    pub(crate) fn guard(&mut self, cx: &mut Cx<'_>, txn: TxnId, at: Ts, settled: bool) -> Ts {
        let part = &self.parts[&txn];
        if self.control.has_read(txn) {
            let by = part.options.priority(txn);
            self.control.guard(Guard { by, settled });
        } else {
            // Who decides in this node ends together with what is locked here.
            let together = !self.is_remote(part.lead.unwrap_or(txn.shard));
            // The locks of what is written come back with the promise.
            let written = |key: &Key| part.written.get(key).is_some();
            if together || !self.locks.holds_beside(txn, &written) {
                return Ts::MAX;
            }
        }
        // The vote leaves when the clock's bound is durably as high.
        self.clock_limit(cx).max(at)
    }
}

/// Calls `f` with the transactions that guard rows of a write set, and these rows.
fn each_guard_over<C: Control>(
    control: &C,
    bulks: &Bulks,
    txn: TxnId,
    written: &Written,
    f: &mut dyn FnMut(Guard, Option<&Key>),
) {
    if !control.has_guards() {
        return;
    }
    if written.is_large(bulks) {
        control.each_voter(txn, &mut |guard| f(guard, None));
        return;
    }
    for (key, write) in written.writes().iter() {
        let columns = columns_written(write);
        control.each_guard(txn, key, columns, &mut |guard| f(guard, Some(key)));
    }
}

impl<C: Control> Hands<'_, C> {
    /// Calls `f` with those who have promised formulas on the row that do not commute with this.
    fn each_clash(&self, key: &Key, write: &Write, f: &mut dyn FnMut(Guard)) {
        if is_planted(Planted::FormulaTimestampsPerShard)
            || is_planted(Planted::FormulaFoldsAsTheyCome)
        {
            return;
        }
        let own = write.formula().expect("the caller looks at formulas");
        self.order.each_open(Wanted::Row(key), &mut |_, txn, _| {
            let promise = &self.promises[&txn];
            let other = promise.write(key).and_then(Write::formula);
            if other.is_some_and(|other| !other.commutes_with(own)) {
                f(Guard {
                    by: promise.priority,
                    settled: promise.settled,
                });
            }
        });
    }

    /// Waits for the transactions that have promised on the ground of what this one has written
    /// since, or formulas whose order beside its own can be seen. Fails if one of them is older, or
    /// may still wait for a lock or promise, so that it could wait for this one.
    pub(crate) fn await_guards(&mut self, job: &mut Job) -> Result<(), Stop> {
        job.guarded_by.clear();
        let Some(part) = self.part.as_deref() else {
            return Ok(());
        };
        let own = job.options.priority(job.txn);
        // Of a large write set, any row stands for all.
        let some = part.written.writes().iter().next().map(|(key, _)| key);
        let (guarded_by, mut refused) = (&mut job.guarded_by, None);
        let mut meet = |Guard { by, settled }: Guard, key: Option<&Key>| match key.or(some) {
            Some(key) if settled && by < own => guarded_by.push((by.txn, key.clone())),
            Some(key) => refused = Some((by.txn, Some(key.clone()))),
            None => refused = Some((by.txn, None)),
        };
        let (control, bulks) = (&*self.control, self.bulks);
        each_guard_over(control, bulks, job.txn, &part.written, &mut meet);
        if !self.order.is_empty() && !part.written.is_large(bulks) {
            for (key, write) in part.written.writes().formulas() {
                self.each_clash(key, write, &mut |guard| meet(guard, Some(key)));
            }
        }
        match refused {
            Some((holder, Some(key))) => {
                let reason = AbortReason::Die { key, holder };
                Err(Stop::Fail(OpError::Aborted(reason)))
            }
            Some((_, None)) => {
                let reason = AbortReason::Overtaken(None);
                Err(Stop::Fail(OpError::Aborted(reason)))
            }
            None if job.guarded_by.is_empty() => Ok(()),
            None => Err(Stop::Wait(Wait::Promise)),
        }
    }
}

impl Coord {
    /// Notes that an operation was answered. `at`: as of when it has read without locks, or zero;
    /// `wait`: for which position the commit waits.
    ///
    /// # Errors
    /// [`OpError::Raise`] if a transaction without locks has read as of another moment before. The
    /// statement reads again at the new stamp, or its transaction fails.
    pub(crate) fn note_read(&mut self, at: Ts, wait: Position) -> Result<(), OpError> {
        self.wait = self.wait.max(wait);
        if at == Ts::ZERO {
            return Ok(());
        }
        if !is_planted(Planted::FormulaMomentsMixed) {
            self.read_at = self.read_at.max(at);
        }
        if self.locks || at == self.stamp || is_planted(Planted::FormulaMomentsMixed) {
            self.stamped_reads += 1;
            return Ok(());
        }
        let first = at > self.stamp && self.stamped_reads == 0;
        self.stamp = self.stamp.max(at);
        self.stamped_reads = u32::from(first);
        match first {
            true => Ok(()),
            false => Err(OpError::Raise(self.stamp)),
        }
    }
}

impl<C: Control> Hands<'_, C> {
    /// The timestamp at which rows are read without locks: nothing that commits later lies at or
    /// below it.
    pub(crate) fn stamped_at(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        mut stamp: Stamp,
        wanted: Wanted<'_>,
        columns: Columns,
        scan: Option<&ScanOp>,
    ) -> Result<Ts, Stop> {
        if let Some(at) = job.arrival.settled {
            return Ok(at);
        }
        if is_planted(Planted::FormulaReadsNewest) {
            return Ok(cx.clock.reached());
        }
        if !stamp.newest && stamp.snapshot.since < stamp.snapshot.at {
            // What was read below is read again.
            self.control.forget_below(job.txn, stamp.snapshot.at);
        }
        stamp.newest |= job.arrival.moves;
        stamp.newest |= cx.admit_snapshot(wanted, stamp.snapshot.at).is_err();
        let at = stamp.snapshot.at;
        let bound = match stamp.newest {
            true => *job.arrival.bound.get_or_insert(cx.clock.reached()),
            false => arrive(cx, job, stamp.snapshot),
        };
        let last = if stamp.newest { bound } else { bound.max(at) };
        let next = self.await_promises(cx, job, wanted, columns, bound, last)?;
        let at = if stamp.newest {
            // Later promises and commits lie above the clock. A promise that was there may have
            // been kept above the bound, and be only half installed.
            let at = cx.clock.reached().min(Ts(next.0 - 1));
            if self.bulks.awaits(at, wanted) {
                return Err(Stop::Wait(Wait::Promise));
            }
            at
        } else {
            let settled = match job.arrival.overtaken {
                true => cx.clock.reached(),
                false => self.kept.raise(bound),
            };
            if settled > last && self.bulks.awaits(settled, wanted) {
                return Err(Stop::Wait(Wait::Promise));
            }
            let misses = settled > at
                && match (wanted, scan) {
                    (Wanted::Row(key), _) => cx.store.newer(key, at, settled).is_some(),
                    (_, Some(scan)) => scan_misses(cx.store, scan, at, settled),
                    (_, None) => true,
                };
            if misses || self.order.awaits(settled, wanted, columns).is_some() {
                let contact = job.arrival.contact;
                job.arrival = Arrival {
                    contact,
                    moves: true,
                    ..Arrival::default()
                };
                return self.stamped_at(cx, job, stamp, wanted, columns, scan);
            }
            at
        };
        job.arrival.settled = Some(at);
        job.read_at = job.read_at.max(at);
        Ok(at)
    }

    /// Waits for promises at or below `last` to change these columns of the wanted rows. Returns
    /// the smallest timestamp of the others.
    fn await_promises(
        &mut self,
        cx: &Cx<'_>,
        job: &mut Job,
        wanted: Wanted<'_>,
        columns: Columns,
        bound: Ts,
        last: Ts,
    ) -> Result<Ts, Stop> {
        let alone = self.order.is_empty() && self.bulks.is_idle();
        if alone || is_planted(Planted::FormulaReadSkipsPromise) {
            return Ok(Ts::MAX);
        }
        let (mut next, mut waits, mut refused) = (Ts::MAX, false, None);
        let held_up = self.order.awaits(last, wanted, columns).cloned();
        let (promises, store) = (self.promises, &*cx.store);
        let mut meet = |at: Ts, txn: TxnId, key: &Key, concerns: bool| {
            if at > last {
                next = if concerns { next.min(at) } else { next };
                return;
            }
            let promise = &promises[&txn];
            job.arrival.overtaken |= at <= bound;
            waits |= concerns;
            let priority = promise.priority;
            let may = job.alone || promise.settled || job.options.priority(job.txn) > priority;
            if concerns && !may {
                refused = Some((key.clone(), txn));
            }
        };
        self.order.each_open(wanted, &mut |at, txn, key| {
            let write = promises[&txn].write(key);
            let present = store.get(key, Ts::MAX).is_some();
            let touched = write.is_none_or(|write| touches(write, columns, present));
            // A formula that has committed above waits for this one.
            meet(at, txn, key, touched || held_up.as_ref() == Some(key));
        });
        for txn in self.order.large() {
            let promise = &promises[txn];
            if wanted.meets(&promise.redo) {
                meet(promise.prepare_ts, *txn, &wanted.example(), true);
            }
        }
        if let Some((key, holder)) = refused {
            let reason = AbortReason::Die { key, holder };
            return Err(Stop::Fail(OpError::Aborted(reason)));
        }
        if waits || held_up.is_some() || self.bulks.awaits(last, wanted) {
            return Err(Stop::Wait(Wait::Promise));
        }
        Ok(next)
    }

    /// Waits until all that has committed on the row, under whose lock the job reads, is installed.
    pub(crate) fn await_folds(
        &mut self,
        cx: &Cx<'_>,
        job: &mut Job,
        wanted: Wanted<'_>,
    ) -> Result<(), Stop> {
        if !self.order.has_unfolded() {
            return Ok(());
        }
        let columns = Columns::ALL;
        if self.order.awaits(Ts::MAX, wanted, columns).is_none() {
            return Ok(());
        }
        let next = self.await_promises(cx, job, wanted, columns, Ts::ZERO, Ts::MAX);
        next.map(|_| ())
    }
}
