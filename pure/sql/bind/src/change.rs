//! What INSERT, UPDATE and DELETE name: a table, or a view whose rows are those of one table.
//!
//! Such a view is no more than other names over the rows of its table: its columns are
//! expressions over them, and its condition is one more condition.

use super::rel::Rel;
use super::scope::{Scope, ScopeColumn, ident, object_name, table_scope};
use super::view::query_of;
use super::{Binder, ELSEWHERE, unsupported};
use base::full_name::{self, own};
use base::{SqlError, SqlState};
use catalog::{Table, View};
use expr::{Expr, aggregate, walk};
use rights::Privileges;
use sqlparser::ast::{
    self, Expr as Ast, GroupByExpr, ObjectName, OnInsert, Query, SelectItem, SetExpr, TableAlias,
    TableFactor,
};
use std::sync::Arc;
use txn::LockMode;

/// A statement that changes rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    fn privilege(self) -> Privileges {
        match self {
            Change::Insert => Privileges::INSERT,
            Change::Update => Privileges::UPDATE,
            Change::Delete => Privileges::DELETE,
        }
    }
}

/// Whose rows are changed.
pub(super) struct Changed {
    pub(super) table: Arc<Table>,
    pub(super) alias: String,
    /// The rows that can be changed, locked; the table's columns come first.
    pub(super) rows: Rel,
    /// The names over them.
    pub(super) scope: Scope,
    pub(super) is_view: bool,
    /// The view in whose query the table stands, whose owner changes its rows.
    pub(super) by: Option<Arc<View>>,
    /// What new rows must meet, the innermost view's first.
    pub(super) checks: Vec<ViewCheck>,
}

/// The condition of a view with a check option, over the columns of the table.
pub(super) struct ViewCheck {
    pub(super) condition: Expr,
    pub(super) view: Arc<View>,
}

/// The view through which the statement changes rows.
pub(super) struct ChangedView {
    pub(super) view: Arc<View>,
    change: Change,
    /// The columns of the table that the view's columns are.
    pub(super) columns: Vec<Option<u16>>,
}

/// A query over one relation that gives a row for each of its rows.
struct Simple<'q> {
    base: &'q ObjectName,
    alias: Option<&'q TableAlias>,
    projection: &'q [SelectItem],
    condition: Option<&'q Ast>,
}

/// Takes a query apart.
///
/// # Errors
/// PostgreSQL's sentence on why rows cannot be changed through it.
fn simple(query: &Query) -> Result<Simple<'_>, &'static str> {
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation {
            op: _,
            set_quantifier: _,
            left: _,
            right: _,
        } => {
            return Err(
                "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
            );
        }
        SetExpr::Query(inner) if query.with.is_none() => return simple(inner),
        _ => return Err(ONE_RELATION),
    };
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let windowed = query.limit.is_some() || query.offset.is_some() || query.fetch.is_some();
    let obstacles = [
        (
            select.distinct.is_some(),
            "Views containing DISTINCT are not automatically updatable.",
        ),
        (
            grouped,
            "Views containing GROUP BY are not automatically updatable.",
        ),
        (
            select.having.is_some(),
            "Views containing HAVING are not automatically updatable.",
        ),
        (
            query.with.is_some(),
            "Views containing WITH are not automatically updatable.",
        ),
        (
            windowed,
            "Views containing LIMIT or OFFSET are not automatically updatable.",
        ),
    ];
    if let Some((_, why)) = obstacles.into_iter().find(|(there, _)| *there) {
        return Err(why);
    }
    let [item] = select.from.as_slice() else {
        return Err(ONE_RELATION);
    };
    match &item.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints: _,
            version: _,
            with_ordinality: _,
            partitions: _,
            json_path: _,
            sample: _,
            index_hints: _,
        } if item.joins.is_empty() => Ok(Simple {
            base: name,
            alias: alias.as_ref(),
            projection: &select.projection,
            condition: select.selection.as_ref(),
        }),
        _ => Err(ONE_RELATION),
    }
}

const ONE_RELATION: &str =
    "Views that do not select from a single table or view are not automatically updatable.";
const AGGREGATES: &str = "Views that return aggregate functions are not automatically updatable.";
const SETS: &str = "Views that return set-returning functions are not automatically updatable.";
const WINDOWS: &str = "Views that return window functions are not automatically updatable.";
const NO_COLUMNS: &str = "Views that have no updatable columns are not automatically updatable.";

/// Whether rows are aggregated, or multiplied, under what a select list computes.
fn is_aggregated(rel: &Rel) -> bool {
    match rel {
        Rel::Aggregate { .. } | Rel::Window { .. } => true,
        Rel::Lateral { right, .. } => matches!(**right, Rel::Function { .. }),
        Rel::Project { input, .. } | Rel::Filter { input, .. } | Rel::Sort { input, .. } => {
            is_aggregated(input)
        }
        Rel::Apply { input, .. } => is_aggregated(input),
        _ => false,
    }
}

impl Binder<'_> {
    /// Whether rows can be changed through a view of this query, which has been bound to `bound`.
    pub(super) fn is_updatable(&self, query: &Query, bound: &super::BoundQuery) -> bool {
        let Ok(simple) = simple(query) else {
            return false;
        };
        let (schema, name) = object_name(simple.base);
        if is_aggregated(&bound.rel) {
            return false;
        }
        let Some(name) = self.own_relation(schema.as_deref(), &name) else {
            return false;
        };
        let base = match (self.cx.database.table(&name), self.cx.database.view(&name)) {
            (Some(table), _) => table.id,
            (None, Some(view)) if view.updatable => view.id,
            (None, _) => return false,
        };
        bound.columns.iter().any(|column| column.table == base.0)
    }

    /// Binds the relation whose rows a statement changes.
    ///
    /// # Errors
    /// Those of names; 55000 for a view that is more than other names for the rows of a table.
    pub(super) fn changed(
        &mut self,
        name: &ObjectName,
        alias: Option<String>,
        change: Change,
    ) -> Result<Changed, SqlError> {
        let (schema, relation) = object_name(name);
        let Some(view) = self.find_view(schema.as_deref(), &relation) else {
            let table = self.find_table(name)?;
            self.note_name(name, &table.name);
            self.need_table(&table, change.privilege());
            self.note_order(&table);
            let alias = alias.unwrap_or_else(|| own(&table.name).to_owned());
            return Ok(Changed {
                rows: Rel::Table {
                    table: table.clone(),
                    lock: Some(LockMode::Exclusive),
                },
                scope: table_scope(&table, &alias),
                table,
                alias,
                is_view: false,
                by: self.views.inside.clone(),
                checks: Vec::new(),
            });
        };
        self.note_name(name, &view.name);
        let alias = alias.unwrap_or_else(|| own(&view.name).to_owned());
        let changed = self.changed_view(&view, &alias, change, false)?;
        let plain = changed
            .scope
            .columns
            .iter()
            .map(|column| match column.expr {
                Expr::Column(at, _) => u16::try_from(at).ok(),
                _ => None,
            });
        self.views.changed = Some(Box::new(ChangedView {
            view,
            change,
            columns: plain.collect(),
        }));
        Ok(changed)
    }

    /// As [`Binder::changed`] for an INSERT, which has no rows to look at.
    pub(super) fn inserted(
        &mut self,
        name: &ObjectName,
        alias: Option<String>,
        on: Option<&OnInsert>,
    ) -> Result<Changed, SqlError> {
        let (inits, effects) = (self.inits.len(), self.effects);
        let changed = self.changed(name, alias, Change::Insert)?;
        // What a view's condition computes first is not asked of new rows, unless it checks them.
        if changed.checks.is_empty() {
            self.inits.truncate(inits);
            self.effects = effects;
        }
        if changed.is_view && on.is_some() {
            return Err(unsupported("ON CONFLICT of a view").hint("Name the table instead."));
        }
        Ok(changed)
    }

    fn changed_view(
        &mut self,
        view: &Arc<View>,
        alias: &str,
        change: Change,
        cascaded: bool,
    ) -> Result<Changed, SqlError> {
        let checks = cascaded || view.check.is_some();
        let cascaded = cascaded || view.check == Some(true);
        self.count_view(view)?;
        self.need_view(view, change.privilege());
        let statements = parse::parse(&view.query)?;
        let statement = statements.first().ok_or_else(|| not_changed(view))?;
        let query = query_of(statement).ok_or_else(|| not_changed(view))?;
        let simple = simple(query).map_err(|why| refused(view, change, why))?;
        if !view.updatable {
            return Err(self.why_not(view, &simple, change));
        }
        self.alone(view, statement, |binder| {
            binder.deeper(|binder| {
                let own = simple.alias.map(|alias| ident(&alias.name));
                let (schema, base) = object_name(simple.base);
                let inner = binder.find_view(schema.as_deref(), &base);
                let base = binder.own_relation(schema.as_deref(), &base);
                let mut changed = match inner {
                    None => binder.changed(simple.base, own, change)?,
                    Some(inner) => {
                        let own = own.unwrap_or_else(|| full_name::own(&inner.name).to_owned());
                        binder.changed_view(&inner, &own, change, cascaded)?
                    }
                };
                binder.restrict(&mut changed.scope, &base.unwrap_or_default());
                binder.rename(&mut changed.scope, simple.alias)?;
                binder.over(
                    (view, alias),
                    &simple,
                    changed,
                    checks && change != Change::Delete,
                )
            })
        })
    }

    /// The names of a view over those of what it selects from.
    fn over(
        &mut self,
        (view, alias): (&Arc<View>, &str),
        simple: &Simple<'_>,
        changed: Changed,
        is_checked: bool,
    ) -> Result<Changed, SqlError> {
        let Changed {
            table,
            mut rows,
            scope,
            by,
            mut checks,
            ..
        } = changed;
        self.set_scope(scope);
        if let Some(condition) = simple.condition {
            self.level().aggregates_in = Some("WHERE");
            let bound = self.condition(condition, "WHERE");
            self.level().aggregates_in = ELSEWHERE;
            let condition = bound?;
            if is_checked {
                let asks = |node: &Expr| matches!(node, Expr::Subquery(..));
                if walk::any(&condition, &asks) {
                    return Err(
                        unsupported("WITH CHECK OPTION of a condition with a subquery")
                            .hint("Change the rows of the table itself."),
                    );
                }
                checks.push(ViewCheck {
                    condition: condition.clone(),
                    view: view.clone(),
                });
            }
            rows = self.filter(rows, condition);
        }
        let mut targets = self.targets(simple.projection)?;
        self.settle_targets(&mut targets, &super::Untyped::Text)?;
        if !self.take_calls().is_empty() || targets.len() != view.columns.len() {
            return Err(not_changed(view));
        }
        let columns = targets.into_iter().zip(&view.columns).enumerate();
        let columns = columns.map(|(i, (target, column))| ScopeColumn {
            relation: alias.into(),
            name: column.name.clone(),
            expr: target.expr,
            shadowed: false,
            hidden: false,
            origin: (view.id.0, i as i16 + 1),
        });
        let mut scope = Scope {
            columns: columns.collect(),
            relations: vec![alias.into()],
            bases: Vec::new(),
            qualified: Vec::new(),
        };
        let (schema, name) = full_name::split(&view.name);
        scope.note_home(schema, name, alias);
        Ok(Changed {
            table,
            alias: alias.into(),
            rows,
            scope,
            is_view: true,
            by,
            checks,
        })
    }

    /// Why rows cannot be changed through a view with this query; `None`: they can.
    pub fn why_not_updatable(&self, query: &Query, updatable: bool) -> Option<&'static str> {
        match (simple(query), updatable) {
            (Err(why), _) => Some(why),
            (Ok(_), true) => None,
            (Ok(_), false) => Some(ONE_RELATION),
        }
    }

    /// Why rows cannot be changed through a view whose query is a simple one otherwise.
    fn why_not(&self, view: &View, simple: &Simple<'_>, change: Change) -> SqlError {
        let (schema, base) = object_name(simple.base);
        let inner = self.find_view(schema.as_deref(), &base);
        let table = self.own_relation(schema.as_deref(), &base);
        let table = table.and_then(|full| self.cx.database.table(&full));
        if inner.is_none() && table.is_none() {
            return refused(view, change, ONE_RELATION);
        }
        match inner {
            Some(inner) if !inner.updatable => not_changed(view),
            _ if has_function(simple.projection, |call| {
                call.over.is_none() && aggregate::is_aggregate(&object_name(&call.name).1)
            }) =>
            {
                refused(view, change, AGGREGATES)
            }
            _ if has_function(simple.projection, |call| call.over.is_some()) => {
                refused(view, change, WINDOWS)
            }
            _ if has_function(simple.projection, |call| self.gives_rows(&call.name)) => {
                refused(view, change, SETS)
            }
            // PostgreSQL deletes through it.
            _ if change == Change::Delete => not_changed(view),
            _ => refused(view, change, NO_COLUMNS),
        }
    }

    fn gives_rows(&self, name: &ObjectName) -> bool {
        let (schema, name) = object_name(name);
        let own = self.routines_named(schema.as_deref(), &name);
        super::table_function::gives_rows(&name) || own.iter().any(|one| one.gives_rows())
    }

    /// The column of the table that a column of the changed view is; `None`: the statement names
    /// a table.
    pub(super) fn view_column(&self, name: &ast::Ident) -> Option<Result<u16, SqlError>> {
        let ChangedView {
            view,
            change,
            columns,
        } = self.views.changed.as_deref()?;
        let folded = ident(name);
        let place = view.columns.iter().position(|column| column.name == folded);
        Some(match place {
            None => {
                let message = format!(
                    "column \"{folded}\" of relation \"{}\" does not exist",
                    view.name
                );
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message)
                    .at(self.source.position(name.span.start)))
            }
            Some(place) => columns[place].ok_or_else(|| no_column(view, &folded, *change)),
        })
    }

    /// The columns of the table that those of the changed view are, in order.
    pub(super) fn view_columns(&self) -> Option<Result<Vec<u16>, SqlError>> {
        let changed = self.views.changed.as_deref()?;
        let columns = changed.view.columns.iter().zip(&changed.columns);
        let columns = columns.map(|(column, place)| {
            place.ok_or_else(|| no_column(&changed.view, &column.name, changed.change))
        });
        Some(columns.collect())
    }
}

/// Whether an aggregate stands by itself in a select list.
fn has_function(projection: &[SelectItem], wanted: impl Fn(&ast::Function) -> bool) -> bool {
    projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(Ast::Function(function))
        | SelectItem::ExprWithAlias {
            expr: Ast::Function(function),
            alias: _,
        } => wanted(function),
        _ => false,
    })
}

fn no_column(view: &View, column: &str, change: Change) -> SqlError {
    let verb = match change {
        Change::Insert => "insert into",
        Change::Update | Change::Delete => "update",
    };
    let message = format!(
        "cannot {verb} column \"{column}\" of view \"{}\"",
        view.name
    );
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .detail("View columns that are not columns of their base relation are not updatable.")
}

fn refused(view: &View, change: Change, why: &str) -> SqlError {
    let (verb, doing, event) = match change {
        Change::Insert => ("insert into", "inserting into", "INSERT"),
        Change::Update => ("update", "updating", "UPDATE"),
        Change::Delete => ("delete from", "deleting from", "DELETE"),
    };
    let message = format!("cannot {verb} view \"{}\"", view.name);
    SqlError::new(SqlState::OBJECT_NOT_READY, message)
        .detail(why)
        .hint(format!(
            "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an \
             unconditional ON {event} DO INSTEAD rule."
        ))
}

/// 0A000 for a view through which PostgreSQL would change rows.
fn not_changed(view: &View) -> SqlError {
    unsupported(&format!("changing rows through view \"{}\"", view.name))
        .hint("Change the rows of its tables.")
}
