//! The record of a commit on one shard, and the installing of its writes.

use alloc::vec::Vec;
use base::{Key, Position, Ts, TxnId};
use journal::CommitRef;
use store::Write;
use txn::bulk::{Chunks, Turn, install_row};
use txn::{Bulks, Cx, Event, Installed, WriteList};

/// Appends the commit of a transaction that wrote on this shard alone: its writes, or the number of
/// chunks that hold them.
#[inline]
pub fn append_commit<M>(
    cx: &mut Cx<'_, M>,
    scratch: &mut Vec<u8>,
    txn: TxnId,
    commit_ts: Ts,
    writes: &[(Key, Write)],
    chunks: u32,
) -> Position {
    let (whole, in_chunks) = ([(cx.shard, writes)], [(cx.shard, chunks)]);
    let commit = CommitRef {
        txn,
        commit_ts,
        writes: if chunks == 0 { &whole } else { &[] },
        chunks: if chunks == 0 { &[] } else { &in_chunks },
    };
    cx.append(scratch, |out| journal::encode_commit(commit, out))
}

/// Makes committed writes visible. Readers of them wait for `position`.
///
/// Rows of an index that was dropped in the meantime are passed over.
#[inline]
pub fn install<M>(
    cx: &mut Cx<'_, M>,
    installed: &mut Installed,
    txn: TxnId,
    writes: &[(Key, Write)],
    commit_ts: Ts,
    position: Position,
) {
    let mut gone = None;
    for (key, write) in writes {
        install_row(cx, key, write, commit_ts, &mut gone);
    }
    begin_install(cx, installed, txn, commit_ts, position);
}

/// From here on the commit may be seen, by readers that wait for `position`.
#[inline]
pub fn begin_install<M>(
    cx: &mut Cx<'_, M>,
    installed: &mut Installed,
    txn: TxnId,
    commit_ts: Ts,
    position: Position,
) {
    if position > cx.durable {
        installed.insert(commit_ts, position);
    }
    if let Some(history) = &mut cx.history {
        history.push(Event::Commit {
            txn,
            shard: cx.shard,
            commit_ts,
            position,
        });
    }
}

/// Appends the commit of a transaction whose writes stand in chunks of this shard. From here on
/// they are installed in slices, under its locks, which go when [`install_slice`] says so.
pub fn commit_frozen<M>(
    cx: &mut Cx<'_, M>,
    installed: &mut Installed,
    bulks: &mut Bulks,
    scratch: &mut Vec<u8>,
    txn: TxnId,
    commit_ts: Ts,
    (writes, mut chunks): (WriteList, Chunks),
) -> Position {
    let position = append_commit(cx, scratch, txn, commit_ts, &[], chunks.count);
    chunks.free(cx.journal);
    begin_install(cx, installed, txn, commit_ts, position);
    bulks.begin(txn, commit_ts, writes, false);
    position
}

/// Appends the commit of a small transaction, and installs it. Returns the position of its record.
#[inline]
pub fn commit_few<M>(
    cx: &mut Cx<'_, M>,
    installed: &mut Installed,
    scratch: &mut Vec<u8>,
    txn: TxnId,
    commit_ts: Ts,
    writes: &[(Key, Write)],
) -> Position {
    let position = append_commit(cx, scratch, txn, commit_ts, writes, 0);
    install(cx, installed, txn, writes, commit_ts, position);
    position
}

/// Does one slice of the installing and freeing that large transactions leave. `Some`: all rows of
/// this transaction are installed, and its locks may go.
pub fn install_slice<M>(
    cx: &mut Cx<'_, M>,
    installed: &mut Installed,
    bulks: &mut Bulks,
) -> Option<TxnId> {
    if !bulks.has_turns() {
        return None;
    }
    match bulks.turn(cx) {
        Turn::Open => None,
        Turn::Journaled(commit_ts, position) => {
            installed.insert(commit_ts, position);
            None
        }
        Turn::Installed(txn) => Some(txn),
    }
}
