//! What an ALTER TABLE does with the rows that are there: it fills new columns and looks whether
//! what is new of the table holds.
//!
//! A row that lacks the value of a new column has NULL there. Rows that are written meanwhile have
//! the default, so a row is filled once, however often its batch is tried. Generated columns are
//! computed for every row: what they are computed from may just have been filled.

use super::{plan_cx, settings_of, table};
use crate::batch::{Batch, FillCx, FillPosition, not_unique};
use crate::port::Port;
use base::{Datum, SqlError, SqlState};
use bind::PlanCx;
use catalog::Table;
use plan::{AlterFill, DefaultValues};
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, OpError};

/// One batch of `fill` from `position` on. Gives where to go on, `None` at the end.
///
/// # Errors
/// 23502, 23503, 23505, 23514 for rows that do not fit, and those of computing defaults and checks.
pub async fn alter(
    port: Rc<dyn Port>,
    fill: &AlterFill,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let filled = batch(port, fill, position).await;
    filled.map_err(in_the_end)
}

/// The error with the names that columns, indexes and constraints have in the end.
pub(super) fn in_the_end(error: OpError) -> OpError {
    let OpError::Sql(error) = error else {
        return error;
    };
    let fields = error.fields();
    let constraint = catalog::without_mark(&fields.constraint);
    let column = catalog::without_mark(&fields.column);
    let error = error.map_texts('.', &catalog::without_mark);
    error.constraint(constraint).column(column).into()
}

async fn batch(
    port: Rc<dyn Port>,
    fill: &AlterFill,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, &fill.table)?;
    let columns = positions(&table, &fill.columns)?;
    // Defaults are those of the session that adds the columns.
    let own = columns
        .iter()
        .find_map(|at| table.column_at(*at).zone.clone());
    let zone = own.unwrap_or_else(|| settings_of(&*port));
    let plan_cx = plan_cx(&*port, &zone);
    let cx = FillCx::new(&*port);
    let mode = match fill.columns.is_empty() {
        true => LockMode::Shared,
        false => LockMode::Exclusive,
    };
    let Batch { rows, next } = cx.locked_rows(&table, position, mode).await?;
    let mut rows: Vec<Vec<Datum>> = rows.iter().map(<[Datum]>::to_vec).collect();
    if !columns.is_empty() {
        let written = written_table(&table, fill, &columns);
        let filled = fill_columns(&cx, &plan_cx, &written, &columns, &mut rows).await;
        filled.map_err(|error| of_new_index(&table, fill, error))?;
    }
    for column in positions(&table, &fill.not_null)? {
        if rows.iter().any(|row| row[usize::from(column)].is_null()) {
            let name = &table.column_at(column).name;
            let table = &table.name;
            let message = format!("column \"{name}\" of relation \"{table}\" contains null values");
            return Err(SqlError::new(SqlState::NOT_NULL, message)
                .table(table)
                .column(name)
                .into());
        }
    }
    let rows: Vec<&[Datum]> = rows.iter().map(Vec::as_slice).collect();
    for constraint in &fill.constraints {
        let writer = plan::constraint_writer(&plan_cx, &table, constraint)?;
        cx.validate(&writer, &rows).await?;
    }
    for name in &fill.indexes {
        let number = table.indexes().position(|index| index.name == *name);
        let number = number.ok_or_else(|| {
            let message = format!("index \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })?;
        cx.write_entries(&table, number, &rows).await?;
    }
    Ok(next)
}

/// The table as its rows are written. What an index computes, and the new values of a column that
/// gets another type, come into the rows with their entries there, which follow together; nobody
/// has written an entry of a row that lacks it.
fn written_table(table: &Arc<Table>, fill: &AlterFill, columns: &[u16]) -> Arc<Table> {
    let mut columns = columns.iter().map(|at| table.column_at(*at));
    if !columns.all(|column| column.of_index || column.shown_at.is_some()) {
        return table.clone();
    }
    let mut written = (**table).clone();
    let others = |index: &catalog::Index| !fill.indexes.contains(&index.name);
    written.secondary.retain(others);
    Arc::new(written)
}

/// The error of a row that has the same entry as another one in an index that is being made.
fn of_new_index(table: &Table, fill: &AlterFill, error: OpError) -> OpError {
    match error {
        OpError::Sql(found) if found.state() == SqlState::UNIQUE => {
            let index = found.fields().constraint.clone();
            match fill.indexes.contains(&index) {
                true => not_unique(table, &index, &found).into(),
                false => found.into(),
            }
        }
        other => other,
    }
}

/// Places of columns by their names; those that are being filled are found, too.
fn positions(table: &Table, names: &[String]) -> Result<Vec<u16>, SqlError> {
    let place = |name: &String| {
        let found = table.column(name).map(|(at, _)| at);
        found.ok_or_else(|| {
            let table = &table.name;
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    };
    names.iter().map(place).collect()
}

/// Gives rows that lack values of `columns` their defaults.
async fn fill_columns(
    cx: &FillCx<'_>,
    plan_cx: &PlanCx<'_>,
    table: &Arc<Table>,
    columns: &[u16],
    rows: &mut [Vec<Datum>],
) -> Result<(), OpError> {
    let is_generated = |column: &u16| table.column_at(*column).generated.is_some();
    let (generated, columns): (Vec<u16>, Vec<u16>) =
        columns.iter().copied().partition(is_generated);
    let computed = match generated.is_empty() {
        true => Vec::new(),
        false => plan::generated_values(plan_cx, table)?,
    };
    let columns = columns.as_slice();
    let lacks = |row: &Vec<Datum>| columns.iter().any(|c| row[usize::from(*c)].is_null());
    let count = rows.iter().filter(|row| lacks(row)).count();
    let values = match count {
        0 => DefaultValues::Same(Vec::new()),
        _ => plan::default_values(plan_cx, table, columns, count)?,
    };
    let mut drawn = match &values {
        DefaultValues::Same(_) => Vec::new(),
        DefaultValues::Drawn(plan) => cx.values(plan).await?,
    }
    .into_iter();
    let mut changes = Vec::new();
    for row in rows.iter_mut() {
        let new = match &values {
            _ if !lacks(row) => Vec::new(),
            DefaultValues::Same(all) => {
                let all = all.iter().map(|value| cx.value(value));
                all.collect::<Result<Vec<_>, _>>()?
            }
            DefaultValues::Drawn(_) => drawn.next().expect("as many as were asked for"),
        };
        let old = row.clone();
        for (column, value) in columns.iter().zip(new) {
            let place = &mut row[usize::from(*column)];
            if place.is_null() {
                *place = value;
            }
        }
        for (column, value) in computed.iter().filter(|(own, _)| generated.contains(own)) {
            row[usize::from(*column)] = cx.value_over(value, row)?;
        }
        if *row != old {
            changes.push((old, row.clone()));
        }
    }
    cx.change_rows(table, changes).await
}
