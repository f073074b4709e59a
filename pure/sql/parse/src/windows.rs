//! EXCLUDE of window frames, which the library does not know: its tree has no place for it.
//!
//! `OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE TIES)` is given to the library as `OVER (PARTITION BY
//! mark ORDER BY a ROWS 1 PRECEDING)`. The mark is a name in quotes that no text can have.

use sqlparser::ast::{Expr as Ast, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// The quotes of a mark. In PostgreSQL's grammar they are none.
const QUOTE: char = '`';

/// What a window's frame leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excluded {
    /// EXCLUDE NO OTHERS
    NoOthers,
    /// EXCLUDE CURRENT ROW
    CurrentRow,
    /// EXCLUDE GROUP
    Group,
    /// EXCLUDE TIES
    Ties,
}

const WORDS: [(Excluded, &str, &str); 4] = [
    (Excluded::NoOthers, "NO", "OTHERS"),
    (Excluded::CurrentRow, "CURRENT", "ROW"),
    (Excluded::Group, "GROUP", ""),
    (Excluded::Ties, "TIES", ""),
];

/// The keys of PARTITION BY without the mark, and what it stands for.
pub fn excluded(partition: &[Ast]) -> (&[Ast], Option<Excluded>) {
    if let [Ast::Identifier(first), rest @ ..] = partition
        && first.quote_style == Some(QUOTE)
    {
        let mut words = WORDS.iter();
        let known = words.find(|(_, word, _)| *word == first.value);
        return (rest, known.map(|(excluded, ..)| *excluded));
    }
    (partition, None)
}

/// The tokens with marks in place of EXCLUDE; `None` if there are none.
pub(super) fn marked(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let is_exclude = |token: &TokenWithSpan| is_word(token, "EXCLUDE");
    if !tokens.iter().any(is_exclude) {
        return None;
    }
    let mut all = tokens.to_vec();
    let mut found = false;
    let mut at = 0;
    while at < all.len() {
        if is_exclude(&all[at])
            && let Some((word, length)) = exclusion(&all[at..])
            && let Some((place, has_keys)) = place_of_mark(&all[..at])
        {
            let span = all[at].span;
            all.drain(at..at + length);
            let mark = mark(word, span, has_keys);
            at += mark.len();
            all.splice(place..place, mark);
            found = true;
        }
        at += 1;
    }
    found.then_some(all)
}

fn is_word(token: &TokenWithSpan, text: &str) -> bool {
    matches!(&token.token, Token::Word(Word { value, quote_style: None, .. })
        if value.eq_ignore_ascii_case(text))
}

/// The first word of what is excluded, and the number of tokens, if the window ends behind them.
fn exclusion(tokens: &[TokenWithSpan]) -> Option<(&'static str, usize)> {
    let (_, first, second) = WORDS
        .iter()
        .find(|(_, first, _)| tokens.get(1).is_some_and(|token| is_word(token, first)))?;
    let length = if second.is_empty() { 2 } else { 3 };
    if length == 3 && !is_word(tokens.get(2)?, second) {
        return None;
    }
    (tokens.get(length)?.token == Token::RParen).then_some((*first, length))
}

/// Where the mark goes in a window that is open at the end of these tokens, and whether there is a
/// PARTITION BY before it. `None`: they are no window with a frame.
fn place_of_mark(tokens: &[TokenWithSpan]) -> Option<(usize, bool)> {
    let mut depth = 0;
    let mut place = None;
    for (at, token) in tokens.iter().enumerate().rev() {
        match &token.token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => break,
            Token::LParen | Token::LBracket => depth -= 1,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                match (word.keyword, place) {
                    (Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS, None) => {
                        place = Some((at, false));
                    }
                    (Keyword::ORDER, Some(_)) => place = Some((at, false)),
                    (Keyword::PARTITION, Some(_)) => return Some((at + 2, true)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    place
}

fn mark(word: &'static str, span: Span, has_keys: bool) -> Vec<TokenWithSpan> {
    let plain = |text: &str| TokenWithSpan::new(Token::make_word(text, None), span);
    let name = Ident::with_quote(QUOTE, word);
    let name = Token::make_word(&name.value, name.quote_style);
    let name = TokenWithSpan::new(name, span);
    match has_keys {
        true => vec![name, TokenWithSpan::new(Token::Comma, span)],
        false => vec![plain("PARTITION"), plain("BY"), name],
    }
}
