//! Creating and dropping tables and indexes, and giving a table its primary key.

use crate::apply::{Removal, already_exists, no_relation};
use crate::command::{Applied, CatalogError, Command};
use crate::desc::*;
use crate::names;
use crate::rekeyed::Rekeying;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::beside;
use base::{IndexId, SqlError, SqlState, TableId};

impl Catalog {
    pub(crate) fn create_table(
        &mut self,
        database: &str,
        table: &Table,
        sequences: &[Sequence],
        if_not_exists: bool,
    ) -> Result<Applied, CatalogError> {
        self.ensure_temporary(database, &table.name)?;
        if self.database_mut(database)?.has_relation(&table.name) {
            return already_exists(&table.name, if_not_exists);
        }
        self.database_mut(database)?.check_types(table)?;
        let mut table = table.clone();
        table.check_columns()?;
        let notices = self.settle_replication(database, &mut table)?;
        table.id = TableId(self.next_number());
        table.changed = self.version;
        table.referenced_by.clear();
        table.frozen = false;
        self.add_table_sequences(database, &mut table, sequences)?;
        table.primary.id = IndexId(self.next_number());
        let owner = self.database_mut(database)?;
        let name = table.name.clone();
        let taken = |other: &str| {
            let other = beside(&name, other);
            other == name || owner.has_relation(&other)
        };
        table.complete_primary(taken)?;
        self.add_table_indexes(database, &mut table)?;
        table.complete_checks()?;
        let keys = core::mem::take(&mut table.foreign_keys);
        let id = table.id;
        self.database_mut(database)?
            .tables
            .insert(name.clone(), Arc::new(table));
        for key in &keys {
            self.add_foreign_key(database, &name, key)?;
        }
        Ok(Applied {
            table: Some(id),
            notices,
            ..Applied::default()
        })
    }

    /// A row that moves has one owner, so there is nothing to replicate.
    fn settle_replication(
        &mut self,
        database: &str,
        table: &mut Table,
    ) -> Result<Vec<String>, CatalogError> {
        let moves = self.database_mut(database)?.protocol.moves_rows();
        if !(table.replicated && moves) {
            return Ok(Vec::new());
        }
        table.replicated = false;
        let name = &table.name;
        let text = format!("rows of \"{name}\" move in this database: \"replicated\" is ignored");
        Ok(Vec::from([text]))
    }

    /// Creates the sequences of serial and identity columns, naming those without a name.
    fn add_table_sequences(
        &mut self,
        database: &str,
        table: &mut Table,
        sequences: &[Sequence],
    ) -> Result<(), CatalogError> {
        for sequence in sequences {
            let mut sequence = sequence.clone();
            sequence.id = IndexId(self.next_number());
            let owner = self.database_mut(database)?;
            let taken = |name: &str| name == table.name || owner.has_relation(name);
            let own_taken = |name: &str| taken(&beside(&table.name, name));
            if sequence.name.is_empty() {
                let column = sequence.owned_by.as_ref().map(|(_, column)| column.clone());
                let columns = Vec::from_iter(column);
                let own = names::choose(&table.name, &columns, "seq", own_taken);
                sequence.name = beside(&table.name, &own);
                let drawn = columns
                    .first()
                    .and_then(|name| table.column(name))
                    .map(|(i, _)| i);
                if let Some(i) = drawn {
                    let column = &mut table.columns[usize::from(i)];
                    if column.identity.is_none() && column.default.is_none() {
                        column.default = Some(names::next_of(&sequence.name));
                    }
                }
            } else if taken(&sequence.name) {
                return already_exists(&sequence.name, false).map(|_| ());
            }
            owner.add_sequence(sequence)?;
        }
        Ok(())
    }

    fn add_table_indexes(&mut self, database: &str, table: &mut Table) -> Result<(), CatalogError> {
        for mut index in core::mem::take(&mut table.secondary) {
            index.id = IndexId(self.next_number());
            index.building = false;
            let owner = self.database_mut(database)?;
            let taken = |name: &str| {
                let full = beside(&table.name, name);
                full == table.name || owner.has_relation(&full) || table.index(name).is_some()
            };
            if !index.name.is_empty() && taken(&index.name) {
                return already_exists(&index.name, false).map(|_| ());
            }
            table.complete_index(&mut index, taken)?;
            table.secondary.push(index);
        }
        Ok(())
    }

    pub(crate) fn drop_tables(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let database = self.database_mut(database)?;
        let mut removal = Removal::new("table", SqlState::UNDEFINED_TABLE, if_exists);
        for name in names {
            let Some(table) = database.tables.get(name).cloned() else {
                removal.missing(database, name)?;
                continue;
            };
            if database.stored.contains_key(name) {
                return Err(Catalog::not_a_table(name));
            }
            for (child, constraint) in &table.referenced_by {
                if names.contains(child) {
                    continue;
                }
                if !cascade {
                    return Err(table_in_use(name, child, constraint));
                }
                let child = database.table_mut(child, version)?;
                child.foreign_keys.retain(|key| key.name != *constraint);
            }
            let gone = database.drop_views_with(("table", name), None, names, cascade)?;
            removal.tell(gone);
            database.tables.remove(name);
            for key in &table.foreign_keys {
                // A parent of the same statement may be gone already.
                if let Ok(parent) = database.table_mut(&key.parent, version) {
                    parent.referenced_by.retain(|(child, _)| child != name);
                }
            }
            removal
                .dropped
                .extend(table.indexes().map(|index| index.id));
            database.sequences.retain(|_, sequence| {
                let owned = sequence
                    .owned_by
                    .as_ref()
                    .is_some_and(|(owner, _)| owner == name);
                if owned {
                    removal.dropped.push(sequence.id);
                }
                !owned
            });
        }
        Ok(removal.applied())
    }

    pub(crate) fn create_index(
        &mut self,
        database: &str,
        table: &str,
        index: &Index,
        if_not_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        if owner.table(table).is_none() {
            return Err(no_relation(table));
        }
        if !index.name.is_empty() && owner.has_relation(&beside(table, &index.name)) {
            return already_exists(&index.name, if_not_exists);
        }
        let mut index = Index {
            building: true,
            ..index.clone()
        };
        index.id = IndexId(self.next_number());
        let owner = self.database_mut(database)?;
        let found = owner.table(table).expect("seen above");
        let constraint = index.constraint;
        let taken = |name: &str| {
            owner.has_relation(&beside(table, name)) || (constraint && found.has_constraint(name))
        };
        found.complete_index(&mut index, taken)?;
        let table = self.table_mut(database, table)?;
        table.secondary.push(index);
        Ok(Applied {
            table: Some(table.id),
            ..Applied::default()
        })
    }

    pub(crate) fn finish_index(
        &mut self,
        database: &str,
        table: &str,
        index: &str,
    ) -> Result<Applied, CatalogError> {
        let table = self.table_mut(database, table)?;
        match table
            .secondary
            .iter_mut()
            .find(|other| other.name == *index)
        {
            Some(index) => index.building = false,
            None => {
                let message = format!("index \"{index}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
            }
        }
        Ok(Applied {
            table: Some(table.id),
            ..Applied::default()
        })
    }

    pub(crate) fn drop_indexes(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
    ) -> Result<Applied, CatalogError> {
        self.end_indexes(database, names, if_exists, &|table, id| {
            table.forget_index(id);
        })
    }

    /// The step before [`Catalog::drop_indexes`]: what may be refused is refused here.
    ///
    /// While shards take the next version into use one after the other, some writers would keep the
    /// index and others not, and a reader of it would miss rows. So no statement reads it any more
    /// before the first writer leaves it alone, and those that still write to it expect to find it
    /// in the state of one that is being built.
    pub(crate) fn retire_indexes(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let mut retired = self.end_indexes(database, names, if_exists, &|table, id| {
            let index = table.secondary.iter_mut().find(|other| other.id == id);
            index.expect("looked up by its name").building = true;
        })?;
        // They are told when it is dropped.
        retired.notices.clear();
        retired.dropped.clear();
        Ok(retired)
    }

    fn end_indexes(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        end: &dyn Fn(&mut Table, IndexId),
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let database = self.database_mut(database)?;
        let mut removal = Removal::new("index", SqlState::UNDEFINED_OBJECT, if_exists);
        for name in names {
            let Some((table, index)) = database.index(name) else {
                removal.missing(database, name)?;
                continue;
            };
            let (table, id) = (table.name.clone(), index.id);
            // An index that is still being built backs nothing yet: its constraint is undone so.
            if index.constraint && !index.building {
                let message = format!(
                    "cannot drop index {name} because constraint {name} on table {table} \
                     requires it"
                );
                let hint = format!("You can drop constraint {name} on table {table} instead.");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message).hint(hint));
            }
            if let Some((child, constraint)) = database.index_user(&table, index) {
                let message =
                    format!("cannot drop index {name} because other objects depend on it");
                let detail =
                    format!("constraint {constraint} on table {child} depends on index {name}");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                    .detail(detail)
                    .hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            end(database.table_mut(&table, version)?, id);
            removal.dropped.push(id);
        }
        Ok(removal.applied())
    }

    /// To open a table that has gone, perhaps before it was frozen, is nothing to do: what undoes
    /// a change cannot fail.
    pub(crate) fn freeze(
        &mut self,
        database: &str,
        table: &str,
        frozen: bool,
    ) -> Result<Applied, CatalogError> {
        if !frozen && self.database_mut(database)?.table(table).is_none() {
            return Ok(Applied::default());
        }
        let table = self.table_mut(database, table)?;
        table.frozen = frozen;
        Ok(Applied {
            table: Some(table.id),
            ..Applied::default()
        })
    }

    pub(crate) fn set_primary_key(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        let Command::SetPrimaryKey {
            database,
            table,
            constraint,
            primary,
            secondary,
            columns,
            partition,
            drops,
            replaces,
            cascade,
            looked_at,
        } = command
        else {
            unreachable!("the caller has seen which command it is")
        };
        let all = core::iter::once(primary).chain(secondary);
        let all: Vec<IndexId> = all.map(|index| index.id).collect();
        self.check_reserved(&all)?;
        let before = self.table_mut(database, table)?.clone();
        let rekeying = before.rekeying(*replaces, columns)?;
        let columns = before.rewritten(columns)?;
        let mut applied = before.leaving();
        before.check_same_indexes(secondary)?;
        let version = self.version;
        let owner = self.database_mut(database)?;
        match &rekeying {
            Rekeying::Add => {}
            // Foreign keys that need a column go with it.
            Rekeying::Drop if drops.is_some() => {}
            Rekeying::Drop | Rekeying::Replace => {
                owner.end_key_users(&before, *cascade, version, &mut applied)?;
            }
            Rekeying::Retype(at) => owner.check_rewritten(&before, at, &columns, looked_at)?,
        }
        let constraint = match (&rekeying, &before.primary_constraint) {
            (Rekeying::Retype(_), Some(own)) => own,
            _ => constraint,
        };
        if before.primary_constraint.as_ref() != Some(constraint) {
            owner.check_key_name(table, constraint)?;
        }
        let found = owner.table(table).ok_or_else(|| no_relation(table))?;
        let mut next = Table {
            primary: primary.clone(),
            secondary: secondary.to_vec(),
            primary_constraint: Some(constraint.clone()),
            columns,
            partition: partition.to_vec(),
            ..(**found).clone()
        };
        next.check_columns()?;
        match rekeying {
            Rekeying::Drop => next.number_rows(),
            Rekeying::Add | Rekeying::Replace | Rekeying::Retype(_) => {
                next.complete_primary(|name| {
                    owner.has_relation(&beside(table, name)) || before.has_constraint(name)
                })?;
                next.publish();
            }
        }
        owner.move_comments(&before, &next);
        owner.tables.insert(table.into(), Arc::new(next));
        self.reserved.retain(|id| !all.contains(id));
        if let Some(column) = drops {
            self.drop_column(database, table, column, (false, *cascade), &mut applied)?;
        }
        Ok(applied)
    }
}

impl Database {
    /// A foreign key that needs this unique index of `parent`: no other index of it fits.
    pub(crate) fn index_user(&self, parent: &str, index: &Index) -> Option<(String, String)> {
        let table = self.table(parent)?;
        table.referenced_by.iter().find_map(|(child, constraint)| {
            let keys = &self.table(child)?.foreign_keys;
            let key = keys.iter().find(|key| key.name == *constraint)?;
            let fits =
                |other: &Index| other.is_immediate() && other.covers_exactly(&key.parent_columns);
            let others = table.indexes().filter(|other| other.id != index.id);
            let needed = fits(index) && !others.into_iter().any(fits);
            needed.then(|| (child.clone(), constraint.clone()))
        })
    }
}

fn table_in_use(name: &str, child: &str, constraint: &str) -> SqlError {
    let message = format!("cannot drop table {name} because other objects depend on it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
        .detail(format!(
            "constraint {constraint} on table {child} depends on table {name}"
        ))
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
}
