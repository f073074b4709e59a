//! Every function against sets of integers, over all ranges with small bounds.

use super::*;
use base::Prng;
use std::collections::BTreeSet;

const INT: RangeKind = RangeKind::Int4;
/// Bounds lie within these; sets are looked at one further.
const LOW: i64 = 0;
const HIGH: i64 = 5;

type Set = BTreeSet<i64>;

fn range(lower: Option<i64>, upper: Option<i64>) -> Range {
    let bound = |end: Option<i64>| end.map_or(Datum::Null, Datum::Int);
    let values = [bound(lower), bound(upper)];
    Range::new(INT, values, [true, false]).expect("the bounds are in order")
}

/// All ranges `[a,b)`, the empty one and the infinite ones.
fn all() -> Vec<Range> {
    let ends = || core::iter::once(None).chain((LOW..=HIGH).map(Some));
    let pairs = ends().flat_map(|lower| ends().map(move |upper| (lower, upper)));
    let ordered = pairs.filter(|(lower, upper)| match (lower, upper) {
        (Some(lower), Some(upper)) => lower <= upper,
        _ => true,
    });
    ordered.map(|(lower, upper)| range(lower, upper)).collect()
}

fn set(value: &Datum) -> Set {
    let inside = |at: &i64| contains(value, &Datum::Int(*at));
    (LOW - 1..=HIGH + 1).filter(inside).collect()
}

fn call(func: RangeFunc, a: &Datum, b: &Datum) -> Result<Datum, String> {
    let args = [a.clone(), b.clone()];
    apply(func, &args, Type::Range(INT)).map_err(|error| error.to_string())
}

fn holds(func: RangeFunc, a: &Datum, b: &Datum) -> bool {
    call(func, a, b) == Ok(Datum::Bool(true))
}

/// What must be true of two ranges or multiranges, by their sets.
fn check_pair(a: &Datum, b: &Datum) {
    let (left, right) = (set(a), set(b));
    let ends = |set: &Set| set.first().copied().zip(set.last().copied());
    let what = format!("{a:?} and {b:?}");
    assert_eq!(
        holds(RangeFunc::Contains, a, b),
        left.is_superset(&right),
        "{what}"
    );
    assert_eq!(
        holds(RangeFunc::ContainedBy, a, b),
        left.is_subset(&right),
        "{what}"
    );
    assert_eq!(
        holds(RangeFunc::Overlaps, a, b),
        !left.is_disjoint(&right),
        "{what}"
    );
    let relations = match (ends(&left), ends(&right)) {
        (Some((low, high)), Some((other_low, other_high))) => [
            high < other_low,
            other_high < low,
            high <= other_high,
            low >= other_low,
            high + 1 == other_low || other_high + 1 == low,
        ],
        _ => [false; 5],
    };
    let funcs = [
        RangeFunc::Before,
        RangeFunc::After,
        RangeFunc::OverLeft,
        RangeFunc::OverRight,
        RangeFunc::Adjacent,
    ];
    for (func, wanted) in funcs.into_iter().zip(relations) {
        assert_eq!(holds(func, a, b), wanted, "{func:?} of {what}");
    }
    if core::mem::discriminant(a) != core::mem::discriminant(b) {
        return;
    }
    let is_whole = |set: &Set| {
        let whole = ends(set).is_none_or(|(low, high)| set.len() as i64 == high - low + 1);
        whole || matches!(a, Datum::Multirange(_))
    };
    for (func, wanted) in [
        (RangeFunc::Union, &left | &right),
        (RangeFunc::Minus, &left - &right),
        (RangeFunc::Intersect, &left & &right),
    ] {
        match call(func, a, b) {
            Ok(found) => assert_eq!(set(&found), wanted, "{func:?} of {what}"),
            Err(error) => {
                assert!(
                    error.ends_with("would not be contiguous"),
                    "{error}: {what}"
                );
                assert!(!is_whole(&wanted), "{func:?} of {what}");
            }
        }
    }
}

#[test]
fn ranges_are_intervals_of_integers() {
    let all: Vec<Datum> = all().into_iter().map(Datum::from).collect();
    for a in &all {
        for b in &all {
            check_pair(a, b);
            let merged = call(RangeFunc::Merge, a, b).expect("any two");
            let both = &set(a) | &set(b);
            let span = both.first().zip(both.last());
            let wanted: Set = span.map_or(Set::new(), |(low, high)| (*low..=*high).collect());
            assert_eq!(set(&merged), wanted);
        }
    }
}

#[test]
fn multiranges_are_sets_of_integers() {
    let ranges = all();
    let mut prng = Prng::new(3);
    let mut draw = |most: u64| {
        let count = prng.below(most + 1);
        let parts = (0..count).map(|_| ranges[prng.below(ranges.len() as u64) as usize].clone());
        parts.collect::<Vec<Range>>()
    };
    for _ in 0..5_000 {
        let multirange = |parts: Vec<Range>| Datum::from(Multirange::of(parts));
        let (a, b) = (multirange(draw(3)), multirange(draw(3)));
        check_pair(&a, &b);
        let range: Datum = draw(1).pop().unwrap_or(Range::EMPTY).into();
        check_pair(&a, &range);
        check_pair(&range, &a);
        assert_eq!(set(&united(&[a.clone(), b.clone(), range.clone()])), {
            let both = &set(&a) | &set(&b);
            &both | &set(&range)
        });
    }
}

#[test]
fn constructors_say_what_is_wrong() {
    let made = |args: &[Datum]| {
        let made = apply(RangeFunc::Make, args, Type::Range(INT));
        match made {
            Ok(value) => base::text::to_string(Type::Range(INT), &value),
            Err(error) => error.to_string(),
        }
    };
    let int = Datum::Int;
    assert_eq!(made(&[int(1), int(3)]), "[1,3)");
    assert_eq!(made(&[int(1), int(3), "(]".into()]), "[2,4)");
    assert_eq!(made(&[Datum::Null, int(3), "[]".into()]), "(,4)");
    assert_eq!(
        made(&[int(1), int(3), "[".into()]),
        "42601: invalid range bound flags"
    );
    assert_eq!(
        made(&[int(1), int(3), Datum::Null]),
        "22000: range constructor flags argument must not be null"
    );
    assert_eq!(
        made(&[int(3), int(1)]),
        "22000: range lower bound must be less than or equal to range upper bound"
    );
    let collected = |args: &[Datum]| apply(RangeFunc::Collect, args, Type::Multirange(INT));
    let one = Datum::from(range(Some(1), Some(2)));
    assert_eq!(collected(&[Datum::Null]), Ok(Datum::Null));
    assert_eq!(collected(&[]), Ok(Multirange::default().into()));
    let error = collected(&[one, Datum::Null]).expect_err("NULL is no range");
    assert_eq!(error.state(), SqlState::NULL_NOT_ALLOWED);
}
