//! JSON, read strictly.

use super::form::{Cursor, DEPTH_MAX, Form, ReadError, Wrong};
use alloc::vec::Vec;

fn skip(cursor: &mut Cursor<'_>) {
    cursor.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Form, ReadError> {
    if depth > DEPTH_MAX {
        return Err(cursor.error(Wrong::TooDeep));
    }
    match cursor.peek() {
        Some('{') => {
            let mut entries = Vec::new();
            members(cursor, '}', |cursor| {
                if cursor.peek() != Some('"') {
                    return Err(cursor.unexpected());
                }
                cursor.take();
                let name = Form::Text(cursor.string()?);
                skip(cursor);
                if cursor.peek() != Some(':') {
                    return Err(cursor.unexpected());
                }
                cursor.take();
                skip(cursor);
                entries.push((name, value(cursor, depth + 1)?));
                Ok(())
            })?;
            Ok(Form::Map(entries))
        }
        Some('[') => {
            let mut list = Vec::new();
            members(cursor, ']', |cursor| {
                list.push(value(cursor, depth + 1)?);
                Ok(())
            })?;
            Ok(Form::List(list))
        }
        Some('"') => {
            cursor.take();
            cursor.string().map(Form::Text)
        }
        Some(first) if first.is_ascii_digit() || first == '-' => {
            let here = *cursor;
            let word = cursor.take_while(|c| c.is_ascii_digit() || ".eE+-".contains(c));
            here.number(word)
        }
        Some(first) if first.is_ascii_lowercase() => {
            let here = *cursor;
            match cursor.take_while(|c| c.is_ascii_lowercase()) {
                "null" => Ok(Form::Nil),
                "true" | "false" => Ok(Form::Bool),
                _ => Err(here.unexpected()),
            }
        }
        _ => Err(cursor.unexpected()),
    }
}

/// What is between an opening bracket and `close`, separated by commas.
fn members<'t>(
    cursor: &mut Cursor<'t>,
    close: char,
    mut each: impl FnMut(&mut Cursor<'t>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    cursor.take();
    skip(cursor);
    if cursor.peek() == Some(close) {
        cursor.take();
        return Ok(());
    }
    loop {
        skip(cursor);
        each(cursor)?;
        skip(cursor);
        match cursor.peek() {
            Some(',') => cursor.take(),
            Some(found) if found == close => {
                cursor.take();
                return Ok(());
            }
            _ => return Err(cursor.unexpected()),
        };
    }
}

/// Passes each value with its line; of an array on the outermost level, its elements, without
/// holding them all.
pub(crate) fn each(
    cursor: &mut Cursor<'_>,
    mut each: impl FnMut(u32, Form) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    skip(cursor);
    if cursor.peek() != Some('[') {
        while cursor.peek().is_some() {
            let line = cursor.line();
            let form = value(cursor, 0)?;
            each(line, form)?;
            skip(cursor);
        }
        return Ok(());
    }
    members(cursor, ']', |cursor| {
        let line = cursor.line();
        let form = value(cursor, 1)?;
        each(line, form)
    })?;
    skip(cursor);
    match cursor.peek() {
        None => Ok(()),
        Some(_) => Err(cursor.unexpected()),
    }
}
