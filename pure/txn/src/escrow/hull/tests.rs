//! Formulas over floats, moments, arrays and `jsonb`, against all orders of their commits.

use super::super::Escrow;
use crate::increment::Folding;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use base::datum::Interval;
use base::{ArrayKind, Datum, Jsonb, Prng, Type, row};
use store::computed::{Computed, ValueFunc};
use store::{ColumnFormula, Formula, FormulaOp};

const FLOAT: Type = Type::Float8;
const REAL: Type = Type::Float4;
const DATE: Type = Type::Date;
const INTS: Type = Type::Array(ArrayKind::Int4);
const WHOLE: Type = Type::Int4;
const JSON: Type = Type::Jsonb;
const TYPES: [Type; 6] = [FLOAT, REAL, DATE, INTS, WHOLE, JSON];

fn constant(value: impl Into<Datum>) -> Computed {
    Computed::Const(value.into())
}

fn own(column: u16) -> Computed {
    Computed::Column(column, TYPES[usize::from(column)])
}

fn some_float(prng: &mut Prng, ty: Type) -> Datum {
    let value = match prng.below(8) {
        0 => 0.0,
        1 => 1e-30,
        2 if ty == FLOAT => 1e200,
        3 => -1e30,
        _ => prng.between(-40, 40) as f64 / 8.0,
    };
    Datum::Float(f64::from(value as f32).max(if ty == REAL { -3e38 } else { value }))
}

/// A change of a column, which now and then fails for a row that another one has made.
fn change(prng: &mut Prng, column: u16) -> ColumnFormula {
    let ty = TYPES[usize::from(column)];
    let convert = |from: Type| ValueFunc::Convert {
        from,
        explicit: true,
    };
    let (func, args) = match (ty, prng.below(5)) {
        (Type::Float8 | Type::Float4, 0) => {
            let other = 1 - column;
            (convert(TYPES[usize::from(other)]), vec![own(other)])
        }
        (Type::Float8 | Type::Float4, drawn) => {
            let func = [
                ValueFunc::Add,
                ValueFunc::Subtract,
                ValueFunc::Multiply,
                ValueFunc::Divide,
            ][drawn as usize - 1];
            let mut args = vec![own(column), Computed::Const(some_float(prng, ty))];
            args.rotate_left(prng.below(2) as usize);
            (func, args)
        }
        (Type::Date, 0..=2) => {
            let days = [1, -40, 2_000_000_000, 30_000_000][prng.below(4) as usize];
            (ValueFunc::Add, vec![own(2), constant(days)])
        }
        (Type::Date, _) => {
            let stamp = Type::Timestamp(None);
            let by = Interval {
                months: prng.between(-90_000, 90_000) as i32,
                days: prng.between(-9, 9) as i32,
                micros: 5,
            };
            let moved = Computed::Call(ValueFunc::Add, vec![own(2), constant(by)], stamp);
            (convert(stamp), vec![moved])
        }
        (Type::Array(_), 0..=1) => (ValueFunc::ArrayAppend, vec![own(3), own(4)]),
        (Type::Array(_), 2) => (ValueFunc::ArrayCat, vec![own(3), own(3)]),
        (Type::Array(_), _) => (ValueFunc::ArrayRemove, vec![own(3), constant(1)]),
        (Type::Int4, 0) => (ValueFunc::Cardinality, vec![own(3)]),
        (Type::Int4, 1) => (ValueFunc::Item, vec![own(3), own(4)]),
        (Type::Int4, _) => (convert(FLOAT), vec![own(0)]),
        (_, 0) => (ValueFunc::JsonFrom(WHOLE), vec![own(4)]),
        (_, 1) => (ValueFunc::JsonConcat, vec![own(5), own(5)]),
        (_, 2) => (ValueFunc::JsonDeleteKey, vec![own(5), constant("a")]),
        (_, _) => {
            let path = Datum::Array(Box::new(["a".into()]));
            (
                ValueFunc::JsonSet,
                vec![own(5), Computed::Const(path), own(5)],
            )
        }
    };
    let op = match prng.below(8) {
        0 if column < 2 => FormulaOp::Set(some_float(prng, ty)),
        _ => FormulaOp::Compute(Computed::Call(func, args, ty)),
    };
    ColumnFormula::new(column, ty, op).expect("anything can be computed")
}

/// Whether every order of some of the formulas folds onto the row.
fn always_fold(row: &[u8], formulas: &[Formula]) -> bool {
    formulas.iter().enumerate().all(|(at, formula)| {
        let mut out = Vec::new();
        let mut rest: Vec<Formula> = formulas.to_vec();
        rest.remove(at);
        formula.fold(row, &mut out).is_ok() && always_fold(&out, &rest)
    })
}

#[test]
fn values_of_all_kinds_that_share_a_row_fold_in_every_order() {
    let mut prng = Prng::new(5);
    let (mut shared, mut alone, mut refused) = (0, 0, 0);
    for _ in 0..3_000 {
        let json = ["{}", "{\"a\": 1}", "[1]"][prng.below(3) as usize];
        let row = row::to_vec(&[
            some_float(&mut prng, FLOAT),
            some_float(&mut prng, REAL),
            Datum::Date(prng.between(-900_000, 900_000) as i32),
            Datum::Array((0..prng.below(4)).map(|it| Datum::Int(it as i64)).collect()),
            Datum::Int(prng.between(0, 3)),
            Datum::Jsonb(Jsonb::parse(json).expect("it is JSON")),
        ]);
        let mut all: Vec<Formula> = Vec::new();
        for _ in 0..4 {
            let column = prng.below(6) as u16;
            let mut changes = vec![change(&mut prng, column)];
            if prng.below(3) == 0 {
                let column = prng.below(6) as u16;
                changes.push(change(&mut prng, column));
            }
            let formula = Formula(changes);
            if formula.fold(&row, &mut Vec::new()).is_err() {
                continue;
            }
            let escrow = Escrow::of(Folding::InOrder, formula.computes(), |add| {
                all.iter().for_each(|one| add(Some(one)));
            });
            let shares = escrow.is_none_or(|escrow| escrow.has_room(&row, None, &formula));
            all.push(formula);
            let holds = always_fold(&row, &all);
            assert!(holds || !shares, "{row:?} {all:?}");
            shared += u32::from(shares && all.len() > 1);
            alone += u32::from(!holds);
            refused += u32::from(holds && !shares);
            if !shares {
                all.pop();
            }
        }
    }
    assert!(shared > 2_000 && alone > 200, "{shared} {alone} {refused}");
    assert!(
        refused < shared / 2,
        "more is refused than must be: {refused}"
    );
}
