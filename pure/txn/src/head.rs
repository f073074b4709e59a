//! What every message of every protocol has besides its body.

use crate::contract::Cx;
use crate::peers::{Life, Peers};
use base::{Position, ShardId, Ts};
use serde::{Deserialize, Serialize};

/// The head of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// View of the membership; another view's messages are dropped.
    pub view: u64,
    /// Incarnation of the sender's node; messages of former lives are dropped.
    pub incarnation: u32,
    /// The sender's version of the catalog. A shard takes no message of a newer one than its own.
    pub catalog: u64,
    /// The sender's clock. The receiver draws only larger timestamps afterwards.
    pub clock: Ts,
}

impl<M> Cx<'_, M> {
    /// The head of a message that is sent now.
    #[inline]
    pub fn head(&self) -> Head {
        Head {
            view: self.view,
            incarnation: self.incarnation,
            catalog: self.catalog,
            clock: self.clock.last(),
        }
    }

    /// What a message says of its sender's life; [`Life::Former`]: the message is ignored.
    pub fn life_of(&self, peers: &Peers, from: ShardId, head: &Head) -> Life {
        if head.view != self.view {
            Life::Former
        } else if from.node() == self.shard.node() {
            Life::Present
        } else {
            peers.judge(from.node(), head.incarnation)
        }
    }

    /// Sends and counts a message; the host counts its bytes. It leaves when the journal is durable
    /// to `wait`, or within the node to `wait_in_node`. Returns the number of frames between nodes
    /// that it adds: 0 or 1.
    #[inline]
    pub fn post(&mut self, to: ShardId, message: M, wait: Position, wait_in_node: Position) -> u32 {
        if to.node() == self.shard.node() {
            self.counters.messages_in_node += 1;
            self.out.send(to, message, wait_in_node);
            return 0;
        }
        self.counters.messages += 1;
        self.out.send(to, message, wait);
        self.out.frames.sent(to)
    }
}
