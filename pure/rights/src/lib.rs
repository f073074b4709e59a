//! Who may do what: roles, their memberships, owners of objects and the privileges on them.
//!
//! ```text
//! role --member of--> role          an object has one owner and a list of privileges:
//!      '--owns------> object        grantee=privileges/grantor
//! ```
//!
//! The rules are PostgreSQL 15's. [`Rights`] is a value of the catalog: it knows objects by their
//! numbers, and neither their names nor what they are. What changes it is a [`Change`].
//!
//! | module | what |
//! |---|---|
//! | `privilege` | sets of privileges, their letters and words |
//! | `need` | what a statement needs, and whether a role has it |
//! | `acl` | lists of privileges: GRANT and REVOKE, and the texts of both |
//! | `role` | roles, memberships |
//! | `change` | what CREATE ROLE, GRANT and the like ask for |
//! | `roles` | what these statements do to roles |
//!
//! Invariants: a role is no member of itself, over others neither; only objects that are not owned
//! by [`RoleId::OWNER`], or have been granted, have an entry.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod acl;
pub mod change;
mod need;
mod object;
mod privilege;
mod role;
mod roles;

pub use acl::{Acl, AclItem, Granting};
pub use change::{Change, Grant, ObjectNames, Password, RoleName, RoleOption};
pub use need::{Need, Needs};
pub use object::{Object, ObjectKind, Target};
pub use privilege::Privileges;
pub use role::{By, Membership, Role, RoleId, Viewer};

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// The name of the role [`RoleId::OWNER`] for everybody who does not act as it.
pub const OWNER_NAME: &str = "postgres";
/// The name of [`RoleId::DATABASE_OWNER`].
pub const DATABASE_OWNER_NAME: &str = "pg_database_owner";

/// Settings by name.
pub type SettingValues = BTreeMap<String, String>;

/// Roles and what they may do, of the whole cluster.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Rights {
    /// Roles by number. [`RoleId::OWNER`] is there even without an entry.
    pub roles: BTreeMap<RoleId, Arc<Role>>,
    /// Objects that have another owner or other privileges than at first.
    pub objects: BTreeMap<Target, Object>,
    /// Settings of a role (0: all) in a database (0: all), with which sessions begin.
    pub settings: BTreeMap<(RoleId, u32), SettingValues>,
    /// Privileges of objects to come: database, role that makes them, the only schema (0: all),
    /// kind.
    pub defaults: BTreeMap<(u32, RoleId, u32, ObjectKind), Acl>,
}

/// 42501.
pub fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}
