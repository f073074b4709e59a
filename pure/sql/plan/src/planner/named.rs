//! Queries of WITH that are computed once, and recursive ones.

use super::Planner;
use super::query::Planned;
use crate::step::StepOp;
use base::SqlError;
use bind::rel::Rel;
use expr::Expr;

/// How many rows a round of a recursive query is taken to find.
const WORKING_ROWS: f64 = 100.0;
/// How many rounds it is taken to have.
const ROUNDS: f64 = 10.0;

impl Planner<'_, '_> {
    pub(super) fn named(&mut self, rel: Rel, conditions: Vec<Expr>) -> Result<Planned, SqlError> {
        match rel {
            Rel::Shared { id, query } => self.shared(id, *query, conditions),
            Rel::Recursive {
                slot,
                distinct,
                base,
                step,
            } => self.recursive((slot, distinct), *base, *step, conditions),
            Rel::Working { slot, types } => {
                let (width, op) = (types.len() as u32, StepOp::Working { slot });
                Ok(self.whole(width, WORKING_ROWS, op, conditions))
            }
            Rel::Part { number, types } => {
                let rows = self.part_rows.get(number as usize);
                let rows = rows.copied().unwrap_or(WORKING_ROWS);
                let (width, op) = (types.len() as u32, StepOp::Part { number });
                Ok(self.whole(width, rows, op, conditions))
            }
            _ => unreachable!("called for queries of WITH only"),
        }
    }

    /// All columns are computed: another use may want them.
    fn shared(&mut self, id: u32, query: Rel, conditions: Vec<Expr>) -> Result<Planned, SqlError> {
        let layout: Vec<u32> = (0..query.width()).collect();
        let query = Box::new(self.rows(query, &layout)?);
        let (width, rows) = (layout.len() as u32, query.rows);
        Ok(self.whole(width, rows, StepOp::Shared { id, query }, conditions))
    }

    fn recursive(
        &mut self,
        (slot, distinct): (u32, bool),
        base: Rel,
        step: Rel,
        conditions: Vec<Expr>,
    ) -> Result<Planned, SqlError> {
        let layout: Vec<u32> = (0..base.width()).collect();
        let base = Box::new(self.rows(base, &layout)?);
        let step = Box::new(self.rows(step, &layout)?);
        let rows = base.rows + ROUNDS * step.rows;
        let op = StepOp::Recursive {
            slot,
            distinct,
            base,
            step,
        };
        Ok(self.whole(layout.len() as u32, rows, op, conditions))
    }
}
