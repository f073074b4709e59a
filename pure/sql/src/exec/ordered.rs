//! Aggregates with an ORDER BY of their own.
//!
//! The input of an aggregation comes in the order that the first aggregate with an ORDER BY asks
//! for. An aggregate that asks for another one, or for DISTINCT, too, keeps its arguments until all
//! are there.

use crate::bind::rel::Aggregate;
use crate::expr::aggregate::AggState;
use crate::rows::{compare_rows, row_bytes};
use base::{Datum, SqlError};

/// For each aggregate, whether the order of the input is not its own.
pub(super) fn own_orders(aggregates: &[Aggregate]) -> Vec<bool> {
    let first = aggregates.iter().find(|a| !a.order.is_empty());
    let own = aggregates.iter().map(|aggregate| {
        let other = first.is_some_and(|first| first.order != aggregate.order);
        !aggregate.order.is_empty() && (aggregate.distinct || other)
    });
    own.collect()
}

/// Arguments of an aggregate behind the values to sort them by.
#[derive(Default)]
pub(super) struct OrderedRows {
    rows: Vec<Vec<Datum>>,
    /// Memory of the rows.
    row_bytes: usize,
}

/// Memory of the place of a row: sorting needs half of the places once more.
const PLACE_BYTES: usize = size_of::<Vec<Datum>>() + size_of::<Vec<Datum>>() / 2;

impl OrderedRows {
    /// Keeps a row.
    pub(super) fn add(&mut self, keys: Vec<Datum>, args: &[Datum]) {
        let mut row = keys;
        row.extend_from_slice(args);
        self.row_bytes += row_bytes(&row);
        self.rows.push(row);
    }

    /// Memory that it holds, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.row_bytes + self.rows.capacity() * PLACE_BYTES
    }

    /// Memory that another row may take at once beside its own, in bytes.
    pub(super) fn growth_bytes(&self) -> usize {
        match self.rows.len() == self.rows.capacity() {
            true => 2 * self.rows.capacity() * size_of::<Vec<Datum>>(),
            false => 0,
        }
    }

    /// The aggregate's value.
    pub(super) fn finish(mut self, aggregate: &Aggregate) -> Result<Datum, SqlError> {
        let width = aggregate.order.len();
        let by_keys = aggregate.order.iter().enumerate();
        let by_keys: Vec<_> = by_keys
            .map(|(i, (_, descending, nulls_first))| (i as u32, *descending, *nulls_first))
            .collect();
        // Equal arguments stand together, so that DISTINCT finds them.
        let by_args = (width..width + aggregate.args.len()).map(|i| (i as u32, false, false));
        let by_args: Vec<_> = by_args.filter(|_| aggregate.distinct).collect();
        let order = || by_keys.iter().chain(&by_args).copied();
        self.rows.sort_by(|a, b| compare_rows(a, b, order()));
        if aggregate.distinct {
            let args = || by_args.iter().copied();
            self.rows
                .dedup_by(|a, b| compare_rows(a, b, args()).is_eq());
        }
        let mut state = AggState::new(aggregate.func, false);
        for row in self.rows {
            state.update(&row[width..])?;
        }
        state.finish()
    }
}
