//! Text form of arrays: `{1,NULL,"a b"}`, `{{1,2},{3,4}}`, `[0:1]={1,2}`; of vectors: `1 2`.

use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
use crate::grid::{DIMENSIONS_MAX, Dimension, Shape, too_many_dimensions};
use crate::zone::Zone;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Reads an array literal whose elements have type `element`.
pub(super) fn parse_array(
    text: &str,
    element: Type,
    zone: Option<&Zone>,
) -> Result<Datum, SqlError> {
    let (shape, items) = read(text).map_err(|bad| bad.about(text).error())?;
    let items = items.into_iter().map(|item| match item {
        Some(item) => super::parse_with(zone, element, &item),
        None => Ok(Datum::Null),
    });
    Ok(Datum::shaped(shape, items.collect::<Result<_, _>>()?))
}

/// Why a text is no array.
enum Bad {
    /// 22P02, with this detail.
    Malformed(String),
    Error(SqlError),
}

impl Bad {
    /// The error of this text.
    fn about(self, text: &str) -> Bad {
        match self {
            Bad::Malformed(detail) => {
                let message = format!("malformed array literal: \"{text}\"");
                Bad::Error(SqlError::new(SqlState::INVALID_TEXT, message).detail(detail))
            }
            error => error,
        }
    }

    fn error(self) -> SqlError {
        match self {
            Bad::Malformed(detail) => SqlError::new(SqlState::INVALID_TEXT, detail),
            Bad::Error(error) => error,
        }
    }
}

impl From<SqlError> for Bad {
    fn from(error: SqlError) -> Bad {
        Bad::Error(error)
    }
}

fn malformed<T>(detail: &str) -> Result<T, Bad> {
    Err(Bad::Malformed(detail.into()))
}

fn unexpected<T>(c: char) -> Result<T, Bad> {
    Err(Bad::Malformed(format!("Unexpected \"{c}\" character.")))
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// The shape and the texts of the items (`None`: NULL).
fn read(text: &str) -> Result<(Shape, Vec<Option<String>>), Bad> {
    let (bounds, body) = read_bounds(text.trim_start_matches(is_space))?;
    if !body.starts_with('{') {
        return malformed(match bounds.is_empty() {
            true => "Array value must start with \"{\" or dimension information.",
            false => "Array contents must start with \"{\".",
        });
    }
    let mut reader = Reader::default();
    let rest = reader.braces(body).map_err(|bad| bad.about(body))?;
    if !rest.chars().all(is_space) {
        let junk = Bad::Malformed("Junk after closing right brace.".into());
        return Err(junk.about(body));
    }
    let lengths = match reader.items.is_empty() {
        true => &[],
        false => &reader.lengths[..reader.depth],
    };
    let dimensions: Vec<Dimension> = match bounds.is_empty() {
        true => lengths
            .iter()
            .map(|length| Dimension::of(*length))
            .collect(),
        false => {
            let counts = bounds.iter().map(|one| one.length as usize);
            if !counts.eq(lengths.iter().copied()) {
                return malformed("Specified array dimensions do not match array contents.");
            }
            bounds
        }
    };
    Ok((Shape::new(&dimensions)?, reader.items))
}

/// `[low:high]...=`, and what stands behind it.
fn read_bounds(text: &str) -> Result<(Vec<Dimension>, &str), Bad> {
    let mut bounds = Vec::new();
    let mut rest = text;
    while let Some(inner) = rest.strip_prefix('[') {
        if bounds.len() == DIMENSIONS_MAX {
            return Err(too_many_dimensions(DIMENSIONS_MAX + 1).into());
        }
        let (first, behind) = split_number(inner);
        if first.is_empty() {
            return malformed("\"[\" must introduce explicitly-specified array dimensions.");
        }
        let (lower, upper, behind) = match behind.strip_prefix(':') {
            None => (1, number(first)?, behind),
            Some(behind) => match split_number(behind) {
                ("", _) => return malformed("Missing array dimension value."),
                (upper, behind) => (number(first)?, number(upper)?, behind),
            },
        };
        let Some(behind) = behind.strip_prefix(']') else {
            return malformed("Missing \"]\" after array dimensions.");
        };
        let length = i64::from(upper) - i64::from(lower) + 1;
        if length < 1 {
            let message = "upper bound cannot be less than lower bound";
            return Err(SqlError::new(SqlState::ARRAY_SUBSCRIPT, message).into());
        }
        bounds.push(Dimension {
            length: i32::try_from(length).unwrap_or(i32::MAX),
            lower,
        });
        rest = behind.trim_start_matches(is_space);
    }
    if bounds.is_empty() {
        return Ok((bounds, rest));
    }
    match rest.strip_prefix('=') {
        Some(body) => Ok((bounds, body.trim_start_matches(is_space))),
        None => malformed("Missing \"=\" after array dimensions."),
    }
}

fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-' && c != '+');
    text.split_at(end.unwrap_or(text.len()))
}

fn number(text: &str) -> Result<i32, Bad> {
    text.parse().map_err(|_| {
        let message = format!("array bound is not an integer: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT, message).into()
    })
}

/// What stands before a character outside of quotes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// Nothing.
    #[default]
    Start,
    /// `{`
    Opened,
    /// A part of an item without quotes.
    Item,
    /// A part of an item in quotes.
    Quoted,
    /// The quote that ends an item.
    Unquoted,
    /// `,` behind an item.
    NextItem,
    /// `}`
    Closed,
    /// `,` behind `}`
    NextLevel,
}

/// What has been read of the braces of an array.
#[derive(Default)]
struct Reader {
    items: Vec<Option<String>>,
    /// Items of each level that has been closed, the outermost first; 0: none has been.
    lengths: [usize; DIMENSIONS_MAX],
    /// Levels in which the items stand; 0: no item has been met.
    depth: usize,
    /// Items so far of the levels that are open.
    open: Vec<usize>,
    state: State,
    /// The item that is being read.
    item: String,
    /// Its bytes that stay even if they are blank: behind quotes and escapes.
    fixed: usize,
    escaped: bool,
}

impl Reader {
    /// Reads up to the last brace; what stands behind it.
    fn braces<'t>(&mut self, text: &'t str) -> Result<&'t str, Bad> {
        let mut chars = text.char_indices();
        let mut in_quotes = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => {
                    self.start_item(in_quotes, State::Item, || unexpected('\\'))?;
                    let Some((_, escaped)) = chars.next() else {
                        break;
                    };
                    self.item.push(escaped);
                    self.keep();
                }
                '"' if in_quotes => {
                    (in_quotes, self.state) = (false, State::Unquoted);
                    self.keep();
                }
                '"' => {
                    if !matches!(self.state, State::Opened | State::NextItem) {
                        return malformed("Unexpected array element.");
                    }
                    (in_quotes, self.state, self.escaped) = (true, State::Quoted, true);
                }
                _ if in_quotes => self.item.push(c),
                '{' => self.open()?,
                '}' => {
                    self.close()?;
                    if self.open.is_empty() {
                        return Ok(&text[at + 1..]);
                    }
                }
                ',' => self.next()?,
                _ if is_space(c) => {
                    if self.state == State::Item {
                        self.item.push(c);
                    }
                }
                _ => {
                    self.start_item(false, State::Item, || {
                        malformed("Unexpected array element.")
                    })?;
                    self.item.push(c);
                }
            }
        }
        malformed("Unexpected end of input.")
    }

    /// A character of an item is next.
    fn start_item(
        &mut self,
        in_quotes: bool,
        state: State,
        wrong: impl Fn() -> Result<(), Bad>,
    ) -> Result<(), Bad> {
        match self.state {
            _ if in_quotes => Ok(()),
            State::Opened | State::Item | State::NextItem => {
                self.state = state;
                Ok(())
            }
            _ => wrong(),
        }
    }

    /// What has been read of the item stays, and is no NULL.
    fn keep(&mut self) {
        self.escaped = true;
        self.fixed = self.item.len();
    }

    fn open(&mut self) -> Result<(), Bad> {
        if !matches!(self.state, State::Start | State::Opened | State::NextLevel) {
            return unexpected('{');
        }
        if self.open.len() == DIMENSIONS_MAX {
            return Err(too_many_dimensions(DIMENSIONS_MAX + 1).into());
        }
        self.state = State::Opened;
        self.open.push(0);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Bad> {
        let is_empty = self.state == State::Opened && self.open.len() == 1;
        if !is_empty && !matches!(self.state, State::Item | State::Unquoted | State::Closed) {
            return unexpected('}');
        }
        self.end_item()?;
        self.state = State::Closed;
        let length = self.open.pop().unwrap_or(0);
        let known = &mut self.lengths[self.open.len()];
        if *known != 0 && *known != length {
            return unequal();
        }
        *known = length;
        if let Some(outer) = self.open.last_mut() {
            *outer += 1;
        }
        Ok(())
    }

    fn next(&mut self) -> Result<(), Bad> {
        let state = match self.state {
            State::Item | State::Unquoted => State::NextItem,
            State::Closed => State::NextLevel,
            _ => return unexpected(','),
        };
        self.end_item()?;
        self.state = state;
        Ok(())
    }

    /// The item that was being read, if one was, is whole.
    fn end_item(&mut self) -> Result<(), Bad> {
        if !matches!(self.state, State::Item | State::Unquoted) {
            return Ok(());
        }
        let depth = self.open.len();
        if self.depth != 0 && self.depth != depth {
            return unequal();
        }
        self.depth = depth;
        if let Some(count) = self.open.last_mut() {
            *count += 1;
        }
        let mut item = core::mem::take(&mut self.item);
        let kept = item.trim_end_matches(is_space).len().max(self.fixed);
        item.truncate(kept);
        let is_null = !self.escaped && item.eq_ignore_ascii_case("null");
        self.items.push((!is_null).then_some(item));
        (self.fixed, self.escaped) = (0, false);
        Ok(())
    }
}

fn unequal<T>() -> Result<T, Bad> {
    malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
}

/// Reads the items of a vector, between blanks.
pub(super) fn parse_vector(text: &str, element: Type) -> Result<Datum, SqlError> {
    let items = text.split(is_space).filter(|item| !item.is_empty());
    let items = items.map(|item| super::parse(element, item));
    Ok(Datum::Array(items.collect::<Result<_, _>>()?))
}

/// Appends the items of a vector, with blanks between them.
pub(super) fn format_vector(array: &Datum, element: Type, out: &mut Vec<u8>) {
    for (i, item) in array.as_array().unwrap_or_default().iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        super::format(element, item, out);
    }
}

/// Appends the array, with quotes where PostgreSQL puts them.
pub(super) fn format_array(array: &Datum, element: Type, out: &mut Vec<u8>) {
    let (items, shape) = (array.as_array().unwrap_or_default(), array.shape());
    let shape = shape.unwrap_or_default();
    out.extend_from_slice(shape.prefix().as_bytes());
    if items.is_empty() {
        out.extend_from_slice(b"{}");
    }
    let mut text = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.resize(out.len() + shape.edges(i), b'{');
        format_item(item, element, &mut text, out);
        out.resize(out.len() + shape.edges(i + 1), b'}');
    }
}

/// Appends an item; `text` is room for it.
fn format_item(item: &Datum, element: Type, text: &mut Vec<u8>, out: &mut Vec<u8>) {
    if item.is_null() {
        out.extend_from_slice(b"NULL");
        return;
    }
    text.clear();
    super::format(element, item, text);
    if !needs_quotes(text) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for byte in text.iter() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

fn needs_quotes(text: &[u8]) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|byte| {
            matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b'\x0b')
                || byte.is_ascii_whitespace()
        })
}
