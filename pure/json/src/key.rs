//! Bytes whose order is that of the values, none of which is the start of another one's.
//!
//! | value | bytes |
//! |---|---|
//! | empty array, not inside of another value | `01` |
//! | null | `02` |
//! | string | `03`, its bytes with `00` after a `01` of 1 and 0, `00` |
//! | number | `04`, `80` for zero, else `81` and exponent and digits, all inverted if negative |
//! | false, true | `05`, `06` |
//! | array | `07`, number of elements in 4 bytes, elements |
//! | object | `08`, number of members in 4 bytes, keys as strings without `03` and values |

use crate::DEPTH_MAX;
use crate::build::write_string;
use crate::number::{FRACTION_MAX, Parts, WHOLE_MAX};
use crate::value::{Kind, Value};
use alloc::string::String;
use alloc::vec::Vec;

const EMPTY: u8 = 1;
const NULL: u8 = 2;
const STRING: u8 = 3;
const NUMBER: u8 = 4;
const FALSE: u8 = 5;
const TRUE: u8 = 6;
const ARRAY: u8 = 7;
const OBJECT: u8 = 8;

const ZERO: u8 = 0x80;
const POSITIVE: u8 = 0x81;
/// Added to exponents so that they are not negative.
const EXPONENT_BIAS: i32 = 1 << 20;

/// Appends the bytes of a value in normal form.
pub fn encode_key(text: &str, out: &mut Vec<u8>) {
    match text {
        "[]" => out.push(EMPTY),
        _ => encode(Value::new(text), out, 0),
    }
}

fn encode(value: Value<'_>, out: &mut Vec<u8>, depth: usize) {
    if depth > DEPTH_MAX {
        return out.push(NULL);
    }
    match value.kind() {
        Kind::Null => out.push(NULL),
        Kind::Bool => out.push(if value.is_true() { TRUE } else { FALSE }),
        Kind::String => {
            out.push(STRING);
            encode_string(value, out);
        }
        Kind::Number => {
            out.push(NUMBER);
            encode_number(value.text(), out);
        }
        Kind::Array => {
            out.push(ARRAY);
            out.extend_from_slice(&(value.count() as u32).to_be_bytes());
            value.items().for_each(|item| encode(item, out, depth + 1));
        }
        Kind::Object => {
            out.push(OBJECT);
            out.extend_from_slice(&(value.count() as u32).to_be_bytes());
            for (key, value) in value.members() {
                encode_string(key, out);
                encode(value, out, depth + 1);
            }
        }
    }
}

fn encode_string(value: Value<'_>, out: &mut Vec<u8>) {
    for byte in value.string().unwrap_or_default().bytes() {
        match byte {
            0 | 1 => out.extend_from_slice(&[1, byte]),
            other => out.push(other),
        }
    }
    out.push(0);
}

fn encode_number(text: &str, out: &mut Vec<u8>) {
    let parts = Parts::of(text);
    if parts.is_zero() {
        return out.push(ZERO);
    }
    let start = out.len();
    out.push(POSITIVE);
    out.extend_from_slice(&((parts.exponent + EXPONENT_BIAS) as u32).to_be_bytes());
    out.extend(parts.digits());
    out.push(0);
    if parts.negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The value, in normal form, whose first byte is `first`; `next` gives the others. Equal to what
/// was encoded: fractions come back without zeros at their end. `None` for other bytes.
pub fn decode_key(first: u8, next: &mut dyn FnMut() -> Option<u8>) -> Option<String> {
    let mut out = String::new();
    match first {
        EMPTY => out.push_str("[]"),
        _ => decode(first, next, &mut out, 0)?,
    }
    Some(out)
}

type Next<'a> = &'a mut dyn FnMut() -> Option<u8>;

fn decode(first: u8, next: Next<'_>, out: &mut String, depth: usize) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match first {
        NULL => out.push_str("null"),
        FALSE => out.push_str("false"),
        TRUE => out.push_str("true"),
        STRING => write_string(&decode_string(next)?, out),
        NUMBER => decode_number(next, out)?,
        ARRAY => {
            out.push('[');
            for i in 0..decode_count(next)? {
                out.push_str(if i > 0 { ", " } else { "" });
                decode(next()?, next, out, depth + 1)?;
            }
            out.push(']');
        }
        OBJECT => {
            out.push('{');
            for i in 0..decode_count(next)? {
                out.push_str(if i > 0 { ", " } else { "" });
                write_string(&decode_string(next)?, out);
                out.push_str(": ");
                decode(next()?, next, out, depth + 1)?;
            }
            out.push('}');
        }
        _ => return None,
    }
    Some(())
}

fn decode_count(next: Next<'_>) -> Option<u32> {
    Some(u32::from_be_bytes([next()?, next()?, next()?, next()?]))
}

fn decode_string(next: Next<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        match next()? {
            0 => return String::from_utf8(bytes).ok(),
            1 => bytes.push(next()?),
            other => bytes.push(other),
        }
    }
}

fn decode_number(next: Next<'_>, out: &mut String) -> Option<()> {
    let sign = next()?;
    if sign == ZERO {
        out.push('0');
        return Some(());
    }
    let negative = sign == !POSITIVE;
    if !negative && sign != POSITIVE {
        return None;
    }
    let mut byte = || next().map(|byte| if negative { !byte } else { byte });
    let exponent = u32::from_be_bytes([byte()?, byte()?, byte()?, byte()?]);
    let exponent = i32::try_from(exponent).ok()? - EXPONENT_BIAS;
    if !(-FRACTION_MAX..=WHOLE_MAX).contains(&i64::from(exponent)) {
        return None;
    }
    let mut digits = String::new();
    loop {
        match byte()? {
            0 => break,
            digit if digit.is_ascii_digit() => digits.push(char::from(digit)),
            _ => return None,
        }
    }
    if digits.is_empty() || digits.starts_with('0') || digits.ends_with('0') {
        return None;
    }
    if negative {
        out.push('-');
    }
    let mut whole = exponent.max(0) as usize;
    let zeros = whole.saturating_sub(digits.len());
    whole -= zeros;
    if exponent <= 0 {
        out.push('0');
    }
    out.push_str(&digits[..whole]);
    out.extend(core::iter::repeat_n('0', zeros));
    if whole < digits.len() {
        out.push('.');
        out.extend(core::iter::repeat_n('0', (-exponent).max(0) as usize));
        out.push_str(&digits[whole..]);
    }
    Some(())
}
