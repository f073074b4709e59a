//! WITH: the forms that are not supported, which the library reads in part or not at all.

use super::words::Words;
use base::SqlError;
use sqlparser::tokenizer::Token;

/// Refuses statements that change rows, in a WITH clause and behind it.
///
/// # Errors
/// 0A000 at the statement's first word.
pub(super) fn check(words: &mut Words<'_>) -> Result<(), SqlError> {
    let mut depth = 0usize;
    for at in words.at..words.tokens.len() {
        match &words.tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Word(_) => {
                words.at = at;
                let changes = ["INSERT", "UPDATE", "DELETE", "MERGE"];
                let changes = changes.iter().any(|word| words.is_at(0, word));
                if changes && begins_statement(words, at, depth) {
                    return Err(words.unsupported("WITH that changes rows"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a statement can begin here: behind `AS (` and `MATERIALIZED (`, and behind the queries.
fn begins_statement(words: &Words<'_>, at: usize, depth: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| &words.tokens[at].token);
    let is_word = |token: Option<&Token>, wanted: &str| {
        matches!(token, Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    };
    match before(1) {
        Some(Token::LParen) => is_word(before(2), "AS") || is_word(before(2), "MATERIALIZED"),
        Some(Token::RParen) => depth == 0,
        _ => false,
    }
}
