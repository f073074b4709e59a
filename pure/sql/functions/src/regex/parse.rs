//! Patterns to trees.

use super::invalid;
use base::{SqlError, SqlState};

/// Largest repetition count, as in PostgreSQL (`DUPMAX`).
const COUNT_MAX: u32 = 255;
/// Deepest nesting of groups: the parser and the compiler recurse.
const DEPTH_MAX: u32 = 200;

/// A parsed pattern.
pub(super) struct Parsed {
    pub(super) root: Node,
    pub(super) groups: usize,
    /// There are back references.
    pub(super) looks_back: bool,
    /// The first quantifier is lazy.
    pub(super) shortest: bool,
    pub(super) ignore_case: bool,
    pub(super) newline_sensitive: bool,
}

/// A part of a pattern.
pub(super) enum Node {
    Empty,
    Char(char),
    Any,
    Set(CharSet),
    Assert(Assertion),
    Concat(Vec<Node>),
    Alternatives(Vec<Node>),
    /// Capturing group number, from 0.
    Group(Box<Node>, usize),
    /// What the group took, once more.
    Back(usize),
    Repeat {
        node: Box<Node>,
        low: u32,
        high: Option<u32>,
        greedy: bool,
    },
}

/// Conditions on the characters around a position.
#[derive(Clone, Copy)]
pub(super) enum Assertion {
    LineStart,
    LineEnd,
    TextStart,
    TextEnd,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

/// A bracket expression.
#[derive(Clone, Default)]
pub(super) struct CharSet {
    pub(super) negated: bool,
    ranges: Vec<(char, char)>,
    classes: Vec<(Class, bool)>,
}

/// Named classes of characters.
#[derive(Clone, Copy)]
enum Class {
    Alpha,
    Digit,
    Alnum,
    Word,
    Space,
    Upper,
    Lower,
    Punct,
    Cntrl,
    Print,
    Graph,
    Blank,
    XDigit,
}

impl Class {
    fn named(name: &str) -> Option<Class> {
        Some(match name {
            "alpha" => Class::Alpha,
            "digit" => Class::Digit,
            "alnum" => Class::Alnum,
            "word" => Class::Word,
            "space" => Class::Space,
            "upper" => Class::Upper,
            "lower" => Class::Lower,
            "punct" => Class::Punct,
            "cntrl" => Class::Cntrl,
            "print" => Class::Print,
            "graph" => Class::Graph,
            "blank" => Class::Blank,
            "xdigit" => Class::XDigit,
            _ => return None,
        })
    }

    fn contains(self, c: char) -> bool {
        match self {
            Class::Alpha => c.is_alphabetic(),
            Class::Digit => c.is_ascii_digit(),
            Class::Alnum => c.is_alphanumeric(),
            Class::Word => c.is_alphanumeric() || c == '_',
            Class::Space => c.is_whitespace(),
            Class::Upper => c.is_uppercase(),
            Class::Lower => c.is_lowercase(),
            Class::Punct => c.is_ascii_punctuation(),
            Class::Cntrl => c.is_control(),
            Class::Print => !c.is_control(),
            Class::Graph => !c.is_control() && !c.is_whitespace(),
            Class::Blank => c == ' ' || c == '\t',
            Class::XDigit => c.is_ascii_hexdigit(),
        }
    }
}

impl CharSet {
    fn class(class: Class, negated: bool) -> CharSet {
        CharSet {
            negated: false,
            ranges: Vec::new(),
            classes: vec![(class, negated)],
        }
    }

    /// Whether `c` is listed; the caller applies `negated`.
    pub(super) fn contains(&self, c: char) -> bool {
        self.ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&c))
            || self
                .classes
                .iter()
                .any(|(class, negated)| class.contains(c) != *negated)
    }
}

struct Parser<'a> {
    rest: core::iter::Peekable<core::str::Chars<'a>>,
    groups: usize,
    /// Groups that have ended.
    closed: Vec<usize>,
    looks_back: bool,
    depth: u32,
    lazy_first: Option<bool>,
}

/// Parses a whole pattern.
pub(super) fn parse(pattern: &str) -> Result<Parsed, SqlError> {
    let (mut ignore_case, mut newline_sensitive, mut body) = (false, false, pattern);
    if let Some(literal) = pattern.strip_prefix("***=") {
        let root = Node::Concat(literal.chars().map(Node::Char).collect());
        return Ok(Parsed {
            root,
            groups: 0,
            looks_back: false,
            shortest: false,
            ignore_case,
            newline_sensitive,
        });
    }
    body = body.strip_prefix("***:").unwrap_or(body);
    if let Some(options) = body.strip_prefix("(?")
        && let Some((letters, rest)) = options.split_once(')')
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        for letter in letters.bytes() {
            match letter {
                b'i' => ignore_case = true,
                b'c' => ignore_case = false,
                b'n' | b'm' => newline_sensitive = true,
                b's' => newline_sensitive = false,
                b'e' | b't' => {}
                _ => return Err(invalid("invalid embedded option")),
            }
        }
        body = rest;
    }
    let mut parser = Parser {
        rest: body.chars().peekable(),
        groups: 0,
        closed: Vec::new(),
        looks_back: false,
        depth: 0,
        lazy_first: None,
    };
    let root = parser.alternatives()?;
    if parser.rest.next().is_some() {
        return Err(invalid("parentheses () not balanced"));
    }
    let shortest = parser.lazy_first == Some(true);
    Ok(Parsed {
        root,
        groups: parser.groups,
        looks_back: parser.looks_back,
        shortest,
        ignore_case,
        newline_sensitive,
    })
}

fn unsupported(what: &str) -> SqlError {
    let message = format!("{what} in regular expressions are not supported");
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Node, SqlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        let mut branches = vec![self.branch()?];
        while self.rest.next_if_eq(&'|').is_some() {
            branches.push(self.branch()?);
        }
        self.depth -= 1;
        if branches.len() == 1 {
            return Ok(branches.pop().expect("there is one"));
        }
        Ok(Node::Alternatives(branches))
    }

    fn branch(&mut self) -> Result<Node, SqlError> {
        let mut parts = Vec::new();
        while let Some(c) = self.rest.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            let atom = self.atom()?;
            parts.push(self.quantified(atom)?);
        }
        if parts.is_empty() {
            Ok(Node::Empty)
        } else {
            Ok(Node::Concat(parts))
        }
    }

    fn atom(&mut self) -> Result<Node, SqlError> {
        let c = self.rest.next().expect("the caller has seen a character");
        Ok(match c {
            '.' => Node::Any,
            '^' => Node::Assert(Assertion::LineStart),
            '$' => Node::Assert(Assertion::LineEnd),
            '[' => return self.bracket(),
            '(' => return self.group(),
            '\\' => return self.escape(),
            '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
            '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                return Err(invalid("quantifier operand invalid"));
            }
            other => Node::Char(other),
        })
    }

    fn group(&mut self) -> Result<Node, SqlError> {
        let mut number = None;
        if self.rest.next_if_eq(&'?').is_some() {
            match self.rest.next() {
                Some(':') => {}
                Some('=' | '!' | '<') => return Err(unsupported("look-around constraints")),
                _ => return Err(invalid("quantifier operand invalid")),
            }
        } else {
            number = Some(self.groups);
            self.groups += 1;
        }
        let inner = self.alternatives()?;
        if self.rest.next() != Some(')') {
            return Err(invalid("parentheses () not balanced"));
        }
        Ok(match number {
            Some(number) => {
                self.closed.push(number);
                Node::Group(Box::new(inner), number)
            }
            None => inner,
        })
    }

    fn escape(&mut self) -> Result<Node, SqlError> {
        let Some(c) = self.rest.next() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        if let Some(set) = shorthand(c) {
            return Ok(Node::Set(set));
        }
        Ok(match c {
            'A' => Node::Assert(Assertion::TextStart),
            'Z' => Node::Assert(Assertion::TextEnd),
            'm' => Node::Assert(Assertion::WordStart),
            'M' => Node::Assert(Assertion::WordEnd),
            'y' => Node::Assert(Assertion::WordEdge),
            'Y' => Node::Assert(Assertion::NoWordEdge),
            '1'..='9' => return self.back(c),
            other => Node::Char(self.escaped_char(other)?),
        })
    }

    /// The group that a number behind a backslash names; of several digits it may be the code of a
    /// character.
    fn back(&mut self, first: char) -> Result<Node, SqlError> {
        let mut ahead = self.rest.clone();
        let mut number = first.to_digit(10).expect("a digit was seen") as usize;
        let mut digits = 0;
        while let Some(digit) = ahead.next_if(char::is_ascii_digit) {
            let digit = digit.to_digit(10).expect("an ASCII digit") as usize;
            number = number.saturating_mul(10).saturating_add(digit);
            digits += 1;
        }
        if self.closed.contains(&(number - 1)) {
            self.rest = ahead;
            self.looks_back = true;
            return Ok(Node::Back(number - 1));
        }
        if digits == 0 {
            return Err(invalid("invalid backreference number"));
        }
        let mut code = first.to_digit(8);
        for _ in 0..2 {
            let octal = self.rest.next_if(|c| c.is_digit(8));
            let Some(digit) = octal.and_then(|c| c.to_digit(8)) else {
                break;
            };
            code = code.map(|code| code * 8 + digit);
        }
        let character = code.filter(|code| *code < 256).and_then(char::from_u32);
        let character = character.filter(|c| *c != '\0');
        character
            .map(Node::Char)
            .ok_or_else(|| invalid("invalid backreference number"))
    }

    /// The character that backslash and `c` stand for.
    fn escaped_char(&mut self, c: char) -> Result<char, SqlError> {
        let hex = |parser: &mut Self, digits: usize| {
            let mut code = 0;
            for _ in 0..digits {
                let digit = parser.rest.next().and_then(|c| c.to_digit(16));
                code = code * 16 + digit.ok_or_else(|| invalid("invalid escape \\ sequence"))?;
            }
            char::from_u32(code).ok_or_else(|| invalid("invalid escape \\ sequence"))
        };
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\x0c',
            'v' => '\x0b',
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            '0' => '\0',
            'u' => hex(self, 4)?,
            'x' => hex(self, 2)?,
            other if other.is_ascii_alphanumeric() => {
                return Err(invalid("invalid escape \\ sequence"));
            }
            other => other,
        })
    }

    fn bracket(&mut self) -> Result<Node, SqlError> {
        let unbalanced = || invalid("brackets [] not balanced");
        let mut set = CharSet {
            negated: self.rest.next_if_eq(&'^').is_some(),
            ..Default::default()
        };
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(unbalanced)?;
            if c == ']' && !first {
                return Ok(Node::Set(set));
            }
            first = false;
            if c == '[' && self.rest.next_if_eq(&':').is_some() {
                let mut name = String::new();
                while let Some(letter) = self.rest.next_if(|c| c.is_ascii_alphanumeric()) {
                    name.push(letter);
                }
                if self.rest.next() != Some(':') || self.rest.next() != Some(']') {
                    return Err(unbalanced());
                }
                let class = Class::named(&name);
                set.classes.push((
                    class.ok_or_else(|| invalid("invalid character class"))?,
                    false,
                ));
                continue;
            }
            let low = match c {
                '\\' => {
                    let c = self.rest.next().ok_or_else(unbalanced)?;
                    if let Some(class) = shorthand(c) {
                        set.classes.extend(class.classes);
                        continue;
                    }
                    self.escaped_char(c)?
                }
                '[' if matches!(self.rest.peek(), Some('.' | '=')) => {
                    return Err(unsupported("collating elements"));
                }
                other => other,
            };
            let high = self.range_end(low)?;
            if low > high {
                return Err(invalid("invalid character range"));
            }
            set.ranges.push((low, high));
        }
    }

    /// The upper end of a range that began with `low`, or `low` if there is no `-x` after it.
    fn range_end(&mut self, low: char) -> Result<char, SqlError> {
        let mut ahead = self.rest.clone();
        if ahead.next() != Some('-') || matches!(ahead.next(), Some(']') | None) {
            return Ok(low);
        }
        self.rest.next();
        match self.rest.next() {
            Some('\\') => {
                let c = self
                    .rest
                    .next()
                    .ok_or_else(|| invalid("brackets [] not balanced"))?;
                self.escaped_char(c)
            }
            Some(high) => Ok(high),
            None => Err(invalid("brackets [] not balanced")),
        }
    }

    fn quantified(&mut self, atom: Node) -> Result<Node, SqlError> {
        let (low, high) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let mut ahead = self.rest.clone();
                ahead.next();
                if !ahead.next().is_some_and(|c| c.is_ascii_digit()) {
                    return Ok(atom);
                }
                self.rest.next();
                let bounds = self.bounds()?;
                return self.repeat(atom, bounds);
            }
            _ => return Ok(atom),
        };
        self.rest.next();
        self.repeat(atom, (low, high))
    }

    /// Reads `m}`, `m,}` or `m,n}`.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), SqlError> {
        let bad = || invalid("invalid repetition count(s)");
        let low = self.count().ok_or_else(bad)?;
        let mut high = Some(low);
        if self.rest.next_if_eq(&',').is_some() {
            high = match self.rest.peek() {
                Some('}') => None,
                _ => Some(self.count().ok_or_else(bad)?),
            };
        }
        if self.rest.next() != Some('}') || high.is_some_and(|high| high < low) {
            return Err(bad());
        }
        Ok((low, high))
    }

    fn count(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            let digit = digit.to_digit(10).expect("an ASCII digit");
            value = Some(
                value
                    .unwrap_or(0u32)
                    .saturating_mul(10)
                    .saturating_add(digit),
            );
        }
        value.filter(|value| *value <= COUNT_MAX)
    }

    fn repeat(&mut self, atom: Node, (low, high): (u32, Option<u32>)) -> Result<Node, SqlError> {
        if matches!(atom, Node::Assert(_)) {
            return Err(invalid("quantifier operand invalid"));
        }
        let lazy = self.rest.next_if_eq(&'?').is_some();
        self.lazy_first.get_or_insert(lazy);
        if matches!(self.rest.peek(), Some('*' | '+' | '?')) {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(Node::Repeat {
            node: Box::new(atom),
            low,
            high,
            greedy: !lazy,
        })
    }
}

/// The set of `\d` and its like.
fn shorthand(c: char) -> Option<CharSet> {
    let class = match c {
        'd' | 'D' => Class::Digit,
        'w' | 'W' => Class::Word,
        's' | 'S' => Class::Space,
        _ => return None,
    };
    Some(CharSet::class(class, c.is_ascii_uppercase()))
}
