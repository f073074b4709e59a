//! ALTER TABLE: what can be added to a table that exists.

use super::deferral::deferral;
use super::table::{Constraint, Foreign, constraint_of, foreign_key, key_columns};
use super::unique::Key;
use super::{actions, build_index, index, names, other_name, own_name, rekey, simple, skipped};
use crate::plan::{DdlPlan, Fill};
use base::full_name::beside;
use base::{IndexId, SqlError, SqlState, Type};
use bind::scope::{ident, object_name};
use bind::{Binder, unsupported};
use catalog::{Check, Column, Command, Deferral, Index, Table, Validity};
use parse::{AlterStatement, Marks};
use sqlparser::ast::{self, AlterTableOperation, TableConstraint};
use std::sync::Arc;

pub(super) const TAG: &str = "ALTER TABLE";

pub(super) fn plan(altered: &AlterStatement, binder: &mut Binder<'_>) -> Result<DdlPlan, SqlError> {
    let AlterStatement { statement, marks } = altered;
    let ast::Statement::AlterTable {
        name,
        if_exists,
        // No table has children.
        only: _,
        operations,
        location,
        on_cluster,
    } = statement
    else {
        return Err(unsupported("this ALTER TABLE"));
    };
    binder.no(location.is_some(), "LOCATION")?;
    binder.no(on_cluster.is_some(), "ON")?;
    let renamed = match own_name(name, binder) {
        Err(error) if *if_exists && error.state() == SqlState::INVALID_SCHEMA => {
            return Ok(skipped(TAG, &error));
        }
        other => other?,
    };
    if let [AlterTableOperation::RenameTable { table_name }] = operations.as_slice()
        && binder.cx.database.table(&renamed).is_none()
        && binder.cx.database.has_relation(&renamed)
    {
        return rename_relation(TAG, renamed, table_name, binder);
    }
    // There is one role, so owners do not matter.
    if let [AlterTableOperation::OwnerTo { new_owner: _ }] = operations.as_slice()
        && binder.cx.database.has_relation(&renamed)
    {
        return Ok(simple(TAG, Vec::new()));
    }
    super::view::refuse(name, binder, |name| cannot_alter(altered, name))?;
    let found = match binder.cx.database.stored_view(&renamed) {
        Some(_) => stored(name, operations, altered, binder),
        None => binder.find_table(name),
    };
    let table = match found {
        Err(error) if *if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
            return Ok(skipped(TAG, &error));
        }
        other => other?,
    };
    if let Some(plan) = rekey::plan(&table, operations, marks, binder)? {
        return Ok(plan);
    }
    match operations.as_slice() {
        [AlterTableOperation::AddConstraint(constraint)] if !is_late_key(constraint, binder)? => {
            add(&table, constraint, marks, binder)
        }
        [
            AlterTableOperation::DropConstraint {
                name,
                if_exists: _,
                drop_behavior: _,
            },
        ] if marks.validate && marks.idle(name).is_none() => validate(&table, ident(name), binder),
        [operation] => match actions::rename(&table, operation, binder)? {
            Some(plan) => Ok(plan),
            None => actions::plan(&table, operations, marks, binder),
        },
        _ => actions::plan(&table, operations, marks, binder),
    }
}

/// Whether it is a primary key that can be deferred: columns and an index are changed for it.
fn is_late_key(constraint: &TableConstraint, binder: &Binder<'_>) -> Result<bool, SqlError> {
    Ok(match constraint {
        TableConstraint::PrimaryKey {
            name: _,
            index_name: _,
            index_type: _,
            columns: _,
            index_options: _,
            characteristics,
        } => deferral(characteristics, binder)? != Deferral::Never,
        _ => false,
    })
}

/// An index or a sequence gets another name.
pub(super) fn rename_relation(
    tag: &'static str,
    from: String,
    to: &ast::ObjectName,
    binder: &Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let command = Command::RenameRelation {
        database: binder.cx.database.name.clone(),
        to: beside(&from, &other_name(to, binder)?),
        from,
    };
    Ok(simple(tag, vec![command]))
}

fn validate(table: &Table, constraint: String, binder: &Binder<'_>) -> Result<DdlPlan, SqlError> {
    match table.validity(&constraint) {
        Some(Validity::Valid) => return Ok(simple(TAG, Vec::new())),
        Some(_) => {}
        None if table.has_constraint(&constraint) => {
            let message = format!(
                "constraint \"{constraint}\" of relation \"{}\" is not a foreign key or check \
                 constraint",
                table.name
            );
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        None => return Err(table.no_constraint(&constraint)),
    }
    let set = |validity| Command::SetValidity {
        database: binder.cx.database.name.clone(),
        table: table.name.clone(),
        constraint: constraint.clone(),
        validity,
    };
    Ok(DdlPlan {
        tag: TAG,
        before: vec![set(Validity::Validating)],
        fill: Some(Fill::Validate {
            table: table.name.clone(),
            constraint: constraint.clone(),
        }),
        after: vec![set(Validity::Valid)],
        undo: vec![set(Validity::NotValid)],
        notices: Vec::new(),
        temporary: None,
    })
}

/// Adds a check or a foreign key. Writers check it from the first step on, so that the rows that
/// were there before can be looked through in batches while others write.
fn added(
    table: &Table,
    constraint: &str,
    validity: Validity,
    add: Command,
    binder: &Binder<'_>,
) -> DdlPlan {
    if validity == Validity::NotValid {
        return simple(TAG, vec![add]);
    }
    let database = binder.cx.database.name.clone();
    let (table, constraint) = (table.name.clone(), constraint.to_string());
    DdlPlan {
        tag: TAG,
        before: vec![add],
        fill: Some(Fill::Validate {
            table: table.clone(),
            constraint: constraint.clone(),
        }),
        after: vec![Command::SetValidity {
            database: database.clone(),
            table: table.clone(),
            constraint: constraint.clone(),
            validity: Validity::Valid,
        }],
        undo: vec![Command::DropConstraint {
            database,
            table,
            constraint,
            if_exists: true,
        }],
        notices: Vec::new(),
        temporary: None,
    }
}

fn validity_of(marks: &Marks) -> Validity {
    match marks.not_valid {
        true => Validity::NotValid,
        false => Validity::Adding,
    }
}

fn add_foreign(
    table: &Arc<Table>,
    written: &Foreign,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let (database, validity) = (binder.cx.database.clone(), validity_of(marks));
    let mut key = foreign_key(table, written, binder)?;
    key.validity = validity;
    if key.name.is_empty() {
        key.name = names::constraint_name(table, &written.columns, "fkey");
    }
    let name = key.name.clone();
    let add = Command::AddForeignKey {
        database: database.name.clone(),
        table: table.name.clone(),
        foreign_key: key,
    };
    Ok(added(table, &name, validity, add, binder))
}

fn add_check(
    table: &Arc<Table>,
    name: Option<String>,
    expr: &ast::Expr,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let (database, validity) = (binder.cx.database.clone(), validity_of(marks));
    let expression = super::shown::new_check_text(table, expr, binder)?;
    let name = name.unwrap_or_else(|| table.check_name(&expression));
    let check = Check {
        name: name.clone(),
        expression,
        validity,
    };
    let add = Command::AddCheck {
        database: database.name.clone(),
        table: table.name.clone(),
        check,
    };
    Ok(added(table, &name, validity, add, binder))
}

fn add(
    table: &Arc<Table>,
    constraint: &TableConstraint,
    marks: &Marks,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.clone();
    match constraint_of(constraint, marks, binder)? {
        Constraint::Primary(key) => primary_key(table, key, None, binder),
        Constraint::Unique(unique) => {
            key_columns(table, &unique.columns)?;
            let name = match unique.name.as_str() {
                "" => names::free_name(&database, &table.name, &unique.columns, "key"),
                name => name.into(),
            };
            let index = unique.index(table, name)?;
            Ok(build_index(TAG, &database.name, &table.name, index, false))
        }
        Constraint::Foreign(written) => add_foreign(table, &written, marks, binder),
        Constraint::Check(name, expr) => add_check(table, name, &expr, marks, binder),
    }
}

/// A change of a table that has no writers meanwhile.
pub(super) fn frozen(database: &str, table: &Table, fill: Fill, after: Command) -> DdlPlan {
    let freeze = |frozen| Command::Freeze {
        database: database.to_string(),
        table: table.name.clone(),
        frozen,
    };
    DdlPlan {
        tag: TAG,
        before: vec![freeze(true)],
        fill: Some(fill),
        after: vec![after, freeze(false)],
        undo: vec![freeze(false)],
        notices: Vec::new(),
        temporary: None,
    }
}

/// The indexes of a table that gets a primary key, whose slot columns these are.
pub(super) fn moved(table: &Table, partition: &[u16]) -> Vec<Index> {
    let partitioned = Table {
        partition: partition.to_vec(),
        ..table.clone()
    };
    let moved = table.secondary.iter().map(|old| Index {
        id: IndexId(0),
        slot_columns: partitioned.slot_columns(&old.columns),
        ..old.clone()
    });
    moved.collect()
}

/// A table gets a primary key; `replaces`: in place of the one that it has, `true` if what needs
/// that one goes along.
pub(super) fn primary_key(
    table: &Arc<Table>,
    key: Key,
    replaces: Option<bool>,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    if table.key_index().is_some() && replaces.is_none() {
        return Err(table.second_key());
    }
    let keys = key_columns(table, &key.columns)?;
    let rowid = table.rowid();
    let partition: Vec<u16> = rekey::partition(table)
        .into_iter()
        .filter(|column| Some(*column) != rowid)
        .collect();
    let slot_columns = if partition.is_empty() {
        vec![keys[0].column]
    } else {
        partition.clone()
    };
    let missing = slot_columns
        .iter()
        .any(|c| !keys.iter().any(|key| key.column == *c));
    if missing {
        let message = "primary key must include all partition columns";
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let mut rows = table.columns.clone();
    match rowid {
        Some(at) if usize::from(at) + 1 == rows.len() => drop(rows.pop()),
        // The places of the columns behind it stay.
        Some(at) => rows[usize::from(at)] = Column::dropped(at, Type::Int8),
        None => {}
    }
    for key in &keys {
        rows[usize::from(key.column)].not_null = true;
    }
    let database = binder.cx.database.clone();
    let constraint = match key.name {
        name if !name.is_empty() => name,
        _ => names::free_key_name(&database, table),
    };
    let primary = Index {
        slot_columns,
        ..index(constraint.clone(), keys, true, true)
    };
    let after = Command::SetPrimaryKey {
        database: database.name.clone(),
        table: table.name.clone(),
        constraint,
        secondary: moved(table, &primary.slot_columns),
        primary,
        columns: rows,
        partition,
        drops: None,
        replaces: table.primary.id,
        cascade: replaces == Some(true),
        looked_at: Vec::new(),
    };
    let fill = Fill::PrimaryKey {
        table: table.name.clone(),
    };
    Ok(frozen(&database.name, table, fill, after))
}

/// The table of a materialized view, which can get another name.
///
/// # Errors
/// 42809 for other changes.
fn stored(
    name: &ast::ObjectName,
    operations: &[AlterTableOperation],
    altered: &AlterStatement,
    binder: &Binder<'_>,
) -> Result<Arc<Table>, SqlError> {
    if let [AlterTableOperation::RenameTable { table_name: _ }] = operations {
        return binder.find_rows(name);
    }
    let name = object_name(name).1;
    let message = cannot_alter(altered, &name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail("This operation is not supported for materialized views."))
}

/// The sentence about a change that the relation does not take.
fn cannot_alter(altered: &AlterStatement, name: &str) -> String {
    let verb = altered.statement.to_string();
    let words: Vec<&str> = verb.split_whitespace().skip(3).take(2).collect();
    let action = words.join(" ");
    format!("ALTER action {action} cannot be performed on relation \"{name}\"")
}
