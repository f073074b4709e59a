//! The world: nodes, network, clients and virtual time. One event after the other.

use crate::client::{ConnCell, ConnState};
use crate::closed::Closed;
use crate::executor::{Executor, Request, Shared, TaskId};
use crate::hosted::{Hosted, NodeClock};
use crate::network::Network;
use crate::plan::{Kind, Plan};
use crate::queue::{Event, Life, NodeEvent, Queue};
use crate::scale::model::Model;
use crate::trace::{Sink, Trace};
use crate::waits::Waits;
use base::{NodeId, Prng, Time};
use node::{ConnId, Input};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{ClientMessage, Reply};

/// Number of the simulated cluster.
pub(crate) const CLUSTER: u64 = 0x51b;
/// Virtual time 0: 2026-01-01, microseconds since the Unix epoch.
pub(crate) const EPOCH_US: u64 = 1_767_225_600_000_000;

/// A client's connection as the network sees it.
pub(crate) struct ClientLink {
    pub(crate) cell: Rc<ConnCell>,
    pub(crate) node: usize,
    /// Where it was accepted.
    pub(crate) server: Option<(Life, usize, ConnId)>,
    to_server_ns: u64,
    to_client_ns: u64,
}

/// Everything of one run.
pub(crate) struct World {
    pub(crate) now_ns: u64,
    pub(crate) plan: Plan,
    pub(crate) queue: Queue,
    pub(crate) nodes: Vec<Hosted>,
    pub(crate) network: Network,
    pub(crate) clients: BTreeMap<u32, ClientLink>,
    pub(crate) shared: Rc<Shared>,
    pub(crate) executor: Executor,
    /// Draws what faults leave open.
    pub(crate) prng: Prng,
    pub(crate) trace: Trace,
    /// Makes steps take time.
    pub(crate) costs: Option<Model>,
    pub(crate) happened: BTreeMap<Kind, u64>,
    pub(crate) steps: u64,
    pub(crate) starts: u64,
    pub(crate) checkpoints: u64,
    /// Everything is healed: nodes that end start again at once, nothing is lost.
    pub(crate) healed: bool,
    /// What must not be, seen by the world itself.
    pub(crate) broken: Option<String>,
    pub(crate) next_cut: u64,
    pub(crate) waits: Waits,
    pub(crate) closed: Closed,
    /// Tasks that wait for silence, and where each is told that it has come.
    quiet: Vec<(TaskId, Rc<Cell<bool>>)>,
}

/// Workloads in which messages of a client that come together share a step, as on a real node. In
/// the others each is a step, so that a node may die between two of them.
const JOINED: [&str; 2] = ["hot-pair", "stock"];

impl World {
    pub(crate) fn new(plan: Plan, sink: Option<Sink>, costs: Option<Model>) -> World {
        let mut prng = Prng::new(plan.seed ^ 0x0057_0a7d);
        let shared = Rc::new(Shared::new(EPOCH_US, plan.nodes, plan.shards));
        let count = usize::from(plan.nodes);
        let network = Network::new(prng.fork(), count, plan.delay_us);
        let mut nodes = Vec::new();
        for index in 0..count {
            let skew_us = plan.skew_us as i64;
            let offset_us = prng.between(-skew_us, skew_us);
            nodes.push(Hosted {
                id: NodeId(index as u16 + 1),
                disk: Default::default(),
                clock: NodeClock::new(offset_us),
                starts: 0,
                running: None,
                waiting: None,
                paused_until_ns: 0,
                held: Vec::new(),
                slow_disk: 1,
                power_at_flush: None,
                mute_at_flush: None,
                power_at_checkpoint: None,
                flip: false,
            });
        }
        if let Some((node, sync, how)) = plan.stop_at {
            nodes[usize::from(node) - 1].disk.stop_at(sync, how);
        }
        let executor = Executor::new(shared.clone());
        World {
            now_ns: 0,
            plan,
            queue: Queue::default(),
            nodes,
            network,
            clients: BTreeMap::new(),
            shared,
            executor,
            prng,
            trace: Trace::new(sink),
            costs,
            happened: BTreeMap::new(),
            steps: 0,
            starts: 0,
            checkpoints: 0,
            healed: false,
            broken: None,
            next_cut: 0,
            waits: Waits::default(),
            closed: Closed::default(),
            quiet: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, after_ns: u64, event: Event) {
        self.queue.push(self.now_ns, self.now_ns + after_ns, event);
    }

    pub(crate) fn push_at(&mut self, at_ns: u64, event: Event) {
        self.queue.push(self.now_ns, at_ns, event);
    }

    /// What the clock of a node shows.
    pub(crate) fn wall(&mut self, node: usize) -> Time {
        self.nodes[node].clock.read(EPOCH_US, self.now_ns)
    }

    /// Runs until `done`, at most until `limit_ns`; whether it is done.
    pub(crate) fn run_until(
        &mut self,
        limit_ns: u64,
        done: &mut dyn FnMut(&mut World) -> bool,
    ) -> bool {
        loop {
            self.settle_tasks();
            if self.broken.is_some() {
                return false;
            }
            if done(self) {
                return true;
            }
            if self.queue.is_quiet() && !self.quiet.is_empty() {
                for (task, came) in std::mem::take(&mut self.quiet) {
                    came.set(true);
                    self.executor.wake(task);
                }
                continue;
            }
            match self.queue.next_ns() {
                Some(at) if at <= limit_ns => self.now_ns = at,
                Some(_) | None => {
                    self.now_ns = limit_ns;
                    self.shared.now_ns.set(limit_ns);
                    return false;
                }
            }
            self.shared.now_ns.set(self.now_ns);
            let event = self.queue.pop().expect("just seen");
            self.happen(event);
        }
    }

    fn settle_tasks(&mut self) {
        loop {
            self.executor.run();
            let Some(request) = self.shared.take_request() else {
                return;
            };
            self.on_request(request);
        }
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::Sleep { task, at_ns } => self.push_at(at_ns, Event::Wake(task)),
            Request::Quiet { task, came } => self.quiet.push((task, came)),
            Request::Connect {
                node,
                cell,
                startup,
            } => {
                let node = usize::from(node) - 1;
                assert!(
                    node < self.nodes.len(),
                    "clients connect to nodes that exist"
                );
                let conn = cell.id;
                let link = ClientLink {
                    cell,
                    node,
                    server: None,
                    to_server_ns: 0,
                    to_client_ns: 0,
                };
                self.clients.insert(conn, link);
                let after = self.client_ns();
                self.push(after, Event::Connect { conn, startup });
            }
            Request::Send { conn, messages } => {
                self.note_question(conn, &messages);
                let at = self.arrival_at_server(conn);
                self.push_at(at, Event::ClientIn { conn, messages });
            }
            Request::Close { conn } => {
                if self.clients.contains_key(&conn) {
                    let at = self.arrival_at_server(conn);
                    self.push_at(at, Event::ClientGone { conn });
                }
            }
            Request::Cancel { node, pid, secret } => {
                let node = usize::from(node) - 1;
                let after = self.client_ns();
                self.push(after, Event::Cancel { node, pid, secret });
            }
        }
    }

    fn client_ns(&mut self) -> u64 {
        match &mut self.costs {
            Some(costs) => costs.client_ns(),
            None => self.network.client_ns(),
        }
    }

    /// When something that the client sends now arrives: in order.
    fn arrival_at_server(&mut self, conn: u32) -> u64 {
        let at = self.now_ns + self.client_ns();
        match self.clients.get_mut(&conn) {
            Some(link) => {
                link.to_server_ns = at.max(link.to_server_ns + 1);
                link.to_server_ns
            }
            None => at,
        }
    }

    /// When something that the server sends to the client at `from_ns` arrives: in order.
    pub(crate) fn arrival_at_client(&mut self, conn: u32, from_ns: u64) -> u64 {
        let at = from_ns + self.client_ns();
        match self.clients.get_mut(&conn) {
            Some(link) => {
                link.to_client_ns = at.max(link.to_client_ns + 1);
                link.to_client_ns
            }
            None => at,
        }
    }

    fn happen(&mut self, event: Event) {
        if let Some(node) = event.node()
            && self.nodes[node].holds(self.now_ns)
        {
            return self.nodes[node].held.push(event);
        }
        self.trace.mix(self.now_ns);
        self.trace.mix(event.code());
        match event {
            Event::Connect { conn, startup } => self.on_connect(conn, startup),
            Event::ClientIn { conn, messages } => self.on_client_in(conn, messages),
            Event::ClientOut { conn, replies } => self.on_client_out(conn, replies),
            Event::ClientLost { conn } => self.on_client_lost(conn),
            Event::ClientGone { conn } => self.on_client_gone(conn),
            Event::Cancel { node, pid, secret } => self.on_cancel(node, pid, secret),
            Event::Wake(task) => self.executor.wake(task),
            other => self.happen_inside(other),
        }
    }

    /// What happens at nodes and between them.
    fn happen_inside(&mut self, event: Event) {
        match event {
            Event::Start { node } => self.start(node),
            Event::Node(node, life, event) => self.happen_at(node, life, event),
            Event::LinkTry(link) => self.on_link_try(link),
            Event::LinkUp(link, life) => self.on_link_up(link, life),
            Event::LinkDown(link) => self.on_link_down(link),
            Event::Resume { node } => self.resume(node),
            Event::Fault(index) => self.on_fault(index),
            Event::CutEnd { from, to, number } => {
                if self.network.mend(from, to, number) {
                    self.release_stalled(from, to);
                }
            }
            Event::SlowEnd { from, to } => self.network.speed_up(from, to),
            Event::Look => self.on_look(),
            Event::DiskEnd { node } => {
                self.nodes[node].disk.set_room(None);
                self.nodes[node].slow_disk = 1;
            }
            _ => unreachable!("clients are served by the caller"),
        }
    }

    /// What came while a node stood still happens now, in its order: within a node messages do not
    /// overtake each other.
    pub(crate) fn resume(&mut self, node: usize) {
        if self.nodes[node].is_paused(self.now_ns) {
            return;
        }
        for event in core::mem::take(&mut self.nodes[node].held) {
            self.happen(event);
        }
    }

    /// What happens at a node in one of its lives; nothing if that one is over.
    fn happen_at(&mut self, node: usize, life: Life, event: NodeEvent) {
        if !self.lives(node, life) {
            return;
        }
        match event {
            NodeEvent::Tick { shard, number } => self.on_tick(node, shard, number),
            NodeEvent::Run { shard } => self.on_run(node, shard),
            NodeEvent::Local { from, to, message } => {
                let shard = usize::from(to.index());
                let message = *message;
                self.input(node, shard, Input::Message { from, message });
            }
            NodeEvent::Frame(bytes) => self.on_frame(node, &bytes),
            NodeEvent::FlushDone => self.on_flush_done(node, life),
            NodeEvent::Housekeeping => self.on_housekeeping(node, life),
            NodeEvent::CheckpointPiece { shard } => self.on_piece(node, shard),
            NodeEvent::Drained { shard, conn } => self.input(node, shard, Input::Drained { conn }),
            NodeEvent::PowerCut { down_us } => self.cut_power(node, down_us),
        }
    }

    /// Whether the node is up and in this life.
    pub(crate) fn lives(&self, node: usize, life: Life) -> bool {
        let running = self.nodes[node].running.as_ref();
        running.is_some_and(|running| running.life == life)
    }

    fn on_connect(&mut self, conn: u32, startup: ClientMessage) {
        let Some(node) = self.clients.get(&conn).map(|link| link.node) else {
            return;
        };
        let paused_until = self.nodes[node].paused_until_ns;
        let Some(running) = &mut self.nodes[node].running else {
            return self.on_client_lost(conn);
        };
        // Connections wait in the listener's queue until the node serves clients.
        if !running.is_accepting() || paused_until > self.now_ns {
            let after = 5_000_000.max(paused_until.saturating_sub(self.now_ns));
            return self.push(after, Event::Connect { conn, startup });
        }
        let shard = running.next_shard % running.shards.len();
        running.next_shard += 1;
        let host = &mut running.shards[shard];
        let id = ConnId(host.next_conn);
        host.next_conn += 1;
        host.conns.insert(id, crate::hosted::ServerConn::new(conn));
        let life = running.life;
        let link = self.clients.get_mut(&conn).expect("just seen");
        link.server = Some((life, shard, id));
        link.cell.state.set(ConnState::Open);
        let secret = self.prng.next_u64() as i32;
        self.input(
            node,
            shard,
            Input::Connect {
                conn: id,
                secret,
                link: Box::default(),
            },
        );
        let message = startup;
        self.input(node, shard, Input::Client { conn: id, message });
    }

    /// Where a client's connection ends, if both ends are alive.
    fn server_of(&self, conn: u32) -> Option<(usize, usize, ConnId)> {
        let link = self.clients.get(&conn)?;
        let (life, shard, id) = link.server?;
        let running = self.nodes[link.node].running.as_ref()?;
        let known = running.life == life && running.shards[shard].conns.contains_key(&id);
        known.then_some((link.node, shard, id))
    }

    fn on_client_in(&mut self, conn: u32, messages: Vec<ClientMessage>) {
        let Some((node, ..)) = self.server_of(conn) else {
            return;
        };
        if self.nodes[node].holds(self.now_ns) {
            let held = &mut self.nodes[node].held;
            return held.push(Event::ClientIn { conn, messages });
        }
        let mut messages = messages.into_iter().peekable();
        while let Some(message) = messages.next() {
            self.trace.mix(weight(&message));
            // The node or the connection may end at any of them.
            let Some((node, shard, id)) = self.server_of(conn) else {
                return;
            };
            let next = messages.peek().and_then(ClientMessage::tag);
            let together = JOINED.contains(&self.plan.workload) && self.costs.is_none();
            let waits = together && next.is_some_and(|it| message.may_wait_for(it));
            let left = match waits {
                true => self.nodes[node].up().shards[shard]
                    .machine
                    .queue(id, message),
                false => Some(message),
            };
            if let Some(message) = left {
                self.input(node, shard, Input::Client { conn: id, message });
            }
        }
    }

    fn on_client_out(&mut self, conn: u32, replies: Vec<Reply>) {
        let Some(link) = self.clients.get_mut(&conn) else {
            return;
        };
        let closes = replies.contains(&Reply::Close);
        for reply in &replies {
            self.trace.mix(reply_weight(reply));
        }
        let ready = replies.iter().any(|reply| matches!(reply, Reply::Ready(_)));
        link.cell.replies.borrow_mut().extend(replies);
        if closes {
            link.cell.state.set(ConnState::Lost);
        }
        if let Some(task) = link.cell.waiter.take() {
            self.executor.wake(task);
        }
        if ready || closes {
            self.note_answer(conn);
        }
    }

    pub(crate) fn on_client_lost(&mut self, conn: u32) {
        self.note_answer(conn);
        if let Some(link) = self.clients.remove(&conn) {
            link.cell.state.set(ConnState::Lost);
            if let Some(task) = link.cell.waiter.take() {
                self.executor.wake(task);
            }
        }
    }

    fn on_client_gone(&mut self, conn: u32) {
        let server = self.server_of(conn);
        if let Some((node, ..)) = server
            && self.nodes[node].holds(self.now_ns)
        {
            return self.nodes[node].held.push(Event::ClientGone { conn });
        }
        self.on_client_lost(conn);
        if let Some((node, shard, id)) = server {
            self.drop_server_conn(node, shard, id);
        }
    }

    /// The server forgets a connection and tells its session.
    pub(crate) fn drop_server_conn(&mut self, node: usize, shard: usize, id: ConnId) {
        let running = self.nodes[node].running.as_mut();
        let host = &mut running.expect("the caller has looked").shards[shard];
        host.conns.remove(&id);
        self.input(node, shard, Input::Disconnected { conn: id });
    }

    fn on_cancel(&mut self, node: usize, pid: i32, secret: i32) {
        if self.nodes[node].running.is_some() {
            self.input(node, 0, Input::Cancel { pid, secret });
        }
    }
}

/// A number for the trace that differs for most messages that differ.
fn weight(message: &ClientMessage) -> u64 {
    match message {
        ClientMessage::Query(text) => base::crc::crc32c(text.as_bytes()).into(),
        ClientMessage::Bind { params, .. } => {
            let crc = |bytes: &Vec<u8>| u64::from(base::crc::crc32c(bytes));
            let crcs = params.iter().map(|param| param.as_ref().map_or(0, crc));
            crcs.fold(7, |sum: u64, crc| sum.wrapping_mul(31) ^ crc)
        }
        _ => 1,
    }
}

fn reply_weight(reply: &Reply) -> u64 {
    match reply {
        Reply::Rows(_, _, rows) => u64::from(rows.rows) << 8 | 2,
        Reply::CommandComplete(wire::Tag::Count(_, count)) => count << 8 | 3,
        Reply::Error(_, error) => u64::from(error.state().0[4]) << 8 | 4,
        _ => 1,
    }
}
