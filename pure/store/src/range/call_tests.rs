//! Ranges of random functions of floats, moments, arrays and `jsonb`, against their values.

use super::*;
use crate::computed::ValueFunc::{self, *};
use crate::{ColumnFormula, Formula, FormulaOp};
use alloc::boxed::Box;
use alloc::string::String;
use base::datum::Interval;
use base::row::{self, RowRef};
use base::{ArrayKind, Jsonb, Prng};

const F8: Type = Type::Float8;
const F4: Type = Type::Float4;
const I4: Type = Type::Int4;
const I8: Type = Type::Int8;
const DEC: Type = Type::Numeric(Some((9, 3)));
const DATE: Type = Type::Date;
const STAMP: Type = Type::Timestamp(None);
const TIME: Type = Type::Time(None);
const SPAN: Type = Type::Interval(None);
const INTS: Type = Type::Array(ArrayKind::Int4);
const TEXTS: Type = Type::Array(ArrayKind::Text);
const JSON: Type = Type::Jsonb;
const TEXT: Type = Type::Text;

const TYPES: [Type; 13] = [
    F8, F4, I4, I8, DEC, DATE, STAMP, TIME, SPAN, INTS, TEXTS, JSON, TEXT,
];

fn column(ty: Type) -> u16 {
    let found = TYPES.iter().position(|it| *it == ty);
    found.expect("there is a column of each type") as u16
}

fn float(prng: &mut Prng, ty: Type) -> f64 {
    let value = match prng.below(16) {
        0 => 0.0,
        1 => -0.0,
        2 => f64::from_bits(prng.next_u64()),
        3 => f64::INFINITY,
        4 => 1e-300 * prng.between(-9, 9) as f64,
        5 => 3e300 * prng.between(-9, 9) as f64,
        6 => 5e-324 * prng.between(-9, 9) as f64,
        7 => 1e-40 * prng.between(-9, 9) as f64,
        8 => 1e30 * prng.between(-9, 9) as f64,
        9..=12 => prng.between(-40, 40) as f64 / 8.0,
        _ => prng.between(-4_000, 4_000) as f64 / 10.0,
    };
    if ty == F4 {
        f64::from(value as f32)
    } else {
        value
    }
}

fn span(prng: &mut Prng) -> Interval {
    if prng.below(3) == 0 {
        return Interval {
            months: 1,
            ..Interval::default()
        };
    }
    let wide = prng.below(6) == 0;
    let part = |prng: &mut Prng, most: i64| match prng.below(3) {
        0 => 0,
        _ if wide => prng.between(-1_000 * most, 1_000 * most),
        _ => prng.between(-most, most),
    };
    Interval {
        months: part(prng, 40) as i32,
        days: part(prng, 400) as i32,
        micros: part(prng, 90_000_000_000),
    }
}

fn json(prng: &mut Prng, depth: u32) -> String {
    match prng.below(8) {
        0 => "null".into(),
        1 => "\"a\\n\"".into(),
        2 => "[1, \"a\"]".into(),
        3 if depth > 0 => alloc::format!("[{}]", json(prng, depth - 1)),
        4 => "7.50".into(),
        _ if depth > 0 => alloc::format!(
            "{{\"a\": {}, \"b\": {}}}",
            json(prng, depth - 1),
            json(prng, depth - 1)
        ),
        _ => "{}".into(),
    }
}

fn value(prng: &mut Prng, ty: Type) -> Datum {
    if prng.below(14) == 0 {
        return Datum::Null;
    }
    let edge = prng.below(10) == 0;
    match ty {
        Type::Float8 | Type::Float4 => Datum::Float(float(prng, ty)),
        Type::Int4 => Datum::Int(prng.between(-9, 300)),
        Type::Int8 if edge => Datum::Int(prng.next_u64() as i64),
        Type::Int8 => Datum::Int(prng.between(-5_000_000_000, 5_000_000_000)),
        Type::Numeric(_) => {
            let unscaled = prng.between(-99_999, 99_999);
            Datum::Decimal(Decimal::from_parts(unscaled.into(), 3).expect("it is small"))
        }
        Type::Date if edge => Datum::Date(i32::MAX),
        Type::Date => Datum::Date(prng.between(-900_000, 900_000) as i32),
        Type::Timestamp(_) if edge => Datum::Timestamp(base::calendar::TIMESTAMP_END - 5),
        Type::Timestamp(_) => {
            let day = base::calendar::MICROS_PER_DAY;
            if prng.below(2) == 0 {
                // From the 28th of January on, which are one day in February.
                return Datum::Timestamp(9_524 * day + prng.between(0, 4 * day));
            }
            Datum::Timestamp(prng.between(-60_000, 60_000) * day + prng.between(0, day - 1))
        }
        Type::Time(_) => Datum::Time(prng.between(0, base::calendar::MICROS_PER_DAY)),
        Type::Interval(_) => Datum::Interval(span(prng)),
        Type::Array(ArrayKind::Int4) => {
            let items = (0..prng.below(5)).map(|_| value(prng, I4));
            Datum::Array(items.collect())
        }
        Type::Array(_) => {
            let items = (0..prng.below(4)).map(|_| value(prng, TEXT));
            Datum::Array(items.collect())
        }
        Type::Jsonb => Datum::Jsonb(Jsonb::parse(&json(prng, 2)).expect("it is JSON")),
        _ => Datum::Text("a ȿßb-c\"".chars().take(prng.below(8) as usize).collect()),
    }
}

fn text(text: &str) -> Computed {
    Computed::Const(Datum::Text(text.into()))
}

fn drawn(prng: &mut Prng, ty: Type, depth: u32) -> Computed {
    if depth == 0 || prng.below(6) == 0 {
        return match prng.below(4) {
            0 => Computed::Const(value(prng, ty)),
            _ => Computed::Column(column(ty), ty),
        };
    }
    if prng.below(8) == 0 {
        let both = Vec::from([drawn(prng, ty, depth - 1), drawn(prng, ty, depth - 1)]);
        return match prng.below(3) {
            0 => Computed::Coalesce(both),
            1 => Computed::Least(both),
            _ => Computed::Greatest(both),
        };
    }
    let (func, wants) = call(prng, ty);
    let mut args = Vec::new();
    for want in wants {
        args.push(drawn(prng, *want, depth - 1));
    }
    if matches!(func, TruncateDate | Extract { .. }) {
        let units = [
            "year", "month", "day", "hour", "epoch", "week", "second", "century",
        ];
        let unit = units[prng.below(units.len() as u64) as usize];
        args.insert(0, text(unit));
    }
    if func == JsonSet {
        let path = Datum::Array(Box::new([Datum::Text("a\"".into())]));
        args.insert(1, Computed::Const(path));
    }
    Computed::Call(func, args, ty)
}

/// A function, and the types of its arguments.
type Form = (ValueFunc, &'static [Type]);

const fn from(from: Type) -> ValueFunc {
    Convert {
        from,
        explicit: true,
    }
}

/// The functions whose results have the type of each column.
const FORMS: [(Type, &[Form]); 13] = [
    (
        F8,
        &[
            (Add, &[F8, F8]),
            (Subtract, &[F8, F8]),
            (Multiply, &[F8, F8]),
            (Divide, &[F8, F8]),
            (Negate, &[F8]),
            (Absolute, &[F8]),
            (Round, &[F8]),
            (Down, &[F8]),
            (Sign, &[F8]),
            (Sqrt, &[F8]),
            (from(I8), &[I8]),
            (from(DEC), &[DEC]),
            (from(F4), &[F4]),
            (Extract { zoned: false }, &[STAMP]),
        ],
    ),
    (
        F4,
        &[
            (Add, &[F4, F4]),
            (Subtract, &[F4, F4]),
            (Multiply, &[F4, F4]),
            (Divide, &[F4, F4]),
            (Truncate, &[F4]),
            (from(F8), &[F8]),
            (from(I8), &[I8]),
            (from(DEC), &[DEC]),
        ],
    ),
    (
        I4,
        &[
            (from(F8), &[F8]),
            (Subtract, &[DATE, DATE]),
            (Item, &[INTS, I4]),
            (Cardinality, &[INTS]),
            (ArrayPosition, &[INTS, I4]),
            (ArrayLength, &[TEXTS, I4]),
        ],
    ),
    (I8, &[(from(F8), &[F8]), (from(F4), &[F4])]),
    (
        DEC,
        &[
            (from(F8), &[F8]),
            (from(F4), &[F4]),
            (Extract { zoned: false }, &[DATE]),
            (Extract { zoned: false }, &[TIME]),
        ],
    ),
    (
        DATE,
        &[
            (Add, &[DATE, I4]),
            (Subtract, &[DATE, I4]),
            (from(STAMP), &[STAMP]),
        ],
    ),
    (
        STAMP,
        &[
            (Add, &[STAMP, SPAN]),
            (Add, &[SPAN, STAMP]),
            (Subtract, &[STAMP, SPAN]),
            (Add, &[DATE, SPAN]),
            (Add, &[DATE, TIME]),
            (from(DATE), &[DATE]),
            (TruncateDate, &[STAMP]),
        ],
    ),
    (
        TIME,
        &[
            (Add, &[TIME, SPAN]),
            (Subtract, &[TIME, SPAN]),
            (from(STAMP), &[STAMP]),
            (from(SPAN), &[SPAN]),
        ],
    ),
    (
        SPAN,
        &[
            (Add, &[SPAN, SPAN]),
            (Subtract, &[SPAN, SPAN]),
            (Subtract, &[STAMP, STAMP]),
            (Subtract, &[TIME, TIME]),
            (Multiply, &[SPAN, F8]),
            (Multiply, &[F8, SPAN]),
            (Divide, &[SPAN, F8]),
            (Negate, &[SPAN]),
            (from(TIME), &[TIME]),
        ],
    ),
    (
        INTS,
        &[
            (MakeArray, &[I4, I4]),
            (ArrayAppend, &[INTS, I4]),
            (ArrayPrepend, &[I4, INTS]),
            (ArrayCat, &[INTS, INTS]),
            (ArrayRemove, &[INTS, I4]),
            (ArrayReplace, &[INTS, I4, I4]),
        ],
    ),
    (
        TEXTS,
        &[
            (ArrayAppend, &[TEXTS, TEXT]),
            (ArrayCat, &[TEXTS, TEXTS]),
            (ArrayReplace, &[TEXTS, TEXT, TEXT]),
        ],
    ),
    (
        JSON,
        &[
            (JsonFrom(I4), &[I4]),
            (JsonFrom(TEXT), &[TEXT]),
            (JsonFrom(DEC), &[DEC]),
            (JsonGet, &[JSON, TEXT]),
            (JsonGet, &[JSON, I4]),
            (JsonPath, &[JSON, TEXTS]),
            (JsonConcat, &[JSON, JSON]),
            (JsonDeleteKey, &[JSON, TEXT]),
            (JsonSet, &[JSON, JSON]),
            (JsonObject, &[TEXT, JSON]),
            (JsonArray, &[JSON, JSON]),
        ],
    ),
    (
        TEXT,
        &[
            (Md5, &[TEXT]),
            (Translate, &[TEXT, TEXT, TEXT]),
            (SplitPart, &[TEXT, TEXT, I4]),
            (ToHex8, &[I8]),
            (JsonGetText, &[JSON, TEXT]),
            (JsonPathText, &[JSON, TEXTS]),
            (Item, &[TEXTS, I4]),
        ],
    ),
];

fn call(prng: &mut Prng, ty: Type) -> Form {
    let found = FORMS.iter().find(|(of, _)| *of == ty);
    let (_, all) = found.expect("there are functions of each type");
    all[prng.below(all.len() as u64) as usize]
}

pub(super) fn holds(range: &Range, value: &Datum) -> bool {
    let (Some(values), false) = (&range.values, value.is_null()) else {
        return range.null && value.is_null();
    };
    match (values, value) {
        (Values::Floats(floats), Datum::Float(value)) => {
            let size = value.abs();
            let whole = floats.grain < -1000 || size % 2.0_f64.powi(floats.grain) == 0.0;
            let inside = floats.low <= *value && *value <= floats.high;
            inside && (size == 0.0 || size >= floats.least && whole)
        }
        (Values::Moments(moments), value) => {
            !value.compare(&moments.low).is_lt() && !value.compare(&moments.high).is_gt()
        }
        (Values::Spans(spans), Datum::Interval(value)) => {
            let (low, high) = (spans.low, spans.high);
            (low.months..=high.months).contains(&value.months)
                && (low.days..=high.days).contains(&value.days)
                && (low.micros..=high.micros).contains(&value.micros)
        }
        (Values::Numbers(numbers), Datum::Int(value)) => {
            let value = Decimal::from(*value);
            numbers.low <= value && value <= numbers.high
        }
        (Values::Numbers(numbers), Datum::Decimal(value)) => {
            let inside = numbers.low <= *value && *value <= numbers.high;
            inside && value.scale() <= numbers.scale
        }
        (Values::Texts(texts), Datum::Text(text)) => {
            let chars = text.chars().count();
            text.len() <= texts.bytes && (texts.least..=texts.most).contains(&chars)
        }
        (Values::Arrays(arrays), Datum::Array(items)) => {
            items.len() <= arrays.items && value_len(value) <= arrays.bytes_max()
        }
        (Values::Json(known), Datum::Jsonb(text)) => {
            // Wider than the value's own, or as wide.
            let own = Jsons::of(text.as_str());
            own.or(*known) == *known
        }
        (Values::Others(bytes), value) => value_len(value) <= *bytes,
        _ => false,
    }
}

#[test]
fn no_value_of_a_function_lies_outside_its_range() {
    let mut prng = Prng::new(31);
    let (mut known, mut refused, mut failing) = (0, 0, 0);
    for _ in 0..12_000 {
        // Some columns have one value, others several.
        let ends: [Vec<Datum>; 13] = TYPES.map(|ty| {
            let count = 1 + prng.below(5) * prng.below(2);
            (0..count).map(|_| value(&mut prng, ty)).collect()
        });
        let ty = TYPES[prng.below(13) as usize];
        let depth = 1 + prng.below(3) as u32;
        let op = FormulaOp::Compute(drawn(&mut prng, ty, depth));
        let change = ColumnFormula::new(column(ty), ty, op).expect("anything can be computed");
        let ranges = |column: u16| {
            let mut all = ends[usize::from(column)].iter().map(Range::of);
            let first = all.next()?;
            Some(all.fold(first, |all, one| all.or(&one)))
        };
        let range = Range::changed(&change, &ranges);
        let formula = Formula(Vec::from([change.clone()]));
        let mut fails = false;
        for _ in 0..12 {
            let values = ends.each_ref().map(|ends| {
                let at = prng.below(ends.len() as u64) as usize;
                ends[at].clone()
            });
            let encoded = row::to_vec(&values);
            let mut out = Vec::new();
            let result = formula.fold(&encoded, &mut out);
            let Some(range) = &range else {
                fails |= result.is_err();
                continue;
            };
            result.unwrap_or_else(|error| panic!("{error:?}: {change:?} of {values:?}"));
            let value = RowRef::new(&out).col(usize::from(column(ty)), ty);
            let value = value.expect("it decodes");
            assert!(
                holds(range, &value),
                "{value:?} not in {range:?}: {change:?} of {values:?}"
            );
        }
        known += u32::from(range.is_some());
        refused += u32::from(range.is_none() && !fails);
        failing += u32::from(fails);
    }
    assert!(
        known > 5_000 && failing > 1_000,
        "{known} {failing} {refused}"
    );
    assert!(
        refused < known / 2,
        "more is refused than must be: {refused} {known}"
    );
}
