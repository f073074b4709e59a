//! Aggregates with an ORDER BY of their own.
//!
//! The input of an aggregation comes in the order that the first aggregate with an ORDER BY asks
//! for. An aggregate that asks for another one, or for DISTINCT, too, keeps its arguments until all
//! are there: in sorted runs of some thousand rows, which are merged at the end, so that no step
//! sorts or frees all of them.

use base::{Datum, SqlError};
use bind::rel::Aggregate;
use core::cmp::Ordering;
use expr::aggregate::AggState;
use expr::rows::{compare_rows, row_bytes};
use std::collections::VecDeque;

/// Rows of a run.
const RUN_ROWS: usize = 4096;

/// For each aggregate, whether the order of the input is not its own.
pub(super) fn own_orders(aggregates: &[Aggregate]) -> Vec<bool> {
    let first = aggregates.iter().find(|a| !a.order.is_empty());
    let own = aggregates.iter().map(|aggregate| {
        let other = first.is_some_and(|first| first.order != aggregate.order);
        !aggregate.order.is_empty() && (aggregate.distinct || other)
    });
    own.collect()
}

type Row = Vec<Datum>;

/// The order of an aggregate's rows: (column, descending, nulls first).
type Order = Vec<(u32, bool, bool)>;

/// The order of the rows, and of the arguments alone if equal ones count once.
fn orders(aggregate: &Aggregate) -> (Order, Order) {
    let keys = aggregate.order.iter().enumerate();
    let keys = keys.map(|(i, (_, descending, nulls_first))| (i as u32, *descending, *nulls_first));
    let width = aggregate.order.len();
    // Equal arguments stand together, so that DISTINCT finds them.
    let args = (width..width + aggregate.args.len()).map(|i| (i as u32, false, false));
    let args: Order = args.filter(|_| aggregate.distinct).collect();
    (keys.chain(args.iter().copied()).collect(), args)
}

fn compare(order: &Order, a: &[Datum], b: &[Datum]) -> Ordering {
    compare_rows(a, b, order.iter().copied())
}

/// Arguments of an aggregate behind the values to sort them by.
#[derive(Default)]
pub(super) struct OrderedRows {
    /// Sorted rows.
    runs: Vec<VecDeque<Row>>,
    /// Once all rows are there: numbers of the runs that have some, the one with the first row at
    /// the root.
    heap: Vec<u32>,
    /// Rows that are in no run yet.
    open: Vec<Row>,
    len: usize,
    /// Memory of the rows.
    row_bytes: usize,
    /// The last row that was taken, if equal arguments count once.
    last: Option<Row>,
    /// What has been taken.
    state: Option<AggState>,
}

/// Memory of the place of a row. Sorting a run needs half of its places once more.
const PLACE_BYTES: usize = size_of::<Row>();

impl OrderedRows {
    /// Keeps a row.
    pub(super) fn add(&mut self, aggregate: &Aggregate, keys: Row, args: &[Datum]) {
        let mut row = keys;
        row.extend_from_slice(args);
        self.row_bytes += row_bytes(&row);
        self.open.push(row);
        self.len += 1;
        if self.open.len() == RUN_ROWS {
            self.close(&orders(aggregate).0);
        }
    }

    /// Sorts the open rows: they become a run.
    fn close(&mut self, order: &Order) {
        let mut rows = core::mem::take(&mut self.open);
        rows.sort_by(|a, b| compare(order, a, b));
        self.runs.push(rows.into());
    }

    /// Rows that are kept.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Memory that it holds, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let places = self.runs.len() * RUN_ROWS + self.open.capacity() * 3 / 2;
        self.row_bytes + places * PLACE_BYTES
    }

    /// Memory that another row may take at once beside its own, in bytes.
    pub(super) fn growth_bytes(&self) -> usize {
        match self.open.len() == self.open.capacity() {
            true => 2 * self.open.capacity() * PLACE_BYTES,
            false => 0,
        }
    }

    /// Whether the first row of run `a` comes before that of run `b`. Of equal rows the one of the
    /// earlier run is the first, so the sort is stable.
    fn leads(&self, order: &Order, a: u32, b: u32) -> bool {
        let (left, right) = (&self.runs[a as usize], &self.runs[b as usize]);
        compare(order, &left[0], &right[0]).then(a.cmp(&b)).is_lt()
    }

    /// Moves an entry of the heap down to its place.
    fn sink(&mut self, order: &Order, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let second =
                right < self.heap.len() && self.leads(order, self.heap[right], self.heap[left]);
            let child = if second { right } else { left };
            if !self.leads(order, self.heap[child], self.heap[at]) {
                return;
            }
            self.heap.swap(child, at);
            at = child;
        }
    }

    /// The first of all rows.
    fn pop(&mut self, order: &Order) -> Option<Row> {
        let number = *self.heap.first()?;
        let run = &mut self.runs[number as usize];
        let row = run.pop_front();
        if run.is_empty() {
            *run = VecDeque::new();
            self.heap.swap_remove(0);
        }
        self.sink(order, 0);
        self.len -= 1;
        row
    }

    /// Takes at most `most` rows into the result, when all of them are there. Gives their number.
    /// The limit lets other work of the shard have its turn.
    ///
    /// # Errors
    /// As [`AggState::update`].
    pub(super) fn fold(&mut self, aggregate: &Aggregate, most: usize) -> Result<usize, SqlError> {
        if self.len == 0 {
            return Ok(0);
        }
        let (order, args) = orders(aggregate);
        if self.heap.is_empty() {
            if !self.open.is_empty() {
                self.close(&order);
            }
            self.heap = (0..self.runs.len() as u32).collect();
            for at in (0..self.heap.len() / 2).rev() {
                self.sink(&order, at);
            }
        }
        let new = || AggState::new(aggregate.func, false);
        let mut state = self.state.take().unwrap_or_else(new);
        let mut done = 0;
        while done < most
            && let Some(row) = self.pop(&order)
        {
            done += 1;
            let mut before = self.last.iter().filter(|_| aggregate.distinct);
            if before.all(|last| compare(&args, last, &row).is_ne()) {
                state.update(&row[aggregate.order.len()..])?;
                self.last = aggregate.distinct.then_some(row);
            }
        }
        self.state = Some(state);
        Ok(done)
    }

    /// Forgets at most `most` rows, which are of no use any more.
    pub(super) fn forget(&mut self, most: usize) {
        for _ in 0..most {
            if self.open.pop().is_none() {
                while self.runs.last().is_some_and(VecDeque::is_empty) {
                    self.runs.pop();
                }
                let Some(last) = self.runs.last_mut() else {
                    return;
                };
                last.pop_back();
            }
            self.len -= 1;
        }
    }

    /// The aggregate's value.
    ///
    /// # Errors
    /// As [`AggState::finish`].
    pub(super) fn finish(mut self, aggregate: &Aggregate) -> Result<Datum, SqlError> {
        self.fold(aggregate, usize::MAX)?;
        let new = || AggState::new(aggregate.func, false);
        self.state.unwrap_or_else(new).finish()
    }
}
