//! CREATE DOMAIN, ALTER DOMAIN and DROP DOMAIN.

use super::comment::name;
use super::table_as::dropped;
use super::words::Words;
use super::{Kind, with_library};
use ::rights::RoleName;
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about domains, whose names are given by their parts.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum DomainStatement {
    Create(Box<DomainCreate>),
    Drop {
        names: Vec<Vec<String>>,
        if_exists: bool,
        cascade: bool,
    },
    Alter {
        name: Vec<String>,
        change: Box<DomainWords>,
    },
}

/// What CREATE DOMAIN says.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct DomainCreate {
    pub name: Vec<String>,
    pub ty: ast::DataType,
    pub collation: Option<ast::ObjectName>,
    pub default: Option<ast::Expr>,
    pub not_null: bool,
    /// Names, which may be empty, and conditions.
    pub checks: Vec<(String, ast::Expr)>,
}

/// One change of ALTER DOMAIN.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum DomainWords {
    Default(Option<ast::Expr>),
    NotNull(bool),
    Add {
        name: String,
        check: ast::Expr,
        not_valid: bool,
    },
    DropConstraint {
        name: String,
        if_exists: bool,
    },
    Validate(String),
    RenameConstraint {
        from: String,
        to: String,
    },
    Rename(String),
    Move(String),
    Owner(RoleName),
}

/// Words that end a type or a default.
const ENDS: &[&str] = &["COLLATE", "DEFAULT", "NOT", "NULL", "CHECK", "CONSTRAINT"];

fn kind(statement: DomainStatement) -> Kind {
    Kind::Domain(Box::new(statement))
}

/// Parses the statement if it is one about domains.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    if words.take(&["CREATE", "DOMAIN"]) {
        return create(words).map(Some);
    }
    if words.take(&["ALTER", "DOMAIN"]) {
        return alter(words).map(Some);
    }
    if !words.is(&["DROP", "DOMAIN"]) {
        return Ok(None);
    }
    let (names, if_exists, cascade) = dropped(words, "DOMAIN")?;
    Ok(Some(kind(DomainStatement::Drop {
        names,
        if_exists,
        cascade,
    })))
}

/// Takes the tokens up to the next clause; there is at least one.
fn part<'a>(words: &mut Words<'a>) -> Result<&'a [TokenWithSpan], SqlError> {
    let start = words.at;
    let mut depth = 0i32;
    loop {
        match words.peek() {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth -= 1,
            Token::EOF => break,
            _ if words.is(&["CASE"]) => depth += 1,
            _ if words.is(&["END"]) => depth -= 1,
            _ if depth == 0 && words.at > start && ENDS.iter().any(|end| words.is(&[end])) => break,
            _ => {}
        }
        words.at += 1;
    }
    match words.at == start {
        true => Err(words.unexpected()),
        false => Ok(&words.tokens[start..words.at]),
    }
}

fn expression(words: &Words<'_>, tokens: &[TokenWithSpan]) -> Result<ast::Expr, SqlError> {
    with_library(words.source, tokens, |parser| parser.parse_expr())
}

fn create(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let domain = name(words)?;
    words.take(&["AS"]);
    let tokens = part(words)?;
    let ty = with_library(words.source, tokens, |parser| parser.parse_data_type())?;
    let mut created = DomainCreate {
        name: domain,
        ty,
        collation: None,
        default: None,
        not_null: false,
        checks: Vec::new(),
    };
    let mut null = None;
    while !words.at_end() {
        clause(words, &mut created, &mut null)?;
    }
    created.not_null = null == Some(false);
    Ok(kind(DomainStatement::Create(Box::new(created))))
}

fn clause(
    words: &mut Words<'_>,
    created: &mut DomainCreate,
    null: &mut Option<bool>,
) -> Result<(), SqlError> {
    if words.take(&["COLLATE"]) {
        let parts = name(words)?.into_iter();
        let parts = parts.map(|part| ast::Ident::with_quote('"', part));
        created.collation = Some(ast::ObjectName::from(parts.collect::<Vec<_>>()));
        return Ok(());
    }
    if words.take(&["DEFAULT"]) {
        let tokens = part(words)?;
        let value = expression(words, tokens)?;
        if created.default.replace(value).is_some() {
            return Err(SqlError::new(
                SqlState::SYNTAX,
                "multiple default expressions",
            ));
        }
        return Ok(());
    }
    let mut named = String::new();
    if words.take(&["CONSTRAINT"]) {
        named = words.identifier()?;
    }
    if words.take(&["CHECK"]) {
        let group = words.group()?;
        refuse_no_inherit(words)?;
        created.checks.push((named, expression(words, group)?));
        return Ok(());
    }
    let is_null = if words.take(&["NOT", "NULL"]) {
        false
    } else if words.take(&["NULL"]) {
        true
    } else {
        return Err(other_constraint(words));
    };
    if null
        .replace(is_null)
        .is_some_and(|before| before != is_null)
    {
        let message = "conflicting NULL/NOT NULL constraints";
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    Ok(())
}

/// The error of a constraint that only tables have.
fn other_constraint(words: &Words<'_>) -> SqlError {
    let what = [
        (&["UNIQUE"][..], "unique"),
        (&["PRIMARY", "KEY"], "primary key"),
        (&["REFERENCES"], "foreign key"),
        (&["EXCLUDE"], "exclusion"),
    ];
    match what.iter().find(|(first, _)| words.is(first)) {
        Some((_, what)) => SqlError::new(
            SqlState::SYNTAX,
            format!("{what} constraints not possible for domains"),
        ),
        None => words.unexpected(),
    }
}

fn refuse_no_inherit(words: &Words<'_>) -> Result<(), SqlError> {
    match words.is(&["NO", "INHERIT"]) {
        true => Err(SqlError::new(
            SqlState(*b"42P16"),
            "check constraints for domains cannot be marked NO INHERIT",
        )),
        false => Ok(()),
    }
}

fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let domain = name(words)?;
    let change = Box::new(change(words)?);
    words.expect_end()?;
    Ok(kind(DomainStatement::Alter {
        name: domain,
        change,
    }))
}

fn change(words: &mut Words<'_>) -> Result<DomainWords, SqlError> {
    if words.take(&["SET", "DEFAULT"]) {
        let tokens = part(words)?;
        return Ok(DomainWords::Default(Some(expression(words, tokens)?)));
    }
    if words.take(&["DROP", "DEFAULT"]) {
        return Ok(DomainWords::Default(None));
    }
    if words.take(&["SET", "NOT", "NULL"]) {
        return Ok(DomainWords::NotNull(true));
    }
    if words.take(&["DROP", "NOT", "NULL"]) {
        return Ok(DomainWords::NotNull(false));
    }
    if words.take(&["SET", "SCHEMA"]) {
        return Ok(DomainWords::Move(words.identifier()?));
    }
    if words.take(&["OWNER", "TO"]) {
        return Ok(DomainWords::Owner(super::rights::role(words)?));
    }
    if words.take(&["RENAME", "TO"]) {
        return Ok(DomainWords::Rename(words.identifier()?));
    }
    if words.take(&["RENAME", "CONSTRAINT"]) {
        let from = words.identifier()?;
        words.expect(&["TO"])?;
        let to = words.identifier()?;
        return Ok(DomainWords::RenameConstraint { from, to });
    }
    if words.take(&["VALIDATE", "CONSTRAINT"]) {
        return Ok(DomainWords::Validate(words.identifier()?));
    }
    if words.take(&["DROP", "CONSTRAINT"]) {
        let if_exists = words.take(&["IF", "EXISTS"]);
        let name = words.identifier()?;
        // Nothing depends on a condition of a domain.
        words.take_any(&["CASCADE", "RESTRICT"]);
        return Ok(DomainWords::DropConstraint { name, if_exists });
    }
    words.expect(&["ADD"])?;
    let name = match words.take(&["CONSTRAINT"]) {
        true => words.identifier()?,
        false => String::new(),
    };
    if !words.take(&["CHECK"]) {
        return Err(other_constraint(words));
    }
    let group = words.group()?;
    let check = expression(words, group)?;
    refuse_no_inherit(words)?;
    let not_valid = words.take(&["NOT", "VALID"]);
    Ok(DomainWords::Add {
        name,
        check,
        not_valid,
    })
}
