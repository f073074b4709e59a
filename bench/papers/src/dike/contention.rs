//! Throughput while orders compete for one stock row (figure 21).

use super::ask::{Ask, is_other, run, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::settings_s;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;

/// Clients; the paper has 180.
const CLIENTS: u32 = 60;

/// Orders that compete. 1 is no contention, as in the paper.
fn intensities(quick: bool) -> Vec<u32> {
    match quick {
        true => vec![1, 30],
        false => vec![1, 10, 30, 50],
    }
}

pub(super) fn about_s(quick: bool) -> f64 {
    settings_s(quick, intensities(quick).len() * Place::WITH_GALERA.len())
}

fn ask(many: u32, quick: bool) -> Ask {
    Ask::mix("new_order:1")
        .with("clients", CLIENTS)
        .with("contention", many)
        .seconds(if quick { 5 } else { 8 })
        .isolation("read-committed")
}

/// Throughput and response time by the orders that compete.
pub(super) fn figure_21(lab: &mut Lab) -> Result<Figure> {
    let ask = |many| ask(many, lab.quick);
    let place = format!(
        "{NODES} nodes of Trellis, one server of others; 9 warehouses, {CLIENTS} clients; {}",
        ask(30).command(Place::ALL[0], lab.quick)
    );
    let many = intensities(lab.quick);
    let asks: Vec<Ask> = many.iter().map(|many| ask(*many)).collect();
    let mut figure = Figure::new("21", "Figure 21: throughput by contention", place);
    figure.columns(&[
        "compete",
        "where",
        "seen by the server",
        "tx/s",
        "p50 ms",
        "attempts again per 100",
    ]);
    let names = many.iter().map(u32::to_string).collect();
    let mut chart = Chart::by_name("NewOrder", "orders that compete", "tx/s", names);
    let mut bed = Bed::start()?;
    let mut falls = true;
    for place in Place::WITH_GALERA {
        let mut rates = Vec::new();
        for (many, ask) in many.iter().zip(&asks) {
            let label = format!("{many} compete");
            let data = Tables::even(9);
            let Some(runs) = run(lab, &mut figure, &mut bed, (place, data), ask, &label)? else {
                break;
            };
            rates.push(runs.mean_rate());
            let seen = runs.spread(|it| it["contention"]["phases"][0]["mean"].as_f64());
            figure.rows.push(vec![
                many.to_string(),
                place.name(),
                shown(seen, 1),
                shown(runs.rate(), 0),
                shown(runs.p50_ms(), 2),
                shown(runs.aborts_percent(), 2),
            ]);
        }
        if let (Some(first), Some(last)) = (rates.first(), rates.last()) {
            falls &= last < first;
            figure.text.push(format!(
                "{}: {:.2} of the throughput without contention is left{}.",
                place.name(),
                last / first,
                if is_other(place) {
                    " (READ COMMITTED)"
                } else {
                    ""
                }
            ));
        }
        chart.curve(&place.name(), rates);
    }
    figure.charts.push(chart);
    lab.expectations.judge(
        "3c",
        "throughput with the most competitors against one, everywhere".to_owned(),
        falls,
    );
    texts(&mut figure);
    Ok(figure)
}

fn texts(figure: &mut Figure) {
    figure.text.push(
        "Each node of Galera has locks of its own. Orders of different nodes for one row do not \
         wait for each other: one commits, and the others are aborted on their nodes or refused at \
         COMMIT, and run again. What the server says is the sum over its nodes; orders that are on \
         their way to run again are in no queue, so it is less than was asked for."
            .to_owned(),
    );
    figure.text.push(
        "The paper: every database loses, OceanBase most, because its client waits for \
         transactions that the server has rolled back; MySQL least. Here no client does that: a \
         server that aborts gets the order again."
            .to_owned(),
    );
}
