//! Columns whose values follow from the other ones of their row: generated columns, and what
//! indexes are on if that is more than columns.
//!
//! An index on an expression is an index on a hidden column whose values the expression gives; one
//! with a condition has the rows in which a hidden column is true. So an entry follows from the row
//! as it is stored, and no shard computes anything to find it. ADR 0031.

use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::names;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Datum, IndexId, SqlError, SqlState};

impl Table {
    /// Positions of the columns that a generated one may read.
    pub fn columns_of_generated(&self, column: &Column) -> Vec<u16> {
        let Some(text) = &column.generated else {
            return Vec::new();
        };
        let readable = |at: &usize| !self.columns[*at].of_index;
        let places = (0..self.columns.len()).filter(readable);
        let found = names::columns_in(text, places.map(|at| &self.columns[at].name));
        let place = |name: &String| self.column(name).map(|(at, _)| at);
        found.iter().filter_map(place).collect()
    }

    /// Generated columns that a statement can name and that read this column.
    pub fn generated_from(&self, at: u16) -> Vec<u16> {
        let reads = |(_, column): &(usize, &Column)| {
            let is_own = !column.of_index && column.zone.is_none();
            is_own && self.columns_of_generated(column).contains(&at)
        };
        let found = self.columns.iter().enumerate().filter(reads);
        found.map(|(other, _)| other as u16).collect()
    }

    /// 2BP01 for a column that others are generated from.
    pub(crate) fn column_in_use(&self, name: &str, by: &[u16]) -> SqlError {
        let table = &self.name;
        let message = format!(
            "cannot drop column {name} of table {table} because other objects depend on it"
        );
        let one = |at: &u16| {
            let other = &self.column_at(*at).name;
            format!("column {other} of table {table} depends on column {name} of table {table}")
        };
        let detail = by.iter().map(one).collect::<Vec<_>>().join("\n");
        SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
            .detail(detail)
            .hint("Use DROP ... CASCADE to drop the dependent objects too.")
    }

    /// Whether an index has this column, in whatever way.
    pub fn index_reads(&self, index: &Index, at: u16) -> bool {
        let reads = |column: u16| {
            let described = self.column_at(column);
            column == at || described.of_index && self.columns_of_generated(described).contains(&at)
        };
        let keys = index.columns.iter().map(|key| key.column);
        let all = keys
            .chain(index.predicate)
            .chain(index.included.iter().copied());
        all.into_iter().any(reads)
    }

    /// The indexes that have the column `at`, which is dropped, are left as if they were being
    /// built. What they are on is not computed any more: entries follow from the rows as they are.
    pub(crate) fn end_indexes_on(&mut self, at: u16) {
        for number in 0..self.secondary.len() {
            if !self.index_reads(&self.secondary[number], at) {
                continue;
            }
            self.secondary[number].building = true;
            for column in self.computed_of(&self.secondary[number]) {
                self.columns[usize::from(column)].generated = None;
            }
        }
    }

    /// The hidden columns of an index.
    fn computed_of(&self, index: &Index) -> Vec<u16> {
        let keys = index.columns.iter().map(|key| key.column);
        let all = keys.chain(index.predicate);
        all.filter(|column| self.column_at(*column).of_index)
            .collect()
    }

    /// Removes a secondary index and its hidden columns.
    pub(crate) fn forget_index(&mut self, id: IndexId) {
        let Some(at) = self.secondary.iter().position(|index| index.id == id) else {
            return;
        };
        let index = self.secondary.remove(at);
        for column in self.computed_of(&index) {
            self.bury(column);
        }
    }

    /// Generated columns follow another name of a column or of the table.
    pub(crate) fn rename_in_generated(&mut self, from: &str, to: &str, table: bool) {
        for column in &mut self.columns {
            if let Some(text) = &mut column.generated {
                *text = names::renamed(text, from, to, table);
            }
        }
    }

    /// 0A000 if a generated column or an index computes something from the column.
    pub(crate) fn check_unread(&self, at: usize) -> Result<(), CatalogError> {
        let name = &self.columns[at].name;
        let at = at as u16;
        if self.columns[usize::from(at)].generated.is_some() {
            let message = "changing the type of a generated column is not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Drop the column, and add it with the other type."));
        }
        if let Some(other) = self.generated_from(at).first() {
            let message = "cannot alter type of a column used by a generated column";
            let other = &self.column_at(*other).name;
            let detail = format!("Column \"{name}\" is used by generated column \"{other}\".");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let reads = |index: &&Index| {
            let mut computed = self.computed_of(index).into_iter();
            computed.any(|own| self.columns_of_generated(self.column_at(own)).contains(&at))
        };
        match self.secondary.iter().find(reads) {
            None => Ok(()),
            Some(index) => {
                let message = format!(
                    "changing the type of a column that the expressions of index \"{}\" read is \
                     not supported",
                    index.name
                );
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .hint("Drop the index first, and create it again."))
            }
        }
    }

    pub(crate) fn refuse_generated(&self, at: usize, drops: bool) -> Result<(), CatalogError> {
        let Column {
            name, generated, ..
        } = &self.columns[at];
        if generated.is_none() {
            return Ok(());
        }
        let message = format!(
            "column \"{name}\" of relation \"{}\" is a generated column",
            self.name
        );
        let error = SqlError::new(SqlState::SYNTAX, message);
        Err(match drops {
            true => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
            false => error,
        })
    }

    pub(crate) fn drop_expression(
        &mut self,
        at: usize,
        if_exists: bool,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let table = &self.name;
        let column = &mut self.columns[at];
        if column.generated.take().is_some() {
            return Ok(());
        }
        let name = &column.name;
        let message =
            format!("column \"{name}\" of relation \"{table}\" is not a stored generated column");
        if !if_exists {
            return Err(SqlError::new(SqlState::OBJECT_NOT_READY, message));
        }
        applied.notices.push(message + ", skipping");
        Ok(())
    }

    /// What an index is on at a key column, without quotes around a name: the name, or the
    /// expression as PostgreSQL prints it in a key.
    pub fn key_text(&self, column: u16) -> String {
        let described = self.column_at(column);
        match &described.generated {
            Some(text) if described.of_index => names::as_key(text),
            _ => described.name.clone(),
        }
    }

    /// The name that an index gives its key column `column`.
    pub fn key_name(&self, column: u16) -> &str {
        let Column { name, of_index, .. } = self.column_at(column);
        match name.split_once('_') {
            Some((_, own)) if *of_index => own,
            _ => name,
        }
    }
}

impl Index {
    /// Whether a full row of the table has an entry.
    pub fn has_entry(&self, row: &[Datum]) -> bool {
        self.predicate
            .is_none_or(|at| row[usize::from(at)] == Datum::Bool(true))
    }

    /// Whether several entries may have the key of this row: then it ends with the primary key.
    pub fn is_open(&self, row: &[Datum]) -> bool {
        let null = || {
            self.columns
                .iter()
                .any(|key| row[usize::from(key.column)].is_null())
        };
        !self.unique || !self.nulls_equal && null()
    }
}

impl Column {
    /// The hidden column at `place` for what an index is on; `name` is what the index calls it.
    pub fn of_index(place: u16, name: &str, ty: base::Type, text: String) -> Column {
        Column {
            generated: Some(text),
            domain: None,
            of_index: true,
            hidden: true,
            ..Column::new(&format!("${place}_{name}"), ty)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::names::as_key;

    #[test]
    fn calls_have_no_parentheses_around_them() {
        for (text, expected) in [
            ("lower(a)", "lower(a)"),
            ("lower(')')", "lower(')')"),
            ("lower(a) || lower(b)", "(lower(a) || lower(b))"),
            ("a + 1", "(a + 1)"),
            ("coalesce(a, (b))", "coalesce(a, (b))"),
            ("'x'", "('x')"),
            ("a", "a"),
            ("NOT a", "(NOT a)"),
        ] {
            assert_eq!(as_key(text), expected);
        }
    }
}
