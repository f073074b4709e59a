//! The table and the JSON.

use super::cells::{CELLS, Outcome, Sample, Work, median};
use super::{Plan, SETTINGS};
use crate::{repo, shell};
use serde_json::{Value, json};
use std::process::Command;

/// One line for a reader who waits.
pub(super) fn line(outcome: &Outcome) -> String {
    let list = |samples: &[Sample]| {
        let rates = samples.iter().map(|sample| format!("{:.0}", sample.rate));
        rates.collect::<Vec<_>>().join(" ")
    };
    let (postgres, trellis) = (list(&outcome.postgres), list(&outcome.trellis));
    format!(
        "{}: postgres {postgres} | trellis {trellis}",
        outcome.cell.name
    )
}

/// The whole table. Rates are transactions per second, NewOrder per minute for TPC-C, rows per
/// second for loads.
pub(super) fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "\n{:<25} {:>10} {:>10} {:>6} {:>13} {:>6} {:>7} {:>8}  {}\n",
        "cell", "postgres", "trellis", "ratio", "spread", "floor", "failed", "retried", "verdict"
    );
    for outcome in outcomes {
        let ratios = outcome.ratios();
        let spread = format!("{:.2} to {:.2}", least(&ratios), greatest(&ratios));
        let verdict = match (outcome.is_met(), outcome.ratio() >= outcome.cell.aim) {
            (true, _) if outcome.cell.floor == 0.0 => "reported",
            (false, _) => "MISSED",
            (true, false) => "met, below the aim",
            (true, true) => "met",
        };
        let retried = median_of(&outcome.trellis, |sample| sample.retried_share);
        text.push_str(&format!(
            "{:<25} {:>10.0} {:>10.0} {:>6.2} {:>13} {:>6.2} {:>6.2}% {:>7.2}%  {}\n",
            outcome.cell.name,
            median_of(&outcome.postgres, |sample| sample.rate),
            median_of(&outcome.trellis, |sample| sample.rate),
            outcome.ratio(),
            spread,
            outcome.cell.floor,
            outcome.failed_share() * 100.0,
            retried * 100.0,
            verdict
        ));
    }
    text
}

/// Everything that was measured and on what.
pub(super) fn json(plan: &Plan, outcomes: &[Outcome]) -> Value {
    let settings = SETTINGS
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value)));
    let machine = machine()
        .into_iter()
        .map(|(name, value)| (name.to_string(), json!(value)));
    json!({
        "peer": "postgres",
        "is_complete": outcomes.len() == CELLS.len(),
        "scale": plan.scale,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "machine": Value::Object(machine.collect()),
        "postgres_settings": Value::Object(settings.collect()),
        "cells": outcomes.iter().map(cell_json).collect::<Vec<_>>(),
        "all_met": outcomes.iter().all(Outcome::is_met),
    })
}

fn cell_json(outcome: &Outcome) -> Value {
    let ratios = outcome.ratios();
    json!({
        "name": outcome.cell.name,
        "clients": outcome.cell.clients,
        "isolation": outcome.cell.isolation,
        "unit": match outcome.cell.work {
            Work::Pgbench { .. } => "txn/s",
            Work::Load(_) => "rows/s",
            Work::Tpcc => "new_order/min",
        },
        "postgres": samples_json(&outcome.postgres),
        "trellis": samples_json(&outcome.trellis),
        "ratios": ratios,
        "ratio": outcome.ratio(),
        "ratio_min": least(&ratios),
        "ratio_max": greatest(&ratios),
        "floor": outcome.cell.floor,
        "aim": outcome.cell.aim,
        "is_met": outcome.is_met(),
    })
}

fn samples_json(samples: &[Sample]) -> Value {
    let list = |field: fn(&Sample) -> f64| samples.iter().map(field).collect::<Vec<f64>>();
    json!({
        "median": median_of(samples, |sample| sample.rate),
        "rates": list(|sample| sample.rate),
        "latency_ms": list(|sample| sample.latency_ms),
        "failed_share": list(|sample| sample.failed_share),
        "retried_share": list(|sample| sample.retried_share),
    })
}

/// What the numbers were measured on.
pub(super) fn machine() -> Vec<(&'static str, String)> {
    let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, start: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(start))
            .map(str::to_string);
        line.and_then(|line| Some(line.split_once(':')?.1.trim().to_string()))
            .unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, |count| count.get());
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"])
        .current_dir(repo::root());
    vec![
        ("cores", cores.to_string()),
        ("processor", after(&file("/proc/cpuinfo"), "model name")),
        ("memory", after(&file("/proc/meminfo"), "MemTotal")),
        (
            "kernel",
            file("/proc/sys/kernel/osrelease").trim().to_string(),
        ),
        (
            "commit",
            shell::output(&mut git)
                .unwrap_or_default()
                .trim()
                .to_string(),
        ),
    ]
}

fn median_of(samples: &[Sample], field: fn(&Sample) -> f64) -> f64 {
    median(&samples.iter().map(field).collect::<Vec<_>>())
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_is_missed() {
        let sample = |rate| {
            vec![Sample {
                rate,
                ..Sample::default()
            }]
        };
        let good = Outcome {
            cell: &CELLS[0],
            postgres: sample(100.0),
            trellis: sample(130.0),
        };
        let bad = Outcome {
            cell: &CELLS[2],
            postgres: sample(100.0),
            trellis: sample(80.0),
        };
        let text = table(&[good, bad]);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert!(
            lines[1].contains("1.30") && lines[1].ends_with("met"),
            "{text}"
        );
        assert!(
            lines[2].contains("0.80") && lines[2].ends_with("MISSED"),
            "{text}"
        );
    }
}
