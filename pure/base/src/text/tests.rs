//! Tests of the text forms against PostgreSQL's results and messages.

use super::*;
use crate::testing::{all_types, random_text, random_value, same};
use crate::{ArrayKind, Prng};
use std::string::ToString;

const NUMERIC: Type = Type::Numeric(None);

/// The value as it prints after it was read, or SQLSTATE and message.
fn echo(ty: Type, text: &str) -> String {
    match parse(ty, text) {
        Ok(datum) => to_string(ty, &datum),
        Err(error) => error.to_string(),
    }
}

fn check(ty: Type, cases: &[(&str, &str)]) {
    for (input, output) in cases {
        assert_eq!(echo(ty, input), *output, "{ty:?} {input:?}");
    }
}

#[test]
fn values_round_trip() {
    let mut prng = Prng::new(41);
    for ty in all_types() {
        for _ in 0..1_000 {
            let value = random_value(&mut prng, ty);
            let text = to_string(ty, &value);
            let back = parse(ty, &text).unwrap_or_else(|error| panic!("{ty:?} {text}: {error}"));
            assert!(
                same(&back, &value),
                "{ty:?}: {value:?} as {text} became {back:?}"
            );
        }
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let mut prng = Prng::new(42);
    const PIECES: [&str; 24] = [
        "1",
        "12",
        "2024",
        "99999999999",
        "-",
        "+",
        ":",
        ".",
        "/",
        " ",
        "T",
        "Z",
        "jan",
        "BC",
        "e",
        "day",
        "mon",
        "ago",
        "P",
        "{",
        "}",
        "\"",
        "infinity",
        "\u{e9}",
    ];
    for _ in 0..100_000 {
        let text: String = (0..prng.below(9))
            .map(|_| PIECES[prng.below(24) as usize])
            .collect();
        let text = if prng.below(5) == 0 {
            random_text(&mut prng)
        } else {
            text
        };
        for ty in [
            Type::Date,
            Type::Time(None),
            Type::Timestamptz(None),
            Type::Interval(None),
            NUMERIC,
            Type::Float4,
        ] {
            if let Ok(value) = parse(ty, &text) {
                let shown = to_string(ty, &value);
                let again = parse(ty, &shown).unwrap_or_else(|e| panic!("{text} {shown}: {e}"));
                assert!(same(&again, &value), "{ty:?} {text} as {shown}");
            }
        }
        let _ = parse(Type::Array(ArrayKind::Text), &text);
        let _ = parse(Type::Bytea, &text);
        let _ = parse(Type::Uuid, &text);
    }
}

#[test]
fn booleans() {
    check(
        Type::Bool,
        &[
            ("t", "t"),
            (" TRUE ", "t"),
            ("on", "t"),
            ("of", "f"),
            ("no", "f"),
            ("0", "f"),
            ("o", "22P02: invalid input syntax for type boolean: \"o\""),
            ("", "22P02: invalid input syntax for type boolean: \"\""),
        ],
    );
}

#[test]
fn integers() {
    check(
        Type::Int4,
        &[
            (" 42 ", "42"),
            ("-2147483648", "-2147483648"),
            ("+7", "7"),
            ("x", "22P02: invalid input syntax for type integer: \"x\""),
            (
                "1.5",
                "22P02: invalid input syntax for type integer: \"1.5\"",
            ),
            ("", "22P02: invalid input syntax for type integer: \"\""),
            (
                "99999999999",
                "22003: value \"99999999999\" is out of range for type integer",
            ),
        ],
    );
    check(
        Type::Int2,
        &[
            (
                "32768",
                "22003: value \"32768\" is out of range for type smallint",
            ),
            ("-5", "-5"),
        ],
    );
    check(
        Type::Int8,
        &[
            ("-9223372036854775808", "-9223372036854775808"),
            (
                "9223372036854775808",
                "22003: value \"9223372036854775808\" is out of range for type bigint",
            ),
        ],
    );
    check(
        Type::Oid,
        &[("4294967295", "4294967295"), ("-1", "4294967295")],
    );
}

#[test]
fn floats() {
    check(
        Type::Float8,
        &[
            ("1", "1"),
            ("0.1", "0.1"),
            ("-0", "-0"),
            ("1e14", "100000000000000"),
            ("1e15", "1e+15"),
            ("123456789012345680", "1.2345678901234568e+17"),
            ("0.0001", "0.0001"),
            ("0.00001234", "1.234e-05"),
            ("1e300", "1e+300"),
            ("-923393011062915.25", "-923393011062915.2"),
            ("1.823832410693509e16", "1.8238324106935088e+16"),
            ("7e22", "7.0000000000000004e+22"),
            ("1e23", "9.999999999999999e+22"),
            ("9007199254740993", "9.007199254740992e+15"),
            ("4.9e-324", "5e-324"),
            ("2.2250738585072014e-308", "2.2250738585072014e-308"),
            ("12345.678", "12345.678"),
            (" nan ", "NaN"),
            ("-inf", "-Infinity"),
            (".5", "0.5"),
            ("5.", "5"),
            (
                "1e400",
                "22003: \"1e400\" is out of range for type double precision",
            ),
            (
                "1e-400",
                "22003: \"1e-400\" is out of range for type double precision",
            ),
            ("0e-400", "0"),
            (
                "abc",
                "22P02: invalid input syntax for type double precision: \"abc\"",
            ),
            (
                "1 2",
                "22P02: invalid input syntax for type double precision: \"1 2\"",
            ),
        ],
    );
    check(
        Type::Float4,
        &[
            ("0.1", "0.1"),
            ("1234567", "1.234567e+06"),
            ("123456", "123456"),
            ("7727.53125", "7727.5312"),
            ("1.1275670318897912e8", "1.12756704e+08"),
            ("16777217", "1.6777216e+07"),
            ("1e39", "22003: \"1e39\" is out of range for type real"),
        ],
    );
}

#[test]
fn texts_and_bytes() {
    check(Type::Char(0), &[("ab  ", "ab")]);
    assert_eq!(echo(Type::Char(4), "ab"), "ab  ");
    check(
        Type::Text,
        &[(
            "a\0",
            "22021: invalid byte sequence for encoding \"UTF8\": 0x00",
        )],
    );
    check(Type::InternalChar, &[("rest", "r"), ("", "")]);
    assert_eq!(echo(Type::Name, &"\u{e9}".repeat(40)), "\u{e9}".repeat(31));
    check(
        Type::Bytea,
        &[
            ("\\x00fF", "\\x00ff"),
            ("\\x 00 ff", "\\x00ff"),
            ("a\\\\b\\001", "\\x615c6201"),
            (
                "\\x0",
                "22023: invalid hexadecimal data: odd number of digits",
            ),
            ("\\x0g", "22023: invalid hexadecimal digit: \"g\""),
            ("\\9", "22P02: invalid input syntax for type bytea"),
        ],
    );
    let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    check(
        Type::Uuid,
        &[
            (uuid, uuid),
            ("{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", uuid),
            ("a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", uuid),
            ("a0", "22P02: invalid input syntax for type uuid: \"a0\""),
        ],
    );
}

#[test]
fn dates() {
    check(
        Type::Date,
        &[
            ("2024-02-29", "2024-02-29"),
            ("20240229", "2024-02-29"),
            ("1/8/1999", "1999-01-08"),
            ("01/02/03", "2003-01-02"),
            ("January 8, 1999", "1999-01-08"),
            ("8 Jan 99", "1999-01-08"),
            ("1999-Jan-08", "1999-01-08"),
            ("2024-02-29 23:59:59", "2024-02-29"),
            ("0044-03-15 BC", "0044-03-15 BC"),
            ("infinity", "infinity"),
            ("-infinity", "-infinity"),
            ("epoch", "1970-01-01"),
            (
                "2023-02-29",
                "22008: date/time field value out of range: \"2023-02-29\"",
            ),
            (
                "2023-13-01",
                "22008: date/time field value out of range: \"2023-13-01\"",
            ),
            (
                "0000-01-01",
                "22008: date/time field value out of range: \"0000-01-01\"",
            ),
            (
                "5874898-01-01",
                "22008: date out of range: \"5874898-01-01\"",
            ),
            (
                "hello",
                "22007: invalid input syntax for type date: \"hello\"",
            ),
            ("", "22007: invalid input syntax for type date: \"\""),
            (
                "2024-01",
                "22007: invalid input syntax for type date: \"2024-01\"",
            ),
        ],
    );
}

#[test]
fn timestamps() {
    check(
        Type::Timestamp(None),
        &[
            ("2024-01-15 10:20:30.5", "2024-01-15 10:20:30.5"),
            ("2024-01-15T10:20", "2024-01-15 10:20:00"),
            ("20240115T102030.123456", "2024-01-15 10:20:30.123456"),
            ("2024-01-15 10:20:30+05", "2024-01-15 10:20:30"),
            ("2024-01-15 24:00", "2024-01-16 00:00:00"),
            ("2024-01-15 23:59:60", "2024-01-16 00:00:00"),
            ("2024-01-15 10:20:30.1234567", "2024-01-15 10:20:30.123457"),
            ("Jan 15 2024 1:02 PM", "2024-01-15 13:02:00"),
            ("Mon Jan 15 2024 12:00 am", "2024-01-15 00:00:00"),
            ("2024-01-15", "2024-01-15 00:00:00"),
            (
                "10:20",
                "22007: invalid input syntax for type timestamp: \"10:20\"",
            ),
            (
                "2024-01-15 25:00",
                "22008: date/time field value out of range: \"2024-01-15 25:00\"",
            ),
            (
                "294277-01-01",
                "22008: timestamp out of range: \"294277-01-01\"",
            ),
        ],
    );
    check(
        Type::Timestamptz(None),
        &[
            ("2024-01-15 10:20:30", "2024-01-15 10:20:30+00"),
            ("2024-01-15 10:20:30+02", "2024-01-15 08:20:30+00"),
            ("2024-01-15 10:20:30 -05:30", "2024-01-15 15:50:30+00"),
            ("2024-01-15 10:20:30-0530", "2024-01-15 15:50:30+00"),
            ("2024-01-15T10:20:30.25Z", "2024-01-15 10:20:30.25+00"),
            ("2024-01-15 10:20:30 UTC", "2024-01-15 10:20:30+00"),
            ("0001-01-01 00:00:00+01", "0001-12-31 23:00:00+00 BC"),
            ("infinity", "infinity"),
            (
                "2024-01-15 10:00 mars",
                "22023: time zone \"mars\" not recognized",
            ),
            (
                "2024-01-15 10:00+16",
                "22009: time zone displacement out of range: \"2024-01-15 10:00+16\"",
            ),
            (
                "x",
                "22007: invalid input syntax for type timestamp with time zone: \"x\"",
            ),
        ],
    );
}

#[test]
fn times() {
    check(
        Type::Time(None),
        &[
            ("04:05:06.789", "04:05:06.789"),
            ("04:05", "04:05:00"),
            ("040506", "04:05:06"),
            ("0405", "04:05:00"),
            ("T04:05", "04:05:00"),
            ("04:05 PM", "16:05:00"),
            ("12:30 am", "00:30:00"),
            ("04:05:06-08:00", "04:05:06"),
            ("2003-04-12 04:05:06 America/New_York", "04:05:06"),
            ("24:00", "24:00:00"),
            ("23:59:60", "24:00:00"),
            ("23:59:59.9999999", "24:00:00"),
            ("allballs", "00:00:00"),
            ("", "22007: invalid input syntax for type time: \"\""),
            ("10", "22007: invalid input syntax for type time: \"10\""),
            (
                "2003-04-12",
                "22007: invalid input syntax for type time: \"2003-04-12\"",
            ),
            (
                "25:00",
                "22008: date/time field value out of range: \"25:00\"",
            ),
            (
                "13:05 PM",
                "22008: date/time field value out of range: \"13:05 PM\"",
            ),
            (
                "24:00:01",
                "22008: date/time field value out of range: \"24:00:01\"",
            ),
        ],
    );
}

#[test]
fn intervals() {
    check(
        Type::Interval(None),
        &[
            ("1 day", "1 day"),
            (
                "1 year 2 mons 3 days 04:05:06.7",
                "1 year 2 mons 3 days 04:05:06.7",
            ),
            ("-1 day +02:03", "-1 days +02:03:00"),
            ("1.5 hours", "01:30:00"),
            ("1.5 days", "1 day 12:00:00"),
            ("1.5 months", "1 mon 15 days"),
            ("1.5 years", "1 year 6 mons"),
            ("2 weeks", "14 days"),
            ("@ 1 hour ago", "-01:00:00"),
            ("90 minutes", "01:30:00"),
            ("30", "00:00:30"),
            ("1 02:03:04", "1 day 02:03:04"),
            ("1-2", "1 year 2 mons"),
            ("-14 mons", "-1 years -2 mons"),
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
            ("PT36H", "36:00:00"),
            ("0", "00:00:00"),
            ("100 hours", "100:00:00"),
            ("250 milliseconds", "00:00:00.25"),
            ("", "22007: invalid input syntax for type interval: \"\""),
            (
                "1 day 2 days",
                "22007: invalid input syntax for type interval: \"1 day 2 days\"",
            ),
            (
                "5 1 day",
                "22007: invalid input syntax for type interval: \"5 1 day\"",
            ),
            (
                "1 parsec",
                "22007: invalid input syntax for type interval: \"1 parsec\"",
            ),
            (
                "9999999999 years",
                "22015: interval field value out of range: \"9999999999 years\"",
            ),
        ],
    );
}

#[test]
fn intervals_in_iso_8601() {
    for (input, output) in [
        ("1 year -2 mons 3 days 04:05:06.070", "P10M3DT4H5M6.07S"),
        ("0", "PT0S"),
        ("-1.5 seconds", "PT-1.5S"),
        ("-100:00:01", "PT-100H-1S"),
        ("1 us", "PT0.000001S"),
        ("-13 mons", "P-1Y-1M"),
        ("1 day -00:00:00.25", "P1DT-0.25S"),
        ("60 min", "PT1H"),
    ] {
        let Ok(Datum::Interval(span)) = parse(Type::Interval(None), input) else {
            panic!("{input} is an interval");
        };
        assert_eq!(SpanStyle::Iso.text(span), output);
    }
}

#[test]
fn intervals_in_other_styles() {
    for (input, sql, verbose) in [
        ("0", "0", "@ 0"),
        ("1 year 2 mons", "1-2", "@ 1 year 2 mons"),
        ("-1 year -2 mons", "-1-2", "@ 1 year 2 mons ago"),
        (
            "3 days 04:05:06.7",
            "3 4:05:06.7",
            "@ 3 days 4 hours 5 mins 6.7 secs",
        ),
        ("-04:05:01", "-4:05:01", "@ 4 hours 5 mins 1 sec ago"),
        ("1 mon -1 day", "+0-1 -1 +0:00:00", "@ 1 mon -1 days"),
        (
            "-1 day +00:00:01.5",
            "+0-0 -1 +0:00:01.5",
            "@ 1 day -1.5 secs ago",
        ),
    ] {
        let Ok(Datum::Interval(span)) = parse(Type::Interval(None), input) else {
            panic!("{input} is an interval");
        };
        assert_eq!(SpanStyle::Sql.text(span), sql);
        assert_eq!(SpanStyle::Verbose.text(span), verbose);
    }
}

#[test]
fn a_leading_sign_counts_for_all_in_sql() {
    for (input, output) in [
        ("-1 2:03:04", "-1 days -02:03:04"),
        ("-1 +2:03:04", "-1 days +02:03:04"),
        ("-1 year 2 mons", "-1 years -2 mons"),
        ("1 day 2:00", "1 day 02:00:00"),
        ("-1-2 3 4:05", "-1 years -2 mons -3 days -04:05:00"),
    ] {
        let ty = Type::Interval(None);
        let read = SpanStyle::Sql.parse(ty, input).expect(input);
        assert_eq!(to_string(ty, &read), output);
    }
}

#[test]
fn vectors() {
    let unread = "22P02: invalid input syntax for type smallint: \"{1}\"";
    check(
        Type::Array(ArrayKind::Int2Vector),
        &[
            ("", ""),
            ("1", "1"),
            (" 1  -2\t3 ", "1 -2 3"),
            ("{1}", unread),
        ],
    );
    check(
        Type::Array(ArrayKind::OidVector),
        &[("23 4294967295", "23 4294967295")],
    );
}

#[test]
fn arrays() {
    let texts = Type::Array(ArrayKind::Text);
    check(
        texts,
        &[
            ("{}", "{}"),
            ("{a,\"b c\",NULL}", "{a,\"b c\",NULL}"),
            ("{ a b , \"null\" }", "{\"a b\",\"null\"}"),
            ("{\"\",\"\\\"\\\\\"}", "{\"\",\"\\\"\\\\\"}"),
            ("{{a},{b}}", "{{a},{b}}"),
            (" [2:3] = {a,b} ", "[2:3]={a,b}"),
            ("[1:2]={a,b}", "{a,b}"),
            (
                "{{a},{b,c}}",
                "22P02: malformed array literal: \"{{a},{b,c}}\"",
            ),
            (
                "[2:1]={}",
                "2202E: upper bound cannot be less than lower bound",
            ),
            ("a", "22P02: malformed array literal: \"a\""),
            ("{a", "22P02: malformed array literal: \"{a\""),
            ("{a,}", "22P02: malformed array literal: \"{a,}\""),
            ("{\"a\"b}", "22P02: malformed array literal: \"{\"a\"b}\""),
            ("{\"a}", "22P02: malformed array literal: \"{\"a}\""),
            ("{a}b}", "22P02: malformed array literal: \"{a}b}\""),
        ],
    );
    check(
        Type::Array(ArrayKind::Int4),
        &[
            ("{1, 2,null}", "{1,2,NULL}"),
            ("{x}", "22P02: invalid input syntax for type integer: \"x\""),
        ],
    );
}

fn fitted(ty: Type, datum: impl Into<Datum>) -> String {
    match fit(ty, datum.into()) {
        Ok(datum) => to_string(ty, &datum),
        Err(error) => error.to_string(),
    }
}

#[test]
fn assignment_applies_modifiers() {
    let varchar = Type::Varchar(Some(3));
    assert_eq!(fitted(varchar, "abc"), "abc");
    assert_eq!(fitted(varchar, "abc  "), "abc");
    assert_eq!(fitted(varchar, "\u{e9}\u{e9}\u{e9}"), "\u{e9}\u{e9}\u{e9}");
    assert_eq!(
        fitted(varchar, "abcd"),
        "22001: value too long for type character varying(3)"
    );
    assert_eq!(fitted(Type::Char(3), "a"), "a  ");
    assert_eq!(
        fit(Type::Char(3), "a ".into()),
        Ok("a".into()),
        "stored without padding"
    );
    assert_eq!(
        fitted(Type::Char(2), "abc"),
        "22001: value too long for type character(2)"
    );
    assert_eq!(fit_explicit(varchar, "abcd".into()), Ok("abc".into()));
    assert_eq!(fit_explicit(Type::Char(3), "a  b".into()), Ok("a".into()));
    let money = Type::Numeric(Some((5, 2)));
    assert_eq!(fitted(money, 7i64), "7.00");
    assert_eq!(fitted(money, 1.005f64), "1.01");
    assert_eq!(fitted(money, 1000i64), "22003: numeric field overflow");
    assert_eq!(
        fitted(Type::Int4, 1i64 << 31),
        "22003: integer out of range"
    );
    assert_eq!(
        fitted(Type::Int2, 40_000i64),
        "22003: smallint out of range"
    );
    assert_eq!(
        fitted(Type::Int4, 2.5f64),
        "2",
        "floats round halves to even"
    );
    assert_eq!(fitted(Type::Int4, -3.5f64), "-4");
    assert_eq!(fitted(Type::Int8, 9.3e18f64), "22003: bigint out of range");
    assert_eq!(fitted(Type::Int4, f64::NAN), "22003: integer out of range");
    let half: Datum = Datum::Decimal("2.5".parse().expect("a number"));
    assert_eq!(
        fitted(Type::Int4, half.clone()),
        "3",
        "decimals round away from zero"
    );
    assert_eq!(fitted(Type::Float8, half), "2.5");
    assert_eq!(fitted(Type::Float4, 0.1f64), "0.1");
    assert_eq!(
        fitted(Type::Float4, 1e300f64),
        "22003: value out of range: overflow"
    );
    assert_eq!(
        fitted(Type::Float4, 1e-300f64),
        "22003: value out of range: underflow"
    );
    assert_eq!(
        fitted(Type::Timestamp(None), Datum::Date(1)),
        "2000-01-02 00:00:00"
    );
    assert_eq!(fitted(Type::Date, Datum::Timestamp(-1)), "1999-12-31");
    assert_eq!(fit(varchar, Datum::Null), Ok(Datum::Null));
    let far = fit(
        Type::Timestamp(None),
        Datum::Date(crate::calendar::DATE_MAX),
    );
    assert_eq!(
        far.map_err(|error| error.state().to_string()),
        Err("22008".into())
    );
}

#[test]
fn char_values_pad_by_characters() {
    assert_eq!(to_string(Type::Char(3), &"\u{e9}".into()), "\u{e9}  ");
    assert_eq!(
        to_string(
            Type::Array(ArrayKind::Bool),
            &vec![Datum::Bool(true)].into()
        ),
        "{t}"
    );
}
