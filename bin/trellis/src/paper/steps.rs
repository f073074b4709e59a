//! Dependent steps with intermediate results: figure 11.

use super::Lab;
use super::figure::{Chart, Figure};
use super::model::{SYSTEMS, rate};
use anyhow::Result;
use sim::scale::{Load, ScaleOptions, Spread};

const STEPS: [u32; 4] = [1, 2, 4, 8];
/// Operations of a step: one of ten is remote.
const OPS: u32 = 10;

/// Throughput of key-value transactions against the number of steps.
pub(super) fn figure_11(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{} nodes, key-value rows: each step has {OPS} operations, one of them on another node; \
         the keys of a step come from the result of the one before; {}",
        lab.model.nodes(),
        lab.model.describe()
    );
    let title = "Figure 11: impact of the number of intermediate results";
    let mut figure = Figure::new("11", title, place);
    let names: Vec<String> = STEPS.iter().map(u32::to_string).collect();
    let chart = |title, y| Chart::by_name(title, "steps", y, names.clone());
    let mut throughput = chart("throughput", "tx/s").logarithmic();
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for system in SYSTEMS {
        let mut of_system = Vec::new();
        for steps in STEPS {
            let base = lab.model.base();
            let options = ScaleOptions {
                system,
                load: Load::Ycsb { steps, ops: OPS },
                spread: Spread::new(Vec::new(), 100),
                ..base
            };
            let point = lab.model.point(&options)?;
            of_system.push(rate(&options, &point));
        }
        throughput.curve(system.name(), of_system.clone());
        rates.push(of_system);
    }
    let mut speedup = chart("leap's throughput over the others'", "ratio");
    for (other, name) in [
        (2, "over two_phase serial"),
        (1, "over two_phase interleaved"),
    ] {
        let pairs = rates[0].iter().zip(&rates[other]);
        speedup.curve(name, pairs.map(|(leap, other)| leap / other.max(1.0)));
    }
    let ends: Vec<f64> = [0, 3]
        .map(|at| rates[0][at] / rates[2][at].max(1.0))
        .to_vec();
    figure.charts = vec![speedup, throughput];
    figure.text.push(format!(
        "The paper's speedup over H-Store grows from 3.2 with one step to 5.1 with eight; here it \
         goes from {:.2} to {:.2}. A step is a round trip of the client under every system, so \
         what two_phase pays more per step is the round trip to the other node, which leap pays \
         too when the row is not there yet.",
        ends[0], ends[1]
    ));
    Ok(figure)
}
