//! EXPLAIN and its options.

use super::commands::split_commas;
use super::words::Words;
use super::{Kind, nested};
use base::{SqlError, SqlState};
use sqlparser::tokenizer::Token;

/// What EXPLAIN shows.
#[derive(Clone, Copy, Debug)]
pub struct ExplainOptions {
    /// The statement is run.
    pub analyze: bool,
    /// The rows that the planner expects.
    pub costs: bool,
    /// How long each step took.
    pub timing: bool,
    /// How long planning and execution took.
    pub summary: bool,
    /// The form of the answer.
    pub format: ExplainFormat,
    /// Settings that are not what they are by default.
    pub settings: bool,
}

/// The form of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ExplainFormat {
    Text,
    Json,
    Xml,
    Yaml,
}

pub(super) fn explain(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["EXPLAIN"])?;
    let options = if has_options(words) {
        listed(words)?
    } else {
        let analyze = words.take_any(&["ANALYZE", "ANALYSE"]).is_some();
        // Nothing is added: names are always complete.
        words.take(&["VERBOSE"]);
        ExplainOptions {
            analyze,
            costs: true,
            timing: analyze,
            summary: analyze,
            format: ExplainFormat::Text,
            settings: false,
        }
    };
    let not_explained = [
        "PREPARE",
        "EXPLAIN",
        "ANALYZE",
        "ANALYSE",
        "VACUUM",
        "CHECKPOINT",
    ];
    if not_explained.iter().any(|verb| words.is(&[verb])) {
        return Err(words.unexpected());
    }
    let statement = nested(
        words.source,
        &words.tokens[words.at.min(words.tokens.len())..],
    )?;
    Ok(Kind::Explain { options, statement })
}

/// Whether the parenthesis that comes next holds options, not a query.
fn has_options(words: &Words<'_>) -> bool {
    let queries = ["SELECT", "VALUES", "WITH", "TABLE"];
    words.peek() == &Token::LParen
        && words.peek_at(1) != &Token::LParen
        && !queries.iter().any(|first| words.is_at(1, first))
}

/// The options in parentheses.
///
/// # Errors
/// 42601 for an unknown option or a value that it does not have, 22023 for TIMING without ANALYZE,
/// 0A000 for what is not shown here.
fn listed(words: &mut Words<'_>) -> Result<ExplainOptions, SqlError> {
    let (mut analyze, mut costs, mut timing, mut summary) = (false, true, None, None);
    let (mut format, mut wal, mut settings) = (ExplainFormat::Text, false, false);
    each_option(words, "EXPLAIN", |_, name, value| {
        match name {
            "analyze" | "analyse" => analyze = is_on(name, value)?,
            "costs" => costs = is_on(name, value)?,
            "timing" => timing = Some(is_on(name, value)?),
            "summary" => summary = Some(is_on(name, value)?),
            "verbose" => _ = is_on(name, value)?,
            // There are no buffers: all of their numbers are 0, and none is shown.
            "buffers" => _ = is_on(name, value)?,
            "wal" => wal = is_on(name, value)?,
            "settings" => settings = is_on(name, value)?,
            "format" => format = format_of(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if wal && !analyze {
        return Err(invalid("EXPLAIN option WAL requires ANALYZE".into()));
    }
    if wal {
        let error = words.unsupported("EXPLAIN WAL");
        return Err(error.hint("SHOW COUNTERS tells what nodes have written."));
    }
    if timing == Some(true) && !analyze {
        return Err(invalid("EXPLAIN option TIMING requires ANALYZE".into()));
    }
    Ok(ExplainOptions {
        analyze,
        costs,
        timing: timing.unwrap_or(analyze),
        summary: summary.unwrap_or(analyze),
        format,
        settings,
    })
}

/// Shows `known` the options in parentheses behind `statement`, one after the other, by name and
/// value; it tells whether there is such an option.
///
/// # Errors
/// 42601 for an unknown option, and what `known` raises.
pub(super) fn each_option(
    words: &mut Words<'_>,
    statement: &str,
    mut known: impl FnMut(&Words<'_>, &str, Option<&str>) -> Result<bool, SqlError>,
) -> Result<(), SqlError> {
    let group = words.group()?;
    for piece in split_commas(group) {
        let mut option = Words::new(piece, words.source);
        let name = option.identifier()?;
        let value = if option.at_end() {
            None
        } else {
            Some(option.value()?.to_ascii_lowercase())
        };
        option.expect_end()?;
        if !known(words, &name, value.as_deref())? {
            return Err(syntax(format!(
                "unrecognized {statement} option \"{name}\""
            )));
        }
    }
    Ok(())
}

/// The value of a Boolean option; none is `true`.
///
/// # Errors
/// 42601.
pub(super) fn is_on(name: &str, value: Option<&str>) -> Result<bool, SqlError> {
    match value {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(syntax(format!("{name} requires a Boolean value"))),
    }
}

fn format_of(value: Option<&str>) -> Result<ExplainFormat, SqlError> {
    match value {
        Some("text") => Ok(ExplainFormat::Text),
        Some("json") => Ok(ExplainFormat::Json),
        Some("xml") => Ok(ExplainFormat::Xml),
        Some("yaml") => Ok(ExplainFormat::Yaml),
        Some(value) => Err(invalid(format!(
            "unrecognized value for EXPLAIN option \"format\": \"{value}\""
        ))),
        None => Err(syntax("format requires a parameter".into())),
    }
}

fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SYNTAX, message)
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}
