//! Formulas of transactions of other shards, pending at the owner of their row (L10).
//!
//! ```text
//! coordinator ──Entrust(holds)──> owner     increment lock, room for it ──Performed(Pending)──>
//!             ──Resolve(T)──────> owner     a version at T, with a record ──Applied──> durable
//!             <──Undecided─────── owner     a reader, or a version, waits: it has ended (Resolve),
//!             ──StillOpen(at)───> owner     or it will commit above `at`
//! ```
//!
//! Versions of a row appear in the order of their timestamps: one that is decided waits for those
//! that may still commit below it. They are known by their *low*: a transaction draws its timestamp
//! above the clocks of all who have answered it, and the owner's clock grows with each question. So
//! a reader waits for one round trip, and not until the transaction ends.
//!
//! Nothing of this is durable at the owner before it is applied. A restarted owner collects what it
//! must know: whoever claims says what it has committed on rows of the asker, and rolls back what
//! it has pending there and not committed. As versions are in order, a formula is missing if and
//! only if the newest version of its row is older than it.

use crate::job::{Job, Origin, Stop, Wait};
use crate::message::{Body, Performance, Resolve};
use crate::request::Standing;
use crate::timers::Timer;
use crate::{Context, Leap, printed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use base::{IndexId, Key, NodeId, Position, RowBatch, ShardId, Time, Ts, TxnId};
use store::{Formula, Write};
use txn::increment::columns_of;
use txn::lock::{Claim, Item};
use txn::{AbortReason, Event, LockMode, OpError, OpResult};

/// Pause before those are asked for whom a version waits. Microseconds.
const SOON_US: u64 = 2_000;

/// A formula on a row that is here.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) txn: TxnId,
    formula: Formula,
    /// Its transaction takes the row itself: the formula goes with it.
    withdrawn: bool,
}

impl Pending {
    /// The lock that keeps the row for it.
    pub(crate) fn claim(&self) -> Claim {
        Claim::adds(columns_of(&self.formula))
    }
}

/// A transaction with formulas here.
#[derive(Debug)]
struct Lodger {
    /// Who decides, and hears when it is applied.
    coordinator: ShardId,
    /// It commits above this.
    low: Ts,
    decided: Option<Ts>,
    keys: Vec<Key>,
    /// It was asked whether it has committed at or below this; zero: there is no question open.
    asked: Ts,
    heard: Time,
    /// Its records so far end here.
    position: Position,
}

/// What is pending on rows of this shard.
#[derive(Debug, Default)]
pub(crate) struct Pendings {
    rows: BTreeMap<Key, Vec<Pending>>,
    lodgers: BTreeMap<TxnId, Lodger>,
    /// Committed formulas that were collected after a restart, on rows of which it is not known yet
    /// whether they are here.
    collected: BTreeMap<Key, Vec<(Ts, TxnId, Formula)>>,
    timer: Option<Time>,
    /// Where the last formula was applied.
    applied: Position,
}

impl Pendings {
    pub(crate) fn is_idle(&self) -> bool {
        self.lodgers.is_empty() && self.collected.is_empty()
    }

    /// How many rows have formulas.
    pub(crate) fn rows_len(&self) -> usize {
        self.rows.len()
    }

    /// Whether other transactions may have formulas on the row.
    #[inline]
    pub(crate) fn has(&self, key: &Key) -> bool {
        !self.rows.is_empty() && self.rows.contains_key(key)
    }

    /// Whether a row of one bucket from `low` to `high`, both included, has formulas.
    pub(crate) fn has_between(&self, low: &Key, high: &Key) -> bool {
        let pending = self.rows.range(low..=high).next().is_some();
        pending || self.collected.range(low..=high).next().is_some()
    }

    /// The rows that have formulas.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.rows.keys()
    }

    /// Who decides about formulas on the row that are not decided.
    pub(crate) fn undecided_on(&self, key: &Key) -> impl Iterator<Item = ShardId> {
        let on_row = self.rows.get(key).into_iter().flatten();
        let lodgers = on_row.map(|pending| &self.lodgers[&pending.txn]);
        let open = lodgers.filter(|lodger| lodger.decided.is_none());
        open.map(|lodger| lodger.coordinator)
    }

    /// Transactions that are not decided, who knows it first, and the rows of their formulas.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = (TxnId, ShardId, &[Key])> {
        let lodgers = self.lodgers.iter();
        let open = lodgers.filter(|(_, lodger)| lodger.decided.is_none());
        open.map(|(txn, lodger)| (*txn, lodger.coordinator, lodger.keys.as_slice()))
    }

    /// Rows with formulas of transactions of a node that are not decided.
    pub(crate) fn keys_of_coordinator(&self, node: NodeId) -> Vec<Key> {
        let keys = self.rows.keys();
        let of_it = |key: &&Key| self.undecided_on(key).any(|at| at.node() == node);
        keys.filter(of_it).cloned().collect()
    }

    /// Whether formulas are to be applied to the row before it may be used.
    #[inline]
    pub(crate) fn is_missing(&self, key: &Key) -> bool {
        !self.collected.is_empty() && self.collected.contains_key(key)
    }

    pub(crate) fn has_index(&self, index: IndexId) -> bool {
        let keys = self.rows.keys().chain(self.collected.keys());
        keys.into_iter().any(|key| key.index == index)
    }

    pub(crate) fn lodges(&self, txn: TxnId) -> bool {
        !self.lodgers.is_empty() && self.lodgers.contains_key(&txn)
    }

    /// What a transaction has pending on the row.
    pub(crate) fn of(&self, txn: TxnId, key: &Key) -> Option<&Formula> {
        let mut on_row = self.rows.get(key)?.iter();
        let own = on_row.find(|pending| pending.txn == txn);
        own.map(|pending| &pending.formula)
    }

    pub(crate) fn collect(&mut self, key: Key, commit_ts: Ts, txn: TxnId, formula: Formula) {
        let on_row = self.collected.entry(key).or_default();
        if !on_row.iter().any(|(_, known, _)| *known == txn) {
            on_row.push((commit_ts, txn, formula));
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (&Key, &Pending)> {
        let rows = self.rows.iter();
        rows.flat_map(|(key, on_row)| on_row.iter().map(move |pending| (key, pending)))
    }

    /// A transaction that may commit below `ts` on the row; withdrawn formulas do not count.
    fn is_below(&self, pending: &Pending, ts: Ts) -> bool {
        let lodger = &self.lodgers[&pending.txn];
        !pending.withdrawn && lodger.decided.is_none() && lodger.low < ts
    }
}

impl Leap {
    /// Holds a formula for a transaction of another shard. [`OpResult::Exists`]: the row had better
    /// go to its transaction, because it is absent, lent, or near the end of its range.
    pub(crate) fn hold(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        key: &Key,
        formula: &Formula,
    ) -> Result<OpResult, Stop> {
        cx.check_schema(key.index, job.planned)?;
        if cx.journal.is_full() {
            return Err(Stop::aborted(AbortReason::DiskFull(self.shard)));
        }
        match self.standing(key) {
            Standing::Mine => {}
            Standing::Elsewhere => return Err(Stop::Wait(Wait::Elsewhere)),
            Standing::Doubtful => return Err(Stop::Wait(Wait::Gate)),
        }
        let claim = self.formula_claim(cx, job.txn, key, formula);
        let claim = self.placed_claim(key, claim);
        if claim.mode() == LockMode::Exclusive {
            return Ok(OpResult::Exists);
        }
        self.lock(cx, job, &Item::of(key), claim)?;
        let Some(newest) = cx.store.get(key, Ts::MAX) else {
            return Ok(OpResult::Exists);
        };
        // The transaction relies on the row: it must be here, and as it is, after a restart too.
        let version = self.installed.of(newest.commit_ts);
        job.wait = job.wait.max(version).max(self.arrival(key).0);
        self.lodge(cx, job, key, formula);
        Ok(OpResult::Modified {
            found: true,
            written: true,
            returning: RowBatch::new(0),
        })
    }

    fn lodge(&mut self, cx: &mut Context<'_>, job: &Job, key: &Key, formula: &Formula) {
        cx.clock.tick(cx.now);
        let lodger = self.pendings.lodgers.entry(job.txn);
        let lodger = lodger.or_insert_with(|| Lodger {
            coordinator: job.txn.shard,
            low: Ts::ZERO,
            decided: None,
            keys: Vec::new(),
            asked: Ts::ZERO,
            heard: cx.now,
            position: Self::NOTHING,
        });
        lodger.low = lodger.low.max(cx.clock.reached());
        let on_row = self.pendings.rows.entry(key.clone()).or_default();
        match on_row.iter_mut().find(|pending| pending.txn == job.txn) {
            Some(own) => {
                let before = core::mem::replace(&mut own.formula, Formula(Vec::new()));
                own.formula = before.then(formula.clone());
            }
            None => {
                on_row.push(Pending {
                    txn: job.txn,
                    formula: formula.clone(),
                    withdrawn: false,
                });
                lodger.keys.push(key.clone());
            }
        }
        if let Some(history) = &mut cx.history {
            let (txn, key) = (job.txn, key.clone());
            history.push(Event::Write { txn, key });
        }
        self.arm_pendings(cx.now, self.settings.resend_us);
    }

    /// Formulas that a transaction commits here while others have some pending on the same rows:
    /// they take their places among those.
    pub(crate) fn lodge_decided(
        &mut self,
        cx: &mut Context<'_>,
        txn: TxnId,
        commit_ts: Ts,
        writes: Vec<(Key, Formula)>,
    ) {
        let keys: Vec<Key> = writes.iter().map(|(key, _)| key.clone()).collect();
        let lodger = Lodger {
            coordinator: self.shard,
            low: commit_ts,
            decided: None,
            keys,
            asked: Ts::ZERO,
            heard: cx.now,
            position: Self::NOTHING,
        };
        self.pendings.lodgers.insert(txn, lodger);
        for (key, formula) in writes {
            let pending = Pending {
                txn,
                formula,
                withdrawn: false,
            };
            self.pendings.rows.entry(key).or_default().push(pending);
        }
        self.decide(cx, txn, commit_ts);
    }

    /// The formula is held, or not.
    pub(crate) fn end_held(
        &mut self,
        cx: &mut Context<'_>,
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
                // It may have got its lock before it failed.
                self.give_up_place(job.txn, key);
                Performance::Ended {
                    result: Err(error),
                    outcome: None,
                    wait: job.wait,
                    take: false,
                }
            }
        };
        self.answer_errand(cx, from, number, performance, Some(key));
    }

    /// A formula that was not held after all needs no lock, unless there is one before it.
    pub(crate) fn give_up_place(&mut self, txn: TxnId, key: &Key) {
        if self.pendings.of(txn, key).is_none() && txn.shard != self.shard {
            self.locks.release_item(txn, &Item::of(key));
        }
    }

    /// How a transaction with formulas here has ended.
    pub(crate) fn on_resolve(&mut self, cx: &mut Context<'_>, from: ShardId, resolve: Resolve) {
        let Resolve { txn, commit_ts } = resolve;
        let Some(commit_ts) = commit_ts else {
            self.drop_lodger(cx, txn);
            return;
        };
        if self.pendings.lodges(txn) {
            self.decide(cx, txn, commit_ts);
            return;
        }
        let mut collected = self.pendings.collected.values().flatten();
        if self.rejoin.is_serving() && !collected.any(|(_, known, _)| *known == txn) {
            // It was applied before, or the row has gone on with it.
            let position = self.pendings.applied;
            self.post(cx, from, Body::Applied(txn), position);
        }
    }

    fn decide(&mut self, cx: &mut Context<'_>, txn: TxnId, commit_ts: Ts) {
        let Some(lodger) = self.pendings.lodgers.get_mut(&txn) else {
            return;
        };
        if lodger.decided.is_some() {
            return;
        }
        lodger.decided = Some(commit_ts);
        for key in lodger.keys.clone() {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// Applies what is decided on a row and may not be preceded by anything any more.
    fn apply_due(&mut self, cx: &mut Context<'_>, key: &Key) {
        while let Some(on_row) = self.pendings.rows.get(key) {
            let decided = on_row.iter().enumerate().filter_map(|(at, pending)| {
                let decided = self.pendings.lodgers[&pending.txn].decided;
                decided.map(|commit_ts| (commit_ts, at))
            });
            let Some((commit_ts, at)) = decided.min() else {
                return;
            };
            let pendings = &self.pendings;
            if on_row
                .iter()
                .any(|other| pendings.is_below(other, commit_ts))
            {
                self.arm_pendings(cx.now, SOON_US);
                return;
            }
            self.apply_pending(cx, key, at, commit_ts);
        }
    }

    fn apply_pending(&mut self, cx: &mut Context<'_>, key: &Key, at: usize, commit_ts: Ts) {
        let on_row = self
            .pendings
            .rows
            .get_mut(key)
            .expect("looked up by the caller");
        let Pending { txn, formula, .. } = on_row.remove(at);
        if on_row.is_empty() {
            self.pendings.rows.remove(key);
        }
        let position = self.apply_formula(cx, txn, key, formula, commit_ts);
        let lodgers = &mut self.pendings.lodgers;
        let lodger = lodgers
            .get_mut(&txn)
            .expect("whoever has a formula here lodges");
        lodger.position = lodger.position.max(position);
        lodger.keys.retain(|other| other != key);
        if lodger.keys.is_empty() {
            let lodger = lodgers.remove(&txn).expect("looked up above");
            let wait = lodger.position;
            self.post(cx, lodger.coordinator, Body::Applied(txn), wait);
            if !self.visits.contains_key(&txn) {
                self.visits.entry(txn).or_default();
                self.end_visit(cx, txn);
                return;
            }
        }
        self.locks.release_item(txn, &Item::of(key));
    }

    /// A version of a formula, with its record. Nothing if the index is gone.
    fn apply_formula(
        &mut self,
        cx: &mut Context<'_>,
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

    /// Rolls back what a transaction has here, and gives up all its locks.
    fn drop_lodger(&mut self, cx: &mut Context<'_>, txn: TxnId) {
        let own = self.jobs.values().filter(|job| job.txn == txn);
        let held = own.filter(|job| matches!(job.origin, Origin::Held { .. }));
        let jobs: Vec<u64> = held.map(|job| job.id).collect();
        let lodger = self.pendings.lodgers.get(&txn);
        if lodger.is_some_and(|lodger| lodger.decided.is_some())
            || (jobs.is_empty() && lodger.is_none())
        {
            return;
        }
        for id in jobs {
            self.drop_job(id);
        }
        let lodger = self.pendings.lodgers.remove(&txn);
        let keys = lodger.map(|lodger| lodger.keys).unwrap_or_default();
        for key in &keys {
            self.remove_pending(txn, key);
        }
        self.visits.entry(txn).or_default();
        self.end_visit(cx, txn);
        for key in keys {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// Gives up what a transaction has locked here, but for the rows that have formulas of it.
    pub(crate) fn release_reads(&mut self, txn: TxnId) {
        let lodger = self.pendings.lodgers.get(&txn);
        let kept = lodger.map(|lodger| lodger.keys.as_slice());
        let kept = kept.unwrap_or_default();
        self.locks.release_but(txn, &|key| kept.contains(key));
    }

    fn remove_pending(&mut self, txn: TxnId, key: &Key) {
        if let Some(on_row) = self.pendings.rows.get_mut(key) {
            on_row.retain(|pending| pending.txn != txn);
            if on_row.is_empty() {
                self.pendings.rows.remove(key);
            }
        }
    }

    /// A transaction asks for a row on which it has a formula here: that goes with the row. The row
    /// leaves with a clock below its commit, so nothing waits for it any more.
    pub(crate) fn withdraw(&mut self, cx: &mut Context<'_>, txn: TxnId, key: &Key) {
        let Some(on_row) = self.pendings.rows.get_mut(key) else {
            return;
        };
        if let Some(own) = on_row.iter_mut().find(|pending| pending.txn == txn) {
            own.withdrawn = true;
            self.apply_due(cx, key);
            self.wake_snapshots();
        }
    }

    /// Gives up what a transaction has locked on one row, and a formula that went with it.
    pub(crate) fn let_go(&mut self, txn: TxnId, key: &Key) {
        if self.pendings.of(txn, key).is_some() {
            self.remove_pending(txn, key);
            if let Some(lodger) = self.pendings.lodgers.get_mut(&txn) {
                lodger.keys.retain(|other| other != key);
                if lodger.keys.is_empty() {
                    self.pendings.lodgers.remove(&txn);
                }
            }
        }
        self.locks.release_item(txn, &Item::of(key));
    }

    /// Whether a reader of `reads` at `ts` has to wait for the outcome of formulas; those who know
    /// it are asked.
    pub(crate) fn awaits_outcomes(
        &mut self,
        cx: &mut Context<'_>,
        job: &mut Job,
        ts: Ts,
        reads: &mut dyn FnMut(&Key) -> bool,
    ) -> Result<bool, Stop> {
        if self.pendings.rows.is_empty() {
            return Ok(false);
        }
        let newest = ts == Ts::MAX;
        let ts = match (ts, job.reads_at) {
            (Ts::MAX, None) => *job.reads_at.insert(cx.clock.tick(cx.now)),
            (Ts::MAX, Some(at)) => at,
            (ts, _) => ts,
        };
        let (mut waits, mut open) = (false, Vec::new());
        for (key, pending) in self.pendings.each() {
            if pending.txn == job.txn || !reads(key) {
                continue;
            }
            if self.pendings.is_below(pending, ts) {
                if let Some(reason) = self.doubt_of(key) {
                    return Err(Stop::aborted(reason));
                }
                open.push(pending.txn);
            }
            // Who began before the reader of a newest version may have been answered already.
            let lodger = &self.pendings.lodgers[&pending.txn];
            let until = if newest && lodger.low < ts {
                Ts::MAX
            } else {
                ts
            };
            waits |= lodger.decided.is_some_and(|commit_ts| commit_ts <= until);
        }
        waits |= !open.is_empty();
        for txn in open {
            self.ask_outcome(cx, txn, ts);
        }
        Ok(waits)
    }

    fn ask_outcome(&mut self, cx: &mut Context<'_>, txn: TxnId, ts: Ts) {
        let Some(lodger) = self.pendings.lodgers.get_mut(&txn) else {
            return;
        };
        if lodger.asked < ts {
            lodger.asked = ts;
            let coordinator = lodger.coordinator;
            self.post(cx, coordinator, Body::Undecided(txn), Self::NOTHING);
        }
    }

    /// A transaction is not decided, and commits above `at`.
    pub(crate) fn on_still_open(&mut self, cx: &mut Context<'_>, txn: TxnId, at: Ts) {
        let Some(lodger) = self.pendings.lodgers.get_mut(&txn) else {
            return;
        };
        if lodger.decided.is_none() {
            lodger.low = lodger.low.max(at);
        }
        lodger.asked = Ts::ZERO;
        lodger.heard = cx.now;
        for key in lodger.keys.clone() {
            self.apply_due(cx, &key);
        }
        self.wake_snapshots();
    }

    /// A node has a new life: those of its transactions that are not decided are asked about.
    pub(crate) fn ask_lost_lodgers(&mut self, cx: &mut Context<'_>, node: NodeId, life: u32) {
        let lost = self.pendings.lodgers.iter().filter(|(txn, lodger)| {
            lodger.coordinator.node() == node && txn.incarnation < life && lodger.decided.is_none()
        });
        let lost: Vec<(TxnId, ShardId)> = lost.map(|(txn, l)| (*txn, l.coordinator)).collect();
        for (txn, coordinator) in lost {
            self.post(cx, coordinator, Body::Undecided(txn), Self::NOTHING);
        }
        // Those that wait for a lock have nothing that could be decided.
        let held = self.jobs.values();
        let held = held.filter(|job| matches!(job.origin, Origin::Held { .. }));
        let dead = held.map(|job| job.txn);
        let dead = dead.filter(|txn| txn.shard.node() == node && txn.incarnation < life);
        let dead: Vec<TxnId> = dead.collect();
        for txn in dead {
            if !self.pendings.lodges(txn) {
                self.drop_lodger(cx, txn);
            }
        }
    }

    fn arm_pendings(&mut self, now: Time, in_us: u64) {
        let at = now.after(in_us);
        if let Some(armed) = self.pendings.timer {
            if armed <= at {
                return;
            }
            self.timers.remove(&(armed, Timer::Pendings));
        }
        self.pendings.timer = Some(at);
        self.timers.insert((at, Timer::Pendings));
    }

    /// Asks about transactions that others wait for, and those that were not heard of for long.
    pub(crate) fn on_pendings_timer(&mut self, cx: &mut Context<'_>) {
        self.pendings.timer = None;
        if self.pendings.lodgers.is_empty() {
            return;
        }
        let mut due: BTreeMap<TxnId, Ts> = BTreeMap::new();
        for on_row in self.pendings.rows.values() {
            let decided = on_row
                .iter()
                .filter_map(|pending| self.pendings.lodgers[&pending.txn].decided);
            let Some(first) = decided.min() else {
                continue;
            };
            let below = on_row.iter().filter(|p| self.pendings.is_below(p, first));
            due.extend(below.map(|pending| (pending.txn, first)));
        }
        let soon = !due.is_empty();
        for (txn, lodger) in &mut self.pendings.lodgers {
            let silent = cx.now.since(lodger.heard) >= self.settings.inquire_us;
            if lodger.decided.is_none() && silent {
                lodger.heard = cx.now;
                lodger.asked = Ts::ZERO;
                due.entry(*txn).or_insert(Ts(1));
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

    /// Whether everybody has said which formulas it has committed on rows of this shard.
    pub(crate) fn has_collected(&self) -> bool {
        self.rejoin.is_serving()
            || printed!(self, LeapOwnerServesAtOnce)
            || printed!(self, LeapFormulaLost)
    }

    /// Applies what was collected after a restart, on rows of which it is known by now that they
    /// are here. Of those that are not, the next owner has got them with the row.
    pub(crate) fn apply_collected(&mut self, cx: &mut Context<'_>) {
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
