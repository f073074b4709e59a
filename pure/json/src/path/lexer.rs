//! The words of paths.

use super::syntax;
use crate::JsonError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A word of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// A sign: one or two characters.
    Sign(&'static str),
    /// A word that is no keyword, or one in another spelling.
    Word(String),
    /// A keyword, in small letters, and as it was written.
    Keyword(&'static str, String),
    /// A string in quotes.
    Text(String),
    /// `$name`, `$"name"`
    Variable(String),
    /// A number without point and exponent.
    Integer(String),
    /// Any other number.
    Number(String),
    End,
}

const SIGNS: [&str; 30] = [
    "&&", "||", "**", "==", "<>", "!=", "<=", ">=", "<", ">", "!", "?", "%", "$", ".", "[", "]",
    "{", "}", "(", ")", "|", "&", "=", "@", "#", ",", "*", ":", "-",
];

const MORE_SIGNS: [&str; 2] = ["+", "/"];

const KEYWORDS: [&str; 21] = [
    "abs",
    "ceiling",
    "datetime",
    "double",
    "exists",
    "false",
    "flag",
    "floor",
    "is",
    "keyvalue",
    "last",
    "lax",
    "like_regex",
    "null",
    "size",
    "starts",
    "strict",
    "to",
    "true",
    "type",
    "unknown",
];

/// Reads words from a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// The text that messages show of the current word.
    near: &'a str,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 12)
}

fn is_special(byte: u8) -> bool {
    b"?%$.[]{}()|&!=<>@#,*:-+/".contains(&byte)
}

/// What words are made of.
fn is_other(byte: u8) -> bool {
    !is_special(byte) && !is_blank(byte) && !matches!(byte, b'\\' | b'"')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            near: "",
        }
    }

    /// An error at the current word.
    pub(super) fn error(&self, message: &str) -> JsonError {
        match self.near {
            "" => syntax(format!("{message} at end of jsonpath input")),
            near => syntax(format!("{message} at or near \"{near}\" of jsonpath input")),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn byte(&self) -> Option<u8> {
        self.rest().bytes().next()
    }

    /// The text of the next bytes, whole characters.
    fn take(&mut self, length: usize) -> &'a str {
        let rest = self.rest();
        let mut length = length.min(rest.len());
        while !rest.is_char_boundary(length) {
            length += 1;
        }
        self.at += length;
        &rest[..length]
    }

    /// Number of bytes from here that words are made of.
    fn run(&self) -> usize {
        self.rest().bytes().take_while(|b| is_other(*b)).count()
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Token, JsonError> {
        loop {
            while self.byte().is_some_and(is_blank) {
                self.at += 1;
            }
            if self.rest().starts_with("/*") {
                self.comment()?;
                continue;
            }
            let Some(byte) = self.byte() else {
                self.near = "";
                return Ok(Token::End);
            };
            let second = self.rest().as_bytes().get(1).copied();
            let is_number =
                byte.is_ascii_digit() || byte == b'.' && second.is_some_and(|b| b.is_ascii_digit());
            if is_number && let Some(number) = self.number()? {
                return Ok(number);
            }
            match byte {
                b'"' => {
                    self.at += 1;
                    return self.quoted().map(Token::Text);
                }
                b'$' if second == Some(b'"') => {
                    self.at += 2;
                    return self.quoted().map(Token::Variable);
                }
                b'$' if second.is_some_and(is_other) => {
                    self.at += 1;
                    let run = self.run();
                    let name = self.take(run);
                    self.near = &self.text[self.at - name.len() - 1..self.at];
                    return Ok(Token::Variable(name.into()));
                }
                _ if is_special(byte) => {
                    let rest = self.rest();
                    let mut signs = SIGNS.iter().chain(&MORE_SIGNS);
                    let sign = signs.find(|sign| rest.starts_with(**sign));
                    let sign = sign.copied().unwrap_or("?");
                    self.near = self.take(sign.len());
                    return Ok(Token::Sign(if sign == "<>" { "!=" } else { sign }));
                }
                _ => {
                    if let Some(word) = self.word()? {
                        return Ok(word);
                    }
                }
            }
        }
    }

    fn comment(&mut self) -> Result<(), JsonError> {
        match self.rest().get(2..).and_then(|rest| rest.find("*/")) {
            Some(length) => {
                self.at += length + 4;
                Ok(())
            }
            None => {
                self.near = "";
                Err(self.error("unexpected end of comment"))
            }
        }
    }

    /// A number; `None` if a longer word stands here.
    fn number(&mut self) -> Result<Option<Token>, JsonError> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| {
            let rest = bytes.get(from..).unwrap_or(&[]);
            rest.iter().take_while(|b| b.is_ascii_digit()).count()
        };
        let mut length = match bytes.first() {
            Some(b'0') => 1,
            _ => digits(0),
        };
        let integer = bytes.get(length) != Some(&b'.');
        if !integer {
            length += 1 + digits(length + 1);
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = bytes.get(length) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            match digits(length + 1 + sign) {
                0 if sign == 1 => {
                    self.near = self.take(length + 2);
                    return Err(self.error("invalid numeric literal"));
                }
                0 => {}
                count => exponent = 1 + sign + count,
            }
        }
        let whole = length + exponent;
        let junk = usize::from(bytes.get(whole).copied().is_some_and(is_other));
        if self.run() > whole + junk {
            return Ok(None);
        }
        self.near = self.take(whole + junk);
        if junk > 0 {
            return Err(self.error("trailing junk after numeric literal"));
        }
        let mut text = String::new();
        crate::number::normalise(self.near, &mut text)?;
        Ok(Some(match integer && exponent == 0 {
            true => Token::Integer(text),
            false => Token::Number(text),
        }))
    }

    /// A string up to its closing quotes.
    fn quoted(&mut self) -> Result<String, JsonError> {
        let mut out = String::new();
        loop {
            match self.byte() {
                None => {
                    self.near = "";
                    return Err(self.error("unexpected end of quoted string"));
                }
                Some(b'"') => {
                    self.near = self.take(1);
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => {
                    let rest = self.rest().bytes();
                    let length = rest.take_while(|b| !matches!(b, b'"' | b'\\')).count();
                    out.push_str(self.take(length));
                }
            }
        }
    }

    /// A word without quotes; `None` if a comment follows at once, with which PostgreSQL forgets
    /// the word.
    fn word(&mut self) -> Result<Option<Token>, JsonError> {
        let mut out = String::new();
        loop {
            match self.byte() {
                Some(b'\\') => self.escape(&mut out)?,
                Some(byte) if is_other(byte) => {
                    let run = self.run();
                    out.push_str(self.take(run));
                }
                Some(byte) if is_blank(byte) => {
                    let blanks = self.rest().bytes().take_while(|b| is_blank(*b));
                    self.near = self.take(blanks.count());
                    break;
                }
                Some(_) if self.rest().starts_with("/*") => {
                    self.comment()?;
                    return Ok(None);
                }
                _ => {
                    self.near = "";
                    break;
                }
            }
        }
        let keyword = KEYWORDS.iter().chain(&["with"]).find(|keyword| {
            keyword.eq_ignore_ascii_case(&out)
                && (!matches!(**keyword, "null" | "true" | "false") || **keyword == out)
        });
        Ok(Some(match keyword {
            Some(keyword) => Token::Keyword(keyword, out),
            None => Token::Word(out),
        }))
    }

    /// What a backslash begins: a character, or several codes of characters in a row.
    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let Some(next) = self.rest()[1..].chars().next() else {
            self.near = "\\";
            return Err(self.error("unexpected end after backslash"));
        };
        let plain = match next {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => return self.byte_code(out),
            'u' => return self.codes(out),
            other => other,
        };
        out.push(plain);
        self.at += 1 + next.len_utf8();
        Ok(())
    }

    /// Number of hexadecimal digits from byte `from` on, at most `most`.
    fn hex_digits(&self, from: usize, most: usize) -> usize {
        let rest = self.rest().as_bytes().get(from..).unwrap_or(&[]);
        let digits = rest.iter().take(most);
        digits.take_while(|b| b.is_ascii_hexdigit()).count()
    }

    fn hex(&self, from: usize, count: usize) -> u32 {
        let digits = self.rest().get(from..from + count).unwrap_or("");
        u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
    }

    /// `\x` and two digits.
    fn byte_code(&mut self, out: &mut String) -> Result<(), JsonError> {
        let count = self.hex_digits(2, 2);
        if count < 2 {
            self.near = self.take(2 + count);
            return Err(self.error("invalid hex character sequence"));
        }
        let code = self.hex(2, 2);
        self.at += 4;
        push_code(code, out)
    }

    /// `\u` and four digits, or one to six in braces, as often as it stands here.
    fn codes(&mut self, out: &mut String) -> Result<(), JsonError> {
        let start = self.at;
        let mut high: Option<u32> = None;
        // The codes are looked at when all of them have been seen.
        let mut codes = Vec::new();
        while self.rest().starts_with("\\u") {
            let braces = usize::from(self.rest().as_bytes().get(2) == Some(&b'{'));
            let count = self.hex_digits(2 + braces, 4 + 2 * braces);
            let closed = self.rest().as_bytes().get(3 + count) == Some(&b'}');
            let is_whole = match braces {
                0 => count == 4,
                _ => count > 0 && closed,
            };
            if !is_whole {
                self.take(2 + braces + count);
                self.near = &self.text[start..self.at];
                return Err(self.error("invalid unicode sequence"));
            }
            codes.push(self.hex(2 + braces, count));
            self.at += 2 + count + 2 * braces;
        }
        for code in codes {
            match (code, high) {
                (0xd800..=0xdbff, Some(_)) => {
                    return Err(surrogate("high surrogate must not follow a high surrogate"));
                }
                (0xd800..=0xdbff, None) => high = Some(code),
                (0xdc00..=0xdfff, Some(first)) => {
                    high = None;
                    push_code(0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff), out)?;
                }
                (0xdc00..=0xdfff, None) | (_, Some(_)) => {
                    return Err(surrogate("low surrogate must follow a high surrogate"));
                }
                (_, None) => push_code(code, out)?,
            }
        }
        match high {
            Some(_) => Err(surrogate("low surrogate must follow a high surrogate")),
            None => Ok(()),
        }
    }
}

fn surrogate(what: &str) -> JsonError {
    let mut error = JsonError::new("22P02", "invalid input syntax for type jsonpath");
    error.detail = format!("Unicode {what}.");
    error
}

fn push_code(code: u32, out: &mut String) -> Result<(), JsonError> {
    if code == 0 {
        let mut error = JsonError::new("22P05", "unsupported Unicode escape sequence");
        error.detail = "\\u0000 cannot be converted to text.".into();
        return Err(error);
    }
    let Some(character) = char::from_u32(code) else {
        return Err(syntax("invalid Unicode code point"));
    };
    out.push(character);
    Ok(())
}
