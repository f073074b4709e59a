//! Aggregates and grouping: how a grouped query's expressions refer to groups.

use super::form::Forms;
use super::function::first_word;
use super::group::no_equality;
use super::listed::ROWS;
use super::over::{Place as Allowed, WINDOW};
use super::rel::{Aggregate, Call, CallKind, Rel};
use super::scope::Scope;
use super::sets::{GROUPED, Keys, not_grouped};
use super::{AGGREGATE, Binder, unsupported};
use base::{SqlError, SqlState};
use expr::aggregate::AggFunc;
use expr::resolve;
use expr::{Expr, styled, walk, zoned};
use sqlparser::ast::{
    self, DuplicateTreatment, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, OrderByExpr,
};

/// The arguments of an aggregate, as a clause that has no aggregates.
pub(super) const IN_AGGREGATE: &str = "aggregate function calls";

/// The parts of an aggregate's call.
#[derive(Clone, Copy)]
pub(super) struct AggregateCall<'a> {
    pub(super) arguments: &'a FunctionArguments,
    pub(super) filter: Option<&'a Ast>,
    pub(super) within_group: &'a [OrderByExpr],
}

impl Binder<'_> {
    /// An aggregate call: noted at this level, with a placeholder in its place.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        call: AggregateCall<'_>,
    ) -> Result<Expr, SqlError> {
        let AggregateCall {
            arguments,
            filter,
            within_group,
        } = call;
        debug_assert!(within_group.is_empty(), "others have WITHIN GROUP");
        let FunctionArguments::List(list) = arguments else {
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {name}() does not exist"),
            ));
        };
        // Calls inside belong below the aggregation.
        let before = self.marks();
        let forbidden = self.level().aggregates_in;
        let outer_calls = self.take_calls();
        let inner_calls = core::mem::take(&mut self.level().inner_calls);
        let inner_count = inner_calls.len();
        self.level().calls = inner_calls;
        self.level().aggregates_in = Some(IN_AGGREGATE);
        let windows = core::mem::replace(&mut self.level().windows.place, Allowed::Aggregate);
        let parts = self.aggregate_parts(name, list, filter);
        self.level().windows.place = windows;
        self.level().aggregates_in = forbidden;
        let mut inner_calls = self.take_calls();
        self.level().calls = outer_calls;
        let parts = parts.map_err(nested_aggregate)?;
        if let Some(depth) = self.home_of(&parts, &inner_calls[inner_count..], &before) {
            inner_calls.truncate(inner_count);
            self.level().inner_calls = inner_calls;
            return self.outer_aggregate(name, call, depth, before);
        }
        self.level().inner_calls = inner_calls;
        refuse_in(forbidden)?;
        let Parts {
            args,
            star,
            distinct,
            filter,
            order,
        } = parts;
        if star && (distinct || !order.is_empty()) {
            let word = if distinct { "DISTINCT" } else { "ORDER" };
            return Err(self.source.misplaced(word));
        }
        if distinct && order.iter().any(|(key, ..)| !args.contains(key)) {
            let message =
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        if distinct && let Some(arg) = args.iter().find(|arg| !resolve::has_equality(arg.ty())) {
            return Err(no_equality(arg.ty()));
        }
        let (func, args, ty) = AggFunc::resolve(name, self.styled(name, args), star)?;
        args.iter().for_each(|arg| self.note(arg));
        let aggregate = Aggregate {
            func,
            args,
            distinct,
            filter,
            order,
            ty,
        };
        Ok(Expr::Outer(AGGREGATE, self.numbered(aggregate), ty))
    }

    /// Arguments whose text becomes JSON, in the session's style of intervals.
    fn styled(&self, name: &str, mut args: Vec<Expr>) -> Vec<Expr> {
        if expr::aggregate::makes_json(name) {
            let style = zoned::style_of(&self.zone);
            args.iter_mut().for_each(|arg| styled::show(style, arg));
        }
        args
    }

    /// The number of an aggregate of this level; equal ones share it.
    fn numbered(&mut self, aggregate: Aggregate) -> u32 {
        let aggregates = &mut self.level().aggregates;
        let known = aggregates.iter().position(|known| *known == aggregate);
        let number = known.unwrap_or_else(|| {
            aggregates.push(aggregate);
            aggregates.len() - 1
        });
        number as u32
    }

    /// How far binding has come: what an attempt that is given up has added is behind it.
    fn marks(&self) -> Marks {
        let levels = self.levels.iter();
        Marks {
            levels: levels.map(|l| (l.captures.len(), l.dependent)).collect(),
            inits: self.inits.len(),
        }
    }

    /// The enclosing level that an aggregate belongs to: its arguments read columns of that level
    /// and of none below it. `None`: it belongs where it stands.
    fn home_of(&self, parts: &Parts, calls: &[Call<Rel>], before: &Marks) -> Option<usize> {
        let inside = calls.iter().flat_map(|call| call.kind.outer_exprs());
        let exprs: Vec<&Expr> = parts.exprs().chain(inside).collect();
        let own = |expr: &&Expr| walk::any(expr, &|node| matches!(node, Expr::Column(..)));
        if exprs.iter().any(own) {
            return None;
        }
        let reads = |slot: u32| {
            let is_slot = |node: &Expr| matches!(node, Expr::Param(read, _) if *read == slot);
            exprs.iter().any(|expr| walk::any(expr, &is_slot))
        };
        // The arguments of a function in SQL are no row: an aggregate over them is of the body.
        let first = 1 + usize::from(self.is_in_routine());
        (first..self.levels.len()).rev().find_map(|level| {
            let captures = &self.levels[level].captures;
            let known = before.levels[level].0;
            let read = captures.len() > known || captures.iter().any(|(slot, _)| reads(*slot));
            read.then_some(level - 1)
        })
    }

    /// Binds an aggregate as one of the enclosing level `depth`, whose value is read here.
    fn outer_aggregate(
        &mut self,
        name: &str,
        call: AggregateCall<'_>,
        depth: usize,
        before: Marks,
    ) -> Result<Expr, SqlError> {
        for (level, (captures, dependent)) in self.levels.iter_mut().zip(before.levels) {
            level.captures.truncate(captures);
            level.dependent = dependent;
        }
        self.inits.truncate(before.inits);
        let below = self.levels.split_off(depth + 1);
        let value = self.aggregate(name, call);
        self.levels.extend(below);
        Ok(self.capture(depth, value?))
    }

    fn aggregate_parts(
        &mut self,
        name: &str,
        list: &ast::FunctionArgumentList,
        filter: Option<&Ast>,
    ) -> Result<Parts, SqlError> {
        let ast::FunctionArgumentList {
            duplicate_treatment,
            args: given,
            clauses,
        } = list;
        let distinct = matches!(duplicate_treatment, Some(DuplicateTreatment::Distinct));
        let (args, star) = self.call_args(name, given, "this form of aggregate argument")?;
        let filter = filter
            .map(|filter| self.condition(filter, "FILTER"))
            .transpose()?;
        let mut order = Vec::new();
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) => {
                    for key in keys {
                        let expr = self.expr(&key.expr)?;
                        let (descending, nulls_first) = self.sort_order(key)?;
                        order.push((expr, descending, nulls_first));
                    }
                }
                other => return Err(self.source.misplaced(&first_word(other))),
            }
        }
        Ok(Parts {
            args,
            star,
            distinct,
            filter,
            order,
        })
    }

    /// The arguments of an aggregate or window function, and whether `*` is one; `unknown` is what
    /// 0A000 calls any other form.
    pub(super) fn call_args(
        &mut self,
        name: &str,
        given: &[FunctionArg],
        unknown: &str,
    ) -> Result<(Vec<Expr>, bool), SqlError> {
        let (mut args, mut star) = (Vec::new(), false);
        for arg in given {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => {
                    args.push(self.argument(name, arg)?);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => star = true,
                FunctionArg::Unnamed(row) if let Some(row) = self.row_argument(name, row)? => {
                    args.push(row);
                }
                _ => return Err(unsupported(unknown)),
            }
        }
        Ok((args, star))
    }
}

/// Lengths of what binding adds to: captures and dependence of each level, initial values.
struct Marks {
    levels: Vec<(usize, bool)>,
    inits: usize,
}

impl Parts {
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.order.iter().map(|(key, _, _)| key);
        self.args.iter().chain(&self.filter).chain(keys)
    }
}

/// What stands between the parentheses of an aggregate and behind them.
struct Parts {
    args: Vec<Expr>,
    star: bool,
    distinct: bool,
    filter: Option<Expr>,
    order: Vec<(Expr, bool, bool)>,
}

/// Refuses an aggregate in a clause that has none.
fn refuse_in(clause: Option<&str>) -> Result<(), SqlError> {
    let Some(clause) = clause else { return Ok(()) };
    let message = format!("aggregate functions are not allowed in {clause}");
    Err(SqlError::new(SqlState::GROUPING, message))
}

fn nested_aggregate(error: SqlError) -> SqlError {
    let text = "aggregate functions are not allowed in aggregate function calls";
    if error.fields().message == text {
        return SqlError::new(
            SqlState::GROUPING,
            "aggregate function calls cannot be nested",
        );
    }
    error
}

/// Where an expression over the outer row stands, for the error about an ungrouped column.
#[derive(Clone, Copy)]
enum Place {
    Clause,
    Subquery,
}

/// A grouped query: the relation of its groups and how expressions over the ungrouped row are
/// expressed over it.
pub(super) struct Grouping<'g> {
    keys: Keys,
    /// Keys that all groups have.
    common: Vec<Expr>,
    /// Arguments of GROUPING().
    groupings: Vec<Vec<Expr>>,
    /// The form of the keys that hold subqueries: it does not depend on how they are numbered.
    forms: Vec<Option<String>>,
    aggregates: Vec<Aggregate>,
    /// Columns that follow from the grouped ones (their table's primary key is grouped).
    implied: Vec<Expr>,
    scope: &'g Scope,
}

impl<'g> Grouping<'g> {
    pub(super) fn new(
        keys: Keys,
        forms: Vec<Option<String>>,
        aggregates: Vec<Aggregate>,
        (scope, groupings): (&'g Scope, Vec<Vec<Expr>>),
    ) -> Grouping<'g> {
        Grouping {
            common: keys.common(),
            keys,
            groupings,
            forms,
            aggregates,
            implied: Vec::new(),
            scope,
        }
    }

    /// The key that `expr` is. `calls` are those that its placeholders stand for.
    fn key(&self, expr: &Expr, forms: &Forms<'_>, calls: &[Call<Rel>]) -> Option<u32> {
        let form = match self.forms.iter().any(Option::is_some) {
            true => forms.of(expr, calls),
            false => None,
        };
        let position = match form {
            Some(form) => self
                .forms
                .iter()
                .position(|key| key.as_ref() == Some(&form)),
            None => {
                let mut keys = self.keys.exprs.iter().zip(&self.forms);
                keys.position(|(key, form)| form.is_none() && key == expr)
            }
        };
        position.map(|index| index as u32)
    }

    /// Rewrites an expression so that it reads the grouped relation.
    pub(super) fn rewrite(
        &mut self,
        expr: &mut Expr,
        forms: &Forms<'_>,
        calls: &[Call<Rel>],
    ) -> Result<(), SqlError> {
        self.rewrite_at(expr, forms, calls, Place::Clause)
    }

    fn rewrite_at(
        &mut self,
        expr: &mut Expr,
        forms: &Forms<'_>,
        calls: &[Call<Rel>],
        place: Place,
    ) -> Result<(), SqlError> {
        if let Some(index) = self.key(expr, forms, calls) {
            *expr = Expr::Column(index, expr.ty());
            return Ok(());
        }
        match expr {
            Expr::Outer(AGGREGATE | WINDOW | ROWS, _, _) => Ok(()),
            Expr::Outer(GROUPED, number, _) => {
                let args = self.groupings[*number as usize].iter();
                let places = args.map(|arg| self.key(arg, forms, calls).map(|at| at as usize));
                let places: Option<Vec<usize>> = places.collect();
                *expr = self.keys.grouping(&places.ok_or_else(not_grouped)?);
                Ok(())
            }
            Expr::Column(column, _) => {
                if !self.scope.determines(&self.common, *column) {
                    let name = self.scope.describe(*column);
                    let message = match place {
                        Place::Clause => format!(
                            "column \"{name}\" must appear in the GROUP BY clause or be used in \
                             an aggregate function"
                        ),
                        Place::Subquery => {
                            format!("subquery uses ungrouped column \"{name}\" from outer query")
                        }
                    };
                    return Err(SqlError::new(SqlState::GROUPING, message));
                }
                let index = match self.implied.iter().position(|known| known == expr) {
                    Some(index) => index,
                    None => {
                        self.implied.push(expr.clone());
                        self.implied.len() - 1
                    }
                };
                // Marked by an aggregate number behind the real ones until all are known.
                let number = u32::MAX / 2 + index as u32;
                *expr = Expr::Outer(AGGREGATE, number, expr.ty());
                Ok(())
            }
            other => {
                let mut result = Ok(());
                other.each_child_mut(&mut |child| {
                    if result.is_ok() {
                        result = self.rewrite_at(child, forms, calls, place);
                    }
                });
                result
            }
        }
    }

    /// Puts positions for the placeholders, when all expressions have been rewritten.
    pub(super) fn place(&self, expr: &mut Expr) {
        let groups = self.keys.columns();
        let implied = self.implied.len() as u32;
        walk::map(expr, &mut |node| {
            if let Expr::Outer(AGGREGATE, number, ty) = node {
                let column = match number.checked_sub(u32::MAX / 2) {
                    Some(index) => groups + index,
                    None => groups + implied + *number,
                };
                *node = Expr::Column(column, *ty);
            }
        });
    }

    /// The relation: group columns, implied columns, aggregates.
    pub(super) fn relation(self, input: Rel) -> Rel {
        let (input, mut group, always) = self.keys.over(input, self.implied.len());
        group.extend(self.implied);
        Rel::Aggregate {
            input: Box::new(input),
            group,
            aggregates: self.aggregates,
            always,
        }
    }

    /// Rewrites the expressions over the outer row that calls hold. Calls that are not marked in
    /// `read` stay over the ungrouped row: the caller must drop them.
    pub(super) fn rewrite_calls(
        &mut self,
        calls: &mut [Call<Rel>],
        forms: &Forms<'_>,
        read: &[bool],
    ) -> Result<(), SqlError> {
        let known = calls.to_vec();
        for (call, _) in calls.iter_mut().zip(read).filter(|(_, read)| **read) {
            let (left, binds) = call.kind.outer_mut();
            for expr in left {
                self.rewrite_at(expr, forms, &known, Place::Clause)?;
            }
            for (_, expr) in binds {
                self.rewrite_at(expr, forms, &known, Place::Subquery)?;
            }
        }
        Ok(())
    }
}

/// Drops the calls that none of `exprs` reads, and numbers the others anew.
pub(super) fn retain_read(calls: Vec<Call<Rel>>, exprs: &mut [&mut Expr]) -> Vec<Call<Rel>> {
    let read = read_calls(&calls, exprs.iter().map(|expr| &**expr));
    let mut numbers = Vec::with_capacity(read.len());
    let mut next = 0;
    for read in &read {
        numbers.push(next);
        next += u32::from(*read);
    }
    let mut renumber = |expr: &mut Expr| {
        walk::map(expr, &mut |node| {
            if let Expr::Subquery(number, _) = node {
                *number = numbers[*number as usize];
            }
        });
    };
    exprs.iter_mut().for_each(|expr| renumber(expr));
    let pairs = calls.into_iter().zip(read);
    let mut kept: Vec<Call<Rel>> = pairs.filter_map(|(c, read)| read.then_some(c)).collect();
    for call in &mut kept {
        call.kind.outer_exprs_mut().for_each(&mut renumber);
    }
    kept
}

/// Which calls the expressions read, by way of other calls too. Calls with effects count as read.
pub(super) fn read_calls<'e>(
    calls: &[Call<Rel>],
    exprs: impl Iterator<Item = &'e Expr>,
) -> Vec<bool> {
    let effect = |call: &Call<Rel>| match &call.kind {
        CallKind::Nextval(_) | CallKind::Sleep(_) => true,
        CallKind::Sequence(call, _, _) => call.writes(),
        _ => false,
    };
    let mut read: Vec<bool> = calls.iter().map(effect).collect();
    let note = |expr: &Expr, read: &mut Vec<bool>| {
        walk::walk(expr, &mut |node| {
            if let Expr::Subquery(number, _) = node {
                read[*number as usize] = true;
            }
        });
    };
    exprs.for_each(|expr| note(expr, &mut read));
    for (number, call) in calls.iter().enumerate().rev() {
        if read[number] {
            let exprs = call.kind.outer_exprs();
            exprs.for_each(|expr| note(expr, &mut read));
        }
    }
    read
}
