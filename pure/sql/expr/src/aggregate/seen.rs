//! Values of an aggregate with DISTINCT, each once.

use crate::hashed::Groups;
use crate::rows::{datums_heap_bytes, entry_bytes, heap_bytes};
use base::{Datum, RowBatch, SqlError, codec};
use core::cmp::Ordering;
use core::fmt;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::collections::BTreeSet;

/// Bytes of encoded values in one part of a partial result.
const PART_BYTES: usize = 64 << 10;

/// Work that it is to free a part of a table of hashes, in values.
const TABLE_WORK: usize = 1_000;

/// A list of values in the order of SQL, for sets.
#[derive(Clone, Debug)]
pub(super) struct Values(Box<[Datum]>);

impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Values {}
impl PartialOrd for Values {
    fn partial_cmp(&self, other: &Values) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Values {
    fn cmp(&self, other: &Values) -> Ordering {
        let pairs = self.0.iter().zip(other.0.iter()).map(|(a, b)| a.compare(b));
        pairs
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// The arguments of the rows so far, each list of them once.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// Those of an aggregate whose result depends on their order: they are taken in the order of
    /// SQL, as PostgreSQL does.
    Ordered(BTreeSet<Values>),
    /// Those of any other, which has one argument.
    Hashed(Groups<()>),
}

impl Seen {
    pub(super) fn new(any_order: bool) -> Seen {
        match any_order {
            true => Seen::Hashed(Groups::of_width(1, 0)),
            false => Seen::Ordered(BTreeSet::new()),
        }
    }

    /// Number of values, or of entries that are left to be freed.
    pub(super) fn len(&self) -> usize {
        match self {
            Seen::Ordered(set) => set.len(),
            Seen::Hashed(groups) => groups.held(),
        }
    }

    /// Whether lists of this length can be arguments.
    pub(super) fn takes(&self, width: u32) -> bool {
        matches!(self, Seen::Ordered(_)) || width == 1
    }

    /// Adds the arguments of a row. Gives the memory that was taken for them, in bytes.
    pub(super) fn insert(&mut self, args: &[Datum]) -> usize {
        match self {
            Seen::Ordered(set) => {
                let values = Values(args.into());
                let own =
                    heap_bytes(size_of_val::<[Datum]>(&values.0)) + datums_heap_bytes(&values.0);
                match set.insert(values) {
                    true => own + entry_bytes(size_of::<Values>()),
                    false => 0,
                }
            }
            Seen::Hashed(groups) => groups.enter_copy(args, || []).1,
        }
    }

    /// Gives some values, which are then forgotten, to `take_in`, until none are left. Says how
    /// much work that was, in values; 0: there are none.
    pub(super) fn take(
        &mut self,
        mut take_in: impl FnMut(&[Datum]) -> Result<(), SqlError>,
    ) -> Result<usize, SqlError> {
        match self {
            Seen::Ordered(set) => match set.pop_first() {
                Some(values) => take_in(&values.0).map(|()| 1),
                None => Ok(0),
            },
            Seen::Hashed(groups) => match groups.pop_keys() {
                Some((count, values)) => {
                    let mut rows = values.chunks_exact(1);
                    rows.try_for_each(take_in)?;
                    Ok(count)
                }
                None if groups.held() == 0 => Ok(0),
                None => {
                    groups.shrink(1);
                    Ok(TABLE_WORK)
                }
            },
        }
    }

    /// Forgets at least `most` values.
    pub(super) fn forget(&mut self, most: usize) {
        match self {
            Seen::Ordered(set) => (0..most.min(set.len())).for_each(|_| drop(set.pop_last())),
            Seen::Hashed(groups) => groups.shrink(most),
        }
    }

    /// Lists of values in parts of some size. As bytes, because the values may be arrays, and
    /// arrays do not nest.
    pub(super) fn encoded(self) -> Vec<Datum> {
        let mut parts = Parts::default();
        match &self {
            Seen::Ordered(set) => set.iter().for_each(|values| parts.add(&values.0)),
            Seen::Hashed(groups) => (0..groups.len()).for_each(|i| parts.add(groups.key(i))),
        }
        parts.close();
        parts.closed
    }
}

#[derive(Default)]
struct Parts<'v> {
    closed: Vec<Datum>,
    open: Vec<&'v [Datum]>,
    open_bytes: usize,
}

impl<'v> Parts<'v> {
    fn add(&mut self, values: &'v [Datum]) {
        self.open_bytes += size_of::<Datum>() + datums_heap_bytes(values);
        self.open.push(values);
        if self.open_bytes >= PART_BYTES {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push(codec::to_vec(&self.open).into());
            self.open.clear();
            self.open_bytes = 0;
        }
    }
}

/// The lists of values of a part.
///
/// # Errors
/// XX001 if they are malformed.
pub(super) fn decoded(part: &Datum) -> Result<RowBatch, SqlError> {
    let lists: Lists = codec::decode(part.as_bytes().unwrap_or(&[]))?;
    Ok(lists.0)
}

/// A list of lists of values of one length, without an allocation for each.
struct Lists(RowBatch);

impl<'de> Deserialize<'de> for Lists {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lists, D::Error> {
        deserializer.deserialize_seq(AllLists)
    }
}

struct AllLists;

impl<'de> Visitor<'de> for AllLists {
    type Value = Lists;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lists of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lists: A) -> Result<Lists, A::Error> {
        let mut rows = RowBatch::new(0);
        while lists.next_element_seed(OneList(&mut rows))?.is_some() {
            rows.rows += 1;
        }
        Ok(Lists(rows))
    }
}

struct OneList<'r>(&'r mut RowBatch);

impl<'de> DeserializeSeed<'de> for OneList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneList<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let before = self.0.datums.len();
        while let Some(value) = values.next_element()? {
            self.0.datums.push(value);
        }
        let width = (self.0.datums.len() - before) as u32;
        if self.0.rows > 0 && width != self.0.width {
            return Err(A::Error::custom("lists of different length"));
        }
        self.0.width = width;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_lists_of_lists() {
        let lists = vec![
            vec![Datum::Int(1), Datum::Text("a".into())],
            vec![Datum::Null, Datum::Array(Box::new([Datum::Int(7)]))],
        ];
        let part = Datum::Bytes(codec::to_vec(&lists).into());
        let rows = decoded(&part).unwrap();
        assert_eq!(
            rows.iter().map(<[Datum]>::to_vec).collect::<Vec<_>>(),
            lists
        );
        let uneven = vec![vec![Datum::Int(1)], Vec::new()];
        assert!(decoded(&Datum::Bytes(codec::to_vec(&uneven).into())).is_err());
        assert!(decoded(&Datum::Bytes([255, 255, 255, 255, 15].into())).is_err());
        assert!(decoded(&Datum::Null).is_err());
    }
}
