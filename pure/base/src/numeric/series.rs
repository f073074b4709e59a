//! Roots, powers, exponential function and logarithms.
//!
//! They are computed in fixed point, as naturals over a power of ten, with ten digits more than the
//! result has; the last digit is the rounded one but for numbers that lie very close to a half.

use super::natural::{LIMB_DIGITS, Natural, Rest};
use super::{DIGITS_MIN, Finite, Numeric, RESULT_SCALE_MAX, WHOLE_DIGITS_MAX, bounded, overflow};
use crate::error::{SqlError, SqlState};

/// Digits that are computed beside those of the result.
const GUARD: usize = 10;
/// From this argument on, the exponential function overflows.
const EXP_MAX: f64 = 6_000.0;
/// The last number whose factorial fits.
const FACTORIAL_MAX: i64 = 32_177;

fn logarithm_of(what: &str) -> SqlError {
    let message = alloc::format!("cannot take logarithm of {what}");
    SqlError::new(SqlState(*b"2201E"), message)
}

fn scale_of(scale: i64) -> usize {
    scale.clamp(0, RESULT_SCALE_MAX) as usize
}

impl Finite {
    /// The first digits as a float from 1 to below 10, and the power of ten beside it.
    fn mantissa(&self) -> (f64, i64) {
        let digits = self.magnitude.digits();
        let kept = digits.min(17);
        let (head, _) = self.magnitude.lowered(digits - kept);
        let head = head.to_u128().unwrap_or(0) as f64;
        let mut unit = 1.0;
        for _ in 1..kept {
            unit *= 10.0;
        }
        (head / unit, self.exponent())
    }

    /// The nearest float, or an infinity.
    pub(super) fn to_float(&self) -> f64 {
        let (mantissa, exponent) = self.mantissa();
        let size = alloc::format!("{mantissa}e{exponent}")
            .parse()
            .unwrap_or(0.0);
        if self.negative { -size } else { size }
    }

    /// The natural logarithm of the size, as a float.
    fn log_float(&self) -> f64 {
        let (mantissa, exponent) = self.mantissa();
        ln_float(mantissa) + exponent as f64 * core::f64::consts::LN_10
    }

    /// The size times `10^digits`, cut.
    fn fixed(&self, digits: usize) -> Natural {
        match digits.checked_sub(self.scale) {
            Some(missing) => self.magnitude.raised(missing),
            None => self.magnitude.lowered(self.scale - digits).0,
        }
    }

    /// The number that fixed point is, rounded to `scale`.
    fn of_fixed(negative: bool, fixed: Natural, digits: usize, scale: usize) -> Finite {
        Finite::new(negative, digits, fixed).round(scale as i64)
    }

    /// The power of ten of the logarithm, as PostgreSQL estimates it.
    fn log_weight(&self) -> i64 {
        let one = Finite::one();
        let distance = self.sub(&one).abs();
        let tenth = Finite::new(false, 1, Natural::of_u128(1));
        if distance.cmp(&tenth).is_le() {
            return match distance.is_zero() {
                true => 0,
                false => {
                    let (weight, group) = distance.leading_group();
                    weight * 4 + i64::from(group.max(1).ilog10())
                }
            };
        }
        log10_of(self.log_float().abs())
    }

    fn sqrt(&self) -> Result<Finite, SqlError> {
        let weight = self.exponent().div_euclid(4);
        let scale = DIGITS_MIN - ((weight + 1) * 2 - 1);
        self.sqrt_to(scale_of(scale.max(self.scale as i64)))
    }

    /// The root with this scale, rounded.
    fn sqrt_to(&self, scale: usize) -> Result<Finite, SqlError> {
        // One digit more, which rounds.
        let square = self.fixed(2 * (scale + 1));
        bounded(square.digits() / 2, square.digits() / 2, 12)?;
        let (mut root, rest) = square.isqrt().lowered(1);
        if matches!(rest, Rest::Half | Rest::High) {
            root = root.add(&Natural::of_u128(1));
        }
        Ok(Finite::new(false, scale, root))
    }

    fn exp(&self) -> Result<Finite, SqlError> {
        let about = self.to_float();
        let limit = 2_000.0;
        let digits = (about * core::f64::consts::LOG10_E).clamp(-limit, limit) as i64;
        let scale = (DIGITS_MIN - digits).max(self.scale as i64);
        self.exp_to(scale_of(scale))
    }

    fn exp_to(&self, scale: usize) -> Result<Finite, SqlError> {
        let about = self.to_float();
        if about.abs() >= EXP_MAX {
            return match self.negative {
                false => Err(overflow()),
                true => Ok(Finite::zero(scale)),
            };
        }
        let whole = (about.abs() * core::f64::consts::LOG10_E) as usize + 1;
        let digits = scale + whole + GUARD;
        let power = exp_fixed(&self.fixed(digits), digits);
        if !self.negative {
            return Ok(Finite::of_fixed(false, power, digits, scale));
        }
        let one = Natural::of_u128(1).raised(digits + scale + 1);
        let quotient = one.div_rem(&power).0;
        Ok(Finite::of_fixed(false, quotient, scale + 1, scale))
    }

    /// The logarithm with `digits` digits behind the point, not rounded: its sign and size.
    fn ln_fixed(&self, digits: usize) -> Result<(bool, Natural), SqlError> {
        let exponent = self.exponent();
        let inner = digits + GUARD + 6;
        // The number as 1 to below 10, times a power of ten.
        let scale = self.magnitude.digits() - 1;
        let mantissa = Finite::new(false, scale, self.magnitude.clone());
        let of_mantissa = ln_mantissa(&mantissa.fixed(inner), mantissa.mantissa().0, inner);
        let mut sum = Finite::new(false, inner, of_mantissa);
        if exponent != 0 {
            let ten = Natural::of_u128(10).raised(inner);
            let ten = ln_mantissa(&ten, 10.0, inner);
            let tens = ten.mul(&Natural::of_u128(exponent.unsigned_abs().into()));
            sum = sum.add(&Finite::new(exponent < 0, inner, tens));
        }
        Ok((sum.negative, sum.fixed(digits)))
    }

    fn ln_to(&self, scale: usize) -> Result<Finite, SqlError> {
        self.positive()?;
        let digits = scale + GUARD;
        let (negative, size) = self.ln_fixed(digits)?;
        Ok(Finite::of_fixed(negative, size, digits, scale))
    }

    fn positive(&self) -> Result<(), SqlError> {
        match (self.is_zero(), self.negative) {
            (true, _) => Err(logarithm_of("zero")),
            (_, true) => Err(logarithm_of("a negative number")),
            _ => Ok(()),
        }
    }

    fn ln(&self) -> Result<Finite, SqlError> {
        self.positive()?;
        let scale = DIGITS_MIN - self.log_weight();
        self.ln_to(scale_of(scale.max(self.scale as i64)))
    }

    /// The logarithm of `value` to the base `self`.
    fn log(&self, value: &Finite) -> Result<Finite, SqlError> {
        self.positive()?;
        value.positive()?;
        let (of_base, of_value) = (self.log_weight(), value.log_weight());
        let weight = of_value - of_base;
        let scale = (DIGITS_MIN - weight)
            .max(self.scale as i64)
            .max(value.scale as i64);
        let scale = scale_of(scale);
        let digits = |of: i64| scale_of(scale as i64 + weight - of + 8) + GUARD;
        let (base, value) = (self.ln_to(digits(of_base))?, value.ln_to(digits(of_value))?);
        if base.is_zero() {
            return Err(super::division_by_zero());
        }
        value.div(&base, scale, true)
    }

    /// `self^exponent`, an integer, with this scale.
    fn integer_power(&self, exponent: i64, scale: usize) -> Result<Finite, SqlError> {
        if self.is_zero() {
            return match exponent {
                0 => Ok(Finite::one().round(scale as i64)),
                _ => Ok(Finite::zero(scale)),
            };
        }
        let (mantissa, power) = self.mantissa();
        let size = exponent as f64 * (log10_float(mantissa) + power as f64);
        if size > WHOLE_DIGITS_MAX as f64 {
            return Err(overflow());
        }
        if size + 1.0 < -(scale as f64) {
            return Ok(Finite::zero(scale));
        }
        // As many digits as the result needs, and those that roundings may spoil.
        let kept = scale + size.abs() as usize + 2 * GUARD + 20;
        let mut result = (Natural::of_u128(1), 0i64);
        let mut square = (self.magnitude.clone(), self.scale as i64);
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            if left & 1 == 1 {
                result = cut(product(&result, &square), kept);
            }
            left >>= 1;
            if left > 0 {
                square = cut(product(&square, &square), kept);
            }
        }
        let negative = self.negative && exponent % 2 != 0;
        let (size, digits) = result;
        if exponent < 0 {
            let shift = digits + scale as i64 + 1;
            let quotient = match usize::try_from(shift) {
                Ok(shift) => Natural::of_u128(1).raised(shift).div_rem(&size).0,
                Err(_) => Natural::default(),
            };
            return Ok(Finite::of_fixed(negative, quotient, scale + 1, scale));
        }
        Ok(match usize::try_from(digits) {
            Ok(digits) => Finite::of_fixed(negative, size, digits, scale),
            Err(_) => {
                let whole = size.raised(digits.unsigned_abs() as usize);
                Finite::new(negative, 0, whole).round(scale as i64)
            }
        })
    }

    fn power(&self, exponent: &Finite) -> Result<Finite, SqlError> {
        let scales = self.scale.max(exponent.scale) as i64;
        if let Some(whole) = exponent.to_i64_exact()
            && i32::try_from(whole).is_ok()
        {
            return self.integer_power(whole, scale_of(scales.max(DIGITS_MIN)));
        }
        if self.is_zero() {
            return Ok(Finite::zero(DIGITS_MIN as usize));
        }
        let odd = exponent.trunc(0).magnitude.is_odd();
        let base = self.abs();
        let about = base.log_float() * exponent.to_float();
        if about.abs() > EXP_MAX * 1.003_3 {
            return match about > 0.0 {
                true => Err(overflow()),
                false => Ok(Finite::zero(RESULT_SCALE_MAX as usize)),
            };
        }
        // PostgreSQL estimates the size of the result by a logarithm of eight digits.
        let few = scale_of(8 - base.log_weight());
        let rough = base.ln_to(few)?.mul(exponent).round(few as i64);
        let digits = (rough.to_float() * core::f64::consts::LOG10_E) as i64;
        let scale = scale_of((DIGITS_MIN - digits).max(scales));
        let inner = scale_of(scale as i64 + digits.abs() - base.log_weight() + 8) + GUARD;
        let inner = inner + exponent.whole_digits().max(0) as usize;
        let product = base.ln_to(inner)?.mul(exponent);
        let result = product.round(inner as i64).exp_to(scale)?;
        Ok(if self.negative && odd {
            result.neg()
        } else {
            result
        })
    }
}

fn product(a: &(Natural, i64), b: &(Natural, i64)) -> (Natural, i64) {
    (a.0.mul(&b.0), a.1 + b.1)
}

/// The number with at most this many significant digits.
fn cut((size, scale): (Natural, i64), kept: usize) -> (Natural, i64) {
    match size.digits().checked_sub(kept + LIMB_DIGITS) {
        None | Some(0) => (size, scale),
        // Whole limbs are dropped at once.
        Some(more) => {
            let dropped = more.next_multiple_of(LIMB_DIGITS);
            (size.lowered(dropped).0, scale - dropped as i64)
        }
    }
}

/// `e^x`, all in fixed point of `digits` digits.
fn exp_fixed(x: &Natural, digits: usize) -> Natural {
    // x / 2^halvings is small; the result is squared as often.
    let halvings = 10 + digits.isqrt() + x.digits().saturating_sub(digits) * 4;
    let inner = digits + halvings / 2 + GUARD;
    let two = Natural::of_u128(2).power(halvings as u64, usize::MAX - 1);
    let two = two.unwrap_or_default();
    let small = x.raised(inner - digits).div_rem(&two).0;
    let one = Natural::of_u128(1).raised(inner);
    let (mut sum, mut term) = (one.add(&small), small.clone());
    for i in 2u32.. {
        term = term.mul(&small).lowered(inner).0.div_small(i).0;
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
    }
    for _ in 0..halvings {
        sum = sum.mul(&sum).lowered(inner).0;
    }
    sum.lowered(inner - digits).0
}

/// The logarithm of a number from 1 to 10 in fixed point; `about` is the number as a float.
fn ln_mantissa(x: &Natural, about: f64, digits: usize) -> Natural {
    let start = (ln_float(about) * 1e15) as u128;
    let mut y = match digits.checked_sub(15) {
        Some(more) => Natural::of_u128(start).raised(more),
        None => Natural::of_u128(start).lowered(15 - digits).0,
    };
    // Each step has three times as many digits right as the one before; it starts with 14.
    let mut right = 14;
    while right < digits + 2 {
        let power = exp_fixed(&y, digits);
        let sum = x.add(&power);
        let step = |more: Natural| more.mul_small(2).raised(digits).div_rem(&sum).0;
        y = match *x >= power {
            true => y.add(&step(x.sub(&power))),
            false => {
                let less = step(power.sub(x));
                if less > y {
                    Natural::default()
                } else {
                    y.sub(&less)
                }
            }
        };
        right *= 3;
    }
    y
}

/// The power of ten of a positive float, towards zero.
fn log10_of(value: f64) -> i64 {
    if value == 0.0 {
        return 0;
    }
    log10_float(value) as i64
}

fn log10_float(value: f64) -> f64 {
    ln_float(value) * core::f64::consts::LOG10_E
}

/// The natural logarithm of a positive float: there is none without the standard library.
fn ln_float(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let bits = value.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1_023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1_023 << 52);
    if mantissa > core::f64::consts::SQRT_2 {
        (mantissa, exponent) = (mantissa / 2.0, exponent + 1);
    }
    // ln m = 2 artanh ((m - 1) / (m + 1))
    let part = (mantissa - 1.0) / (mantissa + 1.0);
    let square = part * part;
    let (mut sum, mut term) = (0.0, part);
    for i in 0..24 {
        sum += term / f64::from(2 * i + 1);
        term *= square;
    }
    2.0 * sum + exponent as f64 * core::f64::consts::LN_2
}

/// `n!`
///
/// # Errors
/// 22003 for negative numbers and beyond what fits.
pub fn factorial(n: i64) -> Result<Numeric, SqlError> {
    if n < 0 {
        let message = "factorial of a negative number is undefined";
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    if n > FACTORIAL_MAX {
        return Err(overflow());
    }
    let size = range_product(1, n.max(1) as u64);
    Ok(Numeric::Finite(Finite::new(false, 0, size)))
}

/// The product of the numbers from `low` to `high`.
fn range_product(low: u64, high: u64) -> Natural {
    if high - low < 4 {
        let product = (low..=high).map(u128::from).product();
        return Natural::of_u128(product);
    }
    let middle = low + (high - low) / 2;
    range_product(low, middle).mul(&range_product(middle + 1, high))
}

impl Numeric {
    /// The square root, with at least 16 significant digits.
    ///
    /// # Errors
    /// 2201F of a negative number, 54000.
    pub fn sqrt(&self) -> Result<Numeric, SqlError> {
        match self {
            _ if self.is_negative() => {
                let message = "cannot take square root of a negative number";
                Err(SqlError::new(SqlState(*b"2201F"), message))
            }
            Numeric::Finite(finite) => finite.sqrt().map(Numeric::Finite),
            other => Ok(other.clone()),
        }
    }

    /// The square root with as many digits behind the point as the number has.
    ///
    /// # Errors
    /// As [`Numeric::sqrt`].
    pub fn sqrt_with_own_scale(&self) -> Result<Numeric, SqlError> {
        match self {
            Numeric::Finite(it) if !it.negative => it.sqrt_to(it.scale).map(Numeric::Finite),
            other => other.sqrt(),
        }
    }

    /// `e` to this power.
    ///
    /// # Errors
    /// 22003.
    pub fn exp(&self) -> Result<Numeric, SqlError> {
        match self {
            Numeric::Finite(finite) => finite.exp().map(Numeric::Finite),
            Numeric::Infinity { negative: true } => Ok(Numeric::from(0)),
            other => Ok(other.clone()),
        }
    }

    /// The natural logarithm.
    ///
    /// # Errors
    /// 2201E of what is not positive.
    pub fn ln(&self) -> Result<Numeric, SqlError> {
        match self {
            Numeric::Finite(finite) => finite.ln().map(Numeric::Finite),
            Numeric::Infinity { negative: true } => Err(logarithm_of("a negative number")),
            other => Ok(other.clone()),
        }
    }

    /// The logarithm of a number to the base `self`.
    ///
    /// # Errors
    /// 2201E of what is not positive, 22012 if the base is 1.
    pub fn log(&self, value: &Numeric) -> Result<Numeric, SqlError> {
        if let (Numeric::Finite(base), Numeric::Finite(value)) = (self, value) {
            return base.log(value).map(Numeric::Finite);
        }
        if self.is_nan() || value.is_nan() {
            return Ok(Numeric::Nan);
        }
        for one in [self, value] {
            if one.is_negative() {
                return Err(logarithm_of("a negative number"));
            }
            if one.is_zero() {
                return Err(logarithm_of("zero"));
            }
        }
        Ok(match (self, value) {
            (Numeric::Infinity { .. }, Numeric::Infinity { .. }) => Numeric::Nan,
            (Numeric::Infinity { .. }, _) => Numeric::from(0),
            _ => Numeric::infinity(false),
        })
    }

    /// The number to the power of another.
    ///
    /// # Errors
    /// 22003, 2201F for a power that is no real number.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        let is_one = |one: &Numeric| matches!(one, Numeric::Finite(it) if *it == Finite::one());
        match (self, exponent) {
            (Numeric::Nan, other) if other.is_zero() => return Ok(Numeric::from(1)),
            (other, Numeric::Nan) if is_one(other) => return Ok(Numeric::from(1)),
            (Numeric::Nan, _) | (_, Numeric::Nan) => return Ok(Numeric::Nan),
            _ => {}
        }
        let refuse = |message| Err(SqlError::new(SqlState(*b"2201F"), message));
        if self.is_zero() && exponent.is_negative() {
            return refuse("zero raised to a negative power is undefined");
        }
        let is_integer = match exponent {
            Numeric::Finite(finite) => finite.is_integer(),
            _ => true,
        };
        if self.is_negative() && !is_integer {
            return refuse(
                "a negative number raised to a non-integer power yields a complex result",
            );
        }
        if let (Numeric::Finite(base), Numeric::Finite(exponent)) = (self, exponent) {
            return base.power(exponent).map(Numeric::Finite);
        }
        if is_one(self) || exponent.is_zero() {
            return Ok(Numeric::from(1));
        }
        if self.is_zero() {
            return Ok(Numeric::from(0));
        }
        let (grows, odd) = match (self, exponent) {
            (_, Numeric::Infinity { negative }) => {
                let size = self.abs().compare(&Numeric::from(1));
                if size.is_eq() {
                    return Ok(Numeric::from(1));
                }
                (size.is_gt() != *negative, false)
            }
            (_, Numeric::Finite(exponent)) => {
                let odd = exponent.is_integer() && exponent.trunc(0).magnitude.is_odd();
                (!exponent.negative, odd)
            }
            (_, Numeric::Nan) => (false, false),
        };
        Ok(match grows {
            true => Numeric::infinity(self.is_negative() && odd),
            false => Numeric::from(0),
        })
    }
}
