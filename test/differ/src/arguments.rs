//! Texts that functions accept: formats, fields, patterns. A text drawn at random would almost
//! never be accepted.

use crate::values::pick;
use base::{Prng, Type};

/// Fields of dates and times.
pub(crate) const FIELDS: [&str; 20] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "quarter",
    "week",
    "dow",
    "doy",
    "isodow",
    "isoyear",
    "decade",
    "century",
    "millennium",
    "epoch",
    "milliseconds",
    "microseconds",
    "julian",
    "timezone",
];

/// A text, without quotes, for argument `at` of function `name`; `None`: any text will do.
pub(crate) fn text(prng: &mut Prng, name: &str, at: usize, types: &[Type]) -> Option<&'static str> {
    if let Some(from) = format(name, at, types) {
        return Some(pick(prng, from));
    }
    let from: &[&'static str] = match (name, at) {
        ("to_number", 0) => &["123", "1,234.5", "-12.3", "$45", "<7>", " 8 "],
        ("to_number", 1) => &["999", "9,999.9", "S99.9", "$99", "99PR", "999"],
        ("encode", 1) | ("decode", 1) => &["hex", "base64", "escape"],
        ("decode", 0) => &["6162", "YWI=", "abc", "", "DEADBEEF"],
        ("convert_from" | "convert_to", 1) => &["UTF8", "utf-8", "LATIN1"],
        ("~" | "~*" | "!~" | "!~*", 1)
        | ("regexp_match" | "regexp_like" | "regexp_count" | "regexp_replace", 1)
        | ("regexp_split_to_array" | "regexp_matches" | "substring", 1) => &[
            "a", "^a", "b$", "[a-c]+", "(a)(b)?", "\\d+", "\\w", ".", "a|b", "x*", "l{2}", "(?:o)",
            "[^a]", "\\s", "(l)\\1", "a.c",
        ],
        ("regexp_match" | "regexp_like" | "regexp_split_to_array", 2)
        | ("regexp_replace" | "regexp_count", 3) => &["i", "g", "gi", "n", "x", ""],
        ("regexp_replace", 2) => &["X", "<\\1>", "\\&\\&", ""],
        ("timezone" | "make_timestamptz", _) if types[at] == Type::Text => &[
            "UTC",
            "+02",
            "-05:30",
            "Europe/Berlin",
            "America/New_York",
            "GMT",
        ],
        ("format", 0) => &["%s", "%s-%s", "%I", "%L", "%%", "%1$s", "%-5s|", "%5s"],
        ("overlay", 1) | ("replace", _) | ("translate", _) | ("btrim" | "ltrim" | "rtrim", 1) => {
            &["a", "ab", "b", " ", "o", "xy", ""]
        }
        ("split_part" | "string_to_array", 1) | ("array_to_string", 1) => &[",", " ", "a", "", "b"],
        ("like_escape" | "similar_to_escape", 1) => &["\\", "!", "", "#"],
        ("~~" | "~~*" | "!~~" | "!~~*", 1) => {
            &["a%", "%b%", "_b_", "%", "", "ABC", "x\\_y%", "%o W%", "h%d"]
        }
        ("current_setting", 0) => &["server_encoding", "datestyle", "integer_datetimes"],
        _ => return None,
    };
    Some(pick(prng, from))
}

/// Fields and formats of dates and numbers.
fn format(name: &str, at: usize, types: &[Type]) -> Option<&'static [&'static str]> {
    let from: &[&'static str] = match (name, at) {
        ("extract" | "date_part", 0) => &FIELDS,
        ("date_trunc", 0) => &[
            "year",
            "month",
            "day",
            "hour",
            "minute",
            "second",
            "quarter",
            "week",
            "decade",
            "century",
            "millennium",
            "milliseconds",
            "microseconds",
        ],
        ("to_char", 1) => match types[0] {
            Type::Timestamp(None) | Type::Timestamptz(None) => &[
                "YYYY-MM-DD HH24:MI:SS",
                "FMDay, DD Month YYYY",
                "HH12:MI AM",
                "Q WW IW DDD J",
                "MS US",
                "YY Y,YYY",
                "Mon mon MON",
                "FMDDth",
                "TMMonth",
                "IYYY-IW-ID",
                "CC D",
                "\"text\" DD",
                "SSSS",
            ],
            Type::Interval(_) => &["HH24:MI:SS", "DD HH24", "YYYY MM DD", "MS", "FMHH24"],
            _ => &[
                "999", "0000", "9,999.99", "S999", "FM999.00", "$99.9", "99PR", "RN", "999MI",
                "9.99EEEE", "L999", "099V9", "SG99",
            ],
        },
        ("to_date" | "to_timestamp", 0) => &[
            "2020-02-29",
            "1999-12-31",
            "20240704",
            "04 Jul 2024",
            "2023-3-1",
        ],
        ("to_date" | "to_timestamp", 1) => {
            &["YYYY-MM-DD", "YYYYMMDD", "DD Mon YYYY", "YYYY-FMMM-FMDD"]
        }
        _ => return None,
    };
    Some(from)
}

/// A small number for argument `at` of function `name`; `None`: a large one is no harm. A large
/// one can cost much memory or time.
pub(crate) fn number(prng: &mut Prng, name: &str, at: usize) -> Option<i64> {
    let (low, high) = match (name, at) {
        ("repeat" | "lpad" | "rpad", 1) => (-1, 12),
        ("factorial", 0) => (-1, 30),
        ("chr", 0) => (0, 400),
        ("power" | "pow" | "^", 1) => (-3, 6),
        ("exp", 0) => (-5, 20),
        ("round" | "trunc", 1) => (-3, 5),
        ("make_date" | "make_timestamp" | "make_timestamptz", 0) => (1990, 2030),
        ("make_date" | "make_timestamp" | "make_timestamptz", 1) => (1, 12),
        ("make_date" | "make_timestamp" | "make_timestamptz", 2) => (1, 28),
        ("make_timestamp" | "make_timestamptz", 3) | ("make_time", 0) => (0, 23),
        ("make_timestamp" | "make_timestamptz", 4 | 5) | ("make_time", 1 | 2) => (0, 59),
        ("make_interval", _) => (-9, 9),
        ("width_bucket", 3) => (0, 9),
        ("asin" | "acos", 0) => (-1, 1),
        ("set_byte" | "get_byte", 1) => (0, 3),
        ("array_length" | "array_lower" | "array_upper", 1) => (0, 2),
        ("regexp_count", 2) => (1, 3),
        ("<<" | ">>", 1) => (0, 20),
        ("to_timestamp", 0) => (-1_000_000, 2_000_000_000),
        _ => return None,
    };
    Some(prng.between(low, high))
}

/// Functions whose results differ by nature from call to call or from server to server. The second
/// column says where they are tested instead.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    (
        "position",
        "no call in PostgreSQL: `position(a IN b)` is drawn",
    ),
    (
        "extract",
        "no call in PostgreSQL: `extract(f FROM x)` is drawn",
    ),
    (
        "overlaps",
        "no call in PostgreSQL: `(a, b) OVERLAPS (c, d)` is drawn",
    ),
    ("now", "pure/sql/exec/tests: the session's time"),
    ("transaction_timestamp", "the session's time"),
    ("current_timestamp", "the session's time"),
    ("localtimestamp", "the session's time"),
    ("current_date", "the session's time"),
    ("current_time", "the session's time"),
    ("localtime", "the session's time"),
    ("statement_timestamp", "the session's time"),
    ("clock_timestamp", "the session's time"),
    ("timeofday", "the session's time"),
    ("random", "random"),
    ("gen_random_uuid", "random"),
    ("uuid_generate_v4", "random, of an extension"),
    ("digest", "of an extension"),
    ("hmac", "of an extension"),
    ("current_user", "the session"),
    ("session_user", "the session"),
    ("current_role", "the session"),
    ("user", "the session"),
    ("getpgusername", "the session"),
    ("current_database", "the session"),
    ("current_catalog", "the session"),
    ("current_schema", "a word of its own, not a call"),
    ("current_schemas", "the session"),
    ("version", "the server"),
    ("pg_backend_pid", "the server"),
    ("inet_server_addr", "the server"),
    ("inet_server_port", "the server"),
    ("inet_client_addr", "the server"),
    ("inet_client_port", "the server"),
    ("nextval", "sequences: test/sql"),
    ("currval", "sequences: test/sql"),
    ("lastval", "sequences: test/sql"),
    ("setval", "sequences: test/sql"),
    ("pg_sleep", "time"),
    ("set_config", "changes the session"),
    ("pg_cancel_backend", "sessions"),
    ("pg_terminate_backend", "sessions"),
    ("trellis_shard_of", "PostgreSQL has none"),
    ("trellis_node_of", "PostgreSQL has none"),
    ("trellis_placement_version", "PostgreSQL has none"),
];

/// Functions that may raise an error for plain arguments. Such a function stands alone in its
/// statement: otherwise the order of evaluation would decide which error is seen.
#[rustfmt::skip] // a table
const MAY_FAIL: &[&str] = &[
    "/", "%", "mod", "div", "^", "power", "pow", "sqrt", "|/", "ln", "log", "log10", "exp",
    "factorial", "gcd", "lcm", "width_bucket", "asin", "acos", "sinh", "cosh", "cot", "tan",
    "chr", "decode", "convert_from", "convert_to", "encode",
    "get_byte", "set_byte", "get_bit", "set_bit", "trim_array", "regexp_substr",
    "regexp_instr", "to_date",
    "to_timestamp", "to_number", "make_date", "make_timestamp", "make_timestamptz",
    "make_time", "make_interval", "extract", "date_part", "date_trunc", "date_bin", "timezone",
    "like_escape", "similar_to_escape",
    "substring", "substr", "overlay", "left", "right", "*", "+", "-", "@", "abs", "<<", ">>",
    "format", "split_part", "array_cat", "sin", "cos", "age", "justify_days", "justify_interval",
    "justify_hours", "repeat", "current_setting", "regexp_count", "regexp_like", "regexp_match",
    "regexp_replace", "regexp_split_to_array", "array_position", "~~", "!~~", "~~*", "!~~*",
    "round", "trunc", "to_char", "degrees", "radians", "array_fill", "scale", "lpad", "rpad",
];

/// Whether the function is one of [`MAY_FAIL`].
pub(crate) fn may_fail(name: &str) -> bool {
    MAY_FAIL.contains(&name)
}
