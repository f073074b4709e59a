//! Shares of rows from samples, beside those that are counted.

use super::*;
use base::{RowBatch, TableId};

/// Samples rows of one column on `shards` shards and puts the digests together.
fn values_of(rows: &[Datum], shards: usize) -> ColumnValues {
    let mut batch = RowBatch::new(WIRE_WIDTH);
    for shard in 0..shards {
        let own: Vec<&Datum> = rows.iter().skip(shard).step_by(shards).collect();
        let mut sampler = Sampler::new([3], own.len() as u64);
        for value in own {
            if sampler.wants() {
                sampler.add(&|_| value.clone());
            }
        }
        for digest in sampler.finish() {
            digest.push_to(TableId(7), &mut batch);
        }
    }
    let mut tables = merged(&batch);
    let mut table = tables.remove(&TableId(7)).expect("the table is known");
    table.columns.remove(&3).expect("the column is known")
}

fn near(found: f64, wanted: f64, by: f64) {
    assert!((found - wanted).abs() <= by, "{found} is not near {wanted}");
}

#[test]
fn shares_of_even_values() {
    let rows: Vec<Datum> = (0..100_000).map(|i| Datum::Int(i * 7919 % 1000)).collect();
    for shards in [1, 3] {
        let values = values_of(&rows, shards);
        near(values.distinct, 1000.0, 120.0);
        near(values.below(&Datum::Int(250), false), 0.25, 0.03);
        near(values.below(&Datum::Int(-1), true), 0.0, 0.001);
        near(values.below(&Datum::Int(5000), true), 1.0, 0.001);
        near(values.equal(&Datum::Int(17)), 0.001, 0.0005);
        let share = values.passing(&mut |value| Some(matches!(value, Datum::Int(v) if v % 2 == 0)));
        near(share.expect("there are bounds"), 0.5, 0.15);
    }
}

#[test]
fn common_values_and_nulls() {
    let value = |i: i64| match i % 10 {
        0..=4 => Datum::Text("often".into()),
        5 | 6 => Datum::Null,
        _ => Datum::Text(format!("seldom {i}").into()),
    };
    let rows: Vec<Datum> = (0..20_000).map(value).collect();
    let values = values_of(&rows, 2);
    near(values.nulls, 0.2, 0.01);
    near(values.equal(&Datum::Text("often".into())), 0.5, 0.05);
    assert!(values.equal(&Datum::Text("never".into())) < 0.001);
    near(values.distinct, 6000.0, 1200.0);
    near(values.distinct(40_000.0), 2.0 * values.distinct, 1.0);
}

#[test]
fn keys_are_different_in_the_whole_table() {
    let rows: Vec<Datum> = (0..200_000).map(Datum::Int).collect();
    let values = values_of(&rows, 2);
    near(values.distinct, 200_000.0, 1.0);
    near(values.equal_to_some(), 1.0 / 200_000.0, 1e-9);
}

#[test]
fn few_values_are_all_common() {
    let rows: Vec<Datum> = (0..5_000).map(|i| Datum::Bool(i % 4 == 0)).collect();
    let values = values_of(&rows, 1);
    near(values.equal(&Datum::Bool(true)), 0.25, 0.02);
    assert!(values.bounds.is_empty());
    let share = values.passing(&mut |value| Some(matches!(value, Datum::Bool(true))));
    near(share.expect("all are common"), 0.25, 0.02);
}

#[test]
fn what_makes_no_sense_is_left_out() {
    let mut batch = RowBatch::new(WIRE_WIDTH);
    for (what, number) in [(0, f64::NAN), (1, 5.0), (5, 0.5), (77, 1.0), (0, -1.0)] {
        let (table, column) = (Datum::Int(1), Datum::Int(1));
        let value = Datum::Bytes(vec![1, 2].into());
        batch.push([table, column, Datum::Int(what), value, Datum::Float(number)]);
    }
    batch.push((0..5).map(|_| Datum::Null));
    assert!(merged(&batch).is_empty());
    assert!(merged(&RowBatch::new(WIRE_WIDTH)).is_empty());
}
