//! What shards say to one another. `docs/protocols/leap.md` has the table of messages.

use crate::home::Want;
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, Position, ShardId, Ts, TxnId};
use journal::{Held, Otag};
use serde::{Deserialize, Serialize};
use store::Formula;
use txn::{AbortReason, Head, LockMode, Op, OpError, OpResult, Outcome, Priority, TxnOptions};

/// One message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// What every message says.
    pub head: Head,
    /// What it says.
    pub body: Body,
}

/// The kinds of messages. First those that move rows, then those of transactions whose reads stay
/// where the rows are, then those of recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Body {
    /// Requester to home: I want this row. Repeated until answered.
    OwnerRequest(Box<OwnerRequest>),
    /// Home to owner: give this row away. Repeated until the requester informs.
    TransferRequest(Box<TransferRequest>),
    /// Owner to requester: here it is.
    Response(Box<Response>),
    /// Owner or home to requester: no.
    Refused(Box<Refused>),
    /// Home to requester: your repeated request is being worked on; by this owner, if it was asked.
    Working(u64, Option<ShardId>),
    /// Owner to home: your repeated request waits for a lock.
    Waiting(Otag),
    /// Owner to home: these have left, and their requesters cannot be reached from here.
    Stranded(Vec<Otag>),
    /// Requester to home: what became of grants. Owner to home: refused, and the requester cannot
    /// be told.
    Inform(Inform),
    /// Home to requester, in answer to repeated informs: these are dealt with.
    Settled(Vec<Otag>),
    /// Home to the former owner: forget these backups.
    ReleaseAck(ReleaseAck),
    /// Former owner to home: may I forget these?
    Unacked(Vec<(Key, Otag)>),
    /// Home to owner: the index of these is gone, and nobody owns them any more.
    Forget(Vec<(Key, Otag)>),
    /// Home to reader: a copy of the row.
    Share(Box<Share>),
    /// Home to reader: give the copy up. Repeated until answered.
    Recall(Box<Recall>),
    /// The answer to that.
    Recalled(Box<Recalled>),
    /// Home to requester: the owner has restarted. If you have not got it, refuse it.
    Cancel(Key, Otag),

    /// Coordinator: read or scan this where it is. Executed as often as it comes.
    Read(Box<ReadRequest>),
    /// The answer to a read.
    Reply(Box<ReadReply>),
    /// A repeated read or fetch is being worked on.
    Reading(u64),
    /// Home of a scan to an owner: rows of the scan that are with you.
    Fetch(Box<Fetch>),
    /// The answer to a fetch.
    Fetched(Box<Fetched>),
    /// Coordinator to an owner: run and commit this transaction. Repeated until answered.
    Entrust(Box<Entrust>),
    /// The answer: always the same.
    Performed(Box<Performed>),
    /// Coordinator to an owner: how the transaction of formulas that it holds has ended.
    Resolve(Resolve),
    /// Owner to coordinator: they are applied, durably.
    Applied(TxnId),
    /// Owner to coordinator: how has this transaction ended, whose formulas I hold?
    Undecided(TxnId),
    /// The answer: it has not, and it will commit above this.
    StillOpen(TxnId, Ts),
    /// Coordinator: do you still hold my locks? I am about to commit.
    Confirm(Confirm),
    /// The answer to that.
    Confirmed {
        /// Which transaction.
        txn: TxnId,
        /// Yes.
        holds: bool,
    },
    /// Coordinator: it is over, give up its locks.
    Release(TxnId),
    /// Participant: what has become of it?
    Inquire(TxnId),
    /// Coordinator: it is still running.
    Running(TxnId),

    /// Restarted home: tell me what you have of mine.
    Ask,
    /// What the sender owns or backs up of the receiver's rows.
    Claims(Box<Claims>),
    /// The answer to claims.
    Verdicts(Box<Verdicts>),
}

/// See [`Body::OwnerRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnerRequest {
    /// Counts the requests of the sender in this life.
    pub seq: u64,
    /// All below towards this home are over.
    pub floor: u64,
    /// Which row.
    pub key: Key,
    /// In whose name.
    pub priority: Priority,
    /// To read it only: a copy will do.
    pub shared: bool,
}

/// See [`Body::Share`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Names the copy; grows with every copy and grant of the home.
    pub tag: Otag,
    /// Life of the reader that asked.
    pub to_incarnation: u32,
    /// Its request.
    pub seq: u64,
    /// Which row.
    pub key: Key,
    /// Its newest version. No row: there is none, and whatever was committed on it lies below.
    pub version: MovedVersion,
    /// Between shards of one node: position of the version's record.
    pub position: Position,
}

/// See [`Body::Recall`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recall {
    /// Which row.
    pub key: Key,
    /// Which copy.
    pub tag: Otag,
    /// In whose name.
    pub priority: Priority,
}

/// See [`Body::Recalled`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recalled {
    /// Which row.
    pub key: Key,
    /// Which copy.
    pub tag: Otag,
    /// In whose name it was called back.
    pub writer: TxnId,
    /// Why that transaction must be rolled back; `None`: the copy is gone.
    pub refused: Option<AbortReason>,
}

/// See [`Body::TransferRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferRequest {
    /// The grant.
    pub otag: Otag,
    /// Older grants of this home are over.
    pub floor: Otag,
    /// Life of the owner that is meant; 0: any.
    pub expected: u32,
    /// Which row.
    pub key: Key,
    /// To whom. The owner itself: it stays, under the new tag.
    pub to: ShardId,
    /// Life of the requester that asked.
    pub to_incarnation: u32,
    /// Its request.
    pub seq: u64,
    /// In whose name.
    pub priority: Priority,
}

impl TransferRequest {
    pub(crate) fn want(&self) -> Want {
        Want::new(self.to, self.to_incarnation, self.seq)
    }
}

/// A version on its way; `None` is a tombstone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MovedVersion {
    /// Its commit timestamp.
    pub commit_ts: Ts,
    /// Its row.
    pub row: Option<Box<[u8]>>,
}

/// See [`Body::Response`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Response {
    /// The home that granted.
    pub home: ShardId,
    /// The grant.
    pub otag: Otag,
    /// Older grants of this home are over.
    pub floor: Otag,
    /// Life of the requester that asked.
    pub to_incarnation: u32,
    /// Its request.
    pub seq: u64,
    /// Which row.
    pub key: Key,
    /// Its versions from the newest on, as far as readers may need them.
    pub versions: Vec<MovedVersion>,
    /// Snapshots below this cannot be answered from `versions`.
    pub since: Ts,
    /// Between shards of one node: position of the newest version's record.
    pub position: Position,
}

/// See [`Body::Refused`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The home.
    pub home: ShardId,
    /// The grant that is used up; `None`: the home had not granted yet.
    pub otag: Option<Otag>,
    /// Life of the requester that asked.
    pub to_incarnation: u32,
    /// Its request.
    pub seq: u64,
    /// Why the transaction must be rolled back; `None`: ask again.
    pub reason: Option<AbortReason>,
}

/// What became of a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fate {
    /// The row has arrived.
    Acquired,
    /// And the record of that is durable.
    Durable,
    /// It will never be accepted.
    Refused,
}

/// See [`Body::Inform`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inform {
    /// Grants of the receiver.
    pub fates: Vec<(Otag, Fate)>,
    /// It was said before: the home is to answer what it has dealt with.
    pub again: bool,
}

/// See [`Body::ReleaseAck`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseAck {
    /// The rows, and the grants under which they went.
    pub keys: Vec<(Key, Otag)>,
    /// Older grants of this home are over.
    pub floor: Otag,
}

/// See [`Body::Read`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// The transaction; its shard is the coordinator and gets the answer.
    pub txn: TxnId,
    /// Priority and limits.
    pub options: TxnOptions,
    /// Number of the read at the coordinator.
    pub number: u64,
    /// Catalog version of the plan.
    pub planned: u64,
    /// It is the only operation of its transaction so far: it may wait whatever its age.
    pub alone: bool,
    /// One-way delays between nodes until it was sent on.
    pub delays: u32,
    /// A get of a snapshot, or a scan.
    pub op: Op,
}

/// See [`Body::Reply`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadReply {
    /// The transaction.
    pub txn: TxnId,
    /// Number of the read.
    pub number: u64,
    /// What was found; `None`: the row is not here, ask its home again.
    pub result: Option<Result<OpResult, OpError>>,
    /// Drawn when it was answered: what is written later over what was read lies above it.
    pub at: Ts,
    /// Shards that hold locks of the transaction since, with their incarnation.
    pub visited: Vec<(ShardId, u32)>,
    /// Between shards of one node: position that an answer built from this waits for.
    pub wait: Position,
    /// One-way delays between nodes until it was sent.
    pub delays: u32,
}

/// See [`Body::Entrust`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entrust {
    /// The transaction; its shard is the coordinator and gets the answer.
    pub txn: TxnId,
    /// Priority and limits.
    pub options: TxnOptions,
    /// Number of the errand at the coordinator: it is run at most once.
    pub number: u64,
    /// Errands of the sender to this shard below this are over.
    pub floor: u64,
    /// Life of the receiver that is meant.
    pub expected: u32,
    /// Catalog version of the plan.
    pub planned: u64,
    /// Hold this formula until the transaction ends, instead of committing it.
    pub holds: bool,
    /// The only operation, on one row.
    pub op: Op,
}

/// See [`Body::Performed`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Performed {
    /// Number of the errand.
    pub number: u64,
    /// What has come of it.
    pub performance: Performance,
}

/// What has come of an entrusted transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Performance {
    /// It was run.
    Ended {
        /// What the operation found, or why not.
        result: Result<OpResult, OpError>,
        /// `None`: the operation has failed, nothing was done.
        outcome: Option<Outcome>,
        /// Between shards of one node: position that an answer waits for.
        wait: Position,
        /// Nobody else uses the row: the coordinator should take it.
        take: bool,
    },
    /// The formula is held until the transaction ends.
    Pending {
        /// What the operation found.
        result: OpResult,
        /// Between shards of one node: position that an answer waits for.
        wait: Position,
        /// Nobody else uses the row: the coordinator should take it.
        take: bool,
    },
    /// The row is not here: nothing was done, and nothing will be under this number.
    NotHere {
        /// Who may have the row; `None`: ask for it in the ordinary way.
        owner: Option<ShardId>,
    },
}

impl Performance {
    pub(crate) fn failed(error: OpError, wait: Position) -> Performance {
        Performance::Ended {
            result: Err(error),
            outcome: None,
            wait,
            take: false,
        }
    }
}

/// See [`Body::Resolve`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Resolve {
    /// Which transaction.
    pub txn: TxnId,
    /// Version of its formulas; `None`: it was rolled back.
    pub commit_ts: Option<Ts>,
}

/// See [`Body::Fetch`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetch {
    /// For which transaction.
    pub txn: TxnId,
    /// Priority and limits.
    pub options: TxnOptions,
    /// Number of the fetch at the sender.
    pub number: u64,
    /// Versions at this timestamp are wanted.
    pub at: Option<Ts>,
    /// And no row may have a newer one.
    pub guarded: bool,
    /// The newest versions are wanted, locked until the end.
    pub lock: Option<LockMode>,
    /// Which rows, ascending.
    pub keys: Vec<Key>,
}

/// A row as a scan needs it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FetchedRow {
    /// At the snapshot.
    pub at: Option<Box<[u8]>>,
    /// The newest version.
    pub newest: Option<Box<[u8]>>,
    /// Commit timestamp of the version that the scan reads; zero: absent or the own write.
    pub version: Ts,
}

/// See [`Body::Fetched`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetched {
    /// Number of the fetch.
    pub number: u64,
    /// The rows, or why the transaction must be rolled back.
    pub rows: Result<Vec<(Key, FetchedRow)>, AbortReason>,
    /// These are not here (any more).
    pub moved: Vec<Key>,
    /// Between shards of one node: position that an answer built from this waits for.
    pub wait: Position,
}

/// See [`Body::Confirm`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// Which transaction.
    pub txn: TxnId,
    /// The life of the receiver that gave the locks.
    pub expected: u32,
}

/// See [`Body::Claims`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Parts with the same number belong together. Later ones of a sender have larger numbers.
    pub round: u64,
    /// Which part this is, from 0; in the order of their keys.
    pub part: u32,
    /// How many there are, in the last one; 0: more will come.
    pub parts: u32,
    /// The sender has restarted and waits for the verdicts.
    pub restarted: bool,
    /// The life of the home that is meant; 0: any.
    pub expected: u32,
    /// What it has.
    pub held: Vec<Held>,
    /// In the last part of an answer: formulas that it has committed and the receiver has not said
    /// to have applied.
    pub owed: Vec<Owed>,
}

/// A committed formula for the owner of its row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Owed {
    /// Its transaction.
    pub txn: TxnId,
    /// Its version.
    pub commit_ts: Ts,
    /// The row.
    pub key: Key,
    /// What is added to it.
    pub formula: Formula,
}

/// See [`Body::Verdicts`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdicts {
    /// Life of the receiver that claimed.
    pub to_incarnation: u32,
    /// The round and the part that were claimed.
    pub round: u64,
    /// See `round`.
    pub part: u32,
    /// That was all.
    pub last: bool,
    /// Claims that do not stand.
    pub drop: Vec<(Key, Otag)>,
    /// Claims that are not decided yet; all others stand.
    pub later: Vec<(Key, Otag)>,
    /// Older grants of this home are over.
    pub floor: Otag,
}
