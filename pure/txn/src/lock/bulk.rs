//! Rows that one transaction has locked exclusively, many of them: sorted runs instead of an entry
//! per row.
//!
//! A load locks millions of new rows that nobody else asks for, in each bucket mostly in key order.
//! A run takes 32 bytes per row, is appended to without a search, and is given up as a whole.
//!
//! A row is held in a run or in its entry of the table, never in both; who waits for a row of a run
//! waits in the row's entry, which then has no holder.

use super::point::PointKey;
use super::table::{Holder, Item};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, KeyRange, Slot, TxnId};

/// A bucket of a key space.
pub(super) type Place = (IndexId, Slot);

/// Rows of one bucket that one transaction holds exclusively.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) holder: Holder,
    /// Ascending.
    pub(super) rows: Vec<PointKey>,
}

impl Run {
    fn contains(&self, key: &[u8]) -> bool {
        let last = self.rows.last().expect("a run has rows").key();
        last >= key && self.rows.binary_search_by(|row| row.key().cmp(key)).is_ok()
    }

    fn meets(&self, range: &KeyRange) -> bool {
        let from = self.rows.partition_point(|row| row.key() < &range.low[..]);
        let first = self.rows.get(from);
        first.is_some_and(|row| range.contains(row.key()))
    }

    /// The range from the first to the last row.
    pub(super) fn range(&self) -> KeyRange {
        let low = self.rows.first().expect("a run has rows").key().to_vec();
        let mut high = self.rows.last().expect("a run has rows").key().to_vec();
        high.push(0);
        KeyRange {
            low,
            high: Some(high),
        }
    }
}

/// What became of a row that was offered to the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Appended {
    /// It is held; the run is new if `true`.
    Held(bool),
    /// It is not behind the last row of its run.
    Unordered,
}

/// The runs of all transactions.
#[derive(Default, Debug)]
pub(super) struct Runs {
    places: BTreeMap<Place, Vec<Run>>,
}

impl Runs {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All runs, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Place, &Run)> {
        let places = self.places.iter();
        places.flat_map(|(place, runs)| runs.iter().map(move |run| (place, run)))
    }

    /// Who holds this row, if it lies in a run.
    #[inline]
    pub(super) fn holder(&self, point: &PointKey) -> Option<&Holder> {
        if self.places.is_empty() {
            return None;
        }
        let runs = self.places.get(&(point.index, point.slot))?;
        let found = runs.iter().find(|run| run.contains(point.key()));
        found.map(|run| &run.holder)
    }

    /// Adds a row that nobody holds to the run of `holder`, if it comes behind it.
    pub(super) fn append(&mut self, point: PointKey, holder: Holder) -> Appended {
        let runs = self.places.entry((point.index, point.slot)).or_default();
        let own = |run: &&mut Run| run.holder.txn.txn == holder.txn.txn;
        let Some(run) = runs.iter_mut().find(own) else {
            let rows = Vec::from([point]);
            runs.push(Run { holder, rows });
            return Appended::Held(true);
        };
        if run
            .rows
            .last()
            .is_some_and(|last| last.key() >= point.key())
        {
            return Appended::Unordered;
        }
        run.rows.push(point);
        Appended::Held(false)
    }

    /// Calls `f` with the holder of every run that has a row in `item`.
    pub(super) fn each(&self, item: &Item<'_>, f: &mut dyn FnMut(&Holder)) {
        if self.places.is_empty() {
            return;
        }
        match *item {
            Item::Point { index, slot, key } => {
                let runs = self.places.get(&(index, slot)).into_iter().flatten();
                let found = runs.filter(|run| run.contains(key));
                found.for_each(|run| f(&run.holder));
            }
            Item::Range { index, slot, range } => {
                let (low, high) = match slot {
                    Some(slot) => (slot, slot),
                    None => (Slot(0), Slot(u16::MAX)),
                };
                let places = self.places.range((index, low)..=(index, high));
                let runs = places.flat_map(|(_, runs)| runs);
                let found = runs.filter(|run| run.meets(range));
                found.for_each(|run| f(&run.holder));
            }
            Item::Shard => self.iter().for_each(|(_, run)| f(&run.holder)),
        }
    }

    /// Removes one row from the transaction's run, if it lies there; `Some(true)`: that was the last
    /// of the run.
    pub(super) fn remove_row(&mut self, point: &PointKey, txn: TxnId) -> Option<bool> {
        let place = (point.index, point.slot);
        let runs = self.places.get_mut(&place)?;
        let own = |run: &&mut Run| run.holder.txn.txn == txn;
        let run = runs.iter_mut().find(own)?;
        let at = run.rows.binary_search_by(|row| row.key().cmp(point.key()));
        run.rows.remove(at.ok()?);
        let last = run.rows.is_empty();
        if last {
            self.remove(place, txn);
        }
        Some(last)
    }

    /// Removes the transaction's run at `place`.
    pub(super) fn remove(&mut self, place: Place, txn: TxnId) -> Run {
        let runs = self
            .places
            .get_mut(&place)
            .expect("an owner's run is there");
        let own = |run: &Run| run.holder.txn.txn == txn;
        let at = runs.iter().position(own).expect("an owner's run is there");
        let run = runs.swap_remove(at);
        if runs.is_empty() {
            self.places.remove(&place);
        }
        run
    }
}
