//! `COMMENT ON ... IS ...`.

use super::words::Words;
use super::{Comment, Kind};
use crate::unsupported;
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
    "DOMAIN",
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
    "TYPE",
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
        return own_schema(&schema).map(|()| (None, Subject::Schema));
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
        return Ok((None, Subject::Column(in_public(parts)?, column)));
    }
    if words.take(&["CONSTRAINT"]) {
        let constraint = words.identifier()?;
        words.expect(&["ON"])?;
        if words.is(&["DOMAIN"]) {
            return Err(words.unsupported("COMMENT ON CONSTRAINT ON DOMAIN"));
        }
        return Ok((None, Subject::Constraint(own_name(words)?, constraint)));
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

pub(super) fn own_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    in_public(name(words)?)
}

/// The last part of the name of an object in the schema `public`.
fn in_public(mut parts: Vec<String>) -> Result<String, SqlError> {
    let name = parts.pop().expect("a name has parts");
    match parts.as_slice() {
        [] if pg_catalog::lookup(None, &name).is_some() => {
            let message = format!("permission denied: \"{name}\" is a system catalog");
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
        }
        [] => Ok(name),
        [schema] => own_schema(schema).map(|()| name),
        _ => Err(unsupported(
            "a database in the name of what a comment is on",
        )),
    }
}

fn own_schema(schema: &str) -> Result<(), SqlError> {
    match schema {
        "public" => Ok(()),
        "pg_catalog" | "information_schema" => {
            let message = format!("permission denied for schema {schema}");
            Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
        }
        _ => {
            let message = format!("schema \"{schema}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_SCHEMA, message))
        }
    }
}
