//! TPC-C by the number of nodes, as fast as it goes: table 2.

use super::SYSTEMS;
use super::ground::{describe, with};
use crate::figure::{Chart, Figure};
use crate::model::{busy, core_us, frames, rate};
use crate::repetition::Lab;
use anyhow::Result;
use sim::scale::{ScaleOptions, System};

/// Percentages of remote transactions.
const REMOTE: [u64; 2] = [0, 10];

/// New orders by the number of nodes, at once without pauses.
pub(super) fn table_2(lab: &mut Lab) -> Result<Figure> {
    let nodes: &[u16] = if lab.quick {
        &[1, 2, 4]
    } else {
        &[1, 2, 4, 8, 16]
    };
    let title = "Table 2, figure 6.f: throughput by nodes (here: without pauses)";
    let mut figure = Figure::new("table2", title, describe(&lab.model));
    figure.columns(&[
        "system",
        "remote",
        "nodes",
        "tx/s",
        "new orders/min",
        "times 1 node",
        "us of a core",
        "messages",
        "cores used",
    ]);
    let names: Vec<String> = nodes.iter().map(u16::to_string).collect();
    let chart = |title: &str| Chart::by_name(title, "nodes", "new orders/min", names.clone());
    for remote_percent in REMOTE {
        let mut drawn = chart(&format!("{remote_percent} % remote")).logarithmic();
        for system in SYSTEMS {
            let mut rates = Vec::new();
            let mut orders = Vec::new();
            for &nodes in nodes {
                let options = ScaleOptions {
                    nodes,
                    // With few nodes little happens in a while.
                    run_us: lab.model.base().run_us * if nodes < 4 { 3 } else { 1 },
                    ..with(lab, system, remote_percent)
                };
                let point = lab.model.point(&options)?;
                rates.push(rate(&options, &point));
                orders.push(point.committed[0] as f64 * 60e6 / options.run_us as f64);
                figure.rows.push(vec![
                    system.name().to_owned(),
                    format!("{remote_percent} %"),
                    nodes.to_string(),
                    format!("{:.0}", rate(&options, &point)),
                    format!("{:.0}", orders[orders.len() - 1]),
                    format!("{:.2}", rates[rates.len() - 1] / rates[0].max(1.0)),
                    format!("{:.0}", core_us(&point)),
                    format!("{:.2}", frames(&point)),
                    format!("{:.0} %", busy(&options, &point) * 100.0),
                ]);
            }
            let grown = rates[rates.len() - 1] / rates[0].max(1.0);
            if system == System::Formula && remote_percent == 10 {
                let text = format!(
                    "{grown:.1} times from 1 to {} nodes",
                    nodes[nodes.len() - 1]
                );
                lab.expectations.judge("3a", text, grown >= 15.0);
            }
            drawn.curve(system.name(), orders);
        }
        figure.charts.push(drawn);
    }
    figure.text.push(
        "The paper has 28,935 new orders a minute with one server and 363,759 with 16, 12.6 times, \
         with keying times that its 50 clients per warehouse keep. With 10 % remote a single node \
         has nothing that is remote: its transactions are cheaper than those of any other number \
         of nodes."
            .to_owned(),
    );
    Ok(figure)
}
