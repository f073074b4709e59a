//! Arithmetic and mathematical functions.
//!
//! Integers share one representation; the result type of a call says its range. `real` is computed
//! in 32 bits so that it rounds as PostgreSQL's does.

mod decimal;

mod float;

use super::Func;
use super::cast::{checked_int, out_of_range};
use base::numeric::Numeric;
use base::{Datum, SqlError, SqlState, Type};

/// "division by zero", 22012.
fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// The operations of nearly every integer expression, without looking at argument kinds. `None` if
/// `func` is not one of them or `ty` is no integer type.
#[inline]
pub fn quick_int(func: &Func, a: i64, b: i64, ty: Type) -> Option<Result<Datum, SqlError>> {
    if !ty.is_integer() {
        return None;
    }
    let result = match func {
        Func::Add => a.checked_add(b),
        Func::Sub => a.checked_sub(b),
        Func::Mul => a.checked_mul(b),
        _ => return None,
    };
    Some(
        result
            .ok_or_else(|| out_of_range(ty))
            .and_then(|value| checked_int(value, ty)),
    )
}

/// Computes an operator or function of numbers; no argument is NULL.
pub fn apply(func: &Func, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    if let Func::Float(func) = func {
        return float::trigonometric(*func, args).map(Datum::Float);
    }
    match args {
        [Datum::Int(a)] => int_unary(func, *a, ty),
        [Datum::Int(a), Datum::Int(b)] => int_binary(func, *a, *b, ty),
        [Datum::Float(a)] => float::unary(func, *a, ty),
        [Datum::Float(a), Datum::Float(b)] => float::binary(func, *a, *b, ty),
        [Datum::Decimal(a)] => decimal::unary(func, *a, ty),
        [Datum::Large(a)] => decimal::large_unary(func, a, ty),
        [
            a @ (Datum::Decimal(_) | Datum::Large(_)),
            b @ (Datum::Decimal(_) | Datum::Large(_)),
        ] => decimal::binary(func, a, b),
        [a @ (Datum::Decimal(_) | Datum::Large(_)), Datum::Int(b)] => {
            decimal::with_digits(func, a, *b)
        }
        [a, low, high, Datum::Int(count)] if *func == Func::WidthBucket => {
            width_bucket(a, low, high, *count)
        }
        _ => unreachable!("{func:?} was bound to arguments it does not take: {args:?}"),
    }
}

fn int_unary(func: &Func, a: i64, ty: Type) -> Result<Datum, SqlError> {
    let result = match func {
        Func::Neg => a.checked_neg(),
        Func::Abs => a.checked_abs(),
        Func::BitNot => Some(!a),
        Func::Factorial => return decimal::factorial(a),
        _ => unreachable!("{func:?} was bound to an integer"),
    };
    checked_int(result.ok_or_else(|| out_of_range(ty))?, ty)
}

fn int_binary(func: &Func, a: i64, b: i64, ty: Type) -> Result<Datum, SqlError> {
    if b == 0 && matches!(func, Func::Div | Func::Rem | Func::DivTrunc) {
        return Err(division_by_zero());
    }
    let result = match func {
        Func::Add => a.checked_add(b),
        Func::Sub => a.checked_sub(b),
        Func::Mul => a.checked_mul(b),
        Func::Div | Func::DivTrunc => a.checked_div(b),
        // The one remainder whose quotient overflows is 0.
        Func::Rem => Some(a.checked_rem(b).unwrap_or(0)),
        Func::BitAnd => Some(a & b),
        Func::BitOr => Some(a | b),
        Func::BitXor => Some(a ^ b),
        Func::ShiftLeft => Some(shift(a, b, ty, true)),
        Func::ShiftRight => Some(shift(a, b, ty, false)),
        Func::Gcd => i64::try_from(gcd(a.unsigned_abs(), b.unsigned_abs())).ok(),
        Func::Lcm => lcm(a, b),
        _ => unreachable!("{func:?} was bound to integers"),
    };
    checked_int(result.ok_or_else(|| out_of_range(ty))?, ty)
}

/// Shifts as the machine does: the count is taken modulo the width, bits that leave are lost.
fn shift(a: i64, by: i64, ty: Type, left: bool) -> i64 {
    let by = by as u32;
    match (ty, left) {
        (Type::Int8, true) => a.wrapping_shl(by),
        (Type::Int8, false) => a.wrapping_shr(by),
        (Type::Int2, true) => i64::from((a as i32).wrapping_shl(by) as i16),
        (_, true) => i64::from((a as i32).wrapping_shl(by)),
        (_, false) => i64::from((a as i32).wrapping_shr(by)),
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn lcm(a: i64, b: i64) -> Option<i64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    let (a, b) = (a.unsigned_abs(), b.unsigned_abs());
    i64::try_from((a / gcd(a, b)).checked_mul(b)?).ok()
}

/// The number, from 1, of the bucket of `low..high` cut into `count` that holds `value`; 0 below,
/// `count + 1` above; `low > high` counts downwards.
fn width_bucket(value: &Datum, low: &Datum, high: &Datum, count: i64) -> Result<Datum, SqlError> {
    let refuse = |message| Err(SqlError::new(SqlState(*b"2201G"), message));
    if count <= 0 {
        return refuse("count must be greater than zero");
    }
    let is = |datum: &Datum, test: fn(f64) -> bool| match datum {
        Datum::Float(x) => test(*x),
        Datum::Large(x) if !x.is_finite() => test(x.to_f64()),
        _ => false,
    };
    if [value, low, high]
        .into_iter()
        .any(|number| is(number, f64::is_nan))
    {
        return refuse("operand, lower bound, and upper bound cannot be NaN");
    }
    if is(low, f64::is_infinite) || is(high, f64::is_infinite) {
        return refuse("lower and upper bounds must be finite");
    }
    if low.compare(high).is_eq() {
        return refuse("lower bound cannot equal upper bound");
    }
    let downwards = low.compare(high).is_gt();
    let before = |a: &Datum, b: &Datum| {
        if downwards {
            a.compare(b).is_gt()
        } else {
            a.compare(b).is_lt()
        }
    };
    let bucket = if before(value, low) {
        0
    } else if !before(value, high) {
        count + 1
    } else {
        match (value, low, high) {
            _ if !matches!(value, Datum::Float(_)) => {
                let of = |datum: &Datum| Numeric::of(datum).expect("the binder passes numbers");
                let (value, low, high) = (of(value), of(low), of(high));
                let share = value.sub(&low).mul(&Numeric::from(count));
                let bucket = share.div_trunc(&high.sub(&low))?.to_i64();
                bucket.ok_or_else(|| out_of_range(Type::Int4))? + 1
            }
            _ => {
                let number = |datum: &Datum| datum.as_float().expect("the binder passes numbers");
                let (value, low, high) = (number(value), number(low), number(high));
                ((value - low) / (high - low) * count as f64) as i64 + 1
            }
        }
    };
    checked_int(bucket, Type::Int4)
}
