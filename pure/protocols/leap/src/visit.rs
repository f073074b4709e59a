//! Visits: reads for transactions of other shards, and the locks that they leave here.

use crate::job::{Job, Origin, Stop, Wait, acquire_row};
use crate::message::{Body, Confirm, ReadReply, ReadRequest};
use crate::request::Standing;
use crate::{Cx, Leap};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{ShardId, Time, TxnId};
use txn::{Asked, LockMode, Op, OpError, OpResult, Outcome, Read};

/// What a transaction of another shard has here.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    coordinator: ShardId,
    /// Jobs that have not ended.
    pub(crate) jobs: Vec<u64>,
    /// Owners from which a scan here has fetched rows for the transaction, with locks.
    pub(crate) fetched_from: Vec<ShardId>,
    /// The locks of the transaction went once, because its coordinator could not be asked. The
    /// transaction cannot commit, whatever it reads here afterwards.
    pub(crate) given_up: bool,
}

impl Asked for Visit {
    fn receiver(&self) -> ShardId {
        self.coordinator
    }
}

impl Leap {
    pub(crate) fn on_read(&mut self, cx: &mut Cx<'_>, from: ShardId, request: ReadRequest) {
        let ReadRequest { txn, number, .. } = request;
        let origin = Origin::Read { number };
        if self.guests.has(txn, origin) {
            self.say(cx, txn.shard, Body::Reading(number));
            return;
        }
        let locks = !matches!(request.op.read(), Some(Read::Snapshot(_)));
        if locks && txn.shard != self.shard {
            self.open_visit(cx, txn);
        }
        let mut job = Box::new(Job::new(txn, request.options, request.planned, origin));
        job.id = self.jobs.next_number();
        job.alone = request.alone;
        job.op = Some(request.op);
        job.delays = request.delays + u32::from(self.is_remote(from));
        if locks && let Some(visit) = self.visits.get_mut(txn) {
            visit.jobs.push(job.id);
        }
        self.advance(cx, job);
    }

    /// Notes that a transaction of another shard may have locks here.
    pub(crate) fn open_visit(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        self.visit(cx.now, txn);
        self.visits.defer(txn, cx.now);
    }

    /// The visit of a transaction, begun if there is none.
    pub(crate) fn visit(&mut self, now: Time, txn: TxnId) -> &mut Visit {
        if !self.visits.contains(txn) {
            let visit = Visit {
                coordinator: txn.shard,
                ..Visit::default()
            };
            self.visits.begin(txn, visit, now, false);
        }
        self.visits.get_mut(txn).expect("begun above")
    }

    pub(crate) fn end_read(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        number: u64,
        result: Result<OpResult, OpError>,
    ) {
        let mut visited = job.visited.clone();
        if let Some(visit) = self.visits.get_mut(job.txn) {
            visit.jobs.retain(|id| *id != job.id);
            if !matches!(job.op.as_ref().and_then(Op::read), Some(Read::Snapshot(_))) {
                visited.push((self.shard, cx.incarnation));
            }
        }
        self.reply(cx, job, number, Some(result), visited);
    }

    fn reply(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        number: u64,
        result: Option<Result<OpResult, OpError>>,
        visited: Vec<(ShardId, u32)>,
    ) {
        let to = job.txn.shard;
        let reply = ReadReply {
            txn: job.txn,
            number,
            at: cx.clock.tick(cx.now),
            result,
            visited,
            wait: self.in_node(to, job.wait),
            delays: job.delays,
        };
        self.post(cx, to, Body::Reply(Box::new(reply)), job.wait);
    }

    /// The row of a read is not here: forwards the read to the owner, if this shard is the home.
    pub(crate) fn forward_read(&mut self, cx: &mut Cx<'_>, job: &Job, number: u64) {
        let op = job.op.clone().expect("it did not run");
        let key = op.key().expect("a scan runs at the home");
        if let Some(reason) = self.hindrance(key) {
            let failed = Err(OpError::Aborted(reason));
            self.reply(cx, job, number, Some(failed), Vec::new());
            return;
        }
        let owner = match self.home.table.get(key) {
            Some(entry) if self.is_home(key) => entry.owner,
            Some(_) | None => Some(job.txn.shard),
        };
        match owner {
            None => {
                if let Some(answer) = Self::answer_under_way(cx, Some(&op)) {
                    self.end_read(cx, job, number, answer);
                    return;
                }
                let mut job = Box::new(Job::new(job.txn, job.options, job.planned, job.origin));
                job.id = self.jobs.next_number();
                job.op = Some(op);
                self.park(cx, job, &Stop::Wait(Wait::Moving));
            }
            // The coordinator itself has the row, or must ask the home once more.
            Some(owner) if owner == job.txn.shard => self.reply(cx, job, number, None, Vec::new()),
            Some(owner) => {
                if let Some(visit) = self.visits.get_mut(job.txn) {
                    visit.jobs.retain(|id| *id != job.id);
                    let locks = !matches!(op.read(), Some(Read::Snapshot(_)));
                    if locks && !visit.fetched_from.contains(&owner) {
                        visit.fetched_from.push(owner);
                    }
                }
                let request = ReadRequest {
                    txn: job.txn,
                    options: job.options,
                    number,
                    planned: job.planned,
                    alone: false,
                    delays: job.delays,
                    op,
                };
                self.say(cx, owner, Body::Read(Box::new(request)));
            }
        }
    }

    pub(crate) fn on_confirm(&mut self, cx: &mut Cx<'_>, from: ShardId, confirm: Confirm) {
        let Confirm { txn, expected } = confirm;
        // The clock has passed the commit timestamp. The next life of this node must not draw
        // below it: the answer leaves when a bound above it is durable, as every answer does.
        let held = self.visits.get(txn).is_some_and(|visit| !visit.given_up);
        let holds = expected == cx.incarnation && held;
        self.visits.defer(txn, cx.now);
        self.say(cx, from, Body::Confirmed { txn, holds });
    }

    /// A transaction of another shard is over.
    pub(crate) fn end_visit(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(visit) = self.visits.end(txn) else {
            return;
        };
        for id in visit.jobs {
            self.drop_job(id);
        }
        for shard in visit.fetched_from {
            self.say(cx, shard, Body::Release(txn));
        }
        self.decline_held(cx, txn);
        if self.pendings.formulas.knows(txn) {
            // The outcome may be under way, and lost with its coordinator: what the transaction
            // has read must not wait for it.
            self.release_reads(txn);
            return;
        }
        self.locks.release(txn);
        self.ask_again_for_releases(cx, txn);
        self.ask_again_for_recalls(cx, txn);
    }

    /// Refuses formulas of a transaction that wait for locks here: its locks are about to go, and
    /// the message of its coordinator may have been lost; or the coordinator is away, and could not
    /// decide them.
    pub(crate) fn decline_held(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        for id in self.guests.holding(txn) {
            if let Some(job) = self.drop_job(id)
                && let Origin::Held { from, number } = job.origin
            {
                self.decline(cx, &job, from, number);
            }
        }
    }

    pub(crate) fn drop_job(&mut self, id: u64) -> Option<Box<Job>> {
        for number in self.fetches.select(|fetching| fetching.job == id) {
            self.fetches.end(number);
        }
        let job = self.jobs.remove(id)?;
        self.locks.withdraw(job.txn, id);
        self.forget_guest(&job);
        Some(job)
    }

    /// A transaction has freed its locks. Rows that are to leave in its name request their locks
    /// again: the grant runs to its end, however the transaction ends.
    fn ask_again_for_releases(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let waiting: Vec<u64> = self
            .owner
            .releasing
            .iter()
            .filter(|(_, releasing)| releasing.priority.txn == txn)
            .map(|(id, _)| *id)
            .collect();
        for before in waiting {
            // A new number: a lock that was granted to the old one has been freed with the rest.
            let id = self.jobs.next_number();
            let Some(releasing) = self.owner.renumber_release(before, id) else {
                continue;
            };
            let (priority, key) = (releasing.priority, &releasing.key);
            let mode = LockMode::Exclusive;
            if let Some(settled) = acquire_row(&mut self.locks, cx, priority, key, mode, id) {
                self.on_release_lock(cx, id, settled);
            }
        }
    }

    /// Asks the coordinator whether its transaction still needs its locks. If the coordinator is
    /// away, the locks go: a commit has to confirm them first, and writes here from now on lie
    /// above all that was confirmed. The visit remembers that until the transaction is over,
    /// because the transaction may read here again and confirm these reads.
    pub(crate) fn inquire(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        if self.is_down(txn.shard) {
            self.end_visit(cx, txn);
            self.visit(cx.now, txn).given_up = true;
        } else {
            self.say(cx, txn.shard, Body::Inquire(txn));
        }
        self.visits.defer(txn, cx.now);
    }

    /// Coordinator: a shard asks whether to keep the locks of a transaction.
    pub(crate) fn on_inquire(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        let outcome = self.coord.txns.get(&txn).map(|state| &state.outcome);
        let body = match outcome {
            Some(None) => Body::Running(txn),
            Some(Some(Outcome::Committed { .. } | Outcome::Aborted(_) | Outcome::Unknown))
            | None => Body::Release(txn),
        };
        self.say(cx, from, body);
    }

    pub(crate) fn is_mine(&self, key: &base::Key) -> bool {
        self.standing(key) == Standing::Mine
    }
}
