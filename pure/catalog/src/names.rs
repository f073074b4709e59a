//! Names for what the user did not name, as PostgreSQL chooses them.

use crate::schemas::mark;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::full_name::{PUBLIC_SCHEMA, full, own, split};
use base::limits::NAME_BYTES_MAX;
use base::{ArrayKind, Datum, Type};

const TEXTS: Type = Type::Array(ArrayKind::Text);

/// `first_second_label`, cut to the length of an identifier by shortening the longer of the first
/// two parts, then with the smallest number appended that makes it free.
pub(crate) fn choose(
    first: &str,
    columns: &[String],
    label: &str,
    taken: impl Fn(&str) -> bool,
) -> String {
    let (first, second) = (own(first), columns.join("_"));
    for pass in 0u32.. {
        let label = if pass == 0 {
            label.to_string()
        } else {
            format!("{label}{pass}")
        };
        let name = object_name(first, &second, &label);
        if !taken(&name) {
            return name;
        }
    }
    unreachable!("one of four billion names is free")
}

fn object_name(first: &str, second: &str, label: &str) -> String {
    let separators = usize::from(!second.is_empty()) + 1;
    let room = NAME_BYTES_MAX.saturating_sub(label.len() + separators);
    let (mut first_len, mut second_len) = (first.len(), second.len());
    while first_len + second_len > room {
        if first_len > second_len {
            first_len -= 1;
        } else {
            second_len -= 1;
        }
    }
    let parts = [cut(first, first_len), cut(second, second_len), label];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// At most `len` bytes of `text`, not splitting a character.
fn cut(text: &str, len: usize) -> &str {
    let mut end = len.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The columns of `columns` that an SQL expression of the catalog names, once each, in the order
/// in which it does. A function or type of a column's name counts, too.
pub(crate) fn columns_in<'a>(
    expression: &str,
    columns: impl Iterator<Item = &'a String>,
) -> Vec<String> {
    let columns: Vec<&String> = columns.collect();
    let mut found: Vec<String> = Vec::new();
    for word in words(expression) {
        let name = name_of(word);
        if columns.contains(&&name) && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The pieces of an expression: names, numbers, texts and names in quotes, and single characters.
fn words(expression: &str) -> impl Iterator<Item = &str> {
    let mut rest = expression;
    core::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match first {
            '\'' | '"' => quoted_bytes(rest, first),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, behind) = rest.split_at(length);
        rest = behind;
        Some(word)
    })
}

/// The name that a piece of an expression stands for.
fn name_of(word: &str) -> String {
    match word.strip_prefix('"') {
        Some(inner) => inner
            .strip_suffix('"')
            .unwrap_or(inner)
            .replace("\"\"", "\""),
        None => word.to_string(),
    }
}

/// The expression with another name for a column, or for the `table` that stands before one. What
/// is called like a function, or named as a type, has its own names.
pub(crate) fn renamed(expression: &str, from: &str, to: &str, table: bool) -> String {
    let pieces: Vec<&str> = words(expression).collect();
    let is_blank = |piece: &&&str| !piece.trim().is_empty();
    let mut out = String::with_capacity(expression.len());
    for (i, piece) in pieces.iter().enumerate() {
        let before = pieces[..i].iter().rev().find(is_blank).copied();
        let behind = pieces[i + 1..].iter().find(is_blank).copied();
        let qualifies = behind == Some(".");
        let is_type = before == Some(":") || before.is_some_and(|b| b.eq_ignore_ascii_case("as"));
        let other = behind == Some("(") || behind.is_some_and(|b| b.starts_with('\''));
        let plain = name_of(piece) == from && !(is_type || other);
        match plain && qualifies == table {
            true => out.push_str(&quoted(to)),
            false => out.push_str(piece),
        }
    }
    out
}

/// An expression as PostgreSQL prints it as a key or a condition of an index: in parentheses,
/// unless it is a name or the call of a function.
pub fn as_key(expression: &str) -> String {
    let mut pieces = words(expression).filter(|piece| !piece.trim().is_empty());
    let name = pieces.next().unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"');
    let mut depth = 0usize;
    let mut closes = 0;
    let mut last = "";
    for piece in pieces {
        match piece {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        closes += usize::from(depth == 0);
        last = piece;
    }
    let is_call = closes == 1 && last == ")";
    match is_name && (is_call || last.is_empty()) {
        true => expression.into(),
        false => format!("({expression})"),
    }
}

/// An identifier as an expression must write it.
pub fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let first = name.bytes().next();
    let plain = first.is_some_and(|byte| !byte.is_ascii_digit()) && name.bytes().all(is_plain);
    match plain && !RESERVED.contains(&name) {
        true => name.into(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Words that no column can have as its name without quotes.
const RESERVED: [&str; 98] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "interval",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "position",
    "primary",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "when",
];

/// The text as a literal of an expression.
pub(crate) fn literal_with(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether a name or a literal is one of the pieces of an expression.
pub(crate) fn has_word(expression: &str, word: &str) -> bool {
    words(expression).any(|piece| piece == word || name_of(piece) == word)
}

/// Whether a literal of an expression is the text of an array with this item.
pub(crate) fn has_item(expression: &str, item: &str) -> bool {
    let texts = words(expression).filter_map(literal);
    let arrays = texts.filter_map(|text| base::text::parse(TEXTS, &text).ok());
    arrays.into_iter().any(|array| is_among(&array, item))
}

fn is_among(value: &Datum, item: &str) -> bool {
    let mut items = value.as_array().unwrap_or_default().iter();
    items.any(|value| value.as_str() == Some(item) || is_among(value, item))
}

/// A default that draws from the sequence `to` where it drew from `from`.
pub(crate) fn redrawn(expression: &str, from: &str, to: &str) -> String {
    let pieces: Vec<&str> = words(expression).collect();
    let is_blank = |piece: &&&str| !piece.trim().is_empty();
    let mut out = String::with_capacity(expression.len());
    for (i, piece) in pieces.iter().enumerate() {
        let mut before = pieces[..i].iter().rev().filter(is_blank);
        let called = before.next() == Some(&"(")
            && before
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case("nextval"));
        let named = literal(piece).is_some_and(|name| full_of(&name) == from);
        match called && named {
            true => out.push_str(&literal_of(to)),
            false => out.push_str(piece),
        }
    }
    out
}

/// Length of the string or name in quotes that `text` begins with; a doubled quote stands for
/// itself.
fn quoted_bytes(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].find(quote) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The expression that draws from a sequence: its name is quoted where a reader would fold it.
pub fn next_of(sequence: &str) -> String {
    format!("nextval({}::regclass)", literal_of(sequence))
}

/// The name of a sequence as the text that names it.
fn literal_of(sequence: &str) -> String {
    let (schema, sequence) = split(sequence);
    let schema = format!("{}.", mark(schema));
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts = sequence
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    let name = match starts && sequence.bytes().all(plain) {
        true => sequence.into(),
        false => format!("\"{}\"", sequence.replace('"', "\"\"")),
    };
    format!("'{schema}{}'", name.replace('\'', "''"))
}

/// Whether an expression calls `nextval` with a literal that names this sequence.
pub fn draws_from(expression: &str, sequence: &str) -> bool {
    const CALL: &str = "nextval(";
    let folded = expression.to_ascii_lowercase();
    let calls = folded.match_indices(CALL);
    calls
        .filter_map(|(at, _)| literal(expression[at + CALL.len()..].trim_start()))
        .any(|name| full_of(&name) == sequence)
}

fn literal(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix('\'')?.chars().peekable();
    let mut value = String::new();
    loop {
        match rest.next()? {
            '\'' if rest.next_if_eq(&'\'').is_some() => value.push('\''),
            '\'' => return Some(value),
            other => value.push(other),
        }
    }
}

/// The full name that a kept text means by a name, which may have the mark of a schema.
fn full_of(text: &str) -> String {
    let (first, rest) = first_name(text.trim());
    let Some(rest) = rest.trim_start().strip_prefix('.') else {
        return first;
    };
    let (last, _) = first_name(rest.trim_start());
    let number = first
        .strip_prefix('$')
        .and_then(|digits| digits.parse().ok());
    full(number.unwrap_or(PUBLIC_SCHEMA), &last)
}

/// The name that a text begins with, folded unless it is quoted, and what is behind it.
pub(crate) fn first_name(text: &str) -> (String, &str) {
    if text.starts_with('"') {
        let (name, rest) = text.split_at(quoted_bytes(text, '"'));
        return (name_of(name), rest);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    (text[..end].to_ascii_lowercase(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_postgres_names() {
        let columns = ["a".to_string(), "b".to_string()];
        let free = |_: &str| false;
        assert_eq!(choose("t", &columns, "idx", free), "t_a_b_idx");
        assert_eq!(choose("t", &[], "pkey", free), "t_pkey");
        let taken = ["t_a_b_key", "t_a_b_key1"];
        assert_eq!(
            choose("t", &columns, "key", |name| taken.contains(&name)),
            "t_a_b_key2"
        );
    }

    #[test]
    fn long_names_keep_their_label() {
        let long = "x".repeat(60);
        let name = choose(&long, &["y".repeat(60)], "seq", |_| false);
        assert_eq!(name.len(), NAME_BYTES_MAX);
        assert_eq!(name, format!("{}_{}_seq", "x".repeat(29), "y".repeat(29)));
        let umlauts = choose(&"ä".repeat(40), &[], "pkey", |_| false);
        assert!(umlauts.len() <= NAME_BYTES_MAX && umlauts.ends_with("ä_pkey"));
    }

    #[test]
    fn check_names_find_their_columns() {
        let columns = ["a".to_string(), "b".to_string()];
        let found = |text: &str| columns_in(text, columns.iter());
        assert_eq!(found("a > 0"), ["a"]);
        assert_eq!(found("lower(\"b\") <> 'a'"), ["b"]);
        assert_eq!(found("a < b"), ["a", "b"]);
        assert!(found("ab > 'b'").is_empty());
        let odd = ["a \"b".to_string(), "Ü".to_string(), "it's".to_string()];
        let found = |text: &str| columns_in(text, odd.iter());
        assert_eq!(
            found("\"Ü\" > '\"it''s\"' OR \"a \"\"b\" > 0"),
            ["Ü", "a \"b"]
        );
        assert_eq!(found("\"it's\" > 0"), ["it's"]);
    }

    #[test]
    fn names_are_replaced_where_they_mean_the_column() {
        let column = |text: &str| renamed(text, "a", "order", false);
        assert_eq!(
            column("a > 0 AND t.a <> 'a'"),
            "\"order\" > 0 AND t.\"order\" <> 'a'"
        );
        assert_eq!(column("a(b) > 1::a AND a.b"), "a(b) > 1::a AND a.b");
        assert_eq!(renamed("\"a\"+b", "a", "c", false), "c+b");
        assert_eq!(renamed("t.a > t", "t", "T2", true), "\"T2\".a > t");
        assert_eq!(
            redrawn("1 + nextval('s'::regclass) + length('s')", "s", "S2"),
            "1 + nextval('\"$2200\".\"S2\"'::regclass) + length('s')"
        );
    }

    #[test]
    fn items_are_found_in_the_text_of_an_array() {
        let has = |text: &str| has_item(text, "a b");
        assert!(has("m = ANY ('{c,\"a b\"}'::mood[])"));
        assert!(has("'{a b}'") && has("' { c , a b } '"));
        assert!(!has("'a b'") && !has("'{a, b}'") && !has("'{ab'") && !has("f({a b})"));
        assert!(has_item("'{\"it''s\"}'", "it's") && !has_item("'{NULL}'", "NULL"));
    }

    #[test]
    fn sequences_are_found_however_they_are_written() {
        for sequence in ["s", "Odd_Id_seq", "a b", "it's", "q\"q", "1st"] {
            assert!(draws_from(&next_of(sequence), sequence), "{sequence}");
            assert!(!draws_from(&next_of(sequence), "other"), "{sequence}");
        }
        assert_eq!(
            next_of("t_id_seq"),
            "nextval('\"$2200\".t_id_seq'::regclass)"
        );
        assert_eq!(
            next_of("T_id_seq"),
            "nextval('\"$2200\".\"T_id_seq\"'::regclass)"
        );
        for text in [
            "nextval('public.s')",
            "1 + NEXTVAL( 'S' :: regclass)",
            "nextval('\"s\"')",
        ] {
            assert!(draws_from(text, "s"), "{text}");
        }
        for text in [
            "nextval('\"S\"')",
            "'nextval(s)'",
            "nextval('s2')",
            "nextval(",
        ] {
            assert!(!draws_from(text, "s"), "{text}");
        }
    }
}
