//! Leaves: up to 64 rows in key order, in four parallel arrays and one byte buffer.
//!
//! A row costs no allocation of its own. Its key (if longer than 8 bytes) and value lie together
//! in `bytes`, in the order of arrival; a row that moves leaves garbage, and the buffer is
//! rewritten when a quarter of it is garbage.

use super::chain::{Chain, Version};
use super::head::{head_of, heads_below};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::Ts;
use core::cmp::Ordering;

/// Largest number of rows of one leaf: enough that inner pages are few, and stay cached.
pub(crate) const LEAF_ROWS_MAX: usize = 64;
/// Bytes above which a leaf splits at the next insert even if it has few rows, so that rewriting
/// its buffer takes only microseconds.
const LEAF_BYTES_MAX: usize = 64 << 10;
/// Bytes of the longest key that lives in the head alone.
const HEAD_BYTES: usize = 8;
/// Least growth of the buffer, in bytes. It grows by an eighth, not by doubling: unused capacity
/// counts as cost per row.
const GROWTH_BYTES_MIN: usize = 256;

const TOMBSTONE: u8 = 1;
const QUEUED: u8 = 2;

/// Where one row lies in its leaf.
#[derive(Clone, Copy, Default)]
struct Span {
    offset: u32,
    value_len: u32,
    key_len: u16,
    /// Position in `chains` plus 1; 0 if there are no older versions.
    chain: u8,
    flags: u8,
}

impl Span {
    fn stored_key_len(&self) -> usize {
        let len = usize::from(self.key_len);
        if len > HEAD_BYTES { len } else { 0 }
    }
    fn stored_len(&self) -> usize {
        self.stored_key_len() + self.value_len as usize
    }
}

/// Up to [`LEAF_ROWS_MAX`] rows in key order.
pub(crate) struct Leaf<S> {
    heads: [u64; LEAF_ROWS_MAX],
    stamps: [Ts; LEAF_ROWS_MAX],
    spans: [Span; LEAF_ROWS_MAX],
    states: [S; LEAF_ROWS_MAX],
    count: usize,
    /// Bytes of the buffer that belong to no row.
    garbage: usize,
    bytes: Vec<u8>,
    chains: Vec<Chain>,
}

impl<S: Default> Leaf<S> {
    pub(crate) fn new() -> Leaf<S> {
        Leaf {
            heads: [u64::MAX; LEAF_ROWS_MAX],
            stamps: [Ts::ZERO; LEAF_ROWS_MAX],
            spans: [Span::default(); LEAF_ROWS_MAX],
            states: core::array::from_fn(|_| S::default()),
            count: 0,
            garbage: 0,
            bytes: Vec::new(),
            chains: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The position of `key`, or where it would be inserted. `head` is its [`head_of`].
    #[inline]
    pub(crate) fn search(&self, head: u64, key: &[u8]) -> Result<usize, usize> {
        let first = heads_below(&self.heads, head).min(self.count);
        if first == self.count || self.heads[first] != head {
            return Err(first);
        }
        let run = self.heads[first..self.count]
            .iter()
            .take_while(|&&other| other == head)
            .count();
        let (mut low, mut high) = (first, first + run);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.compare_tail(middle, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Compares row `i` with `key`, given that their heads are equal. If one of them is no longer
    /// than the head, it is a prefix of the other, up to zero bytes, so the lengths decide.
    fn compare_tail(&self, i: usize, key: &[u8]) -> Ordering {
        let span = &self.spans[i];
        let len = usize::from(span.key_len);
        if len <= HEAD_BYTES || key.len() <= HEAD_BYTES {
            return len.cmp(&key.len());
        }
        let start = span.offset as usize;
        self.bytes[start + HEAD_BYTES..start + len].cmp(&key[HEAD_BYTES..])
    }

    /// The key of row `i`; `scratch` holds it if it is short.
    pub(crate) fn key<'a>(&'a self, i: usize, scratch: &'a mut [u8; 8]) -> &'a [u8] {
        let span = &self.spans[i];
        let len = usize::from(span.key_len);
        if len <= HEAD_BYTES {
            *scratch = self.heads[i].to_be_bytes();
            return &scratch[..len];
        }
        let start = span.offset as usize;
        &self.bytes[start..start + len]
    }

    pub(crate) fn key_len(&self, i: usize) -> usize {
        usize::from(self.spans[i].key_len)
    }

    /// Commit timestamp of the newest version of row `i`.
    #[inline]
    pub(crate) fn stamp(&self, i: usize) -> Ts {
        self.stamps[i]
    }

    /// The newest value of row `i`; `None` is a tombstone.
    #[inline]
    pub(crate) fn value(&self, i: usize) -> Option<&[u8]> {
        let span = &self.spans[i];
        if span.flags & TOMBSTONE != 0 {
            return None;
        }
        let start = span.offset as usize + span.stored_key_len();
        Some(&self.bytes[start..start + span.value_len as usize])
    }

    /// The newest version of row `i` that is not above `at`; the value is `None` for a tombstone.
    #[inline]
    pub(crate) fn version(&self, i: usize, at: Ts) -> Option<(Ts, Option<&[u8]>)> {
        if self.stamps[i] <= at {
            return Some((self.stamps[i], self.value(i)));
        }
        self.chain(i)?.at(at)
    }

    pub(crate) fn state(&self, i: usize) -> &S {
        &self.states[i]
    }

    pub(crate) fn state_mut(&mut self, i: usize) -> &mut S {
        &mut self.states[i]
    }

    /// Older versions of row `i`.
    pub(crate) fn chain(&self, i: usize) -> Option<&Chain> {
        self.spans[i]
            .chain
            .checked_sub(1)
            .map(|chain| &self.chains[usize::from(chain)])
    }

    pub(crate) fn is_queued(&self, i: usize) -> bool {
        self.spans[i].flags & QUEUED != 0
    }

    pub(crate) fn set_queued(&mut self, i: usize, queued: bool) {
        let flags = &mut self.spans[i].flags;
        *flags = if queued {
            *flags | QUEUED
        } else {
            *flags & !QUEUED
        };
    }

    /// Makes the newest version of row `i` an older one, before [`Leaf::overwrite`] replaces it.
    pub(crate) fn keep_newest(&mut self, i: usize) {
        let version = Version {
            commit_ts: self.stamps[i],
            value: self.value(i).map(Box::<[u8]>::from),
        };
        let chain = match self.spans[i].chain {
            0 => {
                let chain = self.free_chain();
                self.spans[i].chain = chain as u8 + 1;
                chain
            }
            chain => usize::from(chain) - 1,
        };
        self.chains[chain].push(version);
    }

    fn free_chain(&mut self) -> usize {
        match self.chains.iter().position(Chain::is_empty) {
            Some(chain) => chain,
            None => {
                self.chains.push(Chain::default());
                self.chains.len() - 1
            }
        }
    }

    /// Drops the older versions of row `i` that no reader at or above `horizon` sees. Returns
    /// their number and bytes.
    pub(crate) fn prune(&mut self, i: usize, horizon: Ts) -> (usize, usize) {
        let Some(chain) = self.spans[i].chain.checked_sub(1) else {
            return (0, 0);
        };
        let newest = self.stamps[i];
        let chain = &mut self.chains[usize::from(chain)];
        let dropped = chain.prune(newest, horizon);
        if chain.is_empty() {
            self.spans[i].chain = 0;
            if self.chains.iter().all(Chain::is_empty) {
                self.chains = Vec::new();
            }
        }
        dropped
    }

    /// Gives row `i` a new newest value (`None`: tombstone); the old one is lost.
    pub(crate) fn overwrite(&mut self, i: usize, commit_ts: Ts, value: Option<&[u8]>) {
        self.stamps[i] = commit_ts;
        let span = self.spans[i];
        let bytes = value.unwrap_or_default();
        let start = span.offset as usize + span.stored_key_len();
        if bytes.len() <= span.value_len as usize {
            self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
            self.garbage += span.value_len as usize - bytes.len();
        } else {
            let key = span.offset as usize..start;
            let needed = key.len() + bytes.len();
            self.reserve(needed);
            self.spans[i].offset = buffer_offset(self.bytes.len());
            self.bytes.extend_from_within(key);
            self.bytes.extend_from_slice(bytes);
            self.garbage += span.stored_len();
        }
        let span = &mut self.spans[i];
        span.value_len = buffer_offset(bytes.len());
        span.flags = if value.is_none() {
            span.flags | TOMBSTONE
        } else {
            span.flags & !TOMBSTONE
        };
        self.compact_if_wasteful();
    }

    /// Inserts a row at position `i`, which [`Leaf::search`] returned; there must be room.
    pub(crate) fn insert(&mut self, i: usize, key: &[u8], commit_ts: Ts, value: Option<&[u8]>) {
        assert!(
            self.count < LEAF_ROWS_MAX,
            "the tree splits a full leaf first"
        );
        let end = self.count;
        self.heads.copy_within(i..end, i + 1);
        self.stamps.copy_within(i..end, i + 1);
        self.spans.copy_within(i..end, i + 1);
        self.states[i..=end].rotate_right(1);
        self.count += 1;
        self.heads[i] = head_of(key);
        self.stamps[i] = commit_ts;
        let bytes = value.unwrap_or_default();
        let span = Span {
            offset: 0,
            value_len: buffer_offset(bytes.len()),
            key_len: u16::try_from(key.len()).expect("keys are limited to 4 KiB"),
            chain: 0,
            flags: if value.is_none() { TOMBSTONE } else { 0 },
        };
        self.reserve(span.stored_len());
        self.spans[i] = Span {
            offset: buffer_offset(self.bytes.len()),
            ..span
        };
        if span.stored_key_len() > 0 {
            self.bytes.extend_from_slice(key);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes row `i`, which has no older versions.
    pub(crate) fn remove(&mut self, i: usize) {
        assert!(
            self.spans[i].chain == 0,
            "versions are pruned before their row goes"
        );
        self.garbage += self.spans[i].stored_len();
        let end = self.count;
        self.heads.copy_within(i + 1..end, i);
        self.stamps.copy_within(i + 1..end, i);
        self.spans.copy_within(i + 1..end, i);
        self.states[i..end].rotate_left(1);
        self.states[end - 1] = S::default();
        self.count -= 1;
        self.heads[self.count] = u64::MAX;
        self.compact_if_wasteful();
    }

    /// Whether the leaf must split before it takes `more` bytes.
    pub(crate) fn is_full(&self, more: usize) -> bool {
        self.count == LEAF_ROWS_MAX
            || (self.count >= 2 && self.live_bytes() + more > LEAF_BYTES_MAX)
    }

    pub(crate) fn live_bytes(&self) -> usize {
        self.bytes.len() - self.garbage
    }

    /// Whether both leaves fit well into one.
    pub(crate) fn fits_with(&self, other: &Leaf<S>) -> bool {
        self.count + other.count <= LEAF_ROWS_MAX * 3 / 4
            && self.live_bytes() + other.live_bytes() <= LEAF_BYTES_MAX / 2
    }

    /// Moves the rows from position `at` on to a new leaf.
    pub(crate) fn split_off(&mut self, at: usize) -> Box<Leaf<S>> {
        let mut right = Box::new(Leaf::new());
        right.take_from(self, at);
        self.rewrite();
        right
    }

    /// Moves all rows of `right`, whose keys lie above, to the end of this leaf.
    pub(crate) fn append(&mut self, mut right: Box<Leaf<S>>) {
        self.take_from(&mut right, 0);
    }

    fn take_from(&mut self, from: &mut Leaf<S>, at: usize) {
        let moved: usize = from.spans[at..from.count]
            .iter()
            .map(Span::stored_len)
            .sum();
        self.bytes.reserve_exact(moved);
        for i in at..from.count {
            let span = from.spans[i];
            let start = span.offset as usize;
            let to = self.count;
            self.heads[to] = from.heads[i];
            self.stamps[to] = from.stamps[i];
            self.states[to] = core::mem::take(&mut from.states[i]);
            let chain = match span.chain {
                0 => 0,
                chain => {
                    let own = self.free_chain();
                    self.chains[own] = core::mem::take(&mut from.chains[usize::from(chain) - 1]);
                    own as u8 + 1
                }
            };
            self.spans[to] = Span {
                offset: buffer_offset(self.bytes.len()),
                chain,
                ..span
            };
            self.bytes
                .extend_from_slice(&from.bytes[start..start + span.stored_len()]);
            self.count += 1;
            from.heads[i] = u64::MAX;
        }
        from.garbage += moved;
        from.count = at;
    }

    fn reserve(&mut self, needed: usize) {
        if self.bytes.capacity() - self.bytes.len() < needed {
            let growth = (self.bytes.len() / 8).max(GROWTH_BYTES_MIN).max(needed);
            self.bytes.reserve_exact(growth);
        }
    }

    fn compact_if_wasteful(&mut self) {
        if self.garbage > GROWTH_BYTES_MIN && self.garbage > self.bytes.len() / 4 {
            self.rewrite();
        }
    }

    /// Rewrites the buffer without garbage.
    fn rewrite(&mut self) {
        let mut bytes = Vec::with_capacity(self.live_bytes());
        for span in &mut self.spans[..self.count] {
            let start = span.offset as usize;
            span.offset = buffer_offset(bytes.len());
            bytes.extend_from_slice(&self.bytes[start..start + span.stored_len()]);
        }
        self.bytes = bytes;
        self.garbage = 0;
    }

    /// Heap and own bytes of the leaf, spare capacity included.
    pub(crate) fn footprint_bytes(&self) -> usize {
        size_of::<Self>()
            + self.bytes.capacity()
            + self
                .chains
                .iter()
                .map(Chain::footprint_bytes)
                .sum::<usize>()
    }

    /// Checks everything that must hold inside one leaf.
    pub(crate) fn validate(&self) {
        let mut scratch = ([0; 8], [0; 8]);
        for i in 1..self.count {
            let (left, right) = (self.key(i - 1, &mut scratch.0), self.key(i, &mut scratch.1));
            assert!(left < right, "keys ascend");
        }
        let mut chains = 0u64;
        for i in 0..self.count {
            assert_eq!(
                self.heads[i],
                head_of(self.key(i, &mut scratch.0)),
                "heads match keys"
            );
            if let Some(chain) = self.chain(i) {
                assert!(!chain.is_empty(), "a chain has a version");
                chain.validate(self.stamps[i]);
                let bit = 1 << (self.spans[i].chain - 1);
                assert!(chains & bit == 0, "a chain has one row");
                chains |= bit;
            }
            let due = self.chain(i).is_some() || self.value(i).is_none();
            assert!(
                !due || self.is_queued(i),
                "a row with history waits for collection"
            );
        }
        let live: usize = self.spans[..self.count].iter().map(Span::stored_len).sum();
        assert_eq!(live, self.live_bytes(), "garbage is counted");
        assert!(
            self.heads[self.count..]
                .iter()
                .all(|&head| head == u64::MAX)
        );
        let used = self.chains.iter().filter(|chain| !chain.is_empty()).count();
        assert_eq!(used, chains.count_ones() as usize, "no chain is lost");
    }
}

fn buffer_offset(len: usize) -> u32 {
    u32::try_from(len).expect("64 rows of at most a record each stay below 4 GiB")
}
