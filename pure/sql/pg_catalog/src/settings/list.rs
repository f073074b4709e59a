//! The settings that exist, in order of name.
//!
//! Many only exist because clients, dumps and ORMs set them: of those only the default is taken.

use super::{Context, Kind, SERVER_VERSION, Setting, Unit};

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

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    context: Context,
    description: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        default,
        context,
        reported: false,
        is_fixed: false,
        description,
    }
}

/// A setting of which only the default is taken, because only that tells the truth; the description
/// says why.
const fn fixed(setting: Setting) -> Setting {
    Setting {
        is_fixed: true,
        ..setting
    }
}

/// A switch of PostgreSQL's planner.
const fn no_hint(name: &'static str, default: &'static str) -> Setting {
    let description = "The planner takes no hints.";
    fixed(setting(
        name,
        Kind::Bool,
        default,
        Context::User,
        description,
    ))
}

/// A setting that the client is told about.
const fn reported(setting: Setting) -> Setting {
    Setting {
        reported: true,
        ..setting
    }
}

/// Every known setting, in order of name without regard to case.
pub const SETTINGS: &[Setting] = &[
    reported(setting(
        "application_name",
        Kind::Text,
        "",
        Context::User,
        "Sets the application name to be reported in statistics and logs.",
    )),
    fixed(setting(
        "backslash_quote",
        Kind::Enum(&["safe_encoding", "on", "off"]),
        "safe_encoding",
        Context::User,
        "Backslashes are ordinary characters in string literals.",
    )),
    setting(
        "block_size",
        Kind::Integer {
            min: 8192,
            max: 8192,
            unit: Unit::None,
        },
        "8192",
        Context::Internal,
        "Shows the size of a disk block.",
    ),
    setting(
        "bytea_output",
        Kind::Alias(&[("hex", "hex")]),
        "hex",
        Context::User,
        "Sets the output format for bytea.",
    ),
    reported(setting(
        "client_encoding",
        Kind::Encoding(ENCODINGS),
        "UTF8",
        Context::User,
        "Sets the client's character set encoding.",
    )),
    setting(
        "client_min_messages",
        Kind::Enum(LEVELS),
        "notice",
        Context::User,
        "Sets the message levels that are sent to the client.",
    ),
    fixed(setting(
        "cursor_tuple_fraction",
        Kind::Real { min: 0.0, max: 1.0 },
        "0.1",
        Context::User,
        "Cursors are planned like other queries.",
    )),
    setting(
        "data_checksums",
        Kind::Bool,
        "on",
        Context::Internal,
        "Shows whether stored data is checksummed.",
    ),
    reported(setting(
        "DateStyle",
        Kind::Alias(DATE_STYLES),
        "ISO, MDY",
        Context::User,
        "Sets the display format for date and time values.",
    )),
    fixed(setting(
        "deadlock_timeout",
        Kind::Integer {
            min: 1,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "1s",
        Context::User,
        "Deadlocks are prevented, not looked for.",
    )),
    fixed(setting(
        "debug_print_plan",
        Kind::Bool,
        "off",
        Context::User,
        "Plans are not logged: see EXPLAIN.",
    )),
    fixed(setting(
        "default_statistics_target",
        Kind::Integer {
            min: 1,
            max: 10000,
            unit: Unit::None,
        },
        "100",
        Context::User,
        "Tables have no statistics of values.",
    )),
    fixed(setting(
        "default_table_access_method",
        Kind::Text,
        "heap",
        Context::User,
        "Tables are kept in one way.",
    )),
    fixed(setting(
        "default_tablespace",
        Kind::Text,
        "",
        Context::User,
        "There are no tablespaces.",
    )),
    fixed(setting(
        "default_text_search_config",
        Kind::Text,
        "pg_catalog.simple",
        Context::User,
        "There is no text search.",
    )),
    fixed(setting(
        "default_transaction_deferrable",
        Kind::Bool,
        "off",
        Context::User,
        "Transactions are not deferrable: READ ONLY ones never fail.",
    )),
    setting(
        "default_transaction_isolation",
        Kind::Enum(ISOLATION_LEVELS),
        "serializable",
        Context::User,
        "Sets the isolation level of each new transaction.",
    ),
    reported(setting(
        "default_transaction_read_only",
        Kind::Bool,
        "off",
        Context::User,
        "Sets the default read-only status of new transactions.",
    )),
    fixed(setting(
        "effective_cache_size",
        Kind::Integer {
            min: 1,
            max: INT_MAX,
            unit: Unit::Blocks,
        },
        "4GB",
        Context::User,
        "All rows are in memory.",
    )),
    no_hint("enable_bitmapscan", "off"),
    no_hint("enable_hashagg", "on"),
    no_hint("enable_hashjoin", "on"),
    no_hint("enable_indexonlyscan", "on"),
    no_hint("enable_indexscan", "on"),
    no_hint("enable_material", "off"),
    no_hint("enable_mergejoin", "off"),
    no_hint("enable_nestloop", "on"),
    no_hint("enable_seqscan", "on"),
    no_hint("enable_sort", "on"),
    setting(
        "escape_string_warning",
        Kind::Bool,
        "on",
        Context::User,
        "Moot: backslashes in string literals are never escapes.",
    ),
    setting(
        "extra_float_digits",
        Kind::Integer {
            min: 1,
            max: 3,
            unit: Unit::None,
        },
        "1",
        Context::User,
        "Floats are printed with as many digits as tell them apart.",
    ),
    setting(
        "fsync",
        Kind::Bool,
        "on",
        Context::Start,
        "Forces the journal to disk before a commit is answered.",
    ),
    fixed(setting(
        "geqo",
        Kind::Bool,
        "off",
        Context::User,
        "Orders of joins are not searched genetically.",
    )),
    setting(
        "idle_in_transaction_session_timeout",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "0",
        Context::User,
        "Ends a session that idles in a transaction for that long.",
    ),
    setting(
        "idle_session_timeout",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "0",
        Context::User,
        "Ends a session that idles outside a transaction for that long.",
    ),
    setting(
        "in_doubt_timeout",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "1s",
        Context::User,
        "Ends a statement that waits that long for a transaction in doubt.",
    ),
    reported(setting(
        "in_hot_standby",
        Kind::Bool,
        "off",
        Context::Internal,
        "Shows whether the server is a read-only copy.",
    )),
    reported(setting(
        "integer_datetimes",
        Kind::Bool,
        "on",
        Context::Internal,
        "Shows whether timestamps are integers.",
    )),
    reported(setting(
        "IntervalStyle",
        Kind::Alias(&[("postgres", "postgres")]),
        "postgres",
        Context::User,
        "Sets the display format for interval values.",
    )),
    reported(setting(
        "is_superuser",
        Kind::Bool,
        "on",
        Context::Internal,
        "Shows whether the user may do everything.",
    )),
    fixed(setting(
        "jit",
        Kind::Bool,
        "off",
        Context::User,
        "Expressions are not compiled.",
    )),
    setting(
        "lc_collate",
        Kind::Text,
        "C.UTF-8",
        Context::Internal,
        "Shows the order of text.",
    ),
    setting(
        "lc_ctype",
        Kind::Text,
        "C.UTF-8",
        Context::Internal,
        "Shows the order of text.",
    ),
    fixed(setting(
        "lc_messages",
        Kind::Text,
        "C",
        Context::User,
        "Messages are in English.",
    )),
    fixed(setting(
        "lc_monetary",
        Kind::Text,
        "C",
        Context::User,
        "There is one locale.",
    )),
    fixed(setting(
        "lc_numeric",
        Kind::Text,
        "C",
        Context::User,
        "There is one locale.",
    )),
    fixed(setting(
        "lc_time",
        Kind::Text,
        "C",
        Context::User,
        "There is one locale.",
    )),
    setting(
        "lock_timeout",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "0",
        Context::User,
        "Ends a statement that waits that long for a lock.",
    ),
    fixed(setting(
        "log_min_duration_statement",
        Kind::Integer {
            min: -1,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "-1",
        Context::User,
        "Statements are not logged.",
    )),
    fixed(setting(
        "log_statement",
        Kind::Enum(&["none", "ddl", "mod", "all"]),
        "none",
        Context::User,
        "Statements are not logged.",
    )),
    fixed(setting(
        "maintenance_work_mem",
        Kind::Integer {
            min: 1024,
            max: INT_MAX,
            unit: Unit::KiB,
        },
        "64MB",
        Context::User,
        "Memory is limited by the node, not by session.",
    )),
    setting(
        "max_connections",
        Kind::Integer {
            min: 1,
            max: 262143,
            unit: Unit::None,
        },
        "1000",
        Context::Start,
        "Shows the largest number of connections of this node (`connections` in the cluster file).",
    ),
    setting(
        "max_identifier_length",
        Kind::Integer {
            min: 63,
            max: 63,
            unit: Unit::None,
        },
        "63",
        Context::Internal,
        "Shows the largest length of an identifier in bytes.",
    ),
    setting(
        "max_index_keys",
        Kind::Integer {
            min: 32,
            max: 32,
            unit: Unit::None,
        },
        "32",
        Context::Internal,
        "Shows the largest number of columns of an index.",
    ),
    fixed(setting(
        "max_parallel_workers_per_gather",
        Kind::Integer {
            min: 0,
            max: 1024,
            unit: Unit::None,
        },
        "0",
        Context::User,
        "Shards work in parallel without workers of their own.",
    )),
    setting(
        "max_prepared_transactions",
        Kind::Integer {
            min: 0,
            max: 262143,
            unit: Unit::None,
        },
        "0",
        Context::Start,
        "Shows that PREPARE TRANSACTION is not supported.",
    ),
    fixed(setting(
        "password_encryption",
        Kind::Enum(&["md5", "scram-sha-256"]),
        "scram-sha-256",
        Context::User,
        "There are no passwords.",
    )),
    fixed(setting(
        "plan_cache_mode",
        Kind::Enum(&["auto", "force_generic_plan", "force_custom_plan"]),
        "auto",
        Context::User,
        "Plans are made once for all parameters.",
    )),
    setting(
        "port",
        Kind::Integer {
            min: 1,
            max: 65535,
            unit: Unit::None,
        },
        "5432",
        Context::Start,
        "Shows the port of this server.",
    ),
    fixed(setting(
        "quote_all_identifiers",
        Kind::Bool,
        "off",
        Context::User,
        "Names are quoted where they must be.",
    )),
    fixed(setting(
        "random_page_cost",
        Kind::Real {
            min: 0.0,
            max: 1e308,
        },
        "4",
        Context::User,
        "The planner counts rows, not pages.",
    )),
    setting(
        "row_security",
        Kind::Bool,
        "on",
        Context::User,
        "Moot: there are no row policies.",
    ),
    setting(
        "search_path",
        Kind::SchemaList,
        "\"$user\", public",
        Context::User,
        "Names are looked up in pg_catalog and public: a list without public is refused.",
    ),
    fixed(setting(
        "seq_page_cost",
        Kind::Real {
            min: 0.0,
            max: 1e308,
        },
        "1",
        Context::User,
        "The planner counts rows, not pages.",
    )),
    reported(setting(
        "server_encoding",
        Kind::Text,
        "UTF8",
        Context::Internal,
        "Shows the encoding of stored text.",
    )),
    reported(setting(
        "server_version",
        Kind::Text,
        SERVER_VERSION,
        Context::Internal,
        "Shows the version of the server.",
    )),
    setting(
        "server_version_num",
        Kind::Integer {
            min: 150000,
            max: 150000,
            unit: Unit::None,
        },
        "150000",
        Context::Internal,
        "Shows the version of the server as a number.",
    ),
    reported(setting(
        "session_authorization",
        Kind::Text,
        "trellis",
        Context::Internal,
        "Shows the name of the session's user.",
    )),
    fixed(setting(
        "session_replication_role",
        Kind::Enum(&["origin", "replica", "local"]),
        "origin",
        Context::User,
        "Constraints hold for every session.",
    )),
    setting(
        "shared_buffers",
        Kind::Integer {
            min: 16,
            max: INT_MAX,
            unit: Unit::Blocks,
        },
        "128MB",
        Context::Start,
        "Shows a size that tools expect: all rows are in memory.",
    ),
    setting(
        "ssl",
        Kind::Bool,
        "off",
        Context::Start,
        "Shows whether encrypted connections are accepted.",
    ),
    reported(setting(
        "standard_conforming_strings",
        Kind::Alias(&[("on", "on"), ("true", "on"), ("yes", "on"), ("1", "on")]),
        "on",
        Context::User,
        "Backslashes are ordinary characters in string literals.",
    )),
    setting(
        "statement_memory",
        Kind::Integer {
            min: 64,
            max: 64 << 20,
            unit: Unit::KiB,
        },
        "1GB",
        Context::User,
        "Memory that a statement may hold for sorting, joining, grouping and long values.",
    ),
    setting(
        "statement_timeout",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Millis,
        },
        "0",
        Context::User,
        "Ends a statement that runs for that long.",
    ),
    setting(
        "superuser_reserved_connections",
        Kind::Integer {
            min: 0,
            max: 262143,
            unit: Unit::None,
        },
        "0",
        Context::Start,
        "Shows that no connections are kept free.",
    ),
    fixed(setting(
        "synchronize_seqscans",
        Kind::Bool,
        "off",
        Context::User,
        "Scans do not share their work.",
    )),
    setting(
        "synchronous_commit",
        Kind::Enum(&["on", "off", "local", "remote_write", "remote_apply"]),
        "on",
        Context::User,
        "Sets whether COMMIT waits until the transaction is durable.",
    ),
    fixed(setting(
        "tcp_keepalives_idle",
        Kind::Integer {
            min: 0,
            max: INT_MAX,
            unit: Unit::Seconds,
        },
        "0",
        Context::User,
        "The operating system decides.",
    )),
    fixed(setting(
        "temp_buffers",
        Kind::Integer {
            min: 100,
            max: 1073741823,
            unit: Unit::Blocks,
        },
        "8MB",
        Context::User,
        "There are no temporary tables.",
    )),
    reported(setting(
        "TimeZone",
        Kind::TimeZone,
        "UTC",
        Context::User,
        "Sets the time zone for displaying and interpreting timestamps.",
    )),
    fixed(setting(
        "transaction_deferrable",
        Kind::Bool,
        "off",
        Context::User,
        "Transactions are not deferrable: READ ONLY ones never fail.",
    )),
    setting(
        "transaction_isolation",
        Kind::Enum(ISOLATION_LEVELS),
        "serializable",
        Context::User,
        "Shows the isolation level of the transaction.",
    ),
    setting(
        "transaction_read_only",
        Kind::Bool,
        "off",
        Context::User,
        "Shows whether the transaction is read-only.",
    ),
    fixed(setting(
        "transform_null_equals",
        Kind::Bool,
        "off",
        Context::User,
        "A comparison with NULL is NULL.",
    )),
    fixed(setting(
        "vacuum_cost_delay",
        Kind::Integer {
            min: 0,
            max: 100,
            unit: Unit::None,
        },
        "0",
        Context::User,
        "There is nothing to vacuum.",
    )),
    setting(
        "wal_level",
        Kind::Enum(&["minimal", "replica", "logical"]),
        "replica",
        Context::Start,
        "Shows what tools expect: the journal is not PostgreSQL's.",
    ),
    fixed(setting(
        "work_mem",
        Kind::Integer {
            min: 64,
            max: INT_MAX,
            unit: Unit::KiB,
        },
        "4MB",
        Context::User,
        "statement_memory limits what a statement holds.",
    )),
    fixed(setting(
        "xmloption",
        Kind::Enum(&["content", "document"]),
        "content",
        Context::User,
        "There is no type xml.",
    )),
];
