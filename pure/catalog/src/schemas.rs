//! Schemas: name spaces of a database, and where a name without a schema is looked up.
//!
//! What is in a schema has the schema's number in its full name ([`base::full_name`]), so another
//! name for a schema changes nothing else, and equal names in two schemas are two objects.
//! Texts that are kept (views, defaults, checks) write the schema `s` as [`mark`] has it: they mean
//! the same object whatever the schema is called later, and whatever the session's path is.

use crate::apply::skip_or_fail;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::domains::DomainChange;
use crate::names;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{self, PUBLIC_SCHEMA, full, is_temporary, schema_of, session_of};
use base::{SqlError, SqlState};
use rights::{By, ObjectKind, Privileges, Target, denied};
use serde::{Deserialize, Serialize};

/// Number of the schema `pg_catalog`.
pub const PG_CATALOG_SCHEMA: u32 = 11;
/// Number of the schema `information_schema`.
pub const INFORMATION_SCHEMA: u32 = 13_207;
/// The path by which kept texts are read: what they name without a schema is in the first one.
pub const KEPT_PATH: &[u32] = &[PUBLIC_SCHEMA];

/// By this name each session has its own schema.
pub const TEMPORARY_ALIAS: &str = "pg_temp";

/// The name of the schema for what the session with this backend number makes for itself.
pub fn temporary_name(pid: i32) -> String {
    format!("{TEMPORARY_ALIAS}_{pid}")
}

/// A change of a schema.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum SchemaChange {
    /// Without a name it is called like its owner; without an owner it belongs to its maker.
    Create {
        name: String,
        owner: Option<rights::RoleName>,
        if_not_exists: bool,
    },
    Drop {
        names: Vec<String>,
        if_exists: bool,
        cascade: bool,
    },
    Rename {
        name: String,
        to: String,
    },
    /// Moves a table, view, sequence or type into a schema.
    Move {
        kind: ObjectKind,
        name: String,
        to: String,
    },
}

/// How a kept text writes a schema: by its number.
pub fn mark(schema: u32) -> String {
    format!("\"${schema}\"")
}

/// The schema that a mark stands for, by what is between its quotes.
fn marked(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('$')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// A kept text for an error: schemas are written as in full names, which get their names when the
/// error is told.
pub fn told(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\"$") {
        let (before, inner) = (&rest[..at], &rest[at + 1..]);
        out.push_str(before);
        let found = inner
            .split_once('"')
            .and_then(|(name, behind)| Some((marked(name)?, behind.strip_prefix('.')?)));
        match found {
            Some((schema, behind)) => {
                out.push_str(&full(schema, ""));
                rest = behind;
            }
            None => {
                out.push('"');
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A database and the schemas in which a name without schema is looked up, in their order. Without
/// [`PG_CATALOG_SCHEMA`] in the list, that one comes first.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The database.
    pub database: &'a Database,
    /// Numbers of schemas that are there.
    pub path: &'a [u32],
}

impl<'a> Names<'a> {
    /// The schema in which things without a schema are made.
    ///
    /// # Errors
    /// 3F000 if the path has none.
    pub fn first(&self) -> Result<u32, SqlError> {
        let mut path = self.path.iter().copied();
        // The session's own schema takes names without a schema only if the setting begins with
        // it, and then it is there twice.
        let first = match self.path {
            [own, again, ..] if own == again => Some(*own),
            _ => path.find(|schema| !is_temporary(*schema)),
        };
        first.ok_or_else(|| {
            let message = "no schema has been selected to create in";
            SqlError::new(SqlState::INVALID_SCHEMA, message)
        })
    }

    /// The schema for what the session makes for itself; `None`: it has made nothing so far.
    pub fn temporary(&self) -> Option<u32> {
        let mut path = self.path.iter().copied();
        path.find(|schema| is_temporary(*schema))
    }

    /// The number of a schema by its name; `pg_temp` is that of the session.
    pub fn schema(&self, name: &str) -> Option<u32> {
        match name {
            TEMPORARY_ALIAS => self.temporary(),
            name => self.database.schema(name),
        }
    }

    /// The full name of an object for which `has` says whether it is there.
    pub fn find(
        &self,
        schema: Option<&str>,
        name: &str,
        has: impl Fn(&Database, &str) -> bool,
    ) -> Option<String> {
        let there = |schema: u32| {
            let full = full(schema, name);
            has(self.database, &full).then_some(full)
        };
        match schema {
            Some(schema) => there(self.schema(schema)?),
            None => self.path.iter().find_map(|schema| there(*schema)),
        }
    }

    /// The full name of the table, view, sequence or index of that name.
    pub fn relation(&self, schema: Option<&str>, name: &str) -> Option<String> {
        self.find(schema, name, Database::has_relation)
    }

    /// The full name of the enum type of that name.
    pub fn of_type(&self, schema: Option<&str>, name: &str) -> Option<String> {
        self.find(schema, name, |database, full| {
            database.type_named(full).is_some() || database.domains.contains_key(full)
        })
    }

    /// Whether an object is what its name alone means.
    pub fn is_visible(&self, full: &str, has: impl Fn(&Database, &str) -> bool) -> bool {
        self.find(None, full_name::own(full), has).as_deref() == Some(full)
    }

    /// What stands before the names of a schema for people: nothing if it is in the path.
    pub fn prefix(&self, schema: u32) -> String {
        match self.path.contains(&schema) {
            true => String::new(),
            false => format!("{}.", names::quoted(self.database.schema_name(schema))),
        }
    }

    /// The text for people: names of schemas for their numbers.
    pub fn shown<'t>(&self, text: &'t str) -> Cow<'t, str> {
        full_name::named(text, &|schema| self.prefix(schema))
    }

    /// An error as [`Names::shown`] shows texts.
    pub fn shown_error(&self, error: SqlError) -> SqlError {
        error.map_texts(full_name::MARK, &|text| self.shown(text).into_owned())
    }

    /// A text that is kept, for people: schemas have their names in place of marks, and are left
    /// out where the name alone means the same.
    pub fn kept_text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("\"$") {
            out.push_str(&rest[..at]);
            let inner = &rest[at + 1..];
            let found = inner
                .split_once('"')
                .and_then(|(name, behind)| Some((marked(name)?, behind.strip_prefix('.')?)));
            let Some((schema, behind)) = found else {
                out.push('"');
                rest = inner;
                continue;
            };
            let (name, after) = names::first_name(behind);
            let behind_call = after.starts_with('(');
            let full = full(schema, &name);
            let has = |database: &Database, full: &str| {
                database.has_relation(full)
                    || database.type_named(full).is_some()
                    || database.domains.contains_key(full)
                    || (behind_call && !database.functions_named(full).is_empty())
            };
            if out.ends_with('.') || !self.is_visible(&full, has) {
                out.push_str(&names::quoted(self.database.schema_name(schema)));
                out.push('.');
            }
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

impl Database {
    /// The number of a schema by its name, or by its mark in a kept text.
    pub fn schema(&self, name: &str) -> Option<u32> {
        match name {
            "pg_catalog" => Some(PG_CATALOG_SCHEMA),
            "information_schema" => Some(INFORMATION_SCHEMA),
            _ => {
                let known = self.schemas.get(name).copied();
                let has = |number: &u32| self.schemas.values().any(|own| own == number);
                known.or_else(|| marked(name).filter(has))
            }
        }
    }

    /// The schemas for what sessions made for themselves, with the sessions' backend numbers.
    pub fn temporary_schemas(&self) -> impl Iterator<Item = (i32, &str)> {
        let begin = String::from(TEMPORARY_ALIAS) + "_";
        let all = self.schemas.range(begin..);
        let all = all.take_while(|(name, _)| name.starts_with(TEMPORARY_ALIAS));
        all.filter_map(|(name, number)| Some((session_of(*number)?, name.as_str())))
    }

    /// Whether a session has made something for itself.
    pub fn has_temporary(&self, pid: i32) -> bool {
        self.schemas.contains_key(&temporary_name(pid))
    }

    /// The name of a schema; `?` if it is gone.
    pub fn schema_name(&self, number: u32) -> &str {
        match number {
            PG_CATALOG_SCHEMA => "pg_catalog",
            INFORMATION_SCHEMA => "information_schema",
            _ => {
                let mut all = self.schemas.iter();
                let found = all
                    .find(|(_, own)| **own == number)
                    .map(|(name, _)| &**name);
                // One that a session is about to make has no name of its own yet.
                let missing = if is_temporary(number) {
                    TEMPORARY_ALIAS
                } else {
                    "?"
                };
                found.unwrap_or(missing)
            }
        }
    }

    /// Schema and name of an object for people, the schema only if it is not the first one.
    pub fn shown_name(&self, full: &str) -> String {
        let (schema, name) = full_name::split(full);
        match schema {
            PUBLIC_SCHEMA => name.into(),
            other => {
                let schema = names::quoted(self.schema_name(other));
                format!("{schema}.{}", names::quoted(name))
            }
        }
    }

    /// Full names and kinds of what is in a schema, by age.
    fn inside(&self, schema: u32) -> Vec<(String, ObjectKind)> {
        let relations = self.relations();
        let relations = relations.map(|(name, kind, id)| (id, name, kind));
        let types = self.enums.values();
        let types = types.map(|one| (one.id, one.name.as_str(), ObjectKind::Type));
        let domains = self.domains.values();
        let domains = domains.map(|one| (one.id, one.name.as_str(), ObjectKind::Type));
        let mut found: Vec<_> = relations
            .chain(types)
            .chain(domains)
            .filter(|(_, name, _)| schema_of(name) == schema)
            .collect();
        found.sort_by_key(|(id, ..)| *id);
        let found = found.into_iter();
        found
            .map(|(_, name, kind)| (name.to_string(), kind))
            .collect()
    }

    /// Whether a sequence goes with the table of its column.
    fn is_owned(&self, sequence: &str) -> bool {
        let found = self.sequences.get(sequence);
        found.is_some_and(|found| found.owned_by.is_some())
    }

    /// What a kept text has the word for, apart from marks.
    fn text_with_word(&self, word: &str) -> Option<String> {
        let has = |text: &str| names::has_word(text, word);
        let of_table = |table: &Arc<Table>| {
            let mut checks = table.checks.iter();
            let check = checks.find(|check| has(&check.expression));
            let mut columns = table.columns.iter();
            let column = columns.find(|column| {
                let mut texts = column.default.iter().chain(&column.generated);
                texts.any(|text| has(text))
            });
            match (check, column) {
                (Some(check), _) => {
                    Some(format!("constraint {} on table {}", check.name, table.name))
                }
                (None, Some(column)) => Some(format!(
                    "default value for column {} of table {}",
                    column.name, table.name
                )),
                (None, None) => None,
            }
        };
        self.tables.values().find_map(of_table)
    }
}

/// # Errors
/// 42939 for a name that only schemas of the system have.
fn check_name(name: &str) -> Result<(), CatalogError> {
    if !name.starts_with("pg_") && marked(name).is_none() {
        return Ok(());
    }
    let message = format!("unacceptable schema name \"{name}\"");
    let error = SqlError::new(SqlState::RESERVED_NAME, message);
    Err(match marked(name) {
        None => error.detail("The prefix \"pg_\" is reserved for system schemas."),
        Some(_) => error.detail("A \"$\" with nothing but digits behind it stands for a number."),
    })
}

pub(crate) fn no_schema(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" does not exist");
    SqlError::new(SqlState::INVALID_SCHEMA, message)
}

fn schema_exists(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" already exists");
    SqlError::new(SqlState::DUPLICATE_SCHEMA, message)
}

impl Catalog {
    /// Makes the schema of a session, if this is the first that the session makes for itself.
    pub(crate) fn ensure_temporary(
        &mut self,
        database: &str,
        full: &str,
    ) -> Result<(), CatalogError> {
        let number = schema_of(full);
        if let Some(pid) = session_of(number) {
            let here = self.database_mut(database)?;
            here.schemas.entry(temporary_name(pid)).or_insert(number);
        }
        Ok(())
    }

    pub(crate) fn change_schema(
        &mut self,
        database: &str,
        change: &SchemaChange,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        match change {
            SchemaChange::Create {
                name,
                owner,
                if_not_exists,
            } => self.create_schema(database, (name, *if_not_exists), owner.as_ref(), by),
            SchemaChange::Drop {
                names,
                if_exists,
                cascade,
            } => self.drop_schemas(database, names, *if_exists, *cascade),
            SchemaChange::Rename { name, to } => self.rename_schema(database, name, to),
            SchemaChange::Move { kind, name, to } => self.move_into(database, *kind, name, to),
        }
    }

    fn create_schema(
        &mut self,
        database: &str,
        (name, if_not_exists): (&str, bool),
        owner: Option<&rights::RoleName>,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let owner = match owner {
            None => by.current,
            Some(owner) => self.rights.resolve(owner, by)?,
        };
        let name = match name {
            "" => self.rights.name(owner),
            name => name.into(),
        };
        check_name(&name)?;
        let here = self.database_mut(database)?;
        if here.schema(&name).is_some() {
            let message = schema_exists(&name).fields().message.clone();
            return skip_or_fail(if_not_exists, SqlState::DUPLICATE_SCHEMA, message);
        }
        let number = self.next_number();
        let here = self.database_mut(database)?;
        here.schemas.insert(name.clone(), number);
        let target = Target::Schema(here.id.0, name);
        let object = self.rights_mut().object_mut(&target);
        object.owner = owner;
        object.acl = None;
        Ok(Applied::default())
    }

    fn drop_schemas(
        &mut self,
        database: &str,
        all: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let mut applied = Applied::default();
        let mut gone: Vec<(&String, u32)> = Vec::new();
        for name in all {
            let here = self.database_mut(database)?;
            match here.schemas.get(name) {
                Some(number) => gone.push((name, *number)),
                None if if_exists && here.schema(name).is_none() => {
                    let text = no_schema(name).fields().message.clone();
                    applied.notices.push(text + ", skipping");
                }
                None => return Err(no_schema(name)),
            }
        }
        let here = self.database_mut(database)?;
        let mut inside: Vec<(String, ObjectKind)> = Vec::new();
        for (name, number) in &gone {
            let mut own = here.inside(*number);
            own.retain(|(object, kind)| *kind != ObjectKind::Sequence || !here.is_owned(object));
            let functions = here.all_functions();
            let functions = functions.filter(|one| schema_of(&one.name) == *number);
            let functions: Vec<_> = functions.cloned().collect();
            if !(cascade || own.is_empty() && functions.is_empty()) {
                let message =
                    format!("cannot drop schema {name} because other objects depend on it");
                let lines = own.iter().map(|(object, kind)| {
                    format!("{} {object} depends on schema {name}", kind.noun())
                });
                let functions = functions.iter().map(|one| {
                    let (noun, signature) = (one.noun(), one.signature());
                    format!("{noun} {signature} depends on schema {name}")
                });
                let lines = lines.chain(functions);
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                    .detail(lines.collect::<Vec<_>>().join("\n"))
                    .hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            inside.extend(own);
        }
        self.drop_inside(database, &inside, &mut applied)?;
        let here = self.database_mut(database)?;
        for (_, number) in &gone {
            here.drop_functions_of(*number)?;
        }
        let here = self.database_mut(database)?;
        for (name, number) in &gone {
            here.schemas.remove(*name);
            here.comments.remove(&Commented::Schema(*number));
        }
        let id = here.id.0;
        for (name, number) in &gone {
            let rights = self.rights_mut();
            rights.objects.remove(&Target::Schema(id, (*name).clone()));
            let here = |place: u32, schema: u32| place == id && schema == *number;
            rights
                .defaults
                .retain(|(place, _, schema, _), _| !here(*place, *schema));
        }
        if gone.is_empty() {
            applied.skipped = Some(core::mem::take(&mut applied.notices).join("\n"));
        }
        Ok(applied)
    }

    /// Removes what is in schemas, with what depends on it.
    fn drop_inside(
        &mut self,
        database: &str,
        inside: &[(String, ObjectKind)],
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let of = |wanted: ObjectKind| -> Vec<String> {
            let found = inside.iter().filter(|(_, kind)| *kind == wanted);
            found.map(|(name, _)| name.clone()).collect()
        };
        // What stands elsewhere and goes along: views, and keys of other tables.
        let views = |catalog: &Catalog| -> Vec<String> {
            let here = catalog.databases.get(database);
            here.map_or(Vec::new(), |here| here.views.keys().cloned().collect())
        };
        let before = views(self);
        // Their schemas have no names any more when this is told.
        let here = self.database_mut(database)?;
        let mut lines: Vec<String> = inside
            .iter()
            .map(|(name, kind)| format!("{} {}", here.noun_of(name, *kind), here.shown_name(name)))
            .collect();
        let own = of(ObjectKind::View);
        if !own.is_empty() {
            self.drop_views(database, &own, false, true)?;
        }
        let mut own = of(ObjectKind::Table);
        let here = self.database_mut(database)?;
        // What went along with a view is gone.
        own.retain(|name| here.tables.contains_key(name));
        let stored: Vec<String> = own
            .extract_if(.., |name| here.stored.contains_key(name))
            .collect();
        if !stored.is_empty() {
            let dropped = self.drop_stored(database, &stored, true, true)?;
            applied.dropped.extend(dropped.dropped);
        }
        let here = self.database_mut(database)?;
        own.retain(|name| here.tables.contains_key(name));
        if !own.is_empty() {
            let dropped = self.drop_tables(database, &own, false, true)?;
            applied.dropped.extend(dropped.dropped);
        }
        let own = of(ObjectKind::Sequence);
        if !own.is_empty() {
            let dropped = self.drop_sequences(database, &own, false, true)?;
            applied.dropped.extend(dropped.dropped);
        }
        let own = of(ObjectKind::Type);
        if !own.is_empty() {
            self.drop_types(database, own, true)?;
        }
        let after = views(self);
        let along = before.iter().filter(|name| {
            !after.contains(name) && !inside.iter().any(|(inner, _)| inner == *name)
        });
        lines.extend(along.map(|name| format!("view {name}")));
        match lines.as_slice() {
            [] => {}
            [line] => applied.notices.push(format!("drop cascades to {line}")),
            several => {
                let text = format!("drop cascades to {} other objects", several.len());
                applied.notices.push(text);
            }
        }
        Ok(())
    }

    fn rename_schema(
        &mut self,
        database: &str,
        name: &str,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        let here = self.database_mut(database)?;
        let number = *here.schemas.get(name).ok_or_else(|| no_schema(name))?;
        if here.schema(to).is_some() {
            return Err(schema_exists(to));
        }
        check_name(to)?;
        if let Some(user) = here.text_with_word(name) {
            let message = format!("renaming schema \"{name}\", which {user} may use");
            let message = format!("{message}, is not supported");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Drop that first, and create it again."));
        }
        here.schemas.remove(name);
        here.schemas.insert(to.into(), number);
        let id = here.id.0;
        let before = Target::Schema(id, name.into());
        let object = self.rights_mut().object_mut(&before).clone();
        self.rights_mut().objects.remove(&before);
        let after = Target::Schema(id, to.into());
        self.rights_mut().objects.insert(after, object);
        Ok(Applied::default())
    }

    fn move_into(
        &mut self,
        database: &str,
        kind: ObjectKind,
        name: &str,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        let here = self.database_mut(database)?;
        let schema = here.schema(to).ok_or_else(|| no_schema(to))?;
        if schema == schema_of(name) {
            return Ok(Applied::default());
        }
        if is_temporary(schema) || is_temporary(schema_of(name)) {
            let message = "cannot move objects into or out of temporary schemas";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let moved = full(schema, full_name::own(name));
        if kind != ObjectKind::Type && here.has_relation(&moved) {
            let own = full_name::own(name);
            let message = format!("relation \"{own}\" already exists in schema \"{to}\"");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        match kind {
            ObjectKind::Type if here.domains.contains_key(name) => {
                let change = DomainChange::Rename {
                    name: name.into(),
                    to: moved,
                };
                return self.change_domains(database, &change);
            }
            ObjectKind::Type => return self.move_enum(database, name, &moved),
            ObjectKind::View => return self.rename_view(database, name, &moved, false),
            ObjectKind::Sequence => {
                if let Some((table, _)) = here.sequences.get(name).and_then(|s| s.owned_by.as_ref())
                {
                    let message = "cannot move an owned sequence into another schema";
                    let own = full_name::own(name);
                    let detail = format!("Sequence \"{own}\" is linked to table \"{table}\".");
                    return Err(
                        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail)
                    );
                }
                return self.rename_relation(database, name, &moved);
            }
            _ => {}
        }
        self.move_table(database, name, &moved)
    }

    /// A table goes with its indexes and the sequences of its columns.
    fn move_table(
        &mut self,
        database: &str,
        name: &str,
        moved: &str,
    ) -> Result<Applied, CatalogError> {
        let here = self.database_mut(database)?;
        let table = here
            .table(name)
            .ok_or_else(|| crate::apply::no_relation(name))?
            .clone();
        let owned = here.sequences.values();
        let owned = owned.filter(|one| one.owned_by.as_ref().is_some_and(|(t, _)| t == name));
        let owned: Vec<String> = owned.map(|one| one.name.clone()).collect();
        let own = table.indexes().map(|index| index.name.as_str());
        let own = own.filter(|name| !name.is_empty()).map(String::from);
        let owned_names = owned.iter().map(|name| full_name::own(name).to_string());
        let mut all = own.chain(owned_names);
        let taken = |other: &String| here.has_relation(&full_name::beside(moved, other));
        if let Some(other) = all.find(taken) {
            let schema = here.schema_name(schema_of(moved));
            let message = format!("relation \"{other}\" already exists in schema \"{schema}\"");
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        self.rename_table(database, name, moved)?;
        for sequence in owned {
            let to = full_name::beside(moved, full_name::own(&sequence));
            self.rename_relation(database, &sequence, &to)?;
        }
        Ok(Applied::default())
    }

    /// # Errors
    /// 42501 for a change that the role may not make.
    pub(crate) fn check_schema_rights(
        &self,
        name: &str,
        change: &SchemaChange,
        by: &By,
    ) -> Result<(), CatalogError> {
        let Some(database) = self.databases.get(name) else {
            return Ok(());
        };
        match change {
            SchemaChange::Create { owner, .. } => {
                self.check_makes_schemas(database, by)?;
                let Some(owner) = owner else { return Ok(()) };
                let role = self.rights.resolve(owner, by)?;
                let database_owner = self.owner_of_database(database);
                if self.rights.is_member(by.current, role, database_owner) {
                    return Ok(());
                }
                let message = format!("must be member of role \"{}\"", self.rights.name(role));
                Err(denied(message))
            }
            SchemaChange::Drop { names, .. } => {
                let mut names = names.iter();
                names.try_for_each(|name| self.check_owns_schema(database, name, by))
            }
            SchemaChange::Rename { name, to: _ } => {
                self.check_owns_schema(database, name, by)?;
                self.check_makes_schemas(database, by)
            }
            SchemaChange::Move { kind, name: of, to } => {
                match kind {
                    ObjectKind::Type => self.check_type(name, of, by)?,
                    _ => self.check_relation(name, of, by)?,
                }
                match database.schema(to) {
                    Some(schema) => self.check_create(name, schema, by),
                    None => Ok(()),
                }
            }
        }
    }

    fn check_makes_schemas(&self, database: &Database, by: &By) -> Result<(), CatalogError> {
        let owner = self.owner_of_database(database);
        let target = (&Target::Database(database.id.0), ObjectKind::Database);
        let own = self.rights.privileges(by.current, target, owner);
        match own.has(Privileges::CREATE) {
            true => Ok(()),
            false => Err(denied(format!(
                "permission denied for database {}",
                database.name
            ))),
        }
    }

    pub(crate) fn check_owns_schema(
        &self,
        database: &Database,
        schema: &str,
        by: &By,
    ) -> Result<(), CatalogError> {
        if database.schema(schema).is_none() {
            return Ok(());
        }
        let target = Target::Schema(database.id.0, schema.into());
        let owner = self.owner_of_database(database);
        let what = (&target, ObjectKind::Schema, schema);
        self.rights.check_owner(by.current, what, owner)
    }

    /// What of `wanted` a role has on a schema.
    pub fn may_use(
        &self,
        database: &Database,
        schema: u32,
        role: rights::RoleId,
        wanted: Privileges,
    ) -> bool {
        if matches!(schema, PG_CATALOG_SCHEMA | INFORMATION_SCHEMA) {
            return wanted == Privileges::USAGE || self.rights.is_superuser(role);
        }
        if is_temporary(schema) {
            let target = (&Target::Database(database.id.0), ObjectKind::Database);
            let owner = self.owner_of_database(database);
            let own = self.rights.privileges(role, target, owner);
            return own.has(Privileges::TEMPORARY);
        }
        let name = database.schema_name(schema).into();
        let target = (&Target::Schema(database.id.0, name), ObjectKind::Schema);
        let owner = self.owner_of_database(database);
        self.rights.privileges(role, target, owner).has(wanted)
    }
}
