//! Encoding of single values inside a row.

use super::{RowRef, TRUNCATED, count_size, encode};
use crate::calendar::is_time;
use crate::codec::CodecError;
use crate::datum::{Datum, Interval, Type};
use crate::decimal::Decimal;
use crate::jsonb::Jsonb;
use alloc::vec::Vec;

#[inline]
fn int_len(value: i64) -> usize {
    if value == 0 {
        0
    } else if value == i64::from(value as i8) {
        1
    } else if value == i64::from(value as i16) {
        2
    } else if value == i64::from(value as i32) {
        4
    } else {
        8
    }
}

/// Bytes that hold `value` in two's complement, 0 to 16.
fn wide_int_len(value: i128) -> usize {
    if value == 0 {
        return 0;
    }
    let significant = value ^ (value >> 127);
    (128 - significant.leading_zeros() as usize) / 8 + 1
}

fn is_single(value: f64) -> bool {
    f64::from(value as f32).to_bits() == value.to_bits()
}

/// Bytes of a value in a row, without the place in the header that tells where it ends.
pub fn value_len(datum: &Datum) -> usize {
    match datum {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Int(value) | Datum::Timestamp(value) | Datum::Time(value) => int_len(*value),
        Datum::Date(value) => int_len(i64::from(*value)),
        Datum::Float(value) => {
            if is_single(*value) {
                4
            } else {
                8
            }
        }
        Datum::Decimal(value) => 1 + wide_int_len(value.unscaled()),
        Datum::Text(value) => value.len(),
        Datum::Bytes(value) => value.len(),
        Datum::Uuid(_) | Datum::Interval(_) => 16,
        Datum::Jsonb(value) => value.as_str().len(),
        Datum::Array(items) => row_len(items),
    }
}

/// Encoded length of a row.
pub(super) fn row_len(values: &[Datum]) -> usize {
    let total: usize = values.iter().map(value_len).sum();
    let width = match total {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let count = values.len();
    let nulls = if values.iter().any(Datum::is_null) {
        count.div_ceil(8)
    } else {
        0
    };
    1 + count_size(count).0 + nulls + count * width + total
}

#[inline]
pub(super) fn write_value(datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Timestamp(value) | Datum::Time(value) => {
            write_int(*value, out);
        }
        Datum::Date(value) => write_int(i64::from(*value), out),
        Datum::Float(value) => {
            if is_single(*value) {
                out.extend_from_slice(&(*value as f32).to_le_bytes());
            } else {
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        Datum::Decimal(value) => {
            out.push(value.scale());
            let unscaled = value.unscaled();
            out.extend_from_slice(&unscaled.to_le_bytes()[..wide_int_len(unscaled)]);
        }
        Datum::Text(value) => out.extend_from_slice(value.as_bytes()),
        Datum::Bytes(value) => out.extend_from_slice(value),
        Datum::Uuid(value) => out.extend_from_slice(value),
        Datum::Interval(value) => {
            out.extend_from_slice(&value.months.to_le_bytes());
            out.extend_from_slice(&value.days.to_le_bytes());
            out.extend_from_slice(&value.micros.to_le_bytes());
        }
        Datum::Jsonb(value) => out.extend_from_slice(value.as_str().as_bytes()),
        Datum::Array(items) => encode(items, out),
    }
}

#[inline]
fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes()[..int_len(value)]);
}

#[inline]
pub(super) fn read_int(bytes: &[u8]) -> Result<i64, CodecError> {
    Ok(match *bytes {
        [] => 0,
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return Err(CodecError::Malformed("integer column")),
    })
}

fn read_wide_int(bytes: &[u8]) -> Result<i128, CodecError> {
    let Some(last) = bytes.last() else {
        return Ok(0);
    };
    let fill = if *last >= 0x80 { 0xff } else { 0 };
    let mut wide = [fill; 16];
    let target = wide
        .get_mut(..bytes.len())
        .ok_or(CodecError::Malformed("numeric column"))?;
    target.copy_from_slice(bytes);
    Ok(i128::from_le_bytes(wide))
}

#[inline]
pub(super) fn decode_value(bytes: &[u8], ty: Type) -> Result<Datum, CodecError> {
    match ty {
        Type::Int2
        | Type::Int4
        | Type::Int8
        | Type::Oid
        | Type::Reg(_)
        | Type::Enum(_)
        | Type::Xid
        | Type::Tid => read_int(bytes).map(Datum::Int),
        _ => decode_other(bytes, ty),
    }
}

fn decode_time(bytes: &[u8]) -> Result<Datum, CodecError> {
    let micros = Some(read_int(bytes)?).filter(|micros| is_time(*micros));
    let micros = micros.ok_or(CodecError::Malformed("time column"))?;
    Ok(Datum::Time(micros))
}

fn decode_other(bytes: &[u8], ty: Type) -> Result<Datum, CodecError> {
    let malformed = CodecError::Malformed;
    Ok(match ty {
        Type::Bool => match bytes {
            [0] => Datum::Bool(false),
            [1] => Datum::Bool(true),
            _ => return Err(malformed("boolean column")),
        },
        Type::Int2
        | Type::Int4
        | Type::Int8
        | Type::Oid
        | Type::Reg(_)
        | Type::Enum(_)
        | Type::Xid
        | Type::Tid => Datum::Int(read_int(bytes)?),
        Type::Timestamp(_) | Type::Timestamptz(_) => Datum::Timestamp(read_int(bytes)?),
        Type::Time(_) => return decode_time(bytes),
        Type::Date => {
            Datum::Date(i32::try_from(read_int(bytes)?).map_err(|_| malformed("date column"))?)
        }
        Type::Float4 | Type::Float8 => {
            if let Ok(single) = bytes.try_into() {
                Datum::Float(f64::from(f32::from_le_bytes(single)))
            } else {
                let double = bytes.try_into().map_err(|_| malformed("float column"))?;
                Datum::Float(f64::from_le_bytes(double))
            }
        }
        Type::Numeric(_) => {
            let (scale, unscaled) = bytes.split_first().ok_or(TRUNCATED)?;
            let value = Decimal::from_parts(read_wide_int(unscaled)?, *scale);
            Datum::Decimal(value.ok_or(malformed("numeric column"))?)
        }
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::Unknown => {
            let text = core::str::from_utf8(bytes).map_err(|_| malformed("text column"))?;
            Datum::Text(text.into())
        }
        Type::Jsonb => {
            let text = core::str::from_utf8(bytes).map_err(|_| malformed("jsonb column"))?;
            Datum::Jsonb(Jsonb::from_normal(text))
        }
        Type::Bytea => Datum::Bytes(bytes.into()),
        Type::Uuid => Datum::Uuid(bytes.try_into().map_err(|_| malformed("uuid column"))?),
        Type::Interval => {
            let (months, rest) = bytes.split_first_chunk::<4>().ok_or(TRUNCATED)?;
            let (days, rest) = rest.split_first_chunk::<4>().ok_or(TRUNCATED)?;
            let micros = rest.try_into().map_err(|_| malformed("interval column"))?;
            Datum::Interval(Interval {
                months: i32::from_le_bytes(*months),
                days: i32::from_le_bytes(*days),
                micros: i64::from_le_bytes(micros),
            })
        }
        Type::Array(kind) => {
            let row = RowRef::new(bytes);
            row.validate()?;
            let items: Result<Vec<Datum>, CodecError> = (0..row.count())
                .map(|i| row.col(i, kind.element()))
                .collect();
            Datum::Array(items?.into_boxed_slice())
        }
    })
}
