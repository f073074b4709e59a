//! What distribution costs: ratio and degree, queries by degree, and the tables without binding and
//! broadcast (19); nodes (20), in the model.

use super::ask::{Ask, Runs, is_other, run, shown};
use super::bed::{Bed, NODES, Place, Tables};
use super::control::{DEGREES, ratios};
use super::natural::MIX;
use super::settings_s;
use crate::figure::{Chart, Figure};
use crate::model::{mean_ms, rate};
use crate::repetition::Lab;
use anyhow::{Context, Result};
use drive::tpcc::Without;
use measures::scalability::{Point, scalability};
use sim::scale::{Mix, ScaleOptions, Spread, System, Unit};

/// Figures 19 e and f run the whole mix with these tables.
const WITHOUT: [(&str, Without); 3] = [
    (
        "both",
        Without {
            binding: false,
            broadcast: false,
        },
    ),
    (
        "without binding",
        Without {
            binding: true,
            broadcast: false,
        },
    ),
    (
        "without broadcast",
        Without {
            binding: false,
            broadcast: true,
        },
    ),
];

/// The columns of each part of figure 19.
const COLUMNS: [&str; 6] = [
    "what",
    "where",
    "tx/s",
    "p50 ms",
    "messages per tx",
    "attempts again per 100",
];

pub(super) fn about_19ab_s(quick: bool) -> f64 {
    let orders = ratios(quick).len() * DEGREES.len() * Place::WITH_GALERA.len();
    settings_s(quick, orders)
}

pub(super) fn about_19cd_s(quick: bool) -> f64 {
    settings_s(quick, QUERY_DEGREES.len() * Place::WITH_GALERA.len())
}

pub(super) fn about_19ef_s(quick: bool) -> f64 {
    settings_s(quick, WITHOUT.len() * Place::TRELLIS.len())
}

/// A part of figure 19, whose runs are such as `ask`.
fn part(id: &'static str, title: &'static str, ask: &Ask, quick: bool) -> Figure {
    let place = format!(
        "{NODES} nodes of Trellis, one server of others; 9 warehouses; {}",
        ask.command(Place::ALL[0], quick)
    );
    let mut figure = Figure::new(id, title, place);
    figure.columns(&COLUMNS);
    figure
}

/// Throughput by ratio for two degrees.
pub(super) fn figure_19ab(lab: &mut Lab) -> Result<Figure> {
    let title = "Figure 19 a, b: what distribution costs";
    let mut figure = part("19ab", title, &ask(Place::ALL[0], 20, 3), lab.quick);
    let slower = by_ratio(lab, &mut figure, &mut Bed::start()?)?;
    lab.expectations.judge(
        "2a",
        "at 100 % against the lowest ratio, each protocol and degree".to_owned(),
        slower,
    );
    figure.text.push(
        "The paper: OceanBase loses 22.5 % with degree 3 and 39 % with degree 5 on nine nodes. \
         Three nodes have no degree 5. On PostgreSQL and MariaDB the ratio says how many \
         warehouses an order has, of which all are on the one server: what changes there is the \
         work, not the distribution."
            .to_owned(),
    );
    Ok(figure)
}

/// Throughput of queries by degree.
pub(super) fn figure_19cd(lab: &mut Lab) -> Result<Figure> {
    let title = "Figure 19 c, d: queries of several nodes";
    let mut figure = part("19cd", title, &queries(Place::ALL[0], 2), lab.quick);
    by_degree(lab, &mut figure, &mut Bed::start()?)?;
    Ok(figure)
}

/// Throughput with and without the optimizations.
pub(super) fn figure_19ef(lab: &mut Lab) -> Result<Figure> {
    let title = "Figure 19 e, f: tables without binding and broadcast";
    let mut figure = part("19ef", title, &Ask::mix(MIX), lab.quick);
    optimizations(lab, &mut figure, &mut Bed::start()?)?;
    Ok(figure)
}

/// A request of figure 19 a and b.
fn ask(place: Place, ratio: u32, degree: u32) -> Ask {
    Ask::mix("new_order:1").distributed(place, ratio, degree, u32::from(NODES))
}

/// Runs settings at a place one after the other, with a row for each, up to one that has no number.
fn settings_of(
    lab: &mut Lab,
    figure: &mut Figure,
    bed: &mut Bed,
    (place, part): (Place, &str),
    settings: impl Iterator<Item = (String, Ask)>,
) -> Result<Vec<Runs>> {
    let mut all = Vec::new();
    for (label, ask) in settings {
        let data = Tables::even(9);
        let Some(runs) = run(lab, figure, bed, (place, data), &ask, &label)? else {
            break;
        };
        figure.rows.push(vec![
            format!("{part} {label}"),
            place.name(),
            shown(runs.rate(), 0),
            shown(runs.p50_ms(), 2),
            shown(runs.messages(), 2),
            shown(runs.aborts_percent(), 2),
        ]);
        all.push(runs);
    }
    Ok(all)
}

/// Figures 19 a and b; whether each protocol lost throughput with each degree.
fn by_ratio(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<bool> {
    let mut slower = true;
    for degree in DEGREES {
        let ratios = ratios(lab.quick);
        let names = ratios.iter().map(|ratio| format!("{ratio} %")).collect();
        let title = format!("(a, b) NewOrder, degree {degree}");
        let mut chart = Chart::by_name(&title, "distributed NewOrders", "tx/s", names);
        for place in Place::WITH_GALERA {
            let settings = ratios.iter().map(|ratio| {
                let label = format!("ratio {ratio} %, degree {degree}");
                (label, ask(place, *ratio, degree))
            });
            let runs = settings_of(lab, figure, bed, (place, "(a, b)"), settings)?;
            let rates: Vec<f64> = runs.iter().map(Runs::mean_rate).collect();
            if !is_other(place)
                && let (Some(first), Some(last)) = (rates.first(), rates.last())
            {
                slower &= last < first;
                figure.text.push(format!(
                    "{}, degree {degree}: from {} % to 100 % distributed the throughput changes \
                     by {:.0} %.",
                    place.name(),
                    ratios[0],
                    100.0 * (last / first - 1.0)
                ));
            }
            chart.curve(&place.name(), rates);
        }
        figure.charts.push(chart);
    }
    Ok(slower)
}

/// Warehouses of a query in figures 19 c and d: its own node's alone, and of several nodes.
const QUERY_DEGREES: [u32; 3] = [1, 2, 3];

/// A request of figure 19 c and d. Where the server tells homes, clients are connected to theirs.
fn queries(place: Place, degree: u32) -> Ask {
    let ask = Ask::mix("d_stock_level:1");
    let ask = match place.is_trellis() {
        true => ask.flag("at-home"),
        false => ask,
    };
    match degree {
        1 => ask,
        _ => ask.distributed(place, 100, degree, u32::from(NODES)),
    }
}

/// Figures 19 c and d: dStockLevel by its degree.
fn by_degree(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let names = QUERY_DEGREES.map(|degree| degree.to_string()).to_vec();
    let mut chart = Chart::by_name("(c, d) dStockLevel", "degree", "tx/s", names);
    let mut told = Vec::new();
    for place in Place::WITH_GALERA {
        let settings = QUERY_DEGREES.map(|degree| {
            let label = format!("dStockLevel, degree {degree}");
            (label, queries(place, degree))
        });
        let runs = settings_of(lab, figure, bed, (place, "(c, d)"), settings.into_iter())?;
        let rates: Vec<f64> = runs.iter().map(Runs::mean_rate).collect();
        if let ([one, two, three], [_, of_two, of_three]) = (&rates[..], &runs[..]) {
            told.push(format!(
                "{} {:.2} of {} warehouses and {:.2} of {}",
                place.name(),
                two / one,
                shown(of_two.warehouses(), 2),
                three / one,
                shown(of_three.warehouses(), 2)
            ));
        }
        chart.curve(&place.name(), rates);
    }
    figure.charts.push(chart);
    figure.text.push(format!(
        "Throughput of dStockLevel with degree 2 and 3, as a share of that with degree 1, and the \
         warehouses of a query: {}. A query of k warehouses reads k times as much, so a server \
         without distribution has 1 / k. On Trellis k is the degree. Where the placement is not \
         known the degree is a mean, and more warehouses are drawn for it: of nine on three nodes \
         all nodes are sure to be met from seven on. Clients of Trellis are connected to the node \
         of their warehouse (--at-home), so with degree 1 no query leaves its node. In the paper \
         distributed queries of OceanBase are 6 times as fast as those of the other two.",
        told.join("; ")
    ));
    lab.expectations.report("2d", told.join("; "));
    Ok(())
}

fn optimizations(lab: &mut Lab, figure: &mut Figure, bed: &mut Bed) -> Result<()> {
    let ask = Ask::mix(MIX);
    let names = WITHOUT.map(|(name, _)| name.to_owned()).to_vec();
    let mut chart = Chart::by_name("(e, f) the whole mix", "tables", "tx/s", names);
    let mut told = Vec::new();
    for place in Place::TRELLIS {
        let mut rates = Vec::new();
        for (name, without) in WITHOUT {
            let data = Tables {
                without,
                ..Tables::even(9)
            };
            let runs = run(lab, figure, bed, (place, data), &ask, name)?;
            let runs = runs.context("Trellis is there")?;
            rates.push(runs.mean_rate());
            figure.rows.push(vec![
                format!("(e, f) {name}"),
                place.name(),
                shown(runs.rate(), 0),
                shown(runs.p50_ms(), 2),
                shown(runs.messages(), 2),
                shown(runs.aborts_percent(), 2),
            ]);
        }
        told.push(format!(
            "{} {:.2} and {:.2}",
            place.name(),
            rates[1] / rates[0],
            rates[2] / rates[0]
        ));
        chart.curve(&place.name(), rates);
    }
    figure.charts.push(chart);
    figure.text.push(format!(
        "Throughput without binding and without broadcast, as a share of that with both: {}. The \
         paper: OceanBase keeps 0.30 without binding, TiDB 0.92, CockroachDB 0.79.",
        told.join("; ")
    ));
    lab.expectations.report("2e", told.join("; "));
    Ok(())
}

/// Sizes of the model.
fn sizes(quick: bool) -> Vec<u16> {
    match quick {
        true => vec![3, 6],
        false => vec![3, 6, 9, 12, 15],
    }
}

const SYSTEMS: [System; 3] = [System::Formula, System::Interleaved, System::Leap];

/// Percentages of figure 20 c and d.
fn shares(quick: bool) -> Vec<u64> {
    match quick {
        true => vec![0, 100],
        false => vec![0, 20, 60, 100],
    }
}

/// The whole mix and the pair by nodes, in the model.
pub(super) fn base(lab: &Lab) -> ScaleOptions {
    ScaleOptions {
        spread: Spread {
            unit: Unit::Transaction,
            ..Spread::new(Vec::new(), 0)
        },
        clients_per_node: 16,
        warehouses_per_node: 4,
        ..lab.model.base()
    }
}

/// Throughput by nodes: the whole mix without distribution, and NewOrder and Payment with it.
pub(super) fn figure_20(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "scale model, 16 clients and 4 warehouses per node of one core; {}",
        lab.model.describe_costs()
    );
    let mut figure = Figure::new("20", "Figure 20: throughput by nodes", place);
    figure.columns(&[
        "what",
        "system",
        "nodes",
        "tx/s",
        "mean ms",
        "scalability from 3",
    ]);
    let sizes = sizes(lab.quick);
    let names = || sizes.iter().map(u16::to_string).collect::<Vec<String>>();
    let mut local = Chart::by_name(
        "(a) the whole mix, nothing distributed",
        "nodes",
        "tx/s",
        names(),
    );
    let mut worst = f64::INFINITY;
    for system in SYSTEMS {
        let least = curve(
            lab,
            &mut figure,
            &mut local,
            (system, Mix::TpccFull, 0),
            &sizes,
        )?;
        worst = worst.min(least);
    }
    figure.charts.push(local);
    lab.expectations.judge(
        "2b",
        format!("{worst:.3} at least, over all sizes and protocols"),
        worst >= 0.9,
    );
    let mut told = Vec::new();
    for share in shares(lab.quick) {
        let title = format!("(c) NewOrder and Payment, {share} % distributed");
        let mut chart = Chart::by_name(&title, "nodes", "tx/s", names());
        for system in SYSTEMS {
            let what = (system, Mix::TpccPair, share);
            let least = curve(lab, &mut figure, &mut chart, what, &sizes)?;
            told.push(format!("{} {share} %: {least:.2}", system.name()));
        }
        figure.charts.push(chart);
    }
    lab.expectations.report("2c", told.join("; "));
    distributed_queries(lab, &mut figure, &sizes)?;
    figure.text.push(
        "The paper has NewOrder alone with degree 3. The model's transactions leave their node for \
         one other, so its degree is 2, and it runs Payment beside NewOrder."
            .to_owned(),
    );
    figure.text.push(
        "The paper: OceanBase loses about 3 % from 3 to 15 nodes for the whole mix; TiDB and \
         CockroachDB more, by a hop from a proxy that ours does not have: a client of Trellis is \
         connected to the node of its home. Scalability is equation 3 of the paper, 1 is linear."
            .to_owned(),
    );
    Ok(figure)
}

fn named(mix: Mix) -> &'static str {
    match mix {
        Mix::TpccFull => "mix",
        Mix::StockLevels => "dStockLevel",
        _ => "pair",
    }
}

/// Figures 20 e and f: dStockLevel of one node and of two.
fn distributed_queries(lab: &mut Lab, figure: &mut Figure, sizes: &[u16]) -> Result<()> {
    for (share, degree) in [(0, 1), (100, 2)] {
        let title = format!("(e, f) dStockLevel, degree {degree}");
        let names = sizes.iter().map(u16::to_string).collect();
        let mut chart = Chart::by_name(&title, "nodes", "tx/s", names);
        let mut told = Vec::new();
        for system in SYSTEMS {
            let what = (system, Mix::StockLevels, share);
            let least = curve(lab, figure, &mut chart, what, sizes)?;
            told.push(format!("{} {least:.2}", system.name()));
        }
        figure.charts.push(chart);
        figure.text.push(format!(
            "Least scalability of dStockLevel with degree {degree}: {}. In the paper the local \
             query of TiDB and CockroachDB becomes slower with more nodes, because a proxy sends \
             it to any of them; ours begins at the node of its warehouse.",
            told.join("; ")
        ));
    }
    Ok(())
}

/// A curve by nodes; the least scalability from the smallest size.
fn curve(
    lab: &mut Lab,
    figure: &mut Figure,
    chart: &mut Chart,
    (system, mix, share): (System, Mix, u64),
    sizes: &[u16],
) -> Result<f64> {
    let mut points = Vec::new();
    let mut least: f64 = 1.0;
    for nodes in sizes {
        let mut options = base(lab);
        options.system = system;
        options.mix = mix;
        options.nodes = *nodes;
        options.spread.remote_percent = share;
        let point = lab.model.point(&options)?;
        let found = Point {
            nodes: u32::from(*nodes),
            rate: rate(&options, &point),
        };
        points.push(found);
        let metric = scalability(points[0], found);
        least = least.min(metric.unwrap_or(1.0));
        figure.rows.push(vec![
            format!("{} {share} %", named(mix)),
            system.name().to_owned(),
            nodes.to_string(),
            format!("{:.0}", found.rate),
            format!("{:.2}", mean_ms(&point)),
            metric.map_or("-".to_owned(), |it| format!("{it:.3}")),
        ]);
    }
    chart.curve(system.name(), points.iter().map(|point| point.rate));
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::dike::{Distribution, Mode, Placement, Wanted};

    /// What the text of figures 19 c and d says of servers whose placement is not known.
    #[test]
    fn a_mean_degree_takes_more_warehouses_than_nodes() {
        let warehouses = |degree| {
            let wanted = Wanted {
                mode: Mode::Statistical,
                ratio: 1.0,
                degree,
            };
            let placement = Placement::even(9, u32::from(NODES));
            Distribution::new(wanted, placement).unwrap().keys()
        };
        assert!((warehouses(2) - 2.467).abs() < 1e-3, "{}", warehouses(2));
        assert_eq!(warehouses(3), 7.0);
    }
}
