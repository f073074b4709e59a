//! Below which timestamps versions are not read any more, database by database.

use alloc::vec::Vec;
use base::{DatabaseId, IndexId, LookupMap, Ts};
use serde::{Deserialize, Serialize};

/// A timestamp of each of some databases, by database: the oldest that is read, or a horizon.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ByDatabase(Vec<(DatabaseId, Ts)>);

impl ByDatabase {
    /// That of a database.
    #[must_use]
    pub fn get(&self, database: DatabaseId) -> Option<Ts> {
        let at = self.0.binary_search_by_key(&database, |entry| entry.0);
        Some(self.0[at.ok()?].1)
    }

    /// Adds a database, or takes the lower one of its timestamps.
    pub fn note(&mut self, database: DatabaseId, ts: Ts) {
        match self.0.binary_search_by_key(&database, |entry| entry.0) {
            Ok(at) => self.0[at].1 = ts.min(self.0[at].1),
            Err(at) => self.0.insert(at, (database, ts)),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (DatabaseId, Ts)> {
        self.0.iter().copied()
    }

    /// Whether it has no database.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets all databases, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl FromIterator<(DatabaseId, Ts)> for ByDatabase {
    fn from_iter<T: IntoIterator<Item = (DatabaseId, Ts)>>(all: T) -> ByDatabase {
        let mut by_database = ByDatabase::default();
        all.into_iter()
            .for_each(|(database, ts)| by_database.note(database, ts));
        by_database
    }
}

/// The horizon of each database: no read below it is answered, so of the versions at or below it
/// only the newest of each row counts. None of them ever goes back (rule R13).
///
/// Most of the time all are one: where no reader is open, it is where the clocks of the shards
/// stand. Then no index is looked up.
#[derive(Debug, Default)]
pub struct Horizons {
    /// That of every database that no reader holds back.
    common: Ts,
    /// Those that readers hold back: each is below the common one.
    held: ByDatabase,
    /// Memory for the next `held`.
    spare: ByDatabase,
    databases: LookupMap<IndexId, DatabaseId>,
}

impl Horizons {
    /// One horizon of all databases.
    #[must_use]
    pub fn at(ts: Ts) -> Horizons {
        Horizons {
            common: ts,
            ..Horizons::default()
        }
    }

    /// That of the database of an index. Of one that belongs to none yet, the lowest.
    #[inline]
    #[must_use]
    pub fn of(&self, index: IndexId) -> Ts {
        match self.held.is_empty() {
            true => self.common,
            false => self.held_of(index),
        }
    }

    #[cold]
    fn held_of(&self, index: IndexId) -> Ts {
        match self.database(index) {
            Some(database) => self.held.get(database).unwrap_or(self.common),
            None => self.lowest(),
        }
    }

    /// That of databases without readers: no other one is higher.
    #[inline]
    #[must_use]
    pub fn highest(&self) -> Ts {
        self.common
    }

    /// The one that is held back most.
    #[must_use]
    pub fn lowest(&self) -> Ts {
        self.held
            .iter()
            .map(|(_, ts)| ts)
            .min()
            .unwrap_or(self.common)
    }

    /// The database of an index, if it is in one.
    #[must_use]
    pub fn database(&self, index: IndexId) -> Option<DatabaseId> {
        self.databases.get(&index).copied()
    }

    /// Readers read at or above `common`, but for those of these databases, which read at or above
    /// the timestamps. A horizon that is higher already stays.
    pub fn advance(&mut self, common: Ts, readers: &ByDatabase) {
        let before = self.common;
        self.common = before.max(common);
        if readers.is_empty() && self.held.is_empty() {
            return;
        }
        let mut next = core::mem::take(&mut self.spare);
        next.clear();
        let known = self.held.iter();
        let new = readers.iter().map(|(database, _)| (database, before));
        let new = new.filter(|(database, _)| self.held.get(*database).is_none());
        for (database, known) in known.chain(new) {
            let oldest = readers.get(database).unwrap_or(common);
            let horizon = known.max(oldest.min(common));
            if horizon < self.common {
                next.note(database, horizon);
            }
        }
        self.spare = core::mem::replace(&mut self.held, next);
    }

    /// The indexes and sequences of a catalog, with their databases.
    pub fn set_databases(&mut self, all: impl Iterator<Item = (IndexId, DatabaseId)>) {
        self.databases.clear();
        for (index, database) in all {
            self.databases.insert(index, database);
        }
    }

    /// The database of one index or sequence; `None`: it is gone.
    pub fn set_database(&mut self, index: IndexId, database: Option<DatabaseId>) {
        match database {
            Some(database) => self.databases.insert(index, database),
            None => self.databases.remove(&index),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DatabaseId = DatabaseId(1);
    const B: DatabaseId = DatabaseId(2);

    fn horizons() -> Horizons {
        let mut horizons = Horizons::at(Ts(5));
        let indexes = [(IndexId(1), A), (IndexId(2), B)];
        horizons.set_databases(indexes.into_iter());
        horizons
    }

    fn all(horizons: &Horizons) -> [u64; 3] {
        [1, 2, 3].map(|index| horizons.of(IndexId(index)).0)
    }

    #[test]
    fn a_reader_holds_back_its_own_database() {
        let mut horizons = horizons();
        assert_eq!(all(&horizons), [5, 5, 5]);
        horizons.advance(Ts(20), &ByDatabase::from_iter([(A, Ts(10))]));
        // The third index belongs to no database yet.
        assert_eq!(all(&horizons), [10, 20, 10]);
        horizons.advance(Ts(30), &ByDatabase::from_iter([(A, Ts(10)), (B, Ts(25))]));
        assert_eq!(all(&horizons), [10, 25, 10]);
        assert_eq!((horizons.lowest(), horizons.highest()), (Ts(10), Ts(30)));
        horizons.advance(Ts(40), &ByDatabase::from_iter([(B, Ts(25))]));
        assert_eq!(all(&horizons), [40, 25, 25]);
        horizons.advance(Ts(41), &ByDatabase::from_iter([]));
        assert_eq!(all(&horizons), [41, 41, 41]);
    }

    /// A node that was taken to be gone is back: its readers come too late.
    #[test]
    fn a_horizon_never_goes_back() {
        let mut horizons = horizons();
        horizons.advance(Ts(50), &ByDatabase::from_iter([(A, Ts(30))]));
        assert_eq!(all(&horizons), [30, 50, 30]);
        horizons.advance(Ts(60), &ByDatabase::from_iter([(A, Ts(10)), (B, Ts(10))]));
        assert_eq!(all(&horizons), [30, 50, 30]);
        // It says little of those that read B now.
        horizons.advance(Ts(20), &ByDatabase::from_iter([(A, Ts(40))]));
        assert_eq!(all(&horizons), [30, 50, 30]);
        horizons.advance(Ts(61), &ByDatabase::from_iter([]));
        assert_eq!(all(&horizons), [61, 61, 61]);
    }
}
