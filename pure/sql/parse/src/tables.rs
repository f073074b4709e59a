//! CREATE TABLE with the clauses after the column list: `PARTITION BY (..)`, `WITH (..)`.

use super::commands::identifiers;
use super::constraints::{self, Simplified};
use super::words::Words;
use super::{Kind, TableStatement, like, table_as, with_library};
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// Whether the statement is CREATE [TEMPORARY | UNLOGGED] TABLE.
pub(super) fn is_create_table(words: &Words<'_>) -> bool {
    words.is(&["CREATE", "TABLE"])
        || words.is(&["CREATE", "UNLOGGED", "TABLE"])
        || words.is(&["CREATE", "TEMP", "TABLE"])
        || words.is(&["CREATE", "TEMPORARY", "TABLE"])
}

/// Parses it: the library reads up to the end of the column list, we read the rest.
pub(super) fn create_table(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    if words.is_at(1, "TEMP") || words.is_at(1, "TEMPORARY") {
        return Err(words.unsupported("CREATE TEMPORARY TABLE"));
    }
    if let Some(kind) = table_as::create(words)? {
        return Ok(kind);
    }
    // UNLOGGED is accepted and means nothing: every table is logged.
    let unlogged = usize::from(words.is_at(1, "UNLOGGED"));
    let mut head = vec![words.tokens[0].clone()];
    let open = words
        .tokens
        .iter()
        .position(|token| token.token == Token::LParen);
    let Some(open) = open else {
        words.at = words.tokens.len();
        return Err(words.unexpected());
    };
    words.at = open;
    let inside = words.group_or_nothing()?;
    let (inside, likes) = like::taken_out(words, inside)?;
    head.extend_from_slice(&words.tokens[1 + unlogged..=open]);
    head.extend(inside);
    head.push(words.tokens[words.at - 1].clone());
    let Simplified { tokens, marks } = constraints::simplified(words.source, &head)?;
    let head = super::options::reordered(&tokens);
    let statement = with_library(words.source, &head, |parser| parser.parse_statement())?;
    let ast::Statement::CreateTable(table) = statement else {
        words.at = 1;
        return Err(words.unexpected());
    };
    let (mut partition, mut replicated) = (Vec::new(), false);
    while !words.at_end() {
        if words.take(&["PARTITION", "BY"]) {
            if words.take_any(&["RANGE", "LIST", "HASH"]).is_some() {
                words.at -= 1;
                return Err(words
                    .unsupported("declarative partitioning")
                    .hint("Rows are spread by PARTITION BY (columns) of the primary key."));
            }
            partition = identifiers(words)?;
        } else if words.take(&["WITH"]) {
            replicated = options(words)?;
        } else if words.take(&["WITHOUT", "OIDS"]) {
        } else if words.take(&["TABLESPACE"]) || words.take(&["USING"]) {
            words.identifier()?;
        } else if words.is(&["INHERITS"]) {
            return Err(words.unsupported("INHERITS"));
        } else {
            return Err(words.unexpected());
        }
    }
    Ok(Kind::CreateTable(Box::new(TableStatement {
        table,
        partition,
        replicated,
        marks,
        likes,
    })))
}

/// `(replicated = true, fillfactor = 100)`; storage parameters of PostgreSQL are ignored.
pub(super) fn options(words: &mut Words<'_>) -> Result<bool, SqlError> {
    let mut replicated = false;
    words.expect_token(&Token::LParen)?;
    loop {
        let mut name = words.identifier()?;
        while words.take_token(&Token::Period) {
            name = words.identifier()?;
        }
        let value = if words.take_token(&Token::Eq) {
            words.value()?
        } else {
            String::from("true")
        };
        match name.as_str() {
            "replicated" => {
                replicated = match value.to_lowercase().as_str() {
                    "true" | "on" | "yes" | "1" => true,
                    "false" | "off" | "no" | "0" => false,
                    _ => {
                        let message =
                            format!("invalid value for boolean option \"replicated\": {value}");
                        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
                    }
                };
            }
            "fillfactor" | "oids" | "toast_tuple_target" | "parallel_workers"
            | "user_catalog_table" => {}
            _ if name.starts_with("autovacuum_") || name.starts_with("vacuum_") => {}
            _ => {
                let message = format!("unrecognized parameter \"{name}\"");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
        }
        if words.take_token(&Token::RParen) {
            return Ok(replicated);
        }
        words.expect_token(&Token::Comma)?;
    }
}
