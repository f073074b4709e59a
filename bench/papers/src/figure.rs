//! A figure of a report: curves, a table, and what is said about them.

use charts::{Axes, Series, lines};
use drive::report::{COLOURS, escape};
use serde_json::{Value, json};
use std::fmt::Write;

/// A line of a chart.
pub(super) struct Curve {
    pub(super) name: String,
    /// x and y; x increases.
    pub(super) points: Vec<(f64, f64)>,
}

/// One drawing.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x_title: &'static str,
    pub(super) y_title: &'static str,
    pub(super) log_y: bool,
    /// The positions on the x axis are ranks and these are their names; otherwise numbers.
    pub(super) x_names: Vec<String>,
    pub(super) curves: Vec<Curve>,
}

/// A figure or table of the paper, from our numbers.
pub(super) struct Figure {
    /// As on the command line.
    pub(super) id: &'static str,
    pub(super) title: String,
    /// Where the numbers come from: the model or the cluster, and its shape.
    pub(super) place: String,
    pub(super) charts: Vec<Chart>,
    /// Columns and rows of a table; empty: none.
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// What the paper saw, what we see, and why it differs.
    pub(super) text: Vec<String>,
    /// What of it failed.
    failures: Vec<String>,
}

impl Chart {
    /// A chart whose x positions are ranks with names.
    pub(super) fn by_name(
        title: &str,
        x_title: &'static str,
        y_title: &'static str,
        x_names: Vec<String>,
    ) -> Chart {
        Chart {
            title: title.to_owned(),
            x_title,
            y_title,
            log_y: false,
            x_names,
            curves: Vec::new(),
        }
    }

    /// The same with a logarithmic y axis.
    pub(super) fn logarithmic(mut self) -> Chart {
        self.log_y = true;
        self
    }

    /// Adds a curve whose points stand at ranks 0, 1, 2, ...
    pub(super) fn curve(&mut self, name: &str, values: impl IntoIterator<Item = f64>) {
        let points = values.into_iter().enumerate();
        self.curves.push(Curve {
            name: name.to_owned(),
            points: points.map(|(at, y)| (at as f64, y)).collect(),
        });
    }

    fn svg(&self) -> String {
        let label = |(at, name): (usize, &String)| (at as f64, name.clone());
        let axes = Axes {
            x_title: self.x_title,
            y_title: self.y_title,
            log_y: self.log_y,
            x_labels: self.x_names.iter().enumerate().map(label).collect(),
            y_label: short,
            measured_from: None,
        };
        let series = |(at, curve): (usize, &Curve)| Series {
            name: escape(&curve.name),
            // One more than there are colours has that of the text.
            colour: match at == COLOURS.len() {
                true => "currentColor",
                false => COLOURS[at % COLOURS.len()],
            },
            points: curve.points.clone(),
        };
        let series: Vec<Series> = self.curves.iter().enumerate().map(series).collect();
        let mut svg = format!("<h3>{}</h3>", escape(&self.title));
        svg.push_str(&lines(&axes, &series));
        svg
    }

    fn json(&self) -> Value {
        let curve = |curve: &Curve| {
            let named = |&(x, y): &(f64, f64)| match self.x_names.get(x as usize) {
                Some(name) => json!([name, y]),
                None => json!([x, y]),
            };
            let points: Vec<Value> = curve.points.iter().map(named).collect();
            json!({ "name": curve.name, "points": points })
        };
        json!({
            "title": self.title,
            "x": self.x_title,
            "y": self.y_title,
            "curves": self.curves.iter().map(curve).collect::<Vec<_>>(),
        })
    }
}

/// A number of an axis: three significant digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{:.2}M", value / 1e6),
        size if size >= 1e4 => format!("{:.0}k", value / 1e3),
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// How values go from the first to the last, in words; changes of 3 % are none.
pub(super) fn trend(values: &[f64]) -> &'static str {
    const SAME: f64 = 0.03;
    let pairs = || values.iter().zip(values.iter().skip(1));
    let up = pairs().any(|(from, to)| *to > from + from.abs() * SAME);
    let down = pairs().any(|(from, to)| *to < from - from.abs() * SAME);
    match (up, down) {
        (false, false) => "stays the same",
        (true, false) => "rises",
        (false, true) => "falls",
        (true, true) => "rises and falls",
    }
}

impl Figure {
    /// Without charts, rows and text.
    pub(super) fn new(id: &'static str, title: &str, place: String) -> Figure {
        Figure {
            id,
            title: title.to_owned(),
            place,
            charts: Vec::new(),
            head: Vec::new(),
            rows: Vec::new(),
            text: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// One that came to nothing, and why.
    pub(super) fn failed(id: &'static str, title: &str, error: &anyhow::Error) -> Figure {
        let mut figure = Figure::new(id, &format!("Failed: {id}, {title}"), String::new());
        figure.place = "no numbers".to_owned();
        figure.fail(&format!("{error:#}"));
        figure
    }

    /// Says that something of it failed.
    pub(super) fn fail(&mut self, what: &str) {
        self.failures.push(format!("FAILED: {what}"));
    }

    /// How much of it failed.
    pub(super) fn failures(&self) -> usize {
        self.failures.len()
    }

    /// The title up to its colon.
    pub(super) fn short_title(&self) -> &str {
        self.title.split(':').next().unwrap_or(&self.title)
    }

    /// The columns of the table.
    pub(super) fn columns(&mut self, names: &[&str]) {
        self.head = names.iter().map(|name| (*name).to_owned()).collect();
    }

    pub(super) fn html(&self) -> String {
        let mut out = format!(
            "<h2 id=\"figure-{}\">{}</h2><p class=\"dim\">{}</p>",
            self.id,
            escape(&self.title),
            escape(&self.place)
        );
        for failure in &self.failures {
            let _ = write!(out, "<p class=\"bad\">{}</p>", escape(failure));
        }
        self.charts
            .iter()
            .for_each(|chart| out.push_str(&chart.svg()));
        if !self.rows.is_empty() {
            out.push_str("<div class=\"scroll\"><table><tr>");
            for name in &self.head {
                let _ = write!(out, "<th>{}</th>", escape(name));
            }
            out.push_str("</tr>");
            for row in &self.rows {
                let cells = row.iter().map(|cell| format!("<td>{}</td>", escape(cell)));
                let _ = write!(out, "<tr>{}</tr>", cells.collect::<String>());
            }
            out.push_str("</table></div>");
        }
        for sentence in &self.text {
            let _ = write!(out, "<p>{}</p>", escape(sentence));
        }
        out
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "figure": self.id,
            "title": self.title,
            "place": self.place,
            "charts": self.charts.iter().map(Chart::json).collect::<Vec<_>>(),
            "columns": self.head,
            "rows": self.rows,
            "text": self.text,
            "failures": self.failures,
        })
    }

    /// For a terminal: the curves as columns, then the table and the text.
    pub(super) fn plain(&self) -> String {
        let mut out = format!("\n{}\n  {}\n", self.title, self.place);
        for chart in &self.charts {
            let _ = writeln!(out, "  {} ({})", chart.title, chart.y_title);
            let mut heads = String::new();
            let names = chart.x_names.iter().map(|name| name.chars().count() + 2);
            let each = names.max().unwrap_or(0).max(10);
            chart.x_names.iter().for_each(|name| {
                let _ = write!(heads, "{name:>each$}");
            });
            let names = chart.curves.iter().map(|curve| curve.name.chars().count());
            let width = names.max().unwrap_or(0).max(24);
            let _ = writeln!(out, "    {:<width$}{heads}", chart.x_title);
            for curve in &chart.curves {
                let mut cells = String::new();
                curve.points.iter().for_each(|point| {
                    let _ = write!(cells, "{:>each$}", short(point.1));
                });
                let _ = writeln!(out, "    {:<width$}{cells}", curve.name);
            }
        }
        if !self.rows.is_empty() {
            let width = |column: usize| {
                let rows = self.rows.iter().chain([&self.head]);
                let cells = rows.filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            };
            let line = |row: &Vec<String>| {
                let cells = row.iter().enumerate();
                let cells = cells.map(|(at, cell)| format!("  {cell:>0$}", width(at)));
                format!("  {}\n", cells.collect::<String>())
            };
            out.push_str(&line(&self.head));
            self.rows.iter().for_each(|row| out.push_str(&line(row)));
        }
        for sentence in self.text.iter().chain(&self.failures) {
            let _ = writeln!(out, "  {sentence}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_same_on_all_three_ways_out() {
        let mut figure = Figure::new("9", "Figure 9: <remote>", "model".to_owned());
        let names = vec!["0 %".to_owned(), "10 %".to_owned()];
        let mut chart = Chart::by_name("throughput", "remote", "tx/s", names).logarithmic();
        chart.curve("leap", [1.5, 20_000.0]);
        figure.charts.push(chart);
        figure.columns(&["remote", "rate"]);
        figure.rows.push(vec!["0 %".to_owned(), "1.5".to_owned()]);
        figure.text.push("as the paper".to_owned());
        let html = figure.html();
        assert!(
            html.contains("&lt;remote&gt;") && html.contains("<svg"),
            "{html}"
        );
        assert!(html.contains("<td>1.5</td>") && html.contains("as the paper"));
        let json = figure.json();
        assert_eq!(
            json["charts"][0]["curves"][0]["points"][1],
            json!(["10 %", 20_000.0])
        );
        let plain = figure.plain();
        assert!(
            plain.contains("20k") && plain.contains("as the paper"),
            "{plain}"
        );
    }

    #[test]
    fn numbers_have_about_three_digits() {
        let shown = [0.0, 0.25, 4.5678, 250.4, 12_345.0, 2_500_000.0].map(short);
        assert_eq!(shown, ["0", "0.250", "4.6", "250", "12k", "2.50M"]);
    }

    #[test]
    fn trends_are_those_of_the_numbers() {
        assert_eq!(trend(&[1.0, 1.01, 1.0]), "stays the same");
        assert_eq!(trend(&[1.0, 2.0, 2.0]), "rises");
        assert_eq!(trend(&[3.0, 2.0, 0.0]), "falls");
        assert_eq!(trend(&[3.0, 5.0, 1.0]), "rises and falls");
        assert_eq!(trend(&[]), "stays the same");
    }

    #[test]
    fn a_failed_figure_says_why() {
        let figure = Figure::failed("9", "remote", &anyhow::anyhow!("no cores"));
        assert!(figure.html().contains("FAILED: no cores"));
        assert!(figure.plain().contains("FAILED: no cores"));
    }
}
