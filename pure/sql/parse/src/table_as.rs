//! CREATE TABLE ... AS and SELECT INTO; DROP VIEW, which the library has not.

use super::commands::identifiers;
use super::comment::name;
use super::tables::{Lifetime, take_on_commit, take_temporary};
use super::views::ViewRename;
use super::words::Words;
use super::{Kind, Statement, nested, parse, tables, unsupported};
use base::SqlError;
use sqlparser::tokenizer::Token;

/// A new table of the rows of a query.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TableAs {
    /// The parts of its name.
    pub name: Vec<String>,
    /// Names for its columns, as far as they are given.
    pub columns: Vec<String>,
    pub if_not_exists: bool,
    pub replicated: bool,
    /// Storage parameters that have no effect.
    pub idle: Vec<String>,
    pub lifetime: Lifetime,
    /// It is a materialized view.
    pub materialized: bool,
    /// A statement of the kind [`Kind::Sql`].
    pub query: Statement,
    /// `false`: the table stays empty.
    pub with_data: bool,
}

/// What happens to a materialized view that is there.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StoredStatement {
    Refresh {
        /// The parts of its name.
        name: Vec<String>,
        concurrently: bool,
        /// `false`: nobody may read it then.
        with_data: bool,
    },
    Drop(ViewDrop),
    Rename(ViewRename),
}

/// DROP VIEW.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ViewDrop {
    /// Names by their parts.
    pub names: Vec<Vec<String>>,
    pub if_exists: bool,
    pub cascade: bool,
}

/// Where a word stands outside of parentheses, from the cursor on.
fn outside(words: &Words<'_>, wanted: impl Fn(usize) -> bool) -> Option<usize> {
    let mut depth = 0usize;
    for at in words.at..words.tokens.len() {
        match &words.tokens[at].token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Word(_) if depth == 0 && wanted(at - words.at) => return Some(at),
            _ => {}
        }
    }
    None
}

/// CREATE TABLE ... AS, if it is one.
pub(super) fn create(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    if outside(words, |ahead| words.is_at(ahead, "AS")).is_none() {
        return Ok(None);
    }
    let start = words.at;
    words.expect(&["CREATE"])?;
    let mut lifetime = Lifetime {
        temporary: take_temporary(words),
        on_commit: None,
    };
    words.take(&["UNLOGGED"]);
    let materialized = words.take(&["MATERIALIZED", "VIEW"]);
    if !materialized {
        words.expect(&["TABLE"])?;
    }
    let if_not_exists = words.take(&["IF", "NOT", "EXISTS"]);
    let name = name(words)?;
    let columns = match words.peek() {
        Token::LParen => match identifiers(words) {
            Ok(columns) => columns,
            // A list of columns with their types.
            Err(_) => {
                words.at = start;
                return Ok(None);
            }
        },
        _ => Vec::new(),
    };
    let (mut replicated, mut idle) = (false, Vec::new());
    while !words.take(&["AS"]) {
        if words.take(&["WITH"]) {
            (replicated, idle) = tables::options(words)?;
        } else if words.take(&["WITHOUT", "OIDS"]) || tables::take_storage(words)? {
        } else if let Some(on_commit) = take_on_commit(words)? {
            lifetime.on_commit = Some(on_commit);
        } else {
            return Err(words.unexpected());
        }
    }
    if words.is(&["EXECUTE"]) {
        return Err(words.unsupported("CREATE TABLE AS EXECUTE"));
    }
    let begins = ["SELECT", "VALUES", "TABLE", "WITH"];
    if words.peek() != &Token::LParen && !begins.iter().any(|word| words.is_at(0, word)) {
        return Err(words.unexpected());
    }
    let tokens = &words.tokens[words.at..];
    let (with_data, kept) = data_clause(words);
    let query = nested(words.source, &tokens[..tokens.len() - kept])?;
    Ok(Some(Kind::CreateTableAs(Box::new(TableAs {
        name,
        columns,
        if_not_exists,
        replicated,
        idle,
        lifetime,
        materialized,
        query,
        with_data,
    }))))
}

/// Whether the statement does not end with WITH NO DATA; number of tokens of such a clause.
fn data_clause(words: &Words<'_>) -> (bool, usize) {
    let tokens = &words.tokens[words.at..];
    let behind = |back: usize, word: &str| {
        let end = Words {
            tokens,
            at: tokens.len().saturating_sub(back),
            source: words.source,
        };
        tokens.len() > back && end.is_at(0, word)
    };
    match (behind(1, "DATA"), behind(2, "WITH"), behind(2, "NO")) {
        (true, true, _) => (true, 2),
        (true, _, true) if behind(3, "WITH") => (false, 3),
        _ => (true, 0),
    }
}

/// SELECT ... INTO, if it is one.
pub(super) fn select_into(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let into = outside(words, |ahead| {
        words.is_at(ahead, "INTO") || words.is_at(ahead, "FROM")
    });
    // `INSERT INTO` behind WITH is refused elsewhere.
    let inserts = |at: usize| at > 0 && is(words, at - 1, "INSERT");
    let Some(into) = into.filter(|at| is(words, *at, "INTO") && !inserts(*at)) else {
        return Ok(None);
    };
    words.at = into + 1;
    let lifetime = Lifetime {
        temporary: take_temporary(words),
        on_commit: None,
    };
    words.take(&["UNLOGGED"]);
    words.take(&["TABLE"]);
    let name = name(words)?;
    // The query without these words is a text of its own.
    let text = |from: usize, to: usize| match from < to {
        true => nested_text(words, from, to),
        false => "",
    };
    let text = format!("{} {}", text(0, into), text(words.at, words.tokens.len()));
    let mut statements = parse(&text)?;
    let (Some(query), true) = (statements.pop(), statements.is_empty()) else {
        return Err(unsupported("this form of SELECT INTO"));
    };
    Ok(Some(Kind::CreateTableAs(Box::new(TableAs {
        name,
        columns: Vec::new(),
        if_not_exists: false,
        replicated: false,
        idle: Vec::new(),
        lifetime,
        materialized: false,
        query,
        with_data: true,
    }))))
}

fn is(words: &Words<'_>, at: usize, word: &str) -> bool {
    words.is_at(at - words.at, word)
}

/// The text of some tokens.
fn nested_text<'w>(words: &Words<'w>, from: usize, to: usize) -> &'w str {
    let (first, last) = (&words.tokens[from], &words.tokens[to - 1]);
    let mut walk = super::source::Walk::new(&words.source.0);
    walk.to(first.span.start);
    let start = walk.byte;
    walk.to(last.span.end);
    &words.source.0[start..walk.byte]
}

/// Statements about materialized views that are there, if it is one.
pub(super) fn stored(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    if words.is(&["CREATE", "MATERIALIZED", "VIEW"]) {
        let made = create(words)?;
        words.at = words.tokens.len();
        return made.map(Some).ok_or_else(|| words.unexpected());
    }
    let statement = if words.is(&["DROP", "MATERIALIZED", "VIEW"]) {
        words.at += 1;
        let (names, if_exists, cascade) = dropped_at(words, &["MATERIALIZED", "VIEW"])?;
        StoredStatement::Drop(ViewDrop {
            names,
            if_exists,
            cascade,
        })
    } else if words.take(&["REFRESH", "MATERIALIZED", "VIEW"]) {
        let concurrently = words.take(&["CONCURRENTLY"]);
        let name = name(words)?;
        let without = words.take(&["WITH", "NO", "DATA"]);
        if !without {
            words.take(&["WITH", "DATA"]);
        }
        words.expect_end()?;
        StoredStatement::Refresh {
            name,
            concurrently,
            with_data: !without,
        }
    } else if words.take(&["ALTER", "MATERIALIZED", "VIEW"]) {
        let if_exists = words.take(&["IF", "EXISTS"]);
        let name = name(words)?;
        if !words.take(&["RENAME", "TO"]) {
            return Err(words
                .unsupported("ALTER MATERIALIZED VIEW of anything but the name")
                .hint("ALTER TABLE changes its owner and its schema."));
        }
        let to = words.identifier()?;
        words.expect_end()?;
        StoredStatement::Rename(ViewRename {
            if_exists,
            name,
            to,
        })
    } else {
        return Ok(None);
    };
    Ok(Some(Kind::Stored(Box::new(statement))))
}

/// DROP VIEW.
pub(super) fn drop_views(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let (names, if_exists, cascade) = dropped(words, "VIEW")?;
    Ok(Kind::DropViews(Box::new(ViewDrop {
        names,
        if_exists,
        cascade,
    })))
}

/// What a DROP of this kind names, each by its parts; whether IF EXISTS and CASCADE are there.
pub(super) fn dropped(
    words: &mut Words<'_>,
    kind: &'static str,
) -> Result<(Vec<Vec<String>>, bool, bool), SqlError> {
    words.expect(&["DROP"])?;
    dropped_at(words, &[kind])
}

/// The same behind DROP.
fn dropped_at(
    words: &mut Words<'_>,
    kind: &[&str],
) -> Result<(Vec<Vec<String>>, bool, bool), SqlError> {
    words.expect(kind)?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let mut names = vec![name(words)?];
    while words.take_token(&Token::Comma) {
        names.push(name(words)?);
    }
    let behavior = words.take_any(&["CASCADE", "RESTRICT"]);
    words.expect_end()?;
    Ok((names, if_exists, behavior == Some("CASCADE")))
}
