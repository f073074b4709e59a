//! The result table at the end of a run.

use super::{distributed_share, efficiency, has_percentiles, new_order_per_min, tpmc};
use crate::run::tally::quantile_of;
use crate::run::{RunReport, describe_mode};
use crate::shape::CheckReport;
use links::view::duration;
use std::fmt::Write;
use workload::finding::Verdict;

/// The run as text for a terminal.
pub fn table(report: &RunReport) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "\n{} on {}",
        report.description.name,
        report.server.name()
    );
    let _ = writeln!(out, "{}\n", describe_mode(&report.options, report.paced));
    transactions(report, &mut out);
    summary(report, &mut out);
    super::faults::table(report, &mut out);
    super::servers::table(report, &mut out);
    audits(report, &mut out);
    if let Some(check) = &report.consistency {
        out.push_str(&check_table(check));
    }
    if let Some(own) = &report.history {
        let missing = match own.missing {
            0 => String::new(),
            missing => format!(", {missing} attempts were not kept"),
        };
        let (operations, verdict) = (own.operations, &own.verdict);
        let _ = write!(
            out,
            "own history of {operations} operations{missing}: {verdict}"
        );
    }
    for warning in report.warnings() {
        let _ = writeln!(out, "note: {warning}");
    }
    let _ = writeln!(
        out,
        "verdict: {}",
        if report.passed() { "passed" } else { "FAILED" }
    );
    out
}

fn transactions(report: &RunReport, out: &mut String) {
    let _ = writeln!(
        out,
        "{:<17}{:>10}{:>10}{:>9}{:>8}{:>8}{:>8}{:>11}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "transaction",
        "committed",
        "rollback",
        "aborts",
        "retried",
        "failed",
        "unknown",
        "unfinished",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "p99.99",
    );
    let number = report.has_number();
    for kind in &report.kinds {
        let tally = &kind.tally;
        let committed = if number {
            tally.committed.to_string()
        } else {
            String::from("-")
        };
        let _ = write!(
            out,
            "{:<17}{committed:>10}{:>10}{:>9}{:>8}{:>8}{:>8}{:>11}",
            kind.name,
            tally.rolled_back,
            tally.aborts.values().sum::<u64>(),
            tally.retried,
            tally.failed.values().sum::<u64>(),
            tally.unknown,
            tally.unfinished,
        );
        let _ = writeln!(
            out,
            "{}",
            percentiles(has_percentiles(report), &|quantile| tally
                .response_at(quantile))
        );
    }
    let response = percentiles(has_percentiles(report), &|quantile| {
        report.response_at(quantile)
    });
    let _ = writeln!(out, "{:<81}{response}\n", "all, response time");
}

fn percentiles(shown: bool, at: &dyn Fn(f64) -> Option<u64>) -> String {
    let quantiles = [0.5, 0.95, 0.99, 0.999, 0.9999];
    let cells = quantiles
        .iter()
        .map(|&quantile| match at(quantile).filter(|_| shown) {
            Some(us) => format!("{:>9}", duration(us)),
            None => format!("{:>9}", "-"),
        });
    cells.collect()
}

fn summary(report: &RunReport, out: &mut String) {
    if report.has_number() {
        match (tpmc(report), efficiency(report), new_order_per_min(report)) {
            (Some(tpmc), Some(efficiency), _) => {
                let percent = 100.0 * efficiency;
                let _ = writeln!(out, "tpmC {tpmc:.1}, efficiency {percent:.1} %");
            }
            (_, _, Some(rate)) => {
                let _ = writeln!(out, "new_order_per_min {rate:.0}");
            }
            _ => {}
        }
        let all = report.committed_per_s();
        let _ = writeln!(out, "committed per second {all:.1}");
    } else {
        let _ = writeln!(out, "the consistency check failed: this run has no number");
    }
    let has_queue = report.kinds.iter().any(|kind| !kind.tally.queue.is_empty());
    let unanswered = report.kinds.iter().map(|kind| kind.tally.unanswered());
    let unanswered: u64 = unanswered.sum();
    if has_queue && has_percentiles(report) {
        for (name, of) in [("service time", 0), ("queue time", 1)] {
            let mut sum = crate::run::tally::histogram();
            for kind in &report.kinds {
                let part = if of == 0 {
                    &kind.tally.service
                } else {
                    &kind.tally.queue
                };
                sum.add(part).expect("all histograms have the same bounds");
            }
            let at = |quantile| quantile_of(&sum, unanswered, quantile);
            let _ = writeln!(out, "{name:<81}{}", percentiles(true, &at));
        }
    }
    let mut aborts = std::collections::BTreeMap::<&str, u64>::new();
    for (reason, count) in report.kinds.iter().flat_map(|kind| &kind.tally.aborts) {
        *aborts.entry(reason).or_default() += count;
    }
    for (reason, count) in aborts {
        let message = report.messages.get(reason).map_or("", String::as_str);
        let _ = writeln!(out, "aborted {count} times with {reason}: {message}");
    }
    for kind in &report.kinds {
        for (reason, count) in &kind.tally.failed {
            let message = report.messages.get(reason).map_or("", String::as_str);
            let _ = writeln!(
                out,
                "{} failed {count} times with {reason}: {message}",
                kind.name
            );
        }
    }
    if let Some(measure) = report.description.measure {
        let skipped: u64 = report.kinds.iter().map(|kind| kind.tally.skipped).sum();
        let _ = writeln!(out, "{}: {skipped}", measure.skipped);
    }
    if let Some(share) = distributed_share(report) {
        let _ = writeln!(out, "distributed transactions {:.1} %", share * 100.0);
    }
    let counters = ["messages", "message_bytes", "forced_writes"];
    let shown = counters
        .iter()
        .filter_map(|name| Some((name, report.per_txn(name)?)));
    for (name, value) in shown {
        let _ = writeln!(out, "{} per transaction {value:.2}", name.replace('_', " "));
    }
    client(report, out);
}

/// What the client itself used.
fn client(report: &RunReport, out: &mut String) {
    if let Some(share) = report.client_cpu {
        let _ = write!(out, "client: {}", super::client_share(report, share));
        if let Some(us) = report.client_us_per_txn() {
            let _ = write!(out, ", {us:.0} us of a core per transaction");
        }
        if !report.lateness.is_empty() {
            let late = duration(report.lateness.value_at_quantile(0.99));
            let _ = write!(out, ", late by {late} at most in 99 % of the cases");
        }
        out.push('\n');
    }
    for worker in &report.workers {
        let _ = write!(
            out,
            "  worker {}: {} committed",
            worker.address, worker.committed
        );
        if let Some(share) = worker.cpu {
            let _ = write!(out, ", {:.0} % of {} cores", share * 100.0, worker.cores);
        }
        let ahead = worker.clock.offset_us as f64 / 1e3;
        let half = worker.clock.round_trip_us as f64 / 2e3;
        let _ = writeln!(out, ", clock {ahead:+.3} ms (within {half:.3} ms)");
    }
}

fn audits(report: &RunReport, out: &mut String) {
    let (passed, failed) = (report.audits_passed(), report.audits_failed());
    let _ = writeln!(out, "audits: {passed} passed, {failed} failed");
    for finding in report
        .audits
        .iter()
        .filter(|f| f.verdict == Verdict::Failed)
    {
        let _ = writeln!(
            out,
            "  FAILED {} {}: {} observed, {} allowed",
            finding.clause, finding.title, finding.observed, finding.allowed
        );
    }
}

/// The conditions as text for a terminal.
pub fn check_table(check: &CheckReport) -> String {
    let mut out = String::new();
    let (passed, failed) = (check.passed(), check.failed());
    let took = check.took_ms as f64 / 1000.0;
    let _ = writeln!(
        out,
        "consistency: {passed} passed, {failed} failed ({took:.1} s)"
    );
    for condition in &check.conditions {
        let word = if condition.passed() {
            "passed"
        } else {
            "FAILED"
        };
        let _ = write!(out, "  {word} {:<9} {}", condition.clause, condition.title);
        match (&condition.counterexample, condition.compared) {
            (Some(text), _) => {
                let _ = writeln!(
                    out,
                    "\n         {} differ, first: {text}",
                    condition.failures
                );
            }
            (None, 0) => out.push_str(" (nothing to compare)\n"),
            (None, _) => out.push('\n'),
        }
    }
    out
}
