//! What shards say to one another. `docs/protocols/two_phase.md` has the table of messages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Position, ShardId, Ts, TxnId};
use journal::Writes;
use serde::{Deserialize, Serialize};
use txn::{AbortReason, Contact, Head, Op, OpError, OpResult, TxnOptions};

/// One message about one transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// What every message says.
    pub head: Head,
    /// The transaction; its shard is the coordinator.
    pub txn: TxnId,
    /// Attempt of the client's transaction.
    pub attempt: u32,
    /// What it says.
    pub body: Body,
}

/// Which request a reply belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Reference {
    /// A snapshot read; they have no order and leave nothing behind.
    Read(u64),
    /// A numbered request, from 1 per participant.
    Seq(u64),
}

/// The kinds of messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Body {
    /// Coordinator: read a snapshot. May be executed twice.
    Read(Box<ReadRequest>),
    /// Coordinator: do this, in the order of `seq`. Executed once.
    Request(Box<Request>),
    /// Participant: the answer to either.
    Reply(Box<Reply>),
    /// Participant: a repeated request is still being worked on.
    Working(Reference),
    /// Coordinator: your request is not the only one of the transaction any more.
    Expose,
    /// Coordinator: the outcome. Acknowledged if the participant had promised durably.
    Decide(Decide),
    /// Participant: the commit is durable here; or: what was called off has ended here.
    Ack,
    /// Participant: what has become of it?
    Inquire,
    /// Coordinator: it is still running.
    Running,
    /// Lead of an entrusted commit, to another shard of its node: promise.
    Gather(Box<Gather>),
    /// The answer to it.
    Gathered(Box<Gathered>),
}

/// See [`Body::Read`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// Number of the read in its transaction.
    pub read: u64,
    /// Catalog version of the plan.
    pub planned: u64,
    /// See [`txn::TxnOptions::in_doubt_timeout_us`].
    pub in_doubt_timeout_us: u64,
    /// A get or scan of a snapshot.
    pub op: Op,
}

/// See [`Body::Request`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Counts the transactions of this coordinator that visited this participant.
    pub visit: u64,
    /// All visits below are over: their late messages mean nothing any more.
    pub visit_floor: u64,
    /// Counts the requests of the visit, from 1; they are begun in this order.
    pub seq: u64,
    /// Replies up to here have arrived and need not be kept.
    pub acked: u64,
    /// Incarnation of the participant that answered before; 0 if none did.
    pub expected: u32,
    /// Priority and limits.
    pub options: TxnOptions,
    /// Oldest catalog version of the plans behind `writes` and `op`.
    pub planned: u64,
    /// The transaction holds no lock and has no other request.
    pub alone: bool,
    /// Blind writes that come first.
    pub writes: Writes,
    /// Then this.
    pub op: Option<Op>,
    /// And then this, if all went well.
    pub finish: Finish,
}

/// What follows the operation of a request. An operation that fails, finds its row
/// ([`OpResult::Exists`]) or has more rows prevents it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub enum Finish {
    /// More requests.
    #[default]
    No,
    /// Prepare to commit. The other participants, for the record.
    Prepare(Vec<ShardId>),
    /// Commit: nobody has written but this shard and others of its node.
    Commit(Box<Trust>),
}

/// What a shard must know to commit for the coordinator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trust {
    /// Commit below this timestamp or hand the commit back: what the transaction has read at its
    /// coordinator is locked no longer if that node dies.
    pub before: Ts,
    /// The other shards of this node that take part.
    pub shares: Vec<Share>,
}

/// A shard that takes part in a commit which another shard of its node leads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Which.
    pub shard: ShardId,
    /// The coordinator's visit there.
    pub visit: u64,
    /// Requests of the visit so far, all of them answered.
    pub acked: u64,
    /// Oldest catalog version of the plans behind `writes`.
    pub planned: u64,
    /// Blind writes that it does not have yet.
    pub writes: Writes,
}

/// See [`Body::Gather`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gather {
    /// See [`Share::visit`].
    pub visit: u64,
    /// See [`Share::acked`].
    pub acked: u64,
    /// Priority and limits.
    pub options: TxnOptions,
    /// See [`Share::planned`].
    pub planned: u64,
    /// Blind writes that come first.
    pub writes: Writes,
    /// All that take part.
    pub participants: Vec<ShardId>,
}

/// See [`Body::Gathered`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Gathered {
    /// The promise, or why the share was rolled back.
    pub vote: Result<Vote, AbortReason>,
    /// Position that an answer built from it waits for.
    pub wait: Position,
}

/// See [`Body::Reply`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// To which request.
    pub to: Reference,
    /// What the operation found; `Done` without an operation.
    pub result: Result<OpResult, OpError>,
    /// What has become of `finish`.
    pub finished: Finished,
    /// The participant has something to commit.
    pub wrote: bool,
    /// Between shards of one node: position that an answer built from this waits for.
    pub wait: Position,
    /// A reader of a snapshot has come to this shard for the first time.
    pub contact: Option<Contact>,
}

/// How far the participant went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Finished {
    /// The transaction goes on.
    Open,
    /// Prepared.
    Vote(Vote),
    /// Committed in one phase.
    Committed {
        /// At this timestamp.
        commit_ts: Ts,
        /// The answer waited for a record.
        forced: bool,
    },
}

/// A participant's promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// No smaller commit timestamp is acceptable.
    pub prepare_ts: Ts,
    /// There is a prepare record: the participant must be told until it acknowledges.
    pub durable: bool,
    /// Its writes, if it relies on the coordinator's record (shards of one node).
    pub redo: Writes,
    /// Chunks of them that it has put into the node's journal, instead of `redo` if they are many:
    /// the record names them.
    pub chunks: u32,
}

/// See [`Body::Decide`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Decide {
    /// The visit that ends; 0 if unknown.
    pub visit: u64,
    /// The commit timestamp; `None`: it is rolled back.
    pub commit_ts: Option<Ts>,
    /// Between shards of one node: the record that decided.
    pub position: Position,
    /// The coordinator asks until the participant acknowledges: a commit, or that a commit which
    /// it was entrusted with is over.
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
