//! WITH CHECK OPTION of views: rows that are written through a view must be seen by it.

use super::change::ViewCheck;
use super::policy::{Checks, Refusal};
use super::rel::Rel;
use super::{Binder, BoundAssignment};
use base::SqlError;
use base::full_name::own;
use catalog::{Table, View};
use std::sync::Arc;

impl Binder<'_> {
    /// What the views demand through which rows are written.
    fn checks_of_views(conditions: &[ViewCheck]) -> Checks {
        let conditions = conditions.iter().map(|check| {
            let view = own(&check.view.name);
            let message = format!("new row violates check option for view \"{view}\"");
            let by_view = true;
            (check.condition.clone(), Refusal { message, by_view })
        });
        Checks {
            conditions: conditions.collect(),
            calls: Vec::new(),
        }
    }

    /// The rows of an INSERT, if views and policies let them be written.
    pub(super) fn writable(
        &mut self,
        table: &Arc<Table>,
        (by, checks): (Option<Arc<View>>, &[ViewCheck]),
        source: Rel,
        reads: bool,
    ) -> Result<Rel, SqlError> {
        let source = self.seen_source(table, checks, source)?;
        self.guarded_source(table, by, source, reads)
    }

    /// The rows of an INSERT, if the views see them through which they are written.
    fn seen_source(
        &mut self,
        table: &Arc<Table>,
        checks: &[ViewCheck],
        source: Rel,
    ) -> Result<Rel, SqlError> {
        match checks.is_empty() {
            true => Ok(source),
            false => self.checked_source(table, source, Self::checks_of_views(checks)),
        }
    }

    /// The rows of an UPDATE, if the views see what becomes of them.
    pub(super) fn seen_update(
        &mut self,
        table: &Arc<Table>,
        checks: &[ViewCheck],
        rows: Rel,
        assignments: &mut [BoundAssignment],
    ) -> Result<Rel, SqlError> {
        match checks.is_empty() {
            true => Ok(rows),
            false => {
                let checks = Self::checks_of_views(checks);
                self.updated_if(table, rows, assignments, |_| Ok(checks))
            }
        }
    }
}
