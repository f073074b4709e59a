//! Ranges of dates, times, timestamps and intervals. The infinite ones have none.

use super::floats::Floats;
use super::{Numbers, Values};
use crate::computed::ValueFunc;
use alloc::vec::Vec;
use base::calendar::MICROS_PER_DAY;
use base::datum::Interval;
use base::{Datum, Decimal, Type};
use core::mem::discriminant;

/// Days that may become one day when months are added: those from the 28th to the 31st.
const DAYS_AT_ONE: i64 = 4;
/// Largest value of a field of a moment that repeats, and its fraction digits.
const FIELD_MAX: i64 = 60_000_000;
const FIELD_SCALE: u8 = 6;

/// Moments of one kind, from `low` to `high`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Moments {
    pub(super) low: Datum,
    pub(super) high: Datum,
}

/// Intervals, with the ends of each part.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spans {
    pub(super) low: Interval,
    pub(super) high: Interval,
}

impl Moments {
    /// The moment alone; `None`: it is infinite, or none.
    pub(super) fn of(value: &Datum) -> Option<Moments> {
        let is_finite = match value {
            Datum::Date(days) => *days != i32::MIN && *days != i32::MAX,
            Datum::Timestamp(at) => *at != i64::MIN && *at != i64::MAX,
            Datum::Time(_) => true,
            _ => false,
        };
        is_finite.then(|| Moments {
            low: value.clone(),
            high: value.clone(),
        })
    }

    /// `None`: they are of two kinds.
    pub(super) fn or(&self, other: &Moments) -> Option<Moments> {
        let ends = [&self.low, &self.high, &other.low, &other.high];
        Moments::between(ends.into_iter().cloned().collect())
    }

    fn between(ends: Vec<Datum>) -> Option<Moments> {
        let first = ends.first()?;
        let (mut low, mut high) = (first, first);
        for end in &ends {
            if discriminant(end) != discriminant(first) {
                return None;
            }
            Moments::of(end)?;
            low = if end.compare(low).is_lt() { end } else { low };
            high = if end.compare(high).is_gt() { end } else { high };
        }
        Some(Moments {
            low: low.clone(),
            high: high.clone(),
        })
    }

    /// Any time of day, 24:00 included.
    fn any_time() -> Values {
        Values::Moments(Moments {
            low: Datum::Time(0),
            high: Datum::Time(MICROS_PER_DAY),
        })
    }

    fn is_time(&self) -> bool {
        matches!(self.low, Datum::Time(_))
    }

    /// As a column or a cast of the type keeps them.
    pub(super) fn kept(&self, ty: Type) -> Option<Moments> {
        let fit = |end: &Datum| base::text::fit(ty, end.clone()).ok();
        Moments::between(Vec::from([fit(&self.low)?, fit(&self.high)?]))
    }
}

impl Spans {
    pub(super) fn of(value: Interval) -> Spans {
        Spans {
            low: value,
            high: value,
        }
    }

    pub(super) fn or(self, other: Spans) -> Spans {
        let (a, b) = (self.low, other.low);
        let low = Interval {
            months: a.months.min(b.months),
            days: a.days.min(b.days),
            micros: a.micros.min(b.micros),
        };
        let (a, b) = (self.high, other.high);
        let high = Interval {
            months: a.months.max(b.months),
            days: a.days.max(b.days),
            micros: a.micros.max(b.micros),
        };
        Spans { low, high }
    }

    fn negated(self) -> Option<Spans> {
        Some(Spans {
            low: functions::datetime::negate(self.high).ok()?,
            high: functions::datetime::negate(self.low).ok()?,
        })
    }

    fn plus(self, other: Spans) -> Option<Spans> {
        Some(Spans {
            low: functions::datetime::sum(self.low, other.low).ok()?,
            high: functions::datetime::sum(self.high, other.high).ok()?,
        })
    }

    fn of_micros(low: i64, high: i64) -> Spans {
        let of = |micros| Interval {
            months: 0,
            days: 0,
            micros,
        };
        Spans {
            low: of(low),
            high: of(high),
        }
    }

    /// Each part times a number of this size at most. A fraction of months becomes days, and one of
    /// days time.
    fn scaled(self, by: f64) -> Option<Spans> {
        let size = |low: f64, high: f64| low.abs().max(high.abs()) * by;
        let months = size(self.low.months.into(), self.high.months.into()) + 1.0;
        let days = size(self.low.days.into(), self.high.days.into()) + 33.0;
        let day = MICROS_PER_DAY as f64;
        let micros = size(self.low.micros as f64, self.high.micros as f64) + 2.0 * day;
        // None of them if one is NaN.
        (months < 2e9 && days < 2e9 && micros < 9e18).then_some(())?;
        let high = Interval {
            months: months as i32 + 1,
            days: days as i32 + 1,
            // A float of that size may be off by some hundreds.
            micros: micros as i64 + 10_000,
        };
        let low = functions::datetime::negate(high).ok()?;
        Some(Spans { low, high })
    }
}

/// The whole numbers at the ends.
fn whole(numbers: Numbers) -> Option<[Datum; 2]> {
    let end = |value: Decimal| value.to_i64_exact().map(Datum::Int);
    Some([end(numbers.low)?, end(numbers.high)?])
}

/// The results of a function at the corners; it keeps or reverses the order for each argument.
fn corners(func: ValueFunc, a: &[Datum; 2], b: &[Datum; 2], ty: Type) -> Option<Vec<Datum>> {
    let mut all = Vec::with_capacity(4);
    for a in a {
        for b in b {
            let args = Vec::from([a.clone(), b.clone()]);
            all.push(func.apply(args, ty).ok()?);
        }
    }
    Some(all)
}

fn ends(moments: &Moments) -> [Datum; 2] {
    [moments.low.clone(), moments.high.clone()]
}

/// What `+`, `-`, `*` and `/` of moments, intervals and numbers give; `None`: they may fail.
pub(super) fn arithmetic(func: ValueFunc, a: &Values, b: &Values, ty: Type) -> Option<Values> {
    use ValueFunc::{Add, Divide, Multiply, Subtract};
    use Values::{Floats as F, Moments as M, Numbers as N, Spans as S};
    match (func, a, b) {
        (Add | Subtract, M(a), N(b)) => {
            Moments::between(corners(func, &ends(a), &whole(*b)?, ty)?).map(M)
        }
        (Add, N(_), M(_)) | (Add, S(_), M(_)) | (Multiply, F(_), S(_)) => {
            arithmetic(func, b, a, ty)
        }
        (Add, M(a), M(b)) => Moments::between(corners(func, &ends(a), &ends(b), ty)?).map(M),
        (Subtract, M(a), M(b)) => difference(&corners(func, &ends(a), &ends(b), ty)?),
        // What leaves the day comes back at its other end.
        (Add | Subtract, M(a), S(_)) if a.is_time() => Some(Moments::any_time()),
        (Add, M(a), S(b)) => shifted(a, *b, ty).map(M),
        (Subtract, M(a), S(b)) => shifted(a, b.negated()?, ty).map(M),
        (Add, S(a), S(b)) => a.plus(*b).map(S),
        (Subtract, S(a), S(b)) => a.plus(b.negated()?).map(S),
        (Multiply, S(a), F(b)) => a.scaled(b.low.abs().max(b.high.abs())).map(S),
        (Divide, S(_), F(b)) if b.low <= 0.0 && b.high >= 0.0 => None,
        // Rounded up.
        (Divide, S(a), F(b)) => a.scaled((1.0 / b.least).next_up()).map(S),
        _ => None,
    }
}

/// The differences of moments of one kind, given those at the corners.
fn difference(corners: &[Datum]) -> Option<Values> {
    if let Some(Datum::Int(first)) = corners.first() {
        let days = corners.iter().filter_map(Datum::as_int);
        let (low, high) = days.fold((*first, *first), |(low, high), it| {
            (low.min(it), high.max(it))
        });
        return Some(Values::Numbers(Numbers {
            low: Decimal::from(low),
            high: Decimal::from(high),
            scale: 0,
        }));
    }
    let mut all: Option<Spans> = None;
    for corner in corners {
        let Datum::Interval(corner) = corner else {
            return None;
        };
        let corner = Spans::of(*corner);
        all = Some(all.map_or(corner, |all| all.or(corner)));
    }
    // Between two differences with days, the time of day may be any; times have no days.
    let mut all = all?;
    if all.low.days != all.high.days {
        let day = Spans::of_micros(1 - MICROS_PER_DAY, MICROS_PER_DAY - 1);
        all.low.micros = all.low.micros.min(day.low.micros);
        all.high.micros = all.high.micros.max(day.high.micros);
    }
    Some(Values::Spans(all))
}

/// Moments that are moved: the first one by least, the last one by most.
fn shifted(moments: &Moments, by: Spans, ty: Type) -> Option<Moments> {
    let timestamp = |end: &Datum| match base::text::fit(Type::Timestamp(None), end.clone()) {
        Ok(Datum::Timestamp(at)) => Some(at),
        _ => None,
    };
    // The day is cut to the length of the month, and the time of day stays: the last day of a month
    // may come before the one in front of it, but no further.
    let margin = match by.low.months == 0 && by.high.months == 0 {
        true => 0,
        false => DAYS_AT_ONE * MICROS_PER_DAY,
    };
    let end = |at: i64, by: Interval| {
        let args = Vec::from([Datum::Timestamp(at), Datum::Interval(by)]);
        ValueFunc::Add.apply(args, ty).ok()
    };
    Moments::between(Vec::from([
        end(timestamp(&moments.low)?.checked_sub(margin)?, by.low)?,
        end(timestamp(&moments.high)?.checked_add(margin)?, by.high)?,
    ]))
}

/// What a cast between moments and intervals gives; `None`: it may fail.
pub(super) fn converted(convert: ValueFunc, of: &Values, to: Type) -> Option<Values> {
    let end = |end: &Datum| convert.apply(Vec::from([end.clone()]), to).ok();
    match (of, to) {
        (Values::Moments(of), Type::Time(_)) if !of.is_time() => Some(Moments::any_time()),
        (Values::Spans(_), Type::Time(_)) => Some(Moments::any_time()),
        // What a modifier leaves of an interval has no bounds that are known here.
        (_, Type::Interval(Some(_))) => None,
        (Values::Moments(of), Type::Interval(None)) => match (&of.low, &of.high) {
            (Datum::Time(low), Datum::Time(high)) => {
                Some(Values::Spans(Spans::of_micros(*low, *high)))
            }
            _ => None,
        },
        (Values::Spans(of), Type::Interval(None)) => Some(Values::Spans(*of)),
        (Values::Moments(of), _) => {
            let ends = Vec::from([end(&of.low)?, end(&of.high)?]);
            Moments::between(ends).map(Values::Moments)
        }
        _ => None,
    }
}

/// What `date_trunc` and `extract` give, whose unit is `unit`; `None`: they may fail.
pub(super) fn of_unit(func: ValueFunc, unit: &Datum, of: &Values, ty: Type) -> Option<Values> {
    let Values::Moments(of) = of else {
        return None;
    };
    let end = |end: &Datum| func.apply(Vec::from([unit.clone(), end.clone()]), ty).ok();
    let both = [end(&of.low)?, end(&of.high)?];
    if func == ValueFunc::TruncateDate {
        return Moments::between(Vec::from(both)).map(Values::Moments);
    }
    let name = unit.as_str()?.to_ascii_lowercase();
    let grows = [
        "year",
        "isoyear",
        "decade",
        "century",
        "millennium",
        "epoch",
    ];
    let repeats = [
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "dow",
        "isodow",
        "doy",
        "milliseconds",
        "microseconds",
    ];
    let least = Decimal::from_parts(1, FIELD_SCALE)?.to_f64();
    let floats = |low, high| Floats::between(&[low, high], least, i32::MIN).map(Values::Floats);
    if repeats.contains(&name.as_str()) {
        return match ty {
            Type::Float8 => floats(0.0, FIELD_MAX as f64),
            _ => Some(Values::Numbers(Numbers {
                low: Decimal::ZERO,
                high: Decimal::from(FIELD_MAX),
                scale: FIELD_SCALE,
            })),
        };
    }
    match both {
        _ if !grows.contains(&name.as_str()) => None,
        [Datum::Decimal(low), Datum::Decimal(high)] => Some(Values::Numbers(Numbers {
            low,
            high,
            scale: low.scale().max(high.scale()),
        })),
        [Datum::Float(low), Datum::Float(high)] => floats(low, high),
        _ => None,
    }
}
