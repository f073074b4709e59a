//! EDN, as far as histories use it: maps, vectors, lists, sets, keywords, strings, numbers, tags.

use super::form::{Cursor, DEPTH_MAX, Form, ReadError, Wrong};
use alloc::string::ToString;
use alloc::vec::Vec;

/// Passes each form with its line; of a vector on the outermost level, its elements, without
/// holding them all.
pub(crate) fn each(
    cursor: &mut Cursor<'_>,
    mut each: impl FnMut(u32, Form) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    skip(cursor, 0)?;
    let in_vector = cursor.peek() == Some('[');
    if in_vector {
        cursor.take();
    }
    loop {
        skip(cursor, 0)?;
        match cursor.peek() {
            None if in_vector => return Err(cursor.unexpected()),
            None => return Ok(()),
            Some(']') if in_vector => break,
            Some(_) => {
                let line = cursor.line();
                let form = form(cursor, 1)?;
                each(line, form)?;
            }
        }
    }
    cursor.take();
    skip(cursor, 0)?;
    match cursor.peek() {
        None => Ok(()),
        Some(_) => Err(cursor.unexpected()),
    }
}

/// Skips white space, commas, comments and discarded forms.
fn skip(cursor: &mut Cursor<'_>, depth: usize) -> Result<(), ReadError> {
    if depth > DEPTH_MAX + 1 {
        return Err(cursor.error(Wrong::TooDeep));
    }
    loop {
        cursor.take_while(|c| c.is_whitespace() || c == ',');
        let mut ahead = *cursor;
        match (ahead.take(), ahead.take()) {
            (Some(';'), _) => {
                cursor.take_while(|c| c != '\n');
            }
            (Some('#'), Some('_')) => {
                *cursor = ahead;
                skip(cursor, depth + 1)?;
                form(cursor, depth + 1)?;
            }
            _ => return Ok(()),
        }
    }
}

/// Reads one form, which must be there.
fn form(cursor: &mut Cursor<'_>, depth: usize) -> Result<Form, ReadError> {
    if depth > DEPTH_MAX {
        return Err(cursor.error(Wrong::TooDeep));
    }
    let first = cursor.peek().ok_or_else(|| cursor.unexpected())?;
    match first {
        '{' => {
            cursor.take();
            let forms = until(cursor, '}', depth)?;
            pairs(cursor, forms)
        }
        '[' => {
            cursor.take();
            until(cursor, ']', depth).map(Form::List)
        }
        '(' => {
            cursor.take();
            until(cursor, ')', depth).map(Form::List)
        }
        '"' => {
            cursor.take();
            cursor.string().map(Form::Text)
        }
        ':' => {
            cursor.take();
            let word = cursor.take_while(in_word);
            match word.is_empty() {
                true => Err(cursor.unexpected()),
                false => Ok(Form::Word(word.to_string())),
            }
        }
        '\\' => {
            cursor.take();
            cursor.need()?;
            cursor.take_while(in_word);
            Ok(Form::Other)
        }
        '#' => {
            cursor.take();
            if cursor.peek() == Some('{') {
                cursor.take();
                return until(cursor, '}', depth).map(Form::List);
            }
            // A tag, such as that of a record: what it is put on counts.
            let tag = cursor.take_while(in_word);
            if tag.is_empty() {
                return Err(cursor.unexpected());
            }
            skip(cursor, depth)?;
            form(cursor, depth + 1)
        }
        _ => atom(cursor),
    }
}

/// A number, a symbol, true, false or nil.
fn atom(cursor: &mut Cursor<'_>) -> Result<Form, ReadError> {
    let here = *cursor;
    let word = cursor.take_while(in_word);
    if word.is_empty() {
        return Err(here.unexpected());
    }
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        return here.number(word.strip_suffix('N').unwrap_or(word));
    }
    Ok(match word {
        "nil" => Form::Nil,
        "true" | "false" => Form::Bool,
        symbol => Form::Word(symbol.to_string()),
    })
}

/// Forms up to a closing bracket.
fn until(cursor: &mut Cursor<'_>, close: char, depth: usize) -> Result<Vec<Form>, ReadError> {
    let mut forms = Vec::new();
    loop {
        skip(cursor, depth)?;
        if cursor.peek() == Some(close) {
            cursor.take();
            return Ok(forms);
        }
        forms.push(form(cursor, depth + 1)?);
    }
}

fn pairs(cursor: &Cursor<'_>, forms: Vec<Form>) -> Result<Form, ReadError> {
    let mut entries = Vec::with_capacity(forms.len() / 2);
    let mut forms = forms.into_iter();
    while let Some(key) = forms.next() {
        match forms.next() {
            Some(value) => entries.push((key, value)),
            None => return Err(cursor.error(Wrong::Unexpected('}'))),
        }
    }
    Ok(Form::Map(entries))
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || "*+!-_?$%&=<>./#:'".contains(c)
}
