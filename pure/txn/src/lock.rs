//! Lock queues with wait-die over rows, key ranges and whole shards.

use base::{Ts, TxnId};
use serde::{Deserialize, Serialize};

/// Strength of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum LockMode {
    /// Many readers.
    Shared,
    /// One owner.
    Exclusive,
}

/// Rank in wait-die, fixed per attempt; waiting goes only from higher to lower priority. `Ord`: a
/// greater value is a higher priority: urgent before not urgent, then the smaller timestamp, then the smaller id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Priority {
    /// Has died too often.
    pub urgent: bool,
    /// First timestamp of the client's transaction.
    pub ts: Ts,
    /// Tie break.
    pub txn: TxnId,
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.urgent, other.ts, other.txn).cmp(&(other.urgent, self.ts, self.txn))
    }
}
