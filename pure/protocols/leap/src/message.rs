//! The messages between shards. `docs/protocols/leap.md` has the table of messages.

use crate::home::Want;
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::{Key, Position, ShardId, Ts, TxnId};
use journal::{Held, Otag};
use serde::{Deserialize, Serialize};
use store::Formula;
use txn::{AbortReason, Head, LockMode, Op, OpError, OpResult, Outcome, Priority, TxnOptions};

/// One message from a shard to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The fields that every message has.
    pub head: Head,
    /// The kind of the message, with its fields.
    pub body: Body,
}

/// The kinds of messages: first those that move rows, then those of transactions whose reads stay
/// where the rows are, then those of recovery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Body {
    /// Requester to home: asks for a row. Repeated until answered.
    OwnerRequest(Box<OwnerRequest>),
    /// Home to owner: asks it to give a row away. Repeated until the requester informs.
    TransferRequest(Box<TransferRequest>),
    /// Owner to requester: the versions of the row.
    Response(Box<Response>),
    /// Owner or home to requester: the row does not come.
    Refused(Box<Refused>),
    /// Home to requester: it deals with the request of this number; this owner was asked, if any.
    Working(u64, Option<ShardId>),
    /// Owner to home: the repeated request waits for a lock.
    Waiting(Otag),
    /// Owner to home: these rows have left, and the owner cannot reach their requesters.
    Stranded(Vec<Otag>),
    /// Requester to home: the fates of grants. Owner to home: a grant was refused, and the owner
    /// cannot reach the requester.
    Inform(Inform),
    /// Home to requester, in answer to repeated informs: the home has dealt with these grants.
    Settled(Vec<Otag>),
    /// Home to the former owner: forget these backups.
    ReleaseAck(ReleaseAck),
    /// Former owner to home: asks which of these backups may be forgotten.
    Unacked(Vec<(Key, Otag)>),
    /// Home to owner: the index of these rows was dropped, so the rows have no owner any more.
    Forget(Vec<(Key, Otag)>),
    /// Home to reader: a copy of the row, in answer to a shared request.
    Share(Box<Share>),
    /// Home to reader: asks it to give the copy up. Repeated until answered.
    Recall(Box<Recall>),
    /// Reader to home: the copy is gone, or the writer must be rolled back.
    Recalled(Box<Recalled>),
    /// Home to requester: the owner has restarted. A requester without the row refuses the grant.
    Cancel(Key, Otag),

    /// Coordinator: a read or scan, executed where the rows are as often as the message comes.
    Read(Box<ReadRequest>),
    /// The answer to a read.
    Reply(Box<ReadReply>),
    /// The repeated read, fetch or errand of this number is being dealt with.
    Reading(u64),
    /// Home of a scan to an owner: asks for rows of the scan.
    Fetch(Box<Fetch>),
    /// The answer to a fetch.
    Fetched(Box<Fetched>),
    /// Coordinator to an owner: run and commit this transaction. Repeated until answered.
    Entrust(Box<Entrust>),
    /// Owner to coordinator: the result of an errand, always the same.
    Performed(Box<Performed>),
    /// Coordinator to an owner: how a transaction has ended whose formulas the owner holds.
    Resolve(Resolve),
    /// Owner to coordinator: the formulas of this transaction are applied durably.
    Applied(TxnId),
    /// Owner to coordinator: asks how a transaction has ended whose formulas the owner holds.
    Undecided(TxnId),
    /// Coordinator to owner: the transaction has not ended, and will commit above this timestamp.
    StillOpen(TxnId, Ts),
    /// Coordinator about to commit: asks whether the receiver still holds the transaction's locks.
    Confirm(Confirm),
    /// Participant to coordinator: the answer to `Confirm`.
    Confirmed {
        /// Which transaction.
        txn: TxnId,
        /// Whether the sender still holds its locks.
        holds: bool,
    },
    /// Coordinator: the transaction has ended, so the receiver frees its locks.
    Release(TxnId),
    /// Participant: asks whether the transaction still runs.
    Inquire(TxnId),
    /// Coordinator: the transaction still runs.
    Running(TxnId),

    /// Restarted home: asks which of its rows the receiver has.
    Ask,
    /// What the sender owns or backs up of the receiver's rows.
    Claims(Box<Claims>),
    /// Home to a restarted shard: which of its claims stand.
    Verdicts(Box<Verdicts>),
}

/// See [`Body::OwnerRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OwnerRequest {
    /// Counts the requests of the sender in this life.
    pub seq: u64,
    /// Requests of the sender to this home with smaller numbers are over.
    pub floor: u64,
    /// Which row.
    pub key: Key,
    /// Priority of the transaction that asks.
    pub priority: Priority,
    /// The request waits whatever its age (rule R4). If the message is repeated, what the
    /// last one says counts.
    pub alone: bool,
    /// The transaction only reads the row: a copy is enough.
    pub shared: bool,
}

/// See [`Body::Share`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    /// Names the copy; grows with every copy and grant of the home.
    pub tag: Otag,
    /// Life of the reader that asked.
    pub to_incarnation: u32,
    /// Number of the request.
    pub seq: u64,
    /// Which row.
    pub key: Key,
    /// Newest version. A tombstone: the row is absent, and was removed at or below the timestamp.
    pub version: MovedVersion,
    /// Position of the version's record, for a reader on the same node.
    pub position: Position,
}

/// See [`Body::Recall`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recall {
    /// Which row.
    pub key: Key,
    /// Tag of the copy.
    pub tag: Otag,
    /// Priority of the transaction that is to write the row.
    pub priority: Priority,
}

/// See [`Body::Recalled`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recalled {
    /// Which row.
    pub key: Key,
    /// Tag of the copy.
    pub tag: Otag,
    /// The transaction for which the copy was called back.
    pub writer: TxnId,
    /// Why `writer` must be rolled back; `None`: the copy is gone.
    pub refused: Option<AbortReason>,
}

/// See [`Body::TransferRequest`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransferRequest {
    /// The grant.
    pub otag: Otag,
    /// Older grants of this home are over.
    pub floor: Otag,
    /// Life of the owner that the message is for; 0: any.
    pub expected: u32,
    /// Which row.
    pub key: Key,
    /// New owner. If that is the present owner, the row stays, under the new otag.
    pub to: ShardId,
    /// Life of the requester that asked.
    pub to_incarnation: u32,
    /// Number of the request.
    pub seq: u64,
    /// Priority of the transaction that asks.
    pub priority: Priority,
    /// See [`OwnerRequest::alone`].
    pub alone: bool,
}

impl TransferRequest {
    pub(crate) fn want(&self) -> Want {
        Want::new(self.to, self.to_incarnation, self.seq)
    }
}

/// A version that travels between shards; without `row` it is a tombstone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MovedVersion {
    /// Commit timestamp of the version.
    pub commit_ts: Ts,
    /// Encoded row; `None`: the version is a tombstone.
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
    /// Number of the request.
    pub seq: u64,
    /// Which row.
    pub key: Key,
    /// Versions from the newest on, as far back as readers may need them.
    pub versions: Vec<MovedVersion>,
    /// The new owner refuses snapshots below this: `versions` does not reach so far back.
    pub since: Ts,
    /// Position of the newest version's record, for a requester on the same node.
    pub position: Position,
}

/// See [`Body::Refused`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// The home.
    pub home: ShardId,
    /// The grant, which is used up; `None`: the home had not granted yet.
    pub otag: Option<Otag>,
    /// Life of the requester that asked.
    pub to_incarnation: u32,
    /// Number of the request.
    pub seq: u64,
    /// Why the transaction must be rolled back; `None`: the requester asks again.
    pub reason: Option<AbortReason>,
}

/// The fate of a grant, as the requester (or the owner that refused) tells the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fate {
    /// The row has arrived.
    Acquired,
    /// The row has arrived, and the record of its arrival is durable.
    Durable,
    /// The requester will never accept the grant.
    Refused,
}

/// See [`Body::Inform`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inform {
    /// Grants of the receiver, with their fates.
    pub fates: Vec<(Otag, Fate)>,
    /// The message is repeated: the home answers which of these grants it has dealt with.
    pub again: bool,
}

/// See [`Body::ReleaseAck`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseAck {
    /// The rows, with the grants under which they left.
    pub keys: Vec<(Key, Otag)>,
    /// Older grants of this home are over.
    pub floor: Otag,
}

/// See [`Body::Read`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadRequest {
    /// The transaction; its shard is the coordinator and gets the answer.
    pub txn: TxnId,
    /// Priority and limits of the transaction.
    pub options: TxnOptions,
    /// Number of the read at the coordinator.
    pub number: u64,
    /// Catalog version for which the operation was planned.
    pub planned: u64,
    /// The read is the only operation of its transaction so far: it waits for a lock at any age.
    pub alone: bool,
    /// Number of one-way delays between nodes before this message.
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
    /// Result of the read; `None`: the row is not at the sender, so its home is asked again.
    pub result: Option<Result<OpResult, OpError>>,
    /// Clock of the sender at the answer: a later write over what was read commits above this.
    pub at: Ts,
    /// Shards that hold locks of the transaction because of the read, with their incarnations.
    pub visited: Vec<(ShardId, u32)>,
    /// Position for which an answer with this result waits, for a receiver on the same node.
    pub wait: Position,
    /// Number of one-way delays between nodes before this message.
    pub delays: u32,
}

/// See [`Body::Entrust`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entrust {
    /// The transaction; its shard is the coordinator and gets the answer.
    pub txn: TxnId,
    /// Priority and limits of the transaction.
    pub options: TxnOptions,
    /// Number of the errand at the coordinator. An errand runs at most once.
    pub number: u64,
    /// Errands of the sender to this shard with smaller numbers are over.
    pub floor: u64,
    /// Life of the receiver that the message is for.
    pub expected: u32,
    /// Catalog version for which the operation was planned.
    pub planned: u64,
    /// Whether the owner holds the formula until the transaction ends, instead of committing it.
    pub holds: bool,
    /// The operation, on one row.
    pub op: Op,
}

/// See [`Body::Performed`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Performed {
    /// Number of the errand.
    pub number: u64,
    /// Result of the errand.
    pub performance: Performance,
}

/// The result of an errand.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Performance {
    /// The errand is over.
    Ended {
        /// Result of the operation, or its error.
        result: Result<OpResult, OpError>,
        /// Outcome of the transaction; `None`: the operation failed and changed nothing.
        outcome: Option<Outcome>,
        /// Position for which an answer waits, for a coordinator on the same node.
        wait: Position,
        /// No other shard changes the row: the coordinator should take it.
        take: bool,
    },
    /// The formula is held until the transaction ends.
    Pending {
        /// Result of the operation.
        result: OpResult,
        /// Position for which an answer waits, for a coordinator on the same node.
        wait: Position,
        /// No other shard changes the row: the coordinator should take it.
        take: bool,
    },
    /// The row is not at the sender. The errand was not run and will not be run there.
    NotHere {
        /// Shard that may have the row; `None`: the coordinator requests the row instead.
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
    /// Commit timestamp of its formulas; `None`: the transaction was rolled back.
    pub commit_ts: Option<Ts>,
}

/// See [`Body::Fetch`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetch {
    /// The transaction that scans.
    pub txn: TxnId,
    /// Priority and limits of the transaction.
    pub options: TxnOptions,
    /// Number of the fetch at the sender.
    pub number: u64,
    /// Snapshot of the scan; `None`: newest versions are wanted.
    pub at: Option<Ts>,
    /// Whether a row with a version newer than `at` is refused.
    pub guarded: bool,
    /// Mode in which the rows are locked until the transaction ends; `None`: without locks.
    pub lock: Option<LockMode>,
    /// Keys of the rows, ascending.
    pub keys: Vec<Key>,
}

/// A row as a scan needs it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FetchedRow {
    /// Encoded row at the snapshot.
    pub at: Option<Box<[u8]>>,
    /// Encoded newest version of the row.
    pub newest: Option<Box<[u8]>>,
    /// Commit timestamp of the version that the scan reads; zero: absent, or an own write.
    pub version: Ts,
}

/// See [`Body::Fetched`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetched {
    /// Number of the fetch.
    pub number: u64,
    /// Rows in the order of the fetch, or why the transaction must be rolled back.
    pub rows: Result<Vec<(Key, FetchedRow)>, AbortReason>,
    /// Rows that are not at the sender, or not any more.
    pub moved: Vec<Key>,
    /// Position for which an answer with these rows waits, for a receiver on the same node.
    pub wait: Position,
}

/// See [`Body::Confirm`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Confirm {
    /// Which transaction.
    pub txn: TxnId,
    /// Life of the receiver that gave the locks.
    pub expected: u32,
}

/// See [`Body::Claims`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Number of the round. Parts of one round have the same number; later rounds a larger one.
    pub round: u64,
    /// Number of this part, from 0. Parts are in the order of their keys.
    pub part: u32,
    /// Number of parts of the round, in its last part; 0: more parts follow.
    pub parts: u32,
    /// Whether the sender has restarted and waits for verdicts.
    pub restarted: bool,
    /// Life of the home that the message is for; 0: any.
    pub expected: u32,
    /// Rows of the home that the sender owns or backs up.
    pub held: Vec<Held>,
    /// In the last part of an answer to `Ask`: formulas that the sender has committed and that the
    /// receiver has not acknowledged as applied.
    pub owed: Vec<Owed>,
}

/// A committed formula for the owner of its row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Owed {
    /// Transaction that has committed the formula.
    pub txn: TxnId,
    /// Commit timestamp of the formula.
    pub commit_ts: Ts,
    /// Key of the row.
    pub key: Key,
    /// The formula itself.
    pub formula: Formula,
}

/// See [`Body::Verdicts`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdicts {
    /// Life of the receiver that has claimed.
    pub to_incarnation: u32,
    /// Round of the claims.
    pub round: u64,
    /// Number of the part within the round.
    pub part: u32,
    /// Whether this is the last part of the round.
    pub last: bool,
    /// Claims that do not stand.
    pub drop: Vec<(Key, Otag)>,
    /// Claims that are not decided yet; all others stand.
    pub later: Vec<(Key, Otag)>,
    /// Older grants of this home are over.
    pub floor: Otag,
}
