//! Savepoints of one transaction on one shard: what brings its writes back to them.
//!
//! ```text
//! Set a    ──> images since a      of each key that is written: what was there before
//! Set b    ──> images since b
//! RollBackTo a: the images since b, then those since a, take the place of the writes
//! ```
//!
//! A key has one image per savepoint, however often it is written: memory grows with the rows that
//! are written, not with the writes.

use crate::write_set::WriteSet;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, Planted, is_planted};
use store::{Formula, Write};
use txn::Bulks;

/// A savepoint that the shard knows.
#[derive(Debug)]
struct Mark {
    number: u32,
    /// What the keys that were written since then had before; for a key without a write, the
    /// formula that changes nothing ([`nothing`]).
    images: BTreeMap<Key, Write>,
    /// Bytes that the transaction had written by then.
    bytes: usize,
}

/// The savepoints of a transaction on this shard, ascending.
#[derive(Debug, Default)]
pub(crate) struct Savepoints(Vec<Mark>);

/// Stands for no write: no operation leaves such a formula.
fn nothing() -> Write {
    Write::Formula(Formula(Vec::new()))
}

impl Savepoints {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// `key` is about to be written; `before`: its write so far. Returns the bytes of the image.
    pub(crate) fn note(&mut self, key: &Key, before: Option<&Write>) -> usize {
        let Some(mark) = self.0.last_mut() else {
            return 0;
        };
        if mark.images.contains_key(key) {
            return 0;
        }
        let image = before.cloned().unwrap_or_else(nothing);
        let size = key.bytes.len() + image.size_bytes();
        mark.images.insert(key.clone(), image);
        size
    }

    /// The write that was just made to `key`, the first one, belongs before all savepoints.
    pub(crate) fn predate(&mut self, key: &Key) {
        if let Some(mark) = self.0.last_mut() {
            mark.images.remove(key);
        }
    }

    /// Sets a savepoint ([`txn::Savepoint::Set`]). Those between `within` and it can not be gone
    /// back to any more; what they know becomes part of the one before, at most `most` images at a
    /// time. Returns whether that is done.
    pub(crate) fn set(&mut self, number: u32, within: u32, bytes: usize, most: u64) -> bool {
        let mut left = most;
        while let Some(mark) = self.0.pop_if(|mark| mark.number > within) {
            let Mark {
                number,
                mut images,
                bytes,
            } = mark;
            while let Some((key, image)) = images.pop_first() {
                if let Some(before) = self.0.last_mut() {
                    before.images.entry(key).or_insert(image);
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    self.0.push(Mark {
                        number,
                        images,
                        bytes,
                    });
                    return false;
                }
            }
        }
        self.0.push(Mark {
            number,
            images: BTreeMap::new(),
            bytes,
        });
        true
    }

    /// Goes back to savepoint `to` ([`txn::Savepoint::RollBackTo`]), at most `most` writes at a
    /// time. Returns whether that is done. `bytes`: what the transaction has written.
    pub(crate) fn roll_back(
        &mut self,
        writes: &mut WriteSet,
        bulks: &mut Bulks,
        bytes: &mut usize,
        to: u32,
        most: u64,
    ) -> bool {
        let mut left = most;
        while let Some(mark) = self.0.last_mut()
            && mark.number >= to
        {
            // From the end, where the latest rows of a load are.
            while let Some((key, image)) = mark.images.pop_last() {
                writes.remove(&key);
                if image != nothing() && !is_planted(Planted::RollBackToForgets) {
                    writes.put_back(key, image);
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    return false;
                }
            }
            *bytes = mark.bytes;
            if mark.number == to {
                return true;
            }
            self.0.pop();
        }
        assert!(
            self.0.is_empty(),
            "a shard with earlier savepoints knows {to}"
        );
        // All of it was written since.
        let (tree, lists) = writes.drain().into_parts();
        bulks.discard_parts(tree, lists);
        *bytes = 0;
        true
    }

    /// Frees at most `most` images. Returns whether all are freed.
    pub(crate) fn free(&mut self, most: u64) -> bool {
        let mut left = most;
        while let Some(mark) = self.0.last_mut() {
            while mark.images.pop_last().is_some() {
                left = left.saturating_sub(1);
                if left == 0 {
                    return false;
                }
            }
            self.0.pop();
        }
        true
    }

    /// Takes all images, to be freed.
    pub(crate) fn take_images(&mut self) -> impl Iterator<Item = BTreeMap<Key, Write>> {
        core::mem::take(&mut self.0)
            .into_iter()
            .map(|mark| mark.images)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IndexId, Prng, Slot};

    /// Random writes and savepoints, against copies of a plain map; in slices of any size.
    #[test]
    fn going_back_restores_what_was_there() {
        for seed in 0..200 {
            let mut prng = Prng::new(seed);
            let (mut writes, mut model) = (WriteSet::default(), BTreeMap::new());
            let (mut savepoints, mut bulks) = (Savepoints::default(), Bulks::default());
            // Those that can be gone back to.
            let mut live: Vec<(u32, BTreeMap<Key, Write>)> = Vec::new();
            let (mut count, mut bytes) = (0, 0);
            for round in 0..300u64 {
                let most = 1 + prng.below(5);
                match prng.below(12) {
                    0 => {
                        count += 1;
                        let within = live.last().map_or(0, |(number, _)| *number);
                        while !savepoints.set(count, within, bytes, most) {}
                        live.push((count, model.clone()));
                    }
                    1 => drop(live.pop()),
                    2 if !live.is_empty() => {
                        live.truncate(1 + prng.below(live.len() as u64) as usize);
                        let (to, then) = live.last().expect("at least one");
                        let mut back =
                            || savepoints.roll_back(&mut writes, &mut bulks, &mut bytes, *to, most);
                        while !back() {}
                        model.clone_from(then);
                    }
                    _ => {
                        let name = prng.below(40) as u8;
                        let key = Key::new(IndexId(1), Slot(u16::from(name) % 3), vec![name]);
                        let write = Write::Put(vec![round as u8]);
                        savepoints.note(&key, writes.get(&key));
                        writes.remove(&key);
                        model.remove(&key);
                        if prng.below(4) > 0 {
                            writes.put_back(key.clone(), write.clone());
                            model.insert(key, write);
                        }
                    }
                }
                let mut all: Vec<_> = writes.iter().collect();
                all.sort_by_key(|(key, _)| *key);
                assert!(all.into_iter().eq(model.iter()), "seed {seed}");
            }
            while !savepoints.free(2) {}
            assert!(savepoints.is_empty());
        }
    }

    #[test]
    fn a_shard_that_does_not_know_the_savepoint_undoes_all() {
        let (mut writes, mut savepoints) = (WriteSet::default(), Savepoints::default());
        let (mut bulks, mut bytes) = (Bulks::default(), 10);
        writes.add(Key::new(IndexId(1), Slot(0), vec![1]), Write::Delete);
        // The savepoint 2 came when there were writes, 1 before.
        assert!(savepoints.set(2, 1, bytes, 9));
        assert!(savepoints.roll_back(&mut writes, &mut bulks, &mut bytes, 1, 9));
        assert!(writes.is_empty() && savepoints.is_empty() && bytes == 0);
    }
}
