//! A run with what is around it: who is told of it, who ends it, and who has its load.

use super::parts::{Others, Part, PartResult};
use super::watch::{Course, Point, Timeline, watch};
use super::{
    Connector, Phase, Phases, Plan, Progress, RunError, Second, Tallies, Workload, able, check,
    load, measure, report, stage,
};
use crate::interaction::Changes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What is around a run.
pub struct Around<'a> {
    /// Called about once a second.
    pub live: &'a mut dyn FnMut(Progress),
    /// Ends the run: it has no results then.
    pub stop: &'a AtomicBool,
    /// Called when the warm-up begins.
    pub begun: &'a dyn Fn(Instant),
    /// Who has the load, if that is not this process.
    pub others: Option<&'a dyn Others>,
}

/// Runs a workload over a store, and returns its results as JSON.
///
/// `live` is called about once a second. `stop` ends the run: it has no results then.
///
/// # Errors
/// [`RunError`].
pub fn run_over<C, W>(
    connector: &C,
    workload: &W,
    plan: &Plan,
    live: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<Value, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let around = Around {
        live,
        stop,
        begun: &|_| {},
        others: None,
    };
    run_around(connector, workload, plan, around)
}

/// The same with what is around it.
///
/// # Errors
/// [`RunError`].
pub fn run_around<C, W>(
    connector: &C,
    workload: &W,
    plan: &Plan,
    around: Around<'_>,
) -> Result<Value, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let Around {
        live,
        stop,
        begun,
        others,
    } = around;
    let names = workload.interactions().iter().map(|(name, _)| *name);
    let names: Vec<&'static str> = names.collect();
    let mut telling = Telling::new(plan, names.clone(), live);
    let load_began = Instant::now();
    if plan.loads {
        telling.phase(Phase::Load);
        let created = connector.create();
        created.map_err(|text| RunError::Store(format!("the tables could not be made: {text}")))?;
    }
    able(connector, workload, &plan.table)?;
    let mut load_s = 0.0;
    let mut began = |at: Instant| {
        load_s = load_began.elapsed().as_secs_f64();
        begun(at);
    };
    let mut each = |point: &Point<'_>| telling.second(point);
    let came = match others {
        None => here(connector, workload, plan, stop, &mut began, &mut each),
        Some(others) => elsewhere(workload, plan, others, stop, &mut began, &mut each),
    }?;
    if stop.load(Ordering::Relaxed) {
        return Err(RunError::Stopped);
    }
    let findings = match (came.refused, plan.loads) {
        (Some(wrong), _) => Some(vec![wrong]),
        (None, false) => None,
        (None, true) => {
            telling.phase(Phase::Check);
            Some(check(connector, workload, plan, &came.changes)?)
        }
    };
    let report = report::Report {
        plan,
        store: connector.describe(),
        tallies: came.tallies,
        waiting: came.waiting,
        findings,
        load_s: plan.loads.then_some(load_s),
        timeline: telling.timeline,
        workers: others.map_or(Value::Array(Vec::new()), Others::describe),
    };
    Ok(report.json(&names))
}

/// Loads and runs in this process.
fn here<C, W>(
    connector: &C,
    workload: &W,
    plan: &Plan,
    stop: &AtomicBool,
    begun: &mut dyn FnMut(Instant),
    each: &mut dyn FnMut(&Point<'_>),
) -> Result<PartResult, RunError>
where
    C: Connector,
    W: Workload<C::Access>,
{
    let arrivals = plan.arrivals()?;
    if plan.loads {
        load(connector, workload, plan, Part::WHOLE, stop)?;
    }
    let stage = stage(connector, workload, plan, Part::WHOLE, &arrivals, stop);
    let mut begin = || {
        let now = Instant::now();
        begun(now);
        Some(now)
    };
    let changes = measure(&stage, &mut begin, each)?;
    Ok(PartResult {
        tallies: stage.totals(),
        changes,
        waiting: stage.waiting(),
        refused: stage.refusal(),
    })
}

/// Has other processes load and run.
fn elsewhere<D, W: Workload<D>>(
    workload: &W,
    plan: &Plan,
    others: &dyn Others,
    stop: &AtomicBool,
    begun: &mut dyn FnMut(Instant),
    each: &mut dyn FnMut(&Point<'_>),
) -> Result<PartResult, RunError> {
    // What would be too much for a run is refused here.
    plan.arrivals()?;
    let came = (|| {
        others.prepare(stop)?;
        let start = others.begin()?;
        begun(start);
        let course = Elsewhere {
            others,
            names: workload.interactions(),
            start,
            end_ns: plan.phases.measured_ns().1,
            stop,
        };
        watch(&course, each);
        match (stop.load(Ordering::Relaxed), others.lost()) {
            (true, _) => Err(RunError::Stopped),
            (false, Some(why)) => Err(RunError::Store(why)),
            (false, None) => others.results(workload.interactions()),
        }
    })();
    others.stop();
    let mut sum = PartResult {
        tallies: Tallies::new(workload.interactions().len()),
        changes: Changes::default(),
        waiting: (Vec::new(), 0),
        refused: None,
    };
    for part in came? {
        sum.tallies.merge(&part.tallies);
        sum.changes.merge(&part.changes);
        sum.waiting.0.extend(part.waiting.0);
        sum.waiting.1 += part.waiting.1;
        sum.refused = sum.refused.or(part.refused);
    }
    Ok(sum)
}

/// A run of others.
struct Elsewhere<'a> {
    others: &'a dyn Others,
    names: &'a super::parts::Names,
    start: Instant,
    end_ns: u64,
    stop: &'a AtomicBool,
}

impl Course for Elsewhere<'_> {
    fn now_ns(&self) -> u64 {
        let since = Instant::now().saturating_duration_since(self.start);
        since.as_nanos() as u64
    }

    fn end_ns(&self) -> u64 {
        self.end_ns
    }

    fn is_over(&self) -> bool {
        let is_ended = self.stop.load(Ordering::Relaxed) || self.others.lost().is_some();
        is_ended || self.now_ns() >= self.end_ns
    }

    fn take_second(&self, second: u64) -> Option<(Second, u64)> {
        self.others.take_second(second, self.names)
    }
}

/// Tells of a run while it goes on, and keeps its course.
struct Telling<'a> {
    progress: Progress,
    phases: Phases,
    timeline: Timeline,
    live: &'a mut dyn FnMut(Progress),
}

impl<'a> Telling<'a> {
    fn new(plan: &Plan, names: Vec<&'static str>, live: &'a mut dyn FnMut(Progress)) -> Self {
        let phases = plan.phases;
        Telling {
            timeline: Timeline::new(names.len()),
            progress: Progress {
                phase: Phase::Load,
                answered: vec![0; names.len()],
                names,
                p50_us: 0,
                p99_us: 0,
                conflicts: BTreeMap::new(),
                at_s: 0.0,
                of_s: phases.warmup_s + phases.measure_s,
                per_s: 0.0,
                failed: 0,
                waiting: 0,
            },
            phases,
            live,
        }
    }

    /// The run does something else now.
    fn phase(&mut self, phase: Phase) {
        self.progress.phase = phase;
        (self.live)(self.progress.clone());
    }

    /// A second of the run is over.
    fn second(&mut self, point: &Point<'_>) {
        self.timeline.add(point, self.phases.warmup_s);
        let counts = point.counts;
        let progress = &mut self.progress;
        let at_s = point.second as f64;
        let phase = match at_s <= self.phases.warmup_s {
            true => Phase::WarmUp,
            false => Phase::Measure,
        };
        if phase != progress.phase {
            progress.phase = phase;
            progress.failed = 0;
            progress.conflicts.clear();
        }
        progress.at_s = at_s;
        progress.answered.clone_from(&counts.answered);
        progress.per_s = counts.answered.iter().sum::<u64>() as f64;
        progress.failed += counts.failed;
        for (kind, count) in &counts.conflicts {
            *progress.conflicts.entry(kind.clone()).or_default() += count;
        }
        progress.waiting = point.waiting;
        progress.p50_us = counts.response.value_at_quantile(0.5);
        progress.p99_us = counts.response.value_at_quantile(0.99);
        (self.live)(progress.clone());
    }
}
