//! Breaks valid inputs in the ways in which inputs break: bits, lengths, cuts, splices.

use base::Prng;

/// Longest input in bytes; longer ones find nothing that shorter ones do not.
pub const INPUT_BYTES_MAX: usize = 16 << 10;
/// Numbers at which decoders go wrong.
const EDGES: &[u32] = &[
    0,
    1,
    3,
    4,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    u32::MAX,
];

/// A stream of inputs that follows from its corpus and seed.
#[derive(Debug)]
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    prng: Prng,
}

impl Mutator {
    /// A mutator over `corpus`, which must hold at least one input.
    pub fn new(corpus: Vec<Vec<u8>>, prng: Prng) -> Mutator {
        assert!(!corpus.is_empty(), "a corpus has valid inputs");
        Mutator { corpus, prng }
    }

    /// The valid inputs.
    pub fn corpus(&self) -> &[Vec<u8>] {
        &self.corpus
    }

    /// The next broken input. One in 32 has nothing to do with the corpus.
    pub fn next_input(&mut self) -> Vec<u8> {
        if self.prng.below(32) == 0 {
            let length = self.prng.below(64) as usize;
            return (0..length).map(|_| self.byte()).collect();
        }
        let mut input = self.pick().to_vec();
        let steps = 1 + self.prng.below(4) * self.prng.below(3);
        for _ in 0..steps {
            self.mutate(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    }

    fn pick(&mut self) -> &[u8] {
        let index = self.prng.below(self.corpus.len() as u64) as usize;
        &self.corpus[index]
    }

    fn byte(&mut self) -> u8 {
        self.prng.next_u64() as u8
    }

    /// A place in `input`, its end included.
    fn place(&mut self, input: &[u8]) -> usize {
        self.prng.below(input.len() as u64 + 1) as usize
    }

    /// A range of `input`, short more often than long.
    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let from = self.place(input);
        let most = (input.len() - from).min(1 << self.prng.below(10));
        from..from + self.prng.below(most as u64 + 1) as usize
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        match self.prng.below(9) {
            0 | 1 => self.flip_bit(input),
            2 => self.set_byte(input),
            3 | 4 => self.set_number(input),
            5 => {
                let range = self.range(input);
                input.drain(range);
            }
            6 => {
                let range = self.range(input);
                let piece = input[range].to_vec();
                let at = self.place(input);
                input.splice(at..at, piece);
            }
            7 => self.splice_other(input),
            _ => {
                let at = self.place(input);
                input.truncate(at);
            }
        }
    }

    fn flip_bit(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.prng.below(input.len() as u64) as usize;
            input[at] ^= 1 << self.prng.below(8);
        }
    }

    fn set_byte(&mut self, input: &mut [u8]) {
        if !input.is_empty() {
            let at = self.prng.below(input.len() as u64) as usize;
            input[at] = self.byte();
        }
    }

    /// Writes an edge number over what may be a length, in either byte order and three widths.
    fn set_number(&mut self, input: &mut [u8]) {
        let edge = EDGES[self.prng.below(EDGES.len() as u64) as usize];
        let near = edge.wrapping_add(self.prng.below(3) as u32).wrapping_sub(1);
        let width = 1 << self.prng.below(3);
        let bytes = match self.prng.below(2) {
            0 => near.to_le_bytes(),
            _ => near.rotate_left(32 - 8 * width as u32).to_be_bytes(),
        };
        let at = self.place(input);
        if let Some(place) = input.get_mut(at..at + width) {
            place.copy_from_slice(&bytes[..width]);
        }
    }

    fn splice_other(&mut self, input: &mut Vec<u8>) {
        let other = self.pick().to_vec();
        let piece = other[self.range(&other)].to_vec();
        let range = self.range(input);
        input.splice(range, piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(seed: u64) -> Vec<Vec<u8>> {
        let corpus = vec![b"hello, decoder".to_vec(), vec![0; 100]];
        let mut mutator = Mutator::new(corpus, Prng::new(seed));
        (0..2_000).map(|_| mutator.next_input()).collect()
    }

    #[test]
    fn the_seed_decides_the_inputs() {
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn inputs_differ_and_stay_short() {
        let mut all = inputs(3);
        assert!(all.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
        assert!(all.iter().any(|input| input.is_empty()));
        assert!(all.iter().any(|input| input.len() > 100));
        all.sort();
        all.dedup();
        assert!(all.len() > 1_500, "{} different inputs", all.len());
    }
}
