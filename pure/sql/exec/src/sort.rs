//! Sorting: runs of some thousand rows are sorted as they come, and merged as they are read.
//!
//! No step sorts more than one run or merges more than one batch, and nothing is copied to sort it.
//! Runs are in the order of the input and equal rows leave the earlier run first, so the sort is
//! stable.

use super::long::{Long, Shrink};
use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use bind::rel::SortKey;
use core::cmp::Ordering;
use expr::Expr;
use expr::rows::{compare_rows, datums_heap_bytes, heap_bytes};
use plan::step::{Step, StepOp};
use txn::OpError;

/// Rows that are sorted at once.
const RUN_ROWS: usize = 4096;
/// Bytes of values beyond which a run is sorted, whatever its rows.
const RUN_BYTES: usize = 4 << 20;

/// Rows in one order.
struct Run {
    rows: RowBatch,
    /// Their order, and how many of them have been taken.
    order: Vec<u32>,
    taken: usize,
}

impl Run {
    fn row(&self) -> &[Datum] {
        self.rows.row(self.order[self.taken] as usize)
    }

    /// Memory that it takes without what its values hold.
    fn frame_bytes(&self) -> usize {
        frame_bytes(&self.rows) + heap_bytes(self.order.capacity() * size_of::<u32>())
    }
}

/// Sorted rows; whatever they hold is freed run by run.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Shrink for Runs {
    fn entries(&self) -> usize {
        self.0.len() * RUN_ROWS
    }

    fn shrink(&mut self, most: usize) {
        let runs = most.div_ceil(RUN_ROWS).min(self.0.len());
        self.0.truncate(self.0.len() - runs);
    }
}

fn frame_bytes(rows: &RowBatch) -> usize {
    heap_bytes(rows.datums.capacity() * size_of::<Datum>())
}

pub(super) struct SortRows<'a> {
    cx: &'a Cx<'a>,
    input: Option<Source<'a>>,
    keys: &'a [SortKey],
    limit: Option<&'a Expr>,
    slots: Slots,
    /// Rows that are not in a run yet.
    open: RowBatch,
    open_bytes: usize,
    /// Sorted rows; those that are not read to their end are in `heap`.
    runs: Long<'a, Runs>,
    /// Numbers of runs, the one with the first row at the root.
    heap: Vec<u32>,
    /// Rows that are still wanted.
    left: usize,
    charge: Charge<'a>,
}

impl<'a> SortRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> SortRows<'a> {
        let StepOp::Sort { input, keys, limit } = &step.op else {
            unreachable!("opened for a sort");
        };
        SortRows {
            cx,
            input: Some(open(cx, input, slots)),
            keys,
            limit: limit.as_ref(),
            slots: slots.clone(),
            open: RowBatch::new(step.width as usize),
            open_bytes: 0,
            runs: Long::new(cx.port, Runs::default()),
            heap: Vec::new(),
            left: usize::MAX,
            charge: Charge::new(cx.port),
        }
    }

    fn compare(&self, a: &[Datum], b: &[Datum]) -> Ordering {
        let keys = self.keys.iter();
        compare_rows(a, b, keys.map(|k| (k.column, k.descending, k.nulls_first)))
    }

    async fn collect(&mut self, mut input: Source<'a>) -> Result<(), OpError> {
        if let Some(limit) = self.limit {
            let limit = self.cx.value(limit, &self.slots)?.as_int();
            self.left = limit.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
        }
        // A limit that fits into a run keeps all in one.
        let top = (self.left <= RUN_ROWS).then_some(self.left);
        while let Some(batch) = input.next().await? {
            self.take(&batch)?;
            let rows = batch.rows as usize;
            drop(batch);
            self.cx.breathe(rows).await;
            let kept = top.unwrap_or(0);
            let many = self.open.rows as usize >= RUN_ROWS + kept;
            if many || self.open_bytes >= RUN_BYTES && self.open.rows as usize > 2 * kept {
                self.close()?;
                if let Some(limit) = top {
                    self.cut(limit)?;
                }
                self.cx.breathe(RUN_ROWS).await;
            }
        }
        self.close()?;
        let mut heads: Vec<u32> = (0..self.runs.0.len() as u32).collect();
        self.charge
            .add(heap_bytes(heads.capacity() * size_of::<u32>()))?;
        heads.retain(|run| !self.runs.0[*run as usize].order.is_empty());
        self.heap = heads;
        for at in (0..self.heap.len() / 2).rev() {
            self.sink(at);
        }
        Ok(())
    }

    /// Moves the rows of a batch to the open ones.
    fn take(&mut self, batch: &RowBatch) -> Result<(), SqlError> {
        let heap = datums_heap_bytes(&batch.datums);
        let before = frame_bytes(&self.open);
        let wanted = self.open.datums.len() + batch.datums.len();
        if wanted > self.open.datums.capacity() {
            let most = wanted.max(2 * self.open.datums.capacity());
            self.charge.room(heap_bytes(most * size_of::<Datum>()))?;
        }
        self.charge.add(heap)?;
        self.open.datums.extend_from_slice(&batch.datums);
        self.open.rows += batch.rows;
        self.open_bytes += heap;
        self.charge.change(before, frame_bytes(&self.open))
    }

    /// Sorts the open rows: they become a run.
    fn close(&mut self) -> Result<(), SqlError> {
        if self.open.rows == 0 {
            return Ok(());
        }
        let width = self.open.width as usize;
        let before = frame_bytes(&self.open);
        let mut rows = core::mem::replace(&mut self.open, RowBatch::new(width));
        rows.datums.shrink_to_fit();
        let mut order: Vec<u32> = (0..rows.rows).collect();
        order.sort_by(|a, b| self.compare(rows.row(*a as usize), rows.row(*b as usize)));
        self.open_bytes = 0;
        let run = Run {
            rows,
            order,
            taken: 0,
        };
        self.charge.change(before, run.frame_bytes())?;
        if self.runs.0.len() == self.runs.0.capacity() {
            let slot = size_of::<Run>();
            self.charge.add((self.runs.0.len() + 4) * slot)?;
        }
        self.runs.0.push(run);
        Ok(())
    }

    /// Keeps the first rows of the only run, as open ones.
    fn cut(&mut self, limit: usize) -> Result<(), SqlError> {
        let mut run = self.runs.0.pop().expect("just closed");
        let before = run.frame_bytes();
        let mut kept = RowBatch::new(run.rows.width as usize);
        let width = run.rows.width as usize;
        let count = limit.min(run.order.len());
        kept.datums.reserve_exact(count * width);
        for place in &run.order[..count] {
            let from = *place as usize * width;
            let row = &mut run.rows.datums[from..from + width];
            kept.push(row.iter_mut().map(core::mem::take));
        }
        let dropped = datums_heap_bytes(&run.rows.datums);
        drop(run);
        self.open_bytes = datums_heap_bytes(&kept.datums);
        self.charge.sub(dropped);
        self.open = kept;
        self.charge.change(before, frame_bytes(&self.open))
    }

    /// Whether the head of run `a` comes before that of run `b`.
    fn leads(&self, a: u32, b: u32) -> bool {
        let (left, right) = (&self.runs.0[a as usize], &self.runs.0[b as usize]);
        self.compare(left.row(), right.row())
            .then(a.cmp(&b))
            .is_lt()
    }

    /// Moves an entry of the heap down to its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let second = right < self.heap.len() && self.leads(self.heap[right], self.heap[left]);
            let child = if second { right } else { left };
            if !self.leads(self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(child, at);
            at = child;
        }
    }

    /// Takes the first of all rows.
    fn next_row(&mut self, out: &mut RowBatch) -> Option<usize> {
        let number = *self.heap.first()?;
        let run = &mut self.runs.0[number as usize];
        let width = run.rows.width as usize;
        let from = run.order[run.taken] as usize * width;
        let row = &mut run.rows.datums[from..from + width];
        let bytes = datums_heap_bytes(row);
        out.push(row.iter_mut().map(core::mem::take));
        run.taken += 1;
        self.charge.sub(bytes);
        if run.taken == run.order.len() {
            self.charge.sub(run.frame_bytes());
            run.rows.datums = Vec::new();
            run.order = Vec::new();
            self.heap.swap_remove(0);
        }
        self.sink(0);
        Some(bytes)
    }
}

impl Rows for SortRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if let Some(input) = self.input.take() {
            self.collect(input).await?;
        }
        let mut out = RowBatch::new(self.open.width as usize);
        let mut bytes = 0;
        while (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES && self.left > 0 {
            let Some(size) = self.next_row(&mut out) else {
                break;
            };
            bytes += size;
            self.left -= 1;
        }
        self.cx.breathe(out.rows as usize).await;
        Ok((out.rows > 0).then_some(out))
    }
}
