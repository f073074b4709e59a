//! The runner: terminals, open and closed loop, retries, phases, live view.
//!
//! Closed loop: each terminal sends its next transaction when the last one is answered (after
//! keying and think times, where the workload has them).
//!
//! Open loop: arrivals are drawn before the run, each at a terminal that is drawn, too. When
//! arrivals pile up the run is *overloaded* and has no percentiles.
//!
//! A response time begins when a transaction is due, so waiting for a connection counts. A sample
//! counts when it was due in the measured phase. The run drains for up to [`DRAIN`]; what has no
//! outcome then is *unfinished*, and a quantile that it may reach is not told.
//!
//! Threads: half as many as there are cores, each an event loop over its terminals and
//! its connections, which are suspended and not waited for. Each has its own counts.

pub(crate) mod cpu;
mod engine;
mod nodes;
mod options;
mod report;
mod stage;
pub mod tally;
mod work;

use crate::shape::Workload;
use cpu::CpuReading;
use engine::Engine;
pub(crate) use engine::is_retryable;
use fault::{self, Fault, Injection, Sampler, Samples};
use links::error::DriveError;
use links::server::{Counters, difference, read_counters};
use links::url::Target;
use links::view::{Live, Progress};
pub use nodes::NodeLoad;
pub use options::{RetryPolicy, RunnerOptions};
pub use report::{CLIENT_CPU_MAX, KindReport, RunReport, Second};
use stage::{Deal, Stage};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally::{Share, histogram};

/// How long a run waits after its end for what is under way.
pub const DRAIN: Duration = Duration::from_secs(5);
/// How often the backlog is looked at.
const BACKLOG_STEP: Duration = Duration::from_millis(100);

/// Refuses options that do not fit a workload or a target.
fn fits<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
) -> Result<(), DriveError> {
    let deal = Deal::new(workload, target, options);
    if (deal.connections as usize) < deal.endpoints.min(deal.terminals as usize) {
        let text = format!(
            "{} terminals at {} endpoints need a connection to each",
            deal.terminals, deal.endpoints
        );
        return Err(DriveError::Option(text));
    }
    if options.rate.is_some() && workload.is_paced() {
        let text = "terminals that key and think have a rate of their own: leave the rate out";
        return Err(DriveError::Option(String::from(text)));
    }
    Ok(())
}

/// Has the faults of a run. One that fails ends it.
fn break_servers<W: Workload>(
    stage: &Stage<'_, W>,
    injection: &mut Injection,
) -> Result<Vec<Fault>, DriveError> {
    let broken = injection.run(&|| stage.second());
    if broken.is_err() {
        stage.call_off();
    }
    broken
}

/// Servers that were named: to be sampled, and to be broken.
type Named = (Sampler, Option<Injection>);

/// Finds them, and how the run reaches its target then.
fn named(target: &Target, options: &RunnerOptions) -> Result<(Named, Target), DriveError> {
    let sampler = Sampler::prepare(&options.faults.targets)?;
    let (injection, reached) = fault::prepare(&options.faults, target, options.length)?.unzip();
    Ok((
        (sampler, injection),
        reached.unwrap_or_else(|| target.clone()),
    ))
}

/// Runs a prepared workload, then reconciles and verifies.
pub fn run<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    options.validate()?;
    fits(workload, target, options)?;
    let (named, reached) = named(target, options)?;
    let server = workload.server().clone();
    let before = workload.ledger()?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_unix_s = started.unwrap_or_default().as_secs();
    progress.stage(&describe_mode(options, workload.is_paced()));
    let Measured {
        mut share,
        audits,
        seen,
        mut broken,
        samples,
    } = measure(workload, &reached, named, options, progress)?;
    let steps = (options.length.as_secs_f64() / fault::STEP_S + 1e-6) as usize;
    share.steps.resize(steps, 0);
    fault::reckon(&mut broken, &share.steps);
    let after = workload.ledger()?;
    let mut audits = workload.findings(audits);
    audits.extend(workload.judge_times(&share.kinds, &share.deferred));
    audits.extend(workload.reconcile(&before, &after, &share.whole));
    let consistency = match options.check {
        true => Some(workload.verify(progress)?),
        false => None,
    };
    let mut response = histogram();
    for tally in &share.kinds {
        response
            .add(&tally.response)
            .expect("all histograms have the same bounds");
    }
    let kinds = workload.kinds().iter().zip(share.kinds);
    Ok(RunReport {
        description: workload.describe(),
        server,
        target: target.clone(),
        options: options.clone(),
        started_unix_s,
        distribution: workload.distribution(),
        contention: workload.contention(),
        imbalance: workload.imbalance(),
        broken,
        samples,
        steps: share.steps,
        paced: workload.is_paced(),
        kinds: kinds
            .map(|(name, tally)| KindReport { name, tally })
            .collect(),
        response,
        deferred: share.deferred,
        timeline: seen.timeline,
        overloaded: seen.overloaded,
        counters: seen.counters,
        nodes: seen.nodes,
        audits,
        consistency,
        client_cpu: seen.client_cpu,
        client_cores: cpu::cores(),
        client_threads: seen.client_threads,
        lateness: share.lateness,
        messages: share.messages,
    })
}

/// Open or closed loop, in words.
pub fn describe_mode(options: &RunnerOptions, is_paced: bool) -> String {
    let (warmup, length) = (options.warmup.as_secs_f64(), options.length.as_secs_f64());
    let (clients, connections) = (options.clients, options.connections(is_paced));
    let times = format!("{warmup} s warm-up, {length} s measured");
    match (options.rate, is_paced) {
        (Some(rate), _) => {
            let rate = match &options.curve {
                Some(curve) => format!("{curve} ({rate:.1} on average)"),
                None => rate.to_string(),
            };
            format!("open loop: {rate} arrivals/s over {connections} connections, {times}")
        }
        (None, true) => format!(
            "{clients} terminals that key and think, over {connections} connections, {times}"
        ),
        (None, false) => format!(
            "closed loop: {clients} clients over {connections} connections, {times} (waiting for a \
             free client is not counted; use a rate for that)"
        ),
    }
}

struct Measured<A> {
    share: Share,
    audits: Vec<A>,
    seen: Seen,
    broken: Vec<Fault>,
    samples: Samples,
}

/// What the main thread has seen of the measured phase.
#[derive(Default)]
struct Seen {
    timeline: Vec<Second>,
    overloaded: Option<String>,
    counters: Counters,
    nodes: Vec<NodeLoad>,
    client_cpu: Option<f64>,
    client_threads: Vec<f64>,
    /// Seconds of the measured phase, and the transactions that waited for a connection then.
    backlog: Vec<(f64, f64)>,
}

fn measure<W: Workload>(
    workload: &W,
    target: &Target,
    (sampler, mut injection): Named,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<Measured<W::Audit>, DriveError> {
    let kinds = workload.kinds().len();
    let stage = Stage::new(workload, target, options);
    let stage = &stage;
    let mut watch = Watch::new(stage, kinds);
    let ends_processes = injection.as_ref().is_some_and(Injection::ends_processes);
    let (audits, broken, samples) = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..stage.deal.threads {
            let builder = std::thread::Builder::new().name(format!("client-{number}"));
            let thread = builder.spawn_scoped(scope, move || Engine::run(stage, scope, number));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    stage.refuse(error.into());
                    stage.excuse();
                }
            }
        }
        let refused = stage.begin();
        let sampling = refused
            .is_none()
            .then(|| scope.spawn(move || sampler.run(&|| stage.second())));
        let broken = if refused.is_none() {
            if workload.attends() {
                scope.spawn(move || workload.attend(&|| stage.second()));
            }
            let broken = injection
                .as_mut()
                .map(|injection| scope.spawn(move || break_servers(stage, injection)));
            watch.until_end(progress);
            broken
        } else {
            None
        };
        let audits: Vec<W::Audit> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client thread does not panic"))
            .collect();
        let broken = broken.map(|thread| thread.join().expect("a fault does not panic"));
        let samples = sampling.map(|thread| thread.join().expect("a sampler does not panic"));
        let samples = samples.unwrap_or_default();
        match refused {
            Some(error) => Err(DriveError::Link("connecting the clients", error)),
            None => Ok((audits, broken.unwrap_or(Ok(Vec::new()))?, samples)),
        }
    })?;
    let mut seen = watch.seen;
    if ends_processes {
        // Those of a server that was started anew begin at zero.
        seen.counters = Counters::new();
        seen.nodes = Vec::new();
    }
    let share = whole_share(stage, kinds, &mut seen);
    Ok(Measured {
        share,
        audits,
        seen,
        broken,
        samples,
    })
}

/// The shares of all threads together; takes note of what each used of a core.
fn whole_share<W: Workload>(stage: &Stage<'_, W>, kinds: usize, seen: &mut Seen) -> Share {
    let length_us = stage.options.length.as_micros() as f64;
    stage.each_share(|share| {
        let used = share.cpu_us.map(|us| us as f64 / length_us);
        seen.client_threads.extend(used);
    });
    let mut share = Share::new(kinds);
    stage.each_share(|other| share.merge(other));
    share
}

/// Why a run is overloaded, if it is: by the trend of what waits for a connection. It must grow by
/// more than 1 % of the arrivals, and in all by more than a tenth of a second's arrivals and than
/// the connections: a queue that passes is no trend.
fn fell_behind(rate: f64, connections: u32, backlog: &[(f64, f64)]) -> Option<String> {
    let count = backlog.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| backlog.iter().map(of).sum::<f64>() / count.max(1.0);
    let (mean_s, mean_waiting) = (mean(|at| at.0), mean(|at| at.1));
    let along = |at: &(f64, f64)| (at.0 - mean_s) * (at.1 - mean_waiting);
    let spread: f64 = backlog.iter().map(|at| (at.0 - mean_s).powi(2)).sum();
    let per_s = backlog.iter().map(along).sum::<f64>() / spread.max(1e-9);
    let whole_s = backlog.last()?.0 - backlog.first()?.0;
    let allowed = (rate * 0.1).max(f64::from(connections));
    let grows = per_s > rate * 0.01 && per_s * whole_s > allowed;
    grows.then(|| {
        format!(
            "what waits for a connection grew by {per_s:.0} a second, {:.1} % of the arrivals",
            100.0 * per_s / rate
        )
    })
}

/// The main thread's part: seconds, phases, counters, processor time.
struct Watch<'a, W: Workload> {
    stage: &'a Stage<'a, W>,
    kinds: usize,
    seen: Seen,
    aborts_before: u64,
}

impl<'a, W: Workload> Watch<'a, W> {
    fn new(stage: &'a Stage<'a, W>, kinds: usize) -> Self {
        Watch {
            stage,
            kinds,
            seen: Seen::default(),
            aborts_before: 0,
        }
    }

    fn until_end(&mut self, progress: &mut dyn Progress) {
        let start = self.stage.start();
        let options = self.stage.options;
        let (warm, end) = (options.warmup, options.warmup + options.length);
        let mut second = 1;
        self.sleep_seconds(start, warm, &mut second, progress);
        let counters_before = self.counters();
        let operations_before = self.operations();
        let cpu_before = CpuReading::now();
        self.sleep_seconds(start, end, &mut second, progress);
        if let (Some(before), Some(after)) = (cpu_before, CpuReading::now()) {
            self.seen.client_cpu = Some(after.share_since(&before, cpu::cores()));
        }
        self.seen.overloaded = options
            .rate
            .and_then(|rate| fell_behind(rate, self.stage.deal.connections, &self.seen.backlog));
        let counters_after = self.counters();
        self.seen.counters = difference(&counters_before, &counters_after);
        let operations_after = self.operations();
        self.seen.nodes = nodes::loads(self.stage.target, &operations_before, &operations_after);
    }

    /// What each node has done, if the server tells.
    fn operations(&self) -> nodes::ByNode {
        match self.stage.workload.server().is_trellis {
            true => nodes::operations(self.stage.target),
            false => nodes::ByNode::new(),
        }
    }

    /// The server's counters, if it has any.
    fn counters(&self) -> Counters {
        match self.stage.workload.server().is_trellis {
            true => read_counters(self.stage.target),
            false => Counters::new(),
        }
    }

    /// Sleeps until `until` after `start` and takes note of every full second on the way.
    fn sleep_seconds(
        &mut self,
        start: Instant,
        until: Duration,
        second: &mut u64,
        progress: &mut dyn Progress,
    ) {
        loop {
            let next = Duration::from_secs(*second).min(until);
            let left = next.saturating_sub(start.elapsed());
            std::thread::sleep(left.min(BACKLOG_STEP));
            let measured = start.elapsed().saturating_sub(self.stage.options.warmup);
            if !measured.is_zero() {
                let waiting = self.stage.waiting() as f64;
                self.seen.backlog.push((measured.as_secs_f64(), waiting));
            }
            if start.elapsed() >= Duration::from_secs(*second) {
                self.note_second(*second, progress);
                *second += 1;
            }
            if start.elapsed() >= until || self.stage.is_called_off() {
                return;
            }
        }
    }

    fn note_second(&mut self, second: u64, progress: &mut dyn Progress) {
        let options = self.stage.options;
        let mut live = Live {
            second,
            kinds: self.stage.workload.kinds(),
            committed: vec![0; self.kinds],
            waiting: options.rate.map(|_| self.stage.waiting()),
            ..Live::default()
        };
        let measured = Duration::from_secs(second) > options.warmup;
        live.phase = if measured { "measuring" } else { "warm-up" };
        let left = (options.warmup + options.length).saturating_sub(Duration::from_secs(second));
        live.seconds_left = left.as_secs();
        let mut response = histogram();
        let mut aborts = std::collections::BTreeMap::new();
        self.stage.each_share(|share| {
            response
                .add(&share.second_response)
                .expect("all histograms have the same bounds");
            share.second_response.reset();
            for (sum, count) in live.committed.iter_mut().zip(&mut share.second_committed) {
                *sum += std::mem::take(count);
            }
            for tally in &share.kinds {
                for (reason, count) in &tally.aborts {
                    *aborts.entry(reason.clone()).or_default() += count;
                }
                live.failed += tally.unknown + tally.failed.values().sum::<u64>();
            }
        });
        let aborts_now: u64 = aborts.values().sum();
        live.p50_us = response.value_at_quantile(0.5);
        live.p99_us = response.value_at_quantile(0.99);
        live.aborts = aborts.into_iter().collect();
        self.seen.timeline.push(Second {
            second,
            measured,
            committed: live.committed.clone(),
            p50_us: live.p50_us,
            p99_us: live.p99_us,
            aborts: aborts_now.saturating_sub(self.aborts_before),
        });
        self.aborts_before = aborts_now;
        progress.live(&live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The backlog of 20 s by its course.
    fn judged(course: impl Fn(f64) -> f64) -> Option<String> {
        let times = (1..=200).map(|at| f64::from(at) / 10.0);
        let backlog: Vec<(f64, f64)> = times.map(|at| (at, course(at))).collect();
        fell_behind(1_000.0, 16, &backlog)
    }

    #[test]
    fn a_backlog_that_grows_is_overload_and_one_that_passes_is_not() {
        assert_eq!(judged(|_| 0.0), None);
        // A queue that happens to be long when the run ends.
        assert_eq!(judged(|at| if at > 19.8 { 900.0 } else { 5.0 }), None);
        // A pause of the server in the middle.
        let pause = |at: f64| {
            if (8.0..9.0).contains(&at) {
                1_000.0 * (at - 8.0)
            } else {
                0.0
            }
        };
        assert_eq!(judged(pause), None);
        assert!(
            judged(|at| 50.0 * at)
                .unwrap()
                .contains("grew by 50 a second")
        );
        // It has been caught up with at the end, as when many wait for one transaction.
        assert!(judged(|at| if at < 19.8 { 300.0 * at } else { 0.0 }).is_some());
        assert_eq!(fell_behind(1_000.0, 16, &[]), None);
    }
}
