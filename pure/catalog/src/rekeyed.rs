//! Rows that are written anew in another key space: for a primary key, without one, and for other
//! values of its columns. What is planned for a table is checked again when it takes place.

use crate::apply::already_exists;
use crate::command::{Applied, CatalogError};
use crate::constraints::check_reference;
use crate::desc::*;
use crate::lookup::ROWID_COLUMN;
use crate::retyped::replaced;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::beside;
use base::{IndexId, SqlError, SqlState, Type};

/// What becomes of the primary key of a table.
#[derive(Debug)]
pub(crate) enum Rekeying {
    /// It gets one.
    Add,
    /// It gets another one.
    Replace,
    /// It loses it: its rows are numbered.
    Drop,
    /// Columns at these places have other values, of another type.
    Retype(Vec<u16>),
}

impl Column {
    /// The hidden row number of a table without a primary key.
    pub fn row_number() -> Column {
        Column {
            not_null: true,
            hidden: true,
            ..Column::new(ROWID_COLUMN, Type::Int8)
        }
    }
}

pub(crate) fn changed_meanwhile(table: &str) -> CatalogError {
    let message = format!("table \"{table}\" was changed by another statement");
    SqlError::new(SqlState::SERIALIZATION, message)
}

impl Table {
    /// What rows of these columns, copied from key space `replaces`, are for
    /// (`Command::SetPrimaryKey`).
    ///
    /// # Errors
    /// 42P16 for a second primary key, 40001 if the rows lie elsewhere meanwhile.
    pub(crate) fn rekeying(
        &self,
        replaces: IndexId,
        columns: &[Column],
    ) -> Result<Rekeying, CatalogError> {
        let places = columns.iter().enumerate();
        let retyped = places.filter(|(_, column)| replaced(&column.name).is_some());
        let retyped: Vec<u16> = retyped.map(|(at, _)| at as u16).collect();
        let last = columns.last();
        let numbered = last.is_some_and(|column| column.hidden && column.name == ROWID_COLUMN);
        let is_key = !numbered && retyped.is_empty();
        match self.primary_constraint {
            _ if self.primary.id != replaces => match is_key && self.key_index().is_some() {
                true => Err(self.second_key()),
                false => Err(changed_meanwhile(&self.name)),
            },
            Some(_) if numbered => Ok(Rekeying::Drop),
            Some(_) if is_key => Ok(Rekeying::Replace),
            Some(_) => Ok(Rekeying::Retype(retyped)),
            None if self.key_index().is_some() => Err(self.second_key()),
            None => Ok(Rekeying::Add),
        }
    }

    /// The columns of rows that were written as `columns` say: those of the table, with what the
    /// change makes of them.
    ///
    /// # Errors
    /// 40001 if others have changed the table since this was planned.
    pub(crate) fn rewritten(&self, columns: &[Column]) -> Result<Vec<Column>, CatalogError> {
        let changed = || changed_meanwhile(&self.name);
        let rowid = self.rowid().map(usize::from);
        let mut all = Vec::with_capacity(columns.len());
        for (at, new) in columns.iter().enumerate() {
            let column = match self.columns.get(at) {
                Some(_) if Some(at) == rowid => new.clone(),
                Some(old) if replaced(&new.name) == Some(old.name.as_str()) => Column {
                    ty: new.ty,
                    collation: new.collation,
                    domain: None,
                    ..old.clone()
                },
                Some(old) if old.name == new.name && old.ty == new.ty => Column {
                    not_null: old.not_null || new.not_null,
                    ..old.clone()
                },
                None if new.name == ROWID_COLUMN && at + 1 == columns.len() => new.clone(),
                _ => return Err(changed()),
            };
            all.push(column);
        }
        let ends = rowid.is_some_and(|at| at + 1 == self.columns.len());
        match columns.len() + usize::from(ends) >= self.columns.len() {
            true => Ok(all),
            false => Err(changed()),
        }
    }

    /// All its rows lie elsewhere now.
    pub(crate) fn leaving(&self) -> Applied {
        Applied {
            dropped: self.indexes().map(|index| index.id).collect(),
            table: Some(self.id),
            ..Applied::default()
        }
    }

    /// Whether the indexes that were written again, because their entries hold the key of the row,
    /// are those that the table has.
    ///
    /// # Errors
    /// 55000.
    pub(crate) fn check_same_indexes(&self, written: &[Index]) -> Result<(), CatalogError> {
        let same = |(old, new): (&Index, &Index)| {
            let moved = Index {
                id: new.id,
                slot_columns: new.slot_columns.clone(),
                ..old.clone()
            };
            moved == *new && !old.building
        };
        let mut pairs = self.secondary.iter().zip(written);
        if self.secondary.len() == written.len() && pairs.all(same) {
            return Ok(());
        }
        let table = &self.name;
        let message = format!("the indexes of table \"{table}\" have changed meanwhile");
        Err(SqlError::new(SqlState::OBJECT_NOT_READY, message).table(table))
    }

    /// The rows lie by their numbers, perhaps behind the columns of the partition: there is no
    /// primary key.
    pub(crate) fn number_rows(&mut self) {
        self.primary_constraint = None;
        self.primary.name.clear();
        self.primary.constraint = false;
        self.primary.unique = true;
        self.primary.building = false;
        self.primary.slot_columns = self.partition.clone();
    }
}

impl Catalog {
    /// # Errors
    /// 55000 for a key space that no change has reserved.
    pub(crate) fn check_reserved(&self, spaces: &[IndexId]) -> Result<(), CatalogError> {
        match spaces.iter().find(|id| !self.reserved.contains(id)) {
            None => Ok(()),
            Some(id) => {
                let message = format!("key space {} is not reserved", id.0);
                Err(SqlError::new(SqlState::OBJECT_NOT_READY, message))
            }
        }
    }
}

impl Database {
    /// # Errors
    /// 42P07 for the name of a primary key, if it has one, that a relation beside the table has.
    pub(crate) fn check_key_name(&self, table: &str, name: &str) -> Result<(), CatalogError> {
        match !name.is_empty() && self.has_relation(&beside(table, name)) {
            true => already_exists(name, false).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Ends the foreign keys that need the primary key of a table, which goes.
    ///
    /// # Errors
    /// 2BP01 if there are any, without CASCADE.
    pub(crate) fn end_key_users(
        &mut self,
        table: &Table,
        cascade: bool,
        version: u64,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let mut users: Vec<(String, String)> = Vec::new();
        while let Some(user) = self.index_user_but(&table.name, &table.primary, &users) {
            users.push(user);
        }
        let constraint = &table.primary.name;
        let what = format!("constraint {constraint} on table {}", table.name);
        let by = format!("index {constraint}");
        self.end_keys(&users, &what, &by, cascade, version, applied)
    }

    /// Comments on indexes go to those that take their places.
    pub(crate) fn move_comments(&mut self, before: &Table, after: &Table) {
        let mut moved: Vec<(IndexId, IndexId)> = Vec::new();
        if after.primary_constraint.is_some() {
            moved.push((before.primary.id, after.primary.id));
        }
        let pairs = before.secondary.iter().zip(&after.secondary);
        moved.extend(pairs.map(|(old, new)| (old.id, new.id)));
        for (old, new) in moved {
            if let Some(text) = self.comments.remove(&Commented::Relation(old.0)) {
                self.comments.insert(Commented::Relation(new.0), text);
            }
        }
    }

    /// Whether all rows of a table can be written anew, as rows of `columns`, with other values at
    /// these places. `looked_at`: the foreign keys of these places as they were when rows were
    /// looked at for those that were valid, each with the table that has it.
    ///
    /// # Errors
    /// 0A000 for columns that something else reads, 42704 for a type that is gone, 42804 for a
    /// foreign key whose columns do not fit any more, 40001 for one that has come or changed
    /// meanwhile.
    pub(crate) fn check_rewritten(
        &self,
        table: &Table,
        places: &[u16],
        columns: &[Column],
        looked_at: &[(String, ForeignKey)],
    ) -> Result<(), CatalogError> {
        for at in places {
            self.check_type(columns[usize::from(*at)].ty)?;
            let column = table.column_at(*at);
            self.keep_type(&table.name, &column.name)?;
            table.check_unread(usize::from(*at))?;
        }
        let written = Table {
            columns: columns.to_vec(),
            ..table.clone()
        };
        for (child, key) in self.keys_to_look_at(table, places) {
            let parent = match key.parent == table.name {
                true => &written,
                false => self.table(&key.parent).map_or(table, |parent| parent),
            };
            let own = match child.name == table.name {
                true => &written,
                false => &*child,
            };
            for (&from, &to) in key.columns.iter().zip(&key.parent_columns) {
                check_reference(&key.name, own.column_at(from), parent.column_at(to))?;
            }
            let is_known = |(of, known): &(String, ForeignKey)| *of == child.name && *known == key;
            let is_frozen = [own, parent].iter().all(|side| side.frozen);
            if !is_frozen || !looked_at.iter().any(is_known) {
                return Err(changed_meanwhile(&table.name));
            }
        }
        Ok(())
    }

    /// The foreign keys, on either side of a table, that name one of the columns at these places,
    /// each with the table that has it.
    pub fn keys_to_look_at(&self, table: &Table, places: &[u16]) -> Vec<(Arc<Table>, ForeignKey)> {
        let mut found = self.keys_around(table);
        found.retain(|(child, key)| {
            let own = child.name == table.name && key.columns.iter().any(|c| places.contains(c));
            let other = key.parent == table.name;
            own || other && key.parent_columns.iter().any(|c| places.contains(c))
        });
        found
    }
}
