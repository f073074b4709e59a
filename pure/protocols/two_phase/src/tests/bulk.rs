//! Many rows in one operation: turns, waits, rows that exist, rollback.

use super::world::{TABLE, World};
use crate::Settings;
use base::{Key, NodeId, ShardId, Slot, TxnId};
use bed::programs::{Test, program, row};
use local::Limits;
use txn::{NewRows, Op, OpId, OpReply, OpResult, Outcome, Protocol};

fn home() -> ShardId {
    ShardId::new(NodeId(1), 0)
}

fn numbered(n: u32) -> Key {
    Key::new(TABLE, Slot(3), n.to_be_bytes().to_vec())
}

fn many(numbers: impl IntoIterator<Item = u32>) -> Op {
    let mut rows = NewRows::new(TABLE, 0);
    for n in numbers {
        rows.push(Slot(3), &n.to_be_bytes(), |out| out.extend(row(7)));
    }
    Op::InsertMany(rows)
}

/// Gives an operation its turns.
fn answer(world: &mut World, id: OpId, turns: usize) -> OpReply {
    for turn in 0..turns {
        assert!(world.take_answer(id).is_none(), "after {turn} turns");
        world.call(home(), |protocol, cx| protocol.on_tick(cx));
    }
    world.take_answer(id).expect("it had its turns")
}

fn commit(world: &mut World, txn: TxnId) {
    let id = world.commit(txn);
    let ended = world.take_answer(id).expect("nobody else takes part");
    assert!(matches!(ended.outcome, Some(Outcome::Committed { .. })));
}

#[test]
fn rows_are_inserted_in_turns_and_those_that_exist_are_told() {
    let mut world = World::new(1, 1);
    for n in [5, 9] {
        world.load_at(home(), numbered(n), 1);
    }
    let settings = Settings {
        limits: Limits {
            scan_rows_max: 6,
            ..Limits::default()
        },
        ..Settings::default()
    };
    world.call(home(), |protocol, _| protocol.set_settings(settings));
    let txn = world.begin(home());
    // 12 comes twice, at the places 12 and 13.
    let numbers = (0..=12).chain(12..20);
    let id = world.submit_to(txn, home(), many(numbers), false);
    let reply = answer(&mut world, id, 3);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![5, 9, 13])));
    assert_eq!(world.value_at(home(), &numbered(1)), None, "not committed");
    // Behind its own rows, and none of those once more.
    let id = world.submit_to(txn, home(), many(20..26), false);
    assert_eq!(answer(&mut world, id, 0).result, Ok(OpResult::Done));
    let id = world.submit_to(txn, home(), many(25..27), false);
    let reply = answer(&mut world, id, 0);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![0])));
    commit(&mut world, txn);
    world.shards[&home()]
        .protocol
        .validate(&world.shards[&home()].store);
    for n in 0..27 {
        let expected = if [5, 9].contains(&n) { 1 } else { 7 };
        assert_eq!(world.value_at(home(), &numbered(n)), Some(expected), "{n}");
    }
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn rows_of_others_are_waited_for_and_then_told() {
    let mut world = World::new(1, 1);
    // The older one: it may wait though it has locked rows before.
    let second = world.begin(home());
    let first = world.begin(home());
    let id = world.submit_to(first, home(), many([7]), false);
    assert_eq!(answer(&mut world, id, 0).result, Ok(OpResult::Done));
    let id = world.submit_to(second, home(), many(0..10), false);
    assert!(world.take_answer(id).is_none(), "row 7 is locked");
    commit(&mut world, first);
    let reply = world.take_answer(id).expect("the lock is free");
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![7])));
    world.call(home(), |protocol, cx| protocol.abort(cx, second));
    for n in 0..10 {
        let expected = (n == 7).then_some(7);
        assert_eq!(world.value_at(home(), &numbered(n)), expected, "{n}");
    }
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn removed_rows_come_back_in_the_same_transaction() {
    let mut world = World::new(1, 1);
    for n in 0..8 {
        world.load_at(home(), numbered(n), 1);
    }
    let txn = world.begin(home());
    for n in 2..6 {
        let remove = Op::Modify {
            key: numbered(n),
            program: program(Test::Remove),
        };
        let id = world.submit_to(txn, home(), remove, false);
        world.take_answer(id).expect("it is free");
    }
    let id = world.submit_to(txn, home(), many(2..7), false);
    let reply = answer(&mut world, id, 0);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![4])));
    commit(&mut world, txn);
    for n in 0..8 {
        let expected = if (2..6).contains(&n) { 7 } else { 1 };
        assert_eq!(world.value_at(home(), &numbered(n)), Some(expected), "{n}");
    }
}

/// A commit of many rows, one of them an increment, is being installed: another increment of that
/// row is committed in one phase, by itself or with its only operation, and comes after it.
#[test]
fn an_increment_waits_for_a_large_commit_of_its_row() {
    let plus = |n| bed::programs::add_formula(numbered(n), base::Type::Int8, 1);
    for rides in [false, true] {
        for turns in 0..12 {
            let mut world = World::new(1, 1);
            world.load_at(home(), numbered(0), 1);
            let settings = Settings {
                limits: Limits {
                    slice_units: 4,
                    ..Limits::default()
                },
                ..Settings::default()
            };
            world.call(home(), |protocol, _| protocol.set_settings(settings));
            let large = world.begin(home());
            let small = world.begin(home());
            let ops = (1..20).map(|n| many([n])).chain([plus(0)]);
            for op in ops {
                let id = world.submit_to(large, home(), op, false);
                answer(&mut world, id, 0);
            }
            if !rides {
                let id = world.submit_to(small, home(), plus(0), false);
                answer(&mut world, id, 0);
            }
            let first = world.commit(large);
            let tick = |world: &mut World| world.call(home(), |p, cx| p.on_tick(cx));
            (0..turns).for_each(|_| tick(&mut world));
            let second = match rides {
                true => world.submit_to(small, home(), plus(0), true),
                false => world.commit(small),
            };
            (0..30).for_each(|_| tick(&mut world));
            for id in [first, second] {
                let ended = world.take_answer(id).expect("it is committed");
                let committed = matches!(ended.outcome, Some(Outcome::Committed { .. }));
                assert!(committed, "after {turns} turns: {ended:?}");
            }
            assert_eq!(world.value_at(home(), &numbered(0)), Some(3));
            assert!(world.shards[&home()].protocol.is_idle());
        }
    }
}
