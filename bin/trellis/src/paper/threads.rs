//! How many transactions a node runs at a time, and how many cores it has: figures 8 and 17.

use super::Lab;
use super::figure::{Chart, Figure};
use super::model::{SYSTEMS, rate};
use anyhow::Result;
use sim::scale::{ScaleOptions, Spread, System};

/// Transactions at a time per node stand for the paper's threads: a thread of L-Store has one
/// transaction, which waits for its rows.
const AT_A_TIME: [u32; 6] = [2, 4, 8, 16, 32, 48];
const REMOTE: [u64; 4] = [1, 5, 10, 30];
/// Nodes of these two figures.
const NODES: u16 = 4;

/// Throughput and bandwidth against the number of transactions at a time.
pub(super) fn figure_8(lab: &mut Lab) -> Result<Figure> {
    let place = format!("{NODES} nodes; {}", lab.model.describe());
    let title = "Figure 8: impact of the number of threads (here: transactions at a time)";
    let mut figure = Figure::new("8", title, place);
    let names: Vec<String> = AT_A_TIME.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "transactions at a time", y, names.clone());
    let mut throughput = chart("a. throughput of leap", "tx/s");
    let mut bandwidth = chart("b. bandwidth of leap, all nodes", "Mbit/s");
    for remote_percent in REMOTE {
        let (mut rates, mut bits) = (Vec::new(), Vec::new());
        for clients_per_node in AT_A_TIME {
            let base = lab.model.base();
            let options = ScaleOptions {
                nodes: NODES,
                clients_per_node,
                spread: Spread {
                    remote_percent,
                    ..base.spread.clone()
                },
                ..base
            };
            let point = lab.model.point(&options)?;
            rates.push(rate(&options, &point));
            bits.push(point.usage.frame_bytes as f64 * 8.0 / options.run_us as f64);
        }
        let name = format!("{remote_percent} % remote");
        throughput.curve(&name, rates);
        bandwidth.curve(&name, bits);
    }
    figure.charts = vec![throughput, bandwidth];
    figure.text.push(
        "The paper's optimum is 32 threads on 4 cores; here a transaction that waits costs no \
         thread, so throughput rises until the core is busy and then stays, less what more \
         conflicts cost."
            .to_owned(),
    );
    Ok(figure)
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
            let base = lab.model.base();
            let options = ScaleOptions {
                nodes: NODES,
                shards,
                system,
                clients_per_node: 8 * u32::from(shards),
                warehouses_per_node: u32::from(shards),
                spread: Spread {
                    remote_percent: 0,
                    ..base.spread.clone()
                },
                ..base
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
        found.map_or(0.0, |(_, rates)| rates[3])
    };
    figure.text.push(format!(
        "With four cores leap has {:.2} of two_phase serial and {:.2} of two_phase interleaved. \
         The paper's L-Store stays below H-Store, because it locks rows where H-Store locks \
         nothing. A core of the model does nothing else, so there is no peak at four.",
        of(System::Leap) / of(System::Serial).max(1.0),
        of(System::Leap) / of(System::Interleaved).max(1.0)
    ));
    Ok(figure)
}
