//! `trellis sim`: whole clusters in virtual time, under faults, from a seed.
//!
//! Runs happen in child processes (`worker`): an assertion of the product that fails ends the
//! process, and its seed is a failed one like any other.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod plan_args;
mod planted;
mod pool;
mod shrink;
mod syncs;
mod totals;
mod worker;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use drive::outputs;
use plan_args::PlanArgs;
use pool::Pool;
use scaling::{calibrate, scale};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use totals::Totals;

/// Arguments of `trellis sim`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis sim run --seeds 1000                      every workload in turn, faults drawn\n  \
    trellis sim run --workload bank --seeds 100 --faults none\n  \
    trellis sim replay 17 --trace                     one run, event by event\n  \
    trellis sim shrink 17 --workload bank             fewer faults, clients and time\n  \
    trellis sim syncs 17 --workload bank              a crash at each sync of that run\n  \
    trellis sim scale --nodes 1,4,16 --remote 0,10,50 throughput by a model\n\n\
    Exit code: 0 if nothing failed.")]
pub struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Subcommand)]
enum SimCommand {
    /// Run many seeds
    Run(RunArgs),
    /// Run one seed again
    Replay(ReplayArgs),
    /// Look for a smaller run of a seed that still fails
    Shrink(OneArgs),
    /// Run a seed once and count the syncs, then once for each with a power cut there
    Syncs(SyncsArgs),
    /// Look for the seeds that see planted bugs (not in a release build)
    Planted(planted::PlantedArgs),
    /// How fast clusters would be, by a model of cores, links and disks
    Scale(scale::ScaleArgs),
    /// Measure on this machine what the model of `scale` needs to know
    Calibrate(calibrate::CalibrateArgs),
    /// List workloads and kinds of faults
    List,
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Number of runs
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    start: u64,
    /// End after so many seconds, though not before each workload had --at-least runs
    #[arg(long)]
    seconds: Option<u64>,
    /// Runs that each workload must have had
    #[arg(long, default_value_t = 0)]
    at_least: u64,
    /// Percentage of the runs that happen twice and must be equal
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=100))]
    twice: u64,
    /// Processes that run side by side
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Where the totals go as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Args)]
struct OneArgs {
    /// The seed
    seed: u64,
    #[command(flatten)]
    plan: PlanArgs,
}

#[derive(Args)]
struct ReplayArgs {
    #[command(flatten)]
    one: OneArgs,
    /// Print every event
    #[arg(long)]
    trace: bool,
}

#[derive(Args)]
struct SyncsArgs {
    #[command(flatten)]
    one: OneArgs,
    /// At most so many crashes, spread over all syncs; 0: at each
    #[arg(long, default_value_t = 0)]
    limit: u64,
    /// Processes that run side by side
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

/// Carries out `trellis sim`.
pub fn run(args: &SimArgs) -> Result<ExitCode> {
    match &args.command {
        SimCommand::Run(args) => run_many(args),
        SimCommand::Replay(args) => replay(args),
        SimCommand::Shrink(args) => shrink::run(args.seed, &args.plan),
        SimCommand::Syncs(args) => syncs::run(args),
        SimCommand::Planted(args) => planted::run(args),
        SimCommand::Scale(args) => scale::run(args).map(|()| ExitCode::SUCCESS),
        SimCommand::Calibrate(args) => calibrate::run(args).map(|()| ExitCode::SUCCESS),
        SimCommand::List => list().map(|()| ExitCode::SUCCESS),
        SimCommand::Worker(args) => worker::run(args).map(|()| ExitCode::SUCCESS),
    }
}

fn list() -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "workloads:")?;
    for entry in sim::workload::ALL.iter().chain(simulated::ENTRIES) {
        writeln!(out, "  {:<16}{}", entry.name, entry.about)?;
    }
    writeln!(out, "faults:")?;
    for (_, name, about) in sim::plan::KINDS {
        writeln!(out, "  {name:<14}{about}")?;
    }
    Ok(())
}

fn run_many(args: &RunArgs) -> Result<ExitCode> {
    outputs::check(args.json.as_deref())?;
    let workloads = args.plan.workloads()?;
    // What is wrong with the options is said once, and not of each seed.
    args.plan.of(workloads[0], args.start).draw()?;
    let began = Instant::now();
    let until = args
        .seconds
        .map(|seconds| began + Duration::from_secs(seconds));
    let mut totals = Totals::new(&workloads);
    let mut pool = Pool::new(args.jobs.max(1))?;
    let mut next = args.start;
    let end = args.start.saturating_add(args.seeds);
    let mut progress = Progress::new();
    loop {
        while pool.is_free() && next < end && !(is_over(until) && totals.least() >= args.at_least) {
            let workload = args.plan.workload_of(next)?;
            // Spread evenly: seed times the golden ratio, modulo 100.
            let twice = next.wrapping_mul(61) % 100 < args.twice;
            pool.start(args.plan.of(workload, next).job(twice))?;
            next += 1;
        }
        let Some(done) = pool.wait()? else { break };
        if totals.take(&done) {
            report_failure(&done, &args.plan)?;
        }
        progress.show(&totals, end - args.start)?;
    }
    progress.clear()?;
    let wall = began.elapsed();
    totals.print(wall)?;
    if let Some(path) = &args.json {
        outputs::write(path, &totals.json(wall)?)?;
    }
    if totals.least() < args.at_least {
        bail!(
            "a workload had {} runs, not {}",
            totals.least(),
            args.at_least
        );
    }
    Ok(exit_code(totals.failed()))
}

/// Success if nothing failed.
fn exit_code(failed: u64) -> ExitCode {
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}

fn report_failure(done: &pool::Done, plan: &PlanArgs) -> Result<()> {
    let plan = plan.of(done.job.workload, done.job.seed);
    let mut out = std::io::stdout().lock();
    let text = done.failure().unwrap_or_default();
    writeln!(out, "seed {} failed: {text}", done.job.seed)?;
    writeln!(out, "  {}", plan.draw()?)?;
    writeln!(
        out,
        "  trellis sim replay {} {}",
        done.job.seed,
        plan.arguments().join(" ")
    )?;
    Ok(())
}

fn replay(args: &ReplayArgs) -> Result<ExitCode> {
    let workload = args.one.plan.workload_of(args.one.seed)?;
    args.one.plan.plant()?;
    let plan = args.one.plan.of(workload, args.one.seed).draw()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{plan}")?;
    for (index, fault) in plan.faults.iter().enumerate() {
        writeln!(out, "  fault {index}: {fault}")?;
    }
    out.flush()?;
    drop(out);
    let sink: Option<sim::Sink> = args.trace.then(|| {
        let print = |line: &str| {
            // A reader that has gone (head) ends the trace, not the run.
            let _ = writeln!(std::io::stdout().lock(), "{line}");
        };
        Box::new(print) as sim::Sink
    });
    let options = sim::Options {
        sink,
        ..sim::Options::default()
    };
    let outcome = simulated::run_with(&plan, options);
    let (verdict, code) = match &outcome.verdict {
        sim::Verdict::Pass => ("passed".to_owned(), ExitCode::SUCCESS),
        sim::Verdict::Inconclusive(text) => (format!("inconclusive: {text}"), ExitCode::SUCCESS),
        sim::Verdict::Fail(text) => (format!("failed: {text}"), ExitCode::FAILURE),
    };
    let report = &outcome.report;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:.3} s of virtual time, {} steps, {} starts, {} checkpoints",
        report.virtual_ns as f64 / 1e9,
        report.steps,
        report.starts,
        report.checkpoints
    )?;
    for (kind, count) in &report.happened {
        writeln!(out, "  {count} x {}", kind.name())?;
    }
    let [trace, rows, random] = report.prints;
    writeln!(
        out,
        "trace {trace:016x} rows {rows:016x} next random {random:016x}"
    )?;
    writeln!(out, "seed {} {verdict}", args.one.seed)?;
    Ok(code)
}

/// A line that tells how far it is, on a terminal again and again, elsewhere every 30 seconds.
struct Progress {
    shown: Instant,
    screen: bool,
    drawn: bool,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            shown: Instant::now(),
            screen: std::io::stderr().is_terminal(),
            drawn: false,
        }
    }

    fn show(&mut self, totals: &Totals, of: u64) -> Result<()> {
        let pause = Duration::from_millis(if self.screen { 500 } else { 30_000 });
        if self.shown.elapsed() < pause {
            return Ok(());
        }
        self.shown = Instant::now();
        let mut err = std::io::stderr().lock();
        if self.screen {
            self.drawn = true;
            write!(err, "\r\x1b[K{} of {of} seeds", totals.brief())?;
            err.flush()?;
        } else {
            writeln!(err, "{} of {of} seeds", totals.brief())?;
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        if self.drawn {
            write!(std::io::stderr(), "\r\x1b[K")?;
        }
        Ok(())
    }
}
