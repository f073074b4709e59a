//! What PostgreSQL's grammar has and this one lacks. It is looked for in texts that do not fit
//! alone, so that they answer 0A000 with what to do instead, not 42601.

use super::constraints::is_word;
use super::source::Source;
use base::{SqlError, SqlState};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A form: the words with which it begins, what it is called, and what to do instead. `(` stands
/// for a parenthesis, `*` for a word or a parenthesis with what is in it.
type Form = (&'static [&'static str], &'static str, &'static str);

const XML: &str = "Keep XML in columns of type text, and take it apart in the client.";
const PARTS: &str = "Rows are spread by PARTITION BY (columns) of the primary key.";
const FOREIGN: &str = "There are no foreign tables; load the rows by COPY.";

/// Forms that may stand anywhere in a statement.
const ANYWHERE: &[Form] = &[
    (
        &["ROWS", "FROM", "("],
        "ROWS FROM",
        "Number the rows of each function WITH ORDINALITY, and join them by number.",
    ),
    (&["XMLELEMENT", "("], "XMLELEMENT", XML),
    (&["XMLFOREST", "("], "XMLFOREST", XML),
    (&["XMLPARSE", "("], "XMLPARSE", XML),
    (&["XMLSERIALIZE", "("], "XMLSERIALIZE", XML),
    (&["XMLTABLE", "("], "XMLTABLE", XML),
    (&["XMLPI", "("], "XMLPI", XML),
    (&["XMLCONCAT", "("], "XMLCONCAT", XML),
    (&["XMLROOT", "("], "XMLROOT", XML),
    (&["XMLEXISTS", "("], "XMLEXISTS", XML),
    (&["IS", "DOCUMENT"], "IS DOCUMENT", XML),
    (&["IS", "NOT", "DOCUMENT"], "IS DOCUMENT", XML),
    (&["XML", "OPTION"], "SET XML OPTION", XML),
    (
        &["WHERE", "CURRENT", "OF"],
        "WHERE CURRENT OF",
        "Change the row by its primary key.",
    ),
    (
        &["TABLESAMPLE"],
        "TABLESAMPLE",
        "Say WHERE random() < 0.1, or ORDER BY random() LIMIT 10.",
    ),
    (
        &["FOREIGN", "DATA", "WRAPPER"],
        "FOREIGN DATA WRAPPER",
        FOREIGN,
    ),
    (
        &["FROM", "CURRENT"],
        "SET ... FROM CURRENT",
        "Write the value.",
    ),
];

/// What to do without EXCLUDE.
pub(super) const NO_EXCLUDE: &str = "A UNIQUE constraint can be added. Under SERIALIZABLE, a query \
    for rows that overlap, before the INSERT, keeps ranges apart.";

/// Forms of statements that define something.
const DEFINED: &[Form] = &[
    (&["PARTITION", "OF"], "declarative partitioning", PARTS),
    (&["ATTACH", "PARTITION"], "ATTACH PARTITION", PARTS),
    (
        &["COMPRESSION"],
        "COMPRESSION of a column",
        "Leave it out: rows lie in memory as they are.",
    ),
    (&["EXCLUDE", "USING"], "an EXCLUDE constraint", NO_EXCLUDE),
    (&["EXCLUDE", "("], "an EXCLUDE constraint", NO_EXCLUDE),
    (
        &["SET", "NULL", "("],
        "a list of columns behind SET NULL",
        "All columns of the key are set; leave the list out.",
    ),
    (
        &["SET", "DEFAULT", "("],
        "a list of columns behind SET DEFAULT",
        "All columns of the key are set; leave the list out.",
    ),
    (
        &["PRIMARY", "KEY", "WITH"],
        "a storage parameter of a constraint",
        "Leave it out.",
    ),
    (
        &["UNIQUE", "WITH"],
        "a storage parameter of a constraint",
        "Leave it out.",
    ),
    (
        &["KEY", "*", "INCLUDE"],
        "INCLUDE of a constraint",
        "Create an index with INCLUDE.",
    ),
    (
        &["UNIQUE", "*", "INCLUDE"],
        "INCLUDE of a constraint",
        "Create an index with INCLUDE.",
    ),
    (
        &["KEY", "*", "WITH", "("],
        "a storage parameter of a constraint",
        "Leave it out.",
    ),
    (
        &["UNIQUE", "*", "WITH", "("],
        "a storage parameter of a constraint",
        "Leave it out.",
    ),
    (
        &["SEQUENCE", "NAME"],
        "the name of the sequence of an identity",
        "Leave it out, and rename the sequence.",
    ),
    (&["USER", "MAPPING"], "USER MAPPING", FOREIGN),
    (&["OPTIONS", "("], "OPTIONS", FOREIGN),
    (
        &["SET", "TABLESPACE"],
        "SET TABLESPACE",
        "There is one tablespace, pg_default.",
    ),
    (
        &["DEPENDS", "ON"],
        "DEPENDS ON EXTENSION",
        "There are no extensions to depend on.",
    ),
];

/// Words with which statements begin that define something.
const DEFINING: [&str; 3] = ["CREATE", "ALTER", "DROP"];

/// The error for a form of PostgreSQL's in a text that does not fit; `None`: there is none.
pub(super) fn instead(source: &Source, tokens: &[TokenWithSpan]) -> Option<SqlError> {
    let defines = DEFINING.iter().any(|word| is_word(tokens, 0, word));
    let own: &[Form] = if defines { DEFINED } else { &[] };
    for at in 0..tokens.len() {
        if let Some(error) = special(source, tokens, at, defines) {
            return Some(error);
        }
        let mut forms = ANYWHERE.iter().chain(own);
        if let Some((_, what, hint)) = forms.find(|(form, ..)| fits(tokens, at, form)) {
            return Some(refusal(source, &tokens[at], what, hint));
        }
    }
    None
}

fn refusal(source: &Source, at: &TokenWithSpan, what: &str, hint: &str) -> SqlError {
    let error = super::unsupported(what).hint(hint);
    error.at(source.position(at.span.start))
}

/// Forms that are more than some words.
fn special(
    source: &Source,
    tokens: &[TokenWithSpan],
    at: usize,
    defines: bool,
) -> Option<SqlError> {
    if fits(tokens, at, &["USING", "("]) && is_names(tokens, at + 1) {
        let close = behind(tokens, at + 1)?;
        if is_word(tokens, close, "AS") {
            let hint = "Name the columns by the tables that they are of.";
            return Some(refusal(source, &tokens[close], "a name of USING", hint));
        }
    }
    if !defines {
        return None;
    }
    if is_word(tokens, at, "SETOF") && is_word(tokens, 1, "TABLE") {
        let before = at.checked_sub(1).map(|at| tokens[at].token.to_string());
        let column = before.unwrap_or_default();
        let message = format!("column \"{column}\" cannot be declared SETOF");
        return Some(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    if is_word(tokens, at, "ARRAY") && is_word(tokens, 1, "TABLE") && is_type(tokens, at) {
        let hint = "Write [] behind the type.";
        return Some(refusal(source, &tokens[at], "ARRAY behind a type", hint));
    }
    let of_type = at > 1
        && is_word(tokens, 0, "CREATE")
        && is_word(tokens, at, "OF")
        && (1..4).any(|word| is_word(tokens, word, "TABLE"))
        && !tokens[..at]
            .iter()
            .any(|token| token.token == Token::LParen);
    let hint = "Write the columns of the type.";
    of_type.then(|| refusal(source, &tokens[at], "a table of a type", hint))
}

/// Whether the word ARRAY at `at` stands behind the name of a type, perhaps with a size.
fn is_type(tokens: &[TokenWithSpan], at: usize) -> bool {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    let named = at > 0 && matches!(token(at - 1), Some(Token::Word(_)));
    named
        && match token(at + 1) {
            None | Some(Token::Comma | Token::RParen) => true,
            Some(Token::LBracket) => matches!(token(at + 2), Some(Token::Number(..))),
            _ => false,
        }
}

/// Whether the tokens from `at` on begin with a form.
fn fits(tokens: &[TokenWithSpan], at: usize, form: &[&str]) -> bool {
    let mut at = at;
    for part in form {
        match *part {
            "(" if tokens.get(at).map(|token| &token.token) == Some(&Token::LParen) => at += 1,
            "(" => return false,
            "*" => match behind(tokens, at) {
                Some(next) => at = next,
                None => return false,
            },
            word if is_word(tokens, at, word) => at += 1,
            _ => return false,
        }
    }
    true
}

/// The place behind a word, or behind a parenthesis with what is in it.
fn behind(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (next, token) in tokens.iter().enumerate().skip(at) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(next + 1);
        }
    }
    None
}

/// Whether a list of names stands in the parenthesis at `at`.
fn is_names(tokens: &[TokenWithSpan], at: usize) -> bool {
    let Some(end) = behind(tokens, at) else {
        return false;
    };
    let inside = tokens
        .get(at + 1..end.saturating_sub(1))
        .unwrap_or_default();
    let alternates = inside.iter().enumerate().all(|(i, token)| match i % 2 {
        0 => matches!(token.token, Token::Word(_)),
        _ => token.token == Token::Comma,
    });
    !inside.is_empty() && alternates
}
