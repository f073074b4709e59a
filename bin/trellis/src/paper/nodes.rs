//! Scalability: figure 14.a.

use super::Lab;
use super::figure::{Chart, Figure};
use super::model::{SYSTEMS, rate};
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
    let names = nodes.iter().map(u16::to_string).collect();
    let mut chart = Chart::by_name("throughput", "nodes", "tx/s", names).logarithmic();
    let mut growth = Vec::new();
    for system in SYSTEMS {
        let mut rates = Vec::new();
        for &nodes in nodes {
            let mut options = ScaleOptions {
                nodes,
                system,
                ..lab.model.base()
            };
            if nodes > 16 {
                // Twice or four times as much happens in a while; half of it says the same.
                options.run_us /= 2;
            }
            let point = lab.model.point(&options)?;
            rates.push(rate(&options, &point));
        }
        let linear = f64::from(nodes[nodes.len() - 1]) / f64::from(nodes[0]);
        let grown = rates[rates.len() - 1] / rates[0].max(1.0);
        growth.push((system, grown, grown / linear));
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    for (system, grown, of_linear) in growth {
        if system == System::Leap {
            lab.expect(
                "4",
                "model: leap at least 0.9 of linear from 4 to 64 nodes at 10 % remote",
                format!("{of_linear:.2} of linear ({grown:.1} times)"),
                of_linear >= 0.9 && !lab.quick,
            );
        }
        figure.text.push(format!(
            "{}: {grown:.1} times from {} to {} nodes, {of_linear:.2} of linear.",
            system.name(),
            nodes[0],
            nodes[nodes.len() - 1]
        ));
    }
    figure.text.push(
        "The paper's H-Store grows 8 times from 4 to 64 nodes, because its transactions name all \
         their partitions; here a serial shard waits only for those that a transaction touches, \
         so the baseline scales too."
            .to_owned(),
    );
    Ok(figure)
}
