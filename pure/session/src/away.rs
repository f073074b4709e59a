//! Nodes without a connection, and since when: for how long a statement that needs one of them is
//! tried again.

use base::{NodeId, Time};
use std::collections::BTreeMap;

/// Longest time, in microseconds, for which a transaction that needs a node without a connection is
/// run again, counted from its first attempt that failed so, and from the loss of the connection.
///
/// Nodes notice a silent one after 0.8 s and connect again within 0.1 s of hearing from it. So a
/// node that was stopped or had no CPU for about a second is back within this time, and so is one
/// whose first connection is being made. A longer wait is mostly in vain, and clients that use rows
/// of many nodes stand still meanwhile.
pub(crate) const AWAY_US_MAX: u64 = 500_000;

/// The nodes that this shard is not connected with.
#[derive(Default)]
pub struct Away {
    since: BTreeMap<NodeId, Time>,
}

impl Away {
    /// The connection is lost, or cannot be made.
    pub fn down(&mut self, node: NodeId, now: Time) {
        self.since.entry(node).or_insert(now);
    }

    /// The node answers, but there is no connection yet.
    pub fn heard(&mut self, node: NodeId, now: Time) {
        if let Some(since) = self.since.get_mut(&node) {
            *since = now;
        }
    }

    /// There is a connection.
    pub fn up(&mut self, node: NodeId) {
        self.since.remove(&node);
    }

    /// Whether the node may be back soon: there is a connection, or was until a moment ago.
    pub fn may_return(&self, node: NodeId, now: Time) -> bool {
        let since = self.since.get(&node);
        since.is_none_or(|since| now.since(*since) < AWAY_US_MAX)
    }
}
