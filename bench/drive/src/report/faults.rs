//! What was broken in a run and what that cost, in each form of the report.

use crate::run::RunReport;
use fault::{Fault, STEP_S};
use measures::recovery::Recovery;
use serde_json::{Value, json};
use std::fmt::Write;

/// One object for each fault at each target. Seconds of `begin_s` and `end_s` are those of the
/// measured phase, the others count from the begin of the fault.
pub(super) fn list(report: &RunReport) -> Value {
    let number = report.has_number();
    report
        .broken
        .iter()
        .map(|fault| one(fault, number))
        .collect()
}

fn one(fault: &Fault, number: bool) -> Value {
    let cost = fault.cost.as_ref().ok().filter(|_| number);
    let at = |of: fn(&Recovery) -> Option<f64>| cost.and_then(of);
    json!({
        "kind": fault.kind.name(),
        "fault": fault.kind.to_string(),
        "target": fault.target,
        "proven": true,
        "proof": fault.proof,
        "undone": true,
        "undo_s": fault.undo_s,
        "planned": { "begin_s": fault.planned_s.0, "length_s": fault.planned_s.1 },
        "begin_s": fault.begin_s,
        "begin_unix_s": fault.begin_unix_s,
        "end_s": fault.end_s,
        "step_s": fault.step_s,
        "baseline_per_s": at(|it| Some(it.baseline)),
        "noise": at(|it| Some(it.noise)),
        "depth": at(|it| Some(it.depth)),
        "t_detect": at(|it| it.t_detect_s),
        "t50": at(|it| it.t50_s),
        "t90": at(|it| it.t90_s),
        "t99": at(|it| it.t99_s),
        "area": at(|it| Some(it.area_lost)),
        "paper": cost.map(|it| json!({ "R_e": it.r_e(), "T_e": it.t_e() })),
        "no_cost": fault.cost.err().map(|error| error.to_string()),
    })
}

/// Commits by step, where something was broken.
pub(super) fn steps(report: &RunReport) -> Value {
    match report.broken.is_empty() {
        true => Value::Null,
        false => json!({ "step_s": STEP_S, "committed": report.steps }),
    }
}

const COLUMNS: [&str; 10] = [
    "fault",
    "begin",
    "end",
    "depth",
    "seen after",
    "50 %",
    "90 %",
    "99 %",
    "lost",
    "noise",
];

/// What a person reads of a fault, in the order of the columns.
fn cells(fault: &Fault, number: bool) -> Vec<String> {
    let seconds = |at: Option<f64>| at.map_or("never".into(), |at| format!("{at:.1} s"));
    let mut cells = vec![
        format!("{}@{}", fault.kind, fault.target),
        format!("{:.2} s", fault.begin_s),
        format!("{:.2} s", fault.end_s),
    ];
    match &fault.cost {
        Ok(cost) if number => cells.extend([
            format!("{:.0} %", 100.0 * cost.depth),
            cost.t_detect_s
                .map_or("not".into(), |at| format!("{at:.1} s")),
            seconds(cost.t50_s),
            seconds(cost.t90_s),
            seconds(cost.t99_s),
            format!("{:.0}", cost.area_lost),
            format!("{:.0} %", 100.0 * cost.noise),
        ]),
        _ => cells.resize(COLUMNS.len(), "-".into()),
    }
    cells
}

/// A sentence about what a table does not tell.
fn remark(fault: &Fault) -> String {
    let (kind, target, proof) = (fault.kind, &fault.target, &fault.proof);
    let mut text = format!(
        "{kind}@{target}: proven ({proof}), undone in {:.2} s",
        fault.undo_s
    );
    if let Err(error) = &fault.cost {
        let _ = write!(text, "; its cost is not known: {error}");
    }
    text
}

/// A table for a terminal.
pub(super) fn table(report: &RunReport, out: &mut String) {
    if report.broken.is_empty() {
        return;
    }
    let number = report.has_number();
    let line = |cells: &[String]| {
        let (first, rest) = cells.split_first().expect("there are columns");
        let rest: String = rest.iter().map(|cell| format!("{cell:>11}")).collect();
        format!("{first:<24}{rest}\n")
    };
    out.push_str(&line(&COLUMNS.map(String::from)));
    for fault in &report.broken {
        out.push_str(&line(&cells(fault, number)));
    }
    for fault in &report.broken {
        let _ = writeln!(out, "{}", remark(fault));
    }
}

/// A section of the page.
pub(super) fn html(report: &RunReport, out: &mut String) {
    if report.broken.is_empty() {
        return;
    }
    let number = report.has_number();
    out.push_str("<h2>Faults</h2><div class=\"scroll\"><table><tr>");
    for column in COLUMNS {
        let _ = write!(out, "<th>{column}</th>");
    }
    out.push_str("</tr>");
    for fault in &report.broken {
        out.push_str("<tr>");
        for cell in cells(fault, number) {
            let _ = write!(out, "<td>{}</td>", super::escape(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
    for fault in &report.broken {
        let _ = write!(
            out,
            "<p class=\"dim\">{}.</p>",
            super::escape(&remark(fault))
        );
    }
}
