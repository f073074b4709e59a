//! The session machine: one client connection, from its startup message to its end.
//!
//! ```text
//! client messages -> inbox -> pump -> commands of the session itself (BEGIN, SET, SHOW, ...)
//!                                  -> ToTxn::Run -> coordinator -> FromTxn -> held replies
//!                                  -> schema changes -> on_ddl
//! ```
//!
//! Replies of a query string or pipeline are held until its end. If the protocol rolls a
//! transaction back and none of its results were released, the session runs it again (`retry`).
//!
//! Invariants:
//! * Replies leave in the order in which PostgreSQL would send them; each names the journal
//!   position that it waits for.
//! * At most one statement runs at a time; suspended portals wait at the coordinator for credit.
//! * `steps[at]` is the running statement. Earlier steps are of the same transaction and run again
//!   with it; they are dropped once a result was released.
//! * Messages of an older attempt never match the handle of the current one and are dropped.
//!
//! The session is no parser or planner (`sql`) and no coordinator (`node`), and knows no bytes
//! (`wire`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod acting;
mod ahead;
mod audit;
pub mod away;
pub mod barrier;
mod block;
mod changes;
mod command;
mod conn;
mod copy;
mod cost;
mod cursors;
mod ddl;
pub mod errors;
mod extended;
mod fastpath;
mod fills;
mod fragments;
mod hidden;
mod inbox;
mod kept;
mod limits;
mod listen;
mod lists;
pub mod message;
mod names;
mod objects;
mod own;
mod plans;
mod portal;
mod preparing;
mod program;
mod quiesced;
mod retry;
mod rides;
mod run;
mod savepoints;
mod settings;
mod shapes;
mod simple;
mod slow;
mod startup;
mod statements;
mod statistics;
mod status;
mod table_locks;
mod temporary;
pub mod undone;

pub use audit::AuditEntry;
pub use away::Away;
pub use barrier::Barrier;
pub use changes::end_block;
pub use conn::{ConnId, Link, connections_default, pid_of, pid_shard};
pub use limits::{Count, Place, Seats};
pub use plans::PlanCache;
pub use preparing::{Leftovers, Preparation, PreparationResult};
pub use slow::SlowStatement;
pub use statements::{ENTRIES_MAX as STATEMENTS_MAX, Statements};
pub use statistics::Statistics;
pub use status::Description;
pub use temporary::drop_schema;

use ahead::{Ahead, Awaited};
use base::{Position, ShardId, SqlError, TableId, Time, Ts};
use block::{Block, ClockAsking, Modes};
use catalog::Catalog;
use cost::LastTxn;
use cursors::DeclaredCursor;
use ddl::DdlWait;
use inbox::Inbox;
use listen::Listening;
pub use listen::Told;
use message::{DdlCall, DdlStop, Quiesce, SessionFacts, ToTxn, TxnHandle};
use plans::Prepared;
use portal::Portal;
use quiesced::Quiesced;
use retry::Retry;
use run::{Ending, OpenTxn, Step};
use savepoints::Savepoints;
use settings::Settings;
use simple::QueryString;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use temporary::Temporary;
use txn::Counters;
use wire::{ClientMessage, Reply, Severity};

/// Number of batches of rows between the executor and the client's socket.
pub const CREDIT_BATCHES: u32 = 4;

/// Replies above which a query string or pipeline gets them before its end, and runs no more again.
const HELD_REPLIES_MAX: usize = 4096;

/// Longest wait, in microseconds, for a message behind an Execute that is the last received. A
/// message that is on the wire already comes earlier.
const LOOKAHEAD_US: u64 = 500;

/// What a session may touch during one call.
pub struct SessionCx<'a> {
    /// Wall time of this step.
    pub now: Time,
    /// The session's shard.
    pub here: ShardId,
    /// The catalog that this shard uses.
    pub catalog: &'a Arc<Catalog>,
    /// False when the shard drains: sessions end with their transactions.
    pub accepting: bool,
    /// Messages to clients, in order for each connection, with the positions that they wait for.
    pub replies: &'a mut Vec<(ConnId, Reply, Position)>,
    /// Messages to coordinators on this node.
    pub to_txn: &'a mut VecDeque<(ShardId, TxnHandle, ToTxn)>,
    /// Schema changes with their databases; answered by [`Session::on_ddl`].
    pub ddl: &'a mut VecDeque<DdlCall>,
    /// Plans shared by the sessions of this shard.
    pub plans: &'a mut PlanCache,
    /// Row counts of tables, as far as the shard knows them.
    pub statistics: &'a mut Statistics,
    /// Nodes to which the shard has no connection.
    pub away: &'a Away,
    /// Tables whose schema is about to change.
    pub quiesced: &'a [Quiesce],
    /// The shard's counters.
    pub counters: &'a mut Counters,
    /// Long statements to be parsed or planned; answered by [`Session::on_prepared`].
    pub preparations: &'a mut Vec<Preparation>,
    /// Parts of long statements to be freed.
    pub leftovers: &'a Leftovers,
    /// Stops panics of parsing and planning.
    pub barrier: Barrier,
    /// What sessions tell others.
    pub told: &'a mut Vec<Told>,
    /// Whether the node has memory for this many bytes more.
    pub claim_memory: &'a mut dyn FnMut(u64) -> bool,
}

/// What a session waits for.
enum Activity {
    /// The next message of the client.
    Idle,
    /// `steps[at]` runs at the coordinator.
    Running,
    /// The coordinator commits; then comes `ending`.
    Ending,
    /// The pause before the transaction runs again ends at this time.
    Backoff(Time),
    /// A long statement is parsed or planned.
    Preparing(Awaited),
    /// A schema change is under way.
    Ddl(DdlWait),
    /// A statement waits because a table is about to change.
    Quiesced(Box<Quiesced>),
}

/// Stage of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Starting,
    Open,
    Closed,
}

/// One client connection.
pub struct Session {
    conn: ConnId,
    link: Box<Link>,
    pid: i32,
    secret: i32,
    life: Life,
    user: Box<str>,
    database: Box<str>,
    settings: Settings,
    facts: Arc<SessionFacts>,
    /// Modes of which `facts` tell; `None`: a setting has changed since.
    facts_modes: Option<Modes>,
    /// As whom it acts.
    acting: Box<acting::Acting>,
    clocks: ClockAsking,
    prepared: BTreeMap<String, Rc<Prepared>>,
    /// What was noted of these.
    noted: BTreeMap<String, lists::Noted>,
    unnamed: Option<Rc<Prepared>>,
    portals: BTreeMap<String, Portal>,
    unnamed_portal: Option<Portal>,
    /// Cursors by DECLARE. They share their names with the portals.
    cursors: BTreeMap<String, DeclaredCursor>,
    /// Messages that came while a statement ran, or that wait for the next one.
    inbox: Inbox,
    /// The query string under way; `None` in the extended protocol.
    query: Option<QueryString>,
    /// When the wait of the message in the inbox for the next one ends.
    lookahead_until: Option<Time>,
    /// After an error in the extended protocol: messages are ignored until Sync.
    skipping: bool,
    /// Held replies leave at the end of the step, because a notice is among them.
    urgent: bool,
    /// Replies not yet released.
    held: Vec<(Reply, Position)>,
    /// Number of row batches among them.
    held_batches: u32,
    /// Number of row batches released since the client's buffer was last empty.
    in_flight: u32,
    block: Block,
    savepoints: Savepoints,
    modes: Modes,
    /// Start of the transaction block (`now()`), if one is open.
    block_time: Option<Time>,
    txn: Option<OpenTxn>,
    /// Number of transactions so far, with attempts.
    txn_count: u64,
    /// Tables to which the present block has written.
    written: Vec<TableId>,
    /// The open transaction has put checks of foreign keys off.
    owes: bool,
    /// Work done ahead for the next message or statement.
    ahead: Option<Box<Ahead>>,
    /// Whether the session has asked for work on long statements.
    has_long: bool,
    /// Number of works given away so far.
    prepared_count: u64,
    steps: Vec<Step>,
    at: usize,
    activity: Activity,
    /// What follows the end of the transaction.
    ending: Option<Ending>,
    retry: Option<Retry>,
    /// The DO under way.
    program: Option<Box<program::Running>>,
    /// The table that a statement makes and fills.
    filling: Option<Box<fills::Filling>>,
    /// The statement that runs when the tables of large objects have been made.
    making: Option<Box<run::Start>>,
    /// Replies of statements are not the client's: of a DO, or of a call by number.
    calling: bool,
    /// Priority of a transaction that failed with 40001, for the client's own retry, and its end.
    carried: Option<(Time, Ts, u32)>,
    /// Attempts that were given up cannot commit any more from this position on.
    true_from: Position,
    /// Largest commit timestamp seen.
    seen: Ts,
    /// The statement that runs or ran last, for SHOW SESSIONS.
    statement: Option<Rc<Prepared>>,
    /// The text of that statement, if it was found by its shape.
    sent: Option<String>,
    /// When that statement began.
    statement_since: Time,
    /// Its end has not been noted.
    is_timed: bool,
    /// Its rows so far; [`statements::UNCOUNTED`]: it has failed, or is not counted.
    statement_rows: u64,
    /// Statements that took long, until the host is told.
    slow: Vec<SlowStatement>,
    /// Logins and changes, until the host is told.
    audited: Vec<AuditEntry>,
    /// Its place among the sessions of its role and its database.
    seat: Option<limits::Seat>,
    /// When the open or last transaction began.
    txn_since: Time,
    last_txn: LastTxn,
    /// When the session came into its present state.
    since: Time,
    connected: Time,
    /// The session ends when its commit has ended.
    terminated: bool,
    /// The client was told that the session is ready, and has sent nothing since.
    is_ready: bool,
    /// What it listens to, and what it tells. `None`: nothing, as most.
    listening: Option<Box<Listening>>,
    /// What it has made for itself. `None`: nothing.
    temporary: Option<Box<Temporary>>,
    /// Schema changes of the open block. `None`: there are none.
    changes: Option<Box<changes::Changes>>,
    /// What it has to do with locks of tables.
    holds: table_locks::Holds,
}

impl Session {
    /// A session whose client has sent nothing yet.
    pub fn new(conn: ConnId, secret: i32, link: Link) -> Session {
        Session {
            link: Box::new(link),
            conn,
            pid: 0,
            secret,
            life: Life::Starting,
            user: Box::default(),
            database: Box::default(),
            settings: Settings::default(),
            facts: Arc::default(),
            facts_modes: None,
            acting: Box::default(),
            clocks: ClockAsking::default(),
            prepared: BTreeMap::new(),
            noted: BTreeMap::new(),
            unnamed: None,
            portals: BTreeMap::new(),
            unnamed_portal: None,
            cursors: BTreeMap::new(),
            inbox: Inbox::default(),
            query: None,
            lookahead_until: None,
            skipping: false,
            urgent: false,
            held: Vec::new(),
            held_batches: 0,
            in_flight: 0,
            block: Block::None,
            savepoints: Savepoints::default(),
            modes: Modes::default(),
            block_time: None,
            txn: None,
            txn_count: 0,
            written: Vec::new(),
            owes: false,
            ahead: None,
            has_long: false,
            prepared_count: 0,
            steps: Vec::new(),
            at: 0,
            activity: Activity::Idle,
            ending: None,
            retry: None,
            program: None,
            filling: None,
            making: None,
            calling: false,
            carried: None,
            true_from: Position(0),
            seen: Ts::ZERO,
            statement: None,
            sent: None,
            statement_since: Time(0),
            is_timed: false,
            statement_rows: 0,
            slow: Vec::new(),
            audited: Vec::new(),
            seat: None,
            txn_since: Time(0),
            last_txn: LastTxn::default(),
            since: Time(0),
            connected: Time(0),
            terminated: false,
            is_ready: false,
            listening: None,
            temporary: None,
            changes: None,
            holds: table_locks::Holds::default(),
        }
    }

    /// A message from the client has arrived.
    pub fn on_client(&mut self, cx: &mut SessionCx<'_>, message: ClientMessage) {
        if self.life == Life::Closed {
            return;
        }
        self.is_ready = false;
        if self.copying_in() {
            self.on_copy_message(cx, message);
        } else {
            self.inbox.push(message);
        }
        self.pump(cx);
    }

    /// The released replies have left the host's buffer: the running statement may send more.
    pub fn on_drained(&mut self, cx: &mut SessionCx<'_>) {
        self.in_flight = 0;
        if !matches!(self.activity, Activity::Running) {
            return;
        }
        let step = &mut self.steps[self.at];
        if step.cursor.is_some() {
            self.credit_cursor(cx);
        } else if step.spent > self.held_batches {
            let batches = step.spent - self.held_batches;
            step.spent = self.held_batches;
            let number = step.number;
            self.tell(cx, ToTxn::Credit(number, batches));
        }
    }

    /// A cancel request; ignored if the secret is another one or no statement runs.
    pub fn on_cancel(&mut self, cx: &mut SessionCx<'_>, secret: i32) {
        if secret == self.secret {
            self.cancel(cx);
        }
    }

    /// Backend number, as in `pg_stat_activity`; 0 before the startup message.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Another session cancels the running statement, if there is one.
    pub fn cancel(&mut self, cx: &mut SessionCx<'_>) {
        match self.activity {
            Activity::Running => self.tell(cx, ToTxn::Cancel(errors::canceled())),
            Activity::Backoff(_) => {
                self.activity = Activity::Idle;
                if self.ending.is_some() {
                    self.fail_ending(cx, errors::canceled(), Position(0));
                } else {
                    self.fail(cx, errors::canceled(), Position(0));
                }
            }
            // What takes a failed statement back is not cancelled.
            Activity::Ddl(_) if self.is_undoing() => {}
            Activity::Ddl(_) => self.stop_ddl(cx, DdlStop::Canceled),
            Activity::Preparing(_) => self.fail_preparing(cx, errors::canceled()),
            Activity::Quiesced(_) => self.fail_quiesced(cx, errors::canceled()),
            Activity::Idle | Activity::Ending => {}
        }
        self.pump(cx);
    }

    /// Another session ends this one: at once, or after the outcome of a commit.
    pub fn terminate_from_outside(&mut self, cx: &mut SessionCx<'_>) {
        if matches!(self.activity, Activity::Ending) {
            self.terminated = true;
        } else if self.life != Life::Closed {
            self.fatal(cx, errors::shutdown());
        }
    }

    /// The client has gone: its transaction is rolled back, unless it commits.
    pub fn on_disconnect(&mut self, cx: &mut SessionCx<'_>) {
        if !matches!(self.activity, Activity::Ending) {
            self.roll_back(cx);
            self.leave_changes(cx);
        }
        self.held.clear();
        self.close();
    }

    /// Ends the session: no more messages are handled or sent.
    fn close(&mut self) {
        self.inbox.clear();
        self.lookahead_until = None;
        self.life = Life::Closed;
    }

    /// The time of [`Session::deadline`] has come, or the shard has begun to drain.
    pub fn on_tick(&mut self, cx: &mut SessionCx<'_>) {
        if self.life == Life::Closed {
            return;
        }
        match self.activity {
            Activity::Backoff(at) if at <= cx.now => self.run_again(cx),
            Activity::Idle if self.idle_deadline().is_some_and(|at| at <= cx.now) => {
                self.fatal(cx, errors::idle_timeout(self.block != Block::None));
            }
            Activity::Idle if !cx.accepting && self.may_end() => self.fatal(cx, errors::shutdown()),
            Activity::Idle | Activity::Backoff(_) | Activity::Running | Activity::Ending => {}
            Activity::Preparing(Awaited { until, .. }) => self.on_preparing_tick(cx, until),
            Activity::Ddl(_) => self.on_ddl_tick(cx),
            Activity::Quiesced(_) => self.on_quiesced_tick(cx),
        }
        self.pump(cx);
    }

    /// When [`Session::on_tick`] is to be called; never for a session that has ended.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        if self.life == Life::Closed {
            return None;
        }
        match &self.activity {
            Activity::Quiesced(waiting) => waiting.deadline(),
            Activity::Backoff(at) => Some(*at),
            Activity::Idle => self.idle_deadline(),
            Activity::Preparing(Awaited { until, .. }) => *until,
            Activity::Ddl(wait) => wait.deadline(),
            Activity::Running | Activity::Ending => None,
        }
    }

    /// When [`Session::on_tick`] is to be called because no message has followed an Execute. Apart
    /// from [`Session::deadline`], because nearly every statement sets and unsets it.
    #[inline]
    pub fn lookahead_until(&self) -> Option<Time> {
        self.lookahead_until
    }

    /// Whether the session has ended and may be dropped when its replies have left.
    pub fn is_closed(&self) -> bool {
        self.life == Life::Closed
    }

    /// Whether the session may have left parts of a long statement ([`SessionCx::leftovers`]).
    #[inline]
    pub fn has_long(&self) -> bool {
        self.has_long
    }

    /// When a client that says nothing has been silent for too long. As in PostgreSQL only a
    /// session that is ready for a query is idle: not one in the middle of a pipeline.
    fn idle_deadline(&self) -> Option<Time> {
        let knobs = &self.settings.knobs;
        let timeout_us = match self.block {
            Block::Explicit | Block::Failed => knobs.idle_in_transaction_timeout_us,
            Block::None => knobs.idle_timeout_us,
            Block::Implicit => 0,
        };
        (timeout_us > 0 && self.is_ready).then(|| self.since.after(timeout_us))
    }

    /// Whether the client loses nothing if the session ends now.
    fn may_end(&self) -> bool {
        self.life == Life::Open
            && self.block == Block::None
            && self.inbox.is_empty()
            && self.query.is_none()
            && !self.skipping
    }

    /// Runs what can go on.
    fn pump(&mut self, cx: &mut SessionCx<'_>) {
        if self.urgent {
            self.release(cx);
        }
        while self.life != Life::Closed
            && matches!(self.activity, Activity::Idle)
            && !self.terminated
        {
            if self.program.is_some() {
                self.program_on(cx);
            } else if self.prepare_ahead(cx) {
                break;
            } else if self.query.is_some() {
                self.next_statement(cx);
                if self.has_long {
                    self.forget_ahead(cx);
                }
            } else if let Some(message) = self.next_message(cx.now) {
                self.on_message(cx, message);
                // Of a query string the first statement is still to be planned.
                if self.has_long && self.query.is_none() {
                    self.forget_ahead(cx);
                }
            } else {
                break;
            }
            if self.urgent || self.held.len() >= HELD_REPLIES_MAX {
                self.release(cx);
            }
        }
        if self.terminated && !matches!(self.activity, Activity::Ending) {
            self.terminated = false;
            self.terminate_from_outside(cx);
        }
        let streaming = self.urgent || self.txn.as_ref().is_some_and(|txn| !txn.retryable);
        if streaming && !self.held.is_empty() {
            self.release(cx);
        }
    }

    /// Takes the next message, unless the one behind it decides how to handle it: then the session
    /// waits a moment.
    fn next_message(&mut self, now: Time) -> Option<ClientMessage> {
        let front = self.inbox.front()?;
        if !self.skipping && self.waits_for_next(front) {
            let until = *self.lookahead_until.get_or_insert(now.after(LOOKAHEAD_US));
            if now < until {
                return None;
            }
        }
        self.lookahead_until = None;
        self.inbox.pop()
    }

    fn on_message(&mut self, cx: &mut SessionCx<'_>, message: ClientMessage) {
        if self.life == Life::Starting {
            self.on_startup(cx, message);
            return;
        }
        if self.skipping && !extended::ends_skipping(&message) {
            return;
        }
        match message {
            ClientMessage::Startup { .. } => {
                self.fatal(cx, errors::protocol("unexpected startup message"));
            }
            ClientMessage::Query(text) => self.on_query(cx, text),
            ClientMessage::Parse { name, text, types } => self.on_parse(cx, name, &text, &types),
            ClientMessage::Bind {
                portal,
                statement,
                formats,
                params,
                result_formats,
            } => {
                let bind = extended::Bind {
                    portal,
                    statement,
                    formats,
                    params,
                    result_formats,
                };
                self.on_bind(cx, bind);
            }
            ClientMessage::DescribeStatement(name) => self.on_describe_statement(cx, &name),
            ClientMessage::DescribePortal(name) => self.on_describe_portal(cx, &name),
            ClientMessage::Execute { portal, rows_max } => self.on_execute(cx, portal, rows_max),
            ClientMessage::FunctionCall {
                function,
                formats,
                args,
                result_format,
            } => self.on_function_call(cx, function, (formats, args), result_format),
            ClientMessage::CloseStatement(name) => self.on_close_statement(&name),
            ClientMessage::ClosePortal(name) => self.on_close_portal(cx, &name),
            ClientMessage::Sync => self.on_sync(cx),
            ClientMessage::Flush => self.release(cx),
            // Rest of a COPY that has failed.
            ClientMessage::CopyData(_) | ClientMessage::CopyDone | ClientMessage::CopyFail(_) => {}
            ClientMessage::Terminate => self.terminate(cx),
            ClientMessage::BadQuery(error) => {
                self.query = Some(QueryString::default());
                self.fail(cx, error, Position(0));
            }
            ClientMessage::Malformed { error, fatal: true } => self.fatal(cx, error),
            ClientMessage::Malformed {
                error,
                fatal: false,
            } => self.fail(cx, error, Position(0)),
        }
    }

    /// The client has ended the session.
    fn terminate(&mut self, cx: &mut SessionCx<'_>) {
        self.roll_back(cx);
        self.leave_changes(cx);
        self.release(cx);
        cx.replies.push((self.conn, Reply::Close, Position(0)));
        self.close();
    }

    /// Adds a reply.
    fn say(&mut self, reply: Reply, wait: Position) {
        self.held.push((reply, wait));
    }

    fn notice(&mut self, severity: Severity, notice: SqlError) {
        if self.settings.knobs.tells(severity) {
            self.urgent = true;
            self.say(Reply::Error(severity, notice), Position(0));
        }
    }

    /// Gives the held replies to the host; statements so far do not run again.
    fn release(&mut self, cx: &mut SessionCx<'_>) {
        let conn = self.conn;
        let (waits, before) = (self.settings.knobs.synchronous_commit, self.true_from);
        // An error waits in any case: a commit that it denies must have become impossible.
        let told = |reply: &Reply| waits || matches!(reply, Reply::Error(..));
        let position = |reply: &Reply, wait: Position| match told(reply) {
            true => wait.max(before),
            false => before,
        };
        if self.calling {
            self.take_calls();
        }
        let held = self.held.drain(..);
        let held = held.map(|(reply, wait)| (conn, position(&reply, wait), reply));
        cx.replies
            .extend(held.map(|(conn, wait, reply)| (conn, reply, wait)));
        self.in_flight += core::mem::take(&mut self.held_batches);
        self.urgent = false;
        if let Some(txn) = &mut self.txn {
            txn.retryable = false;
            if matches!(self.activity, Activity::Running) {
                self.steps.drain(..self.at);
                self.at = 0;
                self.steps[0].mark = 0;
                self.steps[0].said = 0;
            }
        }
    }

    /// Ends a query string or pipeline.
    fn end_batch(&mut self, cx: &mut SessionCx<'_>, wait: Position) {
        if self.ends_later(cx, wait) {
            return;
        }
        self.query = None;
        self.steps.clear();
        self.at = 0;
        self.retry = None;
        for (name, value) in self.settings.report() {
            self.say(Reply::ParameterStatus(name, value), Position(0));
        }
        self.say_notifications();
        self.time_statement(cx);
        self.say(Reply::Ready(self.block.status()), wait);
        self.release(cx);
        self.calling = false;
        self.in_flight = 0;
        self.since = cx.now;
        self.is_ready = self.inbox.is_empty();
        self.give_back_memory();
        if !cx.accepting && self.may_end() {
            self.fatal(cx, errors::shutdown());
        }
    }

    /// Shrinks what a large pipeline has grown, so that an idle session stays small.
    fn give_back_memory(&mut self) {
        const KEPT: usize = 32;
        if self.held.capacity() > KEPT {
            self.held.shrink_to(KEPT);
        }
        if self.steps.capacity() > KEPT {
            self.steps.shrink_to(KEPT);
        }
        self.inbox.shrink(KEPT);
    }

    /// An error of the query string or pipeline: the transaction is rolled back.
    fn fail(&mut self, cx: &mut SessionCx<'_>, error: SqlError, wait: Position) {
        if self.filling.is_some() && self.undo_filling(cx, &error, wait) {
            return;
        }
        match self.block {
            Block::Explicit | Block::Failed if self.outlives_error() => {
                self.block = Block::Failed;
                self.restore_saved_settings();
                if let Some(txn) = &mut self.txn {
                    txn.retryable = false;
                }
            }
            Block::Explicit | Block::Failed => {
                self.undo_txn(cx);
                self.leave_changes(cx);
                self.lose_savepoints();
                self.block = Block::Failed;
                self.spend_portals();
            }
            Block::None | Block::Implicit => {
                self.undo_txn(cx);
                self.doom_made(0);
                self.block = Block::None;
                self.close_portals();
            }
        }
        self.activity = Activity::Idle;
        self.statement_rows = statements::UNCOUNTED;
        let synced = matches!(self.ending.take(), Some(Ending::Sync));
        // Says replies taken back from before the failed statement: what they tell has happened all
        // the same. A client that is not told of its Parse would use the name again.
        if let Some(before) = self.steps.get(self.at).map(|step| step.before) {
            self.say_statics(before);
        }
        self.retry = None;
        self.steps.clear();
        self.at = 0;
        if self.program.is_some() {
            return self.program_fails(cx, error, wait);
        }
        let error = self.named_error(cx, error);
        self.say(Reply::Error(Severity::Error, error), wait);
        if self.query.is_some() || synced {
            self.end_batch(cx, Position(0));
        } else {
            // As in PostgreSQL, an error leaves at once, with all held replies before it.
            self.skipping = true;
            self.release(cx);
        }
    }
}
