//! As whom a session acts: the role of its login, or another one by SET ROLE and SET SESSION
//! AUTHORIZATION, which are undone as settings are.

use super::plans::{Prepared, Site};
use super::{Block, Session, SessionCx, errors};
use base::full_name::temporary_of;
use base::{SqlError, SqlState};
use catalog::{Catalog, Command, Database};
use pg_catalog::path;
use plan::{DdlPlan, Plan, PlanKind};
use rights::{By, Change, Privileges, Rights, Role, RoleId, Target, Viewer, denied};
use scram::Verifier;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A version of the catalog, and by it the schemas in which names are looked up, and whose policies
/// concern the rows.
type Seen = (u64, Rc<[u32]>, Viewer);

/// As whom a session acts, by the catalog of a version.
pub(super) struct Acting {
    /// The catalog's version; `MAX`: a setting has changed since.
    version: u64,
    /// The role of the login.
    login: RoleId,
    /// The role may do everything.
    pub(super) superuser: bool,
    pub(super) by: By,
    /// Names of both roles.
    pub(super) current: Box<str>,
    pub(super) session: Box<str>,
    /// What plans are made for, by the catalog of a version.
    seen: RefCell<Option<Seen>>,
}

impl Default for Acting {
    fn default() -> Acting {
        Acting {
            version: u64::MAX,
            login: RoleId::OWNER,
            superuser: true,
            by: By::default(),
            current: Box::default(),
            session: Box::default(),
            seen: RefCell::default(),
        }
    }
}

impl Acting {
    /// Where names are looked up may have changed.
    pub(super) fn forget_path(&self) {
        self.seen.take();
    }
}

/// Whether SET of this name changes as whom the session acts.
pub(super) fn is_acting(name: &str) -> bool {
    matches!(name, "role" | "session_authorization")
}

/// Names under which the settings keep the numbers of the roles.
pub(super) const ROLE: &str = "role";
pub(super) const SESSION_ROLE: &str = "session_role";

impl Session {
    /// Makes sure that the session knows its role as the present catalog has it.
    #[inline]
    pub(super) fn know_role(&mut self, cx: &SessionCx<'_>) {
        if self.acting.version != cx.catalog.version {
            self.learn_role(cx.catalog);
        }
    }

    /// A setting has changed that may be the role.
    pub(super) fn forget_role(&mut self) {
        self.acting.version = u64::MAX;
        self.acting.forget_path();
    }

    /// The database of the session in the present catalog.
    pub(super) fn database<'c>(
        &self,
        cx: &'c SessionCx<'_>,
    ) -> Result<&'c Arc<Database>, SqlError> {
        let found = cx.catalog.databases.get(&*self.database);
        found.ok_or_else(|| errors::no_database(&self.database))
    }

    /// For what plans of the session are made now.
    pub(super) fn site(&self, cx: &SessionCx<'_>) -> Site {
        let (path, viewer) = self.seen(cx);
        Site {
            zone: self.settings.zone_name().into(),
            path,
            viewer,
        }
    }

    /// The schemas in which names are looked up.
    pub(super) fn path(&self, cx: &SessionCx<'_>) -> Rc<[u32]> {
        self.seen(cx).0
    }

    /// The schemas in which names are looked up, and whose policies concern the rows.
    fn seen(&self, cx: &SessionCx<'_>) -> (Rc<[u32]>, Viewer) {
        let version = cx.catalog.version;
        if let Some((known, path, viewer)) = &*self.acting.seen.borrow()
            && *known == version
        {
            return (path.clone(), *viewer);
        }
        let Some(database) = cx.catalog.databases.get(&*self.database) else {
            return (Rc::from([]), Viewer::default());
        };
        let (current, _) = self.roles();
        let name = self.role_name(&cx.catalog.rights, current);
        let setting = self.settings.get("search_path").unwrap_or(path::DEFAULT);
        let own = match path::names_temporary(setting) {
            true => Some(temporary_of(self.pid)),
            false => self.own_schema(),
        };
        let found = path::schemas(cx.catalog, database, (current, &name), own, setting);
        let found: Rc<[u32]> = found.into();
        let viewer = self.viewer(cx.catalog, database);
        *self.acting.seen.borrow_mut() = Some((version, found.clone(), viewer));
        (found, viewer)
    }

    /// Whose policies concern the rows of a database. In one without row security all sessions
    /// share their plans, and so do all whom no policy concerns.
    fn viewer(&self, catalog: &Catalog, database: &Database) -> Viewer {
        let checks_bodies = self.settings.get("check_function_bodies") != Some("off");
        let checks_keys = self.settings.get("session_replication_role") != Some("replica");
        if database.row_security.is_empty() {
            return Viewer {
                checks_bodies,
                checks_keys,
                ..Viewer::default()
            };
        }
        let (current, _) = self.roles();
        Viewer {
            role: match catalog.rights.bypasses_rows(current) {
                true => RoleId::OWNER,
                false => current,
            },
            row_security: self.settings.get("row_security") != Some("off"),
            checks_bodies,
            checks_keys,
        }
    }

    /// The roles of the session: as which it acts, and of the session itself.
    fn roles(&self) -> (RoleId, RoleId) {
        let kept = |name: &str| {
            let number = self.settings.get(name)?.parse().ok()?;
            Some(RoleId(number))
        };
        let session = kept(SESSION_ROLE).unwrap_or(self.acting.login);
        let current = self.filling_as().or_else(|| kept(ROLE));
        (current.unwrap_or(session), session)
    }

    fn role_name(&self, rights: &Rights, id: RoleId) -> Box<str> {
        match id {
            RoleId::OWNER if self.acting.login == RoleId::OWNER => self.user.clone(),
            id => rights.name(id).into_boxed_str(),
        }
    }

    fn learn_role(&mut self, catalog: &Catalog) {
        let rights = &catalog.rights;
        let (current, session) = self.roles();
        let current_name = self.role_name(rights, current);
        let session_name = self.role_name(rights, session);
        let changed = *self.acting.current != *current_name
            || *self.acting.session != *session_name
            || self.acting.superuser != rights.is_superuser(current);
        *self.acting = Acting {
            version: catalog.version,
            login: self.acting.login,
            superuser: rights.is_superuser(current),
            by: By {
                current,
                session,
                alias: match self.acting.login {
                    RoleId::OWNER => self.user.to_string(),
                    _ => String::new(),
                },
            },
            current: current_name,
            session: session_name,
            seen: RefCell::default(),
        };
        if changed {
            self.facts_modes = None;
            if self.txn.is_some() {
                self.refresh_facts();
            }
        }
    }

    /// Whether the session's role may run a statement.
    ///
    /// # Errors
    /// 42501.
    #[inline]
    pub(super) fn allow(
        &mut self,
        cx: &SessionCx<'_>,
        plan: &Plan,
        prepared: &Prepared,
    ) -> Result<(), SqlError> {
        self.know_role(cx);
        match self.acting.superuser && !plan.needs.of_views {
            true => Ok(()),
            false => self.check_needs(cx, plan, prepared),
        }
    }

    fn check_needs(
        &self,
        cx: &SessionCx<'_>,
        plan: &Plan,
        prepared: &Prepared,
    ) -> Result<(), SqlError> {
        let known = Some((cx.catalog.version, self.acting.by.current));
        if prepared.allowed.get() == known || matches!(plan.kind, PlanKind::Session(_)) {
            return Ok(());
        }
        let owner = cx.catalog.owner_of_database(self.database(cx)?);
        let rights = &cx.catalog.rights;
        rights.check(&plan.needs, self.acting.by.current, owner)?;
        prepared.allowed.set(known);
        Ok(())
    }

    /// The client has proved who it is: lets its role in.
    ///
    /// # Errors
    /// 28000, 42501.
    pub(super) fn let_in(
        &mut self,
        catalog: &Catalog,
        database: &Database,
    ) -> Result<(), SqlError> {
        let rights = &catalog.rights;
        let login = rights.acting(&self.user);
        let may_log_in = |role: &Role| role.login;
        if login == RoleId::DATABASE_OWNER
            || !rights.roles.get(&login).is_none_or(|role| may_log_in(role))
        {
            let message = format!("role \"{}\" is not permitted to log in", self.user);
            return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, message));
        }
        self.acting.login = login;
        self.learn_role(catalog);
        let owner = catalog.owner_of_database(database);
        let target = (
            &Target::Database(database.id.0),
            rights::ObjectKind::Database,
        );
        if !rights
            .privileges(login, target, owner)
            .has(Privileges::CONNECT)
        {
            let message = format!("permission denied for database \"{}\"", database.name);
            return Err(denied(message).detail("User does not have CONNECT privilege."));
        }
        self.seat = self.link.seats.take(catalog, login, database)?;
        Ok(())
    }

    /// Whether the session's role may change a setting.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn may_set(&mut self, cx: &SessionCx<'_>, name: &str) -> Result<(), SqlError> {
        self.know_role(cx);
        pg_catalog::settings::allow(name, self.acting.superuser)
    }

    /// Whether it may change the settings that a command keeps for roles or databases.
    ///
    /// # Errors
    /// 42501.
    pub(super) fn may_keep(&mut self, cx: &SessionCx<'_>, plan: &DdlPlan) -> Result<(), SqlError> {
        for command in &plan.before {
            if let Command::Rights { change, .. } = command
                && let Change::Setting {
                    role: _,
                    database: _,
                    name: Some(name),
                    value: _,
                } = change
            {
                self.may_set(cx, name)?;
            }
        }
        Ok(())
    }

    /// Settings of the role and the database with which the session begins.
    pub(super) fn first_settings(
        &self,
        catalog: &Catalog,
        database: &Database,
    ) -> Vec<(String, String)> {
        let kept = catalog.rights.settings_of(self.acting.login, database.id.0);
        // What no release takes any more is passed over, as PostgreSQL does with a warning.
        let taken = kept.into_iter().filter_map(|(name, value)| {
            let value = pg_catalog::settings::validate(&name, &value).ok()?;
            Some((name, value))
        });
        taken.collect()
    }

    /// SET ROLE, SET SESSION AUTHORIZATION; no name: that of the login.
    ///
    /// # Errors
    /// 22023, 42501.
    pub(super) fn set_acting(
        &mut self,
        cx: &SessionCx<'_>,
        what: &str,
        name: Option<&str>,
        local: bool,
    ) -> Result<&'static str, SqlError> {
        self.know_role(cx);
        let rights = &cx.catalog.rights;
        let owner = self.database(cx)?.clone();
        let owner = cx.catalog.owner_of_database(&owner);
        let is_role = what == ROLE;
        let name = name.filter(|name| !is_role || !name.eq_ignore_ascii_case("none"));
        let wanted = match name {
            None => None,
            Some(name) => {
                let found = rights.find(name, &self.acting.by.alias);
                Some(found.map_err(|error| {
                    SqlError::new(SqlState::INVALID_PARAMETER, error.fields().message.clone())
                })?)
            }
        };
        if let (Some(id), Some(name)) = (wanted, name) {
            if is_role && !rights.is_member(self.acting.by.session, id, owner) {
                return Err(denied(format!("permission denied to set role \"{name}\"")));
            }
            let login = self.acting.login;
            if !is_role && id != login && !rights.is_superuser(login) {
                return Err(denied("permission denied to set session authorization"));
            }
        }
        let in_txn = self.block != Block::None;
        if local && !in_txn {
            let text = "SET LOCAL can only be used in transaction blocks";
            self.warn(SqlState::NO_ACTIVE_TXN, text);
            return Ok("SET");
        }
        let number = wanted.map(|id| id.0.to_string());
        match is_role {
            true => self.settings.keep(ROLE, number.as_deref(), in_txn, local),
            false => {
                self.settings
                    .keep(SESSION_ROLE, number.as_deref(), in_txn, local);
                self.settings.keep(ROLE, None, in_txn, local);
            }
        }
        self.settings_changed();
        self.learn_role(cx.catalog);
        Ok("SET")
    }

    /// Puts what is to be kept of passwords in their place.
    ///
    /// # Errors
    /// 0A000 for a digest by MD5.
    pub(super) fn hash_passwords(
        &self,
        cx: &SessionCx<'_>,
        plan: &mut DdlPlan,
    ) -> Result<(), SqlError> {
        for command in &mut plan.before {
            let Command::Rights { change, .. } = command else {
                continue;
            };
            for (number, password) in change.passwords_mut().enumerate() {
                if password.0.starts_with("md5") && password.0.len() == 35 {
                    return Err(errors::md5_password());
                }
                if Verifier::parse(&password.0).is_err() {
                    // A salt is told to whoever begins a login: it only has to be another one
                    // each time.
                    let seed = format!(
                        "{} {} {} {number} {}",
                        self.secret, cx.now.0, self.pid, self.txn_count
                    );
                    let salt = scram::salt(seed.as_bytes());
                    password.0 = Verifier::new(&password.0, salt).to_string();
                }
            }
        }
        Ok(())
    }
}
