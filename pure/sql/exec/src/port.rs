//! What the executor needs from the node: rows, results, time, memory, settings.

use crate::deferred::Deferred;
use crate::objects::Descriptors;
use alloc::sync::Arc;
use base::{Datum, IndexId, RowBatch, ShardId, Slot, SqlError, Time, Ts};
use bind::PlanCx;
use bind::rel::Signal;
use catalog::{Catalog, Database, Sequence};
use core::cell::RefCell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use expr::Ends;
use parse::Statement;
use parse::show::Show;
use plan::Plan;
use txn::{LockMode, Op, OpError, OpId, Read, TxnCost};

/// What is asked of the counter of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequenceAsk {
    /// Where it is.
    Read,
    /// To go on from `value`, which is `given` or else the next one.
    Set {
        /// The number.
        value: i64,
        /// Whether the next number is another one.
        given: bool,
    },
    /// All shards forget the numbers that they have drawn; `currval` is `value` if it is `given`.
    Forget {
        /// The number.
        value: i64,
        /// Whether it counts as drawn by this session.
        given: bool,
    },
}

/// Frees a limited number of rows that a statement has left behind. Returns whether that was all.
pub type Waste = Box<dyn FnMut(usize) -> bool>;

/// One transaction's view of the node, given to the executor for one statement.
///
/// All methods return at once; `poll_*` methods are polled again when the machine has news for
/// this statement (no waker is used: the machine knows which statement an answer belongs to).
pub trait Port {
    /// Hands an operation to the protocol. `planned` is the catalog version of the plan; with
    /// `last` the transaction is this one operation and the commit may ride on it.
    fn submit(&self, to: ShardId, planned: u64, op: Op, last: bool) -> Started;
    /// The answer to a pending operation.
    fn poll_op(&self, id: OpId) -> Poll<OpAnswer>;
    /// Home of a slot of this database.
    fn home(&self, slot: Slot) -> ShardId;
    /// All shards that hold slots.
    fn shards(&self) -> Arc<[ShardId]>;
    /// The coordinating shard: where copies of replicated tables are read.
    fn here(&self) -> ShardId;
    /// How a plain SELECT reads under the isolation level of the transaction.
    fn read(&self) -> Read;
    /// How FOR UPDATE/SHARE, UPDATE and DELETE read.
    fn read_locking(&self, mode: LockMode) -> Read;
    /// How the node's own work on many rows reads, one batch after the other: each row is locked by
    /// itself, or else as [`Port::read_locking`].
    fn read_batch(&self, mode: LockMode) -> Read {
        self.read_locking(mode)
    }
    /// How many rows such work takes at a time. It locks them up to its end, and its flush holds up
    /// those of clients; each batch costs one flush.
    fn batch_rows(&self) -> u32 {
        1_024
    }
    /// How rows are found that are locked afterwards, each by itself: without locks, whatever the
    /// isolation level.
    fn read_snapshot(&self) -> Read {
        self.read()
    }
    /// How a row is locked at once or not at all; one that is locked by another transaction is
    /// passed over if it `skips`.
    fn try_lock(&self, mode: LockMode, skips: bool) -> Read {
        Read::TryLock { mode, skips }
    }
    /// Whether writes are refused (25006).
    fn read_only(&self) -> bool;
    /// The catalog that the plan was made with.
    fn catalog(&self) -> &Arc<Catalog>;
    /// The database of the session.
    fn database(&self) -> &Arc<Database>;
    /// Start of the transaction (`now()`).
    fn txn_time(&self) -> Time;
    /// Wall time of this step (`clock_timestamp()`).
    fn now(&self) -> Time;
    /// Nanoseconds of a clock that only measures how long something took (EXPLAIN ANALYZE).
    fn stopwatch_ns(&self) -> u64;
    /// A number never given before in this cluster: for hidden row numbers and `gen_random_uuid`.
    fn unique(&self) -> u64;
    /// A pseudo-random number from the shard's generator: for `random()`.
    fn random(&self) -> u64;
    /// Value of a session setting (`current_setting`, SHOW), lower-case name.
    fn setting(&self, name: &str) -> Option<String>;
    /// Sets a session setting when the statement has succeeded; it sees the value at once. `None`
    /// is the default, `local` ends with the transaction. Gives the value as SHOW prints it.
    ///
    /// # Errors
    /// Those of SET.
    fn set_config(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError>;
    /// Facts about the session: user, database, backend number.
    fn session_user(&self) -> String;
    /// Number of the connection (pg_backend_pid).
    fn session_pid(&self) -> i32;
    /// Addresses of the connection, if it has any.
    fn session_ends(&self) -> Option<Ends> {
        None
    }
    /// Sends rows towards the client; pending while the client's credit is used up.
    fn poll_emit(&self, batch: &mut Option<RowBatch>) -> Poll<()>;
    /// Sends COPY TO data (rows, each behind its length as a little-endian u32) towards the client;
    /// pending as [`Port::poll_emit`].
    fn poll_emit_copy(&self, bytes: &mut Option<Vec<u8>>) -> Poll<()>;
    /// The next chunk of COPY FROM data; `None` at its end.
    fn poll_copy_data(&self) -> Poll<Result<Option<Vec<u8>>, SqlError>>;
    /// Next value of a sequence. Not undone by a rollback.
    fn poll_nextval(
        &self,
        sequence: &Sequence,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<i64, OpError>>;
    /// Reads or sets the counter of a sequence, in a transaction of its own: the last number that
    /// was given to a shard, or the first one to be given, and which of both it is.
    fn poll_sequence(
        &self,
        sequence: &Sequence,
        ask: SequenceAsk,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<(i64, bool), OpError>> {
        let _ = (sequence, ask, ticket);
        Poll::Ready(Err(parse::unsupported("the counter of a sequence").into()))
    }
    /// Last value drawn in this session (`currval`); `None` before the first.
    fn currval(&self, sequence: &Sequence) -> Option<i64>;
    /// The sequence from which this session drew last (`lastval`); `None`: it has drawn nothing.
    fn last_drawn(&self) -> Option<IndexId> {
        None
    }
    /// Takes memory that a statement needs no more and that is too much to be freed at once.
    fn discard(&self, mut waste: Waste) {
        while !waste(usize::MAX) {}
    }
    /// Lets other work of the shard run; ready when polled the second time.
    fn poll_yield(&self, yielded: &mut bool) -> Poll<()>;
    /// Ready at `until` (`pg_sleep`); the statement is polled again then. `asked` is false at
    /// first.
    fn poll_sleep(&self, until: Time, asked: &mut bool) -> Poll<()>;
    /// Rows of a `SHOW STAGES | PLACEMENT | NODES | COUNTERS | ...` collected from all shards.
    fn poll_show(&self, what: Show, ticket: &mut Option<u64>) -> Poll<Result<RowBatch, OpError>>;
    /// Binds and plans a statement behind the host's barrier (EXPLAIN).
    ///
    /// # Errors
    /// As `plan::plan`; XX000 if it panics.
    fn plan(&self, statement: &Statement, cx: &PlanCx<'_>) -> Result<Arc<Plan>, SqlError>;
    /// Cancels the statement of a session, or ends the session, wherever in the cluster it is;
    /// whether there is such a session.
    fn poll_signal(
        &self,
        pid: i32,
        signal: Signal,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<bool, OpError>>;
    /// Asks for advisory locks, or gives them back.
    fn poll_advisory(
        &self,
        ask: advisory::Ask,
        ticket: &mut Option<u64>,
    ) -> Poll<Result<advisory::Answer, OpError>> {
        let _ = (ask, ticket);
        Poll::Ready(Err(parse::unsupported("an advisory lock").into()))
    }
    /// The statement ends before the answer to this request.
    fn withdraw_advisory(&self, ticket: u64) {
        let _ = ticket;
    }
    /// What the transaction has put off; `None`: its checks are made as of each statement.
    fn deferred(&self) -> Option<&RefCell<Deferred>> {
        None
    }
    /// Where rows are noted whose key another row has, until the end of the statement at least;
    /// `None`: that is an error at once.
    fn doubles(&self) -> Option<&RefCell<Deferred>> {
        self.deferred()
    }
    /// The descriptors of large objects that the transaction has open; `None`: it ends with this
    /// statement. `changed`: they will be others afterwards, so the statement cannot start again.
    fn descriptors(&self, changed: bool) -> Option<&RefCell<Descriptors>> {
        let _ = changed;
        None
    }
    /// The transaction has put a check off, and its session must have it made before the commit.
    fn note_owed(&self) {}
    /// Tells the client, besides the statement's result.
    fn warn(&self, warning: SqlError) {
        let _ = warning;
    }
    /// Tells listening sessions when the transaction commits.
    ///
    /// # Errors
    /// There are too many of the transaction.
    fn notify(&self, notification: Notification) -> Result<(), SqlError> {
        let _ = notification;
        Err(parse::unsupported("pg_notify"))
    }
    /// Takes `bytes` from the statement's memory budget (negative gives back).
    ///
    /// # Errors
    /// 53200 if the statement, its transaction or the node would exceed its limit.
    fn charge(&self, bytes: i64) -> Result<(), SqlError>;
    /// What the transaction has cost so far (EXPLAIN ANALYZE).
    fn cost(&self) -> TxnCost;
    /// A timestamp that names the snapshot of plain reads, if they use one.
    fn snapshot(&self) -> Option<Ts>;
}

/// The answer to an operation as the executor sees it.
pub type OpAnswer = Result<txn::OpResult, OpError>;

/// An operation on its way.
pub struct OpFuture<'a> {
    port: &'a dyn Port,
    state: Started,
}

/// An operation that was handed to the protocol.
pub enum Started {
    /// Answered at once; `None` once taken.
    Ready(Option<OpAnswer>),
    /// Answered at once, but others have their turn first: much has been read in this one.
    /// Whether they have had it.
    Late(Option<OpAnswer>, bool),
    /// [`Port::poll_op`] will tell.
    Pending(OpId),
}

impl<'a> OpFuture<'a> {
    /// Starts the operation now; await (or drop) it later.
    pub fn start(
        port: &'a dyn Port,
        to: ShardId,
        planned: u64,
        op: Op,
        last: bool,
    ) -> OpFuture<'a> {
        OpFuture {
            port,
            state: port.submit(to, planned, op, last),
        }
    }
}

impl Future for OpFuture<'_> {
    type Output = OpAnswer;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<OpAnswer> {
        let port = self.port;
        match &mut self.state {
            Started::Ready(reply) => {
                Poll::Ready(reply.take().expect("a finished operation is polled once"))
            }
            Started::Late(reply, yielded) => port
                .poll_yield(yielded)
                .map(|()| reply.take().expect("a finished operation is polled once")),
            Started::Pending(id) => port.poll_op(*id),
        }
    }
}

pub use advisory::Notification;

/// Names and values of a row of parameters.
pub type Params = Arc<[Datum]>;
