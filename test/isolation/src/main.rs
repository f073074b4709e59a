//! Runs isolation scripts against PostgreSQL: `isolation HOST:PORT DATABASE FOLDER [SCRIPT...]`.
//!
//! The server must trust the user `postgres`. What is seen must be what the scripts record for
//! `postgres-15`; with `UPDATE=1` in the environment it is recorded instead. Nothing that a level
//! forbids is ever accepted.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what it prints is its product"
)]

mod postgres;
mod wire;

use isolation::run::Broken;
use isolation::{Level, Spec, suite};
use postgres::Postgres;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Runs of a script whose outcomes are not those recorded.
const ATTEMPTS_MAX: u32 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, database, folder, names @ ..] = args.as_slice() else {
        eprintln!("usage: isolation HOST:PORT DATABASE FOLDER [SCRIPT...]");
        return ExitCode::FAILURE;
    };
    match run(address, database, Path::new(folder), names) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("isolation: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the scripts; answers whether all are as they should be.
fn run(
    address: &str,
    database: &str,
    folder: &Path,
    names: &[String],
) -> Result<bool, Box<dyn Error>> {
    let update = std::env::var_os("UPDATE").is_some();
    let mut system = Postgres::connect(address, database)?;
    let (mut scripts, mut interleavings, mut failed) = (0, 0, 0);
    for path in scripts_in(folder)? {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !names.is_empty() && !names.contains(&name) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let spec = Spec::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let begin = Instant::now();
        let result =
            repeated(&mut system, &spec, update).map_err(|broken| format!("{name}: {broken}"))?;
        let time = begin.elapsed().as_secs_f64();
        let mut wrong = result.faults;
        if update {
            std::fs::write(&path, result.updated.file())?;
        } else {
            wrong.extend(result.differences);
        }
        scripts += 1;
        interleavings += result.interleavings;
        let word = if wrong.is_empty() { "passed" } else { "FAILED" };
        println!(
            "{name}: {word}, {} interleavings, {time:.1} s",
            result.interleavings
        );
        if !wrong.is_empty() {
            println!("{}", wrong.join("\n"));
            failed += 1;
        }
    }
    println!("{scripts} scripts, {interleavings} interleavings: {failed} failed");
    Ok(failed == 0 && scripts > 0)
}

/// Runs a script, and again while it is only the record that it does not meet: which one of two
/// sessions finds their deadlock first is a matter of time on a busy machine.
fn repeated(system: &mut Postgres, spec: &Spec, update: bool) -> Result<suite::Outcome, Broken> {
    let mut faults = Vec::new();
    for attempt in 1.. {
        let mut outcome = pollster(suite::run(system, spec, &Level::ALL))?;
        faults.append(&mut outcome.faults);
        if update || outcome.differences.is_empty() || attempt == ATTEMPTS_MAX {
            outcome.faults = faults;
            return Ok(outcome);
        }
    }
    unreachable!("the last attempt returns")
}

fn scripts_in(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "spec")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Runs a future that never waits for anything outside of itself: the system blocks the thread.
fn pollster<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("nothing here is ever pending"),
    }
}
