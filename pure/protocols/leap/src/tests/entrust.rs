//! Transactions of one blind change go to the row; the row stays where it is.

use super::local::{add, bump, run, shard};
use super::world::{World, key, kind};
use base::NodeId;
use txn::{AbortReason, OpResult, Outcome, Protocol};

fn world() -> World {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    world
}

fn value(world: &World) -> Option<i64> {
    world.value(&key("a0"))
}

#[test]
fn a_blind_change_goes_to_its_row_in_one_round_trip() {
    let mut world = world();
    let before = world.count(|c| c.messages);
    let (txn, reply) = run(&mut world, 2, bump("a0", 5));
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    let changed = matches!(
        reply.result,
        Ok(OpResult::Modified {
            found: true,
            written: true,
            ..
        })
    );
    assert!(changed, "{reply:?}");
    let cost = world.shards[&shard(2)].protocol.cost(txn).unwrap();
    assert_eq!((cost.delays, cost.messages_on_path), (2, 2));
    assert_eq!((cost.messages_off_path, cost.forced_writes), (0, 1));
    assert_eq!(world.count(|c| c.messages) - before, 2);
    assert_eq!(world.owner(&key("a0")), shard(1), "the row has not moved");
    assert_eq!(value(&world), Some(15));
    assert_eq!(world.count(|c| c.txn_committed), 1, "it is counted once");
}

#[test]
fn a_row_that_is_away_is_found_and_its_place_is_remembered() {
    let mut world = world();
    run(&mut world, 3, add("a0", 1));
    let costs: Vec<u32> = [(); 2]
        .map(|()| run(&mut world, 2, bump("a0", 1)).0)
        .map(|txn| world.shards[&shard(2)].protocol.cost(txn).unwrap().delays)
        .to_vec();
    assert_eq!(costs, [4, 2], "the home is asked once");
    assert_eq!(world.owner(&key("a0")), shard(3));
    // The row moves on: the remembered place is wrong, and the home knows the owner.
    run(&mut world, 1, add("a0", 1));
    let (_, reply) = run(&mut world, 2, bump("a0", 1));
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    assert_eq!(value(&world), Some(15));
}

#[test]
fn a_row_that_nobody_else_uses_moves_after_all() {
    let mut world = world();
    for _ in 0..50 {
        run(&mut world, 2, bump("a0", 1));
    }
    assert_eq!(world.owner(&key("a0")), shard(2));
    assert_eq!(value(&world), Some(60));
    let before = world.count(|c| c.messages);
    run(&mut world, 2, bump("a0", 1));
    assert_eq!(world.count(|c| c.messages), before, "it is local now");
}

#[test]
fn many_change_one_row_at_once() {
    let mut world = world();
    let mut asked = Vec::new();
    for at in [2, 3].repeat(100) {
        let txn = world.begin(shard(at));
        asked.push(world.submit(txn, bump("a0", 1), true));
    }
    // One message there, one back: no change has waited for another.
    assert_eq!(world.flights.len(), 200);
    for flight in core::mem::take(&mut world.flights) {
        world.deliver(flight);
    }
    world.flush_all();
    assert_eq!(world.flights.len(), 200);
    world.settle();
    for id in asked {
        let reply = world.take_answer(id).unwrap();
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    }
    assert_eq!(world.value(&key("a0")), Some(210));
}

#[test]
fn a_blind_change_waits_for_the_owner_whatever_its_age() {
    let mut world = world();
    let holder = world.begin(shard(1));
    world.submit(holder, add("a0", 1), false);
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("a0", 5), true);
    world.settle();
    assert!(world.take_answer(id).is_none());
    world.commit(holder);
    world.settle();
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    assert_eq!(value(&world), Some(16));
}

#[test]
fn it_is_done_once_however_often_it_is_asked_for() {
    let mut world = world();
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("a0", 5), true);
    let asked = world.flights.remove(0);
    assert_eq!(kind(&asked), "Entrust");
    world.deliver(asked.clone());
    world.deliver(asked.clone());
    world.settle();
    assert!(world.take_answer(id).unwrap().outcome.is_some());
    world.deliver(asked.clone());
    run(&mut world, 2, bump("a0", 1));
    world.deliver(asked);
    world.settle();
    assert_eq!(value(&world), Some(16));
}

/// The answer is lost with the owner's memory. Whether its record survived is not known, but the
/// change is never made twice.
#[test]
fn a_restarted_owner_does_nothing_twice() {
    for durable in [false, true] {
        let mut world = world();
        let txn = world.begin(shard(2));
        let id = world.submit(txn, bump("a0", 5), true);
        let asked = world.flights.remove(0);
        world.deliver(asked.clone());
        if durable {
            world.flush(NodeId(1));
        }
        world.flights.clear();
        world.crash(NodeId(1), 0);
        world.restart(NodeId(1));
        world.deliver(asked);
        world.announce(NodeId(1));
        world.settle();
        let reply = world.take_answer(id).unwrap();
        assert_eq!(reply.outcome, Some(Outcome::Unknown));
        assert_eq!(value(&world), Some(if durable { 15 } else { 10 }));
        assert!(world.is_idle());
    }
}

#[test]
fn a_cancelled_one_is_given_up_where_it_waits() {
    let mut world = world();
    let holder = world.begin(shard(1));
    world.submit(holder, add("a0", 1), false);
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("a0", 5), true);
    world.settle();
    world.call(shard(2), |protocol, cx| protocol.abort(cx, txn));
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reply.outcome, Some(Outcome::Unknown));
    world.settle();
    world.commit(holder);
    world.settle();
    assert_eq!(value(&world), Some(11));
    assert!(world.is_idle());
}

/// The owner is asked before the client hears: it has given up what waited, or has committed.
#[test]
fn one_that_is_called_off_ends_as_its_owner_says() {
    for waits in [true, false] {
        let mut world = world();
        let holder = world.begin(shard(1));
        if waits {
            world.submit(holder, add("a0", 1), false);
        }
        let txn = world.begin(shard(2));
        let id = world.submit(txn, bump("a0", 5), true);
        if waits {
            world.settle();
        }
        let mut called = || world.call(shard(2), |protocol, cx| protocol.call_off(cx, txn));
        assert!(called() && called());
        assert!(world.take_answer(id).is_none());
        world.settle();
        let reply = world.take_answer(id).unwrap();
        let expected = match waits {
            true => Outcome::Aborted(AbortReason::Requested),
            false => reply.outcome.clone().unwrap(),
        };
        assert_eq!(reply.outcome, Some(expected));
        let committed = matches!(reply.outcome, Some(Outcome::Committed { .. }));
        assert_eq!(committed, !waits);
        world.commit(holder);
        world.settle();
        assert_eq!(value(&world), Some(if waits { 11 } else { 15 }));
        assert!(world.is_idle());
    }
}

#[test]
fn an_unreachable_owner_leaves_the_outcome_unknown() {
    let mut world = world();
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("a0", 5), true);
    world.call(shard(2), |protocol, cx| {
        protocol.on_peer_down(cx, NodeId(1))
    });
    let reply = world.take_answer(id).unwrap();
    assert_eq!(reply.outcome, Some(Outcome::Unknown));
    // Now the owner is known to be away, so nothing is entrusted to it.
    let txn = world.begin(shard(2));
    let id = world.submit(txn, bump("a0", 5), true);
    world.settle();
    assert!(world.take_answer(id).unwrap().result.is_err());
}
