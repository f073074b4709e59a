//! DROP ROLE, and settings of roles and databases.

use crate::command::CatalogError;
use crate::desc::*;
use ::rights::{By, Change, ObjectKind, RoleId, RoleName, Target, denied};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{SqlError, SqlState};

type Noticed = Result<Vec<String>, CatalogError>;

impl Catalog {
    pub(super) fn drop_roles(
        &mut self,
        database: &str,
        what: (&[RoleName], bool),
        by: &By,
    ) -> Noticed {
        let (notices, roles) = self.rights.roles_to_drop(what, by)?;
        for role in &roles {
            let lines = self.depending(database, *role);
            if !lines.is_empty() {
                let name = self.rights.name(*role);
                let message =
                    format!("role \"{name}\" cannot be dropped because some objects depend on it");
                let error = SqlError::new(SqlState::DEPENDENT_OBJECTS, message);
                return Err(error.detail(lines.join("\n")));
            }
        }
        for role in roles {
            self.rights_mut().remove_role(role);
        }
        Ok(notices)
    }

    /// What depends on a role, in PostgreSQL's words.
    fn depending(&self, here: &str, role: RoleId) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, database) in &self.databases {
            let target = Target::Database(database.id.0);
            lines.extend(self.line_of(&target, &format!("database {name}"), role));
            let inside = self.depending_in(database, role);
            match (name == here, inside.len()) {
                (true, _) => lines.extend(inside),
                (false, 0) => {}
                (false, 1) => lines.push(format!("1 object in database {name}")),
                (false, count) => lines.push(format!("{count} objects in database {name}")),
            }
        }
        lines
    }

    /// What an object has to do with a role.
    fn line_of(&self, target: &Target, what: &str, role: RoleId) -> Option<String> {
        let object = self.rights.objects.get(target)?;
        if object.owner == role {
            return Some(format!("owner of {what}"));
        }
        let named = object.acl.as_ref().is_some_and(|acl| acl.names(role));
        named.then(|| format!("privileges for {what}"))
    }

    fn depending_in(&self, database: &Database, role: RoleId) -> Vec<String> {
        let id = database.id.0;
        let schemas = database.schemas.keys().filter_map(|name| {
            let target = Target::Schema(id, name.clone());
            self.line_of(&target, &format!("schema {name}"), role)
        });
        let mut lines: Vec<String> = schemas.collect();
        let types = database.enums.values();
        let types = types.map(|found| (found.id, ObjectKind::Type, found.name.as_str()));
        let functions = database.all_functions();
        let functions = functions.map(|one| (one.id, one.kind(), one.name.as_str()));
        let mut relations: Vec<(u32, ObjectKind, &str)> = database
            .relations()
            .map(|(name, kind, number)| (number, kind, name))
            .chain(types)
            .chain(functions)
            .collect();
        relations.sort_by_key(|(number, ..)| *number);
        for (number, kind, relation) in relations {
            let target = Target::Relation(number);
            let what = format!("{} {relation}", kind.noun());
            lines.extend(self.line_of(&target, &what, role));
            let object = self.rights.objects.get(&target);
            let others = object.filter(|object| object.owner != role);
            for (place, acl) in others.into_iter().flat_map(|object| &object.columns) {
                if acl.names(role) {
                    let column = column_name(database, relation, *place);
                    lines.push(format!("privileges for column {column} of {what}"));
                }
            }
        }
        for (table, policy) in database.policies() {
            if policy.roles.contains(&role) {
                let (policy, table) = (&policy.name, &table.name);
                lines.push(format!("target of policy {policy} on table {table}"));
            }
        }
        for ((place, maker, _, kind), acl) in &self.rights.defaults {
            if *place != id || (*maker != role && !acl.names(role)) {
                continue;
            }
            let things = match kind {
                ObjectKind::Sequence => "sequences",
                _ => "relations",
            };
            let verb = match *maker == role {
                true => "owner of",
                false => "privileges for",
            };
            let maker = self.rights.name(*maker);
            lines.push(format!(
                "{verb} default privileges on new {things} belonging to role {maker}"
            ));
        }
        lines
    }

    pub(super) fn change_setting(&mut self, change: &Change, by: &By) -> Noticed {
        let Change::Setting {
            role,
            database,
            name,
            value,
        } = change
        else {
            unreachable!("called for settings only");
        };
        let place = match database {
            Some(name) => self.database_named(name)?.id.0,
            None => 0,
        };
        let superuser = self.rights.is_superuser(by.current);
        let of = match role {
            Some(role) => {
                let id = self.rights.resolve(role, by)?;
                if self.rights.is_superuser(id) && !superuser {
                    return Err(denied("must be superuser to alter superusers"));
                }
                if !self.rights.creates_roles(by.current) && id != by.current {
                    return Err(denied("permission denied"));
                }
                id
            }
            None if database.is_none() && !superuser => {
                return Err(denied("must be superuser to alter settings globally"));
            }
            None => RoleId::PUBLIC,
        };
        if let (None, Some(database), false) = (role, database, superuser) {
            self.check_database(database, by)?;
        }
        self.rights_mut()
            .set_setting((of, place), name.as_deref(), value.as_deref());
        Ok(Vec::new())
    }
}

fn column_name(database: &Database, relation: &str, place: u16) -> String {
    let at = usize::from(place);
    let of_view = || {
        let view = database.view(relation)?;
        Some(view.columns.get(at)?.name.clone())
    };
    let table = database.table(relation);
    let of_table = table.and_then(|table| Some(table.columns.get(at)?.name.clone()));
    of_table.or_else(of_view).unwrap_or_default()
}
