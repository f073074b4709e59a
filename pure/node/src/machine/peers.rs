//! Connections with other nodes that come and go.

use super::Shard;
use crate::config::CATALOG_NODE;
use crate::message::{Message, WireMessage};
use base::{NodeId, Position, ShardId};

impl Shard {
    pub(super) fn peer_up(&mut self, node: NodeId, incarnation: u32) {
        self.peers.insert(node, incarnation);
        self.away.up(node);
        self.met.insert(node);
        self.update_unreachable();
        self.keep_with(node, incarnation);
        let (here, version) = {
            let mut core = self.core.borrow_mut();
            core.on_peer(node, incarnation);
            (core.config.shard, core.catalog.version)
        };
        if here == ShardId(0) {
            self.send_catalog(ShardId::new(node, 0));
            for (to, id, result) in self.ddl.untold(node) {
                self.send_ddl_done(to, id, result);
            }
        } else if node == CATALOG_NODE && here.index() == 0 {
            let wanted = Message::Wire(WireMessage::CatalogWanted { to: here });
            self.core.borrow_mut().send(ShardId(0), wanted, Position(0));
            self.tell_disk();
        } else if node == CATALOG_NODE && version > 0 {
            // The acknowledgement may have been lost with the connection.
            self.acknowledge();
        }
    }

    fn update_unreachable(&mut self) {
        let core = self.core.borrow();
        let own = core.config.shard.node();
        let shards = core.catalog.placement.shards().iter().copied();
        let down = |shard: &ShardId| shard.node() != own && !self.peers.contains_key(&shard.node());
        let unreachable = shards.filter(down).collect();
        drop(core);
        self.shows.borrow_mut().unreachable = unreachable;
        // Blocks of sessions there are undone.
        self.sweep.wanted |= self.core.borrow().catalog.open_blocks > 0;
        self.txns.wake_all();
    }

    pub(super) fn peer_down(&mut self, node: NodeId) {
        self.peers.remove(&node);
        self.ahead.forget(node);
        self.away.down(node, self.core.borrow().now);
        self.core.borrow_mut().on_peer_down(node);
        self.full_nodes.remove(&node);
        self.update_unreachable();
        self.keep_without(node);
        self.ddl.forget_answers(node);
        if node == CATALOG_NODE {
            self.ask_those_ahead();
            self.give_up_ddl();
            // Requests for locks end with their queue.
            self.quiescing.retain(|quiesce| quiesce.lock.is_none());
        }
    }
}
