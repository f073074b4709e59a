//! Functions, operators and types that PostgreSQL 15 has and Trellis lacks: they answer 0A000 with
//! what to do instead, not that there is no such thing.
//!
//! `absent.txt` has the names of functions, in order, each with its kind: those of pg_proc, and
//! those of the usual extensions that users call.

use base::{SqlError, SqlState, Type};
use core::cmp::Ordering;

const LIST: &str = include_str!("absent.txt");

/// Kinds: the word that stands for one, and what to do instead.
const KINDS: [(&str, &str); 19] = [
    (
        "search",
        "There is no full-text search: use LIKE, ILIKE or ~.",
    ),
    (
        "shape",
        "There are no geometric types: keep coordinates in columns of their own.",
    ),
    ("range", "Use the operators and constructors of ranges."),
    (
        "xml",
        "Keep XML in columns of type text, and take it apart in the client.",
    ),
    ("money", "Use numeric."),
    ("address", "Use macaddr or text."),
    ("operator", "Use the operator or the cast that it computes."),
    (
        "internal",
        "It is for PostgreSQL's own use: write a cast or an operator.",
    ),
    (
        "server",
        "It is about a server of PostgreSQL; SHOW tells of the nodes here.",
    ),
    ("from", "Call it in FROM."),
    ("row", "Compare rows by = and IS DISTINCT FROM."),
    (
        "pattern",
        "Texts are in the order of their code points: use <, <=, > and >=.",
    ),
    (
        "other",
        "Compute the value in the client, or make a function in SQL.",
    ),
    (
        "pgcrypto",
        "digest, hmac and gen_random_uuid are there; do the rest in the client.",
    ),
    (
        "uuid-ossp",
        "gen_random_uuid and uuid_generate_v4 are there; make other values in the client.",
    ),
    (
        "similar",
        "Compare texts by LIKE, ILIKE or ~, or in the client.",
    ),
    ("pivot", "Write sum(x) FILTER (WHERE ...) for each column."),
    ("hstore", "Use jsonb."),
    (
        "text",
        "Use text, with a unique index on lower(column) where case does not count.",
    ),
];

/// Names of one kind.
type Named = (&'static str, &'static [&'static str]);

/// Operators between operands.
const INFIX: [Named; 4] = [
    (
        "shape",
        &[
            "##", "&<|", "<->", "<<|", "<^", ">^", "?#", "?-", "?-|", "?||", "|&>", "|>>", "~=",
        ],
    ),
    ("row", &["*<", "*<=", "*<>", "*=", "*>", "*>="]),
    ("search", &["@@@"]),
    ("pattern", &["~<=~", "~<~", "~>=~", "~>~"]),
];

/// Operators before their operand.
const PREFIX: [Named; 2] = [
    ("search", &["!!"]),
    ("shape", &["#", "?-", "?|", "@-@", "@@"]),
];

/// Types.
const TYPES: [Named; 10] = [
    (
        "shape",
        &[
            "box", "circle", "cube", "line", "lseg", "path", "point", "polygon",
        ],
    ),
    (
        "range",
        &[
            "anycompatiblemultirange",
            "anycompatiblerange",
            "anymultirange",
            "anyrange",
        ],
    ),
    (
        "search",
        &[
            "gtsvector",
            "regconfig",
            "regdictionary",
            "tsquery",
            "tsvector",
        ],
    ),
    (
        "internal",
        &[
            "any",
            "anyarray",
            "anycompatible",
            "anycompatiblearray",
            "anycompatiblenonarray",
            "anyelement",
            "anyenum",
            "anynonarray",
            "cstring",
            "event_trigger",
            "fdw_handler",
            "index_am_handler",
            "internal",
            "language_handler",
            "pg_brin_bloom_summary",
            "pg_brin_minmax_multi_summary",
            "pg_ddl_command",
            "pg_dependencies",
            "pg_mcv_list",
            "pg_ndistinct",
            "pg_node_tree",
            "refcursor",
            "table_am_handler",
            "trigger",
            "tsm_handler",
            "void",
        ],
    ),
    (
        "server",
        &[
            "aclitem",
            "pg_lsn",
            "pg_snapshot",
            "regcollation",
            "txid_snapshot",
            "xid8",
        ],
    ),
    ("xml", &["xml"]),
    ("money", &["money"]),
    ("address", &["macaddr8"]),
    ("hstore", &["hstore"]),
    ("text", &["citext", "ltree"]),
];

/// 0A000 for the call of a function that PostgreSQL has; `None` for other names.
pub fn absent_function(name: &str) -> Option<SqlError> {
    kind_of(name).map(|kind| refusal(&format!("function {name}"), kind))
}

/// The same for a type.
pub fn absent_type(name: &str) -> Option<SqlError> {
    among(&TYPES, name).map(|kind| refusal(&format!("type {name}"), kind))
}

/// The same for an operator between operands of these types, if PostgreSQL may have it for them.
pub(super) fn absent_infix(symbol: &str, types: &[Type]) -> Option<SqlError> {
    absent_operator(&INFIX, symbol, types)
}

/// The same for an operator before its operand.
pub(super) fn absent_prefix(symbol: &str, types: &[Type]) -> Option<SqlError> {
    absent_operator(&PREFIX, symbol, types)
}

fn absent_operator(all: &[Named], symbol: &str, types: &[Type]) -> Option<SqlError> {
    let kind = among(all, symbol)?;
    let takes = |ty: &Type| match kind {
        "pattern" => ty.is_text(),
        "row" => matches!(ty, Type::Composite(_) | Type::Unknown),
        // Of the types that it takes there are no values but literals.
        _ => *ty == Type::Unknown,
    };
    let is_there = types.iter().all(takes);
    is_there.then(|| refusal(&format!("operator {symbol}"), kind))
}

/// The same for the search of a text: `text @@ text`.
pub(super) fn absent_match() -> SqlError {
    refusal("operator @@ of texts", "search")
}

fn refusal(what: &str, kind: &str) -> SqlError {
    let hint = KINDS.iter().find(|(known, _)| *known == kind);
    let message = format!("{what} is not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).hint(hint.map_or("", |found| found.1))
}

fn among(all: &[Named], name: &str) -> Option<&'static str> {
    let found = all.iter().find(|(_, names)| names.contains(&name));
    found.map(|(kind, _)| *kind)
}

/// The kind of a function of the list, by halving the list.
fn kind_of(name: &str) -> Option<&'static str> {
    let (mut from, mut to) = (0, LIST.len());
    while from < to {
        let middle = from + (to - from) / 2;
        let start = LIST[..middle].rfind('\n').map_or(0, |end| end + 1);
        let end = LIST[middle..]
            .find('\n')
            .map_or(LIST.len(), |at| middle + at);
        let (known, kind) = LIST[start..end].split_once(' ')?;
        match name.cmp(known) {
            Ordering::Equal => return Some(kind),
            Ordering::Less => to = start,
            Ordering::Greater => from = end + 1,
        }
    }
    None
}

/// The names of the list.
pub fn absent_functions() -> impl Iterator<Item = &'static str> {
    LIST.lines()
        .map(|line| line.split(' ').next().unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::super::table::{operators, prefix_operators};
    use super::*;
    use crate::aggregate::is_aggregate;
    use crate::resolve::is_known;

    #[test]
    fn the_list_is_in_order_and_every_name_of_it_is_found_and_absent() {
        let names: Vec<&str> = absent_functions().collect();
        assert!(names.is_sorted_by(|a, b| a < b));
        for name in &names {
            let kind = kind_of(name).unwrap_or_else(|| panic!("{name} is not found"));
            assert!(KINDS.iter().any(|(known, _)| *known == kind), "{kind}");
            assert!(!is_known(name) && !is_aggregate(name), "{name} is there");
        }
        for name in [
            "",
            "a",
            "abs",
            "now",
            "to_tsvecto",
            "to_tsvectors",
            "zz",
            "~",
        ] {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }

    #[test]
    fn every_kind_is_known_and_nothing_listed_is_there() {
        let all = INFIX.iter().chain(&PREFIX).chain(&TYPES);
        for (kind, _) in all {
            assert!(KINDS.iter().any(|(known, _)| known == kind), "{kind}");
        }
        let symbols = |all: &[Named]| -> Vec<&'static str> {
            let names = all.iter().flat_map(|(_, names)| names.iter());
            names.copied().collect()
        };
        for symbol in symbols(&INFIX) {
            assert!(operators(symbol).is_empty(), "{symbol}");
        }
        for symbol in symbols(&PREFIX) {
            assert!(prefix_operators(symbol).is_empty(), "{symbol}");
        }
        for name in symbols(&TYPES) {
            assert_eq!(Type::named(name), None);
        }
    }
}
