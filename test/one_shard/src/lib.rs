//! A node of one shard in one thread, with clients that take every answer at once.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use base::{Datum, NodeId, Position, RowBatch, ShardId, SqlError, Time, Ts};
use catalog::{Catalog, Placement, ProtocolKind};
use journal::{CheckpointTables, Record};
use node::{ConnId, Effects, Input, Preparation, Shard, ShardConfig, ShardRecovered};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use store::Store;
use txn::JournalPort;
use wire::{ClientMessage, Reply};

/// A journal that keeps nothing and whose records are durable at once.
struct Port(u64);

impl JournalPort for Port {
    fn append(&mut self, _: &[u8]) -> Position {
        self.0 += 1;
        Position(self.0)
    }

    fn durable(&self) -> Position {
        Position(self.0)
    }
}

/// The journal of a node as its records, and how many of them are durable.
#[derive(Default)]
pub struct Records {
    /// All records, in order. The position behind a record is its number, from 1.
    pub all: Vec<Record>,
    /// Number of records that are durable.
    pub durable: u64,
}

impl Records {
    /// The version of the newest catalog among the durable records; 0: there is none.
    pub fn durable_version(&self) -> u64 {
        let durable = self.all[..self.durable as usize].iter();
        let versions = durable.filter_map(|record| match record {
            Record::Catalog { version, .. } => Some(*version),
            _ => None,
        });
        versions.max().unwrap_or(0)
    }
}

/// The journal of a node as one of its shards has it.
pub struct RecordsPort(pub Rc<RefCell<Records>>);

impl JournalPort for RecordsPort {
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

/// The shard and its clock.
pub struct World {
    /// The shard.
    pub shard: Shard,
    /// Virtual time.
    pub now: Time,
    /// Answers of the step before, by connection.
    pub replies: Vec<(ConnId, Reply)>,
    /// Steps so far.
    pub steps: u64,
}

/// Result of a statement.
#[derive(Debug)]
pub struct Outcome {
    /// Number of rows that the statement returned.
    pub rows: u64,
    /// The first value of the last row.
    pub last: Datum,
    /// Why the statement failed.
    pub error: Option<SqlError>,
}

impl Default for Outcome {
    fn default() -> Outcome {
        Outcome {
            rows: 0,
            last: Datum::Null,
            error: None,
        }
    }
}

/// The configuration of a shard in a cluster of `nodes` nodes with `shards` shards each.
pub fn config(shard: ShardId, nodes: u16, shards: u16) -> ShardConfig {
    ShardConfig {
        shard,
        nodes: (1..=nodes)
            .map(|node| (NodeId(node), String::new()))
            .collect(),
        shards_per_node: shards,
        incarnation: 1,
        cluster: 1,
        seed: 1,
        stopwatch: || 0,
        barrier: node::barrier::let_through,
    }
}

/// What recovery gives a shard that has no rows: a catalog and the time of its clock.
pub fn without_rows(catalog: Arc<Catalog>, clock: Ts) -> ShardRecovered {
    ShardRecovered {
        store: Store::new(),
        catalog,
        clock_floor: clock,
        clock_bound: clock,
        tables: CheckpointTables::default(),
        vote: None,
    }
}

impl World {
    /// A shard of a new cluster whose database follows this protocol.
    pub fn new(protocol: ProtocolKind) -> World {
        let recovered = without_rows(Arc::default(), Ts(1));
        let mut shard = Shard::new(config(ShardId(0), 1, 1), Box::new(Port(0)), recovered);
        shard.bootstrap(Placement::new(1, 1), protocol);
        let mut world = World {
            shard,
            now: Time(1_800_000_000_000_000),
            replies: Vec::new(),
            steps: 0,
        };
        world.step(Input::Durable(Position(1_000)));
        world
    }

    /// One step; its answers replace those of the step before.
    pub fn step(&mut self, input: Input) {
        let mut out = Effects::default();
        self.steps += 1;
        self.now = self.now.after(1);
        self.shard.step(self.now, input, &mut out);
        let replies = out.replies.into_iter();
        self.replies = replies.map(|(conn, reply, _)| (conn, reply)).collect();
        let preparations = out.rare.unwrap_or_default().preparations.into_iter();
        for result in preparations.filter_map(Preparation::run) {
            let mut replies = std::mem::take(&mut self.replies);
            self.step(Input::Prepared(Box::new(result)));
            replies.append(&mut self.replies);
            self.replies = replies;
        }
    }

    /// Connects a client.
    pub fn connect(&mut self, conn: u32) {
        self.connect_with(conn, "");
    }

    /// Connects with options as in `PGOPTIONS`.
    pub fn connect_with(&mut self, conn: u32, options: &str) {
        let conn = ConnId(conn);
        let link = Box::default();
        let secret = 0;
        self.step(Input::Connect { conn, secret, link });
        let parameters = [
            ("user", "ada"),
            ("database", "postgres"),
            ("options", options),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let message = ClientMessage::Startup {
            parameters: parameters.to_vec(),
        };
        self.step(Input::Client { conn, message });
    }

    /// A client sends a query string.
    pub fn say(&mut self, conn: u32, text: &str) {
        let message = ClientMessage::Query(text.to_owned());
        let conn = ConnId(conn);
        self.step(Input::Client { conn, message });
    }

    /// Lets the shard go on: the client's buffer is empty, and a tick comes if one is due, else the
    /// news that the journal is durable. All answers together replace those of the step before.
    pub fn go_on(&mut self, conn: u32) {
        let conn = ConnId(conn);
        self.step(Input::Drained { conn });
        let mut replies = std::mem::take(&mut self.replies);
        let wanted = self.shard.deadline().is_some_and(|at| at <= self.now);
        self.step(match wanted {
            true => Input::Tick,
            false => Input::Durable(Position(1_000_000_000_000)),
        });
        replies.append(&mut self.replies);
        self.replies = replies;
    }

    /// The buffer of a client is empty; answers are added to those of the step before.
    pub fn drain(&mut self, conn: u32) {
        let conn = ConnId(conn);
        let mut replies = std::mem::take(&mut self.replies);
        self.step(Input::Drained { conn });
        replies.append(&mut self.replies);
        self.replies = replies;
    }

    /// Runs a statement to its end.
    pub fn run(&mut self, conn: u32, text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        self.say(conn, text);
        for _ in 0..10_000_000 {
            if self.take(conn, &mut outcome) {
                return outcome;
            }
            self.go_on(conn);
        }
        panic!("the statement does not end: {text}");
    }

    /// Takes the answers of the last step. Returns whether the statement is over.
    pub fn take(&mut self, conn: u32, outcome: &mut Outcome) -> bool {
        let mut over = false;
        for (to, reply) in &self.replies {
            if to.0 != conn {
                continue;
            }
            match reply {
                Reply::Rows(_, _, batch) => {
                    let batch: &RowBatch = batch;
                    outcome.rows += u64::from(batch.rows);
                    if batch.rows > 0 && batch.width > 0 {
                        outcome.last = batch.row(batch.rows as usize - 1)[0].clone();
                    }
                }
                Reply::Error(_, error) => outcome.error = Some(error.clone()),
                Reply::Ready(_) => over = true,
                _ => {}
            }
        }
        over
    }

    /// Runs a statement that must succeed, and the work that is left behind it.
    pub fn must(&mut self, conn: u32, text: &str) -> Outcome {
        let outcome = self.run(conn, text);
        assert_eq!(outcome.error, None, "{text}");
        self.rest(conn);
        outcome
    }

    /// Lets the shard do the work that is left.
    pub fn rest(&mut self, conn: u32) {
        while self.shard.deadline().is_some_and(|at| at <= self.now) {
            self.go_on(conn);
        }
    }
}
