//! DROP of objects of kinds that there are none of: migrations drop them IF EXISTS, which is a
//! notice.

use super::Kind;
use super::comment::name;
use super::words::Words;
use base::SqlError;
use sqlparser::tokenizer::Token;

/// DROP of objects that are not there.
#[derive(Clone, PartialEq, Debug)]
pub struct Absent {
    /// The command tag.
    pub tag: &'static str,
    /// What the objects are called in messages.
    pub noun: &'static str,
    /// The names as messages have them.
    pub names: Vec<String>,
    /// The table that a rule or trigger would be of.
    pub table: Option<Vec<String>>,
    /// IF EXISTS
    pub if_exists: bool,
}

/// Kinds of which nothing exists: the words behind DROP, the tag, and what messages call them.
const KINDS: [(&[&str], &str, &str); 17] = [
    (&["RULE"], "DROP RULE", "rule"),
    (&["TRIGGER"], "DROP TRIGGER", "trigger"),
    (&["CONVERSION"], "DROP CONVERSION", "conversion"),
    (&["EVENT", "TRIGGER"], "DROP EVENT TRIGGER", "event trigger"),
    (
        &["FOREIGN", "DATA", "WRAPPER"],
        "DROP FOREIGN DATA WRAPPER",
        "foreign-data wrapper",
    ),
    (&["FOREIGN", "TABLE"], "DROP FOREIGN TABLE", "foreign table"),
    (&["SERVER"], "DROP SERVER", "server"),
    (&["PUBLICATION"], "DROP PUBLICATION", "publication"),
    (&["SUBSCRIPTION"], "DROP SUBSCRIPTION", "subscription"),
    (&["STATISTICS"], "DROP STATISTICS", "statistics object"),
    (&["TRANSFORM"], "DROP TRANSFORM", ""),
    (&["AGGREGATE"], "DROP AGGREGATE", ""),
    (&["OPERATOR"], "DROP OPERATOR", ""),
    (&["CAST"], "DROP CAST", ""),
    (&["USER", "MAPPING"], "DROP USER MAPPING", ""),
    (&["ACCESS", "METHOD"], "DROP ACCESS METHOD", ""),
    (&["TEXT", "SEARCH"], "DROP TEXT SEARCH", ""),
];

/// Kinds of which the system has some of its own.
const BUILT_IN: [(&[&str], &str); 4] = [
    (&["COLLATION"], "DROP COLLATION"),
    (&["TABLESPACE"], "DROP TABLESPACE"),
    (&["LANGUAGE"], "DROP LANGUAGE"),
    (&["PROCEDURAL", "LANGUAGE"], "DROP LANGUAGE"),
];

/// The hint about collations that there are none of.
pub const ONE_ORDER: &str =
    "Texts are in the order of their code points, which COLLATE \"C\" names.";

/// Parses the statement if it is such a DROP.
///
/// # Errors
/// 0A000 for kinds of which there are only those of the system.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    if !words.is(&["DROP"]) {
        return Ok(None);
    }
    let follows = |kind: &[&str]| {
        let mut kind = kind.iter().enumerate();
        kind.all(|(i, word)| words.is_at(1 + i, word))
    };
    let built_in = BUILT_IN.iter().find(|(kind, _)| follows(kind));
    let found = KINDS.iter().find(|(kind, ..)| follows(kind));
    let (kind, tag, noun) = match (found, built_in) {
        (Some((kind, tag, noun)), _) => (*kind, *tag, *noun),
        (None, Some((kind, tag))) => (*kind, *tag, ""),
        (None, None) => return Ok(None),
    };
    if noun.is_empty() {
        let hint = "There are none but those of the system, which stay; leave the statement out.";
        return Err(words.unsupported(tag).hint(hint));
    }
    words.expect(&["DROP"])?;
    words.expect(kind)?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let is_part = matches!(noun, "rule" | "trigger");
    let mut names = vec![name(words)?.join(".")];
    let mut table = None;
    if is_part {
        words.expect(&["ON"])?;
        table = Some(name(words)?);
    } else {
        while words.take_token(&Token::Comma) {
            names.push(name(words)?.join("."));
        }
    }
    words.take_any(&["CASCADE", "RESTRICT"]);
    words.expect_end()?;
    Ok(Some(Kind::Absent(Box::new(Absent {
        tag,
        noun,
        names,
        table,
        if_exists,
    }))))
}
