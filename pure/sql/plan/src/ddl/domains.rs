//! CREATE DOMAIN, ALTER DOMAIN and DROP DOMAIN.

use super::enums::own_parts;
use super::simple;
use super::view::new_parts;
use super::{there, with_notices};
use crate::plan::{DdlPlan, Fill};
use base::full_name::{beside, own};
use base::{SqlError, SqlState, Type};
use bind::types::{NamedType, named_type};
use bind::{Binder, unsupported};
use catalog::{Column, Command, DOMAINS, Domain, DomainChange, DomainCheck};
use expr::{Expr, walk};
use parse::{DomainCreate, DomainStatement, DomainWords};
use rights::{Change, ObjectKind};
use sqlparser::ast;
use std::sync::Arc;

const TAG: &str = "ALTER DOMAIN";

pub(super) fn plan(
    statement: &DomainStatement,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.name.clone();
    Ok(match statement {
        DomainStatement::Create(create) => {
            let change = DomainChange::Create(created(create, binder)?);
            simple("CREATE DOMAIN", vec![Command::Domain { database, change }])
        }
        DomainStatement::Drop {
            names,
            if_exists,
            cascade,
        } => {
            let names = names.iter().map(|name| own_parts(name, binder));
            let (names, missing) = there(names, *if_exists)?;
            let change = DomainChange::Drop {
                names,
                if_exists: *if_exists,
                cascade: *cascade,
            };
            let drop = Command::Domain { database, change };
            with_notices(simple("DROP DOMAIN", vec![drop]), missing)
        }
        DomainStatement::Alter { name, change } => altered(name, change, binder)?,
    })
}

/// The domain that is to be changed.
///
/// # Errors
/// 42704 if there is none, 42809 for a type of another kind.
fn found(parts: &[String], binder: &Binder<'_>) -> Result<Arc<Domain>, SqlError> {
    let full = own_parts(parts, binder)?;
    let database = binder.cx.database;
    if let Some(domain) = database.domains.get(&full) {
        return Ok(domain.clone());
    }
    let shown = parts.join(".");
    let of_system = parts.last().is_some_and(|name| Type::named(name).is_some());
    match of_system || database.enums.contains_key(&full) || database.has_relation(&full) {
        true => {
            let message = format!("{shown} is not a domain");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        false => {
            let message = format!("type \"{shown}\" does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
        }
    }
}

/// The full name of the type or domain that a comment is about.
///
/// # Errors
/// 42704 if there is none, 42809 for a type that is no domain, 0A000 for types of the system.
pub(super) fn commented(kind: &str, name: &str, binder: &Binder<'_>) -> Result<String, SqlError> {
    let parts = pg_catalog::names::parts(name)?;
    let full = own_parts(&parts, binder)?;
    let database = binder.cx.database;
    let is_domain = database.domains.contains_key(&full);
    if is_domain || (kind == "type" && database.enums.contains_key(&full)) {
        return Ok(full);
    }
    let shown = parts.join(".");
    let of_system = parts.last().is_some_and(|name| Type::named(name).is_some());
    if kind == "domain" && (of_system || database.enums.contains_key(&full)) {
        let message = format!("\"{shown}\" is not a domain");
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    }
    if of_system {
        return Err(unsupported("a comment on a type of the system"));
    }
    let message = format!("type \"{shown}\" does not exist");
    Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
}

/// The text of a condition for the catalog.
fn check_text(check: &ast::Expr, ty: Type, binder: &mut Binder<'_>) -> Result<String, SqlError> {
    let value = Expr::Column(0, ty);
    let bound = binder.plain_style(|binder| binder.over_value(check, &value))?;
    let parameters = binder.params.len() as u32;
    let parameter = |expr: &Expr| matches!(expr, Expr::Param(index, _) if *index < parameters);
    if walk::any(&bound, &parameter) {
        let message = "there is no parameter $1";
        return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, message));
    }
    if !binder.take_calls().is_empty() || !binder.inits.is_empty() {
        let message = "cannot use subquery in check constraint";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    binder.check_style(&bound, "a check constraint")?;
    Ok(capital(&super::shown::kept(
        &super::shown::text(check),
        binder,
    )))
}

/// A condition with the word VALUE in capitals, as PostgreSQL shows it.
fn capital(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quote, mut word) = (None, String::new());
    for c in text.chars().chain([' ']) {
        if quote.is_none() && (c.is_alphanumeric() || c == '_' || c == '$') {
            word.push(c);
            continue;
        }
        let name = word.eq_ignore_ascii_case("value") && !out.ends_with('.') && c != '.';
        out.push_str(if name { "VALUE" } else { &word });
        word.clear();
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        out.push(c);
    }
    out.truncate(out.len() - 1);
    out
}

/// The text of a default for the catalog.
fn default_text(value: &ast::Expr, ty: Type, binder: &mut Binder<'_>) -> Result<String, SqlError> {
    let column = Column::new("value", ty);
    let text = super::default::default_text(&column, value, binder)?;
    // As PostgreSQL shows a literal: with its type.
    let literal = matches!(value, ast::Expr::Value(value)
        if parse::literal_text(&value.value).is_some());
    let typed = literal && ty.user_id().is_none() && !text.contains("::");
    Ok(match typed {
        true => format!("{text}::{}", ty.without_modifiers().name()),
        false => text,
    })
}

fn created(create: &DomainCreate, binder: &mut Binder<'_>) -> Result<Domain, SqlError> {
    let DomainCreate {
        name,
        ty,
        collation,
        default,
        not_null,
        checks,
    } = create;
    let name = new_parts(name, binder)?;
    let mut over = None;
    let ty = match named_type(ty, &binder.names())? {
        NamedType::Plain(ty) => ty,
        NamedType::Serial(_) => {
            let message = format!("type \"{}\" does not exist", ty.to_string().to_lowercase());
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        NamedType::Domain(id, ty) => {
            over = Some(id);
            ty
        }
    };
    if ty == Type::Unknown {
        let message = "\"unknown\" is not a valid base type for a domain";
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    }
    if let Some(collation) = collation {
        binder.collated(Expr::null(ty), collation)?;
    }
    let below = over.and_then(|id| binder.cx.database.domain_by_id(id));
    let default = match default {
        Some(value) => Some(default_text(value, ty, binder)?).filter(|text| text != "NULL"),
        // It begins with that of the domain below.
        None => below.and_then(|below| below.default.clone()),
    };
    let mut domain = Domain {
        id: 0,
        name,
        ty,
        over,
        default,
        not_null: *not_null,
        checks: Vec::new(),
    };
    for (name, check) in checks {
        let expression = check_text(check, ty, binder)?;
        domain.checks.push(DomainCheck {
            id: 0,
            name: name.clone(),
            expression,
        });
    }
    Ok(domain)
}

fn altered(
    name: &[String],
    words: &DomainWords,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let domain = found(name, binder)?;
    let database = binder.cx.database.name.clone();
    let name = domain.name.clone();
    let one = |change| {
        let database = database.clone();
        simple(TAG, vec![Command::Domain { database, change }])
    };
    Ok(match words {
        DomainWords::Default(value) => {
            let value = value.as_ref();
            let default = value.map(|value| default_text(value, domain.ty, binder));
            let default = default.transpose()?.filter(|text| text != "NULL");
            one(DomainChange::Default { name, default })
        }
        DomainWords::NotNull(not_null) if domain.not_null == *not_null => simple(TAG, Vec::new()),
        DomainWords::NotNull(true) => {
            let change = |not_null| DomainChange::NotNull {
                name: name.clone(),
                not_null,
            };
            looked(&domain, change(true), change(false), binder)?
        }
        DomainWords::NotNull(false) => one(DomainChange::NotNull {
            name,
            not_null: false,
        }),
        DomainWords::Add {
            name,
            check,
            not_valid,
        } => added(&domain, (name, check), *not_valid, binder)?,
        DomainWords::DropConstraint {
            name: constraint,
            if_exists,
        } => one(DomainChange::DropCheck {
            name,
            constraint: constraint.clone(),
            if_exists: *if_exists,
        }),
        DomainWords::Validate(constraint) => match domain.has(constraint) {
            true => simple(TAG, Vec::new()),
            false => return Err(domain.no_constraint(constraint)),
        },
        DomainWords::RenameConstraint { from, to } => one(DomainChange::RenameCheck {
            name,
            from: from.clone(),
            to: to.clone(),
        }),
        DomainWords::Rename(_) | DomainWords::Move(_) | DomainWords::Owner(_) => {
            placed(&domain, words, binder)?
        }
    })
}

/// ADD CONSTRAINT.
fn added(
    domain: &Domain,
    (constraint, check): (&str, &ast::Expr),
    not_valid: bool,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let check = domain.named(DomainCheck {
        id: 0,
        name: constraint.into(),
        expression: check_text(check, domain.ty, binder)?,
    })?;
    if not_valid && !binder.cx.database.domain_columns(domain.id).is_empty() {
        let error = unsupported("NOT VALID for a domain that columns have");
        return Err(error.hint("Leave it out: the rows are looked at."));
    }
    let name = domain.name.clone();
    let undo = DomainChange::DropCheck {
        name: name.clone(),
        constraint: check.name.clone(),
        if_exists: true,
    };
    looked(domain, DomainChange::AddCheck { name, check }, undo, binder)
}

/// Another name, schema or owner.
fn placed(domain: &Domain, words: &DomainWords, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.name.clone();
    let name = domain.name.clone();
    let to = match words {
        DomainWords::Rename(to) => beside(&name, to),
        DomainWords::Move(schema) => binder.new_name(Some(schema), own(&name))?,
        DomainWords::Owner(to) => {
            let change = Change::Owner {
                kind: ObjectKind::Type,
                name,
                if_exists: false,
                to: to.clone(),
            };
            return Ok(simple(TAG, vec![Command::Rights { database, change }]));
        }
        _ => unreachable!("other changes have places of their own"),
    };
    if to == name && matches!(words, DomainWords::Move(_)) {
        return Ok(simple(TAG, Vec::new()));
    }
    let change = DomainChange::Rename { name, to };
    Ok(simple(TAG, vec![Command::Domain { database, change }]))
}

/// A change that the rows of tables have to meet. Writers look at it from the first step on.
///
/// # Errors
/// 0A000 if several tables have columns of the domain.
fn looked(
    domain: &Domain,
    change: DomainChange,
    undo: DomainChange,
    binder: &Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let columns = binder.cx.database.domain_columns(domain.id);
    let mut tables: Vec<String> = columns.into_iter().map(|(table, _)| table).collect();
    tables.dedup();
    let fill = match tables.as_slice() {
        [] => None,
        [table] => Some(Fill::Validate {
            table: table.clone(),
            constraint: DOMAINS.into(),
        }),
        _ => {
            let error = unsupported("a new condition of a domain that several tables have");
            return Err(error.hint("Add a CHECK to each of the tables."));
        }
    };
    let database = &binder.cx.database.name;
    let command = |change| Command::Domain {
        database: database.clone(),
        change,
    };
    Ok(DdlPlan {
        fill,
        undo: vec![command(undo)],
        ..simple(TAG, vec![command(change)])
    })
}
