//! Scalability: figure 14.a.

use super::SYSTEMS;
use crate::Lab;
use crate::figure::{Chart, Figure};
use crate::model::{core_us, frames, rate};
use anyhow::Result;
use sim::scale::{ScaleOptions, System};

/// Throughput against the number of nodes at 10 % remote accesses.
pub(super) fn figure_14(lab: &mut Lab) -> Result<Figure> {
    let nodes: &[u16] = if lab.quick {
        &[2, 4, 8]
    } else {
        &[4, 8, 16, 32, 64]
    };
    let place = format!("10 % remote; {}", lab.model.describe());
    let mut figure = Figure::new("14", "Figure 14.a: scalability", place);
    let names: Vec<String> = nodes.iter().map(u16::to_string).collect();
    let mut chart = Chart::by_name("throughput", "nodes", "tx/s", names.clone()).logarithmic();
    let mut each = Chart::by_name("throughput per node", "nodes", "tx/s per node", names);
    let (first, last) = (nodes[0], nodes[nodes.len() - 1]);
    let linear = f64::from(last) / f64::from(first);
    for system in SYSTEMS {
        let (mut rates, mut ends) = (Vec::new(), Vec::new());
        for &nodes in nodes {
            let options = options(lab, system, nodes);
            let point = lab.model.point(&options)?;
            rates.push(rate(&options, &point));
            ends.push(point);
        }
        let per_node = rates.iter().zip(nodes);
        each.curve(
            system.name(),
            per_node.map(|(rate, nodes)| rate / f64::from(*nodes)),
        );
        let grown = rates[rates.len() - 1] / rates[0].max(1.0);
        if system == System::Leap {
            let text = format!(
                "{:.2} of linear ({grown:.1} times from {first} to {last} nodes)",
                grown / linear
            );
            lab.expectations.judge("4a", text, grown / linear >= 0.9);
        }
        let (from, to) = (&ends[0], &ends[ends.len() - 1]);
        figure.text.push(format!(
            "{}: {grown:.1} times from {first} to {last} nodes, {:.2} of linear; {:.0} us of a \
             core and {:.1} messages per transaction with {first} nodes, {:.0} us and {:.1} with \
             {last}.",
            system.name(),
            grown / linear,
            core_us(from),
            frames(from),
            core_us(to),
            frames(to)
        ));
        chart.curve(system.name(), rates);
    }
    figure.charts = vec![chart, each];
    figure.text.push(
        "The paper's H-Store grows 8 times from 4 to 64 nodes and L-Store almost linearly up to \
         32. A serial shard here waits only for the shards that a transaction touches."
            .to_owned(),
    );
    Ok(figure)
}

/// A point of the curve. With many nodes more happens in a while, so a shorter one says the same.
fn options(lab: &Lab, system: System, nodes: u16) -> ScaleOptions {
    let base = lab.model.base();
    let shorter = if nodes > 16 { 2 } else { 1 };
    ScaleOptions {
        nodes,
        system,
        run_us: base.run_us / shorter,
        ..base
    }
}
