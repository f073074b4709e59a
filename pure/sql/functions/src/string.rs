//! Functions of text and bytes. Positions and lengths of text count characters, from 1.

mod encode;
mod like;
mod pattern;
mod quote;
pub mod room;

pub use like::{like, like_bytes, like_utf8};

use super::func::TextFunc;
use super::to_char;
use crate::keywords::quote_ident;
use base::{Datum, SqlError, SqlState, Type, text};

/// Longest text or bytea that a function or aggregate makes, in bytes: that of PostgreSQL.
pub const RESULT_BYTES_MAX: usize = (1 << 30) - 1;

/// The text form of a value of type `from`, as it would be sent to a client.
pub fn output(from: Type, value: &Datum) -> String {
    text::to_string(from, value)
}

/// "requested length too large", 54000, for a value of `bytes` bytes.
pub fn too_large(bytes: usize) -> SqlError {
    let detail =
        format!("A value has at most {RESULT_BYTES_MAX} bytes, and {bytes} were asked for.");
    SqlError::new(SqlState::PROGRAM_LIMIT, "requested length too large").detail(detail)
}

/// A length that a value may have.
fn checked(bytes: Option<usize>) -> Result<usize, SqlError> {
    let bytes = bytes.unwrap_or(usize::MAX);
    match bytes > RESULT_BYTES_MAX {
        true => Err(too_large(bytes)),
        false => Ok(bytes),
    }
}

fn invalid_parameter(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// Argument `i`, which the binder made text.
fn arg(args: &[Datum], i: usize) -> &str {
    args[i].as_str().expect("the binder passes text")
}

/// Argument `i`, which the binder made an integer.
fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes integers")
}

/// Argument `i` if it is there and an integer.
fn optional_int(args: &[Datum], i: usize) -> Option<i64> {
    args.get(i).and_then(Datum::as_int)
}

/// `concat_ws(separator, ...)`: NULL if the separator is, without the parts that are NULL.
fn joined(args: &[Datum]) -> Datum {
    match args[0].as_str() {
        Some(separator) => {
            let parts: Vec<&str> = args[1..].iter().filter_map(Datum::as_str).collect();
            parts.join(separator).into()
        }
        None => Datum::Null,
    }
}

/// Computes a function of text; NULL arguments only where it is not strict.
pub fn apply(func: TextFunc, args: &mut [Datum], ty: Type) -> Result<Datum, SqlError> {
    if let Some(Datum::Bytes(_)) = args.first() {
        return of_bytes(func, args);
    }
    Ok(match func {
        TextFunc::Concat => [arg(args, 0), arg(args, 1)].concat().into(),
        TextFunc::ConcatAll => args
            .iter()
            .filter_map(Datum::as_str)
            .collect::<String>()
            .into(),
        TextFunc::ConcatWs => joined(args),
        TextFunc::Length => Datum::Int(arg(args, 0).chars().count() as i64),
        TextFunc::OctetLength => Datum::Int(arg(args, 0).len() as i64),
        TextFunc::BitLength => Datum::Int(arg(args, 0).len() as i64 * 8),
        TextFunc::Lower => arg(args, 0).chars().map(lower).collect::<String>().into(),
        TextFunc::Upper => arg(args, 0).chars().map(upper).collect::<String>().into(),
        TextFunc::InitCap => init_cap(arg(args, 0)).into(),
        TextFunc::TrimLeft | TextFunc::TrimRight | TextFunc::TrimBoth => trim(func, args).into(),
        TextFunc::Substring => substring(args)?.into(),
        TextFunc::Overlay => overlay(args)?.into(),
        TextFunc::Position => position(arg(args, 0), arg(args, 1)),
        TextFunc::Left => left(arg(args, 0), int(args, 1)).into(),
        TextFunc::Right => right(arg(args, 0), int(args, 1)).into(),
        TextFunc::PadLeft | TextFunc::PadRight => pad(func, args)?.into(),
        TextFunc::Repeat => {
            let count = usize::try_from(int(args, 1)).unwrap_or(0);
            checked(arg(args, 0).len().checked_mul(count))?;
            arg(args, 0).repeat(count).into()
        }
        TextFunc::Replace => replace(args)?.into(),
        TextFunc::Reverse => arg(args, 0).chars().rev().collect::<String>().into(),
        TextFunc::SplitPart => split_part(args)?.into(),
        TextFunc::Ascii => {
            let first = arg(args, 0).chars().next();
            Datum::Int(first.map_or(0, |c| i64::from(u32::from(c))))
        }
        TextFunc::Chr => chr(int(args, 0))?,
        TextFunc::Md5 => encode::md5_hex(arg(args, 0).as_bytes()).into(),
        TextFunc::Translate => translate(arg(args, 0), arg(args, 1), arg(args, 2)).into(),
        TextFunc::StartsWith => arg(args, 0).starts_with(arg(args, 1)).into(),
        TextFunc::ToHex4 => format!("{:x}", int(args, 0) as i32).into(),
        TextFunc::ToHex8 => format!("{:x}", int(args, 0)).into(),
        TextFunc::Decode => encode::decode(arg(args, 0), arg(args, 1))?.into(),
        TextFunc::QuoteIdent => quote_ident(arg(args, 0)).into_owned().into(),
        TextFunc::QuoteLiteral => quote::quote_literal(arg(args, 0)).into(),
        TextFunc::QuoteNullable => match args[0].as_str() {
            Some(text) => quote::quote_literal(text).into(),
            None => "NULL".into(),
        },
        TextFunc::Format => quote::format(args)?,
        TextFunc::SubstringRegex
        | TextFunc::RegexpReplace
        | TextFunc::RegexpMatch
        | TextFunc::RegexpCount
        | TextFunc::RegexpLike
        | TextFunc::RegexpSplitToArray => pattern::apply(func, args)?,
        TextFunc::StringToArray => string_to_array(args),
        TextFunc::LikeEscape => like::like_escape(arg(args, 0), arg(args, 1))?.into(),
        TextFunc::ToNumber => to_char::to_number(arg(args, 0), arg(args, 1))?,
        TextFunc::ConvertTo => {
            only_utf8(arg(args, 1))?;
            arg(args, 0).as_bytes().into()
        }
        TextFunc::Encode | TextFunc::GetByte | TextFunc::ConvertFrom => {
            unreachable!("{func:?} is bound to bytea, here with {ty:?}")
        }
    })
}

/// Refuses encodings other than UTF-8.
fn only_utf8(encoding: &str) -> Result<(), SqlError> {
    match encoding
        .to_ascii_lowercase()
        .replace(['-', '_'], "")
        .as_str()
    {
        "utf8" | "unicode" => Ok(()),
        _ => {
            let message = format!("conversion of encoding \"{encoding}\" is not supported");
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

/// The functions that take a bytea first.
fn of_bytes(func: TextFunc, args: &[Datum]) -> Result<Datum, SqlError> {
    let bytes = |i: usize| args[i].as_bytes().expect("the binder passes bytea");
    Ok(match func {
        TextFunc::Concat => [bytes(0), bytes(1)].concat().into(),
        TextFunc::Length | TextFunc::OctetLength => Datum::Int(bytes(0).len() as i64),
        TextFunc::BitLength => Datum::Int(bytes(0).len() as i64 * 8),
        TextFunc::Md5 => encode::md5_hex(bytes(0)).into(),
        TextFunc::Encode => encode::encode(bytes(0), arg(args, 1))?.into(),
        TextFunc::Substring => {
            let (start, end) = span(int(args, 1), optional_int(args, 2))?;
            let size = bytes(0).len();
            bytes(0)[start.min(size)..end.min(size)].into()
        }
        TextFunc::Position => {
            let (text, part) = (bytes(0), bytes(1));
            let found = (0..=text.len()).find(|at| text[*at..].starts_with(part));
            Datum::Int(found.map_or(0, |at| at as i64 + 1))
        }
        TextFunc::ConvertFrom => {
            only_utf8(arg(args, 1))?;
            let text = core::str::from_utf8(bytes(0))
                .ok()
                .filter(|text| !text.contains('\0'));
            text.map(Datum::from).ok_or_else(|| {
                let message = "invalid byte sequence for encoding \"UTF8\"";
                SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
            })?
        }
        TextFunc::GetByte => {
            let at = int(args, 1);
            let byte = usize::try_from(at).ok().and_then(|at| bytes(0).get(at));
            let size = bytes(0).len() as i64;
            let message = format!("index {at} out of valid range, 0..{}", size - 1);
            let byte = byte.ok_or_else(|| SqlError::new(SqlState(*b"2202E"), message))?;
            Datum::Int(i64::from(*byte))
        }
        TextFunc::TrimLeft | TextFunc::TrimRight | TextFunc::TrimBoth => {
            let (mut rest, set) = (bytes(0), bytes(1));
            while func != TextFunc::TrimRight && rest.first().is_some_and(|b| set.contains(b)) {
                rest = &rest[1..];
            }
            while func != TextFunc::TrimLeft && rest.last().is_some_and(|b| set.contains(b)) {
                rest = &rest[..rest.len() - 1];
            }
            rest.into()
        }
        _ => unreachable!("{func:?} was bound to bytea"),
    })
}

/// The one lower-case character of `c`, as the C library has it.
pub fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// The upper-case character of `c`; `c` itself if that takes several characters.
pub(super) fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn init_cap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        out.push(if inside { lower(c) } else { upper(c) });
        inside = c.is_alphanumeric();
    }
    out
}

fn trim(func: TextFunc, args: &[Datum]) -> &str {
    let mut text = arg(args, 0);
    let set = args.get(1).and_then(Datum::as_str).unwrap_or(" ");
    let listed = |c: char| set.contains(c);
    if func != TextFunc::TrimRight {
        text = text.trim_start_matches(listed);
    }
    if func != TextFunc::TrimLeft {
        text = text.trim_end_matches(listed);
    }
    text
}

/// The half-open range, from 0, of `from` (from 1, may lie before the text) and a length.
fn span(from: i64, length: Option<i64>) -> Result<(usize, usize), SqlError> {
    let start = from.saturating_sub(1);
    let end = match length {
        Some(length) if length < 0 => {
            let message = "negative substring length not allowed";
            return Err(SqlError::new(SqlState::SUBSTRING_ERROR, message));
        }
        Some(length) => start.saturating_add(length),
        None => i64::MAX,
    };
    let start = start.max(0);
    Ok((start as usize, end.max(start) as usize))
}

/// The characters `start..end` of `text`.
fn slice(text: &str, start: usize, end: usize) -> &str {
    let from = byte_of(text, start);
    let rest = &text[from..];
    &rest[..byte_of(rest, end - start)]
}

/// The byte at which character number `count` begins, or the end.
fn byte_of(text: &str, count: usize) -> usize {
    text.char_indices()
        .nth(count)
        .map_or(text.len(), |(at, _)| at)
}

fn substring(args: &[Datum]) -> Result<&str, SqlError> {
    let (start, end) = span(int(args, 1), optional_int(args, 2))?;
    Ok(slice(arg(args, 0), start, end))
}

fn overlay(args: &[Datum]) -> Result<String, SqlError> {
    let (text, part, from) = (arg(args, 0), arg(args, 1), int(args, 2));
    if from <= 0 {
        let message = "negative substring length not allowed";
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, message));
    }
    let length = optional_int(args, 3).unwrap_or_else(|| part.chars().count() as i64);
    let end = i32::try_from(from + length)
        .map_err(|_| SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, "integer out of range"))?;
    let resume = usize::try_from(end - 1).unwrap_or(0);
    let (head, tail) = (
        slice(text, 0, from as usize - 1),
        slice(text, resume, usize::MAX),
    );
    Ok([head, part, tail].concat())
}

fn position(text: &str, part: &str) -> Datum {
    let found = text
        .find(part)
        .map_or(0, |at| text[..at].chars().count() + 1);
    Datum::Int(found as i64)
}

/// The first `n` characters, or all but the last `-n`.
fn left(text: &str, n: i64) -> &str {
    let count = if n < 0 {
        text.chars().count() as i64 + n
    } else {
        n
    };
    slice(text, 0, usize::try_from(count).unwrap_or(0))
}

/// The last `n` characters, or all but the first `-n`.
fn right(text: &str, n: i64) -> &str {
    let skip = if n < 0 {
        n.saturating_neg()
    } else {
        text.chars().count() as i64 - n
    };
    slice(text, usize::try_from(skip).unwrap_or(0), usize::MAX)
}

fn pad(func: TextFunc, args: &[Datum]) -> Result<String, SqlError> {
    let text = arg(args, 0);
    let fill = args.get(2).and_then(Datum::as_str).unwrap_or(" ");
    let width = usize::try_from(int(args, 1)).unwrap_or(0);
    checked(Some(width))?;
    let have = text.chars().count();
    if width <= have || fill.is_empty() {
        return Ok(slice(text, 0, width.min(have)).to_string());
    }
    let padding = || fill.chars().cycle().take(width - have);
    let bytes = match fill.is_ascii() {
        true => width - have,
        false => padding().map(char::len_utf8).sum(),
    };
    let mut out = String::with_capacity(checked(bytes.checked_add(text.len()))?);
    if func == TextFunc::PadLeft {
        out.extend(padding());
        out.push_str(text);
    } else {
        out.push_str(text);
        out.extend(padding());
    }
    Ok(out)
}

fn replace(args: &[Datum]) -> Result<String, SqlError> {
    let (text, from, to) = (arg(args, 0), arg(args, 1), arg(args, 2));
    if from.is_empty() {
        return Ok(text.to_string());
    }
    Ok(text.replace(from, to))
}

fn split_part(args: &[Datum]) -> Result<&str, SqlError> {
    let (text, separator, field) = (arg(args, 0), arg(args, 1), int(args, 2));
    if field == 0 {
        return Err(invalid_parameter("field position must not be zero"));
    }
    let index = usize::try_from(field.unsigned_abs() - 1).unwrap_or(usize::MAX);
    if separator.is_empty() {
        return Ok(if index == 0 { text } else { "" });
    }
    let part = if field > 0 {
        text.split(separator).nth(index)
    } else {
        text.split(separator)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .nth(index)
    };
    Ok(part.unwrap_or(""))
}

fn chr(code: i64) -> Result<Datum, SqlError> {
    if code == 0 {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT,
            "null character not permitted",
        ));
    }
    if code < 0 {
        return Err(invalid_parameter("character number must be positive"));
    }
    let c = u32::try_from(code)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| {
            let what = if code > 0x10_ffff {
                "too large"
            } else {
                "not valid"
            };
            let message = format!("requested character {what} for encoding: {code}");
            SqlError::new(SqlState::PROGRAM_LIMIT, message)
        })?;
    Ok(c.to_string().into())
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let changed = text
        .chars()
        .filter_map(|c| match from.chars().position(|f| f == c) {
            Some(at) => to.chars().nth(at),
            None => Some(c),
        });
    changed.collect()
}

fn string_to_array(args: &[Datum]) -> Datum {
    let Some(text) = args[0].as_str() else {
        return Datum::Null;
    };
    let null = args.get(2).and_then(Datum::as_str);
    let item = |part: &str| {
        if Some(part) == null {
            Datum::Null
        } else {
            part.into()
        }
    };
    let items: Vec<Datum> = match args[1].as_str() {
        _ if text.is_empty() => Vec::new(),
        None => text
            .chars()
            .map(|c| item(c.encode_utf8(&mut [0; 4])))
            .collect(),
        Some("") => vec![item(text)],
        Some(separator) => text.split(separator).map(item).collect(),
    };
    items.into()
}
