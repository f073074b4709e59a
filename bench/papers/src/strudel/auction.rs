//! Figures 12 and 13: the auction by users, and response times of its interactions.

use super::ask::{self, Runs, Way, shown};
use super::bed::{Bed, Place};
use crate::figure::{Chart, Figure};
use crate::repetition::Lab;
use anyhow::Result;

/// All stores, entities in their first mapping and statements of the auction's own.
fn ways() -> Vec<(Place, Way)> {
    let mut all = Vec::new();
    for place in Place::all() {
        all.push((place, Way::Entities(place.mappings()[0])));
        if place.has_sql() {
            all.push((place, Way::Sql));
        }
    }
    all
}

/// The same, with the paper's three transactions on key-value stores.
fn ways_13() -> Vec<(Place, Way)> {
    let mut all = Vec::new();
    for (place, way) in ways() {
        all.push((place, way));
        if let (false, Way::Entities(mapping)) = (place.has_sql(), way) {
            all.push((place, Way::InThree(mapping)));
        }
    }
    all
}

pub(super) fn about_12_s(quick: bool) -> f64 {
    ask::about_s("figure-12", ways().len(), quick)
}

pub(super) fn about_13_s(quick: bool) -> f64 {
    ask::about_s("figure-13", ways_13().len(), quick)
}

const USERS: [&str; 3] = ["4", "16", "48"];

/// Throughput of the auction by the number of users.
pub(super) fn figure_12(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "users without pauses, each with a connection, ten users of the data for each; links of \
         2 ms one way; one server of each product, three nodes of Trellis; {} (own SQL: with \
         workload.api: sql)",
        ask::command("figure-12")
    );
    let mut figure = Figure::new("12", "Figure 12: the auction by users", place);
    figure.columns(&[
        "store",
        "data access",
        "users",
        "interactions/s",
        "round trips",
        "conflicts per 100",
    ]);
    let names = USERS.map(str::to_owned).to_vec();
    let mut chart = Chart::by_name("throughput", "users", "interactions/s", names);
    let documents = ask::documents("figure-12")?;
    let mut bed = Bed::new()?;
    let mut all: Vec<(Place, Way, Vec<f64>)> = Vec::new();
    let ways = ways();
    for (at, (place, way)) in ways.iter().enumerate() {
        let mut rates = Vec::new();
        for (users, document) in USERS.iter().zip(&documents) {
            let label = format!("{users} users");
            let asked = (*place, *way);
            let ran = ask::run(lab, &mut figure, &mut bed, asked, document, &label)?;
            let Some(runs) = ran else { break };
            rates.push(runs.rate());
            figure.rows.push(vec![
                place.name(),
                way.name(),
                (*users).to_owned(),
                shown(Some(runs.rate()), 0),
                shown(runs.trips(), 2),
                shown(runs.conflicts(), 1),
            ]);
        }
        if ways
            .get(at + 1)
            .is_none_or(|next| next.0.name() != place.name())
        {
            bed.end(*place);
        }
        if rates.len() == USERS.len() {
            chart.curve(&name(*place, *way), rates.iter().copied());
            all.push((*place, *way, rates));
        }
    }
    drop(bed);
    figure.charts.push(chart);
    judge_12(lab, &all);
    figure.text.push(
        "The paper has 200 to 3,200 users, ten region servers of HBase and one MySQL; its MySQL \
         reaches its limit, HBase does not. One machine cannot show whose servers end first: here \
         links limit until the cores are busy, so what a curve shows is round trips, and above \
         that the work of the servers and of the client together."
            .to_owned(),
    );
    Ok(figure)
}

fn name(place: Place, way: Way) -> String {
    match way {
        Way::Sql => format!("{}, own SQL", place.name()),
        Way::Entities(_) => place.name(),
        Way::InThree(_) => format!("{}, in three", place.name()),
    }
}

fn judge_12(lab: &mut Lab, all: &[(Place, Way, Vec<f64>)]) {
    let grows = all.iter().map(|(place, way, rates)| {
        let times = rates[rates.len() - 1] / rates[0].max(0.001);
        (name(*place, *way), times)
    });
    let grows: Vec<(String, f64)> = grows.collect();
    let shown = grows
        .iter()
        .map(|(name, times)| format!("{name} {times:.1}"));
    let text = shown.collect::<Vec<_>>().join(", ");
    match grows.is_empty() {
        true => lab.expectations.cannot("5a", "no store ran"),
        false => {
            let is_met = grows.iter().all(|(_, times)| *times > 1.5);
            lab.expectations.judge("5a", text, is_met);
        }
    }
    let mut over = Vec::new();
    for (place, way, rates) in all.iter().filter(|one| one.1 == Way::Sql) {
        let entity = all
            .iter()
            .find(|(other, other_way, _)| other.name() == place.name() && other_way != way);
        if let Some((_, _, entities)) = entity {
            over.push((place.name(), rates[0] / entities[0].max(0.001)));
        }
    }
    let text: Vec<String> = over
        .iter()
        .map(|(name, times)| format!("{name} {times:.2}"))
        .collect();
    match over.is_empty() {
        true => lab.expectations.cannot("5b", "no server with SQL ran"),
        false => {
            let is_met = over.iter().all(|(_, times)| *times >= 1.0);
            lab.expectations.judge("5b", text.join(", "), is_met);
        }
    }
}

/// The five interactions that the paper shows, and how the table calls them.
const SHOWN: [(&str, &str); 5] = [
    ("SELL_AUCTION_ITEM", "sell"),
    ("STORE_BID", "store bid"),
    ("VIEW_AUCTION_ITEMS_BY_SELLER", "items by seller"),
    ("VIEW_BIDS_BY_BIDDER", "bids by bidder"),
    ("VIEW_WINNING_BIDS_BY_BIDDER", "winning bids"),
];

/// Mean response times of interactions.
pub(super) fn figure_13(lab: &mut Lab) -> Result<Figure> {
    let place = format!(
        "8 users without pauses, links of 2 ms one way; mean response time in ms; {} (own SQL: \
         with workload.api: sql; in three: with store.fold: false)",
        ask::command("figure-13")
    );
    let title = "Figure 13: response times of the auction's interactions";
    let mut figure = Figure::new("13", title, place);
    let mut columns = vec!["store", "data access"];
    columns.extend(SHOWN.map(|(_, name)| name));
    columns.push("store bid / sell");
    figure.columns(&columns);
    let document = &ask::documents("figure-13")?[0];
    let names = SHOWN.map(|(_, name)| name.to_owned()).to_vec();
    let mut chart = Chart::by_name("mean response time", "interaction", "ms", names);
    let mut bed = Bed::new()?;
    let mut all = Vec::new();
    let ways = ways_13();
    for (at, (place, way)) in ways.iter().enumerate() {
        let asked = (*place, *way);
        let ran = ask::run(lab, &mut figure, &mut bed, asked, document, "8 users")?;
        if ways
            .get(at + 1)
            .is_none_or(|next| next.0.name() != place.name())
        {
            bed.end(*place);
        }
        let Some(runs) = ran else { continue };
        let times = SHOWN.map(|(interaction, _)| runs.response_ms(interaction));
        let mut row = vec![place.name(), way.name()];
        row.extend(times.map(|ms| shown(ms, 1)));
        row.push(shown(ratio(&runs), 2));
        figure.rows.push(row);
        let values = times.map(|ms| ms.unwrap_or(f64::NAN));
        if values.iter().all(|it| it.is_finite()) {
            chart.curve(&name(*place, *way), values);
        }
        all.push((*place, *way, runs));
    }
    drop(bed);
    figure.charts.push(chart);
    judge_13(lab, &all);
    figure.text.push(
        "In three: the key of a new entity, its entries in indexes outside of the group, and the \
         entity itself are written by a transaction each, as in the paper. Without it a store that \
         has transactions on several groups writes all of them in one. A SQL server makes keys and \
         entries by itself."
            .to_owned(),
    );
    Ok(figure)
}

/// The time of store-bid over that of sell.
fn ratio(runs: &Runs) -> Option<f64> {
    let sell = runs.response_ms(SHOWN[0].0).filter(|ms| *ms > 0.0)?;
    Some(runs.response_ms(SHOWN[1].0)? / sell)
}

/// How much slower store-bid may be than sell before it counts as slower.
const SLOWER: f64 = 1.2;

fn judge_13(lab: &mut Lab, all: &[(Place, Way, Runs)]) {
    let told = |is_asked: &dyn Fn(Place, Way) -> bool| -> Vec<(String, f64)> {
        let asked = all.iter().filter(|(place, way, _)| is_asked(*place, *way));
        let ratios =
            asked.filter_map(|(place, way, runs)| Some((name(*place, *way), ratio(runs)?)));
        ratios.collect()
    };
    let words = |ratios: &[(String, f64)]| {
        let each = ratios
            .iter()
            .map(|(name, times)| format!("{name} {times:.2}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let keys = told(&|_, way| matches!(way, Way::InThree(_)));
    let sql = told(&|place, way| place.has_sql() && !place.is_trellis() && way != Way::Sql);
    match keys.is_empty() {
        true => lab.expectations.cannot("6a", "no bid was stored"),
        false => {
            let is_met = keys.iter().all(|(_, times)| *times >= SLOWER);
            lab.expectations.judge("6a", words(&keys), is_met);
        }
    }
    match sql.is_empty() {
        true => lab.expectations.cannot("6b", "no server with SQL ran"),
        false => {
            let is_met = sql.iter().all(|(_, times)| *times < SLOWER);
            lab.expectations.judge("6b", words(&sql), is_met);
        }
    }
    let folded = told(&|place, way| !place.has_sql() && matches!(way, Way::Entities(_)));
    let trellis = told(&|place, way| place.is_trellis() && way != Way::Sql);
    for (number, ratios) in [("6c", folded), ("6d", trellis)] {
        match ratios.is_empty() {
            true => lab.expectations.cannot(number, "no bid was stored"),
            false => lab.expectations.report(number, words(&ratios)),
        }
    }
}
