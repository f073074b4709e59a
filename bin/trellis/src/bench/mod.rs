//! `trellis bench`: loads, runs and checks a workload on any database that speaks the wire protocol
//! of PostgreSQL, or of MySQL.

mod calibrate;
mod compare;
mod dike;
mod exp;
mod fault;
mod fit;
mod function;
mod gate;
mod load;
mod matrix;
mod search;
mod worker;

use self::fault::{ClockShimArgs, FaultArgs, UndoArgs, undo_left_behind};
use self::fit::FitArgs;
use self::function::FunctionArgs;
use anyhow::{Context, Result, bail};
use calibrate::{CalibrateArgs, calibrate, echo};
use check::{Judgement, Level};
use clap::{Args, Subcommand, ValueEnum};
use compare::CompareArgs;
use dike::{CurveArg, DikeArgs};
use drive::histories::{self, HistoryOptions};
use drive::outputs;
use drive::report;
use drive::run::others::Others;
use drive::run::{RunReport, RunnerOptions};
use drive::tpcc::{self, Isolation, OwnHistory, RunOptions};
use exp::{EvaluateArgs, ExpArgs, KeepArgs, ReportArgs};
use gate::GateArgs;
use links::metrics::Exporter;
use links::view::{Progress, Screen, Silent};
use load::LoadArgs;
use matrix::MatrixArgs;
use search::SearchArgs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use worker::{Given, WorkerArgs};
use workload::history::Kind;

/// Arguments of `trellis bench`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis bench load --url postgres://trellis@127.0.0.1:5433/shop --warehouses 4\n  \
    trellis bench run --url postgres://trellis@127.0.0.1:5433,127.0.0.1:5434/shop --seconds 60\n  \
    trellis bench check --url postgres://postgres@127.0.0.1:5432/tpcc\n  \
    trellis bench run --workload list-append --url postgres://postgres@127.0.0.1:5432/test \
    --isolation serializable --history seen.edn\n  \
    trellis bench check --history seen.edn --level snapshot-isolation\n  \
    trellis bench compare --a postgres://trellis@127.0.0.1:5433/shop \
    --b mysql://root@127.0.0.1/shop\n  \
    trellis bench run --workload dike --distribution exact --ratio 20 --degree 3 \
    --url postgres://trellis@127.0.0.1:5433,127.0.0.1:5434/shop\n  \
    trellis bench search --url postgres://trellis@127.0.0.1:5433/shop --goal p99:20ms\n  \
    trellis bench matrix my.toml\n  \
    trellis bench exp my.yaml\n  \
    trellis bench calibrate --warehouses 1000 --keying\n\n\
    The database must exist. PostgreSQL, MariaDB and MySQL are measured by the same commands \
    (mysql://root@127.0.0.1:3306/shop), with TLS by ?sslmode=verify-full&sslrootcert=FILE (mysql: \
    ?ssl-mode=VERIFY_IDENTITY&ssl-ca=FILE). A workload other than \
    tpcc records what its clients see and judges it; it makes its own tables, whose names begin \
    with bench_, and drops those of an earlier run.\n\n\
    Exit code: 0 all passed, 1 something failed, 3 a history too small to say anything.")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Create and fill the tables; a stopped load goes on where it was
    Load(LoadArgs),
    /// Run the transaction mix and check the result
    Run(Box<RunArgs>),
    /// Check the consistency conditions, or judge a recorded history
    Check(CheckArgs),
    /// Which of two databases is faster, and by how much: TPC-C in rounds of A B B A
    Compare(CompareArgs),
    /// The highest rate of TPC-C that meets a latency goal
    Search(SearchArgs),
    /// Run all combinations of the settings in a file; a stopped sweep goes on where it was
    Matrix(MatrixArgs),
    /// Run an experiment that is composed in a file: stores, workloads and populations of users
    Exp(ExpArgs),
    /// One page of the results of an experiment
    Report(ReportArgs),
    /// Evaluates a file of Jsonnet within limits of time and memory
    #[command(hide = true, name = exp::EVALUATE)]
    ExpEvaluate(EvaluateArgs),
    /// Keeps a command with everything that it starts, until its input ends
    #[command(hide = true, name = exp::KEEP)]
    ExpKeep(KeepArgs),
    /// Whether it does what transactions need: snapshots, deadlocks, durability
    Function(FunctionArgs),
    /// How throughput grows with the cluster: the scalability law of several results
    Fit(FitArgs),
    /// Undo the faults of a run that was killed
    Undo(UndoArgs),
    /// Have the load of a run elsewhere come from this machine, too: wait for `run --worker`, or
    /// for an experiment with `workers`
    Worker(WorkerArgs),
    /// Write the library by which the clock of a server can be set, for faults of clocks
    ClockShim(ClockShimArgs),
    /// Measure this client: TPC-C against a server that answers at once
    Calibrate(CalibrateArgs),
    /// Has faults for a benchmark on another machine, which starts this over ssh
    #[command(hide = true)]
    FaultAgent,
    /// The server of `calibrate`: prints its address, and answers until it is ended
    #[command(hide = true)]
    Echo,
}

/// Workloads that exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum WorkloadName {
    /// TPC-C
    Tpcc,
    /// TPC-C's tables and transactions, with a share and a degree of distribution that can be set
    Dike,
    /// Appends to lists and reads them: every anomaly can be seen
    ListAppend,
    /// Writes rows and reads them
    Register,
    /// Reads ranges and inserts into them
    Phantom,
    /// Moves money; the total is constant
    Bank,
    /// Links the rows of a cycle anew; it stays one cycle
    Ring,
    /// Adds to counters without reading them
    Counter,
    /// Adds to one counter
    HotCounter,
    /// Takes where enough is left, and puts back
    Stock,
    /// Moves money between one hot account and others
    HotPair,
}

impl WorkloadName {
    /// The history that it records; `None` for those with TPC-C's tables.
    fn history(self) -> Option<Kind> {
        match self {
            WorkloadName::Tpcc | WorkloadName::Dike => None,
            WorkloadName::ListAppend => Some(Kind::ListAppend),
            WorkloadName::Register => Some(Kind::Register),
            WorkloadName::Phantom => Some(Kind::Phantom),
            WorkloadName::Bank => Some(Kind::Bank),
            WorkloadName::Ring => Some(Kind::Ring),
            WorkloadName::Counter => Some(Kind::Counter),
            WorkloadName::HotCounter => Some(Kind::HotCounter),
            WorkloadName::Stock => Some(Kind::Stock),
            WorkloadName::HotPair => Some(Kind::HotPair),
        }
    }
}

/// Terminals or connections where nothing is said.
const CLIENTS: u32 = 16;

/// The exit code for a history that is too small to say anything.
const INCONCLUSIVE: u8 = 3;

#[derive(Args)]
struct Where {
    /// Which workload
    #[arg(long, value_enum, default_value = "tpcc")]
    workload: WorkloadName,
    /// Database: `postgres://USER@HOST:PORT/DATABASE` or `mysql://`; several HOST:PORT with commas
    #[arg(long)]
    url: String,
}

#[derive(Args)]
struct RunArgs {
    /// First: what follows takes the values out of what was given.
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    target: Where,
    /// The loaded number of warehouses must be this
    #[arg(long)]
    warehouses: Option<u32>,
    /// Terminals of a closed loop, connections of an open loop [default: 16]
    #[arg(long)]
    clients: Option<u32>,
    /// The terminals of this client among those of several, counted from 1: a closed loop has as
    /// many clients, an open loop deals its arrivals among them
    #[arg(long, value_name = "FIRST,LAST", value_parser = terminals)]
    terminal_range: Option<(u32, u32)>,
    /// Connections that the terminals share [default: one each; with --keying at most 200]
    #[arg(long)]
    connections: Option<u32>,
    /// Open loop: so many transactions are due per second [default: closed loop]
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// What changes in the course of the run: `rate:step:1000@0,2000@10`, `rate:ramp:100..900@60`,
    /// `rate:sine:MEAN,AMPLITUDE,SECONDS`, `rate:gaussian:PEAK,SECOND,SECONDS`, `rate:trace:FILE`
    /// (the last SECONDS are 0.1 or more) for an open loop; for dike in the same way the weight of
    /// a kind, `mix:payment:step:43@0,200@20`, and the share of hot warehouses,
    /// `hot:ramp:0..0.9@60`; once for each
    #[arg(long)]
    curve: Vec<CurveArg>,
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
    /// Send transactions that only read to these replicas of the database, for tpcc and dike
    #[arg(long, value_name = "URL")]
    read_urls: Option<String>,
    /// Keying and think times of clause 5.2.5: only with them the result is tpmC
    #[arg(long)]
    keying: bool,
    /// Do not check the consistency conditions after the run
    #[arg(long)]
    no_check: bool,
    /// Have the load come from `trellis bench worker` there, and not from here; once for each
    /// worker. Together they are as many clients, and have the same inputs, as one process
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,
    #[command(flatten)]
    gate: GateArgs,
    #[command(flatten)]
    dike: DikeArgs,
    #[command(flatten)]
    faults: FaultArgs,
    #[command(flatten)]
    recorded: RecordArgs,
    /// Metrics for Prometheus while it runs, at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the report goes as one HTML page
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// What concerns recorded histories only.
#[derive(Args)]
#[command(next_help_heading = "Recorded histories")]
struct RecordArgs {
    /// Keys in use at the same time; fewer conflict more [default: by workload]
    #[arg(long)]
    keys: Option<u32>,
    /// Most operations of one transaction [default: 5]
    #[arg(long)]
    txn_len: Option<u32>,
    /// Transactions after which a key is given up for a new one [default: 90]
    #[arg(long)]
    txns_per_key: Option<u32>,
    /// For tpcc and dike: record what the run's own transactions see of the counters in their rows,
    /// and judge it. At most so many reads and writes are kept
    #[arg(
        long,
        value_name = "OPERATIONS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1000000",
        value_parser = clap::value_parser!(u64).range(1..=100_000_000)
    )]
    histories: Option<u64>,
    /// Judge by this level [default: what the server promises for --isolation]
    #[arg(long, value_parser = level)]
    level: Option<Level>,
    /// Where the history goes, as .edn or .json
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

impl RecordArgs {
    /// How a run of TPC-C's transactions records its own history, if it does. What is for other
    /// workloads is refused.
    fn own_history(&self) -> Result<Option<OwnHistory>> {
        let alone = self.histories.is_none();
        let given = [
            (self.keys.is_some(), "--keys", ""),
            (self.txn_len.is_some(), "--txn-len", ""),
            (self.txns_per_key.is_some(), "--txns-per-key", ""),
            (self.level.is_some() && alone, "--level", OR),
            (self.history.is_some() && alone, "--history", OR),
        ];
        const OR: &str = ", or for --histories";
        if let Some((_, name, or)) = given.iter().find(|(is_given, ..)| *is_given) {
            bail!("{name} is for workloads that record histories{or}");
        }
        Ok(self.histories.map(|most| OwnHistory {
            operations_max: most as usize,
            level: self.level,
        }))
    }
}

#[derive(Args)]
struct CheckArgs {
    /// Which workload
    #[arg(long, value_enum, default_value = "tpcc")]
    workload: WorkloadName,
    /// Database: `postgres://USER@HOST:PORT/DATABASE`
    #[arg(long, required_unless_present = "history")]
    url: Option<String>,
    /// Judge a history that was recorded here or elsewhere, as .edn or .json
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    history: Option<PathBuf>,
    /// Judge it by this level
    #[arg(long, value_parser = level, default_value = "strict-serializable")]
    level: Level,
    /// Where the result goes as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The first and the last terminal.
fn terminals(text: &str) -> Result<(u32, u32), String> {
    let both = text.split_once(',');
    let both = both.and_then(|(first, last)| first.parse().ok().zip(last.parse().ok()));
    let both = both.filter(|(first, last)| *first >= 1 && first <= last && *last <= 1_000_000);
    both.ok_or_else(|| {
        format!("{text:?} is no FIRST,LAST such as 1,180 (from 1, the last at most 1000000)")
    })
}

/// Transactions per second of an open loop.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate <= 1e6);
    rate.ok_or_else(|| "a rate lies above 0 and is at most a million a second".into())
}

fn isolation(text: &str) -> Result<Isolation, String> {
    Isolation::parse(text).ok_or_else(|| format!("{text:?} is no isolation level"))
}

fn level(text: &str) -> Result<Level, String> {
    text.parse()
        .map_err(|error: check::level::UnknownLevel| error.to_string())
}

/// What shows how a run goes on: the screen, with metrics beside it where they are asked for.
fn progress(metrics: Option<&str>, shows: bool) -> Result<Box<dyn Progress>> {
    let Some(at) = metrics else {
        return Ok(match shows || std::io::stdout().is_terminal() {
            true => Box::new(screen()),
            false => Box::new(Silent),
        });
    };
    let exporter = Exporter::start(at, screen())?;
    let address = exporter.address();
    writeln!(std::io::stdout(), "metrics: http://{address}/metrics")?;
    Ok(Box::new(exporter))
}

fn screen() -> Screen<std::io::Stdout> {
    Screen::new(std::io::stdout(), std::io::stdout().is_terminal())
}

/// Runs one of the three commands.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    match &args.command {
        BenchCommand::Load(args) => load::load(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Compare(args) => compare::compare(args),
        BenchCommand::Search(args) => search::search(args),
        BenchCommand::Matrix(args) => matrix::matrix(args),
        BenchCommand::Exp(args) => exp::exp(args),
        BenchCommand::Report(args) => exp::report(args),
        BenchCommand::ExpEvaluate(args) => Ok(exp::evaluate(args)),
        BenchCommand::ExpKeep(args) => Ok(exp::keep(args)),
        BenchCommand::Function(args) => function::function(args),
        BenchCommand::Fit(args) => fit::run(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Undo(args) => fault::undo(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::Worker(args) => worker::work(args),
        BenchCommand::ClockShim(args) => fault::clock_shim(args).map(|()| ExitCode::SUCCESS),
        BenchCommand::FaultAgent => fault::agent().map(|()| ExitCode::SUCCESS),
        BenchCommand::Calibrate(args) => calibrate(args),
        BenchCommand::Echo => echo(),
        BenchCommand::Run(run) => one_run(run),
        BenchCommand::Check(check) => match (&check.history, &check.url) {
            (Some(path), _) => check_history(check, path),
            (None, Some(url)) => check_tpcc(check, url),
            (None, None) => bail!("--url or --history is needed"),
        },
    }
}

fn only_tpcc(workload: WorkloadName, why: &str) -> Result<()> {
    match workload.history() {
        None => Ok(()),
        Some(kind) => bail!("workload {}: {why}", kind.name()),
    }
}

fn check_tpcc(check: &CheckArgs, url: &str) -> Result<ExitCode> {
    only_tpcc(
        check.workload,
        "a run judges its own history; give --history for a recorded one",
    )?;
    outputs::check(check.json.as_deref())?;
    let found = tpcc::check(url, &mut screen())?;
    write!(std::io::stdout(), "{}", report::check_table(&found))?;
    if let Some(path) = &check.json {
        outputs::write(path, &report::check_json(&found).to_string())?;
    }
    match found.failed() {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} consistency conditions do not hold"),
    }
}

fn check_history(args: &CheckArgs, path: &Path) -> Result<ExitCode> {
    outputs::check(args.json.as_deref())?;
    let history = histories::read(path)?;
    let verdict = check::check(&history, args.level);
    write!(std::io::stdout(), "{verdict}")?;
    if let Some(path) = &args.json {
        outputs::write(path, &report::verdict_json(&verdict).to_string())?;
    }
    judged(verdict.judgement)
}

fn judged(judgement: Judgement) -> Result<ExitCode> {
    match judgement {
        Judgement::Pass => Ok(ExitCode::SUCCESS),
        Judgement::Inconclusive => Ok(ExitCode::from(INCONCLUSIVE)),
        Judgement::Fail => bail!("the history violates the level"),
    }
}

fn runner(args: &RunArgs) -> Result<RunnerOptions> {
    let mut options = RunnerOptions {
        clients: args.clients.unwrap_or(CLIENTS),
        connections: args.connections,
        rate: args.rate,
        length: Duration::from_secs(args.seconds),
        warmup: Duration::from_secs(args.warmup),
        seed: args.seed,
        check: !args.no_check,
        ..RunnerOptions::default()
    };
    let is_dike = args.target.workload == WorkloadName::Dike;
    if let Some(curve) = dike::rate_curve(&args.curve, is_dike)? {
        if args.rate.is_some() {
            bail!("--rate and --curve rate: say two rates");
        }
        options.follow(curve);
    }
    if let Some((first, last)) = args.terminal_range.filter(|_| options.rate.is_none()) {
        let count = last - first + 1;
        if let Some(clients) = args.clients.filter(|clients| *clients != count) {
            bail!(
                "--terminal-range {first},{last}: these are {count} terminals of a closed loop, \
                 and --clients says {clients}"
            );
        }
        options.clients = count;
    }
    Ok(options)
}

/// A run that has ended.
struct Measured {
    run: RunReport,
    json: serde_json::Value,
    /// What is said below the table.
    verdict: String,
    /// Why it has no number; `None`: it has passed.
    fault: Option<String>,
    /// The exit code of one that has passed.
    code: ExitCode,
}

/// `trellis bench run`.
fn one_run(args: &RunArgs) -> Result<ExitCode> {
    let paths = [&args.json, &args.report, &args.recorded.history];
    outputs::check(paths.into_iter().filter_map(|path| path.as_deref()))?;
    let measured = measure(args, true)?;
    print_report(&measured.run)?;
    write!(std::io::stdout(), "{}", measured.verdict)?;
    write_reports(
        &measured.run,
        &measured.json,
        args.json.as_deref(),
        args.report.as_deref(),
    )?;
    match measured.fault {
        Some(fault) => bail!(fault),
        None => Ok(measured.code),
    }
}

/// Carries out a run. `shows`: how it goes on is shown even where nothing can be drawn over.
fn measure(args: &RunArgs, shows: bool) -> Result<Measured> {
    match args.target.workload.history() {
        None => measure_tpcc(args, shows),
        Some(kind) => measure_history(args, kind, shows),
    }
}

fn measure_history(args: &RunArgs, kind: Kind, shows: bool) -> Result<Measured> {
    if args.keying || args.warehouses.is_some() || args.no_check {
        bail!("--keying, --warehouses and --no-check are for tpcc");
    }
    if args.terminal_range.is_some() || args.read_urls.is_some() {
        bail!("--terminal-range and --read-urls are for tpcc and dike");
    }
    if !args.worker.is_empty() {
        bail!("--worker is for tpcc and dike: a recorded history is that of one process");
    }
    if args.recorded.histories.is_some() {
        bail!("--histories is for tpcc and dike: this workload always records one");
    }
    args.dike.only_for_dike()?;
    let mut options = HistoryOptions::new(&args.target.url, kind, args.isolation);
    options.runner = runner(args)?;
    options.runner.faults = args.faults.begin()?;
    options.shape.keys = args.recorded.keys.unwrap_or(kind.default_keys());
    let usual = options.shape;
    options.shape.txn_len_max = args.recorded.txn_len.unwrap_or(usual.txn_len_max);
    options.shape.txns_per_key = args.recorded.txns_per_key.unwrap_or(usual.txns_per_key);
    options.level = args.recorded.level;
    let mut progress = progress(args.metrics.as_deref(), shows)?;
    let verdicts = args
        .gate
        .pass(&args.target.url, args.isolation, args.seed)?;
    let found = histories::run(&options, &mut *progress)?;
    if let Some(path) = &args.recorded.history {
        histories::write(path, &found.history)?;
    }
    let mut json = report::history_json(&found);
    json["verdicts"] = verdicts;
    let verdict = found.verdict.to_string();
    let (fault, code) = match judged(found.verdict.judgement) {
        Ok(code) => (None, code),
        Err(error) => (Some(error.to_string()), ExitCode::FAILURE),
    };
    Ok(Measured {
        run: found.run,
        json,
        verdict,
        fault,
        code,
    })
}

/// What is run: all that does not concern where it is shown, kept or broken.
fn tpcc_options(args: &RunArgs) -> Result<RunOptions> {
    let mut options = RunOptions::new(&args.target.url);
    options.warehouses = args.warehouses;
    options.isolation = args.isolation;
    options.keying = args.keying;
    options.terminals = args.terminal_range;
    options.read_urls.clone_from(&args.read_urls);
    match args.target.workload {
        WorkloadName::Dike => options.dike = Some(args.dike.options(&args.curve)),
        _ => args.dike.only_for_dike()?,
    }
    options.histories = args.recorded.own_history()?;
    options.runner = runner(args)?;
    Ok(options)
}

fn measure_tpcc(args: &RunArgs, shows: bool) -> Result<Measured> {
    let mut options = tpcc_options(args)?;
    let crew = worker::crew(args)?;
    let others = crew.as_ref().map(|crew| crew as &dyn Others);
    options.runner.faults = args.faults.begin()?;
    let mut progress = progress(args.metrics.as_deref(), shows)?;
    let verdicts = args
        .gate
        .pass(&args.target.url, args.isolation, args.seed)?;
    let mut found = tpcc::run_by(&options, others, &mut *progress)?;
    if let (Some(path), Some(own)) = (&args.recorded.history, &mut found.history) {
        versions::name_keys(&mut own.history);
        histories::write(path, &own.history)?;
    }
    let mut json = report::json(&found);
    json["verdicts"] = verdicts;
    Ok(Measured {
        fault: (!found.passed()).then(|| "the run failed its checks".to_owned()),
        run: found,
        json,
        verdict: String::new(),
        code: ExitCode::SUCCESS,
    })
}

pub(crate) fn print_report(found: &RunReport) -> Result<()> {
    write!(std::io::stdout(), "{}", report::table(found)).context("cannot print the result")
}

/// Writes the result, which is also given as `value`, as JSON and as a page.
pub(crate) fn write_reports(
    found: &RunReport,
    value: &serde_json::Value,
    json: Option<&Path>,
    html: Option<&Path>,
) -> Result<()> {
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(value)?;
        outputs::write(path, &(text + "\n"))?;
    }
    if let Some(path) = html {
        outputs::write(path, &report::html(found))?;
        writeln!(std::io::stdout(), "report: {}", path.display())?;
    }
    Ok(())
}
