//! Requests that wait whatever their age, until others wait for them (`crate::alone`).

use super::local::{add, died, number, shard};
use super::schedules::{both, deliver_but, done};
use super::world::{World, key};
use base::{NodeId, Planted, TxnId};
use txn::{OpId, Protocol};

fn holds(world: &mut World, txn: TxnId, name: &str) {
    let id = world.submit(txn, add(name, 1), false);
    world.settle();
    assert!(done(world, id), "{name} is free");
}

/// Asks for a row, and goes on until nothing moves.
fn asks(world: &mut World, txn: TxnId, name: &str) -> OpId {
    let id = world.submit(txn, add(name, 1), false);
    world.settle();
    id
}

fn loaded() -> World {
    let mut world = World::new(4, 1);
    for name in ["a0", "b0"] {
        world.load(key(name), 10);
    }
    world
}

/// Three younger transactions on two other nodes, each of which is to go on after its first
/// operation: none dies.
#[test]
fn younger_ones_that_hold_nothing_wait_for_a_row_elsewhere() {
    let mut world = loaded();
    let holder = world.begin(shard(1));
    holds(&mut world, holder, "a0");
    let waiting = [3, 3, 4].map(|at| world.begin(shard(at)));
    let asked = waiting.map(|txn| asks(&mut world, txn, "a0"));
    assert!(asked.iter().all(|id| world.take_answer(*id).is_none()));
    let wants = |_: &base::Key| true;
    let told = [1, 3, 4].map(|at| {
        let rows = world.shards[&shard(at)].protocol.awaited_rows(&wants, 9);
        let rows = rows.iter().map(|row| (row.holder, row.waiters));
        rows.collect::<Vec<_>>()
    });
    // One on node 3 waits for the row, and one for its lock there.
    assert_eq!(told, [vec![], vec![(None, 2)], vec![(None, 1)]]);
    let mut before = holder;
    let mut left = waiting.iter().zip(asked).collect::<Vec<_>>();
    for value in 12..15 {
        world.commit(before);
        world.settle();
        let mut found = None;
        left.retain(|(txn, id)| match world.take_answer(*id) {
            Some(reply) => {
                assert_eq!(number(&reply), Some(value));
                found = Some(**txn);
                false
            }
            None => true,
        });
        before = found.expect("one of them has the row");
    }
}

#[test]
fn it_dies_when_its_transaction_asks_for_more() {
    let mut world = loaded();
    let older = world.begin(shard(1));
    holds(&mut world, older, "a0");
    let younger = world.begin(shard(3));
    let first = asks(&mut world, younger, "a0");
    assert!(world.take_answer(first).is_none());
    asks(&mut world, younger, "b0");
    assert!(died(&world.take_answer(first).unwrap()));
}

/// T1 has a0, T2 on the node of T3 waits for it. T3 has b0 and waits behind T2. T1 asks for b0.
#[test]
fn whoever_waits_for_its_lock_exposes_it() {
    both(Planted::LeapStaysAlone, |world| {
        let first = world.begin(shard(1));
        let third = world.begin(shard(3));
        let second = world.begin(shard(3));
        holds(world, first, "a0");
        holds(world, third, "b0");
        asks(world, second, "a0");
        asks(world, third, "a0");
        let last = asks(world, first, "b0");
        done(world, last)
    });
}

/// As above, with T3 on another node than T2: it waits behind the turn of T2 at the home of a0.
fn behind_its_turn(world: &mut World, at: u16) -> bool {
    let first = world.begin(shard(at));
    let third = world.begin(shard(4));
    let second = world.begin(shard(3));
    holds(world, first, "a0");
    holds(world, third, "b0");
    asks(world, second, "a0");
    asks(world, third, "a0");
    let last = asks(world, first, "b0");
    done(world, last)
}

#[test]
fn whoever_waits_behind_its_turn_exposes_it() {
    // The row is at home, and away.
    both(Planted::LeapStaysAlone, |world| behind_its_turn(world, 1));
    both(Planted::LeapStaysAlone, |world| behind_its_turn(world, 2));
}

/// T2 asks for a0 when T3, which holds b0, waits for its lock already.
#[test]
fn it_is_not_alone_where_others_wait() {
    let mut world = loaded();
    let first = world.begin(shard(1));
    let third = world.begin(shard(3));
    let second = world.begin(shard(3));
    holds(&mut world, first, "a0");
    holds(&mut world, third, "b0");
    world.submit(second, add("a0", 1), false);
    world.submit(third, add("a0", 1), false);
    world.settle();
    let last = asks(&mut world, first, "b0");
    assert!(done(&mut world, last));
}

/// The row of T on node 3 is on its way to node 2 and cannot arrive. Until that is known, T waits
/// at the home behind the turn of a transaction of node 4, with its lock. The row comes back to
/// node 3: T has it, and the other one after it.
#[test]
fn whoever_waits_for_its_turn_has_the_row_when_it_comes_back() {
    let mut world = loaded();
    let before = world.begin(shard(3));
    holds(&mut world, before, "a0");
    world.commit(before);
    world.settle();
    assert_eq!(world.owner(&key("a0")), shard(3));
    let mut lost = Vec::new();
    let asked = [2, 4, 3].map(|at| {
        let txn = world.begin(shard(at));
        let id = world.submit(txn, add("a0", 1), false);
        lost.extend(deliver_but(&mut world, &["Response"]));
        (txn, id)
    });
    assert_eq!(lost.len(), 1, "the row is on its way to node 2");
    world.cut(NodeId(2), NodeId(3));
    world.settle();
    let [refused, other, back] = asked;
    let reply = world.take_answer(refused.1);
    assert!(reply.is_some_and(|reply| reply.result.is_err()));
    assert!(done(&mut world, back.1), "the row is here");
    assert!(world.take_answer(other.1).is_none());
    world.commit(back.0);
    world.settle();
    assert!(done(&mut world, other.1));
}
