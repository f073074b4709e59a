//! Joins inside of joins without parentheses: `a JOIN b JOIN c ON x ON y` is `a JOIN (b JOIN c ON
//! x) ON y`. The library wants the parentheses.
//!
//! A join that needs ON or USING takes everything up to there as its right side; CROSS and NATURAL
//! joins take one table.

use super::Source;
use base::SqlError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A join whose ON or USING has not come yet.
struct Pending {
    /// First token of its right side.
    start: usize,
    /// Another join has begun on its right side.
    is_nested: bool,
}

/// The tokens with parentheses around nested joins; `None` if there are no such joins.
///
/// # Errors
/// 42601 where a nested join ends without ON or USING.
pub(super) fn grouped(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    // Places of parentheses: a token's number, and whether one is opened before it.
    let mut inserted: Vec<(usize, bool)> = Vec::new();
    let mut open: Vec<Vec<Pending>> = vec![Vec::new()];
    for (at, token) in tokens.iter().enumerate() {
        let Some(pending) = open.last_mut() else {
            return Ok(None);
        };
        match &token.token {
            Token::LParen => open.push(Vec::new()),
            Token::RParen | Token::Comma => {
                refuse(pending, source, Some(token))?;
                pending.clear();
                if token.token == Token::RParen {
                    open.pop();
                }
            }
            Token::Word(_) if super::is_name(tokens, at) => {}
            Token::Word(word) => match word.keyword {
                Keyword::JOIN => {
                    if let Some(around) = pending.last_mut() {
                        around.is_nested = true;
                    }
                    if needs_condition(tokens, at) {
                        pending.push(Pending {
                            start: at + 1,
                            is_nested: false,
                        });
                    }
                }
                Keyword::ON | Keyword::USING => {
                    if let Some(Pending { start, is_nested }) = pending.pop()
                        && is_nested
                    {
                        inserted.push((start, true));
                        inserted.push((at, false));
                    }
                }
                Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::RETURNING => {
                    refuse(pending, source, Some(token))?;
                    pending.clear();
                }
                _ => {}
            },
            _ => {}
        }
    }
    open.iter()
        .try_for_each(|pending| refuse(pending, source, None))?;
    Ok((!inserted.is_empty()).then(|| with_parentheses(tokens, inserted)))
}

fn refuse(
    pending: &[Pending],
    source: &Source,
    token: Option<&TokenWithSpan>,
) -> Result<(), SqlError> {
    match pending.iter().any(|join| join.is_nested) {
        true => Err(source.unexpected(token)),
        false => Ok(()),
    }
}

/// Whether the join of this word is neither a CROSS nor a NATURAL one.
fn needs_condition(tokens: &[TokenWithSpan], at: usize) -> bool {
    for token in tokens[..at].iter().rev() {
        match &token.token {
            Token::Word(word) => match word.keyword {
                Keyword::INNER
                | Keyword::LEFT
                | Keyword::RIGHT
                | Keyword::FULL
                | Keyword::OUTER => {}
                Keyword::CROSS | Keyword::NATURAL => return false,
                _ => return true,
            },
            _ => return true,
        }
    }
    true
}

fn with_parentheses(
    tokens: &[TokenWithSpan],
    mut inserted: Vec<(usize, bool)>,
) -> Vec<TokenWithSpan> {
    inserted.sort_unstable();
    let mut inserted = inserted.into_iter().peekable();
    let mut all = Vec::with_capacity(tokens.len() + inserted.len());
    for (at, token) in tokens.iter().enumerate() {
        while let Some((_, opens)) = inserted.next_if(|(place, _)| *place == at) {
            let token_of = if opens { Token::LParen } else { Token::RParen };
            all.push(TokenWithSpan::new(token_of, token.span));
        }
        all.push(token.clone());
    }
    all
}
