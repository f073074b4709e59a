//! ON CONFLICT: which index decides, and what happens with a row that is there.

use super::dml::BoundAssignment;
use super::rel::run_query;
use super::scope::{object_name, table_scope};
use super::{Binder, unsupported};
use base::{SqlError, SqlState};
use catalog::{Index, Table};
use expr::Expr;
use rights::Privileges;
use sqlparser::ast::{self, ConflictTarget, Expr as Ast, OnConflictAction, OnInsert};
use std::sync::Arc;

/// ON CONFLICT.
#[allow(missing_docs)]
pub struct Conflict {
    /// Number of the arbiter index among primary (0) and secondary ones; `None`: any.
    pub arbiter: Option<usize>,
    pub action: ConflictAction,
}

/// What happens with a row that exists.
#[allow(missing_docs)]
pub enum ConflictAction {
    Nothing,
    /// Over the existing row, then the proposed one.
    Update {
        assignments: Vec<BoundAssignment>,
        condition: Option<Expr>,
    },
}

impl Binder<'_> {
    pub(super) fn on_conflict(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        on: Option<&OnInsert>,
        index_condition: Option<&Ast>,
    ) -> Result<Option<Conflict>, SqlError> {
        match on {
            None => Ok(None),
            Some(OnInsert::OnConflict(on)) => {
                if let Some(condition) = index_condition {
                    self.index_condition(table, alias, condition)?;
                }
                self.conflict(table, alias, on).map(Some)
            }
            Some(_) => Err(self.source.misplaced("DUPLICATE")),
        }
    }

    fn conflict(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        on: &ast::OnConflict,
    ) -> Result<Conflict, SqlError> {
        let ast::OnConflict {
            conflict_target,
            action,
        } = on;
        let target = conflict_target.as_ref();
        let arbiter = target
            .map(|target| self.arbiter(table, target))
            .transpose()?;
        if let Some(index) = arbiter.and_then(|at| table.indexes().nth(at)) {
            for key in &index.columns {
                self.need_column((table.id.0, key.column as i16 + 1));
            }
        }
        let action = match action {
            OnConflictAction::DoNothing => ConflictAction::Nothing,
            OnConflictAction::DoUpdate(ast::DoUpdate {
                assignments,
                selection,
            }) => {
                if arbiter.is_none() {
                    let message =
                        "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return Err(SqlError::new(SqlState::SYNTAX, message)
                        .hint("For example, ON CONFLICT (column_name)."));
                }
                self.need_table(table, Privileges::UPDATE);
                let mut scope = table_scope(table, alias);
                let mut excluded = table_scope(table, "excluded");
                // It has no system columns: nothing has stored that row.
                excluded.bases.clear();
                scope.append(excluded.shifted(table.columns.len() as u32))?;
                let outer = self.set_scope(scope);
                let before = self.level().aggregates_in.replace("UPDATE");
                let bound = self.assignments(table, assignments).and_then(|set| {
                    self.level().aggregates_in = Some("WHERE");
                    let condition = selection.as_ref();
                    let condition = condition.map(|ast| self.condition(ast, "WHERE"));
                    Ok((set, condition.transpose()?))
                });
                self.level().aggregates_in = before;
                self.set_scope(outer);
                let (assignments, condition) = bound?;
                if !self.take_calls().is_empty() {
                    return Err(unsupported("a subquery in ON CONFLICT DO UPDATE"));
                }
                ConflictAction::Update {
                    assignments,
                    condition,
                }
            }
        };
        Ok(Conflict { arbiter, action })
    }

    /// Number of the index that a conflict target means.
    fn arbiter(&self, table: &Table, target: &ConflictTarget) -> Result<usize, SqlError> {
        match target {
            ConflictTarget::Columns(names) => {
                let mut columns = names
                    .iter()
                    .map(|name| self.column_position(table, name))
                    .collect::<Result<Vec<_>, _>>()?;
                columns.sort_unstable();
                columns.dedup();
                let fits = |index: &Index| index.unique && index.covers_exactly(&columns);
                table.indexes().position(fits).ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_COLUMN_REFERENCE,
                        "there is no unique or exclusion constraint matching the ON CONFLICT \
                         specification",
                    )
                })
            }
            ConflictTarget::OnConstraint(name) => {
                let name = object_name(name).1;
                let found = table.indexes().position(|i| i.unique && i.name == name);
                found.ok_or_else(|| {
                    let message = format!(
                        "constraint \"{name}\" for table \"{}\" does not exist",
                        table.name
                    );
                    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                })
            }
        }
    }

    /// Checks the condition of the index that ON CONFLICT asks for. An index without a condition
    /// has all rows, so it fits whatever the condition, and there are no others; PostgreSQL does
    /// not ask that it is boolean either.
    ///
    /// # Errors
    /// Those of binding it over the table and of computing its constants; 0A000 for a subquery.
    pub(super) fn index_condition(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        condition: &Ast,
    ) -> Result<(), SqlError> {
        let outer = self.set_scope(table_scope(table, alias));
        let before = self.level().aggregates_in.replace("index predicates");
        let calls = self.take_calls();
        let inits = self.inits.len();
        let bound = self.expr(condition);
        let inner = core::mem::replace(&mut self.level().calls, calls);
        let started = self.inits.split_off(inits);
        self.level().aggregates_in = before;
        self.set_scope(outer);
        let mut bound = bound?;
        if run_query(&inner, &started) {
            let message = "cannot use subquery in index predicate";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.settle(&mut bound);
        expr::fold::fold(&mut bound);
        expr::fold::check(&bound)
    }
}
