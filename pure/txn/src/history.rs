//! Events from which checkers rebuild a history.

use base::{Key, KeyRange, Position, ShardId, Time, Ts, TxnId};

/// One event of a transaction, as one shard saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The transaction began.
    Begin {
        /// Which.
        txn: TxnId,
        /// Wall time.
        at: Time,
    },
    /// The transaction read a version (`Ts::ZERO`: absent). If others added to the row at that
    /// time: it read only columns to which they did not add.
    Read {
        /// Which.
        txn: TxnId,
        /// Key of the row.
        key: Key,
        /// Commit timestamp of the version; zero: absent.
        version: Ts,
    },
    /// The transaction read a range.
    ReadRange {
        /// Which.
        txn: TxnId,
        /// Index.
        index: base::IndexId,
        /// Keys that were read.
        range: KeyRange,
    },
    /// The transaction wrote a row, which becomes visible at its commit.
    Write {
        /// Which.
        txn: TxnId,
        /// Key of the row.
        key: Key,
    },
    /// Its writes on `shard` became visible.
    Commit {
        /// Which.
        txn: TxnId,
        /// Shard of the writes.
        shard: ShardId,
        /// Place in the order of commits.
        commit_ts: Ts,
        /// Position of its record in the shard's journal.
        position: Position,
    },
    /// The transaction was rolled back.
    Abort {
        /// Which.
        txn: TxnId,
    },
    /// The coordinator could not tell the client how the transaction ended.
    Unknown {
        /// Which.
        txn: TxnId,
    },
}
