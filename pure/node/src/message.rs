//! Messages between shards.

use crate::oldest::Oldest;
pub use crate::parcel::Parcel;
pub use crate::protocols::ProtocolWord;
use crate::register::Word;
use advisory::Together;
use base::{NodeId, RowBatch, ShardId, SqlError, TableId};
use catalog::{Asker, Catalog, Command};
use parse::show::Show;
use plan::Fill;
use serde::{Deserialize, Serialize};
use session::message::{DdlStop, FromTxn, LockAsk, ToTxn, TxnHandle};
use session::pid_of;
use std::sync::Arc;

/// A message between two shards.
#[derive(Debug)]
pub enum Message {
    /// A message that may cross nodes: it has an encoding.
    Wire(WireMessage),
    /// A message within a node: it may hold shared pointers.
    Local(LocalMessage),
}

/// A message that may cross nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WireMessage {
    /// A message of a transaction protocol.
    Protocol(ProtocolWord),
    /// A schema change for node 1, answered by `DdlDone` with the same number.
    Ddl {
        /// Number of the request, chosen by the asking shard; no life of that shard uses it again.
        id: u64,
        /// Database that the names refer to.
        database: String,
        /// Steps of the change.
        work: DdlWork,
    },
    /// Answer to `Ddl`: notices, or an error. Repeated at each new connection until `DdlHeard`.
    DdlDone {
        /// Number of the request.
        id: u64,
        /// Texts of notices, or the error.
        result: Result<Vec<String>, SqlError>,
    },
    /// The sender has got `DdlDone` with this number.
    DdlHeard {
        /// Number of the request.
        id: u64,
    },
    /// The newest catalog, from node 1's first shard to the first shard of each node, and from
    /// there to the others of the node.
    Catalog(Arc<Catalog>),
    /// The sender uses this catalog version (and has it in its journal, if it is a first shard).
    CatalogAck {
        /// Version that the sender uses.
        version: u64,
    },
    /// Asks for the catalog in use.
    CatalogWanted {
        /// Receiver of the catalog: the sender, or the first shard of its node.
        to: ShardId,
    },
    /// A question of a statement; answered by `ShowRows`.
    ShowWanted {
        /// Number of the question, chosen by the asking shard.
        id: u64,
        /// The question itself.
        question: Question,
    },
    /// Answer to `ShowWanted`: this shard's part.
    ShowRows {
        /// Number of the question.
        id: u64,
        /// The rows.
        rows: RowBatch,
    },
    /// The sender and the transactions it coordinates read nothing older any more.
    OldestRead {
        /// What they may read.
        oldest: Oldest,
        /// The sender has versions to collect and wants the receiver's bound.
        wanted: bool,
    },
    /// From the first shard of a node to node 1's: its disk is full (true), or has room (false).
    DiskFull(bool),
    /// Cancels `Ddl` with this number.
    DdlStop {
        /// Number of the request.
        id: u64,
        /// Reason of the cancel.
        stop: DdlStop,
    },
    /// To the coordinator of a transaction: a writer at the sender has waited for its shared locks.
    InTheWay(txn::InTheWay),
    /// To node 1's first shard: the sender is not through with a catalog that closes a database,
    /// and has no connection to a node.
    CatalogStuck {
        /// The version of the catalog.
        version: u64,
        /// Node without a connection.
        missing: NodeId,
    },
    /// Between first shards of nodes: the successor of a catalog under which something is closed.
    Register(Word),
    /// From node 1's first shard to all: the catalog of this version changes these tables.
    /// `Quiesced` answers when no block that has written to them is open at the receiver.
    Quiesce {
        /// Version that the catalog is to get.
        version: u64,
        /// The tables; none: the version does not come.
        tables: Vec<TableId>,
    },
    /// Answer to `Quiesce`.
    Quiesced {
        /// Version of the question.
        version: u64,
    },
    /// Messages of protocols that share a frame.
    Parcel(Parcel),
    /// Advisory locks and notifications.
    Together(Together),
    /// From node 1's first shard, which works over rows: has the receiver heard clients of late? If
    /// so, it answers `ClientsHeard`.
    ClientsAsked,
    /// Answer to `ClientsAsked`.
    ClientsHeard,
    /// From node 1's first shard to all: a session wants to lock tables. `InLocksWay` answers, and
    /// again whenever the answer changes.
    LocksAsked {
        /// Number of the request.
        number: u64,
        /// What is wanted; `None`: the request is over.
        lock: Option<LockAsk>,
    },
    /// Answer to `LocksAsked`.
    InLocksWay {
        /// Number of the request.
        number: u64,
        /// Sessions of the sender that use the tables in a way that the lock excludes.
        sessions: Vec<i32>,
    },
}

/// What a shard asks others, so that a statement can answer its client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Question {
    /// Its part of a SHOW.
    Show {
        /// Kind of the SHOW.
        what: Show,
        /// Database of the session.
        database: String,
    },
    /// An order to one session instead of a question: to cancel its statement, or to end. The
    /// answer has one row if there is such a session.
    Signal {
        /// Backend number of the session.
        pid: i32,
        /// Whether the session is to end.
        terminate: bool,
    },
    /// An order to forget the numbers drawn from a sequence, because it goes on elsewhere. The
    /// answer has one row.
    Forget {
        /// Key space of the sequence's counter.
        sequence: base::IndexId,
    },
}

/// The steps of a schema change (see [`plan::DdlPlan`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DdlWork {
    /// Commands that come first.
    pub before: Vec<Command>,
    /// Work over existing rows that comes next.
    pub fill: Option<Fill>,
    /// Commands after a fill that succeeded.
    pub after: Vec<Command>,
    /// Commands after a failure.
    pub undo: Vec<Command>,
    /// Who asks: the commands that come first need its rights.
    pub asker: Asker,
}

/// A message within a node.
#[derive(Debug)]
pub enum LocalMessage {
    /// From a session to the transaction that another shard coordinates for it.
    ToTxn(TxnHandle, ToTxn),
    /// From that transaction to its session.
    FromTxn(TxnHandle, FromTxn),
    /// Cancel request for a session of the receiving shard.
    Cancel {
        /// Backend number of the session.
        pid: i32,
        /// Secret of the session, which must match.
        secret: i32,
    },
}

/// Whom a message cancels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cancel {
    /// The statement of the session with this backend number: the session itself says so.
    Known(i32),
    /// That of the session with this number: another session orders it, and awaits an answer.
    Ordered(i32),
    /// That of the session with this number, if the secret is its secret.
    Asked {
        /// Backend number of the session.
        pid: i32,
        /// What the client knows.
        secret: i32,
    },
}

impl Message {
    /// Whom the message cancels, if it is a cancel and nothing else.
    pub fn cancel(&self) -> Option<Cancel> {
        match self {
            Message::Local(LocalMessage::ToTxn(handle, ToTxn::Cancel(_))) => {
                Some(Cancel::Known(pid_of(handle.session, handle.conn)))
            }
            Message::Local(LocalMessage::Cancel { pid, secret }) => Some(Cancel::Asked {
                pid: *pid,
                secret: *secret,
            }),
            Message::Wire(WireMessage::ShowWanted {
                id: _,
                question: Question::Signal { pid, terminate: _ },
            }) => Some(Cancel::Ordered(*pid)),
            Message::Local(LocalMessage::ToTxn(..) | LocalMessage::FromTxn(..))
            | Message::Wire(_) => None,
        }
    }
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
            WireMessage::Parcel(_) => "parcel",
            WireMessage::Together(_) => "together",
            WireMessage::ClientsAsked => "clients_asked",
            WireMessage::ClientsHeard => "clients_heard",
            WireMessage::LocksAsked { .. } => "locks_asked",
            WireMessage::InLocksWay { .. } => "in_locks_way",
        }
    }
}
