//! Text to statements: the `sqlparser` library for queries and most DDL, our own few words for
//! session commands, COPY, EXPLAIN and the clauses that only Trellis has.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod absent;
mod call;
mod commands;
mod comment;
mod constraints;
pub mod copy;
mod cursors;
mod dialect;
mod domains;
mod enums;
mod explain;
mod expression;
pub mod grouping;
mod identity;
mod idle;
mod indexes;
mod insert;
mod joins;
mod keywords;
mod lexer;
mod like;
mod maintenance;
mod merge;
mod named_arguments;
pub mod normal;
mod objects;
mod operand;
mod options;
pub mod parts;
mod policies;
pub mod ranked;
mod recursion;
mod refused;
mod relations;
mod rights;
mod routines;
mod scales;
mod schemas;
pub mod session;
pub mod shape;
pub mod show;
mod simplified;
mod source;
mod spans;
pub mod stack;
mod table_as;
mod tables;
mod tail;
pub mod values;
mod views;
mod weight;
pub mod windows;
mod with;
mod words;

pub use commands::{CopySource, CopyStatement, DatabaseOptions, ShowWhat};
pub use constraints::{AlterStatement, Constraints, Marks};
pub use domains::{DomainCreate, DomainStatement, DomainWords};
pub use enums::{AttributeAction, AttributeWords, CompositeStatement, EnumStatement};
pub use explain::{ExplainFormat, ExplainOptions};
pub use identity::IdentityAction;
pub use idle::{Idle, Named as IdleOf};
pub use indexes::{IndexStatement, OperatorClass};
pub use insert::{InsertWords, Overriding};
pub use like::Like;
pub use merge::{MergeAction, MergeStatement, MergeWhen};
pub use named_arguments::placed_of as placed;
pub use policies::{PolicyParts, PolicyStatement, PolicyWords};
pub use recursion::{Cycle, Recursion, Search, recursion};
pub use relations::{AlterRelation, RelationChange, SequenceWords};
pub use rights::RightsStatement;
pub use routines::{
    RoutineArgument, RoutineBody, RoutineCreate, RoutineName, RoutineOptions, RoutineReturns,
    RoutineStatement,
};
pub use schemas::SchemaStatement;
pub use source::Source;
pub use table_as::{StoredStatement, TableAs, ViewDrop};
pub use tables::{Lifetime, OnCommit};
pub use views::{Edit, ViewRename, ViewStatement};
pub use with::{WithQuery, WithStatement, not_at_top};
pub use words::fold;

use crate::session::SessionCommand;
use base::{SqlError, SqlState};
use simplified::simplified;
use source::Walk;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;
pub use weight::memory_bytes;
use words::Words;

/// Parentheses, and expressions in expressions, may nest this deep (54001 beyond).
pub const NESTING_MAX: usize = 1000;
/// Deepest recursion over expressions and queries while they are bound.
pub const DEPTH_MAX: u32 = if cfg!(debug_assertions) { 200 } else { 1100 };
/// Consecutive operators other than AND and OR, outside of parentheses and commas (54001 beyond):
/// they make a tree that is deep on one side.
const OPERATORS_MAX: usize = 3000;
/// Stack that the library needs for one more parenthesis. Its functions for queries are large.
const PARENTHESIS_BYTES: usize = if cfg!(debug_assertions) {
    400 << 10
} else {
    100 << 10
};
/// Parentheses for which any thread's stack is deep enough.
const PARENTHESES_FREE: usize = 3;

/// One parsed statement. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Statement(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    source: Source,
    start: usize,
    end: usize,
    kind: Kind,
    parameters: u32,
    alone: Option<&'static str>,
}

/// Kinds of statements by the parser that reads them.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Kind {
    /// Parsed by the library.
    Sql(Box<ast::Statement>),
    /// INSERT with words that the library does not know.
    Insert(Box<ast::Statement>, Box<InsertWords>),
    /// WITH that changes rows.
    With(Box<WithStatement>),
    Merge(Box<MergeStatement>),
    CreateTable(Box<TableStatement>),
    AlterTable(Box<AlterStatement>),
    CreateIndex(Box<IndexStatement>),
    CreateView(Box<ViewStatement>),
    RenameView(Box<ViewRename>),
    DropViews(Box<ViewDrop>),
    /// CREATE, ALTER and DROP TYPE.
    Enum(Box<EnumStatement>),
    /// CREATE, ALTER and DROP DOMAIN.
    Domain(Box<DomainStatement>),
    CreateTableAs(Box<TableAs>),
    /// Functions and procedures.
    Routine(Box<RoutineStatement>),
    /// CALL of a procedure.
    Call(Box<ast::Function>),
    /// Materialized views that are there.
    Stored(Box<StoredStatement>),
    CreateDatabase {
        name: String,
        options: DatabaseOptions,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    AlterDatabase {
        name: String,
        protocol: String,
    },
    AlterRelation(Box<AlterRelation>),
    Comment(Box<Comment>),
    /// Roles, owners and privileges.
    Rights(Box<RightsStatement>),
    /// Row security.
    Policy(Box<PolicyStatement>),
    /// Schemas, and SET SCHEMA of what is in one.
    Schema(Box<SchemaStatement>),
    Session(SessionCommand),
    /// EXECUTE with arguments that are still expressions.
    Execute {
        name: String,
        args: Vec<ast::Expr>,
    },
    /// PREPARE with declared types.
    Prepare {
        name: String,
        types: Vec<ast::DataType>,
        statement: Statement,
    },
    Show(ShowWhat),
    Copy(Box<CopyStatement>),
    Explain {
        options: ExplainOptions,
        statement: Statement,
    },
    Nothing(&'static str),
    /// DROP of objects of kinds that there are none of.
    Absent(Box<absent::Absent>),
    /// LOCK TABLE.
    Lock(LockTables),
    /// VACUUM and ANALYZE.
    Upkeep(Upkeep),
    /// REINDEX.
    Reindex(Reindex),
    /// SET CONSTRAINTS.
    Constraints(Constraints),
}

/// REINDEX.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Reindex {
    /// INDEX, TABLE, SCHEMA, DATABASE or SYSTEM.
    pub of: &'static str,
    /// CONCURRENTLY
    pub concurrently: bool,
    /// The name by its parts.
    pub named: Vec<String>,
}

/// VACUUM, ANALYZE or both.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Upkeep {
    pub vacuums: bool,
    pub analyzes: bool,
    /// Whether the client is told of each table.
    pub verbose: bool,
    /// What it names; empty: all tables.
    pub named: Vec<Named>,
}

/// LOCK TABLE.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct LockTables {
    pub mode: catalog::TableLock,
    pub nowait: bool,
    pub tables: Vec<Named>,
}

/// A table, and columns of it, that must exist.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Named {
    /// Its name with its qualifications.
    pub table: Vec<String>,
    pub columns: Vec<String>,
}

/// COMMENT ON.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Comment {
    /// The database, if it is not that of the session.
    pub database: Option<String>,
    pub subject: catalog::Subject,
    /// `None`: the comment goes.
    pub text: Option<String>,
}

/// CREATE TABLE with what follows the column list.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct TableStatement {
    pub table: ast::CreateTable,
    pub partition: Vec<String>,
    pub replicated: bool,
    /// Storage parameters that have no effect.
    pub idle: Vec<String>,
    pub lifetime: Lifetime,
    pub marks: Marks,
    /// LIKE among the columns.
    pub likes: Vec<Like>,
}

/// Texts of this many bytes are worth another thread than that of their shard: to parse and plan
/// them may take more than 10 ms (0.6 microseconds for each byte of a list of numbers).
pub const LONG_BYTES: usize = 16 << 10;

impl Statement {
    /// No text: expressions of the catalog are bound without a statement around them.
    pub fn none() -> Statement {
        Statement(Arc::new(Parsed {
            source: Source(Arc::from("")),
            start: 0,
            end: 0,
            kind: Kind::Nothing(""),
            parameters: 0,
            alone: None,
        }))
    }
    /// The statement's own text, without the semicolon.
    pub fn text(&self) -> &str {
        &self.0.source.0[self.0.start..self.0.end]
    }
    /// The highest parameter number `$n` in the text.
    pub fn parameters(&self) -> u32 {
        self.0.parameters
    }
    /// What it is called if no transaction block can have it (CREATE INDEX CONCURRENTLY).
    pub fn alone(&self) -> Option<&'static str> {
        self.0.alone
    }
    /// Whether both are the same object, parsed once.
    pub fn is(&self, other: &Statement) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
    /// Name of the prepared statement that it runs, if it is EXECUTE.
    pub fn executed(&self) -> Option<&str> {
        match self.kind() {
            Kind::Execute { name, .. } => Some(name),
            _ => None,
        }
    }
    /// What kind of statement it is, with its parts.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }
    /// Whether it makes something that goes with its session: it says TEMPORARY, or `pg_temp`.
    pub fn makes_temporary(&self) -> bool {
        let is_own = |parts: &[String]| parts.first().is_some_and(|first| first == "pg_temp");
        let is_own_name = |name: &ast::ObjectName| {
            let first = name.0.first().and_then(|part| part.as_ident());
            name.0.len() > 1
                && first.is_some_and(|first| {
                    fold(&first.value, first.quote_style.is_some()) == "pg_temp"
                })
        };
        match self.kind() {
            Kind::CreateTable(made) => made.lifetime.temporary || is_own_name(&made.table.name),
            Kind::CreateTableAs(made) => made.lifetime.temporary || is_own(&made.name),
            Kind::CreateView(made) => made.temporary || is_own(&made.name),
            Kind::Sql(statement) => match statement.as_ref() {
                ast::Statement::CreateSequence {
                    temporary,
                    if_not_exists: _,
                    name,
                    data_type: _,
                    sequence_options: _,
                    owned_by: _,
                } => *temporary || is_own_name(name),
                _ => false,
            },
            Kind::Explain { statement, .. } => statement.makes_temporary(),
            _ => false,
        }
    }
    /// The text that it is a part of.
    pub fn source(&self) -> &Source {
        &self.0.source
    }
}

/// 0A000 for what PostgreSQL has and Trellis lacks.
pub fn unsupported(what: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("{what} is not supported"),
    )
}

/// Splits a text into statements. Empty statements are dropped.
///
/// # Errors
/// 42601 with the position of the token that does not fit; 54001 if a statement nests too deeply
/// or has too many words; 54000 if it is too long;
/// 0A000 for what is known but not supported.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    let rewritten = pg_catalog::rewrite::client_query(text);
    let source = Source(Arc::from(rewritten.as_deref().unwrap_or(text)));
    let (bytes, limit) = (source.0.len(), base::limits::STATEMENT_BYTES_MAX);
    if bytes > limit {
        let message = format!("statement of {bytes} bytes is too large");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message)
            .detail(format!("A statement may have at most {limit} bytes."))
            .hint("Use COPY, parameters, or several statements."));
    }
    weight::check(&source.0)?;
    let tokens = lexer::tokens(&source)?;
    let mut statements = Vec::new();
    let mut walk = Walk::new(&source.0);
    for piece in routines::pieces(&tokens) {
        let (Some(first), Some(last)) = (piece.first(), piece.last()) else {
            continue;
        };
        walk.to(first.span.start);
        let start = walk.byte;
        walk.to(last.span.end);
        statements.push(one(&source, piece, (start, walk.byte))?);
    }
    Ok(statements)
}

fn one(
    source: &Source,
    tokens: &[TokenWithSpan],
    (start, end): (usize, usize),
) -> Result<Statement, SqlError> {
    let bracketed = options::bracketed(tokens);
    let tokens = bracketed.as_deref().unwrap_or(tokens);
    let grouped = joins::grouped(source, tokens)?;
    let tokens = grouped.as_deref().unwrap_or(tokens);
    let scaled = scales::scaled(tokens);
    let tokens = scaled.as_deref().unwrap_or(tokens);
    let recursive = recursion::marked(source, tokens)?;
    let tokens = recursive.as_deref().unwrap_or(tokens);
    let spanned = spans::plain(source, tokens)?;
    let tokens = spanned.as_deref().unwrap_or(tokens);
    let parted = parts::marked(source, tokens)?;
    let tokens = parted.as_deref().unwrap_or(tokens);
    let marked = windows::marked(tokens);
    let tokens = marked.as_deref().unwrap_or(tokens);
    let parameters = check_shape(source, tokens)?;
    let mut words = Words::new(tokens, source);
    let kind = match commands::parse(&mut words) {
        Ok(Some(kind)) => Ok(kind),
        Ok(None) => library(source, tokens),
        Err(error) => Err(error),
    };
    let kind = kind.map_err(|error| match error.state() == SqlState::SYNTAX {
        true => refused::instead(source, tokens).unwrap_or(error),
        false => error,
    })?;
    Ok(Statement(Arc::new(Parsed {
        source: source.clone(),
        start,
        end,
        alone: maintenance::alone(&kind, tokens),
        kind,
        parameters,
    })))
}

/// A statement whose tokens are a part of another one (EXPLAIN, PREPARE).
fn nested(source: &Source, tokens: &[TokenWithSpan]) -> Result<Statement, SqlError> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
        return Err(source.unexpected(None));
    };
    let mut walk = Walk::new(&source.0);
    walk.to(first.span.start);
    let start = walk.byte;
    walk.to(last.span.end);
    one(source, tokens, (start, walk.byte))
}

/// Refuses shapes that would make later recursions deep; returns the highest parameter number.
fn check_shape(source: &Source, tokens: &[TokenWithSpan]) -> Result<u32, SqlError> {
    // Per open parenthesis: operators since the last comma.
    let mut open = vec![0usize];
    let mut parameters = 0;
    for (at, token) in tokens.iter().enumerate() {
        let run = open.last_mut().expect("the outermost is never popped");
        match &token.token {
            Token::LParen | Token::LBracket => open.push(0),
            Token::RParen | Token::RBracket => {
                open.pop();
                if open.is_empty() {
                    return Err(source.unexpected(Some(token)));
                }
            }
            Token::Comma => *run = 0,
            Token::Placeholder(name) => {
                let number = parameter_number(name).ok_or_else(|| {
                    let message = format!("there is no parameter {name}");
                    SqlError::new(SqlState::UNDEFINED_PARAMETER, message)
                        .at(source.position(token.span.start))
                })?;
                parameters = parameters.max(number);
            }
            Token::Word(word) => match word.keyword {
                // The library's types of other databases, which it reads by recursion.
                Keyword::ARRAY if is_less(tokens.get(at + 1)) => {
                    return Err(source.unexpected(tokens.get(at + 1)));
                }
                Keyword::AND | Keyword::OR | Keyword::WHEN | Keyword::THEN | Keyword::ELSE => {
                    *run = 0;
                }
                Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::IS
                | Keyword::JOIN => *run += 1,
                _ => {}
            },
            Token::EscapedStringLiteral(_) | Token::Number(..) | Token::Period => {}
            _ => *run += 1,
        }
        let run = open.last().expect("checked where one is popped");
        if open.len() > NESTING_MAX || *run > OPERATORS_MAX {
            return Err(too_complex().at(source.position(token.span.start)));
        }
    }
    Ok(parameters)
}

fn is_less(token: Option<&TokenWithSpan>) -> bool {
    token.is_some_and(|token| token.token == Token::Lt)
}

/// `$n`
fn parameter_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix('$')?.parse::<u32>().ok()?;
    (1..=base::limits::PARAMETERS_MAX as u32)
        .contains(&number)
        .then_some(number)
}

/// The statement nests too deeply.
pub fn too_complex() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .hint(format!(
        "Expressions and queries nest up to {NESTING_MAX} parentheses and {} levels, operators \
         other than AND and OR chain up to as many terms.",
        DEPTH_MAX
    ))
}

/// Whether a word is a name whatever it says: `t.offset`, `1 AS offset`.
fn is_name(tokens: &[TokenWithSpan], at: usize) -> bool {
    match at.checked_sub(1).map(|before| &tokens[before].token) {
        Some(Token::Word(word)) => word.keyword == Keyword::AS,
        before => before == Some(&Token::Period),
    }
}

fn word(text: &str) -> Token {
    Token::make_keyword(text)
}

fn library(source: &Source, tokens: &[TokenWithSpan]) -> Result<Kind, SqlError> {
    let first = tokens.first().map(|token| &token.token);
    if let Some(Token::Word(word)) = first
        && word.keyword == Keyword::ALTER
    {
        return alter(source, tokens);
    }
    if indexes::is_create_index(tokens) {
        return create_index(source, tokens);
    }
    let (mut tokens, overriding) = simplified(source, tokens)?;
    let mut index_condition = None;
    if constraints::is_word(&tokens, 0, "INSERT")
        && let Some((kept, condition)) = insert::without_condition(source, &tokens)?
    {
        (tokens, index_condition) = (kept, Some(condition));
    }
    let mut parts = Vec::new();
    if constraints::is_word(&tokens, 0, "INSERT")
        && let Some((kept, found)) = insert::without_parts(source, &tokens)?
    {
        (tokens, parts) = (kept, found);
    }
    let mut index_keys = None;
    if constraints::is_word(&tokens, 0, "INSERT")
        && let Some((kept, keys)) = insert::without_keys(source, &tokens)?
    {
        (tokens, index_keys) = (kept, Some(keys));
    }
    let parsed = with_library(source, &tokens, |parser| parser.parse_statement());
    let statement = parsed.map_err(|error| match with::check(&Words::new(&tokens, source)) {
        Ok(()) => error,
        Err(misplaced) => misplaced,
    })?;
    let plain = index_condition.is_none() && index_keys.is_none() && parts.is_empty();
    if overriding.is_none() && plain {
        return Ok(Kind::Sql(Box::new(statement)));
    }
    let words = InsertWords {
        overriding,
        index_condition,
        index_keys,
        parts,
    };
    Ok(Kind::Insert(Box::new(statement), Box::new(words)))
}

fn alter(source: &Source, tokens: &[TokenWithSpan]) -> Result<Kind, SqlError> {
    if constraints::is_word(tokens, 2, "ALL") && constraints::is_word(tokens, 3, "IN") {
        return Err(tables::all_in_tablespace(&mut Words::new(tokens, source)));
    }
    let plain = tables::without_tablespace(source, tokens)?;
    let tokens = plain.as_deref().unwrap_or(tokens);
    let (tokens, identities) = identity::without_identity(source, tokens)?;
    let (tokens, idle) = idle::without_idle(source, &tokens)?;
    relations::check_actions(&mut Words::new(&tokens, source))?;
    let (tokens, sequence) = options::without_name(source, &tokens)?;
    let constraints::Simplified { tokens, mut marks } = constraints::simplified(source, &tokens)?;
    marks.sequence = sequence;
    marks.identities = identities;
    marks.idle = idle;
    let (tokens, _) = simplified(source, &tokens)?;
    let tokens = options::reordered(&tokens);
    let statement = with_library(source, &tokens, |parser| parser.parse_statement())?;
    let is_table = matches!(&tokens[1].token, Token::Word(word) if word.keyword == Keyword::TABLE);
    Ok(match is_table {
        true => Kind::AlterTable(Box::new(AlterStatement { statement, marks })),
        false => Kind::Sql(Box::new(statement)),
    })
}

fn create_index(source: &Source, tokens: &[TokenWithSpan]) -> Result<Kind, SqlError> {
    let mut all = tokens.to_vec();
    if let Some(on) = (0..all.len()).find(|at| constraints::is_word(&all, *at, "ON"))
        && constraints::is_word(&all, on + 1, "ONLY")
    {
        // There are no children to leave out.
        all.remove(on + 1);
    }
    let tokens = all.as_slice();
    let plain = tables::without_tablespace(source, tokens)?;
    let tokens = plain.as_deref().unwrap_or(tokens);
    indexes::refuse_parameters(source, tokens)?;
    let (tokens, classes) = indexes::without_classes(source, tokens)?;
    let (tokens, _) = simplified(source, &tokens)?;
    let statement = with_library(source, &tokens, |parser| parser.parse_statement())?;
    Ok(Kind::CreateIndex(Box::new(IndexStatement {
        statement,
        classes,
    })))
}

/// Runs one of the library's parsers over all of `tokens`.
fn with_library<T>(
    source: &Source,
    tokens: &[TokenWithSpan],
    run: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SqlError> {
    let (mut open, mut deepest) = (0usize, 0);
    for token in tokens {
        match token.token {
            Token::LParen => open += 1,
            Token::RParen => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    let sql = dialect::Sql::default();
    let parse = || {
        // The library's own limit is out of the way: `check_shape` has counted.
        let mut parser = Parser::new(&sql)
            .with_recursion_limit(usize::MAX)
            .with_tokens_with_locations(tokens.to_vec());
        let parsed = run(&mut parser);
        let parsed =
            parsed.map_err(|error| library_error(source, tokens, &parser, &sql, &error))?;
        let rest = parser.peek_token();
        if rest.token != Token::EOF {
            return Err(source.unexpected(Some(&rest)));
        }
        match sql.take_later() {
            Some(error) => Err(error),
            None => Ok(parsed),
        }
    };
    if deepest <= PARENTHESES_FREE {
        parse()
    } else {
        stack::with(deepest * PARENTHESIS_BYTES, parse)
    }
}

fn library_error(
    source: &Source,
    tokens: &[TokenWithSpan],
    parser: &Parser<'_>,
    sql: &dialect::Sql,
    error: &ParserError,
) -> SqlError {
    let place = match error {
        ParserError::RecursionLimitExceeded => return too_complex(),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => match located(text) {
            Some(place) => tokens.iter().position(|token| token.span.start == place),
            None if text.contains("found: EOF") => Some(tokens.len()),
            None => None,
        },
    };
    let mut place = place.unwrap_or_else(|| parser.index());
    // The library tries several ways to read a text; the farthest error is the text's own.
    if let Some((noted, fault)) = sql.take_fault()
        && (noted >= place || fault.is_some())
    {
        match fault {
            Some(fault) if fault.fields().position == 0 => {
                return match tokens.get(noted) {
                    Some(token) => fault.at(source.position(token.span.start)),
                    None => fault,
                };
            }
            Some(fault) => return fault,
            None => place = noted,
        }
    }
    source.unexpected(tokens.get(place))
}

/// A single expression, for defaults and checks that the catalog keeps as text.
///
/// # Errors
/// 42601.
pub fn expression(text: &str) -> Result<ast::Expr, SqlError> {
    let source = Source(Arc::from(text));
    let tokens = lexer::tokens(&source)?;
    check_shape(&source, &tokens)?;
    with_library(&source, &tokens, |parser| parser.parse_expr())
}

/// The text of a string literal.
pub fn literal_text(value: &ast::Value) -> Option<&str> {
    match value {
        ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => Some(text),
        _ => None,
    }
}

/// The place that the library's message ends with: ` at Line: 1, Column: 5`.
fn located(text: &str) -> Option<sqlparser::tokenizer::Location> {
    let (_, place) = text.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    Some(sqlparser::tokenizer::Location {
        line: line.parse().ok()?,
        column: column.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_is_too_large_is_told_its_size_and_the_limit() {
        let limit = base::limits::STATEMENT_BYTES_MAX;
        let text = |bytes: usize| format!("SELECT '{}'", "x".repeat(bytes - 9));
        assert!(parse(&text(limit)).is_ok());
        let error = parse(&text(limit + 1)).map(drop).expect_err("too large");
        let fields = error.fields();
        assert_eq!(error.state(), SqlState::PROGRAM_LIMIT);
        assert_eq!(
            fields.message,
            format!("statement of {} bytes is too large", limit + 1)
        );
        assert_eq!(
            fields.detail,
            format!("A statement may have at most {limit} bytes.")
        );
    }
}
