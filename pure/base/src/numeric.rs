//! `numeric` beyond the 38 digits of a [`Decimal`]: up to 131,072 digits before the point and
//! 16,383 behind it, NaN and the infinities.
//!
//! A number that fits is always a [`Datum::Decimal`]; every other one is a [`Datum::Large`]. The
//! functions here take both, and give the small form wherever it fits ([`Numeric::into_datum`]).
//! Scales of results are PostgreSQL's. Work is bounded: what would take longer than about a tenth
//! of a second is 54000.

mod convert;
mod natural;
mod series;
#[cfg(test)]
mod tests;

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use alloc::boxed::Box;
use core::cmp::Ordering;
use natural::{Natural, Rest};

pub(crate) use convert::{TAG_LEAST, decode, encoded_len, from_key, from_wire, write};
pub use convert::{from_f32, from_f64, parse};
pub use series::factorial;

/// Most digits before the point.
pub const WHOLE_DIGITS_MAX: usize = 131_072;
/// Most digits behind the point.
pub const FRACTION_DIGITS_MAX: usize = 16_383;
/// Most digits behind the point of what is not exact: roots, logarithms, quotients.
pub const RESULT_SCALE_MAX: i64 = 1_000;
/// Significant digits that are aimed at.
pub const DIGITS_MIN: i64 = 16;
/// Pairs of limbs that a division or a root may multiply.
const WORK_MAX: usize = 24_000_000;

/// A number of any size, NaN, or an infinity.
#[derive(Clone, PartialEq, Debug)]
pub enum Numeric {
    /// Not a number: equal to itself, and above every number.
    Nan,
    /// `negative`: below every number, else above.
    Infinity {
        /// The sign.
        negative: bool,
    },
    /// A number.
    Finite(Finite),
}

/// `magnitude / 10^scale` with a sign.
#[derive(Clone, Debug)]
pub struct Finite {
    negative: bool,
    scale: usize,
    magnitude: Natural,
}

impl PartialEq for Finite {
    fn eq(&self, other: &Finite) -> bool {
        self.cmp(other).is_eq()
    }
}

/// The error of a result that is too large: 22003.
pub(crate) fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        "value overflows numeric format",
    )
}

fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

fn too_long() -> SqlError {
    let message = "numeric values have too many digits for this operation";
    SqlError::new(SqlState::PROGRAM_LIMIT, message).hint("Round them first.")
}

/// Refuses what multiplies this many pairs of limbs, several times over.
fn bounded(a_digits: usize, b_digits: usize, times: usize) -> Result<(), SqlError> {
    let limbs = |digits: usize| digits / natural::LIMB_DIGITS + 1;
    let work = limbs(a_digits).saturating_mul(limbs(b_digits));
    match work.saturating_mul(times) <= WORK_MAX {
        true => Ok(()),
        false => Err(too_long()),
    }
}

impl Finite {
    fn new(negative: bool, scale: usize, magnitude: Natural) -> Finite {
        Finite {
            negative: negative && !magnitude.is_zero(),
            scale,
            magnitude,
        }
    }

    fn zero(scale: usize) -> Finite {
        Finite::new(false, scale, Natural::default())
    }

    fn one() -> Finite {
        Finite::of_int(1)
    }

    fn of_int(value: i64) -> Finite {
        let size = Natural::of_u128(value.unsigned_abs().into());
        Finite::new(value < 0, 0, size)
    }

    fn is_zero(&self) -> bool {
        self.magnitude.is_zero()
    }

    /// Number of digits before the point, negative if the first digit stands behind zeros there.
    fn whole_digits(&self) -> i64 {
        self.magnitude.digits() as i64 - self.scale as i64
    }

    /// The power of ten of the first digit; 0 for zero.
    fn exponent(&self) -> i64 {
        if self.is_zero() {
            return 0;
        }
        self.whole_digits() - 1
    }

    /// The power of 10,000 of the first group of four digits, counted from the point, and the
    /// group; zero has weight 0.
    fn leading_group(&self) -> (i64, u32) {
        if self.is_zero() {
            return (0, 0);
        }
        let weight = self.exponent().div_euclid(4);
        let wanted = (self.exponent() - weight * 4 + 1) as usize;
        let digits = self.magnitude.digits();
        let group = match digits >= wanted {
            true => self.magnitude.lowered(digits - wanted).0,
            false => self.magnitude.raised(wanted - digits),
        };
        (weight, group.limbs().first().copied().unwrap_or(0))
    }

    /// The magnitudes of both over the larger of the scales.
    fn aligned(&self, other: &Finite) -> (Natural, Natural, usize) {
        let scale = self.scale.max(other.scale);
        let raise = |one: &Finite| match scale - one.scale {
            0 => one.magnitude.clone(),
            missing => one.magnitude.raised(missing),
        };
        (raise(self), raise(other), scale)
    }

    fn neg(&self) -> Finite {
        Finite::new(!self.negative, self.scale, self.magnitude.clone())
    }

    fn abs(&self) -> Finite {
        Finite::new(false, self.scale, self.magnitude.clone())
    }

    fn add(&self, other: &Finite) -> Finite {
        let (a, b, scale) = self.aligned(other);
        if self.negative == other.negative {
            return Finite::new(self.negative, scale, a.add(&b));
        }
        match a.cmp(&b) {
            Ordering::Less => Finite::new(other.negative, scale, b.sub(&a)),
            _ => Finite::new(self.negative, scale, a.sub(&b)),
        }
    }

    fn sub(&self, other: &Finite) -> Finite {
        self.add(&other.neg())
    }

    fn mul(&self, other: &Finite) -> Finite {
        let product = self.magnitude.mul(&other.magnitude);
        Finite::new(
            self.negative != other.negative,
            self.scale + other.scale,
            product,
        )
    }

    /// The quotient with `scale` digits behind the point; the divisor is not zero.
    fn div(&self, other: &Finite, scale: usize, rounds: bool) -> Result<Finite, SqlError> {
        // One digit more, which rounds.
        let shift = (scale + 1 + other.scale) as i64 - self.scale as i64;
        let dividend = match usize::try_from(shift) {
            Ok(shift) => self.magnitude.raised(shift),
            Err(_) => self.magnitude.lowered(shift.unsigned_abs() as usize).0,
        };
        let divisor = &other.magnitude;
        let longer = dividend.digits().saturating_sub(divisor.digits());
        bounded(longer, divisor.digits(), 1)?;
        let (quotient, _) = dividend.div_rem(divisor);
        let (mut kept, rest) = quotient.lowered(1);
        if rounds && matches!(rest, Rest::Half | Rest::High) {
            kept = kept.add(&Natural::of_u128(1));
        }
        Ok(Finite::new(self.negative != other.negative, scale, kept))
    }

    /// The number with this many digits behind the point; a negative number rounds to tens,
    /// hundreds and so on. `up` says whether what is dropped moves the rest away from zero.
    fn to_scale(&self, scale: i64, up: impl Fn(Rest) -> bool) -> Finite {
        let kept = usize::try_from(scale).unwrap_or(0);
        if scale >= self.scale as i64 {
            let raised = self.magnitude.raised(kept - self.scale);
            return Finite::new(self.negative, kept, raised);
        }
        let dropped = (self.scale as i64).saturating_sub(scale);
        let dropped = usize::try_from(dropped).unwrap_or(usize::MAX);
        let (mut magnitude, rest) = self.magnitude.lowered(dropped);
        if up(rest) {
            magnitude = magnitude.add(&Natural::of_u128(1));
        }
        if scale < 0 && !magnitude.is_zero() {
            magnitude = magnitude.raised(scale.unsigned_abs() as usize);
        }
        Finite::new(self.negative, kept, magnitude)
    }

    fn round(&self, scale: i64) -> Finite {
        self.to_scale(scale, |rest| matches!(rest, Rest::Half | Rest::High))
    }

    fn trunc(&self, scale: i64) -> Finite {
        self.to_scale(scale, |_| false)
    }

    /// The smallest scale that holds the number.
    fn min_scale(&self) -> usize {
        match self.is_zero() {
            true => 0,
            false => self.scale - self.scale.min(self.magnitude.trailing_zeros()),
        }
    }

    fn is_integer(&self) -> bool {
        self.min_scale() == 0
    }

    fn cmp(&self, other: &Finite) -> Ordering {
        let side = |one: &Finite| match (one.is_zero(), one.negative) {
            (true, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let (a, b) = (side(self), side(other));
        if a != b || a == 0 {
            return a.cmp(&b);
        }
        let size = self.exponent().cmp(&other.exponent()).then_with(|| {
            let (a, b, _) = self.aligned(other);
            a.cmp(&b)
        });
        if self.negative { size.reverse() } else { size }
    }

    /// The integer, if it is one of 64 bits.
    fn to_i64_exact(&self) -> Option<i64> {
        if !self.is_integer() || self.whole_digits() > 19 {
            return None;
        }
        let size = i128::try_from(self.trunc(0).magnitude.to_u128()?).ok()?;
        i64::try_from(if self.negative { -size } else { size }).ok()
    }

    /// The number with no more digits behind the point than it may have; 22003 if too many stand
    /// before it.
    fn checked(self) -> Result<Finite, SqlError> {
        if self.whole_digits() > WHOLE_DIGITS_MAX as i64 || self.scale > FRACTION_DIGITS_MAX {
            return Err(overflow());
        }
        Ok(self)
    }

    fn small(&self) -> Option<Decimal> {
        if self.scale > usize::from(crate::decimal::SCALE_MAX) {
            return None;
        }
        let size = i128::try_from(self.magnitude.to_u128()?).ok()?;
        Decimal::from_parts(if self.negative { -size } else { size }, self.scale as u8)
    }
}

impl From<Decimal> for Numeric {
    fn from(value: Decimal) -> Numeric {
        let unscaled = value.unscaled();
        Numeric::Finite(Finite::new(
            unscaled < 0,
            usize::from(value.scale()),
            Natural::of_u128(unscaled.unsigned_abs()),
        ))
    }
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::Finite(Finite::of_int(value))
    }
}

impl Numeric {
    /// The number that a value is; `None` for other values than integers and numerics.
    pub fn of(value: &Datum) -> Option<Numeric> {
        match value {
            Datum::Int(value) => Some(Numeric::from(*value)),
            Datum::Decimal(value) => Some(Numeric::from(*value)),
            Datum::Large(value) => Some((**value).clone()),
            _ => None,
        }
    }

    /// The value in the form that it has in a row.
    ///
    /// # Errors
    /// 22003 if it has too many digits.
    pub fn into_datum(self) -> Result<Datum, SqlError> {
        Ok(match self {
            Numeric::Finite(finite) => match finite.small() {
                Some(small) => Datum::Decimal(small),
                None => Datum::Large(Box::new(Numeric::Finite(finite.checked()?))),
            },
            other => Datum::Large(Box::new(other)),
        })
    }

    fn infinity(negative: bool) -> Numeric {
        Numeric::Infinity { negative }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        match self {
            Numeric::Nan => false,
            Numeric::Infinity { negative } => *negative,
            Numeric::Finite(finite) => finite.negative,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Finite(finite) if finite.is_zero())
    }

    /// Whether it is not a number.
    pub fn is_nan(&self) -> bool {
        matches!(self, Numeric::Nan)
    }

    /// Whether it is a number, neither NaN nor infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Finite(_))
    }

    /// The order of numbers; NaN is above all of them and equal to itself.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        let rank = |one: &Numeric| match one {
            Numeric::Infinity { negative: true } => 0,
            Numeric::Finite(_) => 1,
            Numeric::Infinity { negative: false } => 2,
            Numeric::Nan => 3,
        };
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }

    /// With the opposite sign.
    #[must_use]
    pub fn neg(&self) -> Numeric {
        match self {
            Numeric::Nan => Numeric::Nan,
            Numeric::Infinity { negative } => Numeric::infinity(!negative),
            Numeric::Finite(finite) => Numeric::Finite(finite.neg()),
        }
    }

    /// Without its sign.
    #[must_use]
    pub fn abs(&self) -> Numeric {
        match self.is_negative() {
            true => self.neg(),
            false => self.clone(),
        }
    }

    /// -1, 0 or 1; NaN of NaN.
    #[must_use]
    pub fn sign(&self) -> Numeric {
        match self {
            Numeric::Nan => Numeric::Nan,
            other if other.is_zero() => Numeric::from(0),
            other if other.is_negative() => Numeric::from(-1),
            _ => Numeric::from(1),
        }
    }

    /// The sum, exact.
    #[must_use]
    pub fn add(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Nan, _) | (_, Numeric::Nan) => Numeric::Nan,
            (Numeric::Infinity { negative: a }, Numeric::Infinity { negative: b }) if a != b => {
                Numeric::Nan
            }
            (Numeric::Infinity { negative }, _) | (_, Numeric::Infinity { negative }) => {
                Numeric::infinity(*negative)
            }
            (Numeric::Finite(a), Numeric::Finite(b)) => Numeric::Finite(a.add(b)),
        }
    }

    /// The difference, exact.
    #[must_use]
    pub fn sub(&self, other: &Numeric) -> Numeric {
        self.add(&other.neg())
    }

    /// The product, exact but for digits that no number has.
    #[must_use]
    pub fn mul(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Nan, _) | (_, Numeric::Nan) => Numeric::Nan,
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let product = a.mul(b);
                Numeric::Finite(match product.scale > FRACTION_DIGITS_MAX {
                    true => product.round(FRACTION_DIGITS_MAX as i64),
                    false => product,
                })
            }
            (a, b) if a.is_zero() || b.is_zero() => Numeric::Nan,
            (a, b) => Numeric::infinity(a.is_negative() != b.is_negative()),
        }
    }

    /// The quotient, rounded, with at least 16 significant digits and no less scale than the
    /// operands.
    ///
    /// # Errors
    /// 22012 if `other` is zero, 54000.
    pub fn div(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                if b.is_zero() {
                    return Err(division_by_zero());
                }
                a.div(b, quotient_scale(a, b), true).map(Numeric::Finite)
            }
            (a, b) => special_quotient(a, b),
        }
    }

    /// The integer part of the quotient.
    ///
    /// # Errors
    /// As [`Numeric::div`].
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let (quotient, _, negative, _) = a.whole_quotient(b)?;
                Ok(Numeric::Finite(Finite::new(negative, 0, quotient)))
            }
            (a, b) => special_quotient(a, b),
        }
    }

    /// What the division towards zero leaves, with the sign of `self`.
    ///
    /// # Errors
    /// As [`Numeric::div`].
    pub fn rem(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Nan, _) | (_, Numeric::Nan) => Ok(Numeric::Nan),
            (Numeric::Infinity { .. }, b) if b.is_zero() => Err(division_by_zero()),
            (Numeric::Infinity { .. }, _) => Ok(Numeric::Nan),
            (a, Numeric::Infinity { .. }) => Ok(a.clone()),
            (Numeric::Finite(a), Numeric::Finite(b)) => {
                let (_, rest, _, scale) = a.whole_quotient(b)?;
                Ok(Numeric::Finite(Finite::new(a.negative, scale, rest)))
            }
        }
    }

    fn mapped(&self, of: impl Fn(&Finite) -> Finite) -> Numeric {
        match self {
            Numeric::Finite(finite) => Numeric::Finite(of(finite)),
            other => other.clone(),
        }
    }

    /// Rounded half away from zero to `scale` digits behind the point, before it if negative.
    #[must_use]
    pub fn round(&self, scale: i64) -> Numeric {
        let scale = in_digits(scale);
        self.mapped(|finite| finite.round(scale))
    }

    /// As [`Numeric::round`], towards zero.
    #[must_use]
    pub fn trunc(&self, scale: i64) -> Numeric {
        let scale = in_digits(scale);
        self.mapped(|finite| finite.trunc(scale))
    }

    /// The smallest integer that is not less.
    #[must_use]
    pub fn ceil(&self) -> Numeric {
        self.mapped(|it| it.to_scale(0, |rest| rest != Rest::Nothing && !it.negative))
    }

    /// The largest integer that is not greater.
    #[must_use]
    pub fn floor(&self) -> Numeric {
        self.mapped(|it| it.to_scale(0, |rest| rest != Rest::Nothing && it.negative))
    }

    /// Digits behind the point; `None` if it is no number.
    pub fn scale(&self) -> Option<usize> {
        match self {
            Numeric::Finite(finite) => Some(finite.scale),
            _ => None,
        }
    }

    /// Digits behind the point that are needed; `None` if it is no number.
    pub fn min_scale(&self) -> Option<usize> {
        match self {
            Numeric::Finite(finite) => Some(finite.min_scale()),
            _ => None,
        }
    }

    /// Without zeros at the end of the fraction.
    #[must_use]
    pub fn trim_scale(&self) -> Numeric {
        self.mapped(|finite| finite.trunc(finite.min_scale() as i64))
    }

    /// The number as a column `numeric(precision, scale)` keeps it.
    ///
    /// # Errors
    /// 22003 "numeric field overflow".
    pub fn rescale(&self, precision: u16, scale: i16) -> Result<Numeric, SqlError> {
        let field = |what: &str| {
            let message = "numeric field overflow";
            SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message).detail(alloc::format!(
                "A field with precision {precision}, scale {scale} {what}."
            ))
        };
        let Numeric::Finite(finite) = self else {
            return match self.is_nan() {
                true => Ok(Numeric::Nan),
                false => Err(field("cannot hold an infinite value")),
            };
        };
        let rounded = finite.round(scale.into());
        let digits = i64::from(precision) - i64::from(scale);
        if !rounded.is_zero() && rounded.whole_digits() > digits {
            let bound = match digits {
                0 => "1".into(),
                digits => alloc::format!("10^{digits}"),
            };
            let what = alloc::format!("must round to an absolute value less than {bound}");
            return Err(field(&what));
        }
        Ok(Numeric::Finite(rounded))
    }

    /// The largest common divisor, or the least common multiple.
    ///
    /// # Errors
    /// 54000.
    pub fn gcd_lcm(&self, other: &Numeric, lcm: bool) -> Result<Numeric, SqlError> {
        let (Numeric::Finite(a), Numeric::Finite(b)) = (self, other) else {
            return Ok(Numeric::Nan);
        };
        let (a, b, scale) = a.aligned(b);
        bounded(a.digits(), b.digits(), 16)?;
        let (mut x, mut y) = (a.clone(), b.clone());
        while !y.is_zero() {
            let (_, rest) = x.div_rem(&y);
            (x, y) = (y, rest);
        }
        let result = match lcm {
            false => x,
            true if x.is_zero() => x,
            // Of `a / gcd` and `b` with their scale once.
            true => a.div_rem(&x).0.mul(&b),
        };
        Ok(Numeric::Finite(Finite::new(false, scale, result)))
    }

    /// The integer, rounded half away from zero; `None` if it is none of 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        match self {
            Numeric::Finite(finite) => finite.round(0).to_i64_exact(),
            _ => None,
        }
    }
}

/// A number of digits to which numbers may be rounded.
fn in_digits(scale: i64) -> i64 {
    scale.clamp(-(WHOLE_DIGITS_MAX as i64) - 1, FRACTION_DIGITS_MAX as i64)
}

impl Finite {
    /// Quotient and remainder of the division towards zero: magnitudes, the sign of the quotient,
    /// the scale of the remainder.
    fn whole_quotient(&self, b: &Finite) -> Result<(Natural, Natural, bool, usize), SqlError> {
        if b.is_zero() {
            return Err(division_by_zero());
        }
        let (dividend, divisor, scale) = self.aligned(b);
        let longer = dividend.digits().saturating_sub(divisor.digits());
        bounded(longer, divisor.digits(), 1)?;
        let (quotient, rest) = dividend.div_rem(&divisor);
        Ok((quotient, rest, self.negative != b.negative, scale))
    }
}

/// A quotient with NaN or an infinity.
fn special_quotient(a: &Numeric, b: &Numeric) -> Result<Numeric, SqlError> {
    Ok(match (a, b) {
        (Numeric::Nan, _) | (_, Numeric::Nan) => Numeric::Nan,
        (_, b) if b.is_zero() => return Err(division_by_zero()),
        (Numeric::Infinity { .. }, Numeric::Infinity { .. }) => Numeric::Nan,
        (Numeric::Infinity { .. }, _) => Numeric::infinity(a.is_negative() != b.is_negative()),
        _ => Numeric::from(0),
    })
}

/// The scale of a quotient: as many digits as make 16 significant ones, counted in groups of four,
/// and not fewer than either operand has.
fn quotient_scale(dividend: &Finite, divisor: &Finite) -> usize {
    let (weight_a, first_a) = dividend.leading_group();
    let (weight_b, first_b) = divisor.leading_group();
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    let scale = (DIGITS_MIN - weight * 4)
        .max(dividend.scale as i64)
        .max(divisor.scale as i64);
    scale.clamp(0, RESULT_SCALE_MAX) as usize
}

/// An operation of two numbers that is exact in the small form, or else done in the large one.
///
/// # Errors
/// Those of the large form.
fn with(
    a: &Datum,
    b: &Datum,
    small: impl Fn(Decimal, Decimal) -> Result<Decimal, SqlError>,
    large: impl Fn(&Numeric, &Numeric) -> Result<Numeric, SqlError>,
) -> Result<Datum, SqlError> {
    if let (Datum::Decimal(a), Datum::Decimal(b)) = (a, b)
        && let Ok(result) = small(*a, *b)
    {
        return Ok(Datum::Decimal(result));
    }
    let (Some(a), Some(b)) = (Numeric::of(a), Numeric::of(b)) else {
        return Ok(Datum::Null);
    };
    large(&a, &b)?.into_datum()
}

/// The sum of two numerics; NULL of other values.
///
/// # Errors
/// 22003.
#[inline]
pub fn add(a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    with(a, b, Decimal::add, |a, b| Ok(a.add(b)))
}

/// The difference of two numerics.
///
/// # Errors
/// 22003.
pub fn sub(a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    with(a, b, Decimal::sub, |a, b| Ok(a.sub(b)))
}

/// The product of two numerics.
///
/// # Errors
/// 22003.
pub fn mul(a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    with(a, b, Decimal::mul, |a, b| Ok(a.mul(b)))
}

/// The quotient of two numerics.
///
/// # Errors
/// 22003, 22012, 54000.
pub fn div(a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    with(a, b, Decimal::div, Numeric::div)
}

/// The remainder of the division of two numerics.
///
/// # Errors
/// 22003, 22012, 54000.
pub fn rem(a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    with(a, b, Decimal::rem, Numeric::rem)
}
