//! The order-preserving encoding of key columns.
//!
//! Comparing the bytes of two encodings gives the order of the values (`Datum::compare`), also
//! when several columns follow each other, because no encoding is a prefix of another one of the
//! same type. A descending column is the ascending encoding with every bit inverted.
//!
//! | value | bytes |
//! |---|---|
//! | NULL | `ff` (so last when ascending, first when descending, as in PostgreSQL) |
//! | integer, date, time, timestamp | `80`+v for 0 <= v < 112; else sign and length, magnitude |
//! | boolean | `00` or `01` |
//! | float | `01`, then 8 bytes: sign bit flipped, or all bits if negative; one zero, one NaN |
//! | numeric | a byte with sign and exponent, then two digits per byte, the last one marked; |
//! | | with an exponent that is no byte, a byte and the exponent in 4 bytes before them |
//! | numeric NaN, infinities | `fe`, `fd`, `02` |
//! | text | its bytes, `00` written as `00 ff`, then `00 00` |
//! | bytea | `01`, then as text |
//! | uuid, macaddr | `01`, then its bytes |
//! | inet | `02` of IPv4, `03` of IPv6; for each 8 bits of the network those and their count, to |
//! | | the first that are fewer; then the address, if the network is shorter than that |
//! | timetz | its microseconds in UTC, then the offset of its zone, as integers |
//! | bit, bit varying | as bytea, then the number of bits in the last byte, 1 to 8, or 0 |
//! | interval | `01`, then its length as 16 bytes |
//! | jsonb | as [`json::encode_key`] has it |
//! | array | `03` and the encoding of each element, then `01`; `00` and a shape if it is one |
//! | | dimension that starts below 1, `02` and a shape if it is another that is not from 1 |
//! | range | `01` if empty; else `02`, the lower bound, the upper bound |
//! | lower bound | `01` if infinite; else `02`, the value, `00`, or `01` if exclusive |
//! | upper bound | `03` if infinite; else `02`, the value, `01`, or `00` if exclusive |
//! | multirange | as an array of ranges |
//! | composite | `01`, the types of the fields as bytea, then as an array |
//! | shape | number of dimensions, their lengths, their lower bounds, as integers |
//!
//! Equal values give equal bytes; decoding therefore gives *an* equal value: decimals come back
//! with their smallest scale, those in a jsonb too, intervals normalised, -0.0 as 0.0.

use crate::bits::Bits;
use crate::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, is_time};
use crate::codec::CodecError;
use crate::datum::{Datum, Interval, Timetz, Type};
use crate::decimal::{Decimal, POW10};
use crate::grid::{DIMENSIONS_MAX, Dimension, Grid};
use crate::inet::Inet;
use crate::jsonb::Jsonb;
use crate::numeric::{self, Numeric};
use crate::range::{Bound, Multirange, Range};
use crate::record::{RECORD_DEPTH_MAX, Record, checked_types};
use crate::types::RangeKind;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const NULL: u8 = 0xff;
/// Starts values whose first byte could otherwise be that of NULL.
const PRESENT: u8 = 0x01;
const ELEMENT: u8 = 0x03;
/// Ends an array of one dimension from 1. Those of the same elements that are less end in
/// [`LOW_GRID_END`], others in [`GRID_END`].
const ARRAY_END: u8 = 0x01;
const LOW_GRID_END: u8 = 0x00;
const GRID_END: u8 = 0x02;

const EMPTY_RANGE: u8 = 0x01;
const FULL_RANGE: u8 = 0x02;
const BEFORE_ALL: u8 = 0x01;
const FINITE: u8 = 0x02;
const BEHIND_ALL: u8 = 0x03;

/// First byte of the integer 0; small integers are added to it.
const INT_ZERO: u8 = 0x80;
/// First integer that does not fit its first byte.
const INT_INLINE_END: i64 = 112;
/// First byte of a larger positive integer, before its length 1 to 8 is added.
const INT_LONG: u8 = INT_ZERO + INT_INLINE_END as u8 - 1;
/// First byte of a negative integer, before its length 0 to 8 is taken off.
const INT_NEGATIVE: u8 = 0x7f;

const DECIMAL_ZERO: u8 = 0x80;
/// Smallest decimal exponent: 10^-38 is 0.1 * 10^-37.
const EXPONENT_MIN: i32 = -37;
/// Largest decimal exponent: 10^38 - 1 is 0.99... * 10^38.
const EXPONENT_MAX: i32 = 38;

/// Starts a number above all exponents that are a byte, before its exponent.
const DECIMAL_HUGE: u8 = 0xcd;
const DECIMAL_INFINITE: u8 = 0xfd;
const DECIMAL_NAN: u8 = 0xfe;
/// Follows the byte of the smallest exponent if the true one is smaller still: less than the first
/// two digits of any number.
const DECIMAL_TINY: u8 = 0x00;
/// Makes exponents positive.
const EXPONENT_BIAS: i64 = 1 << 20;

/// Appends the encoding of one key column.
///
/// Integers, floats, dates, times, timestamps and uuids take no allocation beyond `out` itself.
#[inline]
pub fn encode_datum(out: &mut Vec<u8>, datum: &Datum, descending: bool) {
    let start = out.len();
    match datum {
        Datum::Int(value) => encode_int(out, *value),
        Datum::Text(value) => encode_bytes(out, value.as_bytes()),
        _ => encode_other(out, datum),
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn encode_other(out: &mut Vec<u8>, datum: &Datum) {
    match datum {
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int(value) | Datum::Timestamp(value) | Datum::Time(value) => {
            encode_int(out, *value);
        }
        Datum::Date(value) => encode_int(out, i64::from(*value)),
        Datum::Float(value) => {
            out.push(PRESENT);
            out.extend_from_slice(&ordered_bits(*value).to_be_bytes());
        }
        Datum::Decimal(value) => encode_decimal(out, *value),
        Datum::Large(value) => encode_large(out, value),
        Datum::Text(value) => encode_bytes(out, value.as_bytes()),
        Datum::Bytes(value) => {
            out.push(PRESENT);
            encode_bytes(out, value);
        }
        Datum::Uuid(value) => {
            out.push(PRESENT);
            out.extend_from_slice(value);
        }
        Datum::Inet(value) => value.write_key(out),
        Datum::Timetz(value) => {
            encode_int(out, value.utc());
            encode_int(out, value.west.into());
        }
        Datum::Bits(value) => {
            out.push(PRESENT);
            encode_bytes(out, value.bytes());
            let before = value.bytes().len().saturating_sub(1) * 8;
            out.push((value.len() - before) as u8);
        }
        Datum::Mac(value) => {
            out.push(PRESENT);
            out.extend_from_slice(value);
        }
        Datum::Interval(value) => {
            out.push(PRESENT);
            let ordered = value.total_micros() as u128 ^ (1 << 127);
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Datum::Jsonb(value) => json::encode_key(value.as_str(), out),
        Datum::Record(value) => {
            out.push(PRESENT);
            encode_bytes(out, &value.type_bytes());
            encode_items(out, value.values());
            out.push(ARRAY_END);
        }
        Datum::Range(value) => encode_range(out, value),
        Datum::Multirange(value) => {
            for range in value.ranges() {
                out.push(ELEMENT);
                encode_range(out, range);
            }
            out.push(ARRAY_END);
        }
        Datum::Array(items) => {
            encode_items(out, items);
            out.push(ARRAY_END);
        }
        Datum::Grid(grid) => encode_grid(out, grid),
    }
}

fn encode_grid(out: &mut Vec<u8>, grid: &Grid) {
    encode_items(out, grid.items());
    let shape = grid.shape();
    out.push(match shape.dimensions() {
        [one] if one.lower < 1 => LOW_GRID_END,
        _ => GRID_END,
    });
    let dimensions = shape.dimensions();
    encode_int(out, dimensions.len() as i64);
    let lengths = dimensions.iter().map(|one| one.length);
    for number in lengths.chain(dimensions.iter().map(|one| one.lower)) {
        encode_int(out, number.into());
    }
}

fn encode_range(out: &mut Vec<u8>, range: &Range) {
    if range.is_empty() {
        return out.push(EMPTY_RANGE);
    }
    out.push(FULL_RANGE);
    encode_bound(out, range.lower());
    encode_bound(out, range.upper());
}

fn encode_bound(out: &mut Vec<u8>, bound: Bound<'_>) {
    match (bound.value, bound.is_lower) {
        (Some(value), is_lower) => {
            out.push(FINITE);
            encode_datum(out, value, false);
            out.push(u8::from(bound.is_inclusive != is_lower));
        }
        (None, true) => out.push(BEFORE_ALL),
        (None, false) => out.push(BEHIND_ALL),
    }
}

fn encode_items(out: &mut Vec<u8>, items: &[Datum]) {
    for item in items {
        out.push(ELEMENT);
        encode_datum(out, item, false);
    }
}

#[inline]
fn encode_int(out: &mut Vec<u8>, value: i64) {
    if (0..INT_INLINE_END).contains(&value) {
        out.push(INT_ZERO + value as u8);
        return;
    }
    let bytes = value.to_be_bytes();
    // Leading bytes that only repeat the sign are left out.
    let significant = value ^ (value >> 63);
    let skipped = (significant.leading_zeros() / 8) as usize;
    let length = (8 - skipped) as u8;
    out.push(if value >= 0 {
        INT_LONG + length
    } else {
        INT_NEGATIVE - length
    });
    out.extend_from_slice(&bytes[skipped..]);
}

fn encode_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    let mut rest = bytes;
    // `contains` looks at many bytes at once, and zeros are rare.
    while rest.contains(&0) {
        let zero = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xff);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// The float's bits so that their unsigned order is the order of the numbers.
fn ordered_bits(value: f64) -> u64 {
    let canonical = if value.is_nan() {
        f64::NAN.abs()
    } else if value == 0.0 {
        0.0
    } else {
        value
    };
    let bits = canonical.to_bits();
    if bits >> 63 == 0 {
        bits | 1 << 63
    } else {
        !bits
    }
}

fn float_of_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 {
        bits ^ 1 << 63
    } else {
        !bits
    })
}

/// Writes the number as 0.d1d2d3... * 10^exponent with d1 not zero.
fn encode_decimal(out: &mut Vec<u8>, value: Decimal) {
    let mut digits = value.unscaled().unsigned_abs();
    if digits == 0 {
        out.push(DECIMAL_ZERO);
        return;
    }
    let count = digits.ilog10() as i32 + 1;
    let rank = (count - i32::from(value.scale()) - EXPONENT_MIN) as u8;
    let start = out.len();
    out.push(DECIMAL_ZERO + 1 + rank);
    if count % 2 == 1 {
        // Pairs start at the first digit, so an odd number of digits ends in a zero.
        digits *= 10;
    }
    while digits.is_multiple_of(100) {
        digits /= 100;
    }
    let pairs = (digits.ilog10() as usize) / 2 + 1;
    out.resize(start + 1 + pairs, 0);
    for (at, byte) in out[start + 1..].iter_mut().rev().enumerate() {
        // The mark of a pair that has a successor is in the lowest bit: "12" < "1205".
        *byte = (digits % 100) as u8 * 2 + u8::from(at > 0);
        digits /= 100;
    }
    if value.is_negative() {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// As [`encode_decimal`], of any number.
fn encode_large(out: &mut Vec<u8>, value: &Numeric) {
    let start = out.len();
    let Some((negative, exponent, digits)) = value.key_parts() else {
        out.push(match (value.is_nan(), value.is_negative()) {
            (true, _) => DECIMAL_NAN,
            (_, false) => DECIMAL_INFINITE,
            (_, true) => !DECIMAL_INFINITE,
        });
        return;
    };
    if digits.is_empty() {
        return out.push(DECIMAL_ZERO);
    }
    let biased = ((exponent + EXPONENT_BIAS) as u32).to_be_bytes();
    if exponent < i64::from(EXPONENT_MIN) {
        out.extend_from_slice(&[DECIMAL_ZERO + 1, DECIMAL_TINY]);
        out.extend_from_slice(&biased);
    } else if exponent > i64::from(EXPONENT_MAX) {
        out.push(DECIMAL_HUGE);
        out.extend_from_slice(&biased);
    } else {
        out.push(DECIMAL_ZERO + 1 + (exponent - i64::from(EXPONENT_MIN)) as u8);
    }
    let pairs = digits.as_bytes().chunks(2);
    let count = pairs.len();
    for (at, pair) in pairs.enumerate() {
        let digit = |i: usize| pair.get(i).map_or(0, |digit| digit - b'0');
        let has_next = u8::from(at + 1 < count);
        out.push((digit(0) * 10 + digit(1)) * 2 + has_next);
    }
    if negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Reads encoded columns; `mask` is `ff` for a descending one.
struct Reader<'a, 'b> {
    input: &'a mut &'b [u8],
    mask: u8,
    /// Records that the value which is read lies in.
    depth: u8,
}

impl Reader<'_, '_> {
    fn byte(&mut self) -> Result<u8, CodecError> {
        let (first, rest) = self.input.split_first().ok_or(CodecError::Truncated)?;
        *self.input = rest;
        Ok(first ^ self.mask)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (head, rest) = self
            .input
            .split_first_chunk::<N>()
            .ok_or(CodecError::Truncated)?;
        *self.input = rest;
        Ok(head.map(|byte| byte ^ self.mask))
    }

    /// An integer whose first byte is `first`.
    fn int(&mut self, first: u8) -> Result<i64, CodecError> {
        let (negative, length) = match first {
            INT_ZERO..=INT_LONG => return Ok(i64::from(first - INT_ZERO)),
            0x77..=INT_NEGATIVE => (true, INT_NEGATIVE - first),
            0xf0..=0xf7 => (false, first - INT_LONG),
            _ => return Err(CodecError::Malformed("integer key column")),
        };
        let mut value = if negative { -1i64 } else { 0 };
        for _ in 0..length {
            value = value << 8 | i64::from(self.byte()?);
        }
        Ok(value)
    }

    /// Bytes up to the terminator; `first` was read already.
    fn bytes(&mut self, first: u8) -> Result<Vec<u8>, CodecError> {
        let mut bytes = Vec::new();
        let mut byte = first;
        loop {
            if byte != 0 {
                bytes.push(byte);
            } else {
                match self.byte()? {
                    0 => return Ok(bytes),
                    0xff => bytes.push(0),
                    _ => return Err(CodecError::Malformed("escape in a key column")),
                }
            }
            byte = self.byte()?;
        }
    }

    fn decimal(&mut self, first: u8) -> Result<Datum, CodecError> {
        let malformed = CodecError::Malformed("numeric key column");
        let special = |value: Numeric| Ok(Datum::Large(Box::new(value)));
        const MINUS_INFINITE: u8 = !DECIMAL_INFINITE;
        match first {
            DECIMAL_ZERO => return Ok(Datum::Decimal(Decimal::ZERO)),
            DECIMAL_NAN => return special(Numeric::Nan),
            DECIMAL_INFINITE => return special(Numeric::Infinity { negative: false }),
            MINUS_INFINITE => return special(Numeric::Infinity { negative: true }),
            _ => {}
        }
        let negative = first < DECIMAL_ZERO;
        let flip = if negative { 0xff } else { 0 };
        let rank = (first ^ flip)
            .checked_sub(DECIMAL_ZERO + 1)
            .ok_or(malformed)?;
        if rank == DECIMAL_HUGE - DECIMAL_ZERO - 1 {
            return self.far_decimal(negative, None);
        }
        let exponent = i32::from(rank) + EXPONENT_MIN;
        let (mut digits, mut count) = (0u128, 0);
        loop {
            let byte = self.byte()? ^ flip;
            if byte == DECIMAL_TINY && count == 0 && rank == 0 {
                return self.far_decimal(negative, None);
            }
            if byte >= 200 {
                return Err(malformed);
            }
            digits = digits * 100 + u128::from(byte / 2);
            count += 2;
            if byte & 1 == 0 {
                break;
            }
            if count == 38 {
                let before = format!("{digits:038}").into_bytes();
                return self.far_decimal(negative, Some((exponent.into(), before)));
            }
        }
        while count > exponent.max(0) && digits != 0 && digits.is_multiple_of(10) {
            digits /= 10;
            count -= 1;
        }
        let raise = (exponent - count).max(0) as usize;
        let scale = u8::try_from((count - exponent).max(0)).map_err(|_| malformed)?;
        let magnitude = POW10
            .get(raise)
            .and_then(|power| digits.checked_mul(*power));
        let unscaled = magnitude.and_then(|magnitude| i128::try_from(magnitude).ok());
        let small = unscaled.and_then(|unscaled| {
            Decimal::from_parts(if negative { -unscaled } else { unscaled }, scale)
        });
        if digits == 0 || exponent > EXPONENT_MAX {
            return Err(malformed);
        }
        match small {
            Some(small) => Ok(Datum::Decimal(small)),
            None => {
                let digits = format!("{digits:0width$}", width = count as usize);
                let large = numeric::from_key(negative, exponent.into(), digits.as_bytes());
                special(large.ok_or(malformed)?)
            }
        }
    }

    /// A number with more digits than the small form has: `before` are its exponent and first
    /// digits, or else they follow.
    fn far_decimal(
        &mut self,
        negative: bool,
        before: Option<(i64, Vec<u8>)>,
    ) -> Result<Datum, CodecError> {
        let malformed = CodecError::Malformed("numeric key column");
        let flip = if negative { 0xff } else { 0 };
        let (exponent, mut digits) = match before {
            Some(before) => before,
            None => {
                let biased = u32::from_be_bytes(self.array::<4>()?.map(|byte| byte ^ flip));
                (i64::from(biased) - EXPONENT_BIAS, Vec::new())
            }
        };
        loop {
            let byte = self.byte()? ^ flip;
            if byte >= 200 {
                return Err(malformed);
            }
            digits.extend([byte / 20 + b'0', byte / 2 % 10 + b'0']);
            if byte & 1 == 0 {
                break;
            }
        }
        let value = numeric::from_key(negative, exponent, &digits).ok_or(malformed)?;
        value.into_datum().map_err(|_| malformed)
    }

    fn present(first: u8) -> Result<(), CodecError> {
        if first == PRESENT {
            Ok(())
        } else {
            Err(CodecError::Malformed("key column marker"))
        }
    }

    fn datum(&mut self, ty: Type) -> Result<Datum, CodecError> {
        let first = self.byte()?;
        if first == NULL {
            return Ok(Datum::Null);
        }
        Ok(match ty {
            Type::Bool => match first {
                0 | 1 => Datum::Bool(first == 1),
                _ => return Err(CodecError::Malformed("boolean key column")),
            },
            Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Oid
            | Type::Reg(_)
            | Type::Enum(_)
            | Type::Xid
            | Type::Tid => Datum::Int(self.int(first)?),
            Type::Timestamp(_) | Type::Timestamptz(_) => Datum::Timestamp(self.int(first)?),
            Type::Time(_) => {
                let micros = Some(self.int(first)?).filter(|micros| is_time(*micros));
                Datum::Time(micros.ok_or(CodecError::Malformed("time key column"))?)
            }
            Type::Date => {
                let days = i32::try_from(self.int(first)?);
                Datum::Date(days.map_err(|_| CodecError::Malformed("date key column"))?)
            }
            Type::Float4 | Type::Float8 => {
                Self::present(first)?;
                Datum::Float(float_of_ordered_bits(u64::from_be_bytes(self.array()?)))
            }
            Type::Numeric(_) => self.decimal(first)?,
            Type::Text
            | Type::Varchar(_)
            | Type::Char(_)
            | Type::Name
            | Type::InternalChar
            | Type::Json
            | Type::JsonPath
            | Type::Unknown => {
                let text = String::from_utf8(self.bytes(first)?);
                let text = text.map_err(|_| CodecError::Malformed("text key column"))?;
                Datum::Text(text.into_boxed_str())
            }
            Type::Bytea => {
                Self::present(first)?;
                let first = self.byte()?;
                Datum::Bytes(self.bytes(first)?.into_boxed_slice())
            }
            Type::Timetz(_) => self.timetz(first)?,
            Type::Bit(_) | Type::Varbit(_) => self.bits(first)?,
            Type::Composite(_) | Type::Range(_) | Type::Multirange(_) => self.made(first, ty)?,
            Type::Uuid => {
                Self::present(first)?;
                Datum::Uuid(self.array()?)
            }
            Type::Inet | Type::Cidr | Type::Macaddr => self.address(first, ty)?,
            Type::Interval(_) => {
                Self::present(first)?;
                let total = u128::from_be_bytes(self.array()?) ^ (1 << 127);
                interval_of_total(total as i128)?
            }
            Type::Jsonb => {
                let text = json::decode_key(first, &mut || self.byte().ok());
                let text = text.ok_or(CodecError::Malformed("jsonb key column"))?;
                Datum::Jsonb(Jsonb::from_normal(text))
            }
            Type::Array(kind) => self.items(first, kind.element())?,
        })
    }

    fn timetz(&mut self, first: u8) -> Result<Datum, CodecError> {
        let malformed = CodecError::Malformed("time key column");
        let utc = self.int(first)?;
        let second = self.byte()?;
        let west = i32::try_from(self.int(second)?).map_err(|_| malformed)?;
        let micros = utc.checked_sub(i64::from(west) * MICROS_PER_SECOND);
        let value = micros.and_then(|micros| Timetz::new(micros, west));
        value.map(Datum::Timetz).ok_or(malformed)
    }

    fn bits(&mut self, first: u8) -> Result<Datum, CodecError> {
        Self::present(first)?;
        let first = self.byte()?;
        let mut bytes = self.bytes(first)?;
        let last = self.byte()?;
        let padding = match (bytes.is_empty(), last) {
            (true, 0) => Some(0),
            (false, 1..=8) => Some(8 - last),
            _ => None,
        };
        bytes.extend(padding);
        let value = padding.and_then(|_| Bits::decode(&bytes));
        let value = value.map(Datum::Bits);
        value.ok_or(CodecError::Malformed("bit string key column"))
    }

    fn address(&mut self, first: u8, ty: Type) -> Result<Datum, CodecError> {
        if ty == Type::Macaddr {
            Self::present(first)?;
            return Ok(Datum::Mac(self.array()?));
        }
        let value = Inet::read_key(first, &mut || self.byte().ok());
        let value = value.ok_or(CodecError::Malformed("inet key column"))?;
        Ok(Datum::Inet(value))
    }

    /// A value that is made of others, which are no array.
    fn made(&mut self, first: u8, ty: Type) -> Result<Datum, CodecError> {
        Ok(match ty {
            Type::Range(kind) => self.range(first, kind)?.into(),
            Type::Multirange(kind) => self.multirange(first, kind)?.into(),
            _ => self.record(first)?,
        })
    }

    fn record(&mut self, first: u8) -> Result<Datum, CodecError> {
        let malformed = CodecError::Malformed("composite key column");
        Self::present(first)?;
        let first = self.byte()?;
        let types = checked_types(&self.bytes(first)?)?;
        if self.depth == RECORD_DEPTH_MAX {
            return Err(malformed);
        }
        self.depth += 1;
        let mut values = Vec::new();
        for ty in &types {
            if self.byte()? != ELEMENT {
                return Err(malformed);
            }
            values.push(self.datum(*ty)?);
        }
        self.depth -= 1;
        if self.byte()? != ARRAY_END {
            return Err(malformed);
        }
        Ok(Datum::Record(Box::new(Record::of_parts(types, values)?)))
    }

    fn range(&mut self, first: u8, kind: RangeKind) -> Result<Range, CodecError> {
        let malformed = CodecError::Malformed("range key column");
        match first {
            EMPTY_RANGE => return Ok(Range::EMPTY),
            FULL_RANGE => {}
            _ => return Err(malformed),
        }
        let (mut values, mut inclusive) = ([Datum::Null, Datum::Null], [false; 2]);
        for (at, infinite) in [BEFORE_ALL, BEHIND_ALL].into_iter().enumerate() {
            let marker = self.byte()?;
            if marker == FINITE {
                values[at] = self.datum(kind.bound())?;
                inclusive[at] = match self.byte()? {
                    behind @ (0 | 1) => (behind == 1) != (at == 0),
                    _ => return Err(malformed),
                };
            } else if marker != infinite {
                return Err(malformed);
            }
        }
        Range::new(kind, values, inclusive).map_err(|_| malformed)
    }

    fn multirange(&mut self, first: u8, kind: RangeKind) -> Result<Multirange, CodecError> {
        let malformed = CodecError::Malformed("multirange key column");
        let mut ranges = Vec::new();
        let mut marker = first;
        while marker == ELEMENT {
            let first = self.byte()?;
            ranges.push(self.range(first, kind)?);
            marker = self.byte()?;
        }
        let value = (marker == ARRAY_END).then(|| Multirange::of_normal(ranges));
        value.flatten().ok_or(malformed)
    }

    fn items(&mut self, first: u8, element: Type) -> Result<Datum, CodecError> {
        let mut items = Vec::new();
        let mut marker = first;
        while marker == ELEMENT {
            items.push(self.datum(element)?);
            marker = self.byte()?;
        }
        match marker {
            ARRAY_END => Ok(Datum::Array(items.into_boxed_slice())),
            LOW_GRID_END | GRID_END => self.grid(items),
            _ => Err(CodecError::Malformed("array key column")),
        }
    }

    /// The array of these elements whose shape is behind them.
    fn grid(&mut self, items: Vec<Datum>) -> Result<Datum, CodecError> {
        let malformed = CodecError::Malformed("shape in a key column");
        let mut number = || {
            let first = self.byte()?;
            i32::try_from(self.int(first)?).map_err(|_| malformed)
        };
        let count = usize::try_from(number()?).ok();
        let count = count.filter(|count| *count <= DIMENSIONS_MAX);
        let mut dimensions = [Dimension::default(); DIMENSIONS_MAX];
        let dimensions = &mut dimensions[..count.ok_or(malformed)?];
        for one in dimensions.iter_mut() {
            one.length = number()?;
        }
        for one in dimensions.iter_mut() {
            one.lower = number()?;
        }
        let grid = Grid::checked(dimensions, items).ok_or(malformed)?;
        Ok(Datum::Grid(Box::new(grid)))
    }
}

/// An interval of the given length, with as many months and days as it holds.
fn interval_of_total(total: i128) -> Result<Datum, CodecError> {
    let days = total / i128::from(MICROS_PER_DAY);
    let micros = (total % i128::from(MICROS_PER_DAY)) as i64;
    let months = i32::try_from(days / 30);
    let months = months.map_err(|_| CodecError::Malformed("interval key column"))?;
    Ok(Datum::Interval(Interval {
        months,
        days: (days % 30) as i32,
        micros,
    }))
}

/// Reads one column from the front of `input` and moves `input` behind it.
///
/// `ty` and `descending` must be those that it was encoded with. Any other bytes give an error or
/// some value, never a panic.
pub fn decode_datum(input: &mut &[u8], ty: Type, descending: bool) -> Result<Datum, CodecError> {
    Reader {
        input,
        mask: if descending { 0xff } else { 0 },
        depth: 0,
    }
    .datum(ty)
}

#[cfg(test)]
mod tests;
