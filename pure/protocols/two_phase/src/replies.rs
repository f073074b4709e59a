//! The coordinator: answers of participants, and restarts of nodes.

use crate::coord::{Ballot, Phase, Purpose};
use crate::message::{Body, Finished, Message, Reference, Reply};
use crate::part::{Stage, coordinator_node};
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{NodeId, Planted, Position, ShardId, Ts, TxnId, is_planted};
use txn::{AbortReason, Head, Life, OpError, OpId, OpReply, Outcome, Submitted};

impl<C: Control> Machine<C> {
    /// A message has arrived.
    pub(crate) fn receive(&mut self, cx: &mut Cx<'_>, from: ShardId, message: Message) {
        let Head {
            incarnation, clock, ..
        } = message.head;
        match cx.life_of(&self.peers, from, &message.head) {
            Life::Former => return,
            Life::Present => {}
            Life::New { .. } => self.peer_restarted(cx, from.node(), incarnation),
        }
        let reads = matches!(message.body, Body::Read(_));
        if !(reads && is_planted(Planted::SnapshotNotMerged)) {
            cx.clock.merge(clock);
        }
        let (txn, attempt) = (message.txn, message.attempt);
        let mut message = message;
        // The body is taken out so that header and body can be used side by side.
        match core::mem::replace(&mut message.body, Body::Ack) {
            Body::Read(request) => self.on_read(cx, from, &message, *request),
            Body::Request(request) => {
                if txn.shard == from && txn.incarnation == incarnation {
                    self.on_request(cx, from, &message, *request);
                }
            }
            Body::Reply(reply) => self.on_reply(cx, from, &message, *reply),
            Body::Working(reference) => self.on_working(cx, from, txn, reference),
            Body::Expose => self.expose(txn),
            Body::CallOff => self.on_call_off(cx, from, txn),
            Body::Decide(decide) => self.on_decide(cx, from, &message, decide),
            Body::Ack => self.on_ack(cx, from, txn),
            Body::Inquire => self.on_inquire(cx, from, txn, attempt),
            Body::Running => self.on_running(cx, txn),
            Body::Poll => self.on_poll(cx, from, txn, attempt),
            Body::Polled(promised) => self.on_polled(cx, from, txn, promised),
            Body::Gather(gather) => {
                if !self.is_remote(from) {
                    self.on_gather(cx, from, &message, *gather);
                }
            }
            Body::Gathered(gathered) => {
                if !self.is_remote(from) {
                    self.on_gathered(cx, from, txn, *gathered);
                }
            }
        }
    }

    fn on_working(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId, reference: Reference) {
        let Some(coord) = self.coords.get_mut(&txn) else {
            return;
        };
        if let Some(at) = coord.awaited(from, reference) {
            coord.outstanding[at].resend.hear(cx.now);
        }
    }

    fn on_reply(&mut self, cx: &mut Cx<'_>, from: ShardId, message: &Message, reply: Reply) {
        let txn = message.txn;
        let remote = self.is_remote(from);
        let Some(coord) = self.coords.get_mut(&txn) else {
            return;
        };
        let Some(at) = coord.awaited(from, reply.to) else {
            return;
        };
        let (id, purpose) = (coord.outstanding[at].id, coord.outstanding[at].purpose);
        coord.count_reply(remote, cx.out.frames.came(), at, &reply);
        if matches!(reply.to, Reference::Seq(_)) {
            let member = coord.member(from);
            let other_life =
                member.incarnation != 0 && member.incarnation != message.head.incarnation;
            if other_life && !is_planted(Planted::LostPartGoesOn) {
                let reason = AbortReason::ParticipantLost(from);
                self.give_up(cx, txn, purpose, reason);
                return;
            }
            member.incarnation = message.head.incarnation;
            member.clock = message.head.clock;
            member.wrote |= reply.wrote;
        }
        let noted = coord.note_read(reply.read_at, reply.wait);
        if let Some(contact) = reply.contact {
            coord.note_contact(from, contact);
        }
        if let Err(OpError::Aborted(ref reason)) = reply.result {
            self.on_refusal(cx, from, message, &reply, (purpose, reason.clone()));
            return;
        }
        let committed = matches!(reply.finished, Finished::Committed { .. });
        // Who commits has seen that all that was read is what is there now, at whatever moment the
        // transaction has read it.
        let noted = if committed { Ok(()) } else { noted };
        if noted.is_err() && reply.finished != Finished::Open {
            self.abort_txn(cx, txn, AbortReason::SnapshotMisses(None));
            return;
        }
        coord.outstanding.remove(at);
        self.arm_answered(txn);
        let result = reply.result.and_then(|found| noted.map(|()| found));
        let answer = OpReply::open(result, reply.wait);
        match reply.finished {
            Finished::Open => self.on_open(cx, txn, id, purpose, answer),
            Finished::Vote(vote) => {
                let coord = self.coords.of(txn);
                coord.member(from).ballot = Ballot::Cast(vote);
                if purpose == Purpose::OpPrepare
                    && let (Phase::Preparing { result, .. }, Ok(found)) =
                        (&mut coord.phase, answer.result)
                {
                    *result = Some(found);
                }
                self.on_vote(cx, txn);
            }
            Finished::Committed { commit_ts, forced } => {
                let coord = self.coords.of(txn);
                coord.cost.forced_writes += u32::from(forced);
                self.on_committed(cx, txn, id, commit_ts, answer);
            }
        }
    }

    /// A participant has refused a request, and with it the transaction.
    fn on_refusal(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        message: &Message,
        reply: &Reply,
        (purpose, reason): (Purpose, AbortReason),
    ) {
        let txn = message.txn;
        // A refusal after a restart says nothing about what the former life did.
        if matches!(reason, AbortReason::ParticipantLost(_)) {
            self.give_up(cx, txn, purpose, reason);
            return;
        }
        let remote = self.is_remote(from);
        let coord = self.coords.of(txn);
        if coord.phase == Phase::Entrusted {
            // The commit is not in the lead's hands any more.
            coord.phase = Phase::Running;
        }
        // Within a node, a request under way has made the participant anew.
        let crossed = coord.outstanding.iter().filter(|r| r.shard == from).count() > 1;
        let member = coord.member(from);
        if matches!(reply.to, Reference::Seq(_)) && (remote || !crossed) {
            // The participant has rolled itself back.
            member.stateful = false;
            let visit = member.visit;
            self.close_visit(from, visit);
        }
        self.abort_txn(cx, txn, reason);
    }

    /// The lead that was entrusted with the commit has done it.
    fn on_committed(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        commit_ts: Ts,
        answer: OpReply,
    ) {
        let coord = self.coords.of(txn);
        let wait = coord.wait;
        // The lead has told the other shards of its node.
        let others = coord.members.iter_mut().filter(|m| m.shard != txn.shard);
        let mut ended = Vec::new();
        for member in others.filter(|member| member.stateful) {
            member.stateful = false;
            ended.push((member.shard, member.visit));
        }
        for (shard, visit) in ended {
            self.close_visit(shard, visit);
        }
        cx.clock.merge(commit_ts);
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        let reply = OpReply {
            outcome: Some(outcome),
            wait,
            ..answer
        };
        cx.out.complete(txn, id, reply);
    }

    /// An answer without the commit that was asked for, or with none asked for.
    fn on_open(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        purpose: Purpose,
        answer: OpReply,
    ) {
        let coord = self.coords.of(txn);
        match purpose {
            Purpose::Op => {}
            Purpose::OpCommit => {
                coord.phase = Phase::Running;
                if coord.called_off {
                    self.abort_txn(cx, txn, AbortReason::Requested);
                    cx.out
                        .complete(txn, id, OpReply::failed(AbortReason::Requested));
                    return;
                }
            }
            Purpose::OpPrepare => {
                coord.phase = Phase::Running;
                coord.closed = true;
                coord.refused = true;
                for member in &mut coord.members {
                    let seals = coord.sealing && member.shard == txn.shard;
                    if member.ballot == Ballot::Asked
                        && !seals
                        && !coord
                            .outstanding
                            .iter()
                            .any(|request| request.shard == member.shard)
                    {
                        member.ballot = Ballot::NotAsked;
                    }
                }
            }
            Purpose::Commit => {
                // The lead hands the commit back: no time was left until the bound.
                coord.phase = Phase::Running;
                let committed = match answer.result {
                    Ok(_) => self.commit_in_two_phases(cx, txn, id),
                    // The transaction has written too much.
                    Err(_) => {
                        self.abort_txn(cx, txn, AbortReason::Requested);
                        let outcome = Outcome::Aborted(AbortReason::Requested);
                        Submitted::Ready(OpReply::ended(outcome, Position(0)))
                    }
                };
                cx.out.settle(txn, id, committed);
                return;
            }
            Purpose::Prepare => {
                // The transaction has written too much: nothing else can fail without an operation.
                // The end answers the commit, also if no other shard is asked at the moment.
                coord.sealing = true;
                self.abort_txn(cx, txn, AbortReason::Requested);
                return;
            }
        }
        cx.out.complete(txn, id, answer);
    }

    /// A node has begun a new life: what it held only in memory is gone.
    pub(crate) fn peer_restarted(&mut self, cx: &mut Cx<'_>, node: NodeId, incarnation: u32) {
        if node == self.shard.node() {
            return;
        }
        let Life::New { first } = self.peers.meet(node, incarnation) else {
            return;
        };
        self.visits_in
            .retain(|(shard, life), _| shard.node() != node || *life >= incarnation);
        let orphans = self
            .parts
            .iter()
            .filter(|(txn, _)| coordinator_node(**txn) == node && txn.incarnation < incarnation);
        let orphans = orphans.map(|(txn, part)| (*txn, part.stage, part.lead, part.top));
        let orphans: Vec<(TxnId, Stage, Option<ShardId>, Ts)> = orphans.collect();
        for (txn, stage, lead, top) in orphans {
            // It may have committed and was answered: what is free now changes above it (C5).
            cx.clock.merge(top);
            match (stage, lead) {
                // Its lead calls the commit off, or has committed.
                (_, Some(lead)) if lead != self.shard => {}
                (Stage::Active | Stage::Voted, _) | (Stage::Promised, Some(_)) => {
                    self.rollback(cx, txn);
                }
                (Stage::Promised, None) => self.inquire(cx, txn),
            }
        }
        if first {
            // First contact: no transaction here has dealt with a former life.
            self.poll_node(cx, node);
            self.tell_decisions_to(cx, node);
            return;
        }
        let mut lost = Vec::new();
        for (txn, coord) in self.coords.iter() {
            if coord.outcome.is_some() {
                continue;
            }
            if let Some((lead, purpose)) = coord.lead() {
                if lead.node() == node {
                    lost.push((*txn, lead, purpose));
                }
                continue;
            }
            for member in coord
                .members
                .iter()
                .filter(|member| member.shard.node() == node)
            {
                let safe = matches!(&member.ballot, Ballot::Cast(vote) if vote.durable)
                    && !member.has_guards::<C>();
                if member.stateful && !safe && !is_planted(Planted::LostPartGoesOn) {
                    let mut mine = coord.outstanding.iter().filter(|r| r.shard == member.shard);
                    let purpose = mine.next().map_or(Purpose::Op, |request| request.purpose);
                    lost.push((*txn, member.shard, purpose));
                    break;
                }
            }
        }
        for (txn, shard, purpose) in lost {
            self.give_up(cx, txn, purpose, AbortReason::ParticipantLost(shard));
        }
        self.ask_unsettled_of(cx, node);
        self.poll_node(cx, node);
        self.tell_decisions_to(cx, node);
    }

    pub(crate) fn tell_decisions_to(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let owed = self.decisions.iter();
        let owed = owed.filter(|(_, decision)| decision.is_owed_to(node));
        let owed: Vec<TxnId> = owed.map(|(txn, _)| *txn).collect();
        for txn in owed {
            self.tell_decision(cx, txn);
        }
    }
}
