//! Commits that promises make, so that the client is answered before the decision is durable.
//!
//! ```text
//! coordinator ──Prepare, all named──> participants    its own promise, in parallel
//!             <──────votes, durable── participants    all have promised: the commit is made
//! client <────answer when the own promise is durable
//!             ──Decide, when the decision is durable──> participants
//! ```
//!
//! Every promise names all shards that write, those of other nodes that have read under locks, and
//! the coordinator's. They commit exactly if all of these have promised durably, at the largest
//! timestamp of these promises. So a coordinator that
//! has lost its decision asks all of them (rules C17 to C19):
//!
//! ```text
//! own promise, no decision ──Poll──> the other named ──all have promised──> decision, as before
//!                                                    └─one has not────────> abort
//! no promise of its own    ──────────────────────────────────────────────> abort, as ever
//! ```
//!
//! An abort is true only when somebody named will never promise: a participant that has said so, or
//! the coordinator, which then ends its own promise durably first. A participant that has not
//! promised in one life of the coordinator never does later: it ignores messages of that life when
//! it knows the next one, and its own next life refuses them.

use crate::coord::{Ballot, Member};
use crate::message::{Body, Decide, Prepare, Vote};
use crate::outcome::makes_commits;
use crate::part::Promise;
use crate::timers::Timer;
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{NodeId, Planted, Position, ShardId, Ts, TxnId, is_planted};
use journal::DecisionRef;
use txn::Resend;

/// An abort that becomes true when the end of this coordinator's promise is durable. Until then
/// nobody but the caller is told, and the locks stay.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Position of the record that ends the promise.
    pub(crate) position: Position,
    attempt: u32,
    /// Participants to be told, with the visits that end.
    members: Vec<(ShardId, u64)>,
}

/// A transaction of a former life that this coordinator has promised and may have answered.
#[derive(Debug)]
pub(crate) struct Poll {
    /// Named participants without an answer.
    pub(crate) missing: Vec<ShardId>,
    /// Largest timestamp of the promises that are known.
    commit_ts: Ts,
    resend: Resend,
}

/// Commit timestamp of a transaction whose promises make the commit: all that `own` names have
/// promised durably below `before`.
pub(crate) fn made_by_promises(
    own: &Promise,
    votes: &[(ShardId, u64, Vote)],
    before: Ts,
) -> Option<Ts> {
    if !own.durable || own.participants.is_empty() {
        return None;
    }
    let mut commit_ts = Ts::ZERO;
    for named in &own.participants {
        let (.., vote) = votes.iter().find(|(shard, ..)| shard == named)?;
        let counts = vote.durable || is_planted(Planted::EarlyReadersForget);
        if !counts || !makes_commits(vote, before) {
            return None;
        }
        commit_ts = commit_ts.max(vote.prepare_ts);
    }
    Some(commit_ts)
}

impl<C: Control> Machine<C> {
    /// What the participants are asked to promise. The promises make the commit if another node
    /// writes, if the lives of all writers' nodes are known, and if nobody has voted before.
    /// `rides`: an operation rides along; `rides_to_write`: no operation rides that only reads, so
    /// that all was read before the first promise.
    pub(crate) fn call_for(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        writers: Vec<ShardId>,
        rides: bool,
        rides_to_write: bool,
    ) -> Prepare {
        let mut prepare = Prepare::to_be_decided(writers);
        // What is locked stays as it is, so what was read must, too, until all have voted.
        prepare.only_reads = C::JUDGES
            && prepare.participants.is_empty()
            && !self.coords[&txn].locks
            && !self.has_any_writes(txn);
        let before = self.early_limit(cx);
        let writers = &prepare.participants;
        let coord = self.coords.of(txn);
        let remote = |shard: &ShardId| shard.node() != txn.shard.node();
        // What is locked in this node it forgets together with the decision. What is locked
        // elsewhere may be lost alone, so who has only read promises, too.
        let readers: Vec<ShardId> = coord
            .members
            .iter()
            .filter(|m| m.stateful && m.shard != txn.shard && !writers.contains(&m.shard))
            .map(|m| m.shard)
            .filter(|shard| C::JUDGES || remote(shard))
            .collect();
        // Nobody could tell later what they have found.
        let all_write = !C::JUDGES || readers.is_empty();
        let waits = |m: &Member| !m.queue.is_empty();
        prepare.settled = !rides && !coord.options.urgent && !coord.members.iter().any(waits);
        let known = |shard: &&ShardId| self.peers.knows(shard.node());
        let early = coord.options.early_answer
            && rides_to_write
            && all_write
            && writers.iter().any(remote)
            && writers
                .iter()
                .chain(&readers)
                .filter(|shard| remote(shard))
                .all(|shard| known(&shard))
            && coord.members.iter().all(|m| m.ballot == Ballot::NotAsked);
        coord.before = if early { before } else { Ts::ZERO };
        if !early {
            return prepare;
        }
        prepare.before = before;
        let named = &mut prepare.participants;
        named.extend(readers);
        if is_planted(Planted::EarlyOmitsWriter) {
            named.pop();
        }
        named.push(txn.shard);
        named.sort_unstable();
        named.dedup();
        // Also the coordinator's shard without rows promises: it may refuse later.
        let options = coord.options;
        coord.member(txn.shard);
        self.parts.obtain(txn, options);
        prepare
    }

    /// Whether an abort is not true yet, because all named participants may have promised.
    pub(crate) fn must_refuse(&self, txn: TxnId) -> bool {
        let Some(own) = self.promises.get(&txn) else {
            return false;
        };
        let coord = &self.coords[&txn];
        let has_failed = |member: &Member| {
            let voted = matches!(member.ballot, Ballot::Cast(_));
            !member.stateful && !voted && own.participants.contains(&member.shard)
        };
        let refused = coord.refused || coord.members.iter().any(has_failed);
        let named = own.durable && !own.participants.is_empty();
        named && !refused && !is_planted(Planted::EarlyAbortNotDurable)
    }

    /// Ends the own promise durably. The participants are told, and the locks go, when it is.
    pub(crate) fn refuse_first(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let position = self.append_resolved(cx, txn, None);
        self.forced = position;
        if let Some(own) = self.promises.get_mut(&txn) {
            own.durable = false;
        }
        let coord = self.coords.of(txn);
        coord.wait = coord.wait.max(position);
        let attempt = coord.options.attempt;
        let mut members = Vec::new();
        for member in coord.members.iter_mut().filter(|m| m.stateful) {
            if member.shard == txn.shard {
                continue;
            }
            member.stateful = false;
            members.push((member.shard, member.visit));
        }
        let remote = |(shard, _): &&(ShardId, u64)| shard.node() != txn.shard.node();
        let remote = members.iter().filter(remote).count();
        coord.cost.messages_off_path += remote as u32;
        coord.cost.messages_in_node += (members.len() - remote) as u32;
        let refusal = Refusal {
            position,
            attempt,
            members,
        };
        self.refusals.insert(txn, refusal);
    }

    /// The position for which the news of an abort waits.
    pub(crate) fn refusal_wait(&self, txn: TxnId) -> Position {
        let refusal = self.refusals.get(&txn);
        refusal.map_or(Position(0), |refusal| refusal.position)
    }

    /// The journal is durable to here: aborts have become true.
    pub(crate) fn end_forced(&mut self, cx: &mut Cx<'_>, durable: Position) {
        if self.forced <= durable {
            self.forced = Position(0);
        }
        let due = self
            .refusals
            .iter()
            .filter(|(_, it)| it.position <= durable);
        let due: Vec<TxnId> = due.map(|(txn, _)| *txn).collect();
        for txn in due {
            let refusal = self.refusals.remove(&txn).expect("just listed");
            for (shard, visit) in refusal.members {
                let decide = Decide::new(visit, None, false);
                self.say(cx, shard, txn, refusal.attempt, Body::Decide(decide));
                self.close_visit(shard, visit);
            }
            self.rollback(cx, txn);
        }
    }

    /// This coordinator has restarted, has promised and knows no decision: the promises of all that
    /// are named make the commit, or not.
    pub(crate) fn begin_poll(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        if is_planted(Planted::EarlyPresumesAbort) {
            self.rollback(cx, txn);
            return;
        }
        let own = &self.promises[&txn];
        let others = own.participants.iter().copied();
        let poll = Poll {
            missing: others.filter(|shard| *shard != self.shard).collect(),
            commit_ts: own.prepare_ts,
            resend: Resend::new(cx.now, self.settings.pauses()),
        };
        self.polls.insert(txn, poll);
        self.poll(cx, txn, None);
    }

    /// Asks the named participants that have not answered: all, or those of one node.
    fn poll(&mut self, cx: &mut Cx<'_>, txn: TxnId, node: Option<NodeId>) {
        let (Some(poll), Some(own)) = (self.polls.get_mut(&txn), self.promises.get(&txn)) else {
            return;
        };
        poll.resend.defer(cx.now);
        let (at, missing) = (poll.resend.again_at(), poll.missing.clone());
        let attempt = own.attempt;
        self.timers.set(Timer::Poll(txn), Some(at));
        for shard in missing {
            if node.is_none_or(|node| shard.node() == node) {
                self.say(cx, shard, txn, attempt, Body::Poll);
            }
        }
    }

    /// The pause is over.
    pub(crate) fn on_poll_timer(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let pauses = self.settings.pauses();
        if let Some(poll) = self.polls.get_mut(&txn) {
            poll.resend.repeat(cx.now, pauses);
        }
        self.poll(cx, txn, None);
    }

    /// A node can be reached again, or has begun a new life: its shards are asked at once.
    pub(crate) fn poll_node(&mut self, cx: &mut Cx<'_>, node: NodeId) {
        let there = |poll: &Poll| poll.missing.iter().any(|shard| shard.node() == node);
        let asks = self.polls.iter().filter(|(_, poll)| there(poll));
        let asks: Vec<TxnId> = asks.map(|(txn, _)| *txn).collect();
        for txn in asks {
            self.poll(cx, txn, Some(node));
        }
    }

    /// A restarted coordinator asks. What is not promised now, never will be: messages of the
    /// coordinator's former life are ignored.
    pub(crate) fn on_poll(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId, attempt: u32) {
        let promise = self.promises.get(&txn);
        let counts = |p: &&Promise| p.durable && p.attempt == attempt && !p.participants.is_empty();
        let promise = promise.filter(counts);
        let wait = promise.map_or(Position(0), |promise| promise.position);
        let answer = Body::Polled(promise.map(|promise| promise.prepare_ts));
        let message = self.message(cx, txn, attempt, answer);
        self.post(cx, from, message, wait);
    }

    /// A named participant has answered.
    pub(crate) fn on_polled(
        &mut self,
        cx: &mut Cx<'_>,
        from: ShardId,
        txn: TxnId,
        promised: Option<Ts>,
    ) {
        let Some(poll) = self.polls.get_mut(&txn) else {
            return;
        };
        match promised {
            Some(prepare_ts) => {
                poll.commit_ts = poll.commit_ts.max(prepare_ts);
                poll.missing.retain(|shard| *shard != from);
                if poll.missing.is_empty() {
                    self.end_poll(cx, txn, true);
                }
            }
            None => self.end_poll(cx, txn, false),
        }
    }

    /// All named have promised (`commits`), or one has not.
    fn end_poll(&mut self, cx: &mut Cx<'_>, txn: TxnId, commits: bool) {
        let poll = self.polls.remove(&txn).expect("the caller has looked");
        self.timers.set(Timer::Poll(txn), None);
        let own = &self.promises[&txn];
        let attempt = own.attempt;
        let others = own.participants.iter().copied();
        let others: Vec<ShardId> = others.filter(|shard| *shard != self.shard).collect();
        if !commits {
            for shard in others {
                let decide = Decide::new(0, None, false);
                self.say(cx, shard, txn, attempt, Body::Decide(decide));
            }
            self.rollback(cx, txn);
            return;
        }
        let commit_ts = poll.commit_ts;
        let decision = DecisionRef {
            txn,
            commit_ts,
            participants: &others,
            writes: &[],
            chunks: &[],
        };
        let scratch = &mut self.scratch;
        let position = cx.append(scratch, |out| journal::encode_decision(decision, out));
        cx.clock.merge(commit_ts);
        let owed = others.into_iter().map(|shard| (shard, 0)).collect();
        self.owe_decision(cx, txn, commit_ts, position, owed);
        self.keep_promise(cx, txn, commit_ts, position);
    }
}
