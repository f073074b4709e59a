//! Ranges of random values, against the values for random rows.

use super::*;
use crate::Formula;
use alloc::boxed::Box;
use base::row::RowRef;
use base::strings::StringFunc;
use base::{ArrayKind, Prng, row};

const TYPES: [Type; 10] = [
    Type::Int2,
    Type::Int8,
    Type::Numeric(Some((5, 2))),
    Type::Numeric(None),
    Type::Varchar(Some(12)),
    Type::Bool,
    Type::Bytea,
    Type::Array(ArrayKind::Int8),
    Type::Date,
    Type::Char(9),
];

fn decimal(prng: &mut Prng, most: i64, scale: u8) -> Decimal {
    let unscaled = prng.between(-most, most);
    Decimal::from_parts(unscaled.into(), scale).expect("it is small")
}

/// Between the two values, ends included.
fn between(prng: &mut Prng, column: usize, ends: &[Datum; 2]) -> Datum {
    match ends {
        [Datum::Int(a), Datum::Int(b)] => Datum::Int(prng.between(*a.min(b), *a.max(b))),
        [Datum::Decimal(a), Datum::Decimal(b)] if prng.below(2) == 0 => {
            let middle = a.add(*b).and_then(|sum| sum.div(Decimal::from(2)));
            let scale = if column == 2 {
                2
            } else {
                a.scale().max(b.scale())
            };
            let middle = middle.and_then(|it| it.round(scale.into()));
            Datum::Decimal(middle.unwrap_or(*a))
        }
        _ => ends[prng.below(2) as usize].clone(),
    }
}

fn drawn_value(prng: &mut Prng, column: usize) -> Datum {
    if prng.below(12) == 0 {
        return Datum::Null;
    }
    match column {
        0 => Datum::Int(prng.between(-40, 400)),
        1 => Datum::Int(match prng.below(4) {
            0 => prng.between(i64::MIN, i64::MAX),
            _ => prng.between(-9, 9),
        }),
        2 => Datum::Decimal(decimal(prng, 9_999, 2)),
        3 if prng.below(2) == 0 => {
            let scale = prng.below(9) as u8;
            Datum::Decimal(decimal(prng, 1_000_000, scale))
        }
        // Up to all digits that there are.
        3 => {
            let power = 10_i128.pow(prng.below(20) as u32);
            let unscaled = i128::from(prng.between(-1_000_000_000, 1_000_000_000)) * power;
            let scale = prng.below(30) as u8;
            Datum::Decimal(Decimal::from_parts(unscaled, scale).expect("it has 29 digits"))
        }
        4 => Datum::Text("a ȿßbⱥ".chars().take(prng.below(6) as usize).collect()),
        5 => Datum::Bool(prng.below(2) == 0),
        6 => Datum::Bytes(Vec::from(&b"\0abcdef"[..prng.below(7) as usize]).into()),
        7 => {
            let items = (0..prng.below(5)).map(|_| Datum::Int(prng.between(-900, 900_000)));
            Datum::Array(items.collect())
        }
        8 => Datum::Date(prng.between(-9_000, 9_000) as i32),
        _ => Datum::Text("abcdefghi"[..prng.below(9) as usize].into()),
    }
}

/// A value of the kind: 0 whole, 1 decimal, 2 text.
fn drawn(prng: &mut Prng, kind: u64, depth: u32) -> Computed {
    let leaf = depth == 0 || prng.below(5) == 0;
    let ty = [Type::Int8, Type::Numeric(None), Type::Text][kind as usize];
    if leaf {
        let column = (2 * kind + prng.below(2)).min(4) as u16;
        return match prng.below(3) {
            0 => Computed::Const(drawn_value(prng, usize::from(column))),
            _ => Computed::Column(column, TYPES[usize::from(column)]),
        };
    }
    let mut some = |count: u64| -> Vec<Computed> {
        (0..count).map(|_| drawn(prng, kind, depth - 1)).collect()
    };
    let two = |mut two: Vec<Computed>| {
        let second = two.pop().expect("two are there");
        Box::new([two.pop().expect("two are there"), second])
    };
    let operands = some(2);
    let rest = some(2);
    match (prng.below(10), kind) {
        (0..=1, 2) => Computed::Calculate(Arithmetic::Append, two(operands), ty),
        (2..=4, 2) => drawn_function(prng, operands, depth),
        (0..=4, _) => {
            let what = [
                Arithmetic::Add,
                Arithmetic::Subtract,
                Arithmetic::Multiply,
                Arithmetic::Divide,
                Arithmetic::Remainder,
            ][prng.below(5) as usize];
            Computed::Calculate(what, two(operands), ty)
        }
        (5, _) => Computed::Coalesce(operands),
        (6, _) => match prng.below(2) {
            0 => Computed::Least(operands),
            _ => Computed::Greatest(operands),
        },
        (7, _) => {
            let condition = drawn_condition(prng, depth - 1);
            let [value, otherwise] = *two(rest);
            Computed::Case(Vec::from([(condition, value)]), Box::new(otherwise))
        }
        (8, 0) => measured(prng, depth),
        (8, 1) => {
            let rounding = [
                Rounding::Nearest,
                Rounding::Truncate,
                Rounding::Down,
                Rounding::Up,
            ][prng.below(4) as usize];
            let digits = prng.between(-2, 5) as i32;
            let [value, _] = *two(operands);
            Computed::Round(rounding, Box::new(value), digits)
        }
        _ => {
            let from = if kind == 2 { 2 } else { prng.below(2) };
            let value = drawn(prng, from, depth - 1);
            let narrow = [
                Type::Int2,
                Type::Numeric(Some((6, 1))),
                Type::Varchar(Some(9)),
            ][kind as usize];
            let ty = if from == kind && prng.below(2) == 0 {
                narrow
            } else {
                ty
            };
            Computed::Cast(Box::new(value), ty)
        }
    }
}

/// A text made of texts, numbers and others.
fn drawn_function(prng: &mut Prng, mut texts: Vec<Computed>, depth: u32) -> Computed {
    if prng.below(5) == 0 {
        let column = [0, 1, 2, 3, 5, 8][prng.below(6) as usize];
        let ty = TYPES[usize::from(column)];
        return Computed::Output(Box::new(Computed::Column(column, ty)), ty);
    }
    let (func, wants) = [
        (StringFunc::Concat, "tt"),
        (StringFunc::ConcatWs, "ttt"),
        (StringFunc::Lower, "t"),
        (StringFunc::Upper, "t"),
        (StringFunc::InitCap, "t"),
        (StringFunc::TrimLeft, "t"),
        (StringFunc::TrimRight, "tt"),
        (StringFunc::TrimBoth, "tt"),
        (StringFunc::Substring, "tn"),
        (StringFunc::Substring, "tnn"),
        (StringFunc::Left, "tn"),
        (StringFunc::Right, "tn"),
        (StringFunc::PadLeft, "tn"),
        (StringFunc::PadRight, "tnt"),
        (StringFunc::Repeat, "tn"),
        (StringFunc::Replace, "ttt"),
        (StringFunc::Reverse, "t"),
    ][prng.below(17) as usize];
    let mut args = Vec::new();
    for want in wants.chars() {
        args.push(match want {
            't' => texts.pop().unwrap_or_else(|| drawn(prng, 2, depth - 1)),
            _ => match prng.below(5) {
                0 => drawn(prng, 0, depth - 1),
                1 => Computed::Column(0, Type::Int2),
                2 => Computed::Column(1, Type::Int8),
                _ => Computed::Const(Datum::Int(prng.between(-4, 9))),
            },
        });
    }
    Computed::Text(func, args)
}

/// A number that tells of a text.
fn measured(prng: &mut Prng, depth: u32) -> Computed {
    let func = [
        StringFunc::Length,
        StringFunc::OctetLength,
        StringFunc::BitLength,
        StringFunc::Ascii,
        StringFunc::Position,
    ][prng.below(5) as usize];
    let count = 1 + u64::from(func == StringFunc::Position);
    let texts = (0..count).map(|_| drawn(prng, 2, depth - 1));
    Computed::Text(func, texts.collect())
}

/// A value of a type that has no arithmetic, but perhaps `||`.
fn drawn_other(prng: &mut Prng, column: u16, depth: u32) -> Computed {
    let ty = TYPES[usize::from(column)];
    if depth == 0 {
        return match prng.below(3) {
            0 => Computed::Const(drawn_value(prng, column.into())),
            _ => Computed::Column(column, ty),
        };
    }
    let mut two = [0; 2].map(|_: i32| drawn_other(prng, column, depth - 1));
    match prng.below(5) {
        0 if ty == Type::Bytea && prng.below(2) == 0 => {
            let func = [
                StringFunc::TrimLeft,
                StringFunc::TrimRight,
                StringFunc::TrimBoth,
            ][prng.below(3) as usize];
            Computed::Text(func, two.into())
        }
        0 if ty == Type::Bytea => Computed::Calculate(Arithmetic::Append, Box::new(two), ty),
        0 => Computed::Cast(
            Box::new(core::mem::replace(
                &mut two[0],
                Computed::Const(Datum::Null),
            )),
            ty,
        ),
        1 => Computed::Coalesce(two.into()),
        2 => Computed::Greatest(two.into()),
        3 => Computed::Least(two.into()),
        _ => {
            let [value, otherwise] = two;
            let condition = drawn_condition(prng, 1);
            Computed::Case(Vec::from([(condition, value)]), Box::new(otherwise))
        }
    }
}

fn drawn_condition(prng: &mut Prng, depth: u32) -> Condition {
    if depth > 0 && prng.below(3) == 0 {
        let two = Vec::from([
            drawn_condition(prng, depth - 1),
            drawn_condition(prng, depth - 1),
        ]);
        return match prng.below(3) {
            0 => Condition::And(two),
            1 => Condition::Or(two),
            _ => Condition::Not(Box::new(drawn_condition(prng, depth - 1))),
        };
    }
    let kind = prng.below(3);
    let mut value = || drawn(prng, kind, depth.min(1));
    let sides = Box::new([value(), value()]);
    match prng.below(7) {
        0 => Condition::Value(Box::new(Computed::Column(5, Type::Bool))),
        2 if kind == 2 => {
            let texts = Computed::Text(StringFunc::StartsWith, (*sides).into());
            Condition::Value(Box::new(texts))
        }
        1 => {
            let [value, _] = *sides;
            Condition::IsNull(Box::new(value))
        }
        _ => Condition::Compare([0; 3].map(|_: i32| prng.below(2) == 0), sides),
    }
}

fn holds(range: &Range, value: &Datum) -> bool {
    match (&range.values, value) {
        (_, Datum::Null) => range.null,
        (Some(Values::Numbers(numbers)), Datum::Int(value)) => {
            let value = Decimal::from(*value);
            numbers.low <= value && value <= numbers.high
        }
        (Some(Values::Numbers(numbers)), Datum::Decimal(value)) => {
            let inside = numbers.low <= *value && *value <= numbers.high;
            inside && value.scale() <= numbers.scale
        }
        (Some(Values::Texts(texts)), value) => {
            let chars = match value {
                Datum::Text(text) => text.chars().count(),
                other => value_len(other),
            };
            value_len(value) <= texts.bytes && (texts.least..=texts.most).contains(&chars)
        }
        _ => call_tests::holds(range, value),
    }
}

#[test]
fn no_value_lies_outside_its_range() {
    let mut prng = Prng::new(23);
    let (mut known, mut refused, mut failing) = (0, 0, 0);
    for _ in 0..40_000 {
        let ends: [[Datum; 2]; 10] = core::array::from_fn(|column| {
            let first = drawn_value(&mut prng, column);
            let second = match prng.below(2) {
                0 => first.clone(),
                _ => drawn_value(&mut prng, column),
            };
            [first, second]
        });
        let other = 6 + prng.below(4) as u16;
        let kind = prng.below(3);
        let of_others = prng.below(12) == 0;
        let op = match prng.below(12) {
            _ if of_others => FormulaOp::Compute(drawn_other(&mut prng, other, 2)),
            0 => FormulaOp::Compute(Computed::Truth(Box::new(drawn_condition(&mut prng, 3)))),
            _ => FormulaOp::Compute(drawn(&mut prng, kind, 3)),
        };
        let column = match &op {
            _ if of_others => other,
            FormulaOp::Compute(Computed::Truth(_)) => 5,
            _ => (2 * kind + prng.below(2)).min(4) as u16,
        };
        let ty = TYPES[usize::from(column)];
        let change = ColumnFormula::new(column, ty, op).expect("anything can be computed");
        let ranges = |column: u16| {
            let [first, second] = &ends[usize::from(column)];
            Some(Range::of(first).or(&Range::of(second)))
        };
        let range = Range::changed(&change, &ranges);
        let formula = Formula(Vec::from([change.clone()]));
        let mut fails = false;
        for _ in 0..20 {
            let values: [Datum; 10] =
                core::array::from_fn(|column| between(&mut prng, column, &ends[column]));
            let encoded = row::to_vec(&values);
            let mut out = Vec::new();
            let result = formula.fold(&encoded, &mut out);
            let Some(range) = &range else {
                fails |= result.is_err();
                continue;
            };
            result.unwrap_or_else(|error| panic!("{error:?}: {change:?} of {values:?}"));
            let value = RowRef::new(&out).col(usize::from(column), ty);
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
    assert!(known > 20_000 && failing > 3_000, "{known} {failing}");
    assert!(
        refused < known / 3,
        "more is refused than must be: {refused}"
    );
}
