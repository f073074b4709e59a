//! Decimals from and to text, integers and floats.

use super::{Decimal, LIMIT, POW10, SCALE_MAX, overflow};
use crate::error::{SqlError, SqlState};
use alloc::format;
use core::fmt;
use core::str::FromStr;

impl From<i64> for Decimal {
    #[inline]
    fn from(value: i64) -> Decimal {
        Decimal {
            unscaled: i128::from(value).to_le_bytes(),
            scale: 0,
        }
    }
}

impl TryFrom<(i128, u8)> for Decimal {
    type Error = &'static str;
    fn try_from((unscaled, scale): (i128, u8)) -> Result<Decimal, &'static str> {
        Decimal::from_parts(unscaled, scale).ok_or("numeric has more than 38 digits")
    }
}

impl From<Decimal> for (i128, u8) {
    fn from(value: Decimal) -> (i128, u8) {
        (value.unscaled(), value.scale)
    }
}

impl Decimal {
    /// The number rounded half away from zero to an integer. 22003 if outside `bigint`.
    pub fn to_i64(self) -> Result<i64, SqlError> {
        let rounded = self.round(0)?.unscaled();
        i64::try_from(rounded)
            .map_err(|_| SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "bigint out of range"))
    }

    /// The number if it is an integer inside `bigint`.
    pub fn to_i64_exact(self) -> Option<i64> {
        let unit = POW10[self.scale as usize] as i128;
        let unscaled = self.unscaled();
        (unscaled % unit == 0)
            .then(|| i64::try_from(unscaled / unit).ok())
            .flatten()
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        const EXACT: u128 = 1 << 53;
        let magnitude = self.magnitude();
        // Both sides are exact floats (10^22 is the last exact power), so the quotient is the
        // correctly rounded one; otherwise the parser rounds correctly.
        if magnitude < EXACT && self.scale <= 22 {
            return self.unscaled() as f64 / POW10[self.scale as usize] as f64;
        }
        let text = format!("{}e-{}", self.unscaled(), self.scale);
        text.parse()
            .expect("an integer and an exponent are a float")
    }
}

/// A number while its text is read: `magnitude / 10^scale`, the scale of any sign.
#[derive(Default)]
struct Digits {
    negative: bool,
    magnitude: u128,
    scale: i32,
    overflow: bool,
}

/// The text is not a number.
#[derive(Debug)]
struct NotANumber;

impl Digits {
    /// Reads `[sign] digits [. digits]`.
    fn read(&mut self, text: &str) -> Result<(), NotANumber> {
        let bytes = text.as_bytes();
        let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        self.negative = bytes.first() == Some(&b'-');
        let (mut seen, mut point) = (false, false);
        for byte in &bytes[start..] {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    self.push(u128::from(byte - b'0'), point);
                }
                b'.' if !point => point = true,
                _ => return Err(NotANumber),
            }
        }
        if seen { Ok(()) } else { Err(NotANumber) }
    }

    fn push(&mut self, digit: u128, fraction: bool) {
        match self.magnitude.checked_mul(10) {
            Some(raised) if raised < LIMIT => {
                self.magnitude = raised + digit;
                self.scale += i32::from(fraction);
            }
            _ => self.overflow = true,
        }
    }

    /// Multiplies by `10^exponent`.
    fn shift(&mut self, exponent: i32) {
        self.scale = self.scale.saturating_sub(exponent);
        if self.magnitude == 0 {
            self.scale = self.scale.max(0);
        }
        while self.scale < 0 && !self.overflow {
            match self.magnitude.checked_mul(10) {
                Some(raised) if raised < LIMIT => self.magnitude = raised,
                _ => self.overflow = true,
            }
            self.scale += 1;
        }
    }

    fn finish(self) -> Result<Decimal, SqlError> {
        if self.overflow || self.scale > i32::from(SCALE_MAX) {
            return Err(overflow());
        }
        Decimal::from_magnitude(self.negative, self.magnitude, self.scale as u8)
    }
}

impl FromStr for Decimal {
    type Err = SqlError;

    /// Reads PostgreSQL's `numeric` input: sign, digits, point, exponent, blanks around.
    ///
    /// 22P02 if it is no number, 22003 if it has more than 38 digits. What may have more, be NaN or
    /// infinite is read by [`crate::numeric::parse`].
    fn from_str(text: &str) -> Result<Decimal, SqlError> {
        let invalid = || {
            let message = format!("invalid input syntax for type numeric: \"{text}\"");
            SqlError::new(SqlState::INVALID_TEXT, message)
        };
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let (mantissa, exponent) = match trimmed.find(['e', 'E']) {
            Some(at) => (&trimmed[..at], Some(&trimmed[at + 1..])),
            None => (trimmed, None),
        };
        let mut digits = Digits::default();
        digits.read(mantissa).map_err(|NotANumber| invalid())?;
        if let Some(exponent) = exponent {
            let magnitude = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if magnitude.is_empty() || !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(invalid());
            }
            // 100,000 is beyond every number that fits, so longer exponents need no exact value.
            let value = magnitude.parse::<i32>().unwrap_or(i32::MAX).min(100_000);
            digits.shift(if exponent.starts_with('-') {
                -value
            } else {
                value
            });
        }
        digits.finish()
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = POW10[self.scale as usize];
        let (whole, fraction) = (self.magnitude() / unit, self.magnitude() % unit);
        if self.is_negative() {
            f.write_str("-")?;
        }
        // 64-bit division is several times faster and nearly every number fits.
        match u64::try_from(whole) {
            Ok(whole) => write!(f, "{whole}")?,
            Err(_) => write!(f, "{whole}")?,
        }
        if self.scale == 0 {
            return Ok(());
        }
        let width = self.scale as usize;
        match u64::try_from(fraction) {
            Ok(fraction) => write!(f, ".{fraction:0width$}"),
            Err(_) => write!(f, ".{fraction:0width$}"),
        }
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
