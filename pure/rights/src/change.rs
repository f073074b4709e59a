//! What statements ask for.

use crate::object::ObjectKind;
use crate::privilege::Privileges;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// How a statement names a role.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RoleName {
    /// By its name.
    Named(String),
    /// CURRENT_USER, CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// PUBLIC.
    Public,
}

/// A password, or what is kept of one. It is not shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// An option of CREATE ROLE and ALTER ROLE.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum RoleOption {
    Superuser(bool),
    CreateDb(bool),
    CreateRole(bool),
    Inherit(bool),
    Login(bool),
    BypassRls(bool),
    /// `None`: it has no password. A session puts what is to be kept in place of a clear text.
    Password(Option<Password>),
    /// Microseconds as in a `timestamptz`; `None`: for ever.
    ValidUntil(Option<i64>),
    /// CONNECTION LIMIT; -1: none.
    ConnectionLimit(i32),
    /// IN ROLE.
    MemberOf(Vec<String>),
    /// ROLE.
    Members(Vec<RoleName>),
    /// ADMIN.
    Admins(Vec<RoleName>),
}

/// The objects that GRANT names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ObjectNames {
    /// Tables, views or sequences.
    Relations(Vec<String>),
    /// Sequences.
    Sequences(Vec<String>),
    /// Databases.
    Databases(Vec<String>),
    /// Schemas.
    Schemas(Vec<String>),
    /// All of this kind in these schemas.
    All(ObjectKind, Vec<String>),
    /// Those that will be made: ALTER DEFAULT PRIVILEGES.
    ToCome(ObjectKind),
    /// Functions and procedures, by their numbers.
    Routines(Vec<u32>),
    /// All functions or procedures, or both, in these schemas.
    AllRoutines {
        /// Functions are meant.
        functions: bool,
        /// Procedures are meant.
        procedures: bool,
        /// The schemas.
        schemas: Vec<String>,
    },
}

/// GRANT or REVOKE of privileges.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Grant {
    pub is_grant: bool,
    /// Each with the columns that it is for; none: the whole object. Empty: all that there are.
    pub privileges: Vec<(Privileges, Vec<String>)>,
    pub objects: ObjectNames,
    pub roles: Vec<RoleName>,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    pub cascade: bool,
}

/// A change of roles or rights.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Change {
    CreateRole {
        name: String,
        options: Vec<RoleOption>,
    },
    AlterRole {
        role: RoleName,
        options: Vec<RoleOption>,
    },
    RenameRole {
        from: String,
        to: String,
    },
    DropRoles {
        roles: Vec<RoleName>,
        if_exists: bool,
    },
    /// GRANT or REVOKE of memberships; `admin`: WITH ADMIN OPTION, or ADMIN OPTION FOR.
    Members {
        is_grant: bool,
        of: Vec<String>,
        roles: Vec<RoleName>,
        admin: bool,
    },
    /// Settings of a role (`None`: all) in a database (`None`: all). Without a name: all settings
    /// go; without a value: this one goes.
    Setting {
        role: Option<RoleName>,
        database: Option<String>,
        name: Option<String>,
        value: Option<String>,
    },
    Grant(Grant),
    /// ALTER DEFAULT PRIVILEGES: for what these roles make (none: the current one).
    Defaults {
        roles: Vec<RoleName>,
        schemas: Vec<String>,
        grant: Grant,
    },
    /// ALTER ... OWNER TO.
    Owner {
        kind: ObjectKind,
        name: String,
        if_exists: bool,
        to: RoleName,
    },
    /// REASSIGN OWNED.
    Reassign {
        roles: Vec<RoleName>,
        to: RoleName,
    },
    /// DROP OWNED.
    DropOwned {
        roles: Vec<RoleName>,
        cascade: bool,
    },
    /// CONNECTION LIMIT of a database; -1: none.
    ConnectionLimit {
        database: String,
        limit: i32,
    },
}

impl Change {
    /// The passwords in it.
    pub fn passwords(&self) -> impl Iterator<Item = &Password> {
        let options = match self {
            Change::CreateRole { options, .. } | Change::AlterRole { options, .. } => {
                options.as_slice()
            }
            _ => &[],
        };
        options.iter().filter_map(|option| match option {
            RoleOption::Password(Some(password)) => Some(password),
            _ => None,
        })
    }

    /// The same, to be changed.
    pub fn passwords_mut(&mut self) -> impl Iterator<Item = &mut Password> {
        let options = match self {
            Change::CreateRole { options, .. } | Change::AlterRole { options, .. } => {
                options.as_mut_slice()
            }
            _ => &mut [],
        };
        options.iter_mut().filter_map(|option| match option {
            RoleOption::Password(Some(password)) => Some(password),
            _ => None,
        })
    }
}
