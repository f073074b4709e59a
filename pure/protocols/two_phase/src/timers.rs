//! Timers: messages are repeated, coordinators asked, silent shards given up.
//!
//! Only messages to other nodes have timers. A database of one node sets none, except lock timeouts
//! where a client set them.

use crate::coord::Purpose;
use crate::message::Body;
use crate::part::{Stage, coordinator_node};
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{Time, TxnId};
use txn::{AbortReason, Pauses};

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    /// A coordinator awaits answers.
    Coord(TxnId),
    /// A participant awaits its coordinator.
    Part(TxnId),
    /// A decision awaits acknowledgements.
    Decision(TxnId),
    /// An entrusted commit of unknown outcome awaits its end.
    Unsettled(TxnId),
    /// A restarted coordinator awaits answers about a transaction.
    Poll(TxnId),
}

impl<C: Control> Machine<C> {
    pub(crate) fn run_timers(&mut self, cx: &mut Cx<'_>) {
        while let Some(timer) = self.timers.take_due(cx.now) {
            match timer {
                Timer::Coord(txn) => self.on_coord_timer(cx, txn),
                Timer::Part(txn) => self.inquire(cx, txn),
                Timer::Decision(txn) => {
                    if let Some(decision) = self.decisions.get_mut(&txn) {
                        decision.resend.repeat(cx.now, self.settings.pauses());
                    }
                    self.tell_decision(cx, txn);
                }
                Timer::Unsettled(txn) => self.on_unsettled_timer(cx, txn),
                Timer::Poll(txn) => self.on_poll_timer(cx, txn),
            }
        }
    }

    /// Sets the coordinator's timer to its earliest repetition.
    pub(crate) fn arm_coord(&mut self, txn: TxnId) {
        let Some(coord) = self.coords.get(&txn) else {
            return;
        };
        let remote = coord
            .outstanding
            .iter()
            .filter(|request| request.message.is_some());
        let at = remote.map(|request| request.resend.again_at()).min();
        self.timers.set(Timer::Coord(txn), at);
    }

    /// As [`Machine::arm_coord`], when a request was sent that is repeated at `at`. There may be
    /// hundreds, so the others are not looked at.
    pub(crate) fn arm_sent(&mut self, txn: TxnId, at: Time) {
        let timer = Timer::Coord(txn);
        if self.timers.at(timer).is_none_or(|set| at < set) {
            self.timers.set(timer, Some(at));
        }
    }

    /// As [`Machine::arm_coord`], when a request was answered. Mostly the next one was sent in the
    /// same step and is repeated at the same time.
    pub(crate) fn arm_answered(&mut self, txn: TxnId) {
        let (Some(set), Some(coord)) = (self.timers.at(Timer::Coord(txn)), self.coords.get(&txn))
        else {
            return;
        };
        let mut others = coord.outstanding.iter();
        if !others.any(|other| other.message.is_some() && other.resend.again_at() == set) {
            self.arm_coord(txn);
        }
    }

    fn on_coord_timer(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let settings = self.settings;
        let Some(coord) = self.coords.get_mut(&txn) else {
            return;
        };
        let (wait, called_off) = (coord.wait, coord.called_off);
        let (mut again, mut silent) = (Vec::new(), None);
        for request in &mut coord.outstanding {
            let Some(message) = &request.message else {
                continue;
            };
            if request.resend.again_at() > cx.now {
                continue;
            }
            let timeout_us = settings.request_timeout_us;
            if request.resend.is_silent(cx.now, timeout_us) {
                silent = Some((request.shard, request.purpose));
                break;
            }
            request.resend.repeat(cx.now, settings.pauses());
            again.push((request.shard, message.clone()));
        }
        if let Some((shard, purpose)) = silent {
            self.give_up(cx, txn, purpose, AbortReason::Unreachable(shard));
            return;
        }
        for (shard, mut message) in again {
            message.head.clock = cx.clock.last();
            if let Body::Request(request) = &mut message.body {
                let floor = self
                    .visits_out
                    .get(&shard)
                    .map_or(0, |visits| visits.floor());
                request.visit_floor = floor;
            }
            let attempt = message.attempt;
            self.post(cx, shard, message, wait);
            if called_off {
                self.say(cx, shard, txn, attempt, Body::CallOff);
            }
        }
        self.arm_coord(txn);
    }

    /// An answer will not come. The purpose of the request decides whether that is an abort.
    pub(crate) fn give_up(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        purpose: Purpose,
        reason: AbortReason,
    ) {
        let Some(coord) = self.coords.get(&txn) else {
            return;
        };
        let wrote = coord.members.iter().any(|member| member.wrote);
        let in_its_hands = match purpose {
            // Whether the operation would have written is not known here.
            Purpose::OpCommit => true,
            Purpose::Commit => wrote,
            Purpose::Op | Purpose::Prepare | Purpose::OpPrepare => false,
        };
        if in_its_hands {
            self.end_unknown(cx, txn);
        } else {
            self.abort_txn(cx, txn, reason);
        }
    }

    /// Sets when the participant asks its coordinator, if the coordinator is on another node.
    pub(crate) fn arm_part(&mut self, now: Time, txn: TxnId) {
        if coordinator_node(txn) == self.shard.node() {
            return;
        }
        let settings = self.settings;
        let here = self.shard;
        let Some(part) = self.parts.get(&txn) else {
            return;
        };
        if part.lead.is_some_and(|lead| lead != here) {
            // The lead tells, and within a node no message is lost.
            return;
        }
        let first_us = match part.stage {
            Stage::Active | Stage::Voted => settings.inquire_us,
            Stage::Promised => settings.resend_us,
        };
        let longest_us = settings.resend_max_us;
        let pauses = Pauses {
            first_us,
            longest_us,
        };
        let at = Some(now.after(pauses.before(part.inquiries)));
        self.timers.set(Timer::Part(txn), at);
    }

    /// Asks the coordinator what has become of the transaction.
    pub(crate) fn inquire(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(part) = self.parts.get_mut(&txn) else {
            return;
        };
        part.inquiries += 1;
        let attempt = part.options.attempt;
        self.say(cx, txn.shard, txn, attempt, Body::Inquire);
        self.arm_part(cx.now, txn);
    }
}
