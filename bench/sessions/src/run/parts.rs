//! A run whose sessions are dealt to several processes. One of them makes the tables, checks and
//! reports; here is what it asks of the others, and what each of those does.
//!
//! ```text
//! session place, thread, arrival, part of the load: number k  ->  process number k mod n
//! ```
//!
//! What a session draws follows from the seed and its number alone, so all processes together have
//! the inputs that one would have. A request waits for a thread of its own process.

use super::tally::{Second, Tallies};
use super::{Connector, RunError, Workload};
use crate::interaction::Changes;
use links::lock;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The longest name of a kind of changes, in bytes, and the most of them.
const KIND_BYTES_MAX: usize = 64;
const KINDS_MAX: usize = 1_000;

/// The part of a run that a process has, or of a load or a check that a connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub number: u64,
    /// Parts in all, 1 or more.
    pub count: u64,
}

impl Part {
    /// All of a run.
    pub const WHOLE: Part = Part {
        number: 0,
        count: 1,
    };

    /// The part with this number, from 0, of so many.
    pub fn new(number: u64, count: u64) -> Part {
        assert!(number < count, "part {number} of {count}");
        Part { number, count }
    }

    /// One of `count` parts of it.
    pub fn among(self, number: u64, count: u64) -> Part {
        Part::new(number * self.count + self.number, self.count * count)
    }

    /// Those of an iterator that are in the part.
    pub fn of<I: Iterator>(self, all: I) -> impl Iterator<Item = I::Item> {
        all.skip(self.number as usize).step_by(self.count as usize)
    }

    /// Those of `all` that are dealt to it, counted from 0.
    pub fn dealt(self, all: u64) -> impl Iterator<Item = u64> {
        (self.number..all).step_by(self.count as usize)
    }
}

/// What a process has counted of its part.
#[derive(Clone, Debug)]
pub struct PartResult {
    /// Counts, raw.
    pub tallies: Tallies,
    /// What was changed, for the check.
    pub changes: Changes,
    /// What was due in the measured phase and has not begun: states, and arrivals.
    pub waiting: (Vec<usize>, u64),
    /// A wrong answer of the store.
    pub refused: Option<String>,
}

/// Names of interactions with the results that are told apart.
pub type Names = [(&'static str, &'static [&'static str])];

/// Who has asked for a part of a run.
pub trait Lead: Sync {
    /// All threads are connected. Returns when they begin; `None`: they do not.
    fn begin(&self) -> Option<Instant>;

    /// A second is over, which this was counted in; so many requests wait.
    fn second(&self, second: u64, counts: &Second, waiting: u64);

    /// Set as soon as the run is to end before its time.
    fn stop(&self) -> &AtomicBool;
}

/// Other processes that have the load of a run.
pub trait Others: Sync {
    /// How many there are.
    fn count(&self) -> u64;

    /// Has all of them fill their part of the tables, if the document says so, and connect.
    ///
    /// # Errors
    /// One is lost, or cannot.
    fn prepare(&self, stop: &AtomicBool) -> Result<(), RunError>;

    /// Lets all of them begin at the same time, which lies a little ahead.
    ///
    /// # Errors
    /// One is lost.
    fn begin(&self) -> Result<Instant, RunError>;

    /// Why there can be no result, as soon as one is lost.
    fn lost(&self) -> Option<String>;

    /// What all of them have counted in a second, and how many requests wait; `None`: one is lost
    /// or late.
    fn take_second(&self, second: u64, names: &Names) -> Option<(Second, u64)>;

    /// The results of all, after the end.
    ///
    /// # Errors
    /// One is lost, or has sent nothing, or nothing that can be.
    fn results(&self, names: &Names) -> Result<Vec<PartResult>, RunError>;

    /// What the report says of them.
    fn describe(&self) -> Value;

    /// Ends what they do.
    fn stop(&self);
}

/// The name of a kind of changes that another process has told, as one that lasts. `None`: it is
/// too long, or there are too many.
pub fn kind_named(name: &str) -> Option<&'static str> {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = lock(&KNOWN);
    if let Some(found) = known.get(name) {
        return Some(found);
    }
    if name.len() > KIND_BYTES_MAX || known.len() >= KINDS_MAX {
        return None;
    }
    let name: &'static str = String::leak(name.to_owned());
    known.insert(name);
    Some(name)
}

/// Carries out a part of a run: loads, connects, runs. `None`: it was ended before its time.
///
/// # Errors
/// [`RunError`].
pub fn run_part<C, W>(
    connector: &C,
    workload: &W,
    plan: &super::Plan,
    part: Part,
    lead: &dyn Lead,
) -> Result<Option<PartResult>, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let arrivals = plan.arrivals()?;
    let stop = lead.stop();
    if plan.loads {
        match super::load(connector, workload, plan, part, stop) {
            Err(RunError::Stopped) => return Ok(None),
            loaded => loaded?,
        }
    }
    let stage = super::stage(connector, workload, plan, part, &arrivals, stop);
    let mut told = |point: &super::watch::Point<'_>| {
        lead.second(point.second, point.counts, point.waiting);
    };
    let measured = super::measure(&stage, &mut || lead.begin(), &mut told);
    let changes = match measured {
        Err(RunError::Stopped) => return Ok(None),
        measured => measured?,
    };
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    Ok(Some(PartResult {
        tallies: stage.totals(),
        changes,
        waiting: stage.waiting(),
        refused: stage.refusal(),
    }))
}
