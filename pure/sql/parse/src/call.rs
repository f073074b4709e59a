//! Function calls, and the functions that have a grammar of their own.

use super::expression::{Expressions, Grammar, Level, Parsed};
use super::named_arguments::placed;
use super::operand::is_string;
use super::words::fold;
use functions::keywords::is_reserved;
use sqlparser::ast::{
    DateTimeField, DuplicateTreatment, Expr as Ast, ExtractSyntax, Function, FunctionArg,
    FunctionArgExpr, FunctionArgOperator, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, TrimWhereField, WindowType,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};

fn function(name: ObjectName, args: FunctionArguments) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// The name of a function that may be one of the system.
fn of_system(name: &ObjectName) -> Option<String> {
    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
    let mut parts: Vec<String> = parts
        .map(|part| fold(&part.value, part.quote_style.is_some()))
        .collect();
    let own = parts.pop()?;
    matches!(parts.as_slice(), [] | [_] if parts.iter().all(|it| it == "pg_catalog")).then_some(own)
}

/// A call by this name.
pub(super) fn plain(name: Ident, args: Vec<Ast>) -> Ast {
    Ast::Function(function(ObjectName::from(vec![name]), arguments(args)))
}

fn arguments(args: Vec<Ast>) -> FunctionArguments {
    let args = args.into_iter();
    FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: args
            .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
            .collect(),
        clauses: Vec::new(),
    })
}

impl Expressions<'_, '_> {
    /// A call of the function named by the word that comes next.
    pub(super) fn call_of_word(&mut self) -> Parsed {
        let name = self.ident();
        self.call(ObjectName::from(vec![name]))
    }

    /// `(arguments)` and the clauses behind them.
    pub(super) fn call(&mut self, name: ObjectName) -> Parsed {
        self.expect_token(&Token::LParen)?;
        let mut args = self.arguments()?;
        let places = placed(of_system(&name).as_deref(), core::mem::take(&mut args.args));
        args.args = match places {
            Ok(placed) => placed,
            Err(error) => return self.fault(error),
        };
        let mut call = function(name, FunctionArguments::List(args));
        if self.take("WITHIN") {
            self.expect("GROUP")?;
            self.expect_token(&Token::LParen)?;
            self.expect("ORDER")?;
            self.expect("BY")?;
            call.within_group = self
                .parser
                .parse_comma_separated(|parser| parser.parse_order_by_expr())?;
            self.expect_token(&Token::RParen)?;
        }
        if self.take("FILTER") {
            self.expect_token(&Token::LParen)?;
            self.expect("WHERE")?;
            call.filter = Some(Box::new(self.whole()?));
            self.expect_token(&Token::RParen)?;
        }
        if self.take("OVER") {
            call.over = Some(if self.take_token(&Token::LParen) {
                WindowType::WindowSpec(self.parser.parse_window_spec()?)
            } else if let Token::Word(word) = self.peek()
                && (word.quote_style.is_some() || !is_reserved(&word.value))
            {
                WindowType::NamedWindow(self.ident())
            } else {
                return self.unexpected();
            });
        }
        Ok(Ast::Function(call))
    }

    /// Arguments up to and with the closing parenthesis.
    fn arguments(&mut self) -> Parsed<FunctionArgumentList> {
        let mut list = FunctionArgumentList {
            duplicate_treatment: None,
            args: Vec::new(),
            clauses: Vec::new(),
        };
        if self.take_token(&Token::RParen) {
            return Ok(list);
        }
        if self.take_token(&Token::Mul) {
            list.args
                .push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
            self.expect_token(&Token::RParen)?;
            return Ok(list);
        }
        if self.take("DISTINCT") {
            list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
        } else if self.take("ALL") {
            list.duplicate_treatment = Some(DuplicateTreatment::All);
        }
        loop {
            list.args.push(self.argument()?);
            if !self.take_token(&Token::Comma) {
                break;
            }
        }
        if self.take("ORDER") {
            self.expect("BY")?;
            let keys = self
                .parser
                .parse_comma_separated(|parser| parser.parse_order_by_expr())?;
            list.clauses.push(FunctionArgumentClause::OrderBy(keys));
        }
        self.expect_token(&Token::RParen)?;
        Ok(list)
    }

    fn argument(&mut self) -> Parsed<FunctionArg> {
        if self.is_at(0, "VARIADIC") {
            return self.array_argument();
        }
        let operator = match (self.peek(), self.peek_at(1)) {
            (Token::Word(_), Token::RArrow) => Some(FunctionArgOperator::RightArrow),
            (Token::Word(_), Token::Assignment) => Some(FunctionArgOperator::Assignment),
            _ => None,
        };
        let is_row = matches!(self.peek(), Token::Word(_))
            && *self.peek_at(1) == Token::Period
            && *self.peek_at(2) == Token::Mul
            && matches!(self.peek_at(3), Token::Comma | Token::RParen);
        if is_row {
            let relation = ObjectName::from(vec![self.ident()]);
            self.skip();
            self.skip();
            let row = FunctionArgExpr::QualifiedWildcard(relation);
            return Ok(FunctionArg::Unnamed(row));
        }
        let Some(operator) = operator else {
            let arg = self.whole()?;
            return Ok(FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
        };
        let name = self.ident();
        self.skip();
        let arg = FunctionArgExpr::Expr(self.whole()?);
        Ok(FunctionArg::Named {
            name,
            arg,
            operator,
        })
    }

    /// `VARIADIC array`: kept as a call of what cannot be the name of a function.
    fn array_argument(&mut self) -> Parsed<FunctionArg> {
        let word = self.ident();
        let value = self.whole()?;
        let marked = plain(word, vec![value]);
        Ok(FunctionArg::Unnamed(FunctionArgExpr::Expr(marked)))
    }

    /// `ARRAY(query)`
    pub(super) fn array_of_query(&mut self) -> Parsed {
        let name = ObjectName::from(vec![self.ident()]);
        let query = self.query_in_parentheses()?;
        Ok(Ast::Function(function(
            name,
            FunctionArguments::Subquery(query),
        )))
    }

    /// CURRENT_DATE and its like, some with a precision.
    pub(super) fn session_value(&mut self) -> Parsed {
        let timed = matches!(
            self.keyword_at(0),
            Keyword::CURRENT_TIME
                | Keyword::CURRENT_TIMESTAMP
                | Keyword::LOCALTIME
                | Keyword::LOCALTIMESTAMP
        );
        let name = ObjectName::from(vec![self.ident()]);
        let mut args = FunctionArguments::None;
        if timed && self.take_token(&Token::LParen) {
            if !matches!(self.peek(), Token::Number(..)) {
                return self.unexpected();
            }
            args = arguments(vec![self.whole()?]);
            self.expect_token(&Token::RParen)?;
        }
        Ok(Ast::Function(function(name, args)))
    }

    /// Functions whose arguments are set apart by words.
    pub(super) fn special_call(&mut self, keyword: Keyword) -> Parsed {
        let name = self.ident();
        match keyword {
            Keyword::EXTRACT => self.extract(),
            Keyword::OVERLAY => self.overlay(name),
            Keyword::POSITION => self.position(),
            Keyword::SUBSTRING => self.substring(name),
            Keyword::TRIM => self.trim(),
            _ => self.unsupported(&name.value.to_uppercase()),
        }
    }

    fn extract(&mut self) -> Parsed {
        self.skip();
        let field = match self.peek() {
            Token::Word(Word { .. }) => self.ident(),
            token if is_string(token) => {
                let Token::EscapedStringLiteral(text) = self.next().token else {
                    unreachable!("a string was seen")
                };
                Ident::with_quote('\'', text)
            }
            _ => return self.unexpected(),
        };
        self.expect("FROM")?;
        let expr = Box::new(self.whole()?);
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Extract {
            field: DateTimeField::Custom(field),
            syntax: ExtractSyntax::From,
            expr,
        })
    }

    /// The rest of an ordinary call whose first argument was read.
    fn further(&mut self, name: Ident, first: Ast) -> Parsed {
        let mut args = vec![first];
        while self.take_token(&Token::Comma) {
            args.push(self.whole()?);
        }
        self.expect_token(&Token::RParen)?;
        let name = ObjectName::from(vec![name]);
        Ok(Ast::Function(function(name, arguments(args))))
    }

    fn overlay(&mut self, name: Ident) -> Parsed {
        self.skip();
        let first = self.whole()?;
        if !self.take("PLACING") {
            return self.further(name, first);
        }
        let overlay_what = Box::new(self.whole()?);
        self.expect("FROM")?;
        let overlay_from = Box::new(self.whole()?);
        let overlay_for = if self.take("FOR") {
            Some(Box::new(self.whole()?))
        } else {
            None
        };
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Overlay {
            expr: Box::new(first),
            overlay_what,
            overlay_from,
            overlay_for,
        })
    }

    fn position(&mut self) -> Parsed {
        self.skip();
        let expr = Box::new(self.level(Level::Or, Grammar::Restricted)?);
        self.expect("IN")?;
        let r#in = Box::new(self.level(Level::Or, Grammar::Restricted)?);
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Position { expr, r#in })
    }

    fn substring(&mut self, name: Ident) -> Parsed {
        self.skip();
        let first = self.whole()?;
        if self.is_at(0, "SIMILAR") {
            return self.unsupported("SUBSTRING ... SIMILAR");
        }
        let (mut substring_from, mut substring_for) = (None, None);
        loop {
            if substring_from.is_none() && self.take("FROM") {
                substring_from = Some(Box::new(self.whole()?));
            } else if substring_for.is_none() && self.take("FOR") {
                substring_for = Some(Box::new(self.whole()?));
            } else {
                break;
            }
        }
        if substring_from.is_none() && substring_for.is_none() {
            return self.further(name, first);
        }
        self.expect_token(&Token::RParen)?;
        Ok(Ast::Substring {
            expr: Box::new(first),
            substring_from,
            substring_for,
            special: false,
        })
    }

    /// `TRIM([BOTH | LEADING | TRAILING] [characters] [FROM] text)`
    fn trim(&mut self) -> Parsed {
        self.skip();
        let trim_where = if self.take("BOTH") {
            Some(TrimWhereField::Both)
        } else if self.take("LEADING") {
            Some(TrimWhereField::Leading)
        } else if self.take("TRAILING") {
            Some(TrimWhereField::Trailing)
        } else {
            None
        };
        let what = if self.is_at(0, "FROM") {
            None
        } else {
            Some(self.whole()?)
        };
        if self.take("FROM") {
            let mut list = self.list()?;
            if list.len() == 1 {
                self.expect_token(&Token::RParen)?;
                return Ok(Ast::Trim {
                    expr: Box::new(list.remove(0)),
                    trim_where,
                    trim_what: what.map(Box::new),
                    trim_characters: None,
                });
            }
            // The characters come behind all that follows FROM.
            list.extend(what);
            return self.trimmed(trim_where, list);
        }
        let mut list: Vec<Ast> = what.into_iter().collect();
        while self.take_token(&Token::Comma) {
            list.push(self.whole()?);
        }
        self.trimmed(trim_where, list)
    }

    /// TRIM as a call of the function that it stands for.
    fn trimmed(&mut self, side: Option<TrimWhereField>, args: Vec<Ast>) -> Parsed {
        self.expect_token(&Token::RParen)?;
        let name = Ident::new(match side {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        });
        let name = ObjectName::from(vec![name]);
        Ok(Ast::Function(function(name, arguments(args))))
    }
}
