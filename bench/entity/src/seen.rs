//! What a transaction knows of entities: what it has read and written. For stores whose
//! transactions read single rows.

use crate::model::EntityType;
use crate::value::{Row, Value};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// So many entities are looked through one by one.
const FEW: usize = 16;

/// Where [`Seen`] has an entity, or would have it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    hash: u64,
    at: Option<usize>,
}

/// One entity.
#[derive(Debug)]
struct Known {
    hash: u64,
    kind: Cow<'static, str>,
    /// Where its values begin in [`Seen::cells`], and how many there are: of an entity that is not
    /// there, its ids.
    from: usize,
    count: usize,
    is_there: bool,
}

/// A value whose bytes lie elsewhere.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Real(f64),
    /// Where its bytes begin in [`Seen::bytes`], and how many there are.
    Text(usize, usize),
    Bytes(usize, usize),
}

/// Entities by their type and id. It keeps its memory from one transaction to the next.
#[derive(Debug, Default)]
pub struct Seen {
    all: Vec<Known>,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    /// The places of each hash, once there are many.
    places: BTreeMap<u64, Vec<usize>>,
}

impl Seen {
    /// A transaction begins, or has ended.
    pub fn clear(&mut self) {
        self.all.clear();
        self.cells.clear();
        self.bytes.clear();
        self.places.clear();
    }

    /// Whether the transaction knows nothing.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Where an entity is, or belongs. `id` may be its row. The place holds until
    /// [`Seen::clear`], and until another place of the same entity is noted.
    pub fn place(&self, kind: &EntityType, id: &[Value]) -> Place {
        let id = &id[..kind.id_count];
        let hash = hash_of(id);
        let is_it =
            |known: &Known| known.hash == hash && self.are(known, id) && known.kind == kind.name;
        let at = if self.places.is_empty() {
            self.all.iter().position(is_it)
        } else {
            let mut places = self.places.get(&hash).into_iter().flatten().copied();
            places.find(|at| is_it(&self.all[*at]))
        };
        Place { hash, at }
    }

    /// Whether these are the first values of an entity.
    fn are(&self, known: &Known, values: &[Value]) -> bool {
        let cells = &self.cells[known.from..known.from + values.len()];
        cells
            .iter()
            .zip(values)
            .all(|(cell, value)| match (*cell, value) {
                (Cell::Null, Value::Null) => true,
                (Cell::Bool(cell), Value::Bool(value)) => cell == *value,
                (Cell::Int(cell), Value::Int(value)) => cell == *value,
                (Cell::Real(cell), Value::Real(value)) => cell == *value,
                (Cell::Text(at, len), Value::Text(value)) => {
                    self.bytes[at..at + len] == *value.as_bytes()
                }
                (Cell::Bytes(at, len), Value::Bytes(value)) => self.bytes[at..at + len] == **value,
                _ => false,
            })
    }

    /// What the transaction knows of an entity, `Some(false)` being that it is not there.
    pub fn is_there(&self, place: Place) -> Option<bool> {
        Some(self.all[place.at?].is_there)
    }

    /// As [`Seen::is_there`], with the values.
    pub fn get(&self, place: Place) -> Option<Option<Row>> {
        let known = &self.all[place.at?];
        let text = |at, len| String::from_utf8_lossy(&self.bytes[at..at + len]).into_owned();
        let values = self.cells[known.from..known.from + known.count].iter();
        let values = values.map(|cell| match *cell {
            Cell::Null => Value::Null,
            Cell::Bool(value) => Value::Bool(value),
            Cell::Int(value) => Value::Int(value),
            Cell::Real(value) => Value::Real(value),
            Cell::Text(at, len) => Value::Text(text(at, len)),
            Cell::Bytes(at, len) => Value::Bytes(self.bytes[at..at + len].to_vec()),
        });
        Some(known.is_there.then(|| values.collect()))
    }

    /// The entity of this place is there, with the values of this row, or is not there: then only
    /// the ids count.
    pub fn note(&mut self, place: Place, kind: &EntityType, row: &[Value], is_there: bool) {
        let values = match is_there {
            true => row,
            false => &row[..kind.id_count],
        };
        let (from, count) = (self.cells.len(), values.len());
        self.cells.reserve(count);
        for value in values {
            let cell = match value {
                Value::Null => Cell::Null,
                Value::Bool(value) => Cell::Bool(*value),
                Value::Int(value) => Cell::Int(*value),
                Value::Real(value) => Cell::Real(*value),
                Value::Text(value) => Cell::Text(self.keep(value.as_bytes()), value.len()),
                Value::Bytes(value) => Cell::Bytes(self.keep(value), value.len()),
            };
            self.cells.push(cell);
        }
        let Place { hash, at } = place;
        if let Some(at) = at {
            let known = &mut self.all[at];
            (known.from, known.count, known.is_there) = (from, count, is_there);
            return;
        }
        let at = self.all.len();
        self.all.push(Known {
            hash,
            kind: kind.name.clone(),
            from,
            count,
            is_there,
        });
        if at == FEW {
            for (at, known) in self.all.iter().enumerate() {
                self.places.entry(known.hash).or_default().push(at);
            }
        } else if at > FEW {
            self.places.entry(hash).or_default().push(at);
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }
}

/// Any function of an id that spreads.
fn hash_of(id: &[Value]) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let of_bytes = |hash: u64, bytes: &[u8]| {
        let (words, rest) = bytes.as_chunks::<8>();
        let hash = words
            .iter()
            .fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        let rest = rest
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        mix(mix(hash, rest), bytes.len() as u64)
    };
    id.iter().fold(0, |hash, value| match value {
        Value::Null => mix(hash, 1),
        Value::Bool(value) => mix(hash, u64::from(*value)),
        Value::Int(value) => mix(hash, *value as u64),
        Value::Real(value) => mix(hash, value.to_bits()),
        Value::Text(value) => of_bytes(hash, value.as_bytes()),
        Value::Bytes(value) => of_bytes(hash, value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entity;
    use alloc::borrow::ToOwned;
    use alloc::format;

    #[derive(Clone, Debug, PartialEq, Entity)]
    struct Note {
        #[id]
        #[group]
        user: String,
        #[id]
        number: i64,
        text: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, Entity)]
    struct Mark {
        #[id]
        #[group]
        user: String,
        #[id]
        number: i64,
        text: Option<String>,
    }

    fn row(number: i64, text: &str) -> Row {
        let text = (!text.is_empty()).then(|| text.to_owned());
        let user = format!("user {}", number % 3);
        let note = Note { user, number, text };
        note.row()
    }

    /// Few and many entities, of two types with the same ids.
    #[test]
    fn what_was_noted_last_is_known() {
        let get = |seen: &Seen, kind, id: &[Value]| seen.get(seen.place(kind, id));
        let note = |seen: &mut Seen, kind, row: &[Value], is_there| {
            let place = seen.place(kind, row);
            seen.note(place, kind, row, is_there);
        };
        let mut seen = Seen::default();
        for _ in 0..2 {
            assert!(seen.is_empty());
            for number in 0..100 {
                let id = row(number, "");
                assert_eq!(get(&seen, Note::TYPE, &id), None);
                note(&mut seen, Note::TYPE, &row(number, "first"), true);
                let second = row(number, if number % 2 == 0 { "" } else { "second" });
                note(&mut seen, Note::TYPE, &second, true);
                note(&mut seen, Mark::TYPE, &id, false);
            }
            for number in 0..100 {
                let text = if number % 2 == 0 { "" } else { "second" };
                let known = row(number, text);
                assert_eq!(
                    get(&seen, Note::TYPE, &known[..2]),
                    Some(Some(known.clone()))
                );
                assert_eq!(get(&seen, Mark::TYPE, &known), Some(None));
                let place = seen.place(Note::TYPE, &known);
                assert_eq!(seen.is_there(place), Some(true));
            }
            note(&mut seen, Note::TYPE, &row(7, "x"), false);
            assert_eq!(get(&seen, Note::TYPE, &row(7, "")), Some(None));
            note(&mut seen, Note::TYPE, &row(7, "back"), true);
            let back = Some(Some(row(7, "back")));
            assert_eq!(get(&seen, Note::TYPE, &row(7, "")), back);
            seen.clear();
        }
    }
}
