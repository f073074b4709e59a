//! Connections between nodes: each shard has one to every other node, as in the server.

use crate::hosted::{BEAT_US, Link, LinkState, RETRY_US_MAX, RETRY_US_MIN, SILENCE_US};
use crate::queue::{Event, Life, LinkName, NodeEvent};
use crate::world::World;
use base::NodeId;
use node::Input;

impl World {
    fn link(&mut self, name: LinkName) -> Option<&mut Link> {
        if !self.lives(name.node, name.life) {
            return None;
        }
        let running = self.nodes[name.node].running.as_mut()?;
        let link = running.shards[name.shard].links.get_mut(&name.peer)?;
        (link.epoch == name.epoch).then_some(link)
    }

    pub(crate) fn on_link_try(&mut self, mut name: LinkName) {
        let (now_ns, peer, own) = (self.now_ns, name.peer, name.node);
        let reachable = !self.network.is_cut(own, peer)
            && !self.network.is_cut(peer, own)
            && !self.nodes[peer].is_paused(now_ns);
        let life = self.nodes[peer].running.as_ref().map(|up| up.life);
        let there_and_back = self.network.delay_ns(own, peer) + self.network.delay_ns(peer, own);
        let pause_ns = self.prng.below(1_000_000);
        let Some(link) = self.link(name) else {
            return;
        };
        if link.state != LinkState::Idle {
            return;
        }
        match life.filter(|_| reachable) {
            Some(life) => {
                link.state = LinkState::Opening;
                link.epoch += 1;
                name.epoch = link.epoch;
                self.push(there_and_back, Event::LinkUp(name, life));
            }
            None => {
                let after = link.retry_us * 1_000 + pause_ns;
                link.retry_us = (link.retry_us * 2).min(RETRY_US_MAX);
                self.push(after, Event::LinkTry(name));
            }
        }
    }

    pub(crate) fn on_link_up(&mut self, name: LinkName, life: Life) {
        let up = self.nodes[name.peer].running.as_ref();
        let incarnation = up.filter(|up| up.life == life).map(|up| up.incarnation);
        let now_ns = self.now_ns;
        let Some(link) = self.link(name) else {
            return;
        };
        let Some(incarnation) = incarnation else {
            return self.link_idle(name);
        };
        link.state = LinkState::Up(life);
        link.retry_us = RETRY_US_MIN;
        link.last_ns = now_ns;
        let node = NodeId(name.peer as u16 + 1);
        self.trace.say(now_ns, || format!("link {name:?} up"));
        self.input(name.node, name.shard, Input::PeerUp { node, incarnation });
    }

    fn link_idle(&mut self, mut name: LinkName) {
        let Some(link) = self.link(name) else {
            return;
        };
        link.state = LinkState::Idle;
        link.stalled.clear();
        link.epoch += 1;
        name.epoch = link.epoch;
        let after = link.retry_us * 1_000;
        link.retry_us = (link.retry_us * 2).min(RETRY_US_MAX);
        self.push(after, Event::LinkTry(name));
    }

    pub(crate) fn on_link_down(&mut self, name: LinkName) {
        let Some(link) = self.link(name) else {
            return;
        };
        let was_up = matches!(link.state, LinkState::Up(_));
        self.link_idle(name);
        if was_up {
            let node = NodeId(name.peer as u16 + 1);
            self.trace
                .say(self.now_ns, || format!("link {name:?} down"));
            self.input(name.node, name.shard, Input::PeerDown { node });
        }
    }

    /// Heartbeats of `from` find that `to` does not answer: the connections break, unless they are
    /// others by then. Nothing is found if it lasts less than the silence that is allowed.
    pub(crate) fn notice_silence(&mut self, from: usize, to: usize, for_us: u64) {
        if for_us < SILENCE_US + BEAT_US {
            return;
        }
        for name in self.links_between(from, to) {
            let after_us = SILENCE_US + self.prng.below(BEAT_US);
            self.push(after_us * 1_000, Event::LinkDown(name));
        }
    }

    /// A node stands still: the others notice it, and close their ends, which it finds when it goes
    /// on.
    pub(crate) fn notice_pause(&mut self, node: usize, for_us: u64) {
        if for_us < SILENCE_US + BEAT_US {
            return;
        }
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.notice_silence(other, node, for_us);
            for name in self.links_between(node, other) {
                self.push(for_us * 1_000, Event::LinkDown(name));
            }
        }
    }

    /// The connections of a node to another one, as they are now.
    fn links_between(&self, from: usize, to: usize) -> Vec<LinkName> {
        let Some(running) = &self.nodes[from].running else {
            return Vec::new();
        };
        let life = running.life;
        let shards = running.shards.iter().enumerate();
        shards
            .map(|(shard, hosted)| LinkName {
                node: from,
                life,
                shard,
                peer: to,
                epoch: hosted.links[&to].epoch,
            })
            .collect()
    }

    /// Cuts one direction. Connections that send over it may break before it ends.
    pub(crate) fn cut(&mut self, from: usize, to: usize, for_us: u64) {
        self.next_cut += 1;
        let number = self.next_cut;
        self.network.cut(from, to, number);
        self.push(for_us * 1_000, Event::CutEnd { from, to, number });
        // A question and its answer need both directions.
        self.notice_silence(from, to, for_us);
        self.notice_silence(to, from, for_us);
        for name in self.links_between(from, to) {
            let after = self.prng.below(for_us * 2_000 + 1);
            // Half of them outlive a short cut: then what was held back arrives late.
            if after < for_us * 1_000 {
                self.push(after, Event::LinkDown(name));
            }
        }
    }

    /// Cuts all links of a node, in both directions.
    pub(crate) fn cut_off(&mut self, node: usize, for_us: u64) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.cut(node, other, for_us);
            self.cut(other, node, for_us);
        }
    }

    /// A cut has ended: what it held back arrives now.
    pub(crate) fn release_stalled(&mut self, from: usize, to: usize) {
        let Some(running) = &mut self.nodes[from].running else {
            return;
        };
        let mut late = Vec::new();
        for shard in &mut running.shards {
            let link = shard
                .links
                .get_mut(&to)
                .expect("every other node has a link");
            let LinkState::Up(life) = link.state else {
                continue;
            };
            let mut at = self.now_ns.max(link.last_ns);
            for bytes in link.stalled.drain(..) {
                at += self.network.delay_ns(from, to);
                late.push((at, life, bytes));
            }
            link.last_ns = at;
        }
        for (at, life, bytes) in late {
            self.push_at(at, Event::Node(to, life, NodeEvent::Frame(bytes)));
        }
    }
}
