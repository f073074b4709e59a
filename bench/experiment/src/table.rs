//! Runs side by side: what tells them apart, and their numbers, repetitions taken together.

use crate::folder::Outcome;
use fault::ServerSeries;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Runs that differ in this alone are repetitions.
const SEED: &str = "seed";

/// How a document calls its store, and what starts it.
const STORE_NAME: &str = "store.name";
const STORE_COMMANDS: [&str; 4] = ["store.start", "store.stop", "store.reset", "store.script_s"];

/// What tells documents apart.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    /// Paths whose values differ, each with the name that is shown.
    keys: Vec<(String, String)>,
}

impl Labels {
    /// Of these documents.
    pub(crate) fn of(documents: &[&Value]) -> Labels {
        let all: Vec<BTreeMap<String, Value>> =
            documents.iter().map(|document| leaves(document)).collect();
        let mut paths: Vec<&String> = all.iter().flat_map(BTreeMap::keys).collect();
        paths.sort();
        paths.dedup();
        let differs = |path: &&String| {
            let first = all.first().and_then(|it| it.get(*path));
            all.iter().any(|it| it.get(*path) != first)
        };
        let mut varied: Vec<String> = paths.into_iter().filter(differs).cloned().collect();
        // A store that has a name is told by it, and not by the commands that start it.
        if varied.iter().any(|path| path == STORE_NAME) {
            varied.retain(|path| !STORE_COMMANDS.contains(&path.as_str()));
        }
        // What is measured comes first, repetitions come last.
        let place = |path: &String| (path == SEED, !path.starts_with("store."));
        varied.sort_by_key(place);
        let short = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
        let keys = varied.iter().map(|path| {
            let name = short(path);
            let is_alone = varied.iter().filter(|it| short(it) == name).count() == 1;
            let shown = match path.as_str() {
                "store.url" => String::from("store"),
                STORE_NAME if !varied.iter().any(|it| it == "store.url") => String::from("store"),
                _ if is_alone => name,
                _ => path.clone(),
            };
            (path.clone(), shown)
        });
        Labels {
            keys: keys.collect(),
        }
    }

    /// Names of what differs, repetitions left out.
    pub(crate) fn names(&self) -> Vec<&str> {
        let keys = self.keys.iter().filter(|(path, _)| path != SEED);
        keys.map(|(_, name)| name.as_str()).collect()
    }

    /// The values of a document by these names.
    pub(crate) fn values(&self, document: &Value) -> Vec<Value> {
        let own = leaves(document);
        let keys = self.keys.iter().filter(|(path, _)| path != SEED);
        keys.map(|(path, _)| own.get(path).cloned().unwrap_or_default())
            .collect()
    }

    /// What tells a document apart, in words; empty if there is one document alone.
    pub(crate) fn words(&self, document: &Value) -> String {
        let own = leaves(document);
        let words = self.keys.iter().map(|(path, name)| {
            let value = own.get(path).unwrap_or(&Value::Null);
            format!("{name} {}", shown(value))
        });
        words.collect::<Vec<String>>().join(", ")
    }
}

/// All values of a document that are no mappings, by their paths.
fn leaves(document: &Value) -> BTreeMap<String, Value> {
    fn walk(value: &Value, path: &str, found: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(entries) => {
                for (key, value) in entries {
                    walk(value, &crate::tree::join(path, key), found);
                }
            }
            other => {
                found.insert(path.to_owned(), other.clone());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(document, "", &mut found);
    found
}

/// A value for a person. A password in an address is not shown.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::from("-"),
        Value::String(text) => without_password(text),
        other => other.to_string(),
    }
}

/// An address without its password.
pub(crate) fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..end].rfind('@') else {
        return text.to_owned();
    };
    let user = rest[..at].split(':').next().unwrap_or_default();
    let hidden = match rest[..at].contains(':') {
        true => ":***",
        false => "",
    };
    format!("{scheme}://{user}{hidden}{}", &rest[at..])
}

/// The same in all texts of a document.
pub(crate) fn without_passwords(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_password(text),
        Value::Array(items) => items.iter_mut().for_each(without_passwords),
        Value::Object(entries) => entries.values_mut().for_each(without_passwords),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A number of several repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) count: usize,
}

impl Spread {
    fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len();
        (count > 0).then(|| Spread {
            mean: values.iter().sum::<f64>() / count as f64,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count,
        })
    }

    pub(crate) fn json(self) -> Value {
        json!({ "mean": self.mean, "low": self.low, "high": self.high, "count": self.count })
    }
}

/// One interaction of a row.
#[derive(Clone, Debug)]
pub(crate) struct Interaction {
    pub(crate) name: String,
    /// Numbers by their names in the results.
    pub(crate) numbers: BTreeMap<&'static str, Spread>,
    /// Microseconds and how often, of all repetitions.
    pub(crate) histogram: Vec<(u64, u64)>,
}

/// Runs that differ in their seed alone.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) values: Vec<Value>,
    /// Interactions per second.
    pub(crate) per_s: Option<Spread>,
    pub(crate) interactions: Vec<Interaction>,
    /// What the runs found of themselves, each word once: `passed`, `failed`, `missing`.
    pub(crate) verdicts: Vec<String>,
    /// What is wrong, each sentence once.
    pub(crate) findings: Vec<String>,
    /// What the store is, as its adapter says.
    pub(crate) store: Value,
    /// Of the first run: its course, what its clients and its servers used, cores of a client.
    pub(crate) timeline: Value,
    pub(crate) clients: Vec<ServerSeries>,
    pub(crate) servers: Vec<ServerSeries>,
    pub(crate) cores: Vec<f64>,
}

impl Row {
    /// Whether all of its runs did what they should.
    pub(crate) fn is_good(&self) -> bool {
        let good = ["passed", "unchecked"];
        self.verdicts
            .iter()
            .all(|verdict| good.contains(&verdict.as_str()))
    }
}

/// Numbers of an interaction: name in the row, and where the result has it.
const NUMBERS: [(&str, &str); 13] = [
    ("per_s", "/per_s"),
    ("answered", "/answered"),
    ("p50", "/response_us/p50"),
    ("p95", "/response_us/p95"),
    ("p99", "/response_us/p99"),
    ("p99.9", "/response_us/p99.9"),
    ("retried", "/retried"),
    ("failed", "/failed_all"),
    ("unknown", "/unknown"),
    ("unfinished", "/unfinished"),
    ("round_trips", "/round_trips_each"),
    ("attempts", "/attempts"),
    ("queue_p99", "/queue_us/p99"),
];

/// All rows of an experiment, in the order of its runs.
pub(crate) fn rows(labels: &Labels, outcomes: &[Option<Outcome>]) -> Vec<Row> {
    let mut groups: Vec<(Vec<Value>, Vec<&Outcome>)> = Vec::new();
    for outcome in outcomes.iter().flatten() {
        let values = labels.values(&outcome.document);
        match groups.iter_mut().find(|(own, _)| *own == values) {
            Some((_, group)) => group.push(outcome),
            None => groups.push((values, vec![outcome])),
        }
    }
    groups
        .into_iter()
        .map(|(values, group)| row(values, &group))
        .collect()
}

fn row(values: Vec<Value>, group: &[&Outcome]) -> Row {
    let (mut verdicts, mut findings) = (Vec::new(), Vec::new());
    for outcome in group {
        let verdict = match &outcome.reason {
            Some(reason) => {
                findings.push(reason.clone());
                "failed"
            }
            None => outcome.result["verdict"].as_str().unwrap_or("unchecked"),
        };
        verdicts.push(verdict.to_owned());
        let found = outcome.result["check"]["findings"]
            .as_array()
            .into_iter()
            .flatten();
        findings.extend(found.filter_map(|it| it.as_str().map(str::to_owned)));
    }
    for words in [&mut verdicts, &mut findings] {
        words.sort();
        words.dedup();
    }
    let mut names: Vec<&str> = Vec::new();
    for outcome in group {
        let all = outcome.result["interactions"]
            .as_array()
            .into_iter()
            .flatten();
        for name in all.filter_map(|it| it["name"].as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    static NOTHING: Value = Value::Null;
    let first = group.first().map_or(&NOTHING, |it| &it.result);
    Row {
        values,
        per_s: Spread::of(group.iter().filter_map(|it| it.result["per_s"].as_f64())),
        interactions: names
            .into_iter()
            .map(|name| interaction(name, group))
            .collect(),
        verdicts,
        findings,
        store: first["store"].clone(),
        timeline: first["timeline"].clone(),
        clients: sampled(&first["clients"]),
        servers: sampled(&first["servers"]),
        cores: cores(first),
    }
}

fn sampled(samples: &Value) -> Vec<ServerSeries> {
    let series = samples["series"].as_array().into_iter().flatten();
    series.filter_map(ServerSeries::from_json).collect()
}

/// Cores of the machine of each client, in the order of their samples.
fn cores(result: &Value) -> Vec<f64> {
    let workers = result["workers"].as_array().into_iter().flatten();
    let own = result["client_cores"].as_f64();
    workers
        .filter_map(|it| it["cores"].as_f64())
        .chain(own)
        .collect()
}

fn interaction(name: &str, group: &[&Outcome]) -> Interaction {
    let own: Vec<&Value> = group
        .iter()
        .filter_map(|it| {
            it.result["interactions"]
                .as_array()?
                .iter()
                .find(|it| it["name"] == name)
        })
        .collect();
    let number = |(short, place): &(&'static str, &str)| {
        let values = own.iter().filter_map(|it| it.pointer(place)?.as_f64());
        Some((*short, Spread::of(values)?))
    };
    let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
    for pair in own.iter().flat_map(|it| {
        it["response_us"]["histogram"]
            .as_array()
            .into_iter()
            .flatten()
    }) {
        if let (Some(us), Some(count)) = (pair[0].as_u64(), pair[1].as_u64()) {
            *histogram.entry(us).or_default() += count;
        }
    }
    Interaction {
        name: name.to_owned(),
        numbers: NUMBERS.iter().filter_map(number).collect(),
        histogram: histogram.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_differs() {
        let one =
            json!({ "seed": 1, "store": { "url": "memory:" }, "population": { "sessions": 8 } });
        let two = json!({
            "seed": 2,
            "store": { "url": "redis://:secret@h:1", "mapping": "rows" },
            "population": { "sessions": 8 },
        });
        let labels = Labels::of(&[&one, &two]);
        assert_eq!(labels.names(), ["mapping", "store"]);
        assert_eq!(labels.words(&one), "mapping -, store memory:, seed 1");
        assert_eq!(
            labels.words(&two),
            "mapping rows, store redis://:***@h:1, seed 2"
        );
        assert!(Labels::of(&[&one]).words(&one).is_empty());
    }

    #[test]
    fn repetitions_are_one_row() {
        let outcome = |seed: u64, per_s: f64, verdict: &str| Outcome {
            reason: None,
            took_s: 1.0,
            document: json!({ "seed": seed }),
            result: json!({
                "verdict": verdict, "per_s": per_s,
                "interactions": [{ "name": "A", "per_s": per_s,
                    "response_us": { "p99": 10, "p99.9": 20, "histogram": [[5, 2]] } }],
            }),
        };
        let outcomes = [
            Some(outcome(1, 10.0, "passed")),
            None,
            Some(outcome(2, 30.0, "passed")),
        ];
        let documents: Vec<&Value> = outcomes.iter().flatten().map(|it| &it.document).collect();
        let rows = rows(&Labels::of(&documents), &outcomes);
        assert_eq!(rows.len(), 1);
        let per_s = rows[0].per_s.unwrap();
        assert_eq!(
            (per_s.mean, per_s.low, per_s.high, per_s.count),
            (20.0, 10.0, 30.0, 2)
        );
        let a = &rows[0].interactions[0];
        assert_eq!(a.histogram, [(5, 4)]);
        assert_eq!(a.numbers["p99.9"].mean, 20.0);
        assert!(rows[0].is_good());
        let failed = [Some(outcome(1, 1.0, "failed"))];
        assert!(!super::rows(&Labels::of(&[]), &failed)[0].is_good());
    }

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            ("postgres://u:p@h:1/d", "postgres://u:***@h:1/d"),
            ("redis://:p@h", "redis://:***@h"),
            ("postgres://u:p@w@h/d", "postgres://u:***@h/d"),
            ("postgres://u@h/d@e:f", "postgres://u@h/d@e:f"),
            ("memory:", "memory:"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }
}
