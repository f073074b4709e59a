//! Messages, delays and forced writes of docs/protocols/two_phase.md, row by row.

use super::world::{TABLE, World, key};
use base::{NodeId, ShardId, TxnId};
use bed::programs::{Test, program};
use txn::{LockMode, Op, Outcome, Protocol, Read, TxnCost};

fn shard(node: u16, index: u16) -> ShardId {
    ShardId::new(NodeId(node), index)
}

fn world() -> World {
    let mut world = World::new(3, 2);
    let ids: Vec<ShardId> = world.shards.keys().copied().collect();
    for id in ids {
        for name in ["a", "b", "c"] {
            world.load_at(id, key(TABLE, name), 1);
        }
    }
    world
}

fn add(name: &str) -> Op {
    Op::Modify {
        key: key(TABLE, name),
        program: program(Test::Add(1)),
    }
}

fn get(name: &str) -> Op {
    let read = Read::Lock(LockMode::Shared);
    Op::Get {
        key: key(TABLE, name),
        read,
        program: program(Test::Read),
    }
}

/// Runs groups of operations (a group is submitted side by side), then commits unless the last
/// operation carries the commit. Answered early or not, all costs but the forced writes are the
/// same; returns those of an answer behind the decision.
fn run(ride: bool, groups: &[&[(ShardId, Op)]]) -> TxnCost {
    let (cost, early) = (run_as(false, ride, groups), run_as(true, ride, groups));
    let several = cost.forced_writes == 2;
    let forced_writes = cost.forced_writes - u32::from(several);
    assert_eq!((early.shards, early.nodes), (cost.shards, cost.nodes));
    assert_eq!(
        figures(early),
        figures(TxnCost {
            forced_writes,
            ..cost
        })
    );
    cost
}

fn run_as(early: bool, ride: bool, groups: &[&[(ShardId, Op)]]) -> TxnCost {
    let mut world = world();
    world.early_answer = early;
    let txn = world.begin(shard(1, 0));
    let mut outcome = None;
    for (at, group) in groups.iter().enumerate() {
        let last = ride && at + 1 == groups.len();
        let ids: Vec<_> = group
            .iter()
            .map(|(to, op)| world.submit_to(txn, *to, op.clone(), last))
            .collect();
        world.settle();
        for id in ids {
            let reply = world.take_answer(id).expect("answered");
            assert!(reply.result.is_ok());
            outcome = reply.outcome;
        }
    }
    if outcome.is_none() {
        let id = world.commit(txn);
        world.settle();
        outcome = world.take_answer(id).expect("answered").outcome;
    }
    assert!(matches!(outcome, Some(Outcome::Committed { .. })));
    let cost = world.shards[&txn.shard]
        .protocol
        .cost(txn)
        .expect("known until forgotten");
    compare_counters(&world, txn, cost);
    assert!(world.shards.values().all(|shard| shard.protocol.is_idle()));
    cost
}

/// What the coordinator charges the transaction is what the shards really sent.
fn compare_counters(world: &World, txn: TxnId, cost: TxnCost) {
    let sent: u64 = world
        .shards
        .values()
        .map(|shard| shard.counters.messages)
        .sum();
    assert_eq!(
        sent,
        u64::from(cost.messages_on_path + cost.messages_off_path)
    );
    let counters = &world.shards[&txn.shard].counters;
    assert_eq!(counters.messages_on_path, u64::from(cost.messages_on_path));
    assert_eq!(counters.forced_writes, u64::from(cost.forced_writes));
    assert_eq!(counters.txn_committed, 1);
}

/// (delays, messages on the path, off the path, forced writes)
fn figures(cost: TxnCost) -> (u32, u32, u32, u32) {
    (
        cost.delays,
        cost.messages_on_path,
        cost.messages_off_path,
        cost.forced_writes,
    )
}

#[test]
fn dependent_remote_statements() {
    let (home, far) = (shard(1, 0), shard(2, 0));
    let one: &[&[_]] = &[&[(home, add("a"))], &[(far, add("a"))]];
    assert_eq!(figures(run(false, one)), (4, 4, 2, 2));
    let two: &[&[_]] = &[&[(home, add("a"))], &[(far, add("a"))], &[(far, add("b"))]];
    assert_eq!(figures(run(false, two)), (6, 6, 2, 2));
    let three: &[&[_]] = &[
        &[(home, add("a"))],
        &[(far, add("a"))],
        &[(far, add("b"))],
        &[(far, get("c"))],
    ];
    assert_eq!(figures(run(false, three)), (8, 8, 2, 2));
}

#[test]
fn prepare_rides_on_the_last_statement() {
    let (home, far) = (shard(1, 0), shard(2, 0));
    let one: &[&[_]] = &[&[(home, add("a"))], &[(far, add("a"))]];
    assert_eq!(figures(run(true, one)), (2, 2, 2, 2));
    let two: &[&[_]] = &[&[(home, add("a"))], &[(far, add("a"))], &[(far, add("b"))]];
    assert_eq!(figures(run(true, two)), (4, 4, 2, 2));
}

#[test]
fn statements_side_by_side_count_once() {
    let (home, far, farther) = (shard(1, 0), shard(2, 0), shard(3, 0));
    let groups: &[&[_]] = &[&[(home, add("a"))], &[(far, add("a")), (farther, add("a"))]];
    let cost = run(false, groups);
    assert_eq!(figures(cost), (4, 8, 4, 2));
    assert_eq!((cost.shards, cost.nodes), (3, 3));
}

#[test]
fn one_participant_node() {
    let (home, beside, far) = (shard(1, 0), shard(1, 1), shard(2, 0));
    assert_eq!(figures(run(true, &[&[(home, add("a"))]])), (0, 0, 0, 1));
    assert_eq!(figures(run(false, &[&[(home, add("a"))]])), (0, 0, 0, 1));
    assert_eq!(figures(run(true, &[&[(far, add("a"))]])), (2, 2, 0, 1));
    let node: &[&[_]] = &[&[(home, add("a"))], &[(beside, add("a"))]];
    let cost = run(false, node);
    assert_eq!(figures(cost), (0, 0, 0, 1));
    // Execute, prepare and commit.
    assert_eq!(cost.messages_in_node, 5);
    assert_eq!(figures(run(true, &[&[(beside, add("a"))]])), (0, 0, 0, 1));
}

#[test]
fn one_other_node_commits_with_one_record() {
    let (home, far, beside) = (shard(1, 0), shard(2, 0), shard(2, 1));
    // Execute 2 per shard, commit 2 for both.
    let together: &[&[_]] = &[&[(home, get("a"))], &[(far, add("a")), (beside, add("a"))]];
    assert_eq!(figures(run(false, together)), (4, 6, 0, 1));
    let ridden: &[&[_]] = &[&[(far, add("a"))], &[(beside, add("a"))]];
    assert_eq!(figures(run(true, ridden)), (4, 4, 0, 1));
    // What is read at home costs nothing.
    let groups: &[&[_]] = &[
        &[(home, get("a"))],
        &[(far, add("a")), (beside, add("b"))],
        &[(far, add("c"))],
    ];
    assert_eq!(figures(run(true, groups)), (4, 6, 0, 1));
    let readers: &[&[_]] = &[&[(home, get("a"))], &[(far, get("a")), (beside, get("b"))]];
    assert_eq!(figures(run(false, readers)), (4, 6, 0, 0));
    // A transaction that writes at home or on a third node takes two phases.
    let wide: &[&[_]] = &[&[(home, add("a")), (far, add("a")), (beside, add("a"))]];
    assert_eq!(figures(run(false, wide)), (4, 8, 4, 2));
}

/// Rows of shards that die together take a promise each, so their messages inside the node are one
/// more each, and the coordinator promises without rows.
#[test]
fn an_early_answer_costs_one_forced_write() {
    let (home, beside, far, farther) = (shard(1, 0), shard(1, 1), shard(2, 0), shard(3, 0));
    let groups: &[&[_]] = &[
        &[(home, add("a"))],
        &[(beside, add("a"))],
        &[(far, add("a"))],
    ];
    let (late, early) = (run_as(false, true, groups), run_as(true, true, groups));
    assert_eq!((figures(late), late.messages_in_node), ((2, 2, 2, 2), 5));
    assert_eq!((figures(early), early.messages_in_node), ((2, 2, 2, 1), 6));
    let elsewhere: &[&[_]] = &[&[(far, add("a"))], &[(farther, add("a"))]];
    let (late, early) = (
        run_as(false, true, elsewhere),
        run_as(true, true, elsewhere),
    );
    assert_eq!((figures(late), late.nodes), ((4, 6, 4, 2), 2));
    assert_eq!((figures(early), early.nodes), ((4, 6, 4, 1), 3));
    // A last statement that only reads may read above the promises: the decision is awaited.
    let reads: &[&[_]] = &[
        &[(home, add("a"))],
        &[(far, add("a"))],
        &[(farther, get("a"))],
    ];
    assert_eq!(run_as(true, true, reads).forced_writes, 2);
    // Who has only read promises, too, and acknowledges the outcome.
    let (late, early) = (run_as(false, false, reads), run_as(true, false, reads));
    assert_eq!(figures(late), (6, 8, 3, 2));
    assert_eq!(figures(early), (6, 8, 4, 1));
}

#[test]
fn readers_force_nothing() {
    let (home, far) = (shard(1, 0), shard(2, 0));
    assert_eq!(figures(run(true, &[&[(home, get("a"))]])), (0, 0, 0, 0));
    assert_eq!(figures(run(true, &[&[(far, get("a"))]])), (2, 2, 0, 0));
    // A read-only participant votes without a record; the writer is at home: one commit record.
    let groups: &[&[_]] = &[&[(far, get("a"))], &[(home, add("a"))]];
    assert_eq!(figures(run(false, groups)), (4, 4, 1, 1));
    // The only writer is elsewhere and the rest was read at home: it commits in one phase.
    let groups: &[&[_]] = &[&[(home, get("a"))], &[(far, add("a"))]];
    assert_eq!(figures(run(true, groups)), (2, 2, 0, 1));
}
