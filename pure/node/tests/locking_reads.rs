//! FOR UPDATE where others hold the row: by a lock, or by a formula that is
//! not decided. The lock table is the list of a row's intents (ADR 0038).

mod several_nodes;

use base::{Datum, NodeId, ShardId};
use catalog::ProtocolKind;
use several_nodes::{Told, World};

/// Long enough for a round of messages, short enough that nothing is given up.
const ROUND_US: u64 = 20_000;
/// Rows, so that some lie on each node.
const ROWS: i64 = 6;

const PROTOCOLS: [ProtocolKind; 3] = [
    ProtocolKind::Formula,
    ProtocolKind::TwoPhase,
    ProtocolKind::Leap,
];

fn shard(node: u16, number: u16) -> ShardId {
    ShardId::new(NodeId(node), number)
}

/// Three nodes with a table, and a client at each shard.
fn world(protocol: ProtocolKind) -> World {
    let mut world = World::new(38, 3, protocol);
    for node in 1..=3 {
        for number in 0..2 {
            world.connect_client(shard(node, number));
        }
    }
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id}, 10)")).collect();
    for sql in [
        "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)".to_owned(),
        format!("INSERT INTO t VALUES {}", rows.join(", ")),
    ] {
        assert_eq!(world.run(shard(1, 0), &sql), Told::Done, "{sql}");
    }
    world
}

fn must(world: &mut World, client: ShardId, sql: &str) {
    assert_eq!(world.run(client, sql), Told::Done, "{sql}");
}

/// What a holder does to row `id`: a locking read, a write that reads, a formula.
fn holds(id: i64) -> [String; 3] {
    [
        format!("SELECT v FROM t WHERE id = {id} FOR UPDATE"),
        format!("UPDATE t SET v = v + 1 WHERE id = {id} RETURNING v"),
        format!("UPDATE t SET v = v + 1 WHERE id = {id}"),
    ]
}

/// Each waiter has a later timestamp than those before it, and gets the row after them.
fn queues_in_timestamp_order(protocol: ProtocolKind) {
    let waiters = [shard(3, 0), shard(2, 1), shard(2, 0), shard(3, 1)];
    for hold in holds(1) {
        let what = format!("{protocol:?}: {hold}");
        let mut world = world(protocol);
        let holder = shard(1, 0);
        must(&mut world, holder, "BEGIN");
        must(&mut world, holder, &hold);
        for waiter in waiters {
            must(&mut world, waiter, "BEGIN");
            world.ask_anew(waiter, "SELECT v FROM t WHERE id = 1 FOR UPDATE");
            world.go_on(ROUND_US);
            assert_eq!(world.told(waiter), None, "{what}");
        }
        must(&mut world, holder, "COMMIT");
        for (at, waiter) in waiters.into_iter().enumerate() {
            world.go_on(ROUND_US);
            assert_eq!(world.told(waiter), Some(Told::Done), "{what}: {at}");
            for later in &waiters[at + 1..] {
                assert_eq!(world.told(*later), None, "{what}: {at}");
            }
            must(&mut world, waiter, "UPDATE t SET v = v + 1 WHERE id = 1");
            must(&mut world, waiter, "COMMIT");
        }
        let added = if hold.starts_with("SELECT") { 4 } else { 5 };
        let value = world.value(holder, "SELECT v FROM t WHERE id = 1");
        assert_eq!(value, Ok(Datum::Int(10 + added)), "{what}");
    }
}

#[test]
fn for_update_under_formula_queues_in_timestamp_order() {
    queues_in_timestamp_order(ProtocolKind::Formula);
}

#[test]
fn for_update_queues_in_timestamp_order() {
    queues_in_timestamp_order(ProtocolKind::TwoPhase);
}

#[test]
fn lock_timeout_ends_the_wait_for_a_row() {
    for protocol in PROTOCOLS {
        for hold in holds(1) {
            let what = format!("{protocol:?}: {hold}");
            let mut world = world(protocol);
            let (holder, waiter) = (shard(1, 0), shard(2, 0));
            must(&mut world, holder, "BEGIN");
            must(&mut world, holder, &hold);
            must(&mut world, waiter, "SET lock_timeout = '100ms'");
            must(&mut world, waiter, "BEGIN");
            world.ask_anew(waiter, "SELECT v FROM t WHERE id = 1 FOR UPDATE");
            world.go_on(50_000);
            assert_eq!(world.told(waiter), None, "{what}");
            world.go_on(100_000);
            let failed = Some(Told::Failed("55P03".into()));
            assert_eq!(world.told(waiter), failed, "{what}");
            must(&mut world, waiter, "ROLLBACK");
            must(&mut world, holder, "COMMIT");
            must(
                &mut world,
                waiter,
                "SELECT v FROM t WHERE id = 1 FOR UPDATE",
            );
        }
    }
}

#[test]
fn nowait_and_skip_locked_see_locks_and_formulas() {
    for protocol in PROTOCOLS {
        for kind in 0..3 {
            let mut world = world(protocol);
            let (holder, other) = (shard(1, 0), shard(2, 0));
            must(&mut world, holder, "BEGIN");
            // All but the last row.
            for id in 1..ROWS {
                must(&mut world, holder, &holds(id)[kind]);
            }
            let what = format!("{protocol:?}: {}", holds(1)[kind]);
            for id in 1..ROWS {
                let sql = format!("SELECT v FROM t WHERE id = {id} FOR UPDATE NOWAIT");
                let failed = Told::Failed("55P03".into());
                assert_eq!(world.run(other, &sql), failed, "{what}: {id}");
                let sql = format!("SELECT v FROM t WHERE id = {id} FOR UPDATE SKIP LOCKED");
                assert_eq!(world.value(other, &sql), Ok(Datum::Null), "{what}: {id}");
            }
            let skip = "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED";
            assert_eq!(world.value(other, skip), Ok(Datum::Int(ROWS)), "{what}");
            let free = format!("SELECT v FROM t WHERE id = {ROWS} FOR UPDATE NOWAIT");
            must(&mut world, other, &free);
            must(&mut world, holder, "ROLLBACK");
            world.go_on(ROUND_US);
            must(&mut world, other, "SELECT id FROM t FOR UPDATE NOWAIT");
        }
    }
}
