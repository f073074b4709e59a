//! Commands that change the catalog, and why one may be refused.

use crate::alter::TableAction;
use crate::blocks::BlockChange;
use crate::comments::Subject;
use crate::composite::Attribute;
use crate::desc::*;
use crate::domains::DomainChange;
use crate::enums::EnumChange;
use crate::functions::FunctionChange;
use crate::policies::PolicyChange;
use crate::schemas::SchemaChange;
use crate::sequences::SequenceChange;
use crate::table_locks::TableLock;
use crate::views::View;
use alloc::string::String;
use alloc::vec::Vec;
use base::{IndexId, SqlError, TableId};
use serde::{Deserialize, Serialize};

/// One change. Tables, views, sequences, types, and indexes that are dropped or renamed, are
/// given by their full names ([`base::full_name`]). What [`Catalog::apply`] gives may be empty in
/// a command: numbers (`id`, `changed`),
/// names of constraints, indexes and sequences, slot columns, partition columns, parent columns.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum Command {
    /// Fixes the placement of an empty cluster.
    Bootstrap(base::Placement),
    /// A new empty database.
    CreateDatabase {
        name: String,
        protocol: ProtocolKind,
        execution: Execution,
        if_not_exists: bool,
    },
    /// Removes a database and everything in it.
    DropDatabase { name: String, if_exists: bool },
    /// A database that is to run `protocol` closes (`Draining`), goes on (`Gathering`), or opens
    /// again as it was (`None`).
    Switch {
        database: String,
        protocol: ProtocolKind,
        switching: Option<Switching>,
    },
    /// A database that is closed will run another protocol (`Opening`).
    SetProtocol {
        database: String,
        protocol: ProtocolKind,
    },
    /// A new table with its indexes and constraints and the sequences of its serial columns. No
    /// columns in `primary` means no primary key: the table gets the hidden row number. A sequence
    /// without a name is named after its owner, and becomes that column's default unless the
    /// column is an identity or has a default.
    CreateTable {
        database: String,
        table: Table,
        sequences: Vec<Sequence>,
        if_not_exists: bool,
    },
    /// Removes tables; `cascade` also removes foreign keys that point to them.
    DropTable {
        database: String,
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    /// A new secondary index; starts as `building`.
    CreateIndex {
        database: String,
        table: String,
        index: Index,
        if_not_exists: bool,
    },
    /// The backfill of an index is complete.
    FinishIndex {
        database: String,
        table: String,
        index: String,
    },
    /// The index serves no reader from here on; writers keep it as it is until it is dropped.
    RetireIndex {
        database: String,
        names: Vec<String>,
        if_exists: bool,
    },
    /// Removes an index.
    DropIndex {
        database: String,
        names: Vec<String>,
        if_exists: bool,
    },
    /// A new sequence.
    CreateSequence {
        database: String,
        sequence: Sequence,
        if_not_exists: bool,
    },
    /// Removes sequences.
    DropSequence {
        database: String,
        names: Vec<String>,
        if_exists: bool,
        /// Defaults that draw from them go along.
        cascade: bool,
    },
    /// Stops or allows writes to a table while its rows are rewritten or validated.
    Freeze {
        database: String,
        table: String,
        frozen: bool,
    },
    /// Gives a table a primary key, takes it away from a table, or gives its columns other values.
    /// `primary` is the reserved key space into which the rows were copied from the key space
    /// `replaces`, in rows of `columns`. Entries of the other indexes hold the key, so each of
    /// these has been written again, into a reserved key space too; `secondary` has them all.
    /// Without a key the last of `columns` is the row number, and `drops` may name a column that
    /// goes with the key. `cascade`: what needs a key or column that goes, goes along. A column
    /// with other values is named by [`crate::retyped()`]; `looked_at` are the foreign keys of such
    /// columns, on either side, as they were when rows were looked at for those that were valid,
    /// each with the table that has it. A column that is being filled is ready with the key.
    SetPrimaryKey {
        database: String,
        table: String,
        constraint: String,
        primary: Index,
        secondary: Vec<Index>,
        columns: Vec<Column>,
        partition: Vec<u16>,
        drops: Option<String>,
        replaces: IndexId,
        cascade: bool,
        looked_at: Vec<(String, ForeignKey)>,
    },
    /// Adds a foreign key. From then on both tables' writers check it, whatever its validity.
    AddForeignKey {
        database: String,
        table: String,
        foreign_key: ForeignKey,
    },
    /// Adds a check constraint. From then on writers check it, whatever its validity.
    AddCheck {
        database: String,
        table: String,
        check: Check,
    },
    /// What is known of the rows that were there before a check or foreign key.
    SetValidity {
        database: String,
        table: String,
        constraint: String,
        validity: Validity,
    },
    /// Removes a check or a foreign key.
    DropConstraint {
        database: String,
        table: String,
        constraint: String,
        if_exists: bool,
    },
    /// Sets the comment on an object, or removes it.
    Comment {
        database: String,
        subject: Subject,
        text: Option<String>,
    },
    /// Reserves one key space for the rows that a schema change copies: it joins
    /// `Catalog::reserved`; its number is returned in [`Applied`]. `SetPrimaryKey` takes it out of
    /// there.
    Reserve,
    /// Gives a reserved key space up: its rows may go.
    Unreserve { index: IndexId },
    /// Changes a table, by all actions or none.
    AlterTable {
        database: String,
        table: String,
        actions: Vec<TableAction>,
    },
    /// Changes a sequence.
    AlterSequence {
        database: String,
        name: String,
        change: SequenceChange,
    },
    /// Gives an index (and its constraint) or a sequence another name.
    RenameRelation {
        database: String,
        from: String,
        to: String,
    },
    /// A new view, or another query for one that there is.
    CreateView {
        database: String,
        view: View,
        replace: bool,
    },
    /// Removes views; `cascade` also removes the views that use them.
    DropView {
        database: String,
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    /// Gives a view another name.
    RenameView {
        database: String,
        name: String,
        to: String,
        if_exists: bool,
    },
    /// A new enum type with these labels, or a new composite type.
    CreateEnum {
        database: String,
        name: String,
        labels: Vec<String>,
        /// Of a composite type, which has no labels.
        attributes: Option<Vec<Attribute>>,
    },
    /// Changes an enum or composite type.
    AlterEnum {
        database: String,
        name: String,
        change: EnumChange,
    },
    /// Removes enum types.
    DropEnum {
        database: String,
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    /// A change of the schemas.
    Schema {
        database: String,
        change: SchemaChange,
    },
    /// A change of functions and procedures.
    Function {
        database: String,
        change: FunctionChange,
    },
    /// A change of a domain.
    Domain {
        database: String,
        change: DomainChange,
    },
    /// A change of roles, owners or privileges.
    Rights {
        database: String,
        change: rights::Change,
    },
    /// A change of the row security of a table.
    Policy {
        database: String,
        table: String,
        change: PolicyChange,
    },
    /// A new materialized view: a table, and the query whose rows it is to hold.
    CreateStored {
        database: String,
        table: Table,
        view: View,
        if_not_exists: bool,
    },
    /// Removes materialized views; `cascade` also removes the views that use them.
    DropStored {
        database: String,
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    /// Says whether a materialized view may be read.
    SetFilled {
        database: String,
        name: String,
        filled: bool,
    },
    /// What becomes of the changes of a session's open block.
    Block {
        database: String,
        session: i32,
        change: BlockChange,
    },
    /// The block of a session locks tables. Node 1 has it wait until nobody is in its way, at most
    /// for `within_us` microseconds (0: no wait), or without a limit. The rows of `fills` are as
    /// its new schema wants them when the block's transaction has committed, and not before.
    LockTables {
        database: String,
        session: i32,
        tables: Vec<TableId>,
        mode: TableLock,
        fills: Option<TableId>,
        within_us: Option<u64>,
    },
}

impl Command {
    /// The first index of a new primary key that has no key space yet.
    pub fn unplaced(&mut self) -> Option<&mut Index> {
        let Command::SetPrimaryKey {
            primary, secondary, ..
        } = self
        else {
            return None;
        };
        let mut all = core::iter::once(primary).chain(secondary);
        all.find(|index| index.id == IndexId(0))
    }
}

/// What [`Catalog::apply`] did beyond the new catalog.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Applied {
    /// `IF [NOT] EXISTS` made it a no-op (the catalog is the same): text for a NOTICE, one line
    /// per name.
    pub skipped: Option<String>,
    /// Texts for NOTICEs about names that `IF EXISTS` passed over while others were removed.
    pub notices: Vec<String>,
    /// Key spaces whose rows may be removed.
    pub dropped: Vec<IndexId>,
    /// The table that was created or changed.
    pub table: Option<TableId>,
    /// First number of a reservation.
    pub reserved: u32,
}

/// Refusals carry the SQLSTATE that PostgreSQL uses for the same mistake.
pub type CatalogError = SqlError;
