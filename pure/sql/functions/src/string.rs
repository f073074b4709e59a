//! Functions of text and bytes. Positions and lengths of text count characters, from 1.
//! Those that formulas compute, too, stand in [`base::strings`].

mod bits;
mod digest;
mod encode;
mod like;
mod pattern;
mod quote;
pub mod room;
mod similar;

pub use like::{like, like_bytes, like_utf8};
pub use pattern::regexp_matches;

use super::func::TextFunc;
use super::to_char;
use crate::keywords::quote_ident;
use alloc::collections::BTreeMap;
use base::strings::{byte_of, slice};
use base::{Datum, SqlError, SqlState, Type, text};

pub use base::strings::{lower, upper};

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

/// Computes a function of text; NULL arguments only where it is not strict.
pub fn apply(func: TextFunc, args: &mut [Datum], ty: Type) -> Result<Datum, SqlError> {
    if let Some(func) = func.shared() {
        return func.apply(args, |bytes| checked(Some(bytes)).map(drop));
    }
    if let Some(Datum::Bytes(_)) = args.first() {
        return of_bytes(func, args);
    }
    Ok(match func {
        TextFunc::Concat => [arg(args, 0), arg(args, 1)].concat().into(),
        TextFunc::Overlay => overlay(args)?.into(),
        TextFunc::SplitPart => split_part(args)?.into(),
        TextFunc::Chr => chr(int(args, 0))?,
        TextFunc::Md5 => encode::md5_hex(arg(args, 0).as_bytes()).into(),
        TextFunc::Digest => digest::digest(arg(args, 0).as_bytes(), arg(args, 1))?.into(),
        TextFunc::Hmac => {
            let key = arg(args, 1).as_bytes();
            digest::hmac(arg(args, 0).as_bytes(), key, arg(args, 2))?.into()
        }
        TextFunc::Translate => translate(arg(args, 0), arg(args, 1), arg(args, 2)).into(),
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
        TextFunc::RowText => quote::row(args).into(),
        TextFunc::SubstringRegex
        | TextFunc::RegexpReplace
        | TextFunc::RegexpMatch
        | TextFunc::RegexpCount
        | TextFunc::RegexpLike
        | TextFunc::RegexpSubstr
        | TextFunc::RegexpInstr
        | TextFunc::RegexpSplitToArray => pattern::apply(func, args)?,
        TextFunc::StringToArray => string_to_array(args),
        TextFunc::ParseIdent => {
            let is_strict = args.get(1).and_then(Datum::as_bool).unwrap_or(true);
            quote::parse_ident(arg(args, 0), is_strict)?
        }
        TextFunc::LikeEscape => like::like_escape(arg(args, 0), arg(args, 1))?.into(),
        TextFunc::SimilarToEscape => {
            similar::similar_to_escape(arg(args, 0), args.get(1).and_then(Datum::as_str))?.into()
        }
        TextFunc::ToNumber => to_char::to_number(arg(args, 0), arg(args, 1))?,
        TextFunc::ConvertTo => {
            only_utf8(arg(args, 1))?;
            arg(args, 0).as_bytes().into()
        }
        TextFunc::Encode | TextFunc::GetByte | TextFunc::ConvertFrom => {
            unreachable!("{func:?} is bound to bytea, here with {ty:?}")
        }
        _ => unreachable!("{func:?} is computed where formulas are, too"),
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
        TextFunc::Md5 => encode::md5_hex(bytes(0)).into(),
        TextFunc::Digest => digest::digest(bytes(0), arg(args, 1))?.into(),
        TextFunc::Hmac => digest::hmac(bytes(0), bytes(1), arg(args, 2))?.into(),
        TextFunc::Encode => encode::encode(bytes(0), arg(args, 1))?.into(),
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
        func => bits::apply(func, bytes(0), args)?,
    })
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
    let mut changes = BTreeMap::new();
    let mut to = to.chars();
    for c in from.chars() {
        let to = to.next();
        changes.entry(c).or_insert(to);
    }
    let changed = text.chars().filter_map(|c| match changes.get(&c) {
        Some(to) => *to,
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
