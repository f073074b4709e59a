//! Dike's further transactions on a real PostgreSQL and a real MariaDB.
#![allow(
    clippy::unwrap_used,
    reason = "a test file whose helpers are not test functions"
)]

mod support;

use drive::report;
use drive::run::RunReport;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, Isolation, LoadOptions, RunOptions};
use links::link::Link;
use links::url::Target;
use links::view::Silent;
use peer::Peer;
use servers::Kind;
use std::time::Duration;
use support::run_until;
use workload::dike::further::Settings;
use workload::dike::{Mode, Wanted};
use workload::tpcc::Scale;

const MIX: &str = "new_order:4,payment:2,delivery:1,d_stock_level:2,d_update_stock:2,\
                   d_update_balance:2,d_select_balance:2,broadcast_update:1,co_access:2";

fn load(url: &str, accounts: bool) {
    let load = LoadOptions {
        scale: Scale::reduced(3),
        accounts,
        ..LoadOptions::new(url, 3)
    };
    tpcc::load(&load, &mut Silent).unwrap();
}

fn options(url: &str, isolation: Isolation) -> RunOptions {
    let mut options = RunOptions::new(url);
    options.isolation = isolation;
    options.runner.clients = 6;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = Duration::from_secs(3);
    options.dike = Some(DikeOptions {
        mix: MIX.parse().unwrap(),
        ..DikeOptions::default()
    });
    options
}

fn distributed(mut options: RunOptions, batch: bool) -> RunOptions {
    let dike = options.dike.as_mut().unwrap();
    dike.distribution = Some(Wanted {
        mode: Mode::Statistical,
        ratio: 0.5,
        degree: 2,
    });
    dike.nodes = Some(3);
    dike.further = Settings {
        stock_rows: Some(4),
        batch,
        ..Settings::default()
    };
    options
}

fn run(options: &RunOptions) -> RunReport {
    let wanted = &options.dike.as_ref().unwrap().mix;
    let found = run_until(options, |run| {
        let mut kinds = workload::tpcc::Kind::ALL.iter().zip(&run.kinds);
        kinds.all(|(kind, it)| it.tally.committed > 0 || wanted.share(*kind) == 0.0)
            && run.committed() > 200
    });
    let table = report::table(&found);
    assert!(found.passed() && found.failed() == 0, "{table}");
    assert_eq!(found.consistency.as_ref().unwrap().passed(), 16, "{table}");
    let kinds = workload::tpcc::Kind::ALL.iter().zip(&found.kinds);
    for (kind, report) in kinds {
        let has_share = wanted.share(*kind) > 0.0;
        assert_eq!(report.tally.committed > 0, has_share, "{kind:?}\n{table}");
    }
    found
}

fn refused(options: &RunOptions) -> String {
    let refused = tpcc::run(options, &mut Silent);
    refused.expect_err("it cannot be had").to_string()
}

fn command(url: &str, sql: &str) {
    let target = Target::parse(url).unwrap();
    let mut link = Link::connect(&target.endpoints[0], &target, None).unwrap();
    link.command(sql).unwrap();
}

#[test]
fn every_condition_holds_on_postgres_at_every_level() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE further");
    let url = peer.url("further");
    load(&url, false);
    let text = refused(&options(&url, Isolation::RepeatableRead));
    assert!(text.contains("d_update_balance needs tables"), "{text}");
    // The tables are added to what is there, once.
    load(&url, true);
    load(&url, true);
    for isolation in [
        Isolation::Serializable,
        Isolation::RepeatableRead,
        Isolation::ReadCommitted,
    ] {
        run(&options(&url, isolation));
    }
    for batch in [false, true] {
        let found = run(&distributed(
            options(&url, Isolation::RepeatableRead),
            batch,
        ));
        let told = found.distribution.as_ref().unwrap();
        assert!((0.4..0.6).contains(&told.drawn_ratio), "{told:?}");
        let json = report::json(&found);
        let titles = json["audits"]["findings"].to_string();
        assert!(titles.contains("acknowledged transfers found"), "{titles}");
        assert_eq!(
            json["config"]["parameters"]["batch_update"],
            batch.to_string()
        );
    }
    for (sql, broken) in [
        (
            "UPDATE dike_account SET a_balance = a_balance + 1 WHERE a_w_id = 2",
            [0, 2],
        ),
        (
            "UPDATE dike_balance SET b_balance = 7 WHERE b_w_id = 1 AND b_other = 0",
            [0, 1],
        ),
    ] {
        command(&url, sql);
        let found = tpcc::check(&url, &mut Silent).unwrap();
        for at in broken {
            let condition = &found.conditions[13 + at];
            assert!(condition.failures > 0, "{sql}: {condition:?}");
        }
    }
    let failed = tpcc::run(&options(&url, Isolation::ReadCommitted), &mut Silent).unwrap();
    assert!(!failed.has_number(), "{}", report::table(&failed));
}

#[test]
fn what_is_about_other_transactions_is_refused() {
    let Some(peer) = Peer::start() else { return };
    peer.psql("postgres", "CREATE DATABASE refused");
    let url = peer.url("refused");
    load(&url, true);
    let with = |mix: &str, further: Settings| {
        let mut options = options(&url, Isolation::RepeatableRead);
        let dike = options.dike.as_mut().unwrap();
        dike.mix = mix.parse().unwrap();
        dike.further = further;
        refused(&options)
    };
    let rows = Settings {
        stock_rows: Some(3),
        ..Settings::default()
    };
    assert!(with("co_access:1", rows).contains("--stock-rows is about d_update_stock"));
    let groups = Settings {
        co_access: "2:2".parse().ok(),
        ..Settings::default()
    };
    assert!(with("d_update_stock:1", groups).contains("--co-access is about co_access"));
    let mut keying = options(&url, Isolation::RepeatableRead);
    keying.keying = true;
    assert!(refused(&keying).contains("no keying times for d_stock_level"));
    let mut few = distributed(options(&url, Isolation::RepeatableRead), false);
    few.dike.as_mut().unwrap().further.stock_rows = Some(1);
    assert!(
        refused(&few).contains("--stock-rows 1: a distributed"),
        "{}",
        refused(&few)
    );
}

#[test]
fn every_condition_holds_on_mariadb() {
    let Some(server) = peer::start(Kind::MariaDb, &[]) else {
        return;
    };
    command(&server.url("mysql"), "CREATE DATABASE further");
    let url = server.url("further");
    load(&url, true);
    for isolation in [Isolation::RepeatableRead, Isolation::ReadCommitted] {
        run(&options(&url, isolation));
        run(&distributed(options(&url, isolation), true));
    }
}
