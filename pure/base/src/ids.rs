//! Names of nodes, shards, transactions and catalog objects, and positions in a journal.

use core::fmt;
use serde::{Deserialize, Serialize};

/// Most nodes that one cluster may have.
pub const NODE_COUNT_MAX: u16 = 64;
/// Most shards that one node may have. With [`NODE_COUNT_MAX`] it fills the 10 shard bits of a
/// [`crate::Ts`].
pub const SHARDS_PER_NODE_MAX: u16 = 16;
const _: () = assert!(NODE_COUNT_MAX * SHARDS_PER_NODE_MAX == 1 << 10);

/// One server process, numbered from 1 to [`NODE_COUNT_MAX`]. 0 is no node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct NodeId(pub u16);

/// One event-loop thread of one node, unique in the cluster: 0 to 1023.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct ShardId(pub u16);

impl ShardId {
    /// The shard with number `index` (from 0) on `node`.
    pub fn new(node: NodeId, index: u16) -> ShardId {
        assert!(node.0 >= 1 && node.0 <= NODE_COUNT_MAX && index < SHARDS_PER_NODE_MAX);
        ShardId((node.0 - 1) * SHARDS_PER_NODE_MAX + index)
    }
    /// The node that runs this shard.
    pub fn node(self) -> NodeId {
        NodeId(self.0 / SHARDS_PER_NODE_MAX + 1)
    }
    /// The number of this shard on its node, from 0.
    pub fn index(self) -> u16 {
        self.0 % SHARDS_PER_NODE_MAX
    }
}

/// A user transaction: the coordinating shard, the incarnation of its node, and a counter.
///
/// Unique over the life of the cluster: every start of a node forces a larger incarnation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct TxnId {
    /// The coordinator.
    pub shard: ShardId,
    /// Starts of the coordinator's node so far.
    pub incarnation: u32,
    /// Counts transactions of this shard in this incarnation, from 1. Its last bit tells two
    /// protocols apart whose promises stand in one journal (`catalog::ProtocolKind::has_odd_ids`).
    pub counter: u64,
}

impl TxnId {
    /// Whether the last bit of the counter is set.
    #[must_use]
    pub fn is_odd(self) -> bool {
        self.counter & 1 == 1
    }
}

/// A byte position in the journal of one node (the papers say LSN). `Position(0)` is always
/// durable, so it means "waits for nothing".
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default, Debug,
)]
pub struct Position(pub u64);

/// A database, unique in the cluster and never used again.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug, Default,
)]
pub struct DatabaseId(pub u32);

/// A table (also its `oid` in pg_class).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug, Default,
)]
pub struct TableId(pub u32);

/// A key space: the rows of a table (its primary index) or one secondary index.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Debug, Default,
)]
pub struct IndexId(pub u32);

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}
impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}
impl fmt::Debug for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}.{}", self.node().0, self.index())
    }
}
impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
impl fmt::Debug for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "t{}.{}.{}.{}",
            self.shard.node().0,
            self.shard.index(),
            self.incarnation,
            self.counter
        )
    }
}
impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_name_their_node() {
        for node in 1..=NODE_COUNT_MAX {
            for index in 0..SHARDS_PER_NODE_MAX {
                let shard = ShardId::new(NodeId(node), index);
                assert_eq!((shard.node(), shard.index()), (NodeId(node), index));
            }
        }
        assert_eq!(
            ShardId::new(NodeId(NODE_COUNT_MAX), SHARDS_PER_NODE_MAX - 1),
            ShardId(1023)
        );
        let txn = TxnId {
            shard: ShardId::new(NodeId(2), 3),
            incarnation: 4,
            counter: 5,
        };
        assert_eq!(txn.to_string(), "t2.3.4.5");
    }
}
