//! SQL types and values.

use crate::decimal::Decimal;
use alloc::boxed::Box;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A column type. The type modifier is part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Type {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric(precision, scale)`; `None`: any scale up to the limit of [`Decimal`].
    Numeric(Option<(u8, u8)>),
    /// `text`
    Text,
    /// `varchar(n)`; `None`: no limit. In characters.
    Varchar(Option<u32>),
    /// `char(n)`, blank padded. In characters.
    Char(u32),
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    Timestamptz,
    /// `uuid`
    Uuid,
    /// `interval`
    Interval,
    /// `name` (catalog columns)
    Name,
    /// `oid`, `regclass` and their like (catalog columns)
    Oid,
    /// `"char"` (catalog columns)
    InternalChar,
    /// One-dimensional arrays of the catalog and of parameters: element kind.
    Array(ArrayKind),
    /// A NULL or string literal whose type is still open.
    Unknown,
}

/// Element types that arrays may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum ArrayKind {
    Bool, Int2, Int4, Int8, Text, Name, Oid, InternalChar, Float8, Numeric, Timestamptz, Varchar,
}

/// One SQL value. Its type is known from where it stands; all integers share one variant.
///
/// `PartialEq` is structural (used by tests); SQL comparison is `Datum::compare`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub enum Datum {
    /// SQL NULL.
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `int2`, `int4`, `int8`, `oid`; always inside the range of its type.
    Int(i64),
    /// `float4` (exactly representable there), `float8`
    Float(f64),
    /// `numeric`
    Decimal(Decimal),
    /// `text`, `varchar`, `char` (stored without padding), `name`, `"char"`
    Text(Box<str>),
    /// `bytea`
    Bytes(Box<[u8]>),
    /// Days since 2000-01-01; `i32::MIN`/`i32::MAX` are -infinity/infinity.
    Date(i32),
    /// Microseconds since 2000-01-01 00:00 (UTC for timestamptz); `i64::MIN`/`i64::MAX` are
    /// -infinity/infinity.
    Timestamp(i64),
    /// 128 bits in network order.
    Uuid([u8; 16]),
    /// Months, days and microseconds.
    Interval(Interval),
    /// A one-dimensional array, lower bound 1.
    Array(Box<[Datum]>),
}

/// The three independent parts of an SQL interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Default)]
pub struct Interval {
    /// Calendar months.
    pub months: i32,
    /// Calendar days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// Rows of equal width, stored flat: row `i` is `datums[i * width..(i + 1) * width]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
pub struct RowBatch {
    /// Columns per row; 0 is legal (`SELECT` of no columns) and then `rows` counts them.
    pub width: u32,
    /// Number of rows.
    pub rows: u32,
    /// `width * rows` values.
    pub datums: Vec<Datum>,
}

impl RowBatch {
    /// No rows of `width` columns.
    pub fn new(width: usize) -> RowBatch {
        RowBatch { width: width as u32, rows: 0, datums: Vec::new() }
    }
    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Datum]> {
        (0..self.rows as usize).map(|i| self.row(i))
    }
    /// Row `i`, from 0.
    pub fn row(&self, i: usize) -> &[Datum] {
        let width = self.width as usize;
        &self.datums[i * width..(i + 1) * width]
    }
    /// Appends one row; panics if its width differs.
    pub fn push(&mut self, row: impl IntoIterator<Item = Datum>) {
        self.datums.extend(row);
        self.rows += 1;
        assert_eq!(self.datums.len(), self.width as usize * self.rows as usize);
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}
