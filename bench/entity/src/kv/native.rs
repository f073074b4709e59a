//! Records that are entities, as their columns: for a store that shows them in its own way, such as
//! documents.

use super::{Record, key, record};
use crate::db::{Failure, Stamp};
use crate::model::{EntityType, Schema};
use crate::value::Row;
use alloc::vec::Vec;

/// An entity that a record is.
#[derive(Clone, Debug, PartialEq)]
pub struct Native<'a> {
    /// Its type.
    pub kind: &'a EntityType,
    /// Its ids as they are in the key, ordered as the ids are.
    pub ids: Vec<u8>,
    /// When it was created.
    pub stamp: Stamp,
    /// All of its columns.
    pub row: Row,
}

/// The entity of a record; `None`: it is an entry of an index, a counter, or of another schema.
///
/// # Errors
/// `Refused`: the value is no row of this type.
pub fn read<'a>(
    schema: &'a Schema,
    key: &[u8],
    value: &[u8],
) -> Result<Option<Native<'a>>, Failure> {
    for kind in schema.types() {
        let mut prefix = Vec::new();
        key::entity(kind, &[], &mut prefix);
        let Some(ids) = key.strip_prefix(&prefix[..]) else {
            continue;
        };
        let row = key::ids(kind, key, prefix.len());
        let mut row = row.ok_or_else(|| record::not_a_row(kind))?;
        let stamp = record::take_row(kind, value, &mut row)?;
        return Ok(Some(Native {
            kind,
            ids: ids.to_vec(),
            stamp,
            row,
        }));
    }
    Ok(None)
}

/// The key of an entity's record, of which `ids` are the ids.
pub fn key_of(kind: &EntityType, ids: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    key::entity(kind, &[], &mut key);
    key.extend_from_slice(ids);
    key
}

/// The record of an entity.
pub fn write(native: &Native<'_>) -> Record {
    let mut value = Vec::new();
    record::push_row(native.kind, native.stamp, &native.row, &mut value);
    (key_of(native.kind, &native.ids), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use entity::Entity;

    #[derive(Clone, Debug, PartialEq, Entity)]
    struct Thing {
        #[id]
        id: i64,
        text: Option<String>,
    }

    #[test]
    fn records_of_entities_are_columns_and_come_back() {
        let mut schema = Schema::new();
        schema.add(Thing::TYPE).unwrap();
        let mut key = Vec::new();
        key::entity(Thing::TYPE, &[Value::Int(-7)], &mut key);
        let mut value = Vec::new();
        let row = alloc::vec![Value::Int(-7), Value::Null];
        record::push_row(Thing::TYPE, Stamp::default(), &row, &mut value);
        let native = read(&schema, &key, &value).unwrap().unwrap();
        assert_eq!(native.row, row);
        assert_eq!(write(&native), (key.clone(), value.clone()));
        assert_eq!(read(&schema, b"X", &value), Ok(None));
        assert!(read(&schema, &key, &value[1..]).is_err());
    }
}
