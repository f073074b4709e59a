//! ON CONFLICT: which index decides, and what happens with a row that is there.

use super::dml::BoundAssignment;
use super::rel::run_query;
use super::scope::{object_name, table_scope};
use super::{Binder, unsupported};
use base::text::SpanStyle;
use base::{SqlError, SqlState};
use catalog::{Index, Table};
use expr::{Expr, walk, zoned};
use parse::InsertWords;
use rights::Privileges;
use sqlparser::ast::{self, ConflictTarget, Expr as Ast, OnConflictAction, OnInsert};
use std::sync::Arc;

/// Most lists of columns for which the expressions of a conflict target may stand.
const CANDIDATES_MAX: usize = 64;

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

/// # Errors
/// 55000 if the index is one of a constraint that can be deferred.
pub fn check_arbiter(table: &Table, index: &Index) -> Result<(), SqlError> {
    if !index.is_deferrable() {
        return Ok(());
    }
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion \
                   constraints as arbiters";
    Err(SqlError::new(SqlState::OBJECT_NOT_READY, message)
        .table(&table.name)
        .constraint(&index.name))
}

impl Binder<'_> {
    pub(super) fn on_conflict(
        &mut self,
        (table, alias): (&Arc<Table>, &str),
        on: Option<&OnInsert>,
        words: &InsertWords,
    ) -> Result<Option<Conflict>, SqlError> {
        let keys = words.index_keys.as_deref();
        let condition = words.index_condition.as_ref();
        match on {
            None => Ok(None),
            Some(OnInsert::OnConflict(on)) => {
                let asked = condition
                    .map(|condition| self.index_condition(table, alias, condition))
                    .transpose()?;
                self.conflict((table, alias), on, (keys, asked)).map(Some)
            }
            Some(_) => Err(self.source.misplaced("DUPLICATE")),
        }
    }

    fn conflict(
        &mut self,
        (table, alias): (&Arc<Table>, &str),
        on: &ast::OnConflict,
        (keys, asked): (Option<&[Ast]>, Option<Expr>),
    ) -> Result<Conflict, SqlError> {
        let ast::OnConflict {
            conflict_target,
            action,
        } = on;
        let arbiter = match (keys, conflict_target) {
            (Some(keys), _) => Some(self.arbiter_on((table, alias), keys, asked.as_ref())?),
            (None, Some(target)) => Some(self.arbiter(table, target, asked.as_ref())?),
            (None, None) => None,
        };
        if let Some(index) = arbiter.and_then(|at| table.indexes().nth(at)) {
            self.need_index(table, index);
            check_arbiter(table, index)?;
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

    /// The statement reads what an index is on.
    fn need_index(&mut self, table: &Table, index: &Index) {
        let keys = index.columns.iter().map(|key| key.column);
        for key in keys.chain(index.predicate) {
            let column = table.column_at(key);
            let read = match column.of_index {
                true => table.columns_of_generated(column),
                false => vec![key],
            };
            for column in read {
                self.need_column((table.id.0, column as i16 + 1));
            }
        }
    }

    /// Number of the unique index on exactly these columns, whose rows are among those that are
    /// asked for.
    fn unique_on(
        &mut self,
        table: &Arc<Table>,
        columns: &[u16],
        asked: Option<&Expr>,
    ) -> Result<usize, SqlError> {
        let mut partial = None;
        for (number, index) in table.indexes().enumerate() {
            let keys = || index.columns.iter().map(|key| key.column);
            let same = keys().all(|key| columns.contains(&key))
                && columns
                    .iter()
                    .all(|column| keys().any(|key| key == *column));
            if !same || !index.unique {
                continue;
            }
            let Some(predicate) = index.predicate else {
                return Ok(number);
            };
            let Some(asked) = asked else { continue };
            let predicate = self.generated(table, table.column_at(predicate))?;
            let predicate = self.normal(predicate);
            if super::implies(asked, &predicate) {
                partial.get_or_insert(number);
            }
        }
        partial.ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                "there is no unique or exclusion constraint matching the ON CONFLICT \
                 specification",
            )
        })
    }

    /// An expression as it is compared with others.
    fn normal(&self, mut expr: Expr) -> Expr {
        self.settle(&mut expr);
        expr::fold::fold(&mut expr);
        expr
    }

    /// Number of the index on expressions that a conflict target means.
    fn arbiter_on(
        &mut self,
        (table, alias): (&Arc<Table>, &str),
        keys: &[Ast],
        asked: Option<&Expr>,
    ) -> Result<usize, SqlError> {
        let mut computed = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            if column.of_index && column.generated.is_some() {
                let value = self.generated(table, column)?;
                computed.push((at as u16, self.normal(value)));
            }
        }
        let mut candidates: Vec<Vec<u16>> = vec![Vec::new()];
        for key in keys {
            let key = self.index_expr(table, alias, key, "index expressions")?;
            let key = self.normal(key);
            let same = computed.iter().filter(|(_, value)| *value == key);
            let found: Vec<u16> = match &key {
                Expr::Column(column, _) => vec![*column as u16],
                _ => same.map(|(at, _)| *at).collect(),
            };
            let each = candidates.iter().flat_map(|before| {
                let with = |at: &u16| before.iter().copied().chain([*at]).collect();
                found.iter().map(with).collect::<Vec<Vec<u16>>>()
            });
            candidates = each.take(CANDIDATES_MAX).collect();
        }
        // Of no columns there is none.
        let mut found = self.unique_on(table, &[], asked);
        for columns in candidates {
            found = self.unique_on(table, &columns, asked);
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// Number of the index that a conflict target means.
    fn arbiter(
        &mut self,
        table: &Arc<Table>,
        target: &ConflictTarget,
        asked: Option<&Expr>,
    ) -> Result<usize, SqlError> {
        match target {
            ConflictTarget::Columns(names) => {
                let mut columns = names
                    .iter()
                    .map(|name| self.column_position(table, name))
                    .collect::<Result<Vec<_>, _>>()?;
                columns.sort_unstable();
                columns.dedup();
                self.unique_on(table, &columns, asked)
            }
            ConflictTarget::OnConstraint(name) => {
                let name = object_name(name).1;
                let found = table.indexes().position(|i| i.constraint && i.name == name);
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

    /// The condition of the index that ON CONFLICT asks for. An index without a condition has all
    /// rows, so it fits whatever the condition; PostgreSQL does not ask that it is boolean either.
    ///
    /// # Errors
    /// Those of binding it over the table and of computing its constants; 0A000 for a subquery.
    pub(super) fn index_condition(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        condition: &Ast,
    ) -> Result<Expr, SqlError> {
        let bound = self.index_expr(table, alias, condition, "index predicates")?;
        let bound = self.normal(bound);
        expr::fold::check(&bound)?;
        Ok(bound)
    }

    /// Binds an expression of the index that ON CONFLICT asks for.
    fn index_expr(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        condition: &Ast,
        clause: &'static str,
    ) -> Result<Expr, SqlError> {
        let outer = self.set_scope(table_scope(table, alias));
        let before = self.level().aggregates_in.replace(clause);
        let calls = self.take_calls();
        let inits = self.inits.len();
        let bound = self.expr(condition);
        let inner = core::mem::replace(&mut self.level().calls, calls);
        let started = self.inits.split_off(inits);
        self.level().aggregates_in = before;
        self.set_scope(outer);
        let mut bound = bound?;
        if run_query(&inner, &started) {
            let message = match clause {
                "index predicates" => "cannot use subquery in index predicate",
                _ => "cannot use subquery in index expression",
            };
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        // It names an index, and computes nothing; its literals are those of the session.
        walk::map(&mut bound, &mut |node| {
            zoned::read_literal(node, &self.zone)
        });
        zoned::fix_style(&mut bound, SpanStyle::Postgres, &self.zone);
        Ok(bound)
    }
}
