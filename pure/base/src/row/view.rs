//! The view through which rows are read and changed.

use super::values::{decode_value, read_int, value_len, write_value};
use super::{
    Column, HAS_NULLS, LONG_COUNT, TRUNCATED, WIDE_COUNT, WIDTH_BITS, offset_width, put_end,
    write_row,
};
use crate::codec::CodecError;
use crate::datum::{Datum, Type};
use alloc::vec::Vec;

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
        if flags & (WIDE_COUNT | LONG_COUNT) != 0 {
            at = if flags & LONG_COUNT != 0 { 5 } else { 3 };
            let Some(high) = bytes.get(2..at) else {
                return corrupt;
            };
            let places = high.iter().zip([8, 16, 24]);
            count |= places.fold(0, |sum, (byte, shift)| sum | usize::from(*byte) << shift);
        }
        let width = 1u8 << (flags & WIDTH_BITS);
        let has_nulls = flags & HAS_NULLS != 0;
        let ends = at + if has_nulls { count.div_ceil(8) } else { 0 };
        let data = ends + count * usize::from(width);
        let known = WIDTH_BITS | WIDE_COUNT | HAS_NULLS | LONG_COUNT;
        let counts = flags & (WIDE_COUNT | LONG_COUNT);
        let is_known = flags & !known == 0 && counts != WIDE_COUNT | LONG_COUNT;
        if !is_known || width > 4 || data > bytes.len() {
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
        if let Some(total) = self.patched_len(width, &change) {
            self.patch(total, change, out);
            return Ok(());
        }
        // The bounds of every column were checked just now, so `raw` cannot fail.
        let column = |j| match (change(j), self.raw(j)) {
            (Some(value), _) => Column::Value(value),
            (None, Ok(Some(bytes))) => Column::Raw(bytes),
            (None, _) => Column::Null,
        };
        write_row(self.count.max(width), column, out);
        Ok(())
    }

    /// Start and end of column `i` in the data.
    #[inline]
    fn span(&self, i: usize) -> (usize, usize) {
        (if i == 0 { 0 } else { self.end(i - 1) }, self.end(i))
    }

    /// Length of the data after the changes, if the header keeps its form: no column is added, no
    /// NULL comes or goes, and the ends need as many bytes as before.
    fn patched_len<'v>(
        &self,
        width: usize,
        change: impl Fn(usize) -> Option<&'v Datum>,
    ) -> Option<usize> {
        let mut total = self.bytes.len() - self.data;
        if width > self.count {
            return None;
        }
        for j in 0..width {
            let Some(value) = change(j) else { continue };
            if value.is_null() || self.is_null(j) {
                return None;
            }
            let (start, end) = self.span(j);
            total = total - (end - start) + value_len(value);
        }
        (offset_width(total) == usize::from(self.width)).then_some(total)
    }

    /// Writes the row with its header copied and its ends shifted; the row is valid and
    /// [`RowRef::patched_len`] gave `total`.
    fn patch<'v>(
        &self,
        total: usize,
        change: impl Fn(usize) -> Option<&'v Datum>,
        out: &mut Vec<u8>,
    ) {
        out.reserve(self.data + total);
        out.extend_from_slice(&self.bytes[..self.ends]);
        let (mut old, mut new) = (0, 0);
        for j in 0..self.count {
            let end = self.end(j);
            new += change(j).map_or(end - old, value_len);
            old = end;
            put_end(usize::from(self.width), new, out);
        }
        let data = &self.bytes[self.data..];
        let mut copied = 0;
        for j in 0..self.count {
            if let Some(value) = change(j) {
                let (start, end) = self.span(j);
                out.extend_from_slice(&data[copied..start]);
                write_value(value, out);
                copied = end;
            }
        }
        out.extend_from_slice(&data[copied..]);
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
