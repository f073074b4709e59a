//! Formulas of transactions of other shards, pending at the owner of their row (L10).
//!
//! ```text
//! coordinator ──Entrust(holds)──> owner     increment lock, room for it ──Performed(Pending)──>
//!             ──Resolve(T)──────> owner     a version at T, with a record ──Applied──> durable
//!             <──Undecided─────── owner     a reader, or a version, waits: it has ended (Resolve),
//!             ──StillOpen(at)───> owner     or it will commit above `at`
//! ```
//!
//! Versions of a row appear in the order of their timestamps: a version that is decided waits for
//! formulas that may still commit below it. The owner knows them by their *low*: a transaction
//! draws its timestamp above the clocks of all shards that have answered it, and the owner's clock
//! grows with each question. So a reader waits for one round trip, not until the transaction ends.
//!
//! A formula is not durable at the owner before it is applied. A restarted owner collects formulas:
//! each shard that claims first rolls back what it has pending on rows of the owner and not
//! committed, and then says what it has committed on them. Because versions are in order, a formula
//! is missing if and only if the newest version of its row is older than the formula.

use crate::job::{Job, Origin, Stop, Wait};
use crate::message::{Body, Owed, Performance, Resolve};
use crate::request::Standing;
use crate::{Cx, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, RowBatch, ShardId, Time, Ts, TxnId};
use store::{Formula, Write};
use txn::escrow::Escrow;
use txn::increment::columns_of;
use txn::lock::{Claim, Item};
use txn::pending::{Next, Pending};
use txn::{AbortReason, Alarm, Event, LockMode, OpError, OpResult};

/// Pause, in microseconds, before the coordinators of formulas are asked for which a version waits.
const SOON_US: u64 = 2_000;

/// The increment lock of a formula.
pub(crate) fn claim_of(pending: &Pending) -> Claim {
    Claim::adds(columns_of(&pending.formula))
}

/// A transaction of another shard that has formulas pending here.
#[derive(Debug)]
pub(crate) struct Lodger {
    /// The shard that decides the transaction, and is told when its formulas are applied.
    coordinator: ShardId,
    /// The coordinator was asked whether it has committed at or below this. Zero: it was not asked.
    asked: Ts,
    heard: Time,
    /// Position of the last record of its formulas.
    position: Position,
}

impl Lodger {
    fn new(coordinator: ShardId, now: Time) -> Lodger {
        Lodger {
            coordinator,
            asked: Ts::ZERO,
            heard: now,
            position: Leap::NOTHING,
        }
    }
    /// Node that decides the transaction.
    pub(crate) fn node(&self) -> NodeId {
        self.coordinator.node()
    }
}

/// Formulas pending on rows of this shard.
#[derive(Debug, Default)]
pub(crate) struct Pendings {
    pub(crate) formulas: txn::Pendings<Key, Lodger>,
    /// Committed formulas that were collected after a restart, on rows that may be here or not.
    collected: BTreeMap<Key, Vec<(Ts, TxnId, Formula)>>,
    /// Timer of questions to coordinators.
    pub(crate) ask_again: Alarm,
    /// Position of the record of the formula that was applied last.
    applied: Position,
}

impl Pendings {
    pub(crate) fn is_idle(&self) -> bool {
        self.formulas.is_empty() && self.collected.is_empty()
    }

    /// Whether a row of one bucket from `low` to `high`, both included, has formulas.
    pub(crate) fn has_between(&self, low: &Key, high: &Key) -> bool {
        let pending = self.formulas.has_between(low, high);
        pending || self.collected.range(low..=high).next().is_some()
    }

    /// Formulas on the row that are not decided: whose they are, and its coordinator.
    pub(crate) fn undecided_on(&self, key: &Key) -> impl Iterator<Item = (TxnId, ShardId)> {
        let formulas = &self.formulas;
        let on_row = formulas.on(key).iter();
        let open = on_row.filter(|pending| formulas.decided(pending.txn).is_none());
        open.filter_map(|pending| Some((pending.txn, formulas.note(pending.txn)?.coordinator)))
    }

    /// Transactions that are not decided, their coordinators, and the rows of their formulas.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (TxnId, ShardId, &[Key])> {
        let open = self.formulas.undecided();
        open.map(|(txn, lodger)| (txn, lodger.coordinator, self.formulas.rows_of(txn)))
    }

    /// Rows with formulas of transactions of a node that are not decided.
    pub(crate) fn keys_of_coordinator(&self, node: NodeId) -> Vec<Key> {
        let keys = self.formulas.rows();
        let of_it = |key: &&Key| self.undecided_on(key).any(|(_, at)| at.node() == node);
        keys.filter(of_it).cloned().collect()
    }

    /// Whether formulas are to be applied to the row before it may be used.
    #[inline]
    pub(crate) fn is_missing(&self, key: &Key) -> bool {
        !self.collected.is_empty() && self.collected.contains_key(key)
    }

    pub(crate) fn has_index(&self, index: IndexId) -> bool {
        let keys = self.formulas.rows().chain(self.collected.keys());
        keys.into_iter().any(|key| key.index == index)
    }

    pub(crate) fn collect(&mut self, owed: Owed) {
        let on_row = self.collected.entry(owed.key).or_default();
        if !on_row.iter().any(|(_, known, _)| *known == owed.txn) {
            on_row.push((owed.commit_ts, owed.txn, owed.formula));
        }
    }
}

impl Leap {
    /// Holds a formula for a transaction of another shard. [`OpResult::Exists`]: the row is to go
    /// to the transaction, because it is absent or lent, or a column may leave its range.
    pub(crate) fn hold(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        key: &Key,
        formula: &Formula,
    ) -> Result<OpResult, Stop> {
        cx.check_write(key.index, job.planned)?;
        if cx.journal.is_full() {
            return Err(Stop::aborted(AbortReason::DiskFull(self.shard)));
        }
        match self.standing(key) {
            Standing::Mine => {}
            Standing::Elsewhere => return Err(Stop::Wait(Wait::Elsewhere)),
            Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
        }
        let claim = self.formula_claim(cx, job.txn, key, core::slice::from_ref(formula));
        let claim = self.placed_claim(key, claim);
        if claim.mode() == LockMode::Exclusive {
            return Ok(OpResult::Exists);
        }
        self.lock(cx.now, job, &Item::of(key), claim)?;
        let Some(newest) = cx.store.get(key, Ts::MAX) else {
            return Ok(OpResult::Exists);
        };
        // Elsewhere the result is computed where the statement runs; here only at the commit.
        let held = self.pendings.formulas.of(job.txn, key);
        if !Escrow::default().has_room(newest.value, held, formula) {
            return Ok(OpResult::Exists);
        }
        // The transaction relies on the row: after a restart it must be here, with this version.
        let version = self.installed.of(newest.commit_ts);
        job.wait = job.wait.max(version).max(self.arrival(key).0);
        self.lodge(cx, job, key, formula);
        Ok(OpResult::Modified {
            found: true,
            written: true,
            returning: RowBatch::new(0),
        })
    }

    fn lodge(&mut self, cx: &mut Cx<'_>, job: &Job, key: &Key, formula: &Formula) {
        cx.clock.tick(cx.now);
        let (txn, low) = (job.txn, cx.clock.reached());
        let note = || Lodger::new(txn.shard, cx.now);
        self.pendings
            .formulas
            .hold(txn, key, formula.clone(), low, note);
        if let Some(history) = &mut cx.history {
            let (txn, key) = (job.txn, key.clone());
            history.push(Event::Write { txn, key });
        }
        self.arm_pendings(cx.now, self.settings.resend_us);
    }

    /// Formulas that a transaction of this shard commits, on rows on which other transactions have
    /// formulas pending: gives them their places among those.
    pub(crate) fn lodge_decided(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: Vec<(Key, Formula)>,
    ) {
        for (key, formula) in writes {
            let note = || Lodger::new(self.shard, cx.now);
            self.pendings
                .formulas
                .hold(txn, &key, formula, commit_ts, note);
        }
        self.decide(cx, txn, commit_ts);
    }

    /// A job that was to hold a formula has ended: the formula is held, or not.
    pub(crate) fn end_held(
        &mut self,
        cx: &mut Cx<'_>,
        job: &Job,
        key: &Key,
        result: Result<OpResult, OpError>,
    ) {
        let Origin::Held { from, number } = job.origin else {
            unreachable!("called for held formulas only")
        };
        let performance = match result {
            Ok(OpResult::Exists) => {
                self.give_up_place(job.txn, key);
                Performance::NotHere { owner: None }
            }
            Ok(result) => Performance::Pending {
                result,
                wait: job.wait,
                take: false,
            },
            Err(error) => {
                // The job may have got its lock before it failed.
                self.give_up_place(job.txn, key);
                Performance::failed(error, job.wait)
            }
        };
        self.answer_errand(cx, from, number, performance, Some(key));
    }

    /// A formula is not held: frees its lock, unless there is another formula on the row.
    pub(crate) fn give_up_place(&mut self, txn: TxnId, key: &Key) {
        if self.pendings.formulas.of(txn, key).is_none() && txn.shard != self.shard {
            self.locks.release_item(txn, &Item::of(key));
        }
    }

    /// How a transaction with formulas here has ended.
    pub(crate) fn on_resolve(&mut self, cx: &mut Cx<'_>, from: ShardId, resolve: Resolve) {
        let Resolve { txn, commit_ts } = resolve;
        let Some(commit_ts) = commit_ts else {
            self.drop_lodger(cx, txn);
            return;
        };
        if self.pendings.formulas.knows(txn) {
            self.decide(cx, txn, commit_ts);
            return;
        }
        let mut collected = self.pendings.collected.values().flatten();
        if self.rejoin.is_serving() && !collected.any(|(_, known, _)| *known == txn) {
            // The formula was applied before, or has left with its row.
            let position = self.pendings.applied;
            self.post(cx, from, Body::Applied(txn), position);
        }
    }

    fn decide(&mut self, cx: &mut Cx<'_>, txn: TxnId, commit_ts: Ts) {
        if self.pendings.formulas.decided(txn).is_some() {
            return;
        }
        for key in self.pendings.formulas.decide(txn, commit_ts) {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// Applies formulas on a row that are decided and below which no other can commit any more.
    fn apply_due(&mut self, cx: &mut Cx<'_>, key: &Key) {
        loop {
            match self.pendings.formulas.next(key) {
                Next::Undecided => return,
                Next::Waits => {
                    self.arm_pendings(cx.now, SOON_US);
                    return;
                }
                Next::Apply(txn, commit_ts) => self.apply_pending(cx, key, txn, commit_ts),
            }
        }
    }

    fn apply_pending(&mut self, cx: &mut Cx<'_>, key: &Key, txn: TxnId, commit_ts: Ts) {
        let formula = self.pendings.formulas.take(txn, key);
        let formula = formula.expect("it is the next one");
        let position = self.apply_formula(cx, txn, key, formula, commit_ts);
        let lodger = self.pendings.formulas.note_mut(txn);
        let lodger = lodger.expect("a transaction with a formula here is noted");
        lodger.position = lodger.position.max(position);
        if let Some(lodger) = self.pendings.formulas.end(txn) {
            let wait = lodger.position;
            self.post(cx, lodger.coordinator, Body::Applied(txn), wait);
            if !self.visits.contains(txn) {
                self.visit(cx.now, txn);
                self.end_visit(cx, txn);
                return;
            }
        }
        self.locks.release_item(txn, &Item::of(key));
    }

    /// Installs the version of a formula, with its record. Nothing if the index was dropped.
    fn apply_formula(
        &mut self,
        cx: &mut Cx<'_>,
        txn: TxnId,
        key: &Key,
        formula: Formula,
        commit_ts: Ts,
    ) -> Position {
        if (cx.schema_changed)(key.index).is_none() {
            return Self::NOTHING;
        }
        let writes = Vec::from([(key.clone(), Write::Formula(formula))]);
        let position = self.commit_writes(cx, txn, commit_ts, &writes);
        cx.clock.merge(commit_ts);
        self.pendings.applied = position;
        position
    }

    /// Rolls back the formulas of a transaction, and frees all its locks.
    fn drop_lodger(&mut self, cx: &mut Cx<'_>, txn: TxnId) {
        let jobs = self.guests.holding(txn);
        let formulas = &self.pendings.formulas;
        let nothing = jobs.is_empty() && !formulas.knows(txn);
        if formulas.decided(txn).is_some() || nothing {
            return;
        }
        for id in jobs {
            self.drop_job(id);
        }
        let keys = self.pendings.formulas.drop_txn(txn);
        self.visit(cx.now, txn);
        self.end_visit(cx, txn);
        for key in keys {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// Frees the locks of a transaction, except on rows on which it has formulas, or that are to
    /// leave in its name.
    pub(crate) fn release_reads(&mut self, txn: TxnId) {
        let kept = self.pendings.formulas.rows_of(txn);
        let leaving = self.owner.releasing.values();
        let leaving = leaving.filter(|releasing| releasing.priority.txn == txn);
        let leaving: Vec<&Key> = leaving.map(|releasing| &releasing.key).collect();
        let kept = |key: &Key| kept.contains(key) || leaving.contains(&key);
        self.locks.release_but(txn, &kept);
    }

    /// A transaction requests a row on which it has a formula here: the formula leaves with the
    /// row. The row leaves with a clock below the commit of the transaction, so nothing here waits
    /// for the formula any more.
    pub(crate) fn withdraw(&mut self, cx: &mut Cx<'_>, txn: TxnId, key: &Key) {
        if self.pendings.formulas.withdraw(txn, key) {
            self.apply_due(cx, key);
            self.wake_snapshots();
        }
    }

    /// Frees the lock of a transaction on a row that has left, and forgets the formula on it.
    pub(crate) fn let_go(&mut self, txn: TxnId, key: &Key) {
        if self.pendings.formulas.take(txn, key).is_some() {
            self.pendings.formulas.end(txn);
        }
        self.locks.release_item(txn, &Item::of(key));
    }

    /// Whether a reader of `reads` at `ts` waits for formulas. Asks their coordinators.
    pub(crate) fn awaits_outcomes(
        &mut self,
        cx: &mut Cx<'_>,
        job: &mut Job,
        ts: Ts,
        reads: &mut dyn FnMut(&Key) -> bool,
    ) -> Result<bool, Stop> {
        if self.pendings.formulas.is_empty() {
            return Ok(false);
        }
        let newest = ts == Ts::MAX;
        let ts = match (ts, job.reads_at) {
            (Ts::MAX, None) => *job.reads_at.insert(cx.clock.tick(cx.now)),
            (Ts::MAX, Some(at)) => at,
            (ts, _) => ts,
        };
        let (mut waits, mut open) = (false, Vec::new());
        let formulas = &self.pendings.formulas;
        for (key, pending) in formulas.each() {
            if pending.txn == job.txn || !reads(key) {
                continue;
            }
            if formulas.is_below(pending, ts) {
                if let Some(reason) = self.doubt_of(key) {
                    return Err(Stop::aborted(reason));
                }
                open.push(pending.txn);
            }
            // A transaction that began before a reader of the newest version may be answered.
            let until = match newest && formulas.low(pending.txn) < Some(ts) {
                true => Ts::MAX,
                false => ts,
            };
            let decided = formulas.decided(pending.txn);
            waits |= decided.is_some_and(|commit_ts| commit_ts <= until);
        }
        waits |= !open.is_empty();
        for txn in open {
            self.ask_outcome(cx, txn, ts);
        }
        Ok(waits)
    }

    fn ask_outcome(&mut self, cx: &mut Cx<'_>, txn: TxnId, ts: Ts) {
        let Some(lodger) = self.pendings.formulas.note_mut(txn) else {
            return;
        };
        if lodger.asked < ts {
            lodger.asked = ts;
            let coordinator = lodger.coordinator;
            self.say(cx, coordinator, Body::Undecided(txn));
        }
    }

    /// The coordinator says that a transaction is not decided, and commits above `at` if at all.
    pub(crate) fn on_still_open(&mut self, cx: &mut Cx<'_>, txn: TxnId, at: Ts) {
        let Some(lodger) = self.pendings.formulas.note_mut(txn) else {
            return;
        };
        lodger.asked = Ts::ZERO;
        lodger.heard = cx.now;
        self.pendings.formulas.raise(txn, at);
        for key in self.pendings.formulas.rows_of(txn).to_vec() {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// A node has a new life: asks about its transactions that are not decided.
    pub(crate) fn ask_lost_lodgers(&mut self, cx: &mut Cx<'_>, node: NodeId, life: u32) {
        let lost = self.pendings.formulas.undecided();
        let lost = lost
            .filter(|(txn, lodger)| lodger.coordinator.node() == node && txn.incarnation < life);
        let lost: Vec<(TxnId, ShardId)> = lost.map(|(txn, l)| (txn, l.coordinator)).collect();
        for (txn, coordinator) in lost {
            self.say(cx, coordinator, Body::Undecided(txn));
        }
        // Formulas that wait for a lock are not held: there is nothing to decide.
        let dead = self.guests.txns();
        let dead = dead.filter(|txn| txn.shard.node() == node && txn.incarnation < life);
        let dead: Vec<TxnId> = dead.collect();
        for txn in dead {
            if !self.pendings.formulas.knows(txn) {
                self.drop_lodger(cx, txn);
            }
        }
    }

    fn arm_pendings(&mut self, now: Time, in_us: u64) {
        self.pendings.ask_again.set_by(now.after(in_us));
    }

    /// Asks about transactions for which a version waits, and about those of silent coordinators.
    pub(crate) fn on_pendings_timer(&mut self, cx: &mut Cx<'_>) {
        self.pendings.ask_again.stop();
        if self.pendings.formulas.is_empty() {
            return;
        }
        let mut due = self.pendings.formulas.awaited();
        let soon = !due.is_empty();
        for (txn, lodger) in self.pendings.formulas.undecided_mut() {
            if cx.now.since(lodger.heard) >= self.settings.inquire_us {
                lodger.heard = cx.now;
                lodger.asked = Ts::ZERO;
                due.entry(txn).or_insert(Ts(1));
            }
        }
        for (txn, ts) in due {
            self.ask_outcome(cx, txn, ts);
        }
        let in_us = match soon {
            true => SOON_US,
            false => self.settings.resend_us,
        };
        self.arm_pendings(cx.now, in_us);
    }

    /// Whether every shard has said which formulas it has committed on rows of this shard.
    pub(crate) fn has_collected(&self) -> bool {
        self.rejoin.is_serving()
            || printed!(self, LeapOwnerServesAtOnce)
            || printed!(self, LeapFormulaLost)
    }

    /// Applies formulas that were collected after a restart, on rows that are known to be here by
    /// now. Forgets those on rows that are elsewhere: the next owner has got them with the row.
    pub(crate) fn apply_collected(&mut self, cx: &mut Cx<'_>) {
        if self.pendings.collected.is_empty() {
            return;
        }
        let keys: Vec<Key> = self.pendings.collected.keys().cloned().collect();
        for key in keys {
            let standing = self.standing_of_claim(&key);
            if standing == Standing::Doubtful {
                continue;
            }
            let mut formulas = self.pendings.collected.remove(&key).expect("just listed");
            if standing == Standing::Elsewhere {
                continue;
            }
            formulas.sort_unstable_by_key(|(commit_ts, ..)| *commit_ts);
            for (commit_ts, txn, formula) in formulas {
                let newest = cx.store.get(&key, Ts::MAX);
                let twice = printed!(self, LeapFormulaTwice);
                if newest.is_some_and(|newest| twice || newest.commit_ts < commit_ts) {
                    self.apply_formula(cx, txn, &key, formula, commit_ts);
                }
            }
        }
    }
}
