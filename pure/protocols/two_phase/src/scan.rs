//! Scans: own writes merged in key order, row locks, batches, and turns for others.

use crate::Context;
use crate::exec::Hands;
use crate::job::{Job, Stop};
use crate::part::Part;
use crate::snapshot::{raise, scan_misses};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, KeyRange, Planted, Position, RowBatch, Slot, SqlError, Ts, is_planted};
use core::ops::ControlFlow;
use local::scan::slots_of;
use local::{Asker, Overlay, see, see_own};
use store::{Store, Window, Write};
use txn::Installed;
use txn::bulk::Wanted;
use txn::lock::{Claim, Item};
use txn::scan::{Full, key_bounds};
use txn::{Counters, Event, LockMode, LockTable, OpResult, Read, ScanOp, ScanRun};

/// Where a scan stands between its turns.
#[derive(Debug)]
pub(crate) struct ScanState {
    run: ScanRun,
    /// Locks to take on parts of the range as they are visited, before one on all the rest.
    /// `None`: the whole range is locked, or nothing needs to be.
    pieces_left: Option<u32>,
}

/// Pieces in which a scan locks its range before it locks what is left.
const PIECES_MAX: u32 = 8;

/// Whether the scan locks its range as far as it goes: it stops after a few rows, and what lies
/// behind the last of them does not matter to it. A writer that adds rows there is not in its way.
fn locks_piecewise(op: &ScanOp) -> bool {
    matches!(op.read, Read::Lock(_)) && op.slot().is_some() && op.row_limit <= u64::from(PIECES_MAX)
}

/// Whether the scan locks each row that it gives, besides its range.
fn locks_rows(read: Read) -> bool {
    !matches!(read, Read::Snapshot(_) | Read::Lock(LockMode::Shared))
}

/// Why a slot is not visited any further.
enum Halt {
    Stop(Stop),
    Full(Full),
}

impl Hands<'_> {
    pub(crate) fn scan(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &ScanOp,
    ) -> Result<OpResult, Stop> {
        if job.scan.is_none() {
            self.begin_scan(cx, job, asker, op)?;
        }
        if locks_rows(op.read) {
            cx.check_memory(u64::from(self.settings.scan_rows_max))?;
        }
        let mut state = job.scan.take().expect("begun above");
        let mut budget = self.settings.scan_rows_max;
        let at = op.read.at();
        while let Some(slot) = state.run.slot() {
            let mut visitor = Visitor {
                state: &mut state,
                op,
                slot,
                asker,
                locks: self.locks,
                part: self.part.as_deref(),
                store: cx.store,
                installed: self.installed,
                counters: cx.counters,
                history: &mut cx.history,
                txn: job.txn,
                budget: &mut budget,
                wait: &mut job.wait,
                halt: None,
                skipped: false,
                folded: Vec::new(),
                scratch: RowBatch::default(),
            };
            visitor.visit_slot(at);
            match visitor.halt.take() {
                None => state.run.leave_slot(),
                Some(Halt::Full(Full::Slot)) => state.run.leave_slot(),
                Some(Halt::Full(Full::Limit)) => break,
                Some(Halt::Full(Full::Batch)) => return Ok(state.run.take_batch()?),
                Some(Halt::Stop(stop)) => {
                    state.run.check_memory(self.settings.txn_bytes_max)?;
                    job.scan = Some(state);
                    return Err(stop);
                }
            }
        }
        Ok(state.run.finish()?)
    }

    fn begin_scan(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        asker: &Asker,
        op: &ScanOp,
    ) -> Result<(), Stop> {
        let slot = op.slot();
        let program = op.program.live(cx.decode).map_err(SqlError::from)?;
        let piecewise =
            program.task().is_none() && locks_piecewise(op) && !is_planted(Planted::NoRangeLock);
        match op.read {
            Read::Snapshot(snapshot) | Read::LockRows { snapshot, .. } => {
                let wanted = Wanted::Rows(op.index, slot, &op.range);
                let bound = self.settle(cx, job, snapshot, wanted)?;
                if scan_misses(cx.store, op, snapshot.at, bound) {
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
            }
            Read::Lock(_) => {}
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
        }));
        Ok(())
    }
}

fn note_range(
    history: &mut Option<&mut Vec<Event>>,
    txn: base::TxnId,
    index: base::IndexId,
    range: &KeyRange,
) {
    if let Some(history) = history {
        let range = range.clone();
        history.push(Event::ReadRange { txn, index, range });
    }
}

struct Visitor<'v, 'h> {
    state: &'v mut ScanState,
    op: &'v ScanOp,
    slot: Slot,
    asker: &'v Asker,
    locks: &'v mut LockTable,
    part: Option<&'v Part>,
    store: &'v Store,
    installed: &'v Installed,
    counters: &'v mut Counters,
    history: &'v mut Option<&'h mut Vec<Event>>,
    txn: base::TxnId,
    budget: &'v mut u32,
    wait: &'v mut Position,
    halt: Option<Halt>,
    /// Keys without a row were passed since the last row.
    skipped: bool,
    folded: Vec<u8>,
    scratch: RowBatch,
}

impl Visitor<'_, '_> {
    /// Visits the rest of the slot; `halt` says why if it is not finished.
    fn visit_slot(&mut self, at: Ts) {
        let (store, part, op, slot) = (self.store, self.part, self.op, self.slot);
        let range = self.state.run.rest(op);
        let window = Window::of(&range, op.reverse);
        let (low, high) = key_bounds(op, slot, &range);
        let writes = part.map(|part| part.written.writes());
        let writes = writes.filter(|writes| !writes.is_empty());
        let own = writes.map(|writes| writes.range(low, high, op.reverse));
        let mut own = Overlay::new(own.into_iter().flatten(), op.reverse);
        let flow = store.scan_keys(op.index, slot, window, at, &mut |key, row, ts| {
            while let Some((own_key, write, replaces)) = own.up_to(key) {
                self.own(own_key, write)?;
                if replaces {
                    return ControlFlow::Continue(());
                }
            }
            match row {
                Some(row) => self.row(key, row, ts, false),
                None => self.skip(key),
            }
        });
        if flow.is_break() {
            return;
        }
        while let Some((key, write)) = own.rest() {
            if self.own(key, write).is_break() {
                return;
            }
        }
        if let Err(stop) = self.lock_piece(None) {
            let _ = self.stop(Halt::Stop(stop));
        }
    }

    fn own(&mut self, key: &Key, write: &Write) -> ControlFlow<()> {
        let mut folded = core::mem::take(&mut self.folded);
        let at = self.op.read.at();
        let seen = see_own(write, self.store, self.installed, key, at, &mut folded);
        *self.wait = (*self.wait).max(seen.wait);
        let flow = match seen.row {
            Some(row) => self.row(&key.bytes, row, Ts::ZERO, true),
            None => self.skip(&key.bytes),
        };
        self.folded = folded;
        flow
    }

    fn stop(&mut self, halt: Halt) -> ControlFlow<()> {
        self.halt = Some(halt);
        ControlFlow::Break(())
    }

    /// A key without a row: it takes its time, too.
    fn skip(&mut self, key: &[u8]) -> ControlFlow<()> {
        if *self.budget == 0 {
            return self.pause(key);
        }
        *self.budget -= 1;
        self.skipped = true;
        self.counters.units += 1;
        ControlFlow::Continue(())
    }

    /// Gives others their turn, and goes on with this key.
    fn pause(&mut self, key: &[u8]) -> ControlFlow<()> {
        if !core::mem::take(&mut self.skipped) {
            return self.stop(Halt::Stop(Stop::Budget));
        }
        // Nothing may come where it does not look again.
        if let Err(stop) = self.lock_piece(Some(key)) {
            return self.stop(Halt::Stop(stop));
        }
        self.state.run.pass(key, true);
        self.stop(Halt::Stop(Stop::Budget))
    }

    fn row(&mut self, key: &[u8], row: &[u8], ts: Ts, own: bool) -> ControlFlow<()> {
        if *self.budget == 0 {
            return self.pause(key);
        }
        let units = self.state.run.units;
        *self.budget = self.budget.saturating_sub(units);
        if let Err(stop) = self.lock_piece(Some(key)) {
            // The cursor stays: rows may come before this one while the scan waits.
            return self.stop(Halt::Stop(stop));
        }
        self.counters.rows_read += 1;
        self.counters.units += u64::from(units - 1);
        let kept = match self.op.read {
            Read::Lock(_) if is_planted(Planted::NoRangeLock) => self.emit_locked(key, row, None),
            Read::Snapshot(_) | Read::Lock(LockMode::Shared) => {
                self.state.run.give(key, row).map_err(Stop::from)
            }
            Read::Lock(LockMode::Increment | LockMode::Fold | LockMode::Exclusive) => {
                self.emit_locked(key, row, None)
            }
            Read::LockRows { mode, .. } => self.emit_locked(key, row, Some(mode)),
        };
        if self.history.is_some() && !own {
            let key = Key::new(self.op.index, self.slot, key.to_vec());
            txn::step::note_read(self.history, self.txn, &key, ts);
        }
        let again = matches!(kept, Err(Stop::Lock));
        self.state.run.pass(key, again);
        self.skipped = false;
        match kept {
            Err(stop) => self.stop(Halt::Stop(stop)),
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => match self.state.run.count(self.op, row.len()) {
                Some(full) => self.stop(Halt::Full(full)),
                None => ControlFlow::Continue(()),
            },
        }
    }

    /// Locks what lies between the last row and this one (`None`: the end of the range), if the
    /// scan locks its range in pieces.
    fn lock_piece(&mut self, key: Option<&[u8]>) -> Result<(), Stop> {
        let Some(left) = self.state.pieces_left else {
            return Ok(());
        };
        let mut piece = self.state.run.rest(self.op);
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
        let claim = Claim::reads(self.state.run.program.reads());
        self.asker.ask(self.locks, item, claim)?;
        note_range(self.history, self.txn, self.op.index, &piece);
        self.state.pieces_left = last.map(|_| left - 1);
        Ok(())
    }

    /// Locks the row if it passes. `reread`: it was found in a snapshot, to be locked like this
    /// and looked at again in its newest version.
    fn emit_locked(
        &mut self,
        key: &[u8],
        row: &[u8],
        reread: Option<LockMode>,
    ) -> Result<bool, Stop> {
        let mode = reread.unwrap_or(LockMode::Exclusive);
        let item = Item::Point {
            index: self.op.index,
            slot: self.slot,
            key,
        };
        if self.state.run.task.is_some() {
            self.asker.ask(self.locks, item, mode)?;
            return Ok(self.state.run.give(key, row)?);
        }
        self.scratch.datums.clear();
        self.scratch.rows = 0;
        self.scratch.width = self.state.run.batch.width;
        if !self.state.run.program.point(row, &mut self.scratch)? {
            return Ok(false);
        }
        self.asker.ask(self.locks, item, mode)?;
        if reread.is_some() {
            let key = Key::new(self.op.index, self.slot, key.to_vec());
            let mut folded = Vec::new();
            let (own, store) = (self.part.map(|part| part.written.writes()), self.store);
            let seen = see(own, store, self.installed, &key, Ts::MAX, &mut folded);
            *self.wait = (*self.wait).max(seen.wait);
            return match seen.row {
                Some(row) => Ok(self
                    .state
                    .run
                    .program
                    .point(row, &mut self.state.run.batch)?),
                None => Ok(false),
            };
        }
        let batch = &mut self.state.run.batch;
        batch.rows += self.scratch.rows;
        batch.datums.append(&mut self.scratch.datums);
        Ok(true)
    }
}
