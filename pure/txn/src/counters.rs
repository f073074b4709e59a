//! What a shard counts. Counters only grow; the difference of two readings is a rate.

use serde::{Deserialize, Serialize};

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// Counters of one shard (sum them for a node or the cluster).
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        pub struct Counters { $(#[doc = $doc] pub $name: u64,)* }

        impl Counters {
            /// Names and values in a fixed order.
            pub fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
            /// What the counter of this name counts.
            pub fn meaning(name: &str) -> Option<&'static str> {
                match name {
                    $(stringify!($name) => Some($doc.trim_ascii()),)*
                    _ => None,
                }
            }
            /// Adds another shard's counters.
            pub fn add(&mut self, other: &Counters) {
                $(self.$name += other.$name;)*
            }
            /// What has been counted since an earlier reading.
            pub fn since(&self, before: &Counters) -> Counters {
                Counters { $($name: self.$name - before.$name,)* }
            }
        }
    };
}

counters! {
    /// Transactions committed by this coordinator.
    txn_committed,
    /// Transactions rolled back, for whatever reason.
    txn_aborted,
    /// Rolled back because of wait-die.
    txn_died,
    /// Rolled back because a lock was not granted in time.
    txn_lock_timeout,
    /// Rolled back because a participant was lost or did not answer.
    txn_participant_lost,
    /// Rolled back because the schema changed.
    txn_schema_changed,
    /// Idle readers that a writer waited for: their locks gave way.
    txn_gave_way,
    /// Outcomes that this node does not know.
    txn_unknown,
    /// Committed transactions that touched one shard.
    txn_shard_local,
    /// Committed transactions that touched several shards of one node.
    txn_node_local,
    /// Committed transactions that touched several nodes.
    txn_distributed,
    /// Sum of nodes over committed transactions.
    participant_nodes,
    /// Messages between nodes: frames. Messages of one step to one shard share one.
    messages,
    /// Messages between nodes that an answer waited for.
    messages_on_path,
    /// Messages between shards of one node.
    messages_in_node,
    /// Bytes of messages between nodes.
    message_bytes,
    /// Durable positions awaited on the path to an answer.
    forced_writes,
    /// Records appended to the journal.
    journal_records,
    /// Bytes appended to the journal.
    journal_bytes,
    /// Lock requests that had to wait.
    lock_waits,
    /// Microseconds spent in lock queues.
    lock_wait_us,
    /// Snapshot reads that waited for a prepared transaction.
    snapshot_waits,
    /// Reads of snapshots that would have missed a commit which may have been answered.
    snapshot_raises,
    /// Statements started again at a later snapshot.
    statement_restarts,
    /// Statements executed.
    statements,
    /// Statements that waited for older transactions (`admission_potential`).
    admission_waits,
    /// Such waits that ended because their time was up (`admission_wait`).
    admission_timeouts,
    /// Transactions restarted by the server itself.
    server_retries,
    /// Rows read by scans and gets.
    rows_read,
    /// Rows written by commits.
    rows_written,
    /// Formula writes applied.
    formulas,
    /// Rows that came from other shards to be owned here.
    rows_moved,
    /// Microseconds spent waiting for them.
    move_wait_us,
    /// Units of work on large transactions: rows, or 256 bytes of them, that went in slices.
    units,
}
