//! What SHOW tells of the cluster: its words, how shards answer, and the columns of the answers.

use base::{OutColumn, SqlError, Type};
use pg_catalog::settings;
use serde::{Deserialize, Serialize};

/// How the parts of the shards become one answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// All rows, in the order of their columns.
    Sorted,
    /// All rows as they come: who asks adds them up.
    AsTheyCome,
    /// Only the shard of the session is asked: each has a view of its own.
    OwnView,
    /// Rows that agree in the columns before this one become one, with the sums of the others.
    SumFrom(usize),
    /// (name, value) of all shards become (name, sum, meaning), in the order of the first shard.
    ByName,
    /// This many rows with the largest values in the last column.
    Top(usize),
}

/// Makes [`Show`] and what is known of each: its words (none: only statements of the server ask
/// for it), how the parts of the shards become one answer, names and types of the columns.
macro_rules! shows {
    ($(
        $(#[$doc:meta])*
        $show:ident: [$($word:literal),*], $combine:expr, [$($column:expr),* $(,)?];
    )*) => {
        /// What SHOW can list beside settings.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum Show {
            $($(#[$doc])* $show,)*
        }

        impl Show {
            /// All of them.
            const ALL: &[Show] = &[$(Show::$show,)*];

            /// The words behind SHOW; none: clients cannot ask for it.
            pub fn words(self) -> &'static [&'static str] {
                match self { $(Show::$show => &[$($word),*],)* }
            }

            /// How the parts of the shards become one answer.
            pub fn combine(self) -> Combine {
                use Combine::*;
                match self { $(Show::$show => $combine,)* }
            }

            /// Names and types of the columns.
            fn names(self) -> &'static [(&'static str, Type)] {
                match self { $(Show::$show => &[$($column),*],)* }
            }
        }
    };
}

// Those with words in the order of the alphabet. `docs/show.md` describes each.
shows! {
    /// Counters summed over the cluster: name, value.
    Counters: ["COUNTERS"], ByName, [
        ("name", Type::Text),
        ("value", Type::Int8),
        ("meaning", Type::Text),
    ];
    /// Databases: protocol, execution, tables, sessions, bytes.
    Databases: ["DATABASES"], SumFrom(4), [
        ("database", Type::Text),
        ("protocol", Type::Text),
        ("execution", Type::Text),
        ("tables", Type::Int8),
        ("sessions", Type::Int8),
        ("rows", Type::Int8),
        ("row_bytes", Type::Int8),
    ];
    /// Rows that have moved most since they left home: where they are, how often.
    Hottest: ["HOTTEST"], Top(20), [
        ("table", Type::Text),
        ("index", Type::Text),
        ("key", Type::Text),
        ("home", Type::Text),
        ("owner", Type::Text),
        ("moves", Type::Int8),
    ];
    /// Transactions whose outcome only a node knows that cannot be reached: by shard.
    InDoubt: ["IN", "DOUBT"], Sorted, [
        ("shard", Type::Text),
        ("transaction", Type::Text),
        ("state", Type::Text),
        ("coordinator", Type::Int4),
        ("age_ms", Type::Int8),
        ("rows", Type::Int8),
        ("waiters", Type::Int8),
    ];
    /// Per shard: rows, versions, locks, statements; and the memory of its node.
    Memory: ["MEMORY"], Sorted, [
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
    /// Nodes with address, incarnation, state.
    Nodes: ["NODES"], OwnView, [
        ("node", Type::Int4),
        ("address", Type::Text),
        ("incarnation", Type::Int8),
        ("state", Type::Text),
        ("shards", Type::Int4),
    ];
    /// Per shard: rows away from home, rows of other homes here, moves by kind.
    Ownership: ["OWNERSHIP"], Sorted, [
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
    /// Per table: rows, bytes and slots by shard.
    Placement: ["PLACEMENT"], Sorted, [
        ("table", Type::Text),
        ("index", Type::Text),
        ("shard", Type::Text),
        ("slots", Type::Int8),
        ("rows", Type::Int8),
        ("row_bytes", Type::Int8),
    ];
    /// Sessions: who they are, what they do and for how long.
    Sessions: ["SESSIONS"], Sorted, [
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
    /// Per shard and stage: queue length, service time, instructions.
    Stages: ["STAGES"], Sorted, [
        ("shard", Type::Text),
        ("stage", Type::Text),
        ("items_total", Type::Int8),
        ("items_per_step_max", Type::Int8),
        ("calls_total", Type::Int8),
        ("call_ns_mean", Type::Int8),
    ];
    /// Tables of the session's database: columns, indexes, partition columns, rows, bytes.
    Tables: ["TABLES"], SumFrom(4), [
        ("table", Type::Text),
        ("columns", Type::Int8),
        ("indexes", Type::Int8),
        ("partition_by", Type::Text),
        ("rows", Type::Int8),
        ("row_bytes", Type::Int8),
    ];
    /// Sessions with points in time; for pg_stat_activity.
    Activity: [], Sorted, [
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
    /// Bytes of the rows of every key space of every database: number, bytes. Only for the size
    /// functions.
    Sizes: [], AsTheyCome, [("index", Type::Int8), ("bytes", Type::Int8)];
    /// Rows of the tables of the session's database, about: number of the table, rows. Each shard
    /// adds a row of NULLs, to show that it has answered.
    Rows: [], AsTheyCome, [("table", Type::Int8), ("rows", Type::Int8)];
}

impl Show {
    /// Those that clients may ask for, in the order of the alphabet.
    pub fn topics() -> impl Iterator<Item = Show> {
        let all = Show::ALL.iter().copied();
        all.filter(|show| !show.words().is_empty())
    }

    /// Names and types of the columns that the node answers.
    pub fn columns(self) -> Vec<OutColumn> {
        let column = |(name, ty): &(&str, Type)| OutColumn {
            name: (*name).to_string(),
            ty: *ty,
            table: 0,
            attribute: 0,
        };
        self.names().iter().map(column).collect()
    }
}

/// For those who ask for something else.
pub fn show_hint() -> String {
    let topics: Vec<String> = Show::topics().map(|show| show.words().join(" ")).collect();
    let topics = topics.join(", ");
    format!("SHOW ALL lists the settings. SHOW tells of the cluster, too: {topics}.")
}

/// The error of SHOW for a setting that does not exist: SHOW tells of other things as well.
pub fn unknown_to_show(name: &str) -> SqlError {
    settings::unknown(name).hint(show_hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_on_the_page() {
        let page = include_str!("../../../../docs/show.md");
        for what in Show::topics() {
            let title = format!("## SHOW {}\n", what.words().join(" "));
            let (_, rest) = page.split_once(&title).expect(&title);
            let section = rest.split("\n## ").next().unwrap_or(rest);
            for column in what.columns() {
                let cell = format!("| `{}` |", column.name);
                assert!(section.contains(&cell), "{title}{cell}");
            }
        }
    }

    #[test]
    fn who_asks_for_something_unknown_is_told_what_there_is() {
        let hint = show_hint();
        for what in Show::topics() {
            assert!(hint.contains(&what.words().join(" ")), "{hint}");
        }
        assert!(hint.len() < 200, "{hint}");
    }
}
