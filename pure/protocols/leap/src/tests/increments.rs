//! Formulas of several transactions on one row (ADR 0006).

use super::local::{bump, died, get, insert, number, run, shard};
use super::random::sum_op;
use super::world::{World, key};
use base::{Datum, NodeId, Ts, TxnId, Type};
use bed::programs::{self, Test};
use store::FormulaOp;
use txn::{LockMode, Op, OpError, OpReply, OpResult, Outcome, Protocol, Read, Snapshot};

fn world() -> World {
    let mut world = World::new(3, 1);
    for (name, value) in [("a0", 10), ("b0", 20), ("a1", 30)] {
        world.load(key(name), value);
    }
    world
}

/// A transaction on the first node that has written something already.
fn writer(world: &mut World, own: &str) -> TxnId {
    let txn = world.begin(shard(1));
    step(world, txn, insert(own, 1));
    txn
}

/// Runs one operation of a transaction, and delivers everything.
fn step(world: &mut World, txn: TxnId, op: Op) -> OpReply {
    let id = world.submit(txn, op, false);
    world.settle();
    world.take_answer(id).expect("nobody is in the way")
}

fn end(world: &mut World, txn: TxnId) -> bool {
    let id = world.commit(txn);
    world.settle();
    committed(&world.take_answer(id).expect("nobody is in the way"))
}

fn committed(reply: &OpReply) -> bool {
    matches!(reply.outcome, Some(Outcome::Committed { .. }))
}

fn value(world: &mut World, name: &str) -> Option<i64> {
    number(&run(world, 1, get(name)).1)
}

#[test]
fn increments_share_their_row_until_they_commit() {
    let mut world = world();
    let (one, two, three) = (
        writer(&mut world, "x0"),
        writer(&mut world, "y0"),
        writer(&mut world, "z0"),
    );
    for (txn, delta) in [(one, 1), (two, 20), (three, 300)] {
        let reply = step(&mut world, txn, bump("a0", delta));
        assert!(matches!(
            reply.result,
            Ok(OpResult::Modified { written: true, .. })
        ));
    }
    // A reader of what they add to would depend on them.
    let reader = writer(&mut world, "w0");
    assert!(died(&step(&mut world, reader, get("a0"))));
    // They are ordered as their commits, and one that is rolled back leaves nothing.
    assert!(end(&mut world, three));
    world.call(shard(1), |protocol, cx| protocol.abort(cx, two));
    assert!(end(&mut world, one));
    assert_eq!(value(&mut world, "a0"), Some(311));
    world.flush_all();
    world.crash(NodeId(1), 0);
    world.restart(NodeId(1));
    world.announce(NodeId(1));
    world.settle();
    assert_eq!(value(&mut world, "a0"), Some(311));
}

#[test]
fn an_increment_that_may_leave_the_range_is_alone() {
    let mut world = world();
    world.load(key("m0"), i64::MAX - 5);
    let (one, two) = (writer(&mut world, "x0"), writer(&mut world, "y0"));
    step(&mut world, one, bump("m0", 3));
    assert!(died(&step(&mut world, two, bump("m0", 3))));
    assert!(end(&mut world, one));
    let three = writer(&mut world, "z0");
    assert!(matches!(
        step(&mut world, three, bump("m0", 3)).result,
        Err(OpError::Sql(_))
    ));
}

#[test]
fn guards_hold_and_extremes_share_whoever_commits() {
    let mut world = world();
    let (one, two, three) = (
        writer(&mut world, "x0"),
        writer(&mut world, "y0"),
        writer(&mut world, "z0"),
    );
    let spend = |amount| Op::Modify {
        key: key("a0"),
        program: programs::spending(amount),
    };
    let is_written = |reply: &OpReply| match &reply.result {
        Ok(OpResult::Modified { written, .. }) => *written,
        other => panic!("{other:?}"),
    };
    let max = |value| programs::formula(key("b0"), Type::Int8, FormulaOp::Max(Datum::Int(value)));
    for (txn, value) in [(one, 30), (two, 25)] {
        assert!(is_written(&step(&mut world, txn, spend(4))));
        assert!(is_written(&step(&mut world, txn, max(value))));
    }
    // It depends on the others whether there is as much, and what an addition makes of the largest.
    assert!(died(&step(&mut world, three, spend(4))));
    let four = writer(&mut world, "w0");
    assert!(died(&step(&mut world, four, bump("b0", 1))));
    // An addition must not break a guard that was answered.
    let five = writer(&mut world, "v0");
    assert!(died(&step(&mut world, five, bump("a0", -3))));
    assert!(end(&mut world, two));
    assert!(end(&mut world, one));
    assert_eq!(value(&mut world, "a0"), Some(2));
    assert_eq!(value(&mut world, "b0"), Some(30));
    let six = writer(&mut world, "u0");
    assert!(!is_written(&step(&mut world, six, spend(4))));
    assert!(end(&mut world, six));
    assert_eq!(value(&mut world, "a0"), Some(2));
}

/// A scan that finds rows in a snapshot and locks them, at READ COMMITTED. What others have added
/// beside the own increment counts, and no transaction adds more until the commit.
#[test]
fn a_scan_locks_and_rereads_a_row_under_an_own_increment() {
    let mut world = world();
    let one = writer(&mut world, "x0");
    step(&mut world, one, bump("a0", 1));
    let now = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    let two = writer(&mut world, "y0");
    step(&mut world, two, bump("a0", 20));
    assert!(end(&mut world, two));
    let read = Read::LockRows {
        snapshot: Snapshot::exactly(now),
        mode: LockMode::Exclusive,
    };
    let scan = Op::Scan(programs::scan(read, Test::Read));
    let id = world.submit_to(one, shard(1), scan, false);
    world.settle();
    let reply = world.take_answer(id).expect("nobody is in the way");
    let Ok(OpResult::Rows { batch, .. }) = &reply.result else {
        panic!("{reply:?}");
    };
    assert_eq!(batch.datums, [31, 20, 1].map(Datum::Int));
    let three = writer(&mut world, "z0");
    assert!(died(&step(&mut world, three, bump("a0", 300))));
    assert!(end(&mut world, one));
    assert_eq!(value(&mut world, "a0"), Some(31));
}

#[test]
fn a_row_leaves_when_its_increments_have_ended() {
    let mut world = world();
    let one = writer(&mut world, "x0");
    step(&mut world, one, bump("a0", 5));
    // A younger one dies at the owner.
    let far = world.begin(shard(2));
    step(&mut world, far, insert("y1", 1));
    assert!(died(&step(&mut world, far, bump("a0", 1))));
    // An older one waits.
    let far = world.begin_as(shard(2), Some(Ts(2)));
    step(&mut world, far, insert("y1", 1));
    let id = world.submit(far, bump("a0", 1), false);
    world.settle();
    assert!(world.take_answer(id).is_none());
    assert!(end(&mut world, one));
    world.settle();
    let reply = world.take_answer(id).expect("the row has come");
    assert!(reply.result.is_ok());
    assert!(end(&mut world, far));
    assert_eq!(value(&mut world, "a0"), Some(16));
}

#[test]
fn a_commit_that_is_confirmed_has_its_increments_to_itself() {
    let mut world = world();
    let one = writer(&mut world, "x0");
    step(&mut world, one, bump("a0", 5));
    let two = writer(&mut world, "y0");
    step(&mut world, two, bump("a0", 7));
    let id = world.submit_to(one, shard(2), sum_op(Read::Lock(LockMode::Shared)), false);
    world.settle();
    assert!(world.take_answer(id).is_some());
    // The older one waits for the younger one before it draws its timestamp.
    let commit = world.commit(one);
    world.settle();
    assert!(world.take_answer(commit).is_none());
    assert!(end(&mut world, two));
    world.settle();
    let reply = world.take_answer(commit).expect("all have confirmed");
    assert!(committed(&reply));
    assert_eq!(value(&mut world, "a0"), Some(22));
}
