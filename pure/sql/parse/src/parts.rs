//! `SET column[1] = value`, which the library does not know: the subscripts are moved behind the
//! equals sign, with a mark before them.

use super::source::Source;
use base::SqlError;
use sqlparser::ast::{AccessExpr, Expr as Ast, Ident};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Stands before the subscripts. No text has such a token.
pub(super) const MARK: Token = Token::Char('\u{1}');
/// Names the value of an assignment to a part.
const NAME: &str = "\u{1}part";

/// The tree of a value with the subscripts of the place that it is assigned to.
pub(super) fn set(value: Box<Ast>, access_chain: Vec<AccessExpr>) -> Ast {
    Ast::Named {
        name: Ident::new(NAME),
        expr: Box::new(Ast::CompoundFieldAccess {
            root: value,
            access_chain,
        }),
    }
}

/// The subscripts and the value of an assignment to a part of a column; `None`: it is to all of it.
pub fn taken(ast: &Ast) -> Option<(&[AccessExpr], &Ast)> {
    let Ast::Named { expr, name } = ast else {
        return None;
    };
    match &**expr {
        Ast::CompoundFieldAccess { root, access_chain } if name.value == NAME => {
            Some((access_chain, root))
        }
        _ => None,
    }
}

fn is(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    super::constraints::is_word(tokens, at, word)
}

/// The place behind the subscripts that begin at `at`.
fn behind(tokens: &[TokenWithSpan], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match &tokens.get(at)?.token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth = depth.checked_sub(1)?,
            _ if depth == 0 => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

/// The tokens with such assignments in the library's form; `None`: there are none.
///
/// # Errors
/// 0A000 for a subscript in a list of columns that a subquery sets.
pub(super) fn marked(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    if !tokens.iter().any(|token| token.token == Token::LBracket) {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(tokens.len() + 1);
    // The depths of parentheses at which lists of assignments are open.
    let (mut depth, mut open, mut at) = (0usize, Vec::new(), 0);
    let mut found = false;
    while at < tokens.len() {
        let in_list = open.last() == Some(&depth);
        let begins = sets(tokens, at);
        let starts = begins || in_list && tokens[at].token == Token::Comma;
        match &tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => {
                depth = depth.saturating_sub(1);
                open.retain(|level| *level <= depth);
            }
            Token::Word(_) if begins => open.push(depth),
            Token::Word(_) if in_list && ends(tokens, at) => drop(open.pop()),
            _ => {}
        }
        kept.push(tokens[at].clone());
        at += 1;
        if !starts {
            continue;
        }
        let token = |at: usize| tokens.get(at).map(|token| &token.token);
        let mut name = at;
        while matches!(token(name), Some(Token::Word(_))) && token(name + 1) == Some(&Token::Period)
        {
            name += 2;
        }
        let named = matches!(token(name), Some(Token::Word(_)));
        if !named || token(name + 1) != Some(&Token::LBracket) {
            if let Some(close) = columns_end(tokens, at) {
                at = assign_each(source, &tokens[at..], close - at, &mut kept)? + at;
                found = true;
            }
            continue;
        }
        let Some(end) = behind(tokens, name + 1) else {
            continue;
        };
        if tokens.get(end).map(|token| &token.token) != Some(&Token::Eq) {
            continue;
        }
        found = true;
        kept.extend_from_slice(&tokens[at..=name]);
        kept.push(tokens[end].clone());
        kept.push(TokenWithSpan::new(MARK, tokens[name + 1].span));
        kept.extend_from_slice(&tokens[name + 1..end]);
        at = end + 1;
    }
    Ok(found.then_some(kept))
}

fn refusal(source: &Source, at: &TokenWithSpan, what: &str) -> SqlError {
    super::unsupported(what)
        .hint("Set the whole column, or each part with UPDATE.")
        .at(source.position(at.span.start))
}

/// Whether a token may be a part of a name with what stands before it.
fn is_name(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Word(_) | Token::Period | Token::Mul)
}

/// Whether the SET of an UPDATE is at `at`: between the two is the name of a table.
fn sets(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = tokens[..at].iter().rev().take_while(|token| is_name(token));
    let near = before.take(NAME_TOKENS).count();
    is(tokens, at, "SET") && (at - near..at).any(|at| is(tokens, at, "UPDATE"))
}

/// Tokens of `ONLY schema.table * AS name` and UPDATE before it.
const NAME_TOKENS: usize = 8;

/// Whether a word ends a list of assignments.
fn ends(tokens: &[TokenWithSpan], at: usize) -> bool {
    let words = ["FROM", "WHERE", "RETURNING", "WHEN"];
    let found = words.iter().any(|word| is(tokens, at, word));
    found && !(at > 0 && is(tokens, at - 1, "DISTINCT"))
}

/// Where the list `(a[1], b)` that begins at `at` is closed, if an equals sign follows.
fn columns_end(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    if tokens.get(at)?.token != Token::LParen {
        return None;
    }
    let mut subscripts = false;
    for at in at + 1..tokens.len() {
        match &tokens[at].token {
            Token::LBracket => subscripts = true,
            Token::LParen => return None,
            Token::RParen => {
                let equals = tokens.get(at + 1)?.token == Token::Eq;
                return (subscripts && equals).then_some(at);
            }
            _ => {}
        }
    }
    None
}

/// Appends `(a[1], b) = (x, y)`, whose first list ends at `close`, as an assignment to each; gives
/// the place behind it.
///
/// # Errors
/// 42601 for lists of different lengths, 0A000 for a subquery.
fn assign_each(
    source: &Source,
    tokens: &[TokenWithSpan],
    close: usize,
    kept: &mut Vec<TokenWithSpan>,
) -> Result<usize, SqlError> {
    let open = close + 2 + usize::from(is(tokens, close + 2, "ROW"));
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let subquery = ["SELECT", "VALUES", "WITH", "TABLE"];
    let is_list = token(open) == Some(&Token::LParen)
        && token(open + 1) != Some(&Token::LParen)
        && !subquery.iter().any(|word| is(tokens, open + 1, word));
    let mut depth = 0usize;
    let end = tokens.iter().skip(open).position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let Some(end) = end.filter(|_| is_list).map(|end| open + end) else {
        let what = "a subscript in a list of columns that a subquery sets";
        return Err(refusal(source, &tokens[0], what));
    };
    let names = super::commands::split_commas(&tokens[1..close]);
    let values = super::commands::split_commas(&tokens[open + 1..end]);
    if names.len() != values.len() {
        let message = "number of columns does not match number of values";
        return Err(SqlError::new(base::SqlState::SYNTAX, message));
    }
    for (i, (name, value)) in names.into_iter().zip(values).enumerate() {
        let equals = &tokens[close + 1];
        if i > 0 {
            kept.push(TokenWithSpan::new(Token::Comma, equals.span));
        }
        let bracket = name.iter().position(|token| token.token == Token::LBracket);
        let (name, subscripts) = name.split_at(bracket.unwrap_or(name.len()));
        kept.extend_from_slice(name);
        kept.push(equals.clone());
        if !subscripts.is_empty() {
            kept.push(TokenWithSpan::new(MARK, subscripts[0].span));
            kept.extend_from_slice(subscripts);
        }
        kept.extend_from_slice(value);
    }
    Ok(end + 1)
}
