//! Snapshots that miss nothing that was answered before their reader began, whatever clocks say.

use super::world::{Flight, TABLE, World, key};
use base::{KeyRange, NodeId, ShardId, Ts, TxnId};
use bed::programs::{Test, program};
use txn::{Op, OpError, OpReply, OpResult, Outcome, Protocol, Read, ScanOp, Slots, Snapshot};

const FAST_US: u64 = 20_000;

fn shard(node: u16) -> ShardId {
    ShardId::new(NodeId(node), 0)
}

/// Node 1 is slow, nodes 2 and 3 are ahead.
fn world() -> World {
    let mut world = World::new(3, 1);
    for node in 1..=3 {
        for (name, value) in [("a", 1), ("b", 2)] {
            world.load_at(shard(node), key(TABLE, name), value);
        }
    }
    world.ahead.insert(NodeId(2), FAST_US);
    world.ahead.insert(NodeId(3), FAST_US);
    world
}

fn add(name: &str) -> Op {
    Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Add(10)),
    }
}

fn remove(name: &str) -> Op {
    Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Remove),
    }
}

fn get(name: &str, snapshot: Snapshot) -> Op {
    Op::Get {
        key: key(TABLE, name),
        read: Read::Snapshot(snapshot),
        program: program(Test::Read),
    }
}

fn sum(snapshot: Snapshot) -> Op {
    Op::Scan(ScanOp {
        index: TABLE,
        slots: Slots::All,
        range: KeyRange::all(),
        reverse: false,
        read: Read::Snapshot(snapshot),
        program: program(Test::Sum),
        row_limit: u64::MAX,
        batch_rows: u32::MAX,
        after: None,
    })
}

/// Runs an operation of a transaction to its answer.
fn ask(world: &mut World, txn: TxnId, to: ShardId, op: Op) -> OpReply {
    let id = world.submit_to(txn, to, op, false);
    world.settle();
    world.take_answer(id).expect("answered")
}

/// Commits one change of one row, coordinated where the row is; gives its timestamp.
fn change(world: &mut World, at: ShardId, op: Op) -> Ts {
    let txn = world.begin(at);
    let id = world.submit_to(txn, at, op, true);
    world.settle();
    match world.take_answer(id).expect("answered").outcome {
        Some(Outcome::Committed { commit_ts }) => commit_ts,
        other => panic!("{other:?}"),
    }
}

fn begin(world: &mut World) -> (TxnId, Snapshot) {
    let txn = world.begin(shard(1));
    let ts = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    (txn, Snapshot::recent(ts, ts))
}

fn int(reply: &OpReply) -> i64 {
    let Ok(OpResult::Rows { batch, .. }) = &reply.result else {
        panic!("{reply:?}");
    };
    batch.datums[0].as_int().expect("a number")
}

fn raised(reply: &OpReply) -> Ts {
    match reply.result {
        Err(OpError::Raise(at)) => at,
        ref other => panic!("{other:?}"),
    }
}

fn at(snapshot: Snapshot, at: Ts) -> Snapshot {
    Snapshot { at, ..snapshot }
}

#[test]
fn a_sole_read_is_moved_by_the_shard() {
    let mut world = world();
    let commit = change(&mut world, shard(2), add("a"));
    let (txn, snapshot) = begin(&mut world);
    assert!(commit > snapshot.at, "the clocks are apart");
    let sole = Snapshot {
        sole: true,
        ..snapshot
    };
    let reply = ask(&mut world, txn, shard(2), get("a", sole));
    assert_eq!(int(&reply), 11);
    let cost = world.shards[&shard(1)].protocol.cost(txn).expect("known");
    assert_eq!((cost.messages_on_path, cost.delays), (2, 2));
}

#[test]
fn a_reader_that_was_refused_is_not_refused_again() {
    let mut world = world();
    let first = change(&mut world, shard(2), add("a"));
    let (txn, snapshot) = begin(&mut world);
    let to = raised(&ask(&mut world, txn, shard(2), sum(snapshot)));
    assert!(to >= first);
    // A later commit is none that it must see.
    change(&mut world, shard(2), add("b"));
    let reply = ask(&mut world, txn, shard(2), sum(at(snapshot, to)));
    assert_eq!(int(&reply), 11 + 2);
    // The other shard has had nothing new: no refusal, no message more.
    let reply = ask(&mut world, txn, shard(3), sum(at(snapshot, to)));
    assert_eq!(int(&reply), 3);
}

#[test]
fn what_comes_after_the_first_contact_refuses_nobody() {
    let mut world = world();
    let (txn, snapshot) = begin(&mut world);
    assert_eq!(int(&ask(&mut world, txn, shard(2), get("a", snapshot))), 1);
    change(&mut world, shard(2), add("b"));
    assert_eq!(int(&ask(&mut world, txn, shard(2), get("b", snapshot))), 2);
    assert_eq!(int(&ask(&mut world, txn, shard(2), sum(snapshot))), 3);
    // For the next statement it is answered already.
    let ts = world.call(shard(1), |_, cx| cx.clock.tick(cx.now));
    let next = Snapshot::recent(ts, ts);
    assert_eq!(int(&ask(&mut world, txn, shard(2), get("b", next))), 12);
}

#[test]
fn what_was_there_at_the_first_contact_is_found_later() {
    let mut world = world();
    change(&mut world, shard(2), remove("b"));
    let (txn, snapshot) = begin(&mut world);
    assert_eq!(int(&ask(&mut world, txn, shard(2), get("a", snapshot))), 1);
    let to = raised(&ask(&mut world, txn, shard(2), get("b", snapshot)));
    let reply = ask(&mut world, txn, shard(2), sum(at(snapshot, to)));
    assert_eq!(int(&reply), 1);
}

/// A commit of shards 2 and 3 that is answered, and of which shard 2 does not know: its timestamp,
/// and the messages that tell.
fn answered(world: &mut World) -> (Ts, Vec<Flight>) {
    let txn = world.begin(shard(3));
    for to in [shard(2), shard(3)] {
        let id = world.submit_to(txn, to, add("a"), false);
        world.settle();
        world.take_answer(id).expect("answered");
    }
    let commit = world.commit(txn);
    let told = loop {
        let at = world.flights.iter().position(|flight| {
            let decides = matches!(flight.message.body, crate::message::Body::Decide(_));
            !decides && world.may_leave(flight)
        });
        match at {
            Some(at) => {
                let flight = world.flights.remove(at);
                world.deliver(flight);
            }
            None => {
                for node in 1..=3 {
                    world.flush(NodeId(node));
                }
            }
        }
        if let Some(reply) = world.take_answer(commit) {
            break reply;
        }
    };
    let Some(Outcome::Committed { commit_ts }) = told.outcome else {
        panic!("{told:?}");
    };
    (commit_ts, core::mem::take(&mut world.flights))
}

/// The decision is answered and has not reached the participant that the reader comes to.
#[test]
fn a_promise_of_an_answered_commit_is_waited_for_and_seen() {
    let mut world = world();
    let (commit_ts, held) = answered(&mut world);
    let (reader, snapshot) = begin(&mut world);
    assert!(snapshot.at < commit_ts);
    let id = world.submit_to(reader, shard(2), sum(snapshot), false);
    world.settle();
    assert!(world.take_answer(id).is_none(), "it waits for the outcome");
    world.flights = held;
    world.settle();
    let to = raised(&world.take_answer(id).expect("answered"));
    assert!(to >= commit_ts);
    let reply = ask(&mut world, reader, shard(2), sum(at(snapshot, to)));
    assert_eq!(int(&reply), 13);
}

/// The reader begins again below the commit for which it has waited, because another shard has
/// refused it there: it is refused here, too.
#[test]
fn a_promise_that_was_waited_for_is_not_missed_the_second_time() {
    let mut world = world();
    let (commit_ts, held) = answered(&mut world);
    let (reader, snapshot) = begin(&mut world);
    let id = world.submit_to(reader, shard(2), sum(snapshot), false);
    world.settle();
    world.flights = held;
    world.settle();
    raised(&world.take_answer(id).expect("answered"));
    let low = Ts(snapshot.at.0 + 1);
    assert!(low < commit_ts);
    let to = raised(&ask(&mut world, reader, shard(2), sum(at(snapshot, low))));
    assert!(to >= commit_ts);
    let reply = ask(&mut world, reader, shard(2), sum(at(snapshot, to)));
    assert_eq!(int(&reply), 13);
}

/// The first operation there wants another row and does not wait; the promise is kept before the
/// second one comes.
#[test]
fn a_promise_that_was_there_at_the_first_contact_is_found_later() {
    let mut world = world();
    let (commit_ts, held) = answered(&mut world);
    let (reader, snapshot) = begin(&mut world);
    let reply = ask(&mut world, reader, shard(2), get("b", snapshot));
    assert_eq!(int(&reply), 2);
    world.flights = held;
    world.settle();
    let to = raised(&ask(&mut world, reader, shard(2), get("a", snapshot)));
    assert!(to >= commit_ts);
    // What is written afterwards is none that it must see.
    change(&mut world, shard(2), add("b"));
    let reply = ask(&mut world, reader, shard(2), get("b", at(snapshot, to)));
    assert_eq!(int(&reply), 2);
}

#[test]
fn clocks_of_all_shards_name_a_snapshot_that_nobody_refuses() {
    let mut world = world();
    change(&mut world, shard(2), add("a"));
    let (txn, snapshot) = begin(&mut world);
    let mut latest = snapshot.at;
    for node in 1..=3 {
        let reply = ask(&mut world, txn, shard(node), Op::Clock(snapshot));
        let Ok(OpResult::Clock(clock)) = reply.result else {
            panic!("{reply:?}");
        };
        latest = latest.max(clock);
    }
    change(&mut world, shard(3), add("a"));
    let exactly = Snapshot::exactly(latest);
    assert_eq!(int(&ask(&mut world, txn, shard(2), sum(exactly))), 13);
    assert_eq!(int(&ask(&mut world, txn, shard(3), sum(exactly))), 3);
}
