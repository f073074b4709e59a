//! Objects that have an owner.

use crate::acl::{Acl, AclItem};
use crate::privilege::Privileges;
use crate::role::RoleId;
use crate::{Rights, denied};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::SqlError;
use serde::{Deserialize, Serialize};

/// An object by its number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Target {
    /// A database.
    Database(u32),
    /// A schema of a database.
    Schema(u32, String),
    /// A table, view or sequence.
    Relation(u32),
}

/// What privileges there are on an object depends on its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view: it has the privileges of a table.
    View,
    Sequence,
    Database,
    Schema,
    Column,
    /// An index: it has no privileges of its own.
    Index,
    /// An enum type: everybody may use it.
    Type,
    Function,
    Procedure,
}

impl ObjectKind {
    /// What can be granted on it.
    pub fn all(self) -> Privileges {
        match self {
            ObjectKind::Table | ObjectKind::View | ObjectKind::Index => Privileges(0x7f),
            ObjectKind::Sequence => Privileges::SELECT
                .with(Privileges::UPDATE)
                .with(Privileges::USAGE),
            ObjectKind::Database => Privileges::CREATE
                .with(Privileges::TEMPORARY)
                .with(Privileges::CONNECT),
            ObjectKind::Schema => Privileges::USAGE.with(Privileges::CREATE),
            ObjectKind::Type => Privileges::USAGE,
            ObjectKind::Function | ObjectKind::Procedure => Privileges::EXECUTE,
            ObjectKind::Column => Privileges::INSERT
                .with(Privileges::SELECT)
                .with(Privileges::UPDATE)
                .with(Privileges::REFERENCES),
        }
    }

    /// What everybody has on a new one.
    pub fn of_everybody(self) -> Privileges {
        match self {
            ObjectKind::Database => Privileges::TEMPORARY.with(Privileges::CONNECT),
            ObjectKind::Type => Privileges::USAGE,
            ObjectKind::Function | ObjectKind::Procedure => Privileges::EXECUTE,
            _ => Privileges::NONE,
        }
    }

    /// The word for it in messages.
    pub fn noun(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Database => "database",
            ObjectKind::Schema => "schema",
            ObjectKind::Column => "column",
            ObjectKind::Index => "index",
            ObjectKind::Type => "type",
            ObjectKind::Function => "function",
            ObjectKind::Procedure => "procedure",
        }
    }

    /// The privileges of a new object.
    pub fn first_acl(self, owner: RoleId) -> Acl {
        let item = |grantee, privileges| AclItem {
            grantee,
            grantor: owner,
            privileges,
            options: Privileges::NONE,
        };
        let everybody = self.of_everybody();
        let mut items = Vec::new();
        if !everybody.is_empty() {
            items.push(item(RoleId::PUBLIC, everybody));
        }
        if self != ObjectKind::Column {
            items.push(item(owner, self.all()));
        }
        Acl(items)
    }
}

/// Owner of an object, and what others may do with it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Object {
    /// Its owner.
    pub owner: RoleId,
    /// Privileges; `None`: those of a new object.
    pub acl: Option<Acl>,
    /// Privileges on columns, by their place.
    pub columns: BTreeMap<u16, Acl>,
}

impl Default for Object {
    fn default() -> Object {
        Object {
            owner: RoleId::OWNER,
            acl: None,
            columns: BTreeMap::new(),
        }
    }
}

impl Rights {
    /// The owner of an object.
    pub fn owner(&self, target: &Target) -> RoleId {
        match (self.objects.get(target), target) {
            (Some(object), _) => object.owner,
            (None, Target::Schema(_, name)) if name == "public" => RoleId::DATABASE_OWNER,
            (None, _) => RoleId::OWNER,
        }
    }

    /// The privileges on an object, as far as they are others than those of a new one.
    pub fn acl(&self, target: &Target) -> Option<Acl> {
        match self.objects.get(target) {
            Some(object) => object.acl.clone(),
            None => first_of(target),
        }
    }

    /// The object, to be changed.
    pub fn object_mut(&mut self, target: &Target) -> &mut Object {
        let owner = self.owner(target);
        self.objects
            .entry(target.clone())
            .or_insert_with(|| Object {
                owner,
                acl: first_of(target),
                columns: BTreeMap::new(),
            })
    }

    /// What of `wanted` a role has on an object; `database_owner` is the owner of its database.
    pub fn privileges(
        &self,
        role: RoleId,
        (target, kind): (&Target, ObjectKind),
        database_owner: RoleId,
    ) -> Privileges {
        if self.is_superuser(role) {
            return kind.all();
        }
        let groups = self.groups(role, database_owner);
        let owner = self.owner(target);
        match self.acl(target) {
            Some(acl) => acl.privileges(&groups),
            None => kind.first_acl(owner).privileges(&groups),
        }
    }

    /// What a role has on a column beyond what it has on its table.
    pub fn column_privileges(
        &self,
        role: RoleId,
        target: &Target,
        column: u16,
        database_owner: RoleId,
    ) -> Privileges {
        let acl = self
            .objects
            .get(target)
            .and_then(|object| object.columns.get(&column));
        match acl {
            Some(acl) => acl.privileges(&self.groups(role, database_owner)),
            None => Privileges::NONE,
        }
    }

    /// Whether a role may do with an object what its owner may.
    pub fn is_owner(&self, role: RoleId, target: &Target, database_owner: RoleId) -> bool {
        self.is_superuser(role)
            || self
                .groups(role, database_owner)
                .contains(&self.owner(target))
    }

    /// # Errors
    /// 42501 for a role that does not own the object.
    pub fn check_owner(
        &self,
        role: RoleId,
        (target, kind, name): (&Target, ObjectKind, &str),
        database_owner: RoleId,
    ) -> Result<(), SqlError> {
        match self.is_owner(role, target, database_owner) {
            true => Ok(()),
            false => Err(denied(format!("must be owner of {} {name}", kind.noun()))),
        }
    }
}

/// The privileges on the schema `public`: everybody may use it, the database's owner make things.
fn first_of(target: &Target) -> Option<Acl> {
    match target {
        Target::Schema(_, name) if name == "public" => {
            let item = |grantee, privileges| AclItem {
                grantee,
                grantor: RoleId::DATABASE_OWNER,
                privileges,
                options: Privileges::NONE,
            };
            Some(Acl(Vec::from([
                item(RoleId::DATABASE_OWNER, ObjectKind::Schema.all()),
                item(RoleId::PUBLIC, Privileges::USAGE),
            ])))
        }
        _ => None,
    }
}
