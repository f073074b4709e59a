//! TPC-C with the specification's pauses: figures 5 and 6.

use super::SYSTEMS;
use super::ground::base;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;
use sim::scale::{Point, ScaleOptions, System};

/// Memory of an idle connection, bytes, as measured (docs/measured/memory.md): the model knows
/// rows only.
const CONNECTION_BYTES: f64 = 5_120.0;
/// The paper's bound for every transaction, milliseconds.
const BOUND_MS: f64 = 600.0;

/// Terminals per node, of which so many share a warehouse.
fn options(lab: &Lab, system: System, terminals: u32, per_warehouse: u32) -> ScaleOptions {
    let second = 1_000_000;
    ScaleOptions {
        nodes: 1,
        system,
        paced: true,
        clients_per_node: terminals,
        warehouses_per_node: terminals.div_ceil(per_warehouse),
        items: 100,
        customers: 10,
        warmup_us: 22 * second,
        run_us: if lab.quick { 5 * second } else { 20 * second },
        ..base(&lab.model)
    }
}

/// What is drawn of a point.
struct Seen {
    new_orders_per_min: f64,
    cpu_percent: Vec<f64>,
    memory_mb: Vec<f64>,
    p99_ms: f64,
    longest_ms: f64,
}

fn seen(options: &ScaleOptions, point: &Point) -> Seen {
    let cores_ns = options.run_us as f64 * 1e3 * f64::from(options.shards);
    let sessions = f64::from(options.clients_per_node) * CONNECTION_BYTES;
    let busy = point.usage.busy_ns.iter();
    let bytes = point.row_bytes.iter();
    Seen {
        new_orders_per_min: point.committed[0] as f64 * 60e6 / options.run_us as f64,
        cpu_percent: busy.map(|ns| *ns as f64 * 100.0 / cores_ns).collect(),
        memory_mb: bytes
            .map(|bytes| (*bytes as f64 + sessions) / 1e6)
            .collect(),
        p99_ms: point.latency_ns(990) as f64 / 1e6,
        longest_ms: point.latency_ns(1_000) as f64 / 1e6,
    }
}

fn place(lab: &Lab) -> String {
    format!(
        "keying and think times of the specification; nodes of 1 core; a warehouse has 100 items \
         and 10 districts of 10 customers; {}",
        lab.model.describe_costs()
    )
}

/// One node with the specification's 10 terminals per warehouse.
pub(super) fn figure_5(lab: &mut Lab) -> Result<Figure> {
    let all: &[u32] = if lab.quick {
        &[500, 1_000]
    } else {
        &[1_000, 5_000, 10_000, 20_000]
    };
    let title = "Figure 5: one node, 10 terminals per warehouse";
    let mut figure = Figure::new("5", title, place(lab));
    let names: Vec<String> = all.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "terminals", y, names.clone());
    let mut orders = chart("new orders (tpmC of the model)", "1/min");
    let mut cpu = chart("use of the core", "%");
    let mut memory = chart("memory: rows and 5 KiB for a connection", "MB");
    for system in SYSTEMS {
        let mut each = Vec::new();
        for terminals in all {
            let options = options(lab, system, *terminals, 10);
            let point = lab.model.point(&options)?;
            each.push(seen(&options, &point));
        }
        orders.curve(
            system.name(),
            each.iter().map(|seen| seen.new_orders_per_min),
        );
        cpu.curve(system.name(), each.iter().map(|seen| seen.cpu_percent[0]));
        memory.curve(system.name(), each.iter().map(|seen| seen.memory_mb[0]));
    }
    figure.charts = vec![orders, cpu, memory];
    figure.text.push(
        "The paper's server is bound by its memory: with 32, 64 and 128 GB it serves more and more \
         clients until its eight cores are used. Here all rows are in memory, and what is drawn is \
         how much; the warehouses are small."
            .to_owned(),
    );
    Ok(figure)
}

/// By nodes, with the paper's 50 terminals per warehouse: use of the main node and of the others.
pub(super) fn figure_6(lab: &mut Lab) -> Result<Figure> {
    let title = "Figure 6: 50 terminals per warehouse, by nodes";
    let mut figure = Figure::new("6", title, place(lab));
    figure.columns(&[
        "system",
        "nodes",
        "terminals",
        "new orders/min",
        "p99 ms",
        "longest ms",
        "CPU main",
        "CPU others",
        "MB main",
        "MB others",
    ]);
    let most = if lab.quick { 2_000 } else { 25_000 };
    // As many terminals as two cores and their memory carry in a model.
    let each = if lab.quick { 200 } else { 1_000 };
    let by_nodes: &[(u16, u32)] = match lab.quick {
        true => &[(1, most), (2, each), (4, each)],
        false => &[
            (1, most / 5),
            (1, most),
            (2, each),
            (4, each),
            (8, each),
            (16, each),
        ],
    };
    for system in SYSTEMS {
        for (nodes, terminals) in by_nodes {
            let options = ScaleOptions {
                nodes: *nodes,
                ..options(lab, system, *terminals, 50)
            };
            let point = lab.model.point(&options)?;
            let seen = seen(&options, &point);
            figure.rows.push(row(&options, &seen));
            if system == System::Formula && *terminals == most {
                let text = format!(
                    "{:.1} ms at most, {:.2} ms for 99 %, {} transactions",
                    seen.longest_ms,
                    seen.p99_ms,
                    point.commits()
                );
                let met = seen.longest_ms < BOUND_MS && point.commits() > 0;
                lab.expectations.judge("3b", text, met);
            }
        }
    }
    figure.text.push(format!(
        "The paper goes from 25,000 terminals and one server to 325,000 and 16; here one node has \
         {most}, and of several nodes each has {each}: that many sessions fit in the memory of the \
         machine that computes the model. The main node of the paper takes all connections and \
         runs the clients. Here every node takes its own, and main is node 1, which has nothing \
         more to do than the others."
    ));
    Ok(figure)
}

fn row(options: &ScaleOptions, seen: &Seen) -> Vec<String> {
    let others = |values: &[f64], unit: &str| match values.len() {
        0 | 1 => "-".to_owned(),
        count => {
            let sum: f64 = values[1..].iter().sum();
            format!("{:.1}{unit}", sum / (count - 1) as f64)
        }
    };
    vec![
        options.system.name().to_owned(),
        options.nodes.to_string(),
        (options.clients_per_node * u32::from(options.nodes)).to_string(),
        format!("{:.0}", seen.new_orders_per_min),
        format!("{:.2}", seen.p99_ms),
        format!("{:.2}", seen.longest_ms),
        format!("{:.1} %", seen.cpu_percent[0]),
        others(&seen.cpu_percent, " %"),
        format!("{:.1}", seen.memory_mb[0]),
        others(&seen.memory_mb, ""),
    ]
}
