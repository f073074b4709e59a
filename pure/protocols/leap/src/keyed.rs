//! Operations on single rows, where the transaction runs: lock, own, then work.

use crate::job::{Job, Origin, Stop};
use crate::request::Standing;
use crate::share::Writer;
use crate::view::look;
use crate::{Context, Leap, printed};
use alloc::vec::Vec;
use base::{Key, RowBatch, Ts};
use store::{Formula, Write};
use txn::bulk::Wanted;
use txn::increment::{claim_to_modify, claim_to_read};
use txn::lock::{Claim, Item};
use txn::{
    AbortReason, Event, LockMode, Modified, NewRows, Op, OpResult, Program, Read, RowProgram,
    Snapshot,
};

/// Rows that a bulk insertion asks for beside the one that it waits for. Delays are so much rarer
/// then that the messages cost more; each row that is asked for takes some hundred bytes here and
/// at its home until it has come.
const AHEAD_MAX: usize = 63;

/// Commits up to this are waited for by a reader of the snapshot.
pub(crate) fn waits_until(snapshot: Snapshot) -> Ts {
    if snapshot.is_guarded() {
        Ts::MAX
    } else {
        snapshot.at
    }
}

/// Refuses a row of which a guarded snapshot may miss a version.
pub(crate) fn look_out(cx: &Context<'_>, key: &Key, snapshot: Snapshot) -> Result<(), Stop> {
    if snapshot.is_guarded() && cx.store.newest_ts(key) > snapshot.at {
        return Err(Stop::aborted(AbortReason::SnapshotMisses));
    }
    Ok(())
}

impl Leap {
    pub(crate) fn run_keyed(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        op: &mut Op,
    ) -> Result<OpResult, Stop> {
        match op {
            Op::Get { key, read, program } => {
                cx.check_schema(key.index, job.planned)?;
                // A row does not move for a reader on another shard, which it cannot come to.
                let visits = matches!(job.origin, Origin::Read { .. });
                if visits && self.standing(key) == Standing::Elsewhere {
                    return Err(Stop::Elsewhere);
                }
                match *read {
                    Read::Snapshot(snapshot) => self.get_snapshot(cx, job, key, snapshot, program),
                    Read::Lock(mode) => {
                        let live = program.live(cx.decode).map_err(base::SqlError::from)?;
                        self.take(cx, job, key, claim_to_read(mode, &*live))?;
                        self.get(cx, job, key, Ts::MAX, program)
                    }
                    Read::LockRows { snapshot, mode } => {
                        Self::admit_snapshot(cx, snapshot.at)?;
                        self.take(cx, job, key, mode)?;
                        self.get_twice(cx, job, key, snapshot, program)
                    }
                }
            }
            Op::Modify { key, program } => {
                cx.check_schema(key.index, job.planned)?;
                let live = program.live(cx.decode).map_err(base::SqlError::from)?;
                self.take(cx, job, key, claim_to_modify(&*live))?;
                self.modify(cx, job, key, &*live)
            }
            Op::Insert { key, row } => {
                cx.check_schema(key.index, job.planned)?;
                if printed!(self, LeapAbsentNotOwned) && self.standing(key) == Standing::Elsewhere {
                    self.lock(cx, job, &Item::of(key), LockMode::Exclusive)?;
                } else {
                    self.take(cx, job, key, LockMode::Exclusive)?;
                }
                self.insert(cx, job, key, || core::mem::take(row).into_vec())
            }
            Op::InsertMany(rows) => {
                cx.check_schema(rows.index(), job.planned)?;
                self.insert_many(cx, job, rows)
            }
            Op::Formula { key, formula } => {
                cx.check_schema(key.index, job.planned)?;
                let claim = self.formula_claim(cx, job.txn, key, formula);
                self.take(cx, job, key, claim)?;
                self.formula(cx, job, key, formula)
            }
            Op::Write { key, write } => {
                cx.check_schema(key.index, job.planned)?;
                self.take(cx, job, key, LockMode::Exclusive)?;
                self.write(cx, job, key.clone(), write.clone())?;
                Ok(OpResult::Done)
            }
            Op::Scan(_) | Op::Clock(_) => unreachable!("they go another way"),
        }
    }

    /// Writes the row that `row` gives if there is none; its lock is held.
    fn insert(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        row: impl FnOnce() -> Vec<u8>,
    ) -> Result<OpResult, Stop> {
        let (present, version) = {
            let mut folded = Vec::new();
            let writes = self.txns.get(&job.txn).map(|txn| &txn.writes);
            let seen = look(writes, cx.store, &self.installed, key, Ts::MAX, &mut folded);
            job.wait = job.wait.max(seen.wait);
            (seen.row.is_some(), seen.version)
        };
        cx.note_read(job.txn, key, version);
        if present {
            return Ok(OpResult::Exists);
        }
        self.write(cx, job, key.clone(), Write::Insert(row()))?;
        Ok(OpResult::Done)
    }

    /// The job waits for its present row: the next ones that are away are asked for, too, so that
    /// a delay between nodes is paid once for many. Rows that somebody is in the way of are left
    /// for later. Nobody waits for the answers: the job comes to the rows by itself, and what was
    /// refused is asked for again then.
    fn ask_ahead(&mut self, cx: &mut Context<'_>, job: &mut Job, rows: &NewRows) {
        if job.inserting.at < job.inserting.asked || cx.journal.is_memory_full() {
            return;
        }
        let mut rest = rows.from(job.inserting.at);
        for row in rest.by_ref().take(AHEAD_MAX + 1) {
            let key = Key::new(rows.index(), row.slot, row.key.to_vec());
            let is_away = self.standing(&key) == Standing::Elsewhere
                && !self.is_down(self.home(key.slot))
                && self.hindrance(&key).is_none();
            let (item, mode) = (Item::of(&key), LockMode::Exclusive);
            if !is_away
                || self.wanted.contains_key(&key)
                || !self.locks.is_free(job.txn, &item, mode)
            {
                continue;
            }
            let locked = self.lock(cx, job, &item, mode);
            assert!(locked.is_ok(), "a free lock is granted");
            self.ask(cx, &key, Vec::new(), job.priority(), mode);
        }
        job.inserting.asked = rest.at();
    }

    /// Inserts one row after the other; goes on where it stopped.
    fn insert_many(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        rows: &NewRows,
    ) -> Result<OpResult, Stop> {
        let mut budget = self.settings.scan_rows_max;
        loop {
            let mut rest = rows.from(job.inserting.at);
            let Some(row) = rest.next() else {
                let present = core::mem::take(&mut job.inserting).present;
                return Ok(match present.is_empty() {
                    true => OpResult::Done,
                    false => OpResult::SomeExist(present),
                });
            };
            if budget == 0 {
                return Err(Stop::Budget);
            }
            budget -= 1;
            let key = Key::new(rows.index(), row.slot, row.key.to_vec());
            if let Err(stop) = self.take(cx, job, &key, LockMode::Exclusive) {
                if matches!(stop, Stop::Row) {
                    self.ask_ahead(cx, job, rows);
                }
                return Err(stop);
            }
            if self.insert(cx, job, &key, || row.row.to_vec())? == OpResult::Exists {
                let place = job.inserting.count;
                job.inserting.present.push(place);
            }
            job.inserting.count += 1;
            job.inserting.at = rest.at();
        }
    }

    /// Locks a row here and makes sure that it is here.
    pub(crate) fn take(
        &mut self,
        cx: &mut Context<'_>,
        job: &Job,
        key: &Key,
        claim: impl Into<Claim>,
    ) -> Result<(), Stop> {
        let claim = self.placed_claim(key, claim.into());
        let mode = claim.mode();
        if matches!(job.origin, Origin::Local { .. }) {
            self.errands.note_use(key);
        }
        if let Some(reason) = cx.journal.refusal_of_locks(self.shard, 1) {
            return Err(Stop::aborted(reason));
        }
        self.lock(cx, job, &Item::of(key), claim)?;
        if self.stays_away(job, key) {
            return Err(Stop::Elsewhere);
        }
        if mode == LockMode::Shared && self.uses_copy(job.txn, key) {
            return Ok(());
        }
        self.own(cx, key, job.id, job.priority(), mode)?;
        if mode != LockMode::Shared {
            self.sharing.note_write(key);
            if self.sharing.is_lent(key) {
                let writer = Writer::Job(job.id);
                match self.recalled(cx, key, job.priority(), writer) {
                    Ok(true) => {}
                    Ok(false) => return Err(Stop::Recall),
                    Err(reason) => return Err(Stop::aborted(reason)),
                }
            }
        }
        Ok(())
    }

    /// Merges the snapshot into the clock and refuses what is not kept any more.
    pub(crate) fn admit_snapshot(cx: &mut Context<'_>, ts: Ts) -> Result<(), Stop> {
        if ts < cx.horizon {
            return Err(Stop::aborted(AbortReason::SnapshotTooOld));
        }
        // Later commits on this shard, and on those that get rows from it, lie above the snapshot.
        cx.clock.merge(ts);
        Ok(())
    }

    fn get_snapshot(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let ts = snapshot.at;
        match self.standing(key) {
            Standing::Mine => {}
            Standing::Elsewhere => return Err(Stop::Elsewhere),
            Standing::Doubtful => return Err(Stop::Gate),
        }
        Self::admit_snapshot(cx, ts)?;
        if self.lacks_history(key, ts) {
            return Err(Stop::aborted(AbortReason::SnapshotTooOld));
        }
        if !job.commits_seen {
            let (wanted, reads) = (Wanted::Row(key), &mut |other: &Key| other == key);
            let until = waits_until(snapshot);
            if self.commits_below(until, wanted) || self.awaits_outcomes(cx, job, until, reads)? {
                return Err(Stop::Commit);
            }
            job.commits_seen = true;
        }
        look_out(cx, key, snapshot)?;
        self.get(cx, job, key, ts, program)
    }

    /// Whether a transaction may commit, or install what it has committed, on a row that is
    /// `wanted` as of `ts`: it awaits confirmations, or is installed in slices.
    pub(crate) fn commits_below(&self, ts: Ts, wanted: Wanted<'_>) -> bool {
        let mut committing = self.committing.iter();
        self.bulks.awaits(ts, wanted)
            || committing.any(|(txn, commit_ts)| {
                let state = self.txns.get(txn);
                *commit_ts <= ts && state.is_some_and(|state| state.writes_any(wanted))
            })
    }

    fn get(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        at: Ts,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        let program = program.live(cx.decode).map_err(base::SqlError::from)?;
        let mut batch = RowBatch::new(program.width());
        let mut folded = Vec::new();
        let writes = self.txns.get(&job.txn).map(|txn| &txn.writes);
        let seen = look(writes, cx.store, &self.installed, key, at, &mut folded);
        job.wait = job.wait.max(seen.wait);
        if let Some(row) = seen.row {
            program.point(row, &mut batch)?;
        }
        cx.counters.rows_read += 1;
        let version = seen.version;
        cx.note_read(job.txn, key, version);
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }

    /// A row that passes in the snapshot, in its newest version.
    fn get_twice(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        snapshot: Snapshot,
        program: &Program,
    ) -> Result<OpResult, Stop> {
        if self.lacks_history(key, snapshot.at) {
            return Err(Stop::aborted(AbortReason::SnapshotTooOld));
        }
        look_out(cx, key, snapshot)?;
        let before = self.get(cx, job, key, snapshot.at, program)?;
        let passes = matches!(&before, OpResult::Rows { batch, .. } if batch.rows > 0);
        if passes {
            self.get(cx, job, key, Ts::MAX, program)
        } else {
            Ok(before)
        }
    }

    fn modify(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        program: &dyn RowProgram,
    ) -> Result<OpResult, Stop> {
        let mut returning = RowBatch::new(program.width());
        let mut folded = Vec::new();
        let writes = self.txns.get(&job.txn).map(|txn| &txn.writes);
        let seen = look(writes, cx.store, &self.installed, key, Ts::MAX, &mut folded);
        job.wait = job.wait.max(seen.wait);
        cx.counters.rows_read += 1;
        let version = seen.version;
        let modified = match seen.row {
            Some(row) => Some(program.modify(row, &mut returning)?),
            None => None,
        };
        cx.note_read(job.txn, key, version);
        let found = modified.is_some();
        let write = match modified {
            Some(Modified::Put(row)) => Some(match program.formula() {
                Some(formula) => Write::Formula(formula.clone()),
                None => Write::Put(row),
            }),
            Some(Modified::Delete) => Some(Write::Delete),
            Some(Modified::Skipped) | None => None,
        };
        let written = write.is_some();
        if let Some(write) = write {
            self.write(cx, job, key.clone(), write)?;
        }
        Ok(OpResult::Modified {
            found,
            written,
            returning,
        })
    }

    fn formula(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        formula: &Formula,
    ) -> Result<OpResult, Stop> {
        let (mut folded, mut result) = (Vec::new(), Vec::new());
        let writes = self.txns.get(&job.txn).map(|txn| &txn.writes);
        let seen = look(writes, cx.store, &self.installed, key, Ts::MAX, &mut folded);
        job.wait = job.wait.max(seen.wait);
        let found = seen.row.is_some();
        if let Some(row) = seen.row {
            // The result is not kept, but it must lie inside the type before the statement is
            // answered.
            formula.fold(row, &mut result)?;
            self.write(cx, job, key.clone(), Write::Formula(formula.clone()))?;
        }
        Ok(OpResult::Modified {
            found,
            written: found,
            returning: RowBatch::new(0),
        })
    }

    pub(crate) fn write(
        &mut self,
        cx: &mut Context<'_>,
        job: &Job,
        key: Key,
        write: Write,
    ) -> Result<(), Stop> {
        if let Some(reason) = cx.journal.refusal(self.shard, &write) {
            return Err(Stop::aborted(reason));
        }
        if let Some(history) = &mut cx.history {
            history.push(Event::Write {
                txn: job.txn,
                key: key.clone(),
            });
        }
        let txn = self
            .txns
            .get_mut(&job.txn)
            .expect("writes happen at the coordinator");
        txn.note_plan(key.index, job.planned);
        txn.add(cx.store, key, write, self.settings.txn_bytes_max)?;
        Ok(())
    }
}
