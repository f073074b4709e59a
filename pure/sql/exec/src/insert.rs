//! INSERT.

use super::conflict::Touched;
use super::long::Long;
use super::source::{RowList, append_rows, open};
use super::upsert::Upsert;
use super::write::{Change, Changes, apply, complete_row, project};
use super::{BATCH_ROWS, Charge, Cx, Slots};
use base::{Datum, RowBatch};
use plan::step::InsertPlan;
use txn::OpError;

/// Puts the hidden row number into a row of a table without primary key.
pub(super) fn number_row(cx: &Cx<'_>, rowid: Option<u16>, row: &mut [Datum]) {
    if let Some(rowid) = rowid {
        row[usize::from(rowid)] = Datum::Int(cx.port.unique() as i64);
    }
}

/// Runs an INSERT; returns the number of rows that were inserted or updated.
pub(super) async fn run(
    cx: &Cx<'_>,
    plan: &InsertPlan,
    slots: &Slots,
    emit: bool,
) -> Result<u64, OpError> {
    let rowid = plan.writers[0].table.rowid();
    let mut source = open(cx, &plan.source, slots);
    let mut held = Long::new(cx.port, RowList::new());
    let mut charge = Charge::new(cx.port);
    let mut touched = Touched::new(cx.port);
    let mut count = 0;
    loop {
        let batch = source.next().await?;
        let end = batch.is_none();
        if let Some(batch) = batch {
            let first = held.len();
            append_rows(batch, &mut held, &mut charge)?;
            for at in first..held.len() {
                number_row(cx, rowid, &mut held[at]);
                complete_row(cx, &plan.writers[0], &mut held[at])?;
            }
        }
        if !plan.materialize || end {
            for from in (0..held.len()).step_by(BATCH_ROWS) {
                let to = held.len().min(from + BATCH_ROWS);
                let rows = (from..to).map(|at| core::mem::take(&mut held[at]));
                let rows = rows.collect();
                count += batch_of(cx, plan, rows, slots, &mut touched, emit).await?;
                cx.breathe(to - from).await;
            }
            held = Long::new(cx.port, RowList::new());
            charge = Charge::new(cx.port);
        }
        if end {
            return Ok(count);
        }
    }
}

async fn batch_of(
    cx: &Cx<'_>,
    plan: &InsertPlan,
    rows: Vec<Vec<Datum>>,
    slots: &Slots,
    touched: &mut Touched<'_>,
    emit: bool,
) -> Result<u64, OpError> {
    let written: Vec<Vec<Datum>> = match &plan.conflict {
        None => {
            let changes: Vec<Change> = rows
                .into_iter()
                .map(|row| Change {
                    old: None,
                    new: Some(row),
                })
                .collect();
            apply(cx, &plan.writers, 0, Changes::few(&changes), slots).await?;
            changes
                .into_iter()
                .filter_map(|change| change.new)
                .collect()
        }
        Some(on) => {
            let mut upsert = Upsert::new(cx, &plan.writers, on, slots, touched);
            upsert.insert(rows).await?
        }
    };
    if let Some(returning) = &plan.returning {
        let mut out = RowBatch::new(returning.len());
        for row in &written {
            project(cx, returning, row, slots, &mut out)?;
        }
        if emit {
            cx.emit(out).await;
        }
    }
    Ok(written.len() as u64)
}
