//! Key heads: the first eight bytes of a key as a number, so that most comparisons touch no other
//! memory.

/// Heads per cache line.
const BLOCK: usize = 8;

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
/// Not a binary search: the samples, one per cache line, are independent loads, so their cache
/// misses overlap, and then one line remains.
#[inline]
pub(crate) fn heads_below<const N: usize>(heads: &[u64; N], head: u64) -> usize {
    const { assert!(N.is_multiple_of(BLOCK)) };
    let (blocks, _) = heads.as_chunks::<BLOCK>();
    let block = blocks
        .iter()
        .filter(|block| block[BLOCK - 1] < head)
        .count();
    let Some(last) = blocks.get(block) else {
        return N;
    };
    block * BLOCK + last.iter().filter(|&&other| other < head).count()
}
