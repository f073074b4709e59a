//! Random transactions over several nodes with loss, repetition, reordering and crashes. In the end
//! the committed ones, run one after the other in the order of their timestamps, must have seen and
//! left exactly what was seen and left; every row has one owner.

use super::local::{add, bump, get};
use super::programs::{Test, program, row};
use super::world::{Flight, TABLE, World, key};
use crate::{Moves, Settings};
use base::Planted;
use base::{Datum, Key, KeyRange, NodeId, Position, Prng, ShardId, Ts, TxnId};
use journal::Record;
use std::collections::BTreeMap;
use txn::{
    LockMode, Op, OpError, OpId, OpReply, OpResult, Outcome, Protocol, Read, ScanOp, Slots,
    Snapshot,
};

const NAMES: [&str; 6] = ["a0", "b0", "a1", "b1", "a2", "b2"];
/// Rows that come and go.
const FLAGS: [&str; 4] = ["x0", "y0", "x1", "x2"];
const INITIAL: i64 = 100;

#[derive(Clone, Debug)]
enum Act {
    Add {
        name: &'static str,
        delta: i64,
    },
    /// A formula: blind, so it goes to the row if it is alone.
    Bump {
        name: &'static str,
        delta: i64,
    },
    Get {
        name: &'static str,
        read: Read,
    },
    Insert {
        name: &'static str,
        value: i64,
    },
    Remove {
        name: &'static str,
    },
    Sum {
        at: ShardId,
        read: Read,
    },
}

/// What an operation told: a value, or whether it found its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Value(i64),
    Absent,
    Exists,
    Done,
}

#[derive(Clone, Debug)]
struct Step {
    act: Act,
    told: Option<Told>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    Commit,
    Ride,
    Abort,
}

#[derive(Debug)]
struct Client {
    txn: TxnId,
    steps: Vec<Step>,
    next: usize,
    parallel: bool,
    ending: Ending,
    pending: Vec<(OpId, Option<usize>)>,
    wait: Position,
    outcome: Option<Outcome>,
    /// Its answer waits for the disk.
    held: bool,
    /// Its node is gone, nobody will answer.
    lost: bool,
}

struct Run {
    seed: u64,
    prng: Prng,
    world: World,
    clients: Vec<Client>,
    down: BTreeMap<NodeId, u32>,
    faults: bool,
    crashes: bool,
    /// Half of the changes are blind.
    bumps: bool,
    retries: Vec<(ShardId, Ts)>,
}

impl Run {
    fn new(seed: u64, printed: Option<Planted>) -> Run {
        let mut prng = Prng::new(seed);
        let nodes = 1 + prng.below(4) as u16;
        let shards = 1 + prng.below(if nodes == 1 { 3 } else { 2 }) as u16;
        let faults = prng.below(3) > 0;
        let crashes = prng.below(2) > 0;
        let mut world = World::new(nodes, shards);
        if let Some(rule) = printed {
            world.print(rule);
        }
        for name in NAMES {
            world.load(key(name), INITIAL);
        }
        let share_after = prng.below(3) as u32;
        let shipping = match printed {
            Some(Planted::LeapFormulaLost | Planted::LeapFormulaTwice) => true,
            Some(_) => false,
            None => seed.is_multiple_of(2),
        };
        let contended_from = if shipping { 0 } else { 3 };
        world.settings(Settings {
            share_after,
            contended_from,
            ..Settings::default()
        });
        Run {
            seed,
            prng,
            world,
            clients: Vec::new(),
            down: BTreeMap::new(),
            faults,
            crashes,
            bumps: contended_from == 0,
            retries: Vec::new(),
        }
    }

    fn pick_shard(&mut self) -> ShardId {
        let at = self.prng.below(self.world.homes.len() as u64) as usize;
        self.world.homes[at]
    }

    fn start_client(&mut self) {
        let again = if self.retries.is_empty() || self.prng.below(2) == 0 {
            None
        } else {
            let at = self.prng.below(self.retries.len() as u64) as usize;
            Some(self.retries.remove(at))
        };
        let coordinator = again.map_or_else(|| self.pick_shard(), |(shard, _)| shard);
        if !self.world.nodes[&coordinator.node()].up {
            return;
        }
        let txn = self.world.begin_as(coordinator, again.map(|(_, ts)| ts));
        let mut steps = Vec::new();
        if self.prng.below(6) == 0 {
            let ts = self.world.call(coordinator, |_, cx| cx.clock.tick(cx.now));
            let read = Read::Snapshot(Snapshot::exactly(ts));
            for at in self.world.homes.clone() {
                let told = None;
                steps.push(Step {
                    act: Act::Sum { at, read },
                    told,
                });
            }
            let name = NAMES[self.prng.below(6) as usize];
            steps.push(Step {
                act: Act::Get { name, read },
                told: None,
            });
        } else if self.prng.below(4) == 0 {
            let name = NAMES[self.prng.below(3) as usize];
            let delta = self.prng.between(-9, 9);
            let act = Act::Bump { name, delta };
            steps.push(Step { act, told: None });
        } else {
            for _ in 0..1 + self.prng.below(4) {
                let name = NAMES[self.prng.below(6) as usize];
                let flag = FLAGS[self.prng.below(4) as usize];
                let act = match self.prng.below(13) {
                    12 => Act::Bump {
                        name,
                        delta: self.prng.between(-9, 9),
                    },
                    0..=4 if self.bumps && self.prng.below(3) > 0 => Act::Bump {
                        name,
                        delta: self.prng.between(-9, 9),
                    },
                    0..=4 => Act::Add {
                        name,
                        delta: self.prng.between(-9, 9),
                    },
                    5..=6 => Act::Get {
                        name,
                        read: Read::Lock(LockMode::Shared),
                    },
                    7 => Act::Sum {
                        at: self.pick_shard(),
                        read: Read::Lock(if self.prng.below(3) == 0 {
                            LockMode::Exclusive
                        } else {
                            LockMode::Shared
                        }),
                    },
                    8..=9 => Act::Insert {
                        name: flag,
                        value: self.prng.between(1, 9),
                    },
                    10 => Act::Get {
                        name: flag,
                        read: Read::Lock(LockMode::Shared),
                    },
                    _ => Act::Remove { name: flag },
                };
                steps.push(Step { act, told: None });
            }
        }
        let ending = match self.prng.below(10) {
            0 => Ending::Abort,
            1..=4 => Ending::Ride,
            _ => Ending::Commit,
        };
        // Operations side by side have no order, so they must not meet.
        let mut names: Vec<&str> = steps
            .iter()
            .map(|step| match &step.act {
                Act::Add { name, .. }
                | Act::Bump { name, .. }
                | Act::Get { name, .. }
                | Act::Insert { name, .. }
                | Act::Remove { name } => name,
                Act::Sum { .. } => "",
            })
            .collect();
        let sums = names.contains(&"");
        names.sort_unstable();
        let apart = !sums && names.windows(2).all(|pair| pair[0] != pair[1]);
        self.clients.push(Client {
            txn,
            steps,
            next: 0,
            parallel: apart && self.prng.below(2) == 0,
            ending,
            pending: Vec::new(),
            wait: Position(0),
            outcome: None,
            held: false,
            lost: false,
        });
    }

    fn active(&self) -> Vec<usize> {
        let active = |client: &&Client| client.outcome.is_none() && !client.lost;
        let clients = self.clients.iter().enumerate();
        clients.filter(|(_, c)| active(c)).map(|(i, _)| i).collect()
    }

    fn act(&mut self, at: usize) {
        self.collect();
        let client = &mut self.clients[at];
        if client.outcome.is_some() || client.lost {
            return;
        }
        if self.prng.below(60) == 0 {
            self.cancel(at);
            return;
        }
        let beside = client.parallel && client.next < client.steps.len();
        if !client.pending.is_empty() && !beside {
            return;
        }
        let txn = client.txn;
        if client.next < client.steps.len() {
            let number = client.next;
            client.next += 1;
            let step = client.steps[number].clone();
            let idle = client.pending.is_empty();
            let last = client.ending == Ending::Ride && client.next == client.steps.len() && idle;
            let id = match &step.act {
                Act::Sum { at, read } => self.world.submit_to(txn, *at, sum_op(*read), last),
                act => self.world.submit(txn, op_of(act), last),
            };
            self.clients[at].pending.push((id, Some(number)));
        } else if client.ending == Ending::Abort {
            client.outcome = Some(Outcome::Aborted(txn::AbortReason::Requested));
            self.world
                .call(txn.shard, |protocol, cx| protocol.abort(cx, txn));
            self.world
                .call(txn.shard, |protocol, _| protocol.forget(txn));
        } else {
            let id = self.world.commit(txn);
            self.clients[at].pending.push((id, None));
        }
        self.collect();
    }

    /// ROLLBACK or cancel at any moment, also while the commit is under way.
    fn cancel(&mut self, at: usize) {
        let txn = self.clients[at].txn;
        self.world
            .call(txn.shard, |protocol, cx| protocol.abort(cx, txn));
        self.collect();
        let client = &mut self.clients[at];
        if client.outcome.is_none() {
            assert!(client.pending.is_empty(), "what is outstanding is answered");
            client.outcome = Some(Outcome::Aborted(txn::AbortReason::Requested));
            self.world
                .call(txn.shard, |protocol, _| protocol.forget(txn));
        }
    }

    /// Hands answers to their clients.
    fn collect(&mut self) {
        for (txn, id, reply) in core::mem::take(&mut self.world.answers) {
            if let Some(at) = self.clients.iter().position(|client| client.txn == txn) {
                self.answer(at, id, reply);
            }
        }
        for client in &mut self.clients {
            if client.held && !client.lost {
                let disk = self.world.nodes[&client.txn.shard.node()].disk.borrow();
                client.held = client.wait > disk.durable;
            }
        }
    }

    fn answer(&mut self, at: usize, id: OpId, reply: OpReply) {
        let client = &mut self.clients[at];
        let Some(found) = client.pending.iter().position(|(op, _)| *op == id) else {
            return;
        };
        let (_, step) = client.pending.remove(found);
        client.wait = client.wait.max(reply.wait);
        let mut outcome = reply.outcome;
        match reply.result {
            Ok(result) => {
                // Nothing is told by an outcome that is not known.
                if let Some(step) = step.filter(|_| outcome != Some(Outcome::Unknown)) {
                    client.steps[step].told = Some(told(&result));
                }
            }
            Err(OpError::Aborted(reason)) => outcome = Some(Outcome::Aborted(reason)),
            Err(error @ (OpError::Sql(_) | OpError::Raise(_))) => panic!("{error:?}"),
        }
        if let (None, Some(outcome)) = (&client.outcome, outcome) {
            client.held = matches!(outcome, Outcome::Committed { .. });
            if let Outcome::Aborted(_) = &outcome {
                // It comes again, with its first timestamp.
                let ts = self.world.now;
                self.retries.push((client.txn.shard, Ts::from_time(ts)));
            }
            client.outcome = Some(outcome);
            client.pending.clear();
            let txn = client.txn;
            self.world
                .call(txn.shard, |protocol, _| protocol.forget(txn));
        }
    }

    fn deliver_some(&mut self) {
        if self.world.flights.is_empty() {
            return;
        }
        let mut at = self.prng.below(self.world.flights.len() as u64) as usize;
        let flight = &self.world.flights[at];
        if !flight.is_remote() {
            // Queues inside a node keep their order.
            let (from, to) = (flight.from, flight.to);
            let same = |f: &Flight| (f.from, f.to) == (from, to);
            at = self
                .world
                .flights
                .iter()
                .position(same)
                .expect("at least this one");
        } else if !self.world.may_leave(flight) {
            return;
        }
        let flight = self.world.flights.remove(at);
        if flight.is_remote() && self.faults {
            match self.prng.below(12) {
                0 => return,
                1 => self.world.flights.push(flight.clone()),
                _ => {}
            }
        }
        self.world.deliver(flight);
    }

    fn crash_some(&mut self) {
        // Sometimes all of them at once.
        let all = self.prng.below(6) == 0;
        let one = NodeId(1 + self.prng.below(self.world.nodes.len() as u64) as u16);
        let nodes: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        for node in nodes.into_iter().filter(|node| all || *node == one) {
            if self.down.contains_key(&node) {
                continue;
            }
            self.collect();
            let kept = self.prng.below(3) as usize;
            self.world.crash(node, kept);
            self.down.insert(node, 5 + self.prng.below(60) as u32);
            for client in &mut self.clients {
                let open = client.outcome.is_none() || client.held;
                if client.txn.shard.node() == node && open {
                    client.lost = true;
                    client.held = false;
                    client.outcome = None;
                }
            }
        }
    }

    fn revive(&mut self, all: bool) {
        for left in self.down.values_mut() {
            *left = left.saturating_sub(1);
        }
        let due = self.down.iter().filter(|(_, left)| all || **left == 0);
        let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
        for node in due {
            self.down.remove(&node);
            self.world.restart(node);
            if all || self.prng.below(2) == 0 {
                self.world.announce(node);
            }
        }
    }

    fn chaos(&mut self, steps: u32) {
        for _ in 0..steps {
            self.world.now = self.world.now.after(10);
            self.revive(false);
            match self.prng.below(100) {
                0..=24 => {
                    if self.active().len() < 6 {
                        self.start_client();
                    }
                    let active = self.active();
                    if !active.is_empty() {
                        let at = active[self.prng.below(active.len() as u64) as usize];
                        self.act(at);
                    }
                }
                25..=77 => self.deliver_some(),
                78..=88 => {
                    let node = NodeId(1 + self.prng.below(self.world.nodes.len() as u64) as u16);
                    if self.world.nodes[&node].up {
                        self.world.flush(node);
                    }
                }
                89..=92 => {
                    let micros = self.prng.below(300_000);
                    self.world.tick(micros);
                }
                93..=94 => {
                    let shard = self.pick_shard();
                    if self.world.nodes[&shard.node()].up {
                        self.world.checkpoint(shard);
                    }
                }
                95..=96 => {
                    let micros = self.prng.below(4_000_000);
                    self.world.tick(micros);
                }
                97 if self.crashes => self.crash_some(),
                _ => self.world.tick(100),
            }
            self.collect();
            self.check_owners();
        }
    }

    /// Never two owners.
    fn check_owners(&self) {
        for name in NAMES.iter().chain(&FLAGS) {
            let owners = self.world.owners(&key(name));
            let seed = self.seed;
            assert!(
                owners.len() <= 1,
                "seed {seed}: {name}: {owners:?}\n{}",
                self.states()
            );
        }
    }

    /// Repairs everything and lets all clients finish.
    fn heal(&mut self) {
        self.faults = false;
        self.revive(true);
        for round in 0..400 {
            self.world.settle();
            self.collect();
            for at in self.active() {
                self.act(at);
            }
            self.world.settle();
            self.collect();
            if self.active().is_empty() && self.world.is_idle() {
                return;
            }
            self.world.tick(if round < 50 { 1_000 } else { 1_000_000 });
        }
        let clients: Vec<&Client> = self.active().iter().map(|at| &self.clients[*at]).collect();
        panic!(
            "seed {}: somebody is stuck\n{}{clients:?}",
            self.seed,
            self.states()
        );
    }

    fn states(&self) -> String {
        let shards = self.world.shards.iter();
        shards
            .map(|(id, shard)| format!("{id}:\n{}", shard.protocol))
            .collect()
    }

    /// Commit timestamps of all transactions whose record survived.
    fn recorded(&self) -> BTreeMap<TxnId, Ts> {
        let mut recorded = BTreeMap::new();
        for node in self.world.nodes.values() {
            for (_, payload) in &node.disk.borrow().records {
                if let Record::Commit { txn, commit_ts, .. } =
                    Record::decode(payload).expect("own records decode")
                {
                    // What was shipped to owners has records there.
                    let before = recorded.insert(txn, commit_ts);
                    assert!(
                        before.is_none_or(|ts| ts == commit_ts),
                        "{txn} commits once"
                    );
                }
            }
        }
        recorded
    }

    fn check(&self) {
        let recorded = self.recorded();
        let mut committed: Vec<(Ts, bool, &Client)> = Vec::new();
        for client in &self.clients {
            let record = recorded.get(&client.txn).copied();
            let who = || format!("seed {}: {client:?}", self.seed);
            match (&client.outcome, record) {
                (Some(Outcome::Committed { commit_ts }), record) => {
                    assert!(record.is_none_or(|ts| ts == *commit_ts), "{}", who());
                    assert!(record.is_some() || !client.wrote(), "{}", who());
                    committed.push((*commit_ts, client.wrote(), client));
                }
                (Some(Outcome::Aborted(_)), Some(_)) => panic!("aborted, {}", who()),
                (Some(Outcome::Aborted(_)) | None, None) => {}
                (None, Some(commit_ts)) => committed.push((commit_ts, true, client)),
                // In the hands of another shard, which has committed it or not.
                (Some(Outcome::Unknown), Some(commit_ts)) => {
                    assert!(client.entrusts(), "{}", who());
                    committed.push((commit_ts, true, client));
                }
                (Some(Outcome::Unknown), None) => assert!(client.entrusts(), "{}", who()),
            }
        }
        committed.sort_by_key(|(ts, writes, _)| (*ts, !*writes));
        self.replay(&committed);
    }

    #[expect(clippy::print_stdout, reason = "SEED=n asks for it")]
    fn tell(&self, committed: &[(Ts, bool, &Client)]) {
        committed
            .iter()
            .for_each(|(ts, _, client)| println!("{ts} {client:?}"));
        self.world
            .history
            .iter()
            .for_each(|event| println!("{event:?}"));
    }

    fn replay(&self, committed: &[(Ts, bool, &Client)]) {
        let mut rows: BTreeMap<Key, i64> = BTreeMap::new();
        for name in NAMES {
            rows.insert(key(name), INITIAL);
        }
        if self.world.traced {
            self.tell(committed);
        }
        let mut versions = vec![(Ts::ZERO, rows.clone())];
        for (ts, _, client) in committed {
            for step in &client.steps {
                let at = |snapshot: Ts| {
                    let seen = versions.iter().rev().find(|(ts, _)| *ts <= snapshot);
                    &seen.expect("the first is at zero").1
                };
                let expected = match &step.act {
                    Act::Add { name, delta } => {
                        let value = rows.get_mut(&key(name)).expect("an account");
                        *value += delta;
                        Told::Value(*value)
                    }
                    Act::Bump { name, delta } => {
                        *rows.get_mut(&key(name)).expect("an account") += delta;
                        Told::Done
                    }
                    Act::Get { name, read } => {
                        let rows = match read {
                            Read::Snapshot(snapshot) => at(snapshot.at),
                            Read::Lock(_) | Read::LockRows { .. } => &rows,
                        };
                        rows.get(&key(name))
                            .map_or(Told::Absent, |value| Told::Value(*value))
                    }
                    Act::Insert { name, value } => match rows.get(&key(name)) {
                        Some(_) => Told::Exists,
                        None => {
                            rows.insert(key(name), *value);
                            Told::Done
                        }
                    },
                    Act::Remove { name } => match rows.remove(&key(name)) {
                        Some(value) => Told::Value(value),
                        None => Told::Absent,
                    },
                    Act::Sum { at: home, read } => {
                        let rows = match read {
                            Read::Snapshot(snapshot) => at(snapshot.at),
                            Read::Lock(_) | Read::LockRows { .. } => &rows,
                        };
                        let mine = rows.iter().filter(|(key, _)| self.world.home(key) == *home);
                        Told::Value(mine.map(|(_, value)| value).sum())
                    }
                };
                if let Some(told) = step.told {
                    let same = match (told, expected) {
                        // The row that goes is not returned.
                        (Told::Done, Told::Value(_)) => matches!(step.act, Act::Remove { .. }),
                        (told, expected) => told == expected,
                    };
                    let (seed, txn) = (self.seed, client.txn);
                    assert!(
                        same,
                        "seed {seed}: {step:?} of {txn} at {ts}, not {expected:?}"
                    );
                }
            }
            versions.push((*ts, rows.clone()));
        }
        for name in NAMES.iter().chain(&FLAGS) {
            let owners = self.world.owners(&key(name));
            assert_eq!(
                owners.len(),
                1,
                "seed {}: {name}\n{}",
                self.seed,
                self.states()
            );
            let value = self.world.value(&key(name));
            let expected = rows.get(&key(name)).copied();
            assert_eq!(value, expected, "seed {}: {name}", self.seed);
        }
    }
}

impl Client {
    fn wrote(&self) -> bool {
        self.steps.iter().any(|step| match (&step.act, step.told) {
            (Act::Add { .. } | Act::Bump { .. }, _) => true,
            (Act::Insert { .. }, told) => told == Some(Told::Done),
            (Act::Remove { .. }, told) => told == Some(Told::Done),
            (Act::Get { .. } | Act::Sum { .. }, _) => false,
        }) && !self.undid()
    }

    /// It may have gone to its row.
    fn entrusts(&self) -> bool {
        self.steps.len() == 1
    }

    /// It removed what it had inserted: perhaps nothing is left to record.
    fn undid(&self) -> bool {
        let adds = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Add { .. } | Act::Bump { .. }));
        let inserts = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Insert { .. }));
        let removes = self
            .steps
            .iter()
            .any(|step| matches!(step.act, Act::Remove { .. }));
        !adds && inserts && removes
    }
}

fn op_of(act: &Act) -> Op {
    match act {
        Act::Add { name, delta } => add(name, *delta),
        Act::Bump { name, delta } => bump(name, *delta),
        Act::Get { name, read } => match get(name) {
            Op::Get { key, program, .. } => Op::Get {
                key,
                read: *read,
                program,
            },
            other => other,
        },
        Act::Insert { name, value } => Op::Insert {
            key: key(name),
            row: row(*value).into(),
        },
        Act::Remove { name } => Op::Modify {
            key: key(name),
            program: program(Test::Remove),
        },
        Act::Sum { read, .. } => sum_op(*read),
    }
}

pub(crate) fn sum_op(read: Read) -> Op {
    Op::Scan(ScanOp {
        index: TABLE,
        slots: Slots::All,
        range: KeyRange::all(),
        reverse: false,
        read,
        program: program(Test::Sum),
        row_limit: u64::MAX,
        batch_rows: u32::MAX,
        after: None,
    })
}

fn told(result: &OpResult) -> Told {
    let batch = match result {
        OpResult::Rows { batch, .. } => batch,
        OpResult::Modified {
            returning,
            found,
            written,
        } => {
            if !found {
                return Told::Absent;
            }
            if *written && returning.rows == 0 {
                return Told::Done;
            }
            returning
        }
        OpResult::Done => return Told::Done,
        OpResult::Clock(_) => panic!("nobody asks for clocks"),
        OpResult::Exists | OpResult::SomeExist(_) => return Told::Exists,
    };
    match batch.datums.first() {
        Some(Datum::Int(value)) => Told::Value(*value),
        _ => Told::Absent,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What a run got done.
#[derive(Default)]
struct Done {
    committed: usize,
    moved: u64,
    copied: u64,
    entrusted: u64,
    shipped: u64,
    checkpoints: u64,
}

fn run(seed: u64, printed: Option<Planted>) -> Done {
    let mut run = Run::new(seed, printed);
    run.world.traced = number("SEED").is_some();
    let steps = 300 + run.prng.below(900) as u32;
    run.chaos(steps);
    run.heal();
    run.check_owners();
    run.check();
    let committed = |c: &&Client| matches!(c.outcome, Some(Outcome::Committed { .. }));
    let sum = |of: fn(&Moves) -> u64| {
        let shards = run.world.shards.values();
        shards.map(|shard| of(&shard.protocol.moves())).sum()
    };
    Done {
        committed: run.clients.iter().filter(committed).count(),
        moved: sum(|moves| moves.moved_in),
        copied: sum(|moves| moves.copied),
        entrusted: sum(|moves| moves.entrusted),
        shipped: sum(|moves| moves.shipped),
        checkpoints: run.world.checkpoints,
    }
}

#[test]
fn random_transactions_are_serializable_under_faults() {
    // SEED=n runs one seed and prints what happened; SEEDS=n runs that many, from FROM=n on.
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("FROM").unwrap_or(0);
            from..from + number("SEEDS").unwrap_or(400)
        }
    };
    let all = seeds.end - seeds.start;
    let mut done = Done::default();
    for seed in seeds {
        let more = run(seed, None);
        done.committed += more.committed;
        done.moved += more.moved;
        done.copied += more.copied;
        done.entrusted += more.entrusted;
        done.shipped += more.shipped;
        done.checkpoints += more.checkpoints;
    }
    assert!(done.committed as u64 >= all, "most runs get something done");
    assert!(
        all < 100 || (done.moved > all && done.checkpoints > all),
        "rows move"
    );
    assert!(
        all < 100 || (done.copied > all / 4 && done.entrusted > all / 2 && done.shipped > all),
        "{} copies, {} entrusted, {} shipped",
        done.copied,
        done.entrusted,
        done.shipped
    );
}

/// Random runs notice the printed rules too: those that break within few seeds.
#[test]
fn runs_by_the_printed_rules_fail() {
    for rule in [
        Planted::LeapDuplicateAccepted,
        Planted::LeapBackupByTimeout,
        Planted::LeapHomeServesAtOnce,
        Planted::LeapOwnerServesAtOnce,
        Planted::LeapAbsentNotOwned,
        Planted::LeapGapsNotLocked,
        Planted::LeapArrivalNotLogged,
        Planted::LeapVersionNotDurable,
        Planted::LeapFormulaLost,
        Planted::LeapFormulaTwice,
    ] {
        let broken = |seed| {
            let outcome = std::panic::catch_unwind(|| run(seed, Some(rule)).committed);
            outcome.is_err()
        };
        assert!((0..300).any(broken), "the runs do not see {rule:?}");
    }
}
