//! Quotients that need more than 128 bits on the way.

use super::{Decimal, LIMIT, POW10, SCALE_MAX};

/// Fewest significant digits of a quotient (PostgreSQL's `NUMERIC_MIN_SIG_DIGITS`).
const QUOTIENT_DIGITS_MIN: i32 = 16;

/// The scale of a quotient: as many fraction digits as make 16 significant ones, counted in
/// PostgreSQL's groups of four decimal digits, and not fewer than either operand has; `None`: too
/// many.
pub(super) fn quotient_scale(dividend: Decimal, divisor: Decimal) -> Option<u8> {
    let (weight_a, first_a) = leading_group(dividend);
    let (weight_b, first_b) = leading_group(divisor);
    let weight = weight_a - weight_b - i32::from(first_a <= first_b);
    let scale = (QUOTIENT_DIGITS_MIN - weight * 4)
        .max(i32::from(dividend.scale()))
        .max(i32::from(divisor.scale()));
    let scale = scale.max(0);
    (scale <= i32::from(SCALE_MAX)).then_some(scale as u8)
}

/// The first nonzero group of four decimal digits and its weight (the power of 10,000); zero has
/// weight 0.
fn leading_group(value: Decimal) -> (i32, u128) {
    let magnitude = value.unscaled().unsigned_abs();
    if magnitude == 0 {
        return (0, 0);
    }
    let first_digit = magnitude.ilog10() as i32 - i32::from(value.scale());
    let weight = first_digit.div_euclid(4);
    // Groups start at multiples of four digits from the decimal point.
    let shift = weight * 4 + i32::from(value.scale());
    let group = if shift >= 0 {
        magnitude / POW10[shift as usize]
    } else {
        magnitude * POW10[shift.unsigned_abs() as usize]
    };
    (weight, group)
}

/// `a * 10^steps / b`, rounded half away from zero, and the scale it has if the exact quotient
/// was wanted with `scale` digits: digits beyond the 38th significant one are given up. `None` if
/// the integer part alone does not fit. `a` and `b` must be below 10^38, `b` not zero.
pub(super) fn long_division(a: u128, b: u128, steps: u8, scale: u8) -> Option<(u128, u8)> {
    let (mut quotient, mut rest, mut left) = (a / b, a % b, steps);
    if let Some(power) = POW10.get(steps as usize)
        && let Some(raised) = a.checked_mul(*power)
    {
        (quotient, rest, left) = (raised / b, raised % b, 0);
    }
    while left > 0 && quotient < LIMIT / 10 {
        let (digit, next) = times_ten_divided(rest, b);
        quotient = quotient * 10 + digit;
        rest = next;
        left -= 1;
    }
    let mut scale = scale.checked_sub(left)?;
    let mut up = rest >= b - rest;
    while quotient + u128::from(up) >= LIMIT {
        scale = scale.checked_sub(1)?;
        up = quotient % 10 >= 5;
        quotient /= 10;
    }
    Some((quotient + u128::from(up), scale))
}

/// The digit `rest * 10 / b` and what then remains; `rest < b < 10^38`. Ten times `rest` may not
/// fit 128 bits, twice `b` does.
fn times_ten_divided(rest: u128, b: u128) -> (u128, u128) {
    if let Some(raised) = rest.checked_mul(10) {
        return (raised / b, raised % b);
    }
    let (mut digit, mut sum) = (0, 0);
    for _ in 0..10 {
        sum += rest;
        if sum >= b {
            sum -= b;
            digit += 1;
        }
    }
    (digit, sum)
}
