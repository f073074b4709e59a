//! One operation on one row.

use super::write::{checked_key, encoded_row};
use super::{Cx, Slots, WINDOW};
use crate::keys::key_capacity;
use crate::port::OpFuture;
use base::key::{encode_datum, slot_of};
use base::{Datum, Key, RowBatch, ShardId, Slot, SqlError, Tag};
use expr::program::formula;
use expr::{Env, NoColumns, eval, value_of};
use plan::step::{PointOp, PointPlan, Step, StepOp};
use std::collections::VecDeque;
use txn::{Op, OpError, OpResult};

/// An operation and where it goes.
pub(super) struct Prepared {
    pub(super) to: ShardId,
    pub(super) op: Op,
}

/// The key of the row; `None` if a part of it is NULL, so that there is no such row.
pub(super) fn point_key(point: &PointPlan, env: &Env<'_>) -> Result<Option<Key>, SqlError> {
    let columns = &point.table.primary.columns;
    let mut bytes = Vec::with_capacity(key_capacity(columns.len()));
    let mut slot = None;
    for (i, (expr, column)) in point.key.iter().zip(columns).enumerate() {
        let mut computed = Datum::Null;
        let datum = value_of(expr, env, &mut computed)?;
        match datum {
            Datum::Null => return Ok(None),
            Datum::Text(text) if text.ends_with(' ') && is_char(point, i) => {
                let trimmed = Datum::Text(text.trim_end_matches(' ').into());
                encode_datum(&mut bytes, &trimmed, column.descending);
            }
            datum => encode_datum(&mut bytes, datum, column.descending),
        }
        if point.slot_is_prefix && i + 1 == point.slot.len() {
            slot = Some(slot_of(&bytes));
        }
    }
    let slot = match slot {
        Some(slot) => slot,
        None => partition_slot(point, env)?,
    };
    Ok(Some(Key::new(point.table.primary.id, slot, bytes)))
}

fn is_char(point: &PointPlan, key: usize) -> bool {
    let column = point.table.primary.columns[key].column;
    matches!(point.table.column_at(column).ty, base::Type::Char(_))
}

fn partition_slot(point: &PointPlan, env: &Env<'_>) -> Result<Slot, SqlError> {
    let mut partition = Vec::with_capacity(16);
    for place in &point.slot {
        let mut computed = Datum::Null;
        let datum = value_of(&point.key[*place], env, &mut computed)?;
        match datum {
            Datum::Text(text) if is_char(point, *place) => {
                let trimmed = Datum::Text(text.trim_end_matches(' ').into());
                encode_datum(&mut partition, &trimmed, false);
            }
            datum => encode_datum(&mut partition, datum, false),
        }
    }
    Ok(slot_of(&partition))
}

/// The operation of a point statement; `None` if it names no row.
pub(super) fn prepare(
    cx: &Cx<'_>,
    point: &PointPlan,
    params: &[Datum],
) -> Result<Option<Prepared>, SqlError> {
    let env = cx.env(params);
    if let PointOp::Insert { .. } = &point.op {
        return prepare_insert(cx, point, &env).map(Some);
    }
    let Some(key) = point_key(point, &env)? else {
        return Ok(None);
    };
    let to = if point.table.replicated {
        cx.port.here()
    } else {
        cx.port.home(key.slot)
    };
    let op = operation(cx, &point.op, key, params)?;
    Ok(Some(Prepared { to, op }))
}

/// The operation on the row of a key, which inserts nothing.
fn operation(cx: &Cx<'_>, op: &PointOp, key: Key, params: &[Datum]) -> Result<Op, SqlError> {
    Ok(match op {
        PointOp::Get { program, lock } => {
            let read = super::scan::read_mode(cx, *lock);
            Op::Get {
                key,
                read,
                program: program.bind(params),
            }
        }
        PointOp::Modify { program, .. } => Op::Modify {
            key,
            program: program.bind(params),
        },
        PointOp::Formula {
            changes, otherwise, ..
        } => match formula(changes, &cx.env(params))? {
            Some(formula) => Op::Formula { key, formula },
            None => Op::Modify {
                key,
                program: otherwise.bind(params),
            },
        },
        PointOp::Insert { .. } => unreachable!("an insert has no key before its row"),
    })
}

/// Does the same with each row of a list of keys, in all copies if the table is replicated; returns
/// the number of rows that were changed.
pub(super) async fn run_each(
    cx: &Cx<'_>,
    each: &PointOp,
    rows: &Step,
    slots: &Slots,
) -> Result<u64, OpError> {
    let StepOp::Scan(scan) = &rows.op else {
        unreachable!("keys are those of a scan");
    };
    let (shards, here) = (cx.port.shards(), cx.port.here());
    let mut started = VecDeque::new();
    let mut count = 0;
    for key in super::scan::point_keys(cx, scan, slots)? {
        let home = [cx.port.home(key.slot)];
        let copies: &[ShardId] = if scan.table.replicated {
            &shards
        } else {
            &home
        };
        let mut op = Some(operation(cx, each, key, slots)?);
        for (at, to) in copies.iter().enumerate() {
            while started.len() >= WINDOW {
                count += written(started.pop_front()).await?;
                cx.breathe(1).await;
            }
            cx.note_op(rows.id, *to);
            let op = match at + 1 == copies.len() {
                true => op.take(),
                false => op.clone(),
            };
            let op = op.expect("the last copy takes it");
            let future = OpFuture::start(cx.port, *to, cx.planned, op, false);
            // Of several copies, that of the coordinator is counted.
            let counts = !scan.table.replicated || *to == here;
            started.push_back((counts, future));
        }
    }
    while !started.is_empty() {
        count += written(started.pop_front()).await?;
    }
    Ok(count)
}

/// How many rows an operation on a row has changed, if it counts.
async fn written(started: Option<(bool, OpFuture<'_>)>) -> Result<u64, OpError> {
    let (counts, future) = started.expect("the caller has looked");
    match future.await? {
        OpResult::Modified { written, .. } => Ok(u64::from(written && counts)),
        other => panic!("a change of a row was answered by {other:?}"),
    }
}

fn prepare_insert(cx: &Cx<'_>, point: &PointPlan, env: &Env<'_>) -> Result<Prepared, SqlError> {
    let PointOp::Insert {
        row,
        shape,
        checks,
        rowid,
    } = &point.op
    else {
        unreachable!("the caller has looked at the kind");
    };
    let mut values = Vec::with_capacity(row.len());
    for value in row {
        values.push(eval(value, &NoColumns, env)?);
    }
    super::insert::number_row(cx, *rowid, &mut values);
    for column in &shape.not_null {
        if values[usize::from(*column)].is_null() {
            return Err(shape.null_violation(*column, &values));
        }
    }
    for (name, check) in checks {
        if eval(check, &values.as_slice(), env)? == Datum::Bool(false) {
            return Err(shape.check_violation(name, &values));
        }
    }
    let primary = &point.table.primary;
    let key = crate::keys::entry_key(&point.table, primary, &values);
    let key = checked_key(key, &primary.name)?;
    let row = encoded_row(&point.table.name, &values)?.into();
    let to = cx.port.home(key.slot);
    let op = Op::Insert { key, row };
    Ok(Prepared { to, op })
}

/// The rows and the tag for the answer of the operation.
pub(super) fn finish(
    cx: &Cx<'_>,
    point: &PointPlan,
    params: &[Datum],
    result: OpResult,
) -> Result<(Option<RowBatch>, Tag), SqlError> {
    Ok(match (&point.op, result) {
        (PointOp::Get { .. }, OpResult::Rows { batch, .. }) => {
            let tag = Tag::Count("SELECT", u64::from(batch.rows));
            (Some(batch), tag)
        }
        (
            PointOp::Modify {
                formulas,
                returning,
                ..
            },
            OpResult::Modified {
                written,
                returning: rows,
                ..
            },
        ) => {
            let count = u64::from(written);
            let tag = match formulas {
                None => Tag::Count("DELETE", count),
                Some(_) => Tag::Count("UPDATE", count),
            };
            (returning.then_some(rows), tag)
        }
        (PointOp::Formula { .. }, OpResult::Modified { found, .. }) => {
            (None, Tag::Count("UPDATE", u64::from(found)))
        }
        (PointOp::Insert { .. }, OpResult::Done) => (None, Tag::Insert(1)),
        (PointOp::Insert { row, .. }, OpResult::Exists) => {
            let mut values = Vec::with_capacity(row.len());
            for value in row {
                values.push(eval(value, &NoColumns, &cx.env(params))?);
            }
            return Err(super::write::duplicate(&point.table, 0, &values));
        }
        (_, other) => panic!("a point operation was answered by {other:?}"),
    })
}

/// The result of a statement that names no row.
pub(super) fn nothing(point: &PointPlan) -> (Option<RowBatch>, Tag) {
    match &point.op {
        PointOp::Get { .. } => (None, Tag::Count("SELECT", 0)),
        PointOp::Modify { formulas: None, .. } => (None, Tag::Count("DELETE", 0)),
        PointOp::Modify { .. } | PointOp::Formula { .. } => (None, Tag::Count("UPDATE", 0)),
        PointOp::Insert { .. } => unreachable!("an insert names a row"),
    }
}

/// Runs a point statement the ordinary way.
pub(super) async fn run(
    cx: &Cx<'_>,
    point: &PointPlan,
    slots: &Slots,
    emit: bool,
) -> Result<Tag, OpError> {
    let Some(Prepared { to, op }) = prepare(cx, point, slots)? else {
        return Ok(nothing(point).1);
    };
    let answer = OpFuture::start(cx.port, to, cx.planned, op, cx.alone).await?;
    let (batch, tag) = finish(cx, point, slots, answer)?;
    if let Some(batch) = batch.filter(|_| emit) {
        cx.emit(batch).await;
    }
    Ok(tag)
}
