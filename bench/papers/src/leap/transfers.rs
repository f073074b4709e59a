//! What transfers there are, and what they leave behind: figures 15 and 20.

use super::remote::{REMOTE, names, place, points};
use crate::Lab;
use crate::figure::{Chart, Figure, trend};
use anyhow::Result;
use sim::scale::{Point, System};
use std::rc::Rc;

/// Transfers by case.
pub(super) fn figure_15(lab: &mut Lab) -> Result<Figure> {
    let mut figure = Figure::new("15", "Figure 15: ownership transfers by case", place(lab));
    let shares = &REMOTE[1..];
    let by_remote = points(lab, System::Leap, shares)?;
    let seconds = lab.model.base().run_us as f64 / 1e6;
    figure.charts.push(cases(
        "a, b. by remote accesses",
        "remote accesses",
        names(shares),
        &by_remote,
        seconds,
    ));
    let (localities, by_locality) = super::locality::leap_points(lab)?;
    figure.charts.push(cases(
        "c. by locality, 10 % remote",
        "locality",
        names(&localities),
        &by_locality,
        seconds,
    ));
    let three = |points: &[Rc<Point>]| -> Vec<f64> {
        let share = |point: &Rc<Point>| 100.0 * point.moves.r_p_o as f64 / all(point).max(1) as f64;
        points.iter().map(share).collect()
    };
    let per_s = |points: &[Rc<Point>]| -> Vec<f64> {
        points
            .iter()
            .map(|point| all(point) as f64 / seconds)
            .collect()
    };
    let (share, rates) = (three(&by_remote), per_s(&by_remote));
    figure.text.push(format!(
        "In the paper the share of R-P-O grows with the remote share, while the number of \
         transfers stays the same from 10 % on. Here that share {} ({:.0} % of transfers at 1 %, \
         {:.0} % at 100 %), because more rows are away when they are asked for; the number {}, \
         {:.0} a second at 10 % and {:.0} at 100 %.",
        trend(&share),
        share[0],
        share[share.len() - 1],
        trend(&rates),
        rates[2],
        rates[rates.len() - 1]
    ));
    let (share, rates) = (three(&by_locality), per_s(&by_locality));
    figure.text.push(format!(
        "With locality transfers get fewer in the paper, R-P-O most of all. Here they go from \
         {:.0} a second at {} % to {:.0} at {} %, R-P-O from {:.0} to {:.0} % of them.",
        rates[0],
        localities[0],
        rates[rates.len() - 1],
        localities[localities.len() - 1],
        share[0],
        share[share.len() - 1]
    ));
    Ok(figure)
}

fn all(point: &Point) -> u64 {
    point.moves.rp_o + point.moves.r_po + point.moves.r_p_o
}

fn cases(
    title: &str,
    x_title: &'static str,
    x_names: Vec<String>,
    points: &[Rc<Point>],
    seconds: f64,
) -> Chart {
    let mut chart = Chart::by_name(title, x_title, "transfers/s", x_names);
    let each = |of: fn(&Point) -> u64| points.iter().map(move |point| of(point) as f64 / seconds);
    chart.curve("RP-O: requester is home", each(|point| point.moves.rp_o));
    chart.curve("R-PO: home is owner", each(|point| point.moves.r_po));
    chart.curve("R-P-O: three nodes", each(|point| point.moves.r_p_o));
    chart
}

/// Memory of the owner tables.
pub(super) fn figure_20(lab: &mut Lab) -> Result<Figure> {
    let mut figure = Figure::new("20", "Figure 20: memory of the owner tables", place(lab));
    let points = points(lab, System::Leap, &REMOTE)?;
    let title = "owner tables of all nodes together";
    let mut memory = Chart::by_name(title, "remote accesses", "KiB", names(&REMOTE));
    let kib = |point: &Rc<Point>| point.moves.table_bytes as f64 / 1024.0;
    memory.curve("owner tables", points.iter().map(kib));
    let title = "rows away from home";
    let mut away = Chart::by_name(title, "remote accesses", "rows", names(&REMOTE));
    let rows = |point: &Rc<Point>| point.moves.rows_away as f64;
    away.curve("rows away", points.iter().map(rows));
    figure.charts = vec![memory, away];
    let each: Vec<f64> = points
        .iter()
        .filter(|point| point.moves.rows_away > 0)
        .map(|point| point.moves.table_bytes as f64 / point.moves.rows_away as f64)
        .collect();
    let between = each.iter().copied().fold(f64::MAX, f64::min);
    let and = each.iter().copied().fold(0.0, f64::max);
    let kib: Vec<f64> = points.iter().map(kib).collect();
    figure.text.push(format!(
        "The paper's tables hold nothing with local transactions only and grow with the remote \
         share. Here {} rows are away at 0 %, and memory {}. An entry takes {between:.0} to \
         {and:.0} bytes, its share of the table's free room included.",
        points[0].moves.rows_away,
        trend(&kib),
    ));
    figure.text.push(format!(
        "The paper's entries are many more, because its database is whole and it measures after 15 \
         minutes; here at most {} rows are away.",
        points
            .iter()
            .map(|point| point.moves.rows_away)
            .max()
            .unwrap_or(0)
    ));
    Ok(figure)
}
