//! INSERT with what the library does not know of it: OVERRIDING, and the expressions and the
//! condition of the index that ON CONFLICT asks for.

use super::constraints::is_word;
use super::source::Source;
use super::with_library;
use base::SqlError;
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// OVERRIDING { SYSTEM | USER } VALUE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Overriding {
    System,
    User,
}

/// What stands in an INSERT besides the library's tree.
#[derive(Default, Debug)]
#[allow(missing_docs)]
pub struct InsertWords {
    pub overriding: Option<Overriding>,
    /// `ON CONFLICT (...) WHERE condition`
    pub index_condition: Option<ast::Expr>,
    /// `ON CONFLICT (expressions, columns)`, which the tree then has without a target; `None`: the
    /// target is in the tree.
    pub index_keys: Option<Vec<ast::Expr>>,
    /// What of each column is set; none: all of it. Empty: all of all columns.
    pub parts: Vec<Vec<ast::AccessExpr>>,
}

/// Leaves the names of the columns in the tokens of an INSERT, whose list has parts of columns:
/// `(a[1], c.f)`.
///
/// # Errors
/// 42601 for what is no part of a column.
pub(super) fn without_parts(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<TakenOut<Vec<Vec<ast::AccessExpr>>>, SqlError> {
    let is_paren = |token: &TokenWithSpan| token.token == Token::LParen;
    let Some(open) = tokens.iter().position(is_paren) else {
        return Ok(None);
    };
    let is_name = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Period);
    let begins = |at: usize| STARTS.iter().any(|word| is_word(tokens, at, word));
    if !tokens[..open].iter().all(is_name) || (3..=open + 1).any(begins) {
        return Ok(None);
    }
    let mut depth = 0usize;
    let close = tokens[open..].iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let Some(close) = close.map(|behind| open + behind) else {
        return Ok(None);
    };
    let inside = &tokens[open + 1..close];
    let is_part = |token: &TokenWithSpan| matches!(token.token, Token::LBracket | Token::Period);
    if inside.first().is_none_or(is_paren) || !inside.iter().any(is_part) {
        return Ok(None);
    }
    let mut kept = tokens[..=open].to_vec();
    let mut parts = Vec::new();
    for (i, piece) in super::commands::split_commas(inside)
        .into_iter()
        .enumerate()
    {
        let Some(name) = piece.first() else {
            return Err(source.unexpected(tokens.get(close)));
        };
        parts.push(chain(source, piece)?);
        if i > 0 {
            kept.push(TokenWithSpan::new(Token::Comma, name.span));
        }
        kept.push(name.clone());
    }
    kept.extend_from_slice(&tokens[close..]);
    Ok(Some((kept, parts)))
}

/// What begins the rows of an INSERT.
const STARTS: [&str; 6] = ["VALUES", "SELECT", "WITH", "TABLE", "OVERRIDING", "DEFAULT"];

/// The fields and subscripts behind the name of a column.
fn chain(source: &Source, piece: &[TokenWithSpan]) -> Result<Vec<ast::AccessExpr>, SqlError> {
    let fields = |names: Vec<ast::Ident>| {
        let names = names.into_iter().skip(1);
        names.map(|name| ast::AccessExpr::Dot(ast::Expr::Identifier(name)))
    };
    let wrong = || source.unexpected(piece.first());
    match with_library(source, piece, |parser| parser.parse_expr())? {
        ast::Expr::Identifier(_) => Ok(Vec::new()),
        ast::Expr::CompoundIdentifier(names) => Ok(fields(names).collect()),
        ast::Expr::CompoundFieldAccess { root, access_chain } => match *root {
            ast::Expr::Identifier(_) => Ok(access_chain),
            ast::Expr::CompoundIdentifier(names) => Ok(fields(names).chain(access_chain).collect()),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// The tokens that are left, and what was taken out of them.
type TakenOut<T> = Option<(Vec<TokenWithSpan>, T)>;

/// Takes the list behind ON CONFLICT out of the tokens of an INSERT, if it has more than names.
///
/// # Errors
/// 42601 for expressions that are none.
pub(super) fn without_keys(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<TakenOut<Vec<ast::Expr>>, SqlError> {
    let Some(conflict) = outside(tokens, 0, |at| {
        is_word(tokens, at, "ON") && is_word(tokens, at + 1, "CONFLICT")
    }) else {
        return Ok(None);
    };
    let begin = conflict + 2;
    if tokens.get(begin).map(|token| &token.token) != Some(&Token::LParen) {
        return Ok(None);
    }
    let end = outside(tokens, begin, |at| at > begin).unwrap_or(tokens.len());
    let Some(keys) = tokens.get(begin + 1..end - 1) else {
        return Ok(None);
    };
    let plain = |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::Comma);
    if keys.is_empty() || keys.iter().all(plain) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for key in super::commands::split_commas(keys) {
        if key.is_empty() {
            return Err(source.unexpected(tokens.get(end - 1)));
        }
        found.push(with_library(source, key, |parser| parser.parse_expr())?);
    }
    let kept = [&tokens[..begin], &tokens[end..]].concat();
    Ok(Some((kept, found)))
}

/// Takes the condition behind the columns of ON CONFLICT out of the tokens of an INSERT.
///
/// # Errors
/// 42601 for a condition that is none.
pub(super) fn without_condition(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<TakenOut<ast::Expr>, SqlError> {
    let Some(conflict) = outside(tokens, 0, |at| {
        is_word(tokens, at, "ON") && is_word(tokens, at + 1, "CONFLICT")
    }) else {
        return Ok(None);
    };
    if tokens.get(conflict + 2).map(|token| &token.token) != Some(&Token::LParen) {
        return Ok(None);
    }
    // The first token outside of the columns' parentheses.
    let Some(begin) = outside(tokens, conflict + 2, |at| at > conflict + 2) else {
        return Ok(None);
    };
    if !is_word(tokens, begin, "WHERE") {
        return Ok(None);
    }
    let end = outside(tokens, begin, |at| is_word(tokens, at, "DO"));
    let end = end.ok_or_else(|| source.unexpected(None))?;
    let condition = &tokens[begin + 1..end];
    if condition.is_empty() {
        return Err(source.unexpected(tokens.get(end)));
    }
    let condition = with_library(source, condition, |parser| parser.parse_expr())?;
    let kept = [&tokens[..begin], &tokens[end..]].concat();
    Ok(Some((kept, condition)))
}

/// The first token from `from` on, outside of parentheses, of which `is` holds.
fn outside(tokens: &[TokenWithSpan], from: usize, is: impl Fn(usize) -> bool) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        if token.token == Token::LParen {
            depth += 1;
        } else if token.token == Token::RParen {
            depth = depth.saturating_sub(1);
        } else if depth == 0 && is(at) {
            return Some(at);
        }
    }
    None
}
