//! Connections that break and stand again.

use crate::{Subject, World};
use base::NodeId;

impl<P: Subject> World<P> {
    /// Tells the shards of `to` that nothing can be sent to `node`.
    pub fn lose_sight(&mut self, to: NodeId, node: NodeId) {
        for id in self.ids_of(to) {
            self.call(id, |protocol, cx| protocol.on_peer_down(cx, node));
        }
    }

    /// The connection from `here` stands again.
    pub fn see(&mut self, here: NodeId, there: NodeId) {
        let incarnation = self.nodes[&there].incarnation;
        for id in self.ids_of(here) {
            self.call(id, |protocol, cx| protocol.on_peer(cx, there, incarnation));
        }
    }

    fn others_up(&self, node: NodeId) -> Vec<NodeId> {
        let mut up = self.nodes_up();
        up.retain(|other| *other != node);
        up
    }

    /// Tells the other nodes that no connection to this one stands any more.
    pub fn announce_down(&mut self, node: NodeId) {
        for other in self.others_up(node) {
            self.lose_sight(other, node);
        }
    }

    /// Tells the other nodes about a restarted one.
    pub fn announce(&mut self, node: NodeId) {
        for other in self.others_up(node) {
            self.see(other, node);
        }
    }

    /// Tells a node and all others that they cannot reach each other (`false`), or can again.
    /// Messages arrive if they are delivered.
    pub fn announce_link(&mut self, node: NodeId, stands: bool) {
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for id in self.ids() {
            let here = id.node();
            let concerned = |other: &NodeId| (*other == node) != (here == node);
            for other in nodes.iter().copied().filter(concerned) {
                let there = &self.nodes[&other];
                let incarnation = there.incarnation;
                if self.nodes[&here].up && (there.up || !stands) {
                    self.call(id, |protocol, cx| match stands {
                        true => protocol.on_peer(cx, other, incarnation),
                        false => protocol.on_peer_down(cx, other),
                    });
                }
            }
        }
    }

    /// A node ends, and the others notice.
    pub fn kill(&mut self, node: NodeId) {
        self.crash(node, 0);
        self.announce_down(node);
    }

    /// It comes back.
    pub fn bring_back(&mut self, node: NodeId) {
        self.restart(node);
        self.announce(node);
    }

    /// Whether nothing arrives between two nodes.
    pub fn is_cut(&self, one: NodeId, other: NodeId) -> bool {
        self.cuts.contains(&(one.min(other), one.max(other)))
    }

    /// Nothing arrives between two nodes any more, and both notice.
    pub fn cut(&mut self, one: NodeId, other: NodeId) {
        self.cuts.insert((one.min(other), one.max(other)));
        for (here, there) in [(one, other), (other, one)] {
            if self.nodes[&here].up {
                self.lose_sight(here, there);
            }
        }
    }

    /// Two nodes reach each other again.
    pub fn mend(&mut self, one: NodeId, other: NodeId) {
        self.cuts.remove(&(one.min(other), one.max(other)));
        for (here, there) in [(one, other), (other, one)] {
            if self.nodes[&here].up && self.nodes[&there].up {
                self.see(here, there);
            }
        }
    }
}
