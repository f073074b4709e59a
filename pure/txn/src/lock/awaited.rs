//! The rows for whose locks requests wait, and these locks: what SHOW WAITERS and pg_locks tell.

use super::LockMode;
use super::point::PointKey;
use super::table::{Holder, LockTable};
use super::wait::{OwnedItem, Waiter};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, Time, TxnId};
use core::cmp::Reverse;
use core::ops::ControlFlow;

/// Holders that [`LockTable::awaited_locks`] names for each request. One transaction may hold
/// millions of rows of the range for which a request waits.
const HOLDERS_NAMED_MAX: usize = 32;

/// Locks at which [`LockTable::awaited_locks`] looks for each request, those included that are not
/// in its way.
const LOOKS_EACH_MAX: usize = 5_000;

/// Locks at which it looks in all: a few milliseconds. Behind them it names requests without
/// holders.
const LOOKS_MAX: usize = 50_000;

/// A row for whose lock requests wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedRow {
    /// The row.
    pub key: Key,
    /// The transaction in the way of the request that has waited longest; of several, one.
    pub holder: Option<TxnId>,
    /// When that request began to wait.
    pub since: Time,
    /// Number of requests.
    pub waiters: usize,
}

/// What a request waits for, as far as [`LockTable::awaited_locks`] tells it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Awaited {
    /// A row, by a hash of its key that is the same on every shard.
    Row(IndexId, u64),
    /// A range of rows of one index, by a hash of its bounds.
    Range(IndexId, u64),
    /// All rows of the shard.
    Shard,
}

impl Awaited {
    fn of(item: &OwnedItem) -> Awaited {
        match item {
            OwnedItem::Point(point) => Awaited::Row(
                point.index,
                hash(&[&point.slot.0.to_be_bytes(), point.key()]),
            ),
            OwnedItem::Range(index, slot, range) => {
                let slot = slot.map(|slot| slot.0.to_be_bytes());
                let slot = slot.as_ref().map_or(&[][..], |slot| &slot[..]);
                let high = range.high.as_deref();
                let ends = [&[u8::from(high.is_some())][..], high.unwrap_or_default()];
                let hash = hash(&[slot, &range.low, ends[0], ends[1]]);
                Awaited::Range(*index, hash)
            }
            OwnedItem::Shard => Awaited::Shard,
        }
    }
}

/// FNV-1a over the parts, each with its length.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for part in parts {
        (part.len() as u32)
            .to_be_bytes()
            .into_iter()
            .for_each(&mut add);
        part.iter().copied().for_each(&mut add);
    }
    state
}

/// A lock for which a request waits, or one that is in the way of such a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AwaitedLock {
    /// What the request waits for.
    pub what: Awaited,
    /// The transaction that holds or wants the lock.
    pub txn: TxnId,
    /// Its mode.
    pub mode: LockMode,
    /// Since when the transaction waits; `None`: it holds the lock.
    pub since: Option<Time>,
}

impl AwaitedRow {
    /// The first `count` of these by their number of requests.
    pub fn longest(mut rows: Vec<AwaitedRow>, count: usize) -> Vec<AwaitedRow> {
        rows.sort_by_key(|row| Reverse(row.waiters));
        rows.truncate(count);
        rows
    }
}

impl LockTable {
    /// The locks for which requests wait, in order of their arrival, each behind the locks in its
    /// way; about `count` at most. A holder stands once, with its strongest mode, for all that wait
    /// for the same row or range. Of the holders of a range the first are named.
    pub fn awaited_locks(&self, count: usize) -> Vec<AwaitedLock> {
        let mut locks: Vec<AwaitedLock> = Vec::new();
        let mut told = BTreeMap::new();
        let mut looks_left = LOOKS_MAX;
        for waiter in self.waiters.values() {
            if locks.len() >= count {
                break;
            }
            let what = Awaited::of(&waiter.item);
            let lock = |txn, mode, since| AwaitedLock {
                what,
                txn,
                mode,
                since,
            };
            let own = waiter.txn.txn;
            let mut names_left = HOLDERS_NAMED_MAX;
            let end = looks_left.saturating_sub(LOOKS_EACH_MAX);
            let _ = self.pass_holders(&waiter.item.as_item(), |holder| {
                if looks_left == end {
                    return ControlFlow::Break(());
                }
                looks_left -= 1;
                let in_way = |holder: &&Holder| {
                    holder.txn.txn != own && holder.claim.conflicts(waiter.claim)
                };
                let Some(holder) = holder.filter(in_way) else {
                    return ControlFlow::Continue(());
                };
                let (txn, mode) = (holder.txn.txn, holder.claim.mode());
                let place = *told.entry((what, txn)).or_insert(locks.len());
                match locks.get_mut(place) {
                    Some(known) => known.mode = known.mode.max(mode),
                    None => locks.push(lock(txn, mode, None)),
                }
                names_left -= 1;
                match names_left {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            });
            locks.push(lock(own, waiter.claim.mode(), Some(waiter.since)));
        }
        locks
    }

    /// The rows that `wants` names for which requests wait, of those requests whose number `counts`
    /// names. Costs as much as there are waiters.
    pub fn awaited_rows(
        &self,
        wants: &dyn Fn(&Key) -> bool,
        counts: &dyn Fn(u64) -> bool,
    ) -> Vec<AwaitedRow> {
        let mut rows: BTreeMap<&PointKey, (&Waiter, usize)> = BTreeMap::new();
        // Those that arrived first come first.
        for waiter in self.waiters.values().filter(|it| counts(it.request)) {
            if let OwnedItem::Point(point) = &waiter.item {
                rows.entry(point).or_insert((waiter, 0)).1 += 1;
            }
        }
        let rows = rows
            .into_values()
            .map(|(first, waiters)| {
                let (item, mut holder) = (first.item.as_item(), None);
                self.each_holder(&item, first.claim, first.txn.txn, &mut |it| {
                    holder = Some(it.txn.txn);
                });
                AwaitedRow {
                    key: item.example(),
                    holder,
                    since: first.since,
                    waiters,
                }
            })
            .filter(|row| wants(&row.key));
        rows.collect()
    }
}
