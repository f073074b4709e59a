//! SQL values and batches of rows.

use crate::bits::Bits;
use crate::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::decimal::Decimal;
use crate::grid::Grid;
use crate::inet::Inet;
use crate::jsonb::Jsonb;
use crate::numeric::Numeric;
use crate::range::{Multirange, Range};
use crate::record::Record;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::types::{ArrayKind, Type};

/// One SQL value. Its type is known from where it stands; all integers share one variant.
///
/// `PartialEq` is structural (used by tests) except that decimals are equal as numbers; SQL
/// comparison is [`Datum::compare`].
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
    /// `text`, `varchar`, `char` (stored without padding), `name`, `"char"`, `json`
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
    /// A one-dimensional array, lower bound 1, or the empty one. No element is an array itself.
    #[serde(deserialize_with = "flat_items")]
    Array(Box<[Datum]>),
    /// `jsonb`
    Jsonb(Jsonb),
    /// `time`: microseconds since midnight, from 0 to those of a whole day (24:00:00).
    Time(i64),
    /// An array of another shape.
    Grid(Box<Grid>),
    /// A `numeric` that is no [`Decimal`]: with more digits, NaN or infinite.
    Large(Box<Numeric>),
    /// `inet` and `cidr`
    Inet(Inet),
    /// `macaddr`
    Mac([u8; 6]),
    /// `timetz`
    Timetz(Timetz),
    /// `bit` and `bit varying`
    Bits(Bits),
    /// A value of a composite type.
    Record(Box<Record>),
    /// `int4range` and its like
    Range(Box<Range>),
    /// `int4multirange` and its like
    Multirange(Multirange),
}

/// The elements of a serialized array: the variants of [`Datum`] in their order, without arrays.
/// Hostile input can therefore not nest arrays until the stack overflows.
#[derive(Deserialize)]
enum Element {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(Decimal),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    Date(i32),
    Timestamp(i64),
    Uuid([u8; 16]),
    Interval(Interval),
    /// Stands in the place of arrays, which no array holds; `Grid` too.
    Array(Never),
    Jsonb(Jsonb),
    Time(i64),
    Grid(Never),
    Large(Box<Numeric>),
    Inet(Inet),
    Mac([u8; 6]),
    Timetz(Timetz),
    Bits(Bits),
    Record(Box<Record>),
    Range(Box<Range>),
    Multirange(Multirange),
}

/// What no bytes stand for.
enum Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Never, D::Error> {
        Err(serde::de::Error::custom("an array in an array"))
    }
}

pub(crate) fn flat_items<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Box<[Datum]>, D::Error> {
    let items = Vec::<Element>::deserialize(deserializer)?;
    let datums = items.into_iter().map(|item| match item {
        Element::Null => Datum::Null,
        Element::Bool(value) => Datum::Bool(value),
        Element::Int(value) => Datum::Int(value),
        Element::Float(value) => Datum::Float(value),
        Element::Decimal(value) => Datum::Decimal(value),
        Element::Text(value) => Datum::Text(value),
        Element::Bytes(value) => Datum::Bytes(value),
        Element::Date(value) => Datum::Date(value),
        Element::Timestamp(value) => Datum::Timestamp(value),
        Element::Uuid(value) => Datum::Uuid(value),
        Element::Interval(value) => Datum::Interval(value),
        Element::Array(never) | Element::Grid(never) => match never {},
        Element::Jsonb(value) => Datum::Jsonb(value),
        Element::Time(value) => Datum::Time(value),
        Element::Large(value) => Datum::Large(value),
        Element::Inet(value) => Datum::Inet(value),
        Element::Mac(value) => Datum::Mac(value),
        Element::Timetz(value) => Datum::Timetz(value),
        Element::Bits(value) => Datum::Bits(value),
        Element::Record(value) => Datum::Record(value),
        Element::Range(value) => Datum::Range(value),
        Element::Multirange(value) => Datum::Multirange(value),
    });
    Ok(datums.collect())
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

/// A time of day with the offset of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "(i64, i32)")]
pub struct Timetz {
    /// Microseconds since midnight, up to those of a whole day.
    pub micros: i64,
    /// Seconds west of UTC, less than 16 hours to either side.
    pub west: i32,
}

/// Seconds from UTC that a [`Timetz`] may have at most.
pub const ZONE_SECONDS_MAX: u32 = 16 * 3_600 - 1;

impl TryFrom<(i64, i32)> for Timetz {
    type Error = &'static str;

    fn try_from((micros, west): (i64, i32)) -> Result<Timetz, &'static str> {
        Timetz::new(micros, west).ok_or("a time or the offset of its zone is out of range")
    }
}

impl Timetz {
    /// The value, if both parts are in their range.
    pub fn new(micros: i64, west: i32) -> Option<Timetz> {
        let fits = crate::calendar::is_time(micros) && west.unsigned_abs() <= ZONE_SECONDS_MAX;
        fits.then_some(Timetz { micros, west })
    }

    /// Microseconds since midnight in UTC; it may be the day before or the next one.
    pub fn utc(self) -> i64 {
        self.micros + i64::from(self.west) * MICROS_PER_SECOND
    }

    /// The same moment of the day as the clocks `west` of UTC show it.
    #[must_use]
    pub fn moved(self, west: i32) -> Timetz {
        let micros = self.utc() - i64::from(west) * MICROS_PER_SECOND;
        Timetz {
            micros: micros.rem_euclid(MICROS_PER_DAY),
            west,
        }
    }

    /// By the moment, then by the zone.
    pub fn compare(self, other: Timetz) -> Ordering {
        (self.utc(), self.west).cmp(&(other.utc(), other.west))
    }
}

const _: () = assert!(size_of::<Datum>() <= 24, "datums fill every row in memory");

impl Datum {
    /// Whether this is SQL NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The truth value, if this is a boolean.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Datum::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if this is one.
    #[inline]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Datum::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as a float (nearest), if this is a number of any kind.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Datum::Float(value) => Some(*value),
            Datum::Int(value) => Some(*value as f64),
            Datum::Decimal(value) => Some(value.to_f64()),
            Datum::Large(value) => Some(value.to_f64()),
            _ => None,
        }
    }

    /// The text, if this is one.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Datum::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a `json` or `jsonb`, if this is one.
    #[inline]
    pub fn as_json(&self) -> Option<&str> {
        match self {
            Datum::Text(value) => Some(value),
            Datum::Jsonb(value) => Some(value.as_str()),
            _ => None,
        }
    }

    /// The bytes, if this is a `bytea`.
    #[inline]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Datum::Bytes(value) => Some(value),
            _ => None,
        }
    }

    /// The elements, if this is an array; those of more than one dimension one after the other.
    pub fn as_array(&self) -> Option<&[Datum]> {
        match self {
            Datum::Array(value) => Some(value),
            Datum::Grid(grid) => Some(grid.items()),
            _ => None,
        }
    }

    /// Order of two values of one type, as `ORDER BY` ascending has it: total, NULL after every
    /// value, NaN after every number, -0.0 equal to 0.0, text by bytes (the "C" collation).
    ///
    /// Integers, decimals and floats compare with each other, dates with timestamps. Values of
    /// other kinds never meet in a bound plan; they are ordered by kind so that the order is total.
    #[inline]
    pub fn compare(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            _ => self.compare_slow(other),
        }
    }

    fn compare_slow(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Int(a), Datum::Decimal(b)) => Decimal::from(*a).cmp(b),
            (Datum::Decimal(a), Datum::Int(b)) => a.cmp(&Decimal::from(*b)),
            (Datum::Decimal(a), Datum::Decimal(b)) => a.cmp(b),
            (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
            (Datum::Float(a), Datum::Int(b)) => compare_floats(*a, *b as f64),
            (Datum::Int(a), Datum::Float(b)) => compare_floats(*a as f64, *b),
            (Datum::Float(a), Datum::Decimal(b)) => compare_floats(*a, b.to_f64()),
            (Datum::Decimal(a), Datum::Float(b)) => compare_floats(a.to_f64(), *b),
            (Datum::Large(_), _) | (_, Datum::Large(_)) => self.compare_large(other),
            (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
            (Datum::Date(a), Datum::Date(b)) => a.cmp(b),
            (Datum::Timestamp(a), Datum::Timestamp(b)) => a.cmp(b),
            (Datum::Time(a), Datum::Time(b)) => a.cmp(b),
            (Datum::Date(a), Datum::Timestamp(b)) => date_micros(*a).cmp(&i128::from(*b)),
            (Datum::Timestamp(a), Datum::Date(b)) => i128::from(*a).cmp(&date_micros(*b)),
            (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
            (Datum::Inet(a), Datum::Inet(b)) => a.compare(b),
            (Datum::Mac(a), Datum::Mac(b)) => a.cmp(b),
            (Datum::Timetz(a), Datum::Timetz(b)) => a.compare(*b),
            (Datum::Bits(a), Datum::Bits(b)) => a.compare(b),
            (Datum::Record(a), Datum::Record(b)) => a.compare(b),
            (Datum::Range(a), Datum::Range(b)) => a.compare(b),
            (Datum::Multirange(a), Datum::Multirange(b)) => a.compare(b),
            (Datum::Interval(a), Datum::Interval(b)) => a.total_micros().cmp(&b.total_micros()),
            (Datum::Jsonb(a), Datum::Jsonb(b)) => a.cmp(b),
            (Datum::Array(_) | Datum::Grid(_), Datum::Array(_) | Datum::Grid(_)) => {
                self.compare_arrays(other)
            }
            _ => self.kind_rank().cmp(&other.kind_rank()),
        }
    }

    /// The order where at least one side is a large numeric.
    fn compare_large(&self, other: &Datum) -> Ordering {
        match (self, other) {
            (Datum::Float(a), Datum::Large(b)) => compare_floats(*a, b.to_f64()),
            (Datum::Large(a), Datum::Float(b)) => compare_floats(a.to_f64(), *b),
            _ => match (Numeric::of(self), Numeric::of(other)) {
                (Some(a), Some(b)) => a.compare(&b),
                _ => self.kind_rank().cmp(&other.kind_rank()),
            },
        }
    }

    /// Orders the kinds; NULL is last.
    fn kind_rank(&self) -> u8 {
        match self {
            Datum::Bool(_) => 0,
            Datum::Int(_) | Datum::Float(_) | Datum::Decimal(_) | Datum::Large(_) => 1,
            Datum::Text(_) => 2,
            Datum::Bytes(_) => 3,
            Datum::Date(_) | Datum::Timestamp(_) => 4,
            Datum::Uuid(_) => 5,
            Datum::Interval(_) => 6,
            Datum::Array(_) | Datum::Grid(_) => 7,
            Datum::Jsonb(_) => 8,
            Datum::Time(_) => 9,
            Datum::Inet(_) => 10,
            Datum::Mac(_) => 11,
            Datum::Timetz(_) => 12,
            Datum::Bits(_) => 13,
            Datum::Record(_) => 14,
            Datum::Range(_) => 15,
            Datum::Multirange(_) => 16,
            Datum::Null => 17,
        }
    }
}

/// Numbers in order, -0.0 equal to 0.0, NaN equal to itself and above everything.
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Midnight of a date as a timestamp; the infinities become those of timestamps.
fn date_micros(days: i32) -> i128 {
    match days {
        i32::MIN => i128::from(i64::MIN),
        i32::MAX => i128::from(i64::MAX),
        _ => i128::from(days) * i128::from(MICROS_PER_DAY),
    }
}

impl Interval {
    /// The length with months of 30 days and days of 24 hours: what PostgreSQL compares.
    pub fn total_micros(self) -> i128 {
        let days = i64::from(self.months) * 30 + i64::from(self.days);
        i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(self.micros)
    }
}

macro_rules! datum_from {
    ($($source:ty => |$value:ident| $datum:expr;)*) => {
        $(impl From<$source> for Datum {
            #[inline]
            fn from($value: $source) -> Datum {
                $datum
            }
        })*
    };
}
datum_from! {
    bool => |value| Datum::Bool(value);
    i16 => |value| Datum::Int(i64::from(value));
    i32 => |value| Datum::Int(i64::from(value));
    u32 => |value| Datum::Int(i64::from(value));
    i64 => |value| Datum::Int(value);
    f64 => |value| Datum::Float(value);
    Decimal => |value| Datum::Decimal(value);
    Interval => |value| Datum::Interval(value);
    Range => |value| Datum::Range(Box::new(value));
    Multirange => |value| Datum::Multirange(value);
    Jsonb => |value| Datum::Jsonb(value);
    &str => |value| Datum::Text(value.into());
    String => |value| Datum::Text(value.into_boxed_str());
    Box<str> => |value| Datum::Text(value);
    &[u8] => |value| Datum::Bytes(value.into());
    Vec<u8> => |value| Datum::Bytes(value.into_boxed_slice());
    Vec<Datum> => |value| Datum::Array(value.into_boxed_slice());
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Datum {
        value.map_or(Datum::Null, Into::into)
    }
}

/// Rows of equal width, stored flat: row `i` is `datums[i * width..(i + 1) * width]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(try_from = "AnyBatch")]
pub struct RowBatch {
    /// Columns per row; 0 is legal (`SELECT` of no columns) and then `rows` counts them.
    pub width: u32,
    /// Number of rows.
    pub rows: u32,
    /// `width * rows` values.
    pub datums: Vec<Datum>,
}

/// One column of a result.
#[derive(Clone, PartialEq, Debug)]
pub struct OutColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// oid of the table that it comes from, 0 if none.
    pub table: u32,
    /// Attribute number there, from 1; 0 if none.
    pub attribute: i16,
}

/// A batch as it comes from elsewhere: its numbers need not fit.
#[derive(Deserialize)]
struct AnyBatch {
    width: u32,
    rows: u32,
    datums: Vec<Datum>,
}

impl TryFrom<AnyBatch> for RowBatch {
    type Error = &'static str;

    fn try_from(any: AnyBatch) -> Result<RowBatch, &'static str> {
        let AnyBatch {
            width,
            rows,
            datums,
        } = any;
        if u64::from(width) * u64::from(rows) != datums.len() as u64 {
            return Err("a batch has not as many values as rows times columns");
        }
        Ok(RowBatch {
            width,
            rows,
            datums,
        })
    }
}

impl RowBatch {
    /// No rows of `width` columns.
    pub fn new(width: usize) -> RowBatch {
        RowBatch {
            width: width as u32,
            rows: 0,
            datums: Vec::new(),
        }
    }
    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[Datum]> {
        (0..self.rows as usize).map(|i| self.row(i))
    }
    /// Row `i`, from 0.
    #[inline]
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
    /// Takes out the first rows, at most `rows_max`.
    pub fn take_front(&mut self, rows_max: u32) -> RowBatch {
        let rows = self.rows.min(rows_max);
        let datums = self.datums.drain(..self.width as usize * rows as usize);
        let front = RowBatch {
            width: self.width,
            rows,
            datums: datums.collect(),
        };
        self.rows -= rows;
        front
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted_as_given(values: &[Datum]) {
        for (i, a) in values.iter().enumerate() {
            for (j, b) in values.iter().enumerate() {
                assert_eq!(a.compare(b), i.cmp(&j), "{a:?} against {b:?}");
            }
        }
    }

    #[test]
    fn the_front_of_a_batch_is_taken_in_pieces() {
        let mut batch = RowBatch::new(1);
        (0..5).for_each(|i| batch.push([Datum::Int(i)]));
        let sizes: Vec<u32> = (0..4).map(|_| batch.take_front(2).rows).collect();
        assert_eq!(sizes, [2, 2, 1, 0]);
        assert!(batch.is_empty() && batch.datums.is_empty());
    }

    #[test]
    fn a_batch_whose_numbers_do_not_fit_is_refused() {
        let mut batch = RowBatch::new(2);
        batch.push([Datum::Int(1), Datum::Null]);
        let good = crate::codec::to_vec(&batch);
        assert_eq!(crate::codec::decode(&good), Ok(batch));
        for (width, rows) in [(2u32, 2u32), (1, 1), (3, 1), (u32::MAX, u32::MAX), (0, 1)] {
            let bad = crate::codec::to_vec(&(width, rows, [Datum::Int(1), Datum::Null].as_slice()));
            assert!(
                crate::codec::decode::<RowBatch>(&bad).is_err(),
                "{width} x {rows}"
            );
        }
        let empty = crate::codec::to_vec(&(0u32, 5u32, Vec::<Datum>::new()));
        assert!(crate::codec::decode::<RowBatch>(&empty).is_ok());
    }

    #[test]
    fn numbers_of_all_kinds_have_one_order() {
        let decimal = |text: &str| Datum::Decimal(text.parse().expect("a number"));
        sorted_as_given(&[
            Datum::Float(f64::NEG_INFINITY),
            decimal("-12345678901234567890123456789012345678"),
            Datum::Int(i64::MIN),
            decimal("-1.5"),
            Datum::Int(-1),
            Datum::Float(-0.5),
            Datum::Int(0),
            decimal("0.00000000000000000000000000000000000001"),
            Datum::Float(0.5),
            decimal("0.75"),
            Datum::Int(1),
            Datum::Float(1e30),
            decimal("12345678901234567890123456789012345678"),
            Datum::Float(f64::INFINITY),
            Datum::Float(f64::NAN),
            Datum::Null,
        ]);
        assert_eq!(
            Datum::Float(-0.0).compare(&Datum::Float(0.0)),
            Ordering::Equal
        );
        assert_eq!(
            Datum::Float(f64::NAN).compare(&Datum::Float(-f64::NAN)),
            Ordering::Equal
        );
        assert_eq!(decimal("1.50").compare(&decimal("1.5")), Ordering::Equal);
    }

    #[test]
    fn other_kinds_have_their_order() {
        sorted_as_given(&[
            "".into(),
            "B".into(),
            "a".into(),
            "a ".into(),
            "\u{e9}".into(),
        ]);
        sorted_as_given(&[
            Datum::Date(i32::MIN),
            Datum::Timestamp(-1),
            Datum::Date(0),
            Datum::Timestamp(1),
            Datum::Date(i32::MAX),
            Datum::Null,
        ]);
        let array =
            |items: &[i64]| Datum::from(items.iter().map(|i| (*i).into()).collect::<Vec<Datum>>());
        sorted_as_given(&[array(&[]), array(&[1]), array(&[1, 2]), array(&[2])]);
        let interval = |months, days, micros| {
            Datum::from(Interval {
                months,
                days,
                micros,
            })
        };
        assert_eq!(
            interval(1, 0, 0).compare(&interval(0, 30, 0)),
            Ordering::Equal
        );
        sorted_as_given(&[
            interval(0, 0, -1),
            interval(0, 0, 0),
            interval(0, 29, 0),
            interval(1, 0, 0),
        ]);
    }

    #[test]
    fn batches_are_flat() {
        let mut batch = RowBatch::new(2);
        assert!(batch.is_empty());
        batch.push([1i64.into(), "a".into()]);
        batch.push([Datum::Null, "b".into()]);
        assert_eq!(batch.row(1), [Datum::Null, "b".into()]);
        assert_eq!(batch.iter().count(), 2);
        let mut empty = RowBatch::new(0);
        empty.push([]);
        assert_eq!(empty.iter().count(), 1, "rows without columns are counted");
    }
}
