//! Rows under timestamps: which promises are open on them, and committed formulas that wait for
//! such a promise below them.
//!
//! ```text
//! T10 promises to add 1 ── open at 10 ───────────────────────> T10 commits at 10: folded, then 12
//! T12 commits an addition of 2 ── answered, waits for T10 ──┘
//! ```
//!
//! So the versions of a row appear in the order of their timestamps (rule A5), although several
//! promises stand on it side by side. Nobody is kept from committing; who reads the row waits for
//! the promises below its timestamp (rule A6).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Planted, Position, Ts, TxnId, is_planted};
use store::Formula;
use txn::bulk::Wanted;
use txn::increment::columns_of;
use txn::{Columns, WriteList};

/// A formula of a committed transaction that waits for promises below it.
#[derive(Clone, Debug)]
pub(crate) struct Unfolded {
    pub(crate) commit_ts: Ts,
    pub(crate) txn: TxnId,
    pub(crate) formula: Formula,
    /// Record of the commit; readers of the row wait for it.
    pub(crate) position: Position,
}

/// See the module. Empty under locks.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Promises by row, with their smallest timestamps.
    open: BTreeMap<Key, Vec<(Ts, TxnId)>>,
    /// Promises of so many writes that their rows are not listed here. Their rows are locked for
    /// them alone.
    large: Vec<TxnId>,
    /// In the order of their timestamps.
    unfolded: BTreeMap<Key, Vec<Unfolded>>,
}

impl Order {
    /// Whether nothing is promised and nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.large.is_empty() && self.unfolded.is_empty()
    }

    pub(crate) fn has_unfolded(&self) -> bool {
        !self.unfolded.is_empty()
    }

    /// A promise of these writes stands from here on.
    pub(crate) fn promise(&mut self, txn: TxnId, at: Ts, redo: &WriteList) {
        if redo.slice_count() > 1 {
            self.large.push(txn);
            return;
        }
        for (key, _) in redo.iter() {
            match self.open.get_mut(key) {
                Some(row) => row.push((at, txn)),
                None => drop(self.open.insert(key.clone(), alloc::vec![(at, txn)])),
            }
        }
    }

    /// A promise is kept or given up.
    pub(crate) fn end(&mut self, txn: TxnId, redo: &WriteList) {
        if redo.slice_count() > 1 {
            self.large.retain(|other| *other != txn);
            return;
        }
        for (key, _) in redo.iter() {
            let row = self.open.get_mut(key).expect("it was promised");
            row.retain(|(_, other)| *other != txn);
            if row.is_empty() {
                self.open.remove(key);
            }
        }
    }

    /// The smallest timestamp at which a promise on the row may commit.
    pub(crate) fn lowest(&self, key: &Key) -> Option<Ts> {
        self.open.get(key)?.iter().map(|(at, _)| *at).min()
    }

    /// Whether no promise and nothing that waits can be on the row.
    pub(crate) fn is_free(&self, key: &Key) -> bool {
        self.large.is_empty() && !self.open.contains_key(key) && !self.unfolded.contains_key(key)
    }

    /// Calls `f` with the promises on the wanted rows, and their rows. Of large promises, with each
    /// whose row is not known.
    pub(crate) fn each_open(&self, wanted: Wanted<'_>, f: &mut dyn FnMut(Ts, TxnId, &Key)) {
        let mut row = |key: &Key, promises: &Vec<(Ts, TxnId)>| {
            promises.iter().for_each(|(at, txn)| f(*at, *txn, key));
        };
        match wanted {
            Wanted::Row(key) => {
                if let Some(promises) = self.open.get(key) {
                    row(key, promises);
                }
            }
            Wanted::Rows(..) => {
                within(&self.open, wanted).for_each(|(key, promises)| row(key, promises));
            }
        }
    }

    /// Promises with many writes.
    pub(crate) fn large(&self) -> &[TxnId] {
        &self.large
    }

    /// Whether a promise may commit on the row below `commit_ts`, so that a formula of that
    /// timestamp waits.
    pub(crate) fn holds_up(&self, key: &Key, commit_ts: Ts) -> bool {
        let waits = self.lowest(key).is_some_and(|lowest| lowest < commit_ts);
        waits && !is_planted(Planted::FormulaFoldsAsTheyCome)
    }

    /// A committed formula waits.
    pub(crate) fn wait(&mut self, key: Key, formula: Unfolded) {
        let row = self.unfolded.entry(key).or_default();
        let at = row.partition_point(|other| other.commit_ts < formula.commit_ts);
        row.insert(at, formula);
    }

    /// The formulas on the row that wait for nothing any more and lie below `end`, in order.
    pub(crate) fn take_free(&mut self, key: &Key, end: Ts) -> Vec<Unfolded> {
        let Some(row) = self.unfolded.get_mut(key) else {
            return Vec::new();
        };
        let lowest = self.open.get(key).map(|row| row.iter().map(|(at, _)| *at));
        let lowest = lowest.and_then(Iterator::min).unwrap_or(Ts::MAX).min(end);
        let free = row.partition_point(|formula| formula.commit_ts < lowest);
        let rest = row.split_off(free);
        let free = core::mem::replace(row, rest);
        if row.is_empty() {
            self.unfolded.remove(key);
        }
        free
    }

    /// The formulas that wait on a row.
    pub(crate) fn unfolded(&self, key: &Key) -> &[Unfolded] {
        self.unfolded.get(key).map_or(&[], Vec::as_slice)
    }

    /// All rows with waiting formulas.
    pub(crate) fn each_unfolded(&self) -> impl Iterator<Item = (&Key, &Unfolded)> {
        let rows = self.unfolded.iter();
        rows.flat_map(|(key, row)| row.iter().map(move |formula| (key, formula)))
    }

    /// The first of the wanted rows on which a formula waits that changes one of these columns, and
    /// has committed at or below `last`.
    pub(crate) fn awaits<'a>(
        &'a self,
        last: Ts,
        wanted: Wanted<'a>,
        columns: Columns,
    ) -> Option<&'a Key> {
        if self.unfolded.is_empty() {
            return None;
        }
        let waits = |row: &[Unfolded]| {
            let mut up_to = row.iter().take_while(|formula| formula.commit_ts <= last);
            up_to.any(|it| columns_of(&it.formula).intersects(columns))
        };
        match wanted {
            Wanted::Row(key) => {
                let (key, row) = self.unfolded.get_key_value(key)?;
                waits(row).then_some(key)
            }
            Wanted::Rows(..) => {
                let mut rows = within(&self.unfolded, wanted);
                rows.find(|(_, row)| waits(row)).map(|(key, _)| key)
            }
        }
    }
}

/// The entries of the wanted rows.
fn within<'a, T>(
    all: &'a BTreeMap<Key, T>,
    wanted: Wanted<'a>,
) -> impl Iterator<Item = (&'a Key, &'a T)> {
    let from = wanted.example();
    let (index, slot) = match wanted {
        Wanted::Row(key) => (key.index, Some(key.slot)),
        Wanted::Rows(index, slot, _) => (index, slot),
    };
    let from = match slot {
        Some(_) => from,
        None => Key::new(index, base::Slot(0), Vec::new()),
    };
    let inside = move |key: &Key| key.index == index && slot.is_none_or(|slot| slot == key.slot);
    let entries = all.range(from..).take_while(move |(key, _)| inside(key));
    entries.filter(move |(key, _)| wanted.has(key))
}
