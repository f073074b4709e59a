//! Messages of leap, of all kinds.

use super::network::{head, key, new_rows, txn};
use base::{Datum, Key, KeyRange, Position, RowBatch, ShardId, Slot, SqlError, SqlState, Ts};
use journal::{Held, Holding, Otag};
use leap::message::{
    Body, Claims, Confirm, Entrust, Fate, Fetch, Fetched, FetchedRow, Inform, Message,
    MovedVersion, Owed, OwnerRequest, Performance, Performed, ReadReply, ReadRequest, Recall,
    Recalled, Refused, ReleaseAck, Resolve, Response, Share, TransferRequest, Verdicts,
};
use store::{ColumnFormula, Formula, FormulaOp};
use txn::{
    AbortReason, LockMode, Op, OpError, OpResult, Outcome, Priority, Program, Read, ScanOp, Slots,
    Snapshot, TxnOptions,
};

const OTHER: ShardId = ShardId(33);

fn otag(grant: u64) -> Otag {
    Otag {
        incarnation: 2,
        grant,
    }
}

fn priority() -> Priority {
    Priority {
        urgent: true,
        ts: Ts(1 << 40),
        txn: txn(),
    }
}

fn options() -> TxnOptions {
    TxnOptions {
        priority_ts: Ts(1 << 40),
        attempt: 3,
        serial: true,
        lock_timeout_us: 500,
        ..TxnOptions::default()
    }
}

fn died() -> AbortReason {
    let (key, holder) = (key(), txn());
    AbortReason::Die { key, holder }
}

fn version(row: Option<&[u8]>) -> MovedVersion {
    MovedVersion {
        commit_ts: Ts(1 << 30),
        row: row.map(Box::from),
    }
}

fn tagged() -> Vec<(Key, Otag)> {
    vec![(key(), otag(1)), (key(), otag(1 << 33))]
}

/// Those that move rows.
fn of_moves() -> Vec<Body> {
    let refused = |otag, reason| {
        Body::Refused(Box::new(Refused {
            home: OTHER,
            otag,
            to_incarnation: 1,
            seq: 4,
            reason,
        }))
    };
    vec![
        Body::OwnerRequest(Box::new(OwnerRequest {
            seq: 4,
            floor: 2,
            key: key(),
            priority: priority(),
            alone: true,
            shared: true,
        })),
        Body::TransferRequest(Box::new(TransferRequest {
            otag: otag(7),
            floor: otag(3),
            expected: 2,
            key: key(),
            to: OTHER,
            to_incarnation: 1,
            seq: 4,
            priority: priority(),
            alone: true,
        })),
        Body::Response(Box::new(Response {
            home: OTHER,
            otag: otag(7),
            floor: otag(3),
            to_incarnation: 1,
            seq: 4,
            key: key(),
            versions: vec![version(Some(&[7; 30])), version(None)],
            since: Ts(1 << 20),
            position: Position(0),
        })),
        refused(None, None),
        refused(Some(otag(7)), Some(died())),
        Body::Working(4, Some(OTHER)),
        Body::Waiting(otag(7)),
        Body::Stranded(vec![otag(7), otag(8)]),
        Body::Inform(Inform {
            fates: vec![
                (otag(7), Fate::Acquired),
                (otag(8), Fate::Durable),
                (otag(9), Fate::Refused),
            ],
            again: true,
        }),
        Body::Settled(vec![otag(7), otag(1 << 40)]),
        Body::ReleaseAck(ReleaseAck {
            keys: tagged(),
            floor: otag(3),
        }),
        Body::Unacked(tagged()),
        Body::Forget(tagged()),
        Body::Cancel(key(), otag(7)),
    ]
}

/// Those of copies.
fn of_copies() -> Vec<Body> {
    let share = |row| {
        Body::Share(Box::new(Share {
            tag: otag(5),
            to_incarnation: 1,
            seq: 4,
            key: key(),
            version: version(row),
            position: Position(70),
        }))
    };
    let recalled = |refused| {
        Body::Recalled(Box::new(Recalled {
            key: key(),
            tag: otag(5),
            writer: txn(),
            refused,
        }))
    };
    vec![
        share(Some(&[1, 2, 3])),
        share(None),
        Body::Recall(Box::new(Recall {
            key: key(),
            tag: otag(5),
            priority: priority(),
        })),
        recalled(None),
        recalled(Some(died())),
    ]
}

fn scan() -> Op {
    let snapshot = Snapshot::recent(Ts(1 << 30), Ts(1 << 29));
    let mode = LockMode::Exclusive;
    Op::Scan(ScanOp {
        index: key().index,
        slots: Slots::One(Slot(77)),
        range: KeyRange::point(b"key"),
        reverse: true,
        read: Read::LockRows { snapshot, mode },
        program: Program::Encoded(Box::from([1, 0, 3])),
        row_limit: 10,
        batch_rows: 100,
        after: Some((Slot(76), b"after".to_vec())),
    })
}

fn formula() -> Op {
    let add = FormulaOp::Add(Datum::Int(-5));
    let change = ColumnFormula::new(2, base::Type::Int4, add).expect("integers add exactly");
    let (key, formula) = (key(), Formula(vec![change]));
    Op::Formula { key, formula }
}

/// Those of reads and scans of rows that stay where they are.
fn of_reads() -> Vec<Body> {
    let mut batch = RowBatch::new(2);
    batch.push([Datum::Float(0.5), Datum::Text("text".into())]);
    let read = |op| {
        Body::Read(Box::new(ReadRequest {
            txn: txn(),
            options: options(),
            number: 6,
            planned: 9,
            alone: true,
            delays: 1,
            op,
        }))
    };
    let reply = |result| {
        Body::Reply(Box::new(ReadReply {
            txn: txn(),
            number: 6,
            result,
            at: Ts(1 << 31),
            visited: vec![(OTHER, 1), (ShardId(1), 2)],
            wait: Position(9),
            delays: 2,
        }))
    };
    let fetched = |rows| {
        Body::Fetched(Box::new(Fetched {
            number: 3,
            rows,
            moved: vec![key()],
            wait: Position(1 << 40),
        }))
    };
    let row = FetchedRow {
        at: Some(Box::from([1])),
        newest: None,
        version: Ts(5),
    };
    let division = SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    vec![
        read(scan()),
        read(Op::Clock(Snapshot::exactly(Ts(7)))),
        reply(None),
        reply(Some(Ok(OpResult::Rows {
            batch,
            resume: None,
        }))),
        reply(Some(Err(OpError::Sql(division)))),
        Body::Reading(6),
        Body::Fetch(Box::new(Fetch {
            txn: txn(),
            options: options(),
            number: 3,
            at: Some(Ts(5)),
            guarded: true,
            lock: Some(LockMode::Shared),
            keys: vec![key(), key()],
        })),
        fetched(Ok(vec![(key(), row)])),
        fetched(Err(AbortReason::SnapshotTooOld(key()))),
    ]
}

/// Those of transactions that run where their row is, and of their ends.
fn of_transactions() -> Vec<Body> {
    let entrust = |op| {
        Body::Entrust(Box::new(Entrust {
            txn: txn(),
            options: options(),
            number: 8,
            floor: 5,
            expected: 1,
            planned: 9,
            holds: matches!(op, Op::Formula { .. }),
            op,
        }))
    };
    let performed = |performance| {
        Body::Performed(Box::new(Performed {
            number: 8,
            performance,
        }))
    };
    let ended = |result, outcome| {
        performed(Performance::Ended {
            result,
            outcome,
            wait: Position(9),
            take: true,
        })
    };
    let commit_ts = Ts(1 << 32);
    vec![
        entrust(formula()),
        entrust(Op::InsertMany(new_rows())),
        ended(Ok(OpResult::Done), Some(Outcome::Committed { commit_ts })),
        performed(Performance::Pending {
            result: OpResult::Done,
            wait: Position(9),
            take: true,
        }),
        Body::Resolve(Resolve {
            txn: txn(),
            commit_ts: Some(commit_ts),
        }),
        Body::Resolve(Resolve {
            txn: txn(),
            commit_ts: None,
        }),
        Body::Applied(txn()),
        Body::Undecided(txn()),
        Body::StillOpen(txn(), commit_ts),
        ended(Ok(OpResult::Exists), Some(Outcome::Unknown)),
        ended(Err(OpError::Raise(Ts(8))), None),
        performed(Performance::NotHere { owner: Some(OTHER) }),
        Body::Confirm(Confirm {
            txn: txn(),
            expected: 1,
        }),
        Body::Confirmed {
            txn: txn(),
            holds: true,
        },
        Body::Release(txn()),
        Body::Inquire(txn()),
        Body::Running(txn()),
    ]
}

/// Those of recovery.
fn of_restarts() -> Vec<Body> {
    let held = |holding| Held {
        key: key(),
        otag: otag(7),
        holding,
    };
    vec![
        Body::Ask,
        Body::Claims(Box::new(Claims {
            round: 9,
            part: 2,
            parts: 3,
            restarted: true,
            expected: 0,
            held: vec![held(Holding::Owned), held(Holding::Released(OTHER))],
            owed: vec![Owed {
                txn: txn(),
                commit_ts: Ts(77),
                key: key(),
                formula: Formula(Vec::new()),
            }],
        })),
        Body::Verdicts(Box::new(Verdicts {
            to_incarnation: 2,
            round: 9,
            part: 2,
            last: true,
            drop: tagged(),
            later: Vec::new(),
            floor: otag(3),
        })),
    ]
}

/// All kinds of messages.
pub(super) fn messages() -> Vec<Message> {
    let bodies = [
        of_moves(),
        of_copies(),
        of_reads(),
        of_transactions(),
        of_restarts(),
    ]
    .concat();
    let message = |body| Message { head: head(), body };
    bodies.into_iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_all_kinds;
    use super::*;

    #[test]
    fn every_kind_of_message_is_there() {
        assert_all_kinds(messages().into_iter().map(|message| message.body));
    }
}
