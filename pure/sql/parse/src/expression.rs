//! Expressions by PostgreSQL's grammar, as the library's syntax tree: operators here, operands in
//! `operand` and `call`.
//!
//! The levels are those of PostgreSQL's gram.y (table 4.2 of its manual). An operator without
//! associativity cannot follow itself (`1 = 1 = true` is 42601); the operand of a prefix operator
//! reaches as far as operators bind more tightly than the prefix does, whatever stands before it.

use super::dialect::Sql;
use super::too_complex;
use base::{SqlError, SqlState};
use sqlparser::ast::{BinaryOperator, Expr as Ast, UnaryOperator, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

pub(super) type Parsed<T = Ast> = Result<T, ParserError>;

/// How tightly operators bind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    Or,
    And,
    Not,
    Is,
    Compare,
    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR.
    Range,
    /// All operators without a level of their own.
    Other,
    Add,
    Multiply,
    Power,
    TimeZone,
    Collate,
    Sign,
    Cast,
}

impl Level {
    /// The next tighter one.
    fn next(self) -> Level {
        match self {
            Level::Or => Level::And,
            Level::And => Level::Not,
            Level::Not => Level::Is,
            Level::Is => Level::Compare,
            Level::Compare => Level::Range,
            Level::Range => Level::Other,
            Level::Other => Level::Add,
            Level::Add => Level::Multiply,
            Level::Multiply => Level::Power,
            Level::Power => Level::TimeZone,
            Level::TimeZone => Level::Collate,
            Level::Collate => Level::Sign,
            Level::Sign | Level::Cast => Level::Cast,
        }
    }
}

/// Which expressions may stand at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grammar {
    /// `a_expr`
    All,
    /// `b_expr`: no AND, OR, NOT, IN, LIKE, BETWEEN, IS NULL ...
    Restricted,
}

/// What may follow an operand.
#[derive(Clone, PartialEq, Debug)]
enum Infix {
    Logic(BinaryOperator),
    Operator(BinaryOperator, Level),
    /// `OPERATOR(schema.name)`
    Qualified,
    Is,
    /// ISNULL, NOTNULL.
    Null(bool),
    Range(Keyword, bool),
    Overlaps,
    AtTimeZone,
    Collate,
    Cast,
}

impl Infix {
    fn level(&self) -> Level {
        match self {
            Infix::Logic(BinaryOperator::Or) => Level::Or,
            Infix::Logic(_) => Level::And,
            Infix::Operator(_, level) => *level,
            Infix::Qualified => Level::Other,
            Infix::Is | Infix::Null(_) => Level::Is,
            Infix::Range(..) | Infix::Overlaps => Level::Range,
            Infix::AtTimeZone => Level::TimeZone,
            Infix::Collate => Level::Collate,
            Infix::Cast => Level::Cast,
        }
    }
}

/// Reads expressions from the library's tokens.
pub(super) struct Expressions<'p, 'a> {
    pub(super) parser: &'p mut Parser<'a>,
    pub(super) sql: &'p Sql,
}

/// Reads a whole expression; what follows it is none of it.
pub(super) fn parse(sql: &Sql, parser: &mut Parser<'_>) -> Parsed {
    let mut expressions = Expressions { parser, sql };
    let parsed = expressions.level(Level::Or, Grammar::All)?;
    // The library would go on with these.
    match expressions.peek() {
        Token::Period | Token::LBracket => expressions.unexpected(),
        _ => Ok(parsed),
    }
}

impl Expressions<'_, '_> {
    /// The token `ahead` of the next one.
    pub(super) fn peek_at(&self, ahead: usize) -> &Token {
        &self.parser.token_at(self.parser.index() + ahead).token
    }

    pub(super) fn peek(&self) -> &Token {
        self.peek_at(0)
    }

    pub(super) fn next(&mut self) -> TokenWithSpan {
        self.parser.next_token()
    }

    pub(super) fn skip(&mut self) {
        self.parser.advance_token();
    }

    /// Whether the token `ahead` is this unquoted word.
    pub(super) fn is_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(Word { value, quote_style: None, .. })
            if value.eq_ignore_ascii_case(word))
    }

    /// Takes the word if it comes next.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.is_at(0, word);
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect(&mut self, word: &str) -> Parsed<()> {
        if self.take(word) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.skip();
        }
        found
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Parsed<()> {
        if self.take_token(token) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    /// The keyword `ahead`.
    pub(super) fn keyword_at(&self, ahead: usize) -> Keyword {
        match self.peek_at(ahead) {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        }
    }

    /// `syntax error at or near` the next token.
    pub(super) fn unexpected<T>(&self) -> Parsed<T> {
        self.sql.note(self.parser.index(), None);
        let token = self.parser.peek_token_ref();
        self.parser.expected_ref("something else", token)
    }

    /// An error of another kind than a token that does not fit.
    pub(super) fn fault<T>(&self, error: SqlError) -> Parsed<T> {
        self.sql.note(self.parser.index(), Some(error));
        Err(ParserError::ParserError("a fault was noted".into()))
    }

    pub(super) fn unsupported<T>(&self, what: &str) -> Parsed<T> {
        self.fault(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} is not supported"),
        ))
    }

    /// A whole expression inside of another one.
    pub(super) fn whole(&mut self) -> Parsed {
        self.level(Level::Or, Grammar::All)
    }

    /// An expression of operators that bind at least as tightly as `least`.
    pub(super) fn level(&mut self, least: Level, grammar: Grammar) -> Parsed {
        let depth = self.sql.depth.get();
        if depth >= super::NESTING_MAX {
            return self.fault(too_complex());
        }
        self.sql.depth.set(depth + 1);
        let parsed = crate::stack::grown(|| self.operators(least, grammar));
        self.sql.depth.set(depth);
        parsed
    }

    fn operators(&mut self, least: Level, grammar: Grammar) -> Parsed {
        let mut left = self.prefixed(grammar)?;
        while let Some(infix) = self.infix(grammar)
            && infix.level() >= least
        {
            left = self.apply(left, infix, grammar)?;
        }
        Ok(left)
    }

    /// An operand with the prefix operators before it.
    fn prefixed(&mut self, grammar: Grammar) -> Parsed {
        let (op, level) = match self.peek() {
            Token::Plus => (UnaryOperator::Plus, Level::Sign),
            Token::Minus => (UnaryOperator::Minus, Level::Sign),
            Token::CustomBinaryOperator(name) => match prefix(name) {
                Some(op) => (op, Level::Add),
                None => return self.unknown_prefix(name.clone(), grammar),
            },
            Token::Word(word) if word.keyword == Keyword::NOT && grammar == Grammar::All => {
                (UnaryOperator::Not, Level::Not)
            }
            _ if self.is_at(0, "OPERATOR") && *self.peek_at(1) == Token::LParen => {
                return self.qualified_prefix(grammar);
            }
            _ => return self.operand(),
        };
        self.skip();
        let expr = self.level(level, grammar)?;
        Ok(unary(op, expr))
    }

    /// A prefix operator that does not exist.
    fn unknown_prefix(&mut self, name: String, grammar: Grammar) -> Parsed {
        self.skip();
        let operand = self.level(Level::Add, grammar)?;
        self.sql.put_off(undefined(&name));
        Ok(operand)
    }

    fn qualified_prefix(&mut self, grammar: Grammar) -> Parsed {
        let op = match self.qualified()? {
            BinaryOperator::Plus => UnaryOperator::Plus,
            BinaryOperator::Minus => UnaryOperator::Minus,
            BinaryOperator::Custom(name) if prefix(&name).is_some() => {
                prefix(&name).expect("checked in the pattern")
            }
            other => {
                let operand = self.level(Level::Add, grammar)?;
                self.sql.put_off(undefined(&other.to_string()));
                return Ok(operand);
            }
        };
        let expr = self.level(Level::Add, grammar)?;
        Ok(unary(op, expr))
    }

    /// What follows an operand, without taking it.
    fn infix(&self, grammar: Grammar) -> Option<Infix> {
        let token = self.peek();
        if let Token::Word(word) = token {
            return self.infix_word(word, grammar);
        }
        if *token == Token::DoubleColon {
            return Some(Infix::Cast);
        }
        operator(token).map(|(op, level)| Infix::Operator(op, level))
    }

    fn infix_word(&self, word: &Word, grammar: Grammar) -> Option<Infix> {
        if word.quote_style.is_some() {
            return None;
        }
        if word.keyword == Keyword::IS {
            let distinct = 1 + usize::from(self.keyword_at(1) == Keyword::NOT);
            let fits = grammar == Grammar::All || self.keyword_at(distinct) == Keyword::DISTINCT;
            return fits.then_some(Infix::Is);
        }
        if word.keyword == Keyword::OPERATOR && *self.peek_at(1) == Token::LParen {
            return Some(Infix::Qualified);
        }
        if grammar == Grammar::Restricted {
            return None;
        }
        let ranges = [
            Keyword::BETWEEN,
            Keyword::IN,
            Keyword::LIKE,
            Keyword::ILIKE,
            Keyword::SIMILAR,
        ];
        match word.keyword {
            Keyword::AND => Some(Infix::Logic(BinaryOperator::And)),
            Keyword::OR => Some(Infix::Logic(BinaryOperator::Or)),
            Keyword::NOT if ranges.contains(&self.keyword_at(1)) => {
                Some(Infix::Range(self.keyword_at(1), true))
            }
            // `substring(a SIMILAR b ESCAPE c)`
            Keyword::SIMILAR if self.keyword_at(1) != Keyword::TO => None,
            keyword if ranges.contains(&keyword) => Some(Infix::Range(keyword, false)),
            Keyword::AT if self.keyword_at(1) == Keyword::TIME => Some(Infix::AtTimeZone),
            Keyword::COLLATE => Some(Infix::Collate),
            Keyword::OVERLAPS => Some(Infix::Overlaps),
            Keyword::NoKeyword if word.value.eq_ignore_ascii_case("isnull") => {
                Some(Infix::Null(true))
            }
            Keyword::NoKeyword if word.value.eq_ignore_ascii_case("notnull") => {
                Some(Infix::Null(false))
            }
            _ => None,
        }
    }

    /// The right operand of an operator that cannot follow itself.
    fn alone(&mut self, level: Level, grammar: Grammar) -> Parsed {
        let right = self.level(level.next(), grammar)?;
        match self.infix(grammar) {
            Some(next) if next.level() == level => self.unexpected(),
            _ => Ok(right),
        }
    }

    fn apply(&mut self, left: Ast, infix: Infix, grammar: Grammar) -> Parsed {
        match infix {
            Infix::Logic(op) => self.logic(left, op),
            Infix::Operator(op, level) => {
                self.skip();
                self.binary(left, op, level, grammar)
            }
            Infix::Qualified => {
                let op = self.qualified()?;
                self.binary(left, op, Level::Other, grammar)
            }
            Infix::Is => self.is(left, grammar),
            Infix::Null(null) => {
                self.skip();
                let left = Box::new(left);
                Ok(if null {
                    Ast::IsNull(left)
                } else {
                    Ast::IsNotNull(left)
                })
            }
            Infix::Range(keyword, negated) => {
                self.skip();
                if negated {
                    self.skip();
                }
                self.range(left, keyword, negated)
            }
            Infix::Overlaps => self.overlaps(left),
            Infix::AtTimeZone => {
                self.skip();
                self.skip();
                self.expect("ZONE")?;
                let zone = self.level(Level::TimeZone.next(), grammar)?;
                Ok(Ast::AtTimeZone {
                    timestamp: Box::new(left),
                    time_zone: Box::new(zone),
                })
            }
            Infix::Collate => {
                self.skip();
                let collation = self.parser.parse_object_name(false)?;
                Ok(Ast::Collate {
                    expr: Box::new(left),
                    collation,
                })
            }
            Infix::Cast => {
                self.skip();
                let data_type = self.parser.parse_data_type()?;
                Ok(Ast::Cast {
                    kind: sqlparser::ast::CastKind::DoubleColon,
                    expr: Box::new(left),
                    data_type,
                    format: None,
                })
            }
        }
    }

    /// A chain of ANDs or ORs, as a balanced tree: the order of its terms is all that counts.
    fn logic(&mut self, left: Ast, op: BinaryOperator) -> Parsed {
        let level = Infix::Logic(op.clone()).level();
        let mut terms = vec![left];
        while self.infix(Grammar::All) == Some(Infix::Logic(op.clone())) {
            self.skip();
            terms.push(self.level(level.next(), Grammar::All)?);
        }
        Ok(balanced(&mut terms.into_iter(), &op))
    }

    /// `left op right`, `left op ANY (...)`; the operator was taken.
    fn binary(&mut self, left: Ast, op: BinaryOperator, level: Level, grammar: Grammar) -> Parsed {
        if let Keyword::ANY | Keyword::SOME | Keyword::ALL = self.keyword_at(0) {
            return self.quantified(left, op);
        }
        let right = if level == Level::Compare {
            self.alone(level, grammar)?
        } else {
            self.level(level.next(), grammar)?
        };
        Ok(Ast::BinaryOp {
            left: Box::new(left),
            op,
            right: Box::new(right),
        })
    }

    /// `ANY (...)` behind an operator.
    fn quantified(&mut self, left: Ast, compare_op: BinaryOperator) -> Parsed {
        let (left, keyword) = (Box::new(left), self.keyword_at(0));
        self.skip();
        let right = Box::new(if self.query_ahead() {
            Ast::Subquery(self.query_in_parentheses()?)
        } else {
            self.expect_token(&Token::LParen)?;
            let array = self.whole()?;
            self.expect_token(&Token::RParen)?;
            array
        });
        Ok(match keyword {
            Keyword::ALL => Ast::AllOp {
                left,
                compare_op,
                right,
            },
            _ => Ast::AnyOp {
                left,
                compare_op,
                right,
                is_some: keyword == Keyword::SOME,
            },
        })
    }

    /// `OPERATOR(schema.name)`
    fn qualified(&mut self) -> Parsed<BinaryOperator> {
        self.skip();
        self.expect_token(&Token::LParen)?;
        while let Token::Word(word) = self.peek() {
            if !word.value.eq_ignore_ascii_case("pg_catalog") {
                let message = format!("schema \"{}\" does not exist", word.value);
                return self.fault(SqlError::new(SqlState::INVALID_SCHEMA, message));
            }
            self.skip();
            self.expect_token(&Token::Period)?;
        }
        let Some((op, _)) = operator(self.peek()) else {
            return self.unexpected();
        };
        self.skip();
        self.expect_token(&Token::RParen)?;
        Ok(op)
    }

    /// `left IS ...`
    fn is(&mut self, left: Ast, grammar: Grammar) -> Parsed {
        self.skip();
        let negated = self.take("NOT");
        let left = Box::new(left);
        let keyword = self.keyword_at(0);
        if keyword == Keyword::DISTINCT {
            self.skip();
            self.expect("FROM")?;
            let right = Box::new(self.alone(Level::Is, grammar)?);
            return Ok(if negated {
                Ast::IsNotDistinctFrom(left, right)
            } else {
                Ast::IsDistinctFrom(left, right)
            });
        }
        let test: fn(Box<Ast>) -> Ast = match (keyword, negated) {
            (Keyword::NULL, false) => Ast::IsNull,
            (Keyword::NULL, true) => Ast::IsNotNull,
            (Keyword::TRUE, false) => Ast::IsTrue,
            (Keyword::TRUE, true) => Ast::IsNotTrue,
            (Keyword::FALSE, false) => Ast::IsFalse,
            (Keyword::FALSE, true) => Ast::IsNotFalse,
            (Keyword::UNKNOWN, false) => Ast::IsUnknown,
            (Keyword::UNKNOWN, true) => Ast::IsNotUnknown,
            _ => {
                let forms = ["NFC", "NFD", "NFKC", "NFKD"];
                let form = usize::from(forms.iter().any(|form| self.is_at(0, form)));
                return if self.is_at(form, "NORMALIZED") {
                    self.unsupported("IS NORMALIZED")
                } else if self.is_at(0, "DOCUMENT") {
                    self.unsupported("IS DOCUMENT")
                } else {
                    self.unexpected()
                };
            }
        };
        self.skip();
        Ok(test(left))
    }

    /// `left [NOT] BETWEEN ...` and its like; the words were taken.
    fn range(&mut self, left: Ast, keyword: Keyword, negated: bool) -> Parsed {
        match keyword {
            Keyword::BETWEEN => self.between(left, negated),
            Keyword::IN => self.in_list(left, negated),
            Keyword::SIMILAR => {
                self.expect("TO")?;
                self.similar(left, negated)
            }
            _ => self.like(left, keyword == Keyword::ILIKE, negated),
        }
    }

    fn between(&mut self, left: Ast, negated: bool) -> Parsed {
        let symmetric = self.take("SYMMETRIC");
        if !symmetric {
            self.take("ASYMMETRIC");
        }
        let low = self.level(Level::Or, Grammar::Restricted)?;
        self.expect("AND")?;
        let high = self.alone(Level::Range, Grammar::All)?;
        let between = |low, high, negated| Ast::Between {
            expr: Box::new(left.clone()),
            negated,
            low: Box::new(low),
            high: Box::new(high),
        };
        if !symmetric {
            return Ok(between(low, high, negated));
        }
        let op = if negated {
            BinaryOperator::And
        } else {
            BinaryOperator::Or
        };
        let either = Ast::BinaryOp {
            left: Box::new(between(low.clone(), high.clone(), negated)),
            op,
            right: Box::new(between(high, low, negated)),
        };
        Ok(Ast::Nested(Box::new(either)))
    }

    /// `(a, b) OVERLAPS (c, d)`: the function of that name.
    fn overlaps(&mut self, left: Ast) -> Parsed {
        let Ast::Tuple(mut args) = left else {
            return self.unexpected();
        };
        let span = self.parser.peek_token_ref().span;
        self.skip();
        let Ast::Tuple(right) = self.operand()? else {
            return self.unexpected();
        };
        for (side, period) in [("left", &args), ("right", &right)] {
            if period.len() != 2 {
                let message =
                    format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return self.fault(SqlError::new(SqlState::SYNTAX, message));
            }
        }
        if self.infix(Grammar::All).map(|next| next.level()) == Some(Level::Range) {
            return self.unexpected();
        }
        args.extend(right);
        let name = sqlparser::ast::Ident::with_span(span, "overlaps");
        Ok(super::call::plain(name, args))
    }

    fn in_list(&mut self, left: Ast, negated: bool) -> Parsed {
        let expr = Box::new(left);
        if self.query_ahead() {
            return Ok(Ast::InSubquery {
                expr,
                subquery: self.query_in_parentheses()?,
                negated,
            });
        }
        self.expect_token(&Token::LParen)?;
        let list = self.list()?;
        self.expect_token(&Token::RParen)?;
        Ok(Ast::InList {
            expr,
            list,
            negated,
        })
    }

    /// `left SIMILAR TO pattern [ESCAPE escape]`: a match with the regular expression that
    /// `similar_to_escape` makes of it, as PostgreSQL shows it in views.
    fn similar(&mut self, left: Ast, negated: bool) -> Parsed {
        let span = self.parser.peek_token_ref().span;
        let mut args = vec![self.level(Level::Range.next(), Grammar::All)?];
        if self.take("ESCAPE") {
            args.push(self.level(Level::Range.next(), Grammar::All)?);
        }
        if self.infix(Grammar::All).map(|next| next.level()) == Some(Level::Range) {
            return self.unexpected();
        }
        let name = sqlparser::ast::Ident::with_span(span, "similar_to_escape");
        let op = match negated {
            false => BinaryOperator::PGRegexMatch,
            true => BinaryOperator::PGRegexNotMatch,
        };
        let (left, right) = (Box::new(left), Box::new(super::call::plain(name, args)));
        Ok(Ast::BinaryOp { left, op, right })
    }

    fn like(&mut self, left: Ast, any_case: bool, negated: bool) -> Parsed {
        if let Keyword::ANY | Keyword::SOME | Keyword::ALL = self.keyword_at(0) {
            let name = match (any_case, negated) {
                (false, false) => "~~",
                (false, true) => "!~~",
                (true, false) => "~~*",
                (true, true) => "!~~*",
            };
            return self.quantified(left, BinaryOperator::Custom(name.into()));
        }
        let mut pattern = self.level(Level::Range.next(), Grammar::All)?;
        let mut escape_char = None;
        if self.take("ESCAPE") {
            match self.level(Level::Range.next(), Grammar::All)? {
                Ast::Value(value) if super::literal_text(&value.value).is_some() => {
                    escape_char = super::literal_text(&value.value).map(str::to_string);
                }
                // Nothing is like a pattern whose escape is NULL.
                Ast::Value(value) if value.value == Value::Null => pattern = Ast::Value(value),
                _ => return self.unsupported("ESCAPE of anything but a literal"),
            }
        }
        if self.infix(Grammar::All).map(|next| next.level()) == Some(Level::Range) {
            return self.unexpected();
        }
        let (expr, pattern, any) = (Box::new(left), Box::new(pattern), false);
        Ok(if any_case {
            Ast::ILike {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            }
        } else {
            Ast::Like {
                negated,
                any,
                expr,
                pattern,
                escape_char,
            }
        })
    }

    /// Expressions between commas.
    pub(super) fn list(&mut self) -> Parsed<Vec<Ast>> {
        let mut list = vec![self.whole()?];
        while self.take_token(&Token::Comma) {
            list.push(self.whole()?);
        }
        Ok(list)
    }
}

/// A tree of logarithmic depth with the terms in their order.
fn balanced(terms: &mut dyn ExactSizeIterator<Item = Ast>, op: &BinaryOperator) -> Ast {
    fn take(terms: &mut dyn Iterator<Item = Ast>, count: usize, op: &BinaryOperator) -> Ast {
        if count == 1 {
            return terms.next().expect("the count was the iterator's length");
        }
        let left = take(terms, count - count / 2, op);
        Ast::BinaryOp {
            left: Box::new(left),
            op: op.clone(),
            right: Box::new(take(terms, count / 2, op)),
        }
    }
    let count = terms.len();
    take(terms, count, op)
}

/// A prefix operator and its operand, which is written so that it can be read again: no operator
/// character follows another one.
fn unary(op: UnaryOperator, expr: Ast) -> Ast {
    let plain = matches!(
        expr,
        Ast::Value(_)
            | Ast::Identifier(_)
            | Ast::CompoundIdentifier(_)
            | Ast::Function(_)
            | Ast::Nested(_)
            | Ast::Subquery(_)
    );
    let expr = if plain || op == UnaryOperator::Not {
        expr
    } else {
        Ast::Nested(Box::new(expr))
    };
    Ast::UnaryOp {
        op,
        expr: Box::new(expr),
    }
}

/// The operator that a token is between operands.
fn operator(token: &Token) -> Option<(BinaryOperator, Level)> {
    Some(match token {
        Token::Plus => (BinaryOperator::Plus, Level::Add),
        Token::Minus => (BinaryOperator::Minus, Level::Add),
        Token::Mul => (BinaryOperator::Multiply, Level::Multiply),
        Token::Div => (BinaryOperator::Divide, Level::Multiply),
        Token::Mod => (BinaryOperator::Modulo, Level::Multiply),
        Token::Caret => (BinaryOperator::PGExp, Level::Power),
        Token::Eq => (BinaryOperator::Eq, Level::Compare),
        Token::Neq => (BinaryOperator::NotEq, Level::Compare),
        Token::Lt => (BinaryOperator::Lt, Level::Compare),
        Token::Gt => (BinaryOperator::Gt, Level::Compare),
        Token::LtEq => (BinaryOperator::LtEq, Level::Compare),
        Token::GtEq => (BinaryOperator::GtEq, Level::Compare),
        Token::CustomBinaryOperator(name) => (BinaryOperator::Custom(name.clone()), Level::Other),
        _ => return None,
    })
}

/// The error of a prefix operator that does not exist.
fn undefined(name: &str) -> SqlError {
    let message = format!("operator does not exist: {name}");
    SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
}

/// The prefix operator of a name.
fn prefix(name: &str) -> Option<UnaryOperator> {
    Some(match name {
        "~" => UnaryOperator::PGBitwiseNot,
        "|/" => UnaryOperator::PGSquareRoot,
        "||/" => UnaryOperator::PGCubeRoot,
        "@" => UnaryOperator::PGAbs,
        "!!" => UnaryOperator::PGPrefixFactorial,
        "#" => UnaryOperator::Hash,
        "@-@" => UnaryOperator::AtDashAt,
        "@@" => UnaryOperator::DoubleAt,
        "?-" => UnaryOperator::QuestionDash,
        "?|" => UnaryOperator::QuestionPipe,
        _ => return None,
    })
}
