//! CREATE, ALTER and DROP SCHEMA, and SET SCHEMA.

use super::enums::own_parts as own_type;
use super::view::own_parts;
use super::{simple, with_notices};
use crate::plan::DdlPlan;
use base::full_name::{is_temporary, schema_of};
use base::{SqlError, SqlState};
use bind::Binder;
use catalog::{Command, SchemaChange};
use parse::SchemaStatement;
use rights::ObjectKind;

pub(super) fn plan(
    statement: &SchemaStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let (tag, change) = match statement {
        SchemaStatement::Create {
            name,
            owner,
            if_not_exists,
        } => (
            "CREATE SCHEMA",
            SchemaChange::Create {
                name: name.clone().unwrap_or_default(),
                owner: owner.clone(),
                if_not_exists: *if_not_exists,
            },
        ),
        SchemaStatement::Drop {
            names,
            if_exists,
            cascade,
        } => {
            for name in names {
                refuse_system(name, "drop schema", binder)?;
            }
            let change = SchemaChange::Drop {
                names: names.clone(),
                if_exists: *if_exists,
                cascade: *cascade,
            };
            ("DROP SCHEMA", change)
        }
        SchemaStatement::Rename { name, to } => {
            refuse_system(name, "rename schema", binder)?;
            let (name, to) = (name.clone(), to.clone());
            ("ALTER SCHEMA", SchemaChange::Rename { name, to })
        }
        SchemaStatement::Move { .. } => return moved(statement, binder),
    };
    Ok(simple(tag, vec![command(change, binder)]))
}

fn command(change: SchemaChange, binder: &Binder<'_>) -> Command {
    Command::Schema {
        database: binder.cx.database.name.clone(),
        change,
    }
}

/// # Errors
/// 2BP01 for a schema of the system.
fn refuse_system(name: &str, _verb: &str, _binder: &Binder<'_>) -> Result<(), SqlError> {
    if !matches!(name, "pg_catalog" | "information_schema") {
        return Ok(());
    }
    let message =
        format!("cannot drop schema {name} because it is required by the database system");
    Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message))
}

fn moved(statement: &SchemaStatement, binder: &mut Binder<'_>) -> Result<DdlPlan, SqlError> {
    let SchemaStatement::Move {
        kind,
        name,
        if_exists,
        to,
    } = statement
    else {
        unreachable!("called for SET SCHEMA only");
    };
    let database = binder.cx.database.clone();
    let tag = match kind {
        ObjectKind::Type => "ALTER TYPE",
        ObjectKind::View => "ALTER VIEW",
        ObjectKind::Sequence => "ALTER SEQUENCE",
        _ => "ALTER TABLE",
    };
    let skipped = |message: &str| {
        let notices = vec![format!("{message}, skipping")];
        Ok(with_notices(simple(tag, Vec::new()), notices))
    };
    let full = match kind {
        ObjectKind::Type => own_type(name, binder),
        _ => own_parts(name, binder),
    };
    let full = match full {
        Err(error) if *if_exists && error.state() == SqlState::INVALID_SCHEMA => {
            return skipped(&error.fields().message);
        }
        other => other?,
    };
    let found = match kind {
        ObjectKind::Type => {
            if database.enums.contains_key(&full) {
                Some("type")
            } else {
                let message = format!("type \"{}\" does not exist", name.join("."));
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        _ => database.kind_of(&full),
    };
    let Some(found) = found else {
        let message = format!("relation \"{}\" does not exist", name.join("."));
        if *if_exists {
            return skipped(&message);
        }
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    };
    // ALTER TABLE takes views and sequences as well.
    let kind = match (kind, found) {
        (ObjectKind::Table | ObjectKind::View, "view") => ObjectKind::View,
        (ObjectKind::Table | ObjectKind::Sequence, "sequence") => ObjectKind::Sequence,
        (ObjectKind::Table, "table") => ObjectKind::Table,
        (ObjectKind::Type, _) => ObjectKind::Type,
        (wanted, _) => {
            let message = match wanted {
                ObjectKind::Table => format!("cannot change schema of index \"{full}\""),
                other => format!("\"{full}\" is not a {}", other.noun()),
            };
            let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
            return Err(match wanted {
                ObjectKind::Table => error.hint("Change the schema of the table instead."),
                _ => error,
            });
        }
    };
    check_target(&full, to, binder)?;
    let change = SchemaChange::Move {
        kind,
        name: full,
        to: to.clone(),
    };
    Ok(simple(tag, vec![command(change, binder)]))
}

/// # Errors
/// 3F000 for a schema that is not there, 0A000 for one of a session, 42501 for one of the system.
fn check_target(full: &str, to: &str, binder: &Binder<'_>) -> Result<(), SqlError> {
    let (from, target) = (schema_of(full), binder.names().schema(to));
    let mut ends = target.into_iter().chain([from]);
    if target != Some(from) && ends.any(is_temporary) {
        let message = "cannot move objects into or out of temporary schemas";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    binder.new_name(Some(to), "").map(|_| ())
}
