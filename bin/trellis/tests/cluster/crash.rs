//! Nodes killed with SIGKILL under load, again and again; recovery itself killed.

use crate::bank::{self, Clients, TOTAL};
use crate::support::Cluster;
use base::Prng;
use drive::tpcc::{self, LoadOptions, RunOptions};
use links::view::Silent;
use std::time::Duration;
use workload::tpcc::Scale;

fn pause(prng: &mut Prng, below_ms: u64) {
    std::thread::sleep(Duration::from_millis(prng.below(below_ms)));
}

#[test]
fn nodes_killed_under_load_lose_no_acknowledged_transfer() {
    kill_nodes_under_load("kill", "two_phase");
}

#[test]
fn nodes_that_own_rows_killed_under_load_lose_no_acknowledged_transfer() {
    kill_nodes_under_load("killleap", "leap");
}

fn kill_nodes_under_load(name: &str, protocol: &str) {
    let mut cluster = Cluster::start(name, 3, 2);
    bank::open_as(protocol, &cluster);
    let clients = Clients::start(&cluster, 6);
    let mut prng = Prng::new(7);
    for round in 0..9 {
        clients.wait_progress(30);
        let victim = round % 3;
        cluster.kill(victim);
        pause(&mut prng, 300);
        cluster.spawn(victim);
        cluster.wait_ready(victim);
        let mut link = cluster.link((round + 1) % 3, bank::DATABASE);
        assert_eq!(bank::total(&mut link), TOTAL, "round {round}");
    }
    clients.wait_progress(30);
    let ledger = clients.finish();
    cluster.assert_all_run();
    bank::verify(&cluster, &ledger);
}

#[test]
fn all_nodes_killed_at_once_lose_no_acknowledged_transfer() {
    kill_all_nodes("killall", "two_phase");
}

#[test]
fn all_nodes_killed_at_once_keep_the_owners_of_rows() {
    kill_all_nodes("killallleap", "leap");
}

fn kill_all_nodes(name: &str, protocol: &str) {
    let mut cluster = Cluster::start(name, 3, 1);
    bank::open_as(protocol, &cluster);
    let mut prng = Prng::new(8);
    for _ in 0..4 {
        let clients = Clients::start(&cluster, 6);
        clients.wait_progress(60);
        pause(&mut prng, 100);
        (0..3).for_each(|at| cluster.kill(at));
        let ledger = clients.finish();
        cluster.start_all();
        bank::verify(&cluster, &ledger);
        // Numbers begin anew with each set of clients.
        let mut link = cluster.link(0, bank::DATABASE);
        link.command("UPDATE account SET balance = 1000").unwrap();
        link.command("DELETE FROM transfer").unwrap();
    }
}

#[test]
fn recovery_that_is_killed_begins_anew() {
    let mut cluster = Cluster::start("rekill", 3, 2);
    bank::open(&cluster);
    let mut prng = Prng::new(9);
    let clients = Clients::start(&cluster, 4);
    for round in 0..4 {
        clients.wait_progress(40);
        let victim = (round + 1) % 3;
        cluster.kill(victim);
        for _ in 0..4 {
            cluster.spawn(victim);
            pause(&mut prng, 60);
            cluster.kill(victim);
        }
        cluster.spawn(victim);
        cluster.wait_ready(victim);
    }
    clients.wait_progress(40);
    let ledger = clients.finish();
    (0..3).for_each(|at| cluster.kill(at));
    cluster.start_all();
    bank::verify(&cluster, &ledger);
}

#[test]
fn tpcc_under_kills_keeps_its_twelve_conditions() {
    run_tpcc_under_kills("tpcc", "two_phase");
}

#[test]
fn tpcc_with_rows_that_move_keeps_its_twelve_conditions_under_kills() {
    run_tpcc_under_kills("tpccleap", "leap");
}

fn run_tpcc_under_kills(name: &str, protocol: &str) {
    let mut cluster = Cluster::start(name, 3, 1);
    cluster.create_as(protocol, "tpcc", &[]);
    let url = cluster.url("tpcc");
    let load = LoadOptions {
        scale: Scale::reduced(2),
        ..LoadOptions::new(&url, 2)
    };
    tpcc::load(&load, &mut Silent).unwrap();
    let mut options = RunOptions::new(&url);
    options.runner.clients = 6;
    options.runner.warmup = Duration::ZERO;
    options.runner.length = Duration::from_secs(20);
    options.runner.timeout = Duration::from_secs(20);
    let run = std::thread::spawn(move || tpcc::run(&options, &mut Silent));
    let mut prng = Prng::new(10);
    for round in 0..5 {
        std::thread::sleep(Duration::from_millis(1_500 + prng.below(500)));
        let victim = round % 3;
        cluster.kill(victim);
        pause(&mut prng, 300);
        cluster.spawn(victim);
        cluster.wait_ready(victim);
    }
    let report = run.join().unwrap().unwrap();
    cluster.assert_all_run();
    let check = report.consistency.as_ref().unwrap();
    assert_eq!(
        (check.conditions.len(), check.failed()),
        (13, 0),
        "{check:#?}"
    );
    // The audits hold what the server acknowledged against what the tables say.
    assert_eq!(report.audits_failed(), 0, "{:#?}", report.audits);
    assert!(report.committed() > 0, "nothing was committed");
}
