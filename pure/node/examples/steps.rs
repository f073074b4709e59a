//! The longest step of a shard while large statements and transactions run: one shard in one
//! thread, without network and disk.
//!
//! `cargo run --release -p node --example steps [ROWS] [two_phase|leap]`; docs/benchmark/steps.md
//! has figures. The test `steps.rs` bounds the work of a step in counted units.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures and prints"
)]

#[path = "../tests/one_shard/mod.rs"]
mod one_shard;

use catalog::ProtocolKind;
use one_shard::{Outcome, World};
use std::time::Instant;

const STATEMENTS: &[&str] = &[
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "BEGIN",
    "UPDATE t SET v = v + 1",
    "COMMIT",
    "BEGIN",
    "UPDATE t SET v = v + 1",
    "ROLLBACK",
    "BEGIN",
    "INSERT INTO t SELECT g, g FROM generate_series($n + 1, 2 * $n) g",
    "COMMIT",
    "DELETE FROM t WHERE id > $n",
    "BEGIN",
    "DELETE FROM t",
    "ROLLBACK",
    "TRUNCATE t",
    "INSERT INTO t SELECT g, g FROM generate_series(1, $n) g",
    "DROP TABLE t",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments.next().unwrap_or_else(|| "2000000".into());
    let protocol = match arguments.next().as_deref() {
        Some("leap") => ProtocolKind::Leap,
        _ => ProtocolKind::TwoPhase,
    };
    let mut world = World::new(protocol);
    world.connect(1);
    world.must(1, "SET statement_memory = '8GB'");
    world.must(1, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    println!("{rows} rows, {protocol:?}");
    println!("longest step  all  units  statement");
    for text in STATEMENTS {
        measure(&mut world, &text.replace("$n", &rows));
    }
}

/// Runs a statement and what it leaves to do.
fn measure(world: &mut World, text: &str) {
    let mut outcome = Outcome {
        rows: 0,
        last: base::Datum::Null,
        error: None,
    };
    world.shard.take_step_units_max();
    let (start, mut longest, mut over) = (Instant::now(), 0.0f64, false);
    let mut before = start;
    world.say(1, text);
    loop {
        let now = Instant::now();
        longest = longest.max(now.duration_since(before).as_secs_f64());
        over |= world.take(1, &mut outcome);
        if over && world.shard.deadline().is_none_or(|at| at > world.now) {
            break;
        }
        before = Instant::now();
        world.go_on(1);
    }
    assert_eq!(outcome.error, None, "{text}");
    let (longest, all) = (longest * 1e3, start.elapsed().as_secs_f64());
    let units = world.shard.take_step_units_max();
    println!("{longest:9.1} ms {all:6.2} s {units:6}  {text}");
}
