//! The progress of a scan, the same for all protocols.
//!
//! A scan visits slots one after the other, and the keys of a slot in order. It stops when its
//! batch is full, when it must wait, or to give other jobs a turn; it goes on behind the last key
//! that it dealt with. What lies in a slot (rows of the store, own writes, rows of other owners)
//! and which locks the scan takes is decided by the protocol.

use crate::{OpResult, RowProgram, RowTask, ScanOp};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{Datum, Key, KeyRange, RowBatch, Slot, SqlError, SqlState};
use core::fmt;

/// Bytes of rows read for a batch, or held by it, at which the batch is answered.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Bytes that an aggregating program has gathered at which it answers with them and begins anew. So
/// one answer fits into a frame and is made in a few milliseconds, and the memory of a statement is
/// limited at its coordinator.
const TASK_BYTES_MAX: usize = 1 << 20;

/// Why no more rows are visited for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The batch is full: [`ScanRun::take_batch`].
    Batch,
    /// The row limit is reached: [`ScanRun::finish`].
    Limit,
    /// The rest of the slot is not wanted: [`ScanRun::leave_slot`].
    Slot,
}

/// Last key that was dealt with (`.1`: it must be visited again).
type Cursor = Option<(Vec<u8>, bool)>;

/// State of a scan between its turns.
pub struct ScanRun {
    /// Program that gets each row.
    pub program: Arc<dyn RowProgram>,
    /// Units of work for each row.
    pub units: u32,
    /// The state of a program that aggregates.
    pub task: Option<Box<dyn RowTask>>,
    /// Rows that were emitted and not answered yet.
    pub batch: RowBatch,
    batch_bytes: usize,
    emitted: u64,
    /// Slots still to visit, the current one last, and how far each has been visited.
    slots: Vec<(Slot, Cursor)>,
    /// Slots whose rest is visited after all others.
    deferred: Vec<(Slot, Cursor)>,
    /// Largest number of rows that the program wants of each slot, if slots are left early.
    first_rows: Option<usize>,
}

impl fmt::Debug for ScanRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scan with {} slots to go", self.slots.len())
    }
}

impl ScanRun {
    /// A scan that visits nothing yet.
    pub fn new(program: Arc<dyn RowProgram>) -> ScanRun {
        let program = program.for_many_rows().unwrap_or(program);
        let task = program.task();
        ScanRun {
            first_rows: task.as_ref().and_then(|task| task.first_rows()),
            task,
            batch: RowBatch::new(program.width()),
            units: program.units().max(1),
            program,
            batch_bytes: 0,
            emitted: 0,
            slots: Vec::new(),
            deferred: Vec::new(),
        }
    }

    /// As [`ScanRun::new`], with every slot visited to its end.
    pub fn whole(program: Arc<dyn RowProgram>) -> ScanRun {
        ScanRun {
            first_rows: None,
            ..ScanRun::new(program)
        }
    }

    /// Largest number of rows that are wanted of each slot, first keys first, if slots are left
    /// early.
    pub fn first_rows(&self) -> Option<usize> {
        self.first_rows
    }

    /// Whether a row of the current slot, or one behind it, can still change the result.
    pub fn wants(&self, key: &[u8]) -> bool {
        let task = self.task.as_ref().filter(|_| self.first_rows.is_some());
        task.is_none_or(|task| task.wants(key))
    }

    /// Visits `slots` (ascending, each once), but nothing at or before `op.after`.
    pub fn visit(&mut self, op: &ScanOp, mut slots: Vec<Slot>) {
        if let Some((after_slot, _)) = &op.after {
            slots.retain(|slot| {
                if op.reverse {
                    slot <= after_slot
                } else {
                    slot >= after_slot
                }
            });
        }
        if !op.reverse {
            slots.reverse();
        }
        if op.row_limit == 0 {
            slots.clear();
        }
        let cursor = |slot: &Slot| match &op.after {
            Some((after_slot, after)) if after_slot == slot => Some((after.clone(), false)),
            Some(_) | None => None,
        };
        let slots = slots.into_iter().map(|slot| (slot, cursor(&slot)));
        self.slots = slots.collect();
    }

    /// The slot that is visited; `None`: all slots were.
    #[inline]
    pub fn slot(&self) -> Option<Slot> {
        self.slots.last().map(|(slot, _)| *slot)
    }

    /// Ends the slot.
    pub fn leave_slot(&mut self) {
        self.slots.pop();
    }

    /// Leaves the slot for later, because its next row is not here.
    pub fn defer_slot(&mut self) {
        self.deferred.extend(self.slots.pop());
    }

    /// Whether slots were left for later.
    pub fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Visits the slots that were left for later.
    pub fn resume_deferred(&mut self) {
        self.slots.append(&mut self.deferred);
    }

    /// The keys of the slot that were not visited yet.
    pub fn rest(&self, op: &ScanOp) -> KeyRange {
        let mut range = op.range.clone();
        let Some((_, Some((key, again)))) = self.slots.last() else {
            return range;
        };
        let mut bound = key.clone();
        if op.reverse {
            if *again {
                bound.push(0);
            }
            range.high = Some(bound);
        } else {
            if !again {
                bound.push(0);
            }
            range.low = bound;
        }
        range
    }

    /// Passes a key of the slot; `again`: it must be visited once more in the next turn.
    #[inline]
    pub fn pass(&mut self, key: &[u8], again: bool) {
        match self.slots.last_mut() {
            Some((_, Some((cursor, visit_again)))) => {
                cursor.clear();
                cursor.extend_from_slice(key);
                *visit_again = again;
            }
            Some((_, cursor)) => *cursor = Some((key.to_vec(), again)),
            None => {}
        }
    }

    /// Gives a row to the program; `key` is its key in the slot. Returns whether it was emitted or
    /// taken in; then call [`Self::count`].
    ///
    /// # Errors
    /// As [`RowProgram::point`].
    #[inline]
    pub fn give(&mut self, key: &[u8], row: &[u8]) -> Result<bool, SqlError> {
        match &mut self.task {
            Some(task) => task.row(key, row).map(|()| true),
            None => self.program.point(row, &mut self.batch),
        }
    }

    /// Counts a row that was emitted or taken in, and its bytes.
    #[inline]
    pub fn count(&mut self, op: &ScanOp, row_bytes: usize) -> Option<Full> {
        if let Some(task) = &self.task {
            if task.memory_bytes() >= TASK_BYTES_MAX {
                return Some(Full::Batch);
            }
            let last = self.slots.last().and_then(|(_, cursor)| cursor.as_ref());
            let is_done =
                self.first_rows.is_some() && last.is_some_and(|(key, _)| !task.wants(key));
            return is_done.then_some(Full::Slot);
        }
        self.emitted += 1;
        self.batch_bytes += row_bytes.max(last_row_bytes(&self.batch));
        if self.emitted >= op.row_limit {
            Some(Full::Limit)
        } else if self.batch.rows >= op.batch_rows.max(1) || self.batch_bytes >= BATCH_BYTES_MAX {
            Some(Full::Batch)
        } else {
            None
        }
    }

    /// The answer of a full batch. The scan ends with it; the next one goes on behind its last row.
    ///
    /// Panics if nothing was visited.
    ///
    /// # Errors
    /// As [`RowTask::finish`].
    pub fn take_batch(&mut self) -> Result<OpResult, SqlError> {
        if let Some(task) = self.task.take() {
            task.finish(&mut self.batch)?;
        }
        let (slot, cursor) = self.slots.pop().expect("a full batch has a slot");
        let key = cursor.expect("a full batch has a last row").0;
        Ok(OpResult::Rows {
            batch: core::mem::take(&mut self.batch),
            resume: Some((slot, key)),
        })
    }

    /// The answer after the last row.
    ///
    /// # Errors
    /// As [`RowTask::finish`].
    pub fn finish(&mut self) -> Result<OpResult, SqlError> {
        let mut batch = core::mem::take(&mut self.batch);
        if let Some(task) = self.task.take() {
            task.finish(&mut batch)?;
        }
        Ok(OpResult::Rows {
            batch,
            resume: None,
        })
    }

    /// Checked before the scan waits or gives other jobs a turn.
    ///
    /// # Errors
    /// 53200 if the state of the program is larger than `bytes_max`.
    pub fn check_memory(&self, bytes_max: usize) -> Result<(), SqlError> {
        let held = self.task.as_ref().map_or(0, |task| task.memory_bytes());
        if held <= bytes_max {
            return Ok(());
        }
        let text = "aggregation needs too much memory";
        Err(SqlError::new(SqlState::OUT_OF_MEMORY, text)
            .hint("Group by fewer values, or filter more rows."))
    }
}

/// Bytes that the values of the last row of a batch hold outside of the batch.
#[inline]
fn last_row_bytes(batch: &RowBatch) -> usize {
    let from = batch.datums.len().saturating_sub(batch.width as usize);
    let bytes = |datum: &Datum| {
        let text = datum.as_str().map(str::len);
        let text = text.or_else(|| datum.as_bytes().map(<[u8]>::len));
        text.or_else(|| datum.as_array().map(|items| items.len() * 64))
    };
    batch.datums[from..].iter().filter_map(bytes).sum()
}

/// Bounds of the keys of `range` in a slot: the first key, and the one behind the last; equal if
/// there are none.
pub fn key_bounds(op: &ScanOp, slot: Slot, range: &KeyRange) -> (Key, Key) {
    let low = Key::new(op.index, slot, range.low.clone());
    let high = match &range.high {
        Some(high) => Key::new(op.index, slot, high.clone()),
        None => Key::new(op.index, Slot(slot.0 + 1), Vec::new()),
    };
    let high = high.max(low.clone());
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Modified;
    use crate::{Program, Read, Slots};
    use base::{IndexId, Ts};

    /// Emits the first byte of a row, or the number of rows if it aggregates.
    struct FirstByte {
        counts: bool,
    }

    /// Holds 100 bytes, and half a megabyte for each row that begins with a 9.
    struct Count(i64, usize);

    impl RowProgram for FirstByte {
        fn encode(&self, _: &mut Vec<u8>) {}

        fn width(&self) -> usize {
            1
        }

        fn point(&self, row: &[u8], out: &mut RowBatch) -> Result<bool, SqlError> {
            out.push([Datum::Int(row[0].into())]);
            Ok(true)
        }

        fn modify(&self, _: &[u8], _: &mut RowBatch) -> Result<Modified, SqlError> {
            Ok(Modified::Skipped)
        }

        fn task(&self) -> Option<Box<dyn RowTask>> {
            self.counts
                .then(|| Box::new(Count(0, 100)) as Box<dyn RowTask>)
        }
    }

    impl RowTask for Count {
        fn row(&mut self, _: &[u8], row: &[u8]) -> Result<(), SqlError> {
            self.0 += 1;
            self.1 += usize::from(row[0] == 9) << 19;
            Ok(())
        }

        fn memory_bytes(&self) -> usize {
            self.1
        }

        fn finish(self: Box<Self>, out: &mut RowBatch) -> Result<(), SqlError> {
            out.push([Datum::Int(self.0)]);
            Ok(())
        }
    }

    fn scan_of(reverse: bool, after: Option<(u16, &[u8])>) -> ScanOp {
        ScanOp {
            index: IndexId(1),
            slots: Slots::All,
            range: KeyRange {
                low: vec![2],
                high: Some(vec![8]),
            },
            reverse,
            read: Read::Snapshot(crate::Snapshot::exactly(Ts::MAX)),
            program: Program::Encoded(Box::default()),
            row_limit: 3,
            batch_rows: 2,
            after: after.map(|(slot, key)| (Slot(slot), key.to_vec())),
        }
    }

    fn run(counts: bool) -> ScanRun {
        ScanRun::new(Arc::new(FirstByte { counts }))
    }

    fn slots_visited(op: &ScanOp) -> Vec<u16> {
        let mut scan = run(false);
        scan.visit(op, vec![Slot(1), Slot(4), Slot(6)]);
        let mut slots = Vec::new();
        while let Some(slot) = scan.slot() {
            slots.push(slot.0);
            scan.leave_slot();
        }
        slots
    }

    #[test]
    fn slots_are_visited_in_the_order_of_the_scan_behind_its_last_row() {
        assert_eq!(slots_visited(&scan_of(false, None)), [1, 4, 6]);
        assert_eq!(slots_visited(&scan_of(true, None)), [6, 4, 1]);
        assert_eq!(slots_visited(&scan_of(false, Some((4, b"\x05")))), [4, 6]);
        assert_eq!(slots_visited(&scan_of(true, Some((4, b"\x05")))), [4, 1]);
        // The rows of that slot have gone meanwhile.
        assert_eq!(slots_visited(&scan_of(false, Some((5, b"\x05")))), [6]);
        let none = ScanOp {
            row_limit: 0,
            ..scan_of(false, None)
        };
        assert_eq!(slots_visited(&none), [0; 0]);
    }

    #[test]
    fn the_rest_of_a_slot_begins_behind_the_last_key_or_with_it() {
        let range = |low: &[u8], high: &[u8]| KeyRange {
            low: low.to_vec(),
            high: Some(high.to_vec()),
        };
        for (reverse, behind, again) in [
            (false, range(&[5, 0], &[8]), range(&[5], &[8])),
            (true, range(&[2], &[5]), range(&[2], &[5, 0])),
        ] {
            let op = scan_of(reverse, Some((4, b"\x05")));
            let mut scan = run(false);
            scan.visit(&op, vec![Slot(1), Slot(4), Slot(6)]);
            assert_eq!(scan.rest(&op), behind);
            scan.pass(&[5], true);
            assert_eq!(scan.rest(&op), again);
            scan.leave_slot();
            assert_eq!(scan.rest(&op), op.range);
        }
    }

    #[test]
    fn a_scan_stops_at_a_full_batch_and_at_its_limit() {
        let op = scan_of(false, None);
        let mut scan = run(false);
        scan.visit(&op, vec![Slot(1)]);
        let mut visit = |key: u8, bytes: usize| {
            scan.pass(&[key], false);
            assert_eq!(scan.give(&[key], &[key]).as_ref(), Ok(&true));
            let full = scan.count(&op, bytes);
            (full, full.map(|_| scan.take_batch()))
        };
        assert_eq!(visit(3, 1).0, None);
        let (full, answer) = visit(4, 1);
        assert_eq!(full, Some(Full::Batch));
        let Some(Ok(OpResult::Rows { batch, resume })) = answer else {
            panic!("rows");
        };
        assert_eq!((batch.rows, resume), (2, Some((Slot(1), vec![4]))));

        let mut scan = run(false);
        assert_eq!(scan.count(&op, 1), None);
        assert_eq!(scan.count(&op, 1), None);
        assert_eq!(scan.count(&op, 1), Some(Full::Limit));

        let wide = ScanOp {
            row_limit: u64::MAX,
            ..scan_of(false, None)
        };
        let mut scan = run(false);
        assert_eq!(scan.count(&wide, BATCH_BYTES_MAX - 1), None);
        assert_eq!(scan.count(&wide, 1), Some(Full::Batch));
    }

    #[test]
    fn an_aggregating_scan_answers_at_its_end_within_its_memory() {
        let mut scan = run(true);
        for row in [[1], [2], [3]] {
            assert_eq!(scan.give(&row, &row).as_ref(), Ok(&true));
            assert_eq!(scan.count(&scan_of(false, None), 1), None);
        }
        assert!(scan.check_memory(100).is_ok());
        let refused = scan.check_memory(99).map_err(|error| error.state());
        assert_eq!(refused, Err(SqlState::OUT_OF_MEMORY));
        let Ok(OpResult::Rows { batch, resume }) = scan.finish() else {
            panic!("rows");
        };
        assert_eq!((batch.datums, resume), (vec![Datum::Int(3)], None));
        assert!(run(false).check_memory(0).is_ok());
    }

    #[test]
    fn an_aggregating_scan_answers_in_parts_when_it_has_gathered_much() {
        let op = scan_of(false, None);
        let mut scan = run(true);
        scan.visit(&op, vec![Slot(1)]);
        let mut visit = |key: u8| {
            scan.pass(&[key], false);
            assert_eq!(scan.give(&[key], &[key]).as_ref(), Ok(&true));
            let full = scan.count(&op, 1);
            full.map(|_| scan.take_batch())
        };
        assert!(visit(3).is_none() && visit(9).is_none());
        let Some(Ok(OpResult::Rows { batch, resume })) = visit(9) else {
            panic!("the third row is too much");
        };
        let expected = (vec![Datum::Int(3)], Some((Slot(1), vec![9])));
        assert_eq!((batch.datums, resume), expected);
    }

    #[test]
    fn an_empty_range_has_empty_bounds() {
        let op = scan_of(false, None);
        let mut range = op.range.clone();
        let key = |slot, byte| Key::new(IndexId(1), Slot(slot), vec![byte]);
        assert_eq!(key_bounds(&op, Slot(7), &range), (key(7, 2), key(7, 8)));
        range.low = vec![9];
        assert_eq!(key_bounds(&op, Slot(7), &range), (key(7, 9), key(7, 9)));
        range.high = None;
        let end = Key::new(IndexId(1), Slot(8), Vec::new());
        assert_eq!(key_bounds(&op, Slot(7), &range), (key(7, 9), end));
    }
}
