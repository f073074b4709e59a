//! Why a transaction was rolled back: the key that it was about, the other transaction, and the
//! rule that asked for it (docs/rules), as far as there are such.
//!
//! A reason is made when a transaction fails, and never before: keys are copied then.

use alloc::boxed::Box;
use base::{IndexId, Key, NodeId, ShardId, TxnId};
use serde::{Deserialize, Serialize};

/// Why a transaction was rolled back by the protocol. Every one of them may be retried except
/// `Requested`, `DiskFull` and `MemoryFull`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AbortReason {
    /// Wait-die: it met a lock of an older transaction.
    Die {
        /// The lock that was wanted.
        key: Key,
        /// Who holds it.
        holder: TxnId,
    },
    /// A lock was not granted before the deadline (55P03).
    LockTimeout {
        /// The lock that was wanted.
        key: Key,
        /// Who holds it, or is to have it first.
        holder: TxnId,
    },
    /// A row was waited for whose transaction is in doubt: who knows its outcome cannot be
    /// reached. (In a box: it is rare, and every answer has room for the largest reason.)
    InDoubt(Box<DoubtfulWait>),
    /// A participant lost its state (it restarted) before it had prepared.
    ParticipantLost(ShardId),
    /// A participant could not reach the coordinator before it had prepared, and gave its part up.
    CutOff(ShardId),
    /// No answer from this shard before the deadline; nothing was decided.
    Unreachable(ShardId),
    /// A row cannot be had as long as this shard's node cannot be reached.
    RowCutOff {
        /// Which row.
        key: Key,
        /// The shard.
        at: ShardId,
        /// What the shard has to do with it.
        tie: Tie,
    },
    /// The schema of a table changed between planning and commit. The key space, if it was one of
    /// a table's; `None`: the database changes its protocol, or has lost the table.
    SchemaChanged(Option<IndexId>),
    /// The snapshot is older than the versions of this row that are still kept. (For a range: a key
    /// of it.)
    SnapshotTooOld(Key),
    /// A commit that may have been answered before the reader began lies above its snapshot, and
    /// it has read or written too much to begin again by itself. The row, if one was looked at.
    SnapshotMisses(Option<Key>),
    /// The disk of this shard's node is full, and it was to write. Trying again at once does not
    /// help.
    DiskFull(ShardId),
    /// It was idle, and a writer waited for what it had read: its locks gave way.
    GaveWay {
        /// What it had read.
        key: Key,
        /// Who waited.
        writer: TxnId,
    },
    /// ROLLBACK, cancel or an error in a statement.
    Requested,
    /// The memory of this shard's node is full, and it was to write more than a delete. Trying
    /// again at once does not help.
    MemoryFull(ShardId),
}

const _: () = assert!(
    size_of::<AbortReason>() <= size_of::<Key>() + size_of::<TxnId>() + size_of::<u64>(),
    "every answer has room for the largest reason"
);

impl AbortReason {
    /// Number of the rule that asks for it; `None`: it follows from no rule of transactions.
    #[must_use]
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            AbortReason::Die { .. } => Some("R3"),
            AbortReason::LockTimeout { .. }
            | AbortReason::CutOff(_)
            | AbortReason::Unreachable(_) => Some("R16"),
            AbortReason::InDoubt(_) => Some("C15"),
            AbortReason::ParticipantLost(_) => Some("R15"),
            AbortReason::RowCutOff { tie, .. } => match tie {
                Tie::Owner | Tie::Home | Tie::Doubt(_) => Some("L17"),
                Tie::Copy => Some("L8"),
            },
            AbortReason::SnapshotTooOld(_) => Some("R13"),
            AbortReason::SnapshotMisses(_) => Some("R12"),
            AbortReason::GaveWay { .. } => Some("R19"),
            AbortReason::SchemaChanged(_)
            | AbortReason::DiskFull(_)
            | AbortReason::MemoryFull(_)
            | AbortReason::Requested => None,
        }
    }
}

/// A transaction whose shared lock keeps a writer waiting.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InTheWay {
    /// Which.
    pub reader: TxnId,
    /// What it has locked (for a range: its lower bound).
    pub key: Key,
    /// Who waits.
    pub writer: TxnId,
}

/// A wait for a row that a transaction in doubt holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoubtfulWait {
    /// The lock that was wanted.
    pub key: Key,
    /// Who holds it.
    pub holder: TxnId,
    /// Who knows its outcome.
    pub node: NodeId,
    /// For how long that has not been reached. Microseconds.
    pub age_us: u64,
}

/// What a shard that cannot be reached has to do with a row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Tie {
    /// It has the row, or is about to get it.
    Owner,
    /// It knows who has the row.
    Home,
    /// It has a copy of the row, under which its transactions may read.
    Copy,
    /// This transaction has changed the row, and whether it has committed is known there.
    Doubt(Box<TxnId>),
}
