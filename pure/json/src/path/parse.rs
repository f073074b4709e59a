//! Text to tree: by descent, with the precedence of operators as PostgreSQL has it.

use super::lexer::{Lexer, Token};
use super::{
    Binary, Head, LAST_LEVEL, Method, Node, PATH_DEPTH_MAX, PATH_NESTED_MAX, Path, Pattern, Step,
};
use super::{syntax, too_deep};
use crate::JsonError;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A part that has been read.
struct Part {
    node: Node,
    kind: Kind,
    /// Levels of nesting in it.
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Gives items.
    Value,
    /// A condition.
    Condition,
    /// A condition in parentheses.
    Closed,
    /// `exists (..)`
    Exists,
}

impl Part {
    fn value(head: Head) -> Part {
        Part {
            node: Node::of(head),
            kind: Kind::Value,
            depth: 1,
        }
    }

    /// The part, with a head around it.
    fn within(self, kind: Kind, head: impl FnOnce(Box<Node>) -> Head) -> Result<Part, JsonError> {
        Ok(Part {
            node: Node::of(head(Box::new(self.node))),
            kind,
            depth: deeper(self.depth)?,
        })
    }

    fn joined(self, op: Binary, right: Part, kind: Kind) -> Result<Part, JsonError> {
        let depth = deeper(self.depth.max(right.depth))?;
        let head = Head::Binary(op, Box::new(self.node), Box::new(right.node));
        Ok(Part {
            node: Node::of(head),
            kind,
            depth,
        })
    }
}

fn deeper(depth: usize) -> Result<usize, JsonError> {
    match depth < PATH_DEPTH_MAX {
        true => Ok(depth + 1),
        false => Err(too_deep()),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    /// Parentheses, subscripts and signs around the current word.
    depth: usize,
}

/// The path of a text.
pub(super) fn parse(text: &str) -> Result<Path, JsonError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    if token == Token::End {
        let message = format!("invalid input syntax for type jsonpath: \"{text}\"");
        return Err(JsonError::new("22P02", message));
    }
    let mut parser = Parser {
        lexer,
        token,
        depth: 0,
    };
    let strict = parser.is_keyword("strict");
    if strict || parser.is_keyword("lax") {
        parser.advance()?;
    }
    let part = parser.disjunction()?;
    if parser.token != Token::End {
        return Err(parser.unexpected());
    }
    Ok(Path {
        strict,
        root: part.node,
    })
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token, JsonError> {
        let next = self.lexer.next()?;
        Ok(core::mem::replace(&mut self.token, next))
    }

    fn unexpected(&self) -> JsonError {
        self.lexer.error("syntax error")
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(known) if known == sign)
    }

    fn is_keyword(&self, word: &str) -> bool {
        matches!(self.token, Token::Keyword(known, _) if known == word)
    }

    /// Passes over a sign, if it stands here.
    fn eat(&mut self, sign: &str) -> Result<bool, JsonError> {
        let is_there = self.is_sign(sign);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, sign: &str) -> Result<(), JsonError> {
        match self.eat(sign)? {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn expect_keyword(&mut self, word: &str) -> Result<(), JsonError> {
        match self.is_keyword(word) {
            true => self.advance().map(|_| ()),
            false => Err(self.unexpected()),
        }
    }

    /// A part of one of the kinds; what stands behind another one is unexpected.
    fn only(&self, part: Part, condition: bool) -> Result<Part, JsonError> {
        match condition == (part.kind != Kind::Value) {
            true => Ok(part),
            false => Err(self.unexpected()),
        }
    }

    fn inside(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Part, JsonError>,
    ) -> Result<Part, JsonError> {
        if self.depth == PATH_NESTED_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let part = read(self);
        self.depth -= 1;
        part
    }

    fn disjunction(&mut self) -> Result<Part, JsonError> {
        let mut left = self.conjunction()?;
        while left.kind != Kind::Value && self.eat("||")? {
            let right = self.conjunction()?;
            let right = self.only(right, true)?;
            left = left.joined(Binary::Or, right, Kind::Condition)?;
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Part, JsonError> {
        let mut left = self.comparison()?;
        while left.kind != Kind::Value && self.eat("&&")? {
            let right = self.comparison()?;
            let right = self.only(right, true)?;
            left = left.joined(Binary::And, right, Kind::Condition)?;
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Part, JsonError> {
        if self.eat("!")? {
            let is_exists = self.is_keyword("exists");
            if !is_exists && !self.is_sign("(") {
                return Err(self.unexpected());
            }
            let of = match is_exists {
                true => self.primary()?,
                false => self.parenthesised()?,
            };
            return self.only(of, true)?.within(Kind::Condition, Head::Not);
        }
        let left = self.sum()?;
        if left.kind != Kind::Value {
            if left.kind == Kind::Closed && self.is_keyword("is") {
                return self.is_unknown(left);
            }
            return Ok(left);
        }
        let op = match self.token {
            Token::Sign("==") => Binary::Equal,
            Token::Sign("!=") => Binary::NotEqual,
            Token::Sign("<") => Binary::Less,
            Token::Sign("<=") => Binary::LessOrEqual,
            Token::Sign(">") => Binary::Greater,
            Token::Sign(">=") => Binary::GreaterOrEqual,
            Token::Keyword("starts", _) => return self.starts_with(left),
            Token::Keyword("like_regex", _) => return self.like_regex(left),
            _ => return Ok(left),
        };
        self.advance()?;
        let right = self.sum()?;
        let right = self.only(right, false)?;
        left.joined(op, right, Kind::Condition)
    }

    fn is_unknown(&mut self, of: Part) -> Result<Part, JsonError> {
        self.advance()?;
        self.expect_keyword("unknown")?;
        of.within(Kind::Condition, Head::IsUnknown)
    }

    fn starts_with(&mut self, left: Part) -> Result<Part, JsonError> {
        self.advance()?;
        self.expect_keyword("with")?;
        let start = match &mut self.token {
            Token::Text(text) => Head::Text(core::mem::take(text)),
            Token::Variable(name) => Head::Variable(core::mem::take(name)),
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        let start = Box::new(Node::of(start));
        left.within(Kind::Condition, |left| Head::StartsWith(left, start))
    }

    fn like_regex(&mut self, left: Part) -> Result<Part, JsonError> {
        self.advance()?;
        let text = self.string()?;
        let mut pattern = Pattern {
            text,
            ignore_case: false,
            dot_all: false,
            multi_line: false,
            extended: false,
            quoted: false,
        };
        if self.is_keyword("flag") {
            self.advance()?;
            for flag in self.string()?.chars() {
                match flag {
                    'i' => pattern.ignore_case = true,
                    's' => pattern.dot_all = true,
                    'm' => pattern.multi_line = true,
                    'x' => pattern.extended = true,
                    'q' => pattern.quoted = true,
                    _ => {
                        let message = "invalid input syntax for type jsonpath";
                        let mut error = syntax(message);
                        error.detail = format!(
                            "Unrecognized flag character \"{flag}\" in LIKE_REGEX predicate."
                        );
                        return Err(error);
                    }
                }
            }
        }
        if pattern.extended && !pattern.quoted {
            let message = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
            return Err(JsonError::new("0A000", message));
        }
        left.within(Kind::Condition, |left| Head::LikeRegex(left, pattern))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let Token::Text(text) = &mut self.token else {
            return Err(self.unexpected());
        };
        let text = core::mem::take(text);
        self.advance()?;
        Ok(text)
    }

    fn sum(&mut self) -> Result<Part, JsonError> {
        self.operators(
            |sign| match sign {
                "+" => Some(Binary::Add),
                "-" => Some(Binary::Sub),
                _ => None,
            },
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Part, JsonError> {
        self.operators(
            |sign| match sign {
                "*" => Some(Binary::Mul),
                "/" => Some(Binary::Div),
                "%" => Some(Binary::Mod),
                _ => None,
            },
            Self::signed,
        )
    }

    fn operators(
        &mut self,
        op: fn(&str) -> Option<Binary>,
        operand: fn(&mut Self) -> Result<Part, JsonError>,
    ) -> Result<Part, JsonError> {
        let mut left = operand(self)?;
        while left.kind == Kind::Value
            && let Token::Sign(sign) = self.token
            && let Some(op) = op(sign)
        {
            self.advance()?;
            let right = operand(self)?;
            let right = self.only(right, false)?;
            left = left.joined(op, right, Kind::Value)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Part, JsonError> {
        let negative = self.is_sign("-");
        if !negative && !self.is_sign("+") {
            return self.primary();
        }
        self.advance()?;
        let of = self.inside(Self::signed)?;
        let mut of = self.only(of, false)?;
        if let Node {
            head: Head::Number(number),
            steps,
        } = &mut of.node
            && steps.is_empty()
        {
            if negative {
                negate(number);
            }
            return Ok(of);
        }
        of.within(Kind::Value, |of| Head::Sign { negative, of })
    }

    /// `(...)`: what stands in it, a condition as a closed one.
    fn parenthesised(&mut self) -> Result<Part, JsonError> {
        self.expect("(")?;
        let mut part = self.inside(Self::disjunction)?;
        self.expect(")")?;
        if part.kind != Kind::Value {
            part.kind = Kind::Closed;
        }
        Ok(part)
    }

    fn primary(&mut self) -> Result<Part, JsonError> {
        if self.is_sign("(") {
            let part = self.parenthesised()?;
            return self.steps(part);
        }
        if self.is_keyword("exists") {
            self.advance()?;
            self.expect("(")?;
            let of = self.inside(Self::disjunction)?;
            let of = self.only(of, false)?;
            self.expect(")")?;
            return of.within(Kind::Exists, Head::Exists);
        }
        let head = match &mut self.token {
            Token::Sign("$") => Head::Root,
            Token::Sign("@") => Head::Current,
            Token::Keyword("last", _) => Head::Last,
            Token::Keyword("null", _) => Head::Null,
            Token::Keyword("true", _) => Head::Bool(true),
            Token::Keyword("false", _) => Head::Bool(false),
            Token::Text(text) => Head::Text(core::mem::take(text)),
            Token::Variable(name) => Head::Variable(core::mem::take(name)),
            Token::Integer(number) | Token::Number(number) => Head::Number(core::mem::take(number)),
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        self.steps(Part::value(head))
    }

    fn is_step(&self) -> bool {
        self.is_sign(".") || self.is_sign("[") || self.is_sign("?")
    }

    fn steps(&mut self, mut part: Part) -> Result<Part, JsonError> {
        while self.is_step() {
            let mut inner = 0;
            let step = match self.advance()? {
                Token::Sign(".") => self.member()?,
                Token::Sign("[") => self.subscripts(&mut inner)?,
                _ => {
                    self.expect("(")?;
                    let condition = self.inside(Self::disjunction)?;
                    let condition = self.only(condition, true)?;
                    self.expect(")")?;
                    inner = condition.depth;
                    Step::Filter(Box::new(condition.node))
                }
            };
            part.node.steps.push(step);
            part.kind = Kind::Value;
            part.depth = deeper(part.depth.max(inner))?;
        }
        Ok(part)
    }

    /// What follows a dot.
    fn member(&mut self) -> Result<Step, JsonError> {
        Ok(match self.advance_member()? {
            Token::Sign("*") => Step::AnyKey,
            Token::Sign("**") => self.levels()?,
            Token::Keyword(word, written) => {
                let method = match word {
                    "abs" => Some(Method::Abs),
                    "ceiling" => Some(Method::Ceiling),
                    "double" => Some(Method::Double),
                    "floor" => Some(Method::Floor),
                    "keyvalue" => Some(Method::KeyValue),
                    "size" => Some(Method::Size),
                    "type" => Some(Method::Type),
                    _ => None,
                };
                if word == "datetime" && self.eat("(")? {
                    let template = match self.is_sign(")") {
                        true => None,
                        false => Some(self.string()?),
                    };
                    self.expect(")")?;
                    return Ok(Step::Datetime(template));
                }
                match method {
                    Some(method) if self.eat("(")? => {
                        self.expect(")")?;
                        Step::Method(method)
                    }
                    _ => Step::Key(written),
                }
            }
            Token::Word(key) | Token::Text(key) => Step::Key(key),
            _ => return Err(self.unexpected()),
        })
    }

    /// The word behind a dot, if it can stand there.
    fn advance_member(&mut self) -> Result<Token, JsonError> {
        match self.token {
            Token::Sign("*" | "**") | Token::Keyword(..) | Token::Word(_) | Token::Text(_) => {
                self.advance()
            }
            _ => Err(self.unexpected()),
        }
    }

    /// What follows `.**`.
    fn levels(&mut self) -> Result<Step, JsonError> {
        if !self.eat("{")? {
            return Ok(Step::Any {
                first: 0,
                last: LAST_LEVEL,
            });
        }
        let first = self.level()?;
        let last = match self.is_keyword("to") {
            true => {
                self.advance()?;
                self.level()?
            }
            false => first,
        };
        self.expect("}")?;
        Ok(Step::Any { first, last })
    }

    fn level(&mut self) -> Result<u32, JsonError> {
        let level = match &self.token {
            Token::Keyword("last", _) => LAST_LEVEL,
            Token::Integer(number) => {
                let level = number.parse::<i32>().ok();
                level.map(i32::unsigned_abs).ok_or_else(|| {
                    let message = format!("value \"{number}\" is out of range for type integer");
                    JsonError::new("22003", message)
                })?
            }
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(level)
    }

    /// What follows `[`.
    fn subscripts(&mut self, depth: &mut usize) -> Result<Step, JsonError> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Step::AnyItem);
        }
        let mut items = Vec::new();
        loop {
            let from = self.subscript(depth)?;
            let to = match self.is_keyword("to") {
                true => {
                    self.advance()?;
                    Some(self.subscript(depth)?)
                }
                false => None,
            };
            items.push((from, to));
            if !self.eat(",")? {
                break;
            }
        }
        self.expect("]")?;
        Ok(Step::Items(items))
    }

    fn subscript(&mut self, depth: &mut usize) -> Result<Node, JsonError> {
        let part = self.inside(Self::sum)?;
        let part = self.only(part, false)?;
        *depth = part.depth.max(*depth);
        Ok(part.node)
    }
}

/// Changes the sign of a number; zero has none.
fn negate(number: &mut String) {
    let is_zero = number.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    match number.strip_prefix('-') {
        Some(rest) => *number = rest.to_string(),
        None if !is_zero => number.insert(0, '-'),
        None => {}
    }
}
