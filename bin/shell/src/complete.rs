//! What Tab offers: pure, from what was typed so far and the names that the server knows.

use crate::backslash;
use crate::lexer::{Next, Open, scan, tokens};
use functions::keywords::quote_ident;
use parse::show::Show;

/// The names that the server knows.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// Tables and views that need no schema.
    pub(crate) relations: Vec<String>,
    /// Relation and column.
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) functions: Vec<String>,
    pub(crate) settings: Vec<String>,
    pub(crate) databases: Vec<String>,
    pub(crate) keywords: Vec<String>,
}

/// What may stand at the cursor.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// Texts that replace what begins at this byte of the line.
    Texts(usize, Vec<String>),
    /// Names of files.
    Files,
}

/// How statements begin.
const STATEMENTS: [&str; 31] = [
    "ABORT",
    "ALTER DATABASE",
    "ALTER TABLE",
    "ANALYZE",
    "BEGIN",
    "COMMENT ON",
    "COMMIT",
    "COPY",
    "CREATE DATABASE",
    "CREATE INDEX",
    "CREATE SEQUENCE",
    "CREATE TABLE",
    "CREATE UNIQUE INDEX",
    "CREATE VIEW",
    "DELETE FROM",
    "DROP DATABASE",
    "DROP INDEX",
    "DROP SEQUENCE",
    "DROP TABLE",
    "DROP VIEW",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "INSERT INTO",
    "RESET",
    "ROLLBACK",
    "SELECT",
    "SET",
    "SHOW",
    "TRUNCATE",
    "UPDATE",
    "VALUES",
];

/// What SHOW knows beside settings.
fn topics() -> impl Iterator<Item = String> {
    let topics = Show::topics().map(|what| what.words().join(" "));
    let first = std::iter::once("ALL".to_string());
    let last = std::iter::once("TRANSACTION ISOLATION LEVEL".to_string());
    first.chain(topics).chain(last)
}

/// What may follow a table or an expression, when nothing of it has been typed.
const CLAUSES: [&str; 14] = [
    "AND",
    "AS",
    "GROUP BY",
    "HAVING",
    "JOIN",
    "LEFT JOIN",
    "LIMIT",
    "ON",
    "ORDER BY",
    "RETURNING",
    "SET",
    "UNION",
    "VALUES",
    "WHERE",
];

/// Words behind which a relation stands.
const BEFORE_RELATION: [&str; 10] = [
    "FROM",
    "JOIN",
    "INTO",
    "UPDATE",
    "TABLE",
    "ONLY",
    "COPY",
    "TRUNCATE",
    "REFERENCES",
    "SEQUENCE",
];

/// What may stand at byte `cursor` of `line`, behind the earlier lines `before` of the statement.
pub(crate) fn complete(before: &str, line: &str, cursor: usize, names: &Names) -> Offer {
    let text = format!("{before}{}", &line[..cursor]);
    // The statement that the cursor is in.
    let mut start = 0;
    let open = loop {
        match scan(&text, start) {
            Next::Statement(end) => start = end,
            Next::Command(at) => {
                let offset = at.saturating_sub(before.len());
                return command(&text[at..], offset, names);
            }
            Next::More { from, .. } if text[from..].starts_with("--") => break Open::Comment,
            Next::More { open, .. } => break open,
        }
    };
    if matches!(open, Open::String | Open::Dollar | Open::Comment) {
        return Offer::Texts(cursor, Vec::new());
    }
    let statement = &text[start..];
    let word = word_at_end(statement, open);
    let behind = &statement[..statement.len() - word.len()];
    // Relations may be named behind the cursor, too.
    let whole = format!("{statement}{}", &line[cursor..]);
    let found = offers(&tokens(behind), &tokens(&whole), word, names);
    texts(word, cursor, found)
}

/// The word that ends `text`: a name with its qualifier, which may be in quotes.
fn word_at_end(text: &str, open: Open) -> &str {
    let mut quoted = open == Open::Name;
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c.is_alphanumeric() || matches!(c, '_' | '.' | '$') => {}
            _ => break,
        }
        start = at;
    }
    &text[start..]
}

/// What fits `word`; one that stands alone gets a blank, because the next word follows it.
fn texts(word: &str, cursor: usize, found: Vec<String>) -> Offer {
    let mut found: Vec<String> = found
        .into_iter()
        .filter(|text| starts_with(text, word))
        .map(
            |text| match text.chars().all(|c| c.is_uppercase() || c == ' ') {
                true => as_typed(text, word),
                false => text,
            },
        )
        .collect();
    found.dedup();
    if let [only] = found.as_mut_slice()
        && !only.ends_with(['(', '.'])
    {
        only.push(' ');
    }
    Offer::Texts(cursor - word.len(), found)
}

fn starts_with(text: &str, word: &str) -> bool {
    match word.starts_with('"') || word.contains(".\"") {
        true => text.starts_with(word),
        false => text.to_lowercase().starts_with(&word.to_lowercase()),
    }
}

/// Keywords are written as the user writes: in small letters if the last one is.
fn as_typed(keyword: String, word: &str) -> String {
    match word.chars().next_back() {
        Some(c) if c.is_lowercase() => keyword.to_lowercase(),
        _ => keyword,
    }
}

fn offers(behind: &[&str], whole: &[&str], word: &str, names: &Names) -> Vec<String> {
    let upper: Vec<String> = behind.iter().map(|token| token.to_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
    let Some(&last) = upper.last() else {
        return owned(&STATEMENTS);
    };
    let mut settings = names.settings.clone();
    match (upper[0], last) {
        ("EXPLAIN", "EXPLAIN" | "ANALYZE") => return owned(&STATEMENTS),
        ("SHOW", "SHOW") => {
            settings.extend(topics());
            return settings;
        }
        ("SHOW", "IN") => return owned(&["DOUBT"]),
        ("SHOW", "SHARD") => return owned(&["COUNTERS"]),
        ("SHOW", "TRANSACTION") => return owned(&["COST", "ISOLATION LEVEL"]),
        ("RESET", "RESET") | ("SET", "SET" | "SESSION" | "LOCAL") => {
            settings.push("ALL".into());
            return settings;
        }
        ("SET", "TO" | "=") => return owned(&["DEFAULT", "on", "off"]),
        (_, "DATABASE") => return idents(&names.databases),
        _ => {}
    }
    if expects_relation(&upper) {
        return relations(word, names);
    }
    if let Some((qualifier, _)) = word.rsplit_once('.') {
        return qualified(qualifier, whole, names);
    }
    let mut found = columns_of(&mentioned(whole, names), names);
    if word.is_empty() {
        found.extend(CLAUSES.iter().map(|clause| (*clause).to_string()));
        return found;
    }
    found.extend(names.functions.iter().map(|name| format!("{name}(")));
    found.extend(CLAUSES.iter().map(|clause| (*clause).to_string()));
    let single = |word: &&String| !CLAUSES.contains(&word.as_str());
    let mut keywords: Vec<String> = names
        .keywords
        .iter()
        .map(|word| word.to_uppercase())
        .collect();
    keywords.retain(|word| single(&word));
    found.extend(keywords);
    found
}

/// Whether a relation stands behind these words.
fn expects_relation(upper: &[&str]) -> bool {
    let last = upper.last().copied().unwrap_or("");
    if BEFORE_RELATION.contains(&last) || last == "ON" && upper.contains(&"INDEX") {
        return true;
    }
    match upper {
        [.., before, "EXISTS"] => *before == "IF" && upper.contains(&"TABLE"),
        // A list of tables goes on.
        [.., ","] => {
            let clause = upper.iter().rev().find(|word| {
                [
                    "SELECT",
                    "FROM",
                    "WHERE",
                    "BY",
                    "SET",
                    "VALUES",
                    "RETURNING",
                    "(",
                    "TRUNCATE",
                ]
                .contains(word)
            });
            matches!(clause, Some(&"FROM" | &"TRUNCATE"))
        }
        _ => false,
    }
}

/// Names as they must be typed.
fn idents(names: &[String]) -> Vec<String> {
    let typed = names.iter().map(|name| quote_ident(name).into_owned());
    typed.collect()
}

fn relations(word: &str, names: &Names) -> Vec<String> {
    let system = word.starts_with("pg_") || word.starts_with("pg_catalog.");
    let mut found: Vec<String> = names
        .relations
        .iter()
        .filter(|name| system == name.starts_with("pg_"))
        .map(|name| quote_ident(name).into_owned())
        .collect();
    if let Some((schema, _)) = word.rsplit_once('.') {
        found = found
            .into_iter()
            .map(|name| format!("{schema}.{name}"))
            .collect();
    }
    found
}

/// Columns of the relation that `qualifier` means: its name, or an alias in the statement.
fn qualified(qualifier: &str, whole: &[&str], names: &Names) -> Vec<String> {
    let name = plain(qualifier.rsplit('.').next().unwrap_or(qualifier));
    let relation = whole.windows(2).enumerate().find_map(|(at, pair)| {
        let [relation, next] = pair else { return None };
        let alias = match next.eq_ignore_ascii_case("as") {
            true => whole.get(at + 2)?,
            false => next,
        };
        let is_relation = names.relations.contains(&plain(relation));
        (is_relation && plain(alias) == name).then(|| plain(relation))
    });
    let columns = columns_of(&[relation.unwrap_or(name)], names);
    columns
        .into_iter()
        .map(|column| format!("{qualifier}.{column}"))
        .collect()
}

/// The relations that a statement names.
fn mentioned(whole: &[&str], names: &Names) -> Vec<String> {
    let found = whole.iter().map(|token| plain(token));
    found
        .filter(|name| names.relations.contains(name))
        .collect()
}

fn columns_of(relations: &[String], names: &Names) -> Vec<String> {
    let of = names
        .columns
        .iter()
        .filter(|(relation, _)| relations.contains(relation));
    let mut found: Vec<String> = of
        .map(|(_, column)| quote_ident(column).into_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// A name as the catalog has it.
fn plain(token: &str) -> String {
    match token.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').unwrap_or(rest).replace("\"\"", "\""),
        None => token.to_lowercase(),
    }
}

/// What may stand at the end of a command that begins at byte `offset` of the line.
fn command(text: &str, offset: usize, names: &Names) -> Offer {
    let cursor = offset + text.len();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
    let Some((name, argument)) = text.split_once(char::is_whitespace) else {
        return match texts(text, cursor, owned(&backslash::NAMES)) {
            // Small and large letters are different commands.
            Offer::Texts(at, mut found) => {
                found.retain(|found| found.starts_with(text));
                Offer::Texts(at, found)
            }
            Offer::Files => Offer::Files,
        };
    };
    let word = argument.rsplit(char::is_whitespace).next().unwrap_or("");
    let words = tokens(argument);
    match name.trim_end_matches('+') {
        r"\c" | r"\connect" => texts(word, cursor, names.databases.clone()),
        r"\d" | r"\dt" | r"\di" | r"\ds" => texts(word, cursor, relations(word, names)),
        r"\df" => texts(word, cursor, names.functions.clone()),
        r"\x" => texts(word, cursor, owned(&["on", "off", "auto"])),
        r"\timing" | r"\t" => texts(word, cursor, owned(&["on", "off"])),
        r"\h" | r"\help" => texts(argument, cursor, owned(&STATEMENTS)),
        r"\pset" => {
            let options = ["expanded", "format", "null", "pager", "tuples_only"];
            texts(word, cursor, owned(&options))
        }
        r"\copy" if words.len() <= 1 && !argument.ends_with(' ') => {
            texts(word, cursor, relations(word, names))
        }
        r"\copy" if words.len() <= 2 && !words.iter().any(|w| is_direction(w)) => {
            texts(word, cursor, owned(&["FROM", "TO"]))
        }
        r"\copy" | r"\i" | r"\ir" | r"\o" | r"\e" | r"\edit" | r"\g" | r"\gx" | r"\w" | r"\cd" => {
            Offer::Files
        }
        _ => Offer::Texts(cursor, Vec::new()),
    }
}

fn is_direction(word: &str) -> bool {
    word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("to")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
        let column = |(a, b): &(&str, &str)| ((*a).to_string(), (*b).to_string());
        let columns = [
            ("orders", "id"),
            ("orders", "customer"),
            ("customer", "name"),
            ("Odd one", "Größe"),
            ("pg_class", "relname"),
        ];
        Names {
            relations: owned(&["customer", "Odd one", "orders", "pg_class"]),
            columns: columns.iter().map(column).collect(),
            functions: owned(&["count", "concat", "min"]),
            settings: owned(&["lock_timeout", "TimeZone"]),
            databases: owned(&["postgres", "shop"]),
            keywords: owned(&["select", "from", "like", "limit"]),
        }
    }

    /// `|` is the cursor; what comes of it, joined by commas.
    fn check(text: &str, expected: &str) {
        let (before, line) = text.rsplit_once('\n').map_or(("", text), |(before, line)| {
            (&text[..before.len() + 1], line)
        });
        let cursor = line.find('|').expect("a cursor");
        let line = line.replace('|', "");
        let found = match complete(before, &line, cursor, &names()) {
            Offer::Files => "files".to_string(),
            Offer::Texts(at, texts) => {
                let typed = &line[at..cursor];
                let all: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
                format!("{typed}: {}", all.join(", "))
            }
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn statements_and_keywords_take_the_case_of_what_was_typed() {
        check("sel|", r#"sel: "select ""#);
        check("SEL|", r#"SEL: "SELECT ""#);
        check("drop t|", r#"t: "#);
        check(
            "DR|",
            r#"DR: "DROP DATABASE", "DROP INDEX", "DROP SEQUENCE", "DROP TABLE", "DROP VIEW""#,
        );
        check("SELECT 1; ins|", r#"ins: "insert into ""#);
        check("EXPLAIN up|", r#"up: "update ""#);
    }

    #[test]
    fn relations_stand_behind_from_and_its_like() {
        check("SELECT * FROM or|", r#"or: "orders ""#);
        check(
            "SELECT * FROM \n |",
            r#": "customer", "\"Odd one\"", "orders""#,
        );
        check("SELECT * FROM orders, c|", r#"c: "customer ""#);
        check("SELECT * FROM \"O|", r#""O: "\"Odd one\" ""#);
        check("SELECT * FROM pg_|", r#"pg_: "pg_class ""#);
        check("SELECT * FROM public.or|", r#"public.or: "public.orders ""#);
        check("CREATE INDEX ON or|", r#"or: "orders ""#);
        check("DROP TABLE IF EXISTS or|", r#"or: "orders ""#);
    }

    #[test]
    fn columns_are_those_of_the_tables_named_before_or_behind() {
        check(
            "SELECT c| FROM orders",
            r#"c: "customer", "count(", "concat(""#,
        );
        check("SELECT * FROM orders\nWHERE i|", r#"i: "id ""#);
        check("SELECT * FROM customer c WHERE c.|", r#"c.: "c.name ""#);
        check(
            "SELECT * FROM orders AS o WHERE o.c|",
            r#"o.c: "o.customer ""#,
        );
        check(
            "SELECT orders.|",
            r#"orders.: "orders.customer", "orders.id""#,
        );
        check(
            "SELECT * FROM \"Odd one\" WHERE \"G|",
            r#""G: "\"Größe\" ""#,
        );
        check(
            "UPDATE orders SET |",
            &format!(
                ": \"customer\", \"id\", {}",
                CLAUSES.map(|clause| format!("{clause:?}")).join(", ")
            ),
        );
        check("SELECT min|", r#"min: "min(""#);
        check("SELECT int4i|", r#"int4i: "#);
    }

    #[test]
    fn settings_topics_and_databases() {
        check("SHOW n|", r#"n: "nodes ""#);
        check("show l|", r#"l: "lock_timeout ""#);
        check("SET time|", r#"time: "TimeZone ""#);
        check("RESET A|", r#"A: "ALL ""#);
        check("DROP DATABASE sh|", r#"sh: "shop ""#);
    }

    #[test]
    fn nothing_is_offered_in_texts_and_comments() {
        check("SELECT 'sel|", ": ");
        check("-- sel|", ": ");
        check("/* \n sel|", ": ");
    }

    #[test]
    fn commands_and_what_they_take() {
        check("\\con|", r#"\con: "\\connect", "\\conninfo""#);
        check("\\c sh|", r#"sh: "shop ""#);
        check("\\d or|", r#"or: "orders ""#);
        check("\\i x|", "files");
        check("\\copy or|", r#"or: "orders ""#);
        check("\\copy orders fr|", r#"fr: "from ""#);
        check("\\copy orders from /t|", "files");
        check("\\x a|", r#"a: "auto ""#);
        check(
            "\\h cr|",
            "cr: \"create database\", \"create index\", \"create sequence\", \"create table\", \
             \"create unique index\", \"create view\"",
        );
        check("SELECT 1 \\watc|", r#"\watc: "\\watch ""#);
    }
}
