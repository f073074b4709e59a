//! Schema changes as their session sees them: requested, awaited, cancelled.

use super::fills::FillingLimit;
use super::temporary::Then;
use super::{Activity, Block, Session, SessionCx, Settings};
use crate::message::{DdlCall, DdlStop};
use base::{Position, SqlError, SqlState, Time};
use catalog::Asker;
use plan::DdlPlan;
use wire::{Reply, Severity, Tag};

/// A schema change that this session waits for. The answer is what was done, even after a cancel: a
/// change that was stopped fails, one that was decided before does not.
#[derive(Clone, Copy)]
pub(super) struct DdlWait {
    /// Its command tag.
    tag: &'static str,
    /// It is the session's own, and takes temporary relations away: what the answer to the client
    /// waits for, and what follows.
    cleans: Option<(Position, Then)>,
    /// When `statement_timeout` ends the wait.
    until: Option<Time>,
    /// When `lock_timeout` ends the wait for changes of others.
    queued_until: Option<Time>,
}

impl DdlWait {
    /// A change that takes temporary relations away.
    pub(super) fn cleaning(tag: &'static str, wait: Position, then: Then) -> DdlWait {
        DdlWait {
            tag,
            cleans: Some((wait, then)),
            until: None,
            queued_until: None,
        }
    }

    /// A change that is asked for now.
    pub(super) fn of(settings: &Settings, tag: &'static str, now: Time) -> DdlWait {
        let within = |us: u64| (us > 0).then(|| now.after(us));
        DdlWait {
            tag,
            cleans: None,
            until: within(settings.knobs.statement_timeout_us),
            queued_until: within(settings.knobs.lock_timeout_us),
        }
    }

    /// A change that takes back what a failed statement has done, and is not stopped.
    fn unlimited(tag: &'static str) -> DdlWait {
        DdlWait {
            tag,
            cleans: None,
            until: None,
            queued_until: None,
        }
    }

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
            self.audit_change(plan.tag, Some(&error));
            return self.fail(cx, error, Position(0));
        }
        for text in &plan.notices {
            let (severity, notice) = notice_of(text.clone());
            self.notice(severity, notice);
        }
        self.make_temporary(cx, &mut asked);
        let goes = self.block == Block::Explicit && asked.temporary.is_none() && !self.is_hiding();
        let block = goes.then(|| self.newest_images());
        if goes {
            self.join_block(cx, &mut asked);
        }
        let asker = Asker {
            by: self.acting.by.clone(),
            ..self.asker(block)
        };
        cx.ddl.push_back(DdlCall::Ask(conn, database, asked, asker));
        let wait = DdlWait::of(&self.settings, plan.tag, cx.now);
        let wait = match self.filling_limit() {
            None => wait,
            Some(FillingLimit::Time(until)) => DdlWait { until, ..wait },
            Some(FillingLimit::Undoing) => DdlWait::unlimited(plan.tag),
        };
        self.activity = Activity::Ddl(wait);
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
        if let Some(start) = self.making.take() {
            self.tables_made(cx, *start, result);
            self.pump(cx);
            return;
        }
        if let Some((position, then)) = wait.cleans {
            self.cleaned(cx, result.map(|_| ()), (wait.tag, position, then));
            return self.pump(cx);
        }
        self.holds.locking = None;
        self.made_temporary(cx, result.is_ok());
        self.joined_block(cx);
        if self.filling.is_some() && !self.filled_ddl(cx, &result) {
            self.pump(cx);
            return;
        }
        self.activity = Activity::Idle;
        self.audit_change(wait.tag, result.as_ref().err());
        match result {
            Ok(notices) => {
                for text in notices {
                    let text = self.shown_text(cx, text);
                    let (severity, notice) = notice_of(text);
                    self.notice(severity, notice);
                }
                self.say(Reply::CommandComplete(Tag::Word(wait.tag)), Position(0));
            }
            Err(error) => self.fail(cx, error, Position(0)),
        }
        self.pump(cx);
    }
}

/// A notice of a schema change, with the code that PostgreSQL gives it. Changes tell texts alone.
fn notice_of(text: String) -> (Severity, SqlError) {
    let there = text.ends_with(" already exists, skipping");
    let begins = |word: &str| there && text.starts_with(word);
    let (severity, state) = if text.contains("\" is not a member of role \"") {
        (Severity::Warning, SqlState::WARNING)
    } else if begins("schema ") {
        (Severity::Notice, SqlState::DUPLICATE_SCHEMA)
    } else if begins("relation ") {
        (Severity::Notice, SqlState::DUPLICATE_TABLE)
    } else if begins("column ") {
        (Severity::Notice, SqlState::DUPLICATE_COLUMN)
    } else if begins("enum label ") {
        (Severity::Notice, SqlState::DUPLICATE_OBJECT)
    } else {
        (Severity::Notice, SqlState::SUCCESS)
    };
    (severity, SqlError::new(state, text))
}
