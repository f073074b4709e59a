//! `trellis bench search`: the highest rate that meets a latency goal.

use super::{isolation, rate, worker};
use anyhow::{Context, Result, bail};
use clap::Args;
use drive::outputs;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::{self, Isolation, RunOptions};
use links::view::{Silent, duration};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use sweeps::search;

/// Rates that are tried, at most.
const TRIALS_MAX: usize = 30;

#[derive(Args)]
pub(super) struct SearchArgs {
    /// A database that holds TPC-C
    #[arg(long)]
    url: String,
    /// Quantile and time that its responses must keep: p50, p90, p95, p99 or p99.9; us, ms or s
    #[arg(long, default_value = "p99:100ms", value_parser = goal)]
    goal: Goal,
    /// The rate that is tried first, per second
    #[arg(long, default_value_t = 100.0, value_parser = rate)]
    from: f64,
    /// How close the answer is to the first rate that fails, in percent
    #[arg(long, default_value_t = 5.0, value_parser = percent)]
    within: f64,
    /// Connections
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Measured seconds of a trial
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before the measured phase of a trial
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// serializable, repeatable-read or read-committed
    #[arg(long, default_value = "serializable", value_parser = isolation)]
    isolation: Isolation,
    /// Have the load come from `trellis bench worker` there, and not from here; once for each
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What responses must keep.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Goal {
    quantile: f64,
    us: u64,
}

/// Reads `p99:20ms`.
fn goal(text: &str) -> Result<Goal, String> {
    let wrong = || String::from("it must be like p99:20ms");
    let (quantile, time) = text.split_once(':').ok_or_else(wrong)?;
    let quantile = match quantile {
        "p50" => 0.5,
        "p90" => 0.9,
        "p95" => 0.95,
        "p99" => 0.99,
        "p99.9" => 0.999,
        _ => {
            return Err(String::from(
                "the quantile must be p50, p90, p95, p99 or p99.9",
            ));
        }
    };
    let split = time
        .find(|sign: char| sign.is_ascii_alphabetic())
        .ok_or_else(wrong)?;
    let (number, unit) = time.split_at(split);
    let factor = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return Err(String::from("the time must be in us, ms or s")),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let us = number * factor;
    if !(1.0..=3.6e9).contains(&us) {
        return Err(String::from("the time must be 1us to 3600s"));
    }
    Ok(Goal {
        quantile,
        us: us as u64,
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| String::from("it must be a number"))?;
    match (0.5..=50.0).contains(&number) {
        true => Ok(number),
        false => Err(String::from("it must be 0.5 to 50")),
    }
}

/// What one rate gave.
struct Tried {
    rate: f64,
    committed_per_s: f64,
    at_quantile_us: Option<u64>,
    is_met: bool,
    why: String,
}

pub(super) fn search(args: &SearchArgs) -> Result<ExitCode> {
    outputs::check(args.json.as_deref())?;
    let mut all = Vec::new();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "looking for the highest rate with p{} of at most {}; a trial takes {} s",
        args.goal.quantile * 100.0,
        duration(args.goal.us),
        args.warmup + args.seconds
    )?;
    let found = search::search(args.from, args.within / 100.0, TRIALS_MAX, |rate| {
        let tried = try_rate(args, rate)?;
        let at = tried.at_quantile_us.map_or(String::from("-"), duration);
        writeln!(
            out,
            "{rate:>10.1} due per s   {:>10.1} committed   {at:>9}   {}{}",
            tried.committed_per_s,
            if tried.is_met { "met" } else { "not met" },
            tried.why
        )?;
        out.flush()?;
        let is_met = tried.is_met;
        all.push(tried);
        anyhow::Ok(is_met)
    })?;
    let check = tpcc::check(&args.url, &mut Silent)?;
    let holds = check.failed() == 0;
    write_json(args, found.0.filter(|_| holds), &all)?;
    let Some(best) = found.0 else {
        bail!("no rate met the goal, down to the lowest that was tried");
    };
    if !holds {
        let failed = check.failed();
        bail!("{failed} consistency conditions fail: there is no number");
    }
    writeln!(
        out,
        "\nthe goal is met up to {best:.1} per s; all conditions hold"
    )?;
    Ok(ExitCode::SUCCESS)
}

fn try_rate(args: &SearchArgs, rate: f64) -> Result<Tried> {
    let mut options = RunOptions::new(&args.url);
    options.isolation = args.isolation;
    options.runner = RunnerOptions {
        clients: args.clients,
        rate: Some(rate),
        length: Duration::from_secs(args.seconds),
        warmup: Duration::from_secs(args.warmup),
        check: false,
        ..RunnerOptions::default()
    };
    let report = worker::run_by(&args.worker, &options, &mut Silent)?;
    if report.audits_failed() > 0 {
        bail!("the run failed its checks: {}", report.faults().join("; "));
    }
    let at = report.response_at(args.goal.quantile);
    let at = at.filter(|_| report.overloaded.is_none());
    let why = reason(&report, args.goal, at);
    Ok(Tried {
        rate,
        committed_per_s: report.committed_per_s(),
        at_quantile_us: at,
        is_met: why.is_empty(),
        why,
    })
}

/// Why the goal is not met; empty: it is.
fn reason(report: &RunReport, goal: Goal, at: Option<u64>) -> String {
    if let Some(overload) = &report.overloaded {
        return format!(": {overload}");
    }
    if report.failed() > 0 {
        return format!(": {} transactions failed", report.failed());
    }
    match at {
        None => String::from(": too few responses, or too many unfinished"),
        Some(us) if us > goal.us => String::from(": too slow"),
        Some(_) => String::new(),
    }
}

fn write_json(args: &SearchArgs, best: Option<f64>, all: &[Tried]) -> Result<()> {
    let Some(path) = &args.json else {
        return Ok(());
    };
    let trial = |tried: &Tried| {
        json!({
            "rate": tried.rate,
            "committed_per_s": tried.committed_per_s,
            "at_quantile_us": tried.at_quantile_us,
            "met": tried.is_met,
            "why": tried.why.trim_start_matches([':', ' ']),
        })
    };
    let value = json!({
        "format": 1,
        "url": args.url,
        "goal": { "quantile": args.goal.quantile, "us": args.goal.us },
        "rate": best,
        "trials": all.iter().map(trial).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&value)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read() {
        let read = goal("p99.9:1.5ms").unwrap();
        assert_eq!((read.quantile, read.us), (0.999, 1_500));
        assert_eq!(goal("p50:2s").unwrap().us, 2_000_000);
        for wrong in [
            "p99",
            "p98:1ms",
            "p99:1",
            "p99:xms",
            "p99:0us",
            "p99:1h",
            "p99:9999s",
        ] {
            assert!(goal(wrong).is_err(), "{wrong}");
        }
    }
}
