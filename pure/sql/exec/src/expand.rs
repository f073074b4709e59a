//! The step that gives every row once for each of several sets of grouping keys.

use super::source::{Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Cx, Slots};
use base::{Datum, RowBatch};
use expr::rows::datums_heap_bytes;
use expr::{Expr, eval};
use plan::step::{Step, StepOp};
use txn::OpError;

pub(super) struct ExpandRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    keys: &'a [Expr],
    sets: &'a [Vec<bool>],
    slots: Slots,
    /// Rows of the input, and the first one that is not dealt with.
    rest: Option<(RowBatch, usize)>,
}

impl<'a> ExpandRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> ExpandRows<'a> {
        let StepOp::Expand { input, keys, sets } = &step.op else {
            unreachable!("opened for grouping sets");
        };
        ExpandRows {
            cx,
            input: open(cx, input, slots),
            keys,
            sets,
            slots: slots.clone(),
            rest: None,
        }
    }
}

impl Rows for ExpandRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let (batch, mut at) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.next().await? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let mut out = RowBatch::new(batch.width as usize + self.keys.len() + 1);
        let mut bytes = 0;
        while at < batch.rows as usize && (out.rows as usize) < BATCH_ROWS && bytes < BATCH_BYTES {
            let row = batch.row(at);
            at += 1;
            let env = self.cx.env(&self.slots);
            let keys = self.keys.iter().map(|key| eval(key, &row, &env));
            let keys = keys.collect::<Result<Vec<Datum>, _>>()?;
            for (number, set) in self.sets.iter().enumerate() {
                out.datums.extend_from_slice(row);
                let own = keys.iter().zip(set).map(|(key, is_in)| match is_in {
                    true => key.clone(),
                    false => Datum::Null,
                });
                out.datums.extend(own);
                out.datums.push(Datum::Int(number as i64));
                out.rows += 1;
            }
            bytes += self.sets.len() * (datums_heap_bytes(row) + datums_heap_bytes(&keys));
        }
        if at < batch.rows as usize {
            self.rest = Some((batch, at));
        }
        self.cx.breathe(out.rows as usize).await;
        Ok(Some(out))
    }
}
