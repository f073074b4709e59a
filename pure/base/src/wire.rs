//! PostgreSQL's binary form of every type, both ways (parameters, results, binary COPY).
//!
//! Numbers are in network order. NULL has no binary form: the caller tells it apart by length -1.

use crate::calendar::{DATE_MAX, DATE_MIN, TIMESTAMP_END, TIMESTAMP_MIN, is_time};
use crate::datum::{Datum, Interval, Type};
use crate::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use crate::text;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The only form of `jsonb` so far: this byte, then its text.
const JSONB_VERSION: u8 = 1;

fn malformed() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY, "incorrect binary data format")
}

/// Block and offset, as PostgreSQL sends them: the low 48 bits of ours.
fn decode_tid(bytes: [u8; 6]) -> Datum {
    let mut wide = [0; 8];
    wide[2..].copy_from_slice(&bytes);
    Datum::Int(i64::from_be_bytes(wide))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| malformed())
}

/// The value whose binary form in type `ty` is `bytes`. Modifiers of `ty` are not applied
/// ([`text::fit`] does that).
///
/// Errors: 22P03 (not of this form), 22021 (text that is not UTF-8), 22003 (numeric of more than 38
/// digits), 22008 (date or timestamp too far away), 0A000 (NaN, arrays of several dimensions).
pub fn decode(ty: Type, bytes: &[u8]) -> Result<Datum, SqlError> {
    Ok(match ty {
        Type::Bool => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        Type::Int2 => Datum::Int(i16::from_be_bytes(fixed(bytes)?).into()),
        Type::Int4 => Datum::Int(i32::from_be_bytes(fixed(bytes)?).into()),
        Type::Int8 => Datum::Int(i64::from_be_bytes(fixed(bytes)?)),
        Type::Oid | Type::Reg(_) | Type::Xid => {
            Datum::Int(u32::from_be_bytes(fixed(bytes)?).into())
        }
        Type::Tid => decode_tid(fixed(bytes)?),
        Type::Float4 => Datum::Float(f32::from_be_bytes(fixed(bytes)?).into()),
        Type::Float8 => Datum::Float(f64::from_be_bytes(fixed(bytes)?)),
        Type::Numeric(_) => Datum::Decimal(decode_numeric(bytes)?),
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::Unknown => text::parse(ty, decode_text(bytes)?)?,
        Type::Jsonb => match bytes.split_first() {
            Some((&JSONB_VERSION, text)) => text::parse(ty, decode_text(text)?)?,
            Some((version, _)) => {
                let message = format!("unsupported jsonb version number {version}");
                return Err(SqlError::new(SqlState::INTERNAL, message));
            }
            None => return Err(malformed()),
        },
        Type::Bytea => Datum::Bytes(bytes.into()),
        Type::Date => match i32::from_be_bytes(fixed(bytes)?) {
            days @ (i32::MIN | i32::MAX | DATE_MIN..=DATE_MAX) => Datum::Date(days),
            _ => {
                return Err(SqlError::new(
                    SqlState::DATETIME_OVERFLOW,
                    "date out of range",
                ));
            }
        },
        Type::Time(_) => decode_time(i64::from_be_bytes(fixed(bytes)?))?,
        Type::Timestamp(_) | Type::Timestamptz(_) => match i64::from_be_bytes(fixed(bytes)?) {
            micros @ (i64::MIN | i64::MAX | TIMESTAMP_MIN..TIMESTAMP_END) => {
                Datum::Timestamp(micros)
            }
            _ => {
                return Err(SqlError::new(
                    SqlState::DATETIME_OVERFLOW,
                    "timestamp out of range",
                ));
            }
        },
        // Labels are the catalog's: what reads them asks it.
        Type::Enum(_) => return Err(malformed()),
        Type::Uuid => Datum::Uuid(fixed(bytes)?),
        Type::Interval => {
            let mut reader = Reader(bytes);
            let micros = i64::from_be_bytes(reader.take()?);
            let days = reader.int()?;
            let months = reader.int()?;
            reader.finish()?;
            Datum::Interval(Interval {
                months,
                days,
                micros,
            })
        }
        Type::Array(kind) => decode_array(kind.element(), bytes)?,
    })
}

fn decode_time(micros: i64) -> Result<Datum, SqlError> {
    if is_time(micros) {
        return Ok(Datum::Time(micros));
    }
    let message = "time out of range";
    Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message))
}

fn decode_text(bytes: &[u8]) -> Result<&str, SqlError> {
    core::str::from_utf8(bytes).map_err(|error| {
        let bad = bytes.get(error.valid_up_to()).copied().unwrap_or(0);
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": 0x{bad:02x}"),
        )
    })
}

/// Appends the binary form of `datum`, a value of type `ty`; nothing for NULL.
///
/// Numbers of another kind than `ty` says are converted if they fit; the binder makes sure that
/// every other value is of type `ty`.
#[inline]
pub fn encode(ty: Type, datum: &Datum, out: &mut Vec<u8>) {
    match (ty, datum) {
        (Type::Int4, Datum::Int(value)) => out.extend_from_slice(&(*value as i32).to_be_bytes()),
        (_, Datum::Text(value)) => {
            if let Type::Char(_) = ty {
                text::format(ty, datum, out);
            } else {
                out.extend_from_slice(value.as_bytes());
            }
        }
        _ => encode_other(ty, datum, out),
    }
}

fn encode_other(ty: Type, datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) => match ty {
            Type::Int2 => out.extend_from_slice(&(*value as i16).to_be_bytes()),
            Type::Tid => out.extend_from_slice(&value.to_be_bytes()[2..]),
            Type::Int4 => out.extend_from_slice(&(*value as i32).to_be_bytes()),
            Type::Oid | Type::Reg(_) | Type::Xid => {
                out.extend_from_slice(&(*value as u32).to_be_bytes())
            }
            Type::Numeric(_) => encode_numeric(Decimal::from(*value), out),
            Type::Float4 => out.extend_from_slice(&(*value as f32).to_be_bytes()),
            Type::Float8 => out.extend_from_slice(&(*value as f64).to_be_bytes()),
            _ => out.extend_from_slice(&value.to_be_bytes()),
        },
        Datum::Float(value) => {
            if ty == Type::Float4 {
                out.extend_from_slice(&(*value as f32).to_be_bytes());
            } else {
                out.extend_from_slice(&value.to_be_bytes());
            }
        }
        Datum::Decimal(value) => match ty {
            Type::Float4 => out.extend_from_slice(&(value.to_f64() as f32).to_be_bytes()),
            Type::Float8 => out.extend_from_slice(&value.to_f64().to_be_bytes()),
            _ => encode_numeric(*value, out),
        },
        Datum::Text(value) => out.extend_from_slice(value.as_bytes()),
        Datum::Jsonb(value) => {
            out.push(JSONB_VERSION);
            out.extend_from_slice(value.as_str().as_bytes());
        }
        Datum::Bytes(value) => out.extend_from_slice(value),
        Datum::Date(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Timestamp(value) | Datum::Time(value) => out.extend_from_slice(&value.to_be_bytes()),
        Datum::Uuid(value) => out.extend_from_slice(value),
        Datum::Interval(value) => {
            out.extend_from_slice(&value.micros.to_be_bytes());
            out.extend_from_slice(&value.days.to_be_bytes());
            out.extend_from_slice(&value.months.to_be_bytes());
        }
        Datum::Array(items) => encode_array(ty.element().unwrap_or(Type::Text), items, out),
    }
}

/// Bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*head)
    }

    fn int(&mut self) -> Result<i32, SqlError> {
        self.take().map(i32::from_be_bytes)
    }

    fn short(&mut self) -> Result<u16, SqlError> {
        self.take().map(u16::from_be_bytes)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SqlError> {
        let (head, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(head)
    }

    fn finish(self) -> Result<(), SqlError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(malformed())
        }
    }
}

const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_INFINITY: u16 = 0xd000;
const NUMERIC_MINUS_INFINITY: u16 = 0xf000;

/// A numeric on the wire: count of base-10,000 digits, weight of the first (a power of 10,000),
/// sign, count of decimal fraction digits, the digits.
fn decode_numeric(bytes: &[u8]) -> Result<Decimal, SqlError> {
    let mut reader = Reader(bytes);
    let count = reader.short()?;
    let weight = i32::from(reader.short()? as i16);
    let sign = reader.short()?;
    let scale = usize::from(reader.short()?);
    let negative = match sign {
        0 => false,
        NUMERIC_NEGATIVE => true,
        NUMERIC_NAN => return "NaN".parse(),
        NUMERIC_INFINITY | NUMERIC_MINUS_INFINITY => return "Infinity".parse(),
        _ => return Err(malformed()),
    };
    let mut digits = String::new();
    if negative {
        digits.push('-');
    }
    // Digits become the text of the number, which the parser checks against all limits. A weight
    // that no number of 38 digits has is refused before the text grows.
    if count > 0 && !(-40..40).contains(&weight) {
        return Err(malformed_numeric_range());
    }
    if weight < 0 || count == 0 {
        digits.push_str("0.");
        (weight..-1).for_each(|_| digits.push_str("0000"));
    }
    let mut fraction = if weight < 0 {
        (-1 - weight) as usize * 4
    } else {
        0
    };
    let groups = if count == 0 {
        0
    } else {
        i32::from(count).max(weight + 1)
    };
    for i in 0..groups {
        let group = if i < i32::from(count) {
            reader.short()?
        } else {
            0
        };
        if group > 9_999 {
            return Err(malformed());
        }
        if i == weight + 1 && weight >= 0 {
            digits.push('.');
        }
        fraction += if i > weight { 4 } else { 0 };
        digits.push_str(&format!("{group:04}"));
    }
    reader.finish()?;
    // The last group may reach beyond the announced fraction digits, by zeros.
    let excess = fraction.saturating_sub(scale).min(fraction);
    digits.truncate(digits.len() - excess);
    let value: Decimal = digits.parse().map_err(|error: SqlError| {
        if error.state() == SqlState::INVALID_TEXT {
            malformed()
        } else {
            error
        }
    })?;
    value.round(i32::try_from(scale).map_err(|_| malformed())?)
}

fn malformed_numeric_range() -> SqlError {
    crate::decimal::overflow()
}

fn encode_numeric(value: Decimal, out: &mut Vec<u8>) {
    let scale = usize::from(value.scale());
    let mut rest = value.unscaled().unsigned_abs();
    // Decimal digits from the right, starting at a multiple of four behind the point.
    const LEN: usize = 88;
    let mut digits = [0u8; LEN];
    let fraction_groups = scale.div_ceil(4);
    let mut at = LEN - (fraction_groups * 4 - scale);
    while rest > 0 {
        at -= 1;
        digits[at] = (rest % 10) as u8;
        rest /= 10;
    }
    let group = |i: usize| {
        digits[i * 4..i * 4 + 4]
            .iter()
            .fold(0u16, |sum, d| sum * 10 + u16::from(*d))
    };
    let groups = LEN / 4;
    let first = (0..groups).find(|i| group(*i) != 0).unwrap_or(groups);
    let last = (0..groups)
        .rev()
        .find(|i| group(*i) != 0)
        .map_or(first, |last| last + 1);
    // The group just before the point has weight 0.
    let weight = if first == groups {
        0
    } else {
        (groups - fraction_groups) as i16 - 1 - first as i16
    };
    let sign = if value.is_negative() {
        NUMERIC_NEGATIVE
    } else {
        0
    };
    out.extend_from_slice(&((last - first) as u16).to_be_bytes());
    out.extend_from_slice(&weight.to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&(scale as u16).to_be_bytes());
    for i in first..last {
        out.extend_from_slice(&group(i).to_be_bytes());
    }
}

/// An array on the wire: dimensions, whether it has NULLs, element type, then length and lower
/// bound of each dimension, then the elements with their lengths (-1: NULL).
fn decode_array(element: Type, bytes: &[u8]) -> Result<Datum, SqlError> {
    let mut reader = Reader(bytes);
    let dimensions = reader.int()?;
    let _has_nulls = reader.int()?;
    let sent = Type::from_oid(reader.int()? as u32).ok_or_else(malformed)?;
    if sent.is_text() != element.is_text() || (!sent.is_text() && sent.oid() != element.oid()) {
        let message = "wrong element type in array";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    if dimensions == 0 {
        reader.finish()?;
        return Ok(Datum::Array(Vec::new().into_boxed_slice()));
    }
    if dimensions != 1 {
        let message = "multidimensional arrays are not supported";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let count = reader.int()?;
    let _lower_bound = reader.int()?;
    let mut items = Vec::new();
    for _ in 0..count {
        let length = reader.int()?;
        items.push(match usize::try_from(length) {
            Ok(length) => decode(element, reader.bytes(length)?)?,
            Err(_) if length == -1 => Datum::Null,
            Err(_) => return Err(malformed()),
        });
    }
    reader.finish()?;
    Ok(Datum::Array(items.into_boxed_slice()))
}

/// An array of texts, or of the labels of the enum type `id`, from its binary form.
///
/// # Errors
/// Those of [`decode`] for an array of text.
pub fn decode_texts(bytes: &[u8], id: u32) -> Result<Datum, SqlError> {
    const OID: core::ops::Range<usize> = 8..12;
    let texts = Type::Array(crate::datum::ArrayKind::Text);
    if bytes.get(OID) != Some(&id.to_be_bytes()[..]) {
        return decode(texts, bytes);
    }
    let mut labels = bytes.to_vec();
    labels[OID].copy_from_slice(&Type::Text.oid().to_be_bytes());
    decode(texts, &labels)
}

fn encode_array(element: Type, items: &[Datum], out: &mut Vec<u8>) {
    let has_nulls = items.iter().any(Datum::is_null);
    out.extend_from_slice(&i32::from(!items.is_empty()).to_be_bytes());
    out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    if items.is_empty() {
        return;
    }
    out.extend_from_slice(&(items.len() as i32).to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    for item in items {
        if item.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(element, item, out);
        let length = (out.len() - start - 4) as i32;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
