//! Golden scripts of the lock table (`testdata/lock`).
//!
//! ```text
//! lock T MODE ITEM [alone] [ordered] [until TIME]   T: t1 is older than t2; `urgent t3` before
//! release T | expose T | expire TIME | urgent T | state
//! ```
//!
//! Modes are S, I, F and X; items a row `a`, a range `b..d` (all slots) or `shard`. After each
//! command come its answer and the waits that ended by it, and the invariants are checked.
#![allow(
    clippy::disallowed_methods,
    reason = "scripts are files, and a switch of the environment writes them again"
)]

use base::{IndexId, Key, KeyRange, NodeId, ShardId, Slot, Time, Ts, TxnId};
use golden::Machine;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use txn::lock::{Acquired, Item, LockEvent, LockRequest, Settled};
use txn::{LockMode, LockTable, Priority};

#[test]
fn golden_scripts() {
    let folder = Path::new("testdata/lock");
    golden::run_folder(folder, World::default);
}

#[derive(Default)]
struct World {
    table: LockTable,
    urgent: BTreeSet<u64>,
    /// What was asked, by number of the request.
    asked: Vec<String>,
}

fn number(word: &str) -> u64 {
    let digits = word
        .strip_prefix('t')
        .expect("transactions are t1, t2, ...");
    digits.parse().expect("a number")
}

fn txn(number: u64) -> TxnId {
    TxnId {
        shard: ShardId::new(NodeId(1), 0),
        incarnation: 1,
        counter: number,
    }
}

fn key(name: &str) -> Key {
    Key::new(IndexId(1), Slot(0), name.as_bytes().to_vec())
}

fn name(key: &Key) -> String {
    String::from_utf8_lossy(&key.bytes).into_owned()
}

fn mode(word: &str) -> LockMode {
    match word {
        "S" => LockMode::Shared,
        "I" => LockMode::Increment,
        "F" => LockMode::Fold,
        "X" => LockMode::Exclusive,
        other => panic!("no mode {other:?}"),
    }
}

impl World {
    fn lock(&mut self, words: &[&str]) -> Acquired {
        let [who, strength, what, rest @ ..] = words else {
            panic!("lock T MODE ITEM");
        };
        let who = number(who);
        let deadline = rest.iter().position(|word| *word == "until");
        let deadline = deadline.map(|at| Time(rest[at + 1].parse().expect("a time")));
        let point = key(what);
        let range = what.split_once("..").map(|(low, high)| KeyRange {
            low: low.into(),
            high: Some(high.into()),
        });
        let item = match (&range, *what) {
            (_, "shard") => Item::Shard,
            (Some(range), _) => Item::Range {
                index: IndexId(1),
                slot: None,
                range,
            },
            (None, _) => Item::of(&point),
        };
        self.asked.push(format!("{strength} {what}"));
        self.table.acquire(LockRequest {
            txn: Priority {
                urgent: self.urgent.contains(&who),
                ts: Ts(who),
                txn: txn(who),
            },
            item,
            mode: mode(strength),
            alone: rest.contains(&"alone"),
            ordered: rest.contains(&"ordered"),
            deadline,
            now: Time(0),
            request: self.asked.len() as u64 - 1,
        })
    }

    fn tell(&self, event: &LockEvent, trace: &mut String) {
        let (who, asked) = (event.txn.counter, &self.asked[event.request as usize]);
        let how = match &event.settled {
            Settled::Granted => "granted".to_owned(),
            Settled::Died(conflict) => {
                format!(
                    "dies of t{} at {}",
                    conflict.holder.counter,
                    name(&conflict.key)
                )
            }
            Settled::TimedOut(conflict) => format!(
                "timed out at {} behind {}",
                name(&conflict.key),
                conflict.holder
            ),
        };
        writeln!(trace, "  t{who} {asked}: {how}").expect("strings take everything");
    }

    fn state(&self, trace: &mut String) {
        if self.table.is_empty() {
            trace.push_str("nothing is locked\n");
        }
        // Keys of scripts are letters; the table shows them in hexadecimal.
        trace.push_str(&self.table.to_string());
    }
}

impl Machine for World {
    fn command(&mut self, line: &str, trace: &mut String) {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["lock", rest @ ..] => {
                let answer = match self.lock(rest) {
                    Acquired::Granted => "granted".to_owned(),
                    Acquired::Waiting => "waits".to_owned(),
                    Acquired::Died(conflict) => {
                        format!(
                            "dies of t{} at {}",
                            conflict.holder.counter,
                            name(&conflict.key)
                        )
                    }
                };
                let asked = rest[..3].join(" ");
                writeln!(trace, "{asked}: {answer}").expect("strings take everything");
            }
            ["release", who] => {
                self.table.release(txn(number(who)));
                writeln!(trace, "{who} released").expect("strings take everything");
            }
            ["expose", who] => {
                self.table.expose(txn(number(who)));
                writeln!(trace, "{who} exposed").expect("strings take everything");
            }
            ["expire", at] => {
                self.table.expire(Time(at.parse().expect("a time")));
                let deadline = self.table.deadline().map(|at| at.0);
                writeln!(trace, "now {at}, next deadline {deadline:?}").expect("always");
            }
            ["urgent", who] => {
                self.urgent.insert(number(who));
            }
            ["state"] => self.state(trace),
            _ => panic!("no command {line:?}"),
        }
        for event in self.table.take_events() {
            self.tell(&event, trace);
        }
        self.table.validate();
    }
}
