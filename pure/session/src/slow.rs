//! Statements that took long, for the log of the node.
//!
//! The limit is the smaller one of the setting `log_min_duration_statement` of the session and
//! that of the node. A statement counts from where it begins to where its answer is complete: with
//! its commit if it has a transaction of its own. The time in which its client sends or takes rows
//! is in it as far as the statement waits for that. Each Execute of a portal counts for itself.

use super::{Session, SessionCx};
use crate::plans::Prepared;
use std::rc::Rc;

/// Characters of a statement's text that are told at most.
const TEXT_MAX: usize = 1_000;

/// A statement that took long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowStatement {
    /// Backend number of its session.
    pub pid: i32,
    /// User name.
    pub user: Box<str>,
    /// Database.
    pub database: Box<str>,
    /// How long it took.
    pub duration_us: u64,
    /// Its text without the values of parameters, cut off if it is long.
    pub text: String,
}

impl Session {
    /// A statement begins; one that began before in the same round has ended.
    pub(super) fn begin_statement(&mut self, cx: &mut SessionCx<'_>, statement: Rc<Prepared>) {
        self.time_statement(cx);
        self.statement = Some(statement);
        self.statement_since = cx.now;
        self.statement_rows = self.settings.knobs.statement_rows;
        self.is_timed = true;
    }

    /// A statement has ended, if one has begun since the last call.
    #[inline]
    pub(super) fn time_statement(&mut self, cx: &mut SessionCx<'_>) {
        if std::mem::take(&mut self.is_timed) {
            let duration_us = cx.now.since(self.statement_since);
            let limit_us = self.settings.knobs.log_min_us;
            if duration_us >= limit_us.min(self.link.log_min_us.unwrap_or(u64::MAX)) {
                self.note_slow(duration_us);
            }
            self.count_statement(cx, duration_us);
        }
    }

    #[cold]
    fn note_slow(&mut self, duration_us: u64) {
        let shown = self.statement_text();
        let mut text: String = shown.chars().take(TEXT_MAX).collect();
        if text.len() < shown.len() {
            text.push_str("...");
        }
        let told = SlowStatement {
            pid: self.pid,
            user: (*self.user).into(),
            database: (*self.database).into(),
            duration_us,
            text,
        };
        self.slow.push(told);
    }

    /// The statement that runs or ran last, as others may see it; empty before the first. Of one
    /// that was found by its shape, the text that the client has sent.
    pub(super) fn statement_text(&self) -> &str {
        let text = self
            .statement
            .as_ref()
            .map_or("", |statement| statement.shown());
        self.sent.as_deref().unwrap_or(text)
    }

    /// Whether there are statements that took long and were not told yet.
    #[inline]
    pub fn has_slow(&self) -> bool {
        !self.slow.is_empty()
    }

    /// Takes those statements.
    pub fn take_slow(&mut self) -> Vec<SlowStatement> {
        std::mem::take(&mut self.slow)
    }
}
