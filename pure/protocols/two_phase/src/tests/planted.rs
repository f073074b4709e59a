//! Planted bugs that only one of hundreds of simulated runs meets.
//!
//! The switch is the process's, so each bug has a process of its own, which runs its test again.
#![cfg(debug_assertions)]

use crate::TwoPhase;
use base::{Planted, plant};
use bed::random::{Accounts, Run};
use std::panic::catch_unwind;

/// Set in the processes that tests start.
const BUG: &str = "PLANTED_BUG";

/// Where `seen` runs with the bug, and tells whether it was seen; `test`: the name of the caller.
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "each bug has a process"
)]
fn is_seen(bug: Planted, test: &str, seen: impl FnOnce() -> bool) {
    if std::env::var(BUG).is_ok_and(|name| name == bug.name()) {
        assert!(plant(Some(bug)), "this build has the switches");
        assert!(seen(), "{} is not seen", bug.name());
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new(program);
    command.args(["--exact", &format!("tests::planted::{test}")]);
    let output = command.env(BUG, bug.name()).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_reader_that_is_freed_at_its_vote() {
    let fails = |seed| catch_unwind(|| Run::<TwoPhase, Accounts>::whole(seed, None)).is_err();
    let test = "a_reader_that_is_freed_at_its_vote";
    is_seen(Planted::ReaderFreedAtVote, test, || (0..100).any(fails));
}

/// The client was told of a commit, and the coordinator that asks for the promises misses one.
#[test]
fn a_named_reader_that_votes_without_a_record() {
    let script = include_str!("../../testdata/early_reader_promises.txt");
    let test = "a_named_reader_that_votes_without_a_record";
    is_seen(Planted::EarlyReadersForget, test, || {
        let trace = bed::Script::<TwoPhase>::trace(script);
        trace.contains("t1 done, committed") && trace.contains("a = Some(10)")
    });
}
