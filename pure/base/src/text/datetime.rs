//! Text forms of dates and timestamps.
//!
//! Output is ISO. Input takes ISO, `MM/DD/YYYY` and dates with month names, an optional time and
//! an optional zone: an offset, a name, or one of a few abbreviations. A timestamp without a zone
//! stands for UTC; `timestamp without time zone` ignores the zone, as in PostgreSQL.

use super::{put, trim};
use crate::calendar::{
    DATE_MAX, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND,
    UNIX_EPOCH_DAYS, days_from_ymd, days_in_month, is_time, join_timestamp, split_timestamp,
    ymd_from_days,
};
use crate::datum::{Timetz, Type};
use crate::error::{SqlError, SqlState};
use crate::zone::{self, Zone};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Why a text is no date or time. The full message needs the type and the whole text.
enum BadTime {
    /// Not of any known form.
    Syntax,
    /// A field is outside its range: month 13.
    Field,
    /// The zone's offset is too large.
    ZoneRange,
    /// A word in the place of a zone that is none.
    UnknownZone(String),
    /// A real day, but too far away.
    Range,
}

impl BadTime {
    fn into_error(self, type_name: &str, text: &str) -> SqlError {
        match self {
            BadTime::Syntax => SqlError::new(
                SqlState::DATETIME_FORMAT,
                format!("invalid input syntax for type {type_name}: \"{text}\""),
            ),
            BadTime::Field => SqlError::new(
                SqlState::DATETIME_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            ),
            BadTime::ZoneRange => SqlError::new(
                SqlState(*b"22009"),
                format!("time zone displacement out of range: \"{text}\""),
            ),
            BadTime::UnknownZone(zone) => SqlError::new(
                SqlState::INVALID_PARAMETER,
                format!("time zone \"{zone}\" not recognized"),
            ),
            BadTime::Range => {
                let short = if type_name == "date" {
                    "date"
                } else {
                    "timestamp"
                };
                SqlError::new(
                    SqlState::DATETIME_OVERFLOW,
                    format!("{short} out of range: \"{text}\""),
                )
            }
        }
    }
}

/// What was read.
enum Moment {
    Infinity,
    MinusInfinity,
    /// Day, microseconds in it (a whole day is legal: 24:00), seconds east of UTC if the text
    /// tells them.
    At {
        days: i32,
        micros: i64,
        offset: Option<i64>,
    },
}

/// Days since 2000-01-01 of a date; a time behind it is ignored.
pub(super) fn parse_date(text: &str) -> Result<i32, SqlError> {
    match parse_moment(text).map_err(|bad| bad.into_error("date", text))? {
        Moment::Infinity => Ok(i32::MAX),
        Moment::MinusInfinity => Ok(i32::MIN),
        Moment::At { days, .. } => Ok(days),
    }
}

/// Microseconds since 2000-01-01 of a timestamp of type `ty`.
pub(super) fn parse_timestamp(text: &str, ty: Type, zone: Option<&Zone>) -> Result<i64, SqlError> {
    let with_zone = matches!(ty, Type::Timestamptz(_));
    let name = if with_zone {
        "timestamp with time zone"
    } else {
        "timestamp"
    };
    let moment = parse_moment(text).map_err(|bad| bad.into_error(name, text))?;
    let Moment::At {
        days,
        micros,
        offset,
    } = moment
    else {
        let infinite = matches!(moment, Moment::Infinity);
        return Ok(if infinite { i64::MAX } else { i64::MIN });
    };
    let own = || {
        let local = join_timestamp(days, micros);
        zone.zip(local)
            .map_or(0, |(zone, local)| zone.offset_of_local(local))
    };
    let shift = if with_zone {
        offset.unwrap_or_else(own) * MICROS_PER_SECOND
    } else {
        0
    };
    join_timestamp(days, micros - shift).ok_or_else(|| BadTime::Range.into_error(name, text))
}

/// Microseconds since midnight of a time. A date before it and a zone behind it are ignored.
pub(super) fn parse_time(text: &str) -> Result<i64, SqlError> {
    let fields = Fields {
        clock: true,
        ..Fields::default()
    };
    let read = scan(text, fields).and_then(Fields::finish_clock);
    read.map_err(|bad| bad.into_error("time", text))
}

/// As [`parse_time`], with its zone. A text without one is a time in `zone`, if that has one
/// offset; none is UTC.
pub(super) fn parse_timetz(text: &str, zone: Option<&Zone>) -> Result<Timetz, SqlError> {
    const NAME: &str = "time with time zone";
    let fields = Fields {
        clock: true,
        ..Fields::default()
    };
    let fields = scan(text, fields).map_err(|bad| bad.into_error(NAME, text))?;
    let (offset, named, date) = (fields.offset, fields.zone.clone(), fields.date);
    let micros = fields.finish_clock();
    let micros = micros.map_err(|bad| bad.into_error(NAME, text))?;
    let at = |(year, month, day): (i32, u32, u32)| {
        let days = days_from_ymd(year, month, day);
        days.and_then(|days| join_timestamp(days, micros))
    };
    let east = match (offset, named.as_ref().or(zone), date.and_then(at)) {
        (Some(offset), _, _) => offset,
        (None, None, _) => 0,
        (None, Some(zone), Some(local)) => zone.offset_of_local(local),
        (None, Some(zone), None) => steady_offset(zone)?,
    };
    let west = i32::try_from(-east).ok();
    west.and_then(|west| Timetz::new(micros, west))
        .ok_or_else(|| BadTime::ZoneRange.into_error(NAME, text))
}

/// The offset of a zone that has the same one all the time.
fn steady_offset(zone: &Zone) -> Result<i64, SqlError> {
    const SAMPLES: i64 = 80;
    let every = 91 * MICROS_PER_DAY;
    let mut offsets = (0..SAMPLES).map(|at| zone.offset_at((at + 80) * every));
    let first = offsets.next().unwrap_or(0);
    if offsets.all(|offset| offset == first) {
        return Ok(first);
    }
    let message = "a time with time zone without its offset, in a zone with several";
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .hint("Write the offset behind the time, for example 10:00+02."))
}

/// Whether a text of a time tells its zone, or is none.
pub(super) fn names_offset(text: &str) -> bool {
    let fields = Fields {
        clock: true,
        ..Fields::default()
    };
    let read = scan(text, fields);
    read.map_or(true, |fields| {
        fields.offset.is_some() || fields.zone.is_some()
    })
}

/// Whether a text tells the zone of its moment, or is none.
pub(super) fn names_zone(text: &str) -> bool {
    !matches!(parse_moment(text), Ok(Moment::At { offset: None, .. }))
}

/// The fields of a date and time while they are collected.
#[derive(Default)]
struct Fields {
    /// Year, month, day as read; the year is not yet that of an era.
    date: Option<(i32, u32, u32)>,
    /// A month that was given by name.
    month: Option<u32>,
    /// Numbers that stand alone, with their count of digits.
    numbers: Vec<(u32, usize)>,
    /// Microseconds of the day.
    time: Option<i64>,
    /// Seconds east of UTC.
    offset: Option<i64>,
    /// The zone, if it was given by name.
    zone: Option<Zone>,
    afternoon: Option<bool>,
    before_christ: bool,
    whole: Option<Moment>,
    /// Only a time is wanted: numbers that stand alone are times.
    clock: bool,
}

fn parse_moment(text: &str) -> Result<Moment, BadTime> {
    scan(text, Fields::default()).and_then(Fields::finish)
}

fn scan(text: &str, mut fields: Fields) -> Result<Fields, BadTime> {
    let mut scanner = Scanner { rest: trim(text) };
    while let Some(first) = scanner.rest.bytes().next() {
        match first {
            b' ' | b'\t' | b'\n' | b'\r' | b',' => scanner.skip(1),
            b'0'..=b'9' => scanner.number(&mut fields)?,
            b'+' | b'-' => scanner.sign(&mut fields)?,
            b'a'..=b'z' | b'A'..=b'Z' => scanner.word(&mut fields)?,
            _ => return Err(BadTime::Syntax),
        }
    }
    Ok(fields)
}

/// The part of the text that is still to be read.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn skip(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) -> &'a str {
        let end = self
            .rest
            .bytes()
            .position(|byte| !keep(byte))
            .unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn digits(&mut self) -> Result<(u32, usize), BadTime> {
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() {
            return Err(BadTime::Syntax);
        }
        // No field is longer than YYYYMMDD, so sums of fields cannot overflow.
        let value = digits.parse().ok().filter(|value| *value <= 99_999_999);
        value
            .map(|value| (value, digits.len()))
            .ok_or(BadTime::Field)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.rest.as_bytes().first() == Some(&byte);
        if found {
            self.skip(1);
        }
        found
    }

    /// A time, a date, or a number that stands alone.
    fn number(&mut self, fields: &mut Fields) -> Result<(), BadTime> {
        let start = self.rest;
        let (value, count) = self.digits()?;
        match self.rest.as_bytes().first() {
            Some(b':') => {
                self.skip(1);
                self.time(value, fields)
            }
            // Six digits are a time, with the offset of a zone behind it.
            Some(separator @ (b'-' | b'/'))
                if fields.date.is_none() && !(fields.clock && count == 6) =>
            {
                self.skip(1);
                self.date(value, count, *separator, fields)
            }
            _ if fields.clock && fields.time.is_none() && count == 4 => {
                fields.set_time(value / 100, value % 100, 0, 0)
            }
            _ if !fields.clock && count == 8 && fields.date.is_none() => {
                fields.set_date(value as i32 / 10_000, value / 100 % 100, value % 100)
            }
            _ if count == 6 && (fields.clock || fields.date.is_some()) && fields.time.is_none() => {
                self.rest = &start[6..];
                fields.set_time(
                    value / 10_000,
                    value / 100 % 100,
                    value % 100,
                    self.fraction()?,
                )
            }
            _ => {
                fields.numbers.push((value, count));
                if fields.numbers.len() > 2 {
                    Err(BadTime::Syntax)
                } else {
                    Ok(())
                }
            }
        }
    }

    /// The rest of a date whose first number was read.
    fn date(
        &mut self,
        first: u32,
        count: usize,
        separator: u8,
        fields: &mut Fields,
    ) -> Result<(), BadTime> {
        let named = self.take_while(|byte| byte.is_ascii_alphabetic());
        let (second, is_named) = if named.is_empty() {
            (self.digits()?.0, false)
        } else {
            (month_of_name(named).ok_or(BadTime::Syntax)?, true)
        };
        if !self.eat(separator) {
            return Err(BadTime::Syntax);
        }
        let (third, third_count) = self.digits()?;
        if count >= 3 {
            fields.set_date(first as i32, second, third)
        } else if is_named {
            fields.set_date(full_year(third, third_count), second, first)
        } else {
            fields.set_date(full_year(third, third_count), first, second)
        }
    }

    /// The rest of a time whose hour and colon were read.
    fn time(&mut self, hour: u32, fields: &mut Fields) -> Result<(), BadTime> {
        let minute = match self.rest.bytes().next() {
            Some(b'0'..=b'9') => self.digits()?.0,
            // "10:" is 10:00, as in PostgreSQL.
            _ => 0,
        };
        let (mut second, mut fraction) = (0, 0);
        if self.eat(b':') {
            second = self.digits()?.0;
            fraction = self.fraction()?;
        }
        fields.set_time(hour, minute, second, fraction)
    }

    /// A fraction of a second in microseconds, rounded; 0 if there is none.
    fn fraction(&mut self) -> Result<i64, BadTime> {
        if !self.eat(b'.') {
            return Ok(0);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit()).as_bytes();
        let digit = |i: usize| digits.get(i).map_or(0, |digit| i64::from(digit - b'0'));
        let micros = (0..6).fold(0, |sum, i| sum * 10 + digit(i));
        Ok(micros + i64::from(digit(6) >= 5))
    }

    /// An offset from UTC: `+2`, `+02`, `+0230`, `+02:30`, `+02:30:00`.
    fn sign(&mut self, fields: &mut Fields) -> Result<(), BadTime> {
        let negative = self.rest.starts_with('-');
        self.skip(1);
        if fields.time.is_none() && fields.date.is_none() {
            let word = self.take_while(|byte| byte.is_ascii_alphabetic());
            fields.whole = match word.eq_ignore_ascii_case("infinity") {
                true if negative => Some(Moment::MinusInfinity),
                true => Some(Moment::Infinity),
                false => return Err(BadTime::Syntax),
            };
            return Ok(());
        }
        let (value, count) = self.digits()?;
        let (hours, mut minutes, mut seconds) = if count > 2 {
            (value / 100, value % 100, 0)
        } else {
            (value, 0, 0)
        };
        if count <= 2 && self.eat(b':') {
            minutes = self.digits()?.0;
            if self.eat(b':') {
                seconds = self.digits()?.0;
            }
        }
        if hours > 15 || minutes > 59 || seconds > 59 {
            return Err(BadTime::ZoneRange);
        }
        let offset = i64::from(hours * 3600 + minutes * 60 + seconds);
        fields.set_offset(if negative { -offset } else { offset })
    }

    fn word(&mut self, fields: &mut Fields) -> Result<(), BadTime> {
        let word =
            self.take_while(|byte| byte.is_ascii_alphabetic() || byte == b'/' || byte == b'_');
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "t" if (fields.clock || fields.date.is_some()) && fields.time.is_none() => Ok(()),
            "allballs" if fields.clock => {
                fields.set_time(0, 0, 0, 0)?;
                fields.set_offset(0)
            }
            "am" | "pm" => {
                fields.afternoon = Some(lower == "pm");
                Ok(())
            }
            "bc" | "ad" => {
                fields.before_christ = lower == "bc";
                Ok(())
            }
            "infinity" => {
                fields.whole = Some(Moment::Infinity);
                Ok(())
            }
            "epoch" => {
                fields.whole = Some(Moment::At {
                    days: -UNIX_EPOCH_DAYS,
                    micros: 0,
                    offset: Some(0),
                });
                Ok(())
            }
            _ => {
                if let Some(month) = month_of_name(&lower) {
                    return match fields.month.replace(month) {
                        Some(_) => Err(BadTime::Syntax),
                        None => Ok(()),
                    };
                }
                if is_weekday(&lower) && !fields.clock {
                    return Ok(());
                }
                if let Some(offset) = zone::abbreviation(&lower) {
                    return fields.set_offset(offset);
                }
                self.zone(lower, fields)
            }
        }
    }
}

impl Scanner<'_> {
    /// A zone by name, of which `word` is the beginning.
    fn zone(&mut self, mut word: String, fields: &mut Fields) -> Result<(), BadTime> {
        if word.contains('/') {
            word.push_str(self.take_while(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'+')
            }));
        }
        match Zone::named(&word) {
            Some(_) if fields.offset.is_some() || fields.zone.is_some() => Err(BadTime::Syntax),
            Some(zone) => {
                fields.zone = Some(zone);
                Ok(())
            }
            None if fields.time.is_some() => Err(BadTime::UnknownZone(word)),
            None => Err(BadTime::Syntax),
        }
    }
}

impl Fields {
    fn set_date(&mut self, year: i32, month: u32, day: u32) -> Result<(), BadTime> {
        match self.date.replace((year, month, day)) {
            Some(_) => Err(BadTime::Syntax),
            None => Ok(()),
        }
    }

    fn set_time(&mut self, h: u32, m: u32, s: u32, fraction: i64) -> Result<(), BadTime> {
        let whole_day = h == 24 && m == 0 && s == 0 && fraction == 0;
        if (h > 23 && !whole_day) || m > 59 || s > 60 {
            return Err(BadTime::Field);
        }
        let micros = i64::from(h) * MICROS_PER_HOUR
            + i64::from(m) * MICROS_PER_MINUTE
            + i64::from(s) * MICROS_PER_SECOND
            + fraction;
        match self.time.replace(micros) {
            Some(_) => Err(BadTime::Syntax),
            None => Ok(()),
        }
    }

    fn set_offset(&mut self, offset: i64) -> Result<(), BadTime> {
        if self.zone.is_some() {
            return Err(BadTime::Syntax);
        }
        match self.offset.replace(offset) {
            Some(_) => Err(BadTime::Syntax),
            None => Ok(()),
        }
    }

    /// Microseconds since midnight.
    fn finish_clock(self) -> Result<i64, BadTime> {
        let more = self.whole.is_some() || self.month.is_some() || !self.numbers.is_empty();
        // The offset of a zone by name is that of a day.
        let undated = self.zone.is_some() && self.date.is_none();
        let Some(time) = self.time.filter(|_| !more && !undated) else {
            return Err(BadTime::Syntax);
        };
        if let Some((year, month, day)) = self.date
            && (year == 0
                || !(1..=12).contains(&month)
                || !(1..=days_in_month(year, month)).contains(&day))
        {
            return Err(BadTime::Field);
        }
        let time = match self.afternoon {
            Some(_) if time >= 13 * MICROS_PER_HOUR => return Err(BadTime::Field),
            Some(afternoon) => {
                let noon = if afternoon { 12 * MICROS_PER_HOUR } else { 0 };
                time % (12 * MICROS_PER_HOUR) + noon
            }
            None => time,
        };
        Some(time)
            .filter(|time| is_time(*time))
            .ok_or(BadTime::Field)
    }

    fn finish(mut self) -> Result<Moment, BadTime> {
        if let Some(whole) = self.whole.take() {
            let alone = self.date.is_none() && self.time.is_none() && self.numbers.is_empty();
            return if alone {
                Ok(whole)
            } else {
                Err(BadTime::Syntax)
            };
        }
        if let (Some(month), &[a, b]) = (self.month, self.numbers.as_slice()) {
            // The number with more than two digits is the year, otherwise the second one.
            let (day, year) = if a.1 > 2 { (b, a) } else { (a, b) };
            self.set_date(full_year(year.0, year.1), month, day.0)?;
        } else if self.month.is_some() || !self.numbers.is_empty() {
            return Err(BadTime::Syntax);
        }
        let (mut year, month, day) = self.date.ok_or(BadTime::Syntax)?;
        if year == 0 || !(1..=12).contains(&month) || day == 0 {
            return Err(BadTime::Field);
        }
        if self.before_christ {
            year = 1 - year;
        }
        if day > days_in_month(year, month) {
            return Err(BadTime::Field);
        }
        let days = days_from_ymd(year, month, day).ok_or(BadTime::Range)?;
        let mut micros = self.time.unwrap_or(0);
        if let (Some(afternoon), Some(_)) = (self.afternoon, self.time) {
            let hour = micros / MICROS_PER_HOUR;
            if hour > 12 {
                return Err(BadTime::Field);
            }
            micros =
                micros % (12 * MICROS_PER_HOUR) + if afternoon { 12 * MICROS_PER_HOUR } else { 0 };
        }
        Ok(Moment::At {
            days,
            micros,
            offset: self.offset.or_else(|| self.offset_by_name(days, micros)),
        })
    }

    /// Seconds east of UTC of the zone that was named, at that local time.
    fn offset_by_name(&self, days: i32, micros: i64) -> Option<i64> {
        let local = join_timestamp(days, micros);
        let zone = self.zone.as_ref()?;
        Some(local.map_or(0, |local| zone.offset_of_local(local)))
    }
}

/// Two digits stand for 1970 to 2069.
fn full_year(value: u32, digits: usize) -> i32 {
    let century = match value {
        _ if digits > 2 => 0,
        0..70 => 2000,
        _ => 1900,
    };
    i32::try_from(value).unwrap_or(i32::MAX - century) + century
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// The month of a full or three-letter name, or `sept`.
fn month_of_name(word: &str) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    let at = MONTHS
        .iter()
        .position(|name| *name == word || name[..3] == word);
    at.or((word == "sept").then_some(8)).map(|at| at as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    WEEKDAYS
        .iter()
        .any(|name| *name == word || name[..3] == *word)
}

/// Appends at least `width` digits.
fn put_padded(mut value: u32, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 10];
    let mut start = digits.len();
    while value > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends the day without its era; returns whether it is before Christ.
fn put_day(days: i32, out: &mut Vec<u8>) -> bool {
    let (year, month, day) = ymd_from_days(days);
    let before_christ = year <= 0;
    let shown = if before_christ { 1 - year } else { year };
    put_padded(shown.unsigned_abs(), 4, out);
    out.push(b'-');
    put_padded(month, 2, out);
    out.push(b'-');
    put_padded(day, 2, out);
    before_christ
}

pub(super) fn format_date(days: i32, out: &mut Vec<u8>) {
    match days {
        i32::MIN => out.extend_from_slice(b"-infinity"),
        i32::MAX => out.extend_from_slice(b"infinity"),
        _ => {
            debug_assert!(days <= DATE_MAX, "dates are checked when they are made");
            if put_day(days, out) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

pub(super) fn format_time(micros: i64, out: &mut Vec<u8>) {
    debug_assert!(is_time(micros), "times are checked when they are made");
    put_time(micros.clamp(0, MICROS_PER_DAY), out);
}

pub(super) fn format_timetz(value: Timetz, out: &mut Vec<u8>) {
    format_time(value.micros, out);
    put_offset(-i64::from(value.west), out);
}

pub(super) fn format_timestamp(micros: i64, out: &mut Vec<u8>) {
    put_moment(micros, None, out);
}

/// Appends a moment as the clocks of a zone show it; none is UTC.
pub(super) fn format_moment(micros: i64, zone: Option<&Zone>, out: &mut Vec<u8>) {
    let finite = micros != i64::MIN && micros != i64::MAX;
    let offset = match zone {
        Some(zone) if finite => zone.offset_at(micros),
        _ => 0,
    };
    // Far from the ends of the range, where offsets are hours.
    let local = if finite {
        micros.saturating_add(offset * MICROS_PER_SECOND)
    } else {
        micros
    };
    put_moment(local, Some(offset), out);
}

/// Appends a time of a clock, with the clock's offset in seconds east of UTC.
fn put_moment(micros: i64, offset: Option<i64>, out: &mut Vec<u8>) {
    match micros {
        i64::MIN => return out.extend_from_slice(b"-infinity"),
        i64::MAX => return out.extend_from_slice(b"infinity"),
        _ => {}
    }
    let (days, micros) = split_timestamp(micros);
    let before_christ = put_day(days, out);
    out.push(b' ');
    put_time(micros, out);
    if let Some(offset) = offset {
        put_offset(offset, out);
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// Appends an offset in seconds east of UTC.
fn put_offset(offset: i64, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let seconds = offset.unsigned_abs() as u32;
    put_padded(seconds / 3_600, 2, out);
    if !seconds.is_multiple_of(3_600) {
        out.push(b':');
        put_padded(seconds / 60 % 60, 2, out);
    }
    if !seconds.is_multiple_of(60) {
        out.push(b':');
        put_padded(seconds % 60, 2, out);
    }
}

/// Appends `HH:MM:SS` and, if there is one, the fraction without trailing zeros. `micros` is not
/// negative; hours beyond 99 take more digits (intervals).
pub(super) fn put_time(micros: i64, out: &mut Vec<u8>) {
    let hours = micros / MICROS_PER_HOUR;
    match u32::try_from(hours) {
        Ok(hours) => put_padded(hours, 2, out),
        Err(_) => put(out, format_args!("{hours}")),
    }
    out.push(b':');
    put_padded((micros / MICROS_PER_MINUTE % 60) as u32, 2, out);
    out.push(b':');
    put_padded((micros / MICROS_PER_SECOND % 60) as u32, 2, out);
    let mut fraction = (micros % MICROS_PER_SECOND) as u32;
    if fraction > 0 {
        let mut width = 6;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        out.push(b'.');
        put_padded(fraction, width, out);
    }
}

const _: () = assert!(MICROS_PER_DAY == 24 * MICROS_PER_HOUR);
