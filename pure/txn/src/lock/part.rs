//! Looking at, and freeing, a part of what an open transaction holds or wants.

use super::LockMode;
use super::point::PointKey;
use super::table::{Item, LockTable};
use super::wait::OwnedItem;
use alloc::vec::Vec;
use base::{Key, Ts, TxnId};

impl LockTable {
    /// The requests that wait for the item or a part of it, in order of arrival.
    pub fn waiting_on(&self, item: &Item<'_>) -> Vec<u64> {
        let waiters = self.waiters.values();
        let on_it = waiters.filter(|waiter| waiter.item.as_item().overlaps(item));
        on_it.map(|waiter| waiter.request).collect()
    }

    /// Timestamp of the first attempt of a transaction that holds a lock on the row, or on all that
    /// the row belongs to; `None`: it holds none.
    pub fn began(&self, txn: TxnId, key: &Key) -> Option<Ts> {
        let mut began = None;
        // No transaction has this name, and every lock conflicts with an exclusive one.
        let nobody = TxnId::default();
        let exclusive = LockMode::Exclusive.into();
        self.each_holder(&Item::of(key), exclusive, nobody, &mut |holder| {
            if holder.txn.txn == txn {
                began = Some(holder.txn.ts);
            }
        });
        began
    }

    /// Whether the transaction holds a lock of a range, of the shard, or of a row that is not
    /// `written`.
    pub fn holds_beside(&self, txn: TxnId, written: &dyn Fn(&Key) -> bool) -> bool {
        self.owners.get(&txn).is_some_and(|owner| {
            let wide = !owner.ranges.is_empty() || owner.shard;
            wide || owner.points.iter().any(|row| !written(&row.to_key()))
        })
    }

    /// Whether another transaction may wait for a lock that this one holds here: a request waits
    /// for exactly a row that it holds, or some request waits for a range or the shard while it
    /// holds anything.
    pub fn is_awaited(&self, txn: TxnId) -> bool {
        let Some(owner) = self.owners.get(&txn) else {
            return false;
        };
        let points_only = owner.runs.is_empty() && owner.ranges.is_empty() && !owner.shard;
        if !points_only || !self.wide_waiters.is_empty() {
            return !self.waiters.is_empty();
        }
        let awaited = |point| {
            let entry = self.points.get(point);
            entry.is_some_and(|entry| !entry.queue.is_empty())
        };
        owner.points.iter().any(awaited)
    }

    /// Takes a waiting request of a transaction back, without an event. Locks that it holds stay.
    /// Does nothing if no such request waits.
    pub fn withdraw(&mut self, txn: TxnId, request: u64) {
        let waiting = self.owners.get(&txn).map(|owner| &owner.waiting);
        let mut waiting = waiting.into_iter().flatten();
        let Some(&arrival) = waiting.find(|arrival| self.waiters[*arrival].request == request)
        else {
            return;
        };
        let item = self.drop_waiter(arrival).item;
        self.settle(Vec::from([item]));
    }

    /// Frees the transaction's locks of ranges, and of single rows that are not `kept`. Its waits,
    /// and the rows of a bulk insertion, stay.
    pub fn release_but(&mut self, txn: TxnId, kept: &dyn Fn(&Key) -> bool) {
        let Some(owner) = self.owners.get_mut(&txn) else {
            return;
        };
        let ranges = core::mem::take(&mut owner.ranges);
        let rows: Vec<Key> = owner.points.iter().map(PointKey::to_key).collect();
        let mut freed = Vec::new();
        for place in ranges {
            let locks = self.ranges.get_mut(&place);
            let locks = locks.expect("a held range has an entry");
            locks.retain(|lock| {
                let own = lock.holder.txn.txn == txn;
                if own {
                    let range = lock.range.clone();
                    freed.push(OwnedItem::Range(place.0, place.1, range));
                }
                !own
            });
            if locks.is_empty() {
                self.ranges.remove(&place);
            }
        }
        self.settle(freed);
        for row in rows.iter().filter(|row| !kept(row)) {
            self.release_item(txn, &Item::of(row));
        }
        self.forget_idle(txn);
    }
}
