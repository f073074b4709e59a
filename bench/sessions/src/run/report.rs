//! The results of a run as JSON.

use super::Plan;
use super::tally::{Tallies, Tally, Times};
use super::watch::Timeline;
use crate::population::Kind;
use crate::table::{Row, START};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use workload::stats::binomial_interval;

/// Quantiles that are told, with their names.
const QUANTILES: [(&str, f64); 6] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];
/// How sure the bounds of all ways out of all states are together.
const COVERAGE: f64 = 0.999;
/// A backlog above this share of what was answered means that the load was more than the store
/// takes, if it is also more than the threads.
const BACKLOG_MAX: f64 = 0.01;

pub(super) struct Report<'a> {
    pub(super) plan: &'a Plan,
    pub(super) store: Value,
    pub(super) tallies: Tallies,
    /// States that sessions waited for at the end, and sessions that were not let in.
    pub(super) waiting: (Vec<usize>, u64),
    /// What the check has found; `None`: it was not made.
    pub(super) findings: Option<Vec<String>>,
    pub(super) load_s: Option<f64>,
    pub(super) timeline: Timeline,
    /// Processes that had the load; an empty list: this one.
    pub(super) workers: Value,
}

impl Report<'_> {
    /// All of it. A run whose check has found something has no number.
    pub(super) fn json(mut self, names: &[&str]) -> Value {
        // Where sessions are as many as they are, those that wait are a part of the load.
        let is_open = matches!(self.plan.population.kind, Kind::Open(_));
        let waiting = self.waiting.0.len() as u64 + self.waiting.1;
        if is_open {
            for state in &self.waiting.0 {
                if let Some(interaction) = self.plan.table.states()[*state].interaction {
                    self.tallies.by_interaction[interaction].unfinished += 1;
                }
            }
        }
        let answered: u64 = self
            .tallies
            .by_interaction
            .iter()
            .map(Tally::answered_all)
            .sum();
        let is_overloaded = is_open
            && waiting > self.plan.population.threads
            && waiting as f64 > BACKLOG_MAX * answered as f64;
        let has_failed = self.findings.as_ref().is_some_and(|all| !all.is_empty());
        let has_numbers = !has_failed;
        let interactions = names.iter().zip(&self.tallies.by_interaction);
        let interactions: Vec<Value> = interactions
            .filter(|(_, tally)| tally.is_used())
            .map(|(name, tally)| self.interaction(name, tally, has_numbers, !is_overloaded))
            .collect();
        let (transitions, unlikely) = self.transitions();
        let in_phase: u64 = self
            .tallies
            .by_interaction
            .iter()
            .map(|tally| tally.in_phase)
            .sum();
        json!({
            "verdict": self.verdict(is_overloaded, answered),
            "overloaded": is_overloaded,
            "waiting_at_end": waiting,
            "measured_s": self.plan.phases.measure_s,
            "load_s": self.load_s,
            "store": self.store,
            "per_s": has_numbers.then(|| in_phase as f64 / self.plan.phases.measure_s),
            "interactions": interactions,
            "transitions": transitions,
            "transitions_out_of_bounds": unlikely,
            "sessions": {
                "begun": self.tallies.sessions_begun,
                "ended": self.tallies.sessions_ended,
            },
            "reconnected": self.tallies.reconnected,
            "timeline": has_numbers.then(|| self.timeline.json(names, !is_overloaded)),
            "workers": self.workers,
            "check": self.check(),
        })
    }

    fn verdict(&self, is_overloaded: bool, answered: u64) -> &'static str {
        match &self.findings {
            Some(findings) if !findings.is_empty() => "failed",
            _ if answered == 0 => "nothing",
            _ if is_overloaded => "overloaded",
            Some(_) => "passed",
            None => "unchecked",
        }
    }

    fn check(&self) -> Value {
        match &self.findings {
            None => json!({
                "made": false,
                "reason": "the data was there before the run: nobody knows what it began with",
            }),
            Some(findings) => json!({
                "made": true,
                "passed": findings.is_empty(),
                "findings": findings,
            }),
        }
    }

    fn interaction(
        &self,
        name: &str,
        tally: &Tally,
        has_numbers: bool,
        has_quantiles: bool,
    ) -> Value {
        let mut failed: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for ((kind, text), count) in &tally.failed {
            failed
                .entry(kind)
                .or_default()
                .insert(text.clone(), json!(count));
        }
        let results = tally
            .answered
            .iter()
            .filter(|(result, _)| !result.is_empty());
        let results: BTreeMap<&str, u64> = results.map(|(result, n)| (*result, *n)).collect();
        let per_s = tally.in_phase as f64 / self.plan.phases.measure_s;
        let without = tally.unknown + tally.unfinished;
        let times = |times: &Times, without: u64| match has_numbers && has_quantiles {
            true => times_json(times, without),
            false => Value::Null,
        };
        let answered = tally.answered_all();
        json!({
            "name": name,
            "answered": answered,
            "per_s": has_numbers.then_some(per_s),
            "results": results,
            "failed": failed,
            "failed_all": tally.failed_all(),
            "unknown": tally.unknown,
            "unfinished": tally.unfinished,
            "retried": tally.retried,
            "attempts": tally.attempts,
            "conflicts": tally.conflicts,
            "round_trips": (tally.round_trips > 0).then_some(tally.round_trips),
            "round_trips_each": (tally.round_trips > 0 && answered > 0)
                .then(|| tally.round_trips as f64 / answered as f64),
            "response_us": times(&tally.response, without),
            "service_us": times(&tally.service, tally.unknown),
            "queue_us": match self.plan.population.kind {
                Kind::Closed => Value::Null,
                Kind::SemiOpen | Kind::Open(_) => times(&tally.queue, without),
            },
            "think_us": times_json(&tally.think, 0),
        })
    }

    /// Transitions of the whole run with the counts that the table allows, and how many are out of
    /// these bounds.
    fn transitions(&self) -> (Vec<Value>, u64) {
        let table = &self.plan.table;
        let mut all = Vec::new();
        let mut unlikely = 0;
        let states = table.states().iter().enumerate();
        let of_states = states.flat_map(|(at, state)| {
            let rows = state.rows.iter().enumerate();
            rows.map(move |(place, row)| (Some(at), &*state.name, place, row))
        });
        let start = (None, START, 0, table.start());
        let rows: Vec<_> = [start].into_iter().chain(of_states).collect();
        let ways: usize = rows.iter().map(|(_, _, _, row)| row.ways.len()).sum();
        let coverage = 1.0 - (1.0 - COVERAGE) / ways.max(1) as f64;
        for (from, name, place, row) in rows {
            let counts = self.counts(from, place, row);
            let sum: u64 = counts.iter().sum();
            for ((next, p), count) in row.ways.iter().zip(counts) {
                let (low, high) = binomial_interval(sum, *p, coverage);
                let is_within = (low..=high).contains(&count);
                unlikely += u64::from(!is_within);
                all.push(json!({
                    "from": name,
                    "result": row.result,
                    "to": table.name(*next),
                    "probability": p,
                    "count": count,
                    "low": low,
                    "high": high,
                    "within": is_within,
                }));
            }
        }
        (all, unlikely)
    }

    fn counts(&self, from: Option<usize>, place: usize, row: &Row) -> Vec<u64> {
        let count = |next| {
            let transitions = &self.tallies.transitions;
            transitions.get(&(from, place, next)).copied().unwrap_or(0)
        };
        row.ways.iter().map(|(next, _)| count(*next)).collect()
    }
}

impl Tally {
    fn is_used(&self) -> bool {
        self.answered_all() + self.failed_all() + self.unknown + self.unfinished + self.in_phase > 0
    }
}

/// Mean, quantiles and the histogram. A quantile that may be one of the times that nobody knows, of
/// which there are `without`, is null.
fn times_json(times: &Times, without: u64) -> Value {
    let histogram = &times.histogram;
    let known = histogram.len();
    if known == 0 {
        return Value::Null;
    }
    let mut all = Map::new();
    all.insert("count".into(), json!(known));
    all.insert(
        "mean".into(),
        json!(times.sum_ns as f64 / 1e3 / known as f64),
    );
    for (name, quantile) in QUANTILES {
        let rank = (quantile * (known + without) as f64).ceil().max(1.0);
        let at = (rank - 0.5) / known as f64;
        let value = (rank <= known as f64).then(|| histogram.value_at_quantile(at));
        all.insert(name.into(), json!(value));
    }
    all.insert("max".into(), json!((without == 0).then(|| histogram.max())));
    let counted = histogram.iter_recorded();
    let buckets = counted.map(|step| json!([step.value_iterated_to(), step.count_at_value()]));
    all.insert("histogram".into(), Value::Array(buckets.collect()));
    Value::Object(all)
}
