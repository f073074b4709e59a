//! Statements at the coordinator: their start, and the messages that come back.

use super::block::not_in_block;
use super::copy::CopyState;
use super::cursors::Declaring;
use super::plans::Prepared;
use super::portal::{Cursor, PortalState};
use super::retry::ATTEMPTS_MAX;
use super::{Activity, Block, CREDIT_BATCHES, Session, SessionCx, errors};
use crate::message::{
    BeginRequest, Done, FromTxn, RunRequest, SessionEffects, SessionFacts, StatementNo, ToTxn,
    TxnHandle,
};
use base::{Planted, Position, RowBatch, ShardId, SqlError, Time, Ts, is_planted};
use bind::objects::ObjectUse;
use exec::port::Params;
use plan::{DdlPlan, Plan, PlanKind};
use std::rc::Rc;
use std::sync::Arc;
use txn::{AbortReason, OpError, Outcome};
use wire::{Format, Reply, Tag};

/// Why no statement ends with [`OpError::Raise`].
const RAISED: &str = "a transaction answers a refused snapshot itself";

/// The transaction that the session has open at a coordinator.
pub(super) struct OpenTxn {
    pub(super) handle: TxnHandle,
    pub(super) coordinator: ShardId,
    /// Number of its last statement.
    pub(super) statement: StatementNo,
    /// Number of attempts of the same work, from 1, with a client's own repetition.
    pub(super) attempt: u32,
    /// Number of attempts since the client was last told of one.
    pub(super) tries: u32,
    /// Priority, as told by the coordinator.
    pub(super) priority_ts: Option<Ts>,
    /// Whether the client has seen no result of the transaction yet.
    pub(super) retryable: bool,
    /// The transaction failed between statements: the next statement gets this error.
    pub(super) broken: Option<(SqlError, Position)>,
    /// The coordinator has ended the transaction.
    pub(super) gone: bool,
}

/// What follows the end of a transaction.
pub(super) enum Ending {
    /// The command tag of COMMIT.
    Commit { chain: bool },
    /// The end of a query string.
    Batch,
    /// The end of a pipeline.
    Sync,
    /// A schema change, which is a transaction of its own.
    Ddl(Box<DdlPlan>),
}

/// One statement that runs or has run at the coordinator.
pub(super) struct Step {
    pub(super) prepared: Rc<Prepared>,
    pub(super) plan: Arc<Plan>,
    pub(super) params: Params,
    pub(super) formats: Arc<[Format]>,
    /// Whether its rows are announced (simple protocol).
    pub(super) describe: bool,
    /// Largest number of rows of this Execute; 0: all.
    pub(super) rows_max: u32,
    /// Number of rows said so far in this Execute.
    pub(super) rows: u32,
    /// Batches of credit that are used up, given back when the client's buffer is empty.
    pub(super) spent: u32,
    pub(super) autocommit: bool,
    pub(super) number: StatementNo,
    pub(super) facts: Arc<SessionFacts>,
    pub(super) deadline: Option<Time>,
    /// Portal to put back when the statement has ended.
    pub(super) portal: Option<String>,
    pub(super) copy: CopyState,
    /// Bytes of COPY data that were sent to the statement and that it has not taken.
    pub(super) copy_bytes: usize,
    /// The cursor that takes its rows, of DECLARE.
    pub(super) declares: Option<Box<Declaring>>,
    /// Rows that have come and that no Execute has asked for.
    pub(super) cursor: Option<Box<Cursor>>,
    /// Index of its first reply among the held ones, and their number.
    pub(super) mark: usize,
    pub(super) said: usize,
    /// Number of held replies before it that are of no statement.
    pub(super) before: usize,
    /// It is the session's own, before a commit: the client is not told of its end.
    pub(super) silent: bool,
    /// It is a part of a statement: the client is told of the end of that.
    pub(super) quiet: bool,
}

/// Inputs of a statement's start.
pub(super) struct Start {
    pub(super) prepared: Rc<Prepared>,
    pub(super) params: Params,
    pub(super) formats: Arc<[Format]>,
    pub(super) describe: bool,
    pub(super) rows_max: u32,
    pub(super) portal: Option<String>,
    /// Whether the statement is the last of its query string or pipeline.
    pub(super) last: bool,
    /// Whether other statements belong to the same implicit transaction.
    pub(super) many: bool,
    /// The cursor that is to take its rows, of DECLARE.
    pub(super) declares: Option<Box<Declaring>>,
    /// When `statement_timeout` ends a statement that has waited before its start.
    pub(super) until: Option<Time>,
}

impl Step {
    /// A step that has not begun, in a transaction that goes on behind it.
    fn new(start: Start, plan: Arc<Plan>, facts: Arc<SessionFacts>) -> Step {
        Step {
            prepared: start.prepared,
            plan,
            params: start.params,
            formats: start.formats,
            describe: start.describe,
            rows_max: start.rows_max,
            rows: 0,
            spent: 0,
            autocommit: false,
            number: 0,
            facts,
            deadline: None,
            portal: start.portal,
            copy: CopyState::None,
            copy_bytes: 0,
            declares: start.declares,
            cursor: None,
            mark: 0,
            said: 0,
            before: 0,
            silent: false,
            quiet: false,
        }
    }
}

impl Session {
    /// Starts a statement of any kind.
    pub(super) fn start(&mut self, cx: &mut SessionCx<'_>, start: Start) {
        self.begin_statement(cx, start.prepared.clone());
        self.start_part(cx, start);
    }

    /// Starts a statement that is a part of the one that has begun.
    pub(super) fn start_part(&mut self, cx: &mut SessionCx<'_>, start: Start) {
        self.since = cx.now;
        let plan = start
            .prepared
            .plan
            .clone()
            .expect("an empty statement is answered before");
        let ends_block =
            matches!(&plan.kind, PlanKind::Session(command) if super::block::ends_block(command));
        if self.block == Block::Failed && !ends_block {
            self.fail(cx, errors::in_failed_block(), Position(0));
            return;
        }
        if let Err(error) = self.allow(cx, &plan, &start.prepared) {
            return self.fail(cx, error, Position(0));
        }
        let is_ddl = matches!(
            plan.kind,
            PlanKind::Ddl(_) | PlanKind::CreateAs(_) | PlanKind::Refresh(_)
        );
        if start.many && !is_ddl && !ends_block {
            self.enter_implicit_block();
        }
        if let (Some(what), true) = (plan.alone, self.block != Block::None) {
            return self.fail(cx, not_in_block(what), Position(0));
        }
        match &plan.kind {
            PlanKind::Run(run) if self.block != Block::None && run.action.is_vacuum() => {
                self.fail(cx, not_in_block("VACUUM"), Position(0));
            }
            PlanKind::Run(_) if self.lacks_tables(cx, &plan) => self.make_tables(cx, start),
            PlanKind::Run(_) => match self.must_wait(cx, &plan) {
                Some(held) => self.wait_quiesced(cx, start, held),
                None => self.run(cx, plan, start),
            },
            PlanKind::Session(command) => self.command(cx, &plan, command, start),
            PlanKind::Ddl(ddl) => self.ddl(cx, ddl),
            PlanKind::CreateAs(create) => self.create_as(cx, create),
            PlanKind::Refresh(refresh) => self.refresh(cx, refresh, start.last),
            PlanKind::Nothing(tag) => self.nothing(cx, tag),
            PlanKind::Lock(_) => self.lock_tables(cx, &plan, start),
            PlanKind::Constraints(_) if self.block == Block::None => self.no_constraints(),
            PlanKind::Constraints(_) => self.run(cx, plan, start),
            PlanKind::Savepoint(_) | PlanKind::Adopt(_) => {
                unreachable!("made by the session for itself")
            }
        }
    }

    pub(super) fn ddl(&mut self, cx: &mut SessionCx<'_>, plan: &DdlPlan) {
        let tag = plan.tag;
        let refused = match self.block {
            Block::Explicit if matches!(tag, "CREATE DATABASE" | "DROP DATABASE") => {
                Some(not_in_block(tag))
            }
            _ if self.present_modes().read_only => Some(errors::read_only(tag)),
            Block::None | Block::Implicit | Block::Explicit | Block::Failed => None,
        };
        if let Some(error) = refused {
            self.fail(cx, error, Position(0));
            return;
        }
        let hiding = match self.block {
            Block::Explicit => self.hiding(cx, plan),
            Block::None | Block::Implicit | Block::Failed => None,
        };
        let is_lasting = hiding.is_none() && plan.temporary.is_none();
        let plan = hiding.as_ref().unwrap_or(plan);
        if self.block == Block::Explicit
            && is_lasting
            && let Err(error) = self.refused_in_block(cx, plan)
        {
            return self.fail(cx, error, Position(0));
        }
        if is_lasting && self.concerns_own_rows(cx, plan) {
            return self.change_own(cx, plan);
        }
        if self.block == Block::Implicit && self.txn.is_some() {
            self.end_txn(cx, Ending::Ddl(Box::new(plan.clone())));
        } else {
            self.start_ddl(cx, plan);
        }
    }

    fn run(&mut self, cx: &mut SessionCx<'_>, plan: Arc<Plan>, start: Start) {
        if let Some((error, wait)) = self.txn.as_mut().and_then(|txn| txn.broken.take()) {
            self.fail(cx, error, wait);
            return;
        }
        if self.held_batches > 0 && self.held_batches + self.in_flight >= CREDIT_BATCHES {
            self.release(cx);
        }
        if self.txn.is_none() {
            if self.block == Block::None {
                self.modes = self.default_modes();
            }
            let again = self.carried.take().filter(|(until, ..)| cx.now <= *until);
            let first = again.map_or((None, 1), |(_, ts, attempt)| (Some(ts), attempt));
            self.open_txn(cx, &plan, &start.params, first, 1);
            self.steps.clear();
        }
        if plan.writes && self.modes.read_only {
            let error = errors::read_only(&errors::verb(&start.prepared.text));
            self.fail(cx, error, Position(0));
            return;
        }
        if plan.locks && self.modes.read_only {
            let error = errors::read_only(errors::locking_verb(&start.prepared.text));
            self.fail(cx, error, Position(0));
            return;
        }
        // A statement without rows ignores a row limit.
        let rows_max = if plan.returns_rows { start.rows_max } else { 0 };
        let emptied = self.note_emptied(&plan);
        let holds = emptied || start.declares.is_some() || plan.objects != ObjectUse::None;
        let autocommit = rows_max == 0
            && !holds
            && match self.block {
                // What comes behind a failed statement may go back to a savepoint.
                Block::Explicit => {
                    let lasting =
                        self.savepoints.is_empty() && !self.owes && self.changes.is_none();
                    lasting
                        && self.commit_follows()
                        && !self.moves_rows(cx)
                        && cx.quiesced.is_empty()
                }
                Block::None | Block::Implicit | Block::Failed => start.last && !self.owes,
            };
        // What a limited Execute leaves, a cursor WITH HOLD, and descriptors of large objects last
        // until the batch ends. Rows that go at the commit go before it.
        if rows_max > 0 || holds {
            self.enter_implicit_block();
        }
        let deadline = start.until.or_else(|| self.time_limit(cx.now));
        let facts = self.facts_for(&plan);
        let mut step = Step::new(start, plan, facts);
        (step.rows_max, step.autocommit, step.deadline) = (rows_max, autocommit, deadline);
        self.note_written(&step.plan);
        self.push_step(step);
        self.run_step(cx);
    }

    /// Has the open transaction run a plan of the session's own, which returns no rows.
    pub(super) fn run_own(
        &mut self,
        cx: &mut SessionCx<'_>,
        start: Start,
        plan: Arc<Plan>,
        deadline: Option<Time>,
    ) {
        let facts = self.facts_for(&plan);
        let mut step = Step::new(start, plan, facts);
        (step.rows_max, step.deadline) = (0, deadline);
        step.silent = self.ending.is_some();
        self.push_step(step);
        self.run_step(cx);
    }

    /// Makes `step` the present one. Earlier steps are kept only if they may have to run again.
    pub(super) fn push_step(&mut self, step: Step) {
        if self.txn.as_ref().is_some_and(|txn| !txn.retryable) {
            self.steps.clear();
        }
        self.steps.push(step);
        self.at = self.steps.len() - 1;
    }

    pub(super) fn open_txn(
        &mut self,
        cx: &SessionCx<'_>,
        plan: &Plan,
        params: &Params,
        (priority_ts, attempt): (Option<Ts>, u32),
        tries: u32,
    ) {
        let home = exec::home_slot(plan, params).map(|slot| cx.catalog.placement.home(slot));
        let coordinator = home.map_or(cx.here, |home| self.coordinator(cx, home));
        self.txn_count += 1;
        if tries == 1 && self.retry.is_none() {
            self.txn_since = cx.now;
            self.last_txn.restarts = 0;
        }
        self.written.clear();
        self.owes = false;
        self.refresh_facts();
        self.txn = Some(OpenTxn {
            handle: TxnHandle {
                session: cx.here,
                conn: self.conn,
                number: self.txn_count,
            },
            coordinator,
            statement: 0,
            attempt,
            tries,
            priority_ts,
            retryable: true,
            broken: None,
            gone: false,
        });
    }

    /// Whether commits are local, because rows move to them.
    fn moves_rows(&self, cx: &SessionCx<'_>) -> bool {
        let database = cx.catalog.databases.get(&*self.database);
        database.is_some_and(|database| database.protocol.moves_rows())
    }

    /// The coordinator of a transaction whose first rows have this home.
    fn coordinator(&self, cx: &SessionCx<'_>, home: ShardId) -> ShardId {
        if self.moves_rows(cx) {
            // Rows come to the node of the client, where all that want them meet at one shard.
            ShardId::new(cx.here.node(), home.index())
        } else if home.node() == cx.here.node() {
            home
        } else {
            cx.here
        }
    }

    /// Hands `steps[at]` to the coordinator.
    pub(super) fn run_step(&mut self, cx: &mut SessionCx<'_>) {
        self.say_statics(self.steps[self.at].before);
        let unread = self.held_batches + self.in_flight;
        let database = match self.database(cx) {
            Ok(database) => database.clone(),
            Err(error) => return self.fail(cx, error, Position(0)),
        };
        let txn = self
            .txn
            .as_mut()
            .expect("a statement runs inside a transaction");
        txn.statement += 1;
        let first = txn.statement == 1;
        let step = &mut self.steps[self.at];
        step.number = txn.statement;
        step.mark = self.held.len();
        step.said = 0;
        step.rows = 0;
        if let Some(declaring) = &mut step.declares {
            declaring.forget();
        }
        // Rows that a limited Execute does not want yet wait in its cursor.
        step.spent = if step.rows_max > 0 || step.declares.is_some() {
            0
        } else {
            unread.min(CREDIT_BATCHES)
        };
        step.copy = CopyState::None;
        step.copy_bytes = 0;
        step.cursor = (step.rows_max > 0).then(|| Box::new(Cursor::new(txn.statement)));
        if step.describe && step.plan.returns_rows {
            let columns = step.plan.columns.clone();
            self.held.push((
                Reply::RowDescription(columns, step.formats.clone()),
                Position(0),
            ));
            step.said = 1;
        }
        let begin = first.then(|| BeginRequest {
            isolation: self.modes.isolation,
            read_only: self.modes.read_only,
            asks_clocks: self.clocks.begins_by_asking(self.modes, txn.attempt),
            priority_ts: txn.priority_ts,
            attempt: txn.attempt,
            txn_time: self.block_time.unwrap_or(cx.now),
            lock_timeout_us: self.settings.knobs.lock_timeout_us,
            in_doubt_timeout_us: self.settings.knobs.in_doubt_timeout_us,
            early_answer: self.settings.knobs.early_answer,
            locks_reads: self.settings.knobs.locks_reads,
            measured: step.plan.is_analyzed(),
            seen: self.seen,
            cost: Some(self.last_txn.place()),
        });
        let request = RunRequest {
            statement: step.number,
            begin,
            plan: step.plan.clone(),
            params: step.params.clone(),
            autocommit: step.autocommit,
            catalog: cx.catalog.clone(),
            database,
            facts: step.facts.clone(),
            credit: CREDIT_BATCHES - step.spent,
            deadline: step.deadline,
            admission: self.settings.knobs.admission,
        };
        self.activity = Activity::Running;
        self.tell(cx, ToTxn::Run(request));
    }

    /// Sends to the coordinator of the open transaction.
    pub(super) fn tell(&mut self, cx: &mut SessionCx<'_>, message: ToTxn) {
        let txn = self
            .txn
            .as_ref()
            .expect("only an open transaction is told something");
        cx.to_txn.push_back((txn.coordinator, txn.handle, message));
    }

    /// A message from the transaction `handle`.
    pub fn on_txn(&mut self, cx: &mut SessionCx<'_>, handle: TxnHandle, message: FromTxn) {
        if self
            .txn
            .as_ref()
            .is_none_or(|txn| txn.handle != handle || txn.gone)
        {
            return;
        }
        match message {
            FromTxn::Rows(number, batch, wait) => self.on_rows(cx, number, batch, wait),
            FromTxn::CopyOut(number, bytes, wait) => self.on_copy_out(cx, number, bytes, wait),
            FromTxn::CopyInReady(number) => self.on_copy_in_ready(cx, number),
            FromTxn::CopyTaken(number, bytes) => self.on_copy_taken(number, bytes),
            FromTxn::Done(number, done) => self.on_done(cx, number, done),
            FromTxn::Ended {
                outcome,
                wait,
                cost,
            } => {
                self.note_end(cx.now, &outcome, cost);
                self.on_ended(cx, outcome, wait);
            }
        }
        self.pump(cx);
    }

    /// Whether the client waits for statement `number`.
    pub(super) fn is_running(&self, number: StatementNo) -> bool {
        matches!(self.activity, Activity::Running) && self.steps[self.at].number == number
    }

    pub(super) fn say_of_step(&mut self, reply: Reply, wait: Position) {
        self.held.push((reply, wait));
        self.steps[self.at].said += 1;
    }

    fn on_rows(
        &mut self,
        cx: &mut SessionCx<'_>,
        number: StatementNo,
        batch: RowBatch,
        wait: Position,
    ) {
        if !self.is_running(number) {
            if let Some(cursor) = self.cursor(number) {
                cursor.buffer.push_back((batch, wait));
            }
            return;
        }
        let step = &mut self.steps[self.at];
        if step.declares.is_some() {
            return self.gather(cx, number, batch, wait);
        }
        match &mut step.cursor {
            Some(cursor) => {
                cursor.buffer.push_back((batch, wait));
                if step.plan.writes {
                    // It runs to its end before its first row is given, as in PostgreSQL.
                    self.tell(cx, ToTxn::Credit(number, 1));
                } else {
                    self.serve(cx);
                }
            }
            None => {
                step.spent += 1;
                self.say_rows(cx, batch, wait);
            }
        }
    }

    /// Counts a held batch. When the credit is used up, held batches leave.
    pub(super) fn count_batch(&mut self, cx: &mut SessionCx<'_>) {
        self.held_batches += 1;
        if self.held_batches + self.in_flight >= CREDIT_BATCHES {
            self.release(cx);
        }
    }

    /// Says rows of a limited Execute, as many as have come.
    pub(super) fn serve(&mut self, cx: &mut SessionCx<'_>) {
        loop {
            let step = &mut self.steps[self.at];
            let cursor = step
                .cursor
                .as_mut()
                .expect("a limited Execute has a cursor");
            if step.rows_max > 0 && step.rows == step.rows_max {
                return self.suspend(cx);
            }
            let rows_max = if step.rows_max == 0 {
                u32::MAX
            } else {
                step.rows_max - step.rows
            };
            let Some((batch, wait)) = cursor.take(rows_max) else {
                break;
            };
            step.rows += batch.rows;
            if !self.say_rows(cx, batch, wait) {
                return;
            }
        }
        let step = &mut self.steps[self.at];
        let cursor = step
            .cursor
            .as_mut()
            .expect("a limited Execute has a cursor");
        if let Some(done) = cursor.done.take() {
            self.step_done(cx, *done);
        } else if self.held_batches + self.in_flight < CREDIT_BATCHES {
            self.credit_cursor(cx);
        }
    }

    /// Gives the running limited statement credit for the batches used up.
    pub(super) fn credit_cursor(&mut self, cx: &mut SessionCx<'_>) {
        let cursor = self.steps[self.at]
            .cursor
            .as_mut()
            .expect("a limited Execute has a cursor");
        let (number, consumed) = (cursor.number, core::mem::take(&mut cursor.consumed));
        if consumed > 0 {
            self.tell(cx, ToTxn::Credit(number, consumed));
        }
    }

    /// The row limit is reached: the portal waits for the next Execute.
    fn suspend(&mut self, cx: &mut SessionCx<'_>) {
        self.say_of_step(Reply::PortalSuspended, Position(0));
        self.statement_rows |= u64::from(self.steps[self.at].rows);
        self.time_statement(cx);
        self.activity = Activity::Idle;
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
        }
        let step = self
            .steps
            .drain(..=self.at)
            .next_back()
            .expect("the present step is there");
        self.at = 0;
        let cursor = step.cursor.expect("a limited Execute has a cursor");
        self.leave_portal(step.portal.as_deref(), PortalState::Suspended(cursor));
        // A second attempt of a statement may give more rows than the first.
        if !self.steps.is_empty() {
            self.run_step(cx);
        } else if let Some(ending) = self.ending.take() {
            self.end_txn(cx, ending);
        }
    }

    fn on_done(&mut self, cx: &mut SessionCx<'_>, number: StatementNo, mut done: Done) {
        if let Some(outcome) = &done.outcome {
            self.note_end(cx.now, outcome, done.cost.take());
        } else if let Err(OpError::Aborted(_)) = &done.result {
            self.note_rollback(cx.now);
        }
        if let Some(effects) = done.effects.take() {
            let SessionEffects {
                currval,
                drawn_last,
                settings,
                warnings,
                notifications,
                owes,
            } = *effects;
            self.owes |= owes;
            if !currval.is_empty() {
                self.merge_currval(currval, drawn_last);
            }
            if matches!(done.outcome, None | Some(Outcome::Committed { .. })) {
                self.take_settings(settings);
                self.take_notifications(notifications);
            }
            if self.is_running(number) {
                for warning in warnings {
                    self.warn_of_step(warning);
                }
            }
        }
        let txn = self.txn.as_mut().expect("checked by the caller");
        txn.priority_ts = Some(done.priority_ts);
        if !self.is_running(number) {
            self.on_suspended_done(cx, number, done);
            return;
        }
        let ended_well = done.result.is_ok() && done.outcome.is_none();
        match &mut self.steps[self.at].cursor {
            Some(cursor) if ended_well => {
                cursor.done = Some(Box::new(done));
                self.serve(cx);
            }
            _ => self.step_done(cx, done),
        }
    }

    /// A suspended statement has ended: its portal learns of it, or the whole transaction.
    fn on_suspended_done(&mut self, cx: &mut SessionCx<'_>, number: StatementNo, done: Done) {
        let failed = match &done.result {
            Ok(_) => None,
            Err(OpError::Sql(error)) => Some((error.clone(), false)),
            Err(OpError::Aborted(reason)) => Some((
                errors::aborted(reason, self.database(cx).ok().map(|d| &**d)),
                true,
            )),
            Err(OpError::Raise(_)) => unreachable!("{RAISED}"),
        };
        if let Some((error, gone)) = failed {
            let txn = self.txn.as_mut().expect("checked by the caller");
            txn.gone = gone;
            match self.activity {
                // A transaction that has ended sends no more.
                Activity::Running if gone => self.fail(cx, error, done.wait),
                Activity::Ending if gone => self.fail_ending(cx, error, done.wait),
                Activity::Idle
                | Activity::Running
                | Activity::Ending
                | Activity::Backoff(_)
                | Activity::Preparing(_)
                | Activity::Quiesced(_)
                | Activity::Ddl(_) => txn.broken = Some((error, done.wait)),
            }
        } else if let Some(cursor) = self.cursor(number) {
            cursor.done = Some(Box::new(done));
        }
    }

    /// The running statement has ended.
    fn step_done(&mut self, cx: &mut SessionCx<'_>, done: Done) {
        let wait = done.wait;
        match (done.result, done.outcome) {
            (Ok(tag), outcome @ (None | Some(Outcome::Committed { .. }))) => {
                if let Some(Outcome::Committed { commit_ts }) = outcome {
                    self.seen = self.seen.max(commit_ts);
                }
                self.step_done_well(cx, tag, wait);
            }
            (Ok(_), Some(Outcome::Unknown)) if is_planted(Planted::RetryUnknown) => {
                self.on_aborted(cx, AbortReason::ParticipantLost(ShardId(0)), wait);
            }
            (Ok(_), Some(Outcome::Unknown)) => {
                self.txn = None;
                self.fail(cx, errors::unknown_outcome(), done.wait);
            }
            (Ok(_), Some(Outcome::Aborted(reason))) | (Err(OpError::Aborted(reason)), _) => {
                self.on_aborted(cx, reason, done.wait);
            }
            (Err(OpError::Raise(_)), _) => unreachable!("{RAISED}"),
            (Err(OpError::Sql(error)), outcome) => {
                let txn = self.txn.as_mut().expect("checked by the caller");
                txn.gone = outcome.is_some() || self.steps[self.at].autocommit;
                if error.is_retryable() && txn.retryable && txn.tries < ATTEMPTS_MAX {
                    self.restart(cx);
                } else {
                    if self.steps[self.at].silent {
                        self.activity = Activity::Idle;
                        return self.fail_ending(cx, error, done.wait);
                    }
                    let step = &self.steps[self.at];
                    let savepoint = super::savepoints::failed(&step.prepared, &step.plan);
                    if savepoint.is_none() {
                        self.activity = Activity::Idle;
                    }
                    self.fail(cx, savepoint.unwrap_or(error), done.wait);
                }
            }
        }
    }

    fn step_done_well(&mut self, cx: &mut SessionCx<'_>, tag: Tag, wait: Position) {
        self.end_copy_out();
        let (mut tag, wait) = self.declared(tag, wait);
        if self.filling.is_some() && self.at + 1 == self.steps.len() {
            tag = self.filled(tag);
            self.steps[self.at].quiet |= self.is_quiet();
        }
        let step = &mut self.steps[self.at];
        // The tag of a limited Execute counts the rows of this Execute.
        let tag = match &step.cursor {
            Some(_) => tag.with_count(u64::from(step.rows)),
            None => tag,
        };
        self.statement_rows |= tag.count();
        let again = match step.plan.returns_rows {
            true => PortalState::Finished(tag.with_count(0)),
            false => PortalState::Spent,
        };
        if !step.silent && !step.quiet {
            self.say_of_step(Reply::CommandComplete(tag), wait);
        }
        if self.at + 1 < self.steps.len() {
            self.at += 1;
            self.run_step(cx);
            return;
        }
        self.activity = Activity::Idle;
        let step = &mut self.steps[self.at];
        if step.autocommit {
            self.txn = None;
            self.retry = None;
            self.carried = None;
            self.steps.clear();
            self.at = 0;
            self.has_committed(cx, wait);
            if self.block == Block::Implicit {
                self.after_block(false);
            }
            self.fills_on(cx);
            return;
        }
        let portal = step.portal.take();
        self.leave_portal(portal.as_deref(), again);
        if self.fills_on(cx) {
            return;
        }
        if let Some(ending) = self.ending.take() {
            self.end_txn(cx, ending);
        }
    }

    fn merge_currval(&mut self, drawn: Vec<(base::IndexId, i64)>, last: Option<base::IndexId>) {
        let facts = Arc::make_mut(&mut self.facts);
        facts.drawn_last = last.or(facts.drawn_last);
        let known = &mut facts.currval;
        for (sequence, value) in drawn {
            match known.iter_mut().find(|(id, _)| *id == sequence) {
                Some(entry) => entry.1 = value,
                None => known.push((sequence, value)),
            }
        }
    }
}
