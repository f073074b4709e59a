//! Commit timestamps beside a node that may end and forget its locks.

use super::world::{TABLE, World, key};
use base::{NodeId, ShardId};
use bed::programs::{Test, program};
use txn::{LockMode, Op, Outcome, Read};

fn shard(node: u16) -> ShardId {
    ShardId::new(NodeId(node), 0)
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
