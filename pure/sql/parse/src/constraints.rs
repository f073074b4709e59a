//! What PostgreSQL's grammar of constraints has and the library's has not: MATCH, NOT VALID,
//! VALIDATE CONSTRAINT.
//!
//! The words are taken out of the tokens, and what they say goes beside the library's tree.

use super::Kind;
use super::comment::name;
use super::identity::IdentityAction;
use super::idle::Idle;
use super::source::Source;
use super::words::Words;
use base::{SqlError, SqlState};
use sqlparser::ast;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

/// What stands in a CREATE TABLE or ALTER TABLE besides the library's tree.
#[derive(Debug, Default)]
pub struct Marks {
    /// Where the names of parents stand whose foreign keys are MATCH FULL.
    full: Vec<Location>,
    /// The constraint that is added is NOT VALID.
    pub not_valid: bool,
    /// VALIDATE CONSTRAINT, which the tree has as DROP CONSTRAINT.
    pub validate: bool,
    /// Columns, by their places, of DROP EXPRESSION, which the tree has as DROP DEFAULT; and
    /// whether it says IF EXISTS.
    pub expressions: Vec<(Location, bool)>,
    /// SEQUENCE NAME of the identity that is added.
    pub sequence: Option<String>,
    /// Places of columns of which the tree has DROP DEFAULT instead of these actions.
    pub identities: Vec<(Location, IdentityAction)>,
    /// Places of names of which the tree has DROP CONSTRAINT instead of these actions.
    pub idle: Vec<(Location, Idle)>,
    /// Places of the names of columns that are UNIQUE NULLS NOT DISTINCT.
    nulls_equal: Vec<Location>,
    /// COLLATE behind the types of columns, by the places of their names.
    collations: Vec<(Location, ast::ObjectName)>,
}

impl Marks {
    /// Whether the foreign key that names this parent is MATCH FULL.
    pub fn is_full(&self, parent: &ast::ObjectName) -> bool {
        let first = parent.0.first().and_then(|part| part.as_ident());
        first.is_some_and(|name| self.full.contains(&name.span.start))
    }
}

impl Marks {
    /// Whether DROP DEFAULT of this column means DROP EXPRESSION; then, whether IF EXISTS.
    pub fn drops_expression(&self, column: &ast::Ident) -> Option<bool> {
        let mut all = self.expressions.iter();
        all.find_map(|(place, if_exists)| (*place == column.span.start).then_some(*if_exists))
    }
}

impl Marks {
    /// What DROP DEFAULT of this column means of its identity.
    pub fn identity(&self, column: &ast::Ident) -> Option<&IdentityAction> {
        let mut all = self.identities.iter();
        all.find_map(|(place, action)| (*place == column.span.start).then_some(action))
    }
}

impl Marks {
    /// What DROP CONSTRAINT of this name stands for.
    pub fn idle(&self, name: &ast::Ident) -> Option<&Idle> {
        let mut all = self.idle.iter();
        all.find_map(|(place, idle)| (*place == name.span.start).then_some(idle))
    }

    /// The collation that ALTER COLUMN .. TYPE gives this column.
    pub fn collation(&self, column: &ast::Ident) -> Option<&ast::ObjectName> {
        let mut all = self.collations.iter();
        all.find_map(|(place, name)| (*place == column.span.start).then_some(name))
    }

    /// Whether UNIQUE of this column is NULLS NOT DISTINCT.
    pub fn has_equal_nulls(&self, column: &ast::Ident) -> bool {
        self.nulls_equal.contains(&column.span.start)
    }
}

/// SET CONSTRAINTS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraints {
    /// Names of foreign keys; `None`: ALL.
    pub names: Option<Vec<String>>,
    /// Whether they are checked at the end of the transaction, not of each statement.
    pub deferred: bool,
}

fn constraint_name(words: &mut Words<'_>) -> Result<String, SqlError> {
    let mut parts = name(words)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => Err(words
            .unsupported("a schema in SET CONSTRAINTS")
            .hint("Name the constraint alone: it is meant in every schema.")),
    }
}

/// SET CONSTRAINTS, whose words begin with that.
pub(super) fn set(words: &mut Words<'_>) -> Result<Kind, SqlError> {
    words.expect(&["SET", "CONSTRAINTS"])?;
    let mut names = None;
    if !words.take(&["ALL"]) {
        let names = names.insert(vec![constraint_name(words)?]);
        while words.take_token(&Token::Comma) {
            names.push(constraint_name(words)?);
        }
    }
    let deferred = words.take(&["DEFERRED"]);
    if !deferred {
        words.expect(&["IMMEDIATE"])?;
    }
    words.expect_end()?;
    Ok(Kind::Constraints(Constraints { names, deferred }))
}

/// ALTER TABLE.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct AlterStatement {
    pub statement: ast::Statement,
    pub marks: Marks,
}

/// A statement whose list of constraints has the words taken out.
pub(super) struct Simplified {
    pub(super) tokens: Vec<TokenWithSpan>,
    pub(super) marks: Marks,
}

/// The tokens of a CREATE TABLE or ALTER TABLE, and what was taken out of them.
///
/// # Errors
/// 0A000 for MATCH PARTIAL, NO INHERIT and keys that are NOT VALID; 42601 for words in the wrong
/// place.
pub(super) fn simplified(
    source: &Source,
    tokens: &[TokenWithSpan],
) -> Result<Simplified, SqlError> {
    let mut reader = Reader {
        source,
        tokens,
        at: 0,
        kept: Vec::with_capacity(tokens.len()),
        marks: Marks::default(),
        is_alter: is_word(tokens, 0, "ALTER"),
    };
    reader.run()?;
    Ok(Simplified {
        tokens: reader.kept,
        marks: reader.marks,
    })
}

pub(super) fn is_word(tokens: &[TokenWithSpan], at: usize, word: &str) -> bool {
    matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(found))
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

struct Reader<'a> {
    source: &'a Source,
    tokens: &'a [TokenWithSpan],
    at: usize,
    kept: Vec<TokenWithSpan>,
    marks: Marks,
    is_alter: bool,
}

impl Reader<'_> {
    fn is(&self, ahead: usize, word: &str) -> bool {
        is_word(self.tokens, self.at + ahead, word)
    }

    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.token)
    }

    fn keep(&mut self) {
        self.kept.push(self.tokens[self.at].clone());
        self.at += 1;
    }

    fn refused(&self, at: usize, message: String) -> SqlError {
        let place = self.source.position(self.tokens[at].span.start);
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).at(place)
    }

    fn run(&mut self) -> Result<(), SqlError> {
        // Constraints stand in the list of columns, or behind ALTER TABLE without parentheses.
        let wanted = usize::from(!self.is_alter);
        let (mut depth, mut element) = (0, 0);
        while let Some(token) = self.token() {
            let (is_comma, opens, closes) = (
                *token == Token::Comma,
                *token == Token::LParen,
                *token == Token::RParen,
            );
            if depth == wanted && self.is(0, "REFERENCES") {
                self.references()?;
            } else if depth == wanted && self.is(0, "NO") && self.is(1, "INHERIT") {
                let message = "NO INHERIT is not supported".into();
                return Err(self.refused(self.at, message));
            } else if self.is_alter && depth == 0 && self.is(0, "COLLATE") {
                self.collation(element);
            } else if depth == wanted && self.is(0, "UNIQUE") && self.is(1, "NULLS") {
                self.unique(element);
            } else if depth == wanted && self.is(0, "NOT") && self.is(1, "VALID") {
                self.not_valid(element)?;
            } else if self.is_alter && depth == 0 && self.is(0, "VALIDATE") {
                self.validate()?;
            } else if self.is_alter && depth == 0 && self.is(0, "DROP") && self.is(1, "EXPRESSION")
            {
                self.drop_expression();
            } else {
                depth = match (opens, closes) {
                    (true, _) => depth + 1,
                    (_, true) => depth.saturating_sub(1),
                    _ => depth,
                };
                self.keep();
                if depth == wanted && (is_comma || opens) {
                    element = self.at;
                }
            }
        }
        Ok(())
    }

    /// `REFERENCES name [(columns)] [MATCH FULL | PARTIAL | SIMPLE]`
    fn references(&mut self) -> Result<(), SqlError> {
        self.keep();
        let parent = self.tokens.get(self.at).map(|token| token.span.start);
        while let Some(Token::Word(_)) = self.token() {
            self.keep();
            if self.token() != Some(&Token::Period) {
                break;
            }
            self.keep();
        }
        if self.token() == Some(&Token::LParen) {
            while self.token().is_some_and(|token| *token != Token::RParen) {
                self.keep();
            }
            if self.token().is_some() {
                self.keep();
            }
        }
        if !self.is(0, "MATCH") {
            return Ok(());
        }
        if self.is(1, "PARTIAL") {
            return Err(self.refused(self.at, "MATCH PARTIAL not yet implemented".into()));
        }
        if self.is(1, "FULL") {
            self.marks.full.extend(parent);
        } else if !self.is(1, "SIMPLE") {
            return Err(self.source.unexpected(self.tokens.get(self.at + 1)));
        }
        self.at += 2;
        Ok(())
    }

    /// `COLLATE name` behind the type of ALTER COLUMN, which the library does not know there.
    fn collation(&mut self, element: usize) {
        let last = |word: &str| {
            (element..self.at)
                .rev()
                .find(|at| is_word(self.tokens, *at, word))
        };
        let (altered, typed) = (last("ALTER"), last("TYPE"));
        let (Some(altered), Some(typed)) = (altered, typed) else {
            return self.keep();
        };
        if last("USING").is_some() || typed < altered {
            return self.keep();
        }
        let column = altered + 1 + usize::from(is_word(self.tokens, altered + 1, "COLUMN"));
        let mut words = Words::new(self.tokens, self.source);
        words.at = self.at + 1;
        let (Ok(parts), Some(column)) = (name(&mut words), self.tokens.get(column)) else {
            return self.keep();
        };
        let parts = parts
            .into_iter()
            .map(|part| ast::Ident::with_quote('"', part));
        let named = ast::ObjectName::from(parts.collect::<Vec<_>>());
        self.marks.collations.push((column.span.start, named));
        self.at = words.at;
    }

    /// `UNIQUE NULLS [NOT] DISTINCT` of a column; the library knows it of a list of columns.
    fn unique(&mut self, element: usize) {
        self.keep();
        let not = self.is(1, "NOT");
        let end = self.at + if not { 3 } else { 2 };
        let is_distinct = is_word(self.tokens, end - 1, "DISTINCT");
        let behind = self.tokens.get(end).map(|token| &token.token);
        if !is_distinct || behind == Some(&Token::LParen) {
            return;
        }
        let mut name = element;
        if self.is_alter {
            let adds = (element..self.at).find(|at| is_word(self.tokens, *at, "ADD"));
            name = adds.map_or(element, |at| at + 1);
            for words in [&["COLUMN"][..], &["IF", "NOT", "EXISTS"]] {
                let mut all = words.iter().enumerate();
                if all.all(|(i, word)| is_word(self.tokens, name + i, word)) {
                    name += words.len();
                }
            }
        }
        if let Some(token) = self.tokens.get(name).filter(|_| not) {
            self.marks.nulls_equal.push(token.span.start);
        }
        self.at = end;
    }

    /// NOT VALID of the constraint whose element of the list begins at `element`. A new table has
    /// no rows: its constraints are valid, as in PostgreSQL.
    fn not_valid(&mut self, element: usize) -> Result<(), SqlError> {
        let mut first = element;
        if self.is_alter {
            let adds = |at: &usize| {
                let kinds = ["CONSTRAINT", "CHECK", "FOREIGN", "UNIQUE", "PRIMARY"];
                let mut kinds = kinds.iter();
                is_word(self.tokens, *at, "ADD")
                    && kinds.any(|kind| is_word(self.tokens, at + 1, kind))
            };
            first = (element..self.at).find(adds).map_or(self.at, |at| at + 1);
        }
        if is_word(self.tokens, first, "CONSTRAINT") {
            first += 2;
        }
        let is = |word| is_word(self.tokens, first, word);
        let behind = |at: &usize| {
            let attributes = ["NOT", "DEFERRABLE", "INITIALLY", "IMMEDIATE", "DEFERRED"];
            attributes
                .iter()
                .any(|word| is_word(self.tokens, *at, word))
        };
        let end = (self.at + 2..).find(|at| !behind(at)).expect("tokens end");
        let is_last = match self.tokens.get(end).map(|token| &token.token) {
            None => true,
            Some(token) => matches!(token, Token::Comma | Token::RParen),
        };
        for kind in ["UNIQUE", "PRIMARY"] {
            if is(kind) && is_last {
                let kind = if kind == "PRIMARY" {
                    "PRIMARY KEY"
                } else {
                    kind
                };
                let message = format!("{kind} constraints cannot be marked NOT VALID");
                return Err(self.refused(self.at, message));
            }
        }
        if !is_last || !(is("CHECK") || is("FOREIGN")) {
            return Err(self.source.unexpected(self.tokens.get(self.at + 1)));
        }
        self.marks.not_valid = true;
        self.at += 2;
        Ok(())
    }

    /// `DROP EXPRESSION [IF EXISTS]` behind the name of a column.
    fn drop_expression(&mut self) {
        let is_end = |at| match self
            .tokens
            .get(at)
            .map(|token: &TokenWithSpan| &token.token)
        {
            None => true,
            Some(token) => matches!(token, Token::Comma | Token::SemiColon),
        };
        let if_exists = self.is(2, "IF") && self.is(3, "EXISTS");
        let end = self.at + if if_exists { 4 } else { 2 };
        let Some(column) = self.at.checked_sub(1).filter(|_| is_end(end)) else {
            return self.keep();
        };
        let column = self.tokens[column].span.start;
        self.marks.expressions.push((column, if_exists));
        self.keep();
        let span = self.tokens[self.at].span;
        let default = TokenWithSpan::new(super::word("DEFAULT"), span);
        self.kept.push(default);
        self.at = end;
    }

    /// `VALIDATE CONSTRAINT name`, to the end.
    fn validate(&mut self) -> Result<(), SqlError> {
        if !self.is(1, "CONSTRAINT") {
            self.keep();
            return Ok(());
        }
        if self.tokens.len() > self.at + 3 {
            let comma = self.tokens[self.at + 3].token == Token::Comma;
            if !comma {
                return Err(self.source.unexpected(self.tokens.get(self.at + 3)));
            }
        }
        let drop = TokenWithSpan::new(super::word("DROP"), self.tokens[self.at].span);
        self.kept.push(drop);
        self.at += 1;
        self.marks.validate = true;
        Ok(())
    }
}
