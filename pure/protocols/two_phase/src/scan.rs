//! Scans: own writes merged in key order, row locks, batches, and turns for other jobs.

use crate::control::RangeRead;
use crate::exec::Hands;
use crate::job::{Job, Stop, Wait};
use crate::message::Stamp;
use crate::snapshot::{raise, scan_misses};
use crate::{Control, Cx};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, KeyRange, Planted, Position, Slot, SqlError, Ts, is_planted};
use local::scan::slots_of;
use local::visit::{Turn, note_range};
use local::{Asker, Halt, Visit, Visitor, WriteSet, see, see_own};
use store::{Store, Write};
use txn::Installed;
use txn::bulk::Wanted;
use txn::lock::{Claim, Item};
use txn::scan::{Full, key_bounds};
use txn::{Columns, LockMode, LockTable, OpResult, Read, ScanOp, ScanRun, Snapshot};

/// State of a scan between its turns.
#[derive(Debug)]
pub(crate) struct ScanState {
    run: ScanRun,
    /// Number of locks that the scan may still take on parts of its range, before one on all the
    /// rest. `None`: the whole range is locked, or needs no lock.
    pieces_left: Option<u32>,
    /// What a scan without locks that may stop early has read.
    reached: Option<Reached>,
}

/// How far a scan without locks has come, in the one slot that it visits.
#[derive(Debug)]
struct Reached {
    columns: Columns,
    at: Ts,
    /// The last key; `None`: the end of the range.
    last: Option<Vec<u8>>,
}

/// Number of parts in which a scan locks its range before it locks the rest.
const PIECES_MAX: u32 = 8;

/// Whether the scan locks its range as far as it goes. It stops after a few rows, so writers may
/// add rows behind the last of them.
fn locks_piecewise(op: &ScanOp) -> bool {
    matches!(op.read, Read::Lock(_)) && op.slot().is_some() && op.row_limit <= u64::from(PIECES_MAX)
}

/// Whether the scan locks each row that it gives, besides its range.
fn locks_rows(read: Read) -> bool {
    !matches!(read, Read::Snapshot(_) | Read::Lock(LockMode::Shared))
}

impl<C: Control> Hands<'_, C> {
    pub(crate) fn scan(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &mut ScanOp,
    ) -> Result<OpResult, Stop> {
        if job.scan.is_none() {
            self.begin_scan(cx, job, asker, op)?;
        }
        let op = &*op;
        if locks_rows(op.read) {
            cx.check_memory(u64::from(self.settings.scan_rows_max))?;
        }
        let mut state = job.scan.take().expect("begun above");
        let mut budget = self.settings.scan_rows_max;
        let writes = self.part.as_deref().map(|part| part.written.writes());
        let writes = writes.filter(|writes| !writes.is_empty());
        while let Some(slot) = state.run.slot() {
            let range = state.run.rest(op);
            let own = writes.map(|writes| {
                let (low, high) = key_bounds(op, slot, &range);
                writes.range(low, high, op.reverse)
            });
            let rows = Rows {
                pieces_left: &mut state.pieces_left,
                reached: state.reached.as_mut(),
                op,
                slot,
                asker,
                locks: self.locks,
                writes,
                store: cx.store,
                installed: self.installed,
                wait: &mut job.wait,
            };
            let mut visit = Visit {
                visitor: rows,
                run: &mut state.run,
                op,
                slot,
                txn: job.txn,
                store: cx.store,
                counters: cx.counters,
                history: &mut cx.history,
                budget: &mut budget,
                turn: Turn::default(),
            };
            match visit.go(&range, own.into_iter().flatten()) {
                None => state.run.leave_slot(),
                Some(Halt::Full(Full::Slot)) => state.run.leave_slot(),
                Some(Halt::Full(Full::Limit)) => break,
                Some(Halt::Full(Full::Batch)) => {
                    self.note_reached(job, op, state.reached);
                    return Ok(state.run.take_batch()?);
                }
                Some(Halt::Stop(stop)) => {
                    state.run.check_memory(self.settings.txn_bytes_max)?;
                    job.scan = Some(state);
                    return Err(stop);
                }
            }
        }
        self.note_reached(job, op, state.reached);
        Ok(state.run.finish()?)
    }

    /// Notes the part of its range that a scan has read, which stops early or has come to the end.
    fn note_reached(&mut self, job: &Job, op: &ScanOp, reached: Option<Reached>) {
        let Some(Reached { columns, at, last }) = reached else {
            return;
        };
        let mut range = op.range.clone();
        match last {
            Some(last) if op.reverse => range.low = last,
            Some(last) => range.high = KeyRange::point(&last).high,
            None => {}
        }
        let read = RangeRead {
            index: op.index,
            slot: op.slot(),
            range,
        };
        self.control.note_range(job.txn, read, columns, at);
    }

    /// Makes a scan read without locks. Returns what is to be noted when the scan ends, unless all
    /// of its range is noted here.
    fn stamp_scan(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        stamp: Stamp,
        op: &mut ScanOp,
        columns: Columns,
    ) -> Result<Option<Reached>, Stop> {
        let wanted = Wanted::Rows(op.index, op.slot(), &op.range);
        let at = self.stamped_at(cx, job, stamp, wanted, columns, Some(op))?;
        let snapshot = Snapshot::exactly(at);
        op.read = match op.read {
            Read::Lock(LockMode::Shared) => Read::Snapshot(snapshot),
            Read::Lock(mode) => Read::LockRows { snapshot, mode },
            other @ (Read::Snapshot(_) | Read::LockRows { .. } | Read::TryLock { .. }) => other,
        };
        if op.slot().is_some() && op.row_limit != u64::MAX && op.after.is_none() {
            return Ok(Some(Reached {
                columns,
                at,
                last: None,
            }));
        }
        let read = RangeRead {
            index: op.index,
            slot: op.slot(),
            range: op.range.clone(),
        };
        self.control.note_range(job.txn, read, columns, at);
        Ok(None)
    }

    fn begin_scan(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &mut ScanOp,
    ) -> Result<(), Stop> {
        let slot = op.slot();
        let program = op.program.live(cx.decode).map_err(SqlError::from)?;
        let mut reached = None;
        let stamped = job.stamp.filter(|_| matches!(op.read, Read::Lock(_)));
        if let Some(stamp) = stamped {
            // A program that may end the scan itself has looked at no row behind its last one.
            let columns = program.reads();
            reached = self.stamp_scan(cx, job, stamp, op, columns)?;
        }
        let piecewise = !C::JUDGES
            && program.task().is_none()
            && locks_piecewise(op)
            && !is_planted(Planted::NoRangeLock);
        match op.read {
            Read::Snapshot(_) | Read::LockRows { .. } if stamped.is_some() => {}
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => {
                let wanted = Wanted::Rows(op.index, slot, &op.range);
                let bound = self.settle(cx, job, snapshot, wanted)?;
                let missed = |at: Ts, bound: Ts| scan_misses(cx.store, op, at, bound);
                if self.misses(job, snapshot.at, bound, &missed) {
                    return Err(raise(cx, bound));
                }
            }
            Read::Lock(_) if is_planted(Planted::NoRangeLock) => {}
            Read::Lock(_) if !piecewise => {
                let item = Item::Range {
                    index: op.index,
                    slot,
                    range: &op.range,
                };
                asker.ask(self.locks, item, Claim::reads(program.reads()))?;
                self.await_folds(cx, job, Wanted::Rows(op.index, slot, &op.range))?;
            }
            Read::Lock(_) | Read::TryLock { .. } => {}
        }
        // A row may be missing because of a deletion that is not durable.
        job.wait = job.wait.max(self.installed.all());
        if !piecewise {
            note_range(&mut cx.history, job.txn, op.index, &op.range);
        }
        let slots = match slot {
            Some(slot) => alloc::vec![slot],
            None => {
                let own = self.part.as_deref().map(|part| part.written.writes());
                slots_of(cx.store, own, op)
            }
        };
        let mut run = ScanRun::new(program);
        run.visit(op, slots);
        job.scan = Some(Box::new(ScanState {
            run,
            pieces_left: piecewise.then_some(PIECES_MAX),
            reached,
        }));
        Ok(())
    }
}

/// A slot as the scan visits it: locks on parts and rows, newest versions, own writes.
struct Rows<'v> {
    pieces_left: &'v mut Option<u32>,
    reached: Option<&'v mut Reached>,
    op: &'v ScanOp,
    slot: Slot,
    asker: &'v Asker,
    locks: &'v mut LockTable,
    writes: Option<&'v WriteSet>,
    store: &'v Store,
    installed: &'v Installed,
    wait: &'v mut Position,
}

impl Visitor for Rows<'_> {
    type Wait = Wait;
    type Extra = Write;

    /// Locks what lies between the last row and this one (`None`: the end of the range), if the
    /// scan locks its range in pieces.
    fn reach(&mut self, run: &ScanRun, key: Option<&[u8]>) -> Result<Option<KeyRange>, Stop> {
        if let Some(reached) = self.reached.as_deref_mut() {
            match (key, &mut reached.last) {
                (None, last) => *last = None,
                (Some(key), Some(last)) => {
                    last.clear();
                    last.extend_from_slice(key);
                }
                (Some(key), last @ None) => *last = Some(key.to_vec()),
            }
        }
        let Some(left) = *self.pieces_left else {
            return Ok(None);
        };
        let mut piece = run.rest(self.op);
        let last = key.filter(|_| left > 1);
        match last {
            Some(key) if self.op.reverse => piece.low = key.to_vec(),
            Some(key) => piece.high = KeyRange::point(key).high,
            None => {}
        }
        let item = Item::Range {
            index: self.op.index,
            slot: Some(self.slot),
            range: &piece,
        };
        let claim = Claim::reads(run.program.reads());
        self.asker.ask(self.locks, item, claim)?;
        *self.pieces_left = last.map(|_| left - 1);
        Ok(Some(piece))
    }

    fn row_lock(&self, read: Read) -> Option<(LockMode, bool)> {
        match read {
            Read::Lock(_) if is_planted(Planted::NoRangeLock) => Some((LockMode::Exclusive, false)),
            Read::Snapshot(_) | Read::Lock(LockMode::Shared) => None,
            Read::Lock(_) => Some((LockMode::Exclusive, false)),
            Read::LockRows { mode, .. } | Read::TryLock { mode, .. } => Some((mode, true)),
        }
    }

    fn lock(&mut self, key: &[u8], mode: LockMode) -> Result<(), Stop> {
        let item = Item::Point {
            index: self.op.index,
            slot: self.slot,
            key,
        };
        self.asker.ask(self.locks, item, mode)
    }

    fn newest<'x>(
        &'x mut self,
        key: &[u8],
        folded: &'x mut Vec<u8>,
    ) -> Result<Option<&'x [u8]>, Stop> {
        let key = Key::new(self.op.index, self.slot, key.to_vec());
        let seen = see(
            self.writes,
            self.store,
            self.installed,
            &key,
            Ts::MAX,
            folded,
        );
        *self.wait = (*self.wait).max(seen.wait);
        Ok(seen.row)
    }

    fn extra<'x>(
        &mut self,
        _: &ScanRun,
        key: &Key,
        write: &'x Write,
        folded: &'x mut Vec<u8>,
    ) -> Option<&'x [u8]> {
        let at = self.op.read.at();
        let seen = see_own(write, self.store, self.installed, key, at, folded);
        *self.wait = (*self.wait).max(seen.wait);
        seen.row
    }
}
