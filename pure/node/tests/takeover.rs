//! Node 1 dies, or stands still, at each moment of a schema change that closes something: the
//! others open it again within two seconds, node 1 agrees when it is back, and the client is never
//! told the contrary of what has happened.

use base::{NodeId, Position, Prng, ShardId, Time, Ts};
use catalog::{Catalog, Placement, ProtocolKind};
use journal::{Entry, Record, ReplayStart};
use node::{ConnId, Effects, Input, Message, Shard, ShardConfig, ShardRecovered};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use txn::JournalPort;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply, Severity};

const SHARDS: u16 = 2;
const CONN: ConnId = ConnId(1);
/// In which the live nodes must have opened what was closed: they wait for 0.3 s, and another one
/// for 0.7 s if the first cannot.
const OPEN_US: u64 = 2_000_000;
const ONE: NodeId = NodeId(1);

/// The journal of a node: its records, and how many of them are durable.
#[derive(Default)]
struct Records {
    all: Vec<Record>,
    durable: u64,
}

struct Port(Rc<RefCell<Records>>);

impl JournalPort for Port {
    fn append(&mut self, payload: &[u8]) -> Position {
        let record = Record::decode(payload).expect("shards append records");
        let mut records = self.0.borrow_mut();
        records.all.push(record);
        Position(records.all.len() as u64)
    }

    fn durable(&self) -> Position {
        Position(self.0.borrow().durable)
    }
}

struct Node {
    journal: Rc<RefCell<Records>>,
    incarnation: u32,
    is_dead: bool,
    /// It does nothing, and keeps what it has in memory.
    is_paused: bool,
}

struct Host {
    machine: Shard,
    replies: VecDeque<(Reply, Position)>,
}

struct World {
    prng: Prng,
    now: Time,
    nodes: BTreeMap<NodeId, Node>,
    hosts: BTreeMap<ShardId, Host>,
    queues: BTreeMap<(ShardId, ShardId), VecDeque<Outgoing<Message>>>,
    /// Every catalog that a shard has used: one for each version.
    seen: BTreeMap<u64, Arc<Catalog>>,
}

/// What a client has been told.
#[derive(Clone, PartialEq, Debug)]
enum Told {
    Done,
    Failed(String),
}

impl World {
    fn new(seed: u64, count: u16, protocol: ProtocolKind) -> World {
        let mut world = World {
            prng: Prng::new(seed),
            now: Time(1_800_000_000_000_000),
            nodes: BTreeMap::new(),
            hosts: BTreeMap::new(),
            queues: BTreeMap::new(),
            seen: BTreeMap::new(),
        };
        for id in (1..=count).map(NodeId) {
            let node = Node {
                journal: Rc::default(),
                incarnation: 0,
                is_dead: true,
                is_paused: false,
            };
            world.nodes.insert(id, node);
        }
        for id in (1..=count).map(NodeId) {
            world.make(id);
        }
        let first = world.hosts.get_mut(&ShardId(0)).expect("node 1 has shards");
        first
            .machine
            .bootstrap(Placement::new(count, SHARDS), protocol);
        for id in (1..=count).map(NodeId) {
            world.connect(id);
        }
        world.go_on(1_000_000);
        world
    }

    /// Makes the shards of a node from what is durable in its journal.
    fn make(&mut self, id: NodeId) {
        let count = self.nodes.len() as u16;
        let node = self.nodes.get_mut(&id).expect("a node");
        node.incarnation += 1;
        (node.is_dead, node.is_paused) = (false, false);
        let records = node.journal.borrow();
        let entries = records.all.iter().enumerate().map(|(at, record)| Entry {
            end: Position(at as u64 + 1),
            record: record.clone(),
        });
        let start = ReplayStart {
            node: id,
            ..ReplayStart::default()
        };
        let recovery = journal::recover(start, entries.collect::<Vec<_>>()).expect("a journal");
        drop(records);
        let catalog: Arc<Catalog> = match recovery.catalog.last() {
            Some((_, bytes)) => Arc::new(base::codec::decode(bytes).expect("a catalog")),
            None => Arc::default(),
        };
        let floor = Ts(recovery.clock_floor.0.max(Ts::from_time(self.now).0));
        for index in 0..SHARDS {
            let shard = ShardId::new(id, index);
            let config = ShardConfig {
                incarnation: node.incarnation,
                ..one_shard::config(shard, count, SHARDS)
            };
            let recovered = ShardRecovered {
                vote: recovery.vote.clone().filter(|_| index == 0),
                ..one_shard::without_rows(catalog.clone(), floor)
            };
            let host = Host {
                machine: Shard::new(config, Box::new(Port(node.journal.clone())), recovered),
                replies: VecDeque::new(),
            };
            self.hosts.insert(shard, host);
        }
    }

    fn works(&self, id: NodeId) -> bool {
        let node = &self.nodes[&id];
        !node.is_dead && !node.is_paused
    }

    /// Connects a node with all others that work.
    fn connect(&mut self, id: NodeId) {
        let others: Vec<NodeId> = self.nodes.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != id) {
            if !self.works(other) {
                continue;
            }
            for (at, node) in [(id, other), (other, id)] {
                let incarnation = self.nodes[&node].incarnation;
                self.tell_all(at, || Input::PeerUp { node, incarnation });
            }
        }
    }

    /// All connections of a node are lost.
    fn part(&mut self, id: NodeId) {
        self.queues.retain(|(from, to), _| {
            from.node() == to.node() || ![from.node(), to.node()].contains(&id)
        });
        let others: Vec<NodeId> = self.nodes.keys().copied().collect();
        for other in others.into_iter().filter(|other| *other != id) {
            if self.works(other) {
                self.tell_all(other, || Input::PeerDown { node: id });
            }
        }
    }

    fn kill(&mut self, id: NodeId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        node.is_dead = true;
        let mut records = node.journal.borrow_mut();
        let durable = records.durable as usize;
        records.all.truncate(durable);
        drop(records);
        self.hosts.retain(|shard, _| shard.node() != id);
        self.queues
            .retain(|(from, to), _| from.node() != id && to.node() != id);
        self.part(id);
        // What only its own first shard had used, and its journal has lost, has never been.
        let used = self
            .hosts
            .values()
            .map(|host| host.machine.catalog().version);
        let last = used.chain([self.durable_version(id)]).max();
        self.seen.retain(|version, _| Some(*version) <= last);
    }

    fn durable_version(&self, id: NodeId) -> u64 {
        let records = self.nodes[&id].journal.borrow();
        let durable = records.all[..records.durable as usize].iter();
        let versions = durable.filter_map(|record| match record {
            Record::Catalog { version, .. } => Some(*version),
            _ => None,
        });
        versions.max().unwrap_or(0)
    }

    fn pause(&mut self, id: NodeId) {
        self.nodes.get_mut(&id).expect("a node").is_paused = true;
        self.part(id);
    }

    /// A node that has stood still goes on, and finds its connections broken.
    fn resume(&mut self, id: NodeId) {
        self.nodes.get_mut(&id).expect("a node").is_paused = false;
        let others: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in others.into_iter().filter(|node| *node != id) {
            self.tell_all(id, || Input::PeerDown { node });
        }
        self.connect(id);
    }

    fn restart(&mut self, id: NodeId) {
        self.make(id);
        self.connect(id);
    }

    fn tell_all(&mut self, id: NodeId, input: impl Fn() -> Input) {
        for index in 0..SHARDS {
            self.input(ShardId::new(id, index), input());
        }
    }

    fn input(&mut self, shard: ShardId, input: Input) {
        let Some(host) = self.hosts.get_mut(&shard) else {
            return;
        };
        let mut out = Effects::default();
        host.machine.step(self.now, input, &mut out);
        let catalog = host.machine.catalog();
        let known = self.seen.entry(catalog.version).or_insert(catalog.clone());
        assert_eq!(**known, *catalog, "two catalogs have one version");
        for (_, reply, wait) in out.replies {
            host.replies.push_back((reply, wait));
        }
        for outgoing in out.messages {
            let to = outgoing.to.node();
            let reaches = to == shard.node() || self.works(to);
            if reaches {
                let queue = self.queues.entry((shard, outgoing.to)).or_default();
                queue.push_back(outgoing);
            }
        }
    }

    fn flush(&mut self, id: NodeId) -> bool {
        let journal = self.nodes[&id].journal.clone();
        let mut records = journal.borrow_mut();
        if records.durable == records.all.len() as u64 {
            return false;
        }
        records.durable = records.all.len() as u64;
        let position = Position(records.durable);
        drop(records);
        self.tell_all(id, || Input::Durable(position));
        true
    }

    /// One message, one flush, or the next deadline.
    fn step(&mut self) {
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        let live: Vec<NodeId> = ids.into_iter().filter(|id| self.works(*id)).collect();
        let nodes = &self.nodes;
        let may_leave = |from: &ShardId, queue: &VecDeque<Outgoing<Message>>| {
            let durable = nodes[&from.node()].journal.borrow().durable;
            queue.front().is_some_and(|front| front.wait.0 <= durable)
        };
        let open = self.queues.iter().filter(|((from, to), queue)| {
            live.contains(&from.node()) && live.contains(&to.node()) && may_leave(from, queue)
        });
        let open: Vec<(ShardId, ShardId)> = open.map(|(pair, _)| *pair).collect();
        if !open.is_empty() && self.prng.below(4) > 0 {
            let (from, to) = open[self.prng.below(open.len() as u64) as usize];
            let queue = self.queues.get_mut(&(from, to)).expect("just listed");
            let message = queue.pop_front().expect("it has a front").message;
            self.now = self.now.after(10);
            return self.input(to, Input::Message { from, message });
        }
        let at = self.prng.below(live.len() as u64) as usize;
        if self.flush(live[at]) || !open.is_empty() || live.iter().any(|id| self.flush(*id)) {
            self.now = self.now.after(50);
            return;
        }
        let shards: Vec<ShardId> = self.hosts.keys().copied().collect();
        let shards = shards
            .into_iter()
            .filter(|shard| live.contains(&shard.node()));
        let shards: Vec<ShardId> = shards.collect();
        let deadlines = shards
            .iter()
            .filter_map(|shard| self.hosts[shard].machine.deadline());
        let next = deadlines.min().unwrap_or(self.now.after(10_000));
        self.now = self.now.after(10).max(next.min(self.now.after(10_000)));
        for shard in shards {
            let deadline = self.hosts[&shard].machine.deadline();
            if deadline.is_some_and(|at| at <= self.now) {
                self.input(shard, Input::Tick);
            }
        }
    }

    fn go_on(&mut self, us: u64) {
        let until = self.now.after(us);
        while self.now < until {
            self.step();
        }
    }

    fn connect_client(&mut self, shard: ShardId) {
        let (conn, secret, link) = (CONN, 1, Box::default());
        self.input(shard, Input::Connect { conn, secret, link });
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters = vec![named("user", "u"), named("database", "postgres")];
        let message = ClientMessage::Startup { parameters };
        self.input(shard, Input::Client { conn, message });
        self.go_on(10_000);
        self.hosts.get_mut(&shard).expect("a shard").replies.clear();
    }

    fn ask(&mut self, shard: ShardId, sql: &str) {
        let (conn, message) = (CONN, ClientMessage::Query(sql.into()));
        self.input(shard, Input::Client { conn, message });
    }

    /// The answer to the last query, if it is there.
    fn told(&self, shard: ShardId) -> Option<Told> {
        let host = self.hosts.get(&shard)?;
        let durable = self.nodes[&shard.node()].journal.borrow().durable;
        let replies = host.replies.iter().filter(|(_, wait)| wait.0 <= durable);
        let mut told = replies.filter_map(|(reply, _)| match reply {
            Reply::CommandComplete(_) => Some(Told::Done),
            Reply::Error(Severity::Error, error) => {
                Some(Told::Failed(error.state().as_str().to_owned()))
            }
            _ => None,
        });
        told.next()
    }

    fn run(&mut self, shard: ShardId, sql: &str) -> Told {
        self.hosts.get_mut(&shard).expect("a shard").replies.clear();
        self.ask(shard, sql);
        for _ in 0..100_000 {
            self.step();
            if let Some(told) = self.told(shard) {
                return told;
            }
        }
        panic!("{sql} does not end");
    }

    fn catalog(&self, shard: ShardId) -> Arc<Catalog> {
        self.hosts[&shard].machine.catalog()
    }

    /// All shards that work use this catalog, in which nothing is closed.
    fn open_catalog(&self) -> Arc<Catalog> {
        let working = self.hosts.keys().filter(|shard| self.works(shard.node()));
        let catalogs: Vec<_> = working
            .map(|shard| (*shard, self.catalog(*shard)))
            .collect();
        let newest = catalogs.iter().max_by_key(|(_, catalog)| catalog.version);
        let newest = newest.expect("somebody works").1.clone();
        for (shard, catalog) in &catalogs {
            assert!(!catalog.is_closed(), "{shard} is closed: {catalog:?}");
            assert_eq!(catalog.version, newest.version, "{shard} is behind");
        }
        newest
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Change {
    ToLeap,
    ToTwoPhase,
    PrimaryKey,
}

impl Change {
    fn sql(self) -> &'static str {
        match self {
            Change::ToLeap => "ALTER DATABASE postgres SET (protocol = 'leap')",
            Change::ToTwoPhase => "ALTER DATABASE postgres SET (protocol = 'two_phase')",
            Change::PrimaryKey => "ALTER TABLE t ADD PRIMARY KEY (a)",
        }
    }

    fn before(self) -> ProtocolKind {
        match self {
            Change::ToTwoPhase => ProtocolKind::Leap,
            Change::ToLeap | Change::PrimaryKey => ProtocolKind::TwoPhase,
        }
    }

    fn is_done(self, catalog: &Catalog) -> bool {
        let database = &catalog.databases["postgres"];
        match self {
            Change::ToLeap => database.protocol == ProtocolKind::Leap,
            Change::ToTwoPhase => database.protocol == ProtocolKind::TwoPhase,
            Change::PrimaryKey => database.tables["t"].primary_constraint.is_some(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Kill,
    Pause,
    /// It is dead for a moment only.
    Restart,
}

/// What was seen over all runs of a kind.
#[derive(Default, Debug)]
struct Seen {
    /// What kept something closed when node 1 went, and how many runs met that.
    closed: BTreeMap<String, u32>,
    done: u32,
    undone: u32,
    unknown: u32,
}

/// The change with node 1 gone after so many steps. False if it had ended by then.
fn one(
    change: Change,
    fault: Fault,
    count: u16,
    asker: ShardId,
    after: u32,
    seen: &mut Seen,
) -> bool {
    let mut world = World::new(u64::from(after), count, change.before());
    let other = ShardId::new(NodeId(3), 1);
    [asker, other]
        .into_iter()
        .for_each(|shard| world.connect_client(shard));
    assert_eq!(
        world.run(asker, "CREATE TABLE t (a int, b int)"),
        Told::Done
    );
    world
        .hosts
        .get_mut(&asker)
        .expect("a shard")
        .replies
        .clear();
    world.ask(asker, change.sql());
    for _ in 0..after {
        world.step();
    }
    if world.told(asker).is_some() {
        return false;
    }
    let live = world.catalog(ShardId::new(NodeId(2), 0));
    if live.is_closed() {
        let database = &live.databases["postgres"];
        let key = format!("{:?} {:?}", database.protocol, database.switching);
        *seen.closed.entry(key).or_default() += 1;
    }
    match fault {
        Fault::Kill | Fault::Restart => world.kill(ONE),
        Fault::Pause => world.pause(ONE),
    }
    if fault == Fault::Restart {
        let pause = world.prng.below(600_000);
        world.go_on(pause);
        world.restart(ONE);
    }
    world.go_on(OPEN_US);
    let opened = world.open_catalog();
    let told = world.told(asker);
    if fault != Fault::Restart {
        // Clients are let in again.
        let mine = "SELECT count(*) FROM pg_class WHERE false";
        assert_eq!(world.run(other, mine), Told::Done);
    }
    match fault {
        Fault::Kill => world.restart(ONE),
        Fault::Pause => world.resume(ONE),
        Fault::Restart => {}
    }
    world.go_on(OPEN_US);
    let last = world.open_catalog();
    assert!(!last.is_closed() && last.reserved.is_empty());
    let told = told.or_else(|| world.told(asker));
    let told = told.expect("the client is answered");
    let is_done = change.is_done(&last);
    match told {
        Told::Done => {
            assert!(is_done, "it said done");
            seen.done += 1;
        }
        Told::Failed(state) if state == "55000" => {
            assert!(!is_done, "it said undone");
            seen.undone += 1;
        }
        Told::Failed(state) => {
            assert_eq!(state, "08007");
            seen.unknown += 1;
        }
    }
    assert_eq!(change.is_done(&opened), is_done, "what was opened stays so");
    // Schema changes go on.
    let told = world.run(other, "CREATE TABLE u (a int)");
    assert_eq!(told, Told::Done);
    let told = world.run(other, change.sql());
    let is_new = !is_done || change != Change::PrimaryKey;
    assert_eq!(told == Told::Done, is_new, "{told:?}");
    world.go_on(1_000_000);
    assert!(change.is_done(&world.open_catalog()));
    for host in world.hosts.values() {
        host.machine.validate();
        assert!(host.machine.is_idle(), "{} is not idle", host.machine.id());
    }
    true
}

fn all(change: Change, fault: Fault, count: u16, asker: ShardId) -> Seen {
    let mut seen = Seen::default();
    // Each run has another order of events: some end sooner.
    let mut ended = 0;
    let stride = if fault == Fault::Kill { 2 } else { 4 };
    for after in (0..).step_by(stride) {
        ended += u32::from(!one(change, fault, count, asker, after, &mut seen));
        if ended > 5 {
            break;
        }
    }
    seen
}

fn asker() -> ShardId {
    ShardId::new(NodeId(2), 1)
}

#[test]
fn the_others_open_a_database_that_was_on_its_way_to_leap() {
    let seen = all(Change::ToLeap, Fault::Kill, 3, asker());
    assert_eq!(seen.closed.len(), 3, "{seen:?}");
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

#[test]
fn the_others_open_a_database_that_was_on_its_way_to_two_phase() {
    let seen = all(Change::ToTwoPhase, Fault::Kill, 3, asker());
    assert_eq!(seen.closed.len(), 3, "{seen:?}");
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

#[test]
fn the_others_thaw_a_table_that_was_getting_a_primary_key() {
    let seen = all(Change::PrimaryKey, Fault::Kill, 3, asker());
    assert!(seen.undone > 10 && seen.done > 0, "{seen:?}");
}

/// Two of three nodes are lost: node 1 cannot know what they would have decided. It says so, and
/// goes on when one of them is back.
#[test]
fn without_a_majority_nobody_waits_for_ever() {
    let mut closed = 0;
    for after in (0..80).step_by(5) {
        let mut world = World::new(after, 3, ProtocolKind::TwoPhase);
        world.connect_client(ShardId(0));
        world.ask(ShardId(0), Change::ToLeap.sql());
        (0..after).for_each(|_| world.step());
        let is_closed = world.catalog(ShardId(0)).is_closed();
        if world.told(ShardId(0)).is_some() || !is_closed {
            continue;
        }
        [2, 3].into_iter().for_each(|node| world.kill(NodeId(node)));
        world.go_on(2 * OPEN_US);
        closed += u32::from(world.catalog(ShardId(0)).is_closed());
        let told = world.told(ShardId(0)).expect("the client is answered");
        assert!(matches!(told, Told::Failed(_)), "{told:?}");
        world.restart(NodeId(3));
        world.go_on(OPEN_US);
        let opened = world.open_catalog();
        if told == Told::Failed("55000".into()) {
            assert!(!Change::ToLeap.is_done(&opened), "it said undone");
        }
        world.restart(NodeId(2));
        world.go_on(OPEN_US);
        assert!(world.hosts.values().all(|host| host.machine.is_idle()));
    }
    assert!(closed > 3, "{closed} runs stayed closed");
}

#[test]
fn node_1_awakes_and_agrees() {
    for change in [Change::ToLeap, Change::ToTwoPhase, Change::PrimaryKey] {
        let asker = if change == Change::ToLeap {
            ShardId(0)
        } else {
            asker()
        };
        let seen = all(change, Fault::Pause, 3, asker);
        assert!(seen.undone > 3, "{change:?}: {seen:?}");
    }
}

#[test]
fn node_1_comes_back_while_the_others_open_it() {
    for (change, count) in [
        (Change::ToLeap, 4),
        (Change::ToTwoPhase, 5),
        (Change::PrimaryKey, 3),
    ] {
        let seen = all(change, Fault::Restart, count, asker());
        assert!(seen.undone > 3, "{change:?}: {seen:?}");
    }
}

/// Node 1 cannot end its own change without a majority. What queues behind it is told so.
#[test]
fn a_change_behind_one_that_nobody_can_end_is_refused() {
    let (first, second) = (ShardId::new(ONE, 0), ShardId::new(ONE, 1));
    for asked_before in [true, false] {
        let mut world = World::new(7, 3, ProtocolKind::TwoPhase);
        world.connect_client(first);
        world.connect_client(second);
        world.ask(first, Change::ToLeap.sql());
        while !world.catalog(first).is_closed() {
            world.step();
        }
        if asked_before {
            world.ask(second, "CREATE TABLE x (a int)");
        }
        let others = [NodeId(2), NodeId(3)];
        others.iter().for_each(|id| world.pause(*id));
        if !asked_before {
            world.go_on(OPEN_US);
            world.ask(second, "CREATE TABLE x (a int)");
        }
        world.go_on(OPEN_US);
        let refused = Told::Failed("55000".to_owned());
        assert_eq!(world.told(second), Some(refused), "{asked_before}");
        others.iter().for_each(|id| world.resume(*id));
        world.go_on(OPEN_US);
        assert!(
            !world.open_catalog().databases["postgres"]
                .tables
                .contains_key("x")
        );
    }
}
