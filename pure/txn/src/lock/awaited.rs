//! The rows for whose locks requests wait: what SHOW WAITERS tells.

use super::point::PointKey;
use super::table::LockTable;
use super::wait::{OwnedItem, Waiter};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Time, TxnId};
use core::cmp::Reverse;

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

impl LockTable {
    /// The rows for which most requests wait, at most `count` of those that `wants` names. Costs as
    /// much as there are waiters.
    pub fn awaited_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<AwaitedRow> {
        let mut rows: BTreeMap<&PointKey, (&Waiter, usize)> = BTreeMap::new();
        // Those that arrived first come first.
        for waiter in self.waiters.values() {
            if let OwnedItem::Point(point) = &waiter.item {
                rows.entry(point).or_insert((waiter, 0)).1 += 1;
            }
        }
        let mut rows: Vec<AwaitedRow> = rows
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
            .filter(|row| wants(&row.key))
            .collect();
        rows.sort_by_key(|row| Reverse(row.waiters));
        rows.truncate(count);
        rows
    }
}
