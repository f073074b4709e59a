//! What ends a transaction besides wait-die: silence, outages, timeouts, a full disk or memory.

use super::local::{add, bump, get, insert, number, shard};
use super::world::{World, key, options};
use base::{NodeId, Ts, TxnId};
use store::Write;
use txn::{AbortReason, Op, OpError, OpId, OpReply, Outcome, Protocol, Submitted, Tie, TxnOptions};

fn world() -> World {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    world.load(key("a1"), 10);
    world
}

fn reason(reply: &OpReply) -> Option<&AbortReason> {
    match &reply.result {
        Err(OpError::Aborted(reason)) => Some(reason),
        _ => None,
    }
}

fn away(name: &str, home: u16) -> AbortReason {
    AbortReason::RowCutOff {
        key: key(name),
        at: shard(home),
        tie: Tie::Home,
    }
}

#[test]
fn a_home_that_is_away_ends_those_who_wait_for_it() {
    let mut world = world();
    let waiting = world.begin(shard(2));
    let id = world.submit(waiting, add("a0", 1), true);
    world.call(shard(2), |protocol, cx| {
        protocol.on_peer_down(cx, NodeId(1))
    });
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&away("a0", 1)));
    // It is not asked again until it is back, and other rows are not concerned.
    let other = world.begin(shard(2));
    let id = world.submit(other, add("a0", 1), true);
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&away("a0", 1)));
    let own = world.begin(shard(2));
    let id = world.submit(own, add("a1", 1), true);
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    world.call(shard(2), |protocol, cx| protocol.on_peer(cx, NodeId(1), 1));
    world.settle();
    let again = world.begin(shard(2));
    let id = world.submit(again, add("a0", 1), true);
    world.settle();
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    assert_eq!(world.value(&key("a0")), Some(11));
}

#[test]
fn a_silent_home_is_given_up_and_the_row_comes_when_it_speaks() {
    let mut world = world();
    let txn = world.begin(shard(2));
    let id = world.submit(txn, add("a0", 1), true);
    world.flights.clear();
    for _ in 0..40 {
        world.tick(500_000);
        world.flights.clear();
    }
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&away("a0", 1)));
    // The request goes on after its transaction: the requester gets the row.
    for _ in 0..3 {
        world.tick(5_000_000);
        world.settle();
    }
    assert_eq!(world.owner(&key("a0")), shard(2));
    assert_eq!(world.value(&key("a0")), Some(10));
    assert!(world.is_idle());
}

fn submit_with(world: &mut World, at: u16, timeout_us: u64) -> OpId {
    let (txn, id) = (
        TxnId {
            shard: shard(at),
            incarnation: 1,
            counter: 1_000_000,
        },
        OpId(1_000_000),
    );
    world.now = world.now.after(1);
    let submitted = world.call(shard(at), |protocol, cx| {
        // Old enough to wait for any transaction that has the row.
        let chosen = TxnOptions {
            lock_timeout_us: timeout_us,
            ..options(Ts(2))
        };
        protocol.begin(cx, txn, chosen);
        protocol.submit(
            cx,
            txn::Submission {
                txn,
                id,
                to: shard(1),
                planned: 1,
                op: add("a0", 1),
                last: true,
            },
        )
    });
    assert_eq!(submitted, Submitted::Pending);
    id
}

#[test]
fn a_lock_that_is_not_free_in_time_ends_its_transaction() {
    let mut world = world();
    let holder = world.begin(shard(1));
    world.submit(holder, get("a0"), false);
    let id = submit_with(&mut world, 1, 50_000);
    world.tick(49_000);
    assert!(world.take_answer(id).is_none());
    world.tick(2_000);
    let reply = world.take_answer(id).unwrap();
    let key = key("a0");
    let late = AbortReason::LockTimeout { key, holder };
    assert_eq!(reason(&reply), Some(&late));
    world.commit(holder);
    assert!(world.is_idle());
}

#[test]
fn a_row_that_another_node_does_not_give_in_time_ends_its_transaction() {
    let mut world = world();
    let holder = world.begin(shard(1));
    world.submit(holder, get("a0"), false);
    let id = submit_with(&mut world, 2, 50_000);
    world.settle();
    world.tick(49_000);
    world.settle();
    assert!(world.take_answer(id).is_none());
    world.tick(2_000);
    let reply = world.take_answer(id).unwrap();
    let late = AbortReason::MoveTimeout(key("a0"));
    assert_eq!(reason(&reply), Some(&late));
    // The row comes when it is free, and serves the next transaction there.
    world.commit(holder);
    world.settle();
    let next = world.begin(shard(2));
    let id = world.submit(next, add("a0", 1), true);
    world.settle();
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    assert_eq!(world.value(&key("a0")), Some(11));
    for _ in 0..3 {
        world.tick(5_000_000);
        world.settle();
    }
    assert!(world.is_idle());
}

#[test]
fn a_full_disk_refuses_writes_and_lets_rows_move() {
    let mut world = world();
    world.nodes[&NodeId(2)].disk.borrow_mut().is_full = true;
    let writer = world.begin(shard(2));
    let id = world.submit(writer, add("a0", 1), true);
    world.settle();
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&AbortReason::DiskFull(shard(2))));
    let reader = world.begin(shard(2));
    let id = world.submit(reader, get("a0"), true);
    world.settle();
    let reply = world.take_answer(id).unwrap();
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    // Another node can get the row and write it.
    let writer = world.begin(shard(3));
    let id = world.submit(writer, add("a0", 1), true);
    world.settle();
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    assert_eq!(world.value(&key("a0")), Some(11));
}

#[test]
fn full_memory_refuses_writes_but_deletes() {
    let mut world = world();
    world.nodes[&NodeId(2)].disk.borrow_mut().is_memory_full = true;
    let full = AbortReason::MemoryFull(shard(2));
    let writer = world.begin(shard(2));
    let id = world.submit(writer, add("a1", 1), true);
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&full));
    let remover = world.begin(shard(2));
    let remove = |name: &str| Op::Write {
        key: key(name),
        write: Write::Delete,
    };
    let id = world.submit(remover, remove("a1"), true);
    let reply = world.take_answer(id).unwrap();
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    assert_eq!(world.value(&key("a1")), None);
    // For a deletion the row would have to come first.
    let remover = world.begin(shard(2));
    let id = world.submit(remover, remove("a0"), true);
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reason(&reply), Some(&full));
    assert!(world.is_idle());
}

/// Rows do not move to a node without memory for them. One operation reads or changes them where
/// they are; a transaction that needs them at that node is refused.
#[test]
fn no_row_moves_to_a_node_whose_memory_is_full() {
    let owner_of = |world: &World| world.owner(&key("a0"));
    for owner in [1, 3] {
        let mut world = world();
        // At the row's home, or elsewhere.
        let txn = world.begin(shard(owner));
        let id = world.submit(txn, add("a0", 1), true);
        world.settle();
        world.take_answer(id).unwrap();
        assert_eq!(owner_of(&world), shard(owner));
        world.nodes[&NodeId(2)].disk.borrow_mut().is_memory_full = true;
        // A transaction of one change goes to the row, and so does a larger one's increment.
        for (op, last) in [(add("a0", 1), true), (bump("a0", 1), false)] {
            let txn = world.begin(shard(2));
            let id = world.submit(txn, op, last);
            world.settle();
            let reply = world.take_answer(id).expect("it is answered");
            assert!(reply.result.is_ok(), "{reply:?}");
            if !last {
                let id = world.commit(txn);
                world.settle();
                let reply = world.take_answer(id).unwrap();
                assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
            }
        }
        // Readers with locks, which writers elsewhere respect.
        let reader = world.begin(shard(2));
        let id = world.submit(reader, get("a0"), false);
        world.settle();
        assert_eq!(number(&world.take_answer(id).unwrap()), Some(13));
        let writer = world.begin_as(shard(owner), Some(Ts(5)));
        let waits = world.submit(writer, add("a0", 1), true);
        world.settle();
        assert!(
            world.take_answer(waits).is_none(),
            "the reader has it locked"
        );
        let write = world.submit(reader, add("a0", 1), false);
        world.settle();
        let reply = world.take_answer(write).unwrap();
        assert_eq!(reason(&reply), Some(&AbortReason::MemoryFull(shard(2))));
        world.call(shard(2), |protocol, cx| protocol.abort(cx, reader));
        world.settle();
        assert_eq!(number(&world.take_answer(waits).unwrap()), Some(14));
        let reader = world.begin(shard(2));
        let id = world.submit(reader, get("a0"), false);
        world.settle();
        assert_eq!(number(&world.take_answer(id).unwrap()), Some(14));
        let id = world.commit(reader);
        world.settle();
        let reply = world.take_answer(id).unwrap();
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
        let inserter = world.begin(shard(2));
        let id = world.submit(inserter, insert("b0", 1), true);
        world.settle();
        let reply = world.take_answer(id).unwrap();
        assert_eq!(reason(&reply), Some(&AbortReason::MemoryFull(shard(2))));
        assert_eq!(owner_of(&world), shard(owner), "it has not moved");
        let held = world.shards[&shard(2)].protocol.owner.held.len();
        assert_eq!(held, 0, "nor has anything else");
        // With memory again the rows come.
        world.nodes[&NodeId(2)].disk.borrow_mut().is_memory_full = false;
        for _ in 0..3 {
            let txn = world.begin(shard(2));
            let id = world.submit(txn, get("a0"), false);
            world.settle();
            world.take_answer(id).unwrap();
            world.commit(txn);
            world.tick(2_000_000);
            world.settle();
        }
        assert_eq!(owner_of(&world), shard(2));
        assert!(world.is_idle());
    }
}
