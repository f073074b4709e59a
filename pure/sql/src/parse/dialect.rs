//! The library's PostgreSQL dialect without what makes its parser slow.

use sqlparser::ast;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::parser::{Parser, ParserError};
use std::any::TypeId;

/// PostgreSQL, except that named arguments have plain names: the library looks for an expression
/// as name by parsing each argument twice, which takes 2^n steps for n nested calls.
#[derive(Debug)]
pub(super) struct Sql;

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
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        BASE.get_next_precedence(parser)
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
    fn supports_unicode_string_literal(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
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
    fn supports_factorial_operator(&self) -> bool {
        true
    }
    fn supports_empty_projections(&self) -> bool {
        true
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_string_escape_constant(&self) -> bool {
        true
    }
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }
    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }
}
