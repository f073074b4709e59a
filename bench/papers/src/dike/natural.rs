//! What TPC-C has by itself: few distributed transactions (figures 5 and 14), contention only by
//! skew (6) and by fewer warehouses (15).

use super::ask::{Ask, Runs, run, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::settings_s;
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Clause 2.4.1.5: a line has another supplier in one case of a hundred.
const REMOTE_LINE: f64 = 0.01;
/// Lines of an order: from 5 to 15, each number equally often.
const LINES: std::ops::RangeInclusive<usize> = 5..=15;

/// Probabilities that a NewOrder of TPC-C touches 1, 2, .. nodes, with the warehouses spread evenly
/// over `nodes`.
fn natural_degrees(nodes: usize, warehouses: usize) -> Vec<f64> {
    let others = (warehouses - warehouses / nodes) as f64;
    let away = REMOTE_LINE * others / (warehouses - 1).max(1) as f64;
    let mut sum = vec![0.0; nodes + 1];
    for lines in LINES {
        // By the nodes that the lines so far have touched, the home among them.
        let mut touched = vec![0.0; nodes + 1];
        touched[1] = 1.0;
        for _ in 0..lines {
            let mut next = vec![0.0; nodes + 1];
            for (at, share) in touched.iter().enumerate().skip(1) {
                let new = match nodes {
                    1 => 0.0,
                    _ => away * (nodes - at) as f64 / (nodes - 1) as f64,
                };
                next[at] += share * (1.0 - new);
                if at < nodes {
                    next[at + 1] += share * new;
                }
            }
            touched = next;
        }
        let count = LINES.count() as f64;
        sum.iter_mut()
            .zip(&touched)
            .for_each(|(sum, share)| *sum += share / count);
    }
    sum.remove(0);
    sum
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Columns of the shares by number of nodes.
const DEGREES: [&str; 3] = ["1 node", "2 nodes", "3 or more"];

fn by_degree(shares: &[f64]) -> [f64; 3] {
    let at = |place: usize| shares.get(place).copied().unwrap_or(0.0);
    [at(0), at(1), shares.iter().skip(2).sum()]
}

/// NewOrders by the nodes that they touch: the probabilities for 3 to 15 nodes.
pub(super) fn figure_14(lab: &mut Lab) -> Result<Figure> {
    let place = "computed from clauses 2.4.1.3 and 2.4.1.5, without a server: 5 to 15 lines, each \
                 with 1 % from another warehouse; warehouses as in the paper (100, 200, 300), and \
                 20 per node beyond; figure 5 has the same counted by a server";
    let mut figure = Figure::new(
        "14",
        "Figure 14: NewOrders of TPC-C by nodes touched",
        place.to_owned(),
    );
    figure.columns(&["nodes", "warehouses", DEGREES[0], DEGREES[1], DEGREES[2]]);
    let sizes = [(3, 100), (6, 200), (9, 300), (12, 240), (15, 300)];
    let names = sizes.iter().map(|(nodes, _)| nodes.to_string()).collect();
    let mut chart = Chart::by_name("share of NewOrders", "nodes", "percent", names);
    let shares = sizes.map(|(nodes, warehouses)| by_degree(&natural_degrees(nodes, warehouses)));
    for (at, name) in DEGREES.iter().enumerate() {
        chart.curve(name, shares.map(|shares| 100.0 * shares[at]));
    }
    for ((nodes, warehouses), shares) in sizes.iter().zip(&shares) {
        let mut row = vec![nodes.to_string(), warehouses.to_string()];
        row.extend(shares.map(percent));
        figure.rows.push(row);
    }
    figure.charts.push(chart);
    let most = shares.map(|shares| 1.0 - shares[0]);
    let most = most.into_iter().fold(0.0, f64::max);
    figure.text.push(format!(
        "The paper sees a low and stable share on 3, 6 and 9 nodes. So it is: {} at most.",
        percent(most)
    ));
    lab.expectations
        .judge("1b", format!("{} at most", percent(most)), most < 0.12);
    Ok(figure)
}

pub(super) fn about_5_s(quick: bool) -> f64 {
    settings_s(quick, Place::TRELLIS.len())
}

/// What the server counts of TPC-C's own NewOrders.
pub(super) fn figure_5(lab: &mut Lab) -> Result<Figure> {
    let data = Tables::even(9);
    let ask = Ask::mix("new_order:1");
    let place = format!(
        "{NODES} real nodes, 9 warehouses, as SHOW DISTRIBUTION counts; {}",
        ask.command(Place::ALL[0], lab.quick)
    );
    let mut figure = Figure::new(
        "5",
        "Figure 5: NewOrders of TPC-C by nodes touched, counted",
        place,
    );
    figure.columns(&["where", "transactions", DEGREES[0], DEGREES[1], DEGREES[2]]);
    let mut bed = Bed::start()?;
    let mut worst: f64 = 0.0;
    let expected = by_degree(&natural_degrees(usize::from(NODES), 9));
    for place in Place::TRELLIS {
        let url = bed.url(place, data)?.context("Trellis is there")?;
        let before = counted(&bed, &url)?;
        run(
            lab,
            &mut figure,
            &mut bed,
            (place, data),
            &ask,
            "its own distribution",
        )?;
        let after = counted(&bed, &url)?;
        let gain = |nodes: u64| {
            let at = |counts: &BTreeMap<u64, u64>| counts.get(&nodes).copied().unwrap_or(0);
            at(&after).saturating_sub(at(&before)) as f64
        };
        // The audits around a run read replicated tables and warehouses of all nodes.
        let counts: Vec<f64> = (1..=u64::from(NODES)).map(gain).collect();
        let all: f64 = counts.iter().sum();
        let shares: Vec<f64> = counts.iter().map(|count| count / all.max(1.0)).collect();
        let seen = by_degree(&shares);
        worst = worst.max((seen[1] - expected[1]).abs());
        let mut row = vec![place.name(), format!("{all:.0}")];
        row.extend(seen.map(percent));
        figure.rows.push(row);
    }
    let mut row = vec!["computed".to_owned(), "-".to_owned()];
    row.extend(expected.map(percent));
    figure.rows.push(row);
    figure.text.push(
        "Under leap an item has a home, and reading it counts as touching that node; so leap's \
         NewOrders touch more. The other protocols keep ITEM on every node. Checks before and \
         after a run read all nodes, so a few transactions with three nodes are theirs."
            .to_owned(),
    );
    Ok(figure)
}

fn counted(bed: &Bed, url: &str) -> Result<BTreeMap<u64, u64>> {
    let rows = bed.ask(url, "SHOW DISTRIBUTION")?;
    let pair = |row: &Vec<String>| Some((row[0].parse().ok()?, row[1].parse().ok()?));
    Ok(rows.iter().filter_map(pair).collect())
}

const SKEWS: [&str; 4] = ["0", "0.5", "0.99", "1.5"];

pub(super) fn about_6_s(quick: bool) -> f64 {
    settings_s(quick, SKEWS.len() * Place::WITH_GALERA.len())
}

/// A line of throughput and what it cost.
fn row(name: &str, place: Place, runs: &Runs) -> Vec<String> {
    vec![
        name.to_owned(),
        place.name(),
        shown(runs.rate(), 0),
        shown(runs.aborts_percent(), 2),
        shown(runs.p50_ms(), 2),
    ]
}

const COLUMNS: [&str; 4] = ["where", "tx/s", "attempts again per 100", "p50 ms"];

/// The whole mix with accesses skewed by Zipf's law over the warehouses.
pub(super) fn figure_6(lab: &mut Lab) -> Result<Figure> {
    let data = Tables::even(9);
    let ask = |skew: &str| Ask::mix(MIX).with("imbalance", format!("access:zipf:{skew}"));
    let place = format!(
        "{NODES} nodes of Trellis, one server of others; 9 warehouses; {}",
        ask("0.99").command(Place::ALL[0], lab.quick)
    );
    let mut figure = Figure::new("6", "Figure 6: contention by skewed accesses", place);
    figure.columns(&["exponent", COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3]]);
    let settings: Vec<(&str, Tables, Ask)> =
        SKEWS.iter().map(|skew| (*skew, data, ask(skew))).collect();
    sweep(lab, &mut figure, "exponent of Zipf's law", &settings)?;
    figure.text.push(
        "Skew changes contention, but no exponent says how many transactions compete: that follows \
         from the server. So the paper wants a control of its own (figure 17 b)."
            .to_owned(),
    );
    Ok(figure)
}

const SIZES: [u32; 4] = [1, 2, 4, 8];

pub(super) fn about_15_s(quick: bool) -> f64 {
    settings_s(quick, SIZES.len() * Place::WITH_GALERA.len())
}

/// The whole mix by the number of warehouses.
pub(super) fn figure_15(lab: &mut Lab) -> Result<Figure> {
    let ask = Ask::mix(MIX).with("clients", 16);
    let place = format!(
        "{NODES} nodes of Trellis, one server of others; {}",
        ask.command(Place::ALL[0], lab.quick)
    );
    let mut figure = Figure::new("15", "Figure 15: contention by the size of the data", place);
    figure.columns(&["warehouses", COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3]]);
    let names = SIZES.map(|size| size.to_string());
    let settings: Vec<(&str, Tables, Ask)> = names
        .iter()
        .zip(SIZES)
        .map(|(name, size)| (name.as_str(), Tables::even(size), ask.clone()))
        .collect();
    sweep(lab, &mut figure, "warehouses", &settings)?;
    figure.text.push(
        "In the paper throughput rises with the warehouses and falls again from 200 on, because \
         OceanBase reads from disk by then. Here all rows are in memory, so the second half of \
         that curve cannot be had. 1 and 2 warehouses leave nodes of Trellis without any."
            .to_owned(),
    );
    Ok(figure)
}

/// The mix of the paper, all of it at home: a dStockLevel of one warehouse is TPC-C's StockLevel.
pub(super) const MIX: &str = "new_order:45,payment:43,order_status:4,delivery:4,stock_level:4";

/// Throughput of all places by a setting: a curve for each place, and the table.
fn sweep(
    lab: &mut Lab,
    figure: &mut Figure,
    title: &'static str,
    settings: &[(&str, Tables, Ask)],
) -> Result<()> {
    let names = settings.iter().map(|(name, _, _)| (*name).to_owned());
    let mut chart = Chart::by_name("throughput", title, "tx/s", names.collect());
    let mut bed = Bed::start()?;
    for place in Place::WITH_GALERA {
        let mut rates = Vec::new();
        for (name, data, ask) in settings {
            let label = format!("{title} {name}");
            let Some(runs) = run(lab, figure, &mut bed, (place, *data), ask, &label)? else {
                break;
            };
            rates.push(runs.mean_rate());
            figure.rows.push(row(name, place, &runs));
        }
        chart.curve(&place.name(), rates);
    }
    figure.charts.push(chart);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_of_tpcc_are_probabilities() {
        for (nodes, warehouses) in [(1, 4), (3, 9), (9, 180), (15, 300)] {
            let shares = natural_degrees(nodes, warehouses);
            assert_eq!(shares.len(), nodes);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // One line of ten on average, a hundredth of them away, two of three on other nodes.
        let shares = natural_degrees(3, 300);
        let away: f64 = LINES
            .map(|lines| 1.0 - (1.0 - 0.01 * 200.0 / 299.0_f64).powi(lines as i32))
            .sum();
        assert!((1.0 - shares[0] - away / 11.0).abs() < 1e-12, "{shares:?}");
    }
}
