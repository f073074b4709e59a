//! `date_trunc` and `date_bin`.

use super::extract::{Field, unrecognized, unsupported};
use super::{interval, is_infinite, out_of_range, timestamp};
use base::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, TIMESTAMP_END,
    TIMESTAMP_MIN, days_from_ymd, join_timestamp, split_timestamp, weekday, ymd_from_days,
};
use base::datum::Interval;
use base::{Datum, SqlError, SqlState};

/// Cuts a timestamp or interval down to a unit.
pub(super) fn trunc(name: &str, value: &Datum) -> Result<Datum, SqlError> {
    let whole = |field: &Field| {
        !matches!(
            field,
            Field::Dow | Field::IsoDow | Field::Doy | Field::Epoch | Field::Julian | Field::IsoYear
        )
    };
    let field = Field::named(name)
        .filter(whole)
        .ok_or_else(|| unrecognized(name, value))?;
    match value {
        Datum::Timestamp(at) if is_infinite(*at) => Ok(Datum::Timestamp(*at)),
        Datum::Timestamp(at) => match of_timestamp(field, *at) {
            Some(cut) => Ok(Datum::Timestamp(
                cut.ok_or_else(|| out_of_range("timestamp"))?,
            )),
            None => Err(unsupported(name, value)),
        },
        Datum::Interval(interval) => of_interval(field, *interval)
            .map(Datum::Interval)
            .ok_or_else(|| {
                let error = unsupported(name, value);
                if field == Field::Week {
                    error.detail("Months usually have fractional weeks.")
                } else {
                    error
                }
            }),
        other => unreachable!("the binder passes timestamps, not {other:?}"),
    }
}

/// Whether a unit is shorter than a day.
pub fn is_below_a_day(unit: &str) -> bool {
    matches!(
        Field::named(unit),
        Some(
            Field::Microseconds | Field::Milliseconds | Field::Second | Field::Minute | Field::Hour
        )
    )
}

/// `None` if the field cannot be truncated to, `Some(None)` if the result is out of range.
fn of_timestamp(field: Field, at: i64) -> Option<Option<i64>> {
    let (days, micros) = split_timestamp(at);
    let (year, month, _) = ymd_from_days(days);
    let unit = |size: i64| Some(join_timestamp(days, micros - micros % size));
    let midnight = |days: Option<i32>| Some(days.and_then(|days| join_timestamp(days, 0)));
    let start_of = |year: i32| midnight(days_from_ymd(year, 1, 1));
    match field {
        Field::Microseconds => Some(Some(at)),
        Field::Milliseconds => unit(1_000),
        Field::Second => unit(MICROS_PER_SECOND),
        Field::Minute => unit(MICROS_PER_MINUTE),
        Field::Hour => unit(MICROS_PER_HOUR),
        Field::Day => unit(MICROS_PER_DAY),
        Field::Week => midnight(days.checked_sub((weekday(days) as i32 + 6) % 7)),
        Field::Month => midnight(days_from_ymd(year, month, 1)),
        Field::Quarter => midnight(days_from_ymd(year, (month - 1) / 3 * 3 + 1, 1)),
        Field::Year => start_of(year),
        Field::Decade => start_of(year.div_euclid(10) * 10),
        // Centuries and millennia begin with the year 1.
        Field::Century => start_of((year - 1).div_euclid(100) * 100 + 1),
        Field::Millennium => start_of((year - 1).div_euclid(1000) * 1000 + 1),
        _ => None,
    }
}

fn of_interval(field: Field, interval: Interval) -> Option<Interval> {
    let Interval {
        months,
        days,
        micros,
    } = interval;
    let cut = |value: i64, unit: i64| value - value % unit;
    let of_months = |unit: i32| Interval {
        months: months - months % unit,
        days: 0,
        micros: 0,
    };
    let of_micros = |unit: i64| Interval {
        months,
        days,
        micros: cut(micros, unit),
    };
    Some(match field {
        Field::Microseconds => interval,
        Field::Milliseconds => of_micros(1_000),
        Field::Second => of_micros(MICROS_PER_SECOND),
        Field::Minute => of_micros(MICROS_PER_MINUTE),
        Field::Hour => of_micros(MICROS_PER_HOUR),
        Field::Day => Interval {
            months,
            days,
            micros: 0,
        },
        Field::Month => Interval {
            months,
            days: 0,
            micros: 0,
        },
        Field::Quarter => of_months(3),
        Field::Year => of_months(12),
        Field::Decade => of_months(120),
        Field::Century => of_months(1_200),
        Field::Millennium => of_months(12_000),
        _ => return None,
    })
}

/// `date_bin(stride, source, origin)`.
pub(super) fn bin(args: &[Datum]) -> Result<i64, SqlError> {
    let stride = interval(args, 0);
    let (source, origin) = (timestamp(args, 1)?, timestamp(args, 2)?);
    if is_infinite(source) {
        return Ok(source);
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    if is_infinite(origin) {
        let message = "origin out of range";
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
    }
    let size = i64::from(stride.days)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|days| days.checked_add(stride.micros))
        .ok_or_else(|| out_of_range("interval"))?;
    if size <= 0 {
        let message = "stride must be greater than zero";
        return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, message));
    }
    let since = source
        .checked_sub(origin)
        .ok_or_else(|| out_of_range("interval"))?;
    since
        .div_euclid(size)
        .checked_mul(size)
        .and_then(|since| origin.checked_add(since))
        .filter(|at| (TIMESTAMP_MIN..TIMESTAMP_END).contains(at))
        .ok_or_else(|| out_of_range("timestamp"))
}
