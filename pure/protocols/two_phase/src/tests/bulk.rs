//! Many rows in one operation: turns, waits, rows that exist, rollback.

use super::programs::{Test, program, row};
use super::world::{TABLE, World};
use crate::Settings;
use base::{Key, NodeId, ShardId, Slot, TxnId};
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
        world.load(home(), numbered(n), 1);
    }
    let settings = Settings {
        scan_rows_max: 6,
        ..Settings::default()
    };
    world.call(home(), |protocol, _| protocol.set_settings(settings));
    let txn = world.begin(home());
    // 12 comes twice, at the places 12 and 13.
    let numbers = (0..=12).chain(12..20);
    let id = world.submit(txn, home(), many(numbers), false);
    let reply = answer(&mut world, id, 3);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![5, 9, 13])));
    assert_eq!(world.value(home(), &numbered(1)), None, "not committed");
    // Behind its own rows, and none of those once more.
    let id = world.submit(txn, home(), many(20..26), false);
    assert_eq!(answer(&mut world, id, 0).result, Ok(OpResult::Done));
    let id = world.submit(txn, home(), many(25..27), false);
    let reply = answer(&mut world, id, 0);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![0])));
    commit(&mut world, txn);
    world.shards[&home()]
        .protocol
        .validate(&world.shards[&home()].store);
    for n in 0..27 {
        let expected = if [5, 9].contains(&n) { 1 } else { 7 };
        assert_eq!(world.value(home(), &numbered(n)), Some(expected), "{n}");
    }
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn rows_of_others_are_waited_for_and_then_told() {
    let mut world = World::new(1, 1);
    // The older one: it may wait though it has locked rows before.
    let second = world.begin(home());
    let first = world.begin(home());
    let id = world.submit(first, home(), many([7]), false);
    assert_eq!(answer(&mut world, id, 0).result, Ok(OpResult::Done));
    let id = world.submit(second, home(), many(0..10), false);
    assert!(world.take_answer(id).is_none(), "row 7 is locked");
    commit(&mut world, first);
    let reply = world.take_answer(id).expect("the lock is free");
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![7])));
    world.call(home(), |protocol, cx| protocol.abort(cx, second));
    for n in 0..10 {
        let expected = (n == 7).then_some(7);
        assert_eq!(world.value(home(), &numbered(n)), expected, "{n}");
    }
    assert!(world.shards[&home()].protocol.is_idle());
}

#[test]
fn removed_rows_come_back_in_the_same_transaction() {
    let mut world = World::new(1, 1);
    for n in 0..8 {
        world.load(home(), numbered(n), 1);
    }
    let txn = world.begin(home());
    for n in 2..6 {
        let remove = Op::Modify {
            key: numbered(n),
            program: program(Test::Remove),
        };
        let id = world.submit(txn, home(), remove, false);
        world.take_answer(id).expect("it is free");
    }
    let id = world.submit(txn, home(), many(2..7), false);
    let reply = answer(&mut world, id, 0);
    assert_eq!(reply.result, Ok(OpResult::SomeExist(vec![4])));
    commit(&mut world, txn);
    for n in 0..8 {
        let expected = if (2..6).contains(&n) { 7 } else { 1 };
        assert_eq!(world.value(home(), &numbered(n)), Some(expected), "{n}");
    }
}
