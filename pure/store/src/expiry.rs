//! Removal of versions and tombstones that no reader can see any more.

use crate::horizons::Horizons;
use crate::store::Store;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use base::{IndexId, PieceQueue, Slot, Ts};

/// A row that had older versions, or was deleted, at `commit_ts`. Each such row is in the queue
/// exactly once.
pub(crate) struct Expiry {
    pub(crate) commit_ts: Ts,
    pub(crate) index: IndexId,
    pub(crate) slot: Slot,
    pub(crate) key: Box<[u8]>,
}

/// Microseconds by which the horizon of a database lags behind that of databases without readers
/// before its rows stand aside. Longer: other databases wait longer. Shorter: rows move from queue
/// to queue for readers that are done in a moment.
const LAG_US: u64 = 1_000_000;
/// Microseconds by which the highest horizon goes on before rows that stand aside are looked at.
const LOOK_US: u64 = 100_000;

/// Rows whose turn came while readers of their database still held them back: without them the
/// others, which no reader holds back, would have to wait behind.
#[derive(Default)]
pub(crate) struct Aside {
    queues: BTreeMap<IndexId, PieceQueue<Expiry>>,
    /// Rows in all queues.
    rows: usize,
    /// The highest horizon when all that was due had been taken.
    looked: Ts,
}

impl<S: Default> Store<S> {
    /// Removes what no reader at or above the horizon of its database can see: superseded versions,
    /// and rows whose newest version is a tombstone. Visits at most `budget_rows` rows. Returns the
    /// number of rows visited; call again while that is the budget.
    pub fn collect(&mut self, horizons: &Horizons, budget_rows: usize) -> usize {
        let highest = horizons.highest();
        let mut visited = 0;
        while visited < budget_rows
            && let Some(expiry) = self.expiries.front()
            && expiry.commit_ts <= highest
        {
            let horizon = horizons.of(expiry.index);
            let due = expiry.commit_ts <= horizon;
            if !due && highest.time().since(horizon.time()) < LAG_US {
                break;
            }
            let expiry = self.expiries.pop_front().expect("looked at above");
            if due {
                self.collect_row(expiry, horizon);
            } else {
                let queue = self.aside.queues.entry(expiry.index);
                queue.or_default().push_back(expiry);
                self.aside.rows += 1;
            }
            visited += 1;
        }
        if self.aside.rows > 0 && highest.time().since(self.aside.looked.time()) >= LOOK_US {
            visited += self.collect_aside(horizons, budget_rows - visited);
        }
        visited
    }

    /// The same for those that stand aside.
    fn collect_aside(&mut self, horizons: &Horizons, budget_rows: usize) -> usize {
        let mut visited = 0;
        let mut queues = core::mem::take(&mut self.aside.queues);
        queues.retain(|index, queue| {
            let horizon = horizons.of(*index);
            while visited < budget_rows
                && queue.front().is_some_and(|e| e.commit_ts <= horizon)
                && let Some(expiry) = queue.pop_front()
            {
                self.collect_row(expiry, horizon);
                visited += 1;
            }
            !queue.is_empty()
        });
        self.aside.queues = queues;
        self.aside.rows -= visited;
        if visited < budget_rows {
            self.aside.looked = horizons.highest();
        }
        visited
    }

    /// Rows that wait for [`Store::collect`].
    pub fn expiring(&self) -> usize {
        self.expiries.len() + self.aside.rows
    }

    fn collect_row(&mut self, expiry: Expiry, horizon: Ts) {
        let Expiry {
            index, slot, key, ..
        } = expiry;
        let Some(rows) = self.indexes.get_mut(&index) else {
            return;
        };
        let entry = &mut rows.slots[usize::from(slot.0)];
        let Some(tree) = entry.as_mut() else { return };
        let Some((leaf, i)) = tree.locate_mut(&key) else {
            return;
        };
        if !leaf.is_queued(i) {
            return;
        }
        let (versions, bytes) = leaf.prune(i, horizon);
        self.counts.versions -= versions;
        self.counts.bytes -= bytes;
        let (newest, deleted) = (leaf.stamp(i), leaf.value(i).is_none());
        if leaf.chain(i).is_some() || (deleted && newest > horizon) {
            self.expiries.push_back(Expiry {
                commit_ts: newest,
                index,
                slot,
                key,
            });
            return;
        }
        leaf.set_queued(i, false);
        if deleted {
            tree.remove(&key);
            self.counts.versions -= 1;
            self.counts.bytes -= key.len();
            if tree.rows() == 0 {
                *entry = None;
                if rows.slots.iter().all(Option::is_none) {
                    self.indexes.remove(&index);
                }
            }
        }
    }

    /// Checks that every row with history stands in the queue once. (An entry of a dropped index
    /// may have no row.)
    pub(crate) fn validate_expiries(&self) {
        let mut queued = BTreeSet::new();
        let aside = || self.aside.queues.values().flat_map(PieceQueue::iter);
        assert_eq!(aside().count(), self.aside.rows, "rows aside are counted");
        for expiry in self.expiries.iter().chain(aside()) {
            let found = self
                .tree(expiry.index, expiry.slot)
                .and_then(|t| t.locate(&expiry.key));
            if found.is_some_and(|(leaf, i)| leaf.is_queued(i)) {
                queued.insert((expiry.index, expiry.slot, &*expiry.key));
            }
        }
        let mut flagged = 0;
        for tree in self
            .indexes
            .values()
            .flat_map(|rows| rows.slots.iter().flatten())
        {
            tree.each_leaf(&mut |leaf| {
                flagged += (0..leaf.count()).filter(|&i| leaf.is_queued(i)).count();
            });
        }
        assert_eq!(queued.len(), flagged, "every row with history is queued");
    }
}
