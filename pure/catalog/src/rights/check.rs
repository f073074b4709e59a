//! Whether a role may make a change of the schema.

use crate::alter::TableAction;
use crate::command::{CatalogError, Command};
use crate::comments::Subject;
use crate::desc::*;
use crate::domains::DomainChange;
use crate::functions::FunctionChange;
use crate::policies::PolicyChange;
use ::rights::{By, ObjectKind, Privileges, Target, denied};
use alloc::format;
use alloc::string::String;
use base::full_name::{own, schema_of};

impl Catalog {
    /// # Errors
    /// 42501. What is not there is not asked for: the change itself fails.
    pub(crate) fn check_rights(&self, command: &Command, by: &By) -> Result<(), CatalogError> {
        if self.rights.is_superuser(by.current) {
            return Ok(());
        }
        match command {
            Command::CreateDatabase { .. } => match self.rights.creates_databases(by.current) {
                true => Ok(()),
                false => Err(denied("permission denied to create database")),
            },
            Command::DropDatabase { name: database, .. }
            | Command::Switch { database, .. }
            | Command::SetProtocol { database, .. } => self.check_database(database, by),
            Command::CreateTable { .. }
            | Command::CreateStored { .. }
            | Command::CreateSequence { .. }
            | Command::CreateView { .. } => self.check_new(command, by),
            Command::AddForeignKey { .. } | Command::AlterTable { .. } => {
                self.check_keys(command, by)
            }
            Command::Policy {
                database,
                table,
                change: PolicyChange::Triggers(_),
            } => self.check_triggers(database, table, by),
            Command::Comment {
                database, subject, ..
            } => self.check_comment(database, subject, by),
            Command::CreateEnum { database, name, .. } => {
                self.check_create(database, schema_of(name), by)
            }
            Command::Schema { database, change } => self.check_schema_rights(database, change, by),
            Command::Function { database, change } => self.check_functions(database, change, by),
            Command::Domain { database, change } => self.check_domains(database, change, by),
            Command::AlterEnum { database, name, .. } => self.check_type(database, name, by),
            Command::DropEnum {
                database, names, ..
            } => {
                let mut names = names.iter();
                names.try_for_each(|name| self.check_type(database, name, by))
            }
            // Steps of changes whose first command was checked, and those that check for
            // themselves.
            Command::Bootstrap(_)
            | Command::FinishIndex { .. }
            | Command::SetPrimaryKey { .. }
            | Command::Reserve
            | Command::Unreserve { .. }
            | Command::Rights { .. }
            | Command::Block { .. }
            | Command::LockTables { .. } => Ok(()),
            _ => self.check_existing(command, by),
        }
    }

    /// The triggers of foreign keys are PostgreSQL's own.
    fn check_triggers(&self, database: &str, table: &str, by: &By) -> Result<(), CatalogError> {
        self.check_relation(database, table, by)?;
        let found = self.database(database).and_then(|owner| owner.table(table));
        match found.is_some_and(|table| table.has_keys()) {
            true => Err(denied(
                "permission denied: \"RI_ConstraintTrigger\" is a system trigger",
            )),
            false => Ok(()),
        }
    }

    /// Changes that only the owner of what they name may make.
    fn check_existing(&self, command: &Command, by: &By) -> Result<(), CatalogError> {
        match command {
            Command::DropTable {
                database, names, ..
            }
            | Command::DropSequence {
                database, names, ..
            }
            | Command::DropView {
                database, names, ..
            }
            | Command::DropStored {
                database, names, ..
            }
            | Command::RetireIndex {
                database, names, ..
            }
            | Command::DropIndex {
                database, names, ..
            } => {
                let mut names = names.iter();
                names.try_for_each(|name| self.check_relation(database, name, by))
            }
            Command::CreateIndex {
                database, table, ..
            }
            | Command::Freeze {
                database, table, ..
            }
            | Command::AddCheck {
                database, table, ..
            }
            | Command::DropConstraint {
                database, table, ..
            }
            | Command::SetValidity {
                database, table, ..
            }
            | Command::Policy {
                database, table, ..
            }
            | Command::AlterSequence {
                database,
                name: table,
                ..
            }
            | Command::RenameRelation {
                database,
                from: table,
                ..
            }
            | Command::RenameView {
                database,
                name: table,
                ..
            }
            | Command::SetFilled {
                database,
                name: table,
                ..
            } => self.check_relation(database, table, by),
            // A kind of change that nobody has decided about is for superusers.
            _ => Err(denied("permission denied")),
        }
    }

    fn check_new(&self, command: &Command, by: &By) -> Result<(), CatalogError> {
        match command {
            Command::CreateTable {
                database, table, ..
            } => {
                self.check_create(database, schema_of(&table.name), by)?;
                let mut keys = table.foreign_keys.iter();
                keys.try_for_each(|key| self.check_parent(database, key, by))
            }
            Command::CreateStored {
                database, table, ..
            } => self.check_create(database, schema_of(&table.name), by),
            Command::CreateSequence {
                database, sequence, ..
            } => {
                self.check_create(database, schema_of(&sequence.name), by)?;
                match &sequence.owned_by {
                    Some((table, _)) => self.check_relation(database, table, by),
                    None => Ok(()),
                }
            }
            Command::CreateView {
                database,
                view,
                replace,
            } => {
                self.check_create(database, schema_of(&view.name), by)?;
                match replace {
                    true => self.check_relation(database, &view.name, by),
                    false => Ok(()),
                }
            }
            _ => unreachable!("called for what is new only"),
        }
    }

    /// Changes of tables that may add foreign keys.
    fn check_keys(&self, command: &Command, by: &By) -> Result<(), CatalogError> {
        match command {
            Command::AddForeignKey {
                database,
                table,
                foreign_key,
            } => {
                self.check_relation(database, table, by)?;
                self.check_parent(database, foreign_key, by)
            }
            Command::AlterTable {
                database,
                table,
                actions,
            } => {
                self.check_relation(database, table, by)?;
                let mut keys = actions.iter().filter_map(TableAction::foreign_key);
                keys.try_for_each(|key| self.check_parent(database, key, by))
            }
            _ => unreachable!("called for changes of tables only"),
        }
    }

    fn check_comment(&self, name: &str, subject: &Subject, by: &By) -> Result<(), CatalogError> {
        match subject {
            Subject::Database => self.check_database(name, by),
            Subject::Schema(schema) => match self.databases.get(name) {
                Some(database) => self.check_owns_schema(database, schema, by),
                None => Ok(()),
            },
            Subject::Function(number) => self.check_function(name, *number, by),
            Subject::Type(_, ty) => self.check_type(name, ty, by),
            Subject::Relation(_, relation)
            | Subject::Column(relation, _)
            | Subject::Constraint(relation, _) => self.check_relation(name, relation, by),
        }
    }

    fn check_functions(
        &self,
        database: &str,
        change: &FunctionChange,
        by: &By,
    ) -> Result<(), CatalogError> {
        match change {
            FunctionChange::Create { function, replace } => {
                self.check_create(database, schema_of(&function.name), by)?;
                let found = self.databases.get(database);
                let all = found.map_or(&[][..], |found| found.functions_named(&function.name));
                let types = function.input_types();
                let mut old = all.iter().filter(|old| old.input_types() == types);
                match old.next().filter(|_| *replace) {
                    Some(old) => self.check_function(database, old.id, by),
                    None => Ok(()),
                }
            }
            FunctionChange::Drop { functions, .. } => {
                let mut functions = functions.iter();
                functions.try_for_each(|number| self.check_function(database, *number, by))
            }
            FunctionChange::Rename { function, to } => {
                self.check_function(database, *function, by)?;
                self.check_create(database, schema_of(to), by)
            }
            FunctionChange::Alter { function } => self.check_function(database, function.id, by),
        }
    }

    fn check_function(&self, name: &str, number: u32, by: &By) -> Result<(), CatalogError> {
        let found = self.databases.get(name);
        let found = found.and_then(|database| Some((database, database.function(number)?)));
        let Some((database, found)) = found else {
            return Ok(());
        };
        let owner = self.owner_of_database(database);
        let kind = found.kind();
        let what = (&Target::Relation(number), kind, own(&found.name));
        self.rights.check_owner(by.current, what, owner)
    }

    fn check_domains(
        &self,
        database: &str,
        change: &DomainChange,
        by: &By,
    ) -> Result<(), CatalogError> {
        match change {
            DomainChange::Create(domain) => {
                self.check_create(database, schema_of(&domain.name), by)
            }
            DomainChange::Drop { names, .. } => {
                let mut names = names.iter();
                names.try_for_each(|name| self.check_type(database, name, by))
            }
            DomainChange::Rename { name, to } => {
                self.check_type(database, name, by)?;
                self.check_create(database, schema_of(to), by)
            }
            other => self.check_type(database, other.name(), by),
        }
    }

    pub(crate) fn check_type(&self, name: &str, ty: &str, by: &By) -> Result<(), CatalogError> {
        let found = self.databases.get(name);
        let found = found.and_then(|database| {
            let of_enum = database.enums.get(ty).map(|found| found.id);
            let of_domain = || database.domains.get(ty).map(|found| found.id);
            Some((database, of_enum.or_else(of_domain)?))
        });
        let Some((database, found)) = found else {
            return Ok(());
        };
        let owner = self.owner_of_database(database);
        let what = (&Target::Relation(found), ObjectKind::Type, own(ty));
        self.rights.check_owner(by.current, what, owner)
    }

    pub(super) fn check_database(&self, name: &str, by: &By) -> Result<(), CatalogError> {
        let Some(database) = self.databases.get(name) else {
            return Ok(());
        };
        let target = Target::Database(database.id.0);
        let owner = self.owner_of_database(database);
        self.rights
            .check_owner(by.current, (&target, ObjectKind::Database, name), owner)
    }

    /// Whether the role may make things in a schema.
    pub(crate) fn check_create(
        &self,
        name: &str,
        schema: u32,
        by: &By,
    ) -> Result<(), CatalogError> {
        let Some(database) = self.databases.get(name) else {
            return Ok(());
        };
        match self.may_use(database, schema, by.current, Privileges::CREATE) {
            true => Ok(()),
            false if base::full_name::is_temporary(schema) => {
                let message = "permission denied to create temporary tables in database";
                Err(denied(format!("{message} \"{name}\"")))
            }
            false => {
                let name = database.schema_name(schema);
                Err(denied(format!("permission denied for schema {name}")))
            }
        }
    }

    pub(crate) fn check_relation(
        &self,
        name: &str,
        relation: &str,
        by: &By,
    ) -> Result<(), CatalogError> {
        let Some(database) = self.databases.get(name) else {
            return Ok(());
        };
        let Some((kind, mut id)) = database.relation(relation) else {
            return Ok(());
        };
        let kind = match kind {
            "table" => ObjectKind::Table,
            "view" => ObjectKind::View,
            "sequence" => ObjectKind::Sequence,
            _ => {
                if let Some((table, _)) = database.index(relation) {
                    id = table.id.0;
                }
                ObjectKind::Index
            }
        };
        let owner = self.owner_of_database(database);
        let what = (&Target::Relation(id), kind, own(relation));
        self.rights.check_owner(by.current, what, owner)
    }

    /// A foreign key needs REFERENCES on the columns that it points to.
    fn check_parent(&self, name: &str, key: &ForeignKey, by: &By) -> Result<(), CatalogError> {
        let found = self.databases.get(name);
        let found = found.and_then(|database| Some((database, database.table(&key.parent)?)));
        let Some((database, parent)) = found else {
            return Ok(());
        };
        let owner = self.owner_of_database(database);
        let target = Target::Relation(parent.id.0);
        let wanted = Privileges::REFERENCES;
        let of_table = self
            .rights
            .privileges(by.current, (&target, ObjectKind::Table), owner);
        let mut columns = key.parent_columns.iter();
        let has = |column: &u16| {
            let own = self
                .rights
                .column_privileges(by.current, &target, *column, owner);
            own.has(wanted)
        };
        if of_table.has(wanted) || (!key.parent_columns.is_empty() && columns.all(has)) {
            return Ok(());
        }
        let message: String = format!("permission denied for table {}", own(&key.parent));
        Err(denied(message))
    }
}
