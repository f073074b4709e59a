//! What SHOW tells of the cluster: its words, what they ask for, and the columns of the answers.

use base::{OutColumn, SqlError, Type};
use pg_catalog::settings;

/// What SHOW can list beside settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Show {
    /// Per shard and stage: queue length, service time, instructions.
    Stages,
    /// Per table: rows, bytes and slots by shard.
    Placement,
    /// Per shard: rows, versions, locks, statements; and the memory of its node.
    Memory,
    /// Nodes with address, incarnation, state.
    Nodes,
    /// Counters summed over the cluster: name, value.
    Counters,
    /// Per shard: rows away from home, rows of other homes here, moves by kind.
    Ownership,
    /// Rows that have moved most since they left home: where they are, how often.
    Hottest,
    /// Sessions: who they are, what they do and for how long.
    Sessions,
    /// Transactions whose outcome only a node knows that cannot be reached: by shard.
    InDoubt,
    /// Sessions with points in time; for pg_stat_activity.
    Activity,
    /// Databases: protocol, execution, tables, sessions, bytes.
    Databases,
    /// Tables of the session's database: columns, indexes, partition columns, rows, bytes.
    Tables,
    /// Bytes of the rows of every key space of every database: number, bytes. Only for the size
    /// functions.
    Sizes,
    /// Rows of the tables of the session's database, about: number of the table, rows. Each shard
    /// adds a row of NULLs, to show that it has answered.
    Rows,
}

/// Names and types.
type Columns = &'static [(&'static str, Type)];

const STAGES: Columns = &[
    ("shard", Type::Text),
    ("stage", Type::Text),
    ("items_total", Type::Int8),
    ("items_per_step_max", Type::Int8),
    ("calls_total", Type::Int8),
    ("call_ns_mean", Type::Int8),
];
const PLACEMENT: Columns = &[
    ("table", Type::Text),
    ("index", Type::Text),
    ("shard", Type::Text),
    ("slots", Type::Int8),
    ("rows", Type::Int8),
    ("row_bytes", Type::Int8),
];
const OWNERSHIP: Columns = &[
    ("shard", Type::Text),
    ("rows_away", Type::Int8),
    ("rows_here", Type::Int8),
    ("backup_rows", Type::Int8),
    ("owner_table_bytes", Type::Int8),
    ("moved_in_total", Type::Int8),
    ("moved_out_total", Type::Int8),
    ("moved_in_per_second", Type::Int8),
    ("moved_out_per_second", Type::Int8),
    // By who has the row that this shard wants: another, where this one is its home; its
    // home; a third.
    ("in_back_home", Type::Int8),
    ("in_from_home", Type::Int8),
    ("in_from_third", Type::Int8),
    ("refused_total", Type::Int8),
];
const HOTTEST: Columns = &[
    ("table", Type::Text),
    ("index", Type::Text),
    ("key", Type::Text),
    ("home", Type::Text),
    ("owner", Type::Text),
    ("moves", Type::Int8),
];
const NODES: Columns = &[
    ("node", Type::Int4),
    ("address", Type::Text),
    ("incarnation", Type::Int8),
    ("state", Type::Text),
    ("shards", Type::Int4),
];
const COUNTERS: Columns = &[
    ("name", Type::Text),
    ("value", Type::Int8),
    ("meaning", Type::Text),
];
const SESSIONS: Columns = &[
    ("pid", Type::Int4),
    ("node", Type::Int4),
    ("client", Type::Text),
    ("application_name", Type::Text),
    ("user", Type::Text),
    ("database", Type::Text),
    ("protocol", Type::Text),
    ("isolation", Type::Text),
    ("state", Type::Text),
    ("transaction_ms", Type::Int8),
    ("statement_ms", Type::Int8),
    ("statement", Type::Text),
];
const ACTIVITY: Columns = &[
    ("pid", Type::Int4),
    ("user", Type::Text),
    ("database", Type::Text),
    ("application_name", Type::Text),
    ("client_addr", Type::Text),
    ("client_port", Type::Int4),
    ("backend_start", Type::Timestamptz(None)),
    ("xact_start", Type::Timestamptz(None)),
    ("query_start", Type::Timestamptz(None)),
    ("state_change", Type::Timestamptz(None)),
    ("state", Type::Text),
    ("statement", Type::Text),
];
const DATABASES: Columns = &[
    ("database", Type::Text),
    ("protocol", Type::Text),
    ("execution", Type::Text),
    ("tables", Type::Int8),
    ("sessions", Type::Int8),
    ("rows", Type::Int8),
    ("row_bytes", Type::Int8),
];
const TABLES: Columns = &[
    ("table", Type::Text),
    ("columns", Type::Int8),
    ("indexes", Type::Int8),
    ("partition_by", Type::Text),
    ("rows", Type::Int8),
    ("row_bytes", Type::Int8),
];
/// Columns of SHOW MEMORY: of a shard, and of its node.
const MEMORY: Columns = &[
    ("shard", Type::Text),
    ("rows", Type::Int8),
    ("versions", Type::Int8),
    ("row_bytes", Type::Int8),
    ("locks", Type::Int8),
    ("statement_bytes", Type::Int8),
    ("node_journal_bytes", Type::Int8),
    ("node_used_bytes", Type::Int8),
    ("node_writes_until_bytes", Type::Int8),
    ("node_limit_bytes", Type::Int8),
];
const IN_DOUBT: Columns = &[
    ("shard", Type::Text),
    ("transaction", Type::Text),
    ("state", Type::Text),
    ("coordinator", Type::Int4),
    ("age_ms", Type::Int8),
    ("rows", Type::Int8),
    ("waiters", Type::Int8),
];
const ROWS: Columns = &[("table", Type::Int8), ("rows", Type::Int8)];
const SIZES: Columns = &[("index", Type::Int8), ("bytes", Type::Int8)];

/// What SHOW tells of the cluster, in the order of the alphabet: its words and what they ask for.
/// `docs/show.md` describes each.
pub const TOPICS: [(&[&str], Show); 11] = [
    (&["COUNTERS"], Show::Counters),
    (&["DATABASES"], Show::Databases),
    (&["HOTTEST"], Show::Hottest),
    (&["IN", "DOUBT"], Show::InDoubt),
    (&["MEMORY"], Show::Memory),
    (&["NODES"], Show::Nodes),
    (&["OWNERSHIP"], Show::Ownership),
    (&["PLACEMENT"], Show::Placement),
    (&["SESSIONS"], Show::Sessions),
    (&["STAGES"], Show::Stages),
    (&["TABLES"], Show::Tables),
];

/// For those who ask for something else.
pub fn show_hint() -> String {
    let topics: Vec<String> = TOPICS.iter().map(|(words, _)| words.join(" ")).collect();
    let topics = topics.join(", ");
    format!("SHOW ALL lists the settings. SHOW tells of the cluster, too: {topics}.")
}

/// The error of SHOW for a setting that does not exist: SHOW tells of other things as well.
pub fn unknown_to_show(name: &str) -> SqlError {
    settings::unknown(name).hint(show_hint())
}

/// Names and types of the columns that the node answers for each kind of SHOW.
pub fn show_columns(what: Show) -> Vec<OutColumn> {
    let columns = match what {
        Show::Stages => STAGES,
        Show::Placement => PLACEMENT,
        Show::Ownership => OWNERSHIP,
        Show::Hottest => HOTTEST,
        Show::Nodes => NODES,
        Show::Counters => COUNTERS,
        Show::Sessions => SESSIONS,
        Show::Activity => ACTIVITY,
        Show::Databases => DATABASES,
        Show::Tables => TABLES,
        Show::Sizes => SIZES,
        Show::Rows => ROWS,
        Show::Memory => MEMORY,
        Show::InDoubt => IN_DOUBT,
    };
    columns
        .iter()
        .map(|(name, ty)| OutColumn {
            name: (*name).to_string(),
            ty: *ty,
            table: 0,
            attribute: 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_on_the_page() {
        let page = include_str!("../../../../docs/show.md");
        for (words, what) in TOPICS {
            let title = format!("## SHOW {}\n", words.join(" "));
            let (_, rest) = page.split_once(&title).expect(&title);
            let section = rest.split("\n## ").next().unwrap_or(rest);
            for column in show_columns(what) {
                let cell = format!("| `{}` |", column.name);
                assert!(section.contains(&cell), "{title}{cell}");
            }
        }
    }

    #[test]
    fn who_asks_for_something_unknown_is_told_what_there_is() {
        let hint = show_hint();
        for (words, _) in TOPICS {
            assert!(hint.contains(&words.join(" ")), "{hint}");
        }
        assert!(hint.len() < 200, "{hint}");
    }
}
