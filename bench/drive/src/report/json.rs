//! One JSON object with everything that is known about a run.

use super::{distributed_share, efficiency, has_percentiles, new_order_per_min, tpmc};
use crate::histories::HistoryReport;
use crate::run::tally::{Tally, quantile_of};
use crate::run::{KindReport, RunReport, WorkerReport, describe_mode};
use crate::shape::CheckReport;
use crate::tpcc::contention::{ContentionReport, PhaseReport, Sample};
use crate::tpcc::dike::{Degrees, DistributionReport};
use crate::tpcc::imbalance::ImbalanceReport;
use hdrhistogram::Histogram;
use measures::steady::Steady;
use serde_json::{Map, Value, json};
use versions::Judged;
use workload::finding::Verdict;

/// The version of the layout; larger when a field changes its meaning.
const FORMAT: u32 = 2;

/// The run as JSON. Numbers that must not be shown are null.
pub fn json(report: &RunReport) -> Value {
    let percentiles = has_percentiles(report);
    let share = |name: &str| report.per_txn(name);
    let number = report.has_number();
    let unanswered = report.kinds.iter().map(|kind| kind.tally.unanswered());
    let unanswered = unanswered.sum();
    json!({
        "format": FORMAT,
        "passed": report.passed(),
        "workload": report.description.name,
        "protocol": report.server.protocol,
        "nodes": report.server.nodes.unwrap_or(report.target.endpoints.len() as u64),
        "committed": number.then(|| report.committed()),
        "committed_per_s": number.then(|| report.committed_per_s()),
        "rolled_back": report.kinds.iter().map(|kind| kind.tally.rolled_back).sum::<u64>(),
        "aborted": report.aborted(),
        "retried": report.kinds.iter().map(|kind| kind.tally.retried).sum::<u64>(),
        "failed": report.failed(),
        "unknown": report.unknown(),
        "unfinished": report.unfinished(),
        "new_order_per_min": new_order_per_min(report),
        "tpmC": tpmc(report),
        "efficiency": efficiency(report),
        "latency_us": latency(&report.response, unanswered, percentiles),
        "overloaded": report.overloaded,
        "distributed_share": distributed_share(report),
        "distribution": report.distribution.as_ref().map(distribution),
        "imbalance": report.imbalance.as_ref().map(imbalance),
        "contention": report.contention.as_ref().map(|it| contention(it, report)),
        "faults": super::faults::list(report),
        "steps": super::faults::steps(report),
        "servers": report.samples.json(),
        "per_txn": {
            "messages": share("messages"),
            "bytes": share("message_bytes"),
            "forced_writes": share("forced_writes"),
        },
        "consistency": report.consistency.as_ref().map(check_json),
        "history": report.history.as_ref().map(own_history),
        "audits": audits(report),
        "transactions": report.kinds.iter().map(|kind| (kind.name.to_string(), kind_json(kind,
            report, percentiles))).collect::<Map<String, Value>>(),
        "deferred": tally_json(&report.deferred, percentiles),
        "steady": report.steady().map(steady),
        "timeline": timeline(report),
        "boxes": super::boxes::json(report),
        "counters": report.counters,
        "client": client(report),
        "workers": report.workers.iter().map(worker).collect::<Vec<_>>(),
        "server": server(report),
        "config": config(report),
        "warnings": report.warnings(),
        "messages": report.messages,
    })
}

/// This process, or all workers.
fn client(report: &RunReport) -> Value {
    json!({
        "cpu_share": report.client_cpu,
        "cores": report.client_cores,
        "thread_shares": report.client_threads,
        "us_per_txn": report.client_us_per_txn(),
        "late_us": latency(&report.lateness, 0, true),
        "release": env!("CARGO_PKG_VERSION"),
    })
}

fn server(report: &RunReport) -> Value {
    json!({
        "name": report.server.name(),
        "version": report.server.version,
        "is_trellis": report.server.is_trellis,
        "endpoints": report.target.endpoints.iter().map(ToString::to_string)
            .collect::<Vec<_>>(),
        "database": report.target.database,
    })
}

/// What a worker had to do with the run.
fn worker(worker: &WorkerReport) -> Value {
    json!({
        "address": worker.address,
        "cores": worker.cores,
        "same_build": worker.same_build,
        "cpu_share": worker.cpu,
        "thread_shares": worker.threads,
        "committed": worker.committed,
        "late_us": latency(&worker.lateness, 0, true),
        "clock_offset_us": worker.clock.offset_us,
        "round_trip_us": worker.clock.round_trip_us,
    })
}

/// How transactions were distributed: what was asked for, drawn, committed and seen. Each ratio is
/// a share of those that can be distributed, histograms are of all transactions.
fn distribution(report: &DistributionReport) -> Value {
    let wanted = &report.requested;
    let told = |histogram: &Option<Degrees>, ratio: Option<f64>| match histogram {
        Some(histogram) => json!({ "ratio": ratio, "histogram": histogram }),
        None => Value::Null,
    };
    json!({
        "requested": {
            "mode": wanted.mode.name(),
            "ratio": wanted.ratio,
            "degree": wanted.degree,
        },
        "warehouses_per_transaction": report.keys,
        "degree_by_equation_2": report.paper_degree,
        "nodes": report.nodes,
        "drawn_ratio": report.drawn_ratio,
        "drawn": report.drawn.iter().map(|(kind, count, ratio)| {
            (kind.name().to_string(), json!({ "transactions": count, "ratio": ratio }))
        }).collect::<Map<String, Value>>(),
        "new_orders": { "committed": report.new_orders, "unknown": report.new_orders_unknown },
        "distributable": {
            "committed": report.distributable,
            "unknown": report.distributable_unknown,
        },
        "broadcasts": report.broadcasts.map(|it| json!({
            "nodes": it.nodes,
            "committed": it.committed,
            "unknown": it.unknown,
        })),
        "committed": told(&report.committed, report.ratio_committed()),
        "unknown": report.unknown,
        "observed_by_server": told(&report.observed_by_server, report.ratio_observed()),
        "not_told": report.not_told,
        "wrong": report.wrong(),
        "not_requested": report.not_requested(),
    })
}

/// How many transactions competed for rows: asked for, as the server says, as the client counts.
fn imbalance(imbalance: &ImbalanceReport) -> Value {
    let requested = &imbalance.requested;
    json!({
        "requested": {
            "data": requested.data.map(|skew| format!("zipf:{skew}")),
            "access": requested.access.map(|access| access.to_string()),
        },
        "districts": imbalance.districts,
        "homes": imbalance.homes,
        "shares": imbalance.shares,
    })
}

fn contention(contention: &ContentionReport, report: &RunReport) -> Value {
    let phase = |phase: &PhaseReport| {
        json!({
            "row": { "s_w_id": phase.warehouse, "s_i_id": phase.item },
            "target": phase.target,
            "begin_s": phase.begin_s,
            "end_s": phase.end_s,
            "mean": phase.server.map(|it| it.mean),
            "worst_second": phase.server.map(|it| it.worst_second),
            "client": phase.client.map(|it| {
                json!({ "mean": it.mean, "worst_second": it.worst_second, "seconds": it.seconds })
            }),
            "transactions_per_s": phase.rates.map(|[hot, others]| {
                json!({ "hot": hot, "others": others })
            }),
            "paper_probability": phase.paper_probability(report.options.clients),
        })
    };
    let sample = |sample: &Sample| {
        let rows = sample.rows.iter();
        json!({
            "second": sample.second,
            "server": rows.clone().map(|it| it.0).collect::<Vec<_>>(),
            "client": rows.map(|it| it.1).collect::<Vec<_>>(),
        })
    };
    json!({
        "phases": contention.phases.iter().map(phase).collect::<Vec<_>>(),
        "samples": contention.samples.iter().map(sample).collect::<Vec<_>>(),
        "controller_us_per_s": contention.controller_us_per_s,
        "control": if contention.is_blocking { "blocking" } else { "counting" },
        "gathering": contention.gathering.map(|it| {
            let all = report.options.warmup + report.options.length;
            let all_s = f64::from(report.options.clients) * all.as_secs_f64();
            json!({
                "rounds": it.rounds,
                "mean_ms": it.mean_ms,
                "max_ms": it.max_ms,
                "waited_s": it.waited_s,
                "waited_share": it.waited_s / all_s,
            })
        }),
    })
}

/// The verdicts of a check as JSON.
pub fn check_json(check: &CheckReport) -> Value {
    let condition = |condition: &crate::shape::CheckedCondition| {
        json!({
            "number": condition.number,
            "clause": condition.clause,
            "title": condition.title,
            "passed": condition.passed(),
            "compared": condition.compared,
            "failures": condition.failures,
            "counterexample": condition.counterexample,
        })
    };
    json!({
        "passed": check.passed(),
        "failed": check.failed(),
        "took_ms": check.took_ms,
        "conditions": check.conditions.iter().map(condition).collect::<Vec<_>>(),
    })
}

/// A recorded run as JSON: everything of [`json()`], and `history` with the verdict.
pub fn history_json(report: &HistoryReport) -> Value {
    let mut value = json(&report.run);
    value["history"] = verdict_json(&report.verdict);
    value
}

/// The run's own history as JSON.
fn own_history(own: &Judged) -> Value {
    let mut value = verdict_json(&own.verdict);
    value["operations"] = json!(own.operations);
    value["attempts_not_kept"] = json!(own.missing);
    value
}

/// What a check of a history says, as JSON.
pub fn verdict_json(verdict: &check::Verdict) -> Value {
    let anomaly = |anomaly: &check::Anomaly| {
        json!({
            "name": anomaly.name(),
            "txns": anomaly.txns,
            "story": anomaly.story,
        })
    };
    let exercised = &verdict.exercised;
    json!({
        "level": verdict.level.name(),
        "judgement": verdict.judgement.to_string().to_lowercase(),
        "anomalies": verdict.anomalies.iter().map(anomaly).collect::<Vec<_>>(),
        "allowed": verdict.allowed.iter().map(anomaly).collect::<Vec<_>>(),
        "doubts": verdict.doubts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "exercised": {
            "committed": exercised.committed,
            "aborted": exercised.aborted,
            "unknown": exercised.unknown,
            "writes": exercised.writes,
            "reads": exercised.reads,
            "keys": exercised.keys,
            "conflicting_pairs": exercised.conflicting_pairs,
            "concurrent_pairs": exercised.concurrent_pairs,
            "concurrent_conflicts": exercised.concurrent_conflicts,
        },
    })
}

/// Quantiles of times, to which so many longer ones would have to be added.
fn latency(histogram: &Histogram<u64>, unfinished: u64, shown: bool) -> Value {
    let at = |quantile: f64| quantile_of(histogram, unfinished, quantile).filter(|_| shown);
    json!({
        "p50": at(0.5),
        "p90": at(0.9),
        "p95": at(0.95),
        "p99": at(0.99),
        "p999": at(0.999),
        "p9999": at(0.9999),
        "max": at(1.0),
        "mean": (shown && !histogram.is_empty()).then(|| histogram.mean()),
        "samples": histogram.len(),
    })
}

/// Pairs of value and count: enough to merge histograms of several runs.
fn raw(histogram: &Histogram<u64>) -> Value {
    let recorded = histogram.iter_recorded();
    recorded
        .map(|step| json!([step.value_iterated_to(), step.count_at_value()]))
        .collect()
}

fn tally_json(tally: &Tally, shown: bool) -> Value {
    json!({
        "committed": tally.committed,
        "rolled_back": tally.rolled_back,
        "aborts": tally.aborts,
        "retried": tally.retried,
        "failed": tally.failed,
        "unknown": tally.unknown,
        "units": tally.units,
        "skipped": tally.skipped,
        "latency_us": latency(&tally.response, tally.unanswered(), shown),
        "service_us": latency(&tally.service, tally.unanswered(), shown),
        "queue_us": latency(&tally.queue, tally.unanswered(), shown),
        "histogram_us": raw(&tally.response),
        "service_histogram_us": raw(&tally.service),
        "queue_histogram_us": raw(&tally.queue),
    })
}

fn kind_json(kind: &KindReport, report: &RunReport, shown: bool) -> Value {
    let mut value = tally_json(&kind.tally, shown);
    let seconds = report.options.length.as_secs_f64();
    value["committed_per_s"] = json!(kind.tally.in_phase as f64 / seconds);
    value
}

fn audits(report: &RunReport) -> Value {
    let finding = |finding: &workload::finding::Finding| {
        json!({
            "clause": finding.clause,
            "title": finding.title,
            "samples": finding.samples,
            "observed": finding.observed,
            "allowed": finding.allowed,
            "verdict": verdict(finding.verdict),
        })
    };
    json!({
        "passed": report.audits_passed(),
        "failed": report.audits_failed(),
        "findings": report.audits.iter().map(finding).collect::<Vec<_>>(),
    })
}

/// A verdict in words.
pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed => "failed",
        Verdict::NotApplicable => "not applicable",
    }
}

/// `from_s` is null where no steady state was reached.
fn steady(steady: Steady) -> Value {
    let (from_s, committed_per_s, change) = match steady {
        Steady::From { second, mean } => (Some(second), Some(mean), None),
        Steady::Late => (None, None, None),
        Steady::Drifts { change } => (None, None, Some(change)),
    };
    json!({
        "from_s": from_s,
        "committed_per_s": committed_per_s,
        "change": change,
    })
}

fn timeline(report: &RunReport) -> Value {
    let second = |second: &crate::run::Second| {
        json!({
            "second": second.second,
            "measured": second.measured,
            "committed": second.committed,
            "p50_us": second.p50_us,
            "p99_us": second.p99_us,
            "aborts": second.aborts,
        })
    };
    report.timeline.iter().map(second).collect()
}

fn config(report: &RunReport) -> Value {
    let options = &report.options;
    let parameters = report.description.parameters.iter();
    json!({
        "mode": describe_mode(options, report.paced),
        "loop": if options.rate.is_some() { "open" } else { "closed" },
        "rate_per_s": options.rate,
        "curve": options.curve.as_ref().map(ToString::to_string),
        "clients": options.clients,
        "warmup_s": options.warmup.as_secs_f64(),
        "seconds": options.length.as_secs_f64(),
        "seed": options.seed,
        "retry": {
            "attempts_max": options.retry.attempts_max,
            "backoff_us": options.retry.backoff_us,
            "backoff_us_max": options.retry.backoff_us_max,
        },
        "timeout_s": options.timeout.as_secs_f64(),
        "started_unix_s": report.started_unix_s,
        "parameters": parameters.map(|(k, v)| (k.to_string(), json!(v))).collect::<Map<_, _>>(),
    })
}
