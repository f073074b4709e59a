//! Copies of rows that are read much and seldom written (L8).
//!
//! A row at home may be *lent*: other shards get copies, under which their transactions take shared
//! locks of their own. Copies are no owners, and a restarted shard has none. Whoever wants to write
//! the row, or to take it away, waits until every copy is gone:
//!
//! ```text
//! reader ──OwnerRequest(shared)──> home          shared lock for a moment
//!        <──Share(tag, version)───               leaves when the version is durable
//! home   ──Recall(tag)──> every reader           in the name of the writer, which has its lock
//!        <──Recalled─────                        nobody there holds the row, the copy is gone
//!        <──Recalled(refused)──                  an older one holds it: the writer dies
//! ```
//!
//! There are no leases: a reader whose node is away keeps the writer waiting until it is back, or
//! has restarted. A restarted home has lent nothing: each shard drops its copies, and ends the
//! transactions that rely on them, before it answers the home's question what it owns. A row that
//! is away when it is to be lent is brought home first.

mod home;
mod reader;

use crate::gather::keys_of;
use crate::{Cx, Leap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Ts, TxnId};
use journal::Otag;
use txn::lock::Settled;
use txn::{Alarm, Priority};

/// Reads count up to here; a write takes half of them away.
const READS_MAX: u32 = 64;

/// Rows whose reads are counted.
const REMEMBERED_MAX: usize = 10_000;

/// A shard with a copy.
#[derive(Clone, Copy, Debug)]
struct Reader {
    tag: Otag,
    incarnation: u32,
}

/// Who waits until a row is not lent any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writer {
    /// A job that wants to write.
    Job(u64),
    /// The row is to leave.
    Release(u64),
}

/// A row of this home that others have copies of.
#[derive(Debug, Default)]
struct Lent {
    readers: BTreeMap<ShardId, Reader>,
    /// In whose name the copies are called back, and who waits for that.
    recall: Option<(Priority, Vec<Writer>)>,
}

/// A copy of a row that lives at its home.
#[derive(Debug)]
struct Copied {
    tag: Otag,
    /// Snapshots below this find no history here.
    since: Ts,
    /// Transactions of this shard that rely on it; some have ended.
    users: Vec<TxnId>,
    /// The lock request by which it is called back.
    recall: Option<u64>,
}

/// A recall that waits for transactions of this shard.
#[derive(Debug)]
struct Recalling {
    home: ShardId,
    key: Key,
    tag: Otag,
    priority: Priority,
}

/// A copy that waits for the shared lock at home.
#[derive(Debug)]
struct Lending {
    key: Key,
    to: ShardId,
    seq: u64,
    priority: Priority,
}

/// Copies that a shard has given and got.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// How often rows of this home were wanted for reading, less the writes.
    reads: BTreeMap<Key, u32>,
    lent: BTreeMap<Key, Lent>,
    lending: BTreeMap<u64, Lending>,
    copies: BTreeMap<Key, Copied>,
    recalling: BTreeMap<u64, Recalling>,
    /// When copies that are called back are asked for again.
    pub(crate) recalls_again: Alarm,
}

impl Sharing {
    /// A transaction is about to write the row, or another shard takes it away to write it.
    #[inline]
    pub(crate) fn note_write(&mut self, key: &Key) {
        if !self.reads.is_empty()
            && let Some(reads) = self.reads.get_mut(key)
        {
            *reads /= 2;
        }
    }

    fn note_read(&mut self, key: &Key) -> u32 {
        if self.reads.len() >= REMEMBERED_MAX {
            self.reads.clear();
        }
        let reads = self.reads.entry(key.clone()).or_insert(0);
        *reads = (*reads + 1).min(READS_MAX);
        *reads
    }

    /// Whether something is kept of a row of one bucket from `low` to `high`, both included.
    pub(crate) fn has_between(&self, low: &Key, high: &Key) -> bool {
        let kept = self.lent.range(low..=high).next().is_some();
        kept || self.reads.range(low..=high).next().is_some()
    }

    #[inline]
    pub(crate) fn is_lent(&self, key: &Key) -> bool {
        !self.lent.is_empty() && self.lent.contains_key(key)
    }

    #[inline]
    pub(crate) fn has_copy(&self, key: &Key) -> bool {
        !self.copies.is_empty() && self.copies.contains_key(key)
    }

    /// A row comes here to stay: it replaces the copy.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.copies.remove(key);
    }

    /// Snapshots below the result find too little history in the copy of a row, if there is one.
    pub(crate) fn copied_since(&self, key: &Key) -> Option<Ts> {
        self.copies.get(key).map(|copy| copy.since)
    }

    /// Whether the release under this number waits for copies.
    pub(crate) fn is_recalled_for(&self, key: &Key, id: u64) -> bool {
        let recall = self.lent.get(key).and_then(|lent| lent.recall.as_ref());
        recall.is_some_and(|(_, writers)| writers.contains(&Writer::Release(id)))
    }

    pub(crate) fn lent_count(&self) -> usize {
        self.lent.len()
    }

    pub(crate) fn copy_count(&self) -> usize {
        self.copies.len()
    }

    /// The rows that this shard has copies of.
    pub(crate) fn copied(&self) -> impl Iterator<Item = &Key> {
        self.copies.keys()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.lending.is_empty()
            && self.recalling.is_empty()
            && self.lent.values().all(|lent| lent.recall.is_none())
    }

    /// Rows of an index that are lent.
    pub(crate) fn lent_of(&self, index: IndexId) -> impl Iterator<Item = &Key> {
        keys_of(&self.lent, index)
    }

    /// No row of the index is lent, or copied here, or about to be.
    pub(crate) fn is_unshared(&self, index: IndexId) -> bool {
        let mut lending = self.lending.values();
        keys_of(&self.lent, index).next().is_none()
            && keys_of(&self.copies, index).next().is_none()
            && !lending.any(|lending| lending.key.index == index)
    }

    /// The index is gone.
    pub(crate) fn forget_index(&mut self, index: IndexId) {
        self.reads.retain(|key, _| key.index != index);
        self.copies.retain(|key, _| key.index != index);
        self.lent
            .retain(|key, lent| key.index != index || lent.recall.is_some());
    }
}

impl Leap {
    /// Whether a lock request belongs to this module; then its end is dealt with.
    pub(crate) fn settle_share(&mut self, cx: &mut Cx<'_>, id: u64, settled: &Settled) -> bool {
        let (lends, recalls) = (&self.sharing.lending, &self.sharing.recalling);
        match (lends.contains_key(&id), recalls.contains_key(&id)) {
            (true, _) => self.on_lend_lock(cx, id, settled.clone()),
            (_, true) => self.on_recall_lock(cx, id, settled.clone()),
            (false, false) => return false,
        }
        true
    }

    /// Recalls in the name of a transaction whose locks here were just freed go on waiting.
    pub(crate) fn ask_again_for_recalls(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let recalling = self.sharing.recalling.iter();
        let waiting = recalling.filter(|(_, recalling)| recalling.priority.txn == txn);
        let mut waiting: Vec<u64> = waiting.map(|(id, _)| *id).collect();
        for before in waiting.drain(..) {
            // Under a new number: what the old one was granted meanwhile is freed with the rest.
            let Some(recalling) = self.sharing.recalling.remove(&before) else {
                continue;
            };
            let id = self.jobs.next_number();
            let copy = self.sharing.copies.get_mut(&recalling.key);
            if let Some(copy) = copy.filter(|copy| copy.recall == Some(before)) {
                copy.recall = Some(id);
            }
            self.sharing.recalling.insert(id, recalling);
            self.lock_recall(cx, id);
        }
        let lending = self.sharing.lending.iter();
        let lending = lending.filter(|(_, lending)| lending.priority.txn == txn);
        let lending: Vec<u64> = lending.map(|(id, _)| *id).collect();
        for id in lending {
            // Its reader asks again.
            let Some(lending) = self.sharing.lending.remove(&id) else {
                continue;
            };
            self.end_request_of(cx, (lending.to, lending.seq), None);
        }
    }

    /// For `validate`: only rows at home are lent, and copies are of rows elsewhere.
    pub(crate) fn check_sharing(&self) {
        for (key, lent) in &self.sharing.lent {
            assert!(self.is_home(key), "only its home lends a row");
            assert!(
                !self.home.table.contains_key(key),
                "a row that is lent is at home"
            );
            assert!(!lent.readers.is_empty(), "what nobody has is not lent");
        }
        for key in self.sharing.copies.keys() {
            assert!(!self.is_home(key), "a home needs no copy");
        }
    }
}
