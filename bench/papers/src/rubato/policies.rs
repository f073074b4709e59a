//! Beyond the paper: reads that are noted and judged at the commit (optimistic) against reads that
//! lock (pessimistic), over contention. Writes are formulas under both, so the second is what the
//! paper calls pessimistic for reads and optimistic for writes. Locks order transactions by their
//! first row in common; notes leave the order open until the votes (the paper's MOVE).

use super::ground::base;
use crate::figure::{Chart, Figure};
use crate::model::{core_us, frames, mean_ms, rate};
use crate::repetition::Lab;
use crate::tries::{deaths_percent, reasons};
use anyhow::Result;
use sim::scale::{Mix, Point, ScaleOptions, Spread, System};
use std::rc::Rc;

/// Rows of each node: the fewer, the hotter.
const ROWS: [u32; 5] = [5, 10, 30, 100, 1_000];
/// Where 10 is.
const TEN: usize = 1;
const NODES: u16 = 4;

/// A system, and its setting `read_policy` if it is not the default.
type Way = (System, Option<&'static str>);

/// The policies of formula first.
const WAYS: [Way; 4] = [
    (System::Formula, None),
    (System::Formula, Some("pessimistic")),
    (System::Interleaved, None),
    (System::Leap, None),
];

fn options(lab: &Lab, (system, policy): Way, rows: u32) -> ScaleOptions {
    let setting = |value: &str| ("read_policy".to_owned(), value.to_owned());
    ScaleOptions {
        nodes: NODES,
        system,
        mix: Mix::Ycsb { steps: 2, ops: 2 },
        spread: Spread::new(Vec::new(), 50),
        settings: policy.map(setting).into_iter().collect(),
        warehouses_per_node: 1,
        items: rows,
        run_us: if lab.quick { 50_000 } else { 500_000 },
        ..base(&lab.model)
    }
}

fn name((system, policy): Way) -> String {
    match (system, policy) {
        (System::Formula, None) => "formula, optimistic reads".to_owned(),
        (_, Some(policy)) => format!("{}, {policy} reads", system.name()),
        (_, None) => system.name().to_owned(),
    }
}

/// Both policies beside the baselines, over the number of rows that are contended for.
pub(super) fn policies(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{NODES} nodes of 1 core and {} clients, closed loop; a transaction reads or sets two rows \
         in each of two steps, half and half, half of its steps with one of another node; {}",
        base(&lab.model).clients_per_node,
        lab.model.describe_costs()
    );
    let title = "Policies (beyond the paper): optimistic and pessimistic reads";
    let mut figure = Figure::new("policies", title, place);
    figure.columns(&[
        "system",
        "rows of a node",
        "tx/s",
        "mean ms",
        "p99 ms",
        "us of a core",
        "messages",
        "lock waits",
        "deaths per 100",
    ]);
    let names: Vec<String> = ROWS.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "rows of a node", y, names.clone());
    let mut throughput = chart("throughput", "tx/s");
    let mut deaths = chart("deaths per 100 commits", "deaths");
    let mut all = Vec::new();
    for way in WAYS {
        let mut points = Vec::new();
        for rows in ROWS {
            let options = options(lab, way, rows);
            let point = lab.model.point(&options)?;
            figure.rows.push(row(way, rows, &options, &point));
            points.push((options, point));
        }
        let rates = points.iter().map(|(options, point)| rate(options, point));
        throughput.curve(&name(way), rates);
        let dead = points.iter().map(|(_, point)| deaths_percent(point));
        deaths.curve(&name(way), dead);
        figure.text.push(format!(
            "{} with {} rows a node, attempts that failed: {}.",
            name(way),
            ROWS[TEN],
            reasons(&points[TEN].1)
        ));
        all.push(points);
    }
    figure.charts = vec![throughput, deaths];
    judge(lab, &all);
    Ok(figure)
}

/// Expectation 6: points by way and number of rows.
fn judge(lab: &mut Lab, all: &[Vec<(ScaleOptions, Rc<Point>)>]) {
    let rates = |way: usize| -> Vec<f64> {
        let points = all[way].iter();
        points
            .map(|(options, point)| rate(options, point).max(1.0))
            .collect()
    };
    let formula = rates(0);
    let over = |way: usize| -> Vec<f64> {
        let others = rates(way);
        formula.iter().zip(others).map(|(of, to)| of / to).collect()
    };
    let listed = |values: &[f64], digits: usize| -> String {
        let words: Vec<String> = values.iter().map(|v| format!("{v:.digits$}")).collect();
        words.join(", ")
    };
    let pessimistic = over(1);
    let least = pessimistic.iter().copied().fold(f64::MAX, f64::min);
    let text = format!("{} times pessimistic reads", listed(&pessimistic, 2));
    // What is below is more than rounding.
    lab.expectations.judge("6a", text, least >= 0.995);
    let text = format!("{:.2} times", pessimistic[TEN]);
    lab.expectations.judge("6b", text, pessimistic[TEN] >= 1.1);
    let text = format!(
        "{} times two_phase; {} times leap",
        listed(&over(2), 2),
        listed(&over(3), 2)
    );
    lab.expectations.report("6c", text);
    let deaths = |way: usize| -> String {
        let points = all[way].iter();
        let each: Vec<f64> = points.map(|(_, point)| deaths_percent(point)).collect();
        listed(&each, 1)
    };
    let text = format!("{}; pessimistic {}", deaths(0), deaths(1));
    lab.expectations.report("6d", text);
}

fn row(way: Way, rows: u32, options: &ScaleOptions, point: &Point) -> Vec<String> {
    let waits = point.counters.lock_waits as f64 / point.commits().max(1) as f64;
    vec![
        name(way),
        rows.to_string(),
        format!("{:.0}", rate(options, point)),
        format!("{:.2}", mean_ms(point)),
        format!("{:.2}", point.latency_ns(990) as f64 / 1e6),
        format!("{:.0}", core_us(point)),
        format!("{:.2}", frames(point)),
        format!("{waits:.2}"),
        format!("{:.2}", deaths_percent(point)),
    ]
}
