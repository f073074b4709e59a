//! ALTER TABLE: changes of a table that keep its rows.
//!
//! A command has a list of actions that are applied together. Where rows must be looked through or
//! filled first, a first command brings what writers must know ([`ColumnState`], constraints that
//! are [`Validity::Adding`], indexes that are building), and a second one has
//! [`TableAction::Publish`], or [`TableAction::Undo`] if the work failed.

use crate::apply::{already_exists, no_relation};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::keys::check_column_name;
use crate::retyped::{is_copy, is_retired};
use crate::sequences::SequenceChange;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::full_name::{beside, is_temporary_name};
use base::{IndexId, SqlError, SqlState, TableId, Type};
use serde::{Deserialize, Serialize};

/// One change of a table. Columns and constraints are named as they are after the actions before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "fields are named like what they describe")]
pub enum TableAction {
    /// A new last column at position `place`: actions that refer to it know where it is. Refused
    /// (40001) if another change was first.
    AddColumn {
        column: Column,
        place: u16,
        if_not_exists: bool,
    },
    /// A sequence that a column of the table owns.
    AddSequence(Sequence),
    /// Hides a column for good. Constraints, indexes and sequences go with it. Its indexes are
    /// left as if they were being built, to be dropped when no statement reads them any more.
    DropColumn {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    /// Sets the default of a column, or removes it.
    SetDefault {
        column: String,
        default: Option<String>,
    },
    /// NULL is refused from here on; whether the rows that are there have none is not known.
    CheckNotNull {
        column: String,
    },
    /// NULL is allowed.
    DropNotNull {
        column: String,
    },
    /// Another type whose values are stored and ordered in the same way, and the number of its
    /// collation (0: that of the type).
    SetType {
        column: String,
        ty: Type,
        collation: u32,
    },
    /// The column is a plain one from here on.
    DropExpression {
        column: String,
        if_exists: bool,
    },
    /// The sequence that the column owns numbers its rows from here on.
    SetIdentity {
        column: String,
        identity: Identity,
    },
    /// Who numbers rows of an identity column, and how.
    AlterIdentity {
        column: String,
        identity: Option<Identity>,
        change: Option<SequenceChange>,
    },
    /// The column is a plain one from here on, and its sequence goes.
    DropIdentity {
        column: String,
        if_exists: bool,
    },
    RenameColumn {
        from: String,
        to: String,
    },
    /// In its schema.
    RenameTable {
        to: String,
    },
    RenameConstraint {
        from: String,
        to: String,
    },
    AddForeignKey(ForeignKey),
    AddCheck(Check),
    /// An index that is being built.
    AddIndex(Index),
    /// As in [`TableAction::DropColumn`], the index of a constraint stays for the time being.
    DropConstraint {
        name: String,
        if_exists: bool,
        cascade: bool,
    },
    /// What the actions of an earlier command began is done: rows are filled and looked through.
    Publish,
    /// What the actions of an earlier command began is given up.
    Undo,
}

impl TableAction {
    /// The foreign key that it adds.
    pub(crate) fn foreign_key(&self) -> Option<&ForeignKey> {
        match self {
            TableAction::AddForeignKey(key) => Some(key),
            _ => None,
        }
    }
}

impl Column {
    /// What is left of a column at this position when it is dropped, named as in PostgreSQL.
    pub fn dropped(at: u16, ty: Type) -> Column {
        Column {
            hidden: true,
            state: ColumnState::Dropped,
            ..Column::new(&format!("........pg.dropped.{}........", at + 1), ty)
        }
    }

    /// Whether a schema change is under way with it.
    pub fn is_unfinished(&self) -> bool {
        match self.state {
            ColumnState::Ready | ColumnState::Dropped => false,
            ColumnState::Filling | ColumnState::Checking => true,
        }
    }
}

impl Catalog {
    pub(crate) fn alter_table(
        &mut self,
        database: &str,
        table: &str,
        actions: &[TableAction],
    ) -> Result<Applied, CatalogError> {
        // Its name, and what belongs to an index.
        let may_stored = |action: &TableAction| match action {
            TableAction::RenameTable { .. } | TableAction::Publish | TableAction::Undo => true,
            TableAction::AddIndex(index) => !index.constraint,
            TableAction::AddColumn {
                column,
                place: _,
                if_not_exists: _,
            } => column.of_index,
            _ => false,
        };
        if !actions.iter().all(may_stored) {
            self.database_mut(database)?.check_not_stored(table)?;
        }
        let mut applied = Applied {
            table: Some(self.altered(database, table, actions)?),
            ..Applied::default()
        };
        let mut name = table.to_string();
        for action in actions {
            self.alter(database, &name, action, &mut applied)?;
            if let TableAction::RenameTable { to } = action {
                name = beside(&name, to);
            }
        }
        if actions.contains(&TableAction::Publish) {
            self.database_mut(database)?.check_keys_left(&name)?;
        }
        Ok(applied)
    }

    /// The table, noted as changed. One that goes with its session may get another name in the
    /// middle of a block that has written to it.
    fn altered(
        &mut self,
        database: &str,
        table: &str,
        actions: &[TableAction],
    ) -> Result<TableId, CatalogError> {
        let renames = |action: &TableAction| matches!(action, TableAction::RenameTable { .. });
        if is_temporary_name(table)
            && actions.iter().all(renames)
            && let Some(found) = self.database_mut(database)?.table(table)
        {
            return Ok(found.id);
        }
        Ok(self.table_mut(database, table)?.id)
    }

    fn alter(
        &mut self,
        database: &str,
        table: &str,
        action: &TableAction,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        match action {
            TableAction::AddColumn {
                column,
                place,
                if_not_exists,
            } => self.add_column((database, table), (column, *place, *if_not_exists), applied),
            TableAction::AddSequence(sequence) => {
                let id = IndexId(self.next_number());
                let owner = self.database_mut(database)?;
                if owner.has_relation(&sequence.name) {
                    return already_exists(&sequence.name, false).map(|_| ());
                }
                let sequence = sequence.clone();
                owner.add_sequence(Sequence { id, ..sequence })
            }
            TableAction::DropColumn {
                name,
                if_exists,
                cascade,
            } => self.drop_column(database, table, name, (*if_exists, *cascade), applied),
            TableAction::AlterIdentity { .. } | TableAction::DropIdentity { .. } => {
                self.change_identity((database, table), action, applied)
            }
            TableAction::AddForeignKey(key) => {
                self.add_foreign_key(database, table, key).map(|_| ())
            }
            TableAction::AddCheck(check) => self.add_check(database, table, check).map(|_| ()),
            TableAction::AddIndex(index) => {
                self.create_index(database, table, index, false).map(|_| ())
            }
            TableAction::DropConstraint {
                name,
                if_exists,
                cascade,
            } => self.end_constraint(database, table, name, (*if_exists, *cascade), applied),
            TableAction::RenameColumn { from, to } => self.rename_column(database, table, from, to),
            TableAction::RenameTable { to } => {
                self.rename_table(database, table, &beside(table, to))
            }
            TableAction::RenameConstraint { from, to } => {
                self.rename_constraint(database, table, from, to)
            }
            TableAction::Undo => self.undo_alter(database, table, applied),
            TableAction::SetType { column, ty, .. } => {
                self.database_mut(database)?.check_type(*ty)?;
                self.database_mut(database)?.keep_type(table, column)?;
                self.table_mut(database, table)?.change(action, applied)
            }
            TableAction::SetDefault { .. }
            | TableAction::SetIdentity { .. }
            | TableAction::CheckNotNull { .. }
            | TableAction::DropNotNull { .. }
            | TableAction::DropExpression { .. } => {
                self.table_mut(database, table)?.change(action, applied)
            }
            TableAction::Publish => {
                self.put_in_place(database, table)?;
                self.table_mut(database, table)?.change(action, applied)
            }
        }
    }

    fn add_column(
        &mut self,
        (database, table): (&str, &str),
        (column, place, if_not_exists): (&Column, u16, bool),
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        self.database_mut(database)?.check_type(column.ty)?;
        if let Some(shown_at) = column.shown_at {
            self.check_replaced(database, table, shown_at)?;
        }
        let table = self.table_mut(database, table)?;
        table.add_column(column, place, if_not_exists, applied)
    }

    pub(crate) fn drop_column(
        &mut self,
        database: &str,
        table: &str,
        name: &str,
        (if_exists, cascade): (bool, bool),
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let found = owner.table(table).ok_or_else(|| no_relation(table))?;
        let at = match found.own_column(name) {
            Ok(at) => at as u16,
            Err(error) if if_exists => {
                let text = error.fields().message.clone();
                applied.notices.push(text + ", skipping");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if found.primary.columns.iter().any(|key| key.column == at) {
            let message =
                "dropping a column of the primary key or of the partition is not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .hint("Rows lie where these columns say: drop the primary key before."));
        }
        let of_column = format!("column {name} of table {table}");
        let found = owner.table(table).expect("just seen");
        let dependent = found.generated_from(at);
        if !dependent.is_empty() && !cascade {
            return Err(found.column_in_use(name, &dependent));
        }
        let dependent = found.column_names(dependent);
        for other in dependent {
            let text = format!("drop cascades to column {other} of table {table}");
            applied.notices.push(text);
            self.drop_column(database, table, &other, (false, cascade), applied)?;
        }
        let owner = self.database_mut(database)?;
        let users = owner.keys_that_read(table, &[at]);
        owner.end_keys(&users, &of_column, &of_column, cascade, version, applied)?;
        let gone = owner.drop_views_with(("table", table), Some(name), &[], cascade)?;
        applied.notices.extend(gone);
        let found = owner.table_mut(table, version)?;
        let dead: Vec<String> = found
            .checks
            .iter()
            .filter(|check| found.columns_of_check(check).contains(&at))
            .map(|check| check.name.clone())
            .collect();
        found.checks.retain(|check| !dead.contains(&check.name));
        found.end_indexes_on(at);
        found.bury(at);
        let keys = found.foreign_keys.iter();
        let keys = keys.filter(|key| key.columns.contains(&at));
        for key in keys.map(|key| key.name.clone()).collect::<Vec<_>>() {
            owner.forget_key(table, &key, version)?;
        }
        owner.drop_owned(table, name, applied);
        Ok(())
    }

    fn end_constraint(
        &mut self,
        database: &str,
        table: &str,
        name: &str,
        (if_exists, cascade): (bool, bool),
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let found = owner.table(table).ok_or_else(|| no_relation(table))?;
        let backed = |index: &&Index| index.constraint && index.name == *name;
        let Some(index) = found.secondary.iter().find(backed) else {
            if found.primary_constraint.as_deref() == Some(name) {
                let message = "dropping a primary key beside other changes is not supported";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                    .hint("Drop the primary key with a statement of its own."));
            }
            let dropped = self.drop_constraint(database, table, name, if_exists)?;
            applied.notices.extend(dropped.skipped);
            return Ok(());
        };
        let mut users = Vec::new();
        let mut used = index.clone();
        // Every key that no other index fits.
        while let Some(user) = owner.index_user_but(table, &used, &users) {
            users.push(user);
        }
        let what = format!("constraint {name} on table {table}");
        let by = format!("index {name}");
        owner.end_keys(&users, &what, &by, cascade, version, applied)?;
        used.building = true;
        let found = owner.table_mut(table, version)?;
        let place = found.secondary.iter_mut().find(|index| index.id == used.id);
        *place.expect("just seen") = used;
        Ok(())
    }

    fn undo_alter(
        &mut self,
        database: &str,
        table: &str,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let version = self.version;
        let owner = self.database_mut(database)?;
        let found = owner.table_mut(table, version)?;
        let adding = |validity| validity == Validity::Adding;
        found.checks.retain(|check| !adding(check.validity));
        let keys = found.foreign_keys.iter();
        let keys = keys.filter(|key| adding(key.validity) || is_copy(&key.name));
        for key in keys.map(|key| key.name.clone()).collect::<Vec<_>>() {
            owner.forget_key(table, &key, version)?;
        }
        let found = owner.table_mut(table, version)?;
        let users = found.referenced_by.iter().filter(|(_, key)| is_copy(key));
        for (child, key) in users.cloned().collect::<Vec<_>>() {
            owner.forget_key(&child, &key, version)?;
        }
        let found = owner.table_mut(table, version)?;
        let unfinished = |index: &&Index| index.building || is_copy(&index.name);
        let building = found.secondary.iter().filter(unfinished);
        applied.dropped.extend(building.map(|index| index.id));
        let building: Vec<IndexId> = applied.dropped.clone();
        building.iter().for_each(|id| found.forget_index(*id));
        let mut gone = Vec::new();
        for at in 0..found.columns.len() {
            match found.columns[at].state {
                ColumnState::Ready | ColumnState::Dropped => {}
                ColumnState::Checking => found.columns[at].state = ColumnState::Ready,
                ColumnState::Filling => {
                    gone.push(found.columns[at].name.clone());
                    found.bury(at as u16);
                }
            }
        }
        gone.iter()
            .for_each(|name| owner.drop_owned(table, name, applied));
        Ok(())
    }
}

impl Database {
    /// Foreign keys of other tables that refer to columns of `table`: child and name.
    fn keys_that_read(&self, table: &str, columns: &[u16]) -> Vec<(String, String)> {
        let Some(found) = self.table(table) else {
            return Vec::new();
        };
        let reads = |(child, name): &&(String, String)| {
            let keys = self.table(child).map(|child| &child.foreign_keys);
            let key = keys.and_then(|keys| keys.iter().find(|key| key.name == *name));
            key.is_some_and(|key| key.parent_columns.iter().any(|c| columns.contains(c)))
        };
        found.referenced_by.iter().filter(reads).cloned().collect()
    }

    /// As [`Database::index_user`], apart from keys that are known already.
    pub(crate) fn index_user_but(
        &self,
        parent: &str,
        index: &Index,
        known: &[(String, String)],
    ) -> Option<(String, String)> {
        let mut without = self.clone();
        let table = without.table_mut(parent, 0).ok()?;
        table.referenced_by.retain(|user| !known.contains(user));
        without.index_user(parent, index)
    }

    /// Removes the foreign keys that depend on `what`, which goes. Errors: 2BP01 without CASCADE.
    pub(crate) fn end_keys(
        &mut self,
        users: &[(String, String)],
        what: &str,
        by: &str,
        cascade: bool,
        version: u64,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        if let (Some(_), false) = (users.first(), cascade) {
            let message = format!("cannot drop {what} because other objects depend on it");
            let details = users
                .iter()
                .map(|(child, name)| format!("constraint {name} on table {child} depends on {by}"));
            let detail = details.collect::<Vec<_>>().join("\n");
            return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                .detail(detail)
                .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for (child, name) in users {
            self.forget_key(child, name, version)?;
            let text = format!("drop cascades to constraint {name} on table {child}");
            applied.notices.push(text);
        }
        Ok(())
    }

    /// Removes a foreign key of `child`.
    pub(crate) fn forget_key(
        &mut self,
        child: &str,
        name: &str,
        version: u64,
    ) -> Result<(), CatalogError> {
        let keys = &mut self.table_mut(child, version)?.foreign_keys;
        if let Some(at) = keys.iter().position(|key| key.name == *name) {
            let parent = keys.remove(at).parent;
            let parent = self.table_mut(&parent, version)?;
            let users = &mut parent.referenced_by;
            users.retain(|(other, key)| other != child || key != name);
        }
        Ok(())
    }

    /// Removes the sequences that a column owned.
    pub(crate) fn drop_owned(&mut self, table: &str, column: &str, applied: &mut Applied) {
        self.sequences.retain(|_, sequence| {
            let owner = sequence.owned_by.as_ref();
            let owned = owner.is_some_and(|(t, c)| t == table && c == column);
            if owned {
                applied.dropped.push(sequence.id);
            }
            !owned
        });
    }
}

impl Table {
    /// Position of a column that statements can name. Errors: 42703.
    pub fn own_column(&self, name: &str) -> Result<usize, CatalogError> {
        let mut columns = self.columns.iter();
        let found = columns.position(|column| column.name == name && !column.hidden);
        found.ok_or_else(|| {
            let table = &self.name;
            let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_COLUMN, message)
        })
    }

    fn add_column(
        &mut self,
        column: &Column,
        place: u16,
        if_not_exists: bool,
        applied: &mut Applied,
    ) -> Result<(), CatalogError> {
        let name = &column.name;
        check_column_name(name)?;
        // Expressions of indexes are named by their place: that another change has it is no fault
        // of the client.
        let is_named_by_place = column.hidden && name.starts_with('$');
        if self.column(name).is_some() && !is_named_by_place {
            let table = &self.name;
            let message = format!("column \"{name}\" of relation \"{table}\" already exists");
            if !if_not_exists {
                return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
            }
            applied.notices.push(message + ", skipping");
            return Ok(());
        }
        if usize::from(place) != self.columns.len() {
            let message = format!("table \"{}\" was changed by another statement", self.name);
            return Err(
                SqlError::new(SqlState::SERIALIZATION, message).hint("Run the statement again.")
            );
        }
        self.columns.push(column.clone());
        self.check_columns()
    }

    /// Hides a column for good.
    pub(crate) fn bury(&mut self, at: u16) {
        let column = &mut self.columns[usize::from(at)];
        *column = Column::dropped(at, column.ty);
    }

    /// Whether a column can be made an identity: it has no NULL, and no other source of values.
    fn check_identity(&self, at: usize) -> Result<(), CatalogError> {
        let (column, table) = (&self.columns[at], &self.name);
        let named = format!("column \"{}\" of relation \"{table}\"", column.name);
        let message = if !column.not_null {
            named + " must be declared NOT NULL before identity can be added"
        } else if column.identity.is_some() {
            named + " is already an identity column"
        } else if column.default.is_some() || column.generated.is_some() {
            named + " already has a default value"
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::OBJECT_NOT_READY, message))
    }

    fn change(&mut self, action: &TableAction, applied: &mut Applied) -> Result<(), CatalogError> {
        match action {
            TableAction::SetDefault { column, default } => {
                let at = self.own_column(column)?;
                self.refuse_identity(at)?;
                self.refuse_generated(at, default.is_none())?;
                self.columns[at].default.clone_from(default);
            }
            TableAction::SetIdentity { column, identity } => {
                let at = self.own_column(column)?;
                self.check_identity(at)?;
                self.columns[at].identity = Some(*identity);
            }
            TableAction::CheckNotNull { column } => {
                let at = self.own_column(column)?;
                if !self.columns[at].not_null {
                    self.columns[at].state = ColumnState::Checking;
                }
            }
            TableAction::DropNotNull { column } => {
                let at = self.own_column(column)?;
                let mut keys = self.key_index().into_iter().flat_map(|key| &key.columns);
                if keys.any(|key| usize::from(key.column) == at) {
                    let message = format!("column \"{column}\" is in a primary key");
                    return Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message));
                }
                self.refuse_identity(at)?;
                self.columns[at].not_null = false;
            }
            TableAction::DropExpression { column, if_exists } => {
                let at = self.own_column(column)?;
                return self.drop_expression(at, *if_exists, applied);
            }
            TableAction::SetType {
                column,
                ty,
                collation,
            } => {
                let at = self.own_column(column)?;
                self.check_unread(at)?;
                self.columns[at].ty = *ty;
                self.columns[at].collation = *collation;
                self.columns[at].domain = None;
            }
            _ => self.publish(),
        }
        Ok(())
    }

    /// What is unfinished is done.
    pub(crate) fn publish(&mut self) {
        for column in &mut self.columns {
            match column.state {
                ColumnState::Ready | ColumnState::Dropped => continue,
                ColumnState::Checking => column.not_null = true,
                ColumnState::Filling => column.hidden = column.of_index,
            }
            column.state = ColumnState::Ready;
        }
        let checks = self.checks.iter_mut().map(|check| &mut check.validity);
        let keys = self.foreign_keys.iter_mut().map(|key| &mut key.validity);
        for validity in checks.chain(keys) {
            if *validity == Validity::Adding {
                *validity = Validity::Valid;
            }
        }
        let indexes = self.secondary.iter_mut();
        let new = indexes.filter(|index| !is_retired(index));
        new.for_each(|index| index.building = false);
    }

    fn refuse_identity(&self, at: usize) -> Result<(), CatalogError> {
        let Column { name, identity, .. } = &self.columns[at];
        if identity.is_none() {
            return Ok(());
        }
        let table = &self.name;
        let message = format!("column \"{name}\" of relation \"{table}\" is an identity column");
        Err(SqlError::new(SqlState::SYNTAX, message))
    }
}
