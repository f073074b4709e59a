//! CREATE TYPE ... AS ENUM, ALTER TYPE and DROP TYPE.

use super::simple;
use super::view::new_parts;
use super::{there, with_notices};
use crate::plan::DdlPlan;
use base::{SqlError, SqlState, Type};
use bind::Binder;
use catalog::{Command, EnumChange};
use parse::EnumStatement;
use pg_catalog::names::qualified;
use rights::{Change, ObjectKind};

pub(super) fn plan(statement: &EnumStatement, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let database = || binder.cx.database.name.clone();
    let alter = |name: &str, change| Command::AlterEnum {
        database: database(),
        name: name.to_owned(),
        change,
    };
    Ok(match statement {
        EnumStatement::Create { name, labels } => {
            let create = Command::CreateEnum {
                database: database(),
                name: new_parts(name, binder)?,
                labels: labels.clone(),
            };
            simple("CREATE TYPE", vec![create])
        }
        EnumStatement::AddLabel {
            name,
            label,
            if_not_exists,
            beside,
        } => {
            let name = own_enum(name, binder)?;
            let (label, if_not_exists) = (label.clone(), *if_not_exists);
            let publish = EnumChange::PublishLabel {
                label: label.clone(),
            };
            let beside = beside.clone();
            let add = EnumChange::AddLabel {
                label,
                if_not_exists,
                beside,
            };
            simple("ALTER TYPE", vec![alter(&name, add), alter(&name, publish)])
        }
        EnumStatement::RenameLabel { name, from, to } => {
            let (from, to) = (from.clone(), to.clone());
            let rename = EnumChange::RenameLabel { from, to };
            simple("ALTER TYPE", vec![alter(&own_enum(name, binder)?, rename)])
        }
        EnumStatement::Rename { name, to } => {
            let rename = EnumChange::Rename { to: to.clone() };
            simple("ALTER TYPE", vec![alter(&own_enum(name, binder)?, rename)])
        }
        EnumStatement::Owner { name, to } => {
            let change = Change::Owner {
                kind: ObjectKind::Type,
                name: own_enum(name, binder)?,
                if_exists: false,
                to: to.clone(),
            };
            let database = database();
            simple("ALTER TYPE", vec![Command::Rights { database, change }])
        }
        EnumStatement::Drop {
            names,
            if_exists,
            cascade,
        } => {
            let names = names.iter().map(|name| dropped(name, binder));
            let (names, missing) = there(names, *if_exists)?;
            let drop = Command::DropEnum {
                database: database(),
                names,
                if_exists: *if_exists,
                cascade: *cascade,
            };
            with_notices(simple("DROP TYPE", vec![drop]), missing)
        }
    })
}

/// The full name of a type that is to be changed, by its parts.
pub(super) fn own_parts(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    let (schema, name) = qualified(&binder.cx.database.name, parts.to_vec())?;
    if matches!(schema.as_deref(), Some("pg_catalog")) && Type::named(&name).is_some() {
        return Ok(name);
    }
    binder.changed_type(schema.as_deref(), &name)
}

/// The type of the system that a name without schema means first.
fn of_system(parts: &[String]) -> Option<Type> {
    match parts {
        [name] => Type::named(name),
        _ => None,
    }
}

/// The name of an enum type that is to be changed.
///
/// # Errors
/// 42809 for a type of another kind.
fn own_enum(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    let own = own_parts(parts, binder)?;
    match of_system(parts) {
        Some(ty) if !binder.cx.database.enums.contains_key(&own) => {
            let message = format!("{} is not an enum", ty.base_name());
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        _ => Ok(own),
    }
}

/// The name of a type that is to be dropped.
///
/// # Errors
/// 2BP01 for a type of the system.
fn dropped(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    let own = own_parts(parts, binder)?;
    let integer = matches!(parts, [name] if matches!(name.as_str(), "int" | "integer"));
    match of_system(parts).or(integer.then_some(Type::Int4)) {
        Some(ty) => {
            let name = ty.base_name();
            let message =
                format!("cannot drop type {name} because it is required by the database system");
            Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message))
        }
        None => Ok(own),
    }
}
