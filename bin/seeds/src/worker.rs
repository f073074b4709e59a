//! The process in which runs happen. It reads one run per line and answers with one line.
//!
//! ```text
//! -> SEED TWICE OPTION...
//! <- pass|fail|inconclusive VIRTUAL_NS STEPS STARTS CHECKPOINTS LOST TORN KIND=COUNT,... SYNCS
//!    TEXT (one line)
//! ```

use super::plan_args::PlanArgs;
use anyhow::{Context, Result};
use clap::{Args, Parser};
use sim::{Outcome, Verdict};
use std::fmt::Write as _;
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
        let mut outcome = sim::run(&plan);
        if line.twice != 0 {
            let again = sim::run(&plan);
            if again != outcome {
                let (one, two) = (outcome.report.prints, again.report.prints);
                let text = format!("two runs of one seed differ: {one:x?} and {two:x?}");
                outcome.verdict = Verdict::Fail(text);
            }
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", encode(&outcome))?;
        out.flush()?;
    }
    Ok(())
}

fn encode(outcome: &Outcome) -> String {
    let (word, text) = match &outcome.verdict {
        Verdict::Pass => ("pass", ""),
        Verdict::Fail(text) => ("fail", &**text),
        Verdict::Inconclusive(text) => ("inconclusive", &**text),
    };
    let report = &outcome.report;
    let mut line = format!(
        "{word} {} {} {} {} {} {} ",
        report.virtual_ns,
        report.steps,
        report.starts,
        report.checkpoints,
        report.lost,
        report.torn
    );
    if report.happened.is_empty() {
        line.push('-');
    }
    for (index, (kind, count)) in report.happened.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(line, "{comma}{}={count}", kind.name()).expect("a string takes all");
    }
    line.push(' ');
    for (index, (before, after)) in report.syncs_before.iter().zip(&report.syncs).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(line, "{comma}{before}-{after}").expect("a string takes all");
    }
    if report.syncs_before.is_empty() {
        line.push('-');
    }
    line.push(' ');
    line.push_str(&text.replace('\\', "\\\\").replace('\n', "\\n"));
    line
}
