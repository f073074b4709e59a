//! As many transactions compete for a row as are told to, and the server says the same.

use crate::support::Cluster;
use drive::report;
use drive::run::RunReport;
use drive::tpcc::contention::PhaseReport;
use drive::tpcc::dike::DikeOptions;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::Silent;
use peer::again;
use std::time::Duration;
use workload::tpcc::Scale;

/// Four seconds of each target, of which the first two do not count. The tolerances are wide, since
/// the machine has other things to do.
#[test]
fn the_server_sees_as_many_competitors_as_were_asked_for() {
    let cluster = Cluster::start("contention", 3, 1);
    for protocol in ["two_phase", "leap", "formula"] {
        cluster.create_as(protocol, protocol, &[]);
        let url = cluster.url(protocol);
        let load = LoadOptions {
            scale: Scale::reduced(9),
            ..LoadOptions::new(&url, 9)
        };
        tpcc::load(&load, &mut Silent).unwrap();
        let mut options = RunOptions::new(&url);
        options.runner.clients = 30;
        options.runner.warmup = Duration::from_secs(1);
        options.runner.length = Duration::from_secs(8);
        options.dike = Some(DikeOptions {
            contention: vec!["6,16@4".parse().unwrap()],
            ..DikeOptions::default()
        });
        // Waits for rows that are on their way are in no queue, so that the client has more under
        // way than the server sees.
        let moves_rows = protocol == "leap";
        let tolerance = if moves_rows { 0.6 } else { 0.35 };
        let is_near = |(phase, target): (&PhaseReport, f64)| {
            let (Some(server), Some(client)) = (phase.server, phase.client) else {
                return false;
            };
            let means = [server.mean, client.mean];
            let mut means = means.into_iter().take(if moves_rows { 1 } else { 2 });
            client.mean >= server.mean * 0.8
                && means.all(|mean| (mean - target).abs() <= target * tolerance)
        };
        let are_near = |run: &RunReport| {
            let told = run.contention.as_ref().unwrap();
            told.phases.iter().zip([6.0, 16.0]).all(is_near) && told.samples.len() > 60
        };
        // A machine that stands still leaves few samples, and those of a queue.
        let found = again(|| tpcc::run(&options, &mut Silent).unwrap(), are_near);
        let table = report::table(&found);
        assert_eq!(found.consistency.as_ref().unwrap().passed(), 13, "{table}");
        let told = found.contention.as_ref().unwrap();
        assert_eq!(told.phases.len(), 2, "{protocol}: {:?}", told.phases);
        assert!(are_near(&found), "{protocol}: {:?}", told.phases);
        let json = &report::json(&found)["contention"];
        assert_eq!(json["phases"][1]["target"], 16, "{json}");
        assert!(json["samples"].as_array().unwrap().len() > 60, "{json}");
    }
}
