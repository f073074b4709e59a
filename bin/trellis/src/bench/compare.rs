//! `trellis bench compare`: which of two databases is faster.

use super::{isolation, screen, worker};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use drive::outputs;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::{self, Isolation, RunOptions};
use links::view::{Progress, Silent};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use sweeps::compare::{self, Comparison, Round};

#[derive(Args)]
pub(super) struct CompareArgs {
    /// A database that holds TPC-C: the one that the other is compared with
    #[arg(long, value_name = "URL")]
    a: String,
    /// The other [default: A again, which shows what differs by chance]
    #[arg(long, value_name = "URL")]
    b: Option<String>,
    /// Rounds of four runs each, A B B A
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=100))]
    rounds: u32,
    /// Terminals, each with a connection
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Measured seconds of a run
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seconds before the measured phase of a run
    #[arg(long, default_value_t = 1)]
    warmup: u64,
    /// serializable, repeatable-read or read-committed
    #[arg(long, default_value = "serializable", value_parser = isolation)]
    isolation: Isolation,
    /// Do not check the consistency conditions at the end
    #[arg(long)]
    no_check: bool,
    /// Have the load come from `trellis bench worker` there, and not from here; once for each
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What was measured.
#[derive(Default)]
struct Measured {
    rounds: Vec<Round>,
    names: [String; 2],
}

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    outputs::check(args.json.as_deref())?;
    let urls = [&args.a, args.b.as_ref().unwrap_or(&args.a)];
    let mut measured = Measured::default();
    let mut out = std::io::stdout();
    let run_s = args.seconds + args.warmup;
    let all_s = u64::from(args.rounds) * 4 * run_s;
    writeln!(out, "{} rounds of A B B A, about {all_s} s", args.rounds)?;
    for round in 0..args.rounds {
        let mut rates = Round::default();
        for (at, which) in [0, 1, 1, 0].into_iter().enumerate() {
            // The same inputs in both halves of a round, others in each round.
            let seed = 1 + u64::from(round) * 2 + at as u64 / 2;
            let report = run(args, urls[which], seed)
                .with_context(|| format!("{}: {}", ["A", "B"][which], urls[which]))?;
            measured.names[which] = report.server.name();
            rates[at] = report.committed_per_s();
        }
        let [a, b, c, d] = rates;
        let left_s = u64::from(args.rounds - round - 1) * 4 * run_s;
        writeln!(
            out,
            "round {:>3}   A {a:>9.1}   B {b:>9.1}   B {c:>9.1}   A {d:>9.1} per s   about \
             {left_s} s left",
            round + 1
        )?;
        out.flush()?;
        measured.rounds.push(rates);
    }
    if !args.no_check {
        check(&urls)?;
    }
    let found = compare::compare(&measured.rounds).context("a run has committed nothing")?;
    print(&measured, &found)?;
    write_json(args, &measured, &found)?;
    Ok(ExitCode::SUCCESS)
}

fn run(args: &CompareArgs, url: &str, seed: u64) -> Result<RunReport> {
    let mut options = RunOptions::new(url);
    options.isolation = args.isolation;
    options.runner = RunnerOptions {
        clients: args.clients,
        length: Duration::from_secs(args.seconds),
        warmup: Duration::from_secs(args.warmup),
        seed,
        check: false,
        ..RunnerOptions::default()
    };
    let report = worker::run_by(&args.worker, &options, &mut Silent)?;
    ensure!(report.committed() > 0, "no transaction was committed");
    if !report.passed() {
        bail!("the run failed its checks: {}", report.faults().join("; "));
    }
    Ok(report)
}

/// The conditions of both: a comparison of a wrong database has no number.
fn check(urls: &[&String; 2]) -> Result<()> {
    let count = if urls[0] == urls[1] { 1 } else { 2 };
    for url in &urls[..count] {
        let mut progress = screen();
        progress.stage(&format!("checking {url}"));
        let found = tpcc::check(url, &mut progress)?;
        ensure!(
            found.failed() == 0,
            "{url} fails {} of its conditions: there is no number",
            found.failed()
        );
    }
    Ok(())
}

fn print(measured: &Measured, found: &Comparison) -> Result<()> {
    let mut out = std::io::stdout();
    let [a, b] = &measured.names;
    writeln!(out, "\nA  {a}\nB  {b}")?;
    writeln!(
        out,
        "B has {:.3} times the throughput of A (95 %: {:.3} to {:.3}, {} rounds)",
        found.ratio, found.low, found.high, found.rounds
    )?;
    let percent = found.smallest * 100.0;
    match found.differs() {
        true => writeln!(out, "They differ.")?,
        false => writeln!(
            out,
            "They are not told apart: a difference of less than {percent:.1} % would mostly not \
             have been seen. More rounds see smaller ones."
        )?,
    }
    Ok(())
}

fn write_json(args: &CompareArgs, measured: &Measured, found: &Comparison) -> Result<()> {
    let Some(path) = &args.json else {
        return Ok(());
    };
    let value = json!({
        "format": 1,
        "a": { "url": args.a, "server": measured.names[0] },
        "b": { "url": args.b.as_ref().unwrap_or(&args.a), "server": measured.names[1] },
        "rounds": measured.rounds,
        "ratio": found.ratio,
        "low": found.low,
        "high": found.high,
        "smallest_effect": found.smallest,
        "differs": found.differs(),
    });
    let text = serde_json::to_string_pretty(&value)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
