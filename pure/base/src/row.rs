//! Rows as compact bytes, columns decoded when needed.
//!
//! ```text
//! +-------+---------------+------------------+------------------------+------+
//! | flags | columns u8/16 | NULL bits (opt.) | end of each column     | data |
//! |  u8   | (bit 2: wide) | (bit 3: present) | u8/u16/u32 (bits 0..1) |      |
//! +-------+---------------+------------------+------------------------+------+
//! ```
//!
//! The end of a column counts from the start of the data; a column starts where the one before
//! ends, so reading any column takes the same short time. The bytes of a value do not tell its
//! type; the table does. All numbers are little-endian.
//!
//! | value | bytes |
//! |---|---|
//! | integer, date, timestamp | two's complement in 0 (zero), 1, 2, 4 or 8 bytes |
//! | boolean | 1 |
//! | float | 4 if exact in single precision, else 8 |
//! | numeric | scale, then the unscaled number in as few bytes as possible |
//! | text, bytea, uuid | themselves |
//! | interval | 16: months, days, microseconds |
//! | array | a row of its elements |
//!
//! A row may have fewer columns than its table: those added later by ALTER TABLE read as NULL
//! ([`RowRef::count`] tells them apart). The encoding is canonical: equal values (of equal scale)
//! give equal bytes, so rows can be compared and digested as bytes.

use crate::codec::CodecError;
use crate::datum::{Datum, Interval, Type};
use crate::decimal::Decimal;
use alloc::vec::Vec;

const WIDTH_BITS: u8 = 0b11;
const WIDE_COUNT: u8 = 0b100;
const HAS_NULLS: u8 = 0b1000;

const TRUNCATED: CodecError = CodecError::Truncated;

/// Appends the encoding of a row. At most 65,535 columns and 4 GiB; the limits of
/// [`crate::limits`] are far below and checked by the caller.
pub fn encode(values: &[Datum], out: &mut Vec<u8>) {
    write_row(values.len(), |i| Column::Value(&values[i]), out);
}

/// The encoding of a row in a vector of its own.
pub fn to_vec(values: &[Datum]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(values, &mut out);
    out
}

/// What goes into a column of a new row.
enum Column<'a> {
    Value(&'a Datum),
    /// The encoded bytes of an existing column.
    Raw(&'a [u8]),
    Null,
}

impl Column<'_> {
    /// Encoded length in bytes; `None` for NULL.
    #[inline]
    fn len(&self) -> Option<usize> {
        match self {
            Column::Value(Datum::Null) | Column::Null => None,
            Column::Value(datum) => Some(value_len(datum)),
            Column::Raw(bytes) => Some(bytes.len()),
        }
    }
}

/// Writes a row whose column `i` is `column(i)`; it is asked three times for each.
#[inline]
fn write_row<'a>(count: usize, column: impl Fn(usize) -> Column<'a>, out: &mut Vec<u8>) {
    assert!(
        count <= usize::from(u16::MAX),
        "tables have at most 1,600 columns"
    );
    let (mut total, mut has_nulls) = (0, false);
    for i in 0..count {
        match column(i).len() {
            Some(len) => total += len,
            None => has_nulls = true,
        }
    }
    let width: usize = match total {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let wide = count > 0xff;
    let null_bytes = if has_nulls { count.div_ceil(8) } else { 0 };
    out.reserve(3 + null_bytes + count * width + total);
    let mut flags = (width / 2) as u8;
    flags |= if wide { WIDE_COUNT } else { 0 };
    flags |= if has_nulls { HAS_NULLS } else { 0 };
    out.push(flags);
    out.push(count as u8);
    if wide {
        out.push((count >> 8) as u8);
    }
    let nulls = out.len();
    out.resize(nulls + null_bytes, 0);
    let mut end = 0;
    for i in 0..count {
        match column(i).len() {
            Some(len) => end += len,
            None => out[nulls + i / 8] |= 1 << (i % 8),
        }
        let end = u32::try_from(end).expect("rows are limited to a few megabytes");
        match width {
            1 => out.push(end as u8),
            2 => out.extend_from_slice(&(end as u16).to_le_bytes()),
            _ => out.extend_from_slice(&end.to_le_bytes()),
        }
    }
    for i in 0..count {
        match column(i) {
            Column::Value(datum) => write_value(datum, out),
            Column::Raw(bytes) => out.extend_from_slice(bytes),
            Column::Null => {}
        }
    }
}

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

fn value_len(datum: &Datum) -> usize {
    match datum {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Int(value) | Datum::Timestamp(value) => int_len(*value),
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
        Datum::Array(items) => row_len(items),
    }
}

/// Encoded length of a row.
fn row_len(values: &[Datum]) -> usize {
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
    2 + usize::from(count > 0xff) + nulls + count * width + total
}

#[inline]
fn write_value(datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Timestamp(value) => write_int(*value, out),
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
        Datum::Array(items) => encode(items, out),
    }
}

#[inline]
fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_le_bytes()[..int_len(value)]);
}

/// A view of an encoded row.
///
/// Making one reads only the header. Corrupt bytes give errors when columns are read, never a
/// panic and never a silent NULL.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    bytes: &'a [u8],
    count: usize,
    /// Bytes per end, 1, 2 or 4; 0 if the header is corrupt.
    width: u8,
    has_nulls: bool,
    /// Start of the ends.
    ends: usize,
    /// Start of the data.
    data: usize,
}

impl<'a> RowRef<'a> {
    /// The row that `bytes` encodes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> RowRef<'a> {
        let corrupt = RowRef {
            bytes,
            count: 0,
            width: 0,
            has_nulls: false,
            ends: 0,
            data: 0,
        };
        let [flags, low, ..] = *bytes else {
            return corrupt;
        };
        let (mut count, mut at) = (usize::from(low), 2);
        if flags & WIDE_COUNT != 0 {
            let Some(high) = bytes.get(2) else {
                return corrupt;
            };
            count |= usize::from(*high) << 8;
            at = 3;
        }
        let width = 1u8 << (flags & WIDTH_BITS);
        let has_nulls = flags & HAS_NULLS != 0;
        let ends = at + if has_nulls { count.div_ceil(8) } else { 0 };
        let data = ends + count * usize::from(width);
        let known = WIDTH_BITS | WIDE_COUNT | HAS_NULLS;
        if flags & !known != 0 || width > 4 || data > bytes.len() {
            return corrupt;
        }
        RowRef {
            bytes,
            count,
            width,
            has_nulls,
            ends,
            data,
        }
    }

    /// Number of columns that the row has; later ones read as NULL. 0 if the header is corrupt.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The encoded row.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// End of column `i` from the start of the data.
    #[inline]
    fn end(&self, i: usize) -> usize {
        let at = self.ends + i * usize::from(self.width);
        let bytes = self.bytes;
        match self.width {
            1 => usize::from(bytes[at]),
            2 => usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])),
            _ => u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
                as usize,
        }
    }

    /// The encoded bytes of column `i`; `None` if it is NULL or the row has fewer columns.
    ///
    /// For text, bytea and uuid these are the value itself.
    #[inline]
    pub fn raw(&self, i: usize) -> Result<Option<&'a [u8]>, CodecError> {
        if i >= self.count {
            return if self.width == 0 {
                Err(CodecError::Malformed("row header"))
            } else {
                Ok(None)
            };
        }
        if self.has_nulls {
            let nulls = self.ends - self.count.div_ceil(8);
            if self.bytes[nulls + i / 8] >> (i % 8) & 1 == 1 {
                return Ok(None);
            }
        }
        let start = if i == 0 { 0 } else { self.end(i - 1) };
        let data = &self.bytes[self.data..];
        match data.get(start..self.end(i)) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(TRUNCATED),
        }
    }

    /// Whether column `i` is NULL or beyond the end of the row (also if the row is corrupt).
    #[inline]
    pub fn is_null(&self, i: usize) -> bool {
        !matches!(self.raw(i), Ok(Some(_)))
    }

    /// Column `i`, which has type `ty`; only its bytes are looked at.
    #[inline]
    pub fn col(&self, i: usize, ty: Type) -> Result<Datum, CodecError> {
        match self.raw(i)? {
            None => Ok(Datum::Null),
            Some(bytes) => decode_value(bytes, ty),
        }
    }

    /// Column `i` if it is an integer, date or timestamp, without its type. `None` if it is NULL,
    /// missing or has no such length.
    #[inline]
    pub fn col_int(&self, i: usize) -> Option<i64> {
        read_int(self.raw(i).ok()??).ok()
    }

    /// The encoded bytes of column `i`, which are the value of text, bytea and uuid columns.
    /// `None` if it is NULL, missing or corrupt.
    #[inline]
    pub fn col_bytes(&self, i: usize) -> Option<&'a [u8]> {
        self.raw(i).ok()?
    }

    /// Column `i` if it is text. `None` if it is NULL, missing or corrupt.
    #[inline]
    pub fn col_str(&self, i: usize) -> Option<&'a str> {
        core::str::from_utf8(self.col_bytes(i)?).ok()
    }

    /// Every column of a table with these column types.
    pub fn decode(&self, types: &[Type]) -> Result<Vec<Datum>, CodecError> {
        types
            .iter()
            .enumerate()
            .map(|(i, ty)| self.col(i, *ty))
            .collect()
    }

    /// Appends the row with column `i` changed to `value`. Other columns are copied, not decoded;
    /// missing ones before `i` become NULL.
    pub fn replace(&self, i: usize, value: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.replace_with(i + 1, |j| (j == i).then_some(value), out)
    }

    /// As [`RowRef::replace`] for several columns; of two changes of one column the last counts.
    pub fn replace_columns(
        &self,
        changes: &[(usize, Datum)],
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let width = changes.iter().map(|(i, _)| i + 1).max().unwrap_or(0);
        let change = |j| {
            changes
                .iter()
                .rev()
                .find(|(i, _)| *i == j)
                .map(|(_, value)| value)
        };
        self.replace_with(width, change, out)
    }

    fn replace_with<'v>(
        &self,
        width: usize,
        change: impl Fn(usize) -> Option<&'v Datum>,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        self.validate()?;
        // The bounds of every column were checked just now, so `raw` cannot fail.
        let column = |j| match (change(j), self.raw(j)) {
            (Some(value), _) => Column::Value(value),
            (None, Ok(Some(bytes))) => Column::Raw(bytes),
            (None, _) => Column::Null,
        };
        write_row(self.count.max(width), column, out);
        Ok(())
    }

    /// Whether the header and all ends fit together and fill the bytes exactly.
    pub fn validate(&self) -> Result<(), CodecError> {
        if self.width == 0 {
            return Err(CodecError::Malformed("row header"));
        }
        let mut last = 0;
        for i in 0..self.count {
            let end = self.end(i);
            if end < last {
                return Err(CodecError::Malformed("row column end"));
            }
            last = end;
        }
        let len = self.bytes.len() - self.data;
        match len.cmp(&last) {
            core::cmp::Ordering::Less => Err(TRUNCATED),
            core::cmp::Ordering::Equal => Ok(()),
            core::cmp::Ordering::Greater => Err(CodecError::Trailing(len - last)),
        }
    }
}

#[inline]
fn read_int(bytes: &[u8]) -> Result<i64, CodecError> {
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
fn decode_value(bytes: &[u8], ty: Type) -> Result<Datum, CodecError> {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => read_int(bytes).map(Datum::Int),
        _ => decode_other(bytes, ty),
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
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid => Datum::Int(read_int(bytes)?),
        Type::Timestamp | Type::Timestamptz => Datum::Timestamp(read_int(bytes)?),
        Type::Date => {
            let days = i32::try_from(read_int(bytes)?);
            Datum::Date(days.map_err(|_| malformed("date column"))?)
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
        | Type::Unknown => {
            let text = core::str::from_utf8(bytes).map_err(|_| malformed("text column"))?;
            Datum::Text(text.into())
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

#[cfg(test)]
mod tests;
