//! One row that all nodes change, over links of 1 ms: the commits and the tries of each client.

use super::local::{add, bump, shard};
use super::world::{Flight, World, key, options};
use crate::Settings;
use base::{ShardId, Time, Ts, TxnId};
use std::collections::VecDeque;
use txn::contract::ATTEMPTS_UNTIL_URGENT;
use txn::{MovingRows, Op, OpId, Outcome, Protocol, Submitted, TxnOptions};

const LINK_US: u64 = 1_000;
const STEP_US: u64 = 100;
/// Microseconds between two flushes of a disk.
const FLUSH_US: u64 = 300;

struct Client {
    at: ShardId,
    first: Ts,
    tries: u32,
    running: Option<(TxnId, OpId)>,
    resumes: Time,
}

/// The result of a run.
#[derive(Debug)]
struct Score {
    committed: u64,
    moves: u64,
    /// Tries of the transaction that needed most.
    most_tries: u32,
    tries: u64,
    /// Commits of the client with the fewest.
    fewest: u64,
}

struct Hot {
    world: World,
    queue: VecDeque<(Time, Flight)>,
    clients: Vec<Client>,
    commits: Vec<u64>,
    counter: u64,
    score: Score,
}

/// Clients on `nodes` change the row at once, again and again, for `micros` microseconds.
fn run(settings: Settings, nodes: &[u16], per_node: usize, micros: u64, op: fn() -> Op) -> Score {
    let mut world = World::new(4, 1);
    world.load(key("a0"), 0);
    world.settings(settings);
    let start = world.now;
    let clients: Vec<Client> = nodes
        .iter()
        .flat_map(|node| core::iter::repeat_n(shard(*node), per_node))
        .map(|at| Client {
            at,
            first: Ts::ZERO,
            tries: 0,
            running: None,
            resumes: start,
        })
        .collect();
    let mut hot = Hot {
        world,
        queue: VecDeque::new(),
        commits: vec![0; clients.len()],
        clients,
        counter: 1_000_000,
        score: Score {
            committed: 0,
            moves: 0,
            most_tries: 0,
            tries: 0,
            fewest: 0,
        },
    };
    while hot.world.now.since(start) < micros {
        hot.step(op);
    }
    hot.score.fewest = hot.commits.iter().copied().min().unwrap_or(0);
    let shards = hot.world.shards.values();
    hot.score.moves = shards.map(|s| s.protocol.moves().moved_in).sum();
    hot.score
}

impl Hot {
    fn step(&mut self, op: fn() -> Op) {
        self.world.now = self.world.now.after(STEP_US);
        let now = self.world.now;
        while self.queue.front().is_some_and(|(due, _)| *due <= now) {
            let (_, flight) = self.queue.pop_front().expect("just seen");
            self.world.deliver(flight);
        }
        for id in self.world.placement.shards().to_vec() {
            let deadline = self.world.shards[&id].protocol.deadline();
            if deadline.is_some_and(|at| at <= now) {
                self.world.call(id, |protocol, cx| protocol.on_tick(cx));
            }
        }
        if now.0.is_multiple_of(FLUSH_US) {
            self.world.flush_all();
        }
        self.collect();
        for at in 0..self.clients.len() {
            if self.clients[at].running.is_none() && self.clients[at].resumes <= now {
                self.start(at, op());
            }
        }
        self.collect();
        for flight in core::mem::take(&mut self.world.flights) {
            if self.world.may_leave(&flight) {
                self.queue.push_back((now.after(LINK_US), flight));
            } else {
                self.world.flights.push(flight);
            }
        }
    }

    fn start(&mut self, at: usize, op: Op) {
        self.counter += 1;
        let client = &mut self.clients[at];
        let txn = TxnId {
            shard: client.at,
            incarnation: 1,
            counter: self.counter,
        };
        client.tries += 1;
        self.score.tries += 1;
        self.score.most_tries = self.score.most_tries.max(client.tries);
        let (first, tries) = (client.first, client.tries);
        let id = OpId(self.counter);
        let (submitted, ts) = self.world.call(txn.shard, |protocol, cx| {
            let ts = if tries > 1 {
                first
            } else {
                cx.clock.tick(cx.now)
            };
            let chosen = TxnOptions {
                urgent: tries > ATTEMPTS_UNTIL_URGENT,
                ..options(ts)
            };
            protocol.begin(cx, txn, chosen);
            (
                protocol.submit(
                    cx,
                    txn::Submission {
                        txn,
                        id,
                        to: shard(1),
                        planned: 1,
                        op,
                        last: true,
                    },
                ),
                ts,
            )
        });
        self.clients[at].first = ts;
        self.clients[at].running = Some((txn, id));
        if let Submitted::Ready(reply) = submitted {
            self.world.answers.push((txn, id, reply));
        }
    }

    fn collect(&mut self) {
        let now = self.world.now;
        for (txn, id, reply) in core::mem::take(&mut self.world.answers) {
            let disk = self.world.nodes[&txn.shard.node()].disk.clone();
            if reply.wait > disk.borrow().durable {
                self.world.answers.push((txn, id, reply));
                continue;
            }
            let running = Some((txn, id));
            let at = self
                .clients
                .iter()
                .position(|client| client.running == running);
            let at = at.expect("an answer belongs to a client");
            let client = &mut self.clients[at];
            client.running = None;
            match reply.outcome {
                Some(Outcome::Committed { .. }) => {
                    client.tries = 0;
                    client.resumes = now;
                    self.commits[at] += 1;
                    self.score.committed += 1;
                }
                Some(Outcome::Aborted(_)) => client.resumes = now.after(500),
                outcome => panic!("{outcome:?}"),
            }
            self.world
                .call(txn.shard, |protocol, _| protocol.forget(txn));
        }
    }
}

fn change() -> Op {
    add("a0", 1)
}

fn blind() -> Op {
    bump("a0", 1)
}

/// As in the paper: rows move, and stay no longer than they are locked.
fn moves_alone() -> Settings {
    Settings {
        entrusts: false,
        ..Settings::default()
    }
}

const EVERYBODY: [u16; 4] = [1, 2, 3, 4];

#[test]
fn blind_changes_of_one_row_go_at_the_pace_of_its_owner() {
    let moved = run(moves_alone(), &EVERYBODY, 4, 300_000, blind);
    let sent = run(Settings::default(), &EVERYBODY, 4, 300_000, blind);
    // One change per move would give the right side; changes that share a move give more.
    assert!(sent.committed >= 20 * moved.moves, "{sent:?} {moved:?}");
    assert!(sent.committed >= 2 * moved.committed, "{sent:?} {moved:?}");
    assert_eq!((sent.most_tries, sent.moves), (1, 0), "nobody dies");
    assert!(sent.fewest >= 2 * moved.fewest, "{sent:?} {moved:?}");
}

#[test]
fn other_changes_go_to_a_contended_row_too() {
    let moved = run(moves_alone(), &EVERYBODY, 4, 300_000, change);
    let sent = run(Settings::default(), &EVERYBODY, 4, 300_000, change);
    assert!(
        sent.committed * 2 >= 3 * moved.committed,
        "{sent:?} {moved:?}"
    );
    assert!(sent.moves * 4 <= moved.moves, "{sent:?} {moved:?}");
}

/// No client starves: a transaction that has died often is urgent, and goes first.
#[test]
fn tries_are_bounded_on_a_hot_spot() {
    for settings in [moves_alone(), Settings::default()] {
        let score = run(settings, &EVERYBODY, 6, 1_000_000, change);
        assert!(score.most_tries <= 2 * ATTEMPTS_UNTIL_URGENT, "{score:?}");
        assert!(score.fewest >= 100, "{score:?}");
        assert!(score.tries <= 2 * score.committed, "{score:?}");
    }
}
