//! Runs the cells that have no result, one after the other.

use crate::cell::Cell;
use crate::file::{Experiment, FileError};
use crate::heat;
use crate::store::{Outcome, Store, StoreError};
use crate::summary::{Summary, committed_per_s};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Instant;

/// The command that runs a cell.
pub trait Bench {
    /// Whether these arguments can be understood. Nothing is run.
    ///
    /// # Errors
    /// They cannot.
    fn check(&self, arguments: &[String]) -> Result<(), Refused>;

    /// Makes what a cell needs before it runs, if the file says how and it is not there. Called for
    /// all cells that are to run before the first of them does. What takes long is told to `say`.
    ///
    /// # Errors
    /// It cannot be made: the cell is not run, and fails.
    fn prepare(&mut self, arguments: &[String], say: &mut dyn FnMut(&str)) -> Result<(), Failed> {
        let _ = (arguments, say);
        Ok(())
    }

    /// Runs a cell; its result as JSON.
    ///
    /// # Errors
    /// It has no number: it could not be run, or failed its checks.
    fn run(&mut self, arguments: &[String]) -> Result<Value, Failed>;
}

/// Arguments that are not understood.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The option, without dashes; `None`: it is none of them alone.
    pub key: Option<String>,
    /// Why.
    pub text: String,
}

/// A cell without a number.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub reason: String,
    /// What is known all the same.
    pub result: Option<Value>,
}

/// Why a sweep ended.
#[derive(Debug)]
pub enum SweepError {
    /// The file has a mistake.
    File(FileError),
    /// The folder cannot be used.
    Store(StoreError),
}

impl fmt::Display for SweepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepError::File(error) => error.fmt(f),
            SweepError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SweepError {}

impl From<FileError> for SweepError {
    fn from(error: FileError) -> SweepError {
        SweepError::File(error)
    }
}

impl From<StoreError> for SweepError {
    fn from(error: StoreError) -> SweepError {
        SweepError::Store(error)
    }
}

/// Runs the cells of an experiment that have no result in this folder, and those that failed. The
/// lines for a person go to `say`.
///
/// # Errors
/// A cell's settings are not understood (nothing is run then), or the folder is of another
/// experiment or cannot be written. A cell that fails is no error.
pub fn sweep(
    experiment: &Experiment,
    dir: &Path,
    bench: &mut dyn Bench,
    say: &mut dyn FnMut(&str),
) -> Result<Summary, SweepError> {
    let cells = experiment.cells();
    for cell in &cells {
        bench.check(&cell.arguments()).map_err(|refused| {
            let text = format!("{} (in the cell {})", refused.text, told(experiment, cell));
            experiment.mistake(refused.key.as_deref(), text)
        })?;
    }
    let store = Store::open(dir, experiment)?;
    let mut outcomes: Vec<Option<Outcome>> = cells.iter().map(|cell| store.read(cell)).collect();
    announce(experiment, &store, &cells, &outcomes, say)?;
    let is_done = |it: &Option<Outcome>| it.as_ref().is_some_and(|it| it.reason.is_none());
    let todo: Vec<usize> = (0..cells.len())
        .filter(|at| !is_done(&outcomes[*at]))
        .collect();
    let mut prepared = |at: &usize| Some((*at, bench.prepare(&cells[*at].arguments(), say).err()?));
    let mut unprepared: BTreeMap<usize, Failed> = todo.iter().filter_map(&mut prepared).collect();
    let mut spent_s = 0.0;
    for (number, at) in todo.iter().copied().enumerate() {
        let cell = &cells[at];
        let left = match number {
            0 => String::new(),
            _ => {
                let each_s = spent_s / number as f64;
                let left_s = each_s * (todo.len() - number) as f64;
                format!(", about {:.0} s left", left_s.ceil())
            }
        };
        say(&format!(
            "[{} of {}{left}] {}",
            number + 1,
            todo.len(),
            told(experiment, cell)
        ));
        let began = Instant::now();
        let ran = match unprepared.remove(&at) {
            Some(failed) => Err(failed),
            None => bench.run(&cell.arguments()),
        };
        let took_s = began.elapsed().as_secs_f64();
        spent_s += took_s;
        let outcome = match ran {
            Ok(result) => Outcome {
                reason: None,
                took_s,
                result,
            },
            Err(failed) => Outcome {
                reason: Some(failed.reason),
                took_s,
                result: failed.result.unwrap_or(Value::Null),
            },
        };
        store.keep(cell, &outcome)?;
        say(&format!("    {}", ended(&outcome)));
        outcomes[at] = Some(outcome);
    }
    let summary = Summary::of(experiment, &cells, &outcomes);
    store.write("summary.json", &summary.json())?;
    store.write_text("index.html", &heat::page(&summary))?;
    Ok(summary)
}

fn announce(
    experiment: &Experiment,
    store: &Store,
    cells: &[Cell],
    outcomes: &[Option<Outcome>],
    say: &mut dyn FnMut(&str),
) -> Result<(), StoreError> {
    let known = outcomes.iter().flatten();
    let failed = known.clone().filter(|it| it.reason.is_some()).count();
    let done = known.count() - failed;
    let before = match (done, failed) {
        (0, 0) => String::new(),
        (done, 0) => format!(", {done} done before"),
        (done, failed) => format!(", {done} done before, {failed} failed and are tried again"),
    };
    say(&format!(
        "{}: {} cells{before}; order: {}; results in {}",
        experiment.name(),
        cells.len(),
        experiment.order(),
        store.dir().display()
    ));
    let strangers = store.strangers(cells)?;
    if strangers > 0 {
        say(&format!(
            "{strangers} results there are of settings that the file does not have any more: they \
             are left alone"
        ));
    }
    Ok(())
}

/// A cell in a line: what differs between cells.
fn told(experiment: &Experiment, cell: &Cell) -> String {
    let varied = experiment.varied();
    let mut parts: Vec<String> = varied
        .iter()
        .filter_map(|key| Some(format!("{key} {}", cell.get(key)?.text())))
        .collect();
    if experiment.repeats() > 1 {
        parts.push(format!(
            "run {} of {}",
            cell.repeat + 1,
            experiment.repeats()
        ));
    }
    match parts.is_empty() {
        true => "the only one".to_owned(),
        false => parts.join(", "),
    }
}

fn ended(outcome: &Outcome) -> String {
    let took_s = outcome.took_s;
    match (&outcome.reason, committed_per_s(&outcome.result)) {
        (Some(reason), _) => format!("FAILED after {took_s:.1} s: {reason}"),
        (None, Some(rate)) => format!("{rate:.1} committed/s ({took_s:.1} s)"),
        (None, None) => format!("done, without a number ({took_s:.1} s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::experiment;
    use serde_json::json;
    use std::path::PathBuf;

    /// Notes what it runs; refuses one ratio, fails at one, and gives up after so many.
    #[derive(Default)]
    struct Fake {
        ran: Vec<String>,
        fails_at: Option<&'static str>,
        prepared: Vec<String>,
        unprepared_at: Option<&'static str>,
    }

    impl Bench for Fake {
        fn check(&self, arguments: &[String]) -> Result<(), Refused> {
            match arguments.contains(&"--ratio=13".to_owned()) {
                true => Err(Refused {
                    key: Some("ratio".to_owned()),
                    text: "13 brings bad luck".to_owned(),
                }),
                false => Ok(()),
            }
        }

        fn prepare(&mut self, arguments: &[String], _: &mut dyn FnMut(&str)) -> Result<(), Failed> {
            assert!(self.ran.is_empty(), "nothing is made between runs");
            let text = arguments.join(" ");
            self.prepared.push(text.clone());
            match self.unprepared_at.is_some_and(|it| text.contains(it)) {
                true => Err(Failed {
                    reason: "the disk is full".to_owned(),
                    result: None,
                }),
                false => Ok(()),
            }
        }

        fn run(&mut self, arguments: &[String]) -> Result<Value, Failed> {
            let text = arguments.join(" ");
            self.ran.push(text.clone());
            match self.fails_at.is_some_and(|it| text.contains(it)) {
                true => Err(Failed {
                    reason: "the server is away".to_owned(),
                    result: None,
                }),
                false => Ok(json!({ "committed_per_s": 100.0 })),
            }
        }
    }

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("trellis-sweep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        dir
    }

    fn run(text: &str, dir: &Path, fake: &mut Fake) -> Result<Summary, SweepError> {
        sweep(&experiment(text)?, dir, fake, &mut |_| {})
    }

    #[test]
    fn what_has_a_result_is_skipped_and_what_failed_is_tried_again() {
        let dir = folder("again");
        let text = "clients = [1, 2]\nratio = [5, 6]";
        let mut fake = Fake {
            fails_at: Some("--ratio=6"),
            ..Fake::default()
        };
        let summary = run(text, &dir, &mut fake).unwrap();
        assert_eq!((summary.failed, fake.ran.len()), (2, 4));
        // A sweep that was killed while it wrote.
        std::fs::write(dir.join("cells/0.new"), "{").unwrap();
        let mut fake = Fake::default();
        let summary = run(text, &dir, &mut fake).unwrap();
        assert_eq!((summary.failed, fake.ran.len()), (0, 2));
        assert!(fake.ran.iter().all(|it| it.contains("--ratio=6")));
        assert!(!dir.join("cells/0.new").exists());
        // A value more: only its cells.
        let mut fake = Fake::default();
        run("clients = [1, 2, 3]\nratio = [5, 6]", &dir, &mut fake).unwrap();
        assert_eq!(fake.ran.len(), 2);
        // A file that is no result is one that is not there.
        let cells = std::fs::read_dir(dir.join("cells")).unwrap();
        let one = cells.flatten().next().unwrap().path();
        std::fs::write(&one, "{\"format\": 1}").unwrap();
        let mut fake = Fake::default();
        run("clients = [1, 2, 3]\nratio = [5, 6]", &dir, &mut fake).unwrap();
        assert_eq!(fake.ran.len(), 1);
        assert!(dir.join("index.html").exists() && dir.join("summary.json").exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_cell_without_what_it_needs_fails_and_the_others_run() {
        let dir = folder("prepared");
        let text = "clients = [1, 2]\nratio = [5, 6]";
        let mut fake = Fake {
            unprepared_at: Some("--ratio=6"),
            ..Fake::default()
        };
        let summary = run(text, &dir, &mut fake).unwrap();
        assert_eq!(
            (summary.failed, fake.ran.len(), fake.prepared.len()),
            (2, 2, 4)
        );
        assert!(fake.ran.iter().all(|it| it.contains("--ratio=5")));
        // Only what is left to run is prepared.
        let mut fake = Fake::default();
        let summary = run(text, &dir, &mut fake).unwrap();
        assert_eq!(
            (summary.failed, fake.ran.len(), fake.prepared.len()),
            (0, 2, 2)
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_folder_of_another_experiment_is_refused() {
        let dir = folder("other");
        let refused = |text: &str| {
            let mut fake = Fake::default();
            let error = run(text, &dir, &mut fake).unwrap_err().to_string();
            assert!(fake.ran.is_empty());
            error
        };
        run("clients = 1", &dir, &mut Fake::default()).unwrap();
        let other = refused("clients = 1\n[matrix]\nname = 'other'");
        assert!(
            other.contains("results of the experiment \"my\""),
            "{other}"
        );
        let settings = refused("clients = 2");
        assert!(settings.contains("of other settings"), "{settings}");
        let wrong = refused("clients = 1\nratio = [12,\n13]");
        assert!(
            wrong.contains("line 2, key ratio: 13 brings bad luck"),
            "{wrong}"
        );
        std::fs::remove_file(dir.join("matrix.json")).unwrap();
        let files = refused("clients = 1");
        assert!(files.contains("it holds files"), "{files}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn two_sweeps_do_not_write_to_one_folder() {
        let dir = folder("two");
        let one = experiment("clients = 1").unwrap();
        let open = Store::open(&dir, &one).unwrap();
        let error = run("clients = 1", &dir, &mut Fake::default()).unwrap_err();
        assert!(error.to_string().contains("another sweep"), "{error}");
        drop(open);
        run("clients = 1", &dir, &mut Fake::default()).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
