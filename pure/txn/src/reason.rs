//! Why a transaction was rolled back: the key, the other transaction, and the rule that asked for
//! it (docs/rules), as far as there are such.
//!
//! A reason is made only when a transaction fails: keys are copied then.

use alloc::boxed::Box;
use base::{IndexId, Key, NodeId, ShardId, TxnId};
use serde::{Deserialize, Serialize};

/// Why the protocol has rolled a transaction back. All may be retried but `Requested`, `DiskFull`
/// and `MemoryFull`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AbortReason {
    /// Wait-die: the transaction met a lock of an older one.
    Die {
        /// The lock that was wanted.
        key: Key,
        /// Transaction that holds the lock.
        holder: TxnId,
    },
    /// A lock was not granted before the deadline (55P03).
    LockTimeout {
        /// The lock that was wanted.
        key: Key,
        /// Transaction that holds the lock, or is to get it first.
        holder: TxnId,
    },
    /// The transaction waited for a row of one in doubt: the node that knows its outcome cannot be
    /// reached. (In a box: it is rare, and every answer has room for the largest reason.)
    InDoubt(Box<DoubtfulWait>),
    /// A participant lost its state (it restarted) before it had prepared.
    ParticipantLost(ShardId),
    /// A participant could not reach the coordinator before it had prepared, and gave its part up.
    CutOff(ShardId),
    /// No answer from this shard before the deadline; nothing was decided.
    Unreachable(ShardId),
    /// The row is out of reach as long as this shard's node cannot be reached.
    RowCutOff {
        /// Key of the row.
        key: Key,
        /// Shard that cannot be reached.
        at: ShardId,
        /// What the shard is to the row.
        tie: Tie,
    },
    /// The schema of a table changed between planning and commit. Names the index if it was a
    /// table's; `None`: the database changes its protocol, or has lost the table.
    SchemaChanged(Option<IndexId>),
    /// The snapshot is older than the versions of this row that are still kept. (For a range: the
    /// key of one of its rows.)
    SnapshotTooOld(Key),
    /// A commit that may have been answered before the reader began lies above its snapshot, and
    /// the reader cannot begin again by itself any more. Names the row, if there is one.
    SnapshotMisses(Option<Key>),
    /// What the transaction has read was changed by another one, which comes before it. Names a
    /// row; `None`: the clocks of the nodes were too far apart to tell.
    Overtaken(Option<Key>),
    /// The disk of this shard's node is full, and the transaction writes. A retry at once does not
    /// help.
    DiskFull(ShardId),
    /// The transaction was idle, and a writer waited for what it had read: its locks gave way.
    GaveWay {
        /// Key that it had read.
        key: Key,
        /// Transaction that waited.
        writer: TxnId,
    },
    /// ROLLBACK, cancel or an error in a statement.
    Requested,
    /// The memory of this shard's node is full, and the transaction writes more than a delete. A
    /// retry at once does not help.
    MemoryFull(ShardId),
    /// A row that another shard has did not come before the deadline (55P03). Which transaction
    /// uses the row there is not known here.
    MoveTimeout(Key),
}

const _: () = assert!(
    size_of::<AbortReason>() <= size_of::<Key>() + size_of::<TxnId>() + size_of::<u64>(),
    "every answer has room for the largest reason"
);

impl AbortReason {
    /// Number of the rule behind the reason; `None`: no rule of transactions asks for it.
    #[must_use]
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            AbortReason::Die { .. } => Some("R3"),
            AbortReason::LockTimeout { .. }
            | AbortReason::MoveTimeout(_)
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
            AbortReason::Overtaken(Some(_)) => Some("A1"),
            AbortReason::Overtaken(None) => Some("A4"),
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
    /// Transaction that holds the shared lock.
    pub reader: TxnId,
    /// Key that it has locked (for a range: its lower bound).
    pub key: Key,
    /// Transaction that waits.
    pub writer: TxnId,
}

/// A wait for a row that a transaction in doubt holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DoubtfulWait {
    /// The lock that was wanted.
    pub key: Key,
    /// Transaction in doubt, which holds the lock.
    pub holder: TxnId,
    /// Node that knows its outcome.
    pub node: NodeId,
    /// Microseconds for which that node has not been reached.
    pub age_us: u64,
}

/// What a shard that cannot be reached is to a row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Tie {
    /// The shard has the row, or is about to get it.
    Owner,
    /// The shard knows which shard has the row.
    Home,
    /// The shard has a copy of the row, under which its transactions may read.
    Copy,
    /// The shard knows whether this transaction, which has changed the row, has committed.
    Doubt(Box<TxnId>),
}
