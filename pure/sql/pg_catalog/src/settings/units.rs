//! Numbers with units, as `SET statement_timeout = '5s'` and SHOW have them.

/// What an integer setting counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Things.
    None,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// Kibibytes.
    KiB,
    /// Blocks of 8 KiB.
    Blocks,
}

/// One spelling of a unit and how many of the base (microseconds, bytes) it is.
type Spelling = (&'static str, i64);

/// Largest first: SHOW prints the largest unit that divides the value.
const TIMES: [Spelling; 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
const SIZES: [Spelling; 5] = [
    ("TB", 1 << 40),
    ("GB", 1 << 30),
    ("MB", 1 << 20),
    ("kB", 1 << 10),
    ("B", 1),
];

const TIME_HINT: &str = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \
     \"h\", and \"d\".";
const SIZE_HINT: &str = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \
     \"TB\".";

impl Unit {
    /// Spellings of the unit, the size of one, and the hint for any other spelling.
    fn scale(self) -> (&'static [Spelling], i64, &'static str) {
        match self {
            Unit::None => (&[], 1, ""),
            Unit::Millis => (&TIMES, 1_000, TIME_HINT),
            Unit::Seconds => (&TIMES, 1_000_000, TIME_HINT),
            Unit::KiB => (&SIZES, 1 << 10, SIZE_HINT),
            Unit::Blocks => (&SIZES, 8 << 10, SIZE_HINT),
        }
    }

    /// The word of pg_settings; `None` for plain numbers.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Unit::None => None,
            Unit::Millis => Some("ms"),
            Unit::Seconds => Some("s"),
            Unit::KiB => Some("kB"),
            Unit::Blocks => Some("8kB"),
        }
    }
}

/// Reads a number with an optional unit, as a count of `unit`, rounded to the nearest. The error
/// is a hint, or empty.
pub(super) fn parse(text: &str, unit: Unit) -> Result<i64, &'static str> {
    let (spellings, one, hint) = unit.scale();
    let text = text.trim();
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, suffix) = (text[..split].trim_end(), text[split..].trim_end());
    let factor = match suffix {
        "" => one,
        _ => {
            spellings
                .iter()
                .find(|(name, _)| *name == suffix)
                .ok_or(hint)?
                .1
        }
    };
    if let Ok(whole) = number.parse::<i64>() {
        let total = i128::from(whole) * i128::from(factor);
        let half = i128::from(one / 2) * total.signum();
        return i64::try_from((total + half) / i128::from(one)).map_err(|_| "");
    }
    let fraction = number.parse::<f64>().map_err(|_| "")?;
    let value = (fraction * factor as f64 / one as f64).round();
    // The cast is exact enough for every range of the table and saturates beyond.
    if value.is_finite() {
        Ok(value as i64)
    } else {
        Err("")
    }
}

/// The value as SHOW prints it: in the largest unit without a rest; 0 and negative values (which
/// mean "off") without unit.
pub(super) fn format(number: i64, unit: Unit) -> String {
    let (spellings, one, _) = unit.scale();
    let total = number.saturating_mul(one);
    if number <= 0 || total / one != number {
        return number.to_string();
    }
    match spellings.iter().find(|(_, factor)| total % factor == 0) {
        Some((name, factor)) => format!("{}{name}", total / factor),
        None => number.to_string(),
    }
}
