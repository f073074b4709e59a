//! The clauses at the end of a query: PostgreSQL takes LIMIT, OFFSET, FETCH and FOR UPDATE in any
//! order, the library in this one.

use super::Source;
use base::SqlError;
use core::ops::Range;
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

/// The tokens with the clauses of each query in the library's order, and numbers of rows that FETCH
/// computes where the library takes them: `FETCH FIRST (1 + 1) ROWS ONLY` is `LIMIT (1 + 1)`.
///
/// # Errors
/// 42601 for a second clause of a kind, 0A000 for a computed number of rows WITH TIES.
pub(super) fn ordered(
    source: &Source,
    tokens: Vec<TokenWithSpan>,
) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut tokens = one_lock_each(computed(tokens)?);
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

/// The tokens with each `FETCH FIRST (..) ROWS` as the library reads it.
fn computed(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let is_fetch = rank(&tokens, at) == Some(FETCH) && tokens[at + 2].token == Token::LParen;
        if is_fetch && let Some(close) = closing(&tokens, at + 2) {
            let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
                Some(Token::Word(word)) => word.keyword,
                _ => Keyword::NoKeyword,
            };
            match (word(close + 2), word(close + 3)) {
                (Keyword::ONLY, _) => {
                    tokens.drain(close + 1..close + 3);
                    tokens[at].token = Token::make_keyword("LIMIT");
                    tokens.remove(at + 1);
                }
                (Keyword::WITH, Keyword::TIES) if close == at + 4 => {
                    tokens.remove(close);
                    tokens.remove(at + 2);
                }
                (Keyword::WITH, Keyword::TIES) => {
                    return Err(super::unsupported("a computed number of rows WITH TIES"));
                }
                _ => {}
            }
        }
        at += 1;
    }
    Ok(tokens)
}

/// A comma between tables of a locking clause, and what stands for it: what the clause says of
/// waiting, and its words up to OF.
struct Comma {
    at: usize,
    waits: Range<usize>,
    clause: Range<usize>,
}

/// The tokens with `FOR UPDATE OF a, b NOWAIT` as `FOR UPDATE OF a NOWAIT FOR UPDATE OF b NOWAIT`:
/// the library reads one table in each clause.
fn one_lock_each(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut commas = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        at = match rank(&tokens, at) {
            Some(LOCKS) => commas_of(&tokens, at, &mut commas),
            _ => at + 1,
        };
    }
    if commas.is_empty() {
        return tokens;
    }
    let mut all = Vec::with_capacity(tokens.len() + 6 * commas.len());
    let mut from = 0;
    for comma in commas {
        all.extend_from_slice(&tokens[from..comma.at]);
        all.extend_from_slice(&tokens[comma.waits]);
        all.extend_from_slice(&tokens[comma.clause]);
        from = comma.at + 1;
    }
    all.extend_from_slice(&tokens[from..]);
    all
}

/// Notes the commas of the locking clause that starts at `start`; gives where its tables end.
fn commas_of(tokens: &[TokenWithSpan], start: usize, commas: &mut Vec<Comma>) -> usize {
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => Some(word.keyword),
        _ => None,
    };
    let modes = [Keyword::UPDATE, Keyword::SHARE, Keyword::NO, Keyword::KEY];
    let mut at = start + 1;
    while word(at).is_some_and(|word| modes.contains(&word)) {
        at += 1;
    }
    if word(at) != Some(Keyword::OF) {
        return at;
    }
    at += 1;
    let (clause, first) = (start..at, commas.len());
    while word(at).is_some() {
        at += 1;
        match tokens.get(at).map(|next| &next.token) {
            Some(Token::Period) => {}
            Some(Token::Comma) => commas.push(Comma {
                at,
                waits: 0..0,
                clause: clause.clone(),
            }),
            _ => break,
        }
        at += 1;
    }
    let waits = match word(at) {
        Some(Keyword::NOWAIT) => 1,
        Some(Keyword::SKIP) => 2,
        _ => 0,
    };
    let waits = at..tokens.len().min(at + waits);
    for comma in &mut commas[first..] {
        comma.waits = waits.clone();
    }
    at
}

/// Where the parenthesis that opens at `open` is closed, if ROW or ROWS follows.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let close = tokens[open..].iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    let next = &tokens.get(open + close + 1)?.token;
    let is_rows = matches!(next, Token::Word(word)
        if matches!(word.keyword, Keyword::ROW | Keyword::ROWS));
    is_rows.then_some(open + close)
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
