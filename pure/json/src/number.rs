//! Numbers of any length as text: `-?digits(.digits)?` without exponent and without zeros in
//! front. The fraction keeps its zeros, as a `numeric` does.

use crate::JsonError;
use alloc::string::String;
use core::cmp::Ordering;
use core::iter::repeat_n;

/// Most digits before and behind the point, as in PostgreSQL.
pub(crate) const WHOLE_MAX: i64 = 131_072;
pub(crate) const FRACTION_MAX: i64 = 16_383;

fn overflow() -> JsonError {
    JsonError::new("22003", "value overflows numeric format")
}

/// Appends the normal form of a number of JSON.
pub(crate) fn normalise(word: &str, out: &mut String) -> Result<(), JsonError> {
    let (negative, magnitude) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let (mantissa, exponent) = match magnitude.find(['e', 'E']) {
        // An exponent that is no i64 is far outside all bounds.
        Some(at) => {
            let exponent = magnitude[at + 1..].parse::<i64>().map_err(|_| overflow())?;
            (&magnitude[..at], exponent)
        }
        None => (magnitude, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent.abs() > i64::from(i32::MAX) / 2 {
        return Err(overflow());
    }
    let scale = (fraction.len() as i64 - exponent).max(0);
    let digits = || whole.bytes().chain(fraction.bytes());
    let zeros = digits().take_while(|digit| *digit == b'0').count();
    let count = whole.len() + fraction.len();
    let is_zero = zeros == count;
    // Digits before the point, from the first that is not zero.
    let before = whole.len() as i64 + exponent - zeros as i64;
    if !is_zero && before > WHOLE_MAX || scale > FRACTION_MAX {
        return Err(overflow());
    }
    if negative && !is_zero {
        out.push('-');
    }
    let mut rest = digits().skip(zeros).map(char::from);
    if is_zero || before <= 0 {
        out.push('0');
    } else {
        let taken = (before as usize).min(count - zeros);
        out.extend(rest.by_ref().take(taken));
        out.extend(repeat_n('0', before as usize - taken));
    }
    if scale > 0 {
        out.push('.');
        let gap = match is_zero {
            true => scale,
            false => (-before).clamp(0, scale),
        };
        out.extend(repeat_n('0', gap as usize));
        let mut left = scale - gap;
        while let (true, Some(digit)) = (left > 0, rest.next()) {
            out.push(digit);
            left -= 1;
        }
        out.extend(repeat_n('0', left as usize));
    }
    Ok(())
}

/// A number in normal form as sign, place of the first digit before the point, and digits: its
/// value is 0.d1d2d3... * 10^exponent. Without digits it is zero.
pub(crate) struct Parts<'a> {
    pub(crate) negative: bool,
    pub(crate) exponent: i32,
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(number: &'a str) -> Parts<'a> {
        let (negative, magnitude) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
        let whole = whole.trim_start_matches('0');
        let mut fraction = fraction.trim_end_matches('0');
        let mut exponent = whole.len() as i32;
        let mut whole = whole;
        if whole.is_empty() {
            let digits = fraction.trim_start_matches('0');
            exponent = -((fraction.len() - digits.len()) as i32);
            fraction = digits;
        } else if fraction.is_empty() {
            whole = whole.trim_end_matches('0');
        }
        Parts {
            negative: negative && !(whole.is_empty() && fraction.is_empty()),
            exponent,
            whole,
            fraction,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Digits without zeros at either end.
    pub(crate) fn digits(&self) -> impl Iterator<Item = u8> + 'a {
        self.whole.bytes().chain(self.fraction.bytes())
    }
}

/// Order of two numbers in normal form.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (a, b) = (Parts::of(a), Parts::of(b));
    let sign = |parts: &Parts<'_>| match (parts.is_zero(), parts.negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let signs = sign(&a).cmp(&sign(&b));
    if signs.is_ne() || a.is_zero() {
        return signs;
    }
    let magnitudes = a.exponent.cmp(&b.exponent);
    let magnitudes = magnitudes.then_with(|| a.digits().cmp(b.digits()));
    if a.negative {
        magnitudes.reverse()
    } else {
        magnitudes
    }
}
