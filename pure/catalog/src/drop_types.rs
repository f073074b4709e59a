//! DROP of enum types and domains: what they have in common.

use crate::command::{Applied, CatalogError};
use crate::desc::*;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{SqlError, SqlState};

/// What depends on a type, as sentences name it.
pub(crate) struct Users {
    /// The type, as messages show it.
    pub(crate) shown: String,
    /// DROP TYPE or DROP DOMAIN.
    pub(crate) tag: &'static str,
    pub(crate) users: Vec<String>,
}

impl Users {
    /// # Errors
    /// 2BP01 if something depends on the type; with CASCADE 0A000.
    pub(crate) fn refuse(self, cascade: bool) -> Result<(), CatalogError> {
        let Users { shown, tag, users } = self;
        if users.is_empty() {
            return Ok(());
        }
        if cascade {
            let message = format!("{tag} ... CASCADE of {shown} is not supported");
            let detail = users.iter().map(|user| format!("{user} depends on it."));
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .detail(detail.collect::<Vec<_>>().join("\n"))
                .hint("CASCADE takes columns and views of them along: drop the rest first."));
        }
        let message = format!("cannot drop type {shown} because other objects depend on it");
        let lines = users.iter();
        let lines = lines.map(|user| format!("{user} depends on type {shown}"));
        Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
            .detail(lines.collect::<Vec<_>>().join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."))
    }
}

impl Database {
    /// The columns for which `is_of` holds, as (table, column), the oldest table first.
    pub(crate) fn columns_where(&self, is_of: &dyn Fn(&Column) -> bool) -> Vec<(String, String)> {
        let mut tables: Vec<_> = self.tables.values().collect();
        tables.sort_by_key(|table| table.id);
        let columns = tables.into_iter().flat_map(|table| {
            let columns = table.columns.iter();
            let own = columns.filter(|column| column.state != ColumnState::Dropped);
            let own = own.filter(|column| is_of(column));
            own.map(|column| (table.name.clone(), column.name.clone()))
        });
        columns.collect()
    }
}

impl Catalog {
    /// Removes columns whose types go, with what depends on them.
    ///
    /// # Errors
    /// 0A000 for columns that cannot be removed: of a primary key, or the last of a table.
    pub(crate) fn drop_columns_of_type(
        &mut self,
        database: &str,
        columns: &[(String, String)],
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let told = applied.notices.len();
        for (table, column) in columns {
            let notice = format!("drop cascades to column {column} of table {table}");
            applied.notices.push(notice);
            self.drop_column(database, table, column, (true, true), applied)?;
        }
        if applied.notices.len() > told + 1 {
            let along = applied.notices.len() - told;
            applied.notices.truncate(told);
            let notice = format!("drop cascades to {along} other objects");
            applied.notices.push(notice);
        }
        Ok(())
    }
}

/// A type that is not there: an error, or a notice.
///
/// # Errors
/// `missing`, unless IF EXISTS was said.
pub(crate) fn pass_over(
    missing: SqlError,
    if_exists: bool,
    applied: &mut Applied,
) -> Result<(), CatalogError> {
    if !if_exists {
        return Err(missing);
    }
    let text = format!("{}, skipping", missing.fields().message);
    applied.notices.push(text);
    Ok(())
}

/// What a DROP has done that removed so many types.
pub(crate) fn ended(mut applied: Applied, gone: usize) -> Applied {
    if gone == 0 {
        let notices = core::mem::take(&mut applied.notices);
        applied.skipped = Some(notices.join("\n"));
    }
    applied
}
