//! ALTER INDEX and ALTER SEQUENCE.

use super::Kind;
use super::comment::{name, own_name};
use super::words::Words;
use base::{SqlError, SqlState};

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
    /// The owner: there is one role.
    Owner,
    /// How a sequence counts, and what owns it.
    Sequence(SequenceWords),
}

/// Options of ALTER SEQUENCE; those that are not there stay as they are.
#[derive(Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct SequenceWords {
    pub increment: Option<i64>,
    /// `Some(None)`: as the type of the numbers and their direction have it.
    pub min: Option<Option<i64>>,
    pub max: Option<Option<i64>>,
    pub start: Option<i64>,
    /// `Some(None)`: with its start.
    pub restart: Option<Option<i64>>,
    /// `Some(None)`: NONE.
    pub owned_by: Option<Option<Vec<String>>>,
}

pub(super) fn alter(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let is_index = words.is_at(1, "INDEX");
    if !is_index && !words.is_at(1, "SEQUENCE") {
        return Ok(None);
    }
    words.at += 2;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let name = own_name(words)?;
    let change = if words.take(&["RENAME", "TO"]) {
        RelationChange::Rename(words.identifier()?)
    } else if words.take(&["OWNER", "TO"]) {
        words.identifier()?;
        RelationChange::Owner
    } else if is_index {
        return Err(words.unsupported("ALTER INDEX of anything but its name"));
    } else {
        RelationChange::Sequence(options(words)?)
    };
    words.expect_end()?;
    Ok(Some(Kind::AlterRelation(Box::new(AlterRelation {
        is_index,
        if_exists,
        name,
        change,
    }))))
}

fn options(words: &mut Words<'_>) -> Result<SequenceWords, SqlError> {
    let mut all = SequenceWords::default();
    if words.at_end() {
        return Err(words.unexpected());
    }
    while !words.at_end() {
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
        } else if words.is_at(0, "CYCLE") {
            return Err(words.unsupported("a cycling sequence"));
        } else if words.is_at(0, "AS") {
            return Err(words.unsupported("ALTER SEQUENCE ... AS"));
        } else if words.take(&["OWNED", "BY"]) {
            let owner = match words.take(&["NONE"]) {
                true => None,
                false => Some(name(words)?),
            };
            once(&mut all.owned_by, owner)?;
        } else if words.is_at(0, "SET") {
            return Err(words.unsupported("ALTER SEQUENCE ... SET"));
        } else {
            return Err(words.unexpected());
        }
    }
    Ok(all)
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

fn once<T>(option: &mut Option<T>, value: T) -> Result<(), SqlError> {
    match option.replace(value) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::SYNTAX,
            "conflicting or redundant options",
        )),
    }
}
