//! What a transaction writes on one shard: one write per key, in key order.
//!
//! Loads write millions of new rows whose keys ascend in each bucket as a rule. Beyond
//! [`RUNS_FROM`] writes, such rows are appended to a run per bucket; whatever comes out of order,
//! or to a row written before, goes into a tree. Readers see both as one.

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::{self, Vec};
use base::{IndexId, Key, SLOT_COUNT, Slot};
use core::cmp::Ordering;
use journal::Writes;
use store::Write;
use txn::rows::NewRow;

/// Writes of small transactions stay in the tree, which costs less for a few.
const RUNS_FROM: usize = 64;

type Run = Vec<(Key, Write)>;

/// The writes; a key is in the tree or in its bucket's run.
#[derive(Debug, Default)]
pub(crate) struct WriteSet {
    tree: BTreeMap<Key, Write>,
    /// By [`place`].
    runs: BTreeMap<u64, Run>,
    /// Writes in the runs.
    run_len: usize,
    /// Formulas, all of them in the tree.
    formula_count: usize,
}

impl WriteSet {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.tree.is_empty() && self.run_len == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.tree.len() + self.run_len
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Write> {
        if let Some(write) = self.tree.get(key) {
            return Some(write);
        }
        let run = self.runs.get(&place(key.index, key.slot))?;
        find(run, key).map(|at| &run[at].1)
    }

    /// Adds a write to a key that has none.
    pub(crate) fn add_first(&mut self, key: Key, write: Write) {
        // Formulas are looked for when the transaction commits, so they all lie in the tree.
        let in_runs = self.tree.len() >= RUNS_FROM && !matches!(write, Write::Formula(_));
        if in_runs {
            let run = self.runs.entry(place(key.index, key.slot)).or_default();
            if run.last().is_none_or(|(last, _)| last.bytes < key.bytes) {
                run.push((key, write));
                self.run_len += 1;
                return;
            }
        }
        self.formula_count += usize::from(matches!(write, Write::Formula(_)));
        let before = self.tree.insert(key, write);
        assert!(before.is_none(), "the key has no write yet");
    }

    /// Whether there is a write to a key from `low` to `high`, both included, of one bucket.
    pub(crate) fn has_between(&self, low: &Key, high: &Key) -> bool {
        let run = self.runs.get(&place(low.index, low.slot));
        let in_run = run.is_some_and(|run| {
            let from = run.partition_point(|(key, _)| key.bytes < low.bytes);
            let first = run.get(from);
            first.is_some_and(|(key, _)| key.bytes <= high.bytes)
        });
        in_run || self.tree.range(low..=high).next().is_some()
    }

    /// Adds inserts to ascending keys of one bucket that have no write.
    pub(crate) fn add_rows(&mut self, index: IndexId, slot: Slot, rows: &[NewRow<'_>]) {
        let Some(first) = rows.first() else {
            return;
        };
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

    /// Takes the write of a key out. A bucket's run from which a write is taken moves into the
    /// tree: whoever changes loaded rows changes many.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Write> {
        let place = place(key.index, key.slot);
        if self
            .runs
            .get(&place)
            .is_some_and(|run| find(run, key).is_some())
        {
            let run = self.runs.remove(&place).expect("just seen");
            self.run_len -= run.len();
            self.tree.extend(run);
        }
        let write = self.tree.remove(key)?;
        self.formula_count -= usize::from(matches!(write, Write::Formula(_)));
        Some(write)
    }

    /// Puts a write that was changed back, to a key that has none now.
    pub(crate) fn put_back(&mut self, key: Key, write: Write) {
        self.formula_count += usize::from(matches!(write, Write::Formula(_)));
        let before = self.tree.insert(key, write);
        assert!(before.is_none(), "it was taken out");
    }

    /// All formulas, in key order.
    pub(crate) fn formulas(&self) -> impl Iterator<Item = (&Key, &Write)> {
        let formula = |(_, write): &(&Key, &Write)| matches!(write, Write::Formula(_));
        let all = self.tree.iter().filter(formula);
        all.take(self.formula_count)
    }

    /// Writes in key order from `from` on among which all formulas are; none if there are no
    /// formulas.
    pub(crate) fn formulas_from(&self, from: Option<Key>) -> btree_map::Range<'_, Key, Write> {
        let from = from.unwrap_or_else(|| Key::new(IndexId(0), Slot(0), Vec::new()));
        match self.formula_count {
            0 => btree_map::Range::default(),
            _ => self.tree.range(from..),
        }
    }

    /// All keys and writes, those of the tree first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Write)> {
        let runs = self.runs.values().flatten();
        self.tree
            .iter()
            .chain(runs.map(|(key, write)| (key, write)))
    }

    /// The buckets of `index` that have writes; some may come twice. Takes a search per bucket.
    pub(crate) fn slots(&self, index: IndexId) -> impl Iterator<Item = Slot> {
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
        tree.chain(runs.map(|(place, _)| Slot(*place as u16)))
    }

    /// The writes of one bucket from `low` up to `high` (excluded), in key order or, if `reverse`,
    /// against it.
    pub(crate) fn range(&self, low: Key, high: Key, reverse: bool) -> Range<'_> {
        let run = self.runs.get(&place(low.index, low.slot));
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

    /// Empties it, to be taken write by write.
    pub(crate) fn drain(&mut self) -> Drain {
        let all = core::mem::take(self);
        Drain {
            tree: all.tree,
            runs: all.runs,
            run: Vec::new().into_iter(),
        }
    }

    /// Empties it into a list in key order.
    pub(crate) fn take(&mut self) -> Writes {
        self.formula_count = 0;
        let tree = core::mem::take(&mut self.tree);
        if self.run_len == 0 {
            self.runs.clear();
            return tree.into_iter().collect();
        }
        let mut all = Writes::with_capacity(tree.len() + self.run_len);
        self.run_len = 0;
        let mut tree = tree.into_iter().peekable();
        for write in core::mem::take(&mut self.runs).into_values().flatten() {
            while let Some(before) = tree.next_if(|(key, _)| *key < write.0) {
                all.push(before);
            }
            all.push(write);
        }
        all.extend(tree);
        all
    }
}

/// What is left of a write set whose writes are taken one by one, in key order.
#[derive(Debug)]
pub(crate) struct Drain {
    tree: BTreeMap<Key, Write>,
    runs: BTreeMap<u64, Run>,
    /// The rest of the run whose turn it is.
    run: vec::IntoIter<(Key, Write)>,
}

impl Drain {
    /// The write of a key, if it is a formula and was not taken yet.
    pub(crate) fn formula(&self, key: &Key) -> Option<&Write> {
        self.tree.get(key)
    }

    /// All that is left.
    pub(crate) fn into_parts(self) -> (BTreeMap<Key, Write>, impl Iterator<Item = Run>) {
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
pub(crate) struct Range<'a> {
    tree: btree_map::Range<'a, Key, Write>,
    run: &'a [(Key, Write)],
    reverse: bool,
    /// The next one of the tree.
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

    /// Random changes beside a plain ordered map.
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
                        // It and the free ones behind it.
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
                        writes.add_first(key.clone(), write.clone());
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
}
