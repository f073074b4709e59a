//! Text to tokens by PostgreSQL's lexical rules; the tokens are the library's.
//!
//! The library's own tokenizer differs where it matters: it does not join literals over a line
//! break, ends operators elsewhere (`x>=-1`), and knows words and characters of other databases.

use super::keywords::keyword;
use super::source::Source;
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

/// The tokens of a text without white space and comments.
///
/// # Errors
/// 42601 for what is no token; 22025 and others for bad escapes.
pub(super) fn tokens(source: &Source) -> Result<Vec<TokenWithSpan>, SqlError> {
    let mut lexer = Lexer {
        source,
        text: &source.0,
        at: 0,
        line: 1,
        column: 1,
    };
    let mut tokens = Vec::with_capacity(source.0.len() / 4 + 1);
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    source: &'a Source,
    text: &'a str,
    /// Byte position, and the same by line and column.
    at: usize,
    line: u64,
    column: u64,
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit() || c == '$'
}

fn is_operator(c: char) -> bool {
    "~!@#^&|`?+-*/%<>=".contains(c)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn location(&self) -> Location {
        Location {
            line: self.line,
            column: self.column,
        }
    }

    /// Moves forward by bytes.
    fn skip(&mut self, bytes: usize) {
        for c in self.text[self.at..self.at + bytes].chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at += bytes;
    }

    /// Takes characters while they fit.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.skip(end);
        &rest[..end]
    }

    fn token(&mut self) -> Result<Option<TokenWithSpan>, SqlError> {
        self.white_space()?;
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let start = self.location();
        let token = self.any(first)?;
        let span = Span::new(start, self.location());
        Ok(Some(TokenWithSpan::new(token, span)))
    }

    fn any(&mut self, first: char) -> Result<Token, SqlError> {
        let second = self.rest().chars().nth(1);
        let quoted = second == Some('\'');
        match first {
            '\'' => self.string(0, Kind::Plain),
            'e' | 'E' if quoted => self.string(1, Kind::Escaped),
            'n' | 'N' if quoted => self.string(1, Kind::Plain),
            'b' | 'B' if quoted => self.string(1, Kind::Bits),
            'x' | 'X' if quoted => self.string(1, Kind::Hex),
            'u' | 'U' if self.rest()[1..].starts_with("&'") => self.string(2, Kind::Unicode),
            'u' | 'U' if self.rest()[1..].starts_with("&\"") => self.quoted_name(2),
            '"' => self.quoted_name(0),
            '$' => self.dollar(),
            _ if first.is_ascii_digit() => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            _ if starts_name(first) => {
                let name = self.take_while(continues_name);
                Ok(Token::Word(Word {
                    value: name.to_string(),
                    quote_style: None,
                    keyword: keyword(name),
                }))
            }
            _ if is_operator(first) => Ok(self.operator()),
            _ => self.single(first),
        }
    }

    /// Characters that stand for themselves, and pairs of them.
    fn single(&mut self, first: char) -> Result<Token, SqlError> {
        for (text, token) in [
            ("::", Token::DoubleColon),
            (":=", Token::Assignment),
            ("..", Token::Char('.')),
        ] {
            if self.rest().starts_with(text) {
                self.skip(2);
                return Ok(token);
            }
        }
        let token = match first {
            ',' => Token::Comma,
            '(' => Token::LParen,
            ')' => Token::RParen,
            '[' => Token::LBracket,
            ']' => Token::RBracket,
            '.' => Token::Period,
            ';' => Token::SemiColon,
            ':' => Token::Colon,
            other => Token::Char(other),
        };
        self.skip(first.len_utf8());
        Ok(token)
    }

    fn error(&self, state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError::new(state, message.into()).at(self.source.position(self.location()))
    }

    /// `message at or near "..."` for what stands between `start` and here.
    fn near(&self, start: usize, message: &str) -> SqlError {
        let text = &self.text[start..self.at];
        let position = self.text[..start].chars().count() as u32 + 1;
        let message = format!("{message} at or near \"{text}\"");
        SqlError::new(SqlState::SYNTAX, message).at(position)
    }

    /// The error of a literal or comment that does not end.
    fn unterminated(&mut self, start: usize, what: &str) -> SqlError {
        self.at = self.text.len();
        self.near(start, &format!("unterminated {what}"))
    }

    /// Skips white space and comments.
    fn white_space(&mut self) -> Result<(), SqlError> {
        loop {
            self.take_while(is_space);
            if self.rest().starts_with("--") {
                self.take_while(|c| c != '\n' && c != '\r');
            } else if self.rest().starts_with("/*") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) -> Result<(), SqlError> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            self.take_while(|c| c != '/' && c != '*');
            let rest = self.rest();
            if rest.is_empty() {
                return Err(self.unterminated(start, "/* comment"));
            } else if rest.starts_with("/*") {
                depth += 1;
                self.skip(2);
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.skip(2);
                if depth == 0 {
                    return Ok(());
                }
            } else {
                self.skip(1);
            }
        }
    }

    /// An operator: the longest run of operator characters that holds no comment and, unless a
    /// character of it is none of SQL's own operators, ends neither in `+` nor in `-`.
    fn operator(&mut self) -> Token {
        let rest = self.rest();
        let mut end = rest.find(|c| !is_operator(c)).unwrap_or(rest.len());
        for comment in ["--", "/*"] {
            if let Some(start) = rest[..end].find(comment) {
                end = start;
            }
        }
        let mut text = &rest[..end];
        let special =
            |text: &str| text.contains(['~', '!', '@', '#', '%', '^', '&', '|', '`', '?']);
        while text.len() > 1 && text.ends_with(['+', '-']) && !special(&text[..text.len() - 1]) {
            text = &text[..text.len() - 1];
        }
        self.skip(text.len());
        match text {
            "+" => Token::Plus,
            "-" => Token::Minus,
            "*" => Token::Mul,
            "/" => Token::Div,
            "%" => Token::Mod,
            "^" => Token::Caret,
            "<" => Token::Lt,
            ">" => Token::Gt,
            "=" => Token::Eq,
            "<=" => Token::LtEq,
            ">=" => Token::GtEq,
            "<>" | "!=" => Token::Neq,
            "=>" => Token::RArrow,
            other => Token::CustomBinaryOperator(other.to_string()),
        }
    }

    fn number(&mut self) -> Result<Token, SqlError> {
        let start = self.at;
        let digit = |c: char| c.is_ascii_digit();
        self.take_while(digit);
        if self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.skip(1);
            self.take_while(digit);
        }
        let mantissa = self.at;
        if self.rest().starts_with(['e', 'E']) {
            self.skip(1);
            if self.rest().starts_with(['+', '-']) {
                self.skip(1);
            }
            if self.take_while(digit).is_empty() {
                if self.at == mantissa + 1 {
                    self.take_while(continues_name);
                }
                return Err(self.near(start, "trailing junk after numeric literal"));
            }
        }
        if self.peek().is_some_and(starts_name) {
            self.take_while(continues_name);
            return Err(self.near(start, "trailing junk after numeric literal"));
        }
        Ok(Token::Number(self.text[start..self.at].to_string(), false))
    }

    /// `$1` or `$tag$text$tag$`.
    fn dollar(&mut self) -> Result<Token, SqlError> {
        let (start, column) = (self.at, self.column);
        self.skip(1);
        let digits = self.take_while(|c| c.is_ascii_digit());
        if !digits.is_empty() {
            if self.peek().is_some_and(starts_name) {
                self.take_while(continues_name);
                return Err(self.near(start, "trailing junk after parameter"));
            }
            return Ok(Token::Placeholder(self.text[start..self.at].to_string()));
        }
        self.take_while(|c| continues_name(c) && c != '$');
        if !self.rest().starts_with('$') {
            // A dollar that starts nothing is a token that fits nowhere.
            (self.at, self.column) = (start + 1, column + 1);
            return Ok(Token::Char('$'));
        }
        self.skip(1);
        let tag = &self.text[start..self.at];
        match self.rest().find(tag) {
            Some(end) => {
                let text = self.rest()[..end].to_string();
                self.skip(end + tag.len());
                Ok(Token::EscapedStringLiteral(text))
            }
            None => Err(self.unterminated(start, "dollar-quoted string")),
        }
    }

    /// A quoted identifier behind `prefix` bytes (`U&`).
    fn quoted_name(&mut self, prefix: usize) -> Result<Token, SqlError> {
        let start = self.at;
        self.skip(prefix + 1);
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(|c| c != '"'));
            if !self.rest().starts_with('"') {
                return Err(self.unterminated(start, "quoted identifier"));
            }
            self.skip(1);
            if !self.rest().starts_with('"') {
                break;
            }
            self.skip(1);
            name.push('"');
        }
        if name.is_empty() {
            return Err(self.near(start, "zero-length delimited identifier"));
        }
        if prefix > 0 {
            self.no_uescape()?;
            name = self.unicode(&name)?;
        }
        Ok(Token::Word(Word {
            value: name,
            quote_style: Some('"'),
            keyword: sqlparser::keywords::Keyword::NoKeyword,
        }))
    }

    /// A string literal behind `prefix` bytes, with all literals that follow on further lines.
    fn string(&mut self, prefix: usize, kind: Kind) -> Result<Token, SqlError> {
        let start = self.at;
        self.skip(prefix);
        let mut bytes = Vec::new();
        loop {
            self.skip(1);
            self.string_body(start, kind, &mut bytes)?;
            if !self.continued() {
                break;
            }
        }
        let Ok(text) = String::from_utf8(bytes) else {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            return Err(self.error(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
        };
        Ok(match kind {
            Kind::Plain | Kind::Escaped => Token::EscapedStringLiteral(text),
            Kind::Bits => Token::SingleQuotedByteStringLiteral(text),
            Kind::Hex => Token::HexStringLiteral(text),
            Kind::Unicode => {
                self.no_uescape()?;
                Token::EscapedStringLiteral(self.unicode(&text)?)
            }
        })
    }

    /// The text up to and with the closing quote.
    fn string_body(
        &mut self,
        start: usize,
        kind: Kind,
        into: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let escapes = matches!(kind, Kind::Escaped);
        loop {
            let plain = self.take_while(|c| c != '\'' && !(escapes && c == '\\'));
            into.extend_from_slice(plain.as_bytes());
            let rest = self.rest();
            if rest.starts_with("''") {
                into.push(b'\'');
                self.skip(2);
            } else if rest.starts_with('\'') {
                self.skip(1);
                return Ok(());
            } else if rest.len() > 1 {
                self.escape(into)?;
            } else {
                let what = match kind {
                    Kind::Bits => "bit string literal",
                    Kind::Hex => "hexadecimal string literal",
                    _ => "quoted string",
                };
                return Err(self.unterminated(start, what));
            }
        }
    }

    /// Goes to the quote of a literal that continues this one: one behind white space with a line
    /// break.
    fn continued(&mut self) -> bool {
        let (at, line, column) = (self.at, self.line, self.column);
        let mut breaks = false;
        loop {
            let space = self.take_while(is_space);
            breaks |= space.contains(['\n', '\r']);
            if !self.rest().starts_with("--") {
                break;
            }
            self.take_while(|c| c != '\n' && c != '\r');
        }
        if breaks && self.rest().starts_with('\'') {
            return true;
        }
        (self.at, self.line, self.column) = (at, line, column);
        false
    }

    /// A backslash and what belongs to it.
    fn escape(&mut self, into: &mut Vec<u8>) -> Result<(), SqlError> {
        let place = self.at;
        self.skip(1);
        let Some(c) = self.peek() else { return Ok(()) };
        self.skip(c.len_utf8());
        let simple = match c {
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            _ => None,
        };
        if let Some(byte) = simple {
            into.push(byte);
            return Ok(());
        }
        match c {
            '0'..='7' => {
                let digits = self.digits(8, 2, place + 1);
                into.push((u32::from_str_radix(digits, 8).unwrap_or(0) & 0xff) as u8);
            }
            'x' if self.peek().is_some_and(|c| c.is_ascii_hexdigit()) => {
                let digits = self.digits(16, 2, self.at);
                into.push(u32::from_str_radix(digits, 16).unwrap_or(0) as u8);
            }
            'u' | 'U' => {
                let wanted = if c == 'u' { 4 } else { 8 };
                let mut code = self.code_point(wanted)?;
                // A pair of surrogates is one character.
                if (0xd800..0xdc00).contains(&code) {
                    let low = if self.rest().starts_with("\\u") {
                        self.skip(2);
                        self.code_point(4)?
                    } else if self.rest().starts_with("\\U") {
                        self.skip(2);
                        self.code_point(8)?
                    } else {
                        0
                    };
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(self.bad_pair());
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                let Some(c) = char::from_u32(code).filter(|c| *c != '\0') else {
                    return Err(self.bad_code());
                };
                into.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => into.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        if into.last() == Some(&0) {
            let message = "invalid byte sequence for encoding \"UTF8\": 0x00";
            return Err(self.error(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
        }
        Ok(())
    }

    /// At most `more` further digits, together with those from byte `start`.
    fn digits(&mut self, radix: u32, more: usize, start: usize) -> &'a str {
        for _ in 0..more {
            if self.peek().is_some_and(|c| c.is_digit(radix)) {
                self.skip(1);
            }
        }
        &self.text[start..self.at]
    }

    fn code_point(&mut self, wanted: usize) -> Result<u32, SqlError> {
        let digits = self.digits(16, wanted, self.at);
        if digits.len() < wanted {
            let error = self.error(SqlState(*b"22025"), "invalid Unicode escape");
            return Err(error.hint("A Unicode escape is \\u and four digits, or \\U and eight."));
        }
        u32::from_str_radix(digits, 16).map_err(|_| self.bad_code())
    }

    fn bad_code(&self) -> SqlError {
        self.error(SqlState::SYNTAX, "invalid Unicode escape value")
    }

    fn bad_pair(&self) -> SqlError {
        self.error(SqlState::SYNTAX, "invalid Unicode surrogate pair")
    }

    /// The characters that escapes of four and six digits stand for in `U&'...'`.
    fn unicode(&self, text: &str) -> Result<String, SqlError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('\\') {
                out.push('\\');
                rest = after;
                continue;
            }
            let (code, after) = self.unicode_escape(rest)?;
            rest = after;
            let code = if (0xd800..0xdc00).contains(&code) {
                let next = rest.strip_prefix('\\').ok_or_else(|| self.bad_pair())?;
                let (low, after) = self.unicode_escape(next)?;
                if !(0xdc00..0xe000).contains(&low) {
                    return Err(self.bad_pair());
                }
                rest = after;
                0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
            } else {
                code
            };
            let c = char::from_u32(code).filter(|c| *c != '\0');
            out.push(c.ok_or_else(|| self.bad_code())?);
        }
        out.push_str(rest);
        Ok(out)
    }

    fn unicode_escape<'t>(&self, text: &'t str) -> Result<(u32, &'t str), SqlError> {
        let (digits, wanted) = match text.strip_prefix('+') {
            Some(digits) => (digits, 6),
            None => (text, 4),
        };
        match digits.get(..wanted) {
            Some(code) if code.bytes().all(|b| b.is_ascii_hexdigit()) => {
                let code = u32::from_str_radix(code, 16).map_err(|_| self.bad_code())?;
                Ok((code, &digits[wanted..]))
            }
            _ => {
                let error = self.error(SqlState::SYNTAX, "invalid Unicode escape");
                Err(error.hint("A Unicode escape is \\ and four digits, or \\+ and six."))
            }
        }
    }

    /// UESCAPE would change the escapes of the literal before it.
    fn no_uescape(&mut self) -> Result<(), SqlError> {
        self.white_space()?;
        let rest = self.rest();
        let end = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        if rest[..end].eq_ignore_ascii_case("uescape") {
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, "UESCAPE is not supported"));
        }
        Ok(())
    }
}

/// Kinds of string literals.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Escaped,
    Unicode,
    Bits,
    Hex,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn lex(text: &str) -> String {
        match tokens(&Source(Arc::from(text))) {
            Ok(tokens) => {
                let shown = tokens.iter().map(|token| match &token.token {
                    Token::EscapedStringLiteral(text) => format!("'{text}'"),
                    other => other.to_string(),
                });
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.fields().message.clone(),
        }
    }

    #[test]
    fn operators_end_where_postgresql_ends_them() {
        for (text, wanted) in [
            ("x>=-1", "x >= - 1"),
            ("x<-1", "x < - 1"),
            ("x<>-1", "x <> - 1"),
            ("x*-1", "x * - 1"),
            ("x@-1", "x @- 1"),
            ("a||-b", "a ||- b"),
            ("a--b\n+c", "a + c"),
            ("a*/*b*/c", "a * c"),
            ("a+++b", "a + + + b"),
            ("a::int[]", "a :: int [ ]"),
            ("a!=b", "a <> b"),
            ("f(a=>1,b:=2)", "f ( a => 1 , b := 2 )"),
            ("1..2", "1 . 2"),
            ("1.e5", "1.e5"),
            (".5", ".5"),
        ] {
            assert_eq!(lex(text), wanted, "{text}");
        }
    }

    #[test]
    fn literals_join_over_a_line_break_only() {
        for (text, wanted) in [
            ("'a'\n'b'", "'ab'"),
            ("'a' -- c\n  'b'\r'c'", "'abc'"),
            ("'a' 'b'", "'a' 'b'"),
            ("'a' /* \n */ 'b'", "'a' 'b'"),
            ("E'\\n'\n'\\t'", "'\n\t'"),
            ("E'\\x41\\101\\u0042\\U00000043'", "'AABC'"),
            ("E'\\ud83d\\ude00'", "'\u{1f600}'"),
            ("U&'\\0041\\+000042\\\\'", "'AB\\'"),
            ("$$a'b$$", "'a'b'"),
            ("$q$a$$b$q$", "'a$$b'"),
            ("'it''s'", "'it's'"),
            ("'\\'", "'\\'"),
            ("$1", "$1"),
            ("$", "$"),
            ("$a b", "$ a b"),
        ] {
            assert_eq!(lex(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_does_not_end_and_what_is_no_number_is_refused() {
        for (text, wanted) in [
            (
                "select 'ab",
                "unterminated quoted string at or near \"'ab\"",
            ),
            ("a \"b", "unterminated quoted identifier at or near \"\"b\""),
            ("a /* b", "unterminated /* comment at or near \"/* b\""),
            ("a /* é", "unterminated /* comment at or near \"/* é\""),
            (
                "$a$b",
                "unterminated dollar-quoted string at or near \"$a$b\"",
            ),
            (
                "\"\"",
                "zero-length delimited identifier at or near \"\"\"\"",
            ),
            (
                "1a",
                "trailing junk after numeric literal at or near \"1a\"",
            ),
            (
                "1e",
                "trailing junk after numeric literal at or near \"1e\"",
            ),
            (
                "1e+",
                "trailing junk after numeric literal at or near \"1e+\"",
            ),
            ("$1a", "trailing junk after parameter at or near \"$1a\""),
            ("E'\\u00'", "invalid Unicode escape"),
            ("E'\\ud83d'", "invalid Unicode surrogate pair"),
        ] {
            assert_eq!(lex(text), wanted, "{text}");
        }
    }
}
