//! The step that keeps the rows that pass a condition.

use super::source::{Rows, Source};
use super::{Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use expr::{Expr, NoColumns, eval_bool, list, walk};
use std::borrow::Cow;
use txn::OpError;

pub(super) struct FilterRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    filter: Cow<'a, Expr>,
    /// The filter is the same for all rows and was not looked at yet.
    gate: bool,
    /// Units of work for a row.
    units: u32,
    slots: Slots,
}

impl<'a> FilterRows<'a> {
    pub(super) fn new(
        cx: &'a Cx<'a>,
        input: Source<'a>,
        filter: &'a Expr,
        slots: &Slots,
    ) -> FilterRows<'a> {
        let gate = walk::is_row_independent(filter);
        let mut filter = Cow::Borrowed(filter);
        if list::has_open_lists(&filter) {
            list::with_constants(filter.to_mut(), &cx.env(slots));
        }
        FilterRows {
            cx,
            input,
            units: list::units_of_row(list::nodes(&filter)),
            filter,
            gate,
            slots: slots.clone(),
        }
    }

    fn passes(&self, row: &[Datum]) -> Result<bool, SqlError> {
        let env = self.cx.env(&self.slots);
        Ok(eval_bool(&self.filter, &row, &env)? == Some(true))
    }

    /// As [`retain`] for a condition of which a batch is more work than one turn.
    async fn retain_in_turns(&self, batch: RowBatch) -> Result<RowBatch, OpError> {
        let mut kept = RowBatch::new(batch.width as usize);
        for row in batch.iter() {
            if self.passes(row)? {
                kept.datums.extend_from_slice(row);
                kept.rows += 1;
            }
            self.cx.breathe(self.units as usize).await;
        }
        Ok(kept)
    }
}

impl Rows for FilterRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        if self.gate {
            let open = eval_bool(&self.filter, &NoColumns, &self.cx.env(&self.slots))?;
            if open != Some(true) {
                return Ok(None);
            }
            self.gate = false;
        }
        while let Some(mut batch) = self.input.next().await? {
            if self.units > 1 {
                batch = self.retain_in_turns(batch).await?;
            } else {
                retain(&mut batch, |row| self.passes(row))?;
                self.cx.breathe(batch.rows as usize).await;
            }
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Keeps the rows that pass, in place.
pub(super) fn retain(
    batch: &mut RowBatch,
    mut keep: impl FnMut(&[Datum]) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let width = batch.width as usize;
    let mut kept = 0usize;
    for i in 0..batch.rows as usize {
        if keep(&batch.datums[i * width..(i + 1) * width])? {
            if kept != i {
                for column in 0..width {
                    batch.datums.swap(kept * width + column, i * width + column);
                }
            }
            kept += 1;
        }
    }
    batch.datums.truncate(kept * width);
    batch.rows = kept as u32;
    Ok(())
}
