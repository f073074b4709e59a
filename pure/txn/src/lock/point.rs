//! The key of a locked row, kept without an allocation if it is short.

use super::table::Item;
use alloc::boxed::Box;
use base::{IndexId, Key, Slot};
use core::cmp::Ordering;

/// Bytes of the longest key that is stored in place; with it a [`PointKey`] takes 32 bytes.
const INLINE_BYTES: usize = 22;

#[derive(Clone, Debug)]
enum Bytes {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Heap(Box<[u8]>),
}

/// (index, slot, key), ordered as rows are.
#[derive(Clone, Debug)]
pub(super) struct PointKey {
    pub(super) index: IndexId,
    pub(super) slot: Slot,
    bytes: Bytes,
}

impl PointKey {
    #[inline]
    pub(super) fn new(index: IndexId, slot: Slot, key: &[u8]) -> PointKey {
        let bytes = if key.len() <= INLINE_BYTES {
            let mut bytes = [0; INLINE_BYTES];
            bytes[..key.len()].copy_from_slice(key);
            Bytes::Inline {
                len: key.len() as u8,
                bytes,
            }
        } else {
            Bytes::Heap(key.into())
        };
        PointKey { index, slot, bytes }
    }
    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Bytes::Heap(bytes) => bytes,
        }
    }
    pub(super) fn item(&self) -> Item<'_> {
        Item::Point {
            index: self.index,
            slot: self.slot,
            key: self.key(),
        }
    }
    pub(super) fn to_key(&self) -> Key {
        Key {
            index: self.index,
            slot: self.slot,
            bytes: self.key().to_vec(),
        }
    }
}

impl PartialEq for PointKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for PointKey {}
impl PartialOrd for PointKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for PointKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.index, self.slot)
            .cmp(&(other.index, other.slot))
            .then_with(|| self.key().cmp(other.key()))
    }
}
