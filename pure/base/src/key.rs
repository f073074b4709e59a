//! Row keys and their order-preserving encoding.
//!
//! Order inside a key space is (index, slot, encoded columns). A key interval never crosses a slot.
//! The encoding of the columns themselves is in `datums`.

mod datums;

pub use datums::{decode_datum, encode_datum};

use crate::ids::IndexId;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// Number of hash buckets of partition keys in every database.
pub const SLOT_COUNT: u16 = 1024;

/// A hash bucket of partition keys: 0 to [`SLOT_COUNT`] - 1.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug, Default,
)]
pub struct Slot(pub u16);

/// The full key of one row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Key space.
    pub index: IndexId,
    /// Bucket of the partition key.
    pub slot: Slot,
    /// Order-preserving encoding of the key columns.
    #[serde(with = "crate::bytes")]
    pub bytes: Vec<u8>,
}

impl Key {
    /// The key with these parts.
    pub fn new(index: IndexId, slot: Slot, bytes: Vec<u8>) -> Key {
        Key { index, slot, bytes }
    }
}

/// A [`Key`] whose bytes lie elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRef<'a> {
    /// Key space.
    pub index: IndexId,
    /// Bucket of the partition key.
    pub slot: Slot,
    /// Order-preserving encoding of the key columns.
    pub bytes: &'a [u8],
}

impl<'a> KeyRef<'a> {
    /// The key with these parts.
    #[inline]
    pub fn new(index: IndexId, slot: Slot, bytes: &'a [u8]) -> KeyRef<'a> {
        KeyRef { index, slot, bytes }
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    #[inline]
    fn from(key: &'a Key) -> KeyRef<'a> {
        KeyRef::new(key.index, key.slot, &key.bytes)
    }
}

/// The slot of a row, from the ascending encoding of its partition columns ([`encode_datum`]).
///
/// This function is part of the on-disk format: a different hash would look for rows in other
/// slots than they are in. Cost: a few instructions per eight bytes; allocates nothing.
pub fn slot_of(partition: &[u8]) -> Slot {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = partition.len() as u64;
    let (chunks, rest) = partition.as_chunks::<8>();
    let mut tail = [0u8; 8];
    tail[..rest.len()].copy_from_slice(rest);
    for chunk in chunks.iter().chain([&tail]) {
        state = (state ^ u64::from_le_bytes(*chunk)).wrapping_mul(MULTIPLIER);
        state ^= state >> 29;
    }
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    Slot(((state >> 32) % u64::from(SLOT_COUNT)) as u16)
}

/// An interval of encoded keys inside one index, in every slot or in one: `low <= key < high`.
/// `high == None` is unbounded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeyRange {
    /// Inclusive lower bound; empty is unbounded.
    #[serde(with = "crate::bytes")]
    pub low: Vec<u8>,
    /// Exclusive upper bound.
    pub high: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> KeyRange {
        KeyRange {
            low: Vec::new(),
            high: None,
        }
    }
    /// Exactly the keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange {
            low: prefix.to_vec(),
            high: prefix_end(prefix),
        }
    }
    /// Exactly the key `bytes`.
    pub fn point(bytes: &[u8]) -> KeyRange {
        let mut high = bytes.to_vec();
        high.push(0);
        KeyRange {
            low: bytes.to_vec(),
            high: Some(high),
        }
    }
    /// Whether `bytes` lies inside.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        self.low.as_slice() <= bytes && self.high.as_deref().is_none_or(|high| bytes < high)
    }
    /// Whether some key could lie in both.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.high
            .as_deref()
            .is_none_or(|high| other.low.as_slice() < high)
            && other
                .high
                .as_deref()
                .is_none_or(|high| self.low.as_slice() < high)
    }
}

/// The smallest byte string above every string that starts with `prefix`; `None` if there is none.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}/{}/", self.index.0, self.slot.0)?;
        self.bytes
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
impl fmt::Debug for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        f.write_str("[")?;
        hex(f, &self.low)?;
        f.write_str("..")?;
        match &self.high {
            Some(high) => hex(f, high)?,
            None => f.write_str("end")?,
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    #[test]
    fn prefix_ends() {
        assert_eq!(prefix_end(b"a"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(prefix_end(&[0xff, 0xff]), None);
        assert_eq!(prefix_end(&[]), None);
        assert!(KeyRange::prefix(&[0xff]).contains(&[0xff, 0xff]));
    }

    #[test]
    fn ranges_agree_with_a_list_of_keys() {
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 0..3 {
            let longer: Vec<Vec<u8>> = keys
                .iter()
                .filter(|key| key.len() == length)
                .cloned()
                .collect();
            for key in longer {
                keys.extend([0, 1, 0xff].map(|byte| [key.as_slice(), &[byte]].concat()));
            }
        }
        let mut prng = Prng::new(51);
        let mut pick = || keys[prng.below(keys.len() as u64) as usize].clone();
        for round in 0..2_000 {
            let mut range = || match round % 4 {
                0 => KeyRange::point(&pick()),
                1 => KeyRange::prefix(&pick()),
                2 => KeyRange {
                    low: pick(),
                    high: None,
                },
                _ => KeyRange {
                    low: pick(),
                    high: Some(pick()),
                },
            };
            let (a, b) = (range(), range());
            let both = keys.iter().any(|key| a.contains(key) && b.contains(key));
            assert!(!both || a.overlaps(&b), "{a:?} and {b:?} share a key");
            assert_eq!(a.overlaps(&b), b.overlaps(&a));
        }
        let point = KeyRange::point(b"k");
        assert!(point.contains(b"k") && !point.contains(b"k\0") && !point.contains(b"j"));
        assert!(KeyRange::all().contains(b"") && KeyRange::all().overlaps(&point));
        assert!(!KeyRange::point(b"a").overlaps(&KeyRange::point(b"b")));
    }

    #[test]
    fn keys_order_by_index_slot_and_columns() {
        let key = |index, slot, bytes: &[u8]| Key::new(IndexId(index), Slot(slot), bytes.to_vec());
        let sorted = [
            key(1, 0, b"b"),
            key(1, 1, b""),
            key(1, 1, b"a"),
            key(2, 0, b""),
        ];
        assert!(sorted.is_sorted_by(|a, b| a < b));
        assert_eq!(format!("{:?}", sorted[0]), "i1/0/62");
    }
}
