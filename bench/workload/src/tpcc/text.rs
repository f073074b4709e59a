//! Numbers and times as the text that SQL reads and writes: exact, without floating point.

use alloc::vec::Vec;

/// Appends a decimal integer.
pub fn push_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value / 10^places` with exactly `places` digits after the point (1 to 9).
pub fn push_fixed(value: i64, places: u32, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    let unit = 10u64.pow(places);
    let size = value.unsigned_abs();
    push_int((size / unit) as i64, out);
    out.push(b'.');
    let mut fraction = size % unit;
    let mut divisor = unit / 10;
    while divisor > 0 {
        out.push(b'0' + (fraction / divisor) as u8);
        fraction %= divisor;
        divisor /= 10;
    }
}

/// Appends money: `cents` with two digits after the point.
pub fn push_cents(cents: i64, out: &mut Vec<u8>) {
    push_fixed(cents, 2, out);
}

/// Reads a decimal number as an integer count of `10^-places`. `None` when the text is not a
/// plain decimal number, has a nonzero digit beyond `places`, or does not fit.
pub fn parse_fixed(text: &[u8], places: u32) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value: i64 = 0;
    let mut after_point: Option<u32> = None;
    let mut seen = false;
    for &byte in digits {
        match byte {
            b'.' if after_point.is_none() => after_point = Some(0),
            b'0'..=b'9' => {
                seen = true;
                if after_point == Some(places) {
                    if byte != b'0' {
                        return None;
                    }
                    continue;
                }
                after_point = after_point.map(|n| n + 1);
                value = value.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
            }
            _ => return None,
        }
    }
    let missing = places - after_point.unwrap_or(0);
    value = value.checked_mul(10i64.checked_pow(missing)?)?;
    seen.then_some(if negative { -value } else { value })
}

/// Appends a time as `YYYY-MM-DD hh:mm:ss.uuuuuu` (UTC), from microseconds since 1970.
pub fn push_timestamp(unix_us: u64, out: &mut Vec<u8>) {
    let (days, in_day_us) = (unix_us / 86_400_000_000, unix_us % 86_400_000_000);
    // Days since 0000-03-01, so that the leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let seconds = in_day_us / 1_000_000;
    for (value, width, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b' '),
        (seconds / 3_600, 2, b':'),
        (seconds / 60 % 60, 2, b':'),
        (seconds % 60, 2, b'.'),
    ] {
        push_padded(value, width, out);
        out.push(end);
    }
    push_padded(in_day_us % 1_000_000, 6, out);
}

fn push_padded(value: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    push_int(value as i64, out);
    while out.len() - start < width {
        out.insert(start, b'0');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(value: i64, places: u32) -> String {
        let mut out = Vec::new();
        push_fixed(value, places, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn money_is_exact_both_ways() {
        for (cents, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (-1000, "-10.00"),
            (-7, "-0.07"),
            (3_000_000, "30000.00"),
        ] {
            assert_eq!(fixed(cents, 2), text);
            assert_eq!(parse_fixed(text.as_bytes(), 2), Some(cents));
        }
        assert_eq!(fixed(1999, 4), "0.1999");
        assert_eq!(parse_fixed(b"7", 2), Some(700));
        assert_eq!(parse_fixed(b"7.5", 2), Some(750));
        assert_eq!(parse_fixed(b"7.5000", 2), Some(750));
        assert_eq!(parse_fixed(b"7.501", 2), None);
        for bad in ["", "-", ".", "1e3", "NaN", "1.2.3", "99999999999999999999"] {
            assert_eq!(parse_fixed(bad.as_bytes(), 2), None, "{bad}");
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (us, text) in [
            (0, "1970-01-01 00:00:00.000000"),
            (951_782_400_000_000, "2000-02-29 00:00:00.000000"),
            (1_709_251_199_999_999, "2024-02-29 23:59:59.999999"),
            (1_709_251_200_000_000, "2024-03-01 00:00:00.000000"),
            (1_767_225_599_000_001, "2025-12-31 23:59:59.000001"),
        ] {
            let mut out = Vec::new();
            push_timestamp(us, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }

    #[test]
    fn integers_print_at_their_limits() {
        for value in [0, 9, 10, -1, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_int(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
