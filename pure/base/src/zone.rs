//! Time zones by name, from a copy of the IANA database that is part of the program: no file is
//! read, and every node answers alike.

use crate::calendar::{MICROS_PER_DAY, MICROS_PER_SECOND, UNIX_EPOCH_MICROS};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

/// Days after which the rules of every zone repeat: 400 years of the calendar.
const CYCLE_MICROS: i64 = 146_097 * MICROS_PER_DAY;
/// The years for which the database is asked lie between these moments since 1970 (about the years
/// -9000 and 9000); later ones are like those one or more cycles before.
const ASKED_MICROS_MAX: i64 = 7_030 * 365 * MICROS_PER_DAY;
const ASKED_MICROS_MIN: i64 = -10_900 * 365 * MICROS_PER_DAY;

/// A time zone with its history.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// A zone at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneAt {
    /// Seconds east of UTC.
    pub offset: i64,
    /// Short name, such as `CEST`.
    pub abbreviation: String,
    /// Whether it is daylight saving time.
    pub is_dst: bool,
}

impl Zone {
    /// The zone of that name, in any case, or of a rule as POSIX writes it (`<+02>-02`,
    /// `UTC+3`); `None` if there is none.
    pub fn named(name: &str) -> Option<Zone> {
        if let Ok(zone) = TimeZoneDatabase::bundled().get(name) {
            return Some(Zone(zone));
        }
        // A rule of one offset, whose short name may hold a colon.
        if let Some((_, west)) = name.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            let (sign, clock) = match west.strip_prefix('-') {
                Some(clock) => (1, clock),
                None => (-1, west.strip_prefix('+').unwrap_or(west)),
            };
            let mut seconds = 0;
            for (part, unit) in clock.splitn(3, ':').zip([3_600, 60, 1]) {
                seconds += part.parse::<u8>().ok().map(i32::from)? * unit;
            }
            let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok()?;
            return Some(Zone(TimeZone::fixed(offset)));
        }
        let rule = name.bytes().any(|byte| byte.is_ascii_digit());
        if !rule {
            return None;
        }
        TimeZone::posix(name).ok().map(Zone)
    }

    /// The zone that a value of the setting `TimeZone` means, as SHOW prints it: a name, a rule,
    /// or hours east of UTC (`-7`, `5.5`).
    pub fn setting(value: &str) -> Option<String> {
        let value = value.trim();
        if let Ok(hours) = value.parse::<f64>() {
            let seconds = (hours * 3_600.0) as i64;
            if !hours.is_finite() || seconds.abs() > 25 * 3_600 {
                return None;
            }
            let (sign, back) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
            let seconds = seconds.abs();
            let mut clock = format!("{:02}", seconds / 3_600);
            if seconds % 3_600 != 0 {
                clock.push_str(&format!(":{:02}", seconds / 60 % 60));
            }
            if seconds % 60 != 0 {
                clock.push_str(&format!(":{:02}", seconds % 60));
            }
            return Some(format!("<{sign}{clock}>{back}{clock}"));
        }
        let zone = Zone::named(value)?;
        let name = zone.0.iana_name().unwrap_or(value);
        Some(name.to_string())
    }

    /// Its name as the database spells it.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The zone at a moment in microseconds since 2000-01-01 UTC.
    pub fn at(&self, micros: i64) -> ZoneAt {
        let info = self.0.to_offset_info(asked(micros));
        ZoneAt {
            offset: info.offset().seconds().into(),
            abbreviation: info.abbreviation().to_string(),
            is_dst: info.dst().is_dst(),
        }
    }

    /// Seconds east of UTC at a moment in microseconds since 2000-01-01 UTC.
    pub fn offset_at(&self, micros: i64) -> i64 {
        self.0.to_offset(asked(micros)).seconds().into()
    }

    /// Seconds east of UTC at a local time, given as a timestamp without zone. As in PostgreSQL a
    /// time that a change skips is counted by the offset before the change, and one that occurs
    /// twice by the offset after it.
    pub fn offset_of_local(&self, micros: i64) -> i64 {
        let local = jiff::tz::Offset::UTC.to_datetime(asked(micros));
        let offset = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        offset.seconds().into()
    }
}

/// A moment that the database can be asked for and that has the same rules.
fn asked(micros: i64) -> Timestamp {
    let mut since_1970 = i128::from(micros) + i128::from(UNIX_EPOCH_MICROS.unsigned_abs());
    let beyond = since_1970 - i128::from(ASKED_MICROS_MAX);
    if beyond > 0 {
        let cycle = i128::from(CYCLE_MICROS);
        since_1970 -= (beyond + cycle - 1) / cycle * cycle;
    }
    let since_1970 = since_1970.max(ASKED_MICROS_MIN.into()) as i64;
    let seconds = since_1970.div_euclid(MICROS_PER_SECOND);
    let micros = since_1970.rem_euclid(MICROS_PER_SECOND);
    Timestamp::new(seconds, micros as i32 * 1_000).expect("the range was cut")
}

/// Names of all zones, in order.
pub fn names() -> Vec<String> {
    let database = TimeZoneDatabase::bundled();
    let mut names: Vec<String> = database.available().map(|name| name.to_string()).collect();
    names.sort();
    names
}

/// Seconds east of UTC of an abbreviation in lower case that means one offset.
pub fn abbreviation(word: &str) -> Option<i64> {
    let hours = match word {
        "z" | "utc" | "gmt" | "ut" | "uct" | "zulu" => 0,
        "cet" | "met" => 1,
        "cest" | "eet" | "mest" => 2,
        "eest" => 3,
        "est" | "cdt" => -5,
        "edt" => -4,
        "cst" | "mdt" => -6,
        "mst" | "pdt" => -7,
        "pst" => -8,
        _ => return None,
    };
    Some(hours * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{days_from_ymd, join_timestamp};

    fn micros(year: i32, month: u32, day: u32, hour: i64) -> i64 {
        let days = days_from_ymd(year, month, day).expect("a day");
        join_timestamp(days, hour * 3_600 * MICROS_PER_SECOND).expect("in range")
    }

    #[test]
    fn offsets_follow_the_history_of_a_zone() {
        let berlin = Zone::named("europe/BERLIN").expect("it exists");
        assert_eq!(berlin.name(), "Europe/Berlin");
        for (moment, hours) in [
            (micros(2024, 1, 1, 0), 1),
            (micros(2024, 7, 1, 0), 2),
            (micros(1975, 7, 1, 0), 1),
            // Far beyond what the database has in years, by its last rule.
            (micros(9_990, 7, 1, 0), 2),
            (micros(200_000, 7, 1, 0), 2),
            (micros(200_000, 1, 1, 0), 1),
        ] {
            assert_eq!(berlin.offset_at(moment), hours * 3_600, "{moment}");
        }
        assert_eq!(
            berlin.offset_at(micros(-4_000, 1, 1, 0)),
            3_208,
            "local mean time"
        );
        // Skipped and repeated hours.
        assert_eq!(berlin.offset_of_local(micros(2024, 3, 31, 2)), 3_600);
        assert_eq!(berlin.offset_of_local(micros(2024, 10, 27, 2)), 3_600);
        assert_eq!(berlin.offset_of_local(micros(2024, 10, 27, 1)), 7_200);
        assert_eq!(
            Zone::named("Nowhere/Land").map(|zone| zone.name().to_string()),
            None
        );
        assert!(names().len() > 400);
        let info = berlin.at(micros(2024, 7, 1, 0));
        assert_eq!((&*info.abbreviation, info.is_dst), ("CEST", true));
    }
}
