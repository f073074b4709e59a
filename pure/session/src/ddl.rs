//! Schema changes as their session sees them: asked for, waited for, not wanted any more.

use super::{Activity, Session, SessionCx};
use crate::message::{DdlCall, DdlStop};
use base::{Position, SqlError, SqlState, Time};
use plan::DdlPlan;
use wire::{Reply, Severity, Tag};

/// A schema change that this session waits for. Its answer is what was done, whatever the client
/// has said meanwhile: a change that was stopped fails, one that was decided before does not.
#[derive(Clone, Copy)]
pub(super) struct DdlWait {
    /// Its command tag.
    tag: &'static str,
    /// `statement_timeout`.
    until: Option<Time>,
    /// `lock_timeout`: until here it may wait for changes of others.
    queued_until: Option<Time>,
}

impl DdlWait {
    /// When [`Session::on_tick`] has something to do for it.
    pub(super) fn deadline(self) -> Option<Time> {
        self.until.into_iter().chain(self.queued_until).min()
    }
}

impl Session {
    pub(super) fn start_ddl(&mut self, cx: &mut SessionCx<'_>, plan: &DdlPlan) {
        let (conn, database) = (self.conn, self.database.to_string());
        cx.ddl.push_back(DdlCall::Ask(conn, database, plan.clone()));
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

    /// The schema change is over: texts of notices, or why it did not happen.
    pub fn on_ddl(&mut self, cx: &mut SessionCx<'_>, result: Result<Vec<String>, SqlError>) {
        let Activity::Ddl(wait) = self.activity else {
            return;
        };
        self.activity = Activity::Idle;
        match result {
            Ok(notices) => {
                for text in notices {
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
