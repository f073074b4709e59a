//! Runs the documents of an experiment one after the other, and keeps what came out.

use crate::folder::{Folder, FolderError, Outcome};
use crate::mistake::Mistake;
use crate::resolve::{Experiment, Resolved};
use crate::table::Labels;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

/// What is told while an experiment runs.
#[derive(Clone, Copy, Debug)]
pub enum Said<'s> {
    /// A run begins: its number from 1, how many there are, what makes it different from others.
    Begin(usize, usize, &'s str),
    /// A run was there before, with its number.
    Kept(usize, usize, &'s str),
    /// A run has ended.
    Done(&'s Value),
    /// A run has failed, and why.
    Failed(&'s str),
}

/// How a run ends.
#[derive(Debug)]
pub enum Ended {
    /// With a result.
    Done(Value),
    /// Without one, and why.
    Failed(String),
    /// Without one, since the document is wrong at a path, and why.
    Wrong(String, String),
    /// It was stopped: it counts as not run, and no other one begins.
    Stopped,
}

/// Whether a document can be run; else the path of what is wrong, and why.
pub type Check<'c> = dyn Fn(&Value) -> Result<(), (String, String)> + 'c;

/// How an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Runs that have a result.
    pub done: usize,
    /// Runs that failed, or whose check did.
    pub failed: usize,
    /// Runs that are still to be run, since it was stopped.
    pub left: usize,
}

/// Whether a run did what it should: its check, where it has one, has passed.
fn is_good(result: &Value) -> bool {
    !matches!(result["verdict"].as_str(), Some("failed" | "nothing"))
}

impl Experiment {
    /// Its name: that of its first document.
    pub fn name(&self) -> &str {
        let first = self.runs.first();
        first
            .and_then(|run| run.value()["name"].as_str())
            .unwrap_or_default()
    }

    /// The documents of all runs, as a file that stands for them: one, or a list.
    pub fn text(&self) -> String {
        match self.runs.as_slice() {
            [run] => run.text(),
            runs => {
                let documents = runs.iter().map(|run| run.value().clone());
                format!("{:#}\n", documents.collect::<Value>())
            }
        }
    }

    /// Checks all documents before the first one runs. `check` tells the path of what is wrong, and
    /// why.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn check(&self, check: &Check<'_>) -> Result<(), Mistake> {
        for run in &self.runs {
            check(&run.for_run()).map_err(|(path, text)| run.mistake(&path, &text))?;
        }
        Ok(())
    }

    /// Runs all documents in order, each with the folder of its results. With `resume` those that
    /// have a result are kept.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn run(
        &self,
        out: &Path,
        resume: bool,
        run: &mut dyn FnMut(&Value, &Path) -> Ended,
        say: &mut dyn FnMut(Said<'_>),
    ) -> Result<Tally, FolderError> {
        let folder = Folder::open(out, self, resume)?;
        let documents: Vec<&Value> = self.runs.iter().map(Resolved::value).collect();
        let labels = Labels::of(&documents);
        let count = self.runs.len();
        let mut tally = Tally {
            done: 0,
            failed: 0,
            left: 0,
        };
        for (at, document) in self.runs.iter().enumerate() {
            let words = labels.words(document.value());
            let kept = folder.ended(at).filter(|outcome| outcome.reason.is_none());
            if let Some(outcome) = kept {
                say(Said::Kept(at + 1, count, &words));
                tally.count(is_good(&outcome.result));
                continue;
            }
            say(Said::Begin(at + 1, count, &words));
            folder.begin(at, document)?;
            let begun = Instant::now();
            let (reason, result) = match run(&document.for_run(), &folder.path_of(at)) {
                Ended::Done(result) => (None, result),
                Ended::Failed(reason) => (Some(reason), Value::Null),
                Ended::Wrong(path, text) => (
                    Some(document.mistake(&path, &text).to_string()),
                    Value::Null,
                ),
                Ended::Stopped => {
                    tally.left = count - at;
                    return Ok(tally);
                }
            };
            match &reason {
                None => say(Said::Done(&result)),
                Some(reason) => say(Said::Failed(reason)),
            }
            tally.count(reason.is_none() && is_good(&result));
            let outcome = Outcome {
                reason,
                took_s: begun.elapsed().as_secs_f64(),
                document: document.value().clone(),
                result,
            };
            folder.end(at, &outcome)?;
        }
        Ok(tally)
    }
}

impl Tally {
    fn count(&mut self, is_good: bool) {
        match is_good {
            true => self.done += 1,
            false => self.failed += 1,
        }
    }
}
