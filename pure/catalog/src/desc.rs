//! Descriptions of databases, tables, columns, indexes and constraints.

use crate::blocks::OpenBlock;
use crate::closing::Closing;
use crate::domains::Domain;
use crate::enums::EnumType;
use crate::functions::Function;
use crate::policies::RowSecurity;
use crate::stored::StoredView;
use crate::views::View;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{DatabaseId, IndexId, Placement, TableId, Type};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The whole catalog at one version.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct Catalog {
    /// Counts applied commands, from 0 (empty).
    pub version: u64,
    /// Next unused object number; tables, indexes and databases share it. Starts at 16384.
    pub next_id: u32,
    /// Homes of slots.
    pub placement: Placement,
    /// Databases by name.
    pub databases: BTreeMap<String, Arc<Database>>,
    /// Key spaces that a running schema change fills (`Command::Reserve`, until `Unreserve` or
    /// `SetPrimaryKey`): their rows are kept although no table has them yet.
    pub reserved: Vec<IndexId>,
    /// The change that keeps something closed, or the last one that did.
    pub closing: Option<Closing>,
    /// Roles, owners and privileges.
    pub rights: Arc<rights::Rights>,
    /// Number of open transaction blocks that have changed the schema, in all databases.
    pub open_blocks: u32,
    /// What its tables weigh, if that is known. It is neither compared nor encoded.
    #[serde(skip)]
    pub weighed: Weighed,
}

/// What the tables of a catalog weigh in its size, in bytes; `None`: it must be counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighed(pub(crate) Option<usize>);

impl PartialEq for Weighed {
    fn eq(&self, _: &Weighed) -> bool {
        true
    }
}

/// The transaction protocol of a database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum ProtocolKind {
    /// Strict two-phase locking and two-phase commit.
    #[default]
    TwoPhase,
    /// Rows move to the transaction.
    Leap,
    /// Timestamps and formulas order transactions.
    Formula,
}

impl ProtocolKind {
    /// All protocols that are built.
    pub const ALL: [ProtocolKind; 3] = [
        ProtocolKind::TwoPhase,
        ProtocolKind::Leap,
        ProtocolKind::Formula,
    ];
    /// The one that every node knows and under which no row ever moves: counters of sequences
    /// follow it, and a database whose change to another cannot be completed.
    pub const COMMON: ProtocolKind = ProtocolKind::TwoPhase;

    /// The protocol of this name.
    pub fn of_name(name: &str) -> Option<ProtocolKind> {
        ProtocolKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Whether rows move to the shards that want them. Such a row has one place, so tables are not
    /// replicated, and a client's transactions run on the client's node.
    pub fn moves_rows(self) -> bool {
        match self {
            ProtocolKind::TwoPhase | ProtocolKind::Formula => false,
            ProtocolKind::Leap => true,
        }
    }

    /// Whether its transactions have odd ids. Promises and decisions of `two_phase` and `formula`
    /// stand in one journal, and those without rows tell of no database.
    pub fn has_odd_ids(self) -> bool {
        match self {
            ProtocolKind::TwoPhase | ProtocolKind::Leap => false,
            ProtocolKind::Formula => true,
        }
    }

    /// As it is written in `CREATE DATABASE … WITH (protocol = …)`.
    pub fn name(self) -> &'static str {
        match self {
            ProtocolKind::TwoPhase => "two_phase",
            ProtocolKind::Leap => "leap",
            ProtocolKind::Formula => "formula",
        }
    }
}

/// Reads what [`ProtocolKind::name`] gives; the error lists the names that there are.
impl FromStr for ProtocolKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ProtocolKind, String> {
        let mut all = ProtocolKind::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or_else(|| format!("there are {}", ProtocolKind::ALL.map(Self::name).join(", ")))
    }
}

/// How far a database is that changes its protocol. It takes no new transactions meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Switching {
    /// Open transactions come to their end.
    Draining,
    /// Every row comes to the shard of its slot.
    Gathering,
    /// Every node comes to know the new protocol for good.
    Opening,
}

/// How a shard runs the transactions of a `two_phase` database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub enum Execution {
    /// Many transactions interleave under row and range locks.
    #[default]
    Interleaved,
    /// One exclusive lock per shard (H-Store's way).
    Serial,
}

/// One database.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Database {
    /// Its number; also its oid.
    pub id: DatabaseId,
    /// Its name.
    pub name: String,
    /// Its transaction protocol.
    pub protocol: ProtocolKind,
    /// How shards execute (two_phase only).
    pub execution: Execution,
    /// Tables by full name ([`base::full_name`]), as everything else of a schema.
    pub tables: BTreeMap<String, Arc<Table>>,
    /// Sequences by name.
    pub sequences: BTreeMap<String, Sequence>,
    /// It is changing its protocol.
    pub switching: Option<Switching>,
    /// Texts of COMMENT ON.
    pub comments: BTreeMap<Commented, String>,
    /// Views by name.
    pub views: BTreeMap<String, Arc<View>>,
    /// Enum types by name.
    pub enums: BTreeMap<String, Arc<EnumType>>,
    /// Numbers of the schemas by name, without those of the system.
    pub schemas: BTreeMap<String, u32>,
    /// Functions and procedures by name, those of one name by age.
    pub functions: BTreeMap<String, Vec<Arc<Function>>>,
    /// Sessions that it may have on a node; -1: no limit.
    pub connection_limit: i32,
    /// Row security of the tables that have any.
    pub row_security: BTreeMap<TableId, RowSecurity>,
    /// Materialized views by name; each has a table of its name.
    pub stored: BTreeMap<String, StoredView>,
    /// Domains by name.
    pub domains: BTreeMap<String, Arc<Domain>>,
    /// Open transaction blocks that have changed it.
    pub blocks: Vec<OpenBlock>,
}

/// An object that a comment is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Commented {
    /// The database itself.
    Database,
    /// A schema by its number.
    Schema(u32),
    /// A table, index, sequence or view by its number.
    Relation(u32),
    /// A column of a table or view by its position, from 0.
    Column(TableId, u16),
    /// A constraint of a table by its name.
    Constraint(TableId, String),
    /// A function by its number.
    Function(u32),
    /// An enum type or domain by its number.
    Type(u32),
}

/// One table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    /// Its number; also its oid.
    pub id: TableId,
    /// Its full name ([`base::full_name`]).
    pub name: String,
    /// Catalog version at which this table, its indexes or its constraints last changed.
    pub changed: u64,
    /// Columns in order. A table without a primary key has a hidden last column `$rowid`.
    pub columns: Vec<Column>,
    /// The primary index: the rows themselves.
    pub primary: Index,
    /// Name of the primary key constraint; `None` if the key is the hidden row number.
    pub primary_constraint: Option<String>,
    /// Secondary indexes, unique constraints included.
    pub secondary: Vec<Index>,
    /// Positions of the partition columns (a subset of the primary key columns).
    pub partition: Vec<u16>,
    /// Kept whole on every node (broadcast table).
    pub replicated: bool,
    /// Check constraints, as SQL text.
    pub checks: Vec<Check>,
    /// Foreign keys of which this table is the child.
    pub foreign_keys: Vec<ForeignKey>,
    /// Foreign keys of which this table is the parent: (child table, constraint name).
    pub referenced_by: Vec<(String, String)>,
    /// Whether a schema change that rewrites rows is under way: writes answer 40001 and retry.
    pub frozen: bool,
}

/// One column.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type with modifier.
    pub ty: Type,
    /// The number of its domain, whose values are of that type.
    pub domain: Option<u32>,
    /// NULL is refused.
    pub not_null: bool,
    /// Default expression as SQL text.
    pub default: Option<String>,
    /// Its values are computed from other columns of the row when that is written, by this
    /// expression (SQL text): `GENERATED ALWAYS AS (..) STORED`, or what an index is on.
    pub generated: Option<String>,
    /// An index is on it, or on the rows for which it is true: no statement can name it.
    pub of_index: bool,
    /// `GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY`.
    pub identity: Option<Identity>,
    /// No statement can name it: the row number of a table without primary key, a column that a
    /// schema change is filling, one that was dropped.
    pub hidden: bool,
    /// Where a schema change has left it.
    pub state: ColumnState,
    /// Where statements see it among the columns, if that is not its place: it has taken the place
    /// of another column, or will ([`ColumnState::Filling`]).
    pub shown_at: Option<u16>,
    /// Time zone and style of intervals of the session that changes a type or adds a column with a
    /// default, for the values in the rows that are there.
    pub zone: Option<String>,
    /// The number of the collation that was named for it; 0: that of its type. All order alike.
    pub collation: u32,
}

impl Column {
    /// A column that may be NULL, without default.
    pub fn new(name: &str, ty: Type) -> Column {
        Column {
            name: name.into(),
            ty,
            domain: None,
            not_null: false,
            default: None,
            generated: None,
            of_index: false,
            identity: None,
            hidden: false,
            state: ColumnState::Ready,
            shown_at: None,
            zone: None,
            collation: 0,
        }
    }
}

/// How far schema changes are with a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ColumnState {
    /// Nothing is under way.
    #[default]
    Ready,
    /// ADD COLUMN gives it to the rows that are there. New rows get its default; no statement sees
    /// it. What is written of it (NOT NULL) holds when it is ready.
    Filling,
    /// SET NOT NULL looks through the rows that are there. New rows are refused a NULL.
    Checking,
    /// It was dropped. Its place stays: rows that were written before have its values.
    Dropped,
}

/// Kind of identity column.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Identity {
    /// A given value is refused.
    Always,
    /// A given value wins.
    ByDefault,
}

/// A key space over columns of one table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Index {
    /// Number of the key space; also its oid.
    pub id: IndexId,
    /// Its name; it is in the schema of its table.
    pub name: String,
    /// Key columns in order. A non-unique secondary index, and a unique one whose key holds a NULL,
    /// appends the primary key columns to the stored key.
    pub columns: Vec<IndexColumn>,
    /// No two rows with equal, non-NULL keys.
    pub unique: bool,
    /// Made by a UNIQUE or PRIMARY KEY constraint (then the constraint has the index's name).
    pub constraint: bool,
    /// Columns whose encoding gives the slot: the table's partition columns if the index holds
    /// them all (then entries live with their rows), else its first column (global index).
    pub slot_columns: Vec<u16>,
    /// Only rows in which this column is true have an entry (`WHERE`).
    pub predicate: Option<u16>,
    /// Columns of INCLUDE, for those who ask the catalog: entries do not hold them.
    pub included: Vec<u16>,
    /// Operator classes of the columns, if any is another one than that of its type: all have the
    /// same order, so they are for those who ask the catalog.
    pub classes: Vec<Option<String>>,
    /// NULLS NOT DISTINCT: keys with NULLs are equal if all their values are.
    pub nulls_equal: bool,
    /// Still being built: written to, not read from.
    pub building: bool,
    /// When its constraint is checked. A deferrable one may have, until its transaction ends,
    /// several entries of one key: all but the first with the row's primary key behind it.
    pub deferral: Deferral,
    /// It stands for the primary key of a table with numbered rows: a deferrable one, for rows
    /// must differ in what they lie by.
    pub of_key: bool,
}

/// One column of an index key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct IndexColumn {
    /// Position in the table's columns, from 0.
    pub column: u16,
    /// Largest first.
    pub descending: bool,
    /// Where NULLs were said to be. Entries have them behind all values, or before them if these
    /// are descending: reads in another order sort.
    pub nulls_first: bool,
}

/// A check constraint.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// The condition as SQL text over the table's columns.
    pub expression: String,
    /// Whether all rows are known to meet it.
    pub validity: Validity,
}

/// Whether the rows that were there before a check or a foreign key are known to meet it. New rows
/// are checked in every state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Validity {
    /// They do.
    Valid,
    /// Not checked (`NOT VALID`).
    NotValid,
    /// ADD CONSTRAINT looks through them; if one does not, the constraint goes.
    Adding,
    /// VALIDATE CONSTRAINT looks through them; if one does not, it is [`Validity::NotValid`].
    Validating,
}

/// A foreign key of a child table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its name.
    pub name: String,
    /// Child columns.
    pub columns: Vec<u16>,
    /// Parent table, by its full name.
    pub parent: String,
    /// Parent columns; the key columns of its primary key or of a unique index.
    pub parent_columns: Vec<u16>,
    /// What a delete of the parent does.
    pub on_delete: Action,
    /// What a change of the parent key does.
    pub on_update: Action,
    /// `MATCH FULL`: all columns are NULL or none. Otherwise (`MATCH SIMPLE`) a row with a NULL
    /// in any column references nothing.
    pub match_full: bool,
    /// Whether all rows are known to meet it.
    pub validity: Validity,
    /// When it is checked.
    pub deferral: Deferral,
    /// DISABLE TRIGGER ALL of the child: rows that are written into it are not looked at.
    pub child_off: bool,
    /// DISABLE TRIGGER ALL of the parent: when rows leave it nothing is looked at, and no action is
    /// done.
    pub parent_off: bool,
}

/// When a constraint is checked: at the end of each statement, or of the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Deferral {
    /// NOT DEFERRABLE: of each statement.
    #[default]
    Never,
    /// DEFERRABLE: of each statement, unless SET CONSTRAINTS puts it off.
    Possible,
    /// INITIALLY DEFERRED: of the transaction, unless SET CONSTRAINTS says otherwise.
    Initial,
}

/// Referential action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Action {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// A sequence. Its counter is a row of its own key space, so it is durable and placed like any row;
/// shards draw blocks of numbers from it, outside of the drawing transaction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sequence {
    /// Key space that holds the one counter row.
    pub id: IndexId,
    /// Its full name.
    pub name: String,
    /// First value.
    pub start: i64,
    /// First value since RESTART, which gave it another key space.
    pub first: Option<i64>,
    /// `smallint`, `integer` or `bigint`: bounds lie within it.
    pub ty: Type,
    /// Step, not 0.
    pub increment: i64,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// Behind its last value it begins again, with the smallest or, counting down, the largest.
    pub cycle: bool,
    /// Table column that owns it (serial, identity): dropped with it.
    pub owned_by: Option<(String, String)>,
}
