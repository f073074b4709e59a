//! Serialized form of structured values (messages, journal records, catalog entries): postcard.
//!
//! Rows and keys have encodings of their own ([`crate::row`], [`crate::key`]); their errors are
//! also [`CodecError`]s.

use crate::error::{SqlError, SqlState};
use alloc::vec::Vec;
use core::fmt;
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

/// Why bytes are not the encoding of a value. Retrying cannot help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodecError {
    /// The input ends before the value does.
    Truncated,
    /// The value ends before the input does; that many bytes are left.
    Trailing(usize),
    /// The bytes stand for no value of the expected type; the text names the broken part.
    Malformed(&'static str),
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::Truncated => f.write_str("encoded value is cut short"),
            CodecError::Trailing(count) => {
                write!(f, "encoded value is followed by {count} unexpected bytes")
            }
            CodecError::Malformed(part) => write!(f, "encoded value has a malformed {part}"),
        }
    }
}

impl core::error::Error for CodecError {}

impl From<CodecError> for SqlError {
    fn from(error: CodecError) -> SqlError {
        SqlError::new(SqlState::DATA_CORRUPTED, alloc::format!("{error}"))
    }
}

/// Appends to a borrowed vector, whole slices at a time.
struct Appender<'a>(&'a mut Vec<u8>);

impl Flavor for Appender<'_> {
    type Output = ();
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(data);
        Ok(())
    }
    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        self.0.push(data);
        Ok(())
    }
    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends the encoding of `value` to `out`.
///
/// Panics only if the `Serialize` implementation itself fails (a sequence of unknown length),
/// which derived ones never do.
pub fn encode<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    postcard::serialize_with_flavor(value, Appender(out))
        .expect("derived serialization into memory cannot fail");
}

/// The encoding of `value` in a vector of its own.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

/// The value that `bytes` encodes; all of `bytes` must be consumed.
///
/// Safe on hostile input: it fails, but neither panics nor reserves more memory than the input
/// can fill.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, CodecError> {
    let (value, rest) = decode_prefix(bytes)?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(CodecError::Trailing(rest.len()))
    }
}

/// The value at the start of `bytes`, and the bytes behind it.
pub fn decode_prefix<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), CodecError> {
    postcard::take_from_bytes(bytes).map_err(|error| match error {
        postcard::Error::DeserializeUnexpectedEnd => CodecError::Truncated,
        postcard::Error::DeserializeBadVarint => CodecError::Malformed("variable-length integer"),
        postcard::Error::DeserializeBadBool => CodecError::Malformed("boolean"),
        postcard::Error::DeserializeBadChar => CodecError::Malformed("character"),
        postcard::Error::DeserializeBadUtf8 => CodecError::Malformed("text"),
        postcard::Error::DeserializeBadOption => CodecError::Malformed("option tag"),
        postcard::Error::DeserializeBadEnum => CodecError::Malformed("variant number"),
        _ => CodecError::Malformed("value"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{all_types, random_datum, same};
    use crate::{Datum, Prng};

    #[test]
    fn values_round_trip_and_append() {
        let value = vec![(1u64, "a".to_string()), (u64::MAX, String::new())];
        let mut out = vec![9u8];
        encode(&value, &mut out);
        assert_eq!(out[0], 9);
        assert_eq!(decode::<Vec<(u64, String)>>(&out[1..]), Ok(value));
    }

    #[test]
    fn whole_input_must_be_one_value() {
        let mut bytes = to_vec(&7u32);
        assert_eq!(decode::<u32>(&[]), Err(CodecError::Truncated));
        bytes.push(0);
        assert_eq!(decode::<u32>(&bytes), Err(CodecError::Trailing(1)));
        assert_eq!(decode::<bool>(&[2]), Err(CodecError::Malformed("boolean")));
    }

    #[test]
    fn every_value_survives_the_codec() {
        let mut prng = Prng::new(2);
        for ty in all_types() {
            for _ in 0..200 {
                let value = random_datum(&mut prng, ty);
                let back: Datum = decode(&to_vec(&value)).expect("own encoding");
                assert!(same(&back, &value), "{value:?} became {back:?}");
            }
        }
    }

    #[test]
    fn nested_arrays_are_refused_before_the_stack_overflows() {
        let one = to_vec(&Datum::Array([Datum::Null].into()));
        assert_eq!(one, [11, 1, 0]);
        let nested = [11u8, 1].repeat(1 << 20);
        assert!(matches!(
            decode::<Datum>(&nested),
            Err(CodecError::Malformed(_))
        ));
    }

    #[test]
    fn hostile_bytes_never_panic() {
        let mut prng = Prng::new(1);
        for _ in 0..20_000 {
            let len = prng.below(40) as usize;
            let bytes: Vec<u8> = (0..len).map(|_| prng.next_u64() as u8).collect();
            if let Ok(value) = decode::<Vec<Datum>>(&bytes) {
                // An accepted value is a real one: it survives another trip.
                let again: Vec<Datum> = decode(&to_vec(&value)).expect("own encoding decodes");
                assert_eq!(again.len(), value.len());
            }
        }
    }
}
