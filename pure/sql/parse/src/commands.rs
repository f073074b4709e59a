//! Statements of the session and the cluster: transactions, settings, PREPARE, COPY, EXPLAIN,
//! databases, SHOW.

use super::words::Words;
use super::{
    Kind, comment, constraints, cursors, enums, maintenance, nested, relations, table_as, tables,
    views, with_library,
};
use crate::copy::OptionValue;
use crate::session::{Isolation, SessionCommand, TxnModes};
use crate::show::{Show, show_hint};
use ::functions::keywords::quote_ident;
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::Token;

/// What SHOW names.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum ShowWhat {
    Cluster(Show),
    /// `None`: all settings.
    Setting(Option<String>),
}

/// Options of CREATE DATABASE that mean something here.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)]
pub struct DatabaseOptions {
    pub protocol: Option<String>,
    pub execution: Option<String>,
    pub if_not_exists: bool,
    /// CONNECTION LIMIT.
    pub connection_limit: Option<i32>,
}

/// COPY.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct CopyStatement {
    pub source: CopySource,
    pub from: bool,
    /// Names and values in the order of the text.
    pub options: Vec<(String, OptionValue)>,
}

/// What is copied.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum CopySource {
    Table {
        /// The parts of its name.
        name: Vec<String>,
        columns: Vec<String>,
        position: u32,
    },
    Query(Box<ast::Query>),
}

/// Parses the statement if its first words are ours; `None` leaves it to the library.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let first = match words.peek() {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => return Ok(None),
    };
    if let Some(kind) = super::objects::parse(words)? {
        return Ok(Some(kind));
    }
    let session = |command: SessionCommand| Ok(Some(Kind::Session(command)));
    match first.as_str() {
        "BEGIN" | "START" => session(begin(words)?),
        "COMMIT" | "END" => session(end(words, true)?),
        "ROLLBACK" | "ABORT" => session(end(words, false)?),
        "SAVEPOINT" => {
            words.at += 1;
            session(SessionCommand::Savepoint(only_name(words)?))
        }
        "RELEASE" => {
            words.at += 1;
            session(SessionCommand::Release(savepoint_name(words)?))
        }
        "SET" if words.is(&["SET", "CONSTRAINTS"]) => constraints::set(words).map(Some),
        "SET" => session(set(words)?),
        "RESET" => reset(words).map(Some),
        "SHOW" => show(words).map(Some),
        "DISCARD" => discard(words).map(Some),
        "PREPARE" => prepare(words).map(Some),
        "EXECUTE" => execute(words).map(Some),
        "DEALLOCATE" => {
            words.at += 1;
            words.take(&["PREPARE"]);
            let name = if words.take(&["ALL"]) {
                None
            } else {
                Some(words.identifier()?)
            };
            words.expect_end()?;
            session(SessionCommand::Deallocate(name))
        }
        "COPY" => copy(words).map(Some),
        "EXPLAIN" => super::explain::explain(words).map(Some),
        "VACUUM" => maintenance::vacuum(words).map(Some),
        "ANALYZE" | "ANALYSE" => maintenance::analyze(words).map(Some),
        "CHECKPOINT" => maintenance::checkpoint(words).map(Some),
        "COMMENT" => comment::comment(words).map(Some),
        "DECLARE" | "FETCH" | "MOVE" | "CLOSE" => session(cursors::parse(words)?),
        "LISTEN" | "UNLISTEN" | "NOTIFY" => session(channels(words)?),
        "LOCK" => maintenance::lock(words).map(Some),
        "REINDEX" => maintenance::reindex(words).map(Some),
        "IMPORT" | "SECURITY" | "REFRESH" | "LOAD" | "CLUSTER" => {
            Err(maintenance::refused(words, &first))
        }
        // INSERT OVERWRITE, INSERT OR REPLACE, UPDATE OR IGNORE, DELETE t FROM ...
        "INSERT" if !words.is_at(1, "INTO") => Err(words.unexpected_at(1)),
        "DELETE" if !words.is_at(1, "FROM") => Err(words.unexpected_at(1)),
        "UPDATE" if words.is_at(1, "OR") => Err(words.unexpected_at(1)),
        "CREATE" if words.is(&["CREATE", "DATABASE"]) => create_database(words).map(Some),
        "CREATE" if tables::is_create_table(words) => tables::create_table(words).map(Some),
        "CREATE" if views::is_create_view(words) => views::create(words).map(Some),
        "CREATE" if words.is(&["CREATE", "TYPE"]) => enums::create(words).map(Some),
        "CREATE" => create_other(words),
        "DROP" if words.is(&["DROP", "DATABASE"]) => drop_database(words).map(Some),
        "DROP" if words.is(&["DROP", "VIEW"]) => table_as::drop_views(words).map(Some),
        "DROP" if words.is(&["DROP", "TYPE"]) => enums::drop(words).map(Some),
        "ALTER" if words.is(&["ALTER", "TYPE"]) => enums::alter(words).map(Some),
        "MERGE" => super::merge::parse(words).map(Some),
        "WITH" => super::with::parse(words),
        "SELECT" => table_as::select_into(words),
        "ALTER" if words.is(&["ALTER", "VIEW"]) => views::alter(words).map(Some),
        "ALTER" if !words.is(&["ALTER", "TABLE"]) => relations::alter(words).map(Some),
        _ => Ok(None),
    }
}

fn reset(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["RESET"])?;
    if words.take(&["SESSION", "AUTHORIZATION"]) {
        words.expect_end()?;
        let name = Some("session_authorization".into());
        return Ok(Kind::Session(SessionCommand::Reset(name)));
    }
    let all = words.take(&["ALL"]);
    let name = (!all).then(|| setting_name(words)).transpose()?;
    words.expect_end()?;
    Ok(Kind::Session(SessionCommand::Reset(name)))
}

fn discard(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["DISCARD"])?;
    let what = words.take_any(&["ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"]);
    let what = what.ok_or_else(|| words.unexpected())?;
    words.expect_end()?;
    Ok(match what {
        "ALL" => Kind::Session(SessionCommand::Discard),
        // Plans are made anew when a table changes.
        "PLANS" => Kind::Nothing("DISCARD PLANS"),
        "SEQUENCES" => Kind::Session(SessionCommand::DiscardSequences),
        _ => Kind::Session(SessionCommand::DiscardTemporary),
    })
}

/// LISTEN, UNLISTEN and NOTIFY.
fn channels(words: &mut Words<'_>) -> Result<SessionCommand, SqlError> {
    let command = if words.take(&["LISTEN"]) {
        SessionCommand::Listen(words.identifier()?)
    } else if words.take(&["UNLISTEN"]) {
        let all = words.take_token(&Token::Mul);
        let channel = (!all).then(|| words.identifier()).transpose()?;
        SessionCommand::Unlisten(channel)
    } else {
        words.expect(&["NOTIFY"])?;
        let channel = words.identifier()?;
        let payload = match words.take_token(&Token::Comma) {
            true => words.string()?,
            false => String::new(),
        };
        SessionCommand::Notify { channel, payload }
    };
    words.expect_end()?;
    Ok(command)
}

/// Leaves what the library knows of CREATE to it, and refuses the rest.
fn create_other(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let Token::Word(word) = words.peek_at(1) else {
        words.at += 1;
        return Err(words.unexpected());
    };
    if words.is_at(1, "OR") && words.is_at(2, "REPLACE") && words.is_at(3, "TABLE") {
        words.at += 3;
        return Err(words.unexpected());
    }
    match word.value.to_ascii_uppercase().as_str() {
        "INDEX" | "UNIQUE" | "SEQUENCE" => Ok(None),
        "TEMP" | "TEMPORARY" if words.is_at(2, "SEQUENCE") => Ok(None),
        "EXTENSION" => maintenance::extension(words).map(Some),
        "COLLATION" => Err(words
            .unsupported("CREATE COLLATION")
            .hint(super::absent::ONE_ORDER)),
        what => Err(words.unsupported(&format!("CREATE {what}"))),
    }
}

/// `[SAVEPOINT] name`, and nothing behind it. The word alone is a name too.
fn savepoint_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    if words.is(&["SAVEPOINT"]) && words.at + 1 < words.tokens.len() {
        words.at += 1;
    }
    only_name(words)
}

/// A name, and nothing behind it.
fn only_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    let name = words.identifier()?;
    words.expect_end()?;
    Ok(name)
}

/// Modes as they follow BEGIN, SET TRANSACTION and SET SESSION CHARACTERISTICS.
fn modes(words: &mut Words<'_>) -> Result<TxnModes, SqlError> {
    let mut modes = TxnModes::default();
    while !words.at_end() {
        words.take_token(&Token::Comma);
        if words.take(&["ISOLATION", "LEVEL"]) {
            modes.isolation = Some(if words.take(&["SERIALIZABLE"]) {
                Isolation::Serializable
            } else if words.take(&["REPEATABLE", "READ"]) {
                Isolation::RepeatableRead
            } else if words.take(&["READ", "COMMITTED"]) {
                Isolation::ReadCommitted
            } else if words.take(&["READ", "UNCOMMITTED"]) {
                Isolation::ReadUncommitted
            } else {
                return Err(words.unexpected());
            });
        } else if words.take(&["READ", "ONLY"]) {
            modes.read_only = Some(true);
        } else if words.take(&["READ", "WRITE"]) {
            modes.read_only = Some(false);
        } else if words.take(&["NOT", "DEFERRABLE"]) {
            modes.deferrable = Some(false);
        } else if words.take(&["DEFERRABLE"]) {
            modes.deferrable = Some(true);
        } else {
            return Err(words.unexpected());
        }
    }
    Ok(modes)
}

fn begin(words: &mut Words<'_>) -> Result<SessionCommand, SqlError> {
    if words.take(&["START"]) {
        words.expect(&["TRANSACTION"])?;
        return Ok(SessionCommand::Start(modes(words)?));
    }
    words.at += 1;
    let _ = words.take_any(&["WORK", "TRANSACTION"]);
    Ok(SessionCommand::Begin(modes(words)?))
}

fn end(words: &mut Words<'_>, commit: bool) -> Result<SessionCommand, SqlError> {
    words.at += 1;
    if words.is(&["PREPARED"]) {
        return Err(words.unsupported("PREPARE TRANSACTION"));
    }
    let _ = words.take_any(&["WORK", "TRANSACTION"]);
    if !commit && words.take(&["TO"]) {
        return Ok(SessionCommand::RollBackTo(savepoint_name(words)?));
    }
    let mut chain = false;
    if words.take(&["AND"]) {
        chain = !words.take(&["NO"]);
        words.expect(&["CHAIN"])?;
    }
    words.expect_end()?;
    Ok(if commit {
        SessionCommand::Commit { chain }
    } else {
        SessionCommand::Rollback { chain }
    })
}

/// A setting's name in lower case; `a.b` is a name too.
fn setting_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    if words.take(&["TIME", "ZONE"]) {
        return Ok("timezone".into());
    }
    if words.take(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        return Ok("transaction_isolation".into());
    }
    if words.take(&["SESSION", "AUTHORIZATION"]) {
        return Ok("session_authorization".into());
    }
    let mut name = words.identifier()?;
    while words.take_token(&Token::Period) {
        name.push('.');
        name.push_str(&words.identifier()?);
    }
    Ok(name.to_ascii_lowercase())
}

/// Hours east of UTC, as PostgreSQL takes them from `INTERVAL '-2:30'`, as a zone.
fn hours_of_interval(text: &str) -> Option<String> {
    let (sign, digits) = match text.trim().strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', text.trim().trim_start_matches('+')),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    if hours > 167 || minutes > 59 {
        return None;
    }
    let west = if sign == '-' { '+' } else { '-' };
    Some(match minutes {
        0 => format!("<{sign}{hours:02}>{west}{hours:02}"),
        _ => format!("<{sign}{hours:02}:{minutes:02}>{west}{hours:02}:{minutes:02}"),
    })
}

/// The value behind SET TIME ZONE, up to the end of the statement.
fn time_zone(words: &mut Words<'_>) -> Result<Option<String>, SqlError> {
    let value = if words.take(&["DEFAULT"]) || words.take(&["LOCAL"]) {
        None
    } else if words.take(&["INTERVAL"]) {
        let text = words.string()?;
        if words.take(&["HOUR", "TO", "MINUTE"]) || words.take(&["HOUR"]) || words.at_end() {
            words.expect_end()?;
        }
        Some(hours_of_interval(&text).unwrap_or(text))
    } else {
        Some(words.value()?)
    };
    words.expect_end()?;
    Ok(value)
}

fn set(words: &mut Words<'_>) -> Result<SessionCommand, SqlError> {
    words.expect(&["SET"])?;
    if words.take(&["SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"]) {
        if words.at_end() {
            return Err(words.unexpected());
        }
        return Ok(SessionCommand::SetSessionModes(modes(words)?));
    }
    if words.take(&["TRANSACTION"]) || words.take(&["LOCAL", "TRANSACTION"]) {
        if words.is(&["SNAPSHOT"]) {
            return Err(words.unsupported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(SessionCommand::SetTransaction(modes(words)?));
    }
    let local = matches!(words.take_any(&["LOCAL", "SESSION"]), Some("LOCAL"));
    if words.take(&["TIME", "ZONE"]) {
        return Ok(SessionCommand::Set {
            name: "timezone".into(),
            value: time_zone(words)?,
            local,
        });
    }
    if words.take(&["SCHEMA"]) {
        let value = Some(quote_ident(&words.string()?).into_owned());
        words.expect_end()?;
        return Ok(SessionCommand::Set {
            name: "search_path".into(),
            value,
            local,
        });
    }
    if words.take(&["NAMES"]) {
        let value = if words.at_end() || words.take(&["DEFAULT"]) {
            None
        } else {
            Some(words.value()?)
        };
        words.expect_end()?;
        return Ok(SessionCommand::Set {
            name: "client_encoding".into(),
            value,
            local,
        });
    }
    if let Some((name, value)) = acting(words)? {
        return Ok(SessionCommand::Set { name, value, local });
    }
    let (name, value) = assignment(words)?;
    words.expect_end()?;
    Ok(SessionCommand::Set { name, value, local })
}

/// A setting and its value; `None`: its default.
type Assigned = (String, Option<String>);

/// ROLE or SESSION AUTHORIZATION and a name. NONE and DEFAULT: that of the login.
fn acting(words: &mut Words<'_>) -> Result<Option<Assigned>, SqlError> {
    let (name, own) =
        if words.is(&["ROLE"]) && !words.is_at(1, "TO") && words.peek_at(1) != &Token::Eq {
            words.at += 1;
            ("role", "NONE")
        } else if words.take(&["AUTHORIZATION"]) || words.take(&["SESSION", "AUTHORIZATION"]) {
            ("session_authorization", "DEFAULT")
        } else {
            return Ok(None);
        };
    let value = match words.take(&[own]) {
        true => None,
        false => match words.peek() {
            Token::Word(_) => Some(words.identifier()?),
            _ => Some(words.string()?),
        },
    };
    words.expect_end()?;
    Ok(Some((name.into(), value)))
}

/// `name TO value`, `name = value`.
fn assignment(words: &mut Words<'_>) -> Result<Assigned, SqlError> {
    let name = setting_name(words)?;
    if !words.take(&["TO"]) {
        words.expect_token(&Token::Eq)?;
    }
    if words.take(&["DEFAULT"]) {
        return Ok((name, None));
    }
    let is_path = name.eq_ignore_ascii_case("search_path");
    let mut list = listed(words, is_path)?;
    while words.take_token(&Token::Comma) {
        list.push_str(", ");
        list.push_str(&listed(words, is_path)?);
    }
    Ok((name, Some(list)))
}

/// SET or RESET of a setting that the catalog keeps. No name: all of them; no value: it goes.
pub(super) fn kept_setting(
    words: &mut Words<'_>,
) -> Result<(Option<String>, Option<String>), SqlError> {
    if words.take(&["RESET", "ALL"]) {
        return Ok((None, None));
    }
    if words.take(&["RESET"]) {
        return Ok((Some(setting_name(words)?), None));
    }
    words.expect(&["SET"])?;
    let (name, value) = if words.take(&["TIME", "ZONE"]) {
        ("timezone".into(), time_zone(words)?)
    } else {
        assignment(words)?
    };
    if let Some(value) = &value {
        pg_catalog::settings::validate(&name, value)?;
    } else if pg_catalog::settings::lookup(&name).is_none() {
        return Err(pg_catalog::settings::unknown(&name));
    }
    Ok((Some(name), value))
}

/// A value of SET. The name of a schema has its quotes, if it needs them: `"$user"`.
fn listed(words: &mut Words<'_>, is_path: bool) -> Result<String, SqlError> {
    let value = words.value()?;
    Ok(match is_path {
        true => quote_ident(&value).into_owned(),
        false => value,
    })
}

fn show(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["SHOW"])?;
    let what = if let Some(what) = Show::topics().find(|what| words.take(what.words())) {
        ShowWhat::Cluster(what)
    } else if words.take(&["ALL"]) {
        ShowWhat::Setting(None)
    } else {
        let name = setting_name(words).map_err(|error| error.hint(show_hint()))?;
        ShowWhat::Setting(Some(name))
    };
    words.expect_end()?;
    Ok(Kind::Show(what))
}

fn prepare(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["PREPARE"])?;
    if words.is(&["TRANSACTION"]) {
        return Err(words.unsupported("PREPARE TRANSACTION"));
    }
    let name = words.identifier()?;
    let mut types = Vec::new();
    if words.peek() == &Token::LParen {
        let group = words.group()?;
        for piece in split_commas(group) {
            types.push(with_library(words.source, piece, |parser| {
                parser.parse_data_type()
            })?);
        }
    }
    words.expect(&["AS"])?;
    // What is prepared or explained prepares and explains nothing.
    if words.is(&["PREPARE"]) || words.is(&["EXPLAIN"]) {
        return Err(words.unexpected());
    }
    let statement = nested(
        words.source,
        &words.tokens[words.at.min(words.tokens.len())..],
    )?;
    let is_rows = matches!(
        statement.kind(),
        Kind::Sql(_) | Kind::Insert(..) | Kind::With(_) | Kind::Merge(_)
    );
    if !is_rows {
        return Err(words.unexpected());
    }
    Ok(Kind::Prepare {
        name,
        types,
        statement,
    })
}

fn execute(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["EXECUTE"])?;
    let name = words.identifier()?;
    let mut args = Vec::new();
    if words.peek() == &Token::LParen {
        let group = words.group()?;
        for piece in split_commas(group) {
            args.push(with_library(words.source, piece, |parser| {
                parser.parse_expr()
            })?);
        }
    }
    words.expect_end()?;
    Ok(Kind::Execute { name, args })
}

/// Pieces between the commas that are not inside parentheses or brackets.
pub(super) fn split_commas(
    tokens: &[sqlparser::tokenizer::TokenWithSpan],
) -> Vec<&[sqlparser::tokenizer::TokenWithSpan]> {
    if tokens.is_empty() {
        return Vec::new();
    }
    let mut depth = 0;
    tokens
        .split(|token| {
            match token.token {
                Token::LParen | Token::LBracket => depth += 1,
                Token::RParen | Token::RBracket => depth -= 1,
                _ => {}
            }
            depth == 0 && token.token == Token::Comma
        })
        .collect()
}

fn create_database(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CREATE", "DATABASE"])?;
    let mut options = DatabaseOptions {
        if_not_exists: words.take(&["IF", "NOT", "EXISTS"]),
        ..DatabaseOptions::default()
    };
    let name = words.identifier()?;
    words.take(&["WITH"]);
    let parenthesised = words.take_token(&Token::LParen);
    while !words.at_end() {
        if parenthesised && words.take_token(&Token::RParen) {
            break;
        }
        let option = words.identifier()?;
        if option == "connection" {
            words.expect(&["LIMIT"])?;
        }
        words.take_token(&Token::Eq);
        if option == "connection" {
            options.connection_limit = Some(super::rights::connection_limit(words)?);
            if parenthesised {
                words.take_token(&Token::Comma);
            }
            continue;
        }
        let value = words.value()?;
        match option.as_str() {
            "protocol" => options.protocol = Some(value.to_lowercase()),
            "execution" => options.execution = Some(value.to_lowercase()),
            "encoding"
                if !matches!(value.to_lowercase().as_str(), "utf8" | "utf-8" | "default") =>
            {
                return Err(words.unsupported("an encoding other than UTF8"));
            }
            "owner" | "template" | "encoding" | "lc_collate" | "lc_ctype" | "locale"
            | "locale_provider" | "icu_locale" | "tablespace" | "allow_connections"
            | "is_template" | "strategy" | "collation_version" | "oid" => {}
            _ => {
                let message = format!("option \"{option}\" not recognized");
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        }
        if parenthesised {
            words.take_token(&Token::Comma);
        }
    }
    words.expect_end()?;
    Ok(Kind::CreateDatabase { name, options })
}

/// `ALTER DATABASE name SET (protocol = 'leap')`, with or without parentheses.
pub(super) fn alter_database(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["ALTER", "DATABASE"])?;
    let name = words.identifier()?;
    words.take(&["WITH"]);
    if words.take(&["CONNECTION", "LIMIT"]) {
        words.take_token(&Token::Eq);
        let limit = super::rights::connection_limit(words)?;
        words.expect_end()?;
        let change = rights::Change::ConnectionLimit {
            database: name,
            limit,
        };
        let tag = "ALTER DATABASE";
        return Ok(Kind::Rights(Box::new(super::RightsStatement {
            tag,
            change,
        })));
    }
    if !words.take(&["SET"]) {
        return Err(words.unsupported("ALTER DATABASE of anything but its protocol"));
    }
    let parenthesised = words.take_token(&Token::LParen);
    let option = words.identifier()?;
    if option != "protocol" {
        return Err(words.unsupported("ALTER DATABASE of anything but its protocol"));
    }
    if !words.take_token(&Token::Eq) {
        words.expect(&["TO"])?;
    }
    let protocol = words.value()?.to_lowercase();
    if parenthesised && !words.take_token(&Token::RParen) {
        return Err(words.unexpected());
    }
    words.expect_end()?;
    Ok(Kind::AlterDatabase { name, protocol })
}

fn drop_database(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["DROP", "DATABASE"])?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let name = words.identifier()?;
    let with = words.take(&["WITH"]);
    if with || words.peek() == &Token::LParen {
        // Its sessions are ended in any case.
        for piece in split_commas(words.group()?) {
            let mut option = Words::new(piece, words.source);
            option.expect(&["FORCE"])?;
            option.expect_end()?;
        }
    }
    words.expect_end()?;
    Ok(Kind::DropDatabase { name, if_exists })
}

fn copy(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["COPY"])?;
    let source = if words.peek() == &Token::LParen {
        let group = words.group()?;
        let query = with_library(words.source, group, |parser| parser.parse_query());
        let misplaced = |error| {
            let inner = Words::new(group, words.source);
            super::with::check(&inner).err().unwrap_or(error)
        };
        CopySource::Query(query.map_err(misplaced)?)
    } else {
        let position = words
            .tokens
            .get(words.at)
            .map_or(0, |token| words.source.position(token.span.start));
        let mut name = vec![words.identifier()?];
        while words.take_token(&Token::Period) {
            name.push(words.identifier()?);
        }
        let columns = if words.peek() == &Token::LParen {
            identifiers(words)?
        } else {
            Vec::new()
        };
        CopySource::Table {
            name,
            columns,
            position,
        }
    };
    let from = match words.take_any(&["FROM", "TO"]) {
        Some("FROM") if !matches!(source, CopySource::Query(_)) => true,
        Some("TO") => false,
        _ => return Err(words.unexpected()),
    };
    if !words.take(&[if from { "STDIN" } else { "STDOUT" }]) {
        return match words.peek() {
            Token::EscapedStringLiteral(_) | Token::Word(_) => {
                Err(words.unsupported("COPY with files or programs of the server"))
            }
            _ => Err(words.unexpected()),
        };
    }
    words.take(&["WITH"]);
    let mut options = Vec::new();
    if words.peek() == &Token::LParen {
        let group = words.group()?;
        for piece in split_commas(group) {
            copy_option(&mut Words::new(piece, words.source), &mut options)?;
        }
    } else {
        while !words.at_end() && !words.is(&["WHERE"]) {
            legacy_copy_option(words, &mut options)?;
        }
    }
    if words.is(&["WHERE"]) {
        return Err(words.unsupported("COPY FROM ... WHERE"));
    }
    words.expect_end()?;
    Ok(Kind::Copy(Box::new(CopyStatement {
        source,
        from,
        options,
    })))
}

/// `(a, b, c)`
pub(super) fn identifiers(words: &mut Words<'_>) -> Result<Vec<String>, SqlError> {
    words.expect_token(&Token::LParen)?;
    let mut names = vec![words.identifier()?];
    while words.take_token(&Token::Comma) {
        names.push(words.identifier()?);
    }
    words.expect_token(&Token::RParen)?;
    Ok(names)
}

fn copy_option(
    words: &mut Words<'_>,
    options: &mut Vec<(String, OptionValue)>,
) -> Result<(), SqlError> {
    let name = words.identifier()?;
    let value = if words.at_end() {
        OptionValue::None
    } else if words.take_token(&Token::Mul) {
        OptionValue::Star
    } else if words.peek() == &Token::LParen {
        OptionValue::List(identifiers(words)?)
    } else {
        OptionValue::Text(words.value()?)
    };
    words.expect_end()?;
    options.push((name, value));
    Ok(())
}

fn legacy_copy_option(
    words: &mut Words<'_>,
    options: &mut Vec<(String, OptionValue)>,
) -> Result<(), SqlError> {
    let flags = ["BINARY", "CSV", "HEADER", "FREEZE"];
    if let Some(flag) = words.take_any(&flags) {
        options.push((flag.to_lowercase(), OptionValue::None));
        return Ok(());
    }
    if let Some(name) = words.take_any(&["DELIMITER", "DELIMITERS", "NULL", "QUOTE", "ESCAPE"]) {
        words.take(&["AS"]);
        options.push((name.to_lowercase(), OptionValue::Text(words.string()?)));
        return Ok(());
    }
    if words.take(&["FORCE"]) {
        let name = if words.take(&["QUOTE"]) {
            "force_quote"
        } else if words.take(&["NOT", "NULL"]) {
            "force_not_null"
        } else {
            words.expect(&["NULL"])?;
            "force_null"
        };
        let value = if words.take_token(&Token::Mul) {
            OptionValue::Star
        } else {
            let mut names = vec![words.identifier()?];
            while words.take_token(&Token::Comma) {
                names.push(words.identifier()?);
            }
            OptionValue::List(names)
        };
        options.push((name.into(), value));
        return Ok(());
    }
    Err(words.unexpected())
}
