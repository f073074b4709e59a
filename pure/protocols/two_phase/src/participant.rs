//! Requests for transactions of other shards.

use crate::job::{Job, Origin};
use crate::lead::Led;
use crate::message::{Body, Finish, Finished, Message, ReadRequest, Reference, Reply, Request};
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use base::{Planted, Position, ShardId, Ts, TxnId, is_planted};
use txn::{AbortReason, OpError, OpResult, TxnOptions};

impl<C: Control> Machine<C> {
    /// A message about `txn` with this shard's view and clock.
    pub(crate) fn message(&self, cx: &Cx<'_>, txn: TxnId, attempt: u32, body: Body) -> Message {
        Message {
            head: cx.head(),
            txn,
            attempt,
            body,
        }
    }

    /// Sends a message about `txn` that waits for nothing.
    pub(crate) fn say(&self, cx: &mut Cx<'_>, to: ShardId, txn: TxnId, attempt: u32, body: Body) {
        let message = self.message(cx, txn, attempt, body);
        cx.post(to, message, Position(0), Position(0));
    }

    /// Sends a message. Within the node the message waits for nothing. Returns the number of frames
    /// that it adds.
    pub(crate) fn post(
        &self,
        cx: &mut Cx<'_>,
        to: ShardId,
        message: Message,
        wait: Position,
    ) -> u32 {
        cx.post(to, message, wait, Position(0))
    }

    /// A snapshot read for a transaction without a part here.
    pub(crate) fn on_read(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        message: &Message,
        request: ReadRequest,
    ) {
        let txn = message.txn;
        let reference = Reference::Read(request.read);
        let origin = Origin::Remote { from, reference };
        if self.is_remote(from) && self.reads_in.contains(&(from, txn, request.read)) {
            self.say(cx, from, txn, message.attempt, Body::Working(reference));
            return;
        }
        let options = TxnOptions {
            priority_ts: request.priority_ts,
            attempt: message.attempt,
            in_doubt_timeout_us: request.in_doubt_timeout_us,
            ..TxnOptions::default()
        };
        let mut job = Box::new(Job::new(txn, options, request.planned, origin));
        job.stateless = true;
        job.alone = request.alone;
        job.op = Some(request.op);
        self.start(cx, job);
    }

    /// Runs a new job; parks or ends it.
    pub(crate) fn start(&mut self, cx: &mut Cx<'_>, mut job: Box<Job>) {
        job.id = self.jobs.next_number();
        if let (false, Some(part)) = (job.stateless, self.parts.get_mut(&job.txn)) {
            part.jobs.push(job.id);
        }
        self.advance(cx, job);
    }

    /// A numbered request: executed once, answered as often as the message comes.
    pub(crate) fn on_request(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        message: &Message,
        request: Request,
    ) {
        let txn = message.txn;
        if self.is_remote(from) {
            let visits = self.visits_in.entry((from, txn.incarnation)).or_default();
            visits.raise(request.visit_floor);
            if !self.parts.contains_key(&txn)
                && !is_planted(Planted::RequestTwice)
                && visits.is_over(request.visit)
            {
                let kept = visits.kept(request.visit).and_then(Option::as_ref);
                let to = Reference::Seq(request.seq);
                let kept = kept.filter(|reply| reply.to == to).cloned();
                let late = request.visit < visits.floor();
                let goes_on = kept.is_none() && !late && is_planted(Planted::LostPartGoesOn);
                match kept {
                    Some(reply) => self.send_reply(cx, from, txn, message.attempt, reply),
                    None if late => {}
                    None if goes_on => {}
                    None => self.refuse(cx, from, message, &request),
                }
                if !goes_on {
                    return;
                }
            }
        }
        let found = self
            .parts
            .get(&txn)
            .is_none_or(|part| part.next_seq == u64::MAX);
        if found && self.promises.contains_key(&txn) {
            // A promise of a former life: only its outcome matters any more.
            return;
        }
        let lost = request.expected != 0 && request.expected != cx.incarnation;
        let fresh = !self.parts.contains_key(&txn);
        if fresh && self.peers.is_down(from) {
            // The request was under way when the connection broke. No message would free its locks
            // before the node is back: the loss of its transactions has been dealt with. If the
            // node lives, it asks again.
            return;
        }
        if (lost || (fresh && request.acked > 0)) && !is_planted(Planted::LostPartGoesOn) {
            self.rollback(cx, txn);
            self.refuse(cx, from, message, &request);
            return;
        }
        let part = self.parts.obtain(txn, request.options);
        part.visit = request.visit;
        if fresh && is_planted(Planted::LostPartGoesOn) {
            part.next_seq = request.seq;
        }
        part.inquiries = 0;
        part.replies
            .retain(|reply| reply.to > Reference::Seq(request.acked));
        if request.seq < part.next_seq {
            self.answer_again(cx, from, message, &request);
        } else {
            part.early.insert(request.seq, request);
            self.begin_early(cx, txn);
        }
        self.arm_part(cx.now, txn);
    }

    /// Begins requests in their order. One whose blind writes still wait for locks holds up those
    /// behind it, because they may rely on the writes.
    pub(crate) fn begin_early(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        loop {
            let Some(part) = self.parts.get(&txn) else {
                return;
            };
            let jobs = &self.jobs;
            let held_up = part.jobs.iter().any(|id| {
                jobs.get(*id)
                    .is_some_and(|job| !job.writes.as_slice().is_empty())
            });
            let part = self.parts.of(txn);
            let next = part.next_seq;
            if held_up {
                return;
            }
            let Some(request) = part.early.remove(&next) else {
                return;
            };
            part.next_seq += 1;
            let origin = Origin::Remote {
                from: txn.shard,
                reference: Reference::Seq(request.seq),
            };
            let mut job = Box::new(Job::new(txn, request.options, request.planned, origin));
            job.alone = request.alone;
            job.writes = request.writes.into_iter();
            job.op = request.op;
            job.stamp = request.stamp;
            job.finish = request.finish;
            self.start(cx, job);
        }
    }

    fn answer_again(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        message: &Message,
        request: &Request,
    ) {
        let txn = message.txn;
        let reference = Reference::Seq(request.seq);
        let part = self.parts.get(&txn).expect("a repeated request has a part");
        let gathers = part.gathering.is_some();
        if let Some(reply) = part.replies.iter().find(|reply| reply.to == reference) {
            let reply = reply.clone();
            self.send_reply(cx, from, txn, message.attempt, reply);
            return;
        }
        let jobs = &self.jobs;
        let origin = Origin::Remote { from, reference };
        let running = part
            .jobs
            .iter()
            .any(|id| jobs.get(*id).is_some_and(|j| j.origin == origin));
        if running || gathers {
            self.say(cx, from, txn, message.attempt, Body::Working(reference));
            if !request.alone {
                self.expose(txn);
            }
        }
    }

    /// Answers that the transaction is not known (any more), and notes that answer.
    fn refuse(&mut self, cx: &mut Cx<'_>, from: ShardId, message: &Message, request: &Request) {
        // In this life it was rolled back, by this shard itself or by its coordinator.
        let same_life = request.expected == cx.incarnation;
        let reason = if same_life {
            AbortReason::CutOff(self.shard)
        } else {
            AbortReason::ParticipantLost(self.shard)
        };
        let lost = OpError::Aborted(reason);
        let reply = Reply {
            to: Reference::Seq(request.seq),
            result: Err(lost),
            finished: Finished::Open,
            wrote: false,
            wait: Position(0),
            contact: None,
            read_at: Ts::ZERO,
        };
        self.end_visit(message.txn, request.visit, None);
        self.send_reply(cx, from, message.txn, message.attempt, reply);
    }

    /// The transaction holds something now, or waits for something else: it is exposed.
    pub(crate) fn expose(&mut self, txn: TxnId) {
        if let Some(part) = self.parts.get(&txn) {
            for id in &part.jobs {
                if let Some(job) = self.jobs.get_mut(*id) {
                    job.alone = false;
                }
            }
        }
        for id in &self.promise_waits {
            if let Some(job) = self.jobs.get_mut(*id)
                && job.txn == txn
            {
                job.alone = false;
            }
        }
        // One that waits for a promise may not be allowed to any more.
        self.wake_snapshots();
        self.locks.expose(txn);
    }

    /// Answers a job, on this shard or to another.
    pub(crate) fn end_job(
        &mut self,
        cx: &mut Cx<'_>,
        job: Box<Job>,
        result: Result<OpResult, OpError>,
    ) {
        let txn = job.txn;
        if let Some(part) = self.parts.get_mut(&txn) {
            part.jobs.retain(|id| *id != job.id);
            part.wait = part.wait.max(job.wait);
        }
        match job.origin {
            Origin::Local { id, .. } => {
                let reply = self.end_local(cx, &job, result);
                cx.out.complete(txn, id, reply);
            }
            Origin::Commit { id } => {
                let reply = self.end_commit(cx, txn, id, result);
                cx.out.complete(txn, id, reply);
            }
            Origin::Prepare => self.end_sealing(cx, *job, result),
            Origin::Gather { lead } => self.end_gather(cx, *job, lead, result),
            Origin::Remote { from, reference } => {
                self.end_remote(cx, *job, from, reference, result);
                self.begin_early(cx, txn);
            }
        }
    }

    fn end_remote(
        &mut self,
        cx: &mut Cx<'_>,
        job: Job,
        from: ShardId,
        reference: Reference,
        result: Result<OpResult, OpError>,
    ) {
        let (txn, attempt) = (job.txn, job.attempt);
        if let Reference::Read(read) = reference
            && !self.reads_in.is_empty()
        {
            self.reads_in.remove(&(from, txn, read));
        }
        let wrote = self.has_written(txn);
        let wait = job.wait;
        if job.read_at > Ts::ZERO {
            // A commit puts its top above the time here, which the reply carries.
            cx.clock.tick(cx.now);
        }
        let mut reply = Reply {
            to: reference,
            result,
            finished: Finished::Open,
            wrote,
            wait,
            contact: job.arrival.contact,
            read_at: job.read_at,
        };
        if !job.stateless {
            match self.finish_remote(cx, txn, job.finish, reply) {
                Led::Answer(answer) => reply = answer,
                Led::Later => return,
            }
            self.keep_reply(txn, from, &reply);
        }
        self.send_reply(cx, from, txn, attempt, reply);
    }

    /// Does what follows the operation, and puts the result into the reply.
    fn finish_remote(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        finish: Finish,
        mut reply: Reply,
    ) -> Led {
        let visit = self.parts.get(&txn).map_or(0, |part| part.visit);
        let failed = match (&reply.result, finish) {
            (Err(OpError::Aborted(reason)), _) => Some(reason.clone()),
            (Err(OpError::Sql(_) | OpError::Raise(_)), _) | (Ok(_), Finish::No) => None,
            (Ok(result), _) if !result.allows_finish() => None,
            (Ok(_), Finish::Prepare(prepare)) => match self.prepare(cx, txn, prepare, true) {
                Ok((vote, position)) => {
                    reply.finished = Finished::Vote(vote);
                    reply.wait = reply.wait.max(position);
                    None
                }
                Err(reason) => Some(reason),
            },
            (Ok(_), Finish::Commit(trust)) => match self.lead_commit(cx, txn, *trust, reply) {
                Led::Answer(answer) => {
                    reply = answer;
                    None
                }
                Led::Later => return Led::Later,
            },
        };
        if let Some(reason) = failed {
            self.rollback(cx, txn);
            reply.result = Err(OpError::Aborted(reason));
        }
        if !self.parts.contains_key(&txn) {
            self.end_visit(txn, visit, Some(reply.clone()));
        }
        Led::Answer(reply)
    }

    /// Keeps an answer that may get lost.
    fn keep_reply(&mut self, txn: TxnId, from: ShardId, reply: &Reply) {
        if self.is_remote(from)
            && let Some(part) = self.parts.get_mut(&txn)
        {
            part.replies.push(reply.clone());
        }
    }

    /// Sends a reply. To another node it leaves when everything that it tells is durable here;
    /// within the node it carries the position.
    pub(crate) fn send_reply(
        &mut self,
        cx: &mut Cx<'_>,
        to: ShardId,
        txn: TxnId,
        attempt: u32,
        mut reply: Reply,
    ) {
        let wait = reply.wait;
        if self.is_remote(to) {
            reply.wait = Position(0);
        }
        let message = self.message(cx, txn, attempt, Body::Reply(Box::new(reply)));
        self.post(cx, to, message, wait);
    }
}
