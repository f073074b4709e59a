//! Tokens of a body: enough to find where statements and expressions end.

use crate::syntax;
use base::{SqlError, SqlState};

/// Kind of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A word, folded to lower case.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    /// The content of a string; `None`: of one whose escapes only the parser of SQL reads.
    Text(Option<String>),
    Number,
    /// `$1`
    Param,
    Symbol(&'static str),
    /// Any other character.
    Other,
}

/// A token with its bytes in the text.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(found) if found == word)
    }

    pub(crate) fn is(&self, symbol: &str) -> bool {
        matches!(self.kind, Kind::Symbol(found) if found == symbol)
    }

    /// The name that it is, if it may be one.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(name) | Kind::Quoted(name) => Some(name),
            Kind::Text(_) | Kind::Number | Kind::Param | Kind::Symbol(_) | Kind::Other => None,
        }
    }
}

/// The longest ones first.
const SYMBOLS: [&str; 17] = [
    ":=", "::", "<<", ">>", "..", "=>", "<=", ">=", ";", ",", "(", ")", "[", "]", ".", "=", "%",
];

fn unterminated(what: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX, format!("unterminated {what}"))
}

/// The tokens of a text, without comments.
///
/// # Errors
/// 42601 for a string, name or comment without an end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, SqlError> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let rest = &text[at..];
        let first = bytes[at];
        let kind = if first.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if rest.starts_with("--") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if rest.starts_with("/*") {
            at += comment_bytes(rest)?;
            continue;
        } else if first == b'\'' {
            let (bytes, content) = string(rest, false)?;
            at += bytes;
            Kind::Text(Some(content))
        } else if matches!(first, b'e' | b'E') && rest[1..].starts_with('\'') {
            at += 1 + string(&rest[1..], true)?.0;
            Kind::Text(None)
        } else if first == b'"' {
            let (bytes, content) = quoted(rest)?;
            at += bytes;
            Kind::Quoted(content)
        } else if let Some((bytes, content)) = dollar(rest) {
            at += bytes.ok_or_else(|| unterminated("dollar-quoted string"))?;
            Kind::Text(Some(content.to_owned()))
        } else if first == b'$' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            at += 1 + digits(&rest[1..]);
            Kind::Param
        } else if first.is_ascii_digit() {
            at += number(rest);
            Kind::Number
        } else if is_start(rest) {
            let bytes = word_bytes(rest);
            at += bytes;
            Kind::Word(rest[..bytes].to_ascii_lowercase())
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            at += symbol.len();
            Kind::Symbol(symbol)
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            Kind::Other
        };
        all.push(Token {
            kind,
            start,
            end: at,
        });
    }
    Ok(all)
}

fn is_start(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
}

fn word_bytes(rest: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    rest.find(|c| !part(c)).unwrap_or(rest.len())
}

fn digits(rest: &str) -> usize {
    rest.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len())
}

/// The bytes of a number; `1..10` is three tokens.
fn number(rest: &str) -> usize {
    let mut at = digits(rest);
    if rest[at..].starts_with('.') && !rest[at..].starts_with("..") {
        at += 1 + digits(&rest[at + 1..]);
    }
    let exponent = rest[at..].strip_prefix(['e', 'E']);
    if let Some(power) = exponent {
        let sign = usize::from(power.starts_with(['+', '-']));
        let count = digits(&power[sign..]);
        if count > 0 {
            at += 1 + sign + count;
        }
    }
    at
}

fn comment_bytes(rest: &str) -> Result<usize, SqlError> {
    let (mut depth, mut at) = (0usize, 0);
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Ok(at);
            }
        } else {
            at += 1;
        }
    }
    Err(unterminated("/* comment"))
}

/// The bytes of a string and its content.
fn string(rest: &str, escapes: bool) -> Result<(usize, String), SqlError> {
    let mut content = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if escapes => drop(chars.next()),
            '\'' if chars.next_if(|(_, next)| *next == '\'').is_some() => content.push('\''),
            '\'' => return Ok((at + 1, content)),
            other => content.push(other),
        }
    }
    Err(unterminated("quoted string"))
}

fn quoted(rest: &str) -> Result<(usize, String), SqlError> {
    let mut content = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' if chars.next_if(|(_, next)| *next == '"').is_some() => content.push('"'),
            '"' if content.is_empty() => return Err(syntax("\"\"")),
            '"' => return Ok((at + 1, content)),
            other => content.push(other),
        }
    }
    Err(unterminated("quoted identifier"))
}

/// The bytes and the content of a string in dollars, if one begins here. `None`: it has no end.
fn dollar(rest: &str) -> Option<(Option<usize>, &str)> {
    let behind = rest.strip_prefix('$')?;
    let tag = match is_start(behind) {
        true => behind
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()))
            .unwrap_or(behind.len()),
        false => 0,
    };
    if !behind[tag..].starts_with('$') {
        return None;
    }
    let mark = &rest[..tag + 2];
    let content = &rest[mark.len()..];
    Some(match content.find(mark) {
        Some(end) => (Some(2 * mark.len() + end), &content[..end]),
        None => (None, ""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        let all = tokens(text).expect("these are tokens");
        all.iter()
            .map(|token| &text[token.start..token.end])
            .collect()
    }

    #[test]
    fn ranges_strings_and_comments_are_told_apart() {
        assert_eq!(shown("1..10"), ["1", "..", "10"]);
        assert_eq!(shown("1.5e3 2.."), ["1.5e3", "2", ".."]);
        assert_eq!(shown("a:='x''y' -- z\n;"), ["a", ":=", "'x''y'", ";"]);
        assert_eq!(
            shown("E'a\\'b' $q$ ; $q$ $1"),
            ["E'a\\'b'", "$q$ ; $q$", "$1"]
        );
        assert_eq!(shown("/* a /* b */ c */ x$1"), ["x$1"]);
        assert_eq!(
            shown("ä.\"B\"\"\" <<l>>"),
            ["ä", ".", "\"B\"\"\"", "<<", "l", ">>"]
        );
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        for text in ["'a", "\"a", "/* a", "$x$ a", "E'\\'", "\"\""] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }
}
