//! `to_timestamp` and `to_date`: text read by a pattern.

use super::moment::{DAYS, Element, MONTHS, read};
use base::calendar::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use base::{SqlError, SqlState};

/// What has been read so far; fields that are missing keep the first value they can have.
struct Fields {
    year: Option<i64>,
    before_christ: bool,
    month: u32,
    day: u32,
    day_of_year: Option<i64>,
    hour: i64,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    second_of_day: Option<i64>,
    julian: Option<i64>,
    epoch_offset: i64,
}

/// Where in the text the reader is.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Reads up to `width` digits, with a sign.
    fn number(&mut self, name: &str, width: usize) -> Result<(i64, usize), SqlError> {
        self.skip_blanks();
        let negative = self.rest.starts_with('-');
        let digits = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        let length = digits
            .bytes()
            .take(width)
            .take_while(u8::is_ascii_digit)
            .count();
        let value: i64 = digits[..length].parse().map_err(|_| {
            let shown: String = self.rest.chars().take(width).collect();
            let message = format!("invalid value \"{shown}\" for \"{name}\"");
            SqlError::new(SqlState::DATETIME_FORMAT, message).detail("Value must be an integer.")
        })?;
        self.rest = &digits[length..];
        Ok((if negative { -value } else { value }, length))
    }

    /// Reads one of `words`, or at least its first three letters where `short`.
    fn word(&mut self, name: &str, words: &[&str], short: bool) -> Result<usize, SqlError> {
        self.skip_blanks();
        for (i, word) in words.iter().enumerate() {
            let wanted = if short { &word[..3] } else { word };
            if self
                .rest
                .get(..wanted.len())
                .is_some_and(|s| s.eq_ignore_ascii_case(wanted))
            {
                self.rest = &self.rest[wanted.len()..];
                return Ok(i);
            }
        }
        let shown: String = self.rest.chars().take(if short { 3 } else { 9 }).collect();
        let message = format!("invalid value \"{shown}\" for \"{name}\"");
        Err(SqlError::new(SqlState::DATETIME_FORMAT, message)
            .detail("The given value did not match any of the allowed values for this field."))
    }
}

/// Reads a timestamp by a pattern.
///
/// # Errors
/// 22007 if the text does not follow the pattern, 22008 for fields out of range, 0A000 for
/// elements that only make sense for output.
pub(in super::super) fn parse_timestamp(text: &str, pattern: &str) -> Result<i64, SqlError> {
    let mut fields = Fields {
        year: None,
        before_christ: false,
        month: 1,
        day: 1,
        day_of_year: None,
        hour: 0,
        afternoon: None,
        minute: 0,
        second: 0,
        micros: 0,
        second_of_day: None,
        julian: None,
        epoch_offset: 0,
    };
    let mut reader = Reader { rest: text };
    let elements = read(pattern);
    for (i, element) in elements.iter().enumerate() {
        match element {
            // A separator of the pattern stands for any separator of the text.
            Element::Literal(literal) => {
                for _ in literal.chars() {
                    let Some(c) = reader.rest.chars().next() else {
                        break;
                    };
                    if !c.is_ascii_digit() {
                        reader.rest = &reader.rest[c.len_utf8()..];
                    }
                }
            }
            Element::Field { name, .. } => {
                if reader.rest.trim_start().is_empty() {
                    break;
                }
                // Digits of the next field may follow directly: then widths are exact.
                let tight = matches!(elements.get(i + 1), Some(Element::Field { .. }));
                read_field(&mut fields, &mut reader, name, tight)?;
            }
        }
    }
    fields.timestamp(text)
}

fn read_field(
    fields: &mut Fields,
    reader: &mut Reader<'_>,
    name: &'static str,
    tight: bool,
) -> Result<(), SqlError> {
    // Year numbers may be longer than their pattern where something else follows.
    let loose = |width: usize| if tight { width } else { 9 };
    match name {
        "YYYY" => fields.year = Some(reader.number(name, loose(4))?.0),
        "YYY" | "YY" | "Y" => {
            let (value, digits) = reader.number(name, name.len())?;
            // Short years are those nearest to 2020.
            fields.year = Some(match digits {
                1 | 2 if value < 70 => value + 2000,
                1 | 2 => value + 1900,
                _ if value < 520 => value + 2000,
                _ => value + 1000,
            });
        }
        "Y,YYY" => {
            let thousands = reader.number(name, 3)?.0;
            reader.rest = reader.rest.strip_prefix(',').unwrap_or(reader.rest);
            fields.year = Some(thousands * 1000 + reader.number(name, 3)?.0);
        }
        "BC" | "AD" => fields.before_christ = reader.word(name, &["AD", "BC"], false)? == 1,
        "B.C." | "A.D." => {
            fields.before_christ = reader.word(name, &["A.D.", "B.C."], false)? == 1;
        }
        "MM" => fields.month = bounded(reader.number(name, 2)?.0)?,
        "MONTH" => fields.month = reader.word(name, &MONTHS, false)? as u32 + 1,
        "MON" => fields.month = reader.word(name, &MONTHS, true)? as u32 + 1,
        "DAY" => {
            reader.word(name, &DAYS, false)?;
        }
        "DY" => {
            reader.word(name, &DAYS, true)?;
        }
        "D" | "ID" | "Q" => {
            reader.number(name, 1)?;
        }
        "DD" => fields.day = bounded(reader.number(name, 2)?.0)?,
        "DDD" => fields.day_of_year = Some(reader.number(name, 3)?.0),
        "J" => fields.julian = Some(reader.number(name, 9)?.0),
        "HH24" => fields.hour = reader.number(name, 2)?.0,
        "HH" | "HH12" => {
            fields.hour = reader.number(name, 2)?.0;
            if !(1..=12).contains(&fields.hour) {
                let message = format!("hour \"{}\" is invalid for the 12-hour clock", fields.hour);
                return Err(SqlError::new(SqlState::DATETIME_FORMAT, message)
                    .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            fields.afternoon.get_or_insert(false);
        }
        "AM" | "PM" => fields.afternoon = Some(reader.word(name, &["AM", "PM"], false)? == 1),
        "A.M." | "P.M." => {
            fields.afternoon = Some(reader.word(name, &["A.M.", "P.M."], false)? == 1);
        }
        "MI" => fields.minute = reader.number(name, 2)?.0,
        "SS" => fields.second = reader.number(name, 2)?.0,
        "SSSS" | "SSSSS" => fields.second_of_day = Some(reader.number(name, 5)?.0),
        "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            let width = match name.as_bytes() {
                b"MS" => 3,
                b"US" => 6,
                other => usize::from(other[2] - b'0'),
            };
            let (value, digits) = reader.number(name, width)?;
            fields.micros = value * 10i64.pow(6 - digits.min(6) as u32);
        }
        "TZH" => fields.epoch_offset += reader.number(name, 3)?.0 * MICROS_PER_HOUR,
        "TZM" => fields.epoch_offset += reader.number(name, 2)?.0 * MICROS_PER_MINUTE,
        other => {
            let message = format!("formatting field \"{other}\" is only supported in to_char");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    }
    Ok(())
}

fn bounded(value: i64) -> Result<u32, SqlError> {
    u32::try_from(value).map_err(|_| {
        SqlError::new(
            SqlState::DATETIME_OVERFLOW,
            "date/time field value out of range",
        )
    })
}

impl Fields {
    fn timestamp(self, text: &str) -> Result<i64, SqlError> {
        let out_of_range = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            SqlError::new(SqlState::DATETIME_OVERFLOW, message)
        };
        let mut hour = self.hour;
        if let Some(afternoon) = self.afternoon {
            hour = hour % 12 + if afternoon { 12 } else { 0 };
        }
        let in_day = (0..24).contains(&hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second);
        if !in_day {
            return Err(out_of_range());
        }
        let micros = match self.second_of_day {
            Some(seconds) => seconds * MICROS_PER_SECOND,
            None => {
                hour * MICROS_PER_HOUR
                    + self.minute * MICROS_PER_MINUTE
                    + self.second * MICROS_PER_SECOND
            }
        } + self.micros;
        // Without a year it is 1 BC, year 0 of the calendar.
        let year = match self.year {
            None => 0,
            Some(year) if self.before_christ || year < 0 => 1 - year.abs(),
            Some(year) => year,
        };
        let year = i32::try_from(year).map_err(|_| out_of_range())?;
        let civil = |month, day| {
            crate::expr::datetime::civil_timestamp(year, month, day, micros)
                .map_err(|_| out_of_range())
        };
        let day = base::calendar::MICROS_PER_DAY;
        let at = if let Some(julian) = self.julian {
            (julian - 2_451_545)
                .checked_mul(day)
                .and_then(|days| days.checked_add(micros))
                .ok_or_else(out_of_range)?
        } else if let Some(number) = self.day_of_year {
            if !(1..=366).contains(&number) {
                return Err(out_of_range());
            }
            civil(1, 1)? + (number - 1) * day
        } else {
            civil(self.month, self.day)?
        };
        at.checked_sub(self.epoch_offset)
            .map(base::calendar::split_timestamp)
            .and_then(|(days, micros)| base::calendar::join_timestamp(days, micros))
            .ok_or_else(out_of_range)
    }
}
