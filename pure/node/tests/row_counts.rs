//! The planner knows how many rows tables have. The first statement that needs a count is planned
//! without it; statements soon after it, prepared ones too, are planned with it.

use base::Datum;
use catalog::ProtocolKind;
use one_shard::World;

const ROWS: u64 = 5_000;

/// Number of rows that a statement reads in scans.
fn rows_read(world: &mut World, text: &str) -> u64 {
    let before = world.shard.counters().rows_read;
    let outcome = world.must(1, text);
    assert_eq!(outcome.last, Datum::Int(20), "{text}");
    world.shard.counters().rows_read - before
}

/// Number of plans that are made for an EXECUTE of a known text.
fn plans_made(world: &mut World) -> u64 {
    let before = world.shard.planned();
    world.must(1, "EXECUTE p");
    world.shard.planned() - before
}

fn small_tables_are_looked_up(protocol: ProtocolKind) {
    let mut world = World::new(protocol);
    world.connect(1);
    for text in [
        "CREATE TABLE large (id int PRIMARY KEY, v int)",
        "CREATE TABLE small (k int PRIMARY KEY, v int)",
        &format!("INSERT INTO large SELECT g, g FROM generate_series(1, {ROWS}) g"),
        "INSERT INTO small SELECT g, g FROM generate_series(1, 20) g",
    ] {
        world.must(1, text);
    }
    let join = "SELECT count(*) FROM large JOIN small ON large.id = small.k";
    world.must(1, &format!("PREPARE p AS {join}"));
    // The count is asked for while this is prepared, so another plan runs later.
    let known = rows_read(&mut world, "EXECUTE p");
    assert!(known <= 100, "{known} rows");
    world.must(1, "EXECUTE p");
    assert!(rows_read(&mut world, join) <= 100);
    // Statements on tables that have grown are planned anew once rows are counted again.
    world.must(
        1,
        &format!("INSERT INTO small SELECT g, g FROM generate_series(-{ROWS}, 0) g"),
    );
    assert_eq!(plans_made(&mut world), 0, "nothing was counted yet");
    world.now = world.now.after(5_000_000);
    world.must(1, "INSERT INTO small VALUES (-9999, 0)");
    world.now = world.now.after(5_000_000);
    world.must(1, "BEGIN; COMMIT");
    assert_eq!(plans_made(&mut world), 1, "a table has grown");
    // Its values are looked at again, and what is found is asked for.
    world.now = world.now.after(1_000_000);
    world.must(1, "BEGIN; COMMIT");
    assert!(plans_made(&mut world) <= 1, "more is known of values");
    assert_eq!(plans_made(&mut world), 0);
}

#[test]
fn two_phase() {
    small_tables_are_looked_up(ProtocolKind::TwoPhase);
}

#[test]
fn leap() {
    small_tables_are_looked_up(ProtocolKind::Leap);
}
