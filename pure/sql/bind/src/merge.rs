//! MERGE: rows of a source joined with those of the target, and what happens with each.

use super::change::{Change, Changed};
use super::dml::BoundAssignment;
use super::from::Locking;
use super::rel::{Call, JoinKind, Rel};
use super::scope::Scope;
use super::{Binder, ELSEWHERE, conjuncts, place_calls};
use base::{SqlError, SqlState, Type};
use catalog::{PolicyCommand, Table};
use expr::Expr;
use parse::{MergeAction, MergeStatement, MergeWhen};
use rights::Privileges;
use sqlparser::ast;
use std::sync::Arc;
use txn::LockMode;

/// MERGE.
#[allow(missing_docs)]
pub struct BoundMerge {
    pub table: Arc<Table>,
    /// The target's columns, NULL where no row of it matches, then those of the source and calls.
    pub rows: Rel,
    pub clauses: Vec<BoundWhen>,
}

/// WHEN: expressions are over the rows.
#[allow(missing_docs)]
pub struct BoundWhen {
    pub matched: bool,
    pub condition: Option<Expr>,
    pub action: BoundAction,
}

/// THEN.
#[allow(missing_docs)]
pub enum BoundAction {
    Nothing,
    Delete,
    Update(Vec<BoundAssignment>),
    /// Gives full rows of the table for the rows that are named in the slot.
    Insert {
        slot: u32,
        source: Rel,
    },
}

impl Binder<'_> {
    /// Binds a MERGE.
    ///
    /// # Errors
    /// Those of names and types; 42601 for a clause that nothing can reach.
    pub fn merge(&mut self, merge: &MergeStatement) -> Result<BoundMerge, SqlError> {
        let MergeStatement {
            target,
            source,
            on,
            clauses,
        } = merge;
        reachable(clauses)?;
        let Changed {
            table,
            alias,
            rows: _,
            scope: target,
            is_view,
            by: _,
            checks: _,
        } = self.written(target, first_change(clauses))?;
        if is_view {
            let message = format!("cannot execute MERGE on relation \"{alias}\"");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .detail("This operation is not supported for views."));
        }
        for clause in clauses {
            match clause.action {
                MergeAction::Nothing => {}
                MergeAction::Delete => self.need_table(&table, Privileges::DELETE),
                MergeAction::Update(_) => self.need_table(&table, Privileges::UPDATE),
                MergeAction::Insert { .. } => self.need_table(&table, Privileges::INSERT),
            }
        }
        let (read, found) = self.bind_from_item(None, source, &Locking::default())?;
        if found.relations.contains(&alias) {
            let message = format!("name \"{alias}\" specified more than once");
            let detail = "The name is used both as MERGE target table and data source.";
            return Err(SqlError::new(SqlState::DUPLICATE_ALIAS, message).detail(detail));
        }
        let width = table.columns.len() as u32;
        let found = found.shifted(width);
        let mut both = target;
        both.append(found.clone())?;
        let rows = self.merged_rows(&table, read, on, clauses, &both)?;
        let columns = rows.width();
        let mut bound = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let seen = if clause.matched { &both } else { &found };
            bound.push(self.merge_when(&table, clause, seen.clone(), columns)?);
        }
        let rows = rows.applied(self.take_calls());
        let clauses = bound.into_iter().map(|clause| clause.over(&rows));
        let mut clauses: Vec<BoundWhen> = clauses.collect();
        for clause in &mut clauses {
            if let BoundAction::Insert { slot: _, source } = &mut clause.action {
                let rows = core::mem::replace(source, Rel::One);
                *source = self.guarded_source(&table, None, rows, false)?;
            }
        }
        Ok(BoundMerge {
            table,
            rows,
            clauses,
        })
    }

    /// The rows of the source with those of the target that match, which are locked if they may
    /// change.
    fn merged_rows(
        &mut self,
        table: &Arc<Table>,
        source: Rel,
        on: &ast::Expr,
        clauses: &[MergeWhen],
        both: &Scope,
    ) -> Result<Rel, SqlError> {
        let changes =
            |when: &MergeWhen| matches!(when.action, MergeAction::Delete | MergeAction::Update(_));
        let target = Rel::Table {
            table: table.clone(),
            lock: clauses.iter().any(changes).then_some(LockMode::Exclusive),
        };
        let target = self.guarded(table, target, &[PolicyCommand::Select])?;
        let kind = match clauses.iter().all(|when| when.matched) {
            true => JoinKind::Inner,
            false => JoinKind::Right,
        };
        let outer = self.set_scope(both.clone());
        self.level().aggregates_in = Some("JOIN conditions");
        let bound = self.condition(on, "JOIN/ON");
        self.level().aggregates_in = ELSEWHERE;
        self.set_scope(outer);
        let mut on = Vec::new();
        conjuncts(bound?, &mut on);
        self.attach(kind, target, source, Vec::new(), on)
    }

    /// One WHEN, over rows of this number of columns.
    fn merge_when(
        &mut self,
        table: &Arc<Table>,
        when: &MergeWhen,
        seen: Scope,
        columns: u32,
    ) -> Result<OpenWhen, SqlError> {
        let MergeWhen {
            matched,
            condition,
            action,
        } = when;
        let outer = self.set_scope(seen);
        self.level().aggregates_in = Some("MERGE WHEN conditions");
        let condition = condition.as_ref();
        let condition = condition.map(|ast| self.condition(ast, "WHEN"));
        self.level().aggregates_in = ELSEWHERE;
        let mut condition = condition.transpose()?;
        condition
            .iter_mut()
            .for_each(|condition| place_calls(condition, columns));
        let action = match action {
            MergeAction::Nothing => OpenAction::Ready(BoundAction::Nothing),
            MergeAction::Delete => {
                self.guarded_match(table, None, &mut condition, columns)?;
                OpenAction::Ready(BoundAction::Delete)
            }
            MergeAction::Update(assignments) => {
                self.level().aggregates_in = Some("UPDATE");
                let mut bound = self.assignments(table, assignments)?;
                self.level().aggregates_in = ELSEWHERE;
                let values = bound.iter_mut();
                values.for_each(|assignment| place_calls(&mut assignment.value, columns));
                self.guarded_match(table, Some(&mut bound), &mut condition, columns)?;
                OpenAction::Ready(BoundAction::Update(bound))
            }
            MergeAction::Insert {
                columns,
                values,
                overriding,
            } => {
                let before = self.take_calls();
                let given = self.insert_columns(table, columns, &[])?;
                self.need_columns(table, Privileges::INSERT, &given);
                let none = Vec::new();
                let values = values.as_ref();
                let given = match values {
                    None => &[],
                    Some(values) => {
                        self.check_count(&given, values.len(), columns.is_empty())?;
                        &given[..values.len()]
                    }
                };
                self.level().aggregates_in = Some("VALUES");
                let values = values.unwrap_or(&none);
                let row = self.value_row(table, (given, &[]), values, *overriding)?;
                self.level().aggregates_in = ELSEWHERE;
                let calls = core::mem::replace(&mut self.level().calls, before);
                let slot = self.new_slot();
                OpenAction::Insert { slot, row, calls }
            }
        };
        self.set_scope(outer);
        Ok(OpenWhen {
            matched: *matched,
            condition,
            action,
        })
    }
}

/// A WHEN before it is known how many columns its rows have.
struct OpenWhen {
    matched: bool,
    condition: Option<Expr>,
    action: OpenAction,
}

enum OpenAction {
    Ready(BoundAction),
    Insert {
        slot: u32,
        row: Vec<Expr>,
        calls: Vec<Call<Rel>>,
    },
}

impl OpenWhen {
    fn over(self, rows: &Rel) -> BoundWhen {
        let action = match self.action {
            OpenAction::Ready(action) => action,
            OpenAction::Insert {
                slot,
                mut row,
                calls,
            } => {
                let width = rows.width();
                row.iter_mut().for_each(|value| place_calls(value, width));
                // The types only matter for stored rows.
                let types = vec![Type::Unknown; width as usize];
                let source = Rel::Working { slot, types }.applied(calls).projected(row);
                BoundAction::Insert { slot, source }
            }
        };
        BoundWhen {
            matched: self.matched,
            condition: self.condition,
            action,
        }
    }
}

/// What a MERGE needs to be allowed at least.
fn first_change(clauses: &[MergeWhen]) -> Change {
    let has = |is: fn(&MergeAction) -> bool| clauses.iter().any(|when| is(&when.action));
    if has(|action| matches!(action, MergeAction::Update(_))) {
        Change::Update
    } else if has(|action| matches!(action, MergeAction::Delete)) {
        Change::Delete
    } else {
        Change::Insert
    }
}

/// Refuses a clause behind one of its kind that takes all rows.
fn reachable(clauses: &[MergeWhen]) -> Result<(), SqlError> {
    for (at, clause) in clauses.iter().enumerate() {
        let takes_all =
            |before: &&MergeWhen| before.matched == clause.matched && before.condition.is_none();
        if clauses[..at].iter().any(|before| takes_all(&before)) {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(SqlError::new(SqlState::SYNTAX, message));
        }
    }
    Ok(())
}
