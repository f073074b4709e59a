//! The records of figures 9 and 10 on one node beside single servers of others: the paper's peers
//! where they run.

use super::SYSTEMS;
use super::cluster::plan;
use crate::cluster::{CLIENTS, Cluster};
use crate::figure::{Chart, Figure};
use crate::over::Over;
use crate::repetition::Lab;
use anyhow::{Context, Result, bail};
use drive::run::{RunReport, RunnerOptions};
use links::view::Silent;
use servers::{Kind, Server};
use sim::scale::{Mix, System, homes};
use std::time::Duration;
use workload::spread::Plan;
use workload::tpcc::Scale;

/// Records: 20 MB of values, which all servers keep in memory.
const RECORDS: u32 = 20_000;
const LOADS: [(u64, &str); 2] = [(95, "95 % reads"), (50, "50 % reads")];

/// Warm-up and measured phase.
fn lengths(quick: bool) -> (Duration, Duration) {
    match quick {
        true => (Duration::from_secs(1), Duration::from_secs(2)),
        false => (Duration::from_secs(2), Duration::from_secs(10)),
    }
}

/// The single servers of others.
const PEERS: [Kind; 3] = [Kind::Postgres, Kind::MariaDb, Kind::Redis];

/// Seconds of one run with its load, about.
fn run_s(quick: bool) -> f64 {
    let (warmup, length) = lengths(quick);
    (warmup + length).as_secs_f64() + 2.0
}

/// Seconds that all of it takes, about.
pub(super) fn about_s(quick: bool) -> f64 {
    (LOADS.len() * (SYSTEMS.len() + PEERS.len())) as f64 * run_s(quick)
}

fn records(read_percent: u64) -> Plan {
    let plan = plan(Mix::Record { read_percent }, homes(1, 1, 1), 0);
    Plan {
        scale: Scale {
            items: RECORDS,
            ..plan.scale
        },
        ..plan
    }
}

/// What one server did under both loads.
struct Ran {
    name: String,
    reports: Vec<RunReport>,
}

impl Ran {
    fn rate(&self, load: usize) -> f64 {
        self.reports[load].committed_per_s()
    }
}

/// Trellis on one node under each protocol, PostgreSQL, MariaDB and Redis.
pub(super) fn peers(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "single servers of this machine on loopback, which share its cores with {CLIENTS} clients \
         in a closed loop; Trellis with one shard; {RECORDS} records of ten fields of 100 bytes, \
         all in memory; a commit is on disk before it is answered: {}",
        PEERS
            .map(|kind| format!("{} {}", kind.name(), kind.settings()))
            .join("; ")
    );
    let mut figure = Figure::new("peers", "Records beside single servers of others", place);
    figure.columns(&[
        "load",
        "server",
        "operations/s",
        "read p50 ms",
        "read p99 ms",
        "update p50 ms",
        "update p99 ms",
    ]);
    let mut all = Vec::new();
    for system in SYSTEMS {
        let name = format!("Trellis, {}", system.name());
        let ran = trellis(lab, system).with_context(|| name.clone())?;
        all.push(Ran { name, reports: ran });
    }
    for kind in PEERS {
        let name = kind.name().to_owned();
        match other(lab, kind).with_context(|| name.clone())? {
            Some(reports) => all.push(Ran { name, reports }),
            None => figure
                .text
                .push(format!("{name} is not installed, so it was not measured.")),
        }
    }
    for (at, (_, load)) in LOADS.iter().enumerate() {
        for ran in &all {
            figure.rows.push(row(load, ran, at));
        }
    }
    let names = all.iter().map(|ran| ran.name.clone()).collect();
    let mut chart = Chart::by_name("throughput", "server", "operations/s", names);
    for (at, (_, load)) in LOADS.iter().enumerate() {
        chart.curve(load, all.iter().map(|ran| ran.rate(at)));
    }
    figure.charts.push(chart);
    report(lab, &all);
    Ok(figure)
}

fn row(load: &str, ran: &Ran, at: usize) -> Vec<String> {
    let mut row = vec![
        load.to_owned(),
        ran.name.clone(),
        format!("{:.0}", ran.rate(at)),
    ];
    for kind in &ran.reports[at].kinds {
        for quantile in [0.5, 0.99] {
            let us = kind.tally.response_at(quantile);
            row.push(us.map_or("-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3)));
        }
    }
    row
}

/// formula over each of the others, and the same of what they have.
fn report(lab: &mut Lab, all: &[Ran]) {
    let over = |ran: &Ran| {
        let times = |load| all[0].rate(load) / ran.rate(load).max(1.0);
        format!("{:.2} and {:.2} times {}", times(0), times(1), ran.name)
    };
    let each: Vec<String> = all[1..].iter().map(over).collect();
    lab.expectations.report("5e", each.join("; "));
}

fn options(quick: bool) -> RunnerOptions {
    let (warmup, length) = lengths(quick);
    RunnerOptions {
        clients: CLIENTS,
        warmup,
        length,
        ..RunnerOptions::default()
    }
}

fn say(lab: &mut Lab, name: &str, load: &str, report: &RunReport) -> Result<()> {
    let rate = report.committed_per_s();
    lab.clock.besides_done(run_s(lab.quick));
    lab.clock.say(&format!("{name}, {load}: {rate:.0} per s"))
}

fn trellis(lab: &mut Lab, system: System) -> Result<Vec<RunReport>> {
    let mut cluster = Cluster::start_of(1, Duration::ZERO, 1)?;
    let mut reports = Vec::new();
    for (read_percent, load) in LOADS {
        let plan = records(read_percent);
        let seen = cluster.run("records", system, &plan, lengths(lab.quick))?;
        say(lab, system.name(), load, &seen.report)?;
        reports.push(seen.report);
    }
    cluster.stop()?;
    Ok(reports)
}

/// The runs on a server of others; `None`: it is not installed.
fn other(lab: &mut Lab, kind: Kind) -> Result<Option<Vec<RunReport>>> {
    let Some(server) = Server::start(kind, &[])? else {
        return Ok(None);
    };
    // A cluster has run before: signals are watched for.
    let (over, remains) = (Over::default(), server.remains());
    over.or_at_interrupt(move || remains.clear());
    // Databases that both have from the start.
    let url = server.url(match kind {
        Kind::Postgres => "postgres",
        Kind::MariaDb => "test",
        _ => "",
    });
    let mut reports = Vec::new();
    for (at, (read_percent, load)) in LOADS.into_iter().enumerate() {
        let (plan, options) = (records(read_percent), options(lab.quick));
        let report = match kind {
            Kind::FerretDb => bail!("records are not measured on FerretDB"),
            Kind::Redis | Kind::Etcd | Kind::Cassandra | Kind::HBase => {
                if at == 0 {
                    drive::records::load(&url, &plan)?;
                }
                drive::records::run(&url, &plan, &options, &mut Silent)?
            }
            Kind::Postgres | Kind::MariaDb => {
                if at == 0 {
                    drive::spread::load(&url, &plan, &mut Silent)?;
                }
                drive::spread::run(&url, &plan, &options, &mut Silent)?
            }
        };
        if !report.passed() || report.failed() > 0 {
            bail!(
                "{} failed its checks: {}",
                kind.name(),
                report.faults().join("; ")
            );
        }
        say(lab, kind.name(), load, &report)?;
        reports.push(report);
    }
    Ok(Some(reports))
}
