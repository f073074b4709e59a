//! GROUP BY and HAVING: the keys of the groups, and the clauses that read groups instead of rows.

use super::aggregate::{Grouping, read_calls, retain_read};
use super::form::Forms;
use super::over::{WINDOW, Windows};
use super::rel::{Aggregate, Call, Rel};
use super::scope::{Scope, ident};
use super::select::{SortTarget, extra_mut};
use super::sets::{GROUPED, Keys};
use super::target::Target;
use super::{AGGREGATE, Binder, ELSEWHERE, Untyped, conjuncts, place_calls};
use base::{SqlError, SqlState, Type};
use expr::resolve::has_equality;
use expr::{Expr, walk};
use sqlparser::ast::Expr as Ast;

/// The bound clauses of a SELECT that may have to read groups instead of rows.
pub(super) struct SelectParts {
    pub(super) targets: Vec<Target>,
    pub(super) sort: Vec<SortTarget>,
    pub(super) distinct_on: Option<Vec<SortTarget>>,
    pub(super) having: Option<Expr>,
    /// Calls of all of them but HAVING.
    pub(super) calls: Vec<Call<Rel>>,
    pub(super) having_calls: Vec<Call<Rel>>,
    pub(super) windows: Windows,
    /// Arguments of GROUPING().
    pub(super) groupings: Vec<Vec<Expr>>,
}

impl SelectParts {
    /// The expressions and the calls that they read: of HAVING, of windows and what is computed
    /// over them, and of all other clauses.
    pub(super) fn clauses(&mut self) -> [(Vec<&mut Expr>, &mut Vec<Call<Rel>>); 3] {
        let sort = self.sort.iter_mut();
        let extras = sort.chain(self.distinct_on.iter_mut().flatten());
        let targets = self.targets.iter_mut().map(|target| &mut target.expr);
        let all = targets.chain(extras.filter_map(extra_mut));
        [
            (self.having.iter_mut().collect(), &mut self.having_calls),
            self.windows.clause(),
            (all.collect(), &mut self.calls),
        ]
    }

    /// Whether rows are grouped although neither GROUP BY nor an aggregate is there.
    pub(super) fn needs_groups(&self) -> bool {
        !self.groupings.is_empty() || self.having.is_some()
    }

    /// The values of the calls stand behind `width` columns.
    pub(super) fn place_calls(&mut self, width: u32) {
        let [_, _, (exprs, _)] = self.clauses();
        let exprs = exprs.into_iter();
        exprs.for_each(|expr| place_calls(expr, width));
    }
}

/// The values of the type are never equal: `json`.
pub(super) fn no_equality(ty: Type) -> SqlError {
    let name = ty.element().unwrap_or(ty).name();
    let message = format!("could not identify an equality operator for type {name}");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// As [`check_equality`] for the columns at these positions.
pub(super) fn check_equalities(columns: &[u32], types: &[Type]) -> Result<(), SqlError> {
    let mut columns = columns.iter();
    columns.try_for_each(|column| check_equality(types[*column as usize]))
}

/// Refuses types of which values cannot be found equal.
pub(super) fn check_equality(ty: Type) -> Result<(), SqlError> {
    match has_equality(ty) {
        true => Ok(()),
        false => Err(no_equality(ty)),
    }
}

impl Binder<'_> {
    /// The relation of the groups, filtered by HAVING; `parts` then read it.
    pub(super) fn grouped(
        &mut self,
        rel: Rel,
        scope: &Scope,
        mut keys: Keys,
        mut aggregates: Vec<Aggregate>,
        parts: &mut SelectParts,
    ) -> Result<Rel, SqlError> {
        let inner_calls = core::mem::take(&mut self.level().inner_calls);
        let width = rel.width();
        for aggregate in &mut aggregates {
            let keys = aggregate.order.iter_mut().map(|(key, _, _)| key);
            let exprs = aggregate.args.iter_mut().chain(&mut aggregate.filter);
            exprs.chain(keys).for_each(|expr| place_calls(expr, width));
        }
        let forms = Forms::new(&self.inits);
        let key_forms = keys.exprs.iter().map(|key| forms.of(key, &inner_calls));
        let key_forms = key_forms.collect();
        let exprs = keys.exprs.iter_mut();
        exprs.for_each(|key| place_calls(key, width));
        let groupings = core::mem::take(&mut parts.groupings);
        let mut grouping = Grouping::new(keys, key_forms, aggregates, (scope, groupings));
        for (mut exprs, calls) in parts.clauses() {
            for expr in &mut exprs {
                grouping.rewrite(expr, &forms, calls)?;
            }
            let read = read_calls(calls, exprs.iter().map(|expr| &**expr));
            grouping.rewrite_calls(calls, &forms, &read)?;
            *calls = retain_read(core::mem::take(calls), &mut exprs);
        }
        for (exprs, calls) in parts.clauses() {
            exprs.into_iter().for_each(|expr| grouping.place(expr));
            for call in calls {
                let exprs = call.kind.outer_exprs_mut();
                exprs.for_each(|expr| grouping.place(expr));
            }
        }
        let rel = grouping.relation(rel.applied(inner_calls));
        let Some(mut having) = parts.having.take() else {
            return Ok(rel);
        };
        let width = rel.width();
        place_calls(&mut having, width);
        let mut conditions = Vec::new();
        conjuncts(having, &mut conditions);
        let calls = core::mem::take(&mut parts.having_calls);
        Ok(rel.applied(calls).filtered(conditions))
    }

    /// The keys of GROUP BY; those that name a target, which reads `calls`, have copies of its
    /// calls.
    pub(super) fn group_keys(
        &mut self,
        asts: &[Ast],
        targets: &mut [Target],
        calls: &[Call<Rel>],
    ) -> Result<Keys, SqlError> {
        let grouping = parse::grouping::grouping(asts)?;
        let mut keys: Vec<Expr> = Vec::new();
        let mut places = Vec::new();
        for ast in grouping.keys {
            self.level().aggregates_in = Some("GROUP BY");
            let outer_calls = self.take_calls();
            let inner = core::mem::take(&mut self.level().inner_calls);
            let count = inner.len();
            self.level().calls = inner;
            let key = self.group_key(ast, targets, calls);
            let inner = self.take_calls();
            let aggregate = |node: &Expr| matches!(node, Expr::Outer(AGGREGATE | GROUPED, _, _));
            let reads = |expr: &Expr| walk::any(expr, &aggregate);
            let inside = |call: &Call<Rel>| call.kind.outer_exprs().any(reads);
            let aggregates = inner[count..].iter().any(inside);
            self.level().inner_calls = inner;
            self.level().calls = outer_calls;
            self.level().aggregates_in = ELSEWHERE;
            let key = key?;
            check_equality(key.ty())?;
            if walk::any(&key, &|node| matches!(node, Expr::Outer(WINDOW, _, _))) {
                let message = "window functions are not allowed in GROUP BY";
                return Err(window::frame::windowing(message));
            }
            if aggregates || reads(&key) {
                let message = "aggregate functions are not allowed in GROUP BY";
                return Err(SqlError::new(SqlState::GROUPING, message));
            }
            let known = keys.iter().position(|known| *known == key);
            places.push(known.unwrap_or(keys.len()));
            if known.is_none() {
                keys.push(key);
            }
        }
        let sets = grouping.sets.map(|sets| {
            let set = |set: parse::grouping::Set| {
                let mut has = vec![false; keys.len()];
                set.into_iter().for_each(|key| has[places[key]] = true);
                has
            };
            sets.into_iter().map(set).collect()
        });
        Ok(Keys { exprs: keys, sets })
    }

    /// A key of GROUP BY. An output column without a type that it names becomes text.
    fn group_key(
        &mut self,
        ast: &Ast,
        targets: &mut [Target],
        calls: &[Call<Rel>],
    ) -> Result<Expr, SqlError> {
        if let Some(index) = self.ordinal(ast, targets.len(), "GROUP BY")? {
            self.settle_targets(&mut targets[index..=index], &Untyped::Text)?;
            return Ok(self.copied(&targets[index].expr, calls));
        }
        if let Ast::Identifier(name) = ast {
            let folded = ident(name);
            // A column of the input goes before an output name.
            let input = matches!(
                self.level().scope.find(None, &folded),
                super::scope::Found::Column(_) | super::scope::Found::Ambiguous
            );
            if !input && let Some(index) = targets.iter().position(|t| t.name == folded) {
                self.settle_targets(&mut targets[index..=index], &Untyped::Text)?;
                return Ok(self.copied(&targets[index].expr, calls));
            }
        }
        if let Ast::Tuple(items) = ast
            && let [only] = items.as_slice()
        {
            return self.group_key(only, targets, calls);
        }
        self.expr(ast)
    }

    /// An expression that reads `from`, with copies of its calls among this level's.
    fn copied(&mut self, expr: &Expr, from: &[Call<Rel>]) -> Expr {
        let mut expr = expr.clone();
        let mut copies: Vec<(u32, u32)> = Vec::new();
        self.copy_calls(&mut expr, from, &mut copies);
        expr
    }

    fn copy_calls(&mut self, expr: &mut Expr, from: &[Call<Rel>], copies: &mut Vec<(u32, u32)>) {
        walk::map(expr, &mut |node| {
            let Expr::Subquery(number, _) = node else {
                return;
            };
            let known = copies.iter().find(|(old, _)| old == number);
            *number = match known {
                Some((_, new)) => *new,
                None => {
                    let mut call = from[*number as usize].clone();
                    for expr in call.kind.outer_exprs_mut() {
                        self.copy_calls(expr, from, copies);
                    }
                    let calls = &mut self.level().calls;
                    calls.push(call);
                    copies.push((*number, calls.len() as u32 - 1));
                    calls.len() as u32 - 1
                }
            };
        });
    }
}
