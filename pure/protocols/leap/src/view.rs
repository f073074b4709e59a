//! A row as a transaction sees it: the committed version under its own write.

use alloc::collections::BTreeMap;
use alloc::vec::{self, Vec};
use base::{IndexId, Key, Position, SLOT_COUNT, Slot, Ts};
use core::ops::RangeBounds;
use store::{Store, Write};
use txn::Installed;

/// Writes up to which a transaction is small.
const SMALL_MAX: usize = 32;

/// Writes of one transaction, one per key: ascending in `few`, or, when there are many, all in
/// `many`. Most transactions write a few rows, and a list keeps its memory for the next one.
#[derive(Debug, Default)]
pub(crate) struct WriteSet {
    few: Vec<(Key, Write)>,
    many: BTreeMap<Key, Write>,
    formula_count: usize,
}

impl WriteSet {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn find(&self, key: &Key) -> Result<usize, usize> {
        self.few.binary_search_by(|(other, _)| other.cmp(key))
    }

    #[inline]
    pub(crate) fn get(&self, key: &Key) -> Option<&Write> {
        if self.many.is_empty() {
            return self.find(key).ok().map(|at| &self.few[at].1);
        }
        self.many.get(key)
    }

    /// Adds a write to a key that has none.
    pub(crate) fn add(&mut self, key: Key, write: Write) {
        self.formula_count += usize::from(matches!(write, Write::Formula(_)));
        if self.many.is_empty() && self.few.len() < SMALL_MAX {
            let at = self.find(&key).expect_err("the key has no write yet");
            self.few.insert(at, (key, write));
            return;
        }
        self.many.extend(self.few.drain(..));
        let before = self.many.insert(key, write);
        assert!(before.is_none(), "the key has no write yet");
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Write> {
        let write = match self.find(key) {
            Ok(at) => self.few.remove(at).1,
            Err(_) => self.many.remove(key)?,
        };
        self.formula_count -= usize::from(matches!(write, Write::Formula(_)));
        Some(write)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Write)> {
        let few = self.few.iter().map(|(key, write)| (key, write));
        few.chain(self.many.iter())
    }

    /// The formulas among them.
    pub(crate) fn formulas(&self) -> impl Iterator<Item = (&Key, &Write)> {
        self.iter()
            .filter(|(_, write)| matches!(write, Write::Formula(_)))
            .take(self.formula_count)
    }

    /// Writes from `from` on, ascending, among which all formulas are; none if there are no
    /// formulas.
    pub(crate) fn formulas_from(&self, from: &Key) -> impl Iterator<Item = (&Key, &Write)> {
        let few = self.few.iter().filter(move |(key, _)| key >= from);
        let few = few.map(|(key, write)| (key, write));
        let most = if self.formula_count > 0 {
            usize::MAX
        } else {
            0
        };
        few.chain(self.many.range(from..)).take(most)
    }

    /// The buckets of `index` that have writes; some may come twice. Takes a search per bucket.
    pub(crate) fn slots(&self, index: IndexId) -> impl Iterator<Item = Slot> {
        let few = self.few.iter().map(|(key, _)| key);
        let few = few.filter(move |key| key.index == index);
        let mut from = Slot(0);
        let many = core::iter::from_fn(move || {
            let low = Key::new(index, from, Vec::new());
            let high = Key::new(index, Slot(SLOT_COUNT), Vec::new());
            let (key, _) = self.many.range(low..high).next()?;
            from = Slot(key.slot.0 + 1);
            Some(key.slot)
        });
        few.map(|key| key.slot).chain(many)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let few = self.few.iter().map(|(key, _)| key);
        few.chain(self.many.keys())
    }

    /// The keys in `range`, ascending.
    pub(crate) fn keys_in<R: RangeBounds<Key> + Clone>(
        &self,
        range: R,
    ) -> impl DoubleEndedIterator<Item = &Key> {
        let many = self.many.range(range.clone()).map(|(key, _)| key);
        let few = self.few.iter().map(|(key, _)| key);
        few.filter(move |key| range.contains(key)).chain(many)
    }

    /// Empties it into a list, ascending.
    pub(crate) fn take(&mut self) -> Vec<(Key, Write)> {
        self.formula_count = 0;
        if self.many.is_empty() {
            return core::mem::take(&mut self.few);
        }
        core::mem::take(&mut self.many).into_iter().collect()
    }

    /// Empties it. The list that was taken out of it, if there is one, lends its memory again.
    pub(crate) fn clear(&mut self, taken: Option<Vec<(Key, Write)>>) {
        if let Some(taken) = taken.filter(|taken| taken.len() <= SMALL_MAX) {
            self.few = taken;
        }
        self.few.clear();
        self.many.clear();
        self.formula_count = 0;
    }

    /// Empties it, to be taken write by write.
    pub(crate) fn drain(&mut self) -> Drain {
        self.formula_count = 0;
        let many = core::mem::take(&mut self.many);
        let few = core::mem::take(&mut self.few).into_iter();
        Drain { few, many }
    }
}

/// What is left of a write set whose writes are taken one by one, ascending.
#[derive(Debug)]
pub(crate) struct Drain {
    few: vec::IntoIter<(Key, Write)>,
    many: BTreeMap<Key, Write>,
}

impl Drain {
    /// All that is left.
    pub(crate) fn into_parts(self) -> (BTreeMap<Key, Write>, Vec<(Key, Write)>) {
        (self.many, self.few.collect())
    }

    /// What becomes of a row, if that was not taken yet.
    pub(crate) fn get(&self, key: &Key) -> Option<&Write> {
        let mut few = self.few.as_slice().iter();
        let found = few.find(|(other, _)| other == key).map(|(_, write)| write);
        found.or_else(|| self.many.get(key))
    }
}

impl Iterator for Drain {
    type Item = (Key, Write);

    fn next(&mut self) -> Option<(Key, Write)> {
        self.few.next().or_else(|| self.many.pop_first())
    }
}

/// What was found under a key.
pub(crate) struct Seen<'a> {
    pub(crate) row: Option<&'a [u8]>,
    /// Commit timestamp of the version; zero if it is absent or the own write.
    pub(crate) version: Ts,
    /// Position that an answer built from it waits for.
    pub(crate) wait: Position,
}

/// The version at `at`, under the own write if there is one. `folded` holds the result of an own
/// formula.
pub(crate) fn look<'a>(
    writes: Option<&'a WriteSet>,
    store: &'a Store,
    installed: &Installed,
    key: &Key,
    at: Ts,
    folded: &'a mut Vec<u8>,
) -> Seen<'a> {
    let committed = store.get(key, at);
    let own = writes.and_then(|writes| writes.get(key));
    let wait = match (&committed, own) {
        (Some(version), Some(Write::Formula(_)) | None) => installed.of(version.commit_ts),
        (None, None) => installed.all(),
        (_, Some(_)) => Position(0),
    };
    let (row, version) = match own {
        None => match committed {
            Some(version) => (Some(version.value), version.commit_ts),
            None => (None, Ts::ZERO),
        },
        Some(Write::Insert(row) | Write::Put(row)) => (Some(row.as_slice()), Ts::ZERO),
        Some(Write::Delete) => (None, Ts::ZERO),
        Some(Write::Formula(formula)) => {
            // A snapshot may be older than the row that the formula was checked against.
            let newest = || store.get(key, Ts::MAX);
            let base = committed
                .or_else(newest)
                .expect("a locked row with a formula is present");
            folded.clear();
            if formula.fold(base.value, folded).is_err() {
                folded.clear();
                let newest = newest().expect("a locked row with a formula is present");
                formula
                    .fold(newest.value, folded)
                    .expect("it was folded before");
            }
            (Some(folded.as_slice()), Ts::ZERO)
        }
    };
    Seen { row, version, wait }
}
