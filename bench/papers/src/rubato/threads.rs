//! Stages against threads: figure 8.
//!
//! The paper compares stages of one thread with stages of several. A shard is a thread with all the
//! stages of its rows. Several shards per core are what threads are: more of them than cores, with
//! the same work.

use super::SYSTEMS;
use super::cluster::{COLUMNS, plan, run, run_s};
use crate::cluster::{Cluster, NODES};
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;
use sim::scale::{Mix, homes};
use std::time::Duration;

/// Warehouses of a node: each of the most shards has one.
const WAREHOUSES: u32 = 8;

fn shards(quick: bool) -> &'static [u16] {
    if quick { &[1, 4] } else { &[1, 2, 4, 8] }
}

/// Seconds that all of it takes, about.
pub(super) fn about_s(quick: bool) -> f64 {
    (shards(quick).len() * SYSTEMS.len()) as f64 * run_s(quick)
}

/// TPC-C by the number of threads of a node.
pub(super) fn figure_8(lab: &mut Lab) -> Result<Figure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let place = format!(
        "{NODES} real nodes on loopback, which share {cores} cores with the clients; TPC-C, 10 % \
         remote, {WAREHOUSES} warehouses and 4 clients per node; a shard is a thread that runs all \
         stages of its rows"
    );
    let mut figure = Figure::new("8", "Figure 8: stages of one thread against threads", place);
    figure.columns(&COLUMNS);
    let all = shards(lab.quick);
    let names = all.iter().map(u16::to_string).collect();
    let mut chart = Chart::by_name("throughput", "threads of a node", "tx/s", names);
    let mut rates = vec![Vec::new(); SYSTEMS.len()];
    for &shards in all {
        let mut cluster = Cluster::start_with(Duration::ZERO, shards)?;
        for (system, rates) in SYSTEMS.into_iter().zip(&mut rates) {
            let plan = plan(Mix::TpccFull, homes(NODES, shards, WAREHOUSES), 10);
            let load = format!("{shards} threads of a node");
            let names = ("threads", load.as_str());
            rates.push(run(lab, &mut figure, &mut cluster, names, (system, &plan))?);
        }
        cluster.stop()?;
    }
    for (system, rates) in SYSTEMS.into_iter().zip(rates) {
        let last = rates.len() - 1;
        figure.text.push(format!(
            "{}: {} threads of a node have {:.2} of the throughput of one.",
            system.name(),
            all[last],
            rates[last] / rates[0].max(1.0)
        ));
        chart.curve(system.name(), rates);
    }
    figure.charts.push(chart);
    figure.text.push(
        "In the paper stages of one thread are ahead of stages of several, on four servers of \
         eight cores. Here three threads share two cores from the start, and every thread more \
         adds messages between shards of a node."
            .to_owned(),
    );
    Ok(figure)
}
