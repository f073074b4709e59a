//! DO: the session goes through a program of PL/pgSQL, one statement after the other.
//!
//! ```text
//! DO         the block becomes an explicit one, unless it is; replies are not the client's
//! program    asks for a statement -> it runs as any other of the session -> its rows, or error
//!            asks for a savepoint -> SAVEPOINT and its like, with names that no client can write
//! its end    COMMIT, if the block is the program's own; then the client is told DO
//! ```
//!
//! Invariants:
//! * Between two statements the session is idle and `program` is there: [`Session::program_on`].
//! * An error of a statement is an answer to the program; only its own end is told to the client.
//! * A step of the shard runs few statements of it; then it pauses for a moment.

use super::fragments::Values;
use super::plans::Prepared;
use super::run::Start;
use super::{Activity, Block, Session, SessionCx, errors};
use crate::retry::ATTEMPTS_MAX;
use base::{Datum, Position, RowBatch, SqlError, SqlState, Time, Type};
use bind::ParamName;
use parse::session::DoBlock;
use plpgsql::machine::{Columns, Rows};
use plpgsql::program::Level;
use plpgsql::{Answer, Ask, Machine};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use wire::{Reply, Severity, Tag};

/// Statements of a program in one step of the shard.
const STATEMENTS_MAX: u32 = 40;
/// Instructions of a program in one step of the shard, between two questions.
const INSTRUCTIONS_MAX: u32 = 500;
/// Rows of loops, and messages, in one step of the shard, between two statements.
const ROWS_MAX: u32 = 100;
/// Pause between two steps, in microseconds: the others of the shard go first.
const PAUSE_US: u64 = 1;
/// Pause before another attempt after a conflict, in microseconds; it doubles.
const AGAIN_US: u64 = 400;
/// The cursor that has the rows of a statement.
pub(super) const ROWS: &str = " plpgsql";

/// A statement with what its names mean.
pub(super) type Planned = (Vec<(ParamName, Type)>, Rc<Prepared>);

/// What is under way.
pub(super) enum Under {
    /// Nothing: the program has not begun, or has paused.
    Nothing,
    /// A statement of the program.
    Statement {
        rows: Rows,
        columns: Columns,
        has_rows: bool,
        counts: bool,
        writes: bool,
    },
    /// SAVEPOINT and its like; these follow.
    Own(VecDeque<String>),
    /// The release of what it has left.
    Closing,
    /// The commit of its block.
    Commit,
}

/// A program that the session goes through.
pub(super) struct Running {
    pub(super) block: Arc<DoBlock>,
    pub(super) machine: Machine,
    /// Types of its variables.
    pub(super) types: Vec<Result<Type, Option<Columns>>>,
    pub(super) prepared: Rc<Prepared>,
    pub(super) plans: Vec<Option<Planned>>,
    pub(super) under: Under,
    /// The answer to give when a pause is over.
    pub(super) answer: Option<Answer>,
    pub(super) failed: Option<(SqlError, Position)>,
    /// Rows that a statement changed, and rows that a command of the session gave.
    pub(super) tag: Option<Tag>,
    pub(super) batches: Vec<RowBatch>,
    /// What its answer waits for.
    pub(super) wait: Position,
    pub(super) until: Option<Time>,
    /// The block before it.
    pub(super) before: Block,
    /// Nothing else belongs to its transaction.
    pub(super) commits: bool,
    /// Savepoints before it.
    pub(super) savepoints: usize,
    /// The last error was of a statement: not one that the program has raised.
    pub(super) aborted: bool,
    /// Whether the client has been told something.
    pub(super) told: bool,
    pub(super) paused: bool,
    pub(super) tries: u32,
    /// Statements so far in the step of this time.
    pub(super) step: (Time, u32),
}

pub(super) fn unsupported(what: &str) -> SqlError {
    let message = format!("{what} is not supported in PL/pgSQL");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn savepoint(number: usize) -> String {
    format!("\" plpgsql {number}\"")
}

pub(super) fn loop_rows(number: usize) -> String {
    format!(" plpgsql {number}")
}

impl Session {
    /// Begins a DO.
    pub(super) fn do_block(&mut self, cx: &mut SessionCx<'_>, block: &Arc<DoBlock>, start: Start) {
        if self.program.is_some() {
            return self.fail(cx, unsupported("DO in DO"), Position(0));
        }
        let types = match self.variable_types(cx, block) {
            Ok(types) => types,
            Err(error) => return self.fail(cx, error.at(0), Position(0)),
        };
        // What came before is told: it does not run again.
        self.release(cx);
        let until = self.time_limit(cx.now);
        let before = self.block;
        if before != Block::Explicit {
            self.enter_implicit_block();
            self.block = Block::Explicit;
            self.block_time = Some(cx.now);
        }
        self.calling = true;
        self.program = Some(Box::new(Running {
            machine: Machine::new(block.program.clone(), &types),
            types,
            plans: (0..block.statements.len()).map(|_| None).collect(),
            block: block.clone(),
            prepared: start.prepared,
            under: Under::Nothing,
            answer: None,
            failed: None,
            tag: None,
            batches: Vec::new(),
            wait: Position(0),
            until,
            before,
            commits: before == Block::None && start.last && !start.many,
            savepoints: self.savepoints.len(),
            aborted: false,
            told: false,
            paused: false,
            tries: 1,
            step: (cx.now, 0),
        }));
    }

    /// Takes the replies of its statements from those for the client.
    pub(super) fn take_replies(&mut self) {
        let Some(program) = &mut self.program else {
            return;
        };
        let held = core::mem::take(&mut self.held);
        self.held_batches = 0;
        for (reply, wait) in held {
            if matches!(reply, Reply::Error(..) | Reply::ParameterStatus(..)) {
                program.told = true;
                self.held.push((reply, wait));
                continue;
            }
            program.wait = program.wait.max(wait);
            if let Reply::CommandComplete(tag) = reply {
                program.tag = Some(tag);
            } else if let Reply::Rows(_, _, batch) = reply {
                program.batches.push(batch);
            }
        }
    }

    /// A statement of the program has failed, or what ends it.
    pub(super) fn program_fails(
        &mut self,
        cx: &mut SessionCx<'_>,
        error: SqlError,
        wait: Position,
    ) {
        let error = self.named_error(cx, error);
        self.retry = None;
        if let Some(program) = &mut self.program {
            program.aborted = true;
            program.failed = Some((error, wait));
        }
    }

    /// The pause of a program is over. Whether it was one of a program.
    pub(super) fn program_resumes(&mut self) -> bool {
        let paused = self
            .program
            .as_mut()
            .is_some_and(|it| core::mem::take(&mut it.paused));
        if paused {
            self.activity = Activity::Idle;
        }
        paused
    }

    fn pause_program(&mut self, now: Time, pause_us: u64) {
        if let Some(program) = &mut self.program {
            program.paused = true;
        }
        self.activity = Activity::Backoff(now.after(pause_us));
    }

    /// Goes on with the program: what it waited for has ended.
    pub(super) fn program_on(&mut self, cx: &mut SessionCx<'_>) {
        self.take_replies();
        let Some(program) = &mut self.program else {
            return;
        };
        program.paused = false;
        if matches!(program.under, Under::Commit) {
            return self.program_committed(cx);
        }
        let late = program.until.is_some_and(|until| until <= cx.now);
        if late && program.failed.is_none() {
            program.failed = Some((errors::statement_timeout(), Position(0)));
        }
        if program.step.0 != cx.now {
            program.step = (cx.now, 0);
        }
        if program.step.1 >= STATEMENTS_MAX {
            return self.pause_program(cx.now, PAUSE_US);
        }
        let Some(mut answer) = self.program_answer(cx) else {
            return;
        };
        let mut left = ROWS_MAX;
        loop {
            let Some(mut program) = self.program.take() else {
                return;
            };
            let host = Values { session: self, cx };
            let ask = program.machine.go_on(answer, INSTRUCTIONS_MAX, &host);
            self.program = Some(program);
            left -= 1;
            answer = match ask {
                Some(Ask::Row(of, number)) => Answer::Row(self.program_row(of, number)),
                Some(Ask::Tell(level, said)) => {
                    self.tell_of_program(level, said);
                    if self.urgent {
                        self.release(cx);
                    }
                    Answer::Done
                }
                Some(ask) => return self.program_asks(cx, ask),
                None => {
                    left = 0;
                    Answer::Done
                }
            };
            if left == 0 {
                if let Some(program) = &mut self.program {
                    program.answer = Some(answer);
                }
                return self.pause_program(cx.now, PAUSE_US);
            }
        }
    }

    /// The answer to what the program has asked for. `None`: something else goes first.
    fn program_answer(&mut self, cx: &mut SessionCx<'_>) -> Option<Answer> {
        let can_go_back = self.can_go_back();
        let program = self.program.as_mut()?;
        let under = core::mem::replace(&mut program.under, Under::Nothing);
        let answer = program.answer.take();
        if let Some((error, wait)) = program.failed.take() {
            program.wait = program.wait.max(wait);
            let can_catch = can_go_back && !matches!(under, Under::Own(_) | Under::Closing);
            return Some(Answer::Failed(error, can_catch));
        }
        match under {
            Under::Nothing | Under::Commit => Some(answer.unwrap_or(Answer::Done)),
            Under::Closing => {
                self.end_program(cx);
                None
            }
            Under::Own(mut texts) => match texts.pop_front() {
                None => Some(Answer::Done),
                Some(text) => {
                    program.under = Under::Own(texts);
                    self.run_own_text(cx, &text);
                    None
                }
            },
            Under::Statement {
                rows,
                columns,
                has_rows,
                counts,
                writes,
            } => {
                let batches = core::mem::take(&mut program.batches);
                let tag = program.tag.take();
                let (first, count) = match (has_rows, rows) {
                    (true, Rows::Loop(of)) => (None, self.kept_rows(&loop_rows(of))),
                    (true, _) => {
                        let first = self.kept_row(ROWS, 0);
                        let count = self.kept_rows(ROWS);
                        self.forget_rows(ROWS);
                        (first, count)
                    }
                    (false, _) => {
                        let given = batches.iter().map(|batch| u64::from(batch.rows)).sum();
                        let row = batches.into_iter().find(|batch| batch.rows > 0);
                        let first = row.map(|mut batch| {
                            batch.datums.truncate(batch.width as usize);
                            batch.datums
                        });
                        (first, tag.map_or(0, Tag::count).max(given))
                    }
                };
                Some(Answer::Ran {
                    columns,
                    first,
                    count,
                    counts,
                    writes,
                })
            }
        }
    }

    fn program_row(&mut self, of: usize, number: u64) -> Option<Vec<Datum>> {
        let name = loop_rows(of);
        let row = self.kept_row(&name, number);
        if row.is_none() {
            self.forget_rows(&name);
        }
        row
    }

    fn tell_of_program(&mut self, level: Level, said: SqlError) {
        match level {
            Level::Debug | Level::Log | Level::Exception => {}
            Level::Notice => self.notice(Severity::Notice, said),
            Level::Warning => self.notice(Severity::Warning, said),
            Level::Info => {
                self.urgent = true;
                self.say(Reply::Error(Severity::Info, said), Position(0));
            }
        }
    }

    fn program_asks(&mut self, cx: &mut SessionCx<'_>, ask: Ask) {
        match ask {
            Ask::Run(run) => {
                if let Err(error) = self.run_fragment(cx, run) {
                    self.fail(cx, error.at(0), Position(0));
                }
            }
            Ask::RunText(text, run) => {
                if let Err(error) = self.run_text(cx, &text, run) {
                    self.fail(cx, error.at(0), Position(0));
                }
            }
            Ask::Savepoint(number) => {
                self.run_own_texts(cx, vec![format!("SAVEPOINT {}", savepoint(number))]);
            }
            Ask::Release(number) => {
                self.run_own_texts(cx, vec![format!("RELEASE {}", savepoint(number))]);
            }
            Ask::RollBackTo(number) => {
                let name = savepoint(number);
                let texts = vec![format!("ROLLBACK TO {name}"), format!("RELEASE {name}")];
                self.run_own_texts(cx, texts);
            }
            Ask::Fail(error) => self.program_failed(cx, error),
            Ask::Done => {
                let kept = self
                    .program
                    .as_ref()
                    .map_or(0, |program| program.savepoints);
                if self.savepoints.len() == kept {
                    return self.end_program(cx);
                }
                if let Some(program) = &mut self.program {
                    program.under = Under::Closing;
                }
                self.run_own_text(cx, &format!("RELEASE {}", savepoint(0)));
            }
            Ask::Row(..) | Ask::Tell(..) => unreachable!("answered at once"),
        }
    }

    fn run_own_texts(&mut self, cx: &mut SessionCx<'_>, texts: Vec<String>) {
        let mut texts = VecDeque::from(texts);
        let first = texts.pop_front();
        if let Some(program) = &mut self.program {
            program.under = Under::Own(texts);
        }
        if let Some(first) = first {
            self.run_own_text(cx, &first);
        }
    }

    fn run_own_text(&mut self, cx: &mut SessionCx<'_>, text: &str) {
        match self.own_statement(cx, text) {
            Ok(start) => self.start_of_program(cx, start),
            Err(error) => self.fail(cx, error, Position(0)),
        }
    }

    /// Starts a statement.
    pub(super) fn start_of_program(&mut self, cx: &mut SessionCx<'_>, start: Start) {
        let Some(program) = &mut self.program else {
            return;
        };
        program.step.1 += 1;
        program.aborted = false;
        let prepared = program.prepared.clone();
        let since = self.statement_since;
        self.is_timed = false;
        self.start(cx, start);
        // To others the session runs the DO.
        self.statement = Some(prepared);
        self.statement_since = since;
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
    }

    /// The program has ended well.
    fn end_program(&mut self, cx: &mut SessionCx<'_>) {
        let Some(program) = &mut self.program else {
            return;
        };
        let own = program.before != Block::Explicit;
        if own && (program.commits || self.changes.is_some()) {
            program.under = Under::Commit;
            return self.commit(cx, false);
        }
        if own {
            self.block = Block::Implicit;
            self.block_time = None;
        }
        self.program_done();
    }

    fn program_done(&mut self) {
        self.calling = false;
        let Some(program) = self.program.take() else {
            return;
        };
        self.forget_program_rows();
        self.is_timed = true;
        self.say(Reply::CommandComplete(Tag::Word("DO")), program.wait);
    }

    /// The commit of its block has ended, well or not.
    fn program_committed(&mut self, cx: &mut SessionCx<'_>) {
        let failed = self
            .program
            .as_mut()
            .and_then(|program| program.failed.take());
        match failed {
            None => self.program_done(),
            Some((error, wait)) => self.program_lost(cx, error, wait),
        }
    }

    /// The program has failed.
    fn program_failed(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        let wait = self
            .program
            .as_ref()
            .map_or(Position(0), |program| program.wait);
        self.program_lost(cx, error, wait);
    }

    fn program_lost(&mut self, cx: &mut SessionCx<'_>, error: SqlError, wait: Position) {
        if self.program_again(cx, &error) {
            return;
        }
        self.calling = false;
        self.forget_program_rows();
        let Some(program) = self.program.take() else {
            return;
        };
        self.is_timed = true;
        self.cut_savepoints(program.savepoints);
        if program.before == Block::Explicit {
            return self.fail(cx, error, wait);
        }
        self.ending = None;
        if !self.undo_failed(cx, &error, wait) {
            self.fail_ending(cx, error, wait);
        }
    }

    /// Begins the program again after a conflict, if nobody has seen anything of it.
    fn program_again(&mut self, cx: &mut SessionCx<'_>, error: &SqlError) -> bool {
        let Some(program) = &mut self.program else {
            return false;
        };
        let again = error.is_retryable()
            && program.aborted
            && program.before == Block::None
            && !program.told
            && program.tries < ATTEMPTS_MAX
            && self.changes.is_none();
        if !again {
            return false;
        }
        program.machine = Machine::new(program.block.program.clone(), &program.types);
        program.under = Under::Nothing;
        program.answer = None;
        program.tries += 1;
        let pause_us = AGAIN_US << program.tries.min(6);
        cx.counters.server_retries += 1;
        self.undo_txn(cx);
        self.steps.clear();
        self.at = 0;
        self.ending = None;
        self.after_block(true);
        self.block_time = Some(cx.now);
        self.forget_program_rows();
        self.pause_program(cx.now, pause_us);
        true
    }

    fn forget_program_rows(&mut self) {
        self.cursors.retain(|name, _| !name.starts_with(ROWS));
    }
}
