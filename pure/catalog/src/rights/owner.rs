//! ALTER ... OWNER TO, REASSIGN OWNED, DROP OWNED.

use super::Found;
use crate::command::{Applied, CatalogError};
use crate::desc::*;
use crate::enums::no_type;
use crate::functions::{FunctionChange, no_function};
use crate::schemas::{SchemaChange, no_schema};
use ::rights::{By, ObjectKind, Privileges, RoleId, RoleName, Target, denied};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::full_name::{self, schema_of};
use base::{SqlError, SqlState};
use core::cmp::Reverse;

type Noticed = Result<Vec<String>, CatalogError>;

impl Catalog {
    pub(super) fn change_owner(
        &mut self,
        database: &str,
        (kind, name, if_exists): (ObjectKind, &str, bool),
        to: &RoleName,
        by: &By,
    ) -> Noticed {
        let found = match self.named_object(database, kind, name) {
            Ok(found) => found,
            Err(error) if if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
                return Ok(Vec::from([format!("{}, skipping", error.fields().message)]));
            }
            Err(error) => return Err(error),
        };
        let owner = self.database_named(database)?;
        let database_owner = self.owner_of_database(owner);
        let new = self.rights.resolve(to, by)?;
        let own_name = full_name::own(&found.name);
        if kind == ObjectKind::Index {
            let what = (&found.target, ObjectKind::Index, own_name);
            self.rights.check_owner(by.current, what, database_owner)?;
            return Ok(Vec::from([format!(
                "cannot change owner of index \"{name}\""
            )]));
        }
        if found.kind == ObjectKind::Sequence
            && let Some((table, _)) = owner.sequences[name].owned_by.as_ref()
        {
            let message = format!("cannot change owner of sequence \"{name}\"");
            let detail = format!("Sequence \"{name}\" is linked to table \"{table}\".");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        if self.rights.owner(&found.target) == new {
            return Ok(Vec::new());
        }
        if !self.rights.is_superuser(by.current) {
            let what = (&found.target, found.kind, own_name);
            self.rights.check_owner(by.current, what, database_owner)?;
            if !self.rights.is_member(by.current, new, database_owner) {
                let message = format!("must be member of role \"{}\"", self.rights.name(new));
                return Err(denied(message));
            }
            match found.kind {
                ObjectKind::Database if !self.rights.creates_databases(by.current) => {
                    return Err(denied("permission denied to change owner of database"));
                }
                ObjectKind::Schema => {
                    let target = (&Target::Database(owner.id.0), ObjectKind::Database);
                    let own = self.rights.privileges(by.current, target, database_owner);
                    if !own.has(Privileges::CREATE) {
                        let database = &owner.name;
                        return Err(denied(format!("permission denied for database {database}")));
                    }
                }
                ObjectKind::Database => {}
                _ => {
                    let new_one = By {
                        current: new,
                        ..by.clone()
                    };
                    self.check_create(database, schema_of(&found.name), &new_one)?;
                }
            }
        }
        self.own(database, &found, new)?;
        Ok(Vec::new())
    }

    /// Gives an object, with the sequences of a table's columns, to another role.
    fn own(&mut self, database: &str, found: &Found, new: RoleId) -> Result<(), CatalogError> {
        let mut targets = Vec::from([found.target.clone()]);
        if found.kind == ObjectKind::Table {
            let sequences = self.database_named(database)?.sequences.values();
            let owned = sequences.filter(|sequence| {
                let by = sequence.owned_by.as_ref();
                by.is_some_and(|(table, _)| *table == found.name)
            });
            targets.extend(owned.map(|sequence| Target::Relation(sequence.id.0)));
        }
        for target in targets {
            let object = self.rights_mut().object_mut(&target);
            let old = core::mem::replace(&mut object.owner, new);
            let columns = object.columns.values_mut();
            for acl in columns.chain(&mut object.acl) {
                acl.replace(old, new);
            }
        }
        Ok(())
    }

    fn named_object(
        &self,
        name: &str,
        kind: ObjectKind,
        object: &str,
    ) -> Result<Found, CatalogError> {
        let found = match kind {
            ObjectKind::Database => Found {
                target: Target::Database(self.database_named(object)?.id.0),
                kind,
                name: object.into(),
            },
            ObjectKind::Schema => {
                let database = self.database_named(name)?;
                database.schema(object).ok_or_else(|| no_schema(object))?;
                Found {
                    target: Target::Schema(database.id.0, object.into()),
                    kind,
                    name: object.into(),
                }
            }
            ObjectKind::Index => {
                let database = self.database_named(name)?;
                let (table, _) = database
                    .index(object)
                    .ok_or_else(|| crate::apply::no_relation(object))?;
                Found {
                    target: Target::Relation(table.id.0),
                    kind,
                    name: object.into(),
                }
            }
            ObjectKind::Type => {
                let database = self.database_named(name)?;
                let of_enum = database.enums.get(object).map(|found| found.as_found());
                let domain = database.domains.get(object).map(|found| found.as_found());
                of_enum.or(domain).ok_or_else(|| no_type(object))?
            }
            // By its number: several functions may have one name.
            ObjectKind::Function | ObjectKind::Procedure => {
                let number = object.parse().unwrap_or(0);
                let found = self.database_named(name)?.function(number);
                found.ok_or_else(|| no_function(number))?.as_found()
            }
            _ => self.database_named(name)?.found(object)?,
        };
        // ALTER TABLE takes views and sequences as well.
        if kind == found.kind || kind == ObjectKind::Table {
            return Ok(found);
        }
        let message = format!("\"{object}\" is not a {}", kind.noun());
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
    }

    pub(super) fn reassign(
        &mut self,
        database: &str,
        roles: &[RoleName],
        to: &RoleName,
        by: &By,
    ) -> Noticed {
        let old = self.own_roles(roles, by, "permission denied to reassign objects")?;
        let new = self.rights.resolve(to, by)?;
        if !self.rights.is_member(by.current, new, RoleId::PUBLIC) {
            return Err(denied("permission denied to reassign objects"));
        }
        for found in self.owned(database, &old)? {
            self.own(database, &found, new)?;
        }
        let databases: Vec<u32> = self.databases.values().map(|one| one.id.0).collect();
        for id in databases {
            let target = Target::Database(id);
            if old.contains(&self.rights.owner(&target)) {
                let found = Found {
                    target,
                    kind: ObjectKind::Database,
                    name: String::new(),
                };
                self.own(database, &found, new)?;
            }
        }
        Ok(Vec::new())
    }

    /// The relations and types of a database that these roles own.
    fn owned(&self, database: &str, roles: &[RoleId]) -> Result<Vec<Found>, CatalogError> {
        let database = self.database_named(database)?;
        let relations = database.relations().map(|(name, kind, id)| Found {
            target: Target::Relation(id),
            kind,
            name: name.into(),
        });
        let types = database.enums.values().map(|found| found.as_found());
        let schemas = database.schemas.keys().map(|name| Found {
            target: Target::Schema(database.id.0, name.clone()),
            kind: ObjectKind::Schema,
            name: name.clone(),
        });
        let domains = database.domains.values().map(|found| found.as_found());
        let functions = database.all_functions().map(|found| found.as_found());
        let found = relations.chain(types).chain(domains);
        let found = found.chain(functions).chain(schemas);
        let is_owned = |found: &Found| roles.contains(&self.rights.owner(&found.target));
        Ok(found.filter(is_owned).collect())
    }

    fn own_roles(
        &self,
        roles: &[RoleName],
        by: &By,
        refused: &str,
    ) -> Result<Vec<RoleId>, CatalogError> {
        let mut found = Vec::new();
        for role in roles {
            let id = self.rights.resolve(role, by)?;
            if id == RoleId::OWNER {
                let message = "cannot drop objects owned by role postgres because they are \
                               required by the database system";
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message));
            }
            if !self.rights.groups(by.current, RoleId::PUBLIC).contains(&id)
                && !self.rights.is_superuser(by.current)
            {
                return Err(denied(refused));
            }
            found.push(id);
        }
        Ok(found)
    }

    pub(super) fn drop_owned(
        &mut self,
        database: &str,
        (roles, cascade): (&[RoleName], bool),
        by: &By,
    ) -> Result<Applied, CatalogError> {
        let roles = self.own_roles(roles, by, "permission denied to drop objects")?;
        let owned = self.owned(database, &roles)?;
        let names = |wanted: ObjectKind| -> Vec<String> {
            let found = owned.iter().filter(|found| found.kind == wanted);
            found.map(|found| found.name.clone()).collect()
        };
        let mut all = Applied::default();
        self.drop_owned_queries(database, (&owned, cascade), &mut all)?;
        // What went along with a view is gone.
        let here = self.database_named(database)?;
        let mut tables = names(ObjectKind::Table);
        tables.retain(|name| here.tables.contains_key(name));
        if !tables.is_empty() {
            let applied = self.drop_tables(database, &tables, false, cascade)?;
            all.notices.extend(applied.notices);
            all.dropped.extend(applied.dropped);
        }
        // Those of the tables have gone with them.
        let here = self.database_named(database)?;
        let mut sequences = names(ObjectKind::Sequence);
        sequences.retain(|name| here.sequence(name).is_some());
        if !sequences.is_empty() {
            let applied = self.drop_sequences(database, &sequences, false, cascade)?;
            all.notices.extend(applied.notices);
            all.dropped.extend(applied.dropped);
        }
        let types = names(ObjectKind::Type);
        if !types.is_empty() {
            self.drop_types(database, types, cascade)?;
        }
        let schemas = names(ObjectKind::Schema);
        if !schemas.is_empty() {
            let change = SchemaChange::Drop {
                names: schemas,
                if_exists: false,
                cascade,
            };
            let applied = self.change_schema(database, &change, by)?;
            all.notices.extend(applied.notices);
            all.dropped.extend(applied.dropped);
        }
        self.revoke_owned(database, &roles, by)?;
        self.revoke_policies(database, &roles);
        Ok(all)
    }

    /// Functions and procedures go, then views: the youngest first, for it may use its elders.
    fn drop_owned_queries(
        &mut self,
        database: &str,
        (owned, cascade): (&[Found], bool),
        all: &mut Applied,
    ) -> Result<(), CatalogError> {
        let functions = owned
            .iter()
            .filter_map(|found| match (&found.target, found.kind) {
                (Target::Relation(id), ObjectKind::Function | ObjectKind::Procedure) => Some(*id),
                _ => None,
            });
        let functions: Vec<u32> = functions.collect();
        let change = FunctionChange::Drop { functions, cascade };
        let applied = self.change_functions(database, &change)?;
        all.notices.extend(applied.notices);
        let relations = owned.iter().filter_map(|found| match found.target {
            Target::Relation(id) => Some((Reverse(id), &found.name)),
            _ => None,
        });
        let mut relations: Vec<_> = relations.collect();
        relations.sort();
        for (_, name) in relations {
            let here = self.database_named(database)?;
            let names = core::slice::from_ref(name);
            let applied = if here.stored.contains_key(name) {
                self.drop_stored(database, names, false, cascade)?
            } else if here.views.contains_key(name) {
                self.drop_views(database, names, false, cascade)?
            } else {
                continue;
            };
            all.notices.extend(applied.notices);
            all.dropped.extend(applied.dropped);
        }
        Ok(())
    }

    /// Takes away what these roles were given, or have given, as far as others may revoke it.
    fn revoke_owned(
        &mut self,
        database: &str,
        roles: &[RoleId],
        by: &By,
    ) -> Result<(), CatalogError> {
        let here = self.database_named(database)?;
        let (id, owner) = (here.id.0, self.owner_of_database(here));
        let mut places: Vec<Target> = here
            .relations()
            .map(|(_, _, relation)| Target::Relation(relation))
            .collect();
        places.push(Target::Database(id));
        let schemas = here.schemas.keys();
        places.extend(schemas.map(|name| Target::Schema(id, name.clone())));
        let superuser = self.rights.is_superuser(by.current);
        let groups = self.rights.groups(by.current, owner);
        let rights = self.rights_mut();
        for target in places {
            let Some(object) = rights.objects.get_mut(&target) else {
                continue;
            };
            let all = superuser || groups.contains(&object.owner);
            for acl in object.columns.values_mut().chain(&mut object.acl) {
                acl.0.retain(|item| {
                    let is_theirs = roles.contains(&item.grantee) || roles.contains(&item.grantor);
                    !(is_theirs && (all || groups.contains(&item.grantor)))
                });
            }
            object.columns.retain(|_, acl| !acl.0.is_empty());
        }
        rights.defaults.retain(|(place, role, ..), acl| {
            acl.0.retain(|item| !roles.contains(&item.grantee));
            *place != id || !roles.contains(role)
        });
        Ok(())
    }
}
