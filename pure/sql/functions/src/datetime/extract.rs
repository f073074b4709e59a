//! `extract` and `date_part`.

use super::{date_to_timestamp, is_infinite};
use base::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, UNIX_EPOCH_DAYS,
    UNIX_EPOCH_MICROS, days_from_ymd, split_timestamp, weekday, ymd_from_days,
};
use base::datum::{Interval, Timetz};
use base::{Datum, Decimal, SqlError, SqlState, Type};

/// Julian day of 2000-01-01.
const JULIAN_OF_2000: i64 = 2_451_545;

/// A field that is asked for, in PostgreSQL's units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    IsoYear,
    Decade,
    Century,
    Millennium,
    Julian,
    Dow,
    IsoDow,
    Doy,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Field {
    /// The field of a name, in any case; `None` if there is no such field.
    pub(super) fn named(name: &str) -> Option<Field> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Field::Microseconds,
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Field::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Field::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Field::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Field::Hour,
            "day" | "days" | "d" => Field::Day,
            "week" | "weeks" | "w" => Field::Week,
            "month" | "months" | "mon" | "mons" => Field::Month,
            "quarter" | "qtr" => Field::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Field::Year,
            "isoyear" => Field::IsoYear,
            "decade" | "decades" | "dec" | "decs" => Field::Decade,
            "century" | "centuries" | "c" | "cent" => Field::Century,
            "millennium" | "millennia" | "mil" | "mils" => Field::Millennium,
            "julian" | "jd" | "j" => Field::Julian,
            "dow" => Field::Dow,
            "isodow" => Field::IsoDow,
            "doy" => Field::Doy,
            "epoch" => Field::Epoch,
            "timezone" => Field::Timezone,
            "timezone_hour" => Field::TimezoneHour,
            "timezone_minute" => Field::TimezoneMinute,
            _ => return None,
        })
    }
}

/// The type that a value shows in messages.
fn type_of(value: &Datum) -> &'static str {
    match value {
        Datum::Date(_) => "date",
        Datum::Interval(_) => "interval",
        Datum::Timetz(_) => "time with time zone",
        Datum::Time(_) => "time without time zone",
        _ => "timestamp without time zone",
    }
}

/// `unit "..." not recognized`, 22023.
pub(super) fn unrecognized(name: &str, value: &Datum) -> SqlError {
    let name = name.to_ascii_lowercase();
    let message = format!("unit \"{name}\" not recognized for type {}", type_of(value));
    SqlError::new(SqlState::INVALID_PARAMETER, message)
}

/// `unit "..." not supported`, 0A000.
pub(super) fn unsupported(name: &str, value: &Datum) -> SqlError {
    let name = name.to_ascii_lowercase();
    let message = format!("unit \"{name}\" not supported for type {}", type_of(value));
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

/// A field's value: `units / 10^scale`.
struct Units(i128, u8);

/// Extracts `name` from a date, time, timestamp (`zoned`: with time zone) or interval as numeric or
/// float, as `ty` says.
pub(super) fn extract(name: &str, value: &Datum, zoned: bool, ty: Type) -> Result<Datum, SqlError> {
    let field = Field::named(name).ok_or_else(|| unrecognized(name, value))?;
    let of_zone = matches!(
        field,
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute
    );
    if of_zone && !zoned {
        return Err(unsupported(name, value));
    }
    let units = match value {
        Datum::Interval(interval) => of_interval(field, *interval),
        Datum::Time(time) => of_time(field, *time),
        Datum::Timetz(time) => of_timetz(field, *time),
        Datum::Date(i32::MIN | i32::MAX) => return of_infinity(field, value, ty),
        Datum::Timestamp(at) if is_infinite(*at) => return of_infinity(field, value, ty),
        // `date_part` sees a date as its midnight, `extract` knows that it has no time.
        Datum::Date(days) if ty == Type::Float8 => of_timestamp(field, date_to_timestamp(*days)?),
        Datum::Date(days) => of_date(field, *days),
        Datum::Timestamp(at) => of_timestamp(field, *at),
        other => unreachable!("the binder passes dates, not {other:?}"),
    };
    if let (Field::Julian, Datum::Timestamp(at)) = (field, value) {
        return julian(*at, ty);
    }
    let Units(units, scale) = units.ok_or_else(|| unsupported(name, value))?;
    let number = Decimal::from_parts(units, scale).expect("fields are far below 38 digits");
    Ok(if ty == Type::Float8 {
        Datum::Float(number.to_f64())
    } else {
        Datum::Decimal(number)
    })
}

/// Day number and share of the day, with the digits of PostgreSQL's division.
fn julian(at: i64, ty: Type) -> Result<Datum, SqlError> {
    let (days, micros) = split_timestamp(at);
    let share = Decimal::from(micros).div(Decimal::from(MICROS_PER_DAY))?;
    let number = Decimal::from(i64::from(days) + JULIAN_OF_2000).add(share)?;
    Ok(if ty == Type::Float8 {
        Datum::Float(number.to_f64())
    } else {
        Datum::Decimal(number)
    })
}

/// Fields that grow without end are infinite, the others have no value.
fn of_infinity(field: Field, value: &Datum, ty: Type) -> Result<Datum, SqlError> {
    let grows = matches!(
        field,
        Field::Year
            | Field::IsoYear
            | Field::Decade
            | Field::Century
            | Field::Millennium
            | Field::Julian
            | Field::Epoch
    );
    let negative = matches!(value, Datum::Date(i32::MIN) | Datum::Timestamp(i64::MIN));
    let infinity = if negative {
        f64::NEG_INFINITY
    } else {
        f64::INFINITY
    };
    match (grows, ty) {
        (false, _) => Ok(Datum::Null),
        (true, Type::Float8) => Ok(Datum::Float(infinity)),
        (true, _) => base::numeric::from_f64(infinity),
    }
}

/// Year and number of the ISO week that holds a day.
pub(in super::super) fn iso_week(days: i32) -> (i32, i32) {
    // The week belongs to the year of its Thursday.
    let thursday = days + 3 - (weekday(days) as i32 + 6) % 7;
    let (year, ..) = ymd_from_days(thursday);
    let first = days_from_ymd(year, 1, 1).unwrap_or(thursday);
    (year, (thursday - first) / 7 + 1)
}

/// A year as people count: there is no year 0.
fn shown_year(year: i32) -> i32 {
    if year > 0 { year } else { year - 1 }
}

fn of_date(field: Field, days: i32) -> Option<Units> {
    let (year, month, day) = ymd_from_days(days);
    let whole = |value: i64| Some(Units(i128::from(value), 0));
    whole(match field {
        Field::Day => day.into(),
        Field::Month => month.into(),
        Field::Quarter => i64::from((month - 1) / 3 + 1),
        Field::Week => iso_week(days).1.into(),
        Field::Year => shown_year(year).into(),
        Field::IsoYear => shown_year(iso_week(days).0).into(),
        Field::Decade => year.div_euclid(10).into(),
        Field::Century if year > 0 => ((year + 99) / 100).into(),
        Field::Century => (-((99 - (year - 1)) / 100)).into(),
        Field::Millennium if year > 0 => ((year + 999) / 1000).into(),
        Field::Millennium => (-((999 - (year - 1)) / 1000)).into(),
        Field::Julian => i64::from(days) + JULIAN_OF_2000,
        Field::Dow => weekday(days).into(),
        Field::IsoDow => ((weekday(days) + 6) % 7 + 1).into(),
        Field::Doy => i64::from(days - days_from_ymd(year, 1, 1).unwrap_or(days)) + 1,
        Field::Epoch => (i64::from(days) + i64::from(UNIX_EPOCH_DAYS)) * 86_400,
        _ => return None,
    })
}

fn of_timestamp(field: Field, at: i64) -> Option<Units> {
    let (days, micros) = split_timestamp(at);
    let of_minute = i128::from(micros % MICROS_PER_MINUTE);
    Some(match field {
        Field::Microseconds => Units(of_minute, 0),
        Field::Milliseconds => Units(of_minute, 3),
        Field::Second => Units(of_minute, 6),
        Field::Minute => Units((micros % MICROS_PER_HOUR / MICROS_PER_MINUTE).into(), 0),
        Field::Hour => Units((micros / MICROS_PER_HOUR).into(), 0),
        Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => Units(0, 0),
        Field::Epoch => Units(i128::from(at) + i128::from(UNIX_EPOCH_MICROS), 6),
        _ => of_date(field, days)?,
    })
}

fn of_time(field: Field, time: i64) -> Option<Units> {
    let of_minute = i128::from(time % MICROS_PER_MINUTE);
    Some(match field {
        Field::Microseconds => Units(of_minute, 0),
        Field::Milliseconds => Units(of_minute, 3),
        Field::Second => Units(of_minute, 6),
        Field::Minute => Units((time % MICROS_PER_HOUR / MICROS_PER_MINUTE).into(), 0),
        Field::Hour => Units((time / MICROS_PER_HOUR).into(), 0),
        Field::Epoch => Units(time.into(), 6),
        _ => return None,
    })
}

fn of_timetz(field: Field, time: Timetz) -> Option<Units> {
    let east = -i128::from(time.west);
    Some(match field {
        Field::Timezone => Units(east, 0),
        Field::TimezoneHour => Units(east / 3_600, 0),
        Field::TimezoneMinute => Units(east / 60 % 60, 0),
        Field::Epoch => Units(time.utc().into(), 6),
        _ => return of_time(field, time.micros),
    })
}

fn of_interval(field: Field, interval: Interval) -> Option<Units> {
    let Interval {
        months,
        days,
        micros,
    } = interval;
    let (years, months_left) = (months / 12, months % 12);
    let of_minute = i128::from(micros % MICROS_PER_MINUTE);
    Some(match field {
        Field::Microseconds => Units(of_minute, 0),
        Field::Milliseconds => Units(of_minute, 3),
        Field::Second => Units(of_minute, 6),
        Field::Minute => Units((micros / MICROS_PER_MINUTE % 60).into(), 0),
        Field::Hour => Units((micros / MICROS_PER_HOUR).into(), 0),
        Field::Day => Units(days.into(), 0),
        Field::Month => Units(months_left.into(), 0),
        Field::Quarter => Units((months_left / 3 + 1).into(), 0),
        Field::Year => Units(years.into(), 0),
        Field::Decade => Units((years / 10).into(), 0),
        Field::Century => Units((years / 100).into(), 0),
        Field::Millennium => Units((years / 1000).into(), 0),
        Field::Epoch => {
            // A year has 365.25 days here, a month 30.
            let quarter_days =
                i128::from(years) * 1_461 + (i128::from(months_left) * 30 + i128::from(days)) * 4;
            let seconds = quarter_days * (86_400 / 4);
            Units(
                seconds * i128::from(MICROS_PER_SECOND) + i128::from(micros),
                6,
            )
        }
        _ => return None,
    })
}
