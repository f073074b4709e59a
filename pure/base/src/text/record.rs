//! Text form of rows: `(1,,"a b")`.

use crate::error::{SqlError, SqlState};
use crate::record::Record;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Appends the row, with quotes where PostgreSQL puts them.
pub(super) fn format_record(record: &Record, out: &mut Vec<u8>) {
    out.push(b'(');
    let mut text = Vec::new();
    for (i, (ty, value)) in record.fields().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        text.clear();
        super::format(ty, value, &mut text);
        if !needs_quotes(&text) {
            out.extend_from_slice(&text);
            continue;
        }
        out.push(b'"');
        for byte in &text {
            if matches!(byte, b'"' | b'\\') {
                out.push(*byte);
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.push(b')');
}

fn needs_quotes(text: &[u8]) -> bool {
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | b'\x0b');
    text.is_empty()
        || text
            .iter()
            .any(|byte| special(byte) || byte.is_ascii_whitespace())
}

/// The texts of the `count` fields of a row; `None`: NULL.
///
/// # Errors
/// 22P02 if the text is no row of so many fields.
pub fn read_record(text: &str, count: usize) -> Result<Vec<Option<String>>, SqlError> {
    split(text, count).map_err(|detail| {
        let message = format!("malformed record literal: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT, message).detail(detail)
    })
}

fn split(text: &str, count: usize) -> Result<Vec<Option<String>>, &'static str> {
    let rest = text.trim_start_matches(is_space);
    let mut chars = rest
        .strip_prefix('(')
        .ok_or("Missing left parenthesis.")?
        .chars()
        .peekable();
    let mut fields = Vec::new();
    for i in 0..count {
        if i > 0 && chars.next_if_eq(&',').is_none() {
            return Err("Too few columns.");
        }
        if matches!(chars.peek(), Some(',' | ')')) {
            fields.push(None);
            continue;
        }
        let (mut field, mut quoted) = (String::new(), false);
        loop {
            let Some(c) = chars.next_if(|c| quoted || !matches!(c, ',' | ')')) else {
                match chars.peek() {
                    Some(_) => break,
                    None => return Err("Unexpected end of input."),
                }
            };
            match c {
                '\\' => field.push(chars.next().ok_or("Unexpected end of input.")?),
                '"' if !quoted => quoted = true,
                '"' if chars.next_if_eq(&'"').is_some() => field.push('"'),
                '"' => quoted = false,
                other => field.push(other),
            }
        }
        fields.push(Some(field));
    }
    if chars.next() != Some(')') {
        return Err("Too many columns.");
    }
    match chars.all(is_space) {
        true => Ok(fields),
        false => Err("Junk after right parenthesis."),
    }
}
