//! The four write operations, and how two writes of one key become one.

use crate::formula::Formula;
use alloc::vec::Vec;
use base::{Datum, SqlError};
use serde::{Deserialize, Serialize};

/// What a transaction does to one key. A transaction has at most one per key (see [`Write::then`]).
/// Rows are encoded as `base::row` does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Write {
    /// A row that must be absent.
    Insert(#[serde(with = "crate::bytes")] Vec<u8>),
    /// A row whose key is present and gets this value, or is absent and appears.
    Put(#[serde(with = "crate::bytes")] Vec<u8>),
    /// Removes a row that must be present.
    Delete,
    /// Changes columns of a row that must be present.
    Formula(Formula),
}

impl Write {
    /// The one write that does what `self` and then `later` do to the same key; `None` if together
    /// they do nothing.
    ///
    /// | self \ later | insert | put | delete | formula |
    /// |---|---|---|---|---|
    /// | insert | bug | insert | nothing | insert, folded |
    /// | put | bug | put | delete | put, folded |
    /// | delete | put | put | bug | bug |
    /// | formula | bug | put | delete | formula |
    ///
    /// A put that is followed by a delete must have found its row present, which is so because an
    /// update puts and everything else inserts.
    ///
    /// Errors: as [`Formula::fold`]; the transaction then fails, as its statement would have.
    pub fn then(self, later: Write) -> Result<Option<Write>, SqlError> {
        let both = match (self, later) {
            (Write::Insert(_), Write::Put(row)) => Write::Insert(row),
            (Write::Insert(_), Write::Delete) => return Ok(None),
            (Write::Insert(row), Write::Formula(formula)) => Write::Insert(folded(&row, &formula)?),
            (Write::Put(row), Write::Formula(formula)) => Write::Put(folded(&row, &formula)?),
            (Write::Put(_) | Write::Formula(_) | Write::Delete, Write::Put(row))
            | (Write::Delete, Write::Insert(row)) => Write::Put(row),
            (Write::Put(_) | Write::Formula(_), Write::Delete) => Write::Delete,
            (Write::Formula(first), Write::Formula(second)) => Write::Formula(first.then(second)),
            (Write::Insert(_) | Write::Put(_) | Write::Formula(_), Write::Insert(_)) => {
                panic!("an insert follows a write that left its row present")
            }
            (Write::Delete, Write::Delete | Write::Formula(_)) => {
                panic!("a write that needs its row follows a delete")
            }
        };
        Ok(Some(both))
    }

    /// Whether `later` cannot follow: [`Write::then`] would stop the process.
    pub fn contradicts(&self, later: &Write) -> bool {
        match self {
            Write::Delete => matches!(later, Write::Delete | Write::Formula(_)),
            Write::Insert(_) | Write::Put(_) | Write::Formula(_) => {
                matches!(later, Write::Insert(_))
            }
        }
    }

    /// The formula, if it is one.
    #[inline]
    pub fn formula(&self) -> Option<&Formula> {
        match self {
            Write::Formula(formula) => Some(formula),
            Write::Insert(_) | Write::Put(_) | Write::Delete => None,
        }
    }

    /// Bytes of row or operands, for memory accounting and record limits; at least 1.
    pub fn size_bytes(&self) -> usize {
        match self {
            Write::Insert(row) | Write::Put(row) => row.len() + 1,
            Write::Delete => 1,
            Write::Formula(formula) => 1 + formula.size_bytes(),
        }
    }
}

/// Bytes of a value beside its [`Datum`].
#[must_use]
pub fn value_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytes(bytes) => bytes.len(),
        Datum::Bits(bits) => bits.encoded().len(),
        Datum::Jsonb(json) => json.as_str().len(),
        Datum::Large(number) => number.heap_bytes(),
        Datum::Array(_) | Datum::Grid(_) => value
            .as_array()
            .unwrap_or_default()
            .iter()
            .map(|item| size_of::<Datum>() + value_bytes(item))
            .sum(),
        Datum::Record(record) => {
            let types = size_of_val::<[base::Type]>(record.types());
            let values = record.values().iter();
            types
                + values
                    .map(|item| size_of::<Datum>() + value_bytes(item))
                    .sum::<usize>()
        }
        Datum::Range(range) => {
            size_of::<base::Range>() + range.values().iter().map(value_bytes).sum::<usize>()
        }
        Datum::Multirange(value) => {
            let bounds = value.ranges().iter().flat_map(base::Range::values);
            size_of_val::<[base::Range]>(value.ranges()) + bounds.map(value_bytes).sum::<usize>()
        }
        Datum::Null
        | Datum::Bool(_)
        | Datum::Int(_)
        | Datum::Float(_)
        | Datum::Decimal(_)
        | Datum::Date(_)
        | Datum::Time(_)
        | Datum::Timetz(_)
        | Datum::Timestamp(_)
        | Datum::Uuid(_)
        | Datum::Inet(_)
        | Datum::Mac(_)
        | Datum::Interval(_) => 0,
    }
}

fn folded(row: &[u8], formula: &Formula) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(row.len() + 8);
    formula.fold(row, &mut out)?;
    Ok(out)
}
