//! The rows that one transaction has locked exclusively, if they are many: sorted runs instead of
//! an entry per row.
//!
//! A load locks millions of new rows that only it wants, in each bucket mostly in key order.
//! A run takes 32 bytes per row, is appended to without a search, and is given up as a whole.
//!
//! A row is held in a run or in its entry of the table, never in both. A request that waits for a
//! row of a run waits in the row's entry, which then has no holder.

use super::point::PointKey;
use super::table::{Holder, Item, LockTable};
use super::{Claim, LockMode, Priority};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, KeyRange, Planted, Slot, TxnId, is_planted};
use core::ops::ControlFlow;

/// The answer to [`LockTable::take_rows`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// All rows are locked. The transaction held none of them before, so it has written none.
    New,
    /// The transaction holds all rows already, as part of something larger.
    Covered,
    /// Nothing was locked: each row is to be asked for.
    No,
}

impl LockTable {
    /// Locks rows of one bucket exclusively if none is held, wanted or in a locked range; `keys`
    /// ascend. Otherwise locks none of them, and each one is to be asked for
    /// ([`LockTable::acquire`]).
    ///
    /// Cost: some searches for all rows together, and 32 bytes per row.
    pub fn take_rows(
        &mut self,
        txn: Priority,
        index: IndexId,
        slot: Slot,
        keys: &[&[u8]],
    ) -> Taken {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Taken::New;
        };
        self.finish_leaving(txn.txn);
        match self.surroundings(txn.txn, index, slot, first, last) {
            Surroundings::Free => {}
            Surroundings::Own => return Taken::Covered,
            Surroundings::Others => return Taken::No,
        }
        if self
            .owners
            .get(&txn.txn)
            .is_some_and(|owner| !owner.waiting.is_empty())
        {
            return Taken::No;
        }
        if !self.points.is_empty() {
            let point = |key: &[u8]| PointKey::new(index, slot, key);
            let between = self.points.range(point(first)..=point(last)).next();
            if between.is_some() && keys.iter().any(|key| self.points.contains_key(&point(key))) {
                return Taken::No;
            }
        }
        let holder = Holder {
            txn,
            claim: Claim::from(LockMode::Exclusive),
            ordered: false,
        };
        match self.runs.append(holder, index, slot, keys) {
            Appended::No => return Taken::No,
            Appended::ToOwn => {}
            Appended::AsNew => self.owner(txn.txn).runs.push(Place::new(index, slot)),
        }
        Taken::New
    }

    /// What is held or wanted, besides single rows, between `first` and `last`.
    fn surroundings(
        &self,
        txn: TxnId,
        index: IndexId,
        slot: Slot,
        first: &[u8],
        last: &[u8],
    ) -> Surroundings {
        if is_planted(Planted::InsertPastRanges) {
            return Surroundings::Free;
        }
        if !self.wide_waiters.is_empty() {
            return Surroundings::Others;
        }
        let exclusive = |holder: &Holder| holder.claim.mode == LockMode::Exclusive;
        let mut covered = false;
        for holder in &self.shard {
            if holder.txn.txn != txn {
                return Surroundings::Others;
            }
            covered |= exclusive(holder);
        }
        if !self.ranges.is_empty() {
            for place in [(index, None), (index, Some(slot))] {
                for lock in self.ranges.get(&place).into_iter().flatten() {
                    let range = &lock.range;
                    let all = range.contains(first) && range.contains(last);
                    let before = range.high.as_deref().is_some_and(|high| high <= first);
                    let apart = before || range.low.as_slice() > last;
                    if lock.holder.txn.txn != txn && !apart {
                        return Surroundings::Others;
                    }
                    covered |= all && lock.holder.txn.txn == txn && exclusive(&lock.holder);
                }
            }
        }
        match covered {
            true => Surroundings::Own,
            false => Surroundings::Free,
        }
    }
}

/// Locks for more than a row around some rows.
enum Surroundings {
    /// No lock that matters.
    Free,
    /// The transaction itself holds all of it exclusively.
    Own,
    /// Other transactions hold or want something.
    Others,
}

/// See [`Runs::append`].
enum Appended {
    No,
    ToOwn,
    AsNew,
}

/// A bucket of an index as one number, ordered like the pair: a load looks places up for each row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place(u64);

impl Place {
    #[inline]
    pub(super) fn new(index: IndexId, slot: Slot) -> Place {
        Place((u64::from(index.0) << 16) | u64::from(slot.0))
    }
    pub(super) fn index(self) -> IndexId {
        IndexId((self.0 >> 16) as u32)
    }
    pub(super) fn slot(self) -> Slot {
        Slot(self.0 as u16)
    }
}

/// Rows of one bucket that one transaction holds exclusively.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) holder: Holder,
    /// Rows, ascending.
    pub(super) rows: Vec<PointKey>,
}

impl Run {
    /// Whether a row may be appended.
    #[inline]
    fn ends_before(&self, key: &[u8]) -> bool {
        self.rows.last().is_some_and(|last| last.key() < key)
    }

    #[inline]
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

/// Where a requested row lies.
pub(super) enum Found<'a> {
    /// In a run, of the transaction or of another one.
    Held {
        /// Whether the run is the transaction's.
        own: bool,
    },
    /// In no run.
    Free {
        /// Whether the transaction has a run in the bucket.
        has_run: bool,
        /// The run to which the row can be appended.
        open: Option<&'a mut Run>,
    },
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

    /// The holder of this row, if the row lies in a run.
    #[inline]
    pub(super) fn holder(&self, point: &PointKey) -> Option<&Holder> {
        if self.places.is_empty() {
            return None;
        }
        let runs = self.places.get(&Place::new(point.index, point.slot))?;
        let found = runs.iter().find(|run| run.contains(point.key()));
        found.map(|run| &run.holder)
    }

    /// Looks a row up for `txn`, which asks for it.
    #[inline]
    pub(super) fn look(&mut self, point: &PointKey, txn: TxnId) -> Found<'_> {
        let (mut has_run, mut open) = (false, None);
        if self.places.is_empty() {
            return Found::Free { has_run, open };
        }
        let place = Place::new(point.index, point.slot);
        for run in self.places.get_mut(&place).into_iter().flatten() {
            let own = run.holder.txn.txn == txn;
            if run.contains(point.key()) {
                return Found::Held { own };
            }
            has_run |= own;
            if own && run.ends_before(point.key()) {
                open = Some(run);
            }
        }
        Found::Free { has_run, open }
    }

    /// Begins a run with a row that is not locked, in a bucket where the transaction has none.
    pub(super) fn begin(&mut self, point: PointKey, holder: Holder) -> Place {
        let place = Place::new(point.index, point.slot);
        let rows = Vec::from([point]);
        self.places
            .entry(place)
            .or_default()
            .push(Run { holder, rows });
        place
    }

    /// Appends rows of one bucket to the run that the transaction has there, or begins one, unless
    /// they lie between or before the rows of runs.
    fn append(&mut self, holder: Holder, index: IndexId, slot: Slot, keys: &[&[u8]]) -> Appended {
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
            return Appended::No;
        };
        let runs = self.places.entry(Place::new(index, slot)).or_default();
        let (mut own, mut free) = (None, true);
        for (at, run) in runs.iter().enumerate() {
            if run.holder.txn.txn == holder.txn.txn {
                own = Some(at);
                free &= run.ends_before(first);
            } else {
                let from = run.rows.partition_point(|row| row.key() < *first);
                free &= run.rows.get(from).is_none_or(|row| row.key() > *last);
            }
        }
        if !free {
            return Appended::No;
        }
        let rows = keys.iter().map(|key| PointKey::new(index, slot, key));
        match own {
            Some(at) => {
                runs[at].rows.extend(rows);
                Appended::ToOwn
            }
            None => {
                let rows = rows.collect();
                runs.push(Run { holder, rows });
                Appended::AsNew
            }
        }
    }

    /// Calls `f` with the holder of every run that has a row in `item`, until it breaks.
    pub(super) fn each(
        &self,
        item: &Item<'_>,
        f: &mut dyn FnMut(&Holder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.places.is_empty() {
            return ControlFlow::Continue(());
        }
        match *item {
            Item::Point { index, slot, key } => {
                let runs = self.places.get(&Place::new(index, slot));
                let mut found = runs.into_iter().flatten().filter(|run| run.contains(key));
                found.try_for_each(|run| f(&run.holder))
            }
            Item::Range { index, slot, range } => {
                let (low, high) = match slot {
                    Some(slot) => (slot, slot),
                    None => (Slot(0), Slot(u16::MAX)),
                };
                let (low, high) = (Place::new(index, low), Place::new(index, high));
                let places = self.places.range(low..=high);
                let runs = places.flat_map(|(_, runs)| runs);
                let mut found = runs.filter(|run| run.meets(range));
                found.try_for_each(|run| f(&run.holder))
            }
            Item::Shard => self.iter().try_for_each(|(_, run)| f(&run.holder)),
        }
    }

    /// How the transaction holds its run at `place`.
    pub(super) fn holder_at(&self, place: Place, txn: TxnId) -> Option<&Holder> {
        let mut runs = self.places.get(&place)?.iter();
        let own = runs.find(|run| run.holder.txn.txn == txn);
        own.map(|run| &run.holder)
    }

    /// Removes one row from the transaction's run. Returns whether it was the last of the run;
    /// `None`: the row is not in the run.
    pub(super) fn remove_row(&mut self, point: &PointKey, txn: TxnId) -> Option<bool> {
        let place = Place::new(point.index, point.slot);
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

    /// Removes at most `rows` rows from the end of the transaction's run at `place`. Returns their
    /// number and the range around them.
    pub(super) fn shorten(&mut self, place: Place, txn: TxnId, rows: usize) -> (usize, KeyRange) {
        let runs = self
            .places
            .get_mut(&place)
            .expect("an owner's run is there");
        let own = |run: &&mut Run| run.holder.txn.txn == txn;
        let run = runs.iter_mut().find(own).expect("an owner's run is there");
        let left = run.rows.len().saturating_sub(rows);
        let mut range = run.range();
        range.low = run.rows[left].key().to_vec();
        let gone = run.rows.len() - left;
        run.rows.truncate(left);
        if left == 0 {
            self.remove(place, txn);
        }
        (gone, range)
    }

    /// Whether the transaction has a run at `place`.
    pub(super) fn has(&self, place: Place, txn: TxnId) -> bool {
        let runs = self.places.get(&place);
        let mut runs = runs.into_iter().flatten();
        runs.any(|run| run.holder.txn.txn == txn)
    }

    /// Removes the transaction's run at `place`.
    fn remove(&mut self, place: Place, txn: TxnId) {
        let runs = self
            .places
            .get_mut(&place)
            .expect("an owner's run is there");
        let own = |run: &Run| run.holder.txn.txn == txn;
        let at = runs.iter().position(own).expect("an owner's run is there");
        runs.swap_remove(at);
        if runs.is_empty() {
            self.places.remove(&place);
        }
    }
}
