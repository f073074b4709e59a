//! CREATE TABLE with the clauses after the column list: `PARTITION BY (..)`, `WITH (..)`.

use super::commands::identifiers;
use super::constraints::{self, Simplified};
use super::source::Source;
use super::words::Words;
use super::{Kind, TableStatement, like, table_as, with_library};
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// How long a new relation lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lifetime {
    /// TEMPORARY: as long as its session, at most.
    pub temporary: bool,
    /// ON COMMIT, if it is there.
    pub on_commit: Option<OnCommit>,
}

/// What a commit does with a temporary table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnCommit {
    /// Nothing.
    Preserve,
    /// It takes its rows away.
    Delete,
    /// It takes the table away.
    Drop,
}

/// Number of words between CREATE and TABLE.
fn words_before_table(words: &Words<'_>) -> Option<usize> {
    (0..3).find(|count| words.is_at(count + 1, "TABLE"))
}

/// Whether the statement is CREATE [[LOCAL | GLOBAL] TEMPORARY | UNLOGGED] TABLE.
pub(super) fn is_create_table(words: &Words<'_>) -> bool {
    let temporary = |at| words.is_at(at, "TEMP") || words.is_at(at, "TEMPORARY");
    match words_before_table(words) {
        Some(0) => true,
        Some(1) => words.is_at(1, "UNLOGGED") || temporary(1),
        Some(2) => (words.is_at(1, "LOCAL") || words.is_at(1, "GLOBAL")) && temporary(2),
        _ => false,
    }
}

/// Takes the words behind CREATE that say whether the relation is temporary.
pub(super) fn take_temporary(words: &mut Words<'_>) -> bool {
    let start = words.at;
    words.take_any(&["LOCAL", "GLOBAL"]);
    let temporary = words.take_any(&["TEMP", "TEMPORARY"]).is_some();
    if !temporary {
        words.at = start;
    }
    temporary
}

/// Takes ON COMMIT with what follows.
pub(super) fn take_on_commit(words: &mut Words<'_>) -> Result<Option<OnCommit>, SqlError> {
    if !words.take(&["ON", "COMMIT"]) {
        return Ok(None);
    }
    if words.take(&["PRESERVE", "ROWS"]) {
        Ok(Some(OnCommit::Preserve))
    } else if words.take(&["DELETE", "ROWS"]) {
        Ok(Some(OnCommit::Delete))
    } else if words.take(&["DROP"]) {
        Ok(Some(OnCommit::Drop))
    } else {
        Err(words.unexpected())
    }
}

/// Parses it: the library reads up to the end of the column list, we read the rest.
pub(super) fn create_table(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    if let Some(kind) = table_as::create(words)? {
        return Ok(kind);
    }
    // UNLOGGED is accepted and means nothing: every table is logged.
    let before = words_before_table(words).unwrap_or_default();
    let mut lifetime = Lifetime {
        temporary: before > 0 && !words.is_at(1, "UNLOGGED"),
        on_commit: None,
    };
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
    let inside = match without_tablespace(words.source, &inside)? {
        Some(kept) => kept,
        None => inside,
    };
    head.extend_from_slice(&words.tokens[1 + before..=open]);
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
    let mut idle = Vec::new();
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
            (replicated, idle) = options(words)?;
        } else if words.take(&["WITHOUT", "OIDS"]) || take_storage(words)? {
        } else if words.is(&["INHERITS"]) {
            return Err(words.unsupported("INHERITS"));
        } else if let Some(on_commit) = take_on_commit(words)? {
            lifetime.on_commit = Some(on_commit);
        } else {
            return Err(words.unexpected());
        }
    }
    Ok(Kind::CreateTable(Box::new(TableStatement {
        table,
        partition,
        replicated,
        idle,
        lifetime,
        marks,
        likes,
    })))
}

/// TABLESPACE and USING: there is one of each.
///
/// # Errors
/// 42704 for any other.
pub(super) fn take_storage(words: &mut Words<'_>) -> Result<bool, SqlError> {
    let (what, known) = if words.take(&["TABLESPACE"]) {
        ("tablespace", "pg_default")
    } else if words.take(&["USING"]) {
        ("access method", "heap")
    } else {
        return Ok(false);
    };
    let name = words.identifier()?;
    if name == known {
        return Ok(true);
    }
    let message = format!("{what} \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// The name of a tablespace.
///
/// # Errors
/// 42704 for any but the one that there is.
pub(super) fn only_tablespace(words: &mut Words<'_>) -> Result<(), SqlError> {
    let name = words.identifier()?;
    match name.as_str() {
        "pg_default" => Ok(()),
        _ => {
            let message = format!("tablespace \"{name}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// ALTER .. ALL IN TABLESPACE: there is one, so nothing can be moved.
pub(super) fn all_in_tablespace(words: &mut Words<'_>) -> SqlError {
    let error = words.unsupported("ALTER ... ALL IN TABLESPACE");
    error.hint("There is one tablespace, pg_default; leave the statement out.")
}

/// The tokens without USING INDEX TABLESPACE and TABLESPACE with its name.
///
/// # Errors
/// 42704 for a tablespace that there is not.
pub(super) fn without_tablespace(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    let is = |at: usize, word: &str| constraints::is_word(tokens, at, word);
    let begins = |at: usize| {
        let names_one = matches!(
            tokens.get(at + 1).map(|token| &token.token),
            Some(Token::Word(_))
        );
        // No column, index or table of that name stands there.
        let behind = at > 1
            && (tokens[at - 1].token == Token::RParen
                || is(at - 2, "USING") && is(at - 1, "INDEX")
                || is(at - 2, "NOT") && is(at - 1, "DISTINCT"));
        is(at, "TABLESPACE") && names_one && behind
    };
    if !(0..tokens.len()).any(begins) {
        return Ok(None);
    }
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if !begins(at) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut words = Words { tokens, at, source };
        words.at += 1;
        only_tablespace(&mut words)?;
        let len = kept.len();
        if constraints::is_word(&kept, len.saturating_sub(2), "USING")
            && constraints::is_word(&kept, len - 1, "INDEX")
        {
            kept.truncate(len - 2);
        }
        at = words.at;
    }
    Ok(Some(kept))
}

/// A parameter in the parentheses behind WITH or SET, in small letters.
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) value: String,
}

/// `(replicated = true, fillfactor = 100)`; with `values` false the names alone.
///
/// # Errors
/// 22023 for a name that PostgreSQL does not know, and for a fillfactor out of its bounds.
pub(super) fn parameters(words: &mut Words<'_>, values: bool) -> Result<Vec<Parameter>, SqlError> {
    let mut found = Vec::new();
    words.expect_token(&Token::LParen)?;
    loop {
        let mut name = words.identifier()?;
        while words.take_token(&Token::Period) {
            name = words.identifier()?;
        }
        let mut value = String::from("true");
        if words.take_token(&Token::Eq) {
            value = words.value()?.to_lowercase();
            if !values {
                let message = "RESET must not include values for parameters";
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        }
        match name.as_str() {
            "replicated" => {}
            "fillfactor" if values => check_fillfactor(&value)?,
            "fillfactor" | "oids" | "toast_tuple_target" | "parallel_workers"
            | "user_catalog_table" => {}
            _ if !values => {}
            _ if name.starts_with("autovacuum_") || name.starts_with("vacuum_") => {}
            _ => {
                let message = format!("unrecognized parameter \"{name}\"");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
        }
        found.push(Parameter { name, value });
        if words.take_token(&Token::RParen) {
            return Ok(found);
        }
        words.expect_token(&Token::Comma)?;
    }
}

fn check_fillfactor(value: &str) -> Result<(), SqlError> {
    let wrong = |message: String| Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    match value.parse::<i32>() {
        Ok(10..=100) => Ok(()),
        Ok(_) => {
            let message = format!("value {value} out of bounds for option \"fillfactor\"");
            let error = SqlError::new(SqlState::INVALID_PARAMETER, message);
            Err(error.detail("Valid values are between \"10\" and \"100\"."))
        }
        Err(_) => wrong(format!(
            "invalid value for integer option \"fillfactor\": {value}"
        )),
    }
}

/// Whether the table is replicated, and the storage parameters of PostgreSQL that have no effect.
pub(super) fn options(words: &mut Words<'_>) -> Result<(bool, Vec<String>), SqlError> {
    let (mut replicated, mut idle) = (false, Vec::new());
    for Parameter { name, value } in parameters(words, true)? {
        if name != "replicated" {
            idle.push(name);
            continue;
        }
        replicated = match value.as_str() {
            "true" | "on" | "yes" | "1" => true,
            "false" | "off" | "no" | "0" => false,
            _ => {
                let message = format!("invalid value for boolean option \"replicated\": {value}");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
            }
        };
    }
    Ok((replicated, idle))
}
