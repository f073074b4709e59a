//! The setting `search_path`: its text, the schemas that it means, and what a name means by it.

use super::*;
use ::rights::{Privileges, RoleId};
use base::SqlError;
use base::full_name::{full, own, schema_of};
use catalog::{INFORMATION_SCHEMA, Names, PG_CATALOG_SCHEMA};

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

/// The schemas of a setting, in their order: those that are there and that the role may use.
pub fn schemas(
    catalog: &Catalog,
    database: &Database,
    (role, user): (RoleId, &str),
    setting: &str,
) -> Vec<u32> {
    let mut found = Vec::new();
    for name in listed(setting).unwrap_or_default() {
        let name = if name == "$user" { user } else { &name };
        let Some(schema) = database.schema(name) else {
            continue;
        };
        let usable = || catalog.may_use(database, schema, role, Privileges::USAGE);
        if !found.contains(&schema) && usable() {
            found.push(schema);
        }
    }
    found
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
    if let Some(schema) = schema {
        if let Some(table) = lookup(Some(schema), name) {
            return Some(Meant::System(table));
        }
        return names.find(Some(schema), name, has).map(Meant::Own);
    }
    if !names.path.contains(&PG_CATALOG_SCHEMA)
        && let Some(table) = lookup(None, name)
    {
        return Some(Meant::System(table));
    }
    names.path.iter().find_map(|schema| {
        let system = match *schema {
            PG_CATALOG_SCHEMA => lookup(None, name),
            INFORMATION_SCHEMA => lookup(Some("information_schema"), name),
            schema => {
                let full = full(schema, name);
                return has(names.database, &full).then_some(Meant::Own(full));
            }
        };
        system.map(Meant::System)
    })
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
            setting,
        )
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
        optional(
            path.first()
                .map(|schema| self.database.schema_name(*schema)),
        )
    }

    /// `current_schemas(with those that are searched in any case)`.
    fn current_schemas(&self, implicit: bool) -> Datum {
        let mut path = self.path();
        if implicit && !path.contains(&PG_CATALOG_SCHEMA) {
            path.insert(0, PG_CATALOG_SCHEMA);
        }
        array(
            path.iter()
                .map(|schema| text(self.database.schema_name(*schema))),
        )
    }
}

/// Whether a database has this type.
pub(super) fn has_type(database: &Database, full: &str) -> bool {
    database.type_named(full).is_some()
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
