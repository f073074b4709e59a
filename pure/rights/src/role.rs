//! Roles and their memberships.

use crate::{DATABASE_OWNER_NAME, OWNER_NAME, Rights};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// Number of a role; also its oid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash, Serialize, Deserialize)]
pub struct RoleId(pub u32);

impl RoleId {
    /// Everybody.
    pub const PUBLIC: RoleId = RoleId(0);
    /// The superuser that every cluster has. Whoever is let in under a name that no role has acts
    /// as this one.
    pub const OWNER: RoleId = RoleId(10);
    /// Stands for the owner of whatever database is meant.
    pub const DATABASE_OWNER: RoleId = RoleId(6171);
}

/// Who looks at rows, as far as row security asks, and settings that decide on plans: these are
/// made for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Viewer {
    /// The role; [`RoleId::OWNER`] for all whom no policy concerns.
    pub role: RoleId,
    /// The setting `row_security`: off, a statement that policies concern is refused.
    pub row_security: bool,
    /// The setting `check_function_bodies`: off, the body of a new function may be wrong.
    pub checks_bodies: bool,
    /// The setting `session_replication_role`: `replica`, foreign keys are not checked.
    pub checks_keys: bool,
}

impl Default for Viewer {
    fn default() -> Viewer {
        Viewer {
            role: RoleId::OWNER,
            row_security: true,
            checks_bodies: true,
            checks_keys: true,
        }
    }
}

/// One role.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Role {
    pub id: RoleId,
    pub name: String,
    pub superuser: bool,
    pub inherit: bool,
    pub create_role: bool,
    pub create_db: bool,
    pub login: bool,
    pub bypass_rls: bool,
    /// What is kept of its password, in PostgreSQL's form.
    pub password: Option<String>,
    /// Until when the password is good: microseconds as in a `timestamptz`.
    pub valid_until: Option<i64>,
    /// Sessions that it may have on a node; -1: no limit.
    pub connection_limit: i32,
    /// The roles that it is a direct member of.
    pub memberships: Vec<Membership>,
}

/// A role is a member of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Membership {
    pub of: RoleId,
    pub grantor: RoleId,
    /// It may make others members, too.
    pub admin: bool,
}

/// Who asks for a change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct By {
    /// The role whose rights are asked (`current_user`).
    pub current: RoleId,
    /// The session's own role (`session_user`).
    pub session: RoleId,
    /// The name under which the session has logged in.
    pub alias: String,
}

impl Default for By {
    fn default() -> By {
        By {
            current: RoleId::OWNER,
            session: RoleId::OWNER,
            alias: OWNER_NAME.into(),
        }
    }
}

impl Rights {
    /// The role of this name.
    pub fn named(&self, name: &str) -> Option<RoleId> {
        let mut roles = self.roles.values();
        if let Some(role) = roles.find(|role| role.name == name) {
            return Some(role.id);
        }
        match name {
            OWNER_NAME if !self.roles.contains_key(&RoleId::OWNER) => Some(RoleId::OWNER),
            DATABASE_OWNER_NAME => Some(RoleId::DATABASE_OWNER),
            _ => None,
        }
    }

    /// As [`Rights::named`]; a session that acts as [`RoleId::OWNER`] may also use its own name.
    ///
    /// # Errors
    /// 42704.
    pub fn find(&self, name: &str, alias: &str) -> Result<RoleId, SqlError> {
        let own = || (name == alias && !alias.is_empty()).then_some(RoleId::OWNER);
        self.named(name).or_else(own).ok_or_else(|| {
            let message = format!("role \"{name}\" does not exist");
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })
    }

    /// The role as which a client acts that has logged in under this name.
    pub fn acting(&self, name: &str) -> RoleId {
        self.named(name).unwrap_or(RoleId::OWNER)
    }

    /// The name of a role.
    pub fn name(&self, id: RoleId) -> String {
        match (self.roles.get(&id), id) {
            (Some(role), _) => role.name.clone(),
            (None, RoleId::OWNER) => OWNER_NAME.into(),
            (None, RoleId::DATABASE_OWNER) => DATABASE_OWNER_NAME.into(),
            (None, other) => other.0.to_string(),
        }
    }

    /// Whether a role may do everything.
    pub fn is_superuser(&self, id: RoleId) -> bool {
        match self.roles.get(&id) {
            Some(role) => role.superuser,
            None => id == RoleId::OWNER,
        }
    }

    /// Whether row security does not hold for a role.
    pub fn bypasses_rows(&self, id: RoleId) -> bool {
        self.is_superuser(id) || self.roles.get(&id).is_some_and(|role| role.bypass_rls)
    }

    /// Whether a role may make and change roles.
    pub fn creates_roles(&self, id: RoleId) -> bool {
        self.is_superuser(id) || self.roles.get(&id).is_some_and(|role| role.create_role)
    }

    /// Whether a role may make databases.
    pub fn creates_databases(&self, id: RoleId) -> bool {
        self.is_superuser(id) || self.roles.get(&id).is_some_and(|role| role.create_db)
    }

    /// The roles whose privileges a role has without asking: itself, and what it inherits.
    pub fn groups(&self, id: RoleId, database_owner: RoleId) -> BTreeSet<RoleId> {
        let inherits = |role: &Role| role.inherit;
        self.closure(id, database_owner, &inherits)
    }

    /// The roles that a role may become: itself, and what it is a member of.
    pub fn all_groups(&self, id: RoleId, database_owner: RoleId) -> BTreeSet<RoleId> {
        self.closure(id, database_owner, &|_| true)
    }

    fn closure(
        &self,
        id: RoleId,
        database_owner: RoleId,
        follows: &dyn Fn(&Role) -> bool,
    ) -> BTreeSet<RoleId> {
        let mut found = BTreeSet::from([id]);
        let mut open = Vec::from([id]);
        while let Some(next) = open.pop() {
            let role = self.roles.get(&next).filter(|role| follows(role));
            let of = role
                .into_iter()
                .flat_map(|role| &role.memberships)
                .map(|one| one.of);
            let owns = (next == database_owner).then_some(RoleId::DATABASE_OWNER);
            for of in of.chain(owns) {
                if found.insert(of) {
                    open.push(of);
                }
            }
        }
        found
    }

    /// Whether a role may become another one.
    pub fn is_member(&self, id: RoleId, of: RoleId, database_owner: RoleId) -> bool {
        self.is_superuser(id) || self.all_groups(id, database_owner).contains(&of)
    }

    /// Whether a role may make others members of another one.
    pub(crate) fn is_admin(&self, id: RoleId, of: RoleId) -> bool {
        let groups = self.all_groups(id, RoleId::PUBLIC);
        self.is_superuser(id)
            || groups
                .iter()
                .filter_map(|group| self.roles.get(group))
                .any(|role| {
                    let mut own = role.memberships.iter();
                    own.any(|membership| membership.of == of && membership.admin)
                })
    }
}
