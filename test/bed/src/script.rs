//! The interpreter of golden scripts.

use crate::programs::{self, Test, program, row};
use crate::world::Flight;
use crate::{Subject, TABLE, World, key, placed};
use base::{Datum, Key, NodeId, ShardId, TxnId, Type};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use store::{FormulaOp, Write};
use txn::{LockMode, Op, OpError, OpReply, OpResult, Outcome, Read, Snapshot};

/// A world that obeys scripts. Their form is the one of [`golden`]; commands:
///
/// ```text
/// cluster N S            N nodes with S shards each; shard K of node N is nN.K
/// set NAME VALUE         a setting of the protocol
/// load SHARD KEY VALUE   a row before the first transaction
/// begin T SHARD          transactions are named t1, t2 ... in this order
/// get|xget|snap|recent T SHARD KEY [last]
///                        recent: in a snapshot that misses nothing, drawn with the first and
///                        raised as it is told
/// add|plus|plus2|spend|stock|max|set|times|insert|put|del T SHARD KEY [VALUE] [last]
///                        plus: a formula of an int8, plus2: of an int2; spend: subtracts if there
///                        is as much; stock: subtracts, and adds 91 if less than 10 were left; max,
///                        set, times: formulas of an int8
/// commit T | abort T | calloff T | forget T | cost T
/// deliver [COUNT]        messages that may leave, in order; each line names sender and receiver
/// settle                 flushes every node and delivers, until no message is under way
/// drop TEXT | twice TEXT | late TEXT
///                        the first message whose line contains TEXT: lost, comes again, comes last
/// full N | room N        the disk of a node
/// memory full|room N     its memory
/// patience MILLIS        how long transactions that begin from here wait for those in doubt
/// timeout MILLIS         how long they wait for locks, promises and guards
/// early on|off           whether transactions that begin from here are answered early
/// reads lock|note        whether transactions that begin from here lock what they read
/// ahead N MICROS         the clock of a node goes ahead
/// down N                 the other nodes notice that N is not connected
/// cut N | back N         so does N itself; and they are connected again
/// flush N | tick MILLIS | crash N | restart N
/// checkpoint SHARD       a whole one; it counts when its node is flushed
/// state SHARD | value SHARD KEY
/// pending SHARD          the rows with the most formulas that are not applied
/// owner KEY              the owner of a row of a home, and its value there
/// ```
///
/// SHARD of an operation may be `home`: then the last digit of KEY is its slot.
pub struct Script<P: Subject> {
    world: World<P>,
    txns: Vec<TxnId>,
    snapshots: BTreeMap<TxnId, Snapshot>,
    settings: P::Settings,
}

impl<P: Subject> Default for Script<P> {
    fn default() -> Self {
        Script {
            world: World::new(1, 1),
            txns: Vec::new(),
            snapshots: BTreeMap::new(),
            settings: P::Settings::default(),
        }
    }
}

impl<P: Subject> Script<P> {
    /// Runs all scripts of a folder, each in a world of its own.
    pub fn run_folder(folder: &str) {
        golden::run_folder(Path::new(folder), Script::<P>::default);
    }

    /// The script with the traces that it gives now.
    pub fn trace(script: &str) -> String {
        golden::run_script(script, &mut Script::<P>::default())
    }

    fn txn(&self, name: &str) -> TxnId {
        self.txns[number::<usize>(&name[1..]) - 1]
    }

    fn number_of(&self, txn: TxnId) -> usize {
        let at = self.txns.iter().position(|other| *other == txn);
        at.expect("it is named") + 1
    }

    fn place(&self, at: &str, name: &str) -> (ShardId, Key) {
        if at == "home" {
            let key = placed(name);
            return (self.world.home(&key), key);
        }
        (shard(at), key(TABLE, name))
    }

    fn line(&mut self, words: &[&str], out: &mut String) {
        match *words {
            ["cluster", nodes, shards] => {
                self.world = World::new(number(nodes), number(shards));
                self.world.settings(self.settings.clone());
            }
            ["set", name, value] => {
                P::set_named(&mut self.settings, name, number(value));
                self.world.settings(self.settings.clone());
            }
            ["load", at, name, value] => {
                let (shard, key) = self.place(at, name);
                self.world.load_at(shard, key, number(value));
            }
            ["deliver"] => self.deliver(usize::MAX, out),
            ["deliver", count] => self.deliver(number(count), out),
            ["settle"] => self.settle(out),
            ["drop", ..] => {
                let at = self.find(&words[1..].join(" "));
                let flight = self.world.flights.remove(at);
                let _ = writeln!(out, "{} (lost)", describe::<P>(&flight));
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
            ["state", at] => {
                let state = self.world.shards[&shard(at)].protocol.to_string();
                let _ = write!(out, "{at}:\n{state}");
            }
            ["pending", at] => self.pending(at, out),
            ["value", at, name] => {
                let (shard, key) = self.place(at, name);
                let value = self.world.value_at(shard, &key);
                let _ = writeln!(out, "{name} = {value:?}");
            }
            ["owner", name] => {
                let key = placed(name);
                let (owner, value) = (self.world.owner(&key), self.world.value(&key));
                let _ = writeln!(out, "{name} at {owner} = {value:?}");
            }
            _ => self.transaction(words, out),
        }
        self.answers(out);
    }

    fn pending(&self, at: &str, out: &mut String) {
        let rows = self.world.shards[&shard(at)]
            .protocol
            .pending_rows(&|_| true, 20);
        for row in rows {
            let key = String::from_utf8_lossy(&row.key.bytes);
            let oldest = row.oldest.map(|open| self.number_of(open.txn));
            let oldest = oldest.map_or(String::new(), |number| format!(", oldest t{number}"));
            let (all, committed) = (row.formulas, row.committed);
            let _ = writeln!(
                out,
                "{key}: {all}, {committed} committed{oldest}, {} wait",
                row.waiters
            );
        }
    }

    fn transaction(&mut self, words: &[&str], out: &mut String) {
        match *words {
            ["begin", _, at] => {
                let txn = self.world.begin(shard(at));
                self.txns.push(txn);
            }
            ["commit", txn] => {
                self.world.commit(self.txn(txn));
            }
            ["abort", txn] => self.world.abort(self.txn(txn)),
            ["calloff", txn] => {
                let txn = self.txn(txn);
                let called = self
                    .world
                    .call(txn.shard, |protocol, cx| protocol.call_off(cx, txn));
                if !called {
                    let _ = writeln!(out, "no shard has its commit");
                }
            }
            ["forget", txn] => self.world.forget(self.txn(txn)),
            ["cost", txn] => {
                let txn = self.txn(txn);
                let cost = self.world.shards[&txn.shard].protocol.cost(txn);
                let cost = cost.expect("it is known");
                let _ = writeln!(
                    out,
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
            _ => self.surroundings(words),
        }
    }

    fn surroundings(&mut self, words: &[&str]) {
        let node = |number: &str| NodeId(self::number(number));
        let world = &mut self.world;
        let disk = |world: &World<P>, at: &str| world.nodes[&node(at)].disk.clone();
        match *words {
            [word @ ("full" | "room"), at] => {
                disk(world, at).borrow_mut().is_full = word == "full";
            }
            ["memory", word, at] => {
                disk(world, at).borrow_mut().is_memory_full = word == "full";
            }
            ["flush", at] => world.flush(node(at)),
            ["tick", millis] => world.tick(number::<u64>(millis) * 1_000),
            ["patience", millis] => {
                world.in_doubt_timeout_us = number::<u64>(millis) * 1_000;
            }
            ["timeout", millis] => world.lock_timeout_us = number::<u64>(millis) * 1_000,
            ["early", word] => world.early_answer = word == "on",
            ["reads", word] => world.locks_reads = word == "lock",
            ["ahead", at, micros] => {
                world.ahead.insert(node(at), number(micros));
            }
            ["down", at] => world.announce_down(node(at)),
            ["cut", at] => world.announce_link(node(at), false),
            ["back", at] => world.announce_link(node(at), true),
            ["crash", at] => world.crash(node(at), 0),
            ["restart", at] => world.bring_back(node(at)),
            ["checkpoint", at] => world.whole_checkpoint(shard(at)),
            _ => self.operation(words),
        }
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
        let txn = self.txn(txn);
        let (shard, key) = self.place(at, name);
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
            "spend" => Op::Modify {
                key,
                program: programs::spending(value),
            },
            "stock" => Op::Modify {
                key,
                program: programs::stocking(value),
            },
            "max" => programs::formula(key, Type::Int8, FormulaOp::Max(Datum::Int(value))),
            "times" => programs::formula(key, Type::Int8, FormulaOp::Multiply(Datum::Int(value))),
            "third" => programs::compute(key, programs::third_and(value)),
            "digits" => programs::compute(key, programs::digits_and(value)),
            "set" => programs::formula(key, Type::Int8, FormulaOp::Set(Datum::Int(value))),
            "plus" => programs::add_formula(key, Type::Int8, value),
            "plus2" => programs::add_formula(key, Type::Int2, value),
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
        self.world.submit_to(txn, shard, op, last);
    }

    /// The snapshot of a transaction that is to miss nothing, raised as far as it was told.
    fn recent(&mut self, txn: TxnId) -> Snapshot {
        *self.snapshots.entry(txn).or_insert_with(|| {
            let ts = self.world.call(txn.shard, |_, cx| cx.clock.tick(cx.now));
            Snapshot::recent(ts, ts)
        })
    }

    fn find(&self, text: &str) -> usize {
        let mut flights = self.world.flights.iter();
        let found = flights.position(|flight| describe::<P>(flight).contains(text));
        found.unwrap_or_else(|| panic!("no message says {text}"))
    }

    fn deliver(&mut self, mut count: usize, out: &mut String) {
        while count > 0 {
            let mut flights = self.world.flights.iter();
            let ready = flights.position(|flight| self.world.may_leave(flight));
            let Some(at) = ready else { break };
            let flight = self.world.flights.remove(at);
            let _ = writeln!(out, "{}", describe::<P>(&flight));
            self.world.deliver(flight);
            self.answers(out);
            count -= 1;
        }
        for flight in &self.world.flights {
            if !self.world.may_leave(flight) {
                let _ = writeln!(out, "{} (waits for the disk)", describe::<P>(flight));
            }
        }
    }

    fn settle(&mut self, out: &mut String) {
        for _ in 0..100 {
            self.world.flush_all();
            self.answers(out);
            if self.world.flights.is_empty() {
                return;
            }
            self.deliver(usize::MAX, out);
        }
        panic!("messages go on for ever");
    }

    fn answers(&mut self, out: &mut String) {
        for (txn, _, reply) in core::mem::take(&mut self.world.answers) {
            if let (Err(OpError::Raise(at)), Some(snapshot)) =
                (&reply.result, self.snapshots.get_mut(&txn))
            {
                snapshot.at = *at;
            }
            let durable = self.world.nodes[&txn.shard.node()].disk.borrow().durable;
            let wait = match reply.wait > durable {
                true => " (waits for the disk)",
                false => "",
            };
            let _ = writeln!(out, "t{} {}{wait}", self.number_of(txn), answer(&reply));
        }
    }
}

impl<P: Subject> golden::Machine for Script<P> {
    fn command(&mut self, line: &str, trace: &mut String) {
        self.line(&line.split_whitespace().collect::<Vec<_>>(), trace);
    }
}

fn shard(name: &str) -> ShardId {
    let (node, index) = name[1..].split_once('.').expect("a shard is nN.K");
    ShardId::new(NodeId(number(node)), number(index))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    let number = text.parse();
    number.unwrap_or_else(|_| panic!("{text} is a number"))
}

fn describe<P: Subject>(flight: &Flight<P::Message>) -> String {
    let (from, to) = (flight.from, flight.to);
    format!("{from} -> {to} {}", P::describe(&flight.message))
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
    let value = |datum: &Datum| match datum {
        Datum::Int(value) => value.to_string(),
        other => format!("{other:?}"),
    };
    let values: Vec<String> = datums.iter().map(value).collect();
    format!("[{}]", values.join(" "))
}
