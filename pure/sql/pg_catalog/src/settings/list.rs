//! The settings that exist, in order of name.
//!
//! Many only exist because clients, dumps and ORMs set them: of those only the default is taken.

use super::Kind::{self, Alias, Bool, Encoding, Enum, Real, SchemaList, Text, TimeZone};
use super::Unit::{self, Blocks, KiB, Millis, Seconds};
use super::{Context, SERVER_VERSION, Setting};

/// Largest value of most integer settings, as in PostgreSQL.
const INT_MAX: i64 = i32::MAX as i64;

/// Message levels from the least to the most severe.
const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning",
    "error",
];

/// Isolation levels as SHOW prints them.
const ISOLATION_LEVELS: &[&str] = &[
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
];

/// How reads are kept valid until the commit.
const READ_POLICIES: &[&str] = &["optimistic", "pessimistic"];

/// When PostgreSQL plans a prepared statement anew.
const PLAN_CACHE_MODES: &[&str] = &["auto", "force_generic_plan", "force_custom_plan"];

/// A switch that cannot be off.
const ON: &[(&str, &str)] = &[("on", "on"), ("true", "on"), ("yes", "on"), ("1", "on")];

/// Text is UTF-8 everywhere. SQL_ASCII means "do not convert", which comes to the same.
const ENCODINGS: &[(&str, &str)] = &[
    ("utf8", "UTF8"),
    ("unicode", "UTF8"),
    ("sqlascii", "SQL_ASCII"),
];

/// Dates are printed and read in ISO order.
const DATE_STYLES: &[(&str, &str)] = &[
    ("iso,mdy", "ISO, MDY"),
    ("iso", "ISO, MDY"),
    ("mdy", "ISO, MDY"),
    ("us", "ISO, MDY"),
    ("iso,us", "ISO, MDY"),
    ("default", "ISO, MDY"),
];

/// Why the switches of PostgreSQL's planner are fixed.
const NO_HINTS: &str = "The planner takes no hints.";

/// A whole number of `unit` from `min` to `max`.
const fn integer(min: i64, max: i64, unit: Unit) -> Kind {
    Kind::Integer { min, max, unit }
}

/// A whole number without unit from `min` to `max`.
const fn count(min: i64, max: i64) -> Kind {
    integer(min, max, Unit::None)
}

impl Setting {
    /// Only the default is taken, because only that tells the truth; the description says why.
    const fn fixed(self) -> Setting {
        Setting {
            is_fixed: true,
            ..self
        }
    }

    /// The client is told about each change.
    const fn reported(self) -> Setting {
        Setting {
            reported: true,
            ..self
        }
    }
}

/// A row per setting: name, context, `fixed` or `reported` where it is, kind, default, description.
macro_rules! settings {
    ($($name:literal $context:ident $($mark:ident)?, $kind:expr, $default:expr,
        $description:expr;)*) => {
        &[$(Setting {
            name: $name,
            kind: $kind,
            default: $default,
            context: Context::$context,
            reported: false,
            is_fixed: false,
            description: $description,
        }$(.$mark())?),*]
    };
}

/// Every known setting, in order of name without regard to case.
pub const SETTINGS: &[Setting] = settings! {
    "admission_potential" User, count(1, 100), "100",
        "Conflict potential in percent above which a statement waits for older transactions.";
    "admission_wait" User, integer(1, 60_000, Millis), "10ms",
        "Ends the wait of a statement for older transactions: then it runs.";
    "application_name" User reported, Text, "",
        "Sets the application name to be reported in statistics and logs.";
    "backslash_quote" User fixed, Enum(&["safe_encoding", "on", "off"]), "safe_encoding",
        "Backslashes are ordinary characters in string literals.";
    "block_size" Internal, count(8192, 8192), "8192",
        "Shows the size of a disk block.";
    "bytea_output" User, Alias(&[("hex", "hex")]), "hex",
        "Sets the output format for bytea.";
    "check_function_bodies" User, Bool, "on",
        "Off: the body of a new function or procedure is not checked until it is called.";
    "client_encoding" User reported, Encoding(ENCODINGS), "UTF8",
        "Sets the client's character set encoding.";
    "client_min_messages" User, Enum(LEVELS), "notice",
        "Sets the message levels that are sent to the client.";
    "cursor_tuple_fraction" User fixed, Real { min: 0.0, max: 1.0 }, "0.1",
        "Cursors are planned like other queries.";
    "data_checksums" Internal, Bool, "on",
        "Shows whether stored data is checksummed.";
    "DateStyle" User reported, Alias(DATE_STYLES), "ISO, MDY",
        "Sets the display format for date and time values.";
    "deadlock_timeout" User fixed, integer(1, INT_MAX, Millis), "1s",
        "Deadlocks are prevented, not looked for.";
    "debug_print_plan" User fixed, Bool, "off",
        "Plans are not logged: see EXPLAIN.";
    "default_statistics_target" User fixed, count(1, 10000), "100",
        "Tables have no statistics of values.";
    "default_table_access_method" User fixed, Text, "heap",
        "Tables are kept in one way.";
    "default_tablespace" User, Alias(&[("", ""), ("pg_default", "pg_default")]), "",
        "There is one tablespace.";
    "default_text_search_config" User fixed, Text, "pg_catalog.simple",
        "There is no text search.";
    "default_transaction_deferrable" User, Bool, "off",
        "Makes READ ONLY transactions ask all shards first, so that none fails (40001).";
    "default_transaction_isolation" User, Enum(ISOLATION_LEVELS), "serializable",
        "Sets the isolation level of each new transaction.";
    "default_transaction_read_only" User reported, Bool, "off",
        "Sets the default read-only status of new transactions.";
    "early_answer" User, Bool, "on",
        "Answers a commit of several nodes when all have promised durably.";
    "effective_cache_size" User fixed, integer(1, INT_MAX, Blocks), "4GB",
        "All rows are in memory.";
    "enable_bitmapscan" User fixed, Bool, "off", NO_HINTS;
    "enable_hashagg" User fixed, Bool, "on", NO_HINTS;
    "enable_hashjoin" User fixed, Bool, "on", NO_HINTS;
    "enable_indexonlyscan" User fixed, Bool, "on", NO_HINTS;
    "enable_indexscan" User fixed, Bool, "on", NO_HINTS;
    "enable_material" User fixed, Bool, "off", NO_HINTS;
    "enable_mergejoin" User fixed, Bool, "off", NO_HINTS;
    "enable_nestloop" User fixed, Bool, "on", NO_HINTS;
    "enable_seqscan" User fixed, Bool, "on", NO_HINTS;
    "enable_sort" User fixed, Bool, "on", NO_HINTS;
    "escape_string_warning" User, Bool, "on",
        "Moot: backslashes in string literals are never escapes.";
    "extra_float_digits" User, count(1, 3), "1",
        "Floats are printed with as many digits as tell them apart.";
    "fsync" Start, Bool, "on",
        "Forces the journal to disk before a commit is answered.";
    "geqo" User fixed, Bool, "off",
        "Orders of joins are not searched genetically.";
    "idle_in_transaction_session_timeout" User, integer(0, INT_MAX, Millis), "0",
        "Ends a session that idles in a transaction for that long.";
    "idle_session_timeout" User, integer(0, INT_MAX, Millis), "0",
        "Ends a session that idles outside a transaction for that long.";
    "in_doubt_timeout" User, integer(0, INT_MAX, Millis), "1s",
        "Ends a statement that waits that long for a transaction in doubt.";
    "in_hot_standby" Internal reported, Bool, "off",
        "Shows whether the server is a read-only copy.";
    "integer_datetimes" Internal reported, Bool, "on",
        "Shows whether timestamps are integers.";
    "IntervalStyle" User reported,
        Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]), "postgres",
        "Sets the display format for interval values.";
    "is_superuser" Internal reported, Bool, "on",
        "Shows whether the user may do everything.";
    "jit" User fixed, Bool, "off",
        "Expressions are not compiled.";
    "lc_collate" Internal, Text, "C.UTF-8",
        "Shows the order of text.";
    "lc_ctype" Internal, Text, "C.UTF-8",
        "Shows the order of text.";
    "lc_messages" User fixed, Text, "C",
        "Messages are in English.";
    "lc_monetary" User fixed, Text, "C",
        "There is one locale.";
    "lc_numeric" User fixed, Text, "C",
        "There is one locale.";
    "lc_time" User fixed, Text, "C",
        "There is one locale.";
    "lock_timeout" User, integer(0, INT_MAX, Millis), "0",
        "Ends a statement that waits that long for a lock.";
    "log_min_duration_statement" Superuser, integer(-1, INT_MAX, Millis), "-1",
        "Logs statements that take this long; -1: as the node says.";
    "log_statement" User fixed, Enum(&["none", "ddl", "mod", "all"]), "none",
        "Statements are not logged.";
    "maintenance_work_mem" User fixed, integer(1024, INT_MAX, KiB), "64MB",
        "Memory is limited by the node, not by session.";
    "max_connections" Start, count(1, 262143), "1000",
        "Shows the largest number of connections of this node (`connections` in the cluster file).";
    "max_identifier_length" Internal, count(63, 63), "63",
        "Shows the largest length of an identifier in bytes.";
    "max_index_keys" Internal, count(32, 32), "32",
        "Shows the largest number of columns of an index.";
    "max_parallel_workers_per_gather" User fixed, count(0, 1024), "0",
        "Shards work in parallel without workers of their own.";
    "max_prepared_transactions" Start, count(0, 262143), "0",
        "Shows that PREPARE TRANSACTION is not supported.";
    "password_encryption" User fixed, Enum(&["md5", "scram-sha-256"]), "scram-sha-256",
        "Passwords are kept as SCRAM verifiers.";
    "pg_stat_statements.max" Internal, count(5000, 5000), "5000",
        "Shows how many statements a node counts: the least used go.";
    "pg_stat_statements.save" Internal, Bool, "off",
        "Counts of statements end with their node.";
    "pg_stat_statements.track" Superuser, Enum(&["none", "top"]), "top",
        "Selects which statements are counted: none, or those that clients send.";
    "pg_stat_statements.track_planning" Superuser fixed, Bool, "off",
        "Planning is not counted.";
    "pg_stat_statements.track_utility" Superuser fixed, Bool, "on",
        "All statements are counted.";
    "plan_cache_mode" User fixed, Enum(PLAN_CACHE_MODES), "auto",
        "Plans are made once for all parameters.";
    "port" Start, count(1, 65535), "5432",
        "Shows the port of this server.";
    "quote_all_identifiers" User fixed, Bool, "off",
        "Names are quoted where they must be.";
    "random_page_cost" User fixed, Real { min: 0.0, max: 1e308 }, "4",
        "The planner counts rows, not pages.";
    "read_policy" User, Enum(READ_POLICIES), "optimistic",
        "How SERIALIZABLE reads under the protocol formula: judged at the commit, or under locks.";
    "row_security" User, Bool, "on",
        "Off: a statement that policies of row security concern is refused.";
    "search_path" User, SchemaList, "\"$user\", public",
        "Names are looked up in pg_catalog and public: a list without public is refused.";
    "seq_page_cost" User fixed, Real { min: 0.0, max: 1e308 }, "1",
        "The planner counts rows, not pages.";
    "server_encoding" Internal reported, Text, "UTF8",
        "Shows the encoding of stored text.";
    "server_version" Internal reported, Text, SERVER_VERSION,
        "Shows the version of the server.";
    "server_version_num" Internal, count(150000, 150000), "150000",
        "Shows the version of the server as a number.";
    "session_authorization" Internal reported, Text, "trellis",
        "Shows the name of the session's user.";
    "session_replication_role" Superuser, Enum(&["origin", "replica", "local"]), "origin",
        "Sets the session's behavior for triggers and rewrite rules.";
    "shared_buffers" Start, integer(16, INT_MAX, Blocks), "128MB",
        "Shows a size that tools expect: all rows are in memory.";
    "ssl" Start, Bool, "off",
        "Shows whether encrypted connections are accepted.";
    "standard_conforming_strings" User reported, Alias(ON), "on",
        "Backslashes are ordinary characters in string literals.";
    "statement_memory" User, integer(64, 64 << 20, KiB), "1GB",
        "Memory that a statement may hold for sorting, joining, grouping and long values.";
    "statement_timeout" User, integer(0, INT_MAX, Millis), "0",
        "Ends a statement that runs for that long.";
    "superuser_reserved_connections" Start, count(0, 262143), "0",
        "Shows that no connections are kept free.";
    "synchronize_seqscans" User fixed, Bool, "off",
        "Scans do not share their work.";
    "synchronous_commit" User, Enum(&["on", "off", "local", "remote_write", "remote_apply"]), "on",
        "Sets whether COMMIT waits until the transaction is durable.";
    "tcp_keepalives_idle" User fixed, integer(0, INT_MAX, Seconds), "0",
        "The operating system decides.";
    "temp_buffers" User fixed, integer(100, 1073741823, Blocks), "8MB",
        "Rows of temporary tables are kept as others are.";
    "TimeZone" User reported, TimeZone, "UTC",
        "Sets the time zone for displaying and interpreting timestamps.";
    "transaction_deferrable" User, Bool, "off",
        "Shows whether a READ ONLY transaction asks all shards first, so that it does not fail.";
    "transaction_isolation" User, Enum(ISOLATION_LEVELS), "serializable",
        "Shows the isolation level of the transaction.";
    "transaction_read_only" User, Bool, "off",
        "Shows whether the transaction is read-only.";
    "transform_null_equals" User fixed, Bool, "off",
        "A comparison with NULL is NULL.";
    "vacuum_cost_delay" User fixed, count(0, 100), "0",
        "There is nothing to vacuum.";
    "wal_level" Start, Enum(&["minimal", "replica", "logical"]), "replica",
        "Shows what tools expect: the journal is not PostgreSQL's.";
    "work_mem" User fixed, integer(64, INT_MAX, KiB), "4MB",
        "statement_memory limits what a statement holds.";
    "xmloption" User fixed, Enum(&["content", "document"]), "content",
        "There is no type xml.";
};
