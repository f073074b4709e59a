//! The words of JSON, with the errors that PostgreSQL has for what is none.

use crate::JsonError;
use alloc::format;
use alloc::string::String;

/// A word of JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// What was wanted where something else stands.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Value,
    End,
    String,
    StringOrEnd,
    Colon,
    CommaOrObjectEnd,
    CommaOrArrayEnd,
}

/// Characters of a context before which it is cut.
const CONTEXT_BYTES: usize = 50;

/// Reads words from a text.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Whether strings are read into `string`; otherwise their escapes are only checked for form.
    reads_strings: bool,
    /// Start of the current word.
    start: usize,
    /// End of the current word.
    end: usize,
    line: usize,
    line_start: usize,
    /// The current word.
    pub(crate) token: Token,
    /// The string of the current word, if strings are read.
    pub(crate) string: String,
}

/// Letters, digits and all that is not ASCII: what an unknown word goes on over.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Lexer<'a> {
    /// Before the first word.
    pub(crate) fn new(text: &'a str, reads_strings: bool) -> Lexer<'a> {
        Lexer {
            text,
            reads_strings,
            start: 0,
            end: 0,
            line: 1,
            line_start: 0,
            token: Token::Null,
            string: String::new(),
        }
    }

    /// The text of the current word.
    pub(crate) fn word(&self) -> &'a str {
        self.text.get(self.start..self.end).unwrap_or("")
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Goes on to the next word.
    pub(crate) fn advance(&mut self) -> Result<(), JsonError> {
        let mut at = self.end;
        while let Some(blank @ (b' ' | b'\t' | b'\n' | b'\r')) = self.byte(at) {
            at += 1;
            if blank == b'\n' {
                self.line += 1;
                self.line_start = at;
            }
        }
        self.start = at;
        let Some(first) = self.byte(at) else {
            self.end = at;
            self.token = Token::End;
            return Ok(());
        };
        let sign = match first {
            b'{' => Token::ObjectStart,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayStart,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return self.lex_string(),
            b'-' => return self.lex_number(at + 1),
            b'0'..=b'9' => return self.lex_number(at),
            _ => return self.lex_word(),
        };
        self.end = at + 1;
        self.token = sign;
        Ok(())
    }

    fn lex_word(&mut self) -> Result<(), JsonError> {
        let rest = &self.text.as_bytes()[self.start..];
        let length = rest.iter().take_while(|byte| is_word(**byte)).count();
        self.end = self.start + length.max(1);
        self.token = match self.word() {
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => return Err(self.invalid_token()),
        };
        Ok(())
    }

    fn digits(&self, at: usize) -> usize {
        let rest = self.text.as_bytes().get(at..).unwrap_or(&[]);
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// A number; its digits start at `at`.
    fn lex_number(&mut self, at: usize) -> Result<(), JsonError> {
        let mut at = at;
        let mut wrong = false;
        match self.byte(at) {
            Some(b'0') => at += 1,
            Some(b'1'..=b'9') => at += self.digits(at),
            _ => wrong = true,
        }
        if self.byte(at) == Some(b'.') {
            let digits = self.digits(at + 1);
            wrong |= digits == 0;
            at += 1 + digits;
        }
        if let Some(b'e' | b'E') = self.byte(at) {
            at += 1;
            if let Some(b'+' | b'-') = self.byte(at) {
                at += 1;
            }
            let digits = self.digits(at);
            wrong |= digits == 0;
            at += digits;
        }
        while self.byte(at).is_some_and(is_word) {
            at += 1;
            wrong = true;
        }
        self.end = at;
        if wrong {
            return Err(self.invalid_token());
        }
        self.token = Token::Number;
        Ok(())
    }

    fn lex_string(&mut self) -> Result<(), JsonError> {
        self.string.clear();
        let mut at = self.start + 1;
        // The first half of a character that two escapes make up.
        let mut high: Option<u32> = None;
        loop {
            let Some(byte) = self.byte(at) else {
                self.end = at;
                return Err(self.invalid_token());
            };
            match byte {
                b'"' => break,
                0..=31 => {
                    self.end = at;
                    let detail = format!("Character with value 0x{byte:02x} must be escaped.");
                    return Err(self.invalid(detail));
                }
                b'\\' => at = self.lex_escape(at + 1, &mut high)?,
                _ => {
                    let rest = &self.text.as_bytes()[at..];
                    let plain = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0..=31));
                    let next = at + plain.unwrap_or(rest.len());
                    if self.reads_strings {
                        if high.is_some() {
                            return Err(self.low_surrogate(at + self.char_bytes(at)));
                        }
                        let run = self.text.get(at..next).unwrap_or("");
                        self.string.push_str(run);
                    }
                    at = next;
                }
            }
        }
        if high.is_some() {
            return Err(self.low_surrogate(at + 1));
        }
        self.end = at + 1;
        self.token = Token::String;
        Ok(())
    }

    /// What follows a backslash at `at`; returns where it ends.
    fn lex_escape(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize, JsonError> {
        let Some(byte) = self.byte(at) else {
            self.end = at;
            return Err(self.invalid_token());
        };
        let plain = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.lex_code(at + 1, high),
            _ => {
                if self.reads_strings && high.is_some() {
                    return Err(self.low_surrogate(at + self.char_bytes(at)));
                }
                self.start = at;
                self.end = at + self.char_bytes(at);
                let detail = format!("Escape sequence \"\\{}\" is invalid.", self.word());
                return Err(self.invalid(detail));
            }
        };
        if self.reads_strings {
            if high.is_some() {
                return Err(self.low_surrogate(at + 1));
            }
            self.string.push(plain);
        }
        Ok(at + 1)
    }

    /// Four hexadecimal digits at `at`.
    fn lex_code(&mut self, at: usize, high: &mut Option<u32>) -> Result<usize, JsonError> {
        let mut code = 0;
        for i in at..at + 4 {
            let Some(byte) = self.byte(i) else {
                self.end = i;
                return Err(self.invalid_token());
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                self.end = i + self.char_bytes(i);
                let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                return Err(self.invalid(detail));
            };
            code = code * 16 + digit;
        }
        if self.reads_strings {
            match (code, *high) {
                (0xd800..=0xdbff, Some(_)) => {
                    self.end = at + 4;
                    let detail = "Unicode high surrogate must not follow a high surrogate.";
                    return Err(self.invalid(detail));
                }
                (0xd800..=0xdbff, None) => *high = Some(code),
                (0xdc00..=0xdfff, Some(first)) => {
                    let whole = 0x10000 + ((first & 0x3ff) << 10) + (code & 0x3ff);
                    self.string.extend(char::from_u32(whole));
                    *high = None;
                }
                (0xdc00..=0xdfff, None) | (_, Some(_)) => {
                    return Err(self.low_surrogate(at + 4));
                }
                (0, None) => {
                    self.end = at + 4;
                    let mut error = self.invalid("\\u0000 cannot be converted to text.");
                    error.state = "22P05";
                    error.message = String::from("unsupported Unicode escape sequence");
                    return Err(error);
                }
                (_, None) => self.string.extend(char::from_u32(code)),
            }
        }
        Ok(at + 4)
    }

    /// Bytes of the character at `at`.
    fn char_bytes(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or("");
        rest.chars().next().map_or(1, char::len_utf8)
    }

    /// Half of a character stands alone; seen at `end`.
    fn low_surrogate(&mut self, end: usize) -> JsonError {
        self.end = end;
        self.invalid("Unicode low surrogate must follow a high surrogate.")
    }

    fn invalid_token(&self) -> JsonError {
        self.invalid(format!("Token \"{}\" is invalid.", self.word()))
    }

    /// The current word is not what has to stand there.
    pub(crate) fn unexpected(&self, wanted: Wanted) -> JsonError {
        if self.token == Token::End {
            return self.invalid("The input string ended unexpectedly.");
        }
        let wanted = match wanted {
            Wanted::Value => "JSON value",
            Wanted::End => "end of input",
            Wanted::String => "string",
            Wanted::StringOrEnd => "string or \"}\"",
            Wanted::Colon => "\":\"",
            Wanted::CommaOrObjectEnd => "\",\" or \"}\"",
            Wanted::CommaOrArrayEnd => "\",\" or \"]\"",
        };
        self.invalid(format!("Expected {wanted}, but found \"{}\".", self.word()))
    }

    /// Too many containers in one another.
    pub(crate) fn too_deep(&self) -> JsonError {
        let mut error = JsonError::new("54001", "stack depth limit exceeded");
        error.detail = format!("JSON may be nested {} deep.", crate::DEPTH_MAX);
        error
    }

    fn invalid(&self, detail: impl Into<String>) -> JsonError {
        JsonError {
            detail: detail.into(),
            context: self.context(),
            ..JsonError::new("22P02", "invalid input syntax for type json")
        }
    }

    /// The line of the text up to the end of the current word.
    fn context(&self) -> String {
        let end = self.end;
        let mut from = self.line_start.min(end);
        while end - from >= CONTEXT_BYTES {
            from += self.char_bytes(from);
        }
        if from - self.line_start.min(from) <= 3 {
            from = self.line_start;
        }
        let before = if from > self.line_start { "..." } else { "" };
        let goes_on = self.token != Token::End
            && end < self.text.len()
            && !matches!(self.byte(end), Some(b'\n' | b'\r'));
        let after = if goes_on { "..." } else { "" };
        let shown = self.text.get(from..end).unwrap_or("");
        format!("JSON data, line {}: {before}{shown}{after}", self.line)
    }
}
