//! What the files of a node give its shards when it starts.

use crate::{CheckpointTables, Vote};
use base::Ts;
use store::Store;

/// What recovery gives a shard. `C` is the catalog as its reader decodes it: this crate knows its
/// bytes only.
pub struct RecoveredShard<C> {
    /// Rows as of the end of the journal.
    pub store: Store,
    /// Newest catalog in the journal (empty on a fresh node).
    pub catalog: C,
    /// Timestamps are drawn above it only; a record with the bound is durable.
    pub clock_floor: Ts,
    /// Timestamps up to here may be drawn without another record.
    pub clock_bound: Ts,
    /// What transactions have left open: promises, decisions, rows away from home.
    pub tables: CheckpointTables,
    /// Of the node, on its first shard: on the catalog that follows this one.
    pub vote: Option<Vote>,
}
