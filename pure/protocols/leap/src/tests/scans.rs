//! Scans in place: rows away are part of the result, in order, locked or at a snapshot.

use super::local::{add, get, insert, number, run, shard};
use super::random::sum_op;
use super::world::{TABLE, World, key, kind};
use crate::Settings;
use base::{Datum, KeyRange, Ts};
use bed::programs::{Test, program};
use local::Limits;
use txn::{
    LockMode, Op, OpError, OpReply, OpResult, Outcome, Protocol, Read, ScanOp, Slots, Snapshot,
};

fn world() -> World {
    let mut world = World::new(3, 1);
    for (name, value) in [
        ("a0", 1),
        ("b0", 2),
        ("c0", 3),
        ("d3", 4),
        ("e3", 5),
        ("a1", 100),
    ] {
        world.load(key(name), value);
    }
    world
}

fn scan(read: Read, batch_rows: u32, reverse: bool, after: Option<(base::Slot, Vec<u8>)>) -> Op {
    Op::Scan(ScanOp {
        index: TABLE,
        slots: Slots::All,
        range: KeyRange::all(),
        reverse,
        read,
        program: program(Test::Read),
        row_limit: u64::MAX,
        batch_rows,
        after,
    })
}

fn values(reply: &OpReply) -> Vec<i64> {
    let Ok(OpResult::Rows { batch, .. }) = &reply.result else {
        panic!("{reply:?}");
    };
    let value = |datum: &Datum| match datum {
        Datum::Int(value) => *value,
        other => panic!("{other:?}"),
    };
    batch.datums.iter().map(value).collect()
}

/// Scans the slots of node 1 in batches from node `at`; returns all values.
fn scan_all(world: &mut World, at: u16, read: Read, batch_rows: u32, reverse: bool) -> Vec<i64> {
    let txn = world.begin(shard(at));
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let op = scan(read, batch_rows, reverse, after.take());
        let id = world.submit_to(txn, shard(1), op, false);
        world.settle();
        let reply = world.take_answer(id).expect("it is answered");
        all.extend(values(&reply));
        match reply.result {
            Ok(OpResult::Rows {
                resume: Some(resume),
                ..
            }) => after = Some(resume),
            _ => break,
        }
    }
    let commit = world.commit(txn);
    world.settle();
    let reply = world.take_answer(commit).expect("it is answered");
    assert!(
        matches!(reply.outcome, Some(Outcome::Committed { .. })),
        "{reply:?}"
    );
    all
}

#[test]
fn rows_that_are_away_stand_where_they_belong() {
    for slice_units in [1, 2, 1_000] {
        stand_where_they_belong(slice_units);
    }
}

fn stand_where_they_belong(slice_units: u64) {
    let mut world = world();
    world.settings(Settings {
        limits: Limits {
            slice_units,
            ..Limits::default()
        },
        ..Settings::default()
    });
    run(&mut world, 2, add("b0", 10));
    run(&mut world, 3, add("d3", 10));
    run(&mut world, 3, insert("bb0", 7));
    for at in [1, 2, 3] {
        let now = world.call(shard(at), |_, cx| cx.clock.tick(cx.now));
        for read in [
            Read::Snapshot(Snapshot::exactly(now)),
            Read::Lock(LockMode::Shared),
            Read::Lock(LockMode::Exclusive),
            Read::LockRows {
                snapshot: Snapshot::exactly(now),
                mode: LockMode::Exclusive,
            },
        ] {
            for batch in [1, 2, 100] {
                let forward = scan_all(&mut world, at, read, batch, false);
                assert_eq!(forward, [1, 12, 7, 3, 14, 5], "{read:?} from {at}");
                let mut backward = scan_all(&mut world, at, read, batch, true);
                backward.reverse();
                assert_eq!(backward, forward, "{read:?} from {at}");
            }
        }
    }
    assert_eq!(world.owner(&key("b0")), shard(2), "scans move nothing");
    world.tick(2_000_000);
    world.settle();
    assert!(world.is_idle(), "no lock is left");
}

/// A batch lists the rows that are away as far as it goes, not all that are ahead of it.
#[test]
fn rows_that_are_away_are_listed_as_they_are_visited() {
    for reverse in [false, true] {
        let mut world = World::new(3, 1);
        world.settings(Settings {
            limits: Limits {
                slice_units: 8,
                ..Limits::default()
            },
            ..Settings::default()
        });
        for i in 0..400 {
            world.load(key(&format!("r{i:03}0")), i);
        }
        for i in 0..400 {
            run(&mut world, 2, add(&format!("r{i:03}0"), 0));
        }
        let units = |world: &World| world.count(|c| c.units);
        let before = units(&world);
        let found = scan_all(&mut world, 1, Read::Lock(LockMode::Shared), 4, reverse);
        assert_eq!(found.len(), 400);
        // A slice of 8 rows for each batch of 4; all rows ahead would be 20,000.
        let listed = units(&world) - before;
        assert!((400..2_000).contains(&listed), "{listed} rows were listed");
    }
}

/// docs/adr/0011: with all rows at home no message leaves the home. Otherwise each owner is asked
/// once, whatever its number of rows, and locks elsewhere are confirmed and released.
#[test]
fn a_scan_asks_each_owner_once() {
    let mut world = world();
    let cost = |world: &mut World, at: u16| {
        let count = |world: &World| world.count(|c| c.messages);
        let before = count(world);
        let read = Read::Lock(LockMode::Shared);
        assert_eq!(scan_all(world, at, read, 100, false).len(), 5);
        let locked = count(world) - before;
        let now = world.call(shard(at), |_, cx| cx.clock.tick(cx.now));
        let before = count(world);
        let read = Read::Snapshot(Snapshot::exactly(now));
        assert_eq!(scan_all(world, at, read, 100, false).len(), 5);
        (locked, count(world) - before)
    };
    let at_home = [cost(&mut world, 1), cost(&mut world, 2)];
    for name in ["b0", "c0"] {
        run(&mut world, 2, add(name, 0));
    }
    let at_one_owner = [cost(&mut world, 1), cost(&mut world, 2)];
    run(&mut world, 3, add("d3", 0));
    let at_two_owners = [cost(&mut world, 1), cost(&mut world, 2)];
    // From the home, and from another node: messages with locks, and of a snapshot.
    assert_eq!(
        [at_home, at_one_owner, at_two_owners],
        [[(0, 0), (3, 2)], [(5, 2), (5, 4)], [(10, 4), (13, 6)]]
    );
}

#[test]
fn a_transaction_scans_what_it_has_written() {
    let mut world = world();
    let txn = world.begin(shard(2));
    for op in [add("a0", 100), insert("aa0", 50)] {
        world.submit(txn, op, false);
        world.settle();
    }
    let sum = world.submit_to(txn, shard(1), sum_op(Read::Lock(LockMode::Shared)), false);
    world.settle();
    assert_eq!(number(&world.take_answer(sum).unwrap()), Some(165));
    let commit = world.commit(txn);
    world.settle();
    let reply = world.take_answer(commit).unwrap();
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    let cost = world.shards[&shard(2)].protocol.cost(txn).unwrap();
    assert_eq!(cost.forced_writes, 1, "one local record");
}

#[test]
fn a_snapshot_sees_the_version_of_its_time_wherever_the_row_is() {
    let mut world = world();
    let before = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    run(&mut world, 2, add("a0", 10));
    let between = world.call(shard(2), |_, cx| cx.clock.tick(cx.now));
    run(&mut world, 3, add("a0", 10));
    for at in [1, 2, 3] {
        for (ts, expected) in [(before, 1), (between, 11), (Ts(between.0 + (1 << 40)), 21)] {
            let txn = world.begin(shard(at));
            let read = Op::Get {
                key: key("a0"),
                read: Read::Snapshot(Snapshot::exactly(ts)),
                program: program(Test::Read),
            };
            let id = world.submit(txn, read, true);
            world.settle();
            assert_eq!(
                number(&world.take_answer(id).unwrap()),
                Some(expected),
                "at {at}"
            );
            let sum = scan_all(
                &mut world,
                at,
                Read::Snapshot(Snapshot::exactly(ts)),
                100,
                false,
            );
            assert_eq!(sum[0], expected);
        }
    }
    assert_eq!(world.owner(&key("a0")), shard(3));
}

#[test]
fn a_history_that_was_cut_refuses_old_snapshots() {
    let mut world = world();
    let mut settings = world.shards[&shard(1)].protocol.settings();
    settings.versions_max = 2;
    let protocol = &mut world.shards.get_mut(&shard(1)).unwrap().protocol;
    protocol.set_settings(settings);
    let before = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    for _ in 0..3 {
        run(&mut world, 1, add("a0", 1));
    }
    run(&mut world, 2, get("a0"));
    let txn = world.begin(shard(3));
    let read = Op::Get {
        key: key("a0"),
        read: Read::Snapshot(Snapshot::exactly(before)),
        program: program(Test::Read),
    };
    let id = world.submit(txn, read, true);
    world.settle();
    let reply = world.take_answer(id).unwrap();
    let error = OpError::Aborted(txn::AbortReason::SnapshotTooOld(key("a0")));
    assert_eq!(reply.result, Err(error));
}

/// The horizons of two shards differ when one of them takes a node for gone.
#[test]
fn what_an_owner_has_collected_is_refused_by_the_next() {
    let mut world = world();
    let before = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    run(&mut world, 1, add("a0", 1));
    let horizon = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    world.shards.get_mut(&shard(1)).unwrap().horizon = horizon;
    run(&mut world, 2, add("a0", 1));
    for (at, expected) in [(before, None), (horizon, Some(2))] {
        let txn = world.begin(shard(3));
        let read = Op::Get {
            key: key("a0"),
            read: Read::Snapshot(Snapshot::exactly(at)),
            program: program(Test::Read),
        };
        let id = world.submit(txn, read, true);
        world.settle();
        let reply = world.take_answer(id).unwrap();
        let refused = OpError::Aborted(txn::AbortReason::SnapshotTooOld(key("a0")));
        match expected {
            None => assert_eq!(reply.result, Err(refused)),
            Some(value) => assert_eq!(number(&reply), Some(value)),
        }
    }
}

/// The row leaves when the scan has listed the rows that are away, and comes back before the scan
/// visits its slot.
#[test]
fn a_scan_sees_that_a_row_came_home_without_its_history() {
    let mut world = world();
    world.settings(Settings {
        versions_max: 2,
        ..Settings::default()
    });
    run(&mut world, 2, add("b0", 0));
    let before = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    let reader = world.begin(shard(1));
    let read = Read::Snapshot(Snapshot::exactly(before));
    let id = world.submit_to(reader, shard(1), scan(read, 100, false, None), false);
    let fetch = world.flights.remove(0);
    assert_eq!(kind(&fetch), "Fetch");
    for at in [3, 3, 3, 1] {
        run(&mut world, at, add("e3", 1));
    }
    assert_eq!(world.owner(&key("e3")), shard(1));
    world.deliver(fetch);
    world.settle();
    let reply = world.take_answer(id).expect("it is answered");
    let error = OpError::Aborted(txn::AbortReason::SnapshotTooOld(key("e3")));
    assert_eq!(reply.result, Err(error));
}

/// Not all clocks were asked, so each row is checked for a newer version.
#[test]
fn a_guarded_snapshot_refuses_what_it_may_miss() {
    let mut world = world();
    let before = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    run(&mut world, 2, add("a0", 10));
    run(&mut world, 3, insert("bb0", 7));
    let after = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    let missed = |key| {
        let reason = txn::AbortReason::SnapshotMisses(Some(key));
        Err(OpError::Aborted(reason))
    };
    for at in [1, 2, 3] {
        for (ts, name, expected) in [
            (before, "a0", None),
            (before, "bb0", None),
            (before, "c0", Some(3)),
            (after, "a0", Some(11)),
            (after, "bb0", Some(7)),
        ] {
            let read = Read::Snapshot(Snapshot::guarded(ts, ts));
            let txn = world.begin(shard(at));
            let key = key(name);
            let program = program(Test::Read);
            let id = world.submit(txn, Op::Get { key, read, program }, true);
            world.settle();
            let reply = world.take_answer(id).unwrap();
            match expected {
                None => assert_eq!(reply.result, missed(self::key(name)), "{name} at {at}"),
                Some(value) => assert_eq!(number(&reply), Some(value), "{name} at {at}"),
            }
        }
        let txn = world.begin(shard(at));
        let read = Read::Snapshot(Snapshot::guarded(before, before));
        let id = world.submit_to(txn, shard(1), scan(read, 100, false, None), true);
        world.settle();
        let reply = world.take_answer(id).unwrap();
        let Err(OpError::Aborted(txn::AbortReason::SnapshotMisses(Some(row)))) = &reply.result
        else {
            panic!("{reply:?}");
        };
        assert_eq!(row.index, TABLE);
        let read = Read::Snapshot(Snapshot::guarded(after, after));
        assert_eq!(
            scan_all(&mut world, at, read, 100, false),
            [11, 2, 7, 3, 4, 5]
        );
    }
}

/// A scan that wants few rows asks for few: the first in its order, more only if those do not pass,
/// and none where the rows at home are enough.
#[test]
fn a_scan_with_a_limit_asks_for_no_more_than_it_wants() {
    let mut world = World::new(3, 1);
    let names: Vec<String> = (10..74).map(|i| format!("r{i}0")).collect();
    for (i, name) in names.iter().enumerate() {
        world.load(key(name), i as i64);
    }
    for name in &names[4..] {
        run(&mut world, 2, add(name, 0));
    }
    let limited = |read: Read, reverse: bool, row_limit: u64| {
        let Op::Scan(op) = scan(read, 1000, reverse, None) else {
            unreachable!("a scan");
        };
        Op::Scan(ScanOp { row_limit, ..op })
    };
    let mut cost = |at: u16, reverse: bool, row_limit: u64| {
        let now = world.call(shard(at), |_, cx| cx.clock.tick(cx.now));
        let read = Read::Snapshot(Snapshot::exactly(now));
        let before = [
            world.count(|c| c.messages),
            world.count(|c| c.message_bytes),
        ];
        let txn = world.begin(shard(at));
        let id = world.submit_to(txn, shard(1), limited(read, reverse, row_limit), false);
        world.settle();
        let found = values(&world.take_answer(id).expect("it is answered"));
        let after = [
            world.count(|c| c.messages),
            world.count(|c| c.message_bytes),
        ];
        world.commit(txn);
        world.settle();
        (found, after[0] - before[0], after[1] - before[1])
    };
    // The rows at home are enough.
    assert_eq!(cost(1, false, 3), (vec![0, 1, 2], 0, 0));
    // One round trip, however many other rows are away.
    let (found, messages, few_bytes) = cost(1, false, 6);
    assert_eq!((found, messages), (vec![0, 1, 2, 3, 4, 5], 2));
    let (found, messages, _) = cost(1, true, 2);
    assert_eq!((found, messages), (vec![63, 62], 2));
    let (found, messages, all_bytes) = cost(1, false, 1000);
    assert_eq!((found.len(), messages), (64, 2));
    assert!(few_bytes * 4 < all_bytes, "{few_bytes} of {all_bytes}");
}

/// Rows `r10<slot>` to `r73<slot>` in four slots of node 1, of which those behind the first two
/// are at node 2.
fn four_slots(value: &dyn Fn(usize) -> i64) -> World {
    let mut world = World::new(3, 1);
    let names = (10..74).map(|i| format!("r{i}{}", [0, 3, 6, 9][i % 4]));
    let names: Vec<String> = names.collect();
    for (i, name) in names.iter().enumerate() {
        world.load(key(name), value(i));
    }
    for name in &names[2..] {
        run(&mut world, 2, add(name, 0));
    }
    world
}

/// The values of the first `count` rows (of the last ones if negative), and what they cost.
fn first_rows(world: &mut World, at: u16, count: i64) -> (Vec<i64>, u64, u64) {
    let now = world.call(shard(at), |_, cx| cx.clock.tick(cx.now));
    let read = Read::Snapshot(Snapshot::exactly(now));
    let Op::Scan(op) = scan(read, 1000, count < 0, None) else {
        unreachable!("a scan");
    };
    let before = [
        world.count(|c| c.messages),
        world.count(|c| c.message_bytes),
    ];
    let txn = world.begin(shard(at));
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let program = program(Test::First(count));
        let op = ScanOp {
            program,
            after: after.take(),
            ..op.clone()
        };
        let id = world.submit_to(txn, shard(1), Op::Scan(op), false);
        world.settle();
        let reply = world.take_answer(id).expect("it is answered");
        all.extend(values(&reply));
        let Ok(OpResult::Rows { resume, .. }) = reply.result else {
            panic!("{reply:?}");
        };
        match resume {
            Some(resume) => after = Some(resume),
            None => break,
        }
    }
    let after = [
        world.count(|c| c.messages),
        world.count(|c| c.message_bytes),
    ];
    world.commit(txn);
    world.settle();
    (all, after[0] - before[0], after[1] - before[1])
}

/// A scan of the first rows of several slots does not ask for all rows that are away.
#[test]
fn the_first_rows_of_many_slots_are_fetched_and_no_others() {
    let mut world = four_slots(&|i| i as i64);
    assert_eq!(first_rows(&mut world, 1, 0).0, [0i64; 0]);
    let (found, messages, few_bytes) = first_rows(&mut world, 1, 5);
    assert_eq!((found, messages), (vec![0, 1, 2, 3, 4], 2));
    let (found, messages, _) = first_rows(&mut world, 1, -3);
    assert_eq!((found, messages), (vec![63, 62, 61], 2));
    let (found, _, all_bytes) = first_rows(&mut world, 1, 64);
    assert_eq!(found, (0..64).collect::<Vec<i64>>());
    assert!(few_bytes * 4 < all_bytes, "{few_bytes} of {all_bytes}");
}

/// Rows that do not pass are replaced by the next ones, wherever those are.
#[test]
fn more_rows_are_fetched_where_the_first_do_not_pass() {
    for drop in [2, 3, 7, 40] {
        let pass = |i: usize| i.is_multiple_of(drop);
        let mut world = four_slots(&|i| if pass(i) { i as i64 } else { -1 });
        let all: Vec<i64> = (0..64usize)
            .filter(|i| pass(*i))
            .map(|i| i as i64)
            .collect();
        for count in [1, 2, 5, 64] {
            let wanted: Vec<i64> = all.iter().copied().take(count).collect();
            assert_eq!(first_rows(&mut world, 1, count as i64).0, wanted, "{drop}");
            let wanted: Vec<i64> = all.iter().rev().copied().take(count).collect();
            assert_eq!(
                first_rows(&mut world, 1, -(count as i64)).0,
                wanted,
                "{drop}"
            );
        }
    }
}

/// A program with rows too large for one answer sees every row, and none twice.
#[test]
fn large_first_rows_come_in_several_answers() {
    let mut world = four_slots(&|i| {
        if i < 20 {
            i as i64
        } else {
            2_000_000 + i as i64
        }
    });
    for count in [3, 22, 30] {
        let (mut found, _, _) = first_rows(&mut world, 1, count);
        let answered = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), answered, "no row comes twice");
        let wanted = (0..count).map(|i| if i < 20 { i } else { 2_000_000 + i });
        found.truncate(count as usize);
        assert_eq!(found, wanted.collect::<Vec<i64>>());
    }
}

#[test]
fn rows_away_come_in_pieces_that_fit_a_message() {
    let mut world = World::new(3, 1);
    let names: Vec<String> = (0..2_500).map(|n| format!("row{n:05}x0")).collect();
    for name in &names {
        world.load(key(name), 1);
    }
    for name in &names {
        run(&mut world, 3, add(name, 1));
    }
    let now = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    (world.largest_bytes, world.units_max) = (0, 0);
    for read in [
        Read::Snapshot(Snapshot::exactly(now)),
        Read::Lock(LockMode::Shared),
    ] {
        let all = scan_all(&mut world, 1, read, 10_000, false);
        assert_eq!(all, vec![2; names.len()]);
        let op = sum_op(read);
        let txn = world.begin(shard(1));
        let id = world.submit_to(txn, shard(1), op, false);
        world.settle();
        let reply = world.take_answer(id).expect("it is answered");
        assert!(reply.result.is_ok(), "{reply:?}");
        let commit = world.commit(txn);
        world.settle();
        assert!(world.take_answer(commit).is_some());
    }
    // In one message, 2,500 rows would be more than 100,000 bytes.
    assert!(world.largest_bytes < 80_000, "{}", world.largest_bytes);
    // No step lists all of them, either: at most a slice, and the rows of a turn.
    assert!(world.units_max <= 2_000, "{}", world.units_max);

    // No step forgets all of them when their table is dropped.
    world.units_max = 0;
    world.call(shard(1), |protocol, cx| protocol.forget_index(cx, TABLE));
    let away = |world: &World| world.shards[&shard(1)].protocol.home.table.len();
    assert_eq!(away(&world), names.len() - 1_000);
    while away(&world) > 0 {
        world.tick(1);
    }
    world.settle();
    assert!(world.units_max <= 1_000, "{}", world.units_max);
}
