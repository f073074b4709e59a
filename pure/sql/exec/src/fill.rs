//! Work over existing rows that a schema change needs. Each call does one batch inside the
//! transaction of its port; the caller commits it and calls again with the position that it got.

mod alter;

use crate::batch::{Batch, FillCx};
use crate::port::Port;
use base::{Datum, SqlError, SqlState};
use bind::PlanCx;
use catalog::{Column, Index, Table};
use expr::zoned;
use plan::AlterFill;
use std::rc::Rc;
use std::sync::Arc;
use txn::OpError;

pub use crate::batch::FillPosition;
pub use alter::alter;

/// Work of a batch; names refer to the catalog in use.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum Work {
    /// Writes entries of a building index.
    Index { table: String, index: String },
    /// Copies rows into the key space of a new primary key.
    PrimaryKey {
        table: String,
        primary: Index,
        secondary: Vec<Index>,
        columns: Vec<Column>,
    },
    /// Checks that rows meet a check or foreign key.
    Validate { table: String, constraint: String },
    /// Fills new columns and looks through rows for an ALTER TABLE.
    Alter(Box<AlterFill>),
}

/// Does the batch that begins at `position`. Gives where the next one does, `None` at the end.
///
/// # Errors
/// Those of the kind of work.
pub async fn batch(
    port: Rc<dyn Port>,
    work: &Work,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    match work {
        Work::Index { table, index: name } => index(port, table, name, position).await,
        Work::PrimaryKey {
            table,
            primary,
            secondary,
            columns,
        } => primary_key(port, table, (primary, secondary), columns, position).await,
        Work::Validate { table, constraint } => validate(port, table, constraint, position).await,
        Work::Alter(fill) => alter(port, fill, position).await,
    }
}

/// The table `name` of the port's database.
fn table(port: &dyn Port, name: &str) -> Result<Arc<Table>, SqlError> {
    port.database().table(name).cloned().ok_or_else(|| {
        let message = format!("relation \"{name}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// Writes entries of an index that is being built, for the rows from `position` on (`None`: from
/// the start). Gives where to go on, `None` at the end.
///
/// # Errors
/// 23505 if two rows have the same entry of a unique index.
pub async fn index(
    port: Rc<dyn Port>,
    table_name: &str,
    index_name: &str,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, table_name)?;
    let number = table.indexes().position(|index| index.name == index_name);
    let Some(number) = number else {
        let message = format!("index \"{index_name}\" does not exist");
        return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message).into());
    };
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let rows: Vec<&[Datum]> = rows.iter().collect();
    cx.write_entries(&table, number, &rows).await?;
    Ok(next)
}

/// Copies rows of a table without primary key into the key space `primary`, whose key columns are
/// set, as rows of `columns`, and writes the entries of its other indexes into the key spaces of
/// `secondary`. No transaction may write the table meanwhile.
///
/// # Errors
/// 23502 for a NULL in a key column, 23505 for a key that occurs twice.
pub async fn primary_key(
    port: Rc<dyn Port>,
    table_name: &str,
    (primary, secondary): (&Index, &[Index]),
    columns: &[Column],
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, table_name)?;
    let target = Table {
        primary: primary.clone(),
        columns: columns.to_vec(),
        primary_constraint: Some(primary.name.clone()),
        secondary: secondary.to_vec(),
        ..(*table).clone()
    };
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let rows: Vec<&[Datum]> = rows.iter().map(|row| &row[..columns.len()]).collect();
    for row in &rows {
        for key in &primary.columns {
            if row[usize::from(key.column)] == Datum::Null {
                let name = &columns[usize::from(key.column)].name;
                let message =
                    format!("column \"{name}\" of relation \"{table_name}\" contains null values");
                return Err(SqlError::new(SqlState::NOT_NULL, message)
                    .table(table_name)
                    .column(name)
                    .into());
            }
        }
    }
    cx.write_rows(&target, &rows).await?;
    for number in 1..=secondary.len() {
        cx.write_entries(&target, number, &rows).await?;
    }
    Ok(next)
}

/// What checks and defaults are planned with, for a session whose time zone is set to `zone`.
pub(crate) fn plan_cx<'a>(port: &'a dyn Port, zone: Option<&'a str>) -> PlanCx<'a> {
    PlanCx {
        catalog: port.catalog(),
        database: port.database(),
        param_types: &[],
        zone: zoned::of_setting(zone),
        path: catalog::KEPT_PATH,
        rows: &|_| None,
    }
}

/// Looks whether the rows from `position` on meet a check or foreign key. Gives where to go on,
/// `None` at the end. New rows are checked by their writers already.
///
/// # Errors
/// 23514, 23503 for a row that does not, and those of computing a check.
pub async fn validate(
    port: Rc<dyn Port>,
    table_name: &str,
    constraint: &str,
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, table_name)?;
    let zone = port.setting("timezone");
    let plan_cx = plan_cx(&*port, zone.as_deref());
    let writer = plan::constraint_writer(&plan_cx, &table, constraint)?;
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let rows: Vec<&[Datum]> = rows.iter().collect();
    cx.validate(&writer, &rows).await?;
    Ok(next)
}
