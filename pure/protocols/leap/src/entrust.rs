//! Errands: transactions of one operation that run at the owner of their row (L10, L14).
//!
//! A blind change of one row (a formula, alone in its transaction) is *entrusted* to the owner of
//! the row. The owner runs and commits it with a record of its own. The coordinator holds nothing
//! and learns the outcome from the answer. Each errand costs one round trip, errands of many nodes
//! overlap, and the row does not move.
//!
//! ```text
//! coordinator ──Entrust(number)──> owner      lock, run, Commit record, locks go
//!             <──Performed──────── owner      leaves when the record is durable
//!             <──not here─────────            it will never be run under this number: the next
//!                                             shard is asked, or the row comes after all
//! ```
//!
//! * A shard runs a number once, notes it, and repeats its answer. The coordinator repeats the
//!   number to the same shard only, and means one life of that shard.
//! * If that life ends, or if the shard is silent, the outcome is unknown.
//! * If the client cancels, the owner is told to give up, and answers: it has not run the operation
//!   and never will, or it has.
//! * A shard that has entrusted [`TAKE_AFTER`] changes of a row, which no other shard has used in
//!   between, is told to take the row.

use crate::job::{Job, Origin, Stop, Wait};
use crate::message::{Body, Entrust, Performance, Performed};
use crate::request::Standing;
use crate::txns::Phase;
use crate::{Cx, Leap, printed};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use base::{Key, NodeId, Position, ShardId, TxnId};
use txn::{
    AbortReason, Asked, Asks, LockMode, Op, OpError, OpId, OpReply, OpResult, Outcome, Read, Seen,
    Submitted,
};

/// Consecutive changes of one row from the same shard after which that shard takes the row.
const TAKE_AFTER: u32 = 32;

/// Largest number of rows whose last owner a shard remembers, or whose errands an owner counts.
const REMEMBERED_MAX: usize = 10_000;

/// Number of shards that are tried with an errand before the row is requested.
const HOPS_MAX: u32 = 3;

/// An operation that is entrusted to another shard.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) id: OpId,
    /// The operation is alone in its transaction, and the owner commits it.
    pub(crate) last: bool,
    pub(crate) to: ShardId,
    pub(crate) message: Entrust,
    hops: u32,
    /// The client has cancelled: the owner is told to give up what it has not run.
    called_off: bool,
    /// Shards without the row that were asked in place of its home, which is away.
    tried: BTreeSet<ShardId>,
}

impl Asked for Errand {
    fn receiver(&self) -> ShardId {
        self.to
    }

    fn life(&self) -> Option<u32> {
        Some(self.message.expected)
    }
}

impl Errand {
    pub(crate) fn new(id: OpId, last: bool, to: ShardId, message: Entrust) -> Errand {
        Errand {
            id,
            last,
            to,
            message,
            hops: 0,
            called_off: false,
            tried: BTreeSet::new(),
        }
    }
}

/// Numbers that are over, with answers and the positions of the records that these tell of.
type Answered = Seen<u64, Option<(Performed, Position)>>;

/// Errands of one shard, as coordinator and as owner.
#[derive(Debug, Default)]
pub(crate) struct Errands {
    /// What this shard has entrusted to others, by number.
    pub(crate) out: Asks<u64, Errand>,
    /// Numbers that this shard has run or refused, by coordinator and life, with its answers.
    seen: BTreeMap<ShardId, (u32, Answered)>,
    /// The last known owner of rows that are not here.
    whereabouts: BTreeMap<Key, ShardId>,
    /// Rows that this shard was told to take.
    takes: BTreeSet<Key>,
    /// Per row, the shard that has entrusted its last changes, without use by others, and how many.
    regulars: BTreeMap<Key, (ShardId, u32)>,
}

impl Errands {
    /// Another shard than the one that is counted uses the row.
    #[inline]
    pub(crate) fn note_use(&mut self, key: &Key) {
        if !self.regulars.is_empty() {
            self.regulars.remove(key);
        }
    }

    /// Whether changes of a row of one bucket from `low` to `high`, both included, are counted.
    pub(crate) fn has_between(&self, low: &Key, high: &Key) -> bool {
        self.regulars.range(low..=high).next().is_some()
    }

    /// Notes that the row has gone to the shard `at`.
    pub(crate) fn note_whereabouts(&mut self, key: &Key, at: ShardId) {
        if self.whereabouts.len() >= REMEMBERED_MAX {
            self.whereabouts.clear();
        }
        self.whereabouts.insert(key.clone(), at);
    }

    /// The last known owner of the row.
    pub(crate) fn last_seen(&self, key: &Key) -> Option<ShardId> {
        self.whereabouts.get(key).copied()
    }

    /// Counts a change that `from` has entrusted. Returns whether `from` should take the row.
    fn count(&mut self, key: &Key, from: ShardId) -> bool {
        if self.regulars.len() >= REMEMBERED_MAX {
            self.regulars.clear();
        }
        let regular = self.regulars.entry(key.clone()).or_insert((from, 0));
        if regular.0 != from {
            *regular = (from, 0);
        }
        regular.1 += 1;
        regular.1 >= TAKE_AFTER
    }
}

impl Leap {
    /// The shard to which a transaction of this operation is entrusted. `None`: the row comes here.
    pub(crate) fn entrustee(&mut self, cx: &Cx<'_>, op: &Op) -> Option<ShardId> {
        let key = op.key()?;
        if !self.settings.entrusts || self.standing(key) != Standing::Elsewhere {
            return None;
        }
        if self.sharing.has_copy(key) || self.requester.wants(key) {
            return None;
        }
        // A formula changes a row without the transaction having to know it.
        if op.formulas().is_empty() && !self.goes_to_row(cx, op, key) {
            return None;
        }
        self.place_of(key)
    }

    /// The shard that probably has a row. `None`: it cannot be asked, or the row is to be taken.
    pub(crate) fn place_of(&mut self, key: &Key) -> Option<ShardId> {
        if self.errands.takes.remove(key) {
            return None;
        }
        self.goes_to(key)
    }

    fn goes_to(&self, key: &Key) -> Option<ShardId> {
        let to = match self.home.table.get(key) {
            Some(entry) => entry.owner?,
            None if self.is_down(self.home(key.slot)) => {
                self.reader_of(key, &BTreeSet::new()).ok()?
            }
            None => {
                let last = self.errands.whereabouts.get(key).copied();
                last.filter(|at| *at != self.shard)
                    .unwrap_or_else(|| self.home(key.slot))
            }
        };
        self.is_acquainted(to).then_some(to)
    }

    /// Whether an operation is to run at its row's owner: the row would not stay or cannot come.
    fn goes_to_row(&self, cx: &Cx<'_>, op: &Op, key: &Key) -> bool {
        let one_row = matches!(op, Op::Modify { .. })
            || matches!(op.read(), Some(Read::Lock(LockMode::Exclusive)));
        // Without its home the row cannot come here, nor without memory for it.
        let stays = self.is_down(self.home(key.slot)) || cx.journal.is_memory_full();
        let from = self.settings.contended_from;
        one_row && (stays || self.owner.heat.is_contended(key, from, cx.now))
    }

    /// Whether another shard can be entrusted with operations: it is not away, and its life is
    /// known, because two lives of a shard must not both run one number.
    fn is_acquainted(&self, to: ShardId) -> bool {
        to != self.shard
            && !self.peers.is_down(to)
            && (!self.is_remote(to) || self.peers.knows(to.node()))
    }

    /// Entrusts a transaction of one operation.
    pub(crate) fn entrust(&mut self, cx: &mut Cx<'_>, mut job: Job, to: ShardId) {
        let (id, _) = job.local();
        let message = self.errand_of(&mut job, to, false);
        let errand = Errand::new(id, true, to, message);
        let state = self.coord.txns.of(job.txn);
        state.phase = Phase::Entrusted;
        self.begin_errand(cx, errand);
    }

    /// The message that hands a job's operation over; `holds`: the owner holds it until the
    /// transaction ends. [`Leap::begin_errand`] numbers it.
    pub(crate) fn errand_of(&self, job: &mut Job, to: ShardId, holds: bool) -> Entrust {
        Entrust {
            txn: job.txn,
            options: job.options,
            number: 0,
            floor: 0,
            expected: self.life_of(to),
            planned: job.planned,
            holds,
            op: job.op.take().expect("an operation that did not run"),
        }
    }

    pub(crate) fn life_of(&self, shard: ShardId) -> u32 {
        match self.is_remote(shard) {
            true => self.peers.life(shard.node()),
            false => self.incarnation,
        }
    }

    /// Sends an errand under a new number.
    pub(crate) fn begin_errand(&mut self, cx: &mut Cx<'_>, mut errand: Errand) {
        self.next_number += 1;
        let number = self.next_number;
        errand.message.number = number;
        let state = self.coord.txns.of(errand.message.txn);
        if errand.message.holds {
            state.ships.push(number);
        } else {
            state.errand = Some(number);
        }
        state.note_node(errand.to);
        let repeats = self.is_remote(errand.to);
        self.errands.out.begin(number, errand, cx.now, repeats);
        self.send_errand(cx, number);
    }

    fn send_errand(&mut self, cx: &mut Cx<'_>, number: u64) {
        let Some(errand) = self.errands.out.get(number) else {
            return;
        };
        let (to, txn) = (errand.to, errand.message.txn);
        let mut message = errand.message.clone();
        message.floor = self.errands.out.floor(to).unwrap_or(number);
        let body = Body::Entrust(Box::new(message));
        let remote = self.is_remote(to);
        if let Some(state) = self.coord.txns.get_mut(&txn) {
            state.measure(remote, &body);
            state.cost.messages_in_node += u32::from(!remote);
        }
        let frames = self.say(cx, to, body);
        if let (1, Some(state)) = (frames, self.coord.txns.get_mut(&txn)) {
            state.cost.messages_on_path += 1;
        }
        if self.errands.out[number].called_off {
            self.say(cx, to, Body::Release(txn));
        }
    }

    /// A transaction is cancelled. If it is entrusted to another shard, that one is told to give
    /// up, until it answers. Returns whether that is so.
    pub(crate) fn call_off_errand(&mut self, cx: &mut Cx<'_>, txn: TxnId) -> bool {
        let number = self.coord.txns.get(&txn).and_then(|state| state.errand);
        let Some(errand) = number.and_then(|number| self.errands.out.get_mut(number)) else {
            return false;
        };
        if !core::mem::replace(&mut errand.called_off, true) {
            let to = errand.to;
            self.say(cx, to, Body::Release(txn));
        }
        true
    }

    pub(crate) fn on_errand_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(number) = self.errands.out.take_due(cx.now) else {
            return;
        };
        let timeout_us = self.settings.request_timeout_us;
        if !self.errands.out.is_silent(number, cx.now, timeout_us) {
            self.send_errand(cx, number);
            return;
        }
        let errand = &self.errands.out[number];
        let (txn, to) = (errand.message.txn, errand.to);
        if errand.message.holds {
            self.abort_txn(cx, txn, AbortReason::Unreachable(to));
        } else {
            self.lose_errand(cx, txn);
        }
    }

    pub(crate) fn take_errand(&mut self, number: u64) -> Option<Errand> {
        let errand = self.errands.out.end(number)?;
        if let Some(state) = self.coord.txns.get_mut(&errand.message.txn) {
            if errand.message.holds {
                state.ships.retain(|other| *other != number);
            } else {
                state.errand = None;
            }
        }
        Some(errand)
    }

    /// The outcome of an errand stays unknown: tells the client, and the owner to give it up.
    pub(crate) fn lose_errand(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let number = self.coord.txns.get(&txn).and_then(|state| state.errand);
        let Some(errand) = number.and_then(|number| self.take_errand(number)) else {
            return;
        };
        self.say(cx, errand.to, Body::Release(txn));
        self.end_txn(cx, txn, Outcome::Unknown);
        let reply = OpReply::ended(Outcome::Unknown, Self::NOTHING);
        cx.out.complete(txn, errand.id, reply);
    }

    /// A node has a new life, or cannot be reached: the outcome of errands there is unknown.
    pub(crate) fn lose_errands(&mut self, cx: &mut Cx<'_>, node: NodeId, before: u32) {
        self.lose_ships(cx, node, before);
        if printed!(self, LeapErrandNextLife) {
            return;
        }
        let lost = self.errands.out.lost(node, before).into_iter();
        let lost = lost.map(|number| &self.errands.out[number].message);
        let lost = lost.filter(|message| !message.holds);
        let lost: Vec<TxnId> = lost.map(|message| message.txn).collect();
        for txn in lost {
            self.lose_errand(cx, txn);
        }
    }

    /// Owner: runs an errand of another shard.
    pub(crate) fn on_entrust(&mut self, cx: &mut Cx<'_>, from: ShardId, entrust: Entrust) {
        let (txn, number) = (entrust.txn, entrust.number);
        if entrust.expected != cx.incarnation && !printed!(self, LeapErrandNextLife) {
            return;
        }
        let filtered = !printed!(self, LeapErrandTwice);
        let (life, seen) = self.errands.seen.entry(from).or_default();
        if txn.incarnation < *life {
            return;
        }
        if txn.incarnation > *life {
            (*life, *seen) = (txn.incarnation, Seen::default());
        }
        seen.raise(entrust.floor);
        if seen.is_over(number) && filtered {
            if let Some((answer, position)) = seen.kept(number).cloned().flatten() {
                self.post(cx, from, Body::Performed(Box::new(answer)), position);
            } else if self.coord.txns.contains_key(&txn)
                || self.guests.has(txn, Origin::Held { from, number })
            {
                self.say(cx, from, Body::Reading(number));
            }
            return;
        }
        seen.end(number, None);
        if entrust.holds {
            self.begin_hold(cx, from, entrust);
            return;
        }
        let origin = Origin::Errand { from, number };
        let mut job = Job::new(txn, entrust.options, entrust.planned, origin);
        job.id = self.jobs.next_number();
        job.alone = true;
        let here = entrust.op.key().filter(|key| self.is_mine(key)).cloned();
        if here.is_none() || self.coord.txns.contains_key(&txn) {
            job.op = Some(entrust.op);
            self.decline(cx, &job, from, number);
            return;
        }
        let state = self.coord.txns.begin(txn, entrust.options);
        state.guest = here;
        state.ops = 1;
        job.free = self.is_free(cx, txn, &entrust.op);
        job.op = Some(entrust.op);
        match self.run(cx, &mut job) {
            Ok(result) => self.end_errand(cx, &job, from, number, Ok(result)),
            Err(Stop::Fail(error)) => self.end_errand(cx, &job, from, number, Err(error)),
            Err(Stop::Wait(Wait::Elsewhere)) => self.decline(cx, &job, from, number),
            Err(stop) => self.park(cx, Box::new(job), &stop),
        }
    }

    /// Owner: holds a formula of another shard's transaction.
    fn begin_hold(&mut self, cx: &mut Cx<'_>, from: ShardId, entrust: Entrust) {
        let number = entrust.number;
        let origin = Origin::Held { from, number };
        let mut job = Job::new(entrust.txn, entrust.options, entrust.planned, origin);
        job.id = self.jobs.next_number();
        let mine = entrust.op.key().is_some_and(|key| self.is_mine(key));
        let formula = matches!(entrust.op, Op::Formula { .. });
        job.op = Some(entrust.op);
        if mine && formula && !self.is_down(from) {
            self.advance(cx, Box::new(job));
        } else {
            self.decline(cx, &job, from, number);
        }
    }

    /// Owner: an errand was run here, or has failed.
    pub(crate) fn end_errand(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        from: ShardId,
        number: u64,
        result: Result<OpResult, OpError>,
    ) {
        let txn = job.txn;
        let Some(state) = self.coord.txns.get_mut(&txn) else {
            return;
        };
        let Some(key) = state.guest.clone() else {
            return;
        };
        state.wait = state.wait.max(job.wait);
        let performance = match result {
            // What goes into the journal in slices commits where its transaction is.
            Ok(found) if !found.allows_finish() || self.is_to_freeze(txn) => {
                Performance::NotHere { owner: None }
            }
            Ok(found) => match self.commit_with(cx, txn, OpId(number), found) {
                Submitted::Ready(reply) => Performance::Ended {
                    result: reply.result,
                    outcome: reply.outcome,
                    wait: reply.wait,
                    take: false,
                },
                Submitted::Pending => unreachable!("it holds nothing elsewhere"),
            },
            Err(error) => Performance::failed(error, job.wait),
        };
        self.dismiss(txn);
        self.answer_errand(cx, from, number, performance, Some(&key));
    }

    /// The row of an errand is not here: nothing was done, and the number is used up.
    pub(crate) fn decline(&mut self, cx: &mut Cx<'_>, job: &Job, from: ShardId, number: u64) {
        let owner = job.op.as_ref().and_then(Op::key).and_then(|key| {
            let known = match self.is_home(key) {
                true => self.home.table.get(key).and_then(|entry| entry.owner),
                false => Some(self.home(key.slot)),
            };
            known.filter(|owner| *owner != from && *owner != self.shard)
        });
        match (job.origin, job.op.as_ref().and_then(Op::key)) {
            (Origin::Held { .. }, Some(key)) => self.give_up_place(job.txn, key),
            _ => self.dismiss(job.txn),
        }
        self.answer_errand(cx, from, number, Performance::NotHere { owner }, None);
    }

    fn has_guest(&self, txn: TxnId) -> bool {
        self.coord
            .txns
            .get(&txn)
            .is_some_and(|state| state.guest.is_some())
    }

    /// Forgets a transaction of another shard, and its operations that wait here.
    fn dismiss(&mut self, txn: TxnId) {
        if self.has_guest(txn)
            && let Some(state) = self.coord.txns.remove(&txn)
        {
            self.coord.txns.spare(state);
            self.release_locks(txn);
        }
    }

    /// Frees the locks of a transaction that is over, unless increments of it wait for their turn.
    pub(crate) fn release_locks(&mut self, txn: TxnId) {
        let installs = self.bulks.has(txn) && !base::is_planted(base::Planted::LocksBetweenSlices);
        if !self.pendings.formulas.knows(txn) && !installs {
            self.locks.release(txn);
        }
    }

    pub(crate) fn answer_errand(
        &mut self,
        cx: &mut Cx<'_>,
        to: ShardId,
        number: u64,
        mut performance: Performance,
        key: Option<&Key>,
    ) {
        let mut position = Self::NOTHING;
        if let Performance::Ended { wait, take, .. } | Performance::Pending { wait, take, .. } =
            &mut performance
        {
            position = *wait;
            if self.is_remote(to) {
                *wait = Self::NOTHING;
            }
            *take = key.is_some_and(|key| self.errands.count(key, to));
        }
        if printed!(self, LeapErrandNotDurable) {
            position = Self::NOTHING;
        }
        let answer = Performed {
            number,
            performance,
        };
        if self.is_remote(to)
            && let Some((_, seen)) = self.errands.seen.get_mut(&to)
        {
            seen.end(number, Some((answer.clone(), position)));
        }
        self.post(cx, to, Body::Performed(Box::new(answer)), position);
    }

    /// The coordinator of an entrusted transaction has given it up. What waits here is answered:
    /// the coordinator may have only asked for that.
    pub(crate) fn release_errand(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        if !self.has_guest(txn) {
            return;
        }
        for id in self.guests.jobs(txn) {
            if let Some(job) = self.drop_job(id)
                && let Origin::Errand { from, number } = job.origin
            {
                let given_up = Err(OpError::Aborted(AbortReason::Requested));
                self.end_errand(cx, &job, from, number, given_up);
            }
        }
        self.dismiss(txn);
    }

    /// The coordinator of an entrusted transaction is gone.
    pub(crate) fn give_up_errand(&mut self, txn: TxnId) {
        if !self.has_guest(txn) {
            return;
        }
        for id in self.guests.jobs(txn) {
            self.drop_job(id);
        }
        self.dismiss(txn);
    }

    /// Gives up what was entrusted by former lives of a node.
    pub(crate) fn give_up_errands(&mut self, node: NodeId, incarnation: u32) {
        let dead = |txn: &&TxnId| txn.shard.node() == node && txn.incarnation < incarnation;
        let dead: Vec<TxnId> = self.coord.txns.keys().filter(dead).copied().collect();
        for txn in dead {
            self.give_up_errand(txn);
        }
    }

    pub(crate) fn on_performed(&mut self, cx: &mut Cx<'_>, from: ShardId, performed: Performed) {
        let Some(errand) = self.take_errand(performed.number) else {
            return;
        };
        let hops = 1 + u32::from(self.is_remote(from));
        let txn = errand.message.txn;
        let state = self.coord.txns.of(txn);
        if hops > 1 {
            state.cost.delays += hops;
            state.cost.messages_on_path += cx.out.frames.came();
        }
        match performed.performance {
            Performance::NotHere { owner } => self.redirect_errand(cx, errand, owner),
            Performance::Pending { result, wait, take } => {
                if !errand.message.holds {
                    return;
                }
                if let (true, Some(key)) = (take, errand.message.op.key()) {
                    self.errands.takes.insert(key.clone());
                }
                self.note_shipped(cx.now, &errand);
                self.end_ship(cx, &errand, wait, Ok(result));
            }
            Performance::Ended { result, wait, .. } if errand.message.holds => {
                self.end_ship(cx, &errand, wait, result);
            }
            Performance::Ended {
                result,
                outcome,
                wait,
                take,
            } => {
                self.moves.entrusted += 1;
                if let (true, Some(key)) = (take, errand.message.op.key()) {
                    self.errands.takes.insert(key.clone());
                }
                let reply = self.end_performed(cx, txn, result, outcome, wait);
                cx.out.complete(txn, errand.id, reply);
            }
        }
    }

    fn end_performed(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        result: Result<OpResult, OpError>,
        outcome: Option<Outcome>,
        wait: Position,
    ) -> OpReply {
        let reason = match (&result, &outcome) {
            (Err(OpError::Aborted(reason)), _) | (_, Some(Outcome::Aborted(reason))) => {
                Some(reason.clone())
            }
            _ => None,
        };
        let state = self.coord.txns.of(txn);
        state.wait = state.wait.max(wait);
        if let Some(reason) = reason {
            self.end_txn(cx, txn, Outcome::Aborted(reason.clone()));
            return OpReply::failed(reason);
        }
        match &outcome {
            Some(outcome) => {
                state.cost.forced_writes += 1;
                self.end_txn(cx, txn, outcome.clone());
            }
            // The statement has failed; the caller rolls back.
            None => state.phase = Phase::Running,
        }
        OpReply {
            result,
            outcome,
            wait,
        }
    }

    /// Coordinator: tries the next shard, or requests the row.
    fn redirect_errand(&mut self, cx: &mut Cx<'_>, mut errand: Errand, owner: Option<ShardId>) {
        if errand.called_off {
            let (txn, reason) = (errand.message.txn, AbortReason::Requested);
            self.end_txn(cx, txn, Outcome::Aborted(reason.clone()));
            cx.out.complete(txn, errand.id, OpReply::failed(reason));
            return;
        }
        let key = errand.message.op.key().expect("an errand is about one row");
        self.errands.whereabouts.remove(key);
        let mut next = owner.filter(|owner| errand.hops < HOPS_MAX && self.is_acquainted(*owner));
        let homeless = self.is_down(self.home(key.slot));
        if homeless {
            errand.tried.insert(errand.to);
            let other = self.reader_of(key, &errand.tried).ok();
            next = other.filter(|other| self.is_acquainted(*other));
        }
        if let Some(owner) = next {
            let key = key.clone();
            if !homeless && owner != self.home(key.slot) {
                self.errands.note_whereabouts(&key, owner);
            }
            errand.hops += 1;
            errand.to = owner;
            errand.message.expected = self.life_of(owner);
            self.begin_errand(cx, errand);
            return;
        }
        let (id, last) = (errand.id, errand.last);
        let origin = Origin::Local { id, last };
        let message = errand.message;
        let txn = message.txn;
        let mut job = Box::new(Job::new(txn, message.options, message.planned, origin));
        job.id = self.jobs.next_number();
        job.alone = !message.holds;
        job.op = Some(message.op);
        self.coord.txns.of(txn).phase = Phase::Running;
        self.run_here(id, job);
        self.jobs.wake_all(self.coord.owings.waits.drain(..));
    }

    /// Whether a transaction is entrusted to another shard: cancelled, its outcome is unknown.
    pub(crate) fn is_entrusted(&self, txn: TxnId) -> bool {
        self.coord
            .txns
            .get(&txn)
            .is_some_and(|state| state.errand.is_some())
    }
}
