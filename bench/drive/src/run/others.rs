//! A run whose load comes from other processes: this one watches it, breaks servers meanwhile, and
//! adds what the others have counted.

use super::parts::PartResult;
use super::tally::Share;
use super::watch::{Course, Nobody, SecondCounts, Seen, Watch};
use super::{DRAIN, Measured, Named, RunnerOptions, WorkerReport, beside, watched};
use crate::shape::{Steering, Workload};
use fault::{Fault, Samples};
use links::error::DriveError;
use links::url::Target;
use links::view::Progress;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long after the end of a run and its drain the results may take.
const RESULT_MAX: Duration = Duration::from_secs(60);
/// How long the counts of a second may take.
const SECOND_MAX: Duration = Duration::from_secs(10);

/// The clock of another process beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// By how much its time of day is ahead, in microseconds; less than 0: it is behind.
    pub offset_us: i64,
    /// The shortest round trip, in microseconds: the offset, and the common begin of the run, are
    /// known to within half of it.
    pub round_trip_us: u64,
}

/// What has come of the part of one of the others.
#[derive(Debug)]
pub struct OthersPart {
    /// How that one is called.
    pub address: String,
    /// The cores that it has.
    pub cores: usize,
    /// Whether it is the same program as this one, and not only of the same release.
    pub same_build: bool,
    /// Its clock.
    pub clock: Clock,
    /// What its times may be wrong by, beside ours, in the whole course of the run. Known where it
    /// has recorded any.
    pub slack: Duration,
    /// What it has counted.
    pub result: PartResult,
}

/// Other processes that have the load of a run, each a part of it.
pub trait Others: Sync {
    /// How many there are.
    fn count(&self) -> u32;

    /// Has all of them connect their clients, and record so many reads and writes, all together,
    /// if they are to record. Called once, before everything else.
    ///
    /// # Errors
    /// One cannot, is lost, or would run something else than these parameters say.
    fn prepare(
        &self,
        parameters: &[(&'static str, String)],
        recorded_max: Option<usize>,
    ) -> Result<(), DriveError>;

    /// Lets all of them begin at the same time, which lies a little ahead.
    ///
    /// # Errors
    /// One is lost.
    fn begin(&self) -> Result<Instant, DriveError>;

    /// Tells each of them how many transactions are to compete for each row.
    fn want(&self, wanted: &[Vec<u32>]);

    /// How many compete for each of so many rows, of all.
    fn competing(&self, rows: usize) -> Vec<u32>;

    /// Transactions that are due and not begun, of all.
    fn waiting(&self) -> u64;

    /// What all of them have counted in a second, which is waited for; `None`: one is lost, or it
    /// is later than that.
    fn take_second(&self, second: u64, until: Instant) -> Option<SecondCounts>;

    /// Why there can be no result, as soon as one is lost.
    fn lost(&self) -> Option<DriveError>;

    /// The results of all, in so many kinds of transactions.
    ///
    /// # Errors
    /// One is lost, or has sent nothing until then, or nothing that can be.
    fn results(&self, kinds: usize, until: Instant) -> Result<Vec<OthersPart>, DriveError>;

    /// Ends what they do.
    fn stop(&self);
}

/// Has the others run the workload, and adds what they have counted.
pub(super) fn measure_by<W: Workload>(
    others: &dyn Others,
    workload: &W,
    target: &Target,
    options: &RunnerOptions,
    named: Named,
    progress: &mut dyn Progress,
) -> Result<Measured<W::Audit>, DriveError> {
    let course = OthersCourse {
        others,
        start: others.begin()?,
        kinds: workload.kinds().len(),
        options,
        is_called_off: AtomicBool::new(false),
    };
    let mut watch = Watch::new(&course, watched(workload, target, options));
    let (broken, samples) = std::thread::scope(|scope| {
        if workload.attends() {
            let course = &course;
            scope.spawn(move || workload.attend(&|| course.second(), Steering::Leads(others)));
        }
        beside(named, &|| course.second(), &|| course.call_off(), || {
            watch.until_end(progress, &Nobody);
        })
    });
    let parts = match others.lost() {
        Some(lost) => Err(lost),
        None => broken.and_then(|broken| {
            let until = course.end() + DRAIN + RESULT_MAX;
            Ok((others.results(course.kinds, until)?, broken))
        }),
    };
    others.stop();
    let (parts, broken) = parts?;
    sum_of(workload, watch.seen, parts, (broken, samples))
}

/// What all of the others have counted.
fn sum_of<W: Workload>(
    workload: &W,
    mut seen: Seen,
    parts: Vec<OthersPart>,
    (broken, samples): (Vec<Fault>, Samples),
) -> Result<Measured<W::Audit>, DriveError> {
    let mut share = Share::new(workload.kinds().len());
    let (mut audits, mut workers) = (Vec::new(), Vec::new());
    for part in parts {
        let PartResult {
            share: own,
            counters,
            recorded,
            cpu,
            threads,
        } = part.result;
        if recorded.is_some() != workload.records().is_some() {
            let text = format!(
                "worker {} has not recorded what it was to record",
                part.address
            );
            return Err(DriveError::Worker(text));
        }
        if let Some(recorded) = &recorded {
            workload.add_recorded(recorded, part.slack);
        }
        let audit = workload.add_counters(&counters);
        audits.push(audit.ok_or_else(|| {
            let text = format!("worker {} has counted something else", part.address);
            DriveError::Worker(text)
        })?);
        share.merge(&own);
        seen.client_threads.extend(&threads);
        workers.push(WorkerReport {
            address: part.address,
            cores: part.cores,
            same_build: part.same_build,
            cpu,
            threads,
            committed: own.kinds.iter().map(|tally| tally.committed).sum(),
            lateness: own.lateness,
            clock: part.clock,
        });
    }
    let shares = workers.iter().filter_map(|worker| worker.cpu);
    seen.client_cpu = shares.reduce(f64::max);
    Ok(Measured {
        share,
        audits,
        seen,
        broken,
        samples,
        workers,
    })
}

/// A run of others.
struct OthersCourse<'a> {
    others: &'a dyn Others,
    start: Instant,
    kinds: usize,
    options: &'a RunnerOptions,
    /// A fault has failed.
    is_called_off: AtomicBool,
}

impl OthersCourse<'_> {
    fn end(&self) -> Instant {
        self.start + self.options.warmup + self.options.length
    }

    /// The second of the measured phase, below 0 before it; `None`: it is over.
    fn second(&self) -> Option<f64> {
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.start).as_secs_f64();
        let goes_on = now < self.end() && !Course::is_called_off(self);
        goes_on.then_some(passed - self.options.warmup.as_secs_f64())
    }

    fn call_off(&self) {
        self.is_called_off.store(true, Ordering::Relaxed);
    }
}

impl Course for OthersCourse<'_> {
    fn start(&self) -> Instant {
        self.start
    }

    fn waiting(&self) -> u64 {
        self.others.waiting()
    }

    fn take_second(&self, second: u64) -> SecondCounts {
        let until = Instant::now() + SECOND_MAX;
        let counts = self.others.take_second(second, until);
        counts.unwrap_or_else(|| SecondCounts::new(self.kinds))
    }

    fn is_called_off(&self) -> bool {
        self.is_called_off.load(Ordering::Relaxed) || self.others.lost().is_some()
    }
}
