//! A run of sessions, in this process or in those of workers, with samples of what is used.

use crate::conductor::{Ended, Surroundings};
use crate::document::Document;
use fault::{FaultTarget, Sampler, Samples, ServerSeries};
use links::cpu::cores;
use links::view::{Live, Progress};
use serde_json::Value;
use sessions::resolved::Document as SessionsDocument;
use sessions::run::parts::Others;
use sessions::run::{Around, Phase, Phases, Progress as Told, RunError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workers::SessionCrew;

/// How often the sampling thread looks whether the run has begun.
const LOOK: Duration = Duration::from_millis(20);
/// How the processes of a store that we have started are called.
const STORE: &str = "store";
/// How this process is called among the clients.
const CLIENT: &str = "client";

/// The servers that are sampled: those that are named, and those that we have started.
pub(crate) fn targets(read: &Document, pid: Option<u32>) -> Result<Vec<FaultTarget>, String> {
    let own = pid.map(|pid| format!("{STORE}=pid:{pid}"));
    let named = read.servers.iter().chain(&own);
    let parsed = named.map(|text| text.parse().map_err(|error| format!("monitor: {error}")));
    parsed.collect()
}

/// A clock of the measured phase that begins when a run does.
pub(crate) struct RunClock {
    begun: OnceLock<Instant>,
    is_over: AtomicBool,
    phases: Phases,
}

impl RunClock {
    pub(crate) fn new(phases: Phases) -> RunClock {
        RunClock {
            begun: OnceLock::new(),
            is_over: AtomicBool::new(false),
            phases,
        }
    }

    pub(crate) fn begin(&self, at: Instant) {
        let _ = self.begun.set(at);
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Samples from the begin to the end; nothing of a run that has not begun.
    pub(crate) fn sample(&self, sampler: Sampler) -> Samples {
        let begun = loop {
            match self.begun.get() {
                Some(begun) => break *begun,
                None if self.is_over.load(Ordering::Relaxed) => return Samples::default(),
                None => std::thread::sleep(LOOK),
            }
        };
        let clock = || {
            let passed_s = match Instant::now().checked_duration_since(begun) {
                Some(passed) => passed.as_secs_f64(),
                None => 0.0,
            };
            let at_s = passed_s - self.phases.warmup_s;
            let goes_on = at_s < self.phases.measure_s && !self.is_over.load(Ordering::Relaxed);
            goes_on.then_some(at_s)
        };
        sampler.run(&clock)
    }
}

/// Runs the sessions of a document. `pid`: below it is a store that we have started.
pub(crate) fn run(
    own: &SessionsDocument,
    read: &Document,
    pid: Option<u32>,
    around: &Surroundings<'_>,
    progress: &mut dyn Progress,
) -> Ended {
    let prepared = targets(read, pid).and_then(|targets| {
        let sampler = Sampler::prepare(&targets).map_err(|error| error.to_string())?;
        let crew = match read.workers.is_empty() {
            true => None,
            false => {
                let joined = SessionCrew::join(&read.workers, &read.inner, own);
                Some(joined.map_err(|error| error.to_string())?)
            }
        };
        Ok((sampler, crew))
    });
    let (mut sampler, crew) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Ended::Failed(why),
    };
    let samples_own = read.samples_clients && crew.is_none();
    if samples_own {
        sampler.add_own(CLIENT);
    }
    let clock = RunClock::new(own.phases());
    let mut shown = Shown::default();
    let mut live = |told: Told| shown.show(told, progress);
    let (ended, mut samples) = std::thread::scope(|scope| {
        let sampling = scope.spawn(|| clock.sample(sampler));
        let ended = own.run_around(Around {
            live: &mut live,
            stop: around.stop,
            begun: &|at| clock.begin(at),
            others: crew.as_ref().map(|crew| crew as &dyn Others),
        });
        clock.end();
        (ended, sampling.join().expect("a sampler does not panic"))
    });
    match ended {
        Ok(mut result) => {
            let mut clients = Samples::default();
            // It is the last one of this machine; those of others come behind it.
            let is_own = |it: &ServerSeries| it.name == CLIENT && it.host.is_none();
            let own = samples.servers.iter().rposition(is_own);
            let own = own.filter(|_| samples_own);
            clients
                .servers
                .extend(own.map(|at| samples.servers.remove(at)));
            if let Some(crew) = crew.filter(|_| read.samples_clients) {
                clients.servers.extend(crew.used());
            }
            add_samples(&mut result, &samples, &clients);
            if samples_own {
                result["client_cores"] = Value::from(cores());
            }
            Ended::Done(result)
        }
        Err(RunError::Stopped) => Ended::Stopped,
        Err(RunError::Document(problem)) => Ended::Wrong(problem),
        Err(RunError::Store(why)) => Ended::Failed(why),
    }
}

/// Puts what servers and clients have used into a result.
pub(crate) fn add_samples(result: &mut Value, servers: &Samples, clients: &Samples) {
    result["servers"] = servers.json();
    result["clients"] = clients.json();
}

/// What was shown last.
#[derive(Default)]
struct Shown {
    phase: Option<Phase>,
}

impl Shown {
    fn show(&mut self, told: Told, progress: &mut dyn Progress) {
        let is_new = self.phase.replace(told.phase) != Some(told.phase);
        let phase = match told.phase {
            Phase::Load if is_new => return progress.stage("  loading"),
            Phase::Check if is_new => return progress.stage("  checking"),
            Phase::Load | Phase::Check => return,
            Phase::WarmUp => "warm-up",
            Phase::Measure => "measuring",
        };
        progress.live(&Live {
            phase,
            second: told.at_s as u64,
            seconds_left: (told.of_s - told.at_s).max(0.0).round() as u64,
            committed: told.answered,
            kinds: told.names,
            p50_us: told.p50_us,
            p99_us: told.p99_us,
            aborts: told.conflicts.into_iter().collect(),
            failed: told.failed,
            waiting: (told.waiting > 0).then_some(told.waiting),
        });
    }
}
