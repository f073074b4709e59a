//! Random small histories, judged by trying every execution, against the checker.
//!
//! For lists whose final state was read, both must agree, for serializability, snapshot isolation
//! and both with real time. For READ COMMITTED with real time, and for registers and counters, the
//! checker knows less, and must never report what some execution explains.

use crate::support::{self, judge};
use base::Prng;
use check::{Basis, History, Judgement, Level, Op, Outcome, Txn};
use std::collections::{BTreeMap, BTreeSet};

/// What a key holds, whatever it is.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State {
    lists: BTreeMap<u64, Vec<u64>>,
    registers: BTreeMap<u64, u64>,
    counters: BTreeMap<u64, i64>,
}

impl State {
    fn list(&self, key: u64) -> &[u64] {
        self.lists.get(&key).map_or(&[], |list| list)
    }

    fn write(&mut self, op: &Op) {
        match op {
            Op::Append { key, value } => self.lists.entry(*key).or_default().push(*value),
            Op::Write { key, value } => {
                self.registers.insert(*key, *value);
            }
            Op::Delete { key } => {
                self.registers.remove(key);
            }
            Op::Add { key, delta } => *self.counters.entry(*key).or_default() += delta,
            _ => {}
        }
    }

    /// Whether a read is what this state gives.
    fn gives(&self, op: &Op) -> bool {
        match op {
            Op::ReadList { key, values } => self.list(*key) == values,
            Op::ReadLists { low, high, seen } => {
                let full = self.lists.range(low..=high);
                full.map(|(k, v)| (*k, v.clone())).eq(seen.iter().cloned())
            }
            Op::Read { key, value } => self.registers.get(key) == value.as_ref(),
            Op::ReadRange { low, high, seen } => {
                let rows = self.registers.range(low..=high);
                rows.map(|(k, v)| (*k, *v)).eq(seen.iter().copied())
            }
            Op::ReadCounter { key, value } => self.counters.get(key).unwrap_or(&0) == value,
            Op::Compare {
                key,
                bound,
                at_least,
            } => (self.counters.get(key).unwrap_or(&0) >= bound) == *at_least,
            _ => true,
        }
    }

    /// The answer of a read in this state.
    fn answer(&self, op: &Op) -> Op {
        match op.clone() {
            Op::ReadList { key, .. } => Op::ReadList {
                key,
                values: self.list(key).to_vec(),
            },
            Op::ReadLists { low, high, .. } => Op::ReadLists {
                low,
                high,
                seen: self
                    .lists
                    .range(low..=high)
                    .map(|(k, v)| (*k, v.clone()))
                    .collect(),
            },
            Op::Read { key, .. } => Op::Read {
                key,
                value: self.registers.get(&key).copied(),
            },
            Op::ReadRange { low, high, .. } => Op::ReadRange {
                low,
                high,
                seen: self
                    .registers
                    .range(low..=high)
                    .map(|(k, v)| (*k, *v))
                    .collect(),
            },
            Op::ReadCounter { key, .. } => Op::ReadCounter {
                key,
                value: self.counters.get(&key).copied().unwrap_or(0),
            },
            Op::Compare { key, bound, .. } => Op::Compare {
                key,
                bound,
                at_least: self.counters.get(&key).copied().unwrap_or(0) >= bound,
            },
            other => other,
        }
    }

    /// Runs the operations; whether all reads are what they should be.
    fn explains(&mut self, ops: &[Op]) -> bool {
        ops.iter().all(|op| {
            self.write(op);
            self.gives(op)
        })
    }
}

fn written_keys(txn: &Txn) -> Vec<u64> {
    txn.ops
        .iter()
        .filter_map(|op| match op {
            Op::Append { key, .. } | Op::Write { key, .. } | Op::Delete { key } => Some(*key),
            _ => None,
        })
        .collect()
}

/// Whether `basis` says that `a` comes before `b`.
fn precedes(a: &Txn, b: &Txn, basis: Basis) -> bool {
    let ended = a.outcome == Outcome::Committed && a.completed.is_some_and(|end| end < b.invoked);
    match basis {
        Basis::Values => false,
        Basis::Session => ended && a.process == b.process,
        Basis::RealTime => ended,
    }
}

/// Whether some serial order of the transactions that committed (and any of the unknown ones)
/// explains all reads.
fn serializable(history: &History, basis: Basis) -> bool {
    fn extend(txns: &[Txn], done: &mut Vec<bool>, state: &State, basis: Basis) -> bool {
        let open = |done: &[bool], txn: usize| !done[txn] && txns[txn].outcome != Outcome::Aborted;
        let must = |done: &[bool]| {
            (0..txns.len()).any(|t| !done[t] && txns[t].outcome == Outcome::Committed)
        };
        if !must(done) {
            return true;
        }
        for next in 0..txns.len() {
            if !open(done, next) {
                continue;
            }
            let too_early =
                (0..txns.len()).any(|t| open(done, t) && precedes(&txns[t], &txns[next], basis));
            let mut state = state.clone();
            if too_early || !state.explains(&txns[next].ops) {
                continue;
            }
            done[next] = true;
            if extend(txns, done, &state, basis) {
                return true;
            }
            done[next] = false;
        }
        false
    }
    let mut done = vec![false; history.txns.len()];
    extend(&history.txns, &mut done, &State::default(), basis)
}

/// Whether some placing of begins and commits explains all reads under snapshot isolation: reads
/// from the snapshot at the begin and from own writes, and of two that overlap not both write a
/// key. Counters add without conflict.
fn snapshot(history: &History, basis: Basis) -> bool {
    #[derive(Clone)]
    struct World<'h> {
        txns: &'h [Txn],
        /// 0: not begun, 1: running, 2: committed.
        stage: Vec<u8>,
        /// Keys that others committed while it ran.
        fresh: Vec<Vec<u64>>,
        state: State,
    }
    fn extend(world: &World<'_>, basis: Basis) -> bool {
        let txns = world.txns;
        let committed = |t: usize| txns[t].outcome == Outcome::Committed;
        if (0..txns.len()).all(|t| world.stage[t] == 2 || !committed(t)) {
            return true;
        }
        for txn in 0..txns.len() {
            if world.stage[txn] == 2 || txns[txn].outcome == Outcome::Aborted {
                continue;
            }
            let mut next = world.clone();
            next.stage[txn] += 1;
            if world.stage[txn] == 0 {
                let too_early = (0..txns.len())
                    .any(|t| world.stage[t] != 2 && precedes(&txns[t], &txns[txn], basis));
                let mut view = world.state.clone();
                if too_early || !view.explains(&txns[txn].ops) {
                    continue;
                }
            } else {
                let keys = written_keys(&txns[txn]);
                if keys.iter().any(|key| world.fresh[txn].contains(key)) {
                    continue;
                }
                for op in &txns[txn].ops {
                    next.state.write(op);
                }
                for other in 0..txns.len() {
                    if world.stage[other] == 1 && other != txn {
                        next.fresh[other].extend(&keys);
                    }
                }
            }
            if extend(&next, basis) {
                return true;
            }
        }
        false
    }
    let count = history.txns.len();
    let world = World {
        txns: &history.txns,
        stage: vec![0; count],
        fresh: vec![Vec::new(); count],
        state: State::default(),
    };
    extend(&world, basis)
}

/// Whether some interleaving of statements explains all reads, each from what is committed at its
/// moment and from own writes. Of two that are open not both have written a key, but for counters.
fn read_committed(history: &History, basis: Basis) -> bool {
    /// How many steps of each have been taken (the last is the commit), and what is committed.
    type World = (Vec<usize>, State);
    fn is_open(txns: &[Txn], taken: usize, txn: usize) -> bool {
        taken > 0 && taken <= txns[txn].ops.len()
    }
    fn step(txns: &[Txn], (stages, state): &World, txn: usize, basis: Basis) -> Option<World> {
        let ops = &txns[txn].ops;
        let (mut next, mut after) = (stages.clone(), state.clone());
        next[txn] += 1;
        if stages[txn] == ops.len() {
            ops.iter().for_each(|op| after.write(op));
            return Some((next, after));
        }
        let is_over = |other: usize| stages[other] > txns[other].ops.len();
        let too_early = stages[txn] == 0
            && (0..txns.len()).any(|t| !is_over(t) && precedes(&txns[t], &txns[txn], basis));
        let op = &ops[stages[txn]];
        let mut one = Txn::begin(0, 0);
        one.ops = vec![op.clone()];
        let keys = written_keys(&one);
        let locked = (0..txns.len()).any(|other| {
            let so_far = &txns[other].ops[..stages[other].min(txns[other].ops.len())];
            one.ops = so_far.to_vec();
            other != txn
                && is_open(txns, stages[other], other)
                && written_keys(&one).iter().any(|key| keys.contains(key))
        });
        ops[..=stages[txn]].iter().for_each(|op| after.write(op));
        let explained = after.gives(op);
        (!too_early && !locked && explained).then(|| (next, state.clone()))
    }
    fn extend(txns: &[Txn], world: World, basis: Basis, seen: &mut BTreeSet<World>) -> bool {
        let done = |t: usize| world.0[t] > txns[t].ops.len();
        if (0..txns.len()).all(|t| done(t) || txns[t].outcome != Outcome::Committed) {
            return true;
        }
        if !seen.insert(world.clone()) {
            return false;
        }
        (0..txns.len()).any(|txn| {
            let may = !done(txn) && txns[txn].outcome != Outcome::Aborted;
            let next = may.then(|| step(txns, &world, txn, basis)).flatten();
            next.is_some_and(|next| extend(txns, next, basis, seen))
        })
    }
    let world = (vec![0; history.txns.len()], State::default());
    extend(&history.txns, world, basis, &mut BTreeSet::new())
}

/// Which kinds of operations a history has.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Flavor {
    Lists,
    Registers,
    Counters,
}

/// How wrong the imagined database is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sloppiness {
    /// One transaction after the other.
    None,
    /// Snapshots at the begin; writes of all are installed at the commit, conflicts or not.
    Snapshot,
    /// Each operation sees and changes the one shared state, rolled back or not.
    Shared,
}

fn random_op(prng: &mut Prng, flavor: Flavor, keys: u64, value: &mut u64) -> Op {
    let key = prng.below(keys);
    let low = prng.below(keys);
    let high = low + prng.below(keys - low);
    *value += 1;
    match (flavor, prng.below(9)) {
        (Flavor::Lists, 0..4) => Op::Append { key, value: *value },
        (Flavor::Lists, 4..8) => Op::ReadList {
            key,
            values: Vec::new(),
        },
        (Flavor::Lists, _) => Op::ReadLists {
            low,
            high,
            seen: Vec::new(),
        },
        (Flavor::Registers, 0..4) => Op::Write { key, value: *value },
        (Flavor::Registers, 4) if keys == 3 => Op::Delete { key },
        (Flavor::Registers, 5) => Op::ReadRange {
            low,
            high,
            seen: Vec::new(),
        },
        (Flavor::Registers, _) => Op::Read { key, value: None },
        (Flavor::Counters, 0..4) => {
            let delta = 1 + prng.below(4) as i64;
            // One key has both signs.
            let negative = key == 1 && prng.below(2) == 0;
            Op::Add {
                key,
                delta: if negative { -delta } else { delta },
            }
        }
        (Flavor::Counters, 7..) => Op::Compare {
            key,
            bound: prng.between(-4, 8),
            at_least: true,
        },
        (Flavor::Counters, _) => Op::ReadCounter { key, value: 0 },
    }
}

/// Runs random transactions through an imagined database, one operation of a random one at a time.
fn random_history(prng: &mut Prng, flavor: Flavor, count: u64, final_read: bool) -> History {
    let keys = 1 + prng.below(3);
    let sloppiness = match prng.below(4) {
        0 => Sloppiness::None,
        1 | 2 => Sloppiness::Snapshot,
        _ => Sloppiness::Shared,
    };
    let mut value = 0;
    let mut shared = State::default();
    let mut history = History::new();
    let mut views: Vec<State> = Vec::new();
    let mut programs: Vec<Vec<Op>> = Vec::new();
    for _ in 0..count {
        let mut txn = Txn::begin(0, u64::MAX);
        let length = 1 + prng.below(3);
        txn.outcome = match prng.below(8) {
            0 => Outcome::Aborted,
            1 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let ops = (0..length).map(|_| random_op(prng, flavor, keys, &mut value));
        programs.push(ops.collect());
        history.push(txn);
        views.push(State::default());
    }
    let mut clock = 0;
    let mut processes = BTreeSet::new();
    let mut running: Vec<usize> = (0..programs.len()).collect();
    while !running.is_empty() {
        let chosen = match sloppiness {
            Sloppiness::None => 0,
            Sloppiness::Snapshot | Sloppiness::Shared => prng.below(running.len() as u64) as usize,
        };
        let txn = running[chosen];
        let place = history.txns[txn].ops.len();
        clock += 1;
        if place == 0 {
            history.txns[txn].invoked = clock;
            let free = |process: &u32| processes.insert(*process);
            history.txns[txn].process = (0..).find(free).expect("there is always one more");
            views[txn] = shared.clone();
        }
        let view = match sloppiness {
            Sloppiness::Shared => &mut shared,
            Sloppiness::None | Sloppiness::Snapshot => &mut views[txn],
        };
        let op = programs[txn][place].clone();
        view.write(&op);
        history.txns[txn].ops.push(view.answer(&op));
        if place + 1 == programs[txn].len() {
            running.remove(chosen);
            processes.remove(&history.txns[txn].process);
            clock += 1;
            history.txns[txn].completed = Some(clock);
            let lost = history.txns[txn].outcome == Outcome::Unknown && prng.below(2) == 0;
            let gone = history.txns[txn].outcome == Outcome::Aborted || lost;
            if sloppiness != Sloppiness::Shared && !gone {
                for op in &programs[txn] {
                    shared.write(op);
                }
            }
        }
    }
    if final_read {
        let reads = (0..keys).map(|key| {
            shared.answer(&Op::ReadList {
                key,
                values: Vec::new(),
            })
        });
        let mut txn = Txn::begin(9, clock + 1);
        txn.ops = reads.collect();
        txn.end(Outcome::Committed, clock + 2);
        history.push(txn);
    }
    if prng.below(4) == 0 {
        corrupt(prng, &mut history);
    }
    history
}

/// Changes one thing that some read saw.
fn corrupt(prng: &mut Prng, history: &mut History) {
    let txn = prng.below(history.txns.len() as u64) as usize;
    let ops = &mut history.txns[txn].ops;
    let op = prng.below(ops.len() as u64) as usize;
    match &mut ops[op] {
        Op::ReadList { values, .. } if values.len() > 1 && prng.below(2) == 0 => {
            let last = values.len() - 1;
            values.swap(last, last - 1);
        }
        Op::ReadList { values, .. } => {
            values.pop();
        }
        Op::Read { value, .. } => *value = Some(1 + prng.below(6)),
        Op::ReadCounter { value, .. } => *value += prng.between(-2, 2),
        Op::Compare { at_least, .. } => *at_least = !*at_least,
        _ => {}
    }
}

/// Tries every execution.
type Search = fn(&History, Basis) -> bool;

/// The last is not judged completely: who overwrote what is not all that its definition asks for.
const JUDGED: [(Level, Search); 7] = [
    (Level::Serializable, serializable),
    (Level::StrongSessionSerializable, serializable),
    (Level::StrictSerializable, serializable),
    (Level::SnapshotIsolation, snapshot),
    (Level::StrongSessionSnapshotIsolation, snapshot),
    (Level::StrongSnapshotIsolation, snapshot),
    (Level::StrongReadCommitted, read_committed),
];

/// How many times more than usual to try: `CHECK_EFFORT=50 cargo test --release -p check brute`.
#[expect(clippy::disallowed_methods, reason = "a switch of the environment")]
fn effort() -> u64 {
    let effort = std::env::var("CHECK_EFFORT").ok();
    effort.and_then(|effort| effort.parse().ok()).unwrap_or(1)
}

/// Compares the checker with the search; returns how many histories were fine and how many were not
/// at each level.
fn compare(seed: u64, flavor: Flavor, rounds: u64, complete: bool) -> [[u64; 2]; 7] {
    let mut prng = Prng::new(seed);
    let mut counts = [[0; 2]; 7];
    for round in 0..rounds * effort() {
        let count = 2 + prng.below(4);
        let history = random_history(&mut prng, flavor, count, complete);
        for (place, (level, search)) in JUDGED.into_iter().enumerate() {
            let fine = search(&history, level.basis());
            let complete = complete && level != Level::StrongReadCommitted;
            let verdict = judge(&history, level);
            let passed = verdict.judgement == Judgement::Pass;
            counts[place][usize::from(!passed)] += 1;
            assert!(
                passed || !fine,
                "round {round}: {level} explains it, the checker does not: {verdict}\n{history:#?}"
            );
            assert!(
                !complete || fine || !passed,
                "round {round}: nothing explains it at {level}, the checker passes\n{history:#?}"
            );
        }
    }
    counts
}

#[test]
fn lists_that_were_read_at_the_end_are_judged_exactly() {
    let counts = compare(1, Flavor::Lists, 400, true);
    for [passed, failed] in counts {
        assert!(passed > 60 && failed > 60, "{counts:?}");
    }
}

#[test]
fn lists_that_were_not_read_at_the_end_give_no_false_alarm() {
    let counts = compare(2, Flavor::Lists, 400, false);
    for [passed, failed] in counts {
        assert!(passed > 60 && failed > 30, "{counts:?}");
    }
}

#[test]
fn registers_give_no_false_alarm() {
    let counts = compare(3, Flavor::Registers, 500, false);
    for [passed, failed] in counts {
        assert!(passed > 60 && failed > 40, "{counts:?}");
    }
}

#[test]
fn counters_give_no_false_alarm() {
    let counts = compare(4, Flavor::Counters, 500, false);
    for [passed, failed] in counts {
        assert!(passed > 60 && failed > 40, "{counts:?}");
    }
}

#[test]
fn the_search_itself_knows_good_from_bad() {
    // Write skew: not serializable, and fine under snapshot isolation.
    let skew = support::overlapping(&[
        &[support::list(1, &[]), support::append(2, 1)],
        &[support::list(2, &[]), support::append(1, 1)],
    ]);
    assert!(!serializable(&skew, Basis::Values) && snapshot(&skew, Basis::RealTime));
    // Lost update: neither.
    let lost = support::overlapping(&[
        &[support::list(1, &[]), support::append(1, 1)],
        &[support::list(1, &[]), support::append(1, 2)],
    ]);
    assert!(!serializable(&lost, Basis::Values) && !snapshot(&lost, Basis::Values));
}
