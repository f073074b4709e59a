//! A list and a queue that grow and shrink in pieces of some kilobytes.
//!
//! A `Vec` of millions of entries stops its shard for tens of milliseconds when it grows (all of it
//! moves) and when it is freed (the system takes hundreds of megabytes back at once). These never
//! move an entry, and give memory back piece by piece as they get shorter.
//!
//! Is not: cheaper for a few entries. The first piece of a list grows as a `Vec` does.

use alloc::collections::VecDeque;
use alloc::vec::{self, Vec};
use core::iter::{Chain, Flatten};
use core::ops::{Index, IndexMut};
use core::slice;

/// Bytes of a piece, at most (more only for entries that are larger themselves).
const PIECE_BYTES: usize = 32 << 10;

/// Entries of a piece: a power of two.
const fn piece_len<T>() -> usize {
    let size = if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    };
    let most = if size < PIECE_BYTES {
        PIECE_BYTES / size
    } else {
        1
    };
    1 << most.ilog2()
}

/// A list of any length. Every piece but the last one is full.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    /// The first piece: it grows as a `Vec` does, and keeps its memory.
    first: Vec<T>,
    /// Further ones; none is empty.
    rest: Vec<Vec<T>>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces {
            first: Vec::new(),
            rest: Vec::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for Pieces<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for Pieces<T> {}

impl<T> Pieces<T> {
    const LEN: usize = piece_len::<T>();

    /// An empty list; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        match self.rest.last() {
            None => self.first.len(),
            Some(last) => self.rest.len() * Self::LEN + last.len(),
        }
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push(&mut self, entry: T) {
        match self.first.len() < Self::LEN {
            true => self.first.push(entry),
            false => self.push_behind(entry),
        }
    }

    /// As [`Pieces::push`] if the first piece is full.
    fn push_behind(&mut self, entry: T) {
        match self.rest.last_mut() {
            Some(last) if last.len() < Self::LEN => last.push(entry),
            Some(_) | None => {
                let mut piece = Vec::with_capacity(Self::LEN);
                piece.push(entry);
                self.rest.push(piece);
            }
        }
    }

    /// Takes the last entry out.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let Some(last) = self.rest.last_mut() else {
            return self.first.pop();
        };
        let entry = last.pop();
        if last.is_empty() {
            self.rest.pop();
        }
        entry
    }

    /// Removes all entries from the one at `len` on.
    pub fn truncate(&mut self, len: usize) {
        if len <= Self::LEN {
            self.rest.clear();
            self.first.truncate(len);
            return;
        }
        let pieces = (len - 1) / Self::LEN;
        self.rest.truncate(pieces);
        if self.rest.len() == pieces
            && let Some(last) = self.rest.last_mut()
        {
            last.truncate(len - pieces * Self::LEN);
        }
    }

    /// Takes all entries out; the first piece keeps its memory.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        let rest = core::mem::take(&mut self.rest).into_iter().flatten();
        self.first.drain(..).chain(rest)
    }

    /// Removes all entries but those of which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        if self.rest.is_empty() {
            self.first.retain(keep);
            return;
        }
        let whole = core::mem::take(self);
        self.extend(whole.into_iter().filter(|entry| keep(entry)));
    }

    /// The entry at `at`.
    pub fn get(&self, at: usize) -> Option<&T> {
        match (at / Self::LEN).checked_sub(1) {
            None => self.first.get(at),
            Some(piece) => self.rest.get(piece)?.get(at % Self::LEN),
        }
    }

    /// The last entry.
    pub fn last(&self) -> Option<&T> {
        self.rest.last().unwrap_or(&self.first).last()
    }

    /// All entries, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.first.iter().chain(self.rest.iter().flatten()))
    }

    /// All entries, to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let rest = self.rest.iter_mut().flatten();
        self.first.iter_mut().chain(rest)
    }

    /// Bytes of memory that the entries take, spare places included.
    pub fn capacity_bytes(&self) -> usize {
        let entries = self.first.capacity() + self.rest.len() * Self::LEN;
        entries * size_of::<T>() + self.rest.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        self.get(at).expect("an entry that there is")
    }
}

impl<T> IndexMut<usize> for Pieces<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        match (at / Self::LEN).checked_sub(1) {
            None => &mut self.first[at],
            Some(piece) => &mut self.rest[piece][at % Self::LEN],
        }
    }
}

impl<T> Extend<T> for Pieces<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut all = Pieces::new();
        all.extend(entries);
        all
    }
}

/// Goes over the entries of [`Pieces`].
#[derive(Clone, Debug)]
pub struct Iter<'a, T>(Chain<slice::Iter<'a, T>, Flatten<slice::Iter<'a, Vec<T>>>>);

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.0.next()
    }
}

impl<'a, T> DoubleEndedIterator for Iter<'a, T> {
    fn next_back(&mut self) -> Option<&'a T> {
        self.0.next_back()
    }
}

impl<'a, T> IntoIterator for &'a Pieces<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Takes the entries out; what was a piece is freed when its last entry is taken.
impl<T> IntoIterator for Pieces<T> {
    type Item = T;
    type IntoIter = Chain<vec::IntoIter<T>, Flatten<vec::IntoIter<Vec<T>>>>;

    fn into_iter(self) -> Self::IntoIter {
        let rest = self.rest.into_iter().flatten();
        self.first.into_iter().chain(rest)
    }
}

/// A queue of any length. No piece is empty but the only one.
#[derive(Debug)]
pub struct PieceQueue<T> {
    pieces: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> Default for PieceQueue<T> {
    fn default() -> Self {
        PieceQueue {
            pieces: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> PieceQueue<T> {
    const LEN: usize = piece_len::<T>();

    /// An empty queue; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry at the end.
    #[inline]
    pub fn push_back(&mut self, entry: T) {
        self.len += 1;
        match self.pieces.back_mut() {
            Some(last) if last.len() < Self::LEN => last.push_back(entry),
            _ => self.push_piece(entry),
        }
    }

    /// As [`PieceQueue::push_back`] if there is no piece with a free place.
    #[cold]
    fn push_piece(&mut self, entry: T) {
        let mut piece = match self.pieces.is_empty() {
            true => VecDeque::new(),
            false => VecDeque::with_capacity(Self::LEN),
        };
        piece.push_back(entry);
        self.pieces.push_back(piece);
    }

    /// The first entry.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.pieces.front()?.front()
    }

    /// Takes the first entry out.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.pieces.front_mut()?;
        let entry = first.pop_front()?;
        self.len -= 1;
        if first.is_empty() && self.pieces.len() > 1 {
            self.pieces.pop_front();
        }
        Some(entry)
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    /// Large entries, so that a piece has a few of them.
    type Entry = [u64; 500];

    fn entry(number: u64) -> Entry {
        [number; 500]
    }

    #[test]
    fn pieces_are_a_list() {
        assert_eq!(Pieces::<Entry>::LEN, 8);
        for seed in 0..40 {
            let mut prng = Prng::new(seed);
            let (mut list, mut model) = (Pieces::new(), Vec::new());
            for round in 0..400 {
                match prng.below(8) {
                    0 => assert_eq!(list.pop(), model.pop()),
                    1 => {
                        let len = prng.below(model.len() as u64 + 40) as usize;
                        list.truncate(len);
                        model.truncate(len);
                    }
                    2 if !model.is_empty() => {
                        let at = prng.below(model.len() as u64) as usize;
                        list[at] = entry(round);
                        model[at] = entry(round);
                    }
                    _ => {
                        list.push(entry(round));
                        model.push(entry(round));
                    }
                }
                assert_eq!(
                    (list.len(), list.is_empty()),
                    (model.len(), model.is_empty())
                );
                assert_eq!(list.last(), model.last());
                let at = prng.below(60) as usize;
                assert_eq!(list.get(at), model.get(at));
                let full = list.rest.iter().rev().skip(1);
                assert!(full.into_iter().all(|piece| piece.len() == 8));
                assert!(list.rest.is_empty() || list.first.len() == 8);
                assert!(list.rest.iter().all(|piece| !piece.is_empty()));
            }
            assert!(list.iter().eq(&model) && list.iter().rev().eq(model.iter().rev()));
            assert!(
                list.iter_mut()
                    .map(|entry| *entry)
                    .eq(model.iter().copied())
            );
            assert_eq!(list, model.iter().copied().collect());
            list.retain(|entry| entry[0] % 3 > 0);
            model.retain(|entry| entry[0] % 3 > 0);
            assert!(list.capacity_bytes() >= size_of_val::<[Entry]>(&model));
            assert!(list.clone().into_iter().eq(model.iter().copied()));
            assert!(list.drain().eq(model) && list.is_empty());
        }
    }

    #[test]
    fn a_queue_of_pieces_is_a_queue() {
        for seed in 0..40 {
            let mut prng = Prng::new(seed);
            let (mut queue, mut model) = (PieceQueue::new(), VecDeque::new());
            for round in 0..600 {
                // It gets longer in the first half, and empty in the second.
                if prng.below(600) > round {
                    queue.push_back(entry(round));
                    model.push_back(entry(round));
                } else {
                    assert_eq!(queue.pop_front(), model.pop_front());
                }
                assert_eq!(
                    (queue.len(), queue.is_empty()),
                    (model.len(), model.is_empty())
                );
                assert_eq!(queue.front(), model.front());
                assert!(queue.iter().eq(&model));
            }
        }
    }

    /// What is freed or allocated at once is a piece.
    #[test]
    fn a_piece_is_small() {
        assert_eq!((piece_len::<u8>(), piece_len::<()>()), (32 << 10, 32 << 10));
        assert_eq!(
            (piece_len::<[u8; 24]>(), piece_len::<[u8; 40]>()),
            (1024, 512)
        );
        assert_eq!(piece_len::<[u8; 100_000]>(), 1);
        let mut list = Pieces::new();
        list.extend(0..100_000u64);
        assert!(list.rest.iter().all(|piece| piece.capacity() == 4096));
        let mut queue = PieceQueue::new();
        (0..100_000u64).for_each(|entry| queue.push_back(entry));
        assert!(queue.pieces.iter().all(|piece| piece.capacity() <= 8192));
        while queue.pop_front().is_some() {}
        assert_eq!((queue.pieces.len(), queue.len()), (1, 0));
    }
}
