//! LOCK TABLE on several nodes: who waits for whom, circles, and nodes that die.

mod several_nodes;

use base::{Datum, NodeId, ShardId};
use catalog::ProtocolKind;
use several_nodes::{Told, World};

/// Microseconds within which what is free is granted, also after a node has died.
const SOON_US: u64 = 2_000_000;

const PROTOCOLS: [ProtocolKind; 3] = [
    ProtocolKind::TwoPhase,
    ProtocolKind::Leap,
    ProtocolKind::Formula,
];

/// Modes from the weakest, and which exclude each other, as PostgreSQL documents it.
const MODES: [(&str, &str); 8] = [
    ("ACCESS SHARE", ".......X"),
    ("ROW SHARE", "......XX"),
    ("ROW EXCLUSIVE", "....XXXX"),
    ("SHARE UPDATE EXCLUSIVE", "...XXXXX"),
    ("SHARE", "..XX.XXX"),
    ("SHARE ROW EXCLUSIVE", "..XXXXXX"),
    ("EXCLUSIVE", ".XXXXXXX"),
    ("ACCESS EXCLUSIVE", "XXXXXXXX"),
];

fn shard(node: u16, index: u16) -> ShardId {
    ShardId::new(NodeId(node), index)
}

/// Three nodes with a session on each, and two tables with rows.
fn world(protocol: ProtocolKind, seed: u64) -> World {
    let mut world = bare_world(protocol, seed);
    for sql in [
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
        "INSERT INTO u VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    ] {
        done(&mut world, shard(1, 1), sql);
    }
    world
}

/// The tables have no rows: a node that dies here loses those that it has.
fn bare_world(protocol: ProtocolKind, seed: u64) -> World {
    let mut world = World::new(seed, 3, protocol);
    for node in 1..=3 {
        world.connect_client(shard(node, 1));
    }
    for sql in [
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
        "CREATE TABLE u (a int PRIMARY KEY, b int)",
    ] {
        done(&mut world, shard(1, 1), sql);
    }
    world
}

fn done(world: &mut World, at: ShardId, sql: &str) {
    assert_eq!(world.run(at, sql), Told::Done, "{sql}");
}

fn failed(world: &mut World, at: ShardId, sql: &str, state: &str) {
    let told = world.run(at, sql);
    assert_eq!(told, Told::Failed(state.to_owned()), "{sql}");
}

/// Asks, and sees that there is no answer within a time.
fn waits(world: &mut World, at: ShardId, sql: &str, us: u64) {
    world.ask_anew(at, sql);
    world.go_on(us);
    assert_eq!(world.told(at), None, "{sql}");
}

fn ends(world: &mut World, at: ShardId, expected: Told) {
    world.go_on(SOON_US);
    assert_eq!(world.told(at), Some(expected));
}

#[test]
fn modes_exclude_each_other() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 1);
        let (one, two) = (shard(2, 1), shard(3, 1));
        for (held, marks) in MODES {
            for ((asked, _), mark) in MODES.iter().zip(marks.chars()) {
                done(&mut world, one, "BEGIN");
                done(&mut world, two, "BEGIN");
                done(&mut world, one, &format!("LOCK TABLE t IN {held} MODE"));
                let sql = format!("LOCK TABLE t IN {asked} MODE NOWAIT");
                let expected = match mark {
                    'X' => Told::Failed("55P03".to_owned()),
                    _ => Told::Done,
                };
                let what = format!("{protocol:?}: {asked} beside {held}");
                assert_eq!(world.run(two, &sql), expected, "{what}");
                done(&mut world, two, "ROLLBACK");
                done(&mut world, one, "COMMIT");
            }
        }
    }
}

/// A statement of another session against each mode.
#[test]
fn statements_wait_for_what_excludes_them() {
    let statements = [
        ("SELECT b FROM t WHERE a = 1", 0),
        ("SELECT b FROM t WHERE a = 1 FOR UPDATE", 1),
        ("SELECT b FROM t FOR SHARE", 1),
        ("SELECT b FROM t WHERE a = 1 FOR UPDATE NOWAIT", 1),
        ("UPDATE t SET b = b + 1 WHERE a = 2", 2),
        ("INSERT INTO t VALUES (9, 9)", 2),
        ("DELETE FROM t WHERE a = 9", 2),
        ("INSERT INTO t SELECT a + 20, b FROM u", 2),
        ("TRUNCATE t", 2),
        (
            "WITH gone AS (DELETE FROM t RETURNING a) SELECT count(*) FROM gone",
            2,
        ),
    ];
    for protocol in PROTOCOLS {
        let (one, two) = (shard(1, 1), shard(3, 1));
        for (mode, marks) in &MODES[3..] {
            let mut world = world(protocol, 2);
            for (sql, kind) in statements {
                done(&mut world, one, "BEGIN");
                done(&mut world, one, &format!("LOCK TABLE t IN {mode} MODE"));
                let is_excluded = kind > 0 && marks.as_bytes()[kind] == b'X';
                if is_excluded {
                    waits(&mut world, two, sql, 5_000_000);
                    let value = world.value(one, "SELECT count(*) FROM t");
                    assert!(matches!(value, Ok(Datum::Int(_))), "{value:?}");
                    done(&mut world, one, "COMMIT");
                    ends(&mut world, two, Told::Done);
                } else {
                    done(&mut world, two, sql);
                    done(&mut world, one, "COMMIT");
                }
            }
            assert_eq!(world.open_catalog().open_blocks, 0);
        }
    }
}

/// The lock waits for those who have written before, and for the statement under way; others that
/// come wait behind it. Other tables and readers go on.
#[test]
fn a_lock_waits_for_writers_and_others_behind_it() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 3);
        let (one, two, three) = (shard(1, 1), shard(2, 1), shard(3, 1));
        done(&mut world, one, "BEGIN");
        done(&mut world, one, "UPDATE t SET b = 7 WHERE a = 1");
        done(&mut world, two, "BEGIN");
        waits(&mut world, two, "LOCK TABLE t IN SHARE MODE", 3_000_000);
        done(&mut world, three, "UPDATE u SET b = 8 WHERE a = 1");
        done(&mut world, three, "SELECT b FROM t WHERE a = 2");
        waits(
            &mut world,
            three,
            "UPDATE t SET b = 9 WHERE a = 2",
            2_000_000,
        );
        // The writer before it goes on.
        done(&mut world, one, "UPDATE t SET b = b + 1 WHERE a = 3");
        assert_eq!(world.told(two), None);
        done(&mut world, one, "COMMIT");
        ends(&mut world, two, Told::Done);
        world.go_on(SOON_US);
        assert_eq!(world.told(three), None);
        let seen = world.value(two, "SELECT sum(b) FROM t");
        assert_eq!(seen, Ok(Datum::Int(7 + 2 + 4 + 4)), "{protocol:?}");
        done(&mut world, two, "COMMIT");
        ends(&mut world, three, Told::Done);
        let seen = world.value(one, "SELECT b FROM t WHERE a = 2");
        assert_eq!(seen, Ok(Datum::Int(9)), "{protocol:?}");
    }
}

#[test]
fn two_that_share_can_read_and_only_one_can_write() {
    let mut world = world(ProtocolKind::TwoPhase, 4);
    let (one, two) = (shard(1, 1), shard(2, 1));
    for session in [one, two] {
        done(&mut world, session, "BEGIN");
        done(&mut world, session, "LOCK TABLE t IN SHARE MODE");
    }
    // As PostgreSQL: each waits for the other one's lock.
    world.ask_anew(one, "UPDATE t SET b = 0 WHERE a = 1");
    world.ask_anew(two, "UPDATE t SET b = 0 WHERE a = 2");
    world.go_on(4_000_000);
    let told = [world.told(one), world.told(two)];
    let circle = Some(Told::Failed("40P01".to_owned()));
    assert!(told.contains(&circle), "{told:?}");
    for session in [one, two] {
        world.run(session, "ROLLBACK");
    }
    done(&mut world, one, "UPDATE t SET b = 5 WHERE a = 1");
}

/// Each holds one table and asks for the other.
#[test]
fn circles_of_tables_end_at_once() {
    for protocol in PROTOCOLS {
        for mode in [
            "SHARE UPDATE EXCLUSIVE",
            "SHARE ROW EXCLUSIVE",
            "ACCESS EXCLUSIVE",
        ] {
            let mut world = world(protocol, 5);
            let (one, two) = (shard(2, 1), shard(3, 1));
            for (session, table) in [(one, "t"), (two, "u")] {
                done(&mut world, session, "BEGIN");
                done(
                    &mut world,
                    session,
                    &format!("LOCK TABLE {table} IN {mode} MODE"),
                );
            }
            waits(&mut world, one, &format!("LOCK u IN {mode} MODE"), 500_000);
            failed(&mut world, two, &format!("LOCK t IN {mode} MODE"), "40P01");
            ends(&mut world, one, Told::Done);
            done(&mut world, one, "COMMIT");
            done(&mut world, two, "ROLLBACK");
        }
    }
}

/// Each has written to one table and wants to lock the other.
#[test]
fn circles_of_writers_end_at_once() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 6);
        let (one, two) = (shard(2, 1), shard(3, 1));
        for (session, table) in [(one, "t"), (two, "u")] {
            done(&mut world, session, "BEGIN");
            done(
                &mut world,
                session,
                &format!("UPDATE {table} SET b = 0 WHERE a = 1"),
            );
        }
        waits(&mut world, one, "LOCK u IN SHARE MODE", 500_000);
        failed(&mut world, two, "LOCK t IN SHARE MODE", "40P01");
        done(&mut world, two, "ROLLBACK");
        ends(&mut world, one, Told::Done);
        done(&mut world, one, "COMMIT");
    }
}

/// One has a row and waits for the table, the other has written to the table and waits for the row.
#[test]
fn circles_over_rows_end() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 7);
        let (one, two) = (shard(2, 1), shard(3, 1));
        done(&mut world, one, "BEGIN");
        done(&mut world, one, "UPDATE u SET b = 0 WHERE a = 1");
        done(&mut world, two, "BEGIN");
        done(&mut world, two, "UPDATE t SET b = 0 WHERE a = 1");
        world.ask_anew(one, "LOCK t IN EXCLUSIVE MODE");
        world.ask_anew(two, "UPDATE u SET b = 1 WHERE a = 1");
        world.go_on(8_000_000);
        for session in [one, two] {
            assert!(
                world.told(session).is_some(),
                "{protocol:?}: {session:?} waits"
            );
        }
        world.run(one, "COMMIT");
        world.run(two, "COMMIT");
        done(&mut world, one, "UPDATE t SET b = 3 WHERE a = 1");
    }
}

#[test]
fn a_savepoint_gives_locks_back() {
    let mut world = world(ProtocolKind::Leap, 8);
    let (one, two) = (shard(2, 1), shard(1, 1));
    for sql in [
        "BEGIN",
        "LOCK TABLE u IN SHARE MODE",
        "SAVEPOINT s",
        "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
        "SELECT b FROM t",
    ] {
        done(&mut world, one, sql);
    }
    waits(&mut world, two, "UPDATE t SET b = 5 WHERE a = 1", 4_000_000);
    done(&mut world, one, "ROLLBACK TO s");
    ends(&mut world, two, Told::Done);
    waits(&mut world, two, "UPDATE u SET b = 5 WHERE a = 1", 4_000_000);
    done(&mut world, one, "COMMIT");
    ends(&mut world, two, Told::Done);
}

#[test]
fn schema_changes_wait_for_locks() {
    let mut world = world(ProtocolKind::TwoPhase, 9);
    let (one, two) = (shard(2, 1), shard(3, 1));
    done(&mut world, one, "BEGIN");
    done(
        &mut world,
        one,
        "LOCK TABLE t IN SHARE UPDATE EXCLUSIVE MODE",
    );
    failed(&mut world, two, "ALTER TABLE t ADD COLUMN c int", "55P03");
    failed(&mut world, two, "DROP TABLE t", "55P03");
    failed(&mut world, two, "CREATE INDEX ON t (b)", "55P03");
    // Other tables do not wait.
    done(&mut world, two, "ALTER TABLE u ADD COLUMN c int");
    done(&mut world, two, "CREATE TABLE v (a int)");
    // The block itself may change what it has locked.
    done(&mut world, one, "ALTER TABLE t ADD COLUMN c int DEFAULT 4");
    done(&mut world, one, "CREATE INDEX ON t (b)");
    done(&mut world, one, "COMMIT");
    let seen = world.value(two, "SELECT sum(c) FROM t");
    assert_eq!(seen, Ok(Datum::Int(16)));
}

/// What was planned and begun before the lock is not written under it.
#[test]
fn many_writers_beside_locks_lose_nothing() {
    for protocol in PROTOCOLS {
        for seed in 0..6 {
            let mut world = world(protocol, 100 + seed);
            let (locker, writers) = (shard(1, 1), [shard(2, 1), shard(3, 1)]);
            let mut written = 0;
            for round in 0..6 {
                for writer in writers {
                    world.ask_anew(writer, "UPDATE t SET b = b + 1 WHERE a = 1");
                }
                (0..(seed * 13 + round * 7)).for_each(|_| world.step());
                done(&mut world, locker, "BEGIN");
                done(
                    &mut world,
                    locker,
                    "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE",
                );
                let before = world.value(locker, "SELECT b FROM t WHERE a = 1");
                world.go_on(300_000);
                let after = world.value(locker, "SELECT b FROM t WHERE a = 1");
                assert_eq!(before, after, "{protocol:?} {seed}");
                done(&mut world, locker, "UPDATE t SET b = b + 100 WHERE a = 1");
                done(&mut world, locker, "COMMIT");
                world.go_on(SOON_US);
                for writer in writers {
                    assert_eq!(world.told(writer), Some(Told::Done), "{protocol:?} {seed}");
                    written += 1;
                }
                written += 100;
            }
            let sum = world.value(locker, "SELECT b FROM t WHERE a = 1");
            assert_eq!(sum, Ok(Datum::Int(1 + written)), "{protocol:?} {seed}");
        }
    }
}

/// The holder's node dies, also while it asks or commits: others go on.
#[test]
fn a_dead_holder_lets_others_go_on() {
    for protocol in PROTOCOLS {
        for (count, steps) in [
            (1, 3),
            (1, 20),
            (1, 60),
            (2, 0),
            (3, 0),
            (3, 2),
            (3, 9),
            (3, 30),
        ] {
            let mut world = bare_world(protocol, 200 + steps);
            let (holder, other) = (shard(3, 1), shard(2, 1));
            let all = [
                "BEGIN",
                "LOCK TABLE t IN ACCESS EXCLUSIVE MODE",
                match protocol {
                    ProtocolKind::Leap => "SELECT b FROM u",
                    _ => "INSERT INTO u VALUES (1, 1)",
                },
                "COMMIT",
            ];
            for sql in &all[..count] {
                done(&mut world, holder, sql);
            }
            world.ask_anew(holder, all[count]);
            (0..steps).for_each(|_| world.step());
            world.ask_anew(other, "SELECT b FROM t WHERE a = 1");
            world.kill(NodeId(3));
            world.go_on(SOON_US);
            let what = format!("{protocol:?}: {count} {steps}");
            assert_eq!(world.catalog(other).open_blocks, 0, "{what}");
            world.restart(NodeId(3));
            world.go_on(SOON_US);
            done(&mut world, other, "INSERT INTO t VALUES (1, 1)");
            done(&mut world, other, "BEGIN");
            done(&mut world, other, "LOCK TABLE t IN EXCLUSIVE MODE");
            done(&mut world, other, "COMMIT");
        }
    }
}

/// The node of one that waits dies: the holder and others go on.
#[test]
fn a_dead_waiter_is_forgotten() {
    let mut world = bare_world(ProtocolKind::TwoPhase, 10);
    let (holder, waiter, other) = (shard(1, 1), shard(3, 1), shard(2, 1));
    done(&mut world, holder, "BEGIN");
    done(&mut world, holder, "LOCK TABLE t IN ROW SHARE MODE");
    done(&mut world, waiter, "BEGIN");
    waits(&mut world, waiter, "LOCK TABLE t", 500_000);
    waits(&mut world, other, "UPDATE t SET b = 4 WHERE a = 2", 500_000);
    world.kill(NodeId(3));
    world.go_on(SOON_US);
    world.restart(NodeId(3));
    world.go_on(SOON_US);
    assert!(world.told(other).is_some());
    done(&mut world, other, "INSERT INTO t VALUES (1, 1)");
    done(&mut world, other, "BEGIN");
    waits(&mut world, other, "LOCK TABLE t", 500_000);
    done(&mut world, holder, "COMMIT");
    ends(&mut world, other, Told::Done);
    done(&mut world, other, "COMMIT");
}

/// Node 1 dies, which has the queue: locks that are held stay held, and nothing waits for ever.
#[test]
fn node_1_dies() {
    for protocol in PROTOCOLS {
        let mut world = bare_world(protocol, 11);
        let (holder, waiter, writer) = (shard(2, 1), shard(3, 1), shard(3, 0));
        world.connect_client(writer);
        done(&mut world, holder, "BEGIN");
        done(&mut world, holder, "LOCK TABLE t IN SHARE MODE");
        done(&mut world, waiter, "BEGIN");
        waits(&mut world, waiter, "LOCK TABLE t", 500_000);
        waits(
            &mut world,
            writer,
            "UPDATE t SET b = 4 WHERE a = 2",
            500_000,
        );
        world.kill(NodeId(1));
        world.go_on(SOON_US);
        assert!(
            matches!(world.told(waiter), Some(Told::Failed(_))),
            "{protocol:?}: {:?}",
            world.told(waiter)
        );
        assert_eq!(world.told(writer), None);
        world.restart(NodeId(1));
        world.go_on(3 * SOON_US);
        assert_eq!(world.told(writer), None);
        done(&mut world, holder, "COMMIT");
        ends(&mut world, writer, Told::Done);
        done(&mut world, waiter, "ROLLBACK");
        done(&mut world, waiter, "BEGIN");
        done(&mut world, waiter, "LOCK TABLE t");
        done(&mut world, waiter, "COMMIT");
    }
}

#[test]
fn a_lock_needs_all_nodes() {
    let mut world = world(ProtocolKind::TwoPhase, 12);
    let one = shard(1, 1);
    world.kill(NodeId(3));
    world.go_on(SOON_US);
    done(&mut world, one, "BEGIN");
    failed(&mut world, one, "LOCK TABLE t", "55000");
    done(&mut world, one, "ROLLBACK");
}

#[test]
fn limits_of_waits() {
    let mut world = world(ProtocolKind::TwoPhase, 13);
    let (one, two) = (shard(1, 1), shard(2, 1));
    done(&mut world, one, "BEGIN");
    done(&mut world, one, "LOCK TABLE t IN SHARE MODE");
    done(&mut world, two, "SET lock_timeout = 300");
    failed(&mut world, two, "UPDATE t SET b = 0", "55P03");
    done(&mut world, two, "BEGIN");
    failed(&mut world, two, "LOCK TABLE t", "55P03");
    done(&mut world, two, "ROLLBACK");
    done(&mut world, two, "SET lock_timeout = 0");
    done(&mut world, two, "SET statement_timeout = 300");
    failed(&mut world, two, "UPDATE t SET b = 0", "57014");
    done(&mut world, two, "BEGIN");
    failed(&mut world, two, "LOCK TABLE t", "57014");
    done(&mut world, two, "ROLLBACK");
    done(&mut world, one, "ROLLBACK");
    done(&mut world, two, "UPDATE t SET b = 0");
}

/// Readers go on beside every lock, also those that have begun before it.
#[test]
fn readers_do_not_notice_locks() {
    for protocol in PROTOCOLS {
        for seed in 0..5 {
            let mut world = world(protocol, 300 + seed);
            let (one, two, three) = (shard(1, 1), shard(2, 1), shard(3, 1));
            done(&mut world, two, "BEGIN");
            done(&mut world, two, "SELECT sum(b) FROM t");
            world.ask_anew(three, "SELECT sum(b) FROM t");
            (0..seed * 3).for_each(|_| world.step());
            done(&mut world, one, "BEGIN");
            done(&mut world, one, "LOCK TABLE t");
            done(&mut world, two, "SELECT sum(b) FROM t WHERE a > 1");
            done(&mut world, two, "COMMIT");
            assert_eq!(world.told(three), Some(Told::Done), "{protocol:?} {seed}");
            let sum = world.value(three, "SELECT sum(b) FROM t");
            assert_eq!(sum, Ok(Datum::Int(10)), "{protocol:?} {seed}");
            done(&mut world, one, "COMMIT");
        }
    }
}

/// A transaction that has begun goes past a request that waits, and keeps it waiting.
#[test]
fn who_has_begun_goes_past_a_request() {
    for protocol in PROTOCOLS {
        for steps in 0..8 {
            let mut world = world(protocol, 400 + steps);
            let (writer, locker, late) = (shard(1, 1), shard(2, 1), shard(3, 1));
            done(&mut world, late, "BEGIN");
            done(&mut world, late, "UPDATE u SET b = 0 WHERE a = 1");
            done(&mut world, writer, "BEGIN");
            done(&mut world, writer, "UPDATE t SET b = 0 WHERE a = 1");
            done(&mut world, locker, "BEGIN");
            waits(&mut world, locker, "LOCK TABLE t IN SHARE MODE", 200_000);
            done(&mut world, late, "UPDATE t SET b = 20 WHERE a = 2");
            done(&mut world, writer, "COMMIT");
            (0..steps * 4).for_each(|_| world.step());
            assert_eq!(world.told(locker), None, "{protocol:?} {steps}");
            done(&mut world, late, "COMMIT");
            ends(&mut world, locker, Told::Done);
            let sum = world.value(locker, "SELECT sum(b) FROM t");
            assert_eq!(sum, Ok(Datum::Int(20 + 3 + 4)), "{protocol:?} {steps}");
            done(&mut world, locker, "COMMIT");
        }
    }
}

/// A client that goes while it waits leaves nothing in the queue.
#[test]
fn a_lost_client_waits_no_more() {
    let mut world = world(ProtocolKind::TwoPhase, 14);
    let (one, two, three) = (shard(1, 1), shard(2, 1), shard(3, 1));
    done(&mut world, one, "BEGIN");
    done(&mut world, one, "LOCK TABLE t IN ROW EXCLUSIVE MODE");
    done(&mut world, two, "BEGIN");
    waits(&mut world, two, "LOCK TABLE t", 200_000);
    waits(&mut world, three, "UPDATE t SET b = 0 WHERE a = 1", 300_000);
    let pid = world.value(
        one,
        "SELECT pid FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'",
    );
    let Ok(Datum::Int(pid)) = pid else {
        panic!("{pid:?}")
    };
    done(
        &mut world,
        one,
        &format!("SELECT pg_terminate_backend({pid})"),
    );
    ends(&mut world, three, Told::Done);
    done(&mut world, one, "COMMIT");
}

/// One that has the lock does not wait for those that wait for it.
#[test]
fn the_holder_goes_on_beside_requests() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 15);
        let (one, two) = (shard(1, 1), shard(2, 1));
        done(&mut world, one, "BEGIN");
        done(&mut world, one, "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE");
        done(&mut world, two, "BEGIN");
        waits(
            &mut world,
            two,
            "LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE",
            200_000,
        );
        world.ask_anew(one, "UPDATE t SET b = 7 WHERE a = 1");
        world.go_on(200_000);
        assert_eq!(world.told(one), Some(Told::Done), "{protocol:?}");
        done(&mut world, one, "COMMIT");
        ends(&mut world, two, Told::Done);
        done(&mut world, two, "COMMIT");
    }
}

/// The holder's node is cut off: others get the table, and the holder cannot commit.
#[test]
fn a_holder_that_is_cut_off_cannot_commit() {
    for protocol in PROTOCOLS {
        let mut world = world(protocol, 16);
        let (holder, other) = (shard(3, 1), shard(1, 1));
        done(&mut world, holder, "BEGIN");
        done(&mut world, holder, "LOCK TABLE t IN SHARE MODE");
        done(&mut world, holder, "SELECT sum(b) FROM t");
        world.pause(NodeId(3));
        world.go_on(SOON_US);
        assert_eq!(world.catalog(other).open_blocks, 0);
        world.resume(NodeId(3));
        world.go_on(SOON_US);
        done(&mut world, other, "UPDATE t SET b = 9 WHERE a = 1");
        let told = world.run(holder, "COMMIT");
        assert!(matches!(told, Told::Failed(_)), "{protocol:?}: {told:?}");
        done(&mut world, holder, "BEGIN");
        done(&mut world, holder, "LOCK TABLE t");
        done(&mut world, holder, "COMMIT");
    }
}

/// A node is cut off while a lock is asked for, at any step: the request ends, and so do others.
#[test]
fn a_node_is_cut_off_under_requests() {
    for protocol in PROTOCOLS {
        for steps in [1, 5, 12, 25, 40, 60, 90] {
            let mut world = world(protocol, 500 + steps);
            let (asker, writer) = (shard(2, 1), shard(3, 1));
            done(&mut world, asker, "BEGIN");
            world.ask_anew(writer, "UPDATE t SET b = b + 1 WHERE a = 1");
            world.ask_anew(asker, "LOCK TABLE t IN SHARE MODE");
            (0..steps).for_each(|_| world.step());
            world.pause(NodeId(3));
            world.go_on(SOON_US);
            world.resume(NodeId(3));
            world.go_on(3 * SOON_US);
            let what = format!("{protocol:?} {steps}");
            let told = world.told(asker);
            assert!(told.is_some(), "{what}");
            if told == Some(Told::Done) {
                let before = world.value(asker, "SELECT sum(b) FROM t");
                world.go_on(300_000);
                let after = world.value(asker, "SELECT sum(b) FROM t");
                assert_eq!(before, after, "{what}");
            }
            world.run(asker, "ROLLBACK");
            world.go_on(3 * SOON_US);
            assert!(world.told(writer).is_some(), "{what}");
            assert_eq!(world.open_catalog().open_blocks, 0, "{what}");
            done(&mut world, writer, "UPDATE t SET b = b + 1 WHERE a = 2");
        }
    }
}
