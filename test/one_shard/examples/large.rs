//! Time and bytes of statements over many rows, and of schema changes beside many tables: one shard
//! in one thread, without network and disk.
//!
//! `cargo run --release -p one_shard --example large -- rows 1000000` and `... -- tables 4000`.
//! Under `valgrind --tool=callgrind` the same tells which functions cost what;
//! docs/measured/planning.md has figures.
#![expect(clippy::print_stdout, reason = "the program measures and prints")]

use catalog::ProtocolKind;
use one_shard::World;
use std::time::Instant;

const STATEMENTS: &[&str] = &[
    "SELECT count(*) FROM big",
    "SELECT count(*) FROM big a JOIN big b ON a.k = b.id",
    "SELECT count(DISTINCT k) FROM big",
    "SELECT v, count(*) FROM big GROUP BY v",
    "SELECT k, count(*) FROM big GROUP BY k",
    "SELECT count(*) FROM (SELECT DISTINCT k FROM big) d",
    "SELECT count(*) FROM (SELECT k FROM big EXCEPT SELECT id FROM big) d",
    "SELECT id FROM big ORDER BY k, id LIMIT 1 OFFSET $o",
];

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    let count = args.next().and_then(|text| text.parse().ok());
    let only = args.next().and_then(|text| text.parse().ok());
    match what.as_str() {
        "tables" => tables(count.unwrap_or(1_000)),
        _ => rows(count.unwrap_or(100_000), only),
    }
}

fn rows(count: u64, only: Option<usize>) {
    let mut world = World::new(ProtocolKind::TwoPhase);
    world.connect(1);
    world.must(1, "CREATE TABLE big (id int PRIMARY KEY, k int, v int)");
    let some = 10_000;
    for start in (0..count).step_by(some) {
        let end = (start + some as u64).min(count);
        let text = format!(
            "INSERT INTO big SELECT g, (g * 7919::bigint) % {count}, g % 1000 \
             FROM generate_series({start}, {end} - 1) g"
        );
        world.must(1, &text);
    }
    let chosen = STATEMENTS.iter().enumerate();
    for (_, text) in chosen.filter(|(number, _)| only.is_none_or(|only| only == *number)) {
        let text = text.replace("$o", &(count - 1).to_string());
        let began = Instant::now();
        let outcome = world.must(1, &text);
        let ms = began.elapsed().as_secs_f64() * 1e3;
        println!(
            "{ms:9.1} ms {:9} rows {:?} {text}",
            outcome.rows, outcome.last
        );
    }
}

fn tables(count: u64) {
    let mut world = World::new(ProtocolKind::TwoPhase);
    world.connect(1);
    let mut began = Instant::now();
    for number in 0..count {
        if number % 1_000 == count % 1_000 {
            began = Instant::now();
        }
        world.must(
            1,
            &format!("CREATE TABLE t{number} (id int PRIMARY KEY, k int, v text)"),
        );
        if number + 1 == count || (number + 1) % 1_000 == 10 {
            let some = (number + 1 - number / 1_000 * 1_000) as f64;
            let ms = began.elapsed().as_secs_f64() * 1e3 / some;
            println!("{:6} tables: {ms:7.3} ms for each", number + 1);
        }
    }
}
