//! Operations, outcomes, and the [`Protocol`] trait.

use crate::bound::ClockBound;
use crate::counters::Counters;
use crate::frames::Frames;
use crate::history::Event;
use crate::lock::{AwaitedRow, LockMode, LockTable};
use crate::moving::MovingRows;
use crate::piles::PendingRow;
use crate::program::{DecodeProgram, Program};
use crate::reason::{AbortReason, InTheWay};
use crate::rows::NewRows;
use crate::snapshot::Snapshot;
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{
    Clock, IndexId, Isolation, Key, KeyRange, Placement, Position, RowBatch, ShardId, Slot,
    SqlError, Time, Ts, TxnId,
};
use core::fmt;
use journal::{CheckpointTables, Ownership};
use serde::{Deserialize, Serialize};
use store::{Formula, Horizons, Store, Write};

/// Number of one outstanding operation of a transaction at its coordinator; never used twice.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Default,
)]
pub struct OpId(pub u64);

/// How an operation reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Read {
    /// The versions at a timestamp, without locks. Waits only for prepared transactions that may
    /// commit at or below it, or that may have been answered before the reader began. The
    /// transaction's own writes are seen.
    Snapshot(Snapshot),
    /// The newest versions, locked until the end of the transaction (strict two-phase locking);
    /// scans lock their range as well, in the same mode if it is shared, shared if it is exclusive.
    Lock(LockMode),
    /// READ COMMITTED's locking read: rows that pass at `snapshot` are locked, then the program
    /// runs again on the newest version. Locks no range.
    LockRows {
        /// Snapshot in which candidates are found.
        snapshot: Snapshot,
        /// Mode in which they are locked.
        mode: LockMode,
    },
    /// The newest version of one row, which is locked if it passes and no other transaction is in
    /// the way (NOWAIT, SKIP LOCKED). Waits for no lock. Not for scans.
    TryLock {
        /// Mode in which it is locked.
        mode: LockMode,
        /// Whether a row that cannot be locked is passed over; else it is the error 55P03.
        skips: bool,
    },
}

/// Which slots of a shard a scan visits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Slots {
    /// Every slot whose rows the shard holds.
    All,
    /// One slot.
    One(Slot),
}

/// A scan of one index on one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScanOp {
    /// Index.
    pub index: IndexId,
    /// Slots to visit, in ascending order (descending if `reverse`).
    pub slots: Slots,
    /// Keys inside each slot.
    pub range: KeyRange,
    /// Largest keys first.
    pub reverse: bool,
    /// How rows are read.
    pub read: Read,
    /// Program that gets each row.
    pub program: Program,
    /// Stop after this many emitted rows (`u64::MAX`: all).
    pub row_limit: u64,
    /// A batch is answered when it holds about this many rows. Aggregating programs ignore it.
    pub batch_rows: u32,
    /// Continue strictly after this row.
    pub after: Option<(Slot, Vec<u8>)>,
}

/// One operation on the rows of one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Op {
    /// Reads one row: [`OpResult::Rows`] with 0 or 1 row.
    Get {
        /// Key of the row.
        key: Key,
        /// How it is read.
        read: Read,
        /// Filter and projection.
        program: Program,
    },
    /// Locks one row exclusively, runs the program on its newest version and writes the result:
    /// [`OpResult::Modified`].
    Modify {
        /// Key of the row.
        key: Key,
        /// Filter, new values, RETURNING.
        program: Program,
    },
    /// Writes a row that must be absent: [`OpResult::Done`], or [`OpResult::Exists`] (nothing
    /// written).
    Insert {
        /// Key of the row.
        key: Key,
        /// Encoded columns of the row.
        row: Box<[u8]>,
    },
    /// Writes rows of one index that must be absent: [`OpResult::Done`], or [`OpResult::SomeExist`]
    /// (all others are written). The same as one insert after the other in their order, but other
    /// operations of the shard may come in between.
    InsertMany(NewRows),
    /// Changes a row by a commutative function: [`OpResult::Modified`] (without rows).
    Formula {
        /// Key of the row.
        key: Key,
        /// The function.
        formula: Formula,
    },
    /// Writes a row without reading it (`Put` or `Delete`; the caller has read it under an
    /// exclusive lock, or knows that the key is its own): [`OpResult::Done`], mostly at once,
    /// because the protocol may send it with the next operation to the same shard.
    Write {
        /// Key of the row.
        key: Key,
        /// The write.
        write: Write,
    },
    /// Reads many rows: [`OpResult::Rows`].
    Scan(ScanOp),
    /// Reads nothing and asks for the clock: [`OpResult::Clock`]. Afterwards the shard draws
    /// timestamps above the snapshot, and counts the reader as come (see [`crate::snapshot`]).
    Clock(Snapshot),
    /// Sets a savepoint on the shard, or goes back to one: [`OpResult::Done`]. No other operation
    /// of the transaction may be outstanding.
    Savepoint(Savepoint),
}

/// What happens to the writes of a transaction on one shard. Locks, rows that it owns, what it has
/// read and its intents stay as they are, so that isolation does not depend on savepoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Savepoint {
    /// From now on, writes can be undone back to here.
    Set {
        /// Number of the savepoint in its transaction, from 1; later ones have larger numbers.
        number: u32,
        /// The newest savepoint before it that can still be gone back to; 0: there is none.
        within: u32,
    },
    /// Undoes all writes since the savepoint of this number was set, which remains. A shard that
    /// does not know it had no write at that time, and undoes all.
    RollBackTo(u32),
    /// What was written to `index` by plans of catalog versions from `since` on is right under
    /// version `to` as well: the transaction's own session has changed the table, and has seen to
    /// what it had written before.
    Renew {
        /// The key space.
        index: IndexId,
        /// Version of the table before the session changed it.
        since: u64,
        /// Version of the catalog behind the last change.
        to: u64,
    },
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OpResult {
    /// Rows; `resume` is set when the scan has more.
    Rows {
        /// Projected rows.
        batch: RowBatch,
        /// Pass it as [`ScanOp::after`] to go on.
        resume: Option<(Slot, Vec<u8>)>,
    },
    /// Result of Modify and Formula.
    Modified {
        /// The row exists.
        found: bool,
        /// The row passed the filter and was written.
        written: bool,
        /// The RETURNING row, if any.
        returning: RowBatch,
    },
    /// An insert met an existing row.
    Exists,
    /// An insert of many rows met existing ones (or the same key twice): their numbers among the
    /// rows of the operation, from 0, ascending.
    SomeExist(Vec<u32>),
    /// Clock of the shard: all that was answered there before is at or below it.
    Clock(Ts),
    /// Done, without a result.
    Done,
}

/// A transaction in doubt as SHOW IN DOUBT prints it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// Transaction in doubt.
    pub txn: TxnId,
    /// Node that knows the outcome: the coordinator's, or the one that commits for it.
    pub node: base::NodeId,
    /// `promised`: its writes wait here; `voted`: it has only read here; `entrusted`: `node` was to
    /// commit it; `pending`: its formulas wait here.
    pub state: &'static str,
    /// Microseconds for which the node has not been reached.
    pub age_us: u64,
    /// Number of rows that the transaction wants to write here.
    pub rows: u64,
    /// Number of operations that wait for the transaction.
    pub waiters: u64,
}

/// How a transaction ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// All its writes are visible at `commit_ts` (for a read-only one: nothing was written).
    Committed {
        /// Its place in the order of commits.
        commit_ts: Ts,
    },
    /// None of its writes ever becomes visible.
    Aborted(AbortReason),
    /// It may have committed: the coordinator lost contact at the point of decision.
    Unknown,
}

/// Why an operation, or a statement, has no result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum OpError {
    /// The protocol has rolled the transaction back; it may be run again.
    Aborted(AbortReason),
    /// The statement failed; the transaction still holds its locks and must be aborted by the
    /// caller.
    Sql(SqlError),
    /// The reader must not miss a version above its snapshot. It may read again at this timestamp,
    /// and the shards that it has read will not refuse that, unless something of it has become
    /// visible. The transaction goes on. Sessions never get this error.
    Raise(Ts),
}

impl From<SqlError> for OpError {
    fn from(error: SqlError) -> OpError {
        OpError::Sql(error)
    }
}

/// The answer to [`Protocol::submit`].
#[derive(Clone, PartialEq, Debug)]
pub struct OpReply {
    /// The result, or why there is none.
    pub result: Result<OpResult, OpError>,
    /// Outcome of the transaction, if the commit rode on the operation (`last`). `None`: the caller
    /// still has to commit.
    pub outcome: Option<Outcome>,
    /// Local journal position for which an answer with this result must wait.
    pub wait: Position,
}

/// The answer to an operation, or none yet.
#[derive(Clone, PartialEq, Debug)]
pub enum Submitted {
    /// The answer; no queue was touched.
    Ready(OpReply),
    /// [`Outbox::complete`] will be called with the same [`OpId`].
    Pending,
}

/// Number of attempts after which a transaction is urgent (rule R6). With fewer, many on a hot row
/// are urgent at a time, and age decides again; with more, the last one waits longer.
pub const ATTEMPTS_UNTIL_URGENT: u32 = 5;

/// Options of a transaction, given at its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TxnOptions {
    /// Level that the client has chosen. [`Read`] says how each operation reads; a protocol that
    /// orders transactions without locks looks at the level itself.
    pub isolation: Isolation,
    /// The transaction writes nothing.
    pub read_only: bool,
    /// Timestamp for wait-die. A restarted transaction passes its first one. With [`Ts::MAX`] it is
    /// younger than all others: they wait for it, and it dies of them (rule R21).
    pub priority_ts: Ts,
    /// The transaction has died too often: it goes before all that are not urgent.
    pub urgent: bool,
    /// Counts restarts of the same client transaction, from 1. Part of every message.
    pub attempt: u32,
    /// One exclusive lock per shard instead of row locks (`execution = 'serial'`).
    pub serial: bool,
    /// Lock waits longer than this many microseconds give [`AbortReason::LockTimeout`]; 0: no
    /// limit.
    pub lock_timeout_us: u64,
    /// Microseconds after which a wait for a transaction in doubt gives [`AbortReason::InDoubt`];
    /// 0: no limit. In doubt: only a node that cannot be reached knows the outcome.
    pub in_doubt_timeout_us: u64,
    /// Whether the coordinator measures its messages ([`TxnCost::message_bytes`]) and so encodes
    /// each one once more: for EXPLAIN ANALYZE. Other shards are not told.
    #[serde(skip)]
    pub measured: bool,
    /// Whether a commit of several nodes may be answered when the promises of all are durable,
    /// before the decision is. Other shards are not told.
    #[serde(skip)]
    pub early_answer: bool,
    /// Whether reads lock their rows where the protocol would note and judge them
    /// (`read_policy = 'pessimistic'`). Other shards are told with each read.
    #[serde(skip)]
    pub locks_reads: bool,
}

impl Default for TxnOptions {
    /// A first attempt under SERIALIZABLE without a limit for locks.
    fn default() -> TxnOptions {
        TxnOptions {
            isolation: Isolation::Serializable,
            read_only: false,
            priority_ts: Ts::ZERO,
            urgent: false,
            attempt: 1,
            serial: false,
            lock_timeout_us: 0,
            in_doubt_timeout_us: IN_DOUBT_TIMEOUT_US,
            measured: false,
            early_answer: true,
            locks_reads: false,
        }
    }
}

/// [`TxnOptions::in_doubt_timeout_us`] of work for no client, in microseconds.
pub const IN_DOUBT_TIMEOUT_US: u64 = 1_000_000;

/// Cost of a transaction, known to its coordinator at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TxnCost {
    /// Shards that took part, the coordinator's included if it held rows or promised.
    pub shards: u32,
    /// Nodes that took part.
    pub nodes: u32,
    /// Messages between nodes up to the answer. Those of one step to one shard of another node
    /// share a frame and count once.
    pub messages_on_path: u32,
    /// Messages between nodes after the answer.
    pub messages_off_path: u32,
    /// Messages between shards of one node.
    pub messages_in_node: u32,
    /// Bytes of messages between nodes, without frames; 0 unless [`TxnOptions::measured`].
    pub message_bytes: u64,
    /// One-way delays between nodes until the answer.
    pub delays: u32,
    /// Durable positions awaited on the path to the answer.
    pub forced_writes: u32,
    /// Rows that came from other shards to be owned here.
    pub rows_moved: u32,
    /// Sum of the waits for these rows, in microseconds; simultaneous waits all count.
    pub move_wait_us: u64,
}

impl TxnCost {
    /// Counts the bytes of a message between nodes, if `options` ask for that.
    pub fn measure(&mut self, options: &TxnOptions, message: &(impl Serialize + ?Sized)) {
        if options.measured {
            self.message_bytes += base::codec::to_vec(message).len() as u64;
        }
    }
}

/// One operation of a transaction, and its place in a statement.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Transaction of the operation.
    pub txn: TxnId,
    /// Number of the operation.
    pub id: OpId,
    /// Shard that has the rows, or their home.
    pub to: ShardId,
    /// Catalog version for which the statement was planned.
    pub planned: u64,
    /// The operation itself.
    pub op: Op,
    /// The transaction consists of this one operation (or this is its only outstanding and last
    /// one), and the commit may ride on it: the reply then carries the outcome.
    pub last: bool,
}

/// A message of a protocol on its way to another shard.
#[derive(Clone, Debug)]
pub struct Outgoing<M> {
    /// Receiver; never the sender itself.
    pub to: ShardId,
    /// Content.
    pub message: M,
    /// The message leaves when the local journal is durable to this position.
    pub wait: Position,
}

/// What a step of a protocol asks its shard to do.
#[derive(Debug)]
pub struct Outbox<M> {
    /// Messages in the order of sending.
    pub messages: Vec<Outgoing<M>>,
    /// Answers to operations that were pending.
    pub completions: Vec<(TxnId, OpId, OpReply)>,
    /// Transactions whose shared locks keep a writer waiting here
    /// ([`crate::lock::LockTable::take_in_the_way`]). Their coordinators end idle ones: like COMMIT
    /// if they have only read, else like ROLLBACK.
    pub in_the_way: Vec<InTheWay>,
    /// Frames in which the messages travel.
    pub frames: Frames,
}

impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox {
            messages: Vec::new(),
            completions: Vec::new(),
            in_the_way: Vec::new(),
            frames: Frames::default(),
        }
    }
}

impl<M> Outbox<M> {
    /// Sends `message` once the journal is durable to `wait`.
    pub fn send(&mut self, to: ShardId, message: M, wait: Position) {
        self.messages.push(Outgoing { to, message, wait });
    }
    /// Answers a pending operation, unless it stays pending.
    pub fn settle(&mut self, txn: TxnId, op: OpId, submitted: Submitted) {
        if let Submitted::Ready(reply) = submitted {
            self.complete(txn, op, reply);
        }
    }
    /// Answers a pending operation.
    pub fn complete(&mut self, txn: TxnId, op: OpId, reply: OpReply) {
        self.completions.push((txn, op, reply));
    }
}

/// Bytes of memory for the lock of a row, about: its entries in the lock table and in the list of
/// the transaction.
const LOCK_BYTES: u64 = 192;
/// Bytes of memory for a write besides its row, about: its key, its place in the write set, and the
/// lock of its row.
const WRITE_BYTES: u64 = 192 + LOCK_BYTES;

/// The journal of the node as a shard sees it.
///
/// What a protocol decides depends on the inputs of its step alone. So it reads how far the journal
/// is durable in [`Cx::durable`], and not here, where other threads of the host change that
/// meanwhile. Whether disk or memory are full changes only by an input of the shard. Whether the
/// journal is behind, and whether memory is left, is asked when a slice of work would use it: the
/// answer moves work to a later turn, or refuses it, and decides nothing else.
pub trait JournalPort {
    /// Appends one record (the payload of `journal::Record`). Returns the position up to which the
    /// journal must be durable for the record to survive. Does not wait and never fails: a host
    /// whose disk fails or is full admits no transactions before.
    fn append(&mut self, payload: &[u8]) -> Position;
    /// Keeps the journal from here on until [`JournalPort::free`], for records that count only with
    /// a later one (chunks): a checkpoint of any shard of the node that begins in between needs
    /// them. A host without checkpoints ignores this.
    fn hold(&mut self) -> Position {
        Position(0)
    }
    /// The later record is there, or never will be. `held` came from [`JournalPort::hold`].
    fn free(&mut self, held: Position) {
        let _ = held;
    }
    /// The oldest position that is held on this node: a checkpoint that begins now needs the
    /// journal from there. `None`: no position is held.
    fn oldest_held(&self) -> Option<Position> {
        None
    }
    /// Everything below this position is durable.
    fn durable(&self) -> Position;
    /// Whether many records wait for the disk. Work with many records to append that can wait goes
    /// on at the next [`Protocol::on_durable`]. A host flushes such a backlog unasked.
    fn is_behind(&self) -> bool {
        false
    }
    /// Whether the disk has room only for outcomes of promised transactions: a protocol refuses
    /// every new write with [`AbortReason::DiskFull`].
    fn is_full(&self) -> bool {
        false
    }
    /// Whether there is no memory for more rows: a protocol refuses every write but deletes with
    /// [`AbortReason::MemoryFull`].
    fn is_memory_full(&self) -> bool {
        false
    }
    /// Whether the node has this many bytes of memory left for a transaction or statement until its
    /// end. Granted bytes count until the host measures again.
    fn claim_memory(&mut self, bytes: u64) -> bool {
        let _ = bytes;
        true
    }
    /// A shard of the node is about to answer a transaction that has seen nothing above `ts`.
    fn note_answered(&mut self, ts: Ts) {
        let _ = ts;
    }
    /// The largest timestamp that shards of the node have noted; `None`: on this host shards do not
    /// see each other's.
    fn answered(&self) -> Option<Ts> {
        None
    }
    /// Why a new write is refused at `shard`; `None`: it is not.
    fn refusal(&mut self, shard: ShardId, write: &Write) -> Option<AbortReason> {
        if self.is_full() {
            return Some(AbortReason::DiskFull(shard));
        }
        let no_more_rows = self.is_memory_full() && !matches!(write, Write::Delete);
        let refused = no_more_rows || !self.claim_memory(WRITE_BYTES + write.size_bytes() as u64);
        refused.then_some(AbortReason::MemoryFull(shard))
    }
    /// Whether there is room for `rows` new rows of together `bytes` bytes of keys and rows.
    fn has_room_for(&mut self, rows: u64, bytes: u64) -> bool {
        let refused = self.is_full() || self.is_memory_full();
        !refused && self.claim_memory(rows * WRITE_BYTES + bytes)
    }
    /// Why `rows` more locked rows are refused at `shard`; `None`: they are not.
    fn refusal_of_locks(&mut self, shard: ShardId, rows: u64) -> Option<AbortReason> {
        let refused = !self.claim_memory(rows * LOCK_BYTES);
        refused.then_some(AbortReason::MemoryFull(shard))
    }
}

/// What a protocol may touch during one step.
pub struct Cx<'a, M> {
    /// Wall time of this step.
    pub now: Time,
    /// The shard that runs the step.
    pub shard: ShardId,
    /// Incarnation of the shard's node.
    pub incarnation: u32,
    /// View of the membership; 1 until membership is by consensus.
    pub view: u64,
    /// The shards of the cluster, and the home of each slot: the same for the whole life of the
    /// shard.
    pub placement: &'a Placement,
    /// Position to which the journal was durable when the step began.
    pub durable: Position,
    /// The shard's hybrid logical clock.
    pub clock: &'a mut Clock,
    /// The shard's rows.
    pub store: &'a mut Store,
    /// The node's journal.
    pub journal: &'a mut dyn JournalPort,
    /// Effects of the step.
    pub out: &'a mut Outbox<M>,
    /// No reader reads versions at or below the horizon of their database any more, except the
    /// newest of them ([`Cx::admit_snapshot`]).
    pub horizons: &'a Horizons,
    /// Bound of the shard's clock.
    pub clock_bound: &'a mut ClockBound,
    /// Decodes programs that came from other nodes.
    pub decode: DecodeProgram,
    /// Version of the catalog in use, which every message names: a host holds back messages of
    /// newer versions. So work under one version of a table's schema comes after all work under
    /// older ones, on every row.
    pub catalog: u64,
    /// Catalog version at which the table of an index last changed, `None` if the index is gone;
    /// a transaction planned before that must not commit ([`AbortReason::SchemaChanged`]).
    pub schema_changed: &'a dyn Fn(IndexId) -> Option<u64>,
    /// Indexes of tables that a session has locked against writers, with the version of the catalog
    /// that says so: a write that was planned before must not commit.
    pub locked: &'a [(IndexId, u64)],
    /// The shard's counters.
    pub counters: &'a mut Counters,
    /// The history, if it is recorded.
    pub history: Option<&'a mut Vec<Event>>,
}

/// What a host may know of a protocol's message.
pub trait ProtocolMessage {
    /// Version of the catalog that the sender used.
    fn catalog(&self) -> u64;
    /// The operation in the message, if there is one.
    fn op_mut(&mut self) -> Option<&mut Op>;
}

/// A transaction protocol on one shard. It prints its whole state in canonical order.
///
/// Requests may be lost, repeated, delayed and reordered between nodes; a protocol answers a
/// repeated request again and never acts on it twice. Within a node no message is lost.
pub trait Protocol: fmt::Display {
    /// What its shards say to one another.
    type Message: ProtocolMessage + Clone + fmt::Debug + Serialize + for<'de> Deserialize<'de>;
    /// Progress of a checkpoint in tables that are written in pieces.
    type Cursor: fmt::Debug;

    /// Whether every answered commit lies at or below the clock of the shard that has the row, with
    /// no outcome awaited elsewhere: then the clocks of all shards name a snapshot that misses
    /// nothing. Such a protocol refuses every other snapshot that is neither guarded nor a
    /// statement's only read.
    const CLOCKS_SUFFICE: bool;

    /// Kind of a message, as `protocol.kind`; work is counted and weighed by it.
    fn kind(message: &Self::Message) -> &'static str;

    /// Continues what a former life has left open. Called once, before the first step, with what
    /// recovery has for this shard (nothing at the first start); the protocol takes its own tables
    /// out. Rows of the indexes that `moving` names have one place: those that belong elsewhere and
    /// are not owned here are left over from a time when they moved.
    fn recover(
        &mut self,
        cx: &mut Cx<'_, Self::Message>,
        tables: &mut CheckpointTables,
        moving: &dyn Fn(IndexId) -> bool,
    );

    /// Starts a transaction that this shard coordinates.
    fn begin(&mut self, cx: &mut Cx<'_, Self::Message>, txn: TxnId, options: TxnOptions);

    /// Runs an operation. Several of one transaction may be outstanding.
    fn submit(&mut self, cx: &mut Cx<'_, Self::Message>, submission: Submission) -> Submitted;

    /// Commits. The reply has an `outcome`, and `Done` as its `result`; `wait` is the position
    /// before which no answer may leave (a session with `synchronous_commit = off` ignores it).
    fn commit(&mut self, cx: &mut Cx<'_, Self::Message>, txn: TxnId, id: OpId) -> Submitted;

    /// The operation on which the commit rides is cancelled. Returns whether another shard has the
    /// commit in its hands: it is told to give up, and the operation is answered with the outcome,
    /// in time like any other. False: [`Protocol::abort`] knows the outcome.
    fn call_off(&mut self, cx: &mut Cx<'_, Self::Message>, txn: TxnId) -> bool {
        let _ = (cx, txn);
        false
    }

    /// Rolls back: outstanding operations are completed with an error. The reply has an `outcome`:
    /// unknown, if another shard has the commit in its hands, or the one that the transaction has
    /// already. `wait` is the position before which nobody may be told: until then a crash may
    /// still commit what was promised (rule C18).
    fn abort(&mut self, cx: &mut Cx<'_, Self::Message>, txn: TxnId) -> OpReply;

    /// Calls `f` with each shard on which the transaction, which is coordinated here, may have
    /// written: those that [`Op::Savepoint`] concerns.
    fn each_written(&self, txn: TxnId, f: &mut dyn FnMut(ShardId));

    /// Cost of a transaction so far; `None`: it is not known here (any more). Readable until
    /// [`Protocol::forget`].
    fn cost(&self, txn: TxnId) -> Option<TxnCost>;

    /// The caller needs the outcome of an ended transaction no more. Returns what it has cost, as
    /// [`Protocol::cost`] would.
    fn forget(&mut self, txn: TxnId) -> Option<TxnCost>;

    /// A message has arrived.
    fn on_message(&mut self, cx: &mut Cx<'_, Self::Message>, from: ShardId, message: Self::Message);

    /// The journal has become durable to `durable`.
    fn on_durable(&mut self, cx: &mut Cx<'_, Self::Message>, durable: Position);

    /// Whether work goes on at the next [`Protocol::on_durable`] for which no effect waits: the
    /// host flushes and calls that.
    fn awaits_durable(&self) -> bool;

    /// Time has passed a deadline, or parked work (a long scan) wants to go on. Lock waits that
    /// have lasted too long name the readers in their way ([`Outbox::in_the_way`]).
    fn on_tick(&mut self, cx: &mut Cx<'_, Self::Message>);

    /// A connection to a node is there (again). If its incarnation is new, what its former life
    /// held only in memory is lost.
    fn on_peer(&mut self, cx: &mut Cx<'_, Self::Message>, node: base::NodeId, incarnation: u32);

    /// The last connection to a node is lost: no message to it leaves until [`Protocol::on_peer`]
    /// says that it is back, perhaps in the same life. Messages sent before may or may not arrive.
    fn on_peer_down(&mut self, cx: &mut Cx<'_, Self::Message>, node: base::NodeId);

    /// When [`Protocol::on_tick`] is to be called: at once (`Some(now)` or earlier) if a scan is
    /// parked.
    fn deadline(&self) -> Option<Time>;

    /// Whether a checkpoint may begin: no write set is half installed. Called when one is to begin;
    /// until it has begun, no large write set is decided here.
    fn checkpoint_may_begin(&mut self) -> bool;

    /// Adds what the checkpoint that begins now must keep, in the step that appends its start
    /// record, without what [`Protocol::checkpoint_next`] walks with the cursor (`None`: nothing).
    fn checkpoint_begin(&mut self, tables: &mut CheckpointTables) -> Option<Self::Cursor>;

    /// The next rows that are away, at most `max` (at least 1); `None`: at the end. Pieces follow
    /// each other so that [`Ownership::append`] joins them.
    fn checkpoint_next(&self, _cursor: &mut Self::Cursor, _max: usize) -> Option<Ownership> {
        None
    }

    /// Whether all commits before the start of a checkpoint are in the store. The journal must then
    /// be durable to its end before the checkpoint replaces the one before.
    fn checkpoint_may_end(&self) -> bool;

    /// Whether no write to these indexes is under way here and none of their rows is away: then
    /// they may be handed to another protocol.
    fn is_quiet(&self, indexes: &[IndexId]) -> bool;

    /// From here on the rows of the index, all at home, follow another protocol.
    fn leave(&mut self, _cx: &mut Cx<'_, Self::Message>, _index: IndexId) {}

    /// The catalog does not know the index any more, and its rows are removed.
    fn forget_index(&mut self, _cx: &mut Cx<'_, Self::Message>, _index: IndexId) {}

    /// Transactions in doubt here.
    fn doubts(&self, _now: Time) -> Vec<Doubt> {
        Vec::new()
    }

    /// The rows here with the most formulas that are not applied yet, at most `count` of those that
    /// `wants` names. Without the write sets that are being installed in slices.
    fn pending_rows(&self, _wants: &dyn Fn(&Key) -> bool, _count: usize) -> Vec<PendingRow> {
        Vec::new()
    }

    /// Number of operations that wait here.
    fn waiting_count(&self) -> usize {
        0
    }

    /// Whether another transaction waits for something that this one, which is coordinated here,
    /// holds; also if the protocol cannot tell, because it holds something on other shards.
    fn may_be_awaited(&self, _txn: TxnId) -> bool {
        true
    }

    /// What the protocol tells of rows that move; `None`: rows do not move.
    fn moving(&self) -> Option<&dyn MovingRows> {
        None
    }

    /// Sets the largest number of units in a slice of a large transaction ([`crate::bulk`]).
    fn set_slice(&mut self, units: u64);

    /// Whether no transaction holds, waits for or owes anything here.
    fn is_idle(&self) -> bool;

    /// Number of locked items.
    fn lock_count(&self) -> usize {
        self.locks().map_or(0, LockTable::len)
    }

    /// The locks of this shard; `None`: it has no table of them.
    fn locks(&self) -> Option<&LockTable> {
        None
    }

    /// The rows for which most operations wait here, at most `count` of those that `wants` names.
    /// Costs as much as there are such operations.
    fn awaited_rows(&self, wants: &dyn Fn(&Key) -> bool, count: usize) -> Vec<AwaitedRow> {
        let rows = self
            .locks()
            .map(|locks| locks.awaited_rows(wants, &|_| true));
        AwaitedRow::longest(rows.unwrap_or_default(), count)
    }

    /// Calls `f` with the index and the timestamp of each snapshot that is being read here, for
    /// whatever shard: no horizon of this shard passes it.
    fn each_snapshot(&self, f: &mut dyn FnMut(IndexId, Ts));

    /// Checks the invariants (rule R20); panics with a description of a broken one.
    fn validate(&self, store: &Store);

    /// As [`Protocol::validate`] for what is open (locks, promises, write sets, decisions), unless
    /// there are more than `most` locks and writes. Returns whether it did. For servers.
    fn validate_open(&self, most: usize) -> bool;
}
