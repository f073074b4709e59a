//! What breaks in a run, and how it comes back.

use super::{Mix, Run};
use crate::{Flight, Subject};
use base::NodeId;

impl<P: Subject, M: Mix<P>> Run<P, M> {
    pub(super) fn deliver_some(&mut self) {
        if self.world.flights.is_empty() {
            return;
        }
        let mut at = self.prng.below(self.world.flights.len() as u64) as usize;
        let flight = &self.world.flights[at];
        if !flight.is_remote() {
            // Queues inside a node keep their order.
            let (from, to) = (flight.from, flight.to);
            let same = |f: &Flight<_>| (f.from, f.to) == (from, to);
            let first = self.world.flights.iter().position(same);
            at = first.expect("at least this one");
        }
        if !self.world.may_leave(&self.world.flights[at]) {
            return;
        }
        let flight = self.world.flights.remove(at);
        let ends = [flight.from.node(), flight.to.node()];
        if flight.is_remote() && ends.iter().any(|node| self.cut.contains_key(node)) {
            // What was under way may still arrive, later; what is sent now does not.
            if self.prng.below(8) == 0 {
                self.world.flights.push(flight);
            }
            return;
        }
        if flight.is_remote() && self.profile.loses {
            match self.prng.below(12) {
                0 => return,
                1 => self.world.flights.push(flight.clone()),
                _ => {}
            }
        }
        self.world.deliver(flight);
    }

    /// A node ends, and all others notice, or none.
    pub(super) fn crash_some(&mut self) {
        let node = self.pick_node();
        if self.down.contains_key(&node) {
            return;
        }
        self.collect();
        self.crash(node);
        if self.prng.below(2) == 0 {
            self.world.announce_down(node);
            self.noticed.insert(node);
        }
    }

    fn crash(&mut self, node: NodeId) {
        let kept = self.prng.below(3) as usize;
        self.end_node(node, kept);
        let steps = 5 + self.prng.below(self.profile.down_steps) as u32;
        self.down.insert(node, steps);
    }

    /// A node ends, sometimes all of them at once, and each of the others notices or not.
    pub(super) fn black_out(&mut self) {
        let all = self.prng.below(6) == 0;
        let one = self.pick_node();
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        for node in nodes.iter().filter(|node| all || **node == one) {
            if self.down.contains_key(node) {
                continue;
            }
            self.crash(*node);
            for other in &nodes {
                if self.prng.below(2) == 0 {
                    self.lose_sight(*other, *node);
                }
            }
        }
    }

    /// A node ends, and its clients hear nothing any more.
    fn end_node(&mut self, node: NodeId, kept: usize) {
        self.collect();
        self.world.crash(node, kept);
        for client in &mut self.clients {
            let open = client.outcome.is_none() || client.held;
            if client.txn.shard.node() == node && open {
                client.lose();
            }
        }
    }

    /// A node lives and cannot be reached for a while.
    pub(super) fn cut_some(&mut self) {
        let node = self.pick_node();
        if self.down.contains_key(&node) || self.cut.contains_key(&node) {
            return;
        }
        let steps = 5 + self.prng.below(60) as u32;
        self.cut.insert(node, steps);
        self.world.announce_link(node, false);
    }

    /// A connection breaks: what was on it is lost, and nothing is sent before it stands again.
    fn lose_sight(&mut self, here: NodeId, there: NodeId) {
        if here == there || !self.world.nodes[&here].up {
            return;
        }
        let on_it = |f: &Flight<_>| (f.from.node(), f.to.node()) == (here, there);
        self.world.flights.retain(|flight| !on_it(flight));
        self.world.lose_sight(here, there);
        let steps = 2 + self.prng.below(100) as u32;
        self.unseen.insert((here, there), steps);
    }

    /// A connection breaks, in one direction or both.
    pub(super) fn break_some(&mut self) {
        let (one, other) = (self.pick_node(), self.pick_node());
        self.lose_sight(one, other);
        if self.prng.below(2) == 0 {
            self.lose_sight(other, one);
        }
    }

    /// Connections are back: all, or those that are due, if both ends are up.
    fn reconnect(&mut self, all: bool) {
        let ends: Vec<(NodeId, NodeId)> = self.unseen.keys().copied().collect();
        for (here, there) in ends {
            let left = self.unseen.get_mut(&(here, there)).expect("just listed");
            *left = left.saturating_sub(1);
            let due = all || *left == 0;
            if !self.world.nodes[&here].up {
                self.unseen.remove(&(here, there));
            } else if due && self.world.nodes[&there].up {
                self.unseen.remove(&(here, there));
                self.world.see(here, there);
            }
        }
    }

    /// What is due, or all, comes back.
    pub(super) fn revive(&mut self, all: bool) {
        for node in due(&mut self.cut, all) {
            self.cut.remove(&node);
            self.world.announce_link(node, true);
        }
        for node in due(&mut self.down, all) {
            self.down.remove(&node);
            self.world.restart(node);
            if all || self.noticed.remove(&node) || self.prng.below(2) == 0 {
                self.world.announce(node);
            }
        }
        self.reconnect(all);
    }

    /// One node ends and does not come back. All others know, and whatever their clients want ends
    /// soon, well or not.
    pub(super) fn go_on_without(&mut self, node: NodeId) {
        self.profile.loses = false;
        self.revive(true);
        for _ in 0..self.prng.below(30) {
            self.deliver_some();
        }
        self.end_node(node, 0);
        let others: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != node) {
            self.world.lose_sight(other, node);
            self.unseen.insert((other, node), u32::MAX);
        }
        // The locks of a coordinator that is away stay for a second.
        for _ in 0..24 {
            self.let_all_act();
            if self.active().is_empty() {
                break;
            }
            self.world.tick(100_000);
        }
        let waits = !self.active().is_empty();
        assert!(
            !waits,
            "{}",
            self.stuck(&format!("somebody waits for {node}"))
        );
        self.world.restart(node);
    }
}

/// Counts each down by one step. Returns those that are due, or all.
fn due(left: &mut std::collections::BTreeMap<NodeId, u32>, all: bool) -> Vec<NodeId> {
    left.values_mut()
        .for_each(|left| *left = left.saturating_sub(1));
    let due = left.iter().filter(|(_, left)| all || **left == 0);
    due.map(|(node, _)| *node).collect()
}
