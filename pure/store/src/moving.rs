//! Rows that move to another shard and back, with the versions that readers may still need.

use crate::store::Store;
use base::{KeyRef, Ts};

impl<S: Default> Store<S> {
    /// Calls `f` with the versions of a row from the newest to the oldest, tombstones (`None`)
    /// included, until it returns false.
    pub fn versions<'k>(
        &self,
        key: impl Into<KeyRef<'k>>,
        f: &mut dyn FnMut(Ts, Option<&[u8]>) -> bool,
    ) {
        let key: KeyRef<'_> = key.into();
        let tree = self.tree(key.index, key.slot);
        let Some((leaf, i)) = tree.and_then(|tree| tree.locate(key.bytes)) else {
            return;
        };
        let mut at = Ts::MAX;
        while let Some((commit_ts, value)) = leaf.version(i, at) {
            if !f(commit_ts, value) || commit_ts == Ts::ZERO {
                return;
            }
            at = Ts(commit_ts.0 - 1);
        }
    }

    /// Adds a version above those that the row has. Older ones stay for readers above `horizon`,
    /// as with [`Store::apply`]. `value == None` is a tombstone.
    pub fn restore<'k>(
        &mut self,
        key: impl Into<KeyRef<'k>>,
        commit_ts: Ts,
        value: Option<&[u8]>,
        horizon: Ts,
    ) {
        self.write_version(key.into(), commit_ts, value, horizon);
    }

    /// Forgets a row with all its versions, because another shard has the row now. Returns whether
    /// there was one.
    pub fn evict<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> bool {
        let KeyRef {
            index,
            slot,
            bytes: key,
        } = key.into();
        let Some(rows) = self.indexes.get_mut(&index) else {
            return false;
        };
        let entry = &mut rows.slots[usize::from(slot.0)];
        let Some((leaf, i)) = entry.as_mut().and_then(|tree| tree.locate_mut(key)) else {
            return false;
        };
        let (versions, bytes) = leaf.prune(i, Ts::MAX);
        self.counts.versions -= versions + 1;
        self.counts.bytes -= bytes + key.len();
        if let Some(value) = leaf.value(i) {
            self.counts.rows -= 1;
            self.counts.bytes -= value.len();
        }
        // Its entry in the queue of expiries finds nothing and goes by itself.
        let tree = entry.as_mut().expect("the row was found there");
        tree.remove(key);
        if tree.rows() == 0 {
            *entry = None;
            if rows.slots.iter().all(Option::is_none) {
                self.indexes.remove(&index);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{Store, Write};
    use base::{IndexId, KeyRef, Slot, Ts};

    #[test]
    fn a_row_leaves_and_comes_back_with_its_history() {
        let (index, slot) = (IndexId(1), Slot(2));
        let (mut here, mut there) = (Store::<()>::new(), Store::<()>::new());
        here.apply(
            KeyRef::new(index, slot, b"k"),
            &Write::Insert(vec![1]),
            Ts(10),
            Ts(5),
        );
        here.apply(
            KeyRef::new(index, slot, b"k"),
            &Write::Put(vec![2]),
            Ts(20),
            Ts(5),
        );
        here.apply(
            KeyRef::new(index, slot, b"k"),
            &Write::Delete,
            Ts(30),
            Ts(5),
        );
        here.apply(
            KeyRef::new(index, slot, b"l"),
            &Write::Insert(vec![9]),
            Ts(30),
            Ts(5),
        );
        let mut versions = Vec::new();
        here.versions(KeyRef::new(index, slot, b"k"), &mut |ts, value| {
            versions.push((ts, value.map(<[u8]>::to_vec)));
            true
        });
        assert_eq!(versions.len(), 3);
        for (ts, value) in versions.iter().rev() {
            there.restore(KeyRef::new(index, slot, b"k"), *ts, value.as_deref(), Ts(5));
        }
        assert!(here.evict(KeyRef::new(index, slot, b"k")));
        assert!(!here.evict(KeyRef::new(index, slot, b"k")));
        let at = |store: &Store, ts| {
            store
                .get(KeyRef::new(index, slot, b"k"), Ts(ts))
                .map(|v| v.value.to_vec())
        };
        assert_eq!(at(&there, 15), Some(vec![1]));
        assert_eq!(at(&there, 29), Some(vec![2]));
        assert_eq!(at(&there, 30), None);
        assert_eq!(at(&here, 29), None);
        here.validate();
        there.validate();
        here.collect(&crate::Horizons::at(Ts(40)), 100);
        here.evict(KeyRef::new(index, slot, b"l"));
        here.validate();
        assert_eq!(here.counts().rows, 0);
    }
}
