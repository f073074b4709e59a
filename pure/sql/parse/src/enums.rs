//! CREATE TYPE of enums and composite types, ALTER TYPE and DROP TYPE.

use super::comment::name;
use super::table_as::dropped;
use super::words::Words;
use super::{Kind, with_library};
use ::rights::RoleName;
use base::SqlError;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// An attribute of a composite type as it is written.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct AttributeWords {
    pub name: String,
    pub ty: ast::DataType,
    pub collation: Option<ast::ObjectName>,
}

/// One change of ALTER TYPE ... ATTRIBUTE.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum AttributeAction {
    Add(AttributeWords),
    Drop { name: String, if_exists: bool },
    Alter(AttributeWords),
}

/// A statement about the attributes of composite types.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum CompositeStatement {
    Create {
        name: Vec<String>,
        attributes: Vec<AttributeWords>,
    },
    Change {
        name: Vec<String>,
        actions: Vec<AttributeAction>,
    },
    Rename {
        name: Vec<String>,
        from: String,
        to: String,
    },
}

/// A statement about enum and composite types, whose names are given by their parts.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum EnumStatement {
    Create {
        name: Vec<String>,
        labels: Vec<String>,
    },
    Composite(CompositeStatement),
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
    if words.is(&["AS"]) && *words.peek_at(1) == Token::LParen {
        words.at += 1;
        let attributes = attributes(words)?;
        let create = CompositeStatement::Create { name, attributes };
        return kind(EnumStatement::Composite(create));
    }
    if !words.is(&["AS", "ENUM"]) {
        let error = words.unsupported("CREATE TYPE of anything but an enum or composite type");
        return Err(error.hint(
            "Supported are CREATE TYPE ... AS ENUM (...) and CREATE TYPE ... AS (name type, ...).",
        ));
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

/// The attributes of CREATE TYPE, to the end of the statement.
fn attributes(words: &mut Words<'_>) -> Result<Vec<AttributeWords>, SqlError> {
    words.expect_token(&Token::LParen)?;
    let mut attributes = Vec::new();
    if !words.take_token(&Token::RParen) {
        attributes.push(attribute(words)?);
        while words.take_token(&Token::Comma) {
            attributes.push(attribute(words)?);
        }
        words.expect_token(&Token::RParen)?;
    }
    words.expect_end()?;
    Ok(attributes)
}

/// Words that end the type of an attribute.
const ENDS: &[&str] = &["COLLATE", "CASCADE", "RESTRICT"];

fn attribute(words: &mut Words<'_>) -> Result<AttributeWords, SqlError> {
    let name = words.identifier()?;
    let (ty, collation) = attribute_type(words)?;
    Ok(AttributeWords {
        name,
        ty,
        collation,
    })
}

fn attribute_type(
    words: &mut Words<'_>,
) -> Result<(ast::DataType, Option<ast::ObjectName>), SqlError> {
    let start = words.at;
    let mut depth = 0usize;
    loop {
        match words.peek() {
            Token::EOF => break,
            Token::Comma | Token::RParen if depth == 0 => break,
            _ if depth == 0 && ENDS.iter().any(|end| words.is(&[end])) => break,
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        words.at += 1;
    }
    if words.at == start {
        return Err(words.unexpected());
    }
    let tokens = &words.tokens[start..words.at];
    let ty = with_library(words.source, tokens, |parser| parser.parse_data_type())?;
    let mut collation = None;
    if words.take(&["COLLATE"]) {
        let parts = name(words)?.into_iter();
        let parts = parts.map(|part| ast::Ident::with_quote('"', part));
        collation = Some(ast::ObjectName::from(parts.collect::<Vec<_>>()));
    }
    Ok((ty, collation))
}

/// CASCADE and RESTRICT: there are no tables of composite types (CREATE TABLE ... OF) that a change
/// could reach, so they say the same.
fn behavior(words: &mut Words<'_>) {
    words.take_any(&["CASCADE", "RESTRICT"]);
}

fn action(words: &mut Words<'_>) -> Result<AttributeAction, SqlError> {
    let action = if words.take(&["ADD", "ATTRIBUTE"]) {
        AttributeAction::Add(attribute(words)?)
    } else if words.take(&["DROP", "ATTRIBUTE"]) {
        let if_exists = words.take(&["IF", "EXISTS"]);
        let name = words.identifier()?;
        AttributeAction::Drop { name, if_exists }
    } else {
        words.expect(&["ALTER", "ATTRIBUTE"])?;
        let name = words.identifier()?;
        words.take(&["SET", "DATA"]);
        words.expect(&["TYPE"])?;
        let (ty, collation) = attribute_type(words)?;
        AttributeAction::Alter(AttributeWords {
            name,
            ty,
            collation,
        })
    };
    behavior(words);
    Ok(action)
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
    } else if words.take(&["RENAME", "ATTRIBUTE"]) {
        let from = words.identifier()?;
        words.expect(&["TO"])?;
        let to = words.identifier()?;
        behavior(words);
        EnumStatement::Composite(CompositeStatement::Rename { name, from, to })
    } else if ["ADD", "DROP", "ALTER"]
        .iter()
        .any(|word| words.is(&[*word, "ATTRIBUTE"]))
    {
        let mut actions = vec![action(words)?];
        while words.take_token(&Token::Comma) {
            actions.push(action(words)?);
        }
        EnumStatement::Composite(CompositeStatement::Change { name, actions })
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
