//! Large write sets become durable and visible in slices, so that no step of a shard gets long,
//! whatever a transaction has written.
//!
//! ```text
//! freeze   a slice of the write set a turn: out of it, into the journal as a chunk  ([`Frozen`])
//! decide   one step: the protocol appends the record that names the chunks
//! install  a slice a turn: into the store; then the locks go, a slice a turn        ([`Bulks`])
//! clear    the memory of the write set is given back, a slice a turn                ([`Waste`])
//! ```
//!
//! Invariants:
//! * the rows stay locked until all of them are installed, and a snapshot reader of one of them
//!   that would see the transaction waits ([`Bulks::awaits`]): no reader sees a part;
//! * the journal is kept from before the first chunk until the record that names the chunks counts
//!   ([`JournalPort::hold`]);
//! * a checkpoint begins while no write set is half installed ([`Bulks::make_way`]): a commit
//!   record before its start has all its rows in the store, or it stands behind the start.
//!
//! Is not: the place of decisions. A protocol says when a transaction may freeze, is decided, and
//! is over.

use crate::WriteList;
use crate::contract::{Cx, JournalPort};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use base::{IndexId, Key, KeyRange, Planted, Position, Slot, Ts, TxnId, is_planted};
use journal::{ChunkRef, CommitRef, Writes};
use store::Write;

/// Largest number of units in a slice of a large transaction: 1 to 2 ms of work.
pub const SLICE_UNITS: u64 = 1_000;
/// Bytes of keys and rows that count as one unit, as one row does.
pub const UNIT_BYTES: usize = 256;

/// Units of `rows` rows with `bytes` bytes together.
#[must_use]
pub fn units(rows: usize, bytes: usize) -> u64 {
    (rows + bytes / UNIT_BYTES) as u64
}

fn units_of(key: &Key, write: &Write) -> u64 {
    units(1, key.bytes.len() + write.size_bytes())
}

/// A write set on its way into the journal.
#[derive(Debug)]
pub struct Frozen {
    /// Writes that were taken, in the order of their keys.
    writes: WriteList,
    chunks: u32,
    held: Option<Position>,
    whole: bool,
    slice_units: u64,
}

impl Frozen {
    /// An empty one, for slices of this many units.
    #[must_use]
    pub fn new(slice_units: u64) -> Frozen {
        Frozen {
            writes: WriteList::default(),
            chunks: 0,
            held: None,
            whole: false,
            slice_units,
        }
    }

    /// Takes the next slice from `next`, which gives ascending keys, and appends it as a chunk of
    /// `txn` on this shard. Returns whether no writes are left.
    pub fn take_slice<M>(
        &mut self,
        cx: &mut Cx<'_, M>,
        txn: TxnId,
        scratch: &mut Vec<u8>,
        next: &mut dyn FnMut() -> Option<(Key, Write)>,
    ) -> bool {
        let mut slice = Writes::new();
        let mut spent = 0;
        while spent < self.slice_units && !self.whole {
            match next() {
                Some((key, write)) => {
                    spent += units_of(&key, &write);
                    slice.push((key, write));
                }
                None => self.whole = true,
            }
        }
        if !slice.is_empty() {
            self.held.get_or_insert_with(|| cx.journal.hold());
            append_chunk(cx, txn, self.chunks, &slice, scratch);
            self.chunks += 1;
            slice.shrink_to_fit();
            self.writes.push(slice);
        }
        cx.counters.units += spent;
        self.whole
    }

    /// Whether the whole write set is in the journal.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The writes that were taken so far.
    #[must_use]
    pub fn writes(&self) -> &WriteList {
        &self.writes
    }

    /// Returns the writes and their chunks.
    #[must_use]
    pub fn into_parts(self) -> (WriteList, Chunks) {
        let chunks = Chunks {
            count: self.chunks,
            held: self.held,
        };
        (self.writes, chunks)
    }
}

/// Chunks of one transaction on one shard that stand in the journal.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Number of chunks; 0: the writes are in the record itself.
    pub count: u32,
    held: Option<Position>,
}

impl Chunks {
    /// The record that names the chunks counts, or never will: the journal need not be kept for
    /// them any more.
    pub fn free(&mut self, journal: &mut dyn JournalPort) {
        if let Some(held) = self.held.take() {
            journal.free(held);
        }
    }
}

fn append_chunk<M>(
    cx: &mut Cx<'_, M>,
    txn: TxnId,
    seq: u32,
    writes: &[(Key, Write)],
    scratch: &mut Vec<u8>,
) {
    let chunk = ChunkRef {
        txn,
        shard: cx.shard,
        seq,
        writes,
    };
    cx.append(scratch, |out| journal::encode_chunk(chunk, out));
}

/// The first of `writes`, as many as a slice takes.
fn slice_of(writes: &[(Key, Write)], slice_units: u64) -> &[(Key, Write)] {
    let mut spent = 0;
    let taken = writes.iter().take_while(|(key, write)| {
        let begins = spent < slice_units;
        spent += units_of(key, write);
        begins
    });
    &writes[..taken.count()]
}

/// How far a committed write set has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// A checkpoint goes first; then the write set is journaled again.
    Waiting,
    /// The record may stand before the start of the open checkpoint, which may not have its rows:
    /// the write set is journaled again. `chunks` chunks are done.
    Journaling { chunks: u32 },
    /// Its rows go into the store.
    Installing,
}

/// A committed write set.
#[derive(Debug)]
struct Installing {
    commit_ts: Ts,
    stage: Stage,
    writes: WriteList,
    /// Progress of its stage: slices, and rows of the next one.
    done: (usize, usize),
    /// An index of these writes that was dropped meanwhile.
    gone: Option<IndexId>,
}

/// What a snapshot reads of committed write sets.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// One row.
    Row(&'a Key),
    /// Rows of a range, in one slot or in all.
    Rows(IndexId, Option<Slot>, &'a KeyRange),
}

impl Wanted<'_> {
    /// Their index.
    #[must_use]
    pub fn index(&self) -> IndexId {
        match self {
            Wanted::Row(key) => key.index,
            Wanted::Rows(index, ..) => *index,
        }
    }

    /// A key that stands for the rows in messages to the user.
    #[must_use]
    pub fn example(&self) -> Key {
        match *self {
            Wanted::Row(key) => key.clone(),
            Wanted::Rows(index, slot, range) => {
                Key::new(index, slot.unwrap_or_default(), range.low.clone())
            }
        }
    }

    /// Whether these rows include `key`.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        match *self {
            Wanted::Row(row) => row == key,
            Wanted::Rows(index, slot, range) => {
                key.index == index
                    && slot.is_none_or(|slot| slot == key.slot)
                    && range.contains(&key.bytes)
            }
        }
    }

    /// Whether `writes` has one of these rows. Takes a search per slot and slice.
    #[must_use]
    pub fn meets(&self, writes: &WriteList) -> bool {
        match self {
            Wanted::Row(key) => writes.find(key).is_some(),
            Wanted::Rows(..) => writes.slices().any(|slice| self.meets_slice(slice)),
        }
    }

    fn meets_slice(&self, writes: &[(Key, Write)]) -> bool {
        let (index, slot, range) = match *self {
            Wanted::Row(key) => {
                return writes.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
            }
            Wanted::Rows(index, slot, range) => (index, slot, range),
        };
        let mut from = slot.unwrap_or_default();
        let last = writes.last();
        if last.is_none_or(|(last, _)| (last.index, last.slot) < (index, from)) {
            return false;
        }
        loop {
            let low = (index, from, range.low.as_slice());
            let at = writes
                .partition_point(|(key, _)| (key.index, key.slot, key.bytes.as_slice()) < low);
            let Some((key, _)) = writes.get(at).filter(|(key, _)| key.index == index) else {
                return false;
            };
            if slot.is_some_and(|slot| slot != key.slot) {
                return false;
            }
            if range.contains(&key.bytes) {
                return true;
            }
            if slot.is_some() {
                return false;
            }
            // The key lies behind the range in its slot, or before the range in a later slot.
            from = match key.slot == from {
                true => Slot(from.0 + 1),
                false => key.slot,
            };
        }
    }
}

/// The large transactions of a shard that are committed and not wholly installed, and the memory
/// that ended ones leave.
#[derive(Debug)]
pub struct Bulks {
    slice_units: u64,
    installing: BTreeMap<TxnId, Installing>,
    /// Transactions in the order of their turns.
    turns: VecDeque<TxnId>,
    waste: Waste,
    /// Whether a checkpoint waits until no write set is half installed.
    making_way: bool,
    scratch: Vec<u8>,
}

/// Result of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// More turns follow, or there is nothing to do.
    Open,
    /// The commit at this timestamp has another record, which ends at this position: readers wait
    /// for that one.
    Journaled(Ts, Position),
    /// All rows of this transaction are installed: its locks may go, and requests that wait for it
    /// may be tried again.
    Installed(TxnId),
}

impl Default for Bulks {
    fn default() -> Bulks {
        Bulks {
            slice_units: SLICE_UNITS,
            installing: BTreeMap::new(),
            turns: VecDeque::new(),
            waste: Waste::default(),
            making_way: false,
            scratch: Vec::new(),
        }
    }
}

impl Bulks {
    /// Sets the number of units of a slice: for tests, whose transactions are small.
    pub fn set_slice(&mut self, units: u64) {
        self.slice_units = units;
    }

    /// Whether a write set of this many rows and bytes goes in slices.
    #[inline]
    #[must_use]
    pub fn takes(&self, rows: usize, bytes: usize) -> bool {
        units(rows, bytes) > self.slice_units
    }

    /// Begins with the slices of a write set.
    #[must_use]
    pub fn freeze(&self) -> Frozen {
        Frozen::new(self.slice_units)
    }

    /// Number of units of a slice.
    #[must_use]
    pub fn slice_units(&self) -> u64 {
        self.slice_units
    }

    /// `txn` is committed at `commit_ts`: its writes, ascending, are installed from now on. The
    /// caller keeps its locks until [`Turn::Installed`]. `again`: a checkpoint began after the
    /// promise, so the write set is journaled again first.
    pub fn begin(&mut self, txn: TxnId, commit_ts: Ts, writes: WriteList, again: bool) {
        let stage = match (self.making_way, again) {
            (true, _) => Stage::Waiting,
            (false, true) => Stage::Journaling { chunks: 0 },
            (false, false) => Stage::Installing,
        };
        let installing = Installing {
            commit_ts,
            stage,
            writes,
            done: (0, 0),
            gone: None,
        };
        let before = self.installing.insert(txn, installing);
        assert!(before.is_none(), "{txn} commits once");
        if stage != Stage::Waiting {
            self.turns.push_back(txn);
        }
    }

    /// Whether writes of `txn` are being installed.
    #[inline]
    #[must_use]
    pub fn has(&self, txn: TxnId) -> bool {
        !self.installing.is_empty() && self.installing.contains_key(&txn)
    }

    /// Whether a reader of `wanted` that sees commits up to `last` has to wait.
    #[must_use]
    pub fn awaits(&self, last: Ts, wanted: Wanted<'_>) -> bool {
        if is_planted(Planted::ReaderBetweenSlices) {
            return false;
        }
        let mut all = self.installing.values();
        all.any(|bulk| bulk.commit_ts <= last && wanted.meets(&bulk.writes))
    }

    /// The write of a transaction to a row that is still to be installed; [`None`]: there is none.
    #[must_use]
    pub fn pending(&self, txn: TxnId, key: &Key) -> Option<&Write> {
        let bulk = self.installing.get(&txn)?;
        let done = match bulk.stage {
            Stage::Installing => bulk.done,
            Stage::Waiting | Stage::Journaling { .. } => (0, 0),
        };
        let found = bulk.writes.find(key).filter(|place| *place >= done);
        found.map(|(slice, at)| &bulk.writes.slice(slice)[at].1)
    }

    /// Whether rows of one of these indexes are being installed.
    #[must_use]
    pub fn writes_to(&self, indexes: &[IndexId]) -> bool {
        let mut all = self.installing.values();
        all.any(|bulk| {
            let whole = KeyRange::all();
            let mut indexes = indexes.iter();
            indexes.any(|index| Wanted::Rows(*index, None, &whole).meets(&bulk.writes))
        })
    }

    /// Does one slice of the work that is left.
    #[must_use]
    pub fn turn<M>(&mut self, cx: &mut Cx<'_, M>) -> Turn {
        cx.counters.units += self.waste.turn(self.slice_units);
        let Some(txn) = self.turns.pop_front() else {
            return Turn::Open;
        };
        let bulk = self
            .installing
            .get_mut(&txn)
            .expect("a write set that has turns is there");
        let (number, from) = bulk.done;
        let slice = slice_of(&bulk.writes.slice(number)[from..], self.slice_units);
        for (key, write) in slice {
            cx.counters.units += units_of(key, write);
        }
        let taken = slice.len();
        match &mut bulk.stage {
            Stage::Waiting => unreachable!("it has no turns"),
            Stage::Journaling { chunks } => {
                append_chunk(cx, txn, *chunks, slice, &mut self.scratch);
                *chunks += 1;
            }
            Stage::Installing => {
                for (key, write) in slice {
                    install_row(cx, key, write, bulk.commit_ts, &mut bulk.gone);
                }
                let slice = bulk.writes.slice_mut(number);
                for (_, write) in slice
                    .into_iter()
                    .flat_map(|slice| &mut slice[from..from + taken])
                {
                    // The row is in the store; key and kind name the lock until the end.
                    if let Write::Insert(row) | Write::Put(row) = write {
                        *row = Vec::new();
                    }
                }
            }
        }
        bulk.done = match from + taken == bulk.writes.slice(number).len() {
            true => (number + 1, 0),
            false => (number, from + taken),
        };
        if bulk.done.0 < bulk.writes.slice_count() {
            self.turns.push_back(txn);
            return Turn::Open;
        }
        if let Stage::Journaling { chunks } = bulk.stage {
            let commit_ts = bulk.commit_ts;
            let commit = CommitRef {
                txn,
                commit_ts,
                writes: &[],
                chunks: &[(cx.shard, chunks)],
            };
            let position = cx.append(&mut self.scratch, |out| journal::encode_commit(commit, out));
            (bulk.stage, bulk.done) = (Stage::Installing, (0, 0));
            self.turns.push_back(txn);
            return Turn::Journaled(commit_ts, position);
        }
        let bulk = self.installing.remove(&txn).expect("just installed");
        self.discard(bulk.writes);
        Turn::Installed(txn)
    }

    /// Takes a write set that is not needed any more, and frees it slice by slice.
    pub fn discard(&mut self, writes: WriteList) {
        if self.takes(writes.len(), 0) {
            self.waste.lists.extend(writes.into_slices());
        }
    }

    /// As [`Bulks::discard`], for parts of a large write set of any size.
    pub fn discard_parts(
        &mut self,
        tree: BTreeMap<Key, Write>,
        lists: impl Iterator<Item = Writes>,
    ) {
        self.waste.trees.push(tree);
        self.waste.lists.extend(lists);
    }

    /// Whether a checkpoint may begin. Until it may, no write set is decided here that would be
    /// installed in slices, and decisions of other shards about such wait.
    pub fn make_way(&mut self) -> bool {
        let mut all = self.installing.values();
        self.making_way = all.any(|bulk| bulk.stage != Stage::Waiting);
        !self.making_way
    }

    /// A checkpoint begins in this step.
    pub fn checkpoint_begins(&mut self) {
        self.making_way = false;
        for (txn, bulk) in &mut self.installing {
            assert!(
                bulk.stage == Stage::Waiting,
                "a checkpoint begins while nothing is half installed"
            );
            bulk.stage = Stage::Journaling { chunks: 0 };
            self.turns.push_back(*txn);
        }
    }

    /// Whether no write set has to be journaled again for the open checkpoint.
    #[must_use]
    pub fn checkpoint_may_end(&self) -> bool {
        let mut all = self.installing.values();
        !all.any(|bulk| matches!(bulk.stage, Stage::Journaling { .. }))
    }

    /// Whether no large write set may be decided now.
    #[must_use]
    pub fn is_making_way(&self) -> bool {
        self.making_way
    }

    /// Whether [`Bulks::turn`] has something to do.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        !self.turns.is_empty() || !self.waste.is_empty()
    }

    /// Whether nothing is being installed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.installing.is_empty()
    }

    /// Transactions that are being installed.
    pub fn txns(&self) -> impl Iterator<Item = TxnId> {
        self.installing.keys().copied()
    }

    /// Calls `f` with every row of a transaction that is being installed.
    pub fn each_row(&self, f: &mut dyn FnMut(TxnId, &Key, &Write)) {
        for (txn, bulk) in &self.installing {
            bulk.writes
                .iter()
                .for_each(|(key, write)| f(*txn, key, write));
        }
    }
}

/// Applies one committed write, unless its index was dropped in the meantime.
pub fn install_row<M>(
    cx: &mut Cx<'_, M>,
    key: &Key,
    write: &Write,
    commit_ts: Ts,
    gone: &mut Option<IndexId>,
) {
    if *gone == Some(key.index) {
        return;
    }
    if (cx.schema_changed)(key.index).is_none() {
        *gone = Some(key.index);
        return;
    }
    cx.store
        .apply(key, write, commit_ts, cx.horizons.of(key.index));
    cx.counters.rows_written += 1;
    cx.counters.formulas += u64::from(matches!(write, Write::Formula(_)));
}

/// Write sets that are not needed any more, whose memory is freed in slices.
#[derive(Debug, Default)]
struct Waste {
    lists: Vec<Writes>,
    trees: Vec<BTreeMap<Key, Write>>,
}

impl Waste {
    fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.trees.is_empty()
    }

    /// Frees one slice. Returns the number of its rows.
    fn turn(&mut self, slice_units: u64) -> u64 {
        let mut freed = 0;
        while freed < slice_units
            && let Some(list) = self.lists.last_mut()
        {
            let left = list.len().saturating_sub((slice_units - freed) as usize);
            freed += (list.len() - left) as u64 + 1;
            list.truncate(left);
            if left == 0 {
                self.lists.pop();
            }
        }
        while freed < slice_units
            && let Some(tree) = self.trees.last_mut()
        {
            freed += 1;
            if tree.pop_first().is_none() {
                self.trees.pop();
            }
        }
        freed
    }
}
