//! Actions of ALTER TABLE that have nothing to change here: storage parameters, triggers that are
//! not there, the order of rows on disk.
//!
//! The tree has DROP CONSTRAINT in the place of each of them.

use super::constraints::is_word;
use super::source::Source;
use super::tables::{Parameter, only_tablespace, parameters};
use super::words::Words;
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

/// What an action names, which must be there.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Named {
    Nothing,
    Column(String),
    Index(String),
    Trigger(String),
    Rule(String),
}

/// An action that has nothing to change.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub struct Idle {
    pub named: Named,
    /// What the client is told; empty: the table is as the action wants it.
    pub notice: String,
}

impl Idle {
    fn done(named: Named) -> Idle {
        Idle {
            named,
            notice: String::new(),
        }
    }

    fn without_effect(named: Named, what: &str) -> Idle {
        Idle {
            named,
            notice: format!("{what} has no effect"),
        }
    }
}

/// The name that DROP CONSTRAINT has in the place of such an action.
const IN_PLACE: &str = "........idle";

/// The tokens of an ALTER TABLE with DROP CONSTRAINT for actions that have nothing to change; and
/// these, with the places of the names of the constraints.
pub(super) type Simplified = (Vec<TokenWithSpan>, Vec<(Location, Idle)>);

/// # Errors
/// 42601 for their grammar; 0A000 for what would have to do something.
pub(super) fn without_idle(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Simplified, SqlError> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut actions = Vec::new();
    let mut at = first_action(source, tokens);
    kept.extend_from_slice(&tokens[..at]);
    let (mut depth, mut begins) = (0usize, true);
    while at < tokens.len() {
        let mut words = Words { tokens, at, source };
        if begins && let Some(idle) = action(&mut words)? {
            if !matches!(words.peek(), Token::EOF | Token::Comma | Token::SemiColon) {
                return Err(words.unexpected());
            }
            let span = tokens[at].span;
            let name = Token::Word(Word {
                value: IN_PLACE.into(),
                quote_style: Some('"'),
                keyword: sqlparser::keywords::Keyword::NoKeyword,
            });
            let instead = [super::word("DROP"), super::word("CONSTRAINT"), name];
            kept.extend(instead.map(|token| TokenWithSpan::new(token, span)));
            actions.push((span.start, idle));
            at = words.at;
            begins = false;
            continue;
        }
        match &tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        begins = depth == 0 && tokens[at].token == Token::Comma;
        kept.push(tokens[at].clone());
        at += 1;
    }
    Ok((kept, actions))
}

/// Where the actions of ALTER TABLE begin.
fn first_action(source: &Source, tokens: &[TokenWithSpan]) -> usize {
    if !is_word(tokens, 1, "TABLE") {
        return tokens.len();
    }
    let mut words = Words::new(tokens, source);
    words.at = 2;
    words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    loop {
        if words.identifier().is_err() {
            return tokens.len();
        }
        if !words.take_token(&Token::Period) {
            break;
        }
    }
    words.take_token(&Token::Mul);
    words.at.min(tokens.len())
}

fn action(words: &mut Words<'_>) -> Result<Option<Idle>, SqlError> {
    let begins = words.at;
    let found = match words.peek() {
        Token::Word(_) if words.is(&["SET"]) || words.is(&["RESET"]) => storage(words)?,
        Token::Word(_) if words.is(&["ENABLE"]) || words.is(&["DISABLE"]) => fires(words)?,
        Token::Word(_) if words.take(&["CLUSTER", "ON"]) => {
            let index = words.identifier()?;
            Some(Idle::without_effect(Named::Index(index), "CLUSTER ON"))
        }
        Token::Word(_) if words.take(&["REPLICA", "IDENTITY"]) => {
            let named = match words.take(&["USING", "INDEX"]) {
                true => Named::Index(words.identifier()?),
                false => match words.take_any(&["DEFAULT", "FULL", "NOTHING"]) {
                    Some(_) => Named::Nothing,
                    None => return Err(words.unexpected()),
                },
            };
            Some(Idle::without_effect(named, "REPLICA IDENTITY"))
        }
        Token::Word(_) if words.is(&["ALTER"]) => of_column(words)?,
        _ => None,
    };
    if found.is_none() {
        words.at = begins;
    }
    Ok(found)
}

/// SET and RESET of storage parameters, SET LOGGED, SET WITHOUT.
fn storage(words: &mut Words<'_>) -> Result<Option<Idle>, SqlError> {
    let sets = words.is(&["SET"]);
    words.at += 1;
    let settled: [&[&str]; 3] = [&["LOGGED"], &["WITHOUT", "OIDS"], &["WITHOUT", "CLUSTER"]];
    if sets && settled.iter().any(|state| words.take(state)) {
        return Ok(Some(Idle::done(Named::Nothing)));
    }
    if sets && words.take(&["TABLESPACE"]) {
        only_tablespace(words)?;
        return Ok(Some(Idle::done(Named::Nothing)));
    }
    if words.peek() != &Token::LParen {
        return Ok(None);
    }
    let begins = words.at;
    let mut told = Vec::new();
    for parameter in parameters(words, sets)? {
        let Parameter { name, value: _ } = parameter;
        if name == "replicated" {
            words.at = begins;
            return Err(words
                .unsupported("changing \"replicated\" of a table")
                .hint("Make a new table, and copy the rows."));
        }
        told.push(format!("\"{name}\""));
    }
    let what = format!(
        "storage parameter{} {}",
        if told.len() == 1 { "" } else { "s" },
        told.join(", ")
    );
    let mut idle = Idle::without_effect(Named::Nothing, &what);
    if told.len() > 1 {
        idle.notice = format!("{what} have no effect");
    }
    Ok(Some(idle))
}

/// Triggers and rules: users have none.
fn fires(words: &mut Words<'_>) -> Result<Option<Idle>, SqlError> {
    let enables = words.is(&["ENABLE"]);
    let begins = words.at;
    words.at += 1;
    if enables && words.take_any(&["REPLICA", "ALWAYS"]).is_some() {
        let is_one = words.is(&["TRIGGER"]) || words.is(&["RULE"]);
        if !is_one {
            return Err(words.unexpected());
        }
    }
    if words.take(&["RULE"]) {
        return Ok(Some(Idle::done(Named::Rule(words.identifier()?))));
    }
    if !words.take(&["TRIGGER"]) {
        return Ok(None);
    }
    if words.take(&["USER"]) {
        return Ok(Some(Idle::done(Named::Nothing)));
    }
    if words.is(&["ALL"]) {
        words.at = begins;
        let error = words.unsupported("TRIGGER ALL among other actions");
        return Err(error.hint("Write a statement of its own for it."));
    }
    Ok(Some(Idle::done(Named::Trigger(words.identifier()?))))
}

/// `ALTER [COLUMN] name SET STATISTICS number | STORAGE word | COMPRESSION word`
fn of_column(words: &mut Words<'_>) -> Result<Option<Idle>, SqlError> {
    words.at += 1;
    words.take(&["COLUMN"]);
    let Ok(name) = words.identifier() else {
        return Ok(None);
    };
    let begins = words.at;
    if words.take_any(&["SET", "RESET"]).is_some() && words.peek() == &Token::LParen {
        words.at = begins;
        return Err(words.unsupported("an option of a column"));
    }
    words.at = begins;
    let what = if words.take(&["SET", "STATISTICS"]) {
        if words.value()?.parse::<i32>().is_err() {
            words.at -= 1;
            return Err(words.unexpected());
        }
        "SET STATISTICS"
    } else if words.take(&["SET", "STORAGE"]) {
        let word = words.identifier()?;
        if !["plain", "external", "extended", "main"].contains(&word.as_str()) {
            let message = format!("invalid storage type \"{word}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        "SET STORAGE"
    } else if words.take(&["SET", "COMPRESSION"]) {
        let word = words.identifier()?;
        if !["pglz", "lz4", "default"].contains(&word.as_str()) {
            let message = format!("invalid compression method \"{word}\"");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        "SET COMPRESSION"
    } else {
        return Ok(None);
    };
    Ok(Some(Idle::without_effect(Named::Column(name), what)))
}
