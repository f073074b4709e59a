//! The coordinator: commit and abort.

use crate::coord::{Ballot, Decision, Phase, Purpose};
use crate::early::made_by_promises;
use crate::entrust::Handover;
use crate::job::{Origin, in_one_node};
use crate::message::{Body, Decide, Finish, Vote};
use crate::records::gathered;
use crate::timers::Timer;
use crate::{Control, Cx, Machine};
use alloc::vec::Vec;
use base::{Planted, Position, ShardId, Ts, TxnId, is_planted};
use journal::Record;
use txn::{AbortReason, Op, OpId, OpReply, OpResult, Outcome, Resend, Submitted};

impl<C: Control> Machine<C> {
    pub(crate) fn commit_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, id: OpId) -> Submitted {
        let own_here = self.parts.contains_key(&txn);
        let own_wrote = self.has_written(txn) || self.promises.contains_key(&txn);
        let coord = self.coords.of(txn);
        if let Some(outcome) = &coord.outcome {
            return Submitted::Ready(OpReply::ended(outcome.clone(), coord.wait));
        }
        let late = coord
            .outstanding
            .iter()
            .any(|request| request.purpose == Purpose::Op);
        assert!(
            !late && coord.local.is_empty(),
            "{txn} commits after its operations"
        );
        let voting = coord
            .members
            .iter()
            .any(|member| member.ballot != Ballot::NotAsked);
        let mut others = coord.members.iter().filter(|member| {
            member.shard != txn.shard && (member.stateful || !member.queue.is_empty())
        });
        match (others.next(), others.next()) {
            (None, _) if !voting => self.commit_alone(cx, txn, id),
            (Some(one), next) if !own_wrote && !voting => {
                let (to, wrote) = (one.shard, one.wrote || !one.queue.is_empty());
                let (next, one_request, moment) =
                    (next.is_none(), one.seq == 1, one.clock.end_of_tick());
                if let Some(moment) = self.reads_one_moment(txn) {
                    return Submitted::Ready(self.release_readers(cx, txn, moment));
                }
                if next && !wrote && one_request && !C::JUDGES && !own_here {
                    // What was read at one moment needs no further check. It was locked when the
                    // answer left; since then that node may have ended and forgotten the lock.
                    return Submitted::Ready(self.release_readers(cx, txn, moment));
                }
                if let Some(reason) = self.cut_off(txn) {
                    self.abort_txn(cx, txn, reason.clone());
                    return Submitted::Ready(OpReply::ended(Outcome::Aborted(reason), Position(0)));
                }
                let coord = &self.coords[&txn];
                // A writer leads: its answer tells whether there is anything to commit.
                let mut writers = coord.members.iter();
                let lead = writers
                    .find(|member| member.wrote || !member.queue.is_empty())
                    .map_or(to, |member| member.shard);
                let only_reads = C::JUDGES && !self.has_any_writes(txn);
                if only_reads || !self.may_entrust(txn, lead) {
                    return self.commit_in_two_phases(cx, txn, id);
                }
                let handover = Handover {
                    id,
                    lead,
                    planned: u64::MAX,
                    op: None,
                };
                match self.entrust(cx, txn, handover) {
                    Ok(()) => Submitted::Pending,
                    Err(reason) => {
                        self.abort_txn(cx, txn, reason.clone());
                        Submitted::Ready(OpReply::ended(Outcome::Aborted(reason), Position(0)))
                    }
                }
            }
            _ => self.commit_in_two_phases(cx, txn, id),
        }
    }

    /// The reason why `txn` cannot commit, if a participant is known to be away.
    fn cut_off(&self, txn: TxnId) -> Option<AbortReason> {
        let mut members = self.coords[&txn].members.iter();
        let away = members.find(|member| {
            let asked = member.stateful || !member.queue.is_empty();
            asked && self.peers.is_down(member.shard)
        })?;
        Some(AbortReason::Unreachable(away.shard))
    }

    /// Asks for promises, and decides at once if all have come.
    pub(crate) fn commit_in_two_phases(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
    ) -> Submitted {
        if let Some(reason) = self.cut_off(txn) {
            self.abort_txn(cx, txn, reason.clone());
            return Submitted::Ready(OpReply::ended(Outcome::Aborted(reason), Position(0)));
        }
        if let Err(reason) = self.begin_prepare(cx, txn, id, None) {
            return Submitted::Ready(OpReply::ended(Outcome::Aborted(reason), Position(0)));
        }
        self.decide_if_voted(cx, txn)
            .map_or(Submitted::Pending, Submitted::Ready)
    }

    /// Commits a transaction that has nothing on other shards.
    pub(crate) fn commit_own(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> OpReply {
        let coord = self.coords.of(txn);
        let mut wait = coord.wait;
        let mut commit_ts = cx.clock.tick(cx.now);
        if let Some(moment) = self.reads_one_moment(txn) {
            let outcome = Outcome::Committed { commit_ts: moment };
            self.end_txn(cx, txn, outcome.clone());
            return OpReply::ended(outcome, wait);
        }
        if self.parts.contains_key(&txn) {
            match self.commit_here(cx, txn) {
                Ok(committed) => {
                    commit_ts = committed.commit_ts;
                    wait = wait.max(committed.position);
                    let coord = self.coords.of(txn);
                    coord.cost.forced_writes += u32::from(committed.forced);
                }
                Err(reason) => {
                    self.abort_txn(cx, txn, reason.clone());
                    return OpReply::ended(Outcome::Aborted(reason), Position(0));
                }
            }
        }
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        OpReply::ended(outcome, wait)
    }

    /// Commits a transaction that has only read, all of it as of one moment.
    fn release_readers(&mut self, cx: &mut Cx<'_>, txn: TxnId, commit_ts: Ts) -> OpReply {
        let coord = &self.coords[&txn];
        let others = coord.members.iter().filter(|member| member.stateful);
        let others = others.map(|member| member.shard);
        let others: Vec<_> = others.filter(|shard| *shard != txn.shard).collect();
        for shard in others {
            self.tell(cx, txn, shard, Some(commit_ts), Position(0));
        }
        let wait = self.coords[&txn].wait;
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        OpReply::ended(outcome, wait)
    }

    /// Asks every participant to prepare. `ride` is the last operation, which its participant runs
    /// first. `Err`: the own shard refused, and the transaction is rolled back.
    pub(crate) fn begin_prepare(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        id: OpId,
        mut ride: Option<(ShardId, u64, Op)>,
    ) -> Result<(), AbortReason> {
        let own_wrote = self.has_written(txn);
        let coord = self.coords.of(txn);
        let rides = ride.as_ref().map(|(to, ..)| *to);
        coord.phase = Phase::Preparing {
            id,
            rides: rides.is_some(),
            result: None,
        };
        let (mut asked, mut writers, mut own_asked) = (Vec::new(), Vec::new(), false);
        for member in &coord.members {
            let own = member.shard == txn.shard;
            let wrote = member.wrote
                || !member.queue.is_empty()
                || rides == Some(member.shard)
                || (own && own_wrote);
            if wrote {
                writers.push(member.shard);
            }
            if own {
                own_asked = member.ballot != Ballot::NotAsked;
            } else if (member.stateful || wrote) && member.ballot == Ballot::NotAsked {
                asked.push(member.shard);
            }
        }
        let mut own_left = !own_asked && self.parts.contains_key(&txn);
        self.line_up(txn, &writers, &mut asked, &mut own_left);
        let rides_to_write = ride.as_ref().is_none_or(|(_, _, op)| op.is_write());
        let prepare = self.call_for(cx, txn, writers, rides.is_some(), rides_to_write);
        let mut begun = self.ask_next(cx, txn);
        if (own_left || prepare.is_early()) && begun.is_ok() {
            begun = self.prepare_own(cx, txn, &prepare);
        }
        if let Err(reason) = begun {
            // The caller is told, so no answer to the commit is owed.
            self.coords.of(txn).phase = Phase::Running;
            self.abort_txn(cx, txn, reason.clone());
            return Err(reason);
        }
        for shard in asked {
            let ridden = ride.take_if(|(to, ..)| *to == shard);
            let (planned, op, purpose) = match ridden {
                Some((_, planned, op)) => (planned, Some(op), Purpose::OpPrepare),
                None => (u64::MAX, None, Purpose::Prepare),
            };
            let finish = Finish::Prepare(prepare.clone());
            self.send_request(cx, txn, shard, id, planned, op, finish, purpose);
            let coord = self.coords.of(txn);
            coord.member(shard).ballot = Ballot::Asked;
        }
        assert!(ride.is_none(), "the shard of the last operation takes part");
        Ok(())
    }

    /// Moves the shards out of `asked` and `own` that must vote one after the other: with
    /// increments on several shards of the node, the votes take their locks in the order of the
    /// shards. `own`: the coordinator's shard votes too.
    fn line_up(
        &mut self,
        txn: TxnId,
        writers: &[ShardId],
        asked: &mut Vec<ShardId>,
        own: &mut bool,
    ) {
        let coord = &self.coords[&txn];
        let increments = |shard: &ShardId| coord.find(*shard).is_some_and(|m| m.increments);
        let mut in_turn: Vec<ShardId> = asked.iter().copied().filter(increments).collect();
        if *own && self.has_increments(txn) {
            in_turn.push(txn.shard);
        }
        if C::JUDGES || in_turn.len() < 2 || !in_one_node(txn, writers) {
            return;
        }
        asked.retain(|shard| !in_turn.contains(shard));
        *own &= !in_turn.contains(&txn.shard);
        in_turn.sort_unstable_by(|a, b| b.cmp(a));
        let coord = self.coords.of(txn);
        coord.in_turn = in_turn;
        coord.writers = writers.to_vec();
    }

    /// Whether a promise elsewhere than on `to` would turn increments into folds. Then the commit
    /// cannot ride on an operation on `to`, which may wait for a lock: who holds a fold waits for
    /// other folds only (rule C9).
    pub(crate) fn folds_elsewhere(&self, txn: TxnId, to: ShardId) -> bool {
        if C::JUDGES {
            return false;
        }
        let mut members = self.coords[&txn].members.iter();
        let own = to != txn.shard && self.has_increments(txn);
        own || members.any(|member| member.increments && member.shard != to)
    }

    /// Decides if every participant has voted; then returns the answer to the commit.
    pub(crate) fn decide_if_voted(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> Option<OpReply> {
        let coord = self.coords.get_mut(&txn)?;
        let open = coord
            .members
            .iter()
            .any(|member| member.stateful && !matches!(member.ballot, Ballot::Cast(_)));
        if !matches!(coord.phase, Phase::Preparing { .. }) {
            return None;
        }
        if open {
            return None;
        }
        let cast = coord
            .members
            .iter()
            .filter_map(|member| match &member.ballot {
                Ballot::Cast(vote) => Some((vote.prepare_ts, vote.top)),
                Ballot::NotAsked | Ballot::Asked => None,
            });
        let (low, top) = cast.fold((Ts::ZERO, Ts::MAX), |(low, top), (at, limit)| {
            (low.max(at), top.min(limit))
        });
        if low > top && !is_planted(Planted::FormulaTopsIgnored) {
            // The clocks are too far apart.
            self.abort_txn(cx, txn, AbortReason::Overtaken(None));
            return None;
        }
        let coord = self.coords.of(txn);
        let Phase::Preparing { result, .. } = &mut coord.phase else {
            unreachable!("looked at above");
        };
        let result = result.take().unwrap_or(OpResult::Done);
        let reply = self.decide(cx, txn);
        Some(OpReply {
            result: Ok(result),
            ..reply
        })
    }

    /// All have promised: draws the timestamp, writes the record, tells participants (C4, C5).
    fn decide(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> OpReply {
        let coord = self.coords.of(txn);
        let votes = coord.take_votes();
        let own = self.promises.get(&txn);
        let early = own.and_then(|own| made_by_promises(own, &votes, coord.before));
        let times = votes.iter().map(|(.., vote)| vote.prepare_ts);
        // Every lock is held: the timestamp lies above all that the transaction depends on.
        let largest = times.clone().max().unwrap_or_default();
        let top = votes.iter().map(|(.., vote)| vote.top).min();
        let only_read = |vote: &Vote| {
            vote.top == Ts::MAX && !vote.durable && vote.redo.is_empty() && vote.chunks == 0
        };
        let stamped = coord.stamp > Ts::ZERO;
        let mut commit_ts = early.unwrap_or_else(|| match C::JUDGES {
            // Nothing guards what was read without locks: from the first vote on it may have
            // changed.
            true if stamped && own.is_none() && votes.iter().all(|(.., vote)| only_read(vote)) => {
                times.min().unwrap_or_default()
            }
            // What was read is locked, or guarded as far as the tops of the votes go.
            true => largest,
            false => {
                let now = cx.clock.tick(cx.now);
                now.min(top.unwrap_or(Ts::MAX)).max(largest)
            }
        });
        if is_planted(Planted::CommitBelowVotes) {
            commit_ts = coord.options.priority_ts;
        }
        cx.clock.merge(commit_ts);
        if let Some(own) = own.filter(|_| !is_planted(Planted::PrepareNotDurable)) {
            coord.wait = coord.wait.max(own.position);
        }
        let (owed, position) = self.append_decision(cx, txn, commit_ts, &votes);
        let coord = self.coords.of(txn);
        // Promises of different shards are forced side by side and count as one wait.
        coord.cost.forced_writes += u32::from(!owed.is_empty());
        if early.is_none() {
            coord.cost.forced_writes += u32::from(position.0 > 0);
            coord.wait = coord.wait.max(position);
        }
        let wait = coord.wait;
        for (shard, _, vote) in &votes {
            if *shard != txn.shard && !vote.durable {
                let here = if self.is_remote(*shard) {
                    Position(0)
                } else {
                    position
                };
                self.tell(cx, txn, *shard, Some(commit_ts), here);
            }
        }
        self.owe_decision(cx, txn, commit_ts, position, owed);
        // Promises that make the commit make it durable, too.
        let durable_at = if early.is_some() { wait } else { position };
        self.keep_promise(cx, txn, commit_ts, durable_at);
        let outcome = Outcome::Committed { commit_ts };
        self.end_txn(cx, txn, outcome.clone());
        OpReply::ended(outcome, wait)
    }

    /// Appends the record that decides. Returns its position, and the participants that must
    /// acknowledge the decision, with the visits that end.
    fn append_decision(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        votes: &[(ShardId, u64, Vote)],
    ) -> (Vec<(ShardId, u64)>, Position) {
        let own = self.promises.get(&txn);
        let cast = votes.iter().map(|(shard, _, vote)| (*shard, vote));
        let gathered = gathered(self.shard, own.filter(|own| !own.durable), cast);
        let promised = votes
            .iter()
            .filter(|(shard, _, vote)| vote.durable && *shard != txn.shard);
        let owed: Vec<(ShardId, u64)> =
            promised.map(|(shard, visit, _)| (*shard, *visit)).collect();
        let mut participants: Vec<ShardId> = owed.iter().map(|(shard, _)| *shard).collect();
        let alone = owed.is_empty() && own.is_some_and(|own| own.durable && !own.redo.is_empty());
        if alone {
            participants.push(txn.shard);
        }
        let scratch = &mut self.scratch;
        let position = gathered.append(cx, scratch, txn, commit_ts, &participants);
        if alone {
            self.append_record(cx, &Record::End { txn });
        }
        (owed, position)
    }

    /// Tells the decision to the participants that have promised durably, until they acknowledge.
    pub(crate) fn owe_decision(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        position: Position,
        unacked: Vec<(ShardId, u64)>,
    ) {
        if unacked.is_empty() {
            return;
        }
        let attempt = self
            .coords
            .get(&txn)
            .map_or(0, |coord| coord.options.attempt);
        let decision = Decision {
            commit_ts,
            attempt,
            position,
            unacked,
            resend: Resend::new(cx.now, self.settings.pauses()),
        };
        self.decisions.insert(txn, decision);
        self.tell_decision(cx, txn);
    }

    /// Tells one participant the outcome, without asking for an acknowledgement.
    pub(crate) fn tell(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        to: ShardId,
        commit_ts: Option<Ts>,
        position: Position,
    ) {
        let Some(coord) = self.coords.get_mut(&txn) else {
            return;
        };
        let attempt = coord.options.attempt;
        let member = coord.member(to);
        member.stateful = false;
        let visit = member.visit;
        let decide = Decide {
            position,
            ..Decide::new(visit, commit_ts, false)
        };
        let message = self.message(cx, txn, attempt, Body::Decide(decide));
        let remote = self.is_remote(to);
        let coord = self.coords.of(txn);
        if remote {
            coord.cost.messages_off_path += 1;
            coord.measure(&message);
        } else {
            coord.cost.messages_in_node += 1;
        }
        // For a reader the outcome is true already: its locks need not wait for the disk.
        self.post(cx, to, message, Position(0));
        self.close_visit(to, visit);
    }

    pub(crate) fn close_visit(&mut self, shard: ShardId, visit: u64) {
        if let Some(visits) = self.visits_out.get_mut(&shard) {
            visits.open.remove(&visit);
        }
    }

    /// Tells the decision, once durable, to participants without an acknowledgement; repeats that.
    pub(crate) fn tell_decision(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(decision) = self.decisions.get(&txn) else {
            return;
        };
        let (commit_ts, attempt) = (decision.commit_ts, decision.attempt);
        let mut position = decision.position;
        let here = position;
        if is_planted(Planted::DecisionNotDurable) {
            position = Position(0);
        }
        for (shard, visit) in decision.unacked.clone() {
            let remote = self.is_remote(shard);
            let decide = Decide {
                position: if remote { Position(0) } else { here },
                ..Decide::new(visit, Some(commit_ts), true)
            };
            let message = self.message(cx, txn, attempt, Body::Decide(decide));
            if let Some(coord) = self.coords.get_mut(&txn)
                && coord.outcome.is_none()
            {
                // The acknowledgement is counted here, because it comes after the accounts close.
                if remote {
                    coord.cost.messages_off_path += 2;
                    coord.measure(&message);
                } else {
                    coord.cost.messages_in_node += 2;
                }
                coord.member(shard).stateful = false;
            }
            self.post(cx, shard, message, position);
        }
        let decision = self.decisions.get_mut(&txn).expect("looked up above");
        decision.resend.defer(cx.now);
        let at = Some(decision.resend.again_at());
        self.timers.set(Timer::Decision(txn), at);
    }

    /// A participant has the commit durably. When all do, the decision is forgotten.
    pub(crate) fn on_ack(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId) {
        let Some(decision) = self.decisions.get_mut(&txn) else {
            self.on_settled(cx, from, txn);
            return;
        };
        let Some(at) = decision
            .unacked
            .iter()
            .position(|(shard, _)| *shard == from)
        else {
            return;
        };
        let (_, visit) = decision.unacked.swap_remove(at);
        if decision.unacked.is_empty() {
            self.timers.set(Timer::Decision(txn), None);
            self.decisions.remove(&txn);
            self.append_record(cx, &Record::End { txn });
        }
        self.close_visit(from, visit);
    }

    /// Answers the inquiry of a participant. A transaction that is not known was never decided.
    pub(crate) fn on_inquire(&mut self, cx: &mut Cx<'_>, from: ShardId, txn: TxnId, attempt: u32) {
        let (mut commit_ts, mut wait, mut wants_ack) = (None, Position(0), false);
        if self.refusals.contains_key(&txn) || self.polls.contains_key(&txn) {
            self.say(cx, from, txn, attempt, Body::Running);
            return;
        }
        if let Some(decision) = self.decisions.get(&txn)
            && decision.unacked.iter().any(|(shard, _)| *shard == from)
        {
            (commit_ts, wait, wants_ack) = (Some(decision.commit_ts), decision.position, true);
        } else if let Some(coord) = self.coords.get(&txn) {
            match &coord.outcome {
                None => {
                    self.say(cx, from, txn, attempt, Body::Running);
                    return;
                }
                // The participant had only read, and the message to it was lost.
                Some(Outcome::Committed { commit_ts: ts }) => commit_ts = Some(*ts),
                Some(Outcome::Aborted(_) | Outcome::Unknown) => {}
            }
        }
        let decide = Decide::new(0, commit_ts, wants_ack);
        let message = self.message(cx, txn, attempt, Body::Decide(decide));
        self.post(cx, from, message, wait);
    }

    /// Rolls back everywhere and answers outstanding operations. Does nothing after the end.
    pub(crate) fn abort_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, reason: AbortReason) {
        let Some(coord) = self.coords.get(&txn) else {
            return;
        };
        if coord.outcome.is_some() {
            return;
        }
        if coord.phase == Phase::Entrusted && reason == AbortReason::Requested {
            // Another shard has the commit in its hands, and may have committed.
            self.end_unknown(cx, txn);
            return;
        }
        if self.must_refuse(txn) {
            self.refuse_first(cx, txn);
        } else {
            self.tell_abort(cx, txn);
        }
        self.end_txn(cx, txn, Outcome::Aborted(reason));
    }

    pub(crate) fn tell_abort(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let Some(coord) = self.coords.get(&txn) else {
            return;
        };
        let stateful = coord
            .members
            .iter()
            .filter(|m| m.stateful && m.shard != txn.shard);
        let stateful: Vec<ShardId> = stateful.map(|member| member.shard).collect();
        for shard in stateful {
            self.tell(cx, txn, shard, None, Position(0));
        }
    }

    /// Sets the outcome, closes the accounts, frees the locks here, and answers all outstanding
    /// operations.
    pub(crate) fn end_txn(&mut self, cx: &mut Cx<'_>, txn: TxnId, outcome: Outcome) {
        let coord = self.coords.of(txn);
        assert!(coord.outcome.is_none(), "{txn} ends once");
        coord.outcome = Some(outcome.clone());
        let phase = core::mem::replace(&mut coord.phase, Phase::Ended);
        self.timers.set(Timer::Coord(txn), None);
        let wait = coord.wait;
        let refused = self.refusal_wait(txn);
        let coord = self.coords.of(txn);
        let outstanding = core::mem::take(&mut coord.outstanding);
        let local = core::mem::take(&mut coord.local);
        coord.sealing = false;
        coord.in_turn.clear();
        coord.cost = coord.cost_so_far();
        let cost = coord.cost;
        let stateful = coord.members.iter().filter(|m| m.stateful);
        let visits: Vec<_> = stateful.map(|m| (m.shard, m.visit)).collect();
        for (shard, visit) in visits {
            self.close_visit(shard, visit);
        }
        cx.note_end(txn, &outcome, &cost);
        match &outcome {
            Outcome::Committed { commit_ts } => {
                self.keep_promise(cx, txn, *commit_ts, Position(0));
            }
            // What was read here stays locked as long as another shard may commit it (C11).
            Outcome::Unknown if self.unsettled.contains_key(&txn) => {}
            Outcome::Aborted(_) if self.refusals.contains_key(&txn) => {}
            Outcome::Aborted(_) | Outcome::Unknown => self.rollback(cx, txn),
        }
        let unanswered = |purpose| unanswered(&outcome, purpose, wait, refused);
        for (id, job) in local {
            let job = self.jobs.remove(job);
            let commits = job.is_some_and(|job| matches!(job.origin, Origin::Commit { .. }));
            let purpose = match commits {
                true => Purpose::Commit,
                false => Purpose::Op,
            };
            cx.out.complete(txn, id, unanswered(purpose));
        }
        let committed = matches!(outcome, Outcome::Committed { .. });
        if let (false, Phase::Preparing { id, rides, .. }) = (committed, &phase)
            && outstanding.iter().all(|request| request.id != *id)
        {
            // Only the vote of the own shard was missing, or one that was asked for with another
            // operation.
            let purpose = match rides {
                true => Purpose::OpPrepare,
                false => Purpose::Prepare,
            };
            cx.out.complete(txn, *id, unanswered(purpose));
        }
        let mut answered: Option<OpId> = None;
        for request in outstanding {
            let purpose = match (request.purpose, &phase) {
                // From a ride that failed, which its caller knows.
                (Purpose::Prepare, Phase::Preparing { id, .. }) if *id != request.id => continue,
                // The answer that the caller waits for is that of the operation.
                (Purpose::Prepare, Phase::Preparing { rides: true, .. }) => Purpose::OpPrepare,
                (Purpose::Prepare, Phase::Running) => continue,
                (purpose, _) => purpose,
            };
            if answered != Some(request.id) {
                cx.out.complete(txn, request.id, unanswered(purpose));
            }
            answered = Some(request.id);
        }
    }
}

/// The answer to something that the end of the transaction overtook. `refused`: position of this
/// shard's refusal, if that makes the abort.
fn unanswered(outcome: &Outcome, purpose: Purpose, wait: Position, refused: Position) -> OpReply {
    match (purpose, outcome) {
        (Purpose::Op | Purpose::OpPrepare | Purpose::OpCommit, Outcome::Aborted(reason)) => {
            OpReply {
                wait: refused,
                ..OpReply::failed(reason.clone())
            }
        }
        (_, outcome) => OpReply::ended(outcome.clone(), wait),
    }
}
