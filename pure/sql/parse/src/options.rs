//! Options of sequences: PostgreSQL takes them in any order, the library in one.

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
