//! Names to oids and back: `regclass`, `regtype`, `regnamespace`, `regproc`, `regrole`.
//!
//! A value of these types is the oid; its text form is looked up where it is asked for: by a cast
//! to text, and when a row goes to the client.

use super::path::{self, Meant};
use super::procs;
use super::types::{self, by_oid};
use super::*;
use ::functions::keywords::quote_ident;
use base::{SqlError, SqlState};

/// Splits `a."B".c` into its parts, folded to lower case outside of quotes.
///
/// # Errors
/// 42602 if it is not a sequence of identifiers.
pub fn parts(text: &str) -> Result<Vec<String>, SqlError> {
    let invalid = || SqlError::new(SqlState(*b"42602"), "invalid name syntax");
    let mut parts = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut part = String::new();
                let mut chars = quoted.char_indices();
                let end = loop {
                    match chars.next().ok_or_else(invalid)? {
                        (at, '"') if quoted[at + 1..].starts_with('"') => {
                            chars.next();
                            part.push('"');
                        }
                        (at, '"') => break at + 1,
                        (_, c) => part.push(c),
                    }
                };
                (part, quoted[end..].trim_start())
            }
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim_end().to_lowercase(), &rest[end..])
            }
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if after.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// A name of `most` parts begins with a database, which can only be `own`; none has more. Errors
/// show it between `quotes`.
///
/// # Errors
/// 0A000, 42601.
pub fn check_parts(own: &str, parts: &[String], most: usize, quotes: &str) -> Result<(), SqlError> {
    let shown = parts.join(".");
    if parts.len() > most {
        let message = format!("improper qualified name (too many dotted names): {shown}");
        return Err(SqlError::new(SqlState::SYNTAX, message));
    }
    if parts.len() == most && parts[0] != own {
        let message =
            format!("cross-database references are not implemented: {quotes}{shown}{quotes}");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    Ok(())
}

/// Schema, if given, and name of a relation by the parts of its name, which may begin with the
/// database `own`.
///
/// # Errors
/// 0A000, 42601.
pub fn qualified(own: &str, mut parts: Vec<String>) -> Result<(Option<String>, String), SqlError> {
    check_parts(own, &parts, 3, "\"")?;
    let name = parts.pop().unwrap_or_default();
    Ok((parts.pop(), name))
}

/// The same of a relation whose schema must be there.
///
/// # Errors
/// Those of [`qualified`] and [`known_schema`].
pub fn in_known_schema(
    database: &Database,
    parts: Vec<String>,
) -> Result<(Option<String>, String), SqlError> {
    let found = qualified(&database.name, parts)?;
    known_schema(database, found.0.as_deref())?;
    Ok(found)
}

/// Refuses a schema that is not there.
///
/// # Errors
/// 3F000.
pub fn known_schema(database: &Database, schema: Option<&str>) -> Result<(), SqlError> {
    match schema {
        None => Ok(()),
        // Every session has one, with something in it or not.
        Some(catalog::TEMPORARY_ALIAS) => Ok(()),
        Some(schema) if database.schema(schema).is_some() => Ok(()),
        Some(schema) => {
            let message = format!("schema \"{schema}\" does not exist");
            Err(SqlError::new(SqlState::INVALID_SCHEMA, message))
        }
    }
}

/// An oid written as a number, as every `reg...` type accepts it; `-` is 0.
fn number(text: &str) -> Option<u32> {
    match text.trim() {
        "-" => Some(0),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => None,
    }
}

/// `text::regoper` and `text::regoperator`: a number, because pg_operator has no rows.
///
/// # Errors
/// 0A000 for a name.
pub fn regoper_in(text: &str) -> Result<u32, SqlError> {
    text.trim().parse().map_err(|_| {
        let message = format!("operator \"{text}\" by its name is not supported");
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    })
}

/// The oid of the table, index, sequence or view with that name; `None` if there is none.
///
/// # Errors
/// 42602, 42601 for text that is not a name; 0A000 for one of another database.
pub fn find_class(cx: &CatalogCx<'_>, text: &str) -> Result<Option<u32>, SqlError> {
    if let Some(number) = number(text) {
        return Ok(Some(number));
    }
    let (schema, name) = qualified(&cx.database.name, parts(text)?)?;
    let path = cx.path();
    let names = catalog::Names {
        database: cx.database,
        path: &path,
    };
    let found = path::meant(&names, schema.as_deref(), &name, Database::has_relation);
    Ok(found.and_then(|found| match found {
        Meant::System(table) => Some(table.oid),
        Meant::Own(full) if catalog::objects::is_own_table(&full) => {
            lookup(None, own(&full)).map(|table| table.oid)
        }
        Meant::Own(full) => class_of(cx, &full),
    }))
}

/// The number of a relation by its full name.
fn class_of(cx: &CatalogCx<'_>, full: &str) -> Option<u32> {
    if let Some(table) = cx.database.tables.get(full) {
        return Some(table.id.0);
    }
    if let Some(sequence) = cx.database.sequences.get(full) {
        return Some(sequence.id.0);
    }
    if let Some(view) = cx.database.views.get(full) {
        return Some(view.id.0);
    }
    let (_, index) = cx.database.index(full)?;
    Some(index.id.0)
}

/// `text::regclass`.
///
/// # Errors
/// 42P01 or 3F000 if there is no such relation or schema, and those of [`find_class`].
pub fn regclass_in(cx: &CatalogCx<'_>, text: &str) -> Result<u32, SqlError> {
    if let Some(found) = find_class(cx, text)? {
        return Ok(found);
    }
    let (schema, name) = in_known_schema(cx.database, parts(text)?)?;
    let shown = schema.map_or_else(|| name.clone(), |schema| format!("{schema}.{name}"));
    let message = format!("relation \"{shown}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_TABLE, message))
}

/// `oid::regclass`: the name, with its schema if that is not in the search path; the number if
/// there is no such relation.
pub fn regclass_out(cx: &CatalogCx<'_>, oid: u32) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    if let Some(table) = all().find(|table| table.oid == oid) {
        let name = quote_ident(table.name);
        let path = cx.path();
        let names = catalog::Names {
            database: cx.database,
            path: &path,
        };
        let alone = path::meant(&names, None, table.name, Database::has_relation);
        return match alone {
            Some(Meant::System(found)) if found.oid == oid => name.into_owned(),
            Some(Meant::Own(found)) if catalog::objects::is_own_table(&found) => name.into_owned(),
            _ => format!("{}.{name}", table.schema),
        };
    }
    match relation_name(cx, oid) {
        Some(full) => cx.shown_name(&full, Database::has_relation),
        None => oid.to_string(),
    }
}

/// The full name of a relation of users.
pub(super) fn relation_name(cx: &CatalogCx<'_>, oid: u32) -> Option<String> {
    for table in cx.database.tables.values() {
        if table.id.0 == oid {
            return Some(table.name.clone());
        }
        if let Some((index, _)) = indexes(table).find(|(index, _)| index.id.0 == oid) {
            return Some(beside(&table.name, &index.name));
        }
    }
    let mut sequences = cx.database.sequences.values();
    if let Some(sequence) = sequences.find(|sequence| sequence.id.0 == oid) {
        return Some(sequence.name.clone());
    }
    let mut views = cx.database.views.values();
    let view = views.find(|view| view.id.0 == oid)?;
    Some(view.name.clone())
}

/// Types with a name of their own in SQL: (words, name in pg_type).
const SQL_TYPE_NAMES: [(&str, &str); 22] = [
    ("bigint", "int8"),
    ("bit varying", "varbit"),
    ("boolean", "bool"),
    ("char", "bpchar"),
    ("character", "bpchar"),
    ("character varying", "varchar"),
    ("dec", "numeric"),
    ("decimal", "numeric"),
    ("double precision", "float8"),
    ("float", "float8"),
    ("int", "int4"),
    ("integer", "int4"),
    ("national character", "bpchar"),
    ("national character varying", "varchar"),
    ("nchar", "bpchar"),
    ("real", "float4"),
    ("smallint", "int2"),
    ("string", "text"),
    ("time with time zone", "timetz"),
    ("time without time zone", "time"),
    ("timestamp with time zone", "timestamptz"),
    ("timestamp without time zone", "timestamp"),
];

/// The oid of a type by its SQL name, with or without modifier; `None` if there is none.
pub fn find_type(text: &str) -> Option<u32> {
    if let Some(number) = number(text) {
        return Some(number);
    }
    let text = text.trim();
    if let Some(element) = text.strip_suffix("[]") {
        return by_oid(find_type(element)?)
            .map(|row| row.array)
            .filter(|array| *array != 0);
    }
    // Quotes keep "char" apart from char.
    let own = ["pg_catalog.", "\"pg_catalog\"."];
    let bare = own.iter().find_map(|schema| text.strip_prefix(schema));
    let (name, quoted) = match bare.unwrap_or(text) {
        name if name.starts_with('"') => (name.trim_matches('"').to_owned(), true),
        name => (name.to_lowercase(), false),
    };
    let name = match (name.find('('), name.find(')')) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", name[..open].trim_end(), &name[close + 1..])
        }
        _ => name,
    };
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let sql_name = SQL_TYPE_NAMES
        .iter()
        .find(|(words, _)| !quoted && *words == name);
    let name = sql_name.map_or(name.as_str(), |(_, name)| name);
    types::all().find(|row| row.name == name).map(|row| row.oid)
}

/// `text::regtype`.
///
/// # Errors
/// 42704 if there is no such type.
pub fn regtype_in(text: &str) -> Result<u32, SqlError> {
    find_type(text).ok_or_else(|| {
        let message = format!("type \"{}\" does not exist", text.trim().to_lowercase());
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    })
}

/// `format_type(oid, modifier)`; modifier -1: none, `None`: not given.
pub fn type_name(oid: u32, typmod: Option<i32>) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    let Some(row) = by_oid(oid) else {
        return "???".to_owned();
    };
    if row.element != 0 && row.name.starts_with('_') {
        return format!("{}[]", type_name(row.element, typmod));
    }
    // Without a modifier given, bpchar is the SQL type character.
    match (oid, typmod) {
        (1042, None) => return "character".to_owned(),
        (1560, None) => return "bit".to_owned(),
        (1042, Some(-1)) => return "bpchar".to_owned(),
        _ => {}
    }
    match Type::from_oid(oid).filter(|ty| ty.oid() == oid) {
        Some(ty) => ty.with_typmod(typmod.unwrap_or(-1)).name(),
        None => quote_ident(row.name).into_owned(),
    }
}

/// `oid::regtype`: the number if there is no such type.
pub fn regtype_out(oid: u32) -> String {
    match by_oid(oid) {
        None if oid != 0 => oid.to_string(),
        _ => type_name(oid, None),
    }
}

/// `text::regnamespace`.
///
/// # Errors
/// 3F000 if there is no such schema.
pub fn regnamespace_in(cx: &CatalogCx<'_>, text: &str) -> Result<u32, SqlError> {
    if let Some(number) = number(text) {
        return Ok(number);
    }
    find_schema(cx, text)?.ok_or_else(|| {
        let message = format!("schema \"{}\" does not exist", text.trim());
        SqlError::new(SqlState::INVALID_SCHEMA, message)
    })
}

/// The oid of a schema; `None` if there is none.
///
/// # Errors
/// 42602 for text that is not a name.
pub fn find_schema(cx: &CatalogCx<'_>, text: &str) -> Result<Option<u32>, SqlError> {
    Ok(match parts(text)?.as_slice() {
        [name] => cx.database.schema(name),
        _ => None,
    })
}

/// `oid::regnamespace`.
pub fn regnamespace_out(cx: &CatalogCx<'_>, oid: u32) -> String {
    match (oid, cx.database.schema_name(oid)) {
        (0, _) => "-".to_owned(),
        (other, "?") => other.to_string(),
        (_, name) => quote_ident(name).into_owned(),
    }
}

/// The oid of a function by name, `schema.name` or `name(arguments)`; `None` if it is not listed in
/// pg_proc.
pub fn find_proc(text: &str) -> Option<u32> {
    if let Some(number) = number(text) {
        return Some(number);
    }
    let name = text.split('(').next().unwrap_or(text).trim();
    let name = name
        .strip_prefix("pg_catalog.")
        .unwrap_or(name)
        .trim_matches('"');
    let mut found = procs::named(name);
    let first = found.next()?;
    let Some((_, args)) = text.split_once('(') else {
        // A name of several means none of them.
        return found.next().is_none().then_some(first.oid);
    };
    let args = args.trim_end().trim_end_matches(')');
    let args: Vec<&str> = args
        .split(',')
        .map(str::trim)
        .filter(|arg| !arg.is_empty())
        .collect();
    let fits = |proc: &procs::Proc| {
        let pairs = proc.args.iter().zip(&args);
        proc.args.len() == args.len()
            && pairs.into_iter().all(|(oid, arg)| {
                let plain = by_oid(*oid).is_some_and(|ty| ty.name == *arg);
                plain || type_name(*oid, None) == *arg
            })
    };
    core::iter::once(first)
        .chain(found)
        .find(fits)
        .map(|proc| proc.oid)
}

/// `text::regproc`.
///
/// # Errors
/// 42883 if there is no such function in pg_proc, 0A000 if PostgreSQL has it.
pub fn regproc_in(text: &str) -> Result<u32, SqlError> {
    find_proc(text).ok_or_else(|| {
        let name = text.split('(').next().unwrap_or(text).trim();
        let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
        if let Some(error) = ::expr::resolve::absent_function(name) {
            return error;
        }
        let message = format!("function \"{}\" does not exist", text.trim());
        SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
    })
}

/// `oid::regproc`.
pub fn regproc_out(oid: u32) -> String {
    match procs::by_oid(oid) {
        _ if oid == 0 => "-".to_owned(),
        Some(proc) => proc.name.to_owned(),
        None => oid.to_string(),
    }
}

/// `oid::regprocedure`: with the types of the arguments.
pub fn regprocedure_out(oid: u32) -> String {
    match procs::by_oid(oid) {
        Some(proc) if oid != 0 => {
            let args: Vec<String> = proc.args.iter().map(|arg| type_name(*arg, None)).collect();
            format!("{}({})", proc.name, args.join(","))
        }
        _ => regproc_out(oid),
    }
}

/// `text::regrole`.
///
/// # Errors
/// 42704 for any other.
pub fn regrole_in(cx: &CatalogCx<'_>, text: &str) -> Result<u32, SqlError> {
    match number(text) {
        Some(number) => Ok(number),
        None => {
            if let [name] = parts(text)?.as_slice()
                && let Some(role) = cx.role_named(name)
            {
                return Ok(role.0);
            }
            let message = format!("role \"{}\" does not exist", text.trim());
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// `oid::regrole`.
pub fn regrole_out(cx: &CatalogCx<'_>, oid: u32) -> String {
    match oid {
        0 => "-".to_owned(),
        other => quote_ident(&cx.role_name(::rights::RoleId(other))).into_owned(),
    }
}
