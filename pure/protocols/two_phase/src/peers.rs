//! Nodes that cannot be reached, and come back in the same life.
//!
//! The host reports a lost node within a second ([`txn::Protocol::on_peer_down`]). From then on
//! this shard does not wait for messages of that node:
//!
//! | this shard | does |
//! |---|---|
//! | coordinates, and awaits an operation or a vote | rolls back ([`AbortReason::Unreachable`]) |
//! | coordinates, and has a vote that guards what was read | rolls back |
//! | coordinates, and has entrusted the commit | waits `reconnect_us`, then does not know |
//! | takes part and has not voted | rolls its part back, and refuses what comes for it later |
//! | gets a request that was under way | does not begin it: no message would end it here |
//! | takes part and has voted | keeps its locks until it is told: they are in doubt |
//!
//! A participant may roll back by itself until it has voted. It notes that the visit is over, so a
//! request that was under way does not begin the visit again.
//!
//! When the node is back, all owed messages are sent at once, however long the pauses have become.

use crate::coord::{Member, Purpose};
use crate::part::{Stage, coordinator_node};
use crate::timers::Timer;
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{NodeId, Planted, TxnId, is_planted};
use txn::AbortReason;

impl<C: Control> Machine<C> {
    /// The last connection to `node` is lost.
    pub(crate) fn lose_node(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let waits = is_planted(Planted::OutageWaitedFor);
        if node == self.shard.node() || waits || !self.peers.lose(node, cx.now) {
            return;
        }
        self.give_up_requests(cx, node);
        self.give_up_parts(cx, node);
        self.plan_doubt_look(cx.now);
    }

    fn give_up_requests(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let settings = self.settings;
        let mut lost = Vec::new();
        for (txn, coord) in self.coords.iter_mut() {
            let wrote = coord.members.iter().any(|member| member.wrote);
            let there = |shard: base::ShardId| shard.node() == node;
            let mut own = coord.outstanding.iter_mut().filter(|r| there(r.shard));
            let Some(request) = own.next() else {
                // Its next life would not know what was guarded there (rule A3).
                let guarded = |m: &&Member| there(m.shard) && m.has_guards::<C>();
                if let Some(member) = coord.members.iter().find(guarded) {
                    lost.push((*txn, member.shard, Purpose::Prepare, false));
                }
                continue;
            };
            let in_its_hands = match request.purpose {
                Purpose::OpCommit => true,
                Purpose::Commit => wrote,
                Purpose::Op | Purpose::Prepare | Purpose::OpPrepare => false,
            };
            if in_its_hands {
                let timeout_us = settings.request_timeout_us;
                request
                    .resend
                    .give_up_in(cx.now, settings.reconnect_us, timeout_us);
            }
            lost.push((*txn, request.shard, request.purpose, in_its_hands));
        }
        for (txn, shard, purpose, in_its_hands) in lost {
            if in_its_hands {
                self.arm_coord(txn);
            } else {
                self.give_up(cx, txn, purpose, AbortReason::Unreachable(shard));
            }
        }
    }

    fn give_up_parts(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let here = self.shard;
        let of_node = self.parts.iter().filter(|(txn, part)| {
            let led = part.lead.is_some_and(|lead| lead != here) || part.gathering.is_some();
            coordinator_node(**txn) == node && part.stage == Stage::Active && !led
        });
        let of_node: Vec<(TxnId, u64)> = of_node.map(|(txn, part)| (*txn, part.visit)).collect();
        for (txn, visit) in of_node {
            self.rollback(cx, txn);
            self.end_visit(txn, visit, None);
        }
    }

    /// A connection to `node` is back, and the node is in the life that was known.
    pub(crate) fn regain_node(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let pauses = self.settings.pauses();
        let mut waiting = Vec::new();
        for (txn, coord) in self.coords.iter_mut() {
            let mut found = false;
            for request in &mut coord.outstanding {
                if request.shard.node() == node && request.message.is_some() {
                    request.resend.hear(cx.now);
                    request.resend.hurry(cx.now, pauses);
                    found = true;
                }
            }
            if found {
                waiting.push(*txn);
            }
        }
        for txn in waiting {
            self.arm_coord(txn);
        }
        for decision in self.decisions.values_mut() {
            if decision.is_owed_to(node) {
                decision.resend.restart(cx.now, pauses);
            }
        }
        self.tell_decisions_to(cx, node);
        self.poll_node(cx, node);
        self.ask_unsettled_of(cx, node);
        let owed = self.parts.iter().filter(|(txn, part)| {
            coordinator_node(**txn) == node && part.lead.is_none_or(|lead| lead == self.shard)
        });
        let owed: Vec<TxnId> = owed.map(|(txn, _)| *txn).collect();
        for txn in owed {
            if let Some(part) = self.parts.get_mut(&txn) {
                part.inquiries = 0;
            }
            self.inquire(cx, txn);
        }
        self.run_due(cx);
    }

    /// Runs the timers that are due now, without waiting for the next tick.
    fn run_due(&mut self, cx: &mut Cx<'_>) {
        let first = self.timers.first();
        if first.is_some_and(|(at, timer)| at <= cx.now && matches!(timer, Timer::Coord(_))) {
            self.run_timers(cx);
        }
    }
}
