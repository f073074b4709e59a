//! Functions and operators of ranges and multiranges.
//!
//! Both are lists of ranges in order, with gaps between them: a range is a list of one, or of none
//! if it is empty. What holds of lists is computed once, for all pairs of the two.

use crate::func::RangeFunc;
use base::range::Bound;
use base::{Datum, Multirange, Range, RangeKind, SqlError, SqlState, Type};

/// The ranges of a value, none of them empty.
fn ranges(value: &Datum) -> &[Range] {
    match value {
        Datum::Range(range) if range.is_empty() => &[],
        Datum::Range(range) => core::slice::from_ref(&**range),
        Datum::Multirange(value) => value.ranges(),
        other => unreachable!("the binder passes ranges, not {other:?}"),
    }
}

/// Bytes of memory for which a statement is asked before a function is computed, if it may take
/// many.
#[must_use]
pub fn room(args: &[Datum]) -> Option<usize> {
    const ROOM_BYTES: usize = 64 << 10;
    let count = |arg: &Datum| match arg {
        Datum::Multirange(value) => value.ranges().len(),
        _ => 1,
    };
    let bytes = 2 * size_of::<Range>() * args.iter().map(count).sum::<usize>();
    (bytes > ROOM_BYTES).then_some(bytes)
}

/// A function of ranges, multiranges and values that may lie in them; `ty` is the type of its
/// result.
///
/// # Errors
/// 22000 for bounds in the wrong order and for what is no single range, 22004 for NULL as a range,
/// 42601 for what says nothing of bounds, 22003 and 22008 for a bound that has no next value.
pub fn apply(func: RangeFunc, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    match (func, args) {
        (RangeFunc::Make, _) => made(args, ty),
        (RangeFunc::Collect, _) => collected(args),
        (_, [one]) => Ok(of_one(func, one)),
        (RangeFunc::Contains, [list, value]) => Ok(contains(list, value).into()),
        (RangeFunc::ContainedBy, [value, list]) => Ok(contains(list, value).into()),
        (_, [a, b]) => of_two(func, a, b),
        _ => unreachable!("the binder passes one or two ranges to {func:?}"),
    }
}

/// The range of two bounds and what tells whether they are inclusive.
fn made(args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    let inclusive = match args.get(2) {
        None => [true, false],
        Some(Datum::Text(flags)) => match &**flags {
            "[]" => [true, true],
            "[)" => [true, false],
            "(]" => [false, true],
            "()" => [false, false],
            _ => {
                let message = "invalid range bound flags";
                return Err(SqlError::new(SqlState::SYNTAX, message)
                    .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
            }
        },
        Some(_) => {
            let message = "range constructor flags argument must not be null";
            return Err(SqlError::new(SqlState::DATA_EXCEPTION, message));
        }
    };
    let kind = ty.range_kind().unwrap_or(RangeKind::Numeric);
    let values = [args[0].clone(), args[1].clone()];
    Range::new(kind, values, inclusive).map(Datum::from)
}

/// The multirange of ranges.
fn collected(args: &[Datum]) -> Result<Datum, SqlError> {
    if let [Datum::Null] = args {
        return Ok(Datum::Null);
    }
    if args.iter().any(Datum::is_null) {
        let message = "multirange values cannot contain null members";
        return Err(SqlError::new(SqlState::NULL_NOT_ALLOWED, message));
    }
    Ok(united(args))
}

/// What ranges and multiranges have together.
#[must_use]
pub fn united(parts: &[Datum]) -> Datum {
    let all = parts.iter().flat_map(ranges).cloned();
    Multirange::of(all.collect()).into()
}

/// What two ranges, or two multiranges, have in common.
#[must_use]
pub fn common(a: &Datum, b: &Datum) -> Datum {
    let (mut left, mut right) = (ranges(a).iter().peekable(), ranges(b).iter().peekable());
    let mut found = Vec::new();
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        let lower = later(one.lower(), other.lower());
        let upper = earlier(one.upper(), other.upper());
        if lower.compare(upper).is_le() {
            found.push(Range::between(lower, upper));
        }
        match one.upper().compare(other.upper()).is_lt() {
            true => left.next(),
            false => right.next(),
        };
    }
    of_kind(a, found)
}

fn earlier<'a>(a: Bound<'a>, b: Bound<'a>) -> Bound<'a> {
    if b.compare(a).is_lt() { b } else { a }
}

fn later<'a>(a: Bound<'a>, b: Bound<'a>) -> Bound<'a> {
    if b.compare(a).is_gt() { b } else { a }
}

/// A list as a value of the kind of another one: a range has one range at most.
fn of_kind(like: &Datum, mut list: Vec<Range>) -> Datum {
    match like {
        Datum::Range(_) => list.pop().unwrap_or(Range::EMPTY).into(),
        _ => Multirange::of(list).into(),
    }
}

/// From the first to the last value of lists. Of equal ends (1 and 1.0) the last list's stay.
fn span(all: &[&[Range]]) -> Range {
    let lists = || all.iter().rev().filter(|list| !list.is_empty());
    let lower = lists().map(|list| list[0].lower()).reduce(earlier);
    let upper = lists()
        .map(|list| list[list.len() - 1].upper())
        .reduce(later);
    match (lower, upper) {
        (Some(lower), Some(upper)) => Range::between(lower, upper),
        _ => Range::EMPTY,
    }
}

fn of_one(func: RangeFunc, value: &Datum) -> Datum {
    let list = ranges(value);
    let lower = list.first().map(Range::lower);
    let upper = list.last().map(Range::upper);
    let bound = |bound: Option<Bound<'_>>| bound.and_then(|end| end.value.cloned());
    match func {
        RangeFunc::Lower => bound(lower).unwrap_or_default(),
        RangeFunc::Upper => bound(upper).unwrap_or_default(),
        RangeFunc::IsEmpty => list.is_empty().into(),
        RangeFunc::LowerInclusive => lower.is_some_and(|end| end.is_inclusive).into(),
        RangeFunc::UpperInclusive => upper.is_some_and(|end| end.is_inclusive).into(),
        RangeFunc::LowerInfinite => lower.is_some_and(|end| end.value.is_none()).into(),
        RangeFunc::UpperInfinite => upper.is_some_and(|end| end.value.is_none()).into(),
        RangeFunc::Parts => {
            let parts = list.iter().cloned().map(Datum::from);
            parts.collect::<Vec<Datum>>().into()
        }
        // The smallest range that has all of a multirange.
        _ => span(&[list]).into(),
    }
}

/// How many ranges of a list end before a bound begins.
fn before(list: &[Range], lower: Bound<'_>) -> usize {
    list.partition_point(|range| range.upper().compare(lower).is_lt())
}

fn contains(list: &Datum, value: &Datum) -> bool {
    let list = ranges(list);
    let holds = |lower: Bound<'_>, upper: Bound<'_>| {
        list.get(before(list, lower)).is_some_and(|range| {
            range.lower().compare(lower).is_le() && range.upper().compare(upper).is_ge()
        })
    };
    match value {
        Datum::Range(_) | Datum::Multirange(_) => {
            let mut inner = ranges(value).iter();
            inner.all(|range| holds(range.lower(), range.upper()))
        }
        value => {
            let at = |is_lower: bool| Bound {
                is_lower,
                value: Some(value),
                is_inclusive: true,
            };
            holds(at(true), at(false))
        }
    }
}

fn overlap(a: &[Range], b: &[Range]) -> bool {
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    few.iter().any(|range| {
        let met = many.get(before(many, range.lower()));
        met.is_some_and(|met| met.lower().compare(range.upper()).is_le())
    })
}

/// What the first list has and the second lacks.
fn without(a: &[Range], b: &[Range]) -> Vec<Range> {
    let mut left = Vec::new();
    for range in a {
        let mut lower = Some(range.lower());
        for hole in &b[before(b, range.lower())..] {
            if hole.lower().compare(range.upper()).is_gt() {
                break;
            }
            if let Some(lower) = lower
                && lower.compare(hole.lower()).is_lt()
            {
                left.push(Range::between(lower, hole.lower().flipped()));
            }
            lower = match hole.upper().compare(range.upper()).is_lt() {
                true => Some(hole.upper().flipped()),
                false => None,
            };
        }
        left.extend(lower.map(|lower| Range::between(lower, range.upper())));
    }
    left
}

fn not_contiguous(what: &str) -> SqlError {
    let message = format!("result of range {what} would not be contiguous");
    SqlError::new(SqlState::DATA_EXCEPTION, message)
}

fn of_two(func: RangeFunc, a: &Datum, b: &Datum) -> Result<Datum, SqlError> {
    let is_range = matches!(a, Datum::Range(_));
    let (left, right) = (ranges(a), ranges(b));
    match func {
        RangeFunc::Intersect => return Ok(common(a, b)),
        RangeFunc::Merge => return Ok(span(&[left, right]).into()),
        RangeFunc::Union if is_range => {
            let mut parts = Multirange::of([left, right].concat()).ranges().to_vec();
            return match parts.len() {
                0 | 1 => Ok(parts.pop().unwrap_or(Range::EMPTY).into()),
                _ => Err(not_contiguous("union")),
            };
        }
        RangeFunc::Union => return Ok(Multirange::of([left, right].concat()).into()),
        RangeFunc::Minus => {
            let parts = without(left, right);
            return match is_range && parts.len() > 1 {
                true => Err(not_contiguous("difference")),
                false => Ok(of_kind(a, parts)),
            };
        }
        _ => {}
    }
    // Nothing lies beside what is empty.
    let ([first, ..], [.., last]) = (left, left) else {
        return Ok(false.into());
    };
    let ([other_first, ..], [.., other_last]) = (right, right) else {
        return Ok(false.into());
    };
    let holds = match func {
        RangeFunc::Overlaps => overlap(left, right),
        RangeFunc::Before => last.upper().compare(other_first.lower()).is_lt(),
        RangeFunc::After => other_last.upper().compare(first.lower()).is_lt(),
        RangeFunc::OverLeft => last.upper().compare(other_last.upper()).is_le(),
        RangeFunc::OverRight => first.lower().compare(other_first.lower()).is_ge(),
        _ => last.upper().touches(other_first.lower()) || other_last.upper().touches(first.lower()),
    };
    Ok(holds.into())
}

#[cfg(test)]
mod tests;
