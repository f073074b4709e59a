//! What two cores can carry: three real nodes on loopback, links delayed by a proxy.

use super::SYSTEMS;
use super::counter::WAYS;
use super::remote::{by_share, names};
use crate::Lab;
use crate::cluster::{Cluster, NODES, Seen, pair};
use crate::figure::{Chart, Figure};
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

/// Runs of the parts below: by remote share, by locality, by delay, of the counter.
fn runs(quick: bool) -> usize {
    shares(quick).len() * SYSTEMS.len() + 2 * SYSTEMS.len() + 1 + 3 * SYSTEMS.len() + 6
}

/// Seconds that all of it takes, about: what a run takes besides its length are the checks, and
/// for every other one a database.
pub(super) fn about_s(quick: bool) -> f64 {
    runs(quick) as f64 * run_s(quick)
}

fn run_s(quick: bool) -> f64 {
    if quick { 8.0 } else { 14.0 }
}

fn shares(quick: bool) -> &'static [u64] {
    if quick { &[0, 10] } else { &[0, 1, 10, 50] }
}

/// Committed transactions per second.
fn rate(seen: &Seen) -> f64 {
    seen.report.committed_per_s()
}

fn run(
    lab: &mut Lab,
    cluster: &mut Cluster,
    name: &str,
    system: System,
    plan: &Plan,
    lengths: Lengths,
) -> Result<Seen> {
    let seen = cluster
        .run(name, system, plan, lengths)
        .with_context(|| format!("{} on {name}", system.name()))?;
    lab.clock.besides_done(run_s(lab.quick));
    lab.clock.say(&format!(
        "cluster: {}, {name}, remote {} %: {:.0} tx/s, {} attempts again",
        system.name(),
        plan.spread.remote_percent,
        rate(&seen),
        seen.report.aborted()
    ))?;
    Ok(seen)
}

/// A part of the experiment: what it draws goes into the figure, its proxy's delays into the list.
type Piece = fn(&mut Lab, &mut Figure, &mut Vec<f64>) -> Result<()>;

/// Figures 9, 10, 12 and the counter, as far as a real cluster carries them. A part that fails is
/// left out, and the figure says so.
pub(super) fn cluster(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{NODES} real nodes of one shard on loopback, links of 0, 0.1 and 1 ms through a proxy, 2 \
         warehouses and 4 clients per node; all twelve conditions of TPC-C hold after every run"
    );
    let mut figure = Figure::new("real", "On a real cluster", place);
    let mut late = Vec::new();
    let pieces: [(&str, Piece); 4] = [
        ("remote accesses", remote),
        ("locality", locality),
        ("delays of links", links),
        ("hot counter", increments),
    ];
    let mut done = 0;
    for (name, piece) in pieces {
        match piece(lab, &mut figure, &mut late) {
            Ok(()) => done += 1,
            Err(error) => {
                lab.clock
                    .say(&format!("cluster: {name} FAILED: {error:#}"))?;
                figure.fail(&format!("{name}: {error:#}"));
            }
        }
    }
    if done < pieces.len() {
        lab.expectations.fail(figure.id);
    }
    figure.text.push(format!(
        "The proxy handed bytes on {} us later than due on the mean (by cluster); the cores are \
         shared by three nodes, the clients and the proxy, so the systems differ less than where \
         each node has its own machine.",
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
    let lengths = lengths(lab);
    let shares = shares(lab.quick);
    let title = "figure 9.b, links of 0.1 ms: throughput";
    let mut chart = Chart::by_name(title, "remote accesses", "tx/s", names(shares));
    let mut rates = vec![Vec::new(); SYSTEMS.len()];
    let mut cluster = Cluster::start(LINK)?;
    // One share after the other, so that what else the machine does meets all systems alike.
    for &share in shares {
        for (at, system) in SYSTEMS.into_iter().enumerate() {
            let seen = run(lab, &mut cluster, "remote", system, &pair(share), lengths)?;
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
    lab.expectations
        .judge("1d", format!("{:.2}", ratio(2, ten)), ratio(2, ten) > 1.5);
    lab.expectations
        .judge("1e", format!("{:.2}", ratio(2, 0)), ratio(2, 0) >= 0.9);
    let against = |to: usize| {
        let ratios: Vec<f64> = (0..shares.len()).map(|at| ratio(to, at)).collect();
        by_share(shares, &ratios)
    };
    let interleaved = against(1);
    figure.text.push(format!(
        "Links of 0.1 ms: leap has {} times serial two_phase, and {interleaved} times interleaved.",
        against(2)
    ));
    lab.expectations.report("1f", interleaved);
    Ok(())
}

/// Figures 10 and 12 with links of 0.1 ms.
fn locality(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let lengths = lengths(lab);
    let mut cluster = Cluster::start(LINK)?;
    let shares = [0, 90];
    let title = "figure 10.a, links of 0.1 ms, 10 % remote: throughput";
    let mut chart = Chart::by_name(title, "locality", "tx/s", names(&shares));
    let mut gains = Vec::new();
    for system in SYSTEMS {
        let mut rates = Vec::new();
        for share in shares {
            let mut plan = pair(10);
            plan.spread.locality_percent = Some(share);
            let seen = run(lab, &mut cluster, "locality", system, &plan, lengths)?;
            rates.push(rate(&seen));
        }
        gains.push(format!(
            "{} {:.2}",
            system.name(),
            rates[1] / rates[0].max(1.0)
        ));
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    figure.text.push(format!(
        "Throughput at 90 % locality over that at 0 %: {}.",
        gains.join(", ")
    ));
    // A database whose rows are all at home.
    let mut plan = pair(10);
    plan.spread.locality_percent = Some(100);
    let length = Duration::from_secs(if lab.quick { 8 } else { 20 });
    let whole = (Duration::ZERO, length);
    let seen = run(lab, &mut cluster, "fresh", System::Leap, &plan, whole)?;
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
    // Clients connect in the first second: the busiest at the start is what is meant.
    let start = &seen.seconds[..seconds.min(TAIL_S)];
    let first = start.iter().map(|second| second.1).max().unwrap_or(0);
    // The mean of the last seconds: a single one has few transfers, if any.
    let tail = &seen.seconds[seconds.saturating_sub(TAIL_S)..];
    let moved: u64 = tail.iter().map(|second| second.1).sum();
    let last = moved as f64 / tail.len().max(1) as f64;
    let share = last / first.max(1) as f64;
    lab.expectations.judge(
        "2e",
        format!(
            "{:.2} % ({first} rows in the busiest of the first {TAIL_S} seconds, {last:.1} in each \
             of the last)",
            share * 100.0
        ),
        share < 0.01 && first > 0 && seconds > 2 * TAIL_S,
    );
    Ok(())
}

/// Seconds at the end of a run that are taken together.
const TAIL_S: usize = 3;

/// Throughput at 10 % remote by the delay of the links.
fn links(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let lengths = lengths(lab);
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
            let seen = run(lab, &mut cluster, "links", system, &pair(10), lengths)?;
            rates[at].push(rate(&seen));
        }
        match delay.is_zero() {
            true => drop(cluster.stop()?),
            false => stop(cluster, late)?,
        }
    }
    for (at, delay) in delays.iter().enumerate() {
        figure.text.push(format!(
            "10 % remote, links of {} us: leap has {:.2} times serial two_phase and {:.2} times \
             interleaved.",
            delay.as_micros(),
            rates[0][at] / rates[2][at].max(1.0),
            rates[0][at] / rates[1][at].max(1.0)
        ));
    }
    for (system, rates) in SYSTEMS.into_iter().zip(rates) {
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    Ok(())
}

/// The hot counter with links of 1 ms.
fn increments(lab: &mut Lab, figure: &mut Figure, late: &mut Vec<f64>) -> Result<()> {
    let lengths = lengths(lab);
    let mut cluster = Cluster::start(FAR_LINK)?;
    let mut rates = Vec::new();
    figure.columns(&["one hot counter, links of 1 ms", "transaction", "tx/s"]);
    for system in [System::Leap, System::Interleaved] {
        for way in WAYS {
            let plan = Plan {
                mix: way.mix(),
                ..pair(0)
            };
            let seen = run(lab, &mut cluster, "counter", system, &plan, lengths)?;
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
    lab.expectations.report(
        "5c",
        format!("{ratio:.1} times with {NODES} nodes and 12 clients"),
    );
    Ok(())
}
