//! Commits that their client calls off.

use super::world::{TABLE, World, key};
use base::{NodeId, ShardId};
use bed::programs::{Test, program, row};
use txn::{AbortReason, Op, OpResult, Outcome, Protocol};

/// The last operation, with which the commit is to ride, finds its row, and the vote that was asked
/// for with it is lost. The commit that follows has all other votes. When it is called off, it is
/// answered.
#[test]
fn a_commit_after_a_failed_ride_is_answered_when_it_is_called_off() {
    let shard = |node| ShardId::new(NodeId(node), 0);
    let mut world = World::new(3, 1);
    world.load_at(shard(2), key(TABLE, "b"), 20);
    world.load_at(shard(3), key(TABLE, "c"), 5);
    let txn = world.begin(shard(1));
    let change = |name| Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Add(1)),
    };
    for (node, name) in [(2, "b"), (3, "c")] {
        let id = world.submit_to(txn, shard(node), change(name), false);
        world.settle();
        assert!(world.take_answer(id).is_some());
    }
    let insert = Op::Insert {
        key: key(TABLE, "c"),
        row: row(9).into(),
    };
    let last = world.submit_to(txn, shard(3), insert, true);
    world.flights.retain(|flight| flight.to != shard(2));
    world.settle();
    let reply = world.take_answer(last).expect("node 3 has answered");
    assert_eq!((reply.result, reply.outcome), (Ok(OpResult::Exists), None));
    let commit = world.commit(txn);
    world.settle();
    assert!(world.take_answer(commit).is_none(), "node 2 has not voted");
    world.abort(txn);
    world.settle();
    let outcome = world.take_answer(commit).and_then(|reply| reply.outcome);
    let called_off = Outcome::Aborted(AbortReason::Requested);
    assert_eq!(outcome, Some(called_off));
}

/// All have promised, and one vote is under way: the promises still make the commit if this node
/// crashes before it has ended its own durably.
#[test]
fn nobody_is_told_of_an_abort_before_it_is_true() {
    let shard = |node| ShardId::new(NodeId(node), 0);
    let mut world = World::new(2, 1);
    for node in [1, 2] {
        world.load_at(shard(node), key(TABLE, "b"), 20);
    }
    let txn = world.begin(shard(1));
    for node in [1, 2] {
        let change = Op::Modify {
            key: key(TABLE, "b"),
            program: program(Test::Add(1)),
        };
        let id = world.submit_to(txn, shard(node), change, false);
        world.settle();
        assert!(world.take_answer(id).is_some());
    }
    world.commit(txn);
    world.flush_all();
    let told = world
        .call(shard(1), |protocol, cx| protocol.abort(cx, txn))
        .wait;
    let durable = world.nodes[&NodeId(1)].disk.borrow().durable;
    assert!(told > durable, "{told:?} is durable already");
    world.settle();
    let durable = world.nodes[&NodeId(1)].disk.borrow().durable;
    assert!(told <= durable);
}
