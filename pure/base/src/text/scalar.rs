//! Text forms of booleans, integers, bytea and uuid.

use super::invalid;
use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
use crate::types::Reg;
use alloc::format;
use alloc::vec::Vec;

/// Any unambiguous prefix of true, false, yes, no, on, off; 1 and 0.
pub(super) fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let word = super::trim(text);
    let matches = |full: &str, shortest: usize| {
        word.len() >= shortest
            && word.len() <= full.len()
            && full.as_bytes()[..word.len()].eq_ignore_ascii_case(word.as_bytes())
    };
    if word == "1" || matches("true", 1) || matches("yes", 1) || matches("on", 2) {
        Ok(true)
    } else if word == "0" || matches("false", 1) || matches("no", 1) || matches("off", 2) {
        Ok(false)
    } else {
        Err(invalid("boolean", text))
    }
}

enum IntError {
    Invalid,
    Range,
}

/// Reads `[sign] digits` with blanks around.
fn read_int(text: &str) -> Result<i64, IntError> {
    let trimmed = super::trim(text).as_bytes();
    let (negative, digits) = match trimmed {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, trimmed),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(IntError::Invalid);
    }
    let mut value = 0i64;
    for digit in digits {
        // Negative numbers reach one further, so the sum is built below zero.
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_sub(i64::from(digit - b'0')))
            .ok_or(IntError::Range)?;
    }
    if negative {
        Ok(value)
    } else {
        value.checked_neg().ok_or(IntError::Range)
    }
}

fn out_of_range(text: &str, type_name: &str) -> SqlError {
    let message = format!("value \"{text}\" is out of range for type {type_name}");
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
}

/// An integer of type `ty` from `low` to `high`.
pub(super) fn parse_int(text: &str, ty: Type, low: i64, high: i64) -> Result<Datum, SqlError> {
    match read_int(text) {
        Ok(value) if (low..=high).contains(&value) => Ok(Datum::Int(value)),
        Ok(_) | Err(IntError::Range) => Err(out_of_range(text, &ty.base_name())),
        Err(IntError::Invalid) => Err(invalid(&ty.base_name(), text)),
    }
}

/// A value of an enum type for a text in which the catalog puts the label later
/// ([`crate::types::UNNAMED`]).
pub(super) fn format_unnamed(id: u32, place: i64, out: &mut Vec<u8>) {
    let [begin, end] = crate::types::UNNAMED;
    super::put(out, format_args!("{begin}{id}:{place}{end}"));
}

/// An object identifier; negative numbers of 32 bits wrap around, as in PostgreSQL.
pub(super) fn parse_oid(text: &str) -> Result<Datum, SqlError> {
    match read_int(text) {
        Ok(value) if value >= i64::from(i32::MIN) && value <= i64::from(u32::MAX) => {
            Ok(Datum::Int(i64::from(value as u32)))
        }
        Ok(_) | Err(IntError::Range) => Err(out_of_range(text, "oid")),
        Err(IntError::Invalid) => Err(invalid("oid", text)),
    }
}

/// An `xid`: 32 bits without a sign.
pub(super) fn parse_xid(text: &str) -> Result<Datum, SqlError> {
    match read_int(text) {
        Ok(value) if u32::try_from(value).is_ok() => Ok(Datum::Int(value)),
        Ok(_) | Err(IntError::Range) => Err(out_of_range(text, "xid")),
        Err(IntError::Invalid) => Err(invalid("xid", text)),
    }
}

/// Bits of a `tid` that are written behind the comma.
const TID_LOW_BITS: u32 = 16;

/// A `tid` as `(block,offset)`. PostgreSQL's blocks have 32 bits, the numbers of rows here 63, so
/// what stands before the comma may have 47.
pub(super) fn parse_tid(text: &str) -> Result<Datum, SqlError> {
    let parts = || {
        let inner = super::trim(text).strip_prefix('(')?.strip_suffix(')')?;
        let (block, offset) = inner.split_once(',')?;
        let block = block.trim_start().parse::<u64>().ok()?;
        let offset = offset.trim_start().parse::<u16>().ok()?;
        (block >> (63 - TID_LOW_BITS) == 0)
            .then(|| (block as i64) << TID_LOW_BITS | i64::from(offset))
    };
    parts().map(Datum::Int).ok_or_else(|| invalid("tid", text))
}

/// Appends a `tid` as [`parse_tid`] reads it.
#[cold]
pub(super) fn format_tid(value: i64, out: &mut Vec<u8>) {
    out.push(b'(');
    format_int(value >> TID_LOW_BITS, out);
    out.push(b',');
    format_int(value & ((1 << TID_LOW_BITS) - 1), out);
    out.push(b')');
}

/// A `reg...` value as a number, or `-` for none. Names are looked up in the catalog, which is not
/// known here.
pub(super) fn parse_reg(reg: Reg, text: &str) -> Result<Datum, SqlError> {
    match super::trim(text) {
        "-" => Ok(Datum::Int(0)),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => parse_oid(digits),
        _ => Err(invalid(reg.name(), text)),
    }
}

/// Appends the decimal digits of `value`.
#[inline]
pub(super) fn format_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// The hex form (`\x0aff`, blanks between bytes) or the escape form (`\\`, `\377`).
pub(super) fn parse_bytea(text: &str) -> Result<Datum, SqlError> {
    let bytes = text.as_bytes();
    let decoded = match bytes.strip_prefix(b"\\x") {
        Some(hex) => parse_hex(hex, &text[2..])?,
        None => parse_escaped(bytes)?,
    };
    Ok(Datum::Bytes(decoded.into_boxed_slice()))
}

fn parse_hex(hex: &[u8], text: &str) -> Result<Vec<u8>, SqlError> {
    let mut decoded = Vec::with_capacity(hex.len() / 2);
    let mut at = 0;
    while at < hex.len() {
        if matches!(hex[at], b' ' | b'\n' | b'\t' | b'\r') {
            at += 1;
            continue;
        }
        let digit = |at: usize| {
            let byte = hex.get(at).ok_or_else(|| {
                let message = "invalid hexadecimal data: odd number of digits";
                SqlError::new(SqlState::INVALID_PARAMETER, message)
            })?;
            hex_digit(*byte).ok_or_else(|| {
                let bad = text
                    .get(at..)
                    .and_then(|rest| rest.chars().next())
                    .unwrap_or('?');
                let message = format!("invalid hexadecimal digit: \"{bad}\"");
                SqlError::new(SqlState::INVALID_PARAMETER, message)
            })
        };
        decoded.push(digit(at)? << 4 | digit(at + 1)?);
        at += 2;
    }
    Ok(decoded)
}

fn parse_escaped(bytes: &[u8]) -> Result<Vec<u8>, SqlError> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'\\' {
            decoded.push(*first);
            rest = behind;
            continue;
        }
        rest = match behind {
            [b'\\', behind @ ..] => {
                decoded.push(b'\\');
                behind
            }
            [
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                behind @ ..,
            ] => {
                decoded.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                behind
            }
            _ => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::INVALID_TEXT, message));
            }
        };
    }
    Ok(decoded)
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 0xf)]);
}

pub(super) fn format_bytea(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(2 + bytes.len() * 2);
    out.extend_from_slice(b"\\x");
    bytes.iter().for_each(|byte| push_hex(*byte, out));
}

/// 32 hex digits, optionally in braces, with a hyphen allowed after every four.
pub(super) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let bytes = text.as_bytes();
    let inner = match bytes {
        [b'{', inner @ .., b'}'] => inner,
        _ => bytes,
    };
    let mut uuid = [0u8; 16];
    let mut at = 0;
    for (i, byte) in uuid.iter_mut().enumerate() {
        let high = inner.get(at).copied().and_then(hex_digit);
        let low = inner.get(at + 1).copied().and_then(hex_digit);
        let (Some(high), Some(low)) = (high, low) else {
            return Err(invalid("uuid", text));
        };
        *byte = high << 4 | low;
        at += 2;
        if i % 2 == 1 && i < 15 && inner.get(at) == Some(&b'-') {
            at += 1;
        }
    }
    if at == inner.len() {
        Ok(uuid)
    } else {
        Err(invalid("uuid", text))
    }
}

pub(super) fn format_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        push_hex(*byte, out);
    }
}
