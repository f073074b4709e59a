//! PostgreSQL's binary form of every type, both ways (parameters, results, binary COPY).
//!
//! Numbers are in network order. NULL has no binary form: the caller tells it apart by length -1.

use crate::bits::{BITS_MAX, Bits};
use crate::calendar::{DATE_MAX, DATE_MIN, TIMESTAMP_END, TIMESTAMP_MIN, is_time};
use crate::datum::{Datum, Interval, Timetz, Type};
use crate::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use crate::grid::{DIMENSIONS_MAX, Dimension, Shape};
use crate::inet::Inet;
use crate::numeric;
use crate::range::{self, Multirange, Range};
use crate::record::Record;
use crate::text;
use crate::types::RangeKind;
use alloc::format;
use alloc::vec::Vec;

/// The only form of `jsonb` so far: this byte, then its text.
const JSONB_VERSION: u8 = 1;

/// The only form of `jsonpath` so far: this byte, then its text.
const JSONPATH_VERSION: u8 = 1;

fn malformed() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY, "incorrect binary data format")
}

/// The text behind the number of its form.
fn versioned(ty: Type, bytes: &[u8]) -> Result<&str, SqlError> {
    let (known, colon) = match ty {
        Type::Jsonb => (JSONB_VERSION, ""),
        _ => (JSONPATH_VERSION, ":"),
    };
    match bytes.split_first() {
        Some((version, text)) if *version == known => decode_text(text),
        Some((version, _)) => {
            let name = ty.base_name();
            let message = format!("unsupported {name} version number{colon} {version}");
            Err(SqlError::new(SqlState::INTERNAL, message))
        }
        None => Err(malformed()),
    }
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
/// Errors: 22P03 (not of this form), 22021 (text that is not UTF-8), 22003 (a numeric of too many
/// digits), 22008 (date or timestamp too far away), 54000 (bounds of arrays).
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
        Type::Numeric(_) => decode_numeric(bytes)?,
        Type::Text
        | Type::Varchar(_)
        | Type::Char(_)
        | Type::Name
        | Type::InternalChar
        | Type::Json
        | Type::Unknown => text::parse(ty, decode_text(bytes)?)?,
        Type::Jsonb | Type::JsonPath => text::parse(ty, versioned(ty, bytes)?)?,
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
        Type::Timetz(_) => decode_timetz(bytes)?,
        Type::Bit(_) | Type::Varbit(_) => decode_bits(ty, bytes)?,
        Type::Time(_) => decode_time(i64::from_be_bytes(fixed(bytes)?))?,
        Type::Timestamp(_) | Type::Timestamptz(_) => {
            decode_timestamp(i64::from_be_bytes(fixed(bytes)?))?
        }
        // Labels and fields are the catalog's: what reads them asks it.
        Type::Enum(_) | Type::Composite(_) => return Err(malformed()),
        Type::Uuid => Datum::Uuid(fixed(bytes)?),
        Type::Macaddr => Datum::Mac(fixed(bytes)?),
        Type::Inet | Type::Cidr => Datum::Inet(Inet::from_wire(ty == Type::Cidr, bytes)?),
        Type::Interval(_) => {
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
        Type::Range(kind) => decode_range(kind, bytes)?.into(),
        Type::Multirange(kind) => decode_multirange(kind, bytes)?.into(),
        Type::Array(kind) if kind.is_vector() => decode_vector(ty, bytes)?,
        Type::Array(kind) => decode_array(kind.element(), bytes)?,
    })
}

/// Flags, then the bounds that there are, each behind its length.
fn decode_range(kind: RangeKind, bytes: &[u8]) -> Result<Range, SqlError> {
    let mut reader = Reader(bytes);
    let [flags] = reader.take()?;
    let is_empty = flags & range::EMPTY != 0;
    let mut values = [Datum::Null, Datum::Null];
    for (value, infinite) in values.iter_mut().zip(range::INFINITE) {
        if !is_empty && flags & infinite == 0 {
            let length = usize::try_from(reader.int()?).map_err(|_| malformed())?;
            *value = decode(kind.bound(), reader.bytes(length)?)?;
        }
    }
    reader.finish()?;
    match is_empty {
        true => Ok(Range::EMPTY),
        false => Range::new(kind, values, range::INCLUSIVE.map(|bit| flags & bit != 0)),
    }
}

/// Number of ranges, then each behind its length.
fn decode_multirange(kind: RangeKind, bytes: &[u8]) -> Result<Multirange, SqlError> {
    let mut reader = Reader(bytes);
    let count = reader.int()?;
    let mut ranges = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(reader.int()?).map_err(|_| malformed())?;
        ranges.push(decode_range(kind, reader.bytes(length)?)?);
    }
    reader.finish()?;
    Ok(Multirange::of(ranges))
}

fn decode_timestamp(micros: i64) -> Result<Datum, SqlError> {
    match micros {
        i64::MIN | i64::MAX | TIMESTAMP_MIN..TIMESTAMP_END => Ok(Datum::Timestamp(micros)),
        _ => {
            let message = "timestamp out of range";
            Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message))
        }
    }
}

fn decode_time(micros: i64) -> Result<Datum, SqlError> {
    if is_time(micros) {
        return Ok(Datum::Time(micros));
    }
    let message = "time out of range";
    Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message))
}

/// Microseconds and the offset of the zone.
fn decode_timetz(bytes: &[u8]) -> Result<Datum, SqlError> {
    let mut reader = Reader(bytes);
    let micros = i64::from_be_bytes(reader.take()?);
    let west = reader.int()?;
    reader.finish()?;
    decode_time(micros)?;
    match Timetz::new(micros, west) {
        Some(value) => Ok(Datum::Timetz(value)),
        None => {
            let message = "time zone displacement out of range";
            Err(SqlError::new(SqlState(*b"22009"), message))
        }
    }
}

/// Number of bits, then their bytes.
fn decode_bits(ty: Type, bytes: &[u8]) -> Result<Datum, SqlError> {
    let mut reader = Reader(bytes);
    let length = u32::try_from(reader.int()?).ok();
    let Some(length) = length.filter(|length| *length <= BITS_MAX) else {
        let what = match ty {
            Type::Bit(_) => "bit string",
            _ => "bit varying",
        };
        let message = format!("invalid length in external {what}");
        return Err(SqlError::new(SqlState::INVALID_BINARY, message));
    };
    let length = length as usize;
    let value = Bits::of_bytes(reader.bytes(length.div_ceil(8))?, length);
    reader.finish()?;
    Ok(Datum::Bits(value))
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
        (_, Datum::Text(value)) => match ty {
            Type::Char(_) => text::format(ty, datum, out),
            Type::JsonPath => {
                out.push(JSONPATH_VERSION);
                out.extend_from_slice(value.as_bytes());
            }
            _ => out.extend_from_slice(value.as_bytes()),
        },
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
        Datum::Large(value) => match ty {
            Type::Float4 => out.extend_from_slice(&(value.to_f64() as f32).to_be_bytes()),
            Type::Float8 => out.extend_from_slice(&value.to_f64().to_be_bytes()),
            _ => value.to_wire(out),
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
        Datum::Mac(value) => out.extend_from_slice(value),
        Datum::Timetz(value) => {
            out.extend_from_slice(&value.micros.to_be_bytes());
            out.extend_from_slice(&value.west.to_be_bytes());
        }
        Datum::Bits(value) => {
            out.extend_from_slice(&(value.len() as i32).to_be_bytes());
            out.extend_from_slice(value.bytes());
        }
        Datum::Inet(value) => value.to_wire(ty == Type::Cidr, out),
        Datum::Interval(value) => {
            out.extend_from_slice(&value.micros.to_be_bytes());
            out.extend_from_slice(&value.days.to_be_bytes());
            out.extend_from_slice(&value.months.to_be_bytes());
        }
        Datum::Record(value) => encode_record(value, out),
        Datum::Range(value) => encode_range(ty, value, out),
        Datum::Multirange(value) => {
            out.extend_from_slice(&(value.ranges().len() as i32).to_be_bytes());
            for range in value.ranges() {
                behind_length(out, |out| encode_range(ty, range, out));
            }
        }
        Datum::Array(_) | Datum::Grid(_) => {
            encode_array(ty, datum, out);
        }
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

/// A numeric on the wire: count of base-10,000 digits, weight of the first (a power of 10,000),
/// sign, count of decimal fraction digits, the digits.
fn decode_numeric(bytes: &[u8]) -> Result<Datum, SqlError> {
    let mut reader = Reader(bytes);
    let count = reader.short()?;
    let weight = reader.short()? as i16;
    let (sign, scale) = (reader.short()?, reader.short()?);
    let groups = (0..count).map(|_| reader.short());
    let groups = groups.collect::<Result<Vec<u16>, _>>()?;
    reader.finish()?;
    numeric::from_wire((weight, sign, scale), &groups)
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
    let has_nulls = reader.int()?;
    let Ok(dimensions) = usize::try_from(dimensions) else {
        let message = format!("invalid number of dimensions: {dimensions}");
        return Err(SqlError::new(SqlState::INVALID_BINARY, message));
    };
    if dimensions > DIMENSIONS_MAX {
        return Err(crate::grid::too_many_dimensions(dimensions));
    }
    if !(0..=1).contains(&has_nulls) {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY,
            "invalid array flags",
        ));
    }
    let sent = Type::from_oid(reader.int()? as u32).ok_or_else(malformed)?;
    if sent.is_text() != element.is_text() || (!sent.is_text() && sent.oid() != element.oid()) {
        let message = "wrong element type in array";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    let mut all = [Dimension::default(); DIMENSIONS_MAX];
    for one in &mut all[..dimensions] {
        *one = Dimension {
            length: reader.int()?,
            lower: reader.int()?,
        };
    }
    let shape = Shape::new(&all[..dimensions])?;
    let mut items = Vec::new();
    for _ in 0..shape.items() {
        let length = reader.int()?;
        items.push(match usize::try_from(length) {
            Ok(length) => decode(element, reader.bytes(length)?)?,
            Err(_) if length == -1 => Datum::Null,
            Err(_) => return Err(malformed()),
        });
    }
    reader.finish()?;
    Ok(Datum::shaped(shape, items))
}

/// A vector on the wire: an array of one dimension, which counts from 0.
fn decode_vector(ty: Type, bytes: &[u8]) -> Result<Datum, SqlError> {
    let array = decode_array(ty.element().unwrap_or(Type::Int2), bytes)?;
    let items = array.as_array().unwrap_or_default();
    let dimensions = array.shape().unwrap_or_default().dimensions().len();
    if dimensions > 1 || items.iter().any(Datum::is_null) {
        let message = format!("invalid {} data", ty.base_name());
        return Err(SqlError::new(SqlState::INVALID_BINARY, message));
    }
    Ok(Datum::Array(items.iter().cloned().collect()))
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

/// The oid of the type of a field and its bytes; `None`: NULL.
pub type FieldBytes<'a> = (u32, Option<&'a [u8]>);

/// The fields of a row.
///
/// # Errors
/// 22P03.
pub fn read_record(bytes: &[u8]) -> Result<Vec<FieldBytes<'_>>, SqlError> {
    let mut reader = Reader(bytes);
    let count = reader.int()?;
    let mut fields = Vec::new();
    for _ in 0..count {
        let oid = u32::from_be_bytes(reader.take()?);
        let length = reader.int()?;
        let value = match usize::try_from(length) {
            Ok(length) => Some(reader.bytes(length)?),
            Err(_) if length == -1 => None,
            Err(_) => return Err(malformed()),
        };
        fields.push((oid, value));
    }
    reader.finish()?;
    Ok(fields)
}

fn encode_record(record: &Record, out: &mut Vec<u8>) {
    out.extend_from_slice(&(record.values().len() as i32).to_be_bytes());
    for (ty, value) in record.fields() {
        out.extend_from_slice(&ty.oid().to_be_bytes());
        encode_item(ty, value, out);
    }
}

fn encode_range(ty: Type, range: &Range, out: &mut Vec<u8>) {
    out.push(range.flags());
    let bound = ty.range_kind().map_or(Type::Unknown, RangeKind::bound);
    for value in range.values().iter().filter(|value| !value.is_null()) {
        encode_item(bound, value, out);
    }
}

fn encode_array(ty: Type, array: &Datum, out: &mut Vec<u8>) {
    let element = ty.element().unwrap_or(Type::Text);
    let before_first = i32::from(ty.is_vector());
    let (items, shape) = (array.as_array().unwrap_or_default(), array.shape());
    let has_nulls = items.iter().any(Datum::is_null);
    let shape = shape.unwrap_or_default();
    out.extend_from_slice(&(shape.dimensions().len() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_nulls).to_be_bytes());
    out.extend_from_slice(&element.oid().to_be_bytes());
    for one in shape.dimensions() {
        out.extend_from_slice(&one.length.to_be_bytes());
        out.extend_from_slice(&(one.lower - before_first).to_be_bytes());
    }
    for item in items {
        encode_item(element, item, out);
    }
}

/// Appends a value behind its length; -1: NULL.
fn encode_item(ty: Type, item: &Datum, out: &mut Vec<u8>) {
    if item.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    behind_length(out, |out| encode(ty, item, out));
}

/// Appends what `write` appends, behind its length.
fn behind_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests;
