//! Two nodes with two shards each take new catalogs into use, with their messages in random order,
//! broken connections and a slow disk. At every step:
//!
//! * a shard uses no catalog that its node could lose, except the shard that has journaled the
//!   catalog, whose messages are held back;
//! * a journal names no key space before the catalog that makes it, so a node that restarts knows
//!   the tables of all rows that it recovers;
//! * an index that comes and goes while rows are written has an entry for each row and no other.

use base::{Datum, IndexId, NodeId, Position, Prng, ShardId, Time, Ts};
use catalog::{Catalog, Placement, ProtocolKind};
use journal::Record;
use node::frame::encode_message;
use node::{ConnId, Effects, Input, Message, Shard, WireMessage};
use one_shard::{Records, RecordsPort};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use store::Write;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply, Tag};

const NODES: u16 = 2;
const SHARDS: u16 = 2;
const SEEDS: u64 = 30;
const STEPS: u32 = 1_500;
const CONN: ConnId = ConnId(1);

/// Checks that every key space is known before it is written to. Returns the number of writes.
fn check_order(records: &[Record]) -> usize {
    let mut known: Vec<IndexId> = Vec::new();
    let mut count = 0;
    for record in records {
        if let Record::Catalog { catalog, .. } = record {
            let catalog: Catalog = base::codec::decode(catalog).expect("a catalog");
            let databases = catalog.databases.values();
            known.extend(databases.flat_map(|database| database.key_spaces()));
        }
        for index in written(record) {
            assert!(known.contains(&index), "{index:?} comes before its catalog");
            count += 1;
        }
    }
    count
}

fn written(record: &Record) -> Vec<IndexId> {
    let of = |writes: &[(base::Key, Write)]| -> Vec<IndexId> {
        writes.iter().map(|(key, _)| key.index).collect()
    };
    match record {
        Record::Commit { writes, .. } | Record::Decision { writes, .. } => {
            writes.iter().flat_map(|(_, writes)| of(writes)).collect()
        }
        Record::Prepare { writes, .. } | Record::Chunk { writes, .. } => of(writes),
        Record::Acquired { key, .. } | Record::Released { key, .. } => vec![key.index],
        _ => Vec::new(),
    }
}

struct Host {
    machine: Shard,
    /// Replies to the client, each with the position that it waits for.
    replies: VecDeque<(Reply, Position)>,
    is_ready: bool,
    /// Largest count that any client had seen when the last query was sent.
    counted: i64,
}

struct World {
    prng: Prng,
    now: Time,
    journals: BTreeMap<NodeId, Rc<RefCell<Records>>>,
    hosts: BTreeMap<ShardId, Host>,
    queues: BTreeMap<(ShardId, ShardId), VecDeque<Outgoing<Message>>>,
    changes: u64,
    inserts: u64,
    next_key: u64,
    clients: Clients,
    /// Largest count that any client has seen.
    counted: i64,
    /// Bytes of all frames between nodes.
    framed_bytes: u64,
}

/// What clients do. One of them changes the schema.
#[derive(Clone, Copy, PartialEq)]
enum Clients {
    /// A table comes and goes, and gets rows.
    Table,
    /// A unique index of a table comes and goes. Each row has values of its own, so no row is
    /// refused.
    Index,
}

fn machine(shard: ShardId, journal: &Rc<RefCell<Records>>) -> Shard {
    let config = one_shard::config(shard, NODES, SHARDS);
    let recovered = one_shard::without_rows(Arc::default(), Ts(1));
    Shard::new(config, Box::new(RecordsPort(journal.clone())), recovered)
}

impl World {
    fn new(seed: u64, clients: Clients) -> World {
        let mut world = World {
            prng: Prng::new(seed),
            now: Time(1_800_000_000_000_000),
            journals: BTreeMap::new(),
            hosts: BTreeMap::new(),
            queues: BTreeMap::new(),
            changes: 0,
            inserts: 0,
            next_key: 0,
            clients,
            counted: 0,
            framed_bytes: 0,
        };
        for node in (1..=NODES).map(NodeId) {
            let journal = Rc::new(RefCell::new(Records::default()));
            for index in 0..SHARDS {
                let shard = ShardId::new(node, index);
                let host = Host {
                    machine: machine(shard, &journal),
                    replies: VecDeque::new(),
                    is_ready: false,
                    counted: 0,
                };
                world.hosts.insert(shard, host);
            }
            world.journals.insert(node, journal);
        }
        let protocol = [ProtocolKind::TwoPhase, ProtocolKind::Leap][seed as usize % 2];
        let first = world.hosts.get_mut(&ShardId(0)).expect("node 1 has shards");
        first
            .machine
            .bootstrap(Placement::new(NODES, SHARDS), protocol);
        world.connect_nodes();
        world
    }

    fn shards(&self) -> Vec<ShardId> {
        self.hosts.keys().copied().collect()
    }

    fn input(&mut self, shard: ShardId, input: Input) {
        let host = self.hosts.get_mut(&shard).expect("a shard of the cluster");
        let mut out = Effects::default();
        host.machine.step(self.now, input, &mut out);
        let records = self.journals[&shard.node()].borrow();
        let replies = out.replies.iter().map(|(_, _, wait)| *wait);
        let mut waits = replies.chain(out.messages.iter().map(|outgoing| outgoing.wait));
        assert!(
            host.machine.catalog().version <= records.durable_version()
                || waits.all(|wait| wait.0 > records.durable),
            "{shard} lets go what rests on a catalog that its node could lose"
        );
        drop(records);
        for (_, reply, wait) in out.replies {
            host.replies.push_back((reply, wait));
        }
        for outgoing in out.messages {
            if let Message::Wire(message) = &outgoing.message
                && outgoing.to.node() != shard.node()
            {
                let mut frame = Vec::new();
                let bytes = encode_message(shard, outgoing.to, message, &mut frame) as u64;
                host.machine.note_sent(bytes);
                self.framed_bytes += bytes;
            }
            let queue = self.queues.entry((shard, outgoing.to)).or_default();
            queue.push_back(outgoing);
        }
    }

    fn connect_nodes(&mut self) {
        for shard in self.shards() {
            for node in (1..=NODES).map(NodeId).filter(|node| *node != shard.node()) {
                let incarnation = 1;
                self.input(shard, Input::PeerUp { node, incarnation });
            }
        }
    }

    /// All connections between nodes break, and messages under way are lost.
    fn break_links(&mut self) {
        self.queues.retain(|(from, to), _| from.node() == to.node());
        for shard in self.shards() {
            for node in (1..=NODES).map(NodeId).filter(|node| *node != shard.node()) {
                self.input(shard, Input::PeerDown { node });
            }
        }
        self.connect_nodes();
    }

    fn flush(&mut self, node: NodeId) {
        let position = {
            let mut records = self.journals[&node].borrow_mut();
            records.durable = records.all.len() as u64;
            Position(records.durable)
        };
        for index in 0..SHARDS {
            self.input(ShardId::new(node, index), Input::Durable(position));
        }
    }

    /// Delivers the next message of one pair of shards, if the sender's journal is durable to it.
    fn deliver(&mut self) {
        let journals = &self.journals;
        // New catalogs are slow, so that shards do much with the old one and with the new one.
        let slow = self.prng.below(20) > 0;
        let may_leave = |from: &ShardId, queue: &VecDeque<Outgoing<Message>>| {
            let durable = journals[&from.node()].borrow().durable;
            queue.front().is_some_and(|front| {
                let catalog = matches!(front.message, Message::Wire(WireMessage::Catalog(_)));
                front.wait.0 <= durable && !(slow && catalog)
            })
        };
        let open = self
            .queues
            .iter()
            .filter(|((from, _), queue)| may_leave(from, queue));
        let open: Vec<(ShardId, ShardId)> = open.map(|(pair, _)| *pair).collect();
        if open.is_empty() {
            return;
        }
        let (from, to) = open[self.prng.below(open.len() as u64) as usize];
        let queue = self.queues.get_mut(&(from, to)).expect("just listed");
        let message = queue.pop_front().expect("the queue has a front").message;
        self.input(to, Input::Message { from, message });
    }

    /// Gives clients the replies that have become durable. A client with all of them goes on.
    fn talk(&mut self, shard: ShardId) {
        let durable = self.journals[&shard.node()].borrow().durable;
        let host = self.hosts.get_mut(&shard).expect("a shard of the cluster");
        while host
            .replies
            .front()
            .is_some_and(|(_, wait)| wait.0 <= durable)
        {
            match host.replies.pop_front().expect("the queue has a front").0 {
                Reply::CommandComplete(Tag::Insert(_)) => self.inserts += 1,
                Reply::CommandComplete(Tag::Word(_)) => self.changes += 1,
                Reply::Rows(_, _, batch) => {
                    let Datum::Int(count) = batch.datums[0] else {
                        panic!("a count");
                    };
                    assert!(count >= host.counted, "rows without an entry: {count}");
                    self.counted = self.counted.max(count);
                }
                Reply::Ready(_) => host.is_ready = true,
                Reply::Error(_, error) => {
                    let stale = error.state().as_str() == "23505";
                    assert!(!stale, "an entry without a row: {error}");
                }
                _ => {}
            }
        }
        if std::mem::take(&mut host.is_ready) {
            host.counted = self.counted;
            let query = self.next_query(shard);
            let message = ClientMessage::Query(query);
            self.input(
                shard,
                Input::Client {
                    conn: CONN,
                    message,
                },
            );
        }
    }

    /// One client changes the schema. The others fill the table as soon as it is there.
    fn next_query(&mut self, shard: ShardId) -> String {
        let key = self.next_key;
        self.next_key += 1;
        let changes = shard == ShardId::new(NodeId(2), 0);
        match (self.clients, self.prng.below(2)) {
            (Clients::Table, 0) if changes => "DROP TABLE IF EXISTS t".into(),
            (Clients::Table, _) if changes => TABLE.into(),
            (Clients::Table, _) => format!("INSERT INTO t VALUES ({key}, 0)"),
            (Clients::Index, _) if key < 10 && changes => TABLE.into(),
            (Clients::Index, 0) if changes => "DROP INDEX IF EXISTS i".into(),
            (Clients::Index, _) if changes => "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (v)".into(),
            (Clients::Index, 0) if key.is_multiple_of(3) => LOOK.into(),
            (Clients::Index, _) => {
                let (row, round) = (key % ROWS, self.prng.below(3));
                let value = row + ROWS * round;
                format!(
                    "INSERT INTO t VALUES ({row}, {value}) ON CONFLICT (k) DO UPDATE \
                     SET v = excluded.v"
                )
            }
        }
    }

    /// Checks that shards count the bytes of each frame once.
    fn check_bytes(&self) {
        let hosts = self.hosts.values();
        let counted = hosts.map(|host| host.machine.counters().message_bytes);
        assert_eq!(counted.sum::<u64>(), self.framed_bytes);
    }

    fn check(&self) {
        for (shard, host) in &self.hosts {
            let version = host.machine.catalog().version;
            let source = if shard.index() > 0 {
                shard.node()
            } else {
                NodeId(1)
            };
            let durable = self.journals[&source].borrow().durable_version();
            assert!(
                version <= durable || *shard == ShardId(0),
                "{shard} uses catalog {version}, of which {source} could lose all after {durable}"
            );
        }
    }

    fn step(&mut self) {
        self.now = self.now.after(self.prng.below(40));
        let shards = self.shards();
        let shard = shards[self.prng.below(shards.len() as u64) as usize];
        match self.prng.below(1_000) {
            0 if self.clients == Clients::Table => self.break_links(),
            0..100 => self.flush(shard.node()),
            100..200 => self.input(shard, Input::Tick),
            200..400 => self.talk(shard),
            _ => self.deliver(),
        }
        self.check();
    }

    fn connect_clients(&mut self) {
        for shard in self.shards() {
            let secret = 1;
            self.input(
                shard,
                Input::Connect {
                    conn: CONN,
                    secret,
                    link: Box::default(),
                },
            );
            let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let parameters = vec![named("user", "u"), named("database", "postgres")];
            let message = ClientMessage::Startup { parameters };
            self.input(
                shard,
                Input::Client {
                    conn: CONN,
                    message,
                },
            );
        }
    }
}

/// Number of rows of the table with the index.
const ROWS: u64 = 4;
/// Counts the rows by the index, when it is there.
const LOOK: &str = "SELECT count(*) FROM t WHERE v BETWEEN 0 AND 11";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY, v int)";

#[test]
fn no_shard_uses_what_its_node_could_lose() {
    run(Clients::Table);
}

#[test]
fn an_index_that_comes_and_goes_fits_its_rows() {
    run(Clients::Index);
}

/// A shard gets a row of a table that it does not know yet. The shard answers only when it knows
/// the table.
#[test]
fn what_comes_before_its_catalog_waits_for_it() {
    let mut world = World::new(0, Clients::Table);
    let late = ShardId::new(NodeId(2), 1);
    let early = ShardId::new(NodeId(1), 1);
    let settle = |world: &mut World, late: Option<ShardId>| {
        for _ in 0..200 {
            (1..=NODES).for_each(|node| world.flush(NodeId(node)));
            let pairs: Vec<(ShardId, ShardId)> = world.queues.keys().copied().collect();
            for (from, to) in pairs {
                let queue = world.queues.get_mut(&(from, to)).expect("just listed");
                let catalog = queue.front().is_some_and(|front| {
                    matches!(front.message, Message::Wire(WireMessage::Catalog(_)))
                });
                if catalog && late == Some(to) {
                    continue;
                }
                if let Some(Outgoing { message, .. }) = queue.pop_front() {
                    world.input(to, Input::Message { from, message });
                }
            }
        }
    };
    let say = |world: &mut World, shard, query: &str| {
        let (conn, message) = (CONN, ClientMessage::Query(query.into()));
        world.input(shard, Input::Client { conn, message });
    };
    settle(&mut world, None);
    world.connect_clients();
    settle(&mut world, None);
    say(&mut world, ShardId(0), TABLE);
    settle(&mut world, Some(late));
    let version = |world: &World, shard| world.hosts[&shard].machine.catalog().version;
    assert!(version(&world, early) > version(&world, late));
    world.hosts.get_mut(&early).unwrap().replies.clear();
    say(
        &mut world,
        early,
        "INSERT INTO t SELECT k, 0 FROM generate_series(1, 100) AS k",
    );
    let before = world.queues.values().map(VecDeque::len).sum::<usize>();
    settle(&mut world, Some(late));
    let done = |world: &World| {
        let mut replies = world.hosts[&early].replies.iter();
        replies.any(|(reply, _)| matches!(reply, Reply::CommandComplete(Tag::Insert(100))))
    };
    assert!(before > 0 && !done(&world), "rows of {late} are missing");
    let aborted = world.hosts[&early].machine.counters().txn_schema_changed;
    assert_eq!(aborted, 0, "and nothing was rolled back for that");
    settle(&mut world, None);
    assert!(done(&world), "now they are there");
}

fn run(clients: Clients) {
    let (mut changes, mut inserts, mut writes) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, clients);
        let starting = |world: &World| {
            let mut hosts = world.hosts.values();
            hosts.any(|host| !host.machine.is_accepting())
        };
        while starting(&world) {
            world.step();
        }
        world.connect_clients();
        let steps = match clients {
            Clients::Table => STEPS,
            Clients::Index => 3 * STEPS,
        };
        (0..steps).for_each(|_| world.step());
        world.check_bytes();
        changes += world.changes;
        inserts += world.inserts;
        let journals = world.journals.values();
        writes += journals
            .map(|journal| check_order(&journal.borrow().all))
            .sum::<usize>();
    }
    assert!(
        changes > SEEDS && inserts > SEEDS && writes > 0,
        "{changes} changes, {inserts} inserts, {writes} writes prove nothing"
    );
}
