//! Finding things in a catalog.

use crate::desc::*;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::{schema_of, split};
use base::{IndexId, Type};

/// Name of the hidden column that numbers the rows of a table without a primary key. No SQL
/// identifier of a user ends up there by accident: it needs quotes.
pub const ROWID_COLUMN: &str = "$rowid";

impl Catalog {
    /// The database `name`.
    pub fn database(&self, name: &str) -> Option<&Arc<Database>> {
        self.databases.get(name)
    }

    /// Every table with its database.
    pub fn tables(&self) -> impl Iterator<Item = (&Arc<Database>, &Arc<Table>)> {
        let databases = self.databases.values();
        databases.flat_map(|database| database.tables.values().map(move |table| (database, table)))
    }
}

impl Database {
    /// The table `name`.
    pub fn table(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The sequence `name`.
    pub fn sequence(&self, name: &str) -> Option<&Sequence> {
        self.sequences.get(name)
    }

    /// The index `name`, of a primary key too, and its table.
    pub fn index(&self, name: &str) -> Option<(&Arc<Table>, &Index)> {
        let (schema, own) = split(name);
        let mut tables = self.tables.values();
        tables.find_map(|table| {
            let index = table.index(own)?;
            (schema_of(&table.name) == schema).then_some((table, index))
        })
    }

    /// Whether a table, index, sequence or view has this name: they share one name space.
    pub fn has_relation(&self, name: &str) -> bool {
        self.tables.contains_key(name)
            || self.sequences.contains_key(name)
            || self.views.contains_key(name)
            || self.index(name).is_some()
    }

    /// All key spaces: of indexes and of sequences, and those kept for open blocks.
    pub fn key_spaces(&self) -> Vec<IndexId> {
        let indexes = self
            .tables
            .values()
            .flat_map(|table| table.indexes().map(|index| index.id));
        let kept = self.blocks.iter().flat_map(|block| block.kept());
        indexes
            .chain(self.sequences.values().map(|sequence| sequence.id))
            .chain(kept.map(|(id, _)| id))
            .collect()
    }
}

impl Table {
    /// Position and description of the column `name`; hidden ones are found too.
    pub fn column(&self, name: &str) -> Option<(u16, &Column)> {
        let i = self.columns.iter().position(|column| column.name == name)?;
        Some((i as u16, &self.columns[i]))
    }

    /// The column at a position of this table, which must be valid.
    pub fn column_at(&self, position: u16) -> &Column {
        &self.columns[usize::from(position)]
    }

    /// The types of all columns, in order.
    pub fn types(&self) -> Vec<Type> {
        self.columns.iter().map(|column| column.ty).collect()
    }

    /// Position of the hidden row number, if the table has no primary key.
    pub fn rowid(&self) -> Option<u16> {
        if self.primary_constraint.is_some() {
            return None;
        }
        let last = self.primary.columns.last()?.column;
        let column = self.columns.get(usize::from(last))?;
        (column.hidden && column.name == ROWID_COLUMN).then_some(last)
    }

    /// The index of the primary key: the rows themselves, or an index on numbered rows.
    pub fn key_index(&self) -> Option<&Index> {
        match self.primary_constraint {
            Some(_) => Some(&self.primary),
            None => self.secondary.iter().find(|index| index.of_key),
        }
    }

    /// Whether it has a unique constraint or primary key that can be deferred.
    pub fn has_deferrable(&self) -> bool {
        self.secondary.iter().any(Index::is_deferrable)
    }

    /// The primary index, then the secondary ones.
    pub fn indexes(&self) -> impl Iterator<Item = &Index> {
        core::iter::once(&self.primary).chain(&self.secondary)
    }

    /// The primary or secondary index with number `id`.
    pub fn index_by_id(&self, id: IndexId) -> Option<&Index> {
        self.indexes().find(|index| index.id == id)
    }

    /// The primary or secondary index `name`; the index of a hidden row number has no name.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes()
            .find(|index| index.name == name && !name.is_empty())
    }

    /// Whether it has a foreign key, or is referred to by one.
    pub fn has_keys(&self) -> bool {
        !(self.foreign_keys.is_empty() && self.referenced_by.is_empty())
    }

    /// Whether a constraint of this table has this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        self.primary_constraint.as_deref() == Some(name)
            || self
                .secondary
                .iter()
                .any(|index| index.constraint && index.name == name)
            || self.checks.iter().any(|check| check.name == name)
            || self.foreign_keys.iter().any(|key| key.name == name)
    }

    /// Names of the columns at `positions`.
    pub fn column_names(&self, positions: impl IntoIterator<Item = u16>) -> Vec<String> {
        positions
            .into_iter()
            .map(|i| self.column_at(i).name.clone())
            .collect()
    }
}

impl Index {
    /// Whether two rows may have one key for a while: until the end of a statement or of its
    /// transaction.
    pub fn is_deferrable(&self) -> bool {
        self.deferral != Deferral::Never
    }

    /// Whether no statement ever sees two rows with equal, non-NULL keys.
    pub fn is_immediate(&self) -> bool {
        self.unique && !self.is_deferrable()
    }

    /// The columns of a stored key in order: the key columns and then, for a secondary index, the
    /// primary key columns that are not among them.
    ///
    /// A stored key has all of them if the index is not unique or NULL makes it so
    /// ([`Index::is_open`]), and only the first [`Index::columns`] otherwise.
    pub fn stored_columns(&self, table: &Table) -> Vec<IndexColumn> {
        let mut stored = self.columns.clone();
        if self.id != table.primary.id {
            let held = |column: u16| self.columns.iter().any(|own| own.column == column);
            stored.extend(table.primary.columns.iter().filter(|key| !held(key.column)));
        }
        stored
    }

    /// Whether all rows have entries, and the key columns are exactly `columns`, in any order.
    pub fn covers_exactly(&self, columns: &[u16]) -> bool {
        self.predicate.is_none()
            && self.columns.len() == columns.len()
            && columns
                .iter()
                .all(|column| self.columns.iter().any(|own| own.column == *column))
    }
}
