//! RANGE with an offset: whether a value is as far from the current one as the offset, or
//! farther.

use base::numeric::Numeric;
use base::{Datum, SqlError, SqlState, Type};
use core::cmp::Ordering;
use expr::resolve::{self, Context};

/// How far values of one type may be apart.
pub struct Reach {
    /// The type of the offset.
    pub offset: Type,
    /// The type as which values are compared, and from which the offset is subtracted.
    pub value: Type,
    /// The sum of value and offset is an expression: it depends on the calendar.
    pub dated: bool,
}

/// How an offset of type `offset` counts for values of type `value`.
///
/// # Errors
/// 0A000 if it does not.
pub fn of(value: Type, offset: Type) -> Result<Reach, SqlError> {
    let value = value.without_modifiers();
    let wanted: &[Type] = match value {
        Type::Int2 | Type::Int4 => &[Type::Int4, Type::Int8, Type::Int2],
        Type::Int8 => &[Type::Int8],
        Type::Float4 | Type::Float8 => &[Type::Float8],
        Type::Numeric(_) => &[Type::Numeric(None)],
        Type::Date
        | Type::Time(_)
        | Type::Timetz(_)
        | Type::Timestamp(_)
        | Type::Timestamptz(_)
        | Type::Interval(_) => &[Type::Interval(None)],
        _ => {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                value.name()
            );
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    let given = offset.without_modifiers();
    let own = if given == Type::Unknown { value } else { given };
    let same = wanted.iter().find(|ty| **ty == own);
    let fitting = || {
        let mut all = wanted.iter();
        all.find(|ty| resolve::can_coerce(given, **ty, Context::Implicit))
    };
    let Some(offset) = same.or_else(fitting) else {
        let message = format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset \
             type {}",
            value.name(),
            given.name()
        );
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
            .hint("Cast the offset value to an appropriate type."));
    };
    Ok(Reach {
        offset: *offset,
        value: match value {
            Type::Date => Type::Timestamp(None),
            other => other,
        },
        dated: matches!(
            value,
            Type::Date | Type::Timestamp(_) | Type::Timestamptz(_) | Type::Interval(_)
        ),
    })
}

/// Refuses offsets below zero.
///
/// # Errors
/// 22013.
pub fn check(offset: &Datum) -> Result<(), SqlError> {
    let negative = match offset {
        Datum::Int(value) => *value < 0,
        Datum::Float(value) => value.is_nan() || *value < 0.0,
        Datum::Decimal(value) => value.is_negative(),
        Datum::Large(value) => value.is_nan() || value.is_negative(),
        Datum::Interval(value) => value.total_micros() < 0,
        _ => false,
    };
    match negative {
        false => Ok(()),
        true => Err(SqlError::new(
            SqlState::INVALID_FRAME_OFFSET,
            "invalid preceding or following size in window function",
        )),
    }
}

/// How `value` compares with `base` minus (`subtract`) or plus the offset. Sums that no type
/// holds are beyond all values.
pub fn compare(value: &Datum, base: &Datum, offset: &Datum, subtract: bool) -> Ordering {
    match (value, base, offset) {
        (Datum::Int(value), Datum::Int(base), Datum::Int(offset)) => {
            let (base, offset) = (i128::from(*base), i128::from(*offset));
            let sum = if subtract {
                base - offset
            } else {
                base + offset
            };
            i128::from(*value).cmp(&sum)
        }
        (Datum::Float(value), Datum::Float(base), Datum::Float(offset)) => {
            compare_float(*value, *base, *offset, subtract)
        }
        (Datum::Decimal(_), Datum::Decimal(small), Datum::Decimal(step)) => {
            let sum = match subtract {
                true => small.sub(*step),
                false => small.add(*step),
            };
            match sum {
                Ok(sum) => value.compare(&Datum::Decimal(sum)),
                Err(_) => compare_numeric(value, base, offset, subtract),
            }
        }
        (
            Datum::Decimal(_) | Datum::Large(_),
            Datum::Decimal(_) | Datum::Large(_),
            Datum::Decimal(_) | Datum::Large(_),
        ) => compare_numeric(value, base, offset, subtract),
        // Without the modulo of times: what is beyond midnight is beyond all values.
        (Datum::Time(value), Datum::Time(base), Datum::Interval(offset)) => {
            let (base, offset) = (i128::from(*base), i128::from(offset.micros));
            let sum = if subtract {
                base - offset
            } else {
                base + offset
            };
            i128::from(*value).cmp(&sum)
        }
        (Datum::Timetz(value), Datum::Timetz(base), Datum::Interval(offset)) => {
            let (sum, offset) = (i128::from(base.utc()), i128::from(offset.micros));
            let sum = if subtract { sum - offset } else { sum + offset };
            let order = i128::from(value.utc()).cmp(&sum);
            order.then_with(|| value.west.cmp(&base.west))
        }
        _ => value.compare(base),
    }
}

/// As [`compare_float`] for numerics of any size.
fn compare_numeric(value: &Datum, base: &Datum, offset: &Datum, subtract: bool) -> Ordering {
    let all = (Numeric::of(value), Numeric::of(base), Numeric::of(offset));
    let (Some(value), Some(base), Some(offset)) = all else {
        return Ordering::Equal;
    };
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    if !offset.is_finite() && !base.is_finite() && base.is_negative() != subtract {
        return Ordering::Equal;
    }
    value.compare(&match subtract {
        true => base.sub(&offset),
        false => base.add(&offset),
    })
}

/// As [`compare`] for floats: NaN is equal to NaN and above all others, and what is infinitely far
/// from an infinite value is as far as everything.
fn compare_float(value: f64, base: f64, offset: f64, subtract: bool) -> Ordering {
    match (value.is_nan(), base.is_nan()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    if offset.is_infinite() && base.is_infinite() && (base > 0.0) == subtract {
        return Ordering::Equal;
    }
    let sum = if subtract {
        base - offset
    } else {
        base + offset
    };
    value.partial_cmp(&sum).unwrap_or(Ordering::Equal)
}
