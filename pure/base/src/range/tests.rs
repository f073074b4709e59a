//! Tests of ranges against PostgreSQL's texts, bytes and messages, and against sets of integers.

use super::*;
use crate::datum::Type;
use crate::prng::Prng;
use crate::{codec, text, wire};
use std::collections::BTreeSet;

const INT: Type = Type::Range(RangeKind::Int4);
const NUMERIC: Type = Type::Range(RangeKind::Numeric);
const DATE: Type = Type::Range(RangeKind::Date);
const MOMENT: Type = Type::Range(RangeKind::Timestamptz);
const INTS: Type = Type::Multirange(RangeKind::Int4);

/// The value as it prints after it was read, or SQLSTATE, message and detail.
fn echo(ty: Type, written: &str) -> String {
    match text::parse(ty, written) {
        Ok(datum) => text::to_string(ty, &datum),
        Err(error) => format!("{error} {}", error.fields().detail),
    }
}

fn check(ty: Type, cases: &[(&str, &str)]) {
    for (written, shown) in cases {
        assert_eq!(echo(ty, written).trim_end(), *shown, "{ty:?} {written:?}");
    }
}

#[test]
fn texts_are_those_of_postgresql() {
    check(
        INT,
        &[
            ("[1,5]", "[1,6)"),
            (" (1,5) ", "[2,5)"),
            ("(1,2)", "empty"),
            ("[3,3)", "empty"),
            ("EMPTY  ", "empty"),
            ("(,)", "(,)"),
            ("[,5]", "(,6)"),
            ("[ 1 , \"7\" )", "[1,7)"),
            ("[1\\2,13)", "[12,13)"),
        ],
    );
    check(
        NUMERIC,
        &[
            ("(1.50,2]", "(1.50,2]"),
            ("[1.0,1.00]", "[1.0,1.00]"),
            ("[NaN,]", "[NaN,)"),
            ("(-Infinity,)", "(-Infinity,)"),
        ],
    );
    // Of ends that are equal the one that was written later stays.
    check(
        Type::Multirange(RangeKind::Numeric),
        &[
            ("{[1,2),[1.0,2.0)}", "{[1.0,2.0)}"),
            ("{[1.0,4),[1,2.0)}", "{[1.0,4)}"),
            ("{[2,3.0),[1,2]}", "{[1,3.0)}"),
        ],
    );
    check(
        DATE,
        &[
            ("(2020-02-28,2020-02-29]", "[2020-02-29,2020-03-01)"),
            ("(-infinity,infinity]", "(-infinity,infinity]"),
        ],
    );
    check(
        MOMENT,
        &[(
            "[2020-01-01 00:00+00,\"2020-01-02 03:04:05+00\")",
            "[\"2020-01-01 00:00:00+00\",\"2020-01-02 03:04:05+00\")",
        )],
    );
    check(
        INTS,
        &[
            ("{}", "{}"),
            (" { [1,2] , empty,(2,5),[10,) } ", "{[1,5),[10,)}"),
            ("{[7,8),[1,2)}", "{[1,2),[7,8)}"),
            ("{empty}", "{}"),
            ("{(,3),[3,)}", "{(,)}"),
        ],
    );
}

#[test]
fn errors_are_those_of_postgresql() {
    let malformed = |what: &str, written: &str, detail: &str| {
        format!("22P02: malformed {what} literal: \"{written}\" {detail}")
    };
    for (written, detail) in [
        ("", "Missing left parenthesis or bracket."),
        ("1,2", "Missing left parenthesis or bracket."),
        ("[", "Unexpected end of input."),
        ("[1,2", "Unexpected end of input."),
        ("[\"1,2)", "Unexpected end of input."),
        ("[1\\", "Unexpected end of input."),
        ("[1]", "Missing comma after lower bound."),
        ("[1,2,3)", "Too many commas."),
        ("[1,2)x", "Junk after right parenthesis or bracket."),
        ("empty x", "Junk after \"empty\" key word."),
    ] {
        assert_eq!(echo(INT, written), malformed("range", written, detail));
    }
    for (written, detail) in [
        ("", "Missing left brace."),
        ("[1,2)", "Missing left brace."),
        ("{", "Unexpected end of input."),
        ("{[1,2)", "Unexpected end of input."),
        ("{[1,2", "Unexpected end of input."),
        ("{1}", "Expected range start."),
        ("{[1,2),}", "Expected range start."),
        ("{[1,2) [3,4)}", "Expected comma or end of multirange."),
        ("{emptyx}", "Expected comma or end of multirange."),
        ("{[1,2)}x", "Junk after closing right brace."),
    ] {
        assert_eq!(
            echo(INTS, written),
            malformed("multirange", written, detail)
        );
    }
    check(
        INT,
        &[
            (
                "[5,1]",
                "22000: range lower bound must be less than or equal to range upper bound",
            ),
            ("[1,2147483647]", "22003: integer out of range"),
            ("(2147483647,)", "22003: integer out of range"),
            (
                "[x,2)",
                "22P02: invalid input syntax for type integer: \"x\"",
            ),
            (
                "[\"\",2)",
                "22P02: invalid input syntax for type integer: \"\"",
            ),
        ],
    );
    check(
        Type::Range(RangeKind::Int8),
        &[("[1,9223372036854775807]", "22003: bigint out of range")],
    );
    check(
        DATE,
        &[("[2020-01-01,5874897-12-31]", "22008: date out of range")],
    );
}

#[test]
fn any_text_is_read_or_refused() {
    const PIECES: [&str; 16] = [
        "[",
        "(",
        "]",
        ")",
        "{",
        "}",
        ",",
        "\"",
        "\\",
        "1",
        "-7",
        "2020-01-01",
        "empty",
        " ",
        "é",
        "infinity",
    ];
    let mut prng = Prng::new(7);
    for _ in 0..20_000 {
        let count = prng.below(10);
        let pieces = (0..count).map(|_| PIECES[prng.below(16) as usize]);
        let written: String = pieces.collect();
        for ty in [INT, NUMERIC, DATE, MOMENT, INTS] {
            if let Ok(value) = text::parse(ty, &written) {
                let shown = text::to_string(ty, &value);
                assert_eq!(text::parse(ty, &shown), Ok(value), "{ty:?} {written}");
            }
        }
    }
}

/// Bytes that PostgreSQL's `range_send` and `multirange_send` give.
#[test]
fn bytes_are_those_of_postgresql() {
    let cases: [(Type, &str, &[u8]); 6] = [
        (INT, "empty", &[1]),
        (INT, "(,)", &[0x18]),
        (
            INT,
            "[1,5)",
            &[2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5],
        ),
        (INT, "[7,)", &[0x12, 0, 0, 0, 4, 0, 0, 0, 7]),
        (INTS, "{}", &[0, 0, 0, 0]),
        (
            INTS,
            "{[7,)}",
            &[0, 0, 0, 1, 0, 0, 0, 9, 0x12, 0, 0, 0, 4, 0, 0, 0, 7],
        ),
    ];
    for (ty, written, bytes) in cases {
        let value = text::parse(ty, written).expect("a range");
        let mut out = Vec::new();
        wire::encode(ty, &value, &mut out);
        assert_eq!(out, bytes, "{written}");
        assert_eq!(wire::decode(ty, bytes), Ok(value), "{written}");
        for cut in 0..bytes.len() {
            assert!(
                wire::decode(ty, &bytes[..cut]).is_err(),
                "{written} at {cut}"
            );
        }
    }
    // What is no normal form becomes one; bits that mean nothing are passed over.
    let closed = [0xe6, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5];
    let value = wire::decode(INT, &closed).expect("a range");
    assert_eq!(text::to_string(INT, &value), "[1,6)");
    let disordered = [2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 1];
    assert!(wire::decode(INT, &disordered).is_err());
    assert!(wire::decode(INT, &[2, 0xff, 0xff, 0xff, 0xff]).is_err());
}

#[test]
fn only_whole_ranges_are_decoded() {
    let mut prng = Prng::new(8);
    for kind in RangeKind::ALL {
        for ty in [Type::Range(kind), Type::Multirange(kind)] {
            for _ in 0..200 {
                let value = crate::testing::random_value(&mut prng, ty);
                assert_eq!(codec::decode(&codec::to_vec(&value)), Ok(value.clone()));
                let mut row = Vec::new();
                row::encode(core::slice::from_ref(&value), &mut row);
                assert_eq!(RowRef::new(&row).col(0, ty), Ok(value.clone()));
                let at = prng.below(row.len() as u64) as usize;
                row[at] ^= 1 << prng.below(8);
                // An error or some value, never a panic.
                let _ = RowRef::new(&row).col(0, ty);
            }
        }
    }
    assert!(Range::of_parts(INFINITE[1], [Datum::Int(5), Datum::Null]).is_some());
    assert!(Range::of_parts(0, [Datum::Int(5), Datum::Null]).is_none());
    assert!(Range::of_parts(0, [Datum::Int(5), Datum::Int(4)]).is_none());
    assert!(Range::of_parts(EMPTY, [Datum::Int(5), Datum::Null]).is_none());
}

/// The integers of -9 to 9 in a range whose finite bounds lie within.
fn members(range: &Range) -> BTreeSet<i64> {
    let inside = |value: i64| {
        let value = Datum::Int(value);
        let at = |is_lower| Bound {
            is_lower,
            value: Some(&value),
            is_inclusive: true,
        };
        !range.is_empty()
            && range.lower().compare(at(true)).is_le()
            && range.upper().compare(at(false)).is_ge()
    };
    (-9..=9).filter(|value| inside(*value)).collect()
}

#[test]
fn multiranges_are_sets() {
    let mut prng = Prng::new(9);
    for _ in 0..5_000 {
        let mut draw = || {
            let mut ends = [prng.between(-8, 8), prng.between(-8, 8)];
            ends.sort_unstable();
            let bound = |end: i64, infinite: bool| match infinite {
                true => Datum::Null,
                false => Datum::Int(end),
            };
            let values = [
                bound(ends[0], prng.below(6) == 0),
                bound(ends[1], prng.below(6) == 0),
            ];
            let inclusive = [prng.below(2) == 0, prng.below(2) == 0];
            let range = Range::new(RangeKind::Int4, values.clone(), inclusive);
            let range = range.expect("the bounds are in order");
            // By the definition of the bounds alone.
            let wanted = (-9..=9).filter(|at| {
                let above = match values[0] {
                    Datum::Int(low) => low < *at || low == *at && inclusive[0],
                    _ => true,
                };
                let below = match values[1] {
                    Datum::Int(high) => *at < high || high == *at && inclusive[1],
                    _ => true,
                };
                above && below
            });
            let wanted: BTreeSet<i64> = wanted.collect();
            assert_eq!(members(&range), wanted, "{range:?}");
            range
        };
        let ranges: Vec<Range> = (0..4).map(|_| draw()).collect();
        let wanted: BTreeSet<i64> = ranges.iter().flat_map(members).collect();
        let united = Multirange::of(ranges);
        let found: BTreeSet<i64> = united.ranges().iter().flat_map(members).collect();
        assert_eq!(found, wanted, "{united:?}");
        // In their order, with a value between two that is in neither.
        for pair in united.ranges().windows(2) {
            assert!(pair[0].compare(&pair[1]).is_lt(), "{united:?}");
            let (last, first) = (members(&pair[0]), members(&pair[1]));
            assert!(
                last.last().map(|at| at + 1) < first.first().copied(),
                "{united:?}"
            );
        }
    }
}
