//! Appending to the journal, and installing what was appended.

use crate::{Context, TwoPhase};
use alloc::vec::Vec;
use base::{Key, Position, ShardId, Ts, TxnId};
use journal::record::CHUNK_BYTES;
use journal::{ChunkRef, CommitRef, DecisionRef, PrepareRef, Record, WritesRef};
use store::Write;
use txn::Event;

/// Writes of several shards as a record takes them, and the chunks that went before.
type Gathered<'a> = (Vec<(ShardId, WritesRef<'a>)>, Vec<(ShardId, u32)>);

impl TwoPhase {
    fn append(
        scratch: &mut Vec<u8>,
        cx: &mut Context<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Position {
        scratch.clear();
        encode(scratch);
        cx.counters.journal_records += 1;
        cx.counters.journal_bytes += scratch.len() as u64;
        cx.journal.append(scratch)
    }

    pub(crate) fn append_record(&mut self, cx: &mut Context<'_>, record: &Record) -> Position {
        Self::append(&mut self.scratch, cx, |out| record.encode(out))
    }

    /// Appends large write sets as chunks, in the same step as the record that names them.
    fn gather<'a>(
        scratch: &mut Vec<u8>,
        cx: &mut Context<'_>,
        txn: TxnId,
        writes: &[(ShardId, WritesRef<'a>)],
    ) -> Gathered<'a> {
        let (mut inline, mut chunks) = (Vec::with_capacity(writes.len()), Vec::new());
        for &(shard, writes) in writes {
            let total: usize = writes.iter().map(size).sum();
            if total <= CHUNK_BYTES {
                inline.push((shard, writes));
                continue;
            }
            let mut seq = 0;
            let mut rest = writes;
            while !rest.is_empty() {
                let mut bytes = 0;
                let fits = rest.iter().take_while(|write| {
                    bytes += size(write);
                    bytes <= CHUNK_BYTES
                });
                let (chunk, behind) = rest.split_at(fits.count().max(1));
                rest = behind;
                let chunk = ChunkRef {
                    txn,
                    shard,
                    seq,
                    writes: chunk,
                };
                scratch.clear();
                journal::encode_chunk(chunk, scratch);
                cx.counters.journal_records += 1;
                cx.counters.journal_bytes += scratch.len() as u64;
                cx.journal.append_part(scratch);
                seq += 1;
            }
            chunks.push((shard, seq));
        }
        (inline, chunks)
    }

    pub(crate) fn append_commit(
        scratch: &mut Vec<u8>,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: &[(ShardId, WritesRef<'_>)],
    ) -> Position {
        let (inline, chunks) = Self::gather(scratch, cx, txn, writes);
        let commit = CommitRef {
            txn,
            commit_ts,
            writes: &inline,
            chunks: &chunks,
        };
        Self::append(scratch, cx, |out| journal::encode_commit(commit, out))
    }

    pub(crate) fn append_decision(
        scratch: &mut Vec<u8>,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        participants: &[ShardId],
        writes: &[(ShardId, WritesRef<'_>)],
    ) -> Position {
        let (inline, chunks) = Self::gather(scratch, cx, txn, writes);
        let writes = &inline;
        let chunks = &chunks;
        let decision = DecisionRef {
            txn,
            commit_ts,
            participants,
            writes,
            chunks,
        };
        Self::append(scratch, cx, |out| journal::encode_decision(decision, out))
    }

    /// Appends a promise. `prepare.writes` may be large, `prepare.chunks` is filled in here.
    pub(crate) fn append_prepare(
        scratch: &mut Vec<u8>,
        cx: &mut Context<'_>,
        prepare: PrepareRef<'_>,
    ) -> Position {
        let whole = [(prepare.shard, prepare.writes)];
        let (inline, chunks) = Self::gather(scratch, cx, prepare.txn, &whole);
        let writes = inline.first().map_or(&[][..], |(_, writes)| *writes);
        let chunks = chunks.first().map_or(0, |(_, count)| *count);
        let prepare = PrepareRef {
            writes,
            chunks,
            ..prepare
        };
        Self::append(scratch, cx, |out| journal::encode_prepare(prepare, out))
    }

    /// Makes committed writes visible. `position`: what their readers must wait for.
    ///
    /// Rows of an index that was dropped in the meantime are passed over.
    pub(crate) fn install(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        redo: &[(Key, Write)],
        commit_ts: Ts,
        position: Position,
    ) {
        let mut gone = None;
        for (key, write) in redo {
            if gone == Some(key.index) {
                continue;
            }
            if (cx.schema_changed)(key.index).is_none() {
                gone = Some(key.index);
                continue;
            }
            cx.store.apply(
                key.index, key.slot, &key.bytes, write, commit_ts, cx.horizon,
            );
            cx.counters.rows_written += 1;
            cx.counters.formulas += u64::from(matches!(write, Write::Formula(_)));
        }
        if position > cx.journal.durable() {
            self.installed.insert(commit_ts, position);
        }
        if let Some(history) = &mut cx.history {
            history.push(Event::Commit {
                txn,
                shard: self.shard,
                commit_ts,
                position,
            });
        }
    }
}

fn size(write: &(Key, Write)) -> usize {
    write.0.bytes.len() + 16 + write.1.size_bytes()
}
