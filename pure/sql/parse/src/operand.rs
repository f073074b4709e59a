//! Operands of expressions: literals, names, subqueries, rows, CASE.

use super::expression::{Expressions, Parsed};
use super::grouping;
use base::spans::SpanField;
use functions::keywords::{is_reserved, may_name_function, no_function};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AccessExpr, Array, CaseWhen, CastKind, DataType, DateTimeField, Expr as Ast, Ident, Interval,
    ObjectName, Query, Subscript, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

impl Expressions<'_, '_> {
    /// `c_expr`
    pub(super) fn operand(&mut self) -> Parsed {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_some() => self.name(),
            Token::Word(word) => {
                let keyword = word.keyword;
                self.word(keyword)
            }
            Token::Number(..)
            | Token::EscapedStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::HexStringLiteral(_) => Ok(self.literal()),
            Token::Placeholder(_) => {
                let parameter = self.literal();
                self.accessed(parameter)
            }
            Token::LParen => self.parenthesis(),
            token if *token == super::parts::MARK => self.part(),
            _ => self.unexpected(),
        }
    }

    fn literal(&mut self) -> Ast {
        let TokenWithSpan { token, span } = self.next();
        let value = match token {
            Token::Number(digits, _) => Value::Number(digits, false),
            Token::EscapedStringLiteral(text) => Value::SingleQuotedString(text),
            Token::SingleQuotedByteStringLiteral(bits) => {
                Value::SingleQuotedByteStringLiteral(bits)
            }
            Token::HexStringLiteral(digits) => Value::HexStringLiteral(digits),
            Token::Placeholder(name) => Value::Placeholder(name),
            other => unreachable!("{other} is no literal"),
        };
        Ast::Value(value.with_span(span))
    }

    fn word(&mut self, keyword: Keyword) -> Parsed {
        let called = *self.peek_at(1) == Token::LParen;
        match keyword {
            Keyword::NoKeyword => self.name(),
            Keyword::NULL => Ok(self.constant(Value::Null)),
            Keyword::TRUE => Ok(self.constant(Value::Boolean(true))),
            Keyword::FALSE => Ok(self.constant(Value::Boolean(false))),
            Keyword::CASE => self.case(),
            Keyword::CAST => self.cast(),
            Keyword::EXISTS if called => {
                self.skip();
                Ok(Ast::Exists {
                    subquery: self.query_in_parentheses()?,
                    negated: false,
                })
            }
            Keyword::ARRAY => self.array(),
            Keyword::ROW if called => self.row(),
            Keyword::INTERVAL => self.interval(),
            Keyword::DEFAULT => {
                let TokenWithSpan { token, span } = self.next();
                let Token::Word(word) = token else {
                    unreachable!("the keyword was seen")
                };
                Ok(Ast::Identifier(word.into_ident(span)))
            }
            Keyword::CURRENT_DATE
            | Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::CURRENT_ROLE
            | Keyword::CURRENT_USER
            | Keyword::SESSION_USER
            | Keyword::USER
            | Keyword::CURRENT_CATALOG => self.session_value(),
            Keyword::CURRENT_SCHEMA if !called => self.session_value(),
            Keyword::GROUPING if called => self.call_of_word(),
            Keyword::GROUPING if self.is_at(1, "SETS") => self.grouping_sets(),
            Keyword::DISTINCT if self.is_behind_group_by() => self.distinct_sets(),
            Keyword::EXTRACT
            | Keyword::OVERLAY
            | Keyword::POSITION
            | Keyword::SUBSTRING
            | Keyword::TRIM
            | Keyword::NORMALIZE
            | Keyword::TREAT
                if called =>
            {
                self.special_call(keyword)
            }
            Keyword::COLLATION if self.is_at(1, "FOR") => self.unsupported("COLLATION FOR"),
            Keyword::COALESCE | Keyword::NULLIF if called => self.call_of_word(),
            Keyword::UNIQUE if called => self.unsupported("UNIQUE as a predicate"),
            _ if self.starts_typed_literal(keyword) => self.typed_literal(),
            _ => self.name(),
        }
    }

    /// A constant in place of a word.
    fn constant(&mut self, value: Value) -> Ast {
        let span = self.next().span;
        Ast::Value(value.with_span(span))
    }

    /// Whether a type of the grammar's own with a string behind it comes next.
    fn starts_typed_literal(&self, keyword: Keyword) -> bool {
        match keyword {
            Keyword::DOUBLE => self.is_at(1, "PRECISION") && is_string(self.peek_at(2)),
            Keyword::TIMESTAMP
            | Keyword::TIME
            | Keyword::CHARACTER
            | Keyword::CHAR
            | Keyword::NCHAR
            | Keyword::BIT
            | Keyword::VARCHAR
            | Keyword::NUMERIC
            | Keyword::DECIMAL
            | Keyword::DEC
            | Keyword::FLOAT
            | Keyword::INT
            | Keyword::INTEGER
            | Keyword::SMALLINT
            | Keyword::BIGINT
            | Keyword::REAL
            | Keyword::BOOLEAN => {
                let further = ["WITH", "WITHOUT", "VARYING"];
                let next = self.peek_at(1);
                is_string(next)
                    || *next == Token::LParen
                    || further.iter().any(|word| self.is_at(1, word))
            }
            _ => false,
        }
    }

    fn typed_literal(&mut self) -> Parsed {
        let data_type = self.parser.parse_data_type()?;
        self.literal_of(data_type)
    }

    /// A string as a value of a type.
    fn literal_of(&mut self, data_type: DataType) -> Parsed {
        if !is_string(self.peek()) {
            return self.unexpected();
        }
        let Token::EscapedStringLiteral(text) = self.next().token else {
            unreachable!("a string was seen")
        };
        Ok(Ast::TypedString {
            data_type,
            value: Value::SingleQuotedString(text),
        })
    }

    /// A column, perhaps with its table and subscripts; a function call; a literal of a type.
    fn name(&mut self) -> Parsed {
        let (first, reserved, no_function) = match self.peek() {
            Token::Word(word) => {
                let bare = word.quote_style.is_none();
                let reserved = bare && is_reserved(&word.value);
                (word.clone(), reserved, bare && no_function(&word.value))
            }
            _ => return self.unexpected(),
        };
        let next = self.peek_at(1);
        let called = matches!(next, Token::LParen);
        let conditional = ["greatest", "least"];
        if called && conditional.iter().any(|word| self.is_at(0, word)) {
            return self.call_of_word();
        }
        let literal = is_string(next);
        let mentioned = *next == Token::Period;
        // Words like LEFT name functions, but no columns; words like SETOF the other way round.
        let names_function = reserved && may_name_function(&first.value);
        if reserved && !(names_function && (called || literal || mentioned)) {
            if names_function {
                self.skip();
            }
            return self.unexpected();
        }
        if no_function && (called || literal) {
            self.skip();
            return self.unexpected();
        }
        // `timestamptz(3) '...'`
        let modified = called
            && matches!(self.peek_at(2), Token::Number(_, _))
            && *self.peek_at(3) == Token::RParen
            && is_string(self.peek_at(4));
        if modified || literal && first.keyword != Keyword::NoKeyword {
            return self.typed_literal();
        }
        let mut parts = vec![self.ident()];
        if mentioned {
            while self.take_token(&Token::Period) {
                match self.peek() {
                    Token::Word(_) => parts.push(self.ident()),
                    Token::Mul => return self.unsupported("a whole row as a value"),
                    _ => return self.unexpected(),
                }
            }
        }
        if *self.peek() == Token::LParen {
            return self.call(ObjectName::from(parts));
        }
        if is_string(self.peek()) {
            return self.literal_of(DataType::Custom(ObjectName::from(parts), Vec::new()));
        }
        let column = if parts.len() == 1 {
            Ast::Identifier(parts.remove(0))
        } else {
            Ast::CompoundIdentifier(parts)
        };
        self.accessed(column)
    }

    /// The word that comes next as an identifier.
    pub(super) fn ident(&mut self) -> Ident {
        let TokenWithSpan { token, span } = self.next();
        let Token::Word(Word {
            value, quote_style, ..
        }) = token
        else {
            unreachable!("the caller has seen a word")
        };
        Ident {
            value,
            quote_style,
            span,
        }
    }

    /// A value with the subscripts and fields behind it.
    fn accessed(&mut self, root: Ast) -> Parsed {
        let mut access_chain = Vec::new();
        loop {
            if self.take_token(&Token::LBracket) {
                access_chain.push(AccessExpr::Subscript(self.subscript()?));
            } else if self.take_token(&Token::Period) {
                match self.peek() {
                    Token::Word(_) => {
                        access_chain.push(AccessExpr::Dot(Ast::Identifier(self.ident())));
                    }
                    Token::Mul => {
                        let star = AttachedToken(self.next());
                        access_chain.push(AccessExpr::Dot(Ast::Wildcard(star)));
                    }
                    _ => return self.unexpected(),
                }
            } else if access_chain.is_empty() {
                return Ok(root);
            } else {
                return Ok(Ast::CompoundFieldAccess {
                    root: Box::new(root),
                    access_chain,
                });
            }
        }
    }

    /// The subscripts of an assignment and its value, which follow the mark.
    fn part(&mut self) -> Parsed {
        self.skip();
        let mut access_chain = Vec::new();
        while self.take_token(&Token::LBracket) {
            access_chain.push(AccessExpr::Subscript(self.subscript()?));
        }
        let value = Box::new(self.whole()?);
        Ok(super::parts::set(value, access_chain))
    }

    /// What stands between brackets; the opening one was taken.
    fn subscript(&mut self) -> Parsed<Subscript> {
        let lower_bound = if *self.peek() == Token::Colon {
            None
        } else {
            Some(self.whole()?)
        };
        if !self.take_token(&Token::Colon) {
            self.expect_token(&Token::RBracket)?;
            let Some(index) = lower_bound else {
                unreachable!("without a bound there was a colon")
            };
            return Ok(Subscript::Index { index });
        }
        let upper_bound = if *self.peek() == Token::RBracket {
            None
        } else {
            Some(self.whole()?)
        };
        self.expect_token(&Token::RBracket)?;
        Ok(Subscript::Slice {
            lower_bound,
            upper_bound,
            stride: None,
        })
    }

    /// `(expression)`, `(a, b)` or `(query)`.
    fn parenthesis(&mut self) -> Parsed {
        let inner = if self.query_ahead() {
            Ast::Subquery(self.query_in_parentheses()?)
        } else {
            self.skip();
            if self.take_token(&Token::RParen) {
                return Ok(grouping::no_keys());
            }
            let mut list = self.list()?;
            self.expect_token(&Token::RParen)?;
            if list.len() > 1 {
                return Ok(Ast::Tuple(list));
            }
            Ast::Nested(Box::new(list.remove(0)))
        };
        self.accessed(inner)
    }

    /// Whether the parenthesis that comes next holds a query, perhaps in further parentheses.
    pub(super) fn query_ahead(&self) -> bool {
        let mut inner = 0;
        while *self.peek_at(inner) == Token::LParen {
            inner += 1;
        }
        let starts = [
            Keyword::SELECT,
            Keyword::VALUES,
            Keyword::WITH,
            Keyword::TABLE,
        ];
        if inner == 0 || !starts.contains(&self.keyword_at(inner)) {
            return false;
        }
        // From the inside out: is every parenthesis but the outermost one just a query's?
        let continues = [
            Keyword::UNION,
            Keyword::INTERSECT,
            Keyword::EXCEPT,
            Keyword::ORDER,
            Keyword::LIMIT,
            Keyword::OFFSET,
            Keyword::FETCH,
            Keyword::FOR,
        ];
        let (mut at, mut open) = (inner, inner);
        while open > 1 {
            // To the end of the innermost parenthesis that is open.
            let mut depth = 1;
            while depth > 0 {
                match self.peek_at(at) {
                    Token::LParen => depth += 1,
                    Token::RParen => depth -= 1,
                    Token::EOF => return true,
                    _ => {}
                }
                at += 1;
            }
            open -= 1;
            let follows = self.peek_at(at);
            if *follows != Token::RParen && !continues.contains(&self.keyword_at(at)) {
                return false;
            }
        }
        true
    }

    pub(super) fn query_in_parentheses(&mut self) -> Parsed<Box<Query>> {
        self.expect_token(&Token::LParen)?;
        let query = self.parser.parse_query()?;
        self.expect_token(&Token::RParen)?;
        Ok(query)
    }

    fn case(&mut self) -> Parsed {
        self.skip();
        let operand = if self.is_at(0, "WHEN") {
            None
        } else {
            Some(Box::new(self.whole()?))
        };
        let mut conditions = Vec::new();
        self.expect("WHEN")?;
        loop {
            let condition = self.whole()?;
            self.expect("THEN")?;
            let result = self.whole()?;
            conditions.push(CaseWhen { condition, result });
            if !self.take("WHEN") {
                break;
            }
        }
        let else_result = if self.take("ELSE") {
            Some(Box::new(self.whole()?))
        } else {
            None
        };
        self.expect("END")?;
        Ok(Ast::Case {
            operand,
            conditions,
            else_result,
        })
    }

    fn cast(&mut self) -> Parsed {
        self.skip();
        self.expect_token(&Token::LParen)?;
        let expr = Box::new(self.whole()?);
        self.expect("AS")?;
        let data_type = self.parser.parse_data_type()?;
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Cast {
            kind: CastKind::Cast,
            expr,
            data_type,
            format: None,
        })
    }

    /// `ARRAY[...]` or `ARRAY(query)`.
    fn array(&mut self) -> Parsed {
        if *self.peek_at(1) == Token::LParen {
            return self.array_of_query();
        }
        self.skip();
        let elem = self.elements()?;
        Ok(Ast::Array(Array { elem, named: true }))
    }

    fn elements(&mut self) -> Parsed<Vec<Ast>> {
        self.expect_token(&Token::LBracket)?;
        let mut elements = Vec::new();
        if self.take_token(&Token::RBracket) {
            return Ok(elements);
        }
        loop {
            elements.push(if *self.peek() == Token::LBracket {
                let elem = self.elements()?;
                Ast::Array(Array { elem, named: false })
            } else {
                self.whole()?
            });
            if !self.take_token(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RBracket)?;
        Ok(elements)
    }

    /// `ROW(...)`
    fn row(&mut self) -> Parsed {
        self.skip();
        self.skip();
        if self.take_token(&Token::RParen) {
            return Ok(Ast::Tuple(Vec::new()));
        }
        let items = self.list()?;
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Tuple(items))
    }

    /// `INTERVAL 'text' [fields]`; the word may be a column's name, too.
    fn interval(&mut self) -> Parsed {
        let leading_precision = match self.peek_at(1) {
            Token::LParen if is_string(self.peek_at(4)) => self.digits_at(1),
            _ => None,
        };
        let text = if leading_precision.is_some() { 4 } else { 1 };
        if !is_string(self.peek_at(text)) {
            return self.name();
        }
        (0..text).for_each(|_| self.skip());
        let value = Box::new(self.literal());
        let first = match leading_precision {
            None => self.interval_field(),
            Some(_) => None,
        };
        let mut last = None;
        if let Some((first, _)) = first
            && self.take("TO")
        {
            last = match self.field_here() {
                Some(last) if super::spans::is_range(first, last.0) => self.interval_field(),
                _ => return self.unexpected(),
            };
        }
        let mut digits = None;
        if let Some((SpanField::Second, _)) = last.as_ref().or(first.as_ref()) {
            digits = self.digits_at(0);
            (0..digits.map_or(0, |_| 3)).for_each(|_| self.skip());
        }
        Ok(Ast::Interval(Interval {
            value,
            leading_field: first.map(|(_, field)| field),
            leading_precision,
            last_field: last.map(|(_, field)| field),
            fractional_seconds_precision: digits,
        }))
    }

    /// The number of `(digits)` that stands so many tokens ahead.
    fn digits_at(&self, ahead: usize) -> Option<u64> {
        let is_group =
            *self.peek_at(ahead) == Token::LParen && *self.peek_at(ahead + 2) == Token::RParen;
        match self.peek_at(ahead + 1) {
            Token::Number(digits, _) if is_group => digits.parse().ok(),
            _ => None,
        }
    }

    fn interval_field(&mut self) -> Option<(SpanField, DateTimeField)> {
        let field = self.field_here();
        if field.is_some() {
            self.skip();
        }
        field
    }

    fn field_here(&self) -> Option<(SpanField, DateTimeField)> {
        Some(match self.keyword_at(0) {
            Keyword::YEAR => (SpanField::Year, DateTimeField::Year),
            Keyword::MONTH => (SpanField::Month, DateTimeField::Month),
            Keyword::DAY => (SpanField::Day, DateTimeField::Day),
            Keyword::HOUR => (SpanField::Hour, DateTimeField::Hour),
            Keyword::MINUTE => (SpanField::Minute, DateTimeField::Minute),
            Keyword::SECOND => (SpanField::Second, DateTimeField::Second),
            _ => return None,
        })
    }
}

pub(super) fn is_string(token: &Token) -> bool {
    matches!(token, Token::EscapedStringLiteral(_))
}
