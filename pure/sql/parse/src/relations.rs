//! ALTER INDEX and ALTER SEQUENCE.

use super::Kind;
use super::commands::alter_database;
use super::comment::{name, own_name};
use super::refused::NO_EXCLUDE;
use super::tables;
use super::words::Words;
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// A change of an index or a sequence.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct AlterRelation {
    pub is_index: bool,
    pub if_exists: bool,
    pub name: String,
    pub change: RelationChange,
}

/// What is changed.
#[derive(Debug)]
pub enum RelationChange {
    /// The name.
    Rename(String),
    /// Nothing that there is here.
    Nothing,
    /// How a sequence counts, and what owns it.
    Sequence(SequenceWords),
}

/// Options of ALTER SEQUENCE; those that are not there stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct SequenceWords {
    /// The type of its numbers.
    pub ty: Option<ast::DataType>,
    pub increment: Option<i64>,
    /// `Some(None)`: as the type of the numbers and their direction have it.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub start: Option<i64>,
    /// `Some(None)`: with its start.
    pub restart: Option<Option<i64>>,
    pub cycle: Option<bool>,
    /// `Some(None)`: NONE.
    pub owned_by: Option<Option<Vec<String>>>,
}

/// ALTER of anything but a table.
pub(super) fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    if words.is_at(1, "DATABASE") {
        return alter_database(words);
    }
    if words.is_at(1, "LARGE") && words.is_at(2, "OBJECT") {
        let hint = "A large object belongs to the role that made it: SET ROLE before that. \
                    pg_dump and pg_restore leave owners out by --no-owner.";
        return Err(words.unsupported("ALTER LARGE OBJECT").hint(hint));
    }
    let is_index = words.is_at(1, "INDEX");
    if words.is_at(2, "ALL") && words.is_at(3, "IN") {
        return Err(tables::all_in_tablespace(words));
    }
    if !is_index && !words.is_at(1, "SEQUENCE") {
        if words.is_at(1, "SYSTEM") {
            let hint = "ALTER DATABASE and ALTER ROLE set what sessions begin with; the rest is in \
                        the cluster file.";
            return Err(words.unsupported("ALTER SYSTEM").hint(hint));
        }
        if words.is_at(1, "COLLATION") {
            let refused = words.unsupported("ALTER COLLATION");
            return Err(refused.hint(super::absent::ONE_ORDER));
        }
        return Err(words.unsupported("ALTER"));
    }
    words.at += 2;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let name = own_name(words)?;
    let change = if words.take(&["RENAME", "TO"]) {
        RelationChange::Rename(words.identifier()?)
    } else if words.take(&["SET", "TABLESPACE"]) {
        tables::only_tablespace(words)?;
        if !is_index {
            let message =
                format!("ALTER action SET TABLESPACE cannot be performed on relation \"{name}\"");
            let detail = "This operation is not supported for sequences.";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).detail(detail));
        }
        RelationChange::Nothing
    } else if !is_index && words.take(&["SET"]) {
        // Every sequence is logged.
        if words.take_any(&["LOGGED", "UNLOGGED"]).is_none() {
            return Err(words.unexpected());
        }
        RelationChange::Nothing
    } else if is_index && (words.is(&["SET"]) || words.is(&["RESET"])) {
        // They have no effect.
        let sets = words.take(&["SET"]);
        words.take(&["RESET"]);
        tables::parameters(words, sets)?;
        RelationChange::Nothing
    } else if is_index {
        return Err(words.unsupported("ALTER INDEX of anything but its name"));
    } else {
        RelationChange::Sequence(options(words)?)
    };
    words.expect_end()?;
    Ok(Kind::AlterRelation(Box::new(AlterRelation {
        is_index,
        if_exists,
        name,
        change,
    })))
}

fn options(words: &mut Words<'_>) -> Result<SequenceWords, SqlError> {
    let mut all = SequenceWords::default();
    if words.at_end() {
        return Err(words.unexpected());
    }
    while !words.at_end() {
        sequence_option(words, &mut all)?;
    }
    Ok(all)
}

/// Reads one option of a sequence.
///
/// # Errors
/// 42601 for an option that is there already, or none; 0A000.
pub(super) fn sequence_option(
    words: &mut Words<'_>,
    all: &mut SequenceWords,
) -> Result<(), SqlError> {
    if words.take(&["INCREMENT"]) {
        words.take(&["BY"]);
        once(&mut all.increment, number(words)?)?;
    } else if words.take(&["NO", "MINVALUE"]) {
        once(&mut all.min, None)?;
    } else if words.take(&["MINVALUE"]) {
        once(&mut all.min, Some(number(words)?))?;
    } else if words.take(&["NO", "MAXVALUE"]) {
        once(&mut all.max, None)?;
    } else if words.take(&["MAXVALUE"]) {
        once(&mut all.max, Some(number(words)?))?;
    } else if words.take(&["START"]) {
        words.take(&["WITH"]);
        once(&mut all.start, number(words)?)?;
    } else if words.take(&["RESTART"]) {
        let with = words.take(&["WITH"]);
        let is_number = |words: &Words<'_>| number(&mut Words { ..*words }).is_ok();
        let value = match with || is_number(words) {
            true => Some(number(words)?),
            false => None,
        };
        once(&mut all.restart, value)?;
    } else if words.take(&["CACHE"]) {
        // Shards draw blocks of numbers whatever the size of the cache.
        number(words)?;
    } else if words.take(&["NO", "CYCLE"]) {
        once(&mut all.cycle, false)?;
    } else if words.take(&["CYCLE"]) {
        once(&mut all.cycle, true)?;
    } else if words.take(&["AS"]) {
        let first = words.at;
        name(words)?;
        let ty = super::with_library(words.source, &words.tokens[first..words.at], |parser| {
            parser.parse_data_type()
        })?;
        once(&mut all.ty, ty)?;
    } else if words.take(&["OWNED", "BY"]) {
        let owner = match words.take(&["NONE"]) {
            true => None,
            false => Some(name(words)?),
        };
        once(&mut all.owned_by, owner)?;
    } else {
        return Err(words.unexpected());
    }
    Ok(())
}

fn number(words: &mut Words<'_>) -> Result<i64, SqlError> {
    let text = words.value()?;
    text.parse().map_err(|_| {
        let is_number = text.trim_start_matches('-').bytes();
        match is_number.into_iter().all(|byte| byte.is_ascii_digit()) {
            true => SqlError::new(
                SqlState::NUMERIC_OUT_OF_RANGE,
                format!("value \"{text}\" is out of range for type bigint"),
            ),
            false => words.unexpected(),
        }
    })
}

pub(super) fn once<T>(option: &mut Option<T>, value: T) -> Result<(), SqlError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::SYNTAX,
            "conflicting or redundant options",
        )),
    }
}

/// Actions of ALTER TABLE in PostgreSQL's grammar that are not supported, by their first words.
const TABLE_ACTIONS: [&[&str]; 16] = [
    &["SET", "SCHEMA"],
    &["SET", "UNLOGGED"],
    &["SET", "ACCESS"],
    &["SET"],
    &["RESET"],
    &["INHERIT"],
    &["NO", "INHERIT"],
    &["OF"],
    &["NOT", "OF"],
    &["ENABLE"],
    &["DISABLE"],
    &["FORCE", "ROW"],
    &["NO", "FORCE"],
    &["ATTACH", "PARTITION"],
    &["DETACH", "PARTITION"],
    &["ALTER", "CONSTRAINT"],
];

/// The same behind ALTER COLUMN and a name.
const COLUMN_ACTIONS: [&[&str]; 2] = [&["SET", "EXPRESSION"], &["RESET"]];

/// Refuses (0A000) what the library does not know of an ALTER TABLE.
pub(super) fn check_actions(words: &mut Words<'_>) -> Result<(), SqlError> {
    words.at += 2;
    words.take(&["IF", "EXISTS"]);
    words.take(&["ONLY"]);
    words.identifier()?;
    while words.take_token(&Token::Period) {
        words.identifier()?;
    }
    words.take_token(&Token::Mul);
    let mut depth = 0;
    let mut begins = true;
    while !words.at_end() {
        if begins {
            check_action(words)?;
        }
        let token = words.next();
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        begins = depth == 0 && *token == Token::Comma;
    }
    Ok(())
}

fn check_action(words: &Words<'_>) -> Result<(), SqlError> {
    let mut ahead = Words { ..*words };
    let refused = TABLE_ACTIONS.iter().find(|action| ahead.is(action));
    if let Some(action) = refused {
        return Err(words.unsupported(&format!("ALTER TABLE ... {}", action.join(" "))));
    }
    if ahead.take(&["ADD", "CONSTRAINT"]) && ahead.identifier().is_ok() || ahead.take(&["ADD"]) {
        if ahead.is(&["EXCLUDE"]) {
            let error = words.unsupported("ALTER TABLE ... ADD EXCLUDE");
            return Err(error.hint(NO_EXCLUDE));
        }
        let by_index = ahead.take(&["UNIQUE"]) || ahead.take(&["PRIMARY", "KEY"]);
        if by_index && ahead.is(&["USING", "INDEX"]) {
            return Err(words.unsupported("ADD CONSTRAINT ... USING INDEX"));
        }
        return Ok(());
    }
    if !ahead.take(&["ALTER"]) {
        return Ok(());
    }
    ahead.take(&["COLUMN"]);
    let named = ahead.identifier().is_ok();
    let refused = COLUMN_ACTIONS.iter().find(|action| ahead.is(action));
    match refused {
        Some(action) if named => {
            let what = format!("ALTER TABLE ... ALTER COLUMN ... {}", action.join(" "));
            Err(words.unsupported(&what))
        }
        _ => Ok(()),
    }
}
