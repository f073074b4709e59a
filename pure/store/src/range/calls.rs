//! Ranges of the functions of [`ValueFunc`].

use super::floats::{self, Floats};
use super::texts::{self, Texts};
use super::{Range, Ranges, Values, arrays, jsons, moments};
use crate::computed::{Computed, ValueFunc};
use alloc::vec::Vec;
use base::{Datum, Decimal, Type};

/// Most characters that `translate` looks for: each character of a text is compared with all.
const TRANSLATED_MAX: usize = 256;

/// What the function may give; `None`: it may fail.
pub(super) fn of_call(
    func: ValueFunc,
    args: &[Computed],
    ty: Type,
    columns: &Ranges<'_>,
) -> Option<Range> {
    let ranges = args.iter().map(|arg| Range::of_computed(arg, columns));
    let ranges: Vec<Range> = ranges.collect::<Option<_>>()?;
    if func.is_strict() && ranges.iter().any(|range| range.values.is_none()) {
        return Some(Range {
            null: true,
            values: None,
        });
    }
    match func {
        ValueFunc::MakeArray
        | ValueFunc::Item
        | ValueFunc::ArrayLength
        | ValueFunc::Cardinality
        | ValueFunc::ArrayAppend
        | ValueFunc::ArrayPrepend
        | ValueFunc::ArrayCat
        | ValueFunc::ArrayRemove
        | ValueFunc::ArrayReplace
        | ValueFunc::ArrayPosition => return arrays::of_function(func, &ranges),
        ValueFunc::JsonFrom(_)
        | ValueFunc::JsonGet
        | ValueFunc::JsonGetText
        | ValueFunc::JsonPath
        | ValueFunc::JsonPathText
        | ValueFunc::JsonConcat
        | ValueFunc::JsonDeleteKey
        | ValueFunc::JsonSet
        | ValueFunc::JsonObject
        | ValueFunc::JsonArray => return jsons::of_function(func, &ranges),
        _ => {}
    }
    let values: Vec<&Values> = ranges.iter().filter_map(|it| it.values.as_ref()).collect();
    let made = match func {
        ValueFunc::TruncateDate | ValueFunc::Extract { .. } => {
            let [Computed::Const(unit), _] = args else {
                return None;
            };
            moments::of_unit(func, unit, values.get(1)?, ty)?
        }
        ValueFunc::Convert { from, .. } => converted(func, values.first()?, from, ty)?,
        _ => of_values(func, &values, ty)?,
    };
    let made = Range {
        null: ranges.iter().any(|range| range.null),
        values: Some(made),
    };
    match func {
        ValueFunc::Convert { .. } => made.kept(ty),
        _ => Some(made),
    }
}

fn converted(func: ValueFunc, of: &Values, from: Type, to: Type) -> Option<Values> {
    let is_float = |ty: Type| matches!(ty, Type::Float4 | Type::Float8);
    Some(match of {
        Values::Floats(of) if is_float(to) => Values::Floats(of.kept(to)?),
        Values::Floats(of) => Values::Numbers(of.numbers(func, from, to)?),
        Values::Numbers(of) if is_float(to) => {
            Values::Floats(Floats::of_numbers(*of, func, from, to)?)
        }
        Values::Moments(_) | Values::Spans(_) => moments::converted(func, of, to)?,
        _ => return None,
    })
}

fn of_values(func: ValueFunc, args: &[&Values], ty: Type) -> Option<Values> {
    let digits = |bytes: usize| {
        Values::Texts(Texts {
            bytes,
            least: bytes,
            most: bytes,
        })
    };
    Some(match func {
        ValueFunc::Md5 => digits(32),
        ValueFunc::Sha224 => digits(28),
        ValueFunc::Sha256 => digits(32),
        ValueFunc::Sha384 => digits(48),
        ValueFunc::Sha512 => digits(64),
        ValueFunc::ToHex4 | ValueFunc::ToHex8 => Values::Texts(Texts {
            bytes: 16,
            least: 1,
            most: 16,
        }),
        ValueFunc::Translate => {
            let [Values::Texts(text), Values::Texts(from), _] = args else {
                return None;
            };
            (from.most <= TRANSLATED_MAX).then_some(())?;
            Values::Texts(texts::translated(*text)?)
        }
        ValueFunc::SplitPart => {
            let [Values::Texts(text), _, Values::Numbers(field)] = args else {
                return None;
            };
            // There is no part 0, and counting from the end keeps all parts.
            (field.low >= Decimal::ONE).then_some(())?;
            Values::Texts(texts::any_part(*text)?)
        }
        _ => match args {
            [Values::Floats(a)] => floats::of_one(func, *a, ty)?,
            [Values::Floats(a), Values::Floats(b)] => floats::of_two(func, *a, *b, ty)?,
            [Values::Spans(_)] if func == ValueFunc::Negate => {
                let zero = Range::of(&Datum::Interval(Default::default())).values?;
                moments::arithmetic(ValueFunc::Subtract, &zero, args[0], ty)?
            }
            [a, b] => moments::arithmetic(func, a, b, ty)?,
            _ => return None,
        },
    })
}
