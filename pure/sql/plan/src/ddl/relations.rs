//! ALTER INDEX and ALTER SEQUENCE.

use super::{simple, skipped};
use crate::plan::DdlPlan;
use base::full_name::beside;
use base::{SqlError, SqlState};
use bind::Binder;
use bind::scope::ident;
use catalog::{Command, Database, SequenceChange};
use parse::{AlterRelation, RelationChange, SequenceWords};
use sqlparser::ast;

pub(super) fn plan(altered: &AlterRelation, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    let AlterRelation {
        is_index,
        if_exists,
        name,
        change,
    } = altered;
    let tag = match is_index {
        true => "ALTER INDEX",
        false => "ALTER SEQUENCE",
    };
    let owner = binder.cx.database;
    let as_written = name;
    let name = match super::written(name, binder) {
        Err(error) if *if_exists && error.state() == SqlState::INVALID_SCHEMA => {
            return Ok(skipped(tag, &error));
        }
        other => &other?,
    };
    if let Err(error) = check_kind(owner, (name, as_written), *is_index, change) {
        return match *if_exists && error.state() == SqlState::UNDEFINED_TABLE {
            true => Ok(skipped(tag, &error)),
            false => Err(error),
        };
    }
    let (database, name) = (owner.name.clone(), name.clone());
    let name_of = name.clone();
    let command = match change {
        RelationChange::Nothing => return Ok(simple(tag, Vec::new())),
        RelationChange::Rename(to) if owner.table(&name).is_some() => Command::AlterTable {
            database,
            table: name,
            actions: vec![catalog::TableAction::RenameTable { to: to.clone() }],
        },
        RelationChange::Rename(to) => Command::RenameRelation {
            database,
            from: name,
            to: beside(&name_of, to),
        },
        RelationChange::Sequence(words) => Command::AlterSequence {
            database,
            name,
            change: sequence_change(words, binder)?,
        },
    };
    Ok(simple(tag, vec![command]))
}

/// What is renamed may be of another kind, as in PostgreSQL; what is changed may not.
fn check_kind(
    database: &Database,
    (name, as_written): (&str, &str),
    is_index: bool,
    change: &RelationChange,
) -> Result<(), SqlError> {
    if !database.has_relation(name) {
        let parts = pg_catalog::names::parts(as_written)?;
        let message = format!("relation \"{}\" does not exist", parts.join("."));
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    }
    let (is_sequence, renamed) = (
        database.sequence(name).is_some(),
        matches!(change, RelationChange::Rename(_)),
    );
    if is_index && renamed || is_sequence && !is_index {
        return Ok(());
    }
    let kind = if is_index { "an index" } else { "a sequence" };
    if is_index && database.index(name).is_some() {
        return Ok(());
    }
    let message = format!("\"{name}\" is not {kind}");
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

/// The table and column that are to own a sequence.
pub(super) fn owner(
    name: &ast::ObjectName,
    binder: &Binder<'_>,
) -> Result<(String, String), SqlError> {
    let parts = name.0.iter().filter_map(|part| part.as_ident()).map(ident);
    owner_of(&parts.collect::<Vec<_>>(), binder)
}

fn owner_of(parts: &[String], binder: &Binder<'_>) -> Result<(String, String), SqlError> {
    let (schema, table, column) = match parts {
        [table, column] => (None, table, column),
        [schema, table, column] => (Some(schema.as_str()), table, column),
        [_] => {
            return Err(SqlError::new(SqlState::SYNTAX, "invalid OWNED BY option")
                .hint("Specify OWNED BY table.column or OWNED BY NONE."));
        }
        _ => {
            let message = format!("relation \"{}\" does not exist", parts.join("."));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    let table = &binder.changed_name(schema, table)?;
    let found = binder.cx.database.table(table).ok_or_else(|| {
        let message = format!("relation \"{table}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })?;
    found.own_column(column)?;
    Ok((table.clone(), column.clone()))
}

fn sequence_change(words: &SequenceWords, binder: &Binder<'_>) -> Result<SequenceChange, SqlError> {
    let owned_by = match &words.owned_by {
        None => None,
        Some(None) => Some(None),
        Some(Some(parts)) => Some(Some(owner_of(parts, binder)?)),
    };
    let ty = words.ty.as_ref();
    let ty = ty.map(|ty| bind::types::bind_type(ty, &binder.names()));
    let ty = ty.transpose()?;
    if ty.is_some_and(|ty| !ty.is_integer()) {
        let message = "sequence type must be smallint, integer, or bigint";
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(SequenceChange {
        ty,
        increment: words.increment,
        min: words.min,
        max: words.max,
        start: words.start,
        restart: words.restart,
        cycle: words.cycle,
        owned_by,
    })
}
