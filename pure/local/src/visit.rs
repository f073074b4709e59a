//! The visit of one slot by a scan: rows of the store and their replacements in key order, their
//! locks, and turns for other jobs.

use crate::scan::Overlay;
use crate::stop::Stop;
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRange, RowBatch, Slot, Ts, TxnId};
use core::ops::ControlFlow;
use store::{Store, Window};
use txn::scan::Full;
use txn::{Counters, Event, LockMode, Read, ScanOp, ScanRun};

/// Why a slot is not visited any further.
#[derive(Debug)]
pub enum Halt<W> {
    /// The scan waits or fails.
    Stop(Stop<W>),
    /// The scan wants no more rows for now.
    Full(Full),
}

/// How a protocol takes part in a visit.
pub trait Visitor {
    /// What the protocol waits for besides locks.
    type Wait;
    /// A row that replaces one of the store, or lies between rows of the store.
    type Extra;

    /// The scan is about to deal with a key (`None`: it is through with the slot). Returns the part
    /// of its range that was locked for that.
    ///
    /// # Errors
    /// The scan waits, or fails.
    fn reach(
        &mut self,
        run: &ScanRun,
        key: Option<&[u8]>,
    ) -> Result<Option<KeyRange>, Stop<Self::Wait>>;

    /// How rows that pass are locked, and whether their newest version is then read again.
    fn row_lock(&self, read: Read) -> Option<(LockMode, bool)> {
        match read {
            Read::Snapshot(_) | Read::Lock(LockMode::Shared) => None,
            Read::Lock(mode) => Some((mode, false)),
            Read::LockRows { mode, .. } | Read::TryLock { mode, .. } => Some((mode, true)),
        }
    }

    /// Whether an extra is a row that was locked and read again already, on another shard.
    fn is_settled(&self, _: &Self::Extra) -> bool {
        false
    }

    /// Locks a row that passes.
    ///
    /// # Errors
    /// The scan waits, or fails.
    fn lock(&mut self, key: &[u8], mode: LockMode) -> Result<(), Stop<Self::Wait>>;

    /// The newest version of a row that was found in a snapshot and is locked now.
    ///
    /// # Errors
    /// The scan waits, or fails.
    fn newest<'x>(
        &'x mut self,
        key: &[u8],
        folded: &'x mut Vec<u8>,
    ) -> Result<Option<&'x [u8]>, Stop<Self::Wait>>;

    /// The row of an extra.
    fn extra<'x>(
        &mut self,
        run: &ScanRun,
        key: &Key,
        extra: &'x Self::Extra,
        folded: &'x mut Vec<u8>,
    ) -> Option<&'x [u8]>;
}

/// Tells the history that a transaction has read a range.
pub fn note_range(
    history: &mut Option<&mut Vec<Event>>,
    txn: TxnId,
    index: IndexId,
    range: &KeyRange,
) {
    if let Some(history) = history {
        let range = range.clone();
        history.push(Event::ReadRange { txn, index, range });
    }
}

/// One turn of a scan in one slot.
pub struct Visit<'v, 'h, V> {
    /// What the protocol adds.
    pub visitor: V,
    /// State of the scan.
    pub run: &'v mut ScanRun,
    /// Operation of the scan.
    pub op: &'v ScanOp,
    /// Slot that is visited.
    pub slot: Slot,
    /// Transaction that scans.
    pub txn: TxnId,
    /// Rows of the shard.
    pub store: &'v Store,
    /// Counts what was visited.
    pub counters: &'v mut Counters,
    /// Gets what was read.
    pub history: &'v mut Option<&'h mut Vec<Event>>,
    /// Units of work left until other jobs get their turn.
    pub budget: &'v mut u32,
    /// State of this turn; starts empty.
    pub turn: Turn,
}

/// State of one turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// Keys without a row were passed since the last row.
    skipped: bool,
    folded: Vec<u8>,
    scratch: RowBatch,
}

impl<V: Visitor> Visit<'_, '_, V> {
    /// Visits the keys of `range` in the order of the scan; `extras` replace rows of the same keys.
    /// Returns why the visit stops before the end; `None`: it is at the end.
    pub fn go<'x>(
        &mut self,
        range: &KeyRange,
        extras: impl Iterator<Item = (&'x Key, &'x V::Extra)>,
    ) -> Option<Halt<V::Wait>>
    where
        V::Extra: 'x,
    {
        match self.keys(range, extras) {
            ControlFlow::Break(halt) => Some(halt),
            ControlFlow::Continue(()) => None,
        }
    }

    fn keys<'x>(
        &mut self,
        range: &KeyRange,
        extras: impl Iterator<Item = (&'x Key, &'x V::Extra)>,
    ) -> ControlFlow<Halt<V::Wait>>
    where
        V::Extra: 'x,
    {
        let (store, op, slot) = (self.store, self.op, self.slot);
        let mut extras = Overlay::new(extras, op.reverse);
        let window = Window::of(range, op.reverse);
        let mut halt = None;
        let flow = store.scan_keys(op.index, slot, window, op.read.at(), &mut |key, row, ts| {
            while let Some((extra_key, extra, replaces)) = extras.up_to(key) {
                if let ControlFlow::Break(found) = self.extra(extra_key, extra) {
                    halt = Some(found);
                    return ControlFlow::Break(());
                }
                if replaces {
                    return ControlFlow::Continue(());
                }
            }
            let flow = match row {
                Some(row) => self.row(key, row, Some(ts), false),
                None => self.skip(key),
            };
            flow.map_break(|found| halt = Some(found))
        });
        if let (true, Some(halt)) = (flow.is_break(), halt) {
            return ControlFlow::Break(halt);
        }
        while let Some((key, extra)) = extras.rest() {
            self.extra(key, extra)?;
        }
        self.reach(None)
    }

    fn reach(&mut self, key: Option<&[u8]>) -> ControlFlow<Halt<V::Wait>> {
        match self.visitor.reach(self.run, key) {
            Err(stop) => return ControlFlow::Break(Halt::Stop(stop)),
            Ok(None) => {}
            Ok(Some(range)) => note_range(self.history, self.txn, self.op.index, &range),
        }
        ControlFlow::Continue(())
    }

    fn extra(&mut self, key: &Key, extra: &V::Extra) -> ControlFlow<Halt<V::Wait>> {
        let mut folded = core::mem::take(&mut self.turn.folded);
        let settled = self.visitor.is_settled(extra);
        let flow = match self.visitor.extra(self.run, key, extra, &mut folded) {
            Some(row) => self.row(&key.bytes, row, None, settled),
            None => self.skip(&key.bytes),
        };
        self.turn.folded = folded;
        flow
    }

    /// Passes a key without a row, which takes time as well.
    fn skip(&mut self, key: &[u8]) -> ControlFlow<Halt<V::Wait>> {
        if *self.budget == 0 {
            return self.pause(key);
        }
        *self.budget -= 1;
        self.counters.units += 1;
        self.turn.skipped = true;
        ControlFlow::Continue(())
    }

    /// Stops for other jobs; the next turn goes on with this key.
    fn pause(&mut self, key: &[u8]) -> ControlFlow<Halt<V::Wait>> {
        if core::mem::take(&mut self.turn.skipped) {
            // The keys before this one are not visited again, so nothing may appear there.
            self.reach(Some(key))?;
            self.run.pass(key, true);
        }
        ControlFlow::Break(Halt::Stop(Stop::Budget))
    }

    /// Visits a row: a version of the store, or an extra (`None`).
    fn row(
        &mut self,
        key: &[u8],
        row: &[u8],
        version: Option<Ts>,
        settled: bool,
    ) -> ControlFlow<Halt<V::Wait>> {
        if *self.budget == 0 {
            return self.pause(key);
        }
        let units = self.run.units;
        *self.budget = self.budget.saturating_sub(units);
        // The cursor stays if the scan waits: rows may come before this one meanwhile.
        self.reach(Some(key))?;
        self.counters.rows_read += 1;
        self.counters.units += u64::from(units - 1);
        let lock = self.visitor.row_lock(self.op.read).filter(|_| !settled);
        let kept = match lock {
            None => self.run.give(key, row).map_err(Stop::from),
            Some((mode, reread)) => self.give_locked(key, row, mode, reread),
        };
        // A row that the scan waits for is read again, and noted then.
        if let (true, true, Some(ts)) = (self.history.is_some(), kept.is_ok(), version) {
            let key = Key::new(self.op.index, self.slot, key.to_vec());
            txn::step::note_read(self.history, self.txn, &key, ts);
        }
        self.run.pass(key, kept.is_err());
        self.turn.skipped = false;
        match kept {
            Err(stop) => ControlFlow::Break(Halt::Stop(stop)),
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => match self.run.count(self.op, row.len()) {
                Some(full) => ControlFlow::Break(Halt::Full(full)),
                None => ControlFlow::Continue(()),
            },
        }
    }

    /// Locks the row if it passes, and gives it to the program. `reread`: the row was found in a
    /// snapshot, and is read again in its newest version.
    fn give_locked(
        &mut self,
        key: &[u8],
        row: &[u8],
        mode: LockMode,
        reread: bool,
    ) -> Result<bool, Stop<V::Wait>> {
        let takes_all = self.run.task.is_some();
        if !takes_all {
            self.turn.scratch.datums.clear();
            self.turn.scratch.rows = 0;
            self.turn.scratch.width = self.run.batch.width;
            if !self.run.program.point(row, &mut self.turn.scratch)? {
                return Ok(false);
            }
        }
        self.visitor.lock(key, mode)?;
        if reread {
            let mut folded = Vec::new();
            return match self.visitor.newest(key, &mut folded)? {
                Some(row) => Ok(self.run.give(key, row)?),
                None => Ok(false),
            };
        }
        if takes_all {
            return Ok(self.run.give(key, row)?);
        }
        let batch = &mut self.run.batch;
        batch.rows += self.turn.scratch.rows;
        batch.datums.append(&mut self.turn.scratch.datums);
        Ok(true)
    }
}
