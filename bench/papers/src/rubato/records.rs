//! Single operations on records of a kilobyte: figures 9 and 10.

use super::SYSTEMS;
use super::ground::base;
use crate::figure::{Chart, Figure, trend};
use crate::model::rate;
use crate::repetition::Lab;
use anyhow::Result;
use sim::scale::{Mix, Point, ScaleOptions, Spread, System};
use std::rc::Rc;

/// Records of each node (the paper: 100 million).
const RECORDS: u32 = 2_000;

/// A figure of one share of reads: its number, and those of what it tells.
struct Load {
    id: &'static str,
    title: &'static str,
    read_percent: u64,
    growth: &'static str,
    against: &'static str,
}

/// 95 % reads.
pub(super) fn figure_9(lab: &mut Lab) -> Result<Figure> {
    let load = Load {
        id: "9",
        title: "Figure 9: read-intensive YCSB, 95 % reads",
        read_percent: 95,
        growth: "5a",
        against: "5c",
    };
    figure(lab, &load)
}

/// 50 % reads.
pub(super) fn figure_10(lab: &mut Lab) -> Result<Figure> {
    let load = Load {
        id: "10",
        title: "Figure 10: write-intensive YCSB, 50 % reads",
        read_percent: 50,
        growth: "5b",
        against: "5d",
    };
    figure(lab, &load)
}

fn options(lab: &Lab, system: System, nodes: u16, read_percent: u64) -> ScaleOptions {
    // All nodes' records alike.
    let remote_percent = 100 * u64::from(nodes - 1) / u64::from(nodes);
    ScaleOptions {
        nodes,
        system,
        mix: Mix::Record { read_percent },
        spread: Spread::new(Vec::new(), remote_percent),
        warehouses_per_node: 1,
        items: RECORDS,
        run_us: if lab.quick { 50_000 } else { 200_000 },
        ..base(&lab.model)
    }
}

fn figure(lab: &mut Lab, load: &Load) -> Result<Figure> {
    let nodes: &[u16] = if lab.quick {
        &[1, 2, 4]
    } else {
        &[1, 2, 4, 8, 12]
    };
    let base = base(&lab.model);
    let place = format!(
        "{}; {RECORDS} records of ten fields of 100 bytes per node (the paper: 100 million), those \
         of all nodes alike, within a node by Zipf's law with the exponent 1; a statement is a \
         transaction; {} clients per node of 1 core, closed loop",
        lab.model.describe_costs(),
        base.clients_per_node
    );
    let mut figure = Figure::new(load.id, load.title, place);
    let names: Vec<String> = nodes.iter().map(u16::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "nodes", y, names.clone());
    let mut throughput = chart("a. throughput", "operations/s");
    let mut reads = chart("b. latency of reads, mean", "ms");
    let mut updates = chart("c. latency of updates, mean", "ms");
    let mut late = chart("latency of reads and updates, p99", "ms");
    let mut all = Vec::new();
    for system in SYSTEMS {
        let mut points = Vec::new();
        for &nodes in nodes {
            let options = options(lab, system, nodes, load.read_percent);
            let point = lab.model.point(&options)?;
            points.push((options, point));
        }
        let rates: Vec<f64> = points.iter().map(|(of, point)| rate(of, point)).collect();
        throughput.curve(system.name(), rates.clone());
        reads.curve(
            system.name(),
            points.iter().map(|(_, point)| mean_ms(point, 0)),
        );
        updates.curve(
            system.name(),
            points.iter().map(|(_, point)| mean_ms(point, 1)),
        );
        let p99 = |point: &Rc<Point>| point.latency_ns(990) as f64 / 1e6;
        late.curve(system.name(), points.iter().map(|(_, point)| p99(point)));
        figure.text.push(sentence(system, &rates, &points));
        all.push(rates);
    }
    figure.charts = vec![throughput, reads, updates, late];
    judge(lab, load, nodes, &all);
    Ok(figure)
}

/// Mean latency of one kind, milliseconds; 0 of none.
fn mean_ms(point: &Point, kind: usize) -> f64 {
    let all = &point.latencies_by_kind_ns[kind];
    all.iter().sum::<u64>() as f64 / all.len().max(1) as f64 / 1e6
}

fn sentence(system: System, rates: &[f64], points: &[(ScaleOptions, Rc<Point>)]) -> String {
    let last = points.len() - 1;
    let of = |kind: usize| -> Vec<f64> {
        points[1..]
            .iter()
            .map(|(_, point)| mean_ms(point, kind))
            .collect()
    };
    let (reads, updates) = (of(0), of(1));
    format!(
        "{}: {:.1} times from 1 to {} nodes; from 2 nodes on the mean latency of reads {}, {:.2} \
         to {:.2} ms, and that of updates {}, {:.2} to {:.2} ms (a flush and, if remote, a round \
         trip more).",
        system.name(),
        rates[last] / rates[0].max(1.0),
        points[last].0.nodes,
        trend(&reads),
        reads[0],
        reads[reads.len() - 1],
        trend(&updates),
        updates[0],
        updates[updates.len() - 1]
    )
}

/// Growth, and the ratios at the last number of nodes. From two nodes on something is remote.
fn judge(lab: &mut Lab, load: &Load, nodes: &[u16], all: &[Vec<f64>]) {
    let last = nodes.len() - 1;
    let linear = f64::from(nodes[last]) / f64::from(nodes[1]);
    let grown = all[0][last] / all[0][1].max(1.0);
    let text = format!(
        "{grown:.1} times from {} to {} nodes, {:.2} of linear; {:.1} times from 1",
        nodes[1],
        nodes[last],
        grown / linear,
        all[0][last] / all[0][0].max(1.0)
    );
    let rises = all[0].iter().zip(&all[0][1..]).all(|(from, to)| to > from);
    lab.expectations.judge(load.growth, text, rises);
    let over = |other: usize| all[0][last] / all[other][last].max(1.0);
    let text = format!("{:.2} and {:.2} times", over(1), over(2));
    lab.expectations.report(load.against, text);
}
