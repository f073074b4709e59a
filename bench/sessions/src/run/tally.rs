//! Counts of a run: by interaction, outcomes apart, and by transition.

use crate::interaction::{Effort, Failure};
use crate::table::Next;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// The longest time that a histogram tells apart: one hour, in microseconds.
pub const TIME_US_MAX: u64 = 3_600_000_000;
/// The most different texts of errors that are kept of one kind.
const TEXTS_MAX: usize = 20;

/// Times in microseconds with three digits, and their exact sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// Each time, at least 1 us.
    pub histogram: Histogram<u64>,
    /// Their sum.
    pub sum_ns: u128,
}

impl Default for Times {
    fn default() -> Times {
        Times::new()
    }
}

impl Times {
    /// Nothing.
    pub fn new() -> Times {
        Times {
            histogram: Histogram::new(3).expect("three digits are valid"),
            sum_ns: 0,
        }
    }

    /// Counts a time; what is beyond an hour counts as an hour.
    pub(crate) fn count(&mut self, ns: u64) {
        let us = (ns / 1_000).clamp(1, TIME_US_MAX);
        let counted = self.histogram.record(us);
        counted.expect("a histogram grows up to an hour");
        self.sum_ns += u128::from(ns);
    }

    /// Adds other times.
    pub fn merge(&mut self, other: &Times) {
        let added = self.histogram.add(&other.histogram);
        added.expect("all histograms have the same bounds");
        self.sum_ns += other.sum_ns;
    }
}

/// What was counted in about a second, in every phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Answered, by the place of the interaction in the workload.
    pub answered: Vec<u64>,
    /// Failed, or with an unknown outcome.
    pub failed: u64,
    /// Attempts that ended by a conflict, by kind.
    pub conflicts: BTreeMap<String, u64>,
    /// Response times of those that were answered, in microseconds.
    pub response: Histogram<u64>,
}

impl Second {
    /// Nothing, of so many interactions.
    pub fn new(interactions: usize) -> Second {
        Second {
            answered: vec![0; interactions],
            failed: 0,
            conflicts: BTreeMap::new(),
            response: Histogram::new(3).expect("three digits are valid"),
        }
    }

    /// Adds those of other threads or processes.
    pub fn merge(&mut self, other: &Second) {
        for (sum, count) in self.answered.iter_mut().zip(&other.answered) {
            *sum += count;
        }
        self.failed += other.failed;
        for (kind, count) in &other.conflicts {
            *self.conflicts.entry(kind.clone()).or_default() += count;
        }
        let added = self.response.add(&other.response);
        added.expect("all histograms have the same bounds");
    }

    /// Counts one more that was answered.
    pub(crate) fn answer(&mut self, interaction: usize, ns: u64) {
        self.answered[interaction] += 1;
        let us = (ns / 1_000).clamp(1, TIME_US_MAX);
        let counted = self.response.record(us);
        counted.expect("a histogram grows up to an hour");
    }

    /// Takes what was counted, and begins anew.
    pub(crate) fn take_into(&mut self, sum: &mut Second) {
        sum.merge(self);
        self.answered.fill(0);
        self.failed = 0;
        self.conflicts.clear();
        self.response.reset();
    }
}

impl Default for Second {
    fn default() -> Second {
        Second::new(0)
    }
}

/// The counts of one interaction within the measured phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Answered, by result; the empty one has no name.
    pub answered: BTreeMap<&'static str, u64>,
    /// Answered within the measured phase, whenever they were due: what a rate is made of.
    pub in_phase: u64,
    /// Not answered, nothing happened: by kind (`conflict`, `refused`, `lost`, `wrong`) and text.
    pub failed: BTreeMap<(&'static str, String), u64>,
    /// Not answered, and nobody knows whether it happened.
    pub unknown: u64,
    /// Due within the measured phase, and not begun at its end.
    pub unfinished: u64,
    /// Those whose transactions took more than one attempt each.
    pub retried: u64,
    /// Attempts at transactions.
    pub attempts: u64,
    /// Attempts that ended by a conflict, by kind.
    pub conflicts: BTreeMap<String, u64>,
    /// Round trips, where the data access counts them.
    pub round_trips: u64,
    /// From due to answer, of those that were answered.
    pub response: Times,
    /// From begin to answer, of the same.
    pub service: Times,
    /// From due to begin, of the same.
    pub queue: Times,
    /// Think times that followed.
    pub think: Times,
}

impl Tally {
    /// All that were answered.
    pub fn answered_all(&self) -> u64 {
        self.answered.values().sum()
    }

    /// All that failed and did not happen.
    pub fn failed_all(&self) -> u64 {
        self.failed.values().sum()
    }

    pub(crate) fn fail(&mut self, failure: &Failure) {
        let (kind, text) = match failure {
            Failure::Unknown(_) => {
                self.unknown += 1;
                return;
            }
            Failure::Conflict(text) => ("conflict", text),
            Failure::Refused(text) => ("refused", text),
            Failure::Lost(text) => ("lost", text),
            Failure::Wrong(text) => ("wrong", text),
        };
        let known = self
            .failed
            .keys()
            .filter(|(other, _)| *other == kind)
            .count();
        let is_new = !self.failed.contains_key(&(kind, text.clone()));
        let text = match is_new && known >= TEXTS_MAX {
            true => "others".to_string(),
            false => text.clone(),
        };
        *self.failed.entry((kind, text)).or_default() += 1;
    }

    pub(crate) fn add_effort(&mut self, effort: Effort) {
        self.attempts += effort.attempts;
        self.retried += u64::from(!effort.conflicts.is_empty());
        self.round_trips += effort.round_trips;
        for (kind, count) in effort.conflicts {
            *self.conflicts.entry(kind).or_default() += count;
        }
    }

    fn merge(&mut self, other: &Tally) {
        for (result, count) in &other.answered {
            *self.answered.entry(result).or_default() += count;
        }
        for (failure, count) in &other.failed {
            *self.failed.entry(failure.clone()).or_default() += count;
        }
        for (kind, count) in &other.conflicts {
            *self.conflicts.entry(kind.clone()).or_default() += count;
        }
        self.in_phase += other.in_phase;
        self.unknown += other.unknown;
        self.unfinished += other.unfinished;
        self.retried += other.retried;
        self.attempts += other.attempts;
        self.round_trips += other.round_trips;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.queue.merge(&other.queue);
        self.think.merge(&other.think);
    }
}

/// The counts of all interactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tallies {
    /// By the place of the interaction in the workload.
    pub by_interaction: Vec<Tally>,
    /// Transitions of the whole run: from a state (`None`: START) by the row that held, to where.
    pub transitions: BTreeMap<(Option<usize>, usize, Next), u64>,
    /// Sessions that began in the whole run.
    pub sessions_begun: u64,
    /// Sessions that reached END in the whole run.
    pub sessions_ended: u64,
    /// Connections that were lost and made again.
    pub reconnected: u64,
    /// What was counted since somebody looked last; no part of the sums.
    pub second: Second,
}

impl Tallies {
    /// Nothing counted.
    pub fn new(interactions: usize) -> Tallies {
        Tallies {
            by_interaction: vec![Tally::default(); interactions],
            second: Second::new(interactions),
            ..Tallies::default()
        }
    }

    /// Adds the counts of other threads or processes.
    pub fn merge(&mut self, other: &Tallies) {
        for (mine, theirs) in self.by_interaction.iter_mut().zip(&other.by_interaction) {
            mine.merge(theirs);
        }
        for (transition, count) in &other.transitions {
            *self.transitions.entry(*transition).or_default() += count;
        }
        self.sessions_begun += other.sessions_begun;
        self.sessions_ended += other.sessions_ended;
        self.reconnected += other.reconnected;
    }
}
