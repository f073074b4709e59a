//! Keys of tables and indexes: their checks, the hidden row number, and where entries live.

use crate::command::CatalogError;
use crate::desc::*;
use crate::lookup::ROWID_COLUMN;
use crate::names;
use alloc::format;
use alloc::vec::Vec;
use base::limits::{COLUMNS_MAX, INDEX_COLUMNS_MAX};
use base::{SqlError, SqlState, Type};

/// Names that PostgreSQL reserves in every table.
const SYSTEM_COLUMNS: [&str; 7] = [
    "tableoid",
    "cmax",
    "xmax",
    "cmin",
    "xmin",
    "ctid",
    ROWID_COLUMN,
];

/// 42701 for a name that PostgreSQL reserves in every table.
pub(crate) fn check_column_name(name: &str) -> Result<(), CatalogError> {
    if !SYSTEM_COLUMNS.contains(&name) {
        return Ok(());
    }
    let message = format!("column name \"{name}\" conflicts with a system column name");
    Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
}

impl Table {
    /// Checks names and number of the columns.
    pub(crate) fn check_columns(&self) -> Result<(), CatalogError> {
        // Dropped ones count, as in PostgreSQL: their places stay.
        let named = self.columns.iter();
        let named = named.filter(|column| column.name != ROWID_COLUMN);
        if named.count() > COLUMNS_MAX {
            let message = format!("tables can have at most {COLUMNS_MAX} columns");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        for (i, Column { name, .. }) in self.columns.iter().enumerate() {
            if self.columns[..i].iter().any(|before| before.name == *name) {
                let message = format!("column \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            if *name == ROWID_COLUMN && self.columns[i].hidden {
                continue;
            }
            check_column_name(name)?;
        }
        Ok(())
    }

    /// Completes the primary index: a hidden row number if there is no primary key, key columns not
    /// null, partition columns, the constraint's name.
    pub(crate) fn complete_primary(
        &mut self,
        taken: impl Fn(&str) -> bool,
    ) -> Result<(), CatalogError> {
        self.primary.unique = true;
        self.primary.building = false;
        if self.primary.columns.is_empty() {
            self.add_rowid()?;
        } else {
            self.check_key(&self.primary.columns, "primary key")?;
            let given = self.primary_constraint.take().unwrap_or_default();
            let given = if given.is_empty() {
                self.primary.name.clone()
            } else {
                given
            };
            let name = match given.as_str() {
                "" => names::choose(&self.name, &[], "pkey", taken),
                _ => given,
            };
            self.primary.name = name.clone();
            self.primary.constraint = true;
            self.primary_constraint = Some(name);
            for key in &self.primary.columns {
                self.columns[usize::from(key.column)].not_null = true;
            }
        }
        if self.partition.is_empty() {
            self.partition = Vec::from([self.primary.columns[0].column]);
        }
        for &column in &self.partition {
            self.check_position(column)?;
            if !self.primary.columns.iter().any(|key| key.column == column) {
                let message = "primary key must include all partition columns";
                let detail = format!(
                    "PRIMARY KEY constraint on table \"{}\" lacks column \"{}\" which is part of \
                     the partition key.",
                    self.name,
                    self.column_at(column).name
                );
                return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
                    .detail(detail)
                    .table(&self.name));
            }
        }
        self.primary.slot_columns = self.partition.clone();
        Ok(())
    }

    /// The rows are numbered; partition columns, if there are any, come before the number in the
    /// key, so that rows of one partition lie together.
    fn add_rowid(&mut self) -> Result<(), CatalogError> {
        self.partition
            .iter()
            .try_for_each(|&column| self.check_position(column))?;
        let rowid = self.columns.len() as u16;
        self.columns.push(Column::row_number());
        let columns = self.partition.iter().copied().chain([rowid]);
        self.primary.columns = columns
            .map(|column| IndexColumn {
                column,
                descending: false,
                nulls_first: false,
            })
            .collect();
        self.primary.name.clear();
        self.primary.constraint = false;
        self.primary_constraint = None;
        Ok(())
    }

    /// 42P16: it has a primary key.
    pub fn second_key(&self) -> SqlError {
        let message = format!(
            "multiple primary keys for table \"{}\" are not allowed",
            self.name
        );
        SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
    }

    /// Completes a secondary index: its name and where its entries live.
    pub(crate) fn complete_index(
        &self,
        index: &mut Index,
        taken: impl Fn(&str) -> bool,
    ) -> Result<(), CatalogError> {
        if index.of_key && self.key_index().is_some() {
            return Err(self.second_key());
        }
        if index.constraint {
            let kind = if index.of_key {
                "primary key"
            } else {
                "unique"
            };
            self.check_key(&index.columns, kind)?;
        }
        if index.columns.is_empty() || index.columns.len() > INDEX_COLUMNS_MAX {
            let message = format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        for key in &index.columns {
            self.check_position(key.column)?;
            self.check_key_type(key.column)?;
        }
        if index.name.is_empty() {
            let keys = index.columns.iter().map(|key| key.column);
            let all = keys.chain(index.included.iter().copied());
            let mut columns = self.column_names(all);
            let label = match (index.of_key, index.constraint) {
                (true, _) => "pkey",
                (false, true) => "key",
                (false, false) => "idx",
            };
            if index.of_key {
                columns.clear();
            }
            index.name = names::choose(&self.name, &columns, label, taken);
        }
        index.slot_columns = self.slot_columns(&index.columns);
        Ok(())
    }

    /// The columns that tell where the entries of an index with these keys live.
    pub fn slot_columns(&self, keys: &[IndexColumn]) -> Vec<u16> {
        let held = |column: &u16| keys.iter().any(|key| key.column == *column);
        match self.partition.iter().all(held) {
            true => self.partition.clone(),
            false => keys.iter().take(1).map(|key| key.column).collect(),
        }
    }

    /// Checks the columns of a key constraint: valid, of a type with an order, none twice.
    fn check_key(&self, columns: &[IndexColumn], kind: &str) -> Result<(), CatalogError> {
        if columns.len() > INDEX_COLUMNS_MAX {
            let message = format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index");
            return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
        }
        for (i, key) in columns.iter().enumerate() {
            self.check_position(key.column)?;
            self.check_key_type(key.column)?;
            if columns[..i]
                .iter()
                .any(|before| before.column == key.column)
            {
                let name = &self.column_at(key.column).name;
                let message = format!("column \"{name}\" appears twice in {kind} constraint");
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
        }
        Ok(())
    }

    fn check_key_type(&self, column: u16) -> Result<(), CatalogError> {
        let Column { name, ty, .. } = self.column_at(column);
        match ty.element().unwrap_or(*ty) {
            // Of these there are arrays, but no order of them.
            Type::Json | Type::JsonPath | Type::Xid | Type::Tid if ty.element().is_none() => Ok(()),
            Type::Json | Type::JsonPath | Type::Xid | Type::Tid | Type::Unknown => {
                let message = format!("column \"{name}\" has a type that cannot be a key");
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).column(name))
            }
            _ => Ok(()),
        }
    }

    /// Checks a column position of a command. The binder resolves names, against the same catalog
    /// or an older one.
    pub(crate) fn check_position(&self, column: u16) -> Result<(), CatalogError> {
        let found = self.columns.get(usize::from(column));
        if found.is_some_and(|column| column.state != ColumnState::Dropped) {
            return Ok(());
        }
        let message = format!(
            "column {} of relation \"{}\" does not exist",
            column + 1,
            self.name
        );
        Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message).table(&self.name))
    }
}
