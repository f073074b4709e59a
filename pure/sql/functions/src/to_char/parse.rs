//! `to_timestamp` and `to_date`: text read by a pattern. The rules are PostgreSQL's; [`fields`]
//! knows what the values mean together.

mod fields;

use super::moment::{DAYS, Element, MONTHS, is_separator, read};
use super::number::roman_digits;
use base::{SqlError, SqlState};
pub use fields::Read;
use fields::{Convention, Fields};

/// Where in the text the reader is.
struct Reader<'a> {
    rest: &'a str,
    /// Blanks and signs of the text that no element of the pattern has asked for so far; those
    /// that the pattern has more of make up for them.
    ahead: i32,
    /// `FX`: nothing is skipped.
    exact: bool,
    /// The last sign that stood for a separator was a minus.
    behind_minus: bool,
}

/// What a field of a pattern is called there, and how its number ends.
#[derive(Clone, Copy)]
struct Slot<'a> {
    written: &'a str,
    /// Digits may go on as long as they like: no digits of another field follow.
    open: bool,
}

fn invalid(shown: &str, slot: Slot<'_>) -> SqlError {
    let message = format!("invalid value \"{shown}\" for \"{}\"", slot.written);
    SqlError::new(SqlState::DATETIME_FORMAT, message)
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        if self.exact {
            return;
        }
        let rest = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_whitespace());
        self.ahead += (self.rest.len() - rest.len()) as i32;
        self.rest = rest;
    }

    fn skip_char(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    /// A separator of the pattern stands for one of the text, or for nothing.
    fn separator(&mut self) {
        let found = self.rest.chars().next().filter(|c| is_separator(*c));
        if self.exact || found.is_some() {
            self.skip_char();
        } else {
            self.ahead -= 1;
        }
        if found.is_some() {
            self.behind_minus = found == Some('-');
        }
    }

    /// A letter or digit of the pattern, or one in quotes, stands for any character.
    fn literal(&mut self) {
        if !self.exact && self.ahead > 0 {
            self.ahead -= 1;
        } else {
            self.skip_char();
        }
    }

    /// Reads a number of `width` characters, or as long as it is; also how many characters it
    /// took.
    fn number(&mut self, width: usize, slot: Slot<'_>) -> Result<(i32, usize), SqlError> {
        self.rest = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_whitespace());
        let first: String = self.rest.chars().take(width).collect();
        let hint = "If your source string is not fixed-width, try using the \"FM\" modifier.";
        let source = if slot.open { self.rest } else { &first };
        if !slot.open && first.chars().count() < width {
            let message = format!(
                "source string too short for \"{}\" formatting field",
                slot.written
            );
            let count = first.chars().count();
            let detail = format!("Field requires {width} characters, but only {count} remain.");
            let error = SqlError::new(SqlState::DATETIME_FORMAT, message);
            return Err(error.detail(detail).hint(hint));
        }
        let (value, used) = integer(source);
        if used == 0 {
            return Err(invalid(&first, slot).detail("Value must be an integer."));
        }
        if !slot.open && used < width {
            let detail =
                format!("Field requires {width} characters, but only {used} could be parsed.");
            return Err(invalid(&first, slot).detail(detail).hint(hint));
        }
        let value = i32::try_from(value).map_err(|_| {
            let message = format!(
                "value for \"{}\" in source string is out of range",
                slot.written
            );
            let detail = format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX);
            SqlError::new(SqlState::DATETIME_OVERFLOW, message).detail(detail)
        })?;
        self.rest = &self.rest[used..];
        Ok((value, used))
    }

    /// Reads the first of `words` that stands here, in any letter case.
    fn word(&mut self, words: &[&str], slot: Slot<'_>) -> Result<usize, SqlError> {
        let stands_here = |word: &&str| {
            let start = self.rest.get(..word.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        let Some(at) = words.iter().position(stands_here) else {
            let shown = self
                .rest
                .split_ascii_whitespace()
                .next()
                .unwrap_or_default();
            let detail = "The given value did not match any of the allowed values for this field.";
            return Err(invalid(shown, slot).detail(detail));
        };
        self.rest = &self.rest[words[at].len()..];
        Ok(at)
    }
}

/// The integer at the start of a text, and how many bytes it takes: 0 if there is none.
fn integer(text: &str) -> (i64, usize) {
    let blanks = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_whitespace())
            .len();
    let sign = usize::from(text[blanks..].starts_with(['-', '+']));
    let digits = &text[blanks + sign..];
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return (0, 0);
    }
    let value = digits[..length].parse::<i64>().unwrap_or(i64::MAX);
    let negative = text[blanks..].starts_with('-');
    (
        if negative { -value } else { value },
        blanks + sign + length,
    )
}

/// Reads a timestamp by a pattern.
///
/// # Errors
/// 22007 if the text does not follow the pattern, 22008 for fields out of range, 0A000 for
/// elements that only make sense for output.
pub fn parse_moment(text: &str, pattern: &str) -> Result<Read, SqlError> {
    let mut fields = Fields::default();
    let mut reader = Reader {
        rest: text,
        ahead: 0,
        exact: false,
        behind_minus: false,
    };
    let elements = read(pattern);
    reader.skip_blanks();
    for (i, element) in elements.iter().enumerate() {
        if reader.rest.is_empty() {
            break;
        }
        match element {
            Element::Exact => reader.exact = true,
            Element::Separator(_) => reader.separator(),
            Element::Literal(text) => text.chars().for_each(|_| reader.literal()),
            Element::Field {
                name,
                written,
                fill,
                ordinal,
            } => {
                reader.skip_blanks();
                let slot = Slot {
                    written,
                    open: *fill || ordinal.is_some() || !begins_with_digit(elements.get(i + 1)),
                };
                fields.follow(Convention::of(name))?;
                read_field(&mut fields, &mut reader, name, slot)?;
                if ordinal.is_some() && fields::is_number(name) {
                    reader.skip_char();
                    reader.skip_char();
                }
                reader.ahead = 0;
                reader.behind_minus = false;
                reader.skip_blanks();
            }
        }
    }
    fields.moment(text)
}

/// Whether digits may follow directly.
fn begins_with_digit(next: Option<&Element>) -> bool {
    match next {
        Some(Element::Field { name, .. }) => fields::is_number(name),
        Some(Element::Literal(text)) => {
            text.len() == 1 && text.starts_with(|c: char| c.is_ascii_digit())
        }
        Some(Element::Separator(_) | Element::Exact) | None => false,
    }
}

fn read_field(
    fields: &mut Fields,
    reader: &mut Reader<'_>,
    name: &'static str,
    slot: Slot<'_>,
) -> Result<(), SqlError> {
    match name {
        "YYYY" | "IYYY" | "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" | "Y,YYY" => {
            read_year(fields, reader, name, slot)
        }
        "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
            read_fraction(fields, reader, name, slot)
        }
        "ID" => {
            // Sunday is the first one.
            let day = reader.number(1, slot)?.0;
            let day = if day >= 7 { 1 } else { day + 1 };
            fields.set(|fields| &mut fields.weekday, day, slot.written)
        }
        "HH" | "HH12" | "HH24" => {
            fields.half_day |= name != "HH24";
            let hour = reader.number(2, slot)?.0;
            fields.set(|fields| &mut fields.hour, hour, slot.written)
        }
        "TZH" => {
            let sign = reader
                .rest
                .chars()
                .next()
                .filter(|c| matches!(c, '+' | '-' | ' '));
            let behind_minus = reader.ahead > 0 && reader.behind_minus;
            fields.zone_west = sign.map_or(behind_minus, |sign| sign == '-');
            if sign.is_some() {
                reader.skip_char();
            }
            let hours = reader.number(2, slot)?.0;
            fields.has_zone = true;
            fields.set(|fields| &mut fields.zone_hours, hours, slot.written)
        }
        "Q" => reader.number(1, slot).map(drop),
        "TZ" | "OF" => {
            let message = format!(
                "formatting field \"{}\" is only supported in to_char",
                slot.written
            );
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        name if !fields::is_number(name) => read_word(fields, reader, name, slot),
        name => {
            let width = if name == "TZM" { 2 } else { name.len() };
            fields.has_zone |= name == "TZM";
            let value = reader.number(width, slot)?.0;
            fields.set(|fields| fields.number_mut(name), value, slot.written)
        }
    }
}

fn read_year(
    fields: &mut Fields,
    reader: &mut Reader<'_>,
    name: &'static str,
    slot: Slot<'_>,
) -> Result<(), SqlError> {
    match name {
        "Y,YYY" => {
            let error = || {
                let message = format!("invalid input string for \"{}\"", slot.written);
                SqlError::new(SqlState::DATETIME_FORMAT, message)
            };
            let (thousands, rest) = reader.rest.split_once(',').ok_or_else(error)?;
            let thousands: i32 = thousands.trim().parse().map_err(|_| error())?;
            let length = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let years: i32 = rest[..length].parse().map_err(|_| error())?;
            reader.rest = &rest[length..];
            let year = thousands
                .checked_mul(1000)
                .and_then(|year| year.checked_add(years));
            fields.set(
                |fields| &mut fields.year,
                year.ok_or_else(error)?,
                slot.written,
            )
        }
        name => {
            let (year, used) = reader.number(name.len(), slot)?;
            let is_short = used < 4 && name.len() < 4;
            let year = if is_short {
                nearest_to_2020(year)
            } else {
                year
            };
            fields.set(|fields| &mut fields.year, year, slot.written)
        }
    }
}

/// Parts of a second.
fn read_fraction(
    fields: &mut Fields,
    reader: &mut Reader<'_>,
    name: &'static str,
    slot: Slot<'_>,
) -> Result<(), SqlError> {
    match name {
        "MS" => {
            let (value, used) = reader.number(3, slot)?;
            let scale = [100, 10, 1][used.clamp(1, 3) - 1];
            let value = i64::from(value) * scale;
            fields.set(|fields| &mut fields.millis, value, slot.written)
        }
        name => {
            let width = name
                .strip_prefix("FF")
                .and_then(|digits| digits.parse().ok());
            fields.digits = width.map_or(fields.digits, |width| Some(width as u8));
            let (value, used) = reader.number(width.unwrap_or(6), slot)?;
            let value = i64::from(value) * 10_i64.pow(6 - used.clamp(1, 6) as u32);
            fields.set(|fields| &mut fields.micros, value, slot.written)
        }
    }
}

/// Eras, halves of a day, months and days.
fn read_word(
    fields: &mut Fields,
    reader: &mut Reader<'_>,
    name: &'static str,
    slot: Slot<'_>,
) -> Result<(), SqlError> {
    match name {
        "AD" | "BC" => fields.set_era(reader.word(&["ad", "bc"], slot)?, slot.written),
        "A.D." | "B.C." => fields.set_era(reader.word(&["a.d.", "b.c."], slot)?, slot.written),
        "AM" | "PM" => fields.set_half(reader.word(&["am", "pm"], slot)?, slot.written),
        "A.M." | "P.M." => fields.set_half(reader.word(&["a.m.", "p.m."], slot)?, slot.written),
        "MONTH" => {
            let month = reader.word(&MONTHS, slot)? as i32 + 1;
            fields.set(|fields| &mut fields.month, month, slot.written)
        }
        "MON" => {
            let month = reader.word(&MONTHS.map(|month| &month[..3]), slot)? as i32 + 1;
            fields.set(|fields| &mut fields.month, month, slot.written)
        }
        "RM" => {
            // Longer ones before those they begin with.
            let numbers = [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1];
            let words = numbers.map(roman_digits);
            let at = reader.word(&words.each_ref().map(String::as_str), slot)?;
            fields.set(|fields| &mut fields.month, numbers[at] as i32, slot.written)
        }
        "DAY" => {
            let day = reader.word(&DAYS, slot)? as i32 + 1;
            fields.set(|fields| &mut fields.weekday, day, slot.written)
        }
        // `DY`.
        _ => {
            let day = reader.word(&DAYS.map(|day| &day[..3]), slot)? as i32 + 1;
            fields.set(|fields| &mut fields.weekday, day, slot.written)
        }
    }
}

/// A year of three digits or less.
fn nearest_to_2020(year: i32) -> i32 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        1000.. => year,
    }
}
