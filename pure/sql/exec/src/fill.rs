//! Work over existing rows that a schema change needs. Each call does one batch inside the
//! transaction of its port; the caller commits it and calls again with the position that it got.

mod alter;

use crate::batch::{Batch, FillCx};
use crate::port::{OpFuture, Port};
use base::{Datum, IndexId, Key, SLOT_COUNT, Slot, SqlError, SqlState, Tag, Type};
use bind::PlanCx;
use catalog::{Column, ColumnState, Index, Table};
use expr::{Expr, zoned};
use plan::{AlterFill, Fill};
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, Op, OpError, OpResult, Read};

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
    /// Finds out whether the transaction of a block has committed: there is no next batch then.
    Decide(IndexId),
}

/// Writes the row by which a block's transaction tells that it has committed, unless it is there:
/// whoever writes it first decides. Gives whether the transaction commits, or has.
///
/// # Errors
/// Those of the protocol.
pub async fn decide(port: &dyn Port, marker: IndexId, commits: bool) -> Result<bool, OpError> {
    let slot = Slot((marker.0 % u32::from(SLOT_COUNT)) as u16);
    let key = Key::new(marker, slot, Vec::new());
    let (to, planned) = (port.home(slot), port.catalog().version);
    let row = base::row::to_vec(&[Datum::Bool(commits)]).into_boxed_slice();
    let insert = Op::Insert {
        key: key.clone(),
        row,
    };
    if OpFuture::start(port, to, planned, insert, false).await? != OpResult::Exists {
        return Ok(commits);
    }
    let program = expr::program::whole_row(&[Type::Bool]);
    let read = Read::Lock(LockMode::Exclusive);
    let get = Op::Get { key, read, program };
    let OpResult::Rows { batch, .. } = OpFuture::start(port, to, planned, get, false).await? else {
        unreachable!("a get answers rows")
    };
    let row = batch.iter().next().and_then(|row| row[0].as_bool());
    Ok(row == Some(true))
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
        Work::Decide(marker) => {
            let committed = decide(&*port, *marker, false).await?;
            Ok((!committed).then(FillPosition::default))
        }
    }
}

/// Does all of the work inside of one transaction.
///
/// # Errors
/// Those of the kind of work.
///
/// # Panics
/// If it is no work that a block does for itself.
pub(crate) async fn whole(port: Rc<dyn Port>, fill: &Fill) -> Result<Tag, OpError> {
    let work = match fill.clone() {
        Fill::Index { table, index } => Work::Index { table, index },
        Fill::Validate { table, constraint } => Work::Validate { table, constraint },
        Fill::Alter(fill) => Work::Alter(fill),
        Fill::PrimaryKey { .. } | Fill::Decide(_) => panic!("a block does not do this itself"),
    };
    let mut position = None;
    loop {
        position = batch(port.clone(), &work, position).await?;
        if position.is_none() {
            return Ok(Tag::Word("ALTER TABLE"));
        }
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

/// Copies rows of a table into the key space `primary`, whose key columns are set, as rows of
/// `columns`, and writes the entries of its other indexes into the key spaces of `secondary`.
/// Columns that get other values are computed; a row number is drawn if the key has one
/// (`Command::SetPrimaryKey`). No transaction may write the table meanwhile.
///
/// # Errors
/// 23502 for a NULL in a key column, 23505 for a key that occurs twice, and those of computing
/// values.
pub async fn primary_key(
    port: Rc<dyn Port>,
    table_name: &str,
    (primary, secondary): (&Index, &[Index]),
    columns: &[Column],
    position: Option<FillPosition>,
) -> Result<Option<FillPosition>, OpError> {
    let table = table(&*port, table_name)?;
    let (columns, computed) = new_columns(&*port, &table, columns)?;
    let target = Table {
        primary: primary.clone(),
        columns,
        primary_constraint: (!primary.name.is_empty()).then(|| primary.name.clone()),
        secondary: secondary.to_vec(),
        ..(*table).clone()
    };
    let columns = &target.columns;
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let mut written: Vec<Vec<Datum>> = Vec::with_capacity(rows.rows as usize);
    for row in rows.iter() {
        let mut new = row.to_vec();
        new.resize(columns.len(), Datum::Null);
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

/// Places of columns, and what their values are computed by.
type Computed = Vec<(u16, Expr)>;

/// The columns that rows have in the end, and the values over the rows that there are of those that
/// get others.
fn new_columns(
    port: &dyn Port,
    table: &Arc<Table>,
    columns: &[Column],
) -> Result<(Vec<Column>, Computed), SqlError> {
    let mut columns = columns.to_vec();
    let mut with = (**table).clone();
    let (mut places, mut zone) = (Vec::new(), port.setting("timezone"));
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
        zone = column.zone.take().or(zone);
        column.name = name;
        column.generated = None;
        column.state = ColumnState::Ready;
    }
    if places.is_empty() {
        return Ok((columns, Vec::new()));
    }
    let plan_cx = plan_cx(port, zone.as_deref());
    let first = table.columns.len() as u16;
    let computed = plan::generated_values(&plan_cx, &Arc::new(with))?.into_iter();
    let new = computed.filter_map(|(at, value)| {
        let number = usize::from(at.checked_sub(first)?);
        Some((places[number], value))
    });
    Ok((columns, new.collect()))
}

/// What checks and defaults are planned with, for a session whose time zone is set to `zone`.
pub(crate) fn plan_cx<'a>(port: &'a dyn Port, zone: Option<&'a str>) -> PlanCx<'a> {
    PlanCx {
        catalog: port.catalog(),
        database: port.database(),
        param_types: &[],
        param_names: &[],
        zone: zoned::of_setting(zone),
        path: catalog::KEPT_PATH,
        viewer: bind::Viewer::default(),
        rows: &|_| None,
        values: &|_| None,
        paths: Default::default(),
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
