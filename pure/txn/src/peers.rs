//! What a shard knows of the other nodes: the life of each, and which cannot be reached.

use alloc::collections::BTreeMap;
use base::{NodeId, ShardId, Time};

/// What the incarnation in a message says about the sender's node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// A life that is over: the message is ignored.
    Former,
    /// The life that is known.
    Present,
    /// A new life: what the node held only in memory is lost.
    New {
        /// Whether no life of the node was known before.
        first: bool,
    },
}

/// The other nodes, as one shard knows them.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// Largest incarnation seen of each node.
    lives: BTreeMap<NodeId, u32>,
    /// Nodes that cannot be reached, and since when.
    down: BTreeMap<NodeId, Time>,
}

impl Peers {
    /// What a message of `incarnation` of `node` says, without noting it.
    pub fn judge(&self, node: NodeId, incarnation: u32) -> Life {
        let known = self.life(node);
        match incarnation {
            _ if incarnation < known => Life::Former,
            _ if incarnation > known => Life::New { first: known == 0 },
            _ => Life::Present,
        }
    }

    /// Notes the life of a node, unless a later one is known.
    pub fn meet(&mut self, node: NodeId, incarnation: u32) -> Life {
        let life = self.judge(node, incarnation);
        if matches!(life, Life::New { .. }) {
            self.lives.insert(node, incarnation);
        }
        life
    }

    /// Largest incarnation seen of a node; 0: none.
    pub fn life(&self, node: NodeId) -> u32 {
        self.lives.get(&node).copied().unwrap_or(0)
    }

    /// Whether a life of the node is known.
    pub fn knows(&self, node: NodeId) -> bool {
        self.lives.contains_key(&node)
    }

    /// The last connection to the node is lost: no message to it leaves. Returns whether that is
    /// new.
    pub fn lose(&mut self, node: NodeId, now: Time) -> bool {
        if self.down.contains_key(&node) {
            return false;
        }
        self.down.insert(node, now);
        true
    }

    /// A connection to the node is there. Returns whether there was none.
    pub fn regain(&mut self, node: NodeId) -> bool {
        self.down.remove(&node).is_some()
    }

    /// Whether every node can be reached, as far as this shard knows.
    #[inline]
    pub fn all_up(&self) -> bool {
        self.down.is_empty()
    }

    /// Whether a shard's node cannot be reached.
    #[inline]
    pub fn is_down(&self, shard: ShardId) -> bool {
        !self.down.is_empty() && self.down.contains_key(&shard.node())
    }

    /// Since when a node cannot be reached; `None`: it can.
    pub fn down_since(&self, node: NodeId) -> Option<Time> {
        self.down.get(&node).copied()
    }

    /// The nodes that cannot be reached, ascending.
    pub fn down(&self) -> impl Iterator<Item = NodeId> {
        self.down.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_only_go_up() {
        let mut peers = Peers::default();
        let node = NodeId(3);
        assert!(!peers.knows(node));
        assert_eq!(peers.meet(node, 2), Life::New { first: true });
        assert_eq!(peers.judge(node, 4), Life::New { first: false });
        assert_eq!(peers.meet(node, 1), Life::Former);
        assert_eq!(peers.meet(node, 2), Life::Present);
        assert_eq!(peers.meet(node, 4), Life::New { first: false });
        assert_eq!((peers.life(node), peers.life(NodeId(9))), (4, 0));
    }

    #[test]
    fn a_node_is_away_until_it_is_back() {
        let mut peers = Peers::default();
        let (node, shard) = (NodeId(3), ShardId::new(NodeId(3), 1));
        assert!(peers.all_up());
        assert!(peers.lose(node, Time(5)));
        assert!(!peers.lose(node, Time(6)));
        assert!(peers.is_down(shard) && !peers.is_down(ShardId::new(NodeId(4), 1)));
        assert_eq!(peers.down_since(node), Some(Time(5)));
        assert_eq!(peers.down().next(), Some(node));
        assert!(peers.regain(node));
        assert!(!peers.regain(node) && peers.all_up());
    }
}
