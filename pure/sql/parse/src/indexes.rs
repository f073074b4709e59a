//! CREATE INDEX: operator classes, which the library does not know.
//!
//! Their names are taken out of the tokens, and stand beside the library's tree.

use super::constraints::is_word;
use super::source::Source;
use super::words::fold;
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// CREATE INDEX.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct IndexStatement {
    pub statement: ast::Statement,
    /// The operator class of each column, if it names one.
    pub classes: Vec<Option<OperatorClass>>,
}

/// The name of an operator class.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct OperatorClass {
    pub schema: Option<String>,
    pub name: String,
}

/// Whether the tokens are those of CREATE INDEX.
pub(super) fn is_create_index(tokens: &[TokenWithSpan]) -> bool {
    is_word(tokens, 0, "CREATE")
        && (is_word(tokens, 1, "INDEX")
            || (is_word(tokens, 1, "UNIQUE") && is_word(tokens, 2, "INDEX")))
}

/// Refuses the parameters of how an index is stored.
///
/// # Errors
/// 0A000.
pub(super) fn refuse_parameters(source: &Source, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen if depth == 0 && at > 0 && is_word(tokens, at - 1, "WITH") => {
                let error = super::unsupported("a storage parameter of an index");
                let place = source.position(token.span.start);
                return Err(error.hint("Leave it out.").at(place));
            }
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// The tokens without operator classes, and the classes of the columns.
///
/// # Errors
/// 0A000 for parameters of an operator class.
pub(super) fn without_classes(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<(Vec<TokenWithSpan>, Vec<Option<OperatorClass>>), SqlError> {
    // The first parenthesis opens the list of columns: a name or method has none.
    let is_open = |token: &TokenWithSpan| token.token == Token::LParen;
    let Some(open) = tokens.iter().position(is_open) else {
        return Ok((tokens.to_vec(), Vec::new()));
    };
    let mut reader = Reader {
        source,
        tokens,
        at: 0,
        kept: Vec::with_capacity(tokens.len()),
        classes: Vec::new(),
    };
    (0..=open).for_each(|_| reader.keep());
    loop {
        reader.column()?;
        match reader.token() {
            Some(Token::Comma) => reader.keep(),
            // What does not fit is the library's to refuse.
            _ => break,
        }
    }
    while reader.token().is_some() {
        reader.keep();
    }
    Ok((reader.kept, reader.classes))
}

struct Reader<'a> {
    source: &'a Source,
    tokens: &'a [TokenWithSpan],
    at: usize,
    kept: Vec<TokenWithSpan>,
    classes: Vec<Option<OperatorClass>>,
}

impl Reader<'_> {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    fn keep(&mut self) {
        self.kept.push(self.tokens[self.at].clone());
        self.at += 1;
    }

    /// `name | name(args) | (expression) [COLLATE name] [class] [ASC | DESC] [NULLS ...]`
    fn column(&mut self) -> Result<(), SqlError> {
        self.name();
        if self.token() == Some(&Token::LParen) {
            self.group();
        }
        if is_word(self.tokens, self.at, "COLLATE") {
            self.keep();
            self.name();
        }
        let class = self.class()?;
        self.classes.push(class);
        while !matches!(self.token(), None | Some(Token::Comma | Token::RParen)) {
            match self.token() {
                Some(Token::LParen) => self.group(),
                _ => self.keep(),
            }
        }
        Ok(())
    }

    /// A name with its qualifications, if there is one.
    fn name(&mut self) {
        while let Some(Token::Word(_)) = self.token() {
            self.keep();
            if self.token() != Some(&Token::Period) {
                return;
            }
            self.keep();
        }
    }

    /// A parenthesis and what is in it.
    fn group(&mut self) {
        let mut depth = 0usize;
        while let Some(token) = self.token() {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            self.keep();
            if depth == 0 {
                return;
            }
        }
    }

    fn class(&mut self) -> Result<Option<OperatorClass>, SqlError> {
        let is_order = ["ASC", "DESC", "NULLS"];
        let is_order = is_order
            .iter()
            .any(|word| is_word(self.tokens, self.at, word));
        let Some(first) = self.word().filter(|_| !is_order) else {
            return Ok(None);
        };
        self.at += 1;
        let mut class = OperatorClass {
            schema: None,
            name: first,
        };
        if self.token() == Some(&Token::Period) {
            self.at += 1;
            let Some(second) = self.word() else {
                return Err(self.source.unexpected(self.tokens.get(self.at)));
            };
            self.at += 1;
            class = OperatorClass {
                schema: Some(class.name),
                name: second,
            };
        }
        if self.token() == Some(&Token::LParen) {
            let place = self.source.position(self.tokens[self.at].span.start);
            let message = "parameters of an operator class are not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(place));
        }
        Ok(Some(class))
    }

    /// The name that comes next, folded as names are.
    fn word(&self) -> Option<String> {
        match self.token()? {
            Token::Word(word) => Some(fold(&word.value, word.quote_style.is_some())),
            _ => None,
        }
    }
}
