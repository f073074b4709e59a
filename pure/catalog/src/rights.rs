//! Rights in the catalog: whether a role may make a change, who owns what is new, and GRANT,
//! OWNER TO and the like over objects with names.

mod check;
mod grant;
mod owner;
mod roles;

use crate::apply::{no_database, no_relation};
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::domains::Domain;
use crate::enums::EnumType;
use crate::functions::Function;
use ::rights::{Acl, By, Change, ObjectKind, Rights, RoleId, Target};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::full_name::schema_of;
use base::{SqlError, SqlState};

/// An object that a statement names.
struct Found {
    target: Target,
    kind: ObjectKind,
    name: String,
}

impl Catalog {
    /// The owner of a database.
    pub fn owner_of_database(&self, database: &Database) -> RoleId {
        self.rights.owner(&Target::Database(database.id.0))
    }

    /// Whether a role owns a relation or its database, as a member of the owner or itself.
    pub fn owns(&self, role: RoleId, database: &Database, relation: u32) -> bool {
        let database_owner = self.owner_of_database(database);
        let is = |owner: RoleId| self.rights.is_member(role, owner, database_owner);
        is(self.rights.owner(&Target::Relation(relation))) || is(database_owner)
    }

    pub(crate) fn rights_mut(&mut self) -> &mut Rights {
        Arc::make_mut(&mut self.rights)
    }

    fn database_named(&self, name: &str) -> Result<&Arc<Database>, CatalogError> {
        self.databases.get(name).ok_or_else(|| no_database(name))
    }

    /// A change of roles or rights, with `database` as the one of names.
    pub(crate) fn change_rights(
        &mut self,
        database: &str,
        change: &Change,
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let notices = match change {
            Change::CreateRole { name, options } => {
                let id = RoleId(self.next_number());
                self.rights_mut().create_role((name, options), by, id)?
            }
            Change::AlterRole { .. } | Change::RenameRole { .. } | Change::Members { .. } => {
                self.rights_mut().change_roles(change, by)?
            }
            Change::DropRoles { roles, if_exists } => {
                self.drop_roles(database, (roles, *if_exists), by)?
            }
            Change::Setting { .. } => self.change_setting(change, by)?,
            Change::Grant(grant) => self.grant(database, grant, by)?,
            Change::Defaults {
                roles,
                schemas,
                grant,
            } => self.change_defaults(database, (roles, schemas), grant, by)?,
            Change::Owner {
                kind,
                name,
                if_exists,
                to,
            } => self.change_owner(database, (*kind, name, *if_exists), to, by)?,
            Change::Reassign { roles, to } => self.reassign(database, roles, to, by)?,
            Change::ConnectionLimit {
                database: name,
                limit,
            } => {
                self.database_named(name)?;
                if !self.rights.is_superuser(by.current) {
                    self.check_database(name, by)?;
                }
                self.database_mut(name)?.connection_limit = *limit;
                Vec::new()
            }
            Change::DropOwned { roles, cascade } => {
                return self.drop_owned(database, (roles, *cascade), by);
            }
        };
        Ok(Applied {
            notices,
            ..Applied::default()
        })
    }

    /// Gives what a command has made its owner, and forgets what it has removed.
    pub(crate) fn keep_owners(&mut self, before: &Catalog, by: &By) {
        let is_new = |id: u32| id >= before.next_id && id < self.next_id;
        let mut new = Vec::new();
        if self.next_id > before.next_id
            && (by.current != RoleId::OWNER || !self.rights.defaults.is_empty())
        {
            for (name, database) in &self.databases {
                let id = database.id.0;
                let earlier = before.databases.get(name);
                // A sequence that begins anew has another number, and the owner that it had.
                let known = |(name, kind, _): &(&str, ObjectKind, u32)| {
                    let earlier = earlier.filter(|_| *kind == ObjectKind::Sequence);
                    earlier.is_some_and(|earlier| earlier.sequences.contains_key(*name))
                };
                if is_new(id) {
                    new.push((Target::Database(id), ObjectKind::Database, (id, 0)));
                }
                let types = database.enums.values().filter(|one| is_new(one.id));
                let place = |name: &str| (id, schema_of(name));
                let functions = database.all_functions().filter(|one| is_new(one.id));
                new.extend(
                    functions.map(|one| (Target::Relation(one.id), one.kind(), place(&one.name))),
                );
                let domains = database.domains.values().filter(|one| is_new(one.id));
                new.extend(domains.map(|one| {
                    let target = Target::Relation(one.id);
                    (target, ObjectKind::Type, place(&one.name))
                }));
                new.extend(types.map(|one| {
                    let target = Target::Relation(one.id);
                    (target, ObjectKind::Type, place(&one.name))
                }));
                let relations = database.relations();
                let found = relations.filter(|found| is_new(found.2) && !known(found));
                new.extend(
                    found.map(|(name, kind, relation)| {
                        (Target::Relation(relation), kind, place(name))
                    }),
                );
            }
        }
        for (target, kind, place) in new {
            let owner = self.owner_of_new(&target).unwrap_or(by.current);
            let acl = self.first_acl(place, kind, owner);
            let object = self.rights_mut().object_mut(&target);
            object.owner = owner;
            object.acl = acl;
        }
        if !self.rights.objects.is_empty() && self.databases != before.databases {
            self.forget_rights();
        }
    }

    /// A sequence of a column belongs to whom the table belongs that was there before.
    fn owner_of_new(&self, target: &Target) -> Option<RoleId> {
        let Target::Relation(id) = target else {
            return None;
        };
        let mut databases = self.databases.values();
        databases.find_map(|database| {
            let sequence = database.sequences.values().find(|one| one.id.0 == *id)?;
            let (table, _) = sequence.owned_by.as_ref()?;
            let table = Target::Relation(database.table(table)?.id.0);
            Some(self.rights.objects.get(&table)?.owner)
        })
    }

    /// Privileges of a new object, if they are others than usual.
    fn first_acl(
        &self,
        (database, schema): (u32, u32),
        kind: ObjectKind,
        owner: RoleId,
    ) -> Option<Acl> {
        let kind = match kind {
            ObjectKind::View => ObjectKind::Table,
            ObjectKind::Procedure => ObjectKind::Function,
            other => other,
        };
        let of = |schema| self.rights.defaults.get(&(database, owner, schema, kind));
        let (everywhere, here) = (of(0), of(schema));
        if everywhere.is_none() && here.is_none() {
            return None;
        }
        let mut acl = everywhere.cloned().unwrap_or_else(|| kind.first_acl(owner));
        for item in here.into_iter().flat_map(|acl| &acl.0) {
            acl.add(*item);
        }
        Some(acl)
    }

    fn forget_rights(&mut self) {
        let mut known = alloc::collections::BTreeSet::new();
        for database in self.databases.values() {
            let id = database.id.0;
            known.insert(Target::Database(id));
            let schemas = database.schemas.keys().map(String::as_str);
            let schemas = schemas.chain(["pg_catalog", "information_schema"]);
            known.extend(schemas.map(|name| Target::Schema(id, name.into())));
            known.extend(database.relations().map(|(_, _, id)| Target::Relation(id)));
            known.extend(database.enums.values().map(|one| Target::Relation(one.id)));
            known.extend(
                database
                    .domains
                    .values()
                    .map(|one| Target::Relation(one.id)),
            );
            known.extend(database.all_functions().map(|one| Target::Relation(one.id)));
        }
        let rights = self.rights_mut();
        rights.objects.retain(|target, _| known.contains(target));
        let has = |database: u32| database == 0 || known.contains(&Target::Database(database));
        rights.settings.retain(|(_, database), _| has(*database));
        rights.defaults.retain(|(database, ..), _| has(*database));
    }
}

impl Domain {
    fn as_found(&self) -> Found {
        Found {
            target: Target::Relation(self.id),
            kind: ObjectKind::Type,
            name: self.name.clone(),
        }
    }
}

impl Function {
    /// Its kind among the objects that have an owner.
    pub fn kind(&self) -> ObjectKind {
        match self.is_procedure {
            true => ObjectKind::Procedure,
            false => ObjectKind::Function,
        }
    }

    fn as_found(&self) -> Found {
        Found {
            target: Target::Relation(self.id),
            kind: self.kind(),
            name: self.name.clone(),
        }
    }
}

impl EnumType {
    fn as_found(&self) -> Found {
        Found {
            target: Target::Relation(self.id),
            kind: ObjectKind::Type,
            name: self.name.clone(),
        }
    }
}

impl Database {
    /// Name, kind and number of all relations that have an owner.
    pub fn relations(&self) -> impl Iterator<Item = (&str, ObjectKind, u32)> {
        let tables = self.tables.values();
        let tables = tables.map(|table| (table.name.as_str(), ObjectKind::Table, table.id.0));
        let views = self.views.values();
        let views = views.map(|view| (view.name.as_str(), ObjectKind::View, view.id.0));
        let sequences = self.sequences.values();
        let sequences = sequences.map(|sequence| {
            let name = sequence.name.as_str();
            (name, ObjectKind::Sequence, sequence.id.0)
        });
        tables.chain(views).chain(sequences)
    }

    /// A table, view or sequence.
    ///
    /// # Errors
    /// 42P01, 42809 for an index.
    fn found(&self, name: &str) -> Result<Found, CatalogError> {
        let (kind, id) = self.relation(name).ok_or_else(|| no_relation(name))?;
        let kind = match kind {
            "table" => ObjectKind::Table,
            "view" => ObjectKind::View,
            "sequence" => ObjectKind::Sequence,
            _ => {
                let message = format!("\"{name}\" is an index");
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
            }
        };
        Ok(Found {
            target: Target::Relation(id),
            kind,
            name: name.into(),
        })
    }
}
