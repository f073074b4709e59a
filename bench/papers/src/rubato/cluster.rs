//! What two cores can carry: three real nodes on loopback, links delayed by a proxy.

use super::SYSTEMS;
use crate::cluster::{Cluster, NODES, Seen, pair};
use crate::figure::Figure;
use crate::repetition::Lab;
use anyhow::{Context, Result};
use sim::scale::{Mix, System};
use std::time::Duration;
use workload::spread::{Plan, Spread, Unit};

/// Links of a data centre, about.
const LINK: Duration = Duration::from_micros(100);
/// Links between data centres that are near.
const FAR_LINK: Duration = Duration::from_millis(1);
/// Runs of the parts below.
const RUNS: usize = 4 * SYSTEMS.len();

/// Seconds that all of it takes, about.
pub(super) fn about_s(quick: bool) -> f64 {
    RUNS as f64 * run_s(quick)
}

/// Seconds of a run with its database and its checks, about.
pub(super) fn run_s(quick: bool) -> f64 {
    if quick { 8.0 } else { 16.0 }
}

/// Warm-up and measured phase.
fn lengths(quick: bool) -> (Duration, Duration) {
    match quick {
        true => (Duration::from_secs(1), Duration::from_secs(2)),
        false => (Duration::from_secs(2), Duration::from_secs(6)),
    }
}

/// A plan of the pair's shape with another mix, so many percent of whose transactions are remote.
pub(super) fn plan(mix: Mix, homes: Vec<Vec<u32>>, remote_percent: u64) -> Plan {
    Plan {
        mix,
        spread: Spread {
            unit: Unit::Transaction,
            ..Spread::new(homes, remote_percent)
        },
        ..pair(0)
    }
}

/// One run, and a line of the table.
pub(super) fn run(
    lab: &mut Lab,
    figure: &mut Figure,
    cluster: &mut Cluster,
    (name, load): (&str, &str),
    (system, plan): (System, &Plan),
) -> Result<f64> {
    let seen = cluster
        .run(name, system, plan, lengths(lab.quick))
        .with_context(|| format!("{} on {load}", system.name()))?;
    lab.clock.besides_done(run_s(lab.quick));
    let rate = rate(&seen);
    let line = format!("cluster: {}, {load}: {rate:.0} tx/s", system.name());
    lab.clock.say(&line)?;
    let per_txn = |counter| match seen.report.per_txn(counter) {
        Some(value) => format!("{value:.2}"),
        None => "-".to_owned(),
    };
    figure.rows.push(vec![
        load.to_owned(),
        system.name().to_owned(),
        format!("{rate:.0}"),
        seen.report.aborted().to_string(),
        per_txn("messages"),
        per_txn("forced_writes"),
        per_txn("lock_waits"),
        per_txn("txn_died"),
    ]);
    Ok(rate)
}

/// Columns of the table of [`run`].
pub(super) const COLUMNS: [&str; 8] = [
    "load",
    "system",
    "tx/s",
    "attempts again",
    "messages per tx",
    "forced",
    "lock waits",
    "died",
];

/// Committed transactions per second.
fn rate(seen: &Seen) -> f64 {
    seen.report.committed_per_s()
}

/// A part of the experiment.
type Piece = fn(&mut Lab, &mut Figure) -> Result<()>;

/// The hot row, TPC-C and records, as far as a real cluster carries them. A part that fails is left
/// out, and the figure says so.
pub(super) fn cluster(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{NODES} real nodes of one shard on loopback, links of 0.1 and 1 ms through a proxy, 4 \
         clients per node; all twelve conditions of TPC-C hold after every run of it, and every \
         acknowledged addition is in the hot counter"
    );
    let mut figure = Figure::new("real", "On a real cluster", place);
    figure.columns(&COLUMNS);
    let pieces: [(&str, Piece); 3] = [
        ("hot and cold counter", counters),
        ("TPC-C", tpcc),
        ("records", records),
    ];
    let mut failed = false;
    for (name, piece) in pieces {
        if let Err(error) = piece(lab, &mut figure) {
            lab.clock
                .say(&format!("cluster: {name} FAILED: {error:#}"))?;
            figure.fail(&format!("{name}: {error:#}"));
            failed = true;
        }
    }
    if failed {
        lab.expectations.fail(figure.id);
    }
    figure.text.push(
        "The two cores are shared by three nodes, the clients and the proxy, so the systems differ \
         less than where each node has a machine of its own."
            .to_owned(),
    );
    Ok(figure)
}

/// Runs all systems, and tells formula's rate over the others'.
fn compare(
    lab: &mut Lab,
    figure: &mut Figure,
    cluster: &mut Cluster,
    names: (&str, &str),
    plan: &Plan,
) -> Result<String> {
    let mut rates = Vec::new();
    for system in SYSTEMS {
        rates.push(run(lab, figure, cluster, names, (system, plan))?);
    }
    let over = |other: usize| rates[0] / rates[other].max(1.0);
    Ok(format!(
        "{:.2} times two_phase, {:.2} times leap",
        over(1),
        over(2)
    ))
}

fn counters(lab: &mut Lab, figure: &mut Figure) -> Result<()> {
    let mut cluster = Cluster::start(FAR_LINK)?;
    let plan = plan(Mix::HotCold, pair(0).spread.homes, 0);
    let names = ("hot", "hot and cold counter, links of 1 ms");
    let found = compare(lab, figure, &mut cluster, names, &plan)?;
    cluster.stop()?;
    lab.expectations
        .report("1e", format!("{found} (early answer on)"));
    Ok(())
}

fn tpcc(lab: &mut Lab, figure: &mut Figure) -> Result<()> {
    let mut cluster = Cluster::start(LINK)?;
    let plan = plan(Mix::TpccFull, pair(0).spread.homes, 10);
    let names = ("tpcc", "TPC-C, 10 % remote, links of 0.1 ms");
    let found = compare(lab, figure, &mut cluster, names, &plan)?;
    cluster.stop()?;
    lab.expectations.report("2g", found);
    Ok(())
}

fn records(lab: &mut Lab, figure: &mut Figure) -> Result<()> {
    let mut cluster = Cluster::start(LINK)?;
    for (read_percent, name, load) in [
        (95, "reads", "records, 95 % reads, links of 0.1 ms"),
        (50, "writes", "records, 50 % reads, links of 0.1 ms"),
    ] {
        let remote_percent = 100 * u64::from(NODES - 1) / u64::from(NODES);
        let mix = Mix::Record { read_percent };
        let plan = plan(mix, pair(0).spread.homes, remote_percent);
        let found = compare(lab, figure, &mut cluster, (name, load), &plan)?;
        figure.text.push(format!("{load}: formula has {found}."));
    }
    cluster.stop()?;
    Ok(())
}
