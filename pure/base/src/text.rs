//! PostgreSQL's text form of every type, both ways, and the fit of values to column types.
//!
//! Input follows PostgreSQL's grammar and error wording (`DateStyle` ISO, MDY; time zone UTC unless
//! one is given).
//! Words that need a clock (`now`, `today`) are not known here; the caller replaces them first.

mod array;
mod bits;
mod datetime;
mod fit;
mod float;
mod interval;
pub mod network;
mod range;
mod record;
mod scalar;
mod style;

pub use fit::{fit, fit_explicit, round_timestamp};
pub use record::read_record;
pub use style::{SpanStyle, is_signed};

use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
use crate::jsonb::{Jsonb, checked_json, normal_path};
use crate::numeric;
use crate::types::RangeKind;
use crate::zone::Zone;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The value that `text` stands for in type `ty`.
///
/// Length, precision and scale of `ty` are not applied, as in PostgreSQL's input functions: call
/// [`fit()`] (assignment) or [`fit_explicit`] (cast) after it. Trailing blanks of `char` are taken
/// off because they are not stored.
///
/// Errors: 22P02 (not of this form), 22003 and 22008 (out of range), 22007 (date or time form),
/// 22021 (a zero byte), 2202E and 54000 (bounds of arrays).
pub fn parse(ty: Type, text: &str) -> Result<Datum, SqlError> {
    parse_with(None, ty, text)
}

/// As [`parse`]; a moment without a zone of its own is one in `zone`.
///
/// # Errors
/// As [`parse`].
pub fn parse_in(zone: &Zone, ty: Type, text: &str) -> Result<Datum, SqlError> {
    parse_with(Some(zone), ty, text)
}

fn parse_with(zone: Option<&Zone>, ty: Type, text: &str) -> Result<Datum, SqlError> {
    match ty {
        Type::Bool => scalar::parse_bool(text).map(Datum::Bool),
        Type::Int2 => scalar::parse_int(text, ty, i16::MIN.into(), i16::MAX.into()),
        Type::Int4 => scalar::parse_int(text, ty, i32::MIN.into(), i32::MAX.into()),
        Type::Int8 => scalar::parse_int(text, ty, i64::MIN, i64::MAX),
        Type::Oid => scalar::parse_oid(text),
        Type::Reg(reg) => scalar::parse_reg(reg, text),
        // Labels and fields are the catalog's: what reads them asks it.
        Type::Enum(_) | Type::Composite(_) => Err(invalid(&ty.base_name(), text)),
        Type::Xid => scalar::parse_xid(text),
        Type::Tid => scalar::parse_tid(text),
        Type::Float4 => float::parse_float4(text).map(Datum::Float),
        Type::Float8 => float::parse_float8(text).map(Datum::Float),
        Type::Numeric(_) => numeric::parse(text),
        Type::Text | Type::Varchar(_) | Type::Unknown => {
            check_characters(text)?;
            Ok(Datum::Text(text.into()))
        }
        Type::Char(_) => {
            check_characters(text)?;
            Ok(Datum::Text(text.trim_end_matches(' ').into()))
        }
        Type::Name => {
            check_characters(text)?;
            Ok(Datum::Text(fit::truncate_name(text).into()))
        }
        Type::InternalChar => {
            check_characters(text)?;
            let end = text.chars().next().map_or(0, char::len_utf8);
            Ok(Datum::Text(text[..end].into()))
        }
        Type::Json => checked_json(text).map(Datum::Text),
        Type::Jsonb => Jsonb::parse(text).map(Datum::Jsonb),
        Type::JsonPath => normal_path(text).map(Datum::Text),
        Type::Bytea => scalar::parse_bytea(text),
        Type::Date => datetime::parse_date(text).map(Datum::Date),
        Type::Time(_) => datetime::parse_time(text).map(Datum::Time),
        Type::Timetz(_) => datetime::parse_timetz(text, zone).map(Datum::Timetz),
        Type::Bit(_) | Type::Varbit(_) => bits::parse_bits(text).map(Datum::Bits),
        Type::Timestamp(_) | Type::Timestamptz(_) => {
            datetime::parse_timestamp(text, ty, zone).map(Datum::Timestamp)
        }
        Type::Uuid => scalar::parse_uuid(text).map(Datum::Uuid),
        Type::Inet | Type::Cidr => network::parse_inet(text, ty == Type::Cidr),
        Type::Macaddr => network::parse_mac(text).map(Datum::Mac),
        Type::Interval(modifier) => interval::parse_interval(text, modifier).map(Datum::Interval),
        Type::Range(kind) => range::parse_range(text, kind, zone).map(Datum::from),
        Type::Multirange(kind) => range::parse_multirange(text, kind, zone).map(Datum::from),
        Type::Array(kind) if kind.is_vector() => array::parse_vector(text, kind.element()),
        Type::Array(kind) => array::parse_array(text, kind.element(), zone),
    }
}

/// Appends the text form of `datum`, a value of type `ty`.
///
/// NULL has no text form: the caller must tell it apart; nothing is appended for it. Only `char`
/// (padding), `real`, `timestamptz`, `tid`, `cidr`, enums, ranges and arrays look at `ty`; a value
/// of another kind is written in its own form.
pub fn format(ty: Type, datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Datum::Int(value) => match ty {
            Type::Tid => scalar::format_tid(*value, out),
            Type::Enum(id) => scalar::format_unnamed(id, *value, out),
            _ => scalar::format_int(*value, out),
        },
        Datum::Float(value) if ty == Type::Float4 => float::format_float4(*value as f32, out),
        Datum::Float(value) => float::format_float8(*value, out),
        Datum::Decimal(value) => put(out, format_args!("{value}")),
        Datum::Large(value) => put(out, format_args!("{value}")),
        Datum::Text(value) => {
            out.extend_from_slice(value.as_bytes());
            if let Type::Char(length) = ty {
                let missing = (length as usize).saturating_sub(value.chars().count());
                out.resize(out.len() + missing, b' ');
            }
        }
        Datum::Jsonb(value) => out.extend_from_slice(value.as_str().as_bytes()),
        Datum::Bytes(value) => scalar::format_bytea(value, out),
        Datum::Date(value) => datetime::format_date(*value, out),
        Datum::Time(value) => datetime::format_time(*value, out),
        Datum::Timetz(value) => datetime::format_timetz(*value, out),
        Datum::Bits(value) => out.extend_from_slice(value.digits().as_bytes()),
        Datum::Record(value) => record::format_record(value, out),
        Datum::Range(value) => range::format_range(value, (ty, None), out),
        Datum::Multirange(value) => range::format_multirange(value, (ty, None), out),
        Datum::Timestamp(value) => {
            if matches!(ty, Type::Timestamptz(_)) {
                datetime::format_moment(*value, None, out);
            } else {
                datetime::format_timestamp(*value, out);
            }
        }
        Datum::Uuid(value) => scalar::format_uuid(value, out),
        Datum::Mac(value) => network::format_mac(value, out),
        Datum::Inet(value) => network::format_inet(value, ty == Type::Cidr, out),
        Datum::Interval(value) => interval::format_interval(*value, out),
        Datum::Array(_) | Datum::Grid(_) if ty.is_vector() => {
            array::format_vector(datum, ty.element().unwrap_or(Type::Int2), out);
        }
        Datum::Array(_) | Datum::Grid(_) => {
            array::format_array(datum, ty.element().unwrap_or(Type::Text), out);
        }
    }
}

/// Whether a text of a `timetz` tells its zone, or is none.
pub fn names_offset(text: &str) -> bool {
    datetime::names_offset(text)
}

/// Whether a text tells the zone of its moment, so that [`parse`] and [`parse_in`] agree.
pub fn names_zone(text: &str) -> bool {
    datetime::names_zone(text)
}

/// Appends a `timestamptz` as the clocks of a zone show it.
pub fn format_zoned(micros: i64, zone: &Zone, out: &mut Vec<u8>) {
    datetime::format_moment(micros, Some(zone), out);
}

/// The text of a moment, or of a range or multirange of moments, as the clocks of a zone show it;
/// `None` for other values.
pub fn zoned(value: &Datum, zone: &Zone) -> Option<String> {
    let ty = Type::Range(RangeKind::Timestamptz);
    let mut out = Vec::new();
    match value {
        Datum::Timestamp(at) => format_zoned(*at, zone, &mut out),
        Datum::Range(value) => range::format_range(value, (ty, Some(zone)), &mut out),
        Datum::Multirange(value) => range::format_multirange(value, (ty, Some(zone)), &mut out),
        _ => return None,
    }
    Some(String::from_utf8(out).expect("text forms are UTF-8"))
}

/// As [`format()`], as a string of its own; for messages, casts to text and tests.
pub fn to_string(ty: Type, datum: &Datum) -> String {
    let mut out = Vec::new();
    format(ty, datum, &mut out);
    // Text comes from `str`s, everything else is ASCII.
    String::from_utf8(out).expect("text forms are UTF-8")
}

/// `invalid input syntax for type ...`, 22P02.
fn invalid(type_name: &str, text: &str) -> SqlError {
    let message = format!("invalid input syntax for type {type_name}: \"{text}\"");
    SqlError::new(SqlState::INVALID_TEXT, message)
}

/// PostgreSQL's text never holds a zero byte; 22021.
fn check_characters(text: &str) -> Result<(), SqlError> {
    if text.as_bytes().contains(&0) {
        let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
        return Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            message,
        ));
    }
    Ok(())
}

/// The blanks that PostgreSQL's input functions skip around a value.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// Appends formatted text.
fn put(out: &mut Vec<u8>, arguments: fmt::Arguments<'_>) {
    struct Sink<'a>(&'a mut Vec<u8>);
    impl fmt::Write for Sink<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    fmt::write(&mut Sink(out), arguments).expect("writing to memory cannot fail");
}

#[cfg(test)]
mod tests;
