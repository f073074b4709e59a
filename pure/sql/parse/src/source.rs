//! The text that statements come from, and places in it.

use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use std::sync::Arc;

/// A whole message text; statements share it.
#[derive(Clone, Debug)]
pub struct Source(pub Arc<str>);

impl Source {
    /// Whether both are the same text, read once.
    pub fn is(&self, other: &Source) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Character position, from 1, of a line and column; 0 if the location is unknown.
    pub fn position(&self, at: Location) -> u32 {
        if at.line == 0 {
            return 0;
        }
        let mut walk = Walk::new(&self.0);
        walk.to(at);
        walk.chars + 1
    }

    /// `syntax error at or near "token"`, with its position.
    pub fn unexpected(&self, token: Option<&TokenWithSpan>) -> SqlError {
        match token {
            Some(token) if token.token != Token::EOF => {
                let (start, end) = self.bytes(token);
                SqlError::new(
                    SqlState::SYNTAX,
                    format!("syntax error at or near \"{}\"", &self.0[start..end]),
                )
                .at(self.position(token.span.start))
            }
            _ => SqlError::new(SqlState::SYNTAX, "syntax error at end of input").at(self
                .0
                .chars()
                .count()
                as u32
                + 1),
        }
    }

    /// The error of a word that stands where PostgreSQL's grammar has no place for it: the last
    /// such word of the text.
    pub fn misplaced(&self, word: &str) -> SqlError {
        let tokens = super::lexer::tokens(self).unwrap_or_default();
        let found = tokens.iter().rfind(|token| {
            let text = token.token.to_string();
            text.eq_ignore_ascii_case(word)
        });
        match found {
            Some(token) => self.unexpected(Some(token)),
            None => SqlError::new(
                SqlState::SYNTAX,
                format!("syntax error at or near \"{word}\""),
            ),
        }
    }

    /// The error of what stands behind a place of the text and the parentheses that end there.
    pub fn misplaced_after(&self, place: Location) -> SqlError {
        let tokens = super::lexer::tokens(self).unwrap_or_default();
        let mut behind = tokens.iter().filter(|token| token.span.start >= place);
        self.unexpected(behind.find(|token| token.token != Token::RParen))
    }

    /// Byte range of a token.
    fn bytes(&self, token: &TokenWithSpan) -> (usize, usize) {
        let mut walk = Walk::new(&self.0);
        walk.to(token.span.start);
        let start = walk.byte;
        walk.to(token.span.end);
        (start, walk.byte.max(start))
    }
}

/// Goes forward through a text by line and column.
pub(super) struct Walk<'a> {
    text: &'a str,
    line: u64,
    column: u64,
    pub(super) byte: usize,
    chars: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str) -> Walk<'a> {
        Walk {
            text,
            line: 1,
            column: 1,
            byte: 0,
            chars: 0,
        }
    }

    /// Moves forward to a location, at most to the end.
    pub(super) fn to(&mut self, at: Location) {
        while (self.line, self.column) < (at.line, at.column) {
            let Some(next) = self.text[self.byte..].chars().next() else {
                return;
            };
            self.byte += next.len_utf8();
            self.chars += 1;
            if next == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
    }
}
