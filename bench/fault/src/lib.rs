//! Faults: a server that is named is broken for some seconds of a run, and what that cost is
//! measured.
//!
//! ```text
//! check -> | wait -> put in -> probe .. proven .. -> undo -> verify | -> cost
//!   |              journal on disk before                 |
//!   refused by name, nothing was done                     within 2 s; a start takes its time
//! ```
//!
//! Invariants:
//! * What cannot be done is refused before the run, by the name of the kind and with what it needs.
//! * How a fault is undone is on disk before the fault is put in (`journal`). It is undone when the
//!   run ends by itself, by an error, a panic or a signal; if the benchmark is killed, [`undo()`]
//!   or the next run does it.
//! * A fault that was not seen by its probe, or did not last, has no number: the run ends with an
//!   error.
//! * Only processes that were named, and their descendants, get signals; each is compared by the
//!   time of its start before.
//!
//! Servers of other machines: an agent there has their faults (`agent`).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agent;
mod clock;
mod cost;
mod far;
mod group;
mod journal;
mod kind;
mod lag;
mod measure;
mod memory;
mod network;
mod plan;
mod process;
mod sample;
mod target;
#[cfg(test)]
mod tests;
mod undo;

pub use agent::agent;
pub use clock::{CLOCK_VARIABLE, write_clock_library};
pub use cost::reckon;
pub use far::Host;
pub use journal::{undo, undo_left_behind, undo_own};
pub use measure::{MEASURES, Measure};
pub use plan::{Disk, FaultPlan, Kind, Ways};
pub use process::Process;
pub use sample::{Sample, Sampler, Samples, ServerSeries, Used};
pub use target::{FarPlace, FaultTarget, Place, Starter};

use agent::{Agent, Task};
use journal::{Entry, Journal};
use kind::{Active, Context, Delay, Look};
use links::DriveError;
use links::delay::DelayProxy;
use links::lock;
use links::url::{Endpoint, Target};
use measures::recovery::{Recovery, RecoveryError};
use plan::refused;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use target::Server;

/// How often faults are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A probe that has seen a fault looks this often whether it is still there.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Length of a step of the series of commits, in seconds.
pub const STEP_S: f64 = 0.1;
/// Which faults a run has.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// In any order.
    pub plans: Vec<FaultPlan>,
    /// Those that the plans name, at least.
    pub targets: Vec<FaultTarget>,
    /// Where the journal goes; `None`: among the temporary files.
    pub journal: Option<PathBuf>,
}

/// A fault that was put in, proven and undone.
#[derive(Clone, Debug)]
pub struct Fault {
    /// What was done.
    pub kind: Kind,
    /// To whom.
    pub target: String,
    /// As asked for: begin and length, in seconds of the measured phase.
    pub planned_s: (f64, f64),
    /// When it was put in, in seconds of the measured phase.
    pub begin_s: f64,
    /// The same in seconds since 1970, to compare with logs.
    pub begin_unix_s: f64,
    /// When it was undone.
    pub end_s: f64,
    /// What proves that it was there.
    pub proof: String,
    /// How long it took until it was seen to be undone, in seconds; of a server that was started
    /// again: until it answered.
    pub undo_s: f64,
    /// What it cost.
    pub cost: Result<Recovery, RecoveryError>,
    /// Steps of the series by which that was reckoned, in seconds.
    pub step_s: f64,
}

/// Faults of a run that may begin.
pub struct Injection {
    context: Context,
    /// In the order of the plans; each target of a plan is one.
    faults: Vec<One>,
    /// Have those of servers elsewhere.
    agents: Vec<Agent>,
    journal: Arc<Mutex<Journal>>,
}

/// A fault at one target.
struct One {
    number: usize,
    kind: Kind,
    /// In seconds: begin and length.
    planned_s: (f64, f64),
    server: Server,
    state: State,
    begin_s: f64,
    begin_unix_s: f64,
    end_s: f64,
    proof: Option<String>,
    undo_s: f64,
}

enum State {
    Pending,
    In {
        active: Box<Active>,
        looked: Instant,
    },
    /// Parts of it with the process that undoing them has started.
    Leaving {
        entries: Vec<(Entry, Option<u32>)>,
        since: Instant,
    },
    Done,
}

/// A target as the client reaches it, and faults that can be put in.
pub fn prepare(
    faults: &Faults,
    target: &Target,
    length: Duration,
) -> Result<Option<(Injection, Target)>, DriveError> {
    if faults.plans.is_empty() {
        return Ok(None);
    }
    plan::check(&faults.plans, length.as_secs_f64())?;
    let mut ones: Vec<One> = Vec::new();
    let mut tasks: Vec<Task> = Vec::new();
    let mut number = 0;
    for plan in &faults.plans {
        for name in &plan.targets {
            let found = faults.targets.iter().find(|target| target.name == *name);
            let found = found.ok_or_else(|| {
                let known = faults.targets.iter().map(|target| target.name.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                let known = if known.is_empty() { "none" } else { &known };
                refused(format!(
                    "{plan}: there is no target {name:?}; given are {known} (--target, \
                     --target-data)"
                ))
            })?;
            match found.far() {
                None => ones.push(One::of(number, plan, found)?),
                Some(far) => task(&mut tasks, far, found)?.faults.push((
                    number,
                    FaultPlan {
                        targets: vec![name.clone()],
                        ..plan.clone()
                    },
                )),
            }
            number += 1;
        }
    }
    if let Some(plan) = tasks.iter().flat_map(|task| &task.faults).find(is_delay) {
        return Err(refused(format!(
            "{} is not possible; it needs a server on this machine: the proxy is before the client",
            plan.1
        )));
    }
    let (context, reached) = context(&ones, target)?;
    for one in &ones {
        let checked = context.check(one.number, one.kind, &one.server);
        checked.map_err(|needs| {
            refused(format!(
                "{} is not possible at {}; it needs {needs}",
                one.kind,
                one.name()
            ))
        })?;
    }
    let length_s = length.as_secs_f64();
    let agents = tasks.into_iter().map(|task| Agent::start(task, length_s));
    let agents = agents.collect::<Result<Vec<Agent>, DriveError>>()?;
    let journal = Journal::create(faults.journal.as_deref())?;
    let injection = Injection {
        context,
        faults: ones,
        agents,
        journal,
    };
    Ok(Some((injection, reached)))
}

fn is_delay((_, plan): &&(usize, FaultPlan)) -> bool {
    matches!(plan.kind, Kind::Delay(_))
}

/// What the agent of a machine has to do, with this target.
fn task<'a>(
    tasks: &'a mut Vec<Task>,
    far: &FarPlace,
    target: &FaultTarget,
) -> Result<&'a mut Task, DriveError> {
    let is_its = |task: &Task| task.host == far.host;
    let at = tasks.iter().position(is_its).unwrap_or(tasks.len());
    if at == tasks.len() {
        tasks.push(Task {
            host: far.host.clone(),
            program: far.program.clone(),
            targets: Vec::new(),
            faults: Vec::new(),
        });
    }
    let task = &mut tasks[at];
    if task.program != far.program {
        let text = format!("{} has two programs: trellis:PROGRAM must be one", far.host);
        return Err(refused(text));
    }
    if !task.targets.contains(target) {
        task.targets.push(target.clone());
    }
    Ok(task)
}

/// Proxies for what is to be delayed, and the target with them in the place of its endpoints.
fn context(ones: &[One], target: &Target) -> Result<(Context, Target), DriveError> {
    let own = Process::own().ok_or_else(|| refused("/proc is not there".into()))?;
    let mut context = Context {
        token: format!("{}-{:x}", own.pid, own.start_ticks),
        delays: Vec::new(),
        target: target.clone(),
    };
    let mut reached = target.clone();
    let delayed: Vec<&One> = ones
        .iter()
        .filter(|one| matches!(one.kind, Kind::Delay(_)))
        .collect();
    if delayed.is_empty() {
        return Ok((context, reached));
    }
    if !target.wire.has_sql() {
        return Err(refused(
            "delay is possible with postgres:// and mysql:// only: its probe needs SQL".into(),
        ));
    }
    for endpoint in &mut reached.endpoints {
        let Some(server) = address(endpoint) else {
            continue;
        };
        let is_at = |one: &&One| {
            one.server
                .listening
                .iter()
                .any(|it| it.port() == server.port())
        };
        if !server.ip().is_loopback() || !delayed.iter().any(is_at) {
            continue;
        }
        let proxy = DelayProxy::start(&[server], Duration::ZERO);
        let proxy = proxy.map_err(|error| refused(format!("delay: no proxy: {error}")))?;
        let front = proxy.addresses()[0];
        *endpoint = Endpoint {
            host: front.ip().to_string(),
            port: front.port(),
        };
        context.delays.push(Arc::new(Delay {
            server,
            proxy,
            endpoint: endpoint.clone(),
            target: target.clone(),
        }));
    }
    Ok((context, reached))
}

fn address(endpoint: &Endpoint) -> Option<SocketAddr> {
    let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
    found.ok()?.next()
}

impl One {
    fn of(number: usize, plan: &FaultPlan, target: &FaultTarget) -> Result<One, DriveError> {
        Ok(One {
            number,
            kind: plan.kind,
            planned_s: (plan.begin_s, plan.length_s),
            server: Server::find(target)?,
            state: State::Pending,
            begin_s: 0.0,
            begin_unix_s: 0.0,
            end_s: 0.0,
            proof: None,
            undo_s: 0.0,
        })
    }

    fn name(&self) -> &str {
        &self.server.target.name
    }

    fn is_leaving(&self) -> bool {
        matches!(self.state, State::Leaving { .. })
    }

    fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    fn error(&self, text: &str) -> DriveError {
        let (begin_s, length_s) = self.planned_s;
        let (kind, name) = (self.kind, self.name());
        DriveError::Fault(format!("fault {kind}@{name}:{begin_s}+{length_s}: {text}"))
    }
}

impl Injection {
    /// Whether a server ends, with its counters.
    pub fn ends_processes(&self) -> bool {
        let far = self.agents.iter().flat_map(|agent| &agent.faults);
        let far = far.map(|(_, plan)| plan.kind);
        let kinds = self.faults.iter().map(|one| one.kind).chain(far);
        kinds.into_iter().any(Kind::ends_process)
    }

    /// Puts the faults in and undoes them, by a clock that tells the second of the measured phase
    /// (`None`: it is over), and comes back when all are undone. Proxies stay until this is
    /// dropped.
    ///
    /// # Errors
    /// One could not be put in, proven or undone; the others are undone.
    pub fn run(
        &mut self,
        clock: &(dyn Fn() -> Option<f64> + Sync),
    ) -> Result<Vec<Fault>, DriveError> {
        let mut agents = std::mem::take(&mut self.agents);
        // The first that fails ends the others' faults, and is the cause of what they say then.
        let failure: Mutex<Option<DriveError>> = Mutex::new(None);
        let clock = || clock().filter(|_| lock(&failure).is_none());
        let clock = &clock;
        let failed = |error| {
            lock(&failure).get_or_insert(error);
        };
        let failed = &failed;
        let mut numbered: Vec<(usize, Fault)> = Vec::new();
        std::thread::scope(|scope| {
            let far = agents.iter_mut().map(|agent| {
                scope.spawn(move || agent.run(clock).map_err(failed).unwrap_or_default())
            });
            let far: Vec<_> = far.collect();
            self.all(clock).unwrap_or_else(failed);
            for told in far {
                numbered.extend(told.join().expect("an agent's thread does not panic"));
            }
        });
        // What is left after an error. After none it is nothing.
        let closed = lock(&self.journal).close();
        if let Some(error) = lock(&failure).take() {
            return Err(error);
        }
        closed.map_err(DriveError::Fault)?;
        let own = self.faults.drain(..).map(|one| (one.number, one.told()));
        numbered.extend(own);
        numbered.sort_by_key(|(number, _)| *number);
        Ok(numbered.into_iter().map(|(_, fault)| fault).collect())
    }

    fn all(&mut self, clock: &dyn Fn() -> Option<f64>) -> Result<(), DriveError> {
        let mut last_s = 0.0;
        while !self.faults.iter().all(One::is_done) {
            let now_s = clock();
            // After the end of the run what is in is undone, and nothing is put in.
            let is_over = now_s.is_none();
            last_s = now_s.unwrap_or(last_s);
            for at in 0..self.faults.len() {
                self.step(at, clock, last_s, is_over)?;
            }
            let next_s = self
                .faults
                .iter()
                .filter_map(One::next_s)
                .fold(f64::MAX, f64::min);
            let left_s = (next_s - clock().unwrap_or(last_s)).max(0.0);
            std::thread::sleep(LOOK_EVERY.min(Duration::from_secs_f64(left_s.min(1.0))));
        }
        Ok(())
    }

    /// What is due for one fault.
    fn step(
        &mut self,
        at: usize,
        clock: &dyn Fn() -> Option<f64>,
        last_s: f64,
        is_over: bool,
    ) -> Result<(), DriveError> {
        let name = self.faults[at].name();
        let mut others = self.faults.iter();
        let leaving = others.find(|other| other.name() == name && other.is_leaving());
        let leaving = leaving.map(|other| other.kind);
        let one = &mut self.faults[at];
        let (begin_s, length_s) = one.planned_s;
        match &mut one.state {
            State::Pending if is_over => return Err(one.error("the run ended before it began")),
            State::Pending if last_s >= begin_s => {
                if let Some(before) = leaving {
                    return Err(one.error(&format!("{before} is not undone yet")));
                }
                let refreshed = one.server.refresh(None);
                refreshed.map_err(|error| one.error(&error))?;
                one.begin_s = clock().unwrap_or(last_s);
                let unix = SystemTime::now().duration_since(UNIX_EPOCH);
                one.begin_unix_s = unix.unwrap_or_default().as_secs_f64();
                let put_in = self
                    .context
                    .put_in(one.number, one.kind, &one.server, &self.journal);
                let active = put_in.map_err(|error| one.error(&error))?;
                one.state = State::In {
                    active: Box::new(active),
                    looked: Instant::now(),
                };
            }
            State::In { active, looked } => {
                let is_due = is_over || last_s >= one.begin_s + length_s;
                if is_due || one.proof.is_none() || looked.elapsed() >= LOOK_AGAIN {
                    *looked = Instant::now();
                    match (active.look(), &one.proof) {
                        (Look::Proven(proof), _) => one.proof = Some(proof),
                        (Look::NotYet, None) if !is_due => {}
                        // Counts grow; a process does not come back.
                        (Look::NotYet, Some(_)) if !one.kind.ends_process() => {}
                        (Look::NotYet, None) => {
                            return Err(one.error("it was put in, and no probe has seen it"));
                        }
                        (Look::NotYet, Some(_)) => {
                            return Err(one.error("somebody has started the server meanwhile"));
                        }
                        (Look::Missing(why), _) => return Err(one.error(&why)),
                    }
                }
                if is_due {
                    one.end_s = clock().unwrap_or(last_s);
                    self.leave(at)?;
                }
            }
            State::Leaving { .. } => self.verify(at)?,
            State::Pending | State::Done => {}
        }
        Ok(())
    }

    /// Begins to undo a fault.
    fn leave(&mut self, at: usize) -> Result<(), DriveError> {
        let one = &mut self.faults[at];
        let State::In { active, .. } = &mut one.state else {
            return Ok(());
        };
        let since = Instant::now();
        active.end_delay();
        let put_in = active.entries.clone();
        let mut entries = Vec::new();
        for entry in put_in.iter().rev() {
            let undo = lock(&self.journal).entry(*entry).cloned();
            let started = undo.map(|undo| undo.act()).transpose();
            let started = started.map_err(|error| one.error(&error))?;
            entries.push((*entry, started.flatten()));
        }
        one.state = State::Leaving { entries, since };
        Ok(())
    }

    /// Sees whether a fault is undone.
    fn verify(&mut self, at: usize) -> Result<(), DriveError> {
        let one = &mut self.faults[at];
        let State::Leaving { entries, since } = &mut one.state else {
            return Ok(());
        };
        let (since, entries) = (*since, std::mem::take(entries));
        let mut limit = Duration::ZERO;
        let mut restarted = None;
        let mut left = Vec::new();
        for (entry, started) in entries {
            let Some(undo) = lock(&self.journal).entry(entry).cloned() else {
                continue;
            };
            let is_start = undo.takes_a_start();
            limit = limit.max(undo.limit(started));
            if !undo.is_done(started) || (is_start && !self.context.answers(&one.server)) {
                left.push((entry, started));
                continue;
            }
            if let undo::Undo::Start(start) = &undo {
                restarted = start.process(started);
            }
            let done = lock(&self.journal).done(entry);
            done.map_err(|error| one.error(&error))?;
        }
        if !left.is_empty() {
            if since.elapsed() > limit {
                return Err(one.error(&format!("not undone after {} s", limit.as_secs())));
            }
            one.state = State::Leaving {
                entries: left,
                since,
            };
            return Ok(());
        }
        one.undo_s = since.elapsed().as_secs_f64();
        one.state = State::Done;
        let name = one.name().to_string();
        for other in self.faults.iter_mut().filter(|other| other.name() == name) {
            let refreshed = other.server.refresh(restarted);
            refreshed.map_err(|error| other.error(&error))?;
        }
        Ok(())
    }
}

impl One {
    /// When something is to be done next, in seconds of the measured phase.
    fn next_s(&self) -> Option<f64> {
        match &self.state {
            State::Pending => Some(self.planned_s.0),
            State::In { .. } => Some(self.begin_s + self.planned_s.1),
            State::Leaving { .. } | State::Done => None,
        }
    }

    fn told(self) -> Fault {
        Fault {
            kind: self.kind,
            target: self.server.target.name,
            planned_s: self.planned_s,
            begin_s: self.begin_s,
            begin_unix_s: self.begin_unix_s,
            end_s: self.end_s,
            proof: self.proof.unwrap_or_default(),
            undo_s: self.undo_s,
            cost: Err(RecoveryError::NothingAfter),
            step_s: STEP_S,
        }
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        // After a panic; otherwise nothing is left. What fails then stays in the journal's file.
        let _ = lock(&self.journal).close();
        journal::forget(&self.journal);
    }
}
