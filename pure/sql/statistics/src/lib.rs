//! What is known of the values of tables: for the planner, and for those who ask pg_stats.
//!
//! Each shard draws a sample of its rows ([`Sampler`]) and makes a [`Digest`] of each column; the
//! digests of all shards together are the [`TableValues`] by which shares of rows are estimated.
//! Estimates may be wrong, and nothing but speed depends on them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod digest;
mod sample;
mod sketch;

pub use digest::{Digest, WIRE_WIDTH, merged};
pub use sample::Sampler;
pub use sketch::Sketch;

use base::Datum;
use core::cmp::Ordering;
use std::collections::BTreeMap;

/// Share of the rows from which on a number of different values grows with the table.
const GROWS_FROM: f64 = 0.1;

/// What is known of a table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableValues {
    /// Rows when the samples were drawn.
    pub rows: f64,
    /// What is known of columns, by their places in the table.
    pub columns: BTreeMap<u16, ColumnValues>,
}

impl TableValues {
    /// What is known of a column, if anything is.
    pub fn column(&self, column: u16) -> Option<&ColumnValues> {
        self.columns.get(&column)
    }
}

/// What is known of the values of a column.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ColumnValues {
    /// Rows of the table when the sample was drawn.
    pub rows: f64,
    /// Share of the rows that are NULL there.
    pub nulls: f64,
    /// Bytes of a value, on average.
    pub width: f64,
    /// Different values in the whole table, at least 1.
    pub distinct: f64,
    /// Common values with their shares of all rows, the most common one first.
    pub common: Vec<(Datum, f64)>,
    /// Values, in order, between which equal parts of the other rows lie.
    pub bounds: Vec<Datum>,
}

impl ColumnValues {
    /// Different values in a table that has `rows` rows now.
    pub fn distinct(&self, rows: f64) -> f64 {
        match self.grows() {
            true => (self.distinct * rows / self.rows.max(1.0)).max(1.0),
            false => self.distinct,
        }
    }

    /// Whether the number of different values grows with the table.
    pub fn grows(&self) -> bool {
        self.distinct > GROWS_FROM * self.rows
    }

    /// Share of the rows that are neither NULL nor common.
    fn rest(&self) -> f64 {
        let common: f64 = self.common.iter().map(|(_, share)| share).sum();
        (1.0 - self.nulls - common).max(0.0)
    }

    /// Share of the rows that are equal to a value that is known.
    pub fn equal(&self, value: &Datum) -> f64 {
        let same = |(known, _): &&(Datum, f64)| known.compare(value) == Ordering::Equal;
        match self.common.iter().find(same) {
            Some((_, share)) => *share,
            None => self.uncommon(),
        }
    }

    /// Share of the rows that are equal to a value that is not a common one.
    fn uncommon(&self) -> f64 {
        let others = (self.distinct - self.common.len() as f64).max(1.0);
        let rest = self.rest() / others;
        // It would be among the common ones.
        let least = self.common.last().map_or(1.0, |(_, share)| *share);
        rest.min(least)
    }

    /// Share of the rows that are equal to a value that is not known: values are asked for as often
    /// as they are there, or each alike; between both lies the truth.
    pub fn equal_to_some(&self) -> f64 {
        (1.0 - self.nulls) / self.distinct.max(1.0)
    }

    /// Share of the rows below a value; with `inclusive` those that are equal count, too.
    pub fn below(&self, value: &Datum, inclusive: bool) -> f64 {
        let is_below = |known: &Datum| match known.compare(value) {
            Ordering::Less => true,
            Ordering::Equal => inclusive,
            Ordering::Greater => false,
        };
        let common = self.common.iter().filter(|(known, _)| is_below(known));
        let common: f64 = common.map(|(_, share)| share).sum();
        common + self.rest() * self.part_below(value, inclusive)
    }

    /// Part of the other rows below a value.
    fn part_below(&self, value: &Datum, inclusive: bool) -> f64 {
        let parts = self.bounds.len().saturating_sub(1);
        if parts == 0 {
            return 0.5;
        }
        let before = self
            .bounds
            .partition_point(|bound| match bound.compare(value) {
                Ordering::Less => true,
                Ordering::Equal => inclusive,
                Ordering::Greater => false,
            });
        if before == 0 {
            return 0.0;
        }
        if before > parts {
            return 1.0;
        }
        let within = place(&self.bounds[before - 1], &self.bounds[before], value);
        ((before - 1) as f64 + within) / parts as f64
    }

    /// Share of the rows whose value passes a test; the bounds stand for the rows between them.
    /// `None` if too little is known.
    pub fn passing(&self, passes: &mut dyn FnMut(&Datum) -> Option<bool>) -> Option<f64> {
        let mut share = 0.0;
        for (value, own) in &self.common {
            if passes(value)? {
                share += own;
            }
        }
        let rest = self.rest();
        if self.bounds.is_empty() {
            return (rest < 0.01).then_some(share);
        }
        let mut count = 0usize;
        for bound in &self.bounds {
            count += usize::from(passes(bound)?);
        }
        // A pattern that fits none of them may still fit some rows.
        let part = (count as f64).max(0.5) / self.bounds.len() as f64;
        Some(share + rest * part)
    }
}

/// Where a value lies between two others, from 0 to 1.
fn place(low: &Datum, high: &Datum, value: &Datum) -> f64 {
    match (number(low), number(high), number(value)) {
        (Some(low), Some(high), Some(value)) if high > low => {
            ((value - low) / (high - low)).clamp(0.0, 1.0)
        }
        _ => 0.5,
    }
}

fn number(value: &Datum) -> Option<f64> {
    const DAY_US: f64 = 86_400e6;
    let number = match value {
        Datum::Int(value) | Datum::Timestamp(value) | Datum::Time(value) => *value as f64,
        Datum::Timetz(value) => value.utc() as f64,
        Datum::Float(value) => *value,
        Datum::Decimal(value) => value.to_f64(),
        Datum::Large(value) => value.to_f64(),
        Datum::Date(days) => f64::from(*days) * DAY_US,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests;
