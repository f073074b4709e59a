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
        return Err(out_of_range(word, name));
    }
    Ok(f64::from(value))
}

/// A small text on the stack.
struct StackText {
    bytes: [u8; 32],
    len: usize,
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

/// PostgreSQL prints exponents from this many digits before the point on, per precision.
const FIXED_END_DOUBLE: i32 = 15;
const FIXED_END_SINGLE: i32 = 6;

pub(super) fn format_float8(value: f64, out: &mut Vec<u8>) {
    format_shortest(
        value,
        format_args!("{:e}", value.abs()),
        FIXED_END_DOUBLE,
        out,
    );
}

pub(super) fn format_float4(value: f32, out: &mut Vec<u8>) {
    format_shortest(
        f64::from(value),
        format_args!("{:e}", value.abs()),
        FIXED_END_SINGLE,
        out,
    );
}

/// Rewrites Rust's shortest `d.ddde-x` of the magnitude the way PostgreSQL prints it.
fn format_shortest(value: f64, scientific: fmt::Arguments<'_>, fixed_end: i32, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if value.is_infinite() {
        return out.extend_from_slice(b"Infinity");
    }
    let mut text = StackText {
        bytes: [0; 32],
        len: 0,
    };
    text.write_fmt(scientific)
        .expect("17 digits and an exponent fit 32 bytes");
    let text = core::str::from_utf8(&text.bytes[..text.len]).expect("numbers are ASCII");
    let (mantissa, exponent) = text
        .split_once('e')
        .expect("scientific form has an exponent");
    let exponent: i32 = exponent.parse().expect("exponents are integers");
    let (first, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !(-4..fixed_end).contains(&exponent) {
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
