//! VACUUM, ANALYZE and CHECKPOINT. There is nothing to do for them: old versions of rows go as soon
//! as no transaction can read them, shards count their rows, and nodes write checkpoints by
//! themselves. The tables that the statements name must exist all the same. LOCK TABLE in the
//! weakest mode is no more: it excludes nothing but changes of the schema, and those do not wait.

use super::commands::split_commas;
use super::comment::name;
use super::explain::{each_option, is_on};
use super::words::Words;
use super::{Kind, Named};
use base::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

pub(super) fn checkpoint(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CHECKPOINT"])?;
    words.expect_end()?;
    Ok(Kind::Nothing("CHECKPOINT"))
}

pub(super) fn vacuum(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["VACUUM"])?;
    let mut analyze = false;
    if words.peek() == &Token::LParen {
        let known = |_: &Words<'_>, name: &str, value: Option<&str>| {
            match name {
                "analyze" | "analyse" => analyze = is_on(name, value)?,
                "full"
                | "freeze"
                | "verbose"
                | "disable_page_skipping"
                | "skip_locked"
                | "process_toast"
                | "truncate" => _ = is_on(name, value)?,
                "index_cleanup" if value == Some("auto") => {}
                "index_cleanup" => _ = is_on(name, value)?,
                "parallel" => parallel(value)?,
                _ => return Ok(false),
            }
            Ok(true)
        };
        each_option(words, "VACUUM", known)?;
    } else {
        words.take(&["FULL"]);
        words.take(&["FREEZE"]);
        words.take(&["VERBOSE"]);
        analyze = words.take_any(&["ANALYZE", "ANALYSE"]).is_some();
    }
    let named = relations(words)?;
    if !analyze && named.iter().any(|named| !named.columns.is_empty()) {
        let message = "ANALYZE option must be specified when a column list is provided";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(Kind::Maintenance("VACUUM", named))
}

pub(super) fn analyze(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.at += 1;
    if words.peek() == &Token::LParen {
        let known = |_: &Words<'_>, name: &str, value: Option<&str>| {
            let is_known = matches!(name, "verbose" | "skip_locked");
            if is_known {
                is_on(name, value)?;
            }
            Ok(is_known)
        };
        each_option(words, "ANALYZE", known)?;
    } else {
        words.take(&["VERBOSE"]);
    }
    Ok(Kind::Maintenance("ANALYZE", relations(words)?))
}

fn parallel(value: Option<&str>) -> Result<(), SqlError> {
    let message = match value {
        None => "parallel option requires a value between 0 and 1024",
        Some(value) => match value.parse::<i32>() {
            Ok(0..=1024) => return Ok(()),
            Ok(_) => "parallel workers for vacuum must be between 0 and 1024",
            Err(_) => "parallel requires an integer value",
        },
    };
    Err(SqlError::new(SqlState::SYNTAX, message))
}

/// Tables, each with a list of columns or without.
fn relations(words: &mut Words<'_>) -> Result<Vec<Named>, SqlError> {
    let mut all = Vec::new();
    if words.at_end() {
        return Ok(all);
    }
    loop {
        let table = name(words)?;
        let mut columns = Vec::new();
        if words.peek() == &Token::LParen {
            for piece in split_commas(words.group()?) {
                let mut column = Words::new(piece, words.source);
                columns.push(column.identifier()?);
                column.expect_end()?;
            }
        }
        all.push(Named { table, columns });
        if !words.take_token(&Token::Comma) {
            words.expect_end()?;
            return Ok(all);
        }
    }
}

const LOCK_HINT: &str = "Lock rows by SELECT FOR UPDATE or FOR SHARE, or let sessions agree on a \
                         number by pg_advisory_xact_lock.";

/// LOCK TABLE: the mode of every SELECT, which dumps ask for; others are refused.
pub(super) fn lock(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["LOCK"])?;
    words.take(&["TABLE"]);
    let mut tables = Vec::new();
    loop {
        words.take(&["ONLY"]);
        let table = name(words)?;
        words.take_token(&Token::Mul);
        tables.push(Named {
            table,
            columns: Vec::new(),
        });
        if !words.take_token(&Token::Comma) {
            break;
        }
    }
    let weakest = words.take(&["IN", "ACCESS", "SHARE", "MODE"]);
    if !weakest && words.take(&["IN"]) {
        while !words.at_end() && !words.take(&["MODE"]) {
            words.identifier()?;
        }
    }
    words.take(&["NOWAIT"]);
    words.expect_end()?;
    match weakest {
        true => Ok(Kind::Maintenance("LOCK TABLE", tables)),
        false => Err(words
            .unsupported("LOCK TABLE in another mode than ACCESS SHARE")
            .hint(LOCK_HINT)),
    }
}
