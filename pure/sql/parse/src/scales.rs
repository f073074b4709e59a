//! `numeric(precision, -scale)`, which the library does not know.

use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// How many tokens `(5, -2)` has.
const MODIFIERS: usize = 6;

/// Whether a type with a negative scale begins at `at`.
fn begins(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Token::Word(word) = &tokens[at].token else {
        return false;
    };
    let named = ["numeric", "decimal", "dec"]
        .iter()
        .any(|name| word.value.eq_ignore_ascii_case(name));
    let behind = tokens.get(at + 1..).unwrap_or_default();
    named
        && word.quote_style.is_none()
        && behind.len() >= MODIFIERS
        && behind[0].token == Token::LParen
        && matches!(behind[1].token, Token::Number(..))
        && behind[2].token == Token::Comma
        && behind[3].token == Token::Minus
        && matches!(behind[4].token, Token::Number(..))
        && behind[5].token == Token::RParen
}

/// The tokens with such types as `pg_catalog.numeric`, whose modifiers are taken as they are;
/// `None`: there is none.
pub(super) fn scaled(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let first = (0..tokens.len()).find(|at| begins(tokens, *at))?;
    let mut kept = tokens[..first].to_vec();
    let mut at = first;
    while at < tokens.len() {
        let token = &tokens[at];
        if !begins(tokens, at) {
            kept.push(token.clone());
            at += 1;
            continue;
        }
        let word = |name: &str| {
            Token::Word(Word {
                value: name.into(),
                quote_style: None,
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            })
        };
        if !matches!(kept.last().map(|token| &token.token), Some(Token::Period)) {
            kept.push(TokenWithSpan::new(word("pg_catalog"), token.span));
            kept.push(TokenWithSpan::new(Token::Period, token.span));
        }
        kept.push(TokenWithSpan::new(word("numeric"), token.span));
        kept.extend_from_slice(&tokens[at + 1..at + 4]);
        let Token::Number(digits, long) = &tokens[at + 5].token else {
            unreachable!("a number was seen")
        };
        let negative = Token::Number(format!("-{digits}"), *long);
        kept.push(TokenWithSpan::new(negative, tokens[at + 5].span));
        kept.push(tokens[at + MODIFIERS].clone());
        at += MODIFIERS + 1;
    }
    Some(kept)
}
