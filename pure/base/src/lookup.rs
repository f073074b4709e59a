//! A hash map for lookups only: it offers no iteration, so no result can depend on hash order.
//! [`LookupMap::any`] does not, as long as what it asks changes nothing.
#![expect(
    clippy::disallowed_types,
    reason = "what is banned elsewhere is hidden here"
)]

use core::borrow::Borrow;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use hashbrown::HashMap;

/// A fast multiplicative hasher with a fixed seed. Not for keys that an adversary chooses in bulk.
#[derive(Default, Clone, Copy)]
pub struct FixedHasher(u64);

impl FixedHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(u64::from_le_bytes(
                chunk.try_into().expect("chunks of eight bytes"),
            ));
        }
        let mut tail = [0u8; 8];
        let rest = chunks.remainder();
        tail[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(tail));
        self.add(bytes.len() as u64);
    }
    fn write_u8(&mut self, value: u8) {
        self.add(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.add(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.add(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }
    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}

/// A map without iteration.
#[derive(Clone, Debug)]
pub struct LookupMap<K, V>(HashMap<K, V, BuildHasherDefault<FixedHasher>>);

impl<K: Eq + Hash, V> Default for LookupMap<K, V> {
    fn default() -> Self {
        LookupMap(HashMap::default())
    }
}

impl<K: Eq + Hash, V> LookupMap<K, V> {
    /// An empty map; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }
    /// The value of `key`.
    pub fn get<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }
    /// The value of `key`, to be changed.
    pub fn get_mut<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }
    /// Sets the value of `key` and returns the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }
    /// Takes `key` out.
    pub fn remove<Q: ?Sized + Eq + Hash>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }
    /// Whether `key` is present.
    pub fn contains<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }
    /// The value of `key`, made by `make` if it is absent.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.0.entry(key).or_insert_with(make)
    }
    /// Whether `f` holds for some entry.
    pub fn any(&self, f: impl Fn(&K, &V) -> bool) -> bool {
        self.0.iter().any(|(key, value)| f(key, value))
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;
    use std::collections::BTreeMap;

    #[test]
    fn behaves_like_an_ordered_map() {
        let mut prng = Prng::new(71);
        let (mut map, mut model) = (LookupMap::new(), BTreeMap::new());
        for _ in 0..20_000 {
            let key = format!("key{}", prng.below(300));
            match prng.below(4) {
                0 => assert_eq!(map.insert(key.clone(), 1), model.insert(key, 1)),
                1 => assert_eq!(map.remove(key.as_str()), model.remove(&key)),
                2 => {
                    *map.get_or_insert_with(key.clone(), || 5) += 1;
                    *model.entry(key).or_insert(5) += 1;
                }
                _ => {
                    assert_eq!(map.get(key.as_str()), model.get(&key));
                    assert_eq!(map.contains(key.as_str()), model.contains_key(&key));
                }
            }
            assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
        }
        map.clear();
        assert!(map.is_empty());
    }

    #[test]
    fn hashes_of_neighbours_differ() {
        use core::hash::BuildHasher;
        let state = BuildHasherDefault::<FixedHasher>::default();
        let hashes: std::collections::BTreeSet<u64> =
            (0..10_000u64).map(|value| state.hash_one(value)).collect();
        assert_eq!(hashes.len(), 10_000);
        assert_ne!(state.hash_one("a"), state.hash_one("a\0"));
    }
}
