//! Other names for tables, columns, constraints, indexes and sequences, and what must follow.
//!
//! Checks and defaults are kept as text, in which names are replaced. Everything else refers to
//! columns by their place, to tables and constraints by their names.

use crate::apply::{already_exists, no_relation};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::keys::check_column_name;
use crate::names;
use crate::views::kept_name;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use base::full_name::{beside, is_temporary_name, own};
use base::{SqlError, SqlState};

impl Catalog {
    pub(crate) fn rename_column(
        &mut self,
        database: &str,
        table: &str,
        from: &str,
        to: &str,
    ) -> Result<(), CatalogError> {
        let found = self.table_mut(database, table)?;
        check_column_name(to)?;
        let at = found.own_column(from).map_err(|_| {
            let message = format!("column \"{from}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })?;
        if found.column(to).is_some() {
            let message = format!("column \"{to}\" of relation \"{table}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
        }
        let owner = self.database_mut(database)?;
        if let Some(view) = owner.views_using(table, Some(from)).first() {
            return Err(kept_name(("table", table), Some(from), &view.name));
        }
        owner.keep_named(table, from)?;
        owner.rename_in_policies(table, Some((from, to)), to)?;
        let found = self.table_mut(database, table)?;
        found.columns[at].name = to.into();
        for check in &mut found.checks {
            check.expression = names::renamed(&check.expression, from, to, false);
        }
        found.rename_in_generated(from, to, false);
        for sequence in self.database_mut(database)?.sequences.values_mut() {
            if let Some((owner, column)) = &mut sequence.owned_by
                && owner == table
                && column == from
            {
                *column = to.into();
            }
        }
        Ok(())
    }

    pub(crate) fn rename_table(
        &mut self,
        database: &str,
        from: &str,
        to: &str,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        if owner.table(from).is_none() {
            return Err(no_relation(from));
        }
        if owner.has_relation(to) {
            return already_exists(to, false).map(|_| ());
        }
        if let Some(view) = owner.views_using(from, None).first() {
            return Err(kept_name(("table", from), None, &view.name));
        }
        owner.keep_named(from, own(from))?;
        owner.rename_in_policies(from, None, to)?;
        // A block that has written to a table of its session can give it another name and go on.
        let kept = owner.table(from).filter(|_| is_temporary_name(from));
        let kept = kept.map(|table| table.changed);
        let found = owner.table_mut(from, version)?;
        found.name = to.into();
        if let Some(changed) = kept {
            found.changed = changed;
        }
        for check in &mut found.checks {
            check.expression = names::renamed(&check.expression, own(from), own(to), true);
        }
        found.rename_in_generated(from, to, true);
        let found = owner.tables.remove(from).expect("just seen");
        owner.tables.insert(to.into(), found);
        owner.rename_stored(from, to);
        for table in owner.tables.values_mut() {
            let is_child = table.foreign_keys.iter().any(|key| key.parent == from);
            let is_parent = table.referenced_by.iter().any(|(child, _)| child == from);
            if !(is_child || is_parent) {
                continue;
            }
            let table = Arc::make_mut(table);
            table.changed = version;
            let keys = table.foreign_keys.iter_mut();
            for key in keys.filter(|key| key.parent == from) {
                key.parent = to.into();
            }
            for (child, _) in &mut table.referenced_by {
                if child == from {
                    *child = to.into();
                }
            }
        }
        for sequence in owner.sequences.values_mut() {
            if let Some((table, _)) = &mut sequence.owned_by
                && table == from
            {
                *table = to.into();
            }
        }
        Ok(())
    }

    pub(crate) fn rename_constraint(
        &mut self,
        database: &str,
        table: &str,
        from: &str,
        to: &str,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let found = owner.table(table).ok_or_else(|| no_relation(table))?;
        if !found.has_constraint(from) {
            let message = format!("constraint \"{from}\" for table \"{table}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
        if found.index(from).is_some() && owner.has_relation(&beside(table, to)) {
            return already_exists(to, false).map(|_| ());
        }
        found.check_constraint_name(to)?;
        let id = found.id;
        let found = owner.table_mut(table, version)?;
        found.rename_index(from, to);
        let checks = found.checks.iter_mut().map(|check| &mut check.name);
        let keys = found.foreign_keys.iter_mut();
        let mut parent = None;
        let keys = keys.map(|key| {
            if key.name == from {
                parent = Some(key.parent.clone());
            }
            &mut key.name
        });
        for name in checks.chain(keys).filter(|name| *name == from) {
            *name = to.into();
        }
        if let Some(parent) = parent {
            let users = &mut owner.table_mut(&parent, version)?.referenced_by;
            let mut users = users.iter_mut();
            if let Some((_, name)) = users.find(|(child, name)| child == table && name == from) {
                *name = to.into();
            }
        }
        let before = Commented::Constraint(id, from.to_string());
        if let Some(text) = owner.comments.remove(&before) {
            let after = Commented::Constraint(id, to.to_string());
            owner.comments.insert(after, text);
        }
        Ok(())
    }

    pub(crate) fn rename_relation(
        &mut self,
        database: &str,
        from: &str,
        to: &str,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        if let Some((table, index)) = owner.index(from) {
            let (table, constraint) = (table.name.clone(), index.constraint);
            if owner.has_relation(to) {
                return already_exists(to, false);
            }
            match constraint {
                true => self.rename_constraint(database, &table, own(from), own(to))?,
                false => self
                    .table_mut(database, &table)?
                    .rename_index(own(from), own(to)),
            }
            return Ok(Applied::default());
        }
        if !owner.sequences.contains_key(from) {
            return Err(no_relation(from));
        }
        if owner.has_relation(to) {
            return already_exists(to, false);
        }
        self.rename_sequence(database, from, to)?;
        Ok(Applied::default())
    }

    fn rename_sequence(
        &mut self,
        database: &str,
        from: &str,
        to: &str,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let mut sequence = owner.sequences.remove(from).expect("the caller saw it");
        sequence.name = to.into();
        owner.sequences.insert(to.into(), sequence);
        for table in owner.tables.values_mut() {
            let mut columns = table.columns.iter();
            let draws = |text: &String| names::draws_from(text, from);
            if !columns.any(|column| column.default.as_ref().is_some_and(draws)) {
                continue;
            }
            let table = Arc::make_mut(table);
            table.changed = version;
            for column in &mut table.columns {
                if let Some(default) = &mut column.default {
                    *default = names::redrawn(default, from, to);
                }
            }
        }
        Ok(())
    }
}

impl Table {
    /// Gives the index `from` and the primary key constraint of that name another name.
    fn rename_index(&mut self, from: &str, to: &str) {
        if self.primary_constraint.as_deref() == Some(from) {
            self.primary_constraint = Some(to.into());
        }
        let secondary = self.secondary.iter_mut();
        for index in secondary.chain([&mut self.primary]) {
            if index.name == from && !index.name.is_empty() {
                index.name = to.into();
            }
        }
    }
}
