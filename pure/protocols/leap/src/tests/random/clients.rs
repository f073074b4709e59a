//! What clients do, and what they are told.

use super::super::local::{add, bump, get};
use super::super::programs::{Test, program, row};
use super::super::world::{TABLE, key};
use super::{Act, Client, Ending, FLAGS, NAMES, Run, Step, Told};
use base::{Datum, KeyRange, Position, Ts};
use txn::{
    LockMode, Op, OpError, OpId, OpReply, OpResult, Outcome, Protocol, Read, ScanOp, Slots,
    Snapshot,
};

impl Run {
    pub(super) fn start_client(&mut self) {
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

    pub(super) fn act(&mut self, at: usize) {
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
    pub(super) fn collect(&mut self) {
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
