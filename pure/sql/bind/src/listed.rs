//! Functions that give rows in the SELECT list.
//!
//! A call stands in its expression as a mark ([`ROWS`]) until the clauses around it are bound. Then
//! the rows of the query get the values as columns: those of calls in GROUP BY before the rows are
//! grouped, all others after aggregates, window functions and subqueries. Calls side by side give
//! their rows together, the shorter ones end with NULL. A call whose arguments have calls in them
//! gives its rows for each row that these have given.

use super::aggregate::IN_AGGREGATE;
use super::group::SelectParts;
use super::over::WINDOW;
use super::rel::{CallKind, QueryUse, Rel, TableFunction};
use super::routine::RoutineCall;
use super::select::extra_mut;
use super::table_function::BoundFunction;
use super::target::Target;
use super::{AGGREGATE, Binder, unsupported};
use base::{SqlError, SqlState, Type};
use catalog::Returns;
use core::cell::Cell;
use expr::resolve::{self, Context};
use expr::{Expr, Func, Volatility, walk};
use functions::TextFunc;
use std::collections::BTreeMap;

/// The first field of an [`Expr::Outer`] that stands for a value of a function that gives rows.
pub(crate) const ROWS: u32 = u32::MAX - 3;

/// A call in a SELECT list.
struct Listed {
    found: BoundFunction,
    /// 1, or one more than the largest of the calls in its arguments.
    depth: u32,
    /// The number of its first value among those of all calls.
    first: u32,
}

/// The calls in a SELECT list.
#[derive(Default)]
pub(super) struct ListedRows {
    all: Vec<Listed>,
    /// Values of all of them.
    width: u32,
    /// How often a call was bound.
    calls: u32,
}

/// Where the values of calls are: their columns by their numbers.
type Places = BTreeMap<u32, u32>;

impl ListedRows {
    fn depth_of(&self, expr: &Expr) -> u32 {
        let deepest = Cell::new(0);
        walk::any(expr, &|node| {
            if let Expr::Outer(ROWS, number, _) = node {
                let known = self.all.iter().rev().find(|one| one.first <= *number);
                deepest.set(deepest.get().max(known.map_or(0, |one| one.depth)));
            }
            false
        });
        deepest.get()
    }

    /// Notes a call: its values.
    fn note(&mut self, found: BoundFunction) -> Vec<Expr> {
        self.calls += 1;
        let columns = found.columns.iter().map(|(_, ty)| *ty);
        let columns: Vec<Type> = columns.collect();
        let fixed = |arg: &Expr| walk::volatility(arg) < Volatility::Volatile;
        let same = |one: &&Listed| {
            one.found.function == found.function
                && one.found.args == found.args
                && found.args.iter().all(fixed)
                && !found.args.iter().any(has_call)
        };
        let first = match self.all.iter().find(same) {
            // Side by side they give the same values.
            Some(known) => known.first,
            None => {
                let depth = found.args.iter().map(|arg| self.depth_of(arg)).max();
                let first = self.width;
                self.width += columns.len() as u32;
                self.all.push(Listed {
                    found,
                    depth: 1 + depth.unwrap_or(0),
                    first,
                });
                first
            }
        };
        let columns = columns.into_iter().zip(first..);
        columns
            .map(|(ty, number)| Expr::Outer(ROWS, number, ty))
            .collect()
    }

    /// Takes the calls that these expressions read, and those in their arguments.
    fn split(&mut self, read: &[Expr]) -> Vec<Listed> {
        let mut numbers = Vec::new();
        read.iter().for_each(|expr| marks_of(expr, &mut numbers));
        let is_read = |one: &Listed, numbers: &[u32]| {
            let own = one.first..one.first + one.found.columns.len() as u32;
            numbers.iter().any(|number| own.contains(number))
        };
        // Arguments stand before what has them.
        for one in self.all.iter().rev() {
            if is_read(one, &numbers) {
                one.found
                    .args
                    .iter()
                    .for_each(|arg| marks_of(arg, &mut numbers));
            }
        }
        let (taken, left) = core::mem::take(&mut self.all)
            .into_iter()
            .partition(|one| is_read(one, &numbers));
        self.all = left;
        taken
    }
}

fn marks_of(expr: &Expr, numbers: &mut Vec<u32>) {
    if let Expr::Outer(ROWS, number, _) = expr {
        numbers.push(*number);
    }
    expr.each_child(&mut |child| marks_of(child, numbers));
}

fn has_call(expr: &Expr) -> bool {
    walk::any(expr, &|node| matches!(node, Expr::Subquery(..)))
}

fn has_rows(expr: &Expr) -> bool {
    walk::any(expr, &|node| matches!(node, Expr::Outer(ROWS, ..)))
}

/// Puts columns in place of the marks.
fn place(expr: &mut Expr, places: &Places) {
    walk::map(expr, &mut |node| {
        if let Expr::Outer(ROWS, number, ty) = node
            && let Some(column) = places.get(number)
        {
            *node = Expr::Column(*column, *ty);
        }
    });
}

fn error(message: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

const TO_FROM: &str =
    "You might be able to move the set-returning function into a LATERAL FROM item.";

fn not_here() -> SqlError {
    unsupported("a set-returning function here").hint(TO_FROM)
}

/// The error of a call in a clause that must not have one.
fn misplaced(clause: Option<&str>) -> SqlError {
    match clause.unwrap_or("HAVING") {
        IN_AGGREGATE => {
            error("aggregate function calls cannot contain set-returning function calls")
                .hint(TO_FROM)
        }
        "functions in FROM" => error("set-returning functions must appear at top level of FROM"),
        "this clause" => not_here(),
        clause => error(&format!(
            "set-returning functions are not allowed in {clause}"
        )),
    }
}

impl Binder<'_> {
    /// The calls in this SELECT list, whose rows the clause of locks names.
    ///
    /// # Errors
    /// 0A000 for rows that are locked and multiplied.
    pub(super) fn take_listed(&mut self, lock: Option<&str>) -> Result<ListedRows, SqlError> {
        let listed = self.level().listed.take().unwrap_or_default();
        match (lock, listed.all.is_empty()) {
            (Some(clause), false) => {
                let what = format!("{clause} with set-returning functions in the target list");
                Err(unsupported(&what).hint("Lock the rows in a query in FROM."))
            }
            _ => Ok(listed),
        }
    }

    /// How often a call was bound in this SELECT list.
    pub(super) fn listed_calls(&mut self) -> u32 {
        let listed = self.level().listed.as_ref();
        listed.map_or(0, |listed| listed.calls)
    }

    /// # Errors
    /// 0A000 if a call was bound since then, in a construct that computes not all of its parts.
    pub(super) fn refuse_listed(&mut self, since: u32, word: &str) -> Result<(), SqlError> {
        match self.listed_calls() == since {
            true => Ok(()),
            false => {
                let message = format!("set-returning functions are not allowed in {word}");
                Err(error(&message).hint(TO_FROM))
            }
        }
    }

    /// # Errors
    /// 0A000 where no call may stand.
    fn may_list(&mut self) -> Result<(), SqlError> {
        let level = self.level();
        let clause = level.aggregates_in;
        match level.listed.is_some() && matches!(clause, None | Some("GROUP BY")) {
            true => Ok(()),
            false => Err(misplaced(clause)),
        }
    }

    fn listed(&mut self, found: BoundFunction) -> Vec<Expr> {
        let listed = self.level().listed.as_mut();
        listed.map_or_else(Vec::new, |listed| listed.note(found))
    }

    /// A function that gives rows in an expression: its value in each of them.
    pub(super) fn listed_rows(&mut self, name: &str, args: Vec<Expr>) -> Result<Expr, SqlError> {
        self.may_list()?;
        if name == "unnest" && args.len() > 1 {
            let types: Vec<String> = args.iter().map(|arg| arg.ty().name()).collect();
            let message = format!("function unnest({}) does not exist", types.join(", "));
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message).hint(
                "No function matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        }
        let found = self.bind_table_function(name, args)?;
        let is_row = found.columns.len() > 1;
        let mut values = self.listed(found);
        match (is_row, values.pop()) {
            (false, Some(value)) => Ok(value),
            (_, last) => {
                values.extend(last);
                match super::exploded::row(name, &values) {
                    Some(row) => Ok(row),
                    None => row_text(values),
                }
            }
        }
    }

    /// One column, by its name, of the rows that a function gives.
    ///
    /// # Errors
    /// 0A000 where no call may stand, 42703 if they have no such column.
    pub(super) fn listed_column(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        column: &str,
    ) -> Result<Expr, SqlError> {
        self.may_list()?;
        let found = self.bind_table_function(name, args)?;
        let mut columns = found.columns.iter();
        let Some(at) = columns.position(|(own, _)| *own == Some(column)) else {
            let message = format!("could not identify column \"{column}\" in record data type");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        };
        let value = self.listed(found).into_iter().nth(at);
        value.ok_or_else(not_here)
    }

    /// The same of a function of users whose body is a query: the rows are kept as an array.
    pub(super) fn listed_routine(&mut self, call: RoutineCall) -> Result<Expr, SqlError> {
        self.may_list()?;
        let returns = call.function.returns;
        let width = super::body::columns_of(&call.function, self.cx.database).len() as u32;
        let (rel, binds, types) = self.rows_of_listed(&call)?;
        let columns = (0..width).zip(&types);
        let columns: Vec<Expr> = columns.map(|(at, ty)| Expr::Column(at, *ty)).collect();
        let one = match (returns, columns.first()) {
            (Returns::Each(_), Some(value)) => value.clone(),
            _ => row_text(columns)?,
        };
        let ty = one.ty();
        // Arrays of arrays would lose their bounds: their texts are kept.
        let kept = match ty.element() {
            Some(_) => resolve::coerce(one, Type::Text, Context::Explicit)?,
            None => one,
        };
        let element = kept.ty().without_modifiers();
        let Some(array) = resolve::array_type(element) else {
            return Err(not_here());
        };
        let kind = CallKind::Query {
            usage: QueryUse::Array { of_arrays: false },
            query: rel.projected(vec![kept]),
            binds,
        };
        let array = self.volatile_call(kind, array);
        let found = BoundFunction {
            function: TableFunction::Unnest,
            args: vec![array],
            columns: vec![(None, element)],
        };
        let value = self
            .listed(found)
            .pop()
            .unwrap_or_else(|| Expr::null(element));
        resolve::coerce(value, ty, Context::Explicit)
    }

    /// The SELECT list, in which functions may give rows.
    pub(super) fn listed_targets(
        &mut self,
        projection: &[sqlparser::ast::SelectItem],
    ) -> Result<Vec<Target>, SqlError> {
        self.level().listed = Some(ListedRows::default());
        self.targets(projection)
    }

    /// The rows with the values of calls that are keys of groups, before they are grouped.
    ///
    /// # Errors
    /// 0A000 for calls where their rows cannot be made.
    pub(super) fn rows_below(
        &mut self,
        mut rel: Rel,
        listed: &mut ListedRows,
        keys: &mut [Expr],
        parts: &mut SelectParts,
    ) -> Result<Rel, SqlError> {
        if listed.all.is_empty() {
            return Ok(rel);
        }
        let [_, (windows, calls), _] = parts.clauses();
        if windows.iter().any(|expr| has_rows(expr)) {
            let message = "window function calls cannot contain set-returning function calls";
            return Err(error(message).hint(TO_FROM));
        }
        let reads = |call: &super::rel::Call<Rel>| call.kind.outer_exprs().any(has_rows);
        if calls.iter().any(reads) || parts.calls.iter().any(reads) {
            return Err(not_here());
        }
        let below = listed.split(keys);
        let later = |node: &Expr| {
            matches!(
                node,
                Expr::Outer(AGGREGATE | WINDOW, ..) | Expr::Subquery(..)
            )
        };
        let mut args = below.iter().flat_map(|one| &one.found.args);
        if args.any(|arg| walk::any(arg, &later)) {
            return Err(not_here());
        }
        let mut places = Places::new();
        rel = self.beside_each(rel, below, &mut places);
        keys.iter_mut().for_each(|key| place(key, &places));
        place_in(parts, &places);
        for one in &mut listed.all {
            one.found
                .args
                .iter_mut()
                .for_each(|arg| place(arg, &places));
        }
        // The arguments of the others read what the targets read.
        let args = listed.all.iter().flat_map(|one| &one.found.args);
        parts
            .targets
            .extend(args.map(|arg| Target::hidden(arg.clone())));
        Ok(rel)
    }

    /// The rows with the values of all other calls.
    pub(super) fn rows_above(
        &mut self,
        rel: Rel,
        mut listed: ListedRows,
        parts: &mut SelectParts,
    ) -> Rel {
        let count: usize = listed.all.iter().map(|one| one.found.args.len()).sum();
        let own = parts.targets.len() - count;
        let mut args = parts.targets.split_off(own).into_iter();
        for one in &mut listed.all {
            for arg in &mut one.found.args {
                if let Some(bound) = args.next() {
                    *arg = bound.expr;
                }
            }
        }
        let mut places = Places::new();
        let rel = self.beside_each(rel, listed.all, &mut places);
        place_in(parts, &places);
        rel
    }

    /// Each row with the rows of the calls.
    fn beside_each(&mut self, mut rel: Rel, all: Vec<Listed>, places: &mut Places) -> Rel {
        let mut by_depth: BTreeMap<u32, Vec<Listed>> = BTreeMap::new();
        for one in all {
            by_depth.entry(one.depth).or_default().push(one);
        }
        for together in by_depth.into_values() {
            let mut next = rel.width();
            let (mut binds, mut slots) = (Vec::new(), Vec::new());
            let (mut functions, mut types) = (Vec::new(), Vec::new());
            for one in &together {
                functions.push((one.found.function.clone(), one.found.args.len()));
                for arg in &one.found.args {
                    let mut arg = arg.clone();
                    place(&mut arg, places);
                    let slot = self.new_slot();
                    slots.push(Expr::Param(slot, arg.ty()));
                    binds.push((slot, arg));
                }
            }
            for one in &together {
                for (number, (_, ty)) in (one.first..).zip(&one.found.columns) {
                    places.insert(number, next);
                    types.push(*ty);
                    next += 1;
                }
            }
            let function = match functions.len() {
                1 => functions.swap_remove(0).0,
                _ => TableFunction::Together(functions.into()),
            };
            let right = Rel::Function {
                function,
                args: slots,
                types,
            };
            rel = Rel::Lateral {
                outer: false,
                left: Box::new(rel),
                right: Box::new(right),
                binds,
                on: Vec::new(),
            };
        }
        rel
    }
}

fn place_in(parts: &mut SelectParts, places: &Places) {
    let targets = parts.targets.iter_mut().map(|target| &mut target.expr);
    let extras = parts
        .sort
        .iter_mut()
        .chain(parts.distinct_on.iter_mut().flatten());
    let all = targets.chain(extras.filter_map(extra_mut));
    all.for_each(|expr| place(expr, places));
}

/// The text of a row of these values.
pub(super) fn row_text(values: Vec<Expr>) -> Result<Expr, SqlError> {
    let texts = values.into_iter().map(|value| match value.ty() {
        ty if ty.is_text() => resolve::coerce(value, Type::Text, Context::Explicit),
        // As it is written by itself, and not as it is cast.
        ty => Ok(Expr::Call(Func::Output(ty), vec![value], Type::Text)),
    });
    let texts = texts.collect::<Result<Vec<_>, SqlError>>()?;
    Ok(Expr::Call(Func::Text(TextFunc::RowText), texts, Type::Text))
}
