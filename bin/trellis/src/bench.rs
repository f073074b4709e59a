//! `trellis bench`: loads, runs and checks a workload on any database that speaks PostgreSQL's wire
//! protocol.

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use drive::report;
use drive::run::RunReport;
use drive::tpcc::{self, Isolation, LoadOptions, RunOptions};
use drive::view::Screen;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `trellis bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis bench load --url postgres://trellis@127.0.0.1:5433/shop --warehouses 4\n  \
    trellis bench run --url postgres://trellis@127.0.0.1:5433,127.0.0.1:5434/shop --seconds 60\n  \
    trellis bench check --url postgres://postgres@127.0.0.1:5432/tpcc\n\n\
    The database must exist. PostgreSQL is measured by the same commands.")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Create and fill the tables; a stopped load goes on where it was
    Load(LoadArgs),
    /// Run the transaction mix and check the result
    Run(RunArgs),
    /// Check the consistency conditions
    Check(CheckArgs),
}

/// Workloads that exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorkloadName {
    /// TPC-C
    Tpcc,
}

#[derive(Args)]
struct Where {
    /// Which workload
    #[arg(long, value_enum, default_value = "tpcc")]
    workload: WorkloadName,
    /// Database: `postgres://USER@HOST:PORT/DATABASE`; several HOST:PORT with commas
    #[arg(long)]
    url: String,
}

#[derive(Args)]
struct LoadArgs {
    #[command(flatten)]
    target: Where,
    /// TPC-C warehouses
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warehouses: u32,
    /// Decides every loaded value
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Connections that load in parallel
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// Declare the foreign keys of clause 1.3
    #[arg(long)]
    foreign_keys: bool,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    target: Where,
    /// The loaded number of warehouses must be this
    #[arg(long)]
    warehouses: Option<u32>,
    /// Connections
    #[arg(long, default_value_t = 16)]
    clients: u32,
    /// Open loop: so many transactions are due per second [default: closed loop]
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Measured seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Seconds before the measured phase
    #[arg(long, default_value_t = 2)]
    warmup: u64,
    /// Decides every input and every arrival
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// serializable, repeatable-read or read-committed
    #[arg(long, default_value = "serializable", value_parser = isolation)]
    isolation: Isolation,
    /// Keying and think times of clause 5.2.5: only with them the result is tpmC
    #[arg(long)]
    keying: bool,
    /// Do not check the consistency conditions after the run
    #[arg(long)]
    no_check: bool,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the report goes as one HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

#[derive(Args)]
struct CheckArgs {
    #[command(flatten)]
    target: Where,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Transactions per second of an open loop.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate <= 1e6);
    rate.ok_or_else(|| "a rate lies above 0 and is at most a million a second".into())
}

fn isolation(text: &str) -> Result<Isolation, String> {
    Isolation::parse(text).ok_or_else(|| format!("{text:?} is no isolation level"))
}

fn screen() -> Screen<std::io::Stdout> {
    Screen::new(std::io::stdout(), std::io::stdout().is_terminal())
}

/// Runs one of the three commands.
pub(crate) fn run(args: &BenchArgs) -> Result<()> {
    match &args.command {
        BenchCommand::Load(load) => {
            let WorkloadName::Tpcc = load.target.workload;
            let mut options = LoadOptions::new(&load.target.url, load.warehouses);
            options.seed = load.seed;
            options.jobs = load.jobs;
            options.foreign_keys = load.foreign_keys;
            Ok(tpcc::load(&options, &mut screen())?)
        }
        BenchCommand::Run(run) => run_tpcc(run),
        BenchCommand::Check(check) => {
            let WorkloadName::Tpcc = check.target.workload;
            let found = tpcc::check(&check.target.url, &mut screen())?;
            write!(std::io::stdout(), "{}", report::check_table(&found))?;
            if let Some(path) = &check.json {
                write_file(path, &report::check_json(&found).to_string())?;
            }
            match found.failed() {
                0 => Ok(()),
                failed => bail!("{failed} consistency conditions do not hold"),
            }
        }
    }
}

fn run_tpcc(args: &RunArgs) -> Result<()> {
    let WorkloadName::Tpcc = args.target.workload;
    let mut options = RunOptions::new(&args.target.url);
    options.warehouses = args.warehouses;
    options.isolation = args.isolation;
    options.keying = args.keying;
    options.runner.clients = args.clients;
    options.runner.rate = args.rate;
    options.runner.length = Duration::from_secs(args.seconds);
    options.runner.warmup = Duration::from_secs(args.warmup);
    options.runner.seed = args.seed;
    options.runner.check = !args.no_check;
    let found = tpcc::run(&options, &mut screen())?;
    print_report(&found)?;
    write_reports(&found, args.json.as_deref(), args.report.as_deref())?;
    if !found.passed() {
        bail!("the run failed its checks");
    }
    Ok(())
}

/// Prints the result table.
pub(crate) fn print_report(found: &RunReport) -> Result<()> {
    write!(std::io::stdout(), "{}", report::table(found)).context("cannot print the result")
}

/// Writes the result as JSON and as a page.
pub(crate) fn write_reports(
    found: &RunReport,
    json: Option<&Path>,
    html: Option<&Path>,
) -> Result<()> {
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&report::json(found))?;
        write_file(path, &(text + "\n"))?;
    }
    if let Some(path) = html {
        write_file(path, &report::html(found))?;
        writeln!(std::io::stdout(), "report: {}", path.display())?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
