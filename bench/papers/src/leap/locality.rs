//! Locality of remote accesses: figures 10, 12 and 13.

use super::SYSTEMS;
use super::remote::{by_share, names};
use crate::Lab;
use crate::figure::{Chart, Figure, trend};
use crate::model::{core_us, frames, mean_ms, moved, rate};
use anyhow::Result;
use sim::scale::{Point, ScaleOptions, Slice, System};
use std::rc::Rc;

const LOCALITY: [u64; 4] = [0, 30, 60, 90];
/// The ends of it, for the second remote share.
const ENDS: [u64; 2] = [0, 90];
/// The remote share that the paper does not have for figure 10.
const MUCH: u64 = 50;

fn options(lab: &Lab, system: System, remote_percent: u64, locality_percent: u64) -> ScaleOptions {
    let mut options = lab.model.with(system, remote_percent);
    options.spread.locality_percent = Some(locality_percent);
    options
}

fn points(
    lab: &mut Lab,
    system: System,
    remote_percent: u64,
    localities: &[u64],
) -> Result<Vec<Rc<Point>>> {
    let all = localities.iter().map(|locality| {
        let options = options(lab, system, remote_percent, *locality);
        lab.model.point(&options)
    });
    all.collect()
}

/// Localities and the points of leap, for others.
pub(super) fn leap_points(lab: &mut Lab) -> Result<(Vec<u64>, Vec<Rc<Point>>)> {
    let points = points(lab, System::Leap, 10, &LOCALITY)?;
    Ok((LOCALITY.to_vec(), points))
}

/// The last of some points over the first, in throughput.
fn gain(points: &[Rc<Point>]) -> f64 {
    let commits = |at: usize| points[at].commits() as f64;
    commits(points.len() - 1) / commits(0).max(1.0)
}

/// Throughput and latency against locality.
pub(super) fn figure_10(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{} nodes, 10 % remote (and {MUCH} %); {}",
        lab.model.nodes(),
        lab.model.describe()
    );
    let mut figure = Figure::new("10", "Figure 10: impact of locality", place);
    let chart = |title, shares, y| Chart::by_name(title, "locality", y, names(shares));
    let mut throughput = chart("a. throughput, 10 % remote", &LOCALITY, "tx/s");
    let mut latency = chart("b. mean latency, 10 % remote", &LOCALITY, "ms");
    let mut much = chart("throughput, 50 % remote", &ENDS, "tx/s");
    let (mut few, mut many) = (Vec::new(), Vec::new());
    let any = options(lab, System::Leap, 10, 0);
    for system in SYSTEMS {
        let points_10 = points(lab, system, 10, &LOCALITY)?;
        let points_50 = points(lab, system, MUCH, &ENDS)?;
        let name = system.name();
        throughput.curve(name, points_10.iter().map(|point| rate(&any, point)));
        latency.curve(name, points_10.iter().map(|point| mean_ms(point)));
        much.curve(name, points_50.iter().map(|point| rate(&any, point)));
        few.push(points_10);
        many.push(points_50);
    }
    figure.charts = vec![throughput, latency, much];
    // The same clients on the same half of the rows, with nothing remote: more than that no
    // locality can give.
    let local = points(lab, System::Leap, 0, &[0])?;
    let bound = |point: &Point| rate(&any, &local[0]) / rate(&any, point).max(1.0);
    let (gain_10, gain_50) = (gain(&few[0]), gain(&many[0]));
    let (bound_10, bound_50) = (bound(&few[0][0]), bound(&many[0][0]));
    lab.expectations.judge(
        "2a",
        format!("{gain_10:.2} times; at most {bound_10:.2} are possible, see figure 10"),
        gain_10 >= 3.0,
    );
    lab.expectations.report(
        "2b",
        format!("{gain_50:.2} times; at most {bound_50:.2} are possible"),
    );
    let flat = gain(&few[1]);
    lab.expectations.judge(
        "2c",
        format!(
            "{flat:.2} times from 0 to 90 %; {:.2} at {MUCH} % remote",
            gain(&many[1])
        ),
        (0.8..=1.2).contains(&flat),
    );
    let wins = |localities: &[u64], points: &[Vec<Rc<Point>>]| {
        let over = |(leap, other): (&Rc<Point>, &Rc<Point>)| {
            leap.commits() as f64 / (other.commits() as f64).max(1.0)
        };
        let ratios: Vec<f64> = points[0].iter().zip(&points[1]).map(over).collect();
        crossover(localities, &ratios)
    };
    lab.expectations.report(
        "1g",
        format!(
            "at 10 % remote {}; at {MUCH} % {}",
            wins(&LOCALITY, &few),
            wins(&ENDS, &many)
        ),
    );
    figure.text = sentences(&few, &many, (gain_10, bound_10), (gain_50, bound_50));
    Ok(figure)
}

/// Where a ratio passes 1 on its way up, on the straight line between two localities.
fn crossover(localities: &[u64], ratios: &[f64]) -> String {
    if ratios[0] >= 1.0 {
        return format!("everywhere from {} % on", localities[0]);
    }
    let Some(at) = ratios.iter().position(|ratio| *ratio >= 1.0) else {
        return format!("nowhere up to {} %", localities[localities.len() - 1]);
    };
    let (low, high) = (localities[at - 1] as f64, localities[at] as f64);
    let (below, above) = (ratios[at - 1], ratios[at]);
    let share = (1.0 - below) / (above - below);
    format!("from about {:.0} % on", low + share * (high - low))
}

/// What figure 10 shows: points by system at 10 and 50 %, gain and bound of leap at both.
fn sentences(
    few: &[Vec<Rc<Point>>],
    many: &[Vec<Rc<Point>>],
    (gain_10, bound_10): (f64, f64),
    (gain_50, bound_50): (f64, f64),
) -> Vec<String> {
    let (none, most) = (&few[0][0], &few[0][LOCALITY.len() - 1]);
    let commits = |points: &[Rc<Point>]| -> Vec<f64> {
        points.iter().map(|point| point.commits() as f64).collect()
    };
    let gain_of = format!(
        "From 0 to 90 % locality leap's throughput {} by {gain_10:.2} times at 10 % remote and by \
         {gain_50:.2} times at {MUCH} %; interleaved two_phase has {:.2} and {:.2} times, serial \
         {:.2} and {:.2}: a remote row stays remote there.",
        trend(&commits(&few[0])),
        gain(&few[1]),
        gain(&many[1]),
        gain(&few[2]),
        gain(&many[2])
    );
    let why = format!(
        "Three times are {} at 10 % remote: the same load with nothing remote at all has \
         {bound_10:.2} times the throughput of that without locality ({bound_50:.2} at {MUCH} %). \
         A transaction without locality takes {:.0} us of a core, moves {:.2} rows and sends {:.1} \
         messages, one with 90 % takes {:.0} us, moves {:.2} and sends {:.1}; what is left is the \
         work of its statements, which locality does not touch.",
        if bound_10 < 3.0 {
            "out of reach"
        } else {
            "possible"
        },
        core_us(none),
        moved(none),
        frames(none),
        core_us(most),
        moved(most),
        frames(most)
    );
    let over = |system: usize, points: &[Vec<Rc<Point>>], at: usize| {
        points[0][at].commits() as f64 / (points[system][at].commits() as f64).max(1.0)
    };
    let at_10: Vec<f64> = (0..LOCALITY.len()).map(|at| over(1, few, at)).collect();
    let against = format!(
        "leap over interleaved two_phase at 10 % remote: {}; at {MUCH} %: {:.2} and {:.2} at 0 and \
         90 % locality.",
        by_share(&LOCALITY, &at_10),
        over(1, many, 0),
        over(1, many, 1)
    );
    vec![gain_of, why, against]
}

/// A quantity of a slice: title, unit, and its value in a slice of so many seconds.
type Course = (&'static str, &'static str, fn(&Slice, f64) -> f64);

const COURSES: [Course; 4] = [
    ("throughput", "tx/s", |slice, s| slice.commits as f64 / s),
    ("mean latency", "ms", |slice, _| {
        slice.latency_mean_ns as f64 / 1e6
    }),
    ("bandwidth between nodes", "Mbit/s", |slice, s| {
        slice.frame_bytes as f64 * 8.0 / 1e6 / s
    }),
    ("rows moved", "1/s", |slice, s| slice.moves as f64 / s),
];

/// The course of leap's run, and beside it what the others have on the mean.
fn courses(
    slices: &[Slice],
    slice_s: f64,
    others: &[(System, ScaleOptions, Rc<Point>)],
) -> Vec<Chart> {
    let chart = |(title, unit, of): Course| {
        let stamps = (0..slices.len()).map(|at| match at % 4 {
            0 => format!("{:.2}", at as f64 * slice_s),
            _ => String::new(),
        });
        let mut chart = Chart::by_name(title, "seconds", unit, stamps.collect());
        chart.curve("leap", slices.iter().map(|slice| of(slice, slice_s)));
        for (system, options, point) in others {
            let whole = Slice {
                commits: point.commits(),
                latency_mean_ns: point.latency_mean_ns(),
                frame_bytes: point.usage.frame_bytes,
                moves: 0,
            };
            let mean = of(&whole, options.run_us as f64 / 1e6);
            if mean > 0.0 {
                let name = format!("{} (mean)", system.name());
                chart.curve(&name, slices.iter().map(|_| mean));
            }
        }
        chart
    };
    COURSES.into_iter().map(chart).collect()
}

/// The database repartitions itself.
pub(super) fn figure_12(lab: &mut Lab) -> Result<Figure> {
    const SLICES: usize = 20;
    let mut options_of = options(lab, System::Leap, 10, 100);
    options_of.warmup_us = 0;
    options_of.run_us = if lab.quick { 600_000 } else { 1_500_000 };
    options_of.slices = SLICES as u32;
    let place = format!(
        "{} nodes of {} clients, 10 % remote, all of it with locality, from the first transaction \
         on; {}",
        options_of.nodes,
        options_of.clients_per_node,
        lab.model.describe_shape()
    );
    let mut figure = Figure::new("12", "Figure 12: automatic repartitioning", place);
    let point = lab.model.point(&options_of)?;
    let mut others = Vec::new();
    for system in [System::Interleaved, System::Serial] {
        let of_system = options(lab, system, 10, 90);
        let point = lab.model.point(&of_system)?;
        others.push((system, of_system, point));
    }
    let slice_s = options_of.run_us as f64 / 1e6 / SLICES as f64;
    figure.charts = courses(&point.slices, slice_s, &others);
    let (first, last) = (point.slices[0], point.slices[SLICES - 1]);
    let share = last.moves as f64 / first.moves.max(1) as f64;
    lab.expectations.judge(
        "2d",
        format!(
            "{:.2} % ({} to {} rows in {slice_s:.3} s)",
            share * 100.0,
            first.moves,
            last.moves
        ),
        share < 0.01 && first.moves > 0,
    );
    let half = point
        .slices
        .iter()
        .position(|one| one.moves * 2 < first.moves);
    figure.text.push(format!(
        "In the paper the traffic falls to almost nothing when every row has found the node that \
         uses it. Here rows moved fall to {:.1} % of their start, to half of it after {}, and \
         bytes between nodes to {:.1} %; throughput goes from {:.0} to {:.0} a second, {:.2} \
         times. The paper feeds 16,000 transactions a second; here the loop is closed, so \
         throughput shows it too.",
        share * 100.0,
        half.map_or("no slice".to_owned(), |at| format!(
            "{:.2} s",
            at as f64 * slice_s
        )),
        100.0 * last.frame_bytes as f64 / first.frame_bytes.max(1) as f64,
        first.commits as f64 / slice_s,
        last.commits as f64 / slice_s,
        last.commits as f64 / first.commits.max(1) as f64
    ));
    Ok(figure)
}

/// The pattern of access changes.
pub(super) fn figure_13(lab: &mut Lab) -> Result<Figure> {
    const PHASE_SLICES: usize = 4;
    let mut options = lab.model.base();
    let phase_us = if lab.quick { 100_000 } else { 200_000 };
    options.spread.reach = vec![1, 2, 0];
    options.spread.reach_us = phase_us;
    options.warmup_us = 0;
    options.run_us = 6 * phase_us;
    options.slices = 6 * PHASE_SLICES as u32;
    let place = format!(
        "{} nodes of {} clients, 10 % remote: to one other node, to two, to all, by turns of {:.1} \
         s, twice; {}",
        options.nodes,
        options.clients_per_node,
        phase_us as f64 / 1e6,
        lab.model.describe_shape()
    );
    let mut figure = Figure::new("13", "Figure 13: impact of the access pattern", place);
    let point = lab.model.point(&options)?;
    let slice_s = phase_us as f64 / 1e6 / PHASE_SLICES as f64;
    figure.charts = courses(&point.slices, slice_s, &[]);
    // The second round, each phase without its first slice.
    let of_phase = |phase: usize, of: fn(&Slice) -> u64| {
        let from = (3 + phase) * PHASE_SLICES;
        let slices = &point.slices[from + 1..from + PHASE_SLICES];
        slices.iter().map(of).sum::<u64>() as f64 / slices.len() as f64
    };
    let ms = [0, 1, 2].map(|phase| of_phase(phase, |slice| slice.latency_mean_ns) / 1e6);
    let moves = [0, 1, 2].map(|phase| of_phase(phase, |slice| slice.moves) / slice_s);
    figure.text.push(format!(
        "In the paper latency rises from one other node to two to all, because more nodes contend \
         for a row. Mean latency in the second round here: {:.2} ms, {:.2} ms, {:.2} ms: it {}. \
         Rows moved per second: {:.0}, {:.0}, {:.0}.",
        ms[0],
        ms[1],
        ms[2],
        trend(&ms),
        moves[0],
        moves[1],
        moves[2]
    ));
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossover_lies_between_the_points_around_it() {
        assert_eq!(
            crossover(&[0, 30, 60], &[0.8, 0.9, 1.1]),
            "from about 45 % on"
        );
        assert_eq!(crossover(&[0, 90], &[1.0, 2.0]), "everywhere from 0 % on");
        assert_eq!(crossover(&[0, 90], &[0.5, 0.9]), "nowhere up to 90 %");
    }
}
