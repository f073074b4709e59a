//! Functions with regular expressions.

use super::super::func::TextFunc;
use super::super::regex::{Captures, Regex};
use super::{arg, invalid_parameter, optional_int};
use alloc::borrow::Cow;
use base::{Datum, SqlError, SqlState};

/// Options of the regular expression functions.
struct Flags {
    regex: Regex,
    global: bool,
}

/// Compiles `pattern` with option letters.
fn compile(pattern: &str, letters: &str) -> Result<Flags, SqlError> {
    let (mut ignore_case, mut global, mut lines) = (false, false, false);
    let (mut spaced, mut literal) = (false, false);
    for letter in letters.chars() {
        match letter {
            'g' => global = true,
            'i' => ignore_case = true,
            'c' => ignore_case = false,
            'n' | 'm' => lines = true,
            's' => lines = false,
            'x' => spaced = true,
            't' => spaced = false,
            'q' => literal = true,
            'e' => literal = false,
            'b' => {
                let message = "basic regular expressions are not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(invalid_parameter(message));
            }
        }
    }
    let pattern = match (literal, spaced) {
        (true, _) => quoted(pattern).into(),
        (false, true) => without_blanks(pattern).into(),
        (false, false) => Cow::Borrowed(pattern),
    };
    let mut regex = Regex::new(&pattern, ignore_case)?;
    if lines {
        regex.set_newline_sensitive();
    }
    Ok(Flags { regex, global })
}

/// The pattern that matches `text` itself (option `q`).
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if !c.is_alphanumeric() && c.is_ascii() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The pattern without blanks and comments outside of brackets and escapes (option `x`).
fn without_blanks(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let mut bracket = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            '[' => bracket = true,
            ']' => bracket = false,
            '#' if !bracket => {
                chars.by_ref().find(|c| *c == '\n');
                continue;
            }
            c if c.is_ascii_whitespace() && !bracket => continue,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A pattern for a function that looks at one match, or at all of them anyway.
fn compile_once(name: &str, pattern: &str, letters: &str) -> Result<Regex, SqlError> {
    let flags = compile(pattern, letters)?;
    if flags.global {
        let message = format!("{name}() does not support the \"global\" option");
        let error = invalid_parameter(message);
        return Err(match name {
            "regexp_match" => error.hint("Use the regexp_matches function instead."),
            _ => error,
        });
    }
    Ok(flags.regex)
}

/// `regexp_matches(text, pattern [, flags])`: the groups of the first match, or with the flag `g`
/// those of all matches.
///
/// # Errors
/// Those of patterns and flags.
pub fn regexp_matches(args: &[Datum]) -> Result<Vec<Datum>, SqlError> {
    let letters = args.get(2).and_then(Datum::as_str).unwrap_or("");
    let flags = compile(arg(args, 1), letters)?;
    let text = arg(args, 0);
    let found = Matches::new(&flags.regex, text, Some(0));
    let count = if flags.global { usize::MAX } else { 1 };
    let found = found.take(count).map(|captures| groups(text, &captures));
    let found = found.collect();
    flags.regex.check()?;
    Ok(found)
}

pub(super) fn apply(func: TextFunc, args: &[Datum]) -> Result<Datum, SqlError> {
    let text = arg(args, 0);
    let letters = |i: usize| args.get(i).and_then(Datum::as_str).unwrap_or("");
    Ok(match func {
        TextFunc::SubstringRegex => {
            let regex = Regex::new(arg(args, 1), false)?;
            let found = regex.find_at(text, 0);
            regex.check()?;
            let part = found.and_then(|captures| captures[regex.groups().min(1)]);
            part.map(|(start, end)| &text[start..end]).into()
        }
        TextFunc::RegexpReplace => return replace(args),
        TextFunc::RegexpMatch => {
            let regex = compile_once("regexp_match", arg(args, 1), letters(2))?;
            let found = regex.find_at(text, 0);
            regex.check()?;
            match found {
                Some(captures) => groups(text, &captures),
                None => Datum::Null,
            }
        }
        TextFunc::RegexpLike => compile_once("regexp_like", arg(args, 1), letters(2))?
            .is_match(text)?
            .into(),
        TextFunc::RegexpCount => {
            let regex = compile_once("regexp_count", arg(args, 1), letters(3))?;
            let start = optional_int(args, 2).unwrap_or(1);
            if start <= 0 {
                return Err(invalid_parameter(format!(
                    "invalid value for parameter \"start\": {start}"
                )));
            }
            let from = start_of(text, start);
            let count = Matches::new(&regex, text, from).count();
            regex.check()?;
            Datum::Int(count as i64)
        }
        TextFunc::RegexpSubstr => match nth_match("regexp_substr", args, (4, 5))? {
            Some((start, end)) => text[start..end].into(),
            None => Datum::Null,
        },
        TextFunc::RegexpInstr => {
            let found = nth_match("regexp_instr", args, (5, 6))?;
            let end = optional_int(args, 4).unwrap_or(0);
            if !(0..=1).contains(&end) {
                return Err(bad_argument("endoption", end));
            }
            let at = found.map(|(start, stop)| if end == 1 { stop } else { start });
            Datum::Int(at.map_or(0, |at| text[..at].chars().count() as i64 + 1))
        }
        TextFunc::RegexpSplitToArray => {
            let regex = compile_once("regexp_split_to_array", arg(args, 1), letters(2))?;
            let mut parts: Vec<Datum> = Vec::new();
            let mut begin = 0;
            for captures in Matches::new(&regex, text, Some(0)) {
                let (start, end) = whole(&captures);
                // Empty matches at the ends split nothing off.
                if start == end && (start == begin || end == text.len()) {
                    continue;
                }
                parts.push(text[begin..start].into());
                begin = end;
            }
            regex.check()?;
            parts.push(text[begin..].into());
            parts.into()
        }
        _ => unreachable!("{func:?} has no regular expression"),
    })
}

fn bad_argument(name: &str, value: i64) -> SqlError {
    invalid_parameter(format!("invalid value for parameter \"{name}\": {value}"))
}

/// The range of the match, or of its group, that is asked for. `places`: of the letters and of the
/// number of the group among the arguments.
fn nth_match(
    name: &str,
    args: &[Datum],
    (letters, group): (usize, usize),
) -> Result<Option<(usize, usize)>, SqlError> {
    let start = optional_int(args, 2).unwrap_or(1);
    let number = optional_int(args, 3).unwrap_or(1);
    let group = optional_int(args, group).unwrap_or(0);
    for (name, value, least) in [("start", start, 1), ("n", number, 1), ("subexpr", group, 0)] {
        if value < least {
            return Err(bad_argument(name, value));
        }
    }
    let letters = args.get(letters).and_then(Datum::as_str).unwrap_or("");
    let regex = compile_once(name, arg(args, 1), letters)?;
    let text = arg(args, 0);
    let from = start_of(text, start);
    let found = Matches::new(&regex, text, from).nth(number as usize - 1);
    regex.check()?;
    let found = found.and_then(|captures| captures.get(group as usize).copied());
    Ok(found.flatten())
}

/// The range of the whole match.
fn whole(captures: &Captures) -> (usize, usize) {
    captures[0].expect("the whole match is always set")
}

/// The groups as an array, or the whole match if the pattern has none.
fn groups(text: &str, captures: &Captures) -> Datum {
    let wanted = if captures.len() > 1 {
        &captures[1..]
    } else {
        &captures[..]
    };
    let part = |range: &Option<(usize, usize)>| range.map(|(start, end)| &text[start..end]).into();
    wanted.iter().map(part).collect::<Vec<Datum>>().into()
}

/// Where a search begins that starts at a character, from 1; `None` behind the end, where nothing
/// matches.
fn start_of(text: &str, start: i64) -> Option<usize> {
    let before = start as usize - 1;
    (before <= text.chars().count()).then(|| super::byte_of(text, before))
}

/// All matches from left to right, without overlaps.
struct Matches<'a> {
    regex: &'a Regex,
    text: &'a str,
    next: Option<usize>,
}

impl<'a> Matches<'a> {
    fn new(regex: &'a Regex, text: &'a str, next: Option<usize>) -> Matches<'a> {
        Matches { regex, text, next }
    }
}

impl Iterator for Matches<'_> {
    type Item = Captures;

    fn next(&mut self) -> Option<Captures> {
        let captures = self.regex.find_at(self.text, self.next?)?;
        let (start, end) = whole(&captures);
        // After an empty match go on one character later, or the same match comes again.
        self.next = if end > start {
            Some(end)
        } else {
            self.text[end..].chars().next().map(|c| end + c.len_utf8())
        };
        Some(captures)
    }
}

/// `regexp_replace(text, pattern, replacement [, flags])`, and with start and number of the match
/// to be replaced (0 is all): `(text, pattern, replacement, start [, n [, flags]])`.
fn replace(args: &[Datum]) -> Result<Datum, SqlError> {
    let (text, pattern, replacement) = (arg(args, 0), arg(args, 1), arg(args, 2));
    let letters = match args.get(3) {
        Some(Datum::Text(letters)) => letters,
        _ => args.get(5).and_then(Datum::as_str).unwrap_or(""),
    };
    let flags = compile(pattern, letters)?;
    let start = optional_int(args, 3).unwrap_or(1);
    let mut only = optional_int(args, 4);
    for (name, bad, value) in [
        ("start", start <= 0, start),
        ("n", only.is_some_and(|n| n < 0), only.unwrap_or(0)),
    ] {
        if bad {
            let message = format!("invalid value for parameter \"{name}\": {value}");
            return Err(invalid_parameter(message));
        }
    }
    if only.is_none() {
        only = Some(if flags.global { 0 } else { 1 });
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let from = start_of(text, start);
    for (number, captures) in (1..).zip(Matches::new(&flags.regex, text, from)) {
        if only.is_some_and(|only| only != 0 && only != number) {
            continue;
        }
        let (start, end) = whole(&captures);
        out.push_str(&text[copied..start]);
        expand(replacement, text, &captures, &mut out);
        copied = end;
        if out.len() > super::RESULT_BYTES_MAX {
            return Err(super::too_large(out.len()));
        }
        if only == Some(number) {
            break;
        }
    }
    flags.regex.check()?;
    out.push_str(&text[copied..]);
    Ok(out.into())
}

/// Writes the replacement with `\1` to `\9`, `\&` and `\\` filled in.
fn expand(replacement: &str, text: &str, captures: &Captures, out: &mut String) {
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let group = match chars.peek() {
            Some('&') => Some(0),
            Some(digit) => digit
                .to_digit(10)
                .filter(|digit| *digit > 0)
                .map(|d| d as usize),
            None => None,
        };
        match group {
            Some(group) => {
                chars.next();
                if let Some((start, end)) = captures.get(group).copied().flatten() {
                    out.push_str(&text[start..end]);
                }
            }
            None => {
                chars.next_if_eq(&'\\');
                out.push('\\');
            }
        }
    }
}
