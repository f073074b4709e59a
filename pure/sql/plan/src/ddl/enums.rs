//! CREATE TYPE of enums and composite types, ALTER TYPE and DROP TYPE.

use super::simple;
use super::view::new_parts;
use super::{there, with_notices};
use crate::plan::DdlPlan;
use base::record::ANONYMOUS;
use base::{SqlError, SqlState, Type};
use bind::Binder;
use bind::types::bind_type;
use catalog::{Attribute, AttributeChange, Command, EnumChange};
use parse::{AttributeAction, AttributeWords, CompositeStatement, EnumStatement};
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
                attributes: None,
            };
            simple("CREATE TYPE", vec![create])
        }
        EnumStatement::Composite(statement) => composite(statement, binder)?,
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

fn composite(statement: &CompositeStatement, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.name.clone();
    let (name, changes) = match statement {
        CompositeStatement::Create { name, attributes } => {
            let attributes = attributes.iter().map(|one| attribute(one, binder));
            let create = Command::CreateEnum {
                database,
                name: new_parts(name, binder)?,
                labels: Vec::new(),
                attributes: Some(attributes.collect::<Result<_, _>>()?),
            };
            return Ok(simple("CREATE TYPE", vec![create]));
        }
        CompositeStatement::Change { name, actions } => {
            let changes = actions.iter().map(|action| change(action, binder));
            (name, changes.collect::<Result<Vec<_>, _>>()?)
        }
        CompositeStatement::Rename { name, from, to } => {
            let (from, to) = (from.clone(), to.clone());
            (name, vec![AttributeChange::Rename { from, to }])
        }
    };
    let alter = Command::AlterEnum {
        database,
        name: own_composite(name, binder)?,
        change: EnumChange::Attributes(changes),
    };
    Ok(simple("ALTER TYPE", vec![alter]))
}

fn change(action: &AttributeAction, binder: &Binder<'_>) -> Result<AttributeChange, SqlError> {
    Ok(match action {
        AttributeAction::Add(one) => AttributeChange::Add(attribute(one, binder)?),
        AttributeAction::Alter(one) => AttributeChange::Alter(attribute(one, binder)?),
        AttributeAction::Drop { name, if_exists } => AttributeChange::Drop {
            name: name.clone(),
            if_exists: *if_exists,
        },
    })
}

/// An attribute with its type.
///
/// # Errors
/// Those of types and collations; 42P16 for a type that has no values of its own.
fn attribute(words: &AttributeWords, binder: &Binder<'_>) -> Result<Attribute, SqlError> {
    let AttributeWords {
        name,
        ty,
        collation,
    } = words;
    let ty = bind_type(ty, &binder.names())?;
    if ty == Type::Unknown || ty.user_id() == Some(ANONYMOUS) {
        let message = format!("column \"{name}\" has pseudo-type {}", ty.base_name());
        return Err(SqlError::new(SqlState(*b"42P16"), message));
    }
    if let Some(collation) = collation {
        binder.collated(expr::Expr::null(ty), collation)?;
    }
    Ok(Attribute {
        name: name.clone(),
        ty,
    })
}

/// The name of a composite type that is to be changed.
///
/// # Errors
/// 42P01 if there is no type of the name, as of its relation.
fn own_composite(parts: &[String], binder: &Binder<'_>) -> Result<String, SqlError> {
    own_parts(parts, binder).map_err(|error| match error.state() {
        SqlState::UNDEFINED_OBJECT => {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            SqlError::new(SqlState::UNDEFINED_TABLE, message)
        }
        _ => error,
    })
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
