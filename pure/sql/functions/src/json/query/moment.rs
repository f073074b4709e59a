//! Dates and times in paths.

use super::PathZone;
use super::template::{self, Read};
use super::value::View;
use super::walk::{Failure, Outcome, soft};
use base::calendar::{MICROS_PER_SECOND, join_timestamp};
use base::{Datum, SqlError, SqlState, Type, text};
use std::cmp::Ordering;

/// What `.datetime()` gives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Moment {
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since midnight, seconds east of UTC.
    Timetz(i64, i32),
    /// Microseconds since 2000-01-01.
    Timestamp(i64),
    /// Microseconds since 2000-01-01 UTC, seconds east of UTC where it was written.
    Timestamptz(i64, i32),
}

/// What a text is held against without a template, in this order.
const TEMPLATES: [&str; 19] = [
    "YYYY-MM-DD",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "YYYY-MM-DD HH24:MI:SS.USTZH:TZM",
    "YYYY-MM-DD HH24:MI:SS.USTZH",
    "YYYY-MM-DD HH24:MI:SSTZH:TZM",
    "YYYY-MM-DD HH24:MI:SSTZH",
    "YYYY-MM-DD\"T\"HH24:MI:SS.USTZH:TZM",
    "YYYY-MM-DD\"T\"HH24:MI:SS.USTZH",
    "YYYY-MM-DD\"T\"HH24:MI:SSTZH:TZM",
    "YYYY-MM-DD\"T\"HH24:MI:SSTZH",
    "YYYY-MM-DD HH24:MI:SS.US",
    "YYYY-MM-DD HH24:MI:SS",
    "YYYY-MM-DD\"T\"HH24:MI:SS.US",
    "YYYY-MM-DD\"T\"HH24:MI:SS",
];

/// Longest text that may be a moment, in bytes; longer ones are held against no template.
const TEXT_BYTES_MAX: usize = 1_000;

/// The moment that a string stands for.
pub(super) fn read(view: View<'_>, template: Option<&str>) -> Outcome<Moment> {
    const STATE: &[u8; 5] = b"22031";
    let Some(text) = view.string()? else {
        return soft(
            STATE,
            "jsonpath item method .datetime() can only be applied to a string",
        );
    };
    if let Some(template) = template {
        return by_template(&text, template);
    }
    for template in TEMPLATES {
        if text.len() > TEXT_BYTES_MAX {
            break;
        }
        match by_template(&text, template) {
            Err(Failure::Soft(_)) => {}
            other => return other,
        }
    }
    let message = format!("datetime format is not recognized: \"{text}\"");
    let hint = "Use a datetime template argument to specify the input data format.";
    Err(Failure::Soft(
        SqlError::new(SqlState(*STATE), message).hint(hint),
    ))
}

fn by_template(text: &str, template: &str) -> Outcome<Moment> {
    let read = template::read(text, template)?;
    moment(&read, text).map_err(Failure::Soft)
}

fn moment(read: &Read, text: &str) -> Result<Moment, SqlError> {
    let seconds =
        i64::from(read.hour) * 3_600 + i64::from(read.minute) * 60 + i64::from(read.second);
    let mut micros = seconds * MICROS_PER_SECOND + i64::from(read.micros);
    if let Some(digits) = read.digits {
        let unit = 10_i64.pow(6 - u32::from(digits.min(6)));
        micros = (micros + unit / 2) / unit * unit;
    }
    let wrong = |message: &str| Err(SqlError::new(SqlState::DATETIME_FORMAT, message));
    match (read.is_dated, read.is_timed, read.is_zoned) {
        (true, false, true) => wrong("datetime format is zoned but not timed"),
        (false, false, _) => wrong("datetime format is not dated and not timed"),
        (true, false, false) => read.days(text).map(Moment::Date),
        (false, true, true) => Ok(Moment::Timetz(micros, read.offset())),
        (false, true, false) => Ok(Moment::Time(micros)),
        (true, true, is_zoned) => {
            let out_of_range = || {
                let name = if is_zoned { "timestamptz" } else { "timestamp" };
                let message = format!("{name} out of range");
                SqlError::new(SqlState::DATETIME_OVERFLOW, message)
            };
            let at = join_timestamp(read.days(text)?, micros).ok_or_else(out_of_range)?;
            if !is_zoned {
                return Ok(Moment::Timestamp(at));
            }
            let east = i64::from(read.offset()) * MICROS_PER_SECOND;
            Ok(Moment::Timestamptz(at - east, read.offset()))
        }
    }
}

/// `+hh:mm`
fn offset_text(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

impl Moment {
    /// In the form of ISO 8601.
    pub(super) fn text(&self) -> String {
        let shown = |ty, datum| text::to_string(ty, &datum);
        let at =
            |micros| shown(Type::Timestamp(None), Datum::Timestamp(micros)).replacen(' ', "T", 1);
        match *self {
            Moment::Date(days) => shown(Type::Date, Datum::Date(days)),
            Moment::Time(micros) => shown(Type::Time(None), Datum::Time(micros)),
            Moment::Timetz(micros, offset) => {
                shown(Type::Time(None), Datum::Time(micros)) + &offset_text(offset)
            }
            Moment::Timestamp(micros) => at(micros),
            Moment::Timestamptz(micros, offset) => {
                at(micros + i64::from(offset) * MICROS_PER_SECOND) + &offset_text(offset)
            }
        }
    }

    /// What `.type()` gives.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Moment::Date(_) => "date",
            Moment::Time(_) => "time without time zone",
            Moment::Timetz(..) => "time with time zone",
            Moment::Timestamp(_) => "timestamp without time zone",
            Moment::Timestamptz(..) => "timestamp with time zone",
        }
    }

    /// The order of two moments; `None`: they have none.
    pub(super) fn compare(&self, other: &Moment, zone: PathZone<'_>) -> Outcome<Option<Ordering>> {
        use Moment::{Date, Time, Timestamp, Timestamptz, Timetz};
        // As PostgreSQL orders them: by the moment, then the one farther east first.
        let timetz =
            |micros: i64, offset: i32| (micros - i64::from(offset) * MICROS_PER_SECOND, -offset);
        let local = |at: Option<i64>, from| {
            let Some(zone) = zone else {
                return Err(needs_zone(from, "timestamptz"));
            };
            let at = at.unwrap_or(i64::MAX);
            Ok(at.saturating_sub(zone.offset_of_local(at) * MICROS_PER_SECOND))
        };
        let start = |days: i32| join_timestamp(days, 0);
        Ok(Some(match (*self, *other) {
            (Date(a), Date(b)) => a.cmp(&b),
            (Time(a), Time(b)) => a.cmp(&b),
            (Timetz(a, b), Timetz(c, d)) => timetz(a, b).cmp(&timetz(c, d)),
            (Timestamp(a), Timestamp(b)) => a.cmp(&b),
            (Timestamptz(a, _), Timestamptz(b, _)) => a.cmp(&b),
            (Date(a), Timestamp(b)) => start(a).unwrap_or(i64::MAX).cmp(&b),
            (Date(a), Timestamptz(b, _)) => local(start(a), "date")?.cmp(&b),
            (Timestamp(a), Timestamptz(b, _)) => local(Some(a), "timestamp")?.cmp(&b),
            (Time(_), Timetz(..)) if zone.is_none() => return Err(needs_zone("time", "timetz")),
            (Time(a), Timetz(b, c)) => {
                let offset = fixed_offset(zone)?;
                timetz(a, offset).cmp(&timetz(b, c))
            }
            (Timestamp(_), Date(_))
            | (Timestamptz(..), Date(_) | Timestamp(_))
            | (Timetz(..), Time(_)) => {
                return Ok(other.compare(self, zone)?.map(Ordering::reverse));
            }
            (Time(_) | Timetz(..), Date(_) | Timestamp(_) | Timestamptz(..))
            | (Date(_) | Timestamp(_) | Timestamptz(..), Time(_) | Timetz(..)) => return Ok(None),
        }))
    }
}

fn needs_zone(from: &str, to: &str) -> Failure {
    let message = format!("cannot convert value from {from} to {to} without time zone usage");
    let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    Failure::Hard(error.hint("Use *_tz() function for time zone support."))
}

/// The offset of a zone that has the same one all the year.
fn fixed_offset(zone: PathZone<'_>) -> Outcome<i32> {
    const HALF_YEAR_MICROS: i64 = 182 * 86_400 * MICROS_PER_SECOND;
    let Some(zone) = zone else { return Ok(0) };
    // 2025-01-01, and half a year later.
    let winter = 50 * HALF_YEAR_MICROS + 32 * 86_400 * MICROS_PER_SECOND;
    let (a, b) = (
        zone.offset_at(winter),
        zone.offset_at(winter + HALF_YEAR_MICROS),
    );
    if a != b {
        let message = "a comparison of time with timetz in a time zone with summer time";
        let error = SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{message} is not supported"),
        );
        let hint = "Set TimeZone to an offset, such as UTC.";
        return Err(Failure::Hard(error.hint(hint)));
    }
    Ok(i32::try_from(a).unwrap_or(0))
}
