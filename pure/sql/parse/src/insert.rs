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
