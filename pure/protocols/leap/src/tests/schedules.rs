//! The schedules of docs/rules/leap.md, one test each. Every schedule runs twice: by our
//! rules, and by the rule that the paper prints in its place, which must go wrong.

use super::local::{add, get, insert, number, shard};
use super::random::sum_op;
use super::world::{Flight, World, key, kind};
use base::Planted;
use base::{NodeId, TxnId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use txn::{LockMode, OpError, OpId, OpResult, Outcome, Protocol, Read};

/// Whether the schedule ends well. A broken invariant counts as a bad end.
fn ends_well(rule: Option<Planted>, schedule: fn(&mut World) -> bool) -> bool {
    let mut world = World::new(4, 1);
    for name in ["a0", "b0", "a1", "b1", "a2"] {
        world.load(key(name), 10);
    }
    if let Some(rule) = rule {
        world.plant(Some(rule));
    }
    match catch_unwind(AssertUnwindSafe(|| schedule(&mut world))) {
        Ok(well) => well,
        Err(_) => rule.is_none() && panic!("our rules broke an invariant"),
    }
}

pub(super) fn both(rule: Planted, schedule: fn(&mut World) -> bool) {
    assert!(ends_well(None, schedule), "by our rules");
    assert!(
        !ends_well(Some(rule), schedule),
        "the printed rule goes unnoticed: {rule:?}"
    );
}

/// Delivers all messages but those of the kinds `kept`, which are returned.
pub(super) fn deliver_but(world: &mut World, kept: &[&str]) -> Vec<Flight> {
    let mut left = Vec::new();
    for _ in 0..1_000 {
        world.flush_all();
        if world.flights.is_empty() {
            return left;
        }
        let flight = world.flights.remove(0);
        if kept.contains(&kind(&flight)) {
            left.push(flight);
        } else {
            world.deliver(flight);
        }
    }
    panic!("messages go on for ever");
}

pub(super) fn value(world: &mut World, at: u16, name: &str) -> Option<i64> {
    let txn = world.begin(shard(at));
    let id = world.submit(txn, get(name), true);
    for _ in 0..20 {
        world.settle();
        if let Some(reply) = world.take_answer(id) {
            return reply.result.is_ok().then(|| number(&reply)).flatten();
        }
        world.tick(300_000);
    }
    None
}

pub(super) fn done(world: &mut World, id: OpId) -> bool {
    world
        .take_answer(id)
        .is_some_and(|reply| reply.result.is_ok())
}

fn write(world: &mut World, at: u16, name: &str, delta: i64) -> bool {
    let txn = world.begin(shard(at));
    let id = world.submit(txn, add(name, delta), true);
    world.settle();
    done(world, id)
}

/// Rule L3: S1 requester, S2 home, S3 owner; the second copy of the response comes when T1 has
/// committed.
fn second_response(world: &mut World, variant: bool) -> bool {
    assert!(write(world, 3, "a1", 0));
    let slow = world.begin(shard(1));
    let op = world.submit(slow, add("a1", 1), false);
    let informs = deliver_but(world, &["Inform"]);
    assert!(done(world, op), "copy A has arrived");
    // The home hears nothing and asks again, and the owner answers from its backup.
    world.tick(250_000);
    let copies = deliver_but(world, &["Response"]);
    assert_eq!(copies.len(), 1, "copy B is on its way");
    let commit = world.commit(slow);
    assert!(done(world, commit));
    for inform in informs {
        world.deliver(inform);
    }
    world.settle();
    if variant {
        assert!(write(world, 4, "a1", 1));
    }
    for copy in copies {
        world.deliver(copy);
    }
    world.settle();
    let owners = world.owners(&key("a1"));
    let expected = if variant {
        (shard(4), 12)
    } else {
        (shard(1), 11)
    };
    owners == [expected.0] && value(world, 1, "a1") == Some(expected.1)
}

#[test]
fn lost_update_by_a_second_response() {
    both(Planted::LeapDuplicateAccepted, |world| {
        second_response(world, false)
    });
}

#[test]
fn two_owners_by_a_second_response() {
    both(Planted::LeapDuplicateAccepted, |world| {
        second_response(world, true)
    });
}

/// The response is lost, and the backup goes after a pause: no live copy is left.
#[test]
fn backup_is_kept_while_the_response_is_lost() {
    both(Planted::LeapBackupByTimeout, |world| {
        assert!(write(world, 3, "a1", 7));
        let txn = world.begin(shard(1));
        let op = world.submit(txn, add("a1", 1), true);
        for _ in 0..5 {
            deliver_but(world, &["Response"]);
            world.tick(250_000);
        }
        for _ in 0..10 {
            world.settle();
            world.tick(1_000_000);
        }
        done(world, op) && value(world, 2, "a1") == Some(18)
    });
}

/// A commits v1, K goes to B, which commits v2; K comes back unmodified; A crashes.
#[test]
fn one_log_does_not_resurrect_a_stale_value() {
    both(Planted::LeapArrivalNotLogged, |world| {
        assert!(write(world, 1, "a1", 1));
        assert!(write(world, 3, "a1", 1));
        assert_eq!(value(world, 1, "a1"), Some(12));
        world.tick(300_000);
        world.settle();
        world.crash(NodeId(1), 0);
        world.restart(NodeId(1));
        world.announce(NodeId(1));
        value(world, 2, "a1") == Some(12)
    });
}

/// S1 crashes after its inform and has lost K: when it asks again, it is answered.
#[test]
fn an_owner_that_has_lost_its_row_is_answered() {
    both(Planted::LeapOwnerIgnored, |world| {
        let txn = world.begin(shard(1));
        world.submit(txn, add("a1", 1), false);
        for expected in ["OwnerRequest", "Response", "Inform"] {
            // Nothing is flushed: the arrival is lost with the node.
            let at = world
                .flights
                .iter()
                .position(|flight| kind(flight) == expected);
            let flight = world.flights.remove(at.expect("it is under way"));
            world.deliver(flight);
        }
        world.crash(NodeId(1), 0);
        world.restart(NodeId(1));
        world.announce(NodeId(1));
        value(world, 1, "a1") == Some(10) && value(world, 3, "a1") == Some(10)
    });
}

/// No shard reports a record in flight; "not in the table means at home" makes two owners.
#[test]
fn a_restarted_home_waits_for_what_is_in_flight() {
    both(Planted::LeapHomeServesAtOnce, |world| {
        assert!(write(world, 3, "a1", 5));
        world.tick(300_000);
        world.settle();
        let txn = world.begin(shard(1));
        let op = world.submit(txn, add("a1", 1), false);
        let responses = deliver_but(world, &["Response"]);
        world.crash(NodeId(2), 0);
        world.restart(NodeId(2));
        // A transaction of the home itself, before any shard has reported.
        let own = world.begin(shard(2));
        let read = world.submit(own, get("a1"), true);
        let told = |world: &mut World, op| {
            let reply = world.take_answer(op)?;
            reply.result.is_ok().then(|| number(&reply)).flatten()
        };
        let at_once = told(world, read);
        for response in responses {
            world.deliver(response);
        }
        world.announce(NodeId(2));
        for _ in 0..20 {
            world.settle();
            world.tick(500_000);
        }
        let (own, other) = (at_once.or_else(|| told(world, read)), told(world, op));
        let right = |value: Option<i64>| value.is_none_or(|value| value == 15 || value == 16);
        world.owners(&key("a1")).len() == 1
            && right(own)
            && right(other)
            && own.is_some() | other.is_some()
    });
}

/// A row that a restarted owner's log says it owned may have gone since.
#[test]
fn a_restarted_owner_waits_for_its_homes() {
    both(Planted::LeapOwnerServesAtOnce, |world| {
        assert!(write(world, 3, "a1", 5));
        world.tick(300_000);
        world.settle();
        // It gives the row away, and crashes before its record of that is durable.
        let txn = world.begin(shard(1));
        world.submit(txn, add("a1", 1), true);
        for expected in ["OwnerRequest", "TransferRequest", "Response"] {
            let at = world
                .flights
                .iter()
                .position(|flight| kind(flight) == expected);
            let flight = world.flights.remove(at.expect("it is under way"));
            world.deliver(flight);
        }
        world.crash(NodeId(3), 0);
        world.restart(NodeId(3));
        world.owners(&key("a1")) == [shard(1)]
    });
}

/// Two nodes insert the same absent key.
#[test]
fn an_absent_key_has_one_owner() {
    both(Planted::LeapAbsentNotOwned, |world| {
        let (first, second) = (world.begin(shard(2)), world.begin(shard(3)));
        let a = world.submit(first, insert("new0", 1), false);
        let b = world.submit(second, insert("new0", 2), false);
        world.settle();
        let inserted = |reply: Option<txn::OpReply>| {
            reply.is_some_and(|reply| reply.result == Ok(OpResult::Done))
        };
        let both = inserted(world.take_answer(a)) && inserted(world.take_answer(b));
        !both
    });
}

/// Rows are owned, gaps are not: an insert elsewhere is a phantom, and two of them a write skew.
#[test]
fn a_scan_keeps_others_out_of_its_gaps() {
    both(Planted::LeapGapsNotLocked, |world| {
        let read = Read::Lock(LockMode::Shared);
        let (one, two) = (world.begin(shard(2)), world.begin(shard(3)));
        let sums = [one, two].map(|txn| world.submit_to(txn, shard(1), sum_op(read), false));
        world.settle();
        assert!(sums.iter().all(|sum| done(world, *sum)));
        // Each inserts a row that the other has not seen.
        let writes = [(one, "p0"), (two, "q0")];
        let writes = writes.map(|(txn, name)| world.submit(txn, insert(name, 1), false));
        world.settle();
        for (txn, write) in [one, two].into_iter().zip(writes) {
            if world
                .take_answer(write)
                .is_some_and(|reply| reply.result.is_ok())
            {
                world.commit(txn);
            }
            world.settle();
        }
        let committed = |txn: &TxnId| {
            let mut events = world.history.iter();
            events.any(|event| match event {
                txn::Event::Commit { txn: other, .. } => other == txn,
                _ => false,
            })
        };
        !(committed(&one) && committed(&two))
    });
}

/// An entry of a unique index is a row like any other.
#[test]
fn a_unique_entry_has_one_owner() {
    both(Planted::LeapAbsentNotOwned, |world| {
        let first = world.begin(shard(2));
        let a = world.submit(first, insert("u0", 1), true);
        world.settle();
        let second = world.begin(shard(3));
        let b = world.submit(second, insert("u0", 2), false);
        world.settle();
        assert!(done(world, a));
        world
            .take_answer(b)
            .is_some_and(|reply| reply.result == Ok(OpResult::Exists))
    });
}

/// The owner's queue hands K to an older waiter while a younger request goes on waiting; the older
/// one then wants what the younger one holds.
#[test]
fn a_younger_request_does_not_wait_for_an_older_holder() {
    both(Planted::LeapYoungerWaits, |world| {
        let older = world.begin(shard(1));
        let younger = world.begin(shard(2));
        let holder = world.begin(shard(1));
        // The younger one holds L, the older one a row that no other wants.
        world.submit(older, get("b0"), false);
        let l = world.submit(younger, add("a1", 1), false);
        let k = world.submit(holder, add("a0", 1), false);
        world.settle();
        assert!(done(world, l) && done(world, k));
        let first = world.submit(younger, add("a0", 1), false);
        world.settle();
        let second = world.submit(older, add("a0", 1), false);
        world.settle();
        world.commit(holder);
        world.settle();
        // The transaction that has K now goes on to L, or ends.
        let third = world.take_answer(second).map(|reply| {
            assert!(reply.result.is_ok());
            world.submit(older, add("a1", 1), false)
        });
        for _ in 0..20 {
            world.settle();
            if let Some(reply) = world.take_answer(first) {
                if reply.result.is_ok() {
                    world.commit(younger);
                }
                world.settle();
                let waited = third.unwrap_or(second);
                return done(world, waited);
            }
            world.tick(100_000);
        }
        false
    });
}

/// A version that another node has read must survive a crash.
#[test]
fn an_undurable_version_does_not_leave() {
    both(Planted::LeapVersionNotDurable, |world| {
        let txn = world.begin(shard(2));
        world.submit(txn, add("a1", 1), true);
        let reader = world.begin(shard(1));
        let read = world.submit(reader, get("a1"), true);
        let request = world.flights.remove(0);
        world.deliver(request);
        let at = world
            .flights
            .iter()
            .position(|flight| kind(flight) == "Response")
            .unwrap();
        if world.may_leave(&world.flights[at]) {
            let response = world.flights.remove(at);
            world.deliver(response);
        }
        let seen = world.take_answer(read).and_then(|reply| number(&reply));
        world.crash(NodeId(2), 0);
        // The reader was told 11, which is lost now.
        seen.is_none()
    });
}

/// Youngest first would serve all others before; after enough deaths a transaction is urgent.
#[test]
fn an_urgent_request_goes_first() {
    let mut world = World::new(4, 1);
    world.load(key("a0"), 10);
    let old = world.begin(shard(2));
    let urgent = TxnId {
        counter: 1_000,
        ..old
    };
    world.call(shard(2), |protocol, cx| {
        let options = txn::TxnOptions {
            urgent: true,
            ..super::world::options(cx.clock.tick(cx.now))
        };
        protocol.begin(cx, urgent, options);
    });
    let holder = world.begin(shard(4));
    let held = world.submit(holder, add("a0", 1), false);
    world.settle();
    assert!(done(&mut world, held));
    let first = world.submit(urgent, add("a0", 1), false);
    world.settle();
    let younger = world.begin(shard(3));
    world.submit(younger, insert("b9", 1), false);
    world.settle();
    let dies = world.submit(younger, add("a0", 1), false);
    world.settle();
    let died = world
        .take_answer(dies)
        .expect("it may not wait for the urgent one");
    assert!(matches!(died.result, Err(OpError::Aborted(_))));
    world.commit(holder);
    world.settle();
    assert_eq!(number(&world.take_answer(first).unwrap()), Some(12));
    let commit = world.commit(urgent);
    let reply = world.take_answer(commit).unwrap();
    assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
}
