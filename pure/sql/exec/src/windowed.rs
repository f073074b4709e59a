//! The step that computes window functions: one partition after the other is collected, and its
//! rows are given with the values of all calls.

use super::long::Long;
use super::source::{RowList, Rows, Source, open};
use super::{BATCH_BYTES, BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch, SqlError};
use core::cell::RefCell;
use core::future::Future;
use expr::Env;
use expr::rows::{datums_heap_bytes, row_bytes};
use plan::step::{Step, StepOp};
use txn::OpError;
use window::{Host, Partition, WindowCall};

pub(super) struct WindowRows<'a> {
    cx: &'a Cx<'a>,
    input: Source<'a>,
    partition: &'a [u32],
    order: Vec<(u32, bool, bool)>,
    calls: &'a [WindowCall],
    slots: Slots,
    /// Rows of the input, from the place on that belong to further partitions.
    rest: Option<(RowBatch, usize)>,
    current: Option<Current<'a>>,
}

/// A partition whose rows are being given.
struct Current<'a> {
    rows: Long<'a, RowList>,
    partition: Partition<'a>,
    lent: Lent<'a>,
}

/// What window functions may use. Memory is given back with the partition.
struct Lent<'a> {
    cx: &'a Cx<'a>,
    slots: Slots,
    charge: RefCell<Charge<'a>>,
}

impl Host for Lent<'_> {
    fn charge(&self, bytes: usize) -> Result<(), SqlError> {
        self.charge.borrow_mut().add(bytes)
    }

    fn env(&self) -> Env<'_> {
        self.cx.env(&self.slots)
    }

    fn breathe(&self, units: usize) -> impl Future<Output = ()> {
        self.cx.breathe(units)
    }
}

impl<'a> WindowRows<'a> {
    pub(super) fn new(cx: &'a Cx<'a>, step: &'a Step, slots: &Slots) -> WindowRows<'a> {
        let StepOp::Window {
            input,
            partition,
            order,
            calls,
        } = &step.op
        else {
            unreachable!("opened for window functions");
        };
        let order = order.iter();
        WindowRows {
            cx,
            input: open(cx, input, slots),
            partition,
            order: order
                .map(|key| (key.column, key.descending, key.nulls_first))
                .collect(),
            calls,
            slots: slots.clone(),
            rest: None,
            current: None,
        }
    }

    /// Collects the next partition, if there is one.
    async fn collect(&mut self) -> Result<Option<Current<'a>>, OpError> {
        let mut rows = Long::new(self.cx.port, RowList::new());
        let mut charge = Charge::new(self.cx.port);
        loop {
            let (mut batch, from) = match self.rest.take() {
                Some(rest) => rest,
                None => match self.input.next().await? {
                    Some(batch) => (batch, 0),
                    None => break,
                },
            };
            let count = batch.rows as usize;
            let first: &[Datum] = rows.get(0).map_or_else(|| batch.row(from), Vec::as_slice);
            let same = |row: &[Datum]| {
                let mut columns = self.partition.iter().map(|column| *column as usize);
                columns.all(|column| row[column].compare(&first[column]).is_eq())
            };
            // Where the next partition begins.
            let end = match same(batch.row(count - 1)) {
                true => count,
                false => (from..count)
                    .find(|at| !same(batch.row(*at)))
                    .unwrap_or(count),
            };
            let before = rows.capacity_bytes();
            let mut bytes = 0;
            let width = batch.width as usize;
            for at in from..end {
                let row = batch.datums[at * width..(at + 1) * width].iter_mut();
                let row: Vec<Datum> = row.map(core::mem::take).collect();
                bytes += row_bytes(&row);
                rows.push(row);
            }
            charge.add(bytes + rows.capacity_bytes() - before)?;
            self.cx.breathe(end - from).await;
            if end < count {
                self.rest = Some((batch, end));
                break;
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let lent = Lent {
            cx: self.cx,
            slots: self.slots.clone(),
            charge: RefCell::new(charge),
        };
        let partition = Partition::new(self.calls, &rows, &self.order, &lent).await?;
        Ok(Some(Current {
            rows,
            partition,
            lent,
        }))
    }
}

impl Rows for WindowRows<'_> {
    async fn pull(&mut self) -> Result<Option<RowBatch>, OpError> {
        let mut out: Option<RowBatch> = None;
        let mut bytes = 0;
        loop {
            if self.current.is_none() {
                self.current = self.collect().await?;
            }
            let Some(Current {
                rows,
                partition,
                lent,
            }) = &mut self.current
            else {
                return Ok(out);
            };
            while let Some(row) = partition.current().and_then(|at| rows.get(at)) {
                let width = row.len() + self.calls.len();
                let out = out.get_or_insert_with(|| RowBatch::new(width));
                let start = out.datums.len();
                out.datums.extend_from_slice(row);
                partition.next(rows, lent, &mut out.datums).await?;
                out.rows += 1;
                bytes += datums_heap_bytes(&out.datums[start..]);
                if out.rows as usize >= BATCH_ROWS || bytes >= BATCH_BYTES {
                    break;
                }
            }
            if partition.current().is_none() {
                self.current = None;
            }
            if let Some(made) = &out
                && (made.rows as usize >= BATCH_ROWS || bytes >= BATCH_BYTES)
            {
                self.cx.breathe(made.rows as usize).await;
                return Ok(out);
            }
        }
    }
}
