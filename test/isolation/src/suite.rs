//! A folder of scripts taken through one system, and what a person is told about it.

use crate::anomaly::Level;
use crate::record::Key;
use crate::run::{Broken, Report, System, explore};
use crate::spec::Spec;

/// Differences from what is recorded that are told one by one.
const TOLD_MAX: usize = 5;

/// What became of one script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The script with the records of this run in place of the former ones.
    pub updated: Spec,
    /// What is wrong whatever is recorded.
    pub faults: Vec<String>,
    /// Where it is not what is recorded.
    pub differences: Vec<String>,
    /// Interleavings that ran.
    pub interleavings: usize,
}

/// Runs one script at all levels. A level that the system does not tell apart from one that has run
/// already (SHOW says so) is run all the same: what is given is what is judged.
///
/// # Errors
/// See [`explore`].
pub async fn run<S: System>(
    system: &mut S,
    spec: &Spec,
    levels: &[Level],
) -> Result<Outcome, Broken> {
    let mut result = Outcome {
        updated: spec.clone(),
        faults: Vec::new(),
        differences: Vec::new(),
        interleavings: 0,
    };
    for &level in levels {
        let report = explore(system, spec, level).await?;
        let key = Key {
            system: system.name(),
            level,
        };
        result.interleavings += report.section.0.values().map(Vec::len).sum::<usize>();
        let faults = report
            .faults
            .iter()
            .map(|fault| format!("{}: {}", key.system, fault.0));
        result.faults.extend(faults);
        result.differences.extend(differences(spec, &key, &report));
        result.updated.records.0.insert(key, report.section);
    }
    Ok(result)
}

fn differences(spec: &Spec, key: &Key, report: &Report) -> Vec<String> {
    let Some(recorded) = spec.records.0.get(key) else {
        return vec![format!("{key}: nothing is recorded")];
    };
    let line = |line: Option<&crate::record::Line>| match line {
        Some(line) => line.to_string(),
        None => "is impossible".to_owned(),
    };
    let mut told = Vec::new();
    for (word, now, before) in report.section.differences(recorded) {
        told.push(format!(
            "{key} {word}\n  recorded {}\n  now      {now}",
            line(before)
        ));
    }
    for (word, before, now) in recorded.differences(&report.section) {
        if now.is_none() {
            told.push(format!(
                "{key} {word}\n  recorded {before}\n  now      {}",
                line(None)
            ));
        }
    }
    if told.len() > TOLD_MAX {
        let more = told.len() - TOLD_MAX;
        told.truncate(TOLD_MAX);
        told.push(format!("{key}: and {more} more"));
    }
    told
}
