//! Constants that fail when they are computed fail the statement when it is planned, as in
//! PostgreSQL, also where no row would reach them.

use super::query::substitute;
use base::SqlError;
use bind::rel::Rel;
use expr::{Expr, fold, walk};

/// As [`check`] for all that a relation is made of, which will not be planned.
pub(super) fn check_below(rel: &Rel) -> Result<(), SqlError> {
    rel.inputs().into_iter().try_for_each(|input| {
        check(input, &|_| true)?;
        check_below(input)
    })
}

/// Raises the errors of expressions over columns that are constants of a subquery, unless that
/// groups, orders or counts its rows: then PostgreSQL plans it by itself.
pub(super) fn check_above(exprs: &[Expr], input: &Rel) -> Result<(), SqlError> {
    let Rel::Project {
        exprs: below,
        input: rows,
    } = input
    else {
        return Ok(());
    };
    if is_planned_alone(rows) {
        return Ok(());
    }
    let known = |column: &u32| matches!(below[*column as usize], Expr::Const(..));
    for expr in exprs {
        let columns = walk::columns(expr);
        if !columns.is_empty() && columns.iter().all(known) {
            let mut constant = expr.clone();
            substitute(&mut constant, below);
            fold::fold(&mut constant);
            fold::check(&constant)?;
        }
    }
    Ok(())
}

fn is_planned_alone(mut rel: &Rel) -> bool {
    while let Rel::Filter { input, .. } = rel {
        rel = input;
    }
    matches!(
        rel,
        Rel::Aggregate { .. }
            | Rel::Window { .. }
            | Rel::Distinct { .. }
            | Rel::Sort { .. }
            | Rel::Limit { .. }
            | Rel::Union { .. }
    )
}

/// Raises the errors of constants in the expressions of a relation: they fail the statement
/// whether or not a row reaches them. Those of a projection count only if they are used, and so do
/// those of aggregates: `reads` tells which columns of the relation are read.
pub(super) fn check(rel: &Rel, reads: &dyn Fn(u32) -> bool) -> Result<(), SqlError> {
    let all = |exprs: &[Expr]| exprs.iter().try_for_each(fold::check);
    // Behind what is false nothing is computed.
    let conjuncts = |exprs: &[Expr]| {
        let is_false = |expr: &Expr| matches!(expr, Expr::Const(base::Datum::Bool(false), _));
        let reached = exprs.iter().position(is_false).unwrap_or(exprs.len());
        all(&exprs[..reached])
    };
    match rel {
        Rel::Filter {
            input,
            conditions,
            secure: _,
        } => {
            conjuncts(conditions)?;
            match input.as_ref() {
                Rel::Join { .. } => check(input, reads),
                _ => Ok(()),
            }
        }
        Rel::Join {
            left, right, on, ..
        } => {
            conjuncts(on)?;
            // A tree of joins is planned as one.
            for side in [left, right] {
                if matches!(side.as_ref(), Rel::Join { .. } | Rel::Filter { .. }) {
                    check(side, reads)?;
                }
            }
            Ok(())
        }
        Rel::Lateral { on, .. } => conjuncts(on),
        Rel::Aggregate {
            group, aggregates, ..
        } => {
            all(group)?;
            let read = (group.len()..).zip(aggregates);
            let mut read = read.filter(|(column, _)| reads(*column as u32));
            read.try_for_each(|(_, aggregate)| {
                all(&aggregate.args)?;
                aggregate.filter.iter().try_for_each(fold::check)
            })
        }
        Rel::Function { args, .. } => all(args),
        Rel::Values { rows, .. } => rows.iter().try_for_each(|row| all(row)),
        _ => Ok(()),
    }
}
