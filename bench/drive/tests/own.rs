//! The own history of a TPC-C run on a real PostgreSQL and a real MariaDB: nothing at SERIALIZABLE,
//! and what weaker levels allow is found where more was claimed.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use check::{Anomaly, Judgement, Level, Verdict};
use drive::histories;
use drive::report;
use drive::run::RunReport;
use drive::tpcc::{self, Isolation, LoadOptions, OwnHistory, RunOptions};
use links::view::Silent;
use peer::Peer;
use servers::Kind;
use std::time::Duration;
use support::run_until;
use workload::tpcc::Scale;

fn loaded(url: &str) {
    let load = LoadOptions {
        scale: Scale {
            items: 100,
            customers: 30,
            orders: 30,
            ..Scale::reduced(1)
        },
        ..LoadOptions::new(url, 1)
    };
    tpcc::load(&load, &mut Silent).unwrap();
}

fn options(url: &str, isolation: Isolation, level: Option<Level>) -> RunOptions {
    let mut options = RunOptions::new(url);
    options.isolation = isolation;
    options.runner.clients = 8;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = Duration::from_secs(2);
    options.histories = Some(OwnHistory {
        level,
        ..OwnHistory::default()
    });
    options
}

/// A run that is long enough for its history to be judged, and to be caught if it must be.
fn run(options: RunOptions, must_fail: bool) -> RunReport {
    run_until(&options, |run| match must_fail {
        true => verdict(run).judgement == Judgement::Fail,
        false => is_judged(run),
    })
}

fn is_judged(run: &RunReport) -> bool {
    verdict(run).judgement != Judgement::Inconclusive
}

fn verdict(run: &RunReport) -> &Verdict {
    &run.history.as_ref().unwrap().verdict
}

fn names(found: &[Anomaly]) -> Vec<String> {
    found.iter().map(Anomaly::name).collect()
}

/// Whether it is the anomaly of a customer who was read, and changed by others before the update.
fn is_named(name: &str) -> bool {
    ["G-single", "lost-update"].contains(&name)
}

/// The condition of a run that its history is. The two after it, of the stock and of HISTORY, hold
/// at every level.
fn passed(run: &RunReport) -> bool {
    let conditions = &run.consistency.as_ref().unwrap().conditions;
    assert_eq!(conditions.len(), 16);
    for condition in &conditions[14..] {
        assert!(condition.passed(), "{condition:?}");
    }
    conditions[13].passed()
}

#[test]
fn postgresql_keeps_what_it_promises_and_no_more() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE own");
    let url = peer.url("own");
    loaded(&url);
    let strict = run_until(&options(&url, Isolation::Serializable, None), |run| {
        is_judged(run) && verdict(run).exercised.concurrent_conflicts > 0
    });
    let table = report::table(&strict);
    assert!(strict.passed() && passed(&strict), "{table}");
    assert_eq!(verdict(&strict).level, Level::Serializable);
    assert!(verdict(&strict).exercised.concurrent_conflicts > 0);
    let json = report::json(&strict);
    assert_eq!(json["history"]["judgement"], "pass");
    assert_eq!(json["history"]["attempts_not_kept"], 0);

    // What READ COMMITTED promises holds, and it is not SERIALIZABLE.
    let committed = options(&url, Isolation::ReadCommitted, None);
    assert!(passed(&run(committed, false)));
    let claimed = options(&url, Isolation::ReadCommitted, Some(Level::Serializable));
    let claimed = run(claimed, true);
    let table = report::table(&claimed);
    assert!(!claimed.passed() && !passed(&claimed), "{table}");
    let found = names(&verdict(&claimed).anomalies);
    assert!(found.iter().any(|name| is_named(name)), "{found:?}");
    let story = &verdict(&claimed).anomalies[0].story;
    let rows = [
        ":customer.1.",
        ":order.1.",
        ":order_lines.1.",
        ":stock.1.",
        ":w_ytd.1",
    ];
    assert!(rows.iter().any(|row| story.contains(row)), "{story}");
    assert!(report::json(&claimed)["committed"].is_null());

    // The same from its file.
    let path = std::env::temp_dir().join(format!("trellis-own-{}.edn", std::process::id()));
    let history = &claimed.history.as_ref().unwrap().history;
    histories::write(&path, history).unwrap();
    let read = histories::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let again = check::check(&read, Level::Serializable);
    assert_eq!(names(&again.anomalies), found);
}

#[test]
fn what_is_not_kept_is_told_and_what_cannot_be_is_refused() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE own");
    let url = peer.url("own");
    loaded(&url);
    let mut bounded = options(&url, Isolation::Serializable, None);
    bounded.histories = Some(OwnHistory {
        operations_max: 2_000,
        level: None,
    });
    let missing = |run: &RunReport| run.history.as_ref().unwrap().missing;
    let found = run_until(&bounded, |run| is_judged(run) && missing(run) > 0);
    let own = found.history.as_ref().unwrap();
    assert!(passed(&found), "{}", own.verdict);
    assert!(own.missing > 0, "{own:?}");
    // One transaction of each client may be under way when it is full.
    assert!(
        (2_000..2_000 + 8 * 100).contains(&own.operations),
        "{}",
        own.operations
    );

    let mut unchecked = options(&url, Isolation::Serializable, None);
    unchecked.runner.check = false;
    let mut elsewhere = options(&url, Isolation::RepeatableRead, None);
    elsewhere.read_urls = Some(url.clone());
    for (refused, why) in [
        (unchecked, "judged with the conditions"),
        (elsewhere, "replicas"),
    ] {
        let error = tpcc::run(&refused, &mut Silent).unwrap_err().to_string();
        assert!(
            error.contains("--histories") && error.contains(why),
            "{error}"
        );
    }
}

/// InnoDB's REPEATABLE READ reads a snapshot and writes over what is newer.
#[test]
fn mariadb_repeats_reads_and_loses_what_it_has_not_read() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    let url = server.url("test");
    loaded(&url);
    let strict = run(options(&url, Isolation::Serializable, None), false);
    assert!(passed(&strict), "{}", verdict(&strict));
    assert_eq!(verdict(&strict).level, Level::Serializable);
    let claimed = Some(Level::SnapshotIsolation);
    let claimed = run(options(&url, Isolation::RepeatableRead, claimed), true);
    let found = names(&verdict(&claimed).anomalies);
    assert!(found.iter().any(|name| is_named(name)), "{found:?}");
    // What is left of it is no more than READ COMMITTED.
    let promised = run(options(&url, Isolation::RepeatableRead, None), false);
    assert!(passed(&promised), "{}", verdict(&promised));
}
