//! Words of constraints that the library does not know: some change nothing, the rest is refused.

use super::source::Source;
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What is not there yet.
const REFUSED: [(&str, &str); 5] = [
    ("MATCH", "FULL"),
    ("MATCH", "PARTIAL"),
    ("NOT", "VALID"),
    ("VALIDATE", "CONSTRAINT"),
    ("NO", "INHERIT"),
];

/// The tokens of a CREATE TABLE or ALTER TABLE without MATCH SIMPLE, which is the default.
///
/// # Errors
/// 0A000 for MATCH FULL and PARTIAL, NOT VALID, VALIDATE CONSTRAINT and NO INHERIT.
pub(super) fn simplified(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Vec<TokenWithSpan>, SqlError> {
    let is = |at: usize, word: &str| {
        matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let refused = REFUSED
            .iter()
            .find(|(first, second)| is(at, first) && is(at + 1, second));
        if let Some((first, second)) = refused {
            let message = format!("{first} {second} is not supported");
            let place = source.position(tokens[at].span.start);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(place));
        }
        if is(at, "MATCH") && is(at + 1, "SIMPLE") {
            at += 2;
            continue;
        }
        kept.push(tokens[at].clone());
        at += 1;
    }
    Ok(kept)
}

/// Refuses the condition of an index that ON CONFLICT asks for: there are no partial indexes.
///
/// # Errors
/// 0A000.
pub(super) fn check_conflict(source: &Source, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let is = |at: usize, word: &str| {
        matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let conflict = (0..tokens.len()).find(|at| is(*at, "ON") && is(at + 1, "CONFLICT"));
    let Some(conflict) = conflict else {
        return Ok(());
    };
    let opens = tokens.get(conflict + 2);
    let target = opens.is_some_and(|token| token.token == Token::LParen);
    let close = tokens[conflict..]
        .iter()
        .position(|token| token.token == Token::RParen);
    match close {
        Some(close) if is(conflict + close + 1, "WHERE") && target => {
            let place = source.position(tokens[conflict + close + 1].span.start);
            let message = "ON CONFLICT (...) WHERE is not supported";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("No index is partial: leave the condition out.")
                .at(place))
        }
        _ => Ok(()),
    }
}
