//! Conversions of values from one type to another.
//!
//! Which conversions exist, and where they apply by themselves, is decided by `resolve`; here they
//! are carried out.

use crate::datetime::interval_of_time;
use crate::{json, range};
use base::calendar::{MICROS_PER_DAY, join_timestamp, split_timestamp};
use base::text::{self, fit, fit_explicit};
use base::{ArrayKind, Bits, Datum, Decimal, SqlError, SqlState, Timetz, Type, numeric};

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

/// The value of a text in the form of a type, without regard to its modifier.
///
/// # Errors
/// Those of [`text::parse`], and 2201B for a regular expression in a path.
pub fn read(ty: Type, text: &str) -> Result<Datum, SqlError> {
    let value = text::parse(ty, text)?;
    if ty == Type::JsonPath {
        json::parse_path(text)?;
    }
    Ok(value)
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
            read(to, text)
        }
        Type::Json | Type::Jsonb => json::from_other(value, from, to),
        _ if let Datum::Jsonb(json) = &value => json::to_scalar(json, to),
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) => to_int(value, from, to),
        Type::JsonPath => Err(no_cast(from, to)),
        // One made of another is made by the binder, which knows the fields.
        Type::Composite(_) => keep(value, from, to, |value| matches!(value, Datum::Record(_))),
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
        Type::Date => to_date(value, from, to),
        Type::Timestamp(_) | Type::Timestamptz(_) => match value {
            Datum::Date(days) => date_to_timestamp(days).map(Datum::Timestamp),
            other => keep(other, from, to, |value| {
                matches!(value, Datum::Timestamp(_))
            }),
        },
        Type::Timetz(_) => to_timetz(value, from, to),
        Type::Bit(_) | Type::Varbit(_) => to_bits(value, from, to),
        Type::Time(_) => match value {
            Datum::Timetz(value) => Ok(Datum::Time(value.micros)),
            Datum::Timestamp(i64::MIN | i64::MAX) => Ok(Datum::Null),
            Datum::Timestamp(micros) => Ok(Datum::Time(split_timestamp(micros).1)),
            Datum::Interval(span) => Ok(Datum::Time(span.micros.rem_euclid(MICROS_PER_DAY))),
            other => keep(other, from, to, |value| matches!(value, Datum::Time(_))),
        },
        Type::Interval(_) => match value {
            Datum::Time(micros) => Ok(interval_of_time(micros).into()),
            other => keep(other, from, to, |value| matches!(value, Datum::Interval(_))),
        },
        Type::Inet | Type::Cidr | Type::Macaddr => to_address(value, from, to),
        Type::Range(_) | Type::Multirange(_) => to_ranges(value, from, to),
        Type::Bytea => keep(value, from, to, |value| matches!(value, Datum::Bytes(_))),
        Type::Uuid => keep(value, from, to, |value| matches!(value, Datum::Uuid(_))),
        Type::Array(kind) => match value {
            Datum::Array(_) | Datum::Grid(_) => {
                let item_type = from.element().unwrap_or(Type::Unknown);
                let element = item_type_of(kind);
                value.try_map_items(|item| cast_datum(item, item_type, element, true))
            }
            other => keep(other, from, to, |_| false),
        },
    }
}

/// As what the items of an array are converted.
fn item_type_of(kind: ArrayKind) -> Type {
    match kind.element() {
        // How many bits a number becomes is told by the length.
        bit @ Type::Bit(_) => bit,
        other => other.without_modifiers(),
    }
}

fn to_date(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match value {
        Datum::Timestamp(i64::MIN) => Ok(Datum::Date(i32::MIN)),
        Datum::Timestamp(i64::MAX) => Ok(Datum::Date(i32::MAX)),
        Datum::Timestamp(micros) => Ok(Datum::Date(split_timestamp(micros).0)),
        other => keep(other, from, to, |value| matches!(value, Datum::Date(_))),
    }
}

fn to_bits(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match (value, to) {
        (Datum::Int(number), Type::Bit(length)) => {
            let length = length.unwrap_or(1) as usize;
            Ok(Datum::Bits(Bits::of_int(number, length)))
        }
        (other, _) => keep(other, from, to, |value| matches!(value, Datum::Bits(_))),
    }
}

/// A time with its zone, which is UTC if there was none.
fn to_timetz(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    let at = |micros| Ok(Datum::Timetz(Timetz { micros, west: 0 }));
    match value {
        Datum::Timestamp(i64::MIN | i64::MAX) => Ok(Datum::Null),
        Datum::Timestamp(micros) => at(split_timestamp(micros).1),
        Datum::Time(micros) => at(micros),
        other => keep(other, from, to, |value| matches!(value, Datum::Timetz(_))),
    }
}

/// An address; what becomes a `cidr` loses the bits behind its mask.
fn to_address(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match (value, to) {
        (Datum::Inet(address), Type::Cidr) => Ok(Datum::Inet(address.network())),
        (value @ Datum::Inet(_), Type::Inet) | (value @ Datum::Mac(_), Type::Macaddr) => Ok(value),
        _ => Err(no_cast(from, to)),
    }
}

/// A range, or a multirange, which a range becomes.
fn to_ranges(value: Datum, from: Type, to: Type) -> Result<Datum, SqlError> {
    match (value, to) {
        (value @ Datum::Range(_), Type::Range(_)) => Ok(value),
        (value @ Datum::Multirange(_), Type::Multirange(_)) => Ok(value),
        (value @ Datum::Range(_), Type::Multirange(_)) => Ok(range::united(&[value])),
        _ => Err(no_cast(from, to)),
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
        Datum::Inet(address) if !matches!(to, Type::Name | Type::InternalChar) => {
            text::network::whole(&address).into()
        }
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
        Datum::Bits(bits) => {
            let number = bits.to_unsigned();
            match to {
                Type::Int4 => number
                    .and_then(|number| u32::try_from(number).ok())
                    .filter(|_| bits.len() <= 32)
                    .map(|number| Datum::Int((number as i32).into())),
                _ => number.map(|number| Datum::Int(number as i64)),
            }
            .ok_or_else(|| out_of_range(to))
        }
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
        Datum::Large(number) => match number.to_i64() {
            Some(number) => checked_int(number, to),
            None if number.is_finite() => Err(out_of_range(to)),
            None => {
                let what = if number.is_nan() { "NaN" } else { "infinity" };
                let message = format!("cannot convert {what} to {}", to.base_name());
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        },
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
        Datum::Large(number) => text::parse(Type::Float4, &number.to_string()),
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
        Datum::Large(number) => text::parse(Type::Float8, &number.to_string()),
        Datum::Float(_) => Ok(value),
        _ => Err(no_cast(Type::Unknown, Type::Float8)),
    }
}

fn to_decimal(value: Datum, from: Type) -> Result<Datum, SqlError> {
    match value {
        Datum::Int(number) => Ok(Datum::Decimal(Decimal::from(number))),
        Datum::Float(number) if from == Type::Float4 => numeric::from_f32(number as f32),
        Datum::Float(number) => numeric::from_f64(number),
        Datum::Decimal(_) | Datum::Large(_) => Ok(value),
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
