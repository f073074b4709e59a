//! Golden scripts of schema changes (`testdata/schema`): two nodes with two shards each, the table
//! `t (a, b)`.
//!
//! ```text
//! ask ORIGIN SQL            ORIGIN: `session 1` here, `n2.0 7` another shard with its number
//! ack SHARD VERSION | durable   (the record of node 1)
//! batch done [more] | batch aborted | batch unknown | batch error | batch died
//! deaths NUMBER             of a batch, each followed by the pause
//! heard SHARD NUMBER | connected NODE | down NODE | up NODE | full NODE
//! starting yes|no           whether nodes that are down are expected
//! stop ORIGIN Canceled|LockTimeout
//! restart                   of node 1
//! open SHARD                a block is open there that has written to the table
//! quiet SHARD VERSION       it has ended
//! wait MILLISECONDS
//! ```
//!
//! After each command come the actions that are to be done for it.
#![allow(
    clippy::disallowed_methods,
    reason = "scripts are files, and a switch of the environment writes them again"
)]

use super::*;
use bind::PlanCx;
use catalog::{Execution, Placement, ProtocolKind, Validity};
use golden::Machine;
use plan::PlanKind;
use session::message::DdlStop;
use session::message::Done;
use session::message::FromTxn;
use std::fmt::Write;
use std::path::Path;
use txn::OpError;
use txn::{AbortReason, Outcome};
use wire::Tag;

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata/schema");
    golden::run_folder(folder, World::new);
}

struct World {
    ddl: Ddl,
    catalog: Arc<Catalog>,
    down: Vec<ShardId>,
    starting: bool,
    full: BTreeSet<NodeId>,
    batches: u64,
    now: Time,
    /// Shards where a block is open that has written to the table.
    open: Vec<ShardId>,
}

fn shard(word: &str) -> ShardId {
    let (node, index) = word[1..].split_once('.').expect("a shard like n2.0");
    let node = NodeId(node.parse().expect("a node's number"));
    ShardId::new(node, index.parse().expect("a shard's number"))
}

fn node(word: &str) -> NodeId {
    NodeId(word[1..].parse().expect("a node like n2"))
}

fn origin(words: &[&str]) -> Origin {
    let number = words[1].parse().expect("a number");
    match words[0] {
        "session" => Origin::Session(ConnId(number as u32)),
        from => Origin::Shard(shard(from), number),
    }
}

fn handle(number: u64) -> TxnHandle {
    TxnHandle {
        session: ShardId(0),
        conn: crate::txns::INTERNAL,
        number,
    }
}

impl World {
    fn new() -> World {
        let commands = [
            Command::Bootstrap(Placement::new(2, 2)),
            Command::CreateDatabase {
                name: "shop".into(),
                protocol: ProtocolKind::TwoPhase,
                execution: Execution::Interleaved,
                if_not_exists: false,
            },
        ];
        let mut world = World {
            ddl: Ddl::default(),
            catalog: Arc::new(Catalog::default()),
            down: Vec::new(),
            starting: false,
            full: BTreeSet::new(),
            batches: 0,
            now: Time(0),
            open: Vec::new(),
        };
        for command in commands {
            world.apply(&command);
        }
        for command in world.work("CREATE TABLE t (a int, b int)").before {
            world.apply(&command);
        }
        world
    }

    fn apply(&mut self, command: &Command) {
        let (next, _) = self.catalog.apply(command).expect("a command that applies");
        self.catalog = Arc::new(next);
    }

    fn work(&self, text: &str) -> DdlWork {
        let statements = parse::parse(text).expect("SQL");
        let cx = PlanCx {
            catalog: &self.catalog,
            database: &self.catalog.databases["shop"],
            param_types: &[],
            param_names: &[],
            zone: "",
            path: catalog::KEPT_PATH,
            viewer: Default::default(),
            rows: &|_| None,
            values: &|_| None,
            paths: Default::default(),
        };
        let plan = plan::plan(&statements[0], &cx).expect("a statement that can be planned");
        let PlanKind::Ddl(plan) = &plan.kind else {
            panic!("{text} changes no schema");
        };
        let plan = plan.clone();
        DdlWork {
            before: plan.before,
            fill: plan.fill,
            after: plan.after,
            undo: plan.undo,
            asker: Default::default(),
        }
    }

    fn batch(&mut self, end: &str) {
        let more = end == "done more";
        let (result, outcome) = match end {
            "done" | "done more" => (Ok(Tag::Word("FILL")), None),
            "unknown" => (Ok(Tag::Word("FILL")), Some(Outcome::Unknown)),
            "aborted" => {
                let reason = AbortReason::Unreachable(ShardId::new(NodeId(2), 0));
                (Err(OpError::Aborted(reason)), None)
            }
            "died" => {
                let key = base::Key::new(IndexId(1), base::Slot(0), Vec::new());
                let holder = base::TxnId {
                    shard: ShardId::new(NodeId(2), 0),
                    incarnation: 1,
                    counter: 7,
                };
                let reason = AbortReason::Die { key, holder };
                (Err(OpError::Aborted(reason)), None)
            }
            "cut off" => {
                let key = base::Key::new(IndexId(1), base::Slot(0), Vec::new());
                let (at, tie) = (ShardId::new(NodeId(3), 0), txn::Tie::Owner);
                let reason = AbortReason::RowCutOff { key, at, tie };
                (Err(OpError::Aborted(reason)), None)
            }
            "in doubt" => {
                let wait = txn::DoubtfulWait {
                    key: base::Key::new(IndexId(1), base::Slot(0), Vec::new()),
                    holder: base::TxnId {
                        shard: ShardId::new(NodeId(3), 0),
                        incarnation: 1,
                        counter: 7,
                    },
                    node: NodeId(3),
                    age_us: 1_500_000,
                };
                let reason = AbortReason::InDoubt(Box::new(wait));
                (Err(OpError::Aborted(reason)), None)
            }
            "error" => {
                let error = SqlError::new(SqlState::UNIQUE, "two rows are alike");
                (Err(OpError::Sql(error)), None)
            }
            other => panic!("no end of a batch: {other}"),
        };
        let done = Done {
            result,
            outcome,
            cost: None,
            wait: base::Position(0),
            priority_ts: base::Ts(self.batches),
            effects: None,
        };
        let next = more.then(FillPosition::default);
        let from = handle(self.batches);
        self.ddl
            .on_txn(from, FromTxn::Done(1, done), next, self.now);
    }

    fn next(&mut self) -> Option<Action> {
        let nodes = Nodes {
            now: self.now,
            rest_us: 0,
            down: &self.down,
            starting: self.starting,
            full: &self.full,
        };
        self.ddl.next(&self.catalog, nodes)
    }

    fn act(&mut self, trace: &mut String) {
        while let Some(action) = self.next() {
            match action {
                Action::Publish(catalog) => {
                    let tables = &catalog.databases["shop"].tables;
                    let indexes: Vec<String> = tables
                        .values()
                        .flat_map(|table| &table.secondary)
                        .map(|index| {
                            let state = if index.building { " (building)" } else { "" };
                            format!(" {}{state}", index.name)
                        })
                        .collect();
                    let checks = tables.values().flat_map(|table| &table.checks);
                    let checks = checks.map(|check| (&check.name, check.validity));
                    let keys = tables.values().flat_map(|table| &table.foreign_keys);
                    let keys = keys.map(|key| (&key.name, key.validity));
                    let constraints: Vec<String> = checks
                        .chain(keys)
                        .map(|(name, validity)| match validity {
                            Validity::Valid => format!(" {name}"),
                            other => format!(" {name} ({other:?})"),
                        })
                        .collect();
                    let version = catalog.version;
                    let database = &catalog.databases["shop"];
                    let (protocol, switching) = (database.protocol, database.switching);
                    let state = match switching {
                        None if protocol == ProtocolKind::TwoPhase => String::new(),
                        switching => format!(" {} {switching:?}", protocol.name()),
                    };
                    writeln!(
                        trace,
                        "version {version}:{}{state}",
                        indexes.concat() + &constraints.concat()
                    )
                    .expect("a string takes everything");
                    self.catalog = catalog;
                }
                Action::Fill {
                    position, place, ..
                } => {
                    self.batches += 1;
                    self.ddl.filling(handle(self.batches));
                    let begins = if position.is_some() { "next" } else { "first" };
                    let gives_way = place == Tries::default().place();
                    let place = match gives_way {
                        true => String::new(),
                        false => format!(", {place:?}"),
                    };
                    writeln!(trace, "{begins} batch{place}").expect("a string takes everything");
                }
                Action::Quiesce { version, tables } => {
                    let waits = !self.open.is_empty() || tables.is_empty();
                    if waits {
                        let tables = tables.len();
                        writeln!(trace, "quiesce {version}: {tables} tables")
                            .expect("a string takes everything");
                    }
                    for shard in self.catalog.placement.shards() {
                        if !self.open.contains(shard) {
                            self.ddl.on_quiesced(*shard, version);
                        }
                    }
                }
                Action::AskLocks { number, lock } => {
                    let what = lock.map_or("over".to_owned(), |lock| format!("{lock:?}"));
                    writeln!(trace, "locks {number}: {what}").expect("a string takes everything");
                }
                Action::EndBatch(batch) => {
                    writeln!(trace, "end batch {}", batch.number)
                        .expect("a string takes everything");
                }
                Action::Answer(origin, result) => {
                    let text = match &result {
                        Ok(_) => "done".to_owned(),
                        Err(error) => error.to_string(),
                    };
                    writeln!(trace, "{origin:?}: {text}").expect("a string takes everything");
                    if let Origin::Shard(to, id) = origin {
                        self.ddl.tell(to, id, result);
                    }
                }
            }
        }
    }
}

impl Machine for World {
    fn command(&mut self, line: &str, trace: &mut String) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        match verb {
            "starting" => self.starting = rest == "yes",
            "stop" => {
                let stop = match words[2] {
                    "LockTimeout" => DdlStop::LockTimeout,
                    _ => DdlStop::Canceled,
                };
                if let Some(Action::Answer(origin, result)) = self.ddl.cancel(origin(&words), stop)
                {
                    let error = result.expect_err("what is stopped fails");
                    writeln!(trace, "{origin:?}: {error}").expect("a string takes everything");
                }
            }
            "ask" => {
                let origin = origin(&words);
                let work = self.work(&words[2..].join(" "));
                self.ddl.request(origin, "shop".into(), work);
            }
            "stuck" => {
                let version = words[1].parse().expect("a version");
                self.ddl.on_stuck(shard(words[0]), version, node(words[2]));
            }
            "ack" => self
                .ddl
                .on_ack(shard(words[0]), words[1].parse().expect("a version")),
            "durable" => self.ddl.on_ack(ShardId(0), self.catalog.version),
            "batch" => self.batch(rest),
            "deaths" => {
                for _ in 0..rest.parse().expect("a number") {
                    self.batch("died");
                    self.now = self.now.after(16_000);
                    self.act(&mut String::new());
                }
            }
            // As often as it is tried, and once more.
            "batches" => {
                for _ in 0..BATCH_ATTEMPTS_MAX {
                    self.batch(rest);
                    self.act(&mut String::new());
                }
                self.batch(rest);
            }
            "heard" => self
                .ddl
                .on_heard(shard(words[0]), words[1].parse().expect("a number")),
            "connected" => {
                for (to, id, _) in self.ddl.untold(node(words[0])) {
                    writeln!(trace, "again to {to}: answer {id}")
                        .expect("a string takes everything");
                }
            }
            "down" => {
                let shards = self.catalog.placement.shards().iter().copied();
                let gone = shards.filter(|shard| shard.node() == node(words[0]));
                self.down.extend(gone);
            }
            "open" => self.open.push(shard(words[0])),
            "quiet" => {
                self.open.retain(|open| *open != shard(words[0]));
                let version = words[1].parse().expect("a version");
                self.ddl.on_quiesced(shard(words[0]), version);
            }
            "wait" => {
                let ms: u64 = words[0].parse().expect("milliseconds");
                self.now = self.now.after(ms * 1000);
            }
            "up" => self.down.retain(|shard| shard.node() != node(words[0])),
            "restart" => self.ddl = Ddl::recovered(ShardId(0), 1, &self.catalog),
            "full" => {
                self.full.insert(node(words[0]));
            }
            other => panic!("no command: {other}"),
        }
        self.act(trace);
        if trace.is_empty() {
            trace.push_str("nothing yet\n");
        }
    }
}
