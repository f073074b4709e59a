//! Names, kinds and meanings of the metrics.

use parse::show::Show;
use txn::Counters;

/// Kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It only grows, from 0 at the start of the node.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts of classes.
    Histogram,
}

impl Kind {
    /// The word in the text format.
    pub fn word(self) -> &'static str {
        match self {
            Counter => "counter",
            Gauge => "gauge",
            Histogram => "histogram",
        }
    }
}

/// A metric: all its samples have this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: Kind,
    /// What it says, for people.
    pub help: &'static str,
}

use Kind::{Counter, Gauge, Histogram};

/// A metric that is a column of a SHOW: statement, column, name, kind, meaning.
pub(crate) type Column = (Show, &'static str, &'static str, Kind, &'static str);

/// Those of each shard.
pub(crate) const COLUMNS: &[Column] = &[
    (
        Show::Memory,
        "rows",
        "trellis_rows",
        Gauge,
        "Rows of the shard.",
    ),
    (
        Show::Memory,
        "versions",
        "trellis_row_versions",
        Gauge,
        "Values of rows, older ones included.",
    ),
    (
        Show::Memory,
        "row_bytes",
        "trellis_row_bytes",
        Gauge,
        "Memory of the rows.",
    ),
    (
        Show::Memory,
        "locks",
        "trellis_locks",
        Gauge,
        "Locks that are held.",
    ),
    (
        Show::Memory,
        "statement_bytes",
        "trellis_statement_bytes",
        Gauge,
        "Memory of running statements.",
    ),
    (
        Show::Ownership,
        "rows_away",
        "trellis_leap_rows_away",
        Gauge,
        "Rows at home here that another shard has.",
    ),
    (
        Show::Ownership,
        "rows_here",
        "trellis_leap_rows_here",
        Gauge,
        "Rows here that are at home elsewhere.",
    ),
    (
        Show::Ownership,
        "backup_rows",
        "trellis_leap_backup_rows",
        Gauge,
        "Copies kept of rows on their way.",
    ),
    (
        Show::Ownership,
        "owner_table_bytes",
        "trellis_leap_owner_table_bytes",
        Gauge,
        "Memory of the table of owners.",
    ),
    (
        Show::Ownership,
        "moved_in_total",
        "trellis_leap_moved_in_total",
        Counter,
        "Rows that came.",
    ),
    (
        Show::Ownership,
        "moved_out_total",
        "trellis_leap_moved_out_total",
        Counter,
        "Rows that went.",
    ),
    (
        Show::Ownership,
        "refused_total",
        "trellis_leap_refused_total",
        Counter,
        "Requests for rows that were refused.",
    ),
    (
        Show::Stages,
        "queue",
        "trellis_stage_queue",
        Gauge,
        "What waits in front of a stage.",
    ),
    (
        Show::Stages,
        "queue_max",
        "trellis_stage_queue_max",
        Gauge,
        "The longest queue of late.",
    ),
    (
        Show::Stages,
        "items_total",
        "trellis_stage_items_total",
        Counter,
        "Pieces of work of a stage.",
    ),
    (
        Show::Stages,
        "service_us_mean",
        "trellis_stage_service_us_mean",
        Gauge,
        "Mean time of one of late, microseconds.",
    ),
    (
        Show::Stages,
        "service_us_p99",
        "trellis_stage_service_us_p99",
        Gauge,
        "99 of 100 took no longer, microseconds.",
    ),
    (
        Show::Stages,
        "conflict_potential",
        "trellis_conflict_potential",
        Gauge,
        "Mean conflict potential of late, 0 to 1.",
    ),
    (
        Show::Databases,
        "tables",
        "trellis_database_tables",
        Gauge,
        "Tables of a database.",
    ),
    (
        Show::Databases,
        "sessions",
        "trellis_sessions",
        Gauge,
        "Clients of a database on this shard.",
    ),
    (
        Show::Databases,
        "rows",
        "trellis_database_rows",
        Gauge,
        "Rows of a database on this shard.",
    ),
    (
        Show::Databases,
        "row_bytes",
        "trellis_database_row_bytes",
        Gauge,
        "Memory of them, indexes included.",
    ),
];

/// Columns that are the same for all shards of a node: the first one tells.
pub(crate) const OF_NODE: &[Column] = &[
    (
        Show::Memory,
        "node_journal_bytes",
        "trellis_journal_buffer_bytes",
        Gauge,
        "Journal that is buffered.",
    ),
    (
        Show::Memory,
        "node_used_bytes",
        "trellis_memory_used_bytes",
        Gauge,
        "Memory of the process, as it counts itself.",
    ),
    (
        Show::Memory,
        "node_writes_until_bytes",
        "trellis_memory_writes_until_bytes",
        Gauge,
        "From here on writes are refused; 0: no limit.",
    ),
    (
        Show::Memory,
        "node_limit_bytes",
        "trellis_memory_limit_bytes",
        Gauge,
        "The limit of memory.",
    ),
];

/// What is not a column of a SHOW: name, kind, meaning.
pub(crate) const OTHERS: &[(&str, Kind, &str)] = &[
    (
        "trellis_up",
        Gauge,
        "1: the node answers. Labels: its number and version.",
    ),
    (
        "trellis_incarnation",
        Gauge,
        "Counts the starts of the node.",
    ),
    (
        "trellis_shard_up",
        Gauge,
        "0: the shard has not answered in time; its other metrics are missing.",
    ),
    (
        "trellis_node_connected",
        Gauge,
        "1: the first shard has a connection to the node.",
    ),
    (
        "trellis_connections",
        Gauge,
        "Connections of clients, logged in or not.",
    ),
    (
        "trellis_connections_max",
        Gauge,
        "The limit of connections.",
    ),
    (
        "trellis_journal_end_bytes",
        Counter,
        "Position of the end of the journal.",
    ),
    (
        "trellis_journal_durable_bytes",
        Counter,
        "Position to which the journal is durable.",
    ),
    (
        "trellis_journal_flushes_total",
        Counter,
        "Forced writes of the journal.",
    ),
    (
        "trellis_checkpoints_total",
        Counter,
        "Checkpoints that were completed since the start.",
    ),
    (
        "trellis_checkpoint_running",
        Gauge,
        "1: a checkpoint is being written.",
    ),
    (
        "trellis_checkpoint_last_bytes",
        Gauge,
        "Size of the last whole checkpoint.",
    ),
    (
        "trellis_in_doubt_transactions",
        Gauge,
        "Transactions in doubt.",
    ),
    (
        "trellis_transactions_total",
        Counter,
        "Transactions of clients that ended, by outcome.",
    ),
    (
        "trellis_transaction_seconds",
        Histogram,
        "From the begin of a transaction to its commit, pauses of the client included.",
    ),
];

/// The metric of a counter of SHOW COUNTERS.
pub(crate) fn of_counter(name: &str) -> String {
    format!("trellis_{name}_total")
}

/// All metrics in the order in which they are told.
pub fn all() -> Vec<Family> {
    let family = |name: &str, kind, help| Family {
        name: name.to_owned(),
        kind,
        help,
    };
    let columns = OF_NODE.iter().chain(COLUMNS);
    let columns = columns.map(|(_, _, name, kind, help)| family(name, *kind, help));
    let counters = Counters::default();
    let counters = counters.list().map(|(name, _)| {
        let help = Counters::meaning(name).unwrap_or_default();
        family(&of_counter(name), Counter, help)
    });
    let others = OTHERS
        .iter()
        .map(|(name, kind, help)| family(name, *kind, help));
    others.chain(columns).chain(counters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = include_str!("../../../docs/metrics.md");
    const DASHBOARD: &str = include_str!("../../../docs/grafana.json");

    fn names_in(text: &str) -> BTreeSet<&str> {
        let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let words = text.split(|char| !is_part(char));
        words.filter(|word| word.starts_with("trellis_")).collect()
    }

    #[test]
    fn no_name_is_there_twice_and_all_have_their_form() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|family| &*family.name).collect();
        assert_eq!(names.len(), all.len());
        for family in &all {
            let ends = family.name.ends_with("_total") || family.name.ends_with("_bytes");
            assert!(family.kind != Counter || ends, "{}", family.name);
            assert!(!family.help.is_empty(), "{}", family.name);
        }
    }

    #[test]
    fn columns_exist() {
        for (show, column, ..) in OF_NODE.iter().chain(COLUMNS) {
            let columns = show.columns();
            let mut names = columns.iter().map(|column| &*column.name);
            assert!(
                names.any(|name| name == *column),
                "{show:?} has no {column}"
            );
        }
    }

    #[test]
    fn the_document_lists_each() {
        let listed = names_in(DOCUMENT);
        let counters: BTreeSet<String> = Counters::default()
            .list()
            .map(|(name, _)| of_counter(name))
            .collect();
        for family in all() {
            // Those of SHOW COUNTERS are named by rule.
            let is_known = listed.contains(&*family.name) || counters.contains(&family.name);
            assert!(is_known, "docs/metrics.md does not list {}", family.name);
        }
        let all: BTreeSet<String> = all().into_iter().map(|family| family.name).collect();
        for name in listed {
            assert!(all.contains(name), "docs/metrics.md lists {name}");
        }
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let all: BTreeSet<String> = all().into_iter().map(|family| family.name).collect();
        let mut asked = 0;
        for panel in panels {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let expression = target["expr"].as_str().expect("an expression");
                for name in names_in(expression) {
                    let name = name.strip_suffix("_bucket").unwrap_or(name);
                    assert!(all.contains(name), "{name}: {expression}");
                    asked += 1;
                }
            }
        }
        assert!(asked >= 15, "{asked} metrics on the dashboard");
    }
}
