//! Schema changes of tables to which the same block has written, on several nodes: others wait,
//! nothing of theirs is lost, and all of it goes with the block.

mod several_nodes;

use base::{Datum, NodeId, ShardId};
use catalog::ProtocolKind;
use several_nodes::{Told, World};

const PROTOCOLS: [ProtocolKind; 3] = [
    ProtocolKind::TwoPhase,
    ProtocolKind::Leap,
    ProtocolKind::Formula,
];

/// Microseconds within which what is free goes on.
const SOON_US: u64 = 1_000_000;

fn shard(node: u16, index: u16) -> ShardId {
    ShardId::new(NodeId(node), index)
}

/// Three nodes with a session on each, and a table of 20 rows.
fn world(protocol: ProtocolKind, seed: u64) -> World {
    let mut world = World::new(seed, 3, protocol);
    for node in 1..=3 {
        world.connect_client(shard(node, 1));
    }
    done(
        &mut world,
        shard(1, 1),
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
    );
    let rows: Vec<String> = (1..=20).map(|a| format!("({a}, {a})")).collect();
    let rows = format!("INSERT INTO t VALUES {}", rows.join(", "));
    done(&mut world, shard(2, 1), &rows);
    world
}

fn done(world: &mut World, at: ShardId, sql: &str) {
    assert_eq!(world.run(at, sql), Told::Done, "{sql}");
}

/// What each way to the rows counts: by the table, and by an index over `b`.
fn assert_counts(world: &mut World, at: ShardId, count: i64, what: &str) {
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT count(*) FROM t WHERE b > -1000",
        "SELECT count(x.b) FROM t y JOIN t x ON x.b = y.b",
    ] {
        assert_eq!(world.value(at, sql), Ok(Datum::Int(count)), "{what}: {sql}");
    }
}

const CHANGES: [&str; 5] = [
    "CREATE UNIQUE INDEX t_b ON t (b)",
    "ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 5",
    "ALTER TABLE t ADD CONSTRAINT t_b_small CHECK (b < 1000)",
    "ALTER TABLE t ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE t ALTER COLUMN c TYPE text",
];

/// The block writes from one node rows of all nodes, changes the table, and writes again.
#[test]
fn a_block_changes_what_it_has_written() {
    for protocol in PROTOCOLS {
        for end in ["COMMIT", "ROLLBACK"] {
            let mut world = world(protocol, 1);
            let (one, two) = (shard(3, 1), shard(1, 1));
            done(&mut world, one, "BEGIN");
            done(&mut world, one, "UPDATE t SET b = b + 100 WHERE a <= 10");
            done(&mut world, one, "DELETE FROM t WHERE a = 20");
            done(&mut world, one, "INSERT INTO t VALUES (21, 21), (22, 22)");
            for sql in CHANGES {
                assert_eq!(world.run(one, sql), Told::Done, "{protocol:?}: {sql}");
            }
            done(&mut world, one, "INSERT INTO t VALUES (23, 23, 'new')");
            assert_counts(&mut world, one, 22, "inside");
            done(&mut world, one, end);
            let what = format!("{protocol:?}: {end}");
            let count = if end == "COMMIT" { 22 } else { 20 };
            assert_counts(&mut world, two, count, &what);
            let catalog = world.open_catalog();
            assert_eq!(catalog.open_blocks, 0, "{what}");
            let seen = world.run(two, "SELECT c FROM t WHERE b = 15");
            let doubled = world.run(two, "INSERT INTO t (a, b) VALUES (99, 15)");
            match end {
                "COMMIT" => {
                    assert_eq!(seen, Told::Done, "{what}");
                    assert_eq!(doubled, Told::Failed("23505".into()), "{what}");
                    let default = world.value(two, "SELECT count(*) FROM t WHERE c = '5'");
                    assert_eq!(default, Ok(Datum::Int(21)), "{what}");
                }
                _ => {
                    assert_eq!(seen, Told::Failed("42703".into()), "{what}");
                    assert_eq!(doubled, Told::Done, "{what}");
                }
            }
        }
    }
}

/// A writer that has begun before is waited for; one that comes later, and a reader, wait until the
/// block ends or give up. The index has the rows of all.
#[test]
fn others_wait_and_are_indexed() {
    for protocol in PROTOCOLS {
        for seed in 0..4 {
            let mut world = world(protocol, 10 + seed);
            let (one, two, three) = (shard(3, 1), shard(1, 1), shard(2, 1));
            let what = format!("{protocol:?}: {seed}");
            done(&mut world, two, "BEGIN");
            done(&mut world, two, "INSERT INTO t VALUES (31, 31)");
            done(&mut world, one, "BEGIN");
            done(&mut world, one, "UPDATE t SET b = 50 WHERE a = 5");
            world.ask_anew(one, "CREATE INDEX t_b ON t (b)");
            (0..seed * 9).for_each(|_| world.step());
            world.ask_anew(three, "INSERT INTO t VALUES (32, 32)");
            world.go_on(200_000);
            assert_eq!(world.told(one), None, "{what}");
            done(&mut world, two, "UPDATE t SET b = 60 WHERE a = 6");
            done(&mut world, two, "COMMIT");
            world.go_on(SOON_US);
            assert_eq!(world.told(one), Some(Told::Done), "{what}");
            let late = world.told(three) == Some(Told::Done);
            // A reader does not see an index whose entries are not there yet.
            world.ask_anew(two, "SELECT count(*) FROM t WHERE b = 7");
            world.go_on(200_000);
            assert_eq!(world.told(two), None, "{what}");
            done(&mut world, one, "COMMIT");
            world.go_on(SOON_US);
            assert_eq!(world.told(two), Some(Told::Done), "{what}");
            let late = late || world.told(three) == Some(Told::Done);
            assert_counts(&mut world, two, if late { 22 } else { 21 }, &what);
            for (b, a) in [(50, 5), (60, 6), (31, 31)] {
                let found = world.value(two, &format!("SELECT a FROM t WHERE b = {b}"));
                assert_eq!(found, Ok(Datum::Int(a)), "{what}");
            }
        }
    }
}

/// What others have changed since the block wrote does not go past it.
#[test]
fn what_others_changed_before_is_not_adopted() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 30);
        let (one, two) = (shard(3, 1), shard(1, 1));
        done(&mut world, one, "BEGIN");
        done(&mut world, one, "INSERT INTO t VALUES (41, 41)");
        done(&mut world, one, "SAVEPOINT s");
        done(&mut world, one, "CREATE INDEX t_b ON t (b)");
        done(&mut world, one, "ROLLBACK TO s");
        // It waits for a second, and goes on: what the block wrote was not planned for it.
        done(&mut world, two, "ALTER TABLE t ALTER b TYPE bigint");
        let told = world.run(one, "COMMIT");
        assert_eq!(told, Told::Failed("40001".into()), "{protocol:?}");
        assert_counts(&mut world, two, 20, "behind");
    }
}

/// The node of the session dies behind each statement, and while one runs: the tables can be used
/// again.
#[test]
fn a_dead_node_leaves_nothing_open() {
    // A node that dies here loses its journal, and with it the rows that have moved to it (leap).
    for protocol in [ProtocolKind::TwoPhase, ProtocolKind::Formula] {
        for (count, steps) in [
            (2, 3),
            (2, 20),
            (2, 60),
            (3, 10),
            (7, 0),
            (7, 4),
            (7, 9),
            (7, 30),
        ] {
            let mut world = World::new(300 + steps, 3, protocol);
            let (session, other) = (shard(3, 1), shard(1, 1));
            for at in [session, other] {
                world.connect_client(at);
            }
            done(
                &mut world,
                other,
                "CREATE TABLE t (a int PRIMARY KEY, b int)",
            );
            let all: Vec<&str> = ["BEGIN", "INSERT INTO t VALUES (1, 1)"]
                .into_iter()
                .chain(CHANGES)
                .chain(["COMMIT"])
                .collect();
            for sql in &all[..count] {
                done(&mut world, session, sql);
            }
            world.ask_anew(session, all[count]);
            (0..steps).for_each(|_| world.step());
            world.kill(NodeId(3));
            world.go_on(3 * SOON_US);
            world.restart(NodeId(3));
            world.go_on(5 * SOON_US);
            let what = format!("{protocol:?}: {count} {steps}");
            assert_eq!(world.open_catalog().open_blocks, 0, "{what}");
            let told = world.run(other, "INSERT INTO t (a, b) VALUES (7, 7)");
            assert_eq!(told, Told::Done, "{what}");
            let found = world.value(other, "SELECT a FROM t WHERE b = 7");
            assert_eq!(found, Ok(Datum::Int(7)), "{what}");
        }
    }
}

/// A snapshot from before does not see the entries of an index: the transaction fails.
#[test]
fn an_older_snapshot_does_not_read_the_index() {
    for protocol in PROTOCOLS {
        for in_block in [false, true] {
            let mut world = world(protocol, 40);
            let (one, two) = (shard(3, 1), shard(1, 1));
            done(
                &mut world,
                two,
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            );
            done(&mut world, two, "SELECT count(*) FROM t");
            if in_block {
                done(&mut world, one, "BEGIN");
                done(&mut world, one, "UPDATE t SET b = b WHERE a = 1");
            }
            done(&mut world, one, "CREATE INDEX t_b ON t (b)");
            if in_block {
                done(&mut world, one, "COMMIT");
            }
            let found = world.run(two, "SELECT count(*) FROM t WHERE b = 7");
            assert_eq!(found, Told::Failed("40001".into()), "{protocol:?}");
        }
    }
}
