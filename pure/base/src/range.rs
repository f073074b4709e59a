//! Ranges of values and sets of ranges: `int4range`, `int4multirange` and their like.
//!
//! The bounds of a range are values of one type, which the type of the range tells
//! ([`RangeKind::bound`]). Ranges of integers and days are kept in one form, `[low,high)`, so that
//! equal ranges look the same. All but the constructors works on the order of the bounds alone.

use crate::calendar::DATE_MAX;
use crate::codec::CodecError;
use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::error::{SqlError, SqlState};
use crate::numeric::Numeric;
use crate::row::{self, RowRef};
use crate::types::RangeKind;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};

// Bits of the first byte of a range in rows and on the wire, as PostgreSQL has them.
pub(crate) const EMPTY: u8 = 0x01;
/// Of the lower and of the upper bound.
pub(crate) const INCLUSIVE: [u8; 2] = [0x02, 0x04];
/// As [`INCLUSIVE`].
pub(crate) const INFINITE: [u8; 2] = [0x08, 0x10];

const MALFORMED: CodecError = CodecError::Malformed("range column");

/// All values between two bounds, or none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Range {
    /// [`EMPTY`], or bits of [`INCLUSIVE`] and [`INFINITE`].
    flags: u8,
    /// The bounds; NULL where the range is infinite.
    values: [Datum; 2],
}

/// The form between nodes: flags, bounds.
type Parts = (u8, Option<BoundValue>, Option<BoundValue>);

/// The values that bounds have: no bound nests anything.
#[derive(Serialize, Deserialize)]
enum BoundValue {
    Int(i64),
    Decimal(Decimal),
    Large(Box<Numeric>),
    Date(i32),
    Timestamp(i64),
}

impl From<Range> for Parts {
    fn from(range: Range) -> Parts {
        let [lower, upper] = range.values.map(|value| match value {
            Datum::Int(value) => Some(BoundValue::Int(value)),
            Datum::Decimal(value) => Some(BoundValue::Decimal(value)),
            Datum::Large(value) => Some(BoundValue::Large(value)),
            Datum::Date(value) => Some(BoundValue::Date(value)),
            Datum::Timestamp(value) => Some(BoundValue::Timestamp(value)),
            Datum::Null => None,
            other => unreachable!("{other:?} is no bound of a range"),
        });
        (range.flags, lower, upper)
    }
}

impl TryFrom<Parts> for Range {
    type Error = &'static str;

    fn try_from((flags, lower, upper): Parts) -> Result<Range, &'static str> {
        let values = [lower, upper].map(|value| match value {
            Some(BoundValue::Int(value)) => Datum::Int(value),
            Some(BoundValue::Decimal(value)) => Datum::Decimal(value),
            Some(BoundValue::Large(value)) => Datum::Large(value),
            Some(BoundValue::Date(value)) => Datum::Date(value),
            Some(BoundValue::Timestamp(value)) => Datum::Timestamp(value),
            None => Datum::Null,
        });
        Range::of_parts(flags, values).ok_or("a malformed range")
    }
}

/// One end of a range.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// Whether this is the lower end.
    pub is_lower: bool,
    /// `None`: the range is infinite here.
    pub value: Option<&'a Datum>,
    /// Whether the value belongs to the range.
    pub is_inclusive: bool,
}

impl Bound<'_> {
    /// Order of ends on the line of all values: an exclusive lower end lies behind its value, an
    /// exclusive upper end before it.
    pub fn compare(self, other: Bound<'_>) -> Ordering {
        match (self.value, other.value) {
            (Some(a), Some(b)) => a.compare(b).then(self.shift().cmp(&other.shift())),
            _ => self.infinity().cmp(&other.infinity()),
        }
    }

    fn shift(self) -> i8 {
        match (self.is_inclusive, self.is_lower) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => -1,
        }
    }

    fn infinity(self) -> i8 {
        match (self.value, self.is_lower) {
            (Some(_), _) => 0,
            (None, true) => -1,
            (None, false) => 1,
        }
    }

    /// The end of what begins or ends where this range ends or begins.
    #[must_use]
    pub fn flipped(self) -> Self {
        Bound {
            is_lower: !self.is_lower,
            is_inclusive: !self.is_inclusive,
            ..self
        }
    }

    /// Whether nothing lies between this upper end and a lower one, and they share no value.
    pub fn touches(self, lower: Bound<'_>) -> bool {
        match (self.value, lower.value) {
            (Some(a), Some(b)) => self.is_inclusive != lower.is_inclusive && a.compare(b).is_eq(),
            _ => false,
        }
    }
}

/// 22000.
fn disordered() -> SqlError {
    let message = "range lower bound must be less than or equal to range upper bound";
    SqlError::new(SqlState::DATA_EXCEPTION, message)
}

/// The value behind one of integers or days; `None` if the bound stays as it is.
fn next(kind: RangeKind, value: &Datum) -> Result<Option<Datum>, SqlError> {
    let too_large = |message: &str| Err(SqlError::new(SqlState::NUMERIC_OUT_OF_RANGE, message));
    match (kind, value) {
        (RangeKind::Int4, Datum::Int(value)) if *value >= i64::from(i32::MAX) => {
            too_large("integer out of range")
        }
        (RangeKind::Int8, Datum::Int(i64::MAX)) => too_large("bigint out of range"),
        (RangeKind::Int4 | RangeKind::Int8, Datum::Int(value)) => Ok(Some(Datum::Int(value + 1))),
        (RangeKind::Date, Datum::Date(i32::MIN | i32::MAX)) => Ok(None),
        (RangeKind::Date, Datum::Date(day)) if *day < DATE_MAX => Ok(Some(Datum::Date(day + 1))),
        (RangeKind::Date, Datum::Date(_)) => {
            let message = "date out of range";
            Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message))
        }
        _ => Ok(None),
    }
}

impl Range {
    /// The range of no values.
    pub const EMPTY: Range = Range {
        flags: EMPTY,
        values: [Datum::Null, Datum::Null],
    };

    /// The range between two bounds, NULL where it is infinite; whether each is inclusive.
    ///
    /// # Errors
    /// 22000 if the lower bound is above the upper one, 22003 or 22008 if one that must become the
    /// next value has none.
    pub fn new(
        kind: RangeKind,
        values: [Datum; 2],
        inclusive: [bool; 2],
    ) -> Result<Range, SqlError> {
        let range = Range::assembled(values, inclusive)?;
        let Range { mut values, .. } = range;
        if range.flags & EMPTY != 0 {
            return Ok(Range::EMPTY);
        }
        // `(1,5]` holds what `[2,6)` does.
        let mut inclusive = INCLUSIVE.map(|bit| range.flags & bit != 0);
        for (at, moves) in [!inclusive[0], inclusive[1]].into_iter().enumerate() {
            let moved = if moves {
                next(kind, &values[at])?
            } else {
                None
            };
            if let Some(moved) = moved {
                values[at] = moved;
                inclusive[at] = !inclusive[at];
            }
        }
        Range::assembled(values, inclusive)
    }

    fn assembled(values: [Datum; 2], inclusive: [bool; 2]) -> Result<Range, SqlError> {
        if values.iter().all(|value| !value.is_null()) {
            match values[0].compare(&values[1]) {
                Ordering::Greater => return Err(disordered()),
                Ordering::Equal if inclusive != [true, true] => return Ok(Range::EMPTY),
                Ordering::Equal | Ordering::Less => {}
            }
        }
        let mut flags = 0;
        for (at, value) in values.iter().enumerate() {
            flags |= match (value.is_null(), inclusive[at]) {
                (true, _) => INFINITE[at],
                (false, true) => INCLUSIVE[at],
                (false, false) => 0,
            };
        }
        Ok(Range { flags, values })
    }

    /// The range of flags and bounds that fit each other.
    fn of_parts(flags: u8, values: [Datum; 2]) -> Option<Range> {
        if flags == EMPTY {
            let bare = values.iter().all(Datum::is_null);
            return bare.then_some(Range::EMPTY);
        }
        let inclusive = INCLUSIVE.map(|bit| flags & bit != 0);
        let range = Range::assembled(values, inclusive).ok()?;
        (range.flags == flags).then_some(range)
    }

    /// The range from a lower to an upper end of ranges of one type; empty if they enclose nothing.
    pub fn between(lower: Bound<'_>, upper: Bound<'_>) -> Range {
        let value = |bound: Bound<'_>| bound.value.cloned().unwrap_or_default();
        let values = [value(lower), value(upper)];
        let range = Range::assembled(values, [lower.is_inclusive, upper.is_inclusive]);
        range.unwrap_or(Range::EMPTY)
    }

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> bool {
        self.flags & EMPTY != 0
    }

    fn bound(&self, at: usize) -> Bound<'_> {
        let value = &self.values[at];
        Bound {
            is_lower: at == 0,
            value: (!value.is_null()).then_some(value),
            is_inclusive: self.flags & INCLUSIVE[at] != 0,
        }
    }

    /// The lower end. The ends of an empty range mean nothing.
    pub fn lower(&self) -> Bound<'_> {
        self.bound(0)
    }

    /// The upper end, as [`Range::lower`].
    pub fn upper(&self) -> Bound<'_> {
        self.bound(1)
    }

    /// The bounds; NULL where the range is infinite, or empty.
    pub fn values(&self) -> &[Datum; 2] {
        &self.values
    }

    /// [`EMPTY`], [`INCLUSIVE`] and [`INFINITE`].
    pub(crate) fn flags(&self) -> u8 {
        self.flags
    }

    /// By the lower end, then by the upper one; the empty range is before all others.
    pub fn compare(&self, other: &Range) -> Ordering {
        if self.is_empty() || other.is_empty() {
            return other.is_empty().cmp(&self.is_empty());
        }
        let lower = self.lower().compare(other.lower());
        lower.then_with(|| self.upper().compare(other.upper()))
    }

    /// Length of what [`Range::encode`] appends.
    pub(crate) fn encoded_len(&self) -> usize {
        match self.is_empty() {
            true => 1,
            false => 1 + row::row_len(&self.values),
        }
    }

    /// Appends the flags, and the bounds as a row.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.flags);
        if !self.is_empty() {
            row::encode(&self.values, out);
        }
    }

    /// What [`Range::encode`] has written of a range of this kind.
    pub(crate) fn decode(bytes: &[u8], kind: RangeKind) -> Result<Range, CodecError> {
        let (flags, rest) = bytes.split_first().ok_or(MALFORMED)?;
        if *flags == EMPTY {
            return match rest {
                [] => Ok(Range::EMPTY),
                _ => Err(MALFORMED),
            };
        }
        let row = RowRef::new(rest);
        row.validate()?;
        if row.count() != 2 {
            return Err(MALFORMED);
        }
        let values = [row.col(0, kind.bound())?, row.col(1, kind.bound())?];
        Range::of_parts(*flags, values).ok_or(MALFORMED)
    }
}

/// Ranges of one type in their order, with gaps between them; none is empty.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, Default)]
#[serde(from = "Vec<Range>", into = "Vec<Range>")]
pub struct Multirange(Box<[Range]>);

impl From<Vec<Range>> for Multirange {
    fn from(ranges: Vec<Range>) -> Multirange {
        Multirange::of(ranges)
    }
}

impl From<Multirange> for Vec<Range> {
    fn from(value: Multirange) -> Vec<Range> {
        value.0.into_vec()
    }
}

impl Multirange {
    /// What ranges, in any order, have together.
    pub fn of(mut ranges: Vec<Range>) -> Multirange {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(Range::compare);
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last) if !is_gap(last, &range) => {
                    // Of equal ends that are written in two ways (1 and 1.0) the later stays.
                    let lower = match last.lower().compare(range.lower()).is_lt() {
                        true => last.lower(),
                        false => range.lower(),
                    };
                    let upper = match last.upper().compare(range.upper()).is_gt() {
                        true => last.upper(),
                        false => range.upper(),
                    };
                    *last = Range::between(lower, upper);
                }
                _ => merged.push(range),
            }
        }
        Multirange(merged.into_boxed_slice())
    }

    /// The ranges.
    pub fn ranges(&self) -> &[Range] {
        &self.0
    }

    /// Range by range; of two that begin alike the shorter one is less.
    pub fn compare(&self, other: &Multirange) -> Ordering {
        let pairs = self.0.iter().zip(other.0.iter());
        let mut orders = pairs.map(|(a, b)| a.compare(b));
        let first = orders.find(|order| order.is_ne());
        first.unwrap_or(self.0.len().cmp(&other.0.len()))
    }

    /// Length of what [`Multirange::encode`] appends.
    pub(crate) fn encoded_len(&self) -> usize {
        self.0.iter().map(|range| 4 + range.encoded_len()).sum()
    }

    /// Appends each range behind its length.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for range in &self.0 {
            out.extend_from_slice(&(range.encoded_len() as u32).to_le_bytes());
            range.encode(out);
        }
    }

    /// What [`Multirange::encode`] has written of ranges of this kind.
    pub(crate) fn decode(bytes: &[u8], kind: RangeKind) -> Result<Multirange, CodecError> {
        let mut ranges: Vec<Range> = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (length, behind) = rest.split_first_chunk::<4>().ok_or(MALFORMED)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (range, behind) = behind.split_at_checked(length).ok_or(MALFORMED)?;
            ranges.push(Range::decode(range, kind)?);
            rest = behind;
        }
        Multirange::of_normal(ranges).ok_or(MALFORMED)
    }

    /// The multirange of ranges that are in its form already.
    pub(crate) fn of_normal(ranges: Vec<Range>) -> Option<Multirange> {
        let apart = ranges.windows(2).all(|pair| is_gap(&pair[0], &pair[1]));
        let normal = apart && ranges.iter().all(|range| !range.is_empty());
        normal.then(|| Multirange(ranges.into_boxed_slice()))
    }
}

/// Whether a value lies between a range and one whose lower end is not before its own.
fn is_gap(a: &Range, b: &Range) -> bool {
    a.upper().compare(b.lower()).is_lt() && !a.upper().touches(b.lower())
}

#[cfg(test)]
mod tests;
