//! Transactions that the protocol has rolled back run again, as long as the client has seen no
//! result of them.

use super::quiesced::Held;
use super::run::Step;
use super::{Activity, Session, SessionCx, errors};
use crate::away::AWAY_US_MAX;
use base::{Position, SqlError, Time, Ts};
use plan::PlanKind;
use std::collections::VecDeque;
use txn::AbortReason;
use wire::Reply;

/// Number of attempts of one transaction before its client is told.
pub(super) const ATTEMPTS_MAX: u32 = 10;
/// Longest time, in microseconds, for which a transaction is run again while the schema changes.
/// Most changes, and the closing of a database by one, take less: a statement waits for them.
const SCHEMA_US_MAX: u64 = 2_000_000;
/// First pause before another attempt, in microseconds; doubles each time. The older transaction
/// needs about this long to end.
const BACKOFF_US: u64 = 200;
/// Pause before an attempt that needs a node without a connection, in microseconds.
const AWAY_PAUSE_US: u64 = 10_000;
/// Longest pause, before jitter, in microseconds.
const BACKOFF_US_MAX: u64 = 20_000;
/// Microseconds after a 40001 within which a client's next transaction counts as its repetition.
const REPEAT_US_MAX: u64 = 1_000_000;

/// Why a transaction waits before it runs again.
enum Pause {
    /// Other transactions were in its way.
    Conflict,
    /// A node has no connection; attempts have failed for that since this time.
    Away(Time),
    /// The schema is changing; attempts have failed for that since this time.
    Schema(Time),
}

/// Whether the same may happen to the client's repetition, as other transactions go on.
fn meets_others(reason: &AbortReason) -> bool {
    matches!(
        reason,
        AbortReason::Die { .. } | AbortReason::Overtaken(_) | AbortReason::SnapshotMisses(_)
    )
}

/// A transaction that is being run again.
pub(super) struct Retry {
    priority_ts: Ts,
    attempt: u32,
    tries: u32,
    /// When an attempt first failed because a node had no connection.
    away_since: Option<Time>,
    /// When an attempt first failed because the schema was changing.
    schema_since: Option<Time>,
    /// When it first found a table locked.
    locked_since: Option<Time>,
    /// Replies between those of its statements that were not said again yet.
    statics: VecDeque<(Reply, Position)>,
    /// Number of those that were said.
    moved: usize,
}

impl Session {
    /// The protocol has rolled the transaction back.
    pub(super) fn on_aborted(
        &mut self,
        cx: &mut SessionCx<'_>,
        reason: AbortReason,
        wait: Position,
    ) {
        let txn = self.txn.as_mut().expect("checked by the caller");
        txn.gone = true;
        let (retryable, tries) = (txn.retryable, txn.tries);
        if retryable && let Some(pause) = self.pause(cx, &reason, tries) {
            self.true_from = self.true_from.max(wait);
            self.restart_after(cx, pause);
            return;
        }
        if let (AbortReason::SnapshotMisses(_), true) = (&reason, self.modes.read_only) {
            self.clocks.missed();
        }
        let txn = self.txn.take().expect("just seen");
        if let Some(ts) = txn.priority_ts.filter(|_| meets_others(&reason)) {
            // The client's own repetition keeps the priority of this transaction.
            self.carried = Some((cx.now.after(REPEAT_US_MAX), ts, txn.attempt + 1));
        }
        let error = errors::aborted(&reason, self.database(cx).ok().map(|d| &**d));
        if self.ending.is_some() {
            self.fail_ending(cx, error, wait);
        } else {
            self.fail(cx, error, wait);
        }
    }

    /// The pause before another attempt of a transaction that has ended for `reason` in its attempt
    /// `tries`; `None`: there is no other attempt.
    fn pause(&self, cx: &SessionCx<'_>, reason: &AbortReason, tries: u32) -> Option<Pause> {
        let attempts_max = match reason {
            AbortReason::Requested
            | AbortReason::LockTimeout { .. }
            | AbortReason::MoveTimeout(_)
            | AbortReason::InDoubt(_)
            | AbortReason::DiskFull(_)
            | AbortReason::MemoryFull(_) => return None,
            AbortReason::Unreachable(shard) | AbortReason::RowCutOff { at: shard, .. } => {
                let known = self.retry.as_ref().and_then(|retry| retry.away_since);
                let since = known.unwrap_or(cx.now);
                let again =
                    cx.now.since(since) < AWAY_US_MAX && cx.away.may_return(shard.node(), cx.now);
                return again.then_some(Pause::Away(since));
            }
            AbortReason::SchemaChanged(_) => {
                let known = self.retry.as_ref().and_then(|retry| retry.schema_since);
                let since = known.unwrap_or(cx.now);
                let again = cx.now.since(since) < SCHEMA_US_MAX;
                return again.then_some(Pause::Schema(since));
            }
            AbortReason::Die { .. }
            | AbortReason::ParticipantLost(_)
            | AbortReason::CutOff(_)
            | AbortReason::SnapshotTooOld(_)
            | AbortReason::SnapshotMisses(_)
            | AbortReason::GaveWay { .. }
            | AbortReason::Overtaken(_) => ATTEMPTS_MAX,
        };
        (tries < attempts_max).then_some(Pause::Conflict)
    }

    /// [`Session::restart_after`] a conflict.
    pub(super) fn restart(&mut self, cx: &mut SessionCx<'_>) {
        self.restart_after(cx, Pause::Conflict);
    }

    /// Takes back the replies of the transaction and runs its statements again after a pause.
    fn restart_after(&mut self, cx: &mut SessionCx<'_>, pause: Pause) {
        let (attempt, tries, priority_ts) = {
            let txn = self
                .txn
                .as_ref()
                .expect("a transaction is restarted while it is known");
            let ts = txn
                .priority_ts
                .expect("it is told with the end of each statement");
            (txn.attempt, txn.tries, ts)
        };
        self.roll_back(cx);
        self.forget_notifications();
        cx.counters.server_retries += 1;
        self.last_txn.restarts += 1;
        let mut statics = self.take_back();
        let (mut away_since, mut schema_since, mut locked_since) = (None, None, None);
        if let Some(old) = &mut self.retry {
            statics.append(&mut old.statics);
            (away_since, schema_since) = (old.away_since, old.schema_since);
            locked_since = old.locked_since;
        }
        let doubled = (BACKOFF_US << (tries - 1).min(10)).min(BACKOFF_US_MAX);
        // A transaction whose rows are away met no other one: it does not become urgent.
        let (attempt, tries, pause_us) = match pause {
            Pause::Conflict => (attempt + 1, tries + 1, doubled),
            Pause::Schema(since) => {
                schema_since = Some(since);
                (attempt + 1, tries + 1, doubled)
            }
            Pause::Away(since) => {
                away_since = Some(since);
                (attempt, tries, AWAY_PAUSE_US)
            }
        };
        self.retry = Some(Retry {
            priority_ts,
            attempt,
            tries,
            away_since,
            schema_since,
            locked_since,
            statics,
            moved: 0,
        });
        // Spreads sessions that died together; any spread will do.
        let spread =
            (u64::from(self.conn.0) * 31 + self.txn_count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pause_us = pause_us + (spread >> 32) % pause_us;
        self.activity = Activity::Backoff(cx.now.after(pause_us));
    }

    /// Removes the replies of the steps that have run from the held ones; returns the others.
    fn take_back(&mut self) -> VecDeque<(Reply, Position)> {
        let ran = &mut self.steps[..=self.at];
        let mut statics = VecDeque::with_capacity(self.held.len());
        let mut held = self.held.drain(..);
        let mut place = 0;
        for step in ran {
            statics.extend(held.by_ref().take(step.mark - place));
            step.before = statics.len();
            held.by_ref().take(step.said).for_each(drop);
            place = step.mark + step.said;
        }
        statics.extend(held);
        self.held_batches = 0;
        statics
    }

    /// Says replies of a restarted transaction that stand before its next statement.
    pub(super) fn say_statics(&mut self, before: usize) {
        if let Some(retry) = &mut self.retry {
            while retry.moved < before
                && let Some(reply) = retry.statics.pop_front()
            {
                self.held.push(reply);
                retry.moved += 1;
            }
        }
        let held = self.held.len();
        let step = &mut self.steps[self.at];
        if self.retry.is_none() {
            // Only `take_back` uses this.
            step.before = 0;
        }
        step.mark = held;
    }

    /// Says the remaining replies of a restarted transaction.
    pub(super) fn flush_statics(&mut self) {
        if let Some(retry) = &mut self.retry {
            self.held.extend(retry.statics.drain(..));
        }
    }

    /// The pause has passed.
    pub(super) fn run_again(&mut self, cx: &mut SessionCx<'_>) {
        if self.program_resumes() {
            return;
        }
        self.activity = Activity::Idle;
        let late = self
            .steps
            .iter()
            .any(|step| step.deadline.is_some_and(|at| at <= cx.now));
        let checked = if late {
            Err(errors::statement_timeout())
        } else {
            self.replan_steps(cx)
        };
        if let Err(error) = checked {
            if self.ending.is_some() {
                self.fail_ending(cx, error, Position(0));
            } else {
                self.fail(cx, error, Position(0));
            }
            return;
        }
        if self.stays_shut(cx) {
            return;
        }
        let retry = self.retry.as_ref().expect("a pause belongs to a retry");
        let (first, tries) = ((Some(retry.priority_ts), retry.attempt), retry.tries);
        let (plan, params) = (self.steps[0].plan.clone(), self.steps[0].params.clone());
        self.open_txn(cx, &plan, &params, first, tries);
        for at in 0..self.steps.len() {
            let plan = self.steps[at].plan.clone();
            self.note_written(&plan);
        }
        self.at = 0;
        self.run_step(cx);
    }

    /// A step writes to a table that the open block of another session has changed: the pause goes
    /// on, or has been too long.
    fn stays_shut(&mut self, cx: &mut SessionCx<'_>) -> bool {
        if self.stays_locked(cx) {
            return true;
        }
        if cx.catalog.open_blocks == 0 || !self.steps.iter().any(|it| self.is_shut(cx, &it.plan)) {
            return false;
        }
        let retry = self.retry.as_mut().expect("a pause belongs to a retry");
        let since = *retry.schema_since.get_or_insert(cx.now);
        if cx.now.since(since) < SCHEMA_US_MAX {
            self.activity = Activity::Backoff(cx.now.after(BACKOFF_US_MAX));
        } else if self.ending.is_some() {
            self.fail_ending(cx, errors::shut(None), Position(0));
        } else {
            self.fail(cx, errors::shut(None), Position(0));
        }
        true
    }

    /// A step uses a table that another session has locked: the pause goes on. The transaction has
    /// been rolled back, so that nobody waits for it.
    fn stays_locked(&mut self, cx: &mut SessionCx<'_>) -> bool {
        let is_off = |step: &Step| self.kept_off(cx, &step.plan) == Some(Held::Locked);
        if cx.catalog.open_blocks == 0 || !self.steps.iter().any(is_off) {
            return false;
        }
        let limit_us = self.settings.knobs.lock_timeout_us;
        let retry = self.retry.as_mut().expect("a pause belongs to a retry");
        let since = *retry.locked_since.get_or_insert(cx.now);
        retry.schema_since = None;
        if limit_us == 0 || cx.now.since(since) < limit_us {
            self.activity = Activity::Backoff(cx.now.after(BACKOFF_US_MAX));
        } else if self.ending.is_some() {
            self.fail_ending(cx, errors::lock_timeout(), Position(0));
        } else {
            self.fail(cx, errors::lock_timeout(), Position(0));
        }
        true
    }

    fn replan_steps(&mut self, cx: &mut SessionCx<'_>) -> Result<(), SqlError> {
        for at in 0..self.steps.len() {
            let kind = &self.steps[at].plan.kind;
            if matches!(kind, PlanKind::Savepoint(_) | PlanKind::Adopt(_)) {
                continue;
            }
            let site = self.site(cx);
            if !self.steps[at].prepared.is_fresh(cx.catalog.version, &site) {
                let before = self.steps[at].prepared.clone();
                let prepared = match self.steps[at].portal {
                    Some(_) => self.refreshed_alike(cx, &before)?,
                    None => self.refreshed(cx, &before)?,
                };
                let step = &mut self.steps[at];
                step.plan = prepared
                    .plan
                    .clone()
                    .expect("a statement that ran is not empty");
                step.prepared = prepared;
            }
        }
        Ok(())
    }
}
