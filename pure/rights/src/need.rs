//! What a statement needs to be allowed, as it was found out when the statement was bound.

use crate::object::{ObjectKind, Target};
use crate::privilege::Privileges;
use crate::role::RoleId;
use crate::{Rights, denied};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use base::SqlError;
use base::full_name::own;

/// A privilege on a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need {
    /// The view in whose query the relation stands: its owner needs the privilege.
    pub by: Option<u32>,
    /// The relation.
    pub relation: u32,
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub name: Box<str>,
    /// One of these is needed.
    pub wanted: Privileges,
    /// On these columns; none: on the relation, or on any column of it.
    pub columns: Vec<u16>,
}

/// All that a statement needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Privileges, in the order of the text.
    pub relations: Vec<Need>,
    /// Schemas whose names stand before those of other things: number of the database, and name.
    /// They are needed first.
    pub schemas: Vec<(u32, Box<str>)>,
    /// Relations that only their owners may use so, after the privileges on others.
    pub owned: Vec<(u32, ObjectKind, Box<str>)>,
    /// What only a superuser may do: the sentence for others.
    pub superuser: Option<Box<str>>,
    /// Some are needed by owners of views, whoever runs the statement.
    pub of_views: bool,
}

impl Needs {
    /// A privilege on a relation is needed. Gives where its columns are noted.
    pub fn add(&mut self, need: Need) -> &mut Vec<u16> {
        self.of_views |= need.by.is_some();
        let same = |known: &Need| {
            known.by == need.by && known.relation == need.relation && known.wanted == need.wanted
        };
        let at = match self.relations.iter().position(same) {
            Some(at) => at,
            None => {
                self.relations.push(need);
                self.relations.len() - 1
            }
        };
        &mut self.relations[at].columns
    }
}

impl Rights {
    /// Whether a role has what a statement needs.
    ///
    /// # Errors
    /// 42501 for the first thing that it has not.
    pub fn check(
        &self,
        needs: &Needs,
        role: RoleId,
        database_owner: RoleId,
    ) -> Result<(), SqlError> {
        if let (Some(sentence), false) = (&needs.superuser, self.is_superuser(role)) {
            return Err(denied(&**sentence));
        }
        for (database, name) in &needs.schemas {
            let target = Target::Schema(*database, (**name).into());
            let own = self.privileges(role, (&target, ObjectKind::Schema), database_owner);
            let is_system = matches!(&**name, "pg_catalog" | "information_schema");
            if !is_system && !own.has(Privileges::USAGE) {
                return Err(denied(format!("permission denied for schema {name}")));
            }
        }
        for need in &needs.relations {
            let role = match need.by {
                None => role,
                Some(view) => self.owner(&Target::Relation(view)),
            };
            if !self.has(need, role, database_owner) {
                let (noun, name) = (need.kind.noun(), own(&need.name));
                return Err(denied(format!("permission denied for {noun} {name}")));
            }
        }
        for (relation, kind, name) in &needs.owned {
            let target = Target::Relation(*relation);
            self.check_owner(role, (&target, *kind, own(name)), database_owner)?;
        }
        Ok(())
    }

    fn has(&self, need: &Need, role: RoleId, database_owner: RoleId) -> bool {
        if self.is_superuser(role) {
            return true;
        }
        let target = Target::Relation(need.relation);
        let whole = self.privileges(role, (&target, need.kind), database_owner);
        if !whole.and(need.wanted).is_empty() {
            return true;
        }
        let of_columns = need.wanted.and(ObjectKind::Column.all());
        let Some(object) = self.objects.get(&target) else {
            return false;
        };
        if of_columns.is_empty() || need.kind == ObjectKind::Sequence || object.columns.is_empty() {
            return false;
        }
        let groups = self.groups(role, database_owner);
        let has = |place: &u16| {
            let acl = object.columns.get(place);
            acl.is_some_and(|acl| !acl.privileges(&groups).and(of_columns).is_empty())
        };
        match need.columns.is_empty() {
            true => object.columns.keys().any(has),
            false => need.columns.iter().all(has),
        }
    }
}
