//! The lead: one shard commits for several of its node, with one record of their journal.
//!
//! ```text
//! coordinator ──Request +commit──> lead ──Gather──> shares   (shards of the lead's node)
//!                                  lead <─Gathered─ shares   promised in memory
//!                                  one Commit record
//! coordinator <──Reply committed── lead ──Decide──> shares
//! ```
//!
//! Shares and lead die together, and recovery finds the record or nothing. Until the record the
//! coordinator may still call the commit off, at the lead only: a share that has promised to its
//! lead hears the lead alone (rule C12).

use crate::job::{Job, Origin};
use crate::message::{Body, Decide, Finish, Finished, Gather, Gathered, Message, Prepare, Reply};
use crate::message::{Share, Trust, Vote};
use crate::records::gathered;
use crate::timers::Timer;
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Planted, Position, ShardId, Ts, TxnId, is_planted};
use txn::{AbortReason, OpError, OpResult};

/// A commit that this shard leads and whose promises are coming in.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Answer to the coordinator, without the outcome.
    reply: Reply,
    before: Ts,
    shares: Vec<ShardId>,
    votes: Vec<(ShardId, Vote)>,
}

/// What a lead does with an entrusted commit.
pub(crate) enum Led {
    /// The coordinator gets this reply now.
    Answer(Reply),
    /// The coordinator is answered when all promises are there.
    Later,
}

impl<C: Control> Machine<C> {
    /// The operation is done: commits if no other shard takes part, else collects the promises.
    pub(crate) fn lead_commit(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        trust: Trust,
        mut reply: Reply,
    ) -> Led {
        let Trust { before, shares } = trust;
        // A transaction that wrote nothing may be placed anywhere.
        let writes = reply.wrote || !shares.is_empty() || C::JUDGES;
        let mut asked = None;
        if writes && cx.clock.tick(cx.now) >= before {
            return Led::Answer(reply);
        }
        let done = if shares.is_empty() {
            self.commit_here(cx, txn).map(|committed| {
                let (commit_ts, forced) = (committed.commit_ts, committed.forced);
                reply.finished = Finished::Committed { commit_ts, forced };
                reply.wait = reply.wait.max(committed.position);
            })
        } else {
            let part = self.parts.of(txn);
            part.lead = Some(self.shard);
            let everybody = shares.iter().map(|share| share.shard).chain([self.shard]);
            let mut prepare = Prepare::to_be_decided(everybody.collect());
            prepare.settled = shares.iter().all(|share| share.writes.is_empty());
            asked = Some(prepare.clone());
            let prepared = self.prepare(cx, txn, prepare, false);
            prepared.map(|(vote, position)| {
                reply.wait = reply.wait.max(position);
                let part = self.parts.of(txn);
                part.gathering = Some(Box::new(Gathering {
                    reply: reply.clone(),
                    before,
                    shares: shares.iter().map(|share| share.shard).collect(),
                    votes: Vec::from([(self.shard, vote)]),
                }));
            })
        };
        match done {
            Ok(()) if shares.is_empty() => Led::Answer(reply),
            Ok(()) => {
                let asked = asked.expect("shares are asked for a promise");
                self.ask_shares(cx, txn, shares, &asked);
                Led::Later
            }
            Err(reason) => {
                self.rollback(cx, txn);
                reply.result = Err(OpError::Aborted(reason));
                Led::Answer(reply)
            }
        }
    }

    /// Asks the shares for their promises.
    fn ask_shares(&mut self, cx: &mut Cx<'_>, txn: TxnId, shares: Vec<Share>, prepare: &Prepare) {
        let part = &self.parts[&txn];
        let options = part.options;
        let attempt = options.attempt;
        for share in shares {
            let gather = Gather {
                visit: share.visit,
                acked: share.acked,
                options,
                planned: share.planned,
                writes: share.writes,
                prepare: prepare.clone(),
            };
            self.say(
                cx,
                share.shard,
                txn,
                attempt,
                Body::Gather(Box::new(gather)),
            );
        }
    }

    /// A share is asked for its promise. There is nothing to promise if the coordinator has called
    /// the transaction off here, or if it belongs to a former life of its coordinator.
    pub(crate) fn on_gather(
        &mut self,
        cx: &mut Cx<'_>,
        lead: ShardId,
        message: &Message,
        gather: Gather,
    ) {
        let txn = message.txn;
        let life = self.peers.life(txn.shard.node());
        let visits = self.visits_in.get(&(txn.shard, txn.incarnation));
        let over = visits.is_some_and(|visits| visits.is_over(gather.visit));
        let fresh = !self.parts.contains_key(&txn);
        if txn.incarnation < life || (fresh && (over || gather.acked > 0)) {
            let vote = Err(AbortReason::ParticipantLost(self.shard));
            self.send_gathered(cx, lead, txn, message.attempt, vote, Position(0));
            return;
        }
        let part = self.parts.obtain(txn, gather.options);
        assert!(
            part.next_seq == gather.acked + 1 && part.jobs.is_empty(),
            "a commit follows the answers to all requests"
        );
        part.visit = gather.visit;
        part.lead = Some(lead);
        self.timers.set(Timer::Part(txn), None);
        let origin = Origin::Gather { lead };
        let mut job = Box::new(Job::new(txn, gather.options, gather.planned, origin));
        job.writes = gather.writes.into_iter();
        job.finish = Finish::Prepare(gather.prepare);
        self.start(cx, job);
    }

    /// A share has its locks, or does not get them: it promises, or is rolled back.
    pub(crate) fn end_gather(
        &mut self,
        cx: &mut Cx<'_>,
        job: Job,
        lead: ShardId,
        result: Result<OpResult, OpError>,
    ) {
        let (txn, attempt) = (job.txn, job.attempt);
        let Finish::Prepare(prepare) = job.finish else {
            unreachable!("it was made to prepare")
        };
        let prepared = match result {
            Ok(_) => self.prepare(cx, txn, prepare, true),
            Err(OpError::Aborted(reason)) => Err(reason),
            // The transaction has written too much.
            Err(OpError::Sql(_) | OpError::Raise(_)) => Err(AbortReason::Requested),
        };
        let (vote, wait) = match prepared {
            Ok((vote, position)) => (Ok(vote), position.max(job.wait)),
            Err(reason) => {
                let visit = self.parts.get(&txn).map_or(0, |part| part.visit);
                self.rollback(cx, txn);
                self.end_visit(txn, visit, None);
                (Err(reason), Position(0))
            }
        };
        self.send_gathered(cx, lead, txn, attempt, vote, wait);
    }

    fn send_gathered(
        &mut self,
        cx: &mut Cx<'_>,
        lead: ShardId,
        txn: TxnId,
        attempt: u32,
        vote: Result<Vote, AbortReason>,
        wait: Position,
    ) {
        let gathered = Box::new(Gathered { vote, wait });
        self.say(cx, lead, txn, attempt, Body::Gathered(gathered));
    }

    /// A promise has come in at the lead.
    pub(crate) fn on_gathered(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        txn: TxnId,
        gathered: Gathered,
    ) {
        let part = self.parts.get_mut(&txn);
        let Some(gathering) = part.and_then(|part| part.gathering.as_deref_mut()) else {
            return;
        };
        match gathered.vote {
            Err(reason) => self.call_off(cx, txn, reason),
            Ok(vote) => {
                let reply = &mut gathering.reply;
                reply.wait = reply.wait.max(gathered.wait);
                gathering.votes.push((from, vote));
                if gathering.votes.len() > gathering.shares.len() {
                    self.decide_gathered(cx, txn);
                }
            }
        }
    }

    /// The coordinator calls off a commit that may be in this shard's hands, before or after its
    /// operation is done. Committed: the answer is under way.
    pub(crate) fn on_call_off(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        let Some(part) = self.parts.get(&txn).filter(|_| from == txn.shard) else {
            return;
        };
        if part.gathering.is_some() {
            self.call_off(cx, txn, AbortReason::Requested);
            return;
        }
        let leads = |id: &&u64| {
            let job = self.jobs.get(**id);
            job.is_some_and(|job| matches!(job.finish, Finish::Commit(_)))
        };
        if let Some(job) = part.jobs.iter().find(leads).copied() {
            self.fail_job(cx, job, OpError::Aborted(AbortReason::Requested));
        }
    }

    /// The lead cannot commit: it rolls back, with all shares, and tells the coordinator.
    fn call_off(&mut self, cx: &mut Cx<'_>, txn: TxnId, reason: AbortReason) {
        let part = self.parts.of(txn);
        let (visit, attempt) = (part.visit, part.options.attempt);
        let gathering = part.gathering.as_ref().expect("looked up by the caller");
        let mut reply = gathering.reply.clone();
        reply.result = Err(OpError::Aborted(reason));
        self.rollback(cx, txn);
        self.end_visit(txn, visit, Some(reply.clone()));
        self.send_reply(cx, txn.shard, txn, attempt, reply);
    }

    /// All shares have promised: one record, then the shares are told.
    fn decide_gathered(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let part = self.parts.of(txn);
        let (visit, attempt) = (part.visit, part.options.attempt);
        let gathering = part.gathering.as_ref().expect("looked up by the caller");
        let lows = gathering.votes.iter().map(|(_, vote)| vote.prepare_ts);
        let tops = gathering.votes.iter().map(|(_, vote)| vote.top);
        let top = tops.min().unwrap_or(Ts::MAX);
        // Every lock is still held, and the promises' clocks came with them.
        let commit_ts = match C::JUDGES {
            true => lows.max().unwrap_or_default(),
            false => cx.clock.tick(cx.now),
        };
        let part = self.parts.of(txn);
        let gathering = part.gathering.as_ref().expect("looked up by the caller");
        if commit_ts > top && !is_planted(Planted::FormulaTopsIgnored) {
            self.call_off(cx, txn, AbortReason::Overtaken(None));
            return;
        }
        if commit_ts >= gathering.before {
            // The lead has waited for locks until the coordinator's bound had passed.
            self.call_off(cx, txn, AbortReason::Unreachable(txn.shard));
            return;
        }
        let gathering = part.gathering.take().expect("looked up above");
        let gathering = *gathering;
        let (mut reply, votes) = (gathering.reply, gathering.votes);
        let promised = votes.iter().map(|(_, vote)| vote.prepare_ts).max();
        assert!(
            promised <= Some(commit_ts),
            "commits lie above their promises"
        );
        let cast = votes.iter().map(|(shard, vote)| (*shard, vote));
        let gathered = gathered(self.shard, self.promises.get(&txn), cast);
        let position = gathered.append(cx, &mut self.scratch, txn, commit_ts, &[]);
        for share in gathering.shares {
            self.tell_share(cx, txn, attempt, share, Some(commit_ts), position);
        }
        let forced = position.0 > 0;
        reply.finished = Finished::Committed { commit_ts, forced };
        reply.wait = reply.wait.max(position);
        self.keep_promise(cx, txn, commit_ts, position);
        self.end_visit(txn, visit, Some(reply.clone()));
        self.send_reply(cx, txn.shard, txn, attempt, reply);
    }

    /// Tells a share the outcome.
    pub(crate) fn tell_share(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        attempt: u32,
        share: ShardId,
        commit_ts: Option<Ts>,
        position: Position,
    ) {
        let decide = Decide {
            position,
            ..Decide::new(0, commit_ts, false)
        };
        self.say(cx, share, txn, attempt, Body::Decide(decide));
    }

    /// Calls off what is being gathered, if anything. The caller ends the lead's own part.
    pub(crate) fn release_shares(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(part) = self.parts.get_mut(&txn) else {
            return;
        };
        let attempt = part.options.attempt;
        let Some(gathering) = part.gathering.take() else {
            return;
        };
        for share in gathering.shares {
            self.tell_share(cx, txn, attempt, share, None, Position(0));
        }
    }

    /// The transaction's visit here is over; `reply` may be asked for again.
    pub(crate) fn end_visit(&mut self, txn: TxnId, visit: u64, reply: Option<Reply>) {
        if self.is_remote(txn.shard) && visit > 0 {
            let place = (txn.shard, txn.incarnation);
            let visits = self.visits_in.entry(place).or_default();
            if reply.is_some() || !visits.is_over(visit) {
                visits.end(visit, reply);
            }
        }
    }
}
