//! What SHOW tells of the cluster: its words, how shards answer, and the columns of the answers.

use base::Type::{self, Float8, Int4, Int8, Text};
use base::{OutColumn, SqlError};
use pg_catalog::settings;
use serde::{Deserialize, Serialize};

const TIMESTAMPTZ: Type = Type::Timestamptz(None);

/// How the parts of the shards become one answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// All rows, in the order of their columns.
    Sorted,
    /// All rows as they come: the statement that asks adds them up.
    AsTheyCome,
    /// Only the shard of the session is asked: each has a view of its own.
    OwnView,
    /// The session answers by itself, without a transaction.
    OwnSession,
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
        $show:ident: [$($word:literal),*], $combine:expr, [$($column:ident $ty:ident),*];
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
                match self { $(Show::$show => &[$((stringify!($column), $ty)),*],)* }
            }
        }
    };
}

// The place of each is its number in messages between nodes: a new one comes last. `docs/show.md`
// describes those with words.
shows! {
    /// Counters summed over the cluster: name, value.
    Counters: ["COUNTERS"], ByName, [name Text, value Int8, meaning Text];
    /// Databases: protocol, execution, tables, sessions, bytes.
    Databases: ["DATABASES"], SumFrom(4), [
        database Text, protocol Text, execution Text, tables Int8, sessions Int8, rows Int8,
        row_bytes Int8
    ];
    /// Committed transactions of the session's database by the nodes that they have touched.
    Distribution: ["DISTRIBUTION"], SumFrom(1), [nodes Int8, transactions Int8];
    /// Rows that have moved most since they left home: where they are, how often.
    Hottest: ["HOTTEST"], Top(20), [
        table Text, index Text, key Text, home Text, owner Text, moves Int8
    ];
    /// Transactions whose outcome only a node knows that cannot be reached: by shard.
    InDoubt: ["IN", "DOUBT"], Sorted, [
        shard Text, transaction Text, state Text, coordinator Int4, age_ms Int8, rows Int8,
        waiters Int8
    ];
    /// Per shard: rows, versions, locks, statements; and the memory of its node.
    Memory: ["MEMORY"], Sorted, [
        shard Text, rows Int8, versions Int8, row_bytes Int8, locks Int8, statement_bytes Int8,
        node_journal_bytes Int8, node_used_bytes Int8, node_writes_until_bytes Int8,
        node_limit_bytes Int8
    ];
    /// Nodes with address, incarnation, state.
    Nodes: ["NODES"], OwnView, [node Int4, address Text, incarnation Int8, state Text, shards Int4];
    /// Per shard: rows away from home, rows of other homes here, moves by kind.
    Ownership: ["OWNERSHIP"], Sorted, [
        shard Text, rows_away Int8, rows_here Int8, backup_rows Int8, owner_table_bytes Int8,
        moved_in_total Int8, moved_out_total Int8, moved_in_per_second Int8,
        moved_out_per_second Int8,
        // Moves to this shard by the shard that had the row: any, of a row at home here; the home
        // of the row; a third.
        in_back_home Int8, in_from_home Int8, in_from_third Int8, refused_total Int8
    ];
    /// Rows with the most formulas that are not applied yet: of whom, who waits.
    Pending: ["PENDING"], Top(20), [
        shard Text, table Text, index Text, key Text, committed Int8, oldest_transaction Text,
        coordinator Int4, age_ms Int8, waiters Int8, formulas Int8
    ];
    /// Per table: rows, bytes and slots by shard.
    Placement: ["PLACEMENT"], Sorted, [
        table Text, index Text, shard Text, slots Int8, rows Int8, row_bytes Int8, version Int8,
        owner_version Int8
    ];
    /// Sessions: their clients, what they do and for how long.
    Sessions: ["SESSIONS"], Sorted, [
        pid Int4, node Int4, client Text, application_name Text, user Text, database Text,
        protocol Text, isolation Text, state Text, transaction_ms Int8, statement_ms Int8,
        statement Text
    ];
    /// Per shard and stage, and per node: queue length, service time, conflict potential.
    Stages: ["STAGES"], Sorted, [
        node Int4, shard Text, stage Text, queue Int8, queue_max Int8, items_total Int8,
        service_us_mean Float8, service_us_p99 Float8, conflict_potential Float8
    ];
    /// Tables of the session's database: columns, indexes, partition columns, rows, bytes.
    Tables: ["TABLES"], SumFrom(4), [
        table Text, columns Int8, indexes Int8, partition_by Text, rows Int8, row_bytes Int8
    ];
    /// Rows for whose locks most operations wait: who holds them, since when.
    Waiters: ["WAITERS"], Top(20), [
        shard Text, table Text, index Text, key Text, holder Text, age_ms Int8, waiters Int8
    ];
    /// Sessions with points in time; for pg_stat_activity.
    Activity: [], Sorted, [
        pid Int4, user Text, database Text, application_name Text, client_addr Text,
        client_port Int4, backend_start TIMESTAMPTZ, xact_start TIMESTAMPTZ,
        query_start TIMESTAMPTZ, state_change TIMESTAMPTZ, state Text, statement Text
    ];
    /// Bytes of the rows of every key space of every database: number, bytes. Only for the size
    /// functions.
    Sizes: [], AsTheyCome, [index Int8, bytes Int8];
    /// Rows of the tables of the session's database, about: number of the table, rows, how often
    /// their values were looked at. Each shard adds a row without a table, to show that it has
    /// answered; its `version` is 1 if the shard is looking at values.
    Rows: [], AsTheyCome, [table Int8, rows Int8, version Int8];
    /// What the transaction that ended last in this session has cost.
    TransactionCost: ["TRANSACTION", "COST"], OwnSession, [
        outcome Text, nodes_touched Int4, nodes Int4, shards Int4, messages Int8,
        messages_after Int8, messages_in_node Int8, message_bytes Int8, delays Int8,
        forced_writes Int8, rows_moved Int8, move_wait_us Int8, retries Int8, duration_us Int8
    ];
    /// Locks for which requests wait, with those in their way, and the sessions of the transactions
    /// that each shard coordinates: rows with a `pid` are the latter. For pg_locks.
    Locks: [], AsTheyCome, [
        transaction Text, pid Int4, kind Text, database Int8, relation Int8, page Int4, tuple Int4,
        mode Text, waitstart TIMESTAMPTZ
    ];
    /// Counters of each shard.
    ShardCounters: ["SHARD", "COUNTERS"], Sorted, [shard Text, name Text, value Int8];
    /// What is in the columns of the tables of the session's database: the digests of the crate
    /// `statistics`. `value` is of any type.
    Values: [], AsTheyCome, [table Int8, column Int8, what Int8, value Text, number Float8];
    /// As `Rows`, and an order: to look at the values of all tables.
    Analyze: [], AsTheyCome, [table Int8, rows Int8, version Int8];
    /// What statements have cost, by role, database and normal text; for pg_stat_statements.
    /// `spread` is the sum of the squares of what each time differs from the mean.
    Statements: [], AsTheyCome, [
        user Int8, database Int8, id Int8, query Text, calls Int8, rows Int8, total_us Int8,
        min_us Int8, max_us Int8, spread Float8
    ];
    /// An order to forget these costs; no rows.
    ForgetStatements: [], AsTheyCome, [user Int8];
}

impl Show {
    /// Those that clients may ask for, in the order of the alphabet.
    pub fn topics() -> impl Iterator<Item = Show> {
        let all = Show::ALL.iter().copied();
        let mut topics: Vec<Show> = all.filter(|show| !show.words().is_empty()).collect();
        topics.sort_by_key(|show| show.words());
        topics.into_iter()
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

/// The hint of the error for any other word behind SHOW.
pub fn show_hint() -> String {
    let topics: Vec<String> = Show::topics().map(|show| show.words().join(" ")).collect();
    let topics = topics.join(", ");
    format!("SHOW ALL lists the settings. Others are: {topics}.")
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
        assert!(hint.len() < 240, "{hint}");
    }
}
