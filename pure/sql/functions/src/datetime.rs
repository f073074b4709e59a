//! Dates, times, timestamps and intervals. The session time zone is UTC, so `timestamp` and
//! `timestamptz` have the same values.

mod construct;
mod extract;
mod trunc;

pub(super) use extract::iso_week;
pub use trunc::is_below_a_day;

use super::Func;
use super::cast::date_to_timestamp;
use super::func::DateFunc;
use base::calendar::{
    MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS, add_months, join_timestamp,
    split_timestamp,
};
use base::datum::{Interval, Timetz};
use base::zone;
use base::{Datum, SqlError, SqlState, Type};

/// Hours make days of 24, days make months of 30 where intervals are scaled or compared.
const DAYS_PER_MONTH: i32 = 30;

/// "... out of range", 22008.
pub fn out_of_range(what: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_OVERFLOW, format!("{what} out of range"))
}

fn is_infinite(timestamp: i64) -> bool {
    timestamp == i64::MIN || timestamp == i64::MAX
}

fn is_infinite_date(days: i32) -> bool {
    days == i32::MIN || days == i32::MAX
}

/// `+ - * /` and unary `-` with a date, time, timestamp or interval among the arguments.
pub fn arithmetic(func: &Func, args: &[Datum]) -> Result<Datum, SqlError> {
    if args.iter().any(|arg| matches!(arg, Datum::Timetz(_))) {
        return with_timetz(func, args);
    }
    Ok(match (func, args) {
        (Func::Add, [Datum::Date(days), Datum::Int(n)] | [Datum::Int(n), Datum::Date(days)]) => {
            Datum::Date(shift_date(*days, *n)?)
        }
        (Func::Sub, [Datum::Date(days), Datum::Int(n)]) => Datum::Date(shift_date(
            *days,
            n.checked_neg().ok_or_else(|| out_of_range("date"))?,
        )?),
        (Func::Sub, [Datum::Date(a), Datum::Date(b)]) => {
            if is_infinite_date(*a) || is_infinite_date(*b) {
                let message = "cannot subtract infinite dates";
                return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
            }
            Datum::Int(i64::from(*a) - i64::from(*b))
        }
        (Func::Add, [Datum::Date(days), Datum::Interval(by)])
        | (Func::Add, [Datum::Interval(by), Datum::Date(days)]) => {
            Datum::Timestamp(shift(date_to_timestamp(*days)?, *by)?)
        }
        (Func::Sub, [Datum::Date(days), Datum::Interval(by)]) => {
            Datum::Timestamp(shift(date_to_timestamp(*days)?, negate(*by)?)?)
        }
        (Func::Add, [Datum::Timestamp(at), Datum::Interval(by)])
        | (Func::Add, [Datum::Interval(by), Datum::Timestamp(at)]) => {
            Datum::Timestamp(shift(*at, *by)?)
        }
        (Func::Sub, [Datum::Timestamp(at), Datum::Interval(by)]) => {
            Datum::Timestamp(shift(*at, negate(*by)?)?)
        }
        (Func::Sub, [Datum::Timestamp(a), Datum::Timestamp(b)]) => {
            Datum::Interval(difference(*a, *b)?)
        }
        (Func::Add, [Datum::Date(days), Datum::Time(time)])
        | (Func::Add, [Datum::Time(time), Datum::Date(days)]) => {
            Datum::Timestamp(shift(date_to_timestamp(*days)?, interval_of_time(*time))?)
        }
        (Func::Add, [Datum::Time(time), Datum::Interval(by)])
        | (Func::Add, [Datum::Interval(by), Datum::Time(time)]) => {
            Datum::Time(shift_time(*time, by.micros, false))
        }
        (Func::Sub, [Datum::Time(time), Datum::Interval(by)]) => {
            Datum::Time(shift_time(*time, by.micros, true))
        }
        (Func::Sub, [Datum::Time(a), Datum::Time(b)]) => Datum::Interval(interval_of_time(*a - *b)),
        (Func::Add, [Datum::Interval(a), Datum::Interval(b)]) => Datum::Interval(sum(*a, *b)?),
        (Func::Sub, [Datum::Interval(a), Datum::Interval(b)]) => {
            Datum::Interval(sum(*a, negate(*b)?)?)
        }
        (Func::Neg, [Datum::Interval(a)]) => Datum::Interval(negate(*a)?),
        (Func::Mul, [Datum::Interval(a), Datum::Float(by)])
        | (Func::Mul, [Datum::Float(by), Datum::Interval(a)]) => {
            Datum::Interval(scale(*a, |part| part * by)?)
        }
        (Func::Div, [Datum::Interval(_), Datum::Float(by)]) if *by == 0.0 => {
            return Err(SqlError::new(
                SqlState::DIVISION_BY_ZERO,
                "division by zero",
            ));
        }
        (Func::Div, [Datum::Interval(a), Datum::Float(by)]) => {
            Datum::Interval(scale(*a, |part| part / by)?)
        }
        _ => unreachable!("{func:?} was bound to arguments it does not take: {args:?}"),
    })
}

/// As [`arithmetic`] with a time of a zone.
fn with_timetz(func: &Func, args: &[Datum]) -> Result<Datum, SqlError> {
    Ok(match (func, args) {
        (Func::Add, [Datum::Date(days), Datum::Timetz(time)])
        | (Func::Add, [Datum::Timetz(time), Datum::Date(days)]) => {
            let at = date_to_timestamp(*days)?;
            Datum::Timestamp(shift(at, interval_of_time(time.utc()))?)
        }
        (Func::Add, [Datum::Timetz(time), Datum::Interval(by)])
        | (Func::Add, [Datum::Interval(by), Datum::Timetz(time)]) => Datum::Timetz(Timetz {
            micros: shift_time(time.micros, by.micros, false),
            west: time.west,
        }),
        (Func::Sub, [Datum::Timetz(time), Datum::Interval(by)]) => Datum::Timetz(Timetz {
            micros: shift_time(time.micros, by.micros, true),
            west: time.west,
        }),
        _ => unreachable!("{func:?} was bound to arguments it does not take: {args:?}"),
    })
}

fn shift_date(days: i32, by: i64) -> Result<i32, SqlError> {
    if is_infinite_date(days) {
        return Ok(days);
    }
    let moved = i64::from(days)
        .checked_add(by)
        .and_then(|days| i32::try_from(days).ok());
    let supported = base::calendar::DATE_MIN..=base::calendar::DATE_MAX;
    moved
        .filter(|days| supported.contains(days))
        .ok_or_else(|| out_of_range("date"))
}

/// A part of a day as an interval.
pub(crate) fn interval_of_time(micros: i64) -> Interval {
    Interval {
        months: 0,
        days: 0,
        micros,
    }
}

/// A time of day so much later or earlier, of whatever day.
fn shift_time(time: i64, by: i64, back: bool) -> i64 {
    let by = by % MICROS_PER_DAY;
    let moved = if back { time - by } else { time + by };
    moved.rem_euclid(MICROS_PER_DAY)
}

/// A timestamp moved by months, then days, then time.
pub fn shift(at: i64, by: Interval) -> Result<i64, SqlError> {
    if is_infinite(at) {
        return Ok(at);
    }
    let (days, micros) = split_timestamp(at);
    let moved = (|| {
        let days = if by.months == 0 {
            days
        } else {
            add_months(days, by.months)?
        };
        let at = join_timestamp(days.checked_add(by.days)?, micros)?.checked_add(by.micros)?;
        let (days, micros) = split_timestamp(at);
        join_timestamp(days, micros)
    })();
    moved.ok_or_else(|| out_of_range("timestamp"))
}

fn difference(a: i64, b: i64) -> Result<Interval, SqlError> {
    if is_infinite(a) || is_infinite(b) {
        let message = "cannot subtract infinite timestamps";
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
    }
    let micros = a.checked_sub(b).ok_or_else(|| out_of_range("interval"))?;
    Ok(Interval {
        months: 0,
        days: (micros / MICROS_PER_DAY) as i32,
        micros: micros % MICROS_PER_DAY,
    })
}

/// The interval the other way.
///
/// # Errors
/// 22008 if a part of it has no opposite.
pub fn negate(a: Interval) -> Result<Interval, SqlError> {
    (|| {
        Some(Interval {
            months: a.months.checked_neg()?,
            days: a.days.checked_neg()?,
            micros: a.micros.checked_neg()?,
        })
    })()
    .ok_or_else(|| out_of_range("interval"))
}

/// The sum of two intervals, part by part. 22008 if a part overflows.
pub fn sum(a: Interval, b: Interval) -> Result<Interval, SqlError> {
    (|| {
        Some(Interval {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            micros: a.micros.checked_add(b.micros)?,
        })
    })()
    .ok_or_else(|| out_of_range("interval"))
}

/// Every part through `by`; fractions of months go down to days, of days to time.
///
/// Follows PostgreSQL's `interval_mul` step by step, since the roundings show.
pub fn scale(a: Interval, by: impl Fn(f64) -> f64) -> Result<Interval, SqlError> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let to_micros = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let whole = |value: f64| {
        let inside = value.is_finite() && value.abs() < f64::from(i32::MAX);
        if inside {
            Ok(value as i32)
        } else {
            Err(out_of_range("interval"))
        }
    };
    let (months, days) = (by(f64::from(a.months)), by(f64::from(a.days)));
    let mut result = Interval {
        months: whole(months)?,
        days: whole(days)?,
        micros: 0,
    };
    let rest = (months - f64::from(result.months)) * f64::from(DAYS_PER_MONTH);
    let rest_days = to_micros(rest);
    let day_fraction = days - f64::from(result.days) + rest_days - rest_days.trunc();
    let mut seconds = to_micros(day_fraction * SECONDS_PER_DAY);
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY).trunc();
        result.days += carried as i32;
        seconds -= carried * SECONDS_PER_DAY;
    }
    result.days = whole(f64::from(result.days) + rest_days.trunc())?;
    let micros = (by(a.micros as f64) + seconds * 1e6).round_ties_even();
    if !micros.is_finite() || micros.abs() >= 9.2e18 {
        return Err(out_of_range("interval"));
    }
    result.micros = micros as i64;
    Ok(result)
}

/// Rounded to `digits` (0 to 6) digits of a second, halves away from the past.
pub fn round_micros(micros: i64, digits: i64) -> i64 {
    let unit = 10i64.pow(6 - digits.clamp(0, 6) as u32);
    (micros + unit / 2).div_euclid(unit) * unit
}

/// Computes a function of dates, timestamps or intervals.
pub fn apply(func: DateFunc, args: &[Datum], ty: Type) -> Result<Datum, SqlError> {
    Ok(match func {
        DateFunc::Extract => return extract::extract(text(args, 0), &args[1], false, ty),
        DateFunc::ExtractZoned => return extract::extract(text(args, 0), &args[1], true, ty),
        DateFunc::Trunc => return trunc::trunc(text(args, 0), &args[1]),
        DateFunc::Bin => Datum::Timestamp(trunc::bin(args)?),
        DateFunc::Age => Datum::Interval(construct::age(args)?),
        DateFunc::MakeDate => Datum::Date(construct::make_date(args)?),
        DateFunc::MakeTimestamp => Datum::Timestamp(construct::make_timestamp(args)?),
        DateFunc::MakeTime => Datum::Time(construct::make_time(args)?),
        DateFunc::MakeInterval => Datum::Interval(construct::make_interval(args)?),
        DateFunc::ToTimestampEpoch => Datum::Timestamp(from_epoch(args)?),
        DateFunc::ToTimestamp => {
            let read = super::to_char::parse_moment(text(args, 0), text(args, 1))?;
            Datum::Timestamp(read.timestamp(text(args, 0))?)
        }
        DateFunc::ToDate => {
            let read = super::to_char::parse_moment(text(args, 0), text(args, 1))?;
            Datum::Date(read.days)
        }
        DateFunc::JustifyDays | DateFunc::JustifyHours | DateFunc::JustifyInterval => {
            Datum::Interval(construct::justify(func, interval(args, 0))?)
        }
        DateFunc::IsFinite => match &args[0] {
            Datum::Date(days) => (!is_infinite_date(*days)).into(),
            Datum::Timestamp(at) => (!is_infinite(*at)).into(),
            _ => true.into(),
        },
        DateFunc::AtTimeZone if matches!(args[1], Datum::Timetz(_)) => {
            Datum::Timetz(construct::time_at_zone(args)?)
        }
        DateFunc::AtTimeZone => Datum::Timestamp(at_time_zone(args, ty)?),
        DateFunc::Overlaps => construct::overlaps(args)?,
    })
}

/// A field of a moment, as the clocks that are meant show it.
pub fn extract_zoned(field: &str, at: i64, ty: Type) -> Result<Datum, SqlError> {
    extract::extract(field, &Datum::Timestamp(at), true, ty)
}

/// A clock's time cut off at a unit.
pub fn truncated(unit: &str, at: i64) -> Result<Datum, SqlError> {
    trunc::trunc(unit, &Datum::Timestamp(at))
}

fn text(args: &[Datum], i: usize) -> &str {
    args[i].as_str().expect("the binder passes text")
}

fn interval(args: &[Datum], i: usize) -> Interval {
    match &args[i] {
        Datum::Interval(interval) => *interval,
        other => unreachable!("the binder passes intervals, not {other:?}"),
    }
}

fn timestamp(args: &[Datum], i: usize) -> Result<i64, SqlError> {
    match &args[i] {
        Datum::Timestamp(at) => Ok(*at),
        Datum::Date(days) => date_to_timestamp(*days),
        other => unreachable!("the binder passes timestamps, not {other:?}"),
    }
}

/// `to_timestamp(seconds since 1970)`.
fn from_epoch(args: &[Datum]) -> Result<i64, SqlError> {
    let seconds = args[0].as_float().expect("the binder passes a float");
    if seconds.is_nan() {
        let message = "timestamp cannot be NaN";
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { i64::MAX } else { i64::MIN });
    }
    let micros = (seconds * 1e6).round_ties_even();
    let in_range = (micros.abs() < 9.2e18)
        .then(|| (micros as i64).checked_sub(UNIX_EPOCH_MICROS))
        .flatten()
        .and_then(|at| {
            let (days, micros) = split_timestamp(at);
            join_timestamp(days, micros)
        });
    in_range.ok_or_else(|| {
        let message = format!("timestamp out of range: \"{seconds}\"");
        SqlError::new(SqlState::DATETIME_OVERFLOW, message)
    })
}

/// Microseconds, in whole seconds, east of UTC of a zone that is an interval.
fn interval_offset(value: &Datum, offset: Interval) -> Result<i64, SqlError> {
    if offset.months != 0 || offset.days != 0 {
        let offset = base::text::to_string(Type::Interval(None), value);
        let message = format!("interval time zone \"{offset}\" must not include months or days");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(offset.micros / MICROS_PER_SECOND * MICROS_PER_SECOND)
}

/// `value AT TIME ZONE zone`.
fn at_time_zone(args: &[Datum], ty: Type) -> Result<i64, SqlError> {
    let at = timestamp(args, 1)?;
    let towards_utc = matches!(ty, Type::Timestamptz(_));
    let east = match &args[0] {
        Datum::Interval(offset) => interval_offset(&args[0], *offset)?,
        Datum::Text(name) => zone_offset(name, at, towards_utc)?,
        other => unreachable!("the binder passes zones, not {other:?}"),
    };
    if is_infinite(at) {
        return Ok(at);
    }
    // Towards timestamptz the zone's time is taken back to UTC, away from it the other way.
    let moved = if towards_utc {
        at.checked_sub(east)
    } else {
        at.checked_add(east)
    };
    moved
        .map(split_timestamp)
        .and_then(|(days, micros)| join_timestamp(days, micros))
        .ok_or_else(|| out_of_range("timestamp"))
}

/// `time zone "..." not recognized`, 22023.
pub fn unknown_zone(name: &str) -> SqlError {
    let message = format!("time zone \"{name}\" not recognized");
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// Microseconds east of UTC of a zone, at a local time (`towards_utc`) or a moment. A bare number
/// counts hours west, as POSIX has it.
pub fn zone_offset(name: &str, at: i64, towards_utc: bool) -> Result<i64, SqlError> {
    let unknown = || unknown_zone(name);
    if let Some(seconds) = zone::abbreviation(&name.to_ascii_lowercase()) {
        return Ok(seconds * MICROS_PER_SECOND);
    }
    if let Some(zone) = zone::Zone::named(name) {
        let seconds = match (is_infinite(at), towards_utc) {
            (true, _) => 0,
            (false, true) => zone.offset_of_local(at),
            (false, false) => zone.offset_at(at),
        };
        return Ok(seconds * MICROS_PER_SECOND);
    }
    let upper = name.to_ascii_uppercase();
    let offset = upper
        .strip_prefix("UTC")
        .or(upper.strip_prefix("GMT"))
        .unwrap_or(&upper);
    let (west, digits) = match offset.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let mut seconds = 0;
    for (part, unit) in digits.splitn(3, ':').zip([3_600, 60, 1]) {
        let value: i64 = part.parse().map_err(|_| unknown())?;
        if !(0..60).contains(&value) || part.starts_with('+') {
            return Err(unknown());
        }
        seconds += value * unit;
    }
    Ok(-west * seconds * MICROS_PER_SECOND)
}
