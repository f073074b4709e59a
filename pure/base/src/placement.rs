//! Which shard is home of which slot.

use crate::{NodeId, ShardId, Slot};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The shards of the cluster and the home of each slot. Fixed while membership is a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct Placement {
    shards: Vec<ShardId>,
}

impl Placement {
    /// Spreads the slots over `nodes` nodes (numbered from 1) with `shards_per_node` shards each.
    pub fn new(nodes: u16, shards_per_node: u16) -> Placement {
        // Neighbouring shards of the list lie on different nodes.
        let shards = (0..shards_per_node)
            .flat_map(|index| (1..=nodes).map(move |node| ShardId::new(NodeId(node), index)))
            .collect();
        Placement { shards }
    }
    /// Spreads the slots over `shards` in turn.
    pub fn over(shards: Vec<ShardId>) -> Placement {
        Placement { shards }
    }
    /// The home of `slot`.
    #[inline]
    pub fn home(&self, slot: Slot) -> ShardId {
        self.shards[slot.0 as usize % self.shards.len()]
    }
    /// All shards, in placement order.
    pub fn shards(&self) -> &[ShardId] {
        &self.shards
    }
}
