//! The workloads of users in the simulator: calm runs pass, runs under faults pass, and a planted
//! bug of the product is found by their checks.
#![cfg(debug_assertions)]
#![allow(clippy::print_stdout, reason = "a test tells what it has found")]

use base::{Planted, plant};
use sim::Verdict;
use sim::plan::{Ask, Plan, ProtocolKind, Wanted};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Planted bugs are a switch of the process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(workload: &'static str, protocol: ProtocolKind) -> Ask {
    let mut ask = Ask::new(workload);
    ask.protocol = protocol;
    ask
}

#[test]
fn calm_runs_pass_under_each_protocol() {
    let _alone = alone();
    for entry in simulated::ENTRIES {
        for protocol in ProtocolKind::ALL {
            let mut ask = ask(entry.name, protocol);
            ask.wanted = Wanted::Nothing;
            ask.run_us = Some(1_500_000);
            ask.clients = Some(4);
            let outcome = simulated::run(&Plan::draw(1, &ask));
            assert_eq!(
                outcome.verdict,
                Verdict::Pass,
                "{} {protocol:?}",
                entry.name
            );
        }
    }
}

#[test]
fn runs_under_faults_pass_under_each_protocol() {
    let _alone = alone();
    let mut passed = 0;
    for entry in simulated::ENTRIES {
        for protocol in ProtocolKind::ALL {
            for seed in 1..=2 {
                let plan = Plan::draw(seed, &ask(entry.name, protocol));
                let outcome = simulated::run(&plan);
                match outcome.verdict {
                    Verdict::Pass => passed += 1,
                    Verdict::Inconclusive(_) => {}
                    Verdict::Fail(text) => panic!("{} {protocol:?} {seed}: {text}", entry.name),
                }
            }
        }
    }
    assert!(passed > 20, "only {passed} runs proved something");
}

#[test]
fn a_run_is_the_same_twice() {
    let _alone = alone();
    let plan = Plan::draw(2, &ask("entity-auction", ProtocolKind::TwoPhase));
    assert_eq!(simulated::run(&plan), simulated::run(&plan));
}

/// Seeds that are tried for a planted bug.
const TRIES: u64 = 20;

/// The first seed at which a planted bug is seen, and how.
fn seen(bug: Planted, workload: &'static str) -> Option<(u64, String)> {
    assert!(plant(Some(bug)), "this build has the switches");
    let protocol = bug.protocol().and_then(ProtocolKind::of_name);
    let ask = ask(workload, protocol.unwrap_or_default());
    let found = (1..=TRIES).find_map(|seed| {
        let plan = Plan::draw(seed, &ask);
        let outcome = catch_unwind(AssertUnwindSafe(|| simulated::run(&plan)));
        match outcome.ok()?.verdict {
            Verdict::Fail(text) => Some((seed, text)),
            Verdict::Pass | Verdict::Inconclusive(_) => None,
        }
    });
    assert!(plant(None), "this build has the switches");
    found
}

/// Fails unless each of these bugs is seen with this workload, and told in these words.
fn are_found(bugs: &[(Planted, &'static str, &str)]) {
    let _alone = alone();
    for &(bug, workload, words) in bugs {
        let found = seen(bug, workload);
        println!("{} {workload}: {found:?}", bug.name());
        let (_, text) = found.unwrap_or_else(|| panic!("{}: not in {TRIES} seeds", bug.name()));
        assert!(text.contains(words), "{}: {text}", bug.name());
    }
}

#[test]
fn planted_bugs_are_found_by_the_checks() {
    are_found(&[
        (
            Planted::SharedLockDropped,
            "entity-counter",
            "additions, where",
        ),
        (Planted::SharedLockDropped, "entity-bank", "cents more"),
        (Planted::SharedLockDropped, "entity-auction", "other bids"),
        (
            Planted::LeapOwnerWithoutLock,
            "entity-ycsb",
            "updates, where",
        ),
    ]);
}

/// A lost update shows in no sum of the auction: its bids get numbers from a counter that
/// conflicts. An entry without its entity shows as soon as a user reads what is not there.
#[test]
fn planted_bugs_of_stores_are_found_by_the_checks() {
    let (lost, torn) = (Planted::StoreLostUpdate, Planted::StoreTornGroup);
    are_found(&[
        (lost, "entity-micro", "changes of items, where"),
        (lost, "entity-bank", "cents more"),
        (lost, "entity-counter", "additions, where"),
        (lost, "entity-ycsb", "updates, where"),
        (torn, "entity-micro", "changes of items, where"),
        (torn, "entity-auction", "bids"),
        (torn, "entity-bank", "cents more"),
        (torn, "entity-ycsb", "updates, where"),
        (
            Planted::StoreDanglingEntry,
            "entity-auction",
            "does not fit entity",
        ),
    ]);
}
