//! Views into a JSON text.

use crate::JsonError;
use crate::lexer::{Lexer, Token};
use alloc::borrow::Cow;
use alloc::string::String;

/// The kinds of JSON values, in the order in which values of different kinds compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    String,
    Number,
    Bool,
    Array,
    Object,
}

impl Kind {
    /// What `jsonb_typeof` says.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::String => "string",
            Kind::Number => "number",
            Kind::Bool => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    /// Whether values have no parts.
    pub fn is_scalar(self) -> bool {
        !matches!(self, Kind::Array | Kind::Object)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// A value as the text that it is written in, without blanks around.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Value<'a>(&'a str);

impl<'a> Value<'a> {
    /// The value of a text that has been checked.
    pub fn new(text: &'a str) -> Value<'a> {
        Value(text.trim_matches(|c: char| c.is_ascii() && is_blank(c as u8)))
    }

    /// Its text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Its kind.
    pub fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            _ => Kind::Null,
        }
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// The characters that a string stands for.
    ///
    /// # Errors
    /// 22P05 and 22P02 for escapes that stand for no character, which `json` may hold.
    pub fn string(self) -> Result<Cow<'a, str>, JsonError> {
        let inner = self.0.strip_prefix('"').unwrap_or(self.0);
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        let mut lexer = Lexer::new(self.0, true);
        lexer.advance()?;
        Ok(Cow::Owned(match lexer.token {
            Token::String => lexer.string,
            _ => String::new(),
        }))
    }

    /// What `->>` gives: strings without quotes, other values as their text; `None` for null.
    ///
    /// # Errors
    /// As [`Value::string`].
    pub fn shown(self) -> Result<Option<Cow<'a, str>>, JsonError> {
        match self.kind() {
            Kind::Null => Ok(None),
            Kind::String => self.string().map(Some),
            _ => Ok(Some(Cow::Borrowed(self.0))),
        }
    }

    /// The elements of an array; none of other values.
    pub fn items(self) -> Items<'a> {
        let inner = self.0.strip_prefix('[');
        Items(Parts::new(inner))
    }

    /// The members of an object, in their order; none of other values.
    pub fn members(self) -> Members<'a> {
        let inner = self.0.strip_prefix('{');
        Members(Parts::new(inner))
    }

    /// The next part of a container behind `at`, which starts at 0: an element, or key and value
    /// in turn. For walks that are interrupted.
    pub fn part(self, at: &mut usize) -> Option<Value<'a>> {
        if self.kind().is_scalar() {
            return None;
        }
        let text = self.0.get(1..).unwrap_or("");
        let mut parts = Parts { text, at: *at };
        let value = parts.value();
        *at = parts.at;
        value
    }

    /// Number of elements or members.
    pub fn count(self) -> usize {
        match self.kind() {
            Kind::Array => self.items().count(),
            Kind::Object => self.members().count(),
            _ => 0,
        }
    }

    /// The value of a member of an object; of several with the key that of the last one.
    pub fn member(self, key: &str) -> Option<Value<'a>> {
        let mut found = None;
        for (name, value) in self.members() {
            if is_key(name, key) {
                found = Some(value);
            }
        }
        found
    }

    /// Element of an array, negative from its end.
    pub fn item(self, index: i64) -> Option<Value<'a>> {
        let index = position(index, || self.items().count())?;
        self.items().nth(index)
    }

    /// What a path leads to: keys of objects, and numbers for elements of arrays.
    pub fn at_path<'p>(self, path: impl Iterator<Item = &'p str>) -> Option<Value<'a>> {
        let mut value = self;
        for step in path {
            value = match value.kind() {
                Kind::Object => value.member(step)?,
                Kind::Array => value.item(index_of(step)?)?,
                _ => return None,
            };
        }
        Some(value)
    }
}

/// The index that a step of a path names.
pub(crate) fn index_of(step: &str) -> Option<i64> {
    let trimmed = step.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    trimmed.parse::<i32>().ok().map(i64::from)
}

/// An index from the start, of one that may count from the end.
pub(crate) fn position(index: i64, count: impl FnOnce() -> usize) -> Option<usize> {
    if index >= 0 {
        return usize::try_from(index).ok();
    }
    let back = usize::try_from(index.unsigned_abs()).ok()?;
    count().checked_sub(back)
}

/// Whether a string of JSON stands for this key.
fn is_key(name: Value<'_>, key: &str) -> bool {
    let inner = name.0.get(1..name.0.len().saturating_sub(1)).unwrap_or("");
    if inner == key {
        return !inner.contains('\\');
    }
    inner.len() > key.len() && inner.contains('\\') && name.string().is_ok_and(|name| name == key)
}

/// Walks over the parts of a container.
#[derive(Clone, Debug)]
struct Parts<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parts<'a> {
    fn new(inner: Option<&'a str>) -> Parts<'a> {
        Parts {
            text: inner.unwrap_or(""),
            at: 0,
        }
    }

    /// The next value; `None` at the end of the container.
    fn value(&mut self) -> Option<Value<'a>> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at)
            && (is_blank(*byte) || matches!(byte, b',' | b':'))
        {
            self.at += 1;
        }
        let start = self.at;
        let end = match bytes.get(start)? {
            b']' | b'}' => return None,
            b'"' => string_end(bytes, start),
            b'[' | b'{' => container_end(bytes, start),
            _ => {
                let ends = |byte: &u8| is_blank(*byte) || matches!(byte, b',' | b':' | b']' | b'}');
                bytes[start..]
                    .iter()
                    .position(ends)
                    .map_or(bytes.len(), |n| start + n)
            }
        };
        self.at = end;
        self.text.get(start..end).map(Value)
    }
}

/// End of the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// End of the array or object that starts at `start`.
fn container_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub struct Items<'a>(Parts<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.0.value()
    }
}

/// The members of an object: key as a string of JSON, and value.
#[derive(Clone, Debug)]
pub struct Members<'a>(Parts<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<(Value<'a>, Value<'a>)> {
        Some((self.0.value()?, self.0.value()?))
    }
}
