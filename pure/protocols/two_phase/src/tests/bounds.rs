//! Commits of nodes whose clocks are far apart, beside a node that may end and forget its locks.

use super::world::{TABLE, World, key};
use base::{NodeId, ShardId};
use bed::programs::{Test, program};
use txn::{AbortReason, LockMode, Op, Outcome, Read};

/// How far the clock of node 3 is ahead: more than the bound of any other.
const FAST_US: u64 = 4_000_000;

fn shard(node: u16) -> ShardId {
    ShardId::new(NodeId(node), 0)
}

/// Reads a row of node 2, changes one of node 1 and, as its last statement, one of node 3.
fn run(early: bool, ahead_us: u64) -> (World, Outcome) {
    let mut world = World::new(3, 1);
    world.early_answer = early;
    world.ahead.insert(NodeId(3), ahead_us);
    for node in 1..=3 {
        world.load_at(shard(node), key(TABLE, "a"), 1);
    }
    let txn = world.begin(shard(1));
    let get = Op::Get {
        key: key(TABLE, "a"),
        read: Read::Lock(LockMode::Shared),
        program: program(Test::Read),
    };
    let add = || Op::Modify {
        key: key(TABLE, "a"),
        program: program(Test::Add(1)),
    };
    let read = world.submit_to(txn, shard(2), get, false);
    let change = world.submit_to(txn, shard(1), add(), false);
    world.settle();
    for id in [read, change] {
        assert!(world.take_answer(id).is_some());
    }
    // Node 2 votes before it hears of the clock of node 3.
    let last = world.submit_to(txn, shard(3), add(), true);
    world.settle();
    let reply = world.take_answer(last).expect("all have answered");
    (world, reply.outcome.expect("the commit rode along"))
}

/// Node 2 may end when it has voted, and its next life lets others change what was read, at
/// timestamps above its bound (rule C5).
#[test]
fn a_commit_is_not_above_the_bound_of_a_readers_node() {
    for early in [false, true] {
        let (world, outcome) = run(early, 0);
        let Outcome::Committed { commit_ts } = outcome else {
            panic!("clocks are alike: {outcome:?}");
        };
        assert!(commit_ts < world.nodes[&NodeId(2)].clock_bound);
        let (_, outcome) = run(early, FAST_US);
        assert_eq!(outcome, Outcome::Aborted(AbortReason::Overtaken(None)));
    }
}

/// A transaction of one read commits without another question, so at a time when the row was
/// surely locked: its node may have ended since, and let others change the row.
#[test]
fn a_lone_read_commits_when_its_row_was_locked() {
    let mut world = World::new(2, 1);
    world.load_at(shard(2), key(TABLE, "a"), 1);
    let txn = world.begin(shard(1));
    let get = Op::Get {
        key: key(TABLE, "a"),
        read: Read::Lock(LockMode::Shared),
        program: program(Test::Read),
    };
    let read = world.submit_to(txn, shard(2), get, false);
    world.settle();
    assert!(world.take_answer(read).is_some());
    let locked_at = world.shards[&shard(2)].clock.last();
    world.now = world.now.after(10_000_000);
    let commit = world.commit(txn);
    let outcome = world.take_answer(commit).and_then(|reply| reply.outcome);
    let Some(Outcome::Committed { commit_ts }) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(commit_ts, locked_at.end_of_tick());
}
