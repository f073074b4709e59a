//! The rules of copies (L8) and of entrusted changes (L10): each schedule runs by the rule and
//! without it, and must go wrong then.

use super::local::{add, bump, get, number, shard};
use super::schedules::{both, value};
use super::world::{Flight, World, kind};
use crate::Settings;
use base::{NodeId, Planted};
use txn::{MovingRows, Outcome};

/// Node 2 has a copy of `a0`, whose home is node 1.
fn lend(world: &mut World) {
    world.settings(Settings {
        share_after: 1,
        ..Settings::default()
    });
    assert_eq!(value(world, 2, "a0"), Some(10));
    assert_eq!(world.shards[&shard(2)].protocol.moves().copies, 1);
}

/// A change at home, until it is committed and all has come to rest.
fn change(world: &mut World) {
    let txn = world.begin(shard(1));
    world.submit(txn, add("a0", 1), true);
    world.settle();
}

/// Node 2 entrusts node 1 with a change: the message.
fn entrusted(world: &mut World) -> (txn::OpId, Flight) {
    let txn = world.begin(shard(2));
    let op = world.submit(txn, bump("a0", 1), true);
    let flight = world.flights.remove(0);
    assert_eq!(kind(&flight), "Entrust");
    (op, flight)
}

fn restart_home(world: &mut World) {
    world.crash(NodeId(1), 0);
    world.restart(NodeId(1));
    world.announce(NodeId(1));
    for _ in 0..5 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
}

#[test]
fn a_copy_is_gone_when_its_recall_is_answered() {
    both(Planted::LeapCopyKept, |world| {
        lend(world);
        change(world);
        value(world, 2, "a0") == Some(11)
    });
}

#[test]
fn a_writer_ends_after_the_last_copy() {
    both(Planted::LeapCopiesIgnored, |world| {
        lend(world);
        let writer = world.begin(shard(1));
        let write = world.submit(writer, add("a0", 1), true);
        world.flush_all();
        let ended = world.take_answer(write).is_some();
        let reader = world.begin(shard(2));
        let read = world.submit(reader, get("a0"), true);
        let found = world.take_answer(read).map(|reply| number(&reply));
        !ended || found != Some(Some(10))
    });
}

#[test]
fn a_copy_does_not_outlive_the_memory_of_its_home() {
    both(Planted::LeapCopiesForgotten, |world| {
        lend(world);
        restart_home(world);
        change(world);
        value(world, 2, "a0") == Some(11)
    });
}

#[test]
fn a_change_that_comes_twice_is_run_once() {
    both(Planted::LeapErrandTwice, |world| {
        let (_, flight) = entrusted(world);
        let copy = flight.clone();
        world.deliver(flight);
        world.settle();
        world.deliver(copy);
        world.settle();
        value(world, 1, "a0") == Some(11)
    });
}

#[test]
fn a_change_is_answered_when_it_cannot_be_lost() {
    both(Planted::LeapErrandNotDurable, |world| {
        let (op, flight) = entrusted(world);
        world.deliver(flight);
        let answer = world.flights.remove(0);
        assert_eq!(kind(&answer), "Performed");
        if world.may_leave(&answer) {
            world.deliver(answer);
        }
        let reply = world.take_answer(op);
        let outcome = reply.and_then(|reply| reply.outcome);
        let told = matches!(outcome, Some(Outcome::Committed { .. }));
        restart_home(world);
        !told || value(world, 1, "a0") == Some(11)
    });
}

#[test]
fn the_next_life_of_an_owner_does_not_run_what_the_former_was_entrusted_with() {
    both(Planted::LeapErrandNextLife, |world| {
        let (_, flight) = entrusted(world);
        world.deliver(flight);
        world.flush(NodeId(1));
        world.flights.retain(|flight| kind(flight) != "Performed");
        restart_home(world);
        value(world, 1, "a0") == Some(11)
    });
}
