//! A cluster in memory: shards, a journal per node, and messages in the tester's hands.

use crate::Subject;
use crate::checkpoint::Checkpoint;
use crate::disk::{Disk, Port};
use crate::programs;
use base::{Clock, Key, NodeId, Placement, Position, ShardId, Time, Ts, TxnId};
use journal::{CheckpointTables, Record};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::rc::Rc;
use store::{Horizons, Store, Write};
use txn::{
    ClockBound, Counters, Cx, Event, Op, OpId, OpReply, Outbox, Submission, Submitted, TxnOptions,
};

/// How far the bound of a node's clocks is ahead of them, at most. Microseconds.
const BOUND_AHEAD_US: u64 = 2_000_000;

/// Steps of [`World::settle`] after which messages go on for ever.
const SETTLE_STEPS_MAX: usize = 20_000;

/// One shard.
pub struct Shard<P: Subject> {
    /// What is tested.
    pub protocol: P,
    /// Its rows.
    pub store: Store,
    /// Its clock.
    pub clock: Clock,
    /// Its counters.
    pub counters: Counters,
    /// After a restart: only the newest versions were recovered.
    pub horizon: Ts,
    pub(crate) checkpoint: Checkpoint<P::Cursor>,
    pub(crate) next_checkpoint: Option<Checkpoint<P::Cursor>>,
}

/// One node.
pub struct Node {
    /// Counts its lives.
    pub incarnation: u32,
    /// Its journal.
    pub disk: Rc<RefCell<Disk>>,
    /// It runs.
    pub up: bool,
    /// A later life draws only above it.
    pub clock_bound: Ts,
    /// The same, of what left the node without a bound as high ([`World::keeps_bound`]).
    pub(crate) told: Ts,
}

/// A message under way.
#[derive(Clone, Debug)]
pub struct Flight<M> {
    /// Sender.
    pub from: ShardId,
    /// Receiver.
    pub to: ShardId,
    /// Content.
    pub message: M,
    /// It leaves when the sender's journal is durable to here.
    pub wait: Position,
}

impl<M> Flight<M> {
    /// Whether it crosses nodes, and so may get lost.
    pub fn is_remote(&self) -> bool {
        self.from.node() != self.to.node()
    }
}

/// The cluster.
pub struct World<P: Subject> {
    /// The time of all nodes, but for [`World::ahead`].
    pub now: Time,
    /// Nodes are numbered from 1.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Shards of all nodes.
    pub shards: BTreeMap<ShardId, Shard<P>>,
    /// The home of slot `s` is the element at `s` modulo their number.
    pub placement: Placement,
    /// Messages in the order in which they were sent.
    pub flights: Vec<Flight<P::Message>>,
    /// Answers to clients that were not taken yet.
    pub answers: Vec<(TxnId, OpId, OpReply)>,
    /// What checkers may read.
    pub history: Vec<Event>,
    /// Catalog version at which the tables changed last.
    pub schema: u64,
    /// No reader reads versions at or below this, but the newest of them.
    pub horizon: Ts,
    pub(crate) initial: Vec<(ShardId, Key, i64)>,
    counter: u64,
    /// Operations so far.
    pub ops: u64,
    /// How far the clocks of nodes are ahead. Microseconds.
    pub ahead: BTreeMap<NodeId, u64>,
    /// Transactions ask for one lock per shard.
    pub serial: bool,
    /// How long transactions wait for those in doubt; 0: without limit. Microseconds.
    pub in_doubt_timeout_us: u64,
    /// See [`txn::TxnOptions::lock_timeout_us`].
    pub lock_timeout_us: u64,
    /// Whether commits are answered before the decision is durable.
    pub early_answer: bool,
    /// Whether transactions that begin lock what they read under every protocol.
    pub locks_reads: bool,
    pub(crate) fault: Option<P::Fault>,
    pub(crate) settings: P::Settings,
    /// Clocks do not pass their durable bound, as in a server.
    pub keeps_bound: bool,
    /// Checkpoints that are complete.
    pub checkpoints: u64,
    /// Shards that make way for one, which must then begin.
    pub(crate) checkpoints_wanted: BTreeSet<ShardId>,
    /// Of the messages between nodes.
    pub largest_bytes: usize,
    /// Most units of work of a call.
    pub units_max: u64,
    /// Nodes between which nothing arrives, the smaller one first.
    pub(crate) cuts: BTreeSet<(NodeId, NodeId)>,
    /// Prints what happens.
    pub traced: bool,
}

/// Options of an ordinary transaction in its first attempt.
pub fn options(priority_ts: Ts) -> TxnOptions {
    TxnOptions {
        priority_ts,
        ..TxnOptions::default()
    }
}

impl<P: Subject> World<P> {
    /// A cluster of `nodes` nodes with `shards` shards each.
    pub fn new(nodes: u16, shards: u16) -> World<P> {
        let ids = (1..=nodes)
            .flat_map(|node| (0..shards).map(move |index| ShardId::new(NodeId(node), index)));
        let ids: Vec<ShardId> = ids.collect();
        let mut world = World {
            now: Time(1_704_067_200_000_000 + 1_000_000),
            nodes: BTreeMap::new(),
            shards: BTreeMap::new(),
            placement: Placement::over(P::homes(&ids)),
            flights: Vec::new(),
            answers: Vec::new(),
            history: Vec::new(),
            schema: 1,
            horizon: Ts::ZERO,
            initial: Vec::new(),
            counter: 0,
            ops: 0,
            ahead: BTreeMap::new(),
            serial: false,
            in_doubt_timeout_us: txn::contract::IN_DOUBT_TIMEOUT_US,
            lock_timeout_us: 0,
            early_answer: true,
            locks_reads: false,
            fault: None,
            settings: P::Settings::default(),
            keeps_bound: false,
            checkpoints: 0,
            checkpoints_wanted: BTreeSet::new(),
            largest_bytes: 0,
            units_max: 0,
            cuts: BTreeSet::new(),
            traced: false,
        };
        for node in (1..=nodes).map(NodeId) {
            let state = Node {
                incarnation: 1,
                disk: Rc::default(),
                up: true,
                clock_bound: Ts::MAX,
                told: Ts::ZERO,
            };
            world.nodes.insert(node, state);
            world.start_record(node);
        }
        for id in ids.iter().copied() {
            let shard = Shard {
                protocol: P::new(id),
                store: Store::new(),
                clock: Clock::new(id, Ts::ZERO),
                counters: Counters::default(),
                horizon: Ts::ZERO,
                checkpoint: Checkpoint::default(),
                next_checkpoint: None,
            };
            world.shards.insert(id, shard);
        }
        for id in ids {
            world.call(id, |protocol, cx| {
                protocol.recover(cx, &mut CheckpointTables::default(), &|_| true);
            });
            world.meet(id);
        }
        world
    }

    /// Breaks a rule, or none, in all shards and all lives.
    pub fn plant(&mut self, fault: Option<P::Fault>) {
        self.fault = fault;
        let shards = self.shards.values_mut();
        shards.for_each(|shard| shard.protocol.plant(fault));
    }

    /// Settings of all shards, in all lives.
    pub fn settings(&mut self, settings: P::Settings) {
        let shards = self.shards.values_mut();
        shards.for_each(|shard| shard.protocol.set(&settings));
        self.settings = settings;
    }

    /// The shard of a row's slot.
    pub fn home(&self, key: &Key) -> ShardId {
        self.placement.home(key.slot)
    }

    pub(crate) fn start_record(&mut self, node: NodeId) {
        let bound = Ts::from_time(self.now.after(BOUND_AHEAD_US));
        let state = self.nodes.get_mut(&node).expect("a node");
        let mut clock_bound = Ts::ZERO;
        if P::BOUNDS_CLOCKS {
            state.clock_bound = bound;
            clock_bound = bound;
        }
        let mut disk = state.disk.borrow_mut();
        disk.push_record(&Record::NodeStart {
            incarnation: state.incarnation,
            clock_bound,
            view: 1,
        });
        disk.sync();
    }

    /// The next bound of a node's clocks, above `needed`, in its journal.
    fn raise_bound(&mut self, node: NodeId, needed: Ts) {
        let ts = Ts::from_time(self.now).max(needed);
        let ts = Ts::from_time(ts.time().after(BOUND_AHEAD_US));
        let node = self.nodes.get_mut(&node).expect("a node");
        node.clock_bound = ts;
        node.disk
            .borrow_mut()
            .push_record(&Record::ClockBound { ts });
    }

    /// Tells a shard which lives the other nodes are in.
    pub(crate) fn meet(&mut self, id: ShardId) {
        let lives = self
            .nodes
            .iter()
            .map(|(node, state)| (*node, state.incarnation));
        let others: Vec<(NodeId, u32)> = lives.filter(|(node, _)| *node != id.node()).collect();
        for (node, incarnation) in others {
            self.call(id, |protocol, cx| protocol.on_peer(cx, node, incarnation));
        }
    }

    /// A row at its home, before the first transaction.
    pub fn load(&mut self, key: Key, value: i64) {
        self.load_at(self.home(&key), key, value);
    }

    /// A row wherever its slot lies, for protocols whose rows stay where they are.
    pub fn load_at(&mut self, shard: ShardId, key: Key, value: i64) {
        let store = &mut self.shards.get_mut(&shard).expect("a shard").store;
        load(store, &key, value);
        self.initial.push((shard, key, value));
    }

    /// Calls a shard with everything that a protocol may touch, and checks it afterwards.
    pub fn call<R>(
        &mut self,
        id: ShardId,
        call: impl FnOnce(&mut P, &mut Cx<'_, P::Message>) -> R,
    ) -> R {
        let node = &self.nodes[&id.node()];
        assert!(node.up, "{id} is up");
        let mut port = Port(node.disk.clone());
        let incarnation = node.incarnation;
        let shard = self.shards.get_mut(&id).expect("a shard");
        let mut out = Outbox::default();
        let schema = self.schema;
        let ahead = self.ahead.get(&id.node()).copied().unwrap_or(0);
        let units = |counters: &Counters| counters.units + counters.rows_read;
        let before = units(&shard.counters);
        let horizons = Horizons::at(self.horizon.max(shard.horizon));
        let mut clock_bound = ClockBound::new(node.clock_bound);
        let mut cx = Cx {
            now: self.now.after(ahead),
            shard: id,
            incarnation,
            view: 1,
            placement: &self.placement,
            durable: node.disk.borrow().durable,
            clock: &mut shard.clock,
            store: &mut shard.store,
            journal: &mut port,
            out: &mut out,
            horizons: &horizons,
            clock_bound: &mut clock_bound,
            decode: programs::decode,
            catalog: 1,
            schema_changed: &|_| Some(schema),
            locked: &[],
            counters: &mut shard.counters,
            history: Some(&mut self.history),
        };
        let result = call(&mut shard.protocol, &mut cx);
        self.units_max = self.units_max.max(units(&shard.counters) - before);
        shard.protocol.validate(&shard.store);
        let sent = out.messages.iter();
        for outgoing in sent.filter(|sent| sent.to.node() != id.node()) {
            let bytes = base::codec::to_vec(&outgoing.message).len();
            self.largest_bytes = self.largest_bytes.max(bytes);
            shard.counters.message_bytes += bytes as u64;
        }
        if let Some(needed) = clock_bound.needed(shard.clock.last()) {
            // A server holds back what it says until the bound is durable.
            if self.keeps_bound {
                self.raise_bound(id.node(), needed);
                self.sync(id.node());
            } else {
                let told = &mut self.nodes.get_mut(&id.node()).expect("a node").told;
                *told = needed.max(*told);
            }
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

    /// Begins a transaction on a shard.
    pub fn begin(&mut self, shard: ShardId) -> TxnId {
        self.begin_as(shard, None)
    }

    /// A transaction that has died before keeps its timestamp.
    pub fn begin_as(&mut self, shard: ShardId, first: Option<Ts>) -> TxnId {
        self.counter += 1;
        self.now = self.now.after(1);
        let txn = TxnId {
            shard,
            incarnation: self.nodes[&shard.node()].incarnation,
            counter: 2 * self.counter + u64::from(P::ODD_IDS),
        };
        let (serial, in_doubt_timeout_us) = (self.serial, self.in_doubt_timeout_us);
        let lock_timeout_us = self.lock_timeout_us;
        let (early_answer, locks_reads) = (self.early_answer, self.locks_reads);
        self.call(shard, |protocol, cx| {
            let ts = first.unwrap_or_else(|| cx.clock.tick(cx.now));
            let options = TxnOptions {
                serial,
                in_doubt_timeout_us,
                lock_timeout_us,
                early_answer,
                locks_reads,
                ..options(ts)
            };
            protocol.begin(cx, txn, options);
        });
        txn
    }

    /// Submits to the home of the row; the answer, now or later, is in [`World::answers`].
    pub fn submit(&mut self, txn: TxnId, op: Op, last: bool) -> OpId {
        let key = op.key().expect("other operations are submitted to a shard");
        let to = self.home(key);
        self.submit_to(txn, to, op, last)
    }

    /// Submits; the answer, now or later, is in [`World::answers`].
    pub fn submit_to(&mut self, txn: TxnId, to: ShardId, op: Op, last: bool) -> OpId {
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(txn.shard, |protocol, cx| {
            let planned = 1;
            let submission = Submission {
                txn,
                id,
                to,
                planned,
                op,
                last,
            };
            protocol.submit(cx, submission)
        });
        self.note(txn, id, submitted);
        id
    }

    /// The shards on which a transaction may have written.
    pub fn written(&mut self, txn: TxnId) -> Vec<ShardId> {
        let mut shards = Vec::new();
        self.call(txn.shard, |protocol, _| {
            protocol.each_written(txn, &mut |shard| shards.push(shard));
        });
        shards
    }

    /// Commits; the answer, now or later, is in [`World::answers`].
    pub fn commit(&mut self, txn: TxnId) -> OpId {
        self.ops += 1;
        let id = OpId(self.ops);
        let submitted = self.call(txn.shard, |protocol, cx| protocol.commit(cx, txn, id));
        self.note(txn, id, submitted);
        id
    }

    /// Rolls back.
    pub fn abort(&mut self, txn: TxnId) {
        let _ = self.call(txn.shard, |protocol, cx| protocol.abort(cx, txn));
    }

    /// Forgets an ended transaction.
    pub fn forget(&mut self, txn: TxnId) {
        self.call(txn.shard, |protocol, _| protocol.forget(txn));
    }

    fn note(&mut self, txn: TxnId, id: OpId, submitted: Submitted) {
        if let Submitted::Ready(reply) = submitted {
            self.answers.push((txn, id, reply));
        }
    }

    /// Takes the answer to an operation, if it has come.
    pub fn take_answer(&mut self, id: OpId) -> Option<OpReply> {
        let at = self.answers.iter().position(|(_, op, _)| *op == id)?;
        Some(self.answers.remove(at).2)
    }

    /// All shards.
    pub fn ids(&self) -> Vec<ShardId> {
        self.shards.keys().copied().collect()
    }

    /// The shards of a node.
    pub fn ids_of(&self, node: NodeId) -> Vec<ShardId> {
        let ids = self.shards.keys().copied();
        ids.filter(|id| id.node() == node).collect()
    }

    /// Nodes that run.
    pub fn nodes_up(&self) -> Vec<NodeId> {
        let up = self.nodes.iter().filter(|(_, node)| node.up);
        up.map(|(id, _)| *id).collect()
    }

    pub(crate) fn sync(&mut self, node: NodeId) -> Position {
        self.nodes[&node].disk.borrow_mut().sync()
    }

    /// Makes the journal of a node durable and tells its shards.
    pub fn flush(&mut self, node: NodeId) {
        let near = Ts::from_time(self.now.after(BOUND_AHEAD_US / 2));
        if self.nodes[&node].clock_bound < near {
            self.raise_bound(node, Ts::ZERO);
        }
        let durable = self.sync(node);
        for id in self.ids_of(node) {
            self.call(id, |protocol, cx| protocol.on_durable(cx, durable));
            self.complete_checkpoint(id);
        }
    }

    /// Flushes every node that runs.
    pub fn flush_all(&mut self) {
        for node in self.nodes_up() {
            self.flush(node);
        }
    }

    #[expect(clippy::print_stdout, reason = "SEED=n asks for it")]
    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        if self.traced {
            println!("{}", line());
        }
    }

    /// Whether a message may leave its shard.
    pub fn may_leave(&self, flight: &Flight<P::Message>) -> bool {
        flight.wait <= self.nodes[&flight.from.node()].disk.borrow().durable
    }

    /// Delivers one message (through its wire form between nodes); lost if the receiver is down or
    /// cut off.
    pub fn deliver(&mut self, flight: Flight<P::Message>) {
        self.trace(|| format!("{} > {} {:?}", flight.from, flight.to, flight.message));
        if !self.nodes[&flight.to.node()].up || self.is_cut(flight.from.node(), flight.to.node()) {
            return;
        }
        let message = if flight.is_remote() {
            let bytes = base::codec::to_vec(&flight.message);
            base::codec::decode(&bytes).expect("own encoding decodes")
        } else {
            flight.message
        };
        self.call(flight.to, |protocol, cx| {
            protocol.on_message(cx, flight.from, message);
        });
    }

    /// Delivers everything, flushing as needed, until nothing moves.
    pub fn settle(&mut self) {
        for _ in 0..SETTLE_STEPS_MAX {
            self.flush_all();
            self.run_parked();
            if self.flights.is_empty() {
                return;
            }
            let flight = self.flights.remove(0);
            self.deliver(flight);
        }
        let flights = &self.flights[..self.flights.len().min(5)];
        panic!("messages go on for ever: {flights:?}");
    }

    /// Gives all shards the turns that they want. Checkpoints that are made way for begin, or those
    /// turns would not end.
    fn run_parked(&mut self) {
        for _ in 0..SETTLE_STEPS_MAX {
            for id in core::mem::take(&mut self.checkpoints_wanted) {
                if self.nodes[&id.node()].up {
                    self.checkpoint(id);
                }
            }
            let wants = |id: &&ShardId| {
                self.nodes[&id.node()].up && self.shards[id].protocol.deadline() == Some(Time(0))
            };
            let parked: Vec<ShardId> = self.shards.keys().filter(wants).copied().collect();
            if parked.is_empty() {
                return;
            }
            for id in parked {
                self.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
        panic!("turns go on for ever:\n{}", self.states());
    }

    /// Gives a shard the turns that it wants at once.
    pub fn take_turns(&mut self, shard: ShardId) {
        while self.shards[&shard].protocol.deadline() == Some(Time(0)) {
            self.call(shard, |protocol, cx| protocol.on_tick(cx));
        }
    }

    /// Time goes on, and every shard that runs is woken.
    pub fn tick(&mut self, micros: u64) {
        self.now = self.now.after(micros);
        for id in self.ids() {
            if self.nodes[&id.node()].up {
                self.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
    }

    /// The owner of a row. Panics if that is not exactly one shard.
    pub fn owner(&self, key: &Key) -> ShardId {
        let owners = self.owners(key);
        assert_eq!(owners.len(), 1, "{key:?} is owned by {owners:?}");
        owners[0]
    }

    /// All shards that think they own a row.
    pub fn owners(&self, key: &Key) -> Vec<ShardId> {
        let home = self.home(key);
        let up = self
            .shards
            .iter()
            .filter(|(id, _)| self.nodes[&id.node()].up);
        let owners = up.filter(|(id, shard)| match shard.protocol.moving() {
            Some(rows) => rows.owns(key),
            None => **id == home,
        });
        owners.map(|(id, _)| *id).collect()
    }

    /// The newest value of a row at its owner; `None` if it is absent.
    pub fn value(&self, key: &Key) -> Option<i64> {
        self.value_at(self.owner(key), key)
    }

    /// The newest value of a row in the store of a shard; `None` if it is absent.
    pub fn value_at(&self, shard: ShardId, key: &Key) -> Option<i64> {
        let store = &self.shards[&shard].store;
        let version = store.get(key, Ts::MAX)?;
        Some(programs::value(version.value))
    }

    /// Sums a counter over all shards.
    pub fn count(&self, of: impl Fn(&Counters) -> u64) -> u64 {
        self.shards.values().map(|shard| of(&shard.counters)).sum()
    }

    /// Whether nothing is left to do anywhere.
    pub fn is_idle(&self) -> bool {
        self.shards.values().all(|shard| shard.protocol.is_idle())
    }

    /// The state of all shards.
    pub fn states(&self) -> String {
        let shards = self.shards.iter();
        shards
            .map(|(id, shard)| format!("{id}:\n{}", shard.protocol))
            .collect()
    }
}

pub(crate) fn load(store: &mut Store, key: &Key, value: i64) {
    let write = Write::Insert(programs::row(value));
    store.apply(key, &write, Ts(1), Ts::ZERO);
}
