//! The coordinator: operations on their way to the shards.

use crate::coord::{Outstanding, Phase, Purpose};
use crate::entrust::Handover;
use crate::increment::op_adds;
use crate::job::{Job, Origin, Stop};
use crate::message::{Body, Finish, ReadRequest, Reference, Request};
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Position, ShardId, Ts, TxnId};
use txn::{
    AbortReason, Op, OpError, OpId, OpReply, OpResult, Outcome, Resend, Submission, Submitted,
};

impl<C: Control> Machine<C> {
    pub(crate) fn submit_op(&mut self, cx: &mut Cx<'_>, mut submission: Submission) -> Submitted {
        let txn = submission.txn;
        let coord = self.coords.of(txn);
        if let Some(outcome) = &coord.outcome {
            return Submitted::Ready(OpReply::failed(outcome.refusal()));
        }
        if coord.closed || coord.phase != Phase::Running {
            // The caller had said that no operation follows the last one.
            self.abort_txn(cx, txn, AbortReason::Requested);
            let wait = self.refusal_wait(txn);
            let failed = OpReply::failed(AbortReason::Requested);
            return Submitted::Ready(OpReply { wait, ..failed });
        }
        if let Some(snapshot) = submission.op.snapshot_mut() {
            coord.inform(submission.to, snapshot);
        }
        if submission.to == self.shard {
            return self.submit_local(cx, submission);
        }
        if self.peers.is_down(submission.to) {
            // The message would not leave this node, so nothing is sent or awaited.
            let reason = AbortReason::Unreachable(submission.to);
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::failed(reason));
        }
        let member = coord.find(submission.to);
        let visited = member.is_some_and(|member| member.stateful || !member.queue.is_empty());
        if !visited && submission.op.is_snapshot() {
            self.send_read(cx, submission);
            return Submitted::Pending;
        }
        let Submission {
            id, to, planned, ..
        } = submission;
        if submission.last || !matches!(submission.op, Op::Write { .. }) {
            return self.send_op(cx, submission);
        }
        if let Op::Write { key, write } = submission.op {
            let member = coord.member(to);
            member.queue_bytes += key.bytes.len() + write.size_bytes();
            member.queue_planned = member.queue_planned.min(planned);
            member.queue.push((key, write));
            if member.queue_bytes < self.settings.queue_bytes_max {
                return Submitted::Ready(OpReply::open(Ok(OpResult::Done), Position(0)));
            }
        }
        self.send_request(cx, txn, to, id, planned, None, Finish::No, Purpose::Op);
        Submitted::Pending
    }

    /// Sends an operation, with the commit if it may ride on it.
    fn send_op(&mut self, cx: &mut Cx<'_>, submission: Submission) -> Submitted {
        let Submission { txn, id, to, .. } = submission;
        let Submission {
            planned, op, last, ..
        } = submission;
        let own_wrote = self.has_written(txn);
        // Two lives of a participant must not commit twice, so the commit rides only towards a life
        // that is known.
        let acquainted = !self.is_remote(to) || self.peers.knows(to.node());
        let coord = self.coords.of(txn);
        if op_adds(&op) {
            coord.member(to).increments = true;
        }
        let rides = last && acquainted && coord.outstanding.is_empty() && coord.local.is_empty();
        coord.member(to);
        if !rides {
            self.send_request(cx, txn, to, id, planned, Some(op), Finish::No, Purpose::Op);
        } else if !own_wrote && self.may_entrust(txn, to) {
            let handover = Handover {
                id,
                lead: to,
                planned,
                op: Some(op),
            };
            if let Err(reason) = self.entrust(cx, txn, handover) {
                self.abort_txn(cx, txn, reason.clone());
                return Submitted::Ready(OpReply::failed(reason));
            }
        } else if self.folds_elsewhere(txn, to) {
            self.send_request(cx, txn, to, id, planned, Some(op), Finish::No, Purpose::Op);
        } else {
            if let Err(reason) = self.begin_prepare(cx, txn, id, Some((to, planned, op))) {
                return Submitted::Ready(OpReply::failed(reason));
            }
        }
        Submitted::Pending
    }

    fn send_read(&mut self, cx: &mut Cx<'_>, submission: Submission) {
        let Submission { txn, id, to, .. } = submission;
        let Submission { planned, op, .. } = submission;
        let coord = self.coords.of(txn);
        coord.reads += 1;
        coord.member(to);
        let (read, attempt) = (coord.reads, coord.options.attempt);
        let (options, alone) = (coord.options, !coord.locks);
        let body = Body::Read(Box::new(ReadRequest {
            read,
            planned,
            in_doubt_timeout_us: options.in_doubt_timeout_us,
            priority_ts: options.priority_ts,
            alone,
            op,
        }));
        let message = self.message(cx, txn, attempt, body);
        let reference = Reference::Read(read);
        self.dispatch(cx, txn, to, id, reference, Purpose::Op, alone, message);
    }

    /// Sends the next numbered request to a participant, with the blind writes that wait for it.
    #[expect(clippy::too_many_arguments, reason = "the parts of one message")]
    pub(crate) fn send_request(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        to: ShardId,
        id: OpId,
        planned: u64,
        op: Option<Op>,
        finish: Finish,
        purpose: Purpose,
    ) {
        let coord = self.coords.of(txn);
        let alone = coord.is_alone();
        if !alone {
            self.expose_outstanding(cx, txn);
        }
        let stamp = self.stamp_or_lock(cx, txn, op.as_ref(), to);
        let coord = self.coords.of(txn);
        let options = coord.options;
        let outstanding = coord.outstanding.iter();
        let unanswered = outstanding.filter(|request| request.shard == to);
        let unanswered = unanswered.filter_map(|request| match request.reference {
            Reference::Seq(seq) => Some(seq),
            Reference::Read(_) => None,
        });
        let oldest = unanswered.min();
        let life = self.peers.life(to.node());
        let visits = self.visits_out.entry(to).or_default();
        let member = coord.member(to);
        if member.visit == 0 {
            member.visit = visits.begin();
        }
        let acked = oldest.map_or(member.seq, |oldest| oldest - 1);
        member.seq += 1;
        member.stateful = true;
        member.wrote |= !member.queue.is_empty();
        let queue_planned = core::mem::replace(&mut member.queue_planned, u64::MAX);
        member.queue_bytes = 0;
        let seq = member.seq;
        let request = Request {
            visit: member.visit,
            visit_floor: visits.floor(),
            seq,
            acked,
            expected: if member.incarnation > 0 {
                member.incarnation
            } else {
                life
            },
            options,
            planned: planned.min(queue_planned),
            alone,
            writes: core::mem::take(&mut member.queue),
            op,
            stamp,
            finish,
        };
        let message = self.message(cx, txn, options.attempt, Body::Request(Box::new(request)));
        self.dispatch(
            cx,
            txn,
            to,
            id,
            Reference::Seq(seq),
            purpose,
            alone,
            message,
        );
    }

    /// Sends a request and notes the answer that is due.
    #[expect(clippy::too_many_arguments, reason = "the parts of one entry")]
    fn dispatch(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        to: ShardId,
        id: OpId,
        reference: Reference,
        purpose: Purpose,
        alone: bool,
        message: crate::Message,
    ) {
        let remote = self.is_remote(to);
        let kept = remote.then(|| message.clone());
        let coord = self.coords.of(txn);
        // What was read here must be durable before another node builds on it.
        let wait = coord.wait;
        let depth = coord.cost.delays;
        let resend = Resend::new(cx.now, self.settings.pauses());
        coord.outstanding.push(Box::new(Outstanding {
            id,
            shard: to,
            reference,
            purpose,
            depth,
            alone,
            message: kept,
            resend,
        }));
        if remote {
            coord.measure(&message);
        } else {
            coord.cost.messages_in_node += 1;
        }
        let frames = self.post(cx, to, message, wait);
        if remote {
            self.coords.of(txn).cost.messages_on_path += frames;
            self.arm_sent(txn, resend.again_at());
        }
    }

    /// The transaction asks for a lock beside what it has asked for: who waits for others, because
    /// it held none, may not do so any more. A message that is still in the outbox is corrected
    /// there.
    fn expose_outstanding(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let coord = self.coords.of(txn);
        let attempt = coord.options.attempt;
        for (_, job) in &coord.local {
            if let Some(job) = self.jobs.get_mut(*job) {
                job.alone = false;
            }
        }
        if !coord.local.is_empty() {
            // One that waits for a promise may not be allowed to any more.
            self.jobs.wake_all(self.promise_waits.drain(..));
        }
        let coord = self.coords.of(txn);
        let mut told = Vec::new();
        for request in coord.outstanding.iter_mut().filter(|request| request.alone) {
            request.alone = false;
            if let Some(kept) = &mut request.message
                && let Some((_, alone)) = kept.body.alone_mut()
            {
                *alone = false;
            }
            let unsent = cx.out.messages.iter_mut().rev().find_map(|outgoing| {
                let same = outgoing.to == request.shard && outgoing.message.txn == txn;
                let (reference, alone) = outgoing.message.body.alone_mut()?;
                (same && reference == request.reference).then_some(alone)
            });
            match unsent {
                Some(alone) => *alone = false,
                None if told.contains(&request.shard) => {}
                None => told.push(request.shard),
            }
        }
        self.locks.expose(txn);
        for shard in told {
            self.say(cx, shard, txn, attempt, Body::Expose);
        }
    }

    fn submit_local(&mut self, cx: &mut Cx<'_>, submission: Submission) -> Submitted {
        let Submission { txn, id, op, .. } = submission;
        let (planned, last) = (submission.planned, submission.last);
        let coord = self.coords.of(txn);
        let options = coord.options;
        let alone = coord.is_alone();
        let queued = coord.members.iter().any(|member| !member.queue.is_empty());
        coord.member(txn.shard);
        let idle = coord.outstanding.is_empty() && coord.local.is_empty();
        let last = last && idle && coord.is_only(txn.shard);
        // What it has read without locks is judged at its commit.
        let only = alone && coord.stamp == Ts::ZERO;
        let mut job = Job::new(txn, options, planned, Origin::Local { id, last });
        job.stateless = op.is_snapshot() && !self.parts.contains_key(&txn);
        job.op = Some(op);
        if only
            && last
            && !queued
            && !job.stateless
            && let Some(reply) = self.run_direct(cx, &mut job)
        {
            return Submitted::Ready(reply);
        }
        if !alone && !job.stateless {
            self.expose_outstanding(cx, txn);
        }
        job.alone = match job.stateless {
            true => !self.coords[&txn].locks,
            false => alone,
        };
        job.id = self.jobs.next_number();
        if !job.stateless {
            let op = job.op.as_ref().expect("a new job has its operation");
            job.stamp = self.stamp(cx, txn, op, txn.shard);
            self.parts.obtain(txn, options);
            let coord = self.coords.of(txn);
            coord.locks |= job.stamp.is_none();
            coord.member(txn.shard).stateful = true;
        }
        let result = match self.run(cx, &mut job) {
            Ok(result) => Ok(result),
            Err(Stop::Fail(error)) => Err(error),
            Err(stop) => {
                let coord = self.coords.of(txn);
                coord.local.push((id, job.id));
                if let (false, Some(part)) = (job.stateless, self.parts.get_mut(&txn)) {
                    part.jobs.push(job.id);
                }
                self.park(cx, Box::new(job), &stop);
                return Submitted::Pending;
            }
        };
        if let Some(part) = self.parts.get_mut(&txn) {
            part.wait = part.wait.max(job.wait);
        }
        Submitted::Ready(self.end_local(cx, &job, result))
    }

    /// The answer to an operation on the coordinator's own shard.
    pub(crate) fn end_local(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        result: Result<OpResult, OpError>,
    ) -> OpReply {
        let txn = job.txn;
        let Origin::Local { id, last } = job.origin else {
            unreachable!("answers to other shards are messages")
        };
        let Some(coord) = self.coords.get_mut(&txn) else {
            return OpReply::failed(AbortReason::Requested);
        };
        coord.local.retain(|(op, _)| *op != id);
        let noted = coord.note_read(job.read_at, job.wait);
        if let Some(contact) = job.arrival.contact {
            coord.note_contact(txn.shard, contact);
        }
        let idle = coord.outstanding.is_empty() && coord.local.is_empty();
        let only = coord.is_only(txn.shard);
        match result.and_then(|found| noted.map(|()| found)) {
            Err(OpError::Aborted(reason)) => {
                self.abort_txn(cx, txn, reason.clone());
                OpReply::failed(reason)
            }
            Ok(found)
                if last && idle && only && found.allows_finish() && !self.is_bulk(job.txn) =>
            {
                let ended = self.commit_own(cx, txn);
                let aborted = match &ended.outcome {
                    Some(Outcome::Aborted(reason)) => Some(reason.clone()),
                    Some(Outcome::Committed { .. } | Outcome::Unknown) | None => None,
                };
                match aborted {
                    Some(reason) => OpReply::failed(reason),
                    None => OpReply {
                        result: Ok(found),
                        ..ended
                    },
                }
            }
            result => OpReply::open(result, job.wait),
        }
    }
}
