//! Queries of few rows, and such that pick their rows among those that others have not locked.

use crate::step::{Step, StepOp};
use base::Datum;
use bind::rel::Rel;
use expr::Expr;

/// A query has few rows if it has at most this many.
pub(super) const FEW_ROWS: f64 = 100.0;

/// Rows that a query is taken to pick among those that are not locked.
const PICKED_ROWS: f64 = 10.0;

/// The rows that a relation has at most, if a constant LIMIT in it says so.
pub(super) fn limit_of(rel: &Rel) -> Option<f64> {
    match rel {
        Rel::Limit {
            limit: Some(Expr::Const(Datum::Int(limit), _)),
            ..
        } => Some((*limit).clamp(1, 1000) as f64),
        Rel::Shared { query: input, .. }
        | Rel::Project { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Distinct { input, .. }
        | Rel::Limit { input, .. } => limit_of(input),
        // Rows are picked one by one, whatever a parameter says how many.
        Rel::Locked { .. } => Some(PICKED_ROWS),
        _ => None,
    }
}

/// Whether a query has few rows, as far as can be seen.
pub(super) fn is_of_few_rows(rel: &Rel) -> bool {
    limit_of(rel).is_some_and(|rows| rows <= FEW_ROWS)
}

/// Whether the rows of a query were picked among those that others have not locked. What is looked
/// up for them must not touch the others.
pub(super) fn picks(rel: &Rel) -> bool {
    match rel {
        Rel::Locked { .. } => true,
        Rel::Shared { query: input, .. }
        | Rel::Project { input, .. }
        | Rel::Sort { input, .. }
        | Rel::Distinct { input, .. }
        | Rel::Limit { input, .. } => picks(input),
        _ => false,
    }
}

/// As [`picks`] for a step.
pub(super) fn step_picks(step: &Step) -> bool {
    match &step.op {
        StepOp::Locked { .. } => true,
        StepOp::Shared { query: input, .. }
        | StepOp::Project { input, .. }
        | StepOp::Filter { input, .. }
        | StepOp::Sort { input, .. }
        | StepOp::Distinct { input, .. }
        | StepOp::Limit { input, .. } => step_picks(input),
        _ => false,
    }
}
