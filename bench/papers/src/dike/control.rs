//! What the controls do: contention and its cost (16, 17 b), distribution (17 a), data (17 c), and
//! load and mix over time (18).

use super::ask::{Ask, Runs, run, run_s, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::natural::MIX;
use super::settings_s;
use crate::figure::{Chart, Figure, trend};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use serde_json::Value;
use servers::Kind;
use sim::scale::System;
use workload::tpcc::{Kind as Transaction, Skew};

/// Clients where transactions compete; the paper has 180.
fn crowd(quick: bool) -> u32 {
    if quick { 24 } else { 60 }
}

/// Competitors by setting; the paper has 30, 110, 150, 80 and 50 of 180.
fn intensities(quick: bool) -> Vec<u32> {
    match quick {
        true => vec![4, 8, 16],
        false => vec![10, 20, 30, 40, 50],
    }
}

/// Ways to make orders compete.
const WAYS: [&str; 2] = ["counting", "blocking"];

pub(super) fn about_16_s(quick: bool) -> f64 {
    settings_s(quick, WAYS.len() * intensities(quick).len())
}

/// How long it takes to gather the orders that compete, with PeakBench's way and with ours.
pub(super) fn figure_16(lab: &mut Lab) -> Result<Figure> {
    let place = Place::Trellis(System::Interleaved);
    let data = Tables::even(9);
    let clients = crowd(lab.quick);
    let ask = |way: &str, many: u32| {
        Ask::mix("new_order:1")
            .with("clients", clients)
            .with("contention", many)
            .with("contention-control", way)
    };
    let text = format!(
        "{NODES} nodes of Trellis, two_phase, {clients} clients; {}",
        ask("blocking", 8).command(place, lab.quick)
    );
    let mut figure = Figure::new("16", "Figure 16: cost of making contention", text);
    figure.columns(&[
        "compete",
        "way",
        "gathering ms",
        "waited, share of the clients' time",
        "tx/s",
    ]);
    let many = intensities(lab.quick);
    let names = many.iter().map(u32::to_string).collect();
    let mut chart = Chart::by_name(
        "time to gather the orders that compete",
        "competing orders",
        "milliseconds",
        names,
    );
    let mut bed = Bed::start()?;
    for way in WAYS {
        let mut costs = Vec::new();
        for many in &many {
            let label = format!("{way}, {many} compete");
            let ask = ask(way, *many);
            let runs = run(lab, &mut figure, &mut bed, (place, data), &ask, &label)?;
            let runs = runs.context("Trellis is there")?;
            let gathering = runs.spread(|it| it["contention"]["gathering"]["mean_ms"].as_f64());
            let waited = runs.spread(|it| it["contention"]["gathering"]["waited_share"].as_f64());
            costs.push(gathering.map_or(0.0, |it| it.mean));
            figure.rows.push(vec![
                many.to_string(),
                way.to_owned(),
                if way == WAYS[0] {
                    "none: nothing waits".to_owned()
                } else {
                    shown(gathering, 1)
                },
                shown(waited, 3),
                shown(runs.rate(), 0),
            ]);
        }
        chart.curve(way, costs);
    }
    judge_gathering(lab, &chart);
    let blocking = chart.curves.last().map_or(&[][..], |curve| &curve.points);
    let times: Vec<f64> = blocking.iter().map(|point| point.1).collect();
    figure.text.push(format!(
        "In the paper the time to gather rises in proportion to the orders that are to compete. \
         Here it {}: they come one after the other, and those of the round before must have \
         ended. Counting gathers nothing. The paper's clients are threads; here the orders that \
         wait are tasks, so no thread is lost, but their terminals do nothing all the same.",
        trend(&times)
    ));
    figure.charts.push(chart);
    Ok(figure)
}

/// The last curve is that of blocking.
fn judge_gathering(lab: &mut Lab, chart: &Chart) {
    let points = chart.curves.last().map_or(&[][..], |curve| &curve.points);
    let at = |point: Option<&(f64, f64)>| point.map_or(0.0, |point| point.1);
    let (first, last) = (at(points.first()), at(points.last()));
    lab.expectations.judge(
        "3b",
        format!("blocking takes {first:.1} ms for the fewest and {last:.1} ms for the most"),
        last > first,
    );
}

/// Percentages of figures 17 a and 19.
pub(super) fn ratios(quick: bool) -> Vec<u32> {
    match quick {
        true => vec![1, 40, 100],
        false => vec![1, 10, 20, 40, 80, 100],
    }
}

/// Degrees that three nodes can have; the paper has 3 and 5 on nine.
pub(super) const DEGREES: [u32; 2] = [2, 3];

/// Seconds of a phase of figures 17 b and 18.
fn phase_s(quick: bool) -> u32 {
    if quick { 5 } else { 10 }
}

/// Places whose waiters figure 17 b counts.
const WAITERS: [Place; 5] = Place::ALL;

pub(super) fn about_17_s(quick: bool) -> f64 {
    let ratios = settings_s(quick, ratios(quick).len() * DEGREES.len());
    let phases = f64::from(super::repeats(quick)) * f64::from(5 * phase_s(quick) + 4);
    ratios + phases * WAITERS.len() as f64 + 3.0 * run_s(quick)
}

/// Ratio and degree, contention, and data: asked for and seen.
pub(super) fn figure_17(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "{NODES} real nodes, 9 warehouses; (a) two_phase, NewOrder only, {}; (b) {}; (c) rows by \
         node, as SHOW PLACEMENT counts",
        Ask::mix("new_order:1")
            .distributed(Place::ALL[1], 20, 3, u32::from(NODES))
            .command(Place::ALL[1], lab.quick),
        phases(lab.quick).command(Place::ALL[1], lab.quick)
    );
    let mut figure = Figure::new("17", "Figure 17: controls, asked for and seen", place);
    figure.columns(&["what", "where", "asked for", "seen", "off"]);
    let mut bed = Bed::start()?;
    distribution(lab, &mut figure, &mut bed)?;
    contention(lab, &mut figure, &mut bed)?;
    data(lab, &mut figure, &mut bed)?;
    Ok(figure)
}

fn distribution(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let place = Place::Trellis(System::Interleaved);
    let ratios = ratios(lab.quick);
    let names = ratios.iter().map(|ratio| format!("{ratio} %")).collect();
    let mut chart = Chart::by_name(
        "(a) share of NewOrders that the server saw on several nodes",
        "asked for",
        "percent",
        names,
    );
    let (mut wrong, mut passed) = (0, true);
    for degree in DEGREES {
        let mut seen = Vec::new();
        for ratio in &ratios {
            let ask = Ask::mix("new_order:1").distributed(place, *ratio, degree, u32::from(NODES));
            let label = format!("ratio {ratio} %, degree {degree}");
            let data = Tables::even(9);
            let runs = run(lab, figure, bed, (place, data), &ask, &label)?;
            let runs = runs.context("Trellis is there")?;
            passed &= runs.passed();
            let of_runs = |it: &Value| {
                let ratio = it["distribution"]["observed_by_server"]["ratio"].as_f64()?;
                Some(100.0 * ratio)
            };
            let ratio_seen = runs.spread(of_runs);
            for result in &runs.results {
                wrong += result["distribution"]["wrong"].as_u64().unwrap_or(0);
            }
            let mean = ratio_seen.map_or(f64::NAN, |it| it.mean);
            seen.push(mean);
            figure.rows.push(vec![
                format!("(a) degree {degree}"),
                place.name(),
                format!("{ratio} %"),
                format!("{} %", shown(ratio_seen, 2)),
                format!("{:.2} points", mean - f64::from(*ratio)),
            ]);
        }
        chart.curve(&format!("degree {degree}"), seen);
    }
    figure.charts.push(chart);
    judge_degrees(lab, "1a", wrong, passed);
    Ok(())
}

/// Whether no transaction had another degree than was asked for, and all audits passed.
pub(super) fn judge_degrees(lab: &mut Lab, id: &'static str, wrong: u64, passed: bool) {
    let audits = if passed { "passed" } else { "did not pass" };
    lab.expectations.judge(
        id,
        format!("{wrong} transactions with another degree; audits of all runs {audits}"),
        wrong == 0 && passed,
    );
}

/// Five phases of contention.
fn phases(quick: bool) -> Ask {
    let each_s = phase_s(quick);
    let targets = match quick {
        true => [4, 12, 18, 9, 6],
        false => [10, 36, 50, 27, 17],
    };
    let text: Vec<String> = targets
        .iter()
        .enumerate()
        .map(|(at, target)| match at {
            0 => target.to_string(),
            _ => format!("{target}@{}", at as u32 * each_s),
        })
        .collect();
    Ask::mix("new_order:1")
        .with("clients", crowd(quick))
        .with("contention", text.join(","))
        .seconds(5 * each_s)
        .isolation("read-committed")
}

fn contention(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let ask = phases(lab.quick);
    let mut worst: f64 = 0.0;
    let mut names = Vec::new();
    let mut curves = Vec::new();
    for place in WAITERS {
        let label = "contention in five phases";
        let Some(runs) = run(lab, figure, bed, (place, Tables::even(9)), &ask, label)? else {
            continue;
        };
        let phases = runs.results[0]["contention"]["phases"].as_array().cloned();
        let phases = phases.context("a run with contention has phases")?;
        names = phases
            .iter()
            .map(|phase| phase["target"].to_string())
            .collect();
        let mut means = Vec::new();
        for (at, phase) in phases.iter().enumerate() {
            let target = phase["target"].as_f64().unwrap_or(f64::NAN);
            let mean = runs.spread(|it| it["contention"]["phases"][at]["mean"].as_f64());
            let off = mean.map_or(f64::NAN, |it| 100.0 * (it.mean / target - 1.0));
            if place != Place::Trellis(System::Leap) {
                worst = worst.max(off.abs());
            }
            means.push(mean.map_or(f64::NAN, |it| it.mean));
            figure.rows.push(vec![
                format!("(b) phase {}", at + 1),
                place.name(),
                format!("{target:.0} compete"),
                shown(mean, 1),
                format!("{off:.1} %"),
            ]);
        }
        curves.push((place.name(), means));
    }
    let mut chart = Chart::by_name(
        "(b) orders that compete, as the server says",
        "asked for, one phase after the other",
        "orders",
        names,
    );
    for (name, means) in curves {
        chart.curve(&name, means);
    }
    figure.charts.push(chart);
    lab.expectations.judge(
        "3a",
        format!("the mean of a phase is off by {worst:.1} % at most, leap aside"),
        worst <= 10.0,
    );
    figure.text.push(
        "(b) The paper counts at its clients; these are the server's numbers. Under leap an \
         operation that waits for a row to arrive is in no queue of locks, so leap's numbers lag."
            .to_owned(),
    );
    Ok(())
}

fn data(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let place = Place::Trellis(System::Interleaved);
    let names = (1..=NODES).map(|node| format!("node {node}")).collect();
    let mut chart = Chart::by_name("(c) rows by node", "node", "percent of all rows", names);
    for (name, thousandths) in [("uniform", 0), ("zipf 0.99", 990), ("zipf 1.5", 1500)] {
        let data = Tables {
            skew: Skew::of_thousandths(thousandths).context("it is at most 10")?,
            ..Tables::even(9)
        };
        let url = bed.url(place, data)?.context("Trellis is there")?;
        let rows = super::balance::by_node(bed, &url)?;
        let all: f64 = rows.iter().map(|node| node.rows).sum();
        let shares: Vec<f64> = rows.iter().map(|node| 100.0 * node.rows / all).collect();
        let text: Vec<String> = shares.iter().map(|share| format!("{share:.1} %")).collect();
        figure.rows.push(vec![
            "(c) rows".to_owned(),
            place.name(),
            name.to_owned(),
            text.join(", "),
            String::new(),
        ]);
        chart.curve(name, shares);
        lab.clock.besides_done(run_s(lab.quick));
    }
    figure.charts.push(chart);
    Ok(())
}

pub(super) fn about_18_s(quick: bool) -> f64 {
    let each_s = f64::from(3 * phase_s(quick) + 4);
    f64::from(super::repeats(quick)) * 2.0 * each_s * PLACES_18.len() as f64
}

const PLACES_18: [Place; 3] = [
    Place::Trellis(System::Formula),
    Place::Other(Kind::Postgres),
    Place::Other(Kind::MariaDb),
];

/// The three mixes of the paper.
const MIXES: [(&str, [u32; 3]); 5] = [
    ("new_order", [45, 50, 40]),
    ("payment", [43, 40, 25]),
    ("order_status", [4, 6, 5]),
    ("delivery", [4, 2, 15]),
    ("d_stock_level", [4, 2, 15]),
];

/// Load that follows a Gaussian, and a mix that changes in three stages.
pub(super) fn figure_18(lab: &mut Lab) -> Result<Figure> {
    let each_s = phase_s(lab.quick);
    let length_s = 3 * each_s;
    let most = 60;
    let gaussian = format!("rate:gaussian:{most},{},{}", length_s / 2, length_s / 6);
    let load = Ask::mix(MIX).with("curve", &gaussian).seconds(length_s);
    let mut mixes = Ask::mix(MIX).with("rate", most).seconds(length_s);
    for (kind, weights) in MIXES {
        let [first, second, third] = weights;
        let step = format!(
            "mix:{kind}:step:{first}@0,{second}@{each_s},{third}@{}",
            2 * each_s
        );
        mixes = mixes.with("curve", step);
    }
    let place = format!(
        "low rates, so that every server keeps up; (a) {}; (b) {}",
        load.command(PLACES_18[0], lab.quick),
        mixes.command(PLACES_18[0], lab.quick)
    );
    let mut figure = Figure::new("18", "Figure 18: dynamic load and mix", place);
    figure.columns(&["what", "where", "asked for", "seen"]);
    let mut bed = Bed::start()?;
    let seconds = (0..length_s).map(|second| second.to_string()).collect();
    let mut chart = Chart::by_name("(a) commits in each second", "second", "tx/s", seconds);
    let sigma = f64::from(length_s / 6);
    let curve = |second: u32| {
        let off = (f64::from(second) + 0.5 - f64::from(length_s / 2)) / sigma;
        f64::from(most) * (-0.5 * off * off).exp()
    };
    chart.curve("asked for", (0..length_s).map(curve));
    let data = Tables::even(9);
    for place in PLACES_18 {
        if let Some(runs) = run(lab, &mut figure, &mut bed, (place, data), &load, "Gaussian")? {
            let seen = by_second(&runs.results[0]);
            let wanted: f64 = (0..length_s).map(curve).sum();
            let all: f64 = seen.iter().sum();
            figure.rows.push(vec![
                "(a) commits".to_owned(),
                place.name(),
                format!("{wanted:.0}"),
                format!("{all:.0}"),
            ]);
            chart.curve(&place.name(), seen);
        }
        if let Some(runs) = run(
            lab,
            &mut figure,
            &mut bed,
            (place, data),
            &mixes,
            "three mixes",
        )? {
            stages(&mut figure, place, &runs, each_s);
        }
    }
    figure.charts.push(chart);
    figure.text.push(
        "(b) has NewOrder, Payment, OrderStatus, Delivery and dStockLevel in this order. A stage \
         has few transactions of the rare kinds, so their shares scatter."
            .to_owned(),
    );
    Ok(figure)
}

fn measured(result: &Value) -> impl Iterator<Item = Vec<f64>> {
    let timeline = result["timeline"].as_array().cloned().unwrap_or_default();
    let seconds = timeline
        .into_iter()
        .filter(|second| second["measured"].as_bool() == Some(true));
    seconds.map(|second| {
        let counts = second["committed"].as_array().cloned().unwrap_or_default();
        counts.iter().filter_map(Value::as_f64).collect()
    })
}

fn by_second(result: &Value) -> Vec<f64> {
    measured(result).map(|counts| counts.iter().sum()).collect()
}

/// Shares of the kinds in each stage.
fn stages(figure: &mut Figure, place: Place, runs: &Runs, each_s: u32) {
    for stage in 0..3 {
        let mut sums = vec![0.0; Transaction::ALL.len()];
        for result in &runs.results {
            let begin = stage * each_s as usize;
            for counts in measured(result).skip(begin).take(each_s as usize) {
                sums.iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| *sum += count);
            }
        }
        let all: f64 = sums.iter().sum();
        let wanted = MIXES.map(|(_, weights)| weights[stage].to_string());
        let seen = MIXES.map(|(name, _)| {
            // The columns are in the order of the kinds.
            let sum = Transaction::parse(name).map_or(f64::NAN, |kind| sums[kind.number()]);
            format!("{:.0}", 100.0 * sum / all.max(1.0))
        });
        figure.rows.push(vec![
            format!("(b) stage {}, percent", stage + 1),
            place.name(),
            wanted.join(", "),
            seen.join(", "),
        ]);
    }
}
