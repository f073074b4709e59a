//! Options of `trellis bench run` that break servers, and `trellis bench undo`.

use anyhow::{Context, Result, bail};
use clap::Args;
use fault::{CLOCK_VARIABLE, FaultPlan, FaultTarget, Faults, Place, Process, Starter};
use local_cluster::{dir, nodes};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a process that a signal has ended, as shells count: 128 and its number.
const BY_SIGNAL: i32 = 128;

/// What is broken during a run.
#[derive(Args)]
#[command(next_help_heading = "Faults")]
pub(super) struct FaultArgs {
    /// Break a server: kill, restart, pause, cpu=20%, memory=16MB, cut, cut_in, cut_out, loss=10%,
    /// lag=5ms, delay=50ms, disk_full, disk_write=1MB, disk_read=1MB or clock=+500ms at one or
    /// several targets; BEGIN counts from the beginning of the measured phase. Once for each fault
    /// of a schedule
    #[arg(long, value_name = "KIND[=VALUE]@TARGET[,..]:BEGIN+LENGTH")]
    fault: Vec<FaultPlan>,
    /// A server that is sampled and may be broken: NAME=pid:PID, NAME=pidfile:FILE or
    /// NAME=container:ID, with `ssh:USER@HOST:PORT,` before pid, pidfile or container for another
    /// machine; then ,data:FOLDER, ,clock:FILE and ,start:COMMAND if a fault needs them
    #[arg(long = "target", value_name = "NAME=pid:PID[,..]")]
    fault_target: Vec<FaultTarget>,
    /// Directory of a local Trellis cluster; its nodes are the targets node1, node2 and so on, and
    /// are sampled
    #[arg(long, value_name = "DIR")]
    target_data: Option<PathBuf>,
    /// Where it is written how to undo the faults [default: among the temporary files]
    #[arg(long, value_name = "FILE", requires = "fault")]
    fault_journal: Option<PathBuf>,
}

/// Arguments of `trellis bench undo`.
#[derive(Args)]
pub(super) struct UndoArgs {
    /// The journal of a benchmark that has ended [default: all that lie among the temporary files]
    file: Option<PathBuf>,
}

/// Arguments of `trellis bench clock-shim`.
#[derive(Args)]
pub(super) struct ClockShimArgs {
    /// The folder that the library goes to
    folder: PathBuf,
}

/// Writes the library that a server needs whose clock is to be set, and says how it is used.
pub(super) fn clock_shim(args: &ClockShimArgs) -> Result<()> {
    let folder = &args.folder;
    let library = fault::write_clock_library(folder);
    let library = library.with_context(|| format!("cannot write into {}", folder.display()))?;
    let file = library.with_file_name("NAME.clock");
    let (library, file) = (library.display(), file.display());
    writeln!(
        std::io::stdout(),
        "Start each server with a file of its own, which it makes and must be able to write:\n\
         LD_PRELOAD={library} {CLOCK_VARIABLE}={file} COMMAND\n\
         Then name the file behind its target: --target NAME=pid:PID,clock:{file}"
    )?;
    Ok(())
}

/// Has faults at servers of this machine for a benchmark on another one, which has started this
/// over ssh.
pub(super) fn agent() -> Result<()> {
    undo_at_signal()?;
    let told = fault::agent(std::io::stdin(), &mut std::io::stdout().lock());
    told.context("the benchmark is gone")
}

/// Undoes what a benchmark that was killed has left behind.
pub(super) fn undo(args: &UndoArgs) -> Result<()> {
    let told = match &args.file {
        Some(path) => fault::undo(path)?,
        None => fault::undo_left_behind()?,
    };
    let mut out = std::io::stdout();
    for line in &told {
        writeln!(out, "undone: {line}")?;
    }
    if told.is_empty() {
        writeln!(out, "nothing was left to undo")?;
    }
    Ok(())
}

impl FaultArgs {
    /// The faults of a run. What an earlier one has left behind is undone first. From now on a
    /// signal undoes what is put in, and ends the process.
    pub(super) fn begin(&self) -> Result<Faults> {
        if let Some(path) = self.fault_journal.as_ref().filter(|path| path.exists()) {
            left(&fault::undo(path)?)?;
        }
        undo_left_behind()?;
        let mut targets = self.fault_target.clone();
        if let Some(dir) = &self.target_data {
            for target in of_cluster(dir)? {
                if targets.iter().all(|other| other.name != target.name) {
                    targets.push(target);
                }
            }
        }
        if !self.fault.is_empty() {
            undo_at_signal()?;
        }
        Ok(Faults {
            plans: self.fault.clone(),
            targets,
            journal: self.fault_journal.clone(),
        })
    }
}

/// Undoes what an earlier run has left behind.
pub(super) fn undo_left_behind() -> Result<()> {
    left(&fault::undo_left_behind()?)
}

fn left(told: &[String]) -> Result<()> {
    for line in told {
        writeln!(
            std::io::stderr(),
            "trellis: an earlier run left a fault; undone: {line}"
        )?;
    }
    Ok(())
}

fn undo_at_signal() -> Result<()> {
    // Once for all runs of this process.
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let mut signals =
        Signals::new([SIGHUP, SIGINT, SIGTERM]).context("cannot listen for signals")?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            if let Err(error) = fault::undo_own() {
                // There may be no terminal any more.
                let _ = writeln!(std::io::stderr(), "trellis: {error}");
            }
            std::process::exit(BY_SIGNAL + signal);
        }
    });
    Ok(())
}

/// The nodes of a local cluster that run.
fn of_cluster(dir: &Path) -> Result<Vec<FaultTarget>> {
    dir::existing(dir)?;
    // A journal is read elsewhere, too.
    let dir = &dir.canonicalize().context("the cluster's directory")?;
    let file = dir::existing(dir)?;
    let mut targets = Vec::new();
    for node in &file.nodes {
        let Some(pid) = nodes::pid(&node.data) else {
            continue;
        };
        let process = Process::of(pid).context("a node has just ended")?;
        targets.push(FaultTarget {
            name: format!("node{}", node.id),
            place: Place::PidFile(node.data.join("PID")),
            starter: starter(dir, node.id, &process)?,
            data: Some(node.data.clone()),
            clock: Some(nodes::clock_file(dir, node.id)).filter(|file| file.exists()),
            stop: FaultTarget::STOP,
        });
    }
    if targets.is_empty() {
        bail!("no node of {} runs", dir.display());
    }
    Ok(targets)
}

/// Who starts a node again: the `trellis start` that has started it, or its own command line.
fn starter(dir: &Path, node: u16, process: &Process) -> Result<Starter> {
    let parent = process.parent();
    let is_supervised = parent.is_some_and(|parent| parent.program() == process.program());
    if is_supervised {
        return Ok(Starter::Supervisor(nodes::hold_file(dir, node)));
    }
    let words = process
        .command_line()
        .context("cannot read a node's command line")?;
    // Its data are there by now.
    let words = words
        .iter()
        .filter(|word| *word != "--new")
        .map(|word| quoted(word));
    let words: Vec<String> = words.collect();
    let folder = process.folder().context("cannot read a node's folder")?;
    let folder = quoted(&folder.to_string_lossy());
    // A clock that can be set stays one.
    let kept = [CLOCK_VARIABLE, "LD_PRELOAD"].map(|name| {
        let value = process.variable(name)?;
        Some(format!("{name}={} ", quoted(&value)))
    });
    let kept: String = kept.into_iter().flatten().collect();
    Ok(Starter::Command(format!(
        "cd {folder} && {kept}exec {}",
        words.join(" ")
    )))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
