//! The store of one shard: reads at a timestamp, committed writes, counters.

use crate::expiry::{Aside, Expiry};
use crate::redo::Redone;
use crate::tree::{Bounds, Leaf, Page, Tree};
use crate::write::Write;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRange, KeyRef, PieceQueue, SLOT_COUNT, Slot, Ts};
use core::ops::ControlFlow;

/// The rows of one shard. `S` is a protocol's state beside each row; `()` takes no memory.
pub struct Store<S = ()> {
    pub(crate) indexes: BTreeMap<IndexId, IndexRows<S>>,
    /// Rows with unneeded versions or tombstones, about in the order of their timestamps.
    pub(crate) expiries: PieceQueue<Expiry>,
    /// Those of them that only readers of their own database still hold back.
    pub(crate) aside: Aside,
    /// Pages of dropped indexes, freed one by one.
    pub(crate) dropped: Vec<Page<S>>,
    pub(crate) counts: Counts,
    /// Rows whose newest version came from redone formulas. Empty but while a journal is replayed.
    pub(crate) redone: BTreeMap<Key, Redone>,
    /// Reused for the results of formulas.
    scratch: Vec<u8>,
}

/// The slots of one index; allocated when the index gets its first row here.
pub(crate) struct IndexRows<S> {
    pub(crate) slots: Vec<Option<Tree<S>>>,
}

/// Totals over the store; all of them exact.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Rows whose newest version is not a tombstone.
    pub rows: usize,
    /// Versions: newest and older ones, tombstones included.
    pub versions: usize,
    /// Key bytes once per row, and the value bytes of all versions.
    pub bytes: usize,
}

/// One version of a row, as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionRef<'a> {
    /// Timestamp of the transaction that wrote it.
    pub commit_ts: Ts,
    /// The encoded row.
    pub value: &'a [u8],
}

/// Called with key, row and commit timestamp of each row of a scan.
pub type RowVisitor<'v> = dyn FnMut(&[u8], &[u8], Ts) -> ControlFlow<()> + 'v;

/// Called with key, row and commit timestamp of each key of a scan; `None`: no reader sees a row.
pub type KeyVisitor<'v> = dyn FnMut(&[u8], Option<&[u8]>, Ts) -> ControlFlow<()> + 'v;

/// The keys that a scan still has to visit. A scan holds no borrow between calls: to go on after
/// key `k`, set `low = k, after = true` (forward) or `high = Some(k)` (reverse).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window<'a> {
    /// Lower bound, included unless `after`; empty is unbounded.
    pub low: &'a [u8],
    /// The lower bound itself is excluded.
    pub after: bool,
    /// Upper bound, excluded; `None` is unbounded.
    pub high: Option<&'a [u8]>,
    /// From the largest key to the smallest.
    pub reverse: bool,
}

impl<'a> Window<'a> {
    /// Every key, ascending.
    pub fn all() -> Window<'a> {
        Window {
            low: &[],
            after: false,
            high: None,
            reverse: false,
        }
    }
    /// The keys of `range`, ascending or descending.
    pub fn of(range: &'a KeyRange, reverse: bool) -> Window<'a> {
        Window {
            low: &range.low,
            after: false,
            high: range.high.as_deref(),
            reverse,
        }
    }
    pub(crate) fn bounds(&self) -> Bounds<'a> {
        Bounds {
            low: self.low,
            after: self.after,
            high: self.high,
        }
    }
}

impl<S> Default for Store<S> {
    fn default() -> Self {
        Store {
            indexes: BTreeMap::new(),
            expiries: PieceQueue::new(),
            aside: Aside::default(),
            dropped: Vec::new(),
            counts: Counts::default(),
            redone: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }
}

impl<S: Default> Store<S> {
    /// An empty store.
    pub fn new() -> Store<S> {
        Store::default()
    }

    #[inline]
    pub(crate) fn tree(&self, index: IndexId, slot: Slot) -> Option<&Tree<S>> {
        self.indexes.get(&index)?.slots[usize::from(slot.0)].as_ref()
    }

    #[inline]
    pub(crate) fn tree_mut(&mut self, index: IndexId, slot: Slot) -> Option<&mut Tree<S>> {
        self.indexes.get_mut(&index)?.slots[usize::from(slot.0)].as_mut()
    }

    /// The newest version of a row that is not above `at`. `None`: the row is absent there.
    #[inline]
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>, at: Ts) -> Option<VersionRef<'_>> {
        let key: KeyRef<'_> = key.into();
        let (leaf, i) = self.tree(key.index, key.slot)?.locate(key.bytes)?;
        let (commit_ts, value) = leaf.version(i, at)?;
        value.map(|value| VersionRef { commit_ts, value })
    }

    /// Commit timestamp of the newest version of a row, tombstones included. [`Ts::ZERO`] if the
    /// row was never written or its tombstone was collected.
    pub fn newest_ts<'k>(&self, key: impl Into<KeyRef<'k>>) -> Ts {
        let key: KeyRef<'_> = key.into();
        let tree = self.tree(key.index, key.slot);
        let found = tree.and_then(|tree| tree.locate(key.bytes));
        found.map_or(Ts::ZERO, |(leaf, i)| leaf.stamp(i))
    }

    /// The protocol's state beside a row; `None`: the store has no such row.
    pub fn state<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&S> {
        let key: KeyRef<'_> = key.into();
        self.tree(key.index, key.slot)?
            .locate(key.bytes)
            .map(|(leaf, i)| leaf.state(i))
    }

    /// As [`Store::state`], mutable.
    pub fn state_mut<'k>(&mut self, key: impl Into<KeyRef<'k>>) -> Option<&mut S> {
        let key: KeyRef<'_> = key.into();
        self.tree_mut(key.index, key.slot)?
            .locate_mut(key.bytes)
            .map(|(leaf, i)| leaf.state_mut(i))
    }

    /// Calls `f` with key, row and commit timestamp of every row in `window` that is visible at
    /// `at`, in the window's order, until `f` breaks. `Continue`: the window is exhausted.
    pub fn scan_next(
        &self,
        index: IndexId,
        slot: Slot,
        window: Window<'_>,
        at: Ts,
        f: &mut RowVisitor<'_>,
    ) -> ControlFlow<()> {
        self.scan_keys(index, slot, window, at, &mut |key, row, ts| match row {
            Some(row) => f(key, row, ts),
            None => ControlFlow::Continue(()),
        })
    }

    /// As [`Store::scan_next`] for all keys, also those without a row at `at`: deleted rows whose
    /// versions are still kept, and later ones. The caller counts the keys that it visits.
    pub fn scan_keys(
        &self,
        index: IndexId,
        slot: Slot,
        window: Window<'_>,
        at: Ts,
        f: &mut KeyVisitor<'_>,
    ) -> ControlFlow<()> {
        let Some(tree) = self.tree(index, slot) else {
            return ControlFlow::Continue(());
        };
        let mut scratch = [0; 8];
        tree.walk(window.bounds(), window.reverse, &mut |leaf, i| {
            let (commit_ts, value) = leaf.version(i, at).unwrap_or((Ts::ZERO, None));
            f(leaf.key(i, &mut scratch), value, commit_ts)
        })
    }

    /// Key, row and commit timestamp of the first row that [`Store::scan_next`] would visit.
    pub fn first(
        &self,
        index: IndexId,
        slot: Slot,
        window: Window<'_>,
        at: Ts,
    ) -> Option<(Vec<u8>, Vec<u8>, Ts)> {
        let mut found = None;
        let _ = self.scan_next(index, slot, window, at, &mut |key, row, ts| {
            found = Some((key.to_vec(), row.to_vec(), ts));
            ControlFlow::Break(())
        });
        found
    }

    /// The first slot from `from` on in which `index` has rows (perhaps only tombstones).
    pub fn next_slot(&self, index: IndexId, from: Slot) -> Option<Slot> {
        let slots = &self.indexes.get(&index)?.slots;
        let start = usize::from(from.0).min(slots.len());
        let found = slots[start..].iter().position(Option::is_some)?;
        Some(Slot((start + found) as u16))
    }

    /// Applies one committed write.
    ///
    /// `commit_ts` is above every version of the row. `horizon`: no read below it is answered any
    /// more, so versions that only such reads could see are dropped ([`Ts::MAX`]: only the
    /// newest version matters).
    ///
    /// Panics if the write contradicts the store: an insert of a present row, a delete or formula
    /// of an absent one, a formula that does not fold. The protocol must have checked that.
    pub fn apply<'k>(
        &mut self,
        key: impl Into<KeyRef<'k>>,
        write: &Write,
        commit_ts: Ts,
        horizon: Ts,
    ) {
        let key: KeyRef<'_> = key.into();
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        let present = || {
            let newest = self.get(key, Ts::MAX);
            newest.map(|version| version.value)
        };
        let value = match write {
            Write::Insert(row) | Write::Put(row) => Some(row.as_slice()),
            Write::Delete => {
                assert!(present().is_some(), "a delete needs its row present");
                None
            }
            Write::Formula(formula) => {
                let row = present().expect("a formula needs its row present");
                formula
                    .fold(row, &mut scratch)
                    .expect("a formula is checked before it commits");
                Some(scratch.as_slice())
            }
        };
        let inserts = matches!(write, Write::Insert(_));
        let was_present = self.write_version(key, commit_ts, value, horizon);
        assert!(!(inserts && was_present), "an insert needs its row absent");
        self.scratch = scratch;
    }

    /// Sets the newest version of a row from a checkpoint or from another shard, unless the row has
    /// one at or above it. `value == None` is a tombstone.
    pub fn load(&mut self, row: crate::CheckpointRow<'_>) {
        let key = KeyRef::new(row.index, row.slot, row.key);
        if self.newest_ts(key) < row.commit_ts {
            self.write_version(key, row.commit_ts, row.value, Ts::MAX);
        }
    }

    /// Makes `value` the newest version of a row. Returns whether the row was present.
    pub(crate) fn write_version(
        &mut self,
        key: KeyRef<'_>,
        commit_ts: Ts,
        value: Option<&[u8]>,
        horizon: Ts,
    ) -> bool {
        let KeyRef { index, slot, bytes } = key;
        let rows = self.indexes.entry(index).or_insert_with(IndexRows::new);
        let tree = rows.slots[usize::from(slot.0)].get_or_insert_with(Tree::new);
        let counts = &mut self.counts;
        counts.rows += usize::from(value.is_some());
        counts.versions += 1;
        counts.bytes += value.map_or(0, <[u8]>::len);
        let over = |leaf: &mut Leaf<S>, i: usize| {
            let present = leaf.value(i).is_some();
            let due = supersede(leaf, i, commit_ts, value, horizon, counts);
            (due, present)
        };
        let (due, present) = match tree.write(bytes, commit_ts, value, over) {
            Some(superseded) => superseded,
            None => {
                self.counts.bytes += bytes.len();
                if value.is_none() {
                    let (leaf, i) = tree.locate_mut(bytes).expect("just inserted");
                    leaf.set_queued(i, true);
                }
                (value.is_none(), false)
            }
        };
        if due {
            self.expiries.push_back(Expiry {
                commit_ts,
                index,
                slot,
                key: bytes.into(),
            });
        }
        present
    }

    /// Forgets all rows of `index`. No reader sees them from now on. [`Store::free_dropped`] frees
    /// their memory; until then they count in [`Store::counts`].
    pub fn drop_index(&mut self, index: IndexId) {
        let rows = self.indexes.remove(&index);
        let trees = rows.into_iter().flat_map(|rows| rows.slots).flatten();
        self.dropped.extend(trees.map(Tree::into_root));
    }

    /// Whether [`Store::free_dropped`] has rows to free.
    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Frees rows of dropped indexes: at most a page more than `rows`. Returns their number.
    pub fn free_dropped(&mut self, rows: usize) -> usize {
        let mut freed = 0;
        while freed < rows
            && let Some(page) = self.dropped.pop()
        {
            match page {
                Page::Leaf(leaf) => {
                    self.counts.remove(leaf_counts(&leaf));
                    freed += leaf.count();
                }
                Page::Inner(mut inner) => self.dropped.extend(inner.take_children()),
            }
        }
        freed
    }

    /// Totals over all rows, also of dropped indexes until those are freed.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The indexes that have rows.
    pub fn indexes(&self) -> Vec<IndexId> {
        self.indexes.keys().copied().collect()
    }

    /// Totals over the rows of one index, and the number of slots that have any. Walks them all:
    /// for reports.
    pub fn index_counts(&self, index: IndexId) -> (Counts, usize) {
        let mut counts = Counts::default();
        let slots = self.indexes.get(&index).map_or(&[][..], |rows| &rows.slots);
        let trees = slots.iter().flatten();
        let used = trees.clone().count();
        trees.for_each(|tree| tree.each_leaf(&mut |leaf| counts.add(leaf_counts(leaf))));
        (counts, used)
    }

    /// Number of rows of one index, with deleted ones until they are collected. Reads a counter of
    /// each slot.
    pub fn rows_about(&self, index: IndexId) -> usize {
        let slots = self.indexes.get(&index).map_or(&[][..], |rows| &rows.slots);
        slots.iter().flatten().map(Tree::rows).sum()
    }

    /// Bytes of memory that the rows occupy, spare capacity included. Walks the store: for tests
    /// and reports.
    pub fn footprint_bytes(&self) -> usize {
        let mut bytes = 0;
        for tree in self
            .indexes
            .values()
            .flat_map(|rows| rows.slots.iter().flatten())
        {
            tree.each_leaf(&mut |leaf| bytes += leaf.footprint_bytes());
        }
        bytes
    }

    /// Checks every invariant of the store; panics if one is broken. For tests and simulation.
    pub fn validate(&self) {
        let mut counts = Counts::default();
        for tree in self
            .indexes
            .values()
            .flat_map(|rows| rows.slots.iter().flatten())
        {
            tree.validate();
            assert!(tree.rows() > 0, "an empty tree is removed");
            tree.each_leaf(&mut |leaf| counts.add(leaf_counts(leaf)));
        }
        for page in &self.dropped {
            page.each_leaf(&mut |leaf| counts.add(leaf_counts(leaf)));
        }
        assert_eq!(counts, self.counts, "counters equal a recount");
        self.validate_expiries();
    }
}

impl<S> IndexRows<S> {
    fn new() -> IndexRows<S> {
        let mut slots = Vec::new();
        slots.resize_with(usize::from(SLOT_COUNT), || None);
        IndexRows { slots }
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.rows += other.rows;
        self.versions += other.versions;
        self.bytes += other.bytes;
    }
    fn remove(&mut self, other: Counts) {
        self.rows -= other.rows;
        self.versions -= other.versions;
        self.bytes -= other.bytes;
    }
}

/// Writes a new newest version over row `i`. Returns whether the row must join the queue.
fn supersede<S: Default>(
    leaf: &mut Leaf<S>,
    i: usize,
    commit_ts: Ts,
    value: Option<&[u8]>,
    horizon: Ts,
    counts: &mut Counts,
) -> bool {
    assert!(
        leaf.stamp(i) < commit_ts,
        "versions of a row ascend in commit timestamp"
    );
    let old_bytes = leaf.value(i).map(<[u8]>::len);
    counts.rows -= usize::from(old_bytes.is_some());
    // A reader between the old and the new version may still come. An absent row needs no version.
    let visible = commit_ts > horizon && (old_bytes.is_some() || leaf.chain(i).is_some());
    if visible {
        leaf.keep_newest(i);
    } else {
        counts.versions -= 1;
        counts.bytes -= old_bytes.unwrap_or(0);
    }
    leaf.overwrite(i, commit_ts, value);
    let (versions, bytes) = leaf.prune(i, horizon);
    counts.versions -= versions;
    counts.bytes -= bytes;
    let due = value.is_none() || leaf.chain(i).is_some();
    let joins = due && !leaf.is_queued(i);
    if joins {
        leaf.set_queued(i, true);
    }
    joins
}

fn leaf_counts<S: Default>(leaf: &Leaf<S>) -> Counts {
    let mut counts = Counts::default();
    for i in 0..leaf.count() {
        let value = leaf.value(i);
        counts.rows += usize::from(value.is_some());
        counts.versions += 1 + leaf.chain(i).map_or(0, |chain| chain.len());
        counts.bytes += leaf.key_len(i) + value.map_or(0, <[u8]>::len);
        counts.bytes += leaf.chain(i).map_or(0, |chain| chain.size_bytes());
    }
    counts
}
