//! A crash at every step of a transfer, for each role: a row never has two owners or none, and
//! nothing that was answered is lost.

use super::local::{add, bump, get, number, shard};
use super::world::{World, key};
use crate::Settings;
use base::{NodeId, Ts};
use bed::programs::row;
use journal::CheckpointTables;
use store::Write;
use txn::{Outcome, Protocol};

/// The roles of the three nodes in a transfer.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// Node 1 asks node 2, which is home and owner.
    HomeOwns,
    /// Node 1 asks node 2, which is home; node 3 is the owner.
    ThreeNodes,
    /// Node 2 asks for its own row, which node 3 owns.
    HomeAsks,
}

fn requester(case: Case) -> u16 {
    match case {
        Case::HomeOwns | Case::ThreeNodes => 1,
        Case::HomeAsks => 2,
    }
}

/// Delivers a message in each step, in order, and flushes in every third, at `flushes`, and when
/// nothing may leave. Returns whether nothing was on its way in the end.
fn advance(world: &mut World, steps: usize, flushes: usize) -> bool {
    let mut ended = false;
    for step in 0..steps {
        if step % 3 == flushes {
            world.flush_all();
        }
        let leaves = world
            .flights
            .iter()
            .position(|flight| world.may_leave(flight));
        match leaves {
            Some(at) => {
                let flight = world.flights.remove(at);
                world.deliver(flight);
            }
            None => {
                ended = world.flights.is_empty();
                world.flush_all();
            }
        }
    }
    ended
}

/// Lets everything go on that waits for a timer.
fn rest(world: &mut World) {
    for _ in 0..30 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
}

/// Each reader reads `found` in `a1`, and then nothing is left to do.
fn check_readers(world: &mut World, readers: &[u16], found: i64, who: &str) {
    for at in readers {
        let txn = world.begin(shard(*at));
        let read = world.submit(txn, get("a1"), true);
        world.settle();
        let reply = world.take_answer(read);
        let reply = reply.unwrap_or_else(|| panic!("{who}"));
        assert_eq!(number(&reply), Some(found), "{who}");
    }
    world.tick(500_000);
    world.settle();
    assert!(world.is_idle(), "{who}");
}

/// Runs a transfer up to `steps` deliveries and flushes, crashes `victims`, and lets everything
/// come to rest. Returns whether the transfer had ended before.
fn run(case: Case, steps: usize, flushes: usize, victims: &[u16], kept: usize) -> bool {
    let who = || format!("{case:?} {steps} {flushes} {victims:?} {kept}");
    let mut world = World::new(4, 1);
    world.load(key("a1"), 10);
    let mut expected = 10;
    if !matches!(case, Case::HomeOwns) {
        let txn = world.begin(shard(3));
        world.submit(txn, add("a1", 5), true);
        world.settle();
        world.tick(300_000);
        world.settle();
        expected = 15;
    }
    let txn = world.begin(shard(requester(case)));
    let op = world.submit(txn, add("a1", 1), true);
    let ended = advance(&mut world, steps, flushes);
    // The client hears of it only when the record is durable.
    let answered = world.answers.iter().any(|(_, id, reply)| {
        let disk = world.nodes[&NodeId(requester(case))].disk.borrow();
        let committed = matches!(reply.outcome, Some(Outcome::Committed { .. }));
        *id == op && committed && reply.wait <= disk.durable
    });
    for victim in victims {
        world.crash(NodeId(*victim), kept);
    }
    let owners = world.owners(&key("a1"));
    assert!(owners.len() <= 1, "{}: {owners:?}", who());
    for victim in victims {
        world.restart(NodeId(*victim));
        assert!(world.owners(&key("a1")).len() <= 1, "{}", who());
        world.announce(NodeId(*victim));
    }
    rest(&mut world);
    let states = || -> String {
        let shards = world.shards.iter();
        shards
            .map(|(id, shard)| format!("{id}:\n{}", shard.protocol))
            .collect()
    };
    assert_eq!(world.owners(&key("a1")).len(), 1, "{}\n{}", who(), states());
    let found = world.value(&key("a1")).expect("it is there");
    assert!(
        found == expected || found == expected + 1,
        "{}: {found}",
        who()
    );
    assert!(
        !answered || found == expected + 1,
        "{}: an answered commit is lost",
        who()
    );
    check_readers(&mut world, &[3, 1, 2, 4], found, &who());
    ended
}

#[test]
fn a_crash_at_every_step_of_a_transfer() {
    for case in [Case::HomeOwns, Case::ThreeNodes, Case::HomeAsks] {
        for victims in [
            &[1][..],
            &[2],
            &[3],
            &[1, 2],
            &[2, 3],
            &[1, 3],
            &[1, 2, 3, 4],
        ] {
            for (flushes, kept) in [(0, 0), (1, 0), (2, 1), (3, 0), (3, 2)] {
                let ended = (0..40).any(|steps| run(case, steps, flushes, victims, kept));
                assert!(ended, "{case:?} {victims:?}: the transfer ends");
            }
        }
    }
}

/// Step by step (see [`advance`]); then `victims` crash and come back, and everything rests.
fn interrupt(
    world: &mut World,
    steps: usize,
    flushes: usize,
    victims: &[u16],
    kept: usize,
) -> bool {
    let ended = advance(world, steps, flushes);
    for victim in victims {
        world.crash(NodeId(*victim), kept);
    }
    for victim in victims {
        world.restart(NodeId(*victim));
        world.announce(NodeId(*victim));
    }
    rest(world);
    ended
}

/// Node 1 entrusts a change to node 3, which it finds by way of the home, node 2.
fn entrust(steps: usize, flushes: usize, victims: &[u16], kept: usize) -> bool {
    let who = || format!("{steps} {flushes} {victims:?} {kept}");
    let mut world = World::new(3, 1);
    world.load(key("a1"), 10);
    let txn = world.begin(shard(3));
    world.submit(txn, add("a1", 5), true);
    world.settle();
    let txn = world.begin(shard(1));
    let op = world.submit(txn, bump("a1", 1), true);
    let ended = interrupt(&mut world, steps, flushes, victims, kept);
    let reply = world.take_answer(op);
    assert_eq!(reply.is_none(), victims.contains(&1), "{}", who());
    let found = world.value(&key("a1")).expect("it is there");
    match reply.and_then(|reply| reply.outcome) {
        Some(Outcome::Committed { .. }) => assert_eq!(found, 16, "{}", who()),
        Some(Outcome::Aborted(_)) => assert_eq!(found, 15, "{}", who()),
        Some(Outcome::Unknown) | None => assert!((15..=16).contains(&found), "{}", who()),
    }
    change_everywhere(&mut world, bump("a1", 1), found, &who());
    ended
}

/// Nothing is left that would change `a1` once more, or keep others from it: each node adds 1.
fn change_everywhere(world: &mut World, change: txn::Op, found: i64, who: &str) {
    for at in 1..=3 {
        let txn = world.begin(shard(at));
        let op = world.submit(txn, change.clone(), true);
        world.settle();
        assert!(world.take_answer(op).is_some(), "{who}");
    }
    assert_eq!(world.value(&key("a1")), Some(found + 3), "{who}");
    world.tick(500_000);
    world.settle();
    assert!(world.is_idle(), "{who}");
}

#[test]
fn a_crash_at_every_step_of_an_entrusted_change() {
    for victims in [&[1][..], &[2], &[3], &[1, 2], &[2, 3], &[1, 3], &[1, 2, 3]] {
        for (flushes, kept) in [(0, 0), (1, 0), (2, 1), (3, 0), (3, 2)] {
            let ended = (0..40).any(|steps| entrust(steps, flushes, victims, kept));
            assert!(ended, "{victims:?}: the change ends");
        }
    }
}

/// Node 1 has a copy of a row of node 2 and reads it, node 3 is given one, and node 2 writes.
fn lend(steps: usize, flushes: usize, victims: &[u16], kept: usize) -> bool {
    let who = || format!("{steps} {flushes} {victims:?} {kept}");
    let mut world = World::new(3, 1);
    world.load(key("a1"), 10);
    world.settings(Settings {
        share_after: 1,
        ..Settings::default()
    });
    let first = world.begin(shard(1));
    world.submit(first, get("a1"), true);
    world.settle();
    world.answers.clear();
    let writer = world.begin(shard(2));
    let reader = world.begin(shard(1));
    let before = world.submit(reader, get("a1"), false);
    let before = number(&world.take_answer(before).expect("it has a copy"));
    let other = world.begin(shard(3));
    let read = world.submit(other, get("a1"), true);
    let write = world.submit(writer, add("a1", 1), true);
    let ended = interrupt(&mut world, steps, flushes, victims, kept);
    // Either the writer has waited or the reader has ended: no reader sees both states.
    if !victims.contains(&1) {
        let again = world.submit(reader, get("a1"), true);
        world.settle();
        let reply = world.take_answer(again).expect("it is answered");
        if reply.result.is_ok() {
            assert_eq!(number(&reply), before, "{}", who());
        }
    }
    rest(&mut world);
    let found = world.value(&key("a1")).expect("it is there");
    match world.take_answer(write).map(|reply| reply.outcome) {
        Some(Some(Outcome::Committed { .. })) => assert_eq!(found, 11, "{}", who()),
        Some(_) => assert_eq!(found, 10, "{}", who()),
        None => assert!((10..=11).contains(&found), "{}", who()),
    }
    if let Some(reply) = world.take_answer(read) {
        assert!(reply.outcome.is_some(), "{}", who());
    }
    check_readers(&mut world, &[3, 1, 2], found, &who());
    ended
}

#[test]
fn a_crash_at_every_step_of_lending_and_calling_back() {
    for victims in [&[1][..], &[2], &[3], &[1, 2], &[2, 3], &[1, 3], &[1, 2, 3]] {
        for (flushes, kept) in [(0, 0), (1, 0), (2, 1), (3, 0), (3, 2)] {
            let ended = (0..40).any(|steps| lend(steps, flushes, victims, kept));
            assert!(ended, "{victims:?}: it comes to rest");
        }
    }
}

#[test]
fn rows_that_do_not_move_survive_a_restart_wherever_they_are() {
    let stranger = key("k0");
    let mut kept = Vec::new();
    for moves in [false, true] {
        let mut world = World::new(2, 1);
        let found = world.call(shard(2), |protocol, cx| {
            assert!(!protocol.is_home(&stranger), "its home is elsewhere");
            let write = Write::Insert(vec![1]);
            cx.store.redo(&stranger, &write, Ts(10));
            protocol.recover(cx, &mut CheckpointTables::default(), &|_| moves);
            cx.store.get(&stranger, Ts::MAX).is_some()
        });
        kept.push(found);
    }
    assert_eq!(kept, [true, false]);
}

/// Fifty rows of node 1 are inserted at node 2, and `victim` crashes after `steps` steps. All rows
/// are there or none, and nothing is left to do.
fn insert_many(steps: usize, victim: u16) -> Option<Outcome> {
    let mut world = World::new(3, 1);
    let keys: Vec<base::Key> = (0..50).map(|n| key(&format!("{n:02}0"))).collect();
    assert_eq!(world.home(&keys[0]), shard(1));
    let mut rows = txn::NewRows::new(super::world::TABLE, 0);
    for key in &keys {
        rows.push(key.slot, &key.bytes, |out| out.extend(row(1)));
    }
    let txn = world.begin(shard(2));
    let op = txn::Op::InsertMany(rows);
    let id = world.submit_to(txn, shard(1), op, true);
    advance(&mut world, steps, 0);
    world.crash(NodeId(victim), 0);
    world.restart(NodeId(victim));
    world.announce(NodeId(victim));
    rest(&mut world);
    let outcome = world.take_answer(id).and_then(|reply| reply.outcome);
    assert!(victim == 2 || outcome.is_some(), "{steps}: no answer");
    let there = keys.iter().filter(|key| world.value(key).is_some()).count();
    match &outcome {
        Some(Outcome::Committed { .. }) => assert_eq!(there, 50, "{steps}"),
        Some(Outcome::Aborted(_)) => assert_eq!(there, 0, "{steps}"),
        Some(Outcome::Unknown) | None => assert!(there == 0 || there == 50, "{steps}: {there}"),
    }
    // The next transaction finds all rows free.
    let next = world.begin(shard(3));
    for key in &keys {
        let name = core::str::from_utf8(&key.bytes).expect("names are letters");
        world.submit(next, add(name, 1), false);
    }
    rest(&mut world);
    let end = world.commit(next);
    rest(&mut world);
    let reply = world.take_answer(end).expect("nothing is in its way");
    assert!(
        matches!(reply.outcome, Some(Outcome::Committed { .. })),
        "{steps}: {reply:?}"
    );
    assert!(world.is_idle(), "{steps}");
    outcome
}

#[test]
fn a_bulk_insertion_survives_a_crash_at_any_step() {
    let (mut committed, mut aborted) = (0, 0);
    for victim in [1, 2] {
        for steps in (0..400).step_by(37) {
            match insert_many(steps, victim) {
                Some(Outcome::Committed { .. }) => committed += 1,
                Some(Outcome::Aborted(_)) => aborted += 1,
                Some(Outcome::Unknown) | None => {}
            }
        }
    }
    assert!(
        committed > 0 && committed + aborted > 10,
        "{committed}, {aborted}"
    );
}

/// Node 1 writes a row of its own and a formula on a row of node 2 that is at node 3.
fn ship(steps: usize, flushes: usize, victims: &[u16], kept: usize, checkpoints: bool) -> bool {
    let who = || format!("{steps} {flushes} {victims:?} {kept} {checkpoints}");
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    world.load(key("a1"), 10);
    world.settings(Settings {
        contended_from: 0,
        ..Settings::default()
    });
    let txn = world.begin(shard(3));
    world.submit(txn, add("a1", 5), true);
    world.settle();
    let txn = world.begin(shard(1));
    let own = world.submit(txn, add("a0", 1), false);
    let other = world.submit(txn, bump("a1", 1), true);
    if checkpoints {
        for at in 1..=3 {
            world.whole_checkpoint(shard(at));
        }
    }
    let mut ended = interrupt(&mut world, steps, flushes, victims, kept);
    world.take_answer(own);
    let outcome = world.take_answer(other).and_then(|reply| reply.outcome);
    let committing = outcome.is_none() && !victims.contains(&1);
    if committing {
        let id = world.commit(txn);
        ended = false;
        world.settle();
        assert!(world.take_answer(id).is_some(), "{}", who());
    }
    for _ in 0..30 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
    let found = world.value(&key("a1")).expect("it is there");
    let beside = world.value(&key("a0")).expect("it is there");
    assert!((15..=16).contains(&found), "{}", who());
    assert_eq!(found - 15, beside - 10, "both or none: {}", who());
    if let Some(Outcome::Committed { .. }) = outcome {
        assert_eq!(found, 16, "{}", who());
    }
    change_everywhere(&mut world, add("a1", 1), found, &who());
    ended
}

#[test]
fn a_crash_at_every_step_of_a_shipped_formula() {
    for checkpoints in [false, true] {
        for victims in [&[1][..], &[2], &[3], &[1, 2], &[2, 3], &[1, 3], &[1, 2, 3]] {
            for (flushes, kept) in [(0, 0), (1, 0), (2, 1), (3, 0), (3, 2)] {
                let ended = (0..40).any(|steps| ship(steps, flushes, victims, kept, checkpoints));
                assert!(ended, "{victims:?}: it comes to rest");
            }
        }
    }
}
