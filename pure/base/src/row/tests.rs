//! Tests of row encoding: round trips, changes in place, corrupt bytes.

use super::values::row_len;
use super::*;
use crate::Prng;
use crate::Type;
use crate::testing::{all_types, random_datum, same};

fn random_row(prng: &mut Prng, width: u64) -> (Vec<Type>, Vec<Datum>) {
    let types = all_types();
    let row: Vec<Type> = (0..width)
        .map(|_| types[prng.below(types.len() as u64) as usize])
        .collect();
    let values = row.iter().map(|ty| random_datum(prng, *ty)).collect();
    (row, values)
}

#[test]
fn every_column_reads_back_alone() {
    let mut prng = Prng::new(21);
    for round in 0..3_000 {
        let width = if round % 100 == 0 {
            prng.below(700)
        } else {
            prng.below(12)
        };
        let (types, values) = random_row(&mut prng, width);
        let bytes = to_vec(&values);
        assert_eq!(
            bytes.len(),
            row_len(&values),
            "lengths are known in advance"
        );
        let row = RowRef::new(&bytes);
        assert_eq!(row.count(), values.len());
        assert_eq!(row.validate(), Ok(()));
        for (i, value) in values.iter().enumerate() {
            let read = row.col(i, types[i]).expect("own encoding");
            assert!(same(&read, value), "{read:?} for {value:?}");
            assert_eq!(row.is_null(i), value.is_null());
            if let Datum::Int(value) | Datum::Timestamp(value) = value {
                assert_eq!(row.col_int(i), Some(*value));
            }
            if let Datum::Text(value) = value {
                assert_eq!(row.col_bytes(i), Some(value.as_bytes()));
            }
        }
        assert_eq!(
            row.col(values.len(), Type::Text),
            Ok(Datum::Null),
            "missing column"
        );
        let all = row.decode(&types).expect("own encoding");
        assert!(all.iter().zip(&values).all(|(a, b)| same(a, b)));
    }
}

#[test]
fn long_values_widen_the_offsets() {
    for length in [0, 100, 255, 256, 65_535, 65_536, 300_000] {
        let text: String = "x".repeat(length);
        let values = [
            Datum::Int(7),
            text.as_str().into(),
            Datum::Null,
            Datum::Int(-7),
        ];
        let bytes = to_vec(&values);
        let row = RowRef::new(&bytes);
        assert_eq!(row.col_bytes(1).map(<[u8]>::len), Some(length));
        assert_eq!(
            (row.col_int(0), row.col_int(2), row.col_int(3)),
            (Some(7), None, Some(-7))
        );
    }
}

/// Arrays have more elements than tables have columns.
#[test]
fn arrays_are_of_any_length() {
    let ty = Type::Array(crate::ArrayKind::Int8);
    for count in [0_i64, 255, 256, 65_535, 65_536, 200_000] {
        let mut items: Vec<Datum> = (0..count).map(Datum::Int).collect();
        if count == 200_000 {
            items[70_000] = Datum::Null;
        }
        let array = Datum::Array(items.into());
        let values = [Datum::Int(7), array.clone()];
        let bytes = to_vec(&values);
        let row = RowRef::new(&bytes);
        assert_eq!(row.col(1, ty), Ok(array.clone()), "{count}");
        assert_eq!(row.validate(), Ok(()));
        let mut replaced = Vec::new();
        let seven = to_vec(&[Datum::Int(7), Datum::Null]);
        let replacing = RowRef::new(&seven).replace(1, &array, &mut replaced);
        assert_eq!((replacing, replaced == bytes), (Ok(()), true), "{count}");
        let len = values.iter().map(value_len).sum::<usize>();
        assert!(bytes.len() > len && bytes.len() < len + 16, "{count}");
    }
}

#[test]
fn rows_are_compact() {
    let values: Vec<Datum> = vec![0i64.into(), 1i64.into(), 200i64.into(), "ab".into()];
    assert_eq!(to_vec(&values), [0, 4, 0, 1, 3, 5, 1, 200, 0, b'a', b'b']);
    assert_eq!(to_vec(&[]), [0, 0]);
    assert_eq!(
        to_vec(&[Datum::Null, true.into()]),
        [HAS_NULLS, 2, 1, 0, 1, 1]
    );
    let money = Datum::Decimal("-10.00".parse().expect("a number"));
    assert_eq!(to_vec(&[money]), [0, 1, 3, 2, 0x18, 0xfc]);
}

#[test]
fn replacing_equals_encoding_the_changed_row() {
    let mut prng = Prng::new(22);
    for _ in 0..3_000 {
        let width = prng.below(10);
        let (mut types, mut values) = random_row(&mut prng, width);
        let old = to_vec(&values);
        let at = prng.below(width + 3) as usize;
        while values.len() <= at {
            types.push(Type::Text);
            values.push(Datum::Null);
        }
        let value = random_datum(&mut prng, types[at]);
        values[at] = value.clone();
        let mut new = vec![0xee];
        RowRef::new(&old)
            .replace(at, &value, &mut new)
            .expect("own encoding");
        assert_eq!(new[1..], to_vec(&values), "canonical, whatever its history");
        let other = prng.below(values.len() as u64) as usize;
        let changes = [
            (other, Datum::Null),
            (at, "x".into()),
            (other, Datum::Int(5)),
        ];
        values[at] = "x".into();
        values[other] = Datum::Int(5);
        let mut twice = Vec::new();
        RowRef::new(&new[1..])
            .replace_columns(&changes, &mut twice)
            .expect("own encoding");
        assert_eq!(twice, to_vec(&values));
    }
}

#[test]
fn corrupt_rows_give_errors_never_panics() {
    let mut prng = Prng::new(23);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..60_000 {
        let width = prng.below(6);
        let (types, values) = random_row(&mut prng, width);
        let mut bytes = to_vec(&values);
        match prng.below(3) {
            0 => bytes.truncate(prng.below(bytes.len() as u64) as usize),
            1 => {
                let at = prng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << prng.below(8);
            }
            _ => bytes
                .iter_mut()
                .for_each(|byte| *byte = prng.next_u64() as u8),
        }
        let row = RowRef::new(&bytes);
        for (i, ty) in types.iter().enumerate() {
            let column = row.col(i, *ty);
            good += u32::from(column.is_ok());
            bad += u32::from(column.is_err());
            row.col_int(i);
            row.col_bytes(i);
        }
        let mut out = Vec::new();
        let replaced = row.replace(1, &Datum::Int(1), &mut out);
        assert_eq!(replaced.is_ok(), row.validate().is_ok());
    }
    assert!(good > 1_000 && bad > 1_000, "{good} good, {bad} bad");
    let malformed = Err(CodecError::Malformed("row header"));
    assert_eq!(RowRef::new(&[]).col(0, Type::Int4), malformed);
    assert_eq!(
        RowRef::new(&[3, 0]).validate().map(|()| Datum::Null),
        malformed
    );
    assert_eq!(
        RowRef::new(&[0, 0, 9]).validate(),
        Err(CodecError::Trailing(1))
    );
}
