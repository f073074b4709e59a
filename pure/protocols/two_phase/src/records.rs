//! Appending to the journal what several shards have written or promised.

use crate::message::Vote;
use crate::part::Promise;
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{Key, Position, ShardId, Ts, TxnId};
use journal::{CommitRef, DecisionRef, Record, WritesRef};
use store::Write;

/// Writes of several shards for one record: in the record itself, or in chunks before it.
pub(crate) struct Gathered<'a> {
    inline: Vec<(ShardId, WritesRef<'a>)>,
    chunks: Vec<(ShardId, u32)>,
}

impl<'a> Gathered<'a> {
    fn add(&mut self, shard: ShardId, writes: &'a [(Key, Write)], chunks: u32) {
        if chunks > 0 {
            self.chunks.push((shard, chunks));
        } else if !writes.is_empty() {
            self.inline.push((shard, writes));
        }
    }

    /// Appends the record that decides, which names `participants` that must be told, or the record
    /// of a commit. Appends nothing if there are neither participants nor writes.
    pub(crate) fn append(
        &self,
        cx: &mut Cx<'_>,
        scratch: &mut Vec<u8>,
        txn: TxnId,
        commit_ts: Ts,
        participants: &[ShardId],
    ) -> Position {
        let (writes, chunks) = (&self.inline[..], &self.chunks[..]);
        if !participants.is_empty() {
            let decision = DecisionRef {
                txn,
                commit_ts,
                participants,
                writes,
                chunks,
            };
            return cx.append(scratch, |out| journal::encode_decision(decision, out));
        }
        if writes.is_empty() && chunks.is_empty() {
            return Position(0);
        }
        let commit = CommitRef {
            txn,
            commit_ts,
            writes,
            chunks,
        };
        cx.append(scratch, |out| journal::encode_commit(commit, out))
    }
}

/// The writes of a commit of several shards: from this shard's promise and the others' votes.
pub(crate) fn gathered<'a>(
    here: ShardId,
    own: Option<&'a Promise>,
    votes: impl Iterator<Item = (ShardId, &'a Vote)>,
) -> Gathered<'a> {
    let mut gathered = Gathered {
        inline: Vec::new(),
        chunks: Vec::new(),
    };
    if let Some(promise) = own {
        let inline = match promise.chunks.count {
            0 => promise.redo.small(),
            _ => &[],
        };
        gathered.add(here, inline, promise.chunks.count);
    }
    for (shard, vote) in votes {
        gathered.add(shard, &vote.redo, vote.chunks);
    }
    gathered
}

impl<C: Control> Machine<C> {
    pub(crate) fn append_record(&mut self, cx: &mut Cx<'_>, record: &Record) -> Position {
        cx.append(&mut self.scratch, |out| record.encode(out))
    }

    /// Appends the record of how a durable promise of this shard ended.
    pub(crate) fn append_resolved(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Option<Ts>,
    ) -> Position {
        let shard = self.shard;
        let record = Record::Resolved {
            txn,
            shard,
            commit_ts,
        };
        self.append_record(cx, &record)
    }
}
