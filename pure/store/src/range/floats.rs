//! Ranges of floats.
//!
//! Rounding keeps the order of numbers, so the ends of a result are the results at the corners, as
//! with other numbers. But a product may also be too small: it is then an error, and not zero. So a
//! range says how small its numbers are that are not zero, and of which power of two all of them
//! are multiples: a sum is no smaller than that. NaN and infinity have no range.

use super::{Numbers, Values};
use crate::computed::ValueFunc;
use alloc::format;
use alloc::vec::Vec;
use base::decimal::SCALE_MAX;
use base::{Datum, Decimal, Type};

/// Binary digits behind the first one of a float.
const FRACTION_BITS: i32 = 52;
/// Exponent of the smallest float.
const EXPONENT_MIN: i32 = -1074;
/// Exponent of the largest power of two.
const EXPONENT_MAX: i32 = 1023;

/// Finite floats from `low` to `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Floats {
    pub(super) low: f64,
    pub(super) high: f64,
    /// No number that is not 0 is nearer to 0; infinity: all are 0.
    pub(super) least: f64,
    /// All are multiples of 2 to this.
    pub(super) grain: i32,
}

/// The exponent of the first binary digit of a positive number.
fn exponent(of: f64) -> i32 {
    let bits = of.to_bits();
    match (bits >> FRACTION_BITS) as i32 & 0x7ff {
        0 => EXPONENT_MIN + 63 - bits.leading_zeros() as i32,
        biased => biased - EXPONENT_MAX,
    }
}

/// 2 to this.
fn power(exponent: i32) -> f64 {
    let exponent = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX);
    f64::from_bits(match exponent < 1 - EXPONENT_MAX {
        true => 1 << (exponent - EXPONENT_MIN),
        false => ((exponent + EXPONENT_MAX) as u64) << FRACTION_BITS,
    })
}

impl Floats {
    /// The number alone; `None`: it is infinite, or NaN.
    pub(super) fn of(value: f64) -> Option<Floats> {
        let size = value.abs();
        let (least, grain) = match size > 0.0 {
            true => {
                let last = exponent(size) - FRACTION_BITS;
                let zeros = ((1_u64 << FRACTION_BITS) | size.to_bits()).trailing_zeros();
                (size, (last + zeros as i32).max(EXPONENT_MIN))
            }
            false => (f64::INFINITY, EXPONENT_MAX),
        };
        value.is_finite().then_some(Floats {
            low: value,
            high: value,
            least,
            grain,
        })
    }

    pub(super) fn or(self, other: Floats) -> Floats {
        Floats {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            least: self.least.min(other.least),
            grain: self.grain.min(other.grain),
        }
    }

    /// The results whose ends are known; none is nearer to 0 than `least`, and all are multiples of
    /// 2 to `grain`.
    pub(super) fn between(ends: &[f64], least: f64, grain: i32) -> Option<Floats> {
        let first = *ends.first()?;
        let low = ends.iter().fold(first, |low, end| low.min(*end));
        let high = ends.iter().fold(first, |high, end| high.max(*end));
        // A float is a multiple of its last digit.
        let last = match least.is_finite() {
            true => exponent(least) - FRACTION_BITS,
            false => EXPONENT_MAX,
        };
        let known = Floats {
            low,
            high,
            least,
            grain: grain.max(last).clamp(EXPONENT_MIN, EXPONENT_MAX),
        };
        (low.is_finite() && high.is_finite() && least > 0.0).then_some(known)
    }

    /// Other ends of a function that keeps or reverses the order.
    fn mapped(self, of: impl Fn(f64) -> Option<f64>, least: f64, grain: i32) -> Option<Floats> {
        Floats::between(&[of(self.low)?, of(self.high)?], least, grain)
    }

    /// As a column or a cast of the type keeps them.
    pub(super) fn kept(self, ty: Type) -> Option<Floats> {
        let fit = |value: f64| match base::text::fit(ty, Datum::Float(value)) {
            Ok(Datum::Float(value)) => Some(value),
            _ => None,
        };
        let least = match self.least.is_finite() {
            true => fit(self.least)?,
            false => self.least,
        };
        // Of fewer digits, the last one is no smaller.
        self.mapped(fit, least, EXPONENT_MIN.max(self.grain))
    }

    /// Digits behind the point that are enough for the decimal form of each; `None`: more than a
    /// decimal number of the usual size has.
    fn scale(self, digits: i32) -> Option<u8> {
        if !self.least.is_finite() {
            return Some(0);
        }
        let text = format!("{:e}", self.least);
        let (_, exponent) = text.split_once('e')?;
        let scale = digits - 1 - exponent.parse::<i32>().ok()?;
        u8::try_from(scale.max(0))
            .ok()
            .filter(|scale| *scale <= SCALE_MAX)
    }

    /// What a cast to whole or decimal numbers makes of them.
    pub(super) fn numbers(self, convert: ValueFunc, from: Type, to: Type) -> Option<Numbers> {
        let end = |value: f64| {
            let args = Vec::from([Datum::Float(value)]);
            match convert.apply(args, to).ok()? {
                Datum::Int(value) => Some(Decimal::from(value)),
                Datum::Decimal(value) => Some(value),
                _ => None,
            }
        };
        let digits = if from == Type::Float4 { 6 } else { 15 };
        let numbers = Numbers {
            low: end(self.low)?,
            high: end(self.high)?,
            scale: match to {
                Type::Numeric(None) => self.scale(digits)?,
                Type::Numeric(Some((_, scale))) => u8::try_from(scale).ok()?,
                _ => 0,
            },
        };
        numbers.checked()
    }

    /// Of whole or decimal numbers.
    pub(super) fn of_numbers(
        numbers: Numbers,
        convert: ValueFunc,
        from: Type,
        to: Type,
    ) -> Option<Floats> {
        let end = |value: Decimal| {
            let value = match from {
                Type::Numeric(_) => Datum::Decimal(value),
                _ => Datum::Int(value.to_i64_exact()?),
            };
            float(convert.apply(Vec::from([value]), to).ok()?)
        };
        let is_zero = numbers.low == Decimal::ZERO && numbers.high == Decimal::ZERO;
        let (least, grain) = match (is_zero, numbers.scale) {
            (true, _) => (f64::INFINITY, EXPONENT_MAX),
            (false, 0) => (1.0, 0),
            (false, scale) => (end(Decimal::from_parts(1, scale)?)?, EXPONENT_MIN),
        };
        Floats::between(&[end(numbers.low)?, end(numbers.high)?], least, grain)
    }
}

fn float(value: Datum) -> Option<f64> {
    match value {
        Datum::Float(value) => Some(value),
        _ => None,
    }
}

/// What a function of one float gives; `None`: it may fail.
pub(super) fn of_one(func: ValueFunc, a: Floats, ty: Type) -> Option<Values> {
    let of = |value: f64| float(func.apply(Vec::from([Datum::Float(value)]), ty).ok()?);
    let made = match func {
        ValueFunc::Negate => a.mapped(of, a.least, a.grain),
        ValueFunc::Absolute => {
            let mut ends = Vec::from([of(a.low)?, of(a.high)?]);
            if a.low < 0.0 && a.high > 0.0 {
                ends.push(0.0);
            }
            Floats::between(&ends, a.least, a.grain)
        }
        ValueFunc::Round
        | ValueFunc::Truncate
        | ValueFunc::Down
        | ValueFunc::Up
        | ValueFunc::Sign => a.mapped(of, 1.0, 0),
        ValueFunc::Sqrt => {
            let least = match a.least.is_finite() {
                true => of(a.least)?,
                false => a.least,
            };
            a.mapped(of, least, EXPONENT_MIN)
        }
        _ => None,
    };
    made.map(Values::Floats)
}

/// What an operation of two floats gives; `None`: it may fail.
pub(super) fn of_two(func: ValueFunc, a: Floats, b: Floats, ty: Type) -> Option<Values> {
    let of = |a: f64, b: f64| {
        let args = Vec::from([Datum::Float(a), Datum::Float(b)]);
        float(func.apply(args, ty).ok()?)
    };
    let (least, grain) = match func {
        ValueFunc::Add | ValueFunc::Subtract => {
            let grain = a.grain.min(b.grain);
            let turned = match func {
                ValueFunc::Add => (b.low, b.high),
                _ => (-b.high, -b.low),
            };
            // Of one sign, they do not cancel each other out.
            let same = a.low >= 0.0 && turned.0 >= 0.0 || a.high <= 0.0 && turned.1 <= 0.0;
            let least = if same { a.least.min(b.least) } else { 0.0 };
            (least.max(power(grain)), grain)
        }
        ValueFunc::Multiply => {
            let is_zero = !a.least.is_finite() || !b.least.is_finite();
            let least = if is_zero {
                f64::INFINITY
            } else {
                of(a.least, b.least)?
            };
            (least, a.grain + b.grain)
        }
        ValueFunc::Divide => {
            if b.low <= 0.0 && b.high >= 0.0 {
                return None;
            }
            let size = b.low.abs().max(b.high.abs());
            let least = if a.least.is_finite() {
                of(a.least, size)?
            } else {
                f64::INFINITY
            };
            (least, EXPONENT_MIN)
        }
        _ => return None,
    };
    let mut ends = Vec::with_capacity(4);
    for a in [a.low, a.high] {
        for b in [b.low, b.high] {
            ends.push(of(a, b)?);
        }
    }
    Floats::between(&ends, least, grain).map(Values::Floats)
}
