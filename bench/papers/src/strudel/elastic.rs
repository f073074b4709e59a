//! Section 8.7: servers that come while users go on, and loads.

use super::ask::{self, Runs, Way, shown};
use super::bed::{Bed, NODES, Place};
use crate::figure::{Chart, Curve, Figure};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::Instant;

/// Seconds of each half of a quick run.
const QUICK_S: f64 = 3.0;
/// An answer comes after at most this many seconds where nothing is loaded again: the time in which
/// answers are counted is one of them.
const GAP_S_MAX: f64 = 2.0;

/// How a store gets more servers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// Its clients route by group, so all data are loaded again.
    Reload,
    /// Its clients come through all nodes instead of one; the data stay where they are, or follow.
    Entrance,
}

/// Before and after.
struct Step {
    name: String,
    growth: Growth,
    before: Runs,
    after: Runs,
    /// Seconds from the last answers of the one to the first of the other.
    gap_s: f64,
}

/// The stores that can have more servers.
fn places() -> Vec<(Place, Growth)> {
    let routed = Place::others().filter(|place| place.of(2).is_some());
    let routed = routed.map(|place| (place, Growth::Reload));
    let trellis = Place::trellis(NODES).map(|place| (place, Growth::Entrance));
    routed.chain(trellis).collect()
}

/// Servers after the growth.
const SERVERS: usize = 3;

pub(super) fn about_s(quick: bool) -> f64 {
    let each = if quick { 2.0 * (QUICK_S + 1.0) } else { 20.0 };
    places().len() as f64 * each
}

/// Throughput by second while a store gets from one server to three.
pub(super) fn elasticity(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "16 users without pauses, links of 2 ms one way; {}, for each set of servers",
        ask::command("elasticity")
    );
    let title = "Section 8.7: from one server to three under load";
    let mut figure = Figure::new("elasticity", title, place);
    figure.columns(&[
        "store",
        "how",
        "before/s",
        "after/s",
        "seconds without answers",
    ]);
    let mut chart = Chart {
        title: "throughput".to_owned(),
        x_title: "seconds",
        y_title: "interactions/s",
        log_y: false,
        x_names: Vec::new(),
        curves: Vec::new(),
    };
    let mut document = ask::documents("elasticity")?.remove(0);
    if lab.quick {
        document["phases"]["measure_s"] = json!(QUICK_S);
    }
    let mut bed = Bed::new()?;
    let mut steps = Vec::new();
    for (place, growth) in places() {
        let grown = grow(&mut bed, place, growth, &document);
        bed.end(place);
        lab.clock
            .besides_done(about_s(lab.quick) / places().len() as f64);
        match grown {
            Ok(None) => figure
                .text
                .push(format!("{} is not installed.", place.name())),
            Err(error) => figure.fail(&format!("{}: {error:#}", place.name())),
            Ok(Some(step)) => {
                let gap = step.gap_s;
                lab.clock
                    .say(&format!("{}: {gap:.1} s without answers", step.name))?;
                let points = step.before.seconds.iter().chain(&step.after.seconds);
                chart.curves.push(Curve {
                    name: step.name.clone(),
                    points: points.copied().collect(),
                });
                figure.rows.push(row(&step));
                steps.push(step);
            }
        }
    }
    drop(bed);
    figure.charts.push(chart);
    judge(lab, &steps);
    figure.text.push(
        "Clients of Redis and etcd deal the groups by a hash to the servers of their URL. With \
         another number of servers a group has another server, so all data are loaded again, and \
         nothing is answered meanwhile. The paper moves data by scripts of the store's own; a \
         cluster of Redis or etcd that moves its data itself is not measured. Trellis has a fixed \
         number of nodes: there clients that have all come through one node come through three. \
         PostgreSQL and MariaDB are one server."
            .to_owned(),
    );
    Ok(figure)
}

/// `None`: the store is not installed.
fn grow(bed: &mut Bed, place: Place, growth: Growth, document: &Value) -> Result<Option<Step>> {
    let Some(first) = bed.url(place)? else {
        return Ok(None);
    };
    let (first, all, second) = match growth {
        Growth::Reload => {
            let more = place.of(SERVERS).context("it can have more servers")?;
            // Started before anything is measured.
            let all = bed.url(more)?.context("one server runs already")?;
            (first, all, more)
        }
        Growth::Entrance => (one_host(&first), first, place),
    };
    let begun = Instant::now();
    let run = |place: Place, url: &str, loads: bool| -> Result<Runs> {
        let mut document = document.clone();
        document["store"]["url"] = json!(url);
        document["workload"]["load"] = json!(loads);
        let from_s = begun.elapsed().as_secs_f64();
        let mut runs = Runs::default();
        ask::once(bed, place, &document, &mut runs)?;
        runs.seconds
            .iter_mut()
            .for_each(|second| second.0 += from_s);
        Ok(runs)
    };
    let mut before = run(place, &first, true)?;
    let mut after = run(second, &all, growth == Growth::Reload)?;
    let last_s = before.seconds.last().context("seconds were counted")?.0;
    // What is counted at a second was answered in the one before.
    let next_s = after.seconds.first().context("seconds were counted")?.0 - 1.0;
    let start_s = before.seconds[0].0;
    for second in before.seconds.iter_mut().chain(&mut after.seconds) {
        second.0 -= start_s - 1.0;
    }
    Ok(Some(Step {
        name: place.name(),
        growth,
        before,
        after,
        gap_s: (next_s - last_s).max(0.0),
    }))
}

/// The URL with the first of its hosts only.
fn one_host(url: &str) -> String {
    match (url.split_once(','), url.rsplit_once('/')) {
        (Some((first, _)), Some((_, database))) => format!("{first}/{database}"),
        _ => url.to_owned(),
    }
}

fn row(step: &Step) -> Vec<String> {
    let how = match step.growth {
        Growth::Reload => "loaded again",
        Growth::Entrance => "more nodes to come through",
    };
    vec![
        step.name.clone(),
        how.to_owned(),
        shown(Some(step.before.rate()), 0),
        shown(Some(step.after.rate()), 0),
        shown(Some(step.gap_s), 1),
    ]
}

fn judge(lab: &mut Lab, steps: &[Step]) {
    for (number, growth) in [("7a", Growth::Entrance), ("7b", Growth::Reload)] {
        let of_growth = || steps.iter().filter(|step| step.growth == growth);
        let said = of_growth().map(|step| format!("{} {:.1} s", step.name, step.gap_s));
        let said: Vec<String> = said.collect();
        match (said.is_empty(), growth) {
            (true, _) => lab.expectations.cannot(number, "no such store ran"),
            (false, Growth::Entrance) => {
                let is_met = of_growth().all(|step| step.gap_s <= GAP_S_MAX);
                lab.expectations.judge(number, said.join(", "), is_met);
            }
            (false, Growth::Reload) => lab.expectations.report(number, said.join(", ")),
        }
    }
}

/// Items that `bulk-load.yaml` loads: of users, and public ones.
const ITEMS: f64 = 4_000.0;
const GROUPS: [&str; 2] = ["4", "40"];

pub(super) fn about_bulk_s(quick: bool) -> f64 {
    let places = Place::all();
    let count = places.iter().map(|place| place.mappings().len()).sum();
    ask::about_s("bulk-load", count, quick)
}

/// Items a second that a load takes, by store, mapping and size of the groups.
pub(super) fn bulk(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{ITEMS} items, each group a transaction, 8 connections, no links; making tables or \
         deleting what was there included; {}",
        ask::command("bulk-load")
    );
    let mut figure = Figure::new("bulk", "Section 8.7: loads", place);
    figure.columns(&[
        "store",
        "mapping",
        "groups of 4, items/s",
        "groups of 40, items/s",
    ]);
    let names = GROUPS.map(str::to_owned).to_vec();
    let mut chart = Chart::by_name("loaded", "items in a group", "items/s", names);
    let documents = ask::documents("bulk-load")?;
    let mut bed = Bed::new()?;
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    for place in Place::all() {
        for mapping in place.mappings() {
            let way = Way::Entities(*mapping);
            let mut rates = Vec::new();
            for (name, document) in GROUPS.iter().zip(&documents) {
                let label = format!("groups of {name}");
                let asked = (place, way);
                let ran = ask::run(lab, &mut figure, &mut bed, asked, document, &label)?;
                let Some(load_s) = ran.and_then(|runs| runs.load_s()) else {
                    break;
                };
                rates.push(ITEMS / load_s.max(1e-6));
            }
            if rates.len() < GROUPS.len() {
                continue;
            }
            let shown = rates.iter().map(|rate| shown(Some(*rate), 0));
            let mut row = vec![place.name(), way.name()];
            row.extend(shown);
            figure.rows.push(row);
            let name = format!("{}, {mapping}", place.name());
            chart.curve(&name, rates.iter().copied());
            all.push((name, rates));
        }
        bed.end(place);
    }
    drop(bed);
    figure.charts.push(chart);
    let said = all.iter().map(|(name, rates)| {
        let times = rates[1] / rates[0];
        (format!("{name} {times:.1}"), times > 1.0)
    });
    let said: Vec<(String, bool)> = said.collect();
    match said.is_empty() {
        true => lab.expectations.cannot("8a", "no store ran"),
        false => {
            let is_met = said.iter().all(|(_, is_met)| *is_met);
            let text: Vec<String> = said.into_iter().map(|(text, _)| text).collect();
            lab.expectations.judge("8a", text.join(", "), is_met);
        }
    }
    figure.text.push(
        "No store's own way of loading is used (COPY, LOAD DATA): entities are created as users \
         create them. Every group is one transaction, and on disk before the next one but in \
         memory."
            .to_owned(),
    );
    Ok(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entrance_is_the_first_node() {
        let url = "postgres://trellis@127.0.0.1:5433,127.0.0.1:5434/shop";
        assert_eq!(one_host(url), "postgres://trellis@127.0.0.1:5433/shop");
        assert_eq!(one_host("redis://a:1/"), "redis://a:1/");
    }

    #[test]
    fn routed_stores_load_again_and_trellis_does_not() {
        let growths: Vec<bool> = places()
            .iter()
            .map(|(_, growth)| *growth == Growth::Reload)
            .collect();
        assert_eq!(growths, [true, true, false, false, false]);
    }
}
