//! The proleptic Gregorian calendar: days since 2000-01-01 and years, months, days.
//!
//! Years are astronomical: year 0 is 1 BC, year -1 is 2 BC.

/// Microseconds of a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Microseconds of an hour.
pub const MICROS_PER_HOUR: i64 = 3_600_000_000;
/// Microseconds of a minute.
pub const MICROS_PER_MINUTE: i64 = 60_000_000;
/// Microseconds of a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;

/// Days from the Unix epoch (1970-01-01) to 2000-01-01.
pub const UNIX_EPOCH_DAYS: i32 = 10_957;
/// Microseconds from the Unix epoch to 2000-01-01.
pub const UNIX_EPOCH_MICROS: i64 = UNIX_EPOCH_DAYS as i64 * MICROS_PER_DAY;

/// First supported day, 4714-11-24 BC (Julian day 0), as in PostgreSQL.
pub const DATE_MIN: i32 = -2_451_545;
/// Last supported day, 5874897-12-31.
pub const DATE_MAX: i32 = 2_145_031_948;
/// First supported timestamp, 4714-11-24 00:00 BC.
pub const TIMESTAMP_MIN: i64 = DATE_MIN as i64 * MICROS_PER_DAY;
/// First timestamp that is too late: 294277-01-01 00:00.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// Whether so many microseconds since midnight are a time of day; a whole day is 24:00.
#[inline]
pub fn is_time(micros: i64) -> bool {
    (0..=MICROS_PER_DAY).contains(&micros)
}

/// Days of a 400-year cycle, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 2000-01-01 to 2000-03-01. Counting from March puts the leap day last in its year.
const MARCH_DAYS: i64 = 60;

/// Whether `year` has a 29th of February.
pub fn is_leap(year: i32) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Number of days of `month` (1 to 12) in `year`.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 2000-01-01 of a date; `None` if there is no such day or it is not supported.
pub fn days_from_ymd(year: i32, month: u32, day: u32) -> Option<i32> {
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let months_from_march = (i64::from(month) + 9) % 12;
    let year_from_march = i64::from(year) - i64::from(month <= 2) - 2000;
    let cycle = year_from_march.div_euclid(400);
    let year_of_cycle = year_from_march.rem_euclid(400);
    // 153 days per five months from March on; the division spreads 31 and 30 correctly.
    let day_of_year = (153 * months_from_march + 2) / 5 + i64::from(day) - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    let days = cycle * CYCLE_DAYS + day_of_cycle + MARCH_DAYS;
    i32::try_from(days)
        .ok()
        .filter(|days| (DATE_MIN..=DATE_MAX).contains(days))
}

/// Year, month (1 to 12) and day (1 to 31) of a number of days since 2000-01-01.
pub fn ymd_from_days(days: i32) -> (i32, u32, u32) {
    let days = i64::from(days) - MARCH_DAYS;
    let cycle = days.div_euclid(CYCLE_DAYS);
    let day_of_cycle = days.rem_euclid(CYCLE_DAYS);
    // Take out the leap days so far, then every year has 365 days.
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / (CYCLE_DAYS - 1))
        / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let months_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months_from_march + 2) / 5 + 1;
    let month = (months_from_march + 2) % 12 + 1;
    let year = 2000 + cycle * 400 + year_of_cycle + i64::from(month <= 2);
    (year as i32, month as u32, day as u32)
}

/// Day of the week, 0 is Sunday.
pub fn weekday(days: i32) -> u32 {
    (i64::from(days) + 6).rem_euclid(7) as u32
}

/// Splits a timestamp into days since 2000-01-01 and microseconds of that day.
pub fn split_timestamp(micros: i64) -> (i32, i64) {
    (
        micros.div_euclid(MICROS_PER_DAY) as i32,
        micros.rem_euclid(MICROS_PER_DAY),
    )
}

/// The timestamp of a day and the microseconds in it; `None` outside the supported range.
pub fn join_timestamp(days: i32, micros_of_day: i64) -> Option<i64> {
    let micros = i64::from(days)
        .checked_mul(MICROS_PER_DAY)?
        .checked_add(micros_of_day)?;
    (TIMESTAMP_MIN..TIMESTAMP_END)
        .contains(&micros)
        .then_some(micros)
}

/// The day `months` calendar months later (or earlier); the day of month is cut to the length of
/// the month it lands in. `None` outside the supported range.
pub fn add_months(days: i32, months: i32) -> Option<i32> {
    let (year, month, day) = ymd_from_days(days);
    let total = i64::from(year) * 12 + i64::from(month) - 1 + i64::from(months);
    let year = i32::try_from(total.div_euclid(12)).ok()?;
    let month = total.rem_euclid(12) as u32 + 1;
    days_from_ymd(year, month, day.min(days_in_month(year, month)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(days_from_ymd(2000, 1, 1), Some(0));
        assert_eq!(days_from_ymd(1970, 1, 1), Some(-UNIX_EPOCH_DAYS));
        assert_eq!(days_from_ymd(2024, 2, 29), Some(8_825));
        assert_eq!(days_from_ymd(2023, 2, 29), None);
        assert_eq!(days_from_ymd(2023, 13, 1), None);
        assert_eq!(days_from_ymd(-4713, 11, 24), Some(DATE_MIN));
        assert_eq!(days_from_ymd(-4713, 11, 23), None);
        assert_eq!(days_from_ymd(5_874_897, 12, 31), Some(DATE_MAX));
        assert_eq!(
            days_from_ymd(294_277, 1, 1).map(i64::from),
            Some(TIMESTAMP_END / MICROS_PER_DAY)
        );
        assert_eq!(weekday(0), 6, "2000-01-01 was a Saturday");
        assert_eq!(weekday(-1), 5);
    }

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let start = days_from_ymd(1599, 12, 31).expect("a real day");
        let (mut year, mut month, mut day) = (1599, 12, 31);
        for days in start..start + 2 * CYCLE_DAYS as i32 {
            assert_eq!(ymd_from_days(days), (year, month, day));
            assert_eq!(days_from_ymd(year, month, day), Some(days));
            day += 1;
            if day > days_in_month(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }

    #[test]
    fn extremes_round_trip() {
        for days in [DATE_MIN, DATE_MIN + 1, -1, 0, 1, DATE_MAX - 1, DATE_MAX] {
            let (year, month, day) = ymd_from_days(days);
            assert_eq!(days_from_ymd(year, month, day), Some(days));
        }
    }

    #[test]
    fn months_are_cut_to_the_month_end() {
        let end = days_from_ymd(2024, 1, 31).expect("a real day");
        assert_eq!(add_months(end, 1), days_from_ymd(2024, 2, 29));
        assert_eq!(add_months(end, -2), days_from_ymd(2023, 11, 30));
        assert_eq!(add_months(end, i32::MAX), None);
    }
}
