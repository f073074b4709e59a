//! A statement of any kind holds at most `statement_memory` bytes. An allocator counts the bytes in
//! use of a node of one shard.

use allocations::{Counting, begin_peak, held_bytes, peak_bytes};
use catalog::ProtocolKind;
use one_shard::World;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// `SET statement_memory`.
const LIMIT_BYTES: i64 = 16 << 20;
/// Bytes that a statement may add to the bytes in use: the limit and a quarter.
const PEAK_BYTES_MAX: i64 = LIMIT_BYTES + LIMIT_BYTES / 4;

/// Statements that need more than the limit with `$n` rows. With a hundredth of the rows the same
/// statement must succeed.
const TOO_LARGE: &[(&str, u64)] = &[
    (
        "SELECT g FROM generate_series(1, $n) g ORDER BY g DESC",
        900_000,
    ),
    (
        "SELECT g, repeat('x', 100) FROM generate_series(1, $n) g ORDER BY 1 DESC",
        200_000,
    ),
    (
        "SELECT g FROM generate_series(1, $n) g ORDER BY g DESC LIMIT 700000",
        900_000,
    ),
    ("SELECT DISTINCT g FROM generate_series(1, $n) g", 400_000),
    (
        "SELECT 1 INTERSECT SELECT g FROM generate_series(1, $n) g",
        400_000,
    ),
    (
        "SELECT g FROM generate_series(1, $n) g EXCEPT SELECT 1",
        400_000,
    ),
    (
        "SELECT DISTINCT ON (g) g, 1 FROM generate_series(1, $n) g ORDER BY g",
        900_000,
    ),
    (
        "SELECT g, count(*) FROM generate_series(1, $n) g GROUP BY g",
        300_000,
    ),
    (
        "SELECT count(DISTINCT g) FROM generate_series(1, $n) g",
        400_000,
    ),
    (
        "SELECT sum(DISTINCT g), count(DISTINCT g::text) FROM generate_series(1, $n) g",
        200_000,
    ),
    (
        "SELECT array_length(array_agg(g), 1) FROM generate_series(1, $n) g",
        900_000,
    ),
    (
        "SELECT array_length(array_agg(g ORDER BY g), 1), \
         array_length(array_agg(-g ORDER BY -g), 1) FROM generate_series(1, $n) g",
        200_000,
    ),
    (
        "SELECT length(string_agg(g::text, ',')) FROM generate_series(1, $n) g",
        4_000_000,
    ),
    (
        "SELECT length(string_agg(repeat('x', 1000), '')) FROM generate_series(1, $n) g",
        20_000,
    ),
    (
        "SELECT g % 10, array_agg(g::text) FROM generate_series(1, $n) g GROUP BY 1",
        400_000,
    ),
    (
        "SELECT max(repeat(g::text, 1000)) FROM generate_series(1, $n) g GROUP BY g",
        10_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, $n) a(i) JOIN generate_series(1, $n) b(j) \
         ON i = j",
        300_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, $n) a(i) LEFT JOIN generate_series(1, $n) b(j) \
      ON i = j",
        300_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, $n) a(i) FULL JOIN generate_series(1, $n) b(j) \
      ON i = j",
        300_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, 2) a(i) JOIN generate_series(1, $n) b(j) ON i < j",
        1_500_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, 2) a(i) WHERE i IN (SELECT g FROM \
      generate_series(1, $n) g)",
        400_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, 2) a(i) WHERE i NOT IN (SELECT g FROM \
      generate_series(1, $n) g)",
        400_000,
    ),
    (
        "SELECT count(*) FROM generate_series(1, 2) a(i) WHERE i > ALL (SELECT g FROM \
      generate_series(1, $n) g)",
        400_000,
    ),
    (
        "SELECT array_length(ARRAY(SELECT g FROM generate_series(1, $n) g), 1)",
        400_000,
    ),
    (
        "SELECT count(*) FROM unnest(string_to_array(repeat('a,', $n), ','))",
        1_000_000,
    ),
    ("SELECT length(repeat('x', $n))", 50_000_000),
    ("SELECT length(lpad('x', $n, 'yz'))", 50_000_000),
    ("SELECT length(rpad('x', $n))", 50_000_000),
    ("SELECT length(format('%' || $n || 's', 'x'))", 50_000_000),
    (
        "SELECT length(replace(repeat('a', 10000), 'a', repeat('b', $n)))",
        10_000,
    ),
    (
        "SELECT length(repeat('x', $n) || repeat('y', $n))",
        12_000_000,
    ),
    (
        "SELECT length(concat(repeat('x', $n), repeat('y', $n)))",
        12_000_000,
    ),
    (
        "SELECT length(regexp_replace(repeat('a', 10000), 'a', repeat('b', $n), 'g'))",
        10_000,
    ),
    (
        "SELECT array_length(regexp_split_to_array(repeat('a,', $n), ','), 1)",
        1_000_000,
    ),
    (
        "SELECT repeat(g::text, $n) FROM generate_series(1, 9) g ORDER BY 1",
        5_000_000,
    ),
    (
        "SELECT repeat('x', $n), repeat('y', $n), repeat('z', $n)",
        8_000_000,
    ),
    // The table has 40,000 rows of 200 bytes.
    (
        "SELECT v, count(*) FROM t WHERE id <= $n GROUP BY v",
        40_000,
    ),
    (
        "SELECT count(DISTINCT v || v) FROM t WHERE id <= $n",
        40_000,
    ),
    (
        "SELECT array_length(array_agg(v), 1) FROM t, generate_series(1, 3) WHERE id <= $n",
        40_000,
    ),
    (
        "SELECT length(string_agg(v, ',')) FROM t, generate_series(1, 3) WHERE id <= $n",
        40_000,
    ),
    (
        "SELECT v || v || v FROM t WHERE id <= $n ORDER BY 1",
        40_000,
    ),
    (
        "SELECT a.v FROM t a, generate_series(1, 2) WHERE id <= $n ORDER BY v, id",
        40_000,
    ),
    (
        "SELECT count(*) FROM wide a JOIN wide b ON a.v = b.v WHERE a.id <= $n",
        2_000,
    ),
    // This one has 2,000 rows of 10,000 bytes.
    ("UPDATE wide SET v = v || 'x' WHERE id <= $n", 2_000),
    ("DELETE FROM wide WHERE id <= $n AND v > ''", 2_000),
    (
        "INSERT INTO wide SELECT id + 100000, v FROM wide WHERE id <= $n",
        2_000,
    ),
    (
        "SELECT a.id, b.v FROM wide a JOIN wide b ON b.v = a.v WHERE a.id <= $n",
        2_000,
    ),
    ("SELECT v FROM wide WHERE id <= $n ORDER BY v", 2_000),
];

/// Statements with much input that hold little of it.
const SMALL: &[&str] = &[
    "SELECT g FROM generate_series(1, 400000) g",
    "SELECT g FROM generate_series(1, 400000) g ORDER BY g DESC LIMIT 10",
    "SELECT g, repeat('x', 1000) FROM generate_series(1, 50000) g",
    "SELECT g, repeat('x', 1000) FROM generate_series(1, 50000) g ORDER BY g DESC LIMIT 1000",
    "SELECT count(*), sum(g), avg(g), max(g::text) FROM generate_series(1, 400000) g",
    "SELECT count(*) FROM generate_series(1, 2000) a(i), generate_series(1, 300) b(j)",
    "SELECT i, j FROM generate_series(1, 300) a(i), generate_series(1, 1000) b(j)",
    "SELECT repeat(g::text, 100000) FROM generate_series(1, 300) g",
    "SELECT id, v FROM t",
    "SELECT repeat(v, 50) FROM t WHERE id <= 4000",
    "SELECT id % 100, count(*), max(v) FROM t GROUP BY 1",
    "SELECT id, v FROM t ORDER BY id DESC LIMIT 100",
    "SELECT id, v FROM wide",
    "SELECT id, v FROM wide ORDER BY id DESC LIMIT 100",
];

fn world(protocol: ProtocolKind) -> World {
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    world.must(
        1,
        "INSERT INTO t SELECT g, repeat(g::text || ' ', 30) FROM generate_series(1, 40000) g",
    );
    world.must(1, "CREATE TABLE wide (id int PRIMARY KEY, v text)");
    world.must(
        1,
        "INSERT INTO wide SELECT g, repeat(g::text || ' ', 10000 / (length(g::text) + 1)) \
         FROM generate_series(1, 2000) g",
    );
    world.must(1, "SET statement_memory = '16MB'");
    world
}

/// Largest number of bytes that a statement added to those in use, and its SQLSTATE.
fn measure(world: &mut World, text: &str) -> (i64, String) {
    let before = held_bytes();
    begin_peak();
    let outcome = world.run(1, text);
    let state = outcome
        .error
        .map_or(String::from("ok"), |error| error.state().to_string());
    (peak_bytes() - before, state)
}

fn statements_stay_within(protocol: ProtocolKind) {
    let mut world = world(protocol);
    let mut wrong = Vec::new();
    // Without rows of a table the protocols do not matter.
    let counts = |text: &str| {
        protocol == ProtocolKind::TwoPhase || [" t", " wide"].iter().any(|t| text.contains(t))
    };
    let mut check = |wanted: &str, text: &str| {
        let (peak, state) = measure(&mut world, text);
        if state != wanted || peak > PEAK_BYTES_MAX {
            wrong.push(format!("{state}, {} KiB at most: {text}", peak >> 10));
        }
    };
    for (text, rows) in TOO_LARGE.iter().filter(|(text, _)| counts(text)) {
        check("53200", &text.replace("$n", &rows.to_string()));
    }
    for (text, rows) in TOO_LARGE.iter().filter(|(text, _)| counts(text)) {
        check("ok", &text.replace("$n", &(rows / 100).to_string()));
    }
    for text in SMALL.iter().filter(|text| counts(text)) {
        check("ok", text);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_phase_statements_stay_within_their_memory() {
    statements_stay_within(ProtocolKind::TwoPhase);
}

#[test]
fn leap_statements_stay_within_their_memory() {
    statements_stay_within(ProtocolKind::Leap);
}

#[test]
fn the_error_says_what_was_asked_for_and_what_to_do() {
    let mut world = world(ProtocolKind::TwoPhase);
    let outcome = world.run(1, "SELECT length(repeat('x', 50000000))");
    let error = outcome.error.expect("more than the limit");
    assert_eq!(error.state().to_string(), "53200");
    let fields = error.fields();
    assert_eq!(fields.message, "the statement needs too much memory");
    assert!(fields.detail.contains("50000000"), "{}", fields.detail);
    assert!(fields.detail.contains("16777216"), "{}", fields.detail);
    assert!(fields.hint.contains("statement_memory"), "{}", fields.hint);
    // The statement is over: the next one has all of the memory.
    world.must(1, "SELECT length(repeat('x', 16000000))");
    world.must(1, "SET statement_memory = '100MB'");
    let outcome = world.must(1, "SELECT length(repeat('x', 50000000))");
    assert_eq!(outcome.last, base::Datum::Int(50_000_000));
}

#[test]
fn values_end_at_a_gigabyte() {
    let mut world = world(ProtocolKind::TwoPhase);
    world.must(1, "SET statement_memory = '4GB'");
    for text in [
        "SELECT length(repeat('x', 1073741824))",
        "SELECT length(repeat('xy', 2000000000))",
        "SELECT length(lpad('x', 2000000000))",
        "SELECT length(format('%2000000000s', 'x'))",
    ] {
        let (peak, state) = measure(&mut world, text);
        assert_eq!(state, "54000", "{text}");
        assert!(peak < 1 << 20, "{peak} bytes for {text}");
    }
}
