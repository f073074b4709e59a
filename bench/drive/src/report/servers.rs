//! What the servers used in the course of a run, in each form of the report.

use super::chart::{Axes, Series, lines, number};
use super::html::COLOURS;
use crate::run::RunReport;
use fault::{Samples, ServerSeries, Used};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Something that is sampled.
struct Measure {
    /// As JSON calls it.
    name: &'static str,
    /// The title of its chart, with the unit of its axis.
    title: &'static str,
    /// One unit of the axis, in units of JSON.
    unit: f64,
    of: fn(&Used) -> Option<f64>,
}

const MIB: f64 = 1_048_576.0;

/// A measure by its fields.
macro_rules! measures {
    ($($name:literal, $title:literal, $unit:expr, $of:expr;)*) => {
        [$(Measure { name: $name, title: $title, unit: $unit, of: $of }),*]
    };
}

const MEASURES: [Measure; 6] = measures![
    "cpu", "cores used", 1.0, |used| Some(used.cpu);
    "memory_bytes", "resident memory, MiB", MIB, |used| Some(used.memory);
    "disk_read_bytes_per_s", "read from the disk, MiB/s", MIB, |used| used.disk_read;
    "disk_written_bytes_per_s", "written to the disk, MiB/s", MIB, |used| used.disk_written;
    "net_in_bytes_per_s", "received in its network, MiB/s", MIB, |used| Some(used.net_in);
    "net_out_bytes_per_s", "sent in its network, MiB/s", MIB, |used| Some(used.net_out);
];

impl Measure {
    /// Mean and largest of the measured phase.
    fn summary(&self, series: &ServerSeries) -> Option<(f64, f64)> {
        let samples = series.samples.iter().filter(|sample| sample.at_s > 0.0);
        let values = samples.filter_map(|sample| (self.of)(sample.used.as_ref()?));
        let values: Vec<f64> = values.collect();
        let sum: f64 = values.iter().sum();
        let most = values.iter().copied().reduce(f64::max)?;
        Some((sum / values.len() as f64, most))
    }
}

/// Seconds of the measured phase in which a server did not run all the time.
fn gaps(series: &ServerSeries) -> usize {
    let samples = series.samples.iter().filter(|sample| sample.at_s > 0.0);
    samples.filter(|sample| sample.used.is_none()).count()
}

/// An object for each server that was sampled, and what that cost.
pub(super) fn list(report: &RunReport) -> Value {
    let Samples { servers, cost } = &report.samples;
    json!({ "sampling_cores": cost, "series": servers.iter().map(one).collect::<Vec<_>>() })
}

fn one(series: &ServerSeries) -> Value {
    let each = |value: &dyn Fn(&Measure) -> Value| -> Value {
        let measures = MEASURES.iter();
        let fields = measures.map(|measure| (measure.name.to_string(), value(measure)));
        fields.collect::<Map<String, Value>>().into()
    };
    let samples = &series.samples;
    let seconds = samples.iter().map(|sample| sample.at_s);
    let mut value = each(&|measure| {
        let values = samples.iter();
        let values = values.map(|sample| sample.used.as_ref().and_then(measure.of));
        values.collect::<Vec<_>>().into()
    });
    value["name"] = json!(series.name);
    value["host"] = json!(series.host);
    value["seconds"] = json!(seconds.collect::<Vec<f64>>());
    value["mean"] = each(&|measure| json!(measure.summary(series).map(|it| it.0)));
    value["max"] = each(&|measure| json!(measure.summary(series).map(|it| it.1)));
    value["gaps"] = json!(gaps(series));
    value["ended"] = json!(series.ended);
    value
}

const COLUMNS: [&str; 7] = [
    "server (mean/max)",
    "cores",
    "memory MiB",
    "read MiB/s",
    "written MiB/s",
    "in MiB/s",
    "out MiB/s",
];

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
fn remarks(report: &RunReport) -> Vec<String> {
    let mut remarks = Vec::new();
    for series in &report.samples.servers {
        let name = &series.name;
        if let Some(why) = &series.ended {
            remarks.push(format!("{name}: no more samples: {why}"));
        }
        match gaps(series) {
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
    out.push_str(&line(&COLUMNS.map(String::from)));
    for series in &report.samples.servers {
        out.push_str(&line(&cells(series)));
    }
    for remark in remarks(report) {
        let _ = writeln!(out, "{remark}");
    }
}

/// A section of the page.
pub(super) fn html(report: &RunReport, out: &mut String) {
    let servers = &report.samples.servers;
    if servers.is_empty() {
        return;
    }
    out.push_str("<h2>Servers</h2><div class=\"scroll\"><table><tr>");
    for column in COLUMNS {
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
    for remark in remarks(report) {
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
