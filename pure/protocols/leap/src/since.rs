//! The timestamp from which on a home has the history of a row that has come home.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Ts};
use core::ops::Bound;
use store::Horizons;

/// Rows that came home without their versions below a timestamp.
#[derive(Debug, Default)]
pub(crate) struct Since {
    times: BTreeMap<Key, Ts>,
    /// No timestamp is larger.
    newest: Ts,
    /// The last row of the last slice of [`Since::sweep`].
    swept: Option<Key>,
}

impl Since {
    pub(crate) fn insert(&mut self, key: Key, since: Ts) {
        self.newest = self.newest.max(since);
        self.times.insert(key, since);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Ts> {
        self.times.get(key).copied()
    }

    /// Rows of a range of keys that may lack a version which a snapshot at `at` needs.
    pub(crate) fn cut(&self, at: Ts, ends: impl Fn() -> (Key, Key)) -> impl Iterator<Item = &Key> {
        let ends = (at < self.newest).then(ends);
        let rows = ends.map(|(low, high)| self.times.range(low..high));
        let rows = rows.into_iter().flatten();
        rows.filter_map(move |(key, since)| (at < *since).then_some(key))
    }

    /// Forgets timestamps up to the horizons, which refuse no snapshot, looking at `most` rows a
    /// call. Returns how many were looked at. A timestamp that is left over does no harm.
    pub(crate) fn sweep(&mut self, horizons: &Horizons, most: usize) -> usize {
        if self.times.len() <= most {
            self.times
                .retain(|key, since| *since > horizons.of(key.index));
            return 0;
        }
        let from = self.swept.take();
        let from = from.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let slice = self.times.range((from, Bound::Unbounded)).take(most);
        let slice: Vec<(Key, Ts)> = slice.map(|(key, since)| (key.clone(), *since)).collect();
        for (key, since) in &slice {
            if *since <= horizons.of(key.index) {
                self.times.remove(key);
            }
        }
        let count = slice.len();
        let last = slice.into_iter().next_back().filter(|_| count == most);
        self.swept = last.map(|(key, _)| key);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IndexId, Slot};

    #[test]
    fn what_is_over_goes_slice_by_slice() {
        let key = |n: u64| Key::new(IndexId(1), Slot(0), n.to_be_bytes().to_vec());
        for most in [1, 7, 1_000] {
            let mut since = Since::default();
            for n in 0..100 {
                since.insert(key(n), Ts(n % 10));
            }
            for _ in 0..200 {
                assert!(since.sweep(&Horizons::at(Ts(4)), most) <= most);
            }
            let left = |at| since.cut(Ts(at), || (key(0), key(100))).count();
            assert_eq!([0, 4, 5, 8, 9].map(left), [50, 50, 40, 10, 0]);
            assert_eq!(
                (since.get(&key(3)), since.get(&key(5))),
                (None, Some(Ts(5)))
            );
        }
    }
}
