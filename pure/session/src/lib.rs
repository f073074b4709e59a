//! The session machine: one client connection, from its startup message to its end.
//!
//! ```text
//! client messages -> inbox -> pump -> commands of the session itself (BEGIN, SET, SHOW, ...)
//!                                  -> ToTxn::Run -> coordinator -> FromTxn -> held replies
//!                                  -> schema changes -> on_ddl
//! ```
//!
//! Replies of a query string or pipeline are held until it is over. A transaction none of whose
//! results has been released is run again by the session itself when the protocol rolls it back
//! (`retry`).
//!
//! Invariants:
//! * Replies leave in the order in which PostgreSQL would send them; each names the journal
//!   position that it waits for.
//! * At most one statement runs at a time; suspended portals wait at the coordinator for credit.
//! * `steps[at]` is the running statement; the steps before it are those of the same transaction
//!   that would be run again with it. They are forgotten once a result has been released.
//! * Messages of an older attempt never match the handle of the current one and are dropped.
//!
//! It is not a parser or planner (`sql`), not a coordinator (`node`), and knows no bytes
//! (`wire`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod ahead;
pub mod away;
pub mod barrier;
mod block;
mod command;
mod conn;
mod copy;
mod ddl;
pub mod errors;
mod extended;
mod inbox;
pub mod message;
mod names;
mod plans;
mod portal;
mod preparing;
mod quiesced;
mod retry;
mod run;
mod settings;
mod simple;
mod startup;
mod statistics;
mod status;

pub use away::Away;
pub use barrier::Barrier;
pub use conn::{ConnId, Link, connections_default, pid_of, pid_shard};
pub use plans::PlanCache;
pub use preparing::{Leftovers, Preparation, PreparationResult};
pub use statistics::Statistics;
pub use status::Description;

use ahead::{Ahead, Awaited};
use base::{Position, ShardId, SqlError, TableId, Time, Ts};
use block::{Block, Modes};
use catalog::{Catalog, Database};
use ddl::DdlWait;
use inbox::Inbox;
use message::{DdlCall, DdlStop, Quiesce, SessionFacts, ToTxn, TxnHandle};
use plans::Prepared;
use portal::Portal;
use quiesced::Quiesced;
use retry::Retry;
use run::{Ending, OpenTxn, Step};
use settings::Settings;
use simple::QueryString;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use txn::Counters;
use wire::{ClientMessage, Reply, Severity};

/// Batches of rows that may be between the executor and the client's socket.
pub const CREDIT_BATCHES: u32 = 4;

/// A query string or pipeline with more replies than this gets them before its end; what has run
/// up to there is then not run again by the session.
const HELD_REPLIES_MAX: usize = 4096;

/// Longest wait, in microseconds, for the message behind an Execute that ends what a client has
/// sent. One that is behind it on the wire comes earlier.
const LOOKAHEAD_US: u64 = 500;

/// What a session may touch during one call.
pub struct SessionCx<'a> {
    /// Wall time of this step.
    pub now: Time,
    /// The session's shard.
    pub here: ShardId,
    /// The catalog that this shard uses.
    pub catalog: &'a Arc<Catalog>,
    /// False once the shard drains: sessions end when their transaction is over.
    pub accepting: bool,
    /// To clients, in order per connection, each with the position that it waits for.
    pub replies: &'a mut Vec<(ConnId, Reply, Position)>,
    /// To coordinators on this node.
    pub to_txn: &'a mut VecDeque<(ShardId, TxnHandle, ToTxn)>,
    /// Schema changes with their database; answered by [`Session::on_ddl`].
    pub ddl: &'a mut VecDeque<DdlCall>,
    /// Plans shared by the sessions of this shard.
    pub plans: &'a mut PlanCache,
    /// How many rows tables have, as far as the shard knows.
    pub statistics: &'a mut Statistics,
    /// Nodes that the shard is not connected with.
    pub away: &'a Away,
    /// Tables whose schema is about to change.
    pub quiesced: &'a [Quiesce],
    /// The shard's counters.
    pub counters: &'a mut Counters,
    /// Long statements to be parsed or planned; answered by [`Session::on_prepared`].
    pub preparations: &'a mut Vec<Preparation>,
    /// What is left of long statements.
    pub leftovers: &'a Leftovers,
    /// Stops panics of parsing and planning.
    pub barrier: Barrier,
    /// Whether the node has memory for this many bytes more.
    pub claim_memory: &'a mut dyn FnMut(u64) -> bool,
}

/// What the session waits for.
enum Activity {
    /// The next message of the client.
    Idle,
    /// `steps[at]` runs at the coordinator.
    Running,
    /// The coordinator commits; `ending` says what follows.
    Ending,
    /// The transaction runs again at this time.
    Backoff(Time),
    /// A long statement is parsed or planned.
    Preparing(Awaited),
    /// A schema change is under way.
    Ddl(DdlWait),
    /// A statement waits because a table is about to be changed.
    Quiesced(Box<Quiesced>),
}

/// Where the connection is in its life.
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
    /// Modes that `facts` tell of; `None` once a setting has changed.
    facts_modes: Option<Modes>,
    prepared: BTreeMap<String, Rc<Prepared>>,
    unnamed: Option<Rc<Prepared>>,
    portals: BTreeMap<String, Portal>,
    unnamed_portal: Option<Portal>,
    /// Messages that came while something ran, or that wait for the one behind them.
    inbox: Inbox,
    /// The query string under way; `None` in the extended protocol.
    query: Option<QueryString>,
    /// Until when the message in the inbox waits for the one behind it.
    lookahead_until: Option<Time>,
    /// After an error in the extended protocol: everything is ignored until Sync.
    skipping: bool,
    /// What is held leaves at the end of the step: a notice is among it.
    urgent: bool,
    /// Replies not yet released.
    held: Vec<(Reply, Position)>,
    /// Row batches among them.
    held_batches: u32,
    /// Row batches released since the client's buffer was last empty.
    in_flight: u32,
    block: Block,
    modes: Modes,
    /// Start of the transaction block (`now()`), if one is open.
    block_time: Option<Time>,
    txn: Option<OpenTxn>,
    /// Transactions so far, attempts too.
    txn_count: u64,
    /// Tables that the present block has written to.
    written: Vec<TableId>,
    /// What was parsed and planned for what comes next.
    ahead: Option<Box<Ahead>>,
    /// It has been asked for long statements.
    has_long: bool,
    /// Works given away so far.
    prepared_count: u64,
    steps: Vec<Step>,
    at: usize,
    activity: Activity,
    /// What follows the end of the transaction.
    ending: Option<Ending>,
    retry: Option<Retry>,
    /// Priority of a transaction that failed with 40001, for the client's own retry: until when.
    carried: Option<(Time, Ts, u32)>,
    /// Largest commit timestamp seen.
    seen: Ts,
    /// What runs or ran last, for SHOW SESSIONS.
    statement: Option<Rc<Prepared>>,
    /// When that began.
    statement_since: Time,
    /// When the transaction began that is open or was last.
    txn_since: Time,
    /// Since when the session is in its present state.
    since: Time,
    connected: Time,
    /// It ends when its commit is over.
    terminated: bool,
    /// The client has been told that the session is ready, and has not said anything since.
    is_ready: bool,
}

impl Session {
    /// A session whose client has not said anything yet.
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
            prepared: BTreeMap::new(),
            unnamed: None,
            portals: BTreeMap::new(),
            unnamed_portal: None,
            inbox: Inbox::default(),
            query: None,
            lookahead_until: None,
            skipping: false,
            urgent: false,
            held: Vec::new(),
            held_batches: 0,
            in_flight: 0,
            block: Block::None,
            modes: Modes::default(),
            block_time: None,
            txn: None,
            txn_count: 0,
            written: Vec::new(),
            ahead: None,
            has_long: false,
            prepared_count: 0,
            steps: Vec::new(),
            at: 0,
            activity: Activity::Idle,
            ending: None,
            retry: None,
            carried: None,
            seen: Ts::ZERO,
            statement: None,
            statement_since: Time(0),
            txn_since: Time(0),
            since: Time(0),
            connected: Time(0),
            terminated: false,
            is_ready: false,
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

    /// What was released has left the host's buffer: the running statement may send more.
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

    /// A cancel request; ignored if its secret is not this session's or nothing runs.
    pub fn on_cancel(&mut self, cx: &mut SessionCx<'_>, secret: i32) {
        if secret == self.secret {
            self.cancel(cx);
        }
    }

    /// Its number in `pg_stat_activity`; 0 before the startup message.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Another session cancels what runs here; nothing if nothing runs.
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
            Activity::Ddl(_) => self.stop_ddl(cx, DdlStop::Canceled),
            Activity::Preparing(_) => self.fail_preparing(cx, errors::canceled()),
            Activity::Quiesced(_) => self.fail_quiesced(cx, errors::canceled()),
            Activity::Idle | Activity::Ending => {}
        }
        self.pump(cx);
    }

    /// Another session ends this one: at once, or when its commit has an outcome.
    pub fn terminate_from_outside(&mut self, cx: &mut SessionCx<'_>) {
        if matches!(self.activity, Activity::Ending) {
            self.terminated = true;
        } else if self.life != Life::Closed {
            self.fatal(cx, errors::shutdown());
        }
    }

    /// The client is gone: its transaction is rolled back, unless it is being committed.
    pub fn on_disconnect(&mut self, cx: &mut SessionCx<'_>) {
        if !matches!(self.activity, Activity::Ending) {
            self.roll_back(cx);
        }
        self.held.clear();
        self.close();
    }

    /// Nothing is taken or said any more.
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

    /// When [`Session::on_tick`] wants to be called; never for a session that is over.
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

    /// When [`Session::on_tick`] wants to be called because nothing has followed an Execute. Apart
    /// from [`Session::deadline`]: it is set and unset by nearly every statement.
    #[inline]
    pub fn lookahead_until(&self) -> Option<Time> {
        self.lookahead_until
    }

    /// Whether the session is over and may be dropped once its replies have left.
    pub fn is_closed(&self) -> bool {
        self.life == Life::Closed
    }

    /// Bytes of the client's messages and COPY data that the session has not read: a host does not
    /// read more from a client with many. 0 while what to do depends on the next message.
    pub fn backlog_bytes(&self) -> usize {
        let copying = matches!(self.activity, Activity::Running);
        let step = self.steps.get(self.at).filter(|_| copying);
        let waiting = if self.inbox.len() > 1 {
            self.inbox.bytes()
        } else {
            0
        };
        waiting + step.map_or(0, |step| step.copy_bytes)
    }

    /// Whether it may have left something of a long statement ([`SessionCx::leftovers`]).
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

    /// Whether nothing of the client would be lost by ending the session now.
    fn may_end(&self) -> bool {
        self.life == Life::Open
            && self.block == Block::None
            && self.inbox.is_empty()
            && self.query.is_none()
            && !self.skipping
    }

    /// Goes on with whatever can go on.
    fn pump(&mut self, cx: &mut SessionCx<'_>) {
        if self.urgent {
            self.release(cx);
        }
        while self.life != Life::Closed
            && matches!(self.activity, Activity::Idle)
            && !self.terminated
        {
            if self.prepare_ahead(cx) {
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

    /// The next message, unless what to do with it depends on the one behind it, for which the
    /// session waits a moment.
    fn next_message(&mut self, now: Time) -> Option<ClientMessage> {
        let front = self.inbox.front()?;
        if self.inbox.len() == 1 && !self.skipping && self.waits_for_next(front) {
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
        if self.skipping && !ends_skipping(&message) {
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
            ClientMessage::CloseStatement(name) => self.on_close_statement(&name),
            ClientMessage::ClosePortal(name) => self.on_close_portal(cx, &name),
            ClientMessage::Sync => self.on_sync(cx),
            ClientMessage::Flush => self.release(cx),
            // What is left of a COPY that has failed.
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

    /// The client has said goodbye.
    fn terminate(&mut self, cx: &mut SessionCx<'_>) {
        self.roll_back(cx);
        self.release(cx);
        cx.replies.push((self.conn, Reply::Close, Position(0)));
        self.close();
    }

    /// Adds a reply to those of the query string or pipeline.
    fn say(&mut self, reply: Reply, wait: Position) {
        self.held.push((reply, wait));
    }

    fn notice(&mut self, severity: Severity, notice: SqlError) {
        if self.settings.knobs.tells(severity) {
            self.urgent = true;
            self.say(Reply::Error(severity, notice), Position(0));
        }
    }

    /// Gives the held replies to the host; what has run up to here is not run again.
    fn release(&mut self, cx: &mut SessionCx<'_>) {
        let conn = self.conn;
        let waits = self.settings.knobs.synchronous_commit;
        let position = |wait| if waits { wait } else { Position(0) };
        let held = self.held.drain(..);
        cx.replies
            .extend(held.map(|(reply, wait)| (conn, reply, position(wait))));
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
        self.query = None;
        self.steps.clear();
        self.at = 0;
        self.retry = None;
        for (name, value) in self.settings.report() {
            self.say(Reply::ParameterStatus(name, value), Position(0));
        }
        self.say(Reply::Ready(self.block.status()), wait);
        self.release(cx);
        self.in_flight = 0;
        self.since = cx.now;
        self.is_ready = self.inbox.is_empty();
        self.give_back_memory();
        if !cx.accepting && self.may_end() {
            self.fatal(cx, errors::shutdown());
        }
    }

    /// What a large pipeline has grown shrinks again: an idle session stays small.
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
        self.roll_back(cx);
        self.restore_settings();
        match self.block {
            Block::Explicit | Block::Failed => {
                self.block = Block::Failed;
                self.spend_portals();
            }
            Block::None | Block::Implicit => {
                self.block = Block::None;
                self.close_portals();
            }
        }
        self.activity = Activity::Idle;
        let synced = matches!(self.ending.take(), Some(Ending::Sync));
        // What was taken back from before the failed statement has happened all the same: a client
        // that does not hear of its Parse would name the statement again.
        if let Some(before) = self.steps.get(self.at).map(|step| step.before) {
            self.say_statics(before);
        }
        self.retry = None;
        self.steps.clear();
        self.at = 0;
        self.say(Reply::Error(Severity::Error, error), wait);
        if self.query.is_some() || synced {
            self.end_batch(cx, Position(0));
        } else {
            // As in PostgreSQL an error leaves at once, with all that is held before it.
            self.skipping = true;
            self.release(cx);
        }
    }

    /// An error that ends the connection.
    fn fatal(&mut self, cx: &mut SessionCx<'_>, error: SqlError) {
        self.roll_back(cx);
        self.activity = Activity::Idle;
        self.say(Reply::Error(Severity::Fatal, error), Position(0));
        self.say(Reply::Close, Position(0));
        self.release(cx);
        self.close();
    }

    /// The database of the session as the present catalog has it.
    fn database<'c>(&self, cx: &'c SessionCx<'_>) -> Result<&'c Arc<Database>, SqlError> {
        let found = cx.catalog.databases.get(&*self.database);
        found.ok_or_else(|| errors::no_database(&self.database))
    }
}

/// Whether a message is looked at even after an error in the extended protocol.
fn ends_skipping(message: &ClientMessage) -> bool {
    matches!(
        message,
        ClientMessage::Sync
            | ClientMessage::Terminate
            | ClientMessage::Malformed { fatal: true, .. }
    )
}
