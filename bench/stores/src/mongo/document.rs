//! The document of a group: what is read from it, and what changes it.

use super::strange;
use crate::grouped::Change;
use entity::kv::Record;
use entity::kv::native::{self, Native};
use entity::{EntityType, Failure, Kind, Row, Schema, Stamp, Value};
use links::bson::{Bson, Doc};

/// The column of a nested entity that has the stamp of its creation. No type has one of this name.
const STAMP: &str = "_stamp";

/// Bytes as hexadecimal digits, which are ordered as the bytes are.
pub(super) fn digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        for half in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    text
}

fn of_digits(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let bytes = pairs
        .iter()
        .map(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8));
    bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|_| rest.is_empty())
}

/// The key of a document's group.
pub(super) fn group_of(doc: &Doc) -> Result<Vec<u8>, Failure> {
    doc.text("_id").and_then(of_digits).ok_or_else(strange)
}

/// The head of a document.
pub(super) fn head_of(doc: &Doc) -> Result<Vec<u8>, Failure> {
    Ok(doc.bytes("h").ok_or_else(strange)?.to_vec())
}

/// Appends the records that are in a document.
pub(super) fn read(schema: &Schema, doc: &Doc, records: &mut Vec<Record>) -> Result<(), Failure> {
    for (name, of_type) in doc.doc("e").into_iter().flat_map(|doc| &doc.0) {
        let at = schema.position(name).ok_or_else(strange)?;
        let Bson::Doc(of_type) = of_type else {
            return Err(strange());
        };
        for (ids, entity) in &of_type.0 {
            let Bson::Doc(entity) = entity else {
                return Err(strange());
            };
            let native = native_of(&schema.types()[at], ids, entity);
            records.push(native::write(&native.ok_or_else(strange)?));
        }
    }
    for (key, value) in doc.doc("x").into_iter().flat_map(|doc| &doc.0) {
        let key = key.strip_prefix('k').and_then(of_digits);
        let (Some(key), Bson::Bytes(value)) = (key, value) else {
            return Err(strange());
        };
        records.push((key, value.clone()));
    }
    Ok(())
}

/// The entity of a nested document.
fn native_of<'a>(kind: &'a EntityType, ids: &str, doc: &Doc) -> Option<Native<'a>> {
    let stamp = doc.bytes(STAMP)?.try_into().ok()?;
    let columns = kind.columns.iter();
    let row = columns.map(|column| match (doc.get(&column.name)?, column.kind) {
        (Bson::Null, _) => Some(Value::Null),
        (Bson::Bool(value), Kind::Bool) => Some(Value::Bool(*value)),
        (Bson::Int(value), Kind::Int) => Some(Value::Int(*value)),
        (Bson::Real(value), Kind::Real) => Some(Value::Real(*value)),
        (Bson::Text(value), Kind::Text) => Some(Value::Text(value.clone())),
        (Bson::Bytes(value), Kind::Bytes) => Some(Value::Bytes(value.clone())),
        _ => None,
    });
    Some(Native {
        kind,
        ids: of_digits(ids)?,
        stamp: Stamp::from_bytes(stamp),
        row: row.collect::<Option<Row>>()?,
    })
}

/// An entity as a nested document.
fn nested(native: &Native<'_>) -> Doc {
    let mut doc = Doc::new().with(STAMP, native.stamp.to_bytes().to_vec());
    for (column, value) in native.kind.columns.iter().zip(&native.row) {
        let value = match value {
            Value::Null => Bson::Null,
            Value::Bool(value) => Bson::Bool(*value),
            Value::Int(value) => Bson::Int(*value),
            Value::Real(value) => Bson::Real(*value),
            Value::Text(value) => Bson::Text(value.clone()),
            Value::Bytes(value) => Bson::Bytes(value.clone()),
        };
        doc.push(&column.name, value);
    }
    doc
}

/// Where a record lies in a document: names from the outermost one, and what it is.
fn place(schema: &Schema, key: &[u8], value: &[u8]) -> Result<(Vec<String>, Bson), Failure> {
    Ok(match native::read(schema, key, value)? {
        Some(native) => {
            let name = native.kind.name.to_string();
            let path = vec![String::from("e"), name, digits(&native.ids)];
            (path, Bson::Doc(nested(&native)))
        }
        None => {
            let path = other(key);
            (path, Bson::Bytes(value.to_vec()))
        }
    })
}

/// The path of a record that is no entity. Its key may be empty, and no name may.
fn other(key: &[u8]) -> Vec<String> {
    vec![String::from("x"), format!("k{}", digits(key))]
}

/// The path of a record that is deleted.
fn path(schema: &Schema, key: &[u8]) -> Vec<String> {
    for kind in schema.types() {
        if let Some(ids) = key.strip_prefix(&native::key_of(kind, b"")[..]) {
            return vec![String::from("e"), kind.name.to_string(), digits(ids)];
        }
    }
    other(key)
}

/// Puts a value at a path of a document.
fn put(doc: &mut Doc, path: &[String], value: Bson) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        return doc.push(first, value);
    }
    if doc.get(first).is_none() {
        doc.push(first, Doc::new());
    }
    let inner = doc.0.iter_mut().find(|(name, _)| name == first);
    if let Some((_, Bson::Doc(inner))) = inner {
        put(inner, rest, value);
    }
}

/// The document of a group that was not there.
pub(super) fn whole(schema: &Schema, group: &[u8], change: &Change<'_>) -> Result<Doc, Failure> {
    let mut doc = Doc::new()
        .with("_id", digits(group))
        .with("v", version_of(change))
        .with("h", change.head.to_vec());
    for (key, value) in &change.puts {
        let (path, value) = place(schema, key, value)?;
        put(&mut doc, &path, value);
    }
    Ok(doc)
}

/// What changes the document of a group.
pub(super) fn changes(schema: &Schema, change: &Change<'_>) -> Result<Doc, Failure> {
    let mut set = Doc::new()
        .with("v", version_of(change))
        .with("h", change.head.to_vec());
    for (key, value) in &change.puts {
        let (path, value) = place(schema, key, value)?;
        set.push(&path.join("."), value);
    }
    let mut unset = Doc::new();
    for key in &change.deletes {
        unset.push(&path(schema, key).join("."), "");
    }
    let doc = Doc::new().with("$set", set);
    Ok(match unset.0.is_empty() {
        true => doc,
        false => doc.with("$unset", unset),
    })
}

/// The version after a change.
fn version_of(change: &Change<'_>) -> i64 {
    change.version as i64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use entity::Entity;
    use entity::conformance::{Item, schema};

    /// Records of an item, and two that are no entities.
    fn records() -> Vec<Record> {
        let item = Item {
            owner: 7,
            number: -1,
            content: String::from("a.b"),
            count: 3,
        };
        let native = Native {
            kind: Item::TYPE,
            ids: b"any".to_vec(),
            stamp: Stamp {
                client: 1,
                sequence: 2,
            },
            row: item.row(),
        };
        let (_, value) = native::write(&native);
        let mut ids = Vec::new();
        for id in [7i64, -1] {
            ids.extend_from_slice(&(id as u64 ^ 1 << 63).to_be_bytes());
        }
        let key = native::key_of(Item::TYPE, &ids);
        vec![
            (Vec::new(), b"2".to_vec()),
            (key, value),
            (b"Nx".to_vec(), b"1".to_vec()),
        ]
    }

    fn change_of(records: &[Record]) -> Change<'_> {
        let puts = records.iter();
        Change {
            version: 0,
            head: b"head",
            puts: puts.map(|(key, value)| (&key[..], &value[..])).collect(),
            deletes: Vec::new(),
        }
    }

    #[test]
    fn groups_come_back() {
        let (schema, records) = (schema(), records());
        let doc = whole(&schema, b"G\xff", &change_of(&records)).unwrap();
        assert_eq!(group_of(&doc).unwrap(), b"G\xff");
        assert_eq!(head_of(&doc).unwrap(), b"head");
        assert_eq!(doc.int("v"), Some(1));
        let mut found = Vec::new();
        read(&schema, &doc, &mut found).unwrap();
        found.sort();
        let mut wanted = records.clone();
        wanted.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn paths_of_nested_entities_are_set_and_unset() {
        let (schema, records) = (schema(), records());
        let mut change = change_of(&records);
        let doc = changes(&schema, &change).unwrap();
        let set = doc.doc("$set").unwrap();
        let names: Vec<&str> = set.0.iter().map(|(name, _)| name.as_str()).collect();
        let ids = "80000000000000077fffffffffffffff";
        let item = format!("e.check_item.{ids}");
        assert_eq!(names, ["v", "h", "x.k", &item, "x.k4e78"]);
        assert!(doc.doc("$unset").is_none());
        change.deletes = records.iter().map(|(key, _)| &key[..]).collect();
        change.puts.clear();
        let doc = changes(&schema, &change).unwrap();
        assert_eq!(doc.doc("$unset").unwrap().0.len(), 3);
    }
}
