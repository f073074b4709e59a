//! One page for all runs of an experiment: the verdict first, then numbers side by side, and
//! charts that answer to the pointer.

use crate::folder::{self, FolderError, Outcome};
use crate::table::{Interaction, Labels, Row, Spread, rows, shown, without_passwords};
use charts::{Axes, Series, lines, number, time};
use drive::report::{COLOURS, escape, page};
use links::view::duration;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Lines of one chart at most: more cannot be told apart.
pub(crate) const LINES_MAX: usize = 16;
/// Name of the page in the folder.
const PAGE: &str = "report.html";
/// Name of the numbers in the folder.
const NUMBERS: &str = "summary.json";
/// What stands for the rate of runs that have none: failed, overloaded, nothing answered.
const NO_NUMBER: &str = "no number";
/// Bars behind numbers, and settings that leave room for these.
const STYLE: &str = "<style>.bar{display:block;height:.35rem;border-radius:.2rem;\
background:#2f6fde;min-width:1px}td.wide{min-width:7rem}td.any{min-width:5rem}\
@media(prefers-color-scheme:dark){.bar{background:#5b8ff0}}</style>";

/// What came out of an experiment.
#[derive(Clone, Debug)]
pub struct Report {
    name: String,
    pub(crate) names: Vec<String>,
    /// Stores by their kind, where that tells them apart.
    stores: BTreeMap<String, String>,
    pub(crate) rows: Vec<Row>,
    /// The documents of the runs that have ended.
    documents: Vec<Value>,
    /// Runs of the experiment, and those of them that have not ended.
    runs: usize,
    missing: usize,
}

impl Report {
    /// Reads the results in a folder.
    ///
    /// # Errors
    /// It holds none, or they are damaged.
    pub fn read(dir: &Path) -> Result<Report, FolderError> {
        let (name, outcomes) = folder::results(dir)?;
        Ok(Report::of(name, &outcomes))
    }

    pub(crate) fn of(name: String, outcomes: &[Option<Outcome>]) -> Report {
        let documents: Vec<&Value> = outcomes.iter().flatten().map(|it| &it.document).collect();
        let labels = Labels::of(&documents);
        let title = documents
            .first()
            .and_then(|it| it["report"]["title"].as_str());
        let stores = documents
            .iter()
            .filter_map(|it| it["store"]["url"].as_str());
        Report {
            name: title.map_or(name, str::to_owned),
            names: labels.names().into_iter().map(str::to_owned).collect(),
            stores: short_stores(stores),
            rows: rows(&labels, outcomes),
            missing: outcomes.len() - documents.len(),
            runs: outcomes.len(),
            documents: documents.into_iter().cloned().collect(),
        }
    }

    /// Whether all runs have ended and did what they should.
    pub fn passed(&self) -> bool {
        self.missing == 0 && !self.rows.is_empty() && self.rows.iter().all(Row::is_good)
    }

    /// Runs of the experiment that have not ended.
    pub fn missing(&self) -> usize {
        self.missing
    }

    /// Writes the page and the numbers into the folder. Returns the page's path.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, FolderError> {
        folder::write(dir, NUMBERS, &format!("{:#}\n", self.json()))?;
        folder::write(dir, PAGE, &self.html())?;
        Ok(dir.join(PAGE))
    }

    /// The numbers.
    pub fn json(&self) -> Value {
        let spread = |it: Option<Spread>| it.map(Spread::json);
        let interaction = |it: &Interaction| {
            let numbers = it
                .numbers
                .iter()
                .map(|(name, it)| ((*name).to_owned(), it.json()));
            json!({ "name": it.name, "numbers": numbers.collect::<serde_json::Map<_, _>>() })
        };
        let row = |row: &Row| {
            let labels = self.names.iter().cloned().zip(row.values.iter().cloned());
            let mut value = json!({
                "labels": labels.collect::<serde_json::Map<_, _>>(),
                "per_s": spread(row.per_s),
                "interactions": row.interactions.iter().map(interaction).collect::<Vec<_>>(),
                "verdicts": row.verdicts,
                "findings": row.findings,
            });
            without_passwords(&mut value["labels"]);
            value
        };
        json!({
            "format": 1,
            "name": self.name,
            "passed": self.passed(),
            "runs": self.runs,
            "missing": self.missing,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// The table for a terminal.
    pub fn table(&self) -> String {
        let mut head: Vec<String> = self.names.clone();
        head.extend(["per second", "p50", "p99", "retried", "verdict"].map(String::from));
        let mut lines = vec![head];
        for row in &self.rows {
            let mut cells: Vec<String> = row.values.iter().map(shown).collect();
            cells.push(row.per_s.map_or(NO_NUMBER.into(), |it| rate(it.mean)));
            cells.push(worst(row, "p50"));
            cells.push(worst(row, "p99"));
            cells.push(sum(row, "retried"));
            cells.push(row.verdicts.join(", "));
            lines.push(cells);
        }
        let columns = lines[0].len();
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            let mut text = String::new();
            for (at, cell) in line.iter().enumerate() {
                let (width, is_text) = (widths[at], at < self.names.len() || at + 1 == columns);
                let _ = match is_text {
                    true => write!(text, "{cell:<width$}  "),
                    false => write!(text, "{cell:>width$}  "),
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        out
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut out = String::from(STYLE);
        self.verdict(&mut out);
        self.side_by_side(&mut out);
        self.growth(&mut out);
        self.spectrum(&mut out);
        self.course(&mut out);
        self.used(&mut out);
        self.interactions(&mut out);
        self.settings(&mut out);
        page(&escape(&self.name), &out)
    }

    fn verdict(&self, out: &mut String) {
        let (word, class) = match self.passed() {
            true => ("passed", "good"),
            false => ("FAILED", "bad"),
        };
        let _ = write!(
            out,
            "<div class=\"verdict\"><div class=\"big {class}\">{word}</div><ul>"
        );
        let mut item = |is_good: bool, text: &str| {
            let class = if is_good { "good" } else { "bad" };
            let _ = write!(out, "<li class=\"{class}\">{}</li>", escape(text));
        };
        let ended = self.runs - self.missing;
        item(
            self.missing == 0,
            &format!("{ended} of {} runs have ended", self.runs),
        );
        let good = self.rows.iter().filter(|row| row.is_good()).count();
        let (all, words) = (self.rows.len(), "settings passed the check of their data");
        item(good == all, &format!("{good} of {all} {words}"));
        for row in &self.rows {
            let own = self.words(row);
            for finding in row.findings.iter().take(5) {
                item(false, &format!("{own}{finding}"));
            }
            if row.verdicts.iter().any(|it| it == "overloaded") {
                let text = "overloaded: more arrived than was answered; no percentiles";
                item(false, &format!("{own}{text}"));
            }
            for client in self.busy(row) {
                item(false, &format!("{own}{client}"));
            }
            if row.verdicts.iter().any(|it| it == "unchecked") {
                item(
                    false,
                    &format!("{own}the data was not checked after the run"),
                );
            }
        }
        out.push_str("</ul></div>");
    }

    /// What a row is, in front of what is said of it.
    pub(crate) fn words(&self, row: &Row) -> String {
        let pairs = self.names.iter().zip(&row.values);
        let words: Vec<String> = pairs.map(|(name, value)| self.label(name, value)).collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("{}: ", words.join(", ")),
        }
    }

    /// A setting with its value. That of the store says enough by itself.
    fn label(&self, name: &str, value: &Value) -> String {
        let short = value.as_str().and_then(|url| self.stores.get(url));
        match (name, short) {
            ("store", Some(short)) => short.clone(),
            ("store" | "mapping", _) => shown(value),
            _ => format!("{name} {}", shown(value)),
        }
    }

    fn side_by_side(&self, out: &mut String) {
        out.push_str("<h2>Side by side</h2><div class=\"scroll\"><table><tr>");
        for name in &self.names {
            let _ = write!(out, "<th class=\"text\">{}</th>", escape(name));
        }
        let slowest = match self.rows.iter().any(|row| row.interactions.len() > 1) {
            true => ", slowest interaction",
            false => "",
        };
        let _ = write!(
            out,
            "<th>interactions per second</th><th>p50{slowest}</th><th>p99{slowest}</th>\
             <th>retried</th><th>failed</th><th>unknown</th><th>round trips each</th>\
             <th class=\"text\">verdict</th></tr>"
        );
        let most = self
            .rows
            .iter()
            .filter_map(|row| Some(row.per_s?.mean))
            .fold(0.0, f64::max);
        for row in &self.rows {
            out.push_str("<tr>");
            for value in &row.values {
                let _ = write!(out, "<td class=\"text any\">{}</td>", escape(&shown(value)));
            }
            let bar = row.per_s.map_or(String::new(), |it| {
                let share = 100.0 * it.mean / most.max(1e-9);
                format!("<span class=\"bar\" style=\"width:{share:.1}%\"></span>")
            });
            let text = row.per_s.map_or(NO_NUMBER.into(), spread);
            let _ = write!(
                out,
                "<td class=\"wide\">{text}{bar}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{}</td><td>{}</td>\
                 <td class=\"text {}\">{}</td></tr>",
                worst(row, "p50"),
                worst(row, "p99"),
                sum(row, "retried"),
                sum(row, "failed"),
                sum(row, "unknown"),
                each(row),
                if row.is_good() { "good" } else { "bad" },
                escape(&row.verdicts.join(", ")),
            );
        }
        out.push_str("</table></div>");
        if self
            .rows
            .iter()
            .any(|row| row.per_s.is_some_and(|it| it.count > 1))
        {
            out.push_str(
                "<p class=\"dim\">Of repetitions the mean, and the least and the most in \
                 brackets.</p>",
            );
        }
    }

    /// Throughput and response time over the first setting that is a number, a line for each
    /// combination of the others.
    fn growth(&self, out: &mut String) {
        let Some(axis) = self.numeric_axis() else {
            return;
        };
        let throughput = self.series(axis, &|row| Some(row.per_s?.mean));
        let response = self.series(axis, &|row| {
            let all = row.interactions.iter();
            let all = all.filter_map(|it| it.numbers.get("p99").map(|it| it.mean));
            all.reduce(f64::max)
        });
        let name = escape(&self.names[axis]);
        let is_wide = spans_decades(&throughput);
        let title = match is_wide {
            true => "interactions per second, logarithmic",
            false => "interactions per second",
        };
        // The axis of a chart wants a name that lasts; the heading has that of the setting.
        let axes = |y_title, log_y, y_label| Axes {
            x_title: "the setting",
            y_title,
            log_y,
            x_labels: Vec::new(),
            y_label,
            measured_from: None,
        };
        let _ = write!(
            out,
            "<h2>Throughput by {name}</h2>{}<h2>Response time by {name}</h2>{}",
            lines(&axes(title, is_wide, number), &throughput),
            lines(
                &axes("p99 of the slowest interaction, logarithmic", true, time),
                &response
            ),
        );
        self.cut(throughput.len(), out);
    }

    pub(crate) fn cut(&self, count: usize, out: &mut String) {
        if count >= LINES_MAX {
            let _ = write!(
                out,
                "<p class=\"dim\">The first {LINES_MAX} lines; the table has all of them.</p>"
            );
        }
    }

    fn numeric_axis(&self) -> Option<usize> {
        (0..self.names.len()).find(|at| {
            let mut values: Vec<f64> = Vec::new();
            for row in &self.rows {
                match row.values[*at].as_f64() {
                    Some(value) if !values.contains(&value) => values.push(value),
                    Some(_) => {}
                    None => return false,
                }
            }
            values.len() > 1
        })
    }

    fn series(&self, axis: usize, y: &dyn Fn(&Row) -> Option<f64>) -> Vec<Series> {
        let mut all: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &self.rows {
            let others = self.names.iter().zip(&row.values).enumerate();
            let others = others.filter(|(at, _)| *at != axis);
            let words: Vec<String> = others.map(|(_, (name, it))| self.label(name, it)).collect();
            let words = match words.is_empty() {
                true => String::from("all"),
                false => words.join(", "),
            };
            let (Some(x), Some(y)) = (row.values[axis].as_f64(), y(row)) else {
                continue;
            };
            match all.iter().position(|(name, _)| *name == words) {
                Some(at) => all[at].1.push((x, y)),
                None if all.len() < LINES_MAX => all.push((words, vec![(x, y)])),
                None => {}
            }
        }
        let lines = all.into_iter().enumerate().map(|(at, (name, mut points))| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series {
                name: escape(&name),
                colour: COLOURS[at % COLOURS.len()],
                points,
            }
        });
        lines.collect()
    }

    /// Response times by percentile, a line for each row and interaction.
    fn spectrum(&self, out: &mut String) {
        const STEPS: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];
        // Each nine gets the same width.
        let place = |quantile: f64| -(1.0 - quantile).log10();
        let label = |quantile: f64| format!("{}", (quantile * 10_000.0).round() / 100.0);
        let mut series = Vec::new();
        let is_alone = self.rows.iter().all(|row| row.interactions.len() <= 1);
        for row in &self.rows {
            for interaction in &row.interactions {
                let all: u64 = interaction.histogram.iter().map(|it| it.1).sum();
                // A percentile of fewer samples is chance.
                let steps = STEPS.iter().filter(|it| all as f64 * (1.0 - **it) >= 5.0);
                let points = steps.filter_map(|quantile| {
                    Some((
                        place(*quantile),
                        quantile_of(&interaction.histogram, all, *quantile)?,
                    ))
                });
                let points: Vec<(f64, f64)> = points.collect();
                if points.is_empty() || series.len() >= LINES_MAX {
                    continue;
                }
                let words = self.words(row);
                let name = match is_alone && !words.is_empty() {
                    true => words.trim_end_matches(": ").to_owned(),
                    false => format!("{words}{}", interaction.name),
                };
                series.push(Series {
                    name: escape(&name),
                    colour: COLOURS[series.len() % COLOURS.len()],
                    points,
                });
            }
        }
        if series.is_empty() {
            return;
        }
        // Labels behind the last point would all stand at the end of the axis.
        let points = series.iter().flat_map(|line: &Series| &line.points);
        let widest = points.map(|point| point.0).fold(0.0, f64::max) + 1e-9;
        let labels = [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999].map(|q| (place(q), label(q)));
        let labels = labels.into_iter().filter(|(x, _)| *x <= widest);
        let axes = Axes {
            x_title: "percentile",
            y_title: "response time, logarithmic",
            log_y: true,
            x_labels: labels.collect(),
            y_label: time,
            measured_from: None,
        };
        let count = series.len();
        let _ = write!(
            out,
            "<h2>Response time by percentile</h2>{}",
            lines(&axes, &series)
        );
        self.cut(count, out);
    }

    fn interactions(&self, out: &mut String) {
        out.push_str("<h2>Interactions</h2><div class=\"scroll\"><table><tr>");
        for name in &self.names {
            let _ = write!(out, "<th class=\"text\">{}</th>", escape(name));
        }
        out.push_str(
            "<th class=\"text\">interaction</th><th>answered</th><th>per second</th><th>p50</th>\
             <th>p95</th><th>p99</th><th>p99.9</th><th>retried</th><th>failed</th><th>unknown</th>\
             <th>unfinished</th></tr>",
        );
        for row in &self.rows {
            for interaction in &row.interactions {
                out.push_str("<tr>");
                for value in &row.values {
                    let _ = write!(out, "<td class=\"text any\">{}</td>", escape(&shown(value)));
                }
                let _ = write!(out, "<td class=\"text\">{}</td>", escape(&interaction.name));
                let mut cell = |text: String| {
                    let _ = write!(out, "<td>{text}</td>");
                };
                cell(plain(interaction, "answered", count));
                cell(plain(interaction, "per_s", rate));
                for name in ["p50", "p95", "p99", "p99.9"] {
                    cell(plain(interaction, name, |us| duration(us.round() as u64)));
                }
                for name in ["retried", "failed", "unknown", "unfinished"] {
                    cell(plain(interaction, name, count));
                }
                out.push_str("</tr>");
            }
        }
        out.push_str("</table></div>");
    }

    /// What all runs have in common, and all as JSON.
    fn settings(&self, out: &mut String) {
        let Some(first) = self.documents.first() else {
            return;
        };
        out.push_str(
            "<h2>Settings</h2><p>The document of the first run; the others differ in what \
             stands in the first columns above.</p><pre class=\"scroll\">",
        );
        let mut document = first.clone();
        without_passwords(&mut document);
        let _ = write!(out, "{}</pre>", escape(&format!("{document:#}")));
        for row in self.rows.iter().filter(|row| !row.store.is_null()) {
            let mut store = row.store.clone();
            without_passwords(&mut store);
            let (words, store) = (self.words(row), store.to_string());
            let _ = write!(
                out,
                "<p class=\"dim\">Store: {}</p>",
                escape(&format!("{words}{store}"))
            );
        }
        // "</" must not end the script element, wherever it comes from.
        let data = self.json().to_string().replace("</", "<\\/");
        let _ = write!(
            out,
            "<h2>Data</h2><p><button id=\"save\">Save as JSON</button></p>\
             <script type=\"application/json\" id=\"run\">{data}</script>\
             <script>document.getElementById('save').onclick=function(){{\
             var a=document.createElement('a');a.download='summary.json';\
             a.href=URL.createObjectURL(new Blob([document.getElementById('run').textContent],\
             {{type:'application/json'}}));a.click()}}</script>"
        );
    }
}

/// Addresses by their schemes, if each scheme stands for one of them.
fn short_stores<'u>(urls: impl Iterator<Item = &'u str>) -> BTreeMap<String, String> {
    let urls: BTreeSet<&str> = urls.collect();
    let scheme = |url: &str| url.split(':').next().unwrap_or_default().to_owned();
    let schemes: BTreeSet<String> = urls.iter().map(|url| scheme(url)).collect();
    match schemes.len() == urls.len() {
        true => urls
            .into_iter()
            .map(|url| (url.to_owned(), scheme(url)))
            .collect(),
        false => BTreeMap::new(),
    }
}

/// Whether small values of these lines would lie on the axis.
fn spans_decades(series: &[Series]) -> bool {
    let all = || {
        series
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.1))
    };
    let (low, high) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    low > 0.0 && high > 20.0 * low
}

fn count(value: f64) -> String {
    format!("{value:.0}")
}

fn rate(value: f64) -> String {
    match value >= 100.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.1}"),
    }
}

fn spread(of: Spread) -> String {
    match of.count > 1 {
        true => format!("{} ({} to {})", rate(of.mean), rate(of.low), rate(of.high)),
        false => rate(of.mean),
    }
}

fn plain(of: &Interaction, name: &str, shown: impl Fn(f64) -> String) -> String {
    let number = of.numbers.get(name);
    number.map_or(String::from("-"), |it| shown(it.mean))
}

/// The longest time among the interactions of a row.
fn worst(row: &Row, name: &str) -> String {
    let all = row
        .interactions
        .iter()
        .filter_map(|it| it.numbers.get(name));
    let most = all.map(|it| it.mean).reduce(f64::max);
    most.map_or(String::from("-"), |us| duration(us.round() as u64))
}

/// What the interactions of a row have together; of a run without any there is nothing.
fn sum(row: &Row, name: &str) -> String {
    let all = row
        .interactions
        .iter()
        .filter_map(|it| it.numbers.get(name));
    let sum = all.map(|it| it.mean).reduce(|sum, one| sum + one);
    sum.map_or(String::from("-"), count)
}

/// Round trips of an interaction, on average over all.
fn each(row: &Row) -> String {
    let of = |it: &Interaction| {
        let answered = it.numbers.get("answered")?.mean;
        Some((answered, answered * it.numbers.get("round_trips")?.mean))
    };
    let all = row.interactions.iter().filter_map(of);
    let (answered, trips) = all.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    match answered > 0.0 {
        true => format!("{:.2}", trips / answered),
        false => String::from("-"),
    }
}

fn quantile_of(histogram: &[(u64, u64)], all: u64, quantile: f64) -> Option<f64> {
    let rank = (quantile * all as f64).ceil().max(1.0) as u64;
    let mut seen = 0;
    let reached = |pair: &&(u64, u64)| {
        seen += pair.1;
        seen >= rank
    };
    histogram.iter().find(reached).map(|(us, _)| *us as f64)
}
