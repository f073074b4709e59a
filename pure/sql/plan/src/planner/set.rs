//! UNION ALL, INTERSECT and EXCEPT.

use super::estimate::groups;
use super::query::{Need, Planned, Wish};
use super::{Planner, columns_of};
use crate::step::StepOp;
use base::SqlError;
use bind::rel::{Matching, Rel};
use expr::Expr;

impl Planner<'_, '_> {
    pub(super) fn union(
        &mut self,
        inputs: Vec<Rel>,
        conditions: Vec<Expr>,
        need: &Need,
    ) -> Result<Planned, SqlError> {
        let layout: Vec<u32> = need.union(&columns_of(&conditions)).copied().collect();
        let need = layout.iter().copied().collect();
        let mut steps = Vec::new();
        for input in inputs {
            let planned = self.rel(input, conditions.clone(), &need, Wish::default())?;
            steps.push(self.arrange(planned, &layout));
        }
        let rows = steps.iter().map(|step| step.rows).sum();
        let width = layout.len() as u32;
        let step = self.step(width, rows, StepOp::Union { inputs: steps });
        let ordered = false;
        Ok(Planned {
            step,
            layout,
            ordered,
        })
    }

    pub(super) fn matched(
        &mut self,
        matching: Matching,
        (left, right): (Rel, Rel),
        conditions: Vec<Expr>,
    ) -> Result<Planned, SqlError> {
        // All columns decide which rows are equal.
        let layout: Vec<u32> = (0..left.width()).collect();
        let left = Box::new(self.rows(left, &layout)?);
        let right = Box::new(self.rows(right, &layout)?);
        let rows = match matching.all {
            true => left.rows,
            false => groups(left.rows, layout.len()),
        };
        let op = StepOp::Match {
            matching,
            left,
            right,
        };
        let step = self.step(layout.len() as u32, rows, op);
        let planned = Planned {
            step,
            layout,
            ordered: false,
        };
        Ok(self.finish(planned, conditions))
    }
}
