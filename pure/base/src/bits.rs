//! Bit strings: values of `bit` and `bit varying`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Deserializer, Serialize};

/// Bits of a bit string at most, as in PostgreSQL's types.
pub const BITS_MAX: u32 = 83_886_080;

/// A string of bits: its bytes, the first bit highest, with zeros behind the last bit; then a byte
/// that counts these zeros, 0 to 7.
///
/// In no more than a slice has, so that it fits into a datum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(transparent)]
pub struct Bits(Box<[u8]>);

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bits, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Bits::decode(&bytes).ok_or_else(|| serde::de::Error::custom("no bit string"))
    }
}

impl Bits {
    /// So many zeros.
    pub fn zeros(length: usize) -> Bits {
        let bytes = length.div_ceil(8);
        let mut all = vec![0; bytes + 1];
        all[bytes] = (bytes * 8 - length) as u8;
        Bits(all.into_boxed_slice())
    }

    /// The first `length` bits of `bytes`, with zeros in place of those that are missing.
    pub fn of_bytes(bytes: &[u8], length: usize) -> Bits {
        let mut made = Bits::zeros(length);
        let count = made.bytes().len().min(bytes.len());
        made.bytes_mut()[..count].copy_from_slice(&bytes[..count]);
        made.clear_rest();
        made
    }

    /// The lowest `length` bits of a number, whose sign stands before its highest bit.
    pub fn of_int(value: i64, length: usize) -> Bits {
        let sign = if value < 0 { 0xff } else { 0 };
        let mut made = Bits::zeros(length).map(|_, _| sign);
        for at in length.saturating_sub(64)..length {
            made.set(at, value >> (length - 1 - at) & 1 == 1);
        }
        made
    }

    /// The number of at most 64 bits that this is without a sign; `None` if it has more.
    pub fn to_unsigned(&self) -> Option<u64> {
        if self.len() > 64 {
            return None;
        }
        let bits = (0..self.len()).map(|at| u64::from(self.get(at)));
        Some(bits.fold(0, |sum, bit| sum << 1 | bit))
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.bytes().len() * 8 - usize::from(self.padding())
    }

    /// Whether there is no bit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn padding(&self) -> u8 {
        *self.0.last().expect("the count of zeros")
    }

    /// The bits, eight in a byte.
    pub fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let end = self.0.len() - 1;
        &mut self.0[..end]
    }

    /// Zeros behind the last bit.
    fn clear_rest(&mut self) {
        let padding = self.padding();
        if let Some(last) = self.bytes_mut().last_mut() {
            *last &= 0xff << padding;
        }
    }

    /// Bit `at`, from 0 at the left.
    pub fn get(&self, at: usize) -> bool {
        self.bytes()[at / 8] >> (7 - at % 8) & 1 == 1
    }

    /// Changes bit `at`.
    pub fn set(&mut self, at: usize, bit: bool) {
        let mask = 0x80 >> (at % 8);
        let byte = &mut self.bytes_mut()[at / 8];
        *byte = if bit { *byte | mask } else { *byte & !mask };
    }

    /// The bits from `start` to before `end`, which are in the string.
    #[must_use]
    pub fn part(&self, start: usize, end: usize) -> Bits {
        let shifted = self.shifted_left(start);
        Bits::of_bytes(shifted.bytes(), end - start)
    }

    /// As long as before, each bit `by` places further left.
    #[must_use]
    pub fn shifted_left(&self, by: usize) -> Bits {
        let mut made = Bits::zeros(self.len());
        let (bytes, rest, from) = (by / 8, (by % 8) as u32, self.bytes());
        for (at, byte) in made.bytes_mut().iter_mut().enumerate() {
            let one = |at: usize| u32::from(from.get(at).copied().unwrap_or(0));
            let two = one(at.saturating_add(bytes)) << 8 | one(at.saturating_add(bytes + 1));
            *byte = (two << rest >> 8) as u8;
        }
        made.clear_rest();
        made
    }

    /// As long as before, each bit `by` places further right.
    #[must_use]
    pub fn shifted_right(&self, by: usize) -> Bits {
        let mut made = Bits::zeros(self.len());
        let (bytes, rest, from) = (by / 8, (by % 8) as u32, self.bytes());
        for (at, byte) in made.bytes_mut().iter_mut().enumerate() {
            let one = |at: Option<usize>| at.map_or(0, |at| u32::from(from[at]));
            let two = one(at.checked_sub(bytes + 1)) << 8 | one(at.checked_sub(bytes));
            *byte = (two >> rest) as u8;
        }
        made.clear_rest();
        made
    }

    /// These bits, then those.
    #[must_use]
    pub fn joined(&self, other: &Bits) -> Bits {
        let (length, rest) = (self.len() + other.len(), self.len() % 8);
        let mut bytes = Vec::with_capacity(length.div_ceil(8) + 1);
        bytes.extend_from_slice(self.bytes());
        for byte in other.bytes() {
            if rest == 0 {
                bytes.push(*byte);
            } else {
                *bytes.last_mut().expect("there is a bit") |= byte >> rest;
                bytes.push(byte << (8 - rest));
            }
        }
        Bits::of_bytes(&bytes, length)
    }

    /// With each byte changed; the zeros behind the last bit stay.
    #[must_use]
    pub fn map(&self, change: impl Fn(usize, u8) -> u8) -> Bits {
        let mut made = self.clone();
        for (at, byte) in made.bytes_mut().iter_mut().enumerate() {
            *byte = change(at, *byte);
        }
        made.clear_rest();
        made
    }

    /// With `length` bits: cut, or with zeros at the end.
    #[must_use]
    pub fn resized(&self, length: usize) -> Bits {
        Bits::of_bytes(self.bytes(), length)
    }

    /// The order of PostgreSQL: by bytes, then by length.
    pub fn compare(&self, other: &Bits) -> Ordering {
        let bytes = self.bytes().cmp(other.bytes());
        bytes.then_with(|| self.len().cmp(&other.len()))
    }

    /// The form in rows.
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }

    /// Reads [`Bits::encoded`].
    pub fn decode(bytes: &[u8]) -> Option<Bits> {
        let (padding, bits) = bytes.split_last()?;
        let fits = match bits.last() {
            None => *padding == 0,
            Some(last) => *padding < 8 && last.trailing_zeros() >= u32::from(*padding),
        };
        fits.then(|| Bits(bytes.into()))
    }

    /// The text form: a digit for each bit.
    pub fn digits(&self) -> String {
        let digit = |at| if self.get(at) { '1' } else { '0' };
        (0..self.len()).map(digit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    fn of_digits(digits: &str) -> Bits {
        let mut made = Bits::zeros(digits.len());
        for (at, digit) in digits.bytes().enumerate() {
            made.set(at, digit == b'1');
        }
        made
    }

    /// Every operation is that of a string of digits.
    #[test]
    fn operations_are_those_of_digits() {
        let mut prng = Prng::new(7);
        for _ in 0..3_000 {
            let mut digits = |max: u64| -> String {
                let length = prng.below(max);
                let digits = (0..length).map(|_| ['0', '1'][prng.below(2) as usize]);
                digits.collect()
            };
            let (a, b) = (digits(40), digits(40));
            let (x, y) = (of_digits(&a), of_digits(&b));
            assert_eq!(x.digits(), a);
            assert_eq!(Bits::decode(x.encoded()), Some(x.clone()));
            assert_eq!(x.joined(&y).digits(), alloc::format!("{a}{b}"));
            let by = prng.below(50) as usize;
            let zeros = "0".repeat(by);
            let left = alloc::format!("{a}{zeros}");
            assert_eq!(x.shifted_left(by).digits(), left[by..]);
            let right = alloc::format!("{zeros}{a}");
            assert_eq!(x.shifted_right(by).digits(), right[..a.len()]);
            let start = prng.below(a.len() as u64 + 1) as usize;
            let end = start + prng.below((a.len() - start) as u64 + 1) as usize;
            assert_eq!(x.part(start, end).digits(), a[start..end]);
            assert_eq!(x.resized(by).digits(), left.get(..by).unwrap_or(&left));
        }
    }

    #[test]
    fn numbers_have_their_sign_before_them() {
        assert_eq!(Bits::of_int(5, 3).digits(), "101");
        assert_eq!(Bits::of_int(-1, 70).digits(), "1".repeat(70));
        assert_eq!(Bits::of_int(-2, 4).digits(), "1110");
        assert_eq!(Bits::of_int(44, 1).digits(), "0");
        assert_eq!(of_digits("1110").to_unsigned(), Some(14));
        assert_eq!(Bits::zeros(65).to_unsigned(), None);
        assert_eq!(Bits::decode(&[0x81, 3]), None);
        assert_eq!(Bits::decode(&[]), None);
        assert_eq!(Bits::decode(&[4]), None);
    }
}
