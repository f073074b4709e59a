//! Transactions in doubt: their locks here cannot be given up, and the shard that knows their
//! outcome cannot be reached (rule C15).
//!
//! A participant that has voted, and a coordinator that has entrusted a commit, must keep locks
//! until they are told (rules C1 and C11). No other shard may decide. But other transactions do not
//! wait without end: one that has waited [`txn::TxnOptions::in_doubt_timeout_us`] fails with
//! [`AbortReason::InDoubt`], which names the transaction in doubt and how long its coordinator has
//! been away.

use crate::part::{Promise, Stage, coordinator_node};
use crate::{Control, Cx, Machine};
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, NodeId, Time, TxnId};
use txn::{AbortReason, Doubt, DoubtfulWait, OpError};

/// Microseconds between two checks of the requests that wait for a transaction in doubt.
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
            let mut guards = waiting.guarded_by.iter();
            let doubtful = guards.find_map(|(holder, key)| {
                // Those behind it have waited as long, one after the other.
                let (_, _, since) = self.doubt_of(*holder)?;
                Some(Wait {
                    job: *job,
                    holder: *holder,
                    key: key.clone(),
                    since,
                })
            });
            if let Some(wait) = doubtful {
                waits.push(wait);
                continue;
            }
            let Some((index, since)) = waiting.awaits_promise() else {
                continue;
            };
            let mut promises = self.promises.iter();
            let found = promises.find_map(|(txn, promise)| {
                let (key, _) = promise.redo.iter().find(|(key, _)| key.index == index)?;
                self.doubt_of(*txn).map(|_| (*txn, key.clone()))
            });
            waits.extend(found.map(|(holder, key)| Wait {
                job: *job,
                holder,
                key,
                since,
            }));
        }
        waits
    }

    /// Ends the waits for transactions in doubt that have lasted too long.
    pub(crate) fn end_doubtful_waits(&mut self, cx: &mut Cx<'_>) {
        if self.doubt_look.is_none_or(|at| at > cx.now) {
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
            self.promise_waits.retain(|job| *job != wait.job);
            self.fail_job(cx, wait.job, OpError::Aborted(reason));
        }
        self.doubt_look = None;
        self.plan_doubt_look(cx.now);
    }

    /// Arms the check of waits, if a node cannot be reached and a request waits.
    pub(crate) fn plan_doubt_look(&mut self, now: Time) {
        let waits = !self.peers.all_up() && !self.jobs.is_empty();
        if waits && self.doubt_look.is_none() {
            self.doubt_look = Some(now.after(LOOK_US));
        }
    }
}

/// An operation that waits for a transaction in doubt.
struct Wait {
    job: u64,
    holder: TxnId,
    key: Key,
    since: Time,
}
