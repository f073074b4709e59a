//! CREATE SCHEMA, ALTER SCHEMA, DROP SCHEMA, and SET SCHEMA of what is in one.

use super::Kind;
use super::comment::{name, written};
use super::rights::{RightsStatement, role};
use super::table_as::dropped;
use super::words::Words;
use ::rights::{Change, ObjectKind, RoleName};
use base::SqlError;
use sqlparser::tokenizer::Token;

/// A statement about schemas.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum SchemaStatement {
    Create {
        /// `None`: the name of the owner.
        name: Option<String>,
        owner: Option<RoleName>,
        if_not_exists: bool,
    },
    Drop {
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    Rename {
        name: String,
        to: String,
    },
    /// SET SCHEMA.
    Move {
        kind: ObjectKind,
        /// The parts of its name.
        name: Vec<String>,
        if_exists: bool,
        to: String,
    },
}

fn kind(statement: SchemaStatement) -> Kind {
    Kind::Schema(Box::new(statement))
}

/// Parses the statement if it is one about schemas.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    if words.is(&["CREATE", "SCHEMA"]) {
        return create(words).map(Some);
    }
    if words.is(&["DROP", "SCHEMA"]) {
        return drop(words).map(Some);
    }
    if words.is(&["ALTER", "SCHEMA"]) {
        return alter(words).map(Some);
    }
    match words.is(&["ALTER"]) {
        true => moved(words),
        false => Ok(None),
    }
}

fn create(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CREATE", "SCHEMA"])?;
    let if_not_exists = words.take(&["IF", "NOT", "EXISTS"]);
    let name = match words.is(&["AUTHORIZATION"]) {
        true => None,
        false => Some(one_name(words)?),
    };
    let owner = match words.take(&["AUTHORIZATION"]) {
        true => Some(role(words)?),
        false => None,
    };
    if words.is(&["CREATE"]) || words.is(&["GRANT"]) {
        return Err(words
            .unsupported("CREATE SCHEMA with statements in it")
            .hint("Create what is in the schema by statements of their own."));
    }
    words.expect_end()?;
    Ok(kind(SchemaStatement::Create {
        name,
        owner,
        if_not_exists,
    }))
}

fn drop(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let start = words.at;
    let (names, if_exists, cascade) = dropped(words, "SCHEMA")?;
    let names = names.into_iter().map(|mut parts| match parts.len() {
        1 => Ok(parts.pop().unwrap_or_default()),
        _ => {
            words.at = start + 3;
            Err(words.unexpected())
        }
    });
    Ok(kind(SchemaStatement::Drop {
        names: names.collect::<Result<_, _>>()?,
        if_exists,
        cascade,
    }))
}

fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["ALTER", "SCHEMA"])?;
    let name = one_name(words)?;
    if words.take(&["RENAME", "TO"]) {
        let to = one_name(words)?;
        words.expect_end()?;
        return Ok(kind(SchemaStatement::Rename { name, to }));
    }
    words.expect(&["OWNER", "TO"])?;
    let to = role(words)?;
    words.expect_end()?;
    Ok(Kind::Rights(Box::new(RightsStatement {
        tag: "ALTER SCHEMA",
        change: Change::Owner {
            kind: ObjectKind::Schema,
            name: written(&[name]),
            if_exists: false,
            to,
        },
    })))
}

/// A name without a qualification.
fn one_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    let mut parts = name(words)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => {
            words.at -= 2;
            Err(words.unexpected())
        }
    }
}

/// ALTER ... SET SCHEMA.
fn moved(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let kinds = [
        ("TABLE", ObjectKind::Table),
        ("VIEW", ObjectKind::View),
        ("SEQUENCE", ObjectKind::Sequence),
        ("TYPE", ObjectKind::Type),
    ];
    let found = kinds.iter().find(|(word, _)| words.is_at(1, word));
    let Some((_, of)) = found else {
        return Ok(None);
    };
    let start = words.at;
    words.at += 2;
    let if_exists = *of != ObjectKind::Type && words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    let name = name(words);
    let (Ok(name), true) = (name, words.take(&["SET", "SCHEMA"])) else {
        words.at = start;
        return Ok(None);
    };
    let to = one_name(words)?;
    if words.peek() == &Token::Comma {
        return Err(words.unexpected());
    }
    words.expect_end()?;
    Ok(Some(kind(SchemaStatement::Move {
        kind: *of,
        name,
        if_exists,
        to,
    })))
}
