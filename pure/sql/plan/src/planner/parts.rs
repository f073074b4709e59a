//! WITH that changes rows, and MERGE: statements of several parts.

use super::write::{Purpose, insert_purpose, inserted, out_columns, write};
use super::{Planner, finished_query, run_plan};
use crate::plan::Plan;
use crate::step::{Action, Merge, MergeWhen, Part, PartsPlan, When};
use base::{SqlError, SqlState};
use bind::{Binder, BoundAction, BoundMain, BoundMerge, BoundPart, BoundWhen};
use parse::Kind;

/// Plans a WITH that changes rows, or a MERGE.
pub(super) fn statement(kind: &Kind, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let main = match kind {
        Kind::With(with) => binder.with_statement(with)?,
        Kind::Merge(merge) => BoundMain::Part(BoundPart::Merge(binder.merge(merge)?)),
        _ => unreachable!("called for these two"),
    };
    plan(main, binder)
}

/// Plans a statement and the parts that its WITH clause names.
fn plan(main: BoundMain, binder: &mut Binder<'_>) -> Result<Plan, SqlError> {
    let mut bound = core::mem::take(&mut binder.parts);
    let query = match main {
        BoundMain::Query(query) if bound.is_empty() => return finished_query(query, binder),
        BoundMain::Part(BoundPart::Insert(insert)) if bound.is_empty() => {
            return inserted(insert, binder);
        }
        BoundMain::Part(BoundPart::Write(change)) if bound.is_empty() => {
            return write(change, binder);
        }
        BoundMain::Query(query) => Some(query),
        BoundMain::Part(part) => {
            bound.push(part);
            None
        }
    };
    let tables = bound.iter().map(|part| part.table().id);
    let tables: Vec<_> = tables.collect();
    let twice = |at: usize| tables.iter().filter(|table| **table == tables[at]).count() > 1;
    for (at, part) in bound.iter().enumerate() {
        if let BoundPart::Insert(insert) = part
            && insert.conflict.is_some()
            && twice(at)
        {
            return Err(conflict_twice(&insert.table.name));
        }
    }
    let (columns, returns_rows) = match (&query, bound.last()) {
        (Some(query), _) => (query.columns.clone().into(), true),
        (None, Some(part)) => (out_columns(part.returning()), part.returning().is_some()),
        (None, None) => unreachable!("a statement without a query has a part"),
    };
    let overlap = (0..bound.len()).any(twice);
    let mut planner = Planner::new(binder);
    let parts = bound.into_iter().map(|part| planner.part(part));
    let parts = parts.collect::<Result<Vec<Part>, SqlError>>()?;
    let query = query.map(|query| {
        let wanted: Vec<u32> = (0..query.columns.len() as u32).collect();
        let rel = planner.settled(query.rel);
        planner.rows(rel, &wanted)
    });
    let query = query.transpose()?;
    let inits = planner.inits()?;
    let steps = planner.next_step;
    let action = Action::Parts(Box::new(PartsPlan {
        parts,
        query,
        overlap,
    }));
    let mut plan = run_plan(binder, action, inits, steps)?;
    plan.columns = columns;
    plan.returns_rows = returns_rows;
    Ok(plan)
}

fn conflict_twice(table: &str) -> SqlError {
    let message = format!(
        "ON CONFLICT on table \"{table}\", which another part of the statement changes too, is \
         not supported"
    );
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Change the table in two statements of one transaction.")
}

impl Planner<'_, '_> {
    fn part(&mut self, bound: BoundPart) -> Result<Part, SqlError> {
        let part = match bound {
            BoundPart::Insert(mut insert) => {
                let writers = self.writers(&insert.table, insert_purpose(&insert))?;
                insert.source = self.settled(insert.source);
                Part::Insert(Box::new(self.insert_plan(insert, writers)?))
            }
            BoundPart::Write(write) => Part::Write(Box::new(self.write_plan(write)?)),
            BoundPart::Merge(merge) => Part::Merge(Box::new(self.merge_plan(merge)?)),
        };
        self.part_rows.push(part.rows().rows);
        Ok(part)
    }

    fn merge_plan(&mut self, bound: BoundMerge) -> Result<Merge, SqlError> {
        let BoundMerge {
            table,
            rows,
            clauses,
        } = bound;
        let writers = self.writers(&table, Purpose::Change)?;
        let wanted: Vec<u32> = (0..rows.width()).collect();
        let rows = self.settled(rows);
        let rows = self.rows(rows, &wanted)?;
        let full: Vec<u32> = (0..table.columns.len() as u32).collect();
        let mut planned = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let BoundWhen {
                matched,
                condition,
                action,
            } = clause;
            let condition = condition.map(|condition| self.settled_expr(condition));
            let action = match action {
                BoundAction::Nothing => MergeWhen::Nothing,
                BoundAction::Delete => MergeWhen::Delete,
                BoundAction::Update(assignments) => {
                    MergeWhen::Update(self.settled_assignments(assignments)?)
                }
                BoundAction::Insert { slot, source } => {
                    let source = self.settled(source);
                    let source = self.rows(source, &full)?;
                    MergeWhen::Insert { slot, source }
                }
            };
            planned.push(When {
                matched,
                condition: condition.transpose()?,
                action,
            });
        }
        Ok(Merge {
            key: table.primary.columns[0].column,
            writers,
            rows,
            clauses: planned,
        })
    }
}
