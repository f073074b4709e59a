//! `trellis bench exp` and `trellis bench report`: experiments composed from files.

use super::{screen, worker};
use anyhow::{Context, Result, bail};
use clap::Args;
use conduct::{Conductor, Keeper, Surroundings};
use experiment::{Ended, Evaluator, Experiment, Report, Said, resolve, schema, templates};
use links::metrics::Exporter;
use links::view::{Live, Loaded, Progress, Screen};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The command that evaluates a file of Jsonnet.
pub(super) const EVALUATE: &str = "exp-evaluate";
/// The command that keeps a command with everything that it starts.
pub(super) const KEEP: &str = "exp-keep";
/// The exit code of a process that SIGINT has ended, as shells count.
const INTERRUPTED: u8 = 130;

/// Arguments of `trellis bench exp`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    trellis bench exp my.yaml                          runs it; results in my.yaml.results\n  \
    trellis bench exp my.yaml --store redis://127.0.0.1:6379 --out on-redis\n  \
    trellis bench exp my.yaml --resume                 goes on where it was stopped\n  \
    trellis bench exp my.yaml --print-resolved         what would run\n\n\
    The smallest experiment is one line, `extends: micro-personal`. Two stores beside each \
    other:\n\n  \
    extends: micro-personal\n  \
    vary:\n    \
    store.url: [\"memory:\", \"redis://127.0.0.1:6379\"]\n\n\
    Exit code: 0 all runs passed, 1 one failed, 130 it was stopped.")]
pub(super) struct ExpArgs {
    /// The experiment: .yaml, .json or .jsonnet
    #[arg(required_unless_present_any = ["schema", "templates"])]
    file: Option<PathBuf>,
    /// Measure this store instead of that of the file: memory:, postgres://, mysql://, redis://,
    /// etcd://, cassandra://, hbase://, mongodb://
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Folder of the results [default: FILE with .results at its end]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Keep the results of runs that have ended, and run the others
    #[arg(long)]
    resume: bool,
    /// Print the documents of all runs and run nothing
    #[arg(long)]
    print_resolved: bool,
    /// Metrics for Prometheus while it runs, at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<String>,
    /// Print the JSON schema of experiments
    #[arg(long)]
    schema: bool,
    /// Print the templates that an experiment can inherit from
    #[arg(long)]
    templates: bool,
}

/// Arguments of `trellis bench report`.
#[derive(Args)]
pub(super) struct ReportArgs {
    /// Folder of results of `trellis bench exp`
    dir: PathBuf,
}

/// Arguments of the child that evaluates Jsonnet.
#[derive(Args)]
pub(super) struct EvaluateArgs {
    file: PathBuf,
}

/// Arguments of the keeper of a command.
#[derive(Args)]
pub(super) struct KeepArgs {
    #[arg(allow_hyphen_values = true)]
    command: String,
    output: PathBuf,
    errors: PathBuf,
}

/// `trellis bench exp`.
pub(super) fn exp(args: &ExpArgs) -> Result<ExitCode> {
    let mut out = std::io::stdout();
    if args.schema {
        write!(out, "{}", schema::TEXT)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.templates {
        for (name, about) in templates() {
            writeln!(out, "{name:<16} {about}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let file = args.file.as_deref().context("which experiment?")?;
    let evaluator = Evaluator::Child {
        program: own_program()?,
        arguments: ["bench", EVALUATE].map(String::from).to_vec(),
    };
    let experiment = resolve(file, args.store.as_deref(), &evaluator)?;
    for trace in &experiment.traces {
        writeln!(std::io::stderr(), "trace: {trace}")?;
    }
    let conductor = Conductor::new(&worker::accept);
    experiment.check(&|document| {
        let checked = conductor.check(document);
        checked.map_err(|problem| (problem.path, problem.text))
    })?;
    if args.print_resolved {
        write!(out, "{}", experiment.text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = match &args.out {
        Some(results) => results.clone(),
        None => {
            let mut name = file.as_os_str().to_owned();
            name.push(".results");
            PathBuf::from(name)
        }
    };
    run(&experiment, file, &results, args, conductor)
}

fn run(
    experiment: &Experiment,
    file: &Path,
    results: &Path,
    args: &ExpArgs,
    mut conductor: Conductor<'_>,
) -> Result<ExitCode> {
    // The first signal lets the run come to its end, the second one ends the process.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let wrong = "cannot listen for signals";
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&stop))
            .context(wrong)?;
        flag::register(signal, Arc::clone(&stop)).context(wrong)?;
    }
    let keeper = Keeper {
        program: own_program()?,
        arguments: ["bench", KEEP].map(String::from).to_vec(),
    };
    let shown = RefCell::new(shown(args.metrics.as_deref())?);
    let tally = experiment.run(
        results,
        args.resume,
        &mut |document, folder| {
            let around = Surroundings {
                keeper: keeper.clone(),
                folder,
                document_file: &folder.join("resolved.json"),
                stop: &stop,
            };
            match conductor.run(document, &around, &mut **shown.borrow_mut()) {
                conduct::Ended::Done(result) => Ended::Done(result),
                conduct::Ended::Failed(why) => Ended::Failed(why),
                conduct::Ended::Wrong(problem) => Ended::Wrong(problem.path, problem.text),
                conduct::Ended::Stopped => Ended::Stopped,
            }
        },
        &mut |said| shown.borrow_mut().stage(&told(said)),
    )?;
    if let Err(why) = conductor.finish(&keeper) {
        shown.borrow_mut().stage(&format!("note: {why}"));
    }
    let mut out = std::io::stdout();
    if tally.left > 0 {
        let (ended, all) = (tally.done + tally.failed, experiment.runs.len());
        let (file, dir) = (file.display(), results.display());
        writeln!(
            out,
            "stopped: {ended} of {all} runs have ended. It goes on with\n  \
             trellis bench exp {file} --out {dir} --resume"
        )?;
        return Ok(ExitCode::from(INTERRUPTED));
    }
    tell(&Report::read(results)?, results)
}

fn own_program() -> Result<PathBuf> {
    std::env::current_exe().context("the program does not know its own path")
}

/// What shows how an experiment goes on, with metrics beside it where they are asked for.
fn shown(metrics: Option<&str>) -> Result<Box<dyn Progress>> {
    let view = View {
        is_terminal: std::io::stdout().is_terminal(),
        screen: screen(),
    };
    let Some(at) = metrics else {
        return Ok(Box::new(view));
    };
    let exporter = Exporter::start(at, view)?;
    let address = exporter.address();
    writeln!(std::io::stdout(), "metrics: http://{address}/metrics")?;
    Ok(Box::new(exporter))
}

/// Prints the table, and writes the page.
fn tell(report: &Report, dir: &Path) -> Result<ExitCode> {
    let page = report.write(dir)?;
    let mut out = std::io::stdout();
    write!(out, "\n{}", report.table())?;
    if report.missing() > 0 {
        writeln!(out, "{} runs have not ended", report.missing())?;
    }
    writeln!(out, "report: {}", page.display())?;
    Ok(match report.passed() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// `trellis bench report`.
pub(super) fn report(args: &ReportArgs) -> Result<ExitCode> {
    if !args.dir.is_dir() {
        bail!("{} is no folder", args.dir.display());
    }
    tell(&Report::read(&args.dir)?, &args.dir)
}

/// The child that evaluates a file of Jsonnet.
pub(super) fn evaluate(args: &EvaluateArgs) -> ExitCode {
    ExitCode::from(experiment::evaluate(&args.file, &mut std::io::stdout()))
}

/// The keeper of a command.
pub(super) fn keep(args: &KeepArgs) -> ExitCode {
    ExitCode::from(conduct::keep(&args.command, &args.output, &args.errors))
}

/// What is seen while an experiment runs: a line for each run and what it does, and in a terminal a
/// block with its last second. A terminal that is closed does not end the experiment.
struct View {
    is_terminal: bool,
    screen: Screen<std::io::Stdout>,
}

impl Progress for View {
    fn stage(&mut self, text: &str) {
        self.screen.stage(text);
    }

    fn loaded(&mut self, loaded: &Loaded) {
        if self.is_terminal {
            self.screen.loaded(loaded);
        }
    }

    fn live(&mut self, live: &Live) {
        if self.is_terminal {
            self.screen.live(live);
        }
    }
}

fn told(said: Said<'_>) -> String {
    match said {
        Said::Begin(at, all, words) => of(at, all, words),
        Said::Kept(at, all, words) => format!("{}: it has a result", of(at, all, words)),
        Said::Done(result) => {
            let per_s = match result["per_s"].as_f64() {
                Some(per_s) => format!("{per_s:.1} interactions per second"),
                None => String::from("no number"),
            };
            let verdict = result["verdict"].as_str().unwrap_or("unchecked");
            format!("  {verdict}: {per_s}")
        }
        Said::Failed(reason) => format!("  failed: {reason}"),
    }
}

fn of(at: usize, all: usize, words: &str) -> String {
    match words {
        "" => format!("run {at} of {all}"),
        words => format!("run {at} of {all}: {words}"),
    }
}
