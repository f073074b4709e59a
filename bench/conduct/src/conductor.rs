//! The runs of an experiment, one after the other, each with what is around it.

use crate::document::{Document, Kind};
use crate::keep::Keeper;
use crate::standing::{ScriptError, Standing, reset};
use crate::{program, sessions_run, tables};
use links::view::Progress;
use serde_json::{Value, json};
use sessions::document::Problem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use workers::Accept;

/// What a run finds around it.
pub struct Surroundings<'a> {
    /// How commands are kept.
    pub keeper: Keeper,
    /// The folder of its results, in which output of commands is kept.
    pub folder: &'a Path,
    /// The file of its document.
    pub document_file: &'a Path,
    /// Ends the run.
    pub stop: &'a AtomicBool,
}

/// How a run ends.
#[derive(Debug)]
pub enum Ended {
    /// With a result.
    Done(Value),
    /// Without one, and why.
    Failed(String),
    /// Without one, since the document is wrong.
    Wrong(Problem),
    /// It was stopped.
    Stopped,
}

/// Conducts runs. What stands when it is dropped is ended.
pub struct Conductor<'a> {
    /// Reads the arguments of `trellis bench run`.
    accept: &'a Accept,
    standing: Option<Standing>,
}

impl<'a> Conductor<'a> {
    /// Nothing runs yet.
    pub fn new(accept: &'a Accept) -> Conductor<'a> {
        Conductor {
            accept,
            standing: None,
        }
    }

    /// Checks a document before anything runs.
    ///
    /// # Errors
    /// What is wrong, by its path.
    pub fn check(&self, document: &Value) -> Result<(), Problem> {
        let read = Document::read(document)?;
        if let Kind::Tables(arguments, _) = &read.kind {
            let wrong = |text| Problem::new("workload.parameters", text);
            tables::options(arguments, self.accept).map_err(wrong)?;
        }
        Ok(())
    }

    /// Runs a document.
    pub fn run(
        &mut self,
        document: &Value,
        around: &Surroundings<'_>,
        progress: &mut dyn Progress,
    ) -> Ended {
        let read = match Document::read(document) {
            Ok(read) => read,
            Err(problem) => return Ended::Wrong(problem),
        };
        if let Err(error) = self.prepare(&read, around, progress) {
            // It may be in the way of the next run.
            let _ = self.end(&around.keeper);
            return match error {
                ScriptError::Failed(why) => Ended::Failed(why),
                ScriptError::Stopped => Ended::Stopped,
            };
        }
        let url = self
            .standing
            .as_ref()
            .map_or(&*read.url, Standing::url)
            .to_owned();
        let read = match read.at(&url) {
            Ok(read) => read,
            Err(problem) => return Ended::Wrong(problem),
        };
        let pid = self.standing.as_ref().map(Standing::pid);
        let mut ended = match &read.kind {
            Kind::Sessions(own) => sessions_run::run(own, &read, pid, around, progress),
            Kind::Program(command, limit) => {
                program::run((command, *limit), &read, document, pid, around, progress)
            }
            Kind::Tables(arguments, warehouses) => {
                let what = (arguments.as_slice(), *warehouses);
                tables::run(what, &read, pid, self.accept, progress)
            }
        };
        // A signal makes connections fail as well.
        if matches!(ended, Ended::Failed(_)) && around.stop.load(Ordering::Relaxed) {
            ended = Ended::Stopped;
        }
        let stays = read.scripts.reset.is_some() && matches!(ended, Ended::Done(_));
        let stopped = match stays {
            true => Ok(()),
            false => self.end(&around.keeper),
        };
        if let Ended::Done(result) = &mut ended {
            result["store_url"] = json!(url);
            if let Err(ScriptError::Failed(why)) = stopped {
                result["store_notes"] = json!([why]);
                progress.stage(&format!("  note: {why}"));
            }
        }
        ended
    }

    /// Has the store as the document wants it.
    fn prepare(
        &mut self,
        read: &Document,
        around: &Surroundings<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), ScriptError> {
        let scripts = &read.scripts;
        let serves = |standing: &Standing| standing.serves(scripts, &read.url);
        if self.standing.as_ref().is_some_and(serves) {
            progress.stage("  resetting the store");
            let standing = self.standing.as_ref();
            let url = standing.map_or(&*read.url, Standing::url);
            return reset(scripts, url, standing, around);
        }
        self.end(&around.keeper)?;
        if scripts.start.is_some() {
            progress.stage("  starting the store");
            self.standing = Some(Standing::start(scripts, &read.url, around)?);
            return Ok(());
        }
        if scripts.reset.is_some() {
            progress.stage("  resetting the store");
        }
        reset(scripts, &read.url, None, around)
    }

    /// Ends the store that stands.
    fn end(&mut self, keeper: &Keeper) -> Result<(), ScriptError> {
        match self.standing.take() {
            Some(standing) => standing.end(keeper),
            None => Ok(()),
        }
    }

    /// Ends what is left after the last run.
    ///
    /// # Errors
    /// What its script says.
    pub fn finish(&mut self, keeper: &Keeper) -> Result<(), String> {
        match self.end(keeper) {
            Err(ScriptError::Failed(why)) => Err(why),
            Ok(()) | Err(ScriptError::Stopped) => Ok(()),
        }
    }
}
