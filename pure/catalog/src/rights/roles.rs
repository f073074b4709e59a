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
        let of = |what: &str, target: &Target, lines: &mut Vec<String>| -> u32 {
            let Some(object) = self.rights.objects.get(target) else {
                return 0;
            };
            let before = lines.len();
            if object.owner == role {
                lines.push(format!("owner of {what}"));
            } else if object.acl.as_ref().is_some_and(|acl| acl.names(role)) {
                lines.push(format!("privileges for {what}"));
            }
            for (place, acl) in &object.columns {
                if acl.names(role) {
                    lines.push(format!("privileges for column {} of {what}", place + 1));
                }
            }
            (lines.len() - before) as u32
        };
        for (name, database) in &self.databases {
            let id = database.id.0;
            of(&format!("database {name}"), &Target::Database(id), &mut lines);
            let (mut count, mut inside) = (0, Vec::new());
            let schema = Target::Schema(id, "public".into());
            count += of("schema public", &schema, &mut inside);
            for (relation, kind, number) in database.relations() {
                let what = format!("{} {relation}", kind.noun());
                count += of(&what, &Target::Relation(number), &mut inside);
            }
            for ((place, maker, _, kind), acl) in &self.rights.defaults {
                if *place != id || (*maker != role && !acl.names(role)) {
                    continue;
                }
                let things = match kind {
                    ObjectKind::Sequence => "sequences",
                    _ => "relations",
                };
                let verb = if *maker == role { "owner of" } else { "privileges for" };
                let maker = self.rights.name(*maker);
                inside.push(format!(
                    "{verb} default privileges on new {things} belonging to role {maker}"
                ));
                count += 1;
            }
            match name == here {
                true => lines.extend(inside),
                false if count == 1 => lines.push(format!("1 object in database {name}")),
                false if count > 0 => lines.push(format!("{count} objects in database {name}")),
                false => {}
            }
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
