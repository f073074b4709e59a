//! Many new rows of one index in one buffer.
//!
//! ```text
//! +----------+----------------+---------------+-----+-----+
//! | slot u16 | key length u16 | row length u32| key | row |  for each row; little-endian
//! +----------+----------------+---------------+-----+-----+
//! ```
//!
//! The rows ascend by slot and key; a key may come twice. So a shard can deal with the rows of a
//! slot together.

use alloc::vec::Vec;
use base::codec::CodecError;
use base::{IndexId, SLOT_COUNT, Slot};
use serde::{Deserialize, Serialize};

const HEADER_BYTES: usize = 8;

/// One row of [`NewRows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewRow<'a> {
    /// Bucket.
    pub slot: Slot,
    /// Encoded key.
    pub key: &'a [u8],
    /// Encoded columns.
    pub row: &'a [u8],
}

/// New rows of one index, ascending by slot and key.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct NewRows {
    index: IndexId,
    count: u32,
    #[serde(with = "base::bytes")]
    bytes: Vec<u8>,
}

/// Encoded rows that were not checked yet.
#[derive(Deserialize)]
struct Parts {
    index: IndexId,
    count: u32,
    #[serde(with = "base::bytes")]
    bytes: Vec<u8>,
}

impl TryFrom<Parts> for NewRows {
    type Error = CodecError;

    fn try_from(parts: Parts) -> Result<NewRows, CodecError> {
        let Parts {
            index,
            count,
            bytes,
        } = parts;
        let rows = NewRows {
            index,
            count,
            bytes,
        };
        match rows.is_sound() {
            true => Ok(rows),
            false => Err(CodecError::Malformed("batch of rows")),
        }
    }
}

impl NewRows {
    /// Without rows; `size_bytes` bytes are reserved.
    pub fn new(index: IndexId, size_bytes: usize) -> NewRows {
        NewRows {
            index,
            count: 0,
            bytes: Vec::with_capacity(size_bytes),
        }
    }

    /// Adds a row at the end. `encode` appends its columns.
    ///
    /// Panics if the key is longer than [`base::limits::KEY_BYTES_MAX`] or does not come behind the
    /// others, or if the row does not fit into 32 bits of length.
    pub fn push(&mut self, slot: Slot, key: &[u8], encode: impl FnOnce(&mut Vec<u8>)) {
        assert!(slot.0 < SLOT_COUNT, "{slot:?} is a slot");
        let key_len = u16::try_from(key.len()).expect("keys are limited to a few kilobytes");
        self.bytes.extend_from_slice(&slot.0.to_le_bytes());
        self.bytes.extend_from_slice(&key_len.to_le_bytes());
        let length_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.extend_from_slice(key);
        let row_at = self.bytes.len();
        encode(&mut self.bytes);
        let row_len = u32::try_from(self.bytes.len() - row_at);
        let row_len = row_len.expect("rows are limited to a few megabytes");
        self.bytes[length_at..length_at + 4].copy_from_slice(&row_len.to_le_bytes());
        self.count += 1;
    }

    /// Key space.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of all rows, keys and headers.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The rows behind the first `at` bytes: 0, or [`Rows::at`] of an iterator.
    pub fn from(&self, at: usize) -> Rows<'_> {
        Rows {
            bytes: &self.bytes,
            at,
        }
    }

    /// All rows.
    pub fn iter(&self) -> Rows<'_> {
        self.from(0)
    }

    /// Whether the bytes are as their layout says, and in order.
    fn is_sound(&self) -> bool {
        let (mut at, mut count) = (0, 0u32);
        let mut before: Option<(Slot, &[u8])> = None;
        while at < self.bytes.len() {
            let Some((row, end)) = parse(&self.bytes, at) else {
                return false;
            };
            let place = (row.slot, row.key);
            let ascends = before.is_none_or(|before| before <= place);
            if !ascends || row.slot.0 >= SLOT_COUNT || count == u32::MAX {
                return false;
            }
            before = Some(place);
            count += 1;
            at = end;
        }
        count == self.count
    }
}

/// The row at `at`, and where the next one begins.
#[inline]
fn parse(bytes: &[u8], at: usize) -> Option<(NewRow<'_>, usize)> {
    let header = bytes.get(at..)?.first_chunk::<HEADER_BYTES>()?;
    let [s0, s1, k0, k1, r0, r1, r2, r3] = *header;
    let key_at = at + HEADER_BYTES;
    let row_at = key_at + usize::from(u16::from_le_bytes([k0, k1]));
    let end = row_at.checked_add(u32::from_le_bytes([r0, r1, r2, r3]) as usize)?;
    let row = NewRow {
        slot: Slot(u16::from_le_bytes([s0, s1])),
        key: bytes.get(key_at..row_at)?,
        row: bytes.get(row_at..end)?,
    };
    Some((row, end))
}

/// Iterates over rows.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rows<'_> {
    /// Bytes of all rows that were returned.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = NewRow<'a>;

    #[inline]
    fn next(&mut self) -> Option<NewRow<'a>> {
        if self.at == self.bytes.len() {
            return None;
        }
        let (row, end) = parse(self.bytes, self.at).expect("rows are checked when they arrive");
        self.at = end;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_rows() -> NewRows {
        let mut rows = NewRows::new(IndexId(7), 0);
        rows.push(Slot(1), b"a", |out| out.extend_from_slice(b"first"));
        rows.push(Slot(1), b"b", |_| {});
        rows.push(Slot(1), b"b", |out| out.push(9));
        rows.push(Slot(1023), b"", |out| out.extend_from_slice(&[0; 300]));
        rows
    }

    #[test]
    fn rows_come_out_as_they_went_in() {
        let rows = some_rows();
        assert_eq!((rows.len(), rows.index()), (4, IndexId(7)));
        let all: Vec<_> = rows
            .iter()
            .map(|row| (row.slot.0, row.key, row.row.len()))
            .collect();
        let expected: [(u16, &[u8], usize); 4] =
            [(1, b"a", 5), (1, b"b", 0), (1, b"b", 1), (1023, b"", 300)];
        assert_eq!(all, expected);
        let mut iter = rows.iter();
        iter.next();
        assert_eq!(rows.from(iter.at()).count(), 3);
        let mut encoded = Vec::new();
        base::codec::encode(&rows, &mut encoded);
        assert_eq!(base::codec::decode::<NewRows>(&encoded), Ok(rows));
    }

    /// Nodes of one release talk to those of the next: the layout is part of the protocol.
    #[test]
    fn the_encoding_is_fixed() {
        let mut rows = NewRows::new(IndexId(7), 0);
        rows.push(Slot(258), b"k", |out| out.extend_from_slice(b"row"));
        let expected = [
            7, 1, 12, // index, rows, bytes
            2, 1, 1, 0, 3, 0, 0, 0, // slot, length of the key, length of the row
            b'k', b'r', b'o', b'w',
        ];
        assert_eq!(base::codec::to_vec(&rows), expected);
    }

    #[test]
    fn bytes_that_are_no_rows_are_refused() {
        let rows = some_rows();
        let refused = |change: &dyn Fn(&mut NewRows)| {
            let mut changed = rows.clone();
            change(&mut changed);
            let mut encoded = Vec::new();
            base::codec::encode(&changed, &mut encoded);
            assert!(
                base::codec::decode::<NewRows>(&encoded).is_err(),
                "{changed:?}"
            );
        };
        refused(&|rows| rows.count += 1);
        refused(&|rows| rows.bytes.truncate(20));
        // The slot of the first row: behind the others, and none at all.
        refused(&|rows| rows.bytes[0] = 2);
        refused(&|rows| rows.bytes[1] = 4);
        // The length of its row.
        refused(&|rows| rows.bytes[7] = 0xff);
        let last = rows.bytes.len() - 308;
        refused(&|rows| rows.bytes[last + 1] = 0xff);
    }
}
