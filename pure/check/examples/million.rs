//! Judges a large generated list-append history and prints time per operation and memory.
//!
//! `cargo run --release -p check --example million -- [OPERATIONS] [faulty]`: the history comes
//! from an imagined database under snapshot reads with first-committer-wins and validation of
//! reads, 64 clients, 4 operations per transaction. `faulty` leaves the validation of reads out:
//! anomalies are everywhere.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

use base::Prng;
use check::{History, Level, Op, Outcome, Txn, check};
use std::time::Instant;

const CLIENTS: usize = 64;
const OPS_PER_TXN: usize = 4;
/// A key is replaced by a new one when its list is this long.
const LIST_LENGTH_MAX: usize = 64;
/// Keys in use at a time.
const KEYS: u64 = 400;

/// One list: its elements and when each was committed.
#[derive(Default)]
struct List {
    values: Vec<u64>,
    committed: Vec<u64>,
}

impl List {
    /// How long it was at `time`.
    fn length_at(&self, time: u64) -> usize {
        self.committed.partition_point(|at| *at <= time)
    }
}

/// The state of the imagined database.
struct World {
    lists: Vec<List>,
    /// Keys in use, as places of `lists`.
    active: Vec<u64>,
    clock: u64,
    next_value: u64,
    faulty: bool,
}

impl World {
    /// Begins a transaction and runs all of its reads on its snapshot.
    fn begin(&mut self, prng: &mut Prng, process: u32) -> Txn {
        self.clock += 1;
        let mut txn = Txn::begin(process, self.clock);
        for _ in 0..OPS_PER_TXN {
            let key = self.active[prng.below(KEYS) as usize];
            let append = |op: &Op| matches!(op, Op::Append { key: other, .. } if *other == key);
            if txn.ops.iter().any(append) {
                continue;
            }
            if prng.below(2) == 0 {
                self.next_value += 1;
                let value = self.next_value;
                txn.ops.push(Op::Append { key, value });
            } else {
                let values = self.lists[key as usize].values.clone();
                txn.ops.push(Op::ReadList { key, values });
            }
        }
        txn
    }

    /// Commits it, or rolls it back on a conflict with what committed since it began.
    fn end(&mut self, txn: &mut Txn) {
        self.clock += 1;
        let begun = txn.invoked;
        let conflict = txn.ops.iter().any(|op| {
            let (key, write) = match op {
                Op::Append { key, .. } => (*key, true),
                Op::ReadList { key, .. } => (*key, false),
                _ => return false,
            };
            let list = &self.lists[key as usize];
            (write || !self.faulty) && list.length_at(begun) < list.values.len()
        });
        if conflict {
            txn.end(Outcome::Aborted, self.clock);
            return;
        }
        for op in &txn.ops {
            if let Op::Append { key, value } = op {
                let list = &mut self.lists[*key as usize];
                list.values.push(*value);
                list.committed.push(self.clock);
                if list.values.len() == LIST_LENGTH_MAX {
                    let new = self.lists.len() as u64;
                    let place = self.active.iter().position(|active| active == key);
                    self.active[place.expect("a key is replaced once")] = new;
                    self.lists.push(List::default());
                }
            }
        }
        txn.end(Outcome::Committed, self.clock);
    }
}

fn generate(operations: usize, faulty: bool) -> History {
    let mut prng = Prng::new(1);
    let mut world = World {
        lists: (0..KEYS).map(|_| List::default()).collect(),
        active: (0..KEYS).collect(),
        clock: 0,
        next_value: 0,
        faulty,
    };
    let mut history = History::new();
    let mut clients: Vec<Txn> = (0..CLIENTS)
        .map(|process| world.begin(&mut prng, process as u32))
        .collect();
    let mut count = 0;
    while count < operations {
        let client = prng.below(CLIENTS as u64) as usize;
        let mut txn = core::mem::replace(&mut clients[client], Txn::begin(0, 0));
        world.end(&mut txn);
        count += txn.ops.len();
        history.push(txn);
        clients[client] = world.begin(&mut prng, client as u32);
    }
    history
}

/// The most memory that this process has used, in MB, where the system tells.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kb: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kb / 1024)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let operations = arguments.first().and_then(|word| word.parse().ok());
    let faulty = arguments.iter().any(|word| word == "faulty");
    let history = generate(operations.unwrap_or(1_000_000), faulty);
    let before = peak_mb();
    let begin = Instant::now();
    let verdict = check(&history, Level::StrictSerializable);
    let seconds = begin.elapsed().as_secs_f64();
    let count = history.op_count();
    println!("{verdict}");
    println!(
        "{count} operations, {} transactions: {seconds:.2} s, {:.0} ns per operation; \
         memory {before:?} MB for the history, {:?} MB at most",
        history.txns.len(),
        seconds * 1e9 / count as f64,
        peak_mb(),
    );
}
