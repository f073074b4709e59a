//! Tests of the binary form: known bytes, round trips, hostile input.

use super::*;
use crate::testing::{all_types, random_value, same};
use crate::{ArrayKind, Prng};

fn encoded(ty: Type, datum: &Datum) -> Vec<u8> {
    let mut out = Vec::new();
    encode(ty, datum, &mut out);
    out
}

#[test]
fn values_round_trip() {
    let mut prng = Prng::new(31);
    for ty in all_types() {
        for _ in 0..1_000 {
            let value = random_value(&mut prng, ty);
            let bytes = encoded(ty, &value);
            let back = decode(ty, &bytes).expect("own encoding");
            assert!(same(&back, &value), "{ty:?}: {value:?} became {back:?}");
            let length = ty.typlen();
            if length > 0 && !ty.is_text() {
                assert_eq!(bytes.len(), length as usize, "{ty:?}");
            }
        }
    }
}

/// Bytes that PostgreSQL's `numeric_send` gives.
#[test]
fn numeric_bytes_are_those_of_postgresql() {
    for (text, words) in [
        ("0", &[0u16, 0, 0, 0][..]),
        ("0.00", &[0, 0, 0, 2]),
        ("1", &[1, 0, 0, 0, 1]),
        ("-12.50", &[2, 0, 0x4000, 2, 12, 5000]),
        ("10000", &[1, 1, 0, 0, 1]),
        ("123456.789", &[3, 1, 0, 3, 12, 3456, 7890]),
        ("0.0001", &[1, 0xffff, 0, 4, 1]),
        ("0.00001", &[1, 0xfffe, 0, 5, 1000]),
        ("1e50", &[1, 12, 0, 0, 100]),
        ("1e-50", &[1, 0xfff3, 0, 50, 100]),
        ("NaN", &[0, 0, 0xc000, 0]),
        ("Infinity", &[0, 0, 0xd000, 0x20]),
        ("-Infinity", &[0, 0, 0xf000, 0x20]),
    ] {
        let value = text::parse(Type::Numeric(None), text).expect("a number");
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(encoded(Type::Numeric(None), &value), bytes, "{text}");
        let back = decode(Type::Numeric(None), &bytes).expect("PostgreSQL's bytes");
        assert!(same(&back, &value), "{text} became {back:?}");
    }
    // Digits beyond the announced scale are cut, as numeric_recv does.
    let words = [2u16, 0, 0, 1, 1, 2999];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let value = decode(Type::Numeric(None), &bytes).expect("a number");
    assert_eq!(text::to_string(Type::Numeric(None), &value), "1.2");
}

#[test]
fn known_bytes() {
    assert_eq!(
        encoded(Type::Int4, &Datum::Int(-2)),
        [0xff, 0xff, 0xff, 0xfe]
    );
    assert_eq!(encoded(Type::Int2, &Datum::Int(258)), [1, 2]);
    assert_eq!(encoded(Type::Char(3), &"a".into()), b"a  ");
    assert_eq!(
        encoded(Type::Float8, &Datum::Float(1.0)),
        1f64.to_be_bytes()
    );
    let array = Type::Array(ArrayKind::Int4);
    assert_eq!(
        encoded(array, &Datum::Array([].into())),
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23]
    );
    let bytes = encoded(array, &vec![Datum::Int(1), Datum::Null].into());
    let ints = [1, 1, 23, 2, 1, 4, 1, -1i32];
    assert_eq!(
        bytes,
        ints.iter()
            .flat_map(|int| int.to_be_bytes())
            .collect::<Vec<u8>>()
    );
    assert_eq!(
        decode(Type::Text, b"a\xff").map_err(|e| e.state().to_string()),
        Err("22021".into())
    );
    assert_eq!(
        decode(Type::Int4, &[1]).map_err(|e| e.state().to_string()),
        Err("22P03".into())
    );
}

#[test]
fn vectors_count_from_zero() {
    let vector = Type::Array(ArrayKind::Int2Vector);
    let array = Type::Array(ArrayKind::Int2);
    let value = text::parse(vector, "7 8").expect("a vector");
    let bytes = encoded(vector, &value);
    let mut plain = encoded(array, &value);
    assert_eq!(decode(vector, &bytes).expect("own encoding"), value);
    assert_eq!(decode(vector, &plain).expect("an array"), value);
    const LOWER: core::ops::Range<usize> = 16..20;
    assert_eq!(bytes[LOWER], [0; 4]);
    plain[LOWER].fill(0);
    assert_eq!(bytes, plain);
    for refused in ["{{1},{2}}", "{1,NULL}"] {
        let value = text::parse(array, refused).expect("an array");
        let error = decode(vector, &encoded(array, &value)).expect_err("no vector");
        assert_eq!(error.to_string(), "22P03: invalid int2vector data");
    }
}

#[test]
fn hostile_bytes_never_panic() {
    let mut prng = Prng::new(32);
    let types = all_types();
    let mut refused = 0;
    for _ in 0..100_000 {
        let ty = types[prng.below(types.len() as u64) as usize];
        let mut bytes = encoded(ty, &random_value(&mut prng, ty));
        match prng.below(3) {
            0 => bytes.truncate(prng.below(bytes.len() as u64 + 1) as usize),
            1 if !bytes.is_empty() => {
                let at = prng.below(bytes.len() as u64) as usize;
                bytes[at] = prng.next_u64() as u8;
            }
            _ => bytes
                .iter_mut()
                .for_each(|byte| *byte = prng.next_u64() as u8),
        }
        match decode(ty, &bytes) {
            Ok(value) => {
                // What is accepted can be sent and written.
                let again = decode(ty, &encoded(ty, &value)).expect("own encoding");
                assert!(same(&again, &value), "{ty:?}: {value:?} became {again:?}");
                text::to_string(ty, &value);
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 1_000);
}
