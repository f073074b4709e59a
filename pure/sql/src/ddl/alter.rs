//! ALTER TABLE: what can be added to a table that exists.

use super::table::{
    check_immediate, check_nulls, check_text, foreign_key, foreign_of, key_columns,
};
use super::{build_index, index, names, own_name, simple};
use crate::bind::scope::ident;
use crate::bind::{Binder, unsupported};
use crate::pg_catalog::names::quote_ident;
use crate::plan::{DdlPlan, Fill};
use base::{SqlError, SqlState};
use catalog::{Check, Command, ForeignKey, Index, Table};
use sqlparser::ast::{self, AlterTableOperation, KeyOrIndexDisplay, TableConstraint};
use std::sync::Arc;

const TAG: &str = "ALTER TABLE";

pub(super) fn plan(
    name: &ast::ObjectName,
    if_exists: bool,
    operations: &[AlterTableOperation],
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    own_name(name)?;
    let table = match binder.find_table(name) {
        Err(error) if if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
            return Ok(simple(TAG, Vec::new()));
        }
        other => other?,
    };
    let [operation] = operations else {
        return Err(unsupported("several changes in one ALTER TABLE"));
    };
    match operation {
        AlterTableOperation::AddConstraint(constraint) => add(&table, constraint, binder),
        // There is one role, so owners do not matter.
        AlterTableOperation::OwnerTo { new_owner: _ } => Ok(simple(TAG, Vec::new())),
        other => {
            let text = other.to_string();
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            Err(unsupported(&format!("ALTER TABLE ... {}", words.join(" "))))
        }
    }
}

fn add(
    table: &Arc<Table>,
    constraint: &TableConstraint,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let database = binder.cx.database.clone();
    match constraint {
        TableConstraint::PrimaryKey {
            name,
            index_name,
            index_type,
            columns,
            index_options,
            characteristics,
        } => {
            binder.no(index_name.is_some() || index_type.is_some(), "KEY")?;
            binder.no(!index_options.is_empty(), "USING")?;
            check_immediate(characteristics, binder)?;
            let columns: Vec<String> = columns.iter().map(ident).collect();
            primary_key(table, name.as_ref().map(ident), &columns, binder)
        }
        TableConstraint::Unique {
            name,
            index_name,
            index_type_display,
            index_type,
            columns,
            index_options,
            characteristics,
            nulls_distinct,
        } => {
            let plain = *index_type_display == KeyOrIndexDisplay::None;
            binder.no(index_name.is_some() || !plain, "UNIQUE")?;
            binder.no(index_type.is_some() || !index_options.is_empty(), "USING")?;
            check_immediate(characteristics, binder)?;
            check_nulls(nulls_distinct)?;
            let columns: Vec<String> = columns.iter().map(ident).collect();
            let keys = key_columns(table, &columns)?;
            let name = match name {
                Some(name) => ident(name),
                None => names::free_name(&database, &table.name, &columns, "key"),
            };
            let index = index(name, keys, true, true);
            Ok(build_index(TAG, &database.name, &table.name, index, false))
        }
        TableConstraint::ForeignKey {
            name: _,
            columns: _,
            foreign_table: _,
            referred_columns: _,
            on_delete: _,
            on_update: _,
            characteristics: _,
        } => {
            let written = foreign_of(constraint, binder)?;
            let mut key = foreign_key(table, &written, binder)?;
            if key.name.is_empty() {
                key.name = names::constraint_name(table, &written.columns, "fkey");
            }
            add_foreign_key(table, key, binder)
        }
        TableConstraint::Check { name, expr } => {
            let expression = check_text(table, expr, binder)?;
            let name = match name {
                Some(name) => ident(name),
                None => names::constraint_name(table, &[], "check"),
            };
            let message = format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.name
            );
            let error = SqlError::new(SqlState::CHECK, message)
                .table(&table.name)
                .constraint(&name);
            let query = format!(
                "SELECT 1 FROM {} WHERE NOT ({expression}) LIMIT 1",
                quote_ident(&table.name)
            );
            let check = Check { name, expression };
            let after = Command::AddCheck {
                database: database.name.clone(),
                table: table.name.clone(),
                check,
            };
            Ok(validated(
                table,
                after,
                Fill::Validate { query, error },
                binder,
            ))
        }
        other => Err(unsupported(&format!("the constraint {other}"))),
    }
}

/// Adds a constraint after a check of the rows; nobody writes meanwhile.
fn validated(table: &Table, after: Command, fill: Fill, binder: &Binder<'_>) -> DdlPlan {
    let freeze = |frozen| Command::Freeze {
        database: binder.cx.database.name.clone(),
        table: table.name.clone(),
        frozen,
    };
    DdlPlan {
        tag: TAG,
        before: vec![freeze(true)],
        fill: Some(fill),
        after: vec![after, freeze(false)],
        undo: vec![freeze(false)],
    }
}

fn primary_key(
    table: &Arc<Table>,
    name: Option<String>,
    columns: &[String],
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    if table.primary_constraint.is_some() {
        let message = format!(
            "multiple primary keys for table \"{}\" are not allowed",
            table.name
        );
        return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    }
    let keys = key_columns(table, columns)?;
    let rowid = table.rowid();
    let partition: Vec<u16> = table
        .partition
        .iter()
        .copied()
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
    rows.retain(|column| !column.hidden);
    for key in &keys {
        rows[usize::from(key.column)].not_null = true;
    }
    let database = binder.cx.database.clone();
    let constraint = match name {
        Some(name) => name,
        None => names::free_name(&database, &table.name, &[], "pkey"),
    };
    let primary = Index {
        slot_columns,
        ..index(constraint.clone(), keys, true, true)
    };
    let after = Command::SetPrimaryKey {
        database: database.name.clone(),
        table: table.name.clone(),
        constraint,
        primary,
        columns: rows,
        partition,
    };
    let fill = Fill::PrimaryKey {
        table: table.name.clone(),
    };
    Ok(validated(table, after, fill, binder))
}

fn add_foreign_key(
    table: &Arc<Table>,
    mut key: ForeignKey,
    binder: &mut Binder<'_>,
) -> Result<DdlPlan, SqlError> {
    let parent = binder.find_table_named(None, &key.parent)?;
    if key.parent_columns.is_empty() {
        key.parent_columns = parent
            .primary
            .columns
            .iter()
            .map(|key| key.column)
            .collect();
    }
    if key.columns.len() != key.parent_columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
    }
    let column = |table: &Table, alias: &str, column: u16| {
        format!("{alias}.{}", quote_ident(&table.column_at(column).name))
    };
    let present: Vec<String> = key
        .columns
        .iter()
        .map(|c| format!("{} IS NOT NULL", column(table, "child", *c)))
        .collect();
    let equal: Vec<String> = key
        .columns
        .iter()
        .zip(&key.parent_columns)
        .map(|(c, p)| {
            format!(
                "{} = {}",
                column(&parent, "parent", *p),
                column(table, "child", *c)
            )
        })
        .collect();
    let query = format!(
        "SELECT 1 FROM {} AS child WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS parent WHERE {}) \
         LIMIT 1",
        quote_ident(&table.name),
        present.join(" AND "),
        quote_ident(&parent.name),
        equal.join(" AND "),
    );
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        table.name, key.name
    );
    let detail = format!("Some key is not present in table \"{}\".", parent.name);
    let error = SqlError::new(SqlState::FOREIGN_KEY, message)
        .detail(detail)
        .table(&table.name)
        .constraint(&key.name);
    let after = Command::AddForeignKey {
        database: binder.cx.database.name.clone(),
        table: table.name.clone(),
        foreign_key: key,
    };
    Ok(validated(
        table,
        after,
        Fill::Validate { query, error },
        binder,
    ))
}
