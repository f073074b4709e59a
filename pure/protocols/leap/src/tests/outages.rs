//! Nodes that cannot be reached: a transaction that needs one is refused at once, others go on.

use super::local::{add, bump, get, number, run, shard};
use super::random::sum_op;
use super::world::{World, key, kind};
use crate::Settings;
use base::{NodeId, Planted, ShardId, Ts};
use bed::programs::{Test, program};
use txn::{
    AbortReason, LockMode, MovingRows, Op, OpError, OpId, OpReply, Outcome, Protocol, Read,
    Snapshot, Tie,
};

fn world() -> World {
    let mut world = World::new(3, 1);
    for name in ["a0", "b0", "a1", "b1", "a2", "b2"] {
        world.load(key(name), 10);
    }
    world
}

fn reason(reply: &OpReply) -> Option<&AbortReason> {
    match &reply.result {
        Err(OpError::Aborted(reason)) => Some(reason),
        Ok(_) | Err(OpError::Sql(_) | OpError::Raise(_)) => None,
    }
}

fn cut_off(name: &str, at: u16, tie: Tie) -> AbortReason {
    let (key, at) = (key(name), shard(at));
    AbortReason::RowCutOff { key, at, tie }
}

/// The answer to an operation after everything deliverable was delivered, without a timer.
fn told(world: &mut World, id: OpId) -> OpReply {
    world.settle();
    let reply = world.take_answer(id);
    reply.unwrap_or_else(|| panic!("it is answered at once"))
}

fn ask(world: &mut World, at: u16, op: Op) -> OpId {
    let txn = world.begin(shard(at));
    world.submit(txn, op, true)
}

/// All nodes are reached again, and all work ends.
fn rest(world: &mut World) {
    for _ in 0..12 {
        world.settle();
        world.tick(500_000);
    }
    world.settle();
    assert!(world.is_idle());
}

fn read(name: &str) -> Op {
    let sole = Snapshot {
        sole: true,
        ..Snapshot::exactly(Ts(1))
    };
    Op::Get {
        key: key(name),
        read: Read::Snapshot(sole),
        program: program(Test::Read),
    }
}

/// A row is at a dead node, its home lives: a request for it is refused, and so are earlier ones
/// and those that wait behind them.
#[test]
fn a_row_at_a_dead_owner_is_refused_at_once() {
    let mut world = world();
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    assert_eq!(world.owner(&key("a0")), shard(2));
    let before: Vec<OpId> = [3, 3, 1, 1]
        .map(|at| ask(&mut world, at, add("a0", 1)))
        .into();
    let granted = world.flights.iter().any(|f| kind(f) == "TransferRequest");
    assert!(granted, "one of them was granted");
    world
        .flights
        .retain(|flight| kind(flight) != "TransferRequest");
    world.kill(NodeId(2));
    let away = cut_off("a0", 2, Tie::Owner);
    for id in before {
        assert_eq!(reason(&told(&mut world, id)), Some(&away));
    }
    for at in [1, 3] {
        for op in [add("a0", 1), get("a0"), read("a0"), bump("a0", 1)] {
            let id = ask(&mut world, at, op);
            assert_eq!(reason(&told(&mut world, id)), Some(&away), "at {at}");
        }
        let id = ask(&mut world, at, add("b0", 1));
        assert!(
            told(&mut world, id).outcome.is_some(),
            "others are not concerned"
        );
    }
    world.bring_back(NodeId(2));
    rest(&mut world);
    for at in [1, 3, 2] {
        let (_, reply) = run(&mut world, at, get("a0"));
        assert_eq!(number(&reply), Some(11));
    }
    rest(&mut world);
}

/// By the planted rule no request would be refused, and the test above would see that.
#[test]
fn a_home_that_waits_for_a_dead_owner_is_seen() {
    let mut world = world();
    world.plant(Some(Planted::LeapOutageWaitedFor));
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    world.kill(NodeId(2));
    let id = ask(&mut world, 3, add("a0", 1));
    for _ in 0..8 {
        world.settle();
        world.tick(1_000_000);
    }
    assert!(world.take_answer(id).is_none());
}

/// The home of a row is dead. Its owner uses the row, a reader finds the owner, a change of one row
/// goes there, and a transaction that needs the row itself is refused.
#[test]
fn a_row_whose_home_is_dead_is_used_where_it_is() {
    let mut world = world();
    run(&mut world, 3, add("a1", 1));
    rest(&mut world);
    assert_eq!(world.owner(&key("a1")), shard(3));
    world.kill(NodeId(2));
    let (_, reply) = run(&mut world, 3, add("a1", 1));
    assert_eq!(number(&reply), Some(12));
    let (_, reply) = run(&mut world, 1, read("a1"));
    assert_eq!(number(&reply), Some(12));
    for op in [add("a1", 1), bump("a1", 1)] {
        let (_, reply) = run(&mut world, 1, op);
        assert!(matches!(reply.outcome, Some(Outcome::Committed { .. })));
    }
    assert_eq!(world.owner(&key("a1")), shard(3));
    // As part of a larger transaction, the change needs the row itself.
    let txn = world.begin(shard(1));
    let id = world.submit(txn, add("a1", 1), false);
    let away = cut_off("a1", 2, Tie::Home);
    assert_eq!(reason(&told(&mut world, id)), Some(&away));
    // A row that was at home, and one that does not exist yet.
    for op in [read("b1"), add("b1", 1), super::local::insert("new1", 1)] {
        let id = ask(&mut world, 1, op);
        let reply = told(&mut world, id);
        let Some(AbortReason::RowCutOff {
            at, tie: Tie::Home, ..
        }) = reason(&reply)
        else {
            panic!("{reply:?}")
        };
        assert_eq!(*at, shard(2));
    }
    world.bring_back(NodeId(2));
    rest(&mut world);
    for at in [1, 2, 3] {
        let (_, reply) = run(&mut world, at, get("a1"));
        assert_eq!(number(&reply), Some(14));
    }
    rest(&mut world);
}

/// A dead node has requested rows that are in use elsewhere: the rows do not leave.
#[test]
fn a_row_does_not_leave_for_a_dead_node() {
    for home in [1, 3] {
        let name = if home == 1 { "a0" } else { "a2" };
        let mut world = world();
        run(&mut world, 1, add(name, 1));
        rest(&mut world);
        let holder = world.begin(shard(1));
        world.submit(holder, add(name, 1), false);
        let old = world.begin_as(shard(2), Some(Ts(5)));
        let wanted = world.submit(old, add(name, 1), true);
        world.settle();
        assert!(world.take_answer(wanted).is_none(), "node 2 waits for it");
        world.kill(NodeId(2));
        world.settle();
        world.commit(holder);
        world.settle();
        assert_eq!(world.owner(&key(name)), shard(1));
        for at in [1, 3, 1] {
            let id = ask(&mut world, at, add(name, 1));
            assert!(told(&mut world, id).outcome.is_some(), "{name} at {at}");
        }
        world.bring_back(NodeId(2));
        rest(&mut world);
        let (_, reply) = run(&mut world, 2, get(name));
        assert_eq!(number(&reply), Some(15));
        rest(&mut world);
    }
}

/// A row is on its way to a node that dies: no other shard gets it until its place is known.
#[test]
fn a_row_on_its_way_to_a_dead_node_waits_for_it_and_nobody_else_does() {
    let mut world = world();
    run(&mut world, 1, add("a2", 1));
    rest(&mut world);
    ask(&mut world, 2, add("a2", 1));
    while let Some(at) = world.flights.iter().position(|f| kind(f) != "Response") {
        let flight = world.flights.remove(at);
        world.deliver(flight);
    }
    assert_eq!(world.flights.len(), 1, "it is on its way");
    world.kill(NodeId(2));
    world.flights.clear();
    for at in [1, 3] {
        for op in [add("a2", 1), read("a2")] {
            let id = ask(&mut world, at, op);
            let away = cut_off("a2", 2, Tie::Owner);
            assert_eq!(reason(&told(&mut world, id)), Some(&away), "at {at}");
        }
    }
    world.bring_back(NodeId(2));
    rest(&mut world);
    let (_, reply) = run(&mut world, 3, add("a2", 1));
    assert_eq!(number(&reply), Some(12));
    rest(&mut world);
}

/// Owner and requester do not reach each other, but their home reaches both. A row that has left
/// and cannot arrive comes back, and the requester is told why the row does not come.
#[test]
fn a_row_that_cannot_cross_a_cut_comes_back() {
    for crossing in [false, true] {
        let mut world = world();
        run(&mut world, 2, add("a0", 1));
        rest(&mut world);
        let wanted = ask(&mut world, 3, add("a0", 1));
        if crossing {
            while let Some(at) = world.flights.iter().position(|f| kind(f) != "Response") {
                let flight = world.flights.remove(at);
                world.deliver(flight);
            }
        }
        world.cut(NodeId(2), NodeId(3));
        let reply = told(&mut world, wanted);
        assert_eq!(
            reason(&reply),
            Some(&cut_off("a0", 2, Tie::Owner)),
            "{crossing}"
        );
        assert_eq!(world.owner(&key("a0")), shard(2));
        // The owner has the row, and the home may have it.
        for at in [2, 1, 2] {
            let id = ask(&mut world, at, add("a0", 1));
            assert!(told(&mut world, id).outcome.is_some(), "{crossing}");
        }
        world.mend(NodeId(2), NodeId(3));
        rest(&mut world);
        let (_, reply) = run(&mut world, 3, add("a0", 1));
        assert_eq!(number(&reply), Some(15));
        rest(&mut world);
    }
}

/// A scan is told which of its rows is at a dead node, or on its way from or to one.
#[test]
fn a_scan_over_a_row_of_a_dead_node_is_refused() {
    let mut world = world();
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    let modes = [
        Read::Lock(LockMode::Shared),
        Read::Snapshot(Snapshot::exactly(Ts::from_time(world.now))),
    ];
    let scans: Vec<OpId> = modes
        .into_iter()
        .map(|mode| {
            let txn = world.begin(shard(3));
            world.submit_to(txn, shard(1), sum_op(mode), true)
        })
        .collect();
    while let Some(at) = world.flights.iter().position(|f| kind(f) != "Fetch") {
        let flight = world.flights.remove(at);
        world.deliver(flight);
    }
    assert_eq!(world.flights.len(), 2);
    world.flights.clear();
    world.kill(NodeId(2));
    let away = cut_off("a0", 2, Tie::Owner);
    for id in scans {
        assert_eq!(reason(&told(&mut world, id)), Some(&away));
    }
    for mode in modes {
        let txn = world.begin(shard(3));
        let id = world.submit_to(txn, shard(1), sum_op(mode), true);
        assert_eq!(reason(&told(&mut world, id)), Some(&away));
        // The slots of the dead node are scanned at that node.
        let txn = world.begin(shard(3));
        let id = world.submit_to(txn, shard(2), sum_op(mode), true);
        let reply = told(&mut world, id);
        assert_eq!(reason(&reply), Some(&AbortReason::Unreachable(shard(2))));
    }
    world.bring_back(NodeId(2));
    rest(&mut world);
}

/// A transaction has read locks at a node that dies before it commits.
#[test]
fn a_commit_that_needs_a_dead_node_is_refused() {
    for under_way in [false, true] {
        let mut world = world();
        let txn = world.begin(shard(3));
        let scan = world.submit_to(txn, shard(2), sum_op(Read::Lock(LockMode::Shared)), false);
        told(&mut world, scan);
        let write = world.submit(txn, add("a2", 1), false);
        told(&mut world, write);
        let mut commit = under_way.then(|| world.commit(txn));
        world.flights.clear();
        world.kill(NodeId(2));
        let commit = *commit.get_or_insert_with(|| world.commit(txn));
        let reply = told(&mut world, commit);
        let away = AbortReason::Unreachable(shard(2));
        assert_eq!(reply.outcome, Some(Outcome::Aborted(away)));
        let (_, reply) = run(&mut world, 1, add("a2", 1));
        assert_eq!(
            number(&reply),
            Some(11),
            "nothing was committed, and nothing is locked"
        );
        world.bring_back(NodeId(2));
        rest(&mut world);
    }
}

/// Read locks of a coordinator that is away go after a while, and it does not commit on them.
#[test]
fn locks_of_a_dead_coordinator_go() {
    let mut world = world();
    let reader = world.begin(shard(2));
    let scan = world.submit_to(
        reader,
        shard(1),
        sum_op(Read::Lock(LockMode::Shared)),
        false,
    );
    told(&mut world, scan);
    let write = world.submit(reader, add("a1", 1), false);
    told(&mut world, write);
    // Node 2 lives, and no other node reaches it.
    world.cut(NodeId(1), NodeId(2));
    world.cut(NodeId(2), NodeId(3));
    let waiting = {
        let old = world.begin_as(shard(3), Some(Ts(5)));
        world.submit(old, add("a0", 1), true)
    };
    world.settle();
    assert!(
        world.take_answer(waiting).is_none(),
        "node 2 may still commit"
    );
    for _ in 0..4 {
        world.tick(300_000);
        world.settle();
    }
    assert_eq!(number(&told(&mut world, waiting)), Some(11));
    world.mend(NodeId(1), NodeId(2));
    world.mend(NodeId(2), NodeId(3));
    let commit = world.commit(reader);
    let reply = told(&mut world, commit);
    let away = AbortReason::Unreachable(shard(1));
    assert_eq!(reply.outcome, Some(Outcome::Aborted(away)));
    rest(&mut world);
}

/// The same, but the coordinator is back before it commits, and reads there once more. The new
/// locks do not stand for the old ones, under which others have written meanwhile.
#[test]
fn locks_that_went_once_are_not_confirmed() {
    let mut world = world();
    let reader = world.begin(shard(2));
    let scan = || sum_op(Read::Lock(LockMode::Shared));
    let first = world.submit_to(reader, shard(1), scan(), false);
    let sum = number(&told(&mut world, first)).unwrap();
    world.cut(NodeId(1), NodeId(2));
    let old = world.begin_as(shard(3), Some(Ts(5)));
    let write = world.submit(old, add("a0", 1), true);
    for _ in 0..4 {
        world.tick(300_000);
        world.settle();
    }
    assert_eq!(number(&told(&mut world, write)), Some(11));
    world.mend(NodeId(1), NodeId(2));
    let again = world.submit_to(reader, shard(1), scan(), false);
    assert_eq!(number(&told(&mut world, again)), Some(sum + 1));
    let write = world.submit(reader, add("a1", 1), false);
    told(&mut world, write);
    let commit = world.commit(reader);
    let reply = told(&mut world, commit);
    let aborted = matches!(reply.outcome, Some(Outcome::Aborted(_)));
    assert!(aborted, "it has read two states: {reply:?}");
    rest(&mut world);
    assert!(world.is_idle());
}

/// A coordinator that is away has a formula on a row, and only it knows whether the formula counts.
/// A transaction that needs the row is refused with that reason; other formulas go on.
#[test]
fn a_row_in_doubt_is_refused() {
    let mut world = world();
    world.settings(Settings {
        contended_from: 0,
        ..Settings::default()
    });
    // The row stays at its home, node 1; node 2 ships a formula to it.
    let shipping = world.begin(shard(2));
    let write = world.submit(shipping, add("a1", 1), false);
    told(&mut world, write);
    let ship = world.submit(shipping, bump("a0", 1), false);
    told(&mut world, ship);
    let shipped = world.shards[&shard(2)].protocol.moves().shipped;
    assert_eq!(shipped, 1);
    let old = world.begin_as(shard(1), Some(Ts(5)));
    let waiting = world.submit(old, add("a0", 1), false);
    world.settle();
    assert!(world.take_answer(waiting).is_none());
    world.kill(NodeId(2));
    let doubt = cut_off("a0", 2, Tie::Doubt(Box::new(shipping)));
    assert_eq!(reason(&told(&mut world, waiting)), Some(&doubt));
    world.tick(250_000);
    let doubts = world.shards[&shard(1)].protocol.doubts(world.now);
    let [listed] = &doubts[..] else {
        panic!("{doubts:?}");
    };
    assert_eq!((listed.txn, listed.node), (shipping, NodeId(2)));
    assert_eq!((listed.state, listed.rows), ("pending", 1));
    assert!(listed.age_us >= 250_000, "{listed:?}");
    for at in [1, 3] {
        for op in [add("a0", 1), read("a0")] {
            let id = ask(&mut world, at, op);
            let reply = told(&mut world, id);
            let excused = [Some(&doubt)].contains(&reason(&reply))
                || matches!(reason(&reply), Some(AbortReason::Die { .. }));
            assert!(excused, "at {at}: {reply:?}");
        }
        let id = ask(&mut world, at, bump("a0", 1));
        assert!(told(&mut world, id).outcome.is_some(), "formulas commute");
    }
    world.bring_back(NodeId(2));
    assert!(
        world.shards[&shard(1)]
            .protocol
            .doubts(world.now)
            .is_empty()
    );
    rest(&mut world);
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(12));
    rest(&mut world);
}

/// A restarted node needs all others before it serves. A request to it is refused with the name of
/// the node that it waits for.
#[test]
fn a_restarted_node_that_waits_for_a_dead_one_says_so() {
    let mut world = world();
    run(&mut world, 1, add("b1", 1));
    rest(&mut world);
    world.crash(NodeId(1), 0);
    world.kill(NodeId(2));
    world.restart(NodeId(1));
    world.announce(NodeId(1));
    world.lose_sight(NodeId(1), NodeId(2));
    for (at, op) in [(1, add("a0", 1)), (3, add("a0", 1)), (3, read("a0"))] {
        let id = ask(&mut world, at, op);
        let reply = told(&mut world, id);
        let away = AbortReason::Unreachable(shard(2));
        assert_eq!(reason(&reply), Some(&away), "at {at}");
    }
    world.bring_back(NodeId(2));
    rest(&mut world);
    let (_, reply) = run(&mut world, 3, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
    rest(&mut world);
}

/// A writer needs the copies of its row back, and one copy is at a dead node.
#[test]
fn a_copy_at_a_dead_node_is_named() {
    let mut world = world();
    world.settings(Settings {
        share_after: 1,
        ..Settings::default()
    });
    run(&mut world, 2, get("a0"));
    world.kill(NodeId(2));
    let id = ask(&mut world, 1, add("a0", 1));
    let copy = cut_off("a0", 2, Tie::Copy);
    assert_eq!(reason(&told(&mut world, id)), Some(&copy));
    let (_, reply) = run(&mut world, 3, get("a0"));
    assert_eq!(number(&reply), Some(10), "readers go on");
    world.bring_back(NodeId(2));
    rest(&mut world);
    let (_, reply) = run(&mut world, 1, add("a0", 1));
    assert_eq!(number(&reply), Some(11));
}

/// What a node missed while it was away is sent when it is back, not when a timer comes.
#[test]
fn nobody_waits_for_a_timer_when_a_node_is_back() {
    let mut world = world();
    run(&mut world, 2, add("a0", 1));
    rest(&mut world);
    let txn = world.begin(shard(3));
    world.submit(txn, add("a0", 1), true);
    world.flights.clear();
    world.cut(NodeId(1), NodeId(2));
    world.cut(NodeId(3), NodeId(1));
    for _ in 0..20 {
        world.tick(1_000_000);
        world.settle();
    }
    world.mend(NodeId(1), NodeId(2));
    world.mend(NodeId(3), NodeId(1));
    world.settle();
    let other: ShardId = shard(1);
    let (_, reply) = run(&mut world, other.node().0, get("a0"));
    assert_eq!(number(&reply), Some(11));
    rest(&mut world);
}

/// Formulas are shipped to the row `a0` at node 1.
fn shipping() -> World {
    let mut world = world();
    world.settings(Settings {
        contended_from: 0,
        ..Settings::default()
    });
    world
}

/// A coordinator commits, says at one owner that its reads are over, and ends before it can say the
/// same of its formula there. What it has read is free; only the row of the formula is in doubt.
#[test]
fn reads_beside_a_formula_in_doubt_are_free() {
    let mut world = shipping();
    let txn = world.begin(shard(2));
    let scan = sum_op(Read::Lock(LockMode::Shared));
    let scan = world.submit_to(txn, shard(1), scan, false);
    told(&mut world, scan);
    let ship = world.submit(txn, bump("a0", 1), false);
    told(&mut world, ship);
    world.commit(txn);
    // All is delivered but the outcome of the formula.
    while let Some(at) = world.flights.iter().position(|f| kind(f) != "Resolve") {
        let flight = world.flights.remove(at);
        world.deliver(flight);
    }
    let lost = world.flights.iter().any(|f| kind(f) == "Resolve");
    assert!(lost, "it was on its way");
    world.flights.clear();
    world.kill(NodeId(2));
    let write = ask(&mut world, 1, add("b0", 1));
    for _ in 0..4 {
        world.tick(500_000);
        world.settle();
    }
    let reply = world
        .take_answer(write)
        .expect("it does not wait for node 2");
    assert_eq!(number(&reply), Some(11));
}

/// A formula waits for a lock when its coordinator dies. It is not held afterwards: nobody could
/// decide it, and all that comes behind it would wait.
#[test]
fn a_formula_of_a_dead_coordinator_is_not_held() {
    let mut world = shipping();
    let first = world.begin_as(shard(1), Some(Ts(5)));
    let write = world.submit(first, add("a0", 1), false);
    told(&mut world, write);
    let dead = world.begin_as(shard(2), Some(Ts(4)));
    let ship = world.submit(dead, bump("a0", 1), false);
    world.settle();
    assert!(world.take_answer(ship).is_none(), "it waits for the lock");
    let behind = world.begin_as(shard(1), Some(Ts(3)));
    let behind = world.submit(behind, add("a0", 1), true);
    world.settle();
    world.kill(NodeId(2));
    world.commit(first);
    let reply = told(&mut world, behind);
    assert_eq!(number(&reply), Some(12));
}

/// A copy is wanted of a row in doubt.
#[test]
fn a_row_in_doubt_is_not_lent() {
    let mut world = shipping();
    world.settings(Settings {
        contended_from: 0,
        share_after: 1,
        ..Settings::default()
    });
    let txn = world.begin(shard(2));
    let own = world.submit(txn, add("a1", 1), false);
    told(&mut world, own);
    let ship = world.submit(txn, bump("a0", 1), false);
    told(&mut world, ship);
    world.kill(NodeId(2));
    let old = world.begin_as(shard(3), Some(Ts(5)));
    let read = world.submit(old, get("a0"), true);
    let doubt = cut_off("a0", 2, Tie::Doubt(Box::new(txn)));
    assert_eq!(reason(&told(&mut world, read)), Some(&doubt));
}
