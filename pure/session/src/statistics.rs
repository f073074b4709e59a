//! Row counts of tables and what is known of their values, as far as this shard has heard: for the
//! planner.
//!
//! A shard knows its own rows; other shards tell theirs when they are asked. It asks when a
//! statement is planned for which row counts matter and none are known, and later at most every
//! [`AGAIN_US`] while rows are written, or while shards look at values. When they have looked at
//! some again, it asks what they have found. Statements do not wait for the answers. When a table
//! has become twice as large, or half, or more is known of values, plans for which that matters are
//! made again.

use base::{DatabaseId, RowBatch, TableId, Time};
use exec::RowCounts;
use parse::show::Show;
use statistics::TableValues;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Microseconds after which row counts are asked for again, while rows are written.
const AGAIN_US: u64 = 2_000_000;
/// Microseconds after which row counts are asked for again, while shards look at values.
const LOOKING_US: u64 = 100_000;
/// Rows below which a table is planned as if it had that many.
const ROWS_MIN: u64 = 1_000;

/// Row counts of one database.
#[derive(Default)]
struct Known {
    name: String,
    rows: BTreeMap<TableId, u64>,
    values: BTreeMap<TableId, Arc<TableValues>>,
    /// How often shards had looked at values when these were found ([`RowCounts::looked_at`]).
    looked_at: u64,
    /// Raised when a count has changed by much; 0: there are none.
    version: u64,
    /// When the shards were last asked.
    at: Time,
    /// Shards are looking at values.
    looking: bool,
}

impl Known {
    /// Takes new counts.
    fn count(&mut self, rows: BTreeMap<TableId, u64>) {
        let before = |table: &TableId| self.rows.get(table).copied();
        let differs = |(table, now): (&TableId, &u64)| {
            before(table).is_none_or(|before| {
                let (before, now) = (before.max(ROWS_MIN), (*now).max(ROWS_MIN));
                now > 2 * before || before > 2 * now
            })
        };
        if rows.iter().any(differs) {
            self.version += 1;
            self.rows = rows;
        }
    }
}

/// Row counts that this shard knows, by database.
#[derive(Default)]
pub struct Statistics {
    known: BTreeMap<DatabaseId, Known>,
    to_ask: VecDeque<(DatabaseId, What)>,
    /// The open question, with its number once it was sent.
    asked: Option<(DatabaseId, What, Option<u64>)>,
    /// Shards may be looking at values of some database.
    looking: bool,
}

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Rows,
    /// Values, which shards had looked at so often.
    Values(u64),
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

    /// What is known of the values of a table.
    pub(crate) fn values(&self, database: DatabaseId, table: TableId) -> Option<Arc<TableValues>> {
        self.known.get(&database)?.values.get(&table).cloned()
    }

    /// What is known of the values of all tables of a database.
    pub(crate) fn all_values(&self, database: DatabaseId) -> BTreeMap<TableId, Arc<TableValues>> {
        let known = self.known.get(&database);
        known.map_or_else(BTreeMap::new, |known| known.values.clone())
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
            self.to_ask.push_back((database, What::Rows));
        }
    }

    /// Shards begin to look at values.
    pub fn want_again(&mut self, database: DatabaseId, name: &str, now: Time) {
        self.want(database, name, now);
        if let Some(known) = self.known.get_mut(&database) {
            known.looking = true;
            self.looking = true;
        }
    }

    /// When it will ask again without rows being written.
    pub fn deadline(&self) -> Option<Time> {
        // Called behind every step.
        if !self.looking {
            return None;
        }
        let looking = self.known.values().filter(|known| known.looking);
        looking.map(|known| known.at.after(LOOKING_US)).min()
    }

    /// Asks again what shards were looking at.
    pub fn on_tick(&mut self, now: Time) {
        if !self.looking {
            return;
        }
        self.looking = self.known.values().any(|known| known.looking);
        for (database, known) in &mut self.known {
            if known.looking && known.at.after(LOOKING_US) <= now {
                known.at = now;
                self.to_ask.push_back((*database, What::Rows));
            }
        }
    }

    /// Rows were written, on any shard.
    pub fn note_writes(&mut self, now: Time) {
        for (database, known) in &mut self.known {
            if known.at.after(AGAIN_US) <= now {
                known.at = now;
                self.to_ask.push_back((*database, What::Rows));
            }
        }
    }

    /// Whether no question is to be sent or answered.
    pub fn is_idle(&self) -> bool {
        self.to_ask.is_empty() && self.asked.is_none()
    }

    /// The open question, or the next one: the name of its database, and its number.
    pub fn question(&mut self) -> Option<(String, Show, &mut Option<u64>)> {
        if self.asked.is_none() {
            let next = self.to_ask.pop_front();
            self.asked = next.map(|(database, what)| (database, what, None));
        }
        let (database, what, ticket) = self.asked.as_mut()?;
        let show = match what {
            What::Rows => Show::Rows,
            What::Values(_) => Show::Values,
        };
        Some((self.known.get(database)?.name.clone(), show, ticket))
    }

    /// The answer of `shards` shards. If some are missing in it, it is ignored.
    pub fn on_answer(&mut self, answer: Option<&RowBatch>, shards: usize, now: Time) {
        let Some((database, what, _)) = self.asked.take() else {
            return;
        };
        let (Some(known), Some(answer)) = (self.known.get_mut(&database), answer) else {
            return;
        };
        match what {
            What::Rows => {
                let counts = RowCounts::of(answer);
                if counts.answered != shards {
                    return;
                }
                known.looking = counts.looking;
                self.looking |= counts.looking;
                if counts.looking {
                    known.at = now;
                }
                if counts.looked_at != known.looked_at {
                    let asked = What::Values(counts.looked_at);
                    self.to_ask.push_front((database, asked));
                }
                known.count(counts.rows);
            }
            What::Values(looked_at) => {
                known.looked_at = looked_at;
                let found = statistics::merged(answer).into_iter();
                known.values = found.map(|(table, it)| (table, Arc::new(it))).collect();
                known.version += 1;
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
    use base::Datum;
    use statistics::{Sampler, WIRE_WIDTH};

    /// The answer of one shard that has looked at values so often.
    fn looked(rows: &[u64], version: i64, looking: bool) -> Option<RowBatch> {
        let mut batch = RowBatch::new(3);
        for (table, rows) in (1i64..).zip(rows) {
            let (table, rows) = (Datum::Int(table), Datum::Int(*rows as i64));
            batch.push([table, rows, Datum::Int(version)]);
        }
        batch.push([Datum::Null, Datum::Null, Datum::Int(i64::from(looking))]);
        Some(batch)
    }

    fn counts(rows: &[u64]) -> Option<RowBatch> {
        looked(rows, 0, false)
    }

    /// Sends a question if there is one, and answers it.
    fn answer(statistics: &mut Statistics, rows: Option<RowBatch>) -> bool {
        let asks = statistics.question().is_some();
        if asks {
            statistics.on_answer(rows.as_ref(), 1, Time(5));
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
            statistics.question().map(|(name, ..)| name),
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

    #[test]
    fn values_are_asked_for_when_they_were_looked_at() {
        let (mut statistics, database) = (Statistics::default(), DatabaseId(7));
        statistics.want(database, "shop", Time(0));
        assert!(answer(&mut statistics, looked(&[500], 0, true)));
        assert_eq!(statistics.version(database), 1);
        assert_eq!(statistics.deadline(), Some(Time(5 + LOOKING_US)));
        statistics.on_tick(Time(5 + LOOKING_US));
        assert!(answer(&mut statistics, looked(&[500], 1, false)));
        assert_eq!(statistics.deadline(), None);
        let mut sampler = Sampler::new([0], 1);
        sampler.add(&|_| Datum::Int(3));
        assert!(sampler.wants());
        let mut batch = RowBatch::new(WIRE_WIDTH);
        let digests = sampler.finish();
        digests
            .iter()
            .for_each(|digest| digest.push_to(TableId(1), &mut batch));
        let asked = statistics.question().map(|(_, what, _)| what);
        assert_eq!(asked, Some(Show::Values));
        assert!(answer(&mut statistics, Some(batch)));
        assert_eq!(statistics.version(database), 2);
        let values = statistics.values(database, TableId(1)).expect("looked at");
        assert!(values.column(0).is_some());
        assert!(statistics.is_idle());
    }
}
