//! Serialized form of structured values (messages, journal records, catalog entries): postcard.
//!
//! Rows and keys have encodings of their own ([`crate::row`], [`crate::key`]); their errors are
//! also [`CodecError`]s.

mod depth;

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

/// Counts bytes and keeps none.
struct Counter(usize);

impl Flavor for Counter {
    type Output = usize;
    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        self.0 += data.len();
        Ok(())
    }
    fn try_push(&mut self, _data: u8) -> postcard::Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn finalize(self) -> postcard::Result<usize> {
        Ok(self.0)
    }
}

/// Bytes of the encoding of `value`, without making it. Panics as [`encode`] does.
pub fn size_bytes<T: Serialize + ?Sized>(value: &T) -> usize {
    postcard::serialize_with_flavor(value, Counter(0))
        .expect("derived serialization into memory cannot fail")
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

/// Enums that may lie inside one another in what [`decode_bounded`] takes. Expressions of SQL text
/// stay well below it (the binder ends at 200 levels, each of which makes two at most), and a
/// thread's stack well above.
pub const DEPTH_MAX: u32 = 500;

/// The value that `bytes` encodes, which may have a recursive type; all of `bytes` must be
/// consumed.
///
/// Safe on hostile input: it fails, but neither panics, nor reserves more memory than the input
/// can fill, nor uses more stack than [`DEPTH_MAX`] levels need.
pub fn decode_bounded<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, CodecError> {
    let mut inner = postcard::Deserializer::from_bytes(bytes);
    let bounded = depth::Bounded {
        inner: &mut inner,
        left: DEPTH_MAX,
    };
    let value = T::deserialize(bounded).map_err(codec_error)?;
    match inner.finalize().map_err(codec_error)? {
        [] => Ok(value),
        rest => Err(CodecError::Trailing(rest.len())),
    }
}

/// The value that `bytes` encodes; all of `bytes` must be consumed.
///
/// Safe on hostile input if its type is not recursive: it fails, but neither panics nor reserves
/// more memory than the input can fill. For recursive types see [`decode_bounded`].
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
    postcard::take_from_bytes(bytes).map_err(codec_error)
}

fn codec_error(error: postcard::Error) -> CodecError {
    match error {
        postcard::Error::DeserializeUnexpectedEnd => CodecError::Truncated,
        postcard::Error::DeserializeBadVarint => CodecError::Malformed("variable-length integer"),
        postcard::Error::DeserializeBadBool => CodecError::Malformed("boolean"),
        postcard::Error::DeserializeBadChar => CodecError::Malformed("character"),
        postcard::Error::DeserializeBadUtf8 => CodecError::Malformed("text"),
        postcard::Error::DeserializeBadOption => CodecError::Malformed("option tag"),
        postcard::Error::DeserializeBadEnum => CodecError::Malformed("variant number"),
        _ => CodecError::Malformed("value"),
    }
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
        assert_eq!((out[0], out.len()), (9, 1 + size_bytes(&value)));
        assert_eq!(decode::<Vec<(u64, String)>>(&out[1..]), Ok(value));
    }

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    enum Tree {
        Leaf(u8),
        One(Box<Tree>),
        Many(Vec<(u8, Tree)>, Option<Box<Tree>>),
        Named { inner: Vec<Tree> },
    }

    fn tree(depth: u32) -> Tree {
        let mut tree = Tree::Leaf(7);
        for level in 1..depth {
            tree = match level % 4 {
                0 => Tree::One(tree.into()),
                1 => Tree::Many(vec![(1, Tree::Leaf(1)), (2, tree)], None),
                2 => Tree::Many(vec![(1, Tree::Leaf(1))], Some(tree.into())),
                _ => Tree::Named { inner: vec![tree] },
            };
        }
        tree
    }

    #[test]
    fn nesting_is_bounded() {
        for depth in [1, 2, 3, 4, 5, DEPTH_MAX] {
            let tree = tree(depth);
            assert_eq!(decode_bounded(&to_vec(&tree)), Ok(tree));
        }
        let deep: Result<Tree, _> = decode_bounded(&to_vec(&tree(DEPTH_MAX + 1)));
        assert_eq!(deep, Err(CodecError::Malformed("value")));
        // Bytes that would otherwise use up any stack.
        let hostile: Result<Tree, _> = decode_bounded(&vec![1; 10_000_000]);
        assert_eq!(hostile, Err(CodecError::Malformed("value")));
        let nested = [4u8, 1].repeat(1_000_000);
        assert!(decode_bounded::<Datum>(&nested).is_err());
    }

    #[test]
    fn bounded_decoding_takes_what_the_other_takes() {
        let mut prng = Prng::new(3);
        for _ in 0..2_000 {
            let types = all_types();
            let row: Vec<Datum> = types
                .iter()
                .map(|ty| random_datum(&mut prng, *ty))
                .collect();
            let bytes = to_vec(&row);
            let back: Vec<Datum> = decode_bounded(&bytes).unwrap();
            assert!(row.iter().zip(&back).all(|(a, b)| same(a, b)));
            assert_eq!(to_vec(&back), bytes);
            let mut cut = bytes.clone();
            cut.truncate(prng.below(bytes.len() as u64) as usize);
            assert_eq!(
                decode_bounded::<Vec<Datum>>(&cut).map(|_| ()),
                decode::<Vec<Datum>>(&cut).map(|_| ())
            );
        }
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
