//! The verdicts as text and as JSON.

use super::deadlock::{Asked, Cycle, Outcome};
use super::snapshot::Reads;
use super::{
    Audit, DeadlockReport, Found, FunctionReport, Judgement, RecordReport, SnapshotReport,
    VerifyReport,
};
use links::view::duration;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;

/// The version of the layout; larger when a key changes its meaning.
const FORMAT: u32 = 1;
/// Numbers of transactions that are listed at most.
const LISTED_MAX: usize = 20;

fn us(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// The tests as text for a terminal.
pub fn table(report: &FunctionReport) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\nfunction tests of {} at {}",
        report.server.name(),
        report.isolation.sql()
    );
    for found in &report.found {
        let Judgement { verdict, because } = found.judgement();
        let words = verdict.words();
        let _ = match found {
            Found::Record(_) => writeln!(out, "durability  recorded: {because}"),
            _ => writeln!(out, "{:<11} {words}: {because}", name(found)),
        };
        for line in lines(found) {
            let _ = writeln!(out, "            {line}");
        }
    }
    let _ = writeln!(out, "verdict: {}", report.verdict().words());
    out
}

fn name(found: &Found) -> &'static str {
    match found {
        Found::Snapshot(_) => "snapshot",
        Found::Deadlock(_) => "deadlock",
        Found::Record(_) | Found::Verify(_) => "durability",
    }
}

fn lines(found: &Found) -> Vec<String> {
    match found {
        Found::Snapshot(report) => of_snapshot(report),
        Found::Deadlock(report) => of_deadlock(report),
        Found::Record(report) => of_record(report),
        Found::Verify(report) => of_verify(report),
    }
}

fn of_snapshot(report: &SnapshotReport) -> Vec<String> {
    let mut lines = Vec::new();
    for (reads, name) in [
        (report.ordinary, "ordinary"),
        (report.read_only, "READ ONLY"),
    ] {
        let Reads {
            done,
            torn,
            overlapped,
            crossed,
            retried,
        } = reads;
        lines.push(format!(
            "{name} reads: {done} done, {torn} torn, {overlapped} with a commit inside, \
             {crossed} crossed by one, {retried} retried"
        ));
    }
    lines.push(format!(
        "{} rows{}; {} transfers, {} aborted, {} unknown; {:.1} s",
        report.rows,
        report.spread.map_or(String::new(), |spread| {
            format!(" on {} of {} nodes", spread.covered, spread.nodes)
        }),
        report.transfers,
        report.transfers_aborted,
        report.transfers_unknown,
        report.took.as_secs_f64()
    ));
    lines.extend(report.example.clone());
    lines
}

fn of_deadlock(report: &DeadlockReport) -> Vec<String> {
    let shown = |asked: &Asked| match asked {
        Asked::Waits => "waits".to_owned(),
        Asked::Refused(state) => format!("gets {state}"),
        Asked::Takes => "gets the row".to_owned(),
    };
    let mut lines = vec![format!(
        "without a cycle a younger transaction {}, an older one {}: rule {}",
        shown(&report.rule.younger),
        shown(&report.rule.older),
        report.rule.name()
    )];
    let states = report.states();
    let states: Vec<String> = states
        .iter()
        .map(|(state, n)| format!("{state} {n}"))
        .collect();
    if let (Some(median), Some(max)) = (report.latency_median(), report.latency_max()) {
        lines.push(format!(
            "error after {} (median), {} (max); {}",
            duration(us(median)),
            duration(us(max)),
            states.join(", ")
        ));
    }
    let victims = report.cycles.iter().flat_map(|cycle| {
        let youngest = cycle.size - 1;
        cycle
            .victims
            .iter()
            .map(move |(member, _)| *member == youngest)
    });
    let victims: Vec<bool> = victims.collect();
    let youngest = victims.iter().filter(|is_youngest| **is_youngest).count();
    let nodes = report.cycles.iter().filter_map(|cycle| cycle.nodes).min();
    lines.push(format!(
        "{} transactions were ended, {youngest} of them the youngest of their cycle{}",
        victims.len(),
        nodes.map_or(String::new(), |nodes| format!(
            "; rows of a cycle on {nodes} nodes or more"
        )),
    ));
    if let Some(promised) = report.promised {
        lines.push(format!("deadlock_timeout is {}", duration(us(promised))));
    }
    let first = report.cycles.iter().flat_map(|cycle| &cycle.victims).next();
    lines.extend(first.map(|(_, error)| format!("first error: {error}")));
    lines
}

fn of_record(report: &RecordReport) -> Vec<String> {
    vec![format!(
        "{} rolled back, {} of unknown outcome, {} of {} clients lost their connection",
        report.rolled_back, report.unknown, report.clients_lost, report.clients
    )]
}

fn of_verify(report: &VerifyReport) -> Vec<String> {
    let Audit {
        acknowledged,
        rolled_back,
        unknown,
        unknown_committed,
        ..
    } = &report.audit;
    vec![format!(
        "{acknowledged} acknowledged, {rolled_back} rolled back, {unknown} of unknown outcome, of \
         which {unknown_committed} are there; {} rows",
        report.rows.unwrap_or(0)
    )]
}

/// The tests as JSON.
pub fn json(report: &FunctionReport) -> Value {
    let tests = report.found.iter().map(|found| {
        let Judgement { verdict, because } = found.judgement();
        let mut told = match found {
            Found::Snapshot(report) => snapshot_json(report),
            Found::Deadlock(report) => deadlock_json(report),
            Found::Record(report) => record_json(report),
            Found::Verify(report) => verify_json(report),
        };
        told["verdict"] = match found {
            Found::Record(_) => Value::Null,
            _ => verdict.key().into(),
        };
        told["because"] = because.into();
        (name(found).to_owned(), told)
    });
    json!({
        "format": FORMAT,
        "verdict": report.verdict().key(),
        "isolation": report.isolation.sql(),
        "server": {
            "name": report.server.name(),
            "version": report.server.version,
            "protocol": report.server.protocol,
            "nodes": report.server.nodes,
            "endpoints": report.target.endpoints.iter().map(ToString::to_string)
                .collect::<Vec<_>>(),
            "database": report.target.database,
        },
        "tests": tests.collect::<Map<String, Value>>(),
    })
}

fn snapshot_json(report: &SnapshotReport) -> Value {
    let reads = |reads: Reads| {
        json!({
            "done": reads.done,
            "torn": reads.torn,
            "overlapped": reads.overlapped,
            "crossed": reads.crossed,
            "retried": reads.retried,
        })
    };
    json!({
        "wanted": report.wanted,
        "snapshots": report.done(),
        "torn": report.torn(),
        "ordinary": reads(report.ordinary),
        "read_only": reads(report.read_only),
        "rows": report.rows,
        "nodes_covered": report.spread.map(|spread| spread.covered),
        "total": report.total,
        "total_at_end": report.total_at_end,
        "transfers": {
            "committed": report.transfers,
            "aborted": report.transfers_aborted,
            "unknown": report.transfers_unknown,
        },
        "example": report.example,
        "seconds": report.took.as_secs_f64(),
    })
}

fn deadlock_json(report: &DeadlockReport) -> Value {
    let asked = |asked: &Asked| match asked {
        Asked::Waits => json!("waits"),
        Asked::Refused(state) => json!(state),
        Asked::Takes => json!("takes"),
    };
    let cycle = |cycle: &Cycle| {
        json!({
            "size": cycle.size,
            "nodes": cycle.nodes,
            "closed": cycle.is_closed,
            "outcome": cycle.outcome.key(),
            "latency_us": cycle.latency.map(us),
            "victims": cycle.victims.iter().map(|(member, error)| json!({
                "by_age": member,
                "sqlstate": error.sqlstate,
                "message": error.message,
            })).collect::<Vec<_>>(),
        })
    };
    let outcomes = [
        Outcome::Detected,
        Outcome::Prevented,
        Outcome::NoConflict,
        Outcome::TimedOut,
        Outcome::NotEnded,
        Outcome::Mixed,
    ];
    let outcomes = outcomes
        .iter()
        .map(|it| (it.key().to_owned(), report.count(*it).into()));
    json!({
        "wanted": report.wanted,
        "rule": report.rule.name(),
        "younger_asks": asked(&report.rule.younger),
        "older_asks": asked(&report.rule.older),
        "outcomes": outcomes.collect::<Map<String, Value>>(),
        "latency_us": {
            "median": report.latency_median().map(us),
            "max": report.latency_max().map(us),
        },
        "sqlstates": report.states(),
        "deadlock_timeout_us": report.promised.map(us),
        "limit_us": us(report.cycle_limit),
        "cycles": report.cycles.iter().map(cycle).collect::<Vec<_>>(),
    })
}

fn record_json(report: &RecordReport) -> Value {
    json!({
        "step": "record",
        "wanted": report.wanted,
        "acknowledged": report.acknowledged,
        "rolled_back": report.rolled_back,
        "unknown": report.unknown,
        "clients": report.clients,
        "clients_lost": report.clients_lost,
    })
}

fn verify_json(report: &VerifyReport) -> Value {
    let audit = &report.audit;
    let mut told = json!({
        "step": "verify",
        "rows": report.rows,
        "acknowledged": audit.acknowledged,
        "rolled_back": audit.rolled_back,
        "unknown": audit.unknown,
        "unknown_committed": audit.unknown_committed,
    });
    for (name, list) in audit.faults() {
        let first = &list[..list.len().min(LISTED_MAX)];
        told[name] = json!({"count": list.len(), "first": first});
    }
    told
}
