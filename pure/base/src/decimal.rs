//! `numeric`: exact decimal numbers of at most 38 significant digits.
//!
//! A value is `unscaled / 10^scale` with a scale of 0 to 38. The scale is kept (1.50 prints as
//! 1.50) but does not count in comparisons: 1.5 and 1.50 are equal, hash equally and have equal
//! keys.
//!
//! This is the form of nearly every number, in 17 bytes. Results that do not fit it are an error,
//! never rounded; [`crate::numeric`] then computes them with as many digits as they need.

mod convert;
mod divide;

use crate::error::{SqlError, SqlState};
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use serde::{Deserialize, Serialize};

/// Largest scale.
pub const SCALE_MAX: u8 = crate::limits::NUMERIC_DIGITS_MAX;

/// Powers of ten up to 10^38, the largest that 128 bits hold.
pub(crate) static POW10: [u128; 39] = {
    let mut powers = [1u128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// 10^38, the first magnitude that is too large.
const LIMIT: u128 = 10u128.pow(SCALE_MAX as u32);

/// An exact decimal number. Equality, order and hash are those of the number, whatever its scale.
///
/// Stored as bytes so that it has no alignment and a [`crate::Datum`] stays at 24 bytes.
/// Invariant: `|unscaled| < 10^38` and `scale <= 38`; deserialization checks it.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "(i128, u8)", into = "(i128, u8)")]
pub struct Decimal {
    unscaled: [u8; 16],
    scale: u8,
}

/// The error of a result that needs more than 38 digits: 22003.
pub(crate) fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value overflows numeric format",
    )
    .detail("A numeric value has at most 38 significant digits.")
}

/// The error of a division by zero: 22012.
pub(crate) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[expect(
    clippy::should_implement_trait,
    reason = "the operator traits cannot return errors; one way to write each operation"
)]
impl Decimal {
    /// Zero of scale 0.
    pub const ZERO: Decimal = Decimal {
        unscaled: [0; 16],
        scale: 0,
    };
    /// One of scale 0.
    pub const ONE: Decimal = Decimal {
        unscaled: 1i128.to_le_bytes(),
        scale: 0,
    };

    /// `unscaled / 10^scale`; `None` if `scale > 38` or `|unscaled| >= 10^38`.
    #[inline]
    pub fn from_parts(unscaled: i128, scale: u8) -> Option<Decimal> {
        (scale <= SCALE_MAX && unscaled.unsigned_abs() < LIMIT).then(|| Decimal {
            unscaled: unscaled.to_le_bytes(),
            scale,
        })
    }

    /// As [`Decimal::from_parts`], from sign and magnitude.
    fn from_magnitude(negative: bool, magnitude: u128, scale: u8) -> Result<Decimal, SqlError> {
        if magnitude >= LIMIT || scale > SCALE_MAX {
            return Err(overflow());
        }
        let unscaled = if negative {
            -(magnitude as i128)
        } else {
            magnitude as i128
        };
        Ok(Decimal {
            unscaled: unscaled.to_le_bytes(),
            scale,
        })
    }

    /// The number times `10^scale`.
    #[inline]
    pub fn unscaled(self) -> i128 {
        i128::from_le_bytes(self.unscaled)
    }

    /// Number of fraction digits, 0 to 38.
    #[inline]
    pub fn scale(self) -> u8 {
        self.scale
    }

    fn magnitude(self) -> u128 {
        self.unscaled().unsigned_abs()
    }

    /// Whether the number is below zero.
    pub fn is_negative(self) -> bool {
        self.unscaled() < 0
    }

    /// Whether the number is zero.
    pub fn is_zero(self) -> bool {
        self.unscaled() == 0
    }

    /// Both numbers over the larger of the two scales; `None` if one does not fit 128 bits there.
    #[inline]
    fn align(self, other: Decimal) -> Option<(i128, i128, u8)> {
        let (a, b) = (self.unscaled(), other.unscaled());
        if self.scale == other.scale {
            return Some((a, b, self.scale));
        }
        let raise = |value: i128, by: u8| value.checked_mul(POW10[by as usize] as i128);
        if self.scale < other.scale {
            Some((raise(a, other.scale - self.scale)?, b, other.scale))
        } else {
            Some((a, raise(b, self.scale - other.scale)?, self.scale))
        }
    }

    /// The sum, exact, with the larger scale. 22003 if it needs more than 38 digits.
    #[inline]
    pub fn add(self, other: Decimal) -> Result<Decimal, SqlError> {
        let (a, b, scale) = self.align(other).ok_or_else(overflow)?;
        let sum = a.checked_add(b).ok_or_else(overflow)?;
        Decimal::from_parts(sum, scale).ok_or_else(overflow)
    }

    /// The difference, exact, with the larger scale. 22003 if it needs more than 38 digits.
    #[inline]
    pub fn sub(self, other: Decimal) -> Result<Decimal, SqlError> {
        self.add(other.neg())
    }

    /// The number with the opposite sign.
    #[inline]
    pub fn neg(self) -> Decimal {
        Decimal {
            unscaled: (-self.unscaled()).to_le_bytes(),
            scale: self.scale,
        }
    }

    /// The number without its sign.
    pub fn abs(self) -> Decimal {
        Decimal {
            unscaled: self.unscaled().abs().to_le_bytes(),
            scale: self.scale,
        }
    }

    /// -1, 0 or 1, with scale 0.
    pub fn signum(self) -> Decimal {
        Decimal {
            unscaled: self.unscaled().signum().to_le_bytes(),
            scale: 0,
        }
    }

    /// The product, exact; its scale is the sum of the scales. 22003 if it needs more than 38
    /// digits.
    pub fn mul(self, other: Decimal) -> Result<Decimal, SqlError> {
        let product = self.unscaled().checked_mul(other.unscaled());
        product
            .and_then(|product| Decimal::from_parts(product, self.scale + other.scale))
            .ok_or_else(overflow)
    }

    /// The quotient, rounded, with at least 16 significant digits and no less scale than the
    /// operands, as PostgreSQL's `select_div_scale` has it. 22012 if `other` is zero, 22003 if it
    /// needs more than 38 digits.
    pub fn div(self, other: Decimal) -> Result<Decimal, SqlError> {
        if other.is_zero() {
            return Err(division_by_zero());
        }
        let scale = divide::quotient_scale(self, other).ok_or_else(overflow)?;
        let quotient = self.div_with_scale(other, scale)?;
        match quotient.scale == scale {
            true => Ok(quotient),
            false => Err(overflow()),
        }
    }

    /// The quotient rounded half away from zero to `scale` fraction digits (fewer if they do not
    /// fit 38 digits). `scale` must be at least the scale of `self`, and `other` not zero.
    fn div_with_scale(self, other: Decimal, scale: u8) -> Result<Decimal, SqlError> {
        let steps = scale + other.scale - self.scale;
        let (magnitude, scale) =
            divide::long_division(self.magnitude(), other.magnitude(), steps, scale)
                .ok_or_else(overflow)?;
        Decimal::from_magnitude(self.is_negative() != other.is_negative(), magnitude, scale)
    }

    /// The integer part of the quotient, towards zero, with scale 0 (SQL `div(a, b)`).
    pub fn div_trunc(self, other: Decimal) -> Result<Decimal, SqlError> {
        if other.is_zero() {
            return Err(division_by_zero());
        }
        let (a, b, _) = self.align(other).ok_or_else(overflow)?;
        Decimal::from_parts(a / b, 0).ok_or_else(overflow)
    }

    /// The remainder of the division towards zero; it has the sign of `self`. 22012 if `other` is
    /// zero.
    pub fn rem(self, other: Decimal) -> Result<Decimal, SqlError> {
        if other.is_zero() {
            return Err(division_by_zero());
        }
        let (a, b, scale) = self.align(other).ok_or_else(overflow)?;
        Decimal::from_parts(a % b, scale).ok_or_else(overflow)
    }

    /// Rounded half away from zero to `scale` fraction digits; a negative scale rounds to tens,
    /// hundreds and so on. A larger scale appends zeros. 22003 if the result does not fit.
    pub fn round(self, scale: i32) -> Result<Decimal, SqlError> {
        self.to_scale(scale, |rest, unit| rest >= unit - rest)
    }

    /// As [`Decimal::round`], towards zero.
    pub fn trunc(self, scale: i32) -> Result<Decimal, SqlError> {
        self.to_scale(scale, |_, _| false)
    }

    /// The smallest integer that is not less, with scale 0.
    pub fn ceil(self) -> Result<Decimal, SqlError> {
        let negative = self.is_negative();
        self.to_scale(0, |rest, _| rest > 0 && !negative)
    }

    /// The largest integer that is not greater, with scale 0.
    pub fn floor(self) -> Result<Decimal, SqlError> {
        let negative = self.is_negative();
        self.to_scale(0, |rest, _| rest > 0 && negative)
    }

    /// Changes the scale; `up(rest, unit)` says whether a magnitude with `rest` of `unit` left
    /// over moves away from zero.
    fn to_scale(self, scale: i32, up: impl Fn(u128, u128) -> bool) -> Result<Decimal, SqlError> {
        let kept = scale.clamp(0, i32::from(SCALE_MAX)) as u8;
        let magnitude = self.magnitude();
        if kept >= self.scale && scale >= 0 {
            if scale > i32::from(SCALE_MAX) {
                return Err(overflow());
            }
            let added = usize::from(kept - self.scale);
            let raised = magnitude.checked_mul(POW10[added]).ok_or_else(overflow)?;
            return Decimal::from_magnitude(self.is_negative(), raised, kept);
        }
        let dropped = i64::from(self.scale) - i64::from(scale);
        let Some(unit) = usize::try_from(dropped)
            .ok()
            .and_then(|drop| POW10.get(drop))
        else {
            return Ok(Decimal::ZERO);
        };
        let (mut quotient, rest) = (magnitude / unit, magnitude % unit);
        quotient += u128::from(up(rest, *unit));
        if scale < 0 {
            let power = POW10[scale.unsigned_abs().min(38) as usize];
            quotient = quotient.checked_mul(power).ok_or_else(overflow)?;
        }
        Decimal::from_magnitude(self.is_negative(), quotient, kept)
    }

    /// The number as a column `numeric(precision, scale)` stores it: rounded to `scale`. 22003
    /// "numeric field overflow" if the integer part then has more than `precision - scale` digits.
    pub fn rescale(self, precision: u8, scale: u8) -> Result<Decimal, SqlError> {
        if self.scale == scale && self.magnitude() < POW10[precision.min(SCALE_MAX) as usize] {
            return Ok(self);
        }
        let rounded = self.round(i32::from(scale)).ok().filter(|rounded| {
            rounded.scale == scale && rounded.magnitude() < POW10[precision.min(SCALE_MAX) as usize]
        });
        rounded.ok_or_else(|| {
            let digits = i32::from(precision) - i32::from(scale);
            let bound = if digits == 0 {
                "1".into()
            } else {
                alloc::format!("10^{digits}")
            };
            SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "numeric field overflow").detail(
                alloc::format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute \
                     value less than {bound}."
                ),
            )
        })
    }

    /// The same number with the smallest scale that holds it.
    pub fn normalized(self) -> Decimal {
        let (mut unscaled, mut scale) = (self.unscaled(), self.scale);
        while scale > 0 && unscaled % 10 == 0 {
            unscaled /= 10;
            scale -= 1;
        }
        Decimal {
            unscaled: unscaled.to_le_bytes(),
            scale,
        }
    }
}

impl PartialEq for Decimal {
    #[inline]
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    #[inline]
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    #[inline]
    fn cmp(&self, other: &Decimal) -> Ordering {
        if let Some((a, b, _)) = self.align(*other) {
            return a.cmp(&b);
        }
        // Integer parts first, then the fractions over 10^38; both keep the sign of their number.
        let split = |value: Decimal| {
            let unit = POW10[value.scale as usize] as i128;
            let fraction_unit = POW10[(SCALE_MAX - value.scale) as usize] as i128;
            (
                value.unscaled() / unit,
                (value.unscaled() % unit) * fraction_unit,
            )
        };
        split(*self).cmp(&split(*other))
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let normal = self.normalized();
        normal.unscaled.hash(state);
        normal.scale.hash(state);
    }
}

#[cfg(test)]
mod tests;
