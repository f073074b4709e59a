//! Functions and procedures: CREATE, ALTER and DROP of them, CALL, and DO.

use super::commands::split_commas;
use super::comment::name;
use super::source::Walk;
use super::words::Words;
use super::{Kind, Statement, nested, with_library};
use crate::session::{DoBlock, SessionCommand};
use ::rights::{Grant, RoleName};
use base::{SqlError, SqlState};
use catalog::{Lasts, Mode, Parallel};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;

/// A statement about functions and procedures.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum RoutineStatement {
    Create(Box<RoutineCreate>),
    Drop {
        of: Vec<RoutineName>,
        if_exists: bool,
        cascade: bool,
    },
    Rename {
        of: RoutineName,
        to: String,
    },
    /// SET SCHEMA.
    Move {
        of: RoutineName,
        to: String,
    },
    Owner {
        of: RoutineName,
        to: RoleName,
    },
    Alter {
        of: RoutineName,
        options: RoutineOptions,
    },
    Comment {
        of: RoutineName,
        text: Option<String>,
    },
    /// GRANT or REVOKE, whose names of objects are these.
    Grant {
        of: Vec<RoutineName>,
        grant: Grant,
    },
}

/// A function or procedure that is there.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct RoutineName {
    /// `FUNCTION`, `PROCEDURE` or `ROUTINE`.
    pub word: &'static str,
    pub name: Vec<String>,
    /// `None`: there is only one of the name.
    pub types: Option<Vec<ast::DataType>>,
}

/// CREATE FUNCTION and CREATE PROCEDURE.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct RoutineCreate {
    pub replace: bool,
    pub is_procedure: bool,
    pub name: Vec<String>,
    pub arguments: Vec<RoutineArgument>,
    /// `None`: there is no RETURNS.
    pub returns: Option<RoutineReturns>,
    pub options: RoutineOptions,
    pub body: RoutineBody,
}

/// An argument, or a column of RETURNS TABLE.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct RoutineArgument {
    pub mode: Mode,
    /// Empty: it has none.
    pub name: String,
    pub ty: ast::DataType,
    pub default: Option<ast::Expr>,
}

/// What stands behind RETURNS.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum RoutineReturns {
    Void,
    Record { set: bool },
    Type { ty: ast::DataType, set: bool },
    Table,
}

/// Properties; `None`: it is not named.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct RoutineOptions {
    pub lasts: Option<Lasts>,
    pub strict: Option<bool>,
    pub leakproof: Option<bool>,
    pub parallel: Option<Parallel>,
    pub cost: Option<f64>,
    pub rows: Option<f64>,
    /// SECURITY DEFINER, or INVOKER.
    pub definer: Option<bool>,
    /// SET and RESET in their order. No name: all of them; no value: it goes.
    pub settings: Vec<(Option<String>, Option<String>)>,
}

/// The body as it is written.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum RoutineBody {
    Text(String),
    /// RETURN and an expression, as a SELECT.
    Return(String),
    /// BEGIN ATOMIC ... END.
    Atomic(Vec<String>),
}

const KINDS: [&str; 3] = ["FUNCTION", "PROCEDURE", "ROUTINE"];

fn kind(statement: RoutineStatement) -> Kind {
    Kind::Routine(Box::new(statement))
}

/// Splits the tokens of a text at semicolons, but for those between `BEGIN ATOMIC` and `END`.
pub(super) fn pieces(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let is = |at: usize, word: &str| {
        matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
            if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    };
    let (mut all, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for at in 0..tokens.len() {
        let follows = at > 0 && matches!(tokens[at - 1].token, Token::Period);
        if tokens[at].token == Token::SemiColon && depth == 0 {
            all.push(&tokens[start..at]);
            start = at + 1;
        } else if depth == 0 && is(at, "BEGIN") && is(at + 1, "ATOMIC") && is(start, "CREATE") {
            let mut heads = start + 1..(start + 4).min(at);
            let routine = heads.any(|at| is(at, "FUNCTION") || is(at, "PROCEDURE"));
            depth += usize::from(routine);
        } else if depth > 0 && is(at, "CASE") && !follows {
            depth += 1;
        } else if depth > 0 && is(at, "END") && !follows {
            depth -= 1;
        }
    }
    all.push(&tokens[start..]);
    all
}

/// Parses the statement if it is one about functions.
pub(super) fn statement(words: &mut Words<'_>) -> Result<Option<Kind>, SqlError> {
    let of_routine = |words: &Words<'_>, at| KINDS.iter().any(|kind| words.is_at(at, kind));
    if words.is(&["CREATE"]) {
        let replace = words.is(&["CREATE", "OR", "REPLACE"]);
        let at = if replace { 3 } else { 1 };
        if !words.is_at(at, "FUNCTION") && !words.is_at(at, "PROCEDURE") {
            return Ok(None);
        }
        words.at += at;
        return create(words, replace).map(Some);
    }
    if words.is(&["DROP"]) && of_routine(words, 1) {
        words.at += 1;
        return drop(words).map(Some);
    }
    if words.is(&["ALTER"]) && of_routine(words, 1) {
        words.at += 1;
        return alter(words).map(Some);
    }
    if words.is(&["COMMENT", "ON"]) && of_routine(words, 2) {
        words.at += 2;
        let of = routine_name(words)?;
        words.expect(&["IS"])?;
        let text = match words.take(&["NULL"]) {
            true => None,
            false => Some(words.string()?),
        };
        words.expect_end()?;
        return Ok(Some(kind(RoutineStatement::Comment { of, text })));
    }
    if words.is(&["CALL"]) {
        return call(words).map(Some);
    }
    if words.is(&["DO"]) {
        return do_block(words).map(Some);
    }
    Ok(None)
}

fn call(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["CALL"])?;
    let tokens = &words.tokens[words.at.min(words.tokens.len())..];
    if tokens.is_empty() {
        return Err(words.unexpected());
    }
    let parsed = with_library(words.source, tokens, |parser| parser.parse_expr())?;
    match parsed {
        ast::Expr::Function(function) => Ok(Kind::Call(Box::new(function))),
        _ => {
            words.at = words.tokens.len();
            Err(words.unexpected())
        }
    }
}

/// A DO, whose texts of SQL are parsed now.
fn do_block(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["DO"])?;
    let (mut language, mut code) = (None, None);
    while !words.at_end() {
        if words.take(&["LANGUAGE"]) {
            once(&mut language, language_name(words)?)?;
        } else {
            once(&mut code, words.string()?)?;
        }
    }
    let Some(code) = code else {
        return Err(SqlError::new(SqlState::SYNTAX, "no inline code specified"));
    };
    match language.as_deref().unwrap_or("plpgsql") {
        "plpgsql" => {}
        "sql" => {
            let message = "language \"sql\" does not support inline code execution";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        other => return Err(no_language(other)),
    }
    let program = plpgsql::compile(&code)?;
    let fragments = program.fragments.iter();
    let statements = fragments.map(|fragment| fragment_statement(&fragment.sql));
    let block = DoBlock {
        statements: statements.collect::<Result<_, _>>()?,
        program: Arc::new(program),
    };
    Ok(Kind::Session(SessionCommand::Do(Arc::new(block))))
}

/// The statement of a text in a body.
fn fragment_statement(text: &str) -> Result<Statement, SqlError> {
    let mut all = super::parse(text).map_err(|error| error.at(0))?;
    match (all.pop(), all.is_empty()) {
        (Some(statement), true) => Ok(statement),
        _ => Err(SqlError::new(
            SqlState::SYNTAX,
            "syntax error at end of input",
        )),
    }
}

fn no_language(name: &str) -> SqlError {
    let message = format!("language \"{name}\" does not exist");
    let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message);
    match name {
        "plpython3u" | "plperl" | "pltcl" => error.hint("Functions are written in SQL."),
        _ => error,
    }
}

fn language_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    match words.peek() {
        Token::EscapedStringLiteral(_) => Ok(words.string()?.to_ascii_lowercase()),
        _ => words.identifier(),
    }
}

/// The text of some tokens.
fn text_of<'w>(words: &Words<'w>, tokens: &[TokenWithSpan]) -> &'w str {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return "";
    };
    let mut walk = Walk::new(&words.source.0);
    walk.to(first.span.start);
    let start = walk.byte;
    walk.to(last.span.end);
    &words.source.0[start..walk.byte]
}

fn data_type(words: &Words<'_>, tokens: &[TokenWithSpan]) -> Result<ast::DataType, SqlError> {
    for token in tokens {
        if token.token == Token::Mod {
            return Err(super::unsupported("%TYPE").hint("Name the type of the column."));
        }
        if let Token::Word(word) = &token.token
            && word.quote_style.is_none()
        {
            let word = word.value.to_ascii_lowercase();
            let polymorphic = word.starts_with("any")
                && matches!(
                    word.as_str(),
                    "anyelement"
                        | "anyarray"
                        | "anynonarray"
                        | "anyenum"
                        | "anycompatible"
                        | "anycompatiblearray"
                        | "anyrange"
                );
            if polymorphic {
                return Err(
                    super::unsupported(&format!("the type {word} of a function"))
                        .hint("Make a function for each type."),
                );
            }
        }
    }
    with_library(words.source, tokens, |parser| parser.parse_data_type())
}

/// `[mode] [name] type [DEFAULT value]`; the mode may stand behind the name.
fn argument(words: &Words<'_>, tokens: &[TokenWithSpan]) -> Result<RoutineArgument, SqlError> {
    let mut own = Words::new(tokens, words.source);
    let mut mode = mode_of(&mut own)?;
    let mut depth = 0i32;
    let is_default = |token: &TokenWithSpan| match &token.token {
        Token::LParen | Token::LBracket => {
            depth += 1;
            false
        }
        Token::RParen | Token::RBracket => {
            depth -= 1;
            false
        }
        Token::Eq => depth == 0,
        Token::Word(word) => {
            let is = word.value.eq_ignore_ascii_case("DEFAULT");
            depth == 0 && is && word.quote_style.is_none()
        }
        _ => false,
    };
    let rest = &tokens[own.at..];
    let end = rest.iter().position(is_default).unwrap_or(rest.len());
    let default = match rest.get(end + 1..) {
        Some(value) if end < rest.len() => {
            let parse = |parser: &mut sqlparser::parser::Parser<'_>| parser.parse_expr();
            Some(with_library(words.source, value, parse)?)
        }
        _ => None,
    };
    let declared = &rest[..end];
    let whole = data_type(words, declared);
    let (name, ty) = match whole {
        Ok(ty) => (String::new(), ty),
        Err(error) if declared.len() < 2 => return Err(error),
        Err(_) => {
            own.tokens = &tokens[..own.at + end];
            let name = own.identifier()?;
            if mode.is_none() {
                mode = mode_of(&mut own)?;
            }
            (name, data_type(words, &own.tokens[own.at..])?)
        }
    };
    Ok(RoutineArgument {
        mode: mode.unwrap_or(Mode::In),
        name,
        ty,
        default,
    })
}

fn mode_of(words: &mut Words<'_>) -> Result<Option<Mode>, SqlError> {
    Ok(if words.take(&["VARIADIC"]) {
        Some(Mode::Variadic)
    } else if words.take(&["INOUT"]) || words.take(&["IN", "OUT"]) {
        Some(Mode::InOut)
    } else if words.take(&["IN"]) {
        Some(Mode::In)
    } else if words.take(&["OUT"]) {
        Some(Mode::Out)
    } else {
        None
    })
}

fn arguments(words: &mut Words<'_>) -> Result<Vec<RoutineArgument>, SqlError> {
    let group = words.group_or_nothing()?;
    let pieces = split_commas(group).into_iter();
    pieces.map(|piece| argument(words, piece)).collect()
}

fn create(words: &mut Words<'_>, replace: bool) -> Result<Kind, SqlError> {
    let is_procedure = words.take_any(&["FUNCTION", "PROCEDURE"]) == Some("PROCEDURE");
    let name = name(words)?;
    let mut arguments = arguments(words)?;
    let mut returns = None;
    if !is_procedure && words.take(&["RETURNS"]) {
        returns = Some(returned(words, &mut arguments)?);
    }
    let mut language = None;
    let mut body = None;
    let options = options(words, &mut language, &mut body)?;
    let what = if is_procedure {
        "procedure"
    } else {
        "function"
    };
    let is_parsed = matches!(body, Some(RoutineBody::Return(_) | RoutineBody::Atomic(_)));
    match language.as_deref() {
        Some("sql") => {}
        None if is_parsed => {}
        None if body.is_none() => {
            let message = "no function body specified";
            return Err(SqlError::new(SqlState(*b"42P13"), message));
        }
        None => return Err(SqlError::new(SqlState(*b"42P13"), "no language specified")),
        Some(known @ ("plpgsql" | "c" | "internal")) => {
            let text = format!("a {what} in the language {known}");
            let error = super::unsupported(&text);
            return Err(error.hint("Functions and procedures are written in LANGUAGE sql."));
        }
        Some(other) => return Err(no_language(other)),
    }
    let Some(body) = body else {
        let message = "no function body specified";
        return Err(SqlError::new(SqlState(*b"42P13"), message));
    };
    Ok(kind(RoutineStatement::Create(Box::new(RoutineCreate {
        replace,
        is_procedure,
        name,
        arguments,
        returns,
        options,
        body,
    }))))
}

fn returned(
    words: &mut Words<'_>,
    arguments: &mut Vec<RoutineArgument>,
) -> Result<RoutineReturns, SqlError> {
    if words.take(&["TABLE"]) {
        let group = words.group()?;
        for piece in split_commas(group) {
            let mut column = argument(words, piece)?;
            column.mode = Mode::Table;
            arguments.push(column);
        }
        return Ok(RoutineReturns::Table);
    }
    let set = words.take(&["SETOF"]);
    let start = words.at;
    if !set && words.take(&["VOID"]) {
        return Ok(RoutineReturns::Void);
    }
    if words.take(&["RECORD"]) {
        return Ok(RoutineReturns::Record { set });
    }
    if words.is(&["TRIGGER"]) || words.is(&["EVENT_TRIGGER"]) {
        return Err(words
            .unsupported("a function of a trigger")
            .hint("There are no triggers: put the change into the statement itself."));
    }
    // A type ends where no further token belongs to it.
    let mut end = words.tokens.len();
    for at in start + 1..words.tokens.len() {
        words.at = at;
        if is_option(words) {
            end = at;
            break;
        }
    }
    words.at = end;
    let ty = data_type(words, &words.tokens[start..end])?;
    Ok(RoutineReturns::Type { ty, set })
}

/// Whether an option, or the body, begins here.
fn is_option(words: &Words<'_>) -> bool {
    let first = [
        "LANGUAGE",
        "IMMUTABLE",
        "STABLE",
        "VOLATILE",
        "STRICT",
        "LEAKPROOF",
        "PARALLEL",
        "COST",
        "ROWS",
        "SECURITY",
        "EXTERNAL",
        "SET",
        "AS",
        "RETURN",
        "BEGIN",
        "WINDOW",
        "SUPPORT",
        "TRANSFORM",
    ];
    let several: [&[&str]; 3] = [
        &["CALLED", "ON"],
        &["RETURNS", "NULL"],
        &["NOT", "LEAKPROOF"],
    ];
    first.iter().any(|word| words.is_at(0, word)) || several.iter().any(|all| words.is(all))
}

fn conflicting() -> SqlError {
    SqlError::new(SqlState::SYNTAX, "conflicting or redundant options")
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), SqlError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(conflicting()),
    }
}

/// The options of CREATE and ALTER; `language` and `body` are those of CREATE.
fn options(
    words: &mut Words<'_>,
    language: &mut Option<String>,
    body: &mut Option<RoutineBody>,
) -> Result<RoutineOptions, SqlError> {
    let mut options = RoutineOptions::default();
    while !words.at_end() {
        if words.take(&["LANGUAGE"]) {
            once(language, language_name(words)?)?;
        } else if words.take(&["AS"]) {
            once(body, RoutineBody::Text(words.string()?))?;
            if words.peek() == &Token::Comma {
                let message = "only one AS item needed for language \"sql\"";
                return Err(SqlError::new(SqlState(*b"42P13"), message));
            }
        } else if words.is(&["RETURN"]) || words.is(&["BEGIN", "ATOMIC"]) {
            if body.is_some() {
                let message = "duplicate function body specified";
                return Err(SqlError::new(SqlState(*b"42P13"), message));
            }
            *body = Some(parsed_body(words)?);
        } else {
            option(words, &mut options)?;
        }
    }
    Ok(options)
}

fn option(words: &mut Words<'_>, options: &mut RoutineOptions) -> Result<(), SqlError> {
    if let Some(word) = words.take_any(&["IMMUTABLE", "STABLE", "VOLATILE"]) {
        return once(
            &mut options.lasts,
            match word {
                "IMMUTABLE" => Lasts::Immutable,
                "STABLE" => Lasts::Stable,
                _ => Lasts::Volatile,
            },
        );
    }
    if words.take(&["STRICT"]) || words.take(&["RETURNS", "NULL", "ON", "NULL", "INPUT"]) {
        return once(&mut options.strict, true);
    }
    if words.take(&["CALLED", "ON", "NULL", "INPUT"]) {
        return once(&mut options.strict, false);
    }
    if words.take(&["LEAKPROOF"]) {
        return once(&mut options.leakproof, true);
    }
    if words.take(&["NOT", "LEAKPROOF"]) {
        return once(&mut options.leakproof, false);
    }
    if words.take(&["PARALLEL"]) {
        let word = words.identifier()?;
        let parallel = match word.as_str() {
            "safe" => Parallel::Safe,
            "restricted" => Parallel::Restricted,
            "unsafe" => Parallel::Unsafe,
            _ => {
                let message = "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE";
                return Err(SqlError::new(SqlState::SYNTAX, message));
            }
        };
        return once(&mut options.parallel, parallel);
    }
    if let Some(word) = words.take_any(&["COST", "ROWS"]) {
        let value: f64 = words.value()?.parse().map_err(|_| words.unexpected())?;
        if value.is_nan() || value <= 0.0 {
            let message = format!("{word} must be positive");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        return match word {
            "COST" => once(&mut options.cost, value),
            _ => once(&mut options.rows, value),
        };
    }
    let security = words.is(&["SECURITY"]) || words.is(&["EXTERNAL", "SECURITY"]);
    if security {
        words.take(&["EXTERNAL"]);
        words.expect(&["SECURITY"])?;
        let word = words.take_any(&["DEFINER", "INVOKER"]);
        let word = word.ok_or_else(|| words.unexpected())?;
        return once(&mut options.definer, word == "DEFINER");
    }
    if words.is(&["SET"]) || words.is(&["RESET"]) {
        let kept = routine_setting(words)?;
        options.settings.push(kept);
        return Ok(());
    }
    refused_option(words)
}

/// Settings without which a body gives the same rows, in the same time or another one.
const WITHOUT_EFFECT: [&str; 4] = [
    "statement_timeout",
    "lock_timeout",
    "client_min_messages",
    "work_mem",
];

/// SET or RESET of a function.
///
/// # Errors
/// 42704 for a setting that there is not, 0A000 for one that would change what a body gives.
fn routine_setting(words: &mut Words<'_>) -> Result<(Option<String>, Option<String>), SqlError> {
    if words.is(&["SET"]) && words.is_at(2, "FROM") && words.is_at(3, "CURRENT") {
        let error = words.unsupported("SET FROM CURRENT of a function");
        return Err(error.hint("Write the value of the setting."));
    }
    let resets = words.is(&["RESET"]);
    let (name, value) = super::commands::kept_setting(words)?;
    let name = name.map(|name| name.to_ascii_lowercase());
    let (Some(known), false) = (&name, resets) else {
        return Ok((name, value));
    };
    if known == "search_path" {
        let own = value.as_deref().and_then(pg_catalog::path::listed);
        if own.is_some_and(|own| own.iter().any(|schema| schema == "$user")) {
            let error = words.unsupported("\"$user\" in SET search_path of a function");
            return Err(error.hint("Write the names of the schemas."));
        }
    } else if !WITHOUT_EFFECT.contains(&known.as_str()) {
        let error = words.unsupported(&format!("SET {known} of a function"));
        return Err(error.hint("Functions set search_path; set others before the call."));
    }
    Ok((name, value))
}

/// What PostgreSQL has and functions here do not.
fn refused_option(words: &Words<'_>) -> Result<(), SqlError> {
    for word in ["WINDOW", "SUPPORT", "TRANSFORM"] {
        if words.is(&[word]) {
            return Err(words.unsupported(&format!("{word} of a function")));
        }
    }
    Err(words.unexpected())
}

/// RETURN and its expression, or BEGIN ATOMIC ... END: all that is left.
fn parsed_body(words: &mut Words<'_>) -> Result<RoutineBody, SqlError> {
    if words.take(&["RETURN"]) {
        let tokens = &words.tokens[words.at..];
        if tokens.is_empty() {
            return Err(words.unexpected());
        }
        let text = text_of(words, tokens);
        with_library(words.source, tokens, |parser| parser.parse_expr())?;
        words.at = words.tokens.len();
        return Ok(RoutineBody::Return(format!("SELECT {text}")));
    }
    words.expect(&["BEGIN", "ATOMIC"])?;
    let last = words.tokens.len() - 1;
    let end = Words {
        tokens: words.tokens,
        at: last,
        source: words.source,
    };
    if last < words.at || !end.is_at(0, "END") {
        words.at = words.tokens.len();
        return Err(words.unexpected());
    }
    let inner = &words.tokens[words.at..last];
    let mut statements = Vec::new();
    for piece in inner.split(|token| token.token == Token::SemiColon) {
        if piece.is_empty() {
            continue;
        }
        nested(words.source, piece)?;
        statements.push(text_of(words, piece).to_string());
    }
    if !matches!(
        inner.last(),
        None | Some(TokenWithSpan {
            token: Token::SemiColon,
            ..
        })
    ) {
        words.at = last;
        return Err(words.unexpected());
    }
    words.at = words.tokens.len();
    Ok(RoutineBody::Atomic(statements))
}

/// A function with the types of its arguments.
fn routine_name(words: &mut Words<'_>) -> Result<RoutineName, SqlError> {
    let word = words.take_any(&KINDS).ok_or_else(|| words.unexpected())?;
    named(words, word)
}

/// The functions of GRANT; `None`: it names no functions.
pub(super) fn granted(words: &mut Words<'_>) -> Result<Option<Vec<RoutineName>>, SqlError> {
    let is_name = matches!(words.peek_at(1), Token::Word(_)) && !words.is_at(1, "TO");
    let Some(word) = KINDS.iter().find(|kind| is_name && words.is_at(0, kind)) else {
        return Ok(None);
    };
    words.at += 1;
    let mut of = vec![named(words, word)?];
    while words.take_token(&Token::Comma) {
        of.push(named(words, word)?);
    }
    Ok(Some(of))
}

pub(super) fn grant_of(of: Vec<RoutineName>, grant: Grant) -> Kind {
    kind(RoutineStatement::Grant { of, grant })
}

fn named(words: &mut Words<'_>, word: &'static str) -> Result<RoutineName, SqlError> {
    let name = name(words)?;
    let types = match words.peek() {
        Token::LParen => {
            let given = arguments(words)?.into_iter();
            let given = given.filter(|argument| argument.mode != Mode::Out);
            Some(given.map(|argument| argument.ty).collect())
        }
        _ => None,
    };
    Ok(RoutineName { word, name, types })
}

fn drop(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let word = words.take_any(&KINDS).ok_or_else(|| words.unexpected())?;
    let if_exists = words.take(&["IF", "EXISTS"]);
    let mut of = vec![named(words, word)?];
    while words.take_token(&Token::Comma) {
        of.push(named(words, word)?);
    }
    let cascade = words.take_any(&["CASCADE", "RESTRICT"]) == Some("CASCADE");
    words.expect_end()?;
    Ok(kind(RoutineStatement::Drop {
        of,
        if_exists,
        cascade,
    }))
}

fn alter(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    let of = routine_name(words)?;
    let statement = if words.take(&["RENAME", "TO"]) {
        let to = words.identifier()?;
        RoutineStatement::Rename { of, to }
    } else if words.take(&["SET", "SCHEMA"]) {
        let to = words.identifier()?;
        RoutineStatement::Move { of, to }
    } else if words.take(&["OWNER", "TO"]) {
        let to = super::rights::role(words)?;
        RoutineStatement::Owner { of, to }
    } else if words.is(&["DEPENDS"]) || words.is(&["NO", "DEPENDS"]) {
        return Err(words.unsupported("DEPENDS ON EXTENSION"));
    } else if words.at_end() {
        return Err(words.unexpected());
    } else {
        let mut options = RoutineOptions::default();
        while !words.at_end() && !words.is(&["RESTRICT"]) {
            option(words, &mut options)?;
        }
        words.take(&["RESTRICT"]);
        RoutineStatement::Alter { of, options }
    };
    words.expect_end()?;
    Ok(kind(statement))
}
