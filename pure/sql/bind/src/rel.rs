//! Bound queries before planning: what is computed, not how.
//!
//! Every relation gives rows of a fixed width; expressions above it refer to its columns by
//! position. Subqueries and other calls that the evaluator cannot make itself are computed by
//! [`Rel::Apply`], which appends their values as columns; so all other expressions are plain.

use super::objects::ObjectCall;
use base::{Datum, Type};
use catalog::{Sequence, Table};
use expr::Expr;
use expr::aggregate::AggFunc;
use pg_catalog::VirtualTable;
use std::sync::Arc;
use txn::LockMode;
use window::WindowCall;

/// What one session can do to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Its statement ends with 57014 (pg_cancel_backend).
    Cancel,
    /// It ends with 57P01 (pg_terminate_backend).
    Terminate,
}

/// A bound relation.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Rel {
    /// One row of no columns.
    One,
    /// All columns of a table, the hidden one included.
    Table {
        table: Arc<Table>,
        lock: Option<LockMode>,
    },
    /// A table of the system catalog.
    Virtual(&'static VirtualTable),
    /// Rows of expressions without columns. Calls are numbered over all rows.
    Values {
        rows: Vec<Vec<Expr>>,
        types: Vec<Type>,
        calls: Vec<Call<Rel>>,
    },
    /// A function in FROM.
    Function {
        function: TableFunction,
        args: Vec<Expr>,
        types: Vec<Type>,
    },
    /// Left columns, then right columns (only left ones for semi and anti joins).
    Join {
        kind: JoinKind,
        left: Box<Rel>,
        right: Box<Rel>,
        on: Vec<Expr>,
    },
    /// As Join, for a right side that depends on the left row: `binds` are slots that it reads.
    Lateral {
        outer: bool,
        left: Box<Rel>,
        right: Box<Rel>,
        binds: Binds,
        on: Vec<Expr>,
    },
    /// Rows for which all conditions are true.
    Filter {
        input: Box<Rel>,
        conditions: Vec<Expr>,
        /// They are of policies: of other rows nothing may be seen, by errors either.
        secure: bool,
    },
    /// One column per expression.
    Project { input: Box<Rel>, exprs: Vec<Expr> },
    /// The input's columns and one for each call.
    Apply {
        input: Box<Rel>,
        calls: Vec<Call<Rel>>,
    },
    /// Group columns, then aggregates. Without groups exactly one row.
    Aggregate {
        input: Box<Rel>,
        group: Vec<Expr>,
        aggregates: Vec<Aggregate>,
        /// Keys of groups that are there without a row of the input.
        always: Vec<Vec<Datum>>,
    },
    /// Every row once for each set: its columns, the keys of the set with NULL in place of the
    /// others, and the number of the set.
    Expand {
        input: Box<Rel>,
        keys: Vec<Expr>,
        sets: Vec<Vec<bool>>,
    },
    /// The input's columns and one for each call, over the rows that are equal in the columns
    /// `partition`, in this order.
    Window {
        input: Box<Rel>,
        partition: Vec<u32>,
        order: Vec<SortKey>,
        calls: Vec<WindowCall>,
    },
    /// Rows that differ in the columns `keys` (the first of each in input order).
    Distinct { input: Box<Rel>, keys: Vec<u32> },
    /// In order of columns.
    Sort { input: Box<Rel>, keys: Vec<SortKey> },
    /// Some rows: `limit` after `offset`; the expressions have no columns.
    Limit {
        input: Box<Rel>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        /// Further rows that are equal to the last one in these columns are given, too.
        ties: Vec<u32>,
    },
    /// Rows of one table, locked one after the other as they are wanted, without a wait for a lock.
    /// The input is a sort of a projection of a filter of the table; sort and filter may be absent.
    Locked {
        input: Box<Rel>,
        mode: LockMode,
        /// Rows that another transaction has locked are passed over; else they are an error.
        skips: bool,
    },
    /// All rows of all inputs.
    Union { inputs: Vec<Rel> },
    /// The rows of the left side that the right one has, or has not.
    Match {
        matching: Matching,
        left: Box<Rel>,
        right: Box<Rel>,
    },
    /// A query that is computed once in a statement, however many relations have this number.
    Shared { id: u32, query: Box<Rel> },
    /// The rows of `base`, and then those that `step` makes of the rows of the round before, until
    /// there are none. `slot` tells the step whose rows these are; `distinct`: equal rows count
    /// once.
    Recursive {
        slot: u32,
        distinct: bool,
        base: Box<Rel>,
        step: Box<Rel>,
    },
    /// The rows of the round before, in the step of a recursive query, or those of a MERGE that are
    /// inserted.
    Working { slot: u32, types: Vec<Type> },
    /// The rows that a part of the statement returns.
    Part { number: u32, types: Vec<Type> },
}

/// A parameter slot and the value that it is set to from a row.
pub type Bind = (u32, Expr);

/// Parameter slots that are set from a row before a dependent relation runs.
pub type Binds = Vec<Bind>;

/// Functions that give rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TableFunction {
    /// `generate_series(start, stop [, step])` over integers, numerics or timestamps.
    Series,
    /// `unnest(array)`
    Unnest,
    /// `unnest` of this many arrays, side by side: the shorter ones end with NULL.
    Unnests(u8),
    /// One row with the value of the argument: a scalar function in FROM.
    Scalar,
    /// The parts of a JSON value.
    Json(functions::json::JsonRows),
    /// `regexp_matches(text, pattern [, flags])`
    Matches,
    /// Several functions, each with its number of arguments, side by side.
    Together(Arc<[(TableFunction, usize)]>),
}

impl TableFunction {
    /// Number of columns of its rows.
    pub fn width(&self) -> usize {
        match self {
            TableFunction::Json(rows) => rows.columns().len(),
            TableFunction::Unnests(count) => usize::from(*count),
            TableFunction::Together(all) => all.iter().map(|(one, _)| one.width()).sum(),
            _ => 1,
        }
    }

    /// Its name in plans.
    pub fn name(&self) -> String {
        match self {
            TableFunction::Json(rows) => rows.name(),
            TableFunction::Together(all) => {
                let names = all.iter().map(|(one, _)| one.name());
                names.collect::<Vec<_>>().join(", ")
            }
            other => format!("{other:?}"),
        }
    }
}

/// INTERSECT or EXCEPT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Matching {
    /// The rows that have no match are kept: EXCEPT.
    pub except: bool,
    /// Equal rows count: each row of the right side matches one of the left side.
    pub all: bool,
}

/// Kinds of joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Left rows with a partner.
    Semi,
    /// Left rows without one.
    Anti,
}

/// A sort key: a column of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct SortKey {
    pub column: u32,
    pub descending: bool,
    pub nulls_first: bool,
}

/// One aggregate of an Aggregate relation.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Aggregate {
    pub func: AggFunc,
    pub args: Vec<Expr>,
    pub distinct: bool,
    pub filter: Option<Expr>,
    pub order: Vec<(Expr, bool, bool)>,
    pub ty: Type,
}

/// A value that the executor computes for a row before expressions are evaluated. `R` is the form
/// of queries: bound or planned.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Call<R> {
    pub kind: CallKind<R>,
    pub ty: Type,
    /// It gives the same for rows with the same values of what it reads of them.
    pub repeats: bool,
}

/// Of which rows of a query a condition must be true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Quantifier {
    Any,
    All,
    /// The only one; NULL if there is none.
    One,
}

/// What a call makes of the rows of its query.
#[derive(Clone, Debug)]
pub enum QueryUse {
    /// The one column of the one row; NULL without a row.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether these values are among the rows (three-valued).
    In(Vec<Expr>),
    /// `left op ANY|ALL (query)`, `(a, b) op (query)`.
    Quantified {
        /// The compared values.
        left: Vec<Expr>,
        /// Over the columns of left, then those of the query.
        condition: Expr,
        /// Of which rows the condition must be true.
        quantifier: Quantifier,
    },
    /// All values of the one column as an array; of arrays as one with a dimension more.
    Array {
        /// Whether the values are arrays.
        of_arrays: bool,
    },
}

pub use crate::sequence_call::SequenceCall;

/// Kinds of calls.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum CallKind<R> {
    /// Runs a query; `binds` are slots that it reads.
    Query {
        usage: QueryUse,
        query: R,
        binds: Binds,
    },
    /// Draws from a sequence.
    Nextval(Arc<Sequence>),
    /// What the session drew last.
    Currval(Arc<Sequence>),
    /// A call about a sequence that an argument names. The flag: only the call finds out which one
    /// that is, so it asks for the privilege.
    Sequence(SequenceCall, bool, Vec<Expr>),
    /// Waits this many seconds.
    Sleep(Expr),
    /// Cancels or ends the session with this number.
    Signal(Expr, Signal),
    /// Forgets what statements have cost, of the role, database and statement with these numbers;
    /// 0: of all.
    ForgetStatements(Vec<Expr>),
    /// Asks for advisory locks, or gives them back.
    Advisory(advisory::Call, Vec<Expr>),
    /// Tells the sessions that listen to a channel: its name and the text.
    Notify(Vec<Expr>),
    /// Does something with a large object.
    Object(ObjectCall, Vec<Expr>),
}

impl<R> CallKind<R> {
    /// Whether the call does more than to give a value, so that it is made even if nobody reads it.
    pub fn has_effect(&self) -> bool {
        match self {
            CallKind::Query { .. } | CallKind::Currval(_) => false,
            CallKind::Nextval(_)
            | CallKind::Sequence(..)
            | CallKind::Sleep(_)
            | CallKind::Signal(..)
            | CallKind::ForgetStatements(_)
            | CallKind::Advisory(..)
            | CallKind::Notify(_)
            | CallKind::Object(..) => true,
        }
    }

    /// The values that are compared with those of the query, or are arguments; the slots that are
    /// set from the outer row.
    fn outer(&self) -> (&[Expr], &[Bind]) {
        match self {
            CallKind::Query { usage, binds, .. } => match usage {
                QueryUse::In(left) | QueryUse::Quantified { left, .. } => (left, binds),
                QueryUse::Scalar | QueryUse::Exists | QueryUse::Array { .. } => (&[], binds),
            },
            CallKind::Sleep(arg) | CallKind::Signal(arg, _) => (core::slice::from_ref(arg), &[]),
            CallKind::Advisory(_, args)
            | CallKind::ForgetStatements(args)
            | CallKind::Notify(args)
            | CallKind::Object(_, args)
            | CallKind::Sequence(_, _, args) => (args, &[]),
            CallKind::Nextval(_) | CallKind::Currval(_) => (&[], &[]),
        }
    }

    /// The values that are compared with those of the query, or are arguments; the slots that are
    /// set from the outer row.
    pub fn outer_mut(&mut self) -> (&mut [Expr], &mut [Bind]) {
        match self {
            CallKind::Query { usage, binds, .. } => match usage {
                QueryUse::In(left) | QueryUse::Quantified { left, .. } => (left, binds),
                QueryUse::Scalar | QueryUse::Exists | QueryUse::Array { .. } => (&mut [], binds),
            },
            CallKind::Sleep(arg) | CallKind::Signal(arg, _) => {
                (core::slice::from_mut(arg), &mut [])
            }
            CallKind::Advisory(_, args)
            | CallKind::ForgetStatements(args)
            | CallKind::Notify(args)
            | CallKind::Object(_, args)
            | CallKind::Sequence(_, _, args) => (args, &mut []),
            CallKind::Nextval(_) | CallKind::Currval(_) => (&mut [], &mut []),
        }
    }

    /// The expressions over the outer row.
    pub fn outer_exprs(&self) -> impl Iterator<Item = &Expr> {
        let (left, binds) = self.outer();
        left.iter().chain(binds.iter().map(|(_, expr)| expr))
    }

    /// As [`CallKind::outer_exprs`], to change.
    pub fn outer_exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (left, binds) = self.outer_mut();
        left.iter_mut()
            .chain(binds.iter_mut().map(|(_, expr)| expr))
    }

    /// Whether the call runs a query that reads the outer row.
    pub fn binds_row(&self) -> bool {
        !self.outer().1.is_empty()
    }

    /// The query, if there is one.
    pub fn query(&self) -> Option<&R> {
        match self {
            CallKind::Query { query, .. } => Some(query),
            _ => None,
        }
    }

    /// As [`CallKind::query`], to change.
    pub fn query_mut(&mut self) -> Option<&mut R> {
        match self {
            CallKind::Query { query, .. } => Some(query),
            _ => None,
        }
    }

    /// The same call with its query in another form.
    pub fn try_map<S, E>(self, plan: &mut dyn FnMut(R) -> Result<S, E>) -> Result<CallKind<S>, E> {
        Ok(match self {
            CallKind::Query {
                usage,
                query,
                binds,
            } => CallKind::Query {
                usage,
                query: plan(query)?,
                binds,
            },
            CallKind::Nextval(sequence) => CallKind::Nextval(sequence),
            CallKind::Currval(sequence) => CallKind::Currval(sequence),
            CallKind::Sequence(call, asks, args) => CallKind::Sequence(call, asks, args),
            CallKind::Sleep(seconds) => CallKind::Sleep(seconds),
            CallKind::Signal(pid, signal) => CallKind::Signal(pid, signal),
            CallKind::ForgetStatements(args) => CallKind::ForgetStatements(args),
            CallKind::Advisory(call, args) => CallKind::Advisory(call, args),
            CallKind::Notify(args) => CallKind::Notify(args),
            CallKind::Object(call, args) => CallKind::Object(call, args),
        })
    }
}

/// Whether calls of a statement, made for its rows or at its start, run a query.
pub fn run_query(calls: &[Call<Rel>], inits: &[Init<Rel>]) -> bool {
    let started = inits.iter().filter_map(|init| match &init.value {
        InitValue::Call(call) => Some(call),
        InitValue::Expr(_) => None,
    });
    let mut all = calls.iter().chain(started);
    all.any(|call| call.kind.query().is_some())
}

/// A parameter slot that is filled when the statement starts.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Init<R> {
    pub slot: u32,
    pub value: InitValue<R>,
}

/// Where the value of a slot comes from.
#[derive(Clone, Debug)]
pub enum InitValue<R> {
    /// An expression without columns (it may read earlier slots).
    Expr(Expr),
    /// A call without outer references.
    Call(Call<R>),
}

impl Aggregate {
    fn each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.args.iter_mut().for_each(&mut *visit);
        self.filter.iter_mut().for_each(&mut *visit);
        let order = self.order.iter_mut();
        order.for_each(|(expr, _, _)| visit(expr));
    }
}

impl Call<Rel> {
    /// Every expression of the call and of its query.
    fn each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.kind.outer_exprs_mut().for_each(&mut *visit);
        if let Some(query) = self.kind.query_mut() {
            query.each_expr_mut(visit);
        }
    }
}

fn each_of_sides(left: &mut Rel, right: &mut Rel, visit: &mut dyn FnMut(&mut Expr)) {
    left.each_expr_mut(visit);
    right.each_expr_mut(visit);
}

impl Rel {
    /// The relations whose rows it is made of, apart from queries that it calls.
    pub fn inputs(&self) -> Vec<&Rel> {
        match self {
            Rel::One
            | Rel::Table { .. }
            | Rel::Virtual(_)
            | Rel::Values { .. }
            | Rel::Function { .. }
            | Rel::Part { .. }
            | Rel::Working { .. } => Vec::new(),
            Rel::Join { left, right, .. }
            | Rel::Lateral { left, right, .. }
            | Rel::Match { left, right, .. } => vec![left, right],
            Rel::Recursive { base, step, .. } => vec![base, step],
            Rel::Filter { input, .. }
            | Rel::Project { input, .. }
            | Rel::Apply { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Expand { input, .. }
            | Rel::Window { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Locked { input, .. }
            | Rel::Shared { query: input, .. } => vec![input],
            Rel::Union { inputs } => inputs.iter().collect(),
        }
    }

    /// Number of columns.
    pub fn width(&self) -> u32 {
        match self {
            Rel::One => 0,
            Rel::Table { table, .. } => table.columns.len() as u32,
            Rel::Virtual(table) => table.columns.len() as u32,
            Rel::Values { types, .. } | Rel::Function { types, .. } => types.len() as u32,
            Rel::Join {
                kind: JoinKind::Semi | JoinKind::Anti,
                left,
                ..
            } => left.width(),
            Rel::Join { left, right, .. } | Rel::Lateral { left, right, .. } => {
                left.width() + right.width()
            }
            Rel::Filter { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Locked { input, .. } => input.width(),
            Rel::Project { exprs, .. } => exprs.len() as u32,
            Rel::Apply { input, calls } => input.width() + calls.len() as u32,
            Rel::Window { input, calls, .. } => input.width() + calls.len() as u32,
            Rel::Expand { input, keys, .. } => input.width() + keys.len() as u32 + 1,
            Rel::Aggregate {
                group, aggregates, ..
            } => (group.len() + aggregates.len()) as u32,
            Rel::Union { inputs } => inputs.first().map_or(0, Rel::width),
            Rel::Match { left, .. } => left.width(),
            Rel::Shared { query: input, .. } | Rel::Recursive { base: input, .. } => input.width(),
            Rel::Working { types, .. } | Rel::Part { types, .. } => types.len() as u32,
        }
    }

    /// The rows that pass all `conditions`.
    pub fn filtered(self, conditions: Vec<Expr>) -> Rel {
        if conditions.is_empty() {
            self
        } else {
            Rel::Filter {
                input: Box::new(self),
                conditions,
                secure: false,
            }
        }
    }

    /// The input with the values of `calls` appended. A call may read the ones before it.
    pub fn applied(self, mut calls: Vec<Call<Rel>>) -> Rel {
        if calls.is_empty() {
            self
        } else {
            let width = self.width();
            for call in &mut calls {
                let exprs = call.kind.outer_exprs_mut();
                exprs.for_each(|expr| super::place_calls(expr, width));
            }
            Rel::Apply {
                input: Box::new(self),
                calls,
            }
        }
    }

    /// The same columns without a row.
    pub fn emptied(self) -> Rel {
        Rel::Values {
            rows: Vec::new(),
            types: vec![Type::Unknown; self.width() as usize],
            calls: Vec::new(),
        }
    }

    /// These expressions over its columns.
    pub fn projected(self, exprs: Vec<Expr>) -> Rel {
        Rel::Project {
            input: Box::new(self),
            exprs,
        }
    }

    /// The value without a type that makes a column of a bound query; what passes it on takes it to
    /// be of type `ty` from now on.
    pub fn untyped(&mut self, column: u32, ty: Type) -> Option<&mut Expr> {
        match self {
            Rel::Project { input, exprs } => match &mut exprs[column as usize] {
                Expr::Column(at, of @ Type::Unknown) => {
                    *of = ty;
                    input.untyped(*at, ty)
                }
                value => (value.ty() == Type::Unknown).then_some(value),
            },
            Rel::Sort { input, keys: _ }
            | Rel::Distinct { input, keys: _ }
            | Rel::Locked {
                input,
                mode: _,
                skips: _,
            }
            | Rel::Limit {
                input,
                limit: _,
                offset: _,
                ties: _,
            } => input.untyped(column, ty),
            Rel::One
            | Rel::Table { .. }
            | Rel::Virtual(_)
            | Rel::Values { .. }
            | Rel::Function { .. }
            | Rel::Join { .. }
            | Rel::Lateral { .. }
            | Rel::Filter { .. }
            | Rel::Apply { .. }
            | Rel::Aggregate { .. }
            | Rel::Expand { .. }
            | Rel::Window { .. }
            | Rel::Match { .. }
            | Rel::Shared { .. }
            | Rel::Recursive { .. }
            | Rel::Working { .. }
            | Rel::Part { .. }
            | Rel::Union { .. } => None,
        }
    }

    /// Every expression of this relation and the ones below it.
    pub fn each_expr_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Rel::One | Rel::Table { .. } | Rel::Virtual(_) => {}
            Rel::Working { .. } | Rel::Part { .. } => {}
            Rel::Values { rows, calls, .. } => {
                rows.iter_mut().flatten().for_each(&mut *visit);
                calls.iter_mut().for_each(|call| call.each_expr_mut(visit));
            }
            Rel::Function { args, .. } => args.iter_mut().for_each(visit),
            Rel::Join {
                left, right, on, ..
            } => {
                on.iter_mut().for_each(&mut *visit);
                each_of_sides(left, right, visit);
            }
            Rel::Lateral {
                left,
                right,
                binds,
                on,
                ..
            } => {
                on.iter_mut().for_each(&mut *visit);
                binds.iter_mut().for_each(|(_, expr)| visit(expr));
                each_of_sides(left, right, visit);
            }
            Rel::Filter {
                input,
                conditions: exprs,
                secure: _,
            }
            | Rel::Expand {
                input, keys: exprs, ..
            }
            | Rel::Project { input, exprs } => {
                exprs.iter_mut().for_each(&mut *visit);
                input.each_expr_mut(visit);
            }
            Rel::Apply { input, calls } => {
                calls.iter_mut().for_each(|call| call.each_expr_mut(visit));
                input.each_expr_mut(visit);
            }
            Rel::Aggregate {
                input,
                group,
                aggregates,
                always: _,
            } => {
                group.iter_mut().for_each(&mut *visit);
                for aggregate in aggregates {
                    aggregate.each_expr_mut(visit);
                }
                input.each_expr_mut(visit);
            }
            Rel::Window { input, calls, .. } => {
                let exprs = calls.iter_mut().flat_map(WindowCall::exprs_mut);
                exprs.for_each(&mut *visit);
                input.each_expr_mut(visit);
            }
            Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Shared { query: input, .. } => input.each_expr_mut(visit),
            Rel::Locked { input, .. } => input.each_expr_mut(visit),
            Rel::Limit {
                input,
                limit,
                offset,
                ties: _,
            } => {
                limit.iter_mut().chain(offset).for_each(&mut *visit);
                input.each_expr_mut(visit);
            }
            Rel::Union { inputs } => inputs.iter_mut().for_each(|it| it.each_expr_mut(visit)),
            Rel::Match { left, right, .. }
            | Rel::Recursive {
                base: left,
                step: right,
                ..
            } => each_of_sides(left, right, visit),
        }
    }

    /// Every list of slots that a relation or call in it sets.
    pub fn each_binds_mut(&mut self, visit: &mut dyn FnMut(&mut [Bind])) {
        let calls = |calls: &mut Vec<Call<Rel>>, visit: &mut dyn FnMut(&mut [Bind])| {
            for call in calls {
                visit(call.kind.outer_mut().1);
                if let Some(query) = call.kind.query_mut() {
                    query.each_binds_mut(visit);
                }
            }
        };
        match self {
            Rel::One
            | Rel::Table { .. }
            | Rel::Virtual(_)
            | Rel::Function { .. }
            | Rel::Part { .. }
            | Rel::Working { .. } => {}
            Rel::Values { calls: list, .. } => calls(list, visit),
            Rel::Join { left, right, .. }
            | Rel::Match { left, right, .. }
            | Rel::Recursive {
                base: left,
                step: right,
                ..
            } => {
                left.each_binds_mut(visit);
                right.each_binds_mut(visit);
            }
            Rel::Lateral {
                left, right, binds, ..
            } => {
                visit(binds);
                left.each_binds_mut(visit);
                right.each_binds_mut(visit);
            }
            Rel::Apply { input, calls: list } => {
                calls(list, visit);
                input.each_binds_mut(visit);
            }
            Rel::Filter { input, .. }
            | Rel::Project { input, .. }
            | Rel::Aggregate { input, .. }
            | Rel::Expand { input, .. }
            | Rel::Window { input, .. }
            | Rel::Distinct { input, .. }
            | Rel::Sort { input, .. }
            | Rel::Limit { input, .. }
            | Rel::Locked { input, .. }
            | Rel::Shared { query: input, .. } => input.each_binds_mut(visit),
            Rel::Union { inputs } => {
                let inputs = inputs.iter_mut();
                inputs.for_each(|input| input.each_binds_mut(visit));
            }
        }
    }
}
