//! Numerics from and to text, floats, and bytes.

use super::natural::{BASE, LIMB_DIGITS, Natural};
use super::{FRACTION_DIGITS_MAX, Finite, Numeric, WHOLE_DIGITS_MAX, overflow};
use crate::codec::CodecError;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// First byte of the encoded forms; a [`Decimal`] in a row begins with its scale, which is less.
pub(crate) const TAG_LEAST: u8 = 0xf0;
const NAN: u8 = 0xf0;
const INFINITY: u8 = 0xf1;
const MINUS_INFINITY: u8 = 0xf2;
const POSITIVE: u8 = 0xf3;
const NEGATIVE: u8 = 0xf4;

/// Signs of the binary form of clients.
const WIRE_NEGATIVE: u16 = 0x4000;
const WIRE_NAN: u16 = 0xc000;
const WIRE_INFINITY: u16 = 0xd000;
const WIRE_MINUS_INFINITY: u16 = 0xf000;

/// Reads PostgreSQL's `numeric` input: sign, digits, point, exponent, blanks around; NaN and the
/// infinities.
///
/// # Errors
/// 22P02 if it is no number, 22003 if it has too many digits.
pub fn parse(text: &str) -> Result<Datum, SqlError> {
    if let Ok(small) = text.parse::<Decimal>() {
        return Ok(Datum::Decimal(small));
    }
    let invalid = || {
        let message = format!("invalid input syntax for type numeric: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT, message)
    };
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let special = |value| Ok(Datum::Large(Box::new(value)));
    let is = |words: &[&str]| words.iter().any(|word| trimmed.eq_ignore_ascii_case(word));
    if is(&["nan"]) {
        return special(Numeric::Nan);
    }
    if is(&["infinity", "+infinity", "inf", "+inf"]) {
        return special(Numeric::Infinity { negative: false });
    }
    if is(&["-infinity", "-inf"]) {
        return special(Numeric::Infinity { negative: true });
    }
    let (mantissa, exponent) = match trimmed.find(['e', 'E']) {
        Some(at) => (&trimmed[..at], Some(&trimmed[at + 1..])),
        None => (trimmed, None),
    };
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = [whole.as_bytes(), fraction.as_bytes()].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid());
    }
    let exponent = match exponent {
        None => 0,
        Some(exponent) => {
            let size = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(invalid());
            }
            // Far beyond every number that fits, whatever the digits before it.
            let size = size.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
            if exponent.starts_with('-') {
                -size
            } else {
                size
            }
        }
    };
    let magnitude = Natural::of_digits(&digits);
    let scale = fraction.len() as i64 - exponent;
    if scale > FRACTION_DIGITS_MAX as i64
        || !magnitude.is_zero() && magnitude.digits() as i64 - scale > WHOLE_DIGITS_MAX as i64
    {
        return Err(overflow());
    }
    let (magnitude, scale) = match usize::try_from(scale) {
        Ok(scale) => (magnitude, scale),
        Err(_) if magnitude.is_zero() => (magnitude, 0),
        Err(_) => (magnitude.raised(scale.unsigned_abs() as usize), 0),
    };
    let finite = Finite::new(mantissa.starts_with('-'), scale, magnitude);
    Numeric::Finite(finite).into_datum()
}

/// A `double precision` as PostgreSQL casts it: the 15 digits that every float keeps.
///
/// # Errors
/// None that a float gives.
pub fn from_f64(value: f64) -> Result<Datum, SqlError> {
    from_float(value, 14)
}

/// A `real` as PostgreSQL casts it: 6 digits.
///
/// # Errors
/// As [`from_f64`].
pub fn from_f32(value: f32) -> Result<Datum, SqlError> {
    from_float(f64::from(value), 5)
}

fn from_float(value: f64, digits: usize) -> Result<Datum, SqlError> {
    if value.is_nan() {
        return Numeric::Nan.into_datum();
    }
    if value.is_infinite() {
        let negative = value < 0.0;
        return Numeric::Infinity { negative }.into_datum();
    }
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    parse(&format!("{mantissa}e{exponent}"))
}

impl fmt::Display for Finite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = self.magnitude.to_digits();
        if digits.len() <= self.scale {
            let zeros = "0".repeat(self.scale + 1 - digits.len());
            digits.insert_str(0, &zeros);
        }
        let (whole, fraction) = digits.split_at(digits.len() - self.scale);
        f.write_str(if self.negative { "-" } else { "" })?;
        f.write_str(whole)?;
        match fraction {
            "" => Ok(()),
            fraction => write!(f, ".{fraction}"),
        }
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numeric::Nan => f.write_str("NaN"),
            Numeric::Infinity { negative: false } => f.write_str("Infinity"),
            Numeric::Infinity { negative: true } => f.write_str("-Infinity"),
            Numeric::Finite(finite) => finite.fmt(f),
        }
    }
}

impl Numeric {
    /// The nearest float; an infinity if it is too large.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::Nan => f64::NAN,
            Numeric::Infinity { negative: false } => f64::INFINITY,
            Numeric::Infinity { negative: true } => f64::NEG_INFINITY,
            Numeric::Finite(finite) => finite.to_float(),
        }
    }

    /// Bytes that it takes beside its [`Datum`].
    pub fn heap_bytes(&self) -> usize {
        let limbs = match self {
            Numeric::Finite(finite) => size_of_val(finite.magnitude.limbs()),
            _ => 0,
        };
        size_of::<Numeric>() + limbs
    }

    /// Sign, and the number as 0.d1d2... times a power of ten, digits without zeros at the end;
    /// `None` if it is no number.
    pub(crate) fn key_parts(&self) -> Option<(bool, i64, String)> {
        let Numeric::Finite(finite) = self else {
            return None;
        };
        let mut digits = finite.magnitude.to_digits();
        digits.truncate(digits.trim_end_matches('0').len());
        Some((finite.negative, finite.whole_digits(), digits))
    }

    /// The binary form that clients know: count of groups of four digits, power of 10,000 of the
    /// first, sign, digits behind the point, the groups.
    pub(crate) fn to_wire(&self, out: &mut Vec<u8>) {
        let (sign, finite) = match self {
            Numeric::Nan => (WIRE_NAN, None),
            Numeric::Infinity { negative: false } => (WIRE_INFINITY, None),
            Numeric::Infinity { negative: true } => (WIRE_MINUS_INFINITY, None),
            Numeric::Finite(it) if it.negative => (WIRE_NEGATIVE, Some(it)),
            Numeric::Finite(it) => (0, Some(it)),
        };
        let Some(finite) = finite else {
            // As PostgreSQL has it, infinities have a scale of their own.
            let scale: u16 = if sign == WIRE_NAN { 0 } else { 0x20 };
            for part in [0, 0, sign, scale] {
                out.extend_from_slice(&part.to_be_bytes());
            }
            return;
        };
        // Groups that start at the point: the last one is filled with zeros.
        let missing = finite.scale.next_multiple_of(4) - finite.scale;
        let digits = finite.magnitude.raised(missing).to_digits();
        let group = |part: &[u8]| {
            part.iter()
                .fold(0u16, |value, digit| value * 10 + u16::from(digit - b'0'))
        };
        let mut groups: Vec<u16> = digits.as_bytes().rchunks(4).map(group).collect();
        groups.reverse();
        let weight = groups.len() as i64 - 1 - (finite.scale.div_ceil(4)) as i64;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        let weight = if groups.is_empty() { 0 } else { weight as i16 };
        out.extend_from_slice(&(groups.len() as u16).to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&(finite.scale as u16).to_be_bytes());
        for group in groups {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }
}

/// The number of a binary form: its header and groups of four digits.
///
/// # Errors
/// 22P03.
pub(crate) fn from_wire(
    (weight, sign, scale): (i16, u16, u16),
    groups: &[u16],
) -> Result<Datum, SqlError> {
    let wrong = |what: &str| {
        let message = format!("invalid {what} in external \"numeric\" value");
        SqlError::new(SqlState::INVALID_BINARY, message)
    };
    match sign {
        WIRE_NAN => return Numeric::Nan.into_datum(),
        WIRE_INFINITY => return Numeric::Infinity { negative: false }.into_datum(),
        WIRE_MINUS_INFINITY => return Numeric::Infinity { negative: true }.into_datum(),
        0 | WIRE_NEGATIVE => {}
        _ => return Err(wrong("sign")),
    }
    let scale = usize::from(scale);
    if scale > FRACTION_DIGITS_MAX {
        return Err(wrong("scale"));
    }
    let mut digits = String::new();
    for group in groups {
        if *group > 9_999 {
            return Err(wrong("digit"));
        }
        digits.push_str(&format!("{group:04}"));
    }
    let magnitude = Natural::of_digits(digits.as_bytes());
    // Digits behind the point that the groups have.
    let fraction = (groups.len() as i64 - 1 - i64::from(weight)) * 4;
    let all = match usize::try_from(fraction) {
        Ok(fraction) => Finite::new(sign != 0, fraction, magnitude),
        Err(_) => Finite::new(
            sign != 0,
            0,
            magnitude.raised(fraction.unsigned_abs() as usize),
        ),
    };
    // What is behind the announced digits is cut, as PostgreSQL does.
    Numeric::Finite(all.trunc(scale as i64)).into_datum()
}

/// The number whose [`Numeric::key_parts`] these are; `None` if there is none.
pub(crate) fn from_key(negative: bool, exponent: i64, digits: &[u8]) -> Option<Numeric> {
    let magnitude = Natural::of_digits(digits);
    if magnitude.is_zero() || exponent.unsigned_abs() > WHOLE_DIGITS_MAX as u64 {
        return None;
    }
    let scale = digits.len() as i64 - exponent;
    let finite = match usize::try_from(scale) {
        Ok(scale) => Finite::new(negative, scale, magnitude),
        Err(_) => Finite::new(negative, 0, magnitude.raised(scale.unsigned_abs() as usize)),
    };
    let least = finite.min_scale() as i64;
    finite.trunc(least).checked().ok().map(Numeric::Finite)
}

/// Bytes of [`write()`].
pub(crate) fn encoded_len(value: &Numeric) -> usize {
    match value {
        Numeric::Finite(finite) => 3 + 4 * finite.magnitude.limbs().len(),
        _ => 1,
    }
}

/// Appends the form that it has in a row: a tag; of a number its scale and limbs.
pub(crate) fn write(value: &Numeric, out: &mut Vec<u8>) {
    let finite = match value {
        Numeric::Nan => return out.push(NAN),
        Numeric::Infinity { negative: false } => return out.push(INFINITY),
        Numeric::Infinity { negative: true } => return out.push(MINUS_INFINITY),
        Numeric::Finite(finite) => finite,
    };
    out.push(if finite.negative { NEGATIVE } else { POSITIVE });
    out.extend_from_slice(&(finite.scale as u16).to_le_bytes());
    for limb in finite.magnitude.limbs() {
        out.extend_from_slice(&limb.to_le_bytes());
    }
}

/// Reads what [`write()`] has written.
///
/// # Errors
/// If the bytes are no number, or one that has the small form.
pub(crate) fn decode(bytes: &[u8]) -> Result<Numeric, CodecError> {
    let malformed = CodecError::Malformed("large numeric");
    let (tag, rest) = bytes.split_first().ok_or(CodecError::Truncated)?;
    let special = match *tag {
        NAN => Some(Numeric::Nan),
        INFINITY => Some(Numeric::Infinity { negative: false }),
        MINUS_INFINITY => Some(Numeric::Infinity { negative: true }),
        POSITIVE | NEGATIVE => None,
        _ => return Err(malformed),
    };
    if let Some(special) = special {
        return rest.is_empty().then_some(special).ok_or(malformed);
    }
    let (scale, limbs) = rest.split_first_chunk::<2>().ok_or(CodecError::Truncated)?;
    let (limbs, []) = limbs.as_chunks::<4>() else {
        return Err(malformed);
    };
    let limbs: Vec<u32> = limbs.iter().map(|limb| u32::from_le_bytes(*limb)).collect();
    let is_canonical = limbs.iter().all(|limb| *limb < BASE) && limbs.last() != Some(&0);
    let long = (WHOLE_DIGITS_MAX + FRACTION_DIGITS_MAX) / LIMB_DIGITS + 2;
    if !is_canonical || limbs.len() > long {
        return Err(malformed);
    }
    let scale = usize::from(u16::from_le_bytes(*scale));
    let finite = Finite::new(*tag == NEGATIVE, scale, Natural::of_limbs(limbs));
    let finite = finite.checked().map_err(|_| malformed)?;
    match finite.small() {
        None => Ok(Numeric::Finite(finite)),
        Some(_) => Err(malformed),
    }
}

impl Serialize for Numeric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(encoded_len(self));
        write(self, &mut bytes);
        bytes.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Numeric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Numeric, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        decode(&bytes).map_err(|_| serde::de::Error::custom("a malformed numeric"))
    }
}
