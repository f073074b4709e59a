//! Date and time patterns: their elements, and formatting.

use super::number::{ordinal, roman_digits};
use super::pattern::{begins, quoted};
use base::calendar::{
    MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND, days_from_ymd, split_timestamp, weekday,
    ymd_from_days,
};
use base::datum::Interval;
use base::{SqlError, SqlState};

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The parts of a timestamp or interval.
pub(super) struct Moment {
    /// Days since 2000-01-01; `None` for intervals, which have no calendar.
    days: Option<i32>,
    /// As people count: -1 is 1 BC. Of an interval: its years.
    year: i32,
    /// Of an interval: its months beside the years, of the interval's sign.
    month: i32,
    day: i32,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Seconds east of UTC and short name, if it is a moment in a zone.
    zone: Option<(i64, String)>,
}

impl Moment {
    pub(super) fn of_timestamp(at: i64) -> Moment {
        let (days, micros) = split_timestamp(at);
        let (year, month, day) = ymd_from_days(days);
        let year = if year > 0 { year } else { year - 1 };
        Moment {
            days: Some(days),
            year,
            month: month as i32,
            day: day as i32,
            ..Moment::of_time(micros)
        }
    }

    pub(super) fn in_zone(self, zone: (i64, String)) -> Moment {
        Moment {
            zone: Some(zone),
            ..self
        }
    }

    pub(super) fn of_interval(span: Interval) -> Moment {
        let (year, month) = (span.months / 12, span.months % 12);
        Moment {
            year,
            month,
            day: span.days,
            ..Moment::of_time(span.micros)
        }
    }

    fn of_time(micros: i64) -> Moment {
        Moment {
            days: None,
            year: 0,
            month: 0,
            day: 0,
            hour: micros / MICROS_PER_HOUR,
            minute: micros % MICROS_PER_HOUR / MICROS_PER_MINUTE,
            second: micros % MICROS_PER_MINUTE / MICROS_PER_SECOND,
            micros: micros % MICROS_PER_SECOND,
            zone: None,
        }
    }

    /// Days, which only timestamps have.
    fn calendar(&self) -> Result<i32, SqlError> {
        self.days.ok_or_else(|| {
            SqlError::new(
                SqlState(*b"22007"),
                "invalid format specification for an interval value",
            )
            .hint("Intervals are not tied to specific calendar dates.")
        })
    }
}

/// One element of a pattern.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Element {
    /// A field by its name in upper case, as written, without padding (`FM`), with `TH`.
    Field {
        name: &'static str,
        written: String,
        fill: bool,
        ordinal: Option<bool>,
    },
    /// Quoted text, letters and digits.
    Literal(String),
    /// A blank or a sign.
    Separator(char),
    /// `FX`: what is read is taken exactly from here on.
    Exact,
}

/// Field names; longer ones before those they begin with.
const FIELDS: [&str; 57] = [
    "A.D.", "AD", "A.M.", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
    "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS",
    "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "FX", "FM", "TM", "SP",
];

/// Whether `rest` begins with a field: in capitals or small letters, names of days and months also
/// with a capital in front.
fn is_field(rest: &str, name: &str) -> bool {
    let named = matches!(name, "DAY" | "DY" | "MONTH" | "MON");
    begins(rest, name) || named && rest.starts_with(&name[..1]) && begins(&rest[1..], &name[1..])
}

/// Whether a character separates values: neither letter nor digit.
pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_whitespace() || c.is_ascii_punctuation()
}

/// Cuts a pattern into elements.
pub(super) fn read(pattern: &str) -> Vec<Element> {
    let mut found = Vec::new();
    let mut rest = pattern;
    let mut fill = false;
    while let Some(first) = rest.chars().next() {
        if let Some((text, used)) = quoted(rest) {
            found.push(Element::Literal(text));
            rest = &rest[used..];
            fill = false;
            continue;
        }
        let name = FIELDS.iter().find(|name| is_field(rest, name));
        match name {
            Some(&"FM") => {
                fill = true;
                rest = &rest[2..];
            }
            // Names in the session's language, which is always one, are not padded.
            Some(&"TM") => {
                rest = &rest[2..];
                let named = ["DAY", "MONTH"].iter().any(|name| is_field(rest, name));
                fill |= named;
            }
            Some(&"FX") => {
                found.push(Element::Exact);
                rest = &rest[2..];
            }
            Some(&"SP") => rest = &rest[2..],
            Some(name) => {
                let written = rest[..name.len()].to_string();
                rest = &rest[name.len()..];
                let ordinal = match rest.get(..2) {
                    Some("TH") => Some(true),
                    Some("th") => Some(false),
                    _ => None,
                };
                if ordinal.is_some() {
                    rest = &rest[2..];
                }
                found.push(Element::Field {
                    name,
                    written,
                    fill,
                    ordinal,
                });
                fill = false;
            }
            None => {
                // `FM` is for the field right behind it.
                fill = false;
                found.push(match is_separator(first) {
                    true => Element::Separator(first),
                    false => Element::Literal(first.to_string()),
                });
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    found
}

/// Formats a timestamp or interval.
pub(super) fn format(moment: &Moment, pattern: &str) -> Result<String, SqlError> {
    let mut out = String::new();
    for element in read(pattern) {
        match element {
            Element::Literal(text) => out.push_str(&text),
            Element::Separator(sign) => out.push(sign),
            Element::Exact => {}
            Element::Field {
                name,
                written,
                fill,
                ordinal: suffix,
            } => {
                let text = field(moment, name, &written, fill)?;
                out.push_str(&text);
                let zone = matches!(name, "OF" | "TZ" | "TZH" | "TZM");
                let counts = !zone && text.ends_with(|c: char| c.is_ascii_digit());
                if let Some(upper) = suffix.filter(|_| counts) {
                    let suffix = ordinal(text.as_bytes());
                    out.push_str(&if upper {
                        suffix.to_uppercase()
                    } else {
                        suffix.to_string()
                    });
                }
            }
        }
    }
    Ok(out)
}

/// `name` in the letter case in which the field is written, padded to `width` unless `fill`.
fn cased(name: &str, written: &str, width: usize, fill: bool) -> String {
    let text = if written.chars().all(|c| !c.is_lowercase()) {
        name.to_uppercase()
    } else if written.starts_with(char::is_lowercase) {
        name.to_lowercase()
    } else {
        name.to_string()
    };
    if fill {
        text
    } else {
        format!("{text:<width$}")
    }
}

/// The quarter of a month from 1; none without one.
fn quarter(month: i32) -> String {
    match month {
        0 => String::new(),
        _ => ((month - 1) / 3 + 1).to_string(),
    }
}

/// The first digits of the microseconds of a second; a sign counts for the width, as in PostgreSQL.
fn fraction_of(micros: i64, digits: u32) -> String {
    let (value, width) = (micros / 10_i64.pow(6 - digits), digits as usize);
    format!("{value:0width$}")
}

/// The offset from UTC, or a part of it.
fn offset_field(moment: &Moment, name: &str) -> String {
    let east = moment.zone.as_ref().map_or(0, |(offset, _)| *offset);
    let sign = if east < 0 { '-' } else { '+' };
    let (hours, minutes) = (east.abs() / 3_600, east.abs() / 60 % 60);
    match name {
        "TZM" => format!("{minutes:02}"),
        "OF" if minutes != 0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}"),
    }
}

/// The century of a year; years before Christ are negative.
fn century(year: i64) -> i64 {
    if year > 0 {
        (year + 99) / 100
    } else {
        (year - 99) / 100
    }
}

/// A month in Roman digits; an interval of whole years has none.
fn roman_month(month: i32) -> String {
    match month {
        0 => String::new(),
        month => roman_digits(month.abs().into()),
    }
}

fn field(moment: &Moment, name: &str, written: &str, fill: bool) -> Result<String, SqlError> {
    let number = |value: i64, width: usize| {
        if fill {
            value.to_string()
        } else {
            // A minus sign does not count as a digit.
            let width = width + usize::from(value < 0);
            format!("{value:0width$}")
        }
    };
    let year = i64::from(moment.year);
    let letters = |text: &str| {
        if written.chars().any(char::is_lowercase) {
            text.to_lowercase()
        } else {
            text.to_string()
        }
    };
    let hour12 = match moment.hour % 12 {
        0 => 12,
        hour => hour,
    };
    let fraction = |digits| fraction_of(moment.micros, digits);
    Ok(match name {
        "HH" | "HH12" => number(hour12, 2),
        "HH24" => number(moment.hour, 2),
        "MI" => number(moment.minute, 2),
        "SS" => number(moment.second, 2),
        "MS" => fraction(3),
        "US" => fraction(6),
        "FF1" => fraction(1),
        "FF2" => fraction(2),
        "FF3" => fraction(3),
        "FF4" => fraction(4),
        "FF5" => fraction(5),
        "FF6" => fraction(6),
        "SSSS" | "SSSSS" => (moment.hour * 3600 + moment.minute * 60 + moment.second).to_string(),
        "AM" | "PM" => letters(if moment.hour % 24 >= 12 { "PM" } else { "AM" }),
        "A.M." | "P.M." => letters(if moment.hour % 24 >= 12 {
            "P.M."
        } else {
            "A.M."
        }),
        "Y,YYY" => format!("{},{:03}", year.abs() / 1000, year.abs() % 1000),
        "YYYY" => number(shown(moment, year), 4),
        "YYY" => number(shown(moment, year) % 1000, 3),
        "YY" => number(shown(moment, year) % 100, 2),
        "Y" => number(shown(moment, year) % 10, 1),
        "MM" => number(moment.month.into(), 2),
        "DD" => format!("{:0w$}", moment.day, w = 2 * usize::from(!fill)),
        "BC" | "AD" => letters(if year < 0 { "BC" } else { "AD" }),
        "B.C." | "A.D." => letters(if year < 0 { "B.C." } else { "A.D." }),
        "TZ" if moment.days.is_some() => letters(moment.zone.as_ref().map_or("", |zone| &zone.1)),
        "TZH" | "OF" | "TZM" => offset_field(moment, name),
        "Q" => quarter(moment.month),
        "CC" => number(century(year), 2),
        "RM" => cased(&roman_month(moment.month), written, 4, fill),
        _ => return calendar_field(moment, name, written, fill),
    })
}

/// A year as patterns show it: without its sign, since BC says that.
fn shown(moment: &Moment, year: i64) -> i64 {
    if moment.days.is_some() {
        year.abs()
    } else {
        year
    }
}

/// Fields that only dates have.
fn calendar_field(
    moment: &Moment,
    name: &str,
    written: &str,
    fill: bool,
) -> Result<String, SqlError> {
    let days = moment.calendar()?;
    let (year, month, _) = ymd_from_days(days);
    let day_of_year = days - days_from_ymd(year, 1, 1).unwrap_or(days) + 1;
    let (iso_year, iso_week) = crate::datetime::iso_week(days);
    let iso_year = if iso_year > 0 { iso_year } else { 1 - iso_year };
    let iso_weekday = (weekday(days) as i32 + 6) % 7 + 1;
    let number = |value: i32, width: usize| {
        if fill {
            value.to_string()
        } else {
            format!("{value:0width$}")
        }
    };
    Ok(match name {
        "MONTH" => cased(MONTHS[month as usize - 1], written, 9, fill),
        "MON" => cased(&MONTHS[month as usize - 1][..3], written, 3, fill),
        "DAY" => cased(DAYS[weekday(days) as usize], written, 9, fill),
        "DY" => cased(&DAYS[weekday(days) as usize][..3], written, 3, fill),
        "DDD" => number(day_of_year, 3),
        "D" => (weekday(days) + 1).to_string(),
        "ID" => iso_weekday.to_string(),
        "IDDD" => number((iso_week - 1) * 7 + iso_weekday, 3),
        "W" => ((moment.day - 1) / 7 + 1).to_string(),
        "WW" => number((day_of_year - 1) / 7 + 1, 2),
        "IW" => number(iso_week, 2),
        "IYYY" => number(iso_year, 4),
        "IYY" => number(iso_year % 1000, 3),
        "IY" => number(iso_year % 100, 2),
        "I" => (iso_year % 10).to_string(),
        "J" => (i64::from(days) + 2_451_545).to_string(),
        other => {
            let message = format!("format element \"{other}\" is not supported");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    })
}
