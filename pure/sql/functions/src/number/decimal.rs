//! Functions of `numeric`.
//!
//! Results have the digits that PostgreSQL shows, as far as 38 digits hold them.

mod series;

use super::super::cast::checked_int;
use super::float::{bad_logarithm, complex_power, negative_root, zero_to_negative};
use super::{Func, gcd};
use base::{Datum, Decimal, SqlError, SqlState, Type};

/// Significant digits that PostgreSQL aims at (`NUMERIC_MIN_SIG_DIGITS`).
const DIGITS_MIN: i32 = 16;
/// Largest scale of a [`Decimal`].
const SCALE_MAX: i32 = 38;

/// "value overflows numeric format", 22003.
fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

pub(super) fn unary(func: &Func, a: Decimal, ty: Type) -> Result<Datum, SqlError> {
    Ok(Datum::Decimal(match func {
        Func::Neg => a.neg(),
        Func::Abs => a.abs(),
        Func::Round => a.round(0)?,
        Func::Trunc => a.trunc(0)?,
        Func::Ceil => a.ceil()?,
        Func::Floor => a.floor()?,
        Func::Sign => a.signum(),
        Func::Sqrt => sqrt(a)?,
        Func::Exp => {
            let digits = (a.to_f64() * core::f64::consts::LOG10_E) as i32;
            let scale = DIGITS_MIN.saturating_sub(digits);
            series::exp(a)?.rounded(scale.max(i32::from(a.scale())).clamp(0, SCALE_MAX))?
        }
        Func::Ln => {
            let scale = logarithm_scale(positive(a)?.ln()).max(i32::from(a.scale()));
            series::ln(a)?.round(scale.min(SCALE_MAX))?
        }
        Func::Log => {
            let ten = Decimal::from(10);
            logarithm(ten, a)?
        }
        Func::Scale => return checked_int(i64::from(a.scale()), ty),
        Func::MinScale => return checked_int(i64::from(a.normalized().scale()), ty),
        Func::TrimScale => a.normalized(),
        _ => unreachable!("{func:?} was bound to a numeric"),
    }))
}

pub(super) fn binary(func: &Func, a: Decimal, b: Decimal) -> Result<Datum, SqlError> {
    Ok(Datum::Decimal(match func {
        Func::Add => a.add(b)?,
        Func::Sub => a.sub(b)?,
        Func::Mul => a.mul(b)?,
        Func::Div => a.div(b)?,
        Func::Rem => a.rem(b)?,
        Func::DivTrunc => a.div_trunc(b)?,
        Func::Pow => power(a, b)?,
        Func::Log => logarithm(a, b)?,
        Func::Gcd => gcd_lcm(a, b, false)?,
        Func::Lcm => gcd_lcm(a, b, true)?,
        _ => unreachable!("{func:?} was bound to numerics"),
    }))
}

/// `round(x, digits)` and `trunc(x, digits)`.
pub(super) fn with_digits(func: &Func, a: Decimal, digits: i64) -> Result<Datum, SqlError> {
    let digits = digits.clamp(-i64::from(SCALE_MAX) - 1, i64::from(SCALE_MAX)) as i32;
    Ok(Datum::Decimal(match func {
        Func::Round => a.round(digits)?,
        Func::Trunc => a.trunc(digits)?,
        _ => unreachable!("{func:?} was bound to a numeric and a number of digits"),
    }))
}

/// A float with `scale` fraction digits (fewer if they do not fit).
fn from_float(value: f64, scale: i32) -> Result<Decimal, SqlError> {
    if !value.is_finite() {
        return Err(overflow());
    }
    let whole_digits = if value.abs() < 1.0 {
        0
    } else {
        value.abs().log10() as i32 + 1
    };
    let scale = scale.clamp(0, (SCALE_MAX - whole_digits).max(0)) as usize;
    format!("{value:.scale$}").parse()
}

fn positive(a: Decimal) -> Result<f64, SqlError> {
    if a.is_zero() || a.is_negative() {
        Err(bad_logarithm(a.is_zero()))
    } else {
        Ok(a.to_f64())
    }
}

/// Fraction digits of a logarithm of about `value`.
fn logarithm_scale(value: f64) -> i32 {
    if value == 0.0 {
        DIGITS_MIN
    } else {
        DIGITS_MIN - value.abs().log10() as i32
    }
}

fn logarithm(base: Decimal, a: Decimal) -> Result<Decimal, SqlError> {
    let (of_base, of_value) = (positive(base)?.ln(), positive(a)?.ln());
    if of_base == 0.0 {
        return Err(super::division_by_zero());
    }
    let digits_of = |value: f64| {
        if value == 0.0 {
            0
        } else {
            value.abs().log10() as i32
        }
    };
    let scale = DIGITS_MIN - (digits_of(of_value) - digits_of(of_base));
    let scale = scale
        .max(i32::from(base.scale()))
        .max(i32::from(a.scale()))
        .min(SCALE_MAX);
    // A dividend of many digits gives a quotient of as many.
    let (of_base, of_value) = (series::ln(base)?.round(30)?, series::ln(a)?.round(30)?);
    of_value.div(of_base)?.round(scale)
}

/// The square root, with at least 16 significant digits, rounded half up.
pub(in super::super) fn sqrt(a: Decimal) -> Result<Decimal, SqlError> {
    if a.is_negative() {
        return Err(negative_root());
    }
    let weight = group_weight(a);
    let root_digits = (weight + 1) * 4 / 2 - 1;
    let scale = (DIGITS_MIN - root_digits)
        .max(i32::from(a.scale()))
        .clamp(0, SCALE_MAX);
    sqrt_to(a, scale)
}

/// The square root of what is not negative, with `scale` digits behind the point, or fewer if
/// there is no room.
pub fn sqrt_to(a: Decimal, scale: i32) -> Result<Decimal, SqlError> {
    // root * 10^scale = sqrt(unscaled * 10^(2 * scale - a.scale)), and one digit more to round by.
    let mut scale = scale;
    loop {
        let shift = 2 * (scale + 1) - i32::from(a.scale());
        let magnitude = a.unscaled().unsigned_abs();
        let root = u32::try_from(shift);
        let root = root.ok().and_then(|shift| root_of_raised(magnitude, shift));
        if let Some(root) = root {
            let root = (root + 5) / 10;
            return Decimal::from_parts(root as i128, scale as u8).ok_or_else(overflow);
        }
        if scale == 0 {
            return from_float(a.to_f64().sqrt(), 0);
        }
        scale -= 1;
    }
}

/// The integer part of the square root of `magnitude * 10^zeros`, digit by digit from where the
/// product no longer fits; `None` if it has more than about 36 digits.
fn root_of_raised(magnitude: u128, zeros: u32) -> Option<u128> {
    let (mut head, mut left) = (magnitude, zeros);
    // A digit of the root for two of the product.
    let mut pair = 0;
    if !left.is_multiple_of(2) {
        match head.checked_mul(10) {
            Some(more) => (head, left) = (more, left - 1),
            None => (head, pair, left) = (head / 10, head % 10 * 10, left + 1),
        }
    }
    while pair == 0
        && left > 0
        && let Some(more) = head.checked_mul(100)
    {
        (head, left) = (more, left - 2);
    }
    let mut root = head.isqrt();
    let mut rest = head - root * root;
    for _ in 0..left / 2 {
        let above = rest
            .checked_mul(100)?
            .checked_add(core::mem::take(&mut pair))?;
        // So large that nothing below overflows.
        root.checked_mul(200)?.checked_add(100)?;
        let below = |digit: u128| (root * 20 + digit) * digit;
        let digit = (1..=9).rev().find(|digit| below(*digit) <= above);
        let digit = digit.unwrap_or(0);
        rest = above - below(digit);
        root = root * 10 + digit;
    }
    Some(root)
}

/// The power of 10,000 of the first group of four digits; 0 for zero.
fn group_weight(a: Decimal) -> i32 {
    let magnitude = a.unscaled().unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    (magnitude.ilog10() as i32 - i32::from(a.scale())).div_euclid(4)
}

fn power(a: Decimal, b: Decimal) -> Result<Decimal, SqlError> {
    if a.is_zero() && b.is_negative() {
        return Err(zero_to_negative());
    }
    let exponent = b.to_i64_exact();
    if a.is_negative() && exponent.is_none() {
        return Err(complex_power());
    }
    let scales = i32::from(a.scale()).max(i32::from(b.scale()));
    if a.is_zero() {
        let value = if b.is_zero() {
            Decimal::ONE
        } else {
            Decimal::ZERO
        };
        return value.round(DIGITS_MIN.max(scales));
    }
    let digits = b.to_f64() * a.abs().to_f64().log10();
    if digits > f64::from(SCALE_MAX) {
        return Err(overflow());
    }
    if digits < -2.0 * f64::from(SCALE_MAX) {
        return Decimal::ZERO.round(SCALE_MAX);
    }
    if let Some(exponent) = exponent
        && exponent.unsigned_abs() <= 1_000_000
    {
        return integer_power(a.normalized(), exponent, DIGITS_MIN.max(scales));
    }
    let scale = DIGITS_MIN.saturating_sub(digits as i32);
    let scale = scale.max(scales).clamp(0, SCALE_MAX);
    let power = series::exp(b.mul(series::ln(a.abs())?)?)?.rounded(scale)?;
    // A negative base with an integer exponent too large to multiply out.
    Ok(
        if a.is_negative() && b.rem(Decimal::from(2))? != Decimal::ZERO {
            power.neg()
        } else {
            power
        },
    )
}

fn integer_power(a: Decimal, exponent: i64, scale: i32) -> Result<Decimal, SqlError> {
    let mut result = Decimal::ONE;
    let mut square = a;
    let mut left = exponent.unsigned_abs();
    while left > 0 {
        if left & 1 == 1 {
            result = result.mul(square)?;
        }
        left >>= 1;
        if left > 0 {
            square = square.mul(square)?;
        }
    }
    if exponent < 0 {
        if result.is_zero() {
            return Err(overflow());
        }
        result = Decimal::ONE.round(scale)?.div(result)?;
    }
    result.round(scale)
}

fn gcd_lcm(a: Decimal, b: Decimal, lcm: bool) -> Result<Decimal, SqlError> {
    let scale = a.scale().max(b.scale());
    let at_scale = |value: Decimal| {
        let raised = value.round(i32::from(scale))?;
        if raised.scale() == scale {
            Ok(raised.unscaled().unsigned_abs())
        } else {
            Err(overflow())
        }
    };
    let (a, b) = (at_scale(a)?, at_scale(b)?);
    let divisor = match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => u128::from(gcd(a, b)),
        _ => {
            let (mut a, mut b) = (a, b);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        }
    };
    let result = match (lcm, divisor) {
        (false, _) => Some(divisor),
        (true, 0) => Some(0),
        (true, _) => (a / divisor).checked_mul(b),
    };
    let unscaled = result.and_then(|value| i128::try_from(value).ok());
    unscaled
        .and_then(|value| Decimal::from_parts(value, scale))
        .ok_or_else(overflow)
}

/// `n!`; 22003 beyond 33!, the last that fits 38 digits.
pub(super) fn factorial(n: i64) -> Result<Datum, SqlError> {
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    let mut result = Decimal::ONE;
    for factor in 2..=n.min(40) {
        result = result.mul(Decimal::from(factor))?;
    }
    if n > 40 {
        Err(overflow())
    } else {
        Ok(Datum::Decimal(result))
    }
}
