//! The state machine: commands to catalog versions.

use crate::command::{Applied, CatalogError, Command};
use crate::desc::*;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::PUBLIC_SCHEMA;
use base::{DatabaseId, IndexId, Placement, SqlError, SqlState};
use rights::By;

/// First object number of users, as in PostgreSQL: smaller ones belong to the system catalog.
pub(crate) const FIRST_ID: u32 = 16384;

impl Catalog {
    /// The catalog after `command`, which must be applied in the same order everywhere.
    ///
    /// If [`Applied::skipped`] is set, nothing changed and the version is the old one. Otherwise
    /// the version is one larger, and every table whose description, indexes or constraints the
    /// command touched (parents of foreign keys included) has it as `changed`.
    ///
    /// Errors: the command is refused with PostgreSQL's SQLSTATE for the mistake; nothing changed.
    pub fn apply(&self, command: &Command) -> Result<(Catalog, Applied), CatalogError> {
        self.apply_by(command, &By::default())
    }

    /// As [`Catalog::apply`], with the rights of a role, which owns what is new.
    ///
    /// Errors: also 42501 for a change that the role may not make.
    pub fn apply_by(&self, command: &Command, by: &By) -> Result<(Catalog, Applied), CatalogError> {
        self.check_rights(command, by)?;
        let mut next = self.clone();
        next.version += 1;
        next.weighed = Weighed::default();
        let applied = match command {
            Command::Rights { database, change } => next.change_rights(database, change, by)?,
            Command::Schema { database, change } => next.change_schema(database, change, by)?,
            Command::Policy {
                database,
                table,
                change,
            } => next.change_policy(database, table, change, by)?,
            Command::Block {
                database,
                session,
                change,
            } => {
                let applied = next.change_block(database, *session, *change)?;
                next.count_blocks();
                return Ok((next, applied));
            }
            Command::LockTables { .. } => return Ok((next, Applied::default())),
            _ => next.change(command)?,
        };
        next.forget_comments(command);
        next.keep_owners(self, by);
        if applied.skipped.is_some() {
            return Ok((self.clone(), applied));
        }
        next.check_size(self)?;
        Ok((next, applied))
    }

    fn change(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        match command {
            Command::Bootstrap(placement) => self.bootstrap(placement),
            Command::CreateDatabase {
                name,
                protocol,
                execution,
                if_not_exists,
            } => self.create_database(name, *protocol, *execution, *if_not_exists),
            Command::DropDatabase { name, if_exists } => self.drop_database(name, *if_exists),
            Command::Switch {
                database,
                protocol,
                switching,
            } => self.switch(database, *protocol, *switching),
            Command::SetProtocol { database, protocol } => self.set_protocol(database, *protocol),
            Command::CreateTable {
                database,
                table,
                sequences,
                if_not_exists,
            } => self.create_table(database, table, sequences, *if_not_exists),
            Command::DropTable {
                database,
                names,
                if_exists,
                cascade,
            } => self.drop_tables(database, names, *if_exists, *cascade),
            Command::CreateIndex { .. }
            | Command::FinishIndex { .. }
            | Command::RetireIndex { .. }
            | Command::DropIndex { .. } => self.change_indexes(command),
            Command::CreateSequence { .. }
            | Command::DropSequence { .. }
            | Command::CreateView { .. }
            | Command::DropView { .. }
            | Command::RenameView { .. }
            | Command::CreateEnum { .. }
            | Command::AlterEnum { .. }
            | Command::DropEnum { .. }
            | Command::Freeze { .. } => self.change_others(command),
            Command::SetPrimaryKey { .. } => self.set_primary_key(command),
            Command::AddForeignKey {
                database,
                table,
                foreign_key,
            } => self.add_foreign_key(database, table, foreign_key),
            Command::AddCheck {
                database,
                table,
                check,
            } => self.add_check(database, table, check),
            Command::SetValidity {
                database,
                table,
                constraint,
                validity,
            } => self.set_validity(database, table, constraint, *validity),
            Command::DropConstraint {
                database,
                table,
                constraint,
                if_exists,
            } => self.drop_constraint(database, table, constraint, *if_exists),
            Command::Reserve => Ok(self.reserve()),
            Command::Unreserve { index } => Ok(self.unreserve(*index)),
            _ => self.change_relations(command),
        }
    }

    fn change_relations(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        match command {
            Command::Function { database, change } => self.change_functions(database, change),
            Command::Domain { database, change } => self.change_domains(database, change),
            Command::AlterTable {
                database,
                table,
                actions,
            } => self.alter_table(database, table, actions),
            Command::AlterSequence {
                database,
                name,
                change,
            } => self.alter_sequence(database, name, change),
            Command::RenameRelation { database, from, to } => {
                self.rename_relation(database, from, to)
            }
            Command::Comment {
                database,
                subject,
                text,
            } => self.comment(database, subject, text.as_deref()),
            Command::CreateStored { .. }
            | Command::DropStored { .. }
            | Command::SetFilled { .. } => self.change_stored(command),
            _ => unreachable!("called for relations and comments only"),
        }
    }

    /// Sequences, views and types; tables that are frozen.
    fn change_others(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        match command {
            Command::CreateSequence {
                database,
                sequence,
                if_not_exists,
            } => self.create_sequence(database, sequence, *if_not_exists),
            Command::DropSequence {
                database,
                names,
                if_exists,
                cascade,
            } => self.drop_sequences(database, names, *if_exists, *cascade),
            Command::CreateView {
                database,
                view,
                replace,
            } => self.create_view(database, view, *replace),
            Command::DropView {
                database,
                names,
                if_exists,
                cascade,
            } => self.drop_views(database, names, *if_exists, *cascade),
            Command::RenameView {
                database,
                name,
                to,
                if_exists,
            } => self.rename_view(database, name, to, *if_exists),
            Command::CreateEnum {
                database,
                name,
                labels,
                attributes,
            } => self.create_enum(database, name, labels, attributes.as_deref()),
            Command::AlterEnum {
                database,
                name,
                change,
            } => self.alter_enum(database, name, change),
            Command::DropEnum {
                database,
                names,
                if_exists,
                cascade,
            } => self.drop_enums(database, names, *if_exists, *cascade),
            Command::Freeze {
                database,
                table,
                frozen,
            } => self.freeze(database, table, *frozen),
            _ => unreachable!("called for sequences, views and types, and to freeze tables"),
        }
    }

    fn change_stored(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        match command {
            Command::CreateStored {
                database,
                table,
                view,
                if_not_exists,
            } => self.create_stored(database, (table, view), *if_not_exists),
            Command::DropStored {
                database,
                names,
                if_exists,
                cascade,
            } => self.drop_stored(database, names, *if_exists, *cascade),
            Command::SetFilled {
                database,
                name,
                filled,
            } => self.set_filled(database, name, *filled),
            _ => unreachable!("called for materialized views only"),
        }
    }

    fn change_indexes(&mut self, command: &Command) -> Result<Applied, CatalogError> {
        match command {
            Command::CreateIndex {
                database,
                table,
                index,
                if_not_exists,
            } => self.create_index(database, table, index, *if_not_exists),
            Command::FinishIndex {
                database,
                table,
                index,
            } => self.finish_index(database, table, index),
            Command::DropIndex {
                database,
                names,
                if_exists,
            } => self.drop_indexes(database, names, *if_exists),
            Command::RetireIndex {
                database,
                names,
                if_exists,
            } => self.retire_indexes(database, names, *if_exists),
            _ => unreachable!("called for indexes only"),
        }
    }

    /// Comments and row security go with what they are about.
    fn forget_comments(&mut self, command: &Command) {
        if let Command::DropTable { database, .. }
        | Command::DropStored { database, .. }
        | Command::DropIndex { database, .. }
        | Command::DropSequence { database, .. }
        | Command::DropView { database, .. }
        | Command::DropConstraint { database, .. }
        | Command::Schema { database, .. }
        | Command::Function { database, .. }
        | Command::DropEnum { database, .. }
        | Command::Domain { database, .. }
        | Command::AlterTable { database, .. } = command
            && let Some(database) = self.databases.get_mut(database)
            && !(database.comments.is_empty() && database.row_security.is_empty())
        {
            let database = Arc::make_mut(database);
            database.forget_comments();
            database.forget_policies();
        }
    }

    /// A fresh object number.
    pub(crate) fn next_number(&mut self) -> u32 {
        let id = self.next_id.max(FIRST_ID);
        self.next_id = id + 1;
        id
    }

    /// The database, to be changed.
    pub(crate) fn database_mut(&mut self, name: &str) -> Result<&mut Database, CatalogError> {
        let database = self
            .databases
            .get_mut(name)
            .ok_or_else(|| no_database(name))?;
        Ok(Arc::make_mut(database))
    }

    /// The table, to be changed: it gets the new version.
    pub(crate) fn table_mut(
        &mut self,
        database: &str,
        table: &str,
    ) -> Result<&mut Table, CatalogError> {
        let version = self.version;
        self.database_mut(database)?.table_mut(table, version)
    }

    fn bootstrap(&mut self, placement: &Placement) -> Result<Applied, CatalogError> {
        if !self.placement.shards().is_empty() {
            let message = "the placement of the cluster is already fixed";
            return Err(SqlError::new(SqlState::OBJECT_NOT_READY, message));
        }
        self.placement = placement.clone();
        Ok(Applied::default())
    }

    fn create_database(
        &mut self,
        name: &str,
        protocol: ProtocolKind,
        execution: Execution,
        if_not_exists: bool,
    ) -> Result<Applied, CatalogError> {
        if self.databases.contains_key(name) {
            let message = format!("database \"{name}\" already exists");
            return skip_or_fail(if_not_exists, SqlState::DUPLICATE_DATABASE, message);
        }
        let database = Database {
            id: DatabaseId(self.next_number()),
            name: name.into(),
            protocol,
            execution,
            tables: Default::default(),
            sequences: Default::default(),
            switching: None,
            comments: [(
                Commented::Schema(PUBLIC_SCHEMA),
                "standard public schema".into(),
            )]
            .into(),
            views: Default::default(),
            enums: Default::default(),
            schemas: [("public".into(), PUBLIC_SCHEMA)].into(),
            functions: Default::default(),
            row_security: Default::default(),
            connection_limit: -1,
            stored: Default::default(),
            domains: Default::default(),
            blocks: Vec::new(),
        };
        self.databases.insert(name.into(), Arc::new(database));
        Ok(Applied::default())
    }

    fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<Applied, CatalogError> {
        match self.databases.remove(name) {
            Some(database) => Ok(Applied {
                dropped: database.key_spaces(),
                ..Applied::default()
            }),
            None => {
                let message = format!("database \"{name}\" does not exist");
                skip_or_fail(if_exists, SqlState::INVALID_DATABASE, message)
            }
        }
    }

    fn switch(
        &mut self,
        name: &str,
        protocol: ProtocolKind,
        switching: Option<Switching>,
    ) -> Result<Applied, CatalogError> {
        let database = self.database_mut(name)?;
        if switching == Some(Switching::Draining) {
            if database.protocol == protocol {
                let text = format!("database \"{name}\" runs {} already", protocol.name());
                return skip_or_fail(true, SqlState::DUPLICATE_DATABASE, text);
            }
            if let Some(reason) = database.keeps_from(protocol) {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, reason));
            }
        }
        database.switching = switching;
        Ok(Applied::default())
    }

    fn set_protocol(
        &mut self,
        name: &str,
        protocol: ProtocolKind,
    ) -> Result<Applied, CatalogError> {
        let database = self.database_mut(name)?;
        database.protocol = protocol;
        database.switching = Some(Switching::Opening);
        Ok(Applied::default())
    }

    fn create_sequence(
        &mut self,
        database: &str,
        sequence: &Sequence,
        if_not_exists: bool,
    ) -> Result<Applied, CatalogError> {
        self.ensure_temporary(database, &sequence.name)?;
        if self.database_mut(database)?.has_relation(&sequence.name) {
            return already_exists(&sequence.name, if_not_exists);
        }
        let id = IndexId(self.next_number());
        self.database_mut(database)?.add_sequence(Sequence {
            id,
            ..sequence.clone()
        })?;
        Ok(Applied::default())
    }

    pub(crate) fn drop_sequences(
        &mut self,
        database: &str,
        names: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Applied, CatalogError> {
        let version = self.version;
        let database = self.database_mut(database)?;
        let mut removal = Removal::new("sequence", SqlState::UNDEFINED_TABLE, if_exists);
        for name in names {
            if !database.sequences.contains_key(name) {
                removal.missing(database, name)?;
                continue;
            }
            let mut along = Vec::new();
            while let Some((table, column, is_default)) = database.sequence_user(name) {
                let what = format!("default value for column {column} of table {table}");
                if !cascade || !is_default {
                    let message =
                        format!("cannot drop sequence {name} because other objects depend on it");
                    return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message)
                        .detail(format!("{what} depends on sequence {name}"))
                        .hint("Use DROP ... CASCADE to drop the dependent objects too."));
                }
                let (table, column) = (String::from(table), String::from(column));
                let table = database.table_mut(&table, version)?;
                let mut columns = table.columns.iter_mut();
                let column = columns.find(|it| it.name == column).expect("found above");
                column.default = None;
                along.push(what);
            }
            removal.tell(match along.as_slice() {
                [] => Vec::new(),
                [what] => Vec::from([format!("drop cascades to {what}")]),
                several => {
                    let text = format!("drop cascades to {} other objects", several.len());
                    Vec::from([text])
                }
            });
            let sequence = database.sequences.remove(name).expect("seen above");
            removal.dropped.push(sequence.id);
        }
        Ok(removal.applied())
    }

    fn reserve(&mut self) -> Applied {
        let id = self.next_number();
        self.reserved.push(IndexId(id));
        Applied {
            reserved: id,
            ..Applied::default()
        }
    }

    fn unreserve(&mut self, index: IndexId) -> Applied {
        // A reservation that became a primary key is not given up any more, and its rows stay.
        let held = self.reserved.contains(&index);
        self.reserved.retain(|other| *other != index);
        let dropped = if held { Vec::from([index]) } else { Vec::new() };
        Applied {
            dropped,
            ..Applied::default()
        }
    }
}

impl Database {
    /// What of this database another protocol does not have.
    fn keeps_from(&self, protocol: ProtocolKind) -> Option<String> {
        if protocol == ProtocolKind::TwoPhase {
            return None;
        }
        if self.execution == Execution::Serial {
            return Some(format!("{} does not execute serially", protocol.name()));
        }
        let mut tables = self.tables.values();
        let table = tables.find(|table| table.replicated)?;
        let name = &table.name;
        Some(format!(
            "{} has no replicated tables like \"{name}\"",
            protocol.name()
        ))
    }

    /// The table, to be changed: it gets the new version.
    pub(crate) fn table_mut(
        &mut self,
        name: &str,
        version: u64,
    ) -> Result<&mut Table, CatalogError> {
        let table = self.tables.get_mut(name).ok_or_else(|| no_relation(name))?;
        let table = Arc::make_mut(table);
        table.changed = version;
        Ok(table)
    }

    /// Adds a sequence whose name is free. Errors: 22023 as PostgreSQL.
    pub(crate) fn add_sequence(&mut self, sequence: Sequence) -> Result<(), CatalogError> {
        let Sequence {
            start,
            increment,
            min,
            max,
            ty,
            ..
        } = sequence;
        let wrong = |message| Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        if increment == 0 {
            return wrong(String::from("INCREMENT must not be zero"));
        }
        let (lowest, highest) = crate::sequences::bounds(ty);
        let ty = ty.base_name();
        if !(lowest..=highest).contains(&max) {
            return wrong(format!(
                "MAXVALUE ({max}) is out of range for sequence data type {ty}"
            ));
        }
        if !(lowest..=highest).contains(&min) {
            return wrong(format!(
                "MINVALUE ({min}) is out of range for sequence data type {ty}"
            ));
        }
        if min >= max {
            return wrong(format!(
                "MINVALUE ({min}) must be less than MAXVALUE ({max})"
            ));
        }
        if start < min {
            return wrong(format!(
                "START value ({start}) cannot be less than MINVALUE ({min})"
            ));
        }
        if start > max {
            return wrong(format!(
                "START value ({start}) cannot be greater than MAXVALUE ({max})"
            ));
        }
        self.sequences.insert(sequence.name.clone(), sequence);
        Ok(())
    }

    /// A column whose default or identity draws from the sequence.
    /// A column that draws from a sequence: its table, its name, and whether by its default.
    fn sequence_user(&self, name: &str) -> Option<(&str, &str, bool)> {
        let owner = self
            .sequences
            .get(name)
            .and_then(|sequence| sequence.owned_by.as_ref());
        self.tables.values().find_map(|table| {
            let uses = |column: &&Column| {
                let owned = owner.is_some_and(|(t, c)| *t == table.name && *c == column.name);
                column
                    .default
                    .as_ref()
                    .is_some_and(|text| crate::names::draws_from(text, name))
                    || (owned && column.identity.is_some())
            };
            let column = table.columns.iter().find(uses)?;
            let is_default = column.default.is_some();
            Some((table.name.as_str(), column.name.as_str(), is_default))
        })
    }
}

/// The bookkeeping of a DROP of several names.
pub(crate) struct Removal {
    kind: &'static str,
    state: SqlState,
    if_exists: bool,
    notices: Vec<String>,
    pub(crate) dropped: Vec<IndexId>,
}

impl Removal {
    pub(crate) fn new(kind: &'static str, state: SqlState, if_exists: bool) -> Removal {
        Removal {
            kind,
            state,
            if_exists,
            notices: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// There is no object of the kind with this name: an error, or a notice with `IF EXISTS`.
    pub(crate) fn missing(&mut self, database: &Database, name: &str) -> Result<(), CatalogError> {
        if database.has_relation(name) {
            let article = if self.kind == "index" { "an" } else { "a" };
            let message = format!("\"{name}\" is not {article} {}", self.kind);
            let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, message);
            return Err(match database.relation(name) {
                Some((kind, _)) => {
                    let kind = match database.stored_view(name) {
                        Some(_) => "materialized view",
                        None => kind,
                    };
                    let article = if kind == "index" { "an" } else { "a" };
                    let word = kind.to_ascii_uppercase();
                    error.hint(format!("Use DROP {word} to remove {article} {kind}."))
                }
                None => error,
            });
        }
        let message = format!("{} \"{name}\" does not exist", self.kind);
        if !self.if_exists {
            return Err(SqlError::new(self.state, message));
        }
        self.notices.push(message + ", skipping");
        Ok(())
    }

    /// Tells of what goes along.
    pub(crate) fn tell(&mut self, notices: Vec<String>) {
        self.notices.extend(notices);
    }

    pub(crate) fn applied(self) -> Applied {
        let Removal {
            notices, dropped, ..
        } = self;
        if dropped.is_empty() && !notices.is_empty() {
            return Applied {
                skipped: Some(notices.join("\n")),
                ..Applied::default()
            };
        }
        Applied {
            dropped,
            notices,
            ..Applied::default()
        }
    }
}

/// A notice if the statement says so, else an error.
pub(crate) fn skip_or_fail(
    skip: bool,
    state: SqlState,
    message: String,
) -> Result<Applied, CatalogError> {
    if !skip {
        return Err(SqlError::new(state, message));
    }
    Ok(Applied {
        skipped: Some(message + ", skipping"),
        ..Applied::default()
    })
}

/// A relation of this name exists already.
pub(crate) fn already_exists(name: &str, skip: bool) -> Result<Applied, CatalogError> {
    let message = format!("relation \"{name}\" already exists");
    skip_or_fail(skip, SqlState::DUPLICATE_TABLE, message)
}

pub(crate) fn no_database(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_DATABASE,
        format!("database \"{name}\" does not exist"),
    )
}

pub(crate) fn no_relation(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}
