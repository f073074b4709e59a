//! Quoting of literals, and `format`.

use super::{RESULT_BYTES_MAX, invalid_parameter, too_large};
use crate::keywords::quote_ident;
use base::{Datum, SqlError, SqlState};

/// A text as a literal of SQL.
pub(super) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// The parts of a qualified name, as SQL reads them. What stands behind it is an error if
/// `is_strict`, and left out otherwise.
///
/// # Errors
/// 22023 for a text that does not begin with a name.
pub(super) fn parse_ident(text: &str, is_strict: bool) -> Result<Datum, SqlError> {
    let wrong = |detail: &str| {
        let error = invalid_parameter(format!("string is not a valid identifier: \"{text}\""));
        match detail {
            "" => error,
            detail => error.detail(detail),
        }
    };
    let is_space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let mut parts: Vec<Datum> = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let part = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (part, behind) =
                    unquoted(quoted).ok_or_else(|| wrong("String has unclosed double quotes."))?;
                if part.is_empty() {
                    return Err(wrong("Quoted identifier must not be empty."));
                }
                rest = behind;
                part
            }
            None => {
                let is_start = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
                let inside = |c: char| is_start(c) || c.is_ascii_digit() || c == '$';
                let end = match rest.starts_with(is_start) {
                    true => rest.find(|c: char| !inside(c)).unwrap_or(rest.len()),
                    false => 0,
                };
                if end == 0 {
                    return Err(match (rest.starts_with('.'), parts.is_empty()) {
                        (true, _) => wrong("No valid identifier before \".\"."),
                        (false, false) => wrong("No valid identifier after \".\"."),
                        (false, true) => wrong(""),
                    });
                }
                let part = rest[..end].to_ascii_lowercase();
                rest = &rest[end..];
                part
            }
        };
        parts.push(part.into());
        rest = rest.trim_start_matches(is_space);
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start_matches(is_space),
            None if is_strict && !rest.is_empty() => return Err(wrong("")),
            None => return Ok(parts.into()),
        }
    }
}

/// What stands before the quote that ends an identifier, and behind it; `None` if none does.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (head, tail) = rest.split_once('"')?;
        part.push_str(head);
        match tail.strip_prefix('"') {
            Some(next) => {
                part.push('"');
                rest = next;
            }
            None => return Some((part, tail)),
        }
    }
}

/// One `%[position$][-][width]type` of a format string.
#[derive(Default)]
struct Specifier {
    /// From 1; `None`: the next one.
    position: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

/// The least number of characters of a formatted argument.
#[derive(Default)]
enum Width {
    #[default]
    None,
    Fixed(i64),
    /// `*`: taken from the next argument; `*n$`: from that one.
    Argument(Option<usize>),
}

/// `format(formatstr, ...)`; arguments beyond the first are text forms or NULL.
pub(super) fn format(args: &[Datum]) -> Result<Datum, SqlError> {
    let Some(pattern) = args[0].as_str() else {
        return Ok(Datum::Null);
    };
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut last = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let specifier = read_specifier(&mut chars)?;
        let mut take = |position: Option<usize>| {
            last = position.unwrap_or(last + 1);
            args.get(last)
                .ok_or_else(|| invalid_parameter("too few arguments for format()"))
        };
        let mut width = match specifier.width {
            Width::None => 0,
            Width::Fixed(width) => width,
            Width::Argument(position) => take(position)?
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
        };
        let value = render(specifier.kind, take(specifier.position)?)?;
        let left = specifier.left || width < 0;
        width = width.abs();
        let missing = usize::try_from(width)
            .unwrap_or(0)
            .saturating_sub(value.chars().count());
        if missing.saturating_add(out.len()) > RESULT_BYTES_MAX {
            return Err(too_large(missing.saturating_add(out.len())));
        }
        let blanks = " ".repeat(missing);
        out.push_str(&if left {
            value + &blanks
        } else {
            blanks + &value
        });
    }
    Ok(out.into())
}

/// Characters that the widths of a format ask for together, at most.
pub(super) fn width(args: &[Datum]) -> usize {
    let Some(format) = args.first().and_then(Datum::as_str) else {
        return 0;
    };
    let number = |text: &str| text.parse::<i64>().map_or(0, i64::unsigned_abs) as usize;
    let mut sum = 0usize;
    for specifier in format.split('%').skip(1) {
        let end = specifier.find(|c: char| !matches!(c, '0'..='9' | '$' | '-' | '*'));
        let head = &specifier[..end.unwrap_or(specifier.len())];
        if head.contains('*') {
            let given = args[1..].iter().filter_map(Datum::as_str).map(number);
            sum = sum.saturating_add(given.max().unwrap_or(0));
        }
        let digits = head.rsplit(['$', '-', '*']).next().unwrap_or_default();
        sum = sum.saturating_add(number(digits));
    }
    sum
}

fn render(kind: char, value: &Datum) -> Result<String, SqlError> {
    Ok(match (kind, value.as_str()) {
        ('s', Some(text)) => text.to_string(),
        ('s', None) => String::new(),
        ('I', Some(text)) => quote_ident(text).into_owned(),
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
        }
        ('L', Some(text)) => quote_literal(text),
        ('L', None) => "NULL".to_string(),
        (other, _) => {
            let message = format!("unrecognized format() type specifier \"{other}\"");
            return Err(invalid_parameter(message).hint("For a single \"%\" use \"%%\"."));
        }
    })
}

fn read_specifier(
    chars: &mut core::iter::Peekable<core::str::Chars<'_>>,
) -> Result<Specifier, SqlError> {
    let mut specifier = Specifier::default();
    let number = |chars: &mut core::iter::Peekable<core::str::Chars<'_>>| {
        let mut value = None;
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            let digit = i64::from(digit.to_digit(10).expect("an ASCII digit"));
            value = Some(
                value
                    .unwrap_or(0i64)
                    .saturating_mul(10)
                    .saturating_add(digit),
            );
        }
        value
    };
    let position = |value: i64| match usize::try_from(value) {
        Ok(position) if position > 0 => Ok(position),
        _ => Err(invalid_parameter(
            "format specifies argument 0, but arguments are numbered from 1",
        )),
    };
    if let Some(value) = number(chars) {
        if chars.next_if_eq(&'$').is_some() {
            specifier.position = Some(position(value)?);
        } else {
            specifier.width = Width::Fixed(value);
        }
    }
    if chars.next_if_eq(&'-').is_some() {
        specifier.left = true;
    }
    if chars.next_if_eq(&'*').is_some() {
        let value = number(chars).map(position).transpose()?;
        if value.is_some() {
            chars.next_if_eq(&'$');
        }
        specifier.width = Width::Argument(value);
    } else if let Some(value) = number(chars) {
        specifier.width = Width::Fixed(value);
    }
    specifier.kind = chars.next().ok_or_else(|| {
        invalid_parameter("unterminated format() type specifier")
            .hint("For a single \"%\" use \"%%\".")
    })?;
    Ok(specifier)
}

/// The text of a row of these texts, as PostgreSQL writes it.
pub(super) fn row(args: &[Datum]) -> String {
    let special = |c: char| matches!(c, '"' | '\\' | '(' | ')' | ',') || c.is_ascii_whitespace();
    let mut row = String::from("(");
    for (i, value) in args.iter().enumerate() {
        if i > 0 {
            row.push(',');
        }
        match value.as_str() {
            None => {}
            Some(text) if text.is_empty() || text.contains(special) => {
                row.push('"');
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        row.push(c);
                    }
                    row.push(c);
                }
                row.push('"');
            }
            Some(text) => row.push_str(text),
        }
    }
    row.push(')');
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_doubled() {
        assert_eq!(quote_literal("it's"), "'it''s'");
        assert_eq!(quote_literal("it's \\"), "E'it''s \\\\'");
    }
}
