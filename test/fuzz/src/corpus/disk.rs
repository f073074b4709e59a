//! What an earlier life of the node wrote.

use base::{IndexId, Key, NodeId, Position, ShardId, Slot, Ts, TxnId};
use journal::record::{Record, Writes, frame};
use journal::{
    Accepted, Away, Ballot, CheckpointHeader, CheckpointTables, CheckpointWriter, Held, Holding,
    Manifest, Otag, Owed, Ownership, Prepared, SegmentHeader, Shipment, Shipped, Unfolded, Vote,
};
use std::sync::Arc;
use store::{CheckpointRow, Formula, Write};

const SHARD: ShardId = ShardId(16);

fn txn(counter: u64) -> TxnId {
    TxnId {
        shard: SHARD,
        incarnation: 1,
        counter,
    }
}

fn key(last: u8) -> Key {
    Key::new(IndexId(70_000), Slot(5), vec![0x80, 0, 0, last])
}

fn otag(grant: u64) -> Otag {
    Otag {
        incarnation: 1,
        grant,
    }
}

fn writes() -> Writes {
    vec![
        (key(1), Write::Insert(vec![1, 2, 3])),
        (key(2), Write::Put(vec![0; 100])),
        (key(3), Write::Delete),
    ]
}

/// One record of each kind, in an order that recovery accepts.
fn life() -> Vec<Record> {
    [transactions(), moves()].concat()
}

fn transactions() -> Vec<Record> {
    let other = ShardId(32);
    vec![
        Record::NodeStart {
            incarnation: 1,
            clock_bound: Ts(1 << 30),
            view: 1,
        },
        Record::Catalog {
            version: 2,
            catalog: vec![9; 30],
        },
        Record::Commit {
            txn: txn(1),
            commit_ts: Ts(100),
            writes: vec![(SHARD, writes())],
            chunks: Vec::new(),
        },
        Record::Chunk {
            txn: txn(2),
            shard: SHARD,
            seq: 0,
            writes: writes(),
        },
        Record::Prepare {
            txn: txn(2),
            attempt: 1,
            shard: SHARD,
            prepare_ts: Ts(110),
            coordinator: other,
            participants: vec![SHARD, other],
            writes: writes(),
            chunks: 1,
        },
        Record::Resolved {
            txn: txn(2),
            shard: SHARD,
            commit_ts: Some(Ts(120)),
        },
        Record::CheckpointStart {
            number: 1,
            shard: SHARD,
        },
        Record::Decision {
            txn: txn(3),
            commit_ts: Ts(130),
            participants: vec![other],
            writes: vec![(SHARD, writes())],
            chunks: Vec::new(),
        },
        Record::End { txn: txn(3) },
        Record::ClockBound { ts: Ts(1 << 31) },
    ]
}

/// A row comes and goes, and another one comes that is not there.
fn moves() -> Vec<Record> {
    let other = ShardId(32);
    vec![
        Record::Acquired {
            shard: SHARD,
            key: key(7),
            otag: otag(1),
            from: other,
            at: Ts(140),
            version: Some((Ts(60), vec![6; 20])),
        },
        Record::Released {
            shard: SHARD,
            key: key(7),
            otag: otag(2),
            to: other,
        },
        Record::Acquired {
            shard: SHARD,
            key: key(8),
            otag: otag(3),
            from: other,
            at: Ts(150),
            version: None,
        },
        Record::Shipped {
            shard: SHARD,
            txn: txn(5),
            formulas: vec![shipment()],
        },
        Record::Commit {
            txn: txn(5),
            commit_ts: Ts(160),
            writes: Vec::new(),
            chunks: Vec::new(),
        },
        Record::Delivered { txn: txn(5) },
        Record::Vote(Vote {
            base: 2,
            promised: ballot(9),
            accepted: Some(Accepted {
                ballot: ballot(4),
                catalog: vec![9; 30],
            }),
        }),
    ]
}

fn ballot(round: u64) -> Ballot {
    let node = NodeId(2);
    Ballot { round, node }
}

fn payload(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(&mut out);
    out
}

/// Payloads of records.
pub fn records() -> Vec<Vec<u8>> {
    life().iter().map(payload).collect()
}

/// Segments of one node's journal: whole, and without some records.
pub fn segments() -> Vec<Vec<u8>> {
    let header = SegmentHeader {
        cluster: 7,
        node: NodeId(1),
        start: Position(0),
    };
    let life = life();
    let mut inputs = vec![header.encode().to_vec()];
    for left_out in 0..=life.len() {
        let mut segment = header.encode().to_vec();
        for (number, record) in life.iter().enumerate() {
            if number != left_out {
                frame(&payload(record), &mut segment);
            }
        }
        inputs.push(segment);
    }
    inputs
}

fn ownership() -> Ownership {
    let held = |last, holding| Held {
        key: key(last),
        otag: otag(u64::from(last)),
        holding,
    };
    Ownership {
        held: vec![
            held(7, Holding::Owned),
            held(8, Holding::Released(ShardId(32))),
        ],
        away: vec![Away {
            key: key(9),
            owner: ShardId(32),
            otag: otag(9),
        }],
        open: vec![otag(8), otag(9)],
        next: otag(10),
        shipped: vec![Shipped {
            txn: txn(6),
            commit_ts: Ts(170),
            formulas: vec![shipment()],
        }],
    }
}

fn shipment() -> Shipment {
    Shipment {
        owner: ShardId(32),
        key: key(9),
        formula: Formula(Vec::new()),
    }
}

/// Checkpoint files: empty, and with rows, promises and decisions.
pub fn checkpoints() -> Vec<Vec<u8>> {
    let header = CheckpointHeader {
        cluster: 7,
        shard: SHARD,
        number: 1,
        start: Position(500),
        clock_floor: Ts(90),
    };
    let mut empty = Vec::new();
    CheckpointWriter::new(header, &mut empty).finish(&CheckpointTables::default(), &mut empty);
    let mut full = Vec::new();
    let mut writer = CheckpointWriter::new(header, &mut full);
    for number in 0..20u8 {
        let value = [number; 30];
        let row = CheckpointRow {
            index: IndexId(70_000),
            slot: Slot(5),
            key: &[0x80, 0, 0, number],
            commit_ts: Ts(50 + u64::from(number)),
            value: (number % 5 != 0).then_some(&value[..]),
        };
        writer.row(row, &mut full);
    }
    let prepared = Prepared {
        txn: txn(8),
        attempt: 1,
        shard: SHARD,
        prepare_ts: Ts(80),
        coordinator: ShardId(32),
        participants: vec![SHARD, ShardId(32)],
        writes: writes(),
    };
    let owed = Owed {
        txn: txn(9),
        commit_ts: Ts(85),
        participants: vec![ShardId(32)],
    };
    let unfolded = Unfolded {
        txn: txn(13),
        shard: SHARD,
        commit_ts: Ts(88),
        key: key(1),
        formula: Formula(Vec::new()),
    };
    let slice = Prepared {
        txn: txn(11),
        writes: Vec::new(),
        ..prepared.clone()
    };
    let slices = (0..2).map(|_| (slice.clone(), Arc::new(writes())));
    let tables = CheckpointTables {
        prepared: vec![prepared],
        sliced: slices.collect(),
        owed: vec![owed],
        unfolded: vec![unfolded],
        ownership: ownership(),
    };
    writer.finish(&tables, &mut full);
    vec![empty, full]
}

/// Manifests: of a new node, and of one with a checkpoint.
pub fn manifests() -> Vec<Vec<u8>> {
    let full = Manifest {
        cluster: 7,
        node: NodeId(1),
        number: 3,
        shards: vec![(SHARD, Position(900)), (ShardId(17), Position(950))],
        journal_from: Position(900),
        incarnation: 4,
        clock_bound: Ts(1 << 40),
        catalog_version: 12,
        catalog: vec![1; 64],
    };
    vec![Manifest::default().encode(), full.encode()]
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_all_kinds;

    #[test]
    fn every_kind_of_record_is_there() {
        assert_all_kinds(super::life().into_iter());
    }
}
