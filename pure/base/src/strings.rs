//! Functions of texts and bytes, of which it is known how long their results are at most.
//!
//! They stand here because SQL's evaluator and the formulas of the store compute the same. None of
//! them fails, but where a result would be too long, or a substring of less than no characters is
//! asked for. Positions and lengths of texts count characters, from 1; those of bytes count bytes.

use crate::{Datum, SqlError, SqlState};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A function of texts or bytes. New ones go to the end: formulas in the journal have their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StringFunc {
    /// `concat(text, ...)`: NULLs are skipped.
    Concat,
    /// `concat_ws(separator, text, ...)`: NULLs but the separator are skipped.
    ConcatWs,
    /// Number of characters or bytes.
    Length,
    /// Number of bytes.
    OctetLength,
    /// Number of bits.
    BitLength,
    /// Each character in lower case, as far as that is one character.
    Lower,
    /// Each character in upper case, as far as that is one character.
    Upper,
    /// The first character of each word in upper case, the others in lower case.
    InitCap,
    /// `ltrim(text [, characters])`, also of bytes with a set of bytes.
    TrimLeft,
    /// `rtrim(text [, characters])`, also of bytes with a set of bytes.
    TrimRight,
    /// `btrim(text [, characters])`, also of bytes with a set of bytes.
    TrimBoth,
    /// `substring(text, from [, length])`, also of bytes. 22011 if the length is negative.
    Substring,
    /// `position(text, part)`, also of bytes: where the part begins; 0 if it is nowhere.
    Position,
    /// `left(text, n)`: the first characters; all but the last ones, if `n` is negative.
    Left,
    /// `right(text, n)`: the last characters; all but the first ones, if `n` is negative.
    Right,
    /// `lpad(text, width [, fill])`
    PadLeft,
    /// `rpad(text, width [, fill])`
    PadRight,
    /// `repeat(text, count)`
    Repeat,
    /// `replace(text, from, to)`
    Replace,
    /// The characters from the last to the first.
    Reverse,
    /// Number of the first character; 0 if there is none.
    Ascii,
    /// `starts_with(text, start)`
    StartsWith,
}

/// Refuses values of more bytes than may be made.
pub type Room = fn(usize) -> Result<(), SqlError>;

impl StringFunc {
    /// Whether a NULL argument makes the result NULL.
    #[must_use]
    pub fn is_strict(self) -> bool {
        !matches!(self, StringFunc::Concat | StringFunc::ConcatWs)
    }

    /// Whether the result may be much longer than all arguments together.
    #[must_use]
    pub fn multiplies(self) -> bool {
        use StringFunc::{ConcatWs, PadLeft, PadRight, Repeat, Replace};
        matches!(self, ConcatWs | PadLeft | PadRight | Repeat | Replace)
    }

    /// The value for arguments of the right types; NULL only where the function is not strict.
    ///
    /// # Errors
    /// 22011 for the substring of a negative length, and what `room` says of the result's bytes.
    ///
    /// # Panics
    /// If an argument has the wrong type.
    pub fn apply(self, args: &[Datum], room: Room) -> Result<Datum, SqlError> {
        if let Some(Datum::Bytes(bytes)) = args.first() {
            return of_bytes(self, bytes, args);
        }
        let made = |text: String| room(text.len()).map(|()| Datum::from(text));
        Ok(match self {
            StringFunc::Concat => {
                let parts = || args.iter().filter_map(Datum::as_str);
                room(parts().map(str::len).sum())?;
                parts().collect::<String>().into()
            }
            StringFunc::ConcatWs => joined(args, room)?,
            StringFunc::Length => number(text(args, 0).chars().count()),
            StringFunc::OctetLength => number(text(args, 0).len()),
            StringFunc::BitLength => number(text(args, 0).len() * 8),
            StringFunc::Lower => made(text(args, 0).chars().map(lower).collect())?,
            StringFunc::Upper => made(text(args, 0).chars().map(upper).collect())?,
            StringFunc::InitCap => made(init_cap(text(args, 0)))?,
            StringFunc::TrimLeft | StringFunc::TrimRight | StringFunc::TrimBoth => {
                trim(self, args).into()
            }
            StringFunc::Substring => {
                let (start, end) = span(int(args, 1), args.get(2).and_then(Datum::as_int))?;
                slice(text(args, 0), start, end).into()
            }
            StringFunc::Position => {
                let (text, part) = (text(args, 0), text(args, 1));
                let found = text.find(part);
                number(found.map_or(0, |at| text[..at].chars().count() + 1))
            }
            StringFunc::Left => left(text(args, 0), int(args, 1)).into(),
            StringFunc::Right => right(text(args, 0), int(args, 1)).into(),
            StringFunc::PadLeft | StringFunc::PadRight => pad(self, args, room)?.into(),
            StringFunc::Repeat => {
                let count = usize::try_from(int(args, 1)).unwrap_or(0);
                room(text(args, 0).len().saturating_mul(count))?;
                text(args, 0).repeat(count).into()
            }
            StringFunc::Replace => replace(args, room)?.into(),
            StringFunc::Reverse => text(args, 0).chars().rev().collect::<String>().into(),
            StringFunc::Ascii => {
                let first = text(args, 0).chars().next();
                Datum::Int(first.map_or(0, |c| i64::from(u32::from(c))))
            }
            StringFunc::StartsWith => text(args, 0).starts_with(text(args, 1)).into(),
        })
    }
}

fn text(args: &[Datum], i: usize) -> &str {
    args[i].as_str().expect("the binder passes text")
}

fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes integers")
}

fn number(of: usize) -> Datum {
    Datum::Int(of as i64)
}

/// The functions that take bytes first.
fn of_bytes(func: StringFunc, bytes: &[u8], args: &[Datum]) -> Result<Datum, SqlError> {
    let second = || args[1].as_bytes().expect("the binder passes bytea");
    Ok(match func {
        StringFunc::Length | StringFunc::OctetLength => number(bytes.len()),
        StringFunc::BitLength => number(bytes.len() * 8),
        StringFunc::Substring => {
            let (start, end) = span(int(args, 1), args.get(2).and_then(Datum::as_int))?;
            bytes[start.min(bytes.len())..end.min(bytes.len())].into()
        }
        StringFunc::Position => {
            let part = second();
            let found = (0..=bytes.len()).find(|at| bytes[*at..].starts_with(part));
            number(found.map_or(0, |at| at + 1))
        }
        StringFunc::TrimLeft | StringFunc::TrimRight | StringFunc::TrimBoth => {
            let mut listed = [false; 256];
            second().iter().for_each(|b| listed[usize::from(*b)] = true);
            let kept = |b: &u8| !listed[usize::from(*b)];
            let all = bytes.len();
            let start = match func {
                StringFunc::TrimRight => 0,
                _ => bytes.iter().position(kept).unwrap_or(all),
            };
            let end = match func {
                StringFunc::TrimLeft => all,
                _ => bytes.iter().rposition(kept).map_or(start, |at| at + 1),
            };
            bytes[start..end].into()
        }
        _ => unreachable!("{func:?} was bound to bytea"),
    })
}

/// NULL if the separator is.
fn joined(args: &[Datum], room: Room) -> Result<Datum, SqlError> {
    let Some(separator) = args[0].as_str() else {
        return Ok(Datum::Null);
    };
    let parts: Vec<&str> = args[1..].iter().filter_map(Datum::as_str).collect();
    let between = separator
        .len()
        .saturating_mul(parts.len().saturating_sub(1));
    let bytes = parts.iter().map(|part| part.len()).sum::<usize>();
    room(bytes.saturating_add(between))?;
    Ok(parts.join(separator).into())
}

/// The one lower-case character of `c`, as the C library has it.
#[must_use]
pub fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// The upper-case character of `c`; `c` itself if that takes several characters.
#[must_use]
pub fn upper(c: char) -> char {
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

fn trim(func: StringFunc, args: &[Datum]) -> &str {
    let mut text = text(args, 0);
    let set = args.get(1).and_then(Datum::as_str).unwrap_or(" ");
    // So the time does not grow with the product of both lengths.
    let mut sorted: Vec<char> = set.chars().collect();
    sorted.sort_unstable();
    let listed = |c: char| sorted.binary_search(&c).is_ok();
    if func != StringFunc::TrimRight {
        text = text.trim_start_matches(listed);
    }
    if func != StringFunc::TrimLeft {
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
#[must_use]
pub fn slice(text: &str, start: usize, end: usize) -> &str {
    let from = byte_of(text, start);
    let rest = &text[from..];
    &rest[..byte_of(rest, end - start)]
}

/// The byte at which character number `count` begins, or the end.
#[must_use]
pub fn byte_of(text: &str, count: usize) -> usize {
    text.char_indices()
        .nth(count)
        .map_or(text.len(), |(at, _)| at)
}

fn left(text: &str, n: i64) -> &str {
    let count = if n < 0 {
        text.chars().count() as i64 + n
    } else {
        n
    };
    slice(text, 0, usize::try_from(count).unwrap_or(0))
}

fn right(text: &str, n: i64) -> &str {
    let skip = if n < 0 {
        n.saturating_neg()
    } else {
        text.chars().count() as i64 - n
    };
    slice(text, usize::try_from(skip).unwrap_or(0), usize::MAX)
}

fn pad(func: StringFunc, args: &[Datum], room: Room) -> Result<String, SqlError> {
    let text = text(args, 0);
    let fill = args.get(2).and_then(Datum::as_str).unwrap_or(" ");
    let width = usize::try_from(int(args, 1)).unwrap_or(0);
    room(width)?;
    let have = text.chars().count();
    if width <= have || fill.is_empty() {
        return Ok(slice(text, 0, width.min(have)).to_string());
    }
    let padding = || fill.chars().cycle().take(width - have);
    let bytes = match fill.is_ascii() {
        true => width - have,
        false => padding().map(char::len_utf8).sum(),
    };
    let bytes = bytes.saturating_add(text.len());
    room(bytes)?;
    let mut out = String::with_capacity(bytes);
    if func == StringFunc::PadLeft {
        out.extend(padding());
        out.push_str(text);
    } else {
        out.push_str(text);
        out.extend(padding());
    }
    Ok(out)
}

fn replace(args: &[Datum], room: Room) -> Result<String, SqlError> {
    let (text, from, to) = (text(args, 0), text(args, 1), text(args, 2));
    if from.is_empty() {
        return Ok(text.to_string());
    }
    let found = match to.len() > from.len() {
        true => text.matches(from).count(),
        false => 0,
    };
    let more = found.saturating_mul(to.len().saturating_sub(from.len()));
    room(text.len().saturating_add(more))?;
    Ok(text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds of lengths rely on it: a change of case makes three bytes of two at most.
    #[test]
    fn a_change_of_case_keeps_characters_and_half_as_many_bytes_come_at_most() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            for changed in [lower(c), upper(c)] {
                assert!(
                    changed.len_utf8() * 2 <= c.len_utf8() * 3,
                    "{c:?} {changed:?}"
                );
            }
        }
    }

    #[test]
    fn results_that_are_too_long_are_refused_before_they_are_made() {
        fn room(bytes: usize) -> Result<(), SqlError> {
            match bytes <= 8 {
                true => Ok(()),
                false => Err(SqlError::new(SqlState::PROGRAM_LIMIT, bytes.to_string())),
            }
        }
        let text = |text: &str| Datum::from(text);
        for (func, args, bytes) in [
            (StringFunc::Repeat, vec![text("ab"), Datum::Int(5)], 10),
            (
                StringFunc::Repeat,
                vec![text("abc"), Datum::Int(i64::MAX)],
                usize::MAX,
            ),
            (StringFunc::PadLeft, vec![text("ab"), Datum::Int(9)], 9),
            (
                StringFunc::PadRight,
                vec![text("ab"), Datum::Int(6), text("ä")],
                10,
            ),
            (
                StringFunc::Replace,
                vec![text("aaa"), text("a"), text("xyz")],
                9,
            ),
            (
                StringFunc::Concat,
                vec![text("aaaaa"), Datum::Null, text("bbbb")],
                9,
            ),
            (
                StringFunc::ConcatWs,
                vec![text("--"), text("aaaa"), text("bbb")],
                9,
            ),
            (StringFunc::Upper, vec![text("abcdefghi")], 9),
        ] {
            let found = func
                .apply(&args, room)
                .map_err(|error| error.fields().message.clone());
            assert_eq!(found, Err(bytes.to_string()), "{func:?} {args:?}");
        }
    }
}
