//! What a shard gets when it starts.

use base::{NodeId, ShardId};
use catalog::Catalog;
use session::Barrier;
use std::sync::Arc;

/// The node that serialises schema changes.
pub(crate) const CATALOG_NODE: NodeId = NodeId(1);

/// What a shard knows about itself and its cluster when it starts.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// Name of the shard.
    pub shard: ShardId,
    /// All nodes with the addresses that SHOW NODES prints.
    pub nodes: Vec<(NodeId, String)>,
    /// Shards of each node.
    pub shards_per_node: u16,
    /// Number of starts of this node so far, with this one.
    pub incarnation: u32,
    /// Number of the cluster, in all its files and handshakes.
    pub cluster: u64,
    /// Seed of everything that is drawn at random.
    pub seed: u64,
    /// Reads a clock in nanoseconds for the service times of SHOW STAGES; a host without one gives
    /// a function that returns 0.
    pub stopwatch: fn() -> u64,
    /// Stops panics of parsing and planning.
    pub barrier: Barrier,
}

/// What recovery gives a shard.
pub type ShardRecovered = journal::RecoveredShard<Arc<Catalog>>;
