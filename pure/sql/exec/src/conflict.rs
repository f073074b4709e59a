//! INSERT ... ON CONFLICT.

use super::long::Long;
use super::request::get;
use super::scan::{primary_key, rows_of};
use super::write::{Change, Changes, apply, check_row, checked_key, complete_row, locked_row};
use super::{Charge, Cx, Slots};
use crate::keys::entry_key;
use crate::port::{OpFuture, Port};
use base::{Datum, Key, SqlError, SqlState};
use bind::check_arbiter;
use catalog::{Index, Table};
use expr::program::{Body, FormulaChange, ProgramPlan, formula};
use expr::rows::{entry_bytes, heap_bytes};
use expr::{Expr, eval, eval_bool};
use plan::formula::over_proposed;
use plan::step::{ConflictPlan, ConflictUpdate, Writer, table_index};
use std::collections::BTreeSet;
use txn::{LockMode, Op, OpError, OpResult, Read};

/// Rows that the statement has written so far, by their keys.
pub(super) struct Touched<'a> {
    keys: Long<'a, BTreeSet<Vec<u8>>>,
    /// A row of the statement has moved to another key of an arbiter: whether a later one conflicts
    /// is known only when those before it have been written.
    pub(super) moved: bool,
    charge: Charge<'a>,
}

impl<'a> Touched<'a> {
    pub(super) fn new(port: &'a dyn Port) -> Touched<'a> {
        Touched {
            keys: Long::new(port, BTreeSet::new()),
            moved: false,
            charge: Charge::new(port),
        }
    }

    /// Whether the statement has written the row.
    pub(super) fn contains(&self, key: &Vec<u8>) -> bool {
        self.keys.contains(key)
    }

    /// Adds a row.
    pub(super) fn insert(&mut self, key: Vec<u8>) -> Result<(), SqlError> {
        let own = heap_bytes(key.capacity()) + entry_bytes(size_of::<Vec<u8>>());
        if self.keys.insert(key) {
            self.charge.add(own)?;
        }
        Ok(())
    }
}

/// The indexes that decide: that one, or every unique one. Hidden row numbers are always new.
pub(super) fn arbiters(table: &Table, arbiter: Option<usize>) -> Vec<usize> {
    let numbered = table.rowid().is_some();
    let unique = table.indexes().enumerate();
    let unique = unique.filter(|(n, index)| index.unique && !(numbered && *n == 0));
    match arbiter {
        Some(arbiter) => vec![arbiter],
        None => unique.map(|(n, _)| n).collect(),
    }
}

/// Whether a row has an entry that others can conflict with.
pub(super) fn has_entry(index: &Index, row: &[Datum]) -> bool {
    index.has_entry(row) && !index.is_open(row)
}

/// The key of the first row that has an entry of `row` in an arbiter: that index, or every unique
/// one.
async fn existing(
    cx: &Cx<'_>,
    table: &Table,
    arbiter: Option<usize>,
    row: &[Datum],
) -> Result<Option<Key>, OpError> {
    for number in arbiters(table, arbiter) {
        // As in PostgreSQL: if no index before it decides.
        check_arbiter(table, table_index(table, number))?;
        if let Some(key) = find(cx, table, number, row).await? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Inserts a row, or does what the statement says if it exists. Gives the row that was written.
///
/// The entries that may conflict are locked exclusively before anything is written, so that no
/// other transaction inserts them in between.
pub(super) async fn insert(
    cx: &Cx<'_>,
    writers: &[Writer],
    plan: &ConflictPlan,
    row: Vec<Datum>,
    slots: &Slots,
    touched: &mut Touched<'_>,
) -> Result<Option<Vec<Datum>>, OpError> {
    let writer = &writers[0];
    let table = &*writer.table;
    check_row(cx, writer, &row)?;
    let mut met = Met::Unknown;
    if let Some(ConflictUpdate {
        changes: Some(changes),
        ..
    }) = &plan.update
    {
        met = change(cx, table, changes, &row, slots, touched).await?;
    }
    let key = match met {
        Met::Changed => return Ok(Some(row)),
        Met::Absent => None,
        Met::Unknown => existing(cx, table, plan.arbiter, &row).await?,
    };
    let Some(key) = key else {
        touched.insert(entry_key(table, &table.primary, &row).bytes)?;
        let changes = [Change {
            old: None,
            new: Some(row),
        }];
        apply(cx, writers, 0, Changes::few(&changes), slots).await?;
        let [change] = changes;
        return Ok(change.new);
    };
    let Some(change) = changed(cx, writer, plan, (key, row), slots, touched).await? else {
        return Ok(None);
    };
    let changes = [change];
    apply(cx, writers, 0, Changes::few(&changes), slots).await?;
    let [change] = changes;
    Ok(change.new)
}

/// What becomes of the existing row.
async fn changed(
    cx: &Cx<'_>,
    writer: &Writer,
    plan: &ConflictPlan,
    (key, row): (Key, Vec<Datum>),
    slots: &Slots,
    touched: &mut Touched<'_>,
) -> Result<Option<Change>, OpError> {
    let table = &*writer.table;
    let Some(ConflictUpdate {
        assignments,
        condition,
        ..
    }) = &plan.update
    else {
        return Ok(None);
    };
    if touched.contains(&key.bytes) {
        return Err(met_again().into());
    }
    let bytes = key.bytes.clone();
    let Some(old) = locked_row(cx, table, key).await? else {
        return Ok(None);
    };
    Ok(updated(
        cx,
        writer,
        (assignments, condition.as_ref()),
        (bytes, old),
        &row,
        slots,
        touched,
    )?)
}

/// The change of an existing row, given with its key, if the condition is true.
pub(super) fn updated(
    cx: &Cx<'_>,
    writer: &Writer,
    (assignments, condition): (&[(u16, Expr)], Option<&Expr>),
    (key, old): (Vec<u8>, Vec<Datum>),
    row: &[Datum],
    slots: &Slots,
    touched: &mut Touched<'_>,
) -> Result<Option<Change>, SqlError> {
    let both: Vec<Datum> = old.iter().chain(row).cloned().collect();
    let env = cx.env(slots);
    if let Some(condition) = condition
        && eval_bool(condition, &both.as_slice(), &env)? != Some(true)
    {
        return Ok(None);
    }
    let mut new = old.clone();
    for (column, value) in assignments {
        new[usize::from(*column)] = eval(value, &both.as_slice(), &env)?;
    }
    complete_row(cx, writer, &mut new)?;
    let table = &*writer.table;
    let moved = entry_key(table, &table.primary, &new).bytes;
    if moved != key {
        touched.insert(moved)?;
    }
    touched.insert(key)?;
    Ok(Some(Change {
        old: Some(old),
        new: Some(new),
    }))
}

/// Rows that a part of a statement is about to insert or to change, by the entries that may
/// conflict.
pub(super) struct Pending<'a> {
    entries: Long<'a, BTreeSet<(usize, Vec<u8>)>>,
    touched: Touched<'a>,
}

impl<'a> Pending<'a> {
    pub(super) fn new(port: &'a dyn Port) -> Pending<'a> {
        Pending {
            entries: Long::new(port, BTreeSet::new()),
            touched: Touched::new(port),
        }
    }
}

/// As [`insert`] for a statement that writes at its end: what becomes of the row, if anything.
pub(super) async fn decided(
    cx: &Cx<'_>,
    writer: &Writer,
    plan: &ConflictPlan,
    row: Vec<Datum>,
    slots: &Slots,
    pending: &mut Pending<'_>,
) -> Result<Option<Change>, OpError> {
    let table = &*writer.table;
    let key = existing(cx, table, plan.arbiter, &row).await?;
    let key = match key {
        Some(key) => key,
        None => {
            let own = arbiters(table, plan.arbiter).into_iter();
            let own = own.filter(|number| has_entry(table_index(table, *number), &row));
            let own = own.map(|number| {
                let key = entry_key(table, table_index(table, number), &row);
                (number, key.bytes)
            });
            let own: Vec<_> = own.collect();
            if own.iter().any(|entry| pending.entries.contains(entry)) {
                return match plan.update {
                    Some(_) => Err(met_again().into()),
                    None => Ok(None),
                };
            }
            for entry in own {
                let bytes = heap_bytes(entry.1.capacity()) + entry_bytes(size_of_val(&entry));
                pending.touched.charge.add(bytes)?;
                pending.entries.insert(entry);
            }
            return Ok(Some(Change {
                old: None,
                new: Some(row),
            }));
        }
    };
    changed(cx, writer, plan, (key, row), slots, &mut pending.touched).await
}

/// What is known of the existing row.
#[derive(Clone, Copy)]
pub(super) enum Met {
    /// It was there, and is changed.
    Changed,
    /// There is none, and nobody else inserts one before the transaction ends.
    Absent,
    Unknown,
}

/// Changes the existing row by a formula, without reading it, if the values fit one.
async fn change(
    cx: &Cx<'_>,
    table: &Table,
    changes: &[FormulaChange],
    row: &[Datum],
    slots: &Slots,
    touched: &mut Touched<'_>,
) -> Result<Met, OpError> {
    let key = checked_key(entry_key(table, &table.primary, row), &table.primary.name)?;
    if touched.contains(&key.bytes) {
        return Err(met_again().into());
    }
    let bytes = key.bytes.clone();
    let Some(future) = started_change(cx, key, changes, row, slots)? else {
        return Ok(Met::Unknown);
    };
    let met = met_by(future.await?);
    if matches!(met, Met::Changed) {
        touched.insert(bytes)?;
    }
    Ok(met)
}

/// Starts the change of a row by a formula, if the values fit one.
pub(super) fn started_change<'a>(
    cx: &Cx<'a>,
    key: Key,
    changes: &[FormulaChange],
    row: &[Datum],
    slots: &Slots,
) -> Result<Option<OpFuture<'a>>, SqlError> {
    let changes = over_proposed(changes, row);
    let Some(formula) = formula(&changes, &cx.env(slots))? else {
        return Ok(None);
    };
    let to = cx.port.home(key.slot);
    let op = Op::Formula { key, formula };
    Ok(Some(OpFuture::start(cx.port, to, cx.planned, op, false)))
}

/// What the answer to it says.
pub(super) fn met_by(answer: OpResult) -> Met {
    match answer {
        OpResult::Modified { found: false, .. } => Met::Absent,
        OpResult::Modified { .. } => Met::Changed,
        other => panic!("a change of a row was answered by {other:?}"),
    }
}

/// 21000.
pub(super) fn met_again() -> SqlError {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    SqlError::new(SqlState::CARDINALITY_VIOLATION, message).hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate \
         constrained values.",
    )
}

/// The primary key of the row that has the same entry in a unique index, if there is one. The
/// entry is locked either way.
async fn find(
    cx: &Cx<'_>,
    table: &Table,
    number: usize,
    row: &[Datum],
) -> Result<Option<Key>, OpError> {
    let Some((key, future)) = ask(cx, table, number, row, false) else {
        return Ok(None);
    };
    let found = rows_of(future.await)?;
    Ok((found.rows > 0).then(|| found_key(table, number, key, found.row(0))))
}

/// Asks for the entry of a row in a unique index, if it has one there; `whole`: of the primary
/// index for the row.
pub(super) fn ask<'a>(
    cx: &Cx<'a>,
    table: &Table,
    number: usize,
    row: &[Datum],
    whole: bool,
) -> Option<(Key, OpFuture<'a>)> {
    let index = table_index(table, number);
    if !has_entry(index, row) {
        return None;
    }
    let key = entry_key(table, index, row);
    let columns: Vec<u16> = match (number, whole) {
        (0, false) => Vec::new(),
        (0, true) => (0..table.columns.len() as u16).collect(),
        _ => table.primary.columns.iter().map(|key| key.column).collect(),
    };
    let columns = columns.into_iter().enumerate();
    let projection = columns.map(|(i, column)| {
        let ty = table.columns[usize::from(column)].ty;
        Expr::Column(i as u32, ty)
    });
    let program = ProgramPlan::new(Body::Rows {
        filter: None,
        projection: projection.collect(),
    })
    .bind(&[]);
    let read = Read::Lock(LockMode::Exclusive);
    let future = get(cx, 0, table, key.clone(), read, program);
    Some((key, future))
}

/// The primary key of the row whose entry was found at `key`.
pub(super) fn found_key(table: &Table, number: usize, key: Key, entry: &[Datum]) -> Key {
    match number {
        0 => key,
        _ => primary_key(table, entry),
    }
}
