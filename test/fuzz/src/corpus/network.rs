//! What clients and other nodes send.

use base::{
    DatabaseId, Datum, IndexId, Key, NodeId, Position, RowBatch, ShardId, Slot, SqlError, SqlState,
    Ts, TxnId,
};
use catalog::Catalog;
use journal::Ballot;
use node::WireMessage;
use node::message::{Parcel, ProtocolWord, Question};
use node::oldest::Oldest;
use node::register::Word;
use runtime::frame::{Hello, encode_hello, encode_message};
use std::sync::Arc;
use store::Write;
use two_phase::message::{
    Body, Decide, Finish, Finished, Gather, Gathered, Message, Prepare, ReadRequest, Reference,
    Reply, Request, Stamp, Vote,
};
use txn::{AbortReason, Contact, Head, NewRows, Op, OpError, OpResult, Snapshot, TxnOptions};

/// A message of PostgreSQL's protocol.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// A packet without tag, as they stand before the session begins.
fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let mut out = (body.len() as u32 + 8).to_be_bytes().to_vec();
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Connections of clients, whole and single messages.
pub fn wire() -> Vec<Vec<u8>> {
    let startup = packet(196_608, b"user\0ann\0database\0shop\0options\0-c a=b\0\0");
    let messages = vec![
        message(b'Q', b"SELECT 1; SELECT 'x'\0"),
        message(b'P', b"name\0SELECT $1, $2\0\0\x02\0\0\0\x17\0\0\0\0"),
        message(
            b'B',
            b"portal\0name\0\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0",
        ),
        message(
            b'B',
            b"\0\0\0\x02\0\0\0\x01\0\x02\0\0\0\x01x\0\0\0\0\0\x02\0\0\0\x01",
        ),
        message(b'D', b"Sname\0"),
        message(b'D', b"Pportal\0"),
        message(b'E', b"portal\0\0\0\0\x64"),
        message(b'C', b"Sname\0"),
        message(b'S', b""),
        message(b'H', b""),
        message(b'd', b"1\tone\n2\t\\N\n"),
        message(b'c', b""),
        message(b'f', b"given up\0"),
        message(b'p', b"secret\0"),
        message(b'F', &[0; 12]),
        message(b'X', b""),
    ];
    let mut inputs = vec![
        startup.clone(),
        packet(80_877_103, b""),
        packet(80_877_104, b""),
        packet(80_877_102, &[0, 0, 0, 1, 0, 0, 0, 2]),
        packet(131_072, b""),
        packet(196_610, b"user\0ann\0_pq_.option\0x\0\0"),
    ];
    let session = messages.concat();
    inputs.extend(messages);
    inputs.push([packet(80_877_103, b""), startup, session].concat());
    inputs
}

pub(super) fn key() -> Key {
    Key::new(IndexId(70_000), Slot(77), b"\x80\0\0\x07key".to_vec())
}

pub(super) fn txn() -> TxnId {
    TxnId {
        shard: ShardId::new(NodeId(2), 1),
        incarnation: 3,
        counter: 4,
    }
}

pub(super) fn new_rows() -> NewRows {
    let mut rows = NewRows::new(IndexId(70_000), 0);
    rows.push(Slot(7), b"key", |out| out.extend_from_slice(&[7; 20]));
    rows.push(Slot(7), b"key2", |_| {});
    rows
}

fn options() -> TxnOptions {
    TxnOptions {
        priority_ts: Ts(1 << 40),
        attempt: 2,
        lock_timeout_us: 1_000,
        ..TxnOptions::default()
    }
}

fn vote() -> Vote {
    Vote {
        prepare_ts: Ts(4),
        top: Ts(9),
        durable: true,
        redo: Vec::new(),
        chunks: 2,
    }
}

fn request(op: Option<Op>) -> Body {
    Body::Request(Box::new(Request {
        visit: 3,
        visit_floor: 2,
        seq: 1,
        acked: 0,
        expected: 5,
        options: options(),
        planned: 8,
        alone: true,
        writes: vec![(key(), Write::Put(vec![1, 2, 3])), (key(), Write::Delete)],
        op,
        stamp: Some(Stamp {
            snapshot: Snapshot::exactly(Ts(6)),
            newest: true,
        }),
        finish: Finish::Prepare(prepare()),
    }))
}

fn prepare() -> Prepare {
    Prepare {
        participants: vec![ShardId(16), ShardId(17)],
        before: Ts(99),
        only_reads: true,
        settled: false,
    }
}

/// Messages of two_phase.
fn bodies() -> Vec<Body> {
    [of_coordinators(), of_leads()].concat()
}

/// Between the shards of one node, of which one commits for all.
fn of_leads() -> Vec<Body> {
    vec![
        Body::Gather(Box::new(Gather {
            visit: 3,
            acked: 1,
            options: options(),
            planned: 8,
            writes: vec![(key(), Write::Delete)],
            prepare: prepare(),
        })),
        Body::Gathered(Box::new(Gathered {
            vote: Ok(vote()),
            wait: Position(7),
        })),
        Body::Gathered(Box::new(Gathered {
            vote: Err(AbortReason::LockTimeout {
                key: key(),
                holder: txn(),
            }),
            wait: Position(0),
        })),
    ]
}

fn of_coordinators() -> Vec<Body> {
    let mut batch = RowBatch::new(3);
    batch.push([Datum::Int(-1), Datum::Null, Datum::Text("text".into())]);
    let reply = |result| {
        Body::Reply(Box::new(Reply {
            to: Reference::Seq(9),
            result,
            finished: Finished::Vote(vote()),
            wrote: true,
            wait: Position(77),
            contact: Some(Contact {
                since: Ts(3),
                bound: Ts(5),
            }),
            read_at: Ts(6),
        }))
    };
    let failed = OpError::Sql(SqlError::new(SqlState::UNIQUE, "duplicate key"));
    vec![
        request(None),
        request(Some(Op::Clock(Snapshot::recent(Ts(7), Ts(6))))),
        reply(Err(OpError::Raise(Ts(9)))),
        request(Some(Op::Insert {
            key: key(),
            row: Box::new([7; 40]),
        })),
        request(Some(Op::InsertMany(new_rows()))),
        request(Some(Op::Write {
            key: key(),
            write: Write::Insert(vec![0; 9]),
        })),
        reply(Ok(OpResult::Rows {
            batch,
            resume: Some((Slot(3), b"after".to_vec())),
        })),
        reply(Ok(OpResult::Exists)),
        reply(Ok(OpResult::SomeExist(vec![0, 7]))),
        reply(Err(failed)),
        Body::Working(Reference::Read(1)),
        Body::Expose,
        Body::CallOff,
        Body::Decide(Decide {
            visit: 1,
            commit_ts: Some(Ts(99)),
            position: Position(0),
            wants_ack: true,
        }),
        Body::Ack,
        Body::Inquire,
        Body::Running,
        Body::Poll,
        Body::Polled(Some(Ts(98))),
        Body::Read(Box::new(ReadRequest {
            read: 2,
            planned: 8,
            in_doubt_timeout_us: 2_000_000,
            priority_ts: Ts(5),
            alone: true,
            op: Op::Clock(Snapshot::exactly(Ts(7))),
        })),
    ]
}

/// What nodes say about the successor of catalog 300.
fn register() -> [Word; 5] {
    let (base, node) = (300, NodeId(2));
    let ballot = Ballot { round: 1, node };
    let promised = Ballot { round: 7, node };
    let next = Arc::new(Catalog {
        version: 301,
        ..Catalog::default()
    });
    let accepted = Some((ballot, next.clone()));
    [
        Word::Prepare { base, ballot },
        Word::Promised {
            base,
            ballot,
            accepted,
        },
        Word::Accept { base, ballot, next },
        Word::Accepted { base, ballot },
        Word::Refused {
            base,
            ballot,
            promised,
        },
    ]
}

/// The head of a message of a protocol.
pub(super) fn head() -> Head {
    Head {
        view: 1,
        incarnation: 3,
        catalog: 300,
        clock: Ts(1 << 41),
    }
}

/// Messages of all protocols.
fn words() -> Vec<ProtocolWord> {
    let bodies = bodies().into_iter().map(|body| Message {
        head: head(),
        txn: txn(),
        attempt: 1,
        body,
    });
    let words = bodies.flat_map(|message| {
        [
            ProtocolWord::TwoPhase(message.clone()),
            ProtocolWord::Formula(message),
        ]
    });
    let leap = super::leap::messages().into_iter().map(ProtocolWord::Leap);
    words.chain(leap).collect()
}

/// Frames between nodes, and payloads without their frames.
pub fn frames() -> Vec<Vec<u8>> {
    let words = words();
    let parcel = WireMessage::Parcel(Parcel::new(words[..8].to_vec()));
    let mut messages: Vec<WireMessage> = words.into_iter().map(WireMessage::Protocol).collect();
    messages.push(parcel);
    let mut rows = RowBatch::new(2);
    rows.push([Datum::Bool(true), Datum::Bytes(vec![0, 255].into())]);
    let no_table = SqlError::new(SqlState::UNDEFINED_TABLE, "no such table");
    messages.extend([
        WireMessage::CatalogWanted { to: ShardId(16) },
        WireMessage::CatalogAck { version: 300 },
        WireMessage::CatalogStuck {
            version: 300,
            missing: NodeId(3),
        },
        WireMessage::Quiesce {
            version: 301,
            tables: vec![base::TableId(16384)],
        },
        WireMessage::Quiesced { version: 301 },
        WireMessage::ClientsAsked,
        WireMessage::ClientsHeard,
        WireMessage::LocksAsked {
            number: 1 << 62,
            lock: None,
        },
        WireMessage::InLocksWay {
            number: 1 << 62,
            sessions: vec![1, -1, i32::MAX],
        },
        WireMessage::DdlHeard { id: 1 << 32 },
        WireMessage::DdlDone {
            id: 1,
            result: Ok(vec!["notice".into()]),
        },
        WireMessage::DdlDone {
            id: 2,
            result: Err(no_table),
        },
        WireMessage::ShowWanted {
            id: 3,
            question: Question::Show {
                what: parse::show::Show::Stages,
                database: "shop".into(),
            },
        },
        WireMessage::ShowRows { id: 3, rows },
        WireMessage::OldestRead {
            oldest: Oldest {
                clock: Ts(1 << 50),
                readers: [(DatabaseId(7), Ts(1 << 49))].into_iter().collect(),
            },
            wanted: true,
        },
    ]);
    messages.extend(register().map(WireMessage::Register));
    let mut hello = Vec::new();
    encode_hello(&Hello::new(7, NodeId(2), 3, 4), &mut hello);
    let mut inputs = vec![hello.clone(), hello[8..].to_vec()];
    let mut stream = hello;
    for message in &messages {
        let from = stream.len();
        encode_message(ShardId(0), ShardId(16), message, &mut stream);
        inputs.push(stream[from..].to_vec());
        inputs.push(stream[from + 8..].to_vec());
    }
    inputs.push(stream);
    inputs
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_all_kinds;
    use super::*;

    #[test]
    fn every_kind_of_message_is_there() {
        assert_all_kinds(bodies().into_iter());
    }
}
