//! CREATE TYPE ... AS ENUM, ALTER TYPE and DROP TYPE.

use super::Kind;
use super::comment::name;
use super::table_as::dropped;
use super::words::Words;
use ::rights::RoleName;
use base::SqlError;
use sqlparser::tokenizer::Token;

/// A statement about enum types, whose names are given by their parts.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum EnumStatement {
    Create {
        name: Vec<String>,
        labels: Vec<String>,
    },
    AddLabel {
        name: Vec<String>,
        label: String,
        if_not_exists: bool,
        /// Before (`true`) or behind another label.
        beside: Option<(bool, String)>,
    },
    RenameLabel {
        name: Vec<String>,
        from: String,
        to: String,
    },
    Rename {
        name: Vec<String>,
        to: String,
    },
    Owner {
        name: Vec<String>,
        to: RoleName,
    },
    Drop {
        names: Vec<Vec<String>>,
        if_exists: bool,
        cascade: bool,
    },
}

fn kind(statement: EnumStatement) -> Result<Kind, SqlError> {
    Ok(Kind::Enum(Box::new(statement)))
}

pub(super) fn create(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CREATE", "TYPE"])?;
    let name = name(words)?;
    if !words.is(&["AS", "ENUM"]) {
        let error = words.unsupported("CREATE TYPE of anything but an enum");
        return Err(error.hint("Enum types are supported: CREATE TYPE ... AS ENUM (...)."));
    }
    words.at += 2;
    words.expect_token(&Token::LParen)?;
    let mut labels = Vec::new();
    if !words.take_token(&Token::RParen) {
        labels.push(words.string()?);
        while words.take_token(&Token::Comma) {
            labels.push(words.string()?);
        }
        words.expect_token(&Token::RParen)?;
    }
    words.expect_end()?;
    kind(EnumStatement::Create { name, labels })
}

pub(super) fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["ALTER", "TYPE"])?;
    let name = name(words)?;
    let statement = if words.take(&["ADD", "VALUE"]) {
        let if_not_exists = words.take(&["IF", "NOT", "EXISTS"]);
        let label = words.string()?;
        let beside = match words.take_any(&["BEFORE", "AFTER"]) {
            Some(side) => Some((side == "BEFORE", words.string()?)),
            None => None,
        };
        EnumStatement::AddLabel {
            name,
            label,
            if_not_exists,
            beside,
        }
    } else if words.take(&["RENAME", "VALUE"]) {
        let from = words.string()?;
        words.expect(&["TO"])?;
        let to = words.string()?;
        EnumStatement::RenameLabel { name, from, to }
    } else if words.take(&["RENAME", "TO"]) {
        let to = words.identifier()?;
        EnumStatement::Rename { name, to }
    } else if words.take(&["OWNER", "TO"]) {
        let to = super::rights::role(words)?;
        EnumStatement::Owner { name, to }
    } else {
        return Err(match words.peek() {
            Token::Word(_) => words.unsupported("this form of ALTER TYPE"),
            _ => words.unexpected(),
        });
    };
    words.expect_end()?;
    kind(statement)
}

pub(super) fn drop(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let (names, if_exists, cascade) = dropped(words, "TYPE")?;
    kind(EnumStatement::Drop {
        names,
        if_exists,
        cascade,
    })
}
