//! Formulas of larger transactions: held at the owner of their row until the transaction ends.

use super::local::{add, bump, get, number, run, shard};
use super::random::sum_op;
use super::world::{World, key, kind};
use crate::Settings;
use base::{NodeId, TxnId};
use txn::{AbortReason, LockMode, OpError, OpId, OpReply, OpResult, Outcome, Protocol, Read};

/// Rows `a0`, `a1`, `a2` on three nodes; formulas on rows elsewhere go to their row.
fn world() -> World {
    let mut world = World::new(3, 1);
    for name in ["a0", "a1", "a2"] {
        world.load(key(name), 10);
    }
    world.settings(Settings {
        contended_from: 0,
        ..Settings::default()
    });
    world
}

fn value(world: &World, name: &str) -> Option<i64> {
    world.value(&key(name))
}

fn committed(reply: &OpReply) -> bool {
    matches!(reply.outcome, Some(Outcome::Committed { .. }))
}

fn answer(world: &mut World, id: OpId) -> OpReply {
    world.settle();
    world.take_answer(id).expect("everything is answered")
}

/// A transaction at a node that has written a row of its own and a formula elsewhere.
fn begun(world: &mut World, at: u16, own: &str, other: &str, delta: i64) -> TxnId {
    let txn = world.begin(shard(at));
    for op in [add(own, 1), bump(other, delta)] {
        let id = world.submit(txn, op, false);
        assert!(answer(world, id).result.is_ok());
    }
    txn
}

fn commit(world: &mut World, txn: TxnId) -> OpReply {
    let id = world.commit(txn);
    answer(world, id)
}

fn rest(world: &mut World) {
    for _ in 0..30 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
    assert!(world.is_idle(), "nothing is left");
}

#[test]
fn a_formula_in_a_block_moves_nothing() {
    let mut world = world();
    let txn = begun(&mut world, 2, "a1", "a0", 5);
    assert_eq!(value(&world, "a0"), Some(10), "it is pending");
    assert!(committed(&commit(&mut world, txn)));
    let cost = world.shards[&shard(2)].protocol.cost(txn).unwrap();
    assert_eq!(
        (cost.delays, cost.messages_on_path, cost.rows_moved),
        (2, 2, 0)
    );
    assert_eq!((cost.messages_off_path, cost.forced_writes), (2, 1));
    rest(&mut world);
    assert_eq!(world.owner(&key("a0")), shard(1));
    assert_eq!(
        (value(&world, "a0"), value(&world, "a1")),
        (Some(15), Some(11))
    );
}

#[test]
fn many_hold_formulas_on_one_row_and_end_in_any_order() {
    let mut world = world();
    let first = begun(&mut world, 2, "a1", "a0", 5);
    let second = begun(&mut world, 3, "a2", "a0", 7);
    // A change at the owner itself takes its place among the formulas, and does not wait.
    let (_, reply) = run(&mut world, 1, bump("a0", 100));
    assert!(committed(&reply));
    assert!(committed(&commit(&mut world, second)));
    assert!(committed(&commit(&mut world, first)));
    rest(&mut world);
    assert_eq!(value(&world, "a0"), Some(122));
}

#[test]
fn what_is_rolled_back_leaves_nothing() {
    let mut world = world();
    let txn = begun(&mut world, 2, "a1", "a0", 5);
    world.call(shard(2), |protocol, cx| protocol.abort(cx, txn));
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert!(committed(&reply));
    assert_eq!(value(&world, "a0"), Some(11));
    rest(&mut world);
}

#[test]
fn a_row_that_is_not_there_is_not_held() {
    let mut world = world();
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("x0", 5), false);
    let reply = answer(&mut world, id);
    assert!(
        matches!(reply.result, Ok(OpResult::Modified { found: false, .. })),
        "{reply:?}"
    );
    assert!(committed(&commit(&mut world, txn)));
    rest(&mut world);
}

#[test]
fn who_reads_what_it_has_shipped_takes_the_row() {
    for scans in [false, true] {
        let mut world = world();
        let txn = begun(&mut world, 2, "a1", "a0", 5);
        let id = match scans {
            false => world.submit(txn, get("a0"), false),
            true => world.submit_to(txn, shard(1), sum_op(Read::Lock(LockMode::Shared)), false),
        };
        let reply = answer(&mut world, id);
        assert_eq!(number(&reply), Some(15), "{reply:?}");
        assert_eq!(world.owner(&key("a0")), shard(2));
        assert!(committed(&commit(&mut world, txn)));
        rest(&mut world);
        assert_eq!(value(&world, "a0"), Some(15));
    }
}

/// A snapshot read asks, and does not wait for the end of the transaction.
#[test]
fn readers_ask_for_the_outcome() {
    let mut world = world();
    let txn = begun(&mut world, 2, "a1", "a0", 5);
    let read = |world: &mut World| {
        let reader = world.begin(shard(3));
        let ts = world.call(shard(3), |_, cx| cx.clock.tick(cx.now));
        let op = match get("a0") {
            txn::Op::Get { key, program, .. } => txn::Op::Get {
                key,
                read: Read::Snapshot(txn::Snapshot::exactly(ts)),
                program,
            },
            other => other,
        };
        let id = world.submit(reader, op, false);
        number(&answer(world, id))
    };
    assert_eq!(read(&mut world), Some(10));
    let id = world.commit(txn);
    world.flush(NodeId(2));
    assert!(committed(&world.take_answer(id).expect("it commits here")));
    // The outcome is lost.
    world.flights.clear();
    assert_eq!(read(&mut world), Some(15), "it was answered before");
    rest(&mut world);
}

/// A version that is decided above the owner's clock waits for one that may come below it. A reader
/// of the newest version waits with it: the version's transaction was answered.
#[test]
fn a_reader_of_the_newest_version_waits_for_what_was_answered() {
    let mut world = world();
    let open = begun(&mut world, 2, "a1", "a0", 5);
    let ahead = begun(&mut world, 3, "a2", "a0", 7);
    world.call(shard(3), |_, cx| {
        let far = base::Ts(cx.clock.reached().0 + (1 << 40));
        cx.clock.merge(far);
    });
    let id = world.commit(ahead);
    world.flush(NodeId(3));
    assert!(committed(
        &world.take_answer(id).expect("it commits at once")
    ));
    let reader = world.begin(shard(1));
    let txn::Op::Get { key, program, .. } = get("a0") else {
        unreachable!("it is a get")
    };
    let mut snapshot = txn::Snapshot::recent(base::Ts(1), base::Ts(1));
    snapshot.sole = true;
    let read = Read::Snapshot(snapshot);
    let id = world.submit(reader, txn::Op::Get { key, read, program }, true);
    for _ in 0..10 {
        world.settle();
        world.tick(5_000);
    }
    let reply = world.take_answer(id).expect("outcomes are asked for");
    assert_eq!(number(&reply), Some(17));
    assert!(committed(&commit(&mut world, open)));
    rest(&mut world);
    assert_eq!(value(&world, "a0"), Some(22));
}

#[test]
fn lost_late_and_repeated_outcomes() {
    let mut world = world();
    let txn = begun(&mut world, 2, "a1", "a0", 5);
    world.commit(txn);
    world.flush_all();
    let outcome = world.flights.remove(0);
    assert_eq!(kind(&outcome), "Resolve");
    world.tick(500_000);
    assert_eq!(kind(&world.flights[0]), "Resolve", "it is told again");
    world.deliver(outcome.clone());
    world.deliver(outcome.clone());
    world.settle();
    assert_eq!(value(&world, "a0"), Some(15));
    run(&mut world, 3, add("a0", 1));
    world.deliver(outcome);
    rest(&mut world);
    assert_eq!(value(&world, "a0"), Some(16));
}

/// An answer of a former life of the owner is worth nothing any more.
#[test]
fn a_restart_of_the_owner_ends_who_has_not_committed() {
    let mut world = world();
    let txn = begun(&mut world, 2, "a1", "a0", 5);
    world.crash(NodeId(1), 0);
    world.restart(NodeId(1));
    world.settle();
    let reply = commit(&mut world, txn);
    let lost = AbortReason::ParticipantLost(shard(1));
    assert_eq!(reply.outcome, Some(Outcome::Aborted(lost)));
    rest(&mut world);
    assert_eq!(
        (value(&world, "a0"), value(&world, "a1")),
        (Some(10), Some(10))
    );
}

#[test]
fn a_coordinator_that_restarts_has_rolled_back_or_still_owes() {
    for durable in [false, true] {
        let mut world = world();
        let txn = begun(&mut world, 2, "a1", "a0", 5);
        world.commit(txn);
        if durable {
            world.flush(NodeId(2));
        }
        world.flights.clear();
        world.crash(NodeId(2), 0);
        world.restart(NodeId(2));
        world.announce(NodeId(2));
        rest(&mut world);
        let expected = if durable { (15, 11) } else { (10, 10) };
        assert_eq!(value(&world, "a0"), Some(expected.0));
        assert_eq!(value(&world, "a1"), Some(expected.1));
    }
}

/// A number near the end of its range does not depend on the order of commits.
#[test]
fn without_room_the_row_goes_to_its_transaction() {
    let mut world = world();
    run(&mut world, 1, add("a0", i64::MAX - 20));
    let first = begun(&mut world, 2, "a1", "a0", 6);
    let second = world.begin(shard(3));
    let id = world.submit(second, bump("a0", 6), false);
    world.settle();
    assert!(committed(&commit(&mut world, first)));
    let reply = answer(&mut world, id);
    let died = matches!(
        reply.outcome,
        Some(Outcome::Aborted(AbortReason::Die { .. }))
    );
    assert!(died || reply.result.is_err(), "{reply:?}");
    world.call(shard(3), |protocol, cx| protocol.abort(cx, second));
    rest(&mut world);
    assert_eq!(value(&world, "a0"), Some(i64::MAX - 4));
}

/// The formula is the only one on its row, which is at another shard.
#[test]
fn a_formula_that_leaves_the_range_is_refused_before_the_commit() {
    let mut world = world();
    run(&mut world, 1, add("a0", i64::MAX - 20));
    let txn = world.begin(shard(2));
    for (name, value) in [("a1", 1), ("a0", 6)] {
        let id = world.submit(txn, bump(name, value), false);
        world.settle();
        assert!(answer(&mut world, id).result.is_ok());
    }
    let id = world.submit(txn, bump("a0", 600), false);
    world.settle();
    let refused = answer(&mut world, id).result;
    assert!(matches!(refused, Err(OpError::Sql(_))), "{refused:?}");
    world.call(shard(2), |protocol, cx| protocol.abort(cx, txn));
    rest(&mut world);
    assert_eq!(value(&world, "a0"), Some(i64::MAX - 20 + 10));
}
