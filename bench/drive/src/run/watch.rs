//! The main thread's part of a run: seconds, phases, counters, processor time.

use super::stage::Stage;
use super::tally::histogram;
use super::{NodeLoad, RunnerOptions, Second, nodes};
use crate::shape::Workload;
use hdrhistogram::Histogram;
use links::cpu::{self, CpuReading};
use links::server::{Counters, Server, difference, read_counters};
use links::url::Target;
use links::view::{Live, Progress};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the backlog is looked at.
const BACKLOG_STEP: Duration = Duration::from_millis(100);

/// What was counted in a second.
#[derive(Clone, Debug)]
pub struct SecondCounts {
    /// Commits by kind.
    pub committed: Vec<u64>,
    /// Their responses.
    pub response: Histogram<u64>,
    /// Attempts aborted so far in this phase, by SQLSTATE or reason.
    pub aborts: BTreeMap<String, u64>,
    /// Failed and unknown so far.
    pub failed: u64,
}

impl SecondCounts {
    /// Nothing, of so many kinds.
    pub fn new(kinds: usize) -> SecondCounts {
        SecondCounts {
            committed: vec![0; kinds],
            response: histogram(),
            aborts: BTreeMap::new(),
            failed: 0,
        }
    }

    /// Adds those of another process.
    pub fn merge(&mut self, other: &SecondCounts) {
        for (sum, count) in self.committed.iter_mut().zip(&other.committed) {
            *sum += count;
        }
        let added = self.response.add(&other.response);
        added.expect("all histograms have the same bounds");
        for (reason, count) in &other.aborts {
            *self.aborts.entry(reason.clone()).or_default() += count;
        }
        self.failed += other.failed;
    }
}

/// A run that goes on, in this process or in others.
pub(crate) trait Course: Sync {
    /// When it began.
    fn start(&self) -> Instant;

    /// Transactions that are due and not begun.
    fn waiting(&self) -> u64;

    /// Takes what was counted in this second, which is over.
    fn take_second(&self, second: u64) -> SecondCounts;

    /// Whether it ends before its time.
    fn is_called_off(&self) -> bool;
}

impl<W: Workload> Course for Stage<'_, W> {
    fn start(&self) -> Instant {
        Stage::start(self)
    }

    fn waiting(&self) -> u64 {
        Stage::waiting(self)
    }

    fn take_second(&self, _: u64) -> SecondCounts {
        let mut counts = SecondCounts::new(self.workload.kinds().len());
        self.each_share(|share| {
            counts
                .response
                .add(&share.second_response)
                .expect("all histograms have the same bounds");
            share.second_response.reset();
            let sums = counts.committed.iter_mut();
            for (sum, count) in sums.zip(&mut share.second_committed) {
                *sum += std::mem::take(count);
            }
            for tally in &share.kinds {
                for (reason, count) in &tally.aborts {
                    *counts.aborts.entry(reason.clone()).or_default() += count;
                }
                counts.failed += tally.unknown + tally.failed.values().sum::<u64>();
            }
        });
        counts
    }

    fn is_called_off(&self) -> bool {
        Stage::is_called_off(self)
    }
}

/// What the main thread has seen of the measured phase.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) timeline: Vec<Second>,
    pub(crate) overloaded: Option<String>,
    pub(crate) counters: Counters,
    pub(crate) nodes: Vec<NodeLoad>,
    pub(crate) client_cpu: Option<f64>,
    pub(crate) client_threads: Vec<f64>,
    /// Seconds of the measured phase, and the transactions that waited for a connection then.
    backlog: Vec<(f64, f64)>,
}

/// What is watched, and how.
pub(crate) struct Watched<'a> {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) options: &'a RunnerOptions,
    /// Connections of the whole run.
    pub(crate) connections: u32,
    /// Whose counters are read around the measured phase; `None`: somebody else reads them.
    pub(crate) server: Option<(&'a Server, &'a Target)>,
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

/// Who watches a run.
pub(crate) struct Watch<'a, C: Course> {
    course: &'a C,
    watched: Watched<'a>,
    pub(crate) seen: Seen,
    aborts_before: u64,
}

impl<'a, C: Course> Watch<'a, C> {
    pub(crate) fn new(course: &'a C, watched: Watched<'a>) -> Self {
        Watch {
            course,
            watched,
            seen: Seen::default(),
            aborts_before: 0,
        }
    }

    /// Watches until the measured phase is over. `each` gets the counts of every second, and is
    /// asked about ten times a second whether to go on.
    pub(crate) fn until_end(&mut self, progress: &mut dyn Progress, each: &dyn Each) {
        let start = self.course.start();
        let options = self.watched.options;
        let (warm, end) = (options.warmup, options.warmup + options.length);
        let mut second = 1;
        self.sleep_seconds((start, warm), &mut second, progress, each);
        let counters_before = self.counters();
        let operations_before = self.operations();
        let cpu_before = CpuReading::now();
        self.sleep_seconds((start, end), &mut second, progress, each);
        if let (Some(before), Some(after)) = (cpu_before, CpuReading::now()) {
            self.seen.client_cpu = Some(after.share_since(&before, cpu::cores()));
        }
        self.seen.overloaded = options
            .rate
            .and_then(|rate| fell_behind(rate, self.watched.connections, &self.seen.backlog));
        let counters_after = self.counters();
        self.seen.counters = difference(&counters_before, &counters_after);
        let operations_after = self.operations();
        if let Some((_, target)) = self.watched.server {
            self.seen.nodes = nodes::loads(target, &operations_before, &operations_after);
        }
    }

    /// What each node has done, if the server tells.
    fn operations(&self) -> nodes::ByNode {
        match self.watched.server {
            Some((server, target)) if server.is_trellis => nodes::operations(target),
            Some(_) | None => nodes::ByNode::new(),
        }
    }

    /// The server's counters, if it has any.
    fn counters(&self) -> Counters {
        match self.watched.server {
            Some((server, target)) if server.is_trellis => read_counters(target),
            Some(_) | None => Counters::new(),
        }
    }

    /// Sleeps until `until` after `start` and takes note of every full second on the way.
    fn sleep_seconds(
        &mut self,
        (start, until): (Instant, Duration),
        second: &mut u64,
        progress: &mut dyn Progress,
        each: &dyn Each,
    ) {
        loop {
            let next = Duration::from_secs(*second).min(until);
            let left = next.saturating_sub(start.elapsed());
            std::thread::sleep(left.min(BACKLOG_STEP));
            let measured = start.elapsed().saturating_sub(self.watched.options.warmup);
            let waiting = self.course.waiting();
            each.look(waiting);
            if !measured.is_zero() {
                let at = (measured.as_secs_f64(), waiting as f64);
                self.seen.backlog.push(at);
            }
            if start.elapsed() >= Duration::from_secs(*second) {
                self.note_second(*second, progress, each);
                *second += 1;
            }
            if start.elapsed() >= until || self.course.is_called_off() {
                return;
            }
        }
    }

    fn note_second(&mut self, second: u64, progress: &mut dyn Progress, each: &dyn Each) {
        let options = self.watched.options;
        let counts = self.course.take_second(second);
        each.second(second, &counts);
        let measured = Duration::from_secs(second) > options.warmup;
        let left = (options.warmup + options.length).saturating_sub(Duration::from_secs(second));
        let aborts_now: u64 = counts.aborts.values().sum();
        let live = Live {
            phase: if measured { "measuring" } else { "warm-up" },
            second,
            seconds_left: left.as_secs(),
            kinds: self.watched.kinds.to_vec(),
            waiting: options.rate.map(|_| self.course.waiting()),
            p50_us: counts.response.value_at_quantile(0.5),
            p99_us: counts.response.value_at_quantile(0.99),
            committed: counts.committed,
            aborts: counts.aborts.into_iter().collect(),
            failed: counts.failed,
        };
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

/// Who is told of a run while it goes on.
pub(crate) trait Each {
    /// So many transactions wait for a connection.
    fn look(&self, waiting: u64) {
        let _ = waiting;
    }

    /// A second is over.
    fn second(&self, second: u64, counts: &SecondCounts) {
        let _ = (second, counts);
    }
}

/// Nobody is.
pub(crate) struct Nobody;

impl Each for Nobody {}

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
