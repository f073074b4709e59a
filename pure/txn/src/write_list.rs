//! The writes of one transaction on one shard, as they are promised or committed: ascending, in one
//! list, or in slices if they are many.
//!
//! A turn works on one slice, and each is freed by itself: one list of millions of writes would
//! give hundreds of megabytes back to the system at once.

use crate::bulk::SLICE_UNITS;
use alloc::sync::Arc;
use alloc::vec::{self, Vec};
use base::Key;
use journal::{Writes, WritesRef};
use store::Write;

/// Ascending writes, one for each key.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WriteList {
    /// The first slice. It is nearly always the only one, and then no list of slices is needed.
    first: Writes,
    /// Further slices; none is empty. A checkpoint shares them until it has written them.
    rest: Vec<Arc<Writes>>,
    len: usize,
}

impl WriteList {
    /// The writes of a small transaction, in one slice.
    pub fn one(writes: Writes) -> WriteList {
        WriteList {
            len: writes.len(),
            first: writes,
            rest: Vec::new(),
        }
    }

    /// Adds a slice behind the others; its keys lie above theirs.
    pub fn push(&mut self, slice: Writes) {
        self.len += slice.len();
        match self.first.is_empty() {
            true => self.first = slice,
            false if slice.is_empty() => {}
            false => self.rest.push(Arc::new(slice)),
        }
    }

    /// Number of writes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of slices.
    pub fn slice_count(&self) -> usize {
        1 + self.rest.len()
    }

    /// The slice with this number.
    pub fn slice(&self, number: usize) -> WritesRef<'_> {
        match number.checked_sub(1) {
            None => &self.first,
            Some(number) => &self.rest[number],
        }
    }

    /// As [`WriteList::slice`], mutable; `None`: a checkpoint shares it. Keys must not change.
    pub fn slice_mut(&mut self, number: usize) -> Option<&mut [(Key, Write)]> {
        match number.checked_sub(1) {
            None => Some(&mut self.first),
            Some(number) => Arc::get_mut(&mut self.rest[number]).map(Vec::as_mut_slice),
        }
    }

    /// All slices, for a checkpoint. Copies only the first one.
    pub fn share(&self) -> Vec<Arc<Writes>> {
        let mut shared = Vec::with_capacity(self.slice_count());
        shared.push(Arc::new(self.first.clone()));
        shared.extend(self.rest.iter().cloned());
        shared
    }

    /// All slices.
    pub fn slices(&self) -> impl Iterator<Item = WritesRef<'_>> {
        let rest = self.rest.iter().map(|slice| slice.as_slice());
        core::iter::once(self.first.as_slice()).chain(rest)
    }

    /// All writes.
    pub fn iter(&self) -> impl Iterator<Item = &(Key, Write)> {
        self.slices().flatten()
    }

    /// All writes, which must be in one slice, as those of a small transaction are.
    ///
    /// Panics if there are several.
    pub fn small(&self) -> WritesRef<'_> {
        assert!(self.rest.is_empty(), "many writes stand in chunks");
        &self.first
    }

    /// Place of the write of a key: its slice, and its index there.
    pub fn find(&self, key: &Key) -> Option<(usize, usize)> {
        let number = match self.rest.first() {
            Some(second) if second[0].0 <= *key => {
                let behind =
                    |slice: &Arc<Writes>| slice.first().is_some_and(|(first, _)| first <= key);
                self.rest.partition_point(behind)
            }
            Some(_) | None => 0,
        };
        let slice = self.slice(number);
        let at = slice.binary_search_by(|(other, _)| other.cmp(key));
        at.ok().map(|at| (number, at))
    }

    /// The write of a key.
    pub fn get(&self, key: &Key) -> Option<&Write> {
        let (number, at) = self.find(key)?;
        Some(&self.slice(number)[at].1)
    }

    /// The slices that no clone of the list shares, to be freed one by one.
    pub fn into_slices(self) -> impl Iterator<Item = Writes> {
        let rest = self.rest.into_iter();
        let rest = rest.filter_map(|slice| Arc::try_unwrap(slice).ok());
        core::iter::once(self.first).chain(rest)
    }
}

/// Cuts a long list into slices.
impl From<Writes> for WriteList {
    fn from(writes: Writes) -> WriteList {
        const ROWS: usize = SLICE_UNITS as usize;
        let mut list = WriteList::default();
        if writes.len() <= ROWS {
            list.push(writes);
            return list;
        }
        let mut writes: vec::IntoIter<(Key, Write)> = writes.into_iter();
        while writes.len() > 0 {
            list.push(writes.by_ref().take(ROWS).collect());
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use base::{IndexId, Prng, Slot};

    fn key(name: u64) -> Key {
        Key::new(IndexId(1), Slot(0), (name as u16).to_be_bytes().to_vec())
    }

    #[test]
    fn a_list_in_slices_is_a_list() {
        for seed in 0..30 {
            let mut prng = Prng::new(seed);
            let (mut list, mut model) = (WriteList::default(), BTreeMap::new());
            let mut name = 0;
            for number in 0..prng.below(8) {
                let mut slice = Writes::new();
                for _ in 0..prng.below(20) {
                    name += 1 + prng.below(3);
                    slice.push((key(name), Write::Put(vec![number as u8])));
                }
                model.extend(slice.clone());
                list.push(slice);
            }
            assert_eq!(
                (list.len(), list.is_empty()),
                (model.len(), model.is_empty())
            );
            assert!(list.iter().map(|(key, write)| (key, write)).eq(&model));
            assert_eq!(list.slices().count(), list.slice_count());
            for name in 0..name + 3 {
                assert_eq!(list.get(&key(name)), model.get(&key(name)));
                if let Some((slice, at)) = list.find(&key(name)) {
                    assert_eq!(list.slice(slice)[at].0, key(name));
                    let slice = list.slice_mut(slice).expect("nobody shares it");
                    assert_eq!(slice[at].0, key(name));
                }
            }
            let shared = list.share();
            assert!(shared.iter().flat_map(|slice| slice.iter()).eq(list.iter()));
            assert!((1..list.slice_count()).all(|slice| list.slice_mut(slice).is_none()));
            assert!(list.slice_mut(0).is_some());
            drop(shared);
            assert!(list.into_slices().flatten().eq(model));
        }
    }

    #[test]
    fn a_long_list_is_cut() {
        let writes: Writes = (0..2_500).map(|n| (key(n), Write::Delete)).collect();
        let list = WriteList::from(writes.clone());
        assert_eq!((list.len(), list.slice_count()), (2_500, 3));
        assert!(list.iter().eq(&writes));
        let few = WriteList::from(writes[..10].to_vec());
        assert_eq!(few.small(), &writes[..10]);
        assert_eq!(WriteList::one(writes.clone()).small(), writes);
    }
}
