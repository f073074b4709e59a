//! What shards say to one another, and what sessions and transactions of one node say to each
//! other.

use crate::input::ConnId;
pub use crate::protocols::ProtocolWord;
use crate::register::Word;
use base::{NodeId, Position, RowBatch, ShardId, SqlError, SqlState, TableId, Time, Ts};
use catalog::{Catalog, Command, Database};
use exec::port::Params;
use parse::session::Isolation;
use plan::{Fill, Plan};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use txn::{AbortReason, Outcome};
use wire::Tag;

/// A message between two shards.
#[derive(Debug)]
pub enum Message {
    /// May cross nodes: has an encoding.
    Wire(WireMessage),
    /// Stays inside a node: may hold shared pointers.
    Local(LocalMessage),
}

/// A message that may cross nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WireMessage {
    /// A transaction protocol's.
    Protocol(ProtocolWord),
    /// A schema change for node 1; answered by `DdlDone` with the same id.
    Ddl {
        /// Chosen by the asking shard; never used again, by its later lives either.
        id: u64,
        /// Database that the names refer to.
        database: String,
        /// Steps.
        work: DdlWork,
    },
    /// Answer to `Ddl`: notices, or why not. Repeated when connections come back, until `DdlHeard`.
    DdlDone {
        /// Of the request.
        id: u64,
        /// Texts of notices.
        result: Result<Vec<String>, SqlError>,
    },
    /// `DdlDone` with this id has arrived.
    DdlHeard {
        /// Of the request.
        id: u64,
    },
    /// The newest catalog, from node 1's first shard to the first of each node, and from each of
    /// those to the others of its node.
    Catalog(Arc<Catalog>),
    /// The sender uses this catalog version (and has it in its journal, if it is a first shard).
    CatalogAck {
        /// Which.
        version: u64,
    },
    /// Asks for the catalog in use.
    CatalogWanted {
        /// Who is to get it: the sender, or the first shard of its node.
        to: ShardId,
    },
    /// Asks for rows of a SHOW; answered by `ShowRows`.
    ShowWanted {
        /// Chosen by the asking shard.
        id: u64,
        /// What.
        what: ShowKind,
        /// Database of the session.
        database: String,
    },
    /// Answer to `ShowWanted`: this shard's part.
    ShowRows {
        /// Of the request.
        id: u64,
        /// The rows.
        rows: RowBatch,
    },
    /// The sender and the transactions it coordinates read nothing below `ts` any more.
    OldestRead {
        /// The bound.
        ts: Ts,
        /// The sender has versions to collect and wants the receiver's bound.
        wanted: bool,
    },
    /// To node 1's first shard, from the first shard of a node: its disk is full, or has room.
    DiskFull(bool),
    /// Of `Ddl` with this id: it is not wanted any more.
    DdlStop {
        /// Of the request.
        id: u64,
        /// Why.
        stop: DdlStop,
    },
    /// To the coordinator of a transaction: a writer at the sender has waited for its shared locks.
    InTheWay(base::TxnId),
    /// To node 1's first shard: the sender is not through with a catalog under which a database is
    /// closed, and has no connection to a node.
    CatalogStuck {
        /// The version of the catalog.
        version: u64,
        /// The node.
        missing: NodeId,
    },
    /// Between the first shards of nodes: what follows a catalog under which something is closed.
    Register(Word),
    /// From node 1's first shard to all: the catalog of this version changes these tables. Answered
    /// by `Quiesced` as soon as no block that has written to them is open at the receiver.
    Quiesce {
        /// The version that the catalog gets.
        version: u64,
        /// The tables; none: the catalog does not come.
        tables: Vec<TableId>,
    },
    /// Answer to `Quiesce`.
    Quiesced {
        /// Of the question.
        version: u64,
    },
}

/// Serialisable form of [`parse::show::Show`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ShowKind {
    Stages,
    Placement,
    Nodes,
    Counters,
    Sessions,
    Activity,
    Databases,
    Tables,
    Sizes,
    Ownership,
    Hottest,
    Memory,
    InDoubt,
    Rows,
    /// No question, but an order to one session: to cancel its statement, or to end. Answered by
    /// one row if there is such a session.
    Signal {
        pid: i32,
        terminate: bool,
    },
}

/// The steps of a schema change (see [`plan::DdlPlan`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DdlWork {
    /// Applied first.
    pub before: Vec<Command>,
    /// Then done.
    pub fill: Option<Fill>,
    /// Applied when it succeeded.
    pub after: Vec<Command>,
    /// Applied when it failed.
    pub undo: Vec<Command>,
}

/// Why a client does not want its schema change any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DdlStop {
    /// It has asked for that.
    Canceled,
    /// `statement_timeout` has passed.
    StatementTimeout,
    /// `lock_timeout` has passed: it is stopped only if it still waits for others.
    LockTimeout,
}

impl DdlStop {
    /// What the client is told if that stops it.
    pub fn error(self) -> SqlError {
        let (state, text) = match self {
            DdlStop::Canceled => (
                SqlState::QUERY_CANCELED,
                "canceling statement due to user request",
            ),
            DdlStop::StatementTimeout => (
                SqlState::QUERY_CANCELED,
                "canceling statement due to statement timeout",
            ),
            DdlStop::LockTimeout => (
                SqlState::LOCK_NOT_AVAILABLE,
                "canceling statement due to lock timeout",
            ),
        };
        SqlError::new(state, text)
    }
}

/// Tables that a catalog is about to change: a block's first write to them waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quiesce {
    /// Version of that catalog.
    pub version: u64,
    /// The tables.
    pub tables: Vec<TableId>,
    /// Nothing waits longer than this.
    pub until: Time,
}

/// What a session wants of the shard that orders schema changes.
#[derive(Debug)]
pub enum DdlCall {
    /// A change of the schema; the database that its names refer to.
    Ask(ConnId, String, plan::DdlPlan),
    /// The one that this session has asked for is not wanted any more.
    Stop(ConnId, DdlStop),
}

/// A message inside a node.
#[derive(Debug)]
pub enum LocalMessage {
    /// From a session to the transaction that another shard coordinates for it.
    ToTxn(TxnHandle, ToTxn),
    /// Back.
    FromTxn(TxnHandle, FromTxn),
    /// Cancel request for a session of the receiving shard.
    Cancel {
        /// Its backend number.
        pid: i32,
        /// Must match.
        secret: i32,
    },
}

/// Names a transaction of a session inside a node: who asks, and which of its transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TxnHandle {
    /// The session's shard.
    pub session: ShardId,
    /// The session's connection.
    pub conn: ConnId,
    /// Counts transactions (attempts, too) of this connection, from 1.
    pub number: u64,
}

/// Number of a statement inside its transaction, from 1, given by the session.
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
    /// The rest of the statement's rows is not wanted: end it as if complete.
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
    /// Which statement of the transaction.
    pub statement: StatementNo,
    /// Set on the first one.
    pub begin: Option<BeginRequest>,
    /// What to run.
    pub plan: Arc<Plan>,
    /// Its parameters.
    pub params: Params,
    /// Commit when it succeeds, roll back when it fails (a statement outside a transaction block).
    pub autocommit: bool,
    /// Catalog of the plan.
    pub catalog: Arc<Catalog>,
    /// Database of the session.
    pub database: Arc<Database>,
    /// Facts about the session.
    pub facts: Arc<SessionFacts>,
    /// Batches that may be sent before the first [`ToTxn::Credit`].
    pub credit: u32,
    /// The statement ends with 57014 at this time; `None`: no limit.
    pub deadline: Option<Time>,
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
#[derive(Clone, Copy, Debug)]
pub struct BeginRequest {
    /// Level given to the client (never weaker than asked for).
    pub isolation: Isolation,
    /// Writes are refused; with SERIALIZABLE it reads a snapshot.
    pub read_only: bool,
    /// Timestamp of the first attempt; `None`: this is it.
    pub priority_ts: Option<Ts>,
    /// Counts attempts, from 1.
    pub attempt: u32,
    /// `now()` of the transaction.
    pub txn_time: Time,
    /// Longest wait for a lock, microseconds; 0: no limit.
    pub lock_timeout_us: u64,
    /// Longest wait for a transaction in doubt, microseconds; 0: no limit.
    pub in_doubt_timeout_us: u64,
    /// The bytes of its messages are to be known: it begins with EXPLAIN ANALYZE.
    pub measured: bool,
    /// Largest commit timestamp that this session has seen: the transaction's timestamps lie above
    /// it, so that a session reads what it wrote whichever shard coordinates.
    pub seen: Ts,
}

/// What statements may ask about their session. Made anew when a setting changes.
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
    /// Defaults of those whose value is not their default: what the startup message said, or the
    /// server.
    pub defaults: Vec<(String, String)>,
    /// Last values drawn from sequences in this session.
    pub currval: Vec<(base::IndexId, i64)>,
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
    /// This many more bytes of COPY FROM data have been taken (said once in a while).
    CopyTaken(StatementNo, usize),
    /// The statement is over.
    Done(StatementNo, Done),
    /// The transaction is over (answer to Commit and Rollback).
    Ended {
        /// How.
        outcome: Outcome,
        /// Answers built from it wait for this position unless `synchronous_commit = off`.
        wait: Position,
    },
}

/// End of a statement.
#[derive(Debug)]
pub struct Done {
    /// Its tag, or why it failed. After `Failure::Aborted` the transaction is gone; after
    /// `Failure::Sql` it is gone if it was autocommit, else it waits for Rollback.
    pub result: Result<Tag, Failure>,
    /// How the transaction ended, if it was autocommit and reached its end.
    pub outcome: Option<Outcome>,
    /// Answers built from it wait for this position (what it read, and its commit) unless
    /// `synchronous_commit = off`.
    pub wait: Position,
    /// Priority timestamp, for a retry.
    pub priority_ts: Ts,
    /// Sequence values drawn.
    pub currval: Vec<(base::IndexId, i64)>,
    /// What `set_config` has set, in order; only if it succeeded.
    pub settings: Vec<SettingChange>,
}

/// A setting that a statement has changed: its lower-case name and its checked value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingChange {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// It ends with the transaction.
    pub local: bool,
}

/// Why a statement failed.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// An error of the statement.
    Sql(SqlError),
    /// The protocol rolled the transaction back; running it again may help.
    Aborted(AbortReason),
}

impl WireMessage {
    /// A short name for traces.
    pub fn name(&self) -> &'static str {
        match self {
            WireMessage::Protocol(word) => word.protocol().name(),
            WireMessage::Ddl { .. } => "ddl",
            WireMessage::DdlDone { .. } => "ddl_done",
            WireMessage::DdlHeard { .. } => "ddl_heard",
            WireMessage::Catalog(_) => "catalog",
            WireMessage::CatalogAck { .. } => "catalog_ack",
            WireMessage::CatalogWanted { .. } => "catalog_wanted",
            WireMessage::CatalogStuck { .. } => "catalog_stuck",
            WireMessage::ShowWanted { .. } => "show_wanted",
            WireMessage::ShowRows { .. } => "show_rows",
            WireMessage::OldestRead { .. } => "oldest_read",
            WireMessage::DiskFull(_) => "disk_full",
            WireMessage::InTheWay(_) => "in_the_way",
            WireMessage::DdlStop { .. } => "ddl_stop",
            WireMessage::Register(_) => "register",
            WireMessage::Quiesce { .. } => "quiesce",
            WireMessage::Quiesced { .. } => "quiesced",
        }
    }
}

/// The node that serialises schema changes.
pub const CATALOG_NODE: NodeId = NodeId(1);
