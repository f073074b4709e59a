//! COMMENT ON: texts about objects, kept with the database and dropped with what they are about.

use crate::apply::no_relation;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::schemas::no_schema;
use alloc::format;
use alloc::string::String;
use base::limits::COMMENT_BYTES_MAX;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// What a statement names to be commented on. Names of relations are looked up when the command is
/// applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Subject {
    /// The database of the command.
    Database,
    /// A schema.
    Schema(String),
    /// A relation of a kind: `table`, `index`, `sequence`, `view`.
    Relation(String, String),
    /// A column: table, column.
    Column(String, String),
    /// A constraint: table, constraint.
    Constraint(String, String),
    /// A function by its number.
    Function(u32),
    /// An enum type or domain: `type` or `domain`, its name.
    Type(String, String),
}

impl Catalog {
    pub(crate) fn comment(
        &mut self,
        database: &str,
        subject: &Subject,
        text: Option<&str>,
    ) -> Result<Applied, CatalogError> {
        if text.is_some_and(|text| text.len() > COMMENT_BYTES_MAX) {
            let message = format!("a comment cannot be longer than {COMMENT_BYTES_MAX} bytes");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT, message));
        }
        let database = self.database_mut(database)?;
        let commented = database.commented(subject)?;
        match text.filter(|text| !text.is_empty()) {
            Some(text) => database.comments.insert(commented, text.into()),
            None => database.comments.remove(&commented),
        };
        Ok(Applied::default())
    }
}

impl Database {
    /// The object that is meant. Errors as PostgreSQL: 42P01, 42809, 42703, 42704.
    fn commented(&self, subject: &Subject) -> Result<Commented, CatalogError> {
        match subject {
            Subject::Database => Ok(Commented::Database),
            Subject::Schema(name) => match self.schema(name) {
                Some(number) => Ok(Commented::Schema(number)),
                None => Err(no_schema(name)),
            },
            Subject::Relation(kind, name) => {
                let (found, id) = self.relation(name).ok_or_else(|| no_relation(name))?;
                let found = match self.stored.contains_key(name) {
                    true => self.view_noun(name),
                    false => found,
                };
                if found == kind {
                    return Ok(Commented::Relation(id));
                }
                let article = if kind == "index" { "an" } else { "a" };
                let message = format!("\"{name}\" is not {article} {kind}");
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
            Subject::Column(view, name) if self.views.contains_key(view) => {
                let view = &self.views[view];
                let at = view.columns.iter().position(|column| column.name == *name);
                let at = at.ok_or_else(|| no_column(&view.name, name))?;
                Ok(Commented::Column(view.id, at as u16))
            }
            Subject::Column(table, name) => {
                let table = self
                    .tables
                    .get(table)
                    .ok_or_else(|| match self.relation(table) {
                        None => no_relation(table),
                        Some(_) => {
                            let message = format!("cannot set comment on relation \"{table}\"");
                            SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                        }
                    })?;
                let found = table.column(name).filter(|(_, column)| !column.hidden);
                let (at, _) = found.ok_or_else(|| no_column(&table.name, name))?;
                Ok(Commented::Column(table.id, at))
            }
            Subject::Function(number) => match self.function(*number) {
                Some(_) => Ok(Commented::Function(*number)),
                None => Err(crate::functions::no_function(*number)),
            },
            Subject::Type(_, name) => {
                let of_enum = self.enums.get(name).map(|found| found.id);
                let of_domain = || self.domains.get(name).map(|found| found.id);
                let found = of_enum.or_else(of_domain).map(Commented::Type);
                found.ok_or_else(|| {
                    let message = format!("type \"{name}\" does not exist");
                    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                })
            }
            Subject::Constraint(table, name) => {
                let table = self.tables.get(table).ok_or_else(|| no_relation(table))?;
                if !table.has_constraint(name) {
                    let table = &table.name;
                    let message =
                        format!("constraint \"{name}\" for table \"{table}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
                }
                Ok(Commented::Constraint(table.id, name.clone()))
            }
        }
    }

    /// The kind of a relation: `table`, `view`, `sequence` or `index`.
    pub fn kind_of(&self, full: &str) -> Option<&'static str> {
        self.relation(full).map(|(kind, _)| kind)
    }

    /// Kind and number of a relation.
    pub fn relation(&self, name: &str) -> Option<(&'static str, u32)> {
        if let Some(table) = self.tables.get(name) {
            return Some(("table", table.id.0));
        }
        if let Some(sequence) = self.sequences.get(name) {
            return Some(("sequence", sequence.id.0));
        }
        if let Some(view) = self.views.get(name) {
            return Some(("view", view.id.0));
        }
        let (_, index) = self.index(name)?;
        Some(("index", index.id.0))
    }

    /// Forgets comments on what is no longer there.
    pub(crate) fn forget_comments(&mut self) {
        let Database {
            comments,
            tables,
            sequences,
            views,
            schemas,
            functions,
            enums,
            domains,
            ..
        } = self;
        let table_of = |id| tables.values().find(|table| table.id == id);
        comments.retain(|commented, _| match commented {
            Commented::Database => true,
            Commented::Schema(number) => schemas.values().any(|own| own == number),
            Commented::Relation(id) => {
                let mut indexes = tables.values().flat_map(|table| table.indexes());
                tables.values().any(|table| table.id.0 == *id)
                    || sequences.values().any(|sequence| sequence.id.0 == *id)
                    || views.values().any(|view| view.id.0 == *id)
                    || indexes.any(|index| index.id.0 == *id)
            }
            Commented::Column(table, at) => {
                let column = table_of(*table).and_then(|table| table.columns.get(usize::from(*at)));
                column.is_some_and(|column| column.state != ColumnState::Dropped)
                    || views.values().any(|view| view.id == *table)
            }
            Commented::Function(number) => {
                let mut all = functions.values().flatten();
                all.any(|function| function.id == *number)
            }
            Commented::Type(number) => {
                enums.values().any(|found| found.id == *number)
                    || domains.values().any(|found| found.id == *number)
            }
            Commented::Constraint(table, name) => {
                table_of(*table).is_some_and(|table| table.has_constraint(name))
            }
        });
    }
}

fn no_column(relation: &str, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
    SqlError::new(SqlState::UNDEFINED_COLUMN, message)
}
