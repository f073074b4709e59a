//! How many transactions a node runs at a time, and how many cores it has: figures 8 and 17.

use super::SYSTEMS;
use crate::Lab;
use crate::figure::{Chart, Figure};
use crate::model::{moved, rate};
use crate::tries::Tries;
use anyhow::Result;
use sim::scale::{Point, ScaleOptions, System};
use std::rc::Rc;

/// Transactions at a time per node stand for the paper's threads: a thread of L-Store has one
/// transaction, which waits for its rows.
const AT_A_TIME: [u32; 6] = [2, 4, 8, 16, 32, 48];
const REMOTE: [u64; 4] = [1, 5, 10, 30];
/// Nodes of these two figures.
const NODES: u16 = 4;

fn options(lab: &Lab, system: System, remote_percent: u64, at_a_time: u32) -> ScaleOptions {
    ScaleOptions {
        nodes: NODES,
        clients_per_node: at_a_time,
        ..lab.model.with(system, remote_percent)
    }
}

/// Throughput and bandwidth against the number of transactions at a time.
pub(super) fn figure_8(lab: &mut Lab) -> Result<Figure> {
    let place = format!("{NODES} nodes; {}", lab.model.describe());
    let title = "Figure 8: impact of the number of threads (here: transactions at a time)";
    let mut figure = Figure::new("8", title, place);
    let names: Vec<String> = AT_A_TIME.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "transactions at a time", y, names.clone());
    let mut throughput = chart("a. throughput of leap", "tx/s");
    let mut bandwidth = chart("b. bandwidth of leap, all nodes", "Mbit/s");
    let mut aborts = chart("attempts of leap that the server rolled back", "%");
    let mut against = chart("throughput at 10 % remote", "tx/s");
    for remote_percent in REMOTE {
        let points = points(lab, System::Leap, remote_percent)?;
        let (rates, bits) = (of(&points, per_s), of(&points, megabits));
        let (best, most) = peak(&rates);
        figure.text.push(format!(
            "{remote_percent} % remote: most with {} transactions at a time, {most:.0} a second; \
             with {} it is {:.2} of that. Bandwidth at the most: {:.0} Mbit/s, {:.0} bytes for a \
             row that moves; attempts rolled back: {:.1} % with {}, {:.1} % with {}.",
            AT_A_TIME[best],
            AT_A_TIME[AT_A_TIME.len() - 1],
            rates[AT_A_TIME.len() - 1] / most.max(1.0),
            bits[best],
            points[best].1.usage.frame_bytes as f64
                / (moved(&points[best].1) * points[best].1.commits() as f64).max(1.0),
            rolled_back(&points[1]),
            AT_A_TIME[1],
            rolled_back(&points[3]),
            AT_A_TIME[3]
        ));
        let name = format!("{remote_percent} % remote");
        throughput.curve(&name, rates);
        bandwidth.curve(&name, bits);
        aborts.curve(&name, of(&points, rolled_back));
    }
    for system in SYSTEMS {
        let points = points(lab, system, 10)?;
        against.curve(system.name(), of(&points, per_s));
    }
    figure.charts = vec![throughput, bandwidth, aborts, against];
    figure.text.push(
        "The paper's optimum is 32 threads on 4 cores. A transaction that waits costs no thread \
         here, so what may end the rise is a core that is busy, and conflicts."
            .to_owned(),
    );
    Ok(figure)
}

/// A point with what it was of.
type Measured = (ScaleOptions, Rc<Point>);

fn points(lab: &mut Lab, system: System, remote_percent: u64) -> Result<Vec<Measured>> {
    let mut one = |at_a_time: &u32| {
        let options = options(lab, system, remote_percent, *at_a_time);
        let point = lab.model.point(&options)?;
        Ok((options, point))
    };
    AT_A_TIME.iter().map(&mut one).collect()
}

fn of(points: &[Measured], value: fn(&Measured) -> f64) -> Vec<f64> {
    points.iter().map(value).collect()
}

fn per_s((options, point): &Measured) -> f64 {
    rate(options, point)
}

fn megabits((options, point): &Measured) -> f64 {
    point.usage.frame_bytes as f64 * 8.0 / options.run_us as f64
}

fn rolled_back((_, point): &Measured) -> f64 {
    Tries::of(point).abort_rate * 100.0
}

/// Where the largest value is, and that value.
fn peak(values: &[f64]) -> (usize, f64) {
    let all = values.iter().copied().enumerate();
    all.fold(
        (0, 0.0),
        |best, one| if one.1 > best.1 { one } else { best },
    )
}

/// Local transactions against the number of cores.
pub(super) fn figure_17(lab: &mut Lab) -> Result<Figure> {
    let cores: [u16; 5] = [1, 2, 3, 4, 5];
    let place = format!(
        "{NODES} nodes, nothing remote, a shard per core, 8 clients and 1 warehouse per core; {}",
        lab.model.describe()
    );
    let mut figure = Figure::new("17", "Figure 17: local transactions", place);
    let names: Vec<String> = cores.iter().map(u16::to_string).collect();
    let mut chart = Chart::by_name("throughput", "cores per node", "tx/s", names);
    let mut rates = Vec::new();
    for system in SYSTEMS {
        let mut of_system = Vec::new();
        for shards in cores {
            let options = ScaleOptions {
                nodes: NODES,
                shards,
                clients_per_node: 8 * u32::from(shards),
                warehouses_per_node: u32::from(shards),
                ..lab.model.with(system, 0)
            };
            let point = lab.model.point(&options)?;
            of_system.push(rate(&options, &point));
        }
        chart.curve(system.name(), of_system.clone());
        rates.push((system, of_system));
    }
    figure.charts.push(chart);
    let of = |wanted: System| {
        let found = rates.iter().find(|(system, _)| *system == wanted);
        found.map_or([0.0; 2], |(_, rates)| [rates[0], rates[3]])
    };
    let (leap, serial) = (of(System::Leap), of(System::Serial));
    let interleaved = of(System::Interleaved);
    let ratio = |one: f64, other: f64| one / other.max(1.0);
    figure.text.push(format!(
        "With one core leap has {:.2} of two_phase serial and {:.2} of two_phase interleaved, with \
         four {:.2} and {:.2}. The paper's L-Store stays below H-Store, because it locks rows \
         where H-Store locks nothing.",
        ratio(leap[0], serial[0]),
        ratio(leap[0], interleaved[0]),
        ratio(leap[1], serial[1]),
        ratio(leap[1], interleaved[1])
    ));
    figure.text.push(format!(
        "Four cores have {:.2} times the throughput of one under leap, {:.2} under serial, {:.2} \
         under interleaved. A core of the model does nothing else, so there is no peak at four as \
         in the paper. A warehouse has its rows on one core under two_phase; leap moves rows that \
         are asked for by way of another core of the same node.",
        ratio(leap[1], leap[0]),
        ratio(serial[1], serial[0]),
        ratio(interleaved[1], interleaved[0])
    ));
    Ok(figure)
}
