//! Check constraints and foreign keys.

use crate::alter::TableAction;
use crate::apply::{no_relation, skip_or_fail};
use crate::command::{Applied, CatalogError, Command};
use crate::desc::*;
use crate::names;
use crate::retyped::is_copy;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::full_name::is_temporary_name;
use base::{SqlError, SqlState, Type};

impl Catalog {
    pub(crate) fn add_foreign_key(
        &mut self,
        database: &str,
        table: &str,
        key: &ForeignKey,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        let child = owner.table(table).ok_or_else(|| no_relation(table))?;
        let parent = owner
            .table(&key.parent)
            .ok_or_else(|| no_relation(&key.parent))?;
        check_lasting(child, parent)?;
        let key = resolve_foreign_key(child, parent, key)?;
        let reference = (String::from(table), key.name.clone());
        self.table_mut(database, &key.parent)?
            .referenced_by
            .push(reference);
        let child = self.table_mut(database, table)?;
        child.foreign_keys.push(key);
        Ok(Applied {
            table: Some(child.id),
            ..Applied::default()
        })
    }

    pub(crate) fn add_check(
        &mut self,
        database: &str,
        table: &str,
        check: &Check,
    ) -> Result<Applied, CatalogError> {
        let table = self.table_mut(database, table)?;
        table.checks.push(check.clone());
        table.complete_checks()?;
        Ok(Applied {
            table: Some(table.id),
            ..Applied::default()
        })
    }

    pub(crate) fn set_validity(
        &mut self,
        database: &str,
        table: &str,
        constraint: &str,
        validity: Validity,
    ) -> Result<Applied, CatalogError> {
        let table = self.table_mut(database, table)?;
        let Some(known) = table.validity_mut(constraint) else {
            return Err(table.no_constraint(constraint));
        };
        if (*known, validity) == (Validity::Valid, Validity::Validating) {
            // Another session was first.
            let message = format!("constraint \"{constraint}\" is already valid");
            return skip_or_fail(true, SqlState::DUPLICATE_OBJECT, message);
        }
        *known = validity;
        Ok(Applied {
            table: Some(table.id),
            ..Applied::default()
        })
    }

    pub(crate) fn drop_constraint(
        &mut self,
        database: &str,
        table: &str,
        constraint: &str,
        if_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let child = self.table_mut(database, table)?;
        let id = child.id;
        let key = child
            .foreign_keys
            .iter()
            .position(|key| key.name == constraint);
        if let Some(at) = key {
            let parent = child.foreign_keys.remove(at).parent;
            let parent = self.table_mut(database, &parent)?;
            parent
                .referenced_by
                .retain(|(child, name)| child != table || name != constraint);
        } else if let Some(at) = child
            .checks
            .iter()
            .position(|check| check.name == constraint)
        {
            child.checks.remove(at);
        } else {
            let message = child.no_constraint(constraint).fields().message.clone();
            return skip_or_fail(if_exists, SqlState::UNDEFINED_OBJECT, message);
        }
        Ok(Applied {
            table: Some(id),
            ..Applied::default()
        })
    }
}

impl Table {
    /// Its checks and foreign keys by name, and what is known of them.
    fn validities(&self) -> impl Iterator<Item = (&String, Validity)> {
        let checks = self.checks.iter();
        let checks = checks.map(|check| (&check.name, check.validity));
        let keys = self.foreign_keys.iter();
        checks.chain(keys.map(|key| (&key.name, key.validity)))
    }

    /// What is known of the check or foreign key `name`; `None` if there is none of that name.
    pub fn validity(&self, name: &str) -> Option<Validity> {
        let found = self.validities().find(|(known, _)| *known == name);
        found.map(|(_, validity)| validity)
    }

    pub(crate) fn validity_mut(&mut self, name: &str) -> Option<&mut Validity> {
        let checks = self.checks.iter_mut();
        let checks = checks.map(|check| (&check.name, &mut check.validity));
        let keys = self.foreign_keys.iter_mut();
        let keys = keys.map(|key| (&key.name, &mut key.validity));
        let mut all = checks.chain(keys);
        all.find(|(known, _)| *known == name)
            .map(|(_, validity)| validity)
    }

    /// What undoes the adding and validating of constraints that a crash has cut off.
    pub fn unfinished_constraints(&self, database: &str) -> Vec<Command> {
        if self.columns.iter().any(Column::is_unfinished) {
            return Vec::from([Command::AlterTable {
                database: database.into(),
                table: self.name.clone(),
                actions: Vec::from([TableAction::Undo]),
            }]);
        }
        let undo = |(name, validity): (&String, Validity)| {
            if is_copy(name) {
                // What undoes the change of its parent takes it away.
                return None;
            }
            let (database, table) = (database.into(), self.name.clone());
            let constraint = name.clone();
            match validity {
                Validity::Valid | Validity::NotValid => None,
                Validity::Adding => Some(Command::DropConstraint {
                    database,
                    table,
                    constraint,
                    if_exists: true,
                }),
                Validity::Validating => Some(Command::SetValidity {
                    database,
                    table,
                    constraint,
                    validity: Validity::NotValid,
                }),
            }
        };
        self.validities().filter_map(undo).collect()
    }

    /// 42704 for a constraint that this table does not have.
    pub fn no_constraint(&self, name: &str) -> SqlError {
        let message = format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            self.name
        );
        SqlError::new(SqlState::UNDEFINED_OBJECT, message)
    }

    /// The name of a check over `expression` that has none, as PostgreSQL chooses it: after the
    /// one column that it reads.
    pub fn check_name(&self, expression: &str) -> String {
        let visible = self.columns.iter().map(|column| &column.name);
        let mut columns = names::columns_in(expression, visible);
        if columns.len() != 1 {
            columns.clear();
        }
        let taken = |name: &str| self.has_constraint(name);
        names::choose(&self.name, &columns, "check", taken)
    }

    /// Positions of the columns that a check reads, in the order in which it names them.
    pub fn columns_of_check(&self, check: &Check) -> Vec<u16> {
        let visible = self.columns.iter().map(|column| &column.name);
        let found = names::columns_in(&check.expression, visible);
        let places = found.iter().filter_map(|name| self.column(name));
        places.map(|(at, _)| at).collect()
    }

    /// Names the checks without a name. Errors: 42710 if a name is there twice.
    pub(crate) fn complete_checks(&mut self) -> Result<(), CatalogError> {
        let checks = core::mem::take(&mut self.checks);
        for mut check in checks {
            if check.name.is_empty() {
                check.name = self.check_name(&check.expression);
            }
            self.check_constraint_name(&check.name)?;
            self.checks.push(check);
        }
        Ok(())
    }

    pub(crate) fn check_constraint_name(&self, name: &str) -> Result<(), CatalogError> {
        if !self.has_constraint(name) {
            return Ok(());
        }
        let message = format!(
            "constraint \"{name}\" for relation \"{}\" already exists",
            self.name
        );
        Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message))
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
    let deferrable = |kind: &str| {
        let message = format!(
            "cannot use a deferrable {kind} for referenced table \"{}\"",
            parent.name
        );
        SqlError::new(SqlState::OBJECT_NOT_READY, message)
    };
    if key.parent_columns.is_empty() {
        if parent.key_index().is_some_and(Index::is_deferrable) {
            return Err(deferrable("primary key"));
        }
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
    let usable = |index: &&Index| {
        index.unique && !index.building && index.covers_exactly(&key.parent_columns)
    };
    let usable = parent.indexes().filter(usable);
    let immediate = usable.map(Index::is_immediate).max();
    if immediate == Some(false) {
        return Err(deferrable("unique constraint"));
    }
    if immediate.is_none() {
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
        check_reference(&key.name, child.column_at(own), parent.column_at(other))?;
    }
    Ok(key)
}

/// Whether a column can refer to another one: keys of both must have the same encoding.
///
/// # Errors
/// 42804.
pub fn check_reference(constraint: &str, own: &Column, other: &Column) -> Result<(), CatalogError> {
    if family(own.ty) == family(other.ty) {
        return Ok(());
    }
    Err(cannot_refer(constraint, own, other))
}

/// 42804: a column cannot refer to another one.
pub fn cannot_refer(constraint: &str, own: &Column, other: &Column) -> SqlError {
    let message = format!("foreign key constraint \"{constraint}\" cannot be implemented");
    let detail = format!(
        "Key columns \"{}\" and \"{}\" are of incompatible types: {} and {}.",
        own.name,
        other.name,
        own.ty.base_name(),
        other.ty.base_name()
    );
    SqlError::new(SqlState::DATATYPE_MISMATCH, message).detail(detail)
}

/// A representative of the types whose equal values have equal keys.
fn family(ty: Type) -> Type {
    match ty {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Oid | Type::Reg(_) | Type::Tid => Type::Int8,
        Type::Float4 | Type::Float8 => Type::Float8,
        Type::Numeric(_) => Type::Numeric(None),
        Type::Text | Type::Varchar(_) | Type::Char(_) | Type::Name | Type::InternalChar => {
            Type::Text
        }
        Type::Timestamp(_) | Type::Timestamptz(_) => Type::Timestamptz(None),
        Type::Time(_) => Type::Time(None),
        Type::Timetz(_) => Type::Timetz(None),
        // Of one kind there, since one stands for the other by itself.
        Type::Bit(_) | Type::Varbit(_) => Type::Varbit(None),
        other => other,
    }
}

/// # Errors
/// 42P16 for a key between a table that goes with its session and one that stays.
fn check_lasting(child: &Table, parent: &Table) -> Result<(), CatalogError> {
    let (child, parent) = (
        is_temporary_name(&child.name),
        is_temporary_name(&parent.name),
    );
    if child == parent {
        return Ok(());
    }
    let kind = if child { "temporary" } else { "permanent" };
    let message = format!("constraints on {kind} tables may reference only {kind} tables");
    Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
}
