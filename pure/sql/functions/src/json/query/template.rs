//! Templates of `.datetime()`: what the SQL standard has, and PostgreSQL's strict way to read by
//! them. A text that differs from its template in anything is refused.

use super::walk::{Failure, Outcome};
use base::{SqlError, SqlState};

/// Fields of a template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Field {
    Year,
    Month,
    Day,
    /// 0 to 23
    Hour,
    /// 1 to 12
    HalfDayHour,
    /// `AM` or `PM`, with points or without.
    HalfDay,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    /// A fraction of so many digits.
    Fraction(u8),
    ZoneHour,
    ZoneMinute,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Element {
    Separator(char),
    Literal(char),
    Field(Field, &'static str),
}

/// Names of fields; longer ones before those that they begin with.
const FIELDS: [(&str, Field); 26] = [
    ("YYYY", Field::Year),
    ("MM", Field::Month),
    ("DD", Field::Day),
    ("HH24", Field::Hour),
    ("HH12", Field::HalfDayHour),
    ("HH", Field::HalfDayHour),
    ("MI", Field::Minute),
    ("MS", Field::Millisecond),
    ("SS", Field::Second),
    ("US", Field::Microsecond),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("AM", Field::HalfDay),
    ("PM", Field::HalfDay),
    ("A.M.", Field::HalfDay),
    ("P.M.", Field::HalfDay),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
    // Names in small letters are found by their first letter.
    ("am", Field::HalfDay),
    ("pm", Field::HalfDay),
    ("a.m.", Field::HalfDay),
    ("p.m.", Field::HalfDay),
];

/// Names of PostgreSQL that are refused.
const REFUSED: [&str; 30] = [
    "Y,YYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I", "IDDD", "ID", "IW", "MONTH", "MON", "DAY",
    "DDD", "DY", "D", "SSSSS", "SSSS", "CC", "J", "Q", "WW", "W", "RM", "BC", "AD", "TZ", "OF",
    "FX",
];

/// What was read by a template.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Read {
    pub(super) year: i32,
    pub(super) month: i32,
    pub(super) day: i32,
    pub(super) hour: i32,
    half_day_hour: Option<i32>,
    afternoon: Option<bool>,
    pub(super) minute: i32,
    pub(super) second: i32,
    pub(super) micros: i32,
    /// Digits to which the fraction is rounded.
    pub(super) digits: Option<u8>,
    west: bool,
    zone_hour: i32,
    zone_minute: i32,
    pub(super) is_dated: bool,
    pub(super) is_timed: bool,
    pub(super) is_zoned: bool,
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATETIME_FORMAT, message.into())
}

fn overflow(text: &str) -> SqlError {
    let message = format!("date/time field value out of range: \"{text}\"");
    SqlError::new(SqlState::DATETIME_OVERFLOW, message)
}

fn elements(template: &str) -> Outcome<Vec<Element>> {
    let mut rest = template;
    let mut all = Vec::new();
    while let Some(first) = rest.chars().next() {
        let starts = |name: &str| {
            let start = rest.get(..name.len());
            start.is_some_and(|start| start == name || start == name.to_ascii_lowercase())
        };
        if let Some((name, field)) = FIELDS.iter().find(|(name, _)| starts(name))
            && !REFUSED
                .iter()
                .any(|long| long.len() > name.len() && starts(long))
        {
            all.push(Element::Field(*field, name));
            rest = &rest[name.len()..];
            continue;
        }
        if REFUSED.iter().any(|name| starts(name)) {
            let message = format!("the datetime template \"{template}\" is not supported");
            let error = SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            return Err(Failure::Hard(error.hint(
                "Templates may have YYYY, MM, DD, HH24, HH12, MI, SS, MS, US, FF1 to FF6, AM, \
                 TZH and TZM.",
            )));
        }
        rest = &rest[first.len_utf8()..];
        if first == '"' {
            let end = rest.find('"').unwrap_or(rest.len());
            all.extend(rest[..end].chars().map(Element::Literal));
            rest = rest.get(end + 1..).unwrap_or("");
            continue;
        }
        if !"-./,':; ".contains(first) {
            let message = format!("invalid datetime format separator: \"{first}\"");
            return Err(Failure::Soft(wrong(message)));
        }
        all.push(Element::Separator(first));
    }
    Ok(all)
}

/// Reads a text by a template.
pub(super) fn read(text: &str, template: &str) -> Outcome<Read> {
    let elements = elements(template)?;
    let mut read = Read::default();
    for element in &elements {
        match element {
            Element::Field(Field::Year | Field::Month | Field::Day, _) => read.is_dated = true,
            Element::Field(Field::ZoneHour | Field::ZoneMinute, _) => read.is_zoned = true,
            Element::Field(..) => read.is_timed = true,
            Element::Separator(_) | Element::Literal(_) => {}
        }
    }
    fill(text, &elements, &mut read).map_err(Failure::Soft)?;
    Ok(read)
}

fn fill(text: &str, elements: &[Element], read: &mut Read) -> Result<(), SqlError> {
    let mut rest = text;
    let mut all = elements.iter().enumerate();
    while !rest.is_empty()
        && let Some((i, element)) = all.next()
    {
        match element {
            Element::Separator(wanted) => {
                rest = rest
                    .strip_prefix(*wanted)
                    .ok_or_else(|| wrong(format!("unmatched format separator \"{wanted}\"")))?;
            }
            Element::Literal(wanted) => {
                rest = rest
                    .strip_prefix(*wanted)
                    .ok_or_else(|| wrong(format!("unmatched format character \"{wanted}\"")))?;
            }
            Element::Field(field, name) => {
                // Digits go on as long as they like, unless other digits follow.
                let open = match elements.get(i + 1) {
                    Some(Element::Field(next, _)) => {
                        matches!(next, Field::HalfDay | Field::ZoneHour)
                    }
                    _ => true,
                };
                read.field(*field, name, open, &mut rest)?;
            }
        }
    }
    if all.next().is_some() {
        return Err(wrong("input string is too short for datetime format"));
    }
    if !rest
        .trim_start_matches(|c: char| c.is_ascii_whitespace())
        .is_empty()
    {
        let message = "trailing characters remain in input string after datetime format";
        return Err(wrong(message));
    }
    read.check(text)
}

impl Read {
    fn field(
        &mut self,
        field: Field,
        name: &str,
        open: bool,
        rest: &mut &str,
    ) -> Result<(), SqlError> {
        if field == Field::HalfDay {
            let words = ["A.M.", "P.M.", "AM", "PM"];
            let stands = |word: &&&str| {
                let start = rest.get(..word.len());
                start.is_some_and(|start| start.eq_ignore_ascii_case(word))
            };
            let word = words
                .iter()
                .filter(|word| word.len() == name.len())
                .find(stands);
            let Some(word) = word else {
                let shown = rest.split_ascii_whitespace().next().unwrap_or_default();
                let detail =
                    "The given value did not match any of the allowed values for this field.";
                let message = format!("invalid value \"{shown}\" for \"{name}\"");
                return Err(wrong(message).detail(detail));
            };
            self.afternoon = Some(word.starts_with('P'));
            *rest = &rest[word.len()..];
            return Ok(());
        }
        if field == Field::ZoneHour
            && let Some(sign @ ('+' | '-' | ' ')) = rest.chars().next()
        {
            self.west = sign == '-';
            *rest = &rest[1..];
        }
        let width = match field {
            Field::Year => 4,
            Field::Millisecond => 3,
            Field::Microsecond | Field::Fraction(_) => 6,
            _ => 2,
        };
        let (value, digits) = number(rest, name, width, open)?;
        let scaled = |most: usize| {
            let power = most.saturating_sub(digits) as u32;
            value.saturating_mul(10_i32.pow(power))
        };
        match field {
            Field::Year => self.year = value,
            Field::Month => self.month = value,
            Field::Day => self.day = value,
            Field::Hour => self.hour = value,
            Field::HalfDayHour => self.half_day_hour = Some(value),
            Field::Minute => self.minute = value,
            Field::Second => self.second = value,
            Field::Millisecond => self.micros += scaled(3).saturating_mul(1_000),
            Field::Microsecond => self.micros += scaled(6),
            Field::Fraction(kept) => {
                self.micros += scaled(6);
                self.digits = Some(kept);
            }
            Field::ZoneHour => self.zone_hour = value,
            Field::ZoneMinute => self.zone_minute = value,
            Field::HalfDay => {}
        }
        Ok(())
    }

    /// Seconds east of UTC.
    pub(super) fn offset(&self) -> i32 {
        let seconds = self.zone_hour * 3_600 + self.zone_minute * 60;
        if self.west { -seconds } else { seconds }
    }

    fn check(&mut self, text: &str) -> Result<(), SqlError> {
        if let Some(hour) = self.half_day_hour {
            if !(1..=12).contains(&hour) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                let hint = "Use the 24-hour clock, or give an hour between 1 and 12.";
                return Err(wrong(message).hint(hint));
            }
            self.hour = match self.afternoon {
                Some(true) => hour % 12 + 12,
                Some(false) => hour % 12,
                None => hour,
            };
        }
        let is_time = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
            && (0..1_000_000).contains(&self.micros);
        if !is_time {
            return Err(overflow(text));
        }
        if !(0..=15).contains(&self.zone_hour) || !(0..60).contains(&self.zone_minute) {
            let message = format!("time zone displacement out of range: \"{text}\"");
            return Err(SqlError::new(SqlState(*b"22009"), message));
        }
        if self.is_dated {
            // Parts that the template has not are the first of the year.
            for part in [&mut self.month, &mut self.day] {
                if *part == 0 {
                    *part = 1;
                }
            }
        }
        Ok(())
    }

    /// Days since 2000-01-01.
    pub(super) fn days(&self, text: &str) -> Result<i32, SqlError> {
        let (month, day) = (u32::try_from(self.month), u32::try_from(self.day));
        let days = match (month, day) {
            (Ok(month), Ok(day)) if self.year > 0 => {
                base::calendar::days_from_ymd(self.year, month, day)
            }
            _ => None,
        };
        days.ok_or_else(|| overflow(text))
    }
}

/// The number of a field, and how many digits it has.
fn number(rest: &mut &str, name: &str, width: usize, open: bool) -> Result<(i32, usize), SqlError> {
    *rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
    let shown: String = rest.chars().take(width).collect();
    let count = shown.chars().count();
    if !open && count < width {
        let message = format!("source string too short for \"{name}\" formatting field");
        let detail = format!("Field requires {width} characters, but only {count} remain.");
        return Err(wrong(message).detail(detail).hint(hint));
    }
    let most = if open { rest.len() } else { width };
    let sign = usize::from(rest.starts_with(['+', '-']));
    let digits = rest.bytes().skip(sign).take(most.saturating_sub(sign));
    let digits = digits.take_while(u8::is_ascii_digit).count();
    let invalid = || wrong(format!("invalid value \"{shown}\" for \"{name}\""));
    if digits == 0 {
        return Err(invalid().detail("Value must be an integer."));
    }
    let used = sign + digits;
    if !open && used < width {
        let detail = format!("Field requires {width} characters, but only {used} could be parsed.");
        return Err(invalid().detail(detail).hint(hint));
    }
    let value = rest[..used].parse::<i32>().map_err(|_| {
        let message = format!("value for \"{name}\" in source string is out of range");
        let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
        SqlError::new(SqlState::DATETIME_OVERFLOW, message).detail(detail)
    })?;
    *rest = &rest[used..];
    Ok((value, digits))
}
