//! Quoting of names and literals, and `format`.

use super::{RESULT_BYTES_MAX, invalid_parameter, too_large};
use base::{Datum, SqlError, SqlState};

/// Words that cannot be names without quotes: all keywords of PostgreSQL 15 that are not
/// "unreserved". Sorted.
static KEYWORDS: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric",
    "authorization", "between", "bigint", "binary", "bit", "boolean", "both", "case", "cast",
    "char", "character", "check", "coalesce", "collate", "collation", "column", "concurrently",
    "constraint", "create", "cross", "current_catalog", "current_date", "current_role",
    "current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal",
    "default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "exists",
    "extract", "false", "fetch", "float", "for", "foreign", "freeze", "from", "full", "grant",
    "greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout",
    "int", "integer", "intersect", "interval", "into", "is", "isnull", "join", "lateral",
    "leading", "least", "left", "like", "limit", "localtime", "localtimestamp", "national",
    "natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric",
    "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing",
    "position", "precision", "primary", "real", "references", "returning", "right", "row",
    "select", "session_user", "setof", "similar", "smallint", "some", "substring", "symmetric",
    "table", "tablesample", "then", "time", "timestamp", "to", "trailing", "treat", "trim",
    "true", "union", "unique", "user", "using", "values", "varchar", "variadic", "verbose",
    "when", "where", "window", "with", "xmlattributes", "xmlconcat", "xmlelement", "xmlexists",
    "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi", "xmlroot", "xmlserialize", "xmltable",
];

/// A name as it must be written in SQL: in double quotes only if they are needed.
pub fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && KEYWORDS.binary_search(&name).is_err();
    if plain { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// A text as a literal of SQL.
pub(super) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// One `%[position$][-][width]type` of a format string.
#[derive(Default)]
struct Specifier {
    /// From 1; `None`: the next one.
    position: Option<usize>,
    left: bool,
    width: Width,
    kind: char,
}

/// The least number of characters of a formatted argument.
#[derive(Default)]
enum Width {
    #[default]
    None,
    Fixed(i64),
    /// `*`: taken from the next argument; `*n$`: from that one.
    Argument(Option<usize>),
}

/// `format(formatstr, ...)`; arguments beyond the first are text forms or NULL.
pub(super) fn format(args: &[Datum]) -> Result<Datum, SqlError> {
    let Some(pattern) = args[0].as_str() else {
        return Ok(Datum::Null);
    };
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut last = 0;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let specifier = read_specifier(&mut chars)?;
        let mut take = |position: Option<usize>| {
            last = position.unwrap_or(last + 1);
            args.get(last).ok_or_else(|| invalid_parameter("too few arguments for format()"))
        };
        let mut width = match specifier.width {
            Width::None => 0,
            Width::Fixed(width) => width,
            Width::Argument(position) => {
                take(position)?.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
            }
        };
        let value = render(specifier.kind, take(specifier.position)?)?;
        let left = specifier.left || width < 0;
        width = width.abs();
        let missing = usize::try_from(width).unwrap_or(0).saturating_sub(value.chars().count());
        if missing + out.len() > RESULT_BYTES_MAX {
            return Err(too_large());
        }
        let blanks = " ".repeat(missing);
        out.push_str(&if left { value + &blanks } else { blanks + &value });
    }
    Ok(out.into())
}

fn render(kind: char, value: &Datum) -> Result<String, SqlError> {
    Ok(match (kind, value.as_str()) {
        ('s', Some(text)) => text.to_string(),
        ('s', None) => String::new(),
        ('I', Some(text)) => quote_ident(text),
        ('I', None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
        }
        ('L', Some(text)) => quote_literal(text),
        ('L', None) => "NULL".to_string(),
        (other, _) => {
            let message = format!("unrecognized format() type specifier \"{other}\"");
            return Err(invalid_parameter(message)
                .hint("For a single \"%\" use \"%%\"."));
        }
    })
}

fn read_specifier(
    chars: &mut core::iter::Peekable<core::str::Chars<'_>>,
) -> Result<Specifier, SqlError> {
    let mut specifier = Specifier::default();
    let number = |chars: &mut core::iter::Peekable<core::str::Chars<'_>>| {
        let mut value = None;
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            let digit = i64::from(digit.to_digit(10).expect("an ASCII digit"));
            value = Some(value.unwrap_or(0i64).saturating_mul(10).saturating_add(digit));
        }
        value
    };
    let position = |value: i64| match usize::try_from(value) {
        Ok(position) if position > 0 => Ok(position),
        _ => Err(invalid_parameter(
            "format specifies argument 0, but arguments are numbered from 1",
        )),
    };
    if let Some(value) = number(chars) {
        if chars.next_if_eq(&'$').is_some() {
            specifier.position = Some(position(value)?);
        } else {
            specifier.width = Width::Fixed(value);
        }
    }
    if chars.next_if_eq(&'-').is_some() {
        specifier.left = true;
    }
    if chars.next_if_eq(&'*').is_some() {
        let value = number(chars).map(position).transpose()?;
        if value.is_some() {
            chars.next_if_eq(&'$');
        }
        specifier.width = Width::Argument(value);
    } else if let Some(value) = number(chars) {
        specifier.width = Width::Fixed(value);
    }
    specifier.kind = chars.next().ok_or_else(|| {
        invalid_parameter("unterminated format() type specifier")
            .hint("For a single \"%\" use \"%%\".")
    })?;
    Ok(specifier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
        assert_eq!(quote_ident("select"), "\"select\"");
        assert_eq!(quote_ident("name"), "name");
        assert_eq!(quote_ident("Ab\"c"), "\"Ab\"\"c\"");
        assert_eq!(quote_literal("it's \\"), "E'it''s \\\\'");
    }
}
