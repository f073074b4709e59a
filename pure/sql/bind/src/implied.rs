//! Whether one condition follows from another one. What is not seen here may follow nevertheless.

use ::expr::{Compare, Expr, Func, fold};
use base::{Datum, Type};

/// Whether a condition is true only where `part` is true.
pub fn implies(condition: &Expr, part: &Expr) -> bool {
    if condition == part {
        return true;
    }
    match (condition, part) {
        (Expr::Or(all), _) => all.iter().all(|one| implies(one, part)),
        (Expr::And(all), _) => all.iter().any(|one| implies(one, part)),
        (_, Expr::Or(some)) => some.iter().any(|one| implies(condition, one)),
        (_, Expr::And(all)) => all.iter().all(|one| implies(condition, one)),
        (_, Expr::IsNull(value, true)) => is_strict_in(condition, value),
        (Expr::InList(value, list, false), _) => {
            let equal = |one: &Expr| compared(Compare::Eq, value, one, part);
            !list.is_empty() && list.iter().all(equal)
        }
        _ => match (truth(condition), truth(part)) {
            (Some(own), Some(other)) => own == other,
            _ => comparison(condition)
                .is_some_and(|(op, value, bound)| compared(op, value, bound, part)),
        },
    }
}

/// A truth value, and whether it is true: `a`, `NOT a`, `a = true`, `a IS TRUE`.
fn truth(condition: &Expr) -> Option<(&Expr, bool)> {
    match condition {
        Expr::Column(_, Type::Bool) => Some((condition, true)),
        Expr::Not(inner) => truth(inner).map(|(value, is)| (value, !is)),
        Expr::Call(Func::Compare(Compare::Eq), sides, _) => match sides.as_slice() {
            [
                value @ Expr::Column(_, Type::Bool),
                Expr::Const(Datum::Bool(is), _),
            ]
            | [
                Expr::Const(Datum::Bool(is), _),
                value @ Expr::Column(_, Type::Bool),
            ] => Some((value, *is)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a condition can only be true where `value` is not NULL.
fn is_strict_in(condition: &Expr, value: &Expr) -> bool {
    match condition {
        Expr::Call(Func::Compare(_), sides, _) => sides.iter().any(|side| side == value),
        Expr::InList(arg, _, _) | Expr::AnyArray(arg, _, _, false) => **arg == *value,
        // What is not in an empty array may be NULL.
        Expr::Not(inner) => !matches!(**inner, Expr::AnyArray(..)) && is_strict_in(inner, value),
        Expr::Column(..) => condition == value,
        _ => false,
    }
}

/// `value op constant`, the constant being on the right.
fn comparison(condition: &Expr) -> Option<(Compare, &Expr, &Expr)> {
    let Expr::Call(Func::Compare(op), sides, _) = condition else {
        return None;
    };
    match sides.as_slice() {
        [value, bound @ Expr::Const(..)] => Some((*op, value, bound)),
        [bound @ Expr::Const(..), value] => Some((op.mirrored()?, value, bound)),
        _ => None,
    }
}

/// Whether `value op bound` implies `part`, which is about the same value.
fn compared(op: Compare, value: &Expr, bound: &Expr, part: &Expr) -> bool {
    use Compare::{Eq, Ge, Gt, Le, Lt, Ne};
    if let Expr::InList(other, list, false) = part {
        let meets = |one: &Expr| holds(Eq, bound, one);
        return op == Eq && **other == *value && list.iter().any(meets);
    }
    let Some((wanted, other, limit)) = comparison(part) else {
        return false;
    };
    if other != value {
        return false;
    }
    match (op, wanted) {
        (Eq, Eq | Ne | Lt | Le | Gt | Ge) => holds(wanted, bound, limit),
        (Lt, Lt | Le | Ne) | (Le, Le) => holds(Le, bound, limit),
        (Le, Lt | Ne) => holds(Lt, bound, limit),
        (Gt, Gt | Ge | Ne) | (Ge, Ge) => holds(Ge, bound, limit),
        (Ge, Gt | Ne) => holds(Gt, bound, limit),
        _ => false,
    }
}

/// Whether a comparison of two constants is true.
fn holds(op: Compare, left: &Expr, right: &Expr) -> bool {
    let constant = |expr: &Expr| matches!(expr, Expr::Const(..));
    if !constant(left) || !constant(right) || left.ty() != right.ty() {
        return false;
    }
    let sides = vec![left.clone(), right.clone()];
    let call = Expr::Call(Func::Compare(op), sides, Type::Bool);
    matches!(fold::constant(&call), Ok(Datum::Bool(true)))
}
