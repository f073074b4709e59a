//! Which row has a key, by the hash of the key.

use crate::rows::heap_bytes;

/// Keys with the number of a row each.
#[derive(Clone, Debug)]
pub struct KeyTable {
    /// One, or one for each value of the highest byte of a hash.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default)]
struct Part {
    /// For each bucket the number of its first entry, from 1; 0: none. A power of two of them.
    heads: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    /// The next entry of the bucket, as in `heads`.
    next: u32,
    row: u32,
}

/// Entries of the only part, from which on there are many parts.
const SPLIT: usize = 16 << 10;
const PARTS: usize = 256;

impl Default for KeyTable {
    fn default() -> KeyTable {
        KeyTable {
            parts: vec![Part::default()],
        }
    }
}

/// How far the keys that were noted have been linked.
#[derive(Debug, Default)]
pub struct Linking {
    part: usize,
    at: usize,
    /// Entries of the part that are linked.
    kept: usize,
}

impl KeyTable {
    /// A table in which this number of rows will be noted.
    pub fn for_rows(rows: usize) -> KeyTable {
        let parts = if rows >= SPLIT { PARTS } else { 1 };
        let mut table = KeyTable { parts: Vec::new() };
        table.parts.resize_with(parts, Part::default);
        table
    }

    #[inline]
    fn part(&self, hash: u32) -> usize {
        match self.parts.len() {
            1 => 0,
            _ => (hash >> 24) as usize,
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.entries.len()).sum()
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.entries.is_empty())
    }

    /// Memory of the table, in bytes.
    pub fn bytes(&self) -> usize {
        self.parts.iter().map(Part::bytes).sum()
    }

    /// The row of a key; `is_key` says whether a row has the key, too.
    #[inline]
    pub fn find(&self, hash: u32, is_key: impl Fn(u32) -> bool) -> Option<u32> {
        let part = &self.parts[self.part(hash)];
        part.find(hash, is_key).map(|at| part.entries[at].row)
    }

    /// As [`KeyTable::find`] for many keys; `None`: a key that no row has. The rows are counted
    /// from 1; 0: none. `is_key` is asked about the place of a key in `hashes` and a row.
    ///
    /// Memory is read for one key after the other in each of three passes, so that one read does
    /// not wait for another.
    pub fn find_all(
        &self,
        hashes: &[Option<u32>],
        is_key: impl Fn(usize, u32) -> bool,
        found: &mut Vec<u32>,
    ) {
        let heads = hashes.iter().map(|hash| match hash {
            Some(hash) => self.parts[self.part(*hash)].head(*hash),
            None => 0,
        });
        found.clear();
        found.extend(heads);
        for (entry, hash) in found.iter_mut().zip(hashes) {
            if let Some(hash) = *hash
                && *entry > 0
            {
                *entry = self.parts[self.part(hash)].like(hash, *entry);
            }
        }
        for (place, (found, hash)) in found.iter_mut().zip(hashes).enumerate() {
            let Some(hash) = *hash else {
                continue;
            };
            let part = &self.parts[self.part(hash)];
            let mut next = *found;
            while let Some(at) = next.checked_sub(1) {
                let entry = part.entries[at as usize];
                if is_key(place, entry.row) {
                    next = entry.row + 1;
                    break;
                }
                next = part.like(hash, entry.next);
            }
            *found = next;
        }
    }

    /// Has `row` stand for its key. Gives the row that did before, and the memory that was taken,
    /// in bytes.
    pub fn put(
        &mut self,
        hash: u32,
        row: u32,
        is_key: impl Fn(u32) -> bool,
    ) -> (Option<u32>, usize) {
        let number = self.part(hash);
        let part = &mut self.parts[number];
        if let Some(at) = part.find(hash, is_key) {
            let before = core::mem::replace(&mut part.entries[at].row, row);
            return (Some(before), 0);
        }
        (None, self.add(hash, row))
    }

    /// Adds the row of a key that is not there. Gives the memory that was taken, in bytes.
    pub fn add(&mut self, hash: u32, row: u32) -> usize {
        let number = self.part(hash);
        let part = &mut self.parts[number];
        if part.has_room() {
            part.push(hash, row);
            return 0;
        }
        let before = part.bytes();
        part.push(hash, row);
        let mut grown = part.bytes() - before;
        if self.parts.len() == 1 && self.parts[0].entries.len() >= SPLIT {
            let one = core::mem::take(&mut self.parts[0]);
            self.parts.resize_with(PARTS, Part::default);
            for entry in &one.entries {
                let number = self.part(entry.hash);
                self.parts[number].push(entry.hash, entry.row);
            }
            grown += self.bytes().saturating_sub(one.bytes()) + PARTS * size_of::<Part>();
        }
        grown
    }

    /// Notes a row and the hash of its key. Rows are not found before [`KeyTable::link`] is through
    /// with them. Gives the memory that was taken, in bytes.
    #[inline]
    pub fn note(&mut self, hash: u32, row: u32) -> usize {
        let number = self.part(hash);
        let entries = &mut self.parts[number].entries;
        let before = entries.capacity();
        entries.push(Entry { hash, next: 0, row });
        match entries.capacity() == before {
            true => 0,
            false => entries_bytes(entries.capacity()) - entries_bytes(before),
        }
    }

    /// Links about `most` of the rows that were noted; of those of a key the last one stands for
    /// it. `meets` hears of the rows of one hash, first the earlier one, which stands for its key:
    /// whether both have the same key, so that the later one takes its place. Gives how many were
    /// looked at (0: all are linked), and the memory that was taken, in bytes.
    pub fn link(
        &mut self,
        linking: &mut Linking,
        most: usize,
        mut meets: impl FnMut(u32, u32) -> bool,
    ) -> (usize, usize) {
        let (mut done, mut grown) = (0, 0);
        while done < most
            && let Some(part) = self.parts.get_mut(linking.part)
        {
            if linking.at == 0 && !part.entries.is_empty() {
                part.heads = vec![0; part.entries.len().next_power_of_two().max(8)];
                grown += heads_bytes(part.heads.capacity());
                done += part.heads.len() / 1024;
            }
            if linking.at == part.entries.len() {
                part.entries.truncate(linking.kept);
                *linking = Linking {
                    part: linking.part + 1,
                    ..Linking::default()
                };
                continue;
            }
            let entry = part.entries[linking.at];
            linking.at += 1;
            done += 1;
            let mut next = part.head(entry.hash);
            loop {
                next = part.like(entry.hash, next);
                let Some(at) = next.checked_sub(1) else {
                    part.entries[linking.kept] = entry;
                    part.link(linking.kept);
                    linking.kept += 1;
                    break;
                };
                let other = &mut part.entries[at as usize];
                if meets(other.row, entry.row) {
                    other.row = entry.row;
                    break;
                }
                next = other.next;
            }
        }
        (done, grown)
    }

    /// Frees some parts with at least this number of keys together, unless fewer are left.
    pub fn shrink(&mut self, most: usize) {
        let mut gone = 0;
        while gone < most
            && let Some(part) = self.parts.pop()
        {
            gone += part.entries.len().max(1);
        }
    }
}

fn heads_bytes(capacity: usize) -> usize {
    heap_bytes(capacity * size_of::<u32>())
}

fn entries_bytes(capacity: usize) -> usize {
    heap_bytes(capacity * size_of::<Entry>())
}

impl Part {
    fn bytes(&self) -> usize {
        heads_bytes(self.heads.capacity()) + entries_bytes(self.entries.capacity())
    }

    /// The first entry of the bucket of a hash, from 1; 0: none.
    #[inline]
    fn head(&self, hash: u32) -> u32 {
        match self.heads.len().checked_sub(1) {
            Some(mask) => self.heads[hash as usize & mask],
            None => 0,
        }
    }

    /// The first entry of this hash from `next` on, counted as in `heads`.
    #[inline]
    fn like(&self, hash: u32, mut next: u32) -> u32 {
        while let Some(at) = next.checked_sub(1) {
            let entry = &self.entries[at as usize];
            if entry.hash == hash {
                break;
            }
            next = entry.next;
        }
        next
    }

    #[inline]
    fn find(&self, hash: u32, is_key: impl Fn(u32) -> bool) -> Option<usize> {
        let mut next = self.head(hash);
        while let Some(at) = next.checked_sub(1) {
            let entry = &self.entries[at as usize];
            if entry.hash == hash && is_key(entry.row) {
                return Some(at as usize);
            }
            next = entry.next;
        }
        None
    }

    /// Whether an entry more takes no memory.
    fn has_room(&self) -> bool {
        self.entries.len() < self.heads.len() && self.entries.len() < self.entries.capacity()
    }

    fn push(&mut self, hash: u32, row: u32) {
        if self.entries.len() == self.heads.len() {
            self.heads = vec![0; (2 * self.heads.len()).max(8)];
            for at in 0..self.entries.len() {
                self.link(at);
            }
        }
        self.entries.push(Entry { hash, next: 0, row });
        self.link(self.entries.len() - 1);
    }

    fn link(&mut self, at: usize) {
        let entry = &mut self.entries[at];
        let bucket = entry.hash as usize & (self.heads.len() - 1);
        entry.next = core::mem::replace(&mut self.heads[bucket], at as u32 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Prng;
    use std::collections::BTreeMap;

    /// Few bits, so that many keys share a hash.
    fn hash_of(key: u64) -> u32 {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 & 0xff00_3fff
    }

    #[test]
    fn a_table_finds_what_was_put_into_it() {
        let mut table = KeyTable::default();
        let mut bytes = 0;
        let mut prng = Prng::new(7);
        let keys: Vec<u64> = (0..100_000).map(|_| prng.below(60_000)).collect();
        let mut last = BTreeMap::new();
        for (row, key) in keys.iter().enumerate() {
            let is_key = |other: u32| keys[other as usize] == *key;
            let (before, grown) = table.put(hash_of(*key), row as u32, is_key);
            assert_eq!(before, last.insert(*key, row as u32));
            bytes += grown;
        }
        for key in 0..60_000 {
            let found = table.find(hash_of(key), |row| keys[row as usize] == key);
            assert_eq!(found, last.get(&key).copied());
        }
        assert_eq!(table.len(), last.len());
        let held = table.bytes();
        assert!(bytes >= held, "{bytes} {held}");
        while !table.is_empty() {
            let before = table.len();
            table.shrink(1_000);
            assert!(table.len() < before);
        }
    }

    #[test]
    fn a_table_finds_what_was_noted_and_linked() {
        let mut prng = Prng::new(8);
        for rows in [0, 1, 7, 5_000, 50_000] {
            let keys: Vec<u64> = (0..rows).map(|_| prng.below(rows / 2 + 1)).collect();
            let mut table = KeyTable::for_rows(keys.len());
            let mut bytes = 0;
            let mut expected = BTreeMap::new();
            let mut pairs = Vec::new();
            for (row, key) in keys.iter().enumerate() {
                bytes += table.note(hash_of(*key), row as u32);
                if let Some(before) = expected.insert(*key, row as u32) {
                    pairs.push((before, row as u32));
                }
            }
            let mut linking = Linking::default();
            let mut met = Vec::new();
            loop {
                let (done, grown) = table.link(&mut linking, 100, |before, row| {
                    let same = keys[before as usize] == keys[row as usize];
                    if same {
                        met.push((before, row));
                    }
                    same
                });
                bytes += grown;
                assert!(done <= 300, "{done}");
                if done == 0 {
                    break;
                }
            }
            met.sort_unstable();
            pairs.sort_unstable();
            assert_eq!(met, pairs);
            assert_eq!(table.len(), expected.len());
            assert_eq!(table.bytes(), bytes);
            let asked: Vec<u64> = (0..rows + 3).collect();
            let hashes = asked.iter().map(|key| (key % 5 > 0).then(|| hash_of(*key)));
            let hashes: Vec<Option<u32>> = hashes.collect();
            let mut found = vec![9];
            let is_key = |place: usize, row: u32| keys[row as usize] == asked[place];
            table.find_all(&hashes, is_key, &mut found);
            let wanted = asked.iter().map(|key| match key % 5 {
                0 => 0,
                _ => expected.get(key).map_or(0, |row| row + 1),
            });
            assert_eq!(found, wanted.collect::<Vec<u32>>());
        }
    }
}
