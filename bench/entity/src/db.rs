//! What a store must do for entities: the trait that adapters implement, and its outcomes.

use crate::model::EntityType;
use crate::value::{Row, Value};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

/// Why an operation or a transaction has not done what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another transaction was in the way. Nothing of this one has happened; run it again. The
    /// reason: an SQLSTATE, a server's number of the error, or words such as `version`.
    Conflict(Cow<'static, str>),
    /// The answer to a commit was lost: it has happened or not. [`EntityDb::outcome`] may know.
    Unknown(String),
    /// A bug, a limit or a store that cannot do this. Nothing has happened, and running it again
    /// does not help.
    Refused(String),
    /// The connection is gone. Nothing of the transaction has happened.
    Lost(String),
    /// An entity with this id is there. Nothing of the transaction happens.
    Exists(String),
    /// No entity with this id is there. Nothing of the transaction happens.
    Missing(String),
    /// The task itself ends the transaction without effect, with its reason. Not run again.
    Stopped(&'static str),
}

impl core::error::Error for Failure {}

impl Failure {
    /// A conflict for a reason that is known when the program is built.
    pub const fn conflict(reason: &'static str) -> Failure {
        Failure::Conflict(Cow::Borrowed(reason))
    }

    /// Whether the same transaction may succeed when it is run again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Failure::Conflict(_))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Conflict(reason) => write!(f, "conflict: {reason}"),
            Failure::Unknown(reason) => write!(f, "outcome not known: {reason}"),
            Failure::Refused(reason) => write!(f, "refused: {reason}"),
            Failure::Lost(reason) => write!(f, "connection lost: {reason}"),
            Failure::Exists(what) => write!(f, "exists already: {what}"),
            Failure::Missing(what) => write!(f, "does not exist: {what}"),
            Failure::Stopped(reason) => write!(f, "stopped: {reason}"),
        }
    }
}

/// The name of one attempt at a transaction, unique among all clients of a store for ever: what a
/// store keeps with a commit, so that a lost answer can be resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// The client; drawn at random or counted by who opens the clients. Not 0.
    pub client: u64,
    /// Counts the client's attempts from 1, and only upwards.
    pub sequence: u64,
}

impl Stamp {
    /// The stamp as bytes that are ordered as it is.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.client.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// The stamp of such bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Stamp {
        let value = u128::from_be_bytes(bytes);
        Stamp {
            client: (value >> 64) as u64,
            sequence: value as u64,
        }
    }
}

/// Which entities a transaction may touch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope<'a> {
    /// Those of one group: the name of the group ([`EntityType::group_name`]) and its key.
    Group(&'a str, &'a [Value]),
    /// Those of the group of the first entity that the transaction creates: for a group whose key
    /// is generated.
    New,
    /// Those of any group; only where [`Abilities::several_groups`] holds.
    Several,
}

/// A part of the entities of one type, ordered by id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<'a> {
    /// The values of the first ids.
    pub prefix: &'a [Value],
    /// Lowest value of the next id; `None`: from the first.
    pub from: Option<&'a Value>,
    /// Value below which the next id must be; `None`: to the last.
    pub to: Option<&'a Value>,
    /// Most rows that are returned; at least 1.
    pub limit: usize,
}

/// What became of a commit whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It happened.
    Committed,
    /// It did not happen, and never will.
    NotCommitted,
    /// The store cannot tell.
    Unknown,
}

/// What a store can do beyond what all can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Transactions on several groups.
    pub several_groups: bool,
    /// Ranges whose prefix does not name the group.
    pub ranges_over_groups: bool,
    /// What was acknowledged survives a crash of the server.
    pub durable: bool,
    /// [`EntityDb::outcome`] resolves lost answers.
    pub resolves_outcomes: bool,
}

/// One client's connection to a store of entities.
///
/// Between [`EntityDb::begin`] and [`EntityDb::commit`] or [`EntityDb::abort`] operations belong to
/// that transaction, which is serializable: its reads are of one state of its group (or of all its
/// groups), and it takes place at once or not at all. Outside, each read is a transaction of its
/// own, and writes are refused.
///
/// After an operation inside of a transaction has failed, the caller must call `abort`, and nothing
/// else, until it begins the next one.
///
/// Rows and ids have been checked against their type ([`EntityType::check_row`]) and against the
/// scope by [`crate::Client`]; an adapter does not check them again. The types are those of the
/// schema that the connection was opened with.
///
/// Futures are ready at the first poll where the connection waits by itself, and need not be
/// `Send`: a client stays on its thread.
pub trait EntityDb {
    /// What the store can do.
    fn abilities(&self) -> Abilities;

    /// Begins a transaction. May cost nothing until the first operation. Opens the connection
    /// again if it was lost.
    ///
    /// # Errors
    /// `Lost`, `Refused`, `Conflict` when the store is too busy.
    fn begin(
        &mut self,
        scope: Scope<'_>,
        stamp: Stamp,
    ) -> impl Future<Output = Result<(), Failure>>;

    /// The entity of an id.
    ///
    /// # Errors
    /// `Conflict`, `Lost`, `Refused`.
    fn get(
        &mut self,
        kind: &EntityType,
        id: &[Value],
    ) -> impl Future<Output = Result<Option<Row>, Failure>>;

    /// Creates an entity. A generated id is [`Value::Null`] or 0 in `row`, and set on return; its
    /// values begin at 1 and are unique among the entities that agree in all other ids. Values that
    /// no entity got may be lost.
    ///
    /// # Errors
    /// `Exists`, `Conflict`, `Lost`, `Refused`.
    fn create(
        &mut self,
        kind: &EntityType,
        row: &mut [Value],
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Sets all mutable columns of an entity.
    ///
    /// # Errors
    /// `Missing`; `Refused` when an immutable column has another value than the entity; `Conflict`,
    /// `Lost`.
    fn update(
        &mut self,
        kind: &EntityType,
        row: &[Value],
    ) -> impl Future<Output = Result<(), Failure>>;

    /// Deletes an entity.
    ///
    /// # Errors
    /// `Missing`, `Conflict`, `Lost`, `Refused`.
    fn delete(
        &mut self,
        kind: &EntityType,
        id: &[Value],
    ) -> impl Future<Output = Result<(), Failure>>;

    /// The entities with this key in an index (by its position), ordered by id. Of an index outside
    /// of the group the entities of other groups are read as they are at some time during the call.
    ///
    /// # Errors
    /// `Conflict`, `Lost`, `Refused`.
    fn by_index(
        &mut self,
        kind: &EntityType,
        index: usize,
        key: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, Failure>>;

    /// The entities in a range of ids, ordered by id.
    ///
    /// # Errors
    /// `Conflict`, `Lost`; `Refused` when the store needs a prefix that names the group.
    fn range(
        &mut self,
        kind: &EntityType,
        range: Range<'_>,
    ) -> impl Future<Output = Result<Vec<Row>, Failure>>;

    /// Commits the transaction. No transaction is open on return, also after an error.
    ///
    /// # Errors
    /// `Conflict`, `Lost`, `Refused`: nothing has happened. `Unknown`: the answer was lost.
    fn commit(&mut self) -> impl Future<Output = Result<(), Failure>>;

    /// Ends the transaction without effect. Does nothing if none is open.
    ///
    /// # Errors
    /// `Lost`.
    fn abort(&mut self) -> impl Future<Output = Result<(), Failure>>;

    /// Finds out what became of this client's last commit, which was answered by `Unknown`. On
    /// [`Outcome::NotCommitted`] the store has made sure that it will not happen later. Opens the
    /// connection again if it was lost.
    ///
    /// # Errors
    /// `Lost` and `Conflict`: ask again.
    fn outcome(&mut self, stamp: Stamp) -> impl Future<Output = Result<Outcome, Failure>>;

    /// Requests that travelled to the store and back so far; 0 where nobody counts.
    fn round_trips(&self) -> u64 {
        0
    }
}
