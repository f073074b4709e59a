//! Lists of values that are different from each other, with what is kept for each.

use super::{Flat, Hashing, KeyTable, PIECE_ROWS, RowStore};
use crate::rows::{compare_rows, datums_heap_bytes};
use base::{Datum, Type};

/// Groups that are found in their table. Fewer are looked through one by one.
const LISTED: usize = 8;

/// Keys, each once, in the order in which they have come, with some states for each.
///
/// Two keys are the same if their values are equal as `IS NOT DISTINCT FROM` says.
#[derive(Clone, Debug)]
pub struct Groups<S> {
    hashing: Box<[Hashing]>,
    keys: RowStore,
    states: Flat<S>,
    /// Empty while there are few keys, or when no key will be asked for any more.
    table: KeyTable,
    has_table: bool,
    buffer: Vec<u8>,
}

impl<S> Default for Groups<S> {
    fn default() -> Groups<S> {
        Groups::of_width(0, 0)
    }
}

impl<S> Groups<S> {
    /// No groups, with keys of these types and this number of states for each.
    pub fn new(types: impl Iterator<Item = Type>, states: usize) -> Groups<S> {
        Groups::hashed(types.map(|ty| Hashing::of(ty, ty)).collect(), states)
    }

    /// No groups, whose keys are of types that are not known; the values of a column are of one.
    pub fn of_width(width: usize, states: usize) -> Groups<S> {
        Groups::hashed((0..width).map(|_| Hashing::Exact).collect(), states)
    }

    fn hashed(hashing: Box<[Hashing]>, states: usize) -> Groups<S> {
        Groups {
            keys: Flat::new(hashing.len()),
            states: Flat::new(states),
            table: KeyTable::default(),
            has_table: false,
            buffer: Vec::new(),
            hashing,
        }
    }

    /// Number of groups.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key of a group.
    pub fn key(&self, group: usize) -> &[Datum] {
        self.keys.row(group)
    }

    /// The states of a group.
    #[inline]
    pub fn states(&mut self, group: usize) -> &mut [S] {
        self.states.row_mut(group)
    }

    /// The states of a group, to be read.
    pub fn states_of(&self, group: usize) -> &[S] {
        self.states.row(group)
    }

    /// Key and states of a group, which may be taken out.
    pub fn parts(&mut self, group: usize) -> (&mut [Datum], &mut [S]) {
        (self.keys.row_mut(group), self.states.row_mut(group))
    }

    #[inline]
    fn same(own: &[Datum], key: &[Datum]) -> bool {
        let mut pairs = own.iter().zip(key);
        pairs.all(|(own, other)| own.compare(other).is_eq())
    }

    fn look(&self, hash: u32, key: &[Datum]) -> Option<usize> {
        let is_key = |row: u32| Self::same(self.keys.row(row as usize), key);
        let found = match self.has_table {
            true => self.table.find(hash, is_key),
            false => (0..self.keys.len() as u32).find(|row| is_key(*row)),
        };
        found.map(|group| group as usize)
    }

    /// The hash of a key, if it is needed.
    #[inline]
    fn hash(&mut self, key: &[Datum]) -> u32 {
        match self.has_table {
            true => Hashing::group(&self.hashing, key, &mut self.buffer),
            false => 0,
        }
    }

    /// The group of a key, if there is one.
    pub fn find(&mut self, key: &[Datum]) -> Option<usize> {
        let hash = self.hash(key);
        self.look(hash, key)
    }

    /// The group of a key, which is made with these states if there is none: `key` is empty then.
    /// Gives also the memory that was taken, in bytes; 0: the group was there.
    ///
    /// There are never more than 2^32 groups: their memory would be 200 GB.
    #[inline]
    pub fn enter<I: IntoIterator<Item = S>>(
        &mut self,
        key: &mut Vec<Datum>,
        states: impl FnOnce() -> I,
    ) -> (usize, usize) {
        let hash = self.hash(key);
        if let Some(group) = self.look(hash, key) {
            return (group, 0);
        }
        let held = datums_heap_bytes(key);
        let group = self.len();
        (group, held + self.add(hash, key.drain(..), states()))
    }

    /// Adds a group that is not there. Gives the memory that is taken beside what its values hold.
    fn add(
        &mut self,
        hash: u32,
        key: impl Iterator<Item = Datum>,
        states: impl IntoIterator<Item = S>,
    ) -> usize {
        let number = u32::try_from(self.len()).expect("groups fit into memory");
        let mut bytes = self.keys.push(key) + self.states.push(states);
        if self.has_table {
            bytes += self.table.add(hash, number);
        } else if self.len() > LISTED {
            for group in 0..=number {
                let key = self.keys.row(group as usize);
                let hash = Hashing::group(&self.hashing, key, &mut self.buffer);
                bytes += self.table.add(hash, group);
            }
            self.has_table = true;
        }
        // What was there before makes room for it, too.
        bytes.max(1)
    }

    /// As [`Groups::enter`] for a key that stays as it is.
    #[inline]
    pub fn enter_copy<I: IntoIterator<Item = S>>(
        &mut self,
        key: &[Datum],
        states: impl FnOnce() -> I,
    ) -> (usize, usize) {
        let hash = self.hash(key);
        if let Some(group) = self.look(hash, key) {
            return (group, 0);
        }
        let held = datums_heap_bytes(key);
        let group = self.len();
        (group, held + self.add(hash, key.iter().cloned(), states()))
    }

    /// The numbers of the groups in the order of their keys.
    pub fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let columns = 0..self.hashing.len() as u32;
        order.sort_by(|a, b| {
            let (a, b) = (self.keys.row(*a as usize), self.keys.row(*b as usize));
            compare_rows(a, b, columns.clone().map(|column| (column, false, false)))
        });
        order
    }

    /// Takes the table out, when no key will be asked for any more.
    pub fn take_table(&mut self) -> KeyTable {
        core::mem::take(&mut self.table)
    }

    /// Frees the room of groups before `end` when they have been taken out one after the other.
    /// Gives its bytes; 0: a later one frees them.
    pub fn free_before(&mut self, end: usize) -> usize {
        match end.is_multiple_of(PIECE_ROWS) || end == self.len() {
            true => self.keys.free_piece(end) + self.states.free_piece(end),
            false => 0,
        }
    }

    /// Takes the keys of some groups out, at most those of a piece, from the end: how many, and
    /// their values. What is kept for them is dropped. No key can be asked for any more.
    pub fn pop_keys(&mut self) -> Option<(usize, Vec<Datum>)> {
        self.states.shrink(1);
        self.keys.pop_piece()
    }

    /// Drops the last group; its key may still be in the table, so no key can be asked for any
    /// more.
    pub fn pop(&mut self) {
        self.keys.pop();
        self.states.pop();
    }

    /// Drops some groups at the end, or some of the table: at least this number. No key can be
    /// asked for any more.
    pub fn shrink(&mut self, most: usize) {
        match self.keys.is_empty() {
            true => self.table.shrink(most),
            false => {
                self.keys.shrink(most);
                self.states.shrink(most);
            }
        }
    }

    /// What is left to be freed: groups, then entries of the table.
    pub fn held(&self) -> usize {
        match self.len() {
            0 => self.table.len(),
            groups => groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;
    use std::collections::BTreeMap;

    #[test]
    fn groups_are_those_of_an_ordered_map() {
        let mut prng = Prng::new(3);
        for (rows, keys) in [(5, 3), (20, 9), (3_000, 1_000), (40_000, 40_000)] {
            let types = [Type::Int4, Type::Text].into_iter();
            let mut groups: Groups<u64> = Groups::new(types, 1);
            let mut expected: BTreeMap<(i64, String), u64> = BTreeMap::new();
            let mut bytes = 0;
            for _ in 0..rows {
                let number = prng.below(keys) as i64;
                let text = format!("{}", number % 7);
                let first = match number {
                    0 => Datum::Null,
                    number => Datum::Int(number),
                };
                let mut key = vec![first, Datum::Text(text.as_str().into())];
                let before = groups.len();
                let (group, grown) = groups.enter(&mut key, || [0]);
                assert_eq!(grown > 0, group == before);
                bytes += grown;
                groups.states(group)[0] += 1;
                *expected.entry((number, text)).or_default() += 1;
            }
            assert_eq!(groups.len(), expected.len());
            assert!(bytes > groups.len() * 2 * size_of::<Datum>());
            for ((number, text), count) in &expected {
                let first = match number {
                    0 => Datum::Null,
                    number => Datum::Int(*number),
                };
                let key = [first, Datum::Text(text.as_str().into())];
                let group = groups.find(&key).unwrap();
                assert_eq!(groups.states(group), [*count]);
            }
            assert_eq!(groups.find(&[Datum::Int(-1), Datum::Null]), None);
            let order = groups.in_order();
            let sorted = order.is_sorted_by(|a, b| {
                let (a, b) = (groups.key(*a as usize), groups.key(*b as usize));
                compare_rows(a, b, (0..2).map(|column| (column, false, false))).is_lt()
            });
            assert!(sorted);
            while groups.held() > 0 {
                groups.shrink(1_000);
            }
        }
    }

    #[test]
    fn keys_without_columns_are_one_group() {
        let mut groups: Groups<u8> = Groups::new(core::iter::empty(), 2);
        assert_eq!(groups.find(&[]), None);
        assert!(groups.enter(&mut Vec::new(), || [1, 2]).1 > 0);
        assert_eq!(groups.enter(&mut Vec::new(), || [3, 4]), (0, 0));
        assert_eq!((groups.len(), groups.states(0)), (1, &mut [1, 2][..]));
    }
}
