//! Tests of large numerics: identities of arithmetic, and PostgreSQL's results.

use super::*;
use crate::Prng;
use crate::testing::random_numeric;
use std::string::{String, ToString};

fn n(text: &str) -> Numeric {
    let parsed = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Numeric::of(&parsed).expect("a number")
}

fn show(result: Result<Numeric, SqlError>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => error.state().to_string(),
    }
}

fn random_natural(prng: &mut Prng, digits: usize) -> Natural {
    let digits: Vec<u8> = (0..digits)
        .map(|_| match prng.below(3) {
            0 => b'0',
            1 => b'9',
            _ => b'0' + prng.below(10) as u8,
        })
        .collect();
    Natural::of_digits(&digits)
}

#[test]
fn naturals_obey_arithmetic() {
    let mut prng = Prng::new(3);
    for round in 0..600 {
        // Every tenth is long enough to be multiplied in parts.
        let most = if round % 10 == 0 { 2_500 } else { 60 };
        let mut some = || {
            let digits = prng.below(most) as usize;
            random_natural(&mut prng, digits)
        };
        let (a, b, c) = (some(), some(), some());
        assert_eq!(a.add(&b).sub(&b), a);
        assert_eq!(a.mul(&b), b.mul(&a));
        assert_eq!(a.add(&b).mul(&c), a.mul(&c).add(&b.mul(&c)));
        assert_eq!(Natural::of_digits(a.to_digits().as_bytes()), a);
        if !b.is_zero() {
            let (quotient, rest) = a.div_rem(&b);
            assert!(rest < b);
            assert_eq!(quotient.mul(&b).add(&rest), a);
        }
        let root = a.isqrt();
        let next = root.add(&Natural::of_u128(1));
        assert!(root.mul(&root) <= a && a < next.mul(&next), "{root:?}");
        let shift = most as usize / 7;
        assert_eq!(a.raised(shift).lowered(shift), (a.clone(), Rest::Nothing));
    }
    let half = Natural::of_digits(b"1250000000");
    assert_eq!(half.lowered(9), (Natural::of_u128(1), Rest::Low));
    assert_eq!(half.lowered(8), (Natural::of_u128(12), Rest::Half));
    assert_eq!(half.lowered(10), (Natural::default(), Rest::Low));
    assert_eq!(Natural::of_digits(b"99").lowered(2).1, Rest::High);
    assert_eq!(Natural::of_digits(b"9").lowered(2).1, Rest::Low);
}

#[test]
fn numbers_agree_with_the_small_form() {
    let mut prng = Prng::new(4);
    for _ in 0..20_000 {
        let (a, b) = (random_numeric(&mut prng), random_numeric(&mut prng));
        let (large_a, large_b) = (Numeric::of(&a).expect("one"), Numeric::of(&b).expect("one"));
        assert_eq!(a.compare(&b), large_a.compare(&large_b), "{a:?} {b:?}");
        assert_eq!(parse(&large_a.to_string()).as_ref(), Ok(&a));
        let (Datum::Decimal(small_a), Datum::Decimal(small_b)) = (&a, &b) else {
            continue;
        };
        let pairs = [
            (small_a.add(*small_b), Ok(large_a.add(&large_b))),
            (small_a.mul(*small_b), Ok(large_a.mul(&large_b))),
            (small_a.div(*small_b), large_a.div(&large_b)),
            (small_a.rem(*small_b), large_a.rem(&large_b)),
            (small_a.div_trunc(*small_b), large_a.div_trunc(&large_b)),
            (small_a.round(2), Ok(large_a.round(2))),
            (small_a.trunc(-2), Ok(large_a.trunc(-2))),
            (small_a.ceil(), Ok(large_a.ceil())),
            (small_a.floor(), Ok(large_a.floor())),
        ];
        for (at, (small, large)) in pairs.into_iter().enumerate() {
            if let Ok(small) = small {
                assert_eq!(small.to_string(), show(large), "{at}: {a:?} {b:?}");
            }
        }
    }
}

/// Results that PostgreSQL 15 gives.
#[test]
fn results_are_those_of_postgresql() {
    for (result, text) in [
        (
            n("1e60").div(&n("3")),
            "333333333333333333333333333333333333333333333333333333333333",
        ),
        (n("2").sqrt(), "1.414213562373095"),
        (n("1e60").sqrt(), "1000000000000000000000000000000"),
        (n("0.0000004").sqrt(), "0.0006324555320336759"),
        (n("1").exp(), "2.7182818284590452"),
        (
            n("100").exp(),
            "26881171418161354484126255515800135873611119",
        ),
        (n("-50.5").exp(), "0.0000000000000000000001169845917706196"),
        (n("0.0").exp(), "1.0000000000000000"),
        (n("6000").exp(), "22003"),
        (n("1.00001").ln(), "0.000009999950000333331"),
        (n("10").ln(), "2.3025850929940457"),
        (n("1e50").ln(), "115.12925464970228"),
        (n("0").ln(), "2201E"),
        (n("2").log(&n("64")), "6.0000000000000000"),
        (n("10").log(&n("0.5")), "-0.3010299956639812"),
        (
            n("3").log(&n("1e-40")),
            "-83.8361309715753841718627008808560500243007",
        ),
        (n("1").log(&n("2")), "22012"),
        (
            n("2").power(&n("100")),
            "1267650600228229401496703205376.0000000000000000",
        ),
        (n("7.123").power(&n("-5")), "0.0000545362508074"),
        (n("0.5").power(&n("100")), "0.0000000000000000"),
        (n("2").power(&n("0.5")), "1.4142135623730950"),
        (n("1.0000001").power(&n("1000")), "1.0001000049951662"),
        (n("0").power(&n("-1")), "2201F"),
        (n("-8").power(&n("0.5")), "2201F"),
        (n("0").power(&n("0")), "1.0000000000000000"),
        (
            n("12345.678").power(&n("3")),
            "1881675960266.5586057520000000",
        ),
        (n("3").power(&n("-3")), "0.0370370370370370"),
        (n("5").power(&n("NaN")), "NaN"),
        (n("1").power(&n("NaN")), "1"),
        (n("Infinity").rem(&n("3")), "NaN"),
        (n("3").rem(&n("Infinity")), "3"),
        (n("Infinity").div_trunc(&n("3")), "Infinity"),
        (n("3").div(&n("Infinity")), "0"),
        (n("-Infinity").sqrt(), "2201F"),
        (n("-Infinity").exp(), "0"),
        (n("2").log(&n("Infinity")), "Infinity"),
        (
            factorial(40),
            "815915283247897734345611269596115894272000000000",
        ),
        (factorial(-1), "22003"),
        (factorial(40_000), "22003"),
        (n("1e100").rem(&n("7")), "4"),
        (n("Infinity").rescale(5, 2), "22003"),
        (n("NaN").rescale(5, 2), "NaN"),
    ] {
        assert_eq!(show(result), text);
    }
    assert_eq!(n("1e50").round(-49).to_string().len(), 51);
    assert_eq!(show(n("5999").exp()).len(), 2_606);
}

#[test]
fn texts_and_their_limits() {
    for (text, shown) in [
        ("-inf", "-Infinity"),
        (" +Infinity ", "Infinity"),
        ("nan", "NaN"),
        ("-0e-40", "0.0000000000000000000000000000000000000000"),
        ("1.50e-40", "0.000000000000000000000000000000000000000150"),
        ("123e40", "1230000000000000000000000000000000000000000"),
    ] {
        assert_eq!(n(text).to_string(), shown);
    }
    for (text, state) in [
        ("-NaN", "22P02"),
        ("infinit", "22P02"),
        ("1e", "22P02"),
        ("1e5.5", "22P02"),
        ("1e131072", "22003"),
        ("1e-16384", "22003"),
        ("0e-20000", "22003"),
        ("1e99999999999999999999", "22003"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.state().to_string(), state, "{text}");
    }
    assert!(parse("1e131071").is_ok());
    assert_eq!(from_f64(1e300).map(|it| it.as_float()), Ok(Some(1e300)));
    assert_eq!(from_f32(0.1), parse("0.1"));
    assert_eq!(from_f64(1.0 / 3.0), parse("0.333333333333333"));
}

#[test]
fn long_operations_are_bounded() {
    let long = Numeric::Finite(Finite::new(false, 0, Natural::of_digits(&[b'7'; 131_000])));
    let half = Numeric::Finite(Finite::new(false, 0, Natural::of_digits(&[b'3'; 65_000])));
    for result in [long.div(&half), long.sqrt(), long.rem(&half)] {
        assert_eq!(show(result), "54000");
    }
    assert!(half.mul(&half).into_datum().is_ok());
    assert!(long.mul(&half).into_datum().is_err());
    assert!(
        n("2")
            .power(&n("435000"))
            .is_ok_and(|it| it.into_datum().is_ok())
    );
}
