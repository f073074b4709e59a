//! Removal of versions and tombstones that no reader can see any more.

use crate::store::Store;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use base::{IndexId, Slot, Ts};

/// A row that had older versions, or was deleted, at `commit_ts`. Each such row is in the queue
/// exactly once.
pub(crate) struct Expiry {
    pub(crate) commit_ts: Ts,
    pub(crate) index: IndexId,
    pub(crate) slot: Slot,
    pub(crate) key: Box<[u8]>,
}

impl<S: Default> Store<S> {
    /// Removes what no reader at or above `horizon` sees: superseded versions, and rows whose
    /// newest version is a tombstone. Visits at most `budget_rows` rows and returns the number of
    /// rows visited; if that is the budget, call this again.
    pub fn collect(&mut self, horizon: Ts, budget_rows: usize) -> usize {
        let mut visited = 0;
        while visited < budget_rows {
            match self.expiries.front() {
                Some(expiry) if expiry.commit_ts <= horizon => {}
                _ => break,
            }
            let expiry = self.expiries.pop_front().expect("looked at above");
            self.collect_row(expiry, horizon);
            visited += 1;
        }
        visited
    }

    /// Rows that wait for [`Store::collect`].
    pub fn expiring(&self) -> usize {
        self.expiries.len()
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
        for expiry in self.expiries.iter() {
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
