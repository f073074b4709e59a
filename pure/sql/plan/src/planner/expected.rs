//! How many entries of an index a key or a range has, by what is known of values, or as a guess.

use super::estimate::{between, entries};
use crate::step::{Bound, KeyPart};
use catalog::Index;
use expr::Expr;
use statistics::{ColumnValues, TableValues};

/// Cost of reading a row through a secondary index, in rows read from the primary one, for the
/// choice of an index as long as nothing is known of values: reading the whole table would be the
/// greater mistake.
const SECONDARY_GUESSED: f64 = 2.0;
/// The same where the number of rows can be relied on.
const SECONDARY_COST: f64 = 10.0;
/// What is expected of an access.
pub(super) struct Expected<'m> {
    index: &'m Index,
    measured: Measured<'m>,
    /// Columns of the prefix.
    known: usize,
    /// Whether there is a lower and an upper end.
    ends: (bool, bool),
    /// Share of the entries with the prefix that lie between the ends, if it can be reckoned.
    range: Option<f64>,
}

impl<'m> Expected<'m> {
    pub(super) fn of(
        index: &'m Index,
        prefix: &[KeyPart],
        (low, high): (Option<&Bound>, Option<&Bound>),
        values: Option<&'m TableValues>,
    ) -> Expected<'m> {
        let measured = Measured::of(index, prefix, values);
        Expected {
            range: measured.range(prefix.len(), &[low, high]),
            index,
            measured,
            known: prefix.len(),
            ends: (low.is_some(), high.is_some()),
        }
    }

    /// Entries of so many keys, of a table of `rows` rows.
    pub(super) fn rows(&self, rows: f64, combinations: f64) -> f64 {
        let Index {
            columns, unique, ..
        } = self.index;
        let each = match self.measured.each {
            Some(share) => (rows * share).max(rows.min(1.0)),
            None => entries(rows, columns.len(), self.known, *unique),
        };
        let whole = (combinations * each).min(rows);
        match self.range {
            Some(share) => whole * share,
            None => between(self.ends.0, self.ends.1, whole),
        }
    }

    /// Cost of reading a row through the index if it is a secondary one.
    pub(super) fn secondary_cost(&self) -> f64 {
        let prefix = self.known == 0 || self.measured.each.is_some();
        let range = self.ends == (false, false) || self.range.is_some();
        let is_reckoned = !self.measured.columns.is_empty() && prefix && range;
        match is_reckoned {
            true => SECONDARY_COST,
            false => SECONDARY_GUESSED,
        }
    }
}

/// What is known of the keys of an index.
struct Measured<'m> {
    /// What is known of each of its columns.
    columns: Vec<Option<&'m ColumnValues>>,
    /// Share of the rows with one key of the prefix; `None`: not known.
    each: Option<f64>,
}

impl<'m> Measured<'m> {
    fn of(index: &Index, prefix: &[KeyPart], values: Option<&'m TableValues>) -> Measured<'m> {
        let Some(values) = values else {
            return Measured {
                columns: Vec::new(),
                each: None,
            };
        };
        let columns = index.columns.iter().map(|key| values.column(key.column));
        let columns: Vec<Option<&ColumnValues>> = columns.collect();
        let whole = index.unique && prefix.len() == index.columns.len();
        let share = |(part, known): (&KeyPart, &Option<&ColumnValues>)| match part {
            KeyPart::One(Expr::Const(value, _)) => Some((*known)?.equal(value)),
            _ => Some((*known)?.equal_to_some()),
        };
        let each = match whole || prefix.is_empty() {
            true => None,
            false => prefix.iter().zip(&columns).map(share).product(),
        };
        Measured { columns, each }
    }

    /// Share of the entries behind a prefix that lie between two ends, if both are known.
    fn range(&self, prefix: usize, ends: &[Option<&Bound>; 2]) -> Option<f64> {
        let known = (*self.columns.get(prefix)?)?;
        let below = |bound: &Bound, inclusive: bool| match bound.values.as_slice() {
            [Expr::Const(value, _)] => Some(known.below(value, inclusive)),
            _ => None,
        };
        let (low, high) = match ends {
            [None, None] => return None,
            [low, high] => (
                low.map_or(Some(0.0), |bound| below(bound, !bound.inclusive))?,
                high.map_or(Some(1.0 - known.nulls), |bound| {
                    below(bound, bound.inclusive)
                })?,
            ),
        };
        Some((high - low).clamp(known.equal_to_some().min(1.0), 1.0))
    }
}
