//! What an open block has done to the schema is undone when its session ends, however it ends.

mod several_nodes;

use base::{Datum, NodeId, ShardId};
use catalog::ProtocolKind;
use several_nodes::{Told, World};

/// Microseconds within which the schema is as before.
const UNDONE_US: u64 = 2_000_000;

const STATEMENTS: [&str; 9] = [
    "BEGIN",
    "CREATE TABLE made (a int PRIMARY KEY)",
    "INSERT INTO made VALUES (1), (2)",
    "ALTER TABLE kept ADD COLUMN c int DEFAULT 7",
    "DROP TABLE kept",
    "CREATE TABLE kept (other text)",
    "CREATE VIEW seen AS SELECT * FROM made",
    "SAVEPOINT s",
    "DROP TABLE made CASCADE",
];

fn world(protocol: ProtocolKind, seed: u64) -> World {
    let mut world = World::new(seed, 3, protocol);
    let one = ShardId::new(NodeId(1), 0);
    world.connect_client(one);
    for sql in [
        "CREATE TABLE kept (a int PRIMARY KEY, b int)",
        "CREATE INDEX kept_b ON kept (b)",
        "INSERT INTO kept VALUES (1, 10), (2, 20)",
    ] {
        assert_eq!(world.run(one, sql), Told::Done, "{sql}");
    }
    world
}

fn assert_undone(world: &mut World, what: &str) {
    let one = ShardId::new(NodeId(1), 0);
    let catalog = world.catalog(one);
    let database = &catalog.databases["postgres"];
    assert_eq!(catalog.open_blocks, 0, "{what}");
    let names: Vec<&String> = database.tables.keys().collect();
    assert_eq!(names, ["kept"], "{what}");
    assert!(database.views.is_empty(), "{what}");
    let columns = database.tables["kept"].columns.iter();
    let columns: Vec<&str> = columns
        .filter(|column| !column.hidden)
        .map(|column| &*column.name)
        .collect();
    assert_eq!(columns, ["a", "b"], "{what}");
}

/// The node dies behind each statement of the block, also while a statement runs.
fn kill_behind(protocol: ProtocolKind) {
    for count in 0..=STATEMENTS.len() {
        for steps in [0, 7, 40] {
            let mut world = world(protocol, count as u64 * 100 + steps);
            let session = ShardId::new(NodeId(3), 1);
            world.connect_client(session);
            let what = format!("{protocol:?}: {count} statements, {steps} steps");
            for sql in &STATEMENTS[..count] {
                assert_eq!(world.run(session, sql), Told::Done, "{what}: {sql}");
            }
            if let Some(sql) = STATEMENTS.get(count) {
                world.ask(session, sql);
                (0..steps).for_each(|_| world.step());
            }
            world.kill(NodeId(3));
            world.go_on(UNDONE_US);
            assert_undone(&mut world, &what);
            world.restart(NodeId(3));
            world.go_on(UNDONE_US);
            world.open_catalog();
            let one = ShardId::new(NodeId(1), 0);
            // Its rows can be written again, and a new column finds nothing in its place.
            for sql in [
                "INSERT INTO kept VALUES (3, 30)",
                "ALTER TABLE kept ADD COLUMN d int",
                "CREATE TABLE made (a text)",
            ] {
                assert_eq!(world.run(one, sql), Told::Done, "{what}: {sql}");
            }
            let rows = world.value(one, "SELECT count(d) FROM kept");
            assert_eq!(rows, Ok(Datum::Int(0)), "{what}");
        }
    }
}

#[test]
fn a_dead_node_takes_its_block_along() {
    kill_behind(ProtocolKind::TwoPhase);
}

#[test]
fn a_dead_node_takes_its_block_along_under_leap() {
    kill_behind(ProtocolKind::Leap);
}

#[test]
fn a_dead_node_takes_its_block_along_under_formula() {
    kill_behind(ProtocolKind::Formula);
}

/// Node 1 comes back with the block of a session of its own, and of one of another node.
#[test]
fn node_1_undoes_its_own_blocks_after_a_start() {
    let mut world = world(ProtocolKind::TwoPhase, 5);
    let session = ShardId::new(NodeId(1), 1);
    world.connect_client(session);
    for sql in STATEMENTS {
        assert_eq!(world.run(session, sql), Told::Done, "{sql}");
    }
    world.kill(NodeId(1));
    world.go_on(UNDONE_US);
    world.restart(NodeId(1));
    world.go_on(5 * UNDONE_US);
    assert_undone(&mut world, "node 1");
    world.open_catalog();
}

/// Others neither write to what an open block has changed, nor change it; both end soon.
#[test]
fn others_fail_at_what_a_block_has_changed() {
    let mut world = world(ProtocolKind::TwoPhase, 6);
    let (session, other) = (ShardId::new(NodeId(2), 0), ShardId::new(NodeId(3), 0));
    world.connect_client(session);
    world.connect_client(other);
    for sql in [
        "BEGIN",
        "CREATE TABLE made (a int PRIMARY KEY)",
        "ALTER TABLE kept ADD COLUMN c int",
    ] {
        assert_eq!(world.run(session, sql), Told::Done, "{sql}");
    }
    let locked = Told::Failed("55P03".into());
    for sql in [
        "INSERT INTO made VALUES (7)",
        "UPDATE kept SET b = 1",
        "CREATE TABLE elsewhere (a int)",
        "DROP TABLE kept",
    ] {
        assert_eq!(world.run(other, sql), locked, "{sql}");
    }
    assert_eq!(
        world.run(other, "CREATE TEMP TABLE mine (a int)"),
        Told::Done
    );
    assert_eq!(world.run(other, "SELECT * FROM kept"), Told::Done);
    world.ask(other, "UPDATE kept SET b = 11 WHERE a = 1");
    assert_eq!(world.run(session, "ROLLBACK"), Told::Done);
    world.go_on(UNDONE_US);
    assert_eq!(world.told(other), Some(Told::Done));
    assert_undone_but_temporary(&world);
    assert_eq!(world.run(session, "BEGIN"), Told::Done);
    assert_eq!(world.run(session, "DROP TABLE kept"), Told::Done);
    assert_eq!(world.run(session, "COMMIT"), Told::Done);
    let gone = Told::Failed("42P01".into());
    assert_eq!(world.run(other, "SELECT * FROM kept"), gone);
}

fn assert_undone_but_temporary(world: &World) {
    let catalog = world.catalog(ShardId::new(NodeId(1), 0));
    assert_eq!(catalog.open_blocks, 0);
    let tables = &catalog.databases["postgres"].tables;
    assert!(tables.contains_key("kept") && !tables.contains_key("made"));
}
