//! Fit of values to a column type: what an assignment or a cast does to them.

use crate::calendar::{TIMESTAMP_END, TIMESTAMP_MIN, join_timestamp, split_timestamp};
use crate::datum::{Datum, Timetz, Type};
use crate::decimal::Decimal;
use crate::decimal::SCALE_MAX;
use crate::error::{SqlError, SqlState};
use crate::limits::NAME_BYTES_MAX;
use crate::numeric::{self, Numeric};
use crate::spans::SpanModifier;
use crate::types::SECOND_DIGITS_MAX;
use alloc::boxed::Box;
use alloc::format;

/// `datum` as a column of type `ty` stores it on assignment.
///
/// Applies the modifiers (22001 if a text is too long and not only by blanks, 22003 if a number
/// does not fit) and converts between kinds of numbers and between dates and timestamps. Values of
/// other kinds are returned as they are: converting them is a cast, which the binder inserts.
#[inline]
pub fn fit(ty: Type, datum: Datum) -> Result<Datum, SqlError> {
    match (ty, datum) {
        (_, Datum::Null) => Ok(Datum::Null),
        (Type::Int8, Datum::Int(value)) => Ok(Datum::Int(value)),
        (Type::Int4, Datum::Int(value)) if i32::try_from(value).is_ok() => Ok(Datum::Int(value)),
        (Type::Text | Type::Varchar(None), datum @ Datum::Text(_)) => Ok(datum),
        (ty, datum) => fit_other(ty, datum, false),
    }
}

/// As [`fit`], for an explicit cast: a text that is too long is cut without an error.
pub fn fit_explicit(ty: Type, datum: Datum) -> Result<Datum, SqlError> {
    fit_other(ty, datum, true)
}

fn fit_other(ty: Type, datum: Datum, cut: bool) -> Result<Datum, SqlError> {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) | Type::Xid | Type::Tid => {
            fit_int(ty, datum)
        }
        Type::Float4 | Type::Float8 => fit_float(ty, datum),
        Type::Numeric(modifiers) => fit_numeric(modifiers, datum),
        Type::Varchar(Some(limit)) => fit_text(ty, limit, datum, cut),
        Type::Char(limit) => match datum {
            Datum::Text(text) => {
                let stored = text.trim_end_matches(' ');
                let datum = if stored.len() == text.len() {
                    Datum::Text(text)
                } else {
                    Datum::Text(stored.into())
                };
                if limit == 0 {
                    Ok(datum)
                } else {
                    fit_text(ty, limit, datum, cut)
                }
            }
            other => Ok(other),
        },
        Type::Name => Ok(fit_name(datum)),
        Type::Timestamp(digits) | Type::Timestamptz(digits) => match (datum, digits) {
            (Datum::Date(days), _) => timestamp_of_date(days).map(Datum::Timestamp),
            (Datum::Timestamp(micros), Some(digits)) => {
                round_timestamp(micros, digits).map(Datum::Timestamp)
            }
            (other, _) => Ok(other),
        },
        Type::Array(kind) => match datum {
            Datum::Array(_) | Datum::Grid(_) if kind.element().typmod() != -1 => datum
                .try_map_items(|item| match item {
                    Datum::Null => Ok(Datum::Null),
                    item => fit_other(kind.element(), item, cut),
                }),
            other => Ok(other),
        },
        Type::Time(digits) => Ok(fit_time(digits, datum)),
        Type::Timetz(digits) => Ok(fit_timetz(digits, datum)),
        Type::Interval(modifier) => fit_span(modifier, datum),
        Type::Bit(Some(length)) => super::bits::fit_bits(datum, length, cut),
        Type::Varbit(Some(length)) => super::bits::fit_varying(datum, length, cut),
        Type::Date => Ok(fit_date(datum)),
        Type::InternalChar => Ok(fit_char(datum)),
        Type::Bool
        | Type::Bit(None)
        | Type::Varbit(None)
        | Type::Text
        | Type::Varchar(None)
        | Type::Bytea
        | Type::Uuid
        | Type::Inet
        | Type::Cidr
        | Type::Macaddr
        | Type::Json
        | Type::Jsonb
        | Type::JsonPath
        | Type::Enum(_)
        | Type::Composite(_)
        | Type::Range(_)
        | Type::Multirange(_)
        | Type::Unknown => Ok(datum),
    }
}

fn fit_span(modifier: Option<SpanModifier>, datum: Datum) -> Result<Datum, SqlError> {
    match (modifier, datum) {
        (Some(modifier), Datum::Interval(span)) => modifier.fit(span).map(Datum::Interval),
        (_, other) => Ok(other),
    }
}

fn fit_name(datum: Datum) -> Datum {
    match datum {
        Datum::Text(text) if text.len() > NAME_BYTES_MAX => {
            Datum::Text(truncate_name(&text).into())
        }
        other => other,
    }
}

fn fit_date(datum: Datum) -> Datum {
    match datum {
        Datum::Timestamp(i64::MIN) => Datum::Date(i32::MIN),
        Datum::Timestamp(i64::MAX) => Datum::Date(i32::MAX),
        Datum::Timestamp(micros) => Datum::Date(split_timestamp(micros).0),
        other => other,
    }
}

fn fit_timetz(digits: Option<u8>, datum: Datum) -> Datum {
    match datum {
        Datum::Timetz(Timetz { micros, west }) => Datum::Timetz(Timetz {
            micros: round_time(micros, digits),
            west,
        }),
        other => other,
    }
}

fn fit_time(digits: Option<u8>, datum: Datum) -> Datum {
    match datum {
        Datum::Timestamp(i64::MIN | i64::MAX) => Datum::Null,
        Datum::Timestamp(micros) => Datum::Time(round_time(split_timestamp(micros).1, digits)),
        Datum::Time(micros) => Datum::Time(round_time(micros, digits)),
        other => other,
    }
}

/// The first character.
fn fit_char(datum: Datum) -> Datum {
    match datum {
        Datum::Text(text) => {
            let end = text.chars().next().map_or(0, char::len_utf8);
            Datum::Text(text[..end].into())
        }
        other => other,
    }
}

/// The longest start of `text` that is at most 63 bytes and ends between characters.
pub(super) fn truncate_name(text: &str) -> &str {
    if text.len() <= NAME_BYTES_MAX {
        return text;
    }
    let ends = (0..=NAME_BYTES_MAX).rev();
    let end = ends
        .into_iter()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    &text[..end]
}

fn out_of_range(ty: Type) -> SqlError {
    let message = format!("{} out of range", ty.base_name());
    SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message)
}

fn fit_int(ty: Type, datum: Datum) -> Result<Datum, SqlError> {
    let (low, high) = match ty {
        Type::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Type::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Type::Oid | Type::Reg(_) | Type::Xid => (0, i64::from(u32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let value = match datum {
        Datum::Int(value) => value,
        Datum::Decimal(value) => value.to_i64().map_err(|_| out_of_range(ty))?,
        Datum::Large(value) => value.to_i64().ok_or_else(|| out_of_range(ty))?,
        Datum::Float(value) => round_to_int(value).ok_or_else(|| out_of_range(ty))?,
        other => return Ok(other),
    };
    if (low..=high).contains(&value) {
        Ok(Datum::Int(value))
    } else {
        Err(out_of_range(ty))
    }
}

/// The nearest integer, halves to even, as PostgreSQL casts floats; `None` outside `bigint`.
fn round_to_int(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    /// From here on floats have no fraction.
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    if value.is_nan() || !(-END..END).contains(&value) {
        return None;
    }
    if value.abs() >= WHOLE {
        return Some(value as i64);
    }
    let truncated = value as i64;
    let rest = (value - truncated as f64).abs();
    let away = rest > 0.5 || (rest == 0.5 && truncated % 2 != 0);
    let step = if value < 0.0 { -1 } else { 1 };
    Some(if away { truncated + step } else { truncated })
}

fn fit_float(ty: Type, datum: Datum) -> Result<Datum, SqlError> {
    let value = match datum {
        Datum::Float(value) => value,
        Datum::Int(value) => value as f64,
        Datum::Decimal(value) => value.to_f64(),
        Datum::Large(value) => value.to_f64(),
        other => return Ok(other),
    };
    if ty == Type::Float8 {
        return Ok(Datum::Float(value));
    }
    let single = value as f32;
    if single.is_infinite() && value.is_finite() {
        let message = "value out of range: overflow";
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    if single == 0.0 && value != 0.0 {
        let message = "value out of range: underflow";
        return Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    }
    Ok(Datum::Float(f64::from(single)))
}

fn fit_numeric(modifiers: Option<(u16, i16)>, datum: Datum) -> Result<Datum, SqlError> {
    let value = match datum {
        Datum::Int(value) => Datum::Decimal(Decimal::from(value)),
        Datum::Float(value) => numeric::from_f64(value)?,
        other => other,
    };
    let Some((precision, scale)) = modifiers else {
        return Ok(value);
    };
    match value {
        Datum::Decimal(value) => {
            let small = u8::try_from(precision).ok().zip(u8::try_from(scale).ok());
            let small = small.filter(|(_, scale)| *scale <= SCALE_MAX);
            match small.map(|(precision, scale)| value.rescale(precision, scale)) {
                Some(small) if small.is_ok() || precision <= SCALE_MAX.into() => {
                    small.map(Datum::Decimal)
                }
                _ => Numeric::from(value).rescale(precision, scale)?.into_datum(),
            }
        }
        Datum::Large(value) => value.rescale(precision, scale)?.into_datum(),
        other => Ok(other),
    }
}

fn fit_text(ty: Type, limit: u32, datum: Datum, cut: bool) -> Result<Datum, SqlError> {
    let Datum::Text(text) = datum else {
        return Ok(datum);
    };
    let limit = limit as usize;
    // A text has at most as many characters as bytes, so most need no counting.
    if text.len() <= limit {
        return Ok(Datum::Text(text));
    }
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return Ok(Datum::Text(text));
    };
    if !cut && text[end..].bytes().any(|byte| byte != b' ') {
        let message = format!("value too long for type {}", ty.name());
        return Err(SqlError::new(SqlState::STRING_TRUNCATION, message));
    }
    let kept = &text[..end];
    let kept = if matches!(ty, Type::Char(_)) {
        kept.trim_end_matches(' ')
    } else {
        kept
    };
    Ok(Datum::Text(Box::from(kept)))
}

/// A timestamp with `digits` digits of the fraction of its second, halves away from zero; the
/// infinities stay. 22008 if the next such moment is beyond the last one.
pub fn round_timestamp(micros: i64, digits: u8) -> Result<i64, SqlError> {
    let unit = 10i64.pow(u32::from(SECOND_DIGITS_MAX.saturating_sub(digits)));
    if unit == 1 || matches!(micros, i64::MIN | i64::MAX) {
        return Ok(micros);
    }
    let magnitude = i128::from(micros).abs() + i128::from(unit / 2);
    let rounded = magnitude / i128::from(unit) * i128::from(unit) * i128::from(micros.signum());
    match i64::try_from(rounded) {
        Ok(rounded @ TIMESTAMP_MIN..TIMESTAMP_END) => Ok(rounded),
        _ => {
            let message = "timestamp out of range";
            Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message))
        }
    }
}

/// A time of day with `digits` digits of the fraction of its second, halves up: up to 24:00.
fn round_time(micros: i64, digits: Option<u8>) -> i64 {
    let digits = digits.unwrap_or(SECOND_DIGITS_MAX);
    let unit = 10i64.pow(u32::from(SECOND_DIGITS_MAX.saturating_sub(digits)));
    (micros + unit / 2) / unit * unit
}

/// Midnight of `days`; the infinities stay infinite. 22008 if no timestamp reaches that far.
fn timestamp_of_date(days: i32) -> Result<i64, SqlError> {
    match days {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => join_timestamp(days, 0).ok_or_else(|| {
            let message = "date out of range for timestamp";
            SqlError::new(SqlState::DATETIME_OVERFLOW, message)
        }),
    }
}
