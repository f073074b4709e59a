//! Row counts of tables, as far as this shard knows them: for the planner.
//!
//! A shard knows its own rows; other shards tell theirs when they are asked. It asks when a
//! statement is planned for which row counts matter and none are known, and later at most every
//! [`AGAIN_US`] while rows are written. Statements do not wait for the answer. When a table has
//! become twice as large, or half, plans for which that matters are made again.

use base::{DatabaseId, TableId, Time};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Microseconds after which row counts are asked for again, while rows are written.
const AGAIN_US: u64 = 2_000_000;
/// Rows below which a table is planned as if it had that many.
const ROWS_MIN: u64 = 1_000;

/// Row counts of one database.
#[derive(Default)]
struct Known {
    name: String,
    rows: BTreeMap<TableId, u64>,
    /// Raised when a count has changed by much; 0: there are none.
    version: u64,
    /// When the shards were last asked.
    at: Time,
}

/// Row counts that this shard knows, by database.
#[derive(Default)]
pub struct Statistics {
    known: BTreeMap<DatabaseId, Known>,
    to_ask: VecDeque<DatabaseId>,
    /// The open question, with its number once it was sent.
    asked: Option<(DatabaseId, Option<u64>)>,
}

impl Statistics {
    /// Number of rows of a table in the whole cluster.
    pub(crate) fn rows(&self, database: DatabaseId, table: TableId) -> Option<u64> {
        self.known.get(&database)?.rows.get(&table).copied()
    }

    /// Row counts of all tables of a database, as far as they are known.
    pub(crate) fn all(&self, database: DatabaseId) -> BTreeMap<TableId, u64> {
        let known = self.known.get(&database);
        known.map_or_else(BTreeMap::new, |known| known.rows.clone())
    }

    /// Version of the row counts: plans with other ones are made again.
    pub(crate) fn version(&self, database: DatabaseId) -> u64 {
        self.known.get(&database).map_or(0, |known| known.version)
    }

    /// A statement was planned for which row counts matter.
    pub(crate) fn want(&mut self, database: DatabaseId, name: &str, now: Time) {
        if let Entry::Vacant(entry) = self.known.entry(database) {
            entry.insert(Known {
                name: name.to_string(),
                at: now,
                ..Known::default()
            });
            self.to_ask.push_back(database);
        }
    }

    /// Rows were written, on any shard.
    pub fn note_writes(&mut self, now: Time) {
        for (database, known) in &mut self.known {
            if known.at.after(AGAIN_US) <= now {
                known.at = now;
                self.to_ask.push_back(*database);
            }
        }
    }

    /// Whether no question is to be sent or answered.
    pub fn is_idle(&self) -> bool {
        self.to_ask.is_empty() && self.asked.is_none()
    }

    /// The open question, or the next one: the name of its database, and its number.
    pub fn question(&mut self) -> Option<(String, &mut Option<u64>)> {
        if self.asked.is_none() {
            self.asked = self.to_ask.pop_front().map(|database| (database, None));
        }
        let (database, ticket) = self.asked.as_mut()?;
        Some((self.known.get(database)?.name.clone(), ticket))
    }

    /// The answer; `None`: shards are missing in it, so it is ignored.
    pub fn on_answer(&mut self, rows: Option<BTreeMap<TableId, u64>>) {
        let asked = self.asked.take();
        let known = asked.and_then(|(database, _)| self.known.get_mut(&database));
        if let (Some(known), Some(rows)) = (known, rows) {
            let before = |table: &TableId| known.rows.get(table).copied();
            let differs = |(table, now): (&TableId, &u64)| {
                before(table).is_none_or(|before| {
                    let (before, now) = (before.max(ROWS_MIN), (*now).max(ROWS_MIN));
                    now > 2 * before || before > 2 * now
                })
            };
            if rows.iter().any(differs) {
                known.version += 1;
                known.rows = rows;
            }
        }
    }

    /// Forgets databases that are gone.
    pub fn retain(&mut self, is_there: impl Fn(DatabaseId) -> bool) {
        self.known.retain(|database, _| is_there(*database));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[u64]) -> Option<BTreeMap<TableId, u64>> {
        let rows = (1u32..).zip(rows);
        Some(rows.map(|(table, rows)| (TableId(table), *rows)).collect())
    }

    /// Sends a question if there is one, and answers it.
    fn answer(statistics: &mut Statistics, rows: Option<BTreeMap<TableId, u64>>) -> bool {
        let asks = statistics.question().is_some();
        if asks {
            statistics.on_answer(rows);
        }
        asks
    }

    #[test]
    fn numbers_are_asked_once_and_again_after_writes() {
        let (mut statistics, database) = (Statistics::default(), DatabaseId(7));
        assert!(!answer(&mut statistics, None), "nobody wants to know");
        statistics.want(database, "shop", Time(5));
        statistics.want(database, "shop", Time(6));
        assert_eq!(
            statistics.question().map(|(name, _)| name),
            Some("shop".into())
        );
        assert!(answer(&mut statistics, counts(&[3, 5_000])));
        assert!(statistics.is_idle());
        assert_eq!(statistics.rows(database, TableId(2)), Some(5_000));
        assert_eq!(statistics.rows(database, TableId(3)), None);
        statistics.note_writes(Time(5 + AGAIN_US - 1));
        assert!(statistics.is_idle(), "it is known for a short time only");
        statistics.note_writes(Time(5 + AGAIN_US));
        assert!(answer(&mut statistics, None), "an answer with gaps");
        assert_eq!(statistics.rows(database, TableId(2)), Some(5_000));
        statistics.retain(|_| false);
        assert_eq!(statistics.rows(database, TableId(2)), None);
    }

    #[test]
    fn plans_are_made_again_when_a_table_has_another_size() {
        let (mut statistics, database) = (Statistics::default(), DatabaseId(7));
        statistics.want(database, "shop", Time(0));
        assert_eq!(statistics.version(database), 0);
        let mut time = 0;
        for (rows, version) in [
            (&[3, 5_000][..], 1),
            (&[900, 9_000], 1),
            (&[900, 10_001], 2),
            (&[2_001, 10_001], 3),
            (&[0, 10_001], 4),
            (&[0, 10_001, 0], 5),
            (&[0, 10_001], 5),
        ] {
            statistics.note_writes(Time(time));
            assert!(answer(&mut statistics, counts(rows)), "{rows:?}");
            assert_eq!(statistics.version(database), version, "{rows:?}");
            time += AGAIN_US;
        }
    }
}
