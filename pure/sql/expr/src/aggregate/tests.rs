//! Aggregates over small inputs with PostgreSQL 15's results, computed in one state and split over
//! states that are merged.

use super::{AggFunc, AggState};
use crate::Expr;
use base::types::ArrayKind;
use base::{Datum, Prng, Type, text};

/// An aggregate of one type of argument.
struct Case {
    name: &'static str,
    ty: Type,
    distinct: bool,
    /// NULL is `None`.
    values: &'static [Option<&'static str>],
    /// The separator of `string_agg`.
    separator: Option<&'static str>,
    expected: Option<&'static str>,
}

fn case(
    name: &'static str,
    ty: Type,
    values: &'static [Option<&'static str>],
    expected: Option<&'static str>,
) -> Case {
    Case {
        name,
        ty,
        distinct: false,
        values,
        separator: None,
        expected,
    }
}

const N: Option<&str> = None;
const INTS: &[Option<&str>] = &[Some("1"), N, Some("2"), Some("2"), Some("4")];
const DECIMALS: &[Option<&str>] = &[Some("1.50"), Some("2.25"), N, Some("2.25"), Some("-3")];
const LARGE: &[Option<&str>] = &[
    Some("1.5"),
    Some("2.500"),
    N,
    Some("1000000.125"),
    Some("-7"),
    Some("0.0"),
    Some("33.333"),
    Some("7"),
    Some("0.1"),
];

fn cases() -> Vec<Case> {
    let numeric = Type::Numeric(None);
    let bools: &[Option<&str>] = &[Some("t"), N, Some("f")];
    let spans: &[Option<&str>] = &[Some("1 day"), Some("1 month"), N, Some("03:00")];
    let mut cases = vec![
        case("count", Type::Int4, INTS, Some("4")),
        case("sum", Type::Int4, INTS, Some("9")),
        case("sum", Type::Int8, INTS, Some("9")),
        case("sum", numeric, DECIMALS, Some("3.00")),
        case("sum", Type::Float8, DECIMALS, Some("3")),
        case(
            "sum",
            Type::Float4,
            &[Some("0.1"), Some("0.2")],
            Some("0.3"),
        ),
        case("sum", Type::Int4, &[N], None),
        case(
            "sum",
            Type::Interval(None),
            spans,
            Some("1 mon 1 day 03:00:00"),
        ),
        case("avg", Type::Int4, INTS, Some("2.2500000000000000")),
        case(
            "avg",
            Type::Int8,
            &[Some("1"), Some("2"), Some("2")],
            Some("1.6666666666666667"),
        ),
        case("avg", numeric, DECIMALS, Some("0.75000000000000000000")),
        case("avg", Type::Float8, DECIMALS, Some("0.75")),
        case("avg", Type::Int4, &[], None),
        case("avg", Type::Interval(None), spans, Some("10 days 09:00:00")),
        case("min", Type::Int4, INTS, Some("1")),
        case("max", numeric, DECIMALS, Some("2.25")),
        case(
            "min",
            Type::Text,
            &[Some("b"), N, Some("B"), Some("a")],
            Some("B"),
        ),
        case(
            "max",
            Type::Date,
            &[Some("2020-01-01"), Some("2019-05-05")],
            Some("2020-01-01"),
        ),
        case("min", Type::Int4, &[N], None),
        case("bool_and", Type::Bool, bools, Some("f")),
        case("bool_or", Type::Bool, bools, Some("t")),
        case("every", Type::Bool, &[Some("t"), N], Some("t")),
        case("bit_and", Type::Int4, &[Some("6"), Some("3")], Some("2")),
        case("bit_or", Type::Int4, &[Some("6"), N, Some("3")], Some("7")),
        case("stddev", Type::Int4, INTS, Some("1.2583057392117916")),
        case("variance", Type::Int4, INTS, Some("1.5833333333333333")),
        case("stddev_pop", numeric, DECIMALS, Some("2.1866069605669877")),
        case("var_pop", numeric, DECIMALS, Some("4.7812500000000000")),
        case("stddev", numeric, LARGE, Some("353551.54434099")),
        case("var_samp", numeric, LARGE, Some("124998694505.89844193")),
        case("stddev_pop", numeric, LARGE, Some("330717.18687220")),
        case("var_samp", Type::Float8, DECIMALS, Some("6.375")),
        case("stddev_samp", Type::Float8, &[Some("1")], None),
        case("var_pop", Type::Float8, &[Some("1")], Some("0")),
    ];
    let mut array = case("array_agg", Type::Int4, INTS, Some("{1,NULL,2,2,4}"));
    cases.push(case("array_agg", Type::Int4, &[], None));
    array.distinct = true;
    array.expected = Some("{1,2,4,NULL}");
    cases.push(array);
    cases.push(case("array_agg", Type::Int4, INTS, Some("{1,NULL,2,2,4}")));
    for (name, ty, expected) in [
        ("count", Type::Int4, "3"),
        ("sum", Type::Int4, "7"),
        ("avg", Type::Int4, "2.3333333333333333"),
    ] {
        let mut distinct = case(name, ty, INTS, Some(expected));
        distinct.distinct = true;
        cases.push(distinct);
    }
    let texts: &[Option<&str>] = &[Some("a"), N, Some("b"), Some("a")];
    let mut joined = case("string_agg", Type::Text, texts, Some("a, b, a"));
    joined.separator = Some(", ");
    cases.push(joined);
    let mut distinct = case("string_agg", Type::Text, texts, Some("a, b"));
    distinct.separator = Some(", ");
    distinct.distinct = true;
    cases.push(distinct);
    cases
}

/// The values as rows of arguments, after the conversions that the aggregate wants.
fn rows(case: &Case) -> (AggFunc, Type, Vec<Vec<Datum>>) {
    let mut args = vec![Expr::Column(0, case.ty)];
    args.extend(case.separator.map(Expr::literal));
    let (func, args, ty) = AggFunc::resolve(case.name, args, false).expect("an aggregate");
    let row = |value: &Option<&str>| {
        let input = value.map_or(Datum::Null, |value| {
            text::parse(case.ty, value).expect("valid")
        });
        let input: &[Datum] = &[input];
        let values = args
            .iter()
            .map(|arg| crate::eval(arg, &input, &crate::Env::NONE).expect("a conversion"));
        values.collect()
    };
    (func, ty, case.values.iter().map(row).collect())
}

fn shown(ty: Type, value: &Datum) -> Option<String> {
    (!value.is_null()).then(|| text::to_string(ty, value))
}

#[test]
fn results_in_one_state() {
    for case in cases() {
        let (func, ty, rows) = rows(&case);
        let mut state = AggState::new(func, case.distinct);
        for row in &rows {
            state.update(row).expect("no overflow");
        }
        let found = shown(ty, &state.finish().expect("no overflow"));
        assert_eq!(
            found.as_deref(),
            case.expected,
            "{} of {}",
            case.name,
            case.ty.name()
        );
    }
}

#[test]
fn merged_parts_give_the_same() {
    let mut prng = Prng::new(7);
    for case in cases() {
        let (func, ty, rows) = rows(&case);
        for _ in 0..20 {
            let mut total = AggState::new(func, case.distinct);
            let parts = 1 + prng.below(4) as usize;
            let mut states = vec![AggState::new(func, case.distinct); parts];
            // Runs of rows, so that the order of values is kept for array_agg and string_agg.
            let mut at = 0;
            for row in &rows {
                if at + 1 < parts && prng.below(2) == 0 {
                    at += 1;
                }
                states[at].update(row).expect("no overflow");
            }
            for state in states {
                let partial = state.partial().expect("no overflow");
                let distinct = case.distinct && !func.ignores_repetition();
                assert_eq!(partial.len(), func.partial_width(distinct));
                let bytes = base::codec::to_vec(&partial);
                let partial: Vec<Datum> = base::codec::decode(&bytes).expect("our own bytes");
                total.merge(&partial).expect("no overflow");
            }
            let found = shown(ty, &total.finish().expect("no overflow"));
            assert_eq!(
                found.as_deref(),
                case.expected,
                "{} of {}",
                case.name,
                case.ty.name()
            );
        }
    }
}

#[test]
fn count_of_all_rows_counts_nulls() {
    let (func, args, ty) = AggFunc::resolve("count", Vec::new(), true).expect("count(*)");
    assert!(args.is_empty());
    assert_eq!(ty, Type::Int8);
    let mut state = AggState::new(func, false);
    for _ in 0..5 {
        state.update(&[]).expect("no overflow");
    }
    assert_eq!(state.finish().expect("no overflow"), Datum::Int(5));
}

#[test]
fn sums_that_do_not_fit_are_errors() {
    let mut state = AggState::new(AggFunc::Sum(super::SumKind::Int), false);
    state.update(&[Datum::Int(i64::MAX)]).expect("in 128 bits");
    state.update(&[Datum::Int(1)]).expect("in 128 bits");
    let error = state.finish().expect_err("above bigint");
    assert_eq!(error.state(), base::SqlState::NUMERIC_OUT_OF_RANGE);
    // bigint sums become numeric and fit.
    let mut state = AggState::new(AggFunc::Sum(super::SumKind::BigInt), false);
    for _ in 0..3 {
        state.update(&[Datum::Int(i64::MAX)]).expect("in 128 bits");
    }
    let sum = state.finish().expect("38 digits");
    assert_eq!(
        text::to_string(Type::Numeric(None), &sum),
        "27670116110564327421"
    );
}

#[test]
fn types_follow_postgresql() {
    for (name, ty, expected) in [
        ("sum", Type::Int2, Some(Type::Int8)),
        ("sum", Type::Int8, Some(Type::Numeric(None))),
        ("sum", Type::Float4, Some(Type::Float4)),
        ("avg", Type::Float4, Some(Type::Float8)),
        (
            "avg",
            Type::Numeric(Some((12, 2))),
            Some(Type::Numeric(None)),
        ),
        ("min", Type::Varchar(Some(5)), Some(Type::Text)),
        ("max", Type::Char(5), Some(Type::Char(0))),
        ("array_agg", Type::Name, Some(Type::Array(ArrayKind::Name))),
        ("stddev", Type::Int8, Some(Type::Numeric(None))),
        ("sum", Type::Text, None),
        ("min", Type::Bool, None),
        ("bool_and", Type::Int4, None),
        ("string_agg", Type::Text, None),
    ] {
        let found = AggFunc::resolve(name, vec![Expr::Column(0, ty)], false);
        assert_eq!(
            found.ok().map(|(_, _, ty)| ty),
            expected,
            "{name}({})",
            ty.name()
        );
    }
}
