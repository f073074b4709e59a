//! The runs in the course of time: throughput and response times, and what clients and servers
//! used.

use crate::report::{LINES_MAX, Report};
use crate::table::Row;
use charts::{Axes, Series, lines, number, time};
use drive::report::{COLOURS, escape, used};
use fault::MEASURES;
use serde_json::Value;
use std::fmt::Write;

/// A client that uses more of its cores than this may be what limits a run.
const BUSY: f64 = 0.8;

impl Report {
    /// Throughput and response time over time, a line for each row.
    pub(crate) fn course(&self, out: &mut String) {
        let rate = |row: &Row, at: usize| {
            let all = row.timeline["answered"].as_object()?.values();
            Some(all.filter_map(|column| column[at].as_f64()).sum())
        };
        let p99 = |row: &Row, at: usize| row.timeline["p99_us"][at].as_f64();
        let throughput = self.over_time(&rate);
        // One second alone is no course.
        if throughput.iter().all(|series| series.points.len() < 2) {
            return;
        }
        let axes = |y_title, log_y, y_label| Axes {
            x_title: "seconds of the measured phase",
            y_title,
            log_y,
            x_labels: Vec::new(),
            y_label,
            measured_from: Some(0.0),
        };
        let _ = write!(
            out,
            "<h2>Throughput over time</h2>{}",
            lines(&axes("interactions per second", false, number), &throughput)
        );
        let response = self.over_time(&p99);
        if response.iter().any(|series| !series.points.is_empty()) {
            let axes = axes("p99 of all interactions, logarithmic", true, time);
            let _ = write!(
                out,
                "<h2>Response time over time</h2>{}",
                lines(&axes, &response)
            );
        }
        self.cut(throughput.len(), out);
        if self
            .rows
            .iter()
            .any(|row| row.per_s.is_some_and(|it| it.count > 1))
        {
            out.push_str("<p class=\"dim\">Of repetitions the first one.</p>");
        }
    }

    fn over_time(&self, y: &dyn Fn(&Row, usize) -> Option<f64>) -> Vec<Series> {
        let mut all = Vec::new();
        for row in self.rows.iter().take(LINES_MAX) {
            let seconds = row.timeline["seconds"].as_array().into_iter().flatten();
            let points = seconds.map(Value::as_f64).enumerate();
            let points = points.filter_map(|(at, second)| Some((second?, y(row, at)?)));
            let words = self.words(row);
            let name = match words.trim_end_matches(": ") {
                "" => "all",
                words => words,
            };
            all.push(Series {
                name: escape(name),
                colour: COLOURS[all.len() % COLOURS.len()],
                points: points.collect(),
            });
        }
        all.retain(|series| !series.points.is_empty());
        all
    }

    /// What clients and servers used: a table of all rows, and charts of each that fold away.
    pub(crate) fn used(&self, out: &mut String) {
        let has_any = |row: &&Row| !row.clients.is_empty() || !row.servers.is_empty();
        let rows: Vec<&Row> = self.rows.iter().filter(has_any).collect();
        if rows.is_empty() {
            return;
        }
        out.push_str("<h2>Clients and servers</h2><div class=\"scroll\"><table><tr>");
        for name in &self.names {
            let _ = write!(out, "<th class=\"text\">{}</th>", escape(name));
        }
        out.push_str("<th class=\"text\">process</th>");
        for measure in &MEASURES {
            let _ = write!(out, "<th>{}</th>", measure.title);
        }
        out.push_str("</tr>");
        for row in &rows {
            let all = row.clients.iter().map(|it| ("client", it));
            for (role, series) in all.chain(row.servers.iter().map(|it| ("server", it))) {
                out.push_str("<tr>");
                for value in &row.values {
                    let text = escape(&crate::table::shown(value));
                    let _ = write!(out, "<td class=\"text any\">{text}</td>");
                }
                let name = match series.name.as_str() {
                    own if own == role => own.to_owned(),
                    name => format!("{role} {name}"),
                };
                let _ = write!(out, "<td class=\"text\">{}</td>", escape(&name));
                for measure in &MEASURES {
                    let cell = match measure.summary(series) {
                        Some((mean, _)) => number(mean / measure.unit),
                        None => String::from("-"),
                    };
                    let _ = write!(out, "<td>{cell}</td>");
                }
                out.push_str("</tr>");
            }
        }
        out.push_str("</table></div><p class=\"dim\">Means of the measured phase.</p>");
        for row in rows.iter().take(LINES_MAX) {
            let words = self.words(row);
            let title = match words.trim_end_matches(": ") {
                "" => "in the course of the run",
                words => words,
            };
            let _ = write!(out, "<details><summary>Charts: {}</summary>", escape(title));
            for (title, series) in [("Clients", &row.clients), ("Servers", &row.servers)] {
                if !series.is_empty() {
                    let _ = write!(out, "<h3>{title}</h3>");
                    used(series, out);
                }
            }
            out.push_str("</details>");
        }
        self.cut(rows.len(), out);
    }

    /// Clients that may have been what limits the run of a row, in words.
    pub(crate) fn busy(&self, row: &Row) -> Vec<String> {
        let clients = row.clients.iter().zip(&row.cores);
        let busy = clients.filter_map(|(series, cores)| {
            let (mean, _) = MEASURES.first()?.summary(series)?;
            let share = mean / cores.max(1.0);
            (share > BUSY).then(|| {
                format!(
                    "client {} used {:.0} % of its cores: the store may do more",
                    series.name,
                    share * 100.0
                )
            })
        });
        busy.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Outcome;
    use serde_json::json;

    fn outcome(seed: u64, result: Value) -> Option<Outcome> {
        Some(Outcome {
            reason: None,
            took_s: 1.0,
            document: json!({"seed": 1, "population": {"sessions": seed}}),
            result,
        })
    }

    #[test]
    fn a_page_shows_the_course_of_runs_and_what_they_used() {
        let series = |name: &str, cpu: f64| {
            json!({"name": name, "seconds": [0.5, 1.5], "cpu": [cpu, cpu],
                "memory_bytes": [2e6, null], "disk_read_bytes_per_s": [null, null],
                "disk_written_bytes_per_s": [1e6, null], "net_in_bytes_per_s": [1.0, 1.0],
                "net_out_bytes_per_s": [1.0, 1.0]})
        };
        let result = json!({
            "verdict": "passed", "per_s": 10.0, "client_cores": 2,
            "timeline": {"seconds": [0.0, 1.0, 2.0], "answered": {"A": [4, 5, 6], "B": [1, 1, 1]},
                "p99_us": [70, null, 90]},
            "clients": {"series": [series("client", 1.9)]},
            "servers": {"series": [series("<pg>", 0.5)]},
        });
        // A run of an earlier release, and a program, have none of it.
        let bare = json!({"verdict": "passed", "per_s": 5.0});
        let outcomes = [outcome(1, result), outcome(2, bare)];
        let report = Report::of(String::from("x"), &outcomes);
        let html = report.html();
        for part in [
            "Throughput over time",
            "Response time over time",
            "Clients and servers",
            "server &lt;pg&gt;",
            "<details><summary>Charts: sessions 1</summary>",
            "client client used 95 % of its cores",
            "prefers-color-scheme:dark",
        ] {
            assert!(html.contains(part), "{part}");
        }
        for part in ["NaN", "<pg>"] {
            let at = html
                .find(part)
                .map(|at| &html[at.saturating_sub(60)..at + 40]);
            assert_eq!(at, None, "{part}");
        }
        let bare = Report::of(String::from("x"), &outcomes[1..]).html();
        assert!(!bare.contains("over time") && !bare.contains("Clients and servers"));
    }
}
