//! One self-contained HTML file: the verdict first, then numbers, charts and settings. It opens
//! without a network and holds the JSON of the run.

use super::json::verdict;
use super::{distributed_share, efficiency, has_percentiles, json, new_order_per_min, tpmc};
use crate::run::{CLIENT_CPU_MAX, KindReport, RunReport, Second, describe_mode};
use charts::{Axes, SCRIPT, Series, lines, number, time};
use links::view::duration;
use std::fmt::Write;
use workload::finding::Verdict;

const STYLE: &str = ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;\
max-width:66rem;margin:2rem auto;padding:0 1rem;color:#1d2430;background:#fff;\
overflow-wrap:break-word}h1{font-size:1.5rem}\
h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}th,td{\
padding:.25rem .5rem;text-align:right;vertical-align:top;border-bottom:1px solid #e2e6ec}\
th{vertical-align:bottom}td{white-space:nowrap;font-variant-numeric:tabular-nums}\
th:first-child,td:first-child,.text{text-align:left}td.text{white-space:normal;min-width:9rem}\
td.any{overflow-wrap:anywhere}tr.all td{border-top:2px solid #cfd6df;font-weight:600}\
.scroll{overflow-x:auto}.good{color:#0a7a3d}.bad{color:#b3261e;font-weight:600}\
.verdict{border:1px solid #cfd6df;border-radius:.5rem;padding:1rem 1.2rem}.verdict ul{\
padding-left:1.2rem}.big{font-size:1.8rem}.cells{display:flex;flex-wrap:wrap;gap:.6rem 2rem}\
svg{width:100%;min-width:34rem;height:auto;font:11px system-ui,sans-serif}.grid{stroke:#e8ebf0}\
.phase{fill:#f3f7f4}.dim{color:#5b6675}svg text{fill:#5b6675}\
.legend button{font:inherit;border:0;background:none;color:inherit;padding:.1rem .3rem;\
margin-right:.4rem;white-space:nowrap;border-radius:.25rem}.legend button:enabled{cursor:pointer}\
.legend button:enabled:hover{background:#eef1f5}.legend button[aria-pressed=false]{opacity:.4;\
text-decoration:line-through}.legend .hint{color:#5b6675;font-size:.85em}.chart{position:relative}\
.chart svg{cursor:crosshair}.cursor{stroke:#8793a3;stroke-dasharray:3 3;pointer-events:none}\
.span{fill:#2f6fde;opacity:.15;pointer-events:none}.tip{position:absolute;pointer-events:none;\
background:#fff;border:1px solid #cfd6df;border-radius:.3rem;padding:.3rem .6rem;font-size:12px;\
line-height:1.35;box-shadow:0 2px 8px #0002;white-space:nowrap;z-index:1}\
@media(prefers-color-scheme:dark){body{background:#14181f;color:#dfe5ee}th,td{\
border-color:#2a323d}.grid{stroke:#2a323d}.phase{fill:#19222a}svg text{fill:#9aa6b5}\
.verdict,tr.all td{border-color:#36404d}.good{color:#5ad08c}\
.bad{color:#ff8a80}.dim{color:#9aa6b5}a{color:#8ab4ff}button{background:#2a323d;\
color:#dfe5ee;border:1px solid #36404d}.legend button{background:none}.legend button:enabled:hover{\
background:#2a323d}.legend .hint{color:#9aa6b5}.tip{background:#1d232c;border-color:#36404d}}";

/// Colours of lines that tell each other apart, on light and dark ground.
pub const COLOURS: [&str; 8] = [
    "#2f6fde", "#d9822b", "#2f9e62", "#9b51c9", "#c93d6a", "#0f9aa8", "#8a6d3b", "#7b8794",
];

/// Kinds of TPC-C, which come first.
const TPCC_KINDS: usize = workload::tpcc::Kind::TPCC_NAMES.len();

/// The beginning of a page, up to its body; `title` is HTML.
fn head(title: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style></head><body>"
    )
}

/// A page of this style around a body; both are HTML.
pub fn page(title: &str, body: &str) -> String {
    let mut out = head(title);
    let _ = write!(
        out,
        "<h1>{title}</h1>{body}<script>{SCRIPT}</script></body></html>"
    );
    out
}

/// The run as one HTML page.
pub fn html(report: &RunReport) -> String {
    let title = format!(
        "{} on {}",
        report.description.name,
        escape(&report.server.name())
    );
    let mut out = head(&title);
    let _ = write!(
        out,
        "<h1>{title}</h1><p>{}</p>",
        escape(&describe_mode(&report.options, report.paced))
    );
    verdict_block(report, &mut out);
    transactions(report, &mut out);
    charts(report, &mut out);
    super::faults::html(report, &mut out);
    super::servers::html(report, &mut out);
    conditions(report, &mut out);
    audits(report, &mut out);
    settings(report, &mut out);
    out.push_str("<h2>Data</h2><p><button id=\"save\">Save as JSON</button></p>");
    // "</" must not end the script element, wherever it comes from.
    let data = json(report).to_string().replace("</", "<\\/");
    let _ = write!(
        out,
        "<script type=\"application/json\" id=\"run\">{data}</script>"
    );
    out.push_str(
        "<script>document.getElementById('save').onclick=function(){\
         var a=document.createElement('a');a.download='run.json';\
         a.href=URL.createObjectURL(new Blob([document.getElementById('run').textContent],\
         {type:'application/json'}));a.click()}</script>",
    );
    let _ = write!(out, "<script>{SCRIPT}</script></body></html>");
    out
}

fn verdict_block(report: &RunReport, out: &mut String) {
    out.push_str("<div class=\"verdict\">");
    let word = if report.passed() { "passed" } else { "FAILED" };
    let class = if report.passed() { "good" } else { "bad" };
    let _ = write!(out, "<div class=\"big {class}\">{word}</div><ul>");
    let mut item = |good: bool, text: String| {
        let class = if good { "good" } else { "bad" };
        let _ = write!(out, "<li class=\"{class}\">{}</li>", escape(&text));
    };
    match &report.consistency {
        Some(check) => {
            let (passed, failed) = (check.passed(), check.failed());
            item(
                failed == 0,
                format!("consistency: {passed} conditions passed, {failed} failed"),
            );
        }
        None => item(false, String::from("consistency: not checked")),
    }
    let (passed, failed) = (report.audits_passed(), report.audits_failed());
    item(
        failed == 0,
        format!("audits: {passed} passed, {failed} failed"),
    );
    if let Some(share) = report.client_cpu {
        let text = format!("client: {}", super::client_share(report, share));
        item(share <= CLIENT_CPU_MAX, text);
    }
    match &report.overloaded {
        Some(reason) => item(false, format!("overloaded: {reason}; no percentiles")),
        None if report.options.rate.is_some() => {
            item(true, String::from("the run kept up with its arrivals"));
        }
        None => {}
    }
    let unknown = report.unknown();
    if unknown > 0 {
        item(
            false,
            format!("{unknown} transactions with an unknown outcome"),
        );
    }
    out.push_str("</ul><div class=\"cells\">");
    for (name, value) in headline(report) {
        let _ = write!(
            out,
            "<div><div class=\"dim\">{name}</div><b>{value}</b></div>"
        );
    }
    out.push_str("</div></div>");
    for warning in report.warnings() {
        let _ = write!(out, "<p class=\"dim\">Note: {}.</p>", escape(&warning));
    }
}

fn headline(report: &RunReport) -> Vec<(&'static str, String)> {
    let mut cells = Vec::new();
    match (tpmc(report), new_order_per_min(report)) {
        (Some(tpmc), _) => {
            let efficiency = efficiency(report).unwrap_or(0.0) * 100.0;
            cells.push(("tpmC", format!("{tpmc:.1} ({efficiency:.1} %)")));
        }
        (None, Some(rate)) => cells.push(("new_order_per_min", format!("{rate:.0}"))),
        (None, None) if report.has_number() => {}
        (None, None) => cells.push(("new_order_per_min", String::from("no number"))),
    }
    if report.has_number() {
        let rate = report.committed_per_s();
        cells.push(("committed per second", format!("{rate:.1}")));
    }
    if has_percentiles(report) {
        for (name, quantile) in [("response p50", 0.5), ("response p99", 0.99)] {
            let at = report.response_at(quantile);
            cells.extend(at.map(|us| (name, duration(us))));
        }
    }
    if let Some(share) = distributed_share(report) {
        cells.push(("distributed", format!("{:.1} %", share * 100.0)));
    }
    for (counter, name) in [
        ("messages", "messages per txn"),
        ("forced_writes", "forced writes per txn"),
    ] {
        if let Some(value) = report.per_txn(counter) {
            cells.push((name, format!("{value:.2}")));
        }
    }
    cells
}

fn transactions(report: &RunReport, out: &mut String) {
    out.push_str(
        "<h2>Transactions</h2><div class=\"scroll\"><table><tr><th>kind</th><th>committed</th>\
         <th>rolled back</th><th>aborted attempts</th><th>retried</th><th>failed</th>\
         <th>unknown</th><th>unfinished</th><th>p50</th>\
         <th>p95</th><th>p99</th><th>p99.9</th><th>p99.99</th></tr>",
    );
    let mut all = [0; 7];
    for kind in &report.kinds {
        let tally = &kind.tally;
        let counts = [
            tally.committed,
            tally.rolled_back,
            tally.aborts.values().sum(),
            tally.retried,
            tally.failed.values().sum(),
            tally.unknown,
            tally.unfinished,
        ];
        all.iter_mut()
            .zip(counts)
            .for_each(|(sum, one)| *sum += one);
        let at = |quantile| tally.response_at(quantile);
        row(kind.name, "", counts, &at, report, out);
    }
    let at = |quantile| report.response_at(quantile);
    row("all", " class=\"all\"", all, &at, report, out);
    out.push_str("</table></div>");
    let skipped: u64 = report.kinds.iter().map(|kind| kind.tally.skipped).sum();
    let _ = write!(
        out,
        "<p class=\"dim\">Districts without an order to deliver: {skipped}.</p>"
    );
    if report.messages.is_empty() {
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table><tr><th>reason</th>\
         <th class=\"text\">first message</th></tr>",
    );
    for (reason, message) in &report.messages {
        let (reason, message) = (escape(reason), escape(message));
        let _ = write!(
            out,
            "<tr><td>{reason}</td><td class=\"text\">{message}</td></tr>"
        );
    }
    out.push_str("</table></div>");
}

/// A line of the table: committed and the other counts, then percentiles.
fn row(
    name: &str,
    class: &str,
    counts: [u64; 7],
    response_at: &dyn Fn(f64) -> Option<u64>,
    report: &RunReport,
    out: &mut String,
) {
    let [committed, others @ ..] = counts;
    let committed = match report.has_number() {
        true => committed.to_string(),
        false => String::from("-"),
    };
    let _ = write!(out, "<tr{class}><td>{name}</td><td>{committed}</td>");
    for count in others {
        let _ = write!(out, "<td>{count}</td>");
    }
    for quantile in [0.5, 0.95, 0.99, 0.999, 0.9999] {
        let value = match response_at(quantile).filter(|_| has_percentiles(report)) {
            Some(us) => duration(us),
            None => String::from("-"),
        };
        let _ = write!(out, "<td>{value}</td>");
    }
    out.push_str("</tr>");
}

fn charts(report: &RunReport, out: &mut String) {
    if !report.has_number() {
        return;
    }
    let _ = write!(out, "<h2>Throughput</h2>{}", throughput(report));
    super::boxes::html(report, out);
    if has_percentiles(report) {
        let _ = write!(out, "<h2>Response time over time</h2>{}", responses(report));
        let _ = write!(
            out,
            "<h2>Response time by percentile</h2>{}",
            spectrum(report)
        );
    }
}

fn measured_from(report: &RunReport) -> Option<f64> {
    let first = report.timeline.iter().find(|second| second.measured)?;
    Some(first.second as f64)
}

fn throughput(report: &RunReport) -> String {
    let is_seen = |number: usize| report.timeline.iter().any(|it| it.committed[number] > 0);
    let of_kind = |(number, kind): (usize, &KindReport)| Series {
        name: kind.name.to_string(),
        colour: COLOURS[number % COLOURS.len()],
        points: report
            .timeline
            .iter()
            .map(|second| (second.second as f64, second.committed[number] as f64))
            .collect(),
    };
    let all = Series {
        name: String::from("all"),
        colour: "currentColor",
        points: report
            .timeline
            .iter()
            .map(|second| {
                (
                    second.second as f64,
                    second.committed.iter().sum::<u64>() as f64,
                )
            })
            .collect(),
    };
    let mut series = vec![all];
    let kinds = report.kinds.iter().enumerate();
    // Those of TPC-C are always shown: that one has no commits is news.
    let kinds = kinds.filter(|(number, _)| *number < TPCC_KINDS || is_seen(*number));
    series.extend(kinds.map(of_kind));
    let axes = Axes {
        x_title: "seconds",
        y_title: "commits per second (the measured phase is shaded)",
        log_y: false,
        x_labels: Vec::new(),
        y_label: number,
        measured_from: measured_from(report),
    };
    lines(&axes, &series)
}

fn responses(report: &RunReport) -> String {
    let line = |name: &str, colour, of: fn(&Second) -> u64| Series {
        name: name.to_string(),
        colour,
        points: report
            .timeline
            .iter()
            .filter(|second| second.p50_us > 0)
            .map(|second| (second.second as f64, of(second) as f64))
            .collect(),
    };
    let axes = Axes {
        x_title: "seconds",
        y_title: "response time in each second, logarithmic",
        log_y: true,
        x_labels: Vec::new(),
        y_label: time,
        measured_from: measured_from(report),
    };
    let series = [
        line("p50", COLOURS[0], |second| second.p50_us),
        line("p99", COLOURS[4], |second| second.p99_us),
    ];
    lines(&axes, &series)
}

fn spectrum(report: &RunReport) -> String {
    let steps: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];
    // Each nine gets the same width.
    let place = |quantile: f64| -(1.0 - quantile).log10();
    let label = |quantile: f64| format!("{}", (quantile * 10_000.0).round() / 100.0);
    let axes = Axes {
        x_title: "percentile",
        y_title: "response time, logarithmic",
        log_y: true,
        x_labels: [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]
            .map(|q| (place(q), label(q)))
            .to_vec(),
        y_label: time,
        measured_from: None,
    };
    let kinds = report.kinds.iter().enumerate();
    let with_samples = kinds.filter(|(_, kind)| !kind.tally.response.is_empty());
    let of_kind = |(number, kind): (usize, &KindReport)| Series {
        name: kind.name.to_string(),
        colour: COLOURS[number % COLOURS.len()],
        points: steps
            .iter()
            .filter_map(|&q| Some((place(q), kind.tally.response_at(q)? as f64)))
            .collect(),
    };
    lines(&axes, &with_samples.map(of_kind).collect::<Vec<Series>>())
}

fn conditions(report: &RunReport, out: &mut String) {
    let Some(check) = &report.consistency else {
        return;
    };
    out.push_str(
        "<h2>Consistency conditions</h2><div class=\"scroll\"><table><tr><th>clause</th>\
         <th class=\"text\">condition</th><th>compared</th><th>failures</th><th>verdict</th></tr>",
    );
    for condition in &check.conditions {
        let (class, word) = if condition.passed() {
            ("good", "passed")
        } else {
            ("bad", "failed")
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"text\">{}{}</td><td>{}</td><td>{}</td>\
             <td class=\"{class}\">{word}</td></tr>",
            condition.clause,
            escape(condition.title),
            condition
                .counterexample
                .as_ref()
                .map_or(String::new(), |text| format!(
                    "<br><small>{}</small>",
                    escape(text)
                )),
            condition.compared,
            condition.failures,
        );
    }
    out.push_str("</table></div>");
}

fn audits(report: &RunReport, out: &mut String) {
    out.push_str(
        "<h2>Audits</h2><div class=\"scroll\"><table><tr><th>clause</th>\
         <th class=\"text\">what</th><th>samples</th><th>observed</th>\
         <th>allowed</th><th>verdict</th></tr>",
    );
    for finding in &report.audits {
        let class = match finding.verdict {
            Verdict::Passed => "good",
            Verdict::Failed => "bad",
            Verdict::NotApplicable => "dim",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"text\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"{class}\">{}</td></tr>",
            finding.clause,
            escape(finding.title),
            finding.samples,
            escape(&finding.observed),
            escape(&finding.allowed),
            verdict(finding.verdict),
        );
    }
    out.push_str("</table></div>");
}

fn settings(report: &RunReport, out: &mut String) {
    out.push_str("<h2>Settings</h2><div class=\"scroll\"><table>");
    let mut row = |name: &str, value: &str| {
        let (name, value) = (escape(name), escape(value));
        let _ = write!(
            out,
            "<tr><td>{name}</td><td class=\"text any\">{value}</td></tr>"
        );
    };
    let endpoints: Vec<String> = report
        .target
        .endpoints
        .iter()
        .map(ToString::to_string)
        .collect();
    row("server", &report.server.version);
    row("endpoints", &endpoints.join(", "));
    row("database", &report.target.database);
    if let Some(protocol) = &report.server.protocol {
        row("protocol", protocol);
    }
    row("seed", &report.options.seed.to_string());
    row("clients", &report.options.clients.to_string());
    for (name, value) in &report.description.parameters {
        row(name, value);
    }
    for (name, value) in &report.counters {
        row(&format!("counter {name}"), &value.to_string());
    }
    out.push_str("</table></div>");
}

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
