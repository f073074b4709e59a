//! Operations on one shard: scans, own writes, locks, limits, schema changes, large transactions.

use super::world::{TABLE, TRAIL, World, key, options};
use crate::Settings;
use base::{Datum, Key, KeyRange, NodeId, ShardId, Slot, SqlState, Ts, TxnId};
use bed::programs::{Test, adding, program, row, value};
use journal::{CheckpointTables, Record};
use local::Limits;
use store::Write;
use txn::{
    AbortReason, LockMode, Op, OpError, OpReply, OpResult, Outcome, Protocol, Read, ScanOp, Slots,
    Snapshot,
};

fn home() -> ShardId {
    ShardId::new(NodeId(1), 0)
}

fn one_shard() -> World {
    World::new(1, 1)
}

fn done(world: &mut World, txn: TxnId, op: Op, last: bool) -> OpReply {
    let id = world.submit_to(txn, home(), op, last);
    world.take_answer(id).expect("answered at once")
}

fn rows(reply: &OpReply) -> Vec<i64> {
    match &reply.result {
        Ok(OpResult::Rows { batch, .. }) => batch
            .datums
            .iter()
            .map(|datum| match datum {
                Datum::Int(value) => *value,
                other => panic!("{other:?}"),
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn scan(read: Read, test: Test) -> ScanOp {
    ScanOp {
        index: TABLE,
        slots: Slots::All,
        range: KeyRange::all(),
        reverse: false,
        read,
        program: program(test),
        row_limit: u64::MAX,
        batch_rows: u32::MAX,
        after: None,
    }
}

/// Key number `n`, all in slot 3, in ascending order.
fn numbered(n: u32) -> Key {
    Key::new(TABLE, Slot(3), n.to_be_bytes().to_vec())
}

const SHARED: Read = Read::Lock(LockMode::Shared);
const EXCLUSIVE: Read = Read::Lock(LockMode::Exclusive);

fn put(n: u32, to: i64) -> Op {
    Op::Write {
        key: numbered(n),
        write: Write::Put(row(to)),
    }
}

#[test]
fn scans_merge_own_writes_in_both_directions() {
    let mut world = one_shard();
    for n in [1u32, 3, 5, 7] {
        world.load_at(home(), numbered(n), i64::from(n));
    }
    let txn = world.begin(home());
    for (n, to) in [(0, 0), (3, 30), (4, 4), (9, 9)] {
        assert_eq!(
            done(&mut world, txn, put(n, to), false).result,
            Ok(OpResult::Done)
        );
    }
    let delete = Op::Write {
        key: numbered(5),
        write: Write::Delete,
    };
    done(&mut world, txn, delete, false);
    let expected = [0, 1, 30, 4, 7, 9];
    for read in [
        SHARED,
        EXCLUSIVE,
        Read::Snapshot(Snapshot::exactly(Ts::from_time(world.now))),
    ] {
        for batch_rows in [1, 2, 100] {
            for reverse in [false, true] {
                let mut seen = Vec::new();
                let mut after = None;
                loop {
                    let op = ScanOp {
                        batch_rows,
                        reverse,
                        after,
                        ..scan(read, Test::Read)
                    };
                    let reply = done(&mut world, txn, Op::Scan(op), false);
                    seen.extend(rows(&reply));
                    match reply.result {
                        Ok(OpResult::Rows {
                            resume: Some(resume),
                            ..
                        }) => after = Some(resume),
                        _ => break,
                    }
                }
                if reverse {
                    seen.reverse();
                }
                assert_eq!(seen, expected, "{read:?} {batch_rows} {reverse}");
            }
        }
    }
    let range = KeyRange {
        low: 3u32.to_be_bytes().into(),
        high: Some(5u32.to_be_bytes().into()),
    };
    let op = ScanOp {
        range,
        slots: Slots::One(Slot(3)),
        ..scan(SHARED, Test::Read)
    };
    assert_eq!(rows(&done(&mut world, txn, Op::Scan(op), false)), [30, 4]);
    let op = ScanOp {
        row_limit: 2,
        reverse: true,
        ..scan(SHARED, Test::AtLeast(5))
    };
    assert_eq!(rows(&done(&mut world, txn, Op::Scan(op), false)), [9, 7]);
    let op = scan(SHARED, Test::Sum);
    assert_eq!(rows(&done(&mut world, txn, Op::Scan(op), false)), [51]);
}

/// The first rows of all slots are found without reading the others; own writes count.
#[test]
fn a_scan_for_the_first_rows_leaves_slots_early() {
    let mut world = one_shard();
    let in_slot = |n: u32| Key::new(TABLE, Slot((n % 5) as u16), n.to_be_bytes().to_vec());
    for n in 0..1_000u32 {
        world.load_at(home(), in_slot(n), i64::from(n));
    }
    let txn = world.begin(home());
    for (n, write) in [
        (1, Write::Delete),
        (3, Write::Put(row(30))),
        (998, Write::Delete),
    ] {
        let key = in_slot(n);
        done(&mut world, txn, Op::Write { key, write }, false);
    }
    let snapshot = Read::Snapshot(Snapshot::exactly(Ts::from_time(world.now)));
    for read in [SHARED, EXCLUSIVE, snapshot] {
        for (count, wanted) in [(4, vec![0, 2, 30, 4]), (-2, vec![999, 997]), (0, vec![])] {
            let op = ScanOp {
                reverse: count < 0,
                ..scan(read, Test::First(count))
            };
            let before = world.shards[&home()].counters.rows_read;
            let found = rows(&done(&mut world, txn, Op::Scan(op), false));
            let read_rows = world.shards[&home()].counters.rows_read - before;
            assert_eq!(found, wanted, "{read:?} {count}");
            assert!(read_rows <= 15, "{read_rows} rows for {count}");
        }
    }
}

fn died(reply: &OpReply) -> bool {
    matches!(reply.result, Err(OpError::Aborted(AbortReason::Die { .. })))
}

#[test]
fn a_scan_of_few_rows_locks_as_far_as_it_goes() {
    let first = |read, reverse, row_limit| {
        Op::Scan(ScanOp {
            slots: Slots::One(Slot(3)),
            reverse,
            row_limit,
            ..scan(read, Test::Read)
        })
    };
    // Direction, limit, what is seen, which new rows are in the way.
    for (reverse, limit, seen, blocked) in [
        (false, 1, vec![2], [true, false, false]),
        (true, 1, vec![6], [false, false, true]),
        (false, 2, vec![2, 4], [true, true, false]),
        (false, 8, vec![2, 4, 6], [true, true, true]),
        (false, 9, vec![2, 4, 6], [true, true, true]),
    ] {
        for read in [SHARED, EXCLUSIVE] {
            let mut world = one_shard();
            for n in [2, 4, 6] {
                world.load_at(home(), numbered(n), i64::from(n));
            }
            let reader = world.begin(home());
            let reply = done(&mut world, reader, first(read, reverse, limit), false);
            assert_eq!(rows(&reply), seen);
            for (n, blocked) in [1u32, 3, 7].into_iter().zip(blocked) {
                let writer = world.begin(home());
                // Something else first: a transaction without a lock would wait.
                let elsewhere = Op::Write {
                    key: Key::new(TABLE, Slot(4), n.to_be_bytes().to_vec()),
                    write: Write::Put(row(0)),
                };
                done(&mut world, writer, elsewhere, false);
                let reply = done(&mut world, writer, put(n, 0), false);
                assert_eq!(died(&reply), blocked, "{reverse} {limit} {n}");
            }
        }
    }
}

#[test]
fn a_row_that_comes_while_a_scan_waits_is_seen() {
    let mut world = one_shard();
    world.load_at(home(), numbered(4), 4);
    let reader = world.begin(home());
    let writer = world.begin(home());
    done(&mut world, writer, put(2, 2), false);
    let op = ScanOp {
        slots: Slots::One(Slot(3)),
        row_limit: 1,
        ..scan(SHARED, Test::Read)
    };
    let id = world.submit_to(reader, home(), Op::Scan(op), false);
    assert!(world.take_answer(id).is_none());
    world.commit(writer);
    let reply = world.take_answer(id).expect("nobody is in the way");
    assert_eq!(rows(&reply), [2]);
}

#[test]
fn readers_of_other_columns_pass_an_increment() {
    let mut world = one_shard();
    world.load_at(home(), numbered(1), 10);
    let get = |test| Op::Get {
        key: numbered(1),
        read: SHARED,
        program: program(test),
    };
    let modify = |delta| Op::Modify {
        key: numbered(1),
        program: adding(delta),
    };
    let adder = world.begin(home());
    let reply = done(&mut world, adder, modify(5), false);
    let Ok(OpResult::Modified { returning, .. }) = reply.result else {
        panic!("{:?}", reply.result);
    };
    assert_eq!(returning.datums, [Datum::Int(15)]);
    // One reads no column, one what is added to, one adds to it as well.
    let other = world.begin(home());
    assert_eq!(
        rows(&done(&mut world, other, get(Test::Exists), false)),
        [1]
    );
    assert!(died(&done(&mut world, other, get(Test::Read), false)));
    let other = world.begin(home());
    done(&mut world, other, put(100, 0), false);
    assert!(died(&done(&mut world, other, modify(1), false)));
    world.commit(adder);
    let reader = world.begin(home());
    assert_eq!(rows(&done(&mut world, reader, get(Test::Read), true)), [15]);
}

#[test]
fn long_scans_take_turns() {
    let mut world = one_shard();
    for n in 0..2_500 {
        world.load_at(home(), numbered(n), 1);
    }
    for (read, last) in [(SHARED, false), (SHARED, true), (EXCLUSIVE, false)] {
        let txn = world.begin(home());
        let id = world.submit_to(txn, home(), Op::Scan(scan(read, Test::Sum)), last);
        let mut turns = 0;
        let reply = loop {
            if let Some(reply) = world.take_answer(id) {
                break reply;
            }
            let deadline = world.shards[&home()].protocol.deadline();
            assert_eq!(deadline, Some(base::Time(0)));
            world.tick(0);
            turns += 1;
        };
        assert_eq!(turns, 2, "2,500 rows are three turns");
        assert_eq!(rows(&reply), [2_500]);
        let id = world.commit(txn);
        world.take_answer(id);
        world.take_turns(home());
        world.call(home(), |protocol, _| protocol.forget(txn));
        assert!(world.shards[&home()].protocol.is_idle());
    }
}

#[test]
fn one_operation_that_is_free_enters_no_lock() {
    let mut world = one_shard();
    world.load_at(home(), key(TABLE, "a"), 1);
    let add = Op::Modify {
        key: key(TABLE, "a"),
        program: program(Test::Add(4)),
    };
    let txn = world.begin(home());
    let reply = done(&mut world, txn, add.clone(), true);
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    assert_eq!(world.value_at(home(), &key(TABLE, "a")), Some(5));
    assert!(world.shards[&home()].protocol.is_idle());
    // Its version is not durable, so a reader's answer waits.
    let txn = world.begin(home());
    let get = Op::Get {
        key: key(TABLE, "a"),
        read: SHARED,
        program: program(Test::Read),
    };
    let read = done(&mut world, txn, get.clone(), true);
    assert_eq!((rows(&read), read.wait), (vec![5], reply.wait));
    world.flush(NodeId(1));
    let txn = world.begin(home());
    assert_eq!(done(&mut world, txn, get, true).wait.0, 0);
    assert_eq!(
        world.shards[&home()].protocol.deadline(),
        None,
        "no timers on one node"
    );
}

#[test]
fn insert_of_a_present_row_keeps_the_transaction_open() {
    let mut world = one_shard();
    world.load_at(home(), key(TABLE, "a"), 1);
    let insert = Op::Insert {
        key: key(TABLE, "a"),
        row: row(7).into(),
    };
    let txn = world.begin(home());
    let reply = done(&mut world, txn, insert, true);
    assert_eq!((reply.result, reply.outcome), (Ok(OpResult::Exists), None));
    let remove = Op::Modify {
        key: key(TABLE, "a"),
        program: program(Test::Remove),
    };
    done(&mut world, txn, remove, false);
    let insert = Op::Insert {
        key: key(TABLE, "a"),
        row: row(8).into(),
    };
    assert_eq!(
        done(&mut world, txn, insert, false).result,
        Ok(OpResult::Done)
    );
    let id = world.commit(txn);
    assert!(
        world
            .take_answer(id)
            .is_some_and(|reply| reply.outcome.is_some())
    );
    assert_eq!(world.value_at(home(), &key(TABLE, "a")), Some(8));
}

#[test]
fn lock_rows_looks_at_the_newest_version() {
    let mut world = one_shard();
    for (name, value) in [("a", 10), ("b", 20), ("c", 30)] {
        world.load_at(home(), key(TABLE, name), value);
    }
    let snapshot = world.call(home(), |_, cx| cx.clock.tick(cx.now));
    let other = world.begin(home());
    let add = Op::Modify {
        key: key(TABLE, "b"),
        program: program(Test::Add(-15)),
    };
    done(&mut world, other, add, false);
    let txn = world.begin(home());
    let read = Read::LockRows {
        snapshot: Snapshot::exactly(snapshot),
        mode: LockMode::Exclusive,
    };
    let id = world.submit_to(txn, home(), Op::Scan(scan(read, Test::AtLeast(15))), false);
    assert!(world.take_answer(id).is_none(), "waits for the other's row");
    let commit = world.commit(other);
    assert!(world.take_answer(commit).is_some());
    let reply = world.take_answer(id).expect("woken");
    assert_eq!(rows(&reply), [30], "b does not pass any more, a never did");
    let held = world.shards[&home()].protocol.to_string();
    assert!(!held.contains(&format!("{:?}", key(TABLE, "a"))), "{held}");
}

#[test]
fn serial_execution_takes_the_whole_shard() {
    let mut world = one_shard();
    world.load_at(home(), key(TABLE, "a"), 1);
    world.load_at(home(), key(TABLE, "b"), 1);
    let begin = |world: &mut World, number: u64| {
        let txn = TxnId {
            shard: home(),
            incarnation: 1,
            counter: 100 + number,
        };
        world.call(home(), |protocol, cx| {
            let ts = cx.clock.tick(cx.now);
            let mut options = options(ts);
            options.serial = true;
            protocol.begin(cx, txn, options);
        });
        txn
    };
    let (first, second) = (begin(&mut world, 1), begin(&mut world, 2));
    let add = |name| Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Add(1)),
    };
    assert!(done(&mut world, first, add("a"), false).result.is_ok());
    let waiting = world.submit_to(second, home(), add("b"), true);
    assert!(
        world.take_answer(waiting).is_none(),
        "another row, but the same shard"
    );
    let id = world.commit(first);
    assert!(world.take_answer(id).is_some());
    let reply = world.take_answer(waiting).expect("its turn");
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn lock_timeout_and_cancel_free_what_was_held() {
    let mut world = one_shard();
    world.load_at(home(), key(TABLE, "a"), 1);
    let add = Op::Modify {
        key: key(TABLE, "a"),
        program: program(Test::Add(1)),
    };
    let holder = world.begin(home());
    done(&mut world, holder, add.clone(), false);
    let txn = TxnId {
        shard: home(),
        incarnation: 1,
        counter: 50,
    };
    world.call(home(), |protocol, cx| {
        let mut options = options(Ts(5));
        options.lock_timeout_us = 1_000;
        protocol.begin(cx, txn, options);
    });
    let id = world.submit_to(txn, home(), add.clone(), false);
    assert!(world.take_answer(id).is_none());
    world.tick(999);
    assert!(world.take_answer(id).is_none());
    world.tick(1);
    let reply = world.take_answer(id).expect("timed out");
    let reason = AbortReason::LockTimeout {
        key: key(TABLE, "a"),
        holder,
    };
    assert_eq!(reply.result, Err(OpError::Aborted(reason)));
    let waiter = world.begin(home());
    let id = world.submit_to(waiter, home(), add, false);
    world.call(home(), |protocol, cx| protocol.abort(cx, waiter));
    let reply = world.take_answer(id).expect("cancelled");
    assert_eq!(reply.result, Err(OpError::Aborted(AbortReason::Requested)));
    world.call(home(), |protocol, cx| protocol.abort(cx, holder));
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn changed_schema_aborts_at_the_statement_and_at_commit() {
    let mut world = one_shard();
    let insert = |name| Op::Insert {
        key: key(TABLE, name),
        row: row(1).into(),
    };
    let (early, late) = (world.begin(home()), world.begin(home()));
    assert!(done(&mut world, early, insert("a"), false).result.is_ok());
    world.schema = 2;
    let reply = done(&mut world, late, insert("b"), false);
    assert_eq!(
        reply.result,
        Err(OpError::Aborted(AbortReason::SchemaChanged(Some(TABLE))))
    );
    // There is nothing left to commit.
    assert_eq!(
        reply.outcome,
        Some(Outcome::Aborted(AbortReason::SchemaChanged(Some(TABLE))))
    );
    let id = world.commit(early);
    let outcome = world.take_answer(id).and_then(|reply| reply.outcome);
    assert_eq!(
        outcome,
        Some(Outcome::Aborted(AbortReason::SchemaChanged(Some(TABLE))))
    );
    assert_eq!(world.value_at(home(), &key(TABLE, "a")), None);
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn old_snapshots_are_refused() {
    let mut world = one_shard();
    world.horizon = Ts(1 << 20);
    let txn = world.begin(home());
    let read = Read::Snapshot(Snapshot::exactly(Ts(1 << 19)));
    let get = Op::Get {
        key: key(TABLE, "a"),
        read,
        program: program(Test::Read),
    };
    let reply = done(&mut world, txn, get, false);
    assert_eq!(
        reply.result,
        Err(OpError::Aborted(AbortReason::SnapshotTooOld(key(
            TABLE, "a"
        ))))
    );
}

/// Bytes of a row of a large transaction.
const LARGE_BYTES: usize = 300 << 10;

/// A transaction that has written ten large rows.
fn large_txn(world: &mut World) -> TxnId {
    let txn = world.begin(home());
    let big = vec![7u8; LARGE_BYTES];
    for n in 0..10u32 {
        let key = Key::new(TRAIL, Slot(1), n.to_be_bytes().to_vec());
        let row: Vec<u8> = base::row::to_vec(&[Datum::Bytes(big.clone().into())]);
        let insert = Op::Insert {
            key,
            row: row.into(),
        };
        assert!(done(world, txn, insert, false).result.is_ok());
    }
    txn
}

#[test]
fn large_commits_wait_for_the_journal_and_say_so() {
    let mut world = one_shard();
    let txn = large_txn(&mut world);
    let disk = world.nodes[&NodeId(1)].disk.clone();
    world.flush(NodeId(1));
    let most = 2 * LARGE_BYTES as u64;
    disk.borrow_mut().backlog_max = Some(most);
    let id = world.commit(txn);
    let mut waits = 0;
    loop {
        world.take_turns(home());
        if world.take_answer(id).is_some() {
            break;
        }
        assert!(world.shards[&home()].protocol.awaits_durable());
        let backlog = disk.borrow().end().0 - disk.borrow().durable.0;
        assert!(backlog <= 2 * most, "{backlog} bytes wait for the disk");
        waits += 1;
        world.flush(NodeId(1));
    }
    assert!(waits >= 2, "{waits} waits");
    assert!(!world.shards[&home()].protocol.awaits_durable());
}

#[test]
fn large_transactions_are_chunked_and_recovered() {
    let mut world = one_shard();
    let txn = large_txn(&mut world);
    let id = world.commit(txn);
    assert!(world.take_answer(id).is_none(), "it takes its turns");
    world.take_turns(home());
    assert!(world.take_answer(id).is_some());
    let disk = world.nodes[&NodeId(1)].disk.clone();
    let largest = disk
        .borrow()
        .records
        .iter()
        .map(|(_, payload)| payload.len())
        .max();
    assert!(largest.is_some_and(|bytes| bytes < 2 << 20));
    let commit = disk
        .borrow()
        .records
        .last()
        .map(|(_, payload)| Record::decode(payload));
    assert!(matches!(commit, Some(Ok(Record::Commit { chunks, .. })) if chunks[0].1 > 2));
    world.flush(NodeId(1));
    world.crash(NodeId(1), 0);
    world.restart(NodeId(1));
    assert_eq!(world.shards[&home()].store.counts().rows, 10);
}

#[test]
fn too_large_transactions_fail_their_statement() {
    let mut world = one_shard();
    let settings = Settings {
        limits: Limits {
            txn_bytes_max: 1_000,
            ..Limits::default()
        },
        ..Settings::default()
    };
    world.call(home(), |protocol, _| protocol.set_settings(settings));
    let txn = world.begin(home());
    let row: Vec<u8> = base::row::to_vec(&[Datum::Bytes(vec![1; 2_000].into())]);
    let reply = done(
        &mut world,
        txn,
        Op::Insert {
            key: key(TABLE, "a"),
            row: row.into(),
        },
        false,
    );
    match reply.result {
        Err(OpError::Sql(error)) => assert_eq!(error.state(), SqlState::OUT_OF_MEMORY),
        other => panic!("{other:?}"),
    }
    world.call(home(), |protocol, cx| protocol.abort(cx, txn));
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn checkpoint_between_record_and_installation_loses_nothing() {
    let mut world = World::new(1, 2);
    let beside = ShardId::new(NodeId(1), 1);
    world.load_at(home(), key(TABLE, "a"), 1);
    world.load_at(beside, key(TABLE, "b"), 1);
    let txn = world.begin(home());
    let add = |name| Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Add(1)),
    };
    done(&mut world, txn, add("a"), false);
    world.submit_to(txn, beside, add("b"), false);
    world.settle();
    world.commit(txn);
    let prepare = world.flights.remove(0);
    world.deliver(prepare);
    let vote = world.flights.remove(0);
    // The checkpoint of the participant begins after its promise.
    let mut tables = CheckpointTables::default();
    world.call(beside, |protocol, _| {
        protocol.checkpoint_tables(&mut tables)
    });
    assert!(tables.prepared.is_empty(), "the promise is in memory");
    world.deliver(vote);
    let may_end = |world: &World| world.shards[&beside].protocol.checkpoint_may_end();
    assert!(!may_end(&world), "decided, but not installed");
    let decided = world.nodes[&NodeId(1)].disk.borrow().records.len();
    world.settle();
    assert!(may_end(&world));
    let disk = world.nodes[&NodeId(1)].disk.borrow();
    let again = Record::decode(&disk.records[decided].1).expect("decodes");
    let shards: Vec<ShardId> = match again {
        Record::Commit { writes, .. } => writes.into_iter().map(|(shard, _)| shard).collect(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shards, [beside]);
    drop(disk);
    assert_eq!(world.value_at(beside, &key(TABLE, "b")), Some(2));
    assert_eq!(value(&row(-7)), -7);
}
