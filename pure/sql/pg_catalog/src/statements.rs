//! `pg_stat_statements`: what statements have cost, of all nodes; and the extension of that name,
//! which is always there.

use super::{CatalogCx, OWNER, PG_CATALOG, flag, int, oid, text};
use base::{Datum, Decimal, RowBatch, SqlError, SqlState};
use std::collections::BTreeMap;

/// Number of the extension; dumps leave out those below 16384.
const EXTENSION: u32 = 13_991;
/// Number of pg_extension.
const CLASS: u32 = 3079;
const NAME: &str = "pg_stat_statements";
const VERSION: &str = "1.10";
const COMMENT: &str = "track planning and execution statistics of all SQL statements executed";

/// Counts of a statement.
#[derive(Default)]
struct Counts<'a> {
    query: &'a str,
    calls: i64,
    rows: i64,
    total_us: i64,
    min_us: i64,
    max_us: i64,
    /// Sum of the squares of what each time differs from the mean.
    spread: f64,
}

impl<'a> Counts<'a> {
    /// Adds what another shard has counted.
    fn add(&mut self, other: Counts<'a>) {
        if self.calls == 0 {
            *self = other;
            return;
        }
        if other.calls == 0 {
            return;
        }
        let (ours, theirs) = (self.calls as f64, other.calls as f64);
        let apart = other.mean_us() - self.mean_us();
        self.spread += other.spread + apart * apart * ours * theirs / (ours + theirs);
        self.calls = self.calls.saturating_add(other.calls);
        self.rows = self.rows.saturating_add(other.rows);
        self.total_us = self.total_us.saturating_add(other.total_us);
        self.min_us = self.min_us.min(other.min_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    fn mean_us(&self) -> f64 {
        self.total_us as f64 / self.calls.max(1) as f64
    }

    /// total, min, max, mean and stddev of the times in milliseconds.
    fn times(&self) -> [Datum; 5] {
        let deviation = (self.spread / self.calls.max(1) as f64).sqrt();
        let whole = [self.total_us, self.min_us, self.max_us].map(|us| us as f64);
        let [total, min, max] = whole;
        [total, min, max, self.mean_us(), deviation].map(|us| Datum::Float(us / 1000.0))
    }
}

pub(super) fn rows(cx: &CatalogCx<'_>, out: &mut RowBatch) {
    let Some(told) = cx.told else {
        return;
    };
    let mut found: BTreeMap<(i64, i64, i64), Counts<'_>> = BTreeMap::new();
    for row in told.iter() {
        let [
            Datum::Int(user),
            Datum::Int(database),
            Datum::Int(id),
            Datum::Text(query),
            Datum::Int(calls),
            Datum::Int(rows),
            Datum::Int(total_us),
            Datum::Int(min_us),
            Datum::Int(max_us),
            Datum::Float(spread),
        ] = row
        else {
            unreachable!("rows of Show::Statements have its columns")
        };
        let counts = Counts {
            query,
            calls: *calls,
            rows: *rows,
            total_us: *total_us,
            min_us: *min_us,
            max_us: *max_us,
            spread: *spread,
        };
        found
            .entry((*user, *database, *id))
            .or_default()
            .add(counts);
    }
    let acting = cx.acting();
    let superuser = cx.catalog.rights.is_superuser(acting);
    for ((user, database, id), counts) in found {
        let may = superuser || user == i64::from(acting.0);
        let mut row = vec![Datum::Int(user), Datum::Int(database), flag(true)];
        row.extend(match may {
            true => [Datum::Int(id), text(counts.query)],
            false => [Datum::Null, text("<insufficient privilege>")],
        });
        row.push(int(0));
        row.extend([const { Datum::Float(0.0) }; 5]);
        row.push(Datum::Int(counts.calls));
        row.extend(counts.times());
        row.push(Datum::Int(counts.rows));
        // Blocks, the journal and machine code are not counted.
        row.extend([const { Datum::Int(0) }; 10]);
        row.extend([const { Datum::Float(0.0) }; 4]);
        row.extend([int(0), int(0), zero()]);
        for _ in 0..4 {
            row.extend([int(0), Datum::Float(0.0)]);
        }
        out.push(row);
    }
}

/// The numeric 0.
fn zero() -> Datum {
    Datum::Decimal(Decimal::ZERO)
}

pub(super) fn extension(_: &CatalogCx<'_>, out: &mut RowBatch) {
    out.push([
        oid(EXTENSION),
        text(NAME),
        oid(OWNER),
        oid(PG_CATALOG),
        flag(true),
        text(VERSION),
        Datum::Null,
        Datum::Null,
    ]);
}

/// `pg_describe_object`, by which psql tells what belongs to an extension: of extensions alone.
pub(super) fn described(class: u32, object: u32) -> Result<Datum, SqlError> {
    match (class, object) {
        (CLASS, EXTENSION) => Ok(text(format!("extension {NAME}"))),
        (CLASS, _) => Ok(Datum::Null),
        _ => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "pg_describe_object of other objects than extensions is not supported",
        )),
    }
}

/// pg_available_extensions.
pub(super) fn available(_: &CatalogCx<'_>, out: &mut RowBatch) {
    out.push([text(NAME), text(VERSION), text(VERSION), text(COMMENT)]);
}

/// pg_available_extension_versions.
pub(super) fn versions(_: &CatalogCx<'_>, out: &mut RowBatch) {
    out.push([
        text(NAME),
        text(VERSION),
        flag(true),
        flag(true),
        flag(false),
        flag(true),
        Datum::Null,
        Datum::Null,
        text(COMMENT),
    ]);
}
