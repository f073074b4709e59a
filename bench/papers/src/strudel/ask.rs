//! One document on one store: what `trellis bench exp` runs, in this process.

use super::bed::{Bed, Place};
use crate::figure::Figure;
use crate::repetition::Lab;
use anyhow::{Context, Result, bail};
use experiment::{Evaluator, resolve};
use local_cluster::dir::random;
use serde_json::{Value, json};
use sessions::run::{Phase, Progress};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use stores::Mapping;

/// The documents of the figures, by the names of their files.
const DOCUMENTS: [(&str, &str); 8] = [
    (
        "figure-9",
        include_str!("../../../experiments/strudel/figure-9.yaml"),
    ),
    (
        "figure-10",
        include_str!("../../../experiments/strudel/figure-10.yaml"),
    ),
    (
        "figure-11",
        include_str!("../../../experiments/strudel/figure-11.yaml"),
    ),
    (
        "back-off",
        include_str!("../../../experiments/strudel/back-off.yaml"),
    ),
    (
        "figure-12",
        include_str!("../../../experiments/strudel/figure-12.yaml"),
    ),
    (
        "figure-13",
        include_str!("../../../experiments/strudel/figure-13.yaml"),
    ),
    (
        "elasticity",
        include_str!("../../../experiments/strudel/elasticity.yaml"),
    ),
    (
        "bulk-load",
        include_str!("../../../experiments/strudel/bulk-load.yaml"),
    ),
];

/// Runs of each setting, with another seed each.
pub(super) fn repeats(quick: bool) -> u64 {
    if quick { 1 } else { 3 }
}

/// Seconds of warm-up and of the measured phase of a quick run, at most.
const QUICK_S: (f64, f64) = (0.3, 1.0);

/// The documents of a file, each for one run on a store that is still to be said.
pub(super) fn documents(name: &str) -> Result<Vec<Value>> {
    let found = DOCUMENTS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.context("no such document")?;
    let folder = std::env::temp_dir().join(format!("trellis-paper-{:016x}", random()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{name}.yaml"));
    let resolved = std::fs::write(&path, text).map_err(anyhow::Error::from);
    let resolved = resolved.and_then(|()| {
        // No document is Jsonnet.
        let evaluator = Evaluator::Child {
            program: std::env::current_exe()?,
            arguments: Vec::new(),
        };
        Ok(resolve(&path, None, &evaluator)?)
    });
    // Best effort: a temporary directory that stays behind does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(resolved?.runs.iter().map(|run| run.for_run()).collect())
}

/// As a person repeats a figure on one store.
pub(super) fn command(name: &str) -> String {
    format!("trellis bench exp bench/experiments/strudel/{name}.yaml --store URL")
}

/// Seconds that a run of a document takes, about.
fn run_s(document: &Value, quick: bool) -> f64 {
    let phase = |key: &str| document["phases"][key].as_f64().unwrap_or(1.0);
    let (warmup, measure) = (phase("warmup_s"), phase("measure_s"));
    match quick {
        true => warmup.min(QUICK_S.0) + measure.min(QUICK_S.1) + 1.0,
        false => warmup + measure + 1.5,
    }
}

/// Seconds that so many stores take for documents of a file, about.
pub(super) fn about_s(name: &str, stores: usize, quick: bool) -> f64 {
    let documents = documents(name).unwrap_or_default();
    let each: f64 = documents.iter().map(|it| run_s(it, quick)).sum();
    each * stores as f64 * repeats(quick) as f64
}

/// How a store is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Entities in this mapping.
    Entities(Mapping),
    /// Entities in this mapping, created as in the paper: the key, the entries of indexes and the
    /// entity in a transaction each.
    InThree(Mapping),
    /// Statements of the workload's own.
    Sql,
}

impl Way {
    pub(super) fn name(self) -> String {
        match self {
            Way::Entities(mapping) => mapping.to_string(),
            Way::InThree(mapping) => format!("{mapping}, in three"),
            Way::Sql => "own SQL".to_owned(),
        }
    }

    fn set(self, document: &mut Value) {
        match self {
            Way::Entities(mapping) => document["store"]["mapping"] = json!(mapping.name()),
            Way::InThree(mapping) => {
                document["store"]["mapping"] = json!(mapping.name());
                document["store"]["fold"] = json!(false);
            }
            Way::Sql => document["workload"]["api"] = json!("sql"),
        }
    }
}

/// What came out of the runs of one document on one store.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) results: Vec<Value>,
    /// Processor time of the servers for an interaction, in microseconds, where there is one.
    pub(super) cpu_us: Vec<f64>,
    /// Of the first run: seconds since its begin, and interactions a second.
    pub(super) seconds: Vec<(f64, f64)>,
}

fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// The sum of a number of all interactions.
fn total(result: &Value, key: &str) -> f64 {
    let all = result["interactions"].as_array().into_iter().flatten();
    all.filter_map(|it| it[key].as_f64()).sum()
}

impl Runs {
    /// Interactions a second.
    pub(super) fn rate(&self) -> f64 {
        let rates = self.results.iter().filter_map(|it| it["per_s"].as_f64());
        mean(rates).unwrap_or(f64::NAN)
    }

    /// Round trips for an interaction.
    pub(super) fn trips(&self) -> Option<f64> {
        let each = |it: &Value| {
            let (trips, answered) = (total(it, "round_trips"), total(it, "answered"));
            (trips > 0.0 && answered > 0.0).then(|| trips / answered)
        };
        mean(self.results.iter().filter_map(each))
    }

    /// Processor time of the servers for an interaction, in microseconds.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        mean(self.cpu_us.iter().copied())
    }

    /// Attempts that met a conflict, for 100 answered interactions.
    pub(super) fn conflicts(&self) -> Option<f64> {
        let each = |it: &Value| {
            let all = it["interactions"].as_array().into_iter().flatten();
            let counts = all.filter_map(|it| it["conflicts"].as_object());
            let counts = counts.flat_map(|kinds| kinds.values().filter_map(Value::as_f64));
            let (conflicts, answered) = (counts.sum::<f64>(), total(it, "answered"));
            (answered > 0.0).then(|| 100.0 * conflicts / answered)
        };
        mean(self.results.iter().filter_map(each))
    }

    /// The mean response time of an interaction, in milliseconds.
    pub(super) fn response_ms(&self, interaction: &str) -> Option<f64> {
        let each = |it: &Value| {
            let mut all = it["interactions"].as_array()?.iter();
            let found = all.find(|it| it["name"] == interaction)?;
            Some(found["response_us"]["mean"].as_f64()? / 1e3)
        };
        mean(self.results.iter().filter_map(each))
    }

    /// Seconds of the load.
    pub(super) fn load_s(&self) -> Option<f64> {
        mean(self.results.iter().filter_map(|it| it["load_s"].as_f64()))
    }
}

/// A number for a table; a dash without one.
pub(super) fn shown(value: Option<f64>, digits: usize) -> String {
    match value.filter(|it| it.is_finite()) {
        Some(value) => format!("{value:.digits$}"),
        None => "-".to_owned(),
    }
}

/// Runs a document on a store as often as it is repeated. `None`: the store is not installed or did
/// not do it, and the figure says so.
pub(super) fn run(
    lab: &mut Lab,
    figure: &mut Figure,
    bed: &mut Bed,
    (place, way): (Place, Way),
    document: &Value,
    label: &str,
) -> Result<Option<Runs>> {
    let url = match bed.url(place) {
        Ok(Some(url)) => url,
        Ok(None) => {
            let text = format!("{} is not installed, so it was not measured.", place.name());
            if !figure.text.contains(&text) {
                figure.text.push(text);
            }
            return Ok(None);
        }
        Err(error) => {
            let text = format!("{} was not measured: {error:#}.", place.name());
            if !figure.text.contains(&text) {
                figure.text.push(text);
            }
            return Ok(None);
        }
    };
    let mut document = document.clone();
    document["store"]["url"] = json!(url);
    way.set(&mut document);
    if lab.quick {
        for (key, most) in [("warmup_s", QUICK_S.0), ("measure_s", QUICK_S.1)] {
            let own = document["phases"][key].as_f64().unwrap_or(most);
            document["phases"][key] = json!(own.min(most));
        }
    }
    let name = format!("{}, {}, {label}", place.name(), way.name());
    let mut runs = Runs::default();
    for repeat in 0..repeats(lab.quick) {
        document["seed"] = json!(1 + repeat);
        let done = once(bed, place, &document, &mut runs);
        lab.clock.besides_done(run_s(&document, lab.quick));
        if let Err(error) = done {
            lab.clock.say(&format!("{name}: no number"))?;
            figure.fail(&format!("{name}: {error:#}"));
            return Ok(None);
        }
    }
    let failed: f64 = runs.results.iter().map(|it| total(it, "failed_all")).sum();
    if failed > 0.0 {
        let text = format!("{name}: {failed} interactions got no answer that counts.");
        figure.text.push(text);
    }
    lab.clock
        .say(&format!("{name}: {:.0} per s", runs.rate()))?;
    Ok(Some(runs))
}

/// One run. A run whose check fails is an error.
pub(super) fn once(bed: &Bed, place: Place, document: &Value, runs: &mut Runs) -> Result<()> {
    let (mut before, mut after) = (None, None);
    let mut seconds = Vec::new();
    let begun = Instant::now();
    let mut live = |progress: Progress| match progress.phase {
        Phase::Load => {}
        // The first time nothing has been asked yet.
        Phase::WarmUp if before.is_none() => before = Some(bed.cpu_us(place)),
        Phase::WarmUp | Phase::Measure => {
            seconds.push((begun.elapsed().as_secs_f64(), progress.per_s));
        }
        Phase::Check => after = Some(bed.cpu_us(place)),
    };
    let never = AtomicBool::new(false);
    let result = sessions::run_document(document, &mut live, &never)?;
    match result["verdict"].as_str() {
        Some("failed") => {
            let findings = result["check"]["findings"].to_string();
            let findings: String = findings.chars().take(400).collect();
            bail!("its check failed: {findings}");
        }
        Some("nothing") => bail!("nothing was answered: {}", why(&result)),
        _ => {}
    }
    if runs.results.is_empty() {
        runs.seconds = seconds;
    }
    let used = before.flatten().zip(after.flatten());
    let asked = asked(&result);
    if let Some((before, after)) = used.filter(|_| asked > 0.0) {
        runs.cpu_us.push((after - before) / asked);
    }
    runs.results.push(result);
    Ok(())
}

/// The failures of a run, in words.
fn why(result: &Value) -> String {
    let all = result["interactions"].as_array().into_iter().flatten();
    let failed: Vec<String> = all.map(|it| it["failed"].to_string()).collect();
    failed.join(", ").chars().take(300).collect()
}

/// Interactions of the whole run, the warm-up included: each ended with a transition. Right for
/// tables in which every state has an interaction.
fn asked(result: &Value) -> f64 {
    let all = result["transitions"].as_array().into_iter().flatten();
    let all = all.filter(|it| it["from"] != "START");
    all.filter_map(|it| it["count"].as_f64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_can_be_run() {
        for (name, text) in DOCUMENTS {
            assert!(text.starts_with("# Strudel, "), "{name}");
            let documents = documents(name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            assert!(!documents.is_empty());
            for document in documents {
                let read = sessions::resolved::Document::read(&document);
                read.unwrap_or_else(|problem| panic!("{name}: {problem}"));
            }
        }
    }
}
