//! Collections that may have millions of entries: their memory is given back in slices, also if
//! the statement fails or is cancelled.

use crate::port::Port;
use base::Pieces;
use expr::hashed::{Flat, Groups, KeyTable};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

/// Largest number of entries of a collection that is freed at once.
const ENTRIES_MAX: usize = 1_000;

/// What can be freed bit by bit.
pub(super) trait Shrink: Default + 'static {
    fn entries(&self) -> usize;
    /// Frees a limited number of entries.
    fn shrink(&mut self, most: usize);
}

impl<T: 'static> Shrink for Pieces<T> {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        self.truncate(self.len().saturating_sub(most));
    }
}

impl<T: 'static> Shrink for Vec<T> {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        self.truncate(self.len().saturating_sub(most));
    }
}

impl<T: Ord + 'static> Shrink for BTreeSet<T> {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        (0..most.min(self.len())).for_each(|_| drop(self.pop_last()));
    }
}

impl<K: Ord + 'static, V: 'static> Shrink for BTreeMap<K, V> {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        (0..most.min(self.len())).for_each(|_| drop(self.pop_last()));
    }
}

impl<T: 'static> Shrink for Flat<T> {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        Flat::shrink(self, most);
    }
}

impl Shrink for KeyTable {
    fn entries(&self) -> usize {
        self.len()
    }
    fn shrink(&mut self, most: usize) {
        KeyTable::shrink(self, most);
    }
}

impl<S: 'static> Shrink for Groups<S> {
    fn entries(&self) -> usize {
        self.held()
    }
    fn shrink(&mut self, most: usize) {
        Groups::shrink(self, most);
    }
}

/// A collection that may be long.
pub(super) struct Long<'a, C: Shrink> {
    port: &'a dyn Port,
    inner: C,
}

impl<'a, C: Shrink> Long<'a, C> {
    pub(super) fn new(port: &'a dyn Port, inner: C) -> Long<'a, C> {
        Long { port, inner }
    }
}

impl<C: Shrink> Deref for Long<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.inner
    }
}

impl<C: Shrink> DerefMut for Long<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.inner
    }
}

impl<C: Shrink> Drop for Long<'_, C> {
    fn drop(&mut self) {
        if self.inner.entries() <= ENTRIES_MAX {
            return;
        }
        let mut inner = core::mem::take(&mut self.inner);
        self.port.discard(Box::new(move |most| {
            inner.shrink(most);
            inner.entries() == 0
        }));
    }
}
