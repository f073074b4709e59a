//! The order-preserving encoding of key columns.
//!
//! Comparing the bytes of two encodings gives the order of the values (`Datum::compare`), also
//! when several columns follow each other, because no encoding is a prefix of another one of the
//! same type. A descending column is the ascending encoding with every bit inverted.
//!
//! | value | bytes |
//! |---|---|
//! | NULL | `ff` (so last when ascending, first when descending, as in PostgreSQL) |
//! | integer, date, time, timestamp | `80`+v for 0 <= v < 112; else sign and length, magnitude |
//! | boolean | `00` or `01` |
//! | float | `01`, then 8 bytes: sign bit flipped, or all bits if negative; one zero, one NaN |
//! | numeric | a byte with sign and exponent, then two digits per byte, the last one marked |
//! | text | its bytes, `00` written as `00 ff`, then `00 00` |
//! | bytea | `01`, then as text |
//! | uuid | `01`, then its 16 bytes |
//! | interval | `01`, then its length as 16 bytes |
//! | jsonb | as [`json::encode_key`] has it |
//! | array | `02` and the encoding of each element, then `01` |
//!
//! Equal values give equal bytes; decoding therefore gives *an* equal value: decimals come back
//! with their smallest scale, those in a jsonb too, intervals normalised, -0.0 as 0.0.

use crate::calendar::{MICROS_PER_DAY, is_time};
use crate::codec::CodecError;
use crate::datum::{Datum, Interval, Type};
use crate::decimal::{Decimal, POW10};
use crate::jsonb::Jsonb;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

const NULL: u8 = 0xff;
/// Starts values whose first byte could otherwise be that of NULL.
const PRESENT: u8 = 0x01;
const ELEMENT: u8 = 0x02;
const ARRAY_END: u8 = 0x01;

/// First byte of the integer 0; small integers are added to it.
const INT_ZERO: u8 = 0x80;
/// First integer that does not fit its first byte.
const INT_INLINE_END: i64 = 112;
/// First byte of a larger positive integer, before its length 1 to 8 is added.
const INT_LONG: u8 = INT_ZERO + INT_INLINE_END as u8 - 1;
/// First byte of a negative integer, before its length 0 to 8 is taken off.
const INT_NEGATIVE: u8 = 0x7f;

const DECIMAL_ZERO: u8 = 0x80;
/// Smallest decimal exponent: 10^-38 is 0.1 * 10^-37.
const EXPONENT_MIN: i32 = -37;
/// Largest decimal exponent: 10^38 - 1 is 0.99... * 10^38.
const EXPONENT_MAX: i32 = 38;

/// Appends the encoding of one key column.
///
/// Integers, floats, dates, times, timestamps and uuids take no allocation beyond `out` itself.
#[inline]
pub fn encode_datum(out: &mut Vec<u8>, datum: &Datum, descending: bool) {
    let start = out.len();
    match datum {
        Datum::Int(value) => encode_int(out, *value),
        Datum::Text(value) => encode_bytes(out, value.as_bytes()),
        _ => encode_other(out, datum),
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn encode_other(out: &mut Vec<u8>, datum: &Datum) {
    match datum {
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Timestamp(value) | Datum::Time(value) => {
            encode_int(out, *value);
        }
        Datum::Date(value) => encode_int(out, i64::from(*value)),
        Datum::Float(value) => {
            out.push(PRESENT);
            out.extend_from_slice(&ordered_bits(*value).to_be_bytes());
        }
        Datum::Decimal(value) => encode_decimal(out, *value),
        Datum::Text(value) => encode_bytes(out, value.as_bytes()),
        Datum::Bytes(value) => {
            out.push(PRESENT);
            encode_bytes(out, value);
        }
        Datum::Uuid(value) => {
            out.push(PRESENT);
            out.extend_from_slice(value);
        }
        Datum::Interval(value) => {
            out.push(PRESENT);
            let ordered = value.total_micros() as u128 ^ (1 << 127);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Datum::Jsonb(value) => json::encode_key(value.as_str(), out),
        Datum::Array(items) => {
            for item in items.iter() {
                out.push(ELEMENT);
                encode_datum(out, item, false);
            }
            out.push(ARRAY_END);
        }
    }
}

#[inline]
fn encode_int(out: &mut Vec<u8>, value: i64) {
    if (0..INT_INLINE_END).contains(&value) {
        out.push(INT_ZERO + value as u8);
        return;
    }
    let bytes = value.to_be_bytes();
    // Leading bytes that only repeat the sign are left out.
    let significant = value ^ (value >> 63);
    let skipped = (significant.leading_zeros() / 8) as usize;
    let length = (8 - skipped) as u8;
    out.push(if value >= 0 {
        INT_LONG + length
    } else {
        INT_NEGATIVE - length
    });
    out.extend_from_slice(&bytes[skipped..]);
}

fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    let mut rest = bytes;
    // `contains` looks at many bytes at once, and zeros are rare.
    while rest.contains(&0) {
        let zero = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xff);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// The float's bits so that their unsigned order is the order of the numbers.
fn ordered_bits(value: f64) -> u64 {
    let canonical = if value.is_nan() {
        f64::NAN.abs()
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = canonical.to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

fn float_of_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 {
        bits ^ 1 << 63
    } else {
        !bits
    })
}

/// Writes the number as 0.d1d2d3... * 10^exponent with d1 not zero.
fn encode_decimal(out: &mut Vec<u8>, value: Decimal) {
    let mut digits = value.unscaled().unsigned_abs();
    if digits == 0 {
        out.push(DECIMAL_ZERO);
        return;
    }
    let count = digits.ilog10() as i32 + 1;
    let rank = (count - i32::from(value.scale()) - EXPONENT_MIN) as u8;
    let start = out.len();
    out.push(DECIMAL_ZERO + 1 + rank);
    if count % 2 == 1 {
        // Pairs start at the first digit, so an odd number of digits ends in a zero.
        digits *= 10;
    }
    while digits.is_multiple_of(100) {
        digits /= 100;
    }
    let pairs = (digits.ilog10() as usize) / 2 + 1;
    out.resize(start + 1 + pairs, 0);
    for (at, byte) in out[start + 1..].iter_mut().rev().enumerate() {
        // The mark of a pair that has a successor is in the lowest bit: "12" < "1205".
        *byte = (digits % 100) as u8 * 2 + u8::from(at > 0);
        digits /= 100;
    }
    if value.is_negative() {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Reads encoded columns; `mask` is `ff` for a descending one.
struct Reader<'a, 'b> {
    input: &'a mut &'b [u8],
    mask: u8,
}

impl Reader<'_, '_> {
    fn byte(&mut self) -> Result<u8, CodecError> {
        let (first, rest) = self.input.split_first().ok_or(CodecError::Truncated)?;
        *self.input = rest;
        Ok(first ^ self.mask)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (head, rest) = self
            .input
            .split_first_chunk::<N>()
            .ok_or(CodecError::Truncated)?;
        *self.input = rest;
        Ok(head.map(|byte| byte ^ self.mask))
    }

    /// An integer whose first byte is `first`.
    fn int(&mut self, first: u8) -> Result<i64, CodecError> {
        let (negative, length) = match first {
            INT_ZERO..=INT_LONG => return Ok(i64::from(first - INT_ZERO)),
            0x77..=INT_NEGATIVE => (true, INT_NEGATIVE - first),
            0xf0..=0xf7 => (false, first - INT_LONG),
            _ => return Err(CodecError::Malformed("integer key column")),
        };
        let mut value = if negative { -1i64 } else { 0 };
        for _ in 0..length {
            value = value << 8 | i64::from(self.byte()?);
        }
        Ok(value)
    }

    /// Bytes up to the terminator; `first` was read already.
    fn bytes(&mut self, first: u8) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::new();
        let mut byte = first;
        loop {
            if byte != 0 {
                bytes.push(byte);
            } else {
                match self.byte()? {
                    0 => return Ok(bytes),
                    0xff => bytes.push(0),
                    _ => return Err(CodecError::Malformed("escape in a key column")),
                }
            }
            byte = self.byte()?;
        }
    }

    fn decimal(&mut self, first: u8) -> Result<Decimal, CodecError> {
        let malformed = CodecError::Malformed("numeric key column");
        if first == DECIMAL_ZERO {
            return Ok(Decimal::ZERO);
        }
        let negative = first < DECIMAL_ZERO;
        let flip = if negative { 0xff } else { 0 };
        let rank = (first ^ flip)
            .checked_sub(DECIMAL_ZERO + 1)
            .ok_or(malformed)?;
        let exponent = i32::from(rank) + EXPONENT_MIN;
        let (mut digits, mut count) = (0u128, 0);
        loop {
            let byte = self.byte()? ^ flip;
            if byte >= 200 || count == 38 {
                return Err(malformed);
            }
            digits = digits * 100 + u128::from(byte / 2);
            count += 2;
            if byte & 1 == 0 {
                break;
            }
        }
        while count > exponent.max(0) && digits != 0 && digits.is_multiple_of(10) {
            digits /= 10;
            count -= 1;
        }
        let raise = (exponent - count).max(0) as usize;
        let scale = u8::try_from((count - exponent).max(0)).map_err(|_| malformed)?;
        let magnitude = POW10
            .get(raise)
            .and_then(|power| digits.checked_mul(*power));
        let unscaled = magnitude.and_then(|magnitude| i128::try_from(magnitude).ok());
        unscaled
            .and_then(|unscaled| {
                Decimal::from_parts(if negative { -unscaled } else { unscaled }, scale)
            })
            .filter(|value| !value.is_zero() && exponent <= EXPONENT_MAX)
            .ok_or(malformed)
    }

    fn present(first: u8) -> Result<(), CodecError> {
        if first == PRESENT {
            Ok(())
        } else {
            Err(CodecError::Malformed("key column marker"))
        }
    }

    fn datum(&mut self, ty: Type) -> Result<Datum, CodecError> {
        let first = self.byte()?;
        if first == NULL {
            return Ok(Datum::Null);
        }
        Ok(match ty {
            Type::Bool => match first {
                0 | 1 => Datum::Bool(first == 1),
                _ => return Err(CodecError::Malformed("boolean key column")),
            },
            Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Oid
            | Type::Reg(_)
            | Type::Enum(_)
            | Type::Xid
            | Type::Tid => Datum::Int(self.int(first)?),
            Type::Timestamp(_) | Type::Timestamptz(_) => Datum::Timestamp(self.int(first)?),
            Type::Time(_) => {
                let micros = Some(self.int(first)?).filter(|micros| is_time(*micros));
                Datum::Time(micros.ok_or(CodecError::Malformed("time key column"))?)
            }
            Type::Date => {
                let days = i32::try_from(self.int(first)?);
                Datum::Date(days.map_err(|_| CodecError::Malformed("date key column"))?)
            }
            Type::Float4 | Type::Float8 => {
                Self::present(first)?;
                Datum::Float(float_of_ordered_bits(u64::from_be_bytes(self.array()?)))
            }
            Type::Numeric(_) => Datum::Decimal(self.decimal(first)?),
            Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Name
            | Type::InternalChar
            | Type::Json
            | Type::Unknown => {
                let text = String::from_utf8(self.bytes(first)?);
                let text = text.map_err(|_| CodecError::Malformed("text key column"))?;
                Datum::Text(text.into_boxed_str())
            }
            Type::Bytea => {
                Self::present(first)?;
                let first = self.byte()?;
                Datum::Bytes(self.bytes(first)?.into_boxed_slice())
            }
            Type::Uuid => {
                Self::present(first)?;
                Datum::Uuid(self.array()?)
            }
            Type::Interval => {
                Self::present(first)?;
                let total = u128::from_be_bytes(self.array()?) ^ (1 << 127);
                interval_of_total(total as i128)?
            }
            Type::Jsonb => {
                let text = json::decode_key(first, &mut || self.byte().ok());
                let text = text.ok_or(CodecError::Malformed("jsonb key column"))?;
                Datum::Jsonb(Jsonb::from_normal(text))
            }
            Type::Array(kind) => Datum::Array(self.items(first, kind.element())?),
        })
    }

    fn items(&mut self, first: u8, element: Type) -> Result<Box<[Datum]>, CodecError> {
        let mut items = Vec::new();
        let mut marker = first;
        while marker == ELEMENT {
            items.push(self.datum(element)?);
            marker = self.byte()?;
        }
        if marker == ARRAY_END {
            Ok(items.into_boxed_slice())
        } else {
            Err(CodecError::Malformed("array key column"))
        }
    }
}

/// An interval of the given length, with as many months and days as it holds.
fn interval_of_total(total: i128) -> Result<Datum, CodecError> {
    let days = total / i128::from(MICROS_PER_DAY);
    let micros = (total % i128::from(MICROS_PER_DAY)) as i64;
    let months = i32::try_from(days / 30);
    let months = months.map_err(|_| CodecError::Malformed("interval key column"))?;
    Ok(Datum::Interval(Interval {
        months,
        days: (days % 30) as i32,
        micros,
    }))
}

/// Reads one column from the front of `input` and moves `input` behind it.
///
/// `ty` and `descending` must be those that it was encoded with. Any other bytes give an error or
/// some value, never a panic.
pub fn decode_datum(input: &mut &[u8], ty: Type, descending: bool) -> Result<Datum, CodecError> {
    Reader {
        input,
        mask: if descending { 0xff } else { 0 },
    }
    .datum(ty)
}

#[cfg(test)]
mod tests;
