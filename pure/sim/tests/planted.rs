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
    reason = "the seeds are a file that the environment has rewritten; each bug has a process"
)]

use base::{Planted, plant};
use sim::planted::{Found, format, parse};
use sim::{Plan, Verdict};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Seeds that are tried, the recorded one first.
const TRIES: u64 = 100;

/// Bugs that hundreds of runs have not met, or some thousand. Schedules see them:
/// `formula/tests/planted.rs`, `leap/src/tests/rules.rs`, `two_phase/src/tests/planted.rs`.
const OF_SCHEDULES: [Planted; 6] = [
    Planted::EarlyReadersForget,
    Planted::FormulaReadersUnasked,
    Planted::FormulaTopsIgnored,
    Planted::LeapCopiesForgotten,
    Planted::LeapErrandNextLife,
    Planted::ReaderFreedAtVote,
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

/// Set in the processes that the test starts, as `NUMBER/FILE`: which bug is theirs, and where the
/// answer goes.
const JOB: &str = "PLANTED_JOB";

/// Judges one bug. What is wrong begins with `!`; the other lines are the bug as seen.
fn judge(found: &Found) -> String {
    let mut answer = match seen_after(found) {
        Some(tries) => format(&[Found {
            seed: found.seed + tries,
            ..*found
        }]),
        None => format!("!{}: not seen in {TRIES} seeds\n", found.bug.name()),
    };
    if let Some(text) = failure(None, &found.plan()) {
        answer += &format!("!{} {}: {text:?}\n", found.workload, found.seed);
    }
    answer
}

/// Runs this test for one bug, in a process of its own: the switch is the process's.
fn judge_elsewhere(number: usize) -> String {
    let answer = std::env::temp_dir().join(format!("planted-{}-{number}", std::process::id()));
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    command.env(JOB, format!("{number}/{}", answer.display()));
    let child = command.stdout(std::process::Stdio::null()).status();
    assert!(child.expect("this program starts").success());
    let text = std::fs::read_to_string(&answer).expect("the answer");
    std::fs::remove_file(&answer).expect("the file was there");
    text
}

/// Judges all bugs, as many at a time as there are cores. The answers are in the order of the bugs.
fn judge_all(count: usize) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(vec![String::new(); count]);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let answer = judge_elsewhere(number);
                    answers.lock().expect("nobody has panicked")[number] = answer;
                }
            });
        }
    });
    answers.into_inner().expect("nobody has panicked")
}

#[test]
fn each_bug_is_seen_and_nothing_without_it() {
    let all = parse(include_str!("../planted.txt")).expect("the file is well formed");
    if let Ok(text) = std::env::var(JOB) {
        let (number, answer) = text.split_once('/').expect("NUMBER/FILE");
        let number: usize = number.parse().expect("NUMBER");
        std::fs::write(answer, judge(&all[number])).expect("a writable file");
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
    let answers = judge_all(all.len()).concat();
    let (bad, good): (Vec<&str>, Vec<&str>) =
        answers.lines().partition(|line| line.starts_with('!'));
    wrong.extend(bad.into_iter().map(str::to_owned));
    let seen = parse(&good.join("\n")).expect("bugs as seen");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), all.len());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("planted.txt", format(&seen)).expect("a writable file");
    }
}
