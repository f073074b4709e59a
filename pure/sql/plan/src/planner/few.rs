//! How many rows queries have; queries of few rows, and such that pick their rows among those that
//! others have not locked.

use super::Planner;
use super::access::Place;
use super::estimate::groups;
use super::shares::Known;
use crate::step::{Step, StepOp};
use base::{Datum, Type};
use bind::rel::{Call, CallKind, QueryUse, Rel};
use expr::{Expr, Func, fold};

/// A query has few rows if it has at most this many.
pub(super) const FEW_ROWS: f64 = 100.0;

/// Rows that a query is taken to pick among those that are not locked.
const PICKED_ROWS: f64 = 10.0;

/// How deep it is looked into a relation, which may be nested in many others.
const LOOKED_INTO: usize = 8;

/// Rows of a relation of which nothing can be seen.
pub(super) const UNKNOWN_REL: f64 = 1000.0;

impl Planner<'_, '_> {
    /// Rows of a relation, about.
    pub(super) fn rows_of_rel(&self, rel: &Rel) -> f64 {
        self.rows_within(rel, LOOKED_INTO)
    }

    /// As [`Planner::rows_of_rel`], by relations that are so deep in it at most.
    fn rows_within(&self, rel: &Rel, depth: usize) -> f64 {
        if depth == 0 {
            return UNKNOWN_REL;
        }
        let below = |input: &Rel| self.rows_within(input, depth - 1);
        if let Some(limit) = limit_of(rel) {
            return limit;
        }
        match rel {
            Rel::Table { table, .. } => self.rows_of(table),
            Rel::Project { input, .. } | Rel::Sort { input, .. } | Rel::Distinct { input, .. } => {
                below(input)
            }
            Rel::Filter {
                input, conditions, ..
            } => {
                let table = match input.as_ref() {
                    Rel::Table { table, .. } => self.values_of(table),
                    _ => None,
                };
                let width = input.width();
                let known = Known {
                    values: table.as_deref(),
                    place: Place { first: 0, width },
                };
                below(input) * known.share_of_all(conditions)
            }
            Rel::Aggregate { group, .. } if group.is_empty() => 1.0,
            Rel::Aggregate { input, group, .. } => self.groups_of(input, below(input), group),
            Rel::Apply { input, .. } => below(input),
            _ => UNKNOWN_REL,
        }
    }

    /// Groups by these keys of a relation of `rows` rows, about.
    fn groups_of(&self, input: &Rel, rows: f64, keys: &[Expr]) -> f64 {
        let mut below = input;
        while let Rel::Filter { input, .. } = below {
            below = input;
        }
        let values = match below {
            Rel::Table { table, .. } => self.values_of(table),
            _ => None,
        };
        let distinct = |key: &Expr| match key {
            Expr::Column(column, _) => {
                let known = values.as_ref()?.column(u16::try_from(*column).ok()?)?;
                Some(known.distinct(rows))
            }
            _ => None,
        };
        match keys.iter().map(distinct).product::<Option<f64>>() {
            Some(all) => all.min(rows).max(1.0),
            None => groups(rows, keys.len()),
        }
    }
}

/// Whether no two rows of a query are equal, because they are groups by all of its columns.
fn are_groups(rel: &Rel) -> bool {
    match rel {
        Rel::Filter { input, .. } => are_groups(input),
        Rel::Project { input, exprs } => match grouped(input) {
            Some(keys) => (0..keys as u32).all(|key| {
                let own = |expr: &Expr| matches!(expr, Expr::Column(it, _) if *it == key);
                exprs.iter().any(own)
            }),
            None => false,
        },
        Rel::Aggregate {
            group, aggregates, ..
        } => !group.is_empty() && aggregates.is_empty(),
        _ => false,
    }
}

/// Columns of the keys of groups, of which only some may be kept.
fn grouped(rel: &Rel) -> Option<usize> {
    match rel {
        Rel::Filter { input, .. } => grouped(input),
        Rel::Aggregate { group, .. } => (!group.is_empty()).then_some(group.len()),
        _ => None,
    }
}

/// Whether the query of IN gives groups of which a condition keeps some (HAVING): they are joined
/// as if they stood in FROM, for they may be few.
pub(super) fn is_of_some_groups(call: &Call<Rel>, rel: &Rel) -> bool {
    let is_in = match &call.kind {
        CallKind::Query { usage, .. } => matches!(usage, QueryUse::In(_)),
        _ => false,
    };
    let has_condition = match rel {
        Rel::Project { input, .. } => matches!(input.as_ref(), Rel::Filter { .. }),
        other => matches!(other, Rel::Filter { .. }),
    };
    is_in && has_condition && are_groups(rel)
}

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

/// Rows that a limit after an offset must read.
pub(super) fn total(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<Expr> {
    match (limit, offset) {
        (Some(limit), None) => Some(limit.clone()),
        (Some(limit), Some(offset)) => {
            // An overflow would fail a legal query.
            let most = || Expr::Const(Datum::Int(i64::MAX / 2), Type::Int8);
            let bounded =
                |count: &Expr| Expr::Call(Func::Least, vec![count.clone(), most()], Type::Int8);
            let mut sum = Expr::Call(Func::Add, vec![bounded(limit), bounded(offset)], Type::Int8);
            fold::fold(&mut sum);
            Some(sum)
        }
        (None, _) => None,
    }
}
