//! The text of an expression that the catalog keeps: a default, a condition of CHECK.

use sqlparser::ast;

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
