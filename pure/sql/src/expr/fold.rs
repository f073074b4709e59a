//! Constant folding, and freezing of an expression before it travels.

use super::walk::{self, try_map};
use super::{Env, Expr, NoColumns, NoSession, Volatility, eval};
use base::{Datum, SqlError, SqlState};

/// Computes what depends on no row, parameter or session, and simplifies AND, OR, NOT and CASE
/// around constants.
///
/// A constant part whose computation fails is left alone, so that the error appears only if the
/// part is reached (`CASE WHEN false THEN 1/0 END`).
pub fn fold(expr: &mut Expr) {
    let env = Env {
        session: &NoSession::FOLDING,
        ..Env::NONE
    };
    walk::map(expr, &mut |node| {
        simplify(node);
        let constant = !matches!(node, Expr::Const(..)) && is_constant(node);
        if constant && let Ok(value) = eval(node, &NoColumns, &env) {
            *node = Expr::Const(value, node.ty());
        }
    });
}

/// Whether all operands are constants and the node itself depends on nothing else.
fn is_constant(node: &Expr) -> bool {
    let leaf = match node {
        Expr::Column(..) | Expr::Outer(..) | Expr::Param(..) | Expr::Subquery(..) => true,
        Expr::Call(func, _, _) => func.volatility() != Volatility::Immutable,
        _ => false,
    };
    let mut constant = !leaf;
    node.each_child(&mut |child| constant = constant && matches!(child, Expr::Const(..)));
    constant
}

/// Drops neutral operands and flattens nested AND and OR.
fn simplify(node: &mut Expr) {
    let (parts, neutral) = match node {
        Expr::And(parts) => (core::mem::take(parts), true),
        Expr::Or(parts) => (core::mem::take(parts), false),
        Expr::Case {
            arms, otherwise, ..
        } => {
            arms.retain(|(condition, _)| {
                !matches!(condition, Expr::Const(Datum::Bool(false) | Datum::Null, _))
            });
            if arms.is_empty() {
                *node = core::mem::replace(otherwise, Expr::bool(false));
            }
            return;
        }
        _ => return,
    };
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Const(Datum::Bool(value), _) if value == neutral => {}
            Expr::Const(Datum::Bool(value), _) => {
                *node = Expr::bool(value);
                return;
            }
            Expr::And(inner) if neutral => kept.extend(inner),
            Expr::Or(inner) if !neutral => kept.extend(inner),
            other => kept.push(other),
        }
    }
    *node = match (kept.len(), neutral) {
        (0, _) => Expr::bool(neutral),
        (1, _) => kept.pop().expect("one part is left"),
        (_, true) => Expr::And(kept),
        (_, false) => Expr::Or(kept),
    };
}

/// Replaces parameters by their values and stable functions by what they give now, then folds.
/// After it an expression that [`walk::travels`] can be evaluated with [`Env::NONE`].
///
/// # Errors
/// What computing a stable function raises.
pub fn freeze(expr: &mut Expr, env: &Env<'_>) -> Result<(), SqlError> {
    try_map(expr, &mut |node| {
        match node {
            Expr::Param(index, ty) => {
                *node = Expr::Const(env.params[*index as usize].clone(), *ty);
            }
            Expr::Call(func, args, ty)
                if func.volatility() == Volatility::Stable
                    && args.iter().all(walk::is_row_independent) =>
            {
                let ty = *ty;
                *node = Expr::Const(eval(node, &NoColumns, env)?, ty);
            }
            _ => {}
        }
        Ok::<(), SqlError>(())
    })?;
    fold(expr);
    Ok(())
}

/// The value of an expression of literals and immutable functions only, while planning.
///
/// # Errors
/// 0A000 if the expression depends on a row, a parameter, the session or the clock; what its
/// computation raises.
pub fn constant(expr: &Expr) -> Result<Datum, SqlError> {
    let depends = walk::any(expr, &|node| match node {
        Expr::Column(..) | Expr::Outer(..) | Expr::Param(..) | Expr::Subquery(..) => true,
        Expr::Call(func, _, _) => func.volatility() != Volatility::Immutable,
        _ => false,
    });
    if depends {
        let message = "a constant expression is expected here";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    eval(expr, &NoColumns, &Env::NONE)
}
