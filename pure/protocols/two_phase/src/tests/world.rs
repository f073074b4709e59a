//! A cluster in memory: shards, a journal per node, and messages in the tester's hands.

use crate::message::{Body, Message};
use crate::{Fault, InDoubt, TwoPhase};
use base::{Clock, IndexId, Key, NodeId, Position, ShardId, Slot, Time, Ts, TxnId};
use journal::reader::Entry;
use journal::{Record, ReplayStart, recover};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use store::{Store, Write};
use txn::{
    Counters, Cx, Event, JournalPort, Op, OpId, OpReply, Outbox, Protocol, Submitted, TxnOptions,
};

pub(crate) const TABLE: IndexId = IndexId(1);
pub(crate) const TRAIL: IndexId = IndexId(2);

/// How far the bound of a node's clocks is ahead of them, at most.
const BOUND_AHEAD_US: u64 = 2_000_000;

/// A node's journal: what is behind `durable` may be lost by a crash.
#[derive(Default, Debug)]
pub(crate) struct Disk {
    pub(crate) records: Vec<(Position, Vec<u8>)>,
    pub(crate) durable: Position,
    pub(crate) full: bool,
    pub(crate) memory_full: bool,
    /// Bytes that are not durable beyond which large commits wait.
    pub(crate) backlog_max: Option<u64>,
}

impl Disk {
    pub(crate) fn end(&self) -> Position {
        self.records.last().map_or(Position(0), |(end, _)| *end)
    }
    fn push(&mut self, payload: &[u8]) -> Position {
        let end = Position(self.end().0 + payload.len() as u64 + 8);
        self.records.push((end, payload.to_vec()));
        end
    }
}

struct Port(Rc<RefCell<Disk>>);

impl JournalPort for Port {
    fn append(&mut self, payload: &[u8]) -> Position {
        self.0.borrow_mut().push(payload)
    }
    fn durable(&self) -> Position {
        self.0.borrow().durable
    }
    fn is_full(&self) -> bool {
        self.0.borrow().full
    }
    fn is_memory_full(&self) -> bool {
        self.0.borrow().memory_full
    }
    fn is_behind(&self) -> bool {
        let disk = self.0.borrow();
        let backlog = disk.end().0 - disk.durable.0;
        disk.backlog_max.is_some_and(|most| backlog > most)
    }
}

pub(crate) struct Shard {
    pub(crate) protocol: TwoPhase,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    /// After a restart: only the newest versions were recovered.
    pub(crate) horizon: Ts,
}

pub(crate) struct Node {
    pub(crate) incarnation: u32,
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) up: bool,
    /// A later life draws only above it.
    pub(crate) clock_bound: Ts,
}

/// A message under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub(crate) from: ShardId,
    pub(crate) to: ShardId,
    pub(crate) message: Message,
    pub(crate) wait: Position,
}

impl Flight {
    pub(crate) fn is_remote(&self) -> bool {
        self.from.node() != self.to.node()
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) shards: BTreeMap<ShardId, Shard>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) answers: Vec<(TxnId, OpId, OpReply)>,
    pub(crate) history: Vec<Event>,
    /// Catalog version at which the tables changed last.
    pub(crate) schema: u64,
    pub(crate) horizon: Ts,
    initial: Vec<(ShardId, Key, i64)>,
    counter: u64,
    pub(crate) ops: u64,
    /// How far the clocks of nodes are ahead, microseconds.
    pub(crate) ahead: BTreeMap<NodeId, u64>,
    /// Transactions ask for one lock per shard.
    pub(crate) serial: bool,
    /// How long transactions wait for those in doubt; 0: without limit.
    pub(crate) in_doubt_timeout_us: u64,
    /// A fault of all shards.
    fault: Option<Fault>,
    /// Clocks do not pass their durable bound, as in a server.
    pub(crate) keeps_bound: bool,
}

pub(crate) fn key(index: IndexId, name: &str) -> Key {
    Key::new(
        index,
        Slot(u16::from(name.as_bytes()[0]) % 7),
        name.as_bytes().to_vec(),
    )
}

pub(crate) fn options(attempt: u32, priority_ts: Ts) -> TxnOptions {
    TxnOptions {
        priority_ts,
        urgent: false,
        attempt,
        serial: false,
        lock_timeout_us: 0,
        in_doubt_timeout_us: txn::contract::IN_DOUBT_TIMEOUT_US,
    }
}

impl World {
    pub(crate) fn new(nodes: u16, shards: u16) -> World {
        let mut world = World {
            now: Time(1_704_067_200_000_000 + 1_000_000),
            nodes: BTreeMap::new(),
            shards: BTreeMap::new(),
            flights: Vec::new(),
            answers: Vec::new(),
            history: Vec::new(),
            keeps_bound: false,
            schema: 1,
            horizon: Ts::ZERO,
            initial: Vec::new(),
            counter: 0,
            ops: 0,
            ahead: BTreeMap::new(),
            serial: false,
            in_doubt_timeout_us: txn::contract::IN_DOUBT_TIMEOUT_US,
            fault: None,
        };
        for node in (1..=nodes).map(NodeId) {
            let disk = Rc::new(RefCell::new(Disk::default()));
            world.nodes.insert(
                node,
                Node {
                    incarnation: 1,
                    disk,
                    up: true,
                    clock_bound: Ts::ZERO,
                },
            );
            for index in 0..shards {
                let id = ShardId::new(node, index);
                let shard = Shard {
                    protocol: TwoPhase::new(id),
                    store: Store::new(),
                    clock: Clock::new(id, Ts::ZERO),
                    counters: Counters::default(),
                    horizon: Ts::ZERO,
                };
                world.shards.insert(id, shard);
            }
            world.start_record(node);
        }
        let ids: Vec<ShardId> = world.shards.keys().copied().collect();
        for id in ids {
            world.meet(id);
        }
        world
    }

    /// Plants a fault in all shards.
    pub(crate) fn plant(&mut self, fault: Option<Fault>) {
        self.fault = fault;
        let shards = self.shards.values_mut();
        shards.for_each(|shard| shard.protocol.fault = fault);
    }

    fn start_record(&mut self, node: NodeId) {
        let clock_bound = Ts::from_time(self.now.after(BOUND_AHEAD_US));
        let state = self.nodes.get_mut(&node).expect("a node");
        state.clock_bound = clock_bound;
        let mut payload = Vec::new();
        Record::NodeStart {
            incarnation: state.incarnation,
            clock_bound,
            view: 1,
        }
        .encode(&mut payload);
        let mut disk = state.disk.borrow_mut();
        disk.push(&payload);
        disk.durable = disk.end();
    }

    /// Tells a shard which lives the other nodes are in.
    fn meet(&mut self, id: ShardId) {
        let others: Vec<(NodeId, u32)> = self
            .nodes
            .iter()
            .map(|(node, state)| (*node, state.incarnation))
            .collect();
        for (node, incarnation) in others.into_iter().filter(|(node, _)| *node != id.node()) {
            self.call(id, |protocol, cx| protocol.on_peer(cx, node, incarnation));
        }
    }

    pub(crate) fn load(&mut self, shard: ShardId, key: Key, value: i64) {
        self.initial.push((shard, key.clone(), value));
        let write = Write::Insert(super::programs::row(value));
        let store = &mut self.shards.get_mut(&shard).expect("a shard").store;
        store.apply(&key, &write, Ts(1), Ts::ZERO);
    }

    pub(crate) fn call<R>(
        &mut self,
        id: ShardId,
        call: impl FnOnce(&mut TwoPhase, &mut Cx<'_, Message>) -> R,
    ) -> R {
        let node = &self.nodes[&id.node()];
        assert!(node.up, "{id} is up");
        let mut port = Port(node.disk.clone());
        let incarnation = node.incarnation;
        let shard = self.shards.get_mut(&id).expect("a shard");
        let mut out = Outbox::default();
        let schema = self.schema;
        let ahead = self.ahead.get(&id.node()).copied().unwrap_or(0);
        let mut cx = Cx {
            now: self.now.after(ahead),
            shard: id,
            incarnation,
            view: 1,
            clock: &mut shard.clock,
            store: &mut shard.store,
            journal: &mut port,
            out: &mut out,
            horizon: self.horizon.max(shard.horizon),
            clock_bound: node.clock_bound,
            decode: super::programs::decode,
            catalog: 1,
            schema_changed: &|_| Some(schema),
            counters: &mut shard.counters,
            history: Some(&mut self.history),
        };
        let result = call(&mut shard.protocol, &mut cx);
        shard.protocol.validate(&shard.store);
        let node = self.nodes.get_mut(&id.node()).expect("a node");
        if self.keeps_bound && shard.clock.last() > node.clock_bound {
            // A server holds back what it says above the bound until the next one is durable.
            node.clock_bound = Ts::from_time(self.now.after(BOUND_AHEAD_US));
            let ts = node.clock_bound;
            let mut payload = Vec::new();
            Record::ClockBound { ts }.encode(&mut payload);
            let mut disk = node.disk.borrow_mut();
            disk.push(&payload);
            disk.durable = disk.end();
        }
        for outgoing in out.messages {
            let (to, message, wait) = (outgoing.to, outgoing.message, outgoing.wait);
            assert_ne!(to, id);
            self.flights.push(Flight {
                from: id,
                to,
                message,
                wait,
            });
        }
        self.answers.extend(out.completions);
        result
    }

    pub(crate) fn begin(&mut self, shard: ShardId) -> TxnId {
        self.counter += 1;
        let incarnation = self.nodes[&shard.node()].incarnation;
        let txn = TxnId {
            shard,
            incarnation,
            counter: self.counter,
        };
        let (serial, in_doubt_timeout_us) = (self.serial, self.in_doubt_timeout_us);
        self.call(shard, |protocol, cx| {
            let ts = cx.clock.tick(cx.now);
            let options = TxnOptions {
                serial,
                in_doubt_timeout_us,
                ..options(1, ts)
            };
            protocol.begin(cx, txn, options);
        });
        txn
    }

    /// Submits; the answer, now or later, is in `answers`.
    pub(crate) fn submit(&mut self, txn: TxnId, to: ShardId, op: Op, last: bool) -> OpId {
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(txn.shard, |protocol, cx| {
            protocol.submit(cx, txn, id, to, 1, op, last)
        });
        self.note(txn, id, submitted);
        id
    }

    pub(crate) fn commit(&mut self, txn: TxnId) -> OpId {
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(txn.shard, |protocol, cx| protocol.commit(cx, txn, id));
        self.note(txn, id, submitted);
        id
    }

    fn note(&mut self, txn: TxnId, id: OpId, submitted: Submitted<OpReply>) {
        if let Submitted::Ready(reply) = submitted {
            self.answers.push((txn, id, reply));
        }
    }

    pub(crate) fn take_answer(&mut self, id: OpId) -> Option<OpReply> {
        let at = self.answers.iter().position(|(_, op, _)| *op == id)?;
        Some(self.answers.remove(at).2)
    }

    pub(crate) fn flush(&mut self, node: NodeId) {
        let near = Ts::from_time(self.now.after(BOUND_AHEAD_US / 2));
        let state = self.nodes.get_mut(&node).expect("a node");
        if state.clock_bound < near {
            let ts = Ts::from_time(self.now.after(BOUND_AHEAD_US));
            let mut payload = Vec::new();
            Record::ClockBound { ts }.encode(&mut payload);
            state.disk.borrow_mut().push(&payload);
            state.clock_bound = ts;
        }
        let durable = {
            let mut disk = self.nodes[&node].disk.borrow_mut();
            disk.durable = disk.end();
            disk.durable
        };
        let ids: Vec<ShardId> = self
            .shards
            .keys()
            .copied()
            .filter(|id| id.node() == node)
            .collect();
        for id in ids {
            self.call(id, |protocol, cx| protocol.on_durable(cx, durable));
        }
    }

    /// Whether a message may leave its node.
    pub(crate) fn may_leave(&self, flight: &Flight) -> bool {
        flight.wait <= self.nodes[&flight.from.node()].disk.borrow().durable
    }

    /// Delivers one message (through its wire form between nodes); lost if the receiver is down.
    pub(crate) fn deliver(&mut self, flight: Flight) {
        if !self.nodes[&flight.to.node()].up {
            return;
        }
        let message = if flight.is_remote() {
            let bytes = base::codec::to_vec(&flight.message);
            base::codec::decode(&bytes).expect("own encoding decodes")
        } else {
            flight.message
        };
        self.call(flight.to, |protocol, cx| {
            protocol.on_message(cx, flight.from, message)
        });
    }

    /// Delivers everything, flushing as needed, until nothing moves.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let nodes: Vec<NodeId> = self
                .nodes
                .iter()
                .filter(|(_, n)| n.up)
                .map(|(id, _)| *id)
                .collect();
            for node in nodes {
                self.flush(node);
            }
            self.run_parked();
            if self.flights.is_empty() {
                return;
            }
            let flight = self.flights.remove(0);
            self.deliver(flight);
        }
        panic!("messages go on for ever");
    }

    fn run_parked(&mut self) {
        loop {
            let parked: Vec<ShardId> = self
                .shards
                .iter()
                .filter(|(id, shard)| {
                    self.nodes[&id.node()].up && shard.protocol.deadline() == Some(Time(0))
                })
                .map(|(id, _)| *id)
                .collect();
            if parked.is_empty() {
                return;
            }
            for id in parked {
                self.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
    }

    /// Gives a shard the turns that it wants at once.
    pub(crate) fn take_turns(&mut self, shard: ShardId) {
        while self.shards[&shard].protocol.deadline() == Some(Time(0)) {
            self.call(shard, |protocol, cx| protocol.on_tick(cx));
        }
    }

    pub(crate) fn tick(&mut self, micros: u64) {
        self.now = self.now.after(micros);
        let ids: Vec<ShardId> = self.shards.keys().copied().collect();
        for id in ids {
            if self.nodes[&id.node()].up {
                self.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
    }

    /// Stops a node: what was not durable is gone (but for `kept` records more).
    pub(crate) fn crash(&mut self, node: NodeId, kept: usize) {
        let state = self.nodes.get_mut(&node).expect("a node");
        state.up = false;
        let durable = {
            let mut disk = state.disk.borrow_mut();
            let durable = disk.durable;
            let whole = disk
                .records
                .iter()
                .filter(|(end, _)| *end <= durable)
                .count();
            disk.records.truncate(whole + kept);
            disk.durable = disk.end();
            durable
        };
        // What had left may still arrive.
        self.flights.retain(|flight| {
            let inner = flight.from.node() == node && flight.to.node() == node;
            !inner && (flight.from.node() != node || flight.wait <= durable)
        });
        self.answers.retain(|(txn, ..)| txn.shard.node() != node);
    }

    pub(crate) fn restart(&mut self, node: NodeId) {
        let records: Vec<Entry> = {
            let disk = self.nodes[&node].disk.borrow();
            let decode = |payload: &[u8]| Record::decode(payload).expect("own records decode");
            disk.records
                .iter()
                .map(|(end, payload)| Entry {
                    end: *end,
                    record: decode(payload),
                })
                .collect()
        };
        let start = ReplayStart {
            node,
            ..ReplayStart::default()
        };
        let recovery = recover(start, records).expect("the journal is whole");
        let state = self.nodes.get_mut(&node).expect("a node");
        state.incarnation = recovery.incarnation + 1;
        state.up = true;
        self.start_record(node);
        for record in &recovery.settled {
            let mut payload = Vec::new();
            record.encode(&mut payload);
            self.nodes[&node].disk.borrow_mut().push(&payload);
        }
        self.flush_quietly(node);
        let floor = recovery.clock_floor.max(Ts::from_time(self.now));
        let ids: Vec<ShardId> = self
            .shards
            .keys()
            .copied()
            .filter(|id| id.node() == node)
            .collect();
        for id in &ids {
            let mut store = Store::new();
            for (_, key, value) in self.initial.iter().filter(|(shard, ..)| shard == id) {
                let write = Write::Insert(super::programs::row(*value));
                store.apply(key, &write, Ts(1), Ts::ZERO);
            }
            for redo in recovery.redo.iter().filter(|redo| redo.shard == *id) {
                for (key, write) in &redo.writes {
                    store.redo(key, write, redo.commit_ts);
                }
            }
            let shard = self.shards.get_mut(id).expect("a shard");
            shard.protocol = TwoPhase::new(*id);
            shard.protocol.fault = self.fault;
            shard.store = store;
            shard.clock = Clock::new(*id, floor);
            shard.horizon = floor;
            let held = recovery
                .held
                .iter()
                .filter(|held| held.shard == *id)
                .cloned()
                .collect();
            let owed = recovery
                .owed
                .iter()
                .filter(|owed| owed.txn.shard == *id)
                .cloned();
            let in_doubt = InDoubt {
                held,
                owed: owed.collect(),
            };
            self.call(*id, |protocol, cx| protocol.recover(cx, in_doubt));
            self.meet(*id);
        }
    }

    fn flush_quietly(&mut self, node: NodeId) {
        let mut disk = self.nodes[&node].disk.borrow_mut();
        disk.durable = disk.end();
    }

    /// Tells the shards of other nodes that no connection to it stands any more.
    pub(crate) fn announce_down(&mut self, node: NodeId) {
        let ids: Vec<ShardId> = self.shards.keys().copied().collect();
        for id in ids.into_iter().filter(|id| id.node() != node) {
            if self.nodes[&id.node()].up {
                self.call(id, |protocol, cx| protocol.on_peer_down(cx, node));
            }
        }
    }

    /// Tells a node and all others that they cannot reach each other (`false`), or can again.
    pub(crate) fn announce_link(&mut self, node: NodeId, stands: bool) {
        let ids: Vec<ShardId> = self.shards.keys().copied().collect();
        let others: Vec<NodeId> = self.nodes.keys().copied().filter(|n| *n != node).collect();
        for id in ids {
            let seen = match id.node() == node {
                true => others.clone(),
                false => Vec::from([node]),
            };
            for other in seen {
                let (here, there) = (&self.nodes[&id.node()], &self.nodes[&other]);
                let incarnation = there.incarnation;
                if here.up && (there.up || !stands) {
                    self.call(id, |protocol, cx| match stands {
                        true => protocol.on_peer(cx, other, incarnation),
                        false => protocol.on_peer_down(cx, other),
                    });
                }
            }
        }
    }

    /// Tells the shards of other nodes about a restarted one.
    pub(crate) fn announce(&mut self, node: NodeId) {
        let incarnation = self.nodes[&node].incarnation;
        let ids: Vec<ShardId> = self.shards.keys().copied().collect();
        for id in ids.into_iter().filter(|id| id.node() != node) {
            if self.nodes[&id.node()].up {
                self.call(id, |protocol, cx| protocol.on_peer(cx, node, incarnation));
            }
        }
    }

    /// The newest value of a row; `None` if it is absent.
    pub(crate) fn value(&self, shard: ShardId, key: &Key) -> Option<i64> {
        let store = &self.shards[&shard].store;
        let version = store.get(key, Ts::MAX)?;
        Some(super::programs::value(version.value))
    }
}

/// A message in one line of a trace.
pub(crate) fn describe(flight: &Flight) -> String {
    let what = match &flight.message.body {
        Body::Read(request) => format!("Read {}", request.read),
        Body::Request(request) => {
            let op = if request.op.is_some() { " op" } else { "" };
            let writes = match request.writes.len() {
                0 => String::new(),
                count => format!(" writes={count}"),
            };
            let alone = if request.alone { " alone" } else { "" };
            let finish = match &request.finish {
                crate::message::Finish::No => "",
                crate::message::Finish::Prepare(_) => " +prepare",
                crate::message::Finish::Commit(trust) if trust.shares.is_empty() => " +commit",
                crate::message::Finish::Commit(_) => " +lead",
            };
            format!("Request {}{writes}{op}{finish}{alone}", request.seq)
        }
        Body::Reply(reply) => {
            let result = match &reply.result {
                Ok(_) => "ok".to_string(),
                Err(error) => format!("{error:?}"),
            };
            let finished = match &reply.finished {
                crate::message::Finished::Open => String::new(),
                crate::message::Finished::Vote(vote) if vote.durable => " prepared".to_string(),
                crate::message::Finished::Vote(_) => " voted".to_string(),
                crate::message::Finished::Committed { .. } => " committed".to_string(),
            };
            format!("Reply {:?} {result}{finished}", reply.to)
        }
        Body::Working(to) => format!("Working {to:?}"),
        Body::Expose => "Expose".to_string(),
        Body::Decide(decide) if decide.commit_ts.is_some() => "Decide commit".to_string(),
        Body::Decide(decide) if decide.wants_ack => "Decide abort, ended?".to_string(),
        Body::Decide(_) => "Decide abort".to_string(),
        Body::Ack => "Ack".to_string(),
        Body::Inquire => "Inquire".to_string(),
        Body::Running => "Running".to_string(),
        Body::Gather(gather) => match gather.writes.len() {
            0 => "Gather".to_string(),
            count => format!("Gather writes={count}"),
        },
        Body::Gathered(gathered) => match &gathered.vote {
            Ok(_) => "Gathered".to_string(),
            Err(reason) => format!("Gathered {reason:?}"),
        },
    };
    format!(
        "{} -> {} t{} {what}",
        flight.from, flight.to, flight.message.txn.counter
    )
}
