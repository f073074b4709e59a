//! Making dates and intervals out of parts, `age`, `justify_*` and OVERLAPS.

use super::super::func::DateFunc;
use super::{DAYS_PER_MONTH, is_infinite, out_of_range, shift, shift_time, timestamp};
use base::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, days_from_ymd,
    days_in_month, is_time, join_timestamp, split_timestamp, ymd_from_days,
};
use base::datum::{Interval, Timetz};
use base::{Datum, SqlError, SqlState};

fn int(args: &[Datum], i: usize) -> i64 {
    args[i].as_int().expect("the binder passes integers")
}

/// Years as people count (-1 is 1 BC) to astronomical ones; `None` for 0.
fn astronomical(year: i64) -> Option<i32> {
    let year = i32::try_from(year).ok()?;
    if year == 0 {
        None
    } else {
        Some(if year < 0 { year + 1 } else { year })
    }
}

fn checked_date(year: i64, month: i64, day: i64) -> Option<i32> {
    days_from_ymd(
        astronomical(year)?,
        u32::try_from(month).ok()?,
        u32::try_from(day).ok()?,
    )
}

pub(super) fn make_date(args: &[Datum]) -> Result<i32, SqlError> {
    let (year, month, day) = (int(args, 0), int(args, 1), int(args, 2));
    checked_date(year, month, day).ok_or_else(|| {
        let message = format!("date field value out of range: {year}-{month:02}-{day:02}");
        SqlError::new(SqlState::DATETIME_OVERFLOW, message)
    })
}

pub(super) fn make_timestamp(args: &[Datum]) -> Result<i64, SqlError> {
    let (hour, minute) = (int(args, 3), int(args, 4));
    let second = args[5].as_float().expect("the binder passes a float");
    let day_end = hour == 24 && minute == 0 && second == 0.0;
    let in_day =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let date = (int(args, 0), int(args, 1), int(args, 2));
    let Some(days) = checked_date(date.0, date.1, date.2) else {
        return Err(make_date(args)
            .err()
            .unwrap_or_else(|| out_of_range("date")));
    };
    if !in_day && !day_end {
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
    }
    let micros = hour * MICROS_PER_HOUR
        + minute * MICROS_PER_MINUTE
        + (second * 1e6).round_ties_even() as i64;
    let (more, micros) = (micros / MICROS_PER_DAY, micros % MICROS_PER_DAY);
    join_timestamp(days + more as i32, micros).ok_or_else(|| out_of_range("timestamp"))
}

/// `make_time(hour, minute, second)`.
pub(super) fn make_time(args: &[Datum]) -> Result<i64, SqlError> {
    let (hour, minute) = (int(args, 0), int(args, 1));
    let second = args[2].as_float().expect("the binder passes a float");
    let fields =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let micros = fields.then(|| {
        hour * MICROS_PER_HOUR
            + minute * MICROS_PER_MINUTE
            + (second * 1e6).round_ties_even() as i64
    });
    micros.filter(|micros| is_time(*micros)).ok_or_else(|| {
        let message = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
        SqlError::new(SqlState::DATETIME_OVERFLOW, message)
    })
}

/// A time with a zone as the clocks of another zone show it: the zone, the time, now.
pub(super) fn time_at_zone(args: &[Datum]) -> Result<Timetz, SqlError> {
    let Datum::Timetz(time) = args[1] else {
        unreachable!("the caller has seen the time")
    };
    let east = match (&args[0], args.get(2)) {
        (Datum::Interval(offset), _) => super::interval_offset(&args[0], *offset)?,
        (Datum::Text(name), Some(Datum::Timestamp(now))) => super::zone_offset(name, *now, false)?,
        (other, _) => unreachable!("the binder passes zones, not {other:?}"),
    };
    // PostgreSQL takes offsets of intervals however large.
    let west = i32::try_from(-(east / MICROS_PER_SECOND)).ok();
    let moved = west.map(|west| time.moved(west));
    moved
        .filter(|moved| Timetz::new(moved.micros, moved.west).is_some())
        .ok_or_else(|| {
            let message = "time zone displacement out of range";
            SqlError::new(SqlState(*b"22009"), message)
        })
}

/// `make_interval(years, months, weeks, days, hours, mins, secs)`, all optional from the right.
pub(super) fn make_interval(args: &[Datum]) -> Result<Interval, SqlError> {
    let part = |i: usize| args.get(i).and_then(Datum::as_int).unwrap_or(0);
    let seconds = args.get(6).and_then(Datum::as_float).unwrap_or(0.0);
    let narrow = |value: Option<i64>| {
        value
            .and_then(|value| i32::try_from(value).ok())
            .ok_or_else(|| out_of_range("interval"))
    };
    let time = part(4)
        .checked_mul(MICROS_PER_HOUR)
        .and_then(|micros| micros.checked_add(part(5).checked_mul(MICROS_PER_MINUTE)?));
    let second_micros = (seconds * 1e6).round_ties_even();
    if !second_micros.is_finite() || second_micros.abs() > 9.2e18 {
        return Err(out_of_range("interval"));
    }
    let micros = time.and_then(|micros| micros.checked_add(second_micros as i64));
    Ok(Interval {
        months: narrow(
            part(0)
                .checked_mul(12)
                .and_then(|months| months.checked_add(part(1))),
        )?,
        days: narrow(
            part(2)
                .checked_mul(7)
                .and_then(|days| days.checked_add(part(3))),
        )?,
        micros: micros.ok_or_else(|| out_of_range("interval"))?,
    })
}

/// `age(a, b)`: the difference in calendar years, months and days.
pub(super) fn age(args: &[Datum]) -> Result<Interval, SqlError> {
    let (a, b) = (timestamp(args, 0)?, timestamp(args, 1)?);
    if is_infinite(a) || is_infinite(b) {
        return Err(out_of_range("interval"));
    }
    // The difference is taken from the later to the earlier one and negated if need be.
    let (later, earlier) = (a.max(b), a.min(b));
    let ((later_days, later_micros), (earlier_days, earlier_micros)) =
        (split_timestamp(later), split_timestamp(earlier));
    let (y1, m1, d1) = ymd_from_days(later_days);
    let (y2, m2, d2) = ymd_from_days(earlier_days);
    let mut micros = later_micros - earlier_micros;
    let mut days = d1 as i32 - d2 as i32;
    let mut months = (y1 - y2) * 12 + m1 as i32 - m2 as i32;
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    while days < 0 {
        // Days are borrowed from the month of the earlier one.
        days += days_in_month(y2, m2) as i32;
        months -= 1;
    }
    let sign = if a < b { -1 } else { 1 };
    Ok(Interval {
        months: sign * months,
        days: sign * days,
        micros: i64::from(sign) * micros,
    })
}

/// `justify_days`, `justify_hours`, `justify_interval`.
pub(super) fn justify(func: DateFunc, a: Interval) -> Result<Interval, SqlError> {
    let mut result = a;
    let overflow = || out_of_range("interval");
    if func != DateFunc::JustifyDays {
        let days = (result.micros / MICROS_PER_DAY) as i32;
        result.micros %= MICROS_PER_DAY;
        result.days = result.days.checked_add(days).ok_or_else(overflow)?;
    }
    if func != DateFunc::JustifyHours {
        let months = result.days / DAYS_PER_MONTH;
        result.days %= DAYS_PER_MONTH;
        result.months = result.months.checked_add(months).ok_or_else(overflow)?;
        // Months and days of one sign; where there are no days the time decides.
        let time = if func == DateFunc::JustifyInterval {
            result.micros
        } else {
            0
        };
        let below = result.days < 0 || result.days == 0 && time < 0;
        let above = result.days > 0 || result.days == 0 && time > 0;
        if result.months > 0 && below {
            result.days += DAYS_PER_MONTH;
            result.months -= 1;
        } else if result.months < 0 && above {
            result.days -= DAYS_PER_MONTH;
            result.months += 1;
        }
    }
    if func != DateFunc::JustifyDays {
        // Days and time of one sign.
        if result.days > 0 && result.micros < 0 {
            result.micros += MICROS_PER_DAY;
            result.days -= 1;
        } else if result.days < 0 && result.micros > 0 {
            result.micros -= MICROS_PER_DAY;
            result.days += 1;
        }
    }
    Ok(result)
}

/// `(a, b) OVERLAPS (c, d)` of half-open time ranges; ends may be intervals.
pub(super) fn overlaps(args: &[Datum]) -> Result<Datum, SqlError> {
    let range = |i: usize| -> Result<Option<(i64, Option<i64>)>, SqlError> {
        let at = |i: usize| match &args[i] {
            Datum::Time(time) => Ok(*time),
            Datum::Timetz(time) => Ok(time.utc()),
            _ => timestamp(args, i),
        };
        let start = if args[i].is_null() {
            None
        } else {
            Some(at(i)?)
        };
        let end = match (&args[i], &args[i + 1]) {
            (_, Datum::Null) => None,
            (Datum::Time(time), Datum::Interval(by)) => Some(shift_time(*time, by.micros, false)),
            (_, Datum::Interval(by)) => start.map(|start| shift(start, *by)).transpose()?,
            _ => Some(at(i + 1)?),
        };
        Ok(match (start, end) {
            (None, None) => None,
            (Some(start), Some(end)) => Some((start.min(end), Some(start.max(end)))),
            // An unknown end: what is known is taken as the start.
            (Some(start), None) | (None, Some(start)) => Some((start, None)),
        })
    };
    let (Some((start_a, end_a)), Some((start_b, end_b))) = (range(0)?, range(2)?) else {
        return Ok(Datum::Null);
    };
    // A range whose end is unknown may reach the later start, or not.
    let reaches = |early: Option<i64>, start: i64, late: Option<i64>| match (early, late) {
        (None, _) => Datum::Null,
        (Some(end), _) if start < end => true.into(),
        (Some(_), None) => Datum::Null,
        (Some(_), Some(_)) => false.into(),
    };
    let result = match start_a.cmp(&start_b) {
        core::cmp::Ordering::Greater => reaches(end_b, start_a, end_a),
        core::cmp::Ordering::Less => reaches(end_a, start_b, end_b),
        core::cmp::Ordering::Equal if end_a.is_none() || end_b.is_none() => Datum::Null,
        core::cmp::Ordering::Equal => Datum::Bool(true),
    };
    Ok(result)
}
