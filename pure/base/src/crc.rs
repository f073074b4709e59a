//! CRC-32C (Castagnoli), the checksum of journal records, checkpoints and node frames.
//!
//! Eight bytes per step from eight tables ("slice by 8"), in safe code.

use alloc::vec;
use alloc::vec::Vec;

/// The Castagnoli polynomial, bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]` is the checksum state after byte `b` and `k` zero bytes.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 {
                (state >> 1) ^ POLYNOMIAL
            } else {
                state >> 1
            };
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut level = 1;
    while level < 8 {
        let mut byte = 0;
        while byte < 256 {
            let below = tables[level - 1][byte];
            tables[level][byte] = (below >> 8) ^ tables[0][(below & 0xff) as usize];
            byte += 1;
        }
        level += 1;
    }
    tables
}

/// A checksum over input that arrives in pieces.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Crc32c {
        Crc32c::new()
    }
}

impl Crc32c {
    /// The state before any byte.
    pub const fn new() -> Crc32c {
        Crc32c(!0)
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        let mut state = self.0;
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            let word = u64::from_le_bytes(*chunk) ^ u64::from(state);
            state = TABLES[7][(word & 0xff) as usize]
                ^ TABLES[6][(word >> 8 & 0xff) as usize]
                ^ TABLES[5][(word >> 16 & 0xff) as usize]
                ^ TABLES[4][(word >> 24 & 0xff) as usize]
                ^ TABLES[3][(word >> 32 & 0xff) as usize]
                ^ TABLES[2][(word >> 40 & 0xff) as usize]
                ^ TABLES[1][(word >> 48 & 0xff) as usize]
                ^ TABLES[0][(word >> 56) as usize];
        }
        for byte in rest {
            state = (state >> 8) ^ TABLES[0][((state ^ u32::from(*byte)) & 0xff) as usize];
        }
        self.0 = state;
    }

    /// The checksum of everything added so far.
    pub fn finish(self) -> u32 {
        !self.0
    }
}

/// Checksums of any range of a slice, each in a number of steps that does not grow with the range.
///
/// The state after a range follows from the states before and behind it, because a checksum is
/// linear: what the bytes before did to it is multiplied by x^8 for every byte of the range, and
/// taken out of the state behind it.
pub struct Ranges<'a> {
    bytes: &'a [u8],
    /// States after every [`RANGE_STEP`] bytes, from 0.
    states: Vec<u32>,
}

/// Bytes between two states that are kept.
pub const RANGE_STEP: usize = 64;

impl<'a> Ranges<'a> {
    /// Reads `bytes` once.
    pub fn new(bytes: &'a [u8]) -> Ranges<'a> {
        let mut state = Crc32c(0);
        let mut states = vec![0];
        for chunk in bytes.chunks(RANGE_STEP) {
            state.update(chunk);
            states.push(state.0);
        }
        Ranges { bytes, states }
    }

    /// The state after `from` followed by the bytes of `range`. Reads less than two steps.
    pub fn continued(&self, from: Crc32c, range: core::ops::Range<usize>) -> Crc32c {
        let before = from.0 ^ self.state(range.start);
        Crc32c(behind_zeros(before, range.len()) ^ self.state(range.end))
    }

    fn state(&self, end: usize) -> u32 {
        let kept = end / RANGE_STEP;
        let mut state = Crc32c(self.states[kept]);
        state.update(&self.bytes[kept * RANGE_STEP..end]);
        state.0
    }
}

fn behind_zeros(state: u32, count: usize) -> u32 {
    let powers = POWERS.iter().enumerate();
    let wanted = powers.filter(|(bit, _)| count >> bit & 1 == 1);
    wanted.fold(state, |state, (_, power)| product(state, *power))
}

/// `POWERS[k]` is x^(8 * 2^k).
static POWERS: [u32; 32] = powers();

const fn powers() -> [u32; 32] {
    let mut powers = [1 << (31 - 8); 32];
    let mut at = 1;
    while at < 32 {
        powers[at] = product(powers[at - 1], powers[at - 1]);
        at += 1;
    }
    powers
}

/// The product of two polynomials, the highest bit of which is x^0.
const fn product(mut left: u32, right: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        if right >> bit & 1 == 1 {
            product ^= left;
        }
        let over = left & 1 == 1;
        left >>= 1;
        if over {
            left ^= POLYNOMIAL;
        }
    }
    product
}

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(bytes);
    crc.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    /// RFC 3720, appendix B.4.
    #[test]
    fn published_vectors() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
    }

    #[test]
    fn ranges_equal_what_is_read() {
        let mut prng = Prng::new(4);
        let bytes: Vec<u8> = (0..5000).map(|_| prng.next_u64() as u8).collect();
        let ranges = Ranges::new(&bytes);
        for _ in 0..500 {
            let end = prng.below(5001) as usize;
            let start = prng.below(end as u64 + 1) as usize;
            let mut crc = Crc32c::new();
            crc.update(b"before");
            let found = ranges.continued(crc, start..end);
            crc.update(&bytes[start..end]);
            assert_eq!(found.finish(), crc.finish(), "{start}..{end}");
        }
    }

    #[test]
    fn pieces_equal_the_whole() {
        let mut prng = Prng::new(3);
        let bytes: Vec<u8> = (0..1000).map(|_| prng.next_u64() as u8).collect();
        for _ in 0..200 {
            let cut = prng.below(1001) as usize;
            let mut crc = Crc32c::new();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            assert_eq!(crc.finish(), crc32c(&bytes));
        }
    }
}
