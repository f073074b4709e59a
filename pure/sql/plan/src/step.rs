//! Planned statements: the tree of steps that the executor runs.

use crate::Fill;
use crate::formula::Formulas;
use base::{Datum, Type};
use bind::rel::{Aggregate, Binds, Call, Init, JoinKind, Matching, SortKey, TableFunction};
use catalog::{Index, Table};
use expr::Expr;
use expr::program::{FormulaChange, ProgramPlan, TableShape};
use parse::copy::CopyOptions;
use parse::show::Show;
use parse::{ExplainOptions, Statement};
use pg_catalog::VirtualTable;
use std::sync::Arc;
use txn::LockMode;
use window::WindowCall;

/// A statement that runs inside a transaction.
pub struct Run {
    /// Values computed first, into slots behind the client's parameters.
    pub inits: Vec<Init<Step>>,
    /// Number of parameter slots.
    pub slots: u32,
    /// Catalog version of the plan: operations carry it.
    pub planned: u64,
    /// What is done.
    pub action: Action,
    /// Number of steps, for their statistics.
    pub steps: u32,
    /// It asks how much memory rows take up (`pg_table_size` and its like).
    pub sizes: bool,
}

/// What a statement does.
#[allow(missing_docs)]
pub enum Action {
    Query(Step),
    /// One operation on one row.
    Point(PointPlan),
    Insert(Box<InsertPlan>),
    Write(Box<WritePlan>),
    /// WITH that changes rows, and MERGE.
    Parts(Box<PartsPlan>),
    /// The tables, and the names of the sequences that begin anew.
    Truncate(Vec<WritePlan>, Vec<String>),
    CopyFrom(Box<CopyFromPlan>),
    CopyTo(Box<CopyToPlan>),
    Show(Show),
    /// The body of a function or procedure.
    Routine(Box<RoutinePlan>),
    /// VACUUM and ANALYZE.
    Upkeep(Upkeep),
    /// What a schema change asks of rows, in the block that has made their table.
    Fill(Box<Fill>),
    Explain {
        /// The plan with the numbers of rows that were known before.
        run: Box<Run>,
        /// The statement and the types of its parameters, if it is planned again when all shards
        /// have told their numbers of rows: not if it is long.
        again: Option<(Statement, Box<[Type]>)>,
        options: ExplainOptions,
    },
}

/// VACUUM, ANALYZE or both. ANALYZE lets the shards look at the values of rows; for VACUUM there is
/// nothing to do.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Upkeep {
    pub vacuums: bool,
    pub analyzes: bool,
    /// Whether the client is told of each table.
    pub verbose: bool,
    /// What it names; empty: all tables.
    pub named: Vec<UpkeepOf>,
}

/// A relation that is named.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct UpkeepOf {
    /// Its name without its schema.
    pub name: String,
    /// Its number; `None`: it is of the system.
    pub relation: Option<u32>,
    pub is_view: bool,
}

impl Action {
    /// Whether it is VACUUM, which no transaction block may hold.
    #[inline]
    pub fn is_vacuum(&self) -> bool {
        matches!(self, Action::Upkeep(upkeep) if upkeep.vacuums)
    }

    /// Whether it is EXPLAIN ANALYZE.
    pub(crate) fn is_analyzed(&self) -> bool {
        matches!(self, Action::Explain { options, .. } if options.analyze)
    }
}

/// A body that is run, statement by statement.
pub struct RoutinePlan {
    /// Its name, for errors.
    pub name: Box<str>,
    /// The arguments, without columns: the parameters of the statements.
    pub args: Vec<Expr>,
    /// With an argument that is NULL nothing is run, and the result is NULL.
    pub strict: bool,
    /// The statements.
    pub runs: Vec<Run>,
    /// What becomes of the rows of the last one.
    pub gives: RoutineGives,
    /// By CALL.
    pub called: bool,
    /// Columns of the result.
    pub width: u32,
}

/// What becomes of the rows of the last statement of a body.
pub enum RoutineGives {
    /// They are dropped.
    Nothing,
    /// The first one is the result, by these expressions over it; without one all is NULL.
    First(Vec<Expr>),
}

/// A step of a query: gives rows.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Step {
    /// Number in the statement, for statistics.
    pub id: u32,
    /// Columns of its rows.
    pub width: u32,
    /// How many rows the planner expects.
    pub rows: f64,
    pub op: StepOp,
}

/// Kinds of steps.
#[derive(Clone)]
#[allow(missing_docs)]
pub enum StepOp {
    One,
    Values {
        rows: Arc<[Vec<Expr>]>,
        calls: Vec<Call<Step>>,
    },
    Virtual(&'static VirtualTable),
    Function {
        function: TableFunction,
        args: Vec<Expr>,
        /// Of its columns; one more than the function has: rows are numbered.
        types: Vec<Type>,
    },
    Scan(Box<Scan>),
    /// A filter without columns is looked at once, before the input.
    Filter {
        input: Box<Step>,
        filter: Expr,
    },
    Project {
        input: Box<Step>,
        exprs: Vec<Expr>,
    },
    Apply {
        input: Box<Step>,
        calls: Vec<Call<Step>>,
    },
    /// Table access once per left row: `scan`'s access is over the left row; `filter` over left
    /// and right columns.
    Lookup {
        kind: JoinKind,
        left: Box<Step>,
        scan: Box<Scan>,
        filter: Option<Expr>,
    },
    /// Equal keys; without keys every pair. `filter` is over left and right columns.
    Hash {
        kind: JoinKind,
        left: Box<Step>,
        right: Box<Step>,
        keys: Vec<(Expr, Expr)>,
        filter: Option<Expr>,
    },
    /// The right side runs once per left row.
    Lateral {
        outer: bool,
        left: Box<Step>,
        right: Box<Step>,
        binds: Binds,
        filter: Option<Expr>,
    },
    /// All of the input at once; `merge` if it gives partial states.
    Aggregate {
        input: Box<Step>,
        group: Vec<Expr>,
        aggregates: Vec<Aggregate>,
        merge: bool,
        /// Keys of groups that are there without a row.
        always: Vec<Vec<Datum>>,
    },
    /// Every row once for each set of grouping keys.
    Expand {
        input: Box<Step>,
        keys: Vec<Expr>,
        sets: Vec<Vec<bool>>,
    },
    /// The input is in the order of `partition` and `order`; one more column for each call.
    Window {
        input: Box<Step>,
        partition: Vec<u32>,
        order: Vec<SortKey>,
        calls: Vec<WindowCall>,
    },
    Distinct {
        input: Box<Step>,
        keys: Vec<u32>,
    },
    /// `limit`: number of first rows that are wanted.
    Sort {
        input: Box<Step>,
        keys: Vec<SortKey>,
        limit: Option<Expr>,
    },
    /// `ties`: columns in which further rows may be equal to the last one.
    Limit {
        input: Box<Step>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        ties: Vec<u32>,
    },
    /// Locks the rows whose primary keys the input holds from column `first` on, one after the
    /// other and without a wait for a lock, and gives their newest versions: what `scan`'s program
    /// gives and `filter` lets pass, at most `scan`'s limit.
    Locked {
        input: Box<Step>,
        scan: Box<Scan>,
        first: u32,
        filter: Option<Expr>,
        skips: bool,
    },
    Union {
        inputs: Vec<Step>,
    },
    /// The right side is read first.
    Match {
        matching: Matching,
        left: Box<Step>,
        right: Box<Step>,
    },
    /// All steps of this number give the same rows, which are computed once.
    Shared {
        id: u32,
        query: Box<Step>,
    },
    /// The run of `step` is named in the slot.
    Recursive {
        slot: u32,
        distinct: bool,
        base: Box<Step>,
        step: Box<Step>,
    },
    /// The rows of the last round of the run that the slot names.
    Working {
        slot: u32,
    },
    /// The rows that a part of the statement returns.
    Part {
        number: u32,
    },
}

/// Access to the rows of one table.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Scan {
    pub table: Arc<Table>,
    pub access: Access,
    pub lock: Option<LockMode>,
    /// Reads the newest versions under locks whatever the isolation level: constraints do not hold
    /// on a snapshot.
    pub newest: bool,
    /// Reads a snapshot whatever the isolation level: a [`StepOp::Locked`] locks what is found, and
    /// looks at it again.
    pub candidates: bool,
    /// What is done with each row where it is.
    pub program: ProgramPlan,
    pub width: u32,
    /// Nothing is read unless this is true (an expression without columns).
    pub gate: Option<Expr>,
    /// Rows that are wanted at most (an expression without columns).
    pub limit: Option<Expr>,
    /// Entries of a secondary index come in the order of their keys from all slots. Only with a
    /// limit.
    pub merges: bool,
    /// Entries of a secondary index hold all that is wanted: the rows are not read. The program is
    /// over an entry, which has the columns of the primary key.
    pub entries: bool,
}

/// Which entries of which index are read.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Access {
    /// 0: primary; n: secondary n - 1.
    pub index: usize,
    /// Values of the leading key columns.
    pub prefix: Vec<KeyPart>,
    /// Values that belong together: `(a, b) IN ((1, 5), (1, 7))`. [`KeyPart::Row`] reads them.
    pub rows: Vec<Vec<Expr>>,
    /// Bounds of the next key columns.
    pub low: Option<Bound>,
    pub high: Option<Bound>,
    /// Where each slot column's value comes from; `None`: all slots.
    pub slot: Option<Vec<SlotPart>>,
    /// The prefix names one entry of a unique key.
    pub point: bool,
    pub reverse: bool,
    /// The keys that it names come in the wanted order inside of each slot.
    pub in_order: bool,
}

/// Possible values of a key column, without NULL.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum KeyPart {
    One(Expr),
    /// `IN (...)`
    List(Vec<Expr>),
    /// `= ANY (array)`
    Array(Expr),
    /// This place of each of [`Access::rows`].
    Row(usize),
}

/// Value of a slot column.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum SlotPart {
    /// That of a prefix column.
    Prefix(usize),
    Value(Expr),
}

/// End of a range: values of one or more key columns, compared as a row.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Bound {
    pub values: Vec<Expr>,
    pub inclusive: bool,
}

/// One operation on one row given by its full primary key.
#[allow(missing_docs)]
pub struct PointPlan {
    pub table: Arc<Table>,
    /// Value of each key column, in key order.
    pub key: Vec<Expr>,
    /// Slot columns as positions in the key.
    pub slot: Vec<usize>,
    /// The slot columns are the first key columns, ascending: their encoding is a prefix.
    pub slot_is_prefix: bool,
    pub op: PointOp,
}

impl Action {
    /// Tells of the tables whose rows are written.
    pub fn each_written(&self, told: &mut dyn FnMut(&Table)) {
        let mut all = |writers: &[Writer]| writers.iter().for_each(|writer| told(&writer.table));
        match self {
            Action::Insert(plan) => all(&plan.writers),
            Action::Write(plan) => all(&plan.writers),
            Action::Parts(plan) => plan.parts.iter().for_each(|part| all(part.writers())),
            Action::Truncate(plans, _) => plans.iter().for_each(|plan| all(&plan.writers)),
            Action::CopyFrom(plan) => all(&plan.writers),
            Action::Point(plan) => told(&plan.table),
            Action::Routine(plan) => {
                for run in &plan.runs {
                    run.action.each_written(told);
                }
            }
            Action::Explain { run, .. } => run.action.each_written(told),
            Action::Query(_)
            | Action::CopyTo(_)
            | Action::Show(_)
            | Action::Upkeep(_)
            | Action::Fill(_) => {}
        }
    }
}

/// What is done with the row.
#[allow(missing_docs)]
pub enum PointOp {
    Get {
        program: ProgramPlan,
        lock: Option<LockMode>,
    },
    /// Without `formulas` the row goes.
    Modify {
        program: ProgramPlan,
        returning: bool,
        formulas: Option<Formulas>,
    },
    /// `otherwise` does the same where the operands' values do not fit a formula.
    Formula {
        changes: Vec<FormulaChange>,
        otherwise: ProgramPlan,
        formulas: Formulas,
    },
    /// A whole row; `key` is taken from it.
    Insert {
        row: Vec<Expr>,
        shape: TableShape,
        checks: Vec<(String, Expr)>,
        rowid: Option<u16>,
    },
}

/// INSERT in its general form.
#[allow(missing_docs)]
pub struct InsertPlan {
    pub writers: Arc<[Writer]>,
    /// Gives full rows.
    pub source: Step,
    /// All rows must be read before the first is written.
    pub materialize: bool,
    pub conflict: Option<ConflictPlan>,
    pub returning: Option<Vec<Expr>>,
}

/// ON CONFLICT.
#[allow(missing_docs)]
pub struct ConflictPlan {
    pub arbiter: Option<usize>,
    /// `None`: do nothing.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE; expressions are over the existing row, then the proposed one.
#[allow(missing_docs)]
pub struct ConflictUpdate {
    pub assignments: Vec<(u16, Expr)>,
    pub condition: Option<Expr>,
    /// What the assignments are.
    pub formulas: Formulas,
    /// The assignments as a formula of the existing row. Columns of the proposed row are outer ones
    /// ([`Expr::Outer`]). `None`: the existing row is read.
    pub changes: Option<Vec<FormulaChange>>,
}

/// UPDATE or DELETE in its general form.
#[allow(missing_docs)]
pub struct WritePlan {
    pub writers: Arc<[Writer]>,
    /// Gives the target's columns first.
    pub rows: Step,
    /// Over `rows`; `None`: delete.
    pub assignments: Option<Vec<(u16, Expr)>>,
    /// Why an update is not carried out as a formula.
    pub formulas: Option<Formulas>,
    /// What is done with each row of the keys that `rows`, a scan of points, names: nothing is read
    /// first.
    pub each: Option<Box<PointOp>>,
    /// Over `rows` with new values in the target's columns.
    pub returning: Option<Vec<Expr>>,
}

/// A statement of several parts. All of them see the rows as they were before it.
#[allow(missing_docs)]
pub struct PartsPlan {
    /// The last one is the statement's own, if it is no query.
    pub parts: Vec<Part>,
    pub query: Option<Step>,
    /// Several parts change the same table: a row that one has changed is left by the others.
    pub overlap: bool,
}

/// What one part does.
pub enum Part {
    /// INSERT.
    Insert(Box<InsertPlan>),
    /// UPDATE or DELETE.
    Write(Box<WritePlan>),
    /// MERGE.
    Merge(Box<Merge>),
}

impl Part {
    /// How its table is written.
    pub fn writers(&self) -> &Arc<[Writer]> {
        match self {
            Part::Insert(plan) => &plan.writers,
            Part::Write(plan) => &plan.writers,
            Part::Merge(plan) => &plan.writers,
        }
    }

    /// What RETURNING gives.
    pub fn returning(&self) -> Option<&Vec<Expr>> {
        match self {
            Part::Insert(plan) => plan.returning.as_ref(),
            Part::Write(plan) => plan.returning.as_ref(),
            Part::Merge(_) => None,
        }
    }

    /// Its first word.
    pub fn verb(&self) -> &'static str {
        match self {
            Part::Insert(_) => "INSERT",
            Part::Write(write) if write.assignments.is_some() => "UPDATE",
            Part::Write(_) => "DELETE",
            Part::Merge(_) => "MERGE",
        }
    }

    /// What gives the rows that it works on.
    pub fn rows(&self) -> &Step {
        match self {
            Part::Insert(plan) => &plan.source,
            Part::Write(plan) => &plan.rows,
            Part::Merge(plan) => &plan.rows,
        }
    }
}

/// MERGE.
#[allow(missing_docs)]
pub struct Merge {
    pub writers: Arc<[Writer]>,
    /// The target's columns first.
    pub rows: Step,
    /// A column of the target that is NULL only where no row of it matches.
    pub key: u16,
    pub clauses: Vec<When>,
}

/// WHEN of a MERGE: the first one whose condition is true decides. Expressions are over the rows.
#[allow(missing_docs)]
pub struct When {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: MergeWhen,
}

/// THEN of a MERGE.
#[allow(missing_docs)]
pub enum MergeWhen {
    Nothing,
    Delete,
    Update(Vec<(u16, Expr)>),
    /// `source` gives full rows for those that the slot names, as in [`StepOp::Working`].
    Insert {
        slot: u32,
        source: Step,
    },
}

/// COPY FROM.
#[allow(missing_docs)]
pub struct CopyFromPlan {
    pub writers: Arc<[Writer]>,
    /// Table columns in the order of the data.
    pub columns: Vec<u16>,
    /// A full row of defaults, as a source of one row.
    pub defaults: Step,
    pub constant_defaults: bool,
    pub options: CopyOptions,
}

/// COPY TO.
#[allow(missing_docs)]
pub struct CopyToPlan {
    pub query: Step,
    pub columns: Vec<(String, Type)>,
    pub options: CopyOptions,
}

/// How rows of one table are written: entry 0 of a list is the statement's own table, the others
/// are tables that referential actions reach.
#[allow(missing_docs)]
pub struct Writer {
    pub table: Arc<Table>,
    pub shape: TableShape,
    /// Columns that are computed from the others of a new row, and their values over it.
    pub generated: Vec<(u16, Expr)>,
    pub checks: Vec<(String, Expr)>,
    /// Every row of the table meets the checks: those that read nothing that changes need not be
    /// computed.
    pub all_valid: bool,
    /// Foreign keys of this table.
    pub parents: Vec<ParentKey>,
    /// Foreign keys that point to this table.
    pub children: Vec<ChildKey>,
}

/// A foreign key as an insert or update of the child sees it.
#[allow(missing_docs)]
pub struct ParentKey {
    pub name: String,
    pub parent: Arc<Table>,
    /// Index of the parent (0: primary).
    pub index: usize,
    /// Child columns in the order of that index's key columns.
    pub columns: Vec<u16>,
    /// Child and parent columns as declared, for the message.
    pub declared: Vec<u16>,
    /// Slot columns of the parent's index as positions in `columns`.
    pub slot: Vec<usize>,
    pub deferral: catalog::Deferral,
    /// MATCH FULL.
    pub match_full: bool,
    /// There may be rows that are NULL in part although it is MATCH FULL: any change of such a
    /// row fails.
    pub has_mixed: bool,
}

/// A foreign key as a delete or update of the parent sees it.
#[allow(missing_docs)]
pub struct ChildKey {
    pub name: String,
    /// Number of the child's writer.
    pub writer: usize,
    /// Parent columns and, in the same order, child columns.
    pub parent_columns: Vec<u16>,
    pub child_columns: Vec<u16>,
    pub on_delete: catalog::Action,
    pub on_update: catalog::Action,
    /// Defaults of the child columns, if an action sets them.
    pub defaults: Vec<Expr>,
    pub deferral: catalog::Deferral,
    /// Slots of the parent key's values that `rows` reads.
    pub slots: Vec<u32>,
    /// The child rows (all columns), locked.
    pub rows: Step,
    /// The same for many keys.
    pub many: Option<Box<KeyRows>>,
}

/// Rows of a child that refer to any of many keys, whose slots hold arrays of values; of a key of
/// several columns perhaps further ones, in which each column has the value of some key.
pub struct KeyRows {
    /// The rows.
    pub rows: Step,
    /// They are found by an index.
    pub keyed: bool,
}

impl Scan {
    /// What the scan has read is what the program is over: rows, or entries alone.
    pub fn is_direct(&self) -> bool {
        self.access.index == 0 || self.entries
    }

    /// The column of the table that the program has as this one.
    pub fn table_column(&self, column: u32) -> u16 {
        match self.entries {
            true => self.table.primary.columns[column as usize].column,
            false => column as u16,
        }
    }

    /// The index that is read.
    pub fn index(&self) -> &Index {
        table_index(&self.table, self.access.index)
    }
}

/// The primary (0) or a secondary index of a table.
pub fn table_index(table: &Table, number: usize) -> &Index {
    match number {
        0 => &table.primary,
        n => &table.secondary[n - 1],
    }
}
