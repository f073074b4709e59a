//! Key heads: the first eight bytes of a key as a number, so that most comparisons touch no other
//! memory.

/// Heads per page, of leaves and inner pages alike.
pub(crate) const HEADS: usize = 64;
const BLOCK: usize = 8;
const _: () = assert!(BLOCK * BLOCK == HEADS);

/// The first eight bytes of `key`, filled up with zeros, as a number that compares like them.
#[inline]
pub(crate) fn head_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut padded = [0; 8];
    padded[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(padded)
}

/// Number of entries below `head` in an ascending page, unused entries being `u64::MAX`.
///
/// Not a binary search: the eight samples are independent loads, so their cache misses overlap,
/// and then one cache line remains.
#[inline]
pub(crate) fn heads_below(heads: &[u64; HEADS], head: u64) -> usize {
    let mut block = 0;
    for i in 0..BLOCK {
        block += usize::from(heads[i * BLOCK + BLOCK - 1] < head);
    }
    if block == BLOCK {
        return HEADS;
    }
    let start = block * BLOCK;
    let below = heads[start..start + BLOCK]
        .iter()
        .filter(|&&other| other < head)
        .count();
    start + below
}
