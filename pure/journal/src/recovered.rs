//! What each shard gets from the files of its node at a start.

use crate::{CheckpointTables, Vote};
use base::Ts;
use store::Store;

/// What recovery gives a shard. `C` is the catalog as its reader decodes it: this crate knows only
/// bytes.
pub struct RecoveredShard<C> {
    /// Rows as of the end of the journal.
    pub store: Store,
    /// Newest catalog in the journal (empty on a fresh node).
    pub catalog: C,
    /// Timestamps are drawn above this only; a record with the bound is durable.
    pub clock_floor: Ts,
    /// Timestamps up to this may be drawn without another record.
    pub clock_bound: Ts,
    /// What transactions have left open: promises, decisions, rows away from home.
    pub tables: CheckpointTables,
    /// Vote of the node on the catalog that follows this one; given to the node's first shard.
    pub vote: Option<Vote>,
}
