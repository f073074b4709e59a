//! Workloads of `trellis bench run` in an experiment: tpcc, dike.

use crate::conductor::Ended;
use crate::document::Document;
use crate::sessions_run::targets;
use drive::report::json as report_json;
use drive::run::others::Others;
use drive::run::{KindReport, RunReport};
use drive::tpcc::{LoadOptions, RunOptions, load, run_by};
use fault::Samples;
use hdrhistogram::Histogram;
use links::error::DriveError;
use links::view::Progress;
use serde_json::{Map, Value, json};
use workers::{Accept, Crew};

/// The options that arguments stand for.
pub(crate) fn options(arguments: &[String], accept: &Accept) -> Result<RunOptions, String> {
    accept(arguments)
}

/// Loads, if so many warehouses are asked for, and runs.
pub(crate) fn run(
    (arguments, warehouses): (&[String], Option<u32>),
    read: &Document,
    pid: Option<u32>,
    accept: &Accept,
    progress: &mut dyn Progress,
) -> Ended {
    let done = options(arguments, accept).and_then(|mut options| {
        options.runner.faults.targets = targets(read, pid)?;
        if let Some(warehouses) = warehouses {
            progress.stage("  loading");
            let loading = LoadOptions::new(&options.url, warehouses);
            load(&loading, progress).map_err(|error| error.to_string())?;
        }
        measure(arguments, &options, &read.workers, progress).map_err(|error| error.to_string())
    });
    match done {
        Ok(report) => Ended::Done(result(&report)),
        Err(why) => Ended::Failed(why),
    }
}

fn measure(
    arguments: &[String],
    options: &RunOptions,
    workers: &[String],
    progress: &mut dyn Progress,
) -> Result<RunReport, DriveError> {
    let crew = match workers.is_empty() {
        true => None,
        false => Some(Crew::join(workers, arguments.to_vec())?),
    };
    run_by(
        options,
        crew.as_ref().map(|crew| crew as &dyn Others),
        progress,
    )
}

/// A report of `trellis bench run` as a result of an experiment; all of it is in `bench_run`.
fn result(report: &RunReport) -> Value {
    let has_number = report.has_number();
    let verdict = match (report.passed(), &report.overloaded, &report.consistency) {
        (_, Some(_), _) if has_number => "overloaded",
        (false, _, _) => "failed",
        (true, _, None) => "unchecked",
        (true, _, Some(_)) => "passed",
    };
    let interactions = report.kinds.iter().map(|kind| interaction(kind, report));
    let whole = report_json(report);
    json!({
        "verdict": verdict,
        "overloaded": report.overloaded.is_some(),
        "measured_s": report.options.length.as_secs_f64(),
        "per_s": has_number.then(|| report.committed_per_s()),
        "store": {"api": "sql", "product": report.server.name()},
        "interactions": interactions.collect::<Vec<_>>(),
        "timeline": timeline(report),
        "check": {
            "made": report.consistency.is_some(),
            "passed": report.passed(),
            "findings": report.faults(),
        },
        "servers": report.samples.json(),
        "clients": Samples::default().json(),
        "workers": whole["workers"],
        "workload": report.description.name,
        "seed": report.options.seed,
        "bench_run": whole,
    })
}

fn interaction(kind: &KindReport, report: &RunReport) -> Value {
    let tally = &kind.tally;
    let has_number = report.has_number();
    let has_times = has_number && report.overloaded.is_none();
    let times = |histogram: &Histogram<u64>| match has_times && !histogram.is_empty() {
        true => times(histogram, tally.unknown + tally.unfinished),
        false => Value::Null,
    };
    let seconds = report.options.length.as_secs_f64();
    json!({
        "name": kind.name,
        "answered": tally.committed + tally.rolled_back,
        "per_s": has_number.then(|| tally.in_phase as f64 / seconds),
        "failed": tally.failed,
        "failed_all": tally.failed.values().sum::<u64>(),
        "unknown": tally.unknown,
        "unfinished": tally.unfinished,
        "retried": tally.retried,
        "conflicts": tally.aborts,
        "response_us": times(&tally.response),
        "service_us": times(&tally.service),
    })
}

/// As results of sessions have them. A quantile that may be one of the times that nobody knows, of
/// which there are `without`, is null.
fn times(histogram: &Histogram<u64>, without: u64) -> Value {
    let known = histogram.len();
    let mut all = Map::new();
    all.insert("count".into(), json!(known));
    all.insert("mean".into(), json!(histogram.mean()));
    for (name, quantile) in [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        let rank = (quantile * (known + without) as f64).ceil().max(1.0);
        let at = (rank - 0.5) / known as f64;
        let value = (rank <= known as f64).then(|| histogram.value_at_quantile(at));
        all.insert(name.into(), json!(value));
    }
    let steps = histogram.iter_recorded();
    let pairs = steps.map(|step| json!([step.value_iterated_to(), step.count_at_value()]));
    all.insert("histogram".into(), pairs.collect());
    Value::Object(all)
}

/// The course of a run, column by column.
fn timeline(report: &RunReport) -> Value {
    if !report.has_number() {
        return Value::Null;
    }
    let seconds = report.timeline.iter();
    let warmup_s = report.options.warmup.as_secs_f64();
    let answered = report.kinds.iter().enumerate().map(|(at, kind)| {
        let column = seconds
            .clone()
            .map(|it| it.committed.get(at).copied().unwrap_or(0));
        (kind.name.to_owned(), json!(column.collect::<Vec<u64>>()))
    });
    let times = |of: fn(&drive::run::Second) -> u64| {
        let column = seconds.clone().map(of);
        let column = column.map(|us| (us > 0).then_some(us));
        let shown = report.overloaded.is_none();
        shown.then(|| column.collect::<Vec<Option<u64>>>())
    };
    let aborts = seconds.clone().map(|it| it.aborts);
    json!({
        "seconds": seconds.clone().map(|it| it.second as f64 - warmup_s).collect::<Vec<f64>>(),
        "answered": answered.collect::<Map<String, Value>>(),
        "conflicts": aborts.collect::<Vec<u64>>(),
        "p50_us": times(|it| it.p50_us),
        "p99_us": times(|it| it.p99_us),
    })
}
