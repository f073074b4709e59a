//! Constant folding, and freezing of an expression before it travels.

use super::walk::{self, try_map};
use super::{DateFunc, Env, Expr, Func, NoColumns, NoSession, TextFunc, Volatility, eval};
use base::{Datum, SqlError, SqlState, Type};

/// Computes what depends on no row, parameter or session, and simplifies AND, OR, NOT, CASE,
/// COALESCE and strict functions around constants, as PostgreSQL's planner does.
///
/// What depends on settings stays as it is (`is_stable`).
///
/// A constant part whose computation fails is left alone, and nothing that PostgreSQL would
/// compute after it hides it; [`check`] raises its error.
pub fn fold(expr: &mut Expr) {
    fold_by(expr, &is_constant);
}

fn fold_by(expr: &mut Expr, is_constant: &dyn Fn(&Expr) -> bool) {
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

/// Raises the error of the first constant part that [`fold`] could not compute: the statement
/// fails even if no row ever reaches it (`CASE WHEN a THEN 1 ELSE 1/0 END`).
///
/// # Errors
/// Those of computing the part.
pub fn check(expr: &Expr) -> Result<(), SqlError> {
    let mut result = Ok(());
    expr.each_child(&mut |child| {
        if result.is_ok() {
            result = check(child);
        }
    });
    result?;
    let env = Env {
        session: &NoSession::FOLDING,
        ..Env::NONE
    };
    match fails(expr).then(|| eval(expr, &NoColumns, &env)) {
        // Long values are made when the statement runs, and has memory to account for them.
        Some(Err(error)) if error.state() != SqlState::PROGRAM_LIMIT => Err(error),
        _ => Ok(()),
    }
}

/// Whether the node itself is a constant that could not be computed.
fn fails(node: &Expr) -> bool {
    let computed = matches!(
        node,
        Expr::Call(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsBool(..)
            | Expr::IsDistinct(..)
            | Expr::InList(..)
            | Expr::AnyArray(..)
            | Expr::Cast { .. }
    );
    computed && is_constant(node)
}

/// Whether a conversion depends on settings: it is made when the statement runs.
pub(super) fn is_stable_cast(from: Type, to: Type) -> bool {
    if let (Some(from), Some(to)) = (from.element(), to.element()) {
        return is_stable_cast(from, to);
    }
    let shown = |ty: Type| {
        let of_others = matches!(ty, Type::Interval(_) | Type::Array(_));
        ty.is_datetime() || of_others || ty.range_kind().is_some()
    };
    let time = |ty: Type| matches!(ty, Type::Time(_));
    let zoned = |ty: Type| matches!(ty, Type::Timestamptz(_));
    let offset = |ty: Type| matches!(ty, Type::Timetz(_));
    from.is_text() && (shown(to) || time(to) || offset(to))
        || offset(to) && (zoned(from) || time(from))
        || shown(from) && to.is_text()
        || from.is_datetime() && to.is_datetime() && zoned(from) != zoned(to)
        || zoned(from) && time(to)
}

/// Whether PostgreSQL takes the node for dependent on settings, so that its planner computes
/// neither the node nor what fails in it.
fn is_stable(node: &Expr) -> bool {
    match node {
        Expr::Cast { arg, to, .. } => is_stable_cast(arg.ty(), *to),
        // Beside UTC it is a comparison with a cast.
        Expr::Call(Func::Compare(_), args, _) => match &args[..] {
            [left, right] => is_stable_cast(left.ty(), right.ty()),
            _ => false,
        },
        Expr::Call(func, _, ty) => match func {
            Func::Output(from) => is_stable_cast(*from, Type::Text),
            Func::Json(func) => func.is_stable(),
            // PostgreSQL looks at values of domains when a row reaches them.
            Func::Meets => true,
            Func::ToChar(_) | Func::ArrayToString(_) | Func::Zoned(_) => true,
            Func::Text(func) => matches!(
                func,
                TextFunc::Format | TextFunc::ConcatAll | TextFunc::ConcatWs | TextFunc::ToNumber
            ),
            Func::Date(DateFunc::ExtractZoned | DateFunc::ToTimestamp | DateFunc::ToDate) => true,
            Func::Date(DateFunc::Trunc | DateFunc::MakeTimestamp) | Func::Add | Func::Sub => {
                matches!(ty, Type::Timestamptz(_))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether computing the expression is known to fail.
fn has_failure(expr: &Expr) -> bool {
    walk::any(expr, &fails)
}

/// Whether all operands are constants and the node itself depends on nothing else.
fn is_constant(node: &Expr) -> bool {
    is_computable(node) && !is_stable(node)
}

/// As [`is_constant`] for a statement that runs: settings are what they are.
fn is_computable(node: &Expr) -> bool {
    let leaf = match node {
        Expr::Column(..) | Expr::Outer(..) | Expr::Param(..) | Expr::Subquery(..) => true,
        Expr::Call(func, _, _) => func.volatility() != Volatility::Immutable,
        _ => false,
    };
    let mut constant = !leaf;
    node.each_child(&mut |child| constant = constant && matches!(child, Expr::Const(..)));
    constant
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(Datum::Null, _))
}

/// Drops neutral operands, flattens nested AND and OR, drops what is never reached.
fn simplify(node: &mut Expr) {
    match node {
        Expr::And(parts) => *node = connected(core::mem::take(parts), true),
        Expr::Or(parts) => *node = connected(core::mem::take(parts), false),
        Expr::Case {
            arms, otherwise, ..
        } => {
            arms.retain(|(condition, _)| {
                !matches!(condition, Expr::Const(Datum::Bool(false) | Datum::Null, _))
            });
            let certain = |(condition, _): &(Expr, Expr)| {
                matches!(condition, Expr::Const(Datum::Bool(true), _))
            };
            if let Some(last) = arms.iter().position(certain) {
                arms.truncate(last + 1);
                let (_, result) = arms.pop().expect("found above");
                **otherwise = result;
            }
            if arms.is_empty() {
                *node = core::mem::replace(otherwise, Expr::bool(false));
            }
        }
        Expr::Coalesce(args, ty) => {
            let ty = *ty;
            args.retain(|arg| !is_null(arg));
            let certain = args.iter().position(|arg| matches!(arg, Expr::Const(..)));
            if let Some(last) = certain {
                args.truncate(last + 1);
            }
            match args.len() {
                0 => *node = Expr::null(ty),
                1 => *node = args.pop().expect("one argument is left"),
                _ => {}
            }
        }
        Expr::Call(func, args, ty)
            if func.is_strict() && args.iter().any(is_null) && !args.iter().any(has_failure) =>
        {
            *node = Expr::null(*ty);
        }
        // Whatever the settings are.
        Expr::Cast { arg, to, .. } if is_null(arg) => *node = Expr::null(*to),
        _ => {}
    }
}

/// The conjunction or disjunction of parts; a part that decides it ends it, unless one before it
/// fails.
fn connected(parts: Vec<Expr>, and: bool) -> Expr {
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Expr::Const(Datum::Bool(value), _) if value == and => {}
            Expr::Const(Datum::Bool(value), _) => {
                if !kept.iter().any(has_failure) {
                    return Expr::bool(value);
                }
                // What is left may fail, or only be too long for a constant.
                kept.push(Expr::bool(value));
                break;
            }
            Expr::And(inner) if and => kept.extend(inner),
            Expr::Or(inner) if !and => kept.extend(inner),
            other => kept.push(other),
        }
    }
    match (kept.len(), and) {
        (0, _) => Expr::bool(and),
        (1, _) => kept.pop().expect("one part is left"),
        (_, true) => Expr::And(kept),
        (_, false) => Expr::Or(kept),
    }
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
    fold_by(expr, &is_computable);
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
