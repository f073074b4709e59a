//! Whether what a transaction has read is what it would read now.

use crate::control::RangeRead;
use crate::order::Order;
use crate::part::Promise;
use alloc::collections::BTreeMap;
use base::row::RowRef;
use base::{Key, Ts, TxnId};
use core::ops::ControlFlow;
use store::{Horizons, Store, Window, Write};
use txn::bulk::Wanted;
use txn::increment::columns_of;
use txn::{Bulks, Columns};

/// Rows that are looked at for one range; beyond that, any write in a slot counts as a change.
const SEARCH_ROWS_MAX: u32 = local::scan::SEARCH_ROWS_MAX;

/// The rows of this shard, for the judgement of one transaction.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub(crate) txn: TxnId,
    pub(crate) store: &'a Store,
    pub(crate) horizons: &'a Horizons,
    pub(crate) order: &'a Order,
    pub(crate) promises: &'a BTreeMap<TxnId, Promise>,
    pub(crate) bulks: &'a Bulks,
}

impl Rows<'_> {
    /// Whether another transaction has changed these columns of the row since `at`, or has promised
    /// to.
    #[must_use]
    pub fn row_changed(&self, key: &Key, columns: Columns, at: Ts) -> bool {
        self.is_pending(Wanted::Row(key), columns).is_some() || self.has_changed(key, columns, at)
    }

    /// A row of the range that another transaction has changed since `at`, or has promised to.
    #[must_use]
    pub fn range_changed(&self, read: &RangeRead, columns: Columns, at: Ts) -> Option<Key> {
        let RangeRead { index, slot, range } = read;
        let wanted = Wanted::Rows(*index, *slot, range);
        if let Some(key) = self.is_pending(wanted, columns) {
            return Some(key);
        }
        let mut left = SEARCH_ROWS_MAX;
        let mut from = slot.unwrap_or_default();
        while let Some(next) = self.store.next_slot(*index, from) {
            if slot.is_some_and(|slot| slot != next) {
                break;
            }
            let window = Window::of(range, false);
            let newer = self
                .store
                .has_newer(*index, next, window, at, Ts::MAX, &mut 0);
            if newer {
                // Deletions may have been collected.
                if at < self.horizons.of(*index) {
                    return Some(wanted.example());
                }
                let mut found = None;
                let _ = self
                    .store
                    .scan_keys(*index, next, window, Ts::MAX, &mut |bytes, _, ts| {
                        if left == 0 {
                            found = Some(wanted.example());
                            return ControlFlow::Break(());
                        }
                        left -= 1;
                        if ts > at {
                            let key = Key::new(*index, next, bytes.to_vec());
                            if self.has_changed(&key, columns, at) {
                                found = Some(key);
                                return ControlFlow::Break(());
                            }
                        }
                        ControlFlow::Continue(())
                    });
                if found.is_some() {
                    return found;
                }
            }
            from = base::Slot(next.0 + 1);
        }
        None
    }

    /// Whether the newest version differs from the one at `at`.
    fn has_changed(&self, key: &Key, columns: Columns, at: Ts) -> bool {
        let newest = self.store.get(key, Ts::MAX);
        if newest.is_some_and(|newest| newest.commit_ts <= at) {
            return false;
        }
        if at < self.horizons.of(key.index) {
            // What was there is not kept any more.
            return true;
        }
        if self.store.newest_ts(key) <= at {
            return false;
        }
        let before = self.store.get(key, at);
        differ(
            before.map(|version| version.value),
            newest.map(|version| version.value),
            columns,
        )
    }

    /// A row that another transaction has promised to change, or has committed and not installed.
    fn is_pending(&self, wanted: Wanted<'_>, columns: Columns) -> Option<Key> {
        let mut found = None;
        self.order.each_open(wanted, &mut |_, other, key| {
            if found.is_none() && other != self.txn {
                let write = self.promises.get(&other).and_then(|it| it.write(key));
                let present = self.store.get(key, Ts::MAX).is_some();
                if write.is_none_or(|write| touches(write, columns, present)) {
                    found = Some(key.clone());
                }
            }
        });
        if found.is_none() {
            found = self.order.awaits(Ts::MAX, wanted, columns).cloned();
        }
        let large = self
            .order
            .large()
            .iter()
            .filter(|other| **other != self.txn);
        let meets = |other: &TxnId| {
            let promise = self.promises.get(other);
            promise.is_some_and(|promise| wanted.meets(&promise.redo))
        };
        if found.is_none()
            && (large.cloned().any(|other| meets(&other)) || self.bulks.awaits(Ts::MAX, wanted))
        {
            found = Some(wanted.example());
        }
        found
    }
}

/// Whether a write changes what a reader of these columns finds. No columns: the reader looks only
/// whether there is such a row.
pub(crate) fn touches(write: &Write, columns: Columns, present: bool) -> bool {
    match write {
        Write::Formula(formula) => columns_of(formula).intersects(columns),
        Write::Put(_) => !present || columns != Columns::NONE,
        Write::Insert(_) | Write::Delete => true,
    }
}

/// The columns that a write concerns, for guards: all, if the row may come or go.
pub(crate) fn columns_written(write: &Write) -> Columns {
    match write {
        Write::Formula(formula) => columns_of(formula),
        Write::Put(_) | Write::Insert(_) | Write::Delete => Columns::ALL,
    }
}

/// Whether two versions of a row differ in these columns, or in being there.
fn differ(one: Option<&[u8]>, other: Option<&[u8]>, columns: Columns) -> bool {
    let (one, other) = match (one, other) {
        (None, None) => return false,
        (Some(one), Some(other)) => (one, other),
        _ => return true,
    };
    if columns == Columns::NONE || one == other {
        return false;
    }
    let (one, other) = (RowRef::new(one), RowRef::new(other));
    let mut all = 0..one.count().max(other.count());
    all.any(|at| {
        columns.intersects(Columns::one(at as u32)) && one.raw(at).ok() != other.raw(at).ok()
    })
}
