//! Schema changes as their session sees them: requested, awaited, cancelled.

use super::{Activity, Session, SessionCx};
use crate::message::{DdlCall, DdlStop};
use base::{Position, SqlError, SqlState, Time};
use plan::DdlPlan;
use wire::{Reply, Severity, Tag};

/// A schema change that this session waits for. The answer is what was done, even after a cancel: a
/// change that was stopped fails, one that was decided before does not.
#[derive(Clone, Copy)]
pub(super) struct DdlWait {
    /// Its command tag.
    tag: &'static str,
    /// When `statement_timeout` ends the wait.
    until: Option<Time>,
    /// When `lock_timeout` ends the wait for changes of others.
    queued_until: Option<Time>,
}

impl DdlWait {
    /// When [`Session::on_tick`] is to be called for the change.
    pub(super) fn deadline(self) -> Option<Time> {
        self.until.into_iter().chain(self.queued_until).min()
    }
}

impl Session {
    pub(super) fn start_ddl(&mut self, cx: &mut SessionCx<'_>, plan: &DdlPlan) {
        let (conn, database) = (self.conn, self.database.to_string());
        let mut asked = Box::new(plan.clone());
        let allowed = self.may_keep(cx, plan);
        if let Err(error) = allowed.and_then(|()| self.hash_passwords(cx, &mut asked)) {
            return self.fail(cx, error, Position(0));
        }
        for text in &plan.notices {
            let notice = SqlError::new(SqlState::SUCCESS, text.clone());
            self.notice(Severity::Notice, notice);
        }
        let by = self.acting.by.clone();
        cx.ddl.push_back(DdlCall::Ask(conn, database, asked, by));
        let now = cx.now;
        let within = |us: u64| (us > 0).then(|| now.after(us));
        let knobs = &self.settings.knobs;
        self.activity = Activity::Ddl(DdlWait {
            tag: plan.tag,
            until: within(knobs.statement_timeout_us),
            queued_until: within(knobs.lock_timeout_us),
        });
    }

    pub(super) fn stop_ddl(&mut self, cx: &mut SessionCx<'_>, stop: DdlStop) {
        cx.ddl.push_back(DdlCall::Stop(self.conn, stop));
    }

    pub(super) fn on_ddl_tick(&mut self, cx: &mut SessionCx<'_>) {
        let Activity::Ddl(wait) = &mut self.activity else {
            return;
        };
        let due = |at: &mut Option<Time>| at.take_if(|at| *at <= cx.now).is_some();
        let (late, locked) = (due(&mut wait.until), due(&mut wait.queued_until));
        if late {
            self.stop_ddl(cx, DdlStop::StatementTimeout);
        } else if locked {
            self.stop_ddl(cx, DdlStop::LockTimeout);
        }
    }

    /// The schema change has ended: texts of notices, or an error.
    pub fn on_ddl(&mut self, cx: &mut SessionCx<'_>, result: Result<Vec<String>, SqlError>) {
        let Activity::Ddl(wait) = self.activity else {
            return;
        };
        if self.filling.is_some() && !self.filled_ddl(cx, &result) {
            self.pump(cx);
            return;
        }
        self.activity = Activity::Idle;
        match result {
            Ok(notices) => {
                for text in notices {
                    let text = self.shown_text(cx, text);
                    let notice = SqlError::new(SqlState::SUCCESS, text);
                    self.notice(Severity::Notice, notice);
                }
                self.say(Reply::CommandComplete(Tag::Word(wait.tag)), Position(0));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
        self.pump(cx);
    }
}
