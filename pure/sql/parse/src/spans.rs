//! Types that the library does not know: `interval fields(digits)`, `national character`.

use super::source::Source;
use base::SqlError;
use base::spans::{SpanField, SpanModifier};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Whether the unquoted word at `at` is this one.
fn is(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    super::constraints::is_word(tokens, at, word)
}

/// The field that the word at `at` names.
fn field(tokens: &[TokenWithSpan], at: usize) -> Option<SpanField> {
    let fields = [
        ("YEAR", SpanField::Year),
        ("MONTH", SpanField::Month),
        ("DAY", SpanField::Day),
        ("HOUR", SpanField::Hour),
        ("MINUTE", SpanField::Minute),
        ("SECOND", SpanField::Second),
    ];
    let found = fields.iter().find(|(word, _)| is(tokens, at, word));
    found.map(|(_, field)| *field)
}

/// The token with the number of `(digits)` at `at`.
fn digits(tokens: &[TokenWithSpan], at: usize) -> Option<&TokenWithSpan> {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let is_group = token(at) == Some(&Token::LParen) && token(at + 2) == Some(&Token::RParen);
    let number = tokens.get(at + 1)?;
    (is_group && matches!(number.token, Token::Number(..))).then_some(number)
}

/// The fields that begin at `at`, and where they end.
type Fields = (Option<(SpanField, SpanField)>, usize);

/// # Errors
/// 42601 for fields that make no range, and digits behind a field without them.
fn fields(source: &Source, tokens: &[TokenWithSpan], at: usize) -> Result<Fields, SqlError> {
    let Some(first) = field(tokens, at) else {
        return Ok((None, at));
    };
    let (last, end) = match is(tokens, at + 1, "TO") {
        false => (first, at + 1),
        true => match field(tokens, at + 2) {
            Some(last) if is_range(first, last) => (last, at + 3),
            _ => return Err(source.unexpected(tokens.get(at + 2))),
        },
    };
    if last != SpanField::Second && digits(tokens, end).is_some() {
        return Err(source.unexpected(tokens.get(end)));
    }
    Ok((Some((first, last)), end))
}

/// Whether `first TO last` are fields of an interval.
pub(super) fn is_range(first: SpanField, last: SpanField) -> bool {
    let months = SpanField::Month;
    first < last && (last <= months || first > months)
}

/// The tokens with such types as `pg_catalog.interval(bits, digits)`; `None`: there is none.
///
/// # Errors
/// Those of [`fields`].
pub(super) fn plain(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    let is_qualified = |at: usize| at > 0 && tokens[at - 1].token == Token::Period;
    let begins = |at: usize| {
        is(tokens, at, "INTERVAL")
            && !is_qualified(at)
            && (field(tokens, at + 1).is_some() || digits(tokens, at + 1).is_some())
    };
    // There is one kind of characters.
    let is_national = |at: usize| {
        is(tokens, at, "NATIONAL")
            && !is_qualified(at)
            && (is(tokens, at + 1, "CHARACTER") || is(tokens, at + 1, "CHAR"))
    };
    let Some(first) = (0..tokens.len()).find(|at| begins(*at) || is_national(*at)) else {
        return Ok(None);
    };
    let mut kept = tokens[..first].to_vec();
    let mut at = first;
    while at < tokens.len() {
        if is_national(at) {
            at += 1;
            continue;
        }
        if !begins(at) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let (fields, end) = fields(source, tokens, at + 1)?;
        let digits = digits(tokens, end);
        let behind = end + if digits.is_some() { 3 } else { 0 };
        let is_literal = tokens.get(behind);
        let is_literal = is_literal.is_some_and(|token| super::operand::is_string(&token.token));
        if is_literal && fields.is_none() {
            // INTERVAL (2) 'text'
            kept.extend_from_slice(&tokens[at..behind]);
            at = behind;
            continue;
        }
        let modifier = SpanModifier {
            fields,
            digits: None,
        };
        let span = tokens[at].span;
        let mut put = |token: Token| kept.push(TokenWithSpan::new(token, span));
        let word = |value: &str| {
            Token::Word(Word {
                value: value.into(),
                quote_style: None,
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            })
        };
        put(word("pg_catalog"));
        put(Token::Period);
        put(word("interval"));
        put(Token::LParen);
        put(Token::Number(modifier.range().to_string(), false));
        if let Some(digits) = digits {
            put(Token::Comma);
            put(digits.token.clone());
        }
        put(Token::RParen);
        at = behind;
    }
    Ok(Some(kept))
}
