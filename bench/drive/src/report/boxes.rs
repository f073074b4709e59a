//! Box plots: commits in each second by kind, and work and data of each node.

use crate::run::RunReport;
use charts::{number, round_step};
use measures::boxes::BoxPlot;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 24.0;
const ROW: f64 = 26.0;
const BOTTOM: f64 = 24.0;
const MIB: f64 = 1_048_576.0;

/// A named box plot with its values.
struct Row {
    name: String,
    plot: BoxPlot,
    values: Vec<f64>,
}

impl Row {
    /// `None`: there are no values, or all are 0.
    fn of(name: &str, values: Vec<f64>) -> Option<Row> {
        let plot = BoxPlot::of(&values).ok().filter(|plot| plot.max > 0.0)?;
        Some(Row {
            name: name.to_string(),
            plot,
            values,
        })
    }
}

/// Commits in the seconds of the measured phase, of all kinds and of each one that has any.
fn seconds(report: &RunReport) -> Vec<Row> {
    let measured = report.timeline.iter().filter(|second| second.measured);
    let measured: Vec<&Vec<u64>> = measured.map(|second| &second.committed).collect();
    let all = measured
        .iter()
        .map(|kinds| kinds.iter().sum::<u64>() as f64);
    let of_kind = |(at, kind): (usize, &crate::run::KindReport)| {
        let values = measured.iter().map(|kinds| kinds[at] as f64);
        Row::of(kind.name, values.collect())
    };
    let kinds = report.kinds.iter().enumerate().filter_map(of_kind);
    Row::of("all", all.collect())
        .into_iter()
        .chain(kinds)
        .collect()
}

/// Rows that each node has read or written a second.
fn operations(report: &RunReport) -> Option<Row> {
    let seconds = report.options.length.as_secs_f64();
    let nodes = report.nodes.iter();
    let values = nodes.map(|node| node.operations as f64 / seconds);
    Row::of("rows per second", values.collect())
}

/// Bytes of the rows on each node.
fn row_bytes(report: &RunReport) -> Option<Row> {
    let nodes = report.nodes.iter();
    Row::of("bytes", nodes.map(|node| node.row_bytes as f64).collect())
}

/// The same in MiB.
fn in_mib(report: &RunReport) -> Option<Row> {
    let values = row_bytes(report)?.values.into_iter();
    Row::of("MiB", values.map(|bytes| bytes / MIB).collect())
}

/// Everything as JSON: five numbers, whiskers and outliers of each, by place.
pub(super) fn json(report: &RunReport) -> Value {
    if !report.has_number() {
        return Value::Null;
    }
    let rows = seconds(report).into_iter();
    let by_kind = rows.map(|row| (row.name.clone(), one(&row.plot)));
    let length_s = report.options.length.as_secs_f64();
    let nodes = report.nodes.iter().map(|node| {
        json!({
            "node": node.node,
            "operations_per_s": node.operations as f64 / length_s,
            "row_bytes": node.row_bytes,
        })
    });
    let over_nodes = |row: Option<Row>| {
        let row = row?;
        let mut value = one(&row.plot);
        value["imbalance"] = json!(row.plot.imbalance);
        Some(value)
    };
    json!({
        "commits_per_second": by_kind.collect::<Map<String, Value>>(),
        "nodes": nodes.collect::<Vec<_>>(),
        "operations_by_node": over_nodes(operations(report)),
        "row_bytes_by_node": over_nodes(row_bytes(report)),
    })
}

fn one(plot: &BoxPlot) -> Value {
    json!({
        "min": plot.min,
        "q1": plot.q1,
        "median": plot.median,
        "q3": plot.q3,
        "max": plot.max,
        "mean": plot.mean,
        "whiskers": [plot.whiskers.0, plot.whiskers.1],
        "outliers": plot.outliers,
    })
}

/// The plots as part of a page.
pub(super) fn html(report: &RunReport, out: &mut String) {
    let rows = seconds(report);
    let _ = write!(
        out,
        "<h2>Spread of the seconds</h2>{}<p class=\"dim\">Commits in each second of the measured \
         phase: half of the seconds lie in the box, the line is the median, the whiskers end at \
         the last second within 1.5 boxes, circles are the others.</p>",
        draw(&rows)
    );
    let nodes: Vec<(&str, Row)> = [
        (
            "Rows read or written per second on each node",
            operations(report),
        ),
        ("Rows of each node in MiB", in_mib(report)),
    ]
    .into_iter()
    .filter_map(|(title, row)| Some((title, row?)))
    .collect();
    if nodes.is_empty() {
        return;
    }
    out.push_str("<h2>Spread over the nodes</h2>");
    for (title, row) in &nodes {
        let _ = write!(
            out,
            "<p>{title}: the fullest has {:.2} times an even share.</p>{}",
            row.plot.imbalance,
            draw(std::slice::from_ref(row))
        );
    }
}

/// Horizontal boxes below each other, on one scale from 0 on.
fn draw(rows: &[Row]) -> String {
    let largest = rows.iter().map(|row| row.plot.max).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::from("<p>no samples</p>");
    }
    let step = round_step(largest / 5.0);
    let steps = (largest / step).ceil();
    let most = step * steps;
    let x = |value: f64| LEFT + value / most * (WIDTH - LEFT - RIGHT);
    let height = rows.len() as f64 * ROW + BOTTOM;
    let mut svg = format!(
        "<div class=\"scroll\"><svg class=\"boxes\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">"
    );
    for tick in 0..=steps as u32 {
        let value = step * f64::from(tick);
        let (at, below) = (x(value), height - BOTTOM);
        let _ = write!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{below:.1}\" class=\"grid\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            below + 15.0,
            number(value)
        );
    }
    for (at, row) in rows.iter().enumerate() {
        draw_row(row, (at as f64 + 0.5) * ROW, &x, &mut svg);
    }
    svg.push_str("</svg></div>");
    svg
}

fn draw_row(row: &Row, y: f64, x: &dyn Fn(f64) -> f64, svg: &mut String) {
    let plot = &row.plot;
    let [low, q1, median, q3, high] = [
        plot.whiskers.0,
        plot.q1,
        plot.median,
        plot.q3,
        plot.whiskers.1,
    ]
    .map(x);
    let told = [plot.min, plot.q1, plot.median, plot.q3, plot.max].map(number);
    let (top, half) = (y - 7.0, LEFT - 8.0);
    let _ = write!(
        svg,
        "<g stroke=\"currentColor\" fill=\"none\"><title>{}: {}</title>\
         <line x1=\"{low:.1}\" x2=\"{q1:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <line x1=\"{q3:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
         <rect x=\"{q1:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"14\"/>\
         <line x1=\"{median:.1}\" x2=\"{median:.1}\" y1=\"{top:.1}\" y2=\"{:.1}\" \
         stroke-width=\"2.5\"/>",
        row.name,
        told.join(", "),
        q3 - q1,
        y + 7.0
    );
    for outlier in &plot.outliers {
        let at = x(row.values[*outlier]);
        let _ = write!(svg, "<circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
    }
    let _ = write!(
        svg,
        "</g><text x=\"{half:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        y + 4.0,
        row.name
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_lies_where_its_numbers_are() {
        let values = vec![1.0, 3.0, 40.0, 2.0, 3.0, 5.0, 7.0, 7.0, 13.0];
        let row = Row::of("all", values).unwrap();
        let svg = draw(&[row]);
        // 3 and 7 of 40 on a width of 566.
        assert!(
            svg.contains(">20</text>") && svg.contains(">40</text>"),
            "{svg}"
        );
        assert!(
            svg.contains("<rect x=\"172.4\" y=\"6.0\" width=\"56.6\""),
            "{svg}"
        );
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(svg.contains("<title>all: 1, 3, 5, 7, 40</title>"), "{svg}");
        assert!(Row::of("none", Vec::new()).is_none());
        assert!(Row::of("nothing", vec![0.0; 3]).is_none());
        assert_eq!(draw(&[]), "<p>no samples</p>");
    }
}
