//! Options of sequences: PostgreSQL takes them in any order, the library in one. Types of arrays
//! that are written with a word.

use super::Source;
use super::comment::own_name;
use super::words::Words;
use base::SqlError;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words that start an option, in the order in which the library wants the options.
const ORDER: [&str; 7] = [
    "AS",
    "INCREMENT",
    "MINVALUE",
    "MAXVALUE",
    "START",
    "CACHE",
    "CYCLE",
];

fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// The rank of the option that starts at the front of `tokens`.
fn rank(tokens: &[TokenWithSpan]) -> Option<usize> {
    let first = tokens.first()?;
    let named = if is(first, "NO") {
        tokens.get(1)?
    } else {
        first
    };
    if is(named, "OWNED") {
        return Some(ORDER.len());
    }
    ORDER.iter().position(|word| is(named, word))
}

/// The options in the order that the library wants.
fn sorted(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let after_no = at > 0 && is(&tokens[at - 1], "NO");
        match rank(&tokens[at..]) {
            Some(rank) if !after_no => options.push((rank, vec![tokens[at].clone()])),
            _ => match options.last_mut() {
                Some((_, option)) => option.push(tokens[at].clone()),
                None => options.push((0, vec![tokens[at].clone()])),
            },
        }
        at += 1;
    }
    options.sort_by_key(|(rank, _)| *rank);
    options.into_iter().flat_map(|(_, option)| option).collect()
}

/// The statement with the options of CREATE SEQUENCE and of identity columns put in order.
pub(super) fn reordered(tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
    if tokens.len() > 2 && is(&tokens[0], "CREATE") && is(&tokens[1], "SEQUENCE") {
        let start = (2..tokens.len()).find(|at| rank(&tokens[*at..]).is_some());
        let start = start.unwrap_or(tokens.len());
        let mut out = tokens[..start].to_vec();
        out.extend(sorted(&tokens[start..]));
        return out;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        out.push(tokens[at].clone());
        at += 1;
        let opens = is(&tokens[at - 1], "IDENTITY")
            && tokens
                .get(at)
                .is_some_and(|token| token.token == Token::LParen);
        if !opens {
            continue;
        }
        let end = tokens[at..]
            .iter()
            .position(|token| token.token == Token::RParen);
        let end = end.map_or(tokens.len(), |end| at + end);
        out.push(tokens[at].clone());
        out.extend(sorted(&tokens[at + 1..end]));
        at = end;
    }
    out
}

/// The tokens of an ALTER TABLE without SEQUENCE NAME, which stands first among the options of an
/// identity, and the name.
pub(super) fn without_name(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<(Vec<TokenWithSpan>, Option<String>), SqlError> {
    let starts = |three: &[TokenWithSpan]| {
        three[0].token == Token::LParen && is(&three[1], "SEQUENCE") && is(&three[2], "NAME")
    };
    let Some(start) = tokens.windows(3).position(starts) else {
        return Ok((tokens.to_vec(), None));
    };
    let mut words = Words::new(tokens, source);
    words.at = start + 3;
    let name = own_name(&mut words)?;
    let mut kept = tokens[..=start].to_vec();
    kept.extend_from_slice(&tokens[words.at..]);
    Ok((kept, Some(name)))
}

/// The tokens with `[]` for the word of `type ARRAY`; `None`: it is not there.
pub(super) fn bracketed(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_type = |at: usize| {
        let before = at.checked_sub(1).map(|at| &tokens[at].token);
        let named = matches!(before, Some(Token::Word(_) | Token::RParen));
        let behind = tokens.get(at + 1).map(|token| &token.token);
        is(&tokens[at], "ARRAY")
            && named
            && !matches!(behind, Some(Token::LBracket | Token::LParen))
    };
    let first = (0..tokens.len()).find(|at| is_type(*at))?;
    let mut kept = tokens[..first].to_vec();
    for (at, token) in tokens.iter().enumerate().skip(first) {
        if !is_type(at) {
            kept.push(token.clone());
            continue;
        }
        for bracket in [Token::LBracket, Token::RBracket] {
            kept.push(TokenWithSpan::new(bracket, token.span));
        }
    }
    Some(kept)
}
