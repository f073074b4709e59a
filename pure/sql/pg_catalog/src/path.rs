//! The setting `search_path`: its text, the schemas that it means, and what a name means by it.

use super::*;
use ::rights::{Privileges, RoleId};
use base::SqlError;
use base::full_name::{full, is_temporary, own, schema_of, temporary_of};
use catalog::{INFORMATION_SCHEMA, Names, PG_CATALOG_SCHEMA, TEMPORARY_ALIAS, objects};

/// The value that the setting begins with.
pub const DEFAULT: &str = "\"$user\", public";

/// The names in a list of schemas; `None`: it is no list.
pub fn listed(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return Some(all);
    }
    loop {
        let name;
        match rest.strip_prefix('"') {
            Some(inner) => (name, rest) = quoted(inner)?,
            None => {
                let end = rest.find(|c: char| c == ',' || c.is_whitespace());
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                if word.is_empty() || word.contains('"') {
                    return None;
                }
                (name, rest) = (parse_word(word), behind);
            }
        }
        all.push(name);
        rest = rest.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() => return Some(all),
            None => return None,
        }
    }
}

/// The name behind an opening quote, and what follows the closing one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (before, behind) = rest.split_once('"')?;
        name.push_str(before);
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}

fn parse_word(word: &str) -> String {
    let mut folded = word.to_lowercase();
    let mut end = folded.len().min(base::limits::NAME_BYTES_MAX);
    while !folded.is_char_boundary(end) {
        end -= 1;
    }
    folded.truncate(end);
    folded
}

/// The schemas of a setting, in their order: those that are there and that the role may use. The
/// schema of the session, `own`, comes first unless the setting names it; it is there twice if the
/// setting begins with it ([`Names::first`]).
pub fn schemas(
    catalog: &Catalog,
    database: &Database,
    (role, user): (RoleId, &str),
    own: Option<u32>,
    setting: &str,
) -> Vec<u32> {
    let mut found = Vec::new();
    let listed = listed(setting).unwrap_or_default();
    for (place, name) in listed.into_iter().enumerate() {
        let name = if name == "$user" { user } else { &name };
        if let (TEMPORARY_ALIAS, Some(own)) = (name, own)
            && !found.contains(&own)
        {
            found.push(own);
            if place == 0 {
                found.push(own);
            }
            continue;
        }
        let Some(schema) = database.schema(name) else {
            continue;
        };
        let usable = || catalog.may_use(database, schema, role, Privileges::USAGE);
        if !found.contains(&schema) && !is_temporary(schema) && usable() {
            found.push(schema);
        }
    }
    if let Some(own) = own.filter(|own| !found.contains(own)) {
        found.insert(0, own);
    }
    found
}

/// Whether a setting names the schema of the session.
pub fn names_temporary(setting: &str) -> bool {
    setting.len() >= TEMPORARY_ALIAS.len()
        && listed(setting).is_some_and(|all| all.iter().any(|name| name == TEMPORARY_ALIAS))
}

/// What the name of a relation means.
pub enum Meant {
    /// One of the system catalog.
    System(&'static VirtualTable),
    /// One of users, by its full name.
    Own(String),
}

/// What a name means, with or without a schema; `has` tells which objects of users count.
pub fn meant(
    names: &Names<'_>,
    schema: Option<&str>,
    name: &str,
    has: impl Fn(&Database, &str) -> bool,
) -> Option<Meant> {
    let system = |table: &'static VirtualTable| match own_table(names.database, table) {
        Some(full) => Meant::Own(full),
        None => Meant::System(table),
    };
    if let Some(schema) = schema {
        if let Some(table) = lookup(Some(schema), name) {
            return Some(system(table));
        }
        return names.find(Some(schema), name, has).map(Meant::Own);
    }
    if let Some(own) = names.path.first().filter(|schema| is_temporary(**schema)) {
        let full = full(*own, name);
        if has(names.database, &full) {
            return Some(Meant::Own(full));
        }
    }
    if !names.path.contains(&PG_CATALOG_SCHEMA)
        && let Some(table) = lookup(None, name)
    {
        return Some(system(table));
    }
    names.path.iter().find_map(|schema| {
        let found = match *schema {
            PG_CATALOG_SCHEMA => lookup(None, name),
            INFORMATION_SCHEMA => lookup(Some("information_schema"), name),
            schema => {
                let full = full(schema, name);
                return has(names.database, &full).then_some(Meant::Own(full));
            }
        };
        found.map(system)
    })
}

/// The full name of the table that holds the rows of one of the system catalog, if there is one:
/// those of large objects, once one has been made.
fn own_table(database: &Database, table: &VirtualTable) -> Option<String> {
    let is_of_objects = matches!(table.name, objects::OBJECTS | objects::PAGES);
    let made = is_of_objects && table.schema == "pg_catalog" && database.keeps_objects();
    made.then(|| full(PG_CATALOG_SCHEMA, table.name))
}

impl<'a> CatalogCx<'a> {
    /// The schemas in which the session looks names up ([`Names::path`]).
    pub fn path(&self) -> Vec<u32> {
        let setting = (self.setting)("search_path");
        let setting = setting.as_deref().unwrap_or(DEFAULT);
        schemas(
            self.catalog,
            self.database,
            (self.acting(), self.user),
            self.temporary(),
            setting,
        )
    }

    /// The schema for what the session has made for itself, if there is something.
    pub(super) fn temporary(&self) -> Option<u32> {
        let has = self.database.has_temporary(self.pid);
        has.then(|| temporary_of(self.pid))
    }

    /// Whether a schema is that of another session.
    pub(super) fn is_of_others(&self, schema: u32) -> bool {
        is_temporary(schema) && schema != temporary_of(self.pid)
    }

    /// The name of the schema of an object.
    pub(super) fn schema_name(&self, full: &str) -> &'a str {
        self.database.schema_name(schema_of(full))
    }

    /// The schema of an object.
    pub(super) fn schema(&self, full: &str) -> Datum {
        text(self.database.schema_name(schema_of(full)))
    }

    /// Schema and name of an object, both in quotes where they need them.
    pub(super) fn qualified(&self, full: &str) -> String {
        use ::functions::keywords::quote_ident;
        let schema = self.database.schema_name(schema_of(full));
        format!("{}.{}", quote_ident(schema), quote_ident(own(full)))
    }

    /// The name in quotes where it needs them, with its schema unless the name alone means it.
    pub(super) fn shown_name(&self, full: &str, has: fn(&Database, &str) -> bool) -> String {
        use ::functions::keywords::quote_ident;
        match self.is_visible(full, has) {
            true => quote_ident(own(full)).into_owned(),
            false => self.qualified(full),
        }
    }

    /// Whether an object is what its name alone means.
    pub(super) fn is_visible(&self, full: &str, has: fn(&Database, &str) -> bool) -> bool {
        let path = self.path();
        let names = Names {
            database: self.database,
            path: &path,
        };
        matches!(meant(&names, None, own(full), has), Some(Meant::Own(found)) if found == full)
    }

    /// A text that is kept, for people ([`Names::kept_text`]).
    pub(super) fn kept_text(&self, text: &str) -> String {
        let path = self.path();
        let names = Names {
            database: self.database,
            path: &path,
        };
        names.kept_text(text)
    }

    /// A text with full names in it, for people ([`Names::shown`]).
    pub(super) fn shown(&self, text: &str) -> String {
        let path = self.path();
        let names = Names {
            database: self.database,
            path: &path,
        };
        names.shown(text).into_owned()
    }

    /// `current_schema()` and `current_schemas(implicit)`.
    pub(super) fn of_path(&self, name: &str, implicit: bool) -> Datum {
        match name {
            "current_schema" => self.current_schema(),
            _ => self.current_schemas(implicit),
        }
    }

    fn current_schema(&self) -> Datum {
        let path = self.path();
        let names = Names {
            database: self.database,
            path: &path,
        };
        let first = names.first().ok();
        optional(first.map(|schema| self.database.schema_name(schema)))
    }

    /// `current_schemas(with those that are searched in any case)`.
    fn current_schemas(&self, implicit: bool) -> Datum {
        let mut path = self.path();
        let setting = (self.setting)("search_path");
        let named = names_temporary(setting.as_deref().unwrap_or(DEFAULT));
        path.dedup();
        let mut begin = 0;
        if !named && path.first().is_some_and(|schema| is_temporary(*schema)) {
            if implicit {
                begin = 1;
            } else {
                path.remove(0);
            }
        }
        if implicit && !path.contains(&PG_CATALOG_SCHEMA) {
            path.insert(begin, PG_CATALOG_SCHEMA);
        }
        array(
            path.iter()
                .map(|schema| text(self.database.schema_name(*schema))),
        )
    }
}

/// Whether a database has this type.
pub(super) fn has_type(database: &Database, full: &str) -> bool {
    let has_rows = || database.tables.contains_key(full) || database.views.contains_key(full);
    database.type_named(full).is_some() || database.domains.contains_key(full) || has_rows()
}

/// # Errors
/// 22023 for a text that is no list.
pub(super) fn check(setting: &str, value: &str) -> Result<String, SqlError> {
    if listed(value).is_some() {
        return Ok(value.to_owned());
    }
    let message = format!("invalid value for parameter \"{setting}\": \"{value}\"");
    Err(SqlError::new(base::SqlState::INVALID_PARAMETER, message).detail("List syntax is invalid."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_a_session_is_named_or_comes_first() {
        for (setting, named) in [
            ("public", false),
            ("public, pg_temp", true),
            ("PG_TEMP", true),
            ("pg_temp_7", false),
            ("\"pg_temp,\"", false),
            ("pg_temp,", false),
        ] {
            assert_eq!(names_temporary(setting), named, "{setting}");
        }
    }

    #[test]
    fn lists_are_read_as_postgres_reads_them() {
        let read = |text: &str| listed(text).map(|all| all.join("|"));
        for (text, names) in [
            ("", ""),
            ("  ", ""),
            ("a", "a"),
            ("A , \"B c\",d", "a|B c|d"),
            ("\"\"", ""),
            ("\"x\"\"y\"", "x\"y"),
            ("\"$user\", public", "$user|public"),
        ] {
            assert_eq!(read(text).as_deref(), Some(names), "{text:?}");
        }
        for text in ["a b", "a,", ",a", "\"a", "a\"b\"", "a,,b"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
