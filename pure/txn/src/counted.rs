//! A map that counts its changes, so that a reader sees whether it is the same as before.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::RangeMut;
use core::ops::{Deref, RangeBounds};

/// A map with the number of its changes. It reads as the map itself.
#[derive(Clone, Debug)]
pub struct Counted<K, V> {
    map: BTreeMap<K, V>,
    changes: u64,
}

impl<K, V> Default for Counted<K, V> {
    fn default() -> Self {
        Counted {
            map: BTreeMap::new(),
            changes: 0,
        }
    }
}

impl<K: Ord, V> Counted<K, V> {
    /// Number of changes so far. Access to a value that may change it counts as one.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets a value. Returns the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.changes += 1;
        self.map.insert(key, value)
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.map.remove(key);
        self.changes += u64::from(removed.is_some());
        removed
    }

    /// The values of a range of keys, to be changed: one change.
    pub fn range_mut(&mut self, keys: impl RangeBounds<K>) -> RangeMut<'_, K, V> {
        self.changes += 1;
        self.map.range_mut(keys)
    }

    /// A value, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let found = self.map.get_mut(key);
        self.changes += u64::from(found.is_some());
        found
    }
}

impl<K, V> Deref for Counted<K, V> {
    type Target = BTreeMap<K, V>;
    fn deref(&self) -> &BTreeMap<K, V> {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_counts_and_no_look_does() {
        let mut map: Counted<u8, u8> = Counted::default();
        assert_eq!(map.insert(1, 2), None);
        assert_eq!((map.get(&1), map.len(), map.changes()), (Some(&2), 1, 1));
        *map.get_mut(&1).unwrap() = 3;
        assert!(map.get_mut(&2).is_none());
        assert_eq!((map.remove(&2), map.changes()), (None, 2));
        assert_eq!((map.remove(&1), map.changes()), (Some(3), 3));
    }
}
