//! How nodes of the world start, work and end.

use crate::costs::Work;
use crate::disk::SimDisk;
use crate::hosted::{BEAT_US, Hosted, Link, LinkState, Running, SILENCE_US, ShardHost, SimJournal};
use crate::plan::Kind;
use crate::queue::{Event, Life, LinkName, NodeEvent};
use crate::scale::model::Model;
use crate::world::{CLUSTER, World};
use base::{NodeId, ShardId, Ts};
use catalog::Placement;
use node::{
    CheckpointPart, ConnId, Effects, Input, Message, Preparation, Shard, ShardConfig, WireMessage,
    frame,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use storage::{
    Checkpointer, DiskFault, Identity, JournalBuffer, JournalLimits, Recovered, StorageError,
};
use txn::contract::Outgoing;

/// Pause until a node looks whether a checkpoint is due, and flushes what no effect waits for.
pub(crate) const HOUSEKEEPING_NS: u64 = 100_000_000;
/// Steps of a shard between two checks of its invariants.
const VALIDATE_STEPS: u64 = 512;
/// Time without a connection after which the readers of a node are not waited for: outages are
/// seldom longer than two seconds here.
const GONE_AFTER_US: u64 = 50_000;
/// Steps of all shards together between two comparisons of the owners of rows.
const OWNERS_STEPS: u64 = 2_048;

impl World {
    /// Starts a node that is down: recovers, waits for its clock, serves.
    pub(crate) fn start(&mut self, node: usize) {
        if self.nodes[node].running.is_some() {
            return;
        }
        if let Some((until, recovered)) = self.nodes[node].waiting.take() {
            if until > self.now_ns {
                // Another start has been asked for meanwhile; this one is under way.
                self.nodes[node].waiting = Some((until, recovered));
                return;
            }
            return self.serve(node, recovered);
        }
        let Some(recovered) = self.recover(node) else {
            return;
        };
        let now = self.wall(node);
        let wait_ns = recovered.wait_us(now) * 1_000;
        if wait_ns == 0 {
            return self.serve(node, recovered);
        }
        self.nodes[node].waiting = Some((self.now_ns + wait_ns, recovered));
        self.push(wait_ns, Event::Start { node });
    }

    /// Reads the node's files; `None` if it must try again later.
    fn recover(&mut self, node: usize) -> Option<Recovered<SimDisk>> {
        self.nodes[node].disk.revive();
        if std::mem::take(&mut self.nodes[node].flip) {
            self.check_flip(node);
        }
        let now = self.wall(node);
        let limits = self.limits();
        let identity = self.identity(node);
        let opened = storage::open(&self.nodes[node].disk, identity, limits, now, &mut |_| {});
        self.power_if_dead(node);
        match opened {
            Ok(recovered) if !self.nodes[node].disk.is_dead() => return Some(recovered),
            Ok(_) => self.start_later(node),
            Err(error) if can_pass(&error) => {
                self.trace.say(self.now_ns, || {
                    format!("n{} cannot start: {error}", node + 1)
                });
                self.start_later(node);
            }
            Err(error) => {
                self.broken = Some(format!("node {} cannot start: {error}", node + 1));
            }
        }
        None
    }

    fn serve(&mut self, node: usize, recovered: Recovered<SimDisk>) {
        self.starts += 1;
        let hosted = &mut self.nodes[node];
        hosted.starts += 1;
        let life = Life(hosted.starts);
        self.trace.mix(u64::from(recovered.incarnation));
        self.trace.say(self.now_ns, || {
            format!(
                "n{} starts, incarnation {}",
                node + 1,
                recovered.incarnation
            )
        });
        let position = recovered.writer.position();
        let buffer = Rc::new(RefCell::new(JournalBuffer::new(position)));
        let durable = Rc::new(Cell::new(position));
        let answered = Rc::new(Cell::new(Ts::ZERO));
        let first = ShardId::new(self.nodes[node].id, 0);
        let checkpointer = Checkpointer::new(
            self.nodes[node].disk.clone(),
            recovered.manifest,
            recovered.incarnation,
            first,
            self.plan.shards,
        );
        let mut shards = Vec::new();
        for (index, recovered_shard) in recovered.shards.into_iter().enumerate() {
            let fresh = recovered_shard.catalog.version == 0;
            let id = ShardId::new(self.nodes[node].id, index as u16);
            let journal = SimJournal {
                buffer: buffer.clone(),
                durable: durable.clone(),
                answered: answered.clone(),
            };
            let config = self.shard_config(id, recovered.incarnation);
            let mut machine = Shard::new(config, Box::new(journal), recovered_shard);
            machine.set_slice(self.plan.slice_units());
            machine.set_gone_after(GONE_AFTER_US);
            if fresh && id == ShardId(0) {
                let placement = Placement::new(self.plan.nodes, self.plan.shards);
                machine.bootstrap(placement, self.plan.protocol);
            }
            shards.push(self.shard_host(node, machine));
        }
        self.nodes[node].running = Some(Running {
            life,
            incarnation: recovered.incarnation,
            shards,
            buffer,
            durable,
            writer: recovered.writer,
            flushing: false,
            full: false,
            checkpointer,
            checkpoint_wait: None,
            next_shard: 0,
        });
        self.begin_life(node, life);
    }

    fn shard_host(&self, node: usize, machine: Shard) -> ShardHost {
        let others = (0..self.nodes.len()).filter(|other| *other != node);
        ShardHost {
            machine,
            effects: Effects::default(),
            conns: BTreeMap::new(),
            next_conn: 1,
            held: BTreeMap::new(),
            links: others.map(|other| (other, Link::new())).collect(),
            local_last_ns: 0,
            tick: None,
            tick_number: 0,
            busy_until_ns: 0,
            inbox: VecDeque::new(),
            steps: 0,
        }
    }

    fn begin_life(&mut self, node: usize, life: Life) {
        for shard in 0..usize::from(self.plan.shards) {
            self.input(node, shard, Input::Tick);
            for peer in (0..self.nodes.len()).filter(|peer| *peer != node) {
                let link = LinkName {
                    node,
                    life,
                    shard,
                    peer,
                    epoch: 0,
                };
                let after = self.prng.below(1_000_000);
                self.push(after, Event::LinkTry(link));
            }
        }
        self.push(
            HOUSEKEEPING_NS,
            Event::Node(node, life, NodeEvent::Housekeeping),
        );
    }

    fn start_later(&mut self, node: usize) {
        let after = 20_000_000 + self.prng.below(80_000_000);
        self.push(after, Event::Start { node });
    }

    pub(crate) fn limits(&self) -> JournalLimits {
        let segment_bytes = self.plan.segment_bytes;
        JournalLimits {
            segment_bytes,
            ahead_bytes: 1 << 15,
            fill_bytes: 1 << 12,
        }
    }

    pub(crate) fn identity(&self, node: usize) -> Identity {
        Identity {
            cluster: CLUSTER,
            node: self.nodes[node].id,
            shards: self.plan.shards,
            begin: self.nodes[node].starts == 0,
            directory: node as u64 + 1,
        }
    }

    fn shard_config(&mut self, shard: ShardId, incarnation: u32) -> ShardConfig {
        let name = |index| (NodeId(index), format!("sim:{index}"));
        ShardConfig {
            shard,
            nodes: (1..=self.plan.nodes).map(name).collect(),
            shards_per_node: self.plan.shards,
            incarnation,
            cluster: CLUSTER,
            seed: self.prng.next_u64(),
            stopwatch: || 0,
            barrier: node::barrier::let_through,
        }
    }

    /// Ends a node's process. `power`: with its power.
    pub(crate) fn crash(&mut self, node: usize, power: bool) {
        let Some(running) = self.nodes[node].running.take() else {
            return;
        };
        self.trace
            .say(self.now_ns, || format!("n{} ends, power {power}", node + 1));
        if power {
            self.cut_power_of_disk(node);
        }
        self.nodes[node].disk.kill();
        let conns: Vec<u32> = running
            .shards
            .iter()
            .flat_map(|shard| shard.conns.values().map(|conn| conn.client))
            .collect();
        for conn in conns {
            let at = self.arrival_at_client(conn, self.now_ns);
            self.push_at(at, Event::ClientLost { conn });
        }
        self.break_links_to(node, running.life);
    }

    fn cut_power_of_disk(&mut self, node: usize) {
        let disk = self.nodes[node].disk.clone();
        disk.cut_power(&mut self.prng, self.plan.any_names);
    }

    /// The others notice at some time that connections to this life are gone.
    fn break_links_to(&mut self, node: usize, life: Life) {
        // A process that ends says so at once, a machine that ends does not: then it is silent.
        let slowest_ns = 1 << self.prng.between(18, 31);
        for other in 0..self.nodes.len() {
            let Some(running) = &self.nodes[other].running else {
                continue;
            };
            let other_life = running.life;
            let mut names = Vec::new();
            for (shard, host) in running.shards.iter().enumerate() {
                let link = host.links.get(&node);
                if let Some(link) = link.filter(|link| link.state == LinkState::Up(life)) {
                    names.push(LinkName {
                        node: other,
                        life: other_life,
                        shard,
                        peer: node,
                        epoch: link.epoch,
                    });
                }
            }
            for name in names {
                let after = self.prng.below(slowest_ns);
                let noticed = (SILENCE_US + BEAT_US) * 1_000;
                self.push(after.min(noticed), Event::LinkDown(name));
            }
        }
    }

    /// After anything that touched the disk: whether the node has ended of it.
    pub(crate) fn power_if_dead(&mut self, node: usize) -> bool {
        if !self.nodes[node].disk.take_stopped() {
            return false;
        }
        *self.happened.entry(Kind::Power).or_default() += 1;
        if self.nodes[node].running.is_some() {
            self.crash(node, true);
            self.start_later(node);
        } else {
            self.cut_power_of_disk(node);
        }
        true
    }

    /// The disk has refused something that the journal needs: the process ends itself.
    pub(crate) fn fatal(&mut self, node: usize, why: &str) {
        if self.power_if_dead(node) {
            return;
        }
        self.trace
            .say(self.now_ns, || format!("n{}: {why}", node + 1));
        // What a failed sync should have written may be gone from the system's memory too.
        self.crash(node, true);
        self.start_later(node);
    }

    /// Gives an input to a shard, now or when its core is free.
    pub(crate) fn input(&mut self, node: usize, shard: usize, input: Input) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        let life = running.life;
        let host = &mut running.shards[shard];
        if self.costs.is_some() && (host.busy_until_ns > self.now_ns || !host.inbox.is_empty()) {
            let first = host.inbox.is_empty();
            host.inbox.push_back(input);
            let at = host.busy_until_ns;
            if first {
                self.push_at(at, Event::Node(node, life, NodeEvent::Run { shard }));
            }
            return;
        }
        self.step(node, shard, input);
    }

    pub(crate) fn on_run(&mut self, node: usize, shard: usize) {
        let running = self.nodes[node].up();
        let life = running.life;
        let Some(input) = running.shards[shard].inbox.pop_front() else {
            return;
        };
        self.step(node, shard, input);
        let Some(running) = &self.nodes[node].running else {
            return;
        };
        let host = &running.shards[shard];
        if !host.inbox.is_empty() {
            let at = host.busy_until_ns;
            self.push_at(at, Event::Node(node, life, NodeEvent::Run { shard }));
        }
    }

    fn step(&mut self, node: usize, shard: usize, input: Input) {
        let now = self.wall(node);
        self.steps += 1;
        let host = &mut self.nodes[node].up().shards[shard];
        let mut from_ns = self.now_ns;
        self.trace.say(self.now_ns, || {
            format!("n{}.{shard} <- {input:?}", node + 1)
        });
        let id = ShardId::new(NodeId(node as u16 + 1), shard as u16);
        let mut work = self.costs.as_mut().map(|costs| {
            let work = Work::begun(id, &input, &host.machine.counters());
            if let Some(watch) = costs.watch() {
                watch.begins();
            }
            work
        });
        host.machine.step(now, input, &mut host.effects);
        if let (Some(costs), Some(work)) = (&mut self.costs, &mut work) {
            if let Some(watch) = costs.watch() {
                watch.step_ended();
            }
            work.done(id, &host.machine.counters(), &host.effects);
            from_ns = self.now_ns.max(host.busy_until_ns) + costs.step_ns(id, work);
            host.busy_until_ns = from_ns;
        }
        host.steps += 1;
        self.closed_after_step(node, shard);
        let host = &mut self.nodes[node].up().shards[shard];
        if self.costs.is_none() && host.steps.is_multiple_of(VALIDATE_STEPS) {
            host.machine.validate();
        }
        self.carry_out(node, shard, from_ns);
        self.schedule_tick(node, shard);
        if self.costs.is_none()
            && self.steps.is_multiple_of(OWNERS_STEPS)
            && let Err(text) = self.check_owners(false)
        {
            self.broken.get_or_insert(text);
        }
    }

    /// Does what the machine asked for; it leaves the shard at `from_ns`.
    fn carry_out(&mut self, node: usize, shard: usize, from_ns: u64) {
        let running = self.nodes[node].up();
        let durable = running.durable.get();
        let host = &mut running.shards[shard];
        let mut effects = std::mem::take(&mut host.effects);
        let mut wanted = false;
        let mut speaking: Vec<ConnId> = Vec::new();
        for (conn, reply, wait) in effects.replies.drain(..) {
            if let Some(server) = host.conns.get_mut(&conn) {
                wanted |= server.reply(reply, wait, durable);
                if speaking.last() != Some(&conn) {
                    speaking.push(conn);
                }
            }
        }
        let mut leaving = Vec::new();
        for outgoing in effects.messages.drain(..) {
            if outgoing.wait > durable || host.held.contains_key(&outgoing.to) {
                host.held
                    .entry(outgoing.to)
                    .or_default()
                    .push_back(outgoing);
                wanted = true;
            } else {
                leaving.push(outgoing);
            }
        }
        let rare = effects.rare.take().unwrap_or_default();
        let (parts, preparations) = (rare.checkpoint, rare.preparations);
        host.effects = effects;
        speaking
            .into_iter()
            .for_each(|conn| self.speak(node, shard, conn, from_ns));
        for outgoing in leaving {
            self.send(node, shard, outgoing, from_ns);
        }
        for result in preparations.into_iter().filter_map(Preparation::run) {
            self.input(node, shard, Input::Prepared(Box::new(result)));
        }
        let more = matches!(parts.last(), Some(CheckpointPart::Bytes(_)));
        for part in parts {
            self.on_checkpoint_part(node, shard, part);
        }
        if more {
            self.ask_piece(node, shard);
        }
        if wanted {
            self.flush_soon(node);
        }
    }

    /// Sends what a connection has to say.
    pub(crate) fn speak(&mut self, node: usize, shard: usize, id: ConnId, from_ns: u64) {
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        let life = running.life;
        let Some(server) = running.shards[shard].conns.get_mut(&id) else {
            return;
        };
        if server.out.is_empty() {
            return;
        }
        let replies = std::mem::take(&mut server.out);
        let conn = server.client;
        let drained = !server.is_holding() && std::mem::take(&mut server.rows_sent);
        let closes = replies.contains(&wire::Reply::Close);
        self.trace.say(self.now_ns, || {
            format!("n{}.{shard} -> client {conn} {replies:?}", node + 1)
        });
        let at = self.arrival_at_client(conn, from_ns);
        self.push_at(at, Event::ClientOut { conn, replies });
        if drained {
            let conn = id;
            let event = NodeEvent::Drained { shard, conn };
            self.push_at(at + 1, Event::Node(node, life, event));
        }
        if closes {
            let at = self.arrival_at_client(conn, from_ns);
            self.push_at(at, Event::ClientLost { conn });
            self.drop_server_conn(node, shard, id);
        }
    }

    pub(crate) fn send(
        &mut self,
        node: usize,
        shard: usize,
        outgoing: Outgoing<Message>,
        from_ns: u64,
    ) {
        let Outgoing { to, message, .. } = outgoing;
        let from = ShardId::new(self.nodes[node].id, shard as u16);
        self.trace
            .say(self.now_ns, || format!("{from:?} -> {to:?} {message:?}"));
        let running = self.nodes[node].up();
        let life = running.life;
        if to.node() == from.node() {
            let host = &mut running.shards[shard];
            let delay = match &mut self.costs {
                Some(costs) => costs.local_ns(),
                None => 500 + self.prng.below(self.plan.local_us * 1_000),
            };
            let at = (from_ns + delay).max(host.local_last_ns + 1);
            host.local_last_ns = at;
            let message = Box::new(message);
            let event = NodeEvent::Local { from, to, message };
            return self.push_at(at, Event::Node(node, life, event));
        }
        let Message::Wire(message) = message else {
            panic!("a local message is addressed to another node")
        };
        self.transmit(node, shard, to, &message, from_ns);
    }

    /// Puts a message on the shard's connection to another node.
    fn transmit(
        &mut self,
        node: usize,
        shard: usize,
        to: ShardId,
        message: &WireMessage,
        from_ns: u64,
    ) {
        let from = ShardId::new(self.nodes[node].id, shard as u16);
        let peer = usize::from(to.node().0) - 1;
        let host = &mut self.nodes[node].up().shards[shard];
        let link = host
            .links
            .get_mut(&peer)
            .expect("messages go to nodes that exist");
        let LinkState::Up(life) = link.state else {
            return host.machine.note_sent(0);
        };
        let mut bytes = Vec::with_capacity(128);
        if let Some(watch) = self.costs.as_mut().and_then(Model::watch) {
            watch.begins();
        }
        let length = frame::encode_message(from, to, message, &mut bytes);
        if let Some(watch) = self.costs.as_mut().and_then(Model::watch) {
            watch.coding_ended(message.count());
        }
        host.machine.note_sent(length as u64);
        if self.network.is_cut(node, peer) || !link.stalled.is_empty() {
            link.stalled.push_back(bytes);
            return;
        }
        // What a protocol must live with; everything else travels in order or breaks with its
        // connection.
        let is_robust = matches!(message, WireMessage::Protocol(_) | WireMessage::Parcel(_));
        let may_suffer = is_robust && !self.healed;
        if may_suffer && self.happens(Kind::Loss, self.plan.loss) {
            return;
        }
        if may_suffer && self.happens(Kind::Duplicate, self.plan.duplicate) {
            let after = self.network.delay_ns(node, peer) * 2;
            let event = NodeEvent::Frame(bytes.clone());
            self.push(after, Event::Node(peer, life, event));
        }
        let overtakes = may_suffer && self.happens(Kind::Reorder, self.plan.reorder);
        self.launch(node, shard, peer, life, bytes, from_ns, overtakes);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one flight")]
    fn launch(
        &mut self,
        node: usize,
        shard: usize,
        peer: usize,
        life: Life,
        bytes: Vec<u8>,
        from_ns: u64,
        overtakes: bool,
    ) {
        let delay = match &mut self.costs {
            Some(costs) => costs.link_ns(from_ns, node, peer, bytes.len()),
            None => self.network.delay_ns(node, peer),
        };
        let mut at = from_ns + delay;
        if overtakes {
            at += self.prng.below(8) * delay;
        } else {
            let link = self.nodes[node].up().shards[shard].links.get_mut(&peer);
            let link = link.expect("messages go to nodes that exist");
            at = at.max(link.last_ns + 1);
            link.last_ns = at;
        }
        self.push_at(at, Event::Node(peer, life, NodeEvent::Frame(bytes)));
    }

    /// Draws whether something of this kind happens, with this chance in a million.
    fn happens(&mut self, kind: Kind, in_million: u64) -> bool {
        let happens = in_million > 0 && self.prng.below(1_000_000) < in_million;
        if happens {
            *self.happened.entry(kind).or_default() += 1;
        }
        happens
    }

    pub(crate) fn on_frame(&mut self, node: usize, bytes: &[u8]) {
        self.trace.mix(u64::from_le_bytes(
            bytes[..8].try_into().expect("a frame has a header"),
        ));
        if let Some(watch) = self.costs.as_mut().and_then(Model::watch) {
            watch.begins();
        }
        let next = frame::next_frame(bytes).expect("frames are not damaged on the way");
        let (payload, used) = next.expect("frames travel whole");
        assert_eq!(used, bytes.len());
        let message = frame::decode_message(payload);
        let frame::Envelope { from, to, message } =
            message.expect("what a node encodes can be decoded");
        if let Some(watch) = self.costs.as_mut().and_then(Model::watch) {
            watch.coding_ended(message.count());
        }
        let message = Message::Wire(message);
        let shard = usize::from(to.index());
        self.input(node, shard, Input::Message { from, message });
    }

    fn schedule_tick(&mut self, node: usize, shard: usize) {
        let now = self.wall(node);
        let Some(running) = &mut self.nodes[node].running else {
            return;
        };
        let life = running.life;
        let host = &mut running.shards[shard];
        let Some(deadline) = host.machine.deadline() else {
            host.tick = None;
            return;
        };
        // Parked work goes on a little later, as it would behind the other events of a loop.
        let after_ns = (deadline.since(now) * 1_000).max(2_000);
        let free_ns = host.busy_until_ns.max(self.now_ns);
        let at = free_ns.max(self.now_ns + after_ns);
        if host.tick.is_some_and(|(planned, _)| planned <= at) {
            return;
        }
        host.tick_number += 1;
        let number = host.tick_number;
        host.tick = Some((at, number));
        let event = NodeEvent::Tick { shard, number };
        self.push_at(at, Event::Node(node, life, event));
    }

    pub(crate) fn on_tick(&mut self, node: usize, shard: usize, number: u64) {
        let now = self.wall(node);
        let host = &mut self.nodes[node].up().shards[shard];
        if host.tick.is_none_or(|(_, known)| known != number) {
            return;
        }
        host.tick = None;
        if host.machine.deadline().is_some_and(|at| at <= now) {
            self.input(node, shard, Input::Tick);
        }
        self.schedule_tick(node, shard);
    }
}

impl Hosted {
    /// The running node; the caller knows that it is up.
    pub(crate) fn up(&mut self) -> &mut Running {
        self.running.as_mut().expect("the node is up")
    }

    /// Whether it stands still.
    pub(crate) fn is_paused(&self, now_ns: u64) -> bool {
        self.paused_until_ns > now_ns
    }

    /// Whether what comes now has to wait: behind what came during the pause, too.
    pub(crate) fn holds(&self, now_ns: u64) -> bool {
        self.is_paused(now_ns) || !self.held.is_empty()
    }
}

/// Whether a start that failed like this may succeed later.
fn can_pass(error: &StorageError) -> bool {
    match error {
        StorageError::Disk(error) => error.fault != DiskFault::NotFound,
        _ => false,
    }
}
