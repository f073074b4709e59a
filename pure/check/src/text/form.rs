//! What EDN and JSON have in common: a tree of values, a cursor over the text, errors with lines.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Deeper nesting is refused, so that hostile text cannot exhaust the stack.
pub(crate) const DEPTH_MAX: usize = 64;

/// A value of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Nil,
    Bool,
    Int(i128),
    /// A string.
    Text(String),
    /// An EDN keyword or symbol, without its colon.
    Word(String),
    /// A number that is no whole one, a character: nothing that a history needs.
    Other,
    List(Vec<Form>),
    Map(Vec<(Form, Form)>),
}

impl Form {
    /// The text of a string, keyword or symbol.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Form::Text(text) | Form::Word(text) => Some(text),
            Form::Nil | Form::Bool | Form::Int(_) | Form::Other | Form::List(_) | Form::Map(_) => {
                None
            }
        }
    }

    pub(crate) fn int(&self) -> Option<i128> {
        let Form::Int(value) = self else {
            return None;
        };
        Some(*value)
    }

    pub(crate) fn list(&self) -> Option<&[Form]> {
        let Form::List(list) = self else {
            return None;
        };
        Some(list)
    }

    /// What a map holds under `name`, if it is a map and has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Form> {
        let Form::Map(entries) = self else {
            return None;
        };
        let entry = entries.iter().find(|(key, _)| key.word() == Some(name));
        entry.map(|(_, value)| value)
    }
}

/// Why a text is no history. Nothing of it was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Line, from 1, where the operation or the mistake begins.
    pub line: u32,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// The text ends inside of something.
    UnexpectedEnd,
    /// A character that cannot be here.
    Unexpected(char),
    /// Nested deeper than anybody writes.
    TooDeep,
    /// A number that does not fit into 64 bits.
    NumberTooLarge,
    /// A string with an escape that does not exist.
    BadEscape,
    /// An operation is no map.
    NotAnOperation,
    /// An operation lacks this field, or it is of the wrong type.
    Field(&'static str),
    /// `:type` is none of invoke, ok, fail, info.
    UnknownType(String),
    /// `:value` holds something that is no micro-operation such as `[:append 3 2]`.
    BadMicroOp(String),
    /// A process began an operation before its last one had ended.
    Overlap {
        /// Which process.
        process: u32,
    },
    /// An operation ended that had not begun.
    NeverInvoked {
        /// Which process.
        process: u32,
    },
    /// An operation ended before it began, or began before the one before it had ended.
    TimeRunsBack {
        /// Which process.
        process: u32,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.wrong)
    }
}

impl core::error::Error for ReadError {}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::UnexpectedEnd => f.write_str("the text ends too early"),
            Wrong::Unexpected(found) => write!(f, "unexpected {found:?}"),
            Wrong::TooDeep => write!(f, "nested deeper than {DEPTH_MAX}"),
            Wrong::NumberTooLarge => f.write_str("a number does not fit into 64 bits"),
            Wrong::BadEscape => f.write_str("a string has an escape that does not exist"),
            Wrong::NotAnOperation => f.write_str("an operation must be a map"),
            Wrong::Field(name) => write!(f, "the field {name:?} is missing or of a wrong type"),
            Wrong::UnknownType(name) => {
                write!(f, "type {name:?} is none of invoke, ok, fail, info")
            }
            Wrong::BadMicroOp(what) => write!(f, "no micro-operation: {what}"),
            Wrong::Overlap { process } => {
                write!(
                    f,
                    "process {process} begins before its last operation has ended"
                )
            }
            Wrong::NeverInvoked { process } => {
                write!(
                    f,
                    "an operation of process {process} ends that has not begun"
                )
            }
            Wrong::TimeRunsBack { process } => {
                write!(f, "the times of process {process} run back")
            }
        }
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Cursor<'t> {
        Cursor {
            text,
            at: 0,
            line: 1,
        }
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Takes one character.
    pub(crate) fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        self.line += u32::from(next == '\n');
        Some(next)
    }

    /// Takes one character, which must be there.
    pub(crate) fn need(&mut self) -> Result<char, ReadError> {
        self.take().ok_or(self.error(Wrong::UnexpectedEnd))
    }

    /// Takes characters as long as `wanted` says so.
    pub(crate) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let begin = self.at;
        while self.peek().is_some_and(&wanted) {
            self.take();
        }
        &self.text[begin..self.at]
    }

    pub(crate) fn error(&self, wrong: Wrong) -> ReadError {
        ReadError {
            line: self.line,
            wrong,
        }
    }

    /// The error for whatever comes next.
    pub(crate) fn unexpected(&self) -> ReadError {
        match self.peek() {
            Some(found) => self.error(Wrong::Unexpected(found)),
            None => self.error(Wrong::UnexpectedEnd),
        }
    }

    /// The rest of a string behind its opening quote.
    pub(crate) fn string(&mut self) -> Result<String, ReadError> {
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|c| c != '"' && c != '\\'));
            if self.need()? == '"' {
                return Ok(text);
            }
            let escaped = match self.need()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                same @ ('"' | '\\' | '/') => same,
                'u' => self.unicode()?,
                _ => return Err(self.error(Wrong::BadEscape)),
            };
            text.push(escaped);
        }
    }

    /// Four hexadecimal digits; half of a surrogate pair becomes the replacement character.
    fn unicode(&mut self) -> Result<char, ReadError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.need()?.to_digit(16);
            code = code * 16 + digit.ok_or(self.error(Wrong::BadEscape))?;
        }
        Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// A number, or `Other` for one that is no whole one. `word` is all that belongs to it.
    pub(crate) fn number(&self, word: &str) -> Result<Form, ReadError> {
        let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
        let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !whole {
            let rest = digits.bytes();
            let plausible = rest
                .clone()
                .all(|byte| byte.is_ascii_digit() || b".eE+-/MN".contains(&byte));
            if !plausible || !digits.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(self.error(Wrong::Unexpected(word.chars().next().unwrap_or(' '))));
            }
            return Ok(Form::Other);
        }
        let bounds = i128::from(i64::MIN)..=i128::from(u64::MAX);
        let value = word.strip_prefix('+').unwrap_or(word).parse().ok();
        let value = value.filter(|value| bounds.contains(value));
        value
            .map(Form::Int)
            .ok_or(self.error(Wrong::NumberTooLarge))
    }
}
