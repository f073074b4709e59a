//! Lists of privileges.

use crate::privilege::Privileges;
use crate::role::RoleId;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{SqlError, SqlState};
use serde::{Deserialize, Serialize};

/// What one role has granted another one on an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AclItem {
    /// [`RoleId::PUBLIC`]: everybody.
    pub grantee: RoleId,
    pub grantor: RoleId,
    pub privileges: Privileges,
    /// Those of them that the grantee may grant on.
    pub options: Privileges,
}

/// The privileges on an object, each pair of grantee and grantor once.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Acl(pub Vec<AclItem>);

/// One change of a list.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Granting {
    /// The object's owner, who may grant everything.
    pub owner: RoleId,
    pub grantor: RoleId,
    pub grantee: RoleId,
    pub privileges: Privileges,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// REVOKE takes along what was granted on.
    pub cascade: bool,
}

impl Acl {
    /// What these roles and everybody have.
    pub fn privileges(&self, groups: &BTreeSet<RoleId>) -> Privileges {
        self.items_of(groups)
            .fold(Privileges::NONE, |all, item| all.with(item.privileges))
    }

    /// What these roles may grant.
    pub fn options(&self, groups: &BTreeSet<RoleId>) -> Privileges {
        self.items_of(groups)
            .fold(Privileges::NONE, |all, item| all.with(item.options))
    }

    fn items_of(&self, groups: &BTreeSet<RoleId>) -> impl Iterator<Item = &AclItem> {
        let of =
            move |item: &&AclItem| item.grantee == RoleId::PUBLIC || groups.contains(&item.grantee);
        self.0.iter().filter(of)
    }

    /// The privileges that a role itself may grant.
    fn own_options(&self, role: RoleId, owner: RoleId) -> Privileges {
        if role == owner {
            return Privileges(u16::MAX);
        }
        let own = self.0.iter().filter(|item| item.grantee == role);
        own.fold(Privileges::NONE, |all, item| all.with(item.options))
    }

    /// GRANT.
    ///
    /// # Errors
    /// 0LP01 for grant options to everybody, or back to where they came from.
    pub fn grant(&mut self, one: Granting) -> Result<(), SqlError> {
        let options = match one.option {
            true => one.privileges,
            false => Privileges::NONE,
        };
        if one.option && one.grantee == RoleId::PUBLIC {
            return Err(invalid("grant options can only be granted to roles"));
        }
        if one.option && one.grantor != one.owner {
            // Without the grantee's own grants, the grantor must still have the options.
            let mut without = self.clone();
            let lost = without.own_options(one.grantee, one.owner);
            without.0.retain(|item| item.grantee != one.grantee);
            without.drop_dependent(one.grantee, lost, one.owner);
            let left = without.own_options(one.grantor, one.owner);
            if !left.has(one.privileges) {
                let message = "grant options cannot be granted back to your own grantor";
                return Err(invalid(message));
            }
        }
        self.add(AclItem {
            grantee: one.grantee,
            grantor: one.grantor,
            privileges: one.privileges,
            options,
        });
        Ok(())
    }

    /// REVOKE.
    ///
    /// # Errors
    /// 2BP01 without CASCADE if the grantee has granted on what it loses.
    pub fn revoke(&mut self, one: Granting) -> Result<(), SqlError> {
        let before = self.own_options(one.grantee, one.owner);
        for item in &mut self.0 {
            if item.grantee == one.grantee && item.grantor == one.grantor {
                item.options = item.options.without(one.privileges);
                if !one.option {
                    item.privileges = item.privileges.without(one.privileges);
                }
            }
        }
        self.0.retain(|item| !item.privileges.is_empty());
        let lost = before.without(self.own_options(one.grantee, one.owner));
        let depends =
            |item: &AclItem| item.grantor == one.grantee && !item.privileges.and(lost).is_empty();
        if lost.is_empty() || !self.0.iter().any(depends) {
            return Ok(());
        }
        if !one.cascade {
            let error = SqlError::new(SqlState::DEPENDENT_OBJECTS, "dependent privileges exist");
            return Err(error.hint("Use CASCADE to revoke them too."));
        }
        self.drop_dependent(one.grantee, lost, one.owner);
        Ok(())
    }

    /// Takes away what `grantor` has granted of privileges that it may not grant any more.
    fn drop_dependent(&mut self, grantor: RoleId, lost: Privileges, owner: RoleId) {
        let mut open = Vec::from([(grantor, lost)]);
        while let Some((grantor, lost)) = open.pop() {
            if grantor == owner {
                continue;
            }
            let grantees: BTreeSet<RoleId> = self
                .0
                .iter()
                .filter(|item| item.grantor == grantor && !item.privileges.and(lost).is_empty())
                .map(|item| item.grantee)
                .collect();
            for grantee in grantees {
                let before = self.own_options(grantee, owner);
                for item in &mut self.0 {
                    if item.grantor == grantor && item.grantee == grantee {
                        item.privileges = item.privileges.without(lost);
                        item.options = item.options.without(lost);
                    }
                }
                self.0.retain(|item| !item.privileges.is_empty());
                let next = before.without(self.own_options(grantee, owner));
                if !next.is_empty() {
                    open.push((grantee, next));
                }
            }
        }
    }

    /// Adds an item to the one of the same roles, if there is one.
    pub fn add(&mut self, item: AclItem) {
        let mut known = self.0.iter_mut();
        match known.find(|k| k.grantee == item.grantee && k.grantor == item.grantor) {
            Some(known) => {
                known.privileges = known.privileges.with(item.privileges);
                known.options = known.options.with(item.options);
            }
            None => self.0.push(item),
        }
    }

    /// Gives what one role has and has granted to another one, as when the object's owner changes.
    pub fn replace(&mut self, old: RoleId, new: RoleId) {
        let items = core::mem::take(&mut self.0);
        let swap = |role: RoleId| if role == old { new } else { role };
        for mut item in items {
            item.grantee = swap(item.grantee);
            item.grantor = swap(item.grantor);
            self.add(item);
        }
    }

    /// Whether a role stands in it.
    pub fn names(&self, role: RoleId) -> bool {
        let mut items = self.0.iter();
        items.any(|item| item.grantee == role || item.grantor == role)
    }

    /// PostgreSQL's texts, one for each item: `grantee=privileges/grantor`.
    pub fn texts(&self, name: &dyn Fn(RoleId) -> String) -> Vec<String> {
        let items = self.0.iter();
        items
            .map(|item| {
                let grantee = match item.grantee {
                    RoleId::PUBLIC => String::new(),
                    role => name(role),
                };
                let mut letters = String::new();
                for (one, letter, _) in item.privileges.each() {
                    letters.push(letter);
                    if item.options.has(one) {
                        letters.push('*');
                    }
                }
                format!("{grantee}={letters}/{}", name(item.grantor))
            })
            .collect()
    }
}

fn invalid(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_GRANT, message)
}
