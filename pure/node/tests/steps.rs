//! The work of a step of a shard is bounded, however large the statement or transaction. Two counts
//! show it, which are independent of each other: units that the shard counts
//! ([`node::Shard::take_step_units_max`]), and calls of the allocator.

use allocations::{Counting, count, freed_count};
use catalog::ProtocolKind;
use one_shard::World;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of rows of the tables: many times the work of a step.
const ROWS: u64 = 30_000;
/// Units (rows, or 256 bytes of them) that a step may take: a turn of a statement, one of a scan,
/// and a slice each of what is installed, unlocked and freed.
const STEP_UNITS_MAX: u64 = 6_000;
/// Calls of the allocator that a step may make: some for each row of a turn.
const STEP_CALLS_MAX: u64 = 40_000;

/// Statements on `t (id, v)` and `u (id, v)` of that many rows, run one after the other.
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

/// Number of rows of the tables of [`MORE`].
const MORE_ROWS: u64 = 12_000;

/// As [`MONSTERS`], also on `s (p, id, v)`, all of whose rows lie in one slot, and on `c (id, t)`
/// with a foreign key to `t`.
const MORE: &[&str] = &[
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "SELECT v, count(*) FROM t GROUP BY v LIMIT 1",
    "SELECT count(DISTINCT v), sum(DISTINCT id) FROM t",
    "SELECT v FROM t INTERSECT SELECT id FROM t",
    "SELECT id FROM t EXCEPT ALL SELECT v FROM t",
    "SELECT array_length(array_agg(v ORDER BY v), 1), \
     array_length(array_agg(id ORDER BY v DESC), 1) FROM t",
    "SELECT count(*) FROM t WHERE v NOT IN (SELECT v + 1 FROM t)",
    "SELECT count(*) FROM t WHERE v > ALL (SELECT -v FROM t LIMIT 10000)",
    "SELECT * FROM t ORDER BY v LIMIT 5000",
    "INSERT INTO t SELECT id + $n, v FROM t ON CONFLICT DO NOTHING",
    "DELETE FROM t WHERE id > $n",
    "INSERT INTO s SELECT 1, g, g FROM generate_series(1, $n) g",
    "BEGIN",
    "DELETE FROM s",
    "SELECT count(*) FROM s",
    "SELECT id FROM s ORDER BY p, id LIMIT 1",
    "ROLLBACK",
    "BEGIN",
    "UPDATE s SET v = v + 1",
    "SELECT count(*) FROM s",
    "COMMIT",
    "DELETE FROM s",
    "SELECT count(*) FROM s",
    "INSERT INTO s SELECT 1, g, g FROM generate_series(1, $n) g",
    "DROP TABLE s",
    "INSERT INTO c SELECT id, id FROM t",
    "UPDATE c SET t = t % 100 + 1",
    "DELETE FROM c WHERE id > 20",
    "DELETE FROM t WHERE id > 10000",
];

/// Number of rows that a transaction increments one by one before its COMMIT is measured.
const INCREMENTS: u64 = 7_000;

/// The largest steps so far, by each count.
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

/// Runs a statement to its end, with the work that is left behind it.
fn run(world: &mut World, text: &str) -> Largest {
    let mut outcome = one_shard::Outcome::default();
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
    panic!("the statement does not end: {text}");
}

/// Runs statements. Returns those with a step that is too large.
fn too_large(world: &mut World, texts: &[&str], rows: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for text in texts {
        let text = text.replace("$n", &rows.to_string());
        let Largest { units, calls } = run(world, &text);
        if units > STEP_UNITS_MAX || calls > STEP_CALLS_MAX {
            wrong.push(format!("{units} units, {calls} calls in a step: {text}"));
        }
    }
    wrong
}

fn steps_are_short(protocol: ProtocolKind) {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    world.must(1, "CREATE TABLE u (id int PRIMARY KEY, v int)");
    let wrong = too_large(&mut world, MONSTERS, ROWS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn more_steps_are_short(protocol: ProtocolKind) {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    world.must(
        1,
        "CREATE TABLE s (p int, id int, v int, PRIMARY KEY (p, id)) PARTITION BY (p)",
    );
    world.must(1, "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t)");
    let mut wrong = too_large(&mut world, MORE, MORE_ROWS);

    world.must(1, "DROP TABLE c");
    world.must(1, "TRUNCATE t");
    world.must(
        1,
        "INSERT INTO t SELECT g, g FROM generate_series(1, 10000) g",
    );
    world.must(1, "BEGIN");
    for id in 1..=INCREMENTS {
        world.must(1, &format!("UPDATE t SET v = v + 1 WHERE id = {id}"));
    }
    wrong.extend(too_large(&mut world, &["COMMIT"], INCREMENTS));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_phase_steps_of_other_statements_are_short() {
    more_steps_are_short(ProtocolKind::TwoPhase);
}

#[test]
fn leap_steps_of_other_statements_are_short() {
    more_steps_are_short(ProtocolKind::Leap);
}

#[test]
fn two_phase_steps_are_short() {
    steps_are_short(ProtocolKind::TwoPhase);
}

#[test]
fn leap_steps_are_short() {
    steps_are_short(ProtocolKind::Leap);
}
