//! From what shards and node tell to samples.

use crate::families::{COLUMNS, Column, OF_NODE, of_counter};
use crate::page::Page;
use base::{Datum, RowBatch};
use node::Report;
use parse::show::Show;
use txn::touched::{Ends, duration_class_us};

/// What is told of the node besides its shards.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// Number of the node.
    pub node: u16,
    /// Counts the starts of the node.
    pub incarnation: u32,
    /// Connections of clients.
    pub connections: u32,
    /// Their limit.
    pub connections_max: u32,
    /// Position of the end of the journal.
    pub journal_end: u64,
    /// Position to which it is durable.
    pub journal_durable: u64,
    /// Forced writes of it.
    pub journal_flushes: u64,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
    /// One is being written.
    pub checkpoint_running: bool,
    /// Size of the last whole one.
    pub checkpoint_bytes: u64,
}

/// The text of all metrics. `None`: the shard has not answered in time.
pub fn page(facts: &NodeFacts, shards: &[(String, Option<Box<Report>>)]) -> String {
    let mut page = Page::new();
    of_node(&mut page, facts);
    for (at, (shard, report)) in shards.iter().enumerate() {
        let up = f64::from(u8::from(report.is_some()));
        page.add("trellis_shard_up", &[("shard", shard)], up);
        let Some(report) = report else { continue };
        for (show, rows) in &report.rows {
            if at == 0 {
                of_columns(&mut page, OF_NODE, *show, rows, None);
            }
            match show {
                Show::ShardCounters => of_counters(&mut page, shard, rows),
                Show::Nodes if at == 0 => of_peers(&mut page, facts.node, rows),
                Show::InDoubt => {
                    let count = f64::from(rows.rows);
                    page.add("trellis_in_doubt_transactions", &[("shard", shard)], count);
                }
                _ => of_columns(&mut page, COLUMNS, *show, rows, Some(shard)),
            }
        }
        for (database, protocol, ends) in &report.databases {
            let labels = [
                ("shard", &**shard),
                ("database", database),
                ("protocol", protocol),
            ];
            of_database(&mut page, labels, ends);
        }
    }
    page.text()
}

fn of_node(page: &mut Page, facts: &NodeFacts) {
    let NodeFacts {
        node,
        incarnation,
        connections,
        connections_max,
        journal_end,
        journal_durable,
        journal_flushes,
        checkpoints,
        checkpoint_running,
        checkpoint_bytes,
    } = facts;
    let labels = [
        ("node", &*node.to_string()),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    page.add("trellis_up", &labels, 1.0);
    for (name, value) in [
        ("trellis_incarnation", f64::from(*incarnation)),
        ("trellis_connections", f64::from(*connections)),
        ("trellis_connections_max", f64::from(*connections_max)),
        ("trellis_journal_end_bytes", *journal_end as f64),
        ("trellis_journal_durable_bytes", *journal_durable as f64),
        ("trellis_journal_flushes_total", *journal_flushes as f64),
        ("trellis_checkpoints_total", *checkpoints as f64),
        ("trellis_checkpoint_last_bytes", *checkpoint_bytes as f64),
        (
            "trellis_checkpoint_running",
            f64::from(u8::from(*checkpoint_running)),
        ),
    ] {
        page.add(name, &[], value);
    }
}

fn number(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Int(value) => Some(*value as f64),
        Datum::Float(value) => Some(*value),
        _ => None,
    }
}

fn text(datum: &Datum) -> Option<&str> {
    match datum {
        Datum::Text(value) => Some(value),
        _ => None,
    }
}

/// Values of columns, with the texts of the row that tell it from others.
fn of_columns(page: &mut Page, known: &[Column], show: Show, rows: &RowBatch, of: Option<&str>) {
    let columns = show.columns();
    let at = |name: &str| columns.iter().position(|column| column.name == name);
    let labels = ["stage", "database", "protocol"].map(|name| (name, at(name)));
    let own_shard = at("shard");
    for row in rows.iter() {
        let mut found: Vec<(&str, &str)> = Vec::new();
        // A stage that the shards of a node have in common is no shard's.
        let is_common = own_shard.is_some_and(|at| row[at] == Datum::Null);
        found.extend(of.filter(|_| !is_common).map(|shard| ("shard", shard)));
        for (label, at) in labels {
            found.extend(at.and_then(|at| text(&row[at])).map(|text| (label, text)));
        }
        for (_, column, name, ..) in known.iter().filter(|(of, ..)| *of == show) {
            if let Some(value) = at(column).and_then(|at| number(&row[at])) {
                page.add(name, &found, value);
            }
        }
    }
}

fn of_counters(page: &mut Page, shard: &str, rows: &RowBatch) {
    for row in rows.iter() {
        if let (Some(name), Some(value)) = (text(&row[1]), number(&row[2])) {
            page.add(&of_counter(name), &[("shard", shard)], value);
        }
    }
}

/// Which nodes the first shard is connected to.
fn of_peers(page: &mut Page, own: u16, rows: &RowBatch) {
    for row in rows.iter() {
        if let (Some(node), Some(state)) = (number(&row[0]), text(&row[3]))
            && node != f64::from(own)
        {
            let up = f64::from(u8::from(state == "up"));
            page.add("trellis_node_connected", &[("node", &node.to_string())], up);
        }
    }
}

fn of_database(page: &mut Page, own: [(&str, &str); 3], ends: &Ends) {
    let committed: u64 = ends.durations.iter().sum();
    for (outcome, count) in [("committed", committed), ("aborted", ends.aborted)] {
        let labels = [own[0], own[1], own[2], ("outcome", outcome)];
        page.add("trellis_transactions_total", &labels, count as f64);
    }
    let name = "trellis_transaction_seconds";
    let mut sum = 0;
    for (class, count) in ends.durations.iter().enumerate() {
        sum += count;
        let limit = match duration_class_us(class) {
            Some(us) => (us as f64 / 1e6).to_string(),
            None => "+Inf".to_owned(),
        };
        let labels = [own[0], own[1], own[2], ("le", &*limit)];
        page.add_part(name, "_bucket", &labels, sum as f64);
    }
    page.add_part(name, "_sum", &own, ends.duration_us as f64 / 1e6);
    page.add_part(name, "_count", &own, committed as f64);
}
