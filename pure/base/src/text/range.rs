//! Text form of ranges, `[1,5)`, `(,"a b"]`, `empty`, and of multiranges, `{[1,2),[5,)}`.

use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
use crate::range::{Bound, Multirange, Range};
use crate::types::RangeKind;
use crate::zone::Zone;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

const EMPTY: &str = "empty";

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

fn malformed(what: &str, text: &str, detail: &str) -> SqlError {
    let message = format!("malformed {what} literal: \"{text}\"");
    SqlError::new(SqlState::INVALID_TEXT, message).detail(detail)
}

/// What stands behind the word for an empty range.
fn behind_empty(text: &str) -> Option<&str> {
    let word = text.get(..EMPTY.len())?;
    let found = word.eq_ignore_ascii_case(EMPTY);
    found.then(|| &text[EMPTY.len()..])
}

/// The texts of the bounds, `None` where there is none, and whether each is inclusive; `None`: an
/// empty range.
type Split = Option<([Option<String>; 2], [bool; 2])>;

/// Reads a range.
pub(super) fn parse_range(
    text: &str,
    kind: RangeKind,
    zone: Option<&Zone>,
) -> Result<Range, SqlError> {
    let split = split(text).map_err(|detail| malformed("range", text, detail))?;
    let Some((bounds, inclusive)) = split else {
        return Ok(Range::EMPTY);
    };
    let mut values = [Datum::Null, Datum::Null];
    for (value, written) in values.iter_mut().zip(&bounds) {
        if let Some(written) = written {
            *value = super::parse_with(zone, kind.bound(), written)?;
        }
    }
    Range::new(kind, values, inclusive)
}

fn split(text: &str) -> Result<Split, &'static str> {
    let text = text.trim_start_matches(is_space);
    if let Some(rest) = behind_empty(text) {
        return match rest.chars().all(is_space) {
            true => Ok(None),
            false => Err("Junk after \"empty\" key word."),
        };
    }
    let lower_inclusive = text.starts_with('[');
    let rest = text.strip_prefix(['[', '(']);
    let rest = rest.ok_or("Missing left parenthesis or bracket.")?;
    let (lower, rest) = bound(rest)?;
    let rest = rest.strip_prefix(',');
    let (upper, rest) = bound(rest.ok_or("Missing comma after lower bound.")?)?;
    let upper_inclusive = rest.starts_with(']');
    let rest = rest.strip_prefix([']', ')']).ok_or("Too many commas.")?;
    match rest.chars().all(is_space) {
        true => Ok(Some(([lower, upper], [lower_inclusive, upper_inclusive]))),
        false => Err("Junk after right parenthesis or bracket."),
    }
}

/// A bound without its quotes, and what begins with the character that ends it.
fn bound(text: &str) -> Result<(Option<String>, &str), &'static str> {
    const END: &str = "Unexpected end of input.";
    if text.starts_with([',', ')', ']']) {
        return Ok((None, text));
    }
    let (mut value, mut quoted) = (String::new(), false);
    let mut chars = text.chars();
    loop {
        let rest = chars.as_str();
        if !quoted && rest.starts_with([',', ')', ']']) {
            return Ok((Some(value), rest));
        }
        match chars.next().ok_or(END)? {
            '\\' => value.push(chars.next().ok_or(END)?),
            '"' if quoted && chars.as_str().starts_with('"') => {
                value.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            other => value.push(other),
        }
    }
}

/// Appends a range of this type; moments with a zone as the clocks of `zone` show them.
pub(super) fn format_range(range: &Range, (ty, zone): (Type, Option<&Zone>), out: &mut Vec<u8>) {
    if range.is_empty() {
        return out.extend_from_slice(EMPTY.as_bytes());
    }
    let element = ty.range_kind().map_or(Type::Unknown, RangeKind::bound);
    let end = |bound: Bound<'_>, inclusive: u8, exclusive: u8| match bound.is_inclusive {
        true => inclusive,
        false => exclusive,
    };
    out.push(end(range.lower(), b'[', b'('));
    format_bound(range.lower(), (element, zone), out);
    out.push(b',');
    format_bound(range.upper(), (element, zone), out);
    out.push(end(range.upper(), b']', b')'));
}

fn format_bound(bound: Bound<'_>, (ty, zone): (Type, Option<&Zone>), out: &mut Vec<u8>) {
    let Some(value) = bound.value else {
        return;
    };
    let start = out.len();
    match (value, zone) {
        (Datum::Timestamp(at), Some(zone)) => super::format_zoned(*at, zone, out),
        _ => super::format(ty, value, out),
    }
    // Of all that bounds are made of, only blanks need quotes.
    if out[start..].contains(&b' ') {
        out.insert(start, b'"');
        out.push(b'"');
    }
}

/// Appends a multirange, as [`format_range`].
pub(super) fn format_multirange(value: &Multirange, ty: (Type, Option<&Zone>), out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, range) in value.ranges().iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        format_range(range, ty, out);
    }
    out.push(b'}');
}

/// What stands before a character of a multirange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// `{`, or `,` behind a range.
    Before,
    /// A part of a range.
    Range,
    /// A backslash in a range.
    Escaped,
    /// A part of a range in quotes.
    Quoted,
    /// A backslash in quotes.
    QuotedEscaped,
    /// A range.
    Behind,
}

/// Reads a multirange.
pub(super) fn parse_multirange(
    text: &str,
    kind: RangeKind,
    zone: Option<&Zone>,
) -> Result<Multirange, SqlError> {
    let mut ranges = Vec::new();
    let mut read = |range: &str| -> Result<(), SqlError> {
        ranges.push(parse_range(range, kind, zone)?);
        Ok(())
    };
    match each_range(text, &mut read)? {
        Ok(()) => Ok(Multirange::of(ranges)),
        Err(detail) => Err(malformed("multirange", text, detail)),
    }
}

/// Passes on the text of each range but the empty ones; or else what is wrong with the multirange.
fn each_range(
    text: &str,
    read: &mut dyn FnMut(&str) -> Result<(), SqlError>,
) -> Result<Result<(), &'static str>, SqlError> {
    let Some(body) = text.trim_start_matches(is_space).strip_prefix('{') else {
        return Ok(Err("Missing left brace."));
    };
    let (mut state, mut start, mut is_first) = (State::Before, 0, true);
    let mut chars = body.char_indices();
    loop {
        let Some((at, c)) = chars.next() else {
            return Ok(Err("Unexpected end of input."));
        };
        if is_space(c) {
            continue;
        }
        state = match (state, c) {
            (State::Before, '[' | '(') => {
                start = at;
                State::Range
            }
            (State::Before, '}') if is_first => break,
            (State::Before, _) => match behind_empty(&body[at..]) {
                Some(_) => {
                    // The rest of the word.
                    chars.nth(EMPTY.len() - 2);
                    State::Behind
                }
                None => return Ok(Err("Expected range start.")),
            },
            (State::Range, ']' | ')') => {
                read(&body[start..=at])?;
                State::Behind
            }
            (State::Range, '"') => State::Quoted,
            (State::Range, '\\') => State::Escaped,
            (State::Range | State::Escaped, _) => State::Range,
            (State::Quoted, '"') if body[at + 1..].starts_with('"') => {
                chars.next();
                State::Quoted
            }
            (State::Quoted, '"') => State::Range,
            (State::Quoted, '\\') => State::QuotedEscaped,
            (State::Quoted | State::QuotedEscaped, _) => State::Quoted,
            (State::Behind, ',') => State::Before,
            (State::Behind, '}') => break,
            (State::Behind, _) => return Ok(Err("Expected comma or end of multirange.")),
        };
        is_first = false;
    }
    match chars.as_str().chars().all(is_space) {
        true => Ok(Ok(())),
        false => Ok(Err("Junk after closing right brace.")),
    }
}
