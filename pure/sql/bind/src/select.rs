//! Queries: SELECT, VALUES, UNION, and the clauses around them.

use super::clauses::SelectClauses;
use super::expr::unwrapped;
use super::form::Forms;
use super::from::Locking;
use super::group::SelectParts;
use super::group::check_equalities;
use super::locked::Locked;
use super::rel::{Rel, SortKey};
use super::scope::{Scope, ident};
use super::target::Target;
use super::{Binder, BoundQuery, ELSEWHERE, Untyped, conjuncts, place_calls, unsupported};
use base::{OutColumn, SqlError, SqlState, Type};
use expr::Expr;
use expr::resolve::{self, Context};
use sqlparser::ast::{
    self, Distinct, Expr as Ast, OrderBy, OrderByExpr, OrderByKind, Query, Select, SetExpr,
    SetOperator,
};

/// An output column to sort by: position among the targets, or an expression of its own.
#[derive(Clone)]
pub(super) enum SortTarget {
    Output(usize),
    Extra(Expr),
}

/// LIMIT and OFFSET.
#[derive(Default)]
pub(super) struct Window {
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
    /// FETCH FIRST ... WITH TIES.
    pub(super) with_ties: bool,
}

impl Binder<'_> {
    /// Binds a query at the current level.
    ///
    /// # Errors
    /// Those of binding; 0A000 for clauses of later releases.
    pub fn query(&mut self, query: &Query) -> Result<BoundQuery, SqlError> {
        self.deeper(|binder| match &query.with {
            Some(with) => binder.with(with, |binder| binder.query_inner(query)),
            None => binder.query_inner(query),
        })
    }

    fn query_inner(&mut self, query: &Query) -> Result<BoundQuery, SqlError> {
        let Query {
            with: _,
            body,
            order_by,
            limit,
            limit_by,
            offset,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
        } = query;
        self.no(!limit_by.is_empty(), "BY")?;
        self.no(for_clause.is_some(), "FOR")?;
        self.no(settings.is_some(), "SETTINGS")?;
        self.no(format_clause.is_some(), "FORMAT")?;
        self.no(limit.is_some() && fetch.is_some(), "FETCH")?;
        let order: &[OrderByExpr] = match order_by {
            None => &[],
            Some(OrderBy { kind, interpolate }) => {
                self.no(interpolate.is_some(), "INTERPOLATE")?;
                match kind {
                    OrderByKind::Expressions(keys) => keys,
                    OrderByKind::All(_) => return Err(self.source.misplaced("ALL")),
                }
            }
        };
        let inherited = self.inherited.take();
        let untyped = core::mem::take(&mut self.untyped);
        let window = self.window(limit.as_ref(), offset.as_ref(), fetch.as_ref())?;
        let mut locking = self.locking(locks)?;
        if let Some((mode, clause)) = inherited {
            locking.mode = Some(locking.mode.map_or(mode, |own| own.max(mode)));
            locking.clause.get_or_insert(clause);
            locking.of.clear();
        }
        let mut bound = match body.as_ref() {
            SetExpr::Select(select) => {
                return self.select(select, order, window, &locking, untyped);
            }
            SetExpr::Query(inner) => {
                self.untyped = untyped;
                self.query(inner)?
            }
            body => self.set_expr(body)?,
        };
        locking
            .clause
            .map_or(Ok(()), |clause| Err(no_rows_to_lock(clause, body)))?;
        let mut keys = Vec::new();
        for key in order {
            let column = self.output_only(&key.expr, &bound.columns)?;
            keys.push(self.sort_key((column as u32, bound.columns[column].ty), key)?);
        }
        let ties: Vec<u32> = keys.iter().map(|key| key.column).collect();
        bound.rel = sorted(bound.rel, keys);
        bound.rel = windowed(bound.rel, window, &ties)?;
        Ok(bound)
    }

    /// `TABLE name`: all columns of a table.
    fn table_command(&mut self, table: &ast::Table) -> Result<BoundQuery, SqlError> {
        let ast::Table {
            table_name,
            schema_name,
        } = table;
        let parts: Vec<ast::Ident> = schema_name
            .iter()
            .chain(table_name)
            .map(|name| ast::Ident::new(name.clone()))
            .collect();
        let factor = ast::TableFactor::Table {
            name: parts.into(),
            alias: None,
            args: None,
            with_hints: Vec::new(),
            version: None,
            with_ordinality: false,
            partitions: Vec::new(),
            json_path: None,
            sample: None,
            index_hints: Vec::new(),
        };
        let item = ast::TableWithJoins {
            relation: factor,
            joins: Vec::new(),
        };
        let (rel, scope) = self.bind_from_item(None, &item, &Locking::default())?;
        let visible = scope.columns.iter().filter(|c| !c.hidden);
        let (exprs, columns) = visible
            .map(|c| {
                let column = OutColumn {
                    name: c.name.clone(),
                    ty: c.expr.ty(),
                    table: c.origin.0,
                    attribute: c.origin.1,
                };
                (c.expr.clone(), column)
            })
            .unzip();
        Ok(BoundQuery {
            rel: rel.projected(exprs),
            columns,
        })
    }

    pub(super) fn set_expr(&mut self, body: &SetExpr) -> Result<BoundQuery, SqlError> {
        match body {
            SetExpr::Select(select) => self.nested_query(|b| {
                let (window, locking) = (Window::default(), Locking::default());
                b.select(select, &[], window, &locking, Untyped::Kept)
            }),
            SetExpr::Query(query) => self.nested_query(|b| {
                b.untyped = Untyped::Kept;
                b.query(query)
            }),
            SetExpr::Values(ast::Values { explicit_row, rows }) => {
                self.no(*explicit_row, "ROW")?;
                self.values(rows)
            }
            SetExpr::Table(table) => self.table_command(table),
            SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => match op {
                SetOperator::Union => self.union(body, *set_quantifier),
                SetOperator::Intersect | SetOperator::Except => {
                    let except = matches!(op, SetOperator::Except);
                    self.deeper(|b| b.matched((left, right), except, *set_quantifier))
                }
                SetOperator::Minus => Err(self.source.misplaced("MINUS")),
            },
            SetExpr::Insert(_) | SetExpr::Update(_) => {
                Err(unsupported("a data-modifying statement here"))
            }
        }
    }

    /// Binds a query that shares the outer levels but none of this level's names.
    fn nested_query(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<BoundQuery, SqlError>,
    ) -> Result<BoundQuery, SqlError> {
        let (bound, binds, _) = self.nested(bind)?;
        // This level has no names yet, so nothing of it can have been captured.
        assert!(
            binds.is_empty(),
            "a set operation's side reads its own level"
        );
        Ok(bound)
    }

    /// VALUES as a query: columns of common types.
    fn values(&mut self, rows: &[Vec<Ast>]) -> Result<BoundQuery, SqlError> {
        let width = rows[0].len();
        if rows.iter().any(|row| row.len() != width) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        let clause = self.level().aggregates_in.replace("VALUES");
        let mut bound = rows
            .iter()
            .map(|row| {
                row.iter()
                    .map(|value| self.expr(value))
                    .collect::<Result<Vec<_>, _>>()
            })
            .collect::<Result<Vec<_>, _>>()?;
        self.level().aggregates_in = clause;
        let mut types = Vec::new();
        for i in 0..width {
            let column: Vec<Type> = bound.iter().map(|row| row[i].ty()).collect();
            let ty = match resolve::common_type(&column)? {
                Type::Unknown => Type::Text,
                known => known,
            };
            for row in &mut bound {
                let value = core::mem::replace(&mut row[i], Expr::null(ty));
                row[i] = resolve::coerce(value, ty, Context::Implicit)?;
                let value = row[i].clone();
                self.note(&value);
            }
            types.push(ty);
        }
        let columns = types
            .iter()
            .enumerate()
            .map(|(i, ty)| OutColumn {
                name: format!("column{}", i + 1),
                ty: *ty,
                table: 0,
                attribute: 0,
            })
            .collect();
        let calls = self.take_calls();
        Ok(BoundQuery {
            rel: Rel::Values {
                rows: bound,
                types,
                calls,
            },
            columns,
        })
    }

    /// What DISTINCT ON names. What ORDER BY computes is not computed twice.
    fn distinct_keys<'k>(
        &mut self,
        exprs: &[Ast],
        order: impl Iterator<Item = (&'k OrderByExpr, &'k SortTarget)> + Clone,
        targets: &mut [Target],
    ) -> Result<Vec<SortTarget>, SqlError> {
        let mut keys = Vec::new();
        for expr in exprs {
            let sorted = order.clone().find(|(key, _)| key.expr == *expr);
            keys.push(match sorted {
                Some((_, target)) => target.clone(),
                None => self.sort_target(expr, targets)?,
            });
        }
        Ok(keys)
    }

    /// The rows for which WHERE is true.
    fn restricted(&mut self, rel: Rel, condition: Option<&Ast>) -> Result<Rel, SqlError> {
        let Some(condition) = condition else {
            return Ok(rel);
        };
        self.level().aggregates_in = Some("WHERE");
        let bound = self.condition(condition, "WHERE")?;
        self.level().aggregates_in = ELSEWHERE;
        Ok(self.filter(rel, bound))
    }

    fn select(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        window: Window,
        locking: &Locking,
        untyped: Untyped,
    ) -> Result<BoundQuery, SqlError> {
        let SelectClauses {
            distinct,
            projection,
            from,
            selection,
            group_by: group_asts,
            having,
            windows,
        } = self.select_clauses(select)?;
        refuse_lock(locking, distinct.is_some(), "DISTINCT clause")?;
        let locked = Locked::of(locking);
        let (mut rel, scope) =
            self.bind_from(from, locked.as_ref().map_or(locking, |l| &l.plain))?;
        check_locked_names(&scope, locking)?;
        if let Some(locked) = &locked {
            locked.check(&rel)?;
        }
        self.set_scope(scope.clone());
        rel = self.restricted(rel, selection)?;
        self.level().aggregates_in = None;
        self.window_clause(windows)?;
        let mut targets = self.listed_targets(projection)?;
        let sort = order.iter();
        let sort = sort.map(|key| self.sort_target(&key.expr, &mut targets));
        let sort = sort.collect::<Result<Vec<_>, _>>()?;
        let distinct_on = match distinct {
            Some(Distinct::On(exprs)) => {
                Some(self.distinct_keys(exprs, order.iter().zip(&sort), &mut targets)?)
            }
            _ => None,
        };
        let calls = self.take_calls();
        let windows = core::mem::take(&mut self.level().windows);
        let having = self.having(having)?;
        let having_calls = self.take_calls();
        self.level().aggregates_in = ELSEWHERE;
        let mut group = self.group_keys(group_asts, &mut targets, &calls)?;
        let mut listed = self.take_listed(locking.clause)?;
        self.settle_targets(&mut targets, &untyped.of_query(distinct))?;
        let aggregates = core::mem::take(&mut self.level().aggregates);
        let mut parts = SelectParts {
            targets,
            sort,
            distinct_on,
            having,
            calls,
            having_calls,
            windows,
            groupings: core::mem::take(&mut self.level().groupings),
        };
        let grouped = !group_asts.is_empty() || !aggregates.is_empty() || parts.needs_groups();
        rel = self.rows_below(rel, &mut listed, &mut group.exprs, &mut parts)?;
        if grouped {
            refuse_locks(locking, !group_asts.is_empty(), parts.having.is_some())?;
            rel = self.grouped(rel, &scope, group, aggregates, &mut parts)?;
        }
        rel = self.over_groups(rel, locking, &mut parts)?;
        rel = self.rows_above(rel, listed, &mut parts);
        let distinct = Distinctness::new(distinct, parts.distinct_on);
        let sort = parts.sort.into_iter().zip(order).collect();
        self.output(rel, parts.targets, sort, distinct, (window, locked))
    }

    fn having(&mut self, condition: Option<&Ast>) -> Result<Option<Expr>, SqlError> {
        // No function in it gives rows.
        let listed = self.level().listed.take();
        let bound = condition.map(|it| self.condition(it, "HAVING"));
        self.level().listed = listed;
        bound.transpose()
    }

    /// The rows with the values of window functions and calls.
    fn over_groups(
        &mut self,
        rel: Rel,
        locking: &Locking,
        parts: &mut SelectParts,
    ) -> Result<Rel, SqlError> {
        refuse_lock(locking, parts.windows.is_used(), "window functions")?;
        let rel = self.with_windows(rel, parts)?;
        let width = rel.width();
        let rel = rel.applied(core::mem::take(&mut parts.calls));
        parts.place_calls(width);
        Ok(rel)
    }

    /// `rel` filtered by a bound condition, whose calls are made first.
    pub fn filter(&mut self, rel: Rel, mut condition: Expr) -> Rel {
        let calls = self.take_calls();
        let width = rel.width();
        place_calls(&mut condition, width);
        let mut parts = Vec::new();
        conjuncts(condition, &mut parts);
        rel.applied(calls).filtered(parts)
    }

    /// Projection, DISTINCT, ORDER BY and LIMIT.
    fn output(
        &mut self,
        rel: Rel,
        targets: Vec<Target>,
        sort: Vec<(SortTarget, &OrderByExpr)>,
        distinct: Distinctness,
        (window, locked): (Window, Option<Locked>),
    ) -> Result<BoundQuery, SqlError> {
        let columns: Vec<OutColumn> = targets.iter().map(Target::column).collect();
        let mut exprs: Vec<Expr> = targets.into_iter().map(|target| target.expr).collect();
        let count = exprs.len() as u32;
        let mut keys = Vec::new();
        for (target, key) in sort {
            let column = match target {
                SortTarget::Output(index) => index as u32,
                SortTarget::Extra(expr) => {
                    if matches!(distinct, Distinctness::Rows) {
                        return Err(SqlError::new(
                            SqlState::INVALID_COLUMN_REFERENCE,
                            "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                        ));
                    }
                    exprs.push(expr);
                    exprs.len() as u32 - 1
                }
            };
            keys.push(self.sort_key((column, exprs[column as usize].ty()), key)?);
        }
        let mut on = Vec::new();
        let whole_rows = matches!(distinct, Distinctness::Rows);
        if let Distinctness::On(targets) = distinct {
            on = positions(targets, &mut exprs);
            if !starts_with_all(&keys, &on) {
                return Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                ));
            }
        } else if whole_rows {
            on = (0..count).collect();
        }
        let types: Vec<Type> = exprs.iter().map(Expr::ty).collect();
        check_equalities(&on, &types)?;
        let mut rel = rel.projected(exprs);
        if whole_rows {
            let keys = core::mem::take(&mut on);
            let input = Box::new(rel);
            rel = Rel::Distinct { input, keys };
        }
        let ties: Vec<u32> = keys.iter().map(|key| key.column).collect();
        rel = sorted(rel, keys);
        if !on.is_empty() {
            rel = Rel::Distinct {
                input: Box::new(rel),
                keys: on,
            };
        }
        if window.with_ties && locked.as_ref().is_some_and(Locked::skips) {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
        rel = windowed(Locked::over(locked, rel), window, &ties)?;
        if types.len() as u32 > count {
            let kept = (0..count)
                .map(|i| Expr::Column(i, types[i as usize]))
                .collect();
            rel = rel.projected(kept);
        }
        Ok(BoundQuery { rel, columns })
    }

    /// The output column that a number names.
    pub(super) fn ordinal(
        &self,
        ast: &Ast,
        count: usize,
        clause: &str,
    ) -> Result<Option<usize>, SqlError> {
        let Ast::Value(value) = unwrapped(ast) else {
            return Ok(None);
        };
        let ast::Value::Number(digits, _) = &value.value else {
            return Err(SqlError::new(
                SqlState::SYNTAX,
                format!("non-integer constant in {clause}"),
            )
            .at(self.position(value.span)));
        };
        match digits.parse::<usize>() {
            Ok(number) if (1..=count).contains(&number) => Ok(Some(number - 1)),
            Ok(number) => Err(SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("{clause} position {number} is not in select list"),
            )
            .at(self.position(value.span))),
            Err(_) => Err(SqlError::new(
                SqlState::SYNTAX,
                format!("non-integer constant in {clause}"),
            )),
        }
    }

    /// What a key of ORDER BY or DISTINCT ON names. An output column without a type is sorted as
    /// text, so it becomes text.
    fn sort_target(&mut self, ast: &Ast, targets: &mut [Target]) -> Result<SortTarget, SqlError> {
        let found = self.find_sort_target(ast, targets)?;
        if let SortTarget::Output(index) = found {
            self.settle_targets(&mut targets[index..=index], &Untyped::Text)?;
        }
        Ok(found)
    }

    fn find_sort_target(&mut self, ast: &Ast, targets: &[Target]) -> Result<SortTarget, SqlError> {
        if let Some(index) = self.ordinal(ast, targets.len(), "ORDER BY")? {
            return Ok(SortTarget::Output(index));
        }
        if let Ast::Identifier(name) = ast {
            let folded = ident(name);
            let mut named = targets.iter().enumerate().filter(|(_, t)| t.name == folded);
            if let Some((index, first)) = named.next() {
                if named.any(|(_, other)| other.expr != first.expr) {
                    let message = format!("ORDER BY \"{folded}\" is ambiguous");
                    return Err(SqlError::new(SqlState::AMBIGUOUS_COLUMN, message));
                }
                return Ok(SortTarget::Output(index));
            }
        }
        let mut expr = self.expr(ast)?;
        if expr.ty() == Type::Unknown {
            expr = resolve::coerce(expr, Type::Text, Context::Implicit)?;
        }
        let level = self
            .levels
            .last()
            .expect("the outermost level is never popped");
        let forms = Forms::new(&self.inits);
        let form = forms.of(&expr, &level.calls);
        let same = |target: &Target| match &form {
            None => target.expr == expr,
            form => forms.of(&target.expr, &level.calls) == *form,
        };
        Ok(match targets.iter().position(same) {
            Some(index) => SortTarget::Output(index),
            None => SortTarget::Extra(expr),
        })
    }

    /// A sort key of a query whose input columns are not visible any more.
    fn output_only(&mut self, ast: &Ast, columns: &[OutColumn]) -> Result<usize, SqlError> {
        if let Some(index) = self.ordinal(ast, columns.len(), "ORDER BY")? {
            return Ok(index);
        }
        let Ast::Identifier(name) = ast else {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
            )
            .detail("Only result column names can be used, not expressions or functions.")
            .hint(
                "Add the expression/function to every SELECT, or move the UNION into a FROM \
                 clause.",
            ));
        };
        let folded = ident(name);
        columns
            .iter()
            .position(|column| column.name == folded)
            .ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{folded}\" does not exist"),
                )
                .at(self.position(name.span))
            })
    }
}

/// A locking clause of a query whose rows are of no table.
fn no_rows_to_lock(clause: &str, body: &SetExpr) -> SqlError {
    let message = match body {
        SetExpr::Values(_) => format!("{clause} cannot be applied to VALUES"),
        _ => format!("{clause} is not allowed with UNION/INTERSECT/EXCEPT"),
    };
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// What DISTINCT asks for.
enum Distinctness {
    No,
    Rows,
    On(Vec<SortTarget>),
}

impl Distinctness {
    fn new(distinct: &Option<Distinct>, on: Option<Vec<SortTarget>>) -> Distinctness {
        match (distinct, on) {
            (Some(Distinct::Distinct), _) => Distinctness::Rows,
            (_, Some(on)) => Distinctness::On(on),
            (_, None) => Distinctness::No,
        }
    }
}

pub(super) fn extra_mut(target: &mut SortTarget) -> Option<&mut Expr> {
    match target {
        SortTarget::Extra(expr) => Some(expr),
        SortTarget::Output(_) => None,
    }
}

/// Refuses FOR UPDATE and its like in a query that has `what`.
fn refuse_lock(locking: &Locking, has: bool, what: &str) -> Result<(), SqlError> {
    match (locking.clause, has) {
        (Some(clause), true) => {
            let message = format!("{clause} is not allowed with {what}");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        _ => Ok(()),
    }
}

fn sorted(rel: Rel, keys: Vec<SortKey>) -> Rel {
    match keys.is_empty() {
        true => rel,
        false => Rel::Sort {
            input: Box::new(rel),
            keys,
        },
    }
}

/// The rows that LIMIT and OFFSET leave; `sorted` are the columns of ORDER BY.
fn windowed(rel: Rel, window: Window, sorted: &[u32]) -> Result<Rel, SqlError> {
    let Window {
        limit,
        offset,
        with_ties,
    } = window;
    if with_ties && sorted.is_empty() {
        let message = "WITH TIES cannot be specified without ORDER BY clause";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    if with_ties && matches!(limit, Some(Expr::Const(base::Datum::Null, _))) {
        let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
        return Err(SqlError::new(SqlState::NEGATIVE_LIMIT, message));
    }
    if limit.is_none() && offset.is_none() {
        return Ok(rel);
    }
    Ok(Rel::Limit {
        input: Box::new(rel),
        limit,
        offset,
        ties: if with_ties {
            sorted.to_vec()
        } else {
            Vec::new()
        },
    })
}

/// Where the expressions of DISTINCT ON stand among the columns; those that are not there yet are
/// appended.
fn positions(targets: Vec<SortTarget>, exprs: &mut Vec<Expr>) -> Vec<u32> {
    let place = |target| match target {
        SortTarget::Output(index) => index as u32,
        SortTarget::Extra(expr) => match exprs.iter().position(|known| *known == expr) {
            Some(index) => index as u32,
            None => {
                exprs.push(expr);
                exprs.len() as u32 - 1
            }
        },
    };
    targets.into_iter().map(place).collect()
}

/// Whether the keys of ORDER BY start with those of DISTINCT ON in any order, as far as they go.
fn starts_with_all(keys: &[SortKey], on: &[u32]) -> bool {
    let mut missing = on.to_vec();
    for key in keys {
        if missing.is_empty() {
            break;
        }
        if !on.contains(&key.column) {
            return false;
        }
        missing.retain(|column| *column != key.column);
    }
    true
}

/// Refuses FOR UPDATE and its like where groups hide the rows.
///
/// # Errors
/// 0A000.
fn refuse_locks(locking: &Locking, grouped: bool, having: bool) -> Result<(), SqlError> {
    let with = match (grouped, having) {
        (true, _) => "GROUP BY clause",
        (false, true) => "HAVING clause",
        (false, false) => "aggregate functions",
    };
    refuse_lock(locking, true, with)
}

fn check_locked_names(scope: &Scope, locking: &Locking) -> Result<(), SqlError> {
    match locking
        .of
        .iter()
        .find(|name| !scope.relations.contains(name))
    {
        Some(name) => Err(SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause"),
        )),
        None => Ok(()),
    }
}
