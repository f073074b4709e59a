//! A cluster of several nodes in memory. Messages and flushes happen in random order; nodes die,
//! stand still and come back.
#![allow(unreachable_pub, reason = "several tests share the module")]
#![allow(dead_code, reason = "no test uses all of the module")]

use base::{Datum, NodeId, Position, Prng, ShardId, Time, Ts};
use catalog::{Catalog, Placement, ProtocolKind};
use journal::{Entry, ReplayStart};
use node::{ConnId, Effects, Input, Message, Shard, ShardConfig, ShardRecovered};
use one_shard::{Records, RecordsPort};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use txn::contract::Outgoing;
use wire::{ClientMessage, Reply, Severity};

const SHARDS: u16 = 2;
const CONN: ConnId = ConnId(1);

struct Node {
    journal: Rc<RefCell<Records>>,
    incarnation: u32,
    is_dead: bool,
    /// A paused node does nothing, and keeps what it has in memory.
    is_paused: bool,
}

pub struct Host {
    pub machine: Shard,
    pub replies: VecDeque<(Reply, Position)>,
}

pub struct World {
    pub prng: Prng,
    pub now: Time,
    nodes: BTreeMap<NodeId, Node>,
    pub hosts: BTreeMap<ShardId, Host>,
    queues: BTreeMap<(ShardId, ShardId), VecDeque<Outgoing<Message>>>,
    /// By version: the catalog that shards have used. There is one for each version.
    seen: BTreeMap<u64, Arc<Catalog>>,
    /// Frames between nodes so far, and the messages in them.
    pub frames: u64,
    pub messages: u64,
}

/// What a client has been told.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    Done,
    Failed(String),
}

impl World {
    pub fn new(seed: u64, count: u16, protocol: ProtocolKind) -> World {
        let mut world = World {
            prng: Prng::new(seed),
            now: Time(1_800_000_000_000_000),
            nodes: BTreeMap::new(),
            hosts: BTreeMap::new(),
            queues: BTreeMap::new(),
            seen: BTreeMap::new(),
            frames: 0,
            messages: 0,
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

    /// Makes the shards of a node from the durable records of its journal.
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
                machine: Shard::new(
                    config,
                    Box::new(RecordsPort(node.journal.clone())),
                    recovered,
                ),
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

    pub fn kill(&mut self, id: NodeId) {
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
        // A catalog that only its own first shard had used, and its journal has lost, never was.
        let used = self
            .hosts
            .values()
            .map(|host| host.machine.catalog().version);
        let last = used.chain([self.durable_version(id)]).max();
        self.seen.retain(|version, _| Some(*version) <= last);
    }

    fn durable_version(&self, id: NodeId) -> u64 {
        self.nodes[&id].journal.borrow().durable_version()
    }

    pub fn pause(&mut self, id: NodeId) {
        self.nodes.get_mut(&id).expect("a node").is_paused = true;
        self.part(id);
    }

    /// A paused node goes on, and finds its connections broken.
    pub fn resume(&mut self, id: NodeId) {
        self.nodes.get_mut(&id).expect("a node").is_paused = false;
        let others: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in others.into_iter().filter(|node| *node != id) {
            self.tell_all(id, || Input::PeerDown { node });
        }
        self.connect(id);
    }

    pub fn restart(&mut self, id: NodeId) {
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
            if to != shard.node() {
                self.frames += 1;
                self.messages += outgoing.message.count() as u64;
            }
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

    /// Delivers one message, flushes one journal, or lets time pass to the next deadline.
    pub fn step(&mut self) {
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
            let message = queue.pop_front().expect("the queue has a front").message;
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

    pub fn go_on(&mut self, us: u64) {
        let until = self.now.after(us);
        while self.now < until {
            self.step();
        }
    }

    /// Connects the client of a shard. Each shard has one client.
    pub fn connect_client(&mut self, shard: ShardId) {
        self.connect_client_to(shard, "postgres");
    }

    /// Connects the client of a shard to another database.
    pub fn connect_client_to(&mut self, shard: ShardId, database: &str) {
        let (conn, secret, link) = (CONN, 1, Box::default());
        self.input(shard, Input::Connect { conn, secret, link });
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let parameters = vec![named("user", "u"), named("database", database)];
        let message = ClientMessage::Startup { parameters };
        self.input(shard, Input::Client { conn, message });
        self.go_on(10_000);
        self.hosts.get_mut(&shard).expect("a shard").replies.clear();
    }

    pub fn ask(&mut self, shard: ShardId, sql: &str) {
        let (conn, message) = (CONN, ClientMessage::Query(sql.into()));
        self.input(shard, Input::Client { conn, message });
    }

    /// The answer to the last query, if it has come.
    pub fn told(&self, shard: ShardId) -> Option<Told> {
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

    /// As [`World::ask`], and forgets what the client was told before.
    pub fn ask_anew(&mut self, shard: ShardId, sql: &str) {
        self.hosts.get_mut(&shard).expect("a shard").replies.clear();
        self.ask(shard, sql);
    }

    pub fn run(&mut self, shard: ShardId, sql: &str) -> Told {
        self.ask_anew(shard, sql);
        for _ in 0..100_000 {
            self.step();
            if let Some(told) = self.told(shard) {
                return told;
            }
        }
        panic!("{sql} does not end");
    }

    /// The first value of the last row of a query, or the SQLSTATE with the detail of its error.
    pub fn value(&mut self, shard: ShardId, sql: &str) -> Result<Datum, String> {
        self.hosts.get_mut(&shard).expect("a shard").replies.clear();
        self.ask(shard, sql);
        let mut value = Ok(Datum::Null);
        for _ in 0..100_000 {
            self.step();
            let durable = self.nodes[&shard.node()].journal.borrow().durable;
            let replies = &mut self.hosts.get_mut(&shard).expect("a shard").replies;
            while replies.front().is_some_and(|(_, wait)| wait.0 <= durable)
                && let Some((reply, _)) = replies.pop_front()
            {
                match reply {
                    Reply::Rows(_, _, batch) if batch.rows > 0 && batch.width > 0 => {
                        value = Ok(batch.row(batch.rows as usize - 1)[0].clone());
                    }
                    Reply::Error(_, error) => {
                        let fields = error.fields();
                        let state = error.state();
                        value = Err(format!("{} {}", state.as_str(), fields.detail));
                    }
                    Reply::Ready(_) => return value,
                    _ => {}
                }
            }
        }
        panic!("{sql} does not end");
    }

    pub fn catalog(&self, shard: ShardId) -> Arc<Catalog> {
        self.hosts[&shard].machine.catalog()
    }

    /// The catalog that all working shards use; nothing in it is closed.
    pub fn open_catalog(&self) -> Arc<Catalog> {
        let working = self.hosts.keys().filter(|shard| self.works(shard.node()));
        let catalogs: Vec<_> = working
            .map(|shard| (*shard, self.catalog(*shard)))
            .collect();
        let newest = catalogs.iter().max_by_key(|(_, catalog)| catalog.version);
        let newest = newest.expect("a node works").1.clone();
        for (shard, catalog) in &catalogs {
            assert!(!catalog.is_closed(), "{shard} is closed: {catalog:?}");
            assert_eq!(catalog.version, newest.version, "{shard} is behind");
        }
        newest
    }
}
