//! The messages between shards. `docs/protocols/two_phase.md` has the table of messages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Position, ShardId, Ts, TxnId};
use journal::Writes;
use serde::{Deserialize, Serialize};
use txn::{AbortReason, Contact, Head, Op, OpError, OpResult, Snapshot, TxnOptions};

/// One message from a shard to another, about one transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The fields that every message has.
    pub head: Head,
    /// The transaction. Its shard is the coordinator.
    pub txn: TxnId,
    /// Attempt of the client's transaction, from 1.
    pub attempt: u32,
    /// The kind of the message, with its fields.
    pub body: Body,
}

/// The request that a reply answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Reference {
    /// A snapshot read. Reads have no order and leave nothing at the participant.
    Read(u64),
    /// A numbered request, from 1 for each participant.
    Seq(u64),
}

/// The kinds of messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Body {
    /// Coordinator: a snapshot read. Executed as often as the message comes.
    Read(Box<ReadRequest>),
    /// Coordinator: a numbered request, begun in the order of `seq` and executed once.
    Request(Box<Request>),
    /// Participant: the answer to `Read` or `Request`.
    Reply(Box<Reply>),
    /// Participant: the repeated request is still being dealt with.
    Working(Reference),
    /// Coordinator: this request is not the only one of its transaction any more.
    Expose,
    /// Coordinator: the operation on which the commit rides has been cancelled. Whoever leads the
    /// commit gives it up if it still can, and answers the request.
    CallOff,
    /// Coordinator: the outcome. Acknowledged if the participant had promised durably.
    Decide(Decide),
    /// Participant: the commit is durable here, or the part that was called off has ended here.
    Ack,
    /// Participant: asks what has become of the transaction.
    Inquire,
    /// Coordinator: the transaction still runs.
    Running,
    /// Coordinator that has lost what it knew: have you promised?
    Poll,
    /// Answer to `Poll`: the timestamp of the promise. `None`: there is none that counts without a
    /// decision, and never will be.
    Polled(Option<Ts>),
    /// Lead of an entrusted commit to another shard of its node: asks for a promise.
    Gather(Box<Gather>),
    /// Answer to `Gather`: the promise, or why there is none.
    Gathered(Box<Gathered>),
}

impl Body {
    /// Of a request of an operation: its number, and whether its transaction holds no lock.
    pub(crate) fn alone_mut(&mut self) -> Option<(Reference, &mut bool)> {
        if let Body::Read(read) = self {
            return Some((Reference::Read(read.read), &mut read.alone));
        }
        if let Body::Request(request) = self {
            return Some((Reference::Seq(request.seq), &mut request.alone));
        }
        None
    }
}

/// See [`Body::Read`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// Number of the read in its transaction.
    pub read: u64,
    /// Catalog version for which the operation was planned.
    pub planned: u64,
    /// See [`txn::TxnOptions::in_doubt_timeout_us`].
    pub in_doubt_timeout_us: u64,
    /// See [`txn::TxnOptions::priority_ts`].
    pub priority_ts: Ts,
    /// Whether the transaction holds no lock, and has asked for none.
    pub alone: bool,
    /// A get or scan of a snapshot.
    pub op: Op,
}

/// See [`Body::Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Number of the visit: counts the coordinator's transactions that visited this participant.
    pub visit: u64,
    /// Visits with smaller numbers are over, so their late messages are ignored.
    pub visit_floor: u64,
    /// Number of the request in its visit, from 1. Requests begin in this order.
    pub seq: u64,
    /// Number of the last reply that has arrived; replies up to it need not be kept.
    pub acked: u64,
    /// Incarnation of the participant that answered before; 0: none has answered.
    pub expected: u32,
    /// Priority and limits of the transaction.
    pub options: TxnOptions,
    /// Oldest catalog version of the plans behind `writes` and `op`.
    pub planned: u64,
    /// Whether the transaction holds no lock and has no other request.
    pub alone: bool,
    /// Blind writes that are done before `op`.
    pub writes: Writes,
    /// Operation, if there is one.
    pub op: Option<Op>,
    /// How `op` reads without locks; `None`: as it says itself.
    pub stamp: Option<Stamp>,
    /// End of the transaction, if `writes` and `op` succeed.
    pub finish: Finish,
}

/// How an operation of a serializable transaction reads without locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The snapshot that the transaction reads as long as it can.
    pub snapshot: Snapshot,
    /// The transaction writes, or has read something newer: the newest versions serve it best.
    pub newest: bool,
}

/// What follows the operation of a request. Nothing follows an operation that fails, finds its row
/// ([`OpResult::Exists`]) or has more rows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Finish {
    /// The transaction goes on with more requests.
    #[default]
    No,
    /// Prepare to commit.
    Prepare(Prepare),
    /// Commit: only this shard and others of its node have written.
    Commit(Box<Trust>),
}

/// What a participant is to promise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// The shards that write; in a commit that is answered early, the coordinator's shard too.
    pub participants: Vec<ShardId>,
    /// Promises below this timestamp commit together, without a decision: all of `participants`
    /// promise durably. Zero: only the coordinator's decision commits.
    pub before: Ts,
    /// The transaction writes nothing: what it has read needs no guard.
    pub only_reads: bool,
    /// No operation of the transaction may still be waiting for a lock.
    pub settled: bool,
}

impl Prepare {
    /// For a commit that only a decision makes.
    pub(crate) fn to_be_decided(participants: Vec<ShardId>) -> Prepare {
        Prepare {
            participants,
            before: Ts::ZERO,
            only_reads: false,
            settled: true,
        }
    }

    /// Whether the promises may make the commit without a decision.
    pub(crate) fn is_early(&self) -> bool {
        self.before > Ts::ZERO
    }
}

/// What a lead must know to commit for the coordinator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trust {
    /// The lead commits below this timestamp or hands the commit back: if the coordinator's node
    /// dies, what the transaction has read there is locked no longer.
    pub before: Ts,
    /// The other shards of the lead's node that take part.
    pub shares: Vec<Share>,
}

/// A shard that takes part in a commit which another shard of its node leads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// The shard.
    pub shard: ShardId,
    /// Number of the coordinator's visit there.
    pub visit: u64,
    /// Number of requests of the visit so far. All were answered.
    pub acked: u64,
    /// Oldest catalog version of the plans behind `writes`.
    pub planned: u64,
    /// Blind writes that the shard does not have yet.
    pub writes: Writes,
}

/// See [`Body::Gather`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// See [`Share::visit`].
    pub visit: u64,
    /// See [`Share::acked`].
    pub acked: u64,
    /// Priority and limits of the transaction.
    pub options: TxnOptions,
    /// See [`Share::planned`].
    pub planned: u64,
    /// Blind writes that are done before the promise.
    pub writes: Writes,
    /// What is to be promised.
    pub prepare: Prepare,
}

/// See [`Body::Gathered`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gathered {
    /// The promise, or why the share was rolled back.
    pub vote: Result<Vote, AbortReason>,
    /// Position for which an answer with this promise waits.
    pub wait: Position,
}

/// See [`Body::Reply`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The request that this answers.
    pub to: Reference,
    /// Result of the operation; `Done` without an operation.
    pub result: Result<OpResult, OpError>,
    /// Result of `finish`.
    pub finished: Finished,
    /// Whether the participant has something to commit.
    pub wrote: bool,
    /// Position for which an answer with this result waits, for a coordinator on the same node.
    pub wait: Position,
    /// Contact of a snapshot reader that has come to this shard for the first time.
    pub contact: Option<Contact>,
    /// Timestamp of what was read without locks; zero: nothing was.
    pub read_at: Ts,
}

/// How far the participant has gone: nothing, a promise, or a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Finished {
    /// The transaction goes on.
    Open,
    /// The participant has promised.
    Vote(Vote),
    /// The participant has committed in one phase.
    Committed {
        /// Commit timestamp.
        commit_ts: Ts,
        /// Whether the answer waited for a record.
        forced: bool,
    },
}

/// A participant's promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// Smallest commit timestamp that the participant accepts.
    pub prepare_ts: Ts,
    /// Largest commit timestamp that the participant accepts.
    pub top: Ts,
    /// There is a prepare record, so the participant is told until it acknowledges.
    pub durable: bool,
    /// Writes of a participant that relies on the coordinator's record (same node).
    pub redo: Writes,
    /// Chunks of many writes that the participant has put into the node's journal. The record names
    /// them, in place of `redo`.
    pub chunks: u32,
}

/// See [`Body::Decide`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decide {
    /// Number of the visit that ends; 0: unknown.
    pub visit: u64,
    /// Commit timestamp; `None`: the transaction is rolled back.
    pub commit_ts: Option<Ts>,
    /// Position of the record that decided, for a participant on the same node.
    pub position: Position,
    /// Whether the coordinator asks until the participant acknowledges: the commit, or the end of a
    /// commit that the participant was entrusted with.
    pub wants_ack: bool,
}

impl Decide {
    /// An outcome, which the participant acknowledges if the coordinator `wants_ack`.
    pub(crate) fn new(visit: u64, commit_ts: Option<Ts>, wants_ack: bool) -> Decide {
        Decide {
            visit,
            commit_ts,
            position: Position(0),
            wants_ack,
        }
    }
}
