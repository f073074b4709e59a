//! `COMMENT ON ... IS ...`.

use super::words::Words;
use super::{Comment, Kind};
use ::functions::keywords::quote_ident;
use base::{SqlError, SqlState};
use catalog::Subject;
use sqlparser::tokenizer::Token;

/// Kinds of objects that do not exist here, whose comments are refused.
const ABSENT: &[&str] = &[
    "ACCESS",
    "AGGREGATE",
    "CAST",
    "COLLATION",
    "CONVERSION",
    "EVENT",
    "EXTENSION",
    "FUNCTION",
    "LANGUAGE",
    "LARGE",
    "OPERATOR",
    "POLICY",
    "PROCEDURAL",
    "PROCEDURE",
    "PUBLICATION",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SERVER",
    "STATISTICS",
    "SUBSCRIPTION",
    "TABLESPACE",
    "TEXT",
    "TRANSFORM",
    "TRIGGER",
];

/// A statement that begins with COMMENT.
pub(super) fn comment(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["COMMENT", "ON"])?;
    if let Some(what) = words.take_any(ABSENT) {
        words.at -= 1;
        return Err(words.unsupported(&format!("COMMENT ON {what}")));
    }
    let (database, subject) = subject(words)?;
    words.expect(&["IS"])?;
    let text = if words.take(&["NULL"]) {
        None
    } else {
        Some(words.string()?)
    };
    words.expect_end()?;
    Ok(Kind::Comment(Box::new(Comment {
        database,
        subject,
        text,
    })))
}

/// What is commented on; the name of the database if that is it.
fn subject(words: &mut Words<'_>) -> Result<(Option<String>, Subject), SqlError> {
    let of_kind = |words: &mut Words<'_>, kind: &str| {
        let name = own_name(words)?;
        Ok((None, Subject::Relation(kind.to_owned(), name)))
    };
    if words.take(&["DATABASE"]) {
        return Ok((Some(words.identifier()?), Subject::Database));
    }
    if words.take(&["SCHEMA"]) {
        let schema = words.identifier()?;
        return Ok((None, Subject::Schema(schema)));
    }
    if words.take(&["COLUMN"]) {
        let mut parts = name(words)?;
        let column = parts.pop().expect("a name has parts");
        if parts.is_empty() {
            return Err(SqlError::new(
                SqlState::SYNTAX,
                "column name must be qualified",
            ));
        }
        return Ok((None, Subject::Column(written(&parts), column)));
    }
    if words.take(&["CONSTRAINT"]) {
        let constraint = words.identifier()?;
        words.expect(&["ON"])?;
        if words.is(&["DOMAIN"]) {
            return Err(words.unsupported("COMMENT ON CONSTRAINT ON DOMAIN"));
        }
        return Ok((None, Subject::Constraint(own_name(words)?, constraint)));
    }
    if let Some(kind) = words.take_any(&["TYPE", "DOMAIN"]) {
        let kind = kind.to_ascii_lowercase();
        return Ok((None, Subject::Type(kind, own_name(words)?)));
    }
    if words.take(&["MATERIALIZED", "VIEW"]) {
        return of_kind(words, "materialized view");
    }
    if words.take(&["FOREIGN", "TABLE"]) {
        return of_kind(words, "foreign table");
    }
    match words.take_any(&["TABLE", "INDEX", "SEQUENCE", "VIEW"]) {
        Some(kind) => of_kind(words, &kind.to_ascii_lowercase()),
        None => Err(words.unexpected()),
    }
}

/// A name with its qualifications.
pub(super) fn name(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    if let Token::Word(word) = words.peek()
        && word.quote_style.is_none()
        && functions::keywords::is_reserved(&word.value)
    {
        return Err(words.unexpected());
    }
    let mut parts = vec![words.identifier()?];
    while words.take_token(&Token::Period) {
        parts.push(words.identifier()?);
    }
    Ok(parts)
}

/// The name of an object, as [`written`] gives it.
pub(super) fn own_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    Ok(written(&name(words)?))
}

/// The parts of a name as one text, with quotes where they need them: what it means is known when
/// the statement is planned.
pub(super) fn written(parts: &[String]) -> String {
    let parts = parts.iter().map(|part| quote_ident(part));
    parts.collect::<Vec<_>>().join(".")
}
