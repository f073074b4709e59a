//! Waits that have lasted too long: for promises and guards, and for transactions in doubt.
//!
//! The lock table ends waits for locks. A wait for a promise or guard, which counts as one for a
//! lock, ends here after [`txn::TxnOptions::lock_timeout_us`].
//!
//! In doubt is a transaction whose locks here cannot be given up, while the shard that knows its
//! outcome cannot be reached (rule C15).
//!
//! A participant that has voted, and a coordinator that has entrusted a commit, must keep locks
//! until they are told (rules C1 and C11). No other shard may decide. But other transactions do not
//! wait without end: one that has waited [`txn::TxnOptions::in_doubt_timeout_us`] fails with
//! [`AbortReason::InDoubt`], which names the transaction in doubt and how long its coordinator has
//! been away.

use crate::job::Job;
use crate::part::{Promise, Stage, coordinator_node};
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, NodeId, Time, TxnId};
use txn::{AbortReason, Doubt, DoubtfulWait, OpError};

/// Microseconds between two looks at requests that wait for a transaction in doubt, or are late.
const LOOK_US: u64 = 200_000;

impl<C: Control> Machine<C> {
    /// For a transaction in doubt here: the node that knows its outcome, its state here, and since
    /// when that node cannot be reached.
    fn doubt_of(&self, txn: TxnId) -> Option<(NodeId, &'static str, Time)> {
        let (node, state) = if let Some(unsettled) = self.unsettled.get(&txn) {
            (unsettled.shard.node(), "entrusted")
        } else if let Some(promise) = self.promises.get(&txn) {
            (self.away_of(txn, promise), "promised")
        } else if self.parts.get(&txn)?.stage == Stage::Voted {
            (coordinator_node(txn), "voted")
        } else {
            return None;
        };
        let since = self.peers.down_since(node)?;
        Some((node, state, since))
    }

    /// The node without which the outcome of a promise stays unknown: the coordinator's, or of
    /// this node's own transactions (rule C19) one of the others that have promised.
    fn away_of(&self, txn: TxnId, promise: &Promise) -> NodeId {
        let coordinator = coordinator_node(txn);
        let mut others = promise.participants.iter();
        let away = others.find(|shard| self.peers.is_down(**shard));
        match away {
            Some(away) if coordinator == self.shard.node() => away.node(),
            Some(_) | None => coordinator,
        }
    }

    /// Transactions in doubt on this shard, in ascending order.
    pub(crate) fn doubts_at(&self, now: Time) -> Vec<Doubt> {
        let of_parts = self.parts.iter().filter(|(_, p)| p.stage == Stage::Voted);
        let mut all: Vec<TxnId> = of_parts.map(|(txn, _)| *txn).collect();
        all.extend(self.promises.keys().chain(self.unsettled.keys()));
        all.sort_unstable();
        all.dedup();
        let waits = self.waits_for_doubts();
        let doubts = all.into_iter().filter_map(|txn| {
            let (node, state, since) = self.doubt_of(txn)?;
            let promise = self.promises.get(&txn);
            Some(Doubt {
                txn,
                node,
                state,
                age_us: now.since(since),
                rows: promise.map_or(0, |promise| promise.redo.len() as u64),
                waiters: waits.iter().filter(|wait| wait.holder == txn).count() as u64,
            })
        });
        doubts.collect()
    }

    /// Operations that wait for transactions in doubt.
    fn waits_for_doubts(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        self.locks.each_wait(&mut |wait| {
            if self.doubt_of(wait.holder).is_some() {
                waits.push(Wait {
                    job: wait.request,
                    holder: wait.holder,
                    key: wait.key,
                    since: wait.since,
                });
            }
        });
        for job in &self.promise_waits {
            let Some(waiting) = self.jobs.get(*job) else {
                continue;
            };
            let mut blockers = self.blockers(waiting);
            let Some((holder, key)) = blockers.find(|(holder, _)| self.doubt_of(*holder).is_some())
            else {
                continue;
            };
            // Those behind a guard have waited as long, one after the other.
            let guard = waiting.guarded_by.iter().any(|(by, _)| *by == holder);
            let down = self.doubt_of(holder).map(|(_, _, since)| since);
            let since = if guard { down } else { waiting.promise_since };
            waits.extend(since.map(|since| Wait {
                job: *job,
                holder,
                key: key.clone(),
                since,
            }));
        }
        waits
    }

    /// Transactions for whose outcome the job may be waiting, with a row of each: who guards what
    /// it has written, or else who has promised to write in the index that it reads.
    fn blockers<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = (TxnId, &'a Key)> {
        let guards = job.guarded_by.iter().map(|(by, key)| (*by, key));
        let index = job.awaits_promise().filter(|_| job.guarded_by.is_empty());
        let promises = index.into_iter().flat_map(move |index| {
            self.promises.iter().filter_map(move |(txn, promise)| {
                let mut rows = promise.redo.iter();
                let (key, _) = rows.find(|(key, _)| key.index == index)?;
                Some((*txn, key))
            })
        });
        guards.chain(promises)
    }

    /// Ends the waits that have lasted too long.
    pub(crate) fn end_long_waits(&mut self, cx: &mut Cx<'_>) {
        if self.wait_look.is_none_or(|at| at > cx.now) {
            return;
        }
        for wait in self.waits_for_doubts() {
            let limit_us = self
                .jobs
                .get(wait.job)
                .map_or(0, |job| job.options.in_doubt_timeout_us);
            if limit_us == 0 || cx.now.since(wait.since) < limit_us {
                continue;
            }
            let Some((node, _, since)) = self.doubt_of(wait.holder) else {
                continue;
            };
            let reason = AbortReason::InDoubt(Box::new(DoubtfulWait {
                key: wait.key,
                holder: wait.holder,
                node,
                age_us: cx.now.since(since),
            }));
            self.end_wait(cx, wait.job, reason);
        }
        for (job, reason) in self.late_waits(cx.now) {
            self.end_wait(cx, job, reason);
        }
        self.wait_look = None;
        self.plan_doubt_look(cx.now);
        let waits = self.promise_waits.iter();
        let jobs = waits.filter_map(|job| self.jobs.get(*job));
        let next = jobs.filter_map(Job::promise_deadline).min();
        // One that is late and waits on is looked at again after a while.
        self.look_at_waits(next.map(|at| match at > cx.now {
            true => at,
            false => cx.now.after(LOOK_US),
        }));
    }

    /// Waits for promises and guards that have lasted longer than the lock timeout.
    fn late_waits(&self, now: Time) -> Vec<(u64, AbortReason)> {
        let mut late = Vec::new();
        for number in &self.promise_waits {
            let Some(job) = self.jobs.get(*number) else {
                continue;
            };
            if job.promise_deadline().is_none_or(|at| at > now) {
                continue;
            }
            // No blocker: a commit is being installed, which takes a few turns.
            let blocker = self.blockers(job).next();
            late.extend(blocker.map(|(holder, key)| {
                let key = key.clone();
                (*number, AbortReason::LockTimeout { key, holder })
            }));
        }
        late
    }

    fn end_wait(&mut self, cx: &mut Cx<'_>, job: u64, reason: AbortReason) {
        self.promise_waits.retain(|waiting| *waiting != job);
        self.fail_job(cx, job, OpError::Aborted(reason));
    }

    /// Arms the check of waits, if a node cannot be reached and a request waits.
    pub(crate) fn plan_doubt_look(&mut self, now: Time) {
        if !self.peers.all_up() && !self.jobs.is_empty() {
            self.look_at_waits(Some(now.after(LOOK_US)));
        }
    }

    /// The waits are looked at by then.
    pub(crate) fn look_at_waits(&mut self, at: Option<Time>) {
        self.wait_look = [self.wait_look, at].into_iter().flatten().min();
    }
}

/// An operation that waits for a transaction in doubt.
struct Wait {
    job: u64,
    holder: TxnId,
    key: Key,
    since: Time,
}
