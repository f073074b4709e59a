//! The participant's state of one transaction.

use crate::lead::Gathering;
use crate::message::{Reply, Request};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{Key, NodeId, Position, ShardId, Ts, TxnId};
use local::Written;
use local::txns::State;
use store::Write;
use txn::bulk::Chunks;
use txn::lock::Priority;
use txn::{TxnOptions, WriteList};

/// Stage of a participant: active, voted, promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Stage {
    /// Operations run; the participant may still roll back by itself.
    #[default]
    Active,
    /// It has voted without having written, and holds its locks until it is told.
    Voted,
    /// It has promised: its writes are in `Machine::promises`.
    Promised,
}

/// What a transaction holds and wants on one shard.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) options: TxnOptions,
    pub(crate) stage: Stage,
    /// Up to which its vote lets the transaction commit; zero before the vote.
    pub(crate) top: Ts,
    /// Moved into the promise by prepare.
    pub(crate) written: Written,
    /// Jobs of this transaction that have not ended.
    pub(crate) jobs: Vec<u64>,
    /// Largest position that was read.
    pub(crate) wait: Position,
    /// Number of the visit; 0: on the coordinator's own shard.
    pub(crate) visit: u64,
    /// Number of the next request to begin.
    pub(crate) next_seq: u64,
    /// Requests that came too early.
    pub(crate) early: BTreeMap<u64, Request>,
    /// Answers that may be asked for again (other nodes only).
    pub(crate) replies: Vec<Reply>,
    pub(crate) inquiries: u32,
    /// The shard of this node that commits for it, once it was asked to promise.
    pub(crate) lead: Option<ShardId>,
    /// This shard leads the commit and collects promises.
    pub(crate) gathering: Option<Box<Gathering>>,
}

impl State for Part {
    fn reset(&mut self) {
        let written = core::mem::take(&mut self.written);
        let jobs = core::mem::take(&mut self.jobs);
        *self = Part {
            written,
            jobs,
            next_seq: 1,
            ..Part::default()
        };
        self.written.reset();
        self.jobs.clear();
    }

    fn options(&mut self) -> &mut TxnOptions {
        &mut self.options
    }
}

/// The writes that a participant has promised to install when it is told.
#[derive(Debug)]
pub(crate) struct Promise {
    pub(crate) prepare_ts: Ts,
    pub(crate) redo: WriteList,
    /// Position of the writes in the journal, if they are too many for the record.
    pub(crate) chunks: Chunks,
    /// Whether there is a prepare record that no other record has ended; else the coordinator's
    /// record carries the writes.
    pub(crate) durable: bool,
    /// Position of that record; 0: it is of a former life.
    pub(crate) position: Position,
    pub(crate) attempt: u32,
    pub(crate) coordinator: ShardId,
    /// The shards whose promises commit together; none: only a decision commits.
    pub(crate) participants: Vec<ShardId>,
    /// A checkpoint began after the promise: its commit is journaled again behind that start.
    pub(crate) journal_again: bool,
    /// No operation of the transaction can wait for a lock any more, so anybody may wait for it.
    pub(crate) settled: bool,
    pub(crate) priority: Priority,
}

impl Promise {
    /// The write of the promise to this row.
    pub(crate) fn write(&self, key: &Key) -> Option<&Write> {
        self.redo.get(key)
    }
}

/// The node that a transaction's coordinator runs on.
pub(crate) fn coordinator_node(txn: TxnId) -> NodeId {
    txn.shard.node()
}
