//! Golden scripts of recovery (`testdata/recovery`): records in, what the node knows then out.
//!
//! ```text
//! node N                                  this node (1 if not said)
//! from SHARD POSITION [prepared T WRITES at TS by SHARD] | [owed T at TS to SHARDS]
//! checkpoint INCARNATION BOUND CATALOG    what the manifest says
//! start INCARNATION BOUND | bound TS | catalog VERSION | begin SHARD NUMBER | end T
//! commit T at TS WRITES [chunks SHARD=N]  chunk T SHARD SEQ KEYS
//! prepare T SHARD at TS KEYS [by SHARD] [with SHARDS] [chunks N]
//! decide T at TS to SHARDS [writes WRITES] [chunks SHARD=N]
//! resolved T SHARD at TS | resolved T SHARD abort
//! recover | settle | cut N
//! ```
//!
//! Shards are `n1.0`; transactions `n1.0/7` (coordinator and counter); WRITES `n1.0:a,b`, KEYS
//! `a,b`. Every record ends at the next multiple of ten. `settle` appends what recovery asked for,
//! as a node that starts does; `cut N` takes away the last records.
#![allow(
    clippy::disallowed_methods,
    reason = "scripts are files, and a switch of the environment writes them again"
)]

use base::{IndexId, Key, NodeId, Position, ShardId, Slot, Ts, TxnId};
use golden::Machine;
use journal::{
    CheckpointTables, Entry, Owed, Prepared, Record, Redo, Replay, ReplayStart, ShardWrites, Writes,
};
use std::fmt::Write;
use std::path::Path;

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata/recovery");
    golden::run_folder(folder, World::new);
}

struct World {
    start: ReplayStart,
    records: Vec<Record>,
    /// What the last recovery wants to be appended.
    settled: Vec<Record>,
}

fn shard(word: &str) -> ShardId {
    let numbers = word.strip_prefix('n').and_then(|rest| rest.split_once('.'));
    let (node, index) = numbers.expect("shards are n1.0, ...");
    let number = |word: &str| word.parse().expect("a number");
    ShardId::new(NodeId(number(node)), number(index))
}

fn shards(word: &str) -> Vec<ShardId> {
    word.split(',').map(shard).collect()
}

fn txn(word: &str) -> TxnId {
    let (coordinator, counter) = word.split_once('/').expect("transactions are n1.0/7, ...");
    TxnId {
        shard: shard(coordinator),
        incarnation: 1,
        counter: counter.parse().expect("a number"),
    }
}

fn ts(word: &str) -> Ts {
    Ts(word.parse().expect("a timestamp"))
}

fn number(word: &str) -> u64 {
    word.parse().expect("a number")
}

fn keys(word: &str) -> Writes {
    let write = |name: &str| {
        let key = Key::new(IndexId(1), Slot(0), name.as_bytes().to_vec());
        (key, store::Write::Put(name.as_bytes().to_vec()))
    };
    word.split(',').map(write).collect()
}

fn writes(words: &[&str]) -> ShardWrites {
    let parts = words.iter().filter_map(|word| word.split_once(':'));
    parts.map(|(of, names)| (shard(of), keys(names))).collect()
}

/// The word behind `name`.
fn after<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

fn chunks(words: &[&str]) -> Vec<(ShardId, u32)> {
    let counts = after(words, "chunks").and_then(|word| word.split_once('='));
    let count = |(of, count): (&str, &str)| (shard(of), number(count) as u32);
    counts.map(count).into_iter().collect()
}

/// The record of a line.
fn record(words: &[&str]) -> Record {
    match words {
        ["start", incarnation, bound] => Record::NodeStart {
            incarnation: number(incarnation) as u32,
            clock_bound: ts(bound),
            view: 1,
        },
        ["bound", at] => Record::ClockBound { ts: ts(at) },
        ["catalog", version] => Record::Catalog {
            version: number(version),
            catalog: vec![1],
        },
        ["begin", of, count] => Record::CheckpointStart {
            number: number(count),
            shard: shard(of),
        },
        ["end", of] => Record::End { txn: txn(of) },
        ["commit", of, "at", at, rest @ ..] => Record::Commit {
            txn: txn(of),
            commit_ts: ts(at),
            writes: writes(rest),
            chunks: chunks(rest),
        },
        ["chunk", of, on, seq, names] => Record::Chunk {
            txn: txn(of),
            shard: shard(on),
            seq: number(seq) as u32,
            writes: keys(names),
        },
        ["prepare", of, on, "at", at, names, rest @ ..] => Record::Prepare {
            txn: txn(of),
            attempt: 1,
            shard: shard(on),
            prepare_ts: ts(at),
            coordinator: after(rest, "by").map_or(txn(of).shard, shard),
            participants: after(rest, "with").map_or(vec![], shards),
            writes: keys(names),
            chunks: after(rest, "chunks").map_or(0, |count| number(count) as u32),
        },
        ["decide", of, "at", at, "to", to, rest @ ..] => Record::Decision {
            txn: txn(of),
            commit_ts: ts(at),
            participants: shards(to),
            writes: writes(rest),
            chunks: chunks(rest),
        },
        ["resolved", of, on, rest @ ..] => Record::Resolved {
            txn: txn(of),
            shard: shard(on),
            commit_ts: after(rest, "at").map(ts),
        },
        other => panic!("no command {other:?}"),
    }
}

fn show(shard: ShardId) -> String {
    format!("n{}.{}", shard.node().0, shard.index())
}

fn show_txn(txn: TxnId) -> String {
    format!("{}/{}", show(txn.shard), txn.counter)
}

fn show_keys(writes: &Writes) -> String {
    let names = writes
        .iter()
        .map(|(key, _)| String::from_utf8_lossy(&key.bytes).into_owned());
    names.collect::<Vec<_>>().join(",")
}

impl World {
    fn new() -> World {
        World {
            start: ReplayStart {
                node: NodeId(1),
                ..ReplayStart::default()
            },
            records: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// A shard's checkpoint, and one entry of its tables.
    fn from(&mut self, words: &[&str]) {
        let [of, position, rest @ ..] = words else {
            panic!("from SHARD POSITION");
        };
        let of = shard(of);
        let known = self
            .start
            .shards
            .iter()
            .position(|(other, ..)| *other == of);
        let at = known.unwrap_or_else(|| {
            let entry = (of, Position(number(position)), CheckpointTables::default());
            self.start.shards.push(entry);
            self.start.shards.len() - 1
        });
        let tables = &mut self.start.shards[at].2;
        match rest {
            ["prepared", which, names, "at", at, "by", coordinator] => {
                tables.prepared.push(Prepared {
                    txn: txn(which),
                    attempt: 1,
                    shard: of,
                    prepare_ts: ts(at),
                    coordinator: shard(coordinator),
                    participants: vec![],
                    writes: keys(names),
                });
            }
            ["owed", which, "at", at, "to", to] => tables.owed.push(Owed {
                txn: txn(which),
                commit_ts: ts(at),
                participants: shards(to),
            }),
            [] => {}
            other => panic!("no entry of a checkpoint: {other:?}"),
        }
    }

    fn recover(&mut self, trace: &mut String) -> std::fmt::Result {
        let mut replay = Replay::new(self.start.clone());
        for (index, record) in self.records.iter().enumerate() {
            let entry = Entry {
                end: Position(10 * (index as u64 + 1)),
                record: record.clone(),
            };
            let end = entry.end.0;
            let mut redo = |redo: Redo| tell_redo(trace, &redo);
            if let Err(fault) = replay.on_record(entry, &mut redo) {
                return writeln!(trace, "refuses to start at {end}: {fault:?}");
            }
        }
        let recovery = replay.finish(&mut |redo| tell_redo(trace, &redo));
        for prepared in &recovery.held {
            let (which, of) = (show_txn(prepared.txn), show(prepared.shard));
            let (names, ask) = (show_keys(&prepared.writes), show(prepared.coordinator));
            writeln!(trace, "hold {which} on {of}: lock {names}, ask {ask}")?;
        }
        for owed in &recovery.owed {
            let to: Vec<String> = owed.participants.iter().map(|of| show(*of)).collect();
            let (which, at) = (show_txn(owed.txn), owed.commit_ts.0);
            writeln!(
                trace,
                "tell {} that {which} committed at {at}",
                to.join(",")
            )?;
        }
        for settled in &recovery.settled {
            let Record::Resolved {
                txn,
                shard,
                commit_ts,
            } = settled
            else {
                panic!("recovery settles nothing but promises: {settled:?}");
            };
            let how = commit_ts.map_or("abort".to_owned(), |at| format!("at {}", at.0));
            writeln!(
                trace,
                "append resolved {} {} {how}",
                show_txn(*txn),
                show(*shard)
            )?;
        }
        let catalog = recovery.catalog.first().map(|(version, _)| *version);
        writeln!(
            trace,
            "incarnation {} clock {} catalog {catalog:?}",
            recovery.incarnation, recovery.clock_floor.0
        )?;
        self.settled = recovery.settled;
        Ok(())
    }
}

fn tell_redo(trace: &mut String, redo: &Redo) {
    let (of, at, names) = (show(redo.shard), redo.commit_ts.0, show_keys(&redo.writes));
    writeln!(trace, "redo {of} at {at}: {names}").expect("strings take everything");
}

impl Machine for World {
    fn command(&mut self, line: &str, trace: &mut String) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["node", of] => self.start.node = NodeId(number(of) as u16),
            ["from", rest @ ..] => self.from(rest),
            ["checkpoint", incarnation, bound, catalog] => {
                self.start.incarnation = number(incarnation) as u32;
                self.start.clock_bound = ts(bound);
                self.start.catalog_version = number(catalog);
            }
            ["recover"] => self.recover(trace).expect("strings take everything"),
            ["settle"] => self.records.append(&mut self.settled),
            ["cut", count] => {
                let left = self.records.len() - number(count) as usize;
                self.records.truncate(left);
            }
            words => self.records.push(record(words)),
        }
    }
}
