//! How long the results of text functions may be, given the lengths of their arguments.

use super::{Numbers, Range, Values};
use alloc::vec::Vec;
use base::limits::PROGRAM_BYTES_MAX;
use base::strings::StringFunc;
use base::{Decimal, Type};

/// Most bytes of a character.
const CHARACTER_BYTES_MAX: usize = 4;
/// Most bytes of the text form of a date.
const DATE_BYTES_MAX: usize = 24;

/// Lengths of texts; of bytes, each is a character.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Texts {
    /// Most bytes.
    pub(super) bytes: usize,
    /// Fewest characters.
    pub(super) least: usize,
    /// Most characters.
    pub(super) most: usize,
}

impl Texts {
    pub(super) fn of_text(text: &str) -> Texts {
        let chars = text.chars().count();
        Texts {
            bytes: text.len(),
            least: chars,
            most: chars,
        }
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Texts {
        Texts {
            bytes: bytes.len(),
            least: bytes.len(),
            most: bytes.len(),
        }
    }

    pub(super) fn or(self, other: Texts) -> Texts {
        Texts {
            bytes: self.bytes.max(other.bytes),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// One of these texts, and one of the others behind it. `None`: that may be too long.
    pub(super) fn then(self, other: Texts) -> Option<Texts> {
        let both = Texts {
            bytes: self.bytes.checked_add(other.bytes)?,
            least: self.least.checked_add(other.least)?,
            most: self.most.checked_add(other.most)?,
        };
        both.checked()
    }

    /// The texts, if none is too long.
    fn checked(self) -> Option<Texts> {
        let bytes = self.most.saturating_mul(CHARACTER_BYTES_MAX);
        let bytes = bytes.min(self.bytes);
        (bytes <= PROGRAM_BYTES_MAX).then_some(Texts { bytes, ..self })
    }

    /// Any part with at most so many characters.
    fn parts(self, most: usize) -> Option<Texts> {
        let part = Texts {
            least: 0,
            most: self.most.min(most),
            ..self
        };
        part.checked()
    }

    /// `count` characters from one end, or all but as many if it is negative.
    fn end(self, count: Whole) -> Option<Texts> {
        let (mut least, mut most) = (self.least, 0);
        if count.high >= 0 {
            most = self.most.min(size(count.high));
            least = least.min(size(count.low));
        }
        if count.low < 0 {
            let fewest = count.high.min(-1).unsigned_abs();
            most = most.max(self.most.saturating_sub(fewest as usize));
            least = least.min(self.least.saturating_sub(count.low.unsigned_abs() as usize));
        }
        Texts {
            least,
            most,
            ..self
        }
        .checked()
    }

    fn padded(self, width: Whole, fill: Texts) -> Option<Texts> {
        let (least, most) = (size(width.low), size(width.high));
        // The width alone is looked at, too, whatever is to be done.
        if most > PROGRAM_BYTES_MAX {
            return None;
        }
        let each = fill.bytes.min(CHARACTER_BYTES_MAX);
        let padded = Texts {
            bytes: self.bytes.saturating_add(most.saturating_mul(each)),
            least: match fill.least {
                0 => least.min(self.least),
                _ => least,
            },
            most,
        };
        padded.checked()
    }

    fn repeated(self, count: Whole) -> Option<Texts> {
        let (fewest, count) = (size(count.low), size(count.high));
        let repeated = Texts {
            bytes: self.bytes.checked_mul(count)?,
            least: self.least.checked_mul(fewest)?,
            most: self.most.checked_mul(count)?,
        };
        repeated.checked()
    }

    /// With another part in place of each one of `from`.
    fn replaced(self, from: Texts, to: Texts) -> Option<Texts> {
        // What is replaced has a character at least, and as many bytes as characters.
        let part = from.least.max(1);
        let found = self.most / part;
        let more = |of: usize| found.saturating_mul(of.saturating_sub(part));
        let replaced = Texts {
            bytes: self.bytes.saturating_add(more(to.bytes)),
            least: match to.least >= from.most {
                true => self.least,
                false => 0,
            },
            most: self.most.saturating_add(more(to.most)),
        };
        replaced.checked()
    }

    /// In another case. Two bytes become three at most, see `base::strings`.
    fn in_other_case(self) -> Option<Texts> {
        let bytes = self.bytes.saturating_add(self.bytes / 2);
        Texts { bytes, ..self }.checked()
    }
}

/// Whole numbers from `low` to `high`.
#[derive(Clone, Copy)]
struct Whole {
    low: i64,
    high: i64,
}

/// As a number of characters; negative numbers are 0.
fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn numbers(low: usize, high: usize) -> Values {
    let number = |of: usize| Decimal::from(i64::try_from(of).unwrap_or(i64::MAX));
    Values::Numbers(Numbers {
        low: number(low),
        high: number(high),
        scale: 0,
    })
}

/// Other characters in place of some.
pub(super) fn translated(text: Texts) -> Option<Texts> {
    let changed = Texts {
        bytes: text.most.checked_mul(CHARACTER_BYTES_MAX)?,
        least: 0,
        ..text
    };
    changed.checked()
}

/// Any part of a text.
pub(super) fn any_part(text: Texts) -> Option<Texts> {
    text.parts(usize::MAX)
}

/// What the function makes of its arguments; `None`: it may fail.
pub(super) fn of_function(func: StringFunc, args: &[Range]) -> Option<Range> {
    match func {
        StringFunc::Concat => return joined(Texts::of_text(""), args, false),
        StringFunc::ConcatWs => {
            let (separator, parts) = args.split_first()?;
            return match &separator.values {
                None => Some(separator.clone()),
                Some(values) => joined(values.texts()?, parts, separator.null),
            };
        }
        _ => {}
    }
    let null = args.iter().any(|arg| arg.null);
    let known: Option<Vec<&Values>> = args.iter().map(|arg| arg.values.as_ref()).collect();
    let values = match known {
        Some(known) => Some(of_values(func, &known)?),
        None => None,
    };
    Some(Range { null, values })
}

fn of_values(func: StringFunc, args: &[&Values]) -> Option<Values> {
    let text = args.first()?.texts()?;
    let texts = |at: usize| args.get(at)?.texts();
    let whole = |at: usize| args.get(at)?.whole();
    let made = match func {
        StringFunc::Length => return Some(numbers(text.least, text.most)),
        StringFunc::OctetLength => return Some(numbers(text.least, text.bytes)),
        StringFunc::BitLength => return Some(numbers(8 * text.least, 8 * text.bytes)),
        // An empty part is found in front of the first character.
        StringFunc::Position => return Some(numbers(0, text.most + 1)),
        StringFunc::Ascii => return Some(numbers(0, char::MAX as usize)),
        StringFunc::StartsWith => return Some(Values::Others(1)),
        StringFunc::Lower | StringFunc::Upper | StringFunc::InitCap => text.in_other_case(),
        StringFunc::TrimLeft | StringFunc::TrimRight | StringFunc::TrimBoth => {
            text.parts(usize::MAX)
        }
        StringFunc::Substring if args.len() < 3 => whole(1).and_then(|_| text.parts(usize::MAX)),
        StringFunc::Substring => {
            let length = whole(2).filter(|length| length.low >= 0)?;
            whole(1).and_then(|_| text.parts(size(length.high)))
        }
        StringFunc::Left | StringFunc::Right => text.end(whole(1)?),
        StringFunc::PadLeft | StringFunc::PadRight => {
            let fill = match args.len() {
                2 => Texts::of_text(" "),
                _ => texts(2)?,
            };
            text.padded(whole(1)?, fill)
        }
        StringFunc::Repeat => text.repeated(whole(1)?),
        StringFunc::Replace => text.replaced(texts(1)?, texts(2)?),
        StringFunc::Reverse => text.checked(),
        StringFunc::Concat | StringFunc::ConcatWs => None,
    };
    made.map(Values::Texts)
}

/// The parts that are not NULL, one behind the other.
fn joined(separator: Texts, parts: &[Range], null: bool) -> Option<Range> {
    let mut all = Texts::of_text("");
    for (at, part) in parts.iter().enumerate() {
        let Some(values) = &part.values else {
            continue;
        };
        let own = values.texts()?;
        let mut texts = match at {
            0 => own,
            _ => own.then(separator)?,
        };
        // There is no separator if all other parts are NULL.
        texts.least = if part.null { 0 } else { own.least };
        all = all.then(texts)?;
    }
    Some(Range {
        null,
        values: Some(Values::Texts(all)),
    })
}

/// The text forms of values of the type; `None`: it is none whose text forms have bounds.
pub(super) fn output(of: &Range, ty: Type) -> Option<Range> {
    let values = match (ty, &of.values) {
        (_, None) => return Some(of.clone()),
        (Type::Bool, Some(Values::Others(_))) => Texts::of_text("t"),
        (Type::Date, Some(Values::Others(_) | Values::Moments(_))) => Texts {
            bytes: DATE_BYTES_MAX,
            least: 1,
            most: DATE_BYTES_MAX,
        },
        (
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric(_),
            Some(Values::Numbers(numbers)),
        ) => {
            let point = usize::from(numbers.scale > 0) + usize::from(numbers.scale);
            let sign = usize::from(numbers.low < Decimal::ZERO);
            let most = sign + numbers.whole_digits().max(1) as usize + point;
            Texts {
                bytes: most,
                least: 1,
                most,
            }
        }
        _ => return None,
    };
    Some(Range {
        null: of.null,
        values: Some(Values::Texts(values)),
    })
}

impl Values {
    fn texts(&self) -> Option<Texts> {
        match self {
            Values::Texts(texts) => Some(*texts),
            _ => None,
        }
    }

    fn whole(&self) -> Option<Whole> {
        let Values::Numbers(numbers) = self else {
            return None;
        };
        Some(Whole {
            low: numbers.low.floor().ok()?.to_i64_exact()?,
            high: numbers.high.ceil().ok()?.to_i64_exact()?,
        })
    }
}
