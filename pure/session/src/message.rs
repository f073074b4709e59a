//! Messages between sessions, transactions and schema changes of one node.

use crate::conn::ConnId;
use crate::errors;
use base::{Position, RowBatch, ShardId, SqlError, TableId, Time, Ts};
use catalog::{Catalog, Database};
use exec::port::{Notification, Params};
use parse::session::Isolation;
use plan::Plan;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use txn::{OpError, Outcome, TxnCost};
use wire::Tag;

/// Names a transaction inside a node: the session that asks, and which of its transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TxnHandle {
    /// The session's shard.
    pub session: ShardId,
    /// The session's connection.
    pub conn: ConnId,
    /// Number of the transaction (each attempt is one) on this connection, from 1.
    pub number: u64,
}

/// Number of a statement in its transaction, from 1; drawn by the session.
pub type StatementNo = u32;

/// From a session to its transaction.
#[derive(Debug)]
pub enum ToTxn {
    /// Runs a statement; with `begin` it is the first of the transaction.
    Run(RunRequest),
    /// The client has taken rows: this many more batches may be sent.
    Credit(StatementNo, u32),
    /// Data for COPY FROM; `None`: end; an error: the client gave up.
    CopyData(StatementNo, Result<Option<Vec<u8>>, SqlError>),
    /// The client does not want more rows of the statement: it ends as if complete.
    Close(StatementNo),
    /// Ends the running statement with this error (57014).
    Cancel(SqlError),
    /// Commits; answered by [`FromTxn::Ended`].
    Commit,
    /// Rolls back; answered by [`FromTxn::Ended`].
    Rollback,
}

/// A statement to run.
pub struct RunRequest {
    /// Number of the statement.
    pub statement: StatementNo,
    /// Options of the transaction, with its first statement.
    pub begin: Option<BeginRequest>,
    /// Plan of the statement.
    pub plan: Arc<Plan>,
    /// Parameters of the statement.
    pub params: Params,
    /// Commit when it succeeds, roll back when it fails (a statement outside a transaction block).
    pub autocommit: bool,
    /// Catalog of the plan.
    pub catalog: Arc<Catalog>,
    /// Database of the session.
    pub database: Arc<Database>,
    /// Facts of the session.
    pub facts: Arc<SessionFacts>,
    /// Batches that may be sent before the first [`ToTxn::Credit`].
    pub credit: u32,
    /// The statement ends with 57014 at this time; `None`: no limit.
    pub deadline: Option<Time>,
    /// Whether the statement waits while older transactions are at work.
    pub admission: Admission,
}

/// When a statement waits for older transactions, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// It runs at once if its transaction is among this many percent of those at work on the shard,
    /// the oldest first, or is the oldest; from 1 to 100. 100: it always does.
    pub potential_max_percent: u8,
    /// Longest wait in microseconds, at least 1.
    pub wait_us: u64,
}

impl std::fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RunRequest {
            statement,
            begin,
            params,
            autocommit,
            ..
        } = self;
        let mut debug = f.debug_struct("RunRequest");
        debug.field("statement", statement).field("begin", begin);
        debug
            .field("params", params)
            .field("autocommit", autocommit)
            .finish_non_exhaustive()
    }
}

/// How a transaction starts.
#[derive(Clone, Debug)]
pub struct BeginRequest {
    /// Level in force (never weaker than requested).
    pub isolation: Isolation,
    /// Whether writes are refused; with SERIALIZABLE, the transaction then reads a snapshot.
    pub read_only: bool,
    /// Whether a snapshot of several statements asks all shards for their clocks first, so that no
    /// shard refuses it.
    pub asks_clocks: bool,
    /// Timestamp of the first attempt; `None`: this is the first.
    pub priority_ts: Option<Ts>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// `now()` of the transaction.
    pub txn_time: Time,
    /// Longest wait for a lock, microseconds; 0: no limit.
    pub lock_timeout_us: u64,
    /// Longest wait for a transaction in doubt, microseconds; 0: no limit.
    pub in_doubt_timeout_us: u64,
    /// Whether a commit of several nodes may be answered before its decision is durable.
    pub early_answer: bool,
    /// Whether reads lock their rows under every protocol.
    pub locks_reads: bool,
    /// Whether bytes of its messages are counted: it begins with EXPLAIN ANALYZE.
    pub measured: bool,
    /// Largest commit timestamp that this session has seen: the transaction's timestamps lie above
    /// it, so that a session reads what it wrote whichever shard coordinates.
    pub seen: Ts,
    /// Where the coordinator writes what the transaction has cost. It comes back with the end of
    /// the transaction, so that no transaction allocates one. `None`: that is not wanted.
    pub cost: Option<Box<EndCost>>,
}

/// Facts of a session that statements may read. Made anew when a setting changes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionFacts {
    /// User name.
    pub user: String,
    /// Backend number.
    pub pid: i32,
    /// Addresses of the connection.
    pub ends: Option<expr::Ends>,
    /// Settings that differ from their defaults, lower-case names.
    pub settings: Vec<(String, String)>,
    /// Defaults of settings that have another value, from the startup message or the server.
    pub defaults: Vec<(String, String)>,
    /// Last values drawn from sequences in this session.
    pub currval: Vec<(base::IndexId, i64)>,
    /// The sequence from which it drew last, by `nextval`.
    pub drawn_last: Option<base::IndexId>,
}

/// From a transaction to its session.
#[derive(Debug)]
pub enum FromTxn {
    /// Rows of a statement; uses up one batch of credit. They leave once the journal is durable to
    /// the position: the largest that the transaction has read so far.
    Rows(StatementNo, RowBatch, Position),
    /// COPY TO data; uses up one batch of credit. Waits as rows do.
    CopyOut(StatementNo, Vec<u8>, Position),
    /// COPY FROM wants data (sent once).
    CopyInReady(StatementNo),
    /// Number of further bytes of COPY FROM data that were taken (told now and then).
    CopyTaken(StatementNo, usize),
    /// The statement is over.
    Done(StatementNo, Done),
    /// The transaction is over (answer to Commit and Rollback).
    Ended {
        /// Outcome of the transaction.
        outcome: Outcome,
        /// Answers built from it wait for this position unless `synchronous_commit = off`.
        wait: Position,
        /// What it has cost, if that is known: [`BeginRequest::cost`], written.
        cost: Option<Box<EndCost>>,
    },
}

/// What a transaction has cost from the begin of its last attempt to its outcome.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EndCost {
    /// What the protocol has counted.
    pub cost: TxnCost,
    /// Nodes that are homes of what it has read or written.
    pub nodes_touched: u32,
    /// Whether rows move under the protocol.
    pub moves_rows: bool,
}

/// End of a statement.
#[derive(Debug)]
pub struct Done {
    /// Tag of the statement, or its error. After `OpError::Aborted` the transaction has ended.
    /// After `OpError::Sql` it has ended if it was autocommit; else it waits for Rollback.
    pub result: Result<Tag, OpError>,
    /// Outcome of the transaction, if it was autocommit and has ended.
    pub outcome: Option<Outcome>,
    /// What the transaction has cost, if it has ended and that is known: [`BeginRequest::cost`],
    /// written.
    pub cost: Option<Box<EndCost>>,
    /// Answers built from it wait for this position (what it read, and its commit) unless
    /// `synchronous_commit = off`.
    pub wait: Position,
    /// Priority timestamp, for a retry.
    pub priority_ts: Ts,
    /// What the statement has done to the session; `None`: nothing, as most.
    pub effects: Option<Box<SessionEffects>>,
}

/// What a statement does to its session.
#[derive(Default, Debug)]
pub struct SessionEffects {
    /// Sequence values that were drawn.
    pub currval: Vec<(base::IndexId, i64)>,
    /// The sequence from which it drew last.
    pub drawn_last: Option<base::IndexId>,
    /// Settings changed by `set_config`, in order; only if the statement succeeded.
    pub settings: Vec<SettingChange>,
    /// Warnings for the client, in order.
    pub warnings: Vec<SqlError>,
    /// What `pg_notify` tells when the transaction commits; only if the statement succeeded.
    pub notifications: Vec<Notification>,
    /// Checks were put off that must be made before the commit.
    pub owes: bool,
}

/// A setting that a statement has changed: its lower-case name and its checked value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingChange {
    /// Lower-case name.
    pub name: String,
    /// Checked value.
    pub value: String,
    /// Whether the change ends with the transaction.
    pub local: bool,
}

/// Why a client cancels its schema change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DdlStop {
    /// The client has cancelled.
    Canceled,
    /// `statement_timeout` has passed.
    StatementTimeout,
    /// `lock_timeout` has passed: a change is stopped only if it still waits for others.
    LockTimeout,
}

impl DdlStop {
    /// The error for the client if that stops its change.
    pub fn error(self) -> SqlError {
        match self {
            DdlStop::Canceled => errors::canceled(),
            DdlStop::StatementTimeout => errors::statement_timeout(),
            DdlStop::LockTimeout => errors::lock_timeout(),
        }
    }
}

/// Tables that a catalog is about to change: a block's first write to them waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quiesce {
    /// Version of that catalog.
    pub version: u64,
    /// The tables.
    pub tables: Vec<TableId>,
    /// When waits end at the latest.
    pub until: Time,
    /// A session waits for a lock of the tables, and `version` is the number of the request.
    pub lock: Option<LockAsk>,
}

/// A session wants to lock tables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LockAsk {
    /// Backend number of the session.
    pub session: i32,
    /// The mode.
    pub mode: catalog::TableLock,
    /// The tables.
    pub tables: Vec<TableId>,
}

/// A message of a session to the shard that orders schema changes.
#[derive(Debug)]
pub enum DdlCall {
    /// A change of the schema, with the database of its names and who asks.
    Ask(ConnId, String, Box<plan::DdlPlan>, catalog::Asker),
    /// The session of this number has left changes of a block in this database behind, which are
    /// to be undone.
    Left(String, i32),
    /// A cancel of the change that this session has requested.
    Stop(ConnId, DdlStop),
}
