//! The clauses at the end of a query: PostgreSQL takes LIMIT, OFFSET, FETCH and FOR UPDATE in any
//! order, the library in this one.

use super::Source;
use base::SqlError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The place in the library's order of LIMIT, of OFFSET, of FETCH, of locking clauses.
const LIMIT: usize = 0;
const OFFSET: usize = 1;
const FETCH: usize = 2;
const LOCKS: usize = 3;

/// The place in the library's order of the clause that starts at `at`.
fn rank(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword(at) {
        _ if super::is_name(tokens, at) => None,
        Keyword::LIMIT => Some(LIMIT),
        Keyword::OFFSET => Some(OFFSET),
        Keyword::FETCH => Some(FETCH),
        Keyword::FOR => {
            let locks = [Keyword::UPDATE, Keyword::SHARE, Keyword::NO, Keyword::KEY];
            locks.contains(&keyword(at + 1)).then_some(LOCKS)
        }
        _ => None,
    }
}

/// The tokens with the clauses of each query in the library's order.
///
/// # Errors
/// 42601 for a second clause of a kind.
pub(super) fn ordered(
    source: &Source,
    mut tokens: Vec<TokenWithSpan>,
) -> Result<Vec<TokenWithSpan>, SqlError> {
    // Per open parenthesis: ranks and starts of its query's last clauses.
    let mut open: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::LParen => open.push(Vec::new()),
            Token::RParen => {
                let clauses = open.pop().unwrap_or_default();
                sort(&mut tokens, &clauses, at);
                if open.is_empty() {
                    return Ok(tokens);
                }
            }
            Token::Word(word) => {
                let clauses = open.last_mut().expect("the outermost is never popped");
                if let Keyword::ON | Keyword::RETURNING = word.keyword {
                    let clauses = core::mem::take(clauses);
                    sort(&mut tokens, &clauses, at);
                } else if let Some(rank) = rank(&tokens, at) {
                    if is_second(rank, clauses) {
                        return Err(source.unexpected(tokens.get(at)));
                    }
                    clauses.push((rank, at));
                }
            }
            _ => {}
        }
    }
    let end = tokens.len();
    sort(&mut tokens, &open.pop().unwrap_or_default(), end);
    Ok(tokens)
}

/// Whether a query with these clauses has one of that kind: LIMIT and FETCH are of one kind, and
/// all locking clauses stand together.
fn is_second(rank: usize, clauses: &[(usize, usize)]) -> bool {
    let mut known = clauses.iter().map(|(known, _)| *known);
    match rank {
        LIMIT | FETCH => known.any(|known| matches!(known, LIMIT | FETCH)),
        LOCKS => known.next_back() != Some(LOCKS) && known.any(|known| known == LOCKS),
        rank => known.any(|known| known == rank),
    }
}

/// Sorts clauses that end at `end`.
fn sort(tokens: &mut [TokenWithSpan], clauses: &[(usize, usize)], end: usize) {
    if clauses.is_sorted_by_key(|(rank, _)| rank) {
        return;
    }
    let first = clauses[0].1;
    let mut pieces: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    for (number, (rank, start)) in clauses.iter().enumerate() {
        let end = clauses.get(number + 1).map_or(end, |(_, next)| *next);
        pieces.push((*rank, tokens[*start..end].to_vec()));
    }
    pieces.sort_by_key(|(rank, _)| *rank);
    let sorted = pieces.into_iter().flat_map(|(_, piece)| piece);
    for (place, token) in tokens[first..end].iter_mut().zip(sorted) {
        *place = token;
    }
}
