//! Words that the library does not know, put otherwise or left out.

use super::source::Source;
use super::{Overriding, options, tail, word};
use base::{SqlError, SqlState};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Refuses what DROP INDEX CONCURRENTLY does not take, as PostgreSQL.
fn one_index(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let is_cascade = |token: &Token| {
        matches!(token, Token::Word(word)
            if word.keyword == Keyword::CASCADE && word.quote_style.is_none())
    };
    let refused = match tokens.iter().any(|token| token.token == Token::Comma) {
        true => "dropping multiple objects",
        false if tokens[3..].iter().any(|token| is_cascade(&token.token)) => "CASCADE",
        false => return Ok(()),
    };
    let message = format!("DROP INDEX CONCURRENTLY does not support {refused}");
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// Words that the library does not know, put otherwise: `FOR NO KEY UPDATE`, `FOR KEY SHARE`,
/// `OVERRIDING ... VALUE`, `TABLE name`, options of sequences in any order.
///
/// # Errors
/// Those of [`tail::ordered`].
pub(super) fn simplified(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<(Vec<TokenWithSpan>, Option<Overriding>), SqlError> {
    let tokens = &tail::ordered(source, options::reordered(tokens))?;
    let is = |at: usize, word: &str| {
        matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let mut kept = Vec::with_capacity(tokens.len());
    let mut overriding = None;
    let mut at = 0;
    let side = |at: usize| {
        let words = ["UNION", "INTERSECT", "EXCEPT", "ALL", "DISTINCT"];
        at == 0 || words.iter().any(|word| is(at - 1, word))
    };
    while at < tokens.len() {
        if at == 2 && is(0, "DROP") && is(1, "INDEX") && is(2, "CONCURRENTLY") {
            one_index(tokens)?;
            at += 1;
        } else if is(at, "TABLE") && side(at) {
            for token in [word("SELECT"), Token::Mul, word("FROM")] {
                kept.push(TokenWithSpan::new(token, tokens[at].span));
            }
            at += 1;
        } else if is(at, "SELECT") && !super::is_name(tokens, at) && ends_list(tokens, at + 1) {
            kept.push(tokens[at].clone());
            let row = one_row().into_iter();
            kept.extend(row.map(|token| TokenWithSpan::new(token, tokens[at].span)));
            at += 1;
        } else if is(at, "USING")
            && let Some(Token::Lt | Token::Gt) = tokens.get(at + 1).map(|token| &token.token)
        {
            let order = match tokens[at + 1].token {
                Token::Lt => "ASC",
                _ => "DESC",
            };
            kept.push(TokenWithSpan::new(word(order), tokens[at].span));
            at += 2;
        } else if is(at, "FOR") && is(at + 1, "READ") && is(at + 2, "ONLY") {
            at += 3;
        } else if is(at, "FOR") && is(at + 1, "NO") && is(at + 2, "KEY") && is(at + 3, "UPDATE") {
            kept.push(tokens[at].clone());
            at += 3;
        } else if is(at, "FOR") && is(at + 1, "KEY") && is(at + 2, "SHARE") {
            kept.push(tokens[at].clone());
            at += 2;
        } else if is_whole(tokens, at)
            || is(at, "ALL")
                && at > 1
                && is(at - 1, "BY")
                && is(at - 2, "GROUP")
                && follows(tokens, at)
            || is(at, "ONLY") && at > 0 && has_children(tokens, at)
        {
            at += 1;
        } else if is(at, "OVERRIDING") && is(at + 2, "VALUE") {
            overriding = match (is(at + 1, "SYSTEM"), is(at + 1, "USER")) {
                (true, _) => Some(Overriding::System),
                (_, true) => Some(Overriding::User),
                _ => None,
            };
            at += 3;
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    Ok((kept, overriding))
}

/// Whether keys follow GROUP BY ALL: each of its sets of keys stays.
fn follows(tokens: &[TokenWithSpan], at: usize) -> bool {
    let next = tokens.get(at + 1).map(|token| &token.token);
    !matches!(
        next,
        None | Some(Token::RParen | Token::Comma | Token::SemiColon)
    )
}

/// Whether a SELECT without columns and without FROM ends before `at`, but for its clauses.
fn ends_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    match tokens.get(at).map(|token| &token.token) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        Some(Token::Word(word)) if word.quote_style.is_none() => matches!(
            word.keyword,
            Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::OFFSET
                | Keyword::FETCH
        ),
        _ => false,
    }
}

/// `FROM (SELECT NULL) AS` a name that no text has: without it the library wants columns.
fn one_row() -> [Token; 7] {
    let name = Token::Word(Word {
        value: "\u{1}none".into(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    [
        word("FROM"),
        Token::LParen,
        word("SELECT"),
        word("NULL"),
        Token::RParen,
        word("AS"),
        name,
    ]
}

/// Whether the token is the star behind the name of a table: with its children, of which there are
/// none.
fn is_whole(tokens: &[TokenWithSpan], at: usize) -> bool {
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) => Some(word.keyword),
        _ => None,
    };
    let ends = match tokens.get(at + 1).map(|token| &token.token) {
        None | Some(Token::RParen | Token::Comma | Token::SemiColon) => true,
        Some(Token::Word(word)) => ENDS.contains(&word.keyword),
        _ => false,
    };
    if tokens[at].token != Token::Mul || !ends || at < 2 {
        return false;
    }
    let mut name = at - 1;
    while word(name).is_some() && name >= 2 && tokens[name - 1].token == Token::Period {
        name -= 2;
    }
    let places = [
        Keyword::FROM,
        Keyword::JOIN,
        Keyword::UPDATE,
        Keyword::TRUNCATE,
        Keyword::TABLE,
    ];
    let before = name.checked_sub(1).and_then(word);
    word(name).is_some() && before.is_some_and(|before| places.contains(&before))
}

/// What may follow a table in FROM.
const ENDS: [Keyword; 14] = [
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::ORDER,
    Keyword::HAVING,
    Keyword::LIMIT,
    Keyword::UNION,
    Keyword::JOIN,
    Keyword::LEFT,
    Keyword::RIGHT,
    Keyword::INNER,
    Keyword::CROSS,
    Keyword::NATURAL,
    Keyword::AS,
    Keyword::RETURNING,
];

/// Whether ONLY at `at` leaves out the children of a table. There are none.
fn has_children(tokens: &[TokenWithSpan], at: usize) -> bool {
    let table = matches!(tokens.get(at + 1), Some(token) if matches!(token.token, Token::Word(_)));
    let places = [
        Keyword::FROM,
        Keyword::UPDATE,
        Keyword::JOIN,
        Keyword::USING,
    ];
    let before = &tokens[at - 1].token;
    let place = matches!(before, Token::Word(word) if places.contains(&word.keyword));
    let merged = at == 2 && super::constraints::is_word(tokens, 0, "MERGE");
    table && (place || merged)
}
