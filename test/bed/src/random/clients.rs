//! Clients at work.

use super::client::{Act, Client, Ending, Step, Told};
use super::savepoints::{has_savepoints, weave};
use super::{Mix, Run};
use crate::Subject;
use base::{Position, Prng, SqlState, Ts, TxnId, Type};
use txn::{OpError, OpId, OpReply, Outcome};

impl<P: Subject, M: Mix<P>> Run<P, M> {
    /// A new client with these steps. `apart`: no two of them meet, so that they may be submitted
    /// side by side.
    pub(super) fn add_client(&mut self, txn: TxnId, steps: Vec<Step>, apart: bool, floor: Ts) {
        let ending = match self.prng.below(10) {
            0 => Ending::Abort,
            1..=4 => Ending::Ride,
            _ => Ending::Commit,
        };
        let mut parallel = apart && self.prng.below(2) == 0;
        let mut steps = steps;
        let mut aside = Prng::new(self.seed ^ 0x5a7e ^ (self.clients.len() as u64) << 32);
        if has_savepoints(self.seed) && aside.below(2) == 0 && !steps.is_empty() {
            steps = weave(&mut aside, steps);
            parallel = false;
        }
        self.clients.push(Client {
            txn,
            steps,
            next: 0,
            parallel,
            ending,
            pending: Vec::new(),
            wait: Position(0),
            outcome: None,
            held: false,
            lost: false,
            failed: false,
            raise: None,
            floor,
        });
    }

    pub(super) fn act(&mut self, at: usize) {
        self.collect();
        let client = &mut self.clients[at];
        if client.outcome.is_some() || client.lost {
            return;
        }
        if let Some(at) = client.raise {
            if client.pending.is_empty() {
                client.read_again(at);
                self.raises += usize::from(!client.failed);
            }
            return;
        }
        if self.prng.below(self.profile.cancel_one_in) == 0 {
            self.cancel(at);
            return;
        }
        let beside = client.parallel && client.next < client.steps.len();
        if !client.pending.is_empty() && !beside {
            return;
        }
        let txn = client.txn;
        if client.next < client.steps.len() && !client.failed {
            let number = client.next;
            client.next += 1;
            let step = client.steps[number].clone();
            let idle = client.pending.is_empty();
            if let Act::Save(_) = step.act {
                self.save(at, number, &step);
                self.collect();
                return;
            }
            let last = client.ending == Ending::Ride && client.next == client.steps.len() && idle;
            let id = self.world.submit_to(txn, step.shard, step.act.op(), last);
            self.clients[at].pending.push((id, Some(number)));
        } else if client.ending == Ending::Abort || client.failed {
            client.outcome = Some(Outcome::Aborted(txn::AbortReason::Requested));
            self.world.abort(txn);
            self.world.forget(txn);
        } else {
            let id = self.world.commit(txn);
            self.clients[at].pending.push((id, None));
        }
        self.collect();
    }

    /// Submits a savepoint to the shards that it concerns.
    fn save(&mut self, at: usize, number: usize, step: &Step) {
        let txn = self.clients[at].txn;
        let shards = self.world.written(txn);
        if shards.is_empty() {
            self.clients[at].steps[number].told = Some(Told::Done);
        }
        for shard in shards {
            if self.clients[at].outcome.is_some() {
                return;
            }
            let id = self.world.submit_to(txn, shard, step.act.op(), false);
            self.clients[at].pending.push((id, Some(number)));
            self.collect();
        }
    }

    /// ROLLBACK or cancel at any moment, also while the commit is under way.
    fn cancel(&mut self, at: usize) {
        let txn = self.clients[at].txn;
        self.world.abort(txn);
        self.collect();
        let client = &mut self.clients[at];
        if client.outcome.is_none() {
            assert!(client.pending.is_empty(), "what is outstanding is answered");
            client.outcome = Some(Outcome::Aborted(txn::AbortReason::Requested));
            self.world.forget(txn);
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
                    let step = &mut client.steps[step];
                    step.told = Some(Told::of(&step.act, &result));
                }
            }
            Err(OpError::Aborted(reason)) => outcome = Some(Outcome::Aborted(reason)),
            Err(OpError::Raise(at)) => client.raise = client.raise.max(Some(at)),
            Err(OpError::Sql(error)) => {
                let narrow = |act: &Act| matches!(act, Act::Formula { ty: Type::Int2, .. });
                let overflows = step.is_some_and(|at| narrow(&client.steps[at].act));
                let out_of_range = error.state() == SqlState::NUMERIC_OUT_OF_RANGE;
                assert!(overflows && out_of_range, "{error}");
                assert_eq!(outcome, None, "a failed statement commits nothing");
                client.failed = !step.is_some_and(|at| client.goes_back(at));
                self.overflows += 1;
            }
        }
        if let (None, Some(outcome)) = (&client.outcome, outcome) {
            // An abort waits if somebody must refuse durably first.
            client.held = matches!(outcome, Outcome::Committed { .. }) || reply.wait.0 > 0;
            if self.profile.retries && matches!(outcome, Outcome::Aborted(_)) {
                // It comes again, with its first timestamp.
                let ts = Ts::from_time(self.world.now);
                self.retries.push((client.txn.shard, ts));
            }
            client.outcome = Some(outcome);
            client.pending.clear();
            let txn = client.txn;
            self.world.forget(txn);
        }
    }
}
