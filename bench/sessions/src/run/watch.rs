//! The main thread's part of a run: what is told each second, and the course of all seconds.

use super::tally::Second;
use serde_json::{Value, json};
use std::time::Duration;

/// How often the end of the run is looked at.
const LOOK_NS: u64 = 100_000_000;
/// What is told at a time.
const SECOND_NS: u64 = 1_000_000_000;

/// A run that goes on, here or elsewhere.
pub(super) trait Course {
    /// Nanoseconds since the begin of the warm-up.
    fn now_ns(&self) -> u64;

    /// When the measured phase is over.
    fn end_ns(&self) -> u64;

    /// Whether it is over, or ends before its time.
    fn is_over(&self) -> bool;

    /// What was counted in this second, which is over, and how many requests wait.
    fn take_second(&self, second: u64) -> Option<(Second, u64)>;
}

/// A second that is over.
pub(super) struct Point<'c> {
    /// From 1.
    pub(super) second: u64,
    pub(super) counts: &'c Second,
    /// Requests that are due and wait for a thread.
    pub(super) waiting: u64,
}

/// Watches a run until it is over.
pub(super) fn watch(course: &dyn Course, each: &mut dyn FnMut(&Point<'_>)) {
    let mut second = 1;
    loop {
        let is_over = course.is_over();
        let (boundary, end) = (second * SECOND_NS, course.end_ns());
        let now = course.now_ns();
        if now >= boundary && boundary <= end {
            if let Some((counts, waiting)) = course.take_second(second) {
                each(&Point {
                    second,
                    counts: &counts,
                    waiting,
                });
            }
            second += 1;
            continue;
        }
        if is_over {
            return;
        }
        let left = boundary.min(end).saturating_sub(now);
        std::thread::sleep(Duration::from_nanos(left.min(LOOK_NS)));
    }
}

/// All seconds of a run, column by column.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    seconds: Vec<f64>,
    /// By interaction.
    answered: Vec<Vec<u64>>,
    failed: Vec<u64>,
    conflicts: Vec<u64>,
    waiting: Vec<u64>,
    p50_us: Vec<Option<u64>>,
    p99_us: Vec<Option<u64>>,
}

impl Timeline {
    pub(super) fn new(interactions: usize) -> Timeline {
        Timeline {
            answered: vec![Vec::new(); interactions],
            ..Timeline::default()
        }
    }

    /// Adds a second; `warmup_s` lie before the measured phase.
    pub(super) fn add(&mut self, point: &Point<'_>, warmup_s: f64) {
        let counts = point.counts;
        self.seconds.push(point.second as f64 - warmup_s);
        for (column, count) in self.answered.iter_mut().zip(&counts.answered) {
            column.push(*count);
        }
        self.failed.push(counts.failed);
        self.conflicts.push(counts.conflicts.values().sum());
        self.waiting.push(point.waiting);
        let at = |quantile| {
            let response = &counts.response;
            (!response.is_empty()).then(|| response.value_at_quantile(quantile))
        };
        self.p50_us.push(at(0.5));
        self.p99_us.push(at(0.99));
    }

    /// As results have it: `seconds` are ends of seconds, from the begin of the measured phase.
    pub(super) fn json(&self, names: &[&str], has_quantiles: bool) -> Value {
        let columns = names.iter().zip(&self.answered);
        let used = columns.filter(|(_, column)| column.iter().any(|count| *count > 0));
        let answered: serde_json::Map<String, Value> = used
            .map(|(name, column)| ((*name).to_owned(), json!(column)))
            .collect();
        let quantiles = |column: &Vec<Option<u64>>| has_quantiles.then(|| json!(column));
        json!({
            "seconds": self.seconds,
            "answered": answered,
            "failed": self.failed,
            "conflicts": self.conflicts,
            "waiting": self.waiting,
            "p50_us": quantiles(&self.p50_us),
            "p99_us": quantiles(&self.p99_us),
        })
    }
}
