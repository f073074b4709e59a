//! Text form of intervals: PostgreSQL's verbose and ISO 8601 input, `postgres` style output.

use super::datetime::put_time;
use super::{put, trim};
use crate::calendar::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::datum::Interval;
use crate::error::{SqlError, SqlState};
use crate::spans::{SpanField, SpanModifier};
use alloc::format;
use alloc::vec::Vec;

/// Numbers are read with nine fraction digits.
const NANO: i128 = 1_000_000_000;

/// Bits of the fields that were read; PostgreSQL takes each of them once.
mod field {
    pub(super) const SECOND: u16 = 1 << 0;
    pub(super) const MINUTE: u16 = 1 << 1;
    pub(super) const HOUR: u16 = 1 << 2;
    pub(super) const DAY: u16 = 1 << 3;
    pub(super) const WEEK: u16 = 1 << 4;
    pub(super) const MONTH: u16 = 1 << 5;
    pub(super) const YEAR: u16 = 1 << 6;
    pub(super) const MICROSECOND: u16 = 1 << 7;
    pub(super) const MILLISECOND: u16 = 1 << 8;
    pub(super) const DECADE: u16 = 1 << 9;
    pub(super) const CENTURY: u16 = 1 << 10;
    pub(super) const MILLENNIUM: u16 = 1 << 11;
    pub(super) const CLOCK: u16 = SECOND | MINUTE | HOUR | MICROSECOND | MILLISECOND;
}

#[derive(Clone, Copy)]
enum Unit {
    Months(i128),
    Days(i128),
    Micros(i64),
}

enum Bad {
    Syntax,
    Range,
}

/// The sum of the fields read so far.
#[derive(Default)]
struct Sum {
    months: i128,
    days: i128,
    micros: i128,
    /// Fields that were read.
    seen: u16,
}

impl Sum {
    /// Takes note of `fields`; each may come once.
    fn see(&mut self, fields: u16) -> Result<(), Bad> {
        if self.seen & fields != 0 {
            return Err(Bad::Syntax);
        }
        self.seen |= fields;
        Ok(())
    }

    /// Adds `value / NANO` of `unit`. Fractions of months become days of 1/30 month, fractions of
    /// days become time, as in PostgreSQL; fractions of years are rounded to months.
    fn add(&mut self, value: i128, unit: Unit) -> Result<(), Bad> {
        let scaled = |factor: i128| value.checked_mul(factor).ok_or(Bad::Range);
        match unit {
            Unit::Micros(micros) => {
                self.micros += round_nano(scaled(i128::from(micros))?);
            }
            Unit::Days(days) => self.add_days(scaled(days)?),
            Unit::Months(1) => {
                self.months += value / NANO;
                self.add_days(value % NANO * 30);
            }
            Unit::Months(months) => self.months += round_nano(scaled(months)?),
        }
        let limit = 1i128 << 100;
        let fits = [self.months, self.days, self.micros]
            .iter()
            .all(|sum| sum.abs() < limit);
        if fits { Ok(()) } else { Err(Bad::Range) }
    }

    fn add_days(&mut self, nano_days: i128) {
        self.days += nano_days / NANO;
        self.micros += round_nano(nano_days % NANO * i128::from(MICROS_PER_DAY));
    }

    fn finish(self, negate: bool) -> Result<Interval, Bad> {
        let sign = if negate { -1 } else { 1 };
        Ok(Interval {
            months: i32::try_from(self.months * sign).map_err(|_| Bad::Range)?,
            days: i32::try_from(self.days * sign).map_err(|_| Bad::Range)?,
            micros: i64::try_from(self.micros * sign).map_err(|_| Bad::Range)?,
        })
    }
}

/// The nearest whole number; halves go towards zero, as PostgreSQL's microseconds do.
fn round_nano(value: i128) -> i128 {
    (value + value.signum() * (NANO / 2 - 1)) / NANO
}

/// The modifier says what a number without a unit counts, and takes the rest away.
pub(super) fn parse_interval(
    text: &str,
    modifier: Option<SpanModifier>,
) -> Result<Interval, SqlError> {
    let trimmed = trim(text);
    let result = match trimmed.strip_prefix(['P', 'p']) {
        Some(iso) => parse_iso(iso),
        None => parse_verbose(trimmed, modifier),
    };
    let span = result.map_err(|bad| match bad {
        Bad::Syntax => SqlError::new(
            SqlState::DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        Bad::Range => SqlError::new(
            SqlState(*b"22015"),
            format!("interval field value out of range: \"{text}\""),
        ),
    })?;
    modifier.map_or(Ok(span), |modifier| modifier.fit(span))
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Cuts the longest start made of bytes that `keep` accepts.
fn cut(text: &str, keep: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|byte| !keep(byte))
        .unwrap_or(text.len());
    text.split_at(end)
}

fn cut_sign(text: &str) -> (i128, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    }
}

/// An unsigned number with fraction, times [`NANO`]. Digits beyond the ninth are dropped.
fn read_nano(number: &str) -> Result<i128, Bad> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(Bad::Syntax);
    }
    let whole: i128 = match whole {
        "" => 0,
        _ if whole.len() > 19 => return Err(Bad::Range),
        _ => whole.parse().map_err(|_| Bad::Syntax)?,
    };
    let digit = |i: usize| {
        fraction
            .as_bytes()
            .get(i)
            .map_or(0, |byte| i128::from(byte - b'0'))
    };
    Ok((0..9).fold(whole, |sum, i| sum * 10 + digit(i)))
}

/// `1 year -2 days +03:04:05.6 ago` and the like; a number without unit counts the last field.
fn parse_verbose(text: &str, modifier: Option<SpanModifier>) -> Result<Interval, Bad> {
    let mut rest = text.strip_prefix('@').unwrap_or(text).trim_start();
    let mut sum = Sum::default();
    let (mut fields, mut ago) = (0, false);
    let last = modifier.map_or(SpanField::Second, SpanModifier::unit);
    let is_minutes = modifier.is_some_and(SpanModifier::is_minutes);
    while !rest.is_empty() {
        if fields > 0 && rest.eq_ignore_ascii_case("ago") {
            ago = true;
            break;
        }
        let (sign, unsigned) = cut_sign(rest);
        let (number, behind) = cut(unsigned.trim_start(), is_number_byte);
        let value = read_nano(number)?;
        fields += 1;
        rest = if behind.starts_with(':') {
            let (micros, behind) = read_clock(value, behind, is_minutes)?;
            sum.see(field::CLOCK)?;
            sum.add(sign * micros * NANO, Unit::Micros(1))?;
            behind
        } else if let Some(months) = behind.strip_prefix('-') {
            // The SQL standard's years-months.
            let (number, behind) = cut(months, is_number_byte);
            sum.see(field::YEAR | field::MONTH)?;
            sum.add(sign * value, Unit::Months(12))?;
            sum.add(sign * read_nano(number)?, Unit::Months(1))?;
            behind
        } else {
            let (word, behind) = cut(behind.trim_start(), |byte| byte.is_ascii_alphabetic());
            let (unit, bit) = match word {
                // A number before a time of day or before hours is days.
                "" if is_clock(behind) || is_hours(behind, last) => (Unit::Days(1), field::DAY),
                "" if behind.is_empty() => unit_of_field(last),
                _ => unit_of_word(word).ok_or(Bad::Syntax)?,
            };
            sum.see(bit)?;
            sum.add(sign * value, unit)?;
            behind
        }
        .trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
    }
    if fields == 0 {
        Err(Bad::Syntax)
    } else {
        sum.finish(ago)
    }
}

/// Whether a time of day like `04:05` follows.
fn is_clock(text: &str) -> bool {
    let (_, unsigned) = cut_sign(text);
    let (number, behind) = cut(unsigned, is_number_byte);
    !number.is_empty() && behind.starts_with(':')
}

/// Whether hours follow, as the last field.
fn is_hours(text: &str, last: SpanField) -> bool {
    let (_, unsigned) = cut_sign(text);
    let (number, behind) = cut(unsigned, is_number_byte);
    let (word, _) = cut(behind.trim_start(), |byte| byte.is_ascii_alphabetic());
    let is_unit = match word {
        "" => last == SpanField::Hour && behind.is_empty(),
        word => unit_of_word(word).is_some_and(|(_, bit)| bit == field::HOUR),
    };
    !number.is_empty() && is_unit
}

/// `:MM[:SS[.f]]` behind an hour (times [`NANO`]), or `:SS.f` behind a minute: microseconds, and
/// what follows. `is_minutes`: `:SS`, too.
fn read_clock(hours: i128, text: &str, is_minutes: bool) -> Result<(i128, &str), Bad> {
    let (minutes, behind) = cut(&text[1..], is_number_byte);
    let minutes = read_nano(minutes)?;
    let (seconds, behind) = match behind.strip_prefix(':') {
        Some(seconds) => {
            let (seconds, behind) = cut(seconds, is_number_byte);
            (read_nano(seconds)?, behind)
        }
        // A fraction is one of seconds.
        None if is_minutes || minutes % NANO != 0 => return minutes_of(hours, minutes, behind),
        None => (0, behind),
    };
    if hours % NANO != 0 || minutes % NANO != 0 {
        return Err(Bad::Syntax);
    }
    if minutes >= 60 * NANO || seconds > 60 * NANO {
        return Err(Bad::Range);
    }
    let micros = hours / NANO * i128::from(MICROS_PER_HOUR)
        + minutes / NANO * i128::from(MICROS_PER_MINUTE)
        + round_nano(seconds * i128::from(MICROS_PER_SECOND));
    Ok((micros, behind))
}

/// Minutes and seconds, both times [`NANO`], as microseconds.
fn minutes_of(minutes: i128, seconds: i128, rest: &str) -> Result<(i128, &str), Bad> {
    if minutes % NANO != 0 {
        return Err(Bad::Syntax);
    }
    if minutes >= 60 * NANO || seconds > 60 * NANO {
        return Err(Bad::Range);
    }
    let micros = minutes / NANO * i128::from(MICROS_PER_MINUTE)
        + round_nano(seconds * i128::from(MICROS_PER_SECOND));
    Ok((micros, rest))
}

fn unit_of_field(last: SpanField) -> (Unit, u16) {
    match last {
        SpanField::Year => (Unit::Months(12), field::YEAR),
        SpanField::Month => (Unit::Months(1), field::MONTH),
        SpanField::Day => (Unit::Days(1), field::DAY),
        SpanField::Hour => (Unit::Micros(MICROS_PER_HOUR), field::HOUR),
        SpanField::Minute => (Unit::Micros(MICROS_PER_MINUTE), field::MINUTE),
        SpanField::Second => (Unit::Micros(MICROS_PER_SECOND), field::SECOND),
    }
}

fn unit_of_word(word: &str) -> Option<(Unit, u16)> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.as_str() {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => {
            (Unit::Micros(1), field::MICROSECOND)
        }
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => {
            (Unit::Micros(1_000), field::MILLISECOND)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => {
            (Unit::Micros(MICROS_PER_SECOND), field::SECOND)
        }
        "m" | "min" | "mins" | "minute" | "minutes" => {
            (Unit::Micros(MICROS_PER_MINUTE), field::MINUTE)
        }
        "h" | "hr" | "hrs" | "hour" | "hours" => (Unit::Micros(MICROS_PER_HOUR), field::HOUR),
        "d" | "day" | "days" => (Unit::Days(1), field::DAY),
        "w" | "week" | "weeks" => (Unit::Days(7), field::WEEK),
        "mon" | "mons" | "month" | "months" => (Unit::Months(1), field::MONTH),
        "y" | "yr" | "yrs" | "year" | "years" => (Unit::Months(12), field::YEAR),
        "dec" | "decs" | "decade" | "decades" => (Unit::Months(120), field::DECADE),
        "c" | "cent" | "century" | "centuries" => (Unit::Months(1_200), field::CENTURY),
        "mil" | "mils" | "millennium" | "millennia" => (Unit::Months(12_000), field::MILLENNIUM),
        _ => return None,
    })
}

/// What follows the `P` of `P1Y2M3W4DT5H6M7S`.
fn parse_iso(text: &str) -> Result<Interval, Bad> {
    let mut sum = Sum::default();
    let (mut rest, mut in_time, mut fields) = (text, false, 0);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix(['T', 't'])
            && !in_time
        {
            (rest, in_time) = (time, true);
            continue;
        }
        let (sign, unsigned) = cut_sign(rest);
        let (number, behind) = cut(unsigned, is_number_byte);
        let value = sign * read_nano(number)?;
        let letter = behind
            .chars()
            .next()
            .ok_or(Bad::Syntax)?
            .to_ascii_uppercase();
        let unit = match (letter, in_time) {
            ('Y', false) => Unit::Months(12),
            ('M', false) => Unit::Months(1),
            ('W', false) => Unit::Days(7),
            ('D', false) => Unit::Days(1),
            ('H', true) => Unit::Micros(MICROS_PER_HOUR),
            ('M', true) => Unit::Micros(MICROS_PER_MINUTE),
            ('S', true) => Unit::Micros(MICROS_PER_SECOND),
            _ => return Err(Bad::Syntax),
        };
        sum.add(value, unit)?;
        fields += 1;
        rest = &behind[1..];
    }
    if fields == 0 {
        Err(Bad::Syntax)
    } else {
        sum.finish(false)
    }
}

/// Appends `P1Y2M3DT4H5M6.7S`: each part has the sign of its own.
pub(super) fn format_iso(interval: Interval, out: &mut Vec<u8>) {
    let (days, micros) = (i64::from(interval.days), interval.micros);
    let months = i64::from(interval.months);
    if (months, days, micros) == (0, 0, 0) {
        out.extend_from_slice(b"PT0S");
        return;
    }
    out.push(b'P');
    let parts = [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')];
    for (value, letter) in parts.into_iter().filter(|(value, _)| *value != 0) {
        put(out, format_args!("{value}{letter}"));
    }
    if micros == 0 {
        return;
    }
    out.push(b'T');
    let parts = [
        (micros / MICROS_PER_HOUR, 'H'),
        (micros % MICROS_PER_HOUR / MICROS_PER_MINUTE, 'M'),
    ];
    for (value, letter) in parts.into_iter().filter(|(value, _)| *value != 0) {
        put(out, format_args!("{value}{letter}"));
    }
    let seconds = micros % MICROS_PER_MINUTE;
    if seconds != 0 {
        let sign = if seconds < 0 { "-" } else { "" };
        let (whole, rest) = (
            seconds.abs() / MICROS_PER_SECOND,
            seconds.abs() % MICROS_PER_SECOND,
        );
        put(out, format_args!("{sign}{whole}"));
        if rest != 0 {
            let digits = format!("{rest:06}");
            put(out, format_args!(".{}", digits.trim_end_matches('0')));
        }
        out.push(b'S');
    }
}

/// Appends `1 year 2 mons 3 days 04:05:06.7`; a positive field behind a negative one gets a plus.
pub(super) fn format_interval(interval: Interval, out: &mut Vec<u8>) {
    let start = out.len();
    let mut after_negative = false;
    let fields = [
        (interval.months / 12, "year"),
        (interval.months % 12, "mon"),
        (interval.days, "day"),
    ];
    for (value, unit) in fields.into_iter().filter(|(value, _)| *value != 0) {
        let blank = if out.len() > start { " " } else { "" };
        let plus = if after_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        put(out, format_args!("{blank}{plus}{value} {unit}{plural}"));
        after_negative = value < 0;
    }
    if interval.micros != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if interval.micros < 0 {
            out.push(b'-');
        } else if after_negative {
            out.push(b'+');
        }
        // The smallest value has no positive counterpart; it is 262 million years away.
        put_time(interval.micros.saturating_abs(), out);
    }
}
