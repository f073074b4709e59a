//! Transactions that touch as many nodes as they are told, and a server that counts them.

use crate::support::Cluster;
use drive::report;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, LoadOptions, RunOptions};
use drive::view::Silent;
use std::time::Duration;
use workload::dike::{Mix, Mode, Wanted};
use workload::tpcc::Scale;

/// Enough for each of three nodes to be the home of some.
const WAREHOUSES: u32 = 9;

fn loaded(cluster: &Cluster, protocol: &str) -> String {
    cluster.create_as(protocol, protocol, &[]);
    let url = cluster.url(protocol);
    let load = LoadOptions {
        scale: Scale::reduced(WAREHOUSES),
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
        nodes: None,
        mix: Mix::PAPER,
    });
    options
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
            let found = tpcc::run(&run, &mut Silent).unwrap();
            let table = report::table(&found);
            assert!(
                found.passed(),
                "{protocol}: {:?}\n{table}",
                found.distribution
            );
            let told = found.distribution.unwrap();
            assert_eq!(told.nodes, 3, "each node is home of a warehouse");
            assert_eq!(told.wrong(), Some(0), "{protocol}: {told:?}");
            let server = told.observed_by_server.unwrap();
            let sum: u64 = server.values().sum();
            assert!(sum > 100, "{protocol}: {server:?}");
            let mut degrees = server.keys().copied();
            let wanted = [1, u64::from(degree)];
            assert!(
                mode == Mode::Statistical || degrees.all(|it| wanted.contains(&it)),
                "{server:?}"
            );
            assert!(server.contains_key(&u64::from(degree)), "{server:?}");
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
}
