//! LIKE.

use crate::overtime;
use base::{SqlError, SqlState};

/// Whether `text` matches a LIKE pattern with backslash as its escape character.
///
/// # Errors
/// 22025 if the pattern ends with a lone backslash and the match depends on it.
pub fn like(text: &str, pattern: &str) -> Result<bool, SqlError> {
    like_utf8(text.as_bytes(), pattern.as_bytes())
}

/// As [`like`] for texts given by their bytes.
///
/// # Errors
/// As [`like`].
pub fn like_utf8(text: &[u8], pattern: &[u8]) -> Result<bool, SqlError> {
    matches(text, pattern, char_length)
}

/// As [`like`] for bytea.
///
/// # Errors
/// As [`like`].
pub fn like_bytes(text: &[u8], pattern: &[u8]) -> Result<bool, SqlError> {
    matches(text, pattern, |_| 1)
}

/// Bytes of the UTF-8 character that begins with `first`.
fn char_length(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

/// Comparisons that succeed and are allowed for a text of any length.
const TRIES_FREE: usize = 4 << 20;
/// Those that are allowed for each byte of the text beside them.
const TRIES_PER_BYTE: usize = 256;

/// Tries between two looks whether the statement's time is over.
const TRIES_TOLD: usize = 4_096;

/// Matches from the left; after a `%` it remembers where to go on when the rest does not fit, and
/// only the last `%` ever needs another try, so the time is text times pattern at most. If that
/// becomes too much it is refused (54001): no other statement of the shard runs meanwhile.
fn matches(text: &[u8], pattern: &[u8], length: fn(u8) -> usize) -> Result<bool, SqlError> {
    let (mut t, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    let mut tries_left = TRIES_PER_BYTE * text.len() + TRIES_FREE;
    loop {
        let step = match pattern.get(p) {
            Some(b'%') => {
                while pattern.get(p) == Some(&b'%') {
                    p += 1;
                }
                if p == pattern.len() {
                    return Ok(true);
                }
                retry = Some((t, p));
                continue;
            }
            Some(b'_') if t < text.len() => Some((length(text[t]), 1)),
            Some(b'\\') => match pattern.get(p + 1) {
                Some(literal) => (text.get(t) == Some(literal)).then_some((1, 2)),
                None if t == text.len() => None,
                None => {
                    let message = "LIKE pattern must not end with escape character";
                    return Err(SqlError::new(SqlState::INVALID_ESCAPE, message));
                }
            },
            Some(literal) => (text.get(t) == Some(literal)).then_some((1, 1)),
            None if t == text.len() => return Ok(true),
            None => None,
        };
        match (step, retry) {
            (Some(_), _) if tries_left == 0 => {
                let message = "matching a pattern takes too long";
                return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message)
                    .hint("Match parts of the text, or a shorter pattern."));
            }
            (Some((in_text, in_pattern)), _) => {
                tries_left -= 1;
                if tries_left.is_multiple_of(TRIES_TOLD) {
                    overtime::work(TRIES_TOLD as u64)?;
                }
                t += in_text;
                p += in_pattern;
            }
            (None, Some((from, behind))) if from < text.len() => {
                let from = from + length(text[from]);
                retry = Some((from, behind));
                (t, p) = (from, behind);
            }
            (None, _) => return Ok(false),
        }
    }
}

/// The escape character that ESCAPE names, if it is not empty.
///
/// # Errors
/// 22025 if it is longer than one character.
pub(super) fn escape_char(escape: &str) -> Result<Option<char>, SqlError> {
    let mut chars = escape.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(
            SqlError::new(SqlState::INVALID_ESCAPE, "invalid escape string")
                .hint("Escape string must be empty or one character."),
        ),
    }
}

/// `pattern ESCAPE escape`: the same pattern with backslash as escape character.
///
/// # Errors
/// 22025 if `escape` is longer than one character.
pub(super) fn like_escape(pattern: &str, escape: &str) -> Result<String, SqlError> {
    let escape = escape_char(escape)?;
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if Some(c) == escape {
            out.push('\\');
            // What follows the escape stands for itself.
            out.extend(rest.next());
        } else if c == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "_b_", true),
            ("abc", "a_", false),
            ("äöü", "_ö_", true),
            ("", "%", true),
            ("", "_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("aab", "%ab", true),
            ("mississippi", "%iss%ip%", true),
            ("mississippi", "%iss%ipx%", false),
            ("10_5", "%\\_%", true),
        ] {
            assert_eq!(
                like(text, pattern).ok(),
                Some(expected),
                "{text} LIKE {pattern}"
            );
        }
        assert!(like("abc", "abc\\").is_ok_and(|found| !found));
        assert_eq!(
            like("abcd", "abc\\").err().map(|e| e.state()),
            Some(SqlState::INVALID_ESCAPE)
        );
        assert_eq!(
            like_escape("a#%b\\", "#").ok().as_deref(),
            Some("a\\%b\\\\")
        );
        assert!(like_escape("a", "##").is_err());
    }
}
