//! Sending, receiving, and what follows when a node comes back.

use crate::message::{Body, Message};
use crate::{Cx, Leap};
use alloc::vec::Vec;
use base::{NodeId, Position, ShardId, TxnId};
use txn::{AbortReason, Head, Life};

impl Leap {
    /// What a message to `to` says of a position: to another node, nothing.
    pub(crate) fn in_node(&self, to: ShardId, position: Position) -> Position {
        match self.is_remote(to) {
            true => Self::NOTHING,
            false => position,
        }
    }

    /// Sends a message that waits for nothing. Returns the number of frames that it adds.
    pub(crate) fn say(&mut self, cx: &mut Cx<'_>, to: ShardId, body: Body) -> u32 {
        self.post(cx, to, body, Self::NOTHING)
    }

    /// As [`Leap::say`], for a message that waits for `wait`. One to this shard ends the step.
    pub(crate) fn post(&mut self, cx: &mut Cx<'_>, to: ShardId, body: Body, wait: Position) -> u32 {
        self.post_after(cx, to, body, wait, Self::NOTHING)
    }

    /// As [`Leap::post`], for a message that waits for `wait_in_node` if it stays in the node.
    pub(crate) fn post_after(
        &mut self,
        cx: &mut Cx<'_>,
        to: ShardId,
        body: Body,
        wait: Position,
        wait_in_node: Position,
    ) -> u32 {
        if to == self.shard {
            self.loopback.push_back(body);
            return 0;
        }
        let head = cx.head();
        cx.post(to, Message { head, body }, wait, wait_in_node)
    }

    pub(crate) fn receive(&mut self, cx: &mut Cx<'_>, from: ShardId, message: Message) {
        let Head {
            incarnation, clock, ..
        } = message.head;
        match cx.life_of(&self.peers, from, &message.head) {
            Life::Former => return,
            Life::Present => {}
            Life::New { .. } => self.peer_restarted(cx, from.node(), incarnation),
        }
        cx.clock.merge(clock);
        self.on_body(cx, from, incarnation, message.body);
    }

    pub(crate) fn on_body(&mut self, cx: &mut Cx<'_>, from: ShardId, incarnation: u32, body: Body) {
        match body {
            Body::OwnerRequest(request) => self.on_owner_request(cx, from, incarnation, *request),
            Body::TransferRequest(request) => self.on_transfer_request(cx, from, *request),
            Body::Response(response) => self.on_response(cx, from, *response),
            Body::Refused(refused) => self.on_refused(cx, *refused),
            Body::Working(seq, at) => self.on_working(cx, seq, at),
            Body::Waiting(otag) => self.home.grants.hear(otag, cx.now),
            Body::Inform(inform) => self.on_inform(cx, from, &inform),
            Body::Stranded(otags) => self.on_stranded(cx, from, &otags),
            Body::Settled(otags) => self.requester.settled(from, &otags),
            Body::ReleaseAck(ack) => self.on_release_ack(cx, from, ack),
            Body::Unacked(keys) => self.on_unacked(cx, from, keys),
            Body::Forget(keys) => self.on_forget(cx, keys),
            Body::Cancel(key, otag) => self.on_cancel(cx, from, &key, otag),
            Body::Read(request) => self.on_read(cx, from, *request),
            Body::Reply(reply) => self.on_reply(cx, from, *reply),
            Body::Reading(number) => self.on_reading(cx, number),
            Body::Fetch(fetch) => self.on_fetch(cx, from, *fetch),
            Body::Fetched(fetched) => self.on_fetched(cx, from, incarnation, *fetched),
            Body::Share(share) => self.on_share(cx, from, *share),
            Body::Recall(recall) => self.on_recall(cx, from, *recall),
            Body::Recalled(recalled) => self.on_recalled(cx, from, *recalled),
            Body::Entrust(entrust) => self.on_entrust(cx, from, *entrust),
            Body::Performed(performed) => self.on_performed(cx, from, *performed),
            Body::Resolve(resolve) => self.on_resolve(cx, from, resolve),
            Body::Applied(txn) => self.on_applied(cx, from, txn),
            Body::Undecided(txn) => self.on_undecided(cx, from, txn),
            Body::StillOpen(txn, at) => self.on_still_open(cx, txn, at),
            Body::Confirm(confirm) => self.on_confirm(cx, from, confirm),
            Body::Confirmed { txn, holds } => self.on_confirmed(cx, from, txn, holds),
            Body::Release(txn) => {
                self.release_errand(cx, txn);
                self.end_visit(cx, txn);
            }
            Body::Inquire(txn) => self.on_inquire(cx, from, txn),
            Body::Running(txn) => self.visits.defer(txn, cx.now),
            Body::Ask => self.on_ask(cx, from, incarnation),
            Body::Claims(claims) => self.on_claims(cx, from, incarnation, *claims),
            Body::Verdicts(verdicts) => self.on_verdicts(cx, from, *verdicts),
        }
    }

    /// A node has a new incarnation: what its former life had in memory is lost.
    pub(crate) fn peer_restarted(&mut self, cx: &mut Cx<'_>, node: NodeId, incarnation: u32) {
        if node == self.shard.node() {
            return;
        }
        let Life::New { first } = self.peers.meet(node, incarnation) else {
            return;
        };
        let dead = |txn: &TxnId| txn.shard.node() == node && txn.incarnation < incarnation;
        let visits = self.visits.iter().map(|(txn, _)| txn);
        let visits: Vec<TxnId> = visits.filter(dead).collect();
        for txn in visits {
            self.end_visit(cx, txn);
        }
        self.give_up_errands(node, incarnation);
        self.lose_errands(cx, node, incarnation);
        self.ask_lost_lodgers(cx, node, incarnation);
        if first {
            return;
        }
        self.forget_requests(node, incarnation);
        self.forget_readers(cx, node, incarnation);
        self.rejoin.peer_restarted(node, incarnation);
        let mut lost = self.coord.lost_confirms(node, incarnation);
        let open = self
            .coord
            .txns
            .iter()
            .filter(|(_, txn)| txn.outcome.is_none());
        lost.extend(open.filter_map(|(id, txn)| Some((*id, txn.lost_at(node, incarnation)?))));
        // Of one transaction the confirmations come first.
        lost.sort_by_key(|(txn, _)| *txn);
        for (txn, shard) in lost {
            self.abort_txn(cx, txn, AbortReason::ParticipantLost(shard));
        }
    }

    /// Goes on with everything that can, until nothing can. Call it at the end of every step.
    pub(crate) fn pump(&mut self, cx: &mut Cx<'_>) {
        loop {
            if let Some(body) = self.loopback.pop_front() {
                self.on_body(cx, self.shard, cx.incarnation, body);
            } else if let Some(key) = self.locks.take_exposed() {
                self.expose_request(cx, &key);
            } else if let Some(key) = self.home.dispatch.take_exposed() {
                self.expose_turn(cx, &key);
            } else if self.locks.has_events() {
                self.take_lock_events(cx);
            } else if self.home.dispatch.has_events() {
                self.take_dispatch_events(cx);
            } else if let Some(job) = self.jobs.pop_ready() {
                self.advance(cx, job);
            } else {
                return;
            }
        }
    }
}
