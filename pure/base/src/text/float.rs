//! Text forms of `real` and `double precision`: the shortest digits that read back equal.

use super::{invalid, put, trim};
use crate::error::{SqlError, SqlState};
use alloc::format;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// Whether the text is a number in PostgreSQL's grammar: what Rust reads, without its extras.
fn is_finite_number(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// The special words; Rust's own reader takes the same ones, but this names them.
fn special(word: &str) -> Option<f64> {
    let (sign, magnitude) = match word.as_bytes().first() {
        Some(b'-') => (-1.0, &word[1..]),
        Some(b'+') => (1.0, &word[1..]),
        _ => (1.0, word),
    };
    if magnitude.eq_ignore_ascii_case("infinity") || magnitude.eq_ignore_ascii_case("inf") {
        Some(sign * f64::INFINITY)
    } else if magnitude.eq_ignore_ascii_case("nan") {
        Some(f64::NAN)
    } else {
        None
    }
}

fn out_of_range(text: &str, type_name: &str) -> SqlError {
    let message = format!("\"{text}\" is out of range for type {type_name}");
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
}

/// Whether a number that reads as zero is written with a digit that is not.
fn underflows(word: &str) -> bool {
    let mantissa = word.split(['e', 'E']).next().unwrap_or(word);
    mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
}

pub(super) fn parse_float8(text: &str) -> Result<f64, SqlError> {
    let name = "double precision";
    let word = trim(text);
    if let Some(value) = special(word) {
        return Ok(value);
    }
    let value: f64 = match word.parse() {
        Ok(value) if is_finite_number(word) => value,
        _ => return Err(invalid(name, text)),
    };
    if value.is_infinite() || (value == 0.0 && underflows(word)) {
        return Err(out_of_range(word, name));
    }
    Ok(value)
}

/// Read directly in single precision, so that it is rounded once.
pub(super) fn parse_float4(text: &str) -> Result<f64, SqlError> {
    let name = "real";
    let word = trim(text);
    if let Some(value) = special(word) {
        return Ok(value);
    }
    let value: f32 = match word.parse() {
        Ok(value) if is_finite_number(word) => value,
        _ => return Err(invalid(name, text)),
    };
    if value.is_infinite() || (value == 0.0 && underflows(word)) {
        return Err(out_of_range(text, name));
    }
    Ok(f64::from(value))
}

#[derive(Clone, Copy)]
struct StackText {
    bytes: [u8; 32],
    len: usize,
}

impl StackText {
    fn new(arguments: fmt::Arguments<'_>) -> StackText {
        let mut text = StackText {
            bytes: [0; 32],
            len: 0,
        };
        text.write_fmt(arguments)
            .expect("17 digits and an exponent fit 32 bytes");
        text
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).expect("numbers are ASCII")
    }
}

impl Write for StackText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let target = self
            .bytes
            .get_mut(self.len..self.len + text.len())
            .ok_or(fmt::Error)?;
        target.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// What differs between the two precisions.
struct Precision {
    /// PostgreSQL prints exponents from this many digits before the point on.
    fixed_end: i32,
    /// From this many digits on, two shortest texts can be equally close.
    tie_digits: usize,
    /// Digits that always suffice.
    digits_max: usize,
}

const DOUBLE: Precision = Precision {
    fixed_end: 15,
    tie_digits: 16,
    digits_max: 17,
};
const SINGLE: Precision = Precision {
    fixed_end: 6,
    tie_digits: 7,
    digits_max: 9,
};

pub(super) fn format_float8(value: f64, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if !put_special(value, out) {
        let bits = magnitude.to_bits();
        let parts = FloatParts::new(bits & ((1 << 52) - 1), (bits >> 52) as i32, 52, 1075);
        let shortest = StackText::new(format_args!("{magnitude:e}"));
        let exact = |digits: usize| StackText::new(format_args!("{magnitude:.*e}", digits - 1));
        let reads_back = |text: &str| text.parse() == Ok(magnitude);
        put_number(
            choose(&parts, &DOUBLE, shortest, exact, reads_back),
            &DOUBLE,
            out,
        );
    }
}

pub(super) fn format_float4(value: f32, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if !put_special(f64::from(value), out) {
        let bits = magnitude.to_bits();
        let fraction = u64::from(bits & ((1 << 23) - 1));
        let parts = FloatParts::new(fraction, (bits >> 23) as i32, 23, 150);
        let shortest = StackText::new(format_args!("{magnitude:e}"));
        let exact = |digits: usize| StackText::new(format_args!("{magnitude:.*e}", digits - 1));
        let reads_back = |text: &str| text.parse() == Ok(magnitude);
        put_number(
            choose(&parts, &SINGLE, shortest, exact, reads_back),
            &SINGLE,
            out,
        );
    }
}

/// Writes the sign, and the whole text if the value is not finite; returns whether it did.
fn put_special(value: f64, out: &mut Vec<u8>) -> bool {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return true;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
    }
    value.is_infinite()
}

/// A positive float as `mantissa * 2^exponent`.
struct FloatParts {
    mantissa: u64,
    exponent: i32,
    /// Whether the next smaller float is only half as far away as the next larger one.
    at_power: bool,
}

impl FloatParts {
    fn new(fraction: u64, biased: i32, fraction_bits: u32, bias: i32) -> FloatParts {
        let implicit = if biased == 0 { 0 } else { 1 << fraction_bits };
        FloatParts {
            mantissa: fraction | implicit,
            exponent: biased.max(1) - bias,
            at_power: fraction == 0 && biased > 1,
        }
    }

    /// Whether `digits * 10^power` lies exactly halfway to a neighbour.
    fn is_halfway(&self, digits: u128, power: i32) -> bool {
        let up = (self.mantissa * 2 + 1, self.exponent - 1);
        let down = if self.at_power {
            (self.mantissa * 4 - 1, self.exponent - 2)
        } else {
            ((self.mantissa * 2).saturating_sub(1), self.exponent - 1)
        };
        [up, down].iter().any(|(odd, exponent)| {
            // Both sides as an odd number times a power of two.
            let twos = digits.trailing_zeros() as i32;
            let five = 5u128.checked_pow(power.unsigned_abs());
            let (left, right) = if power >= 0 {
                (
                    five.and_then(|five| (digits >> twos).checked_mul(five)),
                    Some(u128::from(*odd)),
                )
            } else {
                (
                    Some(digits >> twos),
                    five.and_then(|five| u128::from(*odd).checked_mul(five)),
                )
            };
            left.is_some() && left == right && twos + power == *exponent
        })
    }
}

/// The text that PostgreSQL would print, in the form `d.ddde-x`.
///
/// Rust and PostgreSQL both print the fewest digits that read back, but PostgreSQL does not rely
/// on the reader to round a number halfway between two floats its way, and takes the even digit
/// where two texts are equally close.
fn choose(
    parts: &FloatParts,
    precision: &Precision,
    shortest: StackText,
    exact: impl Fn(usize) -> StackText,
    reads_back: impl Fn(&str) -> bool,
) -> StackText {
    let is_safe = |text: &StackText| {
        let (mantissa, exponent) = split_scientific(text.as_str());
        let digits = mantissa.bytes().filter(u8::is_ascii_digit);
        let (value, count) = digits.fold((0u128, 0), |(sum, count), byte| {
            (sum * 10 + u128::from(byte - b'0'), count + 1)
        });
        value == 0 || !parts.is_halfway(value, exponent - count + 1)
    };
    let (mantissa, _) = split_scientific(shortest.as_str());
    let count = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let safe = is_safe(&shortest);
    if safe && count < precision.tie_digits {
        return shortest;
    }
    let longer = (count..=precision.digits_max).map(exact);
    let mut candidates = longer.filter(|text| reads_back(text.as_str()) && is_safe(text));
    candidates.next().unwrap_or(shortest)
}

/// Mantissa and exponent of `d.ddde-x`.
fn split_scientific(text: &str) -> (&str, i32) {
    let (mantissa, exponent) = text
        .split_once('e')
        .expect("scientific form has an exponent");
    (mantissa, exponent.parse().expect("exponents are integers"))
}

/// Writes `d.ddde-x` the way PostgreSQL does.
fn put_number(text: StackText, precision: &Precision, out: &mut Vec<u8>) {
    let (mantissa, exponent) = split_scientific(text.as_str());
    let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !(-4..precision.fixed_end).contains(&exponent) {
        out.extend_from_slice(mantissa.as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        return put(out, format_args!("e{sign}{:02}", exponent.abs()));
    }
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + exponent.unsigned_abs() as usize - 1, b'0');
        out.extend_from_slice(first.as_bytes());
        return out.extend_from_slice(fraction.as_bytes());
    }
    let whole = exponent as usize;
    out.extend_from_slice(first.as_bytes());
    if fraction.len() <= whole {
        out.extend_from_slice(fraction.as_bytes());
        out.resize(out.len() + whole - fraction.len(), b'0');
    } else {
        out.extend_from_slice(&fraction.as_bytes()[..whole]);
        out.push(b'.');
        out.extend_from_slice(&fraction.as_bytes()[whole..]);
    }
}
