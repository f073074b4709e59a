//! Dependent steps with intermediate results: figure 11.

use super::SYSTEMS;
use crate::Lab;
use crate::figure::{Chart, Figure, trend};
use crate::model::{frames, mean_ms, moved, rate};
use anyhow::Result;
use sim::scale::{Mix, Point, ScaleOptions, Spread};
use std::rc::Rc;

const STEPS: [u32; 4] = [1, 2, 4, 8];
/// Operations of a step: one of ten is remote.
const OPS: u32 = 10;

/// Throughput of key-value transactions against the number of steps.
pub(super) fn figure_11(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{} nodes, key-value rows: each step has {OPS} operations, one of them on another node; \
         the keys of a step come from the result of the one before; {}",
        lab.model.nodes(),
        lab.model.describe()
    );
    let title = "Figure 11: impact of the number of intermediate results";
    let mut figure = Figure::new("11", title, place);
    let names: Vec<String> = STEPS.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "steps", y, names.clone());
    let mut throughput = chart("throughput", "tx/s").logarithmic();
    let mut latency = chart("mean latency", "ms").logarithmic();
    let mut rates: Vec<Vec<f64>> = Vec::new();
    let mut ends = Vec::new();
    for system in SYSTEMS {
        let (mut of_system, mut points) = (Vec::new(), Vec::new());
        for steps in STEPS {
            let base = lab.model.base();
            let options = ScaleOptions {
                system,
                mix: Mix::Ycsb { steps, ops: OPS },
                spread: Spread::new(Vec::new(), 100),
                ..base
            };
            let point = lab.model.point(&options)?;
            of_system.push(rate(&options, &point));
            points.push(point);
        }
        latency.curve(system.name(), points.iter().map(|point| mean_ms(point)));
        throughput.curve(system.name(), of_system.clone());
        rates.push(of_system);
        ends.push(points);
    }
    let mut speedup = chart("leap's throughput over the others'", "ratio");
    for (other, name) in [
        (2, "over two_phase serial"),
        (1, "over two_phase interleaved"),
    ] {
        let pairs = rates[0].iter().zip(&rates[other]);
        speedup.curve(name, pairs.map(|(leap, other)| leap / other.max(1.0)));
    }
    figure.charts = vec![speedup, throughput, latency];
    figure.text = sentences(&rates, &ends);
    Ok(figure)
}

/// What the figure shows: rates and points by system and steps.
fn sentences(rates: &[Vec<f64>], points: &[Vec<Rc<Point>>]) -> Vec<String> {
    let last = STEPS.len() - 1;
    let ratio = |other: usize, at: usize| rates[0][at] / rates[other][at].max(1.0);
    let by_steps = |other: usize| -> Vec<f64> { (0..=last).map(|at| ratio(other, at)).collect() };
    let speedup = format!(
        "The paper's speedup over H-Store grows from 3.2 with one step to 5.1 with eight. Here it \
         {}: {:.2} with one step, {:.2} with eight; over interleaved two_phase it {}: {:.2} and \
         {:.2}.",
        trend(&by_steps(2)),
        ratio(2, 0),
        ratio(2, last),
        trend(&by_steps(1)),
        ratio(1, 0),
        ratio(1, last)
    );
    let of = |system: usize| (&points[system][0], &points[system][last]);
    let ((leap_1, leap_8), (other_1, other_8), (.., serial_8)) = (of(0), of(1), of(2));
    let why = format!(
        "Every step is a round trip of the client under every system and starts with a row of \
         another node. leap sends {:.1} messages for one step and {:.1} for eight, and moves {:.2} \
         and {:.2} rows; interleaved sends {:.1} and {:.1}. With eight steps a client repeats \
         {:.2} attempts per commit under leap, {:.2} under interleaved, {:.2} under serial.",
        frames(leap_1),
        frames(leap_8),
        moved(leap_1),
        moved(leap_8),
        frames(other_1),
        frames(other_8),
        again(leap_8),
        again(other_8),
        again(serial_8)
    );
    vec![speedup, why]
}

/// Attempts that failed, for each that did not.
fn again(point: &Point) -> f64 {
    point.retries as f64 / point.commits().max(1) as f64
}
