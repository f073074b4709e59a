//! Exponentials and logarithms of numerics, to about 30 digits.

use super::overflow;
use base::{Decimal, SqlError};

/// Fraction digits of the numbers on the way: numbers between 0.1 and 1000 keep all of them.
const SCALE: i32 = 34;
/// ln 10 to 36 fraction digits.
const LN_10: &str = "2.302585092994045684017991454684364208";

/// A positive number as `mantissa * 10^exponent`.
pub(super) struct Scientific {
    mantissa: Decimal,
    exponent: i32,
}

impl Scientific {
    /// The number with `scale` fraction digits. 22003 if it has more than 38 digits.
    pub(super) fn rounded(&self, scale: i32) -> Result<Decimal, SqlError> {
        // mantissa * 10^exponent = unscaled / 10^(mantissa's scale - exponent)
        let kept = self.mantissa.round((scale + self.exponent).min(SCALE))?;
        let place = i32::from(kept.scale()) - self.exponent;
        if place < 0 {
            let power = 10i128
                .checked_pow(place.unsigned_abs())
                .ok_or_else(overflow)?;
            let unscaled = kept.unscaled().checked_mul(power).ok_or_else(overflow)?;
            return Decimal::from_parts(unscaled, 0)
                .ok_or_else(overflow)?
                .round(scale);
        }
        match u8::try_from(place)
            .ok()
            .and_then(|place| Decimal::from_parts(kept.unscaled(), place))
        {
            Some(value) => value.round(scale),
            None => Decimal::ZERO.round(scale),
        }
    }
}

/// e to the power of `x`. 22003 if the result has more than 38 digits before the point.
pub(super) fn exp(x: Decimal) -> Result<Scientific, SqlError> {
    let tens = (x.to_f64() * core::f64::consts::LOG10_E).round();
    if tens > 38.0 {
        return Err(overflow());
    }
    if tens < -80.0 {
        return Ok(Scientific {
            mantissa: Decimal::ZERO,
            exponent: 0,
        });
    }
    // Taken out of x, the powers of ten leave a rest of at most ln(10) / 2.
    let ln_10: Decimal = LN_10.parse().expect("a number");
    let rest = x
        .sub(ln_10.mul(Decimal::from(tens as i64))?)?
        .round(SCALE)?;
    let mut mantissa = Decimal::ONE;
    let mut term = Decimal::ONE.round(SCALE)?;
    for n in 1..60 {
        term = term
            .mul(rest)?
            .round(SCALE)?
            .div(Decimal::from(n))?
            .round(SCALE)?;
        if term.is_zero() {
            break;
        }
        mantissa = mantissa.add(term)?;
    }
    Ok(Scientific {
        mantissa,
        exponent: tens as i32,
    })
}

/// The natural logarithm of a positive number.
pub(super) fn ln(x: Decimal) -> Result<Decimal, SqlError> {
    // x = m * 10^tens with m around 1, whose logarithm a float knows to 15 digits.
    let digits = x.unscaled().unsigned_abs().ilog10() as i32;
    let tens = digits - i32::from(x.scale());
    let mantissa = Scientific {
        mantissa: x,
        exponent: -tens,
    }
    .rounded(SCALE)?;
    let estimate = Decimal::from_f64(mantissa.to_f64().ln())?;
    // m / e^estimate = 1 + d, and ln(1 + d) = d - d^2 / 2 to more digits than are kept.
    let ratio = mantissa
        .mul(exp(estimate.neg())?.rounded(SCALE)?)?
        .round(SCALE)?;
    let d = ratio.sub(Decimal::ONE)?;
    let half_square = d
        .mul(d)?
        .mul("0.5".parse().expect("a number"))?
        .round(SCALE)?;
    let of_mantissa = estimate.add(d)?.sub(half_square)?;
    let ln_10: Decimal = LN_10.parse().expect("a number");
    of_mantissa.add(ln_10.mul(Decimal::from(i64::from(tens)))?.round(SCALE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_undo_exponentials() {
        for text in [
            "1",
            "0.5",
            "2.718281828",
            "12345.678",
            "0.000001",
            "99999999999",
            "-3.25",
        ] {
            let x: Decimal = text.parse().expect("a number");
            if !x.is_negative() {
                let back = exp(ln(x).expect("small"))
                    .expect("small")
                    .rounded(15)
                    .expect("small");
                assert_eq!(back, x.round(15).expect("small"), "{text}");
            }
            if x.to_f64().abs() < 20.0 {
                let power = exp(x).expect("small").rounded(26).expect("small");
                let back = ln(power).expect("positive").round(20).expect("small");
                assert_eq!(back, x.round(20).expect("small"), "{text}");
            }
        }
    }
}
