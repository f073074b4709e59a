//! Appending to the journal, and installing what was appended.

use crate::{Context, Leap};
use alloc::vec::Vec;
use base::{Key, Position, Ts, TxnId};
use journal::record::CHUNK_BYTES;
use journal::{ChunkRef, CommitRef, Record};
use store::Write;
use txn::Event;

impl Leap {
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
        self.recorded = Self::append(&mut self.scratch, cx, |out| record.encode(out));
        self.recorded
    }

    /// One record with all that the transaction wrote; large write sets go into chunks before it.
    pub(crate) fn append_commit(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: &[(Key, Write)],
    ) -> Position {
        let shard = self.shard;
        let total: usize = writes.iter().map(size).sum();
        if total <= CHUNK_BYTES {
            let whole = [(shard, writes)];
            let commit = CommitRef {
                txn,
                commit_ts,
                writes: &whole,
                chunks: &[],
            };
            return Self::append(&mut self.scratch, cx, |out| {
                journal::encode_commit(commit, out);
            });
        }
        let (mut seq, mut rest) = (0, writes);
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = rest.iter().take_while(|write| {
                bytes += size(write);
                bytes <= CHUNK_BYTES
            });
            let (chunk, behind) = rest.split_at(fits.count().max(1));
            rest = behind;
            self.scratch.clear();
            let chunk = ChunkRef {
                txn,
                shard,
                seq,
                writes: chunk,
            };
            journal::encode_chunk(chunk, &mut self.scratch);
            cx.counters.journal_records += 1;
            cx.counters.journal_bytes += self.scratch.len() as u64;
            cx.journal.append_part(&self.scratch);
            seq += 1;
        }
        let chunks = [(shard, seq)];
        let commit = CommitRef {
            txn,
            commit_ts,
            writes: &[],
            chunks: &chunks,
        };
        Self::append(&mut self.scratch, cx, |out| {
            journal::encode_commit(commit, out);
        })
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
