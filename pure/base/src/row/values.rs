//! Encoding of single values inside a row.

use super::{RowRef, TRUNCATED, count_size, encode};
use crate::bits::Bits;
use crate::calendar::is_time;
use crate::codec::CodecError;
use crate::datum::{Datum, Interval, Timetz, Type};
use crate::decimal::Decimal;
use crate::grid::{DIMENSIONS_MAX, Dimension, Grid};
use crate::inet::Inet;
use crate::jsonb::Jsonb;
use crate::numeric;
use crate::range::{Multirange, Range};
use crate::record::Record;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// First byte of an array with a shape, beside its number of dimensions. No row begins so.
const GRID: u8 = 0x80;

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
        Datum::Inet(value) => value.encoded_len(),
        Datum::Mac(_) => 6,
        Datum::Timetz(_) => 12,
        Datum::Bits(value) => value.encoded().len(),
        Datum::Jsonb(value) => value.as_str().len(),
        Datum::Array(items) => row_len(items),
        Datum::Record(value) => value.encoded_len(),
        Datum::Range(value) => value.encoded_len(),
        Datum::Multirange(value) => value.encoded_len(),
        Datum::Large(value) => numeric::encoded_len(value),
        Datum::Grid(grid) => 1 + 8 * grid.shape().dimensions().len() + row_len(grid.items()),
    }
}

/// Encoded length of a row.
pub(crate) fn row_len(values: &[Datum]) -> usize {
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
        Datum::Inet(value) => value.write(out),
        Datum::Mac(value) => out.extend_from_slice(value),
        Datum::Timetz(value) => {
            out.extend_from_slice(&value.micros.to_le_bytes());
            out.extend_from_slice(&value.west.to_le_bytes());
        }
        Datum::Bits(value) => out.extend_from_slice(value.encoded()),
        Datum::Interval(value) => {
            out.extend_from_slice(&value.months.to_le_bytes());
            out.extend_from_slice(&value.days.to_le_bytes());
            out.extend_from_slice(&value.micros.to_le_bytes());
        }
        Datum::Jsonb(value) => out.extend_from_slice(value.as_str().as_bytes()),
        Datum::Large(value) => numeric::write(value, out),
        Datum::Array(items) => encode(items, out),
        Datum::Record(value) => value.encode(out),
        Datum::Range(value) => value.encode(out),
        Datum::Multirange(value) => value.encode(out),
        Datum::Grid(grid) => {
            let shape = grid.shape();
            out.push(GRID | shape.dimensions().len() as u8);
            for one in shape.dimensions() {
                out.extend_from_slice(&one.length.to_le_bytes());
                out.extend_from_slice(&one.lower.to_le_bytes());
            }
            encode(grid.items(), out);
        }
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

fn decode_timetz(bytes: &[u8]) -> Result<Datum, CodecError> {
    let (micros, west) = bytes.split_first_chunk::<8>().ok_or(TRUNCATED)?;
    let malformed = CodecError::Malformed("time column");
    let west = i32::from_le_bytes(west.try_into().map_err(|_| malformed)?);
    let value = Timetz::new(i64::from_le_bytes(*micros), west);
    value.map(Datum::Timetz).ok_or(malformed)
}

fn decode_bits(bytes: &[u8]) -> Result<Datum, CodecError> {
    let value = Bits::decode(bytes).map(Datum::Bits);
    value.ok_or(CodecError::Malformed("bit string column"))
}

fn decode_numeric(bytes: &[u8]) -> Result<Datum, CodecError> {
    let (scale, unscaled) = bytes.split_first().ok_or(TRUNCATED)?;
    if *scale >= numeric::TAG_LEAST {
        return Ok(Datum::Large(Box::new(numeric::decode(bytes)?)));
    }
    let value = Decimal::from_parts(read_wide_int(unscaled)?, *scale);
    let value = value.ok_or(CodecError::Malformed("numeric column"))?;
    Ok(Datum::Decimal(value))
}

fn decode_address(bytes: &[u8], ty: Type) -> Result<Datum, CodecError> {
    let found = match ty {
        Type::Macaddr => bytes.try_into().ok().map(Datum::Mac),
        _ => Inet::decode(bytes).map(Datum::Inet),
    };
    found.ok_or(CodecError::Malformed("address column"))
}

fn decode_ranges(bytes: &[u8], ty: Type) -> Result<Datum, CodecError> {
    match ty {
        Type::Range(kind) => Ok(Range::decode(bytes, kind)?.into()),
        Type::Multirange(kind) => Ok(Multirange::decode(bytes, kind)?.into()),
        _ => Err(CodecError::Malformed("range column")),
    }
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
        Type::Timetz(_) => return decode_timetz(bytes),
        Type::Bit(_) | Type::Varbit(_) => return decode_bits(bytes),
        Type::Composite(_) => Datum::Record(Box::new(Record::decode(bytes)?)),
        Type::Range(_) | Type::Multirange(_) => return decode_ranges(bytes, ty),
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
        Type::Numeric(_) => return decode_numeric(bytes),
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::JsonPath
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
        Type::Inet | Type::Cidr | Type::Macaddr => return decode_address(bytes, ty),
        Type::Interval(_) => {
            let (months, rest) = bytes.split_first_chunk::<4>().ok_or(TRUNCATED)?;
            let (days, rest) = rest.split_first_chunk::<4>().ok_or(TRUNCATED)?;
            let micros = rest.try_into().map_err(|_| malformed("interval column"))?;
            Datum::Interval(Interval {
                months: i32::from_le_bytes(*months),
                days: i32::from_le_bytes(*days),
                micros: i64::from_le_bytes(micros),
            })
        }
        Type::Array(kind) => match bytes.split_first() {
            Some((flags, rest)) if flags & GRID != 0 => {
                decode_grid(usize::from(flags & !GRID), rest, kind.element())?
            }
            _ => Datum::Array(decode_items(bytes, kind.element())?.into_boxed_slice()),
        },
    })
}

fn decode_items(bytes: &[u8], element: Type) -> Result<Vec<Datum>, CodecError> {
    let row = RowRef::new(bytes);
    row.validate()?;
    (0..row.count()).map(|i| row.col(i, element)).collect()
}

/// The shape, of `count` dimensions, and the elements of an array.
fn decode_grid(count: usize, bytes: &[u8], element: Type) -> Result<Datum, CodecError> {
    let malformed = CodecError::Malformed("shape of an array");
    let mut dimensions = [Dimension::default(); DIMENSIONS_MAX];
    let dimensions = dimensions.get_mut(..count).ok_or(malformed)?;
    let mut rest = bytes;
    for one in dimensions.iter_mut() {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or(TRUNCATED)?;
        let (lower, behind) = behind.split_first_chunk::<4>().ok_or(TRUNCATED)?;
        *one = Dimension {
            length: i32::from_le_bytes(*length),
            lower: i32::from_le_bytes(*lower),
        };
        rest = behind;
    }
    let grid = Grid::checked(dimensions, decode_items(rest, element)?).ok_or(malformed)?;
    Ok(Datum::Grid(Box::new(grid)))
}
