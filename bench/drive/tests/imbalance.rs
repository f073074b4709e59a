//! Uneven data and accesses at a real PostgreSQL: what was loaded is used, and the conditions hold.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::RunReport;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::DriveError;
use links::answers::Answers;
use links::link::Link;
use links::url::Target;
use links::view::Silent;
use peer::Peer;
use std::time::Duration;
use support::run_until;
use workload::finding::Verdict;
use workload::tpcc::Scale;

fn load(url: &str, exponent: &str) -> Scale {
    let scale = Scale {
        items: 300,
        customers: 30,
        orders: 30,
        skew: exponent.parse().unwrap(),
        ..Scale::reduced(4)
    };
    let load = LoadOptions {
        scale,
        ..LoadOptions::new(url, 4)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    scale
}

fn options(url: &str, imbalance: &str, seconds: u64) -> RunOptions {
    let mut options = RunOptions::new(url);
    options.runner.clients = 8;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = Duration::from_secs(seconds);
    options.dike = Some(DikeOptions {
        imbalance: imbalance.parse().unwrap(),
        mix: "new_order:45,payment:43,delivery:12".parse().unwrap(),
        ..DikeOptions::default()
    });
    options
}

fn run(options: &RunOptions, is_enough: impl Fn(&RunReport) -> bool) -> RunReport {
    let found = run_until(options, is_enough);
    let table = report::table(&found);
    assert!(found.passed(), "{table}");
    let checked = found.consistency.as_ref().unwrap();
    assert_eq!(checked.failed(), 0, "{table}");
    found
}

/// Warehouses and districts that took an order in the run.
fn used(url: &str, scale: &Scale) -> u64 {
    let target = Target::parse(url).unwrap();
    let mut link = Link::connect(&target.endpoints[0], &target, None).unwrap();
    let sql = format!(
        "SELECT COUNT(*) FROM district WHERE d_next_o_id > {}",
        scale.orders + 1
    );
    let mut answers = Answers::new();
    link.query(&sql, &mut answers).unwrap();
    answers.int(0, 0, 0).unwrap() as u64
}

#[test]
fn every_loaded_district_is_used_and_the_conditions_hold() {
    let Some(peer) = Peer::start() else { return };
    for (number, exponent) in ["0.5", "0.99", "1.5"].into_iter().enumerate() {
        let name = format!("zipf{number}");
        peer.psql("postgres", &format!("CREATE DATABASE {name}"));
        let url = peer.url(&name);
        let scale = load(&url, exponent);
        let districts = scale.districts().sum(4);
        let imbalance = format!("data:zipf:{exponent},access:zipf:{exponent}");
        let are_used = |_: &RunReport| used(&url, &scale) == districts;
        let found = run(&options(&url, &imbalance, 1), are_used);
        let json = report::json(&found);
        let loaded = json["imbalance"]["districts"].as_array().unwrap();
        let loaded: u64 = loaded.iter().filter_map(|it| it.as_u64()).sum();
        assert_eq!(loaded, districts);
        assert_eq!(used(&url, &scale), districts, "{exponent}");
    }
}

#[test]
fn shares_and_mixes_follow_curves_and_what_does_not_fit_is_refused() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE uneven");
    let url = peer.url("uneven");
    load(&url, "1.5");

    let hot = options(&url, "access:hot:0.25:0.8", 1);
    let hot = run(&hot, |run| run.committed() > 200);
    let report = hot.imbalance.as_ref().unwrap();
    let share = report.homes[0] as f64 / report.homes.iter().sum::<u64>() as f64;
    assert!((0.7..0.9).contains(&share), "{share}");
    let title = "transactions of the most frequent home";
    let found = hot.audits.iter().find(|it| it.title == title).unwrap();
    assert_eq!(found.verdict, Verdict::Passed, "{found:?}");

    let mut followed = options(&url, "access:hot:0.25:0.8", 2);
    let dike = followed.dike.as_mut().unwrap();
    dike.hot_curve = Some("step:0@0,1@1".parse().unwrap());
    let payments = "step:0@0,1000000@1".parse().unwrap();
    dike.mix_curves = vec![(workload::tpcc::Kind::Payment, payments)];
    let committed = |run: &RunReport, name: &str| {
        let kind = run.kinds.iter().find(|kind| kind.name == name);
        kind.unwrap().tally.committed
    };
    let is_followed = |run: &RunReport| {
        let mut homes = run.imbalance.as_ref().unwrap().homes.iter();
        homes.all(|count| *count > 0)
            && committed(run, "payment") > 0
            && committed(run, "new_order") > 0
    };
    let found = run(&followed, is_followed);
    assert!(is_followed(&found), "{}", report::table(&found));
    assert!(found.imbalance.as_ref().unwrap().shares.is_none());

    let refused = |options: &RunOptions, words: &str| {
        let error = tpcc::run(options, &mut Silent).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&options(&url, "data:zipf:0.5", 1), "exponent 1.5");
    let mut cold = options(&url, "access:zipf:1", 1);
    cold.dike.as_mut().unwrap().hot_curve = Some("step:0.5@0".parse().unwrap());
    refused(&cold, "access:hot");
    let mut without = options(&url, "access:uniform", 1);
    without.dike.as_mut().unwrap().without = Some("binding".parse().unwrap());
    refused(&without, "without binding");
    let bare = LoadOptions {
        without: "broadcast".parse().unwrap(),
        ..LoadOptions::new(&url, 4)
    };
    let error = tpcc::load(&bare, &mut Silent).unwrap_err();
    assert!(matches!(error, DriveError::Option(_)), "{error}");
}
