//! What a transaction writes on one shard: one write per key, in key order.
//!
//! ```text
//! up to 32 writes  one list, which keeps its memory for the next transaction
//! more             a tree; from 64 in it on, new keys that ascend in their bucket go to a run
//! ```
//!
//! Most transactions write a few rows. Loads write millions of new rows, whose keys mostly ascend
//! in each bucket: they are appended to a run per bucket. A write out of order, or to a row that
//! was written before, goes into the tree. Readers see all writes as one.

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::{self, Vec};
use base::{IndexId, Key, SLOT_COUNT, Slot};
use core::cmp::Ordering;
use journal::Writes;
use store::Write;
use txn::rows::NewRow;

/// Largest number of writes that are all in one list.
const FEW_MAX: usize = 32;

/// Number of writes in the tree from which on ascending ones go to runs.
const RUNS_FROM: usize = 64;

type Run = Vec<(Key, Write)>;

/// The writes of one transaction. A key is in the list, in the tree, or in its bucket's run. While
/// the list has any, tree and runs are empty.
#[derive(Debug, Default)]
pub struct WriteSet {
    /// Ascending.
    few: Vec<(Key, Write)>,
    tree: BTreeMap<Key, Write>,
    /// By [`place`].
    runs: BTreeMap<u64, Run>,
    /// Number of writes in the runs.
    run_len: usize,
    /// Number of formulas. None of them is in a run.
    formula_count: usize,
}

impl WriteSet {
    /// Whether there is no write.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.few.is_empty() && self.tree.is_empty() && self.run_len == 0
    }

    /// Number of writes.
    #[inline]
    pub fn len(&self) -> usize {
        self.few.len() + self.tree.len() + self.run_len
    }

    /// The write of a key.
    #[inline]
    pub fn get(&self, key: &Key) -> Option<&Write> {
        if !self.few.is_empty() {
            return self.find_few(key).ok().map(|at| &self.few[at].1);
        }
        if self.tree.is_empty() && self.run_len == 0 {
            return None;
        }
        self.get_of_many(key)
    }

    #[inline]
    fn find_few(&self, key: &Key) -> Result<usize, usize> {
        self.few.binary_search_by(|(other, _)| other.cmp(key))
    }

    fn get_of_many(&self, key: &Key) -> Option<&Write> {
        if let Some(write) = self.tree.get(key) {
            return Some(write);
        }
        let run = self.runs.get(&place(key.index, key.slot))?;
        find(run, key).map(|at| &run[at].1)
    }

    /// Adds a write to a key that has none.
    pub fn add(&mut self, key: Key, write: Write) {
        let is_formula = matches!(write, Write::Formula(_));
        if self.few.len() < FEW_MAX && self.tree.is_empty() && self.run_len == 0 {
            self.formula_count += usize::from(is_formula);
            let at = self.find_few(&key).expect_err("the key has no write yet");
            self.few.insert(at, (key, write));
            return;
        }
        self.spill();
        // Formulas are looked for when the transaction commits, so they all lie in the tree.
        if self.tree.len() >= RUNS_FROM && !is_formula {
            let run = self.runs.entry(place(key.index, key.slot)).or_default();
            if run.last().is_none_or(|(last, _)| last.bytes < key.bytes) {
                run.push((key, write));
                self.run_len += 1;
                return;
            }
        }
        self.formula_count += usize::from(is_formula);
        let before = self.tree.insert(key, write);
        assert!(before.is_none(), "the key has no write yet");
    }

    /// They are not few any more.
    fn spill(&mut self) {
        self.tree.extend(self.few.drain(..));
    }

    /// Whether there is a write to a key from `low` to `high`, both included, of one bucket.
    pub fn has_between(&self, low: &Key, high: &Key) -> bool {
        let from = self.few.partition_point(|(key, _)| key < low);
        if self.few.get(from).is_some_and(|(key, _)| key <= high) {
            return true;
        }
        let run = self.runs.get(&place(low.index, low.slot));
        let in_run = run.is_some_and(|run| {
            let from = run.partition_point(|(key, _)| key.bytes < low.bytes);
            let first = run.get(from);
            first.is_some_and(|(key, _)| key.bytes <= high.bytes)
        });
        in_run || self.tree.range(low..=high).next().is_some()
    }

    /// Adds inserts to ascending keys of one bucket that have no write.
    pub fn add_rows(&mut self, index: IndexId, slot: Slot, rows: &[NewRow<'_>]) {
        let Some(first) = rows.first() else {
            return;
        };
        self.spill();
        let entry = |row: &NewRow<'_>| {
            let key = Key::new(index, slot, row.key.to_vec());
            (key, Write::Insert(row.row.to_vec()))
        };
        let run = self.runs.entry(place(index, slot)).or_default();
        let behind = run
            .last()
            .is_none_or(|(last, _)| last.bytes.as_slice() < first.key);
        if behind {
            run.extend(rows.iter().map(entry));
            self.run_len += rows.len();
        } else {
            self.tree.extend(rows.iter().map(entry));
        }
    }

    /// Takes out the write of a key. A bucket's run from which a write is taken, not its last one,
    /// moves into the tree: a transaction that changes loaded rows changes many.
    pub fn remove(&mut self, key: &Key) -> Option<Write> {
        let write = match self.find_few(key) {
            Ok(at) => self.few.remove(at).1,
            Err(_) => self.remove_of_many(key)?,
        };
        self.formula_count -= usize::from(matches!(write, Write::Formula(_)));
        Some(write)
    }

    fn remove_of_many(&mut self, key: &Key) -> Option<Write> {
        let place = place(key.index, key.slot);
        if let Some(run) = self.runs.get_mut(&place)
            && let Some((_, write)) = run.pop_if(|(last, _)| last == key)
        {
            self.run_len -= 1;
            if run.is_empty() {
                self.runs.remove(&place);
            }
            return Some(write);
        }
        if self
            .runs
            .get(&place)
            .is_some_and(|run| find(run, key).is_some())
        {
            let run = self.runs.remove(&place).expect("just seen");
            self.run_len -= run.len();
            self.tree.extend(run);
        }
        self.tree.remove(key)
    }

    /// Puts back a write that was changed. Its key must have none.
    pub fn put_back(&mut self, key: Key, write: Write) {
        if self.tree.is_empty() && self.run_len == 0 {
            return self.add(key, write);
        }
        self.formula_count += usize::from(matches!(write, Write::Formula(_)));
        let before = self.tree.insert(key, write);
        assert!(before.is_none(), "it was taken out");
    }

    /// All formulas, in key order.
    pub fn formulas(&self) -> impl Iterator<Item = (&Key, &Write)> {
        let formula = |(_, write): &(&Key, &Write)| matches!(write, Write::Formula(_));
        let all = few_of(&self.few).chain(&self.tree).filter(formula);
        all.take(self.formula_count)
    }

    /// Writes in key order from `from` on among which all formulas are; none if there are no
    /// formulas.
    pub fn formulas_from(&self, from: Option<Key>) -> impl Iterator<Item = (&Key, &Write)> {
        let from = from.unwrap_or_else(|| Key::new(IndexId(0), Slot(0), Vec::new()));
        let tree = match self.formula_count {
            0 => btree_map::Range::default(),
            _ => self.tree.range(&from..),
        };
        let few = match self.formula_count {
            0 => &[][..],
            _ => &self.few[self.few.partition_point(|(key, _)| *key < from)..],
        };
        few_of(few).chain(tree)
    }

    /// All keys and writes, those of runs last.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Write)> {
        let runs = self.runs.values().flatten();
        let runs = runs.map(|(key, write)| (key, write));
        few_of(&self.few).chain(&self.tree).chain(runs)
    }

    /// The buckets of `index` that have writes; some may come twice. Takes a search per bucket.
    pub fn slots(&self, index: IndexId) -> impl Iterator<Item = Slot> {
        let few = self.few.iter().map(|(key, _)| key);
        let few = few
            .filter(move |key| key.index == index)
            .map(|key| key.slot);
        let mut from = Slot(0);
        let tree = core::iter::from_fn(move || {
            let low = Key::new(index, from, Vec::new());
            let high = Key::new(index, Slot(SLOT_COUNT), Vec::new());
            let (key, _) = self.tree.range(low..high).next()?;
            from = Slot(key.slot.0 + 1);
            Some(key.slot)
        });
        let places = place(index, Slot(0))..place(index, Slot(SLOT_COUNT));
        let runs = self.runs.range(places);
        let runs = runs.map(|(place, _)| Slot(*place as u16));
        few.chain(tree).chain(runs)
    }

    /// The writes of one bucket from `low` up to `high` (excluded), in key order or, if `reverse`,
    /// against it.
    pub fn range(&self, low: Key, high: Key, reverse: bool) -> Range<'_> {
        let run = match self.few.is_empty() {
            true => self.runs.get(&place(low.index, low.slot)),
            false => Some(&self.few),
        };
        let run = run.map_or(&[][..], |run| {
            let from = run.partition_point(|(key, _)| *key < low);
            let to = run.partition_point(|(key, _)| *key < high);
            &run[from..to.max(from)]
        });
        let mut range = Range {
            tree: self.tree.range(low..high),
            run,
            reverse,
            ahead: None,
        };
        range.ahead = range.step_tree();
        range
    }

    /// Empties the write set, for a caller that takes write by write.
    pub fn drain(&mut self) -> Drain {
        let all = core::mem::take(self);
        Drain {
            tree: all.tree,
            runs: all.runs,
            run: all.few.into_iter(),
        }
    }

    /// Empties it into a list in key order. [`WriteSet::reuse`] gives the memory of a short one
    /// back.
    pub fn take(&mut self) -> Writes {
        self.formula_count = 0;
        if self.tree.is_empty() && self.run_len == 0 {
            return core::mem::take(&mut self.few);
        }
        let mut all = Writes::with_capacity(self.tree.len() + self.run_len);
        let mut tree = core::mem::take(&mut self.tree).into_iter().peekable();
        self.run_len = 0;
        for write in core::mem::take(&mut self.runs).into_values().flatten() {
            while let Some(before) = tree.next_if(|(key, _)| *key < write.0) {
                all.push(before);
            }
            all.push(write);
        }
        all.extend(tree);
        all
    }

    /// Takes the memory of a list that came from [`WriteSet::take`], unless there is some.
    pub fn reuse(&mut self, mut taken: Writes) {
        if self.few.capacity() == 0 && taken.capacity() <= FEW_MAX {
            taken.clear();
            self.few = taken;
        }
    }

    /// Empties the write set; a short list keeps its memory.
    pub fn clear(&mut self) {
        self.few.clear();
        self.tree.clear();
        self.runs.clear();
        (self.run_len, self.formula_count) = (0, 0);
    }
}

/// Entries of a list as those of a tree.
fn few_of(few: &[(Key, Write)]) -> impl Iterator<Item = (&Key, &Write)> {
    few.iter().map(|(key, write)| (key, write))
}

/// Rest of a write set whose writes are taken one by one, in key order.
#[derive(Debug)]
pub struct Drain {
    tree: BTreeMap<Key, Write>,
    runs: BTreeMap<u64, Run>,
    /// The rest of the run whose turn it is, or of a short list.
    run: vec::IntoIter<(Key, Write)>,
}

impl Drain {
    /// The write of a key that was not taken yet.
    pub fn get(&self, key: &Key) -> Option<&Write> {
        if let Some(write) = self.tree.get(key) {
            return Some(write);
        }
        let in_run = |run: &[(Key, Write)]| run.binary_search_by(|(other, _)| other.cmp(key));
        let run = self.run.as_slice();
        if let Ok(at) = in_run(run) {
            return Some(&run[at].1);
        }
        let run = self.runs.get(&place(key.index, key.slot))?;
        in_run(run).ok().map(|at| &run[at].1)
    }

    /// Takes the rest, to be freed: a tree and lists.
    pub fn into_parts(self) -> (BTreeMap<Key, Write>, impl Iterator<Item = Writes>) {
        let rest: Run = self.run.collect();
        (self.tree, self.runs.into_values().chain([rest]))
    }
}

impl Iterator for Drain {
    type Item = (Key, Write);

    fn next(&mut self) -> Option<(Key, Write)> {
        while self.run.as_slice().is_empty()
            && let Some((_, run)) = self.runs.pop_first()
        {
            self.run = run.into_iter();
        }
        let of_run = self.run.as_slice().first();
        match (self.tree.first_key_value(), of_run) {
            (Some((before, _)), Some((key, _))) if before < key => self.tree.pop_first(),
            (Some(_), None) => self.tree.pop_first(),
            (_, Some(_)) => self.run.next(),
            (None, None) => None,
        }
    }
}

/// A bucket as one number that orders like the pair.
#[inline]
fn place(index: IndexId, slot: Slot) -> u64 {
    (u64::from(index.0) << 16) | u64::from(slot.0)
}

fn find(run: &Run, key: &Key) -> Option<usize> {
    let last = run.last()?;
    if last.0.bytes < key.bytes {
        return None;
    }
    run.binary_search_by(|(other, _)| other.bytes.cmp(&key.bytes))
        .ok()
}

/// See [`WriteSet::range`].
pub struct Range<'a> {
    tree: btree_map::Range<'a, Key, Write>,
    run: &'a [(Key, Write)],
    reverse: bool,
    /// The next entry of the tree.
    ahead: Option<(&'a Key, &'a Write)>,
}

impl<'a> Range<'a> {
    fn step_tree(&mut self) -> Option<(&'a Key, &'a Write)> {
        match self.reverse {
            true => self.tree.next_back(),
            false => self.tree.next(),
        }
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a Key, &'a Write);

    fn next(&mut self) -> Option<Self::Item> {
        let of_run = match self.reverse {
            true => self.run.split_last(),
            false => self.run.split_first(),
        };
        let from_tree = match (self.ahead, of_run) {
            (None, None) => return None,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((key, _)), Some(((other, _), _))) => {
                let first = if self.reverse {
                    Ordering::Greater
                } else {
                    Ordering::Less
                };
                key.cmp(other) == first
            }
        };
        if from_tree {
            let next = self.step_tree();
            return core::mem::replace(&mut self.ahead, next);
        }
        let ((key, write), rest) = of_run?;
        self.run = rest;
        Some((key, write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;

    fn key(slot: u16, name: u8) -> Key {
        Key::new(IndexId(1), Slot(slot), vec![name])
    }

    /// Random changes of a write set and of a plain ordered map.
    #[test]
    fn it_is_an_ordered_map() {
        for seed in 0..50 {
            let mut prng = Prng::new(seed);
            let (mut writes, mut model) = (WriteSet::default(), BTreeMap::new());
            let mut in_runs = 0;
            for round in 0..600u64 {
                let slot = prng.below(3) as u16;
                // Ascending at first, anywhere later.
                let name = match prng.below(4) {
                    0 => prng.below(250) as u8,
                    _ => (round / 3) as u8,
                };
                let (key, write) = (key(slot, name), Write::Put(vec![round as u8]));
                match writes.get(&key) {
                    Some(found) => {
                        assert_eq!(Some(found), model.get(&key));
                        assert_eq!(writes.remove(&key), model.remove(&key));
                        if prng.below(3) > 0 {
                            writes.put_back(key.clone(), write.clone());
                            model.insert(key, write);
                        }
                    }
                    None if prng.below(4) == 0 => {
                        // That key and the free ones behind it.
                        let names: Vec<[u8; 1]> = (name..=name.saturating_add(3))
                            .map(|name| [name])
                            .take_while(|name| !model.contains_key(&self::key(slot, name[0])))
                            .collect();
                        let last = self::key(slot, names.last().expect("the first is free")[0]);
                        assert!(!writes.has_between(&key, &last));
                        let row = [round as u8];
                        let new = |key| NewRow {
                            slot: Slot(slot),
                            key,
                            row: &row,
                        };
                        let rows: Vec<NewRow<'_>> = names.iter().map(|name| new(name)).collect();
                        writes.add_rows(IndexId(1), Slot(slot), &rows);
                        let insert = Write::Insert(row.to_vec());
                        model.extend(
                            names
                                .iter()
                                .map(|n| (self::key(slot, n[0]), insert.clone())),
                        );
                        assert!(writes.has_between(&key, &last));
                    }
                    None => {
                        assert!(!model.contains_key(&key));
                        writes.add(key.clone(), write.clone());
                        model.insert(key, write);
                    }
                }
                assert_eq!(writes.len(), model.len());
                in_runs = in_runs.max(writes.run_len);
                let (low, high) = (prng.below(250) as u8, prng.below(250) as u8);
                let (low, high) = (
                    self::key(slot, low.min(high)),
                    self::key(slot, high.max(low)),
                );
                let expected = || model.range(low.clone()..high.clone());
                let forward = writes.range(low.clone(), high.clone(), false);
                assert!(forward.eq(expected()));
                let backward = writes.range(low.clone(), high.clone(), true);
                assert!(backward.eq(expected().rev()));
            }
            assert!(in_runs > 5, "some lie in runs");
            let mut slots: Vec<Slot> = writes.slots(IndexId(1)).collect();
            slots.dedup();
            assert!(slots.len() >= 3);
            assert_eq!(writes.formulas().count(), 0);
            if seed % 2 == 0 {
                assert!(writes.take().into_iter().eq(model));
            } else {
                assert!(writes.drain().eq(model));
            }
            assert!(writes.is_empty() && writes.iter().next().is_none());
        }
    }

    #[test]
    fn a_short_list_keeps_its_memory() {
        let mut writes = WriteSet::default();
        for round in 0..3 {
            for name in [5, 3, 9, 1] {
                writes.add(key(0, name), Write::Delete);
            }
            let first = core::ptr::from_ref(&writes.few[0]);
            let taken = writes.take();
            let names: Vec<u8> = taken.iter().map(|(key, _)| key.bytes[0]).collect();
            assert_eq!(names, [1, 3, 5, 9], "round {round}");
            writes.reuse(taken);
            writes.add(key(0, 7), Write::Delete);
            assert_eq!(core::ptr::from_ref(&writes.few[0]), first);
            writes.clear();
        }
    }

    /// With any number of writes, each is found until it is taken, formulas first.
    #[test]
    fn what_is_left_is_found() {
        for count in [3, FEW_MAX, FEW_MAX + 1, RUNS_FROM + 50] {
            let mut writes = WriteSet::default();
            let formula = || Write::Formula(store::Formula(Vec::new()));
            for name in 0..count {
                let write = match name % 3 {
                    0 => formula(),
                    _ => Write::Delete,
                };
                writes.add(key(1, name as u8), write);
            }
            let formulas = count.div_ceil(3);
            assert_eq!(writes.formulas().count(), formulas);
            let behind = writes.formulas_from(Some(key(1, 1)));
            let behind = behind.filter(|(_, write)| **write == formula());
            assert_eq!(behind.count(), formulas - 1);
            let mut rest = writes.drain();
            for name in 0..count {
                let left = |name: usize| rest.get(&key(1, name as u8)).is_some();
                assert!((0..count).all(|other| left(other) == (other >= name)));
                assert_eq!(
                    rest.next().map(|(key, _)| key.bytes),
                    Some(vec![name as u8])
                );
            }
            assert!(rest.next().is_none());
        }
    }
}
