//! The text of an expression that the catalog keeps: a default, a condition of CHECK.

use ::functions::keywords::quote_ident;
use base::full_name::split;
use base::{SqlError, SqlState, Type};
use bind::{Binder, scope_of};
use catalog::{Table, mark};
use expr::{Expr, Func, walk};
use sqlparser::ast;
use std::sync::Arc;

/// Words of types that have several.
const MORE: [&str; 6] = ["VARYING", "PRECISION", "WITH", "WITHOUT", "TIME", "ZONE"];

/// The expression as PostgreSQL shows it: without parentheses around the whole, types of casts in
/// small letters. A table that is made from it gives the same text again.
pub(super) fn text(mut expression: &ast::Expr) -> String {
    while let ast::Expr::Nested(inner) = expression {
        expression = inner;
    }
    small_types(&expression.to_string())
}

/// As [`check_text`] for a condition that is new.
pub(super) fn new_check_text(
    table: &Table,
    check: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<String, SqlError> {
    let bound = check_bound(table, check, binder)?;
    binder.check_style(&bound, "a check constraint")?;
    Ok(kept(&text(check), binder))
}

/// Checks that a condition binds over the table, and gives its text for the catalog.
pub(super) fn check_text(
    table: &Table,
    check: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<String, SqlError> {
    check_bound(table, check, binder)?;
    Ok(kept(&text(check), binder))
}

fn check_bound(
    table: &Table,
    check: &ast::Expr,
    binder: &mut Binder<'_>,
) -> Result<Expr, SqlError> {
    let outer = binder.set_scope(scope_of(&Arc::new(table.clone())));
    let bound = binder.plain_style(|binder| binder.condition(check, "CHECK"));
    binder.set_scope(outer);
    let bound = bound?;
    let version = |node: &Expr| matches!(node, Expr::Call(Func::RowVersion, ..));
    let place = |node: &Expr| matches!(node, Expr::Column(_, Type::Tid));
    for (name, is_read) in [
        ("xmin", walk::any(&bound, &version)),
        ("ctid", walk::any(&bound, &place)),
    ] {
        if is_read {
            let message =
                format!("system column \"{name}\" reference in check constraint is invalid");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
    }
    if !binder.take_calls().is_empty() || !binder.inits.is_empty() {
        let message = "cannot use subquery or session functions in check constraint";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(bound)
}

/// Writes what follows `::` in small letters, outside of quotes.
fn small_types(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(ty) = rest.strip_prefix("::") {
            out.push_str("::");
            rest = ty;
            let mut first = true;
            loop {
                let blanks = rest.len() - rest.trim_start_matches(' ').len();
                let word = &rest[blanks..];
                let word = &word[..word
                    .find(|c: char| !c.is_ascii_alphanumeric())
                    .unwrap_or(word.len())];
                if word.is_empty() || !first && !MORE.contains(&word) {
                    break;
                }
                out.push_str(&rest[..blanks]);
                out.push_str(&word.to_ascii_lowercase());
                rest = &rest[blanks + word.len()..];
                first = false;
            }
            continue;
        }
        // A doubled quote ends one text and begins the next: nothing lies between them.
        let length = match c {
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |end| end + 2),
            c => c.len_utf8(),
        };
        let (head, tail) = rest.split_at(length);
        out.push_str(head);
        rest = tail;
    }
    out
}

/// The text with the schemas of what it names, so that it means the same by any path: sequences
/// and other relations in literals, and types behind `::` and AS.
pub(super) fn kept(text: &str, binder: &Binder<'_>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\'' {
            let (literal, behind) = rest.split_at(quoted_bytes(rest));
            out.push_str(&relation(literal, &out, behind, binder));
            rest = behind;
            continue;
        }
        let behind = rest
            .strip_prefix("::")
            .or_else(|| rest.strip_prefix(" AS "));
        if let Some(behind) = behind {
            out.push_str(&rest[..rest.len() - behind.len()]);
            rest = behind;
            let name = name_bytes(rest);
            let (written, behind) = rest.split_at(name);
            out.push_str(&of_type(written, binder).unwrap_or_else(|| written.into()));
            rest = behind;
            continue;
        }
        if c == '"' || c == '_' || c.is_alphabetic() {
            let (written, behind) = rest.split_at(name_bytes(rest).max(c.len_utf8()));
            let called = behind.starts_with('(').then(|| function(written, binder));
            out.push_str(&called.flatten().unwrap_or_else(|| written.into()));
            rest = behind;
            continue;
        }
        let (head, tail) = rest.split_at(c.len_utf8());
        out.push_str(head);
        rest = tail;
    }
    out
}

/// A function of users that is called.
fn function(written: &str, binder: &Binder<'_>) -> Option<String> {
    let mut parts = pg_catalog::names::parts(written).ok()?;
    let name = parts.pop()?;
    let schema = parts.pop();
    if schema.is_none() && expr::resolve::is_known(&name) {
        return None;
    }
    let all = binder.routines_named(schema.as_deref(), &name);
    all.first().map(|function| marked(&function.name))
}

/// Bytes of the text or the name in quotes at the beginning.
fn quoted_bytes(text: &str) -> usize {
    let quote = &text[..1];
    let mut at = 1;
    while let Some(end) = text[at..].find(quote) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Bytes of the name, with qualifications, at the beginning.
fn name_bytes(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        at += match rest.starts_with('"') {
            true => quoted_bytes(rest),
            false => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
        };
        match text[at..].strip_prefix('.') {
            Some(_) => at += 1,
            None => return at,
        }
    }
}

/// A name with the mark of its schema.
fn marked(full: &str) -> String {
    let (schema, name) = split(full);
    format!("{}.{}", mark(schema), quote_ident(name))
}

/// A literal that names a relation by what stands around it.
fn relation(literal: &str, before: &str, behind: &str, binder: &Binder<'_>) -> String {
    let called = before.trim_end().strip_suffix('(').is_some_and(|call| {
        let call = call.trim_end().to_ascii_lowercase();
        ["nextval", "currval", "setval"]
            .iter()
            .any(|name| call.ends_with(name))
    });
    let inner = literal
        .strip_prefix('\'')
        .and_then(|inner| inner.strip_suffix('\''));
    if !called && !behind.starts_with("::regclass") {
        return literal.into();
    }
    let full = inner.and_then(|inner| binder.of_text(&inner.replace("''", "'")));
    match full {
        Some(full) => format!("'{}'", marked(&full).replace('\'', "''")),
        None => literal.into(),
    }
}

/// A type of users.
fn of_type(written: &str, binder: &Binder<'_>) -> Option<String> {
    let mut parts = pg_catalog::names::parts(written).ok()?;
    let name = parts.pop()?;
    let schema = parts.pop();
    if schema.is_none() && Type::named(&name).is_some() {
        return None;
    }
    let full = binder.names().of_type(schema.as_deref(), &name)?;
    Some(marked(&full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_casts_are_small() {
        for (text, expected) in [
            ("'it''s::X'::TEXT", "'it''s::X'::text"),
            ("nextval('A::B'::REGCLASS)", "nextval('A::B'::regclass)"),
            (
                "x::CHARACTER VARYING(5) || Y",
                "x::character varying(5) || Y",
            ),
            (
                "x::TIMESTAMP WITH TIME ZONE AT TIME ZONE 'X'",
                "x::timestamp with time zone AT TIME ZONE 'X'",
            ),
            ("\"A::B\" > 1::INT[]", "\"A::B\" > 1::int[]"),
        ] {
            assert_eq!(small_types(text), expected);
        }
    }
}
