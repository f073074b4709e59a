//! Rows of a table that are copied into other key spaces, perhaps with other values
//! (docs/adr/0049-keys-by-a-copy.md).

use super::{Copied, plan_cx, settings_of, table};
use crate::batch::{Batch, FillCx, FillPosition};
use crate::port::Port;
use base::{Datum, SqlError, SqlState};
use bind::PlanCx;
use catalog::{Column, ColumnState, Table, Validity};
use expr::Expr;
use plan::step::Writer;
use std::rc::Rc;
use std::sync::Arc;
use txn::OpError;

/// Places of columns, and what their values are computed by.
type Computed = Vec<(u16, Expr)>;

/// What becomes of a table.
struct Target {
    table: Arc<Table>,
    /// Columns that get other values.
    computed: Computed,
    /// What they are computed with ([`settings_of`]).
    settings: String,
}

/// Copies rows of a table into the key space of the primary key, whose key columns are set, as rows
/// of the new columns, and writes the entries of its other indexes into their key spaces. Columns
/// that get other values are computed, and checks that read them are looked at; a row number is
/// drawn if the key has one (`Command::SetPrimaryKey`). No transaction may write the table
/// meanwhile.
///
/// # Errors
/// 23502 for a NULL in a key column, 23505 for a key that occurs twice, 23514 for a row that does
/// not meet a check, and those of computing values.
pub async fn primary_key(
    port: Rc<dyn Port>,
    copy: &Copied,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, &copy.table)?;
    let Target {
        table: target,
        computed,
        settings,
    } = target(&*port, &table, copy)?;
    let checks = checks(&*port, &target, &computed, &settings)?;
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let mut written: Vec<Vec<Datum>> = Vec::with_capacity(rows.rows as usize);
    for row in rows.iter() {
        let mut new = row.to_vec();
        new.resize(target.columns.len(), Datum::Null);
        if let Some(rowid) = target.rowid() {
            new[usize::from(rowid)] = cx.row_number();
        }
        for (at, value) in &computed {
            new[usize::from(*at)] = cx.value_over(value, row)?;
        }
        written.push(new);
    }
    let rows: Vec<&[Datum]> = written.iter().map(Vec::as_slice).collect();
    for row in &rows {
        for key in &target.primary.columns {
            if row[usize::from(key.column)] == Datum::Null {
                return Err(null_in(&target, key.column).into());
            }
        }
    }
    for writer in &checks {
        cx.validate(writer, &rows).await?;
    }
    cx.write_rows(&target, &rows).await?;
    for number in 1..=target.secondary.len() {
        cx.write_entries(&target, number, &rows).await?;
    }
    Ok(next)
}

fn null_in(table: &Table, column: u16) -> SqlError {
    let (column, table) = (&table.column_at(column).name, &table.name);
    let message = format!("column \"{column}\" of relation \"{table}\" contains null values");
    SqlError::new(SqlState::NOT_NULL, message)
        .table(table)
        .column(column)
}

/// Looks whether the rows of `child` from `position` on meet a foreign key of it, if the copy takes
/// the place of the table that was copied. That may be either side. Nobody may write to either one
/// meanwhile. Gives where to go on, `None` at the end.
///
/// # Errors
/// 23503 for a row that does not.
pub async fn refers(
    port: Rc<dyn Port>,
    copy: &Copied,
    (child, constraint): (&str, &str),
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let before = table(&*port, &copy.table)?;
    let target = target(&*port, &before, copy)?;
    let child = match child == copy.table {
        true => target.table.clone(),
        false => table(&*port, child)?,
    };
    let mut database = (**port.database()).clone();
    database.tables.insert(copy.table.clone(), target.table);
    let database = Arc::new(database);
    let plan_cx = PlanCx {
        database: &database,
        ..plan_cx(&*port, &target.settings)
    };
    if !child.foreign_keys.iter().any(|key| key.name == constraint) {
        // It has gone meanwhile.
        return Ok(None);
    }
    let writer = plan::constraint_writer(&plan_cx, &child, constraint)?;
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&child, position).await?;
    let rows: Vec<&[Datum]> = rows.iter().collect();
    cx.validate(&writer, &rows).await?;
    Ok(next)
}

/// What looks whether rows meet the checks that read columns which get other values.
fn checks(
    port: &dyn Port,
    target: &Arc<Table>,
    computed: &Computed,
    settings: &str,
) -> Result<Vec<Writer>, SqlError> {
    let mut writers = Vec::new();
    for check in &target.checks {
        let read = target.columns_of_check(check);
        if check.validity == Validity::Valid && computed.iter().any(|(at, _)| read.contains(at)) {
            let plan_cx = plan_cx(port, settings);
            writers.push(plan::constraint_writer(&plan_cx, target, &check.name)?);
        }
    }
    Ok(writers)
}

/// The table as it is when the copy has taken its place, and the values over the rows that there
/// are of columns that get others.
fn target(port: &dyn Port, table: &Arc<Table>, copy: &Copied) -> Result<Target, SqlError> {
    let mut columns = copy.columns.clone();
    let mut with = (**table).clone();
    let (mut places, mut own) = (Vec::new(), None);
    for (column, at) in columns.iter_mut().zip(0u16..) {
        let Some(name) = catalog::replaced(&column.name).map(String::from) else {
            continue;
        };
        with.columns.push(Column {
            hidden: true,
            ..column.clone()
        });
        places.push(at);
        // Values are those of the session that changes the type.
        own = column.zone.take().or(own);
        column.name = name;
        column.generated = None;
        column.state = ColumnState::Ready;
    }
    let settings = own.unwrap_or_else(|| settings_of(port));
    let mut computed = Vec::new();
    if !places.is_empty() {
        let plan_cx = plan_cx(port, &settings);
        let first = table.columns.len() as u16;
        let values = plan::generated_values(&plan_cx, &Arc::new(with))?.into_iter();
        computed.extend(values.filter_map(|(at, value)| {
            let number = usize::from(at.checked_sub(first)?);
            Some((places[number], value))
        }));
    }
    let primary = &copy.primary;
    let table = Arc::new(Table {
        primary: primary.clone(),
        columns,
        primary_constraint: (!primary.name.is_empty()).then(|| primary.name.clone()),
        secondary: copy.secondary.clone(),
        ..(**table).clone()
    });
    Ok(Target {
        table,
        computed,
        settings,
    })
}
