//! Freeing the locks of a transaction that is over: at once, or in slices if they are many.

use super::point::PointKey;
use super::table::{LockTable, Owner};
use super::wait::OwnedItem;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use base::TxnId;

/// Number of spare owners kept: more than a shard usually has open transactions.
const SPARE_OWNERS: usize = 256;
/// Largest memory, in bytes, that a spare owner keeps for rows.
const SPARE_BYTES: usize = 32 << 10;

impl LockTable {
    /// Frees all that the transaction holds and wants. Waits that end by that are in
    /// [`LockTable::take_events`]. More rows than a slice has are freed by
    /// [`LockTable::release_slice`], call by call.
    pub fn release(&mut self, txn: TxnId) {
        if !self.leaving.is_empty() && self.leaving.contains(&txn) {
            return;
        }
        let Some(mut owner) = self.owners.remove(&txn) else {
            return;
        };
        if owner.points.len() > self.slice_rows || !owner.runs.is_empty() {
            self.leave(txn, owner);
            return;
        }
        if !self.ending.is_empty() {
            self.ending.remove(&txn);
        }
        let crowded = !self.waiters.is_empty();
        let mut freed = Vec::new();
        for arrival in owner.waiting.drain(..) {
            let waiter = self.dequeue(arrival);
            freed.push(waiter.item);
        }
        for point in owner.points.drain() {
            self.release_point(txn, point, crowded, &mut freed);
        }
        self.release_wide(txn, &mut owner, crowded, &mut freed);
        self.keep_spare(owner);
        if !self.waiters.is_empty() {
            self.settle(freed);
        }
    }

    fn release_point(
        &mut self,
        txn: TxnId,
        point: PointKey,
        crowded: bool,
        freed: &mut Vec<OwnedItem>,
    ) {
        let freed_point = crowded.then(|| point.clone());
        let Entry::Occupied(mut entry) = self.points.entry(point) else {
            unreachable!("a held row has an entry")
        };
        let locked = entry.get_mut();
        locked.holders.remove(txn);
        if locked.holders.as_slice().is_empty() && locked.queue.is_empty() {
            entry.remove();
        }
        freed.extend(freed_point.map(OwnedItem::Point));
    }

    /// Frees ranges and the lock of the shard.
    fn release_wide(
        &mut self,
        txn: TxnId,
        owner: &mut Owner,
        crowded: bool,
        freed: &mut Vec<OwnedItem>,
    ) {
        for place in owner.ranges.drain(..) {
            let locks = self
                .ranges
                .get_mut(&place)
                .expect("a held range has an entry");
            locks.retain(|lock| {
                let own = lock.holder.txn.txn == txn;
                if own && crowded {
                    let range = lock.range.clone();
                    freed.push(OwnedItem::Range(place.0, place.1, range));
                }
                !own
            });
            if locks.is_empty() {
                self.ranges.remove(&place);
            }
        }
        if core::mem::take(&mut owner.shard) {
            self.shard.retain(|holder| holder.txn.txn != txn);
            freed.push(OwnedItem::Shard);
        }
    }

    fn keep_spare(&mut self, mut owner: Owner) {
        owner.deaths_since = None;
        if self.spare.len() < SPARE_OWNERS && owner.points.capacity_bytes() <= SPARE_BYTES {
            self.spare.push(owner);
        }
    }

    /// Sets the number of rows of a slice: for tests, whose transactions are small.
    pub fn set_slice(&mut self, rows: usize) {
        self.slice_rows = rows;
    }

    /// The transaction is over: it waits for nothing, and keeps its locks until
    /// [`LockTable::release`]. A request for one of them waits, whatever its age.
    pub fn end(&mut self, txn: TxnId) {
        self.ending.insert(txn);
    }

    /// See [`LockTable::end`].
    #[inline]
    pub(super) fn is_ending(&self, txn: TxnId) -> bool {
        !self.ending.is_empty() && self.ending.contains(&txn)
    }

    /// Frees all but the rows, which go in slices.
    fn leave(&mut self, txn: TxnId, mut owner: Owner) {
        self.ending.insert(txn);
        let mut freed = Vec::new();
        for arrival in owner.waiting.drain(..) {
            freed.push(self.dequeue(arrival).item);
        }
        self.release_wide(txn, &mut owner, true, &mut freed);
        self.owners.get_or_insert_with(txn, || owner);
        self.leaving.push_back(txn);
        self.release_slice();
        if !self.waiters.is_empty() {
            self.settle(freed);
        }
    }

    /// A transaction that has left comes again, when the end of a visit overtook one of its
    /// requests. What it held before is freed first, at once.
    #[inline]
    pub(super) fn finish_leaving(&mut self, txn: TxnId) {
        if self.leaving.is_empty() || !self.leaving.contains(&txn) {
            return;
        }
        self.leaving.retain(|other| *other != txn);
        self.leaving.push_front(txn);
        while self.leaving.front() == Some(&txn) {
            self.release_slice();
        }
    }

    /// Whether [`LockTable::release_slice`] has something to do.
    #[inline]
    pub fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Frees the next rows of a transaction that is over. Returns their number.
    pub fn release_slice(&mut self) -> usize {
        let Some(txn) = self.leaving.front().copied() else {
            return 0;
        };
        let mut owner = self
            .owners
            .remove(&txn)
            .expect("a transaction that leaves is an owner");
        let crowded = !self.waiters.is_empty();
        let (mut freed, mut left) = (Vec::new(), self.slice_rows);
        while left > 0
            && let Some(point) = owner.points.pop()
        {
            self.release_point(txn, point, crowded, &mut freed);
            left -= 1;
        }
        while left > 0
            && let Some(place) = owner.runs.last().copied()
        {
            let (rows, range) = self.runs.shorten(place, txn, left);
            left -= rows;
            if crowded {
                freed.push(OwnedItem::Range(place.index(), Some(place.slot()), range));
            }
            if !self.runs.has(place, txn) {
                owner.runs.pop();
            }
        }
        if owner.points.is_empty() && owner.runs.is_empty() {
            self.leaving.pop_front();
            self.ending.remove(&txn);
            self.keep_spare(owner);
        } else {
            self.owners.get_or_insert_with(txn, || owner);
        }
        if !self.waiters.is_empty() {
            self.settle(freed);
        }
        self.slice_rows - left
    }
}
