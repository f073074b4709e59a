//! WITH that changes rows, in its queries or behind them: the library reads it in part or not at
//! all.

use super::table_as::select_into;
use super::words::Words;
use super::{Kind, Statement, nested, unsupported};
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// WITH in which a query, or the statement behind the queries, changes rows.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct WithStatement {
    pub recursive: bool,
    pub queries: Vec<WithQuery>,
    /// What stands behind them: a query, INSERT, UPDATE, DELETE or MERGE.
    pub main: Statement,
}

/// A statement that has a name.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct WithQuery {
    pub alias: ast::TableAlias,
    pub materialized: bool,
    pub body: Statement,
    /// The name that holds SEARCH and CYCLE.
    pub recursion: Option<ast::Ident>,
}

impl WithQuery {
    /// As the library has a query of WITH.
    pub fn cte(&self, query: &ast::Query) -> ast::Cte {
        let materialized = ast::CteAsMaterialized::Materialized;
        ast::Cte {
            alias: self.alias.clone(),
            query: Box::new(query.clone()),
            from: self.recursion.clone(),
            materialized: self.materialized.then_some(materialized),
            closing_paren_token: ast::helpers::attached_token::AttachedToken::empty(),
        }
    }
}

/// A named statement as it stands in the text.
struct Item<'a> {
    alias: ast::TableAlias,
    materialized: bool,
    body: &'a [TokenWithSpan],
    recursion: Option<ast::Ident>,
}

/// WITH, if it changes rows, or SELECT INTO behind it; the cursor is on its first word.
///
/// # Errors
/// Those of its parts; 0A000 for MERGE in a query.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let start = words.at;
    let Some((recursive, items)) = items(words) else {
        words.at = start;
        return select_into(words);
    };
    let main = &words.tokens[words.at..];
    let written = |tokens: &[TokenWithSpan]| changes(&Words::new(tokens, words.source));
    if !written(main) && !items.iter().any(|item| written(item.body)) {
        words.at = start;
        return select_into(words);
    }
    let mut queries = Vec::with_capacity(items.len());
    for item in items {
        if Words::new(item.body, words.source).is(&["MERGE"]) {
            let message = "MERGE not supported in WITH query";
            let place = words.source.position(item.alias.name.span.start);
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(place));
        }
        queries.push(WithQuery {
            alias: item.alias,
            materialized: item.materialized,
            body: statement(words, item.body)?,
            recursion: item.recursion,
        });
    }
    let main = statement(words, main)?;
    Ok(Some(Kind::With(Box::new(WithStatement {
        recursive,
        queries,
        main,
    }))))
}

fn statement(words: &Words<'_>, tokens: &[TokenWithSpan]) -> Result<Statement, SqlError> {
    let begins = [
        "SELECT", "VALUES", "TABLE", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE",
    ];
    let first = Words::new(tokens, words.source);
    if first.peek() != &Token::LParen && !begins.iter().any(|word| first.is(&[word])) {
        return Err(first.unexpected());
    }
    let statement = nested(words.source, tokens)?;
    match statement.kind() {
        Kind::Sql(_) | Kind::Insert(..) | Kind::With(_) | Kind::Merge(_) => Ok(statement),
        _ => Err(unsupported("SELECT INTO behind WITH")),
    }
}

/// The named statements, up to the one behind them; `None` if the text is not of that form.
fn items<'a>(words: &mut Words<'a>) -> Option<(bool, Vec<Item<'a>>)> {
    words.take(&["WITH"]);
    let recursive = words.take(&["RECURSIVE"]);
    let mut items = Vec::new();
    loop {
        let name = identifier(words)?;
        let mut columns = Vec::new();
        if words.take_token(&Token::LParen) {
            loop {
                let name = identifier(words)?;
                let data_type = None;
                columns.push(ast::TableAliasColumnDef { name, data_type });
                if !words.take_token(&Token::Comma) {
                    break;
                }
            }
            words.expect_token(&Token::RParen).ok()?;
        }
        words.expect(&["AS"]).ok()?;
        let materialized = words.take(&["MATERIALIZED"]);
        if !materialized {
            words.take(&["NOT", "MATERIALIZED"]);
        }
        let body = words.group().ok()?;
        let recursion = match words.take(&["FROM"]) {
            true => Some(identifier(words).filter(super::recursion::is_mark)?),
            false => None,
        };
        let alias = ast::TableAlias { name, columns };
        items.push(Item {
            alias,
            materialized,
            body,
            recursion,
        });
        if !words.take_token(&Token::Comma) {
            return Some((recursive, items));
        }
    }
}

fn identifier(words: &mut Words<'_>) -> Option<ast::Ident> {
    let token = words.tokens.get(words.at)?;
    let Token::Word(word) = &token.token else {
        return None;
    };
    words.at += 1;
    Some(word.clone().into_ident(token.span))
}

/// Whether a statement changes rows: it begins so, or is a WITH in which one does.
fn changes(words: &Words<'_>) -> bool {
    match words.peek() {
        Token::Word(Word {
            value,
            quote_style: None,
            ..
        }) => {
            let changing = ["INSERT", "UPDATE", "DELETE", "MERGE"];
            if !value.eq_ignore_ascii_case("WITH") {
                return changing.iter().any(|word| value.eq_ignore_ascii_case(word));
            }
            let mut inner = Words::new(words.tokens, words.source);
            inner.at = words.at;
            items(&mut inner).is_some_and(|(_, items)| {
                let of = |tokens| changes(&Words::new(tokens, words.source));
                of(&words.tokens[inner.at..]) || items.iter().any(|item| of(item.body))
            })
        }
        _ => false,
    }
}

/// Refuses statements that change rows in a WITH clause that is not the statement's own.
///
/// # Errors
/// 0A000 at the name of the query.
pub(super) fn check(words: &Words<'_>) -> Result<(), SqlError> {
    let token = |at: usize| words.tokens.get(at).map(|token| &token.token);
    let is = |at: usize, wanted: &str| {
        matches!(token(at), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
    };
    for at in 2..words.tokens.len() {
        let begins = ["INSERT", "UPDATE", "DELETE", "MERGE"];
        if token(at - 1) == Some(&Token::LParen)
            && (is(at - 2, "AS") || is(at - 2, "MATERIALIZED"))
            && begins.iter().any(|word| is(at, word))
        {
            return Err(not_at_top().at(words.source.position(words.tokens[at].span.start)));
        }
    }
    Ok(())
}

/// 0A000 for a query of WITH that changes rows, but not in the WITH of the whole statement.
pub fn not_at_top() -> SqlError {
    let message = "WITH clause containing a data-modifying statement must be at the top level";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}
