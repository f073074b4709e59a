//! What two cores can carry: three real nodes on loopback, links delayed by a proxy.

use super::Lab;
use super::cluster::{Cluster, NODES, Seen, pair};
use super::counter::WAYS;
use super::figure::{Chart, Figure};
use super::model::SYSTEMS;
use anyhow::{Context, Result};
use sim::scale::System;
use std::time::Duration;
use workload::spread::Plan;

/// Links of the paper's data centre, about.
const LINK: Duration = Duration::from_micros(100);
/// Links between data centres that are near.
const FAR_LINK: Duration = Duration::from_millis(1);

/// How long runs take: warm-up and measured phase.
type Lengths = (Duration, Duration);

fn lengths(lab: &Lab) -> Lengths {
    match lab.quick {
        true => (Duration::from_secs(1), Duration::from_secs(2)),
        false => (Duration::from_secs(2), Duration::from_secs(5)),
    }
}

/// Committed transactions per second.
fn rate(seen: &Seen) -> f64 {
    seen.report.committed() as f64 / seen.report.options.length.as_secs_f64()
}

fn run(
    cluster: &mut Cluster,
    name: &str,
    system: System,
    plan: &Plan,
    lengths: Lengths,
) -> Result<Seen> {
    let seen = cluster
        .run(name, system, plan, lengths)
        .with_context(|| format!("{} on {name}", system.name()))?;
    super::progress(&format!(
        "  cluster: {}, {name}, remote {} %: {:.0} tx/s, {} attempts again",
        system.name(),
        plan.spread.remote_percent,
        rate(&seen),
        seen.report.aborted()
    ))?;
    Ok(seen)
}

/// Figures 9, 10, 12 and the counter, as far as a real cluster carries them.
pub(super) fn cluster(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{NODES} real nodes of one shard on loopback, links of 0, 0.1 and 1 ms through a proxy, 2 \
         warehouses and 4 clients per node; all twelve conditions of TPC-C hold after every run"
    );
    let mut figure = Figure::new("real", "On a real cluster", place);
    let mut late = Vec::new();
    remote(lab, &mut figure, &mut late)?;
    locality(lab, &mut figure, &mut late)?;
    links(lab, &mut figure)?;
    increments(lab, &mut figure, &mut late)?;
    figure.text.push(format!(
        "The proxy handed bytes on {} us later than due on the mean (by experiment); the cores \
         are shared by three nodes, the clients and the proxy, so the systems differ less than \
         where each node has its own machine.",
        late.iter()
            .map(|us| format!("{us:.0}"))
            .collect::<Vec<_>>()
            .join(", ")
    ));
    Ok(figure)
}

/// Stops a cluster; how late its proxy was, microseconds on the mean.
fn stop(cluster: Cluster, late: &mut Vec<f64>) -> Result<()> {
    let counts = cluster.stop()?;
    late.push(counts.late_ns as f64 / 1e3 / counts.reads.max(1) as f64);
    Ok(())
}

/// Figure 9 with links of 0.1 ms.
fn remote(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let shares: &[u64] = if lab.quick { &[0, 10] } else { &[0, 1, 10, 50] };
    let names = shares.iter().map(|share| format!("{share} %")).collect();
    let title = "figure 9.b, links of 0.1 ms: throughput";
    let mut chart = Chart::by_name(title, "remote accesses", "tx/s", names);
    let mut rates = vec![Vec::new(); SYSTEMS.len()];
    let mut cluster = Cluster::start(LINK)?;
    // One share after the other, so that what else the machine does meets all systems alike.
    for &share in shares {
        for (at, system) in SYSTEMS.into_iter().enumerate() {
            let seen = run(&mut cluster, "remote", system, &pair(share), lengths(lab))?;
            rates[at].push(rate(&seen));
        }
    }
    stop(cluster, late)?;
    for (system, rates) in SYSTEMS.into_iter().zip(&rates) {
        chart.curve(system.name(), rates.clone());
    }
    figure.charts.push(chart);
    let ratio = |to: usize, at: usize| rates[0][at] / rates[to][at].max(1.0);
    let ten = shares.iter().position(|share| *share == 10).unwrap_or(0);
    lab.expect(
        "1d",
        "cluster, 0.1 ms links, 10 % remote: above 1.5 times serial two_phase",
        format!("{:.2}", ratio(2, ten)),
        ratio(2, ten) > 1.5,
    );
    lab.expect(
        "1e",
        "cluster, 0.1 ms links, 0 % remote: never below 0.9 of serial two_phase",
        format!("{:.2}", ratio(2, 0)),
        ratio(2, 0) >= 0.9,
    );
    let against: Vec<String> = (0..shares.len())
        .map(|at| format!("{:.2} at {} %", ratio(1, at), shares[at]))
        .collect();
    lab.report(
        "1f",
        "cluster, 0.1 ms links, against interleaved two_phase, as it is",
        against.join(", "),
    );
    Ok(())
}

/// Figures 10 and 12 with links of 0.1 ms.
fn locality(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let mut cluster = Cluster::start(LINK)?;
    let shares = [0, 90];
    let names = shares.iter().map(|share| format!("{share} %")).collect();
    let title = "figure 10.a, links of 0.1 ms, 10 % remote: throughput";
    let mut chart = Chart::by_name(title, "locality", "tx/s", names);
    for system in SYSTEMS {
        let mut rates = Vec::new();
        for share in shares {
            let mut plan = pair(10);
            plan.spread.locality_percent = Some(share);
            let seen = run(&mut cluster, "locality", system, &plan, lengths(lab))?;
            rates.push(rate(&seen));
        }
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    // A database whose rows are all at home.
    let mut plan = pair(10);
    plan.spread.locality_percent = Some(100);
    let length = Duration::from_secs(if lab.quick { 8 } else { 20 });
    let whole = (Duration::ZERO, length);
    let seen = run(&mut cluster, "fresh", System::Leap, &plan, whole)?;
    stop(cluster, late)?;
    let seconds = seen.seconds.len();
    let names = (1..=seconds).map(|second| second.to_string()).collect();
    let title = "figure 12, links of 0.1 ms: 100 % locality from the first transaction on";
    let mut chart = Chart::by_name(title, "second", "1/s", names);
    chart.curve(
        "rows moved",
        seen.seconds.iter().map(|second| second.1 as f64),
    );
    chart.curve(
        "KiB between nodes",
        seen.seconds.iter().map(|second| second.0 as f64 / 1024.0),
    );
    let commits = seen.report.timeline.iter();
    let commits = commits.map(|second| second.committed.iter().sum::<u64>() as f64);
    chart.curve("committed", commits.take(seconds));
    figure.charts.push(chart);
    let first = seen.seconds.first().map_or(0, |second| second.1);
    let last = seen.seconds.last().map_or(0, |second| second.1);
    let share = last as f64 / first.max(1) as f64;
    lab.expect(
        "2d",
        "cluster: with 100 % locality transfers fall under 1 % of their start",
        format!(
            "{:.2} % ({first} in the first second, {last} in the last)",
            share * 100.0
        ),
        share < 0.01 && first > 0,
    );
    Ok(())
}

/// Throughput at 10 % remote by the delay of the links.
fn links(lab: &mut Lab, figure: &mut Figure) -> Result<()> {
    let delays = [Duration::ZERO, LINK, FAR_LINK];
    let names = delays
        .iter()
        .map(|delay| format!("{} us", delay.as_micros()))
        .collect();
    let title = "10 % remote, by the delay of the links: throughput";
    let mut chart = Chart::by_name(title, "one way", "tx/s", names);
    let mut rates = vec![Vec::new(); SYSTEMS.len()];
    for delay in delays {
        let mut cluster = Cluster::start(delay)?;
        for (at, system) in SYSTEMS.into_iter().enumerate() {
            let seen = run(&mut cluster, "links", system, &pair(10), lengths(lab))?;
            rates[at].push(rate(&seen));
        }
        cluster.stop()?;
    }
    for (system, rates) in SYSTEMS.into_iter().zip(rates) {
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    Ok(())
}

/// The hot counter with links of 1 ms.
fn increments(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let mut cluster = Cluster::start(FAR_LINK)?;
    let mut rates = Vec::new();
    figure.columns(&["one hot counter, links of 1 ms", "transaction", "tx/s"]);
    for system in [System::Leap, System::Interleaved] {
        for way in WAYS {
            let plan = Plan {
                load: way.load(),
                ..pair(0)
            };
            let seen = run(&mut cluster, "counter", system, &plan, lengths(lab))?;
            rates.push(rate(&seen));
            figure.rows.push(vec![
                system.name().to_owned(),
                way.name.to_owned(),
                format!("{:.0}", rate(&seen)),
            ]);
        }
    }
    stop(cluster, late)?;
    let ratio = rates[0] / rates[2].max(1.0);
    lab.report(
        "5b",
        "cluster, 1 ms links: blind increments against moving the row",
        format!("{ratio:.1} times with {NODES} nodes and 12 clients"),
    );
    Ok(())
}
