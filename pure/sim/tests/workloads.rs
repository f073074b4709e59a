//! Every workload comes to a verdict on a calm cluster, at every level, and is the same twice.

use sim::plan::{Ask, Plan, Wanted};
use sim::workload::{ALL, Verdict};

fn calm(workload: &'static str, seed: u64) -> Plan {
    let mut ask = Ask::new(workload);
    ask.wanted = Wanted::Nothing;
    ask.run_us = Some(1_500_000);
    ask.clients = Some(4);
    Plan::draw(seed, &ask)
}

#[test]
fn calm_runs_of_every_workload_pass() {
    for entry in ALL {
        for seed in [1, 2] {
            let outcome = sim::run(&calm(entry.name, seed));
            assert_eq!(outcome.verdict, Verdict::Pass, "{} {seed}", entry.name);
        }
    }
}

#[test]
fn a_workload_is_the_same_twice() {
    for workload in ["list-append", "ddl"] {
        let plan = calm(workload, 3);
        let (one, two) = (sim::run(&plan), sim::run(&plan));
        assert_eq!(one, two, "{workload}");
    }
}

#[test]
fn too_short_a_run_is_inconclusive() {
    let mut plan = calm("register", 4);
    (plan.run_us, plan.clients) = (1_000, 1);
    let verdict = sim::run(&plan).verdict;
    assert!(matches!(verdict, Verdict::Inconclusive(_)), "{verdict:?}");
}
