//! Keys as bytes that are ordered as the values are.
//!
//! | value | bytes |
//! |---|---|
//! | bool | 0 or 1 |
//! | int | 8, big-endian, the sign bit flipped |
//! | text, bytes | as they are, 0 as 0 255; then 0 0 |
//!
//! No value's bytes are the beginning of another's of the same kind, so that values of one list of
//! kinds follow each other without separators, and no such list is the beginning of another one.
//!
//! Groups: `G name key` of entities, `I type index key` of an index outside of the groups, `C type
//! ids` of a counter outside. Records in a group: `E type ids` an entity, `X type index key ids` an
//! entry of an index, `L type index key` an index as one list, `N type ids` a counter.

use crate::model::EntityType;
use crate::value::{Kind, Row, Value};
use alloc::string::String;
use alloc::vec::Vec;

/// First bytes of groups and records.
pub(crate) mod tag {
    pub(crate) const GROUP: u8 = b'G';
    pub(crate) const INDEX_GROUP: u8 = b'I';
    pub(crate) const COUNTER_GROUP: u8 = b'C';
    pub(crate) const ENTITY: u8 = b'E';
    pub(crate) const ENTRY: u8 = b'X';
    pub(crate) const LIST: u8 = b'L';
    pub(crate) const COUNTER: u8 = b'N';
}

/// Appends a value. Panics on one that cannot be a key: the type's check keeps them out.
pub(crate) fn push(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::Int(value) => {
            out.extend_from_slice(&(*value as u64 ^ 1 << 63).to_be_bytes());
        }
        Value::Text(value) => push_bytes(value.as_bytes(), out),
        Value::Bytes(value) => push_bytes(value, out),
        Value::Null | Value::Real(_) => panic!("{value} cannot be part of a key"),
    }
}

fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(255);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// Takes a value of a kind from the front of `bytes`. `None`: there is none.
pub(crate) fn take(kind: Kind, bytes: &mut &[u8]) -> Option<Value> {
    match kind {
        Kind::Bool => {
            let (first, rest) = bytes.split_first()?;
            *bytes = rest;
            match first {
                0 => Some(Value::Bool(false)),
                1 => Some(Value::Bool(true)),
                _ => None,
            }
        }
        Kind::Int => {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            *bytes = rest;
            Some(Value::Int((u64::from_be_bytes(*head) ^ 1 << 63) as i64))
        }
        Kind::Text => {
            let text = String::from_utf8(take_bytes(bytes)?).ok()?;
            Some(Value::Text(text))
        }
        Kind::Bytes => take_bytes(bytes).map(Value::Bytes),
        Kind::Real => None,
    }
}

fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if byte != 0 {
            out.push(byte);
            continue;
        }
        let (&next, rest) = bytes.split_first()?;
        *bytes = rest;
        match next {
            0 => return Some(out),
            255 => out.push(0),
            _ => return None,
        }
    }
}

/// Begins a key: its tag and a name.
pub(crate) fn begin(tag: u8, name: &str, out: &mut Vec<u8>) {
    out.clear();
    out.push(tag);
    push_name(name, out);
}

/// Appends a name.
pub(crate) fn push_name(name: &str, out: &mut Vec<u8>) {
    push_bytes(name.as_bytes(), out);
}

/// The group of an entity, from its id or row.
pub(crate) fn group_of(kind: &EntityType, id: &[Value], out: &mut Vec<u8>) {
    begin(tag::GROUP, &kind.group_name, out);
    for value in kind.group_of(id) {
        push(value, out);
    }
}

/// The record of an entity, or the beginning of those whose ids begin with `id`.
pub(crate) fn entity(kind: &EntityType, id: &[Value], out: &mut Vec<u8>) {
    begin(tag::ENTITY, &kind.name, out);
    for value in id.iter().take(kind.id_count) {
        push(value, out);
    }
}

/// The length of the key of a group of this type that `place` begins with; `None`: with none.
pub(crate) fn group_length(kind: &EntityType, place: &[u8]) -> Option<usize> {
    let mut rest = place.strip_prefix(&[tag::GROUP])?;
    if take_bytes(&mut rest)? != kind.group_name.as_bytes() {
        return None;
    }
    for id in kind.group.iter() {
        take(kind.columns[*id].kind, &mut rest)?;
    }
    Some(place.len() - rest.len())
}

/// The ids behind `at` bytes of a record's key.
pub(crate) fn ids(kind: &EntityType, key: &[u8], at: usize) -> Option<Row> {
    let mut rest = key.get(at..)?;
    let mut ids = Row::with_capacity(kind.columns.len());
    for column in kind.ids() {
        ids.push(take(column.kind, &mut rest)?);
    }
    rest.is_empty().then_some(ids)
}

/// The smallest key that does not begin with `prefix`, into `out`; a prefix of ones has none, and
/// no key begins so.
pub(crate) fn after(prefix: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(prefix);
    while let Some(last) = out.pop() {
        if last < 255 {
            out.push(last + 1);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    fn bytes(values: &[Value]) -> Vec<u8> {
        let mut out = Vec::new();
        for value in values {
            push(value, &mut out);
        }
        out
    }

    fn drawn(kind: Kind, prng: &mut Prng) -> Value {
        match kind {
            Kind::Bool => Value::Bool(prng.below(2) == 1),
            Kind::Int => match prng.below(3) {
                0 => Value::Int(prng.between(-2, 2)),
                1 => Value::Int(prng.next_u64() as i64),
                _ => Value::Int([i64::MIN, i64::MAX][prng.below(2) as usize]),
            },
            Kind::Text | Kind::Bytes | Kind::Real => {
                let length = prng.below(4);
                let bytes = (0..length).map(|_| [0, 1, 254, 255][prng.below(4) as usize]);
                Value::Bytes(bytes.collect())
            }
        }
    }

    fn order(a: &[Value], b: &[Value]) -> core::cmp::Ordering {
        let one = |a: &Value, b: &Value| match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            _ => unreachable!("both are drawn of one kind"),
        };
        let pairs = a.iter().zip(b).map(|(a, b)| one(a, b));
        pairs.fold(core::cmp::Ordering::Equal, core::cmp::Ordering::then)
    }

    #[test]
    fn bytes_are_ordered_as_values_and_read_back() {
        let mut prng = Prng::new(3);
        for _ in 0..20_000 {
            let kinds = [Kind::Bytes, Kind::Int, Kind::Bool];
            let first = prng.below(3) as usize;
            let kinds = [kinds[first], kinds[(first + 1) % 3]];
            let draw = |prng: &mut Prng| kinds.map(|kind| drawn(kind, prng));
            let (a, b) = (draw(&mut prng), draw(&mut prng));
            let (of_a, of_b) = (bytes(&a), bytes(&b));
            assert_eq!(order(&a, &b), of_a.cmp(&of_b), "{a:?} {b:?}");
            assert!(a == b || !of_b.starts_with(&of_a), "{a:?} {b:?}");
            let mut rest = &of_a[..];
            let read = kinds.map(|kind| take(kind, &mut rest));
            assert_eq!(read, a.map(Some));
        }
    }

    #[test]
    fn broken_keys_are_no_values() {
        assert_eq!(take(Kind::Int, &mut &[1, 2][..]), None);
        assert_eq!(take(Kind::Bool, &mut &[7][..]), None);
        assert_eq!(take(Kind::Bytes, &mut &[1, 0][..]), None);
        assert_eq!(take(Kind::Bytes, &mut &[0, 7][..]), None);
        assert_eq!(take(Kind::Text, &mut &[255, 0, 0][..]), None);
    }

    #[test]
    fn ends_of_prefixes() {
        let mut out = Vec::new();
        after(&[1, 2], &mut out);
        assert_eq!(out, [1, 3]);
        after(&[1, 255], &mut out);
        assert_eq!(out, [2]);
    }
}
