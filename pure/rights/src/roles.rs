//! What statements do to roles.

use crate::change::{Change, RoleName, RoleOption};
use crate::role::{By, Membership, Role, RoleId};
use crate::{OWNER_NAME, Rights, denied};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use base::{SqlError, SqlState};

/// Texts for NOTICEs, or the reason why a change is refused.
type Noticed = Result<Vec<String>, SqlError>;

impl Rights {
    /// The role that a statement names.
    ///
    /// # Errors
    /// 42704 if there is no such role; for PUBLIC too, which is none.
    pub fn resolve(&self, name: &RoleName, by: &By) -> Result<RoleId, SqlError> {
        match name {
            RoleName::Named(name) => {
                let acts = self.named(&by.alias).is_none();
                self.find(name, if acts { &by.alias } else { "" })
            }
            RoleName::Current => Ok(by.current),
            RoleName::Session => Ok(by.session),
            RoleName::Public => {
                let message = "role \"public\" does not exist";
                Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
            }
        }
    }

    /// CREATE ROLE; `id` is the number of the new role.
    ///
    /// # Errors
    /// 42501, 42710, 42939, 42704.
    pub fn create_role(
        &mut self,
        (name, options): (&str, &[RoleOption]),
        by: &By,
        id: RoleId,
    ) -> Noticed {
        self.check_options(options, by, true)?;
        check_name(name)?;
        if self.named(name).is_some() {
            let message = format!("role \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        let role = Role {
            id,
            name: name.into(),
            superuser: false,
            inherit: true,
            create_role: false,
            create_db: false,
            login: false,
            bypass_rls: false,
            password: None,
            valid_until: None,
            connection_limit: -1,
            memberships: Vec::new(),
        };
        self.roles.insert(id, Arc::new(role));
        self.set_options(id, options, by)
    }

    /// Whether the role may give what these options give.
    fn check_options(&self, options: &[RoleOption], by: &By, is_new: bool) -> Result<(), SqlError> {
        let all = self.is_superuser(by.current);
        if all {
            return Ok(());
        }
        let has = |wanted: &dyn Fn(&RoleOption) -> bool| options.iter().any(wanted);
        if has(&|option| matches!(option, RoleOption::Superuser(on) if *on || !is_new)) {
            return Err(denied(match is_new {
                true => "must be superuser to create superusers",
                false => "must be superuser to alter superuser roles or change superuser attribute",
            }));
        }
        if has(&|option| matches!(option, RoleOption::BypassRls(on) if *on || !is_new)) {
            return Err(denied(match is_new {
                true => "must be superuser to create bypassrls users",
                false => "must be superuser to change bypassrls attribute",
            }));
        }
        if is_new && !self.creates_roles(by.current) {
            return Err(denied("permission denied to create role"));
        }
        Ok(())
    }

    fn set_options(&mut self, id: RoleId, options: &[RoleOption], by: &By) -> Noticed {
        let mut notices = Vec::new();
        let mut role = self.role_or_first(id);
        for option in options {
            match option {
                RoleOption::Superuser(on) => role.superuser = *on,
                RoleOption::CreateDb(on) => role.create_db = *on,
                RoleOption::CreateRole(on) => role.create_role = *on,
                RoleOption::Inherit(on) => role.inherit = *on,
                RoleOption::Login(on) => role.login = *on,
                RoleOption::BypassRls(on) => role.bypass_rls = *on,
                RoleOption::Password(text) => {
                    role.password = text.as_ref().map(|password| password.0.clone());
                }
                RoleOption::ValidUntil(until) => role.valid_until = *until,
                RoleOption::ConnectionLimit(limit) => role.connection_limit = *limit,
                RoleOption::MemberOf(_) | RoleOption::Members(_) | RoleOption::Admins(_) => {}
            }
        }
        let name = role.name.clone();
        self.roles.insert(id, Arc::new(role));
        let own = [RoleName::Named(name.clone())];
        for option in options {
            notices.extend(match option {
                RoleOption::MemberOf(of) => self.add_members(of, &own, false, by)?,
                RoleOption::Members(members) => {
                    self.add_members(core::slice::from_ref(&name), members, false, by)?
                }
                RoleOption::Admins(members) => {
                    self.add_members(core::slice::from_ref(&name), members, true, by)?
                }
                _ => Vec::new(),
            });
        }
        Ok(notices)
    }

    /// The role, or the one that is there without an entry.
    fn role_or_first(&self, id: RoleId) -> Role {
        let known = self.roles.get(&id).map(|role| (**role).clone());
        known.unwrap_or_else(|| Role {
            id,
            name: OWNER_NAME.into(),
            superuser: true,
            inherit: true,
            create_role: true,
            create_db: true,
            login: true,
            bypass_rls: true,
            password: None,
            valid_until: None,
            connection_limit: -1,
            memberships: Vec::new(),
        })
    }

    /// A change of roles that names no objects.
    ///
    /// # Errors
    /// As PostgreSQL.
    pub fn change_roles(&mut self, change: &Change, by: &By) -> Noticed {
        match change {
            Change::AlterRole { role, options } => self.alter_role(role, options, by),
            Change::RenameRole { from, to } => self.rename_role(from, to, by),
            Change::Members {
                is_grant: true,
                of,
                roles,
                admin,
            } => self.add_members(of, roles, *admin, by),
            Change::Members {
                is_grant: false,
                of,
                roles,
                admin,
            } => self.remove_members(of, roles, *admin, by),
            _ => unreachable!("called for roles only"),
        }
    }

    fn alter_role(&mut self, role: &RoleName, options: &[RoleOption], by: &By) -> Noticed {
        let id = self.resolve(role, by)?;
        if id == RoleId::DATABASE_OWNER {
            return Err(reserved(&self.name(id)));
        }
        if id == RoleId::OWNER && *role != RoleName::Named(OWNER_NAME.into()) {
            let message = "what is not in the catalog cannot be altered";
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(error
                .detail("The session's name is that of no role: it acts as the role \"postgres\".")
                .hint("Passwords of such names stand in the file of roles (`trellis role`)."));
        }
        if id == RoleId::OWNER && options.contains(&RoleOption::Superuser(false)) {
            let error = denied("permission denied to alter role");
            return Err(error.detail("The bootstrap user must have the SUPERUSER attribute."));
        }
        let superuser = self.is_superuser(by.current);
        if self.is_superuser(id) && !superuser {
            let message =
                "must be superuser to alter superuser roles or change superuser attribute";
            return Err(denied(message));
        }
        self.check_options(options, by, false)?;
        let own_password = id == by.current
            && !options.is_empty()
            && options
                .iter()
                .all(|option| matches!(option, RoleOption::Password(_)));
        if !self.creates_roles(by.current) && !own_password {
            return Err(denied("permission denied"));
        }
        self.set_options(id, options, by)
    }

    fn rename_role(&mut self, from: &str, to: &str, by: &By) -> Noticed {
        let id = self.resolve(&RoleName::Named(from.into()), by)?;
        let unsupported = |text: &str| Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text));
        if id == by.session {
            return unsupported("session user cannot be renamed");
        }
        if id == by.current {
            return unsupported("current user cannot be renamed");
        }
        check_name(from)?;
        check_name(to)?;
        if self.named(to).is_some() {
            let message = format!("role \"{to}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        if self.is_superuser(id) && !self.is_superuser(by.current) {
            return Err(denied("must be superuser to rename superusers"));
        }
        if !self.creates_roles(by.current) {
            return Err(denied("permission denied to rename role"));
        }
        let mut role = self.role_or_first(id);
        role.name = to.into();
        self.roles.insert(id, Arc::new(role));
        Ok(Vec::new())
    }

    /// Which roles DROP ROLE may remove, as far as roles decide it. Gives notices and the roles.
    ///
    /// # Errors
    /// 42501, 42704, 55006.
    pub fn roles_to_drop(
        &self,
        (names, if_exists): (&[RoleName], bool),
        by: &By,
    ) -> Result<(Vec<String>, Vec<RoleId>), SqlError> {
        if !self.creates_roles(by.current) {
            return Err(denied("permission denied to drop role"));
        }
        let (mut notices, mut found) = (Vec::new(), Vec::new());
        for name in names {
            let id = match self.resolve(name, by) {
                Ok(id) => id,
                Err(error) if if_exists => {
                    notices.push(format!("{}, skipping", error.fields().message));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let used = |text: &str| Err(SqlError::new(SqlState::OBJECT_IN_USE, text));
            if id == by.current {
                return used("current user cannot be dropped");
            }
            if id == by.session {
                return used("session user cannot be dropped");
            }
            if matches!(id, RoleId::OWNER | RoleId::DATABASE_OWNER) {
                let message = format!(
                    "cannot drop role {} because it is required by the database system",
                    self.name(id)
                );
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS, message));
            }
            if self.is_superuser(id) && !self.is_superuser(by.current) {
                return Err(denied("must be superuser to drop superusers"));
            }
            if !found.contains(&id) {
                found.push(id);
            }
        }
        Ok((notices, found))
    }

    /// Removes a role that nothing depends on.
    pub fn remove_role(&mut self, id: RoleId) {
        self.roles.remove(&id);
        self.settings.retain(|(role, _), _| *role != id);
        for role in self.roles.values_mut() {
            if role
                .memberships
                .iter()
                .any(|own| own.of == id || own.grantor == id)
            {
                let role = Arc::make_mut(role);
                role.memberships.retain(|own| own.of != id);
                for own in &mut role.memberships {
                    if own.grantor == id {
                        own.grantor = RoleId::OWNER;
                    }
                }
            }
        }
    }

    fn check_grantor(&self, of: RoleId, by: &By) -> Result<(), SqlError> {
        if self.is_superuser(of) {
            return match self.is_superuser(by.current) {
                true => Ok(()),
                false => Err(denied("must be superuser to alter superusers")),
            };
        }
        if self.creates_roles(by.current) || self.is_admin(by.current, of) {
            return Ok(());
        }
        let message = format!("must have admin option on role \"{}\"", self.name(of));
        Err(denied(message))
    }

    fn add_members(&mut self, of: &[String], roles: &[RoleName], admin: bool, by: &By) -> Noticed {
        let mut notices = Vec::new();
        for of in of {
            let of = self.resolve(&RoleName::Named(of.clone()), by)?;
            self.check_grantor(of, by)?;
            for name in roles {
                let member = self.resolve(name, by)?;
                if of == RoleId::DATABASE_OWNER || member == RoleId::DATABASE_OWNER {
                    return Err(explicit(of));
                }
                if self.all_groups(of, RoleId::PUBLIC).contains(&member) {
                    let (of, member) = (self.name(of), self.name(member));
                    let message = format!("role \"{of}\" is a member of role \"{member}\"");
                    return Err(SqlError::new(SqlState::INVALID_GRANT, message));
                }
                let (of_name, name) = (self.name(of), self.name(member));
                let mut role = self.role_or_first(member);
                let known = role.memberships.iter_mut().find(|own| own.of == of);
                match known {
                    Some(own) if own.admin || !admin => {
                        let is =
                            format!("role \"{name}\" is already a member of role \"{of_name}\"");
                        notices.push(is);
                        continue;
                    }
                    Some(own) => own.admin = true,
                    None => role.memberships.push(Membership {
                        of,
                        grantor: by.current,
                        admin,
                    }),
                }
                self.roles.insert(member, Arc::new(role));
            }
        }
        Ok(notices)
    }

    fn remove_members(
        &mut self,
        of: &[String],
        roles: &[RoleName],
        admin_only: bool,
        by: &By,
    ) -> Noticed {
        let mut notices = Vec::new();
        for of in of {
            let of = self.resolve(&RoleName::Named(of.clone()), by)?;
            self.check_grantor(of, by)?;
            for name in roles {
                let member = self.resolve(name, by)?;
                let mut role = self.role_or_first(member);
                let Some(at) = role.memberships.iter().position(|own| own.of == of) else {
                    let (of, name) = (self.name(of), self.name(member));
                    notices.push(format!("role \"{name}\" is not a member of role \"{of}\""));
                    continue;
                };
                match admin_only {
                    true => role.memberships[at].admin = false,
                    false => drop(role.memberships.remove(at)),
                }
                self.roles.insert(member, Arc::new(role));
            }
        }
        Ok(notices)
    }

    /// Settings with which sessions of a role begin in a database, those of both last.
    pub fn settings_of(&self, role: RoleId, database: u32) -> Vec<(String, String)> {
        let everywhere = RoleId::PUBLIC;
        let places = [
            (everywhere, 0),
            (everywhere, database),
            (role, 0),
            (role, database),
        ];
        let found = places.iter().filter_map(|place| self.settings.get(place));
        let pairs = found.flatten();
        pairs
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    /// ALTER ROLE ... SET and ALTER DATABASE ... SET; rights were checked before.
    pub fn set_setting(&mut self, place: (RoleId, u32), name: Option<&str>, value: Option<&str>) {
        let values = self.settings.entry(place).or_default();
        match (name, value) {
            (Some(name), Some(value)) => drop(values.insert(name.into(), value.into())),
            (Some(name), None) => drop(values.remove(name)),
            (None, _) => values.clear(),
        }
        if values.is_empty() {
            self.settings.remove(&place);
        }
    }
}

fn explicit(of: RoleId) -> SqlError {
    let message = match of {
        RoleId::DATABASE_OWNER => "role \"pg_database_owner\" cannot have explicit members",
        _ => "role \"pg_database_owner\" cannot be a member of any role",
    };
    SqlError::new(SqlState::INVALID_GRANT, message)
}

fn reserved(name: &str) -> SqlError {
    let message = format!("role name \"{name}\" is reserved");
    let error = SqlError::new(SqlState::RESERVED_NAME, message);
    match name.starts_with("pg_") {
        true => error.detail("Role names starting with \"pg_\" are reserved."),
        false => error,
    }
}

/// # Errors
/// 42939 for a name that no role can have.
fn check_name(name: &str) -> Result<(), SqlError> {
    match name.starts_with("pg_") || matches!(name, "public" | "none") {
        true => Err(reserved(name)),
        false => Ok(()),
    }
}
