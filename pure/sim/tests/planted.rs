//! Every planted bug is seen at its recorded seed, and nothing is seen there without it.
//!
//! `cargo test -p sim --test planted`. A seed means another run after
//! many a change of the product; then the seeds behind it are tried, a bounded number of them, and
//! the test asks for a new search (`trellis sim planted --record .`) if none sees the bug. Trying
//! takes time: `UPDATE=1` writes down the seeds at which bugs were seen now.
#![cfg(debug_assertions)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the seeds are a file that the environment has rewritten; each core has a process"
)]

use base::{Planted, plant};
use sim::planted::{Found, format, parse};
use sim::{Plan, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that are tried, the recorded one first.
const TRIES: u64 = 400;

/// Bugs that some thousand runs have not met. The schedules of `formula/tests/planted.rs` and of
/// `leap/src/tests/rules.rs` see them.
const OF_SCHEDULES: [Planted; 3] = [
    Planted::FormulaReadersUnasked,
    Planted::FormulaTopsIgnored,
    Planted::LeapCopiesForgotten,
];

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

/// Set in the processes that the test starts, as `PART/PARTS/FILE`: which bugs are theirs, and
/// where the answer goes.
const PART: &str = "PLANTED_PART";

/// Judges the bugs of one part. What is wrong begins with `!`; the other lines are bugs as seen.
fn judge(all: &[Found], part: usize, parts: usize) -> String {
    let mut wrong = String::new();
    let mut seen = Vec::new();
    for found in all.iter().skip(part).step_by(parts) {
        match seen_after(found) {
            Some(tries) => seen.push(Found {
                seed: found.seed + tries,
                ..*found
            }),
            None => wrong += &format!("!{}: not seen in {TRIES} seeds\n", found.bug.name()),
        }
        if let Some(text) = failure(None, &found.plan()) {
            wrong += &format!("!{} {}: {text:?}\n", found.workload, found.seed);
        }
    }
    format(&seen) + &wrong
}

/// Starts a process that runs this test for one part, and writes its answer into a file.
fn start(part: usize, parts: usize) -> (std::process::Child, std::path::PathBuf) {
    let answer = std::env::temp_dir().join(format!("planted-{}-{part}", std::process::id()));
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.env(PART, format!("{part}/{parts}/{}", answer.display()));
    let child = command.stdout(std::process::Stdio::null()).spawn();
    (child.expect("this program starts"), answer)
}

// The switch is the process's, so each core has a process of its own.
#[test]
fn each_bug_is_seen_and_nothing_without_it() {
    let all = parse(include_str!("../planted.txt")).expect("the file is well formed");
    if let Ok(text) = std::env::var(PART) {
        let mut words = text.splitn(3, '/');
        let mut number = || words.next().and_then(|word| word.parse().ok());
        let (part, parts) = (number().expect("PART"), number().expect("PARTS"));
        let answer = words.next().expect("a path");
        std::fs::write(answer, judge(&all, part, parts)).expect("a writable file");
        return;
    }
    let mut wrong = Vec::new();
    for bug in Planted::ALL {
        // Bugs of stores are seen by the workloads of `bench/simulated`.
        let is_elsewhere = OF_SCHEDULES.contains(bug) || bug.is_of_stores();
        if !all.iter().any(|found| found.bug == *bug) && !is_elsewhere {
            wrong.push(format!("{}: no seed is recorded", bug.name()));
        }
    }
    let parts = std::thread::available_parallelism().map_or(2, usize::from);
    let started: Vec<_> = (0..parts).map(|part| start(part, parts)).collect();
    let mut seen = Vec::new();
    for (mut child, answer) in started {
        assert!(child.wait().expect("a child").success());
        let text = std::fs::read_to_string(&answer).expect("the answer of a part");
        std::fs::remove_file(&answer).expect("the file was there");
        let (bad, good): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('!'));
        wrong.extend(bad.into_iter().map(str::to_owned));
        seen.extend(parse(&good.join("\n")).expect("bugs as seen"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), all.len());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("planted.txt", format(&seen)).expect("a writable file");
    }
}
