//! Faults that the simulator found: rows, claims and recalls that no shard dealt with any more.

use super::local::{add, bump, died, get, number, run, shard};
use super::random::sum_op;
use super::world::{World, key, kind};
use crate::Settings;
use crate::owner::Tenure;
use base::{NodeId, ShardId, Ts};
use txn::{LockMode, Outcome, Protocol, Read};

/// Delivers all that may leave, and flushes only these nodes, until nothing moves.
fn drive(world: &mut World, flushed: &[u16]) {
    for _ in 0..1_000 {
        for node in flushed {
            world.flush(NodeId(*node));
        }
        let leaves = |world: &World| {
            let mut flights = world.flights.iter();
            flights.position(|flight| world.may_leave(flight))
        };
        match leaves(world) {
            Some(at) => {
                let flight = world.flights.remove(at);
                world.deliver(flight);
            }
            None => return,
        }
    }
    panic!("messages go on for ever");
}

/// A node comes back with what was durable, and all work ends.
fn bring_back(world: &mut World, node: u16) {
    world.crash(NodeId(node), 0);
    world.restart(NodeId(node));
    world.announce(NodeId(node));
    rest(world);
}

fn rest(world: &mut World) {
    for _ in 0..10 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
}

/// Shards of one node lose together what is not durable. When a row goes from one to the next, the
/// backup on another node must stay until an arrival is durable.
#[test]
fn a_row_that_crosses_its_node_before_it_is_durable_is_not_lost() {
    let mut world = World::new(2, 2);
    world.load(key("a0"), 10);
    assert_eq!(world.home(&key("a0")), shard(1));
    for index in 0..2 {
        let txn = world.begin(ShardId::new(NodeId(2), index));
        world.submit(txn, add("a0", 1), true);
        drive(&mut world, &[1]);
    }
    bring_back(&mut world, 2);
    assert_eq!(world.value(&key("a0")), Some(10));
    let (_, reply) = run(&mut world, 2, get("a0"));
    assert_eq!(number(&reply), Some(10));
    rest(&mut world);
    assert!(world.is_idle());
}

/// A shard claims a row that it had long ago, and the home has not decided which shard has the row.
/// The claimant must hear the decision in the end, or its transactions wait for ever.
#[test]
fn an_old_claim_is_settled_although_the_row_goes_to_another_shard() {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, get("a0"));
    assert_eq!(world.owner(&key("a0")), shard(2));
    // The row goes to node 3 and comes back, and node 2 does not make that durable.
    for at in [3, 2] {
        let txn = world.begin(shard(at));
        world.submit(txn, get("a0"), true);
        drive(&mut world, &[1, 3]);
        assert_eq!(world.owner(&key("a0")), shard(at));
    }
    let txn = world.begin(shard(1));
    world.submit(txn, add("a0", 1), true);
    let asked = world.flights.iter().any(|f| kind(f) == "TransferRequest");
    assert!(asked, "node 2 is to give it to node 1");
    world.crash(NodeId(2), 0);
    world.restart(NodeId(2));
    world.announce(NodeId(2));
    // One asks while node 2 does not know what it has, the other when all is decided.
    let early = world.begin(shard(2));
    let early = world.submit(early, get("a0"), true);
    rest(&mut world);
    let reply = world.take_answer(early).expect("the early one is answered");
    assert!(number(&reply).is_some());
    assert!(world.is_idle());
    let (_, reply) = run(&mut world, 2, get("a0"));
    assert_eq!(number(&reply), world.value(&key("a0")));
}

/// The verdict that leaves a claim open comes only once; the later decision may get lost.
#[test]
fn an_old_claim_is_settled_although_the_first_word_about_it_is_lost() {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, get("a0"));
    let txn = world.begin(shard(3));
    world.submit(txn, get("a0"), true);
    // Node 3 has the row, but not durably, and node 2 forgets that it gave the row away.
    drive(&mut world, &[1]);
    world.crash(NodeId(2), 0);
    world.restart(NodeId(2));
    world.announce(NodeId(2));
    drive(&mut world, &[1, 2]);
    world.flush(NodeId(3));
    while !world.flights.is_empty() {
        let flight = world.flights.remove(0);
        if kind(&flight) != "ReleaseAck" {
            world.deliver(flight);
        }
    }
    rest(&mut world);
    assert!(world.is_idle());
    let (_, reply) = run(&mut world, 2, get("a0"));
    assert_eq!(number(&reply), Some(10));
}

/// A claim is left open, the backup becomes the row again, and the row is to move on. That move
/// waits for a transaction, which waits for one at the claimant, which waits until the claim is
/// decided. So the verdict must not wait for the move.
#[test]
fn an_old_claim_is_settled_although_the_row_is_to_move_on() {
    let mut world = World::new(3, 1);
    for name in ["a0", "a1"] {
        world.load(key(name), 10);
    }
    run(&mut world, 2, get("a0"));
    // The row goes to node 3 and comes back, and node 2 does not make that durable.
    for at in [3, 2] {
        let txn = world.begin(shard(at));
        world.submit(txn, get("a0"), true);
        drive(&mut world, &[1, 3]);
    }
    assert_eq!(world.owner(&key("a0")), shard(2));
    let oldest = world.begin(shard(1));
    let older = world.begin(shard(3));
    let asks = world.begin(shard(1));
    world.submit(asks, add("a0", 1), true);
    let asked = world.flights.iter().any(|f| kind(f) == "TransferRequest");
    assert!(asked, "node 2 is to give it to node 1");
    world.call(shard(1), |protocol, cx| protocol.abort(cx, asks));
    world.crash(NodeId(2), 0);
    world.restart(NodeId(2));
    world.announce(NodeId(2));
    drive(&mut world, &[1, 2, 3]);
    assert_eq!(world.owner(&key("a0")), shard(3), "the backup is the row");
    let claim = &world.shards[&shard(2)].protocol.owner.held[&key("a0")];
    let open = Tenure::Owned { confirmed: false };
    assert_eq!(claim.tenure, open, "and node 2 was not told");
    let held = world.submit(older, get("a0"), false);
    drive(&mut world, &[1, 2, 3]);
    assert_eq!(number(&world.take_answer(held).unwrap()), Some(10));
    let moves = world.submit(oldest, add("a0", 1), true);
    let youngest = world.begin(shard(2));
    let own = world.submit(youngest, add("a1", 1), false);
    drive(&mut world, &[1, 2, 3]);
    assert!(world.take_answer(own).is_some());
    let gated = world.submit(youngest, get("a0"), false);
    let waits = world.submit(older, add("a1", 1), false);
    rest(&mut world);
    let reply = world.take_answer(gated);
    assert!(died(&reply.expect("the youngest is answered")));
    let reply = world.take_answer(waits);
    assert_eq!(number(&reply.expect("who waited for it, too")), Some(11));
    world.commit(older);
    rest(&mut world);
    let reply = world.take_answer(moves);
    assert_eq!(number(&reply.expect("and the row has moved")), Some(11));
    assert!(world.is_idle());
}

/// A recall waits in the name of a transaction of the reader's own shard, which ends meanwhile.
#[test]
fn a_recall_in_the_name_of_a_transaction_that_ends_here_is_answered() {
    let mut world = World::new(2, 1);
    world.load(key("a0"), 10);
    world.settings(Settings {
        share_after: 1,
        ..Settings::default()
    });
    let writer = world.begin(shard(2));
    world.submit(writer, bump("a0", 1), true);
    let entrusted = world.flights.remove(0);
    assert_eq!(kind(&entrusted), "Entrust");
    let reader = world.begin(shard(2));
    let read = world.submit(reader, get("a0"), false);
    world.settle();
    assert_eq!(number(&world.take_answer(read).unwrap()), Some(10));
    world.deliver(entrusted);
    assert_eq!(kind(&world.flights[0]), "Recall");
    world.settle();
    world.call(shard(2), |protocol, cx| protocol.abort(cx, writer));
    world.settle();
    world.commit(reader);
    rest(&mut world);
    assert!(world.is_idle());
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
}

/// Two transactions of a dead life have read a row here; the second has also requested it. When the
/// first ends, the second gets its lock; when the second ends too, a local transaction gets the
/// lock. The row must wait for that one, and the lock be free in the end.
#[test]
fn a_row_that_the_dead_have_asked_for_waits_for_those_who_hold_it() {
    let mut world = World::new(2, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, add("a0", 1));
    assert_eq!(world.owner(&key("a0")), shard(2));
    let scan = || sum_op(Read::Lock(LockMode::Shared));
    let first = world.begin(shard(1));
    let second = world.begin_as(shard(1), Some(Ts(5)));
    for txn in [first, second] {
        world.submit_to(txn, shard(1), scan(), false);
        world.settle();
    }
    // Node 2 does not hear that the first one has ended.
    world.call(shard(1), |protocol, cx| protocol.abort(cx, first));
    world.flights.retain(|flight| kind(flight) != "Release");
    world.submit(second, add("a0", 1), false);
    world.settle();
    let waits = [0, 1].map(|_| {
        let txn = world.begin(shard(2));
        (txn, world.submit(txn, add("a0", 1), true))
    });
    world.settle();
    for (_, op) in waits {
        assert!(world.take_answer(op).is_none(), "the dead are in the way");
    }
    bring_back(&mut world, 1);
    for (txn, op) in waits {
        let reply = world.take_answer(op);
        let reply = reply.unwrap_or_else(|| panic!("{txn} waits for ever"));
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    }
    assert_eq!(world.value(&key("a0")), Some(13));
    assert!(world.is_idle());
}

/// A row stays with its owner under a new grant when the owner restarts while it is asked for the
/// row. If that happens twice and the owner forgets the second grant, it claims under the first.
#[test]
fn an_owner_that_forgets_that_its_row_has_stayed_does_not_lose_it() {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    for (asking, flushed) in [(3, &[1, 2, 3][..]), (1, &[1, 3])] {
        let txn = world.begin(shard(asking));
        world.submit(txn, get("a0"), true);
        if asking != 1 {
            let asked = world.flights.remove(0);
            assert_eq!(kind(&asked), "OwnerRequest");
            world.deliver(asked);
        }
        let lost = world.flights.remove(0);
        assert_eq!(kind(&lost), "TransferRequest");
        world.call(shard(asking), |protocol, cx| protocol.abort(cx, txn));
        world.crash(NodeId(2), 0);
        world.restart(NodeId(2));
        world.announce(NodeId(2));
        drive(&mut world, flushed);
        assert_eq!(world.owner(&key("a0")), shard(2), "it has stayed");
    }
    world.whole_checkpoint(shard(1));
    world.flush(NodeId(1));
    for node in [2, 1] {
        world.crash(NodeId(node), 0);
    }
    for node in [2, 1] {
        world.restart(NodeId(node));
        world.announce(NodeId(node));
    }
    rest(&mut world);
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(11));
    rest(&mut world);
    assert!(world.is_idle());
}

/// A checkpoint walks the rows that are away after its start. A row that moves in between is met
/// at its new owner. If that owner loses it, the claim of the old one must count.
#[test]
fn a_row_that_moves_between_the_start_of_a_checkpoint_and_its_walk_is_not_lost() {
    let mut world = World::new(3, 1);
    world.load(key("a0"), 10);
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    world.checkpoint(shard(1));
    let txn = world.begin(shard(3));
    world.submit(txn, get("a0"), true);
    drive(&mut world, &[1]);
    assert_eq!(world.owner(&key("a0")), shard(3), "it has moved");
    world.whole_checkpoint(shard(1));
    world.flush(NodeId(1));
    for node in [3, 2, 1] {
        world.crash(NodeId(node), 0);
    }
    for node in [3, 2, 1] {
        world.restart(NodeId(node));
        world.announce(NodeId(node));
    }
    rest(&mut world);
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(11));
    rest(&mut world);
    assert!(world.is_idle());
}
