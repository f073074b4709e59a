//! One batch of a schema change's work over existing rows, as a transaction of the node.

use crate::port::StatementPort;
use base::Tag;
use catalog::{Column, Index};
use exec::Running;
use exec::fill::FillPosition;
use plan::AlterFill;
use std::cell::RefCell;
use std::rc::Rc;

/// Work of a batch; names refer to the catalog in use.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Work {
    /// Writes entries of a building index.
    Index { table: String, index: String },
    /// Copies rows into the key space of a new primary key.
    PrimaryKey {
        table: String,
        primary: Index,
        columns: Vec<Column>,
    },
    /// Checks that rows meet a check or foreign key.
    Validate { table: String, constraint: String },
    /// Fills new columns and looks through rows for an ALTER TABLE.
    Alter(AlterFill),
}

/// Runs the batch that begins at `position`, and leaves the beginning of the next one in `next`.
pub(crate) fn batch(
    port: Rc<StatementPort>,
    work: Work,
    position: Option<FillPosition>,
    next: Rc<RefCell<Option<FillPosition>>>,
) -> Running {
    Box::pin(async move {
        let found = match work {
            Work::Index { table, index } => {
                exec::fill::index(port, &table, &index, position).await?
            }
            Work::PrimaryKey {
                table,
                primary,
                columns,
            } => exec::fill::primary_key(port, &table, &primary, &columns, position).await?,
            Work::Validate { table, constraint } => {
                exec::fill::validate(port, &table, &constraint, position).await?
            }
            Work::Alter(fill) => exec::fill::alter(port, &fill, position).await?,
        };
        *next.borrow_mut() = found;
        Ok(Tag::Word("FILL"))
    })
}
