//! Copies of rows that are read much and seldom written (L8).
//!
//! A row at home may be *lent*: other shards get copies, and their transactions take shared locks
//! on the copy in their own tables. Copies are no owners, and a restarted shard has none. A
//! transaction that writes the row, or takes it away, waits until every copy is gone:
//!
//! ```text
//! reader ──OwnerRequest(shared)──> home          shared lock for a moment
//!        <──Share(tag, version)───               leaves when the version is durable
//! home   ──Recall(tag)──> every reader           in the name of the writer, which has its lock
//!        <──Recalled─────                        no transaction there holds the row: the copy went
//!        <──Recalled(refused)──                  an older one holds the row: the writer dies
//! ```
//!
//! There are no leases: while the node of a reader is away, writers are refused, until the node is
//! back or has restarted. A restarted home has lent nothing: each shard drops its copies, and rolls
//! back the transactions that rely on them, before it answers the home's question what it owns. A
//! row that is away when it is to be lent is brought home first.

mod home;
mod reader;

use crate::gather::keys_of;
use crate::home::Want;
use crate::{Cx, Leap};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, ShardId, Ts, TxnId};
use journal::Otag;
use txn::lock::Settled;
use txn::{Alarm, Priority};

/// Largest count of reads of a row; each write halves the count.
const READS_MAX: u32 = 64;

/// Largest number of rows whose reads are counted.
const REMEMBERED_MAX: usize = 10_000;

/// A shard with a copy.
#[derive(Clone, Copy, Debug)]
struct Reader {
    tag: Otag,
    incarnation: u32,
}

/// What waits until a row is not lent any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Writer {
    /// A job that wants to write.
    Job(u64),
    /// A release: the row is to leave.
    Release(u64),
}

/// A row of this home of which other shards have copies.
#[derive(Debug, Default)]
struct Lent {
    readers: BTreeMap<ShardId, Reader>,
    /// The transaction in whose name the copies are recalled, and what waits for that.
    recall: Option<(Priority, Vec<Writer>)>,
}

/// A copy of a row that lives at its home.
#[derive(Debug)]
struct Copied {
    tag: Otag,
    /// Snapshots below this are refused: a copy has one version.
    since: Ts,
    /// Transactions of this shard that rely on the copy. Some have ended.
    users: Vec<TxnId>,
    /// The lock request of its recall.
    recall: Option<u64>,
}

/// A recall that waits for transactions of this shard with locks on the copy.
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
    want: Want,
    priority: Priority,
}

/// Copies that a shard has given and got.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Counts of reads of rows of this home; each write halves one.
    reads: BTreeMap<Key, u32>,
    lent: BTreeMap<Key, Lent>,
    lending: BTreeMap<u64, Lending>,
    copies: BTreeMap<Key, Copied>,
    recalling: BTreeMap<u64, Recalling>,
    /// Timer of recalls that are not answered.
    pub(crate) recalls_again: Alarm,
}

impl Sharing {
    /// Counts a write: of a transaction here, or of a shard that takes the row to write it.
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

    /// The timestamp below which the copy of a row refuses snapshots, if there is a copy.
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
    /// Deals with the end of a lock request of a recall or of lending. Returns whether it is one.
    pub(crate) fn settle_share(&mut self, cx: &mut Cx<'_>, id: u64, settled: &Settled) -> bool {
        let (lends, recalls) = (&self.sharing.lending, &self.sharing.recalling);
        match (lends.contains_key(&id), recalls.contains_key(&id)) {
            (true, _) => self.on_lend_lock(cx, id, settled.clone()),
            (_, true) => self.on_recall_lock(cx, id, settled.clone()),
            (false, false) => return false,
        }
        true
    }

    /// A transaction has freed its locks here. Recalls in its name request theirs again.
    pub(crate) fn ask_again_for_recalls(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let recalling = self.sharing.recalling.iter();
        let waiting = recalling.filter(|(_, recalling)| recalling.priority.txn == txn);
        let mut waiting: Vec<u64> = waiting.map(|(id, _)| *id).collect();
        for before in waiting.drain(..) {
            // A new number: a lock that was granted to the old one has been freed with the rest.
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
            // The reader asks again.
            let Some(lending) = self.sharing.lending.remove(&id) else {
                continue;
            };
            self.end_request_of(cx, lending.want, None);
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
