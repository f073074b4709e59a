//! What the servers used in the course of a run, as a table and on the page.

use super::html::COLOURS;
use crate::run::RunReport;
use charts::{Axes, Series, lines, number};
use fault::{MEASURES, Measure, ServerSeries};
use std::fmt::Write;

const COLUMNS: &str =
    "server (mean/max)|cores|memory MiB|read MiB/s|written MiB/s|in MiB/s|out MiB/s";

fn cells(series: &ServerSeries) -> Vec<String> {
    let cell = |measure: &Measure| match measure.summary(series) {
        Some((mean, most)) => {
            let (mean, most) = (mean / measure.unit, most / measure.unit);
            format!("{mean:.2}/{most:.2}")
        }
        None => "-".into(),
    };
    let mut cells = vec![series.name.clone()];
    cells.extend(MEASURES.iter().map(cell));
    cells
}

/// What the numbers leave out.
fn remarks(all: &[ServerSeries]) -> Vec<String> {
    let mut remarks = Vec::new();
    for series in all {
        let name = &series.name;
        if let Some(why) = &series.ended {
            remarks.push(format!("{name}: no more samples: {why}"));
        }
        match series.gaps() {
            0 => {}
            gaps => remarks.push(format!(
                "{name} did not run all the time in {gaps} seconds: gaps, and not in the means"
            )),
        }
    }
    remarks
}

/// A table for a terminal.
pub(super) fn table(report: &RunReport, out: &mut String) {
    if report.samples.servers.is_empty() {
        return;
    }
    let line = |cells: &[String]| {
        let (first, rest) = cells.split_first().expect("there are columns");
        let rest: String = rest.iter().map(|cell| format!("{cell:>18}")).collect();
        format!("{first:<18}{rest}\n")
    };
    out.push_str(&line(
        &COLUMNS.split('|').map(String::from).collect::<Vec<_>>(),
    ));
    for series in &report.samples.servers {
        out.push_str(&line(&cells(series)));
    }
    for remark in remarks(&report.samples.servers) {
        let _ = writeln!(out, "{remark}");
    }
}

/// A section of the page.
pub(super) fn html(report: &RunReport, out: &mut String) {
    let servers = &report.samples.servers;
    if servers.is_empty() {
        return;
    }
    out.push_str("<h2>Servers</h2>");
    used(servers, out);
}

/// What processes used in the course of a run: a table, and a chart for each measure.
pub fn used(servers: &[ServerSeries], out: &mut String) {
    out.push_str("<div class=\"scroll\"><table><tr>");
    for column in COLUMNS.split('|') {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr>");
    for series in servers {
        out.push_str("<tr>");
        for cell in cells(series) {
            let _ = write!(out, "<td>{}</td>", super::escape(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
    for remark in remarks(servers) {
        let _ = write!(out, "<p class=\"dim\">{}.</p>", super::escape(&remark));
    }
    for measure in &MEASURES {
        let course = |(at, series): (usize, &ServerSeries)| Series {
            name: super::escape(&series.name),
            colour: COLOURS[at % COLOURS.len()],
            points: points(series, measure),
        };
        let axes = Axes {
            x_title: "seconds of the measured phase",
            y_title: measure.title,
            log_y: false,
            x_labels: Vec::new(),
            y_label: number,
            measured_from: Some(0.0),
        };
        let all: Vec<Series> = servers.iter().enumerate().map(course).collect();
        out.push_str(&lines(&axes, &all));
    }
}

/// With a gap where nothing is known.
fn points(series: &ServerSeries, measure: &Measure) -> Vec<(f64, f64)> {
    let samples = series.samples.iter();
    let point = samples.map(|sample| {
        let value = sample.used.as_ref().and_then(measure.of);
        (
            sample.at_s,
            value.map_or(f64::NAN, |value| value / measure.unit),
        )
    });
    point.collect()
}
