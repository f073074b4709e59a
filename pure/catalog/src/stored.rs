//! Materialized views: tables that hold the rows of a query, and remember the query.
//!
//! Everything that only reads works as on a table: indexes, privileges, statistics. Nothing but
//! REFRESH changes the rows, and nothing the columns.

use crate::apply::{Removal, no_relation};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::views::View;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{IndexId, SqlError, SqlState, TableId};
use rights::ObjectKind;
use serde::{Deserialize, Serialize};

/// The query of a materialized view.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredView {
    /// Its query and columns; name and number are those of the table.
    pub view: Arc<View>,
    /// Its rows are those of the query, as of the last REFRESH. Until then nobody may read it.
    pub filled: bool,
}

impl Database {
    /// The materialized view of that name.
    pub fn stored_view(&self, name: &str) -> Option<&StoredView> {
        self.stored.get(name)
    }

    /// The materialized view whose table has this number.
    pub fn stored_by_id(&self, id: TableId) -> Option<&StoredView> {
        let mut stored = self.stored.values();
        stored.find(|stored| stored.view.id == id)
    }

    /// What a view is, for people.
    pub(crate) fn view_noun(&self, name: &str) -> &'static str {
        match self.stored.contains_key(name) {
            true => "materialized view",
            false => "view",
        }
    }

    /// What a relation is, for people.
    pub(crate) fn noun_of(&self, name: &str, kind: ObjectKind) -> &'static str {
        match self.stored.contains_key(name) {
            true => self.view_noun(name),
            false => kind.noun(),
        }
    }

    /// Removes a view of either kind. Returns the key spaces whose rows may go.
    pub(crate) fn remove_view(&mut self, name: &str) -> Vec<IndexId> {
        self.views.remove(name);
        if self.stored.remove(name).is_none() {
            return Vec::new();
        }
        let table = self.tables.remove(name);
        let indexes = table.iter().flat_map(|table| table.indexes());
        indexes.map(|index| index.id).collect()
    }

    /// # Errors
    /// 42809: it is a materialized view, whose columns only its query decides.
    pub(crate) fn check_not_stored(&self, name: &str) -> Result<(), CatalogError> {
        if !self.stored.contains_key(name) {
            return Ok(());
        }
        let message = format!("ALTER action cannot be performed on relation \"{name}\"");
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .detail("This operation is not supported for materialized views."))
    }

    /// The table of a materialized view has another name.
    pub(crate) fn rename_stored(&mut self, from: &str, to: &str) {
        if let Some(mut stored) = self.stored.remove(from) {
            Arc::make_mut(&mut stored.view).name = to.into();
            self.stored.insert(to.into(), stored);
        }
    }
}

impl Catalog {
    pub(crate) fn create_stored(
        &mut self,
        database: &str,
        (table, view): (&Table, &View),
        if_not_exists: bool,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        for used in &view.uses {
            owner.check_use(used)?;
        }
        let applied = self.create_table(database, table, &[], if_not_exists)?;
        if let Some(id) = applied.table {
            let mut view = view.clone();
            (view.id, view.name) = (id, table.name.clone());
            let stored = StoredView {
                view: Arc::new(view),
                filled: false,
            };
            let owner = self.database_mut(database)?;
            owner.stored.insert(table.name.clone(), stored);
        }
        Ok(applied)
    }

    pub(crate) fn drop_stored(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let database = self.database_mut(database)?;
        let mut removal = Removal::new("materialized view", SqlState::UNDEFINED_TABLE, if_exists);
        for name in names {
            if !database.stored.contains_key(name) {
                removal.missing(database, name)?;
                continue;
            }
            let what = ("materialized view", name.as_str());
            let gone = database.drop_views_with(what, None, names, cascade)?;
            removal.tell(gone);
        }
        for name in names {
            removal.dropped.extend(database.remove_view(name));
        }
        Ok(removal.applied())
    }

    pub(crate) fn set_filled(
        &mut self,
        database: &str,
        name: &str,
        filled: bool,
    ) -> Result<Applied, CatalogError> {
        let owner = self.database_mut(database)?;
        let stored = owner.stored.get_mut(name);
        stored.ok_or_else(|| no_relation(name))?.filled = filled;
        Ok(Applied::default())
    }

    /// # Errors
    /// 42809 for DROP TABLE of a materialized view.
    pub(crate) fn not_a_table(name: &str) -> CatalogError {
        let message = format!("\"{name}\" is not a table");
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .hint("Use DROP MATERIALIZED VIEW to remove a materialized view.")
    }
}
