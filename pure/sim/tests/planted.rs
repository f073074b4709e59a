//! Every planted bug is seen at its recorded seed, and nothing is seen there without it.
//!
//! `cargo test -p sim --test planted`. A seed means another run after
//! many a change of the product; then the seeds behind it are tried, a bounded number of them, and
//! the test asks for a new search (`trellis sim planted --record .`) if none sees the bug. Trying
//! takes time: `UPDATE=1` writes down the seeds at which bugs were seen now.
#![cfg(debug_assertions)]
#![allow(
    clippy::disallowed_methods,
    reason = "the seeds are a file, and a switch of the environment rewrites it"
)]

use base::{Planted, plant};
use sim::planted::{Found, format, parse};
use sim::{Plan, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that are tried, the recorded one first.
const TRIES: u64 = 400;

/// Bugs that some thousand runs have not met. The schedules of `formula/tests/planted.rs` see them.
const OF_SCHEDULES: [Planted; 2] = [Planted::FormulaReadersUnasked, Planted::FormulaTopsIgnored];

/// How the run fails, if it does; a failed assertion of the product is a failure.
fn failure(bug: Option<Planted>, plan: &Plan) -> Option<String> {
    assert!(plant(bug), "this build has the switches");
    let outcome = catch_unwind(AssertUnwindSafe(|| sim::run(plan)));
    assert!(plant(None), "this build has the switches");
    match outcome.map(|outcome| outcome.verdict) {
        Ok(Verdict::Fail(text)) => Some(text),
        Ok(Verdict::Pass | Verdict::Inconclusive(_)) => None,
        Err(_) => Some("an assertion failed".to_owned()),
    }
}

/// How far behind the recorded seed one sees the bug.
fn seen_after(found: &Found) -> Option<u64> {
    (0..TRIES).find(|tries| {
        let plan = found.plan_at(found.seed + tries);
        failure(Some(found.bug), &plan).is_some()
    })
}

// One test: the switch is the process's.
#[test]
fn each_bug_is_seen_and_nothing_without_it() {
    let all = parse(include_str!("../planted.txt")).expect("the file is well formed");
    let mut wrong = Vec::new();
    for bug in Planted::ALL {
        if !all.iter().any(|found| found.bug == *bug) && !OF_SCHEDULES.contains(bug) {
            wrong.push(format!("{}: no seed is recorded", bug.name()));
        }
    }
    let mut seen = Vec::new();
    for found in &all {
        let name = found.bug.name();
        match seen_after(found) {
            Some(tries) => seen.push(Found {
                seed: found.seed + tries,
                ..*found
            }),
            None => wrong.push(format!("{name}: not seen in {TRIES} seeds")),
        }
        if let Some(text) = failure(None, &found.plan()) {
            wrong.push(format!("{} {}: {text}", found.workload, found.seed));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("planted.txt", format(&seen)).expect("a writable file");
    }
}
