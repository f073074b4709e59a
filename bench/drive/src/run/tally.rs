//! Counts and histograms of a run: outcomes apart, merged at the end.

use crate::shape::Done;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The longest time that a histogram tells apart: one hour, in microseconds.
pub const LATENCY_US_MAX: u64 = 3_600_000_000;

/// A histogram of microseconds with three significant digits. It grows with its longest time: up to
/// 8 ms it takes 50 KiB, for an hour 190.
pub fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are valid")
}

/// Counts a time; what is beyond the hour counts as an hour.
pub fn count(histogram: &mut Histogram<u64>, us: u64) {
    let counted = histogram.record(us.clamp(1, LATENCY_US_MAX));
    counted.expect("a histogram grows up to an hour");
}

/// The times of one finished transaction, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From when it was due until its answer.
    pub response_us: u64,
    /// From its start until its answer, retries and back-off included.
    pub service_us: u64,
    /// From when it was due until its start.
    pub queue_us: u64,
}

/// How a transaction left the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged.
    Committed,
    /// Rolled back as its input asked.
    RolledBack,
    /// Given up, or an error that no retry cures; with SQLSTATE or reason.
    Failed(String),
    /// The outcome is unknown.
    Unknown,
}

/// The counts of one kind of transaction within the measured phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// Acknowledged commits.
    pub committed: u64,
    /// Rolled back as the input asked.
    pub rolled_back: u64,
    /// Commits within the measured phase, whenever they were due: what a rate is made of. Those of
    /// `committed` may have come after it.
    pub in_phase: u64,
    /// The same of what was rolled back as the input asked.
    pub rolled_back_in_phase: u64,
    /// Given up, by SQLSTATE or reason.
    pub failed: BTreeMap<String, u64>,
    /// Connection lost after COMMIT was sent.
    pub unknown: u64,
    /// Due, and without an outcome when the run ended.
    pub unfinished: u64,
    /// Transactions that needed more than one attempt.
    pub retried: u64,
    /// Aborted attempts by SQLSTATE or reason.
    pub aborts: BTreeMap<String, u64>,
    /// What the workload counts per transaction.
    pub units: u64,
    /// What transactions had to leave out.
    pub skipped: u64,
    /// Response times of committed and rolled back transactions.
    pub response: Histogram<u64>,
    /// Service times of the same.
    pub service: Histogram<u64>,
    /// Queue times of the same; empty where each terminal has a connection.
    pub queue: Histogram<u64>,
}

impl Tally {
    /// Nothing counted.
    pub fn new() -> Tally {
        Tally {
            committed: 0,
            rolled_back: 0,
            in_phase: 0,
            rolled_back_in_phase: 0,
            failed: BTreeMap::new(),
            unknown: 0,
            unfinished: 0,
            retried: 0,
            aborts: BTreeMap::new(),
            units: 0,
            skipped: 0,
            response: histogram(),
            service: histogram(),
            queue: histogram(),
        }
    }

    /// Counts how a transaction left the run.
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Committed => self.committed += 1,
            Outcome::RolledBack => self.rolled_back += 1,
            Outcome::Failed(reason) => *self.failed.entry(reason.clone()).or_default() += 1,
            Outcome::Unknown => self.unknown += 1,
        }
    }

    /// Counts a transaction that has ended within the measured phase.
    pub fn count_in_phase(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Committed => self.in_phase += 1,
            Outcome::RolledBack => self.rolled_back_in_phase += 1,
            Outcome::Failed(_) | Outcome::Unknown => {}
        }
    }

    /// Counts what a transaction did, and whether it took several attempts.
    pub fn note_done(&mut self, done: Done, attempts: u32) {
        self.retried += u64::from(attempts > 1);
        self.units += done.units;
        self.skipped += done.skipped;
    }

    /// Counts a transaction that left the run, with its times.
    pub fn record(&mut self, outcome: &Outcome, times: Times, has_queue: bool) {
        self.count(outcome);
        if matches!(outcome, Outcome::Committed | Outcome::RolledBack) {
            count(&mut self.response, times.response_us);
            count(&mut self.service, times.service_us);
            if has_queue {
                count(&mut self.queue, times.queue_us);
            }
        }
    }

    /// Transactions without an answer: they would all be slower than the rest.
    pub fn unanswered(&self) -> u64 {
        self.unfinished + self.unknown
    }

    /// A quantile of the response times, in microseconds. `None` if there are none, or if what has
    /// no answer may reach it.
    pub fn response_at(&self, quantile: f64) -> Option<u64> {
        quantile_of(&self.response, self.unanswered(), quantile)
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Tally) {
        self.committed += other.committed;
        self.rolled_back += other.rolled_back;
        self.in_phase += other.in_phase;
        self.rolled_back_in_phase += other.rolled_back_in_phase;
        self.unknown += other.unknown;
        self.unfinished += other.unfinished;
        self.retried += other.retried;
        self.units += other.units;
        self.skipped += other.skipped;
        for (mine, theirs) in [
            (&mut self.failed, &other.failed),
            (&mut self.aborts, &other.aborts),
        ] {
            for (reason, count) in theirs {
                *mine.entry(reason.clone()).or_default() += count;
            }
        }
        for (mine, theirs) in [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.queue, &other.queue),
        ] {
            mine.add(theirs)
                .expect("all histograms have the same bounds");
        }
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

/// A quantile of times, to which so many longer ones would have to be added; `None`: it may be one
/// of those.
pub fn quantile_of(times: &Histogram<u64>, unfinished: u64, quantile: f64) -> Option<u64> {
    let all = (times.len() + unfinished) as f64;
    // Of the times that are known, the same place is at a higher quantile.
    let rank = (quantile * all).ceil().max(1.0);
    let known = times.len() as f64;
    (known > 0.0 && rank <= known).then(|| times.value_at_quantile((rank - 0.5) / known))
}

/// Totals over the whole run, warm-up included: what the database must hold afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Acknowledged commits.
    pub committed: u64,
    /// Their units.
    pub units: u64,
    /// Transactions that may or may not have committed.
    pub unknown: u64,
}

impl Acknowledged {
    /// Acknowledged and unknown transactions.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.committed, self.unknown)
    }
}

/// What one group of threads counts.
#[derive(Clone, Debug)]
pub struct Share {
    /// The counts of the measured phase, by kind.
    pub kinds: Vec<Tally>,
    /// Those of the whole run, by kind.
    pub whole: Vec<Acknowledged>,
    /// Background executions of deferred transactions.
    pub deferred: Tally,
    /// Commits and responses since the last live view.
    pub second_committed: Vec<u64>,
    /// Their responses.
    pub second_response: Histogram<u64>,
    /// Commits by the step of the measured phase in which they came.
    pub steps: Vec<u64>,
    /// The first message of each reason.
    pub messages: BTreeMap<String, String>,
    /// By how much the client itself was late to begin what was due.
    pub lateness: Histogram<u64>,
    /// Processor time of the thread in the measured phase, in microseconds.
    pub cpu_us: Option<u64>,
}

impl Share {
    /// Nothing, of so many kinds.
    pub fn new(kinds: usize) -> Share {
        Share {
            kinds: vec![Tally::new(); kinds],
            whole: vec![Acknowledged::default(); kinds],
            deferred: Tally::new(),
            second_committed: vec![0; kinds],
            second_response: histogram(),
            steps: Vec::new(),
            messages: BTreeMap::new(),
            lateness: histogram(),
            cpu_us: None,
        }
    }

    /// Counts a commit in a step of the measured phase.
    pub fn count_step(&mut self, step: usize) {
        if self.steps.len() <= step {
            self.steps.resize(step + 1, 0);
        }
        self.steps[step] += 1;
    }

    /// Adds the counts of another group.
    pub fn merge(&mut self, other: &Share) {
        self.kinds
            .iter_mut()
            .zip(&other.kinds)
            .for_each(|(mine, theirs)| mine.merge(theirs));
        for (mine, theirs) in self.whole.iter_mut().zip(&other.whole) {
            mine.committed += theirs.committed;
            mine.units += theirs.units;
            mine.unknown += theirs.unknown;
        }
        self.deferred.merge(&other.deferred);
        if self.steps.len() < other.steps.len() {
            self.steps.resize(other.steps.len(), 0);
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            *mine += theirs;
        }
        let added = self.lateness.add(&other.lateness);
        added.expect("all histograms have the same bounds");
        for (reason, message) in &other.messages {
            self.messages
                .entry(reason.clone())
                .or_insert_with(|| message.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(us: u64) -> Times {
        Times {
            response_us: us,
            service_us: us / 2,
            queue_us: us / 2,
        }
    }

    #[test]
    fn outcomes_are_counted_apart_and_only_good_ones_are_timed() {
        let mut tally = Tally::new();
        tally.record(&Outcome::Committed, times(1_000), true);
        tally.record(&Outcome::RolledBack, times(2_000), true);
        tally.record(&Outcome::Failed(String::from("23505")), times(9_000), true);
        tally.record(&Outcome::Unknown, times(9_000), true);
        assert_eq!(
            (tally.committed, tally.rolled_back, tally.unknown),
            (1, 1, 1)
        );
        assert_eq!(tally.failed["23505"], 1);
        assert_eq!((tally.response.len(), tally.queue.len()), (2, 2));
        assert_eq!(tally.response.max(), 2_000);
    }

    #[test]
    fn merged_percentiles_are_those_of_all_samples() {
        let (mut one, mut two, mut all) = (Tally::new(), Tally::new(), Tally::new());
        for us in 1..=10_000 {
            let half = if us % 3 == 0 { &mut one } else { &mut two };
            half.record(&Outcome::Committed, times(us), false);
            all.record(&Outcome::Committed, times(us), false);
        }
        one.merge(&two);
        for quantile in [0.5, 0.95, 0.99, 0.999, 0.9999] {
            let merged = one.response.value_at_quantile(quantile);
            assert_eq!(merged, all.response.value_at_quantile(quantile));
            let exact = quantile * 10_000.0;
            assert!(
                (merged as f64 / exact - 1.0).abs() < 0.002,
                "{quantile}: {merged}"
            );
        }
        assert_eq!(one.queue.len(), 0, "a closed loop has no queue times");
    }

    #[test]
    fn a_quantile_that_the_unfinished_may_reach_is_not_known() {
        let mut tally = Tally::new();
        for us in 1..=990 {
            tally.record(&Outcome::Committed, times(us), false);
        }
        assert_eq!(tally.response_at(1.0), Some(990));
        tally.unfinished = 10;
        assert_eq!(
            (tally.response_at(0.5), tally.response_at(0.99)),
            (Some(500), Some(990))
        );
        assert_eq!(
            (tally.response_at(0.991), tally.response_at(1.0)),
            (None, None)
        );
        assert_eq!(Tally::new().response_at(0.5), None);
    }

    #[test]
    fn times_beyond_the_hour_count_as_an_hour() {
        let mut tally = Tally::new();
        tally.record(&Outcome::Committed, times(u64::MAX), false);
        assert_eq!(tally.response.len(), 1);
        assert!(tally.response.max() >= LATENCY_US_MAX);
    }
}
