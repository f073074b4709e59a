//! No step of a shard does more than a counted amount of work, however large the statement or
//! transaction: counted by the shard ([`node::Shard::take_step_units_max`]), and by an allocator
//! that counts what a step allocates and frees, which knows nothing of what the shard counts.

mod one_shard;

use allocations::{Counting, count, freed_count};
use catalog::ProtocolKind;
use one_shard::World;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Rows of the tables: many times what a step may do.
const ROWS: u64 = 30_000;
/// Units (rows, or 256 bytes of them) that a step may take: a turn of a statement, one of a scan,
/// and a slice each of what is installed, unlocked and freed.
const STEP_UNITS_MAX: u64 = 6_000;
/// Calls of the allocator that a step may make: some for each row of a turn.
const STEP_CALLS_MAX: u64 = 40_000;

/// Statements on `t (id, v)` and `u (id, v)` of so many rows, run one after the other.
const MONSTERS: &[&str] = &[
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "UPDATE t SET v = v + 1",
    "BEGIN",
    "UPDATE t SET v = v + 1",
    "ROLLBACK",
    "BEGIN",
    "UPDATE t SET v = v + 1 WHERE id > 10",
    "DELETE FROM t WHERE id % 2 = 0",
    "INSERT INTO t SELECT g, g FROM generate_series($n + 1, 2 * $n) g",
    "COMMIT",
    "BEGIN",
    "INSERT INTO t SELECT g, g FROM generate_series(2 * $n + 1, 3 * $n) g",
    "ROLLBACK",
    "INSERT INTO u SELECT id, v FROM t",
    "UPDATE u SET v = t.v FROM t WHERE t.id = u.id",
    "BEGIN",
    "SELECT count(*) FROM (SELECT id FROM u FOR UPDATE) x",
    "COMMIT",
    "CREATE INDEX ON u (v)",
    "UPDATE u SET v = v + 1",
    "DELETE FROM u WHERE v > 5",
    "SELECT * FROM t ORDER BY v DESC",
    "SELECT a.id FROM t a JOIN t b ON a.v = b.v",
    "DROP TABLE u",
    "SELECT count(*) FROM t",
    "TRUNCATE t",
    "SELECT count(*) FROM t",
];

/// The largest steps while something runs.
#[derive(Default)]
struct Largest {
    units: u64,
    calls: u64,
}

fn step(world: &mut World, largest: &mut Largest, act: impl FnOnce(&mut World)) {
    let before = count() + freed_count();
    act(world);
    largest.calls = largest.calls.max(count() + freed_count() - before);
    largest.units = largest.units.max(world.shard.take_step_units_max());
}

/// Runs a statement, and what it leaves to do, to its end.
fn run(world: &mut World, text: &str) -> Largest {
    let mut outcome = one_shard::Outcome {
        rows: 0,
        last: base::Datum::Null,
        error: None,
    };
    let mut largest = Largest::default();
    world.shard.take_step_units_max();
    let mut over = false;
    step(world, &mut largest, |world| world.say(1, text));
    for _ in 0..10_000_000 {
        over |= world.take(1, &mut outcome);
        let busy = world.shard.deadline().is_some_and(|at| at <= world.now);
        if over && !busy {
            assert_eq!(outcome.error, None, "{text}");
            return largest;
        }
        step(world, &mut largest, |world| world.go_on(1));
    }
    panic!("it does not end: {text}");
}

fn steps_are_short(protocol: ProtocolKind) {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    world.must(1, "CREATE TABLE u (id int PRIMARY KEY, v int)");
    let mut wrong = Vec::new();
    for text in MONSTERS {
        let text = text.replace("$n", &ROWS.to_string());
        let Largest { units, calls } = run(&mut world, &text);
        if units > STEP_UNITS_MAX || calls > STEP_CALLS_MAX {
            wrong.push(format!("{units} units, {calls} calls in a step: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_phase_steps_are_short() {
    steps_are_short(ProtocolKind::TwoPhase);
}

#[test]
fn leap_steps_are_short() {
    steps_are_short(ProtocolKind::Leap);
}
