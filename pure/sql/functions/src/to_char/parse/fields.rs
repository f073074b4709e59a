//! The fields of a text that a pattern has read, and the moment that they mean.

use crate::datetime::round_micros;
use base::calendar::{
    MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, days_from_ymd,
    join_timestamp, split_timestamp, weekday, ymd_from_days,
};
use base::{SqlError, SqlState};

/// The Julian day of 2000-01-01.
const JULIAN_2000: i32 = 2_451_545;

/// What a text means.
pub struct Read {
    /// Since 2000-01-01.
    pub(crate) days: i32,
    /// Of the day.
    micros: i64,
    /// Offset of its zone east of UTC in microseconds, if it names one.
    east: Option<i64>,
    /// `FF1` to `FF6`: to how many digits seconds are rounded.
    digits: Option<u8>,
}

impl Read {
    /// Whether the text names a zone.
    pub fn has_zone(&self) -> bool {
        self.east.is_some()
    }

    /// Microseconds since 2000-01-01 of UTC, if the text has a zone, or of some clock.
    ///
    /// # Errors
    /// 22008 outside the supported range.
    pub fn timestamp(&self, text: &str) -> Result<i64, SqlError> {
        let moment = || {
            let at = i64::from(self.days).checked_mul(MICROS_PER_DAY)?;
            let at = at
                .checked_add(self.micros)?
                .checked_sub(self.east.unwrap_or(0))?;
            let at = self
                .digits
                .map_or(at, |digits| round_micros(at, digits.into()));
            let (days, micros) = split_timestamp(at);
            join_timestamp(days, micros)
        };
        moment().ok_or_else(|| {
            let message = format!("timestamp out of range: \"{text}\"");
            SqlError::new(SqlState::DATETIME_OVERFLOW, message)
        })
    }
}

/// How a pattern counts days.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Convention {
    /// By months.
    Gregorian,
    /// By weeks of ISO 8601.
    Weeks,
}

impl Convention {
    /// That of a field, if it has one.
    pub(super) fn of(name: &str) -> Option<Convention> {
        match name {
            "I" | "IY" | "IYY" | "IYYY" | "IW" | "ID" | "IDDD" => Some(Convention::Weeks),
            "YYYY" | "YYY" | "YY" | "Y" | "Y,YYY" | "MM" | "MON" | "MONTH" | "RM" | "DD"
            | "DDD" | "D" | "W" | "WW" => Some(Convention::Gregorian),
            _ => None,
        }
    }
}

/// Whether a field is written in digits.
pub(super) fn is_number(name: &str) -> bool {
    let words = [
        "AD", "A.D.", "BC", "B.C.", "AM", "A.M.", "PM", "P.M.", "DAY", "DY", "MONTH", "MON", "RM",
        "TZ", "TZH", "OF",
    ];
    !words.contains(&name)
}

/// What has been read so far; 0 is a field that is missing, as in PostgreSQL.
#[derive(Default)]
pub(super) struct Fields {
    convention: Option<Convention>,
    pub(super) year: i32,
    century: i32,
    before_christ: bool,
    era_given: bool,
    pub(super) month: i32,
    /// Of the month (IDDD: of the ISO year, as `day_of_year`).
    day: i32,
    day_of_year: i32,
    /// 1 is Sunday.
    pub(super) weekday: i32,
    /// Of the year, or of the ISO year.
    week: i32,
    week_of_month: i32,
    julian: i32,
    pub(super) hour: i32,
    /// `HH12`, AM or PM.
    pub(super) half_day: bool,
    afternoon: bool,
    half_given: bool,
    minute: i32,
    second: i32,
    second_of_day: i32,
    pub(super) millis: i64,
    pub(super) micros: i64,
    pub(super) has_zone: bool,
    pub(super) zone_west: bool,
    pub(super) zone_hours: i32,
    zone_minutes: i32,
    /// Of seconds.
    pub(super) digits: Option<u8>,
}

fn conflict(written: &str) -> SqlError {
    let message = format!("conflicting values for \"{written}\" field in formatting string");
    SqlError::new(SqlState::DATETIME_FORMAT, message)
        .detail("This value contradicts a previous setting for the same field type.")
}

fn out_of_range(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_OVERFLOW, message)
}

impl Fields {
    /// Notes how the pattern counts.
    ///
    /// # Errors
    /// 22007 if it has counted differently before.
    pub(super) fn follow(&mut self, next: Option<Convention>) -> Result<(), SqlError> {
        let before = self.convention;
        self.convention = before.or(next);
        match before.zip(next) {
            Some((before, next)) if before != next => {
                let message = "invalid combination of date conventions";
                let hint = "Do not mix Gregorian and ISO week date conventions in a formatting \
                            template.";
                Err(SqlError::new(SqlState::DATETIME_FORMAT, message).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Sets a field.
    ///
    /// # Errors
    /// 22007 if it has another value already.
    pub(super) fn set<T: Copy + Default + PartialEq>(
        &mut self,
        field: impl FnOnce(&mut Fields) -> &mut T,
        value: T,
        written: &str,
    ) -> Result<(), SqlError> {
        let field = field(self);
        if *field != T::default() && *field != value {
            return Err(conflict(written));
        }
        *field = value;
        Ok(())
    }

    /// AD (0) or BC (1).
    pub(super) fn set_era(&mut self, era: usize, written: &str) -> Result<(), SqlError> {
        let before = era == 1;
        if self.era_given && self.before_christ != before {
            return Err(conflict(written));
        }
        (self.era_given, self.before_christ) = (true, before);
        Ok(())
    }

    /// AM (0) or PM (1).
    pub(super) fn set_half(&mut self, half: usize, written: &str) -> Result<(), SqlError> {
        let afternoon = half == 1;
        if self.half_given && self.afternoon != afternoon {
            return Err(conflict(written));
        }
        (self.half_given, self.half_day, self.afternoon) = (true, true, afternoon);
        Ok(())
    }

    /// A field that is a number and nothing else.
    pub(super) fn number_mut(&mut self, name: &str) -> &mut i32 {
        match name {
            "CC" => &mut self.century,
            "MM" => &mut self.month,
            "DD" => &mut self.day,
            "DDD" | "IDDD" => &mut self.day_of_year,
            "D" => &mut self.weekday,
            "WW" | "IW" => &mut self.week,
            "W" => &mut self.week_of_month,
            "J" => &mut self.julian,
            "MI" => &mut self.minute,
            "SS" => &mut self.second,
            "SSSS" | "SSSSS" => &mut self.second_of_day,
            "TZM" => &mut self.zone_minutes,
            other => unreachable!("{other} is read elsewhere"),
        }
    }

    /// The moment; `text` is what was read.
    pub(super) fn moment(self, text: &str) -> Result<Read, SqlError> {
        let hour = self.hour_of_day()?;
        Ok(Read {
            days: self.days(text)?,
            micros: self.time_of_day(hour, text)?,
            east: self.zone_micros(text)?,
            digits: self.digits,
        })
    }

    fn hour_of_day(&self) -> Result<i32, SqlError> {
        let hour = match self.hour {
            0 => self.second_of_day / 3_600,
            hour => hour,
        };
        if !self.half_day {
            return Ok(hour);
        }
        if !(1..=12).contains(&hour) {
            let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
            return Err(SqlError::new(SqlState::DATETIME_FORMAT, message)
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
        }
        Ok(hour % 12 + if self.afternoon { 12 } else { 0 })
    }

    fn time_of_day(&self, hour: i32, text: &str) -> Result<i64, SqlError> {
        let whole = self.second_of_day;
        let or_of_day = |part: i32, of_day: i32| if part == 0 { of_day } else { part };
        let minute = or_of_day(self.minute, whole / 60 % 60);
        let second = or_of_day(self.second, whole % 60);
        let fraction = self.millis * 1_000 + self.micros;
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_PER_SECOND).contains(&fraction);
        if !is_time {
            return Err(out_of_range(text));
        }
        Ok(i64::from(hour) * MICROS_PER_HOUR
            + i64::from(minute) * MICROS_PER_MINUTE
            + i64::from(second) * MICROS_PER_SECOND
            + fraction)
    }

    /// The year; 0 is 1 BC, and what a text without a year means.
    fn full_year(&self) -> i32 {
        let era = if self.before_christ { -1 } else { 1 };
        if self.year != 0 {
            let year = self.year.saturating_mul(era);
            return if year < 0 { year + 1 } else { year };
        }
        // A year beyond the range stays beyond it.
        let first_year = |centuries: i32| centuries.saturating_mul(100).saturating_add(1);
        match self.century.saturating_mul(era) {
            0 => 0,
            century @ 1.. => first_year(century - 1),
            century => first_year(century),
        }
    }

    /// Days since 2000-01-01. What comes later in this order has the say: year, Julian day, week,
    /// day and month, day of the year.
    fn days(&self, text: &str) -> Result<i32, SqlError> {
        let range = || out_of_range(text);
        let is_iso = self.convention == Some(Convention::Weeks);
        let (mut year, mut month, mut day) = (self.full_year(), 1, 1);
        let mut day_of_year = self.day_of_year;
        if self.julian != 0 {
            let days = self.julian.checked_sub(JULIAN_2000).ok_or_else(range)?;
            (year, month, day) = date(days);
        }
        match self.week {
            0 => {}
            week if is_iso => {
                let days = day_of_week(year, week, self.weekday).ok_or_else(range)?;
                (year, month, day) = date(days);
            }
            week => day_of_year = first_of_week(week).ok_or_else(range)?,
        }
        match self.week_of_month {
            0 if self.day == 0 => {}
            0 => day = self.day,
            week => day = first_of_week(week).ok_or_else(range)?,
        }
        if self.month != 0 {
            month = self.month;
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && !self.before_christ {
                let message = "cannot calculate day of year without year information";
                return Err(SqlError::new(SqlState::DATETIME_FORMAT, message));
            }
            let new_year = match is_iso {
                true => first_monday(year),
                false => days_from_ymd(year, 1, 1),
            };
            let behind = day_of_year.saturating_sub(1);
            let days = new_year
                .and_then(|first| first.checked_add(behind))
                .ok_or_else(range)?;
            let found = date(days);
            if is_iso {
                (year, month, day) = found;
            } else if found.0 != year {
                return Err(range());
            } else {
                month = if month <= 1 { found.1 } else { month };
                day = if day <= 1 { found.2 } else { day };
            }
        }
        let (month, day) = (u32::try_from(month), u32::try_from(day));
        let (Ok(month), Ok(day)) = (month, day) else {
            return Err(range());
        };
        days_from_ymd(year, month, day).ok_or_else(range)
    }

    /// Offset east of UTC.
    fn zone_micros(&self, text: &str) -> Result<Option<i64>, SqlError> {
        if !self.has_zone {
            return Ok(None);
        }
        if !(0..=15).contains(&self.zone_hours) || !(0..60).contains(&self.zone_minutes) {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(SqlError::new(SqlState(*b"22009"), message));
        }
        let offset = i64::from(self.zone_hours) * MICROS_PER_HOUR
            + i64::from(self.zone_minutes) * MICROS_PER_MINUTE;
        Ok(Some(if self.zone_west { -offset } else { offset }))
    }
}

/// Year, month and day.
fn date(days: i32) -> (i32, i32, i32) {
    let (year, month, day) = ymd_from_days(days);
    (year, month as i32, day as i32)
}

/// The first day of the n-th week of something that begins with its day 1.
fn first_of_week(week: i32) -> Option<i32> {
    week.saturating_sub(1).checked_mul(7)?.checked_add(1)
}

/// A day of a week of ISO 8601: 0 and 2 are its Monday, 1 is Sunday, the last one.
fn day_of_week(year: i32, week: i32, weekday: i32) -> Option<i32> {
    let weeks = week.saturating_sub(1).checked_mul(7)?;
    let day = match weekday {
        0 => 0,
        1 => 6,
        day => day.saturating_sub(2),
    };
    first_monday(year)?.checked_add(weeks)?.checked_add(day)
}

/// The Monday of the first week of an ISO year: the one with 4 January.
fn first_monday(year: i32) -> Option<i32> {
    let fourth = days_from_ymd(year, 1, 4)?;
    Some(fourth - (weekday(fourth) as i32 + 6) % 7)
}
