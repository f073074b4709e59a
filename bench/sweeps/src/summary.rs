//! What came out of a sweep, repetitions taken together.

use crate::cell::{Cell, Choice};
use crate::file::Experiment;
use crate::store::Outcome;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The version of the JSON.
const FORMAT: u32 = 1;
/// The key of what is broken.
pub(crate) const FAULT: &str = "fault";

/// Committed transactions per second of a run.
pub(crate) fn committed_per_s(result: &Value) -> Option<f64> {
    result["committed_per_s"].as_f64()
}

/// A number of several repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Arithmetic.
    pub mean: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Repetitions that have the number.
    pub count: usize,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all = Spread {
            mean: 0.0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            count: 0,
        };
        for value in values {
            all.count += 1;
            all.mean += value;
            all.low = all.low.min(value);
            all.high = all.high.max(value);
        }
        all.mean /= all.count.max(1) as f64;
        (all.count > 0).then_some(all)
    }

    fn json(self) -> Value {
        json!({ "mean": self.mean, "low": self.low, "high": self.high, "count": self.count })
    }
}

/// One combination of settings.
#[derive(Clone, Debug)]
pub struct Row {
    /// Keys and what they say, in the order of the file.
    pub settings: Vec<(String, Choice)>,
    /// Committed transactions per second.
    pub rate: Option<Spread>,
    /// That as a share of the combination that differs in nothing but that it has no fault.
    pub relative: Option<f64>,
    /// The largest depth of its faults, 0 to 1.
    pub depth: Option<Spread>,
    /// The longest time until a fault was seen, seconds.
    pub t_detect: Option<Spread>,
    /// 99th percentile of the response time, milliseconds.
    pub p99_ms: Option<Spread>,
    /// Why repetitions failed, each reason once.
    pub reasons: Vec<String>,
    /// Repetitions that failed.
    pub failed: usize,
}

impl Row {
    /// What a key says.
    pub(crate) fn text(&self, key: &str) -> String {
        let found = self.settings.iter().find(|(name, _)| name == key);
        found.map_or(String::new(), |(_, choice)| choice.text())
    }

    fn of(cells: &[(&Cell, Option<&Outcome>)]) -> Row {
        let done = || {
            let outcomes = cells.iter().filter_map(|(_, outcome)| *outcome);
            let done = outcomes.filter(|outcome| outcome.reason.is_none());
            done.map(|outcome| &outcome.result)
        };
        let of_faults = |field: &str| {
            let most = |result: &Value| {
                let faults = result["faults"].as_array()?;
                let numbers = faults.iter().filter_map(|fault| fault[field].as_f64());
                numbers.reduce(f64::max)
            };
            Spread::of(done().filter_map(most))
        };
        let reasons = cells.iter().filter_map(|(_, outcome)| outcome.as_ref());
        let mut reasons: Vec<String> = reasons.filter_map(|it| it.reason.clone()).collect();
        let failed = reasons.len();
        reasons.sort();
        reasons.dedup();
        Row {
            settings: cells[0].0.settings.clone(),
            rate: Spread::of(done().filter_map(committed_per_s)),
            relative: None,
            depth: of_faults("depth"),
            t_detect: of_faults("t_detect"),
            p99_ms: Spread::of(
                done()
                    .filter_map(|it| it["latency_us"]["p99"].as_f64())
                    .map(|us| us / 1e3),
            ),
            reasons,
            failed,
        }
    }

    /// What makes it comparable with a combination that differs in its fault only.
    fn without_fault<'r>(&'r self, about: &[&str]) -> Vec<&'r (String, Choice)> {
        let all = self.settings.iter();
        all.filter(|(key, _)| key != FAULT && !about.contains(&key.as_str()))
            .collect()
    }

    fn has_fault(&self) -> bool {
        let found = self.settings.iter().find(|(key, _)| key == FAULT);
        found.is_some_and(|(_, choice)| *choice != Choice::Out)
    }
}

/// What came out of a sweep.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Of the experiment.
    pub name: String,
    /// The file.
    pub file: String,
    /// The order of the cells.
    pub order: String,
    /// Repetitions asked for.
    pub repeats: u32,
    /// Keys that differ between rows.
    pub varied: Vec<String>,
    /// Keys that do not, with what they say.
    pub fixed: Vec<(String, String)>,
    /// In the order of the file.
    pub rows: Vec<Row>,
    /// Cells that failed.
    pub failed: usize,
}

impl Summary {
    pub(crate) fn of(
        experiment: &Experiment,
        cells: &[Cell],
        outcomes: &[Option<Outcome>],
    ) -> Summary {
        let mut groups: Vec<Vec<(&Cell, Option<&Outcome>)>> = Vec::new();
        for one in cells.iter().zip(outcomes.iter().map(Option::as_ref)) {
            let place = groups
                .iter_mut()
                .find(|group| group[0].0.settings == one.0.settings);
            match place {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
        let mut rows: Vec<Row> = groups.iter().map(|group| Row::of(group)).collect();
        // The order of the file, whatever that of the runs was.
        let place = |row: &Row| experiment.place(&row.settings);
        rows.sort_by_cached_key(place);
        let about = experiment.about(FAULT);
        for at in 0..rows.len() {
            let same = |other: &&Row| {
                let wanted = rows[at].without_fault(&about);
                !other.has_fault() && other.without_fault(&about) == wanted
            };
            let base = rows.iter().find(same).and_then(|row| row.rate);
            let base = base.filter(|base| base.mean > 0.0);
            rows[at].relative = match (rows[at].rate, base) {
                (Some(rate), Some(base)) => Some(rate.mean / base.mean),
                _ => None,
            };
        }
        let varied: Vec<String> = experiment.varied().into_iter().map(String::from).collect();
        let fixed = rows.first().map_or(&[][..], |row| &row.settings);
        let fixed = fixed.iter().filter(|(key, _)| !varied.contains(key));
        let failed = outcomes.iter().flatten();
        Summary {
            name: experiment.name().to_owned(),
            file: experiment.path().display().to_string(),
            order: experiment.order(),
            repeats: experiment.repeats(),
            fixed: fixed
                .map(|(key, choice)| (key.clone(), choice.text()))
                .collect(),
            varied,
            failed: failed.filter(|it| it.reason.is_some()).count(),
            rows,
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let row = |row: &Row| {
            let settings = row.settings.iter();
            let settings: Map<String, Value> = settings
                .map(|(key, choice)| (key.clone(), json!(choice.text())))
                .collect();
            json!({
                "settings": settings,
                "committed_per_s": row.rate.map(Spread::json),
                "relative_to_no_fault": row.relative,
                "depth": row.depth.map(Spread::json),
                "t_detect": row.t_detect.map(Spread::json),
                "p99_ms": row.p99_ms.map(Spread::json),
                "failed": row.failed,
                "reasons": row.reasons,
            })
        };
        json!({
            "format": FORMAT,
            "experiment": self.name,
            "order": self.order,
            "repeats": self.repeats,
            "varied": self.varied,
            "failed": self.failed,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// Columns of the table.
    pub(crate) fn head(&self) -> Vec<String> {
        let numbers = [
            "runs",
            "committed/s",
            "spread",
            "of no fault",
            "depth",
            "seen after",
            "p99 ms",
        ];
        let numbers = numbers.into_iter().map(String::from);
        self.varied.iter().cloned().chain(numbers).collect()
    }

    /// A line of the table.
    pub(crate) fn cells(&self, row: &Row) -> Vec<String> {
        let mut cells: Vec<String> = self.varied.iter().map(|key| row.text(key)).collect();
        let dash = || "-".to_owned();
        cells.push(match row.reasons.is_empty() {
            true => row.rate.map_or(0, |rate| rate.count).to_string(),
            false => format!(
                "{}, {} failed",
                row.rate.map_or(0, |rate| rate.count),
                row.failed
            ),
        });
        cells.push(row.rate.map_or_else(dash, |it| format!("{:.1}", it.mean)));
        cells.push(match row.rate {
            Some(it) if it.count > 1 => format!("{:.1} to {:.1}", it.low, it.high),
            _ => dash(),
        });
        cells.push(
            row.relative
                .map_or_else(dash, |it| format!("{:.0} %", 100.0 * it)),
        );
        cells.push(
            row.depth
                .map_or_else(dash, |it| format!("{:.0} %", 100.0 * it.mean)),
        );
        cells.push(
            row.t_detect
                .map_or_else(dash, |it| format!("{:.1} s", it.mean)),
        );
        cells.push(row.p99_ms.map_or_else(dash, |it| format!("{:.2}", it.mean)));
        cells
    }

    /// For a terminal.
    pub fn table(&self) -> String {
        let mut lines = vec![self.head()];
        lines.extend(self.rows.iter().map(|row| self.cells(row)));
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            for (cell, width) in line.iter().zip(&widths) {
                let _ = write!(out, "  {cell:>width$}");
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::file::tests::experiment;

    /// A sweep of ratio, faults and contention with three runs each.
    pub(crate) fn summary() -> Summary {
        let found = experiment(
            "ratio = [5, 6]\nfault = [false, 'kill@a:1+1']\n[matrix]\nrepeats = 3\nname = 'a<b'",
        );
        let found = found.unwrap();
        let cells = found.cells();
        let outcome = |cell: &Cell| {
            let is_broken = cell.get("fault") != Some(&Choice::Out);
            let rate = if is_broken { 60.0 } else { 100.0 } + f64::from(cell.repeat);
            let failed = is_broken && cell.get("ratio").map(Choice::text) == Some("6".into());
            Some(Outcome {
                reason: failed.then(|| "not <proven>".to_owned()),
                took_s: 1.0,
                result: json!({
                    "committed_per_s": rate,
                    "latency_us": { "p99": 2500.0 },
                    "faults": match is_broken {
                        true => json!([{ "depth": 0.25, "t_detect": 0.5 }, { "depth": 0.5 }]),
                        false => json!([]),
                    },
                }),
            })
        };
        let outcomes: Vec<Option<Outcome>> = cells.iter().map(outcome).collect();
        Summary::of(&found, &cells, &outcomes)
    }

    #[test]
    fn repetitions_are_taken_together_and_compared_with_no_fault() {
        let summary = summary();
        assert_eq!((summary.rows.len(), summary.failed), (4, 3));
        let row = &summary.rows[1];
        assert_eq!(
            (row.text("ratio"), row.text("fault")),
            ("5".into(), "kill@a:1+1".into())
        );
        let rate = row.rate.unwrap();
        assert_eq!(
            (rate.mean, rate.low, rate.high, rate.count),
            (61.0, 60.0, 62.0, 3)
        );
        assert!((row.relative.unwrap() - 61.0 / 101.0).abs() < 1e-12);
        assert_eq!(row.depth.map(|it| it.mean), Some(0.5));
        assert_eq!(row.t_detect.map(|it| it.mean), Some(0.5));
        let failed = &summary.rows[3];
        assert!(failed.rate.is_none() && failed.relative.is_none());
        assert_eq!(failed.reasons, ["not <proven>"]);
        let table = summary.table();
        assert!(
            table.contains("60.0 to 62.0") && table.contains("0, 3 failed"),
            "{table}"
        );
        assert_eq!(summary.json()["rows"][1]["depth"]["mean"], 0.5);
    }
}
