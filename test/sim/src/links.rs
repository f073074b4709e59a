//! Connections between nodes: each shard has one to every other node, as in the server.

use crate::hosted::{Link, LinkState, RETRY_US_MAX, RETRY_US_MIN};
use crate::queue::{Event, Life, LinkName};
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
        let life = self.nodes[peer]
            .running
            .as_ref()
            .map(|running| running.life);
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
        let incarnation = self.nodes[name.peer]
            .running
            .as_ref()
            .filter(|running| running.life == life)
            .map(|running| running.incarnation);
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

    /// Cuts one direction. Connections that send over it may break before it ends.
    pub(crate) fn cut(&mut self, from: usize, to: usize, for_us: u64) {
        self.next_cut += 1;
        let number = self.next_cut;
        self.network.cut(from, to, number);
        self.push(for_us * 1_000, Event::CutEnd { from, to, number });
        let Some(running) = &self.nodes[from].running else {
            return;
        };
        let life = running.life;
        let epochs: Vec<u32> = running
            .shards
            .iter()
            .map(|shard| shard.links[&to].epoch)
            .collect();
        for (shard, epoch) in epochs.into_iter().enumerate() {
            let after = self.prng.below(for_us * 2_000 + 1);
            // Half of them outlive the cut: then what was held back arrives late.
            if after < for_us * 1_000 {
                let name = LinkName {
                    node: from,
                    life,
                    shard,
                    peer: to,
                    epoch,
                };
                self.push(after, Event::LinkDown(name));
            }
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
            self.push_at(
                at,
                Event::Frame {
                    node: to,
                    life,
                    bytes,
                },
            );
        }
    }
}
