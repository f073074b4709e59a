//! Values of composite types: the fields with their types, so that a value can be written, compared
//! and read without the catalog.

use crate::codec::{self, CodecError};
use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
use crate::row::{self, RowRef};
use crate::types::ArrayKind;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Records that may lie inside one another, the outermost one included.
pub const RECORD_DEPTH_MAX: u8 = 16;

/// The oid of the type of a row that no name stands for: `record`.
pub const ANONYMOUS: u32 = 2249;
/// What stands in place of an oid in the type of the rows of `aclexplode`: to clients that is
/// `record`, but its fields are known by their names.
pub const ACL_ROW: u32 = 1;

const TRUNCATED: CodecError = CodecError::Malformed("record column");

/// A value of a composite type.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    types: Box<[Type]>,
    values: Box<[Datum]>,
}

/// 54001 for records that lie too deep inside one another.
pub fn too_deep() -> SqlError {
    let message = format!(
        "rows cannot be nested deeper than {RECORD_DEPTH_MAX} levels, nor hold arrays of rows"
    );
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
}

/// Whether a field may be of this type. Arrays of records are none, so that records nest in one
/// way only.
pub fn can_be_field(ty: Type) -> bool {
    !matches!(ty, Type::Array(ArrayKind::Composite(_)) | Type::Unknown)
}

impl Record {
    /// The record of these fields; `None` if they nest too deeply, or an array of records is among
    /// them.
    ///
    /// # Panics
    /// If there are not as many types as values.
    pub fn new(types: &[Type], values: Vec<Datum>) -> Option<Record> {
        assert_eq!(types.len(), values.len(), "every field has a type");
        let record = Record {
            types: types.into(),
            values: values.into_boxed_slice(),
        };
        let fit = types.iter().all(|ty| can_be_field(*ty));
        (fit && record.depth() <= RECORD_DEPTH_MAX).then_some(record)
    }

    fn depth(&self) -> u8 {
        let inner = self.values.iter().map(|value| match value {
            Datum::Record(inner) => inner.depth(),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }

    /// The types of the fields.
    pub fn types(&self) -> &[Type] {
        &self.types
    }

    /// The values of the fields.
    pub fn values(&self) -> &[Datum] {
        &self.values
    }

    /// The fields with their types.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (Type, &Datum)> {
        self.types.iter().copied().zip(self.values.iter())
    }

    /// The record with other values of the same types, or their texts.
    #[must_use]
    pub fn map(&self, change: impl FnMut((Type, &Datum)) -> Datum) -> Record {
        Record {
            types: self.types.clone(),
            values: self.fields().map(change).collect(),
        }
    }

    /// Field by field; NULL is behind every value. Of two that begin alike the shorter one is less.
    pub fn compare(&self, other: &Record) -> Ordering {
        let pairs = self.values.iter().zip(other.values.iter());
        let mut orders = pairs.map(|(a, b)| a.compare(b));
        let first = orders.find(|order| order.is_ne());
        first.unwrap_or(self.values.len().cmp(&other.values.len()))
    }

    /// Bytes of the types as they are encoded.
    pub(crate) fn type_bytes(&self) -> Vec<u8> {
        codec::to_vec(&self.types)
    }

    /// Length of what [`Record::encode`] appends.
    pub(crate) fn encoded_len(&self) -> usize {
        4 + codec::size_bytes(&self.types) + row::row_len(&self.values)
    }

    /// Appends the length of the types, the types, and the values as a row.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let types = self.type_bytes();
        out.extend_from_slice(&(types.len() as u32).to_le_bytes());
        out.extend_from_slice(&types);
        row::encode(&self.values, out);
    }

    /// What [`Record::encode`] has written.
    ///
    /// # Errors
    /// Bytes that are none, or nest too deeply.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Record, CodecError> {
        Record::decode_at(bytes, 1)
    }

    fn decode_at(bytes: &[u8], depth: u8) -> Result<Record, CodecError> {
        if depth > RECORD_DEPTH_MAX {
            return Err(CodecError::Malformed("depth of a record"));
        }
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or(TRUNCATED)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (types, rest) = rest.split_at_checked(length).ok_or(TRUNCATED)?;
        let types = checked_types(types)?;
        let row = RowRef::new(rest);
        row.validate()?;
        if row.count() != types.len() {
            return Err(TRUNCATED);
        }
        let values = types
            .iter()
            .enumerate()
            .map(|(i, ty)| match (row.raw(i)?, ty) {
                (Some(inner), Type::Composite(_)) => {
                    let inner = Record::decode_at(inner, depth + 1)?;
                    Ok(Datum::Record(Box::new(inner)))
                }
                _ => row.col(i, *ty),
            });
        let values = values.collect::<Result<Box<[Datum]>, CodecError>>()?;
        Ok(Record { types, values })
    }

    /// The record of these encoded types and values, each of its type.
    pub(crate) fn of_parts(types: Box<[Type]>, values: Vec<Datum>) -> Result<Record, CodecError> {
        match types.len() == values.len() {
            true => Ok(Record {
                types,
                values: values.into_boxed_slice(),
            }),
            false => Err(TRUNCATED),
        }
    }
}

/// Types of fields from their bytes.
pub(crate) fn checked_types(bytes: &[u8]) -> Result<Box<[Type]>, CodecError> {
    let types: Vec<Type> = codec::decode(bytes)?;
    match types.iter().all(|ty| can_be_field(*ty)) {
        true => Ok(types.into_boxed_slice()),
        false => Err(CodecError::Malformed("type of a field")),
    }
}

// As bytes: so nothing that is decoded nests deeper than records may.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Record, D::Error> {
        let bytes = Vec::<u8>::deserialize(deserializer)?;
        Record::decode(&bytes).map_err(|_| serde::de::Error::custom("not a record"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{decode_datum, encode_datum};
    use crate::text;

    fn nested(depth: u8) -> Option<Record> {
        let mut inner = Record::new(&[Type::Int4], vec![Datum::Int(1)])?;
        for _ in 1..depth {
            let value = Datum::Record(Box::new(inner));
            inner = Record::new(&[Type::Composite(ANONYMOUS)], vec![value])?;
        }
        Some(inner)
    }

    fn samples() -> Vec<Record> {
        let types = [Type::Int4, Type::Text, Type::Numeric(None)];
        let one = |number: Datum, text: Datum| {
            let values = vec![
                number,
                text,
                "1.50".parse().map(Datum::Decimal).expect("a number"),
            ];
            Record::new(&types, values).expect("it is flat")
        };
        vec![
            one(Datum::Int(-5), "".into()),
            one(Datum::Int(1), "a".into()),
            one(Datum::Int(1), "a b".into()),
            one(Datum::Int(1), Datum::Null),
            one(Datum::Null, "x\"y\\(),".into()),
            nested(RECORD_DEPTH_MAX).expect("it is not too deep"),
            Record::new(&[], Vec::new()).expect("it is flat"),
        ]
    }

    #[test]
    fn records_come_back_from_their_bytes() {
        for record in samples() {
            let mut out = Vec::new();
            record.encode(&mut out);
            assert_eq!(out.len(), record.encoded_len());
            assert_eq!(Record::decode(&out), Ok(record.clone()));
            for cut in 0..out.len() {
                assert!(Record::decode(&out[..cut]).is_err(), "{record:?} at {cut}");
            }
            let value = Datum::Record(Box::new(record));
            assert_eq!(
                codec::decode::<Datum>(&codec::to_vec(&value)),
                Ok(value.clone())
            );
            for descending in [false, true] {
                let mut key = Vec::new();
                encode_datum(&mut key, &value, descending);
                let mut rest = &key[..];
                let back = decode_datum(&mut rest, Type::Composite(ANONYMOUS), descending);
                let back = back.expect("it is a key");
                assert!(rest.is_empty() && back.compare(&value).is_eq(), "{value:?}");
            }
        }
        assert_eq!(nested(RECORD_DEPTH_MAX + 1), None);
    }

    #[test]
    fn keys_have_the_order_of_the_values() {
        let samples = &samples()[..5];
        let key = |record: &Record| {
            let mut key = Vec::new();
            encode_datum(&mut key, &Datum::Record(Box::new(record.clone())), false);
            key
        };
        for (a, b) in samples.iter().zip(&samples[1..]) {
            assert!(a.compare(b).is_lt() && key(a) < key(b), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn texts_are_quoted_as_they_must_be() {
        let texts = samples().into_iter().map(|record| {
            let ty = Type::Composite(ANONYMOUS);
            text::to_string(ty, &Datum::Record(Box::new(record)))
        });
        let texts: Vec<_> = texts.take(5).collect();
        let wanted = [
            r#"(-5,"",1.50)"#,
            "(1,a,1.50)",
            r#"(1,"a b",1.50)"#,
            "(1,,1.50)",
            r#"(,"x""y\\(),",1.50)"#,
        ];
        assert_eq!(texts, wanted);
    }
}
