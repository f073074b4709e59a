//! `to_char`, `to_timestamp`, `to_date` and `to_number`: values by patterns.

mod moment;
mod number;
mod parse;
mod pattern;
mod reader;

pub use parse::{Read, parse_moment};

use super::string::output;
use base::{Datum, SqlError, SqlState, Type};
use number::Number;

/// `to_char(value, pattern)` for a value of type `from`.
pub fn to_char(from: Type, args: &[Datum]) -> Result<Datum, SqlError> {
    let pattern = args[1].as_str().expect("the binder passes text");
    let text = match &args[0] {
        Datum::Timestamp(i64::MIN | i64::MAX) => return Ok(Datum::Null),
        Datum::Timestamp(at) => {
            let mut moment = moment::Moment::of_timestamp(*at);
            if matches!(from, Type::Timestamptz(_)) {
                moment = moment.in_zone((0, "UTC".into()));
            }
            moment::format(&moment, pattern)?
        }
        Datum::Interval(span) => moment::format(&moment::Moment::of_interval(*span), pattern)?,
        Datum::Int(value) => {
            let number = match from {
                Type::Int8 => Number::Whole(*value),
                _ => Number::Integer(*value),
            };
            number::format(number, pattern)?
        }
        Datum::Decimal(value) => number::format(Number::Exact(*value), pattern)?,
        Datum::Large(value) if value.is_finite() => number::format(Number::Large(value), pattern)?,
        Datum::Large(value) => {
            let float = Number::Float(value.to_f64(), f64::DIGITS as usize);
            number::format(float, pattern)?
        }
        Datum::Float(value) => {
            let sure = match from {
                Type::Float4 => f32::DIGITS,
                _ => f64::DIGITS,
            };
            number::format(Number::Float(*value, sure as usize), pattern)?
        }
        value => {
            let message = format!("to_char of {} is not supported", output(from, value));
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    };
    Ok(text.into())
}

/// `to_char` of a clock's time in a zone: its offset in seconds east of UTC, and its short name.
pub fn to_char_in(local: i64, zone: (i64, String), pattern: &str) -> Result<Datum, SqlError> {
    let moment = moment::Moment::of_timestamp(local).in_zone(zone);
    Ok(moment::format(&moment, pattern)?.into())
}

/// `to_number(text, pattern)`.
pub(super) fn to_number(text: &str, pattern: &str) -> Result<Datum, SqlError> {
    reader::parse(text, pattern)
}

#[cfg(test)]
mod tests;
