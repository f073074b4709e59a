//! Tests of decimals: PostgreSQL's results, and a model on exact fractions.

use super::*;
use crate::Prng;
use crate::testing::random_decimal;
use std::string::ToString;

fn d(text: &str) -> Decimal {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn show(result: Result<Decimal, SqlError>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => error.state().to_string(),
    }
}

#[test]
fn text_both_ways() {
    for (input, output) in [
        ("0", "0"),
        ("-0", "0"),
        ("0.00", "0.00"),
        (" 12.50 ", "12.50"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("-0.007", "-0.007"),
        ("1e3", "1000"),
        ("1.5e-3", "0.0015"),
        ("1.50e1", "15.0"),
        ("0e10", "0"),
        ("100e-2", "1.00"),
        ("000000000000000000000000000000000000000000001.0", "1.0"),
        (
            "99999999999999999999999999999999999999",
            "99999999999999999999999999999999999999",
        ),
        (
            "0.00000000000000000000000000000000000001",
            "0.00000000000000000000000000000000000001",
        ),
    ] {
        assert_eq!(d(input).to_string(), output, "{input}");
    }
    for bad in [
        "", " ", ".", "-", "1.2.3", "1e", "1e+", "e5", "1 2", "0x1", "1_0", "--1",
    ] {
        let error = bad.parse::<Decimal>().expect_err(bad);
        assert_eq!(error.state(), SqlState::INVALID_TEXT, "{bad}");
        let message = format!("invalid input syntax for type numeric: \"{bad}\"");
        assert_eq!(error.fields().message, message);
    }
    for wide in [
        "1e38",
        "100000000000000000000000000000000000000",
        "1e-39",
        "1e2147483648",
        "0e-39",
        "1.00000000000000000000000000000000000000",
    ] {
        let error = wide.parse::<Decimal>().expect_err(wide);
        assert_eq!(error.state(), SqlState::NUMERIC_OUT_OF_RANGE, "{wide}");
    }
    for special in ["NaN", "-Infinity", "inf"] {
        let error = special.parse::<Decimal>().expect_err(special);
        assert_eq!(error.state(), SqlState::INVALID_TEXT);
    }
}

/// Results that PostgreSQL 15 gives.
#[test]
fn quotients_have_the_scale_of_postgresql() {
    for (a, b, quotient) in [
        ("1", "3", "0.33333333333333333333"),
        ("10", "3", "3.3333333333333333"),
        ("2", "3", "0.66666666666666666667"),
        ("100.00", "3", "33.3333333333333333"),
        ("1", "8", "0.12500000000000000000"),
        ("6", "2", "3.0000000000000000"),
        ("-7", "2", "-3.5000000000000000"),
        ("1.00000000000000000001", "1", "1.00000000000000000001"),
        ("1", "10000", "0.000100000000000000000000"),
        ("123456789", "7", "17636684.142857142857"),
        ("0", "5", "0.00000000000000000000"),
        (
            "99999999999999999999999999999999999999",
            "1",
            "99999999999999999999999999999999999999",
        ),
        ("1", "0", "22012"),
    ] {
        assert_eq!(show(d(a).div(d(b))), quotient, "{a} / {b}");
    }
    let tiny = d("0.00000000000000000000000000000000000001");
    assert_eq!(
        show(d("1").div(tiny)),
        "22003",
        "the quotient has 39 digits"
    );
    assert_eq!(
        show(d("0.1").div(tiny)),
        "22003",
        "with 38 behind the point"
    );
}

#[test]
fn sums_are_exact_or_an_error() {
    assert_eq!(show(d("1.5").add(d("2.25"))), "3.75");
    assert_eq!(show(d("0.1").sub(d("0.10"))), "0.00");
    let largest = d("99999999999999999999999999999999999999");
    assert_eq!(show(largest.add(d("1"))), "22003");
    assert_eq!(show(largest.add(d("0.1"))), "22003");
    assert_eq!(show(largest.neg().sub(d("1"))), "22003");
    assert_eq!(show(d("7.5").rem(d("2"))), "1.5");
    assert_eq!(show(d("-7.5").rem(d("2"))), "-1.5");
    assert_eq!(show(d("7").div_trunc(d("-2"))), "-3");
    assert_eq!(show(d("7").rem(d("0"))), "22012");
}

#[test]
fn products_are_exact_or_an_error() {
    assert_eq!(show(d("1.5").mul(d("-0.20"))), "-0.300");
    let long = d("1.23456789012345678901234567890123456");
    assert_eq!(
        show(long.mul(d("10"))),
        "12.34567890123456789012345678901234560"
    );
    assert_eq!(show(long.mul(long)), "22003");
    assert_eq!(show(d("1e20").mul(d("1e20"))), "22003");
    assert_eq!(
        show(d("1e19").mul(d("9999999999999999999"))),
        "99999999999999999990000000000000000000"
    );
    let small = d("0.00000000000000000001");
    assert_eq!(show(small.mul(small)), "22003");
}

#[test]
fn rounding_to_a_scale() {
    for (value, scale, rounded, truncated) in [
        ("2.5", 0, "3", "2"),
        ("-2.5", 0, "-3", "-2"),
        ("2.45", 1, "2.5", "2.4"),
        ("1234.5", -2, "1200", "1200"),
        ("1250", -2, "1300", "1200"),
        ("5", -1, "10", "0"),
        ("5", -40, "0", "0"),
        ("1.5", 4, "1.5000", "1.5000"),
    ] {
        assert_eq!(
            show(d(value).round(scale)),
            rounded,
            "round({value}, {scale})"
        );
        assert_eq!(
            show(d(value).trunc(scale)),
            truncated,
            "trunc({value}, {scale})"
        );
    }
    for (value, ceil, floor) in [
        ("1.2", "2", "1"),
        ("-1.2", "-1", "-2"),
        ("3.00", "3", "3"),
        ("-0.5", "0", "-1"),
    ] {
        assert_eq!(show(d(value).ceil()), ceil);
        assert_eq!(show(d(value).floor()), floor);
    }
}

#[test]
fn columns_check_their_precision() {
    assert_eq!(show(d("123.455").rescale(5, 2)), "123.46");
    assert_eq!(show(d("7").rescale(12, 2)), "7.00");
    let error = d("1000")
        .rescale(5, 2)
        .expect_err("four digits before the point");
    assert_eq!(error.fields().message, "numeric field overflow");
    assert_eq!(
        error.fields().detail,
        "A field with precision 5, scale 2 must round to an absolute value less than 10^3."
    );
    let error = d("0.999").rescale(2, 2).expect_err("rounds to one");
    assert!(error.fields().detail.ends_with("less than 1."));
    assert_eq!(show(d("1e20").rescale(38, 30)), "22003");
    assert_eq!(show(d("-999.994").rescale(5, 2)), "-999.99");
    assert_eq!(show(d("-999.995").rescale(5, 2)), "22003");
}

#[test]
fn integers_and_floats() {
    assert_eq!(d("2.5").to_i64(), Ok(3));
    assert_eq!(d("9223372036854775807").to_i64(), Ok(i64::MAX));
    assert!(d("9223372036854775808").to_i64().is_err());
    assert_eq!(d("2.50").to_i64_exact(), None);
    assert_eq!(d("2.00").to_i64_exact(), Some(2));
    assert_eq!(d("0.1").to_f64(), 0.1);
    assert_eq!(
        d("-12345678901234567890.5").to_f64(),
        -12_345_678_901_234_567_890.5
    );
}

#[test]
fn equal_numbers_of_different_scale_are_equal() {
    use core::hash::BuildHasher;
    let state = core::hash::BuildHasherDefault::<crate::lookup::FixedHasher>::default();
    assert_eq!(d("1.50"), d("1.5"));
    assert_eq!(state.hash_one(d("1.50")), state.hash_one(d("1.5")));
    assert_eq!(d("1.50").normalized().to_string(), "1.5");
    assert_eq!(d("100").normalized().to_string(), "100");
    assert_ne!(d("1.51"), d("1.5"));
}

/// Compares through two independent ways: the digits as text.
fn compare_texts(a: Decimal, b: Decimal) -> Ordering {
    let parts = |value: Decimal| {
        let text = value.abs().to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        (format!("{whole:0>40}{fraction:0<40}"), value.is_negative())
    };
    let ((a, a_negative), (b, b_negative)) = (parts(a), parts(b));
    match (a_negative, b_negative) {
        (false, false) => a.cmp(&b),
        (true, true) => b.cmp(&a),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

#[test]
fn random_decimals_obey_arithmetic() {
    let mut prng = Prng::new(11);
    for _ in 0..30_000 {
        let (a, b) = (random_decimal(&mut prng), random_decimal(&mut prng));
        let text = a.to_string();
        let again = d(&text);
        assert_eq!((again, again.scale()), (a, a.scale()), "{text}");
        assert_eq!(a.cmp(&b), compare_texts(a, b), "{a} against {b}");
        if let Ok(sum) = a.add(b) {
            assert_eq!(sum.scale(), a.scale().max(b.scale()));
            assert_eq!(sum, b.add(a).expect("sums commute"));
            // `a` over the larger scale may have no room, but a result is never another number.
            if let Ok(back) = sum.sub(b) {
                assert_eq!(back, a);
            }
        }
        if let Ok(product) = a.mul(b) {
            assert_eq!(Ok(product), b.mul(a), "products commute");
        }
        if b.is_zero() {
            assert_eq!(show(a.div(b)), "22012");
            continue;
        }
        if let Ok(rest) = a.rem(b) {
            assert!(rest.abs() < b.abs(), "{a} % {b} = {rest}");
        }
        if let Ok(quotient) = a.div(b) {
            check_quotient(a, b, quotient);
        }
    }
}

/// The quotient is off by at most half a unit of its last place, checked where it is exact enough
/// to multiply back.
fn check_quotient(a: Decimal, b: Decimal, quotient: Decimal) {
    let Some(scale) = quotient
        .scale()
        .checked_add(b.scale())
        .filter(|scale| *scale <= SCALE_MAX)
    else {
        return;
    };
    let Some(back) = quotient.unscaled().checked_mul(b.unscaled()) else {
        return;
    };
    let factor = POW10[scale as usize] as i128;
    let Some(exact) = a
        .unscaled()
        .checked_mul(factor / POW10[a.scale() as usize] as i128)
    else {
        return;
    };
    let Some(error) = exact.checked_sub(back) else {
        return;
    };
    let twice = error.unsigned_abs().saturating_mul(2);
    assert!(
        twice <= b.unscaled().unsigned_abs(),
        "{a} / {b} = {quotient}"
    );
}

#[test]
fn only_valid_parts_deserialize() {
    let bytes = crate::codec::to_vec(&(10i128.pow(38), 0u8));
    assert!(crate::codec::decode::<Decimal>(&bytes).is_err());
    let bytes = crate::codec::to_vec(&(1i128, 39u8));
    assert!(crate::codec::decode::<Decimal>(&bytes).is_err());
    let bytes = crate::codec::to_vec(&d("-1.50"));
    assert_eq!(
        crate::codec::decode::<Decimal>(&bytes).map(|v| v.to_string()),
        Ok("-1.50".into())
    );
}
