//! What planning gives: the plan of one statement and what the session must know about it.

use alloc::sync::Arc;
use base::{IndexId, OutColumn, TableId, Type};
use bind::objects::ObjectUse;
use catalog::{Command, Table, TableLock};
use parse::OnCommit;
use parse::session::SessionCommand;
use serde::{Deserialize, Serialize};

/// A planned statement; immutable and shared between sessions and shards of a node.
pub struct Plan {
    /// What to do.
    pub kind: PlanKind,
    /// Types of `$1..`.
    pub params: Vec<Type>,
    /// Result columns; empty for statements without a result.
    pub columns: Arc<[OutColumn]>,
    /// Whether it returns rows (also with no columns).
    pub returns_rows: bool,
    /// Catalog version it was made with; it must be made again when the database's tables that it
    /// uses have changed.
    pub catalog_version: u64,
    /// Whether it writes rows (refused in READ ONLY transactions).
    pub writes: bool,
    /// Whether it takes locks under snapshot isolation levels too (FOR UPDATE).
    pub locks: bool,
    /// The tables of which it locks rows (FOR UPDATE).
    pub locked: Box<[TableId]>,
    /// What it reads, if that is all it does.
    pub reads: Reads,
    /// Time zone and style of intervals of the session that it was made for
    /// ([`expr::zoned::of_settings`]).
    pub zone: Box<str>,
    /// The schemas in which its names were looked up.
    pub path: Box<[u32]>,
    /// The numbers of rows of its tables have decided how it goes about: with others another plan
    /// may be better.
    pub by_rows: bool,
    /// It reads what the session alone knows: its statements, its cursors.
    pub reads_session: bool,
    /// The constants of its text have decided which index it reads.
    pub by_values: bool,
    /// What it does with large objects.
    pub objects: ObjectUse,
    /// What the statement is called if no transaction block can have it.
    pub alone: Option<&'static str>,
    /// What planning has looked at: names, expressions, conditions, inputs of joins.
    pub work: u64,
    /// What the role that runs it needs.
    pub needs: rights::Needs,
    /// For whom it was made.
    pub viewer: rights::Viewer,
}

impl Plan {
    /// Work over the rows of a table, inside of the transaction that runs it.
    pub fn fill(fill: Fill, catalog_version: u64) -> Plan {
        let kind = PlanKind::Run(crate::step::Run {
            inits: Vec::new(),
            slots: 0,
            planned: catalog_version,
            action: crate::step::Action::Fill(Box::new(fill)),
            steps: 1,
            sizes: false,
        });
        Plan {
            writes: true,
            ..Plan::plain(kind, catalog_version)
        }
    }

    /// A plan without parameters that returns no rows.
    pub fn plain(kind: PlanKind, catalog_version: u64) -> Plan {
        Plan {
            kind,
            params: Vec::new(),
            columns: Arc::from([]),
            returns_rows: false,
            catalog_version,
            writes: false,
            locks: false,
            locked: Box::default(),
            reads: Reads::Keys,
            zone: Box::default(),
            path: Box::default(),
            objects: ObjectUse::None,
            alone: None,
            work: 0,
            by_rows: false,
            reads_session: false,
            by_values: false,
            needs: rights::Needs::default(),
            viewer: rights::Viewer::default(),
        }
    }

    /// Whether it is EXPLAIN ANALYZE.
    pub fn is_analyzed(&self) -> bool {
        matches!(&self.kind, PlanKind::Run(run) if run.action.is_analyzed())
    }

    /// Tells of the tables that it uses in a way that a lock of the table may exclude.
    pub fn each_held(&self, told: &mut dyn FnMut(TableId, TableLock)) {
        self.each_written(&mut |table| told(table, TableLock::RowExclusive));
        let locked = self.locked.iter();
        locked.for_each(|table| told(*table, TableLock::RowShare));
        if let PlanKind::Lock(lock) = &self.kind {
            lock.tables.iter().for_each(|table| told(*table, lock.mode));
        }
    }

    /// Tells of the tables whose rows it may write, those that follow by foreign keys included.
    pub fn each_written(&self, told: &mut dyn FnMut(TableId)) {
        if let (PlanKind::Run(run), true) = (&self.kind, self.writes) {
            run.action.each_written(&mut |table: &Table| told(table.id));
        }
    }
}

/// What a statement reads. A transaction of one statement that only reads ranges need not lock
/// them (docs/adr/0015-reads-of-one-statement.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// Nothing, or single rows by their whole keys; or it writes, locks rows or has other effects.
    Keys,
    /// Ranges, and it does nothing else.
    Ranges,
}

/// Kinds of statements by the part of the server that runs them.
pub enum PlanKind {
    /// Run by `exec` inside a transaction: SELECT, INSERT, UPDATE, DELETE, VALUES,
    /// EXPLAIN, SHOW of server facts, TRUNCATE, COPY.
    Run(crate::step::Run),
    /// Run by the session: transaction control and settings.
    Session(SessionCommand),
    /// Run by the node as a schema change.
    Ddl(DdlPlan),
    /// A schema change and then a statement: CREATE TABLE ... AS.
    CreateAs(Box<CreateAs>),
    /// REFRESH MATERIALIZED VIEW.
    Refresh(Box<Refresh>),
    /// Accepted without effect (VACUUM, ANALYZE, CHECKPOINT, ...): the command tag.
    Nothing(&'static str),
    /// LOCK TABLE.
    Lock(Box<LockPlan>),
    /// Run inside a transaction, on all shards on which it may have written: part of SAVEPOINT and
    /// ROLLBACK TO, which the session runs.
    Savepoint(txn::Savepoint),
    /// Run inside a transaction: SET CONSTRAINTS, and the checks before a commit.
    Constraints(parse::Constraints),
    /// Run inside a transaction whose session has changed the schema of tables that it had written
    /// to before, ahead of the change and of the commit.
    Adopt(Box<Adopt>),
}

/// What was written before changes of the schema goes on to be right behind them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Adopt {
    /// See [`txn::Savepoint::Renew`].
    pub renewed: Vec<txn::Savepoint>,
    /// The key space of the row that says whether the transaction has committed, before it does.
    pub marker: Option<IndexId>,
}

/// LOCK TABLE.
#[derive(Clone, PartialEq, Debug)]
pub struct LockPlan {
    /// The tables that other sessions can know.
    pub tables: Vec<TableId>,
    /// Their full names.
    pub names: Vec<String>,
    /// The mode.
    pub mode: TableLock,
    /// It does not wait.
    pub nowait: bool,
}

/// A schema change in steps: commands, then work over existing rows, then commands.
#[derive(Clone, PartialEq, Debug)]
pub struct DdlPlan {
    /// Command tag, for example `CREATE TABLE`.
    pub tag: &'static str,
    /// Applied first, as one catalog version each.
    pub before: Vec<Command>,
    /// Work over existing rows, after all nodes have the version of `before`.
    pub fill: Option<Fill>,
    /// Applied when the work succeeded.
    pub after: Vec<Command>,
    /// Applied when it failed.
    pub undo: Vec<Command>,
    /// Texts of notices that are known before.
    pub notices: Vec<String>,
    /// The full name of a relation that goes with its session, and what a commit does with it.
    pub temporary: Option<(String, OnCommit)>,
}

/// A new table and the statement that fills it.
#[derive(Clone, PartialEq, Debug)]
pub struct CreateAs {
    /// Makes the table.
    pub create: DdlPlan,
    /// The text of the INSERT.
    pub insert: Box<str>,
    /// Takes the table away when the INSERT has failed.
    pub undo: DdlPlan,
    /// The full name of a materialized view.
    pub stored: Option<String>,
    /// Lets others read it.
    pub finish: Option<DdlPlan>,
}

/// Other rows for a materialized view.
#[derive(Clone, PartialEq, Debug)]
pub struct Refresh {
    /// Its full name.
    pub name: String,
    /// The text of the DELETE.
    pub empty: Box<str>,
    /// The text of the INSERT.
    pub insert: Box<str>,
    /// Lets others read it, if they may not yet.
    pub finish: Option<DdlPlan>,
}

impl Fill {
    /// The table whose rows it goes through; empty: none.
    pub fn table(&self) -> &str {
        match self {
            Fill::Index { table, .. }
            | Fill::PrimaryKey { table }
            | Fill::Refers { table, .. }
            | Fill::Validate { table, .. } => table,
            Fill::Alter(fill) => &fill.table,
            Fill::Stages(stages) => {
                let mut all = stages.iter().filter_map(|stage| stage.fill.as_ref());
                all.next().map_or("", Fill::table)
            }
            Fill::Decide(_) => "",
        }
    }

    /// The commands of its stages.
    pub fn commands(&self) -> impl Iterator<Item = &Command> + Clone {
        let stages = match self {
            Fill::Stages(stages) => stages.as_slice(),
            _ => &[],
        };
        stages.iter().flat_map(|stage| &stage.commands)
    }

    /// Whether a block cannot do it itself, for rows that it has written.
    pub fn is_for_others(&self) -> bool {
        match self {
            Fill::PrimaryKey { .. } | Fill::Refers { .. } | Fill::Stages(_) => true,
            Fill::Index { .. } | Fill::Validate { .. } | Fill::Alter(_) | Fill::Decide(_) => false,
        }
    }
}

/// A part of the work of a change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FillStage {
    /// Applied first. They follow from the change: nobody's rights count for them.
    pub commands: Vec<Command>,
    /// The work behind them, if there is any.
    pub fill: Option<Fill>,
}

impl From<Fill> for FillStage {
    fn from(fill: Fill) -> FillStage {
        FillStage {
            commands: Vec::new(),
            fill: Some(fill),
        }
    }
}

/// What an ALTER TABLE does with each row, in this order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AlterFill {
    /// Table.
    pub table: String,
    /// New columns that get their defaults.
    pub columns: Vec<String>,
    /// Columns in which a NULL is refused (23502).
    pub not_null: Vec<String>,
    /// Checks and foreign keys that it must meet (23514, 23503).
    pub constraints: Vec<String>,
    /// Indexes that get its entry (23505).
    pub indexes: Vec<String>,
}

/// Work over existing rows. Names refer to the catalog after `before`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Fill {
    /// Writes the entries of a building index (23505 if two rows collide).
    Index {
        /// Table.
        table: String,
        /// Index.
        index: String,
    },
    /// Copies the rows of a table into a new key space, for a primary key, without one, or with
    /// other values in its columns; the number of the new space is reserved by the node and put
    /// into the `SetPrimaryKey` command of `after` (its `primary.id`).
    PrimaryKey {
        /// Table.
        table: String,
    },
    /// Looks whether all rows meet a check or foreign key (23514, 23503), which new rows are
    /// checked for already.
    Validate {
        /// Table.
        table: String,
        /// Constraint.
        constraint: String,
    },
    /// Goes through all rows once for an ALTER TABLE.
    Alter(Box<AlterFill>),
    /// Looks whether a foreign key holds when the rows of `table`, which a `PrimaryKey` before has
    /// copied, are those in the new key space. `table` may be on either side of it.
    Refers {
        /// Table whose rows were copied.
        table: String,
        /// Table that has the foreign key.
        child: String,
        /// Foreign key.
        constraint: String,
    },
    /// Several of these, each behind commands of its own. Not within each other.
    Stages(Vec<FillStage>),
    /// Finds out whether the transaction of a block has committed, or sees to it that it cannot
    /// any more.
    Decide(IndexId),
}
