//! Beyond the paper: what one hot row costs, for a commit of two nodes and on one node.

use super::SYSTEMS;
use super::ground::base;
use crate::figure::Figure;
use crate::model::{core_us, frames, mean_ms, rate};
use crate::plan::WantedPoint;
use crate::repetition::Lab;
use crate::tries::{deaths_percent, reasons};
use anyhow::Result;
use sim::scale::{Mix, Point, ScaleOptions, System};
use std::rc::Rc;

/// Links one way and flushes, microseconds.
const LINK_US: u64 = 1_000;
const FLUSH_US: u64 = 1_000;
/// Clients of each node of the first part: 256 of 16 nodes.
const CLIENTS_PER_NODE: u32 = 16;
/// Writers of one counter of the second part.
const WRITERS: u32 = 64;

/// A system, with the early answer of a commit or without.
type Way = (System, bool);

/// The ways of the first part; formula is the first.
const WAYS: [Way; 5] = [
    (System::Formula, true),
    (System::Formula, false),
    (System::Interleaved, true),
    (System::Interleaved, false),
    (System::Leap, true),
];

fn options(lab: &Lab, (system, early): Way) -> ScaleOptions {
    let base = base(&lab.model);
    let off = || ("early_answer".to_owned(), "off".to_owned());
    ScaleOptions {
        system,
        mix: Mix::HotCold,
        settings: if early { Vec::new() } else { vec![off()] },
        clients_per_node: CLIENTS_PER_NODE,
        // A cold counter for each client.
        warehouses_per_node: CLIENTS_PER_NODE,
        warmup_us: if lab.quick { 30_000 } else { 300_000 },
        run_us: if lab.quick { 100_000 } else { 1_000_000 },
        ..base
    }
}

fn name((system, early): Way) -> String {
    match early {
        true => system.name().to_owned(),
        false => format!("{}, early_answer = off", system.name()),
    }
}

fn measure(lab: &mut Lab, options: &ScaleOptions) -> Result<Rc<Point>> {
    lab.model.wanted(WantedPoint {
        options: options.clone(),
        link_us: LINK_US,
        flush_us: Some(FLUSH_US),
    })
}

/// One hot row and one cold row of another node, and one hot row of one node.
pub(super) fn hot(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{} nodes of 1 core and {CLIENTS_PER_NODE} clients, links of 1 ms one way, a flush 1 ms: \
         every transaction adds to a counter of its own and to the one hot counter, on two nodes; \
         {WRITERS} writers of one counter on one node; {}",
        lab.model.nodes(),
        lab.model.describe_costs()
    );
    let title = "Hot row (beyond the paper): SET c = c + $1 on one hot row and one cold row";
    let mut figure = Figure::new("hot", title, place);
    figure.columns(&[
        "system",
        "load",
        "tx/s",
        "mean ms",
        "p99 ms",
        "us of a core",
        "messages",
        "forced",
        "lock waits",
        "deaths per 100",
    ]);
    let mut rates = Vec::new();
    for way in WAYS {
        let options = options(lab, way);
        let point = measure(lab, &options)?;
        figure
            .rows
            .push(row(name(way), "hot and cold", &options, &point));
        rates.push(rate(&options, &point));
        let hottest = busiest_percent(&options, &point);
        figure.text.push(format!(
            "{}: the busiest core is used {hottest:.0} % of the time; attempts that failed: {}.",
            name(way),
            reasons(&point)
        ));
    }
    let mut alone = Vec::new();
    for system in SYSTEMS {
        let options = ScaleOptions {
            nodes: 1,
            system,
            mix: Mix::Counter {
                block: false,
                returning: false,
            },
            clients_per_node: WRITERS,
            warehouses_per_node: 1,
            ..options(lab, (system, true))
        };
        let point = measure(lab, &options)?;
        let name = system.name().to_owned();
        figure
            .rows
            .push(row(name, "one node, one counter", &options, &point));
        alone.push(rate(&options, &point));
    }
    judge(lab, &rates, &alone);
    Ok(figure)
}

/// Expectation 1: rates by way, and of the systems on one node.
fn judge(lab: &mut Lab, rates: &[f64], alone: &[f64]) {
    let over = |other: usize| rates[0] / rates[other].max(1.0);
    for (number, other, times) in [("1a", 3, 100.0), ("1b", 2, 20.0), ("1c", 4, 2.0)] {
        let text = format!(
            "{:.1} times ({:.0} against {:.0} a second)",
            over(other),
            rates[0],
            rates[other]
        );
        lab.expectations.judge(number, text, over(other) >= times);
    }
    let ratio = alone[0] / alone[1].max(1.0);
    let text = format!(
        "{ratio:.2} ({:.0} against {:.0} a second)",
        alone[0], alone[1]
    );
    // A model of the same steps: what is below is more than rounding.
    lab.expectations.judge("1d", text, ratio >= 0.995);
}

/// Share of the busiest node's core that was used.
fn busiest_percent(options: &ScaleOptions, point: &Point) -> f64 {
    let most_ns = point.usage.busy_ns.iter().max().copied().unwrap_or(0);
    most_ns as f64 / (options.run_us as f64 * 10.0)
}

fn row(system: String, load: &str, options: &ScaleOptions, point: &Point) -> Vec<String> {
    let each = |count: u64| count as f64 / point.commits().max(1) as f64;
    vec![
        system,
        load.to_owned(),
        format!("{:.0}", rate(options, point)),
        format!("{:.2}", mean_ms(point)),
        format!("{:.2}", point.latency_ns(990) as f64 / 1e6),
        format!("{:.0}", core_us(point)),
        format!("{:.2}", frames(point)),
        format!("{:.2}", each(point.counters.forced_writes)),
        format!("{:.2}", each(point.counters.lock_waits)),
        format!("{:.2}", deaths_percent(point)),
    ]
}
