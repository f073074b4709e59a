//! `LIKE table` among the columns of CREATE TABLE.

use super::commands::split_commas;
use super::comment::name;
use super::words::Words;
use base::SqlError;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A table whose columns a new one gets.
#[derive(Debug)]
pub struct Like {
    /// The parts of the table's name.
    pub table: Vec<String>,
    /// How many columns are written before it.
    pub place: usize,
    /// INCLUDING DEFAULTS.
    pub defaults: bool,
    /// INCLUDING CONSTRAINTS.
    pub constraints: bool,
    /// INCLUDING IDENTITY.
    pub identity: bool,
    /// INCLUDING GENERATED.
    pub generated: bool,
    /// INCLUDING INDEXES.
    pub indexes: bool,
    /// INCLUDING COMMENTS.
    pub comments: bool,
}

/// Elements of CREATE TABLE that are no columns.
const CONSTRAINTS: [&str; 6] = [
    "CONSTRAINT",
    "PRIMARY",
    "UNIQUE",
    "CHECK",
    "FOREIGN",
    "EXCLUDE",
];

/// Takes LIKE out of the elements of a table; gives the others, separated by commas.
///
/// # Errors
/// 42601 for options that there are not.
pub(super) fn taken_out(
    words: &Words<'_>,
    inside: &[TokenWithSpan],
) -> Result<(Vec<TokenWithSpan>, Vec<Like>), SqlError> {
    let (mut kept, mut likes, mut columns) = (Vec::new(), Vec::new(), 0);
    for element in split_commas(inside) {
        let mut own = Words::new(element, words.source);
        if own.take(&["LIKE"]) {
            likes.push(like(&mut own, columns)?);
            continue;
        }
        if !CONSTRAINTS.iter().any(|word| own.is_at(0, word)) {
            columns += 1;
        }
        if let (Some(first), false) = (element.first(), kept.is_empty()) {
            kept.push(TokenWithSpan::new(Token::Comma, first.span));
        }
        kept.extend_from_slice(element);
    }
    Ok((kept, likes))
}

fn like(words: &mut Words<'_>, place: usize) -> Result<Like, SqlError> {
    let mut like = Like {
        table: name(words)?,
        place,
        defaults: false,
        constraints: false,
        identity: false,
        generated: false,
        indexes: false,
        comments: false,
    };
    while !words.at_end() {
        let wanted = match words.take_any(&["INCLUDING", "EXCLUDING"]) {
            Some(word) => word == "INCLUDING",
            None => return Err(words.unexpected()),
        };
        let what = words.identifier()?;
        match what.as_str() {
            "defaults" => like.defaults = wanted,
            "constraints" => like.constraints = wanted,
            "identity" => like.identity = wanted,
            "indexes" => like.indexes = wanted,
            "comments" => like.comments = wanted,
            "generated" => like.generated = wanted,
            // No table has any of these.
            "statistics" | "storage" | "compression" => {}
            "all" => {
                like = Like {
                    table: like.table,
                    place,
                    defaults: wanted,
                    constraints: wanted,
                    identity: wanted,
                    generated: wanted,
                    indexes: wanted,
                    comments: wanted,
                };
            }
            _ => {
                words.at -= 1;
                return Err(words.unexpected());
            }
        }
    }
    Ok(like)
}
