//! The library's PostgreSQL dialect with expressions and aliases that are read here.

use super::expression;
use base::SqlError;
use functions::keywords::{is_bare_label, is_reserved};
use sqlparser::ast;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword};
use sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;
use std::cell::{Cell, RefCell};

/// PostgreSQL for one run of the parser.
#[derive(Debug, Default)]
pub(super) struct Sql {
    /// The error that was found farthest in the text, by the position of its token; `None`: the
    /// token does not fit.
    fault: RefCell<Option<(usize, Option<SqlError>)>>,
    /// What is wrong although it fits the grammar: the error if the rest fits, too.
    later: RefCell<Option<SqlError>>,
    /// Levels of expressions that are being read.
    pub(super) depth: Cell<usize>,
}

impl Sql {
    /// Notes an error; the library may try something else and forget it.
    pub(super) fn note(&self, place: usize, error: Option<SqlError>) {
        let mut fault = self.fault.borrow_mut();
        if fault.as_ref().is_none_or(|(known, _)| *known <= place) {
            *fault = Some((place, error));
        }
    }

    /// Keeps the first error for when the whole text has been read.
    pub(super) fn put_off(&self, error: SqlError) {
        self.later.borrow_mut().get_or_insert(error);
    }

    /// What [`Sql::put_off`] has kept.
    pub(super) fn take_later(&self) -> Option<SqlError> {
        self.later.take()
    }

    /// The error noted farthest in the text.
    pub(super) fn take_fault(&self) -> Option<(usize, Option<SqlError>)> {
        self.fault.take()
    }
}

/// The text of a keyword.
fn text(keyword: &Keyword) -> &'static str {
    let found = ALL_KEYWORDS_INDEX.iter().position(|known| known == keyword);
    found.map_or("", |at| ALL_KEYWORDS[at])
}

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for Sql {
    fn dialect(&self) -> TypeId {
        BASE.dialect()
    }
    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch)
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch)
    }
    fn is_custom_operator_part(&self, ch: char) -> bool {
        BASE.is_custom_operator_part(ch)
    }
    /// Every expression is read here, whole.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<ast::Expr, ParserError>> {
        Some(expression::parse(self, parser))
    }
    /// So the library finds no operator behind it.
    fn get_next_precedence(&self, _: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        Some(Ok(self.prec_unknown()))
    }
    fn is_select_item_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser<'_>) -> bool {
        explicit || is_bare_label(text(word))
    }
    fn is_table_factor_alias(&self, explicit: bool, word: &Keyword, _: &mut Parser<'_>) -> bool {
        // UPDATE t SET ...
        explicit || !(is_reserved(text(word)) || *word == Keyword::SET)
    }
    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }
    fn parse_statement(
        &self,
        parser: &mut Parser<'_>,
    ) -> Option<Result<ast::Statement, ParserError>> {
        BASE.parse_statement(parser)
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn allow_extract_custom(&self) -> bool {
        true
    }
    fn allow_extract_single_quotes(&self) -> bool {
        true
    }
    fn supports_create_index_with_clause(&self) -> bool {
        true
    }
    fn supports_empty_projections(&self) -> bool {
        true
    }
    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }
}
