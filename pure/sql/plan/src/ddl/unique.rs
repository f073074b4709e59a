//! Unique constraints as written.

use super::index;
use super::table::key_columns;
use base::SqlError;
use catalog::{Column, Deferral, Index, Table};

/// A primary key as written; the name may be empty.
pub(super) struct Key {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    pub(super) deferral: Deferral,
}

impl Key {
    /// The key that a column's option says.
    pub(super) fn of_column(name: String, column: &Column, deferral: Deferral) -> Key {
        Key {
            name,
            columns: vec![column.name.clone()],
            deferral,
        }
    }

    /// A constraint that is no primary key.
    pub(super) fn unique(self) -> Unique {
        Unique::new(self.name, self.columns, self.deferral)
    }

    /// The constraint on numbered rows that stands for a key that can be deferred.
    pub(super) fn over_numbers(self) -> Unique {
        Unique {
            of_key: true,
            ..self.unique()
        }
    }
}

/// A unique constraint as written; the name may be empty.
pub(super) struct Unique {
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// NULLS NOT DISTINCT.
    pub(super) nulls_equal: bool,
    pub(super) deferral: Deferral,
    /// It is a primary key that can be deferred.
    pub(super) of_key: bool,
}

impl Unique {
    pub(super) fn new(name: String, columns: Vec<String>, deferral: Deferral) -> Unique {
        Unique {
            name,
            columns,
            nulls_equal: false,
            deferral,
            of_key: false,
        }
    }

    /// Its index, called `name`.
    pub(super) fn index(&self, table: &Table, name: String) -> Result<Index, SqlError> {
        Ok(Index {
            nulls_equal: self.nulls_equal,
            deferral: self.deferral,
            of_key: self.of_key,
            ..index(name, key_columns(table, &self.columns)?, true, true)
        })
    }
}
