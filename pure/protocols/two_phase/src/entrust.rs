//! The coordinator: commits that another shard has in its hands, also those of unknown outcome.
//!
//! A transaction whose writers are shards of one other node commits there with one record. The
//! coordinator *entrusts* the transaction to one of them, the lead, and learns the outcome from its
//! answer. At the coordinator the transaction has at most read; what it read stays locked until the
//! outcome is settled:
//!
//! ```text
//! entrusted ──answer──────────────> ended, locks go
//!           ──silence, cancel─────> Unknown to the client, unsettled here: the lead is told to
//!                                   give up and asked until it says that it has ended
//! ```
//!
//! If the coordinator's node dies, its read locks die with it. So the lead commits only at a
//! timestamp not above the bound of the coordinator's clock that is durable when the commit leaves
//! it. The next life of that node commits above the bound. A lead that has seen such a commit has a
//! clock above the bound too, so it hands the commit back, which then takes two phases (rule C10).

use crate::control::Guard;
use crate::coord::{Coord, Phase, Purpose};
use crate::message::{Body, Decide, Finish, Share, Trust};
use crate::timers::Timer;
use crate::{Control, Cx, Fault, Machine};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{NodeId, ShardId, Ts, TxnId};
use txn::{AbortReason, Op, OpId, Outcome, Resend};

/// A commit whose outcome the client was not told: the lead may still commit.
#[derive(Debug)]
pub(crate) struct Unsettled {
    /// The lead.
    pub(crate) shard: ShardId,
    /// Number of the visit that ends.
    visit: u64,
    attempt: u32,
    resend: Resend,
}

/// Timestamps kept free below the bound. Between its check of the bound and its commit, the lead
/// draws a few of them.
const SLACK: u64 = 1 << 16;

/// A request that hands a commit to its lead.
pub(crate) struct Handover {
    pub(crate) id: OpId,
    pub(crate) lead: ShardId,
    pub(crate) planned: u64,
    /// The last operation, which the lead runs first.
    pub(crate) op: Option<Op>,
}

impl Coord {
    /// The shard that has the commit in its hands, and what its answer is for.
    pub(crate) fn lead(&self) -> Option<(ShardId, Purpose)> {
        let commits = |purpose| matches!(purpose, Purpose::Commit | Purpose::OpCommit);
        let mut requests = self.outstanding.iter();
        let found = requests.find(|request| commits(request.purpose))?;
        Some((found.shard, found.purpose))
    }
}

/// What the shard's clock would show if it were asked.
pub(crate) fn present(cx: &Cx<'_>) -> Ts {
    cx.clock.last().max(Ts::from_time(cx.now))
}

impl<C: Control> Machine<C> {
    /// Whether the commit may be entrusted to `lead`: all participants but the coordinator's shard
    /// are on its node, and that node is known.
    pub(crate) fn may_entrust(&self, txn: TxnId, lead: ShardId) -> bool {
        let coord = &self.coords[&txn];
        let mut others = coord.members.iter().filter(|member| {
            member.shard != txn.shard
                && member.shard != lead
                && (member.stateful || !member.queue.is_empty())
        });
        if !self.is_remote(lead) {
            // The coordinator's own shards promise to it, which costs the same.
            return others.next().is_none();
        }
        // Two lives of the lead must not commit twice.
        let acquainted = self.peers.knows(lead.node());
        acquainted && others.all(|member| member.shard.node() == lead.node())
    }

    /// The last timestamp at which `lead` may commit.
    fn commit_before(&self, cx: &mut Cx<'_>, txn: TxnId, lead: ShardId) -> Ts {
        let reads_here = self.parts.contains_key(&txn) && !self.is_faulty(Fault::NoBound);
        match self.is_remote(lead) && reads_here {
            true => self.clock_limit(cx),
            false => Ts::MAX,
        }
    }

    /// The next life of this node draws above this, and so does every shard that has heard of it.
    pub(crate) fn clock_limit(&self, cx: &mut Cx<'_>) -> Ts {
        if self.is_faulty(Fault::NoBound) {
            return Ts::MAX;
        }
        let bound = cx.clock_bound.tell(present(cx));
        Ts(bound.0.saturating_sub(SLACK))
    }

    /// Sends the commit to its lead, with what it must know of the other shards of its node.
    ///
    /// # Errors
    /// What was read at home has changed; nothing was sent.
    pub(crate) fn entrust(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        handover: Handover,
    ) -> Result<(), AbortReason> {
        self.judge(cx, txn)?;
        let Handover {
            id,
            lead,
            planned,
            op,
        } = handover;
        let before = self.commit_before(cx, txn, lead);
        if self.control.has_read(txn) {
            let coord = &self.coords[&txn];
            let writes = coord.members.iter().any(|m| !m.queue.is_empty());
            self.control.guard(Guard {
                by: coord.options.priority(txn),
                settled: op.is_none() && !writes,
            });
        }
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
            coord.locks = true;
            member.wrote |= !member.queue.is_empty();
            shares.push(Share {
                shard: member.shard,
                visit: member.visit,
                acked: member.seq,
                planned: member.queue_planned,
                // The writes stay queued here in case the commit is handed back.
                writes: member.queue.clone(),
            });
        }
        let purpose = match op {
            Some(_) => Purpose::OpCommit,
            None => Purpose::Commit,
        };
        let finish = Finish::Commit(Box::new(Trust { before, shares }));
        self.send_request(cx, txn, lead, id, planned, op, finish, purpose);
        Ok(())
    }

    /// The operation on which the commit rides is cancelled. If a lead has both in its hands, it is
    /// told to give up, until it answers. Returns whether that is so.
    pub(crate) fn call_off_ride(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> bool {
        let Some(coord) = self.coords.get_mut(&txn) else {
            return false;
        };
        let Some((lead, Purpose::OpCommit)) = coord.lead() else {
            return false;
        };
        if !coord.called_off {
            coord.called_off = true;
            let attempt = coord.options.attempt;
            self.say(cx, lead, txn, attempt, Body::CallOff);
        }
        true
    }

    /// A commit in one phase will not be answered. Its lead gives up what it still can; until the
    /// lead says so, what the transaction read here stays locked.
    pub(crate) fn end_unknown(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let reads_here = self.parts.contains_key(&txn) && !self.is_faulty(Fault::ForgetsUnsettled);
        let coord = self.coords.of(txn);
        if let (true, Some((shard, _))) = (reads_here, coord.lead()) {
            let attempt = coord.options.attempt;
            let member = coord.member(shard);
            // The lead is asked, not only told.
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

    /// Tells the lead to give up and asks for an answer, repeatedly.
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

    /// A new life of `node` knows how the commits of its former life ended, and its clock is past
    /// them: this shard asks at once.
    pub(crate) fn ask_unsettled_of(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let there = self.unsettled.iter();
        let there = there.filter(|(_, unsettled)| unsettled.shard.node() == node);
        let there: Vec<TxnId> = there.map(|(txn, _)| *txn).collect();
        for txn in there {
            self.ask_unsettled(cx, txn);
        }
    }

    /// The lead has committed or never will, and the clock here is past the commit. So other
    /// transactions may change what was read here.
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
