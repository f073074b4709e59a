//! CREATE VIEW and ALTER VIEW.

use super::comment::name;
use super::source::Walk;
use super::tables::take_temporary;
use super::words::Words;
use super::{Kind, Statement, nested};
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Location, Token};

/// CREATE VIEW.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ViewStatement {
    /// OR REPLACE.
    pub replace: bool,
    /// TEMPORARY: it lasts as long as its session, at most.
    pub temporary: bool,
    /// The parts of its name.
    pub name: Vec<String>,
    /// Names for its columns, as far as they are given.
    pub columns: Vec<String>,
    /// Its query, which is a statement of the kind [`Kind::Sql`].
    pub query: Statement,
    /// WITH CHECK OPTION; whether it is CASCADED, which it is unless LOCAL is written.
    pub check: Option<bool>,
}

/// ALTER VIEW ... RENAME TO.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct ViewRename {
    pub if_exists: bool,
    /// The parts of its name.
    pub name: Vec<String>,
    pub to: String,
}

/// What is put at a place of a text.
#[derive(Debug)]
pub enum Edit {
    /// The columns for which `*` stands.
    Star(String),
    /// This, before what is there.
    Before(String),
    /// This, for the name that is there.
    Word(String),
    /// This, for the plain literal that is there; other literals stay.
    Literal(String),
}

/// Length of the name or the plain literal that a text begins with.
fn word_bytes(text: &str) -> usize {
    let first = text.chars().next().unwrap_or_default();
    if !matches!(first, '"' | '\'') {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        return text.find(|c| !is_word(c)).unwrap_or(text.len());
    }
    let mut at = 1;
    while let Some(end) = text[at..].find(first) {
        at += end + 1;
        if !text[at..].starts_with(first) {
            return at;
        }
        at += 1;
    }
    text.len()
}

impl Statement {
    /// The text with other words at some places, which are in order.
    pub fn edited(&self, edits: &[(Location, Edit)]) -> String {
        let text = self.text();
        let whole = &self.0.source.0;
        let mut walk = Walk::new(whole);
        let (mut out, mut done) = (String::with_capacity(text.len()), self.0.start);
        for (place, edit) in edits {
            walk.to(*place);
            let at = walk.byte;
            if at < done || at >= self.0.end {
                continue;
            }
            out.push_str(&whole[done..at]);
            let rest = &whole[at..];
            match edit {
                Edit::Before(text) => {
                    out.push_str(text);
                    done = at;
                }
                Edit::Word(text) => {
                    out.push_str(text);
                    done = at + word_bytes(rest);
                }
                Edit::Literal(text) if rest.starts_with('\'') => {
                    out.push_str(text);
                    done = at + word_bytes(rest);
                }
                Edit::Literal(_) => done = at,
                Edit::Star(columns) if rest.starts_with('*') => {
                    out.push_str(columns);
                    done = at + 1;
                }
                // `TABLE name` is read as `SELECT * FROM name`.
                Edit::Star(columns) => {
                    out.push_str(&format!("SELECT {columns} FROM"));
                    done = at + "TABLE".len();
                }
            }
        }
        out.push_str(&whole[done..self.0.end]);
        out
    }
}

const KINDS: [&str; 5] = ["LOCAL", "GLOBAL", "TEMP", "TEMPORARY", "RECURSIVE"];

/// Whether the words begin CREATE VIEW, with what may stand before VIEW.
pub(super) fn is_create_view(words: &Words<'_>) -> bool {
    let mut at = 1;
    if words.is_at(1, "OR") && words.is_at(2, "REPLACE") {
        at = 3;
    }
    while KINDS.iter().any(|kind| words.is_at(at, kind)) {
        at += 1;
    }
    words.is_at(at, "VIEW")
}

pub(super) fn create(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CREATE"])?;
    let replace = words.take(&["OR", "REPLACE"]);
    let temporary = take_temporary(words);
    if words.is(&["RECURSIVE"]) {
        return Err(words
            .unsupported("CREATE RECURSIVE VIEW")
            .hint("Put WITH RECURSIVE into the query of a view."));
    }
    words.expect(&["VIEW"])?;
    let name = name(words)?;
    let columns = match words.peek() {
        Token::LParen => super::commands::identifiers(words)?,
        _ => Vec::new(),
    };
    if words.is(&["WITH"]) {
        return Err(words
            .unsupported("WITH options of a view")
            .hint("Views are read with the rights of their owner: leave the options out."));
    }
    words.expect(&["AS"])?;
    let checked = check_option(words).filter(|at| *at > words.at);
    let end = checked.unwrap_or(words.tokens.len());
    let tokens = &words.tokens[words.at.min(end)..end];
    let check = checked.map(|at| !super::constraints::is_word(words.tokens, at + 1, "LOCAL"));
    let begins = ["SELECT", "VALUES", "TABLE", "WITH"];
    let is_query = begins.iter().any(|word| words.is_at(0, word)) || words.peek() == &Token::LParen;
    if !is_query {
        return Err(words.unexpected());
    }
    let query = nested(words.source, tokens)?;
    if matches!(query.kind(), Kind::With(_)) {
        let message = "views must not contain data-modifying statements in WITH";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(Kind::CreateView(Box::new(ViewStatement {
        replace,
        temporary,
        name,
        columns,
        query,
        check,
    })))
}

/// Where WITH CHECK OPTION begins, if the statement ends with it.
fn check_option(words: &Words<'_>) -> Option<usize> {
    let is = |back: usize, word: &str| {
        let at = words.tokens.len().checked_sub(back)?;
        let token = &words.tokens.get(at)?.token;
        matches!(token, Token::Word(found)
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
        .then_some(at)
    };
    is(1, "OPTION").and(is(2, "CHECK"))?;
    let kind = is(3, "LOCAL").or(is(3, "CASCADED"));
    if kind.is_some() {
        is(4, "WITH")
    } else {
        is(3, "WITH")
    }
}

pub(super) fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["ALTER", "VIEW"])?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let name = name(words)?;
    if !words.take(&["RENAME", "TO"]) {
        return Err(match words.peek() {
            Token::Word(_) => words.unsupported("ALTER VIEW of anything but the name"),
            _ => words.unexpected(),
        });
    }
    let to = words.identifier()?;
    words.expect_end()?;
    Ok(Kind::RenameView(Box::new(ViewRename {
        if_exists,
        name,
        to,
    })))
}
