//! Functions of `numeric`.
//!
//! Most numbers have the small form ([`Decimal`]); what it cannot hold is computed in the large one
//! ([`base::numeric`]). Results have the digits that PostgreSQL shows.

use super::super::cast::checked_int;
use super::Func;
use base::numeric::{self, Numeric};
use base::{Datum, Decimal, SqlError, Type};

/// A function of one number.
pub(super) fn unary(func: &Func, a: Decimal, ty: Type) -> Result<Datum, SqlError> {
    let small = match func {
        Func::Neg => Ok(a.neg()),
        Func::Abs => Ok(a.abs()),
        Func::Round => a.round(0),
        Func::Trunc => a.trunc(0),
        Func::Ceil => a.ceil(),
        Func::Floor => a.floor(),
        Func::Sign => Ok(a.signum()),
        Func::Scale => return checked_int(i64::from(a.scale()), ty),
        Func::MinScale => return checked_int(i64::from(a.normalized().scale()), ty),
        Func::TrimScale => Ok(a.normalized()),
        _ => return large_unary(func, &Numeric::from(a), ty),
    };
    match small {
        Ok(value) => Ok(Datum::Decimal(value)),
        Err(_) => large_unary(func, &Numeric::from(a), ty),
    }
}

/// As [`unary`], of a number of any size.
pub(super) fn large_unary(func: &Func, a: &Numeric, ty: Type) -> Result<Datum, SqlError> {
    let digits = |digits: Option<usize>| match digits {
        Some(digits) => checked_int(digits as i64, ty),
        None => Ok(Datum::Null),
    };
    match func {
        Func::Neg => a.neg(),
        Func::Abs => a.abs(),
        Func::Round => a.round(0),
        Func::Trunc => a.trunc(0),
        Func::Ceil => a.ceil(),
        Func::Floor => a.floor(),
        Func::Sign => a.sign(),
        Func::Sqrt => a.sqrt()?,
        Func::Exp => a.exp()?,
        Func::Ln => a.ln()?,
        Func::Log => Numeric::from(10).log(a)?,
        Func::Scale => return digits(a.scale()),
        Func::MinScale => return digits(a.min_scale()),
        Func::TrimScale => a.trim_scale(),
        _ => unreachable!("{func:?} was bound to a numeric"),
    }
    .into_datum()
}

/// A function of two numbers.
pub(super) fn binary(func: &Func, a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    match func {
        Func::Add => return numeric::add(a, b),
        Func::Sub => return numeric::sub(a, b),
        Func::Mul => return numeric::mul(a, b),
        Func::Div => return numeric::div(a, b),
        Func::Rem => return numeric::rem(a, b),
        Func::DivTrunc => {
            if let (Datum::Decimal(a), Datum::Decimal(b)) = (a, b)
                && let Ok(quotient) = a.div_trunc(*b)
            {
                return Ok(Datum::Decimal(quotient));
            }
        }
        _ => {}
    }
    let of = |value: &Datum| Numeric::of(value).expect("the binder passes numbers");
    let (a, b) = (of(a), of(b));
    match func {
        Func::DivTrunc => a.div_trunc(&b)?,
        Func::Pow => a.power(&b)?,
        Func::Log => a.log(&b)?,
        Func::Gcd => a.gcd_lcm(&b, false)?,
        Func::Lcm => a.gcd_lcm(&b, true)?,
        _ => unreachable!("{func:?} was bound to numerics"),
    }
    .into_datum()
}

/// `round(x, digits)` and `trunc(x, digits)`.
pub(super) fn with_digits(func: &Func, a: &Datum, digits: i64) -> Result<Datum, SqlError> {
    if let (Datum::Decimal(a), Ok(digits)) = (a, i32::try_from(digits)) {
        let small = match func {
            Func::Round => a.round(digits),
            _ => a.trunc(digits),
        };
        if let Ok(small) = small {
            return Ok(Datum::Decimal(small));
        }
    }
    let a = Numeric::of(a).expect("the binder passes numbers");
    match func {
        Func::Round => a.round(digits),
        Func::Trunc => a.trunc(digits),
        _ => unreachable!("{func:?} was bound to a numeric and a number of digits"),
    }
    .into_datum()
}

/// `n!`
pub(super) fn factorial(n: i64) -> Result<Datum, SqlError> {
    numeric::factorial(n)?.into_datum()
}
