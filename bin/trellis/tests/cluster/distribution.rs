//! Transactions that touch as many nodes as they are told, and a server that counts them.

use crate::support::Cluster;
use drive::report;
use drive::run::RunReport;
use drive::tpcc::dike::{DikeOptions, DistributionReport};
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::Silent;
use peer::longer;
use serde_json::Value;
use std::time::Duration;
use workload::dike::{Mode, Wanted};
use workload::stats::binomial_interval;
use workload::tpcc::Scale;

/// Enough for each of three nodes to be the home of some.
const WAREHOUSES: u32 = 9;

fn loaded(cluster: &Cluster, protocol: &str) -> String {
    cluster.create_as(protocol, protocol, &[]);
    let url = cluster.url(protocol);
    let load = LoadOptions {
        scale: Scale::reduced(WAREHOUSES),
        accounts: true,
        ..LoadOptions::new(&url, WAREHOUSES)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    url
}

fn options(url: &str, mode: Mode, percent: u32, degree: u32) -> RunOptions {
    let mut options = RunOptions::new(url);
    options.runner.clients = 6;
    options.runner.warmup = Duration::from_millis(500);
    options.runner.length = Duration::from_secs(3);
    options.dike = Some(DikeOptions {
        distribution: Some(Wanted {
            mode,
            ratio: f64::from(percent) / 100.0,
            degree,
        }),
        ..DikeOptions::default()
    });
    options
}

/// Runs until enough is told to be judged.
fn run_until(options: &RunOptions, is_enough: impl Fn(&DistributionReport) -> bool) -> RunReport {
    let run = |length| {
        let mut options = options.clone();
        options.runner.length = length;
        tpcc::run(&options, &mut Silent).unwrap()
    };
    longer(options.runner.length, run, |run| {
        run.distribution.as_ref().is_some_and(&is_enough)
    })
}

/// All inputs have one node or the degree, and of the committed new orders the share that was asked
/// for has the degree: by the inputs, and as the server counts. The mix has others, too.
fn check_ratio(told: &DistributionReport, json: &Value, protocol: &str) {
    assert_eq!(told.not_requested(), Some(0), "{protocol}: {json}");
    let orders = told.distributable;
    let (low, high) = binomial_interval(orders, told.requested.ratio, 0.99999);
    for part in ["committed", "observed_by_server"] {
        let ratio = json[part]["ratio"].as_f64().unwrap();
        let distributed = (ratio * orders as f64).round() as u64;
        assert!(
            (low..=high).contains(&distributed),
            "{protocol}, {part}: {json}"
        );
    }
}

#[test]
fn the_server_counts_the_degrees_that_were_asked_for() {
    let cluster = Cluster::start("degrees", 3, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        let url = loaded(&cluster, protocol);
        for (mode, percent, degree) in [
            (Mode::Exact, 40, 2),
            (Mode::Exact, 100, 3),
            (Mode::Statistical, 100, 2),
        ] {
            let run = options(&url, mode, percent, degree);
            let found = run_until(&run, |told| {
                let server = told.observed_by_server.as_ref();
                let sum = server.map_or(0, |server| server.values().sum::<u64>());
                sum > 100 && server.is_some_and(|it| it.contains_key(&u64::from(degree)))
            });
            let table = report::table(&found);
            let json = report::json(&found);
            assert!(
                found.passed(),
                "{protocol}: {:?}\n{table}",
                found.distribution
            );
            let told = found.distribution.unwrap();
            assert_eq!(told.nodes, 3, "each node is home of a warehouse");
            assert_eq!(told.wrong(), Some(0), "{protocol}: {told:?}");
            let server = told.observed_by_server.as_ref().unwrap();
            let sum: u64 = server.values().sum();
            assert!(sum > 100, "{protocol}: {server:?}");
            let mut degrees = server.keys().copied();
            let wanted = [1, u64::from(degree)];
            assert!(
                mode == Mode::Statistical || degrees.all(|it| wanted.contains(&it)),
                "{server:?}"
            );
            assert!(server.contains_key(&u64::from(degree)), "{server:?}");
            if mode == Mode::Exact {
                check_ratio(&told, &json["distribution"], protocol);
            }
        }
    }
}

/// All kinds that Dike has, each with the degree that was asked for, as the server counts. A change
/// of a replicated row touches all nodes; under leap rows have homes.
#[test]
fn the_server_counts_the_degrees_of_the_further_transactions() {
    let cluster = Cluster::start("further", 3, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        let url = loaded(&cluster, protocol);
        for (mode, batch) in [(Mode::Exact, false), (Mode::Statistical, true)] {
            let mut run = options(&url, mode, 40, 2);
            let dike = run.dike.as_mut().unwrap();
            dike.mix = "new_order:3,payment:3,d_stock_level:2,d_update_stock:2,d_update_balance:2,\
                        d_select_balance:2,broadcast_update:1,co_access:2"
                .parse()
                .unwrap();
            dike.further.batch = batch;
            // In statistical mode a transaction may have one warehouse more.
            dike.further.co_access = Some("4:3".parse().unwrap());
            let found = run_until(&run, |told| {
                let broadcasts = told.broadcasts.as_ref();
                told.drawn.len() == 6
                    && (protocol == "leap" || broadcasts.is_some_and(|it| it.committed > 0))
            });
            let table = report::table(&found);
            let json = report::json(&found);
            let told = found.distribution.as_ref().unwrap();
            assert!(found.passed(), "{protocol}: {told:?}\n{table}");
            assert_eq!(found.consistency.as_ref().unwrap().passed(), 16, "{table}");
            assert_eq!(told.wrong(), Some(0), "{protocol}: {told:?}");
            assert_eq!(told.drawn.len(), 6, "{told:?}");
            let broadcasts = told.broadcasts.map(|it| (it.nodes, it.committed > 0));
            let expected = (protocol != "leap").then_some((3, true));
            assert_eq!(broadcasts, expected, "{protocol}: {told:?}");
            if mode == Mode::Exact {
                check_ratio(told, &json["distribution"], protocol);
            }
        }
    }
}

#[test]
fn what_the_nodes_cannot_give_is_refused() {
    let cluster = Cluster::start("no-degrees", 3, 1);
    let url = loaded(&cluster, "two_phase");
    let refused = |options: &RunOptions| tpcc::run(options, &mut Silent).unwrap_err().to_string();
    let many = refused(&options(&url, Mode::Exact, 10, 4));
    assert!(
        many.contains("degree 4") && many.contains("3 nodes"),
        "{many}"
    );
    let mut told = options(&url, Mode::Statistical, 10, 2);
    told.dike.as_mut().unwrap().nodes = Some(3);
    assert!(refused(&told).contains("--nodes"));
    let mut reads = options(&url, Mode::Exact, 10, 2);
    reads.read_urls = Some(url.clone());
    assert!(refused(&reads).contains("none that can be read"));
    let mut payments = options(&url, Mode::Exact, 10, 2);
    payments.dike.as_mut().unwrap().mix = "payment:1".parse().unwrap();
    assert!(refused(&payments).contains("new_order"));
    // Without a distribution lines and payments go to other warehouses as TPC-C says.
    let mut usual = options(&url, Mode::Exact, 10, 2);
    usual.dike.as_mut().unwrap().distribution = None;
    let run = |length| {
        usual.runner.length = length;
        tpcc::run(&usual, &mut Silent).unwrap()
    };
    let is_shared = |run: &RunReport| report::distributed_share(run) > Some(0.0);
    let found = longer(Duration::from_secs(1), run, is_shared);
    let table = report::table(&found);
    assert!(found.passed() && found.distribution.is_none(), "{table}");
    assert!(is_shared(&found), "{table}");
}

/// Clients that are connected to the node of their warehouse need nobody else for what they read
/// there; of those that are connected to nodes in turn most do.
#[test]
fn clients_at_home_send_no_messages() {
    let cluster = Cluster::start("at-home", 3, 1);
    let url = loaded(&cluster, "two_phase");
    let messages = |at_home: bool| {
        let mut run = options(&url, Mode::Exact, 0, 2);
        run.dike = Some(DikeOptions {
            mix: "stock_level:1".parse().unwrap(),
            at_home,
            ..DikeOptions::default()
        });
        let found = tpcc::run(&run, &mut Silent).unwrap();
        assert!(found.passed(), "{}", report::table(&found));
        let json = report::json(&found);
        let is_said = json["config"]["parameters"]["clients_at_home"] == "true";
        assert_eq!(is_said, at_home, "{}", json["config"]);
        json["per_txn"]["messages"].as_f64().unwrap()
    };
    let (near, in_turn) = (messages(true), messages(false));
    assert!(near < 0.2 * in_turn && in_turn > 1.0, "{near} {in_turn}");
    // Two endpoints of which one has no warehouse: the node is the same, the address is not.
    let mut run = options(&url.replace("127.0.0.1:", "localhost:"), Mode::Exact, 0, 2);
    run.dike = Some(DikeOptions {
        at_home: true,
        ..DikeOptions::default()
    });
    let error = tpcc::run(&run, &mut Silent).unwrap_err().to_string();
    assert!(
        error.contains("--at-home: no warehouse lies at localhost:"),
        "{error}"
    );
}
