//! How many sessions the roles and databases of a node have: CONNECTION LIMIT.
//!
//! The host counts, for all shards of the node together: so a limit is exact on each node. Nodes do
//! not ask each other. Every session is counted, for a limit may be set while it lives.

use base::{SqlError, SqlState};
use catalog::{Catalog, Database};
use rights::RoleId;
use std::fmt;
use std::sync::Arc;

/// Who has sessions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A role, by its number.
    Role(u32),
    /// A database, by its number.
    Database(u32),
}

/// Counts the sessions of a node.
pub trait Count: Send + Sync {
    /// One more session of these places, of which each may have so many with it; `None`: any
    /// number.
    ///
    /// # Errors
    /// The first place that is full; nothing is counted then.
    fn enter(&self, places: [(Place, Option<u32>); 2]) -> Result<(), Place>;
    /// One session less.
    fn leave(&self, places: [Place; 2]);
}

/// Who counts the sessions; by default nobody.
#[derive(Clone, Default)]
pub struct Seats(pub Option<Arc<dyn Count>>);

impl PartialEq for Seats {
    fn eq(&self, other: &Seats) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for Seats {}

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seats")
    }
}

/// A session's place among those of its role and its database; given back when it is dropped.
pub(crate) struct Seat {
    count: Arc<dyn Count>,
    places: [Place; 2],
}

impl Seats {
    /// A place for a session of this role in this database.
    ///
    /// # Errors
    /// 53300 if the role, or the database, has as many sessions as its limit says. Superusers have
    /// none.
    pub(crate) fn take(
        &self,
        catalog: &Catalog,
        role: RoleId,
        database: &Database,
    ) -> Result<Option<Seat>, SqlError> {
        let Some(count) = &self.0 else {
            return Ok(None);
        };
        let known = catalog.rights.roles.get(&role);
        let limits = [
            known.map_or(-1, |role| role.connection_limit),
            database.connection_limit,
        ];
        let free = catalog.rights.is_superuser(role);
        let limits = limits.map(|limit| u32::try_from(limit).ok().filter(|_| !free));
        let places = [Place::Role(role.0), Place::Database(database.id.0)];
        let [of_role, of_database] = limits;
        let asked = [(places[0], of_role), (places[1], of_database)];
        count.enter(asked).map_err(|place| {
            let whose = match place {
                Place::Role(_) => format!("role \"{}\"", catalog.rights.name(role)),
                Place::Database(_) => format!("database \"{}\"", database.name),
            };
            let message = format!("too many connections for {whose}");
            SqlError::new(SqlState(*b"53300"), message)
        })?;
        Ok(Some(Seat {
            count: count.clone(),
            places,
        }))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.count.leave(self.places);
    }
}
