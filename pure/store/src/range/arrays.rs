//! How long arrays may be, and what their items may be.

use super::{Numbers, Range, Values};
use crate::computed::ValueFunc;
use alloc::boxed::Box;
use base::limits::PROGRAM_BYTES_MAX;
use base::row::value_len;
use base::{Datum, Decimal};

/// Most bytes of an array beside its items.
const HEADER_BYTES: usize = 16;
/// Most bytes of an array for each item, beside the item.
const PLACE_BYTES: usize = 5;
/// Most bytes of a number, moment or interval.
const NUMBER_BYTES: usize = 17;

/// Arrays, with what holds for each of them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Arrays {
    /// Most items.
    pub(super) items: usize,
    /// Most bytes of all items.
    bytes: usize,
    /// What an item may be.
    item: Box<Range>,
}

/// Most bytes of a value in an array.
fn payload(of: &Range) -> usize {
    match &of.values {
        None => 0,
        Some(Values::Numbers(_) | Values::Floats(_) | Values::Moments(_) | Values::Spans(_)) => {
            NUMBER_BYTES
        }
        Some(Values::Texts(_) | Values::Arrays(_) | Values::Json(_) | Values::Others(_)) => {
            of.bytes_max()
        }
    }
}

impl Arrays {
    pub(super) fn of(items: &[Datum]) -> Arrays {
        let mut all: Option<Range> = None;
        for item in items {
            let item = Range::of(item);
            all = Some(all.map_or_else(|| item.clone(), |all| all.or(&item)));
        }
        Arrays {
            items: items.len(),
            bytes: items.iter().map(value_len).sum(),
            item: Box::new(all.unwrap_or(Range {
                null: false,
                values: None,
            })),
        }
    }

    pub(super) fn or(&self, other: &Arrays) -> Arrays {
        Arrays {
            items: self.items.max(other.items),
            bytes: self.bytes.max(other.bytes),
            item: Box::new(self.item.or(&other.item)),
        }
    }

    /// Most bytes.
    pub(super) fn bytes_max(&self) -> usize {
        let places = self.items.saturating_mul(PLACE_BYTES);
        places
            .saturating_add(self.bytes)
            .saturating_add(HEADER_BYTES)
    }

    /// Whether an item may be NULL.
    pub(super) fn has_null(&self) -> bool {
        self.item.null
    }

    /// The arrays, if none is too long.
    fn checked(self) -> Option<Arrays> {
        (self.bytes_max() <= PROGRAM_BYTES_MAX).then_some(self)
    }

    /// One of these, and one of the others behind it.
    fn then(&self, other: &Arrays) -> Option<Arrays> {
        let both = Arrays {
            items: self.items.checked_add(other.items)?,
            bytes: self.bytes.checked_add(other.bytes)?,
            item: Box::new(self.item.or(&other.item)),
        };
        both.checked()
    }

    /// An array of one item.
    fn one(item: &Range) -> Arrays {
        Arrays {
            items: 1,
            bytes: payload(item),
            item: Box::new(item.clone()),
        }
    }

    fn empty() -> Arrays {
        Arrays {
            items: 0,
            bytes: 0,
            item: Box::new(Range {
                null: false,
                values: None,
            }),
        }
    }
}

fn counted(least: usize, most: usize, null: bool) -> Range {
    let number = |of: usize| Decimal::from(i64::try_from(of).unwrap_or(i64::MAX));
    Range {
        null,
        values: Some(Values::Numbers(Numbers {
            low: number(least),
            high: number(most),
            scale: 0,
        })),
    }
}

/// What a function of arrays gives; `None`: it may fail.
pub(super) fn of_function(func: ValueFunc, args: &[Range]) -> Option<Range> {
    // NULL is as an array without items, or the result is NULL.
    let array = |at: usize| match &args.get(at)?.values {
        Some(Values::Arrays(arrays)) => Some(arrays.clone()),
        None => Some(Arrays::empty()),
        Some(_) => None,
    };
    let made = |null: bool, arrays: Arrays| Range {
        null,
        values: Some(Values::Arrays(arrays)),
    };
    let null = args.first().is_some_and(|first| first.null);
    Some(match func {
        ValueFunc::MakeArray => {
            let mut all = Arrays::empty();
            for item in args {
                all = all.then(&Arrays::one(item))?;
            }
            made(false, all)
        }
        ValueFunc::Item => Range {
            null: true,
            values: array(0)?.item.values,
        },
        ValueFunc::ArrayLength => counted(1, array(0)?.items.max(1), true),
        ValueFunc::ArrayPosition => counted(1, array(0)?.items.max(1), true),
        ValueFunc::Cardinality => counted(0, array(0)?.items, null),
        ValueFunc::ArrayAppend => made(false, array(0)?.then(&Arrays::one(args.get(1)?))?),
        ValueFunc::ArrayPrepend => made(false, array(1)?.then(&Arrays::one(args.first()?))?),
        ValueFunc::ArrayCat => made(null && args.get(1)?.null, array(0)?.then(&array(1)?)?),
        ValueFunc::ArrayRemove => made(null, array(0)?),
        ValueFunc::ArrayReplace => {
            let (of, to) = (array(0)?, args.get(2)?);
            let more = Arrays {
                items: 0,
                bytes: of.items.checked_mul(payload(to))?,
                item: Box::new(to.clone()),
            };
            made(null, of.then(&more)?)
        }
        _ => return None,
    })
}
