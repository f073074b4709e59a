//! Columns that get another type, whose values are computed anew.
//!
//! A hidden column is made for the new values, with a copy of every index and check that reads the
//! old column. Writers compute its values and a fill does for the rows that are there, as for a
//! generated column. [`TableAction::Publish`] puts all of it in place in one version:
//!
//! ```text
//! before      a, c, d, [c']          indexes: i(c), [i'(c')]      checks: k(c), [k'(c')]
//! after       a, [dropped], d, c'    indexes: [i(c)], i'(c')      checks: k'(c')
//! seen as     a, c', d
//! ```
//!
//! A foreign key of the column has a copy as well, on either side of it. Where the column is
//! referred to, the copy comes when the new index is complete, and belongs to the other table. It
//! changes no rows, whatever the old one does: as long as both are there, rows must meet both.
//!
//! What is hidden has the name of what it replaces behind [`MARK`]. The old index keeps its entries
//! until no statement reads it any more, under the name that its copy had.
//!
//! [`TableAction::Publish`]: crate::TableAction::Publish

use crate::command::CatalogError;
use crate::desc::*;
use crate::names;
use crate::rekeyed::changed_meanwhile;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{SqlError, SqlState};
use rights::Target;

/// Begins the names of what takes the place of something.
const MARK: &str = "........pg.retyped.";

/// The name of what will take the place of the column, index or check of this name.
pub fn retyped(name: &str) -> String {
    format!("{MARK}{name}")
}

/// The text with the names of what is replaced instead of those of [`retyped`].
pub fn without_mark(text: &str) -> String {
    text.replace(MARK, "")
}

/// The name of what will be replaced by what has this name, if anything.
pub fn replaced(name: &str) -> Option<&str> {
    name.strip_prefix(MARK)
}

/// A text that the catalog keeps, with another name for a column.
pub fn renamed_column(text: &str, from: &str, to: &str) -> String {
    names::renamed(text, from, to, false)
}

/// What will take the place of a foreign key, with other columns.
pub fn retyped_key(key: &ForeignKey, columns: Vec<u16>, parent_columns: Vec<u16>) -> ForeignKey {
    ForeignKey {
        name: retyped(&key.name),
        columns,
        parent_columns,
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        validity: match key.validity {
            Validity::Valid => Validity::Adding,
            _ => Validity::NotValid,
        },
        ..key.clone()
    }
}

/// Whether an index has been replaced, and goes as soon as no statement reads it.
pub(crate) fn is_retired(index: &Index) -> bool {
    index.building && is_copy(&index.name)
}

impl Table {
    /// Where statements see the column at `place` among the others.
    pub fn shown_at(&self, place: usize) -> u16 {
        let own = place as u16;
        self.columns[place].shown_at.unwrap_or(own)
    }

    /// Whether statements see a column elsewhere than at its place.
    pub fn is_reordered(&self) -> bool {
        self.columns.iter().any(|column| column.shown_at.is_some())
    }

    /// Places of the columns that statements see, in the order in which they do.
    pub fn shown(&self) -> Vec<u16> {
        let places = 0..self.columns.len();
        let mut shown: Vec<usize> = places.filter(|at| !self.columns[*at].hidden).collect();
        shown.sort_by_key(|at| self.shown_at(*at));
        shown.into_iter().map(|at| at as u16).collect()
    }

    /// The place of the column that statements see at `shown_at`.
    pub fn place_of(&self, shown_at: u16) -> Option<usize> {
        let mut places = 0..self.columns.len();
        places.find(|at| !self.columns[*at].hidden && self.shown_at(*at) == shown_at)
    }

    /// 0A000 if another column cannot take the place of this one.
    fn check_replaceable(&self, at: usize) -> Result<(), CatalogError> {
        self.check_unread(at)?;
        let (name, at) = (&self.columns[at].name, at as u16);
        let refused = |what: &str, hint: &str| {
            let message =
                format!("changing the values of column \"{name}\" {what} is not supported");
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            Err(SqlError::new(state, message).hint(hint))
        };
        if self.primary.columns.iter().any(|key| key.column == at) {
            return refused(
                "of the primary key or of the partition",
                "Rows lie where these columns say: change it with a statement of its own.",
            );
        }
        let mixed = |index: &&Index| {
            let mut keys = index.columns.iter();
            let computed = keys.any(|key| self.column_at(key.column).of_index);
            self.index_reads(index, at) && (computed || index.predicate.is_some())
        };
        match self.secondary.iter().any(|index| mixed(&index)) {
            true => refused(
                "in an index with a condition or an expression",
                "Drop the index, and create it again behind.",
            ),
            false => Ok(()),
        }
    }

    /// The hidden columns that take the places of others now, each with the one that goes.
    fn replacements(&self) -> Vec<(usize, usize)> {
        let is_new = |column: &Column| column.state == ColumnState::Filling;
        let places = 0..self.columns.len();
        let new = places.filter(|at| is_new(&self.columns[*at]));
        let pairs = new.filter_map(|at| {
            let shown_at = self.columns[at].shown_at?;
            Some((at, self.place_of(shown_at)?))
        });
        pairs.collect()
    }

    fn replace_column(&mut self, new: usize, old: usize) {
        let Column {
            name,
            default,
            identity,
            ..
        } = self.columns[old].clone();
        let hidden = core::mem::replace(&mut self.columns[new].name, name.clone());
        self.bury(old as u16);
        for check in &mut self.checks {
            check.expression = names::renamed(&check.expression, &hidden, &name, false);
        }
        self.columns[new] = Column {
            default,
            identity,
            generated: None,
            zone: None,
            ..self.columns[new].clone()
        };
    }

    /// Copies of checks take the places of these.
    fn replace_checks(&mut self) {
        while let Some(from) = self.checks.iter().position(|check| is_copy(&check.name)) {
            let mut copy = self.checks.remove(from);
            copy.name = without_mark(&copy.name);
            match self.checks.iter_mut().find(|old| old.name == copy.name) {
                Some(old) => {
                    copy.validity = old.validity;
                    *old = copy;
                }
                None => self.checks.push(copy),
            }
        }
    }

    /// Copies of indexes take the places of these. Gives the numbers of both.
    fn replace_indexes(&mut self) -> Vec<(u32, u32)> {
        let mut replaced = Vec::new();
        for from in 0..self.secondary.len() {
            let copy = &self.secondary[from];
            if !is_copy(&copy.name) {
                continue;
            }
            let name = without_mark(&copy.name);
            let Some(to) = self.secondary.iter().position(|old| old.name == name) else {
                continue;
            };
            let hidden = core::mem::replace(&mut self.secondary[from].name, name);
            let old = &mut self.secondary[to];
            old.name = hidden;
            old.building = true;
            replaced.push((old.id.0, self.secondary[from].id.0));
            self.secondary.swap(from, to);
        }
        replaced
    }
}

/// Whether an index or constraint of this name will take the place of another one, or has lost it.
pub fn is_copy(name: &str) -> bool {
    name.starts_with(MARK)
}

impl Database {
    /// The foreign keys of a table on either side, each with the table that has it: (child, name).
    pub fn keys_around(&self, table: &Table) -> Vec<(Arc<Table>, ForeignKey)> {
        let own = table
            .foreign_keys
            .iter()
            .map(|key| (&table.name, &key.name));
        let others = table.referenced_by.iter().map(|(child, key)| (child, key));
        let others = others.filter(|(child, _)| **child != table.name);
        let found = own.chain(others).filter_map(|(child, name)| {
            let child = self.table(child)?;
            let mut keys = child.foreign_keys.iter();
            let key = keys.find(|key| key.name == *name)?;
            Some((child.clone(), key.clone()))
        });
        found.collect()
    }

    /// Copies of foreign keys take the places of these, as columns took the places of others.
    ///
    /// # Errors
    /// 40001 if an old key is not the one that was copied: it was changed, or looked at, behind the
    /// plan of the statement.
    fn replace_keys(
        &mut self,
        table: &str,
        pairs: &[(usize, usize)],
        version: u64,
    ) -> Result<(), CatalogError> {
        let Some(found) = self.table(table).cloned() else {
            return Ok(());
        };
        for (child, copy) in self.keys_around(&found) {
            if !is_copy(&copy.name) {
                continue;
            }
            self.forget_key(&child.name, &copy.name, version)?;
            let name = without_mark(&copy.name);
            let child = self.table_mut(&child.name, version)?;
            let mut keys = child.foreign_keys.iter_mut();
            if let Some(old) = keys.find(|key| key.name == name) {
                let before = |columns: &[u16], side: &str| -> Vec<u16> {
                    let before = |at: &u16| {
                        let pair = pairs.iter().find(|(new, _)| *new == usize::from(*at));
                        pair.filter(|_| side == table)
                            .map_or(*at, |(_, old)| *old as u16)
                    };
                    columns.iter().map(before).collect()
                };
                let was_looked_at = copy.validity != Validity::NotValid;
                if old.columns != before(&copy.columns, &child.name)
                    || old.parent_columns != before(&copy.parent_columns, &copy.parent)
                    || old.parent != copy.parent
                    || (old.validity == Validity::Valid && !was_looked_at)
                {
                    return Err(changed_meanwhile(table));
                }
                old.columns = copy.columns;
                old.parent_columns = copy.parent_columns;
            }
        }
        Ok(())
    }

    /// 40001 if a foreign key of the table, on either side, names a column that has been replaced:
    /// it came behind the plan of the statement.
    pub(crate) fn check_keys_left(&self, table: &str) -> Result<(), CatalogError> {
        let Some(found) = self.table(table) else {
            return Ok(());
        };
        let is_gone = |table: &Table, columns: &[u16]| {
            let mut states = columns.iter().map(|at| table.column_at(*at).state);
            states.any(|state| state == ColumnState::Dropped)
        };
        for (child, key) in self.keys_around(found) {
            let parent = self.table(&key.parent);
            if is_gone(&child, &key.columns)
                || parent.is_some_and(|parent| is_gone(parent, &key.parent_columns))
            {
                return Err(changed_meanwhile(table));
            }
        }
        Ok(())
    }
}

impl Catalog {
    /// Refuses a column that is to take the place of another one.
    ///
    /// # Errors
    /// 40001 if there is none at that place, 0A000 for one that cannot be replaced.
    pub(crate) fn check_replaced(
        &mut self,
        database: &str,
        table: &str,
        shown_at: u16,
    ) -> Result<(), CatalogError> {
        let owner = self.database_mut(database)?;
        let found = owner.table(table).cloned();
        let old = found.as_ref().and_then(|found| found.place_of(shown_at));
        let (Some(found), Some(old)) = (found, old) else {
            return Err(changed_meanwhile(table));
        };
        let column = &found.columns[old];
        owner.keep_type(table, &column.name)?;
        found.check_replaceable(old)
    }

    /// Hidden columns take the places of those for which they were made, with their indexes and
    /// constraints. Comments and privileges stay.
    pub(crate) fn put_in_place(&mut self, database: &str, table: &str) -> Result<(), CatalogError> {
        let found = self.table_mut(database, table)?;
        let pairs = found.replacements();
        if pairs.is_empty() {
            return Ok(());
        }
        let id = found.id;
        let indexes = found.replace_indexes();
        pairs
            .iter()
            .for_each(|(new, old)| found.replace_column(*new, *old));
        found.replace_checks();
        let version = self.version;
        self.database_mut(database)?
            .replace_keys(table, &pairs, version)?;
        let comments = &mut self.database_mut(database)?.comments;
        let columns = pairs.iter().map(|(new, old)| {
            let at = |place: &usize| Commented::Column(id, *place as u16);
            (at(old), at(new))
        });
        let relations = indexes.iter().map(|(old, new)| {
            let at = |number: &u32| Commented::Relation(*number);
            (at(old), at(new))
        });
        for (old, new) in columns.chain(relations) {
            if let Some(text) = comments.remove(&old) {
                comments.insert(new, text);
            }
        }
        let target = Target::Relation(id.0);
        let object = self.rights.objects.get(&target);
        if object.is_some_and(|object| !object.columns.is_empty()) {
            let object = self.rights_mut().object_mut(&target);
            for (new, old) in &pairs {
                if let Some(acl) = object.columns.remove(&(*old as u16)) {
                    object.columns.insert(*new as u16, acl);
                }
            }
        }
        Ok(())
    }
}
