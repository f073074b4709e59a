//! Runs a population over a store: load, warm up, measure, check.
//!
//! ```text
//! connect -> load -> [ warm-up | measured phase ] -> check -> results
//!                      threads take sessions whose request is due
//! ```
//!
//! A request counts if it was due in the measured phase, a rate is made of what was answered in it.
//! What is due then and never begins is counted as unfinished. After the end the workload's check
//! reads what the run has left; a run whose check fails has no number.

mod around;
pub mod connect;
pub mod distance;
pub mod parts;
mod queue;
mod report;
mod tally;
#[cfg(test)]
mod tests;
mod watch;
mod worker;

pub use around::{Around, run_around, run_over};
pub use parts::Part;
pub use tally::{Second, TIME_US_MAX, Tallies, Tally, Times};

use crate::document::{Problem, Section};
use crate::interaction::{Changed, Changes, Failure, Performed, Session};
use crate::population::{Kind, Population};
use crate::table::{Next, Table};
use queue::{Queue, Walker};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;
use watch::{Course, Point, watch};
use worker::Worker;

/// Sets of counts that threads share.
const TALLIES_MAX: u64 = 16;
/// The stack of a thread.
const STACK_BYTES: usize = 512 << 10;
/// Threads that load and check.
const LOADERS_MAX: u64 = 8;
/// Parts that each of them loads one after the other: the end of a run is looked at in between.
const LOADS: u64 = 16;
/// States without an interaction that a session passes at its begin.
const BEGINS_MAX: usize = 1_000;
/// The longest phase, in seconds: a day.
const PHASE_S_MAX: f64 = 86_400.0;

/// A workload over one kind of data access.
pub trait Workload<D>: Sync {
    /// Names of its interactions, each with the results that are told apart.
    fn interactions(&self) -> &[(&'static str, &'static [&'static str])];

    /// The transition table of a document that has none.
    fn default_table(&self) -> Table;

    /// What an interaction needs that not every store has.
    fn needs(&self, interaction: usize) -> Needs {
        let _ = interaction;
        Needs::Nothing
    }

    /// Runs one interaction, by its place in [`Workload::interactions`].
    fn perform(
        &self,
        interaction: usize,
        session: &mut Session,
        access: &mut D,
        changes: &mut Changes,
        now_ns: &dyn Fn() -> u64,
    ) -> impl Future<Output = Performed>;

    /// Fills a part; others are filled at the same time.
    fn load(&self, part: Part, access: &mut D) -> impl Future<Output = Result<(), Failure>>;

    /// Compares what the store holds of a group that was changed with what was acknowledged. Adds
    /// what contradicts it, in sentences.
    fn judge(
        &self,
        group: (&'static str, u64),
        changed: Changed,
        access: &mut D,
        findings: &mut Vec<String>,
    ) -> impl Future<Output = Result<(), Failure>> {
        let _ = (group, changed, access, findings);
        async { Ok(()) }
    }

    /// Judges a part of the groups that were changed. Returns what contradicts what was
    /// acknowledged.
    fn check(
        &self,
        part: Part,
        access: &mut D,
        changes: &Changes,
    ) -> impl Future<Output = Result<Vec<String>, Failure>> {
        async move {
            let mut findings = Vec::new();
            for (group, changed) in part.of(changes.by_group.iter()) {
                self.judge(*group, *changed, access, &mut findings).await?;
            }
            Ok(findings)
        }
    }
}

/// What an interaction needs that not every store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Transactions on several groups.
    SeveralGroups,
    /// Ranges of entities of different groups.
    RangesOverGroups,
}

impl Needs {
    /// In words.
    fn told(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::SeveralGroups => "transactions on several groups",
            Needs::RangesOverGroups => "ranges of entities of different groups",
        }
    }
}

/// Connects to a store.
pub trait Connector: Sync {
    /// A connection.
    type Access;

    /// Makes a connection for a thread.
    ///
    /// # Errors
    /// Why there is none.
    fn connect(&self, thread: usize) -> Result<Self::Access, String>;

    /// Makes tables, or what a store has instead, anew and empty.
    ///
    /// # Errors
    /// Why that was not done.
    fn create(&self) -> Result<(), String>;

    /// Waits for a future over one of its connections.
    fn drive<T>(&self, future: impl Future<Output = T>) -> T;

    /// Whether a connection can do this.
    fn can(&self, access: &mut Self::Access, needs: Needs) -> bool {
        let _ = (access, needs);
        true
    }

    /// Takes note of what the run does from now on.
    fn enter(&self, phase: Phase) {
        let _ = phase;
    }

    /// What a report says of the store.
    fn describe(&self) -> Value;
}

/// Phases of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    /// Not counted, in seconds; 0 or more.
    pub warmup_s: f64,
    /// Counted, in seconds; above 0.
    pub measure_s: f64,
}

impl Phases {
    /// Reads `warmup_s` (1 if it is missing) and `measure_s` (10).
    ///
    /// # Errors
    /// A number out of its bounds, or a key that is not known.
    pub fn read(mut section: Section<'_>) -> Result<Phases, Problem> {
        let phases = Phases {
            warmup_s: section
                .number("warmup_s", 0.0..=PHASE_S_MAX)?
                .unwrap_or(1.0),
            measure_s: section
                .number("measure_s", 0.01..=PHASE_S_MAX)?
                .unwrap_or(10.0),
        };
        section.finish()?;
        Ok(phases)
    }

    fn measured_ns(self) -> (u64, u64) {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        (ns(self.warmup_s), ns(self.warmup_s) + ns(self.measure_s))
    }
}

/// What a run is made of, besides the store and the workload.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Everything that is drawn follows from it.
    pub seed: u64,
    /// Where sessions go.
    pub table: Table,
    /// Who is there.
    pub population: Population,
    /// How long.
    pub phases: Phases,
    /// Whether data is loaded before. Without it the store must hold what an earlier run loaded,
    /// and the check after the run is not made.
    pub loads: bool,
}

impl Plan {
    /// When the sessions of an open population arrive.
    fn arrivals(&self) -> Result<Vec<u64>, Problem> {
        let Phases {
            warmup_s,
            measure_s,
        } = self.phases;
        self.population.arrivals(self.seed, warmup_s, measure_s)
    }
}

/// What a run does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Loading.
    Load,
    /// Not counted yet.
    WarmUp,
    /// Counted.
    Measure,
    /// Reading what the run has left.
    Check,
}

/// How far a run is; told about once a second.
#[derive(Clone, Debug)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// Names of the interactions.
    pub names: Vec<&'static str>,
    /// Answered in the last second, by interaction.
    pub answered: Vec<u64>,
    /// Median and 99th percentile of their response times, in microseconds; 0: there are none.
    pub p50_us: u64,
    /// See above.
    pub p99_us: u64,
    /// Attempts of this phase that ended by a conflict, by kind.
    pub conflicts: BTreeMap<String, u64>,
    /// Seconds since the begin of the warm-up; 0 before.
    pub at_s: f64,
    /// Seconds of both phases.
    pub of_s: f64,
    /// Interactions answered in the last second.
    pub per_s: f64,
    /// Interactions of this phase that were not answered, so far.
    pub failed: u64,
    /// Requests that are due and wait for a thread.
    pub waiting: u64,
}

/// Why a run has no results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The document is wrong.
    Document(Problem),
    /// The store cannot be reached, or does not do what the workload needs.
    Store(String),
    /// It was ended from outside.
    Stopped,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Document(problem) => problem.fmt(f),
            RunError::Store(text) => f.write_str(text),
            RunError::Stopped => f.write_str("the run was ended before it was complete"),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Problem> for RunError {
    fn from(problem: Problem) -> RunError {
        RunError::Document(problem)
    }
}

/// Threads wait here until all are connected.
#[derive(Debug, Default)]
struct Gate {
    /// Whether the run begins; `None`: that is not known yet.
    begins: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Gate {
    fn wait(&self) -> bool {
        let mut begins = self.begins.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *begins {
                Some(begins) => return begins,
                None => {
                    let waited = self.changed.wait(begins);
                    begins = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn open(&self, begins: bool) {
        *self.begins.lock().unwrap_or_else(PoisonError::into_inner) = Some(begins);
        self.changed.notify_all();
    }
}

/// What all threads of a run see.
struct Stage<'a, C, W> {
    connector: &'a C,
    workload: &'a W,
    table: &'a Table,
    population: &'a Population,
    seed: u64,
    measured_ns: (u64, u64),
    part: Part,
    /// The numbers of the threads of this part.
    threads: Vec<usize>,
    queues: Vec<Queue>,
    tallies: Vec<Mutex<Tallies>>,
    made: Instant,
    /// When the clock started, in nanoseconds since `made`.
    started_ns: AtomicU64,
    gate: Gate,
    stop: &'a AtomicBool,
    /// An answer that no store may give ends the run.
    refused: Mutex<Option<String>>,
}

impl<C, W> Stage<'_, C, W> {
    fn now_ns(&self) -> u64 {
        let elapsed_ns = self.made.elapsed().as_nanos() as u64;
        elapsed_ns.saturating_sub(self.started_ns.load(Ordering::Relaxed))
    }

    /// Starts the clock, and lets the sessions in that are there from the begin. Each thinks first,
    /// so that they do not all come at once.
    fn start(&self, at: Instant) {
        let since = at.saturating_duration_since(self.made);
        self.started_ns
            .store(since.as_nanos() as u64, Ordering::Relaxed);
        if matches!(self.population.kind, Kind::Open(_)) {
            return;
        }
        for place in self.part.dealt(self.population.sessions) {
            if let Some(mut walker) = self.begin(place, 0) {
                let pauses = &mut walker.session.pauses;
                walker.due_ns = self.population.think.draw_us(pauses, place, 0) * 1_000;
                walker.thoughts = 1;
                let queue = (place / self.part.count) as usize % self.queues.len();
                self.queues[queue].put(walker);
            }
        }
    }

    fn overdue(&self, now_ns: u64) -> u64 {
        self.queues.iter().map(|queue| queue.overdue(now_ns)).sum()
    }

    /// What was due in the measured phase and has not begun: by state, and sessions that were not
    /// let in.
    fn waiting(&self) -> (Vec<usize>, u64) {
        let (from_ns, to_ns) = self.measured_ns;
        let mut all = (Vec::new(), 0);
        for queue in &self.queues {
            let (states, arrivals) = queue.overdue_since(from_ns, to_ns);
            all.0.extend(states);
            all.1 += arrivals;
        }
        all
    }

    fn is_measured(&self, ns: u64) -> bool {
        (self.measured_ns.0..self.measured_ns.1).contains(&ns)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.now_ns() >= self.measured_ns.1
            || self.refusal().is_some()
    }

    fn refuse(&self, text: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(text);
    }

    fn refusal(&self) -> Option<String> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone()
    }

    /// A new session in its first state. `None`: in an open population it left at once.
    fn begin(&self, number: u64, due_ns: u64) -> Option<Walker> {
        let (sessions, mut number) = (self.population.sessions, number);
        for _ in 0..BEGINS_MAX {
            let mut session = Session::new(self.seed, number, number % sessions);
            let next = self.table.begin(&mut session.walk);
            let place = &self.tallies[(number % self.tallies.len() as u64) as usize];
            let mut tallies = place.lock().unwrap_or_else(PoisonError::into_inner);
            *tallies.transitions.entry((None, 0, next)).or_default() += 1;
            tallies.sessions_begun += 1;
            match next {
                Next::State(state) => {
                    return Some(Walker {
                        session,
                        state,
                        due_ns,
                        thoughts: 0,
                    });
                }
                Next::End => tallies.sessions_ended += 1,
            }
            if matches!(self.population.kind, Kind::Open(_)) {
                return None;
            }
            number += sessions;
        }
        None
    }

    fn totals(&self) -> Tallies {
        let first = self.tallies[0]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut totals = Tallies::new(first.by_interaction.len());
        drop(first);
        for tallies in &self.tallies {
            totals.merge(&tallies.lock().unwrap_or_else(PoisonError::into_inner));
        }
        totals
    }
}

impl<C, W> Course for Stage<'_, C, W> {
    fn now_ns(&self) -> u64 {
        Stage::now_ns(self)
    }

    fn end_ns(&self) -> u64 {
        self.measured_ns.1
    }

    fn is_over(&self) -> bool {
        Stage::is_over(self)
    }

    fn take_second(&self, _: u64) -> Option<(Second, u64)> {
        let mut sum = Second::default();
        for tallies in &self.tallies {
            let mut tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
            if sum.answered.is_empty() {
                sum = Second::new(tallies.by_interaction.len());
            }
            tallies.second.take_into(&mut sum);
        }
        let waiting = match self.population.kind {
            Kind::Closed => 0,
            Kind::SemiOpen | Kind::Open(_) => self.overdue(Stage::now_ns(self)),
        };
        Some((sum, waiting))
    }
}

/// Refuses a store that cannot do what the table asks for, before anything is loaded.
fn able<C, W>(connector: &C, workload: &W, table: &Table) -> Result<(), RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let states = table.states().iter();
    let asks = states.filter_map(|state| Some((state, workload.needs(state.interaction?))));
    let asks: Vec<_> = asks.filter(|(_, needs)| *needs != Needs::Nothing).collect();
    if asks.is_empty() {
        return Ok(());
    }
    let mut access = connector.connect(0).map_err(RunError::Store)?;
    for (state, needs) in asks {
        if !connector.can(&mut access, needs) {
            let text = format!(
                "{} needs {}, which this store does not have with this mapping: take another \
                 store or mapping, or workload.states without it",
                state.name,
                needs.told()
            );
            return Err(RunError::Store(text));
        }
    }
    Ok(())
}

fn stage<'a, C, W>(
    connector: &'a C,
    workload: &'a W,
    plan: &'a Plan,
    part: Part,
    arrivals: &[u64],
    stop: &'a AtomicBool,
) -> Stage<'a, C, W>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let population = &plan.population;
    let interactions = workload.interactions().len();
    let threads: Vec<usize> = part
        .dealt(population.threads)
        .map(|it| it as usize)
        .collect();
    let tallies = (threads.len() as u64).clamp(1, TALLIES_MAX);
    let tallies = (0..tallies).map(|_| Mutex::new(Tallies::new(interactions)));
    let queues = match population.kind {
        Kind::Closed => threads.iter().map(|_| Queue::default()).collect(),
        Kind::SemiOpen | Kind::Open(_) => vec![Queue::with_arrivals(arrivals, part)],
    };
    Stage {
        connector,
        workload,
        table: &plan.table,
        population,
        seed: plan.seed,
        measured_ns: plan.phases.measured_ns(),
        part,
        threads,
        queues,
        tallies: tallies.collect(),
        made: Instant::now(),
        started_ns: AtomicU64::new(0),
        gate: Gate::default(),
        stop,
        refused: Mutex::new(None),
    }
}

/// Both phases: threads connect, then the clock starts at what `begin` says. Returns what was
/// changed.
fn measure<C, W>(
    stage: &Stage<'_, C, W>,
    begin: &mut dyn FnMut() -> Option<Instant>,
    each: &mut dyn FnMut(&Point<'_>),
) -> Result<Changes, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    std::thread::scope(|scope| {
        let (told, connected) = channel();
        let mut workers = Vec::with_capacity(stage.threads.len());
        for (at, thread) in stage.threads.iter().copied().enumerate() {
            let told = told.clone();
            let work = move || {
                let access = stage.connector.connect(thread);
                let _ = told.send(access.as_ref().map(|_| ()).map_err(String::clone));
                let access = access.ok().filter(|_| stage.gate.wait())?;
                Some(Worker::new(stage, at, access).work())
            };
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            match builder.spawn_scoped(scope, work) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    stage.gate.open(false);
                    return Err(RunError::Store(format!("no thread {thread}: {error}")));
                }
            }
        }

        let refused = connected.iter().take(workers.len()).find_map(Result::err);
        if let Some(text) = refused {
            stage.gate.open(false);
            return Err(RunError::Store(text));
        }
        let Some(at) = begin() else {
            stage.gate.open(false);
            return Err(RunError::Stopped);
        };
        stage.connector.enter(Phase::WarmUp);
        stage.start(at);
        stage.gate.open(true);
        watch(stage, each);
        let mut changes = Changes::default();
        for worker in workers {
            let changed = worker.join().expect("a thread of the run does not panic");
            changes.merge(&changed.unwrap_or_default());
        }
        Ok(changes)
    })
}

/// Does something with several connections at a time, each for its part.
fn in_parts<C: Connector, T: Send>(
    connector: &C,
    parts: u64,
    each: impl Fn(Part, &mut C::Access) -> Result<T, String> + Sync,
) -> Result<Vec<T>, RunError> {
    let done: Result<Vec<T>, String> = std::thread::scope(|scope| {
        let each = &each;
        let work = |number: u64| {
            let part = Part::new(number, parts);
            move || each(part, &mut connector.connect(number as usize)?)
        };
        let threads: Vec<_> = (0..parts).map(|part| scope.spawn(work(part))).collect();
        let results = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.expect("a thread that loads or checks does not panic")
        });
        results.collect()
    });
    done.map_err(RunError::Store)
}

/// Fills what is dealt to a part. A part of the load may be empty.
fn load<C, W>(
    connector: &C,
    workload: &W,
    plan: &Plan,
    part: Part,
    stop: &AtomicBool,
) -> Result<(), RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    connector.enter(Phase::Load);
    let told = |failure: Failure| format!("the data could not be loaded: {failure}");
    let loaders = plan.population.threads.min(LOADERS_MAX);
    in_parts(connector, loaders, |own, access| {
        for turn in 0..LOADS {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let own = part.among(own.number, own.count).among(turn, LOADS);
            connector.drive(workload.load(own, access)).map_err(told)?;
        }
        Ok(())
    })?;
    match stop.load(Ordering::Relaxed) {
        true => Err(RunError::Stopped),
        false => Ok(()),
    }
}

fn check<C, W>(
    connector: &C,
    workload: &W,
    plan: &Plan,
    changes: &Changes,
) -> Result<Vec<String>, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let parts = plan.population.threads.min(LOADERS_MAX);
    connector.enter(Phase::Check);
    let told = |failure: Failure| format!("the check could not be made: {failure}");
    let findings = in_parts(connector, parts, |part, access| {
        let checked = connector.drive(workload.check(part, access, changes));
        checked.map_err(told)
    })?;
    Ok(findings.into_iter().flatten().collect())
}
