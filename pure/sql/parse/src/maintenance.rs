//! VACUUM, ANALYZE, REINDEX and CHECKPOINT. ANALYZE lets the shards look at the values of their
//! rows. For the others there is nothing to do: old versions of rows go as soon as no transaction
//! can read them, and nodes write checkpoints by themselves. The tables that the statements name
//! must exist all the same. LOCK TABLE in the weakest mode is no more: it excludes nothing but
//! changes of the schema, and those do not wait. ROW SHARE and ROW EXCLUSIVE exclude stronger modes
//! besides, which are refused.

use super::commands::split_commas;
use super::comment::name;
use super::constraints::is_word;
use super::explain::{each_option, is_on};
use super::words::Words;
use super::{Kind, LockTables, Named, Reindex, Upkeep};
use base::{SqlError, SqlState};
use catalog::TableLock;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The error for a statement that is not supported, by its first word.
pub(super) fn refused(words: &Words<'_>, first: &str) -> SqlError {
    let refused = words.unsupported(first);
    match first {
        "CLUSTER" => refused.hint("Rows lie in the order of the primary key."),
        _ => refused,
    }
}

/// REINDEX: indexes follow the rows and leave nothing behind, so there is nothing to do but to look
/// whether there is what it names.
pub(super) fn reindex(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["REINDEX"])?;
    let mut concurrently = false;
    if words.peek() == &Token::LParen {
        let known = |_: &Words<'_>, name: &str, value: Option<&str>| {
            match name {
                "verbose" => _ = is_on(name, value)?,
                "concurrently" => concurrently = is_on(name, value)?,
                "tablespace" => return Err(words_unsupported()),
                _ => return Ok(false),
            }
            Ok(true)
        };
        each_option(words, "REINDEX", known)?;
    }
    let kinds = ["INDEX", "TABLE", "SCHEMA", "DATABASE", "SYSTEM"];
    let Some(of) = words.take_any(&kinds) else {
        return Err(words.unexpected());
    };
    concurrently |= words.take(&["CONCURRENTLY"]);
    if concurrently && of == "SYSTEM" {
        let message = "cannot reindex system catalogs concurrently";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let named = match of {
        "INDEX" | "TABLE" => name(words)?,
        _ => vec![words.identifier()?],
    };
    words.expect_end()?;
    Ok(Kind::Reindex(Reindex {
        of,
        concurrently,
        named,
    }))
}

/// What the statement is called if no transaction block can have it, as in PostgreSQL.
pub(super) fn alone(kind: &Kind, tokens: &[TokenWithSpan]) -> Option<&'static str> {
    let says = |at: usize| is_word(tokens, at, "CONCURRENTLY");
    match kind {
        Kind::Reindex(reindex) if reindex.concurrently => Some("REINDEX CONCURRENTLY"),
        Kind::Reindex(reindex) => match reindex.of {
            "SCHEMA" => Some("REINDEX SCHEMA"),
            "DATABASE" => Some("REINDEX DATABASE"),
            "SYSTEM" => Some("REINDEX SYSTEM"),
            _ => None,
        },
        Kind::CreateIndex(_) => {
            let at = if is_word(tokens, 1, "UNIQUE") { 3 } else { 2 };
            says(at).then_some("CREATE INDEX CONCURRENTLY")
        }
        Kind::Sql(_) => {
            let drops = is_word(tokens, 0, "DROP") && is_word(tokens, 1, "INDEX");
            (drops && says(2)).then_some("DROP INDEX CONCURRENTLY")
        }
        _ => None,
    }
}

fn words_unsupported() -> SqlError {
    let message = "REINDEX (TABLESPACE) is not supported";
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

pub(super) fn checkpoint(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CHECKPOINT"])?;
    words.expect_end()?;
    Ok(Kind::Nothing("CHECKPOINT"))
}

/// CREATE EXTENSION "uuid-ossp" [IF NOT EXISTS]: what applications want of it, `uuid_generate_v4`,
/// is always there, as are `digest`, `hmac` and `gen_random_uuid` of pgcrypto and the view
/// pg_stat_statements. All other extensions are refused.
pub(super) fn extension(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let refused = words.unsupported("CREATE EXTENSION");
    words.expect(&["CREATE", "EXTENSION"])?;
    words.take(&["IF", "NOT", "EXISTS"]);
    match words.identifier()?.as_str() {
        "uuid-ossp" | "pg_stat_statements" | "pgcrypto" => {}
        _ => return Err(refused),
    }
    if !words.at_end() {
        return Err(words.unsupported("an option of CREATE EXTENSION"));
    }
    Ok(Kind::Nothing("CREATE EXTENSION"))
}

pub(super) fn vacuum(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["VACUUM"])?;
    let (mut analyze, mut verbose) = (false, false);
    if words.peek() == &Token::LParen {
        let known = |_: &Words<'_>, name: &str, value: Option<&str>| {
            match name {
                "analyze" | "analyse" => analyze = is_on(name, value)?,
                "verbose" => verbose = is_on(name, value)?,
                "full"
                | "freeze"
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
        verbose = words.take(&["VERBOSE"]);
        analyze = words.take_any(&["ANALYZE", "ANALYSE"]).is_some();
    }
    let named = relations(words)?;
    if !analyze && named.iter().any(|named| !named.columns.is_empty()) {
        let message = "ANALYZE option must be specified when a column list is provided";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(Kind::Upkeep(Upkeep {
        vacuums: true,
        analyzes: analyze,
        verbose,
        named,
    }))
}

pub(super) fn analyze(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.at += 1;
    let mut verbose = false;
    if words.peek() == &Token::LParen {
        let known = |_: &Words<'_>, name: &str, value: Option<&str>| {
            match name {
                "verbose" => verbose = is_on(name, value)?,
                "skip_locked" => _ = is_on(name, value)?,
                _ => return Ok(false),
            }
            Ok(true)
        };
        each_option(words, "ANALYZE", known)?;
    } else {
        verbose = words.take(&["VERBOSE"]);
    }
    Ok(Kind::Upkeep(Upkeep {
        vacuums: false,
        analyzes: true,
        verbose,
        named: relations(words)?,
    }))
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

/// Modes of LOCK TABLE by their words.
const MODES: [(&[&str], TableLock); 8] = [
    (&["IN", "ACCESS", "SHARE", "MODE"], TableLock::AccessShare),
    (&["IN", "ROW", "SHARE", "MODE"], TableLock::RowShare),
    (&["IN", "ROW", "EXCLUSIVE", "MODE"], TableLock::RowExclusive),
    (
        &["IN", "SHARE", "UPDATE", "EXCLUSIVE", "MODE"],
        TableLock::ShareUpdateExclusive,
    ),
    (&["IN", "SHARE", "MODE"], TableLock::Share),
    (
        &["IN", "SHARE", "ROW", "EXCLUSIVE", "MODE"],
        TableLock::ShareRowExclusive,
    ),
    (&["IN", "EXCLUSIVE", "MODE"], TableLock::Exclusive),
    (
        &["IN", "ACCESS", "EXCLUSIVE", "MODE"],
        TableLock::AccessExclusive,
    ),
];

/// LOCK TABLE.
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
    let found = MODES.iter().find(|(mode, _)| words.take(mode));
    let mode = found.map_or(TableLock::AccessExclusive, |(_, mode)| *mode);
    let nowait = words.take(&["NOWAIT"]);
    words.expect_end()?;
    Ok(Kind::Lock(LockTables {
        mode,
        nowait,
        tables,
    }))
}
