//! The coordinator: a commit that another shard has in its hands, and what is not known of it.
//!
//! A transaction whose writers are shards of one other node commits there with one record. It is
//! *entrusted* to one of them, the lead; the coordinator learns the outcome from its answer. At
//! home it has at most read, and what it read stays locked until the outcome cannot change any
//! more:
//!
//! ```text
//! entrusted ──answer──────────────> ended, locks go
//!           ──silence, cancel─────> Unknown to the client, unsettled here: the lead is told to
//!                                   give up and asked until it says that it has ended
//! ```
//!
//! If the coordinator's node dies, its read locks die with it. So the lead commits only at a
//! timestamp not above the durable bound of the coordinator's clock: whatever the next life of
//! that node commits lies above, and a lead that has seen some of it has a clock that keeps it from
//! committing. Then the lead hands the commit back, and it takes two phases (rule C10).

use crate::coord::{Coord, Phase, Purpose};
use crate::message::{Body, Decide, Finish, Share, Trust};
use crate::timers::Timer;
use crate::{Cx, Fault, TwoPhase};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{NodeId, ShardId, Ts, TxnId};
use txn::{Op, OpId, Outcome, Resend};

/// A commit whose outcome the client was not told: the lead may still do it.
#[derive(Debug)]
pub(crate) struct Unsettled {
    /// The lead.
    pub(crate) shard: ShardId,
    /// The visit that ends.
    visit: u64,
    attempt: u32,
    resend: Resend,
}

/// What the lead may draw between its look at the bound and its commit: a few ticks.
const SLACK: u64 = 1 << 16;

/// One request that hands a commit over.
pub(crate) struct Handover {
    pub(crate) id: OpId,
    pub(crate) lead: ShardId,
    pub(crate) planned: u64,
    /// The last operation, which the lead does before.
    pub(crate) op: Option<Op>,
}

impl Coord {
    /// The shard that has the commit in its hands.
    pub(crate) fn lead(&self) -> Option<(ShardId, Purpose)> {
        let commits = |purpose| matches!(purpose, Purpose::Commit | Purpose::OpCommit);
        let mut requests = self.outstanding.iter();
        let found = requests.find(|request| commits(request.purpose))?;
        Some((found.shard, found.purpose))
    }
}

impl TwoPhase {
    /// Whether the commit may be entrusted to `lead`: all that take part but the coordinator's
    /// shard are on its node, which is known, and time is left until the bound.
    pub(crate) fn may_entrust(&self, cx: &Cx<'_>, txn: TxnId, lead: ShardId) -> bool {
        let coord = &self.coords[&txn];
        let mut others = coord.members.iter().filter(|member| {
            member.shard != txn.shard
                && member.shard != lead
                && (member.stateful || !member.queue.is_empty())
        });
        if !self.is_remote(lead) {
            // Its shards promise to the coordinator, which costs the same.
            return others.next().is_none();
        }
        // A commit must not be done twice by two lives of the lead.
        let acquainted = self.peers.knows(lead.node());
        let in_time = self.commit_before(cx, txn, lead) > cx.clock.last();
        acquainted && in_time && others.all(|member| member.shard.node() == lead.node())
    }

    /// The last timestamp at which `lead` may commit.
    fn commit_before(&self, cx: &Cx<'_>, txn: TxnId, lead: ShardId) -> Ts {
        let reads_here = self.parts.contains_key(&txn) && !self.is_faulty(Fault::NoBound);
        if self.is_remote(lead) && reads_here {
            Ts(cx.clock_bound.0.saturating_sub(SLACK))
        } else {
            Ts::MAX
        }
    }

    /// Sends the commit to its lead, with what it must know of the other shards of its node.
    pub(crate) fn entrust(&mut self, cx: &mut Cx<'_>, txn: TxnId, handover: Handover) {
        let Handover {
            id,
            lead,
            planned,
            op,
        } = handover;
        let before = self.commit_before(cx, txn, lead);
        let coord = self.coords.of(txn);
        coord.phase = Phase::Entrusted;
        let mut shares = Vec::new();
        for member in &mut coord.members {
            let aside = member.shard == txn.shard || member.shard == lead;
            if aside || (!member.stateful && member.queue.is_empty()) {
                continue;
            }
            if member.visit == 0 {
                member.visit = self.visits_out.entry(member.shard).or_default().begin();
            }
            member.stateful = true;
            member.wrote |= !member.queue.is_empty();
            shares.push(Share {
                shard: member.shard,
                visit: member.visit,
                acked: member.seq,
                planned: member.queue_planned,
                // They stay queued here in case the commit is handed back.
                writes: member.queue.clone(),
            });
        }
        let purpose = match op {
            Some(_) => Purpose::OpCommit,
            None => Purpose::Commit,
        };
        let finish = Finish::Commit(Box::new(Trust { before, shares }));
        self.send_request(cx, txn, lead, id, planned, op, finish, purpose);
    }

    /// A commit in one phase will not be answered. Its lead gives up what it still can; until it
    /// says so, what was read here stays locked.
    pub(crate) fn end_unknown(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let reads_here = self.parts.contains_key(&txn) && !self.is_faulty(Fault::ForgetsUnsettled);
        let coord = self.coords.of(txn);
        if let (true, Some((shard, _))) = (reads_here, coord.lead()) {
            let attempt = coord.options.attempt;
            let member = coord.member(shard);
            // It is not told in passing, but asked.
            member.stateful = false;
            let unsettled = Unsettled {
                shard,
                visit: member.visit,
                attempt,
                resend: Resend::new(cx.now, self.settings.pauses()),
            };
            self.unsettled.insert(txn, unsettled);
            self.ask_unsettled(cx, txn);
        }
        self.tell_abort(cx, txn);
        self.end_txn(cx, txn, Outcome::Unknown);
    }

    /// Tells the lead to give up and asks it to say that it has; again after a pause.
    pub(crate) fn ask_unsettled(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(unsettled) = self.unsettled.get(&txn) else {
            return;
        };
        let (shard, attempt) = (unsettled.shard, unsettled.attempt);
        let decide = Decide::new(unsettled.visit, None, true);
        self.say(cx, shard, txn, attempt, Body::Decide(decide));
        if self.is_remote(shard) {
            let unsettled = self.unsettled.get_mut(&txn).expect("looked up above");
            unsettled.resend.defer(cx.now);
            let at = Some(unsettled.resend.again_at());
            self.timers.set(Timer::Unsettled(txn), at);
        }
    }

    /// The pause is over.
    pub(crate) fn on_unsettled_timer(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let pauses = self.settings.pauses();
        if let Some(unsettled) = self.unsettled.get_mut(&txn) {
            unsettled.resend.repeat(cx.now, pauses);
        }
        self.ask_unsettled(cx, txn);
    }

    /// A new life of `node` knows what became of the commits that a former one had in hand, and
    /// its clock is past them: it is asked at once.
    pub(crate) fn ask_unsettled_of(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let there = self.unsettled.iter();
        let there = there.filter(|(_, unsettled)| unsettled.shard.node() == node);
        let there: Vec<TxnId> = there.map(|(txn, _)| *txn).collect();
        for txn in there {
            self.ask_unsettled(cx, txn);
        }
    }

    /// The lead has committed it or never will; the clock here is past the commit, if there was
    /// one. So others may change what was read.
    pub(crate) fn on_settled(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        let asked = self.unsettled.get(&txn);
        if asked.is_none_or(|unsettled| unsettled.shard != from) {
            return;
        }
        let unsettled = self.unsettled.remove(&txn).expect("just seen");
        self.timers.set(Timer::Unsettled(txn), None);
        self.close_visit(from, unsettled.visit);
        self.rollback(cx, txn);
    }
}
