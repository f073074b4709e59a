//! Check constraints and foreign keys.

use crate::command::CatalogError;
use crate::desc::*;
use crate::names;
use alloc::format;
use base::{SqlError, SqlState, Type};

impl Table {
    /// Names the checks without a name. Errors: 42710 if a name is there twice.
    pub(crate) fn complete_checks(&mut self) -> Result<(), CatalogError> {
        let checks = core::mem::take(&mut self.checks);
        for mut check in checks {
            if check.name.is_empty() {
                let visible = self.columns.iter().map(|column| &column.name);
                let mut columns = names::columns_in(&check.expression, visible);
                if columns.len() != 1 {
                    columns.clear();
                }
                let taken = |name: &str| self.has_constraint(name);
                check.name = names::choose(&self.name, &columns, "check", taken);
            }
            self.check_constraint_name(&check.name)?;
            self.checks.push(check);
        }
        Ok(())
    }

    fn check_constraint_name(&self, name: &str) -> Result<(), CatalogError> {
        if !self.has_constraint(name) {
            return Ok(());
        }
        let message = format!(
            "constraint \"{name}\" for relation \"{}\" already exists",
            self.name
        );
        Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message).constraint(name))
    }
}

/// The foreign key with its name and parent columns, after all checks. An empty list of parent
/// columns stands for the parent's primary key.
pub(crate) fn resolve_foreign_key(
    child: &Table,
    parent: &Table,
    key: &ForeignKey,
) -> Result<ForeignKey, CatalogError> {
    let mut key = key.clone();
    key.columns
        .iter()
        .try_for_each(|&column| child.check_position(column))?;
    if key.parent_columns.is_empty() {
        if parent.primary_constraint.is_none() {
            let message = format!(
                "there is no primary key for referenced table \"{}\"",
                parent.name
            );
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        key.parent_columns = parent
            .primary
            .columns
            .iter()
            .map(|column| column.column)
            .collect();
    }
    key.parent_columns
        .iter()
        .try_for_each(|&column| parent.check_position(column))?;
    if key.columns.len() != key.parent_columns.len() {
        let message = "number of referencing and referenced columns for foreign key disagree";
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
    }
    let usable = |index: &Index| {
        index.unique && !index.building && index.covers_exactly(&key.parent_columns)
    };
    if !parent.indexes().any(usable) {
        let message = format!(
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            parent.name
        );
        return Err(SqlError::new(SqlState::INVALID_FOREIGN_KEY, message));
    }
    if key.name.is_empty() {
        let columns = child.column_names(key.columns.iter().copied());
        key.name = names::choose(&child.name, &columns, "fkey", |name| {
            child.has_constraint(name)
        });
    }
    child.check_constraint_name(&key.name)?;
    for (&own, &other) in key.columns.iter().zip(&key.parent_columns) {
        check_types(&key.name, child.column_at(own), parent.column_at(other))?;
    }
    Ok(key)
}

/// Keys of both columns must have the same encoding.
fn check_types(constraint: &str, own: &Column, other: &Column) -> Result<(), CatalogError> {
    if family(own.ty) == family(other.ty) {
        return Ok(());
    }
    let message = format!("foreign key constraint \"{constraint}\" cannot be implemented");
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        own.name,
        other.name,
        own.ty.name(),
        other.ty.name()
    );
    Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail))
}

/// A representative of the types whose equal values have equal keys.
fn family(ty: Type) -> Type {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) => Type::Int8,
        Type::Float4 | Type::Float8 => Type::Float8,
        Type::Numeric(_) => Type::Numeric(None),
        Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar => {
            Type::Text
        }
        Type::Timestamp(_) | Type::Timestamptz(_) => Type::Timestamptz(None),
        other => other,
    }
}
