//! The styles in which intervals are written and read: the setting `IntervalStyle`.

use super::{fit, interval, parse, put, trim};
use crate::calendar::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::datum::{Datum, Interval, Type};
use crate::error::SqlError;
use crate::types::ArrayKind;
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A value of the setting `IntervalStyle`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SpanStyle {
    /// `1 year 2 mons 3 days 04:05:06`.
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`.
    Verbose,
    /// `+1-2 +3 +4:05:06`. A sign at the start of a text counts for all that follows.
    Sql,
    /// `P1Y2M3DT4H5M6S`.
    Iso,
}

impl SpanStyle {
    /// The style of a value of the setting.
    pub fn named(name: &str) -> SpanStyle {
        match name {
            "postgres_verbose" => SpanStyle::Verbose,
            "sql_standard" => SpanStyle::Sql,
            "iso_8601" => SpanStyle::Iso,
            _ => SpanStyle::Postgres,
        }
    }

    /// The text of an interval.
    pub fn text(self, interval: Interval) -> String {
        let mut out = Vec::new();
        match self {
            SpanStyle::Postgres => interval::format_interval(interval, &mut out),
            SpanStyle::Verbose => format_verbose(interval, &mut out),
            SpanStyle::Sql => format_sql(interval, &mut out),
            SpanStyle::Iso => interval::format_iso(interval, &mut out),
        }
        String::from_utf8(out).expect("text forms are UTF-8")
    }

    /// Whether a text of the type may be another value than in the style `postgres`.
    pub fn reads(self, ty: Type) -> bool {
        self == SpanStyle::Sql && matches!(ty.element().unwrap_or(ty), Type::Interval(_))
    }

    /// As [`super::parse`], for types of [`SpanStyle::reads`].
    ///
    /// # Errors
    /// As [`super::parse`].
    pub fn parse(self, ty: Type, text: &str) -> Result<Datum, SqlError> {
        if !self.reads(ty) {
            return parse(ty, text);
        }
        let Some(item) = ty.element() else {
            // Errors show the text as it was written.
            return parse(ty, &with_signs(text)).or_else(|_| parse(ty, text));
        };
        let texts = parse(Type::Array(ArrayKind::Text), text)?;
        texts.try_map_items(|value| match value.as_str() {
            Some(text) => fit(item, self.parse(item, text)?),
            None => Ok(Datum::Null),
        })
    }
}

/// Whether the text of an interval, or of an array of them, depends on the style.
pub fn is_signed(text: &str) -> bool {
    text.contains('-')
}

/// Repeats the minus at the start of a text before each number, if no other number has a sign.
fn with_signs(text: &str) -> Cow<'_, str> {
    let trimmed = trim(text);
    let Some(rest) = trimmed.strip_prefix('-') else {
        return Cow::Borrowed(text);
    };
    let mut out = String::from("-");
    let mut before = '-';
    for letter in rest.chars() {
        let starts = before.is_ascii_whitespace() || before.is_alphabetic();
        if starts && matches!(letter, '-' | '+') {
            return Cow::Borrowed(text);
        }
        if starts && (letter.is_ascii_digit() || letter == '.') {
            out.push('-');
        }
        out.push(letter);
        before = letter;
    }
    Cow::Owned(out)
}

/// Years, months, days, hours, minutes and microseconds below a minute.
fn parts(interval: Interval) -> [i64; 6] {
    let months = i64::from(interval.months);
    let micros = interval.micros;
    [
        months / 12,
        months % 12,
        i64::from(interval.days),
        micros / MICROS_PER_HOUR,
        micros % MICROS_PER_HOUR / MICROS_PER_MINUTE,
        micros % MICROS_PER_MINUTE,
    ]
}

/// Appends seconds without their sign, at least `width` digits before the point.
fn put_seconds(micros: i64, width: usize, out: &mut Vec<u8>) {
    let (whole, rest) = (
        micros.abs() / MICROS_PER_SECOND,
        micros.abs() % MICROS_PER_SECOND,
    );
    put(out, format_args!("{whole:0width$}"));
    if rest != 0 {
        let digits = format!("{rest:06}");
        put(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Appends `@ 1 year -2 days`, or with `ago` what begins with a negative part.
fn format_verbose(interval: Interval, out: &mut Vec<u8>) {
    let [years, months, days, hours, minutes, micros] = parts(interval);
    out.push(b'@');
    let mut before = None;
    let fields = [
        (years, "year"),
        (months, "mon"),
        (days, "day"),
        (hours, "hour"),
        (minutes, "min"),
    ];
    for (value, unit) in fields.into_iter().filter(|(value, _)| *value != 0) {
        let shown = match *before.get_or_insert(value < 0) {
            true => -value,
            false => value,
        };
        let plural = if shown == 1 { "" } else { "s" };
        put(out, format_args!(" {shown} {unit}{plural}"));
    }
    if micros != 0 {
        let negative = *before.get_or_insert(micros < 0) != (micros < 0);
        out.extend_from_slice(if negative { b" -" } else { b" " });
        put_seconds(micros, 1, out);
        let plural = if micros.abs() == MICROS_PER_SECOND {
            ""
        } else {
            "s"
        };
        put(out, format_args!(" sec{plural}"));
    }
    match before {
        None => out.extend_from_slice(b" 0"),
        Some(true) => out.extend_from_slice(b" ago"),
        Some(false) => {}
    }
}

/// Appends `1-2`, `3 4:05:06` or `4:05:06`; all of them with signs if one form does not do.
fn format_sql(interval: Interval, out: &mut Vec<u8>) {
    let parts = parts(interval);
    let [years, months, days, hours, minutes, micros] = parts;
    let negative = parts.iter().any(|part| *part < 0);
    let positive = parts.iter().any(|part| *part > 0);
    let (of_year, of_day) = (interval.months != 0, days != 0 || interval.micros != 0);
    let sign = |is_negative: bool| if is_negative { '-' } else { '+' };
    let clock = |out: &mut Vec<u8>| {
        put(out, format_args!("{}:{:02}:", hours.abs(), minutes.abs()));
        put_seconds(micros, 2, out);
    };
    if !negative && !positive {
        out.push(b'0');
        return;
    }
    if negative && positive || of_year && of_day {
        let (year, day) = (sign(interval.months < 0), sign(days < 0));
        let (years, months, days) = (years.abs(), months.abs(), days.abs());
        let time = sign(interval.micros < 0);
        put(
            out,
            format_args!("{year}{years}-{months} {day}{days} {time}"),
        );
        clock(out);
        return;
    }
    if negative {
        out.push(b'-');
    }
    if of_year {
        put(out, format_args!("{}-{}", years.abs(), months.abs()));
        return;
    }
    if days != 0 {
        put(out, format_args!("{} ", days.abs()));
    }
    clock(out);
}
