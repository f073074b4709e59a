//! Rows as compact bytes, columns decoded when needed.
//!
//! ```text
//! +-------+---------------+------------------+------------------------+------+
//! | flags | columns       | NULL bits (opt.) | end of each column     | data |
//! |  u8   | u8/16/32      | (bit 3: present) | u8/u16/u32 (bits 0..1) |      |
//! +-------+---------------+------------------+------------------------+------+
//! ```
//!
//! The number of columns has 16 bits with bit 2, and 32 with bit 4, which only long arrays need.
//! The end of a column counts from the start of the data; a column starts where the one before
//! ends, so reading any column takes the same short time. The bytes of a value do not tell its
//! type; the table does. All numbers are little-endian.
//!
//! | value | bytes |
//! |---|---|
//! | integer, date, time, timestamp | two's complement in 0 (zero), 1, 2, 4 or 8 bytes |
//! | boolean | 1 |
//! | float | 4 if exact in single precision, else 8 |
//! | numeric | scale, then the unscaled number in as few bytes as possible |
//! | other numerics | a tag of f0 and more, scale (u16), limbs of eight digits (u32 each) |
//! | text, json, bytea, uuid | themselves |
//! | jsonb | its normal form ([`json::normalise`]) |
//! | interval | 16: months, days, microseconds |
//! | range | bits as they go over the wire; if it is not empty, a row of its bounds |
//! | multirange | each range behind its length (u32) |
//! | array | a row of its elements |
//! | array of another shape | 80 + dimensions, length and lower bound of each (i32), that row |
//!
//! A row may have fewer columns than its table: those added later by ALTER TABLE read as NULL
//! ([`RowRef::count`] tells them apart). The encoding is canonical: equal values (of equal scale)
//! give equal bytes, so rows can be compared and digested as bytes.

mod values;
mod view;

pub use view::RowRef;

use crate::codec::CodecError;
use crate::datum::Datum;
use alloc::vec::Vec;
pub(crate) use values::row_len;
pub use values::value_len;
use values::write_value;

const WIDTH_BITS: u8 = 0b11;
const WIDE_COUNT: u8 = 0b100;
const HAS_NULLS: u8 = 0b1000;
const LONG_COUNT: u8 = 0b1_0000;

const TRUNCATED: CodecError = CodecError::Truncated;

/// Appends the encoding of a row. At most 4 GiB; the limits of [`crate::limits`] are far below and
/// checked by the caller.
pub fn encode(values: &[Datum], out: &mut Vec<u8>) {
    write_row(values.len(), |i| Column::Value(&values[i]), out);
}

/// As [`encode`], of `count` columns whose values `value` gives; it may be asked several times.
pub fn encode_with<'a>(count: usize, value: impl Fn(usize) -> &'a Datum, out: &mut Vec<u8>) {
    write_row(count, |i| Column::Value(value(i)), out);
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

/// Bytes of each end offset of a row with `total` bytes of data.
#[inline]
fn offset_width(total: usize) -> usize {
    match total {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Appends the end of a column.
#[inline]
fn put_end(width: usize, end: usize, out: &mut Vec<u8>) {
    match width {
        1 => out.push(end as u8),
        2 => out.extend_from_slice(&(end as u16).to_le_bytes()),
        _ => {
            let end = u32::try_from(end).expect("rows are limited to a few megabytes");
            out.extend_from_slice(&end.to_le_bytes());
        }
    }
}

/// Bytes of the number of columns, and the flag that tells it.
#[inline]
fn count_size(count: usize) -> (usize, u8) {
    match count {
        0..=0xff => (1, 0),
        0x100..=0xffff => (2, WIDE_COUNT),
        _ => (4, LONG_COUNT),
    }
}

/// Columns whose lengths are remembered between the passes of [`write_row`].
const REMEMBERED: usize = 64;
/// The remembered length of NULL.
const NULL_LEN: u32 = u32::MAX;

/// Writes a row whose column `i` is `column(i)`; it is asked up to three times for each.
#[inline]
fn write_row<'a>(count: usize, column: impl Fn(usize) -> Column<'a>, out: &mut Vec<u8>) {
    let mut lens = [0u32; REMEMBERED];
    let (mut total, mut has_nulls) = (0, false);
    for i in 0..count {
        let len = column(i).len();
        total += len.unwrap_or(0);
        has_nulls |= len.is_none();
        if let Some(slot) = lens.get_mut(i) {
            *slot = len.map_or(NULL_LEN, |len| len as u32);
        }
    }
    let width = offset_width(total);
    let null_bytes = if has_nulls { count.div_ceil(8) } else { 0 };
    let (count_bytes, count_flag) = count_size(count);
    out.reserve(1 + count_bytes + null_bytes + count * width + total);
    let mut flags = (width / 2) as u8;
    flags |= count_flag;
    flags |= if has_nulls { HAS_NULLS } else { 0 };
    out.push(flags);
    out.extend_from_slice(&(count as u32).to_le_bytes()[..count_bytes]);
    let nulls = out.len();
    out.resize(nulls + null_bytes, 0);
    let mut end = 0;
    for i in 0..count {
        let len = match lens.get(i) {
            Some(&NULL_LEN) => None,
            Some(len) => Some(*len as usize),
            None => column(i).len(),
        };
        match len {
            Some(len) => end += len,
            None => out[nulls + i / 8] |= 1 << (i % 8),
        }
        put_end(width, end, out);
    }
    for i in 0..count {
        match column(i) {
            Column::Value(datum) => write_value(datum, out),
            Column::Raw(bytes) => out.extend_from_slice(bytes),
            Column::Null => {}
        }
    }
}

#[cfg(test)]
mod tests;
