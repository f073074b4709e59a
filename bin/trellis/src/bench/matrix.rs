//! `trellis bench matrix`: the cross product of what a file says, each cell a `trellis bench run`.

use super::load::LoadArgs;
use super::{RunArgs, WorkloadName, measure, screen, undo_left_behind};
use anyhow::{Result, bail};
use clap::error::ContextKind;
use clap::{Args, ColorChoice, Command, FromArgMatches};
use drive::tpcc::{self, LoadOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use sweeps::{Bench, Experiment, Failed, Key, Refused, sweep};

#[derive(Args)]
pub(super) struct MatrixArgs {
    /// The experiment: TOML whose keys are the options of `trellis bench run`, without dashes in
    /// front; a list stands for several cells, false for no such option
    file: PathBuf,
    /// Folder of the results; a rerun goes on there [default: FILE with .results at its end]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the cells in their order and run nothing
    #[arg(long)]
    list: bool,
}

/// Options of a run that a file cannot set: the sweep writes files itself, and one exporter of
/// metrics cannot serve several runs.
const OWN: [&str; 5] = ["json", "report", "metrics", "history", "help"];

/// Options of a load that a file can set, in its table `load`. The others are those of the cells:
/// where to, and what the tables of their workload are like.
const LOADED: [&str; 5] = ["warehouses", "seed", "jobs", "foreign-keys", "from"];

/// Options that say something about another one.
const ABOUT: [(&str, &str); 7] = [
    ("target", "fault"),
    ("target-data", "fault"),
    ("fault-journal", "fault"),
    ("ratio", "distribution"),
    ("degree", "distribution"),
    ("nodes", "distribution"),
    ("contention-control", "contention"),
];

pub(super) fn matrix(args: &MatrixArgs) -> Result<ExitCode> {
    let experiment = Experiment::read(&args.file, &keys(), &load_keys())?;
    let loads = loads(&experiment)?;
    let mut out = std::io::stdout();
    if args.list {
        for cell in experiment.cells() {
            writeln!(out, "{}  {}", cell.id(), cell.arguments().join(" "))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let dir = args
        .out
        .clone()
        .unwrap_or_else(|| args.file.with_extension("results"));
    // Also where no cell is left to run: a sweep that was killed may have left a fault.
    undo_left_behind()?;
    let mut say = |line: &str| {
        // Nobody reads it any more: the results matter.
        let _ = writeln!(std::io::stdout(), "{line}");
        let _ = std::io::stdout().flush();
    };
    let summary = sweep(&experiment, &dir, &mut Runs { loads }, &mut say)?;
    write!(out, "\n{}", summary.table())?;
    writeln!(out, "page: {}", dir.join("index.html").display())?;
    match summary.failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => {
            writeln!(
                out,
                "{failed} cells failed; the same command tries them again"
            )?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn command() -> Command {
    RunArgs::augment_args(Command::new("run"))
        .no_binary_name(true)
        .color(ColorChoice::Never)
}

fn load_command() -> Command {
    LoadArgs::augment_args(Command::new("load"))
        .no_binary_name(true)
        .color(ColorChoice::Never)
}

/// What the table `load` of a file may say.
fn load_keys() -> Vec<Key> {
    let mut keys = keys_of(&load_command());
    keys.retain(|key| LOADED.contains(&key.name.as_str()));
    keys
}

/// What a file may say.
fn keys() -> Vec<Key> {
    let mut keys = keys_of(&command());
    keys.retain(|key| !OWN.contains(&key.name.as_str()));
    keys
}

fn keys_of(command: &Command) -> Vec<Key> {
    let options = command.get_arguments().filter_map(|arg| {
        let name = arg.get_long()?;
        Some(Key {
            name: name.to_owned(),
            is_flag: !arg.get_action().takes_values(),
            repeats: matches!(arg.get_action(), clap::ArgAction::Append),
            about: ABOUT
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, about)| (*about).to_owned()),
        })
    });
    options.collect()
}

/// Tables that cells need.
struct Load {
    options: LoadOptions,
    /// What became of loading them; `None`: that was not tried yet.
    result: Option<Result<(), String>>,
}

/// Tables by the URL of their database.
type Loads = BTreeMap<String, Load>;

/// The tables that the cells need, where the file says to load them.
///
/// # Errors
/// The file has a mistake there, or cells of one database need different tables.
fn loads(experiment: &Experiment) -> Result<Loads> {
    let mut loads = Loads::new();
    let Some(load) = experiment.load() else {
        return Ok(loads);
    };
    for cell in experiment.cells() {
        // What is not understood the sweep tells.
        let Ok(args) = parsed(&cell.arguments()) else {
            continue;
        };
        if args.target.workload.history().is_some() {
            continue;
        }
        let options = load_of(experiment, &load, &args)?;
        let Some(other) = loads.get_mut(&options.url) else {
            let result = None;
            loads.insert(options.url.clone(), Load { options, result });
            continue;
        };
        let other = &mut other.options;
        if (other.scale, other.without) != (options.scale, options.without) {
            bail!(
                "{}: cells of one database need different tables (warehouses, imbalance = \
                 \"data:..\", without): one file has one load for each url",
                experiment.path().display()
            );
        }
        other.accounts |= options.accounts;
    }
    Ok(loads)
}

/// The load of the tables of a cell.
fn load_of(experiment: &Experiment, load: &[String], args: &RunArgs) -> Result<LoadOptions> {
    let url = format!("--url={}", args.target.url);
    let matches = load_command().try_get_matches_from([&[url], load].concat());
    let matches = matches.and_then(|matches| LoadArgs::from_arg_matches(&matches));
    let load = matches.map_err(|error| {
        let refused = refused(&error);
        experiment.load_mistake(refused.key.as_deref(), refused.text)
    })?;
    let mistake = |key: &str, text: String| experiment.load_mistake(Some(key), text);
    let mut options = load
        .options()
        .map_err(|error| mistake("from", format!("{error:#}")))?;
    let (skew, without) = args.dike.tables();
    match (load.has_folder(), args.warehouses) {
        (false, Some(warehouses)) if !load.has_warehouses() => {
            options.scale.warehouses = warehouses;
        }
        (_, Some(warehouses)) if warehouses != options.scale.warehouses => {
            let loaded = options.scale.warehouses;
            let text = format!("{loaded} are loaded, and a cell wants {warehouses}");
            return Err(mistake("warehouses", text).into());
        }
        _ => {}
    }
    if !load.has_folder() {
        options.scale.skew = skew;
    }
    options.without = without;
    options.accounts = args.target.workload == WorkloadName::Dike;
    Ok(options)
}

/// Each cell is a run in this process: when the process is killed, so is the run.
struct Runs {
    loads: Loads,
}

impl Bench for Runs {
    fn prepare(&mut self, arguments: &[String], say: &mut dyn FnMut(&str)) -> Result<(), Failed> {
        let Ok(args) = parsed(arguments) else {
            return Ok(());
        };
        let count = self.loads.len();
        let mut loads = self.loads.iter_mut().enumerate();
        let found = loads.find(|(_, (url, _))| **url == args.target.url);
        let needs = args.target.workload.history().is_none();
        let Some((at, (_, load))) = found.filter(|_| needs) else {
            return Ok(());
        };
        let options = &load.options;
        let result = load.result.get_or_insert_with(|| {
            say(&format!("tables of database {} of {count}", at + 1));
            let loaded = tpcc::load(options, &mut screen());
            loaded.map_err(|error| format!("loading: {error}"))
        });
        result.clone().map_err(|reason| Failed {
            reason,
            result: None,
        })
    }

    fn check(&self, arguments: &[String]) -> Result<(), Refused> {
        parsed(arguments).map(|_| ())
    }

    fn run(&mut self, arguments: &[String]) -> Result<Value, Failed> {
        let failed = |reason: String, result| Failed { reason, result };
        let args = parsed(arguments).map_err(|refused| failed(refused.text, None))?;
        let measured = measure(&args, false);
        let measured = measured.map_err(|error| failed(format!("{error:#}"), None))?;
        match measured.fault {
            None => Ok(measured.json),
            Some(reason) => {
                let faults = measured.run.faults();
                let reason = match faults.is_empty() {
                    true => reason,
                    false => format!("{reason}: {}", faults.join("; ")),
                };
                Err(failed(reason, Some(measured.json)))
            }
        }
    }
}

fn parsed(arguments: &[String]) -> Result<RunArgs, Refused> {
    let matches = command().try_get_matches_from(arguments);
    let parsed = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
    parsed.map_err(|error| refused(&error))
}

/// What is wrong, for a person who has typed no command line.
fn refused(error: &clap::Error) -> Refused {
    let option = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let key = option.as_deref().and_then(|option| {
        let name = option.trim_start_matches('-');
        name.split([' ', '=']).next().map(str::to_owned)
    });
    let text = error.to_string();
    // The lines after it are about a command line that nobody has typed.
    let text = text.split("\n\nUsage").next().unwrap_or_default();
    let text = text.split("\n\nFor more").next().unwrap_or_default();
    let text = text.trim_start_matches("error: ").trim();
    Refused {
        key,
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_options_of_a_run() {
        let keys = keys();
        let find = |name: &str| keys.iter().find(|key| key.name == name);
        for name in [
            "workload",
            "url",
            "distribution",
            "ratio",
            "degree",
            "contention",
            "imbalance",
            "curve",
            "fault",
            "target",
            "target-data",
            "clients",
            "rate",
            "seconds",
            "isolation",
            "without",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("fault").is_some_and(|key| key.repeats));
        assert!(find("worker").is_some_and(|key| key.repeats));
        assert!(find("keying").is_some_and(|key| key.is_flag));
        assert!(find("json").is_none() && find("metrics").is_none());
    }

    #[test]
    fn a_mistake_names_its_key() {
        let arguments = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let refused = |text: &str| parsed(&arguments(text)).err().unwrap();
        let wrong = refused("--url=postgres://a/b --ratio=200 --distribution=exact --degree=2");
        assert_eq!(wrong.key.as_deref(), Some("ratio"), "{}", wrong.text);
        assert!(wrong.text.contains("0 to 100 percent"), "{}", wrong.text);
        assert!(!wrong.text.contains("Usage"), "{}", wrong.text);
        let missing = refused("--workload=tpcc");
        assert!(missing.text.contains("--url"), "{}", missing.text);
        assert!(parsed(&arguments("--url=postgres://a/b --clients=4")).is_ok());
    }
}
