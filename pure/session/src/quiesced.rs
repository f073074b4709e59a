//! A block's first write to a table whose schema is about to change waits until the change is
//! published, as behind PostgreSQL's lock. Blocks that have written to the table go on to their end
//! meanwhile (`machine::quiesce`).

use super::block::Block;
use super::run::Start;
use super::{Activity, Session, SessionCx, errors};
use crate::message::Quiesce;
use base::{Position, SqlError, TableId, Time};
use plan::Plan;

/// A statement that waits.
pub(super) struct Quiesced {
    start: Start,
    /// When `statement_timeout` ends the wait.
    until: Option<Time>,
    /// When `lock_timeout` ends the wait.
    locked_until: Option<Time>,
}

impl Quiesced {
    /// When [`Session::on_tick`] is to be called for the wait.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.until.into_iter().chain(self.locked_until).min()
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

    /// Whether the statement must wait: it is its block's first write to a quiesced table.
    pub(super) fn must_wait(&self, cx: &SessionCx<'_>, plan: &Plan) -> bool {
        if self.block != Block::Explicit || cx.quiesced.is_empty() || !plan.writes {
            return false;
        }
        let mut waits = false;
        plan.each_written(&mut |table| {
            let concerns = |quiesce: &Quiesce| {
                quiesce.tables.contains(&table) && !self.holds_open(&quiesce.tables)
            };
            waits |= cx.quiesced.iter().any(concerns);
        });
        waits
    }

    /// Keeps the statement until [`Session::on_quiesced_end`].
    pub(super) fn wait_quiesced(&mut self, cx: &SessionCx<'_>, start: Start) {
        let knobs = &self.settings.knobs;
        let within = |from: Time, us: u64| (us > 0).then(|| from.after(us));
        let wait = Quiesced {
            until: within(self.timeout_from(cx.now), knobs.statement_timeout_us),
            locked_until: within(cx.now, knobs.lock_timeout_us),
            start,
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
            mut start, until, ..
        } = *waited;
        if !start.prepared.is_fresh(cx.catalog.version, &self.site(cx)) {
            let again = match start.portal {
                Some(_) => self.refreshed_alike(cx, &start.prepared),
                None => self.refreshed(cx, &start.prepared),
            };
            match again {
                Ok(prepared) => start.prepared = prepared,
                Err(error) => {
                    self.fail(cx, error, Position(0));
                    return self.pump(cx);
                }
            }
        }
        start.until = until;
        self.start(cx, start);
        self.pump(cx);
    }

    /// The waiting statement fails.
    pub(super) fn fail_quiesced(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        self.activity = Activity::Idle;
        self.fail(cx, error, Position(0));
    }

    /// A time limit of the waiting statement has passed.
    pub(super) fn on_quiesced_tick(&mut self, cx: &mut SessionCx<'_>) {
        let Activity::Quiesced(waiting) = &self.activity else {
            return;
        };
        let due = |at: Option<Time>| at.is_some_and(|at| at <= cx.now);
        if due(waiting.until) {
            self.fail_quiesced(cx, errors::statement_timeout());
        } else if due(waiting.locked_until) {
            self.fail_quiesced(cx, errors::lock_timeout());
        }
    }
}
