//! What many runs come to.

use super::pool::Done;
use anyhow::Result;
use sim::{Report, Verdict};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) inconclusive: u64,
}

impl Counts {
    pub(crate) fn take(&mut self, verdict: &Verdict) {
        *match verdict {
            Verdict::Pass => &mut self.passed,
            Verdict::Inconclusive(_) => &mut self.inconclusive,
            Verdict::Fail(_) => &mut self.failed,
        } += 1;
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        if self.inconclusive > 0 {
            let count = self.inconclusive;
            writeln!(out, "{count} inconclusive: too little happened to judge")?;
        }
        Ok(writeln!(
            out,
            "{} passed, {} failed",
            self.passed, self.failed
        )?)
    }
}

/// Sums over runs.
#[derive(Default)]
pub(crate) struct Totals {
    workloads: BTreeMap<&'static str, Counts>,
    /// What happened in all of them.
    report: Report,
    twice: u64,
    failed_seeds: Vec<(u64, &'static str)>,
}

impl Totals {
    pub(crate) fn new(workloads: &[&'static str]) -> Totals {
        let workloads = workloads.iter().map(|name| (*name, Counts::default()));
        Totals {
            workloads: workloads.collect(),
            ..Totals::default()
        }
    }

    /// Adds a run; whether it has failed.
    pub(crate) fn take(&mut self, done: &Done) -> bool {
        let counts = self.workloads.entry(done.job.workload).or_default();
        counts.take(&done.outcome.verdict);
        if done.failure().is_some() {
            self.failed_seeds.push((done.job.seed, done.job.workload));
        }
        let (sum, of_run) = (&mut self.report, &done.outcome.report);
        sum.virtual_ns += of_run.virtual_ns;
        sum.steps += of_run.steps;
        sum.starts += of_run.starts;
        sum.checkpoints += of_run.checkpoints;
        sum.lost += of_run.lost;
        sum.torn += of_run.torn;
        for (kind, count) in &of_run.happened {
            *sum.happened.entry(*kind).or_default() += count;
        }
        self.twice += u64::from(done.job.twice);
        done.failure().is_some()
    }

    fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.workloads.values().map(of).sum()
    }

    pub(crate) fn failed(&self) -> u64 {
        self.sum(|counts| counts.failed)
    }

    /// Runs of the workload that had the fewest.
    pub(crate) fn least(&self) -> u64 {
        let runs = |counts: &Counts| counts.passed + counts.failed + counts.inconclusive;
        self.workloads.values().map(runs).min().unwrap_or(0)
    }

    /// One line.
    pub(crate) fn brief(&self) -> String {
        let passed = self.sum(|counts| counts.passed);
        let inconclusive = self.sum(|counts| counts.inconclusive);
        let failed = self.failed();
        format!("{passed} passed, {failed} failed, {inconclusive} inconclusive")
    }

    fn virtual_hours(&self) -> f64 {
        self.report.virtual_ns as f64 / 3.6e12
    }

    fn faults(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let happened = self.report.happened.iter();
        happened.map(|(kind, count)| (kind.name(), *count))
    }

    /// Prints everything; the last line is `N passed, M failed`.
    pub(crate) fn print(&self, wall: Duration) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for (name, counts) in &self.workloads {
            writeln!(
                out,
                "{name:<14}{:>7} passed {:>5} failed {:>5} inconclusive",
                counts.passed, counts.failed, counts.inconclusive
            )?;
        }
        writeln!(
            out,
            "{:.2} simulated hours in {:.1} s: {:.1} times real time; {} steps",
            self.virtual_hours(),
            wall.as_secs_f64(),
            self.virtual_hours() * 3600.0 / wall.as_secs_f64().max(0.001),
            self.report.steps
        )?;
        writeln!(
            out,
            "{} starts, {} checkpoints, {} power cuts lost unsynced writes, {} left half a write, \
             {} runs twice",
            self.report.starts,
            self.report.checkpoints,
            self.report.lost,
            self.report.torn,
            self.twice
        )?;
        let faults = self.faults();
        let faults: Vec<String> = faults
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        writeln!(out, "faults: {}", faults.join(", "))?;
        let sums = Counts {
            passed: self.sum(|counts| counts.passed),
            failed: self.failed(),
            inconclusive: self.sum(|counts| counts.inconclusive),
        };
        sums.print(&mut out)
    }

    /// The same for programs.
    pub(crate) fn json(&self, wall: Duration) -> Result<String> {
        let workloads = self.workloads.iter().map(|(name, counts)| {
            let counts = serde_json::json!({
                "passed": counts.passed,
                "failed": counts.failed,
                "inconclusive": counts.inconclusive,
            });
            (*name, counts)
        });
        let failed = self.failed_seeds.iter();
        let failed =
            failed.map(|(seed, workload)| serde_json::json!({"seed": seed, "workload": workload}));
        let value = serde_json::json!({
            "workloads": workloads.collect::<BTreeMap<_, _>>(),
            "failed_seeds": failed.collect::<Vec<_>>(),
            "simulated_hours": self.virtual_hours(),
            "wall_seconds": wall.as_secs_f64(),
            "simulated_per_real": self.virtual_hours() * 3600.0 / wall.as_secs_f64().max(0.001),
            "steps": self.report.steps,
            "starts": self.report.starts,
            "checkpoints": self.report.checkpoints,
            "power_cuts_that_lost": self.report.lost,
            "power_cuts_that_tore": self.report.torn,
            "runs_twice": self.twice,
            "faults": self.faults().collect::<BTreeMap<_, _>>(),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}
