//! SEARCH and CYCLE of a recursive query, which the library does not know. Their text stands as a
//! name behind the query, where the library takes FROM.

use super::lexer;
use super::source::{Source, Walk};
use super::with_library;
use super::words::Words;
use base::SqlError;
use sqlparser::ast::{Expr, Ident};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::sync::Arc;

/// Begins the name that holds their text.
const MARK: char = '\u{1}';

/// The columns that a recursive query gets besides its own.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Recursion {
    pub search: Option<Search>,
    pub cycle: Option<Cycle>,
}

/// `SEARCH BREADTH | DEPTH FIRST BY columns SET sequence`
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Search {
    pub breadth: bool,
    pub columns: Vec<Ident>,
    pub sequence: Ident,
}

/// `CYCLE columns SET mark [TO value DEFAULT default] USING path`
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Cycle {
    pub columns: Vec<Ident>,
    pub mark: Ident,
    /// What the mark is in a row that closes a cycle, and in others; `None`: true and false.
    pub values: Option<(Expr, Expr)>,
    pub path: Ident,
}

/// What stands behind a query of WITH; `None`: it is no such text.
///
/// # Errors
/// Those of its parts.
pub fn recursion(name: &Ident) -> Result<Option<Recursion>, SqlError> {
    let Some(text) = name.value.strip_prefix(MARK) else {
        return Ok(None);
    };
    let source = Source(Arc::from(text));
    let tokens = lexer::tokens(&source)?;
    let mut words = Words::new(&tokens, &source);
    let recursion = clauses(&mut words)?;
    words.expect_end()?;
    Ok(Some(recursion))
}

/// Whether a name holds the text of the clauses.
pub(super) fn is_mark(name: &Ident) -> bool {
    name.value.starts_with(MARK)
}

/// Whether a clause begins behind the parenthesis of a query.
fn begins(tokens: &[TokenWithSpan], at: usize) -> bool {
    let is = |at: usize, word: &str| super::constraints::is_word(tokens, at, word);
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let searches = is(at, "SEARCH") && (is(at + 1, "DEPTH") || is(at + 1, "BREADTH"));
    let cycles = is(at, "CYCLE")
        && matches!(token(at + 1), Some(Token::Word(_)))
        && (token(at + 2) == Some(&Token::Comma) || is(at + 2, "SET"));
    at > 0 && token(at - 1) == Some(&Token::RParen) && (searches && is(at + 2, "FIRST") || cycles)
}

/// The tokens with FROM and a name for the clauses; `None`: there are none.
///
/// # Errors
/// 42601.
pub(super) fn marked(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    let has_with = tokens.iter().enumerate();
    let mut has_with = has_with.map(|(at, _)| super::constraints::is_word(tokens, at, "WITH"));
    let found = has_with.any(|is_with| is_with) && (0..tokens.len()).any(|at| begins(tokens, at));
    if !found {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(tokens.len());
    let mut walk = Walk::new(&source.0);
    let mut at = 0;
    while at < tokens.len() {
        if !begins(tokens, at) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let mut words = Words { tokens, at, source };
        clauses(&mut words)?;
        let span = tokens[at].span;
        walk.to(span.start);
        let start = walk.byte;
        walk.to(tokens[words.at - 1].span.end);
        let text = Token::Word(Word {
            value: format!("{MARK}{}", &source.0[start..walk.byte]),
            quote_style: Some('"'),
            keyword: sqlparser::keywords::Keyword::NoKeyword,
        });
        kept.push(TokenWithSpan::new(super::word("FROM"), span));
        kept.push(TokenWithSpan::new(text, span));
        at = words.at;
    }
    Ok(Some(kept))
}

fn clauses(words: &mut Words<'_>) -> Result<Recursion, SqlError> {
    let mut recursion = Recursion::default();
    if words.take(&["SEARCH"]) {
        let Some(order) = words.take_any(&["BREADTH", "DEPTH"]) else {
            return Err(words.unexpected());
        };
        words.expect(&["FIRST"])?;
        words.expect(&["BY"])?;
        let columns = names(words)?;
        words.expect(&["SET"])?;
        recursion.search = Some(Search {
            breadth: order == "BREADTH",
            columns,
            sequence: name(words)?,
        });
    }
    if words.take(&["CYCLE"]) {
        let columns = names(words)?;
        words.expect(&["SET"])?;
        let mark = name(words)?;
        let mut values = None;
        if words.take(&["TO"]) {
            let value = constant(words)?;
            words.expect(&["DEFAULT"])?;
            values = Some((value, constant(words)?));
        }
        words.expect(&["USING"])?;
        recursion.cycle = Some(Cycle {
            columns,
            mark,
            values,
            path: name(words)?,
        });
    }
    Ok(recursion)
}

fn name(words: &mut Words<'_>) -> Result<Ident, SqlError> {
    let at = words.at;
    words.identifier()?;
    match &words.tokens[at].token {
        Token::Word(word) => Ok(word.clone().into_ident(words.tokens[at].span)),
        _ => Err(words.unexpected_at(0)),
    }
}

fn names(words: &mut Words<'_>) -> Result<Vec<Ident>, SqlError> {
    let mut names = vec![name(words)?];
    while words.take_token(&Token::Comma) {
        names.push(name(words)?);
    }
    Ok(names)
}

/// A constant: up to the word that follows it.
fn constant(words: &mut Words<'_>) -> Result<Expr, SqlError> {
    let first = words.at;
    while !words.at_end() && !words.is(&["DEFAULT"]) && !words.is(&["USING"]) {
        words.at += 1;
    }
    let tokens = &words.tokens[first..words.at];
    if tokens.is_empty() {
        return Err(words.unexpected());
    }
    with_library(words.source, tokens, |parser| parser.parse_expr())
}
