//! MERGE, as PostgreSQL has it: the library lacks DO NOTHING, DEFAULT VALUES and OVERRIDING.

use super::insert::Overriding;
use super::words::Words;
use super::{Kind, simplified, unsupported, with_library};
use base::SqlError;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// MERGE.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct MergeStatement {
    pub target: ast::TableWithJoins,
    pub source: ast::TableWithJoins,
    pub on: ast::Expr,
    pub clauses: Vec<MergeWhen>,
}

/// WHEN ... THEN ...
#[derive(Debug)]
#[allow(missing_docs)]
pub struct MergeWhen {
    pub matched: bool,
    pub condition: Option<ast::Expr>,
    pub action: MergeAction,
}

/// What happens with a row.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<ast::Assignment>),
    Insert {
        columns: Vec<ast::Ident>,
        /// `None`: DEFAULT VALUES.
        values: Option<Vec<ast::Expr>>,
        overriding: Option<Overriding>,
    },
}

/// MERGE; the cursor is on its first word.
///
/// # Errors
/// 42601.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    if !words.is_at(1, "INTO") {
        return Err(words.unexpected_at(1));
    }
    let (tokens, overriding) = simplified(words.source, &words.tokens[words.at..])?;
    let mut merge = with_library(words.source, &tokens, statement)?;
    words.at = words.tokens.len();
    if overriding.is_some() {
        let mut inserts = Vec::new();
        for clause in &mut merge.clauses {
            if let MergeAction::Insert { overriding, .. } = &mut clause.action {
                inserts.push(overriding);
            }
        }
        let [insert] = inserts.as_mut_slice() else {
            return Err(unsupported(
                "OVERRIDING in MERGE with several INSERT actions",
            ));
        };
        **insert = overriding;
    }
    Ok(Kind::Merge(Box::new(merge)))
}

fn statement(parser: &mut Parser<'_>) -> Result<MergeStatement, ParserError> {
    parser.expect_keyword_is(Keyword::MERGE)?;
    parser.expect_keyword_is(Keyword::INTO)?;
    let relation = parser.parse_table_factor()?;
    let joins = Vec::new();
    let target = ast::TableWithJoins { relation, joins };
    parser.expect_keyword_is(Keyword::USING)?;
    let source = parser.parse_table_and_joins()?;
    parser.expect_keyword_is(Keyword::ON)?;
    let on = parser.parse_expr()?;
    let mut clauses = vec![when(parser)?];
    while parser.peek_token().token != Token::EOF {
        clauses.push(when(parser)?);
    }
    Ok(MergeStatement {
        target,
        source,
        on,
        clauses,
    })
}

fn when(parser: &mut Parser<'_>) -> Result<MergeWhen, ParserError> {
    parser.expect_keyword_is(Keyword::WHEN)?;
    let matched = !parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword_is(Keyword::MATCHED)?;
    let condition = match parser.parse_keyword(Keyword::AND) {
        true => Some(parser.parse_expr()?),
        false => None,
    };
    parser.expect_keyword_is(Keyword::THEN)?;
    let action = if parser.parse_keyword(Keyword::DO) {
        parser.expect_keyword_is(Keyword::NOTHING)?;
        MergeAction::Nothing
    } else if matched && parser.parse_keyword(Keyword::DELETE) {
        MergeAction::Delete
    } else if matched {
        parser.expect_keyword_is(Keyword::UPDATE)?;
        parser.expect_keyword_is(Keyword::SET)?;
        MergeAction::Update(parser.parse_comma_separated(Parser::parse_assignment)?)
    } else {
        parser.expect_keyword_is(Keyword::INSERT)?;
        insert(parser)?
    };
    Ok(MergeWhen {
        matched,
        condition,
        action,
    })
}

fn insert(parser: &mut Parser<'_>) -> Result<MergeAction, ParserError> {
    let mut columns = Vec::new();
    if parser.consume_token(&Token::LParen) {
        columns = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::RParen)?;
    }
    let values = if parser.parse_keywords(&[Keyword::DEFAULT, Keyword::VALUES]) {
        None
    } else {
        parser.expect_keyword_is(Keyword::VALUES)?;
        parser.expect_token(&Token::LParen)?;
        let values = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        Some(values)
    };
    Ok(MergeAction::Insert {
        columns,
        values,
        overriding: None,
    })
}
