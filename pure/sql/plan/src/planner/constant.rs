//! Constants that fail when they are computed fail the statement when it is planned, as in
//! PostgreSQL, also where no row would reach them.

use super::query::substitute;
use base::SqlError;
use bind::rel::Rel;
use expr::{Expr, fold, walk};

/// As [`check`] for all that a relation is made of, which will not be planned.
pub(super) fn check_below(rel: &Rel) -> Result<(), SqlError> {
    rel.inputs().into_iter().try_for_each(|input| {
        check(input)?;
        check_below(input)
    })
}

/// Raises the errors of expressions over columns that are constants.
pub(super) fn check_above(exprs: &[Expr], input: &Rel) -> Result<(), SqlError> {
    let Rel::Project { exprs: below, .. } = input else {
        return Ok(());
    };
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

/// Raises the errors of constants in the expressions of a relation: they fail the statement
/// whether or not a row reaches them. Those of a projection count only if they are used.
pub(super) fn check(rel: &Rel) -> Result<(), SqlError> {
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
                Rel::Join { .. } => check(input),
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
                    check(side)?;
                }
            }
            Ok(())
        }
        Rel::Lateral { on, .. } => conjuncts(on),
        Rel::Aggregate {
            group, aggregates, ..
        } => {
            all(group)?;
            aggregates.iter().try_for_each(|aggregate| {
                all(&aggregate.args)?;
                aggregate.filter.iter().try_for_each(fold::check)
            })
        }
        Rel::Function { args, .. } => all(args),
        Rel::Values { rows, .. } => rows.iter().try_for_each(|row| all(row)),
        _ => Ok(()),
    }
}
