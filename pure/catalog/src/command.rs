//! Commands that change the catalog, and why one may be refused.

use crate::desc::*;
use alloc::string::String;
use alloc::vec::Vec;
use base::{IndexId, SqlError, TableId};
use serde::{Deserialize, Serialize};

/// One change. Numbers inside descriptions (`id`, `changed`) are given by [`Catalog::apply`] and may be
/// 0 in a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Fixes the placement of an empty cluster.
    Bootstrap(crate::Placement),
    /// A new empty database.
    CreateDatabase { name: String, protocol: ProtocolKind, execution: Execution, if_not_exists: bool },
    /// Removes a database and everything in it.
    DropDatabase { name: String, if_exists: bool },
    /// A new table with its indexes and constraints and the sequences of its serial columns.
    CreateTable { database: String, table: Table, sequences: Vec<Sequence>, if_not_exists: bool },
    /// Removes tables; `cascade` also removes foreign keys that point to them.
    DropTable { database: String, names: Vec<String>, if_exists: bool, cascade: bool },
    /// A new secondary index; starts as `building`.
    CreateIndex { database: String, table: String, index: Index, if_not_exists: bool },
    /// The backfill of an index is complete.
    FinishIndex { database: String, table: String, index: String },
    /// Removes an index.
    DropIndex { database: String, names: Vec<String>, if_exists: bool },
    /// A new sequence.
    CreateSequence { database: String, sequence: Sequence, if_not_exists: bool },
    /// Removes sequences.
    DropSequence { database: String, names: Vec<String>, if_exists: bool },
    /// Stops or allows writes to a table while its rows are rewritten or validated.
    Freeze { database: String, table: String, frozen: bool },
    /// Gives a table without a primary key one: `new_primary` is the key space into which the rows were
    /// copied, in rows of `columns`.
    SetPrimaryKey { database: String, table: String, constraint: String, primary: Index, columns: Vec<Column>, partition: Vec<u16> },
    /// Adds a validated foreign key.
    AddForeignKey { database: String, table: String, foreign_key: ForeignKey },
    /// Adds a validated check constraint.
    AddCheck { database: String, table: String, check: Check },
    /// Reserves one key space for the rows that a schema change copies: it joins `Catalog::reserved`;
    /// its number is returned in [`Applied`]. `SetPrimaryKey` takes it out of there.
    Reserve,
    /// Gives a reserved key space up: its rows may go.
    Unreserve { index: IndexId },
}

/// What [`Catalog::apply`] did beyond the new catalog.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Applied {
    /// `IF [NOT] EXISTS` made it a no-op: text for a NOTICE.
    pub skipped: Option<String>,
    /// Key spaces whose rows may be removed.
    pub dropped: Vec<IndexId>,
    /// The table that was created or changed.
    pub table: Option<TableId>,
    /// First number of a reservation.
    pub reserved: u32,
}

/// Refusals carry the SQLSTATE that PostgreSQL uses for the same mistake.
pub type CatalogError = SqlError;
