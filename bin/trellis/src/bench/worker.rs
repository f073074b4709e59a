//! `trellis bench worker`, and `trellis bench run --worker`: the load of one run from several
//! machines.

use super::{RunArgs, tpcc_options};
use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ColorChoice, Command, FromArgMatches};
use drive::run::RunReport;
use drive::tpcc::{self, RunOptions};
use links::view::Progress;
use std::io::Write;
use std::net::TcpListener;
use std::process::ExitCode;
use workers::Crew;

/// Options of a run that workers get, as a machine that is not trusted may send them: none of them
/// reads or writes a file or starts a program. Ids of the arguments, and whether they are flags.
const SHARED: [(&str, bool); 30] = [
    ("workload", false),
    ("url", false),
    ("warehouses", false),
    ("clients", false),
    ("terminal_range", false),
    ("connections", false),
    ("rate", false),
    ("curve", false),
    ("seconds", false),
    ("warmup", false),
    ("seed", false),
    ("isolation", false),
    ("read_urls", false),
    ("keying", true),
    ("distribution", false),
    ("ratio", false),
    ("degree", false),
    ("nodes", false),
    ("mix", false),
    ("stock_rows", false),
    ("broadcast_rows", false),
    ("co_access", false),
    ("batch_update", true),
    ("bind_transactions", true),
    ("at_home", true),
    ("imbalance", false),
    ("without", false),
    ("contention", false),
    ("histories", false),
    ("level", false),
];

/// Options that concern the coordinator alone.
const OWN: [&str; 11] = [
    "worker",
    "no_check",
    "function_tests",
    "fault",
    "fault_target",
    "target_data",
    "fault_journal",
    "metrics",
    "json",
    "report",
    "history",
];

/// Options that cannot be with `--worker`: orders that wait for each other are those of one
/// process, and so is a recorded history.
const ALONE: [&str; 4] = ["contention_control", "keys", "txn_len", "txns_per_key"];

/// Arguments of `trellis bench worker`.
#[derive(Args)]
pub(super) struct WorkerArgs {
    /// Where to wait for coordinators. Whoever reaches it can have this machine connect to any
    /// server and run transactions there: there is no password
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7000")]
    listen: String,
}

/// What of a run was said on the command line, for its workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    /// As arguments again.
    shared: Vec<String>,
    /// The options that workers do not get.
    others: Vec<&'static str>,
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Given, clap::Error> {
        let mut given = Given::default();
        let was_said = |id: &str| {
            // An id that is not defined was not said either.
            let is_known = matches.try_contains_id(id).unwrap_or(false);
            is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        for (id, is_flag) in SHARED.iter() {
            if !was_said(id) {
                continue;
            }
            let name = option(id);
            if *is_flag {
                given.shared.push(name);
                continue;
            }
            let values = matches.get_raw(id).into_iter().flatten();
            let values = values.map(|value| format!("{name}={}", value.to_string_lossy()));
            given.shared.extend(values);
        }
        let others = OWN.iter().chain(&ALONE);
        given.others = others.copied().filter(|id| was_said(id)).collect();
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

/// How an option is written.
fn option(id: &str) -> String {
    match id {
        "fault_target" => String::from("--target"),
        id => format!("--{}", id.replace('_', "-")),
    }
}

/// Whether an option names a file with a curve.
fn is_trace(argument: &str) -> bool {
    argument.starts_with("--curve") && argument.contains(":trace:")
}

/// The workers of a run; `None`: it has none.
pub(super) fn crew(args: &RunArgs) -> Result<Option<Crew>> {
    if args.worker.is_empty() {
        return Ok(None);
    }
    if let Some(id) = args.given.others.iter().find(|id| ALONE.contains(id)) {
        let name = option(id);
        bail!("{name} cannot be with --worker: it is about what one process does");
    }
    if args.given.shared.iter().any(|argument| is_trace(argument)) {
        bail!("--curve ..:trace: cannot be with --worker: the file is on this machine only");
    }
    Ok(Some(Crew::join(&args.worker, args.given.shared.clone())?))
}

/// The workers of one of several runs of TPC-C, and its result.
pub(super) fn run_by(
    addresses: &[String],
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<RunReport> {
    if addresses.is_empty() {
        return Ok(tpcc::run(options, progress)?);
    }
    let crew = Crew::join(addresses, arguments(options))?;
    Ok(tpcc::run_by(options, Some(&crew), progress)?)
}

/// What of these options is no default, as workers get it.
fn arguments(options: &RunOptions) -> Vec<String> {
    let runner = &options.runner;
    let level = options.isolation.sql().to_lowercase().replace(' ', "-");
    let mut all = vec![
        format!("--url={}", options.url),
        format!("--clients={}", runner.clients),
        format!("--seconds={}", runner.length.as_secs()),
        format!("--warmup={}", runner.warmup.as_secs()),
        format!("--seed={}", runner.seed),
        format!("--isolation={level}"),
    ];
    all.extend(runner.rate.map(|rate| format!("--rate={rate}")));
    all
}

/// `trellis bench worker`.
pub(super) fn work(args: &WorkerArgs) -> Result<ExitCode> {
    let listener = TcpListener::bind(&args.listen);
    let listener = listener.with_context(|| format!("cannot listen at {}", args.listen))?;
    let address = listener.local_addr().context("the address of the worker")?;
    let say = |line: &str| {
        // There may be no reader any more: the work goes on.
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "worker: {line}");
        let _ = out.flush();
    };
    say(&format!("listening at {address}"));
    Err(workers::serve(&listener, &accept, &say)).context("the worker cannot take connections")
}

/// The options of a run by arguments that came from elsewhere.
pub(super) fn accept(arguments: &[String]) -> Result<RunOptions, String> {
    if let Some(argument) = arguments
        .iter()
        .find(|argument| !argument.starts_with("--"))
    {
        return Err(format!("{argument:?} is no option with its value"));
    }
    if let Some(argument) = arguments.iter().find(|argument| is_trace(argument)) {
        return Err(format!("{argument} would read a file of this machine"));
    }
    let command = RunArgs::augment_args(Command::new("run"));
    let command = command.no_binary_name(true).color(ColorChoice::Never);
    let matches = command.try_get_matches_from(arguments);
    let args = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| error.to_string().trim().to_owned())?;
    if let Some(id) = args.given.others.first() {
        return Err(format!("{} is not for workers", option(id)));
    }
    if args.target.workload.history().is_some() {
        return Err(String::from("a worker runs tpcc and dike only"));
    }
    tpcc_options(&args).map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    fn command() -> Command {
        RunArgs::augment_args(Command::new("run")).no_binary_name(true)
    }

    fn args(line: &str) -> RunArgs {
        let matches = command().try_get_matches_from(line.split(' ')).unwrap();
        RunArgs::from_arg_matches(&matches).unwrap()
    }

    /// A new option of a run has to say what it means for workers.
    #[test]
    fn every_option_is_shared_own_or_refused() {
        let command = command();
        let mut count = 0;
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            if id == "help" {
                continue;
            }
            count += 1;
            assert_eq!(format!("--{}", arg.get_long().unwrap()), option(id));
            let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
            let shared = SHARED.iter();
            let shared = shared.filter(|known| **known == (id, is_flag)).count();
            let others = OWN.iter().chain(&ALONE).filter(|known| **known == id);
            assert_eq!(shared + others.count(), 1, "{id}");
        }
        let known = SHARED.len() + OWN.len() + ALONE.len();
        assert_eq!(count, known);
    }

    #[test]
    fn workers_get_what_was_said_and_nothing_of_the_coordinator() {
        let line = "--url postgres://a/b --clients=8 --keying --worker h:1 --worker h:2 --json f \
                    --workload dike --curve mix:payment:step:43@0,200@20 \
                    --curve hot:ramp:0..0.9@60 --no-check";
        let args = args(line);
        let mut shared = args.given.shared.clone();
        shared.sort();
        let expected = [
            "--clients=8",
            "--curve=hot:ramp:0..0.9@60",
            "--curve=mix:payment:step:43@0,200@20",
            "--keying",
            "--url=postgres://a/b",
            "--workload=dike",
        ];
        assert_eq!(shared, expected);
        let there = accept(&args.given.shared).unwrap();
        assert_eq!((there.runner.clients, there.keying), (8, true));
        assert_eq!(there.dike.unwrap().mix_curves.len(), 1);
    }

    #[test]
    fn one_of_several_runs_is_the_same_there() {
        let mut options = RunOptions::new("postgres://a/b");
        options.isolation = tpcc::Isolation::RepeatableRead;
        options.runner.clients = 7;
        options.runner.rate = Some(123.456_789);
        options.runner.seed = 9;
        options.runner.length = std::time::Duration::from_secs(3);
        options.runner.warmup = std::time::Duration::from_secs(1);
        let there = accept(&arguments(&options)).unwrap();
        assert_eq!(there.url, options.url);
        assert_eq!(there.isolation, options.isolation);
        let told = |options: &RunOptions| {
            let it = &options.runner;
            (it.clients, it.rate, it.seed, it.length, it.warmup)
        };
        assert_eq!(told(&there), told(&options));
    }

    #[test]
    fn a_worker_refuses_what_is_no_load() {
        let refused = |line: &str| {
            let line = line.replace("url ", "url=");
            let arguments: Vec<String> = line.split(' ').map(String::from).collect();
            accept(&arguments).unwrap_err()
        };
        for (line, why) in [
            ("--url postgres://a/b --json=f", "--json is not for workers"),
            ("--url postgres://a/b --report=f", "--report is not"),
            (
                "--url postgres://a/b --metrics=0.0.0.0:1",
                "--metrics is not",
            ),
            (
                "--url postgres://a/b --contention=5 --contention-control=blocking --workload=dike",
                "--contention-control is not",
            ),
            ("--url postgres://a/b --worker=h:1", "--worker is not"),
            (
                "--url postgres://a/b --fault=kill@n:1+1 --target=n=pid:1,start:rm",
                "--fault is not",
            ),
            (
                "--url postgres://a/b --curve=rate:trace:/etc/passwd",
                "would read a file",
            ),
            ("--url postgres://a/b --workload=bank", "tpcc and dike only"),
            ("--nonsense", "unexpected argument"),
            ("--curve rate:trace:/etc/passwd", "no option with its value"),
        ] {
            let said = refused(line);
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn what_one_process_counts_cannot_be_shared() {
        for (line, why) in [
            (
                "--url postgres://a/b --worker h:1 --workload dike --contention 5 \
                 --contention-control blocking",
                "--contention-control cannot be with --worker",
            ),
            (
                "--url postgres://a/b --worker h:1 --worker h:1",
                "said twice",
            ),
        ] {
            let error = crew(&args(line)).err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(crew(&args("--url postgres://a/b")).unwrap().is_none());
    }
}
