//! What the sessions of a shard keep for texts that come again, by the hash of the text.
//!
//! It has two bounds: a number of entries, replaced by second chance, and a doorkeeper: a text
//! enters only when it is seen again, so that statements full of literals stay out.

use base::LookupMap;

struct Entry<V> {
    hash: u64,
    value: V,
    /// Used since the hand last passed.
    used: bool,
}

/// Values by hash, at most a number of them.
pub(crate) struct Kept<V> {
    entries: Vec<Entry<V>>,
    index: LookupMap<u64, u32>,
    hand: usize,
    entries_max: usize,
    /// Hashes seen once, a ring.
    seen: Vec<u64>,
    seen_set: LookupMap<u64, ()>,
    seen_hand: usize,
}

impl<V> Kept<V> {
    /// Room for `entries_max` values, at least one.
    pub(crate) fn new(entries_max: usize) -> Kept<V> {
        assert!(entries_max > 0, "a cache holds something");
        Kept {
            entries: Vec::new(),
            index: LookupMap::new(),
            hand: 0,
            entries_max,
            seen: Vec::new(),
            seen_set: LookupMap::new(),
            seen_hand: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The value of this hash if it `is` the wanted one, which counts as a use of it.
    pub(crate) fn get(&mut self, hash: u64, is: impl FnOnce(&V) -> bool) -> Option<&mut V> {
        let entry = &mut self.entries[*self.index.get(&hash)? as usize];
        if !is(&entry.value) {
            return None;
        }
        entry.used = true;
        Some(&mut entry.value)
    }

    /// Whether a value of this hash may be put: one is there, or the hash was seen before. Notes
    /// that it was seen.
    pub(crate) fn admits(&mut self, hash: u64) -> bool {
        if self.index.get(&hash).is_some() || self.seen_set.contains(&hash) {
            return true;
        }
        if self.seen.len() < self.entries_max {
            self.seen.push(hash);
        } else {
            let old = core::mem::replace(&mut self.seen[self.seen_hand], hash);
            self.seen_set.remove(&old);
            self.seen_hand = (self.seen_hand + 1) % self.entries_max;
        }
        self.seen_set.insert(hash, ());
        false
    }

    /// Keeps a value in place of the one of equal hash, or of one that was not used for a while.
    pub(crate) fn put(&mut self, hash: u64, value: V) {
        let used = self.index.get(&hash).is_some();
        let entry = Entry { hash, value, used };
        if let Some(at) = self.index.get(&hash) {
            self.entries[*at as usize] = entry;
            return;
        }
        if self.entries.len() < self.entries_max {
            self.index.insert(hash, self.entries.len() as u32);
            self.entries.push(entry);
            return;
        }
        while core::mem::take(&mut self.entries[self.hand].used) {
            self.hand = (self.hand + 1) % self.entries_max;
        }
        self.index.remove(&self.entries[self.hand].hash);
        self.index.insert(hash, self.hand as u32);
        self.entries[self.hand] = entry;
        self.hand = (self.hand + 1) % self.entries_max;
    }
}
