//! SIMILAR TO.

use super::like::escape_char;
use base::{SqlError, SqlState};

/// The regular expression of PostgreSQL that is as a pattern of SIMILAR TO. `escape` is a backslash
/// if it is not given.
///
/// # Errors
/// 22025 if `escape` is longer than one character, 2200C if the pattern holds more than two
/// separators, an escape before a double quote each.
pub(super) fn similar_to_escape(pattern: &str, escape: Option<&str>) -> Result<String, SqlError> {
    let escape = escape_char(escape.unwrap_or("\\"))?;
    let mut out = String::with_capacity(pattern.len() + 6);
    out.push_str("^(?:");
    let (mut in_class, mut separators) = (false, 0);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if Some(c) == escape {
            match rest.next() {
                Some('"') if !in_class => {
                    out.push_str(separator(separators)?);
                    separators += 1;
                }
                // Classes of regular expressions, as `\d`, can be written so.
                Some(literal) => out.extend(['\\', literal]),
                None => {}
            }
        } else if in_class {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_class = c != ']';
        } else {
            match c {
                '[' => {
                    out.push(c);
                    in_class = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
                _ => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// What parts the pattern in two, so that the first part takes as little as it can; and then in
/// three.
fn separator(before: usize) -> Result<&'static str, SqlError> {
    match before {
        0 => Ok("){1,1}?("),
        1 => Ok("){1,1}(?:"),
        _ => Err(SqlError::new(
            SqlState::INVALID_USE_OF_ESCAPE,
            "SQL regular expression may not contain more than two escape-double-quote separators",
        )),
    }
}
