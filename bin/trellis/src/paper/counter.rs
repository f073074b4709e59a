//! Beyond the paper: one hot counter, and a hot row for a long time.

use super::Lab;
use super::figure::Figure;
use super::model::{mean_ms, rate};
use super::remote::Tries;
use anyhow::Result;
use sim::scale::{Load, ScaleOptions, Spread, System};

/// Links of these experiments, microseconds one way.
const LINK_US: u64 = 1_000;

/// Blind increments of one counter from all nodes, against moving its row.
pub(super) fn counter(lab: &mut Lab) -> Result<Figure> {
    let nodes = if lab.quick { 3 } else { 8 };
    let place = format!("{nodes} nodes, links of 1 ms; {}", lab.model.describe());
    let title = "Beyond the paper: increments of one hot counter";
    let mut figure = Figure::new("counter", title, place);
    figure.columns(&["system", "transaction", "tx/s", "mean ms", "rows moved"]);
    let mut rates = Vec::new();
    for system in [System::Leap, System::Interleaved] {
        for way in WAYS {
            let options = ScaleOptions {
                nodes,
                system,
                load: way.load(),
                spread: Spread::new(Vec::new(), 0),
                warmup_us: 200_000,
                run_us: 1_000_000,
                ..lab.model.base()
            };
            let point = lab.model.point_at(&options, LINK_US)?;
            let moves = point.moves.rp_o + point.moves.r_po + point.moves.r_p_o;
            figure.rows.push(vec![
                system.name().to_owned(),
                way.name.to_owned(),
                format!("{:.0}", rate(&options, &point)),
                format!("{:.2}", mean_ms(&point)),
                moves.to_string(),
            ]);
            rates.push(rate(&options, &point));
        }
    }
    let ratio = rates[0] / rates[2].max(1.0);
    lab.expect(
        "5",
        "model: blind increments at 1 ms links, at least 20 times what moving the row gives",
        format!(
            "{ratio:.1} times ({:.1} in a block)",
            rates[1] / rates[2].max(1.0)
        ),
        ratio >= 20.0,
    );
    figure.text.push(format!(
        "Who asks for the value in a transaction of his own node needs the row itself: that is \
         what ownership moves alone give. Blind increments have {ratio:.1} times of that; those of \
         a block that counts up a row of its own too have {:.1} times.",
        rates[1] / rates[2].max(1.0)
    ));
    Ok(figure)
}

/// A kind of increment.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    block: bool,
    returning: bool,
}

impl Way {
    pub(super) fn load(self) -> Load {
        Load::Counter {
            block: self.block,
            returning: self.returning,
        }
    }
}

/// Blind and alone, blind in a block, with the value in a block.
pub(super) const WAYS: [Way; 3] = [
    Way {
        name: "blind",
        block: false,
        returning: false,
    },
    Way {
        name: "blind, in a block",
        block: true,
        returning: false,
    },
    Way {
        name: "RETURNING, in a block",
        block: true,
        returning: true,
    },
];

/// Every NewOrder wants one row; for a long time.
pub(super) fn hotspot(lab: &mut Lab) -> Result<Figure> {
    let minutes = if lab.quick { 1 } else { 20 };
    let base = lab.model.base();
    let options = ScaleOptions {
        nodes: 3,
        clients_per_node: 2,
        warehouses_per_node: 2,
        items: 100,
        spread: Spread {
            hot_percent: 100,
            ..base.spread.clone()
        },
        warmup_us: 100_000,
        run_us: minutes * 60_000_000,
        ..base
    };
    let place = format!(
        "3 nodes, 2 clients each, links of 1 ms, {minutes} minutes of simulated time; every \
         NewOrder takes one and the same row of STOCK"
    );
    let mut figure = Figure::new("hotspot", "Starvation: a hot row for a long time", place);
    let point = lab.model.point_at(&options, LINK_US)?;
    figure.columns(&["tries", "transactions"]);
    for (tries, count) in &point.tries {
        figure.rows.push(vec![tries.to_string(), count.to_string()]);
    }
    let tries = Tries::of(&point);
    let longest_ms = point.latency_ns(1_000) as f64 / 1e6;
    lab.expect(
        "3b",
        "nobody starves in 20 minutes of simulated hot-spot load",
        format!(
            "{} transactions in {minutes} min, {} tries at most, {longest_ms:.0} ms at most",
            point.commits(),
            tries.most
        ),
        tries.most <= STARVED_TRIES && longest_ms < STARVED_MS && point.commits() > 0,
    );
    figure.text.push(format!(
        "Mean latency {:.1} ms, p99 {:.1} ms, the longest {longest_ms:.0} ms.",
        mean_ms(&point),
        point.latency_ns(990) as f64 / 1e6
    ));
    Ok(figure)
}

/// More tries than this, or a longer wait, would be starvation.
const STARVED_TRIES: u64 = 100;
const STARVED_MS: f64 = 10_000.0;
