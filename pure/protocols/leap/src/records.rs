//! Appending to the journal, and installing what was appended.

use crate::{Context, Leap};
use base::{Key, Position, Ts, TxnId};
use journal::{CommitRef, Record};
use store::Write;
use txn::Event;
use txn::bulk::install_row;

impl Leap {
    pub(crate) fn append_record(&mut self, cx: &mut Context<'_>, record: &Record) -> Position {
        self.recorded = cx.append(&mut self.scratch, |out| record.encode(out));
        self.recorded
    }

    /// One record with all that the transaction wrote.
    pub(crate) fn append_commit(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: &[(Key, Write)],
    ) -> Position {
        let shard = self.shard;
        let whole = [(shard, writes)];
        let commit = CommitRef {
            txn,
            commit_ts,
            writes: &whole,
            chunks: &[],
        };
        cx.append(&mut self.scratch, |out| {
            journal::encode_commit(commit, out);
        })
    }

    /// As [`Leap::append_commit`] for writes that stand in so many chunks.
    pub(crate) fn append_chunked(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        chunks: u32,
    ) -> Position {
        let chunks = [(self.shard, chunks)];
        let commit = CommitRef {
            txn,
            commit_ts,
            writes: &[],
            chunks: &chunks,
        };
        cx.append(&mut self.scratch, |out| {
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
            install_row(cx, key, write, commit_ts, &mut gone);
        }
        self.begin_install(cx, txn, commit_ts, position);
    }

    /// What is committed may be seen from here on, by whoever waits for `position`.
    pub(crate) fn begin_install(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        position: Position,
    ) {
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
