//! Model tests: the order of encodings is the order of values.

use super::*;
use crate::Prng;
use crate::key::{SLOT_COUNT, slot_of};
use crate::testing::{all_types, random_datum};
use core::cmp::Ordering;

fn encoded(datum: &Datum, descending: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode_datum(&mut out, datum, descending);
    out
}

#[test]
fn order_of_encodings_is_order_of_values() {
    let mut prng = Prng::new(5);
    for ty in all_types() {
        let values: Vec<Datum> = (0..300).map(|_| random_datum(&mut prng, ty)).collect();
        let keys: Vec<(Vec<u8>, Vec<u8>)> = values
            .iter()
            .map(|v| (encoded(v, false), encoded(v, true)))
            .collect();
        for (a, a_key) in values.iter().zip(&keys) {
            for (b, b_key) in values.iter().zip(&keys) {
                let order = a.compare(b);
                assert_eq!(a_key.0.cmp(&b_key.0), order, "{ty:?}: {a:?} against {b:?}");
                assert_eq!(a_key.1.cmp(&b_key.1), order.reverse(), "{ty:?} descending");
            }
        }
    }
}

#[test]
fn encodings_decode_to_equal_values() {
    let mut prng = Prng::new(6);
    for ty in all_types() {
        for _ in 0..500 {
            let value = random_datum(&mut prng, ty);
            for descending in [false, true] {
                let mut bytes = encoded(&value, descending);
                bytes.push(0x55);
                let mut input = bytes.as_slice();
                let back = decode_datum(&mut input, ty, descending).expect("own encoding");
                assert_eq!(
                    back.compare(&value),
                    Ordering::Equal,
                    "{ty:?}: {back:?} {value:?}"
                );
                assert_eq!(input, [0x55], "exactly the column is consumed");
                assert_eq!(encoded(&back, descending), bytes[..bytes.len() - 1]);
            }
        }
    }
}

#[test]
fn composite_keys_order_column_by_column() {
    let mut prng = Prng::new(7);
    let types = all_types();
    for _ in 0..3_000 {
        let columns: Vec<(Type, bool)> = (0..prng.between(1, 4))
            .map(|_| {
                (
                    types[prng.below(types.len() as u64) as usize],
                    prng.below(2) == 1,
                )
            })
            .collect();
        let mut row = || -> Vec<Datum> {
            columns
                .iter()
                .map(|(ty, _)| random_datum(&mut prng, *ty))
                .collect()
        };
        let (a, mut b) = (row(), row());
        // Rows that share a prefix are the interesting ones.
        b[0] = a[0].clone();
        let key = |row: &[Datum]| {
            let mut out = Vec::new();
            row.iter()
                .zip(&columns)
                .for_each(|(d, (_, desc))| encode_datum(&mut out, d, *desc));
            out
        };
        let orders = a
            .iter()
            .zip(&b)
            .zip(&columns)
            .map(|((a, b), (_, descending))| {
                if *descending {
                    b.compare(a)
                } else {
                    a.compare(b)
                }
            });
        let order = orders
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal);
        assert_eq!(
            key(&a).cmp(&key(&b)),
            order,
            "{columns:?}: {a:?} against {b:?}"
        );
        let bytes = key(&a);
        let mut input = bytes.as_slice();
        for (ty, descending) in &columns {
            decode_datum(&mut input, *ty, *descending).expect("own encoding");
        }
        assert!(input.is_empty());
    }
}

#[test]
fn small_integers_take_one_byte() {
    for (value, length) in [
        (0, 1),
        (111, 1),
        (112, 2),
        (255, 2),
        (256, 3),
        (-1, 1),
        (-2, 2),
        (i64::MAX, 9),
    ] {
        assert_eq!(encoded(&Datum::Int(value), false).len(), length, "{value}");
    }
    assert_eq!(encoded(&"ab".into(), false), b"ab\0\0");
    assert_eq!(encoded(&Datum::from(vec![0u8]), false), [1, 0, 0xff, 0, 0]);
    let all: Vec<Vec<u8>> = (-70_000..70_000)
        .map(|value| encoded(&Datum::Int(value), false))
        .collect();
    assert!(all.is_sorted_by(|a, b| a < b));
}

#[test]
fn null_is_last_ascending_and_first_descending() {
    let (null, text) = (
        encoded(&Datum::Null, false),
        encoded(&"\u{10ffff}".into(), false),
    );
    assert!(null > text);
    assert!(encoded(&Datum::Null, true) < encoded(&"".into(), true));
}

#[test]
fn corrupt_keys_never_panic() {
    let mut prng = Prng::new(8);
    let types = all_types();
    let mut accepted = 0;
    for _ in 0..100_000 {
        let ty = types[prng.below(types.len() as u64) as usize];
        let descending = prng.below(2) == 1;
        let mut bytes = encoded(&random_datum(&mut prng, ty), descending);
        match prng.below(3) {
            0 => bytes.truncate(prng.below(bytes.len() as u64 + 1) as usize),
            1 => {
                let at = prng.below(bytes.len() as u64) as usize;
                bytes[at] = prng.next_u64() as u8;
            }
            _ => bytes
                .iter_mut()
                .for_each(|byte| *byte = prng.next_u64() as u8),
        }
        let mut input = bytes.as_slice();
        accepted += u32::from(decode_datum(&mut input, ty, descending).is_ok());
    }
    assert!(accepted > 1_000, "some mutations are other values");
    assert_eq!(
        decode_datum(&mut [].as_slice(), Type::Int4, false),
        Err(CodecError::Truncated)
    );
}

#[test]
fn slots_are_stable_and_even() {
    // These numbers are on disk: they must never change.
    assert_eq!(slot_of(b"").0, 0);
    let of = |value: i64| slot_of(&encoded(&Datum::Int(value), false)).0;
    assert_eq!([of(0), of(1), of(2), of(1_000_000)], [572, 24, 116, 67]);
    let mut counts = [0u32; SLOT_COUNT as usize];
    for value in 0..102_400 {
        counts[of(value) as usize] += 1;
    }
    let (low, high) = (counts.iter().min().copied(), counts.iter().max().copied());
    assert!(
        low >= Some(60) && high <= Some(150),
        "{low:?} to {high:?} of 100 expected"
    );
}
