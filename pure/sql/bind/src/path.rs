//! What names mean by the session's path, and what a new view notes of them.

use super::Binder;
use super::scope::object_name;
use base::full_name::{full, is_temporary, schema_of};
use base::{SqlError, SqlState};
use catalog::objects::is_own_table;
use catalog::{Database, INFORMATION_SCHEMA, KEPT_PATH, Names, PG_CATALOG_SCHEMA, mark};
use parse::Edit;
use pg_catalog::path::{Meant, meant};
use sqlparser::ast;
use sqlparser::tokenizer::Span;

/// The number of no schema: what is not there is in it.
const NOWHERE: u32 = u32::MAX;

impl<'a> Binder<'a> {
    /// The names of the database by the session's path, or by that of a kept text.
    pub fn names(&self) -> Names<'a> {
        Names {
            database: self.cx.database,
            path: self.path,
        }
    }

    /// Binds a text that the catalog keeps: it means what it meant when it was made.
    pub fn kept<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let path = core::mem::replace(&mut self.path, KEPT_PATH);
        let source = self.own_source.take();
        let bound = bind(self);
        self.own_source = source;
        self.path = path;
        bound
    }

    /// What the name of a relation means.
    pub fn meant(&self, schema: Option<&str>, name: &str) -> Option<Meant> {
        let found = meant(&self.names(), schema, name, Database::has_relation);
        if let (Some(_), Some(Meant::Own(full))) = (schema, &found) {
            self.use_schema(schema_of(full));
        }
        found
    }

    /// The full name of a relation of users.
    pub fn own_relation(&self, schema: Option<&str>, name: &str) -> Option<String> {
        match self.meant(schema, name)? {
            Meant::Own(full) => Some(full),
            Meant::System(_) => None,
        }
    }

    /// The full name of a relation that is to be changed; of one that is not there, a name that
    /// means nothing.
    ///
    /// # Errors
    /// 3F000 for a schema that is not there, 42501 for one of the system.
    pub fn changed_name(&self, schema: Option<&str>, name: &str) -> Result<String, SqlError> {
        let is_system = |meant: Meant| match meant {
            Meant::System(_) => true,
            Meant::Own(full) => is_own_table(&full),
        };
        if schema.is_none() && self.meant(None, name).is_some_and(is_system) {
            let message = format!("permission denied: \"{name}\" is a system catalog");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message));
        }
        self.existing(schema, name, Database::has_relation)
    }

    /// The same of a type.
    ///
    /// # Errors
    /// As [`Binder::changed_name`].
    pub fn changed_type(&self, schema: Option<&str>, name: &str) -> Result<String, SqlError> {
        self.existing(schema, name, |database, full| {
            database.type_named(full).is_some() || database.domains.contains_key(full)
        })
    }

    fn existing(
        &self,
        schema: Option<&str>,
        name: &str,
        has: impl Fn(&Database, &str) -> bool,
    ) -> Result<String, SqlError> {
        let of_schema = schema.map(|schema| self.own_schema(schema)).transpose()?;
        if let Some(schema) = of_schema {
            self.use_schema(schema);
            return Ok(full(schema, name));
        }
        let found = self.names().find(None, name, has);
        Ok(found.unwrap_or_else(|| full(NOWHERE, name)))
    }

    /// 42601: a schema before the name of a new index, which PostgreSQL's grammar does not have.
    pub fn no_schema_of_index(&self, name: &ast::ObjectName) -> SqlError {
        let message = "syntax error at or near \".\"";
        let first = name.0.first().and_then(|part| part.as_ident());
        let error = SqlError::new(SqlState::SYNTAX, message);
        match first {
            Some(first) => error.at(self.source.position(first.span.end)),
            None => error,
        }
    }

    /// The full name of a relation that is to be made for the session alone.
    ///
    /// # Errors
    /// 42P16 for another schema than that of the session; 3F000 for one that is not there.
    pub fn new_temporary(&self, schema: Option<&str>, name: &str) -> Result<String, SqlError> {
        let own = self.names().temporary();
        let given = match schema {
            Some(schema) => Some(self.named_schema(schema)?),
            None => own,
        };
        match given {
            Some(given) if own == Some(given) => Ok(full(given, name)),
            _ => Err(not_temporary()),
        }
    }

    /// Whether an object belongs to another session.
    fn is_of_others(&self, schema: u32) -> bool {
        is_temporary(schema) && !self.cx.path.contains(&schema)
    }

    /// # Errors
    /// 0A000 for what another session has made for itself.
    pub(super) fn check_session(&self, full: &str) -> Result<(), SqlError> {
        match self.is_of_others(schema_of(full)) {
            false => Ok(()),
            true => {
                let message = "cannot access temporary tables of other sessions";
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    /// # Errors
    /// 3F000 for a schema that is not there.
    fn named_schema(&self, schema: &str) -> Result<u32, SqlError> {
        self.names().schema(schema).ok_or_else(|| {
            let message = format!("schema \"{schema}\" does not exist");
            SqlError::new(SqlState::INVALID_SCHEMA, message)
        })
    }

    /// The full name of what is to be made.
    ///
    /// # Errors
    /// 3F000 for a schema that is not there, 42501 for one of the system, 42P16 for one of another
    /// session.
    pub fn new_name(&self, schema: Option<&str>, name: &str) -> Result<String, SqlError> {
        let schema = match schema {
            Some(schema) => self.named_schema(schema)?,
            None => self.names().first()?,
        };
        if self.is_of_others(schema) {
            let message = "cannot create relations in temporary schemas of other sessions";
            return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
        }
        if matches!(schema, PG_CATALOG_SCHEMA | INFORMATION_SCHEMA) {
            let schema = self.cx.database.schema_name(schema);
            let message = format!("permission denied to create \"{schema}.{name}\"");
            return Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
                .detail("System catalog modifications are currently disallowed."));
        }
        Ok(full(schema, name))
    }

    /// # Errors
    /// 3F000 for a schema that is not there, 42501 for one of the system.
    fn own_schema(&self, schema: &str) -> Result<u32, SqlError> {
        match self.names().schema(schema) {
            Some(PG_CATALOG_SCHEMA | INFORMATION_SCHEMA) => Err(refused(schema)),
            Some(schema) => Ok(schema),
            None => {
                let message = format!("schema \"{schema}\" does not exist");
                Err(SqlError::new(SqlState::INVALID_SCHEMA, message))
            }
        }
    }

    /// The number of a schema that stands before the name of a relation.
    pub(super) fn schema_number(&self, schema: Option<&str>) -> Option<u32> {
        schema.map(|schema| self.names().schema(schema).unwrap_or(NOWHERE))
    }

    /// A new view names a type.
    pub(super) fn note_type(&mut self, ty: &ast::DataType) {
        match ty {
            ast::DataType::Custom(name, _) => {
                if let Some(full) = self.own_type(name) {
                    if name.0.len() > 1 {
                        self.use_schema(schema_of(&full));
                    }
                    self.note_name(name, &full);
                }
            }
            ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => {
                self.note_type(element);
            }
            _ => {}
        }
    }

    /// A new view has a literal that is read as the name of a relation.
    pub(super) fn note_reg(&mut self, literal: &ast::Expr) {
        let ast::Expr::Value(value) = super::expr::unwrapped(literal) else {
            return;
        };
        if let Some(text) = super::expr::string_of(&value.value) {
            let text = text.to_owned();
            self.note_literal(value.span, &text);
        }
    }

    /// A name that a statement writes with a schema needs USAGE of it.
    pub(super) fn use_schema(&self, schema: u32) {
        let own = is_temporary(schema) && self.cx.path.contains(&schema);
        if own || self.views.inside.is_some() || core::ptr::eq(self.path, KEPT_PATH) {
            return;
        }
        let mut used = self.used_schemas.borrow_mut();
        if !used.contains(&schema) {
            used.push(schema);
        }
    }

    /// What the schemas that were named need goes to the other needs.
    pub fn settle_needs(&mut self) {
        let used = core::mem::take(self.used_schemas.get_mut());
        let database = self.cx.database;
        let used = used.into_iter();
        let used = used.map(|schema| (database.id.0, database.schema_name(schema).into()));
        self.needs.schemas.extend(used);
    }

    /// A new view has the name of an object at a place: its text says in which schema that is,
    /// unless it is one of the system.
    pub(super) fn note_name(&mut self, name: &ast::ObjectName, full: &str) {
        let parts = name.0.iter().filter_map(|part| part.as_ident());
        let parts: Vec<&ast::Ident> = parts.collect();
        self.note_parts(&parts, 0, full);
    }

    /// The same where `behind` parts stand behind the name.
    pub(super) fn note_parts(&mut self, parts: &[&ast::Ident], behind: usize, full: &str) {
        let Some(at) = parts.len().checked_sub(1 + behind) else {
            return;
        };
        let schema = mark(schema_of(full));
        match at.checked_sub(1) {
            Some(before) => self.note_edit(parts[before].span, Edit::Word(schema)),
            None => self.note_edit(parts[at].span, Edit::Before(format!("{schema}."))),
        }
    }

    /// A new view names a relation by a text.
    pub(super) fn note_literal(&mut self, span: Span, text: &str) {
        let Some(full) = self.of_text(text) else {
            return;
        };
        let (schema, name) = base::full_name::split(&full);
        let name = ::functions::keywords::quote_ident(name);
        let text = format!("{}.{name}", mark(schema)).replace('\'', "''");
        self.note_edit(span, Edit::Literal(format!("'{text}'")));
    }

    /// The full name of the relation that a text means, if it is one of users.
    pub fn of_text(&self, text: &str) -> Option<String> {
        let parts = pg_catalog::names::parts(text).ok()?;
        let (schema, name) = pg_catalog::names::qualified(&self.cx.database.name, parts).ok()?;
        match meant(
            &self.names(),
            schema.as_deref(),
            &name,
            Database::has_relation,
        )? {
            Meant::Own(full) => Some(full),
            Meant::System(_) => None,
        }
    }

    /// The full name of the type of users that an object's name means.
    pub fn own_type(&self, name: &ast::ObjectName) -> Option<String> {
        let (schema, name) = object_name(name);
        super::types::of_users(&self.names(), schema.as_deref(), &name)
    }
}

/// A relation for the session alone in a schema that stays.
pub(crate) fn not_temporary() -> SqlError {
    let message = "cannot create temporary relation in non-temporary schema";
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

fn refused(schema: &str) -> SqlError {
    let message = format!("permission denied for schema {schema}");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
