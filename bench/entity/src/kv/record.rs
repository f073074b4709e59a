//! Rows, lists of entries and counters as the values of records.
//!
//! A row: the stamp of its creation (16 bytes), the number of columns (1 byte), then each column
//! that is no id: a byte for its kind (0: null), and its value; texts and bytes behind their
//! length (4 bytes). Numbers are big-endian.
//!
//! An entry of an index is the stamp of its entity's creation, so that who deletes an entity does
//! not remove the entry of one that was created in its place. A list object is such entries, each
//! behind the length of its ids (2 bytes) and the ids.

use crate::db::{Failure, Stamp};
use crate::model::EntityType;
use crate::value::{Row, Value};
use alloc::format;
use alloc::vec::Vec;

/// Appends the value of an entity's record.
pub(crate) fn push_row(kind: &EntityType, stamp: Stamp, row: &[Value], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&stamp.to_bytes());
    out.push(kind.columns.len() as u8);
    for value in &row[kind.id_count..] {
        match value {
            Value::Null => out.push(0),
            Value::Bool(value) => out.extend_from_slice(&[1, u8::from(*value)]),
            Value::Int(value) => {
                out.push(2);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Value::Real(value) => {
                out.push(3);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Value::Text(value) => {
                out.push(4);
                push_long(value.as_bytes(), out);
            }
            Value::Bytes(value) => {
                out.push(5);
                push_long(value, out);
            }
        }
    }
}

fn push_long(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the columns of a record to `row`, which has the ids. Returns the stamp of its creation.
///
/// # Errors
/// `Refused`: the record is no row of this type. Another program wrote it, or another schema.
pub(crate) fn take_row(
    kind: &EntityType,
    mut bytes: &[u8],
    row: &mut Row,
) -> Result<Stamp, Failure> {
    let stamp = take_head(kind, &mut bytes).ok_or_else(|| not_a_row(kind))?;
    for column in &kind.columns[kind.id_count..] {
        let value = take_stored(&mut bytes).map(|stored| stored.to_value());
        let value = value.filter(|v| v.kind().is_none_or(|kind| kind == column.kind));
        row.push(value.ok_or_else(|| not_a_row(kind))?);
    }
    match bytes.is_empty() {
        true => Ok(stamp),
        false => Err(not_a_row(kind)),
    }
}

fn take_head(kind: &EntityType, bytes: &mut &[u8]) -> Option<Stamp> {
    let stamp = Stamp::from_bytes(take(bytes)?);
    let columns = take::<1>(bytes)?[0];
    (usize::from(columns) == kind.columns.len()).then_some(stamp)
}

/// The first immutable column that a row has otherwise than a record.
///
/// # Errors
/// As for [`take_row`].
pub(crate) fn changed_immutable(
    kind: &EntityType,
    mut bytes: &[u8],
    row: &[Value],
) -> Result<Option<usize>, Failure> {
    take_head(kind, &mut bytes).ok_or_else(|| not_a_row(kind))?;
    for (n, column) in kind.columns.iter().enumerate().skip(kind.id_count) {
        let stored = take_stored(&mut bytes).ok_or_else(|| not_a_row(kind))?;
        if column.immutable && !stored.is(&row[n]) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

/// The stamp of a row's creation.
///
/// # Errors
/// As for [`take_row`].
pub(crate) fn stamp_of(kind: &EntityType, mut bytes: &[u8]) -> Result<Stamp, Failure> {
    let stamp = take(&mut bytes).ok_or_else(|| not_a_row(kind))?;
    Ok(Stamp::from_bytes(stamp))
}

pub(crate) fn not_a_row(kind: &EntityType) -> Failure {
    Failure::Refused(format!(
        "a record of the store is no entity of type \"{}\": begin with an empty store",
        kind.name
    ))
}

/// A value that lies in a record.
enum Stored<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl Stored<'_> {
    fn to_value(&self) -> Value {
        match self {
            Stored::Null => Value::Null,
            Stored::Bool(value) => Value::Bool(*value),
            Stored::Int(value) => Value::Int(*value),
            Stored::Real(value) => Value::Real(*value),
            Stored::Text(value) => Value::Text((*value).into()),
            Stored::Bytes(value) => Value::Bytes(value.to_vec()),
        }
    }

    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Stored::Null, Value::Null) => true,
            (Stored::Bool(a), Value::Bool(b)) => a == b,
            (Stored::Int(a), Value::Int(b)) => a == b,
            (Stored::Real(a), Value::Real(b)) => a == b,
            (Stored::Text(a), Value::Text(b)) => a == b,
            (Stored::Bytes(a), Value::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

fn take_stored<'a>(bytes: &mut &'a [u8]) -> Option<Stored<'a>> {
    match take::<1>(bytes)?[0] {
        0 => Some(Stored::Null),
        1 => Some(Stored::Bool(take::<1>(bytes)?[0] != 0)),
        2 => Some(Stored::Int(i64::from_be_bytes(take(bytes)?))),
        3 => Some(Stored::Real(f64::from_be_bytes(take(bytes)?))),
        4 => core::str::from_utf8(take_long(bytes)?)
            .ok()
            .map(Stored::Text),
        5 => take_long(bytes).map(Stored::Bytes),
        _ => None,
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn take_long<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(take(bytes)?);
    let (head, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    Some(head)
}

/// The value of a counter's record.
pub(crate) fn counter(bytes: Option<&[u8]>) -> Result<i64, Failure> {
    let Some(bytes) = bytes else { return Ok(0) };
    bytes.try_into().map(i64::from_be_bytes).map_err(|_| {
        let words = "a counter of the store is no number: begin with an empty store";
        Failure::Refused(words.into())
    })
}

/// An index as one list object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List(Vec<(Vec<u8>, Stamp)>);

impl List {
    /// # Errors
    /// `Refused`: the record is no list.
    pub(crate) fn read(bytes: Option<&[u8]>) -> Result<List, Failure> {
        let mut bytes = bytes.unwrap_or_default();
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            entries.push(take_entry(&mut bytes).ok_or_else(|| {
                let words = "an index of the store is no list: begin with an empty store";
                Failure::Refused(words.into())
            })?);
        }
        Ok(List(entries))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        for (ids, stamp) in &self.0 {
            out.extend_from_slice(&(ids.len() as u16).to_be_bytes());
            out.extend_from_slice(ids);
            out.extend_from_slice(&stamp.to_bytes());
        }
    }

    /// Adds an entry, or gives it another stamp. `false`: it was there with this stamp.
    pub(crate) fn set(&mut self, ids: &[u8], stamp: Stamp) -> bool {
        match self.0.binary_search_by(|(own, _)| own.as_slice().cmp(ids)) {
            Ok(at) => core::mem::replace(&mut self.0[at].1, stamp) != stamp,
            Err(at) => {
                self.0.insert(at, (ids.to_vec(), stamp));
                true
            }
        }
    }

    /// Removes an entry that has this stamp. `false`: there is none.
    pub(crate) fn remove(&mut self, ids: &[u8], stamp: Stamp) -> bool {
        let length = self.0.len();
        self.0.retain(|entry| entry.0 != ids || entry.1 != stamp);
        self.0.len() < length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The encoded ids, in their order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(ids, _)| ids.as_slice())
    }
}

fn take_entry(bytes: &mut &[u8]) -> Option<(Vec<u8>, Stamp)> {
    let length = u16::from_be_bytes(take(bytes)?);
    let (ids, rest) = bytes.split_at_checked(usize::from(length))?;
    *bytes = rest;
    Some((ids.to_vec(), Stamp::from_bytes(take(bytes)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;
    use entity::Entity;

    #[derive(Clone, Debug, PartialEq, Entity)]
    struct Thing {
        #[id]
        id: i64,
        text: Option<String>,
        bytes: Vec<u8>,
        real: f64,
        #[immutable]
        is_old: bool,
    }

    fn thing() -> Row {
        let thing = Thing {
            id: 1,
            text: Some("text".into()),
            bytes: vec![1, 2],
            real: 0.5,
            is_old: true,
        };
        thing.row()
    }

    #[test]
    fn rows_come_back_and_immutable_columns_are_compared() {
        let stamp = Stamp {
            client: 7,
            sequence: 9,
        };
        let mut bytes = Vec::new();
        push_row(Thing::TYPE, stamp, &thing(), &mut bytes);
        let mut row = vec![Value::Int(1)];
        assert_eq!(take_row(Thing::TYPE, &bytes, &mut row), Ok(stamp));
        assert_eq!(row, thing());
        assert_eq!(changed_immutable(Thing::TYPE, &bytes, &row), Ok(None));
        row[1] = Value::Null;
        assert_eq!(changed_immutable(Thing::TYPE, &bytes, &row), Ok(None));
        row[4] = Value::Bool(false);
        assert_eq!(changed_immutable(Thing::TYPE, &bytes, &row), Ok(Some(4)));
    }

    #[test]
    fn broken_records_are_refused() {
        let mut bytes = Vec::new();
        push_row(Thing::TYPE, Stamp::default(), &thing(), &mut bytes);
        let mut prng = Prng::new(5);
        for n in 0..5_000u64 {
            let mut broken = bytes.clone();
            if n % 2 == 0 {
                broken.truncate(prng.below(bytes.len() as u64) as usize);
            } else {
                let at = prng.below(bytes.len() as u64) as usize;
                broken[at] = prng.next_u64() as u8;
            }
            let mut row = vec![Value::Int(1)];
            let taken = take_row(Thing::TYPE, &broken, &mut row);
            assert!(n % 2 == 1 || taken.is_err());
            let _ = changed_immutable(Thing::TYPE, &broken, &thing());
            let _ = List::read(Some(&broken));
            let _ = crate::kv::key::ids(Thing::TYPE, &broken, n as usize % 9);
        }
        assert!(counter(Some(&[1, 2])).is_err());
        assert_eq!(counter(None), Ok(0));
    }

    #[test]
    fn entries_of_a_list_are_known_by_their_stamps() {
        let stamp = |sequence| Stamp {
            client: 1,
            sequence,
        };
        let mut list = List::default();
        assert!(list.set(b"b", stamp(1)) && list.set(b"a", stamp(2)));
        assert!(!list.set(b"a", stamp(2)) && list.set(b"a", stamp(3)));
        assert!(!list.remove(b"a", stamp(2)));
        let mut bytes = Vec::new();
        list.write(&mut bytes);
        let mut read = List::read(Some(&bytes)).unwrap();
        assert_eq!(read, list);
        assert_eq!(read.ids().collect::<Vec<_>>(), [b"a", b"b"]);
        assert!(read.remove(b"a", stamp(3)) && read.remove(b"b", stamp(1)));
        assert!(read.is_empty());
    }
}
