//! Beyond the paper: one hot counter, and a hot row for a long time.

use crate::Lab;
use crate::figure::Figure;
use crate::model::{mean_ms, moved, rate};
use crate::tries::Tries;
use anyhow::Result;
use sim::scale::{Mix, ScaleOptions, Spread, System};

/// Links of these experiments, microseconds one way.
const LINK_US: u64 = 1_000;

fn options(lab: &Lab, system: System, way: Way, clients_per_node: u32) -> ScaleOptions {
    ScaleOptions {
        system,
        clients_per_node,
        mix: way.mix(),
        spread: Spread::new(Vec::new(), 0),
        warmup_us: 200_000,
        run_us: if lab.quick { 300_000 } else { 600_000 },
        ..lab.model.base()
    }
}

/// Blind increments of one counter from all nodes, against moving its row.
pub(super) fn counter(lab: &mut Lab) -> Result<Figure> {
    let nodes = lab.model.nodes();
    let place = format!(
        "{nodes} nodes, links of 1 ms; {}",
        lab.model.describe_costs()
    );
    let title = "Hot counter (beyond the paper): increments of one row from all nodes";
    let mut figure = Figure::new("counter", title, place);
    figure.columns(&[
        "system",
        "clients per node",
        "transaction",
        "tx/s",
        "mean ms",
        "moves/s",
    ]);
    let mut rates = Vec::new();
    let mut moves_per_s = 0.0;
    for (system, clients) in [
        (System::Leap, 16),
        (System::Leap, 1),
        (System::Interleaved, 16),
    ] {
        for way in WAYS {
            let options = options(lab, system, way, clients);
            let point = lab.model.point_at(&options, LINK_US)?;
            let moved_per_s = moved(&point) * rate(&options, &point);
            figure.rows.push(vec![
                system.name().to_owned(),
                clients.to_string(),
                way.name.to_owned(),
                format!("{:.0}", rate(&options, &point)),
                format!("{:.2}", mean_ms(&point)),
                format!("{moved_per_s:.0}"),
            ]);
            rates.push(rate(&options, &point));
            if rates.len() == WAYS.len() {
                moves_per_s = moved_per_s;
            }
        }
    }
    judge(lab, &mut figure, &rates, moves_per_s);
    Ok(figure)
}

/// Expectation 5: rates by system, clients and way, and leap's moves per second where the value
/// is asked for.
fn judge(lab: &mut Lab, figure: &mut Figure, rates: &[f64], moves_per_s: f64) {
    let over = |one: usize, other: usize| rates[one] / rates[other].max(1.0);
    lab.expectations.judge(
        "5a",
        format!(
            "{:.1} times with 16 clients per node; {:.1} in a block",
            over(0, 2),
            over(1, 2)
        ),
        over(0, 2) >= 20.0,
    );
    let per_move = rates[0] / moves_per_s.max(1.0);
    lab.expectations.report(
        "5b",
        format!(
            "{:.1} times; {per_move:.0} times one increment per move",
            over(3, 5)
        ),
    );
    figure.text.push(format!(
        "Who asks for the value in a transaction of his own node needs the row itself: that is \
         what ownership moves give. With 16 clients per node the row moves {moves_per_s:.0} times \
         a second, and while it stays {:.0} clients have their turn, so moving gives {:.0} a \
         second; blind increments have {:.1} times of that, and {per_move:.0} times one increment \
         per move. With one client per node they have {:.1} times. Those of a block that counts up \
         a row of its own too have {:.1} times.",
        rates[2] / moves_per_s.max(1.0),
        rates[2],
        over(0, 2),
        over(3, 5),
        over(1, 2)
    ));
    figure.text.push(format!(
        "Interleaved two_phase has {:.0} blind, {:.0} blind in a block and {:.0} with the value.",
        rates[6], rates[7], rates[8]
    ));
}

/// A kind of increment.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) name: &'static str,
    block: bool,
    returning: bool,
}

impl Way {
    pub(super) fn mix(self) -> Mix {
        Mix::Counter {
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
        "3 nodes of 2 clients, links of 1 ms, {minutes} min of simulated time; every NewOrder \
         takes one and the same row of STOCK; {}",
        lab.model.describe_costs()
    );
    let mut figure = Figure::new(
        "hotspot",
        "Hot spot (beyond the paper): one row for a long time",
        place,
    );
    let point = lab.model.point_at(&options, LINK_US)?;
    figure.columns(&["tries", "transactions"]);
    for (tries, count) in &point.tries {
        figure.rows.push(vec![tries.to_string(), count.to_string()]);
    }
    let tries = Tries::of(&point);
    let longest_ms = point.latency_ns(1_000) as f64 / 1e6;
    let text = format!(
        "{} transactions in {minutes} min, {} tries at most, {longest_ms:.0} ms at most",
        point.commits(),
        tries.most
    );
    let met = tries.most <= STARVED_TRIES && longest_ms < STARVED_MS && point.commits() > 0;
    lab.expectations.judge("3c", text, met);
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
