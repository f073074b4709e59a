//! Text form of one-dimensional arrays: `{1,NULL,"a b"}`.

use crate::datum::{Datum, Type};
use crate::error::{SqlError, SqlState};
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
    let malformed = |detail: &str| {
        let shown = text.trim_start();
        let message = format!("malformed array literal: \"{shown}\"");
        SqlError::new(SqlState::INVALID_TEXT, message).detail(detail)
    };
    let body = super::trim(text);
    let Some(body) = body.strip_prefix('{') else {
        if body.starts_with('[') {
            return Err(unsupported("array bounds are not supported"));
        }
        return Err(malformed(
            "Array value must start with \"{\" or dimension information.",
        ));
    };
    let Some(body) = body.strip_suffix('}') else {
        return Err(malformed("Unexpected end of input."));
    };
    let mut items = Vec::new();
    if super::trim(body).is_empty() {
        return Ok(Datum::Array(items.into_boxed_slice()));
    }
    let mut rest = body;
    loop {
        let (item, behind) = read_item(rest).map_err(|bad| match bad {
            BadItem::Nested => unsupported("multidimensional arrays are not supported"),
            BadItem::Malformed(detail) => malformed(detail),
        })?;
        items.push(match item {
            Some(item) => super::parse_with(zone, element, &item)?,
            None => Datum::Null,
        });
        match behind {
            Some(behind) => rest = behind,
            None => return Ok(Datum::Array(items.into_boxed_slice())),
        }
    }
}

fn unsupported(message: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

enum BadItem {
    Nested,
    Malformed(&'static str),
}

/// The first element (`None`: NULL) and what stands behind its comma (`None`: nothing).
fn read_item(text: &str) -> Result<(Option<String>, Option<&str>), BadItem> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let mut item = String::new();
    let mut chars = text.char_indices();
    let mut in_quotes = false;
    let mut quoted = false;
    // After the closing quote only blanks may follow.
    let mut closed = false;
    // Blanks behind the last quoted or escaped character belong to no value.
    let mut fixed = 0;
    let mut behind = None;
    while let Some((at, c)) = chars.next() {
        match c {
            _ if closed && c != ',' && !c.is_ascii_whitespace() => {
                return Err(BadItem::Malformed("Unexpected array element."));
            }
            '\\' => {
                let (_, escaped) = chars
                    .next()
                    .ok_or(BadItem::Malformed("Unexpected end of input."))?;
                item.push(escaped);
                quoted = true;
                fixed = item.len();
            }
            '"' if in_quotes => {
                (in_quotes, closed) = (false, true);
                fixed = item.len();
            }
            '"' if quoted || !item.is_empty() => {
                return Err(BadItem::Malformed("Unexpected array element."));
            }
            '"' => {
                in_quotes = true;
                quoted = true;
            }
            _ if in_quotes => item.push(c),
            ',' => {
                behind = Some(&text[at + 1..]);
                break;
            }
            '{' => return Err(BadItem::Nested),
            '}' => return Err(BadItem::Malformed("Unexpected \"}\" character.")),
            _ => item.push(c),
        }
    }
    if in_quotes {
        return Err(BadItem::Malformed("Unexpected end of input."));
    }
    let kept = item
        .trim_end_matches(|c: char| c.is_ascii_whitespace())
        .len()
        .max(fixed);
    item.truncate(kept);
    if quoted {
        return Ok((Some(item), behind));
    }
    if item.is_empty() {
        return Err(BadItem::Malformed("Unexpected array element."));
    }
    Ok(((!item.eq_ignore_ascii_case("null")).then_some(item), behind))
}

/// Appends the array, with quotes where PostgreSQL puts them.
pub(super) fn format_array(items: &[Datum], element: Type, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut text = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if item.is_null() {
            out.extend_from_slice(b"NULL");
            continue;
        }
        text.clear();
        super::format(element, item, &mut text);
        if !needs_quotes(&text) {
            out.extend_from_slice(&text);
            continue;
        }
        out.push(b'"');
        for byte in &text {
            if matches!(byte, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.push(b'}');
}

fn needs_quotes(text: &[u8]) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|byte| {
            matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',' | b'\x0b')
                || byte.is_ascii_whitespace()
        })
}
