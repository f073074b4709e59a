//! Names of relations that go with their session.

use base::full_name::is_temporary_name;
use base::{SqlError, SqlState};
use bind::Binder;
use bind::scope::{check_database, check_reserved, object_name};
use parse::{Lifetime, OnCommit};
use pg_catalog::names::qualified;
use sqlparser::ast;

/// The full name of a relation that is to be made.
pub(super) fn new_name(
    name: &ast::ObjectName,
    lifetime: Lifetime,
    binder: &Binder<'_>,
) -> Result<String, SqlError> {
    check_reserved(name)?;
    check_database(&binder.cx.database.name, name)?;
    let (schema, name) = object_name(name);
    of(schema.as_deref(), &name, lifetime, binder)
}

/// The same by the parts of the name.
pub(super) fn new_parts(
    parts: &[String],
    lifetime: Lifetime,
    binder: &Binder<'_>,
) -> Result<String, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, parts.to_vec())?;
    of(schema.as_deref(), &name, lifetime, binder)
}

fn of(
    schema: Option<&str>,
    name: &str,
    lifetime: Lifetime,
    binder: &Binder<'_>,
) -> Result<String, SqlError> {
    match lifetime.temporary {
        true => binder.new_temporary(schema, name),
        false => binder.new_name(schema, name),
    }
}

/// What the session notes of a new relation.
///
/// # Errors
/// 42P16 for ON COMMIT of one that stays.
pub(super) fn noted(
    name: &str,
    lifetime: Lifetime,
) -> Result<Option<(String, OnCommit)>, SqlError> {
    match (is_temporary_name(name), lifetime.on_commit) {
        (true, on_commit) => Ok(Some((name.into(), on_commit.unwrap_or(OnCommit::Preserve)))),
        (false, None) => Ok(None),
        (false, Some(_)) => {
            let message = "ON COMMIT can only be used on temporary tables";
            Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
        }
    }
}
