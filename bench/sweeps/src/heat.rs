//! What came out as one page with heat maps. It needs no network and no script.
//!
//! Rows of a map are faults, columns distribution and contention; what else differs between cells
//! has maps of its own. Each field says its number, the colour only helps to find it: it is laid
//! over the ground of the page, so it serves light and dark pages.

use crate::summary::{FAULT, Row, Spread, Summary};
use drive::report::escape;
use std::fmt::Write;

/// What a map shows, from most to least looked for.
const METRICS: [Metric; 4] = [
    Metric {
        title: "Throughput relative to the cell without fault",
        note: "1 is the same; a cell is compared with the one that differs in its fault only. The \
               measured phase counts as a whole, the seconds before and after the fault too.",
        needs_fault: true,
        value: |row| row.relative,
        text: |value| format!("{value:.2}"),
        colour: relative_colour,
    },
    Metric {
        title: "Depth of the fall",
        note: "1 is standstill, 0 no fall that stands out of the noise; of several faults the \
               deepest.",
        needs_fault: true,
        value: |row| row.depth.map(|it| it.mean),
        text: |value| format!("{:.0} %", 100.0 * value),
        colour: |value, _| format!("rgba(201,61,106,{:.2})", 0.75 * value.clamp(0.0, 1.0)),
    },
    Metric {
        title: "Seconds until the rate fell (t_detect)",
        note: "Of several faults the longest; a dash: it did not fall.",
        needs_fault: true,
        value: |row| row.t_detect.map(|it| it.mean),
        text: |value| format!("{value:.1} s"),
        colour: |value, most| format!("rgba(217,130,43,{:.2})", 0.7 * share(value, most)),
    },
    Metric {
        title: "Committed transactions per second",
        note: "Mean of the repetitions.",
        needs_fault: false,
        value: |row| row.rate.map(|it| it.mean),
        text: |value| match value {
            value if value < 100.0 => format!("{value:.1}"),
            value => format!("{value:.0}"),
        },
        colour: |value, most| format!("rgba(47,111,222,{:.2})", 0.6 * share(value, most)),
    },
];

/// A number of a row.
struct Metric {
    title: &'static str,
    note: &'static str,
    /// There is none where nothing is broken.
    needs_fault: bool,
    value: fn(&Row) -> Option<f64>,
    text: fn(f64) -> String,
    /// Of a value, and the largest one.
    colour: fn(f64, f64) -> String,
}

fn share(value: f64, most: f64) -> f64 {
    match most > 0.0 {
        true => (value / most).clamp(0.0, 1.0),
        false => 0.0,
    }
}

fn relative_colour(value: f64, _: f64) -> String {
    match value >= 1.0 {
        true => format!("rgba(47,158,98,{:.2})", (value - 1.0).min(0.6)),
        false => format!("rgba(201,61,106,{:.2})", 0.75 * (1.0 - value.max(0.0))),
    }
}

/// Keys whose values are columns, the outer ones first.
const DISTRIBUTION: [&str; 4] = ["distribution", "ratio", "degree", "nodes"];
const CONTENTION: [&str; 1] = ["contention"];

/// Which keys are where.
struct Shape {
    rows: Vec<String>,
    outer: Vec<String>,
    inner: Vec<String>,
    panels: Vec<String>,
}

impl Shape {
    fn of(summary: &Summary) -> Shape {
        let mut rest = summary.varied.clone();
        let mut take = |names: &[&str]| {
            let (taken, left) = rest
                .drain(..)
                .partition(|key| names.contains(&key.as_str()));
            rest = left;
            taken
        };
        let mut shape = Shape {
            rows: take(&[FAULT]),
            outer: take(&DISTRIBUTION),
            inner: take(&CONTENTION),
            panels: Vec::new(),
        };
        // A map needs two sides, whatever differs.
        if shape.rows.is_empty() && !rest.is_empty() {
            shape.rows.push(rest.remove(0));
        }
        if shape.outer.is_empty() && shape.inner.is_empty() && !rest.is_empty() {
            shape.outer.push(rest.remove(0));
        }
        shape.panels = rest;
        shape
    }
}

/// What a row says for some keys.
fn said(row: &Row, keys: &[String]) -> String {
    let parts: Vec<String> = keys
        .iter()
        .map(|key| format!("{key} {}", row.text(key)))
        .collect();
    parts.join(", ")
}

/// The different texts, in the order of the rows.
fn different(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

const STYLE: &str = "<style>.heat{width:auto}.heat td{text-align:center;min-width:4.2rem;\
    border:1px solid #e2e6ec}.heat th{text-align:center}.heat th.side{text-align:left;\
    font-weight:500;min-width:9rem;max-width:16rem;overflow-wrap:anywhere}\
    .map{margin:.4rem 0 1.4rem}\
    @media(prefers-color-scheme:dark){.heat td{border-color:#2a323d}}</style>";

/// The page of a sweep.
pub fn page(summary: &Summary) -> String {
    let mut body = String::from(STYLE);
    verdict(summary, &mut body);
    let shape = Shape::of(summary);
    for metric in &METRICS {
        maps(summary, &shape, metric, &mut body);
    }
    body.push_str("<h2>Cells</h2><div class=\"scroll\"><table><tr>");
    let line = |cells: &[String], tag: &str, out: &mut String| {
        for cell in cells {
            let _ = write!(out, "<{tag}>{}</{tag}>", escape(cell));
        }
        out.push_str("</tr>");
    };
    line(&summary.head(), "th", &mut body);
    for row in &summary.rows {
        body.push_str("<tr>");
        line(&summary.cells(row), "td", &mut body);
    }
    body.push_str("</table></div>");
    failures(summary, &mut body);
    body.push_str("<h2>Settings of all cells</h2><div class=\"scroll\"><table>");
    for (key, text) in &summary.fixed {
        let (key, text) = (escape(key), escape(text));
        let _ = write!(
            body,
            "<tr><td>{key}</td><td class=\"text any\">{text}</td></tr>"
        );
    }
    body.push_str("</table></div>");
    let data = summary.json().to_string().replace("</", "<\\/");
    let _ = write!(
        body,
        "<script type=\"application/json\" id=\"sweep\">{data}</script>"
    );
    drive::report::page(&format!("Sweep {}", escape(&summary.name)), &body)
}

fn verdict(summary: &Summary, out: &mut String) {
    let cells = summary.rows.len() * summary.repeats as usize;
    let (class, word) = match summary.failed {
        0 => ("good", format!("all {cells} cells have a result")),
        failed => ("bad", format!("{failed} of {cells} cells FAILED")),
    };
    let _ = write!(
        out,
        "<div class=\"verdict\"><div class=\"big {class}\">{word}</div><p>File {}; {} \
         combinations, {} of each; order of the cells: {}.</p>",
        escape(&summary.file),
        summary.rows.len(),
        match summary.repeats {
            1 => "one run".to_owned(),
            count => format!("{count} runs"),
        },
        escape(&summary.order),
    );
    if summary.repeats < 3 {
        out.push_str(
            "<p class=\"dim\">Fewer than three runs of each: differences between cells may be \
             chance.</p>",
        );
    } else {
        let width = |rate: Spread| (rate.high - rate.low) / rate.mean.max(f64::MIN_POSITIVE);
        let widest = summary.rows.iter().filter_map(|row| row.rate);
        let widest = widest.map(width).fold(0.0, f64::max);
        let _ = write!(
            out,
            "<p class=\"dim\">Widest spread of one combination: {:.0} % of its mean.</p>",
            100.0 * widest
        );
    }
    out.push_str("</div>");
}

fn maps(summary: &Summary, shape: &Shape, metric: &Metric, out: &mut String) {
    let values = summary.rows.iter().filter_map(metric.value);
    let most = values.clone().fold(0.0, f64::max);
    let breaks = summary.varied.iter().any(|key| key == FAULT)
        || summary
            .fixed
            .iter()
            .any(|(key, text)| key == FAULT && text != "none");
    if values.count() == 0 || (metric.needs_fault && !breaks) {
        return;
    }
    let (title, note) = (escape(metric.title), escape(metric.note));
    let _ = write!(out, "<h2>{title}</h2><p class=\"dim\">{note}</p>");
    for panel in different(summary.rows.iter().map(|row| said(row, &shape.panels))) {
        let rows = summary.rows.iter();
        let rows: Vec<&Row> = rows
            .filter(|row| said(row, &shape.panels) == panel)
            .collect();
        if !panel.is_empty() {
            let _ = write!(out, "<h3>{}</h3>", escape(&panel));
        }
        out.push_str("<div class=\"scroll map\"><table class=\"heat\">");
        map(&rows, shape, (metric, most), out);
        out.push_str("</table></div>");
    }
}

fn map(rows: &[&Row], shape: &Shape, (metric, most): (&Metric, f64), out: &mut String) {
    let outer = different(rows.iter().map(|row| said(row, &shape.outer)));
    let inner = different(rows.iter().map(|row| said(row, &shape.inner)));
    if !shape.outer.is_empty() {
        out.push_str("<tr><th></th>");
        for text in &outer {
            let (span, text) = (inner.len(), escape(text));
            let _ = write!(out, "<th colspan=\"{span}\">{text}</th>");
        }
        out.push_str("</tr>");
    }
    if !shape.inner.is_empty() {
        out.push_str("<tr><th></th>");
        for text in outer.iter().flat_map(|_| &inner) {
            let _ = write!(out, "<th>{}</th>", escape(text));
        }
        out.push_str("</tr>");
    }
    for side in different(rows.iter().map(|row| said(row, &shape.rows))) {
        let _ = write!(out, "<tr><th class=\"side\">{}</th>", escape(&side));
        for outer in &outer {
            for inner in &inner {
                let is_here = |row: &&&Row| {
                    said(row, &shape.rows) == side
                        && said(row, &shape.outer) == *outer
                        && said(row, &shape.inner) == *inner
                };
                field(rows.iter().find(is_here).copied(), metric, most, out);
            }
        }
        out.push_str("</tr>");
    }
}

fn field(row: Option<&Row>, metric: &Metric, most: f64, out: &mut String) {
    let _ = match row {
        Some(row) if row.rate.is_none() && row.failed > 0 => {
            write!(out, "<td class=\"bad\">failed</td>")
        }
        row => match row.and_then(metric.value) {
            Some(value) => write!(
                out,
                "<td style=\"background:{}\">{}</td>",
                (metric.colour)(value, most),
                escape(&(metric.text)(value))
            ),
            None => write!(out, "<td class=\"dim\">-</td>"),
        },
    };
}

fn failures(summary: &Summary, out: &mut String) {
    if summary.failed == 0 {
        return;
    }
    out.push_str("<h2>What failed</h2><ul>");
    for row in summary.rows.iter().filter(|row| row.failed > 0) {
        let keys = said(row, &summary.varied);
        for reason in &row.reasons {
            let (keys, reason) = (escape(&keys), escape(reason));
            let _ = write!(out, "<li>{keys}: <span class=\"bad\">{reason}</span></li>");
        }
    }
    out.push_str("</ul><p>The same command tries these again.</p>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::summary;

    #[test]
    fn a_page_has_the_numbers_and_loads_nothing() {
        let page = page(&summary());
        for wanted in [
            "Sweep a&lt;b",
            "3 of 12 cells FAILED",
            "<th colspan=\"1\">ratio 5</th>",
            "fault kill@a:1+1",
            "rgba(201,61,106,0.30)\">0.60</td>",
            "rgba(201,61,106,0.38)\">50 %</td>",
            "rgba(217,130,43,0.70)\">0.5 s</td>",
            "<td class=\"bad\">failed</td>",
            "not &lt;proven&gt;",
            "id=\"sweep\"",
        ] {
            assert!(page.contains(wanted), "{wanted}: {page}");
        }
        for outside in ["http:", "https:", "src=", "href=", "not <proven>"] {
            let shown = page.split("<script").next().unwrap();
            assert!(!shown.contains(outside), "{outside}");
        }
    }

    #[test]
    fn other_keys_have_maps_of_their_own() {
        let mut summary = summary();
        summary.varied = vec!["clients".into(), "ratio".into()];
        let shape = Shape::of(&summary);
        assert_eq!(
            (shape.rows, shape.outer, shape.panels),
            (
                vec!["clients".into()],
                vec!["ratio".into()],
                Vec::<String>::new()
            )
        );
    }
}
