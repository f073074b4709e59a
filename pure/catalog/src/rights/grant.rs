//! GRANT, REVOKE and ALTER DEFAULT PRIVILEGES over objects with names.

use super::Found;
use crate::command::CatalogError;
use crate::desc::*;
use crate::functions::no_function;
use crate::schemas::no_schema;
use ::rights::{Acl, By, Grant, Granting, ObjectKind, ObjectNames, Privileges, RoleId, RoleName};
use ::rights::{Target, denied};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::full_name::{self, schema_of};
use base::{SqlError, SqlState};

type Noticed = Result<Vec<String>, CatalogError>;

impl Catalog {
    pub(super) fn grant(&mut self, database: &str, grant: &Grant, by: &By) -> Noticed {
        let found = self.objects(database, &grant.objects)?;
        let mut roles = Vec::new();
        for role in &grant.roles {
            roles.push(match role {
                RoleName::Public => RoleId::PUBLIC,
                other => self.rights.resolve(other, by)?,
            });
        }
        let mut notices = Vec::new();
        for object in &found {
            notices.extend(self.grant_on(database, object, (grant, &roles), by)?);
        }
        Ok(notices)
    }

    /// The objects that GRANT names.
    fn objects(&self, name: &str, objects: &ObjectNames) -> Result<Vec<Found>, CatalogError> {
        let database = self.database_named(name)?;
        match objects {
            ObjectNames::Relations(names) => {
                names.iter().map(|name| database.found(name)).collect()
            }
            ObjectNames::Sequences(names) => {
                let found = names.iter().map(|name| {
                    let found = database.found(name)?;
                    match found.kind {
                        ObjectKind::Sequence => Ok(found),
                        _ => {
                            let message = format!("\"{name}\" is not a sequence");
                            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
                        }
                    }
                });
                found.collect()
            }
            ObjectNames::Databases(names) => {
                let found = names.iter().map(|name| {
                    let id = self.database_named(name)?.id.0;
                    Ok(Found {
                        target: Target::Database(id),
                        kind: ObjectKind::Database,
                        name: name.clone(),
                    })
                });
                found.collect()
            }
            ObjectNames::Schemas(names) => {
                names
                    .iter()
                    .try_for_each(|name| known_schema(database, name).map(|_| ()))?;
                let found = names.iter().map(|name| Found {
                    target: Target::Schema(database.id.0, name.clone()),
                    kind: ObjectKind::Schema,
                    name: name.clone(),
                });
                Ok(found.collect())
            }
            ObjectNames::All(kind, schemas) => {
                let schemas = schemas.iter().map(|name| known_schema(database, name));
                let schemas = schemas.collect::<Result<Vec<u32>, _>>()?;
                let relations = database.relations().filter(|(name, found, _)| {
                    let is_kind =
                        (*kind == ObjectKind::Sequence) == (*found == ObjectKind::Sequence);
                    is_kind && schemas.contains(&schema_of(name))
                });
                let found = relations.map(|(name, kind, id)| Found {
                    target: Target::Relation(id),
                    kind,
                    name: name.into(),
                });
                Ok(found.collect())
            }
            ObjectNames::ToCome(_) => Ok(Vec::new()),
            ObjectNames::Routines(_) | ObjectNames::AllRoutines { .. } => {
                database.routines_of(objects)
            }
        }
    }

    fn grant_on(
        &mut self,
        name: &str,
        object: &Found,
        (grant, roles): (&Grant, &[RoleId]),
        by: &By,
    ) -> Noticed {
        let database = self.database_named(name)?;
        let database_owner = self.owner_of_database(database);
        let mut whole = Privileges::NONE;
        let mut columns: Vec<(u16, Privileges)> = Vec::new();
        if grant.privileges.is_empty() {
            whole = object.kind.all();
        }
        for (privilege, names) in &grant.privileges {
            if names.is_empty() {
                check_kind(*privilege, object.kind)?;
                whole = whole.with(privilege.and(object.kind.all()));
                continue;
            }
            if !matches!(object.kind, ObjectKind::Table | ObjectKind::View) {
                let message = "column privileges are only valid for relations";
                return Err(SqlError::new(SqlState::INVALID_GRANT, message));
            }
            let privilege = match privilege.is_empty() {
                true => ObjectKind::Column.all(),
                false => *privilege,
            };
            check_kind(privilege, ObjectKind::Column)?;
            for column in names {
                columns.push((place_of(database, &object.name, column)?, privilege));
            }
        }
        let mut notices = Vec::new();
        if !whole.is_empty() {
            notices.extend(self.grant_one(
                object,
                None,
                (whole, grant, roles),
                database_owner,
                by,
            )?);
            // What is revoked of a table is revoked of its columns.
            if !grant.is_grant {
                let of = self.rights.objects.get(&object.target);
                let places: Vec<u16> =
                    of.map_or(Vec::new(), |of| of.columns.keys().copied().collect());
                let whole = whole.and(ObjectKind::Column.all());
                for place in places {
                    let what = (whole, grant, roles);
                    drop(self.grant_one(object, Some(place), what, database_owner, by)?);
                }
            }
        }
        for (place, privileges) in columns {
            let what = (privileges, grant, roles);
            notices.extend(self.grant_one(object, Some(place), what, database_owner, by)?);
        }
        Ok(notices)
    }

    fn grant_one(
        &mut self,
        object: &Found,
        column: Option<u16>,
        (wanted, grant, roles): (Privileges, &Grant, &[RoleId]),
        database_owner: RoleId,
        by: &By,
    ) -> Noticed {
        let rights = self.rights_mut();
        let owner = rights.owner(&object.target);
        let groups = rights.groups(by.current, database_owner);
        let table = rights.acl(&object.target);
        let table = table.unwrap_or_else(|| object.kind.first_acl(owner));
        let own = rights.objects.get(&object.target);
        let own = column.and_then(|column| own?.columns.get(&column)).cloned();
        let mut acl = match column {
            None => table.clone(),
            Some(_) => own.unwrap_or_default(),
        };
        let all = rights.is_superuser(by.current) || groups.contains(&owner);
        let options = table.options(&groups).with(acl.options(&groups));
        let grantor = match all {
            true => owner,
            false => grantor(&table, &acl, &groups, by.current, wanted),
        };
        let allowed = if all { wanted } else { wanted.and(options) };
        let has = table.privileges(&groups).with(acl.privileges(&groups));
        if allowed.is_empty() && has.is_empty() {
            let (noun, name) = (object.kind.noun(), full_name::own(&object.name));
            return Err(denied(format!("permission denied for {noun} {name}")));
        }
        let notices = told(full_name::own(&object.name), grant, allowed, wanted);
        if allowed.is_empty() {
            return Ok(notices);
        }
        for grantee in roles {
            let one = Granting {
                owner,
                grantor,
                grantee: *grantee,
                privileges: allowed,
                option: grant.option,
                cascade: grant.cascade,
            };
            match grant.is_grant {
                true => acl.grant(one)?,
                false => acl.revoke(one)?,
            }
        }
        let entry = rights.object_mut(&object.target);
        match column {
            None => entry.acl = Some(acl),
            Some(column) if acl.0.is_empty() => drop(entry.columns.remove(&column)),
            Some(column) => drop(entry.columns.insert(column, acl)),
        }
        Ok(notices)
    }

    /// ALTER DEFAULT PRIVILEGES.
    pub(super) fn change_defaults(
        &mut self,
        database: &str,
        (roles, schemas): (&[RoleName], &[String]),
        grant: &Grant,
        by: &By,
    ) -> Noticed {
        let id = self.database_named(database)?.id.0;
        let ObjectNames::ToCome(kind) = grant.objects else {
            unreachable!("the parser makes no other");
        };
        let mut makers = Vec::new();
        for role in roles {
            makers.push(self.rights.resolve(role, by)?);
        }
        if makers.is_empty() {
            makers.push(by.current);
        }
        let here = self.database_named(database)?;
        let mut places = schemas.iter().map(|name| known_schema(here, name));
        let mut places = places.by_ref().collect::<Result<Vec<u32>, _>>()?;
        if places.is_empty() {
            places.push(0);
        }
        let mut wanted = Privileges::NONE;
        for (privilege, _) in &grant.privileges {
            check_kind(*privilege, kind)?;
            wanted = wanted.with(*privilege);
        }
        if grant.privileges.is_empty() {
            wanted = kind.all();
        }
        for maker in makers {
            if !self.rights.is_member(by.current, maker, RoleId::PUBLIC) {
                return Err(denied("permission denied to change default privileges"));
            }
            for place in &places {
                self.change_default((id, maker, *place, kind), (wanted, grant), by)?;
            }
        }
        Ok(Vec::new())
    }

    /// The privileges of what a role will make in a schema; 0: anywhere.
    fn change_default(
        &mut self,
        (id, maker, schema, kind): (u32, RoleId, u32, ObjectKind),
        (wanted, grant): (Privileges, &Grant),
        by: &By,
    ) -> Result<(), CatalogError> {
        let mut acl = match self.rights.defaults.get(&(id, maker, schema, kind)) {
            Some(acl) => acl.clone(),
            None if schema != 0 => Acl::default(),
            None => kind.first_acl(maker),
        };
        for role in &grant.roles {
            let grantee = match role {
                RoleName::Public => RoleId::PUBLIC,
                other => self.rights.resolve(other, by)?,
            };
            let one = Granting {
                owner: maker,
                grantor: maker,
                grantee,
                privileges: wanted,
                option: grant.option,
                cascade: grant.cascade,
            };
            match grant.is_grant {
                true => acl.grant(one)?,
                false => acl.revoke(one)?,
            }
        }
        let usual = match schema {
            0 => kind.first_acl(maker),
            _ => Acl::default(),
        };
        let defaults = &mut self.rights_mut().defaults;
        let same = acl.0.len() == usual.0.len() && acl.0.iter().all(|one| usual.0.contains(one));
        match same {
            true => drop(defaults.remove(&(id, maker, schema, kind))),
            false => drop(defaults.insert((id, maker, schema, kind), acl)),
        }
        Ok(())
    }
}

impl Database {
    /// The functions and procedures that GRANT names.
    fn routines_of(&self, objects: &ObjectNames) -> Result<Vec<Found>, CatalogError> {
        match objects {
            ObjectNames::Routines(numbers) => {
                let found = numbers.iter().map(|number| {
                    let found = self.function(*number);
                    let found = found.ok_or_else(|| no_function(*number))?;
                    Ok(found.as_found())
                });
                found.collect()
            }
            ObjectNames::AllRoutines {
                functions,
                procedures,
                schemas,
            } => {
                let schemas = schemas.iter().map(|name| known_schema(self, name));
                let schemas = schemas.collect::<Result<Vec<u32>, _>>()?;
                let all = self.all_functions().filter(|one| {
                    let is_kind = match one.is_procedure {
                        true => *procedures,
                        false => *functions,
                    };
                    is_kind && schemas.contains(&schema_of(&one.name))
                });
                Ok(all.map(|one| one.as_found()).collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// What is said of privileges that the role may not grant.
fn told(name: &str, grant: &Grant, allowed: Privileges, wanted: Privileges) -> Vec<String> {
    let done = match grant.is_grant {
        true => "were granted",
        false => "could be revoked",
    };
    if allowed.is_empty() {
        return Vec::from([format!("no privileges {done} for \"{name}\"")]);
    }
    match allowed == wanted || grant.privileges.is_empty() {
        true => Vec::new(),
        false => Vec::from([format!("not all privileges {done} for \"{name}\"")]),
    }
}

/// The role among those of `role` that may grant most of what is wanted; itself if it may all.
fn grantor(
    table: &Acl,
    column: &Acl,
    groups: &alloc::collections::BTreeSet<RoleId>,
    role: RoleId,
    wanted: Privileges,
) -> RoleId {
    let may = |role: RoleId| {
        let alone = [role].into();
        let options = table.options(&alone).with(column.options(&alone));
        options.and(wanted).0.count_ones()
    };
    let best = groups
        .iter()
        .copied()
        .max_by_key(|one| (may(*one), *one == role));
    best.unwrap_or(role)
}

fn place_of(database: &Database, relation: &str, column: &str) -> Result<u16, CatalogError> {
    let place = match (database.table(relation), database.view(relation)) {
        (Some(table), _) => {
            let found = table.column(column).filter(|(_, column)| !column.hidden);
            found.map(|(place, _)| place)
        }
        (None, view) => view.and_then(|view| {
            let place = view.columns.iter().position(|own| own.name == column)?;
            Some(place as u16)
        }),
    };
    place.ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{relation}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })
}

fn check_kind(privilege: Privileges, kind: ObjectKind) -> Result<(), CatalogError> {
    if kind.all().has(privilege) {
        return Ok(());
    }
    let noun = match kind {
        // GRANT ON TABLE takes sequences, and leaves out what they do not have.
        ObjectKind::Sequence if ObjectKind::Table.all().has(privilege) => return Ok(()),
        ObjectKind::View | ObjectKind::Index => "table",
        other => other.noun(),
    };
    let message = format!("invalid privilege type {} for {noun}", privilege.words());
    Err(SqlError::new(SqlState::INVALID_GRANT, message))
}

fn known_schema(database: &Database, name: &str) -> Result<u32, CatalogError> {
    database.schema(name).ok_or_else(|| no_schema(name))
}
