//! Statements that wait for others to be through with a table.
//!
//! | in the way | it waits | then |
//! |---|---|---|
//! | a change of the schema that comes, of a block's first write | until it is published | starts |
//! | the open block of another session has changed the table | two seconds at most | 55P03 |
//! | a lock of the table (LOCK TABLE) | as long; an open transaction three seconds | 40P01 |
//! | a session that waits for such a lock | as long; an open transaction one second | starts |
//!
//! Blocks that have written to the table go on to their end meanwhile (`machine::quiesce`).

use super::block::Block;
use super::run::Start;
use super::table_locks::CIRCLE_US;
use super::{Activity, Session, SessionCx, errors};
use crate::message::Quiesce;
use base::{Position, SqlError, TableId, Time};
use plan::Plan;
use std::sync::Arc;

/// Microseconds for which a statement waits for the open block of another session, which has
/// changed its table.
pub(super) const SHUT_US: u64 = 2_000_000;

/// Microseconds for which a statement of an open transaction gives way to a lock for which another
/// session waits. That one may wait for this transaction.
const GIVE_WAY_US: u64 = 1_000_000;

/// What is in the way of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    /// A change of the schema, which comes or can still be undone.
    Changing,
    /// A lock of the table.
    Locked,
    /// Another session waits for a lock of the table.
    Asked,
}

/// A statement that waits.
pub(super) struct Quiesced {
    start: Start,
    held: Held,
    /// When the first wait of the statement began.
    since: Time,
    /// When `statement_timeout` ends the wait.
    until: Option<Time>,
    /// When `lock_timeout` ends the wait.
    locked_until: Option<Time>,
    /// When the wait ends otherwise.
    held_until: Option<Time>,
}

impl Quiesced {
    /// When [`Session::on_tick`] is to be called for the wait.
    pub(super) fn deadline(&self) -> Option<Time> {
        let limits = self.until.into_iter().chain(self.locked_until);
        limits.chain(self.held_until).min()
    }

    /// The plan that waits for a lock of its tables, and since when.
    pub(super) fn awaits_lock(&self) -> Option<(&Arc<Plan>, Time)> {
        let plan = self.start.prepared.plan.as_ref();
        plan.filter(|_| self.held != Held::Changing)
            .map(|plan| (plan, self.since))
    }
}

impl Session {
    /// Whether a block of this session has written to one of the tables and can go on. A block that
    /// waits for a schema change itself cannot.
    pub fn holds_open(&self, tables: &[TableId]) -> bool {
        self.txn.as_ref().is_some_and(|txn| !txn.gone)
            && !matches!(self.activity, Activity::Ddl(_))
            && self.written.iter().any(|table| tables.contains(table))
    }

    /// Whether the statement must wait: it is its block's first write to a quiesced table, or
    /// writes to one that the open block of another session has changed, or that is locked.
    pub(super) fn must_wait(&self, cx: &SessionCx<'_>, plan: &Plan) -> Option<Held> {
        if cx.quiesced.is_empty() && cx.catalog.open_blocks == 0 {
            return None;
        }
        if cx.catalog.open_blocks > 0 && self.reads_filled(cx, plan) {
            return Some(Held::Changing);
        }
        if !(plan.writes || plan.locks) {
            return None;
        }
        if cx.catalog.open_blocks > 0 && self.is_shut(cx, plan) {
            return Some(Held::Changing);
        }
        if let Some(held) = self.kept_off(cx, plan) {
            return Some(held);
        }
        if self.block != Block::Explicit {
            return None;
        }
        let mut waits = false;
        plan.each_written(&mut |table| {
            let concerns = |quiesce: &Quiesce| {
                quiesce.lock.is_none()
                    && quiesce.tables.contains(&table)
                    && !self.holds_open(&quiesce.tables)
            };
            waits |= cx.quiesced.iter().any(concerns);
        });
        waits.then_some(Held::Changing)
    }

    /// Keeps the statement until [`Session::on_quiesced_end`].
    pub(super) fn wait_quiesced(&mut self, cx: &SessionCx<'_>, start: Start, held: Held) {
        let since = self.holds.since.take().unwrap_or(cx.now);
        let limit_us = match held {
            Held::Changing => Some(SHUT_US),
            Held::Locked => self.may_block().then_some(CIRCLE_US),
            Held::Asked => self.may_block().then_some(GIVE_WAY_US),
        };
        let knobs = &self.settings.knobs;
        let within = |from: Time, us: u64| (us > 0).then(|| from.after(us));
        let wait = Quiesced {
            // A statement that has waited before goes on with what is left of its time.
            until: start.until.or_else(|| self.time_limit(cx.now)),
            locked_until: within(since, knobs.lock_timeout_us),
            held_until: limit_us.map(|us| since.after(us)),
            since,
            start,
            held,
        };
        self.activity = Activity::Quiesced(Box::new(wait));
    }

    /// A table is no longer quiesced: a waiting statement is planned again, if need be, and starts.
    pub fn on_quiesced_end(&mut self, cx: &mut SessionCx<'_>) {
        if !matches!(self.activity, Activity::Quiesced(_)) {
            return;
        }
        let waited = core::mem::replace(&mut self.activity, Activity::Idle);
        let Activity::Quiesced(waited) = waited else {
            unreachable!("just seen")
        };
        let Quiesced {
            mut start,
            held: _,
            since,
            until,
            locked_until: _,
            held_until: _,
        } = *waited;
        self.holds.since = Some(since);
        if !start.prepared.is_fresh(cx.catalog.version, &self.site(cx)) {
            let again = match start.portal {
                Some(_) => self.refreshed_alike(cx, &start.prepared),
                None => self.refreshed(cx, &start.prepared),
            };
            match again {
                Ok(prepared) => start.prepared = prepared,
                Err(error) => {
                    self.holds.since = None;
                    self.fail(cx, error, Position(0));
                    return self.pump(cx);
                }
            }
        }
        start.until = until;
        self.start(cx, start);
        self.holds.since = None;
        self.pump(cx);
    }

    /// The waiting statement fails.
    pub(super) fn fail_quiesced(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        self.activity = Activity::Idle;
        self.fail(cx, error, Position(0));
    }

    /// A time limit of the waiting statement has passed.
    pub(super) fn on_quiesced_tick(&mut self, cx: &mut SessionCx<'_>) {
        let Activity::Quiesced(waiting) = &mut self.activity else {
            return;
        };
        if cx.catalog.open_blocks == 0 && waiting.held == Held::Changing {
            let later = cx.now.after(SHUT_US);
            waiting.held_until = waiting.held_until.max(Some(later));
        }
        let due = |at: Option<Time>| at.is_some_and(|at| at <= cx.now);
        let held = waiting.held;
        if due(waiting.until) {
            self.fail_quiesced(cx, errors::statement_timeout());
        } else if due(waiting.locked_until) {
            self.fail_quiesced(cx, errors::lock_timeout());
        } else if due(waiting.held_until) {
            match held {
                Held::Changing => self.fail_quiesced(cx, errors::shut(None)),
                Held::Locked => self.fail_quiesced(cx, errors::circle_of_tables()),
                Held::Asked => {
                    self.holds.goes_past = true;
                    self.on_quiesced_end(cx);
                    self.holds.goes_past = false;
                }
            }
        }
    }
}
