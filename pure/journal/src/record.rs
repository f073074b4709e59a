//! Journal records and their frames.

use crate::fault::Fault;
use crate::ownership::{Otag, Shipment};
use crate::vote::Vote;
use alloc::vec::Vec;
use base::codec::{self, CodecError};
use base::crc::Crc32c;
use base::{Key, ShardId, Ts, TxnId};
use serde::{Deserialize, Serialize};
use store::Write;

/// Writes of one transaction to one shard; one per key.
pub type Writes = Vec<(Key, Write)>;
/// Borrowed [`Writes`].
pub type WritesRef<'a> = &'a [(Key, Write)];
/// Writes of one transaction per shard.
pub type ShardWrites = Vec<(ShardId, Writes)>;

/// Bytes of the largest payload of one record. Larger transactions put [`Record::Chunk`]s first.
/// Enough for the largest row, and small enough that a wrong length is noticed before much is read.
pub const RECORD_BYTES_MAX: usize = 20 << 20;
/// Bytes of writes (`Write::size_bytes`, plus keys) above which a transaction should use chunks of
/// about this size: one record must not hold up the group commit of all shards.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Bytes before each payload: length and checksum, 4 each.
pub const FRAME_BYTES: usize = 8;

/// One journal record. The position of a record is that of its END: an effect that waits for it
/// may leave once the journal is durable to there.
///
/// Presumed abort: there is no record for an abort without a prepared participant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record {
    /// The node has started. First record of every life.
    NodeStart {
        /// Number of starts of this node so far, from 1.
        incarnation: u32,
        /// A clock of this node passes this bound only after a larger one is durable.
        clock_bound: Ts,
        /// View of the membership.
        view: u64,
    },
    /// A larger bound on the clocks of this node.
    ClockBound {
        /// The bound.
        ts: Ts,
    },
    /// A transaction whose writers all live on this node: decision and writes in one record.
    Commit {
        /// The transaction.
        txn: TxnId,
        /// Commit timestamp of its writes.
        commit_ts: Ts,
        /// Its writes, without those in chunks.
        writes: ShardWrites,
        /// Number of its [`Record::Chunk`]s for each shard that has any; they stand before.
        chunks: Vec<(ShardId, u32)>,
    },
    /// Some writes of a transaction; they count only with the later record that names the chunk.
    Chunk {
        /// The transaction.
        txn: TxnId,
        /// Shard of these keys.
        shard: ShardId,
        /// Number of the chunk in the transaction on this shard, from 0. Another attempt begins at
        /// 0 again, and its chunks replace those of the attempt before.
        seq: u32,
        /// The writes.
        writes: Writes,
    },
    /// A participant promises to commit if the coordinator decides so.
    Prepare {
        /// The transaction.
        txn: TxnId,
        /// Attempt of the transaction.
        attempt: u32,
        /// The participant.
        shard: ShardId,
        /// No commit timestamp below this is acceptable to the participant.
        prepare_ts: Ts,
        /// Shard that knows the outcome.
        coordinator: ShardId,
        /// The shards whose promises commit together: all that write, and the coordinator's. None:
        /// only a decision commits.
        participants: Vec<ShardId>,
        /// Its writes, without those in chunks.
        writes: Writes,
        /// Number of its chunks on this shard.
        chunks: u32,
    },
    /// The coordinator has decided to commit a transaction with prepared participants.
    Decision {
        /// The transaction.
        txn: TxnId,
        /// Commit timestamp of its writes.
        commit_ts: Ts,
        /// Prepared participants, which are told until they acknowledge.
        participants: Vec<ShardId>,
        /// Writes of shards of this node that have no prepare record and commit by this one.
        writes: ShardWrites,
        /// Number of chunks that belong to `writes`, for each shard that has any.
        chunks: Vec<(ShardId, u32)>,
    },
    /// A prepared participant was told the outcome (`None`: abort). Its writes count from here on.
    Resolved {
        /// The transaction.
        txn: TxnId,
        /// The participant.
        shard: ShardId,
        /// Commit timestamp of its writes; `None`: abort.
        commit_ts: Option<Ts>,
    },
    /// Every participant of a [`Record::Decision`] has acknowledged: the coordinator forgets it.
    End {
        /// The transaction.
        txn: TxnId,
    },
    /// A new version of the catalog, whole, because a node that was away may miss versions.
    Catalog {
        /// Its version.
        version: u64,
        /// Encoded `catalog::Catalog`.
        #[serde(with = "store::bytes")]
        catalog: Vec<u8>,
    },
    /// A checkpoint of this shard began. Its file has the end of this record as its start.
    CheckpointStart {
        /// Number of the checkpoint.
        number: u64,
        /// The shard.
        shard: ShardId,
    },
    /// The shard has become the owner of a row, which may belong to another shard by its slot.
    Acquired {
        /// The new owner.
        shard: ShardId,
        /// Key of the row, present or absent.
        key: Key,
        /// The grant that made it the owner.
        otag: Otag,
        /// The owner before.
        from: ShardId,
        /// Timestamp drawn at the arrival: above all versions that earlier owners wrote.
        at: Ts,
        /// Newest version of the row; `None`: the row is absent.
        #[serde(with = "crate::ownership::version")]
        version: Option<(Ts, Vec<u8>)>,
    },
    /// The shard has given a row away, and keeps a backup until the new owner has the row durably.
    Released {
        /// The owner until now.
        shard: ShardId,
        /// Key of the row.
        key: Key,
        /// The grant under which the row leaves.
        otag: Otag,
        /// The new owner.
        to: ShardId,
    },
    /// Formulas of a transaction that are pending on other shards. They count only with the
    /// [`Record::Commit`] behind them, and are owed from there on.
    Shipped {
        /// The shard that commits the transaction.
        shard: ShardId,
        /// The transaction.
        txn: TxnId,
        /// The formulas, each with the owner of its row.
        formulas: Vec<Shipment>,
    },
    /// Every owner has durably applied the formulas of the transaction: the coordinator forgets it.
    Delivered {
        /// The transaction.
        txn: TxnId,
    },
    /// A vote of this node on the catalog that follows a closed one.
    Vote(Vote),
}

/// Number of variants of [`Record`]; their numbers are the first payload byte.
pub(crate) const RECORD_KINDS: u8 = 15;

/// [`Record::Commit`] over borrowed writes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct CommitRef<'a> {
    pub txn: TxnId,
    pub commit_ts: Ts,
    pub writes: &'a [(ShardId, WritesRef<'a>)],
    pub chunks: &'a [(ShardId, u32)],
}

/// [`Record::Chunk`] over borrowed writes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ChunkRef<'a> {
    pub txn: TxnId,
    pub shard: ShardId,
    pub seq: u32,
    pub writes: WritesRef<'a>,
}

/// [`Record::Prepare`] over borrowed writes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PrepareRef<'a> {
    pub txn: TxnId,
    pub attempt: u32,
    pub shard: ShardId,
    pub prepare_ts: Ts,
    pub coordinator: ShardId,
    pub participants: &'a [ShardId],
    pub writes: WritesRef<'a>,
    pub chunks: u32,
}

/// [`Record::Decision`] over borrowed writes.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct DecisionRef<'a> {
    pub txn: TxnId,
    pub commit_ts: Ts,
    pub participants: &'a [ShardId],
    pub writes: &'a [(ShardId, WritesRef<'a>)],
    pub chunks: &'a [(ShardId, u32)],
}

/// Appends the payload of a [`Record::Commit`] to `out`.
pub fn encode_commit(commit: CommitRef<'_>, out: &mut Vec<u8>) {
    let CommitRef {
        txn,
        commit_ts,
        writes,
        chunks,
    } = commit;
    codec::encode(
        &RecordRef::Commit {
            txn,
            commit_ts,
            writes,
            chunks,
        },
        out,
    );
}

/// Appends the payload of a [`Record::Chunk`] to `out`.
pub fn encode_chunk(chunk: ChunkRef<'_>, out: &mut Vec<u8>) {
    let ChunkRef {
        txn,
        shard,
        seq,
        writes,
    } = chunk;
    codec::encode(
        &RecordRef::Chunk {
            txn,
            shard,
            seq,
            writes,
        },
        out,
    );
}

/// Appends the payload of a [`Record::Prepare`] to `out`.
pub fn encode_prepare(prepare: PrepareRef<'_>, out: &mut Vec<u8>) {
    codec::encode(
        &RecordRef::Prepare {
            txn: prepare.txn,
            attempt: prepare.attempt,
            shard: prepare.shard,
            prepare_ts: prepare.prepare_ts,
            coordinator: prepare.coordinator,
            participants: prepare.participants,
            writes: prepare.writes,
            chunks: prepare.chunks,
        },
        out,
    );
}

/// Appends the payload of a [`Record::Decision`] to `out`.
pub fn encode_decision(decision: DecisionRef<'_>, out: &mut Vec<u8>) {
    let DecisionRef {
        txn,
        commit_ts,
        participants,
        writes,
        chunks,
    } = decision;
    codec::encode(
        &RecordRef::Decision {
            txn,
            commit_ts,
            participants,
            writes,
            chunks,
        },
        out,
    );
}

/// The variants of [`Record`] that carry writes, borrowed; same numbers, same fields, same order.
#[derive(Serialize)]
enum RecordRef<'a> {
    #[expect(dead_code, reason = "keeps the variant numbers of Record")]
    NodeStart,
    #[expect(dead_code, reason = "keeps the variant numbers of Record")]
    ClockBound,
    Commit {
        txn: TxnId,
        commit_ts: Ts,
        writes: &'a [(ShardId, WritesRef<'a>)],
        chunks: &'a [(ShardId, u32)],
    },
    Chunk {
        txn: TxnId,
        shard: ShardId,
        seq: u32,
        writes: WritesRef<'a>,
    },
    Prepare {
        txn: TxnId,
        attempt: u32,
        shard: ShardId,
        prepare_ts: Ts,
        coordinator: ShardId,
        participants: &'a [ShardId],
        writes: WritesRef<'a>,
        chunks: u32,
    },
    Decision {
        txn: TxnId,
        commit_ts: Ts,
        participants: &'a [ShardId],
        writes: &'a [(ShardId, WritesRef<'a>)],
        chunks: &'a [(ShardId, u32)],
    },
}

impl Record {
    /// Appends the payload of this record to `out`. The hot path uses [`encode_commit`] and the
    /// like, which need no record of their own.
    pub fn encode(&self, out: &mut Vec<u8>) {
        codec::encode(self, out);
    }

    /// The record that `payload` encodes. Safe on hostile input.
    pub fn decode(payload: &[u8]) -> Result<Record, CodecError> {
        codec::decode(payload)
    }
}

/// Appends `payload` to `out` in its frame: length, checksum over length and payload, payload.
/// Panics if the payload is longer than [`RECORD_BYTES_MAX`] or empty.
pub fn frame(payload: &[u8], out: &mut Vec<u8>) {
    assert!(
        !payload.is_empty() && payload.len() <= RECORD_BYTES_MAX,
        "records are chunked"
    );
    let len = (payload.len() as u32).to_le_bytes();
    out.reserve(FRAME_BYTES + payload.len());
    out.extend_from_slice(&len);
    out.extend_from_slice(&frame_crc(len, payload).to_le_bytes());
    out.extend_from_slice(payload);
}

fn frame_crc(len: [u8; 4], payload: &[u8]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(&len);
    crc.update(payload);
    crc.finish()
}

/// The payload of the frame at the start of `bytes`, if length and checksum are right.
pub fn unframe(bytes: &[u8]) -> Result<&[u8], Fault> {
    let (len_bytes, rest) = bytes.split_first_chunk::<4>().ok_or(Fault::Truncated)?;
    let (crc, rest) = rest.split_first_chunk::<4>().ok_or(Fault::Truncated)?;
    let len = u32::from_le_bytes(*len_bytes) as usize;
    if len == 0 || len > RECORD_BYTES_MAX {
        return Err(Fault::Length(len as u64));
    }
    let payload = rest.get(..len).ok_or(Fault::Truncated)?;
    if frame_crc(*len_bytes, payload) != u32::from_le_bytes(*crc) {
        return Err(Fault::Checksum);
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{IndexId, NodeId, Slot};

    fn txn() -> TxnId {
        TxnId {
            shard: ShardId::new(NodeId(2), 1),
            incarnation: 3,
            counter: 4,
        }
    }

    fn writes() -> Writes {
        let key = |n| Key {
            index: IndexId(7),
            slot: Slot(1000),
            bytes: vec![n; 9],
        };
        vec![
            (key(1), Write::Insert(vec![1, 2, 3])),
            (key(2), Write::Put(vec![0; 300])),
            (key(3), Write::Delete),
        ]
    }

    #[test]
    fn borrowed_encodings_equal_the_records() {
        let (txn, commit_ts, participants) = (txn(), Ts(99), vec![ShardId(1), ShardId(17)]);
        let (here, own) = (ShardId(5), writes());
        let mut out = Vec::new();
        let mut check = |record: Record, write: &dyn Fn(&mut Vec<u8>)| {
            out.clear();
            write(&mut out);
            assert_eq!(Record::decode(&out), Ok(record.clone()));
            let mut owned = Vec::new();
            record.encode(&mut owned);
            assert_eq!(out, owned);
        };
        let by_shard: &[(ShardId, WritesRef<'_>)] = &[(here, &own), (ShardId(6), &own[..1])];
        let owned: ShardWrites = by_shard.iter().map(|(s, w)| (*s, w.to_vec())).collect();
        let chunks = vec![(here, 2)];
        let commit = CommitRef {
            txn,
            commit_ts,
            writes: by_shard,
            chunks: &chunks,
        };
        let record = Record::Commit {
            txn,
            commit_ts,
            writes: owned.clone(),
            chunks: chunks.clone(),
        };
        check(record, &|out| encode_commit(commit, out));
        check(
            Record::Chunk {
                txn,
                shard: here,
                seq: 3,
                writes: own.clone(),
            },
            &|out| {
                encode_chunk(
                    ChunkRef {
                        txn,
                        shard: here,
                        seq: 3,
                        writes: &own,
                    },
                    out,
                );
            },
        );
        let decision = Record::Decision {
            txn,
            commit_ts,
            participants: participants.clone(),
            writes: owned,
            chunks: vec![],
        };
        check(decision, &|out| {
            let participants = &participants;
            let writes = by_shard;
            let chunks = &[];
            encode_decision(
                DecisionRef {
                    txn,
                    commit_ts,
                    participants,
                    writes,
                    chunks,
                },
                out,
            );
        });
        let prepare = Record::Prepare {
            txn,
            attempt: 1,
            shard: here,
            prepare_ts: Ts(5),
            coordinator: txn.shard,
            participants: participants.clone(),
            writes: own.clone(),
            chunks: 0,
        };
        check(prepare, &|out| {
            let prepare = PrepareRef {
                txn,
                attempt: 1,
                shard: here,
                prepare_ts: Ts(5),
                coordinator: txn.shard,
                participants: &participants,
                writes: &own,
                chunks: 0,
            };
            encode_prepare(prepare, out);
        });
    }

    #[test]
    fn kinds_are_counted() {
        let mut payload = Vec::new();
        Record::Vote(Vote::default()).encode(&mut payload);
        assert_eq!(
            payload[0],
            RECORD_KINDS - 1,
            "the last variant has the largest number"
        );
    }

    #[test]
    fn every_flipped_bit_of_a_frame_is_noticed() {
        let mut payload = Vec::new();
        Record::Chunk {
            txn: txn(),
            shard: ShardId(1),
            seq: 0,
            writes: writes(),
        }
        .encode(&mut payload);
        let mut framed = Vec::new();
        frame(&payload, &mut framed);
        assert_eq!(unframe(&framed), Ok(payload.as_slice()));
        for bit in 0..framed.len() * 8 {
            framed[bit / 8] ^= 1 << (bit % 8);
            assert!(unframe(&framed).is_err(), "bit {bit}");
            framed[bit / 8] ^= 1 << (bit % 8);
        }
        for len in 0..framed.len() {
            assert_eq!(unframe(&framed[..len]), Err(Fault::Truncated));
        }
    }
}
