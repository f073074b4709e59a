//! The process in which runs happen. It reads one run per line and answers with one line.
//!
//! ```text
//! -> SEED TWICE OPTION...
//! <- the outcome as JSON
//! ```

use super::plan_args::PlanArgs;
use anyhow::{Context, Result};
use clap::{Args, Parser};
use sim::Verdict;
use std::io::{BufRead, Write};

/// Arguments of the worker.
#[derive(Args)]
pub(crate) struct WorkerArgs {}

/// One line from the parent.
#[derive(Parser)]
struct Line {
    seed: u64,
    twice: u8,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Runs what it is told until its input ends.
pub(crate) fn run(_: &WorkerArgs) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words = core::iter::once("worker").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).context("a line of the parent")?;
        let workload = line.plan.workload_of(line.seed)?;
        line.plan.plant()?;
        let plan = line.plan.of(workload, line.seed).draw()?;
        let mut outcome = simulated::run(&plan);
        if line.twice != 0 {
            let again = simulated::run(&plan);
            if again != outcome {
                let (one, two) = (outcome.report.prints, again.report.prints);
                let text = format!("two runs of one seed differ: {one:x?} and {two:x?}");
                outcome.verdict = Verdict::Fail(text);
            }
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&outcome)?)?;
        out.flush()?;
    }
    Ok(())
}
