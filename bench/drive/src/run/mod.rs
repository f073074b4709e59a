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

mod engine;
mod nodes;
mod options;
pub mod others;
pub mod parts;
mod report;
mod stage;
pub mod tally;
pub mod watch;
mod work;

use crate::shape::{Steering, Workload};
use engine::Engine;
pub(crate) use engine::is_retryable;
use fault::{self, Fault, Injection, Sampler, Samples};
use links::cpu;
use links::error::DriveError;
use links::server::Counters;
use links::url::Target;
use links::view::Progress;
pub use nodes::NodeLoad;
pub use options::{RetryPolicy, RunnerOptions};
use others::{Others, measure_by};
pub use report::{CLIENT_CPU_MAX, KindReport, RunReport, Second, WorkerReport};
use stage::{Deal, Part, Stage};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally::{Share, histogram};
use watch::{Nobody, Seen, Watch, Watched};

/// How long a run waits after its end for what is under way.
pub const DRAIN: Duration = Duration::from_secs(5);

/// Refuses options that do not fit a workload or a target.
fn fits<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    part: Part,
) -> Result<(), DriveError> {
    let deal = Deal::new(workload, target, options, part);
    let (parts, terminals) = (part.count as usize, deal.terminals as usize);
    if terminals.div_ceil(deal.endpoints) < parts {
        return Err(DriveError::Option(format!(
            "{terminals} terminals at {} endpoints are too few for {parts} workers: each gets \
             whole rounds of endpoints",
            deal.endpoints
        )));
    }
    if (deal.connections as usize) < (deal.endpoints * parts).min(terminals) {
        let of_each = if parts > 1 { ", of each worker" } else { "" };
        let text = format!(
            "{terminals} terminals at {} endpoints need a connection to each{of_each}",
            deal.endpoints
        );
        return Err(DriveError::Option(text));
    }
    if options.rate.is_some() && workload.is_paced() {
        let text = "terminals that key and think have a rate of their own: leave the rate out";
        return Err(DriveError::Option(String::from(text)));
    }
    Ok(())
}

/// Servers that were named: to be sampled, and to be broken.
pub(crate) type Named = (Sampler, Option<Injection>);

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
    run_by(workload, target, options, None, progress)
}

/// The same with the load from other processes, if there are any.
pub(crate) fn run_by<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    others: Option<&dyn Others>,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    options.validate()?;
    let count = others.map_or(1, Others::count);
    fits(workload, target, options, Part { number: 0, count })?;
    let (named, reached) = named(target, options)?;
    if others.is_some() && reached != *target {
        return Err(DriveError::Option(String::from(
            "--fault: delays, losses and cuts are made by a proxy in this process, through which \
             the connections of workers do not go",
        )));
    }
    if let Some(others) = others {
        let text = format!("connecting the clients of {count} workers");
        progress.stage(&text);
        // Before what the server counts of the run: workers read the tables, too.
        others.prepare(&workload.describe().parameters, workload.records())?;
    }
    let before = workload.ledger()?;
    let started_unix_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    progress.stage(&describe_mode(options, workload.is_paced()));
    let ends_processes = named.1.as_ref().is_some_and(Injection::ends_processes);
    let mut measured = match others {
        Some(others) => measure_by(others, workload, &reached, options, named, progress)?,
        None => measure(workload, &reached, options, named, progress)?,
    };
    if ends_processes {
        // Those of a server that was started anew begin at zero.
        measured.seen.counters = Counters::new();
        measured.seen.nodes = Vec::new();
    }
    let after = workload.ledger()?;
    let mut audits = workload.findings(std::mem::take(&mut measured.audits));
    let share = &measured.share;
    audits.extend(workload.judge_times(&share.kinds, &share.deferred));
    audits.extend(workload.reconcile(&before, &after, &share.whole));
    let consistency = match options.check {
        true => Some(workload.verify(progress)?),
        false => None,
    };
    Ok(RunReport {
        started_unix_s,
        audits,
        consistency,
        history: workload.own_history(),
        ..report_of(workload, target, options, measured)
    })
}

/// What was measured, as a report on which nothing was checked yet.
fn report_of<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    measured: Measured<W::Audit>,
) -> RunReport {
    let Measured {
        mut share,
        audits: _,
        seen,
        mut broken,
        samples,
        workers,
    } = measured;
    let steps = (options.length.as_secs_f64() / fault::STEP_S + 1e-6) as usize;
    share.steps.resize(steps, 0);
    fault::reckon(&mut broken, &share.steps);
    let mut response = histogram();
    for tally in &share.kinds {
        response
            .add(&tally.response)
            .expect("all histograms have the same bounds");
    }
    let kinds = workload.kinds().iter().zip(share.kinds);
    RunReport {
        description: workload.describe(),
        server: workload.server().clone(),
        target: target.clone(),
        options: options.clone(),
        started_unix_s: 0,
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
        audits: Vec::new(),
        consistency: None,
        history: None,
        client_cpu: seen.client_cpu,
        client_cores: match workers.as_slice() {
            [] => cpu::cores(),
            workers => workers.iter().map(|worker| worker.cores).sum(),
        },
        client_threads: seen.client_threads,
        lateness: share.lateness,
        messages: share.messages,
        workers,
    }
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

/// What was measured.
pub(crate) struct Measured<A> {
    pub(crate) share: Share,
    pub(crate) audits: Vec<A>,
    pub(crate) seen: Seen,
    pub(crate) broken: Vec<Fault>,
    pub(crate) samples: Samples,
    /// Empty where this process had all of the load.
    pub(crate) workers: Vec<WorkerReport>,
}

fn measure<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    named: Named,
    progress: &mut dyn Progress,
) -> Result<Measured<W::Audit>, DriveError> {
    let stage = &Stage::new(workload, target, options, Part::WHOLE);
    let mut watch = Watch::new(stage, watched(workload, target, options));
    let (audits, (broken, samples)) = std::thread::scope(|scope| {
        let threads = begin_threads(stage, scope);
        let refused = stage.begin(|| Some(Instant::now()));
        let beside = refused.is_none().then(|| {
            if workload.attends() {
                scope.spawn(move || workload.attend(&|| stage.second(), Steering::Alone));
            }
            beside(named, &|| stage.second(), &|| stage.call_off(), || {
                watch.until_end(progress, &Nobody);
            })
        });
        let audits = join_threads::<W>(threads);
        match refused {
            Some(error) => Err(DriveError::Link("connecting the clients", error)),
            None => Ok((audits, beside.expect("it was not refused"))),
        }
    })?;
    let broken = broken?;
    let mut seen = watch.seen;
    let (share, threads) = sum_of(stage);
    seen.client_threads = threads;
    Ok(Measured {
        share,
        audits,
        seen,
        broken,
        samples,
        workers: Vec::new(),
    })
}

/// Samples servers and has the faults of a run while it is watched. `second` is that of the
/// measured phase; a fault that fails calls the run off.
pub(crate) fn beside(
    (sampler, mut injection): Named,
    second: &(dyn Fn() -> Option<f64> + Sync),
    call_off: &(dyn Fn() + Sync),
    watch: impl FnOnce(),
) -> (Result<Vec<Fault>, DriveError>, Samples) {
    std::thread::scope(|scope| {
        let sampling = scope.spawn(move || sampler.run(second));
        let breaking = injection.as_mut().map(|injection| {
            scope.spawn(move || {
                let broken = injection.run(second);
                if broken.is_err() {
                    call_off();
                }
                broken
            })
        });
        watch();
        let broken = breaking.map(|thread| thread.join().expect("a fault does not panic"));
        let samples = sampling.join().expect("a sampler does not panic");
        (broken.unwrap_or(Ok(Vec::new())), samples)
    })
}

/// What a run in this process, or of a crew, is watched for.
pub(crate) fn watched<'a, W: Workload>(
    workload: &'a W,
    target: &'a Target,
    options: &'a RunnerOptions,
) -> Watched<'a> {
    Watched {
        kinds: workload.kinds(),
        options,
        connections: options.connections(workload.is_paced()),
        server: Some((workload.server(), target)),
    }
}

/// Threads of a run, with what they have audited.
type Threads<'scope, A> = Vec<ScopedJoinHandle<'scope, A>>;

/// Starts the threads of a run, which connect.
fn begin_threads<'scope, 'env, W: Workload>(
    stage: &'env Stage<'env, W>,
    scope: &'scope Scope<'scope, 'env>,
) -> Threads<'scope, W::Audit> {
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
    threads
}

fn join_threads<W: Workload>(threads: Threads<'_, W::Audit>) -> Vec<W::Audit> {
    let ended = threads.into_iter().map(ScopedJoinHandle::join);
    ended
        .map(|audit| audit.expect("a client thread does not panic"))
        .collect()
}

/// The counts of all threads, and the share of a core that each of them has used.
fn sum_of<W: Workload>(stage: &Stage<'_, W>) -> (Share, Vec<f64>) {
    let length_us = stage.options.length.as_micros() as f64;
    let (mut sum, mut threads) = (Share::new(stage.workload.kinds().len()), Vec::new());
    stage.each_share(|share| {
        threads.extend(share.cpu_us.map(|us| us as f64 / length_us));
        sum.merge(share);
    });
    (sum, threads)
}
