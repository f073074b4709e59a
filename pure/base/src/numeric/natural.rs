//! Natural numbers of any size, in limbs of eight decimal digits.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt::Write;

/// Decimal digits of a limb.
pub(super) const LIMB_DIGITS: usize = 8;
/// One more than the largest limb.
pub(super) const BASE: u32 = 100_000_000;
const WIDE_BASE: u64 = BASE as u64;
/// Shorter factors are multiplied limb by limb.
const KARATSUBA_LIMBS: usize = 40;

/// Powers of ten below [`BASE`].
const POW10: [u32; LIMB_DIGITS] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// A natural number: limbs, the lowest first, the last one not zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Natural(Vec<u32>);

impl Natural {
    /// The number of these limbs; zeros at the end are dropped.
    pub(super) fn of_limbs(mut limbs: Vec<u32>) -> Natural {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Natural(limbs)
    }

    pub(super) fn limbs(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_odd(&self) -> bool {
        self.0.first().is_some_and(|low| low % 2 == 1)
    }

    /// Number of decimal digits; 0 for zero.
    pub(super) fn digits(&self) -> usize {
        match self.0.last() {
            None => 0,
            Some(top) => (self.0.len() - 1) * LIMB_DIGITS + top.ilog10() as usize + 1,
        }
    }

    /// Number of zeros at the end, of a number that is not zero.
    pub(super) fn trailing_zeros(&self) -> usize {
        let limbs = self.0.iter().take_while(|limb| **limb == 0).count();
        let digits = (1..LIMB_DIGITS).take_while(|digits| {
            self.0
                .get(limbs)
                .is_some_and(|limb| limb % POW10[*digits] == 0)
        });
        limbs * LIMB_DIGITS + digits.count()
    }

    /// The number if it is below 2^128.
    pub(super) fn to_u128(&self) -> Option<u128> {
        if self.0.len() > 5 {
            return None;
        }
        let mut limbs = self.0.iter().rev();
        limbs.try_fold(0u128, |value, limb| {
            value
                .checked_mul(WIDE_BASE.into())?
                .checked_add((*limb).into())
        })
    }

    /// The number that these decimal digits write.
    pub(super) fn of_digits(digits: &[u8]) -> Natural {
        let limb = |part: &[u8]| {
            part.iter()
                .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
        };
        Natural::of_limbs(digits.rchunks(LIMB_DIGITS).map(limb).collect())
    }

    /// Its decimal digits; none for zero.
    pub(super) fn to_digits(&self) -> String {
        let mut out = String::with_capacity(self.0.len() * LIMB_DIGITS);
        let mut limbs = self.0.iter().rev();
        if let Some(top) = limbs.next() {
            let _ = write!(out, "{top}");
        }
        for limb in limbs {
            let _ = write!(out, "{limb:08}");
        }
        out
    }

    pub(super) fn add(&self, other: &Natural) -> Natural {
        let (long, short) = match self.0.len() >= other.0.len() {
            true => (self, other),
            false => (other, self),
        };
        let mut sum = long.0.clone();
        add_into(&mut sum, &short.0);
        Natural::of_limbs(sum)
    }

    /// `self - other`, which must not be larger.
    pub(super) fn sub(&self, other: &Natural) -> Natural {
        let mut rest = self.0.clone();
        sub_from(&mut rest, &other.0);
        Natural::of_limbs(rest)
    }

    pub(super) fn mul(&self, other: &Natural) -> Natural {
        Natural::of_limbs(product(&self.0, &other.0))
    }

    pub(super) fn mul_small(&self, factor: u32) -> Natural {
        let mut limbs = Vec::with_capacity(self.0.len() + 2);
        let mut carry = 0;
        for limb in &self.0 {
            let wide = u64::from(*limb) * u64::from(factor) + carry;
            limbs.push((wide % WIDE_BASE) as u32);
            carry = wide / WIDE_BASE;
        }
        while carry > 0 {
            limbs.push((carry % WIDE_BASE) as u32);
            carry /= WIDE_BASE;
        }
        Natural::of_limbs(limbs)
    }

    /// Quotient and remainder by what is not zero.
    pub(super) fn div_small(&self, divisor: u32) -> (Natural, u32) {
        let mut limbs = self.0.clone();
        let mut rest = 0;
        for limb in limbs.iter_mut().rev() {
            let wide = rest * WIDE_BASE + u64::from(*limb);
            *limb = (wide / u64::from(divisor)) as u32;
            rest = wide % u64::from(divisor);
        }
        (Natural::of_limbs(limbs), rest as u32)
    }

    /// Times `10^digits`.
    pub(super) fn raised(&self, digits: usize) -> Natural {
        if self.is_zero() {
            return Natural::default();
        }
        let scaled = self.mul_small(POW10[digits % LIMB_DIGITS]);
        let mut limbs = alloc::vec![0; digits / LIMB_DIGITS];
        limbs.extend_from_slice(&scaled.0);
        Natural(limbs)
    }

    /// The quotient by `10^digits`, and whether what is left is: nothing, less than half, half,
    /// more.
    pub(super) fn lowered(&self, digits: usize) -> (Natural, Rest) {
        let limbs = digits / LIMB_DIGITS;
        if digits > self.digits() {
            let is_zero = self.is_zero();
            let rest = if is_zero { Rest::Nothing } else { Rest::Low };
            return (Natural::default(), rest);
        }
        let dropped = &self.0[..limbs.min(self.0.len())];
        let unit = POW10[digits % LIMB_DIGITS];
        let high = Natural::of_limbs(self.0[dropped.len()..].to_vec());
        let (quotient, rest) = high.div_small(unit);
        // The first digit that is dropped, and whether any behind it is not zero.
        let (first, others) = match (unit, dropped) {
            (1, []) => (0, false),
            (1, [low @ .., top]) => {
                let has_more = top % 10_000_000 != 0 || low.iter().any(|limb| *limb != 0);
                (top / 10_000_000, has_more)
            }
            (_, dropped) => {
                let has_more = rest % (unit / 10) != 0 || dropped.iter().any(|limb| *limb != 0);
                (rest / (unit / 10), has_more)
            }
        };
        let rest = match (first, others) {
            (0, false) => Rest::Nothing,
            (5, false) => Rest::Half,
            (0..=4, _) => Rest::Low,
            _ => Rest::High,
        };
        (quotient, rest)
    }

    /// Quotient and remainder by what is not zero, limb by limb of the quotient.
    pub(super) fn div_rem(&self, divisor: &Natural) -> (Natural, Natural) {
        match (divisor.0.as_slice(), self.cmp(divisor)) {
            (_, Ordering::Less) => return (Natural::default(), self.clone()),
            ([small], _) => {
                let (quotient, rest) = self.div_small(*small);
                return (quotient, Natural::of_limbs(alloc::vec![rest]));
            }
            _ => {}
        }
        // With a divisor whose first limb is large, a guess of a limb is at most two too large.
        let factor = BASE / (divisor.0.last().copied().unwrap_or(0) + 1);
        let (mut rest, divisor) = (self.mul_small(factor).0, divisor.mul_small(factor).0);
        rest.push(0);
        let count = divisor.len();
        let (first, second) = (divisor[count - 1], divisor[count - 2]);
        let mut quotient = alloc::vec![0; rest.len() - count];
        for at in (0..quotient.len()).rev() {
            let top = u64::from(rest[at + count]) * WIDE_BASE + u64::from(rest[at + count - 1]);
            let mut guess = top / u64::from(first);
            let mut left = top % u64::from(first);
            while guess >= WIDE_BASE
                || guess * u64::from(second) > left * WIDE_BASE + u64::from(rest[at + count - 2])
            {
                guess -= 1;
                left += u64::from(first);
                if left >= WIDE_BASE {
                    break;
                }
            }
            let part = &mut rest[at..=at + count];
            if take_multiple(part, &divisor, guess) {
                guess -= 1;
                let carry = add_within(&mut part[..count], &divisor);
                part[count] = (part[count] + carry) % BASE;
            }
            quotient[at] = guess as u32;
        }
        rest.truncate(count);
        let (rest, _) = Natural::of_limbs(rest).div_small(factor);
        (Natural::of_limbs(quotient), rest)
    }

    /// The integer part of the square root, by Newton's method from above.
    pub(super) fn isqrt(&self) -> Natural {
        if let Some(small) = self.to_u128() {
            return Natural::of_u128(small.isqrt());
        }
        // A few digits of the root, and a number that is not below it.
        let digits = self.digits();
        let kept = 30 + digits % 2;
        let (head, _) = self.lowered(digits - kept);
        let root = head.to_u128().map_or(0, u128::isqrt) + 1;
        let mut guess = Natural::of_u128(root).raised((digits - kept) / 2);
        loop {
            let (quotient, _) = self.div_rem(&guess);
            let (next, _) = guess.add(&quotient).div_small(2);
            if next >= guess {
                return guess;
            }
            guess = next;
        }
    }

    pub(super) fn of_u128(mut value: u128) -> Natural {
        let mut limbs = Vec::with_capacity(5);
        while value > 0 {
            limbs.push((value % u128::from(BASE)) as u32);
            value /= u128::from(BASE);
        }
        Natural(limbs)
    }

    /// `self^exponent`, or `None` if it gets more digits.
    pub(super) fn power(&self, exponent: u64, digits_max: usize) -> Option<Natural> {
        let mut result = Natural::of_u128(1);
        let (mut square, mut left) = (self.clone(), exponent);
        while left > 0 {
            if left & 1 == 1 {
                result = result.mul(&square);
                if result.digits() > digits_max {
                    return None;
                }
            }
            left >>= 1;
            if left > 0 {
                square = square.mul(&square);
                if square.digits() > digits_max + 1 {
                    return None;
                }
            }
        }
        Some(result)
    }
}

/// What a division by a power of ten leaves, in relation to the power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rest {
    Nothing,
    Low,
    Half,
    High,
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Natural) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Natural) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// Adds to as many limbs as `sum` has at least; the carry out of them.
fn add_within(sum: &mut [u32], more: &[u32]) -> u32 {
    let mut carry = 0;
    for (i, limb) in sum.iter_mut().enumerate() {
        if i >= more.len() && carry == 0 {
            return 0;
        }
        let value = *limb + more.get(i).copied().unwrap_or(0) + carry;
        carry = u32::from(value >= BASE);
        *limb = value - carry * BASE;
    }
    carry
}

/// Adds what is not longer, growing by a limb if need be.
fn add_into(sum: &mut Vec<u32>, more: &[u32]) {
    if more.len() > sum.len() {
        sum.resize(more.len(), 0);
    }
    if add_within(sum, more) == 1 {
        sum.push(1);
    }
}

/// Subtracts what is not larger.
fn sub_from(rest: &mut [u32], less: &[u32]) {
    let mut borrow = 0;
    for (i, limb) in rest.iter_mut().enumerate() {
        if i >= less.len() && borrow == 0 {
            return;
        }
        let taken = less.get(i).copied().unwrap_or(0) + borrow;
        borrow = u32::from(*limb < taken);
        *limb = *limb + borrow * BASE - taken;
    }
}

/// Subtracts `divisor * factor`; whether that was too much (modulo the length).
fn take_multiple(part: &mut [u32], divisor: &[u32], factor: u64) -> bool {
    let (mut carry, mut borrow) = (0, 0);
    for (i, limb) in part.iter_mut().enumerate() {
        let wide = divisor.get(i).map_or(0, |limb| u64::from(*limb) * factor) + carry;
        carry = wide / WIDE_BASE;
        let taken = (wide % WIDE_BASE) as u32 + borrow;
        borrow = u32::from(*limb < taken);
        *limb = *limb + borrow * BASE - taken;
    }
    borrow == 1
}

fn product(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    if short.is_empty() {
        return Vec::new();
    }
    if short.len() < KARATSUBA_LIMBS {
        return long_product(long, short);
    }
    if long.len() > 2 * short.len() {
        // Pieces of the long one that are as long as the other.
        let mut all = alloc::vec![0; long.len() + short.len() + 1];
        for (i, piece) in long.chunks(short.len()).enumerate() {
            let part = product(piece, short);
            add_within(&mut all[i * short.len()..], &part);
        }
        return all;
    }
    let half = long.len().div_ceil(2);
    let split = |limbs: &[u32]| match limbs.len() > half {
        true => (limbs[..half].to_vec(), limbs[half..].to_vec()),
        false => (limbs.to_vec(), Vec::new()),
    };
    let ((a_low, a_high), (b_low, b_high)) = (split(long), split(short));
    let (low, high) = (product(&a_low, &b_low), product(&a_high, &b_high));
    let (mut a_sum, mut b_sum) = (a_low, b_low);
    add_into(&mut a_sum, &a_high);
    add_into(&mut b_sum, &b_high);
    let mut middle = product(&a_sum, &b_sum);
    sub_from(&mut middle, &low);
    sub_from(&mut middle, &high);
    let mut all = alloc::vec![0; long.len() + short.len() + 1];
    add_within(&mut all, &low);
    add_within(&mut all[half..], Natural::of_limbs(middle).limbs());
    if !high.is_empty() {
        add_within(&mut all[2 * half..], Natural::of_limbs(high).limbs());
    }
    all
}

fn long_product(long: &[u32], short: &[u32]) -> Vec<u32> {
    let mut all = alloc::vec![0u32; long.len() + short.len()];
    for (i, x) in short.iter().enumerate() {
        let mut carry = 0;
        for (limb, y) in all[i..].iter_mut().zip(long) {
            let wide = u64::from(*x) * u64::from(*y) + u64::from(*limb) + carry;
            carry = wide / WIDE_BASE;
            *limb = (wide % WIDE_BASE) as u32;
        }
        all[i + long.len()] = carry as u32;
    }
    all
}
