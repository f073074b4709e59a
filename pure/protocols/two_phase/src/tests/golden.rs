//! Golden scripts: `testdata/*.txt` hold commands, a line `---`, and the trace that they produce.
//! `UPDATE=1 cargo test -p two_phase golden` rewrites the traces; a person reads the difference.
//!
//! ```text
//! cluster N S            N nodes with S shards each; shard K of node N is nN.K
//! load SHARD KEY VALUE   a row before the first transaction
//! begin T SHARD          transactions are named t1, t2 ... in this order
//! get|xget|snap|recent|add|plus|plus2|insert|put|del T SHARD KEY [VALUE] [last]
//!                        plus: a formula of an int8, plus2: of an int2; recent: in a snapshot
//!                        that misses nothing, drawn with the first and raised as it is told
//! commit T | abort T | forget T | cost T
//! deliver [COUNT]        messages that may leave, in order; each line says who was told what
//! drop TEXT | twice TEXT | late TEXT
//!                        the first message whose line contains TEXT: lost, comes again, comes last
//! full N | room N        the disk of a node
//! memory full|room N     its memory
//! patience MILLIS        how long transactions that begin from here wait for those in doubt
//! ahead N MICROS         the clock of a node goes ahead
//! down N                 the other nodes notice that N is not connected
//! cut N | back N         so does N itself; and they are connected again
//! flush N | tick MILLIS | crash N | restart N | state SHARD | value SHARD KEY
//! ```

use super::programs::{Test, program, row};
use super::world::{TABLE, World, describe, key};
use base::{Datum, NodeId, ShardId, TxnId};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use store::Write;
use txn::{LockMode, Op, OpError, OpReply, OpResult, Outcome, Protocol, Read, Snapshot};

struct Script {
    world: World,
    txns: Vec<TxnId>,
    snapshots: BTreeMap<TxnId, Snapshot>,
    out: String,
}

fn shard(name: &str) -> ShardId {
    let (node, index) = name[1..].split_once('.').expect("a shard is nN.K");
    ShardId::new(
        NodeId(node.parse().expect("a node")),
        index.parse().expect("a shard"),
    )
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is a number"))
}

impl Script {
    fn txn(&self, name: &str) -> TxnId {
        self.txns[number::<usize>(&name[1..]) - 1]
    }

    fn line(&mut self, words: &[&str]) {
        match *words {
            ["cluster", nodes, shards] => self.world = World::new(number(nodes), number(shards)),
            ["load", at, name, value] => {
                self.world.load(shard(at), key(TABLE, name), number(value));
            }
            ["begin", _, at] => {
                let txn = self.world.begin(shard(at));
                self.txns.push(txn);
            }
            ["commit", txn] => {
                self.world.commit(self.txn(txn));
            }
            ["abort", txn] => {
                let txn = self.txn(txn);
                self.world
                    .call(txn.shard, |protocol, cx| protocol.abort(cx, txn));
            }
            ["forget", txn] => {
                let txn = self.txn(txn);
                self.world
                    .call(txn.shard, |protocol, _| protocol.forget(txn));
            }
            ["cost", txn] => {
                let txn = self.txn(txn);
                let cost = self.world.shards[&txn.shard]
                    .protocol
                    .cost(txn)
                    .expect("known");
                let _ = writeln!(
                    self.out,
                    "{} shards {} nodes, {} delays, {}+{} messages, {} inside, {} forced",
                    cost.shards,
                    cost.nodes,
                    cost.delays,
                    cost.messages_on_path,
                    cost.messages_off_path,
                    cost.messages_in_node,
                    cost.forced_writes
                );
            }
            ["deliver"] => self.deliver(usize::MAX),
            ["deliver", count] => self.deliver(number(count)),
            ["drop", ..] => {
                let at = self.find(&words[1..].join(" "));
                let flight = self.world.flights.remove(at);
                let _ = writeln!(self.out, "{} (lost)", describe(&flight));
            }
            ["twice", ..] => {
                let at = self.find(&words[1..].join(" "));
                let flight = self.world.flights[at].clone();
                self.world.flights.push(flight);
            }
            ["late", ..] => {
                let at = self.find(&words[1..].join(" "));
                let flight = self.world.flights.remove(at);
                self.world.flights.push(flight);
            }
            [word @ ("full" | "room"), node] => {
                let disk = &self.world.nodes[&NodeId(number(node))].disk;
                disk.borrow_mut().full = word == "full";
            }
            ["memory", word, node] => {
                let disk = &self.world.nodes[&NodeId(number(node))].disk;
                disk.borrow_mut().memory_full = word == "full";
            }
            ["flush", node] => self.world.flush(NodeId(number(node))),
            ["tick", millis] => self.world.tick(number::<u64>(millis) * 1_000),
            ["patience", millis] => {
                self.world.in_doubt_timeout_us = number::<u64>(millis) * 1_000;
            }
            ["ahead", node, micros] => {
                let node = NodeId(number(node));
                self.world.ahead.insert(node, number(micros));
            }
            ["down", node] => self.world.announce_down(NodeId(number(node))),
            ["cut", node] => self.world.announce_link(NodeId(number(node)), false),
            ["back", node] => self.world.announce_link(NodeId(number(node)), true),
            ["crash", node] => self.world.crash(NodeId(number(node)), 0),
            ["restart", node] => {
                self.world.restart(NodeId(number(node)));
                self.world.announce(NodeId(number(node)));
            }
            ["state", at] => {
                let state = self.world.shards[&shard(at)].protocol.to_string();
                let _ = write!(self.out, "{at}:\n{state}");
            }
            ["value", at, name] => {
                let value = self.world.value(shard(at), &key(TABLE, name));
                let _ = writeln!(self.out, "{name} = {value:?}");
            }
            _ => self.operation(words),
        }
        self.answers();
    }

    fn operation(&mut self, words: &[&str]) {
        let (words, last) = match words {
            [words @ .., "last"] => (words, true),
            words => (words, false),
        };
        let (verb, txn, at, name, value) = match *words {
            [verb, txn, at, name] => (verb, txn, at, name, 0),
            [verb, txn, at, name, value] => (verb, txn, at, name, number(value)),
            _ => panic!("what is {words:?}?"),
        };
        let (txn, key) = (self.txn(txn), key(TABLE, name));
        let read = match verb {
            "xget" => Read::Lock(LockMode::Exclusive),
            "snap" => {
                let ts = self.world.call(txn.shard, |_, cx| cx.clock.tick(cx.now));
                Read::Snapshot(Snapshot::exactly(ts))
            }
            "recent" => Read::Snapshot(Snapshot {
                sole: last,
                ..self.recent(txn)
            }),
            _ => Read::Lock(LockMode::Shared),
        };
        let op = match verb {
            "get" | "xget" | "snap" | "recent" => Op::Get {
                key,
                read,
                program: program(Test::Read),
            },
            "add" => Op::Modify {
                key,
                program: program(Test::Add(value)),
            },
            "plus" => super::random::add_formula(key, base::Type::Int8, value),
            "plus2" => super::random::add_formula(key, base::Type::Int2, value),
            "insert" => Op::Insert {
                key,
                row: row(value).into(),
            },
            "put" => Op::Write {
                key,
                write: Write::Put(row(value)),
            },
            "del" => Op::Write {
                key,
                write: Write::Delete,
            },
            other => panic!("what is {other}?"),
        };
        self.world.submit(txn, shard(at), op, last);
    }

    /// The snapshot of a transaction that is to miss nothing, raised as far as it was told.
    fn recent(&mut self, txn: TxnId) -> Snapshot {
        *self.snapshots.entry(txn).or_insert_with(|| {
            let ts = self.world.call(txn.shard, |_, cx| cx.clock.tick(cx.now));
            Snapshot::recent(ts, ts)
        })
    }

    fn find(&self, text: &str) -> usize {
        let found = self
            .world
            .flights
            .iter()
            .position(|flight| describe(flight).contains(text));
        found.unwrap_or_else(|| panic!("no message says {text}"))
    }

    fn deliver(&mut self, mut count: usize) {
        while count > 0 {
            let ready = self
                .world
                .flights
                .iter()
                .position(|f| self.world.may_leave(f));
            let Some(at) = ready else { break };
            let flight = self.world.flights.remove(at);
            let _ = writeln!(self.out, "{}", describe(&flight));
            self.world.deliver(flight);
            self.answers();
            count -= 1;
        }
        for flight in &self.world.flights {
            if !self.world.may_leave(flight) {
                let _ = writeln!(self.out, "{} (waits for the disk)", describe(flight));
            }
        }
    }

    fn answers(&mut self) {
        for (txn, _, reply) in core::mem::take(&mut self.world.answers) {
            let number = self
                .txns
                .iter()
                .position(|other| *other == txn)
                .expect("named")
                + 1;
            if let (Err(OpError::Raise(at)), Some(snapshot)) =
                (&reply.result, self.snapshots.get_mut(&txn))
            {
                snapshot.at = *at;
            }
            let disk = self.world.nodes[&txn.shard.node()].disk.borrow().durable;
            let wait = if reply.wait > disk {
                " (waits for the disk)"
            } else {
                ""
            };
            let _ = writeln!(self.out, "t{number} {}{wait}", answer(&reply));
        }
    }
}

fn answer(reply: &OpReply) -> String {
    let result = match &reply.result {
        Err(OpError::Raise(_)) => "is to read later".to_string(),
        Err(error) => format!("{error:?}"),
        Ok(OpResult::Exists) => "exists".to_string(),
        Ok(OpResult::SomeExist(places)) => format!("{places:?} exist"),
        Ok(OpResult::Done) => "done".to_string(),
        Ok(OpResult::Clock(_)) => "clock".to_string(),
        Ok(OpResult::Rows { batch, .. }) => values(&batch.datums),
        Ok(OpResult::Modified { found: false, .. }) => "not found".to_string(),
        Ok(OpResult::Modified { returning, .. }) => values(&returning.datums),
    };
    match &reply.outcome {
        None => result,
        Some(Outcome::Committed { .. }) => format!("{result}, committed"),
        Some(Outcome::Aborted(reason)) => format!("{result}, aborted {reason:?}"),
        Some(Outcome::Unknown) => format!("{result}, unknown"),
    }
}

fn values(datums: &[Datum]) -> String {
    let values: Vec<String> = datums
        .iter()
        .map(|datum| match datum {
            Datum::Int(value) => value.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    format!("[{}]", values.join(" "))
}

/// Runs the commands of a file and returns it with the traces that they produce.
fn play(text: &str) -> String {
    let mut script = Script {
        world: World::new(1, 1),
        txns: Vec::new(),
        snapshots: BTreeMap::new(),
        out: String::new(),
    };
    let mut result = String::new();
    let mut in_trace = false;
    for line in text.lines() {
        match (in_trace, line.trim()) {
            (false, "---") => {
                in_trace = true;
                let _ = writeln!(result, "---\n{}", core::mem::take(&mut script.out));
            }
            (true, "") => in_trace = false,
            (true, _) => {}
            (false, command) => {
                let _ = writeln!(result, "{command}");
                if !command.is_empty() && !command.starts_with('#') {
                    script.line(&command.split_whitespace().collect::<Vec<_>>());
                }
            }
        }
    }
    format!("{}\n", result.trim_end())
}

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("testdata is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    assert!(files.len() >= 6);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("readable");
        let played = play(&text);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, played).expect("writable");
        } else {
            assert!(text == played, "{}:\n{played}", file.display());
        }
    }
}
