//! Conversions of values from one type to another.
//!
//! Which conversions exist, and where they apply by themselves, is decided by `resolve`; here they
//! are carried out.

use crate::datetime::interval_of_time;
use crate::json;
use base::calendar::{MICROS_PER_DAY, join_timestamp, split_timestamp};
use base::text::{self, fit, fit_explicit};
use base::{Datum, Decimal, SqlError, SqlState, Type};

/// Converts `value` of type `from` to type `to`, whose modifier is applied: `explicit` casts cut
/// text that is too long, others raise 22001 unless only blanks are lost.
///
/// # Errors
/// 22P02, 22007 and 22008 for text that has not the form of the type, 22003 for numbers out of
/// range, 22001 as above, 42846 if there is no such conversion.
pub fn cast_datum(value: Datum, from: Type, to: Type, explicit: bool) -> Result<Datum, SqlError> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let converted = convert(value, from, to)?;
    if explicit {
        fit_explicit(to, converted)
    } else {
        fit(to, converted)
    }
}

/// "type out of range", 22003.
pub fn out_of_range(ty: Type) -> SqlError {
    let message = format!("{} out of range", ty.base_name());
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
}

/// `value` as a value of `to` without regard to the modifier of `to`.
fn convert(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match to {
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Unknown => to_text(value, from, to),
        _ if value.as_str().is_some() => {
            let text = value.as_str().expect("just seen");
            // "char" to integer is its code, every other text is read in the type's form.
            if from == Type::InternalChar && to == Type::Int4 {
                return Ok(Datum::Int(
                    text.bytes().next().map_or(0, |byte| i64::from(byte as i8)),
                ));
            }
            text::parse(to, text)
        }
        Type::Json | Type::Jsonb => json::from_other(value, from, to),
        _ if let Datum::Jsonb(json) = &value => json::to_scalar(json, to),
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) => to_int(value, from, to),
        Type::Xid | Type::Tid | Type::Enum(_) => {
            keep(value, from, to, |value| matches!(value, Datum::Int(_)))
        }
        Type::Float4 => to_float4(value),
        Type::Float8 => to_float8(value),
        Type::Numeric(_) => to_decimal(value, from),
        Type::Bool => match value {
            Datum::Int(number) => Ok(Datum::Bool(number != 0)),
            other => keep(other, from, to, |value| matches!(value, Datum::Bool(_))),
        },
        Type::Date => match value {
            Datum::Timestamp(i64::MIN) => Ok(Datum::Date(i32::MIN)),
            Datum::Timestamp(i64::MAX) => Ok(Datum::Date(i32::MAX)),
            Datum::Timestamp(micros) => Ok(Datum::Date(split_timestamp(micros).0)),
            other => keep(other, from, to, |value| matches!(value, Datum::Date(_))),
        },
        Type::Timestamp(_) | Type::Timestamptz(_) => match value {
            Datum::Date(days) => date_to_timestamp(days).map(Datum::Timestamp),
            other => keep(other, from, to, |value| {
                matches!(value, Datum::Timestamp(_))
            }),
        },
        Type::Time(_) => match value {
            Datum::Timestamp(i64::MIN | i64::MAX) => Ok(Datum::Null),
            Datum::Timestamp(micros) => Ok(Datum::Time(split_timestamp(micros).1)),
            Datum::Interval(span) => Ok(Datum::Time(span.micros.rem_euclid(MICROS_PER_DAY))),
            other => keep(other, from, to, |value| matches!(value, Datum::Time(_))),
        },
        Type::Interval => match value {
            Datum::Time(micros) => Ok(interval_of_time(micros).into()),
            other => keep(other, from, to, |value| matches!(value, Datum::Interval(_))),
        },
        Type::Bytea => keep(value, from, to, |value| matches!(value, Datum::Bytes(_))),
        Type::Uuid => keep(value, from, to, |value| matches!(value, Datum::Uuid(_))),
        Type::Array(kind) => match value {
            Datum::Array(items) => {
                let item_type = from.element().unwrap_or(Type::Unknown);
                let items = items.into_vec().into_iter();
                let element = kind.element().without_modifiers();
                let items = items.map(|item| cast_datum(item, item_type, element, true));
                Ok(Datum::Array(items.collect::<Result<_, _>>()?))
            }
            other => keep(other, from, to, |_| false),
        },
    }
}

/// The value itself if it already is what is wanted, otherwise 42846.
fn keep(
    value: Datum,
    from: Type,
    to: Type,
    wanted: impl Fn(&Datum) -> bool,
) -> Result<Datum, SqlError> {
    if wanted(&value) {
        Ok(value)
    } else {
        Err(no_cast(from, to))
    }
}

/// `cannot cast type a to b`, 42846.
pub fn no_cast(from: Type, to: Type) -> SqlError {
    let message = format!(
        "cannot cast type {} to {}",
        from.base_name(),
        to.base_name()
    );
    let error = SqlError::new(SqlState::CANNOT_COERCE, message);
    match from {
        Type::Xid => error.hint(
            "xmin tells whether a row has changed, by = and <>. It has no order and does not grow.",
        ),
        _ => error,
    }
}

fn to_text(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    let text = match value {
        Datum::Text(text) => text,
        // Unlike its output form, which is t or f.
        Datum::Bool(value) => if value { "true" } else { "false" }.into(),
        Datum::Int(code) if to == Type::InternalChar && from == Type::Int4 => {
            let byte = i8::try_from(code).map_err(|_| {
                SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "\"char\" out of range")
            })?;
            char::from(byte as u8).to_string().into_boxed_str()
        }
        other => text::to_string(from, &other).into_boxed_str(),
    };
    match to {
        Type::Name | Type::InternalChar => text::parse(to, &text),
        // Blanks at the end of a char value mean nothing and are not stored.
        Type::Char(0) => Ok(text.trim_end_matches(' ').into()),
        _ => Ok(Datum::Text(text)),
    }
}

/// The range of an integer type, ends included.
pub(super) fn int_range(ty: Type) -> (i64, i64) {
    match ty {
        Type::Int2 => (i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => (i32::MIN.into(), i32::MAX.into()),
        Type::Oid | Type::Reg(_) => (0, u32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// An integer inside the range of `ty`, or 22003.
#[inline]
pub fn checked_int(value: i64, ty: Type) -> Result<Datum, SqlError> {
    let (low, high) = int_range(ty);
    if low <= value && value <= high {
        Ok(Datum::Int(value))
    } else {
        Err(out_of_range(ty))
    }
}

fn to_int(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match value {
        Datum::Int(number) if matches!(to, Type::Oid | Type::Reg(_)) => {
            // PostgreSQL wraps negative integers to large object identifiers.
            let number = if from == Type::Int4 {
                i64::from(number as u32)
            } else {
                number
            };
            checked_int(number, to)
                .map_err(|_| SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "OID out of range"))
        }
        Datum::Int(number) if matches!(from, Type::Oid | Type::Reg(_)) && to == Type::Int4 => {
            Ok(Datum::Int(i64::from(number as u32 as i32)))
        }
        Datum::Int(number) => checked_int(number, to),
        Datum::Bool(value) => Ok(Datum::Int(value.into())),
        Datum::Float(number) => {
            let rounded = number.round_ties_even();
            // 2^63 is the first float above the range; the lower end is a float itself.
            if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                return Err(out_of_range(to));
            }
            checked_int(rounded as i64, to)
        }
        Datum::Decimal(number) => {
            let rounded = number
                .round(0)?
                .to_i64_exact()
                .ok_or_else(|| out_of_range(to))?;
            checked_int(rounded, to)
        }
        _ => Err(no_cast(from, to)),
    }
}

/// The nearest `real`; 22003 if the value is too large or too small for one.
pub fn to_real(value: f64) -> Result<f64, SqlError> {
    let real = f64::from(value as f32);
    if real.is_infinite() && value.is_finite() {
        return Err(SqlError::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    if real == 0.0 && value != 0.0 {
        return Err(SqlError::new(
            SqlState::NUMERIC_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    Ok(real)
}

fn to_float4(value: Datum) -> Result<Datum, SqlError> {
    match value {
        Datum::Decimal(number) => text::parse(Type::Float4, &number.to_string()),
        Datum::Int(number) => Ok(Datum::Float(f64::from(number as f32))),
        other => match to_float8(other)? {
            Datum::Float(number) => to_real(number).map(Datum::Float),
            other => Ok(other),
        },
    }
}

fn to_float8(value: Datum) -> Result<Datum, SqlError> {
    match value {
        Datum::Int(number) => Ok(Datum::Float(number as f64)),
        Datum::Decimal(number) => Ok(Datum::Float(number.to_f64())),
        Datum::Float(_) => Ok(value),
        _ => Err(no_cast(Type::Unknown, Type::Float8)),
    }
}

fn to_decimal(value: Datum, from: Type) -> Result<Datum, SqlError> {
    match value {
        Datum::Int(number) => Ok(Datum::Decimal(Decimal::from(number))),
        Datum::Float(number) if from == Type::Float4 => {
            Decimal::from_f32(number as f32).map(Datum::Decimal)
        }
        Datum::Float(number) => Decimal::from_f64(number).map(Datum::Decimal),
        Datum::Decimal(_) => Ok(value),
        _ => Err(no_cast(from, Type::Numeric(None))),
    }
}

/// Midnight of a date; 22008 if it lies outside the range of timestamps.
pub fn date_to_timestamp(days: i32) -> Result<i64, SqlError> {
    match days {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => join_timestamp(days, 0).ok_or_else(|| {
            SqlError::new(
                SqlState::DATETIME_OVERFLOW,
                "date out of range for timestamp",
            )
        }),
    }
}
