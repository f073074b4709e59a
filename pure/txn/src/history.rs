//! Events from which checkers rebuild what happened.

use base::{Key, KeyRange, Position, ShardId, Time, Ts, TxnId};

/// One step of one transaction as a shard saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It started.
    Begin {
        /// Which.
        txn: TxnId,
        /// When.
        at: Time,
    },
    /// It read a version (`Ts::ZERO`: absent). Of a row to which others add at that time, only
    /// columns that they do not add to.
    Read {
        /// Which.
        txn: TxnId,
        /// Row.
        key: Key,
        /// Commit timestamp of the version it saw.
        version: Ts,
    },
    /// It read a range.
    ReadRange {
        /// Which.
        txn: TxnId,
        /// Key space and slot.
        index: base::IndexId,
        /// Keys.
        range: KeyRange,
    },
    /// It wrote a row that becomes visible at its commit.
    Write {
        /// Which.
        txn: TxnId,
        /// Row.
        key: Key,
    },
    /// Its writes on `shard` became visible.
    Commit {
        /// Which.
        txn: TxnId,
        /// Where.
        shard: ShardId,
        /// Place in the order of commits.
        commit_ts: Ts,
        /// Position of its record in the shard's journal.
        position: Position,
    },
    /// It was rolled back.
    Abort {
        /// Which.
        txn: TxnId,
    },
    /// Its coordinator could not tell the client how it ended.
    Unknown {
        /// Which.
        txn: TxnId,
    },
}
