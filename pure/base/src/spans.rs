//! Modifiers of `interval`: the fields that it keeps, and digits of the fraction of its second.

use crate::calendar::{MICROS_PER_HOUR, MICROS_PER_MINUTE};
use crate::datum::Interval;
use crate::error::{SqlError, SqlState};
use crate::types::SECOND_DIGITS_MAX;
use alloc::format;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A field of an interval, the largest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum SpanField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

use SpanField::{Day, Hour, Minute, Month, Second, Year};

impl SpanField {
    const ALL: [SpanField; 6] = [Year, Month, Day, Hour, Minute, Second];

    /// Its bit in PostgreSQL's type modifier.
    fn bit(self) -> i32 {
        let place = match self {
            Month => 1,
            Year => 2,
            Day => 3,
            Hour => 10,
            Minute => 11,
            Second => 12,
        };
        1 << place
    }

    fn name(self) -> &'static str {
        match self {
            Year => "year",
            Month => "month",
            Day => "day",
            Hour => "hour",
            Minute => "minute",
            Second => "second",
        }
    }
}

/// What `interval day to second(3)` says behind its first word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SpanModifier {
    /// The first and the last field; `None`: all.
    pub fields: Option<(SpanField, SpanField)>,
    /// Digits of the fraction of a second.
    pub digits: Option<u8>,
}

/// The bits of an interval of all fields.
const ALL_FIELDS: i32 = 0x7fff;
/// The bits of an interval of all digits.
const ALL_DIGITS: i32 = 0xffff;

impl SpanModifier {
    /// The bits of the fields, as PostgreSQL's grammar gives them to the type.
    pub fn range(self) -> i32 {
        let Some((first, last)) = self.fields else {
            return ALL_FIELDS;
        };
        let between = SpanField::ALL.iter();
        let between = between.filter(|field| (first..=last).contains(field));
        between.fold(0, |bits, field| bits | field.bit())
    }

    /// PostgreSQL's type modifier.
    pub fn typmod(self) -> i32 {
        self.range() << 16 | self.digits.map_or(ALL_DIGITS, i32::from)
    }

    /// The modifier of these bits; `None` outside if there are no such fields, inside if it keeps
    /// everything.
    pub fn of_bits(range: i32, digits: Option<u8>) -> Option<Option<SpanModifier>> {
        if range == ALL_FIELDS {
            let fields = None;
            return Some(digits.map(|_| SpanModifier { fields, digits }));
        }
        let pairs = SpanField::ALL
            .iter()
            .flat_map(|first| SpanField::ALL.iter().map(move |last| (*first, *last)));
        let mut pairs = pairs.filter(|(first, last)| {
            // Months and days are not of one kind.
            first <= last && (*last <= Month || *first >= Day)
        });
        let fields = pairs.find(|fields| {
            let modifier = SpanModifier {
                fields: Some(*fields),
                digits: None,
            };
            modifier.range() == range
        })?;
        Some(Some(SpanModifier {
            fields: Some(fields),
            digits: digits.filter(|_| fields.1 == Second),
        }))
    }

    /// The modifier of PostgreSQL's type modifier; `None`: it keeps everything.
    pub fn of_typmod(typmod: i32) -> Option<SpanModifier> {
        if typmod < 0 {
            return None;
        }
        let digits = u8::try_from(typmod & ALL_DIGITS).ok();
        let digits = digits.filter(|digits| *digits <= SECOND_DIGITS_MAX);
        SpanModifier::of_bits(typmod >> 16, digits).flatten()
    }

    /// The fields as words: `DAY TO SECOND(3)`, empty for all.
    pub fn words(self) -> String {
        let digits = match self.digits {
            Some(digits) => format!("({digits})"),
            None => String::new(),
        };
        match self.fields {
            None => digits,
            Some((first, last)) if first == last => format!(" {}{digits}", first.name()),
            Some((first, last)) => format!(" {} to {}{digits}", first.name(), last.name()),
        }
    }

    /// What a number without a unit counts.
    pub(crate) fn unit(self) -> SpanField {
        self.fields.map_or(Second, |(_, last)| last)
    }

    /// Whether the fields are MINUTE TO SECOND, so that `1:02` is no hour.
    pub(crate) fn is_minutes(self) -> bool {
        self.fields == Some((Minute, Second))
    }

    /// The interval without what is below the last field, its seconds rounded.
    ///
    /// # Errors
    /// 22008 for one that rounds to more than there is.
    pub(crate) fn fit(self, span: Interval) -> Result<Interval, SqlError> {
        let mut span = span;
        match self.unit() {
            Year => {
                span.months = span.months / 12 * 12;
                (span.days, span.micros) = (0, 0);
            }
            Month => (span.days, span.micros) = (0, 0),
            Day => span.micros = 0,
            Hour => span.micros = span.micros / MICROS_PER_HOUR * MICROS_PER_HOUR,
            Minute => span.micros = span.micros / MICROS_PER_MINUTE * MICROS_PER_MINUTE,
            Second => {}
        }
        if let Some(digits) = self.digits {
            let power = SECOND_DIGITS_MAX.saturating_sub(digits);
            let unit = 10i128.pow(power.into());
            let micros = i128::from(span.micros);
            let rounded = (micros.abs() + unit / 2) / unit * unit * micros.signum();
            span.micros = i64::try_from(rounded)
                .map_err(|_| SqlError::new(SqlState::DATETIME_OVERFLOW, "interval out of range"))?;
        }
        Ok(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_those_of_postgresql() {
        let of = |fields, digits| SpanModifier { fields, digits };
        for (modifier, typmod, words) in [
            (of(None, Some(3)), 2_147_418_115, "(3)"),
            (of(Some((Year, Year)), None), 327_679, " year"),
            (of(Some((Year, Month)), None), 458_751, " year to month"),
            (of(Some((Day, Second)), None), 470_351_871, " day to second"),
            (
                of(Some((Day, Second)), Some(2)),
                470_286_338,
                " day to second(2)",
            ),
            (
                of(Some((Second, Second)), Some(0)),
                268_435_456,
                " second(0)",
            ),
        ] {
            assert_eq!(modifier.typmod(), typmod);
            assert_eq!(SpanModifier::of_typmod(typmod), Some(modifier));
            assert_eq!(modifier.words(), words);
        }
        assert_eq!(SpanModifier::of_typmod(-1), None);
        assert_eq!(SpanModifier::of_typmod(i32::MAX), None);
        assert_eq!(SpanModifier::of_bits(10, None), None);
    }
}
