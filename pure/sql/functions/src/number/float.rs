//! Functions of `real` and `double precision`.

use super::super::cast::to_real;
use super::super::func::FloatFunc;
use super::{Func, division_by_zero};
use base::{Datum, SqlError, SqlState, Type};

fn out_of_range(what: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_OUT_OF_RANGE,
        format!("value out of range: {what}"),
    )
}

/// Checks a result that must be finite if its operands were.
fn finite(result: f64, operands_finite: bool) -> Result<f64, SqlError> {
    if result.is_infinite() && operands_finite {
        return Err(out_of_range("overflow"));
    }
    Ok(result)
}

/// The result as a value of `ty`.
fn make(value: f64, ty: Type) -> Result<Datum, SqlError> {
    let value = if ty == Type::Float4 {
        to_real(value)?
    } else {
        value
    };
    Ok(Datum::Float(value))
}

pub(super) fn unary(func: &Func, a: f64, ty: Type) -> Result<Datum, SqlError> {
    let value = match func {
        Func::Neg => -a,
        Func::Abs => a.abs(),
        Func::Round => a.round_ties_even(),
        Func::Trunc => a.trunc(),
        Func::Ceil => a.ceil(),
        Func::Floor => a.floor(),
        Func::Sign if a > 0.0 => 1.0,
        Func::Sign if a < 0.0 => -1.0,
        Func::Sign => 0.0,
        Func::Sqrt if a < 0.0 => return Err(negative_root()),
        Func::Sqrt => a.sqrt(),
        Func::Cbrt => cube_root(a),
        Func::Exp => {
            let result = finite(a.exp(), a.is_finite())?;
            if result == 0.0 && a.is_finite() {
                return Err(out_of_range("underflow"));
            }
            result
        }
        Func::Ln => positive(a)?.ln(),
        Func::Log => positive(a)?.log10(),
        _ => unreachable!("{func:?} was bound to a float"),
    };
    make(value, ty)
}

/// "cannot take square root of a negative number", 2201F.
pub(super) fn negative_root() -> SqlError {
    SqlError::new(
        SqlState::INVALID_POWER,
        "cannot take square root of a negative number",
    )
}

/// "cannot take logarithm of ...", 2201E.
pub(super) fn bad_logarithm(zero: bool) -> SqlError {
    let of = if zero { "zero" } else { "a negative number" };
    SqlError::new(
        SqlState::INVALID_LOGARITHM,
        format!("cannot take logarithm of {of}"),
    )
}

fn positive(a: f64) -> Result<f64, SqlError> {
    if a <= 0.0 {
        Err(bad_logarithm(a == 0.0))
    } else {
        Ok(a)
    }
}

pub(super) fn binary(func: &Func, a: f64, b: f64, ty: Type) -> Result<Datum, SqlError> {
    let operands_finite = a.is_finite() && b.is_finite();
    let value = match func {
        Func::Add => a + b,
        Func::Sub => a - b,
        Func::Mul => {
            let product = a * b;
            if product == 0.0 && a != 0.0 && b != 0.0 {
                return Err(out_of_range("underflow"));
            }
            product
        }
        Func::Div if b == 0.0 && !a.is_nan() => return Err(division_by_zero()),
        Func::Div => {
            let quotient = a / b;
            if quotient == 0.0 && a != 0.0 && b.is_finite() {
                return Err(out_of_range("underflow"));
            }
            quotient
        }
        Func::Pow => return power(a, b).map(Datum::Float),
        _ => unreachable!("{func:?} was bound to floats"),
    };
    if ty == Type::Float4 && operands_finite {
        // The exact result of two floats of 24 bits fits 53 bits well enough that rounding it once
        // more gives what 32-bit arithmetic gives.
        return to_real(value).map(Datum::Float);
    }
    Ok(Datum::Float(finite(value, operands_finite)?))
}

/// "zero raised to a negative power is undefined", 2201F.
pub(super) fn zero_to_negative() -> SqlError {
    SqlError::new(
        SqlState::INVALID_POWER,
        "zero raised to a negative power is undefined",
    )
}

/// A negative number to the power of a fraction, 2201F.
pub(super) fn complex_power() -> SqlError {
    SqlError::new(
        SqlState::INVALID_POWER,
        "a negative number raised to a non-integer power yields a complex result",
    )
}

fn power(a: f64, b: f64) -> Result<f64, SqlError> {
    if a == 0.0 && b < 0.0 {
        return Err(zero_to_negative());
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.floor() != b {
        return Err(complex_power());
    }
    let result = finite(a.powf(b), a.is_finite() && b.is_finite())?;
    if result == 0.0 && a != 0.0 && a.is_finite() && b.is_finite() {
        return Err(out_of_range("underflow"));
    }
    Ok(result)
}

pub(super) fn trigonometric(func: FloatFunc, args: &[Datum]) -> Result<f64, SqlError> {
    let arg = |i: usize| args[i].as_float().expect("the binder passes floats");
    let bounded = |limit: f64| {
        let value = arg(0);
        if value.abs() > limit {
            let message = "input is out of range";
            return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
        }
        Ok(value)
    };
    let finite_input = || bounded(f64::MAX);
    Ok(match func {
        FloatFunc::Degrees => finite(arg(0) / (core::f64::consts::PI / 180.0), arg(0).is_finite())?,
        FloatFunc::Radians => arg(0) * (core::f64::consts::PI / 180.0),
        FloatFunc::Sin => finite_input()?.sin(),
        FloatFunc::Cos => finite_input()?.cos(),
        FloatFunc::Tan => finite_input()?.tan(),
        FloatFunc::Cot => 1.0 / finite_input()?.tan(),
        FloatFunc::Asin => bounded(1.0)?.asin(),
        FloatFunc::Acos => bounded(1.0)?.acos(),
        FloatFunc::Atan => arg(0).atan(),
        FloatFunc::Atan2 => arg(0).atan2(arg(1)),
        FloatFunc::Sinh => arg(0).sinh(),
        FloatFunc::Cosh => arg(0).cosh(),
        FloatFunc::Tanh => arg(0).tanh(),
        FloatFunc::Pi => core::f64::consts::PI,
    })
}

/// The cube root, rounded to the nearest float: libraries differ in the last digit, and which one
/// is linked depends on the build.
fn cube_root(a: f64) -> f64 {
    let near = a.cbrt();
    // How far the cube is off, with twice the digits of a float.
    let off = |root: f64| {
        let square = root * root;
        let cube = square * root;
        let rest = square.mul_add(root, -cube) + root.mul_add(root, -square) * root;
        ((cube - a) + rest).abs()
    };
    let others = [near.next_down(), near.next_up()];
    let nearer = |best: f64, other: f64| if off(other) < off(best) { other } else { best };
    others.into_iter().fold(near, nearer)
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn cube_roots_are_the_nearest_floats() {
        for n in 1..2_000 {
            let root = f64::from(n) / 8.0;
            assert_eq!(cube_root(root * root * root), root);
            assert_eq!(cube_root(-root * root * root), -root);
        }
        let known = [
            (2.25, 1.310_370_697_104_448_2),
            (1.5, 1.144_714_242_553_331_9),
            (100.0, 4.641_588_833_612_779),
            (1e300, 1e100),
            (0.0, 0.0),
            (f64::INFINITY, f64::INFINITY),
        ];
        for (of, root) in known {
            assert_eq!(cube_root(of).to_bits(), f64::to_bits(root), "{of}");
        }
        assert!(cube_root(f64::NAN).is_nan());
    }
}
