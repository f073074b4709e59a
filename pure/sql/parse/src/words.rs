//! A cursor over tokens for the statements that are parsed here rather than by the library.

use super::source::Source;
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Tokens of one statement without white space and comments.
pub(super) struct Words<'a> {
    pub(super) tokens: &'a [TokenWithSpan],
    pub(super) at: usize,
    pub(super) source: &'a Source,
}

impl<'a> Words<'a> {
    pub(super) fn new(tokens: &'a [TokenWithSpan], source: &'a Source) -> Words<'a> {
        Words {
            tokens,
            at: 0,
            source,
        }
    }

    /// The token `ahead` of the cursor, `EOF` beyond the end.
    pub(super) fn peek_at(&self, ahead: usize) -> &'a Token {
        self.tokens
            .get(self.at + ahead)
            .map_or(&Token::EOF, |token| &token.token)
    }

    pub(super) fn peek(&self) -> &'a Token {
        self.peek_at(0)
    }

    pub(super) fn next(&mut self) -> &'a Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    pub(super) fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Whether the token `ahead` is this unquoted word.
    pub(super) fn is_at(&self, ahead: usize, word: &str) -> bool {
        matches!(self.peek_at(ahead), Token::Word(Word { value, quote_style: None, .. })
            if value.eq_ignore_ascii_case(word))
    }

    /// Whether the next words are these.
    pub(super) fn is(&self, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.is_at(ahead, word))
    }

    /// Takes the words if they come next.
    pub(super) fn take(&mut self, words: &[&str]) -> bool {
        let found = self.is(words);
        if found {
            self.at += words.len();
        }
        found
    }

    /// Takes the first of the words that comes next.
    pub(super) fn take_any(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let found = words.iter().copied().find(|word| self.is_at(0, word))?;
        self.at += 1;
        Some(found)
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.at += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, words: &[&str]) -> Result<(), SqlError> {
        if self.take(words) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.take_token(token) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    pub(super) fn expect_end(&self) -> Result<(), SqlError> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    /// An identifier: folded to lower case unless quoted.
    pub(super) fn identifier(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Token::Word(word) => {
                self.at += 1;
                Ok(fold(&word.value, word.quote_style.is_some()))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A string literal's content.
    pub(super) fn string(&mut self) -> Result<String, SqlError> {
        let Token::EscapedStringLiteral(text) = self.peek() else {
            return Err(self.unexpected());
        };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    /// The value of a setting or an option as text: a string, number (with sign) or word.
    pub(super) fn value(&mut self) -> Result<String, SqlError> {
        match self.peek() {
            Token::Number(digits, _) => {
                self.at += 1;
                Ok(digits.clone())
            }
            Token::Minus | Token::Plus => {
                let sign = if matches!(self.next(), Token::Minus) {
                    "-"
                } else {
                    ""
                };
                match self.next() {
                    Token::Number(digits, _) => Ok(format!("{sign}{digits}")),
                    _ => {
                        self.at -= 1;
                        Err(self.unexpected())
                    }
                }
            }
            Token::Word(word) => {
                self.at += 1;
                Ok(fold(&word.value, word.quote_style.is_some()))
            }
            _ => self.string(),
        }
    }

    /// Skips a parenthesised group, the cursor being on its opening parenthesis; returns the
    /// tokens between the parentheses, of which there must be some.
    pub(super) fn group(&mut self) -> Result<&'a [TokenWithSpan], SqlError> {
        let group = self.group_or_nothing()?;
        if group.is_empty() {
            self.at -= 1;
            return Err(self.unexpected());
        }
        Ok(group)
    }

    /// As [`Self::group`]; the parentheses may be empty.
    pub(super) fn group_or_nothing(&mut self) -> Result<&'a [TokenWithSpan], SqlError> {
        self.expect_token(&Token::LParen)?;
        let start = self.at;
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return Err(self.unexpected()),
                _ => {}
            }
            self.at += 1;
        }
        Ok(&self.tokens[start..self.at - 1])
    }

    /// The error of the token `ahead`, which does not fit.
    pub(super) fn unexpected_at(&self, ahead: usize) -> SqlError {
        self.source.unexpected(self.tokens.get(self.at + ahead))
    }

    /// The error that PostgreSQL gives for a token that does not fit.
    pub(super) fn unexpected(&self) -> SqlError {
        self.source.unexpected(self.tokens.get(self.at))
    }

    pub(super) fn unsupported(&self, what: &str) -> SqlError {
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} is not supported"),
        );
        match self.tokens.get(self.at) {
            Some(token) => error.at(self.source.position(token.span.start)),
            None => error,
        }
    }
}

/// An identifier as the catalog has it: lower case unless it was quoted, at most 63 bytes.
pub fn fold(name: &str, quoted: bool) -> String {
    let mut folded = if quoted {
        name.to_string()
    } else {
        name.to_ascii_lowercase()
    };
    let mut end = folded.len().min(base::limits::NAME_BYTES_MAX);
    while !folded.is_char_boundary(end) {
        end -= 1;
    }
    folded.truncate(end);
    folded
}
