//! What shards say to one another.

pub use crate::protocols::ProtocolWord;
use crate::register::Word;
use base::{NodeId, RowBatch, ShardId, SqlError, TableId, Ts};
use catalog::{Catalog, Command};
use parse::show::Show;
use plan::Fill;
use serde::{Deserialize, Serialize};
use session::message::{DdlStop, FromTxn, ToTxn, TxnHandle};
use std::sync::Arc;

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
    /// A question of a statement; answered by `ShowRows`.
    ShowWanted {
        /// Chosen by the asking shard.
        id: u64,
        /// What.
        question: Question,
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
    InTheWay(txn::InTheWay),
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

/// What a shard is asked so that a statement of another can answer its client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// Its part of a SHOW.
    Show {
        /// Which.
        what: Show,
        /// Database of the session.
        database: String,
    },
    /// No question, but an order to one session: to cancel its statement, or to end. Answered by
    /// one row if there is such a session.
    Signal {
        /// Its backend number.
        pid: i32,
        /// To end.
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
