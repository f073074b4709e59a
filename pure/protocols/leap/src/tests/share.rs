//! Copies of rows that are read much: given, used without messages, called back, lost.

use super::local::{add, died, get, insert, number, run, shard};
use super::world::{World, key, kind};
use crate::Settings;
use base::NodeId;
use bed::programs::{Test, program};
use txn::{AbortReason, LockMode, MovingRows, Op, OpError, Outcome, Protocol, Read, Tie};

fn lend_at_once(world: &mut World) {
    world.settings(Settings {
        share_after: 1,
        ..Settings::default()
    });
}

/// `a0` is at node 1, which lends it to each reader.
fn lending(nodes: u16) -> World {
    let mut world = World::new(nodes, 1);
    world.load(key("a0"), 10);
    lend_at_once(&mut world);
    world
}

/// Node 2 has `a0`; then reads begin to count.
fn lending_from_elsewhere() -> World {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, add("a0", 1));
    lend_at_once(&mut world);
    world
}

/// Nodes 2 and 3 have copies of `a0`, whose home is node 1.
fn lent() -> World {
    let mut world = lending(3);
    for at in [2, 3] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), Some(10));
    }
    assert_eq!(world.owner(&key("a0")), shard(1));
    world
}

fn copies(world: &World) -> u64 {
    let shards = world.shards.values();
    shards.map(|shard| shard.protocol.moves().copies).sum()
}

#[test]
fn reads_of_a_copy_cost_no_message() {
    let mut world = lent();
    assert_eq!(copies(&world), 2);
    let before = world.count(|c| c.messages);
    for at in [1, 2, 3, 2, 3] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), Some(10));
    }
    assert_eq!(world.count(|c| c.messages), before);
}

#[test]
fn a_copy_costs_one_round_trip_and_nothing_afterwards() {
    let mut world = lending(2);
    let before = world.count(|c| c.messages);
    let (txn, _) = run(&mut world, 2, get("a0"));
    let cost = world.shards[&shard(2)].protocol.cost(txn).unwrap();
    assert_eq!((cost.delays, cost.messages_on_path), (2, 2));
    assert_eq!(world.count(|c| c.messages) - before, 2);
    assert!(world.is_idle());
}

#[test]
fn a_writer_waits_until_every_copy_is_gone() {
    let mut world = lent();
    let writer = world.begin(shard(1));
    let write = world.submit(writer, add("a0", 1), false);
    assert!(world.take_answer(write).is_none());
    assert_eq!(world.flights.len(), 2, "both are called back at once");
    let flight = world.flights.remove(0);
    world.deliver(flight);
    assert!(world.take_answer(write).is_none());
    world.settle();
    assert_eq!(number(&world.take_answer(write).unwrap()), Some(11));
    assert_eq!(copies(&world), 0);
    world.commit(writer);
    for at in [2, 3] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), Some(11));
    }
}

#[test]
fn a_writer_waits_for_younger_readers_and_dies_of_older_ones() {
    let mut world = lent();
    let older = world.begin(shard(1));
    let reader = world.begin(shard(2));
    let read = world.submit(reader, get("a0"), false);
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    let younger = world.begin(shard(3));
    let waits = world.submit(older, add("a0", 1), true);
    world.settle();
    assert!(world.take_answer(waits).is_none());
    let dies = world.submit(younger, add("a0", 1), true);
    world.settle();
    assert!(died(&world.take_answer(dies).unwrap()));
    world.commit(reader);
    world.settle();
    assert_eq!(number(&world.take_answer(waits).unwrap()), Some(11));
    // Now an older reader.
    lend_at_once(&mut world);
    run(&mut world, 2, get("a0"));
    let reader = world.begin(shard(2));
    world.submit(reader, get("a0"), false);
    world.settle();
    let writer = world.begin(shard(1));
    let dies = world.submit(writer, add("a0", 1), true);
    world.settle();
    assert!(died(&world.take_answer(dies).unwrap()));
}

#[test]
fn a_reader_that_turns_writer_gets_the_row() {
    let mut world = lent();
    let txn = world.begin(shard(2));
    let read = world.submit(txn, get("a0"), false);
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    let write = world.submit(txn, add("a0", 1), true);
    world.settle();
    let reply = world.take_answer(write).unwrap();
    assert_eq!(number(&reply), Some(11));
    assert_eq!(world.owner(&key("a0")), shard(2));
    assert_eq!(copies(&world), 0);
    assert_eq!(world.value(&key("a0")), Some(11));
}

#[test]
fn a_row_that_is_away_comes_home_to_be_lent() {
    let mut world = lending_from_elsewhere();
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(11));
    assert_eq!(world.owner(&key("a0")), shard(1));
    assert_eq!(copies(&world), 1);
    let (_, reply) = run(&mut world, 2, get("a0"));
    assert_eq!(number(&reply), Some(11));
    assert_eq!(copies(&world), 2);
}

/// The owner keeps a row for an older transaction, so the home cannot lend it. The reader is rolled
/// back: otherwise it would ask for ever while the older one waits for one of its locks.
#[test]
fn a_reader_of_a_row_that_an_older_one_has_is_rolled_back() {
    let mut world = lending_from_elsewhere();
    let older = world.begin(shard(2));
    let write = world.submit(older, add("a0", 1), false);
    world.settle();
    assert_eq!(number(&world.take_answer(write).unwrap()), Some(12));
    let younger = world.begin(shard(3));
    let read = world.submit(younger, get("a0"), false);
    world.settle();
    assert!(died(&world.take_answer(read).unwrap()));
    world.commit(older);
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(12));
}

/// A reader turns writer and gives its copy up. An older reader elsewhere refuses, the refusal is
/// lost, and that reader writes. The first one must not write over it.
#[test]
fn a_reader_that_gave_its_copy_up_does_not_ask_again() {
    let mut world = lent();
    let older = world.begin(shard(3));
    let read = world.submit(older, get("a0"), false);
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    let younger = world.begin(shard(2));
    let read = world.submit(younger, get("a0"), false);
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    let write = world.submit(younger, add("a0", 1), true);
    for _ in 0..100 {
        world.flush_all();
        let Some(at) = world
            .flights
            .iter()
            .position(|flight| world.may_leave(flight))
        else {
            break;
        };
        let flight = world.flights.remove(at);
        if kind(&flight) != "Refused" {
            world.deliver(flight);
        }
    }
    assert!(world.take_answer(write).is_none(), "the refusal is lost");
    let first = world.submit(older, add("a0", 5), false);
    world.settle();
    assert_eq!(number(&world.take_answer(first).unwrap()), Some(15));
    world.commit(older);
    world.settle();
    world.tick(300_000);
    world.settle();
    let reply = world.take_answer(write).expect("it is answered");
    assert!(
        matches!(reply.result, Err(OpError::Aborted(_))),
        "it read 10 and would write over 15: {reply:?}"
    );
}

/// A copy that was given before the recall and comes after it does not count.
#[test]
fn a_late_copy_is_not_taken() {
    let mut world = lending(2);
    let reader = world.begin(shard(2));
    let read = world.submit(reader, get("a0"), true);
    let asked = world.flights.remove(0);
    world.deliver(asked);
    let late = world.flights.remove(0);
    assert_eq!(kind(&late), "Share");
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
    world.deliver(late);
    assert_eq!(copies(&world), 0);
    world.tick(300_000);
    world.settle();
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(11));
}

#[test]
fn a_restarted_reader_has_no_copy_and_stops_no_writer() {
    let mut world = lent();
    world.crash(NodeId(2), 0);
    let writer = world.begin(shard(1));
    let write = world.submit(writer, add("a0", 1), true);
    world.settle();
    assert!(
        world.take_answer(write).is_none(),
        "it may still be read there"
    );
    world.restart(NodeId(2));
    world.announce(NodeId(2));
    world.settle();
    assert_eq!(number(&world.take_answer(write).unwrap()), Some(11));
    let (_, reply) = run(&mut world, 2, get("a0"));
    assert_eq!(number(&reply), Some(11));
}

/// A transaction that has read a copy ends when the home no longer knows of the copy.
#[test]
fn a_restarted_home_has_lent_nothing() {
    let mut world = lent();
    let reader = world.begin(shard(2));
    let read = world.submit(reader, get("a0"), false);
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    world.crash(NodeId(1), 0);
    world.restart(NodeId(1));
    world.announce(NodeId(1));
    world.settle();
    assert_eq!(copies(&world), 0);
    let commit = world.commit(reader);
    let reply = world.take_answer(commit).unwrap();
    assert!(matches!(
        reply.outcome,
        Some(Outcome::Aborted(AbortReason::ParticipantLost(_)))
    ));
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
}

#[test]
fn a_reader_that_is_away_gives_the_writer_a_reason_to_stop() {
    let mut world = lent();
    let writer = world.begin(shard(1));
    let write = world.submit(writer, add("a0", 1), true);
    world.flights.clear();
    world.call(shard(1), |protocol, cx| {
        protocol.on_peer_down(cx, NodeId(2));
    });
    let reply = world.take_answer(write).unwrap();
    assert_eq!(
        reply.result,
        Err(OpError::Aborted(AbortReason::RowCutOff {
            key: key("a0"),
            at: shard(2),
            tie: Tie::Copy,
        }))
    );
    // The node is back, in the same life.
    world.call(shard(1), |protocol, cx| protocol.on_peer(cx, NodeId(2), 1));
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
    assert!(world.is_idle());
}

/// Reads that move a row count too, so that it is lent in the end; writes count against them.
#[test]
fn a_row_that_is_seldom_written_is_lent_before_long() {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    world.settings(Settings {
        entrusts: false,
        ..Settings::default()
    });
    for at in [2, 3].repeat(5) {
        run(&mut world, at, get("a0"));
    }
    assert_eq!(copies(&world), 2);
    let before = world.count(|c| c.messages);
    for at in [2, 3].repeat(5) {
        run(&mut world, at, get("a0"));
    }
    assert_eq!(world.count(|c| c.messages), before);
    // A row written as often as it is read moves.
    for at in [2, 3].repeat(10) {
        run(&mut world, at, add("a0", 1));
        run(&mut world, at, get("a0"));
    }
    assert_eq!(copies(&world), 0);
    assert_eq!(world.value(&key("a0")), Some(30));
}

#[test]
fn absence_is_lent_until_somebody_inserts() {
    let mut world = World::new(3, 1);
    lend_at_once(&mut world);
    for at in [2, 3] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), None);
    }
    assert_eq!((copies(&world), world.owner(&key("a0"))), (2, shard(1)));
    let before = world.count(|c| c.messages);
    for at in [2, 3, 1] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), None);
    }
    assert_eq!(world.count(|c| c.messages), before);
    // A reader on one node, a writer on the other: the copies go first.
    let reader = world.begin(shard(3));
    let read = world.submit(reader, get("a0"), false);
    assert_eq!(world.take_answer(read).map(|r| number(&r)), Some(None));
    let writer = world.begin_as(shard(2), Some(base::Ts(2)));
    let write = world.submit(writer, insert("a0", 7), true);
    world.settle();
    assert!(
        world.take_answer(write).is_none(),
        "it waits for the reader"
    );
    let end = world.commit(reader);
    world.settle();
    for id in [end, write] {
        let reply = world.take_answer(id).expect("nobody is in the way");
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    }
    assert_eq!((copies(&world), world.owner(&key("a0"))), (0, shard(2)));
    for at in [3, 1] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), Some(7));
    }
}

#[test]
fn a_copy_has_no_history() {
    let mut world = lent();
    let old = world.shards[&shard(2)].clock.last();
    run(&mut world, 1, add("a0", 5));
    run(&mut world, 2, get("a0"));
    assert_eq!(copies(&world), 1);
    // The row was there at that time, but the copy does not show it.
    let snapshot = txn::Snapshot::exactly(old);
    let read = Read::LockRows {
        snapshot,
        mode: LockMode::Shared,
    };
    let program = program(Test::Read);
    let row = key("a0");
    let key = row.clone();
    let (_, reply) = run(&mut world, 2, Op::Get { key, read, program });
    let refused = Err(OpError::Aborted(AbortReason::SnapshotTooOld(row)));
    assert_eq!(reply.result, refused);
}

/// A copy comes late: its request was repeated meanwhile, the home gave a second copy, and took
/// that one back. The first one must not count.
#[test]
fn a_copy_that_comes_after_a_later_one_was_called_back_does_not_count() {
    let mut world = lending(3);
    let reader = world.begin_as(shard(2), Some(base::Ts(1_000_000)));
    let first = world.submit(reader, get("a0"), true);
    let take = |world: &mut World, wanted: &str| {
        while world.flights.iter().all(|flight| kind(flight) != wanted) {
            let flight = world.flights.remove(0);
            world.deliver(flight);
        }
        let at = world
            .flights
            .iter()
            .position(|flight| kind(flight) == wanted);
        world.flights.remove(at.expect("looked for above"))
    };
    let late = take(&mut world, "Share");
    // The reader has heard nothing, asks again, and is refused: it begins a new request.
    world.tick(2_000_000);
    take(&mut world, "Share");
    assert!(world.take_answer(first).is_none());
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
    world.deliver(late);
    world.settle();
    for _ in 0..4 {
        world.tick(1_000_000);
        world.settle();
    }
    assert_eq!(
        number(&world.take_answer(first).expect("it ends")),
        Some(11)
    );
}
