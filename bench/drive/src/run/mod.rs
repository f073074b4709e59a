//! The runner: terminals, open and closed loop, retries, phases, live view.
//!
//! Closed loop: each client sends its next transaction when the last one is answered (after keying
//! and think times, where the workload has them). A sample counts when it began and ended in the
//! measured phase.
//!
//! Open loop: arrivals are drawn before the run. Any free connection takes the next arrival; its
//! response time begins when it was due, so waiting for a connection counts. A sample counts when
//! it was due in the measured phase; the run drains for up to [`DRAIN`] so that late ones count
//! too. When arrivals pile up the run is *overloaded* and has no percentiles.
//!
//! Threads: one per connection, blocking. Counts are kept in a few shares behind locks that are
//! almost never contended; the histograms of a thousand terminals would not fit otherwise.

pub(crate) mod cpu;
pub mod tally;
mod worker;

use crate::error::DriveError;
use crate::link::LinkError;
use crate::server::{Counters, Server, difference, read_counters};
use crate::shape::{CheckReport, Description, Workload};
use crate::url::Target;
use crate::view::{Live, Progress};
use cpu::CpuReading;
use hdrhistogram::Histogram;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tally::{Share, Tally, histogram};
use worker::Stage;
pub(crate) use worker::lock;
use workload::arrival;
use workload::finding::{Finding, Verdict};

/// How long a run waits after its end for what is under way.
pub const DRAIN: Duration = Duration::from_secs(5);
/// Shares of the counts; more threads than this take turns.
const SHARES: usize = 16;
/// The client's share of its cores above which a run carries a warning.
pub const CLIENT_CPU_MAX: f64 = 0.8;

/// When an aborted transaction runs again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts_max: u32,
    /// Back-off after the first abort in microseconds; doubled after each further one, and drawn
    /// between half and all of it.
    pub backoff_us: u64,
    /// The longest back-off in microseconds.
    pub backoff_us_max: u64,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: 50,
            backoff_us: 200,
            backoff_us_max: 10_000,
        }
    }
}

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// Connections, and terminals in a closed loop. 1 or more.
    pub clients: u32,
    /// Arrivals per second of an open loop; `None` for a closed loop.
    pub rate: Option<f64>,
    /// Time before the measured phase.
    pub warmup: Duration,
    /// The measured phase.
    pub length: Duration,
    /// Decides every input and every arrival.
    pub seed: u64,
    /// For 40001 and 40P01.
    pub retry: RetryPolicy,
    /// The longest wait for an answer; after it the connection is given up.
    pub timeout: Duration,
    /// Whether the conditions are checked after the run.
    pub check: bool,
}

impl Default for RunnerOptions {
    fn default() -> RunnerOptions {
        RunnerOptions {
            clients: 16,
            rate: None,
            warmup: Duration::from_secs(2),
            length: Duration::from_secs(20),
            seed: 1,
            retry: RetryPolicy::default(),
            timeout: Duration::from_secs(60),
            check: true,
        }
    }
}

impl RunnerOptions {
    fn validate(&self) -> Result<(), DriveError> {
        let bad = |text: &str| Err(DriveError::Option(String::from(text)));
        if self.clients == 0 || self.clients > 20_000 {
            return bad("the number of clients must be 1 to 20000");
        }
        if self.length.is_zero() {
            return bad("the measured phase must be longer than 0 seconds");
        }
        if self.retry.attempts_max == 0 {
            return bad("a transaction needs at least one attempt");
        }
        if let Some(rate) = self.rate {
            let arrivals = rate * (self.warmup + self.length).as_secs_f64();
            if !(rate.is_finite() && rate > 0.0) || arrivals > 1e8 {
                return bad("the rate must be above 0 and give at most 100 million arrivals");
            }
        }
        Ok(())
    }
}

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Seconds since the start of the run, warm-up included.
    pub second: u64,
    /// Whether it lies in the measured phase.
    pub measured: bool,
    /// Commits by kind.
    pub committed: Vec<u64>,
    /// Median response in microseconds.
    pub p50_us: u64,
    /// 99th percentile response in microseconds.
    pub p99_us: u64,
    /// Aborted attempts.
    pub aborts: u64,
}

/// The numbers of one kind of transaction.
#[derive(Clone, Debug)]
pub struct KindReport {
    /// Its name.
    pub name: &'static str,
    /// Its counts.
    pub tally: Tally,
}

/// Everything that a run found out.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The workload.
    pub description: Description,
    /// The server.
    pub server: Server,
    /// Endpoints, user and database, without the password.
    pub target: Target,
    /// The options as used.
    pub options: RunnerOptions,
    /// When the run began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Whether keying and think times were kept; only then the result is tpmC.
    pub paced: bool,
    /// By kind.
    pub kinds: Vec<KindReport>,
    /// Responses of all kinds.
    pub response: Histogram<u64>,
    /// Background executions of deferred transactions.
    pub deferred: Tally,
    /// By second.
    pub timeline: Vec<Second>,
    /// Why the run has no percentiles, if it fell behind its arrivals.
    pub overloaded: Option<String>,
    /// The server's counters over the measured phase; empty where it has none.
    pub counters: Counters,
    /// Audits of the inputs, and of what was acknowledged.
    pub audits: Vec<Finding>,
    /// The conditions after the run; `None` when they were not checked.
    pub consistency: Option<CheckReport>,
    /// The client's share of its cores, 0 to 1.
    pub client_cpu: Option<f64>,
    /// The cores it had.
    pub client_cores: usize,
    /// The first message of each SQLSTATE or reason.
    pub messages: std::collections::BTreeMap<String, String>,
}

impl RunReport {
    /// Committed transactions of all kinds in the measured phase.
    pub fn committed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.tally.committed).sum()
    }

    /// Aborted attempts of all kinds.
    pub fn aborted(&self) -> u64 {
        let kinds = self.kinds.iter();
        kinds.flat_map(|kind| kind.tally.aborts.values()).sum()
    }

    /// Transactions that were given up.
    pub fn failed(&self) -> u64 {
        let kinds = self.kinds.iter();
        kinds.flat_map(|kind| kind.tally.failed.values()).sum()
    }

    /// Transactions whose outcome is unknown.
    pub fn unknown(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.tally.unknown).sum()
    }

    /// Commits of one kind per minute of the measured phase.
    pub fn per_minute(&self, kind: usize) -> f64 {
        self.kinds[kind].tally.committed as f64 * 60.0 / self.options.length.as_secs_f64()
    }

    /// Audits that passed.
    pub fn audits_passed(&self) -> usize {
        self.audits_with(Verdict::Passed)
    }

    /// Audits that failed.
    pub fn audits_failed(&self) -> usize {
        self.audits_with(Verdict::Failed)
    }

    fn audits_with(&self, verdict: Verdict) -> usize {
        let audits = self.audits.iter();
        audits.filter(|finding| finding.verdict == verdict).count()
    }

    /// Whether the run has a number: nothing that was checked failed.
    pub fn has_number(&self) -> bool {
        self.consistency
            .as_ref()
            .is_none_or(|check| check.failed() == 0)
    }

    /// Whether everything that was asked for passed: the exit code of a command.
    pub fn passed(&self) -> bool {
        self.has_number() && self.audits_failed() == 0 && self.committed() > 0
    }

    /// What did not pass, a line each: conditions and audits that failed, or that nothing was
    /// committed.
    pub fn faults(&self) -> Vec<String> {
        let conditions = self.consistency.iter().flat_map(|check| &check.conditions);
        let conditions = conditions.filter(|condition| !condition.passed());
        let mut faults: Vec<String> = conditions
            .map(|condition| {
                let example = condition.counterexample.as_deref();
                let example = example.unwrap_or("nothing to compare");
                format!("{} ({}): {example}", condition.title, condition.clause)
            })
            .collect();
        let audits = self.audits.iter();
        let audits = audits.filter(|finding| finding.verdict == Verdict::Failed);
        faults.extend(audits.map(|finding| {
            let Finding {
                title,
                clause,
                observed,
                allowed,
                ..
            } = finding;
            format!("{title} ({clause}): {observed}, allowed {allowed}")
        }));
        if self.committed() == 0 {
            faults.push(String::from("no transaction was committed"));
        }
        faults
    }

    /// What a reader must know about the measurement.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.description.remarks.clone();
        if let Some(share) = self.client_cpu.filter(|&share| share > CLIENT_CPU_MAX) {
            warnings.push(format!(
                "the client used {:.0} % of its {} cores: it may be the bottleneck",
                share * 100.0,
                self.client_cores
            ));
        }
        if self.unknown() > 0 {
            warnings.push(format!(
                "{} transactions have an unknown outcome",
                self.unknown()
            ));
        }
        if self.failed() > 0 {
            warnings.push(format!("{} transactions failed", self.failed()));
        }
        if let Some(reason) = &self.overloaded {
            warnings.push(format!("overloaded: {reason}"));
        }
        if self.consistency.is_none() {
            warnings.push(String::from("the consistency conditions were not checked"));
        }
        warnings
    }

    /// A server counter per committed transaction, by the server's own count of commits.
    pub fn per_txn(&self, counter: &str) -> Option<f64> {
        let commits = self
            .counters
            .get("txn_committed")
            .copied()
            .filter(|&n| n > 0)?;
        Some(*self.counters.get(counter)? as f64 / commits as f64)
    }
}

/// Runs a prepared workload, then reconciles and verifies.
pub fn run<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    options.validate()?;
    let server = workload.server().clone();
    let before = workload.ledger()?;
    let started_unix_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    progress.stage(&describe_mode(options));
    let Measured {
        share,
        audits,
        seen,
    } = measure(workload, target, options, progress)?;
    let after = workload.ledger()?;
    let mut audits = workload.findings(audits);
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
        paced: workload.pauses_us(&mut workload.terminal(0), 0).is_some(),
        kinds: kinds
            .map(|(name, tally)| KindReport { name, tally })
            .collect(),
        response,
        deferred: share.deferred,
        timeline: seen.timeline,
        overloaded: seen.overloaded,
        counters: seen.counters,
        audits,
        consistency,
        client_cpu: seen.client_cpu,
        client_cores: cpu::cores(),
        messages: share.messages,
    })
}

/// Open or closed loop, in words.
pub fn describe_mode(options: &RunnerOptions) -> String {
    let (warmup, length) = (options.warmup.as_secs_f64(), options.length.as_secs_f64());
    let clients = options.clients;
    match options.rate {
        Some(rate) => format!(
            "open loop: {rate} arrivals/s over {clients} connections, {warmup} s warm-up, \
             {length} s measured"
        ),
        None => format!(
            "closed loop: {clients} clients, {warmup} s warm-up, {length} s measured (waiting for \
             a free client is not counted; use a rate for that)"
        ),
    }
}

struct Measured<A> {
    share: Share,
    audits: Vec<A>,
    seen: Seen,
}

/// What the main thread has seen of the measured phase.
#[derive(Default)]
struct Seen {
    timeline: Vec<Second>,
    overloaded: Option<String>,
    counters: Counters,
    client_cpu: Option<f64>,
}

fn measure<W: Workload>(
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    progress: &mut dyn Progress,
) -> Result<Measured<W::Audit>, DriveError> {
    let whole = options.warmup + options.length;
    let arrivals = match options.rate {
        Some(rate) => arrival::poisson(options.seed, rate, whole.as_micros() as u64),
        None => Vec::new(),
    };
    let kinds = workload.kinds().len();
    let background = match (0..kinds).any(|kind| workload.is_deferred(kind)) {
        true => (options.clients / 10).clamp(1, 64),
        false => 0,
    };
    let shares = SHARES.min((options.clients + background) as usize);
    let shares: Vec<Mutex<Share>> = (0..shares).map(|_| Mutex::new(Share::new(kinds))).collect();
    let stage = Stage::new(workload, target, options, shares, arrivals, background);
    let mut watch = Watch::new(&stage, kinds);
    let audits = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..options.clients + background {
            let stage = &stage;
            let name = format!("client-{number}");
            let builder = std::thread::Builder::new().name(name).stack_size(512 << 10);
            let thread = builder.spawn_scoped(scope, move || stage.client(number));
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    stage.refuse(LinkError::from(error));
                    stage.excuse();
                }
            }
        }
        let refused = stage.begin();
        if refused.is_none() {
            watch.until_end(progress);
        }
        let audits: Vec<W::Audit> = threads
            .into_iter()
            .map(|thread| thread.join().expect("a client thread does not panic"))
            .collect();
        match refused {
            Some(error) => Err(DriveError::Link("connecting the clients", error)),
            None => Ok(audits),
        }
    })?;
    let seen = watch.seen;
    let mut share = Share::new(kinds);
    stage.each_share(|other| share.merge(other));
    Ok(Measured {
        share,
        audits,
        seen,
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
        let cpu_before = CpuReading::now();
        self.sleep_seconds(start, end, &mut second, progress);
        if let (Some(before), Some(after)) = (cpu_before, CpuReading::now()) {
            self.seen.client_cpu = Some(after.share_since(&before, cpu::cores()));
        }
        self.seen.overloaded = self.stage.fell_behind();
        let counters_after = self.counters();
        self.seen.counters = difference(&counters_before, &counters_after);
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
            std::thread::sleep(next.saturating_sub(start.elapsed()));
            if start.elapsed() >= Duration::from_secs(*second) {
                self.note_second(*second, progress);
                *second += 1;
            }
            if start.elapsed() >= until {
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
