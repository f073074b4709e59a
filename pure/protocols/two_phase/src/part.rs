//! A transaction as its participant sees it.

use crate::lead::Gathering;
use crate::message::{Reply, Request};
use crate::writes::{Drain, WriteSet};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, ShardId, Slot, SqlError, SqlState, Time, Ts, TxnId};
use store::{Store, Write};
use txn::bulk::{Chunks, Frozen};
use txn::rows::NewRow;
use txn::{TxnOptions, WriteList};

/// How far a participant is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// Operations go on; it may still be rolled back by itself.
    #[default]
    Active,
    /// Voted without having written: holds its locks until told.
    Voted,
    /// Promised: its writes are in `TwoPhase::promises`.
    Promised,
}

/// A large write set on its way into the journal.
#[derive(Debug)]
pub(crate) struct Freezing {
    pub(crate) frozen: Frozen,
    pub(crate) rest: Drain,
}

/// What a transaction holds and wants on one shard.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) options: Option<TxnOptions>,
    pub(crate) attempt: u32,
    pub(crate) stage: Stage,
    /// One write per key; moved into the promise by prepare.
    pub(crate) writes: WriteSet,
    /// Where the writes are if there are many and it is to vote or commit.
    pub(crate) freezing: Option<Box<Freezing>>,
    pub(crate) bytes: usize,
    /// Indexes written, with the oldest catalog version that a plan assumed.
    pub(crate) planned: Vec<(IndexId, u64)>,
    /// Jobs of this transaction that have not ended.
    pub(crate) jobs: Vec<u64>,
    /// Largest position that was read.
    pub(crate) wait: Position,
    /// The number of the visit; 0 on the coordinator's own shard.
    pub(crate) visit: u64,
    /// Next request to begin.
    pub(crate) next_seq: u64,
    /// Requests that came too early.
    pub(crate) early: BTreeMap<u64, Request>,
    /// Answers that may be asked for again (other nodes only).
    pub(crate) replies: Vec<Reply>,
    /// When the coordinator is asked.
    pub(crate) timer: Option<Time>,
    pub(crate) inquiries: u32,
    /// The shard of this node that commits for it, once it was asked to promise.
    pub(crate) lead: Option<ShardId>,
    /// This shard leads the commit and collects promises.
    pub(crate) gathering: Option<Box<Gathering>>,
}

impl Part {
    /// Empties it for reuse; vectors keep their memory.
    pub(crate) fn reset(&mut self) {
        let planned = core::mem::take(&mut self.planned);
        let jobs = core::mem::take(&mut self.jobs);
        *self = Part {
            planned,
            jobs,
            next_seq: 1,
            ..Part::default()
        };
        self.planned.clear();
        self.jobs.clear();
    }

    /// Whether there is something to commit.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        !self.writes.is_empty() || self.freezing.is_some()
    }

    /// Writes that there are, wherever.
    pub(crate) fn write_count(&self) -> usize {
        let frozen = self.freezing.as_ref();
        self.writes.len() + frozen.map_or(0, |freezing| freezing.frozen.writes().len())
    }

    /// The formula that is pending on a row, if one is.
    pub(crate) fn pending(&self, key: &Key) -> Option<&Write> {
        let Some(freezing) = &self.freezing else {
            return self.writes.get(key);
        };
        let taken = freezing.frozen.writes().get(key);
        taken.or_else(|| freezing.rest.formula(key))
    }

    /// Takes the writes out, in key order, and the chunks in which they stand if they are many.
    pub(crate) fn take_redo(&mut self) -> (WriteList, Chunks) {
        match self.freezing.take() {
            None => (WriteList::one(self.writes.take()), Chunks::default()),
            Some(freezing) => {
                assert!(
                    freezing.frozen.is_whole(),
                    "all of it stands in the journal"
                );
                freezing.frozen.into_parts()
            }
        }
    }

    /// Notes that `index` was written by a plan of catalog version `planned`.
    pub(crate) fn note_plan(&mut self, index: IndexId, planned: u64) {
        match self.planned.iter_mut().find(|(noted, _)| *noted == index) {
            Some((_, version)) => *version = planned.min(*version),
            None => self.planned.push((index, planned)),
        }
    }

    /// Adds a write behind those there are; `first`: there is none of this key. `Err`: the
    /// transaction has become too large.
    ///
    /// A formula must have been folded once, so that it cannot fail here.
    pub(crate) fn add(
        &mut self,
        store: &Store,
        key: Key,
        write: Write,
        first: bool,
        bytes_max: usize,
    ) -> Result<(), SqlError> {
        let size = key.bytes.len() + write.size_bytes();
        if self.bytes + size > bytes_max {
            return Err(too_large(bytes_max));
        }
        self.bytes += size;
        let before = match first {
            true => None,
            false => self.writes.remove(&key),
        };
        let Some(before) = before else {
            self.writes.add_first(key, write);
            return Ok(());
        };
        let was_put = matches!(before, Write::Put(_));
        let both = before
            .then(write)
            .expect("a formula was folded before it is added");
        match both {
            // A blind put of a new row and its removal leave nothing.
            Some(Write::Delete) if was_put && store.get(&key, Ts::MAX).is_none() => {}
            Some(both) => {
                self.writes.put_back(key, both);
            }
            None => {}
        }
        Ok(())
    }

    /// Adds inserts of rows of one bucket, in the order of their keys, which have no write.
    pub(crate) fn add_rows(
        &mut self,
        index: IndexId,
        slot: Slot,
        rows: &[NewRow<'_>],
        bytes_max: usize,
    ) -> Result<(), SqlError> {
        let size: usize = rows.iter().map(|row| row.key.len() + row.row.len()).sum();
        if self.bytes + size > bytes_max {
            return Err(too_large(bytes_max));
        }
        self.bytes += size;
        self.writes.add_rows(index, slot, rows);
        Ok(())
    }
}

fn too_large(bytes_max: usize) -> SqlError {
    SqlError::new(SqlState::OUT_OF_MEMORY, "transaction has written too much")
        .detail(alloc::format!(
            "The limit is {bytes_max} bytes of keys and rows per shard."
        ))
        .hint("Split the work into several transactions.")
}

/// What a participant has promised to install when told.
#[derive(Debug)]
pub(crate) struct Promise {
    pub(crate) prepare_ts: Ts,
    pub(crate) redo: WriteList,
    /// Where they stand in the journal, if they are many and the record does not carry them.
    pub(crate) chunks: Chunks,
    /// There is a prepare record; otherwise the coordinator's record carries the writes.
    pub(crate) durable: bool,
    pub(crate) attempt: u32,
    pub(crate) coordinator: ShardId,
    pub(crate) participants: Vec<ShardId>,
    /// A checkpoint began after it was made: its commit is journaled once more behind the start.
    pub(crate) journal_again: bool,
}

impl Promise {
    /// What it does to this row.
    pub(crate) fn write(&self, key: &Key) -> Option<&Write> {
        self.redo.get(key)
    }
}

/// Visits of one coordinator (in one of its lives) that are over.
#[derive(Debug, Default)]
pub(crate) struct VisitsIn {
    /// The coordinator has finished with everything below.
    pub(crate) floor: u64,
    /// Visits from the floor on that ended here, with the last answer.
    pub(crate) ended: BTreeMap<u64, Option<Reply>>,
}

impl VisitsIn {
    pub(crate) fn raise(&mut self, floor: u64) {
        if floor > self.floor {
            self.floor = floor;
            self.ended = self.ended.split_off(&floor);
        }
    }

    /// Whether the visit is over; then with the answer that may be asked for again.
    pub(crate) fn over(&self, visit: u64) -> Option<Option<&Reply>> {
        if visit < self.floor {
            return Some(None);
        }
        self.ended.get(&visit).map(Option::as_ref)
    }

    pub(crate) fn end(&mut self, visit: u64, reply: Option<Reply>) {
        if visit >= self.floor {
            let kept = self.ended.entry(visit).or_insert(None);
            if reply.is_some() {
                *kept = reply;
            }
        }
    }
}

/// The node that a transaction's coordinator runs on.
pub(crate) fn coordinator_node(txn: TxnId) -> NodeId {
    txn.shard.node()
}
