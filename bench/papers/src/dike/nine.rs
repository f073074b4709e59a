//! Nine nodes at a low fixed rate: counts, not throughput. Nine processes share the cores with the
//! clients, so how fast they are says nothing.

use super::ask::{Ask, Runs, run, shown};
use super::bed::{Bed, Place, Tables};
use super::control::judge_degrees;
use super::settings_s;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use serde_json::Value;
use sim::scale::System;

/// Nodes of the paper's cluster.
const NODES: u16 = 9;
/// The paper has 20 for each node; these are enough for every node to have some.
const WAREHOUSES: u32 = 27;
/// Transactions due in a second.
const RATE: u32 = 40;
/// Those of figures 17 a and 19.
const DEGREES: [u32; 2] = [3, 5];

fn ratios(quick: bool) -> Vec<u32> {
    match quick {
        true => vec![100],
        false => vec![1, 10, 20, 40, 80, 100],
    }
}

fn places(quick: bool) -> &'static [Place] {
    match quick {
        true => &[Place::Trellis(System::Interleaved)],
        false => &Place::TRELLIS,
    }
}

pub(super) fn about_s(quick: bool) -> f64 {
    let settings = ratios(quick).len() * DEGREES.len() * places(quick).len();
    settings_s(quick, settings) + 20.0
}

/// Ratio and degree on nine nodes, and what a transaction takes.
pub(super) fn figure(lab: &mut Lab) -> Result<Figure> {
    let ask = |place, ratio, degree| {
        Ask::mix("new_order:1").with("rate", RATE).distributed(
            place,
            ratio,
            degree,
            u32::from(NODES),
        )
    };
    let place = places(lab.quick)[0];
    let text = format!(
        "{NODES} real nodes of one shard, {WAREHOUSES} warehouses, {RATE} NewOrders a second; {}",
        ask(place, 20, 5).command(place, lab.quick)
    );
    let mut figure = Figure::new(
        "nine",
        "Figures 17 (a) and 19 on nine nodes, in counts",
        text,
    );
    figure.columns(&[
        "ratio",
        "degree",
        "where",
        "ratio seen",
        "nodes touched: transactions",
        "messages per tx",
        "forced writes per tx",
        "p50 ms",
    ]);
    let ratios = ratios(lab.quick);
    let mut bed = Bed::start_of(NODES)?;
    let (mut wrong, mut passed) = (0, true);
    for degree in DEGREES {
        let title = format!("messages per NewOrder, degree {degree}");
        let names = ratios.iter().map(|ratio| format!("{ratio} %")).collect();
        let mut chart = Chart::by_name(&title, "distributed NewOrders", "messages", names);
        for place in places(lab.quick) {
            let mut messages = Vec::new();
            for ratio in &ratios {
                let label = format!("nine nodes, ratio {ratio} %, degree {degree}");
                let (ask, tables) = (ask(*place, *ratio, degree), Tables::even(WAREHOUSES));
                let runs = run(lab, &mut figure, &mut bed, (*place, tables), &ask, &label)?;
                let runs = runs.context("Trellis is there")?;
                passed &= runs.passed();
                let wrong_of = |it: &Value| it["distribution"]["wrong"].as_u64();
                wrong += runs.results.iter().filter_map(wrong_of).sum::<u64>();
                messages.push(runs.messages().map_or(f64::NAN, |it| it.mean));
                figure.rows.push(row((*ratio, degree), *place, &runs));
            }
            chart.curve(&place.name(), messages);
        }
        figure.charts.push(chart);
    }
    figure.text.push(
        "At so low a rate, what nodes say to each other without a transaction may be a part of the \
         messages: compare rows, and not these numbers with those of figure 19."
            .to_owned(),
    );
    judge_degrees(lab, "1c", wrong, passed);
    Ok(figure)
}

fn row((ratio, degree): (u32, u32), place: Place, runs: &Runs) -> Vec<String> {
    let seen = runs.spread(|it| {
        let ratio = it["distribution"]["observed_by_server"]["ratio"].as_f64()?;
        Some(100.0 * ratio)
    });
    vec![
        format!("{ratio} %"),
        degree.to_string(),
        place.name(),
        format!("{} %", shown(seen, 2)),
        histogram(&runs.results),
        shown(runs.messages(), 2),
        shown(runs.spread(|it| it["per_txn"]["forced_writes"].as_f64()), 2),
        shown(runs.p50_ms(), 1),
    ]
}

/// Committed transactions by nodes, as the servers of all runs counted.
fn histogram(results: &[Value]) -> String {
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for result in results {
        let found = result["distribution"]["observed_by_server"]["histogram"].as_object();
        for (nodes, count) in found.into_iter().flatten() {
            let pair = nodes.parse().ok().zip(count.as_u64());
            let Some((nodes, count)) = pair else { continue };
            match sums.iter_mut().find(|(known, _)| *known == nodes) {
                Some((_, sum)) => *sum += count,
                None => sums.push((nodes, count)),
            }
        }
    }
    sums.sort_unstable();
    let shown = sums
        .iter()
        .map(|(nodes, count)| format!("{nodes}: {count}"));
    shown.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_of_several_runs_are_added() {
        let result = |one: u64| {
            let mut result = json!({});
            result["distribution"]["observed_by_server"]["histogram"]["1"] = json!(one);
            result["distribution"]["observed_by_server"]["histogram"]["10"] = json!(2);
            result
        };
        assert_eq!(histogram(&[result(5), result(6)]), "1: 11, 10: 4");
        assert_eq!(histogram(&[json!({})]), "");
    }
}
