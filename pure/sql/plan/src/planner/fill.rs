//! Values of new columns for the rows that are there.

use super::{Planner, run_plan};
use crate::plan::Plan;
use crate::step::Action;
use base::SqlError;
use bind::rel::Rel;
use bind::{Binder, PlanCx};
use catalog::Table;
use expr::Expr;
use parse::Statement;
use std::sync::Arc;

/// Values of columns of new rows.
pub enum DefaultValues {
    /// Expressions to be computed for each row.
    Same(Vec<Expr>),
    /// A query that gives as many rows of values as were asked for.
    Drawn(Box<Plan>),
}

/// The values that `columns` of `rows` new rows of `table` get.
///
/// # Errors
/// Those of binding their defaults.
pub fn default_values(
    cx: &PlanCx<'_>,
    table: &Table,
    columns: &[u16],
    rows: usize,
) -> Result<DefaultValues, SqlError> {
    let nothing = Statement::none();
    let mut binder = Binder::new(cx, &nothing);
    let one = row(&mut binder, table, columns)?;
    if binder.take_calls().is_empty() && binder.inits.is_empty() {
        let planner = Planner::new(&mut binder);
        let settled = one.into_iter().map(|value| planner.settled_expr(value));
        return Ok(DefaultValues::Same(settled.collect::<Result<_, _>>()?));
    }
    let mut binder = Binder::new(cx, &nothing);
    let all = (0..rows).map(|_| row(&mut binder, table, columns));
    let rows = all.collect::<Result<Vec<_>, _>>()?;
    let types = columns.iter().map(|column| table.column_at(*column).ty);
    let rel = Rel::Values {
        rows,
        types: types.collect(),
        calls: binder.take_calls(),
    };
    let mut planner = Planner::new(&mut binder);
    let rel = planner.settled(rel);
    let wanted: Vec<u32> = (0..columns.len() as u32).collect();
    let step = planner.rows(rel, &wanted)?;
    let inits = planner.inits()?;
    let steps = planner.next_step;
    let plan = run_plan(&mut binder, Action::Query(step), inits, steps)?;
    Ok(DefaultValues::Drawn(Box::new(plan)))
}

/// The columns of `table` that are computed, and their values over its row.
///
/// # Errors
/// Those of binding their expressions.
pub fn generated_values(cx: &PlanCx<'_>, table: &Arc<Table>) -> Result<Vec<(u16, Expr)>, SqlError> {
    let nothing = Statement::none();
    let mut binder = Binder::new(cx, &nothing);
    Planner::new(&mut binder).generated(table)
}

fn row(binder: &mut Binder<'_>, table: &Table, columns: &[u16]) -> Result<Vec<Expr>, SqlError> {
    let columns = columns.iter().map(|column| table.column_at(*column));
    columns
        .map(|column| binder.default_value(table, column))
        .collect()
}
