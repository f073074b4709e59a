//! Window functions: their input in the order of the window, conditions below where they can be.

use super::access::is_repeatable;
use super::query::{Need, Planned, Wish, position};
use super::{Planner, columns_of, remap};
use crate::step::StepOp;
use base::SqlError;
use bind::rel::{Rel, SortKey};
use expr::{Expr, walk};
use window::WindowCall;

impl Planner<'_, '_> {
    pub(super) fn window(
        &mut self,
        rel: Rel,
        conditions: Vec<Expr>,
        need: &Need,
        wish: &Wish,
    ) -> Result<Planned, SqlError> {
        let Rel::Window {
            input,
            partition,
            order,
            calls,
        } = rel
        else {
            unreachable!("called for window functions only");
        };
        let width = input.width();
        // A condition on what all rows of a partition have in common drops whole partitions.
        let (below, above): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| {
                let columns = walk::columns(condition);
                !columns.is_empty()
                    && columns.iter().all(|column| partition.contains(column))
                    && is_repeatable(condition)
            });
        let mut wanted = need.clone();
        wanted.extend(columns_of(&above));
        let numbered = calls.into_iter().enumerate();
        let (numbers, calls): (Vec<u32>, Vec<WindowCall>) = numbered
            .map(|(number, call)| (width + number as u32, call))
            .filter(|(column, _)| wanted.contains(column))
            .unzip();
        wanted.retain(|column| *column < width);
        if calls.is_empty() {
            let planned = self.rel(*input, below, &wanted, Wish::default())?;
            return Ok(self.finish(planned, above));
        }
        let mut keys: Vec<SortKey> = partition.iter().map(|column| ascending(*column)).collect();
        let more = order.iter().filter(|key| !partition.contains(&key.column));
        keys.extend(more);
        wanted.extend(keys.iter().chain(&order).map(|key| key.column));
        wanted.extend(
            calls
                .iter()
                .flat_map(WindowCall::exprs)
                .flat_map(walk::columns),
        );
        let ordered = keys.starts_with(&wish.order);
        let input = match keys.is_empty() {
            true => *input,
            false => Rel::Sort { input, keys },
        };
        let planned = self.rel(input, below, &wanted, Wish::default())?;
        let planned = self.computed(planned, (partition, order), calls);
        let mut layout = planned.layout;
        layout.extend(numbers);
        let planned = Planned {
            layout,
            ordered,
            ..planned
        };
        Ok(self.finish(planned, above))
    }

    /// The rows of `planned` with the values of calls.
    fn computed(
        &mut self,
        planned: Planned,
        (partition, order): (Vec<u32>, Vec<SortKey>),
        mut calls: Vec<WindowCall>,
    ) -> Planned {
        let layout = &planned.layout;
        let exprs = calls.iter_mut().flat_map(WindowCall::exprs_mut);
        exprs.for_each(|expr| remap(expr, layout));
        let place = |column: &u32| position(layout, *column);
        let partition = partition.iter().map(place).collect();
        let order = order.iter().map(|key| SortKey {
            column: place(&key.column),
            ..*key
        });
        let (width, rows) = (layout.len() + calls.len(), planned.step.rows);
        let op = StepOp::Window {
            partition,
            order: order.collect(),
            calls,
            input: Box::new(planned.step),
        };
        Planned {
            step: self.step(width as u32, rows, op),
            ..planned
        }
    }
}

fn ascending(column: u32) -> SortKey {
    SortKey {
        column,
        descending: false,
        nulls_first: false,
    }
}
