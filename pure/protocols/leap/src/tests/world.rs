//! A cluster in memory: shards, a journal per node, and messages in the tester's hands.

use crate::message::Body;
use crate::{AwayCursor, Leap, Message, Settings};
use base::Planted;
use base::{Clock, IndexId, Key, NodeId, Position, ShardId, Slot, Time, Ts, TxnId};
use journal::reader::Entry;
use journal::{CheckpointTables, Record, ReplayStart, recover};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use store::{CheckpointCursor, CheckpointRow, Store, Write};
use txn::{
    Counters, Cx, Event, JournalPort, Op, OpId, OpReply, Outbox, Protocol, Submitted, TxnOptions,
};

pub(crate) const TABLE: IndexId = IndexId(1);

/// A node's journal: what is behind `durable` may be lost by a crash.
#[derive(Default, Debug)]
pub(crate) struct Disk {
    pub(crate) records: Vec<(Position, Vec<u8>)>,
    pub(crate) durable: Position,
    pub(crate) is_full: bool,
    pub(crate) is_memory_full: bool,
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
        self.0.borrow().is_full
    }
    fn is_memory_full(&self) -> bool {
        self.0.borrow().is_memory_full
    }
}

/// Rows that are away, in one piece of a checkpoint.
const AWAY_MAX: usize = 2;

/// A newest version as a checkpoint has it.
type Row = (Key, Ts, Option<Vec<u8>>);

/// A checkpoint of one shard.
#[derive(Debug, Default)]
struct Checkpoint {
    start: Position,
    tables: CheckpointTables,
    /// Until all rows that are away are written.
    away: Option<AwayCursor>,
    rows: Vec<Row>,
    /// It counts when the journal is durable to here; `None`: the rows were not written yet.
    end: Option<Position>,
}

pub(crate) struct Shard {
    pub(crate) protocol: Leap,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    /// After a restart: only the newest versions were recovered.
    pub(crate) horizon: Ts,
    checkpoint: Checkpoint,
    next_checkpoint: Option<Checkpoint>,
}

pub(crate) struct Node {
    pub(crate) incarnation: u32,
    pub(crate) disk: Rc<RefCell<Disk>>,
    pub(crate) up: bool,
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
    pub(crate) homes: Vec<ShardId>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) answers: Vec<(TxnId, OpId, OpReply)>,
    pub(crate) history: Vec<Event>,
    initial: Vec<(Key, i64)>,
    counter: u64,
    pub(crate) ops: u64,
    printed: Option<Planted>,
    settings: Settings,
    pub(crate) checkpoints: u64,
    /// Shards that make way for one, which must then begin.
    pub(crate) checkpoints_wanted: BTreeSet<ShardId>,
    /// Of the messages between nodes.
    pub(crate) largest_bytes: usize,
    /// Most units of work of a call.
    pub(crate) units_max: u64,
    /// Nodes between which nothing arrives, the smaller one first.
    cuts: BTreeSet<(NodeId, NodeId)>,
    /// Prints what happens.
    pub(crate) traced: bool,
}

/// The row `name`; its slot is the last digit, so with three shards `a0`, `a1` and `a2` have
/// different homes.
pub(crate) fn key(name: &str) -> Key {
    let digit = name.as_bytes()[name.len() - 1] - b'0';
    Key::new(TABLE, Slot(u16::from(digit)), name.as_bytes().to_vec())
}

pub(crate) fn options(priority_ts: Ts) -> TxnOptions {
    TxnOptions {
        priority_ts,
        urgent: false,
        attempt: 1,
        serial: false,
        lock_timeout_us: 0,
        in_doubt_timeout_us: txn::contract::IN_DOUBT_TIMEOUT_US,
    }
}

impl World {
    pub(crate) fn new(nodes: u16, shards: u16) -> World {
        let ids = (1..=nodes)
            .flat_map(|node| (0..shards).map(move |index| ShardId::new(NodeId(node), index)));
        let homes: Vec<ShardId> = ids.collect();
        let mut world = World {
            now: Time(1_704_067_200_000_000 + 1_000_000),
            nodes: BTreeMap::new(),
            shards: BTreeMap::new(),
            homes: homes.clone(),
            flights: Vec::new(),
            answers: Vec::new(),
            history: Vec::new(),
            initial: Vec::new(),
            counter: 0,
            ops: 0,
            printed: None,
            settings: Settings::default(),
            checkpoints: 0,
            checkpoints_wanted: BTreeSet::new(),
            largest_bytes: 0,
            units_max: 0,
            cuts: BTreeSet::new(),
            traced: false,
        };
        for node in (1..=nodes).map(NodeId) {
            let disk = Rc::new(RefCell::new(Disk::default()));
            let state = Node {
                incarnation: 1,
                disk,
                up: true,
            };
            world.nodes.insert(node, state);
            world.start_record(node);
        }
        for id in homes {
            let shard = Shard {
                protocol: Leap::new(id, &world.homes),
                store: Store::new(),
                clock: Clock::new(id, Ts::ZERO),
                counters: Counters::default(),
                horizon: Ts::ZERO,
                checkpoint: Checkpoint::default(),
                next_checkpoint: None,
            };
            world.shards.insert(id, shard);
        }
        for id in world.homes.clone() {
            world.call(id, |protocol, cx| {
                protocol.recover(cx, journal::Ownership::default(), &|_| true);
            });
            world.meet(id);
        }
        world
    }

    /// Follows a rule as the paper prints it.
    pub(crate) fn print(&mut self, rule: Planted) {
        self.printed = Some(rule);
        let shards = self.shards.values_mut();
        shards.for_each(|shard| shard.protocol.printed = Some(rule));
    }

    /// Settings of all shards, in all lives.
    pub(crate) fn settings(&mut self, settings: Settings) {
        self.settings = settings;
        let shards = self.shards.values_mut();
        shards.for_each(|shard| shard.protocol.set_settings(settings));
    }

    pub(crate) fn home(&self, key: &Key) -> ShardId {
        self.homes[usize::from(key.slot.0) % self.homes.len()]
    }

    fn start_record(&mut self, node: NodeId) {
        let incarnation = self.nodes[&node].incarnation;
        let mut payload = Vec::new();
        Record::NodeStart {
            incarnation,
            clock_bound: Ts::ZERO,
            view: 1,
        }
        .encode(&mut payload);
        let mut disk = self.nodes[&node].disk.borrow_mut();
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

    pub(crate) fn load(&mut self, key: Key, value: i64) {
        self.initial.push((key.clone(), value));
        let home = self.home(&key);
        let write = Write::Insert(super::programs::row(value));
        let store = &mut self.shards.get_mut(&home).unwrap().store;
        store.apply(&key, &write, Ts(1), Ts::ZERO);
    }

    pub(crate) fn call<R>(
        &mut self,
        id: ShardId,
        call: impl FnOnce(&mut Leap, &mut Cx<'_, Message>) -> R,
    ) -> R {
        let node = &self.nodes[&id.node()];
        assert!(node.up, "{id} is up");
        let mut port = Port(node.disk.clone());
        let incarnation = node.incarnation;
        let shard = self.shards.get_mut(&id).unwrap();
        let mut out = Outbox::default();
        let units = |counters: &Counters| counters.units + counters.rows_read;
        let before = units(&shard.counters);
        let mut cx = Cx {
            now: self.now,
            shard: id,
            incarnation,
            view: 1,
            clock: &mut shard.clock,
            store: &mut shard.store,
            journal: &mut port,
            out: &mut out,
            horizon: shard.horizon,
            clock_bound: Ts::MAX,
            decode: super::programs::decode,
            catalog: 1,
            schema_changed: &|_| Some(1),
            counters: &mut shard.counters,
            history: Some(&mut self.history),
        };
        let result = call(&mut shard.protocol, &mut cx);
        self.units_max = self.units_max.max(units(&shard.counters) - before);
        shard.protocol.validate(&shard.store);
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
        self.begin_as(shard, None)
    }

    /// A transaction that has died before keeps its timestamp.
    pub(crate) fn begin_as(&mut self, shard: ShardId, first: Option<Ts>) -> TxnId {
        self.counter += 1;
        self.now = self.now.after(1);
        let incarnation = self.nodes[&shard.node()].incarnation;
        let txn = TxnId {
            shard,
            incarnation,
            counter: self.counter,
        };
        self.call(shard, |protocol, cx| {
            let ts = first.unwrap_or_else(|| cx.clock.tick(cx.now));
            protocol.begin(cx, txn, options(ts));
        });
        txn
    }

    /// Submits to the home of the row; the answer, now or later, is in `answers`.
    pub(crate) fn submit(&mut self, txn: TxnId, op: Op, last: bool) -> OpId {
        let to = match &op {
            Op::Get { key, .. }
            | Op::Modify { key, .. }
            | Op::Insert { key, .. }
            | Op::Formula { key, .. }
            | Op::Write { key, .. } => self.home(key),
            Op::InsertMany(_) | Op::Scan(_) | Op::Clock(_) => panic!("it is submitted to a shard"),
        };
        self.submit_to(txn, to, op, last)
    }

    pub(crate) fn submit_to(&mut self, txn: TxnId, to: ShardId, op: Op, last: bool) -> OpId {
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

    pub(crate) fn ids_of(&self, node: NodeId) -> Vec<ShardId> {
        self.shards
            .keys()
            .copied()
            .filter(|id| id.node() == node)
            .collect()
    }

    pub(crate) fn flush(&mut self, node: NodeId) {
        let durable = {
            let mut disk = self.nodes[&node].disk.borrow_mut();
            disk.durable = disk.end();
            disk.durable
        };
        for id in self.ids_of(node) {
            self.call(id, |protocol, cx| protocol.on_durable(cx, durable));
            self.complete_checkpoint(id);
        }
    }

    /// Begins a checkpoint, or goes on with it: first rows that are away, then those here.
    pub(crate) fn checkpoint(&mut self, id: ShardId) {
        let disk = self.nodes[&id.node()].disk.clone();
        let shard = self.shards.get_mut(&id).unwrap();
        let Some(next) = &mut shard.next_checkpoint else {
            if !shard.protocol.checkpoint_may_begin() {
                self.checkpoints_wanted.insert(id);
                return;
            }
            let mut payload = Vec::new();
            Record::CheckpointStart {
                number: 1,
                shard: id,
            }
            .encode(&mut payload);
            let start = disk.borrow_mut().push(&payload);
            let (ownership, away) = shard.protocol.checkpoint_begins();
            let tables = CheckpointTables {
                ownership,
                ..CheckpointTables::default()
            };
            shard.next_checkpoint = Some(Checkpoint {
                start,
                tables,
                away: Some(away),
                rows: Vec::new(),
                end: None,
            });
            return;
        };
        if let Some(away) = &mut next.away {
            match shard.protocol.checkpoint_next(away, AWAY_MAX) {
                Some(piece) => next.tables.ownership.append(piece),
                None => next.away = None,
            }
        } else if next.end.is_none() && shard.protocol.checkpoint_may_end() {
            let mut cursor = CheckpointCursor::default();
            let rows = &mut next.rows;
            let whole = shard
                .store
                .checkpoint_next(&mut cursor, usize::MAX, &mut |row| {
                    let key = Key::new(row.index, row.slot, row.key.to_vec());
                    rows.push((key, row.commit_ts, row.value.map(<[u8]>::to_vec)));
                });
            assert!(whole);
            next.end = Some(disk.borrow().end());
        }
    }

    /// Begins a checkpoint, or goes on with the one that has begun, to its end.
    pub(crate) fn whole_checkpoint(&mut self, id: ShardId) {
        self.checkpoint(id);
        while self.shards[&id]
            .next_checkpoint
            .as_ref()
            .is_some_and(|next| next.end.is_none())
        {
            self.checkpoint(id);
        }
    }

    fn complete_checkpoint(&mut self, id: ShardId) {
        let durable = self.nodes[&id.node()].disk.borrow().durable;
        let shard = self.shards.get_mut(&id).unwrap();
        let complete = shard.next_checkpoint.as_ref().and_then(|next| next.end);
        if complete.is_some_and(|end| end <= durable) {
            shard.checkpoint = shard.next_checkpoint.take().unwrap();
            self.checkpoints += 1;
        }
    }

    #[expect(clippy::print_stdout, reason = "SEED=n asks for it")]
    fn trace(&self, line: impl FnOnce() -> String) {
        if self.traced {
            println!("{}", line());
        }
    }

    /// Whether a message may leave its node.
    pub(crate) fn may_leave(&self, flight: &Flight) -> bool {
        flight.wait <= self.nodes[&flight.from.node()].disk.borrow().durable
    }

    /// Delivers one message (through its wire form between nodes); lost if the receiver is down.
    pub(crate) fn deliver(&mut self, flight: Flight) {
        self.trace(|| format!("{} > {} {:?}", flight.from, flight.to, flight.message.body));
        if !self.nodes[&flight.to.node()].up || self.is_cut(flight.from.node(), flight.to.node()) {
            return;
        }
        let message = if flight.is_remote() {
            let bytes = base::codec::to_vec(&flight.message);
            self.largest_bytes = self.largest_bytes.max(bytes.len());
            base::codec::decode(&bytes).expect("own encoding decodes")
        } else {
            flight.message
        };
        self.call(flight.to, |protocol, cx| {
            protocol.on_message(cx, flight.from, message);
        });
    }

    pub(crate) fn flush_all(&mut self) {
        let up = self.nodes.iter().filter(|(_, node)| node.up);
        let nodes: Vec<NodeId> = up.map(|(id, _)| *id).collect();
        for node in nodes {
            self.flush(node);
        }
    }

    /// Delivers everything, flushing as needed, until nothing moves.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20_000 {
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

    pub(crate) fn tick(&mut self, micros: u64) {
        self.now = self.now.after(micros);
        for id in self.homes.clone() {
            if self.nodes[&id.node()].up {
                self.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
    }

    /// Stops a node: what was not durable is gone (but for `kept` records more).
    pub(crate) fn crash(&mut self, node: NodeId, kept: usize) {
        self.trace(|| format!("{node} crashes, {kept} more records kept"));
        let state = self.nodes.get_mut(&node).unwrap();
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
        for id in self.ids_of(node) {
            self.complete_checkpoint(id);
            self.shards.get_mut(&id).unwrap().next_checkpoint = None;
        }
    }

    pub(crate) fn restart(&mut self, node: NodeId) {
        let records: Vec<Entry> = {
            let disk = self.nodes[&node].disk.borrow();
            let decode = |payload: &[u8]| Record::decode(payload).expect("own records decode");
            let entry = |(end, payload): &(Position, Vec<u8>)| Entry {
                end: *end,
                record: decode(payload),
            };
            disk.records.iter().map(entry).collect()
        };
        let ids = self.ids_of(node);
        let checkpoint = |id: &ShardId| {
            let checkpoint = &self.shards[id].checkpoint;
            (*id, checkpoint.start, checkpoint.tables.clone())
        };
        let start = ReplayStart {
            node,
            shards: ids.iter().map(checkpoint).collect(),
            ..ReplayStart::default()
        };
        let mut recovery = recover(start, records).expect("the journal is whole");
        self.trace(|| format!("{node} restarts {:?}", recovery.ownership));
        let state = self.nodes.get_mut(&node).unwrap();
        state.incarnation = recovery.incarnation + 1;
        state.up = true;
        self.start_record(node);
        let floor = recovery.clock_floor.max(Ts::from_time(self.now));
        for id in &ids {
            let mut store = Store::new();
            let checkpoint = &self.shards[id].checkpoint;
            if checkpoint.end.is_none() {
                for (key, value) in &self.initial {
                    if self.home(key) == *id {
                        let write = Write::Insert(super::programs::row(*value));
                        store.apply(key, &write, Ts(1), Ts::ZERO);
                    }
                }
            }
            for (key, commit_ts, value) in &checkpoint.rows {
                store.load(CheckpointRow {
                    index: key.index,
                    slot: key.slot,
                    key: &key.bytes,
                    commit_ts: *commit_ts,
                    value: value.as_deref(),
                });
            }
            for redo in recovery.redo.iter().filter(|redo| redo.shard == *id) {
                for (key, write) in &redo.writes {
                    store.redo(key, write, redo.commit_ts);
                }
            }
            let found = recovery.ownership.iter().position(|(shard, _)| shard == id);
            let ownership = found
                .map(|at| recovery.ownership.remove(at).1)
                .unwrap_or_default();
            let shard = self.shards.get_mut(id).unwrap();
            shard.protocol = Leap::new(*id, &self.homes);
            shard.protocol.printed = self.printed;
            shard.protocol.set_settings(self.settings);
            shard.store = store;
            shard.clock = Clock::new(*id, floor);
            shard.horizon = floor;
            self.call(*id, |protocol, cx| {
                protocol.recover(cx, ownership, &|_| true)
            });
            self.meet(*id);
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

    pub(crate) fn is_cut(&self, one: NodeId, other: NodeId) -> bool {
        self.cuts.contains(&(one.min(other), one.max(other)))
    }

    /// Tells the shards of `to` that nothing can be sent to `node`.
    pub(crate) fn lose_sight(&mut self, to: NodeId, node: NodeId) {
        for id in self.ids_of(to) {
            self.call(id, |protocol, cx| protocol.on_peer_down(cx, node));
        }
    }

    /// A node ends, and the others notice.
    pub(crate) fn kill(&mut self, node: NodeId) {
        self.crash(node, 0);
        let up = self.nodes.iter().filter(|(_, state)| state.up);
        let up: Vec<NodeId> = up.map(|(other, _)| *other).collect();
        for other in up {
            self.lose_sight(other, node);
        }
    }

    /// It comes back.
    pub(crate) fn bring_back(&mut self, node: NodeId) {
        self.restart(node);
        self.announce(node);
    }

    /// Nothing arrives between two nodes any more, and both notice.
    pub(crate) fn cut(&mut self, one: NodeId, other: NodeId) {
        self.cuts.insert((one.min(other), one.max(other)));
        for (here, there) in [(one, other), (other, one)] {
            if self.nodes[&here].up {
                self.lose_sight(here, there);
            }
        }
    }

    /// Two nodes reach each other again.
    pub(crate) fn mend(&mut self, one: NodeId, other: NodeId) {
        self.cuts.remove(&(one.min(other), one.max(other)));
        for (here, there) in [(one, other), (other, one)] {
            if !self.nodes[&here].up || !self.nodes[&there].up {
                continue;
            }
            self.see(here, there);
        }
    }

    /// The connection from `here` stands again.
    pub(crate) fn see(&mut self, here: NodeId, there: NodeId) {
        let incarnation = self.nodes[&there].incarnation;
        for id in self.ids_of(here) {
            self.call(id, |protocol, cx| protocol.on_peer(cx, there, incarnation));
        }
    }

    /// Who owns a row. Panics if it is not exactly one shard.
    pub(crate) fn owner(&self, key: &Key) -> ShardId {
        let owners = self.owners(key);
        assert_eq!(owners.len(), 1, "{key:?} is owned by {owners:?}");
        owners[0]
    }

    pub(crate) fn owners(&self, key: &Key) -> Vec<ShardId> {
        let up = self
            .shards
            .iter()
            .filter(|(id, _)| self.nodes[&id.node()].up);
        let owners = up.filter(|(_, shard)| shard.protocol.owns(key));
        owners.map(|(id, _)| *id).collect()
    }

    /// The newest value of a row at its owner; `None` if it is absent.
    pub(crate) fn value(&self, key: &Key) -> Option<i64> {
        let store = &self.shards[&self.owner(key)].store;
        let version = store.get(key, Ts::MAX)?;
        Some(super::programs::value(version.value))
    }

    /// Sums a counter over all shards.
    pub(crate) fn count(&self, of: impl Fn(&Counters) -> u64) -> u64 {
        self.shards.values().map(|shard| of(&shard.counters)).sum()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.shards.values().all(|shard| shard.protocol.is_idle())
    }
}

/// The kind of a message, for tests that pick one.
pub(crate) fn kind(flight: &Flight) -> &'static str {
    match &flight.message.body {
        Body::OwnerRequest(_) => "OwnerRequest",
        Body::TransferRequest(_) => "TransferRequest",
        Body::Response(_) => "Response",
        Body::Refused(_) => "Refused",
        Body::Working(..) => "Working",
        Body::Waiting(_) => "Waiting",
        Body::Inform(_) => "Inform",
        Body::Stranded(_) => "Stranded",
        Body::Settled(_) => "Settled",
        Body::ReleaseAck(_) => "ReleaseAck",
        Body::Unacked(_) => "Unacked",
        Body::Cancel(..) => "Cancel",
        Body::Read(_) => "Read",
        Body::Reply(_) => "Reply",
        Body::Reading(_) => "Reading",
        Body::Fetch(_) => "Fetch",
        Body::Fetched(_) => "Fetched",
        Body::Forget(_) => "Forget",
        Body::Share(_) => "Share",
        Body::Recall(_) => "Recall",
        Body::Recalled(_) => "Recalled",
        Body::Entrust(_) => "Entrust",
        Body::Performed(_) => "Performed",
        Body::Resolve(_) => "Resolve",
        Body::Applied(_) => "Applied",
        Body::Undecided(_) => "Undecided",
        Body::StillOpen(..) => "StillOpen",
        Body::Confirm(_) => "Confirm",
        Body::Confirmed { .. } => "Confirmed",
        Body::Release(_) => "Release",
        Body::Inquire(_) => "Inquire",
        Body::Running(_) => "Running",
        Body::Ask => "Ask",
        Body::Claims(_) => "Claims",
        Body::Verdicts(_) => "Verdicts",
    }
}
