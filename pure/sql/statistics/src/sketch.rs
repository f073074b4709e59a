//! The number of different values, from a few hundred bytes that can be merged: HyperLogLog
//! (Flajolet et al. 2007) with the small range by linear counting.

use base::Datum;
use base::key::encode_datum;

/// Registers; the error is 1.04 / sqrt(512), below 5 %.
const REGISTERS: usize = 512;
const BITS: u32 = REGISTERS.trailing_zeros();

/// What has been seen of values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sketch(Box<[u8]>);

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch(vec![0; REGISTERS].into())
    }
}

impl Sketch {
    /// A sketch from its bytes; `None` if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Sketch> {
        (bytes.len() == REGISTERS).then(|| Sketch(bytes.into()))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Notes a value; `scratch` is memory for its encoding.
    pub(crate) fn add(&mut self, value: &Datum, scratch: &mut Vec<u8>) {
        scratch.clear();
        encode_datum(scratch, value, false);
        let hash = hash(scratch);
        let register = (hash >> (64 - BITS)) as usize;
        let zeros = ((hash << BITS) | 1 << (BITS - 1)).leading_zeros() as u8;
        let known = &mut self.0[register];
        *known = (*known).max(zeros + 1);
    }

    /// Takes in what another one has seen.
    pub fn merge(&mut self, other: &Sketch) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    /// Different values that have been seen, about.
    pub fn count(&self) -> f64 {
        let count = REGISTERS as f64;
        let sum: f64 = self
            .0
            .iter()
            .map(|zeros| 0.5f64.powi(i32::from(*zeros)))
            .sum();
        let guess = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.0.iter().filter(|zeros| **zeros == 0).count();
        match guess <= 2.5 * count && empty > 0 {
            true => count * (count / empty as f64).ln(),
            false => guess,
        }
    }
}

/// FNV-1a with a finish that mixes all bits.
fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325u64;
    let mut hash = bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
