//! Work over existing rows that a schema change needs. Each call does one batch inside the
//! transaction of its port; the caller commits it and calls again with the position that it got.

mod alter;
mod copy;

use crate::batch::{Batch, FillCx};
use crate::port::{OpFuture, Port};
use base::{Datum, IndexId, Key, SLOT_COUNT, Slot, SqlError, SqlState, Tag, Type};
use bind::PlanCx;
use catalog::{Column, Index, Table};
use expr::zoned;
use plan::{AlterFill, Fill};
use std::rc::Rc;
use std::sync::Arc;
use txn::{LockMode, Op, OpError, OpResult, Read};

pub use crate::batch::FillPosition;
pub use alter::alter;
pub use copy::{primary_key, refers};

/// Work of a batch; names refer to the catalog in use.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum Work {
    /// Writes entries of a building index.
    Index { table: String, index: String },
    /// Copies rows into the key space of a new primary key.
    PrimaryKey(Copied),
    /// Checks that rows meet a foreign key when those of a copy take their places.
    Refers {
        copy: Copied,
        child: String,
        constraint: String,
    },
    /// Checks that rows meet a check or foreign key.
    Validate { table: String, constraint: String },
    /// Fills new columns and looks through rows for an ALTER TABLE.
    Alter(Box<AlterFill>),
    /// Finds out whether the transaction of a block has committed: there is no next batch then.
    Decide(IndexId),
}

/// A table whose rows are copied into other key spaces (`Command::SetPrimaryKey`).
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub struct Copied {
    pub table: String,
    pub primary: Index,
    pub secondary: Vec<Index>,
    pub columns: Vec<Column>,
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
        Work::PrimaryKey(copy) => primary_key(port, copy, position).await,
        Work::Refers {
            copy,
            child,
            constraint,
        } => refers(port, copy, (child, constraint), position).await,
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
        Fill::PrimaryKey { .. } | Fill::Refers { .. } | Fill::Stages(_) | Fill::Decide(_) => {
            panic!("a block does not do this itself")
        }
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

/// What plans must know of the session's settings ([`zoned::of_settings`]).
pub(crate) fn settings_of(port: &dyn Port) -> String {
    let (zone, style) = (port.setting("timezone"), port.setting("intervalstyle"));
    zoned::of_settings(zone.as_deref(), style.as_deref())
}

/// What checks and defaults are planned with, for a session with these settings.
pub(crate) fn plan_cx<'a>(port: &'a dyn Port, zone: &'a str) -> PlanCx<'a> {
    PlanCx {
        catalog: port.catalog(),
        database: port.database(),
        param_types: &[],
        param_names: &[],
        zone: zoned::of_written(zone),
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
    let zone = settings_of(&*port);
    let plan_cx = plan_cx(&*port, &zone);
    let writer = plan::constraint_writer(&plan_cx, &table, constraint)?;
    let cx = FillCx::new(&*port);
    let Batch { rows, next } = cx.rows(&table, position).await?;
    let rows: Vec<&[Datum]> = rows.iter().collect();
    let met = cx.validate(&writer, &rows).await;
    met.map_err(alter::in_the_end)?;
    Ok(next)
}
