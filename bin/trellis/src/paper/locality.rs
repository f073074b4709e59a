//! Locality of remote accesses: figures 10, 12 and 13.

use super::Lab;
use super::figure::{Chart, Figure};
use super::model::{SYSTEMS, mean_ms, rate};
use anyhow::Result;
use sim::scale::{Point, ScaleOptions, Slice, Spread, System};
use std::rc::Rc;

const LOCALITY: [u64; 4] = [0, 30, 60, 90];

fn options(lab: &Lab, system: System, locality_percent: u64) -> ScaleOptions {
    let base = lab.model.base();
    ScaleOptions {
        system,
        spread: Spread {
            locality_percent: Some(locality_percent),
            ..base.spread.clone()
        },
        ..base
    }
}

fn points(lab: &mut Lab, system: System) -> Result<Vec<Rc<Point>>> {
    let all = LOCALITY.iter().map(|locality| {
        let options = options(lab, system, *locality);
        lab.model.point(&options)
    });
    all.collect()
}

/// Localities and the points of leap, for others.
pub(super) fn leap_points(lab: &mut Lab) -> Result<(Vec<u64>, Vec<Rc<Point>>)> {
    Ok((LOCALITY.to_vec(), points(lab, System::Leap)?))
}

fn names() -> Vec<String> {
    LOCALITY.iter().map(|share| format!("{share} %")).collect()
}

/// Throughput and latency against locality.
pub(super) fn figure_10(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{} nodes, 10 % remote; {}",
        lab.model.nodes(),
        lab.model.describe()
    );
    let mut figure = Figure::new("10", "Figure 10: impact of locality", place);
    let chart = |title, y_title| Chart::by_name(title, "locality", y_title, names());
    let mut throughput = chart("a. throughput", "tx/s");
    let mut latency = chart("b. mean latency", "ms");
    let mut gains = Vec::new();
    for system in SYSTEMS {
        let points = points(lab, system)?;
        let options = options(lab, system, 0);
        let rates: Vec<f64> = points.iter().map(|point| rate(&options, point)).collect();
        gains.push(rates[LOCALITY.len() - 1] / rates[0].max(1.0));
        throughput.curve(system.name(), rates);
        latency.curve(system.name(), points.iter().map(|point| mean_ms(point)));
    }
    figure.charts = vec![throughput, latency];
    lab.expect(
        "2a",
        "model: 90 % locality gives leap at least 3 times the throughput of 0 %",
        format!("{:.2} times", gains[0]),
        gains[0] >= 3.0,
    );
    lab.expect(
        "2b",
        "model: interleaved two_phase stays flat (within 20 %)",
        format!("{:.2} times from 0 to 90 %", gains[1]),
        (0.8..=1.2).contains(&gains[1]),
    );
    figure.text.push(format!(
        "Locality is nothing to two_phase: a remote row stays remote. leap's gain from 0 to 90 % \
         is {:.2}. It is bounded by what a transfer costs beside the transaction: at 10 % remote \
         a NewOrder of ten lines has one transfer of a few messages, and its other work (some 25 \
         statements over the wire) is the same with and without it.",
        gains[0]
    ));
    Ok(figure)
}

/// The chart of a quantity over the slices of a run.
fn course(
    title: &str,
    y_title: &'static str,
    slices: &[Slice],
    slice_s: f64,
    of: impl Fn(&Slice) -> f64,
) -> Chart {
    let stamps = (0..slices.len()).map(|at| match at % 4 {
        0 => format!("{:.2}", at as f64 * slice_s),
        _ => String::new(),
    });
    let mut chart = Chart::by_name(title, "seconds", y_title, stamps.collect());
    chart.curve("leap", slices.iter().map(of));
    chart
}

fn courses(slices: &[Slice], slice_s: f64) -> Vec<Chart> {
    vec![
        course("throughput", "tx/s", slices, slice_s, |slice| {
            slice.commits as f64 / slice_s
        }),
        course("mean latency", "ms", slices, slice_s, |slice| {
            slice.latency_mean_ns as f64 / 1e6
        }),
        course(
            "bandwidth between nodes",
            "Mbit/s",
            slices,
            slice_s,
            |slice| slice.frame_bytes as f64 * 8.0 / 1e6 / slice_s,
        ),
        course("rows moved", "1/s", slices, slice_s, |slice| {
            slice.moves as f64 / slice_s
        }),
    ]
}

/// The database repartitions itself.
pub(super) fn figure_12(lab: &mut Lab) -> Result<Figure> {
    let mut options = options(lab, System::Leap, 100);
    options.warmup_us = 0;
    options.run_us = if lab.quick { 600_000 } else { 1_500_000 };
    options.slices = 20;
    let place = format!(
        "{} nodes, 10 % remote, all of it with locality, from the first transaction on; {}",
        options.nodes,
        lab.model.describe()
    );
    let mut figure = Figure::new("12", "Figure 12: automatic repartitioning", place);
    let point = lab.model.point(&options)?;
    figure.charts = courses(&point.slices, options.run_us as f64 / 1e6 / 20.0);
    let moves: Vec<u64> = point.slices.iter().map(|slice| slice.moves).collect();
    let share = moves[19] as f64 / moves[0].max(1) as f64;
    lab.expect(
        "2c",
        "model: with 100 % locality transfers fall under 1 % of their start",
        format!(
            "{:.2} % ({} to {} in a twentieth)",
            share * 100.0,
            moves[0],
            moves[19]
        ),
        share < 0.01,
    );
    figure.text.push(
        "As in the paper the traffic falls to almost nothing when every row has found the node \
         that uses it, and throughput rises to that of local transactions. The paper feeds 16,000 \
         transactions a second; here the loop is closed, so throughput shows it too."
            .to_owned(),
    );
    Ok(figure)
}

/// The pattern of access changes.
pub(super) fn figure_13(lab: &mut Lab) -> Result<Figure> {
    let mut options = lab.model.base();
    let phase_us = if lab.quick { 100_000 } else { 300_000 };
    options.spread.reach = vec![1, 2, 0];
    options.spread.reach_us = phase_us;
    options.warmup_us = 0;
    options.run_us = 6 * phase_us;
    options.slices = 24;
    let place = format!(
        "{} nodes, 10 % remote: to one other node, to two, to all, by turns of {:.1} s, twice; {}",
        options.nodes,
        phase_us as f64 / 1e6,
        lab.model.describe()
    );
    let mut figure = Figure::new("13", "Figure 13: impact of the access pattern", place);
    let point = lab.model.point(&options)?;
    figure.charts = courses(&point.slices, options.run_us as f64 / 1e6 / 24.0);
    let of_phase = |phase: usize| {
        let slices = &point.slices[12 + phase * 4 + 1..12 + phase * 4 + 4];
        slices
            .iter()
            .map(|slice| slice.latency_mean_ns)
            .sum::<u64>() as f64
            / 3e6
    };
    figure.text.push(format!(
        "Mean latency in the second round: {:.2} ms to one other node, {:.2} ms to two, {:.2} ms \
         to all. In the paper it rises in this order, because more nodes contend for a row.",
        of_phase(0),
        of_phase(1),
        of_phase(2)
    ));
    Ok(figure)
}
